//! "Did you mean": the nearest of a few known names, and lists in words.

use kernel::mask::{MASK, shown};

/// The known name that was most likely meant: at most a third of its letters away, counting swapped neighbours as one.
pub(super) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer than any name by far; the comparison is quadratic.
    const CHARS_MAX: usize = 100;
    if given.len() > CHARS_MAX {
        return None;
    }
    let given = given.to_ascii_lowercase();
    let distance = |name: &str| strsim::osa_distance(&given, &name.to_ascii_lowercase());
    let (found, name) = known.into_iter().map(|name| (distance(name), name)).min_by_key(|(found, _)| *found)?;
    (found <= name.len().min(given.len()) / 3).then_some(name)
}

/// A name that does not exist, as it is shown. People find a slip only by its name, so that is shown like any other text; what has
/// not the form of a name (a blank, an `@`, a token) is more likely a value in the wrong place, and is not.
pub(super) fn unknown(given: &str) -> String {
    // No key of ours is half as long.
    const CHARS_MAX: usize = 64;
    let is_name = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            && shown(part) == part
    };
    if given.len() > CHARS_MAX {
        return MASK.to_owned();
    }
    given.split('.').map(|part| if is_name(part) { part } else { MASK }).collect::<Vec<_>>().join(".")
}

/// `a, b or c`.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        assert_eq!(
            nearest("purge.complection_timeout", ["purge.completion_timeout", "group.timeout"]),
            Some("purge.completion_timeout")
        );
        assert_eq!(nearest("WIAT", ["wait", "skip"]), Some("wait"));
        assert_eq!(nearest("colour", ["level", "format"]), None);
        assert_eq!(nearest("", ["level"]), None);
    }

    #[test]
    fn names_are_shown_and_what_is_no_name_is_not() {
        for (given, shown) in [
            ("dry_rum", "dry_rum"),
            ("purge.pahts", "purge.pahts"),
            ("log.colour", "log.colour"),
            ("nosuch.section.x", "nosuch.section.x"),
            ("log.hunter 2", "log.•••"),
            ("redis.url@x", "redis.•••"),
            ("redis.ghp_16C7e42F292c6912E7710c838347Ae178B4a", "redis.•••"),
            ("", "•••"),
        ] {
            assert_eq!(unknown(given), shown);
        }
        assert_eq!(unknown(&"x".repeat(65)), "•••");
    }

    #[test]
    fn lists_read_like_words() {
        assert_eq!(listed([]), "");
        assert_eq!(listed(["a"]), "a");
        assert_eq!(listed(["a", "b", "c"]), "a, b or c");
    }
}
