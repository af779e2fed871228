//! Purges that cannot be made yet: the production `Rollout` and `Purger` of one or two members together, in virtual time, around
//! a CloudFront that knows what was really sent. What the edge has is judged by that alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ::purge::agreement::group::{Known, NumberedView, Told, View};
use ::purge::bounds::policy::Policy;
use ::purge::purges::purge::{self, CdnErrorClass, Found, Order, Pace, Purger};
use ::purge::records::record::{Edge, Outcome, PurgeState, Record};
use ::purge::rollouts::rollout::{Effect, Event, Identity, Rollout, baseline};
use ::purge::testing::{answers, web};
use ::purge::workloads::workload::{Tuning, Workload};
use kernel::id::{InvalidationId, Member, Origin, Reference, Seq};
use kernel::machine::{Machine, Timestamp};
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;
use notices::notice::Kind;

use crate::rollout::sight;

const E1: &str = "E1EXAMPLE";
const E2: &str = "E2EXAMPLE";

/// Ways to break what follows, each caught.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    /// The reference is made of what is sent, too.
    ReferenceOfSent,
    /// A member takes what another one has made for what it would have sent itself, and closes what it owed by it.
    ClosedByOneMadeByAnother,
}

struct Node {
    machine: Rollout,
    purger: Purger,
    shown: Option<Record>,
    /// Why its calls fail: creations, and looks.
    refused: BTreeMap<&'static str, CdnErrorClass>,
    blind: bool,
    /// The answers to its creations are lost.
    deaf: bool,
    /// It votes, and carries out nothing.
    idle: bool,
}

/// Members, their common CDN, and what was told.
struct Field {
    nodes: Vec<Node>,
    now: Timestamp,
    views: u64,
    workload: Workload,
    /// What exists: of which order, what was sent, and when.
    made: BTreeMap<(Reference, DistributionId), (Reference, PathSet, Timestamp)>,
    told: Vec<(usize, Kind, String, Timestamp)>,
    mutant: Option<Mutant>,
}

fn version(tag: &str, generation: i64, paths: &[&str]) -> Workload {
    let paths: Vec<_> = paths.iter().map(|path| path.parse().unwrap()).collect();
    let tuning = Tuning { paths: PathSet::of(paths).map(Into::into), ..Tuning::default() };
    Workload { tuning, ..sight(tag, generation, true, 2).unwrap() }
}

fn paths(items: &[&str]) -> PathSet {
    items.iter().map(|item| item.parse().unwrap()).collect()
}

impl Field {
    fn new(members: usize) -> Self {
        let workload = version("v0", 1, &[]);
        let mut field = Self {
            nodes: Vec::new(),
            now: Timestamp::from_millis(0),
            views: 0,
            made: BTreeMap::new(),
            told: Vec::new(),
            mutant: None,
            workload,
        };
        for m in 0..members {
            let record = baseline(&field.workload, field.workload.version.as_ref().unwrap(), Seq(0));
            let machine = field.machine(m, members, Some(record));
            let (refused, purger) = (BTreeMap::new(), Purger::new(Pace::default()));
            field.nodes.push(Node { machine, purger, shown: None, refused, blind: false, deaf: false, idle: false });
        }
        field.see();
        field
    }

    fn machine(&self, m: usize, members: usize, record: Option<Record>) -> Rollout {
        let (member, origin) = (name(m), Origin(format!("ledger-{m}")));
        let group = "default".to_owned();
        let identity = Identity {
            workload: web(),
            member,
            group,
            grouped: members > 1,
            origin,
            epoch_ms: 1_000_000,
            keeps_times: false,
        };
        Rollout::resume(identity, Policy::default(), Seq(0), record)
    }

    fn see(&mut self) {
        for m in 0..self.nodes.len() {
            self.step(m, Event::Seen(Box::new(self.workload.clone())));
        }
    }

    /// Another version is complete everywhere, with these paths to be purged.
    fn roll_out(&mut self, number: i64, paths: &[&str]) {
        self.workload = version(&format!("v{number}"), number + 1, paths);
        self.see();
    }

    /// The process of a member starts again, perhaps with another record.
    fn restart(&mut self, m: usize, change: impl FnOnce(&mut Record)) {
        let mut record = self.nodes[m].machine.durable().cloned().unwrap();
        change(&mut record);
        self.nodes[m].machine = self.machine(m, self.nodes.len(), Some(record));
        self.nodes[m].purger = Purger::new(Pace::default());
        self.step(m, Event::Seen(Box::new(self.workload.clone())));
    }

    fn step(&mut self, m: usize, event: Event) {
        let effects = self.nodes[m].machine.step(self.now, event);
        self.perform(m, effects);
    }

    fn perform(&mut self, m: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Publish(record) => {
                    self.nodes[m].shown = Some(*record);
                    self.show();
                }
                Effect::Match(..) | Effect::Compare(..) | Effect::Purge(_) if self.nodes[m].idle => {}
                Effect::Match(vector, plan) | Effect::Compare(vector, plan) => {
                    let found = BTreeSet::from([E1, E2].map(|id| id.parse().unwrap()));
                    self.step(m, Event::Matched(vector, plan, found.into()));
                }
                Effect::Purge(order) => self.feed(m, purge::Event::Ordered(*order)),
                effect => {
                    if let Effect::Tell(notice) = &effect {
                        self.told.push((m, notice.kind, notice.message.clone(), self.now));
                    }
                    for event in answers(&effect, Some(&self.workload)) {
                        self.step(m, event);
                    }
                }
            }
        }
    }

    fn show(&mut self) {
        self.views += 1;
        for m in 0..self.nodes.len() {
            let known = |(other, node): (usize, &Node)| {
                let mut record = node.shown.clone()?;
                if self.mutant == Some(Mutant::ClosedByOneMadeByAnother) && other != m {
                    for purge in record.votes.iter_mut().flat_map(|vote| vote.purges.listed.values_mut()) {
                        purge.sent = Some(PathSet::default());
                    }
                }
                let origin = Origin(format!("ledger-{other}"));
                Some(Known { origin, current: true, alive: true, published: record.into(), told: Told::default() })
            };
            let members =
                self.nodes.iter().enumerate().map(|(other, node)| (name(other), known((other, node)))).collect();
            let view = NumberedView { number: self.views, view: View { members, ..View::default() } };
            self.step(m, Event::ViewChanged(view));
        }
    }

    fn feed(&mut self, m: usize, event: purge::Event) {
        let effects = self.nodes[m].purger.step(self.now, event);
        self.carry_out(m, effects);
    }

    fn carry_out(&mut self, m: usize, effects: Vec<purge::Effect>) {
        for effect in effects {
            match effect {
                purge::Effect::Create(order) => {
                    let answer = self.create(m, &order);
                    self.feed(m, answer);
                }
                purge::Effect::Poll(reference, ..) if self.nodes[m].blind => {
                    let denied = purge::Event::PollFailed(reference, CdnErrorClass::Denied, "may not look".into());
                    self.feed(m, denied);
                }
                purge::Effect::Poll(reference, ..) => self.feed(m, purge::Event::Completed(reference)),
                purge::Effect::Search(reference, distribution) => {
                    let found = self.made.get(&(reference.clone(), distribution)).map(|(_, sent, _)| Found {
                        invalidation: InvalidationId(format!("I-{reference}")),
                        sent: sent.clone(),
                        created_ms: None,
                    });
                    self.feed(m, purge::Event::Searched(reference, found));
                }
                purge::Effect::Report(_, reference, progress) => self.step(m, Event::Purged(reference, progress)),
            }
        }
    }

    /// As CloudFront does: the same reference with the same paths is the earlier invalidation.
    fn create(&mut self, m: usize, order: &Order) -> purge::Event {
        let (reference, now) = (order.reference.clone(), self.now);
        let failed = |class| purge::Event::CreateFailed(order.reference.clone(), class, format!("no: {class:?}"));
        if let Some(class) = self.nodes[m].refused.get(order.distribution.as_str()) {
            return failed(*class);
        }
        let mut wire = reference.clone();
        if self.mutant == Some(Mutant::ReferenceOfSent) {
            wire = Reference(format!("{reference}-{}", order.paths));
        }
        let made = self.made.entry((wire.clone(), order.distribution.clone()));
        let (_, sent, _) = made.or_insert_with(|| (reference.clone(), order.paths.clone(), now));
        if *sent != order.paths {
            return failed(CdnErrorClass::ReferenceReused);
        }
        if self.nodes[m].deaf {
            return failed(CdnErrorClass::Ambiguous);
        }
        purge::Event::Created(reference.clone(), InvalidationId(format!("I-{wire}")), None)
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now.after(time);
        let mut ticks = 0;
        loop {
            let deadlines = |node: &Node| [node.machine.next_deadline(), node.purger.next_deadline()];
            let next = self.nodes.iter().flat_map(deadlines).flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            ticks += 1;
            assert!(ticks < 20_000, "a deadline of the past, again and again");
            self.now = self.now.max(next);
            for m in 0..self.nodes.len() {
                let effects = self.nodes[m].machine.tick(self.now);
                self.perform(m, effects);
                let effects = self.nodes[m].purger.tick(self.now);
                self.carry_out(m, effects);
            }
        }
        self.now = end;
    }

    fn refuse(&mut self, m: usize, distribution: &'static str, class: Option<CdnErrorClass>) {
        self.nodes[m].refused.remove(distribution);
        self.nodes[m].refused.extend(class.map(|class| (distribution, class)));
    }

    fn told(&self, kind: Kind) -> Vec<&str> {
        self.told.iter().filter(|(_, told, ..)| *told == kind).map(|(_, _, message, _)| message.as_str()).collect()
    }

    fn record(&self, m: usize) -> &Record {
        self.nodes[m].machine.durable().unwrap()
    }

    /// What was sent to a distribution since then.
    fn sent(&self, distribution: &str, since: Timestamp) -> Option<PathSet> {
        let made = self.made.iter().filter(|((_, of), (_, _, at))| of.as_str() == distribution && *at >= since);
        made.map(|(_, (_, paths, _))| paths.clone()).reduce(|all, paths| all.union(&paths))
    }

    /// SAFE-1, by what CloudFront has.
    fn assert_made_once(&self) {
        let mut seen = BTreeSet::new();
        for ((_, distribution), (reference, ..)) in &self.made {
            assert!(seen.insert((reference, distribution)), "two creations of {reference} on {distribution}");
        }
    }
}

fn name(m: usize) -> Member {
    Member(format!("m{m}"))
}

const DENIED: Option<CdnErrorClass> = Some(CdnErrorClass::Denied);

// Faults: F6
#[test]
fn a_distribution_that_is_denied_stops_no_vote_and_the_newest_purge_is_made_when_it_may_be() {
    let mut field = Field::new(1);
    field.refuse(0, E1, DENIED);
    for number in 1..=20 {
        let at = field.now;
        field.roll_out(number, &[]);
        field.pass(Duration::from_secs(30));
        assert!(field.sent(E2, at).is_some(), "the allowed distribution is not purged at rollout {number}");
    }
    field.pass(Duration::from_secs(120));
    assert!(field.record(0).votes.is_empty() && field.record(0).owed.len() <= 4, "{:?}", field.record(0).owed.len());
    assert_eq!(field.told(Kind::PurgeCompleted).len(), 0, "nothing is complete");
    assert_eq!(field.told(Kind::PurgeOwed).len(), 20);
    let taken_over = field.told(Kind::PurgeSkipped).len();
    assert_ne!(field.record(0).edge, Edge::Settled, "the edge may hold anything");
    field.refuse(0, E1, None);
    field.pass(Duration::from_secs(10 * 60));
    let made = field.made.keys().filter(|(_, distribution)| distribution.as_str() == E1).count();
    assert_eq!((made, field.record(0).owed.len()), (1, 0), "the newest is made, and covers the rest");
    assert_eq!(field.told(Kind::PurgeCompleted).len() + taken_over, 20, "each is told how it ended");
    assert!(
        field
            .told(Kind::PurgeCompleted)
            .iter()
            .all(|message| message.starts_with("CloudFront reports the purge completed, late"))
    );
    let record = field.record(0);
    assert_eq!((record.edge, record.settled.clone()), (Edge::Settled, None));
    assert_eq!(record.history.last().map(|closed| &closed.outcome), Some(&Outcome::Purged));
    field.assert_made_once();
}

// Faults: F6
#[test]
fn what_an_older_one_owes_is_sent_with_the_newer_one() {
    let mut field = Field::new(1);
    field.refuse(0, E1, DENIED);
    for (number, path) in [(1, "/a"), (2, "/b"), (3, "/c")] {
        field.roll_out(number, &[path]);
        field.pass(Duration::from_secs(90));
    }
    // Nobody knows any more what was tried before.
    field.restart(0, |_| {});
    field.refuse(0, E1, None);
    field.pass(Duration::from_secs(10 * 60));
    let made: Vec<_> =
        field.made.iter().filter(|((_, of), _)| of.as_str() == E1).map(|(_, (_, sent, _))| sent).collect();
    assert_eq!(made, [&paths(&["/a", "/b", "/c"])]);
    assert_eq!((field.told(Kind::PurgeCompleted).len(), field.record(0).owed.len()), (3, 0));
}

#[test]
fn a_purge_whose_completion_may_not_be_seen_is_owed_and_ends_when_it_may() {
    let mut field = Field::new(1);
    field.nodes[0].blind = true;
    for number in 1..=12 {
        field.roll_out(number, &[]);
        field.pass(Duration::from_secs(90));
    }
    assert_eq!((field.record(0).votes.len(), field.told(Kind::PurgeOwed).len() >= 12), (0, true));
    field.nodes[0].blind = false;
    field.pass(Duration::from_secs(10 * 60));
    assert!(field.record(0).owed.is_empty(), "{:?}", field.record(0).owed);
    field.assert_made_once();
}

#[test]
fn one_that_is_throttled_or_unanswered_is_owed_only_after_the_completion_timeout() {
    for class in [CdnErrorClass::Throttled, CdnErrorClass::Ambiguous] {
        let mut field = Field::new(1);
        field.refuse(0, E1, Some(class));
        field.roll_out(1, &[]);
        field.pass(Duration::from_secs(14 * 60));
        assert_eq!((field.told(Kind::PurgeOwed).len(), field.record(0).votes.len()), (0, 1));
        field.pass(Duration::from_secs(2 * 60));
        assert_eq!((field.told(Kind::PurgeOwed).len(), field.record(0).owed.len()), (1, 1));
        field.refuse(0, E1, None);
        field.pass(Duration::from_secs(2 * 60));
        assert_eq!(field.told(Kind::PurgeCompleted).len(), 1);
    }
}

// Faults: F6
#[test]
fn what_is_owed_is_told_daily_and_survives_restarts() {
    let mut field = Field::new(1);
    field.refuse(0, E1, DENIED);
    field.roll_out(1, &[]);
    for _ in 0..6 {
        field.pass(Duration::from_secs(12 * 3_600));
        field.restart(0, |_| {});
    }
    let told = field.told(Kind::PurgeOwed);
    assert_eq!(told.len(), 1 + 2, "{told:?}");
    assert!(field.record(0).owed[0].purges.noticed.len() < 5);
    field.refuse(0, E1, None);
    field.pass(Duration::from_secs(10 * 60));
    assert_eq!((field.told(Kind::PurgeCompleted).len(), field.record(0).owed.len()), (1, 0));
}

/// m1 owes `/a`; of the next version m0 alone may purge, and sends `/b`, for it does not know of that any more.
fn made_by_another(mutant: Option<Mutant>) -> Field {
    let mut field = Field::new(2);
    (0..2).for_each(|m| field.refuse(m, E1, DENIED));
    field.roll_out(1, &["/a"]);
    field.pass(Duration::from_secs(10 * 60));
    assert!((0..2).all(|m| field.record(m).owed.len() == 1), "both owe it");
    field.mutant = mutant;
    field.restart(0, |record| record.owed.clear());
    field.refuse(0, E1, None);
    field.roll_out(2, &["/b"]);
    field.pass(Duration::from_secs(10 * 60));
    // What was tried before is not known any more, so only the record can say what is still owed.
    field.restart(1, |_| {});
    field.refuse(1, E1, None);
    field.pass(Duration::from_secs(20 * 60));
    field
}

// Faults: F6
#[test]
fn what_one_member_owes_is_not_ended_by_what_another_one_made_without_it() {
    let field = made_by_another(None);
    assert_eq!(field.sent(E1, Timestamp::default()), Some(paths(&["/a", "/b"])));
    assert!((0..2).all(|m| field.record(m).owed.is_empty() && field.record(m).votes.is_empty()));
    field.assert_made_once();
    let broken = made_by_another(Some(Mutant::ClosedByOneMadeByAnother));
    assert_eq!(
        broken.sent(E1, Timestamp::default()),
        Some(paths(&["/b"])),
        "the mutant is caught: /a was never purged"
    );
}

// Faults: F6
#[test]
fn members_that_send_different_paths_for_one_vote_make_one_invalidation() {
    let two = |mutant| {
        let mut field = Field { mutant, ..Field::new(2) };
        (0..2).for_each(|m| field.refuse(m, E1, DENIED));
        field.roll_out(1, &["/a"]);
        field.pass(Duration::from_secs(10 * 60));
        field.restart(0, |record| record.owed.clear());
        field.roll_out(2, &["/b"]);
        field.pass(Duration::from_secs(10 * 60));
        // One may now, and is never told that it has made it; the other one is going to send what it knows of, too.
        field.nodes[0].deaf = true;
        field.refuse(0, E1, None);
        field.pass(Duration::from_secs(10 * 60));
        field.refuse(1, E1, None);
        field.pass(Duration::from_secs(20 * 60));
        field.nodes[0].deaf = false;
        field.pass(Duration::from_secs(20 * 60));
        field
    };
    let field = two(None);
    field.assert_made_once();
    assert_eq!(field.sent(E1, Timestamp::default()), Some(paths(&["/a", "/b"])));
    let open = |record: &Record| {
        record.all_kept().any(|vote| vote.purges.listed.values().any(|p| p.state != PurgeState::Completed))
    };
    assert!((0..2).all(|m| !open(field.record(m))));
    let broken = std::panic::catch_unwind(|| two(Some(Mutant::ReferenceOfSent)).assert_made_once());
    assert!(broken.is_err(), "a reference made of what is sent is caught");
}

/// The one that finds the distributions first, and the ones that create the purges first, may be the same that is gone.
#[test]
fn whoever_takes_over_waits_once_for_all_that_follows_from_a_decision() {
    let mut field = Field::new(2);
    field.nodes[0].idle = true;
    let mut longest = Duration::ZERO;
    for number in 1..=40 {
        let decided = field.now.after(Policy::default().barrier.settle);
        field.roll_out(number, &[]);
        field.pass(Duration::from_secs(60));
        let made = field.made.values().map(|(_, _, at)| *at).max().unwrap();
        assert!(made >= decided, "it is made by the one that is left");
        longest = longest.max(made.since(decided));
    }
    eprintln!("taken over after {longest:?} at most");
    assert!(longest <= Policy::default().group.takeover + Duration::from_secs(1), "taken over after {longest:?}");
}
