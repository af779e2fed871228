//! Every history of the outbox, as far as chance finds it.
//!
//! A world around the production machine does its effects late, twice, not at all or unknown to it; receivers answer
//! anything; the process is killed and starts from the ledger. The world keeps the books the invariants are about.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kernel::id::{NoticeId, Seq, WorkloadId};
use kernel::machine::{Machine, Timestamp};
use notices::delivery::{Content, Delivery, Effect, Event, Limits, Outbox, Outcome, Overflow, Reply, Resend, Settings};
use notices::notice::{Kind, Notice};
use proptest::prelude::*;

const HOOKS: [&str; 3] = ["a", "b", "c"];

/// An effect the machine asked for that the world has not done yet.
#[derive(Clone, Debug)]
struct Task {
    since: Timestamp,
    work: Work,
}

#[derive(Clone, Debug)]
enum Work {
    Store { delivery: Delivery, write: u64 },
    Remove { id: String, write: u64 },
    Send { delivery: Delivery, attempt: u32 },
}

/// Ports end whatever they do within a minute; the machine counts on two.
const TASK_ENDS_AFTER: Duration = Duration::from_secs(60);

/// What becomes of a task.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Done, and said so.
    Done,
    /// Done, and said so twice.
    DoneTwice,
    /// Done, but the answer says it failed.
    DoneUnknown,
    /// Done, and never answered.
    DoneUnsaid,
    /// Failed, and said so.
    Failed,
    /// Neither done nor answered.
    Lost,
}

#[derive(Clone, Debug)]
enum Command {
    Tell { notice: usize, hooks: u8 },
    Finish { task: usize, fate: Fate, reply: u8 },
    Pass { ms: u64 },
    Kill,
    Resend { notice: usize, hook: usize },
}

struct World {
    outbox: Outbox,
    settings: Settings,
    now: Timestamp,
    ledger: BTreeMap<String, Delivery>,
    tasks: Vec<Task>,
    /// Told by the rollouts, and not accepted yet: they would tell them again.
    untold: BTreeMap<NoticeId, Vec<Delivery>>,
    /// What a receiver got, with the bytes.
    received: BTreeMap<String, BTreeSet<Content>>,
    dropped: BTreeSet<String>,
    /// Dead letters of any time.
    dead: BTreeSet<String>,
    all: BTreeSet<String>,
}

fn deliveries(notice: usize, hooks: u8) -> (NoticeId, Vec<Delivery>) {
    let notice = Notice {
        id: NoticeId(format!("n{notice}")),
        kind: Kind::PurgeCompleted,
        about: WorkloadId::deployment("shop", "web").into(),
        seq: Seq(1),
        at_ms: i64::try_from(notice).expect("small"),
        rollout: String::new(),
        change: String::new(),
        message: String::new(),
    };
    let chosen = HOOKS.iter().enumerate().filter(|(place, _)| hooks & (1 << place) != 0);
    let body = |hook: &str| Content::Json(format!("{}/{hook}", notice.id));
    let deliveries = chosen.map(|(_, hook)| Delivery::new(&notice, hook, body(hook))).collect();
    (notice.id.clone(), deliveries)
}

impl World {
    fn new(settings: Settings) -> Self {
        Self {
            outbox: Outbox::new(settings.clone()),
            settings,
            now: Timestamp::from_millis(0),
            ledger: BTreeMap::new(),
            tasks: Vec::new(),
            untold: BTreeMap::new(),
            received: BTreeMap::new(),
            dropped: BTreeSet::new(),
            dead: BTreeSet::new(),
            all: BTreeSet::new(),
        }
    }

    fn step(&mut self, event: Event) {
        let effects = self.outbox.step(self.now, event);
        self.take(effects);
    }

    fn tick(&mut self) {
        let effects = self.outbox.tick(self.now);
        self.take(effects);
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Store { delivery, write } => self.ask(Work::Store { delivery, write }),
                Effect::Remove { id, write } => {
                    let is_over = self.received.contains_key(&id) || self.dropped.contains(&id);
                    assert!(is_over, "{id} is forgotten although nobody has it");
                    self.ask(Work::Remove { id, write });
                }
                Effect::Send { delivery, attempt } => self.sent(delivery, attempt),
                Effect::Accepted(notice) => {
                    for delivery in self.untold.remove(&notice).unwrap_or_default() {
                        let id = &delivery.id;
                        let is_safe = self.ledger.contains_key(id) || self.received.contains_key(id);
                        assert!(is_safe || self.dropped.contains(id), "{id} was accepted and is nowhere");
                    }
                }
                Effect::Postponed(notice) => assert!(self.untold.contains_key(&notice)),
                Effect::Report(report) => {
                    if let Outcome::Dropped { .. } = report.outcome {
                        let is_letter = self.dead.contains(&report.id);
                        assert!(
                            is_letter || self.settings.overflow == Overflow::DropOldest,
                            "dropped against the policy"
                        );
                        self.dropped.insert(report.id);
                    } else if let Outcome::Dead { .. } = report.outcome {
                        self.dead.insert(report.id);
                    }
                }
            }
        }
        self.check();
    }

    fn ask(&mut self, work: Work) {
        self.tasks.push(Task { since: self.now, work });
    }

    fn sent(&mut self, delivery: Delivery, attempt: u32) {
        assert!(self.ledger.contains_key(&delivery.id), "{} was sent before it was stored", delivery.id);
        for task in &self.tasks {
            let Work::Send { delivery: other, .. } = &task.work else { continue };
            assert!(other.id != delivery.id, "{} was sent twice at once", delivery.id);
        }
        self.ask(Work::Send { delivery, attempt });
    }

    /// What holds after every step.
    fn check(&mut self) {
        let census = self.outbox.census();
        assert!(census.sending <= 64 && census.writing <= 64, "{census:?}");
        assert!(census.dead <= self.settings.limits.dead, "{census:?}");
        let next = self.outbox.next_deadline();
        assert!(next.is_none_or(|next| next > self.now), "left something undone: {next:?} at {:?}", self.now);
        let mut again = self.outbox.clone();
        assert_eq!(again.tick(self.now), [], "a second tick did something");
        assert_eq!(again, self.outbox, "a second tick changed something");
        for hook in HOOKS {
            let sending = self
                .outbox
                .deliveries()
                .filter(|(delivery, due)| delivery.hook == hook && due.is_none() && !delivery.is_dead());
            assert!(sending.count() <= 4, "{hook} has more than its places");
        }
    }

    fn run(&mut self, command: &Command) {
        match command {
            Command::Tell { notice, hooks } => {
                let (notice, deliveries) = deliveries(*notice, *hooks);
                // A rollout tells a notice by the same deliveries every time.
                let deliveries = self.untold.entry(notice.clone()).or_insert(deliveries).clone();
                self.all.extend(deliveries.iter().map(|delivery| delivery.id.clone()));
                self.step(Event::Told { notice, deliveries });
            }
            Command::Finish { task, fate, reply } if !self.tasks.is_empty() => {
                let task = self.tasks.remove(task % self.tasks.len());
                self.finish(task.work, *fate, *reply);
            }
            Command::Finish { .. } => {}
            Command::Pass { ms } => {
                self.now = self.now.after(Duration::from_millis(*ms));
                let now = self.now;
                self.tasks.retain(|task| now.since(task.since) < TASK_ENDS_AFTER);
                self.tick();
            }
            Command::Kill => self.kill(),
            Command::Resend { notice, hook } => {
                let (_, all) = deliveries(*notice, 7);
                // Each is a request of its own; that a repeated one does nothing is a test beside the machine.
                let at = format!("{:?}", self.now);
                let request = Resend { at, deliveries: [all[*hook].id.clone()].into() };
                self.step(Event::Resend { subject: all[*hook].subject.clone(), request });
            }
        }
    }

    fn finish(&mut self, work: Work, fate: Fate, reply: u8) {
        if let Fate::Lost = fate {
            return;
        }
        let done = !matches!(fate, Fate::Failed);
        let said = matches!(fate, Fate::Done | Fate::DoneTwice);
        let event = match work {
            Work::Store { delivery, write } => {
                let id = delivery.id.clone();
                if done {
                    self.ledger.insert(id.clone(), delivery);
                }
                if said { Event::Stored { id, write } } else { Event::StoreFailed { id, write } }
            }
            Work::Remove { id, write } => {
                if done {
                    self.ledger.remove(&id);
                }
                if said { Event::Removed { id, write } } else { Event::RemoveFailed { id, write } }
            }
            Work::Send { delivery, attempt } => {
                let reply = answer(if said { 0 } else { reply });
                if done {
                    self.received.entry(delivery.id.clone()).or_default().insert(delivery.content);
                }
                Event::Answered { id: delivery.id, attempt, reply }
            }
        };
        if let Fate::DoneUnsaid = fate {
            return;
        }
        if let Fate::DoneTwice = fate {
            self.step(event.clone());
        }
        self.step(event);
    }

    /// The process dies and starts again from the ledger; nothing of what was under way is done or answered any more.
    fn kill(&mut self) {
        self.outbox = Outbox::new(self.settings.clone());
        self.tasks.clear();
        self.step(Event::Restored(self.ledger.values().cloned().collect()));
        self.tell_again();
    }

    fn tell_again(&mut self) {
        for (notice, deliveries) in self.untold.clone() {
            // Telling of one before it may have made room, and had it accepted.
            if self.untold.contains_key(&notice) {
                self.step(Event::Told { notice, deliveries });
            }
        }
    }

    /// From here on everything works. Ends when there is nothing left to do.
    fn recover(&mut self) {
        for _ in 0..1_000 {
            while let Some(task) = self.tasks.pop() {
                self.finish(task.work, Fate::Done, 0);
            }
            self.tell_again();
            if self.tasks.is_empty() {
                let Some(next) = self.outbox.next_deadline() else { return };
                self.now = next;
                self.tick();
            }
        }
        panic!("it never comes to rest: {:?}", self.outbox);
    }
}

fn answer(number: u8) -> Reply {
    let reason = || "broken".to_owned();
    match number {
        0 => Reply::Delivered { status: 204 },
        1..=5 => Reply::Refused { status: 500, retry_after: None },
        6 | 7 => Reply::Refused { status: 429, retry_after: Some(Duration::from_secs(7_000)) },
        8 => Reply::Gone,
        9 => Reply::Blocked { reason: reason() },
        10 => Reply::UnknownHook,
        _ => Reply::Failed { reason: reason() },
    }
}

fn commands() -> impl Strategy<Value = Vec<Command>> {
    let fate = prop_oneof![
        6 => Just(Fate::Done),
        1 => Just(Fate::DoneTwice),
        1 => Just(Fate::DoneUnknown),
        4 => Just(Fate::Failed),
        1 => Just(Fate::DoneUnsaid),
        1 => Just(Fate::Lost),
    ];
    let pass = prop_oneof![0_u64..1_000, 1_000_u64..200_000, 200_000_u64..100_000_000];
    let command = prop_oneof![
        6 => (0_usize..12, 0_u8..8).prop_map(|(notice, hooks)| Command::Tell { notice, hooks }),
        12 => (any::<usize>(), fate, 1_u8..14).prop_map(|(task, fate, reply)| Command::Finish { task, fate, reply }),
        5 => pass.prop_map(|ms| Command::Pass { ms }),
        1 => Just(Command::Kill),
        1 => (0_usize..12, 0_usize..3).prop_map(|(notice, hook)| Command::Resend { notice, hook }),
    ];
    prop::collection::vec(command, 1..160)
}

fn settings() -> impl Strategy<Value = Settings> {
    let overflow = prop_oneof![Just(Overflow::Postpone), Just(Overflow::DropOldest)];
    let live = prop_oneof![Just(6_usize), Just(1_000)];
    (overflow, live, prop_oneof![Just(2_usize), Just(1_000)]).prop_map(|(overflow, live, dead)| Settings {
        schedules: BTreeMap::from([("b".to_owned(), vec![Duration::ZERO, Duration::from_secs(1)])]),
        overflow,
        limits: Limits { live, dead, ..Limits::default() },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Goal: nothing told is lost, whatever happened on the way. Method: any history, then a time when all works.
    #[test]
    fn every_delivery_ends_with_its_receiver_a_dead_letter_or_a_report(settings in settings(), commands in commands()) {
        let mut world = World::new(settings);
        for command in &commands {
            world.run(command);
        }
        world.recover();
        prop_assert!(world.untold.is_empty(), "never accepted: {:?}", world.untold);
        for id in &world.all {
            let is_dead = world.ledger.get(id).is_some_and(Delivery::is_dead);
            let is_over = world.received.contains_key(id) || is_dead || world.dropped.contains(id);
            prop_assert!(is_over, "{id} was lost");
        }
        for (id, bytes) in &world.received {
            prop_assert_eq!(bytes.len(), 1, "{} was sent with different bytes", id);
        }
        prop_assert!(world.ledger.values().all(Delivery::is_dead), "the ledger still has {:?}", world.ledger);
        let dead: BTreeSet<&str> = world.outbox.deliveries().map(|(delivery, _)| delivery.id.as_str()).collect();
        prop_assert_eq!(dead, world.ledger.keys().map(String::as_str).collect::<BTreeSet<_>>());
    }
}
