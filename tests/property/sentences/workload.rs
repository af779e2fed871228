//! What the group shows of a workload: views are drawn at random, and the tally of each is read sentence by sentence.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::{Component, Member, Seq, Vector, WorkloadId};
use kernel::names::image::Version;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use purge::agreement::group::{Known, View};
use purge::agreement::tally::{Ballot, Tally, tally};
use purge::bounds::policy::Agreement;
use purge::records::record::{Change, Failure, Outcome, Phase, Published, Purge, PurgeState, Record, Vote};

use super::views::{DIFFERENCE, IMAGES, OWN_WORDS, SILENCE, UNFOLLOWED, origin, version, views};
use super::{Read, find};

/// Where the sentences stand.
const ROOMS: [&str; 4] = [
    include_str!("../../../src/domain/purge/agreement/group.rs"),
    include_str!("../../../src/domain/purge/agreement/group/fate.rs"),
    include_str!("../../../src/domain/purge/agreement/tally.rs"),
    include_str!("../../../src/domain/purge/agreement/tally/story.rs"),
];

const VIEWS: usize = 20_000;

fn record_of<'a>(view: &'a View, member: &Member) -> Option<&'a Record> {
    match &view.members.get(member)?.as_ref()?.published {
        Published::Record(record) => Some(record),
        Published::Absent(_) => None,
    }
}

pub fn vote_of<'a>(view: &'a View, vector: &Vector, member: &Member) -> Option<&'a Vote> {
    record_of(view, member)?.votes.iter().find(|vote| vote.vector == *vector)
}

/// By what is voted for: who has a vote for it.
fn open(view: &View) -> BTreeMap<Vector, BTreeSet<Member>> {
    let mut open: BTreeMap<Vector, BTreeSet<Member>> = BTreeMap::new();
    for member in view.members.keys() {
        for vote in record_of(view, member).into_iter().flat_map(|record| &record.votes) {
            open.entry(vote.vector.clone()).or_default().insert(member.clone());
        }
    }
    open
}

/// Whether nothing is purged for a vector that all have voted for, and why.
pub fn closes_as(view: &View, vector: &Vector) -> BTreeSet<Outcome> {
    let votes: Vec<&Vote> = vector.0.keys().filter_map(|member| vote_of(view, vector, member)).collect();
    let mut outcomes = BTreeSet::new();
    let news: Vec<_> = votes.iter().filter(|vote| vote.cast.change != Change::Baseline).collect();
    if news.is_empty() {
        outcomes.insert(Outcome::NothingNew);
    }
    if news.iter().any(|vote| vote.cast.late) && !news.iter().any(|vote| vote.cast.change == Change::Requested) {
        outcomes.insert(Outcome::RecoveredSkipped);
    }
    if news.iter().all(|vote| vote.cast.returned) {
        outcomes.insert(Outcome::Returned);
    }
    if votes.iter().all(|vote| vote.plan.hosts.is_empty()) {
        outcomes.insert(Outcome::NoSite);
    }
    outcomes
}

fn is_left_out(scene: &Scene<'_>, member: &Member) -> bool {
    let Some(Some(known)) = scene.view.members.get(member) else { return false };
    let says_so = match &known.published {
        Published::Record(record) => record.off,
        Published::Absent(_) => scene.agreement.absent_left_out,
    };
    says_so && known.current && known.alive
}

/// The names in `a, b` and in `a and b`.
fn names(text: &str) -> BTreeSet<Member> {
    text.replace(" and ", ", ").split(", ").map(Member::from).collect()
}

/// One view as one member shows it.
struct Scene<'a> {
    view: &'a View,
    own: &'a Member,
    agreement: &'a Agreement,
    tally: &'a Tally,
    /// The member that a sentence is about, where it has one.
    about: Member,
    /// The number that a sentence is about, where it has one.
    number: Option<Seq>,
}

impl Scene<'_> {
    fn about(&self) -> Option<&Known> {
        self.view.members.get(&self.about)?.as_ref()
    }

    fn record(&self) -> Option<&Record> {
        record_of(self.view, &self.about)
    }

    fn is_unfollowed(&self) -> bool {
        self.view.unfollowed.contains_key(&self.about)
    }

    /// The vectors with open votes that a sentence may be about: in a line of an older rollout those in which this member has that
    /// number, and otherwise those of no older number of ours than our newest.
    fn vectors(&self) -> Vec<(Vector, BTreeSet<Member>)> {
        let fits = |vector: &Vector| match (self.number, vector.0.get(&self.about), vector.0.get(self.own)) {
            (Some(number), Some(component), _) => component.seq == number,
            (Some(_), None, _) => false,
            (None, _, Some(ours)) => record_of(self.view, self.own)
                .is_none_or(|record| record.seq <= ours.seq || ours.origin != origin(&self.own.0)),
            (None, _, None) => true,
        };
        open(self.view).into_iter().filter(|(vector, _)| fits(vector)).collect()
    }

    fn any(&self, is_so: impl Fn(&Vector, &BTreeSet<Member>) -> bool) -> bool {
        self.vectors().iter().any(|(vector, voters)| is_so(vector, voters))
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        self.view.members.keys().filter_map(|member| record_of(self.view, member))
    }

    /// Whether all members that are not left out have completed one version, as their newest or before it.
    fn all_have_completed_one(&self) -> bool {
        let mut members = self.view.members.keys().filter(|member| !is_left_out(self, member));
        let has = |member: &Member, version: &Version| {
            record_of(self.view, member).is_some_and(|record| {
                (record.phase == Phase::Complete && record.version == *version)
                    || record.passed.iter().any(|passed| passed.version == *version)
            })
        };
        let versions = [1, 2, 3].map(version);
        let members: Vec<&Member> = members.by_ref().collect();
        versions.iter().any(|version| members.iter().all(|member| has(member, version)))
    }

    fn waits_for_a_vote(record: &Record) -> bool {
        record.phase == Phase::Complete
            && record.change != Change::Baseline
            && record.seq > record.closed
            && !record.votes.iter().any(|vote| vote.seq == record.seq)
    }

    fn is_all_at_rest(&self) -> bool {
        self.records().all(|record| {
            record.phase != Phase::Rolling
                && record.votes.is_empty()
                && record.passed.is_empty()
                && !Self::waits_for_a_vote(record)
        })
    }

    /// Whether there is a vector that this member has not voted for, where its component and its ledger are so.
    fn gave_up(&self, member: &str, is_so: impl Fn(&Component, &Known) -> bool) -> bool {
        let member = Member::from(member);
        self.any(|vector, voters| {
            let known = self.view.members.get(&member).and_then(Option::as_ref);
            let (Some(component), Some(known)) = (vector.0.get(&member), known) else { return false };
            !voters.contains(&member) && is_so(component, known)
        })
    }
}

fn seq_of(known: &Known) -> Seq {
    match &known.published {
        Published::Record(record) => record.seq,
        Published::Absent(seq) => *seq,
    }
}

/// What may be said, with `…` for what varies, and what must be so then.
type Row = (&'static str, fn(&Scene<'_>, &[&str]) -> bool);

const ROWS: &[Row] = &[
    ("nothing is agreed on: …", |scene, said| scene.view.hold.as_deref() == Some(said[0])),
    ("decided by all: what was made is followed; nothing is agreed on: …", |scene, said| {
        let is_listed = |vector: &Vector, voters: &BTreeSet<Member>| {
            voters.iter().any(|voter| !vote_of(scene.view, vector, voter).unwrap().purges.listed.is_empty())
        };
        scene.view.hold.as_deref() == Some(said[0]) && scene.any(is_listed)
    }),
    ("… left the group; … may know of a purge that was made", |scene, said| {
        scene.any(|vector, _| {
            let (here, gone): (BTreeSet<Member>, BTreeSet<Member>) =
                vector.0.keys().cloned().partition(|member| scene.view.members.contains_key(member));
            names(said[0]) == gone && names(said[1]).is_subset(&here)
        })
    }),
    ("… of … have voted; the votes of … are awaited", |scene, said| {
        scene.any(|vector, voters| {
            said[0] == voters.len().to_string()
                && said[1] == vector.0.len().to_string()
                && names(said[2]) == vector.0.keys().filter(|member| !voters.contains(*member)).cloned().collect()
        })
    }),
    ("decided by all: it is purged", |scene, _| {
        scene.any(|vector, voters| {
            voters.len() == vector.0.len() && closes_as(scene.view, vector).is_empty() || is_listed(scene, vector)
        })
    }),
    ("decided by all; its distributions are looked for", |scene, _| {
        scene.any(|vector, voters| voters.len() == vector.0.len() && !is_listed(scene, vector))
    }),
    ("decided by all; invalidation… of … …", |scene, said| {
        scene.any(|vector, _| {
            let made = |state: &PurgeState| match said[2] {
                "queued" => *state == PurgeState::Wanted,
                "in progress" => *state == PurgeState::Created,
                "completed" => *state == PurgeState::Completed,
                "covered by a later one" => matches!(state, PurgeState::Covered(_)),
                "made by another" => *state == PurgeState::DoneByOther,
                "owed: AccessDenied" => matches!(state, PurgeState::Owed(_)),
                _ => false,
            };
            purges(scene, vector).iter().any(|(id, purge)| id.as_str() == said[1] && made(&purge.state))
        })
    }),
    ("decided by all: not purged: nothing had changed", |scene, _| closes(scene, Outcome::NothingNew)),
    ("decided by all: not purged: back to the version the edge already has, …", |scene, _| {
        closes(scene, Outcome::Returned)
    }),
    ("decided by all: not purged: it completed after it was recorded as failed, …", |scene, _| {
        closes(scene, Outcome::RecoveredSkipped)
    }),
    ("decided by all: not purged: no Ingress, route or annotation gives the workload a host", |scene, _| {
        closes(scene, Outcome::NoSite)
    }),
    ("given up: the members voted under different configurations", |scene, _| {
        scene.any(|vector, voters| {
            let configs: BTreeSet<&str> =
                voters.iter().map(|voter| vote_of(scene.view, vector, voter).unwrap().cast.config.as_str()).collect();
            voters.len() == vector.0.len() && configs.len() > 1
        })
    }),
    ("given up because of …: its ledger was re-created", |scene, said| {
        scene.gave_up(said[0], |component, known| component.origin != known.origin && known.current)
    }),
    ("given up because of …: its owner switched it off there before it voted", |scene, said| {
        scene.gave_up(said[0], |component, known| {
            matches!(&known.published, Published::Record(record) if record.off && record.seq > component.seq)
        })
    }),
    ("given up because of …: it moved on to another version before it voted", |scene, said| {
        scene.gave_up(said[0], |component, known| seq_of(known) > component.seq)
    }),
    ("given up because of …: its ledger was set back and gave the number to another rollout", |scene, said| {
        let is_other = |component: &Component, known: &Known| matches!(&known.published, Published::Record(record) if record.nonce != component.nonce);
        scene.gave_up(said[0], is_other)
    }),
    ("given up because of …: it does not have the workload any more", |scene, said| {
        scene.gave_up(said[0], |_, known| matches!(known.published, Published::Absent(_)))
    }),
    ("given up because of …: it has voted for what came after", |scene, said| {
        scene
            .gave_up(said[0], |_, known| matches!(&known.published, Published::Record(record) if record.last.is_some()))
    }),
    ("given up because of …: the rollout timeout passed", |scene, said| {
        scene.gave_up(said[0], |_, known| matches!(&known.published, Published::Record(record) if matches!(record.phase, Phase::Failed(_))))
    }),
    ("given up because of …: it has withdrawn", |scene, said| {
        scene.gave_up(
            said[0],
            |_, known| matches!(&known.published, Published::Record(record) if record.phase == Phase::Withdrawn),
        )
    }),
    ("given up because of …: it is not a member of the group any more", |scene, said| {
        let member = Member::from(said[0]);
        scene.any(|vector, _| vector.0.contains_key(&member)) && !scene.view.members.contains_key(&member)
    }),
    ("complete in all members; each looks once more, and votes", |scene, _| {
        scene.all_have_completed_one() && !scene.is_all_at_rest()
    }),
    ("at rest: all members have the same version", |scene, _| scene.all_have_completed_one()),
    ("at rest: no member waits for a purge of it", |scene, _| scene.is_all_at_rest()),
    ("waiting for …", |scene, said| {
        let awaited = scene.tally.members.iter().filter(|ballot| ballot.awaited.is_some());
        let awaited: BTreeSet<Member> = awaited.map(|ballot| ballot.member.as_str().into()).collect();
        names(said[0]) == awaited && !scene.is_all_at_rest()
    }),
    ("has not published the workload yet", |scene, _| scene.about().is_none() && !scene.is_unfollowed()),
    ("does not follow StatefulSets: it has no right to list them", |scene, _| {
        scene.about().is_none() && scene.is_unfollowed()
    }),
    ("has never had a workload of this name: …", |scene, _| {
        scene.about().is_some_and(|known| known.published == Published::Absent(Seq(0)))
    }),
    ("does not have the workload: …", |scene, _| {
        scene.about().is_some_and(|known| matches!(known.published, Published::Absent(seq) if seq > Seq(0)))
    }),
    ("last reported that it lacks the workload, and is skipped only while it keeps reporting that", |scene, _| {
        let is_past =
            |known: &Known| matches!(known.published, Published::Absent(_)) && !(known.alive && known.current);
        scene.about().is_some_and(is_past) && scene.agreement.absent_left_out
    }),
    (
        "last reported that allclear.dev/enabled switched it off, and is skipped only while it keeps reporting that",
        |scene, _| scene.record().is_some_and(|record| record.off) && !is_left_out(scene, &scene.about),
    ),
    ("is at web: …, …", |scene, said| {
        let record = scene.record();
        let others: Vec<&Record> = scene.records().filter(|other| Some(*other) != record).collect();
        let is_it = |record: &Record, number: u8| {
            record.version == version(number) && IMAGES[usize::from(number) - 1].ends_with(said[0])
        };
        record.is_some_and(|record| {
            let differs = |other: &&Record| {
                other.version != record.version || other.passed.iter().any(|passed| passed.version != record.version)
            };
            said[1].starts_with(record.phase.name())
                && (1..=3).any(|number| is_it(record, number))
                && others.iter().any(differs)
        })
    }),
    ("is still rolling out", |scene, _| scene.record().is_some_and(|record| record.phase == Phase::Rolling)),
    ("failed: the rollout timeout passed", |scene, _| {
        scene.record().is_some_and(|record| matches!(record.phase, Phase::Failed(Failure::TimedOut)))
    }),
    ("has withdrawn", |scene, _| scene.record().is_some_and(|record| record.phase == Phase::Withdrawn)),
    ("has not said yet whether its ledger is still the same", |scene, _| {
        scene.about().is_some_and(|known| !known.current)
    }),
    ("has completed it, and has not recorded yet under which configuration of the group", |scene, _| {
        scene.record().is_some_and(|record| has_completed(record) && record.config.is_empty())
    }),
    ("has completed it, and its record is under another configuration of the group than ours", |scene, _| {
        scene.record().is_some_and(|record| {
            has_completed(record) && !["", scene.view.config.as_str()].contains(&record.config.as_str())
        })
    }),
    ("has voted, counts other members than this cluster, and may know of a purge that was made", |scene, _| {
        let is_gone = |member: &Member| !scene.view.members.contains_key(member);
        scene.any(|vector, voters| voters.contains(&scene.about) && vector.0.keys().any(is_gone))
    }),
    ("has not voted yet (last heard: 2 of 5 pods ready)", |scene, _| lacks_vote(scene)),
    ("has not voted yet", |scene, _| lacks_vote(scene)),
];

fn has_completed(record: &Record) -> bool {
    record.phase == Phase::Complete || !record.passed.is_empty()
}

fn lacks_vote(scene: &Scene<'_>) -> bool {
    scene.any(|vector, voters| vector.0.contains_key(&scene.about) && !voters.contains(&scene.about))
}

fn purges<'a>(scene: &Scene<'a>, vector: &Vector) -> Vec<(String, &'a Purge)> {
    let votes = vector.0.keys().filter_map(|member| vote_of(scene.view, vector, member));
    votes.flat_map(|vote| &vote.purges.listed).map(|(id, purge)| (id.to_string(), purge)).collect()
}

fn is_listed(scene: &Scene<'_>, vector: &Vector) -> bool {
    !purges(scene, vector).is_empty()
}

fn closes(scene: &Scene<'_>, outcome: Outcome) -> bool {
    scene.any(|vector, voters| voters.len() == vector.0.len() && closes_as(scene.view, vector).contains(&outcome))
}

/// The text without what may stand after it: that a member is silent, differs, or says of itself.
fn without_what_is_told<'a>(scene: &Scene<'_>, text: &'a str) -> &'a str {
    let told = scene.about().map(|known| known.told.clone()).unwrap_or_default();
    let text = match text.strip_suffix(&format!("; it has another configuration, {DIFFERENCE}")) {
        Some(text) if !told.differs.is_empty() => text,
        Some(_) => panic!("{} is said to differ", scene.about),
        None => text,
    };
    let text = match text.strip_suffix(&format!("; it {SILENCE}")) {
        Some(text) if told.silence.is_some() => text,
        Some(_) => panic!("{} is said to be silent", scene.about),
        None => text,
    };
    let text = match text.strip_suffix(&format!("; it {UNFOLLOWED}")) {
        Some(text) if scene.is_unfollowed() => text,
        Some(_) => panic!("{} is said not to follow it", scene.about),
        None => text,
    };
    match text.strip_suffix(&format!(": {OWN_WORDS}")) {
        Some(_) if text.ends_with(&format!("last heard: {OWN_WORDS}")) => text,
        Some(text) if told.own.is_some() => text,
        Some(_) => panic!("{} has said nothing", scene.about),
        None => text,
    }
}

/// The state without the members that it says are left out, each of which must be.
fn without_the_left_out<'a>(scene: &Scene<'_>, mut text: &'a str) -> &'a str {
    for member in scene.view.members.keys().rev() {
        let off = format!("; {member} is left out: allclear.dev/enabled is \"false\" there");
        let absent = format!("; {member} is left out: it does not have the workload, and group.absent is \"ignore\"");
        let (said, is_off) = (text.strip_suffix(&off).or_else(|| text.strip_suffix(&absent)), text.ends_with(&off));
        let is_so = is_left_out(scene, member);
        let may_be_unsaid = scene.any(|vector, _| vector.0.contains_key(member));
        assert!(
            if said.is_some() { is_so } else { !is_so || may_be_unsaid },
            "{member} is left out in {text:?}: {:#?}",
            scene.view
        );
        if let Some(said) = said {
            assert_eq!(record_of(scene.view, member).is_some(), is_off, "{text:?}");
            text = said;
        }
    }
    text
}

fn check_all(view: &View, own: &Member, agreement: &Agreement, read: &mut Read) {
    let tally = tally(&WorkloadId::deployment("shop", "web"), view, own, agreement);
    let scene = &|about: &Member, number| Scene { view, own, agreement, tally: &tally, about: about.clone(), number };
    let newest = scene(own, None);
    let awaited = tally.members.iter().filter_map(|ballot| ballot.awaited.as_ref());
    let purges = tally.purges.iter().map(|purge| &purge.state);
    awaited.chain(purges).chain(&tally.blocks).chain(&tally.next).chain([&tally.state]).for_each(|text| read.saw(text));
    tally.awaits().into_iter().for_each(|(_, next)| read.saw(&next));
    check(&newest, without_the_left_out(&newest, &tally.state), read);
    for line in &tally.older {
        let passed = "): complete here before another version took its place; ";
        let (head, words) = line.split_once(passed).or_else(|| line.split_once(": ")).unwrap();
        let head = head.strip_prefix("rollout ").unwrap().split(" (").next().unwrap();
        let (number, of) = head.split_once(" of ").unwrap_or((head, &own.0));
        match words.strip_prefix("waiting for ") {
            Some(reasons) => check_reasons(scene, reasons, read),
            None => check(&scene(&of.into(), Some(Seq(number.parse().unwrap()))), words, read),
        }
    }
    for Ballot { member, awaited, .. } in &tally.members {
        let scene = scene(&member.as_str().into(), None);
        if let Some(awaited) = awaited {
            check(&scene, without_what_is_told(&scene, awaited), read);
        }
    }
    for said in tally.blocks.iter().flat_map(|blocks| blocks.split("; ")) {
        let said = said.strip_prefix("by their images").map_or(Some(said), |_| None);
        let Some((who, why)) = said.and_then(|said| said.split_once(" for this cluster, since it ")) else { continue };
        let who = names(who.strip_suffix(" wait").or_else(|| who.strip_suffix(" waits")).unwrap());
        for waiter in &who {
            let record = record_of(view, waiter).expect("one that waits has a record");
            assert!(
                Scene::waits_for_a_vote(record) || !record.votes.is_empty() || !record.passed.is_empty(),
                "{waiter} waits: {view:#?}"
            );
        }
        check(&newest, why, read);
    }
}

/// Finds the row of a sentence that is so, and notes that it was reached.
fn check(scene: &Scene<'_>, text: &str, read: &mut Read) {
    let about = || format!("said of {} to {}: {:?}", scene.about, scene.own, scene.view);
    read.note(text, find(ROWS, text, |is_so, said| is_so(scene, said)), about);
}

/// The reasons why a rollout that was gone past waits: `a, which …; b, which …`.
fn check_reasons<'a>(scene: impl Fn(&Member, Option<Seq>) -> Scene<'a>, reasons: &str, read: &mut Read) {
    let heads = ["a", "b", "c"].map(|member| (member, format!("{member}, which ")));
    let found = heads.iter().filter_map(|(member, head)| Some((*member, reasons.find(head.as_str())? + head.len())));
    let found: Vec<_> = found.collect();
    assert!(!found.is_empty(), "nobody is waited for: {reasons}");
    for (index, (member, from)) in found.iter().enumerate() {
        let end = found.get(index + 1).map_or(reasons.len(), |(_, next)| next - "; a, which ".len());
        let scene = scene(&(*member).into(), None);
        check(&scene, without_what_is_told(&scene, &reasons[*from..end]), read);
    }
}

#[test]
fn each_sentence_of_a_workload_in_a_group_is_so_in_the_state_that_shows_it() {
    let mut runner = TestRunner::deterministic();
    let mut read = Read::of(&ROOMS);
    for _ in 0..VIEWS {
        let (view, agreement) = views().new_tree(&mut runner).unwrap().current();
        for own in view.members.keys() {
            check_all(&view, own, &agreement, &mut read);
        }
    }
    read.ends(&format!("none of {VIEWS} views"), ROWS);
}
