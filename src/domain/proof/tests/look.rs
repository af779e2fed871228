use super::*;
use crate::asked::{NotAPage, REQUESTS_MAX, distinct, one_path};
use crate::look::Phase;
use crate::tally::PAGE_REQUESTS_MAX;
use crate::verdict::Follows;
use kernel::names::host::Host;

const HIT: (&str, &str) = ("x-cache", "Hit from cloudfront");
const MISS: (&str, &str) = ("x-cache", "Miss from cloudfront");
const OLD: u64 = 40_000;

#[test]
fn two_renewed_looks_in_a_row_end_it() {
    let mut stage = Stage::new(None, 1);
    stage.run_with(600, 103_000, &[HIT]);
    assert_eq!(stage.seconds(), [0, 2], "a visitor filled it while the purge was under way");
    assert_eq!(stage.words(), ["nothing stored before the purge is left at FRA56-P1: www.example.com/, 2 s after it"]);
    assert!(stage.ended && stage.again.is_empty());
}

#[test]
fn a_miss_counts_with_what_is_stored_in_its_place_and_alone_says_nothing() {
    let mut stage = Stage::new(None, 1);
    let mut first = true;
    stage.run(600, |now, _| {
        let age = (now.as_millis() / 1000 - 110).to_string();
        let lines = if std::mem::take(&mut first) { vec![MISS] } else { vec![HIT, ("age", age.as_str())] };
        Answers { edge: reply(answer("/", now, &lines)), pods: Vec::new() }
    });
    assert_eq!(stage.seconds(), [0, 2], "stored by our own look, a moment after the purge");
    assert_eq!(stage.told[0].found, Found::Renewed);

    let mut stage = Stage::new(None, 1);
    stage.run(600, |now, _| Answers { edge: reply(answer("/", now, &[MISS])), pods: Vec::new() });
    assert_eq!(stage.seconds(), [0, 2, 5, 10, 30, 60]);
    assert_eq!(stage.words(), ["nothing says whether www.example.com/ is fresh: it is not cached"]);
}

#[test]
fn a_purge_that_was_quick_is_looked_at_once_an_age_can_tell() {
    let look = Look::begin(
        at(110_000),
        Some(at(109_000)).into(),
        paths(&["/*"]),
        [page("www.example.com/")],
        None,
        Again::up_to(1),
    )
    .unwrap();
    let mut stage = Stage::with(look, at(110_000));
    stage.run_with(60, 0, &[HIT]);
    assert_eq!(stage.seconds()[0], 2, "three seconds after the order");
}

#[test]
fn two_old_looks_half_a_minute_after_it_are_stale_and_it_is_purged_once_more() {
    let mut stage = Stage::new(None, 1);
    stage.run_with(600, OLD, &[HIT]);
    assert_eq!(stage.seconds(), [0, 2, 5, 10, 30, 60]);
    let words = "www.example.com/ is stale at FRA56-P1: stored 1m before the purge (age 130); it is purged once more";
    assert_eq!((stage.words(), &stage.again[..], stage.ended), (vec![words], &[1][..], false));

    stage.step(Event::AgainCompleted(2, None), &mut |_, _| unreachable!());
    assert_eq!(stage.look.stored().phase, Phase::Again, "that is no purge of ours");
    let before = at(stage.now.as_millis() - 10_000);
    stage.step(Event::AgainCompleted(1, Some(before)), &mut |now, question| Answers {
        edge: reply(answer("/", now, &[("age", "600")])),
        pods: pods(question, now),
    });
    stage.run_with(600, OLD, &[HIT]);
    assert_eq!((stage.told.len(), &stage.again[..], stage.ended), (2, &[1][..], true), "never a third");
    assert_eq!((stage.told[1].round, &stage.told[1].follows), (1, &Follows::Spent));
    assert!(stage.words()[1].contains("CloudFront has kept it"), "{}", stage.words()[1]);
}

#[test]
fn a_purge_that_may_not_follow_does_not() {
    for (again_max, lines, follows, cause) in [
        (0, vec![HIT], Follows::Spent, "CloudFront has kept it"),
        (1, vec![MISS], Follows::Helpless, "it comes from behind"),
        (1, vec![HIT, ("via", "1.1 a.cloudfront.net, 1.1 fastly")], Follows::Helpless, "fastly may be in front"),
        (1, vec![HIT, ("cf-ray", "1")], Follows::Helpless, "Cloudflare may be in front"),
    ] {
        let mut stage = Stage::new(None, again_max);
        stage.run_with(600, OLD, &lines);
        assert_eq!((stage.told[0].found, &stage.told[0].follows), (Found::Stale, &follows));
        assert!(stage.words()[0].contains(cause), "{}", stage.words()[0]);
        assert!(stage.again.is_empty() && stage.ended);
    }
}

#[test]
fn a_miss_at_two_places_may_come_from_a_tier_behind_both() {
    let mut stage = Stage::new(None, 1);
    stage.run(600, |now, _| {
        let place = if now >= at(170_000) { "AMS1-P1" } else { "FRA56-P1" };
        let age = (now.as_millis() / 1000 - 40).to_string();
        let lines = [MISS, ("x-amz-cf-pop", place), ("age", age.as_str())];
        Answers { edge: reply(answer("/", now, &lines)), pods: Vec::new() }
    });
    assert_eq!((stage.told[0].found, &stage.again[..]), (Found::Stale, &[1][..]));
    assert!(stage.words()[0].contains("stale at AMS1-P1"), "{}", stage.words()[0]);
}

#[test]
fn what_is_in_front_makes_nothing_renewed() {
    let mut stage = Stage::new(None, 1);
    stage.run_with(600, 140_000, &[("via", "1.1 a.cloudfront.net (CloudFront), 1.1 varnish")]);
    assert_eq!(stage.told[0].found, Found::Unknown);
    assert!(stage.words()[0].ends_with("varnish may be in front of CloudFront, and its age is not CloudFront's"));
}

#[test]
fn old_answers_of_the_first_half_minute_only_delay_it() {
    let mut stage = Stage::new(None, 1);
    stage.run(600, |now, _| {
        let age = if now < at(135_000) { "100" } else { "1" };
        Answers { edge: reply(answer("/", now, &[("age", age)])), pods: Vec::new() }
    });
    assert_eq!((stage.seconds(), stage.told[0].found), (vec![0, 2, 5, 10, 30, 60], Found::Renewed));
}

#[test]
fn what_was_old_at_one_place_is_not_mended_by_another() {
    let mut stage = Stage::new(None, 1);
    stage.run(600, |now, _| {
        let old = now == at(140_000);
        let (place, age) =
            if old { ("AMS1-P1", "100") } else { ("FRA56-P1", if now < at(140_000) { "20" } else { "1" }) };
        Answers { edge: reply(answer("/", now, &[("x-amz-cf-pop", place), ("age", age)])), pods: Vec::new() }
    });
    assert_eq!(stage.told[0].found, Found::Unknown);
    assert!(
        stage.words()[0].ends_with("it was old, but not at two looks half a minute after the purge"),
        "{:?}",
        stage.words()
    );
    assert_eq!(stage.asked.len(), usize::from(PAGE_REQUESTS_MAX));
}

#[test]
fn what_was_stored_as_the_purge_was_ordered_is_neither() {
    let mut stage = Stage::new(None, 1);
    stage.run_with(600, 101_000, &[HIT]);
    let words =
        "nothing says whether www.example.com/ is fresh: it was stored at about the time when the purge was ordered";
    assert_eq!((stage.seconds().len(), stage.words()), (6, vec![words]));
}

#[test]
fn no_answer_is_asked_for_again_within_the_bound() {
    let mut stage = Stage::new(None, 1);
    stage.run(1_000, |_, _| Answers { edge: failed("connection refused"), pods: Vec::new() });
    assert_eq!(stage.asked.len(), usize::from(PAGE_REQUESTS_MAX));
    assert!(stage.words()[0].ends_with("is fresh: no answer: connection refused"), "{:?}", stage.words());
}

#[test]
fn fresh_is_said_of_what_new_pods_answer_and_looked_at_once_more() {
    let mut stage = Stage::new(Some("header:x-version"), 1);
    stage.run_with(250, 105_000, &[("x-version", "v2")]);
    assert_eq!(
        stage.words(),
        ["the edge is fresh: www.example.com/ at FRA56-P1 is what the new pods answer, 2 s after it"]
    );
    assert_eq!((stage.seconds(), stage.ended), (vec![0, 2], false));
    stage.run_with(100, 105_000, &[("x-version", "v2")]);
    assert_eq!((stage.seconds(), stage.told.len(), stage.ended), (vec![0, 2, 300], 1, true));
}

#[test]
fn a_late_answer_of_an_old_pod_is_found_after_five_minutes() {
    let mut stage = Stage::new(Some("header:x-version"), 1);
    stage.run_with(250, 112_000, &[("x-version", "v2")]);
    stage.run_with(150, 200_000, &[("x-version", "v1")]);
    assert_eq!((stage.seconds(), &stage.again[..]), (vec![0, 2, 300, 330], &[1][..]));
    let words = "www.example.com/ is stale at FRA56-P1: it is not what the new pods answer, 330 s after the purge; \
                 it is purged once more";
    assert_eq!(stage.words()[1..], [words]);
}

#[test]
fn a_look_after_five_minutes_that_shows_nothing_is_made_again() {
    let mut stage = Stage::new(Some("header:x-version"), 1);
    stage.run_with(250, 112_000, &[("x-version", "v2")]);
    stage.run(60, |_, _| Answers { edge: failed("connection reset"), pods: Vec::new() });
    assert!(!stage.ended);
    stage.run_with(150, 200_000, &[("x-version", "v1")]);
    assert_eq!((stage.seconds(), &stage.again[..]), (vec![0, 2, 300, 330, 360], &[1][..]));
    let mut stage = Stage::new(Some("header:x-version"), 1);
    stage.run_with(250, 112_000, &[("x-version", "v2")]);
    stage.run(1_000, |_, _| Answers { edge: failed("connection reset"), pods: Vec::new() });
    assert!(stage.ended && stage.asked.len() == usize::from(PAGE_REQUESTS_MAX));
}

#[test]
fn what_new_pods_change_by_themselves_makes_nothing_stale() {
    let mut stage = Stage::new(Some("header:x-version"), 1);
    stage.run(1_000, |now, _| {
        let version = now.as_millis().to_string();
        let pod = reply(answer("/", now, &[("x-version", &version)]));
        let edge = reply(answer("/", now, &[("x-version", "0"), ("age", "15")]));
        Answers { edge, pods: vec![pod.clone(), pod] }
    });
    assert_eq!(stage.told[0].found, Found::Unknown);
    assert!(stage.words()[0].contains("changes by itself"), "{}", stage.words()[0]);
}

#[test]
fn content_outranks_an_age_and_an_age_does_not_make_fresh() {
    let mut stage = Stage::new(Some("header:x-version"), 1);
    stage.run_with(600, OLD, &[("x-version", "v2")]);
    assert_eq!(stage.told[0].found, Found::Fresh, "visitors get what the new pods answer");
    let mut stage = Stage::new(Some("header:x-version"), 1);
    stage.run_with(600, 112_500, &[]);
    assert_eq!(stage.told[0].found, Found::Renewed, "nothing was compared");
    assert!(!stage.words()[0].contains("fresh"));
    let mut stage = Stage::new(Some("header:x-version"), 1);
    stage.run_with(600, 112_500, &[("x-version", "v1"), MISS]);
    assert_eq!(
        (stage.told[0].found, &stage.told[0].follows),
        (Found::Stale, &Follows::Helpless),
        "an old pod still serves"
    );
}

#[test]
fn each_redirect_counts_by_itself_within_the_bound() {
    let chain = |now: Timestamp, ages: [&str; 3]| {
        let hops = ["/", "/en", "/en/"].into_iter().zip(ages).enumerate();
        let hop = |(at, (path, age)): (usize, (&str, &str))| Answer {
            status: if at < 2 { 302 } else { 200 },
            ..answer(path, now, &[("age", age)])
        };
        Answers { edge: Reply { hops: hops.map(hop).collect(), failure: None }, pods: Vec::new() }
    };
    let mut stage = Stage::new(None, 1);
    stage.run(600, |now, question| {
        assert_eq!(question.requests_max, REQUESTS_MAX);
        chain(now, ["1", "600", "1"])
    });
    assert_eq!(stage.seconds(), [0, 2, 30, 60], "the looks that count have their requests");
    assert!(
        stage.words()[0].starts_with("www.example.com/en, where www.example.com/ leads, is stale at FRA56-P1"),
        "{:?}",
        stage.words()
    );

    let pages = [page("www.example.com/")];
    let look =
        Look::begin(at(110_000), Some(at(100_000)).into(), paths(&["/", "/shop/*"]), pages, None, Again::up_to(1))
            .unwrap();
    let mut stage = Stage::with(look, at(110_000));
    stage.run(600, |now, _| chain(now, ["0", "600", "600"]));
    assert_eq!(stage.told[0].found, Found::Renewed, "what a redirect leads to was not purged");
}

#[test]
fn pages_that_were_not_purged_are_not_looked_at() {
    let pages = || ["www.example.com/", "www.example.com/shop/1", "www.example.com/"].map(page);
    let of = |items: &[&str]| {
        Look::begin(at(1), Ordered::default(), paths(items), pages(), None, Again::default())
            .map(|look| look.stored().pages.len())
    };
    assert_eq!((of(&["/*"]), of(&["/shop/*"]), of(&["/x"]), of(&["#tag", "/x"])), (Some(2), Some(1), None, Some(2)));
    let new = |host: &str, path: &str| Page::new(Host::parse(host).unwrap(), path.parse().unwrap());
    assert!(matches!(new("*.example.com", "/"), Err(NotAPage::Wildcard(_))));
    assert!(matches!(new("a.example.com", "/a*"), Err(NotAPage::Many(_))));
    assert!(matches!(new("a.example.com", "#a"), Err(NotAPage::Many(_))));
    assert!(matches!(new("a.example.com", &format!("/{}", "a".repeat(256))), Err(NotAPage::Long(257))));
}

// What an owner or an operator writes: each refusal with what to write instead, and without a flood of their own words.
#[test]
fn a_path_to_look_at_is_one_page_and_is_looked_at_once() {
    let read = |text: &str| one_path(text).map(|path| path.to_string()).map_err(|error| error.to_string());
    assert_eq!(read(" /shop?page=2 "), Ok("/shop?page=2".to_owned()));
    assert_eq!(read("/shop/*"), Err("/shop/* is no single path: name one page, as in /shop/".to_owned()));
    assert_eq!(read("#tag"), Err("#tag is no single path: name one page, as in /shop/".to_owned()));
    assert_eq!(
        read(&format!("/{}", "a".repeat(256))),
        Err("a path to look at has 257 bytes, the most is 256".to_owned())
    );
    let cut = format!("/{} is no single path: name one page, as in /shop/", "a".repeat(79));
    assert_eq!(read(&format!("/{}*", "a".repeat(3_000))), Err(cut));
    assert_eq!(one_path("shop").unwrap_err().reason(), "a path starts with / and a cache tag with #");
    assert_eq!(one_path("/*").unwrap_err().reason(), "a star or a cache tag stands for many pages");
    let all = ["/b", "/", "/b", "/a", "/"].map(|path| path.parse().unwrap());
    assert_eq!(distinct(all.into()).iter().map(ToString::to_string).collect::<Vec<_>>(), ["/b", "/", "/a"]);
}

#[test]
fn the_worst_page_is_told_and_the_others_are_counted() {
    let mut stage = Stage::of(&["a.example.com/", "b.example.com/", "c.example.com/"], None, 0);
    stage.run(600, |now, question| {
        let lines = match question.page.host().as_str() {
            "a.example.com" => ("age", "0"),
            "b.example.com" => ("age", "600"),
            _ => MISS,
        };
        Answers { edge: reply(answer("/", now, &[lines])), pods: Vec::new() }
    });
    let words = stage.words()[0];
    assert!(
        words.starts_with("b.example.com/ is stale") && words.contains("; of 3 pages 1 stale, 1 unknown, 1 renewed"),
        "{words}"
    );
}

#[test]
fn another_life_goes_on_and_takes_nothing_for_stale_by_its_age() {
    let mut stage = Stage::new(None, 1);
    stage.run_with(20, OLD, &[HIT]);
    assert_eq!(stage.seconds(), [0, 2, 5, 10]);
    // Its clock begins elsewhere, and the purge was ten seconds ago, at least.
    let mut stage = stage.restart(at(5_000));
    assert_eq!(stage.look.next_deadline(), Some(at(5_000)), "the last look may not have been made");
    stage.run(600, |now, _| {
        let age = (now.as_millis() / 1000 + 100).to_string();
        Answers { edge: reply(answer("/", now, &[("age", &age)])), pods: Vec::new() }
    });
    assert_eq!((stage.told[0].found, &stage.again[..]), (Found::Unknown, &[0; 0][..]));
    assert!(
        stage.words()[0].ends_with("it may have been stored before the purge, which this allclear did not see ordered")
            || stage.words()[0].ends_with("it was old, but not at two looks half a minute after the purge")
    );

    let mut stage = Stage::new(None, 1);
    stage.run(3, |now, _| Answers { edge: reply(answer("/", now, &[("age", "9")])), pods: Vec::new() });
    let mut stage = stage.restart(at(1_000));
    stage.run_with(60, 1_500, &[HIT]);
    assert!(stage.words()[0].ends_with("www.example.com/, at least 10 s after it"), "{}", stage.words()[0]);
}

#[test]
fn restarts_ask_no_page_more_often_than_the_bound() {
    let mut stage = Stage::new(None, 1);
    let mut asked = 0;
    for life in 0..20 {
        stage.run(4, |now, _| Answers { edge: reply(answer("/", now, &[("age", "9")])), pods: Vec::new() });
        asked += stage.asked.len();
        stage = stage.restart(at(life * 1_000_000));
    }
    stage.run(600, |now, _| Answers { edge: reply(answer("/", now, &[("age", "9")])), pods: Vec::new() });
    asked += stage.asked.len();
    assert!(asked <= usize::from(PAGE_REQUESTS_MAX) && stage.ended, "{asked}");
}

#[test]
fn what_is_asked_for_is_durable_first_and_asked_for_again_in_another_life() {
    let mut stage = Stage::new(None, 1);
    stage.run_with(59, OLD, &[HIT]);
    // The sixth look: its booking is durable, and what follows from it is not.
    stage.now = at(170_000);
    let effects = stage.look.tick(stage.now);
    let [Effect::Keep(booked)] = &effects[..] else { panic!("{effects:?}") };
    let effects = stage.look.step(stage.now, Event::Kept(booked.number));
    let [Effect::Ask(question)] = &effects[..] else { panic!("{effects:?}") };
    let answers = Answers { edge: reply(answer("/", stage.now, &[("age", "130")])), pods: Vec::new() };
    let effects = stage.look.step(stage.now, Event::Answered(question.id, Box::new(answers.clone())));
    let [Effect::Keep(stored)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(stage.look.step(stage.now, Event::Answered(question.id, Box::new(answers))), []);
    let mut lost = Look::resume(at(1), (**booked).clone());
    assert!(matches!(lost.tick(at(1))[..], [Effect::Keep(_)]), "its answer was lost: it is looked at again");
    let mut known = Look::resume(at(1), (**stored).clone());
    let effects = known.tick(at(1));
    assert!(matches!(&effects[..], [Effect::Tell(_), Effect::PurgeAgain(1, _)]), "{effects:?}");
    assert_eq!(known.tick(at(2)), [], "once in a life");
    assert_eq!(known.step(at(3), Event::AgainFailed(1)).len(), 1);
    let effects = known.step(at(3), Event::Kept(u32::MAX));
    let [Effect::Tell(verdict), Effect::End] = &effects[..] else { panic!("{effects:?}") };
    assert!(verdict.words.contains("CloudFront has kept it"), "that no purge follows is news: {}", verdict.words);
}

#[test]
fn a_newer_purge_or_a_person_ends_it_without_a_word() {
    for event in [Event::Overtaken, Event::Forgotten] {
        let mut stage = Stage::new(None, 1);
        stage.run_with(600, OLD, &[HIT]);
        stage.told.clear();
        stage.step(event.clone(), &mut |_, _| unreachable!());
        assert!(stage.ended && stage.told.is_empty());
        assert_eq!(stage.look.step(stage.now, event), []);
        assert_eq!(stage.look.step(stage.now, Event::AgainCompleted(1, None)), [], "it is not looked at again");
    }
}

#[test]
fn a_question_that_nobody_answers_is_given_up() {
    let mut stage = Stage::new(None, 1);
    let Some(Effect::Keep(stored)) = stage.look.tick(stage.now).pop() else { panic!() };
    assert!(matches!(stage.look.step(stage.now, Event::Kept(stored.number))[..], [Effect::Ask(_)]));
    assert!(matches!(stage.look.step(stage.now, Event::PeersRestarted)[..], [Effect::Ask(_)]), "it was forgotten");
    assert_eq!(stage.look.next_deadline(), Some(at(110_000 + 1_800_000)));
    stage.now = at(110_000 + 1_800_000);
    stage.run(1_000, |_, _| Answers { edge: failed("no route"), pods: Vec::new() });
    assert_eq!(stage.told[0].found, Found::Unknown);
    assert!(stage.words()[0].contains("looked up to 1800 s late"), "{}", stage.words()[0]);
}

#[test]
fn what_is_stored_is_small_and_never_larger_than_its_part_of_a_record() {
    let size = |stage: &Stage| serde_json::to_string(stage.look.stored()).unwrap().len();
    let mut usual = Stage::new(None, 1);
    usual.run_with(600, OLD, &[HIT]);
    let label = "a".repeat(60);
    let path = |n: usize| format!("/{n:02}{}", "p".repeat(253));
    let pages: Vec<String> = (0..32).map(|n| format!("{label}.{label}.{label}.{label}.example{}", path(n))).collect();
    let mut largest = Stage::of(&pages.iter().map(String::as_str).collect::<Vec<_>>(), Some("header:x-version"), 3);
    let mut turn = 0;
    largest.run(2_000, |now, question| {
        turn += 1;
        let place = format!("FRA56-P12345678{}", turn % 3);
        let hop = answer(&path(99), now, &[("x-amz-cf-pop", &place), ("x-version", "v1"), ("age", "2147483648")]);
        Answers { edge: reply(hop), pods: pods(question, now) }
    });
    println!("bytes of a stored look: {} of one page, {} of 32 at most", size(&usual), size(&largest));
    assert!(size(&usual) < 400 && size(&largest) < 40_000, "{} {}", size(&usual), size(&largest));
}

#[test]
fn a_sentence_says_no_more_than_what_was_seen() {
    let mut stage = Stage::of(&["a.example.com/", "b.example.com/"], None, 0);
    stage.run(600, |now, question| {
        let place = if question.page.host().as_str() == "a.example.com" { "FRA56-P1" } else { "AMS1-P1" };
        Answers { edge: reply(answer("/", now, &[("x-amz-cf-pop", place), ("age", "0")])), pods: Vec::new() }
    });
    let words = "nothing stored before the purge is left: a.example.com/ at FRA56-P1, 2 s after it, \
                 b.example.com/ at AMS1-P1, 2 s after it";
    assert_eq!(stage.words(), [words], "each page where it was seen");
    for (version, words) in [
        ("v2", "the edge is fresh: www.example.com/ at FRA56-P1 is what header:x-version=v2 asks for, 2 s after it"),
        (
            "v1",
            "www.example.com/ is stale at FRA56-P1: it is not what header:x-version=v2 asks for, 60 s after the purge",
        ),
    ] {
        let mut stage = Stage::new(Some("header:x-version=v2"), 0);
        stage.run_with(600, 105_000, &[("x-version", version)]);
        assert!(stage.words()[0].starts_with(words), "no pod was asked: {:?}", stage.words());
    }
}
