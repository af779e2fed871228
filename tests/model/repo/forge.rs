//! What the forge has of each commit, and whether that is so.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::CommitId;
use objects::repo::Event;
use objects::repo::report::{Saying, Standing};
use objects::repo::spec::{Detail, Provider, ReportTo};
use objects::repo::status::ConditionKind;

use super::concern::untold;
use super::world::{State, World};

/// The forge, and what has really become of commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Forge {
    /// It answers with a refusal.
    pub refuses: bool,
    /// The state of each commit.
    says: BTreeMap<CommitId, Standing>,
    /// What was applied once, or planned where nothing is applied.
    done: BTreeSet<CommitId>,
    /// What failed once.
    failed: BTreeSet<CommitId>,
    /// What it was told last, as a hash.
    last: Option<String>,
    /// An answer got lost, or a life ended: what it was told may be said again.
    unsure: bool,
    /// It was told what was not so, or what it had been told.
    pub misled: bool,
}

impl World {
    pub fn reports(&self) -> Option<ReportTo> {
        let to = ReportTo { provider: Provider::GitHub, secret: "forge".to_owned(), detail: Detail::Numbers };
        self.terms.reports.then_some(to)
    }
}

impl State {
    /// A Job of this commit has come to its end, or is gone.
    pub fn note_end(&mut self, world: &World, revision: &CommitId, is_done: bool) {
        if world.terms.reports {
            let known = if is_done { &mut self.forge.done } else { &mut self.forge.failed };
            known.insert(revision.clone());
        }
    }

    /// An answer to whoever reported got lost.
    pub fn forget_report(&mut self, world: &World) {
        self.forge.unsure = world.terms.reports;
    }

    /// The forge is told how a commit stands.
    pub fn hear(&mut self, saying: &Saying) -> Event {
        if self.forge.refuses {
            return Event::Reported(Box::new(saying.clone()), Err(untold()));
        }
        let is_so = match saying.standing {
            Standing::Pending => true,
            Standing::Success => self.forge.done.contains(&saying.revision),
            Standing::Failure => self.forge.failed.contains(&saying.revision),
        };
        let hash = Some(saying.hash());
        let is_repeated = self.forge.last == hash && !saying.again && !self.forge.unsure;
        self.forge.misled |= !is_so || is_repeated;
        self.forge.last = hash;
        self.forge.says.insert(saying.revision.clone(), saying.standing);
        Event::Reported(Box::new(saying.clone()), Ok(1))
    }

    /// Whether the forge has what became of this commit, or the status says that it does not take it.
    pub fn is_reported(&self, world: &World, revision: &CommitId, is_done: bool) -> bool {
        if !world.terms.reports {
            return true;
        }
        let says = self.forge.says.get(revision);
        let told = self.object.status.conditions.iter().find(|one| one.kind == ConditionKind::Reported);
        let is_refused = self.forge.refuses && told.is_some_and(|told| told.holds == Some(false));
        is_refused || says.is_some_and(|says| (*says == Standing::Success) == is_done)
    }
}
