//! The production `Look` at one page, in every order in which answers come, writes become durable, further purges end, a newer one comes,
//! and the process starts again. What may be purged again is judged by what the edge answered, and to whom.

use kernel::machine::{Machine, Timestamp};
use proof::asked::{Answer, Answers, Body, Headers, Page, QuestionId, Reply};
use proof::look::{Again, Effect, Event, Look, Phase, Stored};
use proof::tally::{Found, PAGE_REQUESTS_MAX};
use proof::verdict::Follows;
use stateright::{Checker, Expectation, HasDiscoveries, Model, Property};

const SECOND_MS: u64 = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    look: Look,
    now: Timestamp,
    durable: Stored,
    writing: Option<Stored>,
    asked: Option<QuestionId>,
    restarts: u8,
    /// Purges that were ordered and that were complete, the first one included.
    ordered: u8,
    completed: u8,
    completed_at: Timestamp,
    /// The newest purge cannot be made.
    failed: bool,
    /// The newest purge was ordered in this life.
    own: bool,
    /// Answers that prove it stale, since the newest purge was complete: old ones, half a minute later, to a life that saw it ordered.
    proofs: u8,
    requests: u8,
    told: Option<(u8, Found, Follows)>,
    overtaken: bool,
    ended: bool,
    broken: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    /// Time passes until something is due.
    Pass,
    Answer(Said),
    /// The write under way is durable.
    Write,
    Complete,
    Fail,
    Restart,
    Overtake,
}

/// What the edge answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    Old,
    New,
    Error,
}

struct World {
    again_max: u8,
    restarts_max: u8,
    /// Only old answers come, and no newer purge: how far it may go.
    stubborn: bool,
    /// It is purged again as soon as it is asked for, and not once its evidence is durable.
    hasty: bool,
}

fn answers(said: Said, now: Timestamp) -> Answers {
    let age = match said {
        Said::Old => "100000",
        Said::New | Said::Error => "0",
    };
    let lines = [("x-amz-cf-id", "id"), ("x-amz-cf-pop", "FRA56-P1"), ("x-cache", "Hit from cloudfront"), ("age", age)];
    let status = if said == Said::Error { 503 } else { 200 };
    let headers = Headers::of(lines, None);
    let answer = Answer { path: "/".to_owned(), started: now, ended: now, status, headers, body: Body::Unread };
    Answers { edge: Reply { hops: vec![answer], failure: None }, pods: Vec::new() }
}

impl World {
    fn break_if(state: &mut State, broken: bool, what: &'static str) {
        if broken {
            state.broken.get_or_insert(what);
        }
    }

    fn step(&self, state: &mut State, event: Event) {
        let effects = state.look.step(state.now, event);
        self.perform(state, effects);
    }

    fn tick(&self, state: &mut State) {
        let effects = state.look.tick(state.now);
        self.perform(state, effects);
        Self::break_if(state, state.look.is_due(state.now), "a deadline is in the past");
    }

    fn perform(&self, state: &mut State, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Keep(stored) if self.hasty => self.step(state, Event::Kept(stored.number)),
                Effect::Keep(stored) => state.writing = Some(*stored),
                Effect::Ask(question) => {
                    Self::break_if(state, state.asked.is_some(), "two questions about a page at once");
                    state.asked = Some(question.id);
                }
                Effect::PurgeAgain(round, _) => {
                    let evidence = state.durable.phase == Phase::Again && state.durable.round + 1 == round;
                    Self::break_if(state, !evidence, "the evidence is not durable");
                    Self::break_if(state, state.overtaken, "a newer purge contains it");
                    if round == state.ordered {
                        Self::break_if(state, state.completed < state.ordered, "the former is not complete");
                        Self::break_if(state, state.proofs < 2, "nothing proves it stale");
                        (state.ordered, state.own) = (state.ordered + 1, true);
                    }
                }
                Effect::Tell(verdict) => {
                    let durable = state.durable.pages.first().and_then(|page| page.found);
                    Self::break_if(state, durable != Some(verdict.found), "told before it is durable");
                    state.told = Some((verdict.round, verdict.found, verdict.follows));
                }
                Effect::End => state.ended = true,
            }
        }
    }

    fn complete(&self, state: &mut State) {
        let before = state.own.then(|| Timestamp::from_millis(state.now.as_millis() - 10 * SECOND_MS));
        (state.completed, state.completed_at, state.proofs, state.requests) = (state.ordered, state.now, 0, 0);
        self.step(state, Event::AgainCompleted(state.ordered - 1, before));
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let now = Timestamp::from_millis(1_000 * SECOND_MS);
        let before = Timestamp::from_millis(now.as_millis() - 10 * SECOND_MS);
        let page: Page = "www.example.com/".to_owned().try_into().unwrap();
        let paths = std::iter::once("/*".parse().unwrap()).collect();
        let look = Look::begin(now, Some(before).into(), paths, [page], None, Again::up_to(self.again_max)).unwrap();
        let mut state = State {
            durable: look.stored().clone(),
            look,
            now,
            writing: None,
            asked: None,
            restarts: 0,
            ordered: 1,
            completed: 1,
            completed_at: now,
            failed: false,
            own: true,
            proofs: 0,
            requests: 0,
            told: None,
            overtaken: false,
            ended: false,
            broken: None,
        };
        self.tick(&mut state);
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.ended || state.broken.is_some() {
            return;
        }
        // A question is answered long before it is given up.
        actions.extend((state.asked.is_none() && state.look.next_deadline().is_some()).then_some(Action::Pass));
        if state.asked.is_some() {
            actions.push(Action::Answer(Said::Old));
            actions
                .extend((!self.stubborn).then_some([Said::New, Said::Error].map(Action::Answer)).into_iter().flatten());
        }
        actions.extend(state.writing.is_some().then_some(Action::Write));
        if state.completed < state.ordered {
            actions.extend([Action::Complete, Action::Fail]);
        }
        actions.extend((state.restarts < self.restarts_max).then_some(Action::Restart));
        actions.extend((!self.stubborn).then_some(Action::Overtake));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Pass => {
                next.now = next.look.next_deadline()?.max(next.now);
                self.tick(&mut next);
            }
            Action::Answer(said) => {
                let id = next.asked.take()?;
                next.requests += 1;
                let counts = next.now.since(next.completed_at).as_secs() >= 30;
                next.proofs = next.proofs.saturating_add(u8::from(said == Said::Old && counts && next.own)).min(2);
                let now = next.now;
                self.step(&mut next, Event::Answered(id, Box::new(answers(said, now))));
            }
            Action::Write => {
                next.durable = next.writing.take()?;
                let number = next.durable.number;
                self.step(&mut next, Event::Kept(number));
            }
            Action::Complete => self.complete(&mut next),
            Action::Fail => {
                (next.completed, next.failed) = (next.ordered, true);
                let round = next.ordered - 1;
                self.step(&mut next, Event::AgainFailed(round));
            }
            Action::Restart => {
                next.restarts += 1;
                (next.writing, next.asked, next.own) = (None, None, false);
                next.look = Look::resume(next.now, next.durable.clone());
                // How the purge has ended is remembered with the purge.
                let again = &next.durable;
                if again.phase == Phase::Again && next.completed == next.ordered && again.round + 2 == next.ordered {
                    let round = next.ordered - 1;
                    let event =
                        if next.failed { Event::AgainFailed(round) } else { Event::AgainCompleted(round, None) };
                    self.step(&mut next, event);
                }
            }
            Action::Overtake => {
                next.overtaken = true;
                self.step(&mut next, Event::Overtaken);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let reached = |yes: bool| if yes { Expectation::Sometimes } else { Expectation::Always };
        vec![
            Property::always("nothing is done too early, and nothing said that is not durable", |_, state: &State| {
                state.broken.is_none()
            }),
            Property::always(
                "SAFE-1: no more purges than one and those that may follow by evidence",
                |world: &Self, state: &State| state.ordered <= 1 + world.again_max,
            ),
            Property::always("a page is asked at most twelve times after a purge", |_, state: &State| {
                state.requests <= PAGE_REQUESTS_MAX
            }),
            Property::sometimes("all purges that may follow do", |world: &Self, state: &State| {
                state.ended
                    && state.completed == 1 + world.again_max
                    && state.told.as_ref().is_some_and(|told| told.2 == Follows::Spent)
            }),
            Property {
                expectation: reached(!self.stubborn),
                name: "renewed is told",
                condition: |world, state: &State| {
                    world.stubborn || state.told.as_ref().is_some_and(|told| told.1 == Found::Renewed)
                },
            },
        ]
    }
}

fn search(world: World, states: usize) {
    let finish = HasDiscoveries::AnyFailures;
    let checker = world.checker().threads(2).finish_when(finish).spawn_bfs().join();
    eprintln!("looks: {} states", checker.unique_state_count());
    checker.assert_properties();
    assert_eq!(checker.unique_state_count(), states);
}

#[test]
fn a_further_purge_follows_only_from_evidence_that_is_durable() {
    search(World { again_max: 1, restarts_max: 1, stubborn: false, hasty: false }, 216_096);
}

#[test]
fn an_edge_that_stays_old_is_purged_no_more_often_than_it_may_be() {
    search(World { again_max: 3, restarts_max: 3, stubborn: true, hasty: false }, 23_609);
}

#[test]
fn one_that_acts_before_its_evidence_is_durable_is_caught() {
    let world = World { again_max: 1, restarts_max: 1, stubborn: true, hasty: true };
    let checker = world.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery("nothing is done too early, and nothing said that is not durable").is_some());
}
