//! Folders, as git keeps them: names in git's order, each with a mode and an id.

use super::Oid;

/// What a name in a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A file; whether it may be run.
    File {
        executable: bool,
    },
    Folder,
    /// A link, a submodule, or what git knows later.
    Other,
}

/// One name in a folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) mode_text: &'a [u8],
    pub(super) name: &'a [u8],
    pub(super) id: Oid,
}

impl<'a> Entry<'a> {
    pub(super) fn mode(&self) -> Mode {
        match self.mode_text {
            b"100644" => Mode::File { executable: false },
            b"100755" => Mode::File { executable: true },
            b"40000" => Mode::Folder,
            _ => Mode::Other,
        }
    }

    pub(super) fn is_link(&self) -> bool {
        self.mode_text == b"120000"
    }

    /// The name, where it can be a part of a path that people write. Git itself allows none of the others, but a broken or
    /// hostile server may send them.
    pub(super) fn text(&self) -> Option<&'a str> {
        let text = std::str::from_utf8(self.name).ok()?;
        let is_name = !text.is_empty() && text != "." && text != ".." && !text.contains('/');
        (is_name && !text.eq_ignore_ascii_case(".git")).then_some(text)
    }

    pub(super) fn write(&self, tree: &mut Vec<u8>) {
        tree.extend_from_slice(self.mode_text);
        tree.push(b' ');
        tree.extend_from_slice(self.name);
        tree.push(0);
        tree.extend_from_slice(self.id.as_bytes());
    }
}

/// The names in a folder; `None` at a place where it cannot be read, and then no more.
pub(super) fn entries(mut tree: &[u8]) -> impl Iterator<Item = Option<Entry<'_>>> {
    std::iter::from_fn(move || {
        if tree.is_empty() {
            return None;
        }
        let entry = split(&mut tree);
        if entry.is_none() {
            tree = &[];
        }
        Some(entry)
    })
}

fn split<'a>(tree: &mut &'a [u8]) -> Option<Entry<'a>> {
    let mode_text = until(tree, b' ')?;
    let name = until(tree, 0)?;
    let id = tree.split_off(..Oid::BYTES)?.first_chunk()?;
    Some(Entry { mode_text, name, id: Oid::new(*id) })
}

/// What is in front of a byte, which is taken too.
fn until<'a>(input: &mut &'a [u8], end: u8) -> Option<&'a [u8]> {
    let at = input.iter().position(|byte| *byte == end)?;
    let text = input.split_off(..at)?;
    input.split_off_first()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tree(mode: &str, name: &str) -> Vec<u8> {
        [format!("{mode} {name}\0").as_bytes(), &[7; Oid::BYTES]].concat()
    }

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        let text = |name: &str| {
            let tree = tree("100644", name);
            entries(&tree).next().flatten().and_then(|entry| entry.text().map(str::to_owned))
        };
        for name in ["a", ".gitignore", "é b", "..."] {
            assert_eq!(text(name).as_deref(), Some(name));
        }
        for name in ["", ".", "..", ".git", ".GIT", "a/b", "/"] {
            assert_eq!(text(name), None, "{name}");
        }
    }

    #[test]
    fn only_two_modes_are_files() {
        let mode = |mode: &str| entries(&tree(mode, "a")).next().flatten().map(|entry| entry.mode());
        assert_eq!(mode("100644"), Some(Mode::File { executable: false }));
        assert_eq!(mode("100755"), Some(Mode::File { executable: true }));
        assert_eq!(mode("40000"), Some(Mode::Folder));
        for other in ["120000", "160000", "100664", "040000", "", "7"] {
            assert_eq!(mode(other), Some(Mode::Other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn reading_anything_ends_and_writing_gives_it_back(
            modes in proptest::collection::vec(any::<bool>(), 0..4),
            end in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let whole: Vec<u8> = modes.iter().flat_map(|file| tree(if *file { "100644" } else { "40000" }, "a")).collect();
            let mut written = Vec::new();
            entries(&whole).flatten().for_each(|entry| entry.write(&mut written));
            prop_assert_eq!(&written, &whole);
            let broken = [whole, end].concat();
            prop_assert!(entries(&broken).count() <= broken.len());
        }
    }
}
