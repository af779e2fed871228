//! The world around a Repo.

use std::collections::VecDeque;
use std::time::Duration;

use kernel::id::{CommitId, RepoId};
use kernel::machine::{Machine, Timestamp};
use kernel::promise::Promise;
use objects::gates::Window;
use objects::kept::{Answers, Finalizers};
use objects::owned::{Effect as Own, Event as Life, OwnMachine};
use objects::repo::spec::{
    Approving, DriftLooks, Gates, Keep, Object, OnDrift, Preset, Retry, Runner, Source, Spec, Wanted,
};
use objects::repo::status::{Phase, Status};
use objects::repo::{Effect, Event, Repo};

use super::action::{Action, Answer, Faults, failed, is_write};
use super::forge::Forge;
use super::leaving::{Leaving, is_done_by_then, is_end, is_unwanted};
use super::lock::Locks;
use super::outside::{Sight, Truth, is_ahead};
use super::past::Past;

#[derive(Clone)]
pub struct World {
    pub approval: Approving,
    /// The commits that the wanted ref points to, in the order of time.
    pub head: &'static [u8],
    pub faults: Faults,
    /// Watches show a worker its own writes, too, at any later time, and every change of a Job.
    pub lags: bool,
    /// Replicas that believe to lead.
    pub workers: usize,
    /// Ended Jobs that are kept.
    pub keep: usize,
    pub terms: Terms,
    pub mutant: Mutant,
}

/// What else a search begins with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// An apply waits for a window, which is shut at first.
    pub gated: bool,
    /// An apply that failed is repeated so often by itself.
    pub retries: u32,
    /// A Job of another has the name of the first one.
    pub taken: bool,
    /// A pod of a Repo of this name that was deleted has not ended.
    pub left: bool,
    /// The content of each commit, under either list of watched paths.
    pub contents: Option<&'static [[u8; 2]]>,
    /// Git never tells of folders.
    pub blind: bool,
    /// What was applied is planned again at times, and this follows where something has drifted.
    pub drift: Option<OnDrift>,
    /// From the first edit on, nothing may be applied.
    pub forbids: bool,
    /// Who takes a lock away reports that, and does nothing.
    pub deaf: bool,
    /// An apply writes its outputs to a Secret.
    pub outputs: bool,
    /// Runs are reported to a forge.
    pub reports: bool,
    /// A Repo that is deleted asks whether what it applied is destroyed.
    pub asks: bool,
}

/// A way to break the protocol around the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    None,
    /// A Job is made running.
    MadeRunning,
    /// A write counts as durable when it is sent.
    ActsOnDraft,
    /// The API server takes every write of the status.
    NoCompareAndSet,
    /// A Job's name does not hold the run's number.
    NameWithoutSeq,
    /// A Job is started as it is, not as it was seen.
    StartedUnseen,
    /// Pods are said to have ended when their Job has.
    PodsUnread,
    /// An apply does not compare its plan.
    NoFingerprint,
    /// An answer counts for every question.
    TicketIgnored,
    /// What was lost is run again by itself.
    LostRepeated,
    /// A pod that was told to end says that nothing of it had run.
    EndUnseen,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stored {
    pub version: u64,
    /// Which worker wrote it; `None`: a person.
    pub writer: Option<usize>,
    pub status: Status,
    pub answers: Answers,
    pub edition: u8,
    /// Which list of paths is watched.
    pub watches: u8,
    pub stopped: bool,
    pub leaving: Leaving,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Worker {
    pub machine: Repo,
    pub seen: u64,
    pub watches: bool,
    /// What its watch of Jobs is about to show.
    pub queue: Vec<Sight>,
    /// What its last look at git brought.
    looked: Option<CommitId>,
    /// What it was to write last.
    sent: Option<Box<Status>>,
    /// What its last look at the calendar brought.
    pub open: bool,
    pub calls: Vec<Effect>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub now: Timestamp,
    pub waits: u8,
    pub left: Faults,
    pub head: usize,
    pub drift: u8,
    /// What that was when something was applied last, where drift is looked for.
    pub fixed: u8,
    /// The window is open.
    pub open: bool,
    pub object: Stored,
    /// Every Job that there ever was.
    pub jobs: Vec<Truth>,
    pub workers: Vec<Worker>,
    /// What an ended life had asked of the API server.
    pub late: Vec<Effect>,
    pub lock: Locks,
    pub forge: Forge,
    pub past: Past,
}

/// Between two looks at drift.
pub const EVERY: Duration = Duration::from_mins(20);

/// The image of the user's containers.
pub fn image(edition: u8) -> String {
    format!("tool:{edition}")
}

pub fn revision(number: u8) -> CommitId {
    CommitId::from([number; 20])
}

impl World {
    fn spec(&self, stored: &Stored) -> Spec {
        let window = Window { days: vec![0], from: 0, to: 60, zone: "UTC".to_owned() };
        let windows = if self.terms.gated { vec![window] } else { Vec::new() };
        Spec {
            source: Source { wanted: Wanted::Head, watched: self.watched(stored.watches), ..Source::default() },
            interval: self.terms.drift.map_or(Duration::from_mins(1), |_| Duration::from_hours(24)),
            approval: self.approving(stored),
            runner: Runner {
                preset: Preset::Command,
                image: image(stored.edition),
                destroy: self.destroys(),
                outputs: self.outputs(),
                ..Runner::default()
            },
            workspace: None,
            retry: Retry { limit: self.terms.retries, backoff: Duration::from_mins(1) },
            gates: Gates { windows, ..Gates::default() },
            suspended: stored.stopped.then(|| "stopped".to_owned()),
            keep: Keep { succeeded: self.keep, failed: self.keep },
            stalled_after: Duration::from_hours(1),
            drift: self.terms.drift.map(|then| DriftLooks { every: EVERY, then }),
            report: self.reports(),
        }
    }

    /// What an apply needs by now.
    pub const fn approving(&self, stored: &Stored) -> Approving {
        if self.terms.forbids && stored.edition > 0 { Approving::Never } else { self.approval }
    }

    /// What pods go through is shown where that matters; elsewhere it is read when a Job has ended.
    pub fn shows_pods(&self) -> bool {
        self.terms.left || self.faults.orphaned + self.faults.stuck + self.faults.remakes > 0
    }

    pub fn object(&self, stored: &Stored) -> Object {
        let mut answers = Answers { keep: stored.leaving.kept.clone(), ..stored.answers.clone() };
        let mut status = stored.status.clone();
        match self.mutant {
            // Whatever was answered counts for what is asked now.
            Mutant::TicketIgnored => {
                let asked = status.waiting.as_ref().map(|waiting| waiting.ticket.clone());
                answers.approve = answers.approve.and(asked);
            }
            Mutant::LostRepeated => {
                let lost = status.run.as_mut().filter(|run| run.phase == Phase::Lost);
                lost.into_iter().for_each(|run| run.phase = Phase::Waiting);
            }
            _ => {}
        }
        Object {
            id: RepoId::new("platform", "infra"),
            uid: stored.leaving.uid(),
            generation: 1,
            version: stored.version.to_string(),
            spec: Ok(self.spec(stored)),
            answers,
            status,
            deleting: stored.leaving.deleting,
            finalizers: Finalizers { ours: stored.leaving.held, cascading: false },
        }
    }
}

impl State {
    pub fn new(world: &World) -> Self {
        let (status, answers) = (Status::default(), Answers::default());
        let leaving = Leaving::default();
        let object =
            Stored { version: 1, writer: None, status, answers, edition: 0, watches: 0, stopped: false, leaving };
        let mut state = Self {
            now: Timestamp::default(),
            waits: 0,
            left: world.faults,
            head: 0,
            drift: 0,
            fixed: 0,
            open: !world.terms.gated,
            object,
            jobs: {
                let taken = world.terms.taken.then(|| Truth::of_another(world.approval));
                taken.into_iter().chain(world.terms.left.then(|| Truth::of_an_earlier(world.approval))).collect()
            },
            workers: Vec::new(),
            late: Vec::new(),
            lock: Locks::default(),
            forge: Forge::default(),
            past: Past::default(),
        };
        for worker in 0..world.workers {
            state.workers.push(state.worker(world));
            state.wake(world, worker);
        }
        state
    }

    fn worker(&self, world: &World) -> Worker {
        let machine = Repo::new(0, world.object(&self.object));
        let seen = self.object.version;
        Worker {
            machine,
            seen,
            watches: false,
            queue: Vec::new(),
            looked: None,
            sent: None,
            open: !world.terms.gated,
            calls: Vec::new(),
        }
    }

    /// The ticket that a person could answer.
    pub fn question(&self) -> Option<&str> {
        self.object.status.waiting.as_ref().map(|waiting| waiting.ticket.as_str())
    }

    pub fn take(&mut self, world: &World, action: Action) {
        match action {
            Action::Move => {
                self.head += 1;
                self.object.answers.poked = Some(self.head.to_string());
                self.edited();
            }
            Action::See(worker) => {
                self.workers[worker].seen = self.object.version;
                let object = world.object(&self.object);
                let sight = if self.object.leaving.gone { Life::Missed } else { Life::Seen(Box::new(object)) };
                self.feed(world, worker, Event::Object(sight));
            }
            Action::SeeJob(worker) => {
                let sight = self.workers[worker].queue.remove(0);
                self.feed(world, worker, sight.event());
            }
            Action::Answer((worker, call), answer) => self.answer(world, worker, call, answer),
            Action::Late(call) => {
                let effect = self.late.remove(call);
                let _ = self.perform(world, &effect, None);
            }
            Action::End(job, fate) => {
                self.left.spend(fate);
                self.end(world, job, fate);
            }
            Action::EndPod(job) => self.end_pod(world, job),
            Action::Delete(_) | Action::Orphan(_) | Action::Stick(_) | Action::Free(_) | Action::Suspend(_) => {
                self.disturb(world, action);
            }
            Action::Drift
            | Action::Yes
            | Action::Again
            | Action::Replay(_)
            | Action::Turn
            | Action::Edit
            | Action::Rewatch
            | Action::Stop
            | Action::Resume
            | Action::Restore
            | Action::Lock
            | Action::GiveBack
            | Action::Agree
            | Action::Refuse
            | Action::Remove
            | Action::Keep
            | Action::Remake => self.touch(world, action),
            Action::Wait(worker) => {
                self.waits += 1;
                if let Some(at) = self.workers[worker].machine.next_deadline() {
                    self.now = self.now.max(at);
                    self.wake(world, worker);
                }
            }
            Action::Crash(worker) => self.crash(world, worker),
        }
    }

    /// Something other than allclear touches a Job.
    fn disturb(&mut self, world: &World, action: Action) {
        match action {
            Action::Delete(job) => {
                self.left.deleted -= 1;
                self.delete(world, job);
            }
            Action::Orphan(job) => {
                self.left.orphaned -= 1;
                self.orphan(world, job);
            }
            Action::Stick(job) => {
                self.left.stuck -= 1;
                self.stick(world, job, true);
            }
            Action::Free(job) => {
                self.left.freed -= 1;
                self.stick(world, job, false);
            }
            Action::Suspend(job) => {
                self.left.suspended -= 1;
                self.suspend(world, job);
            }
            _ => {}
        }
    }

    /// A life ends, and the next one begins. What it had asked of others may still arrive.
    fn crash(&mut self, world: &World, worker: usize) {
        self.left.crashes -= 1;
        let calls = self.workers[worker].calls.clone();
        for effect in calls.iter().filter(|effect| is_done_by_then(effect)) {
            let _ = self.perform(world, effect, Some(worker));
        }
        self.forget_report(world);
        let reborn = self.worker(world);
        let dead = std::mem::replace(&mut self.workers[worker], reborn);
        let writes = |effect: &Effect| is_write(effect) || matches!(effect, Effect::Withdraw(_));
        self.late.extend(dead.calls.into_iter().filter(writes));
        self.object.writer = None;
        self.wake(world, worker);
    }

    fn wake(&mut self, world: &World, worker: usize) {
        let effects = self.workers[worker].machine.tick(self.now);
        self.carry_out(world, worker, effects);
    }

    fn feed(&mut self, world: &World, worker: usize, event: Event) {
        let effects = self.step(worker, event);
        self.carry_out(world, worker, effects);
    }

    fn step(&mut self, worker: usize, event: Event) -> Vec<Effect> {
        if let Event::Resolved(found) = &event {
            self.workers[worker].looked = Some(found.revision.clone());
        }
        self.workers[worker].machine.step_and_catch_up(self.now, event)
    }

    /// Each effect is asked for in the order in which the machine wanted it.
    fn carry_out(&mut self, world: &World, worker: usize, effects: Vec<Effect>) {
        let mut all = VecDeque::from(self.judged(worker, effects));
        while let Some(effect) = all.pop_front() {
            let event = match effect {
                // Git, the outbox and the beginning of a watch answer at once: their delays change nothing that a later event does not.
                Effect::Resolve(_) | Effect::Object(Own::Tell(_)) | Effect::WatchJobs(_) | Effect::Ask(_) => {
                    self.perform(world, &effect, Some(worker))
                }
                _ if is_end(&effect) => None,
                Effect::Object(Own::Store(_, ref over)) if world.mutant == Mutant::ActsOnDraft => {
                    let version = over.clone();
                    self.workers[worker].calls.push(effect);
                    Some(Event::Object(Life::Stored { version, whole: true }))
                }
                _ => {
                    self.workers[worker].calls.push(effect);
                    None
                }
            };
            let is_listing = matches!(event, Some(Event::JobsListed(_)));
            for event in event.into_iter().chain(is_listing.then(|| self.listed(world))) {
                let effects = self.step(worker, event);
                all.extend(self.judged(worker, effects));
            }
        }
    }

    fn judged(&mut self, worker: usize, effects: Vec<Effect>) -> Vec<Effect> {
        let known = &mut self.workers[worker];
        self.past.promise(Promise::RunInTheEnd, is_ahead(known.machine.next_deadline(), self.now));
        let is_stopped = known.machine.object().spec.as_ref().is_ok_and(|spec| spec.suspended.is_some());
        for effect in &effects {
            self.past.rushed |= is_stopped && matches!(effect, Effect::Make(_) | Effect::Start(_));
            self.past.unwanted |= is_unwanted(&known.machine, effect);
            self.past.broken.extend(known.machine.breaks(effect));
            // A write with an unknown outcome is repeated unchanged.
            if let Effect::Object(Own::Store(status, _)) = effect
                && known.sent.as_ref() != Some(status)
            {
                let durable = known.machine.durable();
                // What was begun before a stop, and was not durable then, waits as it is, whatever the head is by now.
                if !is_stopped {
                    self.past.judge_sent(durable, status, known.looked.as_ref());
                }
                self.past.judge_ordered(durable, status, known.open);
                known.sent = Some(status.clone());
            }
        }
        effects
    }

    fn answer(&mut self, world: &World, worker: usize, call: usize, answer: Answer) {
        let effect = self.workers[worker].calls.remove(call);
        if answer != Answer::Works {
            self.left.lost -= 1;
        }
        let event = match answer {
            Answer::Works => self.perform(world, &effect, Some(worker)),
            Answer::Lost => {
                let _ = self.perform(world, &effect, None);
                self.forget_report(world);
                failed(&effect)
            }
            Answer::Fails => failed(&effect),
        };
        if let Some(event) = event {
            self.feed(world, worker, event);
        }
    }
}
