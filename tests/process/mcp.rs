//! `allclear mcp` as programs that work with a model start it: by the official SDK, and by hand, where the SDK is too
//! well-behaved.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use sandbox::kubernetes::Kind;
use serde_json::{Value, json};
use support::process::program;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::commands::{allclear, said};
use crate::scene::{HOST, LEDGER_NAMESPACE, Scene};

/// What the SDK's client sees when it calls these tools.
async fn seen(scene: &Scene, mode: &str, calls: &Value) -> Value {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = top.join(".venv/bin/python");
    assert!(python.exists(), "{} is missing: run `make test-setup` once", python.display());
    let mut command = Command::new(python);
    // A ping is of the older revisions, of which it warns.
    command.args(["-W", "ignore"]).arg(top.join("tests/process/mcp_client.py"));
    command.args([&program(), mode, &calls.to_string()]);
    command.env_clear().envs(&scene.environment).kill_on_drop(true);
    let ended = tokio::time::timeout(Duration::from_secs(60), command.output()).await;
    let (code, out, err) = said(&ended.expect("it ends").expect("python starts"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let hidden = [scene.world.secret_access_key(), scene.world.hook.url()];
    assert!(
        hidden.iter().all(|secret| !out.contains(secret.as_str())),
        "it has a secret or the address of a webhook: {out}"
    );
    serde_json::from_str(&out).expect("JSON")
}

#[tokio::test]
async fn the_official_client_lists_and_calls_every_tool_in_both_forms_of_the_protocol() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    scene.freeze();
    scene.add_workload("other");
    let calls = json!([
        ["status", {}],
        ["explain", { "name": "shop/web" }],
        ["explain", { "namespace": "shop" }],
        ["explain", { "host": HOST }],
        ["history", { "name": "web", "namespace": "shop" }],
        ["fresh", { "name": "shop/web" }],
        ["fresh", { "name": "shop/web", "until": "fresh" }],
        ["fresh", { "name": "shop/wen" }],
        ["explain", { "name": "repo/shop/none" }],
        ["history", { "name": "pipeline/shop/none", "limit": 3 }],
        ["status", { "server": "http://127.0.0.1" }],
    ]);
    for (mode, version) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let seen = seen(&scene, mode, &calls).await;
        assert_eq!((seen["version"].as_str(), seen["server"].as_str()), (Some(version), Some("allclear")));
        assert!(seen["instructions"].as_str().is_some_and(|words| words.contains("They are data")), "{seen:#}");
        assert_eq!(seen["unknown"], -32602);
        let names: Vec<&str> =
            seen["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, ["status", "explain", "history", "fresh"]);
        let results = seen["results"].as_array().unwrap();
        let failed: Vec<bool> = results.iter().map(|result| result["isError"] == true).collect();
        assert_eq!(failed, [[false; 7].as_slice(), &[true; 4]].concat(), "{results:#?}");
        let text = |at: usize| results[at]["content"][0]["text"].as_str().unwrap_or_default();
        let value = |at: usize| &results[at]["structuredContent"];
        assert_eq!(value(0)["synced"], true);
        assert!(text(1).contains("web:1.1") && value(1)["workload"] == "deployment/shop/web", "{}", text(1));
        assert!(text(2).contains("other") && text(3).contains("shop/web"), "{}\n{}", text(2), text(3));
        assert_eq!((value(5), text(5)), (&json!({ "open": true }), "shop/web: open"));
        assert_eq!((&value(6)["open"], &value(6)["until"]), (&json!(false), &json!("fresh")));
        assert!(text(7).contains("did you mean shop/web?"), "{}", text(7));
        assert!(text(10).contains("unknown field `server`"), "{}", text(10));
        // One implementation: it is what the command prints.
        let command = |format| ["history", "shop/web", "-o", format];
        let (_, table, _) = said(&allclear(&scene, &command("table")).await);
        let (_, json, _) = said(&allclear(&scene, &command("json")).await);
        assert_eq!((text(4), value(4)), (table.trim_end(), &serde_json::from_str(&json).expect("JSON")));
    }
    scene.roll_out("1.2");
    let late = seen(&scene, "auto", &json!([["fresh", { "name": "shop/web" }]])).await;
    assert_eq!(late["results"][0]["structuredContent"]["open"], false, "{late:#}");
}

#[tokio::test]
async fn where_there_is_no_ledger_nothing_is_fresh_and_none_is_made() {
    let scene = Scene::new().await;
    let seen =
        seen(&scene, "auto", &json!([["fresh", { "name": "shop/web" }], ["history", { "name": "shop/web" }]])).await;
    for result in seen["results"].as_array().unwrap() {
        let words = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(result["isError"] == true && words.contains("there is no ledger in namespace default"), "{result:#}");
    }
    assert_eq!(scene.world.kubernetes.list(Kind::ConfigMap, LEDGER_NAMESPACE), Vec::<Value>::new());
}

/// A server, spoken to line by line.
struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Server {
    fn start(scene: &Scene) -> Self {
        let mut command = Command::new(program());
        command.arg("mcp").env_clear().envs(&scene.environment).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program is there");
        let lines = BufReader::new(child.stdout.take().expect("its standard output is ours")).lines();
        Self { child, lines }
    }

    async fn says(&mut self, line: &[u8]) {
        let input = self.child.stdin.as_mut().expect("its standard input is ours");
        input.write_all(line).await.expect("it reads");
        input.write_all(b"\n").await.expect("it reads");
    }

    async fn hears(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(30), self.lines.next_line()).await;
        let line = line.expect("it answers").expect("it can be read").expect("it goes on");
        serde_json::from_str(&line).expect("standard output has messages alone")
    }

    /// How it ends, and what it has said beside its answers.
    async fn ends(mut self) -> (Option<i32>, String) {
        let status = tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await;
        let status = status.expect("it ends").expect("it ran");
        assert_eq!(self.lines.next_line().await.expect("it can be read"), None, "it says nothing more");
        let mut err = String::new();
        self.child.stderr.take().expect("ours").read_to_string(&mut err).await.expect("UTF-8");
        (status.code(), err)
    }
}

const PING: &[u8] = br#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;

#[tokio::test]
async fn it_ends_with_its_input_or_by_a_signal_and_passes_over_a_line_without_end() {
    let scene = Scene::new().await;
    let pong = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    let mut server = Server::start(&scene);
    server.says(&vec![b'['; 3 * 1024 * 1024]).await;
    let refused = server.hears().await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    server.says(&vec![b'['; 1024 * 1024]).await;
    assert_eq!(server.hears().await["error"]["code"], -32700, "what is nested without end is no JSON");
    server.says(PING).await;
    assert_eq!(server.hears().await, pong);
    drop(server.child.stdin.take());
    assert_eq!(server.ends().await, (Some(0), String::new()));

    for signal in ["-TERM", "-INT"] {
        let mut server = Server::start(&scene);
        server.says(PING).await;
        assert_eq!(server.hears().await, pong);
        let id = server.child.id().expect("it runs").to_string();
        assert!(Command::new("kill").args([signal, &id]).status().await.expect("kill is there").success());
        assert_eq!(server.ends().await, (Some(0), String::new()), "{signal}: its input is still open");
    }
}
