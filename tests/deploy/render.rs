//! Runs helm and kubectl. Nothing here knows what they are to give.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folder of the repository.
pub fn top() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap()
}

/// A file of the repository.
pub fn text(path: &str) -> String {
    std::fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What a tool says, or what it complains of. The one that test-setup.sh got comes before one in PATH.
fn run(tool: &str, arguments: &[&str]) -> Result<String, String> {
    let own = top().join(".venv/bin").join(tool);
    let program = if own.is_file() { own } else { PathBuf::from(tool) };
    let output = Command::new(&program).args(arguments).current_dir(top()).output().unwrap_or_else(|error| {
        panic!("{tool} does not run ({error}), so nothing was compared: get it by scripts/test-setup.sh");
    });
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(said(&output.stdout)) } else { Err(said(&output.stderr)) }
}

/// The documents of a text in YAML that are not empty.
pub fn documents(text: &str) -> Vec<Value> {
    let parts = format!("\n{text}");
    let parts = parts.split("\n---\n").map(|part| {
        let part = part.strip_prefix("---\n").unwrap_or(part);
        serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{error}:\n{part}"))
    });
    parts.filter(|part: &Value| !part.is_null()).collect()
}

/// A release: its name and its namespace.
pub type Release<'a> = (&'a str, &'a str);

/// What the chart gives for a release with these values; with more arguments for helm.
pub fn helm_with((name, namespace): Release<'_>, values: &Value, more: &[&str]) -> Result<Vec<Value>, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), values.to_string()).unwrap();
    let file = file.path().to_str().unwrap();
    let given = ["template", name, "deploy/chart/allclear", "--namespace", namespace, "--values", file];
    let rendered = run("helm", &[&given, more].concat())?;
    Ok(documents(&rendered))
}

/// What the chart gives for a release with these values.
pub fn helm(release: Release<'_>, values: &Value) -> Result<Vec<Value>, String> {
    helm_with(release, values, &[])
}

/// What helm says to the person who installs.
pub fn notes((name, namespace): Release<'_>, values: &Value) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), values.to_string()).unwrap();
    let file = file.path().to_str().unwrap();
    let chart = "deploy/chart/allclear";
    let given = ["install", name, chart, "--dry-run=client", "--namespace", namespace, "--values", file];
    let said = run("helm", &given).unwrap();
    let (_, notes) = said.split_once("\nNOTES:\n").unwrap_or_else(|| panic!("no notes: {said}"));
    notes.to_owned()
}

/// What a linter says of the chart.
pub fn lint() -> Result<String, String> {
    run("helm", &["lint", "--strict", "--quiet", "deploy/chart/allclear"])
}

/// What an overlay gives that names these folders of deploy/ and these components.
pub fn kustomize(namespace: Option<&str>, resources: &[&str], components: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().canonicalize().unwrap();
    // kustomize takes no absolute path.
    let up = from.components().filter(|part| matches!(part, Component::Normal(_))).map(|_| "..");
    let top = up.collect::<PathBuf>().join(top().strip_prefix("/").unwrap());
    let mut lines = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n".to_owned();
    if let Some(namespace) = namespace {
        writeln!(lines, "namespace: {namespace}").unwrap();
    }
    for (field, folders) in [("resources", resources), ("components", components)] {
        if !folders.is_empty() {
            writeln!(lines, "{field}:").unwrap();
        }
        for folder in folders {
            writeln!(lines, "  - {}", top.join("deploy").join(folder).display()).unwrap();
        }
    }
    std::fs::write(from.join("kustomization.yaml"), lines).unwrap();
    documents(&run("kubectl", &["kustomize", Path::new(&from).to_str().unwrap()]).unwrap())
}
