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
//! every phase before Started, and Planned ── another head, folder, workspace or runner ──▶ Superseded, named in the next run
//! ```
//!
//! - RP-1: one writer; the status is a compare-and-set, and durable before anything follows from it.
//! - RP-2: a Job's name is made of the Repo's UID and the attempt ([`job::name`]), so there is at most one Job for each.
//! - RP-3: a Job is made suspended, its UID is stored, and only then it is started, by a compare-and-set that marks it.
//! - RP-4: at most one started Job of a Repo has not ended. Ended: a terminal condition, and no pod active or terminating.
//! - RP-5: a started Job is never started again, deleted or replaced before its end is stored, nor suspended unless nothing of it has
//!   run and something else is wanted. One that vanished, or was suspended by others, is reported and left to a person.
//! - RP-6: an apply under `Plan` starts only with a yes for this run and fingerprint, and compares the fingerprint itself.
//! - RP-7: a Job fetches the commit of its run or fails.
//! - RP-8: only the newest head waits behind a run; the commits it replaced are named.
//!
//! Everything is judged anew after each event: nothing is decided from the difference of two sights. It does: `head` (which commit is
//! wanted), `run` (what becomes of the newest run), `follow` (its Job), `outcome` (how that ended), `jobs` (which Jobs there are),
//! `witness` (what their pods ran), `gates`, `needs`, `ask`, `tell`, `show` and `write`. The conductor is `advance`.
//!
//! Not for how a Job is made, nor for how a commit is found: those are ports.

mod advance;
mod ask;
mod follow;
mod gates;
mod head;
pub mod job;
mod jobs;
mod needs;
mod outcome;
pub mod plan;
mod promises;
pub mod remark;
mod run;
mod show;
pub mod spec;
pub mod status;
mod tell;
pub mod view;
mod witness;
mod write;

use std::time::Duration;

use crate::apps::app::{self, TargetKey};
use crate::kernel::answer::PortError;
use crate::kernel::call::Call;
use crate::kernel::id::{NoticeId, Revision, RunSeq};
use crate::kernel::machine::{Machine, Timestamp};
use crate::kernel::promise::Promise;
use crate::kernel::retry;
use crate::notices::notice::Notice;
use crate::notices::telling::Telling;
use crate::objects::asked::{Opening, Topic};
use crate::objects::gates::{Freeze, VerdictSource, Window};
use crate::objects::own_status::OwnStatus;
use crate::repo::gates::Gatekeeper;
use crate::repo::head::Looking;
use crate::repo::job::{Job, Made, Order, Pod, Start};
use crate::repo::jobs::Jobs;
use crate::repo::run::Stand;
use crate::repo::spec::{Object, Spec};
use crate::repo::status::Status;

pub use head::{Found, Unresolved};
pub use promises::may_follow;

/// The machine of one object. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repo {
    time: Time,
    /// The newest sight of the object, without its status.
    object: Object,
    status: OwnStatus<Status>,
    looking: Looking,
    jobs: Jobs,
    keeper: Gatekeeper,
    telling: Telling,
    /// Where it stands, as it was judged last.
    stand: Stand,
    /// The reported fault of the object.
    faulty: Option<String>,
    gone: bool,
    ended: bool,
}

/// Its clock state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Time {
    /// The wall clock at timestamp zero, in milliseconds since the Unix epoch.
    epoch_ms: i64,
    /// When something will have changed without an event.
    alarm: Option<Timestamp>,
}

/// The events of a Repo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A watch showed the object.
    Seen(Box<Object>),
    /// A watch showed that it is gone.
    Missed,
    /// An [`Effect::Look`] was answered: `None` if the object does not exist.
    Looked(Option<Box<Object>>),
    /// It was not, for this reason.
    LookFailed(String),
    /// The write under way is durable, as this version of the object. `whole`: the object holds all that was written.
    Stored {
        /// The object's new `metadata.resourceVersion`.
        version: String,
        /// The answer has all that was written.
        whole: bool,
    },
    /// Another writer was first; this is the object now.
    Conflicted(Box<Object>),
    /// The write has an unknown outcome, for this reason.
    StoreFailed(String),
    /// An [`Effect::Resolve`] was answered.
    Resolved(Found),
    ResolveFailed(Unresolved),
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
    /// An [`Effect::ReadCalendar`] was answered.
    CalendarRead(Topic, Opening),
    /// It was not, for this reason.
    CalendarFailed(Topic, String),
    /// An [`Effect::AskVerdict`] was answered.
    VerdictGiven(Topic, Opening),
    /// It was not, for this reason; not to be asked again before this time has passed.
    VerdictFailed(Topic, String, Duration),
    /// An [`Effect::SeeNeeds`] was answered: what a fresh read says of each object; `None` of one that does not exist.
    NeedsSeen(Vec<(TargetKey, Result<Option<app::Look>, PortError>)>),
    /// A notice is on its way in the durable outbox.
    Told(NoticeId),
    /// It is not, for this reason.
    TellFailed(NoticeId, String),
}

/// The effects of a Repo.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Write the status over this version of the object.
    Store(Box<Status>, String),
    /// Read the object afresh.
    Look,
    /// Find the commit that is wanted. It was to be looked for at this time.
    Resolve(Timestamp),
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
    /// Say whether it is in a window and in no freeze.
    ReadCalendar(Topic, Vec<Window>, Vec<Freeze>),
    AskVerdict(Box<Question>),
    /// Read these objects afresh, which the run waits for.
    SeeNeeds(Vec<TargetKey>),
    Tell(Box<Notice>),
    /// Nothing is left to do: the machine may be dropped.
    End,
}

/// A question to another system before an apply starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    pub source: VerdictSource,
    pub seq: RunSeq,
    pub revision: Revision,
    /// The commit that was applied last.
    pub from: Option<Revision>,
}

impl Question {
    /// The topic of an answer to it.
    pub fn topic(&self) -> Topic {
        Topic::of(self)
    }
}

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Store(..) => "store",
            Self::Look => "look",
            Self::Resolve(_) => "resolve",
            Self::WatchJobs(_) => "watch_jobs",
            Self::Make(_) => "make_job",
            Self::Start(_) => "start_job",
            Self::Withdraw(_) => "withdraw_job",
            Self::LookAtJob(_) => "look_at_job",
            Self::ReadPods(..) => "read_pods",
            Self::Remove(..) => "remove_job",
            Self::ReadCalendar(..) => "read_calendar",
            Self::AskVerdict(_) => "ask_verdict",
            Self::SeeNeeds(_) => "see_needs",
            Self::Tell(_) => "tell",
            Self::End => "end",
        }
    }
}

impl Repo {
    /// The machine of an object as it was just seen.
    pub fn new(epoch_ms: i64, object: Object) -> Self {
        Self {
            time: Time { epoch_ms, alarm: None },
            status: OwnStatus::resumed(object.status.clone(), object.version.clone()),
            object,
            looking: Looking::default(),
            jobs: Jobs::default(),
            keeper: Gatekeeper::default(),
            telling: Telling::default(),
            stand: Stand::default(),
            faulty: None,
            gone: false,
            ended: false,
        }
    }

    /// The newest sight of the object. Its status may be older than [`Repo::durable`].
    pub const fn object(&self) -> &Object {
        &self.object
    }

    /// The status that the object is known to hold.
    pub const fn durable(&self) -> &Status {
        &self.status.durable
    }

    fn wall_ms(&self, now: Timestamp) -> i64 {
        self.time.epoch_ms.saturating_add_unsigned(now.as_millis())
    }

    /// When the wall clock says so; not before now.
    fn at_wall(&self, now: Timestamp, wall_ms: i64) -> Timestamp {
        let left = wall_ms.saturating_sub(self.wall_ms(now));
        now.after(Duration::from_millis(u64::try_from(left).unwrap_or_default()))
    }

    /// When a call that failed now is made again.
    fn again(&self, now: Timestamp) -> impl Fn(u32) -> Timestamp + use<> {
        retry::SERVICE.from(now, &self.object.uid)
    }

    /// Something will have changed by then without an event.
    fn wake_at(&mut self, at: Timestamp) {
        self.time.alarm = Some(self.time.alarm.map_or(at, |earlier| earlier.min(at)));
    }

    fn spec(&self) -> Option<&Spec> {
        self.object.spec.as_ref().ok()
    }
}

impl Machine for Repo {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let again = self.again(now);
        match event {
            Event::Seen(object) => self.seen(now, *object),
            Event::Missed => self.status.look_now(now),
            Event::Looked(object) => self.looked(now, object.map(|object| *object)),
            Event::LookFailed(why) => self.status.look_failed(&again, why),
            Event::Stored { version, whole } => self.status.stored(version, whole),
            Event::Conflicted(object) => self.conflicted(now, *object),
            Event::StoreFailed(why) => self.status.failed(&again, &why),
            Event::Resolved(found) => self.resolved(now, found),
            Event::ResolveFailed(unresolved) => self.resolve_failed(now, unresolved),
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
            Event::CalendarRead(topic, opening) => self.keeper.calendar_read(now, topic, opening),
            Event::CalendarFailed(topic, why) => self.keeper.calendar_failed(topic, &again, why),
            Event::VerdictGiven(topic, opening) => self.keeper.verdict_given(now, topic, opening),
            Event::VerdictFailed(topic, why, rest) => self.keeper.verdict_failed(now, topic, why, rest),
            Event::NeedsSeen(reads) => self.keeper.needs.seen(now, &again, reads),
            Event::Told(id) => {
                self.telling.told(&id);
                self.status.draft.untold.retain(|notice| notice.id != id);
            }
            Event::TellFailed(id, why) => self.telling.failed(&id, &again, &why),
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
        if self.ended {
            return None;
        }
        let telling = self.telling.calls().filter_map(Call::deadline);
        let looking = self.looking.deadline().filter(|_| !self.gone);
        let own = [self.status.deadline(), looking, self.jobs.deadline(), self.keeper.deadline(), self.time.alarm];
        telling.chain(own.into_iter().flatten()).min()
    }
}

#[cfg(test)]
mod tests;
