//! Reading a webhooks file, and the report of one that cannot be read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::super::hook::HookMethod;
use super::*;

const FILE: &str = "/etc/allclear/hooks.json";

fn read_hooks(text: &str) -> (Option<Vec<Hook>>, Vec<String>) {
    let defaults = HookDefaults { timeout: Duration::from_secs(15), schedule: vec![Duration::ZERO] };
    let mut findings = Findings::default();
    let read_file = |path: &Path| match path.to_str() {
        Some("/etc/allclear/key") => Ok("raw key\n".to_owned()),
        Some("/etc/allclear/empty") => Ok("\n".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let hooks = parse(text, Path::new(FILE), &defaults, &read_file, &mut findings);
    findings.problems.sort();
    (hooks, findings.problems.iter().map(|problem| problem.to_string().replace("\n    fix", "; fix")).collect())
}

fn hook(text: &str) -> Hook {
    let (hooks, problems) = read_hooks(&format!("{{\"webhooks\": [{text}]}}"));
    assert!(problems.is_empty(), "{problems:?}");
    hooks.unwrap().remove(0)
}

const OLD: &str = r#""name": "web", "url": "https://ci.example.com/t0ken", "method": "post""#;

#[test]
fn the_old_form_is_understood() {
    let text = r#"{"Name": "web", "url": "http://10.0.0.7/x", "method": "GET", "headers": {"X-Key": "k"},
                   "parameters": {"site": "web", "count": 3, "force": true}}"#;
    let hook = hook(text);
    assert_eq!((hook.name.as_str(), hook.method, hook.format), ("web", HookMethod::Get, HookFormat::Form));
    assert_eq!(hook.url.expose().as_str(), "http://10.0.0.7/x");
    assert_eq!(hook.headers, BTreeMap::from([("x-key".to_owned(), Secret::new("k".to_owned()))]));
    let parameters: Vec<(&str, &str)> =
        hook.parameters.iter().map(|(name, value)| (name.as_str(), value.expose().as_str())).collect();
    assert_eq!(parameters, [("count", "3"), ("force", "true"), ("site", "web")]);
    assert_eq!((hook.events, hook.is_old_form), (BTreeSet::from([Kind::PurgeCompleted]), true));
    assert_eq!(hook.workloads, [WorkloadPattern::Name("web".to_owned())]);
    assert_eq!((hook.timeout, hook.schedule), (Duration::from_secs(15), vec![Duration::ZERO]));
    assert_eq!(hook.secrets, []);
}

#[test]
fn the_additions_are_understood() {
    let key = format!("whsec_{}", BASE64.encode([7; 32]));
    let text = format!(
        r#"{{{OLD}, "events": ["purge.completed", "purge.stalled"], "workloads": ["*", "shop/web", "blog/*"],
            "format": "json", "secret": ["{key}", "old"], "secretFile": "key", "timeout": "5s", "retry": ["0s", "1m"]}}"#
    );
    let hook = hook(&text);
    assert_eq!((hook.events.len(), hook.is_old_form, hook.format), (2, false, HookFormat::Json));
    let patterns: Vec<String> = hook.workloads.iter().map(ToString::to_string).collect();
    assert_eq!(patterns, ["*", "shop/web", "blog/*"]);
    let keys: Vec<&[u8]> = hook.secrets.iter().map(|secret| secret.expose().as_slice()).collect();
    assert_eq!(keys, [&[7_u8; 32][..], b"old", b"raw key"]);
    assert_eq!(hook.timeout, Duration::from_secs(5));
    assert_eq!(hook.schedule, [Duration::ZERO, Duration::from_secs(60)]);
    assert!(hook.workloads[1].matches("shop", "web") && !hook.workloads[1].matches("blog", "web"));
}

#[test]
fn every_mistake_is_told_with_pointer_and_line() {
    let text = r#"{"webhooks": [
{"name": "Web!", "url": "ci.example.com/t0ken", "method": "SEND", "headers": {"a b": "s3cret", "Content-Length": "1"}},
{"url": 5, "method": "GET", "methods": "GET", "events": ["purge.complete"], "timeout": "90s", "retry": [],
 "secret": "whsec_s3cret", "secretFile": ["empty", "gone"], "workloads": "web"},
{"name": "a", "name": "b", "url": "http://x", "method": "GET", "parameters": {"p": null}}, 7]}"#;
    let (hooks, problems) = read_hooks(text);
    assert_eq!(hooks, None);
    let expected = [
        (2, 10, "/webhooks/0/name: cannot be the name of a Deployment"),
        (2, 25, "/webhooks/0/url: is not a URL"),
        (2, 59, "/webhooks/0/method: is not a method"),
        (2, 86, "/webhooks/0/headers/•••: is not a name of a header"),
        (2, 114, "/webhooks/0/headers/•••: is a header that allclear sets itself"),
        (3, 1, "/webhooks/1: has no name"),
        (3, 9, "/webhooks/1/url: is a number; fix: write a text"),
        (3, 29, "/webhooks/1/methods: is not known here; fix: did you mean \"method\"?"),
        (3, 58, "/webhooks/1/events/0: is not an event; fix: did you mean purge.completed?"),
        (3, 88, "/webhooks/1/timeout = \"90s\": is not in range"),
        (3, 104, "/webhooks/1/retry: has 0 items"),
        (4, 12, "/webhooks/1/secret: is a whsec_ key that is not base64"),
        (4, 43, "/webhooks/1/secretFile/0: is an empty key"),
        (
            4,
            52,
            "/webhooks/1/secretFile/1: names a file that cannot be read: there is no such file; fix: mount the key as a file beside",
        ),
        (4, 74, "/webhooks/1/workloads: is a text; fix: write a list"),
        (5, 15, "/webhooks/2/name: is given twice"),
        (5, 84, "/webhooks/2/parameters/•••: is null; fix: write a text"),
        (5, 92, "/webhooks/3: is a number; fix: write an object"),
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, (line, column, text)) in problems.iter().zip(expected) {
        let start = format!("{FILE}:{line}:{column}: {text}");
        assert!(problem.starts_with(&start), "expected: {start}\n   found: {problem}");
        assert!(!problem.contains("s3cret") && !problem.contains("t0ken"), "{problem}");
    }
}

#[test]
fn what_is_no_webhooks_file_is_refused() {
    for (text, expected) in [
        ("", "1:1: is not valid JSON: EOF while parsing a value"),
        ("{\"webhooks\": [}", "1:15: is not valid JSON: expected value"),
        ("[]", "1:1: /: is a list; fix: write an object"),
        ("{}", "1:1: /: has no webhooks"),
        ("{\"webhook\": []}", "1:2: /webhook: is not known here; fix: did you mean \"webhooks\"?"),
    ] {
        let (hooks, problems) = read_hooks(text);
        assert_eq!(hooks, None);
        let expected = format!("{FILE}:{expected}");
        assert!(problems.iter().any(|problem| problem.starts_with(&expected)), "{problems:?}");
    }
    assert_eq!(read_hooks("{\"webhooks\": []}"), (Some(Vec::new()), Vec::new()));
}

#[test]
fn a_hook_prints_nothing_secret() {
    let text = format!(r#"{{{OLD}, "headers": {{"a": "t0ken"}}, "parameters": {{"b": "t0ken"}}, "secret": "t0ken"}}"#);
    let printed = format!("{:?}", hook(&text));
    assert!(!printed.contains("t0ken") && !printed.contains("116, 48"), "{printed}");
}
