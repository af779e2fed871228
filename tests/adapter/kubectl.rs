//! The real kubectl against the stand-in, as a person who plays with the demo uses it: without a flag that switches a check off.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use sandbox::http::Server;
use sandbox::kubernetes::{KubernetesStandIn, Options};
use serde_json::json;

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

/// The words of each line.
fn words(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split_whitespace().collect()).collect()
}

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
async fn our_kinds_have_the_columns_of_their_definitions() {
    let shell = Shell::start().await;
    let conditions = json!([{"type": "Ready", "status": "False", "message": "git says no"}]);
    let repo = json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Repo", "metadata": {"name": "infra", "namespace": "default"},
        "spec": {"url": "https://git.example.com/infra.git"},
        "status": {"shortRevision": "0badcafe", "run": {"phase": "Failed"}, "conditions": conditions},
    });
    shell.cluster.apply(repo).unwrap();
    let pipeline = json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"appRef": {"kind": "Deployment", "name": "web"}}, "status": {"latestRevision": "1.4"},
    });
    shell.cluster.apply(pipeline).unwrap();
    let repos = shell.done("get repos", "");
    let [head, row] = words(&repos).try_into().unwrap();
    assert_eq!(head, ["NAME", "URL", "REVISION", "RUN", "AGE", "READY", "STATUS"]);
    assert_eq!(row[..4], ["infra", "https://git.example.com/infra.git", "0badcafe", "Failed"]);
    assert_eq!(row[5..], ["False", "git", "says", "no"]);
    let narrow = shell.done("get pipelines web", "");
    assert_eq!(words(&narrow)[0], ["NAME", "APP", "KIND", "APP", "NAME", "AGE", "READY", "STATUS"]);
    let wide = shell.done("get pipelines -o wide", "");
    assert!(wide.contains("LATEST") && words(&wide)[1].contains(&"1.4"), "{wide}");
}

#[tokio::test]
async fn our_kinds_are_explained() {
    let shell = Shell::start().await;
    let said = shell.done("explain repo.spec.url", "");
    assert!(said.contains("KIND:") && said.contains("Repo") && said.contains("FIELD: url <string>"), "{said}");
    assert!(shell.done("explain pipelines --recursive", "").contains("appRef"));
}
