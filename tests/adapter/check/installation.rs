//! What is wrong with the installation itself, or with what people wrote: each is named, and nothing else fails.

use std::time::Instant;

use sandbox::http::{Action, Fault, Reply, Request, Seen, When};
use sandbox::kubernetes::Kind;
use serde_json::Value;

use super::*;

impl World {
    /// The Deployment of the controller, as the manifests make it, with so many replicas.
    fn deploy(&self, replicas: u32, account: &str, args: &[&str]) {
        let labels = json!({"app.kubernetes.io/name": "allclear", "app.kubernetes.io/part-of": "allclear"});
        let map = json!({"configMap": {"name": "allclear-config-x7"}});
        let spec = json!({
            "serviceAccountName": account,
            "containers": [{"name": "allclear", "image": "allclear:2", "args": args}],
            "volumes": [{"name": "config", "projected": {"sources": [map]}}],
        });
        self.api
            .put(json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"namespace": "allclear", "name": "allclear", "labels": labels, "uid": "u-1"},
                "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                         "template": {"metadata": {"labels": labels}, "spec": spec}},
            }))
            .unwrap();
    }

    /// A pod of it.
    fn pod(&self, image: &str, status: &Value) {
        let labels = json!({"app.kubernetes.io/name": "allclear", "app.kubernetes.io/part-of": "allclear"});
        self.api
            .put(json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"namespace": "allclear", "name": "allclear-7d9-x4", "labels": labels, "uid": "u-2"},
                "spec": {"containers": [{"name": "allclear", "image": image}]},
                "status": status,
            }))
            .unwrap();
    }

    /// Nobody holds the Lease.
    fn idle(&self) {
        self.api.delete(Kind::Lease, "allclear", "allclear-leader").unwrap();
    }
}

fn ready() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
}

fn waits(reason: &str, exit: Option<i32>) -> Value {
    let last = exit.map(|code| json!({"terminated": {"reason": "Error", "exitCode": code}}));
    let state = json!({"waiting": {"reason": reason}});
    json!({"phase": "Pending", "containerStatuses": [{"ready": false, "state": state, "lastState": last}]})
}

#[tokio::test]
async fn a_pod_that_cannot_be_pulled_is_named() {
    let world = World::start().await;
    world.idle();
    world.deploy(1, "allclear", &["run"]);
    world.pod("allclear:2", &waits("ImagePullBackOff", None));
    let report = world.fails("lease", "no replica works: allclear-7d9-x4: ImagePullBackOff").await;
    said(&report, "controller", "not tried: lease");
}

#[tokio::test]
async fn a_deployment_that_is_scaled_to_zero_is_named() {
    let world = World::start().await;
    world.idle();
    world.deploy(0, "allclear", &["run"]);
    world.fails("lease", "Deployment allclear/allclear is scaled to zero").await;
}

#[tokio::test]
async fn a_pod_that_ends_over_its_configuration_is_named() {
    let world = World::start().await;
    world.idle();
    world.deploy(1, "allclear", &["run"]);
    world.pod("allclear:2", &waits("CrashLoopBackOff", Some(2)));
    world.fails("lease", "its configuration is refused").await;
}

#[tokio::test]
async fn a_replica_in_trouble_beside_one_that_works_is_known() {
    let world = World::start().await;
    world.deploy(2, "allclear", &["run"]);
    world.pod("allclear:2", &waits("ImagePullBackOff", None));
    world.warns("controller", "another replica works, but allclear-7d9-x4: ImagePullBackOff").await;
}

#[tokio::test]
async fn a_pod_of_another_version_is_named() {
    let world = World::start().await;
    world.deploy(1, "allclear", &["run"]);
    world.pod("allclear:1", &ready());
    world.warns("controller-version", "allclear-7d9-x4 runs allclear allclear:1").await;
}

#[tokio::test]
async fn a_dry_run_that_was_left_in_is_named_wherever_it_stands() {
    let world = World::start().await;
    world.deploy(1, "allclear", &["run", "--dry-run"]);
    world.pod("allclear:2", &ready());
    world.warns("dry-run", "Deployment allclear/allclear asks for a dry run").await;
    world.deploy(1, "allclear", &["run"]);
    let metadata = json!({"namespace": "allclear", "name": "allclear-config-x7"});
    let data = json!({"config.toml": "dry_run = true\n[log]\nlevel = \"info\"\n"});
    world.api.put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})).unwrap();
    world.warns("dry-run", "the ConfigMap allclear-config-x7").await;
}

#[tokio::test]
async fn the_account_is_that_of_the_deployment() {
    let world = World::start().await;
    world.deploy(1, "allclear-b", &["run"]);
    world.pod("allclear:2", &ready());
    let report = world.report().await;
    assert_eq!((report.failed, report.warnings), (0, 0), "{report}");
    assert_eq!(report.rights_of, "the service account allclear-b of namespace allclear");
}

#[tokio::test]
async fn a_watched_namespace_that_does_not_exist_is_named() {
    let mut world = World::start().await;
    world.sections.insert("watch", "namespaces = [\"shop\", \"shpo\"]".to_owned());
    world.fails("watched-namespaces", "shpo there is no such namespace").await;
}

#[tokio::test]
async fn a_full_quota_is_no_missing_right() {
    let world = World::start().await;
    let full = r#"{"kind":"Status","code":403,"reason":"Forbidden","message":"configmaps \"x\" is forbidden: exceeded quota: objects, used: 10, limited: 10"}"#;
    let matches = |request: &Request| request.query.contains_key("dryRun");
    let answer = Action::Answer(Reply::full(403, "application/json", full));
    world.api_server.inject(Fault::once(When::Before, answer).matching(matches));
    world.fails("ledger-write", "exceeded quota").await;
}

#[tokio::test]
async fn annotations_that_cannot_be_used_are_named_with_their_workload() {
    let world = World::start().await;
    let change = json!({"metadata": {"annotations": {"allclear.dev/paths": "no slash"}}});
    world.api.patch(Kind::Deployment, "shop", "web", &change).unwrap();
    world.warns("annotations", "shop/web").await;
}

#[tokio::test]
async fn a_webhook_that_is_about_no_workload_is_named() {
    let mut world = World::start().await;
    world.hooks[0]["name"] = json!("wbe");
    world.warns("webhook-workloads", "called for wbe, and no such workload is watched").await;
}

#[tokio::test]
async fn a_secret_that_would_go_where_it_may_not_is_named_with_who_names_it() {
    let mut world = World::start().await;
    world.api.set_installed("allclear.dev", true);
    let secret = |name: &str, hosts: Option<&str>| {
        let annotations = hosts.map(|hosts| json!({"allclear.dev/send-to": hosts}));
        let metadata = json!({"namespace": "shop", "name": name, "annotations": annotations});
        world
            .api
            .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"token": "cGVhcmw="}}))
            .unwrap();
    };
    secret("forge", Some("git.example.com"));
    secret("elsewhere", Some("git.example.com"));
    secret("bare", None);
    let environment =
        |name: &str, promotion: &Value| json!({"name": name, "targets": [{"namespace": name}], "promotion": promotion});
    let request = |host: &str, secret: &str| {
        let repository = json!({"type": "gitea", "url": format!("https://{host}/shop/web.git"), "baseBranch": "main",
                                "secretRef": {"name": secret}});
        json!({"strategy": {"pull-request": repository}})
    };
    let apply = |environments: Value| {
        let spec = json!({"appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "environments": environments});
        let metadata = json!({"namespace": "shop", "name": "web"});
        world
            .api
            .apply(
                json!({"apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "metadata": metadata, "spec": spec}),
            )
            .unwrap();
    };
    let dev = json!({"name": "dev", "targets": [{"namespace": "dev"}]});
    apply(json!([dev, environment("prod", &request("git.example.com", "forge"))]));
    said(&world.report().await, "secret-hosts", "1 Secret goes where it may");
    apply(json!([
        dev,
        environment("test", &request("git.example.com", "forge")),
        environment("stage", &request("evil.example.net", "elsewhere")),
        environment("prod", &request("git.example.com", "bare")),
    ]));
    let report = world
        .fails("secret-hosts", "shop/elsewhere named by Pipeline shop/web: it is not sent to evil.example.net")
        .await;
    said(&report, "secret-hosts", "kubectl annotate secret bare -n shop allclear.dev/send-to=git.example.com");
    assert!(!report.to_string().contains("shop/forge") && !report.to_string().contains("pearl"), "{report}");
    // Where namespaces are listed, no right to all of them is needed.
    world.sections.insert("watch", "namespaces = [\"shop\"]".to_owned());
    let from = Instant::now();
    world.fails("secret-hosts", "shop/elsewhere").await;
    let seen = world.api_server.seen();
    let everywhere = |seen: &&Seen| seen.at >= from && seen.path == "/apis/allclear.dev/v1alpha1/pipelines";
    assert_eq!(seen.iter().filter(everywhere).count(), 0);
    world.forbid_caller("get", "", "secrets");
    let report = world.report().await;
    assert!(marked(&report, Mark::NotTried).contains(&"secret-hosts"), "{report}");
    assert_eq!(report.failed, 0, "{report}");
}
