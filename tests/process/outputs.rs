//! The step `publish` of a Repo's Job: the real program, with a stand-in for the API server.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sandbox::http::{Action, Fault, Reply, Server, When};
use sandbox::kubernetes::{Forbidden, Kind, KubernetesStandIn, Options};
use serde_json::{Value, json};
use support::process::program;
use tempfile::TempDir;

/// A value that is in no word of ours.
const VALUE: &str = "hunter2";

/// A cluster with Secrets, and the folders of one pod.
struct Scene {
    folder: TempDir,
    kubernetes: KubernetesStandIn,
    server: Server,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let kubernetes = KubernetesStandIn::new(Options::default());
        let server = kubernetes.start().await.expect("loopback");
        fs::create_dir(folder.path().join("api")).expect("a folder");
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out ca.crt -days 2 -subj /CN=ours";
        let made = Command::new("openssl").args(words.split(' ')).current_dir(folder.path().join("api")).output();
        assert!(made.expect("openssl").status.success());
        fs::write(folder.path().join("api/token"), "a-token").expect("written");
        Self { folder, kubernetes, server }
    }

    fn secret(&self, name: &str, of: Option<&str>, data: Value) {
        let annotations = of.map(|of| json!({"allclear.dev/outputs-of": of})).unwrap_or_default();
        let metadata = json!({"namespace": "platform", "name": name, "annotations": annotations});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data});
        self.kubernetes.apply(secret).expect("the cluster takes it");
    }

    fn data(&self, name: &str) -> Value {
        self.kubernetes.get(Kind::Secret, "platform", name).map(|secret| secret["data"].clone()).unwrap_or_default()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("outputs.json")
    }

    fn says(&self, outputs: &Value) {
        fs::write(self.file(), outputs.to_string()).expect("written");
    }

    /// The exit code and the termination message. No value is in either, nor in the words for people.
    fn publish(&self, secret: &str, names: &[&str]) -> (i32, String) {
        let log = self.folder.path().join("termination-log");
        fs::write(&log, "").expect("written");
        let mut command = Command::new(program());
        command.env_clear().args(["step", "publish", "--namespace=platform", "--repo=infra"]);
        command.arg(format!("--outputs={}", self.file().display())).arg(format!("--secret={secret}"));
        command.arg(format!("--api={}", self.folder.path().join("api").display()));
        command.arg(format!("--server={}", self.server.url())).arg("--termination-log").arg(&log);
        command.args(names.iter().map(|name| format!("--name={name}")));
        let Output { status, stdout, stderr } = command.output().expect("the program runs");
        let (message, words) = (fs::read_to_string(log).expect("text"), String::from_utf8(stderr).expect("text"));
        assert!(stdout.is_empty() && words.contains(&message), "{words}");
        for said in [&message, &words] {
            assert!(!said.contains(VALUE) && !said.contains(&STANDARD.encode(VALUE)) && !said.contains("a-token"));
        }
        (status.code().expect("a code"), message)
    }
}

fn outputs() -> Value {
    let one = |value: Value| json!({"sensitive": true, "type": "dynamic", "value": value});
    json!({"vpc_id": one(json!("vpc-1")), "password": one(json!(VALUE)), "zones": one(json!(["a", "b"])), "port": one(json!(5432))})
}

#[tokio::test]
async fn what_is_named_is_written_and_other_keys_stay() {
    let scene = Scene::new().await;
    scene.says(&outputs());
    scene.secret("infra-outputs", Some("infra"), json!({"by-hand": "eA==", "vpc_id": "b2xk"}));
    scene.secret("other", Some("other"), json!({"vpc_id": "b2xk"}));
    let names = ["vpc_id", "password", "zones"];
    let said = (0, "3 outputs were written to Secret infra-outputs".to_owned());
    assert_eq!(scene.publish("infra-outputs", &names), said);
    let text = |text: &str| STANDARD.encode(text);
    let expected =
        json!({"by-hand": "eA==", "vpc_id": text("vpc-1"), "password": text(VALUE), "zones": text(r#"["a","b"]"#)});
    assert_eq!(scene.data("infra-outputs"), expected);
    assert_eq!(scene.data("other"), json!({"vpc_id": "b2xk"}));
    assert_eq!(scene.publish("infra-outputs", &names), said, "once more is the same");
}

/// Everything but the named one is as before: the annotation is the Secret's word for who may write to it.
#[tokio::test]
async fn a_secret_that_is_not_meant_for_this_repo_is_not_touched() {
    let scene = Scene::new().await;
    scene.says(&outputs());
    scene.secret("plain", None, json!({"vpc_id": "b2xk"}));
    scene.secret("other", Some("other"), json!({"vpc_id": "b2xk"}));
    for secret in ["plain", "other"] {
        let (code, message) = scene.publish(secret, &["vpc_id"]);
        assert_eq!((code, scene.data(secret)), (1, json!({"vpc_id": "b2xk"})), "{secret}");
        let command = format!("kubectl annotate secret {secret} -n platform allclear.dev/outputs-of=infra");
        assert!(
            message.contains("does not say that Repo infra may write to it") && message.ends_with(&command),
            "{message}"
        );
    }
    let (code, message) = scene.publish("missing", &["vpc_id"]);
    assert!(code == 1 && message.contains("kubectl create secret generic missing -n platform"), "{message}");
    assert!(scene.kubernetes.get(Kind::Secret, "platform", "missing").is_none(), "it is for a person to make");
}

#[tokio::test]
async fn an_output_that_is_missing_leaves_everything_as_it_was() {
    let scene = Scene::new().await;
    scene.secret("infra-outputs", Some("infra"), json!({"vpc_id": "b2xk"}));
    let none = scene.publish("infra-outputs", &["vpc_id"]);
    assert!(none.0 == 1 && none.1.contains("the step output wrote no "), "{}", none.1);
    scene.says(&outputs());
    let (code, message) = scene.publish("infra-outputs", &["vpc_id", "endpoint"]);
    assert!(code == 1 && message.starts_with("there is no output endpoint: "), "{message}");
    fs::write(scene.file(), VALUE).expect("written");
    let (code, message) = scene.publish("infra-outputs", &["vpc_id"]);
    assert_eq!((code, message.as_str()), (1, "what the step output wrote is not what terraform output -json writes"));
    assert_eq!(scene.data("infra-outputs"), json!({"vpc_id": "b2xk"}));
}

/// The user's containers can write the folder of the file, and must not choose another file of this container's.
#[tokio::test]
async fn a_link_is_not_followed() {
    let scene = Scene::new().await;
    scene.secret("infra-outputs", Some("infra"), json!({}));
    let elsewhere = scene.folder.path().join("elsewhere.json");
    fs::write(&elsewhere, outputs().to_string()).expect("written");
    std::os::unix::fs::symlink(&elsewhere, scene.file()).expect("a link");
    let (code, message) = scene.publish("infra-outputs", &["vpc_id"]);
    assert!(code == 1 && message.ends_with("outputs.json is no file"), "{message}");
}

#[tokio::test]
async fn a_right_that_is_missing_is_named() {
    let scene = Scene::new().await;
    scene.says(&outputs());
    scene.secret("infra-outputs", Some("infra"), json!({}));
    for verb in ["get", "patch"] {
        scene.kubernetes.allow_all();
        scene.kubernetes.forbid(Forbidden::everywhere(verb, "", "secrets"));
        let (code, message) = scene.publish("infra-outputs", &["password"]);
        assert!(code == 1 && message.contains(&format!("to {verb} secrets in platform")), "{message}");
    }
}

/// What a webhook says about a write may repeat what was written; a busy server and another writer are asked again.
#[tokio::test]
async fn a_refusal_is_said_without_its_words_and_what_passes_is_tried_again() {
    let scene = Scene::new().await;
    scene.says(&outputs());
    scene.secret("infra-outputs", Some("infra"), json!({}));
    let answer = |status: u16, message: &str| {
        let body = json!({"kind": "Status", "status": "Failure", "code": status, "message": message});
        let reply = Reply::full(status, "application/json", body.to_string());
        let fault = Fault::once(When::Before, Action::Answer(reply));
        scene.server.inject(fault.matching(|request| request.method == "PATCH"));
    };
    answer(403, &format!("admission webhook \"x\" denied the request: {VALUE}"));
    let (code, message) = scene.publish("infra-outputs", &["password"]);
    assert_eq!(
        (code, message.as_str()),
        (1, "Secret infra-outputs cannot be written: the API server, or a policy of it, refuses it (status 403)")
    );
    answer(422, VALUE);
    let (code, message) = scene.publish("infra-outputs", &["password"]);
    assert!(
        code == 1 && message.ends_with("(status 422): it may be immutable, or would have more than 1 MiB"),
        "{message}"
    );
    for status in [409, 503] {
        answer(status, "busy");
        assert_eq!(scene.publish("infra-outputs", &["password"]).0, 0, "{status}");
    }
}
