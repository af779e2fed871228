//! From kustomize to Helm, by the command that the chart's page shows, with the real helm. The stand-in keeps no managers of
//! fields: that another manager holds the Deployment's fields is answered in front of it, as an API server does where `force`
//! is not set. It knows no protobuf either, in which helm writes its release, so that Secret is answered there too.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sandbox::http::{Action, Fault, Reply, Request, Server, When};
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options};
use serde_json::{Value, json};

const CONFLICT: &str = "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using apps/v1: \
                        .spec.template.spec.volumes";

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn answer(status: u16, body: &Value) -> Action {
    Action::Answer(Reply::full(status, "application/json", body.to_string()))
}

fn always(server: &Server, action: Action, matches: impl Fn(&Request) -> bool + Send + Sync + 'static) {
    server.inject(Fault::once(When::Before, action).matching(matches).times(u32::MAX));
}

/// A cluster in which `kubectl apply -k` has installed allclear.
async fn installed(home: &Path) -> (KubernetesStandIn, Server) {
    let api = KubernetesStandIn::new(Options::default());
    let server = api.start().await.unwrap();
    std::fs::write(home.join("config"), api.kubeconfig(&server)).unwrap();
    let kubectl = run(home, &["kubectl", "apply", "-k", "deploy/base"]);
    assert!(kubectl.status.success(), "{kubectl:?}");
    let of_helm = |request: &Request| request.path.contains("/secrets");
    let named = |request: &Request| request.path.contains("/secrets/");
    let empty = json!({"kind": "SecretList", "apiVersion": "v1", "metadata": {}, "items": []});
    let metadata = json!({"namespace": "allclear", "name": "sh.helm.release.v1.allclear.v1"});
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": metadata});
    always(&server, answer(201, &secret), move |request| of_helm(request) && request.method == "POST");
    always(&server, answer(200, &secret), move |request| of_helm(request) && request.method == "PUT");
    always(&server, answer(200, &empty), move |request| of_helm(request) && !named(request) && request.method == "GET");
    let conflict = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409, "message": CONFLICT,
    });
    always(&server, answer(409, &conflict), |request| {
        let is_forced = request.query.get("force").is_some_and(|force| force == "true");
        request.method == "PATCH" && request.path.ends_with("/deployments/allclear") && !is_forced
    });
    (api, server)
}

fn run(home: &Path, words: &[&str]) -> Output {
    let (program, arguments) = words.split_first().unwrap();
    let own = top().join(".venv/bin").join(program);
    let program = if own.is_file() { own } else { PathBuf::from(program) };
    Command::new(program)
        .args(arguments)
        .current_dir(top())
        .env_clear()
        .env("HOME", home)
        .env("KUBECONFIG", home.join("config"))
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{words:?} does not run ({error}): get it by scripts/test-setup.sh"))
}

/// The command of the chart's page that takes over.
fn documented() -> Vec<String> {
    let page = std::fs::read_to_string(top().join("deploy/chart/allclear/README.md")).unwrap();
    let joined = page.replace("\\\n", " ");
    let mut lines = joined.lines().map(str::trim);
    let line = lines.find(|line| line.starts_with("$ helm upgrade") && line.contains("--take-ownership"));
    line.expect("the page shows it").split_whitespace().skip(1).map(str::to_owned).collect()
}

#[tokio::test]
async fn helm_takes_over_what_kustomize_made_by_the_command_of_the_page() {
    let home = tempfile::tempdir().unwrap();
    let (api, _server) = installed(home.path()).await;
    let before = api.get(Kind::Deployment, "allclear", "allclear").unwrap();
    let words = documented();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // Without it the API server refuses to change what another manager has set.
    let mild: Vec<&str> = words.iter().copied().filter(|word| *word != "--force-conflicts").collect();
    assert!(mild.len() < words.len());
    let refused = run(home.path(), &mild);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("conflict"), "{said}");
    let taken = run(home.path(), &words);
    assert!(taken.status.success(), "{taken:?}");
    let after = api.get(Kind::Deployment, "allclear", "allclear").unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"], "it is the same Deployment");
    assert_eq!(after["metadata"]["annotations"]["meta.helm.sh/release-name"], "allclear");
    assert_eq!(after["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
}
