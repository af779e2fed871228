//! Which of several open votes the story is about. A vote stays open until its purge is complete everywhere, and a newer rollout does
//! not wait for that: a notice of the older one would be taken for the newer one's.

use std::collections::{BTreeMap, BTreeSet};

use super::purges;
use crate::agreement::group::{self, Decision, Fate, Verdict, View};
use crate::agreement::roster::listed;
use crate::bounds::policy::Agreement;
use crate::records::record::Passed;
use crate::records::record::passed;
use kernel::id::{Member, Vector};

/// The open vectors, each with the number that its rollout has here, or in the first member that has voted for it.
fn open<'a>(view: &'a View, own: &'a Member) -> BTreeMap<&'a Vector, (&'a Member, u64)> {
    let mut open = BTreeMap::new();
    let ours_first = view.members.iter().filter(|(member, _)| *member == own);
    let rest = view.members.iter().filter(|(member, _)| *member != own);
    for (member, known) in ours_first.chain(rest) {
        let record = known.as_ref().and_then(|known| known.published.record());
        for vote in record.iter().flat_map(|record| &record.votes).filter(|vote| vote.closed.is_none()) {
            open.entry(&vote.vector).or_insert((member, vote.seq.0));
        }
    }
    open
}

/// Whether a vector is about the newest rollout of this member. Others may be past it (decision 52).
fn is_newest(view: &View, vector: &Vector, of: &Member) -> bool {
    let known = view.members.get(of).and_then(Option::as_ref);
    vector
        .component(of)
        .zip(known)
        .is_some_and(|(component, known)| known.origin == component.origin && known.published.seq() <= component.seq)
}

/// The vector that our newest rollout is about, if it is voted for: by us first. Where a vector has no part of ours, that of the
/// member that has voted for it counts.
pub(super) fn newest<'a>(view: &'a View, own: &'a Member) -> Option<&'a Vector> {
    let open = open(view, own);
    let of = |ours: bool| {
        let fits = |(vector, (member, _)): &(&&Vector, &(&Member, u64))| {
            let of = if vector.component(own).is_some() { own } else { *member };
            (*member == own) == ours && is_newest(view, vector, of)
        };
        open.iter().filter(fits).max_by_key(|(_, (_, seq))| *seq).map(|(vector, _)| *vector)
    };
    of(true).or_else(|| of(false))
}

/// A line for each other open vector, the oldest first, and for each rollout of ours that waits for others to come to it.
pub(super) fn older(view: &View, own: &Member, newest: Option<&Vector>, agreement: &Agreement) -> Vec<String> {
    let open = open(view, own);
    let mut others: Vec<(u64, &Member, &Vector)> = open
        .into_iter()
        .filter(|(vector, _)| Some(*vector) != newest)
        .map(|(vector, (member, seq))| (seq, member, vector))
        .collect();
    others.sort();
    let line = |(seq, member, vector): (u64, &Member, &Vector)| {
        let of = if member == own { String::new() } else { format!(" of {member}") };
        format!("rollout {seq}{of}: {}", stands(view, vector, &group::fate(view, vector)))
    };
    let record = view.members.get(own).and_then(|known| known.as_ref()?.published.record());
    let passed = record.into_iter().flat_map(|record| passed(record, |passed| awaited(view, own, passed, agreement)));
    others.into_iter().map(line).chain(passed).collect()
}

/// The wait of a rollout that we moved past.
fn awaited(view: &View, own: &Member, passed: &Passed, agreement: &Agreement) -> String {
    if let Some(hold) = &view.hold {
        return format!("nothing is agreed on: {hold}");
    }
    match group::judge_passed(view, own, passed, agreement) {
        Verdict::Candidate(_) => "complete in all members; each looks once more, and votes".to_owned(),
        Verdict::Waiting(reasons) => {
            let reasons = reasons.iter().map(|(member, reason)| format!("{member}, which {reason}"));
            format!("waiting for {}", reasons.collect::<Vec<_>>().join("; "))
        }
    }
}

/// How a vector stands that was voted for.
pub(super) fn stands(view: &View, vector: &Vector, fate: &Fate) -> String {
    match fate {
        Fate::Open(missing) => {
            let gone: BTreeSet<Member> =
                vector.0.keys().filter(|member| !view.members.contains_key(*member)).cloned().collect();
            // It is open for those that may have seen the vote of one that we do not count any more.
            if !gone.is_empty() {
                return format!(
                    "{} left the group; {} may know of a purge that was made",
                    listed(&gone),
                    listed(missing)
                );
            }
            let all = vector.0.len();
            format!(
                "{} of {all} have voted; the votes of {} are awaited",
                all.saturating_sub(missing.len()),
                listed(missing)
            )
        }
        Fate::Decided(Decision::Execute(_)) => {
            let purges = purges(view, vector);
            if purges.is_empty() {
                return "decided by all; its distributions are looked for".to_owned();
            }
            let words: Vec<String> = purges
                .iter()
                .map(|purge| {
                    let id = purge.invalidation.as_ref().map_or_else(String::new, |id| format!(" {id}"));
                    format!("invalidation{id} of {} {}", purge.distribution, purge.state)
                })
                .collect();
            format!("decided by all; {}", words.join("; "))
        }
        Fate::Decided(Decision::Close(outcome)) => format!("decided by all: {outcome}"),
        Fate::Dead(member, why) => format!("given up because of {member}: {why}"),
        Fate::Mixed => "given up: the members voted under different configurations".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{known, of, origin, record_of, view, vote};
    use super::*;
    use crate::records::record::{Phase, Purge, PurgeState};
    use kernel::id::Component;

    fn vector(parts: &[(&str, u64)]) -> Vector {
        let component = |(member, seq): &(&str, u64)| {
            let component = serde_json::json!({"o": origin(member), "s": seq});
            ((*member).into(), serde_json::from_value::<Component>(component).unwrap())
        };
        Vector(parts.iter().map(component).collect())
    }

    #[test]
    fn the_story_is_about_the_newest_rollout_and_older_open_ones_have_a_line_each() {
        let mut view = view([known("a", 2, "2", Phase::Complete), known("b", 7, "2", Phase::Complete)]);
        let first = vector(&[("a", 2), ("b", 7)]);
        vote(&mut view, "a", &first);
        vote(&mut view, "b", &first);
        let made = Purge { state: PurgeState::Created, invalidation: Some("I1".into()), ..Purge::wanted("r".into()) };
        record_of(view.members.get_mut(&"a".into()).unwrap()).votes[0]
            .purges
            .listed
            .insert("E1".parse().unwrap(), made);
        assert_eq!((of(&view).state.as_str(), of(&view).older.len()), ("decided by all: it is purged", 0));

        // The purge is on its way, and the next version is complete here; b has not reported it.
        let (_, next) = known("a", 3, "3", Phase::Complete);
        let votes = record_of(view.members.get_mut(&"a".into()).unwrap()).votes.clone();
        view.members.insert("a".into(), next);
        record_of(view.members.get_mut(&"a".into()).unwrap()).votes = votes;
        let seen = of(&view);
        assert_eq!(seen.state, "waiting for b");
        assert_eq!(seen.older, ["rollout 2: decided by all; invalidation I1 of E1 in progress"]);
        assert_eq!(seen.purges, [], "those of the older one are on its line");
        assert!(seen.members.iter().all(|ballot| !ballot.voted), "nobody has voted for the newest");

        // It withdraws: nothing of that is decided.
        record_of(view.members.get_mut(&"a".into()).unwrap()).phase = Phase::Withdrawn;
        assert!(!of(&view).state.contains("decided"), "{}", of(&view).state);
    }

    #[test]
    fn an_older_rollout_of_another_member_is_named_by_that_member() {
        let mut view = view([known("a", 4, "3", Phase::Complete), known("b", 7, "2", Phase::Complete)]);
        vote(&mut view, "b", &vector(&[("a", 3), ("b", 7)]));
        let seen = of(&view);
        assert!(seen.older[0].starts_with("rollout 7 of b: given up because of a: "), "{:?}", seen.older);
    }
}
