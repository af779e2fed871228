//! README and docs/ as their readers follow them: every `kubectl` command in them, word by word and in its order, against an API
//! server, each with nothing but what earlier ones made. Against the stand-in always, and against a real server where `KUBECONFIG`
//! names one.
//!
//! Not tried: that the image builds, and that its pod runs.

mod kubectl;
mod kustomize;
mod made;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use allclear::adapters::kubernetes::{Options, connect};
use allclear::cli::Cli;
use clap::Parser;
use http::Method;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use sandbox::kubernetes::{KubernetesStandIn, Options as StandInOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use kubectl::Reader;

/// A reader who installs it, from the first page to the last: what each needs, the ones before it made.
const OPERATOR: [&str; 19] = [
    "docs/install.md",
    "docs/migration.md",
    "docs/concepts.md",
    "docs/how-it-decides.md",
    "docs/configuration.md",
    "docs/annotations.md",
    "docs/groups.md",
    "docs/webhooks.md",
    "docs/operating.md",
    "docs/check.md",
    "docs/page.md",
    "docs/notices.md",
    "docs/metrics.md",
    "docs/limits.md",
    "docs/errors.md",
    "docs/security.md",
    "docs/troubleshooting.md",
    "docs/upgrade.md",
    "docs/uninstall.md",
];

/// Pages that were not followed yet: they tell of objects and clusters that this reader does not have.
const NOT_FOLLOWED: [&str; 5] =
    ["docs/audit.md", "docs/pipeline.md", "docs/repo.md", "docs/commands.md", "docs/recipes.md"];

/// A command of a page.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    /// Counted from 1, in its page.
    line: usize,
    words: Vec<String>,
}

fn top() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn words(line: usize, command: &str) -> Step {
    Step { line, words: command.split_whitespace().map(str::to_owned).collect() }
}

/// The commands in blocks for a console, after a `$`, without their comments; and those of kubectl in the running text.
fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut block: Option<bool> = None;
    let mut prose = String::new();
    let mut command: Option<(usize, String)> = None;
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(language) = trimmed.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(language == "console") };
            steps.extend(inline(at, &std::mem::take(&mut prose)));
            continue;
        }
        match block {
            None => prose = format!("{prose} {line}"),
            Some(false) => {}
            Some(true) => {
                let begun = trimmed.strip_prefix("$ ").map(|rest| (at + 1, rest.to_owned()));
                let Some((line, text)) =
                    begun.or_else(|| Some((command.as_ref()?.0, format!("{} {trimmed}", command.as_ref()?.1))))
                else {
                    continue;
                };
                let text = text.split(" #").next().unwrap_or_default().trim_end().to_owned();
                command = text.strip_suffix('\\').map(|text| (line, text.to_owned()));
                if command.is_none() {
                    steps.push(words(line, &text));
                }
            }
        }
    }
    steps.extend(inline(text.lines().count(), &prose));
    steps
}

fn inline(line: usize, prose: &str) -> Vec<Step> {
    // `kubectl logs` names a command; it is none to be typed.
    let is_whole = |quoted: &&str| quoted.starts_with("kubectl ") && quoted.split_whitespace().count() > 2;
    let quoted = prose.split('`').skip(1).step_by(2).filter(is_whole);
    quoted.map(|quoted| words(line, quoted)).collect()
}

impl Reader {
    /// Does what a step says; `Err` where it fails or nobody knows what it means.
    async fn follow(&mut self, step: &Step) -> Result<(), String> {
        let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["kubectl", ..] => self.kubectl(&step.words[1..]).await,
            ["allclear", ..] => Cli::try_parse_from(&words).map(drop).map_err(|error| error.to_string()),
            ["cargo", "run", "--release", "--", rest @ ..] => {
                let words = std::iter::once("allclear").chain(rest.iter().copied());
                Cli::try_parse_from(words).map(drop).map_err(|error| error.to_string())
            }
            ["openssl", "rand", "-hex", "32", ">", file] => {
                self.files.insert((*file).to_owned(), "0".repeat(64));
                Ok(())
            }
            ["printf", "'%s\\n'", keys @ .., ">", file] => {
                self.files.insert((*file).to_owned(), keys.join("\n"));
                Ok(())
            }
            ["target/release/allclear", rest @ ..] => {
                let words = std::iter::once("allclear").chain(rest.iter().copied());
                Cli::try_parse_from(words).map(drop).map_err(|error| error.to_string())
            }
            // A test of the documents looks whether there is such a target.
            ["make", _] => Ok(()),
            ["kind", "create", "cluster", "--name", _] => Ok(()),
            // The settings of the demo; tests/newcomer.sh follows it.
            [".", file] if file.ends_with("/env") => Ok(()),
            ["export", settings @ ..] if settings.iter().all(|setting| setting.contains('=')) => Ok(()),
            unknown => Err(format!("nobody knows how to follow {unknown:?}")),
        }
    }

    /// Follows a page from its beginning to its end. Returns how many commands of kubectl it has.
    async fn follow_all(&mut self, page: &str) -> usize {
        let text = std::fs::read_to_string(top().join(page)).unwrap();
        let steps = steps(&text);
        for step in &steps {
            if let Err(why) = self.follow(step).await {
                panic!("{page}:{}: {}\n  {why}", step.line, step.words.join(" "));
            }
            if step.words.join(" ") == "kubectl apply -k deploy/base" {
                self.check_installed().await;
            }
        }
        steps.iter().filter(|step| step.words[0] == "kubectl").count()
    }

    /// Whatever the pod and the bindings name is there.
    async fn check_installed(&self) {
        let get = async |path: &str| self.request(Method::GET, path, None).await.unwrap();
        let own = "/api/v1/namespaces/allclear";
        let deployment = get("/apis/apps/v1/namespaces/allclear/deployments/allclear").await;
        let pod = &deployment["spec"]["template"]["spec"];
        get(&format!("{own}/serviceaccounts/{}", pod["serviceAccountName"].as_str().unwrap())).await;
        let map = pod.pointer("/volumes/0/projected/sources/0/configMap/name").and_then(Value::as_str);
        let map = get(&format!("{own}/configmaps/{}", map.unwrap())).await;
        assert!(map["data"]["config.toml"].is_string(), "{map}");
        assert_ne!(pod["containers"][0]["image"], json!("allclear"), "the image is the one that images names");
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        for (scope, kind) in [("", "cluster"), ("/namespaces/allclear", "")] {
            let name = if kind.is_empty() { "allclear-ledger" } else { "allclear" };
            let binding = get(&format!("{rbac}{scope}/{kind}rolebindings/{name}")).await;
            get(&format!("{rbac}{scope}/{kind}roles/{}", binding["roleRef"]["name"].as_str().unwrap())).await;
            let account = json!({"kind": "ServiceAccount", "name": "allclear", "namespace": "allclear"});
            assert_eq!(binding["subjects"], json!([account]));
        }
    }
}

/// What README's reader has: a workload, and the files it says are theirs.
async fn reader(kubeconfig: &Path) -> Reader {
    let options = Options { kubeconfig: Some(kubeconfig.to_owned()), ..Options::default() };
    let clients = connect(&options).await.unwrap();
    let theirs = ["webhooks.json", "redis-ca.pem"].map(|name| (name.to_owned(), "their own".to_owned()));
    Reader { client: clients.request, top: top(), files: BTreeMap::from(theirs) }
}

async fn on_the_stand_in() -> (KubernetesStandIn, sandbox::http::Server, Reader) {
    let api = KubernetesStandIn::new(StandInOptions::default());
    api.seed("shop", "web", "shop/web:1", 1).unwrap();
    let server = api.start().await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), api.kubeconfig(&server)).unwrap();
    let reader = reader(file.path()).await;
    (api, server, reader)
}

#[tokio::test]
async fn every_step_of_the_readme_can_be_followed_with_what_the_earlier_ones_made() {
    let (_api, _server, mut reader) = on_the_stand_in().await;
    assert!(reader.follow_all("README.md").await >= 5, "README installs");
}

#[tokio::test]
async fn every_step_of_the_documents_can_be_followed_from_the_installation_to_its_end() {
    let (_api, _server, mut reader) = on_the_stand_in().await;
    let mut followed = 0;
    for page in OPERATOR {
        followed += reader.follow_all(page).await;
    }
    assert!(followed >= 30, "{followed} commands");
    let gone = reader.request(Method::GET, "/api/v1/namespaces/allclear", None).await;
    assert_eq!(gone.unwrap_err().code, 404, "it says how to take everything away again");
}

#[tokio::test]
async fn every_step_of_the_quick_start_can_be_followed_in_an_empty_cluster() {
    let api = KubernetesStandIn::new(StandInOptions::default());
    let server = api.start().await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), api.kubeconfig(&server)).unwrap();
    let mut reader = reader(file.path()).await;
    assert!(reader.follow_all("docs/quick-start.md").await >= 8, "it makes a site");
    assert_eq!(api.list(sandbox::kubernetes::Kind::Ingress, "shop").len(), 1);
}

/// A new page is followed, or it is said here that it is not. In blocks that are not followed, there is nothing for kubectl.
#[test]
fn every_page_with_commands_of_kubectl_is_followed() {
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(top().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let page = format!("docs/{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() || NOT_FOLLOWED.contains(&page.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let is_followed = OPERATOR.contains(&page.as_str()) || page == "docs/quick-start.md";
        if !is_followed && !steps(&text).is_empty() {
            missing.push(page.clone());
        }
        let unseen = text.lines().filter(|line| line.trim_start().starts_with("kubectl "));
        missing.extend(unseen.map(|line| format!("{page}: without a $: {line}")));
    }
    assert_eq!(missing, Vec::<String>::new(), "commands that no reader follows");
}

#[tokio::test]
#[ignore = "needs KUBECONFIG with a real API server, in which it makes and deletes the namespace allclear"]
async fn a_real_api_server_takes_every_step_of_the_documents() {
    let path = std::env::var("KUBECONFIG").expect("KUBECONFIG names a file");
    let mut reader = reader(Path::new(&path)).await;
    // Theirs before they read it.
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}, "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "shop/web:1"}]}},
        }}),
    ] {
        let namespace = object["metadata"]["namespace"].as_str();
        let path = namespace
            .map_or("/api/v1/namespaces".to_owned(), |it| format!("/apis/apps/v1/namespaces/{it}/deployments"));
        let _ = reader.request(Method::POST, &path, Some(&object)).await;
    }
    reader.follow_all("README.md").await;
    for page in OPERATOR {
        reader.follow_all(page).await;
    }
}

#[tokio::test]
async fn the_overlay_for_one_namespace_needs_that_namespace_and_nothing_else() {
    let (api, _server, reader) = on_the_stand_in().await;
    let apply = "apply -k deploy/overlays/namespaced".split(' ').map(str::to_owned).collect::<Vec<_>>();
    reader.kubectl(&apply).await.unwrap();
    let everywhere = |kind| api.list(kind, "");
    for kind in [sandbox::kubernetes::Kind::ClusterRole, sandbox::kubernetes::Kind::ClusterRoleBinding] {
        assert!(everywhere(kind).is_empty(), "no right outside");
    }
    let placed = everywhere(sandbox::kubernetes::Kind::RoleBinding);
    assert!(placed.len() == 2 && placed.iter().all(|one| one["metadata"]["namespace"] == json!("shop")), "{placed:?}");
    assert!(placed.iter().all(|one| one["subjects"][0]["namespace"] == json!("shop")), "{placed:?}");
}

/// A field that the API does not have, or that is in the wrong place, is lost on the way through its types.
#[test]
fn every_shipped_object_has_only_fields_that_the_api_knows() {
    for folder in ["deploy/base", "deploy/overlays/namespaced"] {
        for object in kustomize::render(&top().join(folder)) {
            let kept = match object["kind"].as_str().unwrap() {
                "Namespace" => through::<Namespace>(&object),
                "ServiceAccount" => through::<ServiceAccount>(&object),
                "ClusterRole" => through::<ClusterRole>(&object),
                "ClusterRoleBinding" => through::<ClusterRoleBinding>(&object),
                "Role" => through::<Role>(&object),
                "RoleBinding" => through::<RoleBinding>(&object),
                "ConfigMap" => through::<ConfigMap>(&object),
                "Service" => through::<Service>(&object),
                "NetworkPolicy" => through::<NetworkPolicy>(&object),
                "Deployment" => through::<Deployment>(&object),
                unknown => panic!("{folder}: a {unknown}"),
            };
            assert_eq!(kept, object, "{folder}");
        }
    }
}

fn through<T: DeserializeOwned + Serialize>(object: &Value) -> Value {
    let typed: T = serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object:#}"));
    serde_json::to_value(typed).unwrap()
}

#[test]
fn the_steps_of_a_text_are_its_commands_in_its_order() {
    let text = "First `kubectl -n a scale\ndeployment b --replicas=0`, not `other`.\n\n```console\n$ kubectl create x \\\n    \
                --y=z   # why\nits output\n$ allclear status\n```\n\n```text\n$ kubectl no\n```\nand `kubectl delete -k c`.\n";
    let commands: Vec<String> = steps(text).into_iter().map(|step| step.words.join(" ")).collect();
    assert_eq!(
        commands,
        [
            "kubectl -n a scale deployment b --replicas=0",
            "kubectl create x --y=z",
            "allclear status",
            "kubectl delete -k c"
        ]
    );
}

#[tokio::test]
async fn a_step_that_nobody_knows_or_that_comes_too_early_fails() {
    let (_api, _server, mut reader) = on_the_stand_in().await;
    for command in [
        "kubectl label deployment web a=b",
        "kubectl -n shop rollout restart deployment other",
        "kubectl -n allclear create secret generic x --from-literal=a=b",
        "kubectl -n shop exec deployment/web -- allclear explode",
        "helm install allclear",
    ] {
        assert!(reader.follow(&words(1, command)).await.is_err(), "{command}");
    }
}
