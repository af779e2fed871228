//! Texts that others chose, on their way to a person: what hides is shown, and what is long is cut.
//!
//! A tenant's annotation, a pod's message or an error of a server may hold a line break that forges a line of a log, an escape
//! sequence that moves a terminal's cursor, or a mark that turns the order of letters around
//! (<https://www.unicode.org/reports/tr36/>, "Bidirectional Text Spoofing"). Every way out uses this: the log, Events, webhooks'
//! sentences, the terminal, the page. On the way in nothing is changed: what is compared and kept is what was sent.
//!
//! A person can write `\u{202e}` in letters, too, so the visible form cannot be read back. Not for keeping secrets
//! ([`mask`](crate::mask)), nor for letters that look like others.

use std::borrow::Cow;
use std::error::Error;
use std::io;
use std::time::Duration;

use sha2::{Digest, Sha256};

/// Marks what was cut.
const ELLIPSIS: char = '…';

/// Whether a character does something to the text around it, or is invisible: controls, line and paragraph separators, marks
/// of direction, characters without a width. These are `Cc`, `Zl`, `Zp` and `Default_Ignorable_Code_Point` of
/// <https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt> (17.0), and interlinear marks.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// A text on one line, with everything hidden in a visible form: `\n`, `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, is_hidden, |hidden, out| out.extend(hidden.escape_default()))
}

/// The same for a text of ours that has lines: its line breaks stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_hidden(c) && c != '\n', |hidden, out| out.extend(hidden.escape_default()))
}

/// A JSON document of the same value, in which nothing is hidden from who reads it as it is: JSON asks for an escape of the
/// first 32 characters only (RFC 8259, section 7). Line breaks between its parts stay; the other blanks that may stand there (section
/// 2) become plain ones, as they can be in no string.
pub fn visible_json(document: &str) -> Cow<'_, str> {
    replaced(
        document,
        |c| is_hidden(c) && c != '\n',
        |hidden, out| {
            if matches!(hidden, '\r' | '\t') {
                return out.push(' ');
            }
            let mut units = [0; 2];
            for unit in hidden.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        },
    )
}

/// [`visible`], and at most so many bytes of it; `…` marks what was cut, and no visible form is cut in two.
pub fn clean(text: &str, bytes_max: usize) -> String {
    let mut out = String::new();
    // The last place at which the text may end with `…` after it.
    let mut end = 0;
    for character in text.chars() {
        if is_hidden(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
        if out.len() > bytes_max {
            out.truncate(end);
            if bytes_max >= ELLIPSIS.len_utf8() {
                out.push(ELLIPSIS);
            }
            return out;
        }
        if out.len() + ELLIPSIS.len_utf8() <= bytes_max {
            end = out.len();
        }
    }
    out
}

/// The beginning of a text, at most so many bytes of it, whole characters only; `…` marks what was cut.
pub fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    format!("{}{ELLIPSIS}", head(text, bytes_max.saturating_sub(ELLIPSIS.len_utf8())))
}

/// The beginning of a text, at most so many characters, and nothing that says so.
pub fn first(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// A reason with the beginning of its explanation, of so many characters.
pub fn explained(reason: &str, message: Option<&str>, chars_max: usize) -> String {
    let Some(message) = message.map(str::trim).filter(|message| !message.is_empty()) else { return reason.to_owned() };
    let begin = first(message, chars_max);
    let cut = if begin.len() < message.len() { "…" } else { "" };
    format!("{reason}: {begin}{cut}")
}

/// [`first`], with whole words only, unless its last word alone is a fifth of it.
pub fn phrase(text: &str, chars_max: usize) -> &str {
    let begin = first(text, chars_max);
    if begin.len() == text.len() || text.get(begin.len()..).is_some_and(|rest| rest.starts_with(char::is_whitespace)) {
        return begin;
    }
    let end = begin.rfind(char::is_whitespace).filter(|end| begin.len() - end <= begin.len() / 5);
    end.and_then(|end| begin.get(..end)).unwrap_or(begin)
}

/// [`clean`], which cuts no word in two, unless its last word alone is a fifth of it.
pub fn clean_words(text: &str, bytes_max: usize) -> String {
    let cut = clean(text, bytes_max);
    if visible(text).len() <= bytes_max {
        return cut;
    }
    let whole = cut.trim_end_matches(ELLIPSIS);
    let end = whole.rfind(' ').filter(|end| whole.len() - end <= whole.len() / 5);
    end.and_then(|end| whole.get(..end)).map_or_else(|| cut.clone(), |kept| format!("{kept}{ELLIPSIS}"))
}

/// [`visible`], and at most so many bytes of it, cut in its middle: what is said first is the cause, and last what to do.
pub fn clean_ends(text: &str, bytes_max: usize) -> String {
    let whole = visible(text);
    let Some(kept) = bytes_max.checked_sub(ELLIPSIS.len_utf8()).filter(|_| whole.len() > bytes_max) else {
        return whole.into_owned();
    };
    let begin = head(&whole, kept / 2);
    let end = (whole.len() - (kept - begin.len())..=whole.len()).find_map(|from| whole.get(from..)).unwrap_or_default();
    format!("{begin}{ELLIPSIS}{end}")
}

/// The beginning of a text, at most so many bytes, whole characters only, and nothing that says so.
pub fn head(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

fn replaced(text: &str, is_one: impl Fn(char) -> bool, with: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(&is_one) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_one(character) { with(character, &mut out) } else { out.push(character) }
    }
    Cow::Owned(out)
}

/// The first 64 bits of a text's SHA-256: the same in every release, so that it may be kept.
pub fn fingerprint(text: &str) -> u64 {
    Sha256::digest(text).iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// A duration the way people say it: `45s`, `4m 10s`, `2h 3m`.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => format!("{}ms", duration.as_millis()),
        (0, 0, s) => format!("{s}s"),
        (0, m, 0) => format!("{m}m"),
        (0, m, s) => format!("{m}m {s}s"),
        (h, 0, _) => format!("{h}h"),
        (h, m, _) => format!("{h}h {m}m"),
    }
}

/// Why a file cannot be read, the way people say it.
pub fn unread(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        other => other.to_string(),
    }
}

/// The error with the whole chain of its causes: the innermost ("connection refused") is the one that helps. A cause that
/// the words before it quote is not said again.
pub fn in_words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !words.contains(&text) {
            words = format!("{words}: {text}");
        }
        cause = inner.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_for_people_ends_with_a_whole_word() {
        let text = "AccessDenied: User is not authorized to perform this";
        assert_eq!(phrase(text, 30), "AccessDenied: User is not");
        assert_eq!((phrase(text, 22), phrase(text, 900)), ("AccessDenied: User is", text));
        assert_eq!(phrase("xxxxxxxxxx", 4), "xxxx");
        assert_eq!(phrase("a bbbbbbbbbbbb", 10), "a bbbbbbbb");
        assert_eq!(clean_words(text, 33), "AccessDenied: User is not…");
        assert_eq!((clean_words(text, 900).as_str(), clean_words("xxxxxxxxxx", 8).as_str()), (text, "xxxxx…"));
    }
}
