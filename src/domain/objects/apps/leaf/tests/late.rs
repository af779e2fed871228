//! Targets that are wanted when a watch is about to begin, or has begun.

use super::*;

#[test]
fn what_a_watch_says_of_a_target_that_came_late_may_be_old_so_it_is_read() {
    let (first, late) = (web("shop"), called("late", &web("shop")));
    let mut bench = Bench::of(std::slice::from_ref(&first));
    bench.tell("Deployment", News::Restarted);
    bench.tell("Deployment", News::Seen(vec![(first.clone(), Ok(look("1", false)))]));
    bench.tell("Deployment", News::Synced);
    bench.step(Event::Wanted(shop(), [first, late.clone()].into()));
    let asked = bench.reads.remove(&late).expect("it is read by name");
    // Both were said before it was wanted. It was made anew meanwhile, and that was left out.
    bench.tell("Deployment", News::Gone { namespace: "shop".to_owned(), name: "late".to_owned() });
    assert!(matches!(bench.reports.last(), Some((_, sights)) if matches!(sights[&late], Sight::Unknown(_))));
    bench.step(Event::Read(asked, Ok(None)));
    let again = bench.reads.remove(&late).expect("what was under way may be as old");
    bench.step(Event::Read(again, Ok(Some(look("2", false)))));
    let is_there = |bench: &Bench, revision: &str| {
        let (_, sights) = bench.reports.last().expect("it was reported");
        sights[&late].revision().is_some_and(|said| said.0 == revision)
    };
    assert!(is_there(&bench, "2"));
    bench.tell("Deployment", News::Seen(vec![(late.clone(), Ok(look("3", false)))]));
    assert!(is_there(&bench, "3"), "from now on the watch is believed");
}

#[test]
fn watches_begin_when_nothing_more_is_wanted_or_after_two_seconds() {
    let mut leaf = Leaf::new();
    let begins = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Watch(..)));
    let want = |number: u64| {
        let name = format!("app-{number}");
        Event::Wanted(PipelineId::new("shop", name.as_str()), [called(&name, &web("shop"))].into())
    };
    leaf.step(at(0), want(0));
    assert!(!begins(&leaf.step(at(0), Event::Linked)));
    for number in 1..=19 {
        let now = Timestamp::from_millis(number * 100);
        assert!(leaf.next_deadline().is_some_and(|deadline| deadline > now), "{number}");
        assert!(!begins(&leaf.step(now, want(number))), "{number}");
    }
    assert_eq!(leaf.next_deadline(), Some(at(2)));
    assert!(begins(&leaf.tick(at(2))));
}

#[test]
fn what_is_wanted_before_the_listing_begins_is_left_to_the_watch() {
    let (first, second) = (web("shop"), called("api", &web("shop")));
    let mut bench = Bench::of(std::slice::from_ref(&first));
    bench.step(Event::Wanted(PipelineId::new("shop", "api"), [second.clone()].into()));
    bench.tell("Deployment", News::Restarted);
    let both = [first, second.clone()].map(|target| (target, Ok(look("1", false))));
    bench.tell("Deployment", News::Seen(both.to_vec()));
    bench.tell("Deployment", News::Synced);
    assert_eq!((bench.reads.len(), bench.said(&second)), (0, "1".to_owned()));
}
