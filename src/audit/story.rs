//! The changes that the logs tell of, each from the first sight to its end.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use crate::facts::{Logs, Own, Place, Told};
use crate::names::Name;

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    Purged,
    /// Complete, and no purge followed, for a reason.
    Skipped,
    Failed,
    Superseded,
    /// A purge cannot be made as things are.
    Impossible,
}

impl End {
    fn of(kind: &str) -> Option<Self> {
        match kind {
            "purge.completed" => Some(Self::Purged),
            "purge.skipped" => Some(Self::Skipped),
            "rollout.failed" => Some(Self::Failed),
            "rollout.superseded" => Some(Self::Superseded),
            "purge.failed" => Some(Self::Impossible),
            _ => None,
        }
    }
}

/// What one member says of its rollout.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub started: Option<Place>,
    pub completed: Option<(Place, i64)>,
    /// The ends that it logged itself.
    pub ends: Vec<(End, Place)>,
    /// The last line about it.
    pub last: Option<Place>,
}

/// One rollout of a group, or one of a member that ended before the group agreed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub owns: BTreeSet<Own>,
    pub change: Option<Name>,
    /// Votes, by whose log they are in: which rollout of that member, and where it is first said.
    pub votes: BTreeMap<usize, (Own, Place)>,
    /// The members that it is of, with their numbers.
    pub members: BTreeMap<Name, u64>,
    /// Where a purge of it was first said to be made.
    pub purged: Option<Place>,
    /// Invalidations by distribution, with where each was first said.
    pub made: BTreeMap<Name, BTreeMap<Name, Place>>,
    /// Distributions said to be purged without the invalidation's id.
    pub unsaid: Option<Place>,
    /// Further purges, on evidence that the edge was stale, by distribution.
    pub repeated: BTreeMap<Name, usize>,
    /// Its purge was owed when its rollout ended.
    pub owed: bool,
    pub ends: Vec<(End, Place, Name)>,
    pub last: Option<Place>,
}

#[derive(Default)]
pub(crate) struct Stories {
    pub stories: BTreeMap<Name, Story>,
    pub parts: BTreeMap<Own, Part>,
    /// The rollouts of the group that a member's rollout was voted into.
    pub voted: BTreeMap<Own, Vec<Name>>,
    /// The rollouts whose purge was begun under an invalidation.
    begun: BTreeMap<Name, BTreeSet<Name>>,
    /// The logs that have votes.
    pub voters: BTreeSet<usize>,
}

fn later(last: &mut Option<Place>, place: Place) {
    if last.is_none_or(|known| known.at_us <= place.at_us) {
        *last = Some(place);
    }
}

impl Stories {
    pub fn of(logs: &Logs) -> Self {
        let mut all = Self::default();
        for vote in &logs.votes {
            all.voters.insert(vote.place.member);
            let story = all.stories.entry(vote.rollout).or_default();
            story.owns.insert(vote.own);
            // The earliest line of it: a later life says it again, and files may be joined in any order.
            let first = story.votes.entry(vote.place.member).or_insert((vote.own, vote.place));
            if vote.place.at_us < first.1.at_us {
                *first = (vote.own, vote.place);
            }
            story.members.extend(vote.members.iter().copied());
            later(&mut story.last, vote.place);
            later(&mut all.parts.entry(vote.own).or_default().last, vote.place);
            let voted = all.voted.entry(vote.own).or_default();
            if !voted.contains(&vote.rollout) {
                voted.push(vote.rollout);
            }
        }
        logs.told.iter().for_each(|told| all.tell(logs, told));
        all
    }

    fn tell(&mut self, logs: &Logs, told: &Told) {
        let kind = logs.names.text(told.kind);
        let is_of_rollouts =
            ["rollout.", "group.", "purge.", "edge.", "site."].iter().any(|begin| kind.starts_with(begin));
        if !is_of_rollouts {
            return;
        }
        // A notice of a vote has the number of the vector's first member; whose log has voted knows its own.
        let voted = self.stories.get(&told.rollout).and_then(|story| story.votes.get(&told.place.member));
        let own = voted.map_or(told.own, |(own, _)| *own);
        let part = self.parts.entry(own).or_default();
        later(&mut part.last, told.place);
        let end = End::of(kind);
        match kind {
            "rollout.started" => part.started = part.started.or(Some(told.place)),
            "rollout.completed" => part.completed = part.completed.or(Some((told.place, told.at_us))),
            _ => part.ends.extend(end.map(|end| (end, told.place))),
        }
        // Until the group agrees, a member's own name is all that there is.
        let voted = self.voted.get(&own).and_then(|voted| voted.last()).copied();
        let rollout =
            if self.stories.contains_key(&told.rollout) { told.rollout } else { voted.unwrap_or(told.rollout) };
        let story = self.stories.entry(rollout).or_default();
        story.owns.insert(own);
        story.change = story.change.or(Some(told.change));
        later(&mut story.last, told.place);
        story.ends.extend(end.map(|end| (end, told.place, told.message)));
        story.owed |= kind == "purge.owed";
        if kind == "purge.repeated" {
            told.purges.iter().for_each(|(distribution, _)| *story.repeated.entry(*distribution).or_default() += 1);
        }
        if matches!(kind, "purge.started" | "purge.repeated" | "purge.completed") {
            for (distribution, invalidation) in &told.purges {
                match invalidation {
                    Some(id) => {
                        story.made.entry(*distribution).or_default().entry(*id).or_insert(told.place);
                    }
                    None => story.unsaid = story.unsaid.or(Some(told.place)),
                }
            }
        }
        if kind == "purge.started" {
            for id in told.purges.iter().filter_map(|(_, id)| *id) {
                self.begun.entry(id).or_default().insert(told.rollout);
            }
            story.purged = story.purged.filter(|known| known.at_us <= told.place.at_us).or(Some(told.place));
        }
    }

    /// Whether the purge of another rollout was begun under this id.
    pub fn is_of_another(&self, rollout: Name, invalidation: Name) -> bool {
        self.begun.get(&invalidation).is_some_and(|rollouts| rollouts.iter().any(|one| *one != rollout))
    }

    /// The end of a rollout, if it is known: the last that was logged, but what is impossible may be made later.
    pub fn end(&self, story: &Story) -> Option<(End, Place, Name)> {
        let by_time = |(_, place, _): &&(End, Place, Name)| place.at_us;
        let lasting = story.ends.iter().filter(|(end, ..)| *end != End::Impossible).max_by_key(by_time);
        lasting.or_else(|| story.ends.iter().max_by_key(by_time)).copied()
    }
}

/// A change, as the report lists it. Times are those of the logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub workload: String,
    pub change: String,
    pub rollout: String,
    /// Each member in whose log it is, with its number there.
    pub members: BTreeMap<String, u64>,
    pub seen: Option<Timestamp>,
    /// When the last member was complete.
    pub complete: Option<Timestamp>,
    pub purged: Option<Timestamp>,
    /// Distributions with their invalidations.
    pub purges: BTreeMap<String, Vec<String>>,
    /// Further purges, on evidence.
    pub repeated: usize,
    /// `None`: the logs end before it does.
    pub end: Option<End>,
    pub ended: Option<Timestamp>,
    /// In the words of the log.
    pub why: String,
}

fn time(at_us: Option<i64>) -> Option<Timestamp> {
    at_us.and_then(|at_us| Timestamp::from_microsecond(at_us).ok())
}

/// All changes, oldest first.
pub(crate) fn changes(logs: &Logs, all: &Stories) -> Vec<Change> {
    let text = |name: Name| logs.names.text(name).to_owned();
    let of = |(rollout, story): (&Name, &Story)| {
        let parts = || story.owns.iter().filter_map(|own| all.parts.get(own));
        let end = all.end(story);
        Change {
            workload: story.owns.first().map(|own| text(own.1)).unwrap_or_default(),
            change: story.change.map(text).unwrap_or_default(),
            rollout: text(*rollout),
            members: story.owns.iter().filter_map(|own| Some((logs.members.get(own.0)?.name.clone(), own.2))).collect(),
            seen: time(parts().filter_map(|part| Some(part.started?.at_us)).min()),
            complete: time(parts().filter_map(|part| Some(part.completed?.1)).max()),
            purged: time(story.purged.map(|place| place.at_us)),
            purges: story
                .made
                .iter()
                .map(|(distribution, ids)| (text(*distribution), ids.keys().map(|id| text(*id)).collect()))
                .collect(),
            repeated: story.repeated.values().sum(),
            end: end.map(|(end, ..)| end),
            ended: time(end.map(|(_, place, _)| place.at_us)),
            why: end.map(|(.., message)| text(message)).unwrap_or_default(),
        }
    };
    let mut changes: Vec<Change> = all.stories.iter().map(of).collect();
    changes.sort_by_key(|change| (change.seen.or(change.complete).or(change.ended), change.rollout.clone()));
    changes
}
