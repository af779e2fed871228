//! The API server, who asks it, and which of our kinds it serves.
//!
//! Not for rights; those are in `rights`.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::Value;

use super::Options;
use super::catalog::{
    API_CLOCK, API_SERVER, API_VERSION, CALLER, CRD_CUSTOM, CRD_HISTORIES, CRD_PIPELINES, CRD_REPOS, CRD_VERSION,
    Check, RIGHT_DEPLOYMENTS, WATCHED_NAMESPACES,
};
use super::report::{Finding, Mark};
use super::rights::{ARGO, Missing, Served};
use crate::adapters::kubernetes::Clients;
use crate::adapters::kubernetes::crd;
use crate::adapters::kubernetes::objects::GROUP;
use crate::adapters::kubernetes::reviews::{Reviews, Right, Whom};
use crate::config::{Config, Enabled, Namespaces};
use apiserver::{Api, Collection, NAMESPACES, Resource, ServerSays};

/// The oldest minor version of Kubernetes 1 that allclear is tried with: the stand-in of the tests follows its rules, and the types of
/// our client are made for it. A test holds this to the feature `earliest` of `k8s-openapi`
/// (<https://github.com/Arnavion/k8s-openapi/releases/tag/v0.29.0>). docs/check.md says what is missing below.
pub const TRIED_FROM: u32 = 33;

/// The oldest that serves everything we ask for: `discovery.k8s.io/v1` came with 1.21
/// (<https://kubernetes.io/docs/reference/using-api/deprecation-guide/#endpointslice-v125>).
pub const NEEDED_FROM: u32 = 21;

/// Our clock may be so far from the API server's before it is said, in seconds. Signatures of AWS end at five minutes.
const CLOCKS_APART_S: i64 = 60;

/// Properties of our schema that the cluster's lacks, of which this many are named.
const NAMED_MAX: usize = 5;

/// The version of our kinds.
const VERSION: &str = "v1alpha1";

const CRDS: Resource = Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");

/// The caller, and the account whose rights are reviewed.
pub struct Who {
    pub whom: Whom,
    /// The same in words.
    pub words: String,
    /// The caller is the controller itself.
    pub is_controller: bool,
    /// What a missing right is.
    pub missing: Missing,
}

/// Whether there is an API server, and a good one.
pub fn server(said: &ServerSays, now_s: i64, server: &str) -> Vec<Finding> {
    let version = match said.numbers {
        Some((1, minor)) if minor < NEEDED_FROM => API_VERSION
            .failed(format!("{} is too old: discovery.k8s.io/v1 is missing", said.version))
            .hint(format!("upgrade the cluster to 1.{TRIED_FROM} or later")),
        Some((1, minor)) if minor < TRIED_FROM => API_VERSION
            .warning(format!("{} is older than what allclear is tried with", said.version))
            .hint(format!("upgrade the cluster to 1.{TRIED_FROM} or later")),
        Some(_) => API_VERSION.good(&said.version),
        None => API_VERSION.warning(format!("{:?} is not a version that is understood", said.version)),
    };
    let clock = match said.date_s.map(|date| now_s.saturating_sub(date)) {
        None => API_CLOCK.warning("the API server does not say what time it is"),
        Some(apart) if apart.abs() > CLOCKS_APART_S => {
            let direction = if apart > 0 { "ahead of" } else { "behind" };
            let reason = format!("our clock is {} s {direction} the API server's", apart.abs());
            API_CLOCK.warning(reason).hint("set the clock: AWS refuses signatures that are five minutes off")
        }
        Some(apart) => API_CLOCK.good(format!("{} s from the API server's", apart.abs())),
    };
    vec![API_SERVER.good(server), version, clock]
}

/// Nothing of the cluster could be asked.
pub fn unreachable(why: &str) -> Vec<Finding> {
    vec![
        API_SERVER.failed(why),
        API_VERSION.after(API_SERVER),
        CALLER.after(API_SERVER),
        API_CLOCK.after(API_SERVER),
        RIGHT_DEPLOYMENTS.after(API_SERVER),
    ]
}

/// Finds the caller, and the account whose rights can be reviewed.
pub async fn who(
    reviews: &Reviews,
    clients: &Clients,
    options: &Options,
    account: &(String, String),
) -> (Who, Finding) {
    let (namespace, name) = account;
    let caller = reviews.caller().await;
    let finding = match &caller {
        Ok(caller) => CALLER.good(caller),
        Err(error) => CALLER.warning(error),
    };
    let caller = caller.unwrap_or_else(|_| "the caller".to_owned());
    let is_controller = options.as_caller
        || clients.pod_namespace.is_some()
        || caller == format!("system:serviceaccount:{namespace}:{name}");
    if is_controller {
        let missing = Missing { mark: Mark::Failed, who: caller.clone(), hint: None };
        return (Who { whom: Whom::Caller, words: caller, is_controller, missing }, finding);
    }
    let any = Right { verb: "list", group: "apps", resource: "deployments", name: None, namespace: None };
    let whom = Whom::Account(namespace.clone(), name.clone());
    let who = match reviews.may(&whom, &any).await {
        Ok(_) => {
            let words = format!("the service account {name} of namespace {namespace}");
            let hint = options.pre.then(|| "it gets this right by the manifests, if they are applied whole".to_owned());
            let mark = if options.pre { Mark::Warning } else { Mark::Failed };
            Who { whom, missing: Missing { mark, who: words.clone(), hint }, words, is_controller }
        }
        Err(error) => {
            let hint = format!(
                "this is the caller's right, since those of the service account were not told ({error}); to see them: \
                 kubectl -n {namespace} exec deploy/{name} -- allclear check"
            );
            let missing = Missing { mark: Mark::Warning, who: caller.clone(), hint: Some(hint) };
            Who { whom: Whom::Caller, words: caller, is_controller, missing }
        }
    };
    (who, finding)
}

/// The namespaces that are watched, as rights are needed in them; `None` stands for all. Where nothing is configured, the same rule as
/// at a start: all if that is allowed, else our own.
pub async fn watched(config: &Config, reviews: &Reviews, whom: &Whom, own: &str) -> BTreeSet<Option<String>> {
    match &config.watch.namespaces {
        Namespaces::All => BTreeSet::from([None]),
        Namespaces::Listed(names) => names.iter().cloned().map(Some).collect(),
        Namespaces::AllOrOwn => {
            let all = Right { verb: "list", group: "apps", resource: "deployments", name: None, namespace: None };
            let of_own = Right { namespace: Some(own.to_owned()), ..all.clone() };
            let (all, of_own) = tokio::join!(reviews.may(whom, &all), reviews.may(whom, &of_own));
            // Neither: the rights in all namespaces are what the manifests give.
            let only_own = matches!((all, of_own), (Ok(false), Ok(true)));
            BTreeSet::from([only_own.then(|| own.to_owned())])
        }
    }
}

/// Whether the namespaces that are watched exist: a right is given in one that does not, too.
pub async fn namespaces(api: &Api, watched: &Namespaces) -> Vec<Finding> {
    let Namespaces::Listed(names) = watched else { return Vec::new() };
    let looks = names.iter().map(|name| async move {
        let finding = match api.get(&Collection::everywhere(NAMESPACES), name).await {
            Ok(Some(_)) => WATCHED_NAMESPACES.good("exists"),
            Ok(None) => WATCHED_NAMESPACES
                .failed("there is no such namespace, so nothing of it is watched")
                .hint("correct watch.namespaces (NAMESPACE), or make the namespace"),
            Err(failed) if failed.error.denied => {
                WATCHED_NAMESPACES.untried(format!("not tried: the caller may not see namespaces: {}", failed.error))
            }
            Err(failed) => WATCHED_NAMESPACES.warning(failed.error),
        };
        finding.of(name)
    });
    join_all(looks).await
}

/// Which of our kinds are served, and whether they are those of this version.
pub async fn kinds(api: &Api, config: &Config) -> (Served, Vec<Finding>) {
    let (kinds, argo) = tokio::join!(api.kinds(GROUP, VERSION), api.kinds(ARGO, "v1alpha1"));
    // What cannot be asked is asked for: a right too many says nothing wrong.
    let rollouts = argo.map_or(true, |kinds| kinds.into_iter().flatten().any(|kind| kind.plural == "rollouts"));
    let kinds = match kinds {
        Ok(kinds) => kinds.unwrap_or_default(),
        Err(error) => {
            let findings = vec![CRD_PIPELINES.warning(&error), CRD_REPOS.warning(error)];
            return (Served { rollouts, ..Served::default() }, findings);
        }
    };
    let is_served = |plural: &str| kinds.iter().any(|kind| kind.plural == plural);
    let (pipelines, freezes) = (is_served("pipelines"), is_served("promotionfreezes"));
    let (repos, histories) = (is_served("repos"), is_served("histories"));
    let served = Served { pipelines, freezes, repos, histories, rollouts };
    let mut findings = Vec::new();
    findings.extend(installed(CRD_PIPELINES, "Pipelines", config.pipeline.enabled, served.pipelines));
    findings.extend(installed(CRD_REPOS, "Repos", config.repo.enabled, served.repos));
    let keeps = served.pipelines && config.pipeline.enabled != Enabled::Off
        || served.repos && config.repo.enabled != Enabled::Off;
    if keeps && !served.histories {
        let words = "the cluster does not have the kind History: only the ten entries of each status are kept";
        findings.push(
            CRD_HISTORIES.warning(words).hint("apply deploy/crds: allclear crds | kubectl apply --server-side -f -"),
        );
    }
    for (plural, ours, is_wanted) in [
        ("pipelines", crd::CRD, served.pipelines && config.pipeline.enabled != Enabled::Off),
        ("promotionfreezes", crd::freeze::CRD, served.freezes && config.pipeline.enabled != Enabled::Off),
        ("repos", crd::repo::CRD, served.repos && config.repo.enabled != Enabled::Off),
        ("histories", crd::CRD_HISTORIES, served.histories && keeps),
    ] {
        if is_wanted {
            findings.push(compared(api, plural, ours).await.of(plural));
        }
    }
    (served, findings)
}

/// Whether the cluster has the kinds that are declared, by their names.
pub async fn declared(api: &Api, config: &Config) -> Vec<Finding> {
    let kinds = config.kinds.iter().filter_map(|kind| kind.custom());
    join_all(kinds.map(async |kind| {
        let (group, version, plural) = kind.place();
        let says = kind.says();
        let named = format!("{} of {}", says.kind, says.api_version);
        let finding = match api.kinds(group, version).await {
            Err(error) => CRD_CUSTOM.warning(error),
            Ok(served) => match served
                .into_iter()
                .flatten()
                .find(|served| served.kind == says.kind && !served.plural.contains('/'))
            {
                Some(served) if !served.namespaced => CRD_CUSTOM
                    .failed(format!("{named} is in no namespace, as pods are"))
                    .hint("take it out of workloads.custom; allclear cannot follow it"),
                Some(served) if served.plural == plural => CRD_CUSTOM.good(format!("{named} is served")),
                Some(served) => CRD_CUSTOM
                    .failed(format!("{named} is served as {}, not as {plural}", served.plural))
                    .hint(format!("set plural = \"{}\" in its [[workloads.custom]]", served.plural)),
                None => CRD_CUSTOM
                    .warning(format!("the cluster does not have {named}; it is left out until it has"))
                    .hint("install it, or correct api and kind in workloads.custom"),
            },
        };
        finding.of(kind.word())
    }))
    .await
}

/// Whether a kind is there that is switched on; nothing where it is not asked for.
fn installed(check: Check, what: &str, enabled: Enabled, served: bool) -> Option<Finding> {
    match (enabled, served) {
        (Enabled::Off, _) | (Enabled::Auto, false) => None,
        (Enabled::On | Enabled::Auto, true) => Some(check.good(format!("{GROUP}/{VERSION} serves {what}"))),
        (Enabled::On, false) => Some(
            check
                .failed(format!("{what} are switched on, and {GROUP}/{VERSION} does not serve them"))
                .hint("apply deploy/crds: allclear crds | kubectl apply --server-side -f -"),
        ),
    }
}

/// Whether the cluster's schema of a kind has all of ours.
async fn compared(api: &Api, plural: &str, ours: &str) -> Finding {
    let name = format!("{plural}.{GROUP}");
    let theirs = match api.get(&Collection::everywhere(CRDS), &name).await {
        Ok(Some(answer)) => answer.json::<Value>(),
        Ok(None) => return CRD_VERSION.untried(format!("not tried: there is no CustomResourceDefinition {name}")),
        Err(error) => return CRD_VERSION.untried(format!("not tried: {}", error.error)),
    };
    let (Ok(theirs), Ok(ours)) = (theirs, serde_saphyr::from_str::<Value>(ours)) else {
        return CRD_VERSION.warning("its CustomResourceDefinition cannot be read");
    };
    let (theirs, ours) = (properties(&theirs), properties(&ours));
    let lacking: Vec<&str> = ours.difference(&theirs).map(String::as_str).collect();
    if lacking.is_empty() {
        return CRD_VERSION.good("has all that this version knows");
    }
    let more = lacking.len().saturating_sub(NAMED_MAX);
    let named: Vec<&str> = lacking.into_iter().take(NAMED_MAX).collect();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    CRD_VERSION
        .failed(format!("the cluster's schema is of another version: it lacks {}{more}", named.join(", ")))
        .hint("apply deploy/crds: allclear crds | kubectl apply --server-side -f -")
}

/// All properties of the schema of our version, as paths.
fn properties(definition: &Value) -> BTreeSet<String> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let ours = versions.into_iter().flatten().find(|one| one.get("name").and_then(Value::as_str) == Some(VERSION));
    let mut found = BTreeSet::new();
    if let Some(schema) = ours.and_then(|version| version.pointer("/schema/openAPIV3Schema")) {
        gather(schema, "", &mut found);
    }
    found
}

/// Schemas are as deep as ours are, some ten levels; an API server refuses those that are recursive.
fn gather(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, inner) in properties.into_iter().flatten() {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        gather(inner, &path, found);
        found.insert(path);
    }
    for wrapped in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(wrapped) {
            gather(inner, at, found);
        }
    }
}
