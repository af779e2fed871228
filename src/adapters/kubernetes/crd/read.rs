//! A Pipeline's JSON, read and checked. What is wrong with its spec is part of what was read: the object still has a status, which
//! says so. A status that cannot be read makes the whole object unreadable, for nothing may be decided without what it remembers.
//!
//! The API server has checked most of it by the CRD. It is checked again, because another CRD may serve the kind.

use std::collections::BTreeSet;

use kernel::id::{Environment, PipelineId};
use kernel::names::workload_name::WorkloadName;
use kernel::text::{self, clean_ends};
use objects::apps::app::{AppKind, ClusterKey, TargetKey};
use objects::apps::ready;
use objects::pipeline::callers::{self, Called, CalledEnvironment, How};
use objects::pipeline::graph::{Listed, Placed, arrange};
use objects::pipeline::options::{InvalidOption, RequestOptions, Reviewer, Template};
use objects::pipeline::proposal::{ForgeKind, Repository};
use objects::pipeline::set;
use objects::pipeline::spec::{
    EnvironmentSpec, Gates, Object, PromotionSpec, Purged, PurgedBy, Rollback, SOAK_TOLERATES, Spec, Strategy, Until,
};
use objects::pipeline::status::Cause;
use serde_json::value::RawValue;

use super::checks::{
    ITEMS_MAX, InvalidSpec, at_most, cluster, duration, each, freeze, given, https, invalid, is_elsewhere, is_shown,
    need, object_name, repository as repository_address, stalled_after, verdict, window,
};
use super::metadata::{MESSAGE_BYTES_MAX, Metadata, RawObject};
use super::raw_spec as raw;
use super::remembered;

const ENVIRONMENTS_MAX: usize = 20;
const TARGETS_MAX: usize = 50;
const NAME_CHARS_MAX: usize = 63;
/// What to do about a status that is not ours: nothing else than a hand or a later version writes one.
const MEND_STATUS: &str = "If a later version wrote it, use that one; if it was edited, put it back (kubectl edit \
                           --subresource=status), or remove it, and every question is asked anew";

/// Reads a Pipeline.
///
/// # Errors
/// When its metadata or its status cannot be read, in words.
pub fn object(json: &str) -> Result<Object, String> {
    let RawObject { metadata, spec, status } = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let id = PipelineId::new(metadata.namespace.as_str(), metadata.name.as_str());
    let raw: Result<raw::PipelineSpec, InvalidSpec> = match spec {
        Some(spec) => serde_json::from_str(spec.get()).map_err(|error| InvalidSpec(error.to_string())),
        None => invalid("spec is missing"),
    };
    let spec = raw.and_then(|raw| Reader { metadata: &metadata, raw: &raw }.spec());
    Ok(Object {
        answers: metadata.answers(),
        deleting: metadata.is_deleting(),
        finalizers: metadata.finalizers(),
        uid: metadata.uid,
        generation: metadata.generation.unwrap_or_default(),
        version: metadata.resource_version,
        spec: spec.map_err(|why| clean_ends(&why.0, MESSAGE_BYTES_MAX)),
        status: remembered::read(status.map(RawValue::get), &id.namespace)
            .map_err(|why| format!("its status: {why}. {MEND_STATUS}"))?,
        id,
    })
}

/// A Pipeline as those see it who ask by a request. Its group is not known here.
///
/// # Errors
/// When it cannot be read, or its spec names no app and no environments, in words.
pub fn called(json: &str) -> Result<Called, String> {
    let RawObject { spec, .. } = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let spec = spec.ok_or_else(|| "spec is missing".to_owned())?;
    let raw: raw::PipelineSpec = serde_json::from_str(spec.get()).map_err(|error| format!("its spec: {error}"))?;
    let how = |raw: &raw::Promotion| How {
        secret: raw.strategy.secret_ref.as_ref().map(|secret| secret.name.clone()),
        is_complete: raw.strategy.pull_request.is_some() || raw.strategy.notification.is_some(),
    };
    let environment = |raw: &raw::Environment| CalledEnvironment {
        name: Environment(raw.name.clone()),
        after: after(raw),
        namespaces: raw.targets.iter().map(|target| target.namespace.clone()).collect(),
        promotion: raw.promotion.as_ref().map(how),
    };
    // Of a set no other program says which revision its apps have together.
    let raw::AppRef { api_version, kind, name, .. } = raw.app_ref.clone().unwrap_or_default();
    Ok(Called {
        group: String::new(),
        object: object(json)?,
        app: callers::App { api_version, kind, name },
        environments: raw.environments.iter().map(environment).collect(),
        promotion: raw.promotion.as_ref().map(how),
    })
}

/// The same object, whose spec is wrong if it names a cluster of another namespace.
pub fn confined(mut object: Object) -> Object {
    let namespace = object.id.namespace.as_str();
    let elsewhere =
        object.spec.as_ref().ok().and_then(|spec| spec.targets().find_map(|one| is_elsewhere(one, namespace)));
    if let Some(why) = elsewhere {
        object.spec = Err(clean_ends(&why, MESSAGE_BYTES_MAX));
    }
    object
}

/// An app that a spec names, and its name in a set.
struct App {
    kind: AppKind,
    name: String,
    set: Option<String>,
}

/// Reads an app; `field` is where it stands.
fn read_app(raw: &raw::AppRef, set: Option<String>, field: &str) -> Result<App, InvalidSpec> {
    let wrong = |InvalidSpec(why): InvalidSpec| InvalidSpec(format!("{field}: {why}"));
    for (what, value) in [("apiVersion", &raw.api_version), ("kind", &raw.kind), ("name", &raw.name)] {
        if value.is_empty() {
            return invalid(format!("{field}.{what} is empty"));
        }
    }
    let is_plain = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-';
    if let Some(name) = set.as_ref().filter(|name| name.is_empty() || name.len() > 40 || !name.chars().all(is_plain)) {
        return invalid(format!("apps: {name:?} is no name: 1 to 40 of a-z, 0-9 and -"));
    }
    is_shown(&raw.api_version, &raw.kind).map_err(wrong)?;
    object_name(&raw.name, &format!("{field}.name"))?;
    let kind = AppKind {
        api_version: raw.api_version.clone(),
        kind: raw.kind.clone(),
        container: given(&raw.container),
        revision_at: pointer(&raw.revision_at, &format!("{field}.revisionAt"))?,
        ready_at: pointer(&raw.ready_at, &format!("{field}.readyAt"))?,
        ready_value: given(&raw.ready_value),
    };
    Ok(App { kind, name: raw.name.clone(), set })
}

/// What is read, and whose it is: references without a namespace mean that one.
struct Reader<'a> {
    metadata: &'a Metadata,
    raw: &'a raw::PipelineSpec,
}

impl Reader<'_> {
    fn spec(&self) -> Result<Spec, InvalidSpec> {
        let raw = self.raw;
        let apps = self.apps()?;
        at_most(ENVIRONMENTS_MAX, raw.environments.len(), "environments")?;
        if raw.environments.is_empty() {
            return invalid("there are no environments");
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = raw.environments.iter().find(|one| !names.insert(&one.name)) {
            return invalid(format!("two environments are named {}", twice.name));
        }
        if let Some(first) = raw.environments.first() {
            for (field, is_there) in [("gates", first.gates.is_some()), ("rollback", first.rollback.is_some())] {
                if is_there {
                    return invalid(format!("the first environment has {field}, and nothing is promoted into it"));
                }
            }
        }
        let listed = raw.environments.iter().map(|one| Listed {
            name: Environment(one.name.clone()),
            after: after(one),
            counts: !one.targets.is_empty(),
        });
        let placed = arrange(&listed.collect::<Vec<_>>()).map_err(|why| InvalidSpec(why.to_string()))?;
        let environments = placed.into_iter().filter_map(|Placed { name, after }| {
            let raw = raw.environments.iter().find(|one| one.name == name.0)?;
            Some(self.environment(raw, after, &apps))
        });
        let without = raw.environments.iter().filter(|one| one.targets.is_empty());
        Ok(Spec {
            environments: environments.collect::<Result<_, _>>()?,
            advance: raw.advance,
            suspended: self.metadata.suspended(raw.suspend),
            labels: self.metadata.labels.clone(),
            passed_over: without.map(|one| Environment(one.name.clone())).collect(),
            apps: apps.into_iter().filter_map(|app| app.set).collect(),
        })
    }

    /// The app, or those of the set.
    fn apps(&self) -> Result<Vec<App>, InvalidSpec> {
        match (&self.raw.app_ref, &self.raw.apps) {
            (Some(app), None) => Ok(vec![read_app(app, None, "appRef")?]),
            (None, Some(apps)) => {
                if !(2..=set::APPS_MAX).contains(&apps.len()) {
                    return invalid(format!("apps has {}: 2 to {}, or one appRef", apps.len(), set::APPS_MAX));
                }
                let mut names = BTreeSet::new();
                if let Some(twice) = apps.iter().find(|one| !names.insert(&one.name)) {
                    return invalid(format!("two apps are named {}", twice.name));
                }
                let app =
                    |one: &raw::App| read_app(&one.app_ref, Some(one.name.clone()), &format!("apps.{}", one.name));
                apps.iter().map(app).collect()
            }
            (None, None) | (Some(_), Some(_)) => invalid("exactly one of appRef and apps"),
        }
    }

    fn environment(
        &self,
        raw: &raw::Environment,
        after: Vec<Environment>,
        apps: &[App],
    ) -> Result<EnvironmentSpec, InvalidSpec> {
        let name = &raw.name;
        let is_name = |character: char| !character.is_whitespace() && !matches!(character, '/' | ':');
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || !name.chars().all(is_name) {
            return invalid(format!(
                "{name:?} is no name of an environment: 1 to 63 characters without blanks, / and :"
            ));
        }
        self.known_environment(raw, after, apps)
            .map_err(|InvalidSpec(why)| InvalidSpec(format!("environment {name}: {why}")))
    }

    fn known_environment(
        &self,
        raw: &raw::Environment,
        after: Vec<Environment>,
        apps: &[App],
    ) -> Result<EnvironmentSpec, InvalidSpec> {
        let what = if apps.len() > 1 { "apps in all targets" } else { "targets" };
        at_most(TARGETS_MAX, raw.targets.len() * apps.len(), what)?;
        let members = |raw: &raw::Target| {
            let cluster = cluster(raw.cluster_ref.as_ref(), &self.metadata.namespace, "Pipeline")?;
            object_name(&raw.namespace, "a target's namespace")?;
            let of =
                |app: &App| TargetKey::new(cluster.clone(), app.kind.clone(), raw.namespace.clone(), app.name.clone());
            Ok((cluster.clone(), apps.iter().map(of).collect::<Vec<_>>()))
        };
        let places: Vec<(ClusterKey, Vec<TargetKey>)> =
            raw.targets.iter().map(members).collect::<Result<_, InvalidSpec>>()?;
        let names: Vec<String> = apps.iter().filter_map(|app| app.set.clone()).collect();
        let (targets, parts) = if names.is_empty() {
            (places.into_iter().flat_map(|(_, members)| members).collect(), Vec::new())
        } else {
            let place = |(raw, (cluster, _)): (&raw::Target, &(ClusterKey, _))| {
                set::place(cluster.clone(), &raw.namespace, &names)
            };
            (
                raw.targets.iter().zip(&places).map(place).collect(),
                places.into_iter().map(|(_, members)| members).collect(),
            )
        };
        let promotion = raw.promotion.as_ref().or(self.raw.promotion.as_ref());
        Ok(EnvironmentSpec {
            name: Environment(raw.name.clone()),
            after,
            targets,
            parts,
            promotion: promotion.map(promotion_of).transpose()?,
            gates: raw.gates.as_ref().map(|gates| self.gates(gates)).transpose()?.unwrap_or_default(),
            suspended: raw.suspend,
            purged: raw.purged.as_ref().map(|raw| self.purged(raw)).transpose()?,
            stalled_after: stalled_after(&raw.stalled_after)?,
            rollback: raw.rollback.as_ref().map(|rollback| self.rollback(raw, rollback)).transpose()?,
        })
    }

    fn gates(&self, raw: &raw::Gates) -> Result<Gates, InvalidSpec> {
        let namespace = &self.metadata.namespace;
        Ok(Gates {
            soak: duration(&raw.soak, "gates.soak")?.unwrap_or_default(),
            soak_tolerates: duration(&raw.soak_tolerates, "gates.soakTolerates")?.unwrap_or(SOAK_TOLERATES),
            windows: each(&raw.windows, "windows", window)?,
            freezes: each(&raw.freezes, "freezes", freeze)?,
            verdict: raw.verdict.as_ref().map(verdict).transpose()?,
            needs: each(&raw.needs, "needs", |one| need(one, namespace, "Pipeline"))?,
        })
    }

    fn rollback(&self, own: &raw::Environment, raw: &raw::Rollback) -> Result<Rollback, InvalidSpec> {
        let mut on = raw.on.clone();
        on.sort();
        on.dedup();
        if on.is_empty() {
            return invalid("rollback.on names no cause: verdict, stalled or both");
        }
        if own.promotion.as_ref().or(self.raw.promotion.as_ref()).is_none() {
            return invalid("rollback, and nothing is promoted into it: it has no `promotion`");
        }
        if on.contains(&Cause::Verdict) && own.gates.as_ref().is_none_or(|gates| gates.verdict.is_none()) {
            return invalid("rollback.on names verdict, and there is no gates.verdict to ask");
        }
        let within = duration(&Some(raw.within.clone()), "rollback.within")?.unwrap_or_default();
        let stalled_after = stalled_after(&own.stalled_after)?;
        if within.is_zero() {
            return invalid("rollback.within is empty: 30m, for example");
        }
        if on.contains(&Cause::Stalled) && within <= stalled_after {
            return invalid(format!(
                "rollback.within ({}) is not longer than stalledAfter ({}), after which alone it is stalled",
                raw.within,
                text::duration(stalled_after)
            ));
        }
        Ok(Rollback { on, within })
    }

    fn purged(&self, raw: &raw::Purged) -> Result<Purged, InvalidSpec> {
        at_most(ITEMS_MAX, raw.workloads.len(), "purged.workloads")?;
        if raw.workloads.is_empty() {
            return invalid("purged.workloads is empty");
        }
        let workload = |text: &String| {
            let name = WorkloadName::parse(text).or_else(|error| invalid(format!("purged.workloads: {error}")))?;
            object_name(&name.name, "purged.workloads").map(|()| name)
        };
        let workloads = raw.workloads.iter().map(workload).collect::<Result<_, _>>()?;
        let by = |server: String| {
            let secret = raw.secret_ref.as_ref().map(|secret| secret.name.clone());
            Ok(PurgedBy {
                server: https(&server, "purged.server")?,
                secret,
                namespace: self.metadata.namespace.clone(),
            })
        };
        let until = raw.until.as_deref().map_or(Some(Until::default()), Until::named);
        let Some(until) = until else { return invalid("purged.until is purged or fresh") };
        Ok(Purged { workloads, by: given(&raw.server).map(by).transpose()?, until })
    }
}

fn after(raw: &raw::Environment) -> Option<Vec<Environment>> {
    let names = |after: &Vec<String>| after.iter().cloned().map(Environment).collect();
    raw.after.as_ref().map(names)
}

fn promotion_of(raw: &raw::Promotion) -> Result<PromotionSpec, InvalidSpec> {
    let strategy = match (&raw.strategy.pull_request, &raw.strategy.notification) {
        (Some(request), None) => {
            let repository = repository(request)?;
            let options = options(request).and_then(|options| repository.forge.can(&options).map(|()| options));
            let options = options.map_err(|why| InvalidSpec(format!("pull-request.{why}")))?;
            Strategy::PullRequest(repository, Box::new(options))
        }
        (None, Some(raw::Notification {})) => Strategy::Notification,
        (None, None) | (Some(_), Some(_)) => {
            return invalid("promotion.strategy is exactly one of pull-request and notification");
        }
    };
    Ok(PromotionSpec { manual: raw.manual, strategy })
}

fn repository(raw: &raw::PullRequest) -> Result<Repository, InvalidSpec> {
    let forge = match raw.forge {
        raw::Forge::GitHub => ForgeKind::GitHub,
        raw::Forge::GitLab => ForgeKind::GitLab,
        raw::Forge::BitbucketServer => ForgeKind::BitbucketServer,
        raw::Forge::BitbucketCloud => ForgeKind::BitbucketCloud,
        raw::Forge::Gitea => ForgeKind::Gitea,
        raw::Forge::AzureDevops => {
            return invalid(
                "azure-devops is not supported: no server of its kind could be tried; use notification instead",
            );
        }
    };
    Ok(Repository {
        forge,
        url: repository_address(&raw.url, "pull-request.url")?,
        base: given(&raw.base_branch).unwrap_or_else(|| "main".to_owned()),
        path: given(&raw.path),
        secret: raw.secret_ref.as_ref().map(|secret| secret.name.clone()),
    })
}

/// What is wanted of a request, as far as any forge can do it.
fn options(raw: &raw::PullRequest) -> Result<RequestOptions, InvalidOption> {
    Ok(RequestOptions {
        labels: raw.labels.clone(),
        reviewers: raw.reviewers.iter().map(|name| Reviewer::parse(name)).collect::<Result<_, _>>()?,
        draft: raw.draft,
        title: given(&raw.title).as_deref().map(Template::title).transpose()?,
        body: given(&raw.body).as_deref().map(Template::body).transpose()?,
        auto_merge: raw.auto_merge,
    })
}

fn pointer(text: &Option<String>, field: &str) -> Result<Option<String>, InvalidSpec> {
    let pointer = given(text);
    let judged = pointer.as_deref().map_or(Ok(()), ready::may_point_at);
    judged.map(|()| pointer).map_err(|why| InvalidSpec(format!("{field} {why}")))
}

#[cfg(test)]
mod tests;
