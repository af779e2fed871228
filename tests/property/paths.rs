//! Paths and sets of paths.

use kernel::names::paths::{Path, PathSet};
use proptest::prelude::*;

/// Paths over few letters, so that prefixes and duplicates are common.
fn path() -> impl Strategy<Value = Path> {
    let text = prop_oneof![
        8 => "/[ab!/]{0,4}\\*?",
        2 => "/[ab%é 4C]{0,5}\\*?",
        1 => "#[abA]{1,3}",
        1 => Just("/*".to_owned()),
    ];
    text.prop_map(|text| text.parse().unwrap())
}

fn paths() -> impl Strategy<Value = Vec<Path>> {
    prop::collection::vec(path(), 0..8)
}

fn set() -> impl Strategy<Value = PathSet> {
    paths().prop_map(PathSet::from_iter)
}

/// Whether purging `path` removes the object cached under `object`, a path as it is requested: CloudFront's rule.
fn purges(path: &Path, object: &str) -> bool {
    match path.as_str().strip_suffix('*') {
        Some(prefix) => object.starts_with(prefix),
        None => object == path.as_str(),
    }
}

proptest! {
    #[test]
    fn few_paths_purge_all_that_many_did(set in set(), most in 1_usize..6, object in "/[ab!/]{0,5}") {
        let few = set.at_most(most);
        prop_assert!(few.len() <= most);
        prop_assert!(few.covers(&set));
        prop_assert!(set.len() > most || few == set);
        if set.iter().any(|path| purges(path, &object)) {
            prop_assert!(few.iter().any(|path| purges(path, &object)));
        }
    }

    #[test]
    fn what_two_sets_have_in_common_is_what_both_purge(one in set(), other in set(), object in "/[ab!/]{0,5}") {
        let purged = |set: &PathSet| set.iter().any(|path| purges(path, &object));
        let both = one.intersection(&other);
        prop_assert_eq!(both.as_ref().is_some_and(purged), purged(&one) && purged(&other));
    }

    #[test]
    fn normalising_a_path_twice_changes_nothing(text in "/[ -}]{0,40}", any in any::<String>()) {
        for text in [text, any.clone(), format!("/{any}"), format!("#{any}")] {
            if let Ok(path) = Path::parse(&text) {
                prop_assert_eq!(Path::parse(path.as_str()), Ok(path));
            }
        }
    }

    #[test]
    fn a_path_holds_only_what_cloudfront_accepts(any in any::<String>()) {
        if let Ok(path) = Path::parse(&format!("/{any}")) {
            let text = path.as_str();
            prop_assert!(text.starts_with('/') && text.len() <= 4_000);
            prop_assert!(text.bytes().all(|b| b.is_ascii_graphic() && !br##"<>"#{}|\^~[]`"##.contains(&b)), "{}", text);
            prop_assert!(!text.to_ascii_lowercase().contains("%7e"));
            prop_assert!(text.find('*').is_none_or(|at| at == text.len() - 1));
            for (at, _) in text.match_indices('%') {
                prop_assert!(text.len() >= at + 3 && text[at + 1..at + 3].bytes().all(|b| b.is_ascii_hexdigit()));
            }
        }
    }

    // Decoding gives back what was written: nothing but the representation changed.
    #[test]
    fn encoding_loses_nothing(body in "[a-zé€ \"#<>\\[\\]]{0,20}") {
        let path = Path::parse(&format!("/{body}x")).unwrap();
        let mut bytes = Vec::new();
        let mut rest = path.as_str();
        while let Some(first) = rest.chars().next() {
            if first == '%' {
                bytes.push(u8::from_str_radix(&rest[1..3], 16).unwrap());
                rest = &rest[3..];
            } else {
                bytes.push(first as u8);
                rest = &rest[1..];
            }
        }
        prop_assert_eq!(String::from_utf8(bytes).unwrap(), format!("/{body}x"));
    }

    #[test]
    fn a_set_is_in_normal_form(set in set()) {
        let items: Vec<&Path> = set.iter().collect();
        prop_assert!(!items.is_empty());
        prop_assert!(items.is_sorted());
        for (i, one) in items.iter().enumerate() {
            for (j, other) in items.iter().enumerate() {
                prop_assert!(i == j || !one.covers(other), "{} covers {}", one, other);
            }
        }
    }

    #[test]
    fn normalising_a_set_twice_changes_nothing(set in set()) {
        prop_assert_eq!(&set.iter().cloned().collect::<PathSet>(), &set);
        let stored = serde_json::to_string(&set).unwrap();
        prop_assert_eq!(serde_json::from_str::<PathSet>(&stored).unwrap(), set);
    }

    #[test]
    fn the_order_of_paths_does_not_matter(paths in paths(), seed in any::<prop::sample::Index>()) {
        let mut turned = paths.clone();
        turned.rotate_left(seed.index(paths.len().max(1)).min(paths.len()));
        turned.reverse();
        prop_assert_eq!(PathSet::from_iter(paths), PathSet::from_iter(turned));
    }

    #[test]
    fn a_dropped_path_is_covered_by_a_kept_one_and_nothing_is_invented(paths in prop::collection::vec(path(), 1..8)) {
        let set: PathSet = paths.iter().cloned().collect();
        for path in &paths {
            prop_assert!(set.iter().any(|kept| kept.covers(path)), "{} lost from {:?}", path, paths);
        }
        prop_assert!(set.iter().all(|kept| paths.contains(kept)));
    }

    // Goal: `covers` means what CloudFront does. Method: ask of many objects whether each path would purge them.
    #[test]
    fn covering_is_sound_for_every_object(
        one in path(),
        other in path(),
        objects in prop::collection::vec("/[ab!/]{0,5}", 1..20),
    ) {
        if one.covers(&other) && !other.is_tag() {
            for object in &objects {
                let sound = !purges(&other, object) || purges(&one, object);
                prop_assert!(sound, "{} covers {} but not {}", one, other, object);
            }
        }
    }

    #[test]
    fn a_path_that_covers_nothing_more_is_told_apart(one in path(), other in path()) {
        // Antisymmetry: two paths that cover each other are one.
        prop_assert!(!(one.covers(&other) && other.covers(&one)) || one == other);
    }

    #[test]
    fn a_union_covers_both_and_is_the_least_that_does(one in set(), other in set(), third in set()) {
        let union = one.union(&other);
        prop_assert!(union.covers(&one) && union.covers(&other));
        prop_assert_eq!(&union, &other.union(&one));
        prop_assert_eq!(&union.union(&one), &union);
        prop_assert_eq!(third.covers(&union), third.covers(&one) && third.covers(&other));
    }
}
