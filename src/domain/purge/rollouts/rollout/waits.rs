//! Every wait of a rollout for the outside has a bound, after which a notice goes out.
//!
//! ```text
//! asked ──answered──▶ forgotten
//!    ├── third failure, 30 s ──▶ announced: what fails, why, and what to do
//!    └── bound of the wait ────▶ announced as stalled, and again daily while it lasts
//! ```
//!
//! [`Attended`] drives a rollout and looks at what it waits for after every step, and at how often it writes. It decides nothing
//! about the rollout, so the model searches the rollout alone. No record holds its notices, because they may be about a record
//! that cannot be written. So a new life counts from zero, and sends notices of its own.
//!
//! Not for waits whose end is decided in the rollout: for pods (`rollout.timeout`), for other members (`group.timeout`), for old
//! pods (`rollout.drain_timeout`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use crate::records::record::Record;
use crate::rollouts::rollout::words::short;
use crate::rollouts::rollout::{Effect, Event, Rollout, words};
use kernel::budget::Writes;
use kernel::call::Call;
use kernel::id::{Origin, Seq, WorkloadId};
use kernel::machine::{Machine, Timestamp};
use kernel::promise::Promise;
use kernel::text;
use notices::notice::{Kind, Notice};
use notices::telling::Telling;

/// Failures in a row before a wait is reported: two may be passing.
pub const TOLD_AFTER_FAILURES: u32 = 3;

/// How long they have lasted by then: an API server or a Redis that restarts answers again within this, and three attempts fail
/// in three seconds.
pub const TOLD_FAILING_AFTER: Duration = Duration::from_secs(30);

/// How long a wait may last before it is reported, with or without answers: longer than any call with its time-outs and
/// back-off, and as long as `rollout.timeout`.
pub const STALLED_AFTER: Duration = Duration::from_secs(15 * 60);

/// The same for the creation of a purge, which waits for its turn in the account and is reported as owed before that.
const PURGE_STALLED_AFTER: Duration = Duration::from_secs(60 * 60);

/// How often the report of a lasting wait is repeated.
pub const AGAIN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// The waits of a rollout for the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// Its record is read.
    Load,
    /// Its record is written or removed.
    Store,
    /// Its record comes back with those of the group.
    Publish,
    /// The workload is read afresh.
    Look,
    /// Its hosts are looked for.
    Site,
    /// The last look before a vote.
    Recheck,
    /// Its distributions are looked for.
    Match,
    /// A purge is created.
    Purge,
    /// A notice is sent.
    Tell,
}

impl Wait {
    /// The wait that the answer to an effect ends; `None` for an effect without an answer.
    pub const fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Store(_) | Effect::Remove(_) => Some(Self::Store),
            Effect::Publish(_) => Some(Self::Publish),
            Effect::Look => Some(Self::Look),
            Effect::FindSite(..) => Some(Self::Site),
            Effect::Recheck(_) => Some(Self::Recheck),
            Effect::Match(..) | Effect::Compare(..) => Some(Self::Match),
            Effect::Purge(_) => Some(Self::Purge),
            Effect::Tell(_) => Some(Self::Tell),
            // The barrier bounds the first wait itself, and reports it; for the second, the member that waits asks again; after
            // the third there is nothing to wait for.
            Effect::FindOldPods(_) | Effect::Absent(_) | Effect::End => None,
            // A look gives up what is not answered, and says what it does not know.
            Effect::AskEdge(..) | Effect::LeaveEdge(_) => None,
            // Each cache has a bound of its own, which is told.
            Effect::AskCache(..) => None,
        }
    }

    /// How long it lasts before it is reported as stalled.
    pub const fn bound(self) -> Duration {
        match self {
            Self::Purge => PURGE_STALLED_AFTER,
            Self::Load
            | Self::Store
            | Self::Publish
            | Self::Look
            | Self::Site
            | Self::Recheck
            | Self::Match
            | Self::Tell => STALLED_AFTER,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Publish => "publish",
            Self::Look => "look",
            Self::Site => "site",
            Self::Recheck => "recheck",
            Self::Match => "match",
            Self::Purge => "purge",
            Self::Tell => "tell",
        }
    }

    /// The failing action, and the remedy for a person. `{kinds}` stands for objects of the workload's kind.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Load => (
                "its record cannot be read",
                "see whether the ledger can be reached and read; a record of a newer release wants an upgrade, and one that is damaged wants \
                 its key taken out",
            ),
            Self::Store => (
                "its record cannot be written, and nothing is purged before it is",
                "see whether the ledger can be reached and written to; what stands there of a newer release wants an upgrade, and what is \
                 damaged wants its key taken out",
            ),
            Self::Publish => ("the group's records do not arrive", "see what allclear status says of the group"),
            Self::Look => ("the workload cannot be read", "see whether allclear may get {kinds} there"),
            Self::Site => (
                "its hosts cannot be found",
                "see whether allclear may list Services, Ingresses and routes there, or name the hosts by allclear.dev/hosts",
            ),
            Self::Recheck => (
                "it is complete, and the last look before the purge does not confirm it",
                "see whether its pods stay available, and whether allclear may get {kinds} there",
            ),
            Self::Match => (
                "its distributions cannot be found",
                "see the credentials, and whether cloudfront:ListDistributions is allowed",
            ),
            Self::Purge => ("its purge is not created", "see what allclear status says of CloudFront"),
            Self::Tell => {
                ("what happened cannot be told", "see whether allclear may create Events there, and store webhooks")
            }
        }
    }
}

/// How a wait stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    since: Timestamp,
    /// Failures before it began: those of an earlier question do not count.
    failed_before: u32,
    told_failing: bool,
    /// How often it was reported as stalled.
    told_stalled: u32,
}

impl Waiting {
    const fn new(since: Timestamp, failed_before: u32) -> Self {
        Self { since, failed_before, told_failing: false, told_stalled: 0 }
    }

    /// When it is next reported as stalled.
    fn stalls_at(&self, wait: Wait) -> Timestamp {
        self.since.after(wait.bound().saturating_add(AGAIN_AFTER.saturating_mul(self.told_stalled)))
    }

    /// The report due now, if any: which one it is, and how long the wait has lasted if it stalled.
    fn due(&mut self, now: Timestamp, wait: Wait, failures: u32) -> Option<(String, Option<Duration>)> {
        self.failed_before = self.failed_before.min(failures);
        if self.stalls_at(wait) <= now {
            while self.stalls_at(wait) <= now {
                self.told_stalled = self.told_stalled.saturating_add(1);
            }
            return Some((format!("stalled/{}", self.told_stalled), Some(now.since(self.since))));
        }
        let lasts = now.since(self.since) >= TOLD_FAILING_AFTER;
        let failing = lasts && failures - self.failed_before >= TOLD_AFTER_FAILURES;
        (failing && !std::mem::replace(&mut self.told_failing, failing)).then(|| ("failing".to_owned(), None))
    }
}

/// Something that is waited for now.
pub(super) struct Pending {
    wait: Wait,
    subject: String,
    failures: u32,
    reason: Option<String>,
}

/// A rollout whose waits are attended to. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attended {
    rollout: Rollout,
    waits: BTreeMap<(Wait, String), Waiting>,
    /// Notices about waits that are still to be sent.
    untold: Telling,
    writes: Writes,
    overdrawn: bool,
}

impl Attended {
    /// Attends to this rollout.
    pub fn new(rollout: Rollout) -> Self {
        Self {
            rollout,
            waits: BTreeMap::new(),
            untold: Telling::default(),
            writes: Writes::default(),
            overdrawn: false,
        }
    }

    /// It ended because it wrote its record over and over while nothing happened. That is a mistake of ours, so the workload goes
    /// into quarantine.
    pub const fn is_overdrawn(&self) -> bool {
        self.overdrawn
    }

    /// Whether an event is something that happened outside, and not just the answer to what this rollout asked for.
    fn is_from_outside(&self, event: &Event) -> bool {
        match event {
            Event::Seen(workload) => self.rollout.workload() != Some(workload),
            Event::Missed => self.rollout.workload().is_some(),
            Event::Moved(moved, _) => {
                let last = self.rollout.durable().and_then(|record| record.moved.as_ref());
                last.is_none_or(|last| !last.is(moved))
            }
            // A page answers a dozen times at most.
            Event::PodsSeen(_) | Event::Purged(..) | Event::EdgeAnswered(..) => true,
            // Whatever this rollout writes comes back in a view, so views are no reason.
            Event::ViewChanged(_)
            | Event::Looked(_)
            | Event::LookFailed(_)
            | Event::PodsUnseen
            | Event::ServicesSeen { .. }
            | Event::OldPodsFound(_)
            | Event::OldPodsUnseen(_)
            | Event::Stored
            | Event::Conflicted(..)
            | Event::StoreFailed(_)
            | Event::SiteFound(_)
            | Event::SiteFailed(_)
            | Event::Rechecked(..)
            | Event::RecheckFailed(_)
            | Event::CacheAnswered(..)
            | Event::Matched(..)
            | Event::MatchFailed(..)
            | Event::Told(_)
            | Event::TellFailed(..)
            | Event::PeersRestarted => false,
        }
    }

    /// Counts the writes among these effects. Beyond the budget the record stays as it is, and the machine ends.
    fn keep_within_budget(&mut self, now: Timestamp, effects: Vec<Effect>) -> Vec<Effect> {
        let writes = effects.iter().filter(|effect| matches!(effect, Effect::Store(_))).count();
        if (0..writes).all(|_| self.writes.spend(now)) {
            return effects;
        }
        self.overdrawn = true;
        vec![Effect::End]
    }

    /// Looks at what the rollout waits for, and sends the notices that are due.
    fn attend(&mut self, now: Timestamp) -> Vec<Effect> {
        let pending = self.rollout.pending();
        let is_pending = |key: &(Wait, String)| pending.iter().any(|each| each.wait == key.0 && each.subject == key.1);
        self.waits.retain(|key, _| is_pending(key));
        for each in pending {
            let fresh = || Waiting::new(now, each.failures);
            let waiting = self.waits.entry((each.wait, each.subject.clone())).or_insert_with(fresh);
            if let Some((level, waited)) = waiting.due(now, each.wait, each.failures) {
                let message = message(&self.rollout.identity.workload, each.wait, each.reason.as_deref(), waited);
                let notice = self.rollout.notice_of_wait(now, each.wait, &level, message);
                self.untold.add(notice);
            }
        }
        self.untold.tell(now, std::iter::empty()).into_iter().map(|notice| Effect::Tell(Box::new(notice))).collect()
    }
}

/// A wait in words.
fn message(workload: &WorkloadId, wait: Wait, reason: Option<&str>, waited: Option<Duration>) -> String {
    let (what, cure) = wait.words();
    let cure = cure.replace("{kinds}", &format!("{}s", workload.kind.name()));
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    match waited {
        None => format!("{what}{reason}; {cure}. It is tried again"),
        Some(waited) => format!("{what} for {} now{reason}; {cure}. It is tried again", text::duration(waited)),
    }
}

/// A record that is being read, before there is a rollout to attend to.
#[derive(Clone, Debug)]
pub struct Unloaded {
    workload: WorkloadId,
    origin: Origin,
    failures: u32,
    waiting: Waiting,
}

impl Unloaded {
    /// It is read from now on.
    pub const fn new(workload: WorkloadId, origin: Origin, now: Timestamp) -> Self {
        Self { workload, origin, failures: 0, waiting: Waiting::new(now, 0) }
    }

    /// It could not be read, for this reason. Returns how often that happened, and the notice to send; `at_ms` is the
    /// wall clock.
    pub fn failed(&mut self, now: Timestamp, at_ms: i64, why: &str) -> (u32, Option<Notice>) {
        self.failures = self.failures.saturating_add(1);
        let due = self.waiting.due(now, Wait::Load, self.failures);
        let rollout = format!("{}/{}", self.origin.0, self.workload);
        let notice = due.map(|(level, waited)| Notice {
            id: Notice::id_of(&rollout, Kind::RolloutStuck, &format!("{}/{level}/{at_ms}", Wait::Load.name())),
            kind: Kind::RolloutStuck,
            at_ms,
            about: self.workload.clone().into(),
            seq: Seq::default(),
            rollout,
            change: String::new(),
            message: message(&self.workload, Wait::Load, Some(why), waited),
        });
        (self.failures, notice)
    }
}

impl Rollout {
    /// Its present waits for the outside.
    fn pending(&self) -> Vec<Pending> {
        if self.ended {
            return Vec::new();
        }
        let reason = |call: &Call| call.last_reason().map(str::to_owned);
        let asked = |wait, subject: String, call: &Call| Pending {
            wait,
            subject,
            failures: call.failures(),
            reason: reason(call),
        };
        let plain = |wait, call: &Call| (!call.is_idle()).then(|| asked(wait, String::new(), call));
        let write = self.record.call();
        let unwritten = self.record.is_writing() || (!self.record.is_settled() && write.is_failing());
        let store = unwritten.then(|| asked(Wait::Store, String::new(), write));
        let unseen = self.ballot.is_published() && self.record.durable.is_some() && !self.view_is_current();
        let publish =
            unseen.then(|| Pending { wait: Wait::Publish, subject: String::new(), failures: 0, reason: None });
        // Between a look that did not confirm it and the next one, hosts are looked for anew.
        let unconfirmed = !self.ballot.recheck.is_idle() || (self.ballot.recheck.failures() > 0 && self.may_vote());
        let recheck = unconfirmed.then(|| asked(Wait::Recheck, String::new(), &self.ballot.recheck));
        let mut pending: Vec<Pending> =
            [store, publish, plain(Wait::Look, self.sighting.call()), plain(Wait::Site, self.site.call()), recheck]
                .into_iter()
                .flatten()
                .collect();
        let matching = self.purges.matching().filter(|(_, call)| !call.is_idle());
        pending.extend(matching.map(|(vector, call)| asked(Wait::Match, self.group_rollout(vector), call)));
        // Of all notices that cannot be sent, the one with most failures stands for the others.
        let telling = self.telling.calls().filter(|call| !call.is_idle()).max_by_key(|call| call.failures());
        pending.extend(telling.map(|call| asked(Wait::Tell, String::new(), call)));
        pending.extend(self.uncreated());
        pending
    }

    fn may_vote(&self) -> bool {
        self.workload().is_some_and(|workload| !workload.tuning.disabled) && self.candidate().is_some()
    }

    /// Purges that are ordered and not answered yet.
    fn uncreated(&self) -> impl Iterator<Item = Pending> {
        let votes = self.record.durable.iter().flat_map(|record| &record.votes).filter(|vote| vote.closed.is_none());
        let purges = votes.flat_map(|vote| vote.purges.listed.values());
        let waits = |reference| Pending { wait: Wait::Purge, subject: reference, failures: 0, reason: None };
        let silent = purges.filter(|purge| purge.is_wanted() && self.purges.is_ordered(&purge.reference));
        silent.map(move |purge| waits(purge.reference.to_string()))
    }

    /// The notice about a wait. The time is part of its id: another life counts from zero, and its notices have other
    /// words.
    fn notice_of_wait(&self, now: Timestamp, wait: Wait, level: &str, message: String) -> Notice {
        let record: Option<&Record> = self.record.draft.as_ref().or(self.record.durable.as_ref());
        let seq = record.map_or_else(Seq::default, |record| record.seq);
        let at_ms = self.identity.wall_ms(now);
        let unrecorded = || Record::first(Seq::default());
        let rollout = self.identity.own_rollout(&record.map_or_else(|| Cow::Owned(unrecorded()), Cow::Borrowed));
        Notice {
            id: Notice::id_of(&rollout, Kind::RolloutStuck, &format!("{}/{level}/{at_ms}", wait.name())),
            kind: Kind::RolloutStuck,
            at_ms,
            about: self.identity.workload.clone().into(),
            seq,
            rollout,
            change: record.map_or_else(String::new, |record| words::change(record.settled(), &record.version)),
            message,
        }
    }
}

impl Deref for Attended {
    type Target = Rollout;

    /// The rollout, for questions about it.
    fn deref(&self) -> &Rollout {
        &self.rollout
    }
}

impl Machine for Attended {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        if self.overdrawn {
            return Vec::new();
        }
        if self.is_from_outside(&event) {
            self.writes.renew();
        }
        match &event {
            Event::Told(id) => self.untold.told(id),
            Event::TellFailed(id, why) => self.untold.failed(id, self.rollout.again(now), short(why)),
            // The rollout's own business.
            Event::Seen(_)
            | Event::Missed
            | Event::Moved(..)
            | Event::Looked(_)
            | Event::LookFailed(_)
            | Event::PodsSeen(_)
            | Event::PodsUnseen
            | Event::ServicesSeen { .. }
            | Event::OldPodsFound(_)
            | Event::OldPodsUnseen(_)
            | Event::Stored
            | Event::Conflicted(..)
            | Event::StoreFailed(_)
            | Event::ViewChanged(_)
            | Event::SiteFound(_)
            | Event::SiteFailed(_)
            | Event::Rechecked(..)
            | Event::RecheckFailed(_)
            | Event::CacheAnswered(..)
            | Event::Matched(..)
            | Event::MatchFailed(..)
            | Event::Purged(..)
            | Event::EdgeAnswered(..)
            | Event::PeersRestarted => {}
        }
        let mut effects = self.rollout.step(now, event);
        effects.extend(self.attend(now));
        self.keep_within_budget(now, effects)
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.overdrawn {
            return Vec::new();
        }
        let mut effects = self.rollout.tick(now);
        effects.extend(self.attend(now));
        self.keep_within_budget(now, effects)
    }

    fn breaks(&self, effect: &Effect) -> Vec<Promise> {
        self.rollout.breaks(effect)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        if self.overdrawn {
            return None;
        }
        let stalls = self.waits.iter().map(|((wait, _), waiting)| waiting.stalls_at(*wait));
        let telling = self.untold.calls().filter_map(Call::deadline);
        self.rollout.next_deadline().into_iter().chain(stalls).chain(telling).min()
    }
}
