//! The API server, the ledger, and what is asked before an installation.

use allclear::cli::answer::Output;
use allclear::cli::check::check;
use allclear::looking::whose::Whose;
use kernel::id::{Seq, WorkloadId};
use kernel::watches::listed::Scope;
use purge::records::record::Record;
use sandbox::http::{Action, Fault, Reply, Request, When};
use sandbox::kubernetes::Kind;

use super::*;

impl World {
    fn answers(&self, path: &'static str, reply: impl Fn() -> Reply) {
        let matches = move |request: &Request| request.path == path;
        for _ in 0..8 {
            self.api_server.inject(Fault::once(When::Before, Action::Answer(reply())).matching(matches));
        }
    }

    fn version(&self, version: &str, date: Option<&str>) {
        let body = json!({"gitVersion": version}).to_string();
        self.answers("/version", || {
            let reply = Reply::full(200, "application/json", body.clone());
            match date {
                Some(date) => reply.header("date", date),
                None => reply,
            }
        });
    }
}

#[tokio::test]
async fn without_an_api_server_the_rest_is_checked_all_the_same() {
    let world = World::start().await;
    std::fs::write(world.kubeconfig.path(), world.api.kubeconfig_at("http://127.0.0.1:9")).unwrap();
    let report = world.fails("api-server", "Connection refused").await;
    for (check, reason) in [("ledger-read", "not tried: api-server"), ("host-served", "not tried: api-server")] {
        said(&report, check, reason);
    }
    said(&report, "redis-connect", "answers");
    said(&report, "aws-credentials", "CloudFront takes them");
    said(&report, "webhook-answer", "answers (204)");
}

#[tokio::test]
async fn a_proxy_that_answers_everything_is_no_api_server() {
    let world = World::start().await;
    world.answers("/version", || Reply::full(200, "text/html", "<html>Sign in</html>"));
    world.fails("api-server", "a proxy, perhaps").await;
}

#[tokio::test]
async fn a_cluster_that_is_too_old_is_named_and_an_older_one_than_was_tried_is_known() {
    let world = World::start().await;
    world.version("v1.20.15", None);
    world.fails("api-version", "v1.20.15 is too old").await;
    let world = World::start().await;
    world.version("v1.32.9-eks-036c24b", None);
    world.warns("api-version", "older than what allclear is tried with").await;
}

#[tokio::test]
async fn a_clock_that_is_minutes_off_is_reported() {
    let world = World::start().await;
    world.version("v1.33.0", Some("Thu, 01 Jan 2026 00:00:00 GMT"));
    world.warns("api-clock", "ahead of the API server's").await;
}

#[tokio::test]
async fn a_server_that_does_not_say_who_asks_is_no_failure() {
    let world = World::start().await;
    world.answers("/apis/authentication.k8s.io/v1/selfsubjectreviews", || Reply::full(404, "text/plain", "404"));
    world.warns("caller", "404").await;
}

#[tokio::test]
async fn a_ledger_that_cannot_be_written_or_read_is_named_by_what_is_missing() {
    let mut world = World::start().await;
    // A quota refuses; the controller has its right.
    let full = r#"{"kind":"Status","code":403,"reason":"Forbidden","message":"exceeded quota: objects"}"#;
    world.in_pod = true;
    let matches = |request: &Request| request.query.contains_key("dryRun");
    let answer = Action::Answer(Reply::full(403, "application/json", full));
    world.api_server.inject(Fault::once(When::Before, answer).matching(matches));
    world.fails("ledger-write", "exceeded quota").await;

    let world = World::start().await;
    let away = Action::Answer(Reply::full(500, "application/json", r#"{"kind":"Status","code":500,"message":"etcd"}"#));
    let matches = |request: &Request| request.path.ends_with("/configmaps/allclear-ledger");
    world.api_server.inject(Fault::once(When::Before, away).matching(matches).times(9));
    let report = world.fails("ledger-read", "etcd").await;
    said(&report, "group-members", "not tried: ledger-read");
}

#[tokio::test]
async fn a_part_of_the_ledger_that_was_deleted_is_a_failure_and_named() {
    let world = World::start().await;
    let clients = connect(&world.kubernetes()).await.unwrap();
    let ledger = KubernetesLedger::new(clients.request, "allclear");
    ledger.open().await.unwrap();
    let stored = Record { revision: 1, ..Record::first(Seq(7)) };
    ledger.store(&WorkloadId::deployment("shop", "web"), &stored).await.unwrap();
    // As a controller does once it has listed all: from then on what is missing is lost.
    ledger.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
    let report = world.report().await;
    said(&report, "ledger-read", "1 record");
    let maps = world.api.list(Kind::ConfigMap, "allclear");
    let mut names = maps.iter().map(|map| map["metadata"]["name"].as_str().unwrap());
    let part = names.rfind(|name| name.starts_with("allclear-ledger-")).unwrap();
    world.api.delete(Kind::ConfigMap, "allclear", part).unwrap();
    world.fails("ledger-read", &format!("a part of it is lost: {part}")).await;
}

#[tokio::test]
async fn a_namespace_that_is_not_there_is_named() {
    let mut world = World::bare().await;
    world.sections.insert("ledger", "namespace = \"none\"".to_owned());
    world.options.account = Some(("allclear".to_owned(), "allclear".to_owned()));
    let report = world.fails("ledger-namespace", "namespace none does not exist").await;
    said(&report, "ledger-write", "not tried: ledger-namespace");
}

#[tokio::test]
async fn a_second_ledger_is_named() {
    let mut world = World::start().await;
    world.api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old"}})).unwrap();
    let metadata = json!({"namespace": "old", "name": "allclear-ledger"});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"layout": "1"}});
    world.api.apply(map).unwrap();
    world.fails("ledger-second", "every rollout that both see is purged twice (namespace old)").await;
    // Two installations may share a cluster, each with namespaces of its own.
    world.sections.insert("watch", "namespaces = [\"shop\"]".to_owned());
    world.warns("ledger-second", "namespace old").await;
}

#[tokio::test]
async fn a_lease_that_nobody_holds_is_a_failure() {
    let world = World::start().await;
    world.api.delete(Kind::Lease, "allclear", "allclear-leader").unwrap();
    let report = world.fails("lease", "no replica works").await;
    said(&report, "controller", "not tried: lease");
}

#[tokio::test]
async fn kinds_that_are_switched_on_and_not_installed_are_named() {
    let mut world = World::start().await;
    world.sections.insert("pipeline", "enabled = \"on\"".to_owned());
    world.fails("crd-pipelines", "does not serve them").await;
    world.sections.remove("pipeline");
    world.sections.insert("repo", "enabled = \"on\"".to_owned());
    world.fails("crd-repos", "does not serve them").await;
}

#[tokio::test]
async fn a_schema_of_an_earlier_version_is_named_by_what_it_lacks() {
    const REPOS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/repos.allclear.dev";
    let world = World::start().await;
    world.api.set_installed("allclear.dev", true);
    let definition: serde_json::Value = serde_saphyr::from_str(allclear::adapters::kubernetes::crd::repo::CRD).unwrap();
    let mut old = definition.clone();
    let schema = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].as_object_mut().unwrap();
    schema["properties"].as_object_mut().unwrap().remove("suspend").expect("a property of Repos");
    let matches = |request: &Request| request.path == REPOS;
    let answer = |body: &serde_json::Value| Action::Answer(Reply::full(200, "application/json", body.to_string()));
    world.api_server.inject(Fault::once(When::Before, answer(&old)).matching(matches));
    world.fails("crd-version", "it lacks spec.suspend").await;
    world.api_server.inject(Fault::once(When::Before, answer(&definition)).matching(matches));
    let report = world.report().await;
    said(&report, "crd-version", "has all that this version knows");
}

#[tokio::test]
async fn before_the_installation_only_what_must_hold_then_is_asked() {
    let mut world = World::start().await;
    world.options.pre = true;
    let report = world.report().await;
    assert_eq!((report.failed, report.warnings), (0, 0), "{report}");
    let ids: BTreeSet<&str> = report.findings.iter().map(|found| found.check.id).collect();
    assert!(ids.contains("install-rights") && !ids.contains("lease") && !ids.contains("group-members"), "{ids:?}");
    // Its roles are not there yet, so the account has no right; that is no failure.
    world.forbid("", "apps", "deployments");
    world.warns("right-deployments", "it gets this right by the manifests").await;
    world.api.allow_all();
    world.forbid_caller("create", "rbac.authorization.k8s.io", "clusterroles");
    world.fails("install-rights", "you may not create clusterroles.rbac.authorization.k8s.io").await;
}

#[tokio::test]
async fn rights_that_a_person_does_not_hold_cannot_be_granted_unless_it_may_escalate() {
    let mut world = World::start().await;
    world.options.pre = true;
    world.forbid_caller("create", "", "events");
    let report = world.report().await;
    assert_eq!(marked(&report, Mark::Failed), [""; 0], "it may escalate\n{report}");
    world.forbid_caller("escalate", "rbac.authorization.k8s.io", "clusterroles");
    world.fails("install-grants", "you may not create events").await;
}

#[tokio::test]
async fn it_waits_until_nothing_fails_or_its_time_is_up() {
    let mut world = World::start().await;
    world.forbid("list", "", "services");
    world.options.wait = Some(std::time::Duration::from_secs(1));
    let loaded = world.loaded();
    let late =
        check(async || (loaded.clone(), Whose::Itself, world.outside(&loaded).await), &world.options, Output::Table)
            .await;
    assert_eq!(late.code, 1, "{}", late.out);
    world.api.allow_all();
    let outcome =
        check(async || (loaded.clone(), Whose::Itself, world.outside(&loaded).await), &world.options, Output::Table)
            .await;
    assert_eq!(outcome.code, 0, "{}", outcome.out);
}

#[test]
fn the_oldest_version_that_was_tried_is_the_one_the_client_is_made_for() {
    // Compiles for one version only: the feature `earliest` of the crate.
    k8s_openapi::k8s_if_1_33! { const MADE_FOR: u32 = 33; }
    assert_eq!(allclear::cli::check::TRIED_FROM, MADE_FOR);
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/check.md")).unwrap();
    assert!(page.contains(&format!("Kubernetes is 1.{MADE_FOR} or later")));
}
