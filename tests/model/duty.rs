//! The production `Duty`, with the production `Election` in it, in every order in which another replica takes the lease and gives
//! it back, the ledger is lost, singletons crash, the process is dismissed, and what is under way is done.

use std::collections::BTreeSet;

use kernel::id::Origin;
use kernel::machine::{Machine, Timestamp};
use kernel::promise::Promise;
use kernel::replica::duty::{Duty, Effect, Event, Singleton};
use kernel::replica::lease::{self, Claim, Election, Replica};
use stateright::{Checker, Expectation, HasDiscoveries, Model, Property};

const TAKEN_MAX: u8 = 2;
const LEDGERS_MAX: u8 = 2;
const PASSES_MAX: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    Opening,
    Ending,
}

/// The singletons that live, of one ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Built {
    ledger: u8,
    dead: BTreeSet<Singleton>,
    /// Its watcher was taken away, and one that knows the ledger anew is awaited.
    unwatched: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    duty: Duty,
    now: Timestamp,
    passes: u8,
    /// The lease, how often it was written, and by others.
    lease: Option<Claim>,
    writes: u8,
    taken: u8,
    call: Option<lease::Effect>,
    ledger: u8,
    crashes: u8,
    work: Option<Work>,
    opened: Option<u8>,
    built: Option<Built>,
    /// What was built and is ending.
    dying: Option<Built>,
    /// By what was said last.
    leads: bool,
    stood_down: bool,
    dismissed: bool,
    stopped: bool,
    broken: BTreeSet<Promise>,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    /// Time passes until something is due.
    Pass,
    /// The call about the lease is answered.
    Answer,
    /// Another replica writes its name into the lease.
    Take,
    /// It takes it out again.
    GiveBack,
    /// The opening, or the end, is done.
    Done,
    LoseLedger,
    /// Somebody who was built from this ledger notices.
    Report(u8),
    Crash(Singleton),
    /// A crash is noticed.
    Notice(Singleton),
    Dismiss,
}

struct World {
    /// Whether there are other replicas.
    elected: bool,
    crashes_max: u8,
}

impl State {
    fn feed(&mut self, event: Event) {
        let effects = self.duty.step_and_catch_up(self.now, event);
        self.perform(effects);
    }

    fn promise(&mut self, promise: Promise, kept: bool) {
        if !kept {
            self.broken.insert(promise);
        }
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let begins = matches!(effect, Effect::Open | Effect::Build | Effect::Rebuild(_));
            self.promise(Promise::OrderlyBegin, !begins || self.leads && !self.dismissed);
            match effect {
                Effect::Lease(effect) => {
                    let releases = matches!(effect, lease::Effect::Release(_));
                    self.promise(Promise::LeaseLast, !releases || self.built.is_none() && self.dying.is_none());
                    // A write that is not waited for has been done all the same.
                    if let Some(lease::Effect::Take(over)) = self.call.replace(effect)
                        && over == self.lease
                    {
                        self.write("a_1");
                    }
                }
                Effect::Open => {
                    self.promise(Promise::WholeEnds, self.dying.is_none());
                    self.work = Some(Work::Opening);
                }
                Effect::Build => self.build(),
                Effect::Rebuild(Singleton::Watcher) => {
                    let needed = self.built.as_mut().is_some_and(|built| {
                        built.unwatched = true;
                        built.dead.remove(&Singleton::Watcher)
                    });
                    self.promise(Promise::NoNeedlessRebuild, needed);
                }
                Effect::Rebuild(who) => {
                    let needed = self.built.as_mut().is_some_and(|built| built.dead.remove(&who));
                    self.promise(Promise::NoNeedlessRebuild, needed);
                }
                Effect::End | Effect::Abandon => {
                    self.promise(Promise::WholeEnds, self.dying.is_none() && self.work != Some(Work::Ending));
                    self.dying = self.built.take();
                    self.work = Some(Work::Ending);
                }
                Effect::Stop => {
                    self.promise(Promise::LeaseLast, self.built.is_none() && self.dying.is_none() && self.dismissed);
                    self.stopped = true;
                }
                Effect::TellLeading => self.leads = true,
                Effect::TellTakenOver(_) => (self.leads, self.stood_down) = (false, true),
                Effect::GiveUp(_) | Effect::TellStandingBy(_) | Effect::TellTrouble(_) => {}
            }
        }
    }

    fn build(&mut self) {
        let opened = self.opened.take();
        let fits = match (&self.built, opened) {
            (Some(built), Some(opened)) => built.ledger == opened && built.unwatched,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        self.promise(Promise::LedgersApart, fits && self.dying.is_none());
        let dead = self.built.take().map(|built| built.dead).unwrap_or_default();
        self.built = opened.map(|ledger| Built { ledger, dead, unwatched: false });
    }

    fn write(&mut self, holder: &str) {
        self.writes += 1;
        let written = self.writes.to_string();
        self.lease =
            Some(Claim { holder: holder.to_owned(), renewed: written.clone(), version: written, ..Claim::default() });
    }

    fn answer(&mut self, call: lease::Effect) {
        let event = match call {
            lease::Effect::Look => Event::Lease(lease::Event::Looked(self.lease.clone())),
            lease::Effect::Take(over) if over == self.lease => {
                self.write("a_1");
                Event::Lease(lease::Event::Taken(self.lease.clone()))
            }
            lease::Effect::Take(_) => Event::Lease(lease::Event::Taken(None)),
            lease::Effect::Release(_) => {
                if self.lease.as_ref().is_some_and(|claim| claim.holder == "a_1") {
                    self.write("");
                }
                Event::Released
            }
        };
        self.feed(event);
    }

    fn is_held_by_another(&self) -> bool {
        self.lease.as_ref().is_some_and(|claim| claim.holder == "b_1")
    }

    fn is_broken(&self, promise: Promise) -> bool {
        self.broken.contains(&promise)
    }
}

fn origin(ledger: u8) -> Origin {
    Origin(format!("ledger-{ledger}"))
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let now = Timestamp::from_millis(0);
        let us = Replica { pod: "a".to_owned(), boot: "1".to_owned() };
        let mut state = State {
            duty: Duty::new(self.elected.then(|| Election::new(us, now))),
            now,
            passes: 0,
            lease: None,
            writes: 0,
            taken: 0,
            call: None,
            ledger: 1,
            crashes: 0,
            work: None,
            opened: None,
            built: None,
            dying: None,
            leads: !self.elected,
            stood_down: false,
            dismissed: false,
            stopped: false,
            broken: BTreeSet::new(),
        };
        let effects = state.duty.tick(now);
        state.perform(effects);
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.stopped {
            return;
        }
        actions.extend((state.passes < PASSES_MAX && state.duty.next_deadline().is_some()).then_some(Action::Pass));
        actions.extend(state.call.is_some().then_some(Action::Answer));
        if state.is_held_by_another() {
            actions.push(Action::GiveBack);
        } else if self.elected && state.taken < TAKEN_MAX {
            actions.push(Action::Take);
        }
        actions.extend(state.work.is_some().then_some(Action::Done));
        actions.extend((state.ledger < LEDGERS_MAX).then_some(Action::LoseLedger));
        actions.extend((1..state.ledger).map(Action::Report));
        if let Some(built) = &state.built {
            let alive = [Singleton::Watcher, Singleton::Group].into_iter().filter(|who| !built.dead.contains(who));
            let alive = alive
                .filter(|who| state.crashes < self.crashes_max && !(built.unwatched && *who == Singleton::Watcher));
            actions.extend(alive.map(Action::Crash));
            actions.extend(built.dead.iter().copied().map(Action::Notice));
        }
        actions.extend((!state.dismissed).then_some(Action::Dismiss));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Pass => {
                next.passes += 1;
                next.now = next.duty.next_deadline()?.max(next.now);
                let effects = next.duty.tick(next.now);
                next.perform(effects);
            }
            Action::Answer => {
                let call = next.call.take()?;
                next.answer(call);
            }
            Action::Take => {
                next.taken += 1;
                next.write("b_1");
            }
            Action::GiveBack => next.write(""),
            Action::Done => match next.work.take()? {
                Work::Opening => {
                    next.opened = Some(next.ledger);
                    next.feed(Event::Opened(origin(next.ledger)));
                }
                Work::Ending => {
                    next.dying = None;
                    next.feed(Event::Ended);
                }
            },
            Action::LoseLedger => next.ledger += 1,
            Action::Report(ledger) => next.feed(Event::LedgerLost(origin(ledger))),
            Action::Crash(who) => {
                next.crashes += 1;
                next.built.as_mut()?.dead.insert(who);
            }
            Action::Notice(who) => next.feed(Event::Crashed(who)),
            Action::Dismiss => {
                next.dismissed = true;
                next.feed(Event::Dismissed);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let elected = if self.elected { Expectation::Sometimes } else { Expectation::Always };
        vec![
            Property::always(Promise::OrderlyBegin.words(), |_, state: &State| !state.is_broken(Promise::OrderlyBegin)),
            Property::always(Promise::LedgersApart.words(), |_, state: &State| !state.is_broken(Promise::LedgersApart)),
            Property::always(Promise::WholeEnds.words(), |_, state: &State| !state.is_broken(Promise::WholeEnds)),
            Property::always(Promise::LeaseLast.words(), |_, state: &State| !state.is_broken(Promise::LeaseLast)),
            Property::always(Promise::NoNeedlessRebuild.words(), |_, state: &State| {
                !state.is_broken(Promise::NoNeedlessRebuild)
            }),
            Property::always("a replica that leads works, or is on its way there", |_, state: &State| {
                let watched = state.built.as_ref().is_some_and(|built| !built.unwatched);
                !state.leads || state.dismissed || watched || state.work.is_some()
            }),
            Property::always("a replica that does not lead has nothing built", |_, state: &State| {
                state.leads || state.built.is_none()
            }),
            Property::always("a replica that was dismissed stops, or is on its way there", |_, state: &State| {
                let answers = matches!(state.call, Some(lease::Effect::Release(_) | lease::Effect::Take(_)));
                !state.dismissed || state.stopped || state.work.is_some() || answers
            }),
            Property::always(Promise::LeaseLeft.words(), |_, state: &State| {
                let held = state.lease.as_ref().is_some_and(|claim| claim.holder == "a_1");
                !state.stopped || !held
            }),
            Property::sometimes("another ledger is worked from", |_, state: &State| {
                state.built.as_ref().is_some_and(|built| built.ledger == LEDGERS_MAX)
            }),
            Property::sometimes("it stops", |_, state: &State| state.stopped),
            Property {
                expectation: elected,
                name: "it works again after another replica has",
                condition: |world, state: &State| {
                    if world.elected { state.stood_down && state.built.is_some() } else { !state.stood_down }
                },
            },
        ]
    }
}

fn search(world: World, states: usize) {
    let finish = HasDiscoveries::AnyFailures;
    let checker = world.checker().threads(2).finish_when(finish).spawn_bfs().join();
    eprintln!("duty: {} states", checker.unique_state_count());
    checker.assert_properties();
    assert_eq!(checker.unique_state_count(), states);
}

#[test]
fn a_replica_works_while_it_leads_and_ends_in_order() {
    search(World { elected: true, crashes_max: 1 }, 108_638);
}

#[test]
fn a_replica_without_an_election_works_until_it_is_dismissed() {
    search(World { elected: false, crashes_max: 2 }, 195);
}
