//! Reports that the mailbox of the rollout that ordered the purge had no room for. The end of a purge is forgotten once
//! it was reported, so these reports are kept in their order, and repeated.
//!
//! Effects are performed in their order and at one moment, so a mailbox that refuses one report also refuses those
//! after it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::purges::purge::{Effect, Progress};
use kernel::id::{Reference, Subject};
use kernel::machine::Timestamp;

/// How long after a refusal they are repeated.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// All of them, by recipient.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Unheard(BTreeMap<Subject, Backlog>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Backlog {
    again: Timestamp,
    reports: Vec<(Reference, Progress)>,
}

impl Unheard {
    /// A report found no room.
    pub(super) fn keep(&mut self, now: Timestamp, subject: Subject, reference: Reference, progress: Progress) {
        let begun = Backlog { again: now.after(AGAIN_AFTER), reports: Vec::new() };
        self.0.entry(subject).or_insert(begun).reports.push((reference, progress));
    }

    /// The reports that are due, followed by these effects. No report overtakes an earlier one to the same recipient.
    pub(super) fn queue(&mut self, now: Timestamp, effects: Vec<Effect>) -> Vec<Effect> {
        let mut next: Vec<Effect> = self.0.extract_if(.., |_, backlog| backlog.again <= now).flat_map(again).collect();
        for effect in effects {
            match effect {
                Effect::Report(subject, reference, progress) => match self.0.get_mut(&subject) {
                    Some(backlog) => backlog.reports.push((reference, progress)),
                    None => next.push(Effect::Report(subject, reference, progress)),
                },
                Effect::Create(_) | Effect::Poll(..) | Effect::Search(..) => next.push(effect),
            }
        }
        next
    }

    /// When the next are repeated.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.0.values().map(|backlog| backlog.again).min()
    }
}

fn again((subject, backlog): (Subject, Backlog)) -> impl Iterator<Item = Effect> {
    backlog.reports.into_iter().map(move |(reference, progress)| Effect::Report(subject.clone(), reference, progress))
}
