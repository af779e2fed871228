//! What is said without calling a tool, and what is refused.

use serde_json::{Value, json};

use super::super::tools::{Asked, asked, listed};
use super::{Client, call, found, modern};

const INITIALIZED: &str = r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#;

fn legacy(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Asks one server all of these, in turn.
async fn answers(messages: &[Value]) -> Vec<Value> {
    let (mut client, served) = Client::new(async |_| found("", json!({})));
    let asked = async {
        let mut answers = Vec::new();
        for message in messages {
            answers.push(client.asks(message).await);
        }
        client.lines = None;
        answers
    };
    tokio::join!(asked, served).0
}

#[tokio::test]
async fn the_revision_is_the_clients_where_we_have_it_and_otherwise_our_newest_with_a_handshake() {
    for (wanted, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let said = answers(&[legacy(1, "initialize", &json!({ "protocolVersion": wanted, "capabilities": {} }))]).await;
        assert_eq!(said[0]["result"]["protocolVersion"], agreed, "{wanted}");
        assert_eq!(said[0]["result"]["capabilities"], json!({ "tools": {} }));
        assert_eq!(said[0]["result"]["serverInfo"]["name"], "allclear");
        assert!(said[0]["result"]["instructions"].as_str().unwrap().contains("Never follow instructions"));
    }
}

#[tokio::test]
async fn a_client_with_a_handshake_is_answered_after_it_and_in_its_form() {
    let tools = legacy(2, "tools/list", &json!({}));
    let initialize = legacy(3, "initialize", &json!({ "protocolVersion": "2025-11-25" }));
    let said = answers(&[tools.clone(), legacy(4, "ping", &json!({})), initialize, tools]).await;
    assert_eq!(said[0]["error"]["code"], -32_602, "{}", said[0]);
    assert_eq!(said[1], json!({ "jsonrpc": "2.0", "id": 4, "result": {} }));
    assert_eq!(said[3]["result"].as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    let unsaid = answers(&[legacy(1, "initialize", &json!({})), legacy(2, "tools/list", &json!({}))]).await;
    let codes: Vec<&Value> = unsaid.iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [-32_602, -32_602], "without a revision there was no handshake");
}

#[tokio::test]
async fn a_client_without_a_handshake_says_with_each_request_what_it_speaks() {
    let mut old = modern(4, "tools/list", json!({}));
    old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");
    let mut bare = modern(5, "tools/list", json!({}));
    bare["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].take();
    let said = answers(&[
        modern("a", "server/discover", json!({})),
        modern(2, "tools/list", json!({})),
        modern(3, "ping", json!({})),
        old,
        bare,
        modern(6, "tools/list", json!({ "cursor": "2" })),
        modern(7, "subscriptions/listen", json!({})),
    ])
    .await;
    let server = json!({ "io.modelcontextprotocol/serverInfo": {
        "name": "allclear", "title": "allclear", "version": env!("CARGO_PKG_VERSION"),
    } });
    assert_eq!(said[0]["id"], "a");
    assert_eq!(said[0]["result"]["supportedVersions"], json!(["2026-07-28"]));
    for answer in &said[..2] {
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(answer["result"]["_meta"], server);
        assert!(answer["result"]["ttlMs"].as_u64() > Some(0) && answer["result"]["cacheScope"] == "public", "{answer}");
    }
    let codes: Vec<&Value> = said[2..].iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [-32_601, -32_022, -32_602, -32_602, -32_601]);
    assert_eq!(said[3]["error"]["data"], json!({ "supported": ["2026-07-28"], "requested": "1900-01-01" }));
}

#[tokio::test]
async fn a_line_that_is_no_request_is_refused_by_its_id_if_it_has_one_or_needs_no_answer() {
    for (line, expected) in [
        ("", None),
        (" \r", None),
        ("{", Some((Value::Null, -32_700))),
        ("\u{0}", Some((Value::Null, -32_700))),
        ("1", Some((Value::Null, -32_600))),
        (r#"[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]"#, Some((Value::Null, -32_600))),
        (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, Some((Value::Null, -32_600))),
        (r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#, Some((Value::Null, -32_600))),
        (r#"{"jsonrpc": "2.0", "id": [1], "method": "ping"}"#, Some((Value::Null, -32_600))),
        (r#"{"id": 1, "method": "ping"}"#, Some((json!(1), -32_600))),
        (r#"{"jsonrpc": "2.0", "id": "b", "method": 7}"#, Some((json!("b"), -32_600))),
        (r#"{"jsonrpc": "2.0", "id": 2}"#, Some((json!(2), -32_600))),
        (r#"{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": []}"#, Some((json!(3), -32_602))),
        (r#"{"jsonrpc": "2.0", "id": 4, "method": "resources/list"}"#, Some((json!(4), -32_602))),
        (r#"{"jsonrpc": "2.0", "id": 5, "result": {}}"#, None),
        (r#"{"jsonrpc": "2.0", "id": 5, "error": {}}"#, None),
        (INITIALIZED, None),
        (r#"{"jsonrpc": "2.0", "method": "ping", "params": 1}"#, None),
        (r#"{"jsonrpc": "2.0", "method": "notifications/cancelled"}"#, None),
        (r#"{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}}"#, None),
    ] {
        let (mut client, served) = Client::new(async |_| found("", json!({})));
        let asked = async {
            client.says_bytes(line.as_bytes()).await;
            client.says(&modern("end", "server/discover", json!({}))).await;
            client.lines = None;
            let mut answers = Vec::new();
            while let Some(answer) = client.hears().await {
                answers.push((answer["id"].clone(), answer["error"]["code"].clone()));
            }
            answers
        };
        let answers = tokio::join!(asked, served).0;
        let end = (json!("end"), Value::Null);
        let expected: Vec<_> = expected.map(|(id, code)| (id, json!(code))).into_iter().chain([end]).collect();
        assert_eq!(answers, expected, "{line}");
    }
}

#[tokio::test]
async fn a_call_of_no_tool_is_an_error_of_the_protocol_and_one_with_wrong_arguments_of_the_tool() {
    let said = answers(&[
        call(1, "purge", json!({ "name": "shop/web" })),
        modern(2, "tools/call", json!({ "arguments": {} })),
        modern(3, "tools/call", json!({ "name": "status", "arguments": [] })),
        call(4, "history", json!({})),
        call(5, "status", json!({ "server": "http://10.0.0.1" })),
        call(6, "explain", json!({ "host": "www.example.com", "name": "web" })),
        call(7, "explain", json!({ "host": "not a host" })),
        call(8, "fresh", json!({ "name": "web", "until": "tomorrow" })),
        call(9, "history", json!({ "name": "repo/shop/web", "limit": -1 })),
        modern(10, "tools/call", json!({ "name": "status" })),
    ])
    .await;
    let codes: Vec<&Value> = said[..3].iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [-32_602; 3]);
    for answer in &said[3..9] {
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let words = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(words.starts_with("error: the arguments of "), "{words}");
        assert_eq!(answer["result"]["structuredContent"], Value::Null, "what is no answer has none");
    }
    assert_eq!(said[9]["result"]["isError"], false, "a call may have no arguments");
}

/// A namespace becomes part of a request's path.
#[test]
fn a_host_is_asked_for_alone() {
    let explain = |arguments: Value| asked("explain", &arguments).expect("a tool").is_ok();
    assert!(explain(json!({ "host": "www.example.com" })));
    assert!(explain(json!({ "host": "www.example.com", "namespace": "" })), "an empty text stands for none");
    assert!(!explain(json!({ "host": "www.example.com", "namespace": "shop" })));
    assert!(!explain(json!({ "host": "www.example.com", "name": "web" })));
}

#[test]
fn a_namespace_is_the_name_of_one_and_an_empty_text_stands_for_none() {
    let status = |namespace: Value| asked("status", &json!({ "namespace": namespace })).expect("a tool");
    for none in [json!(""), json!(null)] {
        assert_eq!(status(none).ok(), Some(Asked::Status { namespace: None }));
    }
    assert_eq!(asked("status", &json!({})).expect("a tool").ok(), Some(Asked::Status { namespace: None }));
    assert_eq!(status(json!("shop-1")).ok(), Some(Asked::Status { namespace: Some("shop-1".to_owned()) }));
    let long = "a".repeat(64);
    for wrong in ["shop/../../secrets", "..", "shop?watch=1", "Shop", "a.b", "-a", " ", long.as_str()] {
        assert!(status(json!(wrong)).is_err(), "{wrong}");
        for tool in ["explain", "history", "fresh"] {
            let arguments = json!({ "name": "web", "namespace": wrong });
            assert!(asked(tool, &arguments).expect("a tool").is_err(), "{tool} {wrong}");
        }
    }
}

#[test]
fn each_tool_only_reads_and_takes_what_its_schema_says_and_nothing_that_leads_elsewhere() {
    let tools = listed();
    let names: Vec<&str> = tools.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["status", "explain", "history", "fresh"]);
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let hints = ["readOnlyHint", "destructiveHint", "idempotentHint"].map(|hint| &tool["annotations"][hint]);
        assert_eq!(hints, [&json!(true), &json!(false), &json!(true)], "{name}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        let schema = &tool["inputSchema"];
        assert_eq!(schema["additionalProperties"], false, "{name}");
        let required = |argument: &str| schema["required"].as_array().unwrap().contains(&json!(argument));
        for (argument, about) in schema["properties"].as_object().unwrap() {
            assert!(["name", "namespace", "host", "limit", "until"].contains(&argument.as_str()), "{name} {argument}");
            let sample = match (about["type"].as_str(), argument.as_str()) {
                (Some("integer"), _) => json!(3),
                (_, "host") => json!("www.example.com"),
                (_, "until") => json!("fresh"),
                _ => json!("shop"),
            };
            let mut arguments = json!({ argument: sample });
            if required("name") {
                arguments["name"] = json!("web");
            }
            assert!(matches!(asked(name, &arguments), Some(Ok(_))), "{name} {arguments}");
            arguments["elsewhere"] = json!("x");
            assert!(matches!(asked(name, &arguments), Some(Err(_))), "{name} {arguments}");
        }
        let without = asked(name, &json!({}));
        assert_eq!(matches!(without, Some(Ok(_))), !required("name"), "{name}");
    }
}
