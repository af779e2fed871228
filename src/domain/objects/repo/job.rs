//! A Job as a run knows it: what is ordered, what is seen of it, and its name.
//!
//! Not for what a Job consists of; that is the adapter's one template.

use crate::repo::lock::{Lock, LockId};
use crate::repo::spec::{Runner, Source};
use crate::repo::status::Attempt;
use kernel::id::{CommitId, RepoId, digest};

/// Hexadecimal digits of the hash in a Job's name.
const HASH_DIGITS: usize = 12;

/// The longest value of a label (<https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/>).
const LABEL_CHARS_MAX: usize = 63;

/// A Job's name is a label of its pods; this is what the Repo's name may take of it.
const PREFIX_CHARS_MAX: usize = LABEL_CHARS_MAX - HASH_DIGITS - 1;

/// The name of the Job of this attempt (RP-2). It holds no commit: A, B and A again are three runs.
pub fn name(repo: &RepoId, uid: &str, attempt: Attempt) -> String {
    let Attempt { seq, action, number } = attempt;
    let (seq, number) = (seq.to_string(), number.to_string());
    let hash = digest("job", [uid, seq.as_str(), action.name(), number.as_str()]);
    let prefix: String = repo.name.replace('.', "-").chars().take(PREFIX_CHARS_MAX).collect();
    format!("{}-{}", prefix.trim_end_matches('-'), hash.chars().take(HASH_DIGITS).collect::<String>())
}

/// The label of the Jobs and pods of every Repo of this name, also of one that was deleted and made again.
pub fn label(repo: &RepoId) -> String {
    if repo.name.len() <= LABEL_CHARS_MAX {
        return repo.name.clone();
    }
    let hash = digest("repo", [repo.name.as_str()]);
    let prefix: String = repo.name.chars().take(PREFIX_CHARS_MAX).collect();
    format!("{prefix}-{}", hash.chars().take(HASH_DIGITS).collect::<String>())
}

/// The command that shows the log of a step of a Job.
pub fn logs(namespace: &str, job: &str, step: StepKind) -> String {
    format!("kubectl logs -n {namespace} job/{job} -c {}", step.name())
}

/// A Job that is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    pub name: String,
    pub repo: RepoId,
    pub uid: String,
    /// Which of its Jobs.
    pub attempt: Attempt,
    /// The commit that it fetches, and no other (RP-7).
    pub revision: CommitId,
    /// From where. The ref is where the commit is looked for if the server gives out none by its id.
    pub source: Source,
    pub runner: Runner,
    pub workspace: Option<String>,
    /// A plan is made, also before an apply.
    pub planned: bool,
    /// The approved fingerprint: an apply whose own plan has another one ends before it begins (RP-6).
    pub fingerprint: Option<String>,
    /// The lock of the state that it takes away first, to which a person said yes.
    pub unlock: Option<LockId>,
    /// The plan's message has the addresses of what would change.
    pub addresses: bool,
}

/// A Job of a Repo, as it was seen once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    pub name: String,
    pub uid: String,
    /// `metadata.resourceVersion`, against which it is started.
    pub version: String,
    /// The UID of its controller.
    pub owner: Option<String>,
    /// Which of the Repo's Jobs.
    pub attempt: Attempt,
    pub revision: CommitId,
    /// We have started it, or tried to: the mark is written with the start (RP-3).
    pub marked: bool,
    /// We have taken it back, or tried to: the mark is written with the suspension (decision 62).
    pub withdrawn: bool,
    /// It makes no pod.
    pub suspended: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// Its pods, by its own status.
    pub pods: Pods,
    /// It has ended, by its condition.
    pub end: Option<End>,
}

/// The numbers of a Job's pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pods {
    /// Pods that are not terminating.
    pub active: u32,
    /// Pods that are terminating.
    pub terminating: u32,
    /// Those that have ended.
    pub ended: u32,
    /// The controller knows that the Job is suspended: it makes no more.
    pub at_rest: bool,
}

/// How a Job ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// `Complete`.
    Complete,
    /// `Failed`: the condition's reason and message.
    Failed(String, String),
}

/// The outcome of making a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// It is there, suspended unless it was started before, and ours.
    Ours(Box<Job>),
    /// Another's Job has its name.
    Taken,
}

/// The outcome of starting or withdrawing a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// It is marked, and suspended no more, or again.
    Done(Box<Job>),
    /// It changed since it was seen, is another one, or is gone: nothing was written.
    Refused,
}

/// The visible state of a Job's pods. A guarded Job has one at most; a second one is the API server's, and is reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pod {
    pub name: String,
    /// The UID of its Job, which it names also when it has no owner any more.
    pub job: String,
    /// How far it is known to have come.
    pub place: Place,
    /// It has not ended: neither `Succeeded` nor `Failed`, or it is being deleted.
    pub alive: bool,
    /// Why it does not run, in words: the scheduler's, or a container's.
    pub waits: Option<String>,
    /// Why it was ended from outside: evicted, preempted, its node went.
    pub disrupted: Option<String>,
    /// Its containers, in the order in which they run.
    pub steps: Vec<Step>,
}

/// How far a pod is known to have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// It is bound to no node.
    #[default]
    Nowhere,
    /// It is bound to one, where it may run, whatever others say of it.
    Node,
    /// Its kubelet has said that it ended, and how.
    Ended,
}

/// A container of ours or of the user's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    pub kind: StepKind,
    /// How far it is.
    pub state: StepState,
}

/// The containers of a Job, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepKind {
    Source,
    /// The user's `prepare`.
    Prepare,
    /// Ends the Job if Terraform would lose its state with the pod.
    Backend,
    /// Takes the lock of the state away to which a person said yes.
    Unlock,
    /// The user's `plan`.
    Plan,
    /// Says what a plan would change.
    Report,
    /// Compares an apply's own plan with what was said yes to.
    Verify,
    /// The user's `apply`.
    Apply,
    /// The user's `output`: says what the outputs are.
    Output,
    /// Writes those that are named to their Secret.
    Publish,
}

impl StepKind {
    pub const ALL: [Self; 10] = [
        Self::Source,
        Self::Prepare,
        Self::Backend,
        Self::Unlock,
        Self::Plan,
        Self::Report,
        Self::Verify,
        Self::Apply,
        Self::Output,
        Self::Publish,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Prepare => "prepare",
            Self::Backend => "backend",
            Self::Unlock => "unlock",
            Self::Plan => "plan",
            Self::Report => "report",
            Self::Verify => "verify",
            Self::Apply => "apply",
            Self::Output => "output",
            Self::Publish => "publish",
        }
    }

    /// The step of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }
}

/// How far a container is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StepState {
    /// It has not begun.
    Waiting,
    Running,
    /// It ended with this code, this reason of the kubelet (`OOMKilled`), and what it wrote to its termination message.
    Ended(i32, String, String),
    /// It failed with this code and this reason, and its log says that another program holds the lock of the state.
    Locked(i32, String, Lock),
}

/// The code with which `verify` ends a Job whose plan is not the one that was said yes to.
pub const PLAN_DIFFERS: i32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::status::Action;
    use kernel::id::RunSeq;

    // Faults: RF14
    #[test]
    fn each_attempt_has_a_name_of_its_own_that_a_label_can_hold() {
        let repo = RepoId::new("platform", "infra");
        let attempt = |seq, action, number| Attempt { seq: RunSeq(seq), action, number };
        let of = |seq, action, number| name(&repo, "uid-1", attempt(seq, action, number));
        let names = [
            of(1, Action::Apply, 1),
            of(1, Action::Apply, 2),
            of(1, Action::Plan, 1),
            of(2, Action::Apply, 1),
            name(&repo, "uid-2", attempt(1, Action::Apply, 1)),
        ];
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(names.iter().all(|name| name.starts_with("infra-") && name.len() == "infra-".len() + 12), "{names:?}");
        // What another release has made is found by it, so it is the same in every release (RF14).
        assert_eq!(of(1, Action::Apply, 1), "infra-decb59371a6e");
        let long = name(&RepoId::new("platform", "a.b".repeat(60)), "uid-1", attempt(1, Action::Apply, 1));
        assert!(long.len() <= 63 && !long.contains('.') && !long.contains("--"), "{long}");
    }
}
