//! docs/annotations.md has each annotation and label of ours that the program reads or writes, and no other; and no other page names one
//! that does not exist.
//!
//! Not for what each of them does.

use std::collections::BTreeSet;

use kernel::names::destination::SEND_TO;
use objects::repo::outputs::OUTPUTS_OF;
use purge::workloads::workload::Tuning;

use crate::none;
use crate::source::{File, file, files, rust};

const PREFIX: &str = "allclear.dev/";

/// Files whose keys are in no object of a cluster: those of a message, and what the demo does as a person would.
const NOT_OF_OBJECTS: [&str; 3] = ["src/adapters/webhook/flux.rs", "src/demo/", "src/sandbox/"];

/// The names that follow this in a text: letters and hyphens.
fn names_after<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(rest.len());
        // A version of our API, such as v1alpha1, goes on with a digit.
        let is_name = end > 0 && !rest[end..].starts_with(|c: char| c.is_ascii_digit());
        is_name.then(|| &rest[..end])
    })
}

fn production(file: &File) -> &str {
    file.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
}

/// Of workloads: the program names those it knows where it is given another one.
fn of_workloads() -> BTreeSet<String> {
    let tuning = Tuning::read([("allclear.dev/no-such-annotation", "")]);
    let said = tuning.faults.first().expect("it is a fault");
    let (_, known) = said.split_once("known are ").expect("it names those that are known");
    known.split(", ").map(str::to_owned).collect()
}

/// Of Pipelines and Repos.
fn of_features() -> BTreeSet<String> {
    let reader = file("src/adapters/kubernetes/crd/metadata.rs");
    let asked = |before| names_after(production(&reader), before).map(str::to_owned).collect::<Vec<_>>();
    asked(".annotation(\"").into_iter().chain(asked(": words(\"")).collect()
}

/// All that stand in the code as they are.
fn literal(is_meant: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let is_code = |file: &File| !file.path.contains("/tests") && is_meant(&file.path);
    let files = rust(&["src"]).into_iter().filter(is_code);
    let names = |file: File| names_after(production(&file), "\"allclear.dev/").map(str::to_owned).collect::<Vec<_>>();
    files.flat_map(names).collect()
}

/// The keys in the first column of a section's tables.
fn rows(page: &str, heading: &str) -> BTreeSet<String> {
    let (_, rest) = page.split_once(&format!("{heading}\n")).unwrap_or_else(|| panic!("no {heading:?}"));
    let section = rest.split("\n## ").next().unwrap_or_default();
    section
        .lines()
        .flat_map(|line| names_after(line, "| `allclear.dev/").map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[test]
fn the_page_of_annotations_has_each_that_is_read_or_written_and_no_other() {
    let page = file("docs/annotations.md").text;
    let (workloads, features) = (of_workloads(), of_features());
    assert!(workloads.len() >= 9 && features.len() >= 5, "{workloads:?} {features:?}");
    assert_eq!(rows(&page, "# Annotations"), workloads);
    assert_eq!(rows(&page, "## On Pipelines and Repos"), features);
    let of_secrets = BTreeSet::from([SEND_TO, OUTPUTS_OF].map(|key| key.trim_start_matches(PREFIX).to_owned()));
    assert_eq!(rows(&page, "## On their Secrets"), of_secrets);
    let mut written = literal(|path| !NOT_OF_OBJECTS.iter().any(|other| path.starts_with(other)));
    written.retain(|name| !of_secrets.contains(name) && !workloads.contains(name) && !features.contains(name));
    assert_eq!(rows(&page, "## What allclear writes itself"), written);
}

#[test]
fn no_page_names_an_annotation_that_does_not_exist() {
    let known: BTreeSet<String> =
        of_workloads().into_iter().chain(of_features()).chain(literal(|path| !path.starts_with("src/demo/"))).collect();
    let is_read = |path: &str| path.ends_with(".md") || path.ends_with(".yaml") || path.ends_with(".tpl");
    let mut unknown = Vec::new();
    let mut found = 0;
    for page in files("").into_iter().filter(|file| is_read(&file.path) && !file.path.starts_with("tests/")) {
        for name in names_after(&page.text, PREFIX) {
            found += 1;
            if !known.contains(name) {
                unknown.push(format!("{}: {PREFIX}{name}", page.path));
            }
        }
    }
    assert!(found > 40, "{found}");
    none("a page names an annotation that does not exist", &unknown);
}
