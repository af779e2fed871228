//! Rules about documents: what they name exists.

use std::collections::BTreeSet;
use std::path::Path;

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

/// `src/domain/purge/rollouts/rollout/{agree,finish}.rs` names two files.
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

/// The anchors of a document: GitHub makes one of each heading, and numbers those of equal headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut in_block = false;
    for line in text.lines() {
        in_block ^= line.trim_start().starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !in_block) {
            let anchor = anchor_of(heading.trim_start_matches('#'));
            let numbered = (1..).map(|number| format!("{anchor}-{number}")).find(|other| !found.contains(other));
            let anchor = if found.contains(&anchor) { numbered.unwrap() } else { anchor };
            found.insert(anchor);
        }
        found.extend(line.split("<a id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    found
}

/// Letters, digits, `-` and `_` stay, in lower case; blanks become `-`; all else goes, and of a link its target.
fn anchor_of(heading: &str) -> String {
    let mut shown = String::new();
    for (at, part) in heading.split("](").enumerate() {
        shown.push_str(if at == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) });
    }
    let kept = shown.trim().chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

#[test]
fn an_anchor_is_made_as_github_makes_it() {
    for (heading, anchor) in [
        (" What is a change?", "what-is-a-change"),
        (" On a local cluster, without AWS", "on-a-local-cluster-without-aws"),
        (" `redis.url`", "redisurl"),
        (" Why, or [why not](a.md)?", "why-or-why-not"),
    ] {
        assert_eq!(anchor_of(heading), anchor);
    }
    assert_eq!(anchors("# A\n```\n# no\n```\n## A\n"), BTreeSet::from(["a", "a-1"].map(str::to_owned)));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut missing = Vec::new();
    for document in documents() {
        let folder = document.path.rsplit_once('/').map_or_else(String::new, |(folder, _)| format!("{folder}/"));
        for (at, line) in document.text.lines().enumerate() {
            for part in line.split("](").skip(1) {
                let link = part.split(')').next().unwrap_or_default();
                let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
                if target.contains("://") {
                    continue;
                }
                let path = if target.is_empty() { document.path.clone() } else { format!("{folder}{target}") };
                let there = exists(&path);
                let is_document = there && path.ends_with(".md");
                if !there || (!anchor.is_empty() && is_document && !anchors(&file(&path).text).contains(anchor)) {
                    missing.push(format!("{}:{}: {link}", document.path, at + 1));
                }
            }
        }
    }
    none("a link leads nowhere", &missing);
}

/// A document that says which test proves something is wrong once that test has another name.
#[test]
fn tests_that_documents_name_exist() {
    let mut known = BTreeSet::new();
    for source in rust(&["src", "tests"]) {
        known.extend(source.functions().into_iter().map(|function| function.name));
    }
    // Some operations of AWS have names as long as sentences; they are counted by these.
    let labels = file("src/telemetry/labels.rs").text;
    let is_counted = |word: &str| labels.contains(&format!("\"{word}\","));
    let is_sentence = |word: &str| {
        word.matches('_').count() >= 4 && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let mut missing = Vec::new();
    for document in documents() {
        for (line, word) in quoted(&document) {
            if is_sentence(word) && !word.starts_with("allclear_") && !known.contains(word) && !is_counted(word) {
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
