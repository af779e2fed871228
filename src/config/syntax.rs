//! What keeps a file from being TOML: one problem for each mistake, and which parts of the file can still be judged.
//!
//! The parser goes on after an error, and what it then finds may follow from the first: a header without its bracket puts its keys
//! into another section, and a file in another format has an error in each line. Not for what keys mean; that is `layers`.

use std::ops::Range;

use toml::de::{DeTable, Error};

/// Mistakes of one file that are reported: enough for a screen.
const MISTAKES_MAX: usize = 20;

const SYNTAX: &str = "see https://toml.io/en/v1.1.0 for the syntax";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// Where, in bytes.
    pub offset: usize,
    /// What is wrong. It quotes nothing of the file.
    pub message: String,
    /// What to do about it.
    pub fix: &'static str,
}

/// The mistakes of a file, and what follows from them.
#[derive(Debug, Default)]
pub(super) struct Broken {
    /// In the order of the file.
    pub mistakes: Vec<Mistake>,
    /// Where nothing can be said of keys and values.
    unjudged: Vec<Range<usize>>,
}

impl Broken {
    /// The reported part of the parser's errors.
    pub fn of(text: &str, errors: &[Error]) -> Self {
        let mut places: Vec<(usize, &Error)> =
            errors.iter().map(|error| (error.span().map_or(0, |span| span.start.min(text.len())), error)).collect();
        places.sort_by_key(|(offset, _)| *offset);
        if places.is_empty() {
            return Self::default();
        }
        if let Some(mistake) = another_format(text) {
            let all = 0..text.len().saturating_add(1);
            return Self { mistakes: vec![mistake], unjudged: std::iter::once(all).collect() };
        }
        let mut broken = Self::default();
        let mut told_to = 0;
        for (offset, error) in places {
            if (offset < told_to && told_to > 0) || broken.mistakes.len() == MISTAKES_MAX {
                continue;
            }
            let line = line_of(text, offset);
            let words = text.get(line.clone()).unwrap_or_default();
            told_to = line.end.saturating_add(1);
            broken.mistakes.push(mistake(offset, words, error.message()));
            if words.trim_start().starts_with('[') && !words.contains('=') {
                broken.unjudged.push(line.start..next_header(text, line.end));
            } else if DeTable::parse_recoverable(words).1.is_empty() && !is_twice(error) {
                // The line is good by itself: what it stands in is not closed, and nothing after it means what it seems to.
                broken.unjudged.push(line.start..text.len().saturating_add(1));
                break;
            } else {
                broken.unjudged.push(line);
            }
        }
        broken
    }

    /// Whether a key that begins here can be judged.
    pub fn judges(&self, offset: usize) -> bool {
        !self.unjudged.iter().any(|range| range.contains(&offset))
    }

    /// Whether all of a value can be.
    pub fn judges_all(&self, value: &Range<usize>) -> bool {
        !self.unjudged.iter().any(|range| range.start < value.end && value.start < range.end)
    }
}

fn is_twice(error: &Error) -> bool {
    error.message().contains("duplicate key")
}

fn mistake(offset: usize, line: &str, message: &str) -> Mistake {
    let told = |message: &str, fix| Mistake { offset, message: message.to_owned(), fix };
    if is_yaml(line) {
        let message = "is not valid TOML: a key is followed by an equals sign, not by a colon";
        return told(message, "write timeout = \"5m\" instead of timeout: 5m");
    }
    // The parser takes the first letter of a bare word for that of true or false.
    if message.contains("must be quoted") || message.contains("invalid boolean") {
        return told("is not valid TOML: a text has no quotes", "put it in quotes, as in timeout = \"5m\"");
    }
    let fix = match message {
        _ if message.contains("unclosed table") => "write the section's name between brackets, as in [rollout]",
        _ if message.contains("duplicate key") => "leave one of them out",
        _ if message.contains("between array elements") || message.contains("in array") => {
            "put a comma between two items of a list, and a bracket at its end"
        }
        _ => SYNTAX,
    };
    Mistake { offset, message: format!("is not valid TOML: {message}"), fix }
}

/// A file that is in another format as a whole, judged by its first line with content.
fn another_format(text: &str) -> Option<Mistake> {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        if words.is_empty() || words.starts_with('#') {
            offset += line.len();
            continue;
        }
        let offset = offset + line.len() - line.trim_start().len();
        let told = |format: &str| Mistake {
            offset,
            message: format!("is {format}, and must be TOML"),
            fix: "write [rollout] on a line of its own, and timeout = \"5m\" below it; `allclear config show` lists every key",
        };
        let is_list = words == "---" || words.starts_with("- ");
        return match words {
            _ if is_yaml(words) || is_list => Some(told("YAML")),
            _ if words.starts_with('{') => Some(told("JSON")),
            _ => None,
        };
    }
    None
}

/// `name: value`, as YAML has it.
fn is_yaml(line: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    line.trim().split_once(':').is_some_and(|(name, rest)| {
        !name.is_empty() && name.chars().all(is_name) && (rest.is_empty() || rest.starts_with([' ', '\t']))
    })
}

/// The line that an offset is in, without its end.
fn line_of(text: &str, offset: usize) -> Range<usize> {
    let before = text.as_bytes().get(..offset).unwrap_or_default();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let after = text.as_bytes().get(offset..).unwrap_or_default();
    start..after.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| offset + at)
}

/// Where the next line begins that is a header.
fn next_header(text: &str, from: usize) -> usize {
    let mut at = from;
    for line in text.get(from..).unwrap_or_default().split_inclusive('\n') {
        if at > from && line.trim_start().starts_with('[') {
            return at;
        }
        at += line.len();
    }
    text.len().saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::super::layers::{built_in, of_file};
    use super::super::problem::Findings;

    /// Each problem with its line and column.
    fn problems(text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        let known = built_in(&mut findings);
        of_file(text, std::path::Path::new("c"), &known, &mut findings);
        findings.problems.sort();
        findings.problems.iter().map(|problem| problem.to_string().replace("\n    fix", "; fix")).collect()
    }

    fn assert_one(text: &str, expected: &str) {
        let found = problems(text);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text}\n{found:?}");
    }

    #[test]
    fn one_mistake_is_told_once() {
        assert_one(
            "[rollout\ntimeout = \"5m\"\nsettle = \"1s\"\n[log]\nlevel = \"info\"\n",
            "c:1:9: is not valid TOML: unclosed",
        );
        assert_one("[roll out]\ntimeout = \"5m\"\n", "c:1:6: is not valid TOML");
        assert_one("[rollout]\ntimeout: 5m\n", "c:2:8: is not valid TOML: a key is followed by an equals sign");
        assert_one("[log]\nformat = text\n", "c:2:10: is not valid TOML: a text has no quotes; fix: put it in quotes");
        assert_one("[rollout]\ntimeout = 5m\n", "c:2:11: is not valid TOML: a text has no quotes");
        assert_one(
            "[purge]\npaths = [\"/a\"\ndebounce = \"1s\"\n[logg]\nx = 1\n",
            "c:3:1: is not valid TOML: missing comma",
        );
        assert_one("[redis]\nurl = \"redis://:x@cache\n[purge]\ndebounce = \"1s\"\n", "c:2:24: is not valid TOML");
        assert_one(
            "[log]\nlevel = \"info\"\n[log]\nformat = \"text\"\n",
            "c:3:2: is not valid TOML: duplicate key; fix: leave one",
        );
    }

    #[test]
    fn another_format_is_named_and_nothing_else() {
        assert_one("# ours\n\nrollout:\n  timeout: 5m\nlog:\n  level: debug\n", "c:3:1: is YAML, and must be TOML");
        assert_one("---\n- a\n", "c:1:1: is YAML");
        assert_one("apiVersion: v1\nkind: ConfigMap\ndata:\n  config.toml: |\n    [log]\n", "c:1:1: is YAML");
        assert_one("  {\"rollout\": {\"timeout\": \"5m\"}}\n", "c:1:3: is JSON, and must be TOML");
    }

    #[test]
    fn mistakes_that_do_not_follow_from_each_other_come_all_at_once() {
        let found = problems(
            "[log]\nlevel = debug\nformat = text\ncolour = 1\n[group\nname = \"a\"\n[purge]\ndebonce = \"1s\"\n",
        );
        let places: Vec<&str> = found.iter().map(|problem| &problem[..5]).collect();
        assert_eq!(places, ["c:2:9", "c:3:1", "c:4:1", "c:5:7", "c:8:1"], "{found:#?}");
        assert!(found[4].contains("purge.debonce: is not a key; fix: did you mean purge.debounce?"), "{found:#?}");
    }
}
