use super::*;
use crate::asked::QuestionId;
use crate::turns::{Asker, Effect, Event, Turns};
use kernel::id::{Reference, WorkloadId};

fn asker(namespace: &str, name: &str) -> Asker {
    (WorkloadId::deployment(namespace, name), Reference("r".to_owned()))
}

fn wanted(namespace: &str, name: &str, host: &str, look: u8) -> Event {
    let question = Question {
        id: QuestionId { round: 0, page: 0, look },
        page: page(&format!("{host}/")),
        requests_max: 1,
        wants_body: false,
        marker_header: None,
        asks_pods: false,
    };
    Event::Wanted(asker(namespace, name), Box::new(question))
}

/// Runs until nothing is due any more; each question is answered at once, with so many requests. Who asked of which host, and when.
fn run(turns: &mut Turns, from: u64, events: Vec<Event>, requests: u8) -> Vec<(String, String, u64)> {
    let (mut now, mut asked) = (at(from), Vec::new());
    let mut effects: Vec<Effect> = events.into_iter().flat_map(|event| turns.step(now, event)).collect();
    loop {
        while let Some(Effect::Ask(asker, question)) = effects.pop() {
            let host = question.page.host().clone();
            asked.push((asker.0.to_string(), host.as_str().to_owned(), now.as_millis()));
            effects.extend(turns.step(now, Event::Answered(host, requests)));
        }
        let Some(next) = turns.next_deadline() else { return asked };
        assert!(next > now, "a deadline that no tick moves");
        now = next;
        effects = turns.tick(now);
    }
}

#[test]
fn two_a_second_in_all_and_one_a_second_of_one_host() {
    let different = (0..9).map(|n| wanted("a", &format!("w{n}"), &format!("h{n}.example.com"), 1)).collect();
    let asked = run(&mut Turns::default(), 0, different, 1);
    assert_eq!(asked.iter().map(|(.., at)| *at).collect::<Vec<_>>(), (0..9).map(|n| n * 500).collect::<Vec<_>>());
    let same = (0..4).map(|n| wanted("a", &format!("w{n}"), "h.example.com", 1)).collect();
    let asked = run(&mut Turns::default(), 0, same, 1);
    assert_eq!(asked.iter().map(|(.., at)| *at).collect::<Vec<_>>(), [0, 1_000, 2_000, 3_000]);
    let led = (0..3).map(|n| wanted("a", &format!("w{n}"), &format!("h{n}.example.com"), 1)).collect();
    let asked = run(&mut Turns::default(), 0, led, 3);
    assert_eq!(asked.iter().map(|(.., at)| *at).collect::<Vec<_>>(), [0, 1_500, 3_000], "redirects are requests");
}

#[test]
fn a_page_is_asked_about_once_at_a_time() {
    let mut turns = Turns::default();
    let blocks = turns.step(at(0), wanted("a", "first", "h.example.com", 1));
    assert_eq!(blocks.len(), 1);
    for look in 1..=3 {
        drop(turns.step(at(1), wanted("a", "web", "h.example.com", look)));
    }
    assert_eq!(turns.waiting(), 1, "what its look has given up is not asked");
}

#[test]
fn namespaces_have_turns() {
    let mut turns = Turns::default();
    let many = (0..30).map(|n| wanted("a", &format!("w{n}"), &format!("h{n}.example.com"), 1));
    let asked = run(&mut turns, 0, many.chain([wanted("b", "web", "b.example.com", 1)]).collect(), 1);
    let place = asked.iter().position(|(who, ..)| who == "deployment/b/web").unwrap();
    assert!(place <= 1, "it waits for one of the other, not for thirty: {place}");
}

#[test]
fn thirty_two_ask_at_once_and_those_that_are_idle_make_room() {
    let mut turns = Turns::default();
    let all: Vec<Event> = (0..40).map(|n| wanted("a", &format!("w{n:02}"), &format!("h{n}.example.com"), 1)).collect();
    let asked = run(&mut turns, 0, all, 1);
    let last = |n: usize| asked[n].2;
    assert_eq!((asked.len(), last(31)), (40, 15_500));
    assert!(last(32) >= 45_000, "until one has been idle: {}", last(32));
    assert_eq!(turns.waiting(), 0);

    let mut turns = Turns::default();
    let all: Vec<Event> = (0..40).map(|n| wanted("a", &format!("w{n:02}"), "h.example.com", 1)).collect();
    all.into_iter().for_each(|event| drop(turns.step(at(0), event)));
    let gone: Vec<Event> = (0..40).map(|n| Event::Left(asker("a", &format!("w{n:02}")))).collect();
    gone.into_iter().for_each(|event| drop(turns.step(at(1), event)));
    assert_eq!((turns.waiting(), turns.next_deadline()), (0, None));
}

#[test]
fn another_namespace_takes_its_share_of_the_places() {
    let mut turns = Turns::default();
    let many: Vec<Event> = (0..40).map(|n| wanted("a", &format!("w{n:02}"), &format!("h{n}.example.com"), 1)).collect();
    many.into_iter().for_each(|event| drop(turns.step(at(0), event)));
    let asked = run(&mut turns, 600, vec![wanted("b", "web", "b.example.com", 1)], 1);
    assert_eq!(asked[0].0, "deployment/b/web");
}

#[test]
fn an_answer_that_never_comes_holds_its_host_no_longer_than_it_may_take() {
    let mut turns = Turns::default();
    assert_eq!(turns.step(at(0), wanted("a", "one", "h.example.com", 1)).len(), 1);
    assert_eq!(turns.step(at(0), wanted("a", "two", "h.example.com", 1)), []);
    assert_eq!(turns.next_deadline(), Some(at(10_000)));
    assert_eq!(turns.tick(at(10_000)).len(), 1);
}
