//! Histories that are joined, bounded and counted. The oracle of joining is a map by key; that of figures is worked out by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use super::figures::What;
use super::keeping::{Keeping, RARELY};
use super::*;
use kernel::machine::Timestamp;

fn entry(environment: &str, seq: u64, revision: &str, outcome: &str, at_ms: i64) -> Entry {
    let environment = Some(environment.to_owned()).filter(|name| !name.is_empty());
    Entry { environment, seq, revision: revision.to_owned(), outcome: outcome.to_owned(), at_ms, ..Entry::default() }
}

/// `prod 3 1.2 Completed`, or an arrival in `dev`, at so many milliseconds.
fn told(lines: &[(&str, i64)]) -> Vec<Entry> {
    let read = |(line, at): &(&str, i64)| {
        let words: Vec<&str> = line.split(' ').collect();
        let [environment, seq, revision, outcome, ..] = words[..] else { panic!("{line}") };
        let mut entry = entry(environment, seq.parse().unwrap(), revision, outcome, *at);
        entry.cause = words.get(4).filter(|word| **word != "chosen").map(|cause| (*cause).to_owned());
        entry.chosen = (words.len() > 4).then(|| "in words".to_owned()).filter(|_| outcome != FAILED);
        entry
    };
    lines.iter().map(read).collect()
}

/// What each line amounts to that is added to those before it, one after the other.
fn figures_of(lines: &[(&str, i64)]) -> Vec<(usize, What)> {
    let all = told(lines);
    let mut kept = Vec::new();
    let mut figures = Vec::new();
    for (number, entry) in all.iter().enumerate() {
        let grown = grown(&kept, &[], std::slice::from_ref(entry)).unwrap();
        figures.extend(grown.figures.iter().map(|figure| {
            assert_eq!(figure.environment, entry.environment);
            (number, figure.what)
        }));
        kept = grown.entries;
    }
    figures
}

#[test]
fn what_was_written_before_a_crash_is_not_written_twice_and_what_was_not_is_added() {
    let kept = told(&[("prod 1 a Completed", 10), ("stage 1 a Completed", 12)]);
    // The status has one that the crash kept from the history, and one that is there.
    let remembered = told(&[("stage 1 a Completed", 12), ("prod 2 b Withdrawn", 20)]);
    let news = told(&[("prod 3 c Completed", 30)]);
    let grown_once = grown(&kept, &remembered, &news).unwrap();
    let said: Vec<_> = grown_once.entries.iter().map(|one| (one.at_ms, one.seq)).collect();
    assert_eq!(said, [(10, 1), (12, 1), (20, 2), (30, 3)]);
    assert_eq!(grown(&grown_once.entries, &remembered, &news), None, "nothing is written, and nothing counted");
    // Of another environment, or another number, it is another one.
    let other = told(&[("prod 1 a Completed", 12), ("stage 2 a Completed", 13)]);
    let after = grown(&grown_once.entries, &[], &other).unwrap();
    assert_eq!(after.entries.len(), 5, "the number of prod is known already, whatever its time");
}

#[test]
fn what_is_known_in_full_stands() {
    let full = Entry { started_ms: Some(5), ..entry("prod", 1, "a", "Completed", 10) };
    let brief = entry("prod", 1, "a", "Completed", 10);
    assert_eq!(joined(std::slice::from_ref(&full), [&brief]), std::slice::from_ref(&full));
    let both = grown(&[], std::slice::from_ref(&brief), std::slice::from_ref(&full)).unwrap();
    assert_eq!(both.entries, [full]);
}

#[test]
fn arrivals_are_told_apart_by_their_time() {
    let twice = told(&[("dev 0 a Arrived", 1), ("dev 0 b Arrived", 2), ("dev 0 a Arrived", 3), ("dev 0 a Arrived", 3)]);
    assert_eq!(joined(&[], &twice).len(), 3);
}

/// A generator of numbers, for which every run is the same.
fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    }
}

#[test]
fn histories_are_in_order_without_doubles_and_the_oldest_go_first() {
    let mut next = numbers(7);
    for _ in 0..200 {
        let mut kept: Vec<Entry> = Vec::new();
        let mut all: BTreeMap<(String, u64), Entry> = BTreeMap::new();
        for _ in 0..40 {
            let batch: Vec<Entry> = (0..next(12))
                .map(|_| {
                    let (environment, seq) = (["prod", "stage"][usize::try_from(next(2)).unwrap()], 1 + next(160));
                    let at_ms = i64::try_from(seq * 10 + u64::from(environment == "stage")).unwrap();
                    entry(environment, seq, "a", "Completed", at_ms)
                })
                .collect();
            for one in &batch {
                all.insert((one.environment.clone().unwrap(), one.seq), one.clone());
            }
            let before = kept.clone();
            kept = grown(&kept, &batch, &[]).map_or(before, |grown| grown.entries);
        }
        let mut expected: Vec<Entry> = all.into_values().collect();
        expected.sort_by_key(|one| one.at_ms);
        let newest = expected.len().saturating_sub(ENTRIES_MAX);
        // What was forgotten may have been old enough only then: the newest are all there.
        assert_eq!(kept, expected[newest..]);
    }
}

#[test]
fn entries_are_bounded_and_the_newest_stay() {
    let count = u64::try_from(ENTRIES_MAX).unwrap();
    let all: Vec<Entry> =
        (1..=count + 3).map(|seq| entry("prod", seq, "a", "Completed", i64::try_from(seq).unwrap())).collect();
    let kept = joined(&[], &all);
    assert_eq!((kept.first().map(|one| one.seq), kept.len()), (Some(4), ENTRIES_MAX));
}

#[test]
fn bytes_are_bounded_too_and_the_newest_stay() {
    let long = |seq: u64| Entry {
        chosen: Some("x".repeat(10_000)),
        ..entry("prod", seq, "a", "Completed", i64::try_from(seq).unwrap())
    };
    let all: Vec<Entry> = (1..=40).map(long).collect();
    let kept = joined(&[], &all);
    assert!(serde_json::to_vec(&kept).unwrap().len() <= BYTES_MAX);
    assert_eq!((kept.first().map(|one| one.seq), kept.last().map(|one| one.seq)), (Some(16), Some(40)));
    assert_eq!(grown(&kept, &all, &[]), None, "what was forgotten is not written again");
}

#[test]
fn a_deployment_is_counted_once_with_its_lead_time() {
    let lines = [
        ("dev 0 a Arrived", 100),
        ("dev 0 b Arrived", 150),
        ("stage 1 a Completed", 300),
        ("prod 1 a Completed", 1_000),
        ("prod 2 b Superseded", 1_100),
        ("prod 3 c Completed", 1_200),
        ("prod 4 b Completed chosen", 1_300),
    ];
    let expected = [
        (2, What::Deployed),
        (2, What::LeadTime(200)),
        (3, What::Deployed),
        (3, What::LeadTime(900)),
        // When c came is not known.
        (5, What::Deployed),
        // A person chose it: how long it took to get there says nothing of the line.
        (6, What::Deployed),
    ];
    assert_eq!(figures_of(&lines), expected);
}

#[test]
fn the_lead_time_begins_with_the_last_arrival() {
    let lines = [("dev 0 a Arrived", 1), ("dev 0 b Arrived", 2), ("dev 0 a Arrived", 50), ("prod 1 a Completed", 60)];
    assert_eq!(figures_of(&lines), [(3, What::Deployed), (3, What::LeadTime(10))]);
}

#[test]
fn a_failure_is_one_of_its_deployment_and_ends_with_what_is_well() {
    let lines = [
        ("prod 1 a Completed", 100),
        // It was ready, its verdict turned, and the way back stalled for a while: no deployment of its own.
        ("prod 2 b Completed", 200),
        ("prod 2 b Failed verdict", 250),
        ("stage 7 z Completed", 260),
        ("prod 3 a Completed verdict", 400),
        // It never got ready; the one after it did not either; the third did.
        ("prod 4 c Failed stalled", 500),
        ("prod 4 c Superseded", 550),
        ("prod 5 d Failed stalled", 600),
        ("prod 6 e Completed", 900),
        // It was late, and got ready by itself.
        ("prod 7 f Failed stalled", 1_000),
        ("prod 7 f Completed", 1_010),
        // A person has it go back: f has failed already, and nothing says since when it was not well.
        ("prod 8 e Completed chosen", 1_100),
        // The same about what nobody complained of.
        ("prod 9 g Completed", 1_200),
        ("prod 10 e Completed chosen", 1_300),
        ("prod 11 g Completed", 1_400),
    ];
    let expected = [
        (0, What::Deployed),
        (1, What::Deployed),
        (2, What::Failed),
        (3, What::Deployed),
        (4, What::Recovered(150)),
        (5, What::Deployed),
        (5, What::Failed),
        (7, What::Deployed),
        (7, What::Failed),
        (8, What::Deployed),
        (8, What::Recovered(400)),
        (9, What::Deployed),
        (9, What::Failed),
        (10, What::Recovered(10)),
        (12, What::Deployed),
        (13, What::Failed),
        (14, What::Deployed),
    ];
    assert_eq!(figures_of(&lines), expected);
}

#[test]
fn going_back_by_a_choice_recovers_from_when_it_was_started() {
    let kept = told(&[("prod 1 a Completed", 100), ("prod 2 b Completed", 200)]);
    let back = Entry { started_ms: Some(900), ..told(&[("prod 3 a Completed chosen", 1_000)])[0].clone() };
    let what = |entry: &Entry| -> Vec<What> {
        let figures = grown(&kept, &[], std::slice::from_ref(entry)).unwrap().figures;
        figures.iter().map(|figure| figure.what).collect()
    };
    assert_eq!(what(&back), [What::Failed, What::Recovered(100)]);
    // What it never had is a deployment, however it came to be chosen.
    assert_eq!(what(&Entry { revision: "c".to_owned(), ..back }), [What::Deployed]);
}

#[test]
fn of_a_repo_the_same_commit_again_is_no_other_deployment() {
    let mut all =
        told(&[(" 1 a Succeeded", 100), (" 2 a Succeeded", 200), (" 3 b Failed", 300), (" 4 b Succeeded", 500)]);
    all.iter_mut().for_each(|one| one.seen_ms = Some(one.at_ms - 40));
    let grown = grown(&[], &[], &all).unwrap();
    let what: Vec<What> = grown.figures.iter().map(|figure| figure.what).collect();
    let expected =
        [What::Deployed, What::LeadTime(40), What::Deployed, What::Failed, What::LeadTime(40), What::Recovered(200)];
    assert_eq!(what, expected);
    assert!(grown.figures.iter().all(|figure| figure.environment.is_none()));
}

#[test]
fn what_another_life_remembers_is_written_and_not_counted() {
    let remembered = told(&[("prod 1 a Completed", 10), ("prod 2 b Completed", 20)]);
    let news = told(&[("prod 3 c Completed", 30)]);
    let grown = grown(&[], &remembered, &news).unwrap();
    assert_eq!(grown.entries.len(), 3);
    assert_eq!(grown.figures.iter().map(|figure| figure.what).collect::<Vec<_>>(), [What::Deployed]);
}

const fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

#[test]
fn what_is_owed_is_written_once_and_what_comes_meanwhile_after_it() {
    let mut keeping = Keeping::default();
    assert_eq!((keeping.begin("uid", at(0)), keeping.deadline()), (None, None), "nothing at rest");
    let (one, other) = (told(&[("prod 1 a Completed", 1)]), told(&[("prod 2 b Completed", 2)]));
    keeping.owe("uid", &one);
    assert_eq!(keeping.begin("uid", at(1)), Some(one.clone()));
    keeping.owe("uid", &other);
    assert_eq!(keeping.begin("uid", at(1)), None, "one call at a time");
    keeping.kept("uid", &one);
    assert_eq!(keeping.begin("uid", at(2)), Some(other.clone()));
    keeping.kept("uid", &other);
    assert_eq!((keeping.begin("uid", at(9)), keeping.deadline()), (None, None));
}

#[test]
fn another_object_of_the_name_owes_nothing_of_the_earlier_one() {
    let mut keeping = Keeping::default();
    keeping.owe("uid", &told(&[("prod 1 a Completed", 1)]));
    keeping.owe("other", &told(&[("prod 1 b Completed", 2)]));
    assert_eq!(keeping.begin("uid", at(0)), None, "what the earlier one is owed went with it");
    let owed = told(&[("prod 1 b Completed", 2)]);
    assert_eq!(keeping.begin("other", at(0)), Some(owed.clone()));
    keeping.kept("uid", &owed);
    assert!(!keeping.failed("uid", at(0), true, "an answer about the earlier one"));
    assert_eq!(keeping.begin("other", at(1)), None, "which ends no call of this one");
    keeping.kept("other", &owed);
    assert_eq!((keeping.begin("other", at(2)), keeping.deadline()), (None, None));
}

#[test]
fn what_fails_is_owed_until_it_is_kept_and_rarely_where_a_person_must_act() {
    let mut keeping = Keeping::default();
    let one = told(&[("prod 1 a Completed", 1)]);
    keeping.owe("uid", &one);
    keeping.begin("uid", at(0)).unwrap();
    assert!(keeping.failed("uid", at(0), false, "no route"));
    let soon = keeping.deadline().unwrap();
    assert!(at(0) < soon && soon < at(60), "{soon:?}");
    assert_eq!(keeping.begin("uid", at(0)), None);
    keeping.begin("uid", at(60)).unwrap();
    assert!(!keeping.failed("uid", at(60), true, "no such kind"), "said once");
    let rarely = keeping.deadline().unwrap();
    assert!(rarely >= at(60).after(RARELY) && rarely <= at(120).after(RARELY + Duration::from_secs(1)), "{rarely:?}");
    // What happens meanwhile waits with it.
    keeping.owe("uid", &told(&[("prod 2 b Completed", 2)]));
    assert_eq!(keeping.begin("uid", at(61)), None);
    assert_eq!(keeping.begin("uid", rarely).map(|all| all.len()), Some(2));
}
