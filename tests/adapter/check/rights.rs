//! Each right of the controller, taken away by itself; and the list of them, held to the roles of deploy/.

use allclear::adapters::kubernetes::reviews::Right;
use allclear::cli::check::install::{IN_CLUSTER, IN_NAMESPACE};
use allclear::cli::check::rights::{Served, needs, rights};
use serde_json::{Value, json};

use super::*;

const BOTH: Served = Served { pipelines: true, freezes: true, repos: true, histories: true, rollouts: true };

#[tokio::test]
async fn each_right_that_is_missing_is_named_by_its_check() {
    let mut world = World::start().await;
    world.api.set_installed("allclear.dev", true);
    world.sections.insert("hooks", "listen = \"0.0.0.0:9292\"\nallow_unsigned = true".to_owned());
    let gateway = "gateway.networking.k8s.io";
    for (check, verb, group, resource) in [
        ("right-deployments", "watch", "apps", "deployments"),
        ("right-pods", "list", "", "pods"),
        ("right-endpointslices", "list", "discovery.k8s.io", "endpointslices"),
        ("right-services", "list", "", "services"),
        ("right-ingresses", "list", "networking.k8s.io", "ingresses"),
        ("right-routes", "list", gateway, "httproutes"),
        ("right-routes", "list", gateway, "referencegrants"),
        ("right-gateways", "get", gateway, "gateways"),
        ("right-events", "create", "", "events"),
        ("right-ledger", "update", "", "configmaps"),
        ("right-lease", "get", "coordination.k8s.io", "leases"),
        ("right-pipelines", "update", "allclear.dev", "pipelines/status"),
        ("right-freezes", "list", "allclear.dev", "promotionfreezes"),
        ("right-histories", "create", "allclear.dev", "histories"),
        ("right-repos", "watch", "allclear.dev", "repos"),
        ("right-hooks", "patch", "allclear.dev", "repos"),
    ] {
        world.api.allow_all();
        world.forbid(verb, group, resource);
        world.fails(check, &format!("may not {verb} {resource}")).await;
    }
}

#[tokio::test]
async fn a_kind_without_any_right_is_left_alone_and_no_failure() {
    let mut world = World::start().await;
    world.api.set_installed("allclear.dev", true);
    for verb in ["get", "list", "watch"] {
        world.forbid(verb, "allclear.dev", "pipelines");
    }
    world.forbid("update", "allclear.dev", "pipelines/status");
    let report = world.report().await;
    said(&report, "right-pipelines", "nothing is done with them");
    assert_eq!(report.failed, 0, "{report}");
    world.sections.insert("pipeline", "enabled = \"on\"".to_owned());
    world.fails("right-pipelines", "may not get pipelines").await;
}

#[tokio::test]
async fn rollouts_are_asked_for_where_the_cluster_has_them_and_left_out_without_a_right() {
    let world = World::start().await;
    let report = world.report().await;
    assert!(report.findings.iter().all(|found| found.check.id != "right-rollouts"), "{report}");
    world.api.set_installed("argoproj.io", true);
    for verb in ["get", "list", "watch"] {
        world.forbid(verb, "argoproj.io", "rollouts");
    }
    let report = world.report().await;
    said(&report, "right-rollouts", "nothing is done with them");
    assert_eq!(report.failed, 0, "{report}");
    world.api.allow_all();
    world.forbid("watch", "argoproj.io", "rollouts");
    world.fails("right-rollouts", "may not watch rollouts").await;
}

#[tokio::test]
async fn the_name_of_the_cluster_needs_a_right_where_the_member_has_none() {
    let mut world = World::bare().await;
    world.sections.entry("group").and_modify(|keys| {
        *keys = keys.replace("member = \"eu-1\"\nmembers = [\"eu-1\", \"eu-2\"]", "members = []");
    });
    let report = world.report().await;
    let told = report.findings.iter().find(|found| found.check.id == "group-name").unwrap().reason.clone();
    let name = told.split(' ').next().unwrap();
    world.sections.entry("group").and_modify(|keys| {
        *keys = keys.replace("members = []", &format!("members = [\"{name}\", \"eu-2\"]"));
    });
    world.install(name).await;
    let report = world.report().await;
    assert_eq!((report.failed, report.warnings), (0, 0), "{report}");
    // The person who asks may read it, the controller may not.
    world.forbid("get", "", "namespaces");
    world.fails("right-namespaces", "may not get namespaces").await;
}

#[tokio::test]
async fn a_right_is_asked_for_in_each_namespace_that_is_watched() {
    let mut world = World::start().await;
    world.api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blog"}})).unwrap();
    world.sections.insert("watch", "namespaces = [\"shop\", \"blog\"]".to_owned());
    let right = Forbidden::everywhere("list", "", "services");
    let namespace = Some("blog".to_owned());
    world.api.forbid(Forbidden { user: Some(CONTROLLER.to_owned()), namespace, ..right });
    let report = world.fails("right-services", "in blog").await;
    said(&report, "right-services", "in shop may list services");
}

#[tokio::test]
async fn a_person_who_may_not_ask_for_the_account_sees_own_rights_and_no_failure() {
    let world = World::start().await;
    world.forbid_caller("create", "authorization.k8s.io", "subjectaccessreviews");
    world.forbid_caller("create", "", "events");
    let report = world.warns("right-events", "kubectl -n allclear exec deploy/allclear -- allclear check").await;
    assert_eq!(report.rights_of, world.api.user());
    // What the person may not do with the ledger says nothing of the controller.
    world.forbid_caller("", "", "configmaps");
    let report = world.report().await;
    assert_eq!(marked(&report, Mark::Failed), [""; 0], "{report}");
    said(&report, "ledger-write", "not tried");
}

fn documents(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    text.split("\n---\n").map(|part| serde_saphyr::from_str(part).unwrap()).collect()
}

/// The rights that the roles in these files give, as "group/resource name verb".
fn granted(paths: &[&str]) -> BTreeSet<String> {
    let strings = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(|one| one.as_str().unwrap().to_owned()).collect()
    };
    let mut found = BTreeSet::new();
    for rule in
        paths.iter().flat_map(|path| documents(path)).filter_map(|role| role["rules"].as_array().cloned()).flatten()
    {
        let mut names = strings(&rule["resourceNames"]);
        if names.is_empty() {
            names.push(String::new());
        }
        for group in strings(&rule["apiGroups"]) {
            for resource in strings(&rule["resources"]) {
                for verb in strings(&rule["verbs"]) {
                    found.extend(names.iter().map(|name| format!("{group}/{resource} {name} {verb}")));
                }
            }
        }
    }
    found
}

fn asked(world: &World, served: Served) -> BTreeSet<String> {
    let watched = BTreeSet::from([None]);
    let asked = rights(&needs(&world.loaded().config, served), &watched, "allclear");
    let words = |Right { verb, group, resource, name, .. }| {
        format!("{group}/{resource} {} {verb}", Option::<&str>::unwrap_or_default(name))
    };
    asked.into_iter().map(|(_, right)| words(right)).collect()
}

#[tokio::test]
async fn what_is_asked_for_is_what_the_roles_of_deploy_give() {
    let base = ["deploy/base/cluster-role.yaml", "deploy/base/ledger-role.yaml"];
    let mut world = World::start().await;
    world.sections.entry("group").and_modify(|keys| *keys = keys.replace("member = \"eu-1\"\n", ""));
    let argo = Served { rollouts: true, ..Served::default() };
    assert_eq!(asked(&world, argo), granted(&base));
    let without = asked(&world, Served::default());
    assert!(!without.is_empty() && without.iter().all(|right| !right.contains("argoproj.io")), "{without:?}");
    world.sections.insert("pipeline", "groups = [\"allclear.dev\", \"pipelines.weave.works\"]".to_owned());
    world.sections.insert("hooks", "listen = \"0.0.0.0:9292\"\nallow_unsigned = true".to_owned());
    let all = [
        base[0],
        base[1],
        "deploy/components/pipelines/role.yaml",
        "deploy/overlays/weave/role.yaml",
        "deploy/components/repo/role.yaml",
        "deploy/components/hooks/role.yaml",
    ];
    assert_eq!(asked(&world, BOTH), granted(&all));
}

#[test]
fn what_a_person_makes_is_what_the_base_has() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/base");
    let mut kinds = BTreeSet::from(["configmap".to_owned()]);
    for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()) {
        if file.ends_with(".yaml") && file != "kustomization.yaml" {
            let found = documents(&format!("deploy/base/{file}"));
            kinds.extend(found.iter().filter_map(|object| Some(object["kind"].as_str()?.to_lowercase())));
        }
    }
    let made = IN_NAMESPACE.iter().chain(&IN_CLUSTER).map(|(_, plural)| plural.replace("policies", "policy"));
    let made: BTreeSet<String> = made.map(|plural| plural.strip_suffix('s').unwrap_or(&plural).to_owned()).collect();
    assert_eq!(made, kinds);
}
