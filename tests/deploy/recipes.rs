//! The recipes of deploy/recipes: their command lines are ours, and their keys belong together. That Kubernetes knows their
//! fields is in `schemas`; what they make of health is in `health`. Not tried: GitHub, Kargo and Flagger.

use allclear::cli::Cli;
use clap::Parser;
use serde_json::{Value, json};

use crate::none;
use crate::render::{documents, text};

fn recipe(name: &str) -> Vec<Value> {
    documents(&text(&format!("deploy/recipes/{name}.yaml")))
}

/// The command lines of allclear in a recipe.
fn lines() -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for step in recipe("github-actions")[0]["jobs"]["deploy"]["steps"].as_array().unwrap() {
        let run = step["run"].as_str().unwrap_or_default();
        found.extend(
            run.lines().filter(|line| line.starts_with("allclear ")).map(|line| ("github-actions", line.to_owned())),
        );
    }
    for job in recipe("argocd-hooks").into_iter().filter(|object| object["kind"] == "Job") {
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        let words: Vec<&str> =
            container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let line = match container["command"].as_array() {
            // A shell looks at the code afterwards.
            Some(shell) => {
                assert_eq!(json!(shell), json!(["sh", "-c"]));
                words[0].split(';').next().unwrap().to_owned()
            }
            None => format!("allclear {}", words.join(" ")),
        };
        found.push(("argocd-hooks", line));
    }
    found
}

#[test]
fn every_command_line_of_a_recipe_is_one_of_ours() {
    let lines = lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let wrong = lines.iter().filter_map(|(recipe, line)| {
        assert!(line.starts_with("allclear wait "), "{recipe}: {line}");
        Cli::try_parse_from(line.split_whitespace()).err().map(|error| format!("{recipe}: {line}: {error}"))
    });
    none("a recipe says what the program does not know", &wrong.collect::<Vec<_>>());
}

/// A rollout that failed, or a workload that is new, must not keep its own cure out: of the codes only 3 ends the sync.
#[test]
fn a_sync_is_held_up_by_a_late_purge_alone() {
    let jobs = recipe("argocd-hooks").into_iter().filter(|object| object["kind"] == "Job");
    let before =
        jobs.into_iter().find(|job| job["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "PreSync").unwrap();
    let line = before["spec"]["template"]["spec"]["containers"][0]["args"][0].as_str().unwrap().to_owned();
    let rest = line.split_once(';').unwrap().1;
    for (code, ends_well) in [(0, true), (1, true), (2, true), (3, false)] {
        let shell = format!("(exit {code});{rest}");
        let ended = std::process::Command::new("sh").args(["-c", &shell]).status().unwrap();
        assert_eq!(ended.success(), ends_well, "{code}");
    }
}

/// The hooks' account is bound to what `wait` needs, in both namespaces.
#[test]
fn the_hooks_have_the_rights_of_a_reader() {
    let objects = recipe("argocd-hooks");
    let account = objects.iter().find(|object| object["kind"] == "ServiceAccount").unwrap()["metadata"].clone();
    let bindings: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "RoleBinding").collect();
    let named: Vec<&Value> = bindings.iter().map(|binding| &binding["roleRef"]["name"]).collect();
    assert_eq!(named, ["view", "allclear-ledger-reader"]);
    for binding in bindings {
        let subject = &binding["subjects"][0];
        assert_eq!((&subject["name"], &subject["namespace"]), (&account["name"], &account["namespace"]));
    }
    let role = &documents(&text("deploy/components/ledger-reader/role.yaml"))[0];
    assert_eq!(role["metadata"]["name"], "allclear-ledger-reader");
}

/// Both ask for what the endpoint has, and Kargo ends only where waiting cannot help.
#[test]
fn the_gates_ask_for_paths_of_the_endpoint() {
    let kargo = text("deploy/recipes/kargo.yaml");
    let flagger = text("deploy/recipes/flagger.yaml");
    for (recipe, count) in [(&kargo, 1), (&flagger, 2)] {
        assert_eq!(recipe.matches("allclear.allclear.svc:8080/api/v1/fresh/shop/web").count(), count);
    }
    let steps = &recipe("kargo")[0]["spec"]["promotionTemplate"]["spec"]["steps"];
    assert_eq!(steps[1]["config"]["failureExpression"], "response.status in [400, 401, 404]");
}
