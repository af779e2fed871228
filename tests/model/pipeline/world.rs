//! The world around a Pipeline.

use std::time::Duration;

use kernel::id::{Environment, NoticeId, PipelineId, Revision, Seq};
use kernel::machine::{Machine, Timestamp};
use kernel::names::selector::Labels;
use objects::apps::app::{ClusterKey, Present, Sight};
use objects::gates::Freeze;
use objects::kept::{Answers, Finalizers};
use objects::owned::{Effect as Own, Event as Life, OwnMachine};
use objects::pipeline::proposal::{ForgeKind, Order, Repository};
use objects::pipeline::set::place;
use objects::pipeline::spec::{Advance, EnvironmentSpec, Gates, Object, PromotionSpec, Rollback, Spec, Strategy};
use objects::pipeline::status::{Cause, Phase, Status};
use objects::pipeline::{Effect, Event, Pipeline};

use super::action::{Action, Answer};
use super::outside::{PullRequest, Standing, failed};
use super::past::Past;

#[derive(Clone)]
pub struct World {
    pub advance: Advance,
    pub shape: Shape,
    /// What staging runs, in the order of time.
    pub head: &'static [u8],
    /// How revisions get into test and prod.
    pub how: [How; 2],
    pub faults: Faults,
    /// The watch shows a worker its own writes, too, at any later time.
    pub lags: bool,
    /// Replicas that believe to lead.
    pub workers: usize,
    /// The object's versions that are looked at, where that bounds a search.
    pub versions: u64,
    /// What a person may choose: a revision for an environment.
    pub choices: &'static [(usize, u8)],
    /// A revision that is ready in staging alone: the others go back from it.
    pub stuck: Option<u8>,
    /// What the author of the spec changes in it.
    pub change: Change,
    pub mutant: Mutant,
}

/// Which environments come after which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Prod after test, and that after staging.
    Line,
    /// Test and prod after staging, beside each other.
    Fork,
    /// Test after staging, and prod after both.
    Join,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    /// Requests go to another repository.
    Repository,
    /// Nothing may start in test.
    Freeze,
    /// Only staging is left.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// There is no such environment.
    None,
    Notice,
    ManualNotice,
    Request,
    ManualRequest,
}

/// A way to break the protocol around the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    None,
    /// The fresh look is answered from the watch.
    NoRecheck,
    /// A target that cannot be read counts as one with another revision.
    UnknownIsElsewhere,
    /// A write counts as durable when it is sent.
    ActsOnDraft,
    /// The API server takes every write.
    NoCompareAndSet,
    /// An answer counts for every question.
    TicketIgnored,
    /// A request is found by its branch alone.
    AdoptsByBranch,
    /// A request with a lower number replaces the branch.
    LateOrderPushes,
    /// What was completed is taken for superseded.
    ForgetsWhatWasCompleted,
    /// Closing a request does nothing.
    NoWithdrawal,
    /// The worker is told of no freeze.
    FreezesUntold,
}

/// How many faults of each kind one run may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A call fails, or its answer is lost.
    pub lost: u8,
    pub crashes: u8,
    pub unknown: u8,
    /// A person closes a request.
    pub closed: u8,
    /// A person says yes.
    pub yes: u8,
    /// A person chooses a revision.
    pub choices: u8,
    pub replays: u8,
    pub rolled_back: u8,
    /// The spec is changed.
    pub changed: u8,
    /// A PromotionFreeze is made.
    pub freezes: u8,
    /// Times that something waits until it is due.
    pub waits: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stored {
    pub version: u64,
    /// Which worker wrote it; `None`: a person.
    pub writer: Option<usize>,
    pub status: Status,
    pub answers: Answers,
    /// The spec is the one after the change.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Worker {
    pub machine: Pipeline,
    /// What it was told last of each target; `None` if it has lost sight.
    pub shown: [Option<u8>; 3],
    pub seen: u64,
    /// What it was told last of the freezes of the cluster: whether test is in one.
    pub frozen: bool,
    pub calls: Vec<Effect>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub now: Timestamp,
    pub waits: u8,
    pub left: Faults,
    pub head: usize,
    /// What runs in each environment. All of it is ready.
    pub truth: [u8; 3],
    /// What the deployer is to run.
    pub desired: [u8; 3],
    pub object: Stored,
    pub workers: Vec<Worker>,
    /// What an ended life had asked of the forge or the API server.
    pub late: Vec<Effect>,
    pub requests: Vec<PullRequest>,
    /// Notices that the receiver has had.
    pub had: Vec<NoticeId>,
    /// The newest promotion that it has obeyed, of each environment: deliveries may come out of order.
    pub obeyed: [Seq; 3],
    /// Somebody has made a PromotionFreeze for test.
    pub frozen: bool,
    pub past: Past,
}

pub const NAMES: [&str; 3] = ["staging", "test", "prod"];

pub fn environment(index: usize) -> Environment {
    Environment(NAMES[index].to_owned())
}

pub fn index(name: &Environment) -> usize {
    NAMES.iter().position(|one| *one == name.0).unwrap()
}

pub fn number(revision: &Revision) -> u8 {
    let digits: String = revision.0.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

impl World {
    /// How many environments there are.
    pub fn size(&self) -> usize {
        1 + self.how.iter().take_while(|how| **how != How::None).count()
    }

    /// What an app says that has this.
    pub fn sight(&self, env: usize, number: u8) -> Sight {
        let stuck = env > 0 && self.stuck == Some(number);
        let unready = stuck.then(|| "0 of 1 pods available".to_owned());
        Sight::Present(Present { uid: "1".to_owned(), unready, revision: Ok(Revision(number.to_string())) })
    }

    /// Those just before an environment.
    pub fn before(&self, env: usize) -> Vec<usize> {
        match (env, self.shape) {
            (0, _) => Vec::new(),
            (2, Shape::Fork) => vec![0],
            (2, Shape::Join) => vec![0, 1],
            _ => vec![env - 1],
        }
    }

    fn spec(&self, changed: bool) -> Spec {
        let is_new = changed && self.change == Change::Repository;
        // The first one is always over, so that somebody has to be asked.
        let freezes = usize::from(self.change == Change::Freeze) + usize::from(self.is_frozen(changed));
        let freeze = |number: i64| Freeze { from: number, to: number + 1, reason: "sale".to_owned() };
        let freezes: Vec<Freeze> = (0..).take(freezes).map(freeze).collect();
        let gates =
            |index| Gates { freezes: if index == 1 { freezes.clone() } else { Vec::new() }, ..Gates::default() };
        let size = if changed && self.change == Change::Gone { 1 } else { self.size() };
        let apps: Vec<String> = self.apps().iter().filter(|_| self.is_set()).map(|app| (*app).to_owned()).collect();
        let place = |index: usize| place(ClusterKey::Here, NAMES[index], &apps);
        let environments = (0..size).map(|index| EnvironmentSpec {
            name: environment(index),
            after: self.before(index).into_iter().map(environment).collect(),
            targets: if self.is_set() { vec![place(index)] } else { self.targets(index) },
            promotion: index.checked_sub(1).and_then(|index| how(self.how[index], is_new)),
            gates: gates(index),
            suspended: false,
            purged: None,
            stalled_after: Duration::from_hours(1),
            parts: if self.is_set() { vec![self.targets(index)] } else { Vec::new() },
            rollback: self.stuck.map(|_| Rollback { on: vec![Cause::Stalled], within: Duration::from_hours(3) }),
        });
        let environments = environments.collect();
        Spec {
            environments,
            advance: self.advance,
            suspended: None,
            labels: Labels::new(),
            passed_over: Vec::new(),
            apps,
        }
    }

    /// Whether nothing may start in test.
    pub fn is_frozen(&self, changed: bool) -> bool {
        changed && self.change == Change::Freeze
    }

    pub fn object(&self, stored: &Stored) -> Object {
        let mut answers = stored.answers.clone();
        if self.mutant == Mutant::TicketIgnored {
            // Whatever was answered counts for what is asked now.
            let asked = stored.status.environments.values().find_map(|known| known.waiting.as_ref());
            answers.approve = answers.approve.and(asked.map(|waiting| waiting.ticket.clone()));
        }
        let mut status = stored.status.clone();
        if self.mutant == Mutant::ForgetsWhatWasCompleted {
            for known in status.environments.values_mut() {
                known.reached = None;
                let completed = known.promotion.as_mut().filter(|promotion| promotion.phase == Phase::Completed);
                completed.into_iter().for_each(|promotion| promotion.phase = Phase::Superseded);
            }
        }
        Object {
            id: PipelineId::new("shop", "web"),
            uid: "uid".to_owned(),
            generation: 1,
            version: stored.version.to_string(),
            spec: Ok(self.spec(stored.changed)),
            answers,
            status,
            deleting: false,
            finalizers: Finalizers::default(),
        }
    }
}

/// Where requests go after the spec was changed.
const NEW: &str = "https://git.example.com/shop/new";

/// Whether an order is for the repository after the change.
pub fn is_new(order: &Order) -> bool {
    order.repository.url == NEW
}

fn how(how: How, is_new: bool) -> Option<PromotionSpec> {
    let repository = Repository {
        forge: ForgeKind::GitHub,
        url: if is_new { NEW } else { "https://git.example.com/shop/web" }.to_owned(),
        base: "main".to_owned(),
        path: None,
        secret: None,
    };
    let (manual, strategy) = match how {
        How::None => return None,
        How::Notice => (false, Strategy::Notification),
        How::ManualNotice => (true, Strategy::Notification),
        How::Request => (false, Strategy::PullRequest(repository, Box::default())),
        How::ManualRequest => (true, Strategy::PullRequest(repository, Box::default())),
    };
    Some(PromotionSpec { manual, strategy })
}

impl State {
    pub fn new(world: &World) -> Self {
        let first = world.head[0];
        let object =
            Stored { version: 1, writer: None, status: Status::default(), answers: Answers::default(), changed: false };
        let mut state = Self {
            now: Timestamp::default(),
            waits: 0,
            left: world.faults,
            head: 0,
            truth: [first; 3],
            desired: [first; 3],
            object,
            workers: Vec::new(),
            late: Vec::new(),
            requests: Vec::new(),
            had: Vec::new(),
            obeyed: [Seq(0); 3],
            frozen: false,
            past: Past::default(),
        };
        state.past.note_truth(world, &state.truth);
        for worker in 0..world.workers {
            state.workers.push(state.worker(world));
            // Everything was seen and written down once before the search begins.
            state.feed(world, worker, Event::PeersRestarted);
        }
        state.come_to_rest(world);
        state
    }

    fn worker(&self, world: &World) -> Worker {
        let machine = Pipeline::new(0, world.object(&self.object));
        Worker { machine, shown: [None; 3], seen: self.object.version, frozen: false, calls: Vec::new() }
    }

    pub fn take(&mut self, world: &World, action: Action) {
        match action {
            Action::Move => {
                self.head += 1;
                self.truth[0] = world.head[self.head];
                self.past.note_truth(world, &self.truth);
            }
            Action::Deploy(env, part) => {
                self.truth[env] = world.gone_over(self.truth[env], part, self.desired[env]);
                self.past.note_truth(world, &self.truth);
            }
            Action::RollBack(env) => {
                self.left.rolled_back -= 1;
                self.truth[env] = world.head[0];
                self.desired[env] = world.head[0];
                self.past.note_truth(world, &self.truth);
            }
            Action::Show(worker, env, part) => {
                let says = self.truth[env];
                let shown = &mut self.workers[worker].shown[env];
                *shown = Some(world.gone_over(shown.unwrap_or_default(), part, says));
                let target = world.targets(env).swap_remove(part);
                self.feed(world, worker, Event::Reported(vec![(target, world.sight(env, world.digit(says, part)))]));
            }
            Action::Lose(worker, env) => {
                self.left.unknown -= 1;
                self.workers[worker].shown[env] = None;
                let unknown = match world.mutant {
                    Mutant::UnknownIsElsewhere => world.sight(env, 9),
                    _ => Sight::Unknown("no answer".to_owned()),
                };
                let lost = world.targets(env).into_iter().map(|target| (target, unknown.clone()));
                self.feed(world, worker, Event::Reported(lost.collect()));
            }
            Action::See(worker) => {
                self.workers[worker].seen = self.object.version;
                let object = world.object(&self.object);
                self.feed(world, worker, Event::Object(Life::Seen(Box::new(object))));
            }
            Action::Answer((worker, call), answer) => self.answer(world, worker, call, answer),
            Action::Late(call) => {
                let effect = self.late.remove(call);
                let _ = self.perform(world, &effect, None);
            }
            Action::Change => self.change_spec(),
            Action::Freeze => {
                self.left.freezes -= u8::from(!self.frozen);
                self.frozen = !self.frozen;
            }
            Action::ShowFreezes(worker) => self.show_freezes(world, worker),
            Action::Merge(request) => self.merge(request),
            Action::Close(request) => {
                self.left.closed -= 1;
                self.requests[request].state = Standing::Closed;
            }
            Action::Yes(_) | Action::Choose(..) | Action::Replay(_) => self.answered(world, action),
            Action::Wait(worker) => {
                self.waits += 1;
                if let Some(at) = self.workers[worker].machine.next_deadline() {
                    self.now = self.now.max(at);
                    let effects = self.workers[worker].machine.tick(self.now);
                    self.emit(world, worker, effects);
                }
            }
            Action::Crash(worker) => self.crash(world, worker),
        }
    }

    /// A life ends, and the next one begins. What it had asked of others may still arrive.
    fn crash(&mut self, world: &World, worker: usize) {
        self.left.crashes -= 1;
        let reborn = self.worker(world);
        let dead = std::mem::replace(&mut self.workers[worker], reborn);
        let sent = |effect: &Effect| {
            matches!(effect, Effect::Object(Own::Store(..)) | Effect::Propose(_) | Effect::Withdraw(..))
        };
        self.late.extend(dead.calls.into_iter().filter(sent));
        self.feed(world, worker, Event::PeersRestarted);
    }

    fn change_spec(&mut self) {
        self.left.changed -= 1;
        self.object.changed = true;
        self.object.version += 1;
        self.object.writer = None;
    }

    fn merge(&mut self, request: usize) {
        let request = &mut self.requests[request];
        request.state = Standing::Merged;
        self.desired[request.env] = request.revision;
    }

    pub fn feed(&mut self, world: &World, worker: usize, event: Event) {
        let now = self.now;
        let effects = self.workers[worker].machine.step_and_catch_up(now, event);
        self.emit(world, worker, effects);
    }

    fn emit(&mut self, world: &World, worker: usize, effects: Vec<Effect>) {
        for effect in effects {
            let machine = &self.workers[worker].machine;
            let broken = machine.breaks(&effect);
            self.past.broken.extend(broken);
            if let Effect::Object(Own::Store(status, _)) = &effect {
                self.past.judge_sent(world, machine.durable(), status, &self.workers[worker].shown);
                self.past.judge_frozen(world, status, self.workers[worker].frozen);
            }
            match effect {
                Effect::Follow(ref targets) => {
                    if !targets.is_empty() {
                        self.show_freezes(world, worker);
                    }
                }
                Effect::FollowSecrets(_) | Effect::Object(Own::End) => {}
                Effect::Object(Own::Store(ref status, ref over)) if world.mutant == Mutant::ActsOnDraft => {
                    let (whole, version) = (true, over.clone());
                    let _ = status;
                    self.workers[worker].calls.push(effect.clone());
                    self.feed(world, worker, Event::Object(Life::Stored { version, whole }));
                }
                _ => self.workers[worker].calls.push(effect),
            }
        }
    }

    fn answer(&mut self, world: &World, worker: usize, call: usize, answer: Answer) {
        let effect = self.workers[worker].calls.remove(call);
        if answer != Answer::Works {
            self.left.lost -= 1;
        }
        let event = match answer {
            Answer::Works => self.perform(world, &effect, Some(worker)),
            Answer::Lost => {
                let _ = self.perform(world, &effect, Some(worker));
                failed(&effect)
            }
            Answer::Fails => failed(&effect),
        };
        if let Some(event) = event {
            self.feed(world, worker, event);
        }
    }
}
