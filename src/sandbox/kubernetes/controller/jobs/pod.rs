//! One pod of a Job, as its kubelet sees it: init containers one after another, then the containers' only one, each ended once.
//!
//! Not for whether there is a pod; that is the Job controller's.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::Moment;
use super::script::{ContainerRun, End, Outcome, container_run};
use crate::kubernetes::object::{is_ending, items, number, text};

/// The exit codes of a program after SIGTERM and after SIGKILL.
const TERMINATED: i32 = 143;
const KILLED: i32 = 137;

/// What the kubelet knows of one pod.
#[derive(Debug)]
pub struct PodRun {
    job: String,
    containers: Vec<Container>,
    ending_since: Option<Duration>,
    /// It was ended from outside before its containers had.
    ended: bool,
}

#[derive(Debug)]
struct Container {
    spec: Value,
    init: bool,
    state: State,
    /// What the script says; `None`: it is to be asked.
    outcome: Option<Outcome>,
}

#[derive(Debug)]
enum State {
    Waiting(String, String),
    Running(Duration, String),
    Ended(End, String, String),
}

/// What a look at a pod came to.
#[derive(Debug, Default)]
pub struct Progress {
    /// Its status is another one.
    pub changed: bool,
    /// What the script is to be asked.
    pub question: Option<ContainerRun>,
    /// When there is something to do without anything changing.
    pub next: Option<Duration>,
}

impl PodRun {
    /// A pod of this Job that has a node.
    pub fn new(job: &str, pod: &Value) -> Self {
        let list = |name: &str| items(pod, name).iter().cloned();
        let waiting = || State::Waiting("PodInitializing".to_owned(), String::new());
        let container = |init| move |spec| Container { spec, init, state: waiting(), outcome: None };
        let containers = list("/spec/initContainers").map(container(true));
        let containers = containers.chain(list("/spec/containers").map(container(false))).collect();
        Self { job: job.to_owned(), containers, ending_since: None, ended: false }
    }

    /// The name of the container that runs.
    pub fn running(&self) -> Option<&str> {
        let running = self.containers.iter().find(|one| matches!(one.state, State::Running(..)))?;
        Some(text(&running.spec, "/name"))
    }

    /// Whether a container was started and has not ended, also if no client can see it yet.
    pub fn is_at_work(&mut self) -> bool {
        let outcome = self.current().and_then(|current| current.outcome.as_ref());
        outcome.is_some_and(|outcome| !matches!(outcome, Outcome::Waits(..)))
    }

    /// Decides what becomes of the container that is to start, or that runs.
    pub fn decide(&mut self, outcome: Outcome) {
        if let Some(current) = self.current() {
            current.outcome = Some(outcome);
        }
    }

    /// Lets the script decide anew about a container that has not started.
    pub fn ask_again(&mut self) {
        if let Some(current) = self.current().filter(|current| matches!(current.state, State::Waiting(..))) {
            current.outcome = None;
        }
    }

    /// Moves on by one state that a client can see. `gone` is how long its programs take to end after SIGTERM.
    pub fn advance(&mut self, pod: &Value, now: &Moment, stamp: &str, gone: Duration) -> Progress {
        let mut progress = Progress::default();
        if self.phase() == "Succeeded" || self.phase() == "Failed" {
            return progress;
        }
        if is_ending(pod) {
            let is_new = self.ending_since.is_none();
            let over_at = *self.ending_since.get_or_insert(now.elapsed) + gone;
            // Even without delays a client can see the pod end: it goes one step later.
            if is_new || over_at > now.elapsed {
                progress.next = Some(over_at);
            } else {
                let at_once = number(pod, "/metadata/deletionGracePeriodSeconds") == Some(0);
                self.kill(if at_once { KILLED } else { TERMINATED }, stamp);
                progress.changed = true;
            }
            return progress;
        }
        let job = self.job.clone();
        let Some(current) = self.current() else { return progress };
        let state = match (&current.state, &current.outcome) {
            (_, None) => {
                progress.question = Some(container_run(pod, &job, &current.spec));
                return progress;
            }
            (State::Waiting(reason, _), Some(Outcome::Waits(why, message))) if reason != why => {
                State::Waiting(why.clone(), message.clone())
            }
            (State::Waiting(..), Some(Outcome::Holds | Outcome::Ends(..))) => {
                progress.next = Some(now.elapsed);
                State::Running(now.elapsed, stamp.to_owned())
            }
            (State::Running(since, started), Some(Outcome::Ends(after, end))) => {
                if *since + *after > now.elapsed {
                    progress.next = Some(*since + *after);
                    return progress;
                }
                State::Ended(end.clone(), started.clone(), stamp.to_owned())
            }
            (State::Waiting(..) | State::Running(..) | State::Ended(..), Some(_)) => return progress,
        };
        current.state = state;
        progress.changed = true;
        progress
    }

    /// Ends what runs; what does not run never will.
    fn kill(&mut self, code: i32, stamp: &str) {
        self.ended = true;
        for container in &mut self.containers {
            if let State::Running(_, started) = &container.state {
                container.state = State::Ended(End::with(code), started.clone(), stamp.to_owned());
            }
        }
    }

    /// The first container that has not ended well; none if one has ended badly.
    fn current(&mut self) -> Option<&mut Container> {
        let first =
            self.containers.iter_mut().find(|one| !matches!(&one.state, State::Ended(end, ..) if end.code == 0))?;
        if matches!(first.state, State::Ended(..)) { None } else { Some(first) }
    }

    /// `status.phase`. A pod whose init containers run is still `Pending`.
    fn phase(&self) -> &'static str {
        let ended =
            |good: bool| move |one: &Container| matches!(&one.state, State::Ended(end, ..) if (end.code == 0) == good);
        if self.ended || self.containers.iter().any(ended(false)) {
            return "Failed";
        }
        if self.containers.iter().all(ended(true)) {
            return "Succeeded";
        }
        let begun = self.containers.iter().any(|one| !one.init && !matches!(one.state, State::Waiting(..)));
        if begun { "Running" } else { "Pending" }
    }

    /// Writes what the pod is doing into its status. A condition that says why it is ended from outside stays.
    pub fn show(&self, pod: &mut Value, stamp: &str) {
        let phase = self.phase();
        let conditions = items(pod, "/status/conditions").iter();
        let kept: Vec<Value> = conditions.filter(|one| text(one, "/type") == "DisruptionTarget").cloned().collect();
        let started = text(pod, "/status/startTime");
        let started = if started.is_empty() { stamp.to_owned() } else { started.to_owned() };
        let initialized =
            self.containers.iter().filter(|one| one.init).all(|one| matches!(one.state, State::Ended(..)));
        let conditions = [("PodScheduled", true), ("Initialized", initialized), ("Ready", phase == "Running")];
        let condition = |(kind, holds): (&str, bool)| {
            let status = if holds { "True" } else { "False" };
            json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": stamp})
        };
        let conditions: Vec<Value> = kept.into_iter().chain(conditions.map(condition)).collect();
        let of = |init| {
            self.containers.iter().filter(move |one| one.init == init).map(Container::status).collect::<Vec<_>>()
        };
        pod["spec"]["nodeName"] = json!("node-1");
        pod["status"] = json!({
            "phase": phase, "qosClass": "Burstable", "hostIP": "192.0.2.1", "startTime": started, "conditions": conditions,
            "initContainerStatuses": of(true), "containerStatuses": of(false),
        });
    }
}

impl Container {
    fn status(&self) -> Value {
        let state = match &self.state {
            State::Waiting(reason, message) if message.is_empty() => json!({"waiting": {"reason": reason}}),
            State::Waiting(reason, message) => json!({"waiting": {"reason": reason, "message": message}}),
            State::Running(_, started) => json!({"running": {"startedAt": started}}),
            State::Ended(end, started, finished) => {
                let mut ended = json!({
                    "exitCode": end.code, "reason": end.reason(), "startedAt": started, "finishedAt": finished,
                });
                if !end.message.is_empty() {
                    ended["message"] = json!(end.message);
                }
                json!({"terminated": ended})
            }
        };
        let running = matches!(self.state, State::Running(..));
        json!({
            "name": text(&self.spec, "/name"), "image": text(&self.spec, "/image"), "imageID": "", "ready": running,
            "started": running, "restartCount": 0, "state": state, "lastState": {},
        })
    }
}
