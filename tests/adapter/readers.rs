//! The rights of people who ask: each command with exactly those that docs/security.md lists for it, each of these taken away
//! by itself, and the list held to the roles of deploy/. The stand-in keeps no roles; what a role would refuse is refused in
//! front of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use allclear::adapters::cloudfront::Timeouts;
use allclear::adapters::kubernetes::crd::repo::Installation as OfRepos;
use allclear::adapters::kubernetes::desk::Desk;
use allclear::adapters::kubernetes::histories::KubernetesHistories;
use allclear::adapters::kubernetes::installation::Installation;
use allclear::adapters::kubernetes::objects::{GROUP, RepoKind};
use allclear::adapters::kubernetes::{Cluster, Scope, Tempo};
use allclear::adapters::ledger::kubernetes::KubernetesLedger;
use allclear::cli::answer::{Outcome, Output};
use allclear::cli::explain::explain;
use allclear::cli::history::history;
use allclear::cli::objects;
use allclear::cli::status::{Asked, status};
use allclear::cli::wait::{Wait, wait};
use allclear::looking::whose::Whose;
use allclear::looking::{About, Question, Sources};
use kernel::id::{PipelineId, RepoId, WorkloadId};
use purge::bounds::policy::Policy;
use purge::purges::accounts::Accounts;
use purge::records::record::Record;
use purge::records::record_codec::decode;
use purge::rollouts::goal::Goal;
use sandbox::cloudfront::{self as stand_in, CloudFrontStandIn, Distribution};
use sandbox::http::Server;
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options as StandInOptions};
use serde_json::{Value, json};

use crate::cloudfront::adapter;
use crate::served;

/// A verb on a resource of a group, in a namespace.
type Right = (String, String, String);

/// What the role `view` has had since Kubernetes 1.21, as far as it matters here.
/// <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles>
const VIEW: [&str; 7] = [
    "pods",
    "services",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "ingresses.networking.k8s.io",
    "endpointslices.discovery.k8s.io",
];

/// `shop/web`, behind an Ingress and a route, rolls out; it is on record. A Pipeline and a Repo are beside it.
pub(crate) struct World {
    api: KubernetesStandIn,
    server: Server,
    _account: Arc<CloudFrontStandIn>,
    // Serves as long as it lives.
    _edge: Server,
    pub(crate) sources: Sources,
    histories: KubernetesHistories,
}

pub(crate) fn text(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn route() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"namespace": "shop", "name": "api"},
        "spec": {
            "hostnames": ["api.example.com"], "parentRefs": [{"name": "edge"}],
            "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
        },
        "status": {"parents": [{
            "controllerName": "example.com/gateway", "parentRef": {"name": "edge"},
            "conditions": [{"type": "Accepted", "status": "True"}],
        }]},
    })
}

fn gateway() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"namespace": "shop", "name": "edge"},
        "spec": {"gatewayClassName": "x", "listeners": [{"name": "https", "port": 443, "protocol": "HTTPS"}]},
    })
}

impl World {
    pub(crate) async fn start() -> Self {
        let world = Self::at_rest().await;
        world.api.set_image("shop", "web", "web", "shop/web:2").unwrap();
        world.record("shop/web:2", &json!("rolling"), |_| {}).await;
        world
    }

    /// Before its rollout.
    pub(crate) async fn at_rest() -> Self {
        let world = Self::unrecorded().await;
        world.sources.ledger.open().await.unwrap();
        world.record("shop/web:1", &json!("complete"), |_| {}).await;
        world
    }

    /// Its record at this image and in this phase, with a change.
    pub(crate) async fn record(&self, image: &str, phase: &Value, change: impl FnOnce(&mut Record)) {
        let uid = self.api.get(Kind::Deployment, "shop", "web").unwrap()["metadata"]["uid"].clone();
        let mut record = json!({
            "r": 1, "u": uid, "s": 3, "v": {"web": image}, "c": "changed", "p": phase,
            "k": if phase == "rolling" { 2 } else { 3 },
            "h": [{"s": 2, "c": "web: 0 → 1", "o": "purged", "p": [["E1", null]]}],
        });
        let id = WorkloadId::deployment("shop", "web");
        let known = self.sources.ledger.load(&id).await.unwrap();
        record["r"] = json!(known.map_or(1, |known| known.revision + 1));
        let mut record = decode(record.to_string().as_bytes()).unwrap();
        change(&mut record);
        self.sources.ledger.store(&id, &record).await.unwrap();
    }

    /// Without a ledger.
    pub(crate) async fn unrecorded() -> Self {
        let api = KubernetesStandIn::new(StandInOptions::default());
        for namespace in ["shop", "allclear"] {
            api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).unwrap();
        }
        api.set_installed(GROUP, true);
        api.set_installed("argoproj.io", true);
        api.seed("shop", "web", "shop/web:1", 2).unwrap();
        api.expose("shop", "web", "www.example.com").unwrap();
        for object in [gateway(), route()] {
            api.put(object).unwrap();
        }
        let of = |kind: &str, spec: Value| {
            let metadata = json!({"namespace": "shop", "name": "web"});
            json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": kind, "metadata": metadata, "spec": spec})
        };
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let environments = json!([{"name": "prod", "targets": [{"namespace": "shop"}]}]);
        api.apply(of("Pipeline", json!({"appRef": target, "environments": environments}))).unwrap();
        api.apply(of("Repo", json!({"url": "https://git.example.com/shop/web.git"}))).unwrap();
        let server = api.start().await.unwrap();
        let clients = served::clients(&api, &server).await;
        let account = Arc::new(CloudFrontStandIn::new(stand_in::Options::default()));
        for (id, host) in [("E1", "www.example.com"), ("E2", "api.example.com")] {
            account.add_distribution(Distribution::new(id).alias(host));
        }
        let edge = Server::start(account.clone()).await.unwrap();
        let scope = Scope::Namespaces(["shop".to_owned()].into());
        let sources = Sources {
            cluster: Arc::new(Cluster::new(&clients, scope, Tempo::default())),
            ledger: Arc::new(KubernetesLedger::new(clients.request.clone(), "allclear")),
            cdn: Arc::new(adapter(&edge.url(), "AKIDONE", Timeouts::default()).await),
            accounts: Accounts::default(),
            group: None,
            installation: Some(Installation::new(&clients.request, "allclear")),
            desk: Some(Desk::new(&clients, &[GROUP.to_owned()], false)),
            repos: Some(Desk::of_repos(&clients, OfRepos::default())),
            own_namespace: "shop".to_owned(),
            ledger_place: "namespace allclear".to_owned(),
            us: About { member: "self".to_owned(), group: "default".to_owned(), dry_run: false },
            policy: Policy::default(),
            whose: Whose::Itself,
        };
        let histories = KubernetesHistories::new(&clients);
        Self { api, server, _account: account, _edge: edge, sources, histories }
    }

    /// Runs a command as the table writes it.
    async fn run(&self, command: &str) -> Outcome {
        let Self { sources, .. } = self;
        let (desk, repos) = (sources.desk.as_ref().unwrap(), sources.repos.as_ref().unwrap());
        let named = Question { namespace: None, name: Some("shop/web".to_owned()) };
        let all = Question { namespace: Some("shop".to_owned()), name: None };
        let pipeline = PipelineId::new("shop", "web");
        let repo = RepoId::new("shop", "web");
        match command {
            "explain NAME" => explain(sources, &named, Output::Json).await,
            "explain -n NS" => explain(sources, &all, Output::Json).await,
            "status -n NS" => status(&Asked::Sources(sources, Some("shop")), Output::Json).await,
            "history NAME" => history(sources, &named, Output::Json).await,
            "wait NAME" => {
                let bounds = Wait { goal: Goal::Complete, at_most: Duration::from_millis(300) };
                wait(sources, &named, bounds, &mut |_| {}).await
            }
            "pipeline list -n NS" => objects::list(desk, Some("shop"), Output::Json).await,
            "explain pipeline/NAME" => objects::explain(objects::Asked::Desk(desk), &pipeline, Output::Json).await,
            "pipeline history NAME" => objects::history(desk, &self.histories, &pipeline, None, Output::Json).await,
            "repo list -n NS" => objects::list(repos, Some("shop"), Output::Json).await,
            "explain repo/NAME" => objects::explain::<RepoKind>(objects::Asked::Desk(repos), &repo, Output::Json).await,
            "repo history NAME" => objects::history(repos, &self.histories, &repo, None, Output::Json).await,
            other => panic!("no test runs {other:?}"),
        }
    }

    /// Leaves these rights and no other, which is what a person then has.
    pub(crate) fn only(&self, rights: &BTreeSet<Right>) {
        let rights = rights.clone();
        served::forbid(&self.server, "not for jane", move |request| {
            judged(request.method.as_str(), &request.path, &request.query).is_some_and(|asked| !rights.contains(&asked))
        });
    }

    /// The rights that were asked for, after so many requests.
    fn asked(&self, before: usize) -> BTreeSet<Right> {
        let seen = self.server.seen();
        seen.iter().skip(before).filter_map(|seen| judged(seen.method.as_str(), &seen.path, &seen.query)).collect()
    }
}

/// The right that a request needs, as Kubernetes derives it; `None` where it needs none, as discovery.
/// <https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb>
fn judged(method: &str, path: &str, query: &std::collections::BTreeMap<String, String>) -> Option<Right> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let plural = rest.first()?;
    let watched = query.get("watch").is_some_and(|watch| watch != "0" && watch != "false");
    let verb = match (method, rest.len()) {
        ("GET", 1) if watched => "watch",
        ("GET", 1) => "list",
        ("GET", _) => "get",
        (other, _) => other,
    };
    Some((verb.to_owned(), resource(plural, group), namespace.to_owned()))
}

fn resource(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

/// A cell of the table: `get, list pods, services; watch pods`.
fn cell(cell: &str, namespace: &str) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for part in cell.split(';').map(str::trim).filter(|part| !part.is_empty() && *part != "none") {
        let words: Vec<&str> = part.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let (verbs, resources): (Vec<&str>, Vec<&str>) =
            words.into_iter().partition(|word| ["get", "list", "watch"].contains(word));
        for verb in verbs {
            rights.extend(resources.iter().map(|of| (verb.to_owned(), (*of).to_owned(), namespace.to_owned())));
        }
    }
    rights
}

/// Each command of the table with its rights.
fn table() -> Vec<(String, BTreeSet<Right>)> {
    let page = text("docs/security.md");
    let table =
        page.split("| command | in the namespace that is asked about | in that of the ledger |").nth(1).unwrap();
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let [command, there, ledger] =
            <[&str; 3]>::try_from(line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>()).unwrap();
        let rights = cell(there, "shop").into_iter().chain(cell(ledger, "allclear")).collect();
        (command.trim_matches('`').to_owned(), rights)
    };
    lines.map(row).collect()
}

/// What is asked for in every namespace only narrows a purge; `explain` goes on without, and says so.
fn is_beyond((_, _, namespace): &Right) -> bool {
    namespace.is_empty()
}

#[tokio::test]
async fn each_command_asks_for_the_rights_that_the_documents_list_and_no_other() {
    let rows = table();
    assert!(rows.len() >= 11, "{rows:?}");
    let mut wrong = Vec::new();
    for (command, listed) in rows {
        let world = World::start().await;
        let before = world.server.seen().len();
        let whole = world.run(&command).await;
        let asked: BTreeSet<Right> = world.asked(before).into_iter().filter(|right| !is_beyond(right)).collect();
        let more: Vec<_> = asked.difference(&listed).collect();
        // A server that knows how lists by the watch itself; an older one is asked for a list.
        let streamed = |right: &&Right| {
            right.0 == "list" && asked.contains(&("watch".to_owned(), right.1.clone(), right.2.clone()))
        };
        let idle: Vec<_> = listed.difference(&asked).filter(|right| !streamed(right)).collect();
        if !more.is_empty() || !idle.is_empty() {
            wrong.push(format!("{command}: asks for {more:?} too, and does not ask for {idle:?}"));
        }
        let other = World::start().await;
        other.only(&listed);
        let told = other.run(&command).await;
        if told.code != whole.code || told.out.contains("not for jane") || told.err.contains("not for jane") {
            wrong.push(format!("{command}: {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the roles give, and `view` where they are added to it.
#[test]
fn the_roles_give_what_the_commands_need() {
    let rules = |path: &str| -> BTreeSet<(String, String)> {
        let role: Value = serde_saphyr::from_str(text(path).split("\n---\n").next().unwrap()).unwrap();
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().map(|one| one.as_str().unwrap().to_owned()).collect()
        };
        let mut found = BTreeSet::new();
        for rule in role["rules"].as_array().unwrap() {
            for group in strings(&rule["apiGroups"]) {
                for plural in strings(&rule["resources"]) {
                    found.extend(strings(&rule["verbs"]).into_iter().map(|verb| (verb, resource(&plural, &group))));
                }
            }
        }
        found
    };
    let viewed = VIEW.iter().flat_map(|of| ["get", "list", "watch"].map(|verb| (verb.to_owned(), (*of).to_owned())));
    let there: BTreeSet<(String, String)> = viewed.chain(rules("deploy/components/reader/role.yaml")).collect();
    let ledger = rules("deploy/components/ledger-reader/role.yaml");
    let all = table().into_iter().flat_map(|(_, rights)| rights);
    let (of_ledger, of_namespace): (Vec<Right>, Vec<Right>) = all.partition(|right| right.2 == "allclear");
    let of_ledger: BTreeSet<(String, String)> = of_ledger.into_iter().map(|(verb, of, _)| (verb, of)).collect();
    assert_eq!(of_ledger, ledger, "the Role for the ledger is what the table says");
    let lacking = of_namespace.into_iter().filter(|(verb, of, _)| !there.contains(&(verb.clone(), of.clone())));
    let lacking: Vec<Right> = lacking.collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}

/// The parts of an explanation that speak of a resource. What else changes when the right to it is gone was hidden without a
/// reason.
const PARTS: [(&str, &[&str]); 9] = [
    ("pods", &["deployment", "state", "next", "conditions", "controller"]),
    ("ingresses.networking.k8s.io", &["site", "distributions", "would", "conditions"]),
    ("httproutes.gateway.networking.k8s.io", &["site", "distributions", "would", "conditions"]),
    ("grpcroutes.gateway.networking.k8s.io", &["site", "distributions", "would", "conditions"]),
    ("services", &["site", "distributions", "would", "conditions"]),
    ("gateways.gateway.networking.k8s.io", &["site", "distributions", "would"]),
    ("referencegrants.gateway.networking.k8s.io", &["site", "distributions", "would"]),
    ("configmaps", &["record", "webhooks", "state", "next", "controller", "settings", "conditions"]),
    ("leases.coordination.k8s.io", &["controller", "next"]),
];

#[tokio::test]
async fn one_missing_right_hides_only_its_own_part_and_is_named_there() {
    let (_, rights) = table().into_iter().find(|(command, _)| command == "explain NAME").unwrap();
    let explained = async |taken: Option<&str>| -> Value {
        let world = World::start().await;
        world.only(&rights.iter().filter(|right| taken != Some(right.1.as_str())).cloned().collect());
        serde_json::from_str(&world.run("explain NAME").await.out).unwrap()
    };
    let whole = explained(None).await;
    let hosts = |seen: &Value| -> Vec<String> {
        seen["site"]["hosts"].as_object().into_iter().flat_map(|hosts| hosts.keys().cloned()).collect()
    };
    assert_eq!(hosts(&whole), ["api.example.com", "www.example.com"]);
    for (taken, parts) in PARTS {
        let seen = explained(Some(taken)).await;
        let hidden: Vec<&String> = whole
            .as_object()
            .unwrap()
            .iter()
            .filter(|(part, said)| seen[part.as_str()] != **said && !parts.contains(&part.as_str()))
            .map(|(part, _)| part)
            .collect();
        assert!(hidden.is_empty(), "{taken} hides {hidden:?}: {seen:#}");
        let plural = taken.split('.').next().unwrap();
        assert!(seen.to_string().contains(plural) || taken.starts_with("leases"), "{taken}: {seen:#}");
        let left: &[&str] = match plural {
            "ingresses" => &["api.example.com"],
            "httproutes" => &["www.example.com"],
            "services" => &[],
            _ => &["api.example.com", "www.example.com"],
        };
        assert_eq!(hosts(&seen), left, "{taken}: {seen:#}");
        if plural == "services" {
            assert_eq!(seen["would"], Value::Null, "nothing leads from a workload to a host, as far as can be seen");
        } else if parts.contains(&"would") {
            let would = seen["would"].as_str().unwrap();
            assert!(would.ends_with(", as far as its hosts could be read"), "{taken}: {would}");
            assert_eq!(seen["distributions"]["in_part"], true, "{taken}");
            assert!(seen["site"]["unread"].to_string().contains(plural), "{taken}: {seen:#}");
        }
    }
}

/// What others take of a wildcard is asked for in all namespaces.
#[tokio::test]
async fn what_others_take_is_named_where_it_may_not_be_read() {
    let (_, rights) = table().into_iter().find(|(command, _)| command == "explain NAME").unwrap();
    let world = World::start().await;
    world.api.expose("shop", "web", "*.example.com").unwrap();
    world.only(&rights);
    let seen: Value = serde_json::from_str(&world.run("explain NAME").await.out).unwrap();
    let unread = seen["site"]["unread"].to_string();
    for list in ["failed to list ingresses.networking.k8s.io in all", "failed to list httproutes"] {
        assert!(unread.contains(list), "{seen:#}");
    }
    let would = seen["would"].as_str().unwrap();
    assert!(would.ends_with(", as far as its hosts could be read"), "{would}");
}
