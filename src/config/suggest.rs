//! "Did you mean": the nearest of a few known names, and lists in words.

use super::mask::MASK;

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

/// A name that does not exist, as far as it may be shown: a slip of a known one is, anything else may be a secret in the
/// wrong place. `known` are dotted; of an unknown key in a known section the section is shown.
pub(super) fn recognised<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let parted: Vec<(&str, &str)> = known.iter().filter_map(|name| name.split_once('.')).collect();
    if nearest(given, known.into_iter().chain(parted.iter().map(|(section, _)| *section))).is_some() {
        return given.to_owned();
    }
    match given.split_once('.') {
        Some((section, name)) if parted.iter().any(|(known, _)| *known == section) => {
            let is_known = parted.iter().any(|(_, known)| *known == name);
            format!("{section}.{}", if is_known { name } else { MASK })
        }
        Some(_) | None => MASK.to_owned(),
    }
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
    fn only_slips_of_known_names_are_shown() {
        let known = ["dry_run", "purge.paths", "log.format"];
        for (given, shown) in [
            ("dry_rum", "dry_rum"),
            ("purge.pahts", "purge.pahts"),
            ("purgee", "purgee"),
            ("purge.format", "purge.format"),
            ("log.hunter2", "log.•••"),
            ("hunter2", "•••"),
            ("hunter2.paths", "•••"),
        ] {
            assert_eq!(recognised(given, known), shown);
        }
    }

    #[test]
    fn lists_read_like_words() {
        assert_eq!(listed([]), "");
        assert_eq!(listed(["a"]), "a");
        assert_eq!(listed(["a", "b", "c"]), "a, b or c");
    }
}
