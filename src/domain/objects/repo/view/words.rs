//! The two sentences about a Repo: what it waits for, and what comes next. And what its spec says about runs, in words.

use crate::gates::{host, window};
use crate::repo::concern::under;
use crate::repo::show::{COMPARING, PRUNED};
use crate::repo::spec::{Approving, Object, OnDrift, Source, Spec, Wanted};
use crate::repo::status::{Condition, ConditionKind, Phase, Question, Run, Status};
use crate::repo::unlock;
use kernel::id::ObjectId;
use kernel::text;

/// Everything that sentences are made from.
pub(super) struct Scene<'a> {
    pub(super) object: &'a Object,
    pub(super) status: &'a Status,
}

impl Scene<'_> {
    /// The obstacle to applying the wanted commit.
    pub(super) fn waits(&self) -> Option<String> {
        if self.object.spec.is_err() {
            return Some("the spec cannot be used".to_owned());
        }
        let ready = self.condition(ConditionKind::Ready);
        if let Some(message) = self.pruned() {
            return Some(message.to_owned());
        }
        match self.status.newest() {
            _ if self.object.is_leaving() => ready.map(|ready| ready.message.clone()),
            Some(run) if run.is_open() && run.message.is_empty() => {
                Some("it was begun, and is being judged".to_owned())
            }
            Some(run) if run.is_open() => Some(run.message.clone()),
            _ => ready.filter(|ready| ready.holds != Some(true)).map(|ready| ready.message.clone()),
        }
    }

    /// The next step, or the remedy.
    pub(super) fn next(&self) -> String {
        let name = self.object.id.display_name();
        if self.object.is_leaving() {
            return self.after_deletion();
        }
        let Ok(spec) = &self.object.spec else {
            return "it goes on when the spec is mended; what runs is followed to its end".to_owned();
        };
        if self.pruned().is_some() {
            return format!("it goes on by itself after that; `allclear repo poke {name}` looks at once");
        }
        if let Some(waiting) = &self.status.waiting {
            return self.answer(waiting.question);
        }
        let phase = self.status.run.as_ref().map(|run| run.phase);
        let moves = !matches!(phase, Some(Phase::Starting | Phase::Started));
        if moves && spec.suspended.is_some() {
            return format!(
                "nothing new starts before it is resumed: `allclear repo resume {name}`, or `suspend: false` where its \
                 spec says it"
            );
        }
        if self.is_git_failing() {
            return format!(
                "mend what git says; it is asked again by itself, and at once by `allclear repo poke {name}`"
            );
        }
        match phase {
            None => "the first commit that is found is run".to_owned(),
            Some(Phase::Waiting) if self.is_resting() => format!("its next Job is made then{}", self.unlocking()),
            Some(Phase::Waiting) => format!("when that holds, its Job is made{}", self.unlocking()),
            Some(Phase::Starting) => "its Job is made, and then started".to_owned(),
            Some(Phase::Started) => self.after(spec),
            Some(Phase::Planned) if self.status.run.as_ref().is_some_and(Run::is_open) => {
                "a person is asked whether the plan may be applied".to_owned()
            }
            Some(Phase::Succeeded) if self.is_being_compared() => "if it does, it is run".to_owned(),
            Some(Phase::Succeeded) if let Some(next) = self.after_look() => {
                format!("when the look at drift has ended, {next} is run")
            }
            Some(Phase::Succeeded) if self.is_drifted() => {
                let then = spec.drift.is_some_and(|looks| looks.then == OnDrift::Apply);
                if then {
                    "it is run once more for what has drifted, at most once in each time between two looks, as approval and gates say"
                        .to_owned()
                } else {
                    format!("what has drifted is put back by another run: `allclear repo run {name}`")
                }
            }
            Some(Phase::Succeeded | Phase::Planned) => match &spec.source.wanted {
                Wanted::Commit(_) => "another commit is run when spec.ref.commit names it".to_owned(),
                wanted @ (Wanted::Head | Wanted::Branch(_) | Wanted::Tag(_)) => {
                    let watched = spec.source.watched.as_ref();
                    let only =
                        watched.map_or_else(String::new, |_| format!(" that changes anything {}", under(&spec.source)));
                    format!("the next commit at {wanted}{only} is run when it comes")
                }
            },
            Some(Phase::Failed | Phase::Lost) => "it is not repeated by itself; another commit is run".to_owned(),
            Some(Phase::Superseded) => "the commit that took its place is run".to_owned(),
        }
    }

    /// The next step of a Repo that is being deleted and stays.
    fn after_deletion(&self) -> String {
        let name = self.object.id.display_name();
        let keep = format!("`allclear repo keep {name}` lets the Repo go and destroys nothing");
        let asked = self.status.waiting.as_ref().map(|waiting| waiting.question);
        match (asked, self.status.destroy.as_ref().map(|run| run.phase)) {
            (Some(Question::Destroy), _) => {
                format!("it is DESTROYED after a yes, when its gates are open: `allclear repo approve {name}`; {keep}")
            }
            (Some(Question::DestroyAgain), _) => {
                format!("a destroy is planned once more after a yes: `allclear repo approve {name}`; {keep}")
            }
            (_, Some(Phase::Succeeded)) => "the Repo goes".to_owned(),
            (_, Some(Phase::Started)) => "its Job is followed to its end".to_owned(),
            _ => format!("a person is asked before anything is destroyed; {keep}"),
        }
    }

    /// The step after a running Job.
    fn after(&self, spec: &Spec) -> String {
        match &self.status.next {
            Some(next) => format!("it is followed to its end, however it ends; then {} is run", next.revision),
            None if spec.suspended.is_some() => "it is followed to its end; nothing new starts after it".to_owned(),
            None => "it is followed to its end".to_owned(),
        }
    }

    fn answer(&self, question: Question) -> String {
        let command = format!("allclear repo approve {}", self.object.id.display_name());
        match question {
            Question::Revision | Question::Plan => {
                format!("it is applied after a yes, when its gates are open: `{command}`")
            }
            Question::Again => {
                let unlock = self.status.lock.as_ref().map_or_else(String::new, |asked| {
                    format!(", or `{}`, which takes lock {} away first", unlock::command(&self.object.id), asked.id)
                });
                format!("nothing happens without a yes or another commit: `{command}`{unlock}")
            }
            Question::Destroy | Question::DestroyAgain => format!("nothing happens without a yes: `{command}`"),
        }
    }

    /// What becomes of the lock in its way, behind other words.
    fn unlocking(&self) -> String {
        let Some(asked) = &self.status.lock else { return String::new() };
        match &asked.approval {
            Some(yes) => {
                let by = yes.by.as_deref().map_or_else(String::new, |by| format!(", as {by} has approved"));
                format!("; it takes lock {} away{by}", asked.id)
            }
            None => {
                let command = unlock::command(&self.object.id);
                format!("; after a yes it is made at once, and takes lock {} away: `{command}`", asked.id)
            }
        }
    }

    /// Whether an attempt has failed, and the next is not made before a certain time.
    fn is_resting(&self) -> bool {
        self.status.run.as_ref().is_some_and(|run| run.failing.not_before_ms.is_some())
    }

    /// Whether it is not known yet if the wanted commit concerns it.
    fn is_being_compared(&self) -> bool {
        self.condition(ConditionKind::Ready).is_some_and(|ready| ready.reason == COMPARING)
    }

    fn is_drifted(&self) -> bool {
        self.condition(ConditionKind::Drifted).is_some_and(|drifted| drifted.holds == Some(true))
    }

    /// The commit that waits for the end of a look at drift.
    fn after_look(&self) -> Option<&str> {
        let next = self.status.next.as_ref().filter(|_| self.status.look().is_some())?;
        Some(next.revision.as_str())
    }

    fn is_git_failing(&self) -> bool {
        let kinds = [ConditionKind::Ready, ConditionKind::Stalled];
        kinds.into_iter().filter_map(|kind| self.condition(kind)).any(|one| one.reason == "GitFailed")
    }

    /// Why nothing is kept, if that is so: then nothing is run, whatever else holds.
    fn pruned(&self) -> Option<&str> {
        let pruned = self.status.conditions.iter().find(|condition| condition.reason == PRUNED);
        pruned.map(|condition| condition.message.as_str())
    }

    fn condition(&self, kind: ConditionKind) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }
}

/// `branch main of https://git.example.com/platform/infra, in envs/prod`.
pub(super) fn source(source: &Source) -> String {
    let Source { url, wanted, path, secret: _, watched } = source;
    let folder = if path.is_empty() { String::new() } else { format!(", in {path}") };
    let watched =
        watched.as_ref().map_or_else(String::new, |_| format!("; what changes nothing {} is not run", under(source)));
    format!("{wanted} of {url}{folder}{watched}")
}

/// The conditions of an apply.
pub(super) fn gates(spec: &Spec) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(match spec.approval {
        Approving::Auto => None,
        Approving::Revision => Some("after a person's yes to the commit".to_owned()),
        Approving::Plan => Some("after a person's yes to the plan".to_owned()),
        Approving::Never => Some("never: each commit is only planned".to_owned()),
    });
    let gates = &spec.gates;
    all.extend(gates.windows.iter().map(window));
    all.extend(gates.freezes.iter().map(|freeze| format!("freeze: {}", freeze.reason)));
    all.extend(gates.verdict.as_ref().map(|verdict| format!("verdict of {}", host(&verdict.url))));
    all.extend(gates.needs.iter().map(|need| format!("needs {} {}", need.app.kind, need.display_name())));
    let retry = spec.retry;
    all.extend((retry.limit > 0).then(|| {
        format!("repeated by itself up to {} times, first after {}", retry.limit, text::duration(retry.backoff))
    }));
    all
}
