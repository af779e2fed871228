//! The checked spec of a `Pipeline`: names are unique, durations within their limits, and an environment has a target.
//!
//! Not for the form in which people write it; that is the adapter's.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;

use crate::apps::app::TargetKey;
use crate::gates::{Freeze, VerdictSource, Window};
use crate::pipeline::Pipeline;
use crate::pipeline::options::RequestOptions;
use crate::pipeline::proposal::Repository;
use crate::pipeline::status::Cause;
use kernel::id::{Environment, Revision};
use kernel::names::selector::Labels;
use kernel::names::ssh_url::web_of;
use kernel::names::workload_name::WorkloadName;

/// How long a soaking environment may be unready, unless the spec says: a pod that was evicted is replaced well within it.
pub const SOAK_TOLERATES: Duration = Duration::from_mins(2);

/// The spec of a Pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Each after all that it follows; revisions appear in the first. An environment without targets is not among them.
    pub environments: Vec<EnvironmentSpec>,
    /// The environments that a revision must have passed.
    pub advance: Advance,
    /// Nothing new starts, for this reason.
    pub suspended: Option<String>,
    /// The object's labels, by which freezes of the cluster select it.
    pub labels: Labels,
    /// Environments without a target, which are passed over.
    pub passed_over: Vec<Environment>,
    /// The names of the apps that move as a set; none where there is one app.
    pub apps: Vec<String>,
}

/// The environments that a revision must have passed before it is promoted into another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Advance {
    // All environments before it are at the revision: what the first has is what moves.
    #[default]
    Latest,
    // Those just before it are at the revision, or went on from it.
    Stepwise,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EnvironmentSpec {
    pub name: Environment,
    /// Those just before it. None: revisions appear in it.
    pub after: Vec<Environment>,
    /// What says which revision it is at, an object each, or a place of a set. At least one.
    pub targets: Vec<TargetKey>,
    /// The objects of each place, in the order of the apps; none where there is one app.
    pub parts: Vec<Vec<TargetKey>>,
    /// How a revision gets into it. `None`: it is only observed.
    pub promotion: Option<PromotionSpec>,
    /// The conditions of a promotion into it.
    pub gates: Gates,
    /// Nothing new starts into it.
    pub suspended: bool,
    /// It is done only when the edge of these is purged.
    pub purged: Option<Purged>,
    /// A wait longer than this is announced.
    pub stalled_after: Duration,
    /// When it goes back by itself. `None`: never.
    pub rollback: Option<Rollback>,
}

/// When an environment goes back by itself to what it had.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rollback {
    /// At least one, each once. [`Cause::Verdict`] only where there is one to ask.
    pub on: Vec<Cause>,
    /// For so long after the environment got a revision. With [`Cause::Stalled`] longer than it may take to be ready.
    pub within: Duration,
}

/// How a revision gets into an environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PromotionSpec {
    /// A person must say yes.
    pub manual: bool,
    pub strategy: Strategy,
}

impl PromotionSpec {
    /// Where it is proposed, if it is.
    pub const fn repository(&self) -> Option<&Repository> {
        match &self.strategy {
            Strategy::Notification => None,
            Strategy::PullRequest(repository, _) => Some(repository),
        }
    }
}

/// The means of promotion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// A notice, which a program acts on.
    Notification,
    PullRequest(Repository, Box<RequestOptions>),
}

/// The conditions of a promotion. All are judged together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gates {
    /// How long those before must have been done at the revision.
    pub soak: Duration,
    /// How long it may be unready in between.
    pub soak_tolerates: Duration,
    /// It is in one of these. None: at any time.
    pub windows: Vec<Window>,
    /// It is in none of these.
    pub freezes: Vec<Freeze>,
    pub verdict: Option<VerdictSource>,
    /// These objects are there and ready.
    pub needs: Vec<TargetKey>,
}

/// The workloads whose edge must be purged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Purged {
    /// In each of the environment's namespaces.
    pub workloads: Vec<WorkloadName>,
    /// The allclear that purges for them; `None`: this one.
    pub by: Option<PurgedBy>,
    pub until: Until,
}

/// What has to be known of an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Until {
    /// That CloudFront reports it purged.
    #[default]
    Purged,
    /// That it answered what the new pods answer, since then.
    Fresh,
}

impl Until {
    /// As specs and requests write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Purged => "purged",
            Self::Fresh => "fresh",
        }
    }

    pub fn named(word: &str) -> Option<Self> {
        [Self::Purged, Self::Fresh].into_iter().find(|until| until.word() == word)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PurgedBy {
    pub server: String,
    /// The Secret with the token for it.
    pub secret: Option<String>,
    /// The namespace of that Secret, which is the Pipeline's.
    pub namespace: String,
}

impl EnvironmentSpec {
    /// Revisions appear in it: nothing is promoted into it.
    pub const fn is_first(&self) -> bool {
        self.after.is_empty()
    }
}

impl Spec {
    /// The Secrets that are sent somewhere, each with the address that it is named for.
    pub fn sent(&self) -> BTreeSet<(String, String)> {
        let of = |environment: &EnvironmentSpec| {
            let forge = environment.promotion.as_ref().and_then(PromotionSpec::repository);
            let verdict = environment.gates.verdict.as_ref();
            let by = environment.purged.as_ref().and_then(|purged| purged.by.as_ref());
            [
                forge.map(|forge| (forge.secret.clone(), forge.url.clone())),
                // The forge's API, where git is spoken over SSH.
                forge.map(|forge| (forge.secret.clone(), web_of(&forge.url))),
                verdict.map(|verdict| (verdict.secret.clone(), verdict.url.clone())),
                by.map(|by| (by.secret.clone(), by.server.clone())),
            ]
        };
        let named = self.environments.iter().flat_map(of).flatten();
        named.filter_map(|(secret, address)| Some((secret?, address))).collect()
    }

    /// Those just before the environment at `index`.
    pub fn before(&self, index: usize) -> Vec<&EnvironmentSpec> {
        let after = self.environments.get(index).map(|own| own.after.as_slice()).unwrap_or_default();
        self.environments.iter().filter(|one| after.contains(&one.name)).collect()
    }

    /// All before the environment at `index`.
    pub fn ancestors(&self, index: usize) -> Vec<&EnvironmentSpec> {
        let mut names = BTreeSet::from_iter(self.environments.get(index).into_iter().flat_map(|own| &own.after));
        let mut found = Vec::new();
        for one in self.environments.iter().take(index).rev() {
            if names.contains(&one.name) {
                names.extend(&one.after);
                found.push(one);
            }
        }
        found.reverse();
        found
    }

    /// Those just after an environment.
    pub fn following<'a>(&'a self, name: &'a Environment) -> impl Iterator<Item = &'a EnvironmentSpec> {
        self.environments.iter().filter(|one| one.after.contains(name))
    }

    /// Those beside an environment that something comes after, as after it: that, and the one beside.
    pub fn beside<'a>(
        &'a self,
        name: &'a Environment,
    ) -> impl Iterator<Item = (&'a EnvironmentSpec, &'a EnvironmentSpec)> {
        self.following(name).flat_map(move |after| {
            let beside = self.environments.iter().filter(|one| one.name != *name && after.after.contains(&one.name));
            beside.map(move |beside| (after, beside))
        })
    }

    /// The environments whose objects a promotion into the one at `index` rests on (PL-2).
    pub fn rests_on(&self, index: usize) -> Vec<&EnvironmentSpec> {
        match self.advance {
            Advance::Latest => self.ancestors(index),
            Advance::Stepwise => self.before(index),
        }
    }

    /// Every object that it wants to know about.
    pub fn targets(&self) -> impl Iterator<Item = &TargetKey> {
        self.environments.iter().flat_map(|environment| environment.members().chain(&environment.gates.needs))
    }
}

/// A Pipeline, as the API server has it.
pub type Object = crate::kept::Object<Pipeline>;

/// For words: `eu`, or `eu and us`.
pub(super) fn names<'a>(environments: impl IntoIterator<Item = &'a EnvironmentSpec>) -> String {
    let names: Vec<&str> = environments.into_iter().map(|one| one.name.0.as_str()).collect();
    names.join(" and ")
}

/// For words: the revision, or that there is none.
pub fn or_none(revision: Option<&Revision>) -> &str {
    revision.map_or("nothing", |revision| revision.0.as_str())
}
