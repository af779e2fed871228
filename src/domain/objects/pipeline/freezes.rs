//! The `PromotionFreeze` objects of the cluster: nothing new starts in the Pipelines that one selects, those that do not exist yet
//! included.
//!
//! Missing is not empty: until all of them were listed, any of them may be in force, so nothing starts. One that cannot be read whole
//! freezes whatever its readable parts select: somebody wrote it in an incident.
//!
//! Not for the time: whether now is in one of them is the calendar's to say, which is asked about those alone that select the
//! environment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::gates::Freeze;
use crate::pipeline::gates::Gate;
use crate::pipeline::spec::{EnvironmentSpec, Spec};
use crate::pipeline::{Effect, Pipeline};
use kernel::id::{Environment, PipelineId};
use kernel::machine::Timestamp;
use kernel::names::selector::{LabelSelector, Labels};
use kernel::text;

/// Most that are considered. Each Pipeline compares its labels with each of them.
pub const FREEZES_MAX: usize = 200;

/// How old what is known may get before it is a trouble: a start of an API server, and a watch that is built anew, take less.
const OLD: Duration = Duration::from_mins(5);

/// Why nothing is known before the first list is complete.
const UNLISTED: &str = "the PromotionFreezes of this cluster are not listed yet";

/// One of them, as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PromotionFreeze {
    pub name: String,
    pub reason: String,
    /// In seconds since the Unix epoch. `None`: since ever.
    pub from: Option<i64>,
    /// Not included. `None`: until the object is deleted.
    pub until: Option<i64>,
    /// The labels of a Pipeline that it is for.
    pub selector: LabelSelector,
    /// The namespaces of Pipelines. None: all.
    pub namespaces: BTreeSet<String>,
    /// None: all.
    pub environments: BTreeSet<Environment>,
    /// What is wrong with it.
    pub fault: Option<String>,
}

/// What is known of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Freezes {
    /// Any may be in force, for this reason.
    Unknown(String),
    /// These, and no others.
    Known(Arc<[PromotionFreeze]>),
}

impl Default for Freezes {
    fn default() -> Self {
        Self::Unknown(UNLISTED.to_owned())
    }
}

impl PromotionFreeze {
    fn selects(&self, id: &PipelineId, labels: &Labels, environment: &Environment) -> bool {
        (self.namespaces.is_empty() || self.namespaces.contains(&id.namespace))
            && (self.environments.is_empty() || self.environments.contains(environment))
            && self.selector.matches(labels)
    }

    /// For the calendar, with all that people read about it.
    fn dated(&self) -> Freeze {
        let end = if self.until.is_some() { "" } else { ", until it is deleted" };
        let fault = self.fault.as_ref().map(|why| format!(" (it is wrong: {why})")).unwrap_or_default();
        Freeze {
            from: self.from.unwrap_or(i64::MIN),
            to: self.until.unwrap_or(i64::MAX),
            reason: format!("PromotionFreeze {}{end}: {}{fault}", self.name, self.reason),
        }
    }
}

impl Freezes {
    /// There are none.
    pub fn none() -> Self {
        Self::Known(Arc::default())
    }

    /// Those that select an environment.
    ///
    /// # Errors
    /// When they are not known, in words.
    fn of(&self, id: &PipelineId, labels: &Labels, environment: &Environment) -> Result<Vec<Freeze>, String> {
        match self {
            Self::Unknown(why) => Err(why.clone()),
            Self::Known(all) => {
                let own = all.iter().filter(|one| one.selects(id, labels, environment));
                Ok(own.map(PromotionFreeze::dated).collect())
            }
        }
    }
}

/// What the watch of a cluster has said of them.
#[derive(Debug, Default)]
pub struct Fleet {
    known: Freezes,
    /// Since when it fails, and why.
    trouble: Option<(Timestamp, String)>,
}

impl Fleet {
    /// What is known now.
    pub const fn known(&self) -> &Freezes {
        &self.known
    }

    /// Why they cannot be read now, if that is so.
    pub fn failing(&self) -> Option<&str> {
        self.trouble.as_ref().map(|(_, why)| why.as_str())
    }

    /// Takes in all of them, or why they could not be read, in words. Returns whether something else is known now: what was known
    /// before a failure holds.
    pub fn hear(&mut self, now: Timestamp, said: Result<Arc<[PromotionFreeze]>, String>) -> bool {
        let known = match said {
            Ok(all) => {
                self.trouble = None;
                Self::bounded(all)
            }
            Err(why) => {
                let since = self.trouble.as_ref().map_or(now, |(since, _)| *since);
                self.trouble = Some((since, why.clone()));
                match &self.known {
                    Freezes::Unknown(before) if before.starts_with(UNLISTED) => {
                        Freezes::Unknown(format!("{UNLISTED}: {why}"))
                    }
                    // What was known, and that there are too many, holds.
                    Freezes::Unknown(_) | Freezes::Known(_) => return false,
                }
            }
        };
        let is_news = self.known != known;
        self.known = known;
        is_news
    }

    /// The cluster has got the kind: that there were none says nothing any more. Returns whether that was known.
    pub fn forget(&mut self) -> bool {
        std::mem::take(&mut self.known) != Freezes::default()
    }

    /// Too many are unknown: nobody may think that one counts which does not.
    fn bounded(all: Arc<[PromotionFreeze]>) -> Freezes {
        if all.len() <= FREEZES_MAX {
            return Freezes::Known(all);
        }
        Freezes::Unknown(format!(
            "there are {} PromotionFreezes, and allclear considers {FREEZES_MAX} at most: delete those that are over",
            all.len()
        ))
    }

    /// What is wrong with them, for people.
    pub fn troubles(&self, now: Timestamp) -> Vec<String> {
        let unknown = match &self.known {
            // A start is no trouble.
            Freezes::Unknown(why) if why != UNLISTED => Some(format!("nothing is promoted: {why}")),
            Freezes::Unknown(_) | Freezes::Known(_) => None,
        };
        let old = self.trouble.as_ref().filter(|(since, _)| unknown.is_none() && now.since(*since) >= OLD);
        let old = old.map(|(since, why)| {
            let age = text::duration(now.since(*since));
            format!("the PromotionFreezes of this cluster are those of {age} ago: {why}")
        });
        let faults = match &self.known {
            Freezes::Unknown(_) => &[],
            Freezes::Known(all) => all.as_ref(),
        };
        let faults = faults.iter().filter_map(|one| Some((&one.name, one.fault.as_ref()?)));
        let faults =
            faults.map(|(name, why)| format!("PromotionFreeze {name} is wrong, and freezes what it selects: {why}"));
        unknown.into_iter().chain(old).chain(faults).collect()
    }
}

impl Pipeline {
    /// What is known of the freezes of the cluster. Where they say something else of an environment, a fresh look that was asked for
    /// before says nothing any more; others change them as they like.
    pub(super) fn frozen_anew(&mut self, freezes: Freezes) {
        let spec = self.own.object.spec.as_ref().ok();
        let id = &self.own.object.id;
        let says_else = |name: &Environment| {
            spec.is_none_or(|spec| self.freezes.of(id, &spec.labels, name) != freezes.of(id, &spec.labels, name))
        };
        self.keeper.outdate(says_else);
        self.freezes = freezes;
    }

    /// The freeze of the cluster that keeps everything new from starting into an environment; asks the calendar about those that
    /// select it.
    pub(super) fn frozen(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        environment: &EnvironmentSpec,
        effects: &mut Vec<Effect>,
    ) -> Option<Gate> {
        let name = &environment.name;
        let own = match self.freezes.of(&self.own.object.id, &spec.labels, name) {
            Ok(own) => own,
            Err(words) => return Some(Gate::Frozen { words, planned: false }),
        };
        if own.is_empty() {
            return None;
        }
        let ask = |ask| effects.push(Effect::Ask(name.clone(), ask));
        let asked = self.keeper.asked(name);
        let words = asked.fleet(now, &own, ask)?;
        Some(Gate::Frozen { words, planned: asked.fleet_has_an_end() })
    }
}
