//! `argoproj.io/v1alpha1` Rollout: canary and blue-green, as Argo Rollouts 1.0 and later report it.
//! <https://github.com/argoproj/argo-rollouts/blob/v1.8.3/utils/rollout/rolloututil.go>
//!
//! Its own `Healthy` is asked for and does not suffice: where old pods run on by design, the counts of a canary take them for new ones.
//!
//! Not for what is in a template that is another workload's (`spec.workloadRef`): who reads the Rollout brings both together.

use serde_json::Value;

use crate::deployment::deadline;
use crate::object::{Object, repeated};
use crate::reported::{GivenUp, Replicas, Says};
use crate::{Newest, Own, Stable, WORKLOAD_GENERATION, counted};
use kernel::unreadable::Unreadable;

const WORKLOAD_REF: &str = "/spec/workloadRef";
const OBSERVED: &str = "/status/observedGeneration";
const STEPS: &str = "/spec/strategy/canary/steps";

/// The phases of an analysis that has not ended.
const RUNNING: [&str; 2] = ["Pending", "Running"];

pub(super) fn read(object: Object<'_>) -> Result<Own, Unreadable> {
    let replicas = replicas(object)?;
    let is_stable = is_stable(object)?;
    let newest = object.text("/status/currentPodHash")?;
    Ok(Own {
        replicas,
        says: says(object, is_stable)?,
        deadline: deadline(object)?,
        starting: !is_stable,
        newest: newest.map_or(Newest::Unsaid, |hash| Newest::Labelled(hash.to_owned())),
        stable: stable(object, is_stable)?,
        ..Own::default()
    })
}

/// What the controller has acted on: a number that it writes as a text. Before 0.10 it was a hash, which says nothing; [`says`] holds
/// such a Rollout.
pub(super) fn observed_generation(object: Object<'_>) -> Result<Option<i64>, Unreadable> {
    match object.text(OBSERVED)? {
        Some(text) if text.parse::<i64>().is_err() => object.number("/metadata/generation"),
        _ => object.observed_generation(),
    }
}

/// Where old pods run on for a while although no request is sent to them, they are not counted once the new ones are the stable ones: of
/// a blue-green Rollout `availableReplicas` is about its active pods alone, of a canary with traffic routing about all.
fn replicas(object: Object<'_>) -> Result<Replicas, Unreadable> {
    let replicas = counted(object)?;
    let (total, old) = (replicas.updated, replicas.old());
    if !is_stable(object)? {
        return Ok(replicas);
    }
    Ok(if is_blue_green(object) {
        Replicas { total, ..replicas }
    } else if object.at("/spec/strategy/canary/trafficRouting").is_some() {
        let (ready, available) = (replicas.ready.saturating_sub(old), replicas.available.saturating_sub(old));
        Replicas { total, ready, available, ..replicas }
    } else {
        replicas
    })
}

/// The pods before an update that is aborted. New ones stay for a while where no request is sent to them, and are not counted then.
fn stable(object: Object<'_>, is_stable: bool) -> Result<Option<Stable>, Unreadable> {
    let hash = object.text("/status/stableRS")?.filter(|hash| !hash.is_empty());
    let Some(hash) = hash.filter(|_| !is_stable) else { return Ok(None) };
    if !object.flag("/status/abort")? {
        return Ok(None);
    }
    let (all, is_routed) = (counted(object)?, object.at("/spec/strategy/canary/trafficRouting").is_some());
    let before = all.old();
    let replicas = match () {
        () if is_blue_green(object) => Replicas { total: before, updated: before, ..all },
        () if is_routed => {
            Replicas { total: before, updated: before, available: all.available.saturating_sub(all.updated), ..all }
        }
        () => Replicas { updated: before, ..all },
    };
    Ok(Some(Stable { hash: hash.to_owned(), replicas, says: goes_back(object, hash)? }))
}

/// How far an update that is aborted has gone back, beside its counts.
fn goes_back(object: Object<'_>, stable: &str) -> Result<Says, Unreadable> {
    let unfinished = |what: &str| Ok(Says::Unfinished(what.to_owned()));
    if object.flag("/spec/paused")? {
        return Ok(Says::Held("the rollout is paused".to_owned()));
    }
    if object.text("/status/phase")? != Some("Degraded") {
        return unfinished("its controller has not acted on the abort yet");
    }
    if is_blue_green(object) && object.text("/status/blueGreen/activeSelector")? != Some(stable) {
        return unfinished("its active Service does not lead to the pods before yet");
    }
    if object.count("/status/canary/weights/canary/weight")? > 0 {
        return unfinished("its canary still has some of the traffic");
    }
    Ok(Says::Counts)
}

fn is_blue_green(object: Object<'_>) -> bool {
    object.at("/spec/strategy/blueGreen").is_some()
}

/// Whether the newest pods are those that stay: promoted, and where Services are switched, with the active one leading to them.
fn is_stable(object: Object<'_>) -> Result<bool, Unreadable> {
    let newest = object.text("/status/currentPodHash")?.filter(|hash| !hash.is_empty());
    let is_newest = |at: &str| -> Result<bool, Unreadable> { Ok(newest.is_some() && object.text(at)? == newest) };
    Ok(is_newest("/status/stableRS")? && (!is_blue_green(object) || is_newest("/status/blueGreen/activeSelector")?))
}

fn says(object: Object<'_>, is_stable: bool) -> Result<Says, Unreadable> {
    if let Some(text) = object.text(OBSERVED)?.filter(|text| text.parse::<i64>().is_err()) {
        let text = repeated(text);
        return Ok(Says::Held(format!(
            "its status is of an Argo Rollouts before 1.0: observedGeneration is {text:?}, and no number"
        )));
    }
    if let Some(generation) = unobserved_workload(object)? {
        return Ok(Says::Unfinished(format!(
            "its controller has not acted on generation {generation} of the workload with its template yet"
        )));
    }
    let message = object.text("/status/message")?.map_or_else(String::new, repeated);
    let phase = object.text("/status/phase")?.unwrap_or_default();
    if object.flag("/status/abort")? && !is_stable {
        return Ok(Says::GivenUp(GivenUp::Aborted(message)));
    }
    if let Some(why) = held(object)? {
        return Ok(Says::Held(why));
    }
    Ok(match phase {
        // The abort is over, and the phase is still of it.
        "Degraded" if message.starts_with("RolloutAborted") => Says::Unfinished("it is tried again".to_owned()),
        "Degraded" => Says::GivenUp(GivenUp::Degraded(message)),
        "Healthy" if !is_stable => Says::Unfinished("its newest pods are not the stable ones yet".to_owned()),
        "Healthy" => Says::Counts,
        "" => Says::Unfinished("its controller has said nothing of it yet".to_owned()),
        phase if message.is_empty() => Says::Unfinished(format!("it is {}", repeated(phase))),
        phase => Says::Unfinished(format!("it is {}: {message}", repeated(phase))),
    })
}

/// The Deployment that a template is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateFrom<'a> {
    pub deployment: &'a str,
    /// The generation of it that the controller has noted.
    pub noted: Option<i64>,
}

/// The Deployment that the template of a Rollout is from, if it has none of its own.
///
/// # Errors
/// When that is an object of another kind.
pub fn template_from(object: Object<'_>) -> Result<Option<TemplateFrom<'_>>, Unreadable> {
    if object.at(WORKLOAD_REF).is_none() {
        return Ok(None);
    }
    let [api, kind, name] = ["apiVersion", "kind", "name"].map(|field| object.text(&format!("{WORKLOAD_REF}/{field}")));
    let (api, kind, name) = (api?.unwrap_or_default(), kind?.unwrap_or_default(), name?.unwrap_or_default());
    if (api, kind) != ("apps/v1", "Deployment") || name.is_empty() {
        return Err(Unreadable::because(format!(
            "its template is that of {} {} (spec.workloadRef), and only Deployments of apps/v1 are read: refer to one, or give the Rollout a \
             template of its own",
            repeated(kind),
            repeated(name)
        )));
    }
    Ok(Some(TemplateFrom { deployment: name, noted: noted(object)?.and_then(|noted| noted.parse().ok()) }))
}

/// The generation of the workload with its template that the controller has noted.
fn noted(object: Object<'_>) -> Result<Option<&str>, Unreadable> {
    object.text(&format!("/metadata/annotations/{}", WORKLOAD_GENERATION.replace('/', "~1")))
}

/// The one that it has not acted on.
fn unobserved_workload(object: Object<'_>) -> Result<Option<&str>, Unreadable> {
    let generation = noted(object)?.filter(|_| object.at(WORKLOAD_REF).is_some());
    let observed = object.text("/status/workloadObservedGeneration")?;
    Ok(generation.filter(|generation| observed != Some(generation)))
}

/// What a rollout waits for that has no clock: a person, a time, an analysis.
fn held(object: Object<'_>) -> Result<Option<String>, Unreadable> {
    if object.flag("/spec/paused")? {
        return Ok(Some("the rollout is paused".to_owned()));
    }
    let step = step(object)?;
    let at_step = |what: &str| match &step {
        Some((number, steps, _)) => format!("it is at step {number} of {steps} of its canary: {what}"),
        None => format!("its update waits: {what}"),
    };
    if let Some(pause) = object.list("/status/pauseConditions")?.first() {
        return Ok(Some(match Object(pause).text("/reason")?.unwrap_or_default() {
            "CanaryPauseStep" => at_step(&pause_of(step.as_ref().map(|(_, _, step)| *step))?),
            "BlueGreenPause" => "its new pods wait behind the preview Service until they are promoted".to_owned(),
            reason => at_step(&format!("{}, which a person has to judge", repeated(reason))),
        }));
    }
    for (at, what) in [
        ("/status/canary/currentStepAnalysisRunStatus", "the analysis"),
        ("/status/blueGreen/prePromotionAnalysisRunStatus", "the analysis before its promotion"),
        ("/status/blueGreen/postPromotionAnalysisRunStatus", "the analysis after its promotion"),
    ] {
        let phase = object.text(&format!("{at}/status"))?.unwrap_or_default();
        if RUNNING.contains(&phase) {
            let name = object.text(&format!("{at}/name"))?.map_or_else(String::new, repeated);
            return Ok(Some(at_step(&format!("{what} {name} runs"))));
        }
    }
    if let Some((_, _, step)) = &step {
        for (at, what) in [
            ("/experiment", "an experiment runs"),
            ("/analysis", "an analysis is about to run"),
            ("/plugin", "a plugin works"),
        ] {
            if step.at(at).is_some() {
                return Ok(Some(at_step(what)));
            }
        }
    }
    let restart = object.text("/spec/restartAt")?.filter(|_| object.text("/status/phase") != Ok(Some("Healthy")));
    let pending = restart.filter(|at| object.text("/status/restartedAt") != Ok(Some(*at)));
    Ok(pending.map(|at| format!("a restart of its pods is due at {}", repeated(at))))
}

/// The step that an update of a canary is at, by its number, and how many there are.
fn step(object: Object<'_>) -> Result<Option<(usize, usize, Object<'_>)>, Unreadable> {
    let steps = object.list(STEPS)?;
    let at = usize::try_from(object.count("/status/currentStepIndex")?).unwrap_or(usize::MAX);
    let is_said = object.at("/status/currentStepIndex").is_some() && !is_blue_green(object);
    Ok(steps.get(at).filter(|_| is_said).map(|step| (at.saturating_add(1), steps.len(), Object(step))))
}

fn pause_of(step: Option<Object<'_>>) -> Result<String, Unreadable> {
    let duration = step.map(|step| step.scalar("/pause/duration")).transpose()?.flatten();
    let is_number = step.is_some_and(|step| step.at("/pause/duration").is_some_and(Value::is_number));
    Ok(match duration {
        Some(seconds) if is_number => format!("a pause of {seconds}s"),
        Some(duration) => format!("a pause of {}", repeated(&duration)),
        None => "a pause until it is promoted".to_owned(),
    })
}
