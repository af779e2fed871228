//! What is outside of a Repo: the API server with its Jobs, what runs them, and git.

use kernel::id::{RepoId, RunSeq};
use kernel::machine::Timestamp;
use objects::asked::{Answer, Ask, Opening};
use objects::owned::{Effect as Own, Event as Life, OwnMachine};
use objects::ports::repo::{Found, Made, Start};
use objects::repo::job::{self, Job, Order, Place, Pod, Pods, Step, StepKind, StepState};
use objects::repo::spec::Approving;
use objects::repo::status::{Action, Attempt};
use objects::repo::{Effect, Event};

use super::world::{Mutant, State, World, revision};

/// A Job as it really is, or was.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Truth {
    pub job: Job,
    pub gone: bool,
    pub alive: bool,
    /// Its `apply` cannot begin.
    pub stuck: bool,
    /// Its pod was left when it was deleted.
    pub orphaned: bool,
    pub steps: Vec<Step>,
    pub fingerprint: Option<String>,
    /// The lock that it takes away first.
    pub unlock: Option<String>,
    /// It is not the Repo's.
    pub foreign: bool,
    pub image: String,
}

impl Truth {
    /// A Job of another with the name of the first one that the Repo will order.
    pub fn of_another(approval: Approving) -> Self {
        let action = if approval == Approving::Plan { Action::Plan } else { Action::Apply };
        let attempt = Attempt { seq: RunSeq(1), action, number: 1 };
        let job = Job {
            name: job::name(&RepoId::new("platform", "infra"), "uid", attempt),
            uid: "another".to_owned(),
            version: "1".to_owned(),
            owner: None,
            attempt,
            revision: revision(0),
            marked: false,
            withdrawn: false,
            suspended: true,
            deleting: false,
            pods: Pods::default(),
            end: None,
        };
        Self { foreign: true, ..Self::new(job, String::new()) }
    }

    fn new(job: Job, image: String) -> Self {
        Self {
            alive: job.pods.active > 0,
            job,
            gone: false,
            stuck: false,
            orphaned: false,
            steps: Vec::new(),
            fingerprint: None,
            unlock: None,
            foreign: false,
            image,
        }
    }

    /// What is left of a Repo of this name that was deleted: its pod, which was told to end.
    pub fn of_an_earlier(approval: Approving) -> Self {
        let mut left = Self::of_another(approval);
        left.job.name = "infra-earlier".to_owned();
        left.job.uid = "earlier".to_owned();
        let running = Step { kind: StepKind::Apply, state: StepState::Running };
        Self { gone: true, alive: true, steps: vec![running], ..left }
    }

    /// Whether something of it runs, or may run without anything that we do.
    pub fn goes_on(&self) -> bool {
        let is_back = self.job.withdrawn && self.job.pods.at_rest;
        self.alive || (!self.gone && self.job.marked && self.job.end.is_none() && !is_back)
    }

    /// Whether its pod is about to end.
    pub fn is_ending(&self) -> bool {
        self.alive && ((self.gone && !self.orphaned) || self.job.suspended || self.job.end.is_some())
    }

    pub fn runs(&self) -> bool {
        self.alive && !self.is_ending() && !self.stuck
    }

    /// Whether its commit is being fetched.
    pub fn is_fetching(&self) -> bool {
        self.runs() && self.steps.iter().all(|step| step.kind == StepKind::Source)
    }

    /// Its pod, if one was made and is left.
    fn pod(&self) -> Option<Pod> {
        let place = if self.alive { Place::Node } else { Place::Ended };
        let (job, name) = (self.job.uid.clone(), format!("pod of {}", self.job.uid));
        let is_there = !self.steps.is_empty() && (self.alive || !self.gone && !self.job.withdrawn);
        is_there.then(|| Pod { name, job, place, alive: self.alive, steps: self.steps.clone(), ..Pod::default() })
    }

    pub fn runs_image(&self, image: &str) -> bool {
        self.image == image
    }

    pub fn changed(&mut self) {
        let version: u32 = self.job.version.parse().unwrap();
        self.job.version = (version + 1).to_string();
    }
}

/// What the watch of Jobs is about to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sight {
    Seen(Box<Job>),
    Gone(String),
    Pod(Box<Pod>),
    PodGone(String),
}

impl Sight {
    /// Of which object it is; what a pod went through is shown whole.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Seen(job) => Some(&job.name),
            Self::Gone(name) => Some(name),
            Self::Pod(_) | Self::PodGone(_) => None,
        }
    }

    pub fn event(self) -> Event {
        match self {
            Self::Seen(job) => Event::JobSeen(job),
            Self::Gone(name) => Event::JobGone(name),
            Self::Pod(pod) => Event::PodSeen(pod),
            Self::PodGone(name) => Event::PodGone(name),
        }
    }
}

pub fn step(kind: StepKind, code: i32, said: &str) -> Step {
    Step { kind, state: StepState::Ended(code, String::new(), said.to_owned()) }
}

impl State {
    /// Does what is asked, and says how that went. `by`: whose answer shows it what it did.
    pub fn perform(&mut self, world: &World, effect: &Effect, by: Option<usize>) -> Option<Event> {
        Some(match effect {
            Effect::Object(Own::Store(..)) if self.object.leaving.gone => {
                Event::Object(Life::StoreFailed("it does not exist any more".to_owned()))
            }
            Effect::Object(Own::Store(status, over)) => {
                if *over != self.object.version.to_string() && world.mutant != Mutant::NoCompareAndSet {
                    return Some(Event::Object(Life::Conflicted(Box::new(world.object(&self.object)))));
                }
                self.judge_needless(world, status);
                self.judge_outputs(world, status);
                self.lock.judge_asked(status);
                let before = self.owing(world);
                self.past.judge_stored(self.now, &before, status, &self.jobs);
                self.object.status = status.as_ref().clone();
                self.object.version += 1;
                self.object.writer = by;
                Event::Object(Life::Stored { version: self.object.version.to_string(), whole: true })
            }
            Effect::Object(Own::Look) => Event::Object(self.sight(world)),
            Effect::Resolve(_) => Event::Resolved(Found { revision: self.wanted(world), name: "main".to_owned() }),
            Effect::Compare(question) => world.compare(question),
            Effect::WatchJobs(wanted) => {
                let worker = &mut self.workers[by?];
                (worker.watches, worker.queue) = (*wanted, Vec::new());
                if !wanted {
                    return None;
                }
                let all = self.jobs.iter().filter(|truth| !truth.gone && !truth.foreign);
                Event::JobsListed(all.map(|truth| truth.job.clone()).collect())
            }
            Effect::Make(order) => self.make(world, order, by),
            Effect::Start(job) => self.start(world, job, by),
            Effect::Withdraw(job) => self.withdraw(world, job, by),
            Effect::LookAtJob(name) => match self.job(name).map(|index| &self.jobs[index]) {
                Some(truth) if truth.foreign => Event::JobLookFailed(name.clone(), "it is no Job of ours".to_owned()),
                found => Event::JobLooked(name.clone(), found.map(|truth| Box::new(truth.job.clone()))),
            },
            Effect::ReadPods(_, uid) => Event::PodsRead(uid.clone(), self.pods(world, uid)),
            Effect::Remove(name, uid) => {
                let found = self.jobs.iter().position(|truth| !truth.gone && truth.job.uid == *uid);
                if let Some(index) = found {
                    self.past.judge_removed(&self.jobs[index].job, self.jobs[index].foreign);
                    self.jobs[index].gone = true;
                    self.publish(world, index, by);
                }
                Event::Removed(name.clone())
            }
            Effect::Hold(held) => {
                let uid = by.map(|worker| self.workers[worker].machine.object().uid.clone());
                let uid = uid.unwrap_or_else(|| self.object.leaving.uid());
                self.hold(world, &uid, *held)
            }
            Effect::Report(saying) => self.hear(saying),
            Effect::Object(Own::Tell(notice)) => {
                self.past.told(notice);
                Event::Object(Life::Told(notice.id.clone()))
            }
            Effect::Ask(Ask::Calendar(topic, ..)) => {
                self.workers[by?].open = self.open;
                let words = "the window is shut".to_owned();
                Event::Answered(Answer::CalendarRead(*topic, Opening { open: self.open, changes_after: None, words }))
            }
            Effect::Ask(Ask::Verdict(..)) | Effect::SeeNeeds(_) | Effect::Object(Own::End) => return None,
        })
    }

    fn job(&self, name: &str) -> Option<usize> {
        self.jobs.iter().position(|truth| truth.job.name == name && !truth.gone)
    }

    fn pods(&self, world: &World, uid: &str) -> Vec<Pod> {
        let pod = self.jobs.iter().find(|truth| truth.job.uid == uid).and_then(Truth::pod);
        let unread = world.mutant == Mutant::PodsUnread;
        let shown = |pod: Pod| if unread { Pod { alive: false, place: Place::Ended, ..pod } } else { pod };
        pod.map(shown).into_iter().collect()
    }

    /// What a watch of pods begins with.
    pub fn listed(&self, world: &World) -> Event {
        let all = self.jobs.iter().filter(|_| world.shows_pods()).filter_map(Truth::pod);
        Event::PodsListed(all.collect())
    }

    fn make(&mut self, world: &World, order: &Order, by: Option<usize>) -> Event {
        let same = |truth: &Truth| {
            let (known, asked) = (truth.job.attempt, order.attempt);
            let seqless = world.mutant == Mutant::NameWithoutSeq
                && truth.job.revision == order.revision
                && (known.action, known.number) == (asked.action, asked.number);
            !truth.gone && (truth.job.name == order.name || seqless)
        };
        let found = self.jobs.iter().position(same);
        if found.is_some_and(|index| self.jobs[index].foreign) {
            return Event::Made(order.name.clone(), Made::Taken);
        }
        let index = found.unwrap_or_else(|| self.add(world, order));
        let job = Job { name: order.name.clone(), ..self.jobs[index].job.clone() };
        self.past.judge_made(order, &job);
        if found.is_none() {
            self.publish(world, index, by);
        }
        Event::Made(order.name.clone(), Made::Ours(Box::new(job)))
    }

    fn add(&mut self, world: &World, order: &Order) -> usize {
        let before = self.jobs.iter().filter(|truth| truth.job.name == order.name).count();
        let runs = world.mutant == Mutant::MadeRunning;
        let job = Job {
            name: order.name.clone(),
            uid: format!("{}/{before}", order.name),
            version: "1".to_owned(),
            owner: Some(order.uid.clone()),
            attempt: order.attempt,
            revision: order.revision.clone(),
            marked: false,
            withdrawn: false,
            suspended: !runs,
            deleting: false,
            pods: Pods { active: u32::from(runs), ..Pods::default() },
            end: None,
        };
        let fingerprint = order.fingerprint.clone().filter(|_| world.mutant != Mutant::NoFingerprint);
        let image = order.runner.image.clone();
        let unlock = order.unlock.as_ref().map(|id| id.as_str().to_owned());
        // Of an owner that has gone, Kubernetes removes it.
        let gone = self.object.leaving.gone || self.object.leaving.uid() != order.uid;
        self.jobs.push(Truth { fingerprint, unlock, gone, ..Truth::new(job, image) });
        self.jobs.len() - 1
    }

    fn start(&mut self, world: &World, seen: &Job, by: Option<usize>) -> Event {
        let same = |truth: &Truth| {
            let fresh = truth.job.uid == seen.uid && truth.job.version == seen.version;
            !truth.gone && truth.job.name == seen.name && (fresh || world.mutant == Mutant::StartedUnseen)
        };
        let Some(index) = self.jobs.iter().position(same) else {
            return Event::StartAnswered(seen.name.clone(), Start::Refused);
        };
        let truth = &self.jobs[index];
        self.past.judge_started(&truth.job, &self.jobs, world.approval);
        self.past.judge_runner(&truth.job, &truth.image, truth.foreign, world.approval);
        let truth = &mut self.jobs[index];
        truth.changed();
        (truth.job.marked, truth.job.suspended) = (true, false);
        if truth.job.end.is_none() {
            truth.job.pods.active = 1;
            truth.alive = true;
            let begun = Step { kind: StepKind::Source, state: StepState::Running };
            truth.steps = vec![begun];
        }
        let job = truth.job.clone();
        self.publish(world, index, by);
        self.publish_pod(world, index);
        Event::StartAnswered(seen.name.clone(), Start::Done(Box::new(job)))
    }

    fn withdraw(&mut self, world: &World, seen: &Job, by: Option<usize>) -> Event {
        let same = |truth: &Truth| !truth.gone && truth.job.uid == seen.uid && truth.job.version == seen.version;
        let Some(index) = self.jobs.iter().position(same) else {
            return Event::WithdrawAnswered(seen.name.clone(), Start::Refused);
        };
        let truth = &mut self.jobs[index];
        truth.changed();
        (truth.job.withdrawn, truth.job.suspended) = (true, true);
        // One that was never started makes no pod, and its controller says so.
        let (terminating, at_rest) = if truth.job.marked { (1, false) } else { (0, true) };
        truth.job.pods = Pods { terminating, at_rest, ..Pods::default() };
        let job = truth.job.clone();
        self.publish(world, index, by);
        Event::WithdrawAnswered(seen.name.clone(), Start::Done(Box::new(job)))
    }

    /// The image of its `apply` cannot be pulled, or by now it can: then the apply begins.
    pub fn stick(&mut self, world: &World, index: usize, stuck: bool) {
        let truth = &mut self.jobs[index];
        truth.stuck = stuck;
        let state = if stuck { StepState::Waiting } else { StepState::Running };
        truth.steps = vec![step(StepKind::Source, 0, ""), Step { kind: StepKind::Apply, state }];
        if !stuck {
            let seq = truth.job.attempt.seq;
            self.past.begin(seq);
        }
        self.publish_pod(world, index);
    }

    /// Every watch is about to show the pod of this Job, or that it is gone.
    pub fn publish_pod(&mut self, world: &World, index: usize) {
        if !world.shows_pods() {
            return;
        }
        let truth = &self.jobs[index];
        let sight = match truth.pod() {
            Some(pod) => Sight::Pod(Box::new(pod)),
            None => Sight::PodGone(format!("pod of {}", truth.job.uid)),
        };
        self.workers.iter_mut().filter(|worker| worker.watches).for_each(|worker| worker.queue.push(sight.clone()));
    }

    /// Every watch is about to show this Job. One that does not lag leaves out what its own worker was answered.
    pub fn publish(&mut self, world: &World, index: usize, by: Option<usize>) {
        let truth = &self.jobs[index];
        if truth.foreign {
            return;
        }
        let sight =
            if truth.gone { Sight::Gone(truth.job.name.clone()) } else { Sight::Seen(Box::new(truth.job.clone())) };
        for (number, worker) in self.workers.iter_mut().enumerate().filter(|(_, worker)| worker.watches) {
            if !world.lags {
                worker.queue.retain(|queued| queued.name().is_none() || queued.name() != sight.name());
            }
            if world.lags || by != Some(number) {
                worker.queue.push(sight.clone());
            }
        }
    }

    /// A person deletes a Job.
    pub fn delete(&mut self, world: &World, index: usize) {
        let truth = &mut self.jobs[index];
        truth.gone = true;
        // Such a plan is made again by itself.
        let is_free = matches!(truth.job.attempt.action, Action::Drift | Action::DestroyPlan);
        let (seq, revision) = (truth.job.attempt.seq, truth.job.revision.clone());
        if truth.job.marked && truth.job.end.is_none() && !truth.stuck && !is_free {
            self.past.hold(seq);
        }
        self.note_end(world, &revision, false);
        self.publish(world, index, None);
    }

    /// A person deletes a Job and leaves its pod.
    pub fn orphan(&mut self, world: &World, index: usize) {
        self.jobs[index].orphaned = true;
        self.delete(world, index);
    }

    /// A person suspends a Job.
    pub fn suspend(&mut self, world: &World, index: usize) {
        let truth = &mut self.jobs[index];
        truth.changed();
        truth.job.suspended = true;
        truth.job.pods = Pods { terminating: 1, ..Pods::default() };
        self.publish(world, index, None);
    }

    fn wanted(&self, world: &World) -> kernel::id::CommitId {
        revision(world.head[self.head])
    }
}

/// Whether a machine that wants to be woken at this time is woken later than now.
pub fn is_ahead(deadline: Option<Timestamp>, now: Timestamp) -> bool {
    deadline.is_none_or(|deadline| deadline > now)
}
