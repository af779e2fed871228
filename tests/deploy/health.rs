//! What the recipes for Argo CD and Flux make of our objects: their Lua and their CEL are run over statuses as we write them,
//! and the table of docs/recipes.md is what has to come of it. Not tried: Argo CD and Flux themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::none;
use crate::render::{documents, text, top};

const KINDS: [&str; 2] = ["Pipeline", "Repo"];

/// The generation of each object here.
const GENERATION: i64 = 3;

/// A row of the table: what is so of an object, and what it is for each of the two.
#[derive(Debug)]
struct Row {
    kind: String,
    /// The condition, what it is, and a reason, each as it is written.
    said: Said,
    argo: String,
    flux: String,
}

#[derive(Debug)]
enum Said {
    /// Something else than a condition.
    Other(String),
    Condition {
        name: String,
        status: String,
        reasons: Vec<String>,
    },
}

/// Words in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn rows() -> Vec<Row> {
    let page = text("docs/recipes.md");
    let table = page.split("| kind | what is so |").nth(1).expect("docs/recipes.md has the table");
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let row = |line: &str| {
        let [kind, said, argo, flux] = cells(line).try_into().unwrap_or_else(|cells| panic!("{cells:?}"));
        let mut words = quoted(&said).into_iter();
        let said = match words.next() {
            None => Said::Other(said),
            Some(name) => Said::Condition { name, status: words.next().unwrap(), reasons: words.collect() },
        };
        Row { kind, said, argo, flux }
    };
    lines.map(row).collect()
}

/// Its conditions, each with its status and its reason.
type Conditions<'a> = [(&'a str, &'a str, &'a str)];

/// An object of this kind whose status we have written.
fn object(kind: &str, observed: i64, conditions: &Conditions<'_>) -> Value {
    let holds = |status: &str| match status {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    };
    let status = if kind == "Repo" {
        use objects::repo::status::{Condition, ConditionKind, Status};
        let of = |name: &str| ConditionKind::named(name).unwrap_or_else(|| panic!("{name} is no condition of a Repo"));
        let conditions = conditions
            .iter()
            .map(|(name, status, reason)| Condition::new(of(name), holds(status), reason, &words(name)));
        serde_json::to_value(Status {
            observed_generation: observed,
            conditions: conditions.collect(),
            ..Status::default()
        })
    } else {
        use objects::pipeline::status::{Condition, ConditionKind, Status};
        let of =
            |name: &str| ConditionKind::named(name).unwrap_or_else(|| panic!("{name} is no condition of a Pipeline"));
        let conditions = conditions
            .iter()
            .map(|(name, status, reason)| Condition::new(of(name), holds(status), reason, &words(name)));
        serde_json::to_value(Status {
            observed_generation: observed,
            conditions: conditions.collect(),
            ..Status::default()
        })
    };
    json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": kind, "spec": {},
        "metadata": {"name": "web", "namespace": "shop", "generation": GENERATION}, "status": status.unwrap(),
    })
}

/// The message of a condition of this name.
fn words(name: &str) -> String {
    format!("the words of {name}")
}

/// The objects that a row is about.
fn objects(Row { kind, said, .. }: &Row) -> Vec<Value> {
    let ready = ("Ready", "True", "Applied");
    match said {
        Said::Other(said) if said.starts_with("nothing yet") => {
            let never = json!({"observedGeneration": -1});
            let mut objects = vec![object(kind, GENERATION - 1, &[ready]), object(kind, GENERATION, &[])];
            objects.push(object(kind, GENERATION - 1, &[("Stalled", "True", "InvalidSpec")]));
            let mut unwritten = object(kind, -1, &[]);
            unwritten["status"] = never;
            objects.push(unwritten);
            objects
        }
        Said::Other(said) if said.starts_with("it is being deleted") => {
            let mut objects = vec![object(kind, GENERATION, &[ready]), object(kind, GENERATION, &[])];
            objects.push(object(
                kind,
                GENERATION,
                &[("Ready", "False", "DestroyFailed"), ("Stalled", "True", "DestroyFailed")],
            ));
            for object in &mut objects {
                object["metadata"]["deletionTimestamp"] = json!("2026-11-22T22:10:00Z");
            }
            objects
        }
        Said::Other(other) => panic!("no test of {other:?}"),
        Said::Condition { name, status, reasons } => {
            let with = |reason: &String| match name.as_str() {
                "Ready" => object(kind, GENERATION, &[(name, status, reason)]),
                _ => object(kind, GENERATION, &[ready, (name, status, reason)]),
            };
            assert!(!reasons.is_empty(), "{name}: no reason is named");
            reasons.iter().map(with).collect()
        }
    }
}

/// What the two say of objects, as health.py runs them.
fn asked(objects: &[Value]) -> Vec<Value> {
    let config = &documents(&text("deploy/recipes/argocd-cm.yaml"))[0]["data"];
    let flux = &documents(&text("deploy/recipes/flux.yaml"))[0]["spec"]["healthCheckExprs"];
    let of = |kind: &str| {
        let own = |what: &str| config[format!("resource.customizations.{what}.allclear.dev_{kind}")].as_str().unwrap();
        (kind.to_owned(), json!({"health": own("health"), "actions": documents(own("actions"))[0]}))
    };
    let argo: BTreeMap<String, Value> = KINDS.into_iter().map(of).collect();
    let checks = flux.as_array().unwrap().iter().map(|one| (one["kind"].as_str().unwrap().to_owned(), one.clone()));
    let input = json!({"argo": argo, "flux": checks.collect::<BTreeMap<_, _>>(), "objects": objects});
    let mut python = Command::new(top().join(".venv/bin/python"))
        .arg(top().join("tests/deploy/health.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("scripts/test-setup.sh gets Lua and CEL");
    python.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let ended = python.wait_with_output().unwrap();
    assert!(ended.status.success(), "health.py failed");
    serde_json::from_slice(&ended.stdout).unwrap()
}

#[test]
fn the_health_of_an_object_is_that_of_the_table() {
    let rows = rows();
    assert!(rows.len() > 12, "{rows:?}");
    let tried: Vec<(&Row, Value)> =
        rows.iter().flat_map(|row| objects(row).into_iter().map(move |object| (row, object))).collect();
    let answers = asked(&tried.iter().map(|(_, object)| object.clone()).collect::<Vec<_>>());
    let mut wrong = Vec::new();
    for ((row, object), answer) in tried.iter().zip(&answers) {
        let said = (answer["health"]["status"].as_str().unwrap(), answer["flux"].as_str().unwrap());
        if said != (row.argo.as_str(), row.flux.as_str()) {
            wrong.push(format!("{said:?} and not {row:?}: {}", object["status"]));
        }
        if let Said::Condition { name, .. } = &row.said {
            let shown = [words(name), words("Ready")];
            assert!(shown.iter().any(|words| answer["health"]["message"] == **words), "{row:?}: {answer}");
        }
    }
    none("not the health of docs/recipes.md", &wrong);
    let kinds: BTreeSet<&str> = rows.iter().map(|row| row.kind.as_str()).collect();
    assert_eq!(kinds, BTreeSet::from(KINDS));
}

/// A reason that is new must be thought about: what is it for those who wait?
#[test]
fn every_reason_that_we_write_is_in_the_table() {
    let rows = rows();
    let mut missing = Vec::new();
    let written: [(&str, &[&str]); 2] =
        [("Pipeline", &["pipeline/show.rs"]), ("Repo", &["repo/show.rs", "repo/finalizer.rs"])];
    for (kind, sources) in written {
        let named = |row: &&Row| row.kind == kind;
        let named: BTreeSet<&String> = rows
            .iter()
            .filter(named)
            .filter_map(|row| if let Said::Condition { reasons, .. } = &row.said { Some(reasons) } else { None })
            .flatten()
            .collect();
        let sources: Vec<String> = sources.iter().map(|path| text(&format!("src/domain/objects/{path}"))).collect();
        for word in sources.iter().flat_map(|source| source.split('"').skip(1).step_by(2)) {
            let is_reason = word.len() > 3
                && word.starts_with(|first: char| first.is_ascii_uppercase())
                && word.chars().all(|letter| letter.is_ascii_alphabetic());
            if is_reason && word != "NoWebhook" && !named.contains(&word.to_owned()) {
                missing.push(format!("{kind} {word}"));
            }
        }
    }
    none("a reason that docs/recipes.md lacks", &missing);
}

/// What an action of Argo CD's page leaves: the annotation that it is about, and all others as they were.
#[test]
fn actions_change_one_annotation() {
    let mut suspended = object("Repo", GENERATION, &[]);
    suspended["metadata"]["annotations"] = json!({"allclear.dev/suspend": "an audit", "team": "a"});
    let plain = object("Pipeline", GENERATION, &[]);
    let answers = asked(&[suspended, plain]);
    assert_eq!(answers[0]["offered"], json!({"look-now": true, "suspend": false, "resume": true}));
    assert_eq!(answers[1]["offered"], json!({"look-now": true, "suspend": true, "resume": false}));
    let after = &answers[0]["after"];
    assert_eq!(after["resume"], json!({"team": "a"}));
    let asked_at = after["look-now"]["allclear.dev/requested-at"].as_str().unwrap();
    assert!(asked_at.parse::<jiff::Timestamp>().is_ok(), "{asked_at}");
    assert_eq!(after["look-now"]["allclear.dev/suspend"], "an audit");
    assert_eq!(answers[1]["after"]["suspend"], json!({"allclear.dev/suspend": "by an action of Argo CD"}));
}
