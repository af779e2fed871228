//! A step that fails for a lock of the state says who holds it, as far as that is seen.

use super::*;
use crate::repo::lock::Lock;

impl Stage {
    /// Its Job fails in `plan`, where this holder's lock is in the way.
    fn meets_the_lock_of(&mut self, who: &str) {
        self.meets(StepKind::Plan, "a-1", who);
    }

    /// Its Job fails in this step, where this lock of this holder's is in the way.
    pub(super) fn meets(&mut self, step: StepKind, id: &str, who: &str) {
        let lock = Lock::new(Some(id), Some(who), Some("2026-11-26 05:00:01.1 +0000 UTC"));
        self.ends_with(&[(step, StepState::Locked(1, "Error".to_owned(), lock))]);
    }

    /// Its Job fails, and these steps have got so far; `apply` waits unless it is among them.
    pub(super) fn ends_with(&mut self, steps: &[(StepKind, StepState)]) {
        let job = self.job();
        let mut steps: Vec<Step> =
            steps.iter().map(|(kind, state)| Step { kind: *kind, state: state.clone() }).collect();
        if steps.iter().all(|step| step.kind != StepKind::Apply) {
            steps.push(Step { kind: StepKind::Apply, state: StepState::Waiting });
        }
        let pod = Pod { name: "pod".to_owned(), job: job.uid.clone(), place: Place::Ended, steps, ..Pod::default() };
        self.pods.insert(job.uid.clone(), vec![pod]);
        let end = Some(End::Failed("PodFailurePolicy".to_owned(), String::new()));
        let ended = Job { end, pods: Pods { ended: 1, ..Pods::default() }, version: self.next_version(), ..job };
        self.jobs.insert(ended.name.clone(), ended.clone());
        self.feed(Event::JobSeen(Box::new(ended)));
        self.pass(Duration::from_secs(2));
    }
}

/// A run whose first attempt failed, and whose second one runs; with the name of the first one's Job.
fn tried_again() -> (Stage, String) {
    let mut stage = staged(Approving::Auto);
    let first = stage.job().name;
    stage.fails(StepKind::Source, 1, "no route");
    stage.pass(Duration::from_mins(1));
    assert_ne!(stage.job().name, first);
    (stage, first)
}

#[test]
fn the_lock_of_an_own_job_that_has_ended_is_told_from_that_of_another_program() {
    let (mut own, first) = tried_again();
    own.meets_the_lock_of(&format!("root@{first}-x7k2p"));
    let message = &own.run().message;
    let said = format!("step plan ended with code 1: root@{first}-x7k2p holds lock a-1 of the state");
    assert!(message.starts_with(&said), "{message}");
    assert!(message.contains(&format!("a pod of Job {first}, which has ended; ")), "{message}");
    assert!(
        message.contains("allclear repo unlock platform/infra. Nothing was applied; it is tried again in"),
        "{message}"
    );
    let (mut other, _) = tried_again();
    other.meets_the_lock_of("ann@laptop-2");
    let message = &other.run().message;
    assert!(message.contains("ann@laptop-2 holds lock a-1 of the state since 2026-11-26 05:00:01 UTC; "), "{message}");
    assert!(!message.contains("a pod of Job"), "{message}");
    assert_eq!((own.run().phase, other.run().phase), (Phase::Waiting, Phase::Waiting));
}

#[test]
fn an_own_job_is_known_by_its_name_after_it_is_gone_and_another_repos_is_not() {
    let (mut own, first) = tried_again();
    own.jobs.remove(&first);
    own.feed(Event::JobGone(first.clone()));
    own.meets_the_lock_of(&format!("root@{first}-x7k2p"));
    let message = &own.run().message;
    assert!(message.contains(&format!("a pod of Job {first} of this Repo, which is gone; ")), "{message}");
    let (mut other, _) = tried_again();
    let run = other.run().attempt;
    let theirs = job::name(&RepoId::new("platform", "infra"), "uid-2", run);
    other.meets_the_lock_of(&format!("root@{theirs}-x7k2p"));
    assert!(!other.run().message.contains("a pod of Job"), "{}", other.run().message);
}

#[test]
fn the_lock_of_a_job_that_has_not_ended_is_waited_for() {
    let (mut stage, first) = tried_again();
    let running = Job {
        end: None,
        pods: Pods { active: 1, ..Pods::default() },
        version: stage.next_version(),
        ..stage.jobs[&first].clone()
    };
    let running =
        Job { name: "infra-000000000000".to_owned(), uid: "job-of-another".to_owned(), owner: None, ..running };
    stage.feed(Event::JobSeen(Box::new(running)));
    stage.meets_the_lock_of("root@infra-000000000000-x7k2p");
    let message = &stage.run().message;
    assert!(
        message.contains("a pod of Job infra-000000000000, which has not ended; runner.lockTimeout waits"),
        "{message}"
    );
    assert!(!message.contains("unlock"), "{message}");
    assert_eq!(stage.stored.status.lock, None, "what is waited for is no question");
}
