//! Rules that bind README and docs/ to the code: each metric, notice, cause and fault has its place there, what they quote is
//! said by the program, and every command line in them is one that it takes. (The tables of the configuration are held to the code beside
//! the code that makes them.)

use std::collections::BTreeSet;

use allclear::adapters::redis::RIGHTS;
use allclear::cli::Cli;
use clap::Parser;
use clap::error::ErrorKind;
use kernel::refusal::Cause;
use notices::notice::Kind;
use purge::agreement::roster::Reason;

use crate::none;
use crate::source::{File, file, files, rust};

/// What people read to use it: README, docs/, and documents of the manifests.
fn pages() -> Vec<File> {
    let is_page = |path: &str| {
        ["README.md", "ARCHITECTURE.md"].contains(&path)
            || ((path.starts_with("docs/") || path.starts_with("deploy/")) && path.ends_with(".md"))
    };
    files("").into_iter().filter(|file| is_page(&file.path)).collect()
}

/// README says it to people with five minutes; a longer one is not read.
#[test]
fn readme_is_short() {
    let lines = file("README.md").text.lines().count();
    assert!(lines <= 150, "README has {lines} lines, 150 at most");
}

/// What a newcomer reads in ten minutes; what only some need is in docs/internals.
#[test]
fn architecture_is_short() {
    let bytes = file("ARCHITECTURE.md").text.len();
    assert!(bytes <= 25_600, "ARCHITECTURE.md has {bytes} bytes, 25,600 at most: the rest belongs into docs/internals");
}

#[test]
fn every_page_of_internals_is_in_their_index() {
    let index = file("docs/internals/README.md").text;
    let pages = files("docs/internals").into_iter();
    let pages = pages.filter_map(|file| file.path.strip_prefix("docs/internals/").map(str::to_owned));
    let missing: Vec<String> =
        pages.filter(|path| path != "README.md" && !index.contains(&format!("]({path})"))).collect();
    none("docs/internals/README.md does not link to a page", &missing);
}

#[test]
fn every_page_is_in_the_index() {
    let index = file("docs/README.md").text;
    let pages = files("docs").into_iter().filter_map(|file| file.path.strip_prefix("docs/").map(str::to_owned));
    let missing: Vec<String> = pages.filter(|path| path != "README.md" && path.ends_with(".md")).collect();
    // A folder of pages has one that leads to the others.
    let missing = missing.into_iter().filter(|path| !path.contains('/') && !index.contains(&format!("]({path})")));
    none("docs/README.md does not link to a page", &missing.collect::<Vec<_>>());
}

/// For those who subscribe a hook, or write an alert.
#[test]
fn the_page_of_notices_has_every_event_in_the_order_of_a_rollouts_life() {
    let page = file("docs/notices.md").text;
    let (_, table) = page.split_once("| event | Event on the workload | when |\n|---|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let told: Vec<String> = rows.map(|row| row.split('|').take(3).collect::<Vec<_>>().join("|")).collect();
    let warning = |kind: Kind| if kind.is_warning() { " (Warning)" } else { "" };
    let expected = Kind::ALL.map(|kind| format!("| `{}` | {}{} ", kind.name(), kind.reason(), warning(kind)));
    assert_eq!(told, expected);
}

#[test]
fn an_alert_that_is_advised_is_on_an_event() {
    let mut unknown = Vec::new();
    let mut found = 0;
    for page in pages().into_iter().chain([file("deploy/monitoring/rules.yaml")]) {
        for rest in page.text.split("allclear_notices_total{kind=~\"").skip(1) {
            let (kinds, _) = rest.split_once('"').unwrap();
            let kinds: Vec<&str> = kinds.split('|').collect();
            found += kinds.len();
            unknown.extend(kinds.into_iter().filter(|kind| Kind::named(kind).is_none()).map(str::to_owned));
        }
    }
    assert!(found >= 6, "an alert is on events");
    none("an alert on what is no event", &unknown);
}

#[test]
fn the_page_of_errors_has_what_only_a_person_can_end() {
    let page = file("docs/errors.md").text;
    let rows = Cause::ALL.map(|cause| format!("| `{}` | {} | {} |\n", cause.name(), cause.remedy(), cause.cost()));
    let missing: Vec<String> = rows.into_iter().filter(|row| !page.contains(row)).collect();
    none("docs/errors.md lacks a row", &missing);
}

#[test]
fn the_page_of_groups_has_every_reason_that_holds_one_up() {
    let page = file("docs/groups.md").text;
    let missing = Reason::ALL.map(Reason::name).into_iter().filter(|name| !page.contains(&format!("| `{name}` |")));
    none("docs/groups.md lacks a reason", &missing.map(str::to_owned).collect::<Vec<_>>());
}

#[test]
fn the_page_of_security_has_the_rights_that_a_redis_must_give() {
    let page = file("docs/security.md").text;
    let rule = format!("ACL SETUSER allclear on >password {RIGHTS}\n");
    assert!(page.contains(&rule), "docs/security.md must say: {rule}");
}

/// The rows of a table of faults: `K1–K14` or `R2, R3`, as they are written.
fn faults(text: &str) -> BTreeSet<String> {
    let first = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let ids = first.flat_map(|cell| cell.split(", ")).filter(|id| {
        let digits = id.trim_start_matches(|c: char| c.is_ascii_uppercase());
        digits.len() + 1 == id.len() && digits.starts_with(|c: char| c.is_ascii_digit())
    });
    ids.map(|id| id.split('–').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn the_page_of_failures_has_every_fault_of_the_table() {
    let (known, told) = (faults(&file("docs/internals/faults.md").text), faults(&file("docs/failures.md").text));
    assert!(known.len() > 60, "{known:?}");
    assert_eq!(told.symmetric_difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// Source with its string literals as they are said: an escaped line break and the blanks after it are none.
fn said() -> String {
    let mut text = String::new();
    for source in rust(&["src"]) {
        let mut lines = source.text.lines();
        while let Some(line) = lines.next() {
            text.push_str(line.strip_suffix('\\').unwrap_or(line));
            if line.ends_with('\\') {
                text.push_str(lines.clone().next().map_or("", str::trim_start));
                lines.next();
            }
            text.push('\n');
        }
    }
    text.replace("\\\"", "\"")
}

#[test]
fn what_the_page_of_errors_quotes_is_said_by_the_program() {
    let (page, said) = (file("docs/errors.md").text, said());
    let mut wrong = Vec::new();
    let mut found = 0;
    for (at, line) in page.lines().enumerate() {
        let Some((quoted, _)) = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |")) else { continue };
        found += 1;
        let parts = quoted.split('…').map(str::trim).filter(|part| part.len() > 1);
        wrong.extend(
            parts.filter(|part| !said.contains(*part)).map(|part| format!("docs/errors.md:{}: {part}", at + 1)),
        );
    }
    assert!(found > 100, "{found} quotations");
    none("a quotation that no source says", &wrong);
}

/// `Refused::new("is not a key", …)`: what is always said in the same words.
#[test]
fn the_page_of_errors_has_every_refusal_of_the_configuration() {
    let page = file("docs/errors.md").text;
    let mut missing = Vec::new();
    for source in files("src/config").into_iter().filter(|source| !source.path.contains("tests")) {
        let text = source.text.split("#[cfg(test)]").next().unwrap_or_default();
        for rest in text.split("Refused::new(").skip(1) {
            let Some((words, _)) = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"')) else {
                continue;
            };
            if !page.contains(words) {
                missing.push(format!("{}: {words}", source.path));
            }
        }
    }
    none("docs/errors.md lacks a refusal", &missing);
}

/// What an object says, and no command.
const SAID: &str = "has not judged it yet";

/// A command line of allclear in a page.
struct Typed {
    line: usize,
    /// What follows `allclear`.
    words: String,
    /// In running text, where a command may be named without what it is for: `allclear ledger adopt`.
    is_named: bool,
}

/// Those of a page: in blocks for a shell, and in running text.
fn commands(page: &File) -> Vec<Typed> {
    let mut found = Vec::new();
    let mut block: Option<bool> = None;
    for (at, line) in page.text.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(language) = trimmed.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(["console", "sh", "shell"].contains(&language)) };
            continue;
        }
        let commands: Vec<&str> = match block {
            Some(false) => continue,
            Some(true) => vec![trimmed.strip_prefix("$ ").unwrap_or(trimmed)],
            None => line.split('`').skip(1).step_by(2).collect(),
        };
        let ours = ["allclear ", "target/release/allclear ", "cargo run --release -- "];
        for command in commands {
            let command = command.split(" #").next().unwrap_or_default();
            let inside = command.split_once(" -- allclear ").map(|(_, rest)| rest);
            let rest = inside.or_else(|| ours.iter().find_map(|name| command.strip_prefix(name)));
            let typed = |rest: &str| Typed { line: at + 1, words: rest.to_owned(), is_named: block.is_none() };
            found.extend(rest.filter(|rest| *rest != SAID).map(typed));
        }
    }
    found
}

/// What a person may mean by a line of a table: `[-n NS]` in any case, and each of `poke\|suspend NAME \| --all`. What a shell does
/// with the answer is not ours.
fn meant(command: &str) -> Vec<String> {
    // A bar in a table is escaped, whatever it means.
    let ends = [" | ", " \\| kubectl ", " && ", " > ", " &"].into_iter().filter_map(|end| command.find(end)).min();
    let command = command[..ends.unwrap_or(command.len())].replace(['[', ']'], "");
    let command = command.replace(" \\| ", "|").replace("\\|", "|");
    // Of a text in quotes, one word is enough.
    let mut is_quoted = true;
    let parts = command.split(['"', '\'']).map(|part| {
        is_quoted = !is_quoted;
        if is_quoted { part.replace(' ', "-") } else { part.to_owned() }
    });
    let mut lines = vec![String::new()];
    for word in parts.collect::<String>().split_whitespace() {
        let choices: Vec<&str> = word.split('|').collect();
        lines = lines
            .iter()
            .flat_map(|line| choices.iter().map(move |choice| format!("{line} {}", real(choice))))
            .collect();
    }
    lines
}

/// A value for what stands for one.
fn real(word: &str) -> &str {
    match word {
        "URL" => "http://localhost:8081",
        "SHELL" => "bash",
        "NUMBER" => "3",
        "DURATION" => "5m",
        word => word,
    }
}

#[test]
fn every_command_line_in_the_documents_is_one_that_the_program_takes() {
    let mut wrong = Vec::new();
    let mut found = 0;
    for page in pages() {
        for Typed { line, words, is_named } in commands(&page) {
            for command in meant(&words) {
                found += 1;
                let words = std::iter::once("allclear").chain(command.split_whitespace());
                let Err(error) = Cli::try_parse_from(words) else { continue };
                let is_good = match error.kind() {
                    ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
                    ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                        is_named
                    }
                    _ => false,
                };
                if !is_good {
                    let why = error.to_string().lines().next().unwrap_or_default().to_owned();
                    wrong.push(format!("{}:{line}: allclear{command}: {why}", page.path));
                }
            }
        }
    }
    assert!(found > 60, "{found} commands");
    none("a command that allclear does not take", &wrong);
}

#[test]
fn commands_are_found_wherever_they_stand() {
    let text = "Do `allclear status -w`, not `other`.\n```sh\nallclear run --dry-run # why\nallclear status | head -1\n```\n```text\nallclear no\n```\n\
                | `allclear pipeline poke\\|suspend NS/NAME \\| --all` |\n";
    let page = File { path: "a.md".to_owned(), text: text.to_owned() };
    let found: Vec<String> = commands(&page).iter().flat_map(|typed| meant(&typed.words)).collect();
    assert_eq!(
        found,
        [
            " status -w",
            " run --dry-run",
            " status",
            " pipeline poke NS/NAME",
            " pipeline poke --all",
            " pipeline suspend NS/NAME",
            " pipeline suspend --all"
        ]
    );
}
