//! A Repo's JSON, read and checked. What is wrong with its spec is part of what was read: the object still has a status, which says
//! so. A status that cannot be read makes the whole object unreadable, for nothing may be decided without what it remembers.
//!
//! The API server has checked most of it by the CRD. It is checked again, because another CRD may serve the kind.

use std::ops::RangeInclusive;
use std::time::Duration;

use kernel::id::RepoId;
use kernel::text::{clean, is_hidden};
use objects::apps::app::{ClusterKey, TargetKey};
use objects::repo::spec::{
    Approving, DestroySteps, DriftLooks, Gates, Keep, Object, OnDelete, OnDrift, Preset, Provider, ReportTo, Retry,
    Runner, Spec, Steps,
};
use objects::repo::status::Action;
use serde_json::value::RawValue;

use super::super::checks::{
    InvalidSpec, at_most, duration, each, freeze, given, invalid, is_elsewhere, need, object_name, stalled_after,
    verdict, window,
};
use super::super::metadata::{MESSAGE_BYTES_MAX, Metadata, RawObject};
use super::super::raw_spec::{Forge, Need};
use super::extras::extras;
use super::git::source;
use super::outputs::{OUTPUT, outputs};
use super::{raw_spec as raw, remembered};

const INTERVAL: Duration = Duration::from_secs(60);
const INTERVAL_MIN: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_secs(60 * 60);
const GRACE: Duration = Duration::from_secs(5 * 60);
const BACKOFF: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Between two looks at drift. The longest is that of every duration in a spec.
const DRIFT_MIN: Duration = Duration::from_secs(10 * 60);
/// Attempts of an apply after the first.
const RETRIES: RangeInclusive<i64> = 0..=10;
/// Ended Jobs that may be kept, and are kept unless a spec says otherwise.
const KEPT: RangeInclusive<i64> = 0..=50;
const KEEP: i64 = 3;
/// Words of one command, and bytes of one of them.
const WORDS_MAX: usize = 100;
const WORD_BYTES_MAX: usize = 4096;
/// Longest name of an image, in bytes: a registry's host, a path and a digest.
const IMAGE_BYTES_MAX: usize = 512;
/// Longest name of a workspace (<https://developer.hashicorp.com/terraform/cloud-docs/workspaces/create>).
const WORKSPACE_BYTES_MAX: usize = 90;
/// Plans, and writes the plan as JSON. A first process of a container gets no signal that it does not handle, so this shell hands
/// SIGTERM on and waits: Terraform gives the lock of its state back.
const PLAN: &str = "plan='' stopped=''
trap 'stopped=1; [ -z \"$plan\" ] || kill -TERM \"$plan\"' TERM
terraform plan -input=false -no-color -out=/workspace/out/plan.bin \"$@\" & plan=$!
[ -z \"$stopped\" ] || kill -TERM \"$plan\"
while wait \"$plan\"; code=$?; kill -0 \"$plan\" 2>/dev/null; do :; done
[ \"$code\" -eq 0 ] || exit \"$code\"
exec terraform show -json /workspace/out/plan.bin > /workspace/out/plan.json";
/// The last words of what applies that plan.
const PLANNED: [&str; 2] = ["-no-color", "/workspace/out/plan.bin"];
/// What to do about a status that is not ours: nothing else than a hand or a later version writes one.
const MEND_STATUS: &str = "If a later version wrote it, use that one; if it was edited, put it back (kubectl edit \
                           --subresource=status), or remove it: then the newest commit is run once more";

/// What this installation of allclear adds to each spec.
#[derive(Clone, Debug, Default)]
pub struct Installation {
    /// The image of the preset Terraform.
    pub terraform_image: String,
    /// The namespace that allclear itself runs in, if that is known. No Repo is run there.
    pub namespace: Option<String>,
    /// A cluster that another namespace names is wrong in a spec (`pipeline.cross_namespace`).
    pub confined: bool,
}

/// Reads a Repo.
///
/// # Errors
/// When its metadata or its status cannot be read, in words.
pub fn object(json: &str, installation: &Installation) -> Result<Object, String> {
    let RawObject { metadata, spec, status } = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let raw: Result<raw::RepoSpec, InvalidSpec> = match spec {
        Some(spec) => serde_json::from_str(spec.get()).map_err(|error| InvalidSpec(error.to_string())),
        None => invalid("spec is missing"),
    };
    let spec = raw.and_then(|raw| spec_of(&raw, &metadata, installation));
    Ok(Object {
        id: RepoId::new(metadata.namespace.as_str(), metadata.name.as_str()),
        answers: metadata.answers(),
        deleting: metadata.is_deleting(),
        finalizers: metadata.finalizers(),
        uid: metadata.uid,
        generation: metadata.generation.unwrap_or_default(),
        version: metadata.resource_version,
        spec: spec.map_err(|why| clean(&why.0, MESSAGE_BYTES_MAX)),
        status: remembered::read(status.map(RawValue::get))
            .map_err(|why| format!("its status: {why}. {MEND_STATUS}"))?,
    })
}

fn spec_of(raw: &raw::RepoSpec, metadata: &Metadata, installation: &Installation) -> Result<Spec, InvalidSpec> {
    if installation.namespace.as_ref() == Some(&metadata.namespace) {
        return invalid(
            "Repos are refused in the namespace of allclear itself: those who may push to its ref could use allclear's \
             own account. Create it in another namespace",
        );
    }
    let runner = runner(raw, installation)?;
    let outputs = outputs(raw.outputs.as_ref(), &runner.steps)?;
    Ok(Spec {
        source: source(raw)?,
        interval: between(&raw.interval, "interval", INTERVAL, INTERVAL_MIN..=DAY)?,
        approval: raw.approval,
        drift: drift(raw, &runner.steps)?,
        report: raw.report.as_ref().map(report).transpose()?,
        runner: Runner { outputs, ..runner },
        workspace: workspace(&raw.workspace)?,
        retry: retry(&raw.retry)?,
        gates: gates(&raw.gates, metadata, installation)?,
        suspended: metadata.suspended(raw.suspend),
        keep: Keep {
            succeeded: kept(raw.keep.succeeded, "keep.succeeded")?,
            failed: kept(raw.keep.failed, "keep.failed")?,
        },
        stalled_after: stalled_after(&raw.stalled_after)?,
    })
}

fn runner(spec: &raw::RepoSpec, installation: &Installation) -> Result<Runner, InvalidSpec> {
    let raw = &spec.runner;
    let preset = raw.preset;
    let image = match (given(&raw.image), preset) {
        (Some(image), Preset::Terraform | Preset::Command) => image,
        (None, Preset::Terraform) => installation.terraform_image.clone(),
        (None, Preset::Command) => return invalid("runner.image is missing, which the preset Command needs"),
    };
    if image.len() > IMAGE_BYTES_MAX || image.contains(|one: char| is_hidden(one) || one.is_whitespace()) {
        return invalid("runner.image is no name of an image");
    }
    if let Some(name) = given(&raw.service_account_name) {
        object_name(&name, "runner.serviceAccountName")?;
    }
    Ok(Runner {
        preset,
        image,
        steps: steps(raw, preset, spec.approval)?,
        destroy: destroy(raw, spec.approval, spec.on_delete)?,
        service_account: given(&raw.service_account_name),
        kubernetes_token: raw.kubernetes_token,
        local_state: raw.allow_local_state,
        deadline: between(&raw.deadline, "runner.deadline", DEADLINE, MINUTE..=DAY)?,
        grace: between(&raw.grace, "runner.grace", GRACE, Duration::ZERO..=HOUR)?,
        extras: extras(raw)?,
        outputs: None,
    })
}

/// The commands: those of the spec before those of the preset.
fn steps(raw: &raw::RunnerSpec, preset: Preset, approval: Approving) -> Result<Steps, InvalidSpec> {
    let lock = lock(raw)?;
    let presets = match preset {
        Preset::Terraform => terraform(approval, lock),
        Preset::Command => Steps::default(),
    };
    let raw = &raw.steps;
    let steps = Steps {
        prepare: command(&raw.prepare, "prepare", presets.prepare)?,
        plan: command(&raw.plan, "plan", presets.plan)?,
        apply: command(&raw.apply, "apply", presets.apply)?,
        output: command(&raw.output, "output", presets.output)?,
    };
    if steps.apply.is_empty() && approval != Approving::Never {
        return invalid("runner.steps.apply is missing, and nothing would be done");
    }
    if approval.first() == Action::Plan && steps.plan.is_empty() {
        return invalid(format!("runner.steps.plan is missing, which approval: {} needs", approval.name()));
    }
    Ok(steps)
}

/// How long Terraform waits for the lock of its state, as an argument.
fn lock(raw: &raw::RunnerSpec) -> Result<Vec<String>, InvalidSpec> {
    let lock = between(&raw.lock_timeout, "runner.lockTimeout", Duration::ZERO, Duration::ZERO..=HOUR)?;
    Ok(Vec::from_iter((!lock.is_zero()).then(|| format!("-lock-timeout={}s", lock.as_secs()))))
}

/// The steps of Terraform. A plan file exists only where a plan is asked for.
fn terraform(approval: Approving, lock: Vec<String>) -> Steps {
    let last = match approval {
        Approving::Plan | Approving::Never => PLANNED,
        Approving::Auto | Approving::Revision => ["-auto-approve", "-no-color"],
    };
    Steps {
        prepare: words(&["terraform", "init", "-input=false", "-no-color"]),
        plan: [words(&["sh", "-c", PLAN, "plan"]), lock.clone()].concat(),
        apply: [words(&["terraform", "apply", "-input=false"]), lock, words(&last)].concat(),
        output: words(&["sh", "-c", OUTPUT]),
    }
}

/// Looks at drift, which are plans.
fn drift(raw: &raw::RepoSpec, steps: &Steps) -> Result<Option<DriftLooks>, InvalidSpec> {
    let Some(every) = duration(&raw.drift_every, "driftEvery")? else {
        return match raw.on_drift {
            Some(_) => invalid("onDrift says what follows on drift, and without driftEvery nothing looks for it"),
            None => Ok(None),
        };
    };
    if every < DRIFT_MIN {
        return invalid("driftEvery is shorter than 10m");
    }
    if raw.approval == Approving::Never && raw.on_drift == Some(OnDrift::Apply) {
        return invalid("onDrift: Apply runs the commit once more, which approval: Never forbids");
    }
    if steps.plan.is_empty() {
        return invalid("runner.steps.plan is missing, which driftEvery needs: a look at drift is a plan");
    }
    Ok(Some(DriftLooks { every, then: raw.on_drift.unwrap_or_default() }))
}

/// Where runs are reported.
fn report(raw: &raw::Report) -> Result<ReportTo, InvalidSpec> {
    let provider = match raw.forge {
        Forge::GitHub => Provider::GitHub,
        Forge::GitLab => Provider::GitLab,
        Forge::Gitea => Provider::Gitea,
        Forge::BitbucketServer | Forge::BitbucketCloud | Forge::AzureDevops => {
            return invalid("report.type is github, gitlab or gitea: others are not supported");
        }
    };
    let Some(secret) = &raw.secret_ref else {
        return invalid("report.secretRef is missing: the Secret with the token for the forge");
    };
    object_name(&secret.name, "report.secretRef.name")?;
    Ok(ReportTo { provider, secret: secret.name.clone(), detail: raw.detail })
}

/// What destroys, where people are asked about that. A command of theirs says nothing of how it destroys.
fn destroy(
    raw: &raw::RunnerSpec,
    approval: Approving,
    on_delete: OnDelete,
) -> Result<Option<DestroySteps>, InvalidSpec> {
    let given = &raw.steps;
    // They are checked also where nothing asks for them.
    let is_theirs = raw.preset == Preset::Command || given.plan.is_some() || given.apply.is_some();
    let presets = if is_theirs { DestroySteps::default() } else { terraform_destroy(lock(raw)?) };
    let steps = DestroySteps {
        plan: command(&given.destroy_plan, "destroyPlan", presets.plan)?,
        destroy: command(&given.destroy, "destroy", presets.destroy)?,
    };
    if on_delete == OnDelete::Keep {
        return Ok(None);
    }
    if approval == Approving::Never {
        return invalid("onDelete: Ask is not for approval: Never, which applies nothing that could be destroyed");
    }
    if steps.plan.is_empty() || steps.destroy.is_empty() {
        return invalid(
            "onDelete: Ask needs runner.steps.destroyPlan and runner.steps.destroy: only the steps plan and apply of the preset \
             Terraform say by themselves how they destroy",
        );
    }
    Ok(Some(steps))
}

/// The steps by which Terraform destroys: it applies a plan that destroys, and none other.
fn terraform_destroy(lock: Vec<String>) -> DestroySteps {
    DestroySteps {
        plan: [words(&["sh", "-c", PLAN, "plan", "-destroy"]), lock.clone()].concat(),
        destroy: [words(&["terraform", "apply", "-input=false"]), lock, words(&PLANNED)].concat(),
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn command(raw: &Option<Vec<String>>, step: &str, preset: Vec<String>) -> Result<Vec<String>, InvalidSpec> {
    let Some(command) = raw else { return Ok(preset) };
    at_most(WORDS_MAX, command.len(), &format!("words of runner.steps.{step}"))?;
    if command.iter().any(|word| word.len() > WORD_BYTES_MAX || word.contains('\0')) {
        return invalid(format!(
            "a word of runner.steps.{step} is longer than {WORD_BYTES_MAX} bytes or has a zero byte in it"
        ));
    }
    if command.first().is_some_and(String::is_empty) {
        return invalid(format!(
            "runner.steps.{step} begins with an empty word; it is a list of words, the program first"
        ));
    }
    Ok(command.clone())
}

fn workspace(text: &Option<String>) -> Result<Option<String>, InvalidSpec> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-');
    match given(text) {
        Some(name) if name.len() > WORKSPACE_BYTES_MAX || !name.bytes().all(is_known) => invalid(format!(
            "workspace is no name of a workspace, which has up to 90 letters, digits, ., _, ~ and -: {name:?}"
        )),
        name => Ok(name),
    }
}

fn retry(raw: &raw::Retry) -> Result<Retry, InvalidSpec> {
    let limit = Some(raw.limit).filter(|limit| RETRIES.contains(limit)).and_then(|limit| u32::try_from(limit).ok());
    let Some(limit) = limit else { return invalid("retry.limit is not between 0 and 10") };
    Ok(Retry { limit, backoff: between(&raw.backoff, "retry.backoff", BACKOFF, SECOND..=HOUR)? })
}

fn gates(raw: &raw::Gates, metadata: &Metadata, installation: &Installation) -> Result<Gates, InvalidSpec> {
    Ok(Gates {
        windows: each(&raw.windows, "windows", window)?,
        freezes: each(&raw.freezes, "freezes", freeze)?,
        verdict: raw.verdict.as_ref().map(verdict).transpose()?,
        needs: each(&raw.needs, "needs", |one| needed(one, metadata, installation))?,
    })
}

fn needed(raw: &Need, metadata: &Metadata, installation: &Installation) -> Result<TargetKey, InvalidSpec> {
    let need = need(raw, &metadata.namespace, "Repo")?;
    let (group, kind) = (need.app.api_version.split_once('/').map(|(group, _)| group), need.app.kind.as_str());
    let is_own_kind = need.cluster == ClusterKey::Here && (group, kind) == (Some("allclear.dev"), "Repo");
    if is_own_kind && (&need.namespace, &need.name) == (&metadata.namespace, &metadata.name) {
        return invalid("gates.needs names this Repo itself, which is ready only after the apply that waits for it");
    }
    match is_elsewhere(&need, &metadata.namespace).filter(|_| installation.confined) {
        Some(why) => invalid(why),
        None => Ok(need),
    }
}

fn kept(raw: Option<i64>, field: &str) -> Result<usize, InvalidSpec> {
    let kept = Some(raw.unwrap_or(KEEP)).filter(|count| KEPT.contains(count));
    match kept.and_then(|count| usize::try_from(count).ok()) {
        Some(count) => Ok(count),
        None => invalid(format!("{field} is not between 0 and 50")),
    }
}

/// A duration within its limits, both included.
fn between(
    text: &Option<String>,
    field: &str,
    otherwise: Duration,
    limits: RangeInclusive<Duration>,
) -> Result<Duration, InvalidSpec> {
    let duration = duration(text, field)?.unwrap_or(otherwise);
    if limits.contains(&duration) {
        return Ok(duration);
    }
    let words = |limit: &Duration| humantime::format_duration(*limit).to_string();
    invalid(format!("{field} is not between {} and {}", words(limits.start()), words(limits.end())))
}

#[cfg(test)]
mod tests;
