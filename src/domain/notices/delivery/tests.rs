//! Stories of single deliveries. What holds for every history is in `tests/property/delivery.rs`.

use super::outbox::{LOST_AFTER, RESTORED_WAIT_MAX, SENDING_MAX, WRITES_MAX};
use super::*;
use kernel::id::{Seq, WorkloadId};
use kernel::machine::{Machine, Timestamp};

fn notice(name: &str) -> Notice {
    Notice {
        id: name.into(),
        kind: notice::Kind::PurgeCompleted,
        about: WorkloadId::deployment("shop", "web").into(),
        seq: Seq(1),
        at_ms: 0,
        rollout: "r".to_owned(),
        change: "web: 1 → 2".to_owned(),
        message: String::new(),
    }
}

fn delivery(name: &str, hook: &str) -> Delivery {
    Delivery::new(&notice(name), hook, Content::Json("{}".to_owned()))
}

fn told(name: &str, hooks: &[&str]) -> Event {
    Event::Told { notice: name.into(), deliveries: hooks.iter().map(|hook| delivery(name, hook)).collect() }
}

fn failed(delivery: &Delivery, attempt: u32, reply: Reply) -> Event {
    Event::Answered { id: delivery.id.clone(), attempt, reply }
}

fn refused() -> Reply {
    Reply::Refused { status: 500, retry_after: None }
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// The outbox with a ledger that stores and forgets at once. Everything else is the test's part.
struct Desk {
    outbox: Outbox,
    now: Timestamp,
}

impl Desk {
    fn new(settings: Settings) -> Self {
        Self { outbox: Outbox::new(settings), now: at(0) }
    }

    /// Takes a step and all that follow from the ledger's answers; what is left is for the test.
    fn step(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.outbox.step(self.now, event);
        self.write(effects)
    }

    /// Lets time pass until the outbox has something to do.
    fn wait(&mut self) -> Vec<Effect> {
        self.now = self.outbox.next_deadline().expect("something to wait for");
        let effects = self.outbox.tick(self.now);
        self.write(effects)
    }

    fn write(&mut self, effects: Vec<Effect>) -> Vec<Effect> {
        let mut rest = Vec::new();
        for effect in effects {
            let answer = match effect {
                Effect::Store { delivery, write } => Event::Stored { id: delivery.id, write },
                Effect::Remove { id, write } => Event::Removed { id, write },
                other => {
                    rest.push(other);
                    continue;
                }
            };
            rest.extend(self.step(answer));
        }
        rest
    }
}

fn store(delivery: &Delivery, write: u64) -> Effect {
    Effect::Store { delivery: delivery.clone(), write }
}

fn sends(effects: &[Effect]) -> Vec<(String, u32)> {
    let sends = effects.iter().filter_map(|effect| match effect {
        Effect::Send { delivery, attempt } => Some((delivery.id.clone(), *attempt)),
        _ => None,
    });
    sends.collect()
}

fn outcomes(effects: &[Effect]) -> Vec<&'static str> {
    let reports = effects.iter().filter_map(|effect| match effect {
        Effect::Report(report) => Some(report.outcome.name()),
        _ => None,
    });
    reports.collect()
}

#[test]
fn nothing_is_sent_or_accepted_before_it_is_stored() {
    let mut outbox = Outbox::new(Settings::default());
    let (a, b) = (delivery("n", "a"), delivery("n", "b"));
    let effects = outbox.step(at(0), told("n", &["a", "b"]));
    assert_eq!(effects, [store(&a, 1), store(&b, 2)]);
    let effects = outbox.step(at(1), Event::Stored { id: a.id.clone(), write: 1 });
    assert_eq!(effects, [Effect::Send { delivery: a, attempt: 1 }]);
    let effects = outbox.step(at(2), Event::Stored { id: b.id.clone(), write: 2 });
    assert_eq!(effects, [Effect::Accepted("n".into()), Effect::Send { delivery: b, attempt: 1 }]);
}

#[test]
fn a_notice_nobody_subscribes_to_is_accepted_at_once() {
    let mut outbox = Outbox::new(Settings::default());
    assert_eq!(outbox.step(at(0), told("n", &[])), [Effect::Accepted("n".into())]);
    assert_eq!(outbox, Outbox::new(Settings::default()));
}

#[test]
fn a_notice_told_again_changes_nothing_and_is_accepted_again() {
    let mut desk = Desk::new(Settings::default());
    desk.step(told("n", &["a"]));
    let before = desk.outbox.clone();
    assert_eq!(desk.step(told("n", &["a"])), [Effect::Accepted("n".into())]);
    assert_eq!(desk.outbox, before);
}

#[test]
fn what_was_delivered_is_forgotten_everywhere() {
    let mut desk = Desk::new(Settings::default());
    desk.step(told("n", &["a"]));
    let effects = desk.step(failed(&delivery("n", "a"), 1, Reply::Delivered { status: 204 }));
    assert_eq!(outcomes(&effects), ["delivered"]);
    assert_eq!(desk.outbox.deliveries().count(), 0);
    assert_eq!(desk.outbox.next_deadline(), None);
}

// Faults: H1
/// Goal: every wait is the schedule's, at most a tenth longer. Method: a receiver that never takes it.
#[test]
fn the_schedule_is_kept_to_its_end() {
    let mut desk = Desk::new(Settings::default());
    let one = delivery("n", "a");
    let mut effects = desk.step(told("n", &["a"]));
    for (attempt, next) in (1_u32..).zip(SCHEDULE.iter().skip(1)) {
        assert_eq!(sends(&effects), [(one.id.clone(), attempt)]);
        assert_eq!(outcomes(&desk.step(failed(&one, attempt, refused()))), ["retrying"]);
        let before = desk.now;
        effects = desk.wait();
        let waited = desk.now.since(before);
        assert!(waited >= *next && waited <= *next + *next / 10, "{attempt}: {waited:?}");
    }
    assert_eq!(outcomes(&desk.step(failed(&one, 10, refused()))), ["dead"]);
    assert_eq!(desk.outbox.next_deadline(), None);
    let (dead, due) = desk.outbox.deliveries().next().expect("a dead letter");
    assert_eq!(due, None);
    assert_eq!(dead.state, State::Dead { reason: "given up after 10 attempts, the last one: answered 500".to_owned() });
}

#[test]
fn a_receiver_that_asks_to_be_left_alone_is_left_alone_by_all_its_deliveries() {
    let mut desk = Desk::new(Settings::default());
    desk.step(told("n", &["a"]));
    let reply = Reply::Refused { status: 429, retry_after: Some(Duration::from_secs(60)) };
    desk.step(failed(&delivery("n", "a"), 1, reply));
    assert_eq!(sends(&desk.step(told("m", &["a", "b"]))), [(delivery("m", "b").id, 1)]);
    desk.step(failed(&delivery("m", "b"), 1, Reply::Delivered { status: 200 }));
    let effects = desk.wait();
    assert_eq!(desk.now, at(60_000));
    assert_eq!(sends(&effects).len(), 1, "one at a time, as its last attempt failed");
}

#[test]
fn an_endless_retry_after_is_believed_for_a_day() {
    let mut desk = Desk::new(Settings::default());
    desk.step(told("n", &["a"]));
    let reply = Reply::Refused { status: 503, retry_after: Some(Duration::MAX) };
    desk.step(failed(&delivery("n", "a"), 1, reply));
    assert_eq!(desk.outbox.next_deadline(), Some(at(24 * 60 * 60 * 1000)));
}

// Faults: H1
#[test]
fn a_receiver_that_is_gone_is_called_once_and_its_letters_are_dead() {
    let mut desk = Desk::new(Settings::default());
    desk.step(Event::Restored((0..6).map(|n| delivery(&format!("n{n}"), "a")).collect()));
    let (first, second) = (delivery("n0", "a"), delivery("n1", "a"));
    let sending: Vec<String> =
        desk.outbox.deliveries().filter(|(_, due)| due.is_none()).map(|(d, _)| d.id.clone()).collect();
    assert_eq!(sending.len(), 4, "a healthy hook has four places");
    let effects = desk.step(Event::Answered { id: sending[0].clone(), attempt: 1, reply: Reply::Gone });
    assert_eq!(outcomes(&effects), ["hook_disabled", "dead", "dead", "dead"]);
    // Three were under way: what fails now is dead, what was taken is delivered.
    let effects = desk.step(Event::Answered { id: sending[1].clone(), attempt: 1, reply: refused() });
    assert_eq!(outcomes(&effects), ["dead"]);
    let effects =
        desk.step(Event::Answered { id: sending[2].clone(), attempt: 1, reply: Reply::Delivered { status: 200 } });
    assert_eq!(outcomes(&effects), ["delivered"]);
    let effects = desk.step(told("later", &["a"]));
    assert_eq!((sends(&effects), outcomes(&effects)), (vec![], vec!["dead"]));
    assert!(effects.contains(&Effect::Accepted("later".into())));
    assert_eq!(desk.outbox.disabled().collect::<Vec<_>>(), [("a", "answered 410: the receiver is gone")]);
    let dead = if sending[0] == first.id { first } else { second };
    let dead = if sending.contains(&dead.id) { delivery("later", "a") } else { dead };
    assert_eq!(sends(&desk.step(resend("1", &dead))), [(dead.id, 1)]);
    assert_eq!(desk.outbox.disabled().count(), 0);
}

// Faults: H4
#[test]
fn an_address_that_may_not_be_called_is_not_tried_again() {
    let mut desk = Desk::new(Settings::default());
    desk.step(told("n", &["a"]));
    let reply = Reply::Blocked { reason: "not sent: 169.254.169.254 is a link-local address".to_owned() };
    assert_eq!(outcomes(&desk.step(failed(&delivery("n", "a"), 1, reply))), ["dead"]);
    assert_eq!(desk.outbox.next_deadline(), None);
}

// Faults: H7
/// Goal: a hanging receiver costs the others nothing. Method: hang every place of one hook, then tell another.
#[test]
fn a_hanging_receiver_delays_no_other() {
    let mut desk = Desk::new(Settings::default());
    for n in 0..200 {
        desk.step(told(&format!("n{n}"), &["hangs"]));
    }
    assert_eq!(desk.outbox.census().sending, 4);
    assert_eq!(sends(&desk.step(told("m", &["fine"]))), [(delivery("m", "fine").id, 1)]);
}

#[test]
fn many_hanging_receivers_share_the_places_evenly() {
    let mut desk = Desk::new(Settings::default());
    let hooks: Vec<String> = (0..100).map(|n| format!("hook-{n:03}")).collect();
    let names: Vec<&str> = hooks.iter().map(String::as_str).collect();
    let all = |n: u32| names.iter().map(move |hook| delivery(&format!("n{n}"), hook));
    let effects = desk.step(Event::Restored((0..4).flat_map(all).collect()));
    assert_eq!(sends(&effects).len(), SENDING_MAX);
    let served: std::collections::BTreeSet<String> = effects
        .iter()
        .filter_map(
            |effect| if let Effect::Send { delivery, .. } = effect { Some(delivery.hook.clone()) } else { None },
        )
        .collect();
    assert_eq!(served.len(), SENDING_MAX, "no hook twice before all had a turn");
}

// Faults: H7
#[test]
fn a_dead_receiver_fills_half_the_room_and_leaves_the_rest() {
    let limits = Limits { live: 20, ..Limits::default() };
    let mut desk = Desk::new(Settings { limits, ..Settings::default() });
    let mut postponed = 0;
    for n in 0..30 {
        postponed +=
            desk.step(told(&format!("n{n}"), &["dead"])).iter().filter(|e| matches!(e, Effect::Postponed(_))).count();
    }
    assert_eq!((desk.outbox.census().live, postponed), (10, 20));
    let effects = desk.step(told("m", &["dead", "fine"]));
    assert_eq!(sends(&effects), [(delivery("m", "fine").id, 1)], "the other hook of the same notice is served");
    assert!(effects.contains(&Effect::Postponed("m".into())));
    desk.step(failed(&delivery("m", "fine"), 1, Reply::Delivered { status: 200 }));
    desk.step(failed(&delivery("n0", "dead"), 1, Reply::Delivered { status: 200 }));
    let effects = desk.step(told("m", &["dead", "fine"]));
    assert!(effects.contains(&Effect::Accepted("m".into())), "{effects:?}");
    assert!(!sends(&effects).contains(&(delivery("m", "fine").id, 1)), "told again, it is not delivered again");
}

#[test]
fn the_oldest_is_dropped_only_by_policy_and_never_silently() {
    let limits = Limits { live: 20, ..Limits::default() };
    let mut desk = Desk::new(Settings { limits, overflow: Overflow::DropOldest, ..Settings::default() });
    let mut dropped = 0;
    for n in 0..30_i64 {
        let one = Delivery { created_ms: n, ..delivery(&format!("n{n}"), "dead") };
        let effects = desk.step(Event::Told { notice: one.notice.clone(), deliveries: vec![one] });
        dropped += outcomes(&effects).iter().filter(|name| **name == "dropped").count();
    }
    assert_eq!((desk.outbox.census().live, dropped), (10, 20));
    let kept: Vec<i64> =
        desk.outbox.deliveries().map(|(delivery, _)| delivery.created_ms).filter(|ms| *ms >= 24).collect();
    assert_eq!(kept.len(), 6, "four are being sent, six waited and are the youngest");
}

#[test]
fn dead_letters_are_bounded_and_the_oldest_goes_first() {
    let limits = Limits { dead: 2, ..Limits::default() };
    let mut desk = Desk::new(Settings { limits, ..Settings::default() });
    let mut reports = Vec::new();
    for n in 0..3 {
        let one = Delivery { created_ms: n, ..delivery(&format!("n{n}"), "a") };
        desk.step(Event::Told { notice: one.notice.clone(), deliveries: vec![one.clone()] });
        reports = desk.step(failed(&one, 1, Reply::Blocked { reason: "no".to_owned() }));
    }
    assert_eq!(outcomes(&reports), ["dead", "dropped"]);
    assert_eq!(desk.outbox.deliveries().map(|(delivery, _)| delivery.created_ms).min(), Some(1));
}

#[test]
fn a_restart_continues_the_schedule_and_waits_no_day_for_it() {
    let mut desk = Desk::new(Settings::default());
    let late = Delivery { attempts: 9, ..delivery("n", "a") };
    let early = Delivery { attempts: 1, ..delivery("m", "b") };
    let effects = desk.step(Event::Restored(vec![late.clone(), early.clone()]));
    assert_eq!(sends(&effects), []);
    assert_eq!(sends(&desk.wait()), [(early.id, 2)]);
    assert!(desk.now.since(at(0)) >= Duration::from_secs(5));
    desk.outbox.step(desk.now, Event::Answered { id: delivery("m", "b").id, attempt: 2, reply: Reply::Gone });
    let effects = desk.outbox.tick(at(0).after(RESTORED_WAIT_MAX));
    assert!(sends(&effects).contains(&(late.id.clone(), 10)), "{effects:?}");
    assert_eq!(outcomes(&desk.step(failed(&late, 10, refused()))), ["dead"]);
}

/// A life that ended after it wrote the outbox and before its record said so leaves both to the next one.
#[test]
fn a_delivery_of_an_earlier_life_is_not_sent_again_when_its_notice_is_told_again() {
    let mut desk = Desk::new(Settings::default());
    let left = delivery("n", "a");
    assert_eq!(sends(&desk.step(Event::Restored(vec![left.clone()]))), [(left.id.clone(), 1)]);
    desk.step(failed(&left, 1, Reply::Delivered { status: 204 }));
    assert_eq!(desk.step(told("n", &["a"])), [Effect::Accepted("n".into())]);
}

#[test]
fn a_notice_told_before_the_ledger_was_read_does_not_revive_a_dead_letter() {
    let mut outbox = Outbox::new(Settings::default());
    outbox.step(at(0), told("n", &["a"]));
    let dead = Delivery { attempts: 10, state: State::Dead { reason: "given up".to_owned() }, ..delivery("n", "a") };
    let effects = outbox.step(at(1), Event::Restored(vec![dead.clone()]));
    assert_eq!(effects, [Effect::Accepted("n".into())]);
    let effects = outbox.step(at(2), Event::Stored { id: dead.id.clone(), write: 1 });
    assert_eq!(effects, [store(&dead, 2)], "the write that was under way had revived it in the ledger");
}

#[test]
fn what_is_durable_is_sent_while_the_ledger_is_down() {
    let mut outbox = Outbox::new(Settings::default());
    let one = delivery("n", "a");
    outbox.step(at(0), Event::Restored(vec![one.clone()]));
    let effects = outbox.step(at(1), failed(&one, 1, refused()));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Store { .. })));
    outbox.step(at(2), Event::StoreFailed { id: one.id.clone(), write: 1 });
    let mut seen = Vec::new();
    for _ in 0..20 {
        let Some(now) = outbox.next_deadline() else { break };
        let effects = outbox.tick(now);
        seen.extend(sends(&effects));
        for effect in effects {
            if let Effect::Store { delivery, write } = effect {
                outbox.step(now, Event::StoreFailed { id: delivery.id, write });
            }
        }
    }
    assert_eq!(seen.first(), Some(&(one.id, 2)));
}

#[test]
fn an_effect_without_an_answer_is_repeated() {
    let mut outbox = Outbox::new(Settings::default());
    let one = delivery("n", "a");
    outbox.step(at(0), told("n", &["a"]));
    let lost = at(0).after(LOST_AFTER);
    assert_eq!(outbox.next_deadline(), Some(lost));
    assert_eq!(outbox.tick(lost), [store(&one, 2)]);
    outbox.step(lost, Event::Stored { id: one.id.clone(), write: 2 });
    let lost = lost.after(LOST_AFTER);
    assert_eq!(outcomes(&outbox.tick(lost)), ["retrying"]);
    // The answer of the first attempt, too late to end the second, but good news.
    let effects = outbox.step(lost, failed(&one, 1, Reply::Delivered { status: 200 }));
    assert_eq!(outcomes(&effects), ["delivered"]);
}

#[test]
fn writes_under_way_are_bounded() {
    let mut outbox = Outbox::new(Settings::default());
    let all: Vec<Delivery> = (0..500).map(|n| delivery("n", &format!("hook-{n}"))).collect();
    let effects = outbox.step(at(0), Event::Told { notice: "n".into(), deliveries: all });
    assert_eq!(effects.len(), WRITES_MAX);
}

#[test]
fn a_delivery_survives_its_own_json_and_is_small_in_it() {
    let mut one = delivery("msg_0123456789abcdef0123456789abcdef", "web");
    one.state = State::Dead { reason: "given up".to_owned() };
    let text = serde_json::to_string(&one).expect("json");
    assert_eq!(serde_json::from_str::<Delivery>(&text).expect("a delivery"), one);
    assert!(text.len() < 320, "{}: {text}", text.len());
}

/// A port's answer may arrive twice, and late, while another write is pending.
#[test]
fn an_answer_that_comes_twice_does_not_end_the_write_after_it() {
    let mut outbox = Outbox::new(Settings::default());
    let one = delivery("n", "a");
    assert_eq!(outbox.step(at(0), told("n", &["a"])), [store(&one, 1)]);
    outbox.step(at(1), Event::Stored { id: one.id.clone(), write: 1 });
    let gone = outbox.step(at(2), failed(&one, 1, Reply::Gone));
    let [.., Effect::Store { delivery: dead, write: 2 }] = gone.as_slice() else { panic!("{gone:?}") };
    assert!(dead.is_dead());
    outbox.step(at(3), Event::Stored { id: one.id.clone(), write: 1 });
    assert_eq!(outbox.census().writing, 1, "the dead letter is not known to be stored");
    outbox.step(at(4), Event::StoreFailed { id: one.id.clone(), write: 2 });
    let again = outbox.tick(outbox.next_deadline().expect("the write is repeated"));
    assert_eq!(again, [store(dead, 3)]);
}

fn resend(at: &str, delivery: &Delivery) -> Event {
    let request = Resend { at: at.to_owned(), deliveries: [delivery.id.clone()].into() };
    Event::Resend { subject: delivery.subject.clone(), request }
}

/// The annotation stays on the workload, so every sight of it repeats the request.
#[test]
fn a_request_sends_a_dead_letter_once_however_often_it_is_seen() {
    let one = Delivery { attempts: 10, state: State::Dead { reason: "given up".to_owned() }, ..delivery("n", "a") };
    let mut desk = Desk::new(Settings::default());
    // Before the ledger was read, nothing is known of it yet.
    let Event::Resend { request, .. } = resend("0", &one) else { panic!("another event") };
    let other = Event::Resend { subject: WorkloadId::deployment("shop", "other").into(), request };
    assert_eq!(desk.step(other.clone()), []);
    assert_eq!(sends(&desk.step(resend("1", &one))), []);
    let effects = desk.step(Event::Restored(vec![one.clone()]));
    assert_eq!((sends(&effects), outcomes(&effects)), (vec![(one.id.clone(), 1)], vec!["resent"]));
    let effects = desk.step(failed(&one, 1, Reply::Blocked { reason: "not sent".to_owned() }));
    assert_eq!(outcomes(&effects), ["dead"]);
    assert_eq!(desk.step(resend("1", &one)), [], "it was met");
    assert_eq!(desk.step(other), [], "who may write on another workload has no say");
    let kept = desk.outbox.deliveries().next().map(|(delivery, _)| delivery.clone()).expect("a dead letter");
    let mut next = Desk::new(Settings::default());
    next.step(Event::Restored(vec![kept]));
    assert_eq!(sends(&next.step(resend("1", &one))), [], "it was met in an earlier life");
    assert_eq!(sends(&next.step(resend("2", &one))), [(one.id.clone(), 1)]);
}
