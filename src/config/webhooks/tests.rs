//! Reading a webhooks file, and the report of one that cannot be read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use expect_test::expect_file;
use kernel::id::{Kind as Workload, PipelineId, Subject, WorkloadId};

use super::super::hook::{HookFormat, HookMethod};
use super::*;

const FILE: &str = "/etc/allclear/hooks.json";

fn read_hooks(text: &str) -> (Option<Vec<Hook>>, Vec<String>) {
    let defaults = HookDefaults { timeout: Duration::from_secs(15), schedule: vec![Duration::ZERO] };
    let mut findings = Findings::default();
    let read_file = |path: &Path| match path.to_str() {
        Some("/etc/allclear/key") => Ok("raw key\n".to_owned()),
        Some("/etc/allclear/empty") => Ok("\n".to_owned()),
        Some("/etc/allclear/body.json") => Ok(r#"{"a": ["{{ message }}", 1.50, true, null]}"#.to_owned()),
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
    assert_eq!(hook.workloads, [WorkloadPattern::Own("web".to_owned())]);
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
    let of = |namespace: &str| Subject::from(WorkloadId::deployment(namespace, "web"));
    assert!(hook.workloads[1].matches(&of("shop")) && !hook.workloads[1].matches(&of("blog")));
}

#[test]
fn a_hook_without_workloads_is_called_for_deployments_and_others_where_they_are_named() {
    let of = |kind| Subject::from(WorkloadId::new(kind, "shop", "web"));
    let called = |workloads: &str| {
        let hook = hook(&format!("{{{OLD}{workloads}}}"));
        let kinds = Workload::ALL.into_iter().filter(|kind| kind.identity() == *kind);
        let kinds = kinds.filter(|kind| hook.workloads[0].matches(&of(*kind)));
        kinds.map(Workload::word).collect::<Vec<_>>()
    };
    assert_eq!(called(""), ["deployment"], "as the old program");
    let all = ["deployment", "statefulset", "daemonset"];
    for any in ["*", "web", "shop/web", "shop/*"] {
        assert_eq!(called(&format!(r#", "workloads": ["{any}"]"#)), all, "{any}");
    }
    for one in ["statefulset/shop/web", "sts/shop/*"] {
        assert_eq!(called(&format!(r#", "workloads": ["{one}"]"#)), ["statefulset"], "{one}");
    }
    assert_eq!(called(r#", "workloads": ["rollout/shop/web"]"#), ["deployment"], "a Rollout and a Deployment are one");
    let own = WorkloadPattern::Own("web".to_owned());
    assert!(own.matches(&Subject::Pipeline(PipelineId::new("shop", "web"))), "by the name of any Pipeline or Repo");
    for wrong in ["job/shop/web", "statefulset/shop/web/x", "statefulset/sts/shop/web", "statefulset//web"] {
        assert_eq!(WorkloadPattern::parse(wrong), None, "{wrong}");
    }
    assert_eq!(WorkloadPattern::parse("sts/shop/*").unwrap().to_string(), "statefulset/shop/*");
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
    let said = problems.join("\n").replace("; fix", "\n  fix") + "\n";
    expect_file!["mistakes.txt"].assert_eq(&said);
    assert!(!said.contains("s3cret") && !said.contains("t0ken"), "{said}");
}

#[test]
fn what_is_no_webhooks_file_is_refused() {
    let texts = ["", "{\"webhooks\": [}", "[]", "{}", "{\"webhook\": []}"];
    let said = texts.map(|text| {
        let (hooks, problems) = read_hooks(text);
        assert_eq!(hooks, None);
        format!("{text}\n{}\n\n", problems.join("\n").replace("; fix", "\n  fix"))
    });
    expect_file!["unreadable.txt"].assert_eq(&said.concat());
    assert_eq!(read_hooks("{\"webhooks\": []}"), (Some(Vec::new()), Vec::new()));
}

#[test]
fn a_hook_prints_nothing_secret() {
    let text = format!(r#"{{{OLD}, "headers": {{"a": "t0ken"}}, "parameters": {{"b": "t0ken"}}, "secret": "t0ken"}}"#);
    let printed = format!("{:?}", hook(&text));
    assert!(!printed.contains("t0ken") && !printed.contains("116, 48"), "{printed}");
}

#[test]
fn a_body_may_be_a_text_or_json_or_in_a_file() {
    let of = |rest: &str| hook(&format!(r#"{{{OLD}, "workloads": ["*"], {rest}}}"#)).format;
    let value = |name: crate::config::BodyValue| serde_json::json!(name.name());
    for rest in [
        r#""body": "{\"a\": [\"{{ message }}\", 1.50, true, null]}""#,
        r#""format": "template", "body": {"a": ["{{ message }}", 1.50, true, null]}"#,
        r#""bodyFile": "body.json""#,
    ] {
        let HookFormat::Template(body) = of(rest) else { panic!("{rest}") };
        let filled = body.fill(value).expect("short").replace(": ", ":").replace(", ", ",");
        assert_eq!(filled, r#"{"a":["message",1.50,true,null]}"#, "{rest}");
    }
    let plain = of(r#""headers": {"Content-Type": "text/plain; charset=utf-8"}, "body": "{{ message }}!""#);
    let HookFormat::Template(plain) = plain else { panic!("a body") };
    assert_eq!(plain.fill(value).as_deref(), Some("message!"));
    for name in ["form", "json", "flux", "cloudevents", "cdevents", "slack", "teams"] {
        assert_eq!(of(&format!(r#""format": "{name}""#)).name(), name);
    }
}

#[test]
fn what_a_format_has_no_place_for_is_refused() {
    for (rest, expected) in [
        (r#""format": "template""#, "/webhooks/0/format: has no body; fix: add \"body\" or \"bodyFile\""),
        (r#""format": "json", "body": "1""#, "/webhooks/0/body: is a body, and the format json makes its own"),
        (r#""body": "1", "bodyFile": "body.json""#, "/webhooks/0/body: is given beside a bodyFile"),
        (r#""body": 1"#, "/webhooks/0/body: is a number"),
        (r#""bodyFile": {}"#, "/webhooks/0/bodyFile: is an object"),
        (r#""bodyFile": "gone""#, "/webhooks/0/bodyFile: names a file that cannot be read"),
        (r#""body": "t0ken {{ mesage }}""#, "/webhooks/0/body: names mesage, which is no value of an event"),
        (r#""body": "t0ken""#, "/webhooks/0/body: is not JSON for purge.completed"),
        (r#""body": "<a/>", "headers": {"content-type": "application/xml"}"#, "/webhooks/0/body: is a body of a type"),
        (r#""format": "slack", "parameters": {"a": "b"}"#, "/webhooks/0/parameters: have no place in the format slack"),
        (r#""format": "cdevents", "headers": {"CE-Id": "b"}"#, "/webhooks/0/headers: have one of those"),
    ] {
        let (hooks, problems) = read_hooks(&format!(r#"{{"webhooks": [{{{OLD}, {rest}}}]}}"#));
        assert_eq!((hooks, problems.len()), (None, 1), "{rest}: {problems:?}");
        assert!(problems[0].contains(expected) && !problems[0].contains("t0ken"), "{rest}: {}", problems[0]);
    }
    let get = OLD.replace("post", "get");
    for rest in [r#""format": "cloudevents""#, r#""format": "teams""#, r#""body": "1""#] {
        let (_, problems) = read_hooks(&format!(r#"{{"webhooks": [{{{get}, {rest}}}]}}"#));
        assert!(problems.len() == 1 && problems[0].contains("/webhooks/0/method: has no body"), "{problems:?}");
    }
}
