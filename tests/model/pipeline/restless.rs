//! The production `Pipeline` step by step, beside a head that never rests: staging gets a revision every so often, rollouts take their
//! time, pods are evicted. Each environment moves on, and none falls behind without end. Nothing is searched here: time passes, for each
//! pace of the head, of rollouts and of soaks.

use std::collections::VecDeque;
use std::time::Duration;

use kernel::id::Revision;
use kernel::machine::{Machine, Timestamp, millis};
use notices::notice::Kind;
use objects::apps::app::{Present, Sight, TargetKey};
use objects::owned::{Effect as Own, Event as Life};
use objects::pipeline::freezes::Freezes;
use objects::pipeline::spec::{Advance, Object};
use objects::pipeline::{Effect, Event, Pipeline};

use super::world::{How, Shape, Stored, World, index, number};
use super::{NO_FAULTS, world};

/// How long one step is.
const STEP: Duration = Duration::from_secs(10);

/// How long the head goes on.
const FOR: Duration = Duration::from_hours(6);

/// One pace of everything.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Between two revisions of staging.
    every: Duration,
    /// Until a rollout of test or prod is done.
    rollout: Duration,
    /// How long staging must have been good.
    soak: Duration,
    /// A pod of each environment is replaced this often, and takes a step.
    evicted: Option<Duration>,
}

/// An environment: what it runs, and since when.
#[derive(Clone, Copy)]
struct Runs {
    revision: u8,
    since: Timestamp,
}

struct Restless {
    pace: Pace,
    now: Timestamp,
    machine: Pipeline,
    object: Object,
    version: u64,
    targets: [TargetKey; 3],
    runs: [Runs; 3],
    shown: [Option<Sight>; 3],
    /// Every revision that prod was told to run.
    told: Vec<u8>,
}

impl Restless {
    fn new(pace: Pace, shape: Shape) -> Self {
        let world = World { advance: Advance::Stepwise, shape, ..world(&[1], [How::Notice, How::Notice], NO_FAULTS) };
        let targets = [0, 1, 2].map(|env| world.targets(env).swap_remove(0));
        let mut object = world.object(&Stored::default());
        if let Ok(spec) = &mut object.spec {
            spec.environments[1].gates.soak = pace.soak;
            spec.environments[1].gates.soak_tolerates = Duration::from_mins(2);
        }
        let runs = [Runs { revision: 1, since: Timestamp::default() }; 3];
        let machine = Pipeline::new(0, object.clone());
        let now = Timestamp::default();
        let shown = [const { None }; 3];
        let mut restless = Self { pace, now, machine, object, version: 1, targets, runs, shown, told: Vec::new() };
        restless.feed(Event::Frozen(Freezes::none()));
        restless
    }

    /// What an environment says now.
    fn sight(&self, env: usize) -> Sight {
        let Runs { revision: runs, since } = self.runs[env];
        let rolls = env > 0 && runs > 1 && self.now < since.after(self.pace.rollout);
        let at = self.now.as_millis();
        let evicts = self.pace.evicted.is_some_and(|every| at.is_multiple_of(millis(every)));
        let unready = (rolls || evicts).then(|| "2 of 3 pods available".to_owned());
        Sight::Present(Present { uid: "1".to_owned(), unready, revision: Ok(Revision(runs.to_string())) })
    }

    fn pass(&mut self) {
        self.now = self.now.after(STEP);
        let before = self.now.as_millis() / millis(self.pace.every);
        let head = u8::try_from(before + 1).unwrap();
        if self.runs[0].revision != head {
            self.runs[0] = Runs { revision: head, since: self.now };
        }
        let news = (0..3).filter_map(|env| {
            let says = self.sight(env);
            (self.shown[env].as_ref() != Some(&says)).then_some((env, says))
        });
        for (env, says) in news.collect::<Vec<_>>() {
            self.shown[env] = Some(says.clone());
            self.feed(Event::Reported(vec![(self.targets[env].clone(), says)]));
        }
        let effects = self.machine.tick(self.now);
        self.perform(effects);
    }

    fn feed(&mut self, event: Event) {
        let effects = self.machine.step_and_catch_up(self.now, event);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            assert_eq!(self.machine.breaks(&effect), [], "{effect:?}");
            let event = match effect {
                Effect::Object(Own::Store(status, _)) => {
                    self.object.status = *status;
                    self.version += 1;
                    Event::Object(Life::Stored { version: self.version.to_string(), whole: true })
                }
                Effect::Recheck(name, seq, targets) => {
                    let sight = |place: usize| (self.targets[place].clone(), self.sight(place));
                    let all = (0..3).map(sight).filter(|(target, _)| targets.contains(target));
                    Event::Rechecked(name, seq, all.collect())
                }
                Effect::Object(Own::Tell(notice)) => {
                    if let Some(fact) = notice.about.promotion().filter(|_| notice.kind == Kind::PromotionStarted) {
                        let (env, runs) = (index(&fact.environment), number(fact.revision.as_ref().unwrap()));
                        self.runs[env] = Runs { revision: runs, since: self.now };
                        if env == 2 {
                            self.told.push(runs);
                        }
                    }
                    Event::Object(Life::Told(notice.id))
                }
                Effect::Follow(_) | Effect::FollowSecrets(_) | Effect::Object(Own::Look | Own::End) => {
                    continue;
                }
                other => panic!("{other:?}"),
            };
            effects.extend(self.machine.step_and_catch_up(self.now, event));
        }
    }
}

#[test]
fn each_environment_moves_on_beside_a_head_that_never_rests() {
    let seconds = Duration::from_secs;
    let mut tried = 0;
    for every in [90, 180, 300, 600] {
        for rollout in [20, 120, 700] {
            for soak in [0, 60, 240] {
                // Where prod comes after both, staging is always ahead of test: the two are never at one revision.
                for (evicted, shape) in [None, Some(seconds(50))]
                    .into_iter()
                    .flat_map(|evicted| [(evicted, Shape::Line), (evicted, Shape::Join)])
                {
                    // What is never in staging for as long as the soak passes nothing on.
                    if soak + 30 > every {
                        continue;
                    }
                    let pace = Pace { every: seconds(every), rollout: seconds(rollout), soak: seconds(soak), evicted };
                    let mut world = Restless::new(pace, shape);
                    for _ in 0..FOR.as_secs() / STEP.as_secs() {
                        world.pass();
                    }
                    // Staging passes one on at its pace; test and prod take a rollout each.
                    let round = rollout + every;
                    let rounds = FOR.as_secs() / round;
                    let last = u64::from(*world.told.last().unwrap_or(&1));
                    let head = u64::from(world.runs[0].revision);
                    let behind = (head - last) * every;
                    eprintln!("{pace:?}, {shape:?}: {} into prod, the last of {behind} s ago", world.told.len());
                    assert!(world.told.len() as u64 >= rounds / 3, "{pace:?}, {shape:?}: {:?}", world.told);
                    assert!(behind <= 4 * round, "{pace:?}, {shape:?}: {head} in staging, {last} in prod");
                    assert!(world.told.is_sorted(), "{pace:?}, {shape:?}: {:?}", world.told);
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, 120);
}
