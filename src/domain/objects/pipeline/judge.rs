//! From sights to a candidate: pure over what the targets say now.
//!
//! ```text
//! settled(E) = R      all targets are there and ready, with one revision R
//! done(E)    = R      settled(E) = R, and its edge is purged where that is asked for
//! candidate(E) = R    Latest: all before E are done at R            Stepwise: those just before E are, or were and have moved on (`trail`)
//! ```
//!
//! Unknown is neither: an environment with a target that cannot be read is not settled, and has not left a revision either (PL-7).

use std::collections::BTreeMap;
use std::fmt;

use crate::apps::app::{Present, Sight, TargetKey};
use crate::apps::leaf::NOT_SYNCED;
use crate::asked::Topic;
use crate::pipeline::set;
use crate::pipeline::spec::{EnvironmentSpec, Spec};
use crate::pipeline::status::{Cause, EnvironmentStatus, Promotion};
use kernel::id::{Environment, Revision};

/// The text for a target of which nothing is known yet.
pub(super) const NOT_LOOKED_AT: &str = "it was not looked at yet";

/// The known state of every target.
pub type Sights = BTreeMap<TargetKey, Sight>;

/// Why an edge may serve something older than what its workload runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0}")]
pub struct Stale(pub String);

/// Whether the edge of an environment is purged, as far as that was asked, and what was asked.
pub type Edges = BTreeMap<Environment, (Topic, Result<(), Stale>)>;

/// The question about an environment's edge: its workloads, its place and the revision.
pub fn edge_topic(environment: &EnvironmentSpec, revision: &Revision) -> Topic {
    Topic::of(&(&environment.purged, environment.members().collect::<Vec<_>>(), revision))
}

/// Why an environment is not done at a revision: the first thing that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Obstacle {
    pub environment: Environment,
    pub what: What,
}

/// An unmet condition. The first five are about one target, by the name that people have for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// It cannot be said how it is.
    Unknown(String, String),
    /// It is not there.
    Absent(String),
    /// It is not ready.
    Unready(String, String),
    /// It is ready, and does not say a revision.
    Unnamed(String, String),
    /// It is at this revision, and another target at that one.
    Differs(String, Revision, Revision),
    /// Its edge may serve an older version.
    EdgeStale(String),
    /// Whether its edge is purged is not known yet.
    EdgeUnseen,
    /// It is at this revision, and that environment at that one.
    Behind(Revision, Environment, Revision),
    /// A target is at this revision again, after that one.
    Back(Revision, Revision),
    /// A fresh look found this revision, and the watch had shown that one.
    Moved(Revision, Revision),
}

impl What {
    /// Whether it may be otherwise, as far as we know.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(..) | Self::EdgeUnseen)
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = &self.environment;
        match &self.what {
            What::Unknown(target, why) => write!(f, "{at}: {target} cannot be read: {why}"),
            What::Absent(target) => write!(f, "{at}: {target} does not exist"),
            What::Unready(target, why) => write!(f, "{at}: {target} is not ready: {why}"),
            What::Unnamed(target, why) => write!(f, "{at}: {target} is ready and says no revision: {why}"),
            What::Differs(target, is, other) if is == other => {
                write!(f, "{at}: {target} is older: a fresh look found {is}")
            }
            What::Differs(target, is, other) => write!(f, "{at}: {target} is at {is}, another target at {other}"),
            What::EdgeStale(why) => write!(f, "{at}: its edge may serve an older version: {why}"),
            What::EdgeUnseen => write!(f, "{at}: its edge was not asked for yet"),
            What::Behind(is, other, first) => write!(f, "{at} is at {is}, and {other} at {first}"),
            What::Back(is, had) => write!(f, "{at} went back from {had} to {is}"),
            What::Moved(is, had) => write!(f, "{at}: a fresh look found {is} where {had} was"),
        }
    }
}

/// The revision that all targets of an environment are settled at, or the first that is not. What is unknown comes first: nothing
/// is concluded from the others then.
///
/// # Errors
/// That one.
pub fn settled<'a>(environment: &EnvironmentSpec, sights: &'a Sights) -> Result<&'a Revision, Obstacle> {
    let obstacle = |what| Obstacle { environment: environment.name.clone(), what };
    let mut first: Option<&Revision> = None;
    let mut wrong = None;
    for target in &environment.targets {
        match judged(target, sights) {
            Err(what) if what.is_unknown() => return Err(obstacle(what)),
            Err(what) => wrong = wrong.or(Some(what)),
            Ok(revision) => match first {
                Some(other) if other != revision => {
                    wrong =
                        wrong.or_else(|| Some(What::Differs(target.display_name(), revision.clone(), other.clone())));
                }
                Some(_) => {}
                None => first = Some(revision),
            },
        }
    }
    match (wrong, first) {
        (Some(what), _) => Err(obstacle(what)),
        (None, Some(revision)) => Ok(revision),
        (None, None) => Err(obstacle(What::Absent("every target".to_owned()))),
    }
}

fn judged<'a>(target: &TargetKey, sights: &'a Sights) -> Result<&'a Revision, What> {
    let name = || target.display_name();
    match sights.get(target) {
        None => Err(What::Unknown(name(), NOT_LOOKED_AT.to_owned())),
        Some(Sight::Unknown(why)) => Err(What::Unknown(name(), why.clone())),
        Some(Sight::Absent) if set::is_place(target) => Err(What::Absent(format!("an app of {}", name()))),
        Some(Sight::Absent) => Err(What::Absent(name())),
        Some(Sight::Present(Present { unready: Some(why), .. })) => Err(What::Unready(name(), why.clone())),
        Some(Sight::Present(Present { revision: Err(why), .. })) => Err(What::Unnamed(name(), why.to_string())),
        Some(Sight::Present(Present { revision: Ok(revision), .. })) => Ok(revision),
    }
}

/// The first target of an environment that cannot be read, or is not there. Nothing is promoted over it.
pub fn unseen(environment: &EnvironmentSpec, sights: &Sights) -> Option<Obstacle> {
    unseen_of([environment], sights)
}

/// The same of several environments. One that cannot be read goes before one that was not looked at yet.
pub fn unseen_of<'a>(environments: impl IntoIterator<Item = &'a EnvironmentSpec>, sights: &Sights) -> Option<Obstacle> {
    let targets = environments.into_iter().flat_map(|own| own.targets.iter().map(move |target| (own, target)));
    let mut all = targets.filter_map(|(own, target)| match judged(target, sights) {
        Err(what @ (What::Unknown(..) | What::Absent(_))) => Some(Obstacle { environment: own.name.clone(), what }),
        Err(_) | Ok(_) => None,
    });
    let first = all.next()?;
    let is_silent =
        |one: &Obstacle| matches!(&one.what, What::Unknown(_, why) if why == NOT_LOOKED_AT || why == NOT_SYNCED);
    if is_silent(&first) { all.find(|one| !is_silent(one)).or(Some(first)) } else { Some(first) }
}

/// The revisions of an environment's targets, ready or not.
pub fn revisions<'a>(environment: &EnvironmentSpec, sights: &'a Sights) -> impl Iterator<Item = &'a Revision> {
    environment.targets.iter().filter_map(|target| sights.get(target).and_then(Sight::revision))
}

/// Whether a target of the environment says this revision, ready or not.
pub fn is_arriving(environment: &EnvironmentSpec, revision: &Revision, sights: &Sights) -> bool {
    revisions(environment, sights).any(|said| said == revision)
}

/// Whether an environment is at a revision that it was done at, or has moved on from it: nothing of it is unseen, and nothing went back.
///
/// # Errors
/// The obstacle to that.
pub fn stands(
    environment: &EnvironmentSpec,
    revision: &Revision,
    status: &EnvironmentStatus,
    sights: &Sights,
) -> Result<(), Obstacle> {
    let wrong = environment.targets.iter().find_map(|target| {
        let judged = judged(target, sights);
        match sights.get(target).and_then(Sight::revision) {
            None => judged.err(),
            Some(said) if said == revision => judged.err(),
            Some(said) if status.is_before(said, revision) => Some(What::Back(said.clone(), revision.clone())),
            Some(_newer) => None,
        }
    });
    wrong.map_or(Ok(()), |what| Err(Obstacle { environment: environment.name.clone(), what }))
}

/// The revision that an environment is done at.
///
/// # Errors
/// Why it is not.
pub fn done<'a>(environment: &EnvironmentSpec, sights: &'a Sights, edges: &Edges) -> Result<&'a Revision, Obstacle> {
    let revision = settled(environment, sights)?;
    let obstacle = |what| Err(Obstacle { environment: environment.name.clone(), what });
    if environment.purged.is_none() {
        return Ok(revision);
    }
    let topic = edge_topic(environment, revision);
    match edges.get(&environment.name).filter(|(of, _)| *of == topic) {
        Some((_, Ok(()))) => Ok(revision),
        Some((_, Err(why))) => obstacle(What::EdgeStale(why.0.clone())),
        None => obstacle(What::EdgeUnseen),
    }
}

/// The revision that is to be in the environment at `index`.
///
/// # Errors
/// The obstacle to it in those before.
pub fn candidate<'a>(spec: &Spec, index: usize, sights: &'a Sights, edges: &Edges) -> Result<&'a Revision, Obstacle> {
    agreed(&spec.rests_on(index), sights, edges)
}

/// The one revision at which all of these are done.
///
/// # Errors
/// The first obstacle to it.
pub fn agreed<'a>(
    environments: &[&EnvironmentSpec],
    sights: &'a Sights,
    edges: &Edges,
) -> Result<&'a Revision, Obstacle> {
    let mut of: Option<(&EnvironmentSpec, &'a Revision)> = None;
    for environment in environments {
        let revision = done(environment, sights, edges)?;
        let (first, agreed) = *of.get_or_insert((environment, revision));
        if agreed != revision {
            let what = What::Behind(revision.clone(), first.name.clone(), agreed.clone());
            return Err(Obstacle { environment: environment.name.clone(), what });
        }
    }
    let none =
        || Obstacle { environment: Environment::default(), what: What::Absent("an environment before".to_owned()) };
    of.map(|(_, revision)| revision).ok_or_else(none)
}

/// Names what a trail of these environments is about.
pub(super) fn trail_topic(environments: &[&EnvironmentSpec]) -> Topic {
    let looked_at: Vec<_> = environments.iter().map(|one| (one.members().collect::<Vec<_>>(), &one.purged)).collect();
    Topic::of(&looked_at)
}

/// The only revision that targets of the environment say, where they all say one; for people.
pub fn said<'a>(environment: &EnvironmentSpec, sights: &'a Sights) -> Option<&'a Revision> {
    let mut said = environment.targets.iter().map(|target| sights.get(target).and_then(Sight::revision));
    let first = said.next().flatten()?;
    said.all(|revision| revision == Some(first)).then_some(first)
}

/// The fresh sights of what a promotion rests on, against those it was decided by: the same objects, settled at the revision. And
/// those of where it goes: all are there, and none is at the revision yet.
///
/// # Errors
/// The difference.
pub fn confirms(
    spec: &Spec,
    index: usize,
    revision: &Revision,
    known: &Sights,
    status: Option<&EnvironmentStatus>,
    fresh: &Sights,
) -> Result<(), Obstacle> {
    for environment in spec.rests_on(index) {
        let obstacle = |what| Err(Obstacle { environment: environment.name.clone(), what });
        // Apps of a set are watched apart, so what a trail has of them may never have been together: a fresh look must find it.
        let has_passed = |status: &&EnvironmentStatus| {
            environment.parts.is_empty() && status.trail_of(environment).is_some_and(|trail| trail.has_passed(revision))
        };
        match status.filter(has_passed) {
            Some(status) => stands(environment, revision, status, fresh)?,
            None => {
                let found = settled(environment, fresh)?;
                if found != revision {
                    return obstacle(What::Moved(found.clone(), revision.clone()));
                }
            }
        }
        let uid = |sights: &'_ Sights, target| match sights.get(target) {
            Some(Sight::Present(present)) => Some(present.uid.clone()),
            Some(Sight::Absent | Sight::Unknown(_)) | None => None,
        };
        if let Some(target) = environment.targets.iter().find(|target| uid(known, target) != uid(fresh, target)) {
            return obstacle(What::Unready(target.display_name(), "it is another object than a moment ago".to_owned()));
        }
    }
    let Some(own) = spec.environments.get(index) else { return Ok(()) };
    if let Some(unseen) = unseen(own, fresh) {
        return Err(unseen);
    }
    if is_arriving(own, revision, fresh) {
        let what = What::Differs("what a watch showed".to_owned(), revision.clone(), revision.clone());
        return Err(Obstacle { environment: own.name.clone(), what });
    }
    Ok(())
}

/// The fresh sights of where a revision goes that a person chose: all of it is there.
///
/// # Errors
/// The first target that is not.
pub fn all_seen(spec: &Spec, index: usize, fresh: &Sights) -> Result<(), Obstacle> {
    let own = spec.environments.get(index);
    own.and_then(|own| unseen(own, fresh)).map_or(Ok(()), Err)
}

/// Why a target is not ready that is at a revision.
pub(super) fn stuck(target: &TargetKey, revision: &Revision, sights: &Sights) -> Option<What> {
    let is_at = sights.get(target).and_then(Sight::revision) == Some(revision);
    judged(target, sights).err().filter(|what| is_at && matches!(what, What::Unready(..)))
}

/// Why an environment is not to go back after all, by what is seen of it; `None` if it is, or that is not known.
pub(super) fn stays(environment: &EnvironmentSpec, back: &Promotion, sights: &Sights) -> Option<String> {
    let bad = back.from.as_ref().filter(|_| unseen(environment, sights).is_none())?;
    if !is_arriving(environment, bad, sights) {
        return Some(format!("{bad} is not there any more"));
    }
    let is_ready = settled(environment, sights) == Ok(bad) && back.rollback == Some(Cause::Stalled);
    is_ready.then(|| format!("{bad} is ready there after all"))
}

/// The fresh sights of where a promotion goes back: all of it is there, and as it was when that began.
///
/// # Errors
/// The obstacle to that.
pub fn goes_back(spec: &Spec, index: usize, back: &Promotion, fresh: &Sights) -> Result<(), Obstacle> {
    all_seen(spec, index, fresh)?;
    let stays = spec.environments.get(index).and_then(|own| Some((own, stays(own, back, fresh)?)));
    let bad = back.from.clone().unwrap_or_else(|| back.revision.clone());
    let what = What::Differs("what a watch showed".to_owned(), bad.clone(), bad);
    stays.map_or(Ok(()), |(own, _)| Err(Obstacle { environment: own.name.clone(), what }))
}

/// Whether fresh sights say that these environments have left a revision: all of them is seen, and nothing is at it.
///
/// # Errors
/// The obstacle to that.
pub fn has_left(before: &[&EnvironmentSpec], revision: &Revision, fresh: &Sights) -> Result<(), Obstacle> {
    for before in before {
        if let Some(unseen) = unseen(before, fresh) {
            return Err(unseen);
        }
        if is_arriving(before, revision, fresh) {
            let what = What::Differs("what a watch showed".to_owned(), revision.clone(), revision.clone());
            return Err(Obstacle { environment: before.name.clone(), what });
        }
    }
    Ok(())
}
