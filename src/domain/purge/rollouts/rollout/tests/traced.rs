//! What a rollout tells of itself as a trace: every end has its stages, once, from times that the record keeps.

use super::*;
use crate::records::record::Times;
use kernel::trace::{Span, Stage};

/// A story whose record keeps times, and the spans of its writes.
struct Traced {
    story: Story,
    spans: Vec<Span>,
}

impl Traced {
    fn begin() -> Self {
        let workload = complete("a", 1);
        let mut story = Story::begin(workload.clone());
        let record = story.record().clone();
        story.machine = resumed(&record);
        story.see(workload);
        Self { story, spans: Vec::new() }
    }

    /// Something happens that may write; the spans of all its writes are kept.
    fn then(&mut self, happens: impl FnOnce(&mut Story)) {
        let before = self.story.record().clone();
        happens(&mut self.story);
        self.spans.extend(self.story.machine.spans_since(&before, self.story.now));
    }

    fn told(&self) -> Vec<(Stage, i64, i64, Option<&str>)> {
        let mut told: Vec<_> = self
            .spans
            .iter()
            .map(|span| (span.stage, span.start_ms, span.end_ms, span.fault.as_ref().map(|fault| fault.kind)))
            .collect();
        told.sort();
        told
    }
}

fn resumed(record: &Record) -> Rollout {
    let identity = Identity { keeps_times: true, epoch_ms: 1_000_000, ..identity() };
    Rollout::resume(identity, without_barrier(OnRollback::default()), Seq(0), Some(record.clone()))
}

#[test]
fn a_purged_rollout_has_all_stages_from_one_to_the_next() {
    let mut traced = Traced::begin();
    traced.then(|story| story.see(half("b", 2)));
    traced.then(|story| story.pass(Duration::from_secs(5)));
    assert_eq!(traced.told(), [], "nothing has ended");
    traced.story.held.insert("purge");
    traced.then(|story| story.see(complete("b", 2)));
    traced.story.held.clear();
    let reference = traced.story.purges().into_iter().next().unwrap().clone();
    traced.then(|story| {
        story.pass(Duration::from_secs(2));
        story.step(Event::Purged(reference.clone(), Progress::Created("I1".into())));
    });
    traced.then(|story| {
        story.pass(Duration::from_secs(7));
        story.step(Event::Purged(reference.clone(), Progress::Completed(None)));
    });
    let times = [
        (Stage::Rollout, 1_000_000, 1_014_000, None),
        (Stage::Pods, 1_000_000, 1_005_000, None),
        (Stage::Agreement, 1_005_000, 1_007_000, None),
        (Stage::Purge, 1_007_000, 1_014_000, None),
    ];
    assert_eq!(traced.told(), times);
    assert_eq!(traced.story.record().times, Times::default(), "a record at rest keeps none");
}

#[test]
fn another_life_goes_on_with_the_times_on_record() {
    let mut traced = Traced::begin();
    traced.then(|story| story.see(half("b", 2)));
    traced.then(|story| story.pass(Duration::from_secs(3)));
    let record = traced.story.record().clone();
    traced.story.machine = resumed(&record);
    traced.then(|story| story.see(complete("b", 2)));
    let pods = traced.told().into_iter().find(|told| told.0 == Stage::Pods);
    assert_eq!(pods, Some((Stage::Pods, 1_000_000, 1_003_000, None)));
}

#[test]
fn a_rollout_that_fails_is_told_as_failed() {
    let mut traced = Traced::begin();
    traced.then(|story| story.see(half("b", 2)));
    traced.then(|story| story.pass(Duration::from_secs(24 * 3600)));
    let told = traced.told();
    assert_eq!(
        told.iter().map(|told| (told.0, told.3)).collect::<Vec<_>>(),
        [(Stage::Rollout, Some("failed")), (Stage::Pods, Some("failed")),]
    );
    assert!(told.iter().all(|told| told.1 == 1_000_000 && told.2 > told.1), "{told:?}");
}

#[test]
fn a_rollout_that_another_one_replaces_is_told_with_its_own_times() {
    let mut traced = Traced::begin();
    traced.then(|story| story.see(half("b", 2)));
    traced.then(|story| story.pass(Duration::from_secs(4)));
    traced.then(|story| story.see(half("c", 3)));
    assert_eq!(
        traced.told(),
        [(Stage::Rollout, 1_000_000, 1_004_000, None), (Stage::Pods, 1_000_000, 1_004_000, None)]
    );
    let first = traced.spans[0].trace.clone();
    traced.then(|story| story.see(complete("c", 3)));
    assert!(traced.spans.iter().filter(|span| span.trace != first).all(|span| span.start_ms >= 1_004_000));
    assert!(traced.spans.iter().any(|span| span.trace != first));
}

#[test]
fn without_times_nothing_is_told() {
    let mut story = Story::begin(complete("a", 1));
    let before = story.record().clone();
    story.see(half("b", 2));
    story.see(complete("b", 2));
    assert_eq!(story.last(), Some(&Outcome::Purged));
    assert_eq!(story.machine.spans_since(&before, story.now), []);
    assert!(story.record().times.is_blank());
}
