//! A Repo that asks on deletion: its finalizer, its deletion, what becomes of its Jobs when it goes, and another one of its name.

use kernel::promise::Promise;
use objects::owned::{Effect as Own, Event as Life, OwnMachine};
use objects::repo::spec::{Approving, DestroySteps};
use objects::repo::status::{Action, ConditionKind, Question, Status};
use objects::repo::{Effect, Event, Repo};

use super::outside::Truth;
use super::past::Past;
use super::world::{State, World};

/// What the API server has of an object's end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Leaving {
    pub deleting: bool,
    /// It has our finalizer.
    pub held: bool,
    pub gone: bool,
    /// The UID of the object that is to go with nothing destroyed, as a person has said.
    pub kept: Option<String>,
    /// How many objects of this name there were before.
    pub born: u8,
}

impl Leaving {
    pub fn uid(&self) -> String {
        if self.born == 0 { "uid".to_owned() } else { format!("uid-{}", self.born) }
    }

    fn is_kept(&self) -> bool {
        self.kept.as_ref() == Some(&self.uid())
    }
}

impl World {
    /// What destroys, where people are asked.
    pub fn destroys(&self) -> Option<DestroySteps> {
        let words = |word: &str| vec![word.to_owned()];
        self.terms.asks.then(|| DestroySteps { plan: words("plan-destroy"), destroy: words("destroy") })
    }
}

/// Whether a worker acts on a Job that its object, as it knows it, does not want: it applies where nothing may be applied or the object is
/// being deleted, or destroys where nobody asked for that.
pub fn is_unwanted(machine: &Repo, effect: &Effect) -> bool {
    let action = match effect {
        Effect::Make(order) => order.attempt.action,
        Effect::Start(job) => job.attempt.action,
        _ => return false,
    };
    let object = machine.object();
    let Ok(spec) = &object.spec else { return false };
    let is_kept = spec.runner.destroy.is_none() || object.answers.keep.as_ref() == Some(&object.uid);
    match action {
        Action::Apply => object.deleting || spec.approval == Approving::Never,
        Action::Plan | Action::Drift => object.deleting,
        Action::DestroyPlan | Action::Destroy => !object.deleting || is_kept,
    }
}

impl State {
    /// The finalizer of the object of this UID is put on it, or taken away.
    pub fn hold(&mut self, world: &World, uid: &str, held: bool) -> Event {
        let leaving = &mut self.object.leaving;
        if leaving.gone || leaving.uid() != uid {
            return Event::Held;
        }
        if leaving.deleting && held {
            return Event::HoldFailed("it is being deleted".to_owned());
        }
        leaving.held = held;
        if leaving.deleting && !held {
            let is_right = leaving.is_kept() || !self.past.standing;
            let goes_on = self.jobs.iter().any(|truth| truth.job.owner.as_deref() == Some(uid) && truth.goes_on());
            self.past.abandoned |= !is_right;
            self.past.promise(Promise::LeftAlone, !goes_on);
            self.go(world);
        }
        self.edited();
        Event::Held
    }

    /// A person deletes the object.
    pub fn remove(&mut self, world: &World) {
        self.object.leaving.deleting = true;
        if !self.object.leaving.held {
            self.go(world);
        }
        self.edited();
    }

    /// Nothing keeps the object: Kubernetes removes its Jobs.
    fn go(&mut self, world: &World) {
        self.object.leaving.gone = true;
        for index in 0..self.jobs.len() {
            if !self.jobs[index].foreign && !self.jobs[index].gone {
                self.jobs[index].gone = true;
                self.publish(world, index, None);
            }
        }
    }

    /// A person says that nothing is to be destroyed.
    pub fn keep(&mut self) {
        self.object.leaving.kept = Some(self.object.leaving.uid());
        self.edited();
    }

    /// Another object of this name is made, with the annotations of the earlier one.
    pub fn remake(&mut self) {
        let Leaving { kept, born, .. } = self.object.leaving.clone();
        self.object.leaving = Leaving { kept, born: born + 1, ..Leaving::default() };
        self.object.status = Status::default();
        self.past.reborn();
        self.edited();
    }

    /// What a fresh look at the object, or a watch of it, says.
    pub fn sight(&self, world: &World) -> Life<Repo> {
        Life::Looked((!self.object.leaving.gone).then(|| Box::new(world.object(&self.object))))
    }

    /// Whether the object has gone, or a person was asked what keeps it.
    pub fn is_parted(&self) -> bool {
        let (status, leaving) = (&self.object.status, &self.object.leaving);
        let is_ready =
            |reason: &str| status.conditions.iter().any(|one| one.kind == ConditionKind::Ready && one.reason == reason);
        let is_asked = status.waiting.as_ref().is_some_and(|waiting| {
            matches!(waiting.question, Question::Destroy | Question::DestroyAgain) && !leaving.is_kept()
        });
        leaving.gone || is_asked && self.past.is_told(status) || self.object.stopped && is_ready("Suspended")
    }
}

impl Truth {
    /// Whether it changes what is there.
    pub const fn is_change(&self) -> bool {
        matches!(self.job.attempt.action, Action::Apply | Action::Destroy)
    }
}

impl Past {
    /// A status is durable: a destroy is left only when its Job has ended, and another plan voids a yes.
    pub fn judge_destroy(&mut self, before: &Status, after: &Status, jobs: &[Truth]) {
        use objects::repo::status::Phase;
        let (was, is) = (before.destroy.as_ref(), after.destroy.as_ref());
        if let Some(was) = was.filter(|was| was.phase == Phase::Started)
            && is.is_none_or(|is| is.phase != Phase::Started || is.job != was.job)
        {
            self.judge_ended(was, jobs);
        }
        let Some(run) = is else { return };
        let newly = was.is_none_or(|was| was.phase != run.phase);
        if newly && run.phase == Phase::Planned {
            self.void();
        }
        self.note_job(run);
    }
}

/// What a life that ends has asked for in its last moment is done by then, or never.
pub const fn is_done_by_then(effect: &Effect) -> bool {
    matches!(effect, Effect::Report(_) | Effect::Hold(_))
}

/// Whether nothing is left to be done for an object.
pub const fn is_end(effect: &Effect) -> bool {
    matches!(effect, Effect::Object(Own::End))
}
