//! Rollouts as stories. `tests/model` searches every order of events; these say in a line each what must come out.

mod barrier;
mod between;
mod compare;
mod edge;
mod goal;
mod group;
mod many;
mod one_write;
mod proving;
mod request;
mod restored;
mod served;
mod sights;
mod site;
mod stand_in;
mod traced;
mod waits;
mod withdrawn;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;
use crate::agreement::group as agreement;
use crate::bounds::policy::{AtBarrier, OnRollback};
use crate::purges::purge::Progress;
use crate::records::record::{Change, Failure, Outcome, Phase};
use crate::testing::{answers, identity, settled, unreadable_image, version};
use kernel::id::{self, Component};
use kernel::names::image::Version;
use kinds::reported::{GivenUp, Replicas, Says};
use notices::notice::Kind;

/// Two pods of `tag`, all available.
fn complete(tag: &str, generation: i64) -> Workload {
    settled(version(tag), generation, 2)
}

/// One of two pods is new and available.
fn paused() -> Says {
    Says::Held("the rollout is paused".to_owned())
}

fn half(tag: &str, generation: i64) -> Workload {
    let replicas = Replicas { desired: 2, total: 2, updated: 1, ready: 2, available: 2 };
    Workload { replicas, ..complete(tag, generation) }
}

fn without_barrier(on_rollback: OnRollback) -> Policy {
    let barrier = AtBarrier { settle: Duration::ZERO, drain_timeout: Duration::ZERO };
    Policy { barrier, on_rollback, ..Policy::default() }
}

/// A machine in a world where everything it asks for works, except what a test takes in hand.
struct Story {
    machine: Rollout,
    now: Timestamp,
    cluster: Option<Workload>,
    /// What was done, in order.
    effects: Vec<Effect>,
    /// Effects of these names are recorded and not answered.
    held: BTreeSet<&'static str>,
}

impl Story {
    /// Without the barrier, which is a story of its own.
    fn begin(workload: Workload) -> Self {
        Self::under(without_barrier(OnRollback::default()), workload)
    }

    fn under(policy: Policy, workload: Workload) -> Self {
        let record = baseline(&workload, workload.version.as_ref().unwrap(), Seq(0));
        let mut story = Self::resumed(policy, record);
        story.see(workload);
        story
    }

    fn resumed(policy: Policy, record: Record) -> Self {
        let machine = Rollout::resume(identity(), policy, Seq(0), Some(record));
        let (now, effects, held) = (Timestamp::from_millis(0), Vec::new(), BTreeSet::new());
        Self { machine, now, cluster: None, effects, held }
    }

    fn see(&mut self, workload: Workload) {
        self.cluster = Some(workload.clone());
        self.step(Event::Seen(Box::new(workload)));
    }

    fn step(&mut self, event: Event) {
        let effects = self.machine.step(self.now, event);
        self.perform(effects);
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now.after(time);
        while let Some(next) = self.machine.next_deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            let effects = self.machine.tick(self.now);
            self.perform(effects);
        }
        self.now = end;
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            assert_eq!(self.machine.breaks(&effect), [], "{effect:?}");
            self.effects.push(effect.clone());
            if self.held.contains(effect.name()) {
                continue;
            }
            for event in answers(&effect, self.cluster.as_ref()) {
                self.step(event);
            }
        }
    }

    fn record(&self) -> &Record {
        self.machine.durable().unwrap()
    }

    fn purges(&self) -> BTreeSet<&Reference> {
        self.effects
            .iter()
            .filter_map(|e| if let Effect::Purge(order) = e { Some(&order.reference) } else { None })
            .collect()
    }

    fn last(&self) -> Option<&Outcome> {
        self.record().history.last().map(|closed| &closed.outcome)
    }

    fn state(&self) -> String {
        self.machine.summary(self.now).unwrap().state
    }

    fn told(&self, kind: Kind) -> usize {
        self.effects.iter().filter(|e| matches!(e, Effect::Tell(notice) if notice.kind == kind)).count()
    }
}

#[test]
fn a_rollout_is_purged_once_and_told() {
    let mut story = Story::begin(complete("a", 1));
    story.see(half("b", 2));
    story.see(complete("b", 2));
    story.see(complete("b", 2));
    story.pass(Duration::from_secs(3600));
    assert_eq!((story.purges().len(), story.last()), (1, Some(&Outcome::Purged)));
    assert_eq!(story.told(Kind::PurgeCompleted), 1);
    assert!(!story.record().is_open());
    assert_eq!(story.machine.next_deadline(), None);
}

#[test]
fn going_back_to_an_old_version_is_purged_under_a_new_reference() {
    let mut story = Story::begin(complete("a", 1));
    story.see(complete("b", 2));
    story.see(complete("a", 3));
    assert_eq!(story.purges().len(), 2);
}

#[test]
fn a_rollout_that_is_overtaken_while_its_purge_is_under_way_keeps_where_it_came_from() {
    let mut story = Story::begin(complete("a", 1));
    story.held.insert("purge");
    story.see(complete("b", 2));
    story.see(complete("c", 3));
    let orders: Vec<Reference> = story.purges().into_iter().cloned().collect();
    for reference in orders {
        story.step(Event::Purged(reference.clone(), Progress::Created("I1".into())));
        story.step(Event::Purged(reference, Progress::Completed(None)));
    }
    let history = &story.record().history;
    let of = |seq: u64| history.iter().find(|closed| closed.seq == Seq(seq)).map(|closed| closed.change.as_str());
    assert_eq!((of(2), of(3).is_some_and(|change| change.ends_with("→ c"))), (Some("web: a → b"), true), "{history:?}");
    let completed = |effect: &&Effect| matches!(effect, Effect::Tell(told) if told.kind == Kind::PurgeCompleted && told.change == "web: a → b");
    assert_eq!(story.effects.iter().filter(completed).count(), 1);
}

#[test]
fn a_version_that_comes_back_before_another_was_complete_is_skipped_where_that_is_wanted() {
    let mut story = Story::under(without_barrier(OnRollback::Close), complete("a", 1));
    story.see(half("b", 2));
    story.see(complete("a", 3));
    assert_eq!((story.purges().len(), story.last()), (0, Some(&Outcome::Returned)));
}

#[test]
fn if_unsuccessful_the_wait_times_out_on_a_fresh_look_and_nothing_is_purged() {
    let mut story = Story::begin(complete("a", 1));
    story.see(half("b", 2));
    story.pass(Duration::from_secs(14 * 60));
    assert_eq!(story.record().phase, Phase::Rolling);
    story.pass(Duration::from_secs(60));
    assert_eq!(story.record().phase, Phase::Failed(Failure::TimedOut));
    assert_eq!(story.effects.iter().filter(|effect| **effect == Effect::Look).count(), 1);
    assert_eq!((story.purges().len(), story.told(Kind::RolloutFailed)), (0, 1));
}

// Faults: P4
#[test]
fn a_failure_says_why_pods_were_not_made() {
    let replicas = Replicas { desired: 2, total: 2, updated: 0, ready: 2, available: 2 };
    let refused = Some("FailedCreate: exceeded quota: compute".to_owned());
    let mut story = Story::begin(complete("a", 1));
    story.see(Workload { replicas, refused, ..complete("b", 2) });
    story.pass(Duration::from_secs(15 * 60));
    let why = story.record().history.last().map(|closed| closed.why.clone()).unwrap_or_default();
    assert_eq!(why, "0 of 2 pods available; FailedCreate: exceeded quota: compute");
    let notice = |effect: &&Effect| matches!(effect, Effect::Tell(told) if told.message.contains("exceeded quota"));
    assert_eq!(story.effects.iter().filter(notice).count(), 1);
}

#[test]
fn a_completion_that_the_watch_has_hidden_is_found_by_the_look_at_the_timeout() {
    let mut story = Story::begin(complete("a", 1));
    story.see(half("b", 2));
    story.cluster = Some(complete("b", 2));
    story.pass(Duration::from_secs(15 * 60));
    assert_eq!(story.last(), Some(&Outcome::Purged));
}

#[test]
fn what_completes_after_it_failed_is_purged_after_all() {
    let mut story = Story::begin(complete("a", 1));
    story.see(half("b", 2));
    story.pass(Duration::from_secs(15 * 60));
    story.see(complete("b", 2));
    assert_eq!((story.record().change, story.last()), (Change::Recovered, Some(&Outcome::Purged)));
}

#[test]
fn a_missed_deadline_is_believed_when_it_is_seen_twice() {
    let late = Workload { says: Says::GivenUp(GivenUp::DeadlineExceeded { last_update: "t1".into() }), ..half("b", 2) };
    let mut story = Story::begin(complete("a", 1));
    story.see(late);
    assert_eq!(story.record().phase, Phase::Rolling);
    story.pass(Duration::from_secs(2));
    assert_eq!(story.record().phase, Phase::Failed(Failure::ProgressDeadlineExceeded));
}

#[test]
fn a_missed_deadline_that_was_none_leaves_no_deadline_behind() {
    let late = Workload { says: Says::GivenUp(GivenUp::DeadlineExceeded { last_update: "t1".into() }), ..half("b", 2) };
    let mut story = Story::begin(complete("a", 1));
    story.see(late);
    story.see(complete("b", 2));
    story.pass(Duration::from_secs(60));
    assert_eq!((story.last(), story.machine.next_deadline()), (Some(&Outcome::Purged), None));
}

#[test]
fn the_clock_of_a_paused_rollout_stands_still_and_begins_anew_after_it() {
    let mut story = Story::begin(complete("a", 1));
    story.see(half("b", 2));
    story.pass(Duration::from_secs(10 * 60));
    story.see(Workload { says: paused(), ..half("b", 3) });
    story.pass(Duration::from_secs(24 * 3600));
    assert_eq!(story.record().phase, Phase::Rolling);
    story.see(half("b", 4));
    story.pass(Duration::from_secs(14 * 60));
    assert_eq!(story.record().phase, Phase::Rolling);
    story.pass(Duration::from_secs(60));
    assert_eq!(story.record().phase, Phase::Failed(Failure::TimedOut));
}

#[test]
fn moments_in_which_a_pod_is_away_do_not_add_up_while_a_partition_holds_others() {
    let mut story = Story::begin(complete("a", 1));
    let kept = || Says::Held("its partition of 1 keeps db-0 as it was".to_owned());
    for _ in 0..10 {
        story.see(Workload { says: kept(), ..half("b", 2) });
        story.pass(Duration::from_secs(24 * 3600));
        story.see(half("b", 2));
        story.pass(Duration::from_secs(10 * 60));
        assert_eq!(story.record().phase, Phase::Rolling);
    }
    story.pass(Duration::from_secs(5 * 60));
    assert_eq!(story.record().phase, Phase::Failed(Failure::TimedOut), "it is away for too long at once");
}

#[test]
fn an_image_that_cannot_be_read_becomes_a_condition_and_no_hot_loop() {
    let mut story = Story::begin(complete("a", 1));
    story.see(half("b", 2));
    story.see(Workload { version: Err(unreadable_image()), ..half("b", 3) });
    story.pass(Duration::from_secs(3600));
    assert_eq!(story.record().conditions.len(), 1);
    assert_eq!(story.machine.next_deadline(), None);
}

#[test]
fn an_error_after_the_version_was_stored_loses_nothing() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["find_site", "recheck", "match", "purge"].into();
    story.see(complete("b", 2));
    let record = story.record().clone();
    assert_eq!(record.version, version("b"));
    // The process ends here; the next one has only the ledger, and what it sees.
    let machine = Rollout::resume(identity(), Policy::default(), Seq(0), Some(record));
    let mut story = Story { machine, held: BTreeSet::new(), effects: Vec::new(), ..story };
    story.see(complete("b", 2));
    assert_eq!((story.purges().len(), story.last()), (1, Some(&Outcome::Purged)));
}

#[test]
fn a_write_of_unknown_outcome_is_repeated_as_it_was() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["store"].into();
    story.see(half("b", 2));
    story.step(Event::StoreFailed("timed out".into()));
    story.see(complete("b", 2));
    story.pass(Duration::from_secs(2));
    let stores: Vec<&Effect> = story.effects.iter().filter(|effect| effect.name() == "store").collect();
    assert_eq!((stores.len(), stores.first()), (2, stores.last()));
}

#[test]
fn a_conflict_with_what_the_draft_says_leaves_no_deadline_behind() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["store"].into();
    story.see(half("b", 2));
    let Some(Effect::Store(theirs)) = story.effects.last().cloned() else { panic!("no write") };
    story.step(Event::Conflicted(Some(theirs), Seq(0).into()));
    story.pass(Duration::from_secs(5));
    assert!(story.machine.next_deadline().is_none_or(|next| next > story.now));
}

#[test]
fn a_removal_under_way_lets_no_number_be_used_again() {
    let mut story = Story::begin(complete("a", 1));
    story.see(complete("b", 2));
    story.held = ["remove"].into();
    story.cluster = None;
    story.pass(Duration::from_secs(5));
    story.step(Event::Missed);
    story.see(Workload { uid: "uid-2".into(), observed_generation: 0, ..half("b", 1) });
    story.step(Event::Stored);
    assert!(story.record().seq > Seq(2), "{:?}", story.record().seq);
}

#[test]
fn an_owner_who_opts_out_before_the_vote_is_not_purged() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["recheck"].into();
    story.see(complete("b", 2));
    let asked =
        story.effects.iter().find_map(|e| if let Effect::Recheck(vector) = e { Some(vector.clone()) } else { None });
    let vector = asked.unwrap();
    let mut out = complete("b", 2);
    out.tuning.disabled = true;
    story.held.clear();
    story.step(Event::Rechecked(vector, Some(Box::new(out))));
    story.pass(Duration::from_secs(3600));
    assert_eq!(story.purges().len(), 0);
}

#[test]
fn hosts_found_for_one_rollout_are_not_those_of_the_next() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["find_site"].into();
    story.see(complete("b", 2));
    story.see(complete("c", 3));
    story.step(Event::SiteFound(FoundSite::default()));
    assert_eq!(story.effects.iter().filter(|effect| effect.name() == "find_site").count(), 2);
}

#[test]
fn a_request_during_a_rollout_joins_it_and_costs_one_purge() {
    let request = |at: &str| {
        let mut workload = half("a", 1);
        workload.tuning.asks.requested_at = Some(at.into());
        workload
    };
    let mut story = Story::begin(complete("a", 1));
    story.see(request("1"));
    story.see(request("2"));
    assert_eq!(story.last(), None, "the rollout in flight goes on");
    let mut done = complete("a", 1);
    done.tuning.asks.requested_at = Some("2".into());
    story.see(done);
    assert_eq!((story.last(), story.purges().len()), (Some(&Outcome::Purged), 1));
}

#[test]
fn a_site_that_cannot_be_read_is_explained_until_it_can_be() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["find_site"].into();
    story.see(complete("b", 2));
    assert_eq!(story.state(), "complete; checking once more before it is purged");
    story.step(Event::SiteFailed(format!("failed to list ingresses in shop: {}", "forbidden ".repeat(1000))));
    let state = story.state();
    assert!(
        state.starts_with("complete; cannot find its hosts: failed to list ingresses in shop: forbidden"),
        "{state}"
    );
    assert!(state.contains("; tried again in ") && state.len() < 300, "{state}");
    story.pass(Duration::from_secs(2));
    assert!(story.state().ends_with("; being tried again"), "{}", story.state());
    story.held.clear();
    story.step(Event::SiteFound(FoundSite::default()));
    assert!(!story.state().contains("cannot"), "{}", story.state());
}

#[test]
fn a_record_that_cannot_be_written_is_explained() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["store"].into();
    story.see(half("b", 2));
    story.step(Event::StoreFailed("failed to write shop/web: forbidden".into()));
    assert!(
        story.state().contains("left; cannot write the record: failed to write shop/web: forbidden; tried again in")
    );
}

#[test]
fn a_deleted_workload_whose_record_cannot_be_removed_is_explained() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["remove"].into();
    story.cluster = None;
    story.step(Event::Missed);
    story.step(Event::StoreFailed("forbidden".into()));
    let state = story.state();
    assert!(state.starts_with("the workload was deleted; its record goes too; cannot write the record: "), "{state}");
}

#[test]
fn a_look_that_fails_is_explained_and_outdates_the_hosts() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["recheck"].into();
    story.see(complete("b", 2));
    story.step(Event::RecheckFailed("failed to read shop/web: timed out".into()));
    let state = story.state();
    assert!(state.starts_with("complete; cannot vote for it yet: failed to read shop/web: timed out; "), "{state}");
    story.held.clear();
    story.pass(Duration::from_secs(2));
    assert_eq!(story.effects.iter().filter(|effect| effect.name() == "find_site").count(), 2);
    assert_eq!(story.last(), Some(&Outcome::Purged));
}

#[test]
fn after_a_refuted_look_it_says_what_is_missing() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["recheck"].into();
    story.see(complete("b", 2));
    let replicas = Replicas { desired: 2, total: 2, updated: 2, ready: 1, available: 1 };
    let vector = Vector::of_one("eu-1".into(), Component::bare("ledger".into(), Seq(2)));
    let ill = Workload { replicas, ..complete("b", 2) };
    story.step(Event::Rechecked(vector, Some(Box::new(ill))));
    assert_eq!(story.state(), "was complete; now 1 of 2 pods available");
}

#[test]
fn a_clock_that_stands_still_says_why() {
    let mut story = Story::begin(complete("a", 1));
    story.see(half("b", 2));
    story.pass(Duration::from_secs(60));
    let mut out = half("b", 2);
    out.tuning.disabled = true;
    story.see(out);
    assert_eq!(story.state(), "disabled by its annotation; the clock stands still at 1m of 15m");
    story.see(Workload { version: Err(unreadable_image()), ..half("b", 3) });
    let state = format!("its image cannot be read: {}; the clock stands still at 1m of 15m", unreadable_image());
    assert_eq!(story.state(), state);
    let none = Replicas { desired: 0, total: 0, updated: 0, ready: 0, available: 0 };
    story.see(Workload { replicas: none, ..half("b", 4) });
    assert_eq!(story.state(), "the workload is scaled to zero; the clock stands still at 1m of 15m");
    story.see(Workload { says: paused(), ..half("b", 5) });
    assert_eq!(story.state(), "the rollout is paused; the clock stands still");
}

#[test]
fn a_first_sight_of_an_unreadable_image_is_unusable_until_it_is_readable() {
    let ill = Workload { version: Err(unreadable_image()), ..complete("a", 1) };
    assert_eq!(attention(None, &ill, true, &Policy::default()), Attention::Idle);
    assert_eq!(unusable(None, &ill, &Policy::default()), Some(format!("image: {}", unreadable_image())));
    assert_eq!(unusable(None, &complete("a", 1), &Policy::default()), None);
}

#[test]
fn a_covered_purge_is_waited_for_after_a_restart_and_not_made_again() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["purge"].into();
    story.see(complete("b", 2));
    let reference = (*story.purges().first().unwrap()).clone();
    let covered = Progress::Covered { by: "later".into(), invalidation: "I9".into() };
    story.step(Event::Purged(reference, covered));
    let machine = Rollout::resume(identity(), Policy::default(), Seq(0), story.machine.durable().cloned());
    let mut story = Story { machine, effects: Vec::new(), ..story };
    story.see(complete("b", 2));
    let ordered: Vec<_> = story
        .effects
        .iter()
        .filter_map(|effect| if let Effect::Purge(order) = effect { order.invalidation.clone() } else { None })
        .collect();
    assert_eq!(ordered, ["I9".into()]);
}
