//! The table of values in the chart's README is made from values.yaml.

use serde_json::Value;

use crate::render::{documents, text, top};

const README: &str = "deploy/chart/allclear/README.md";

/// The row of each value that has a comment: its path, its default and the comment.
fn rows() -> String {
    let values = text("deploy/chart/allclear/values.yaml");
    let defaults = &documents(&values)[0];
    let mut path: Vec<&str> = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut rows = "| value | default | what it does |\n|---|---|---|\n".to_owned();
    for line in values.lines() {
        let trimmed = line.trim_start();
        if let Some(words) = trimmed.strip_prefix("# ") {
            comment.push(words);
            continue;
        }
        let key = trimmed.split(':').next().unwrap_or_default();
        if !key.is_empty() && !key.contains(' ') {
            path.truncate((line.len() - trimmed.len()) / 2);
            path.push(key);
            if !comment.is_empty() {
                let default = defaults.pointer(&format!("/{}", path.join("/"))).unwrap_or(&Value::Null);
                rows.push_str(&format!("| `{}` | `{default}` | {} |\n", path.join("."), comment.join(" ")));
            }
        }
        comment.clear();
    }
    rows
}

fn with_table(readme: &str) -> String {
    let (before, rest) = readme.split_once("| value | default |").expect("README of the chart has the table");
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    format!("{before}{}\n{after}", rows())
}

#[test]
fn the_table_of_the_readme_is_made_from_the_values() {
    assert!(rows().lines().count() > 70, "{}", rows());
    assert!(rows().contains("\n| `ha.replicas` | `2` | Replicas. |\n"), "{}", rows());
    let readme = text(README);
    assert!(readme == with_table(&readme), "{README} is old: cargo test --test deploy -- --ignored make_the_table");
}

#[test]
#[ignore = "writes the table into README.md of the chart"]
fn make_the_table() {
    let readme = text(README);
    std::fs::write(top().join(README), with_table(&readme)).unwrap();
}
