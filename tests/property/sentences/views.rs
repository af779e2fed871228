//! Views of a group, drawn at random: what members may know of each other and of one workload.

use std::collections::BTreeMap;

use kernel::id::{Component, Member, Nonce, Origin, Seq, Vector};
use kernel::names::image::{Container, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use purge::agreement::group::{Known, Told, View};
use purge::bounds::policy::Agreement;
use purge::records::record::{Brief, Change, Failure, Passed, Phase, Published, Purge, PurgeState, Record, Vote};
use purge::records::rules::Rules;

use super::workload::{closes_as, vote_of};

const MEMBERS: [&str; 3] = ["a", "b", "c"];
pub const SILENCE: &str = "has not been heard from for more than a minute";
pub const DIFFERENCE: &str = "purge.paths is \"/a\" there and \"/*\" here";
pub const UNFOLLOWED: &str = "does not follow StatefulSets: it has no right to list them";
pub const OWN_WORDS: &str = "2 of 5 pods ready";
pub const HOLD: &str = "two clusters have one name";

/// What may be voted for: the members with their numbers, and whether the ledger of `a` in it is one that was lost.
const VECTORS: [(&[(&str, u64)], bool); 4] = [
    (&[("a", 2), ("b", 2), ("c", 2)], false),
    (&[("a", 3), ("b", 3), ("c", 3)], false),
    (&[("a", 2), ("b", 2)], false),
    (&[("a", 2), ("b", 3), ("c", 2)], true),
];

pub fn origin(member: &str) -> Origin {
    Origin(format!("ledger-{member}"))
}

fn vector(index: usize) -> Vector {
    let (parts, lost) = VECTORS[index];
    let ledger = |member| if lost && member == "a" { Origin("lost".to_owned()) } else { origin(member) };
    Vector(parts.iter().map(|(member, seq)| ((*member).into(), Component::bare(ledger(member), Seq(*seq)))).collect())
}

pub const IMAGES: [&str; 3] = ["shop/web:1", "shop/web:2", "shop/api:1"];

/// Three versions: of two nobody but their owner knows whether they are the same.
pub fn version(number: u8) -> Version {
    let image = IMAGES[usize::from(number) - 1];
    [(Container::Main("web".into()), image.parse().unwrap())].into_iter().collect()
}

#[derive(Clone, Debug)]
struct VoteDrawn {
    change: Change,
    returned: bool,
    late: bool,
    config: &'static str,
    has_site: bool,
    purge: Option<PurgeState>,
}

fn vote_drawn() -> impl Strategy<Value = VoteDrawn> {
    let change = select(vec![Change::Changed, Change::Changed, Change::Baseline, Change::Requested]);
    let state = select(vec![
        PurgeState::Wanted,
        PurgeState::Created,
        PurgeState::Completed,
        PurgeState::Owed("AccessDenied".to_owned()),
        PurgeState::DoneByOther,
        PurgeState::Covered("I2".into()),
    ]);
    let often = |likely| proptest::bool::weighted(likely);
    (change, often(0.3), often(0.1), select(vec!["x", "x", "x", "x", "y"]), often(0.8), proptest::option::of(state))
        .prop_map(|(change, returned, late, config, has_site, purge)| VoteDrawn {
            change,
            returned,
            late,
            config,
            has_site,
            purge,
        })
}

fn record() -> impl Strategy<Value = Record> {
    let phase = select(vec![
        Phase::Complete,
        Phase::Complete,
        Phase::Complete,
        Phase::Complete,
        Phase::Rolling,
        Phase::Failed(Failure::TimedOut),
        Phase::Withdrawn,
    ]);
    let change = select(vec![Change::Changed, Change::Changed, Change::Baseline]);
    let config = select(vec!["x", "x", "x", "x", "y", ""]);
    let votes = vec(proptest::option::weighted(0.6, vote_drawn()), VECTORS.len());
    let often = |likely| proptest::bool::weighted(likely);
    let last = proptest::option::weighted(0.1, 0..VECTORS.len());
    let rest = (often(0.1), often(0.2), last, often(0.3), often(0.03));
    (1..4_u64, prop_oneof![9 => 1..3_u8, 1 => Just(3)], phase, change, config, votes, rest).prop_map(
        |(seq, tag, phase, change, config, votes, (off, is_closed, last, goes_past, is_other))| {
            let passed = goes_past && seq == 3;
            let mut record = Record {
                uid: "u".to_owned(),
                version: version(tag),
                change,
                phase,
                config: config.to_owned(),
                off,
                closed: if is_closed { Seq(seq) } else { Seq(1) },
                last: last.map(|index| Brief::of(&vector(index))),
                ..Record::first(Seq(seq))
            };
            record.nonce = Nonce(u64::from(is_other));
            if passed {
                let (seq, version) = (Seq(2), version(if tag == 1 { 2 } else { 1 }));
                record.passed.push(Passed {
                    seq,
                    nonce: Default::default(),
                    version,
                    group_version: None,
                    change: Change::Changed,
                });
            }
            record.votes = votes
                .into_iter()
                .enumerate()
                .filter_map(|(index, vote)| Some((vector(index), vote?)))
                .map(|(vector, vote)| voted(vector, vote, &record))
                .collect();
            record
        },
    )
}

/// A vote as it is written; its number is filled in by whoever has cast it.
fn voted(vector: Vector, drawn: VoteDrawn, record: &Record) -> Vote {
    let hosts: &[&str] = if drawn.has_site { &["www.example.com"] } else { &[] };
    let json = serde_json::json!({"v": vector, "s": 0, "i": record.version, "c": drawn.change, "x": drawn.returned,
        "l": drawn.late, "j": Rules::CURRENT, "m": drawn.config, "h": hosts, "p": ["/*"]});
    let mut vote: Vote = serde_json::from_value(json).unwrap();
    if let Some(state) = drawn.purge {
        let invalidation = (!matches!(state, PurgeState::Wanted | PurgeState::Owed(_))).then(|| "I1".into());
        let purge = Purge { state, invalidation, ..Purge::wanted("r".into()) };
        vote.purges.listed.insert("E1".parse().unwrap(), purge);
    }
    vote
}

fn known() -> impl Strategy<Value = Option<Known>> {
    let often = |likely| proptest::bool::weighted(likely);
    let published = prop_oneof![
        8 => record().prop_map(Published::from),
        1 => select(vec![0, 1, 3]).prop_map(|seq| Published::Absent(Seq(seq))),
    ];
    let told = (often(0.1), often(0.1), often(0.3)).prop_map(|(silence, differs, own)| Told {
        silence: silence.then(|| SILENCE.to_owned()),
        differs: if differs { vec![DIFFERENCE.to_owned()] } else { Vec::new() },
        cure: differs.then(|| "give purge.paths one value".to_owned()),
        own: own.then(|| OWN_WORDS.to_owned()),
    });
    let known = (published, often(0.9), often(0.9), told).prop_map(|(published, current, alive, told)| Known {
        origin: Origin::default(),
        current,
        alive,
        published,
        told,
    });
    proptest::option::weighted(0.95, known)
}

/// A view, with what cannot be in any ledger taken out: a member votes only for numbers that it has reached, with the version that
/// it had completed then, and lists purges only after all have voted.
pub fn views() -> impl Strategy<Value = (View, Agreement)> {
    let often = |likely| proptest::bool::weighted(likely);
    let unfollowed = vec(often(0.1), MEMBERS.len());
    (vec(known(), MEMBERS.len()), unfollowed, often(0.9), often(0.9), often(0.08), often(0.5), often(0.15)).prop_map(
        |(parts, unfollowed, has_c, has_b, is_held, absent_left_out, is_quiet)| {
            let mut members: BTreeMap<Member, Option<Known>> =
                MEMBERS.iter().map(|name| Member::from(*name)).zip(parts).collect();
            for (member, known) in &mut members {
                let Some(known) = known else { continue };
                known.origin = origin(&member.0);
                if let Published::Record(record) = &mut known.published {
                    if is_quiet {
                        (record.phase, record.change) = (Phase::Complete, Change::Baseline);
                        record.votes.clear();
                        record.passed.clear();
                    }
                    cast(record, member);
                }
            }
            if !has_c {
                members.remove(&"c".into());
            }
            if !has_b {
                members.remove(&"b".into());
            }
            list_only_what_all_voted_for(&mut members);
            let said = MEMBERS.iter().zip(unfollowed).filter(|(_, unfollowed)| *unfollowed);
            let view = View {
                config: "x".to_owned(),
                hold: is_held.then(|| HOLD.to_owned()),
                unfollowed: said.map(|(member, _)| (Member::from(*member), UNFOLLOWED.to_owned())).collect(),
                members,
                ..View::default()
            };
            (view, Agreement { absent_left_out, ..Agreement::default() })
        },
    )
}

fn cast(record: &mut Record, member: &Member) {
    let (seq, nonce, is_complete) = (record.seq, record.nonce, record.phase == Phase::Complete);
    let has_passed = !record.passed.is_empty();
    record.votes.retain(|vote| match vote.vector.0.get(member) {
        Some(component) if component.seq == seq => is_complete && component.nonce == nonce,
        Some(component) => component.seq == Seq(2) && seq == Seq(3) && !has_passed,
        None => false,
    });
    for vote in &mut record.votes {
        vote.seq = vote.vector.0[member].seq;
    }
    if record.off {
        // Whoever is switched off has no vote of a later time.
        record.passed.clear();
    }
}

fn list_only_what_all_voted_for(members: &mut BTreeMap<Member, Option<Known>>) {
    let view = View { members: members.clone(), ..View::default() };
    let records = members.values_mut().flatten().filter_map(|known| match &mut known.published {
        Published::Record(record) => Some(record),
        Published::Absent(_) => None,
    });
    for vote in records.flat_map(|record| &mut record.votes) {
        let present = vote.vector.0.keys().filter(|member| view.members.contains_key(*member));
        let mut votes = present.map(|member| vote_of(&view, &vote.vector, member));
        if !votes.all(|found| found.is_some_and(|found| found.cast.config == vote.cast.config))
            || !closes_as(&view, &vote.vector).is_empty()
        {
            vote.purges.listed.clear();
        }
    }
}
