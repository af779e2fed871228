//! The rights that the configured features need in the cluster, and whether they are there. A test holds this list to the roles of
//! deploy/, in both directions.
//!
//! Not among them are rights that follow from objects: the Secrets that Pipelines and Repos name, the kinds of their targets, the Jobs
//! of a namespace with Repos. Their own status says when one of these is missing.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;

use super::catalog::{
    Check, RIGHT_CUSTOM, RIGHT_DAEMON_SETS, RIGHT_DEPLOYMENTS, RIGHT_ENDPOINT_SLICES, RIGHT_EVENTS, RIGHT_FREEZES,
    RIGHT_GATEWAYS, RIGHT_HISTORIES, RIGHT_HOOKS, RIGHT_INGRESSES, RIGHT_LEASE, RIGHT_LEDGER, RIGHT_NAMESPACES,
    RIGHT_PIPELINES, RIGHT_PODS, RIGHT_REPOS, RIGHT_ROLLOUTS, RIGHT_ROUTES, RIGHT_SERVICES, RIGHT_STATEFUL_SETS,
};
use super::report::{Finding, Mark};
use crate::adapters::kubernetes::objects::GROUP;
use crate::adapters::kubernetes::reviews::{Reviews, Right, Whom};
use crate::config::{Config, Enabled, LedgerBackend};
use kernel::id::{CustomKind, Kind};
use kernel::refusal::Cause;

/// Where a right is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In each namespace that is watched.
    Watched,
    /// In that of the ledger.
    Ledger,
    /// Of something that is in no namespace.
    Cluster,
}

/// Some verbs on one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The check that says whether they are there.
    pub check: Check,
    pub group: &'static str,
    /// The resource, perhaps with a subresource.
    pub resource: &'static str,
    /// Of this object alone.
    pub name: Option<&'static str>,
    pub verbs: &'static [&'static str],
    pub place: Place,
}

/// Kinds of ours that the cluster serves, and Argo Rollouts'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    pub pipelines: bool,
    pub freezes: bool,
    pub repos: bool,
    pub histories: bool,
    pub rollouts: bool,
}

const GATEWAY: &str = "gateway.networking.k8s.io";
pub const ARGO: &str = "argoproj.io";
const WEAVE: &str = "pipelines.weave.works";

/// Everything the configured features need.
pub fn needs(config: &Config, served: Served) -> Vec<Need> {
    let routes: &'static [&'static str] = if config.site.follow_traffic { &["list", "watch"] } else { &["list"] };
    let mut needs = vec![
        watched(RIGHT_DEPLOYMENTS, "apps", "deployments", &["get", "list", "watch"]),
        watched(RIGHT_PODS, "", "pods", &["list", "watch"]),
        watched(RIGHT_ENDPOINT_SLICES, "discovery.k8s.io", "endpointslices", &["list"]),
        watched(RIGHT_SERVICES, "", "services", routes),
        watched(RIGHT_INGRESSES, "networking.k8s.io", "ingresses", routes),
        watched(RIGHT_ROUTES, GATEWAY, "httproutes", routes),
        watched(RIGHT_ROUTES, GATEWAY, "grpcroutes", routes),
        watched(RIGHT_ROUTES, GATEWAY, "referencegrants", &["list"]),
        watched(RIGHT_GATEWAYS, GATEWAY, "gateways", &["get"]),
    ];
    for (kind, check, group, resource, is_served) in [
        (Kind::StatefulSet, RIGHT_STATEFUL_SETS, "apps", "statefulsets", true),
        (Kind::DaemonSet, RIGHT_DAEMON_SETS, "apps", "daemonsets", true),
        (Kind::Rollout, RIGHT_ROLLOUTS, ARGO, "rollouts", served.rollouts),
    ] {
        if config.kinds.contains(&kind) && is_served {
            needs.push(watched(check, group, resource, &["get", "list", "watch"]));
        }
    }
    for (group, _, plural) in config.kinds.iter().filter_map(|kind| kind.custom()).map(CustomKind::place) {
        needs.push(watched(RIGHT_CUSTOM, group, plural, &["get", "list", "watch"]));
    }
    if !config.dry_run {
        needs.push(watched(RIGHT_EVENTS, "", "events", &["create"]));
    }
    if config.means_others() && config.group.member.is_none() {
        let need = watched(RIGHT_NAMESPACES, "", "namespaces", &["get"]);
        needs.push(Need { name: Some("kube-system"), place: Place::Cluster, ..need });
    }
    if config.ledger_backend() == LedgerBackend::Kubernetes {
        let own =
            |check, group, resource, name, verbs| Need { check, group, resource, name, verbs, place: Place::Ledger };
        needs.push(own(RIGHT_LEDGER, "", "configmaps", None, &["create", "delete", "get", "list", "update"]));
        if config.leader.lease {
            let (group, leader) = ("coordination.k8s.io", Some("allclear-leader"));
            needs.push(own(RIGHT_LEASE, group, "leases", leader, &["get", "update"]));
            needs.push(own(RIGHT_LEASE, group, "leases", None, &["create"]));
        }
    }
    needs.extend(own_kinds(config, served));
    needs
}

/// A right to a kind wherever its objects are watched.
const fn watched(check: Check, group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> Need {
    Need { check, group, resource, name: None, verbs, place: Place::Watched }
}

/// What our own kinds need, as far as they are followed.
fn own_kinds(config: &Config, served: Served) -> Vec<Need> {
    let mut needs = Vec::new();
    let on = |enabled, served| match enabled {
        Enabled::Off => false,
        Enabled::On => true,
        Enabled::Auto => served,
    };
    let groups = [GROUP, WEAVE].into_iter().filter(|group| config.pipeline.groups.iter().any(|one| one == group));
    let follows: &'static [&'static str] = &["get", "list", "watch"];
    if on(config.pipeline.enabled, served.pipelines) {
        needs.extend(freezes(config, served));
        for group in groups {
            needs.push(watched(RIGHT_PIPELINES, group, "pipelines", follows));
            needs.push(watched(RIGHT_PIPELINES, group, "pipelines/status", &["update"]));
            if config.hooks.listen.is_some() {
                needs.push(watched(RIGHT_HOOKS, group, "pipelines", &["patch"]));
            }
        }
    }
    if on(config.repo.enabled, served.repos) {
        needs.push(watched(RIGHT_REPOS, GROUP, "repos", follows));
        needs.push(watched(RIGHT_REPOS, GROUP, "repos/status", &["update"]));
        if config.hooks.listen.is_some() {
            needs.push(watched(RIGHT_HOOKS, GROUP, "repos", &["patch"]));
        }
    }
    let keeps = on(config.pipeline.enabled, served.pipelines) || on(config.repo.enabled, served.repos);
    if keeps && served.histories && !config.dry_run {
        needs.push(watched(RIGHT_HISTORIES, GROUP, "histories", &["get", "create", "update"]));
    }
    needs
}

/// Those of the cluster, which hold Pipelines of every namespace.
fn freezes(config: &Config, served: Served) -> Option<Need> {
    let verbs: &'static [&'static str] = &["get", "list", "watch"];
    let (check, group, resource, place) = (RIGHT_FREEZES, GROUP, "promotionfreezes", Place::Cluster);
    (config.pipeline.freezes && served.freezes).then_some(Need { check, group, resource, name: None, verbs, place })
}

/// What to do where a right is missing: in the words of the running program, where it has some.
fn remedy(check: Check) -> &'static str {
    match check.id {
        "right-ledger" | "right-lease" => Cause::WriteLedger.remedy(),
        "right-pipelines" => "apply deploy/components/pipelines, or deploy/overlays/weave for the older group",
        "right-freezes" => {
            "apply deploy/components/pipelines, or set pipeline.freezes to false: otherwise no promotion starts in this cluster"
        }
        "right-statefulsets" | "right-daemonsets" | "right-rollouts" => {
            "apply deploy/base/cluster-role.yaml, or leave the kind out of workloads.kinds"
        }
        "right-custom" => {
            "give the account a ClusterRole with these verbs on the kind, as docs/how-it-decides.md shows, or take the kind out of \
             workloads.custom"
        }
        "right-histories" => {
            "apply deploy/components/pipelines or repo: until then only the ten entries of each status are kept"
        }
        "right-repos" => "apply deploy/components/repo",
        "right-hooks" => "apply deploy/components/hooks",
        "right-namespaces" => "apply deploy/base/cluster-role.yaml, or set group.member",
        _ => Cause::PublishEvents.remedy(),
    }
}

/// The rights themselves, each with the check it belongs to. `watched`: the namespaces; `None` stands for all.
pub fn rights(needs: &[Need], watched: &BTreeSet<Option<String>>, ledger_namespace: &str) -> Vec<(Check, Right)> {
    let mut rights = Vec::new();
    for Need { check, group, resource, name, verbs, place } in needs {
        let namespaces = match place {
            Place::Watched => watched.clone(),
            Place::Ledger => BTreeSet::from([Some(ledger_namespace.to_owned())]),
            Place::Cluster => BTreeSet::from([None]),
        };
        for namespace in namespaces {
            let right =
                |verb: &&'static str| Right { verb, group, resource, name: *name, namespace: namespace.clone() };
            rights.extend(verbs.iter().map(|verb| (*check, right(verb))));
        }
    }
    rights
}

/// What a missing right is: an error, or only news.
#[derive(Clone, Debug)]
pub struct Missing {
    /// How grave it is.
    pub mark: Mark,
    pub who: String,
    /// What to do about it, instead of what is to be applied.
    pub hint: Option<String>,
}

/// What was answered of one check in one place.
struct Line {
    check: Check,
    may: Vec<String>,
    lacks: Vec<String>,
    error: Option<String>,
}

impl Line {
    fn finding(self, missing: &Missing, optional: &[Check]) -> Finding {
        let Self { check, may, lacks, error } = self;
        if may.is_empty() && error.is_none() && optional.contains(&check) {
            let reason = format!("{} has no right to them", missing.who);
            if check.id == RIGHT_FREEZES.id {
                return check
                    .warning(format!("where Pipelines are followed, nothing is promoted: {reason}"))
                    .hint(remedy(check));
            }
            if check.id == RIGHT_HISTORIES.id {
                return check.warning(format!("no history is written: {reason}")).hint(remedy(check));
            }
            return check.untried(format!("nothing is done with them: {reason}")).hint(remedy(check));
        }
        if !lacks.is_empty() {
            let reason = format!("{} may not {}", missing.who, lacks.join(", "));
            let hint = missing.hint.clone().unwrap_or_else(|| remedy(check).to_owned());
            return Finding { mark: missing.mark, ..check.failed(reason) }.hint(hint);
        }
        match error {
            Some(error) => check.warning(format!("not told: {error}")),
            None => check.good(format!("may {}", may.join(", "))),
        }
    }
}

/// Kinds that are left alone where there is no right to them at all: a cluster may have them for others.
pub fn optional(config: &Config) -> Vec<Check> {
    let pipelines = config.pipeline.enabled;
    let kinds = [(RIGHT_PIPELINES, pipelines), (RIGHT_FREEZES, pipelines), (RIGHT_REPOS, config.repo.enabled)];
    let left = kinds.into_iter().filter(|(_, enabled)| *enabled == Enabled::Auto).map(|(check, _)| check);
    left.chain([RIGHT_HISTORIES, RIGHT_STATEFUL_SETS, RIGHT_DAEMON_SETS, RIGHT_ROLLOUTS]).collect()
}

/// Asks for each right, and makes one line of each check and namespace.
pub async fn review(
    reviews: &Reviews,
    whom: &Whom,
    rights: Vec<(Check, Right)>,
    missing: &Missing,
    optional: &[Check],
) -> Vec<Finding> {
    let asked = rights.into_iter().map(|(check, right)| async move {
        let answer = reviews.may(whom, &right).await;
        (check, right, answer)
    });
    let mut lines: BTreeMap<(usize, String), Line> = BTreeMap::new();
    for (check, right, answer) in join_all(asked).await {
        let place =
            right.namespace.as_ref().map_or_else(|| "in all namespaces".to_owned(), |name| format!("in {name}"));
        let empty = || Line { check, may: Vec::new(), lacks: Vec::new(), error: None };
        let line = lines.entry((check.place(), place)).or_insert_with(empty);
        let words = format!("{} {}", right.verb, right.resource_name());
        match answer {
            Ok(true) => line.may.push(words),
            Ok(false) => line.lacks.push(words),
            Err(error) => line.error = Some(error.to_string()),
        }
    }
    lines.into_iter().map(|((_, place), line)| line.finding(missing, optional).of(place)).collect()
}
