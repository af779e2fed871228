//! The actor of one workload's rollout: it supervises pods and timeouts through its machine, and owns the record.
//!
//! One for each workload with a rollout in flight. A newer version is taken up by the same actor, because it owns the
//! record and the purge of the version before may still be under way. Not for any decision; see `purge::rollouts::rollout`.

mod asking;
pub(super) mod hosts;
mod loading;
mod mail;
mod peers;
mod start;
mod storing;
mod telling;

pub use start::{Parent, Start};

use std::cell::RefCell;
use std::rc::Rc;

use actix::{Actor, ActorContext, Context};

use crate::actors::directory::Directory;
use crate::actors::lifecycle::{Obituary, StopListener};
use crate::actors::message::End;
use crate::actors::rollout::storing::Storing;
use crate::actors::shell::{Drives, Shell};
use crate::actors::traffic::TrafficMoved;
use crate::actors::{Env, MAILBOX_MAX};
use crate::telemetry::{InFlight, Stopwatch};
use kernel::id::Seq;
use notices::delivery::Errands;
use purge::rollouts::rollout::{Attended, Effect, Event};

/// The actor. See the module's text.
pub struct RolloutActor {
    start: Start,
    env: Env,
    directory: Directory,
    parent: Parent,
    stop_listener: StopListener,
    obituary: Obituary,
    /// `None` until the record was read.
    shell: Option<Shell<Attended>>,
    /// The progress of reading it, in words.
    loading: Rc<RefCell<String>>,
    following: Option<Seq>,
    /// Traffic that moved to it in this life.
    moved: Option<TrafficMoved>,
    errands: Errands,
    storing: Storing,
    stopwatch: Stopwatch,
    counted: InFlight,
    draining: bool,
}

impl RolloutActor {
    /// An actor that reads its record, looks at the workload, and goes on from there.
    pub fn new(
        start: Start,
        env: Env,
        directory: Directory,
        parent: Parent,
        stop_listener: StopListener,
        obituary: Obituary,
    ) -> Self {
        let counted = env.metrics.standing.in_flight();
        Self {
            start,
            env,
            directory,
            parent,
            stop_listener,
            obituary,
            shell: None,
            loading: Rc::new(RefCell::new("reading its record from the ledger".to_owned())),
            following: None,
            moved: None,
            errands: Errands::default(),
            storing: Storing::default(),
            stopwatch: Stopwatch::default(),
            counted,
            draining: false,
        }
    }

    fn feed_unless_draining(&mut self, event: Event, ctx: &mut Context<Self>) {
        // While draining, only the end of the write under way matters; the next life gets everything else again from the
        // ledger and the cluster.
        if !self.draining {
            self.feed(event, ctx);
            self.follow_pods(ctx);
        }
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
        self.stop_listener.clone().bind(self, ctx);
        self.load(ctx);
    }
}

impl Drives<Attended> for RolloutActor {
    fn shell(&mut self) -> Option<&mut Shell<Attended>> {
        self.shell.as_mut()
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("rollout", effect.name());
        match effect {
            Effect::Store(record) => self.store(Some(record), 0, ctx),
            Effect::Remove(revision) => self.store(None, revision, ctx),
            Effect::Publish(record) => self.publish(record, ctx),
            Effect::Absent(floor) => self.tell_absent(floor),
            Effect::Look => self.look(None, ctx),
            Effect::Recheck(vector) => self.look(Some(vector), ctx),
            Effect::AskCache(of, question) => self.ask_cache(of, question, ctx),
            Effect::FindOldPods(workload) => self.find_old_pods(workload, ctx),
            Effect::FindSite(workload, age, had) => self.find_site(workload, age, had, ctx),
            Effect::Match(vector, plan) => self.match_plan(vector, plan, false, ctx),
            Effect::Compare(vector, plan) => self.match_plan(vector, plan, true, ctx),
            Effect::Purge(order) => self.order(order, ctx),
            Effect::Tell(notice) => self.tell(notice, ctx),
            Effect::AskEdge(reference, question) => self.ask_edge(reference, question, ctx),
            Effect::LeaveEdge(reference) => self.leave_edge(reference),
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
