//! Gates that others judge, a calendar and another system: each is asked while something waits for it, and the answer counts for a
//! bounded time, for its question alone. A stale answer opens no gate.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::form::{schema_as, text};
use crate::gates::{Freeze, VerdictSource, Window};
use kernel::call::Call;
use kernel::id::Revision;
use kernel::machine::Timestamp;

/// How long an answer counts. A calendar is read again at its boundary, and this often in any case, so that a clock
/// that was set is noticed.
const VALID: Duration = Duration::from_mins(5);

/// The shortest time between two questions to another system.
const VERDICT_PAUSE: Duration = Duration::from_secs(10);

/// A question, as a hash of all that the answer depends on. Another release may hash otherwise: then it is asked again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(u64);

impl Topic {
    /// That of a question.
    pub fn of(question: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        question.hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl Serialize for Topic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Topic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, |name| {
            u64::from_str_radix(name, 16).map(Self).map_err(|_| format!("{name:?} is not what we write"))
        })
    }
}

schema_as!(Topic, String);

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The answer of such a gate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Opening {
    pub open: bool,
    /// This may change after so long; `None` if that is not known.
    pub changes_after: Option<Duration>,
    /// The answer in words.
    pub words: String,
}

/// A question to another system before something starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    pub source: VerdictSource,
    /// The number of the promotion or run.
    pub seq: u64,
    /// The promoted revision, or the applied commit.
    pub revision: Revision,
    /// The present revision there, if known.
    pub from: Option<Revision>,
}

/// A question to those who judge a gate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Whether now is in a window and in no freeze.
    Calendar(Topic, Vec<Window>, Vec<Freeze>),
    /// Whether it may start.
    Verdict(Topic, Box<Question>),
}

impl Ask {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Calendar(..) => "read_calendar",
            Self::Verdict(..) => "ask_verdict",
        }
    }
}

/// The answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    CalendarRead(Topic, Opening),
    /// It was not, for this reason.
    CalendarFailed(Topic, String),
    VerdictGiven(Topic, Opening),
    /// It was not, for this reason; not to be asked again before this time has passed.
    VerdictFailed(Topic, String, Duration),
}

/// What a promotion or run waits for, as others judge it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AskedGates {
    calendar: Asked,
    /// The calendar, about the freezes of the cluster.
    fleet: Asked,
    verdict: Asked,
    /// The verdict on what is there already.
    deployed: Asked,
}

impl AskedGates {
    /// Why the calendar keeps it closed, if it does; asks it when that is due.
    pub(crate) fn calendar(
        &mut self,
        now: Timestamp,
        windows: &[Window],
        freezes: &[Freeze],
        ask: impl FnOnce(Ask),
    ) -> Option<String> {
        let topic = Topic::of(&(windows, freezes));
        self.calendar.ask_about(topic);
        if self.calendar.is_due(now) {
            ask(Ask::Calendar(topic, windows.to_vec(), freezes.to_vec()));
        }
        self.calendar.closed("the calendar")
    }

    /// The same for the freezes of the cluster: a fault in an object's own windows is none of theirs.
    pub(crate) fn fleet(&mut self, now: Timestamp, freezes: &[Freeze], ask: impl FnOnce(Ask)) -> Option<String> {
        let topic = Topic::of(&("fleet", freezes));
        self.fleet.ask_about(topic);
        if self.fleet.is_due(now) {
            ask(Ask::Calendar(topic, Vec::new(), freezes.to_vec()));
        }
        self.fleet.closed("the calendar of PromotionFreezes")
    }

    /// Whether it is known when those that are in force end, or change.
    pub(crate) fn fleet_has_an_end(&self) -> bool {
        self.fleet.opening.as_ref().is_some_and(|opening| opening.changes_after.is_some())
    }

    /// Why the other system keeps it closed, if it does; asks it when that is due.
    pub(crate) fn verdict(&mut self, now: Timestamp, question: Question, ask: impl FnOnce(Ask)) -> Option<String> {
        let topic = Topic::of(&question);
        self.verdict.ask_about(topic);
        if self.verdict.is_due(now) {
            ask(Ask::Verdict(topic, Box::new(question)));
        }
        self.verdict.closed("the verdict")
    }

    /// The other system's no to what is there already; asks it when that is due. What it said before is no answer.
    pub(crate) fn deployed(&mut self, now: Timestamp, question: Question, ask: impl FnOnce(Ask)) -> Option<String> {
        let topic = Topic::of(&("deployed", &question));
        self.deployed.ask_about(topic);
        if self.deployed.is_due(now) {
            ask(Ask::Verdict(topic, Box::new(question)));
        }
        self.deployed.opening.as_ref().filter(|opening| !opening.open).map(|opening| opening.words.clone())
    }

    /// Nothing is asked about what is there any more.
    pub(crate) fn forget_deployed(&mut self) {
        self.deployed = Asked::default();
    }

    /// The same, which stands before no gate any more.
    pub(crate) fn rested(self) -> Self {
        Self { deployed: self.deployed, ..Self::default() }
    }

    /// What the other system has answered to the present question.
    pub(crate) fn agrees(&self) -> Option<bool> {
        self.verdict.opening.as_ref().map(|opening| opening.open)
    }

    /// Takes in an answer. One to another question than the present one counts for nothing.
    pub(crate) fn answered(&mut self, now: Timestamp, again: impl FnOnce(u32) -> Timestamp, answer: Answer) {
        let (asked, topic) = match &answer {
            Answer::CalendarRead(topic, _) | Answer::CalendarFailed(topic, _) => {
                let asked = if self.fleet.is_about(*topic) { &mut self.fleet } else { &mut self.calendar };
                (asked, *topic)
            }
            Answer::VerdictGiven(topic, _) | Answer::VerdictFailed(topic, ..) => {
                let asked = if self.deployed.is_about(*topic) { &mut self.deployed } else { &mut self.verdict };
                (asked, *topic)
            }
        };
        if !asked.is_about(topic) {
            return;
        }
        match answer {
            Answer::CalendarRead(_, opening) => asked.read(now, opening),
            Answer::CalendarFailed(_, why) => asked.call.failed(again, why),
            Answer::VerdictGiven(_, opening) => asked.given(now, opening),
            Answer::VerdictFailed(_, why, rest) => asked.refused(now, why, rest),
        }
    }

    /// Asks the calendar now. A verdict keeps its pace: the other system demands it.
    pub(crate) fn hurry(&mut self, now: Timestamp) {
        self.calendar.call.hurry(now);
        self.fleet.call.hurry(now);
    }

    /// Ends every pause that is over, so that no deadline stays in the past.
    pub(crate) fn wake(&mut self, now: Timestamp) {
        self.calendar.call.wake(now);
        self.fleet.call.wake(now);
        self.verdict.call.wake(now);
        self.deployed.call.wake(now);
    }

    /// When something must be asked again.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        let calls = [&self.calendar, &self.fleet, &self.verdict, &self.deployed].map(|asked| &asked.call);
        calls.into_iter().filter_map(Call::deadline).min()
    }
}

/// A question, and the last answer while it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Asked {
    call: Call,
    topic: Topic,
    opening: Option<Opening>,
}

impl Asked {
    /// Sets the question. The answer to another question is dropped.
    fn ask_about(&mut self, topic: Topic) {
        if self.topic != topic {
            *self = Self { topic, ..Self::default() };
        }
    }

    /// Whether an answer to this question is one to what is asked now.
    fn is_about(&self, topic: Topic) -> bool {
        self.topic == topic
    }

    /// Whether it must be asked now. An answer that is out of date is forgotten.
    fn is_due(&mut self, now: Timestamp) -> bool {
        if !self.call.is_due(now) {
            return false;
        }
        self.opening = None;
        self.call.asked();
        true
    }

    fn answered(&mut self, opening: Opening, again: Timestamp) {
        self.opening = Some(opening);
        self.call.answered_until(again);
    }

    /// Its reason while it is closed.
    fn closed(&self, asked: &str) -> Option<String> {
        match &self.opening {
            Some(opening) if opening.open => None,
            Some(opening) => Some(opening.words.clone()),
            None => Some(
                self.call
                    .last_reason()
                    .map_or_else(|| format!("{asked} was not asked yet"), |why| format!("{asked}: {why}")),
            ),
        }
    }

    /// A calendar was read.
    fn read(&mut self, now: Timestamp, opening: Opening) {
        let valid = opening.changes_after.map_or(VALID, |after| after.min(VALID));
        self.answered(opening, now.after(valid.max(Duration::from_secs(1))));
    }

    /// Another system has given its verdict.
    fn given(&mut self, now: Timestamp, opening: Opening) {
        let valid = if opening.open { VALID } else { opening.changes_after.unwrap_or(VERDICT_PAUSE) };
        self.answered(opening, now.after(valid.clamp(VERDICT_PAUSE, VALID)));
    }

    /// Another system has given none, for this reason, and is not to be asked again before this time has passed.
    fn refused(&mut self, now: Timestamp, why: String, rest: Duration) {
        self.call.failed(|_| now.after(rest.max(VERDICT_PAUSE)), why);
    }
}
