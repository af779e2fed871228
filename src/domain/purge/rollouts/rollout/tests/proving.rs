//! What is looked for at the edge after a purge, and the further purge that follows from it. The edge here is a cache of one page, written
//! without a word of the machine's: it keeps what it was given, and says how old that is.

use super::*;
use crate::bounds::policy::Proof;
use crate::records::{record, record_codec};
use crate::rollouts::edge;
use kernel::names::distribution::DistributionId;
use proof::asked::{Answer, Answers, Body, Headers, Question, Reply};
use proof::look::Again;
use proof::tally::Found;

/// A cache with one answer of the origin.
#[derive(Clone, Copy)]
struct Cached {
    made: Timestamp,
    version: &'static str,
}

fn answer(question: &Question, now: Timestamp, cached: Option<Cached>) -> Answers {
    let shown = cached.unwrap_or(Cached { made: now, version: "b" });
    let age = (now.since(shown.made).as_millis() / 1000).to_string();
    let hit = if cached.is_some() { "Hit from cloudfront" } else { "Miss from cloudfront" };
    let mut lines = vec![("x-amz-cf-id", "id"), ("x-amz-cf-pop", "FRA56-P1"), ("x-cache", hit)];
    lines.push(("x-version", shown.version));
    if cached.is_some() {
        lines.push(("age", &age));
    }
    let path = question.page.path().as_str().to_owned();
    let of = |lines: Vec<(&str, &str)>| {
        let headers = Headers::of(lines, Some("x-version"));
        let answer = Answer { path: path.clone(), started: now, ended: now, status: 200, headers, body: Body::Unread };
        Reply { hops: vec![answer], failure: None }
    };
    let pods = if question.asks_pods { vec![of(vec![("x-version", "b")]); 2] } else { Vec::new() };
    Answers { edge: of(lines), pods }
}

/// A story whose purges take two seconds, in front of an edge that is asked as it is at that moment.
pub(super) struct Site {
    pub(super) story: Story,
    cached: Option<Cached>,
    /// What a purge leaves: the cache is emptied, or stays as it is.
    keeps: u32,
    asked: usize,
    done: usize,
}

pub(super) fn policy(again_max: u8) -> Policy {
    let proof = Proof { enabled: true, again: Again::up_to(again_max), ..Proof::default() };
    Policy { proof, ..without_barrier(OnRollback::default()) }
}

impl Site {
    pub(super) fn under(policy: Policy, marker: Option<&str>, keeps: u32) -> Self {
        let mut workload = complete("a", 1);
        workload.tuning.proof.marker = marker.map(|marker| marker.parse().unwrap());
        let mut story = Story::under(policy, workload);
        story.held.extend(["purge", "ask_edge"]);
        story.pass(Duration::from_secs(3_600));
        let cached = Some(Cached { made: Timestamp::from_millis(0), version: "a" });
        Self { story, cached, keeps, asked: 0, done: 0 }
    }

    pub(super) fn roll(&mut self, tag: &str, generation: i64) {
        let mut workload = complete(tag, generation);
        workload.tuning = self.story.cluster.as_ref().unwrap().tuning.clone();
        self.story.see(workload);
        self.run(0);
    }

    /// Seconds pass, in each of which CloudFront does what it was ordered, and the edge answers what it is asked.
    pub(super) fn run(&mut self, seconds: u64) {
        for _ in 0..=seconds {
            while self.done < self.story.effects.len() {
                let effect = self.story.effects[self.done].clone();
                self.done += 1;
                match effect {
                    Effect::Purge(order) if order.invalidation.is_none() => self.purge(order.reference),
                    Effect::AskEdge(of, question) => {
                        self.asked += 1;
                        let answers = answer(&question, self.story.now, self.cached);
                        // What it had to fetch is kept.
                        self.cached.get_or_insert(Cached { made: self.story.now, version: "b" });
                        self.story.step(Event::EdgeAnswered(of, question.id, Box::new(answers)));
                    }
                    _ => {}
                }
            }
            if seconds > 0 {
                self.story.pass(Duration::from_secs(1));
            }
        }
    }

    fn purge(&mut self, reference: Reference) {
        let called = self.story.now;
        self.story.step(Event::Purged(reference.clone(), Progress::Created("I1EXAMPLE".into())));
        self.story.pass(Duration::from_secs(2));
        match self.keeps.checked_sub(1) {
            Some(left) => self.keeps = left,
            None => self.cached = None,
        }
        self.story.step(Event::Purged(reference, Progress::Completed(Some(called))));
    }

    fn told(&self, kind: Kind) -> Vec<&str> {
        let told = self.story.effects.iter().filter_map(|effect| match effect {
            Effect::Tell(notice) if notice.kind == kind => Some(notice.message.as_str()),
            _ => None,
        });
        told.collect()
    }

    /// What is said to who waits until the edge is known to be fresh.
    fn not_fresh(&self) -> Option<String> {
        let (record, policy) = (Some(self.story.record()), policy(1));
        edge::at_edge(record, self.story.cluster.as_ref(), &policy).proved(record).stale()
    }

    fn seen(&self) -> &str {
        self.story.record().history.last().and_then(|closed| closed.seen.as_ref()).map_or("", |seen| &seen.words)
    }
}

#[test]
fn what_a_purge_left_is_looked_at_told_once_and_remembered() {
    let mut site = Site::under(policy(1), None, 0);
    site.roll("b", 2);
    assert!(site.story.record().is_open(), "a look is work");
    assert_eq!(site.not_fresh(), Some("it is purged, and being looked at".to_owned()));
    site.run(60);
    let renewed = site.not_fresh().unwrap_or_default();
    assert!(renewed.starts_with("nothing stored before the purge is left"), "renewed is not fresh: {renewed}");
    assert_eq!(site.told(Kind::EdgeRenewed).len(), 1, "{:?}", site.story.effects);
    assert!(
        site.seen().starts_with("nothing stored before the purge is left at FRA56-P1: www.example.com/"),
        "{}",
        site.seen()
    );
    assert_eq!((site.story.purges().len(), site.story.record().looks.len()), (1, 0));
    assert!(!site.story.record().is_open());
    assert!(site.story.effects.contains(&Effect::LeaveEdge(site.story.purges().first().copied().unwrap().clone())));
    assert_eq!(site.story.machine.next_deadline(), None);
    assert!(site.story.state().contains("nothing stored before the purge is left"), "{}", site.story.state());
}

#[test]
fn without_the_wish_nothing_is_asked() {
    let off = Policy { proof: Proof { enabled: false, ..Proof::default() }, ..policy(1) };
    let mut site = Site::under(off, None, 1);
    site.roll("b", 2);
    site.run(120);
    assert!(site.not_fresh().unwrap_or_default().contains("nobody looked at it by a marker"));
    assert_eq!((site.asked, site.story.purges().len()), (0, 1));
    assert!(!site.story.record().is_open());
}

#[test]
fn an_edge_that_keeps_what_was_there_is_purged_once_more_and_then_it_is_renewed() {
    let mut site = Site::under(policy(1), None, 1);
    site.roll("b", 2);
    site.run(25);
    assert_eq!(site.story.purges().len(), 1, "before half a minute nothing old counts");
    site.run(120);
    let [repeated] = site.told(Kind::PurgeRepeated)[..] else {
        panic!("told once: {:?}", site.told(Kind::PurgeRepeated))
    };
    assert!(
        repeated.starts_with("www.example.com/ is stale at FRA56-P1: stored ")
            && repeated.ends_with("; it is purged once more"),
        "{repeated}"
    );
    assert_eq!((site.story.purges().len(), site.told(Kind::EdgeStale).len()), (2, 0));
    assert_eq!(site.told(Kind::EdgeRenewed).len(), 1);
    assert!(site.seen().starts_with("nothing stored before the purge is left"), "{}", site.seen());
    assert!(!site.story.record().is_open());
}

#[test]
fn where_one_more_is_wanted_in_any_case_it_is_made_once_told_and_looked_at() {
    let proof = Proof { again: Again { max: 1, after_s: Some(60) }, ..policy(1).proof };
    let mut site = Site::under(Policy { proof, ..policy(1) }, None, 0);
    site.roll("b", 2);
    site.run(55);
    assert_eq!((site.asked, site.story.purges().len()), (0, 1));
    let state = site.story.state();
    assert!(state.contains("E1EXAMPLE is purged once more 1m after it was, as purge.again_after says"), "{state}");
    let not_fresh = site.not_fresh().unwrap_or_default();
    assert!(not_fresh.ends_with("will be once more before anybody looks at it"), "{not_fresh}");
    site.story.pass(Duration::from_secs(10));
    let state = site.story.state();
    assert!(state.contains("E1EXAMPLE is being purged once more, as purge.again_after says"), "{state}");
    site.run(1);
    assert_eq!(site.story.purges().len(), 2);
    let [told] = site.told(Kind::PurgeRepeated)[..] else { panic!("told once") };
    assert!(told.ends_with("without a look, as purge.again_after says"), "{told}");
    site.run(600);
    assert_eq!((site.story.purges().len(), site.told(Kind::EdgeRenewed).len()), (2, 1));
    assert!(!site.story.record().is_open());
}

#[test]
fn it_is_never_purged_a_third_time_and_the_cause_is_told() {
    for (again_max, purges) in [(0, 1), (1, 2), (2, 3)] {
        let mut site = Site::under(policy(again_max), None, u32::MAX);
        site.roll("b", 2);
        site.run(900);
        assert_eq!((site.story.purges().len(), site.told(Kind::EdgeStale).len()), (purges, 1));
        assert_eq!(site.told(Kind::PurgeRepeated).len(), purges - 1);
        assert!(site.seen().contains("CloudFront has kept it"), "{}", site.seen());
        assert!(!site.story.record().is_open());
    }
}

#[test]
fn a_newer_purge_of_the_same_pages_ends_a_look_without_a_word() {
    // The newer one leaves what was there as well: whose look goes on then purges once more, and only one does.
    for (keeps, purges, repeated) in [(1, 2, 0), (2, 3, 1)] {
        let mut site = Site::under(policy(1), None, keeps);
        site.roll("b", 2);
        site.run(8);
        site.roll("c", 3);
        site.run(200);
        assert_eq!(
            (site.story.purges().len(), site.told(Kind::PurgeRepeated).len(), site.told(Kind::EdgeRenewed).len()),
            (purges, repeated, 1)
        );
    }
}

#[test]
fn what_new_pods_answer_is_not_compared_once_another_version_begins() {
    let mut site = Site::under(policy(1), Some("header:X-Version"), 1);
    site.roll("b", 2);
    site.run(8);
    let mut half = half("c", 3);
    half.tuning = site.story.cluster.as_ref().unwrap().tuning.clone();
    site.story.see(half);
    let asked = site.asked;
    site.run(200);
    assert_eq!((site.asked, site.story.purges().len(), site.story.record().looks.len()), (asked, 1, 0));
}

#[test]
fn a_late_answer_of_an_old_pod_is_found_by_what_it_holds() {
    let mut site = Site::under(policy(1), Some("header:X-Version"), 0);
    site.roll("b", 2);
    // It was in flight over the purge, and is stored after it.
    site.cached = Some(Cached { made: site.story.now, version: "a" });
    site.run(90);
    assert_eq!((site.story.purges().len(), site.told(Kind::PurgeRepeated).len()), (2, 1), "{:?}", site.seen());
    site.run(60);
    assert_eq!((site.told(Kind::EdgeFresh).len(), site.not_fresh()), (1, None));
    assert!(
        site.story.state().ends_with("looking at one page once more, 5 min after the purge"),
        "{}",
        site.story.state()
    );
    site.run(400);
    assert_eq!((site.told(Kind::EdgeFresh).len(), site.story.record().is_open()), (1, false));
    assert!(
        site.seen().starts_with("the edge is fresh: www.example.com/ at FRA56-P1 is what the new pods answer"),
        "{}",
        site.seen()
    );
}

#[test]
fn a_restart_goes_on_with_what_is_durable_and_asks_no_more_than_a_dozen_times() {
    let mut site = Site::under(policy(1), None, u32::MAX);
    site.roll("b", 2);
    for _ in 0..40 {
        site.run(20);
        let record = site.story.record().clone();
        let workload = site.story.cluster.clone().unwrap();
        let (now, effects, held) = (site.story.now, site.story.effects.clone(), site.story.held.clone());
        site.story = Story { now, effects, held, ..Story::resumed(policy(1), record) };
        site.story.see(workload);
    }
    // A life that did not see the order takes nothing for stale.
    assert_eq!((site.story.purges().len(), site.told(Kind::EdgeUnknown).len()), (1, 1), "{}", site.seen());
    assert!((1..=12).contains(&site.asked), "{}", site.asked);
    assert!(!site.story.record().is_open());
}

#[test]
fn a_further_purge_goes_on_after_a_restart_under_the_same_reference() {
    let mut site = Site::under(policy(1), None, u32::MAX);
    site.roll("b", 2);
    site.story.held.insert("store");
    site.run(70);
    assert_eq!(site.story.purges().len(), 1, "its evidence is not durable");
    site.story.held.remove("store");
    site.story.step(Event::Stored);
    site.run(90);
    assert_eq!(site.story.purges().len(), 2);
}

#[test]
fn what_is_switched_off_is_not_looked_at_any_more() {
    let mut site = Site::under(policy(1), None, 1);
    site.roll("b", 2);
    site.run(8);
    let mut workload = complete("b", 2);
    workload.tuning.proof.enabled = Some(false);
    site.story.see(workload);
    let asked = site.asked;
    site.run(200);
    assert_eq!((site.asked, site.story.record().looks.len(), site.story.purges().len()), (asked, 0, 1));
}

#[test]
fn a_purge_that_another_one_covered_is_looked_at_and_not_made_once_more() {
    let mut site = Site::under(policy(3), None, u32::MAX);
    site.story.held.insert("purge");
    site.story.see(complete("b", 2));
    site.done = site.story.effects.len();
    let reference = site.story.purges().first().copied().cloned().unwrap();
    let covered = Progress::Covered { by: "other".into(), invalidation: "I2EXAMPLE".into() };
    site.story.step(Event::Purged(reference.clone(), covered));
    let called = site.story.now;
    site.story.pass(Duration::from_secs(2));
    site.story.step(Event::Purged(reference, Progress::Completed(Some(called))));
    site.run(200);
    assert_eq!((site.story.purges().len(), site.told(Kind::EdgeStale).len()), (1, 1));
}

#[test]
fn a_rehearsed_purge_is_not_looked_at() {
    let mut site = Site::under(policy(1), None, 1);
    site.story.see(complete("b", 2));
    let reference = site.story.purges().first().copied().cloned().unwrap();
    site.done = site.story.effects.len();
    site.story.step(Event::Purged(reference.clone(), Progress::Created(id::InvalidationId::of_dry_run())));
    site.story.step(Event::Purged(reference, Progress::Completed(None)));
    site.run(60);
    assert_eq!((site.asked, site.story.record().looks.len()), (0, 0));
}

#[test]
fn where_no_host_is_known_that_is_said() {
    let mut site = Site::under(policy(1), None, 0);
    let mut workload = complete("b", 2);
    workload.tuning.distributions = Some(BTreeSet::from(["E1EXAMPLE".parse::<DistributionId>().unwrap()]));
    site.story.held.insert("find_site");
    site.story.see(workload);
    site.story.step(Event::SiteFound(FoundSite::default()));
    site.run(60);
    assert_eq!(
        site.told(Kind::EdgeUnknown),
        ["nothing says whether E1EXAMPLE is fresh: no host of it is known here, or no page of it was purged"]
    );
    assert!(!site.story.record().is_open());
}

#[test]
fn a_further_purge_that_is_denied_is_told_and_waited_for() {
    let mut site = Site::under(policy(1), None, u32::MAX);
    site.roll("b", 2);
    site.run(29);
    let before = site.story.effects.len();
    site.story.pass(Duration::from_secs(1));
    while site.told(Kind::PurgeRepeated).is_empty() {
        site.done = site.done.max(before);
        let asks: Vec<_> = site.story.effects[site.done..].to_vec();
        site.done = site.story.effects.len();
        for effect in asks {
            if let Effect::AskEdge(of, question) = effect {
                let answers = answer(&question, site.story.now, site.cached);
                site.story.step(Event::EdgeAnswered(of, question.id, Box::new(answers)));
            }
        }
        site.story.pass(Duration::from_secs(1));
    }
    let again = site.story.effects.iter().rev().find_map(|effect| match effect {
        Effect::Purge(order) => Some(order.clone()),
        _ => None,
    });
    let again = again.unwrap();
    for why in ["AccessDenied", "AccessDenied again"] {
        site.story.step(Event::Purged(again.reference.clone(), Progress::Failing(why.to_owned())));
    }
    let [denied] = site.told(Kind::PurgeStalled)[..] else { panic!("told once: {:?}", site.told(Kind::PurgeStalled)) };
    assert!(denied.starts_with("cannot purge E1EXAMPLE once more yet: AccessDenied; it is tried again"), "{denied}");
    assert!(site.story.state().contains("E1EXAMPLE is being purged once more"), "{}", site.story.state());
    site.story.step(Event::Purged(again.reference.clone(), Progress::OverBudget));
    let Some(Effect::Purge(wider)) = site.story.effects.last() else { panic!("ordered again") };
    assert_eq!((&wider.reference, wider.paths.len()), (&again.reference, 1));
    site.story.step(Event::Purged(again.reference, Progress::Overdue("AccessDenied".to_owned())));
    assert_eq!(site.told(Kind::PurgeFailed), ["cannot purge E1EXAMPLE once more: AccessDenied"]);
    assert_eq!(site.told(Kind::EdgeStale).len(), 1);
    assert!(!site.story.record().is_open());
}

#[test]
fn a_purge_that_is_asked_for_with_the_same_version_ends_no_look_by_a_marker_and_another_marker_does() {
    for marker in ["header:X-Version", "header:X-Release"] {
        let mut site = Site::under(policy(1), Some("header:X-Version"), 1);
        site.roll("b", 2);
        site.run(8);
        site.story.held.insert("find_site");
        let mut workload = site.story.cluster.clone().unwrap();
        workload.tuning.asks.requested_at = Some("now".to_owned());
        workload.tuning.proof.marker = Some(marker.parse().unwrap());
        site.story.see(workload);
        assert_eq!(site.story.record().looks.len(), usize::from(marker == "header:X-Version"), "{marker}");
    }
}

#[test]
fn what_is_known_to_be_stale_stays_so_when_another_distribution_is_purged_once_more() {
    let mut record = Record::first(Seq(2));
    let ended = |found| record::Closed {
        seq: Seq(2),
        change: String::new(),
        outcome: Outcome::Purged,
        why: String::new(),
        purges: Vec::new(),
        more: 0,
        seen: Some(record::Seen::new(found, "")),
    };
    for (found, stays) in [(Found::Stale, true), (Found::Unknown, true), (Found::Fresh, false)] {
        record.history = vec![ended(found)];
        record.forget_fresh(Seq(2));
        assert_eq!(record.history[0].seen.is_some(), stays, "{found:?}");
    }
}

#[test]
fn a_record_without_room_lets_go_of_its_looks_before_it_cannot_be_written() {
    let mut site = Site::under(policy(1), None, 1);
    site.roll("b", 2);
    let mut record = site.story.record().clone();
    assert_eq!(record.looks.len(), 1);
    record.remark = "x".repeat(record::RECORD_BYTES_MAX);
    record.remark.truncate(record::RECORD_BYTES_MAX - 600);
    drop(record_codec::shed(&mut record));
    assert_eq!((record.looks.len(), record_codec::encode(&record).is_ok()), (0, true));
}

#[test]
fn an_autoscaler_that_never_rests_ends_no_look_and_makes_no_further_purge_of_its_own() {
    for marker in [None, Some("header:X-Version")] {
        let mut site = Site::under(policy(1), marker, 1);
        site.roll("b", 2);
        for second in 0..180 {
            site.run(1);
            let mut workload = site.story.cluster.clone().unwrap();
            workload.generation += 1;
            workload.replicas.desired = 3 + second % 4;
            site.story.see(workload);
        }
        let seen = (site.story.purges().len(), site.told(Kind::PurgeRepeated).len());
        assert_eq!(seen, (2, 1), "{marker:?}: {}", site.seen());
        let ended = if marker.is_some() { Kind::EdgeFresh } else { Kind::EdgeRenewed };
        assert_eq!((site.told(ended).len(), site.told(Kind::EdgeStale).len()), (1, 0), "{marker:?}: {}", site.seen());
    }
}

#[test]
fn a_marker_that_two_tools_rewrite_all_the_time_ends_the_look_and_nothing_is_claimed() {
    let mut site = Site::under(policy(1), Some("header:X-Version"), 1);
    site.roll("b", 2);
    for second in 0..180 {
        site.run(1);
        let mut workload = site.story.cluster.clone().unwrap();
        let marker = if second % 2 == 0 { "header:X-Release" } else { "header:X-Version" };
        workload.tuning.proof.marker = Some(marker.parse().unwrap());
        site.story.see(workload);
    }
    assert_eq!((site.story.purges().len(), site.story.record().looks.len(), site.seen()), (1, 0, ""));
    let claimed = [Kind::EdgeFresh, Kind::EdgeRenewed, Kind::EdgeStale].map(|kind| site.told(kind).len());
    assert_eq!((claimed, site.story.record().is_open()), ([0, 0, 0], false));
    assert!(site.not_fresh().unwrap().contains("nobody looked at it by a marker"), "{:?}", site.not_fresh());
}

#[test]
fn a_ledger_that_is_restored_between_the_two_purges_brings_no_third_one() {
    for restored_after in [5, 45, 100] {
        let mut site = Site::under(policy(1), None, u32::MAX);
        site.roll("b", 2);
        site.run(25);
        let copy = site.story.record().clone();
        site.run(restored_after);
        let workload = site.story.cluster.clone().unwrap();
        let (now, effects, held) = (site.story.now, site.story.effects.clone(), site.story.held.clone());
        site.story = Story { now, effects, held, ..Story::resumed(policy(1), copy) };
        site.story.see(workload);
        site.run(400);
        let purged: BTreeSet<Reference> = site.story.purges().into_iter().cloned().collect();
        assert!(purged.len() <= 2, "restored after {restored_after} s: {purged:?}");
        assert!(!site.story.record().is_open());
    }
}
