//! Clusters and ledgers that come back from a backup.

use super::*;
use crate::agreement::group::{NumberedView, View};
use crate::records::record::Vote;
use kernel::floor::Floor;
use kernel::id::Nonces;

/// The story goes on in a life that begins with this record and knew another.
fn resumed(story: Story, held: Option<Record>, known: Option<&Record>, spent: u64) -> Story {
    let machine = Rollout::resume(identity(), Policy::default(), Seq(0), held).remembering(known, Seq(spent));
    Story { machine, effects: Vec::new(), ..story }
}

impl Story {
    fn durable(&self) -> Record {
        self.machine.durable().unwrap().clone()
    }

    fn references(&self) -> Vec<Reference> {
        self.purges().into_iter().cloned().collect()
    }
}

// Faults: A6
#[test]
fn a_deployment_that_was_restored_alone_is_seen_although_its_generation_went_back() {
    let mut story = Story::begin(complete("a", 1));
    story.see(complete("b", 7));
    story.effects.clear();
    story.see(complete("a", 3));
    story.pass(Duration::from_secs(4));
    assert_eq!(story.purges().len(), 0, "one read may come from a cache that lags");
    story.pass(Duration::from_secs(6));
    assert_eq!((story.durable().version, story.durable().generation), (version("a"), 3));
    assert_eq!(story.purges().len(), 1);
    story.see(complete("c", 4));
    assert_eq!(story.durable().version, version("c"), "its generations count from there");
    assert_eq!(story.machine.next_deadline(), None);
}

/// Goal: the page has the number of this cluster for what an earlier life voted for and closed. Method: a life begins with a record that has
/// an open vote, a closed one and one that is owed, each with a number of its own.
#[test]
fn a_new_life_knows_the_numbers_of_votes_that_are_closed() {
    let vote = |seq: u64, closed| {
        let vector = Vector([("c1".into(), Component::bare(Origin(format!("o{seq}")), Seq(seq)))].into());
        let json = serde_json::json!({"v": vector, "s": seq, "i": {}, "p": ["/*"]});
        Vote { closed, ..serde_json::from_value::<Vote>(json).unwrap() }
    };
    let votes = vec![vote(5, Some(Outcome::Purged)), vote(6, None)];
    let record = Record { votes, owed: vec![vote(4, Some(Outcome::Owed))], ..Record::first(Seq(6)) };
    let machine = Rollout::resume(identity(), Policy::default(), Seq(0), Some(record));
    let numbers = machine.numbers();
    assert_eq!(numbers.iter().map(|(_, seq)| seq.0).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(machine.votes_beside(&[]).len(), 1, "what is closed is not logged again");
    let rollouts: BTreeSet<&String> = numbers.iter().map(|(rollout, _)| rollout).collect();
    assert_eq!(rollouts.len(), 3);
}

// Faults: A6
#[test]
fn a_watch_that_lags_costs_one_look_and_changes_nothing() {
    let mut story = Story::begin(complete("a", 1));
    story.see(complete("b", 7));
    story.effects.clear();
    story.step(Event::Seen(Box::new(complete("a", 3))));
    story.pass(Duration::from_secs(60));
    let looks = story.effects.iter().filter(|effect| matches!(effect, Effect::Look)).count();
    assert_eq!((looks, story.purges().len(), story.durable().version), (1, 0, version("b")));
}

#[test]
fn what_the_ledger_has_lost_is_written_again_and_the_edge_brought_back() {
    let mut story = Story::begin(complete("a", 1));
    let backup = story.durable();
    story.see(complete("b", 2));
    let (known, before) = (story.durable(), story.references());
    let mut story = resumed(story, Some(backup), Some(&known), 0);
    story.see(complete("a", 1));
    story.pass(Duration::from_secs(10));
    let now = story.durable();
    assert_eq!(now.version, version("a"), "what runs since the restore");
    assert!(now.seq > known.seq, "{} after {}", now.seq, known.seq);
    assert_eq!(story.references().len(), 1, "the edge had b");
    assert!(!before.contains(&story.references()[0]));
    story.see(complete("b", 2));
    story.pass(Duration::from_secs(10));
    assert_eq!(story.references().len(), 2, "b again is another rollout than the one before the restore");
    assert!(before.iter().all(|reference| !story.references().contains(reference)));
}

#[test]
fn a_rollout_under_way_finds_out_by_the_conflict_of_its_next_write() {
    let mut story = Story::begin(complete("a", 1));
    let backup = story.durable();
    story.see(half("b", 2));
    let known = story.durable();
    story.held = ["store"].into();
    story.see(complete("b", 2));
    story.held.clear();
    story.step(Event::Conflicted(Some(Box::new(backup)), Seq(0).into()));
    story.pass(Duration::from_secs(10));
    assert!(story.durable().seq > known.seq);
    assert_eq!(story.durable().version, version("b"));
    assert_eq!(story.references().len(), 1);
}

#[test]
fn a_workload_this_life_had_removed_counts_above_every_number_it_has_seen() {
    let mut story = Story::begin(complete("a", 1));
    story.see(half("b", 2));
    let backup = story.durable();
    let mut story = resumed(story, Some(backup), None, 40);
    story.see(complete("b", 2));
    story.pass(Duration::from_secs(10));
    assert!(story.durable().seq > Seq(40));
    assert_eq!(story.references().len(), 1);
}

#[test]
fn in_a_group_what_the_ledger_has_lost_is_kept_in_the_record_until_it_is_adopted() {
    let story = Story::begin(complete("a", 1));
    let backup = story.durable();
    let known = Record { seq: Seq(5), revision: 9, ..backup.clone() };
    let grouped = || Identity { grouped: true, ..identity() };
    let resume = |held: &Record| Rollout::resume(grouped(), Policy::default(), Seq(0), Some(held.clone()));
    let mut machine = resume(&backup).remembering(Some(&known), Seq(0));
    let effects = machine.step(Timestamp::from_millis(0), Event::Seen(Box::new(complete("a", 1))));
    let stored = effects.iter().find_map(|effect| if let Effect::Store(record) = effect { Some(record) } else { None });
    assert_eq!(stored.unwrap().set_back, Some((Seq(5), 9)));
    assert_eq!(stored.unwrap().seq, backup.seq, "nothing is counted on by itself");

    let adopted = Record { seq: Seq(6), revision: 10, ..backup };
    let mut machine = resume(&adopted).remembering(Some(&known), Seq(0));
    let effects = machine.step(Timestamp::from_millis(0), Event::Seen(Box::new(complete("a", 1))));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Store(_))), "{effects:?}");
    // The group hears of it a moment later.
    let view = View { set_back: Some((Seq(5), 9)), ..View::default() };
    let effects = machine.step(Timestamp::from_millis(0), Event::ViewChanged(NumberedView { number: 0, view }));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Store(_))), "{effects:?}");
}

// A Redis that lost writes at its fail-over, or an unnoticed backup: only the nonce distinguishes the two rollouts.
// Faults: A5
#[test]
fn a_number_that_is_given_out_twice_has_another_reference_each_time() {
    let purged = |tag: &str, bits| {
        let story = Story::begin(complete("a", 1));
        let held = story.durable();
        let machine = Rollout::resume(identity(), Policy::default(), Seq(0), Some(held)).drawing(Nonces::seeded(bits));
        let mut story = Story { machine, effects: Vec::new(), ..story };
        story.see(complete(tag, 2));
        story.pass(Duration::from_secs(10));
        (story.durable().seq, story.references())
    };
    let (first, second) = (purged("b", 1), purged("c", 2));
    assert_eq!((first.0, second.0), (Seq(2), Seq(2)));
    assert!(first.1.len() == 1 && second.1.len() == 1 && first.1 != second.1, "{first:?} {second:?}");
}

#[test]
fn each_number_has_a_nonce_of_its_own_wherever_it_is_raised() {
    let story = Story::begin(complete("a", 1));
    let held = story.durable();
    let mut known = Record { seq: Seq(9), ..held.clone() };
    known.revision += 40;
    let resumed = |held: Option<Record>, known: Option<&Record>, spent| {
        let machine = Rollout::resume(identity(), Policy::default(), Seq(0), held).drawing(Nonces::seeded(7));
        machine.remembering(known, Seq(spent)).arriving(Arrival::New)
    };
    let told = |machine| {
        let mut story = Story { machine, effects: Vec::new(), ..Story::begin(complete("a", 1)) };
        story.see(complete("b", 2));
        story.durable().nonce
    };
    // Seen for the first time, changed, written again after a set-back, and counted above what was lost.
    let first = told(resumed(None, None, 0));
    let changed = told(resumed(Some(held.clone()), None, 0));
    let again = told(resumed(Some(held.clone()), Some(&known), 0));
    let above = told(resumed(Some(held), None, 12));
    assert!([first, changed, again, above].iter().all(|nonce| !nonce.is_none()), "{first} {changed} {again} {above}");
}

// Faults: A8
#[test]
fn what_a_lost_part_of_the_ledger_forgot_is_purged_once_and_its_votes_are_closed() {
    let mut story = Story::begin(complete("a", 1));
    story.held.insert("purge");
    story.see(complete("b", 2));
    let (held, before) = (story.durable(), story.references());
    assert!(held.votes.iter().any(|vote| vote.closed.is_none()), "its purge is under way");
    let lost = Seq(1 << 32);
    let machine = Rollout::resume(identity(), Policy::default(), Floor { seq: lost, lost }, Some(held)).bereft(true);
    let mut story = Story { machine, effects: Vec::new(), ..story };
    story.held.remove("purge");
    story.see(complete("b", 2));
    story.pass(Duration::from_secs(10));
    let now = story.durable();
    assert!(now.seq > lost && now.revision > lost.0 && !now.is_open(), "{now:?}");
    let ends: Vec<Outcome> = now.history.iter().map(|closed| closed.outcome.clone()).collect();
    assert_eq!(ends[ends.len() - 2..], [Outcome::SetBack, Outcome::Purged]);
    assert_eq!(story.references().len(), 1);
    assert_ne!(story.references(), before);
    let said = |effect: &Effect| matches!(effect, Effect::Tell(notice) if notice.message.contains("was set back"));
    assert_eq!(story.effects.iter().filter(|effect| said(effect)).count(), 1);
}

// Faults: A8
#[test]
fn in_a_group_a_workload_whose_record_was_lost_is_held_until_it_is_adopted() {
    let lost = Seq(1 << 32);
    let grouped = || Identity { grouped: true, ..identity() };
    let resume = |record| Rollout::resume(grouped(), Policy::default(), Floor { seq: lost, lost }, record);
    let first = |machine: Rollout| {
        let mut machine = machine.arriving(Arrival::New);
        let effects = machine.step(Timestamp::from_millis(0), Event::Seen(Box::new(complete("a", 1))));
        effects.into_iter().find_map(|effect| if let Effect::Store(record) = effect { Some(*record) } else { None })
    };
    let forgotten = first(resume(None).bereft(true)).unwrap();
    assert_eq!((forgotten.set_back, forgotten.seq > lost, forgotten.revision > lost.0), (Some((lost, 0)), true, true));
    assert_eq!(first(resume(None).bereft(false)).unwrap().set_back, None, "it is new");

    // Of what is left, the boards know whether others have seen more. It keeps its number until then.
    let held = Story::begin(complete("a", 1)).durable();
    assert_eq!(first(resume(Some(held)).bereft(true)), None);
}
