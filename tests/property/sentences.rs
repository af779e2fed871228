//! Every sentence that a group can show, beside the state that makes it true. States are drawn at random; each sentence of one must be
//! a row of the table whose condition holds in it, and each row must have been reached.
//!
//! The conditions are read off what was drawn and ask nothing of the domain: what judges and what shows must not be wrong together.

mod members;
mod views;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

/// The row that a text is a sentence of and whose condition `is_so`; or what is wrong with the text.
fn find<C>(
    rows: &[(&'static str, C)],
    text: &str,
    is_so: impl Fn(&C, &[&str]) -> bool,
) -> Result<&'static str, String> {
    let mut fitting = rows.iter().filter_map(|(row, condition)| Some((*row, condition, parts(row, text)?))).peekable();
    if fitting.peek().is_none() {
        return Err(format!("no row has {text:?}"));
    }
    let found = fitting.find(|(_, condition, said)| is_so(condition, said));
    found.map(|(row, ..)| row).ok_or_else(|| format!("{text:?} is not so"))
}

/// What was read: the rows that were reached, for each sentence that is wrong the first state that shows it, and the sentences of the
/// code that no state has shown.
struct Read {
    reached: BTreeSet<&'static str>,
    wrong: BTreeMap<String, String>,
    unsaid: Vec<String>,
}

impl Read {
    /// Nothing yet of the sentences in these files.
    fn of(sources: &[&str]) -> Self {
        let unsaid = sources.iter().flat_map(|source| sentences(source)).collect();
        Self { reached: BTreeSet::new(), wrong: BTreeMap::new(), unsaid }
    }

    /// A text was shown, with sentences of the code in it.
    fn saw(&mut self, text: &str) {
        self.unsaid.retain(|part| !text.contains(part));
    }

    fn note(&mut self, text: &str, found: Result<&'static str, String>, state: impl Fn() -> String) {
        self.saw(text);
        match found {
            Ok(row) => drop(self.reached.insert(row)),
            Err(why) => drop(self.wrong.entry(why).or_insert_with(state)),
        }
    }

    /// Fails if a sentence was wrong, or a row or a sentence of the code was reached by none of the states.
    fn ends<C>(self, none: &str, rows: &[(&'static str, C)]) {
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong.iter().take(20).collect::<Vec<_>>());
        let missing: Vec<_> = rows.iter().map(|(row, _)| *row).filter(|row| !self.reached.contains(row)).collect();
        assert!(missing.is_empty(), "{none} shows these: {missing:#?}");
        assert!(self.unsaid.is_empty(), "{none} shows these sentences of the code: {:#?}", self.unsaid);
    }
}

/// Words from which on a text is a sentence.
const WORDS_MIN: usize = 4;

/// The texts of a file that are sentences: of each the longest part without a placeholder.
fn sentences(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let (mut found, mut text) = (Vec::new(), None::<String>);
    let code = code.join("\n");
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, &mut text) {
            ('"', None) => text = Some(String::new()),
            ('"', Some(_)) => found.extend(text.take()),
            ('\\', Some(text)) => match chars.next() {
                Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                Some(escaped) => text.push(escaped),
                None => {}
            },
            (c, Some(text)) => text.push(c),
            (_, None) => {}
        }
    }
    let longest = |text: String| {
        let parts = text.split(['{', '}']).step_by(2).map(str::to_owned);
        parts.max_by_key(String::len).unwrap_or_default()
    };
    found.into_iter().map(longest).filter(|part| part.split_whitespace().count() >= WORDS_MIN).collect()
}

/// What stands in the places of `…`, if the text is this sentence.
fn parts<'a>(sentence: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut fixed = sentence.split('…');
    let mut rest = text.strip_prefix(fixed.next()?)?;
    let mut parts = Vec::new();
    let mut fixed = fixed.peekable();
    while let Some(next) = fixed.next() {
        let at = match fixed.peek() {
            None => rest.strip_suffix(next)?.len(),
            Some(_) => rest.find(next)?,
        };
        let (part, after) = rest.split_at(at);
        parts.push(part);
        rest = after.strip_prefix(next)?;
    }
    rest.is_empty().then_some(parts)
}
