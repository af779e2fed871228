//! Each way to break the domain in tests/mutants.txt still fits the source, so `make mutants` tries what it says. Whether a test
//! catches it is for that target to say.

use std::collections::BTreeSet;

use crate::none;
use crate::source::file;

/// So many there are at least.
const MUTANTS_MIN: usize = 60;

/// One: the file, what it breaks, and the text before.
struct Mutant {
    path: String,
    title: String,
    before: Vec<String>,
    after: Vec<String>,
}

fn mutants() -> Vec<Mutant> {
    let mut found: Vec<Mutant> = Vec::new();
    for line in file("tests/mutants.txt").text.lines() {
        if let Some(head) = line.strip_prefix("== ") {
            let (path, title) = head.split_once(": ").unwrap_or_else(|| panic!("no title: {line}"));
            found.push(Mutant { path: path.into(), title: title.into(), before: Vec::new(), after: Vec::new() });
        } else if let Some(text) = line.strip_prefix('-') {
            found.last_mut().unwrap().before.push(text.strip_prefix(' ').unwrap_or(text).to_owned());
        } else if let Some(text) = line.strip_prefix('+') {
            found.last_mut().unwrap().after.push(text.strip_prefix(' ').unwrap_or(text).to_owned());
        } else {
            assert!(line.is_empty() || line.starts_with('#'), "neither of a mutant nor a comment: {line}");
        }
    }
    found
}

#[test]
fn every_mutant_fits_the_source_once_and_changes_it() {
    let wrong = mutants().into_iter().filter_map(|Mutant { path, title, before, after }| {
        let times = file(&path).text.matches(&before.join("\n")).count();
        let fits = times == 1 && !before.is_empty() && before != after && path.starts_with("src/domain/");
        (!fits).then(|| format!("{path}: {title}: its text is there {times} times"))
    });
    none("tests/mutants.txt: a mutant does not fit the source", &wrong.collect::<Vec<_>>());
}

#[test]
fn there_are_sixty_mutants_and_no_two_are_the_same() {
    let all = mutants();
    let titles: BTreeSet<(&str, &str)> = all.iter().map(|one| (one.path.as_str(), one.title.as_str())).collect();
    assert!(titles.len() == all.len() && all.len() >= MUTANTS_MIN, "{} of {}", titles.len(), all.len());
}
