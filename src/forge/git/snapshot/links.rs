//! Whether links stay inside. Each is followed as the operating system would, through other links, before anything is written.

use std::collections::BTreeMap;

use super::{Failure, Node};

/// Links that are followed for one path: Linux' own bound. A link beyond it leads nowhere, for the system refuses it.
const FOLLOWED_MAX: usize = 40;

/// Steps that are walked for all links together; 400,000 links of 10 parts are 4 million.
const STEPS_MAX: usize = 20_000_000;

/// Refuses a link that leads out, by its name.
pub(super) fn check(nodes: &BTreeMap<Vec<u8>, Node>) -> Result<(), Failure> {
    let mut steps = 0_usize;
    for (path, node) in nodes {
        let Node::Link(target) = node else { continue };
        let refuse = |why: &str| {
            let [path, target] = [path, target].map(|text| String::from_utf8_lossy(text).into_owned());
            Err(Failure::lasting(format!("the link {path:?} {why}: {target:?}")))
        };
        if target.is_empty() || target.contains(&0) {
            return refuse("names nothing");
        }
        let folder = path.iter().rposition(|byte| *byte == b'/').and_then(|end| path.get(..end)).unwrap_or_default();
        match stays_inside(nodes, folder, target, &mut steps) {
            Some(true) => {}
            Some(false) => return refuse("leads out of the repository"),
            None => return Err(Failure::lasting("its links lead through each other too often")),
        }
    }
    Ok(())
}

/// Whether a link in this folder stays inside; `None` if that takes too long to find out.
fn stays_inside(nodes: &BTreeMap<Vec<u8>, Node>, folder: &[u8], target: &[u8], steps: &mut usize) -> Option<bool> {
    let mut at: Vec<&[u8]> = parts(folder).collect();
    if target.starts_with(b"/") {
        return Some(false);
    }
    // What is still to be walked, the next part last.
    let mut rest: Vec<&[u8]> = parts(target).collect();
    rest.reverse();
    let mut followed = 0;
    while let Some(part) = rest.pop() {
        *steps = steps.saturating_add(at.len()).saturating_add(1);
        if *steps > STEPS_MAX {
            return None;
        }
        match part {
            b"." => {}
            b".." => {
                if at.pop().is_none() {
                    return Some(false);
                }
            }
            name => {
                at.push(name);
                let Some(Node::Link(target)) = nodes.get(&at.join(&b'/')) else { continue };
                followed += 1;
                if followed > FOLLOWED_MAX {
                    return Some(true);
                }
                // One from the root of the system is refused for itself.
                at.pop();
                let behind = rest.len();
                rest.extend(parts(target));
                if let Some(added) = rest.get_mut(behind..) {
                    added.reverse();
                }
            }
        }
    }
    Some(true)
}

fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::git::Oid;

    fn nodes(nodes: &[(&str, Option<&str>)]) -> BTreeMap<Vec<u8>, Node> {
        let node = |target: &Option<&str>| match target {
            Some(target) => Node::Link(target.as_bytes().to_vec()),
            None => Node::File(Oid::ZERO, false),
        };
        nodes.iter().map(|(path, target)| (path.as_bytes().to_vec(), node(target))).collect()
    }

    #[test]
    fn links_within_the_repository_are_kept() {
        for target in ["b", "./b", "sub/../b", "sub/c", "nothing", "sub", ".", "...", "loop"] {
            let nodes = nodes(&[("a", Some(target)), ("b", None), ("sub/c", Some("../b")), ("loop", Some("a"))]);
            assert_eq!(check(&nodes), Ok(()), "{target}");
        }
        assert_eq!(check(&nodes(&[("x/y/up", Some("../../b")), ("x/y/top", Some("../.."))])), Ok(()));
        assert_eq!(check(&nodes(&[("l", Some("x/..")), ("a", Some("l/b"))])), Ok(()), "in the order of its parts");
    }

    #[test]
    fn links_out_of_the_repository_are_refused_by_name() {
        for target in ["..", "/etc/passwd", "sub/../../b", "../repo/b", "./..", ""] {
            let refused = check(&nodes(&[("a", Some(target)), ("sub/b", None)])).expect_err(target).cause;
            assert!(refused.starts_with("the link \"a\" "), "{refused}");
        }
        assert!(check(&nodes(&[("x/y/up", Some("../../../b"))])).is_err());
    }

    #[test]
    fn links_that_lead_out_only_through_other_links_are_refused() {
        // By its letters x stays inside: deep/down/up/../etc. But up is the root, and what is above it is not ours.
        let through = nodes(&[("deep/down/up", Some("../..")), ("x", Some("deep/down/up/../etc"))]);
        assert_eq!(
            check(&through),
            Err(Failure::lasting("the link \"x\" leads out of the repository: \"deep/down/up/../etc\""))
        );
        let chain = nodes(&[("a", Some("b/..")), ("b", Some(".")), ("c", None)]);
        assert!(check(&chain).is_err());
    }

    proptest! {
        /// The operating system is the oracle: what it opens through a link is inside.
        #[test]
        fn what_the_system_makes_of_a_link_is_inside_or_the_link_was_refused(
            targets in prop::collection::btree_map("[a-c](/[a-c]){0,2}", "(\\.\\.?|[a-c])(/(\\.\\.?|[a-c])){0,4}", 1..5),
        ) {
            let outer = std::env::temp_dir().join(format!("allclear-links-{}", std::process::id()));
            let root = outer.join("a").join("b").join("root");
            let _ = std::fs::remove_dir_all(&outer);
            std::fs::create_dir_all(&root).expect("a folder");
            let mut known = BTreeMap::new();
            for (path, target) in &targets {
                let place = root.join(path);
                let free = place.parent().is_some_and(|folder| {
                    std::fs::create_dir_all(folder).is_ok() && folder.canonicalize().is_ok_and(|real| real == folder)
                });
                if free && std::os::unix::fs::symlink(target, &place).is_ok() {
                    known.insert(path.clone().into_bytes(), Node::Link(target.clone().into_bytes()));
                }
            }
            let all_inside = known.keys().all(|path| {
                let place = root.join(String::from_utf8_lossy(path).as_ref());
                place.canonicalize().map_or(true, |real| real.starts_with(root.canonicalize().expect("it is there")))
            });
            prop_assert!(all_inside || check(&known).is_err(), "{known:?}");
            let _ = std::fs::remove_dir_all(&outer);
        }
    }
}
