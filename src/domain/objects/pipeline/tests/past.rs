//! Stories as a Pipeline's history tells them.

use super::*;
use crate::pipeline::past::remembered;
use crate::pipeline::spec::Rollback;
use crate::pipeline::status::Cause;

impl Story {
    /// What its history has got since it was asked last, in words: environment, number, revision, outcome, cause.
    fn told_past(&mut self) -> Vec<String> {
        self.pass(Duration::from_secs(3));
        let said = |one: Entry| {
            let Entry { environment, seq, revision, outcome, cause, .. } = one;
            format!("{} {seq} {revision} {outcome} {}", environment.unwrap_or_default(), cause.unwrap_or_default())
        };
        std::mem::take(&mut self.past).into_iter().map(said).map(|said| said.trim_end().to_owned()).collect()
    }

    fn prod_shows(&mut self, sight: &Sight) {
        self.show("prod-a", sight.clone());
        self.show("prod-b", sight.clone());
    }
}

#[test]
fn an_arrival_and_what_follows_are_told_once_and_what_was_there_before_is_not() {
    let mut story = Story::new(spec(false));
    assert_eq!(story.told_past(), Vec::<String>::new(), "since when 1 is there is not known");
    story.show("staging", unready("2"));
    assert_eq!(story.told_past(), Vec::<String>::new());
    story.show("staging", at("2"));
    assert_eq!(story.told_past(), ["staging 0 2 Arrived"]);
    story.prod_shows(&at("2"));
    let started_ms = story.object.status.environment(&prod()).and_then(|own| own.promotion.clone()?.started_ms);
    assert!(started_ms.is_some());
    story.pass(MINUTE);
    let told = std::mem::take(&mut story.past);
    assert_eq!(told.iter().map(|one| one.started_ms).collect::<Vec<_>>(), [started_ms]);
    assert_eq!(remembered(&story.object.status), told, "the status still says when it was started");
    story.show("staging", at("3"));
    story.pass(MINUTE);
    let brief = Entry { started_ms: None, ..told[0].clone() };
    assert_eq!(remembered(&story.object.status), std::slice::from_ref(&brief), "and does not any more");
    assert!(brief.is(&told[0]));
}

#[test]
fn what_goes_back_by_itself_failed_and_the_way_back_is_no_deployment() {
    let mut spec = spec(false);
    spec.environments[1].stalled_after = Duration::from_mins(10);
    spec.environments[1].rollback = Some(Rollback { on: vec![Cause::Stalled], within: Duration::from_mins(30) });
    let mut story = Story::new(spec);
    story.show("staging", at("2"));
    assert_eq!(story.told_past(), ["staging 0 2 Arrived"]);
    story.prod_shows(&unready("2"));
    story.pass(Duration::from_mins(11));
    assert_eq!(story.told_past(), ["prod 1 2 Failed stalled", "prod 1 2 Withdrawn"]);
    // The way back takes long: nothing else has failed.
    story.pass(Duration::from_mins(30));
    assert_eq!(story.told_past(), Vec::<String>::new());
    story.prod_shows(&at("1"));
    assert_eq!(story.told_past(), ["prod 2 1 Completed stalled"]);
}

#[test]
fn what_takes_long_where_nobody_goes_back_has_not_failed() {
    let mut story = Story::new(spec(false));
    story.show("staging", at("2"));
    story.told_past();
    story.prod_shows(&unready("2"));
    story.pass(Duration::from_hours(2));
    assert_eq!(story.count(Kind::PromotionStalled), 1);
    assert_eq!(story.told_past(), Vec::<String>::new());
    story.show("staging", at("3"));
    assert_eq!(story.told_past(), ["staging 0 3 Arrived", "prod 1 2 Superseded"]);
    story.prod_shows(&at("3"));
    assert_eq!(story.told_past(), ["prod 2 3 Completed"]);
}
