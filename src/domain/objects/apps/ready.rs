//! Whether an app is ready, and which revision it runs: one look at one object, judged by its kind.
//!
//! | kind | ready, if it is not being deleted and its controller has acted on the newest spec | revision |
//! |---|---|---|
//! | Deployment, StatefulSet, DaemonSet, Argo Rollout | [`kinds`] says complete, as for a purge | of the image |
//! | HelmRelease | `Ready`, not suspended, its newest release is deployed | that one's chart version; before v2 `lastAppliedRevision` |
//! | Kustomization, Terraform | `Ready`, not suspended | `lastAppliedRevision`; from an OCI artifact `lastAppliedOriginRevision` |
//! | Argo CD Application | Synced, Healthy, its last operation succeeded, none runs, compared with the source of its spec; twice | `sync.revision`, or all of `sync.revisions` |
//! | Repo | `Ready`, and not because it only plans | as any other |
//! | any other | condition `Ready`, or what `readyAt` names is `readyValue`; twice where it does not say what it has acted on | what `revisionAt` names |
//!
//! `readyAt` and `revisionAt` overrule the rules of the kinds above, too. Twice: an Application's health lags behind its sync
//! (<https://github.com/akuity/kargo/issues/2196>), so one look may show the new revision with the old health.
//!
//! Not for the second look; that is `leaf`'s.

use serde_json::{Map, Value};

use crate::apps::app::{AppKind, Look, NoRevision, Present};
use kernel::id::{Kind, Revision};
use kernel::names::image::Image;
use kernel::text::is_hidden;
use kernel::unreadable::Unreadable;
use kinds::object::{Object, dotted, repeated};
use kinds::reported::{GivenUp, Standing};

/// Longest revision in bytes. A tag of 128 characters with the longest digest has 264; an Application of twelve sources 491.
pub const REVISION_BYTES_MAX: usize = 512;

/// The default of [`AppKind::ready_value`].
const READY_VALUE_DEFAULT: &str = "True";

/// Where Flux says which commit an OCI artifact was made of.
const ORIGIN: &str = "/status/lastAppliedOriginRevision";

/// Longest text that is repeated from where people point: what is there was not written to be shown.
const POINTED_BYTES_MAX: usize = 256;

/// The reason of `Ready` where the wanted commit of a Repo is planned, which is all that is wanted of it.
pub const ONLY_PLANNED: &str = "Planned";

/// The annotation in which kubectl keeps the whole object.
const LAST_APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// Why nobody may point there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutOfBounds(&'static str);

/// Whether the author of a spec may point there in another's object (decision 58): what is found is shown to all who may read his. A
/// spec may hold passwords, as values of the environment.
///
/// # Errors
/// Where what is there may be secret.
pub fn may_point_at(pointer: &str) -> Result<(), OutOfBounds> {
    let is_within = |part: &str| pointer.strip_prefix(part).is_some_and(|rest| rest.starts_with('/'));
    let is_image = pointer.rsplit('/').next() == Some("image");
    match () {
        () if !pointer.starts_with('/') => Err(OutOfBounds("is no JSON pointer, such as /status/version")),
        () if pointer == LAST_APPLIED => Err(OutOfBounds("leads to the whole object, which is never shown")),
        () if ["/status", "/metadata/labels", "/metadata/annotations"].into_iter().any(is_within) || is_image => Ok(()),
        () => Err(OutOfBounds(
            "leads elsewhere than into status, metadata.labels, metadata.annotations or to an image; what is there may be \
             secret, so let its controller or its author say the version in one of these",
        )),
    }
}

/// Why no app of a kind can be at a revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("it is empty")]
    Empty,
    #[error("it has more than {REVISION_BYTES_MAX} bytes")]
    Long,
    #[error("it has blanks, or characters that cannot be seen")]
    Blank,
    #[error("the revision of a set is written {0}")]
    Set(String),
    #[error("no image has such a tag or digest: {0}")]
    Image(#[from] kernel::names::image::Error),
}

/// Whether an app of this kind can be at a revision, as far as its form says.
///
/// # Errors
/// Why none can.
pub fn form_of_revision(app: &AppKind, revision: &str) -> Result<(), Unfit> {
    match () {
        () if revision.is_empty() => return Err(Unfit::Empty),
        () if revision.len() > REVISION_BYTES_MAX => return Err(Unfit::Long),
        () if revision.contains(|c: char| c.is_whitespace() || is_hidden(c)) => return Err(Unfit::Blank),
        () if app.revision_at.is_some() => return Ok(()),
        () => {}
    }
    if let Rules::Workload(_) = Rules::of(app) {
        // A digest stands alone, or after the tag.
        let join = if revision.contains(':') && !revision.contains('@') { '@' } else { ':' };
        Image::parse(&format!("image{join}{revision}"))?;
    }
    Ok(())
}

/// Judges one look at an object; `name` is the app's own.
///
/// # Errors
/// When a field that is used is missing or of another type than its kind gives it.
pub fn look(app: &AppKind, name: &str, object: &Value) -> Result<Look, Unreadable> {
    let object = Object(object);
    let uid = object.text("/metadata/uid")?.ok_or_else(|| Unreadable::because("it has no .metadata.uid"))?.to_owned();
    let rules = Rules::of(app);
    let acted = Acted::read(rules, object)?;
    let unready = unready(app, rules, acted, object)?;
    let revision = match &app.revision_at {
        Some(at) => pointed_revision(object, at),
        None => revision(app, name, rules, object),
    };
    Ok(Look { present: Present { uid, unready, revision: revision.and_then(checked) }, twice: acted == Acted::Unsaid })
}

/// By which rules an object is judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// Those of a kind that purges follow, too.
    Workload(Kind),
    HelmRelease,
    Applied,
    Application,
    Repo,
    Other,
}

impl Rules {
    fn of(app: &AppKind) -> Self {
        let group = app.api_version.split_once('/').map_or("", |(group, _)| group);
        match (group, app.kind.as_str()) {
            ("helm.toolkit.fluxcd.io", "HelmRelease") => Self::HelmRelease,
            ("kustomize.toolkit.fluxcd.io", "Kustomization") | ("infra.contrib.fluxcd.io", "Terraform") => {
                Self::Applied
            }
            ("argoproj.io", "Application") => Self::Application,
            ("argoproj.io", "Rollout") => Self::Workload(Kind::Rollout),
            ("apps", "Deployment") => Self::Workload(Kind::Deployment),
            ("apps", "StatefulSet") => Self::Workload(Kind::StatefulSet),
            ("allclear.dev", "Repo") => Self::Repo,
            ("apps", "DaemonSet") => Self::Workload(Kind::DaemonSet),
            _ => Self::Other,
        }
    }
}

/// Whether a controller has acted on the newest spec.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Acted {
    Yes,
    /// Not on this generation.
    NotOn(i64),
    /// Its kind does not say.
    Unsaid,
}

impl Acted {
    fn read(rules: Rules, object: Object<'_>) -> Result<Self, Unreadable> {
        let generation = object.number("/metadata/generation")?.unwrap_or_default();
        let observed = match rules {
            Rules::Application => None,
            // Some kinds say it in their conditions alone.
            Rules::Repo | Rules::Other => match object.observed_generation()? {
                None => object.condition("Ready")?.and_then(|ready| ready.generation),
                observed => observed,
            },
            // All others publish it with the first status they write.
            _ => Some(object.observed_generation()?.unwrap_or_default()),
        };
        Ok(match observed {
            Some(observed) if observed >= generation => Self::Yes,
            Some(_) => Self::NotOn(generation),
            None => Self::Unsaid,
        })
    }
}

/// Why it is not ready.
fn unready(app: &AppKind, rules: Rules, acted: Acted, object: Object<'_>) -> Result<Option<String>, Unreadable> {
    if object.at("/metadata/deletionTimestamp").is_some() {
        return Ok(Some("it is being deleted".to_owned()));
    }
    if matches!(rules, Rules::HelmRelease | Rules::Applied) && object.flag("/spec/suspend")? {
        return Ok(Some("it is suspended".to_owned()));
    }
    if let Acted::NotOn(generation) = acted {
        return Ok(Some(format!("its controller has not acted on generation {generation} yet")));
    }
    if let Some(at) = &app.ready_at {
        return value(object, at, app.ready_value.as_deref().unwrap_or(READY_VALUE_DEFAULT));
    }
    match rules {
        Rules::Workload(kind) => workload(kind, object),
        Rules::HelmRelease => helm_release(object),
        Rules::Applied | Rules::Other => ready_condition(object),
        Rules::Application => application(object),
        Rules::Repo => repo(object),
    }
}

fn workload(kind: Kind, object: Object<'_>) -> Result<Option<String>, Unreadable> {
    let report = kinds::read(kind, object)?;
    let reported = report.reported();
    Ok(match reported.standing(false) {
        Standing::Complete => None,
        Standing::Waiting(wait) => Some(wait.to_string()),
        Standing::GivenUp(GivenUp::DeadlineExceeded { last_update: _ }) => {
            Some(format!("no progress before its deadline: {}", reported.pods_wanting()))
        }
        Standing::GivenUp(why) => Some(why.to_string()),
    })
}

fn ready_condition(object: Object<'_>) -> Result<Option<String>, Unreadable> {
    Ok(match object.condition("Ready")? {
        None => Some("it has no condition Ready".to_owned()),
        Some(ready) if ready.status == "True" => None,
        Some(ready) => Some(format!("Ready is {}: {}", repeated(ready.status), ready.words())),
    })
}

/// Who waits for a Repo waits for what it applies.
fn repo(object: Object<'_>) -> Result<Option<String>, Unreadable> {
    let is_only_planned = object.condition("Ready")?.is_some_and(|ready| ready.reason == ONLY_PLANNED);
    if is_only_planned {
        return Ok(Some("its commit is only planned, and nothing of it is applied".to_owned()));
    }
    ready_condition(object)
}

fn helm_release(object: Object<'_>) -> Result<Option<String>, Unreadable> {
    if let Some(why) = ready_condition(object)? {
        return Ok(Some(why));
    }
    if is_before_v2(object)? {
        return Ok(None);
    }
    let Some(newest) = newest_release(object)? else { return Ok(Some("it has no release yet".to_owned())) };
    let status = newest.text("/status")?.unwrap_or("unknown");
    Ok((status != "deployed").then(|| format!("its newest release is {}", repeated(status))))
}

/// `helm.toolkit.fluxcd.io/v2beta1` and `v2beta2` name their revision otherwise.
fn is_before_v2(object: Object<'_>) -> Result<bool, Unreadable> {
    Ok(object.text("/apiVersion")?.is_some_and(|version| version.contains("/v2beta")))
}

/// Helm numbers releases; their order in the status is not promised.
fn newest_release(object: Object<'_>) -> Result<Option<Object<'_>>, Unreadable> {
    let mut newest = None;
    for release in object.list("/status/history")?.iter().map(Object) {
        let version = release.number("/version")?.unwrap_or_default();
        if newest.is_none_or(|(highest, _)| version > highest) {
            newest = Some((version, release));
        }
    }
    Ok(newest.map(|(_, release)| release))
}

fn application(object: Object<'_>) -> Result<Option<String>, Unreadable> {
    let is = |pointer: &str, wanted: &str, what: &str| -> Result<Option<String>, Unreadable> {
        let found = object.text(pointer)?.unwrap_or("unknown");
        Ok((found != wanted).then(|| format!("{what} is {}, not {wanted}", repeated(found))))
    };
    if object.at("/operation").is_some() {
        return Ok(Some("an operation is about to run".to_owned()));
    }
    let sources = if object.list("/spec/sources")?.is_empty() { "source" } else { "sources" };
    let wanted = object.at(&format!("/spec/{sources}"));
    let compared = object.at(&format!("/status/sync/comparedTo/{sources}"));
    Ok(is("/status/operationState/phase", "Succeeded", "its last operation")?
        .or(is("/status/sync/status", "Synced", "its sync")?)
        .or(is("/status/health/status", "Healthy", "its health")?)
        .or_else(|| wanted.is_none().then(|| "its spec names no source".to_owned()))
        .or_else(|| {
            let differ = wanted.map(bare) != compared.map(bare);
            differ.then(|| "it has not been compared with the source of its spec yet".to_owned())
        }))
}

/// A value without what means the same as nothing: Argo CD leaves that out of what it writes, and people may not.
fn bare(value: &Value) -> Value {
    let is_something = |value: &Value| match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    };
    match value {
        Value::Array(items) => Value::Array(items.iter().map(bare).collect()),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), bare(value)));
            Value::Object(fields.filter(|(_, value)| is_something(value)).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Whether what stands there is what it shall be.
fn value(object: Object<'_>, at: &str, wanted: &str) -> Result<Option<String>, Unreadable> {
    let Some(found) = object.scalar(at)? else { return Ok(Some(format!("it has no {}", dotted(at)))) };
    let found = pointed(found, at)?;
    let is_flag = matches!(object.at(at), Some(Value::Bool(_)));
    let is_so = if is_flag { found.eq_ignore_ascii_case(wanted) } else { found == wanted };
    Ok((!is_so).then(|| format!("{} is {}, not {}", dotted(at), repeated(&found), repeated(wanted))))
}

/// A text that people pointed at.
fn pointed(text: String, at: &str) -> Result<String, Unreadable> {
    if text.len() <= POINTED_BYTES_MAX {
        return Ok(text);
    }
    Err(Unreadable::because(format!("{} has more than {POINTED_BYTES_MAX} bytes", dotted(at))))
}

/// The revision where people pointed.
fn pointed_revision(object: Object<'_>, at: &str) -> Result<String, NoRevision> {
    Ok(pointed(found(object.scalar(at)?, &dotted(at))?, at)?)
}

/// The revision it says, in the words of its kind.
fn revision(app: &AppKind, name: &str, rules: Rules, object: Object<'_>) -> Result<String, NoRevision> {
    let applied = |at: &str| found(object.text(at)?.map(str::to_owned), &dotted(at));
    match rules {
        Rules::Workload(_) => image(app.container.as_deref(), name, object),
        Rules::HelmRelease if is_before_v2(object)? => applied("/status/lastAppliedRevision"),
        Rules::HelmRelease => {
            let version = newest_release(object)?.map(|newest| newest.text("/chartVersion")).transpose()?.flatten();
            found(version.map(str::to_owned), ".status.history[].chartVersion")
        }
        // Only artifacts of OCI registries have an origin.
        Rules::Applied if object.at(ORIGIN).is_some() => applied(ORIGIN),
        Rules::Applied => applied("/status/lastAppliedRevision"),
        Rules::Application => {
            let all = object.list("/status/sync/revisions")?.iter().map(|one| Object(one).scalar(""));
            let all: Vec<String> = all.collect::<Result<Option<_>, _>>()?.unwrap_or_default();
            if all.is_empty() { applied("/status/sync/revision") } else { Ok(all.join(",")) }
        }
        Rules::Repo | Rules::Other => Err(NoRevision::Unusable(format!(
            "a {} has no revision that is known; name it in appRef.revisionAt",
            app.kind
        ))),
    }
}

/// The revision, if there is one; in the words that users of `pipelines.weave.works` look for, if not.
fn found(text: Option<String>, at: &str) -> Result<String, NoRevision> {
    text.filter(|text| !text.is_empty())
        .ok_or_else(|| NoRevision::Unusable(format!("unable to find {at} in ready target object")))
}

/// Tag and digest of the app's container.
fn image(container: Option<&str>, app: &str, object: Object<'_>) -> Result<String, NoRevision> {
    const AT: &str = "/spec/template/spec/containers";
    let containers = object.list(AT)?;
    let names = || containers.iter().filter_map(|one| Object(one).text("/name").ok().flatten());
    let named = |name: &str| containers.iter().find(|one| Object(one).text("/name") == Ok(Some(name)));
    let chosen = match (container, containers) {
        (Some(name), _) => {
            named(name).ok_or_else(|| NoRevision::Unusable(format!("no container is named {}", repeated(name))))?
        }
        (None, []) => return found(None, &dotted(AT)),
        (None, [only]) => only,
        (None, _) => named(app).ok_or_else(|| {
            let names = repeated(&names().collect::<Vec<_>>().join(", "));
            NoRevision::Unusable(format!("it has several containers ({names}); name one in appRef.container"))
        })?,
    };
    let image = Image::parse(Object(chosen).text("/image")?.unwrap_or_default())?;
    Ok([image.tag(), image.digest()].into_iter().flatten().collect::<Vec<_>>().join("@"))
}

/// A revision that can be written, compared and shown.
fn checked(revision: String) -> Result<Revision, NoRevision> {
    if revision.len() > REVISION_BYTES_MAX {
        return Err(NoRevision::Unusable(format!("its revision has more than {REVISION_BYTES_MAX} bytes")));
    }
    if revision.contains(is_hidden) {
        return Err(NoRevision::Unusable(format!(
            "its revision {} has characters that cannot be seen",
            repeated(&revision)
        )));
    }
    Ok(Revision(revision))
}

#[cfg(test)]
mod tests;
