//! Objects that a run needs: each is there and ready before its apply starts.
//!
//! They are read afresh while a run waits for them, and never followed: a Repo at rest asks nothing. Only what was read a moment ago
//! lets an apply start. A kind that does not say which spec its controller has acted on is seen ready twice.
//!
//! Not for what makes an object ready; that is [`ready`](crate::apps::ready).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::apps::app::{Look, Sight, TargetKey};
use crate::apps::leaf;
use kernel::answer::PortError;
use kernel::call::Call;
use kernel::machine::Timestamp;

/// How often they are read while nothing else holds the run. A thousand Repos that wait for one object each make 67 reads a second.
const PAUSE: Duration = Duration::from_secs(15);

/// How often they are read while other gates are closed: those reads are for words alone.
const SLOW_PAUSE: Duration = Duration::from_mins(5);

/// The known states of a run's needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Needs {
    pub(super) call: Call,
    known: BTreeMap<TargetKey, Known>,
    /// When they were read last.
    read_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Known {
    sight: Sight,
    look: Option<Look>,
    /// Since when each read has said the same.
    since: Timestamp,
}

impl Needs {
    /// The targets to read now. `alone`: nothing else holds the run.
    pub(super) fn ask(&mut self, now: Timestamp, needs: &[TargetKey], alone: bool) -> Option<Vec<TargetKey>> {
        let pause = if alone { PAUSE } else { SLOW_PAUSE };
        let is_known = needs.iter().all(|need| self.known.contains_key(need));
        let is_fresh = is_known && self.read_at.is_some_and(|at| now < at.after(pause));
        if is_fresh || !self.call.is_due(now) {
            return None;
        }
        self.call.asked();
        Some(needs.to_vec())
    }

    /// Reads again now: a look was requested, so the last reading is out of date.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.call.hurry(now);
        self.read_at = None;
    }

    pub(super) fn seen(
        &mut self,
        now: Timestamp,
        again: impl FnOnce(u32) -> Timestamp,
        reads: Vec<(TargetKey, Result<Option<Look>, PortError>)>,
    ) {
        let before = std::mem::take(&mut self.known);
        let mut failed = None;
        for (target, read) in reads {
            let read = read.inspect_err(|error| failed = Some(error.to_string()));
            let look = read.as_ref().ok().cloned().flatten();
            let same = before.get(&target).filter(|known| known.look == look);
            let since = same.map_or(now, |known| known.since);
            let sight = match read {
                Err(error) => Sight::Unknown(error.to_string()),
                Ok(None) => Sight::Absent,
                Ok(Some(look)) => leaf::present(&look, since.after(leaf::TWICE_AFTER) <= now),
            };
            self.known.insert(target, Known { sight, look, since });
        }
        self.read_at = Some(now);
        match failed {
            Some(why) => self.call.failed(|failures| again(failures).max(now.after(PAUSE)), why),
            None => self.call.answered_until(now.after(PAUSE)),
        }
    }

    /// Why the run has to wait: the first object that is not as it must be.
    pub(super) fn closed(&self, needs: &[TargetKey]) -> Option<String> {
        let sight = |need: &TargetKey| self.known.get(need).map(|known| &known.sight);
        needs.iter().find_map(|need| need.holds_up(sight(need))).or_else(|| {
            // What was ready may not be so any more.
            let (need, is_asked) = (needs.first()?, self.call.is_asked());
            is_asked.then(|| format!("needs {} {}: it is being looked at again", need.app.kind, need.display_name()))
        })
    }
}
