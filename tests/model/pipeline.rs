//! The production `Pipeline` with three environments: staging, which others deploy to, then test and prod, into which it promotes by
//! notice or by pull request. Around it are an API server, leaves whose watches lag, a forge with people who merge and close, a
//! deployer, people who answer, and lives that end between any two steps.

mod action;
mod apps;
mod outside;
mod past;
mod person;
mod rest;
mod restless;
mod world;

use kernel::promise::Promise;
use objects::pipeline::spec::Advance;
use stateright::{Checker, CheckerBuilder, Expectation, HasDiscoveries, Model, Property};

use action::Action;
use world::{Change, Faults, How, Mutant, Shape, State, World};

type Condition = fn(&World, &State) -> bool;

/// Broken in a step, if at all.
const PROMISES: &[(Promise, Condition)] = promises![
    PromotionsDurable,
    RestsOnFreshReads,
    SeqsRise,
    PromotionsInOrder,
    OneRequest,
    NotPromotedTwice,
    YesCountsOnce,
    StandsUntilLeft,
    UnknownDecidesNothing,
    AnswersBelong,
    ChoiceStands,
    FrozenStartsNothing,
];

/// What holds when nothing but faults can happen any more.
const SETTLES: (Promise, Condition) = (Promise::PromotedInTheEnd, |world, state| state.settles(world));

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        state.actions(self, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        next.take(self, action);
        Some(next)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.object.version <= self.versions
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let property = |(promise, condition): &(Promise, Condition)| Property::always(promise.words(), *condition);
        let mut properties: Vec<_> = PROMISES.iter().chain([&SETTLES]).map(property).collect();
        let everywhere: Condition = |world, state| state.is_everywhere(world);
        properties.push(Property {
            expectation: Expectation::Sometimes,
            name: "the newest revision is everywhere",
            condition: everywhere,
        });
        properties
    }
}

fn search(name: &str, world: World, states: usize) {
    judge(name, world.checker().threads(2), states);
}

/// The first steps of a world with too many states for a whole search. One thread: where several end is not the same in each run.
fn begin(name: &str, world: World, depth: usize, states: usize) {
    judge(name, world.checker().threads(1).target_max_depth(depth), states);
}

fn judge(name: &str, checker: CheckerBuilder<World>, states: usize) {
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    eprintln!("pipeline, {name}: {} states", checker.unique_state_count());
    checker.assert_properties();
    assert_eq!(checker.unique_state_count(), states);
}

/// The promises that a search of this world finds broken.
fn broken(world: World) -> Vec<&'static str> {
    let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    checker.discoveries().into_keys().collect()
}

const ONE: &[u8] = &[1, 2];

/// There and back again.
const BACK: &[u8] = &[1, 2, 1];

fn world(head: &'static [u8], how: [How; 2], faults: Faults) -> World {
    World {
        advance: Advance::Latest,
        shape: Shape::Line,
        head,
        how,
        faults,
        lags: false,
        workers: 1,
        versions: u64::MAX,
        choices: &[],
        stuck: None,
        change: Change::None,
        mutant: Mutant::None,
    }
}

const NO_FAULTS: Faults = Faults {
    lost: 0,
    crashes: 0,
    unknown: 0,
    closed: 0,
    yes: 0,
    choices: 0,
    replays: 0,
    rolled_back: 0,
    changed: 0,
    freezes: 0,
    waits: 0,
};

#[test]
fn a_notice_promotes_once_where_answers_get_lost_and_lives_end() {
    let how = [How::Notice, How::Notice];
    search("notices, a watch that lags", World { lags: true, ..world(ONE, how, NO_FAULTS) }, 644);
    search("notices, an answer lost", world(ONE, how, Faults { lost: 1, waits: 2, ..NO_FAULTS }), 1261);
    search("notices, a life ends", world(ONE, how, Faults { crashes: 1, ..NO_FAULTS }), 15396);
}

#[test]
fn what_is_unknown_or_was_set_back_by_hand_is_left_alone() {
    let how = [How::Notice, How::Notice];
    search("a target out of sight", world(ONE, how, Faults { unknown: 1, ..NO_FAULTS }), 947);
    search("set back by hand", world(ONE, how, Faults { rolled_back: 1, ..NO_FAULTS }), 7077);
}

// Faults: PF7
#[test]
fn there_and_back_again_leaves_no_promotion_behind() {
    let notice = [How::Notice, How::None];
    search("back", world(BACK, notice, NO_FAULTS), 512);
    search("back, by request", world(BACK, [How::Request, How::None], NO_FAULTS), 28444);
    let stepwise = World { advance: Advance::Stepwise, ..world(BACK, [How::Notice, How::Request], NO_FAULTS) };
    begin("back, step by step", stepwise, 16, 1328);
}

/// Staging goes on to 3, and what has passed it follows.
#[test]
fn step_by_step_a_revision_moves_on_though_its_environment_has_moved_on() {
    let stepwise = |how, faults| World { advance: Advance::Stepwise, ..world(&[1, 2, 3], [how, How::None], faults) };
    search("on and on, step by step", stepwise(How::Notice, NO_FAULTS), 1826);
    search("on and on, by request", stepwise(How::Request, NO_FAULTS), 67278);
    search("on and on, an answer lost", stepwise(How::Notice, Faults { lost: 1, waits: 2, ..NO_FAULTS }), 18794);
}

/// Test and prod beside each other, and prod after both.
#[test]
fn branches_move_on_beside_each_other_and_what_follows_several_waits_for_each() {
    let notice = [How::Notice, How::Notice];
    let shaped = |shape, head, faults| World { shape, ..world(head, notice, faults) };
    let stepwise = |shape, head, faults| World { advance: Advance::Stepwise, ..shaped(shape, head, faults) };
    search("a fork", shaped(Shape::Fork, ONE, NO_FAULTS), 533);
    search("a fork, a target out of sight", shaped(Shape::Fork, ONE, Faults { unknown: 1, ..NO_FAULTS }), 8936);
    begin("a fork, there and back", shaped(Shape::Fork, BACK, NO_FAULTS), 16, 21475);
    search("a join", shaped(Shape::Join, ONE, NO_FAULTS), 100);
    search("a join, an answer lost", shaped(Shape::Join, ONE, Faults { lost: 1, waits: 2, ..NO_FAULTS }), 1261);
    search("a join, set back by hand", shaped(Shape::Join, ONE, Faults { rolled_back: 1, ..NO_FAULTS }), 3965);
    begin("a join, there and back", shaped(Shape::Join, BACK, NO_FAULTS), 18, 1405);
    begin("a join, step by step", stepwise(Shape::Join, &[1, 2, 3], NO_FAULTS), 22, 17509);
    begin("a join, step by step, there and back", stepwise(Shape::Join, BACK, NO_FAULTS), 18, 1411);
    let request = World { how: [How::Notice, How::Request], ..stepwise(Shape::Join, ONE, NO_FAULTS) };
    search("a join, by request", request, 722);
}

/// Two apps in each environment: staging gets the second revision of both at once, test and prod of one after the other.
#[test]
fn a_set_moves_as_it_was_together_and_what_is_between_two_sets_is_none() {
    const BOTH: &[u8] = &[11, 22];
    const ONE_BY_ONE: &[u8] = &[11, 21, 22];
    let notice = [How::Notice, How::None];
    let line = [How::Notice, How::Notice];
    search("a set", world(BOTH, notice, NO_FAULTS), 170);
    search("a set, one app after the other", world(ONE_BY_ONE, notice, NO_FAULTS), 1187);
    search("a set, in a line", world(BOTH, line, NO_FAULTS), 814);
    search("a set, an answer lost", world(BOTH, notice, Faults { lost: 1, waits: 2, ..NO_FAULTS }), 1900);
    search("a set, a life ends", world(BOTH, notice, Faults { crashes: 1, ..NO_FAULTS }), 16282);
    search("a set, by request", world(BOTH, [How::Request, How::None], NO_FAULTS), 930);
    let stepwise = World { advance: Advance::Stepwise, ..world(ONE_BY_ONE, line, NO_FAULTS) };
    begin("a set, step by step", stepwise, 30, 68900);
    begin("a set, there and back", world(&[11, 22, 11], notice, NO_FAULTS), 22, 93721);
    let chosen = World { choices: &[(1, 11), (1, 21)], ..world(BOTH, notice, Faults { choices: 1, ..NO_FAULTS }) };
    begin("a set, chosen", chosen, 18, 17107);
}

// Faults: PF14
#[test]
fn a_yes_counts_for_its_question_and_once() {
    let manual = [How::ManualNotice, How::None];
    search("a yes", world(ONE, [How::ManualNotice, How::Notice], Faults { yes: 2, ..NO_FAULTS }), 2597);
    search("a yes replayed", world(BACK, manual, Faults { yes: 1, replays: 1, ..NO_FAULTS }), 39054);
    search("a yes, and a life ends", world(ONE, manual, Faults { yes: 1, crashes: 1, ..NO_FAULTS }), 6062);
}

/// An older revision, and one that was never in staging.
const CHOICES: &[(usize, u8)] = &[(1, 1), (1, 9)];

fn chosen(head: &'static [u8], how: How, faults: Faults) -> World {
    World { choices: CHOICES, ..world(head, [how, How::None], Faults { choices: 1, ..faults }) }
}

#[test]
fn what_a_person_chose_is_promoted_once_and_what_it_was_chosen_over_does_not_undo_it() {
    search("chosen", chosen(ONE, How::Notice, NO_FAULTS), 4872);
    begin("chosen, and something newer comes", chosen(&[1, 2, 3], How::Notice, NO_FAULTS), 18, 29868);
    search("chosen, and answered again", chosen(ONE, How::Notice, Faults { replays: 1, ..NO_FAULTS }), 78171);
    let twice = World { faults: Faults { choices: 2, ..NO_FAULTS }, ..chosen(ONE, How::Notice, NO_FAULTS) };
    begin("chosen twice", twice, 18, 22907);
    begin("chosen, and a yes", chosen(ONE, How::ManualNotice, Faults { yes: 1, replays: 1, ..NO_FAULTS }), 14, 9335);
    begin("chosen, there and back", chosen(BACK, How::Notice, NO_FAULTS), 18, 17549);
    begin("chosen, by request", chosen(ONE, How::Request, NO_FAULTS), 16, 5783);
    let stepwise = World { advance: Advance::Stepwise, ..chosen(&[1, 2, 3], How::Notice, NO_FAULTS) };
    begin("chosen, step by step", stepwise, 16, 23262);
    let line = World { choices: &[(2, 1), (1, 9)], ..chosen(ONE, How::Notice, NO_FAULTS) };
    begin("chosen, in a line", World { how: [How::Notice, How::Notice], ..line }, 15, 1209);
}

#[test]
fn a_choice_outlives_lives_and_writers_and_ends_with_its_environment() {
    begin("chosen, a life ends", chosen(ONE, How::Notice, Faults { crashes: 1, ..NO_FAULTS }), 13, 5728);
    begin("chosen, an answer lost", chosen(ONE, How::Notice, Faults { lost: 1, waits: 1, ..NO_FAULTS }), 14, 4341);
    search("chosen, a target out of sight", chosen(ONE, How::Notice, Faults { unknown: 1, ..NO_FAULTS }), 38059);
    let changed = |change| World { change, ..chosen(ONE, How::Notice, Faults { changed: 1, ..NO_FAULTS }) };
    search("chosen, and its environment goes", changed(Change::Gone), 42352);
    search("chosen, a freeze is added", changed(Change::Freeze), 64900);
    begin("chosen, two that believe to lead", World { workers: 2, ..chosen(ONE, How::Notice, NO_FAULTS) }, 11, 16373);
}

fn stuck(head: &'static [u8], how: How, faults: Faults) -> World {
    World { stuck: Some(2), ..world(head, [how, How::None], Faults { waits: 3, ..faults }) }
}

/// Revision 2 gets ready in staging alone.
#[test]
fn what_never_gets_ready_is_taken_back_once() {
    search("taken back", stuck(ONE, How::Notice, NO_FAULTS), 250);
    search("taken back, by request", stuck(ONE, How::Request, NO_FAULTS), 675);
    search("taken back, an answer lost", stuck(ONE, How::Notice, Faults { lost: 1, ..NO_FAULTS }), 3708);
    begin("taken back, and a fix comes", stuck(&[1, 2, 3], How::Notice, NO_FAULTS), 18, 807);
    begin("taken back, a life ends", stuck(ONE, How::Notice, Faults { crashes: 1, ..NO_FAULTS }), 16, 542);
    begin("taken back after a yes", stuck(ONE, How::ManualNotice, Faults { yes: 2, ..NO_FAULTS }), 20, 1263);
    begin("taken back, a target out of sight", stuck(ONE, How::Notice, Faults { unknown: 1, ..NO_FAULTS }), 18, 417);
    let two = World { workers: 2, ..stuck(ONE, How::Notice, NO_FAULTS) };
    begin("taken back by two that believe to lead", two, 14, 14064);
}

#[test]
fn a_request_is_made_once_and_a_person_may_close_it() {
    let how = [How::Request, How::None];
    search("a request closed", world(ONE, [How::Notice, How::Request], Faults { closed: 1, yes: 1, ..NO_FAULTS }), 782);
    search("a request, answers lost", world(ONE, how, Faults { lost: 1, waits: 2, ..NO_FAULTS }), 889);
    search("a request, a life ends", world(ONE, how, Faults { crashes: 1, ..NO_FAULTS }), 13361);
}

#[test]
fn an_answer_belongs_to_what_the_spec_asks_now() {
    let changed = Faults { changed: 1, ..NO_FAULTS };
    let moved = |faults| World { change: Change::Repository, ..world(ONE, [How::Request, How::None], faults) };
    search("another repository", moved(changed), 77061);
    begin("another repository, a life ends", moved(Faults { crashes: 1, ..changed }), 14, 9947);
    let frozen = |how| World { change: Change::Freeze, ..world(ONE, [how, How::None], Faults { yes: 1, ..changed }) };
    search("a freeze is added", frozen(How::Notice), 145);
    search("a freeze is added before a yes", frozen(How::ManualNotice), 1412);
}

// Faults: PF2, PF6
#[test]
fn two_replicas_that_believe_to_lead_promote_once() {
    let two = |how| World { workers: 2, ..world(ONE, [how, How::None], NO_FAULTS) };
    begin("two, by notice", two(How::Notice), 14, 12164);
    begin("two, by request", two(How::Request), 14, 30988);
}

/// Somebody makes a PromotionFreeze for test at any step, and deletes it at any later one.
#[test]
fn a_freeze_of_the_cluster_holds_what_has_not_begun_until_it_goes() {
    let freezes = Faults { freezes: 1, ..NO_FAULTS };
    let frozen = |head, how, faults| world(head, [how, How::None], faults);
    search("frozen", frozen(ONE, How::Notice, freezes), 127);
    search("frozen, in a line", world(ONE, [How::Notice, How::Notice], freezes), 631);
    search("frozen, an answer lost", frozen(ONE, How::Notice, Faults { lost: 1, waits: 2, ..freezes }), 824);
    search("frozen, a life ends", frozen(ONE, How::Notice, Faults { crashes: 1, ..freezes }), 3018);
    search("frozen, by request", frozen(ONE, How::Request, freezes), 559);
    begin("frozen, there and back", frozen(BACK, How::Notice, freezes), 14, 1050);
    begin("frozen, chosen", chosen(ONE, How::Notice, freezes), 14, 4678);
    begin("frozen, taken back", stuck(ONE, How::Notice, freezes), 16, 175);
}

// Faults: PF6
/// Each change of the world breaks a promise: the promises have teeth.
#[test]
fn every_mutant_is_caught() {
    let request = [How::Request, How::None];
    let manual = [How::ManualNotice, How::None];
    let notice = [How::Notice, How::None];
    let late = Faults { crashes: 1, ..NO_FAULTS };
    let cases = [
        (Mutant::NoRecheck, world(BACK, [How::Notice, How::Notice], NO_FAULTS), "PL-2"),
        (Mutant::NoRecheck, world(&[11, 22], [How::Notice, How::None], NO_FAULTS), "PL-2"),
        (Mutant::UnknownIsElsewhere, world(ONE, request, Faults { unknown: 1, ..NO_FAULTS }), "PL-7"),
        (Mutant::ActsOnDraft, world(&[1, 2, 3], notice, late), "PL-LIVE"),
        (Mutant::NoCompareAndSet, World { workers: 2, ..world(ONE, request, NO_FAULTS) }, "PL-"),
        (
            Mutant::TicketIgnored,
            World { lags: true, ..world(&[1, 2, 3], manual, Faults { yes: 1, ..NO_FAULTS }) },
            "PL-5",
        ),
        (Mutant::AdoptsByBranch, world(BACK, request, NO_FAULTS), "PL-LIVE"),
        (Mutant::LateOrderPushes, World { versions: 14, ..world(&[1, 2, 3], request, late) }, "PL-"),
        (Mutant::ForgetsWhatWasCompleted, world(ONE, notice, Faults { rolled_back: 1, ..late }), "PL-4"),
        (Mutant::FreezesUntold, world(ONE, notice, Faults { freezes: 1, ..NO_FAULTS }), "PL-12"),
        (Mutant::NoWithdrawal, world(BACK, request, NO_FAULTS), "PL-LIVE"),
    ];
    let missed: Vec<_> = cases
        .into_iter()
        .filter_map(|(mutant, world, id)| {
            let caught = broken(World { mutant, ..world });
            eprintln!("{mutant:?} breaks {caught:?}");
            (!caught.iter().any(|found| found.starts_with(id))).then_some(mutant)
        })
        .collect();
    assert_eq!(missed, []);
}
