//! The pods of one namespace, watched only while a rollout there is in flight: to explain why it waits, to know whether one of
//! them was ever ready, and when to look for old pods again.
//!
//! Completeness never depends on it: the workload's own counts decide that. A loss here costs a sentence, or one purge too
//! many after a rollback: followers learn of every time at which we could not see the pods.

use std::collections::BTreeMap;
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Recipient, StreamHandler};

use crate::actors::Env;
use crate::actors::MAILBOX_MAX;
use crate::actors::lifecycle::StopListener;
use crate::actors::message::{FollowPods, PodsReported};
use kernel::id::WorkloadId;
use purge::ports::PodSight;
use purge::workloads::own_pods::OwnPods;
use purge::workloads::readiness::Pods;

/// Changes within this time are reported together: pods come in swarms, and each report is a message. The one change that a purge may
/// wait for is reported at once.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// How often we check for remaining followers.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// The actor. See the module's text.
pub struct PodWatcher {
    env: Env,
    namespace: String,
    stop_listener: StopListener,
    pods: OwnPods,
    followers: BTreeMap<WorkloadId, Recipient<PodsReported>>,
    /// The first listing is complete. Before that, a missing pod means nothing.
    synced: bool,
    /// A report is due within [`REPORT_EVERY`].
    reporting: bool,
}

impl PodWatcher {
    /// A watcher of the namespace of its first follower.
    pub fn new(env: Env, first: FollowPods, stop_listener: StopListener) -> Self {
        let namespace = first.workload.namespace.clone();
        let (pods, followers) = (OwnPods::default(), BTreeMap::new());
        let mut watcher = Self { env, namespace, stop_listener, pods, followers, synced: false, reporting: false };
        watcher.follow(first);
        watcher
    }

    fn follow(&mut self, FollowPods { workload, selector, version, report_to }: FollowPods) {
        self.pods.follow(workload.clone(), selector, version);
        self.followers.insert(workload, report_to);
    }

    fn report_soon(&mut self, ctx: &mut Context<Self>) {
        if !self.reporting {
            self.reporting = true;
            ctx.run_later(REPORT_EVERY, Self::report);
        }
    }

    /// Reports to every follower whose pods have changed; ends without followers.
    fn report(&mut self, ctx: &mut Context<Self>) {
        self.reporting = false;
        for (ended, _) in self.followers.extract_if(.., |_, report_to| !report_to.connected()) {
            self.pods.unfollow(&ended);
        }
        if self.followers.is_empty() {
            return ctx.stop();
        }
        if !self.synced {
            return;
        }
        let news = self.pods.news();
        self.tell(news);
    }
}

impl PodWatcher {
    /// What a rollout at the barrier waits for is reported at once: each moment counts towards its purge.
    fn report_urgent(&mut self) {
        if self.synced {
            let news = self.pods.urgent_news();
            self.tell(news);
        }
    }

    /// A follower whose mailbox is full gets the next report.
    fn tell(&mut self, news: Vec<(WorkloadId, Pods)>) {
        for (workload, pods) in news {
            let report_to = self.followers.get(&workload);
            if report_to.is_some_and(|report_to| report_to.try_send(PodsReported(Some(pods.clone()))).is_ok()) {
                self.pods.told(&workload, pods);
            }
        }
    }

    /// Reports to every follower that for a time we cannot see its pods.
    fn report_blindness(&mut self) {
        for report_to in self.followers.values() {
            if report_to.try_send(PodsReported(None)).is_err() {
                // Until the next report it counts as having seen no pods.
                self.env.metrics.overflow("rollout");
            }
        }
        self.pods.forget_told();
    }
}

impl Actor for PodWatcher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        ctx.add_stream(self.env.ports.cluster.watch_pods(&self.namespace));
        // In a quiet namespace nothing else would notice that the last follower has ended.
        ctx.run_interval(SWEEP_EVERY, |watcher, ctx| watcher.report_soon(ctx));
    }
}

impl StreamHandler<PodSight> for PodWatcher {
    fn handle(&mut self, sight: PodSight, ctx: &mut Self::Context) {
        match sight {
            PodSight::Restarted => {
                if self.synced {
                    self.report_blindness();
                }
                self.synced = false;
                self.pods.clear();
            }
            PodSight::Synced => self.synced = true,
            PodSight::Seen(labels, pod) => self.pods.seen(labels, pod),
            PodSight::Gone(name) => self.pods.gone(&name),
            PodSight::Trouble(error) => {
                self.env.metrics.failure("watch_pods");
                self.report_blindness();
                tracing::debug!(%error, namespace = %self.namespace, "the watch of pods was interrupted");
            }
        }
        self.report_urgent();
        self.report_soon(ctx);
    }
}

impl Handler<FollowPods> for PodWatcher {
    type Result = ();

    fn handle(&mut self, follow: FollowPods, ctx: &mut Self::Context) {
        self.follow(follow);
        self.report_soon(ctx);
    }
}
