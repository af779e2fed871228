//! What a person reads before choosing a revision for an environment, or why it cannot be chosen.
//!
//! Not for what becomes of it; that is `choice`.

use crate::apps::ready::Unfit;
use crate::pipeline::choice::{self, Place};
use crate::pipeline::judge;
use crate::pipeline::spec::{Advance, EnvironmentSpec, Object, Spec};
use crate::pipeline::status::{EnvironmentStatus, Status};
use crate::pipeline::view::{gates_of, remembered};
use kernel::id::{Environment, ObjectId, Revision};

/// A choice that a person may make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choosing {
    /// What the yes has to name.
    pub ticket: String,
    /// What is written on the object with the yes.
    pub written: String,
    /// What the environment has, if all its targets have the same.
    pub from: Option<Revision>,
    /// How the revision relates to that.
    pub relation: String,
    /// What there is to know, a sentence each.
    pub known: Vec<String>,
    /// How it gets there.
    pub how: String,
    /// What must hold before that.
    pub gates: Vec<String>,
}

/// Why a revision cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the spec of {0} cannot be used: {1}. Nothing is promoted before it is mended")]
    Faulty(String, String),
    #[error("{0} is stopped: {1}. Let it go on first, by `{2}`")]
    Stopped(String, String, String),
    #[error("{pipeline} has no environment {name:?}; it has {}", .has.join(", "))]
    NoEnvironment { pipeline: String, name: String, has: Vec<String> },
    #[error("{0} is the first environment of {1}, and nothing is promoted into it: deploy the revision there")]
    First(Environment, String),
    #[error("nothing is promoted into {0} of {1}: it has no `promotion`, and is only observed")]
    Observed(Environment, String),
    #[error("{0:?} cannot be a revision of {1}: {2}")]
    Form(String, String, Unfit),
    #[error("{0} of {1} is at {2} already, and nothing else is on its way there")]
    There(Environment, String, Revision),
    #[error("{0} is on its way to {1} of {2} already, {3}")]
    Chosen(Revision, Environment, String, String),
    #[error(transparent)]
    Untaken(#[from] Untaken),
}

/// A choice that is on the object, and that allclear has not taken in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "allclear has not taken in yet that {revision} was chosen for {environment} of {pipeline}, and another answer would take its place: \
     it does within seconds where it runs and leads; try again then"
)]
pub struct Untaken {
    environment: Environment,
    revision: Revision,
    pipeline: String,
}

/// Whether an answer about an environment would wipe out what a person chose for another one, or for this one by another answer.
///
/// # Errors
/// That one.
pub fn nothing_untaken(object: &Object, but: Option<&Environment>) -> Result<(), Untaken> {
    let untaken = choice::untaken(object, (&object.status, &object.status));
    let is_known = |name: &Environment| object.spec.as_ref().is_ok_and(|spec| place(spec, name).is_some());
    match untaken.filter(|(environment, _)| but != Some(environment) && is_known(environment)) {
        Some((environment, revision)) => Err(Untaken { environment, revision, pipeline: object.id.display_name() }),
        None => Ok(()),
    }
}

/// What a person says yes to by choosing this revision for this environment.
///
/// # Errors
/// Why it cannot be chosen.
pub fn choosing(object: &Object, name: &Environment, revision: &Revision) -> Result<Choosing, Refusal> {
    let pipeline = object.id.display_name();
    let spec = object.spec.as_ref().map_err(|why| Refusal::Faulty(pipeline.clone(), why.clone()))?;
    let status = &object.status;
    let index = may_choose(spec, &pipeline, name)?;
    let own = spec.environments.get(index).ok_or_else(|| Refusal::First(name.clone(), pipeline.clone()))?;
    if let Some(target) = own.targets.first() {
        let form = spec.may_have(own, revision);
        form.map_err(|why| Refusal::Form(revision.0.clone(), target.display_name(), why))?;
    }
    nothing_untaken(object, Some(name))?;
    let sights = remembered(spec, status);
    let known = status.environment(name);
    let open = known.and_then(EnvironmentStatus::open);
    let is_there = judge::settled(own, &sights) == Ok(revision);
    if is_there && open.is_none() {
        return Err(Refusal::There(name.clone(), pipeline, revision.clone()));
    }
    let words = open.filter(|open| open.revision == *revision).and_then(|open| open.choice());
    if let Some(words) = words {
        return Err(Refusal::Chosen(revision.clone(), name.clone(), pipeline, words));
    }
    let place = Place { spec, index, status, sights: &sights };
    let (how, mut gates) = gates_of(own, status);
    if !known.is_some_and(|known| known.soaks(revision)) {
        gates.retain(|gate| !gate.starts_with("soak "));
    }
    Ok(Choosing {
        ticket: choice::ticket_of(&object.uid, name, (status, status), revision),
        written: choice::written(name, revision),
        from: judge::said(own, &sights).cloned(),
        relation: place.relation(revision),
        known: facts(spec, status, index, revision),
        how,
        gates,
    })
}

/// The place of an environment into which a revision may be chosen.
fn may_choose(spec: &Spec, pipeline: &str, name: &Environment) -> Result<usize, Refusal> {
    let Some(index) = place(spec, name) else {
        let has = spec.environments.iter().map(|one| one.name.0.clone()).collect();
        return Err(Refusal::NoEnvironment { pipeline: pipeline.to_owned(), name: name.0.clone(), has });
    };
    let own = spec.environments.get(index);
    if own.is_some_and(EnvironmentSpec::is_first) {
        return Err(Refusal::First(name.clone(), pipeline.to_owned()));
    }
    if let Some(why) = &spec.suspended {
        let resume = format!("allclear pipeline resume {pipeline}");
        return Err(Refusal::Stopped(pipeline.to_owned(), why.clone(), resume));
    }
    if own.is_some_and(|own| own.suspended) {
        let why = "its spec says so".to_owned();
        return Err(Refusal::Stopped(format!("{name} of {pipeline}"), why, "suspend: false".to_owned()));
    }
    if own.is_none_or(|own| own.promotion.is_none()) {
        return Err(Refusal::Observed(name.clone(), pipeline.to_owned()));
    }
    Ok(index)
}

fn place(spec: &Spec, name: &Environment) -> Option<usize> {
    spec.environments.iter().position(|one| one.name == *name)
}

/// What a person should know: what ends, and what does not come by itself after it.
fn facts(spec: &Spec, status: &Status, index: usize, revision: &Revision) -> Vec<String> {
    let known = spec.environments.get(index).and_then(|own| status.environment(&own.name));
    let open = known.and_then(EnvironmentStatus::open);
    let ends =
        open.map(|open| format!("promotion {} of {}, which is {}, ends", open.seq, open.revision, open.phase.name()));
    let earlier = known.and_then(|known| known.chosen.as_ref()).filter(|chosen| !chosen.over.is_empty());
    let earlier = earlier.filter(|chosen| chosen.revision != *revision);
    let replaces = earlier.map(|chosen| {
        let by = chosen.by.as_deref().unwrap_or("a person");
        format!("it takes the place of {}, which {by} chose", chosen.revision)
    });
    let request = known.and_then(|known| known.request.as_ref()).and_then(|request| request.number);
    let request =
        request.map(|number| format!("pull request {number} stays open until this one starts: do not merge it"));
    let own = spec.environments.get(index).into_iter();
    let after = own.flat_map(|own| spec.following(&own.name)).filter(|after| after.promotion.is_some());
    let after = after.map(|after| match spec.advance {
        Advance::Stepwise if after.after.len() > 1 => {
            format!("{} gets it by itself once all just before it have had it, as its gates allow", after.name)
        }
        Advance::Stepwise => format!("{} gets it after that by itself, as its gates allow", after.name),
        Advance::Latest => format!("{} waits until all before it are at one revision", after.name),
    });
    ends.into_iter().chain(request).chain(replaces).chain(after).collect()
}
