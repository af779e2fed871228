//! Stories of one Repo, with an API server that keeps its object and its Jobs.

mod again;
mod concern;
mod destroy;
mod drift;
mod faults;
mod lock;
mod needs;
mod only_plan;
mod outputs;
mod report;
mod stuck;
mod unlock;
mod words;
mod yes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;
use crate::asked::Opening;
use crate::gates::Freeze;
use crate::kept::{Answers, Finalizers};
use crate::owned::{Effect as Own, Event as Life};
use crate::repo::job::{End, PLAN_DIFFERS, Place, Pods, Step, StepKind, StepState};
use crate::repo::plan::{Message, Planned};
use crate::repo::spec::{Approving, Gates, Keep, Preset, Retry, Runner, Source, Steps, Wanted};
use crate::repo::status::{Action, ConditionKind, Counts, Phase, Run};
use kernel::id::{RepoId, RunSeq};
use notices::notice::Kind;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const C: &str = "cccccccccccccccccccccccccccccccccccccccc";

fn spec(approval: Approving) -> Spec {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Spec {
        source: Source {
            url: "https://git.example.com/infra.git".to_owned(),
            wanted: Wanted::Head,
            ..Source::default()
        },
        interval: Duration::from_mins(1),
        approval,
        runner: Runner {
            preset: Preset::Command,
            image: "tool:1".to_owned(),
            steps: Steps { prepare: Vec::new(), plan: words(&["plan"]), apply: words(&["apply"]), ..Steps::default() },
            ..Runner::default()
        },
        workspace: None,
        retry: Retry { limit: 0, backoff: Duration::from_mins(1) },
        gates: Gates::default(),
        suspended: None,
        keep: Keep { succeeded: 1, failed: 1 },
        stalled_after: Duration::from_hours(1),
        drift: None,
        report: None,
    }
}

fn unresolved(why: &str) -> Unresolved {
    Unresolved { why: why.to_owned(), lasting: false, busy: false, rest: Duration::ZERO }
}

/// An API server, a git host, and one machine.
struct Stage {
    repo: Repo,
    now: Timestamp,
    stored: Object,
    jobs: BTreeMap<String, Job>,
    pods: BTreeMap<String, Vec<Pod>>,
    version: u64,
    head: Result<&'static str, &'static str>,
    /// What git says about two commits: those of one letter in it are alike, if there is an answer.
    alike: Result<&'static [&'static str], Unresolved>,
    compared: usize,
    told: Vec<(Kind, String)>,
    /// Names of Jobs, in the order in which they were started.
    started: Vec<String>,
    /// What each Job is for.
    actions: BTreeMap<String, Action>,
    /// The Jobs that were ordered to take a lock away, with its id.
    unlocks: Vec<(String, String)>,
    writes: usize,
    /// Effects that are kept back instead of carried out.
    held: Vec<&'static str>,
    kept: Vec<Effect>,
    watching: bool,
    /// Objects that a run may need, and how often they were read.
    needs: BTreeMap<TargetKey, Result<app::Look, String>>,
    reads: usize,
    /// What its forge answers, and has received.
    forge: Result<u32, Unresolved>,
    said: Vec<Saying>,
}

impl Stage {
    fn new(spec: Spec) -> Self {
        let stored = Object {
            id: RepoId::new("platform", "infra"),
            uid: "uid-1".to_owned(),
            generation: 1,
            version: "1".to_owned(),
            spec: Ok(spec),
            answers: Answers::default(),
            status: Status { observed_generation: -1, ..Status::default() },
            deleting: false,
            finalizers: Finalizers::default(),
        };
        Self {
            repo: Repo::new(1_000_000, stored.clone()),
            now: Timestamp::from_millis(0),
            stored,
            jobs: BTreeMap::new(),
            pods: BTreeMap::new(),
            version: 1,
            head: Ok(A),
            alike: Ok(&[]),
            compared: 0,
            told: Vec::new(),
            started: Vec::new(),
            actions: BTreeMap::new(),
            unlocks: Vec::new(),
            writes: 0,
            held: Vec::new(),
            kept: Vec::new(),
            watching: false,
            needs: BTreeMap::new(),
            reads: 0,
            forge: Ok(1),
            said: Vec::new(),
        }
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn feed(&mut self, event: Event) {
        let effects = self.repo.step(self.now, event);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            assert_eq!(self.repo.breaks(&effect), [], "{effect:?}");
            if self.held.contains(&effect.name()) {
                self.kept.push(effect);
                continue;
            }
            let is_listing = effect == Effect::WatchJobs(true);
            let is_held = matches!(effect, Effect::Hold(_));
            if let Some(answer) = self.answer(effect) {
                self.feed(answer);
            }
            if is_listing {
                self.feed(Event::PodsListed(self.pods.values().flatten().cloned().collect()));
            }
            if is_held {
                self.feed(self.shown());
            }
        }
    }

    fn answer(&mut self, effect: Effect) -> Option<Event> {
        Some(match effect {
            Effect::Object(Own::Store(status, version)) => {
                if version != self.stored.version {
                    return Some(Event::Object(Life::Conflicted(Box::new(self.stored.clone()))));
                }
                self.writes += 1;
                self.stored.status = *status;
                self.stored.version = self.next_version();
                Event::Object(Life::Stored { version: self.stored.version.clone(), whole: true })
            }
            Effect::Object(Own::Look) => Event::Object(Life::Looked(Some(Box::new(self.stored.clone())))),
            Effect::Resolve(_) => match self.head {
                Ok(head) => Event::Resolved(found(head)),
                Err(why) => Event::ResolveFailed(unresolved(why)),
            },
            Effect::Compare(question) => {
                self.compared += 1;
                let pair = [question.base.as_str(), question.head.as_str()];
                let alike = self.alike.clone().map(|alike| pair.iter().all(|one| alike.contains(one)));
                Event::Compared(question, alike)
            }
            Effect::WatchJobs(wanted) => {
                self.watching = wanted;
                return wanted.then(|| Event::JobsListed(self.jobs.values().cloned().collect()));
            }
            Effect::Make(order) => {
                let job = self.jobs.get(&order.name).cloned().unwrap_or_else(|| self.make(&order));
                self.jobs.insert(order.name.clone(), job.clone());
                Event::Made(order.name.clone(), Made::Ours(Box::new(job)))
            }
            Effect::Start(job) => {
                let pods = Pods { active: 1, ..Pods::default() };
                let start = self.patch(&job, |known| Job { marked: true, suspended: false, pods, ..known });
                if matches!(start, Start::Done(_)) {
                    self.started.push(job.name.clone());
                    self.actions.insert(job.name.clone(), job.attempt.action);
                }
                Event::StartAnswered(job.name, start)
            }
            Effect::Withdraw(job) => self.withdraw(job),
            Effect::LookAtJob(name) => {
                let job = self.jobs.get(&name).cloned().map(Box::new);
                Event::JobLooked(name, job)
            }
            Effect::ReadPods(_, uid) => {
                let pods = self.pods.get(&uid).cloned().unwrap_or_default();
                Event::PodsRead(uid, pods)
            }
            Effect::Remove(name, uid) => {
                self.jobs.retain(|_, job| job.uid != uid);
                Event::Removed(name)
            }
            Effect::Object(Own::Tell(notice)) => {
                self.told.push((notice.kind, notice.message.clone()));
                Event::Object(Life::Told(notice.id))
            }
            Effect::Hold(held) => self.hold(held),
            Effect::Ask(Ask::Calendar(topic, ..)) => Event::Answered(Answer::CalendarRead(
                topic,
                Opening { open: false, changes_after: None, words: "a freeze: fair".to_owned() },
            )),
            Effect::SeeNeeds(needs) => self.see(needs),
            Effect::Report(saying) => self.hear(saying),
            Effect::Ask(Ask::Verdict(..)) | Effect::Object(Own::End) => return None,
        })
    }

    fn withdraw(&mut self, job: Box<Job>) -> Event {
        let withdrawn = self.patch(&job, |known| {
            // One that was never started makes no pod.
            let pods = Pods { at_rest: known.pods.at_rest || !known.marked, ..known.pods };
            Job { withdrawn: true, suspended: true, pods, ..known }
        });
        Event::WithdrawAnswered(job.name.clone(), withdrawn)
    }

    /// Changes a Job, if it is still what was seen.
    fn patch(&mut self, seen: &Job, change: impl FnOnce(Job) -> Job) -> Start {
        let version = self.next_version();
        match self.jobs.get_mut(&seen.name) {
            Some(known) if known.version == seen.version && known.uid == seen.uid => {
                *known = Job { version, ..change(known.clone()) };
                Start::Done(Box::new(known.clone()))
            }
            Some(_) | None => Start::Refused,
        }
    }

    fn see(&mut self, needs: Vec<TargetKey>) -> Event {
        self.reads += 1;
        let read = |need: TargetKey| {
            let found = self.needs.get(&need).cloned().transpose();
            (need, found.map_err(|why| PortError::denied("failed to read", why)))
        };
        Event::NeedsSeen(needs.into_iter().map(read).collect())
    }

    fn make(&mut self, order: &Order) -> Job {
        self.unlocks.extend(order.unlock.as_ref().map(|id| (order.name.clone(), id.to_string())));
        Job {
            name: order.name.clone(),
            uid: format!("job-{}", self.version),
            version: self.next_version(),
            owner: Some(order.uid.clone()),
            attempt: order.attempt,
            revision: order.revision.clone(),
            marked: false,
            withdrawn: false,
            suspended: true,
            deleting: false,
            pods: Pods::default(),
            end: None,
        }
    }

    /// Lets time pass, with everything that falls due in it.
    fn pass(&mut self, time: Duration) {
        let end = self.now.after(time);
        let effects = self.repo.tick(self.now);
        self.perform(effects);
        while let Some(at) = self.repo.next_deadline().filter(|at| *at <= end) {
            assert!(at >= self.now || self.repo.is_due(self.now), "a deadline in the past");
            self.now = self.now.max(at);
            let effects = self.repo.tick(self.now);
            self.perform(effects);
        }
        self.now = end;
    }

    fn run(&self) -> &Run {
        self.stored.status.run.as_ref().expect("a run")
    }

    fn job(&self) -> Job {
        let present = self.stored.status.present().expect("a run");
        let name = &present.job.as_ref().expect("a Job").name;
        self.jobs.get(name).expect("the Job").clone()
    }

    /// The present Job ends: with these ends of its containers.
    fn job_ends(&mut self, end: End, steps: &[(StepKind, i32, &str)]) {
        let steps = steps.iter().map(|(kind, code, said)| Step {
            kind: *kind,
            state: StepState::Ended(*code, String::new(), (*said).to_owned()),
        });
        let job = self.job();
        let mut steps: Vec<Step> = steps.collect();
        if job.attempt.action == Action::Apply && !steps.iter().any(|step| step.kind == StepKind::Apply) {
            steps.push(Step { kind: StepKind::Apply, state: StepState::Waiting });
        }
        let pod = Pod { name: "pod".to_owned(), job: job.uid.clone(), place: Place::Ended, steps, ..Pod::default() };
        self.pods.insert(job.uid.clone(), vec![pod]);
        let pods = Pods { ended: 1, ..Pods::default() };
        let ended = Job { end: Some(end), pods, version: self.next_version(), ..job };
        self.jobs.insert(ended.name.clone(), ended.clone());
        self.feed(Event::JobSeen(Box::new(ended)));
    }

    fn applies(&mut self) {
        self.job_ends(End::Complete, &[(StepKind::Apply, 0, "")]);
    }

    fn fails(&mut self, step: StepKind, code: i32, said: &str) {
        self.job_ends(End::Failed("PodFailurePolicy".to_owned(), String::new()), &[(step, code, said)]);
    }

    fn plans(&mut self, fingerprint: &str) {
        let said = said(&Message::Planned(planned(fingerprint)));
        self.job_ends(End::Complete, &[(StepKind::Report, 0, &said)]);
    }

    fn push(&mut self, head: &'static str) {
        self.head = Ok(head);
        self.pass(Duration::from_mins(2));
    }

    /// A person changes the object.
    fn edit(&mut self, change: impl FnOnce(&mut Object)) {
        change(&mut self.stored);
        self.stored.version = self.next_version();
        self.feed(Event::Object(Life::Seen(Box::new(self.stored.clone()))));
    }

    fn approve(&mut self, ticket: &str) {
        let ticket = ticket.to_owned();
        self.edit(|object| object.answers.approve = Some(ticket));
    }

    fn ticket(&self) -> String {
        self.stored.status.waiting.as_ref().expect("a question").ticket.clone()
    }

    /// The process dies and another one takes over.
    fn crash(&mut self) {
        self.kept.clear();
        self.repo = Repo::new(1_000_000, self.stored.clone());
        self.watching = false;
        let effects = self.repo.tick(self.now);
        self.perform(effects);
        self.pass(Duration::from_mins(1));
    }

    fn told(&self) -> Vec<&'static str> {
        self.told.iter().map(|(kind, _)| kind.name()).collect()
    }

    fn ready(&self) -> (Option<bool>, &str) {
        let ready = self.stored.status.conditions.iter().find(|one| one.kind == ConditionKind::Ready).expect("Ready");
        (ready.holds, ready.reason.as_str())
    }
}

fn found(revision: &str) -> Found {
    Found { revision: revision.parse().expect("a commit's id"), name: "refs/heads/main".to_owned() }
}

fn planned(fingerprint: &str) -> Planned {
    let counts = Some(Counts { add: 2, change: 1, destroy: 0 });
    Planned { fingerprint: fingerprint.repeat(64), counts, empty: fingerprint == "0" }
}

fn said(message: &Message) -> String {
    message.to_json().expect("a message")
}

fn staged(approval: Approving) -> Stage {
    let mut stage = Stage::new(spec(approval));
    stage.pass(Duration::from_secs(5));
    stage
}

#[test]
fn the_first_head_is_run_at_once_and_each_new_commit_after_it_once() {
    let mut stage = staged(Approving::Auto);
    assert_eq!((stage.run().phase, stage.run().revision.as_str()), (Phase::Started, A));
    stage.applies();
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.run().phase, stage.ready()), (Phase::Succeeded, (Some(true), "Applied")));
    let writes = stage.writes;
    stage.pass(Duration::from_hours(2));
    assert_eq!((stage.started.len(), stage.writes), (1, writes), "looking is not written");
    assert!(!stage.watching, "nothing is watched at rest");
    stage.push(B);
    stage.applies();
    stage.push(A);
    stage.applies();
    stage.pass(Duration::from_mins(5));
    let distinct: BTreeSet<_> = stage.started.iter().collect();
    assert_eq!((stage.started.len(), distinct.len()), (3, 3), "A, B and A again are three runs");
    assert_eq!(stage.told(), ["run.started", "run.completed"].repeat(3));
}

// Faults: RF6
#[test]
fn while_an_apply_runs_the_newest_commit_waits_and_the_others_are_named() {
    let mut stage = staged(Approving::Auto);
    stage.push(B);
    stage.push(C);
    assert_eq!(stage.started.len(), 1);
    let next = stage.stored.status.next.clone().expect("next");
    assert_eq!((next.revision.as_str(), next.skipped), (C, vec![B.parse().expect("a commit's id")]));
    stage.fails(StepKind::Apply, 1, "boom");
    stage.pass(Duration::from_secs(5));
    assert_eq!(
        (stage.run().revision.as_str(), stage.run().phase),
        (C, Phase::Started),
        "the next commit is run all the same"
    );
    assert_eq!(stage.run().skipped, [B.parse().expect("a commit's id")]);
    assert_eq!(stage.stored.status.next, None);
    assert_eq!(stage.told(), ["run.started", "run.failed", "run.started"]);
}

#[test]
fn an_apply_that_failed_is_repeated_only_after_a_yes() {
    let mut stage = staged(Approving::Auto);
    stage.fails(StepKind::Apply, 1, "boom");
    stage.pass(Duration::from_hours(3));
    assert_eq!((stage.started.len(), stage.ready()), (1, (Some(false), "RunFailed")));
    assert!(stage.run().message.contains("step apply ended with code 1: boom"), "{}", stage.run().message);
    stage.approve("000000000000");
    assert_eq!(stage.started.len(), 1, "another ticket is nothing");
    let ticket = stage.ticket();
    stage.approve(&ticket);
    assert_eq!(stage.started.len(), 2);
    stage.fails(StepKind::Apply, 1, "boom");
    stage.pass(Duration::from_secs(5));
    assert_ne!(stage.ticket(), ticket, "one yes is one attempt");
    assert_eq!(stage.started.len(), 2);
}

#[test]
fn what_fails_before_the_apply_is_repeated_by_itself_and_later_each_time() {
    let mut stage = staged(Approving::Auto);
    stage.fails(StepKind::Source, 1, "no route");
    stage.pass(Duration::from_secs(29));
    assert_eq!((stage.started.len(), stage.run().phase), (1, Phase::Waiting));
    stage.pass(Duration::from_secs(3));
    assert_eq!(stage.started.len(), 2);
    stage.fails(StepKind::Source, 1, "no route");
    stage.pass(Duration::from_secs(58));
    assert_eq!(stage.started.len(), 2);
    stage.pass(Duration::from_secs(5));
    assert_eq!(
        (stage.started.len(), stage.told()),
        (3, vec!["run.started", "run.failed", "run.started", "run.started"])
    );
    stage.fails(StepKind::Source, 1, "no route");
    stage.push(B);
    assert_eq!((stage.run().revision.as_str(), stage.run().skipped.len()), (B, 1), "a newer head does not wait for it");
}

#[test]
fn retry_repeats_an_apply_so_often_and_no_more() {
    let mut spec = spec(Approving::Auto);
    spec.retry.limit = 1;
    let mut stage = Stage::new(spec);
    stage.pass(Duration::from_secs(5));
    stage.fails(StepKind::Apply, 1, "");
    stage.pass(Duration::from_secs(62));
    assert_eq!(stage.started.len(), 2);
    stage.fails(StepKind::Apply, 1, "");
    stage.pass(Duration::from_hours(5));
    assert_eq!((stage.started.len(), stage.run().phase), (2, Phase::Failed));
}
