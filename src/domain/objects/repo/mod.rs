//! A new commit runs a Job, once: what a `Repo` decides.
//!
//! ```text
//! head moved ─▶ Waiting ── gates open; a yes, if Revision ──▶ Starting ─▶ Started ── ended ──▶ Succeeded
//!                  ▲                                                        ├── the apply had not begun, or retry left ──▶ Waiting
//!                  │ again                                                  ├──▶ Failed  (asks a person)
//!                  └──────────────────────────────────────────────────      └──▶ Lost    (a started Job is gone: asks a person)
//!
//! Plan: Waiting ─▶ Starting(plan) ─▶ Started(plan) ─▶ Planned ── yes to the fingerprint ──▶ Waiting ─▶ Starting(apply) ─▶ …
//!                                          └── no changes ──▶ Succeeded    └── its own plan differs ──▶ Planned, another ticket
//!
//! Never: … ─▶ Started(plan) ─▶ Planned, which is its end
//!
//! every phase before Started, and Planned ── another head, folder, workspace or runner ──▶ Superseded, named in the next run
//! ```
//!
//! - RP-1: one writer; the status is a compare-and-set, and durable before anything follows from it.
//! - RP-2: a Job's name is made of the Repo's UID and the attempt ([`job::name`]), so there is at most one Job for each.
//! - RP-3: a Job is made suspended, its UID is stored, and only then it is started, by a compare-and-set that marks it.
//! - RP-4: at most one started Job of a Repo has not ended. Ended: a terminal condition, and no pod active or terminating.
//! - RP-5: a started Job is never started again, deleted or replaced before its end is stored, nor suspended unless nothing of it has
//!   run and something else is wanted. One that vanished, or was suspended by others, is reported and left to a person.
//! - RP-6: an apply under `Plan`, and each destroy, starts only with a yes for this run and fingerprint, and compares the fingerprint itself.
//! - RP-7: a Job fetches the commit of its run or fails.
//! - RP-8: only the newest head waits behind a run; the commits it replaced are named.
//!
//! With `watchPaths`, a head that changes nothing in them since the newest run, which succeeded, begins no run.
//!
//! With `onDelete: Ask`, a Repo that is deleted stays until people have said whether what was applied is destroyed (`destroy`).
//!
//! With `driftEvery`, what was applied is planned again at times (`drift`): a look, which stands beside the run and applies nothing.
//!
//! Everything is judged anew after each event: nothing is decided from the difference of two sights. It does: `head` (which commit is
//! wanted), `concern` (whether that one is to be run), `drift` (what has changed outside of git), `run` (what becomes of the newest run), `follow` (its Job), `outcome` (how that ended), `jobs` (which Jobs there are),
//! `witness` (what their pods ran), `lock` (whose lock is in the way), `unlock` (whether it is taken away), `only_plan` (the end of what is never
//! applied), `gates`, `needs`, `reporting` (to the forge), `ask`, `tell`, `show` and `write`. The conductor is `advance`.
//!
//! Not for how a Job is made, nor for how a commit is found: those are ports.

mod advance;
mod ask;
mod concern;
mod destroy;
mod drift;
mod finalizer;
mod follow;
mod gates;
mod head;
pub mod held;
mod holder;
pub mod job;
mod jobs;
pub mod lock;
mod needs;
mod only_plan;
mod order;
mod outcome;
pub mod outputs;
pub mod past;
pub mod plan;
mod present;
mod promises;
pub mod remark;
pub mod report;
pub mod reported;
mod reporting;
mod run;
mod show;
pub mod spec;
pub mod status;
mod tell;
mod unlock;
pub mod view;
mod witness;
mod write;

use std::time::Duration;

use crate::apps::app::{self, TargetKey};
use crate::asked::{Answer, Ask};
use crate::kept::OwnKind;
use crate::owned::{self, OwnMachine, Owned};
use crate::repo::concern::Weighing;
use crate::repo::drift::Drifting;
use crate::repo::finalizer::Finalizing;
use crate::repo::gates::Gatekeeper;
use crate::repo::head::Looking;
use crate::repo::job::{Job, Made, Order, Pod, Start};
use crate::repo::jobs::Jobs;
use crate::repo::report::Saying;
use crate::repo::reporting::Reporting;
use crate::repo::run::Stand;
use crate::repo::spec::{Object, Spec};
use crate::repo::status::Status;
use kernel::answer::PortError;
use kernel::id::{RepoId, Subject};
use kernel::machine::{Machine, Timestamp};
use kernel::promise::Promise;
use notices::notice::Kind;

pub use ask::again;
pub use concern::Comparison;
pub use head::{Found, Unresolved};
pub use promises::may_follow;

/// The machine of one object. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repo {
    own: Owned<Self>,
    looking: Looking,
    weighing: Weighing,
    drifting: Drifting,
    reporting: Reporting,
    finalizing: Finalizing,
    jobs: Jobs,
    keeper: Gatekeeper,
    /// Where it stands, as it was judged last.
    stand: Stand,
}

/// The events of a Repo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Of the object's life.
    Object(owned::Event<Repo>),
    /// An [`Effect::Resolve`] was answered.
    Resolved(Found),
    ResolveFailed(Unresolved),
    /// An [`Effect::Compare`] with this question was answered: whether the two commits are alike.
    Compared(Box<Comparison>, Result<bool, Unresolved>),
    /// These are all Jobs of the Repo.
    JobsListed(Vec<Job>),
    /// One of them, as it is now.
    JobSeen(Box<Job>),
    /// The Job of this name is gone.
    JobGone(String),
    /// Jobs are not watched, for this reason; it is tried again.
    JobsUnseen(String),
    /// An [`Effect::Make`] of this name was answered.
    Made(String, Made),
    /// It was not, for this reason; `lasting` if the Job is refused for what is in it.
    MakeFailed(String, String, bool),
    /// An [`Effect::Start`] of this name was answered.
    StartAnswered(String, Start),
    /// It was not, for this reason.
    StartFailed(String, String),
    /// An [`Effect::Withdraw`] of this name was answered.
    WithdrawAnswered(String, Start),
    /// It was not, for this reason.
    WithdrawFailed(String, String),
    /// These are all pods of every Repo of this name.
    PodsListed(Vec<Pod>),
    /// One of them, as it is now.
    PodSeen(Box<Pod>),
    /// The pod of this name is gone.
    PodGone(String),
    /// An [`Effect::LookAtJob`] of this name was answered: `None` if there is no such Job.
    JobLooked(String, Option<Box<Job>>),
    /// It was not, for this reason.
    JobLookFailed(String, String),
    /// An [`Effect::ReadPods`] of the Job of this UID was answered.
    PodsRead(String, Vec<Pod>),
    /// It was not, for this reason.
    PodsFailed(String, String),
    /// An [`Effect::Remove`] of the Job of this name was carried out.
    Removed(String),
    /// It was not, for this reason.
    RemoveFailed(String, String),
    /// An [`Effect::Hold`] was carried out.
    Held,
    /// It was not, for this reason.
    HoldFailed(String),
    /// An [`Effect::Ask`] was answered.
    Answered(Answer),
    /// An [`Effect::SeeNeeds`] was answered: what a fresh read says of each object; `None` of one that does not exist.
    NeedsSeen(Vec<(TargetKey, Result<Option<app::Look>, PortError>)>),
    /// An [`Effect::Report`] of this was answered: how many open requests have it.
    Reported(Box<Saying>, Result<u32, Unresolved>),
}

/// The effects of a Repo.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Done for the object.
    Object(owned::Effect<Repo>),
    /// Find the commit that is wanted. It was to be looked for at this time.
    Resolve(Timestamp),
    /// Say whether two commits are alike in what concerns it.
    Compare(Box<Comparison>),
    /// Say which Jobs there are, and which pods, now and whenever one changes; or stop that.
    WatchJobs(bool),
    /// Make this Job, suspended, or find it.
    Make(Box<Order>),
    /// Start this Job, if it still is as it was seen.
    Start(Box<Job>),
    /// Suspend this Job, of which nothing has run, and mark it as taken back, if it still is as it was seen.
    Withdraw(Box<Job>),
    /// Read the Job of this name afresh.
    LookAtJob(String),
    /// Read the pods of the Job of this name and UID afresh.
    ReadPods(String, String),
    /// Remove the Job of this name and UID.
    Remove(String, String),
    /// Put our finalizer on the object, so that it stays when it is deleted, or take it away.
    Hold(bool),
    /// Ask those who judge a gate.
    Ask(Ask),
    /// Read these objects afresh, which the run waits for.
    SeeNeeds(Vec<TargetKey>),
    /// Say this at the forge of the repository.
    Report(Box<Saying>),
}

impl From<owned::Event<Repo>> for Event {
    fn from(event: owned::Event<Repo>) -> Self {
        Self::Object(event)
    }
}

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Object(effect) => effect.name(),
            Self::Resolve(_) => "resolve",
            Self::Compare(_) => "compare",
            Self::WatchJobs(_) => "watch_jobs",
            Self::Make(_) => "make_job",
            Self::Start(_) => "start_job",
            Self::Withdraw(_) => "withdraw_job",
            Self::LookAtJob(_) => "look_at_job",
            Self::ReadPods(..) => "read_pods",
            Self::Remove(..) => "remove_job",
            Self::Hold(true) => "hold",
            Self::Hold(false) => "let_go",
            Self::Ask(ask) => ask.name(),
            Self::SeeNeeds(_) => "see_needs",
            Self::Report(_) => "report",
        }
    }
}

impl Repo {
    /// The machine of an object as it was just seen.
    pub fn new(epoch_ms: i64, object: Object) -> Self {
        Self::of(Owned::new(epoch_ms, object))
    }

    /// One that knows nothing but its object.
    fn of(own: Owned<Self>) -> Self {
        Self {
            own,
            looking: Looking::default(),
            weighing: Weighing::default(),
            drifting: Drifting::default(),
            reporting: Reporting::default(),
            finalizing: Finalizing::default(),
            jobs: Jobs::default(),
            keeper: Gatekeeper::default(),
            stand: Stand::default(),
        }
    }

    /// When the wall clock says so; not before now.
    fn at_wall(&self, now: Timestamp, wall_ms: i64) -> Timestamp {
        let left = wall_ms.saturating_sub(self.own.wall_ms(now));
        now.after(Duration::from_millis(u64::try_from(left).unwrap_or_default()))
    }
}

impl OwnKind for Repo {
    type Id = RepoId;
    type Spec = Spec;
    type Status = Status;

    const FAULTY: Kind = Kind::RepoFaulty;

    fn subject(id: RepoId) -> Subject {
        Subject::Repo(id)
    }
}

impl OwnMachine for Repo {
    fn own(&self) -> &Owned<Self> {
        &self.own
    }
}

impl Machine for Repo {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let again = self.own.again(now);
        match event {
            Event::Object(event) => {
                for news in self.own.step(now, event) {
                    self.learn(now, news);
                }
            }
            Event::Resolved(found) => self.resolved(now, found),
            Event::ResolveFailed(unresolved) => self.resolve_failed(now, unresolved),
            Event::Compared(question, answer) => self.compared(now, &question, answer),
            Event::JobsListed(all) => self.jobs.listed(all),
            Event::JobSeen(job) => self.jobs.seen(*job),
            Event::JobGone(name) => self.jobs.gone(&name),
            Event::JobsUnseen(why) => self.jobs.unseen(why),
            Event::Made(name, made) => self.jobs.made(now, &name, made),
            Event::MakeFailed(name, why, lasting) => self.jobs.make_failed(now, &name, &again, why, lasting),
            Event::StartAnswered(name, start) => self.jobs.start_answered(&name, start),
            Event::StartFailed(name, why) => self.jobs.start_failed(&name, &again, why),
            Event::WithdrawAnswered(name, answer) => self.jobs.withdrawn(&name, &again, answer),
            Event::WithdrawFailed(name, why) => self.jobs.withdraw_failed(&name, &again, why),
            Event::PodsListed(all) => self.jobs.pods_listed(all),
            Event::PodSeen(pod) => self.jobs.witness.seen(*pod),
            Event::PodGone(name) => self.jobs.witness.gone(&name),
            Event::JobLooked(name, job) => self.jobs.looked(&name, job.map(|job| *job)),
            Event::JobLookFailed(name, why) => self.jobs.look_failed(&name, &again, why),
            Event::PodsRead(uid, pods) => self.jobs.pods_read(now, &uid, pods),
            Event::PodsFailed(uid, why) => self.jobs.pods_failed(&uid, &again, why),
            Event::Removed(name) => self.jobs.removed(&name),
            Event::RemoveFailed(name, why) => self.jobs.remove_failed(&name, &again, why),
            Event::Held => self.finalizing.answered(now),
            Event::HoldFailed(why) => self.finalizing.call.failed(&again, why),
            Event::Answered(answer) => self.keeper.asked.answered(now, &again, answer),
            Event::Reported(saying, answer) => self.reported(now, &saying, answer),
            Event::NeedsSeen(reads) => self.keeper.needs.seen(now, &again, reads),
        }
        self.advance(now)
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.advance(now)
    }

    fn breaks(&self, effect: &Effect) -> Vec<Promise> {
        promises::broken_by(self, effect)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        // Without a usable spec nothing is looked for, and what is due then stays due.
        let looks = !self.own.gone && !self.is_leaving() && self.own.spec().is_some();
        let looking = self.looking.deadline().filter(|_| looks);
        let finalizing = self.finalizing.call.deadline().filter(|_| !self.own.gone);
        let calls = [self.weighing.deadline(), self.reporting.deadline(), self.jobs.deadline(), self.keeper.deadline()];
        let [weighing, reporting, jobs, keeper] = calls;
        self.own.next_deadline([looking, finalizing, weighing, reporting, jobs, keeper])
    }
}

#[cfg(test)]
mod tests;
