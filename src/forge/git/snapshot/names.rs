//! Which names of a tree may become names on a disk.

/// Bytes of a name: Linux' own bound.
const NAME_BYTES_MAX: usize = 255;

/// Why a name may not be written.
pub(super) fn check(name: &[u8]) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err("is no name that a file can have");
    }
    if name.contains(&b'/') || name.contains(&0) {
        return Err("holds a separator of paths in one name");
    }
    // Where backslashes separate, so do they here.
    for part in name.split(|byte| *byte == b'\\') {
        if part == b"." || part == b".." {
            return Err("leads out of its folder");
        }
        if is_git(part) {
            return Err("could be taken for git's own folder");
        }
    }
    Ok(())
}

/// Whether some file system takes a name for `.git`: in any case; on HFS+ with characters that it ignores; on NTFS as `git~1`, and
/// with dots, spaces or a stream behind it.
fn is_git(name: &[u8]) -> bool {
    let seen: String = String::from_utf8_lossy(name).chars().filter(|character| !is_ignored(*character)).collect();
    let seen = seen.to_ascii_lowercase();
    let seen = seen.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    seen == ".git" || seen == "git~1"
}

/// Characters that HFS+ ignores in names (git's `next_hfs_char`, utf8.c).
fn is_ignored(character: char) -> bool {
    matches!(character, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_or_into_git_are_refused_in_every_spelling() {
        let long = "x".repeat(256);
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "/etc",
            "a\0b",
            ".git",
            ".GIT",
            ".Git",
            "git~1",
            "GIT~1",
            ".git.",
            ".git ",
            ".git . .",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".gi\u{206f}t",
            "..\\..\\etc",
            "a\\.git",
            &long,
        ] {
            assert!(check(name.as_bytes()).is_err(), "{name:?}");
        }
    }

    #[test]
    fn other_names_are_names() {
        let long = "x".repeat(255);
        for name in [
            "a",
            ".gitignore",
            ".gitmodules",
            ".github",
            "git",
            "git~2",
            "...",
            "..a",
            "a b",
            "-rf",
            "\u{e9}",
            "main.tf",
            &long,
        ] {
            assert_eq!(check(name.as_bytes()), Ok(()), "{name:?}");
        }
        assert_eq!(check(b"\xff\xfe"), Ok(()), "a name need not be text");
    }
}
