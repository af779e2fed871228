//! The broker of the group's records: it takes in what this member publishes and answers with what is known of all.
//!
//! A single cluster is a group of one: the view is its own record. When a Redis is configured, every record is shown there
//! too, the cache of current tags that people and other programs read (decision 3); nothing is ever read back from it.
//! Agreement itself is `domain::group`, a function of the view.
//!
//! Showing is on nobody's way: one call at a time, what changes meanwhile waits here and only its newest state counts. What
//! has been shown is not kept. It is read from the ledger again at the start, and whenever Redis turns out to have lost it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, MessageResult, WrapFuture};

use crate::actors::lifecycle::{Collar, Obituary};
use crate::actors::message::{Absent, Drain, End, Forget, Observation, Observe, Publish, Show};
use crate::actors::{MAILBOX_MAX, Surroundings};
use crate::domain::group;
use crate::domain::id::{Origin, Seq, WorkloadId};
use crate::domain::record::Record;
use crate::domain::retry;
use crate::ports::{Ledgered, PortError, TagCache};

/// How often Redis is asked whether everything is still there: what it lost is shown again that soon
/// (ARCHITECTURE.md, fault R2). One `GET`.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Records that may wait here while Redis does not answer. Beyond that they are read from the ledger again when it does:
/// at 1 KiB for a record in flight, 1 MiB.
const WAITING_MAX: usize = 1_000;

/// How a workload is to be shown.
enum Shown {
    /// With this record.
    As(Box<Record>),
    /// No more, up to this state of its record.
    Not(Seq, u64),
}

/// The next thing to be done with the cache.
enum Task {
    /// See whether it has lost anything.
    Look,
    /// Read the whole ledger.
    ReadAll,
    /// Bring one workload up to date.
    Bring(WorkloadId, Shown),
}

/// What came of it.
enum Outcome {
    Looked(Result<bool, PortError>),
    ReadAll(Result<Option<Ledgered>, PortError>),
    Brought(WorkloadId, Shown, Result<(), PortError>),
}

/// The actor. See the module's text.
pub struct ClusterGroupActor {
    surroundings: Surroundings,
    origin: Origin,
    tags: Option<Arc<dyn TagCache>>,
    collar: Collar,
    obituary: Obituary,
    /// What has changed since it was last shown.
    waiting: BTreeMap<WorkloadId, Shown>,
    /// The workload that was brought up to date last. Those after it are next, so that one that cannot be shown keeps no
    /// other from it.
    last: Option<WorkloadId>,
    /// Whether Redis is to be asked for losses before anything else.
    look: bool,
    /// Whether all records are to be shown.
    all: bool,
    /// A call is under way, or the wait after one that failed.
    busy: bool,
    /// Calls that failed since a workload was last brought up to date.
    failures: u32,
    trouble: Option<String>,
}

impl ClusterGroupActor {
    /// The broker of the group whose own ledger is `origin`.
    pub fn new(surroundings: Surroundings, origin: Origin, collar: Collar, obituary: Obituary) -> Self {
        let tags = surroundings.ports.tags.clone();
        Self {
            surroundings,
            origin,
            tags,
            collar,
            obituary,
            waiting: BTreeMap::new(),
            last: None,
            look: true,
            all: true,
            busy: false,
            failures: 0,
            trouble: None,
        }
    }

    /// Remembers what is to be shown, if anything is shown at all.
    fn bring(&mut self, shown: impl IntoIterator<Item = (WorkloadId, Shown)>, ctx: &mut Context<Self>) {
        if self.tags.is_some() {
            self.waiting.extend(shown);
            self.limit_waiting();
            self.work(ctx);
        }
    }

    /// Leaves to the ledger what is too much to keep while Redis does not answer. What was removed is not in the ledger, so
    /// that is kept; it is two numbers.
    fn limit_waiting(&mut self) {
        if self.failures > 0 && self.waiting.len() > WAITING_MAX {
            self.waiting.retain(|_, shown| matches!(shown, Shown::Not(..)));
            self.all = true;
        }
    }

    /// Does what is next, if nothing is under way.
    fn work(&mut self, ctx: &mut Context<Self>) {
        let Some(tags) = self.tags.clone().filter(|_| !self.busy) else { return };
        let Some(task) = self.next_task() else {
            self.trouble = None;
            self.failures = 0;
            return;
        };
        self.busy = true;
        let origin = self.origin.clone();
        let ledger = self.surroundings.ports.ledger.clone();
        let doing = async move {
            match task {
                Task::Look => Outcome::Looked(tags.is_intact().await),
                Task::ReadAll => Outcome::ReadAll(ledger.peek().await),
                Task::Bring(workload, shown) => {
                    let brought = match &shown {
                        Shown::As(record) => tags.show(&workload, &origin, record).await,
                        Shown::Not(seq, revision) => tags.forget(&workload, &origin, *seq, *revision).await,
                    };
                    Outcome::Brought(workload, shown, brought)
                }
            }
        };
        ctx.spawn(doing.into_actor(self).map(|outcome, actor, ctx| actor.worked(outcome, ctx)));
    }

    fn next_task(&mut self) -> Option<Task> {
        if self.look {
            return Some(Task::Look);
        }
        if self.all {
            return Some(Task::ReadAll);
        }
        let after = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.waiting.range::<WorkloadId, _>((after, Bound::Unbounded)).next();
        let workload = next.or_else(|| self.waiting.first_key_value()).map(|(workload, _)| workload.clone())?;
        let shown = self.waiting.remove(&workload)?;
        Some(Task::Bring(workload, shown))
    }

    fn worked(&mut self, outcome: Outcome, ctx: &mut Context<Self>) {
        let failed = match outcome {
            Outcome::Looked(Ok(intact)) => {
                self.look = false;
                if !intact {
                    tracing::warn!("Redis has lost records; showing all of them again");
                    self.all = true;
                }
                None
            }
            Outcome::ReadAll(Ok(ledgered)) => {
                self.all = false;
                self.waiting_from(ledgered);
                None
            }
            Outcome::Brought(workload, _, Ok(())) => {
                self.failures = 0;
                self.last = Some(workload);
                None
            }
            Outcome::Brought(workload, shown, Err(error)) => {
                self.last = Some(workload.clone());
                // Something newer may have come meanwhile.
                self.waiting.entry(workload).or_insert(shown);
                Some(error)
            }
            Outcome::Looked(Err(error)) | Outcome::ReadAll(Err(error)) => Some(error),
        };
        let Some(error) = failed else {
            self.busy = false;
            return self.work(ctx);
        };
        self.failures = self.failures.saturating_add(1);
        // Whatever was wrong, it may have cost what was there.
        self.look = true;
        self.limit_waiting();
        let wait = retry::SERVICE.delay(self.failures, "show_tags");
        self.surroundings.metrics.failure("show_tags");
        if self.trouble.replace(error.to_string()).is_none() {
            tracing::warn!(%error, "could not show records in Redis; trying again, and nothing depends on it");
        }
        ctx.run_later(wait, |actor, ctx| {
            actor.busy = false;
            actor.work(ctx);
        });
    }

    /// Everything the ledger holds is to be shown, except where something newer waits already.
    fn waiting_from(&mut self, ledgered: Option<Ledgered>) {
        // Of another ledger this is not the group; whoever is will read it.
        let Some(ledgered) = ledgered.filter(|ledgered| ledgered.origin == self.origin) else { return };
        for (workload, record) in ledgered.records {
            self.waiting.entry(workload).or_insert_with(|| Shown::As(Box::new(record)));
        }
    }
}

impl Actor for ClusterGroupActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.collar.clone().bind(self, ctx);
        if self.tags.is_some() {
            self.work(ctx);
            ctx.run_interval(LOOK_EVERY, |actor, ctx| {
                actor.look = true;
                actor.work(ctx);
            });
        }
    }
}

impl Handler<Publish> for ClusterGroupActor {
    type Result = MessageResult<Publish>;

    fn handle(&mut self, Publish { workload, record, rollout: _ }: Publish, ctx: &mut Self::Context) -> Self::Result {
        let member = &self.surroundings.settings.member;
        let view = group::alone(member, &self.origin, Some(&record));
        self.bring([(workload, Shown::As(record))], ctx);
        MessageResult(view)
    }
}

impl Handler<Show> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, Show(records): Show, ctx: &mut Self::Context) {
        self.bring(records.into_iter().map(|(workload, record)| (workload, Shown::As(Box::new(record)))), ctx);
    }
}

impl Handler<Forget> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, Forget { workload, seq, revision }: Forget, ctx: &mut Self::Context) {
        self.bring([(workload, Shown::Not(seq, revision))], ctx);
    }
}

impl Handler<Absent> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, _: Absent, _ctx: &mut Self::Context) {}
}

impl Handler<Drain> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) {
        self.obituary.end = End::Drained;
        ctx.stop();
    }
}

impl Handler<Observe> for ClusterGroupActor {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        MessageResult(Observation { troubles: self.trouble.iter().cloned().collect(), ..Observation::default() })
    }
}
