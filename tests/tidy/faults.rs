//! The table of faults in docs/internals/faults.md, whose last column is made from the tests: a test that proves a row says
//! so, by a line `// Faults: K18, A5` above its documentation and its attributes. People write the other columns.
//!
//! Whether a test really proves its row is not for a machine to say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::none;
use crate::source::{File, file, rust};

const PAGE: &str = "docs/internals/faults.md";

/// The head of a table of faults.
const HEAD: &str = "| id | fault | what happens | tested by |";

const MARK: &str = "// Faults: ";

/// Tests that a row names; of more, the first [`FIRST`] and how many others there are.
const NAMED_MAX: usize = 4;

const FIRST: usize = 3;

const TEST_ATTRIBUTES: [&str; 3] = ["#[test]", "#[tokio::test", "#[actix::test"];

/// A line that names faults.
struct Mark {
    place: String,
    ids: Vec<String>,
    /// The test that follows; none where something else does.
    test: Option<String>,
}

fn marks() -> Vec<Mark> {
    rust(&["src", "tests"]).iter().flat_map(marks_of).collect()
}

fn marks_of(file: &File) -> Vec<Mark> {
    let lines: Vec<&str> = file.text.lines().map(str::trim_start).collect();
    let marked = lines.iter().enumerate().filter_map(|(at, line)| Some((at, line.strip_prefix(MARK)?)));
    let mark = |(at, ids): (usize, &str)| Mark {
        place: format!("{}:{}", file.path, at + 1),
        ids: ids.split(", ").map(str::to_owned).collect(),
        test: test_at(&lines[at + 1..]),
    };
    marked.map(mark).collect()
}

/// The name of the test whose documentation, or whose attributes, begin here.
fn test_at(lines: &[&str]) -> Option<String> {
    let above = lines.iter().take_while(|line| line.starts_with("//") || !(line.is_empty() || line.contains("fn ")));
    let (count, is_test) = above.fold((0, false), |(count, is_test), line| {
        (count + 1, is_test || TEST_ATTRIBUTES.iter().any(|attribute| line.starts_with(attribute)))
    });
    let (_, name) = lines.get(count)?.split_once("fn ")?;
    let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    is_test.then_some(name)
}

/// The tests of each fault.
fn proofs(marks: &[Mark]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (mark, test) in marks.iter().filter_map(|mark| Some((mark, mark.test.as_deref()?))) {
        for id in &mark.ids {
            found.entry(id).or_default().insert(test);
        }
    }
    found
}

/// The rows of the page: the line's number from 0, the ids, the hand-written cells as they are, and the last cell.
fn rows(page: &str) -> Vec<(usize, Vec<&str>, &str, &str)> {
    let (mut within, mut found) = (false, Vec::new());
    for (at, line) in page.lines().enumerate() {
        within = line == HEAD || (within && line.starts_with('|'));
        if !within || line == HEAD || line.starts_with("|---") {
            continue;
        }
        let (written, last) = line.rsplit_once(" | ").unwrap_or((line, ""));
        let ids = written.trim_start_matches("| ").split(" | ").next().unwrap_or_default();
        found.push((at, ids.split(", ").collect(), written, last.trim_end_matches('|').trim_end()));
    }
    found
}

/// The last cell of a row with these ids; none where no test proves it, and words say why.
fn cell(ids: &[&str], proofs: &BTreeMap<&str, BTreeSet<&str>>) -> Option<String> {
    let tests: BTreeSet<&str> = ids.iter().filter_map(|id| proofs.get(id)).flatten().copied().collect();
    let named = if tests.len() > NAMED_MAX { FIRST } else { tests.len() };
    let names: Vec<String> = tests.iter().take(named).map(|test| format!("`{test}`")).collect();
    let more = tests.len() - named;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!tests.is_empty()).then(|| names.join(", ") + &more)
}

/// The page as the tests make it.
fn made(page: &str, marks: &[Mark]) -> String {
    let proofs = proofs(marks);
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    for (at, ids, written, _) in rows(page) {
        if let Some(cell) = cell(&ids, &proofs) {
            lines[at] = format!("{written} | {cell} |");
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_page_of_faults_is_what_the_tests_make_it() {
    let page = file(PAGE).text;
    let made = made(&page, &marks());
    let first = page.lines().zip(made.lines()).find(|(is, made)| is != made);
    assert!(page == made, "{PAGE} is not what the tests make it: run make faults-page\n{first:#?}");
}

#[test]
#[ignore = "writes the page: run make faults-page"]
fn make_the_page_of_faults() {
    let page = made(&file(PAGE).text, &marks());
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE), page).unwrap();
}

#[test]
fn each_fault_has_one_row_and_a_test_or_words_that_say_why_not() {
    let (page, marks) = (file(PAGE).text, marks());
    let (proofs, rows) = (proofs(&marks), rows(&page));
    assert!(rows.len() > 100 && marks.len() > 300, "{} rows, {} tests", rows.len(), marks.len());
    let mut known = BTreeSet::new();
    let mut wrong = Vec::new();
    for (at, ids, _, last) in rows {
        let place = format!("{PAGE}:{}: {}", at + 1, ids.join(", "));
        wrong.extend(ids.iter().filter(|id| !known.insert(**id)).map(|id| format!("{place}: {id} has another row")));
        if cell(&ids, &proofs).is_none() && (last.is_empty() || last.starts_with('`')) {
            wrong.push(format!("{place}: no test names it, and no words say why"));
        }
    }
    for mark in &marks {
        let unknown = mark.ids.iter().filter(|id| !known.contains(id.as_str()));
        wrong.extend(unknown.map(|id| format!("{}: {id} has no row in {PAGE}", mark.place)));
        if mark.test.is_none() {
            wrong.push(format!("{}: no test follows", mark.place));
        }
    }
    none("faults and the tests that prove them", &wrong);
}

#[test]
fn a_row_names_the_tests_that_name_it_and_only_as_many_as_can_be_read() {
    let mut text = "// Faults: K1\n/// A fn dies.\n#[tokio::test]\n#[ignore = \"slow\"]\nasync fn zero() {".to_owned();
    for name in ["one", "two", "three"] {
        text += &format!("\n// Faults: K1, K2\n#[test]\nfn {name}() {{");
    }
    text += "\n// Faults: K9\nfn helper() {\n// Faults: K9\n\n#[test]\nfn apart() {\n";
    let marks = marks_of(&File { path: "tests/x.rs".to_owned(), text });
    let tests: Vec<Option<&str>> = marks.iter().map(|mark| mark.test.as_deref()).collect();
    assert_eq!(tests, [Some("zero"), Some("one"), Some("two"), Some("three"), None, None]);
    let row = |id: &str, last: &str| format!("{HEAD}\n|---|---|---|---|\n| {id} | it | ends | {last} |\n");
    let is = |id: &str, last: &str| made(&row(id, "`old`"), &marks) == row(id, last);
    assert!(is("K1", "`one`, `three`, `two`, `zero`"), "{}", made(&row("K1", ""), &marks));
    assert!(is("K2, K3", "`one`, `three`, `two`"), "{}", made(&row("K2, K3", ""), &marks));
    assert!(is("K3", "`old`"), "what no test names stays as it is written");
    let many = BTreeMap::from([("K1", BTreeSet::from(["a", "b", "c", "d", "e"]))]);
    assert_eq!(cell(&["K1"], &many).unwrap(), "`a`, `b`, `c` and 2 more");
}
