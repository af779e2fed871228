//! Rules about what the program shows of itself, and what is made of it: metrics, alerts, runbooks, the dashboard.

use std::collections::BTreeSet;

use allclear::telemetry::{Form, Metrics};
use serde_json::Value;

use crate::none;
use crate::source::{file, files, rust};

const RULES: &str = "deploy/monitoring/rules.yaml";
const DASHBOARD: &str = "deploy/monitoring/dashboard.json";

/// No more than a person can know by heart.
const RULES_MAX: usize = 12;

/// Those that the page of the metrics says appear when they first occur.
const LATER: [&str; 12] = [
    "allclear_month_paths",
    "allclear_month_saved_paths",
    "allclear_workload_trouble",
    "allclear_deployments_total",
    "allclear_deployments_failed_total",
    "allclear_change_lead_time_seconds_bucket",
    "allclear_deployment_recovery_seconds_bucket",
    "allclear_purged_paths_total",
    "allclear_last_purge_timestamp_seconds",
    "allclear_hook_requests_total",
    "allclear_board_answered_timestamp_seconds",
    "allclear_board_failures_total",
];

fn shown() -> String {
    Metrics::default().text(Form::Prometheus)
}

/// The names of all series, as a query has them.
fn names() -> BTreeSet<String> {
    let text = shown();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let names = samples.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned);
    names.chain(LATER.map(str::to_owned)).collect()
}

/// Words of a query that are names of our metrics.
fn asked(query: &str) -> Vec<String> {
    let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("allclear_") || word.starts_with("process_")).map(str::to_owned).collect()
}

fn rules() -> Vec<Value> {
    let all: Value = serde_saphyr::from_str(&file(RULES).text).expect("it is YAML");
    let groups = all["groups"].as_array().expect("it has groups").clone();
    groups.iter().flat_map(|group| group["rules"].as_array().expect("it has rules").clone()).collect()
}

fn text<'a>(of: &'a Value, path: &str) -> &'a str {
    of.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn every_metric_that_an_alert_or_the_dashboard_asks_for_is_shown() {
    let names = names();
    let mut unknown = BTreeSet::new();
    let mut known = 0;
    let dashboard: Value = serde_json::from_str(&file(DASHBOARD).text).expect("it is JSON");
    let mut queries: Vec<(String, String)> =
        rules().iter().map(|rule| (text(rule, "/alert").to_owned(), text(rule, "/expr").to_owned())).collect();
    for panel in dashboard["panels"].as_array().expect("it has panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            queries.push((text(panel, "/title").to_owned(), text(target, "/expr").to_owned()));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().expect("it has variables") {
        queries.push((text(variable, "/name").to_owned(), text(variable, "/definition").to_owned()));
    }
    for (place, query) in queries {
        for name in asked(&query) {
            known += 1;
            if !names.contains(&name) {
                unknown.insert(format!("{place}: {name}"));
            }
        }
    }
    assert!(known > 40, "{known}");
    none("a query asks for what the program does not show", &unknown.into_iter().collect::<Vec<_>>());
}

/// `kind=~"run.failed|run.stalled"`: each of them is a series of that metric.
#[test]
fn every_label_that_an_alert_asks_for_is_shown_from_the_start() {
    let text_of_all = shown();
    let mut missing = Vec::new();
    let mut found = 0;
    for rule in rules() {
        for part in text(&rule, "/expr").split("allclear_").skip(1) {
            let Some((name, rest)) = part.split_once('{') else { continue };
            if !name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                continue;
            }
            let (label, rest) = rest.split_once('=').expect("it has a label");
            let values = rest.trim_start_matches('~').split('"').nth(1).expect("it has values");
            for value in values.split('|') {
                found += 1;
                let series = format!("allclear_{name}{{{label}=\"{value}\"}} 0\n");
                if !text_of_all.contains(&series) {
                    missing.push(series);
                }
            }
        }
    }
    assert!(found > 10, "{found}");
    none("an alert asks for a series that is not there from the start", &missing);
}

#[test]
fn every_alert_has_a_runbook_a_row_a_case_and_a_person_to_act() {
    let rules = rules();
    assert!(rules.len() <= RULES_MAX, "{}", rules.len());
    let (page, cases) = (file("docs/alerts.md").text, file("deploy/monitoring/rules_test.yaml").text);
    let mut expected = BTreeSet::new();
    let mut wrong = Vec::new();
    for rule in &rules {
        let name = text(rule, "/alert");
        let path = format!("docs/runbooks/{name}.md");
        if text(rule, "/annotations/runbook") != path {
            wrong.push(format!("{name}: its runbook is not {path}"));
        }
        let headings: Vec<String> =
            file(&path).text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect();
        let title = format!("# {name}");
        if headings != [title.as_str(), "## Meaning", "## Impact", "## Diagnosis", "## Cure"] {
            wrong.push(format!("{path}: {headings:?}"));
        }
        let severity = text(rule, "/labels/severity");
        if !page.contains(&format!("| `{name}` | {severity} |")) {
            wrong.push(format!("docs/alerts.md: no row for {name}, {severity}"));
        }
        let fires = cases.split("- eval_time: ").skip(1).chain(cases.split("- {eval_time: ").skip(1));
        let is_case = |case: &&str| case.contains(&format!("alertname: {name}")) && case.contains("exp_alerts");
        if !fires.into_iter().any(|case| is_case(&case)) {
            wrong.push(format!("{name}: no case in which it fires"));
        }
        for field in ["/annotations/summary", "/annotations/description"] {
            if text(rule, field).is_empty() {
                wrong.push(format!("{name}: no {field}"));
            }
        }
        expected.insert(path);
    }
    let pages: BTreeSet<String> = files("docs/runbooks").into_iter().map(|file| file.path).collect();
    wrong.extend(pages.difference(&expected).map(|path| format!("{path} belongs to no alert")));
    none("an alert that leaves a person alone", &wrong);
}

/// The actors name what fails, and what takes time, in words of their own. Each of them is a series from the start.
#[test]
fn every_operation_of_the_actors_is_shown_from_the_start() {
    let all = shown();
    let mut missing = Vec::new();
    let mut found = 0;
    for source in rust(&["src/actors"]) {
        let text: String = source.text.split_whitespace().collect();
        for (call, series) in [
            ("failure(\"", "allclear_failures_total{operation="),
            ("failed(\"", "allclear_failures_total{operation="),
            ("self.read(\"", "allclear_failures_total{operation="),
            ("retry_until_ok(\"", "allclear_failures_total{operation="),
            ("constFIND:&'staticstr=\"", "allclear_failures_total{operation="),
            ("constLOAD:&str=\"", "allclear_failures_total{operation="),
            ("took(\"", "allclear_operation_seconds_count{operation="),
            ("(index,\"", "allclear_operation_seconds_count{operation="),
            ("restart(\"", "allclear_restarts_total{actor="),
            ("overflow(\"", "allclear_mailbox_overflows_total{actor="),
        ] {
            for rest in text.split(call).skip(1) {
                let word = rest.split('"').next().unwrap_or_default();
                found += 1;
                if !all.contains(&format!("\n{series}\"{word}\"}} 0\n")) {
                    missing.push(format!("{}: {series}{word}", source.path));
                }
            }
        }
    }
    assert!(found > 60, "{found}");
    none("an actor counts under a word that is not in src/telemetry/labels.rs", &missing);
}

/// `Self::Store(_) => "store"`, in each machine: it is a series from the start. Objects of ours have those of every kind, too.
#[test]
fn every_effect_of_a_machine_is_shown_from_the_start() {
    let all = shown();
    let own = |path| {
        vec![
            (path, "impl Effect"),
            ("objects/owned.rs", "impl<K: OwnKind> Effect<K>"),
            ("objects/asked.rs", "impl Ask"),
        ]
    };
    let machines = [
        ("rollout", vec![("purge/rollouts/rollout/named.rs", "impl Effect")]),
        ("broker", vec![("purge/broker/mod.rs", "impl Effect")]),
        ("catalog", vec![("purge/purges/catalog.rs", "impl Effect")]),
        ("purge", vec![("purge/purges/purge/mod.rs", "impl Effect")]),
        ("turns", vec![("proof/turns.rs", "impl Effect")]),
        ("outbox", vec![("notices/delivery.rs", "impl Effect")]),
        ("pipeline", own("objects/pipeline/mod.rs")),
        ("repo", own("objects/repo/mod.rs")),
    ];
    let mut wrong = Vec::new();
    for (machine, places) in machines {
        let mut effects = BTreeSet::new();
        for (path, of) in places {
            let text = file(&format!("src/domain/{path}")).text;
            let (_, rest) = text.split_once(&format!("\n{of} {{")).expect(path);
            let (body, _) = rest.split_once("\n}\n").expect("it ends");
            let named = body.split("=> \"").skip(1).filter_map(|rest| rest.split('"').next());
            let before = effects.len();
            effects.extend(named.map(str::to_owned));
            assert!(effects.len() > before, "{path}");
        }
        let start = format!("\nallclear_effects_total{{machine=\"{machine}\",effect=\"");
        let shown = all.split(&start).skip(1).filter_map(|rest| rest.split('"').next());
        let shown: BTreeSet<String> = shown.map(str::to_owned).collect();
        wrong.extend(effects.symmetric_difference(&shown).map(|effect| format!("{machine}: {effect}")));
    }
    none("the effects of a machine are not those of src/telemetry/labels.rs", &wrong);
}
