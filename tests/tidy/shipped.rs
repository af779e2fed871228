//! Every file that is shipped to be used is good as it is, and so is what README and docs/ show: those who copy it start with
//! something that works.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use allclear::config::{Inputs, load};
use serde_json::Value;

use crate::none;
use crate::source::{File, file, files};

/// Where the configuration under test is.
const CONFIG: &str = "config.toml";

/// The files of a machine, and the environment there.
type Given<'a> = BTreeMap<&'a str, &'a str>;

/// What is wrong with a configuration.
fn problems(config: Option<&str>, files: &Given<'_>, environment: &Given<'_>) -> Option<String> {
    let read = |path: &Path| {
        let text = if path == Path::new(CONFIG) { config } else { files.get(path.to_str().unwrap()).copied() };
        text.map(str::to_owned).ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let inputs = Inputs {
        file: config.map(|_| CONFIG.into()),
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        flags: BTreeMap::new(),
        service_account_namespace: None,
        read: &read,
    };
    load(&inputs).err().map(|invalid| invalid.to_string())
}

fn webhook_problems(text: &str) -> Option<String> {
    // The key that docs/pipeline.md shows beside it: 32 bytes.
    let key = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let files = Given::from([("webhooks.json", text), ("promote.key", key)]);
    problems(None, &files, &Given::from([("WEBHOOKS_CONFIG", "webhooks.json")]))
}

/// One of ours, by how it is named.
fn wrong_with(shipped: &File) -> Option<String> {
    let File { path, text } = shipped;
    let (_, name) = path.rsplit_once('/').unwrap();
    // No YAML before helm has read it: tests/deploy lets helm render each, and reads what comes of it.
    if path.starts_with("deploy/chart/allclear/templates/") {
        return None;
    }
    match name.rsplit_once('.').map_or(name, |(_, ending)| ending) {
        "toml" => problems(Some(text), &Given::new(), &Given::new()),
        "json" if name == "webhooks.json" => webhook_problems(text),
        "json" => serde_json::from_str::<Value>(text).err().map(|error| error.to_string()),
        "yaml" => {
            let parts = text.split("\n---\n").map(serde_saphyr::from_str::<Value>);
            parts.filter_map(Result::err).map(|error| error.to_string()).next()
        }
        // Documents have rules of their own.
        "Dockerfile" | "md" | "sh" | "helmignore" => None,
        _ => Some("nobody knows how to check it".to_owned()),
    }
}

#[test]
fn every_shipped_file_is_good_as_it_is() {
    let shipped = files("configs").into_iter().chain(files("deploy"));
    let wrong = shipped.filter_map(|file| Some(format!("{}: {}", file.path, wrong_with(&file)?)));
    none("a shipped file that does not work", &wrong.collect::<Vec<_>>());
}

/// The blocks of a page in this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let parts = page.split("\n```").skip(1).step_by(2);
    parts.filter_map(|part| part.strip_prefix(language)?.strip_prefix('\n')).map(str::to_owned).collect()
}

/// What is proposed in comments, or shown in README and docs/, works on a machine that has what it names.
#[test]
fn every_configuration_that_is_proposed_is_good_once_what_it_names_is_there() {
    let hooks = file("configs/webhooks.json").text;
    let key = "0".repeat(64);
    let there = Given::from([
        ("/etc/allclear/redis-ca.pem", "-----BEGIN CERTIFICATE-----"),
        ("/etc/allclear/group-key", key.as_str()),
        ("/etc/allclear/webhooks.json", hooks.as_str()),
    ]);
    // As the page of groups gives them.
    let environment = Given::from([
        ("REDIS_HOST", "redis.eu-1.internal"),
        ("REMOTE_REDIS_HOSTS", "redis.eu-2.internal,redis.us-1.internal:6380"),
    ]);
    let groups = file("docs/groups.md").text;
    assert!(environment.iter().all(|(name, value)| groups.contains(&format!("{name}={value}"))), "as it gives them");
    let mut proposed: Vec<(String, String)> = ["configs/example.toml", "deploy/base/config.toml"]
        .map(|path| (path.to_owned(), file(path).text.lines().map(uncommented).collect::<Vec<_>>().join("\n")))
        .into();
    let pages: Vec<File> = files("docs").into_iter().chain([file("README.md")]).collect();
    let shown = |language: &'static str| {
        pages
            .iter()
            .flat_map(move |page| blocks(&page.text, language).into_iter().map(|block| (page.path.clone(), block)))
    };
    assert!(shown("toml").count() >= 3, "docs/ shows configurations");
    proposed.extend(shown("toml"));
    let wrong = proposed.iter().filter_map(|(place, text)| {
        let own = if text.contains("redis.example.com") { Given::new() } else { environment.clone() };
        Some(format!("{place}: {}\n{text}", problems(Some(text), &there, &own)?))
    });
    none("a proposed configuration that does not work", &wrong.collect::<Vec<_>>());
    let hooks: Vec<(String, String)> = shown("json").filter(|(_, block)| block.contains("\"webhooks\"")).collect();
    assert!(!hooks.is_empty(), "docs/ shows webhooks");
    let wrong = hooks.iter().filter_map(|(path, block)| Some(format!("{path}: {}", webhook_problems(block)?)));
    none("docs/ shows webhooks that do not work", &wrong.collect::<Vec<_>>());
}

/// A question that is left out, or that goes with its object, is answered by who could not answer it. What the expressions come to is
/// the API server's to say: it was asked by hand, as the commit says.
#[test]
fn what_asks_people_is_changed_and_deleted_by_those_alone_who_may_answer() {
    let text = file("deploy/policies/manual.yaml").text;
    let policy: Value = serde_saphyr::from_str(text.split("\n---\n").next().unwrap()).unwrap();
    let rule = &policy["spec"]["matchConstraints"]["resourceRules"][0];
    assert_eq!(rule["operations"], serde_json::json!(["UPDATE", "DELETE"]));
    assert_eq!(rule["resources"], serde_json::json!(["pipelines", "repos"]));
    for guard in ["one.manual", "oldObject.spec.approval != \"Auto\"", "namespaceObject.metadata.deletionTimestamp"] {
        assert!(text.contains(guard), "{guard}");
    }
    let checked =
        "!variables.asks || variables.namespaceGoes || authorizer.requestResource.check(\"approve\").allowed()";
    assert_eq!(policy["spec"]["validations"][0]["expression"], checked);
}

/// `# key = value` and `# [section]` without the sign.
fn uncommented(line: &str) -> &str {
    let bare = line.strip_prefix("# ").unwrap_or(line);
    let key = bare.split(" = ").next().unwrap_or_default();
    let is_key = bare.contains(" = ") && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if is_key || (bare.starts_with('[') && bare.ends_with(']')) { bare } else { line }
}

/// A snapshot that is written anew where it is compared agrees with anything.
#[test]
fn nothing_that_ci_calls_renews_a_snapshot() {
    let called = files(".github").into_iter().chain(files("scripts")).chain([file("Makefile")]);
    let renewing = called.filter(|file| file.text.contains("UPDATE_EXPECT")).map(|file| file.path);
    none("a snapshot is renewed", &renewing.collect::<Vec<_>>());
}
