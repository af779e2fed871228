//! As much of kubectl as README and docs/ use: each command makes the requests that kubectl would, of the same API server. What it does
//! not know fails. (Where kubectl changes a Deployment through a subresource, this changes the Deployment.)

use std::collections::BTreeMap;
use std::path::PathBuf;

use allclear::cli::Cli;
use base64::Engine;
use clap::Parser;
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::kustomize::{documents, render};

/// A person at a shell, at the top of the repository.
pub struct Reader {
    pub client: Client,
    pub top: PathBuf,
    /// The files that person has beside the repository.
    pub files: BTreeMap<String, String>,
}

/// What the API server answers to a request it refuses.
#[derive(Debug)]
pub struct Refused {
    pub code: u16,
    pub message: String,
}

/// The arguments of one command.
#[derive(Debug, Default)]
pub struct Given {
    words: Vec<String>,
    pub namespace: Option<String>,
    files: Vec<String>,
    folder: Option<String>,
    literals: Vec<String>,
    from_files: Vec<String>,
    pub replicas: Option<u64>,
    pub image: Option<String>,
    pub port: Option<u64>,
    pub rule: Option<String>,
    role: Option<String>,
    group: Option<String>,
    pub overwrite: bool,
    ignore_missing: bool,
    /// After `--`.
    inside: Vec<String>,
}

impl Given {
    fn parse(words: &[String]) -> Result<Self, String> {
        let mut given = Self::default();
        let mut words = words.iter().cloned();
        while let Some(word) = words.next() {
            let (flag, value) = word.split_once('=').map_or((word.as_str(), None), |(f, v)| (f, Some(v.to_owned())));
            let mut value = || value.clone().or_else(|| words.next()).ok_or(format!("{flag} without a value"));
            match flag {
                "-n" => given.namespace = Some(value()?),
                "-f" => given.files.push(value()?),
                "-k" => given.folder = Some(value()?),
                "--from-literal" => given.literals.push(value()?),
                "--from-file" => given.from_files.push(value()?),
                "--replicas" => given.replicas = value()?.parse().ok(),
                "--image" => given.image = Some(value()?),
                "--port" => given.port = value()?.parse().ok(),
                "--rule" => given.rule = word.split_once('=').map(|(_, rule)| rule.to_owned()),
                "--role" => given.role = Some(value()?),
                "--group" => given.group = Some(value()?),
                "--overwrite" => given.overwrite = true,
                "--previous" => {}
                "--ignore-not-found" => given.ignore_missing = true,
                "--" => given.inside = words.by_ref().collect(),
                unknown if unknown.starts_with('-') => return Err(format!("this kubectl does not know {unknown}")),
                _ => given.words.push(word),
            }
        }
        Ok(given)
    }
}

impl Reader {
    /// One command, without the word `kubectl`.
    pub async fn kubectl(&self, words: &[String]) -> Result<(), String> {
        let given = Given::parse(words)?;
        let said: Vec<&str> = given.words.iter().map(String::as_str).collect();
        let done = match said.as_slice() {
            ["apply"] => self.apply(&given).await,
            ["create", "secret", "generic", name] => self.create_secret(&given, name).await,
            ["delete"] => self.delete_rendered(&given).await,
            ["delete", kind, name] => self.delete(&address(kind, &given, name)?, given.ignore_missing).await,
            ["annotate", kind, name, pairs @ ..] => self.annotate(&given, kind, name, pairs).await,
            ["create", "namespace", name] => {
                let metadata = json!({"name": name});
                self.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).await
            }
            ["create", "rolebinding", name] => self.create_role_binding(&given, name).await,
            ["create", "deployment", name] => self.create_deployment(&given, name).await,
            ["create", "ingress", name] => self.create_ingress(&given, name).await,
            ["expose", "deployment", name] => self.expose(&given, name).await,
            ["set", "image", named, pair] => self.set_image(&given, named, pair).await,
            ["get", "events"] => Ok(()),
            ["rollout", "restart", "deployment", name] => {
                let mark = json!({"kubectl.kubernetes.io/restartedAt": "2026-11-20T10:00:00Z"});
                let change = json!({"spec": {"template": {"metadata": {"annotations": mark}}}});
                self.merge(&address("deployment", &given, name)?, &change).await
            }
            ["scale", "deployment", name] => {
                let replicas = given.replicas.ok_or("scale without --replicas")?;
                self.merge(&address("deployment", &given, name)?, &json!({"spec": {"replicas": replicas}})).await
            }
            ["rollout", "status" | "undo", named] | ["describe", "deployment", named] | ["logs", named] => {
                self.deployment(&given, named).await.map(drop)
            }
            ["port-forward", named, port] => {
                let port: u64 = port.parse().map_err(|_| "no such port")?;
                let deployment = self.deployment(&given, named).await.map_err(told)?;
                let ports = &deployment["spec"]["template"]["spec"]["containers"][0]["ports"];
                let declared = ports.as_array().unwrap().iter().any(|one| one["containerPort"] == json!(port));
                // On loopback, which port-forward reaches, and so not among the ports of the pod.
                let page = format!("page = \"127.0.0.1:{port}\"");
                assert!(declared || include_str!("../../../configs/default.toml").contains(&page), "{ports}");
                Ok(())
            }
            ["exec", named] => {
                Cli::try_parse_from(&given.inside).map_err(|error| error.to_string())?;
                self.deployment(&given, named).await.map(drop)
            }
            unknown => return Err(format!("this kubectl does not know {unknown:?}")),
        };
        done.map_err(told)
    }

    async fn apply(&self, given: &Given) -> Result<(), Refused> {
        for mut object in self.objects(given) {
            if let Some(namespace) = given.namespace.as_ref().filter(|_| object["kind"] != json!("Namespace")) {
                object["metadata"]["namespace"] = json!(namespace);
            }
            let one = address_of(&object);
            match self.request(Method::GET, &one, None).await {
                Ok(_) => self.merge(&one, &object).await?,
                Err(Refused { code: 404, .. }) => self.create(&object).await?,
                Err(refused) => return Err(refused),
            }
        }
        Ok(())
    }

    async fn create_secret(&self, given: &Given, name: &str) -> Result<(), Refused> {
        let mut data = serde_json::Map::new();
        let mut insert = |key: &str, value: &str| {
            data.insert(key.to_owned(), json!(base64::engine::general_purpose::STANDARD.encode(value)));
        };
        for literal in &given.literals {
            let (key, value) = literal.split_once('=').expect("a literal is key=value");
            insert(key, value);
        }
        for named in &given.from_files {
            let (key, path) = named.split_once('=').unwrap_or((named, named));
            insert(key, self.files.get(path).unwrap_or_else(|| panic!("nothing has made the file {path}")));
        }
        let metadata = json!({"name": name, "namespace": given.namespace});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data});
        self.create(&secret).await
    }

    async fn create_role_binding(&self, given: &Given, name: &str) -> Result<(), Refused> {
        let group = "rbac.authorization.k8s.io";
        let role = json!({"apiGroup": group, "kind": "Role", "name": given.role.as_ref().expect("--role")});
        let subject = json!({"apiGroup": group, "kind": "Group", "name": given.group.as_ref().expect("--group")});
        let metadata = json!({"name": name, "namespace": given.namespace});
        let kind = json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata});
        let mut binding = kind;
        binding["roleRef"] = role;
        binding["subjects"] = json!([subject]);
        self.create(&binding).await
    }

    /// What goes with its namespace is gone already, or goes.
    async fn delete_rendered(&self, given: &Given) -> Result<(), Refused> {
        for object in self.objects(given) {
            self.delete(&address_of(&object), given.ignore_missing).await?;
        }
        Ok(())
    }

    fn objects(&self, given: &Given) -> Vec<Value> {
        let files = given.files.iter().flat_map(|file| documents(&self.top.join(file)));
        files.chain(given.folder.iter().flat_map(|folder| render(&self.top.join(folder)))).collect()
    }

    pub async fn deployment(&self, given: &Given, named: &str) -> Result<Value, Refused> {
        let name = named.strip_prefix("deployment/").or_else(|| named.strip_prefix("deploy/")).unwrap_or(named);
        let address = address("deployment", given, name).map_err(|message| Refused { code: 0, message })?;
        self.request(Method::GET, &address, None).await
    }

    pub async fn create(&self, object: &Value) -> Result<(), Refused> {
        let address = address_of(object);
        let (collection, _) = address.rsplit_once('/').expect("a name comes last");
        self.request(Method::POST, collection, Some(object)).await.map(drop)
    }

    pub async fn merge(&self, address: &str, change: &Value) -> Result<(), Refused> {
        self.request(Method::PATCH, address, Some(change)).await.map(drop)
    }

    async fn delete(&self, address: &str, ignore_missing: bool) -> Result<(), Refused> {
        match self.request(Method::DELETE, address, None).await {
            Err(Refused { code: 404, .. }) if ignore_missing => Ok(()),
            answered => answered.map(drop),
        }
    }

    /// One request for JSON.
    pub async fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Refused> {
        let form = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let bytes = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let request = http::Request::builder().method(method.clone()).uri(path).header("content-type", form);
        match self.client.request::<Value>(request.body(bytes).unwrap()).await {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => {
                Err(Refused { code: status.code, message: format!("{method} {path}: {}", status.message) })
            }
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }
}

fn told(refused: Refused) -> String {
    refused.message
}

/// Where the API has an object of this kind, as a person names the kind.
pub fn address(kind: &str, given: &Given, name: &str) -> Result<String, String> {
    let namespace = given.namespace.as_deref().unwrap_or("default");
    let root = match kind {
        "deployment" => "/apis/apps/v1",
        "serviceaccount" | "secret" | "service" => "/api/v1",
        unknown => return Err(format!("this kubectl does not know the kind {unknown}")),
    };
    Ok(format!("{root}/namespaces/{namespace}/{kind}s/{name}"))
}

/// The same for a whole object.
fn address_of(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    let plural =
        format!("{}s", text("/kind").to_lowercase()).replace("policys", "policies").replace("ingresss", "ingresses");
    let namespace = match text("/metadata/namespace") {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    format!("{root}{namespace}/{plural}/{}", text("/metadata/name"))
}
