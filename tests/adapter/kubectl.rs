//! The real kubectl against the stand-in, as a person who plays with the demo uses it, without a flag that switches a check off: `get`,
//! `describe`, `apply`, `set image`, `rollout status` and `rollout undo`.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use sandbox::http::Server;
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options};
use serde_json::{Value, json};

/// A person with a shell, and the cluster.
struct Shell {
    cluster: KubernetesStandIn,
    server: Server,
    home: tempfile::TempDir,
}

impl Shell {
    async fn start() -> Self {
        let cluster = KubernetesStandIn::new(Options::default());
        cluster.set_installed("allclear.dev", true);
        let server = cluster.start().await.unwrap();
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config"), cluster.kubeconfig(&server)).unwrap();
        Self { cluster, server, home }
    }

    /// Whether kubectl was content, and what it said.
    fn kubectl(&self, arguments: &str, input: &str) -> (bool, String) {
        let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/kubectl");
        let program = if own.is_file() { own } else { PathBuf::from("kubectl") };
        let mut running = Command::new(program)
            .args(arguments.split(' '))
            .env_clear()
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("kubectl does not run ({error}): get it by scripts/test-setup.sh"));
        running.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let ended = running.wait_with_output().unwrap();
        let said = [ended.stdout, ended.stderr].concat();
        (ended.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    fn done(&self, arguments: &str, input: &str) -> String {
        let (well, said) = self.kubectl(arguments, input);
        assert!(well, "kubectl {arguments}: {said}\n{:?}", self.server.seen().last());
        said
    }
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web:1}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, ports: [{port: 80}]}
";

const REPO: &str = "
apiVersion: allclear.dev/v1alpha1
kind: Repo
metadata: {name: infra, namespace: default}
spec: {url: https://git.example.com/infra.git}
";

#[tokio::test]
async fn a_file_is_created_and_applied_with_all_checks_on() {
    let shell = Shell::start().await;
    let dry = shell.done("apply -f - --dry-run=server", DEPLOYMENT);
    assert!(dry.contains("created (server dry run)"), "{dry}");
    let first = shell.done("apply -f -", DEPLOYMENT);
    assert!(first.contains("deployment.apps/web created") && first.contains("service/web created"), "{first}");
    let second = shell.done("apply -f -", &DEPLOYMENT.replace("web:1", "web:2"));
    assert!(second.contains("deployment.apps/web configured") && second.contains("service/web unchanged"), "{second}");
    let image = shell.done("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}", "");
    assert_eq!(image, "web:2");
    assert!(shell.done("create -f -", REPO).contains("repo.allclear.dev/infra created"));
    assert!(shell.done("delete -f -", REPO).contains("deleted"));
}

#[tokio::test]
async fn a_misspelt_field_of_our_kinds_is_refused_by_its_name() {
    let shell = Shell::start().await;
    let misspelt = REPO.replace("url:", "ulr:");
    for command in ["create -f -", "apply -f -"] {
        let (well, said) = shell.kubectl(command, &misspelt);
        assert!(!well && said.contains("strict decoding error: unknown field \"spec.ulr\""), "{said}");
    }
    shell.done("create -f - --validate=false", &misspelt);
}

#[tokio::test]
async fn what_the_demo_has_can_be_looked_at() {
    let shell = Shell::start().await;
    shell.done("apply -f -", DEPLOYMENT);
    shell.cluster.expose("default", "web", "www.example.com").unwrap();
    shell.cluster.settle();
    let web = shell.cluster.get(Kind::Deployment, "default", "web").unwrap();
    let about = json!({"kind": "Deployment", "namespace": "default", "name": "web", "uid": web["metadata"]["uid"]});
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "web.1", "namespace": "default"},
        "type": "Normal", "reason": "PurgeCompleted", "note": "CloudFront reports the purge completed", "regarding": about,
    });
    shell.cluster.apply(event).unwrap();
    let all = shell.done("get deployments,pods,ingresses,events", "");
    let rows: Vec<String> = all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for part in [
        "NAME READY UP-TO-DATE AVAILABLE AGE",
        "deployment.apps/web 2/2 2 2",
        "NAME READY STATUS RESTARTS AGE",
        "1/1 Running 0",
        "NAME CLASS HOSTS ADDRESS PORTS AGE",
        "ingress.networking.k8s.io/web <none> www.example.com 80",
        "LAST SEEN TYPE REASON OBJECT MESSAGE",
        "Normal PurgeCompleted deployment/web CloudFront reports the purge completed",
    ] {
        assert!(rows.iter().any(|row| row.contains(part)), "{part}: {all}");
    }
    let described = shell.done("describe deployment web", "");
    for part in [
        "web:1",
        "2 desired | 2 updated | 2 total | 2 available",
        "NewReplicaSet:",
        "CloudFront reports the purge completed",
    ] {
        assert!(described.contains(part), "{part}: {described}");
    }
    assert!(shell.done("get repos,configmaps,services -A", "").contains("service/web"));
}

#[tokio::test]
async fn a_rollout_is_begun_followed_and_undone() {
    let shell = Shell::start().await;
    shell.done("apply -f -", DEPLOYMENT);
    shell.cluster.settle();
    let image = || shell.done("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}", "");
    let set = shell.done("set image deployment/web web=web:2", "");
    assert!(set.contains("deployment.apps/web image updated"), "{set}");
    shell.cluster.step();
    let waits = shell.done("rollout status deployment/web --watch=false", "");
    assert!(waits.contains("Waiting for deployment \"web\" rollout to finish"), "{waits}");
    shell.cluster.settle();
    let done = shell.done("rollout status deployment/web", "");
    assert!(done.contains("deployment \"web\" successfully rolled out") && image() == "web:2", "{done}");
    let undone = shell.done("rollout undo deployment/web", "");
    assert!(undone.contains("deployment.apps/web rolled back") && image() == "web:1", "{undone}");
}

/// Directly behind `kubectl apply`, an answer to the spec before is no answer.
#[tokio::test]
async fn a_wait_takes_no_condition_of_an_older_generation() {
    let shell = Shell::start().await;
    shell.done("create -f -", REPO);
    let generation = shell.cluster.get(Kind::Repo, "default", "infra").unwrap()["metadata"]["generation"].clone();
    let said = |observed: i64, holds: &str| {
        let condition = json!({
            "type": "Ready", "status": holds, "reason": "Applied", "message": "", "observedGeneration": observed,
            "lastTransitionTime": "2026-11-22T22:10:00Z",
        });
        json!({"status": {"observedGeneration": observed, "conditions": [condition]}})
    };
    let current = generation.as_i64().unwrap();
    for (observed, holds, is_met) in [(current - 1, "True", false), (current, "False", false), (current, "True", true)]
    {
        shell.cluster.patch(Kind::Repo, "default", "infra", &said(observed, holds)).unwrap();
        let (met, told) = shell.kubectl("wait --for=condition=Ready repo/infra --timeout=1s", "");
        assert_eq!(met, is_met, "{observed} of {current}, {holds}: {told}");
    }
}

/// What `kubectl get` prints of our kinds. No server says that a column leads nowhere: it is empty then.
#[test]
fn every_column_of_our_kinds_is_a_field_of_their_schema() {
    for file in ["pipelines", "pipelines-weave", "promotionfreezes", "repos"] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("deploy/crds/{file}.yaml"));
        let crd: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let version = &crd["spec"]["versions"][0];
        let columns = version["additionalPrinterColumns"].as_array().unwrap();
        assert!(columns.len() >= 4, "{file}");
        for column in columns.iter().filter(|column| column["name"] != "Age") {
            let path = column["jsonPath"].as_str().unwrap();
            let fields = path.replace("[?(@.type==\"", ".#").replace("\")]", "");
            let mut schema = &version["schema"]["openAPIV3Schema"];
            for field in fields.split('.').skip(1) {
                schema = if field.starts_with('#') { &schema["items"] } else { &schema["properties"][field] };
            }
            assert_eq!(schema["type"], column["type"], "{file}: {path}");
        }
    }
}
