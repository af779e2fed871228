//! docs/reliability.md is what scripts/reliability.py makes of docs/internals/evidence.json, and each figure there can be repeated.
//! Whether a figure is stale is for `make reliability` to say: a commit must not fail because a run takes hours.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::none;
use crate::source::{file, files};

const SCRIPT: &str = "scripts/reliability.py";
const DATA: &str = "docs/internals/evidence.json";
const PAGE: &str = "docs/reliability.md";

fn evidence() -> serde_json::Value {
    serde_json::from_str(&file(DATA).text).expect("it is JSON")
}

fn script(top: &Path, arguments: &[&str]) -> Output {
    Command::new("python3").arg(top.join(SCRIPT)).args(arguments).output().expect("python3 is there")
}

#[test]
fn the_page_of_reliability_is_what_the_evidence_makes_it() {
    let checked = script(Path::new(env!("CARGO_MANIFEST_DIR")), &["--check"]);
    assert!(checked.status.success(), "{PAGE} is not what {DATA} makes it: run {SCRIPT} --page\n{checked:?}");
}

#[test]
fn each_figure_is_repeated_by_a_target_and_is_about_files_that_exist() {
    let (makefile, evidence) = (file("Makefile").text, evidence());
    let figures = evidence["figures"].as_array().unwrap();
    assert!(figures.len() >= 10, "{} figures", figures.len());
    let wrong = figures.iter().flat_map(|figure| {
        let run = figure["run"].as_str().unwrap();
        let target = run.strip_prefix("make ").and_then(|rest| rest.split(' ').next());
        let known = target.is_some_and(|target| makefile.contains(&format!("\n{target}:")));
        let missing = figure["about"].as_array().unwrap().iter().map(|path| path.as_str().unwrap());
        let missing = missing.filter(|path| !Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists());
        let missing = missing.map(|path| format!("{}: there is no {path}", figure["name"]));
        let unknown = (!known).then(|| format!("{}: no target of the Makefile: {run}", figure["name"]));
        missing.chain(unknown).collect::<Vec<_>>()
    });
    none(DATA, &wrong.collect::<Vec<_>>());
}

/// A search to a bound says something up to that bound.
#[test]
fn nothing_that_was_searched_is_called_proved() {
    let pages = files("docs").into_iter().filter(|file| file.path.ends_with(".md")).chain([file("README.md")]);
    let found = pages.flat_map(|page| {
        let is_word = |word: &str| ["proved", "proven"].contains(&word.to_lowercase().as_str());
        let words = |line: &str| line.split(|c: char| !c.is_alphanumeric()).any(is_word);
        let lines = page.text.lines().enumerate().filter(|(_, line)| words(line));
        lines.map(|(at, line)| format!("{}:{}: {line}", page.path, at + 1)).collect::<Vec<_>>()
    });
    none("say what was searched, tested or measured, and up to which bound", &found.collect::<Vec<_>>());
}

/// A tree with one figure: what `run` does, and how it is read.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(run: &str) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for folder in ["scripts", "docs/internals"] {
            fs::create_dir_all(tree.0.path().join(folder)).unwrap();
        }
        tree.write(SCRIPT, &file(SCRIPT).text);
        tree.write("part", "one");
        tree.write("other", "one");
        tree.ask(run);
        tree.git(&["init", "--quiet"]);
        tree.commit();
        tree
    }

    /// Writes the question, and keeps the answer there is.
    fn ask(&self, run: &str) {
        let last = if self.0.path().join(DATA).exists() { self.last() } else { serde_json::Value::Null };
        let figure = serde_json::json!({
            "name": "states", "what": "a search", "run": run, "at_most": 1, "about": ["part"],
            "reads": {"states": ["sum", r"(\d+) states"]}, "figure": "{states} states", "last": last,
        });
        self.write(DATA, &serde_json::json!({"figures": [figure], "untried": ["the world"]}).to_string());
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.0.path().join(path), text).unwrap();
    }

    fn git(&self, arguments: &[&str]) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
        let git = Command::new("git").current_dir(self.0.path()).args(who).args(arguments).output().unwrap();
        assert!(git.status.success(), "{git:?}");
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "A step"]);
    }

    fn last(&self) -> serde_json::Value {
        let text = fs::read_to_string(self.0.path().join(DATA)).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["figures"][0]["last"].clone()
    }

    /// Runs what fits; whether it went well, and the figure there is now.
    fn renew(&self) -> (bool, serde_json::Value) {
        let ran = script(self.0.path(), &[]);
        (ran.status.success(), self.last()["figure"].clone())
    }

    fn is_stale(&self) -> bool {
        let listed = String::from_utf8(script(self.0.path(), &["--list"]).stdout).unwrap();
        assert!(listed.contains("figures are about this tree"), "{listed}");
        listed.contains("states: stale")
    }
}

#[test]
fn a_figure_is_stale_when_its_part_or_its_command_is_another_one() {
    let tree = Tree::new("echo 1200 states; echo 34 states");
    assert!(tree.is_stale(), "it was never run");
    assert_eq!(tree.renew(), (true, "1,234 states".into()));
    assert!(!tree.is_stale());
    let page = fs::read_to_string(tree.0.path().join(PAGE)).unwrap();
    assert!(page.contains("| 1,234 states | `") && page.contains("- the world\n"), "{page}");
    tree.write("other", "two");
    tree.commit();
    assert!(!tree.is_stale(), "another part has changed");
    tree.write("part", "two");
    assert!(tree.is_stale(), "changed, in no commit yet");
    tree.commit();
    assert!(tree.is_stale(), "changed");
    tree.write("part", "one");
    assert!(!tree.is_stale(), "it is as it was");
    tree.ask("echo 5 states");
    assert!(tree.is_stale(), "the command is another one");
}

#[test]
fn a_run_that_does_not_answer_leaves_the_figure_of_before() {
    let tree = Tree::new("echo 7 states");
    assert_eq!(tree.renew(), (true, "7 states".into()));
    for silent in ["echo 8 states; exit 1", "echo nothing", "echo 8 states; echo two > part"] {
        tree.write("part", "one");
        tree.ask(silent);
        assert_eq!(tree.renew(), (false, "7 states".into()), "{silent}");
    }
    tree.write("part", "three");
    tree.ask("echo 8 states");
    assert_eq!(tree.renew(), (false, "7 states".into()), "what it is about is in no commit");
    tree.commit();
    assert_eq!(tree.renew(), (true, "8 states".into()));
}
