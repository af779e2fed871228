//! A further purge that is made in any case, and a look from a member that did not order the purge.

use super::*;
use crate::age::{Relation, Shown, Span, Why};
use crate::verdict::Follows;

/// A purge of a tag, after which one more is wanted 60 s later in any case.
fn blind() -> Stage {
    let again = Again { max: 1, after_s: Some(60) };
    let begun =
        Look::begin(at(110_000), Some(at(100_000)).into(), paths(&["#shop"]), [page("www.example.com/")], None, again);
    Stage::with(begun.unwrap(), at(110_000))
}

#[test]
fn one_that_is_wanted_in_any_case_is_made_after_its_time_and_then_looked_at() {
    let renewed =
        |now: Timestamp, _: &Question| Answers { edge: reply(answer("/", now, &[("age", "0")])), pods: Vec::new() };
    let mut stage = blind();
    stage.run(59, renewed);
    assert!(stage.asked.is_empty() && stage.again.is_empty(), "before it nothing is looked at");
    let now = stage.now;
    stage = stage.restart(now);
    stage.run(60, renewed);
    assert_eq!((stage.asked.len(), &stage.again[..]), (0, &[1][..]));
    let said = "www.example.com/ is purged once more, at least 1m after the purge and without a look, as purge.again_after says";
    assert!(stage.words().iter().all(|words| *words == said), "{:?}", stage.words());
    let now = stage.now;
    stage = stage.restart(now);
    stage.run(30, renewed);
    assert_eq!(stage.again, [1], "another life orders it again, under its own number");
    let now = stage.now;
    stage.step(Event::AgainCompleted(1, Some(now)), &mut { renewed });
    stage.run(600, renewed);
    assert!(stage.ended && !stage.asked.is_empty());
    assert_eq!(stage.told.last().unwrap().found, Found::Renewed);
    assert_eq!(stage.durable.paths, paths(&["/*"]), "what a tag did not reach, a path does");
}

#[test]
fn where_it_cannot_be_made_the_first_one_is_looked_at() {
    let mut stage = blind();
    let renewed =
        |now: Timestamp, _: &Question| Answers { edge: reply(answer("/", now, &[("age", "0")])), pods: Vec::new() };
    stage.run(60, renewed);
    stage.step(Event::AgainFailed(1), &mut { renewed });
    stage.run(600, renewed);
    assert!(stage.ended && stage.again == [1]);
    assert_eq!(stage.told.last().unwrap().found, Found::Renewed);
}

#[test]
fn where_it_cannot_be_made_and_the_first_left_what_was_there_that_is_told() {
    let old = |now: Timestamp, _: &Question| {
        let answer = answer("/", now, &[("age", "1000")]);
        Answers { edge: reply(answer), pods: Vec::new() }
    };
    let mut stage = blind();
    stage.run(60, old);
    stage.step(Event::AgainFailed(1), &mut { old });
    stage.run(600, old);
    assert!(stage.ended && stage.again == [1], "there is no other way to make it");
    let last = stage.told.last().unwrap();
    assert_eq!((last.found, &last.follows), (Found::Stale, &Follows::Spent));
}

#[test]
fn what_it_sends_is_about_each_page_that_is_looked_at() {
    let sent = |items: &[&str]| {
        let pages = [page("www.example.com/"), page("www.example.com/a")];
        let look = Look::begin(at(1), Ordered::default(), paths(items), pages, None, Again::up_to(1)).unwrap();
        look.stored().paths_of_again()
    };
    assert_eq!(sent(&["#shop", "/a"]), paths(&["/*"]), "the front page is of the tag alone");
    assert_eq!(sent(&["#shop", "/", "/a"]), paths(&["/", "/a"]));
    assert_eq!(sent(&["#shop"]), paths(&["/*"]));
}

// A member that did not order the purge: it had voted at 100 s and heard at 105 s that it is created.
#[test]
fn of_what_was_made_between_the_instants_that_are_known_nothing_is_said() {
    let span = Span { before: Some(100_000), ordered: Some(105_000), after: 110_000 };
    let made = |ms: i64| span.relate(&Shown::Made { earliest: ms, latest: ms, age_s: 1 });
    assert!(matches!(made(97_000), Relation::Before { .. }));
    assert_eq!([98_000, 103_000, 107_000].map(made), [(); 3].map(|()| Relation::Nothing(Why::During)));
    assert_eq!(made(107_001), Relation::After);
    let unheard = Span { ordered: None, ..span };
    let made = |ms: i64| unheard.relate(&Shown::Made { earliest: ms, latest: ms, age_s: 1 });
    assert_eq!((made(107_001), made(112_001)), (Relation::Nothing(Why::During), Relation::After));
}

// The member that ordered the purge heard from another one that it is complete, and then from CloudFront.
#[test]
fn a_look_in_the_place_of_another_takes_its_forms_for_no_forms_of_its_own_and_asks_no_more_than_both_may() {
    let begun = |ordered: Ordered| {
        Look::begin(at(110_000), ordered, paths(&["/*"]), [page("www.example.com/")], None, Again::up_to(1)).unwrap()
    };
    let mut first = begun(Ordered::default());
    for number in 1..=3 {
        drop(first.tick(at(110_000 + number * 30_000)));
        drop(first.step(at(110_000 + number * 30_000), Event::Kept(first.stored().number)));
    }
    let before = first.stored().clone();
    assert!(before.number > 0 && before.pages[0].requests > 0, "{before:?}");
    let mut second = begun(Some(at(100_000)).into()).in_place_of(&before);
    assert_eq!(second.stored().pages[0].requests, before.pages[0].requests);
    let effects = second.step(at(200_000), Event::Kept(before.number));
    assert_eq!(effects, [], "nothing is asked by what is durable of the first");
    let effects = second.step(at(200_000), Event::Kept(before.number + 1));
    assert!(matches!(&effects[..], [Effect::Keep(stored)] if stored.number == before.number + 2), "{effects:?}");
}
