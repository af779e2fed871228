//! The demo as a person sees it: in a terminal, which `script` of util-linux plays, and through a pipe.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::process::{PATIENCE, Process, comes_true, program};

/// Runs a shell's command to its end, at most two minutes.
fn run(command: &[&str], colours: bool) -> Output {
    let mut shell = Command::new("timeout");
    shell.arg("--kill-after=5").arg("120").args(command).env_remove("NO_COLOR").env("TERM", "xterm");
    if !colours {
        shell.env("NO_COLOR", "1");
    }
    shell.output().expect("timeout of coreutils, and script of util-linux, are installed")
}

/// The same in a terminal of this size; every byte that the terminal gets.
fn in_terminal((columns, rows): (u16, u16), arguments: &str, colours: bool) -> (bool, String) {
    let inside = format!("stty cols {columns} rows {rows}; exec '{}' demo {arguments}", program());
    let output = run(&["script", "--quiet", "--return", "--command", &inside, "/dev/null"], colours);
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a terminal of this width shows in the end, with all that has scrolled away: it knows the sequences that the demo uses, and
/// fails at others.
fn shown(bytes: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<Vec<char>> = vec![Vec::new()];
    let (mut row, mut column) = (0, 0);
    let mut letters = bytes.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' => column = 0,
            '\n' => row += 1,
            '\u{1b}' => {
                assert_eq!(letters.next(), Some('['));
                let mut parameters = String::new();
                let end = letters.by_ref().find(|letter| {
                    parameters.push(*letter);
                    letter.is_ascii_alphabetic()
                });
                let number = || parameters.trim_end_matches('A').parse::<usize>().expect("a number of rows");
                match end {
                    Some('m') => {}
                    Some('A') => row = usize::checked_sub(row, number()).expect("it stays in its own lines"),
                    Some('J') => {
                        lines.truncate(row + 1);
                        lines[row].truncate(column);
                    }
                    unknown => panic!("the sequence {parameters:?} {unknown:?}"),
                }
            }
            letter => {
                if column == columns {
                    (row, column) = (row + 1, 0);
                }
                lines.resize(lines.len().max(row + 1), Vec::new());
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    lines.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned()).collect()
}

#[test]
fn in_a_wide_terminal_a_group_is_told_side_by_side() {
    // Low: what is redrawn has to give way, and comes back whole.
    let (well, bytes) = in_terminal((120, 14), "--clusters 3 --fast --chapter rollout", true);
    let lines = shown(&bytes, 120);
    let text = lines.join("\n");
    assert!(well && text.contains("as announced"), "{text}");
    assert!(bytes.matches("\u{1b}[J").count() > 5, "it is redrawn: {text}");
    assert!(bytes.contains("\u{1b}[32mrollout complete\u{1b}[0m"), "{bytes:?}");
    let heads: Vec<usize> =
        (0..lines.len()).filter(|at| lines[*at].starts_with("  eu-1") && lines[*at].ends_with(" ap-1")).collect();
    let [head] = heads[..] else { panic!("one picture is left, and no part of an older one: {text}") };
    let of = |name: &str| lines[head].find(name).unwrap_or_else(|| panic!("{name} has a column: {text}"));
    let columns = [of("eu-1"), of("us-1"), of("ap-1")];
    for event in ["s  deployment", "s  change seen", "s  rollout complete"] {
        for at in columns {
            let is_here = |line: &String| line.chars().skip(at).take(34).collect::<String>().contains(event);
            assert_eq!(lines[head..].iter().filter(|line| is_here(line)).count(), 1, "{event} at {at}: {text}");
        }
    }
    assert_eq!(text.matches("s  invalidation done").count(), 1, "{text}");
    assert!(text.contains("webhook\n    POST /purged with site=www.example.com, answered 204"), "{text}");

    let (well, bytes) = in_terminal((120, 40), "--clusters 2 --fast --chapter rollout", false);
    assert!(well && bytes.contains("\u{1b}[J") && !bytes.contains("\u{1b}[32m"), "{bytes}");
}

#[test]
fn in_a_narrow_terminal_and_through_a_pipe_a_group_is_told_in_lines() {
    let (well, narrow) = in_terminal((99, 40), "--clusters 2 --fast --chapter rollout", false);
    let output = run(&[&program(), "demo", "--clusters", "2", "--fast", "--chapter", "rollout"], true);
    let piped = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(well && output.status.success(), "{narrow}\n{piped}");
    for told in [narrow, piped] {
        assert!(!told.contains('\u{1b}') && told.contains(" s  eu-1  rollout complete     all 3 pods"), "{told}");
    }
}

#[test]
fn an_edge_that_keeps_yesterday_is_found_purged_once_more_and_known_to_be_fresh() {
    let output = run(&[&program(), "demo", "--fast", "edge"], false);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let told = |what: &str| text.matches(what).count();
    assert_eq!((told("s  purged once more"), told("s  edge fresh"), told("  as announced")), (1, 2, 2), "{text}");
    assert!(text.contains("what it has shown so far is old"), "{text}");
}

#[test]
fn one_chapter_keeps_its_number_and_begins_where_the_story_has_come_to() {
    for (arguments, numbers) in [
        (&["--chapter", "back"][..], &["2", "3"][..]),
        (&["--chapter", "killed"], &["5"]),
        (&["repo", "--chapter", "broken"], &["5"]),
        (&["pipeline", "--chapter", "taken-back"], &["4"]),
    ] {
        let files = tempfile::tempdir().expect("a directory");
        let at = format!("TMPDIR={}", files.path().display());
        let output = run(&[&["env", at.as_str(), program().as_str(), "demo", "--fast"], arguments].concat(), false);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let is_title = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit());
        let told: Vec<&str> = text.lines().filter(is_title).filter_map(|line| line.split('.').next()).collect();
        assert_eq!(told, numbers, "{text}");
        assert_eq!(text.matches("  as announced").count(), numbers.len(), "{text}");
        assert_eq!(
            std::fs::read_dir(files.path()).expect("it is there").count(),
            0,
            "{arguments:?} leaves a file behind"
        );
    }
}

/// The files in a directory, and in those in it. What goes meanwhile does not count.
fn held(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { held(&path) } else { vec![path] }).collect()
}

/// Whether it is what git keeps of a commit: `objects/0a/1b2c…`.
fn is_object(path: &Path) -> bool {
    path.parent().and_then(Path::parent).is_some_and(|parent| parent.ends_with("objects"))
}

#[tokio::test]
async fn ctrl_c_in_the_middle_leaves_no_file_behind() {
    let is_kubeconfig = |path: &Path| path.ends_with("kubeconfig");
    // So many that the story itself has begun: more than what it begins with.
    for (story, count, counts) in [
        (&["--clusters", "2"][..], 2, &is_kubeconfig as &dyn Fn(&Path) -> bool),
        (&["repo"], 6, &is_object),
        (&["pipeline"], 5, &is_object),
    ] {
        let files = tempfile::tempdir().expect("a directory");
        let environment =
            [("TMPDIR", files.path().display().to_string()), ("PATH", std::env::var("PATH").unwrap_or_default())];
        let environment = environment.map(|(name, value)| (name.to_owned(), value));
        let mut demo = Process::start(&[&["demo", "--fast"], story].concat(), environment);
        let has_begun = async || held(files.path()).iter().filter(|path| counts(path)).count() >= count;
        assert!(comes_true(has_begun).await, "{story:?}: {}", demo.tail());
        demo.signal("INT");
        let status = demo.ended(PATIENCE).await.expect("it ends by itself");
        let left = std::fs::read_dir(files.path()).expect("it is there").count();
        assert_eq!((status.code(), left), (Some(1), 0), "{story:?}: {}", demo.tail());
        assert!(demo.said("error: the demo could not be run: Ctrl-C ended it"), "{}", demo.tail());
    }
}
