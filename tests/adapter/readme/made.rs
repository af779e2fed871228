//! What `kubectl` makes by a word instead of a file: namespaces, Deployments, Services and Ingresses, as its own commands do; and
//! what it changes or undoes by a word. Not for what it applies; that is in `kubectl`.

use http::Method;
use serde_json::{Value, json};

use super::kubectl::{Given, Reader, Refused, address};

/// A command that is not what this reader knows.
fn wrong(message: &str) -> Refused {
    Refused { code: 0, message: message.to_owned() }
}

impl Reader {
    /// `kubectl create deployment web --image=… --replicas=3`: its container has the last part of the image's name.
    pub async fn create_deployment(&self, given: &Given, name: &str) -> Result<(), Refused> {
        let image = given.image.as_deref().ok_or_else(|| wrong("a Deployment without an image"))?;
        let container = image.rsplit('/').next().and_then(|last| last.split(':').next()).unwrap_or_default();
        let labels = json!({"app": name});
        self.create(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": given.namespace, "labels": labels},
            "spec": {
                "replicas": given.replicas, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels}, "spec": {"containers": [{"name": container, "image": image}]},
                },
            },
        }))
        .await
    }

    /// `kubectl expose deployment web --port=80`: a Service with the Deployment's selector.
    pub async fn expose(&self, given: &Given, name: &str) -> Result<(), Refused> {
        let deployment = self.deployment(given, name).await?;
        let selector = &deployment["spec"]["selector"]["matchLabels"];
        self.create(&json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": given.namespace},
            "spec": {"selector": selector, "ports": [{"port": given.port, "protocol": "TCP", "targetPort": given.port}]},
        }))
        .await
    }

    /// `kubectl create ingress web --rule="host/*=service:port"`: the star makes the path a prefix.
    pub async fn create_ingress(&self, given: &Given, name: &str) -> Result<(), Refused> {
        let rule = given.rule.as_deref().map(|rule| rule.trim_matches('"')).unwrap_or_default();
        let parts = rule.split_once("/*=").and_then(|(host, backend)| Some((host, backend.split_once(':')?)));
        let (host, (service, port)) = parts.ok_or_else(|| wrong("a rule is host/*=service:port"))?;
        let port: u64 = port.parse().map_err(|_| wrong("a port is a number"))?;
        let service = self.named(given, "service", service).await?;
        let backend = json!({"service": {"name": service["metadata"]["name"], "port": {"number": port}}});
        let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
        self.create(&json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": name, "namespace": given.namespace},
            "spec": {"rules": [{"host": host, "http": {"paths": [path]}}]},
        }))
        .await
    }

    /// `kubectl set image deployment/web container=image`: the container must be there.
    pub async fn set_image(&self, given: &Given, named: &str, pair: &str) -> Result<(), Refused> {
        let name = named.trim_start_matches("deployment/");
        let (container, image) = pair.split_once('=').ok_or_else(|| wrong("container=image"))?;
        let mut containers = self.deployment(given, name).await?["spec"]["template"]["spec"]["containers"].take();
        let all = containers.as_array_mut().ok_or_else(|| wrong("a Deployment without containers"))?;
        let one = all.iter_mut().find(|one| one["name"] == json!(container));
        one.ok_or_else(|| wrong(&format!("unable to find container named {container:?}")))?["image"] = json!(image);
        let change = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        self.merge(&address("deployment", given, name).map_err(|why| wrong(&why))?, &change).await
    }

    /// An object that must be there.
    pub async fn named(&self, given: &Given, kind: &str, name: &str) -> Result<Value, Refused> {
        let address = address(kind, given, name).map_err(|why| wrong(&why))?;
        self.request(Method::GET, &address, None).await
    }

    /// `kubectl annotate`, which changes a value that is there only with `--overwrite`.
    pub async fn annotate(&self, given: &Given, kind: &str, name: &str, pairs: &[&str]) -> Result<(), Refused> {
        let object = self.named(given, kind, name).await?;
        let mut annotations = serde_json::Map::new();
        for pair in pairs {
            let (key, value) = pair.split_once('=').ok_or_else(|| wrong("an annotation without a value"))?;
            let present = object["metadata"]["annotations"].get(key);
            if !given.overwrite && present.is_some_and(|present| *present != json!(value)) {
                return Err(wrong(&format!("--overwrite is false but there is an annotation {key}")));
            }
            annotations.insert(key.to_owned(), json!(value));
        }
        let address = address(kind, given, name).map_err(|why| wrong(&why))?;
        self.merge(&address, &json!({"metadata": {"annotations": annotations}})).await
    }
}
