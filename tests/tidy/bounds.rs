//! Each bound on a count is in tests/tidy/bounds.txt, with the share that each namespace has of it, or why it needs none (decision 59).

use std::collections::BTreeSet;

use crate::none;
use crate::source::{file, rust};

/// The commands of people, the stand-ins and the demo serve nobody's tenants; a configuration is one operator's.
const EXEMPT: [&str; 4] = ["src/cli/", "src/config/", "src/sandbox/", "src/demo/"];

/// The bounds of counts in the code: `domain/objects/apps/leaf.rs WATCHES_MAX`. Those of bytes, characters and depths are of one text.
fn bounds() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in rust(&["src"]).into_iter().filter(|file| !EXEMPT.iter().any(|path| file.path.starts_with(path))) {
        let code = file.production();
        let constants = code.lines().filter_map(|line| line.split_once("const ")?.1.split_once(": "));
        let numbers =
            constants.filter(|(_, kind)| ["usize", "u16", "u32", "u64"].iter().any(|one| kind.starts_with(one)));
        let names = numbers.map(|(name, _)| name).filter(|name| name.contains("_MAX") || name.contains("AT_ONCE"));
        let counts = names
            .filter(|name| !["BYTES_MAX", "CHARS_MAX", "DEPTH_MAX", "LEN_MAX"].iter().any(|of| name.ends_with(of)));
        let path = file.path.trim_start_matches("src/");
        found.extend(counts.map(|name| format!("{path} {name}")));
    }
    found
}

#[test]
fn no_tenant_can_take_a_bound_from_the_others() {
    let text = file("tests/tidy/bounds.txt").text;
    let (mut listed, mut wrong, mut needs_words) = (BTreeSet::new(), Vec::new(), false);
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(class) = line.strip_prefix("== ") {
            needs_words = !class.starts_with("words:") && !class.starts_with("one:");
            continue;
        }
        let (bound, why) = line.split_once(": ").unwrap_or((line, ""));
        if needs_words && why.is_empty() {
            wrong.push(format!("{bound}: no reason"));
        }
        listed.insert(bound.to_owned());
    }
    let bounds = bounds();
    assert!(bounds.len() > 100, "they are not found any more: {bounds:?}");
    wrong.extend(bounds.difference(&listed).map(|bound| format!("{bound}: has no share and no reason")));
    wrong.extend(listed.difference(&bounds).map(|bound| format!("{bound}: is no bound any more")));
    none("a bound is not as tests/tidy/bounds.txt says", &wrong);
}
