//! What the state of a workload says at a glance: whether it ended well, is under way, or needs a person.

use crate::looking::explain::model::Explanation;
use crate::looking::layout::Tone;
use purge::records::record::{Outcome, Record};
use purge::rollouts::unwell::{Reason, reason};

/// By its record, and by what else was seen. `is_news`: the workload is at something that the record does not have yet. It is good only
/// if all of that is.
pub(super) fn tone(record: Option<&Record>, is_news: bool, seen: &Explanation) -> Tone {
    let Some(record) = record else { return Tone::Plain };
    if seen.controller.is_some() {
        return Tone::Look;
    }
    match reason(record) {
        _ if is_news => Tone::Moving,
        Some(Reason::Withdrawn | Reason::Owed | Reason::Impossible | Reason::Partly | Reason::Stale) => Tone::Bad,
        Some(Reason::Failed) => Tone::Look,
        None if record.is_open() => Tone::Moving,
        None => {
            let ended = record.history.last().filter(|closed| closed.seq == record.seq);
            let is_purged = ended.is_some_and(|closed| closed.outcome == Outcome::Purged);
            if is_purged && seen.conditions.is_empty() { Tone::Good } else { Tone::Plain }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looking::Section;
    use crate::looking::whose::Whose;
    use kernel::id::{Seq, WorkloadId};
    use purge::records::record::{Closed, Phase};

    fn seen(controller: Option<&str>, conditions: &[&str]) -> Explanation {
        Explanation {
            workload: WorkloadId::deployment("shop", "web"),
            state: String::new(),
            tone: Tone::Plain,
            next: String::new(),
            controller: controller.map(str::to_owned),
            would: None,
            deployment: Section::missing(""),
            record: Section::missing(""),
            group: None,
            site: Section::missing(""),
            distributions: Section::missing(""),
            paths: Section::missing(""),
            proof: Section::missing(""),
            webhooks: Section::missing(""),
            conditions: conditions.iter().map(|words| (*words).to_owned()).collect(),
            settings: Whose::Own(String::new()),
        }
    }

    fn closed(seq: u64) -> Closed {
        Closed {
            seq: Seq(seq),
            change: String::new(),
            outcome: Outcome::Purged,
            why: String::new(),
            purges: Vec::new(),
            more: 0,
            seen: None,
        }
    }

    #[test]
    fn only_what_is_purged_and_has_nothing_else_to_say_is_good() {
        let (calm, fault) = (seen(None, &[]), seen(None, &["an annotation cannot be used"]));
        let idle = seen(Some("no replica works"), &[]);
        let at_rest = Record { phase: Phase::Complete, closed: Seq(2), ..Record::first(Seq(2)) };
        assert_eq!(tone(None, false, &calm), Tone::Plain, "without a record nothing is known");
        assert_eq!(tone(Some(&at_rest), false, &calm), Tone::Plain, "a baseline was never purged");
        assert_eq!(tone(Some(&at_rest), true, &calm), Tone::Moving, "another version is not recorded yet");
        assert_eq!(tone(Some(&at_rest), true, &idle), Tone::Look, "nothing moves");
        let mut purged = at_rest.clone();
        purged.history = vec![closed(2)];
        assert_eq!(tone(Some(&purged), false, &calm), Tone::Good);
        assert_eq!(tone(Some(&purged), false, &fault), Tone::Plain);
        purged.history = vec![closed(1)];
        assert_eq!(tone(Some(&purged), false, &calm), Tone::Plain, "that was an earlier rollout");
    }
}
