//! What a snapshot holds of a text: the rows that a test is about, and no value that differs from run to run.

/// Where the values of a card begin: behind two blanks and a name.
const VALUES_AT: usize = 16;

/// A text on one line.
pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The rows of these names in what `explain`, `status`, `group` or `ledger` prints, without the breaks of their lines.
pub fn rows(card: &str, names: &[&str]) -> String {
    let (mut kept, mut is_kept) = (String::new(), false);
    for line in card.lines() {
        let indent = line.len() - line.trim_start().len();
        if indent <= 2 {
            is_kept = indent == 2 && names.iter().any(|name| line[2..].starts_with(&format!("{name} ")));
        }
        match indent > VALUES_AT {
            _ if !is_kept => {}
            true => kept = format!("{} {}\n", kept.trim_end(), line.trim()),
            false => kept = format!("{kept}{}\n", &line[2..]),
        }
    }
    kept
}

/// Digits of a hash or of an id of a server, at least.
const HASH_DIGITS: usize = 32;

/// The text with a word for each value that differs from run to run: those given, ports of loopback, and hashes.
pub fn redacted(text: &str, values: &[(&str, &str)]) -> String {
    let text = values.iter().fold(text.to_owned(), |text, (value, word)| text.replace(value, word));
    let parts = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
    let (mut shown, mut before) = (String::new(), "");
    for part in parts {
        let word = part.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let end = &part[word.len()..];
        let is_port = before.ends_with("127.0.0.1:") && word.bytes().all(|byte| byte.is_ascii_digit());
        let is_hash = word.len() >= HASH_DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        shown += if is_port {
            "PORT"
        } else if is_hash {
            "HASH"
        } else {
            word
        };
        shown += end;
        before = part;
    }
    shown
}
