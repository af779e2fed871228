//! A gate that another system judges: it is asked while something waits for it, and the answer counts for a bounded
//! time, for its question alone. A stale answer opens no gate.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::kernel::call::Call;
use crate::kernel::machine::Timestamp;
use crate::objects::form::{schema_as, text};

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

/// A question, and the last answer while it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    pub(crate) call: Call,
    topic: Topic,
    opening: Option<Opening>,
}

impl Asked {
    /// Sets the question. The answer to another question is dropped.
    pub(crate) fn ask_about(&mut self, topic: Topic) {
        if self.topic != topic {
            *self = Self { topic, ..Self::default() };
        }
    }

    /// Whether an answer to this question is one to what is asked now.
    pub(crate) fn is_about(&self, topic: Topic) -> bool {
        self.topic == topic
    }

    /// Whether it must be asked now. An answer that is out of date is forgotten.
    pub(crate) fn is_due(&mut self, now: Timestamp) -> bool {
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

    /// Whether it is open, if that was answered.
    pub(crate) fn is_open(&self) -> Option<bool> {
        self.opening.as_ref().map(|opening| opening.open)
    }

    /// Its reason while it is closed.
    pub(crate) fn closed(&self, asked: &str) -> Option<String> {
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
    pub(crate) fn read(&mut self, now: Timestamp, opening: Opening) {
        let valid = opening.changes_after.map_or(VALID, |after| after.min(VALID));
        self.answered(opening, now.after(valid.max(Duration::from_secs(1))));
    }

    /// Another system has given its verdict.
    pub(crate) fn given(&mut self, now: Timestamp, opening: Opening) {
        let valid = if opening.open { VALID } else { opening.changes_after.unwrap_or(VERDICT_PAUSE) };
        self.answered(opening, now.after(valid.clamp(VERDICT_PAUSE, VALID)));
    }

    /// Another system has given none, for this reason, and is not to be asked again before this time has passed.
    pub(crate) fn refused(&mut self, now: Timestamp, why: String, rest: Duration) {
        self.call.failed(|_| now.after(rest.max(VERDICT_PAUSE)), why);
    }
}
