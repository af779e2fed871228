//! What is packed: copies that are equal to their originals, versions that agree, and words that lead somewhere.

use std::collections::BTreeMap;

use allclear::cli::Cli;
use clap::CommandFactory;
use serde_json::{Value, json};

use crate::none;
use crate::render::{documents, helm, lint, notes, text, top};

/// Each file that the chart has from elsewhere in deploy/, by its place below files/.
const COPIES: [(&str, &str); 23] = [
    ("crds/histories.yaml", "crds/histories.yaml"),
    ("crds/pipelines.yaml", "crds/pipelines.yaml"),
    ("crds/pipelines-weave.yaml", "crds/pipelines-weave.yaml"),
    ("crds/promotionfreezes.yaml", "crds/promotionfreezes.yaml"),
    ("crds/repos.yaml", "crds/repos.yaml"),
    ("monitoring/dashboard.json", "monitoring/dashboard.json"),
    ("monitoring/rules.yaml", "monitoring/rules.yaml"),
    ("policies/approvals.yaml", "policies/approvals.yaml"),
    ("policies/manual.yaml", "policies/manual.yaml"),
    ("rules/approver.yaml", "components/approvals-by-hand/role.yaml"),
    ("rules/apps.yaml", "components/apps/role.yaml"),
    ("rules/cluster.yaml", "base/cluster-role.yaml"),
    ("rules/gitopsclusters.yaml", "components/gitopsclusters/role.yaml"),
    ("rules/hooks.yaml", "components/hooks/role.yaml"),
    ("rules/ledger-reader.yaml", "components/ledger-reader/role.yaml"),
    ("rules/ledger.yaml", "base/ledger-role.yaml"),
    ("rules/namespaced.yaml", "overlays/namespaced/role.yaml"),
    ("rules/pipelines-weave.yaml", "overlays/weave/role.yaml"),
    ("rules/pipelines.yaml", "components/pipelines/role.yaml"),
    ("rules/reader.yaml", "components/reader/role.yaml"),
    ("rules/repo-approver.yaml", "components/repo-approvals/role.yaml"),
    ("rules/repo-destroy.yaml", "components/repo-destroy/role.yaml"),
    ("rules/repos.yaml", "components/repo/role.yaml"),
];

fn is_there(path: &str) -> bool {
    top().join(path).exists()
}

/// A file that does not exist yet has no copy yet.
#[test]
fn the_chart_has_what_it_shares_with_the_trees_as_it_is_there() {
    let mut wrong = Vec::new();
    let read = |path: &str| is_there(path).then(|| text(path));
    for (copy, original) in COPIES {
        if read(&format!("deploy/chart/allclear/files/{copy}")) != read(&format!("deploy/{original}")) {
            wrong.push(format!("{copy} is not as {original} is"));
        }
    }
    let mut count = 0;
    for folder in ["crds", "monitoring", "policies", "rules"] {
        let folder = top().join("deploy/chart/allclear/files").join(folder);
        count += folder.read_dir().map_or(0, Iterator::count);
    }
    let known = COPIES.iter().filter(|(copy, _)| is_there(&format!("deploy/chart/allclear/files/{copy}"))).count();
    assert_eq!(count, known, "a file of the chart that comes from nowhere");
    none("run scripts/chart-files.sh", &wrong);
}

/// Alerts and the dashboard come with the chart when they are there; until then the chart says what it lacks.
#[test]
fn the_alerts_and_the_dashboard_are_those_of_monitoring() {
    for (switch, file, kind) in
        [("rules", "rules.yaml", "PrometheusRule"), ("dashboard", "dashboard.json", "ConfigMap")]
    {
        let values = json!({"metrics": {switch: {"enabled": true, "labels": {"found": "yes"}}}});
        let rendered = helm(("allclear", "allclear"), &values);
        let original = format!("deploy/monitoring/{file}");
        if !is_there(&original) {
            let refused = rendered.unwrap_err();
            assert!(refused.contains(&format!("this chart was packed without {original}")), "{refused}");
            continue;
        }
        let found = |object: &&Value| object["kind"] == kind && object["metadata"]["labels"]["found"] == "yes";
        let rendered = rendered.unwrap();
        let object = rendered.iter().find(found).unwrap_or_else(|| panic!("no {kind}"));
        if switch == "rules" {
            assert_eq!(object["spec"], documents(&text(&original))[0]);
        } else {
            let data: Value = serde_json::from_str(object["data"]["allclear.json"].as_str().unwrap()).unwrap();
            assert_eq!(data, serde_json::from_str::<Value>(&text(&original)).unwrap());
        }
    }
}

#[test]
fn each_alert_leads_to_its_runbook_where_its_address_is_known() {
    for address in ["https://git.example.com/runbooks", "https://git.example.com/runbooks/"] {
        let values = json!({"metrics": {"rules": {"enabled": true, "runbooks": address}}});
        let rendered = helm(("allclear", "allclear"), &values).unwrap();
        let object = rendered.iter().find(|object| object["kind"] == "PrometheusRule").expect("rules");
        let rules = object["spec"]["groups"][0]["rules"].as_array().expect("a list");
        assert!(rules.len() > 5);
        for rule in rules {
            let name = rule["alert"].as_str().expect("a name");
            let leads = rule["annotations"]["runbook_url"].as_str().expect("an address");
            let page = leads.strip_prefix("https://git.example.com/runbooks/").and_then(|page| page.split_once('.'));
            assert_eq!(page, Some((name, "md")), "{leads}");
            assert_eq!(rule["annotations"]["runbook"], Value::Null);
        }
    }
    assert!(helm(("allclear", "allclear"), &json!({"metrics": {"rules": {"runbooks": "docs"}}})).is_err());
}

#[test]
fn the_chart_has_the_version_of_the_program_and_passes_its_linter() {
    let chart = &documents(&text("deploy/chart/allclear/Chart.yaml"))[0];
    assert_eq!(chart["version"], json!(env!("CARGO_PKG_VERSION")));
    assert_eq!(chart["appVersion"], json!(env!("CARGO_PKG_VERSION")));
    lint().unwrap();
}

/// kustomize and the chart install the same image, and the image is built from this version.
#[test]
fn the_trees_name_the_version_of_the_program() {
    let base = &documents(&text("deploy/base/kustomization.yaml"))[0];
    assert_eq!(base["images"][0]["newTag"], json!(env!("CARGO_PKG_VERSION")));
}

/// What the notes tell a person to type: our own commands exist, and names are those of this release.
#[test]
fn the_notes_name_commands_that_exist_and_objects_of_this_release() {
    let values = json!({"pipelines": {"enabled": true}, "group": {"enabled": true, "signed": false}, "dryRun": true});
    let said = notes(("edge", "platform"), &values);
    let mut commands: BTreeMap<&str, usize> = BTreeMap::new();
    for line in said.lines().filter(|line| line.trim_start().starts_with("kubectl")) {
        assert!(
            line.trim_start().starts_with("kubectl -n platform ") && line.contains("deployment/edge-allclear"),
            "{line}"
        );
        if let Some((_, command)) = line.split_once(" -- allclear ") {
            *commands.entry(command.split(' ').next().unwrap()).or_default() += 1;
        }
    }
    assert!(commands.contains_key("check") && commands.contains_key("crds"), "{said}");
    let cli = Cli::command();
    let known: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let unknown: Vec<String> =
        commands.keys().filter(|name| !known.contains(name)).map(|name| (*name).to_owned()).collect();
    none("the notes name a command that allclear does not have", &unknown);
    for words in
        ["it purges nothing", "service account edge-allclear", "helm uninstall leaves the ledger", "not signed"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// The image of the default values is nowhere, and who has named another one is told nothing of it.
#[test]
fn the_notes_say_when_the_registry_is_a_placeholder() {
    let said = |values: &Value| notes(("edge", "platform"), values);
    let placeholder = said(&json!({}));
    assert!(
        placeholder.contains(concat!("The image registry.example.com/allclear:", env!("CARGO_PKG_VERSION"))),
        "{placeholder}"
    );
    assert!(placeholder.contains("--set image.repository="), "{placeholder}");
    let named = said(&json!({"image": {"repository": "registry.shop.example/allclear"}}));
    assert!(!named.contains("placeholder") && named.contains("is installed"), "{named}");
}

/// What Artifact Hub shows of the kinds.
#[test]
fn the_chart_names_each_kind_that_it_brings() {
    let chart = &documents(&text("deploy/chart/allclear/Chart.yaml"))[0];
    let told = &documents(chart["annotations"]["artifacthub.io/crds"].as_str().unwrap())[0];
    let mut told: Vec<[Value; 3]> =
        told.as_array().unwrap().iter().map(|kind| ["kind", "name", "version"].map(|key| kind[key].clone())).collect();
    let ours = ["histories", "pipelines", "promotionfreezes", "repos"];
    let mut brought: Vec<[Value; 3]> = ours
        .iter()
        .flat_map(|name| documents(&text(&format!("deploy/crds/{name}.yaml"))))
        .map(|crd| {
            let spec = &crd["spec"];
            [spec["names"]["kind"].clone(), crd["metadata"]["name"].clone(), spec["versions"][0]["name"].clone()]
        })
        .collect();
    told.sort_by_key(|kind| kind[1].to_string());
    brought.sort_by_key(|kind| kind[1].to_string());
    assert_eq!(told, brought);
}

/// A person may take two releases for two teams. What both would write is refused by helm: it is another release's.
#[test]
fn two_releases_share_nothing_but_the_ledger_of_one_namespace() {
    let names = |release: &str, namespace: &str, values: &Value| {
        let objects = helm((release, namespace), values).unwrap();
        let name = |object: &Value| {
            let metadata = &object["metadata"];
            format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"])
        };
        objects.iter().map(name).collect::<std::collections::BTreeSet<String>>()
    };
    let one = names("a", "platform", &json!({}));
    assert!(one.is_disjoint(&names("b", "edge", &json!({}))));
    let both: Vec<String> = one.intersection(&names("b", "platform", &json!({}))).cloned().collect();
    let ledger = ["Role", "RoleBinding"].map(|kind| format!("\"{kind}\" \"platform\" \"allclear-ledger\""));
    assert_eq!(both, ledger);
    // The same name in two namespaces, each for its own workloads.
    let own = json!({"rbac": {"scope": "namespaces"}});
    assert!(names("a", "shop", &own).is_disjoint(&names("a", "blog", &own)));
}
