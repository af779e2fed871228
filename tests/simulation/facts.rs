//! What actix really does: one test for each line of the table in docs/internals/measured.md that supervision rests on. A new
//! version of actix that behaves otherwise fails here, and not on some Friday in production.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use actix::prelude::*;
use support::fakes::SIMULATED;
use support::stage::{in_system, unexpected_panics};
use tokio::time::Instant;

#[derive(Message)]
#[rtype(result = "u32")]
struct Count;

#[derive(Message)]
#[rtype(result = "()")]
struct Panic;

/// Counts, panics when told to, and writes down what happens to it.
#[derive(Clone, Default)]
struct Counter {
    counted: u32,
    diary: Rc<RefCell<Vec<&'static str>>>,
    capacity: usize,
}

impl Counter {
    fn of(diary: Rc<RefCell<Vec<&'static str>>>) -> Self {
        Self { counted: 0, diary, capacity: 0 }
    }

    fn note(&self, what: &'static str) {
        self.diary.borrow_mut().push(what);
    }
}

impl Actor for Counter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if self.capacity > 0 {
            ctx.set_mailbox_capacity(self.capacity);
        }
        self.note("started");
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.note(if std::thread::panicking() { "stopped while panicking" } else { "stopped" });
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.note(if std::thread::panicking() { "dropped while panicking" } else { "dropped" });
    }
}

impl Supervised for Counter {
    fn restarting(&mut self, _: &mut Self::Context) {
        self.note("restarting");
    }
}

impl Handler<Count> for Counter {
    type Result = u32;

    fn handle(&mut self, _: Count, _: &mut Self::Context) -> u32 {
        self.counted += 1;
        self.counted
    }
}

impl Handler<Panic> for Counter {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("{SIMULATED} of a counter");
    }
}

async fn turn() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[test]
fn a_panic_in_a_handler_closes_the_mailbox() {
    in_system(async {
        let counter = Counter::default().start();
        assert_eq!(counter.send(Count).await, Ok(1));
        assert!(counter.connected());
        assert_eq!(counter.send(Panic).await, Err(MailboxError::Closed));
        assert!(!counter.connected());
        assert_eq!(counter.send(Count).await, Err(MailboxError::Closed));
        assert!(matches!(counter.try_send(Count), Err(SendError::Closed(_))));
    });
}

#[test]
fn a_supervisor_does_not_restart_an_actor_that_panicked() {
    in_system(async {
        let diary = Rc::new(RefCell::new(Vec::new()));
        let shared = diary.clone();
        let counter = Supervisor::start(move |_| Counter::of(shared));
        assert_eq!(counter.send(Panic).await, Err(MailboxError::Closed));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!counter.connected());
        assert!(!diary.borrow().contains(&"restarting"), "{diary:?}");
    });
}

#[test]
fn whatever_an_actor_owns_is_dropped_while_its_panic_unwinds() {
    in_system(async {
        let counter = Counter::default();
        let diary = counter.diary.clone();
        let address = counter.start();
        let _ = address.send(Panic).await;
        turn().await;
        let last = diary.borrow().last().copied();
        assert_eq!(last, Some("dropped while panicking"), "{diary:?}");
    });
}

#[test]
fn a_message_can_be_sent_from_a_drop_that_runs_while_a_panic_unwinds() {
    struct LastWords(Addr<Counter>);
    impl Drop for LastWords {
        fn drop(&mut self) {
            assert!(std::thread::panicking());
            let _ = self.0.try_send(Count);
        }
    }
    struct Mortal(#[expect(dead_code, reason = "it is there to be dropped")] LastWords);
    impl Actor for Mortal {
        type Context = Context<Self>;
    }
    impl Handler<Panic> for Mortal {
        type Result = ();
        fn handle(&mut self, _: Panic, _: &mut Self::Context) {
            panic!("{SIMULATED} of a mortal");
        }
    }
    in_system(async {
        let parent = Counter::default().start();
        let child = Mortal(LastWords(parent.clone())).start();
        assert_eq!(child.send(Panic).await, Err(MailboxError::Closed));
        turn().await;
        assert_eq!(parent.send(Count).await, Ok(2), "one of them was the notice");
    });
}

#[test]
fn an_actor_dies_of_a_panic_in_a_future_it_spawned_too() {
    in_system(async {
        let counter = Counter::create(|ctx| {
            let counter = Counter::default();
            let failing = async { panic!("{SIMULATED} in a future") };
            ctx.spawn(failing.into_actor(&counter));
            counter
        });
        turn().await;
        assert!(!counter.connected());
    });
}

#[test]
fn futures_end_with_the_actor_they_belong_to() {
    in_system(async {
        let beats = Rc::new(RefCell::new(0));
        let heart = beats.clone();
        let counter = Counter::create(|ctx| {
            let counter = Counter::default();
            let beating = async move {
                loop {
                    *heart.borrow_mut() += 1;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            };
            ctx.spawn(beating.into_actor(&counter));
            counter
        });
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let _ = counter.send(Panic).await;
        let until_then = *beats.borrow();
        assert_eq!(until_then, 3);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(*beats.borrow(), until_then);
    });
}

/// Messages one sender gets rid of before it is refused.
fn accepted(recipient: &Recipient<Count>) -> usize {
    (0..1000).take_while(|_| recipient.try_send(Count).is_ok()).count()
}

#[test]
fn a_full_mailbox_refuses_and_every_further_sender_gets_one_more_in() {
    in_system(async {
        let mut counter = Counter::default();
        counter.capacity = 8;
        let counter = counter.start();
        assert_eq!(counter.send(Count).await, Ok(1), "the capacity holds from the first turn on");
        let first = counter.clone().recipient();
        let taken = accepted(&first);
        assert!((8..=9).contains(&taken), "{taken}");
        assert!(matches!(first.try_send(Count), Err(SendError::Full(_))));
        assert!(first.connected(), "full is not dead");
        let more: usize = (0..5).map(|_| accepted(&counter.clone().recipient())).sum();
        assert_eq!(more, 5, "one for each fresh clone");
        turn().await;
        assert!(accepted(&first) >= 8, "and it has room again once it was emptied");
    });
}

#[test]
fn paused_time_drives_timers_and_intervals_and_nothing_else_does() {
    in_system(async {
        let begin = Instant::now();
        let diary = Rc::new(RefCell::new(Vec::new()));
        let (once, often) = (diary.clone(), diary.clone());
        let _counter = Counter::create(|ctx| {
            ctx.run_later(Duration::from_secs(600), move |_, _| {
                once.borrow_mut().push(("later", begin.elapsed().as_millis()));
            });
            ctx.run_interval(Duration::from_secs(250), move |_, _| {
                often.borrow_mut().push(("interval", begin.elapsed().as_millis()));
            });
            Counter::default()
        });
        tokio::time::sleep(Duration::from_secs(700)).await;
        let seen = diary.borrow().clone();
        assert_eq!(seen, [("interval", 250_000), ("interval", 500_000), ("later", 600_000)]);
    });
}

#[test]
fn an_actor_that_nobody_can_address_lives_on_while_it_has_a_future() {
    // Why children listen for its stop signal: dropping the last address of an actor does not end it.
    in_system(async {
        let counter = Counter::default();
        let diary = counter.diary.clone();
        let address = Counter::create(|ctx| {
            ctx.run_interval(Duration::from_secs(1), |counter, _| counter.note("alive"));
            counter
        });
        drop(address);
        tokio::time::sleep(Duration::from_millis(5_500)).await;
        assert_eq!(diary.borrow().iter().filter(|what| **what == "alive").count(), 5);
    });
}

#[test]
fn an_assertion_that_fails_inside_an_actor_is_not_lost() {
    in_system(async {
        let counter = Counter::create(|ctx| {
            ctx.run_later(Duration::from_secs(1), |counter, _| assert_eq!(counter.counted, 1, "this is meant to fail"));
            Counter::default()
        });
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!counter.connected());
    });
    let panics = unexpected_panics();
    assert!(panics.len() == 1 && panics[0].contains("meant to fail"), "{panics:?}");
}
