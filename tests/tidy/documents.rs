//! Rules about documents: what they name exists.

use std::collections::BTreeSet;
use std::path::Path;

use domain::notice::Kind;

use crate::none;
use crate::source::{File, file, files, rust};

/// Folders whose files a document may name.
const FOLDERS: [&str; 8] = ["src/", "tests/", "benches/", "configs/", "deploy/", "scripts/", ".ci/", "docs/"];

fn documents() -> Vec<File> {
    files("").into_iter().filter(|file| file.path.ends_with(".md")).collect()
}

fn exists(path: &str) -> bool {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists()
}

/// What stands between backticks on one line, with the line.
fn quoted(file: &File) -> Vec<(usize, &str)> {
    let lines = file.text.lines().enumerate();
    lines.flat_map(|(at, line)| line.split('`').skip(1).step_by(2).map(move |word| (at + 1, word))).collect()
}

/// `src/domain/rollout/{agree,finish}.rs` names two files.
fn unfolded(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((middle, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    middle.split(',').map(|one| format!("{before}{}{after}", one.trim())).collect()
}

#[test]
fn files_that_documents_name_exist() {
    let mut missing = Vec::new();
    for document in documents() {
        for (line, word) in quoted(&document) {
            // `src/ports.rs:20`, `configs/default.toml`, never `src/**/*.rs`.
            let path = word.split([':', ' ']).next().unwrap_or_default();
            if path.contains('*') || !FOLDERS.iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            let gone = unfolded(path).into_iter().filter(|path| !exists(path));
            missing.extend(gone.map(|path| format!("{}:{line}: {path}", document.path)));
        }
    }
    none("a document names a file that does not exist", &missing);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut missing = Vec::new();
    for document in documents() {
        let folder = document.path.rsplit_once('/').map_or_else(String::new, |(folder, _)| format!("{folder}/"));
        for (at, line) in document.text.lines().enumerate() {
            for part in line.split("](").skip(1) {
                let target = part.split([')', '#']).next().unwrap_or_default();
                if !target.is_empty() && !target.contains("://") && !exists(&format!("{folder}{target}")) {
                    missing.push(format!("{}:{}: {target}", document.path, at + 1));
                }
            }
        }
    }
    none("a link leads nowhere", &missing);
}

/// The failure table of ARCHITECTURE names the test that proves each row: a renamed test must be renamed there.
#[test]
fn tests_that_documents_name_exist() {
    let mut known = BTreeSet::new();
    for source in rust(&["src", "tests"]) {
        known.extend(source.functions().into_iter().map(|function| function.name));
    }
    let is_sentence = |word: &str| {
        word.matches('_').count() >= 4 && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let mut missing = Vec::new();
    for document in documents() {
        for (line, word) in quoted(&document) {
            if is_sentence(word) && !word.starts_with("allclear_") && !known.contains(word) {
                missing.push(format!("{}:{line}: {word}", document.path));
            }
        }
    }
    none("a document names a test that does not exist", &missing);
}

#[test]
fn targets_of_make_that_documents_name_exist() {
    let makefile = file("Makefile").text;
    let targets: BTreeSet<&str> = makefile
        .lines()
        .filter_map(|line| line.split_once(": ").or(line.split_once(":")).map(|(name, _)| name))
        .collect();
    let mut missing = Vec::new();
    for document in documents() {
        for (line, word) in quoted(&document) {
            if let Some(target) = word.strip_prefix("make ")
                && !targets.contains(target.split(' ').next().unwrap_or_default())
            {
                missing.push(format!("{}:{line}: {word}", document.path));
            }
        }
    }
    none("a document names a target that the Makefile does not have", &missing);
}

/// Whoever subscribes a hook or writes an alert looks there.
#[test]
fn readme_has_every_event_in_the_order_of_a_rollouts_life() {
    let readme = file("README.md").text;
    let (_, table) = readme.split_once("| event | Event on the workload | when |\n|---|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let told: Vec<String> = rows.map(|row| row.split('|').take(3).collect::<Vec<_>>().join("|")).collect();
    let warning = |kind: Kind| if kind.is_warning() { " (Warning)" } else { "" };
    let expected = Kind::ALL.map(|kind| format!("| `{}` | {}{} ", kind.name(), kind.reason(), warning(kind)));
    assert_eq!(told, expected);

    let (_, alert) = readme.split_once("allclear_notices_total{kind=~\"").unwrap();
    let (kinds, _) = alert.split_once('"').unwrap();
    let unknown: Vec<String> = kinds.split('|').filter(|kind| Kind::named(kind).is_none()).map(str::to_owned).collect();
    none("README advises an alert on what is no event", &unknown);
}

/// Comments cite documents: each must be one of ours, so that its reader can go on reading.
#[test]
fn documents_that_comments_cite_exist() {
    let mut missing = Vec::new();
    for source in rust(&["src", "tests"]) {
        for (at, line) in source.text.lines().enumerate() {
            let Some((_, comment)) = line.split_once("//") else { continue };
            let words = comment.split(|c: char| !(c.is_alphanumeric() || "._/-".contains(c)));
            let cited = words.filter(|word| word.ends_with(".md") && !word.contains("//"));
            missing
                .extend(cited.filter(|word| !exists(word)).map(|word| format!("{}:{}: {word}", source.path, at + 1)));
        }
    }
    none("a comment cites a document that is not here", &missing);
}
