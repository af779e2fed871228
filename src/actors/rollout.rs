//! The actor of one workload's rollout: it supervises pods and timeouts through its machine, and owns the record.
//!
//! One for each workload with a rollout in flight. A newer version is taken up by the same actor, because it owns the
//! record and the purge of the version before may still be under way. Not for any decision; see `domain::rollout`.

mod hosts;
mod loading;
mod start;
mod storing;

pub use start::Start;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, MailboxError, MessageResult, Recipient,
    WrapFuture,
};

use crate::actors::directory::{Directory, PeersRestarted};
use crate::actors::lifecycle::{Collar, Obituary};
use crate::actors::message::{
    Absent, Drain, End, FollowPods, Follower, MatchPlan, Observe, PlaceOrder, PodsReported, Publish, PurgeReported,
    Sighted, TellNotice, ViewReported,
};
use crate::actors::observation::Observation;
use crate::actors::rollout::loading::Loading;
use crate::actors::rollout::storing::unstored;
use crate::actors::shell::{Drives, Shell};
use crate::actors::{ANSWER_WITHIN, MAILBOX_MAX, Surroundings};
use crate::domain::id::{NoticeId, Seq, Vector};
use crate::domain::notice::Notice;
use crate::domain::plan::Plan;
use crate::domain::purge::Order;
use crate::domain::record::Record;
use crate::domain::refusal::Cause;
use crate::domain::rollout::{Attended, Effect, Event, Identity, Rollout, Summary};
use crate::domain::serving::old_pods;
use crate::domain::site::Age;
use crate::domain::workload::Workload;
use crate::ports::Retry;

/// The actor. See the module's text.
pub struct RolloutActor {
    start: Start,
    surroundings: Surroundings,
    directory: Directory,
    pods: Recipient<FollowPods>,
    collar: Collar,
    obituary: Obituary,
    /// `None` until the record was read.
    shell: Option<Shell<Attended>>,
    /// How reading it goes, in words.
    loading: Rc<RefCell<String>>,
    following: Option<Seq>,
    /// Notices whose webhooks are on their way already, while their Event is not published yet: telling them again would
    /// call every receiver again.
    accepted: BTreeSet<NoticeId>,
    /// Notices logged and counted in this life, however often they have to be told until they are taken.
    noticed: BTreeSet<NoticeId>,
    draining: bool,
    storing: bool,
    /// Why the ledger has no room for its record, since when it had none.
    unstored: Option<String>,
}

impl RolloutActor {
    /// An actor that reads its record, looks at the workload, and goes on from there.
    pub fn new(
        start: Start,
        surroundings: Surroundings,
        directory: Directory,
        pods: Recipient<FollowPods>,
        collar: Collar,
        obituary: Obituary,
    ) -> Self {
        Self {
            start,
            surroundings,
            directory,
            pods,
            collar,
            obituary,
            shell: None,
            loading: Rc::new(RefCell::new("reading its record from the ledger".to_owned())),
            following: None,
            accepted: BTreeSet::new(),
            noticed: BTreeSet::new(),
            draining: false,
            storing: false,
            unstored: None,
        }
    }

    /// Reads the record, again and again until it can be read.
    fn load(&self, ctx: &mut Context<Self>) {
        let loading = Loading {
            surroundings: self.surroundings.clone(),
            workload: self.start.workload.clone(),
            origin: self.start.origin.clone(),
            uid: self.start.sight.as_ref().map_or_else(String::new, |seen| seen.uid.clone()),
            tell_notice: self.directory.tell_notice.clone(),
            progress: self.loading.clone(),
        };
        ctx.spawn(loading.read().into_actor(self).map(|(record, floor), actor, ctx| actor.begin(record, floor, ctx)));
    }

    fn begin(&mut self, record: Option<Record>, floor: Seq, ctx: &mut Context<Self>) {
        let settings = &self.surroundings.settings;
        let clock = &self.surroundings.ports.clock;
        let now = i64::try_from(clock.now().as_millis()).unwrap_or(i64::MAX);
        let identity = Identity {
            workload: self.start.workload.clone(),
            member: settings.member.clone(),
            group: settings.group.clone(),
            grouped: settings.grouping.is_some(),
            origin: self.start.origin.clone(),
            epoch_ms: clock.wall_ms().saturating_sub(now),
        };
        let machine = Rollout::resume(identity, settings.policy.clone(), floor, record).arriving(self.start.arrival);
        let machine = machine.remembering(self.start.known.take().as_deref(), self.start.spent);
        self.shell = Some(Shell::new(Attended::new(machine), &self.surroundings));
        let sight = self.start.sight.take().map_or(Event::Missed, Event::Seen);
        self.feed(sight, ctx);
        self.follow_pods(ctx);
    }

    fn feed_unless_draining(&mut self, event: Event, ctx: &mut Context<Self>) {
        // Once draining, only the end of the write under way matters; whatever else is lost here comes again to the next
        // life, from the ledger and from the cluster.
        if !self.draining {
            self.feed(event, ctx);
            self.follow_pods(ctx);
        }
    }

    /// Asks for the pods of the rollout in flight, once for each.
    fn follow_pods(&mut self, ctx: &mut Context<Self>) {
        let Some(rollout) = self.shell.as_ref().map(Shell::machine) else { return };
        let Some((seq, version)) = rollout.rolling() else { return };
        let Some(workload) = rollout.workload().filter(|_| self.following != Some(seq)) else { return };
        let follow = FollowPods {
            workload: workload.id.clone(),
            selector: workload.selector.clone(),
            version: version.clone(),
            report_to: ctx.address().recipient(),
        };
        let workload = workload.clone();
        self.following = Some(seq);
        if self.pods.try_send(follow).is_err() {
            // What nobody sees counts as served; the next sight asks again.
            self.surroundings.metrics.overflow("pod_watcher");
            self.following = None;
        }
        self.see_services(workload, ctx);
    }

    fn see_services(&mut self, workload: Workload, ctx: &mut Context<Self>) {
        let Surroundings { ports, metrics, .. } = self.surroundings.clone();
        let seen = async move { ports.cluster.publishes_unready(&workload).await };
        self.ask(ctx, seen, move |seen| match seen {
            Ok(publish_unready) => Event::ServicesSeen { publish_unready },
            Err(error) => {
                metrics.failure("read_services");
                tracing::debug!(%error, "could not read the Services of a workload");
                Event::PodsUnseen
            }
        });
    }

    fn publish(&mut self, record: Box<Record>, ctx: &mut Context<Self>) {
        let follower = Follower { view_reported: ctx.address().recipient(), observe: ctx.address().recipient() };
        let publish = Publish { workload: self.start.workload.clone(), record, follower };
        let answer = self.directory.publish.send(publish).timeout(ANSWER_WITHIN);
        ctx.spawn(answer.into_actor(self).map(|view, actor, ctx| match view {
            Ok(view) => actor.feed_unless_draining(Event::ViewChanged(view), ctx),
            // A group actor that died is rebuilt, and then everything is published again.
            Err(MailboxError::Closed) => {}
            Err(MailboxError::Timeout) => actor.publish_again(ctx),
        }));
    }

    fn tell_absent(&self, floor: Seq) {
        if self.directory.absent.try_send(Absent(self.start.workload.clone(), floor)).is_err() {
            // A member that waits for it asks again.
            self.surroundings.metrics.overflow("cluster_group");
        }
    }

    fn publish_again(&mut self, ctx: &mut Context<Self>) {
        if let Some(record) = self.shell.as_ref().and_then(|shell| shell.machine().durable()).cloned() {
            self.publish(Box::new(record), ctx);
        }
    }

    fn look(&mut self, recheck: Option<Vector>, ctx: &mut Context<Self>) {
        let Surroundings { ports, metrics, .. } = self.surroundings.clone();
        let workload = self.start.workload.clone();
        self.ask(
            ctx,
            async move { (ports.cluster.workload(&workload).await, recheck) },
            move |(seen, recheck)| match (seen, recheck) {
                (Ok(seen), None) => Event::Looked(seen.map(Box::new)),
                (Ok(seen), Some(vector)) => Event::Rechecked(vector, seen.map(Box::new)),
                (Err(error), recheck) => {
                    metrics.failure("read_workload");
                    tracing::warn!(%error, "could not read the workload; trying again");
                    let why = error.to_string();
                    if recheck.is_some() { Event::RecheckFailed(why) } else { Event::LookFailed(why) }
                }
            },
        );
    }

    fn find_old_pods(&mut self, workload: Box<Workload>, ctx: &mut Context<Self>) {
        let Surroundings { ports, metrics, .. } = self.surroundings.clone();
        let id = workload.id.clone();
        self.ask(ctx, async move { ports.cluster.serving(&workload).await }, move |seen| match seen {
            Ok(seen) => Event::OldPodsFound(old_pods(&seen)),
            Err(error) => {
                metrics.failure("read_serving");
                tracing::warn!(workload = %id.spoken(), %error, "could not look for old pods; trying again");
                Event::OldPodsUnseen(error.to_string())
            }
        });
    }

    fn find_site(&mut self, workload: Box<Workload>, age: Age, ctx: &mut Context<Self>) {
        let Surroundings { ports, metrics, settings, .. } = self.surroundings.clone();
        let id = workload.id.clone();
        let tenants = settings.policy.tenants.clone();
        let found = async move { hosts::find(&*ports.cluster, workload, age, tenants).await };
        self.ask(ctx, found, move |found| match found {
            Ok(found) => Event::SiteFound(found),
            Err(error) => {
                metrics.failure("read_site");
                tracing::warn!(workload = %id.spoken(), %error, "could not find the site; trying again");
                Event::SiteFailed(error.to_string())
            }
        });
    }

    fn match_plan(&mut self, vector: Vector, plan: Box<Plan>, ctx: &mut Context<Self>) {
        // Without a time-out: the invalidator answers every question, after its own time-outs, or is rebuilt.
        let answer = self.directory.match_plan.send(MatchPlan(plan));
        ctx.spawn(answer.into_actor(self).map(move |answer, actor, ctx| match answer {
            Ok(Some(Ok(found))) => actor.feed_unless_draining(Event::Matched(vector, found), ctx),
            Ok(Some(Err(why))) => actor.feed_unless_draining(Event::MatchFailed(vector, why), ctx),
            // It died; its successor is asked again once its address is known.
            Ok(None) | Err(_) => {}
        }));
    }

    fn order(&mut self, order: Box<Order>, ctx: &mut Context<Self>) {
        let order = PlaceOrder { order, report_to: ctx.address().recipient() };
        let placed = self.directory.place_order.send(order).timeout(ANSWER_WITHIN);
        ctx.spawn(placed.into_actor(self).map(|placed, actor, ctx| match placed {
            Ok(()) => {}
            // It died. Ordering again before its successor's address is known would only meet the dead again, at once.
            Err(MailboxError::Closed) => {}
            Err(MailboxError::Timeout) => actor.feed_unless_draining(Event::PeersRestarted, ctx),
        }));
    }

    fn tell(&mut self, notice: Box<Notice>, ctx: &mut Context<Self>) {
        if self.noticed.insert(notice.id.clone()) {
            self.surroundings.metrics.notice(&notice);
        }
        let surroundings = self.surroundings.clone();
        let uid = self.shell.as_ref().and_then(|shell| shell.machine().durable()).map(|record| record.uid.clone());
        let tell_notice = self.directory.tell_notice.clone();
        let id = notice.id.clone();
        let accepted = self.accepted.contains(&id);
        let told = async move {
            let published = surroundings.ports.events.publish(&notice, uid.as_deref().unwrap_or_default()).await;
            let said = surroundings.heard(Cause::PublishEvents, notice.subject.namespace(), published.as_ref().err());
            if let Err(error) = &published {
                surroundings.metrics.failure("publish_event");
                if !said {
                    tracing::warn!(workload = %notice.subject.spoken(), %error, "could not publish an Event");
                }
            }
            // An Event that can never be published must not keep the webhooks waiting.
            let unpublished =
                published.err().filter(|error| error.retry != Retry::Never).map(|error| error.to_string());
            let unaccepted = if accepted {
                None
            } else {
                let taken = tell_notice.send(TellNotice(notice)).timeout(ANSWER_WITHIN).await;
                taken.unwrap_or_else(|_| Err("the webhooks' actor is being restarted".to_owned())).err()
            };
            (unpublished, unaccepted)
        };
        ctx.spawn(told.into_actor(self).map(move |(unpublished, unaccepted), actor, ctx| {
            actor.accepted.extend(unaccepted.is_none().then(|| id.clone()));
            match unpublished.or(unaccepted) {
                None => {
                    actor.accepted.remove(&id);
                    actor.feed(Event::Told(id), ctx);
                }
                Some(why) => actor.feed(Event::TellFailed(id, why), ctx),
            }
        }));
    }

    fn end(&mut self, end: End, ctx: &mut Context<Self>) {
        self.obituary.end = end;
        ctx.stop();
    }
}

impl Actor for RolloutActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.collar.clone().bind(self, ctx);
        self.load(ctx);
    }
}

impl Drives<Attended> for RolloutActor {
    fn shell(&mut self) -> Option<&mut Shell<Attended>> {
        self.shell.as_mut()
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.surroundings.metrics.effect("rollout", effect.name());
        match effect {
            Effect::Store(record) => self.store(Some(record), 0, ctx),
            Effect::Remove(revision) => self.store(None, revision, ctx),
            Effect::Publish(record) => self.publish(record, ctx),
            Effect::Absent(floor) => self.tell_absent(floor),
            Effect::Look => self.look(None, ctx),
            Effect::Recheck(vector) => self.look(Some(vector), ctx),
            Effect::FindOldPods(workload) => self.find_old_pods(workload, ctx),
            Effect::FindSite(workload, age) => self.find_site(workload, age, ctx),
            Effect::Match(vector, plan) => self.match_plan(vector, plan, ctx),
            Effect::Purge(order) => self.order(order, ctx),
            Effect::Tell(notice) => self.tell(notice, ctx),
            Effect::End => {
                let Some(machine) = self.shell.as_ref().map(Shell::machine) else { return };
                let end = match machine.is_overdrawn() {
                    true => End::Overdrawn,
                    false => End::Finished(machine.durable().cloned().map(Box::new)),
                };
                self.end(end, ctx);
            }
        }
    }
}

impl Handler<Sighted> for RolloutActor {
    type Result = ();

    fn handle(&mut self, Sighted(workload): Sighted, ctx: &mut Self::Context) {
        if self.shell.is_some() {
            self.feed_unless_draining(workload.map_or(Event::Missed, Event::Seen), ctx);
        } else {
            self.start.sight = workload;
        }
    }
}

impl Handler<PodsReported> for RolloutActor {
    type Result = ();

    fn handle(&mut self, PodsReported(pods): PodsReported, ctx: &mut Self::Context) {
        self.feed_unless_draining(pods.map_or(Event::PodsUnseen, Event::PodsSeen), ctx);
    }
}

impl Handler<ViewReported> for RolloutActor {
    type Result = ();

    fn handle(&mut self, ViewReported(view): ViewReported, ctx: &mut Self::Context) {
        self.feed_unless_draining(Event::ViewChanged(view), ctx);
    }
}

impl Handler<PurgeReported> for RolloutActor {
    type Result = ();

    fn handle(&mut self, PurgeReported(reference, progress): PurgeReported, ctx: &mut Self::Context) {
        self.feed_unless_draining(Event::Purged(reference, progress), ctx);
    }
}

impl Handler<PeersRestarted> for RolloutActor {
    type Result = ();

    fn handle(&mut self, PeersRestarted(directory): PeersRestarted, ctx: &mut Self::Context) {
        self.directory = directory;
        self.feed_unless_draining(Event::PeersRestarted, ctx);
        self.publish_again(ctx);
    }
}

impl Handler<Drain> for RolloutActor {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) {
        self.draining = true;
        if !self.storing {
            self.end(End::Drained, ctx);
        }
    }
}

impl Handler<Observe> for RolloutActor {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let summary = match &self.shell {
            Some(shell) => shell.machine().summary(shell.now()),
            None => Some(Summary::unknown(&self.start.workload, self.loading.borrow().clone())),
        };
        let troubles = self.unstored.iter().map(|why| unstored(&self.start.workload, why)).collect();
        MessageResult(Observation { rollouts: summary.into_iter().collect(), troubles, ..Observation::default() })
    }
}
