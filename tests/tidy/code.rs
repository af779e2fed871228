//! Rules about Rust source.

use std::collections::{BTreeMap, BTreeSet};

use crate::none;
use crate::source::{File, file, files, module_of, rust};

/// A file fits in one sitting.
const FILE_LINES_MAX: usize = 500;

/// An actor only carries messages.
const ACTOR_LINES_MAX: usize = 200;

/// A function fits on one screen.
const FUNCTION_LINES_MAX: usize = 70;

/// Fields of one struct. A struct with more is several things in one; give each thing its own fields.
const FIELDS_MAX: usize = 12;

/// Structs of data that may have more: each is a list of facts about one thing, written or read as it is.
const LISTS_OF_FACTS: [&str; 9] =
    ["Notice", "Order", "Policy", "Record", "RepoSpec", "RunnerSpec", "Status", "Summary", "Workload"];

/// What a decision may not reach: clocks, sockets, files, the environment, and orders that differ from run to run.
const IMPURE: [&str; 8] =
    ["Instant", "SystemTime", "HashMap", "HashSet", "std::env", "std::fs", "std::net", "std::thread"];

fn ours() -> Vec<File> {
    let mut files = rust(&["src", "tests"]);
    files.extend(rust(&["benches"]));
    files
}

/// Lines of production code that contain `word` as a word, as "path:line: text".
fn places(file: &File, code: &str, word: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let stands_alone = |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            !line[..at].chars().next_back().is_some_and(is_word)
                && (!word.ends_with(is_word) || !line[at + word.len()..].chars().next().is_some_and(is_word))
        })
    };
    let lines = code.lines().enumerate().filter(|(_, line)| stands_alone(line));
    lines.map(|(at, line)| format!("{}:{}: {}", file.path, at + 1, line.trim())).collect()
}

#[test]
fn a_file_fits_in_one_sitting() {
    let long = ours().into_iter().map(|file| (file.text.lines().count(), file.path));
    let long: Vec<_> = long.filter(|(lines, _)| *lines > FILE_LINES_MAX).collect();
    none(
        &format!("more than {FILE_LINES_MAX} lines"),
        &long.iter().map(|(lines, path)| format!("{path}: {lines}")).collect::<Vec<_>>(),
    );
}

/// What an actor decides is in its machine; what is left are messages in and effects out.
#[test]
fn an_actor_is_thin() {
    let long = rust(&["src/actors"]).into_iter().map(|file| (file.text.lines().count(), file.path));
    let long = long.filter(|(lines, _)| *lines > ACTOR_LINES_MAX);
    none(
        &format!("more than {ACTOR_LINES_MAX} lines: move what is decided into the machine"),
        &long.map(|(lines, path)| format!("{path}: {lines}")).collect::<Vec<_>>(),
    );
}

#[test]
fn a_function_fits_on_one_screen() {
    let mut long = Vec::new();
    for file in ours() {
        for function in file.functions().iter().filter(|function| function.lines > FUNCTION_LINES_MAX) {
            long.push(format!("{}:{}: {} has {}", file.path, function.line, function.name, function.lines));
        }
    }
    none(&format!("more than {FUNCTION_LINES_MAX} lines"), &long);
}

#[test]
fn a_decision_reaches_nothing_outside() {
    let mut found = Vec::new();
    for file in rust(&["src/domain"]) {
        let code = file.production();
        found.extend(IMPURE.iter().flat_map(|word| places(&file, &code, word)));
    }
    none("domain and ports know no clock, no socket, no environment and no unordered map", &found);
}

/// The goal: a new event or phase stops the build at every decision about it. So no `_` arm in a machine's `step` or `tick`,
/// nor in any function of its module that is handed an event.
#[test]
fn a_machine_names_every_event() {
    let sources = rust(&["src/domain"]);
    let homes: Vec<String> = sources
        .iter()
        .filter(|file| file.production().contains("Machine for "))
        .map(|file| file.path.trim_end_matches("/mod.rs").trim_end_matches(".rs").to_owned())
        .collect();
    assert!(homes.len() >= 4, "found only these machines: {homes:?}");
    let mut found = Vec::new();
    for file in sources.iter().filter(|file| homes.iter().any(|home| file.path.starts_with(home.as_str()))) {
        for function in file.functions() {
            let decides = ["step", "tick"].contains(&function.name.as_str()) || function.signature.contains("Event");
            let wild = |line: &&str| line.trim_start().starts_with("_ =>") || line.trim_start().starts_with("_ if ");
            if decides && function.body.lines().any(|line| wild(&line)) {
                found.push(format!("{}:{}: {}", file.path, function.line, function.name));
            }
        }
    }
    none("a machine's step has an arm for anything", &found);
}

#[test]
fn nothing_is_left_undone() {
    // In two halves, so that this file does not find itself.
    let words = [("todo", "!("), ("unimplemented", "!("), ("dbg", "!("), ("FIX", "ME"), ("XX", "X")];
    let mut found = Vec::new();
    for file in ours() {
        for (first, second) in words {
            let lines = file.text.lines().enumerate().filter(|(_, line)| line.contains(&format!("{first}{second}")));
            found.extend(lines.map(|(at, line)| format!("{}:{}: {}", file.path, at + 1, line.trim())));
        }
    }
    none("unfinished", &found);
}

#[test]
fn what_decides_or_adapts_is_made_of_rooms() {
    let mut large = BTreeMap::new();
    for file in rust(&["src/domain", "src/adapters", "src/apiserver"]) {
        let structs = file.structs().into_iter().filter(|found| found.fields > FIELDS_MAX);
        large.extend(structs.map(|found| (found.name, format!("{}:{}: {}", file.path, found.line, found.fields))));
    }
    let needless = LISTS_OF_FACTS.into_iter().filter(|name| large.remove(*name).is_none());
    let needless: Vec<String> = needless.map(str::to_owned).collect();
    none(&format!("more than {FIELDS_MAX} fields"), &large.into_values().collect::<Vec<_>>());
    none("a list of facts that is short enough for the rule", &needless);
}

/// Of a rollout, in the order of its life. `advance` conducts them.
const STAGES: [&str; 9] =
    ["observe", "barrier", "between", "vote", "group_timeout", "execute", "progress", "owed", "close"];

#[test]
fn no_stage_of_a_rollout_calls_another() {
    let stages = STAGES.map(|stage| file(&format!("src/domain/purge/rollouts/rollout/{stage}.rs")));
    let homes: BTreeMap<String, &str> =
        stages.iter().flat_map(|file| file.functions().into_iter().map(|of| (of.name, file.path.as_str()))).collect();
    let mut found = Vec::new();
    for file in &stages {
        for function in file.functions() {
            let calls = function.body.split("self.").skip(1).filter_map(|rest| rest.split_once('('));
            let elsewhere = calls.filter(|(name, _)| homes.get(*name).is_some_and(|home| *home != file.path));
            found.extend(elsewhere.map(|(name, _)| format!("{}:{}: calls {name}", file.path, function.line)));
        }
    }
    none("a stage calls another, which is for the conductor to do", &found);
}

#[test]
fn production_code_never_unwraps() {
    let mut found = Vec::new();
    for file in rust(&["src"]) {
        let code = file.production();
        for word in [".unwrap()", ".expect(", ".unwrap_err()", ".expect_err("] {
            let lines = code.lines().enumerate().filter(|(_, line)| line.contains(word));
            found.extend(lines.map(|(at, line)| format!("{}:{}: {}", file.path, at + 1, line.trim())));
        }
    }
    none("unwrap and expect are for tests", &found);
}

/// A level alone is about targets that begin with `allclear`, and by itself a line's target is the path of its module.
#[test]
fn a_log_line_of_another_crate_names_its_target() {
    let mut found = Vec::new();
    for file in rust(&["src/apiserver", "src/domain", "src/forge"]) {
        let code = file.production();
        let is_unnamed = |line: &str| line.contains("tracing::") && line.contains("!(") && !line.contains("target: ");
        let lines = code.lines().enumerate().filter(|(_, line)| is_unnamed(line));
        found.extend(lines.map(|(at, line)| format!("{}:{}: {}", file.path, at + 1, line.trim())));
    }
    none("a log line that no level switches on", &found);
}

#[test]
fn a_module_says_what_it_is_for() {
    let silent = ours().into_iter().filter(|file| !file.text.starts_with("//!"));
    // A file of tests that belongs to the module above it is explained there.
    let silent = silent.filter(|file| !file.path.ends_with("/tests.rs") && !file.path.contains("/tests/"));
    none("a module begins with //!", &silent.map(|file| file.path).collect::<Vec<_>>());
}

/// A file of tests that no `mod` names is never compiled, and passes for ever.
#[test]
fn no_file_is_forgotten() {
    let sources = ours();
    let mut named = BTreeSet::new();
    for file in &sources {
        let (folder, name) = file.path.rsplit_once('/').unwrap();
        let is_root = ["main.rs", "lib.rs", "mod.rs"].contains(&name);
        let own = if is_root { folder.to_owned() } else { file.path.trim_end_matches(".rs").to_owned() };
        for module in file.text.lines().map(str::trim).filter_map(module_of) {
            named.extend([format!("{own}/{module}.rs"), format!("{own}/{module}/mod.rs")]);
        }
    }
    // What a manifest names, or cargo finds by itself: src/main.rs, src/domain/lib.rs, benches/decode.rs, tests/model/main.rs.
    let is_found = |path: &str| {
        let ours = !path.starts_with("src/") && path.matches('/').count() == 1;
        ours || path.ends_with("/main.rs") || path.ends_with("/lib.rs")
    };
    let forgotten = sources.into_iter().map(|file| file.path).filter(|path| !is_found(path) && !named.contains(path));
    none("no mod names this file, so it is not compiled", &forgotten.collect::<Vec<_>>());
}

/// A file is where its `mod` says. What two tiers of tests share is the crate in `tests/support`.
#[test]
fn no_file_is_mounted_from_elsewhere() {
    let mut found = Vec::new();
    for file in ours() {
        let code = file.code();
        let lines = code.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("#[path"));
        found.extend(lines.map(|(at, _)| format!("{}:{}", file.path, at + 1)));
    }
    none("a path to a module's file", &found);
}

#[test]
fn an_ignored_test_says_why() {
    let mut found = Vec::new();
    for file in ours() {
        let lines = file.code().lines().enumerate().map(|(at, line)| (at, line.to_owned())).collect::<Vec<_>>();
        found.extend(
            lines
                .iter()
                .filter(|(_, line)| line.trim() == "#[ignore]")
                .map(|(at, _)| format!("{}:{}", file.path, at + 1)),
        );
    }
    none("#[ignore] without a reason", &found);
}

#[test]
fn no_path_of_one_machine_is_in_the_repository() {
    let roots = [("/wo", "rk/"), ("/ro", "ot/"), ("/ho", "me/")].map(|(first, second)| format!("{first}{second}"));
    let mut found = Vec::new();
    for file in files("").iter().filter(|file| !file.path.ends_with(".lock")) {
        for (at, line) in file.text.lines().enumerate() {
            // A path begins after a blank, a quote or a bracket; in the middle of a URL it is none.
            let begins = |path: &String| {
                line.match_indices(path.as_str()).any(|(at, _)| {
                    !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "._-}:/".contains(c))
                })
            };
            if roots.iter().any(begins) {
                found.push(format!("{}:{}: {}", file.path, at + 1, line.trim()));
            }
        }
    }
    none("a path of one machine", &found);
}
