//! What a server says about itself and its refs before anything is asked of it, in protocol v2 or v0.

use std::collections::BTreeMap;

use super::failure::Failure;
use super::packet::{Packet, Packets};
use super::{Oid, Ref, Refs};

/// The protocol that a server speaks with us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Refs are asked for.
    V2,
    /// All refs are in the advertisement.
    V0,
}

/// What a server can do, and with v0 its refs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Advertisement {
    pub(super) version: Version,
    pub(super) capabilities: Vec<String>,
    /// Fetching can leave out files, as far as is known.
    pub(super) filters: bool,
    pub(super) refs: Refs,
}

impl Advertisement {
    /// Reads the answer to `GET info/refs`.
    ///
    /// # Errors
    /// It is none; or the repository has ids of another kind than ours.
    pub(super) fn read(body: &[u8]) -> Result<Self, Failure> {
        let mut lines = Lines(Packets::new(body));
        let mut first = lines.next().transpose()?;
        let is_service = first.is_some_and(|line| line.starts_with(b"# service="));
        if is_service {
            first = lines.next().transpose()?;
        }
        match first {
            Some(b"version 2") => Self::able(Version::V2, lines.map(|line| line.map(text)).collect::<Result<_, _>>()?),
            Some(first) => Self::read_v0(first, lines),
            None if is_service => Self::able(Version::V0, Vec::new()),
            None => Err(Failure::answer("its answer is empty, so no git server answers there")),
        }
    }

    /// That of a server of which only this is known.
    pub(super) fn of_v2() -> Self {
        Self { version: Version::V2, capabilities: Vec::new(), filters: false, refs: Refs::default() }
    }

    fn able(version: Version, capabilities: Vec<String>) -> Result<Self, Failure> {
        let mut read = Self { version, capabilities, filters: false, refs: Refs::default() };
        let fetch = read.value("fetch").unwrap_or_default();
        read.filters = read.has("filter") || fetch.split_whitespace().any(|feature| feature == "filter");
        match read.value("object-format") {
            None | Some("sha1") => Ok(read),
            Some(format) => {
                Err(Failure::lasting(format!("the repository has {format} ids; only sha1 can be read yet")))
            }
        }
    }

    fn read_v0(first: &[u8], lines: Lines<'_>) -> Result<Self, Failure> {
        let mut parts = first.splitn(2, |byte| *byte == 0);
        let (first, capabilities) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let capabilities = text(capabilities).split_whitespace().map(str::to_owned).collect();
        let mut read = Self::able(Version::V0, capabilities)?;
        for line in std::iter::once(Ok(first)).chain(lines) {
            read.refs.add_v0(&text(line?))?;
        }
        for link in read.capabilities.iter().filter_map(|capability| capability.strip_prefix("symref=")) {
            if let Some((name, target)) = link.split_once(':')
                && let Some(found) = read.refs.0.get_mut(name)
            {
                found.symbolic = Some(target.to_owned());
            }
        }
        Ok(read)
    }

    /// Whether a capability without a value is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.capabilities.iter().any(|capability| capability == name)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.capabilities.iter().find_map(|capability| capability.strip_prefix(name)?.strip_prefix('='))
    }
}

impl Refs {
    /// Reads the answer to v2's `ls-refs`.
    pub(super) fn read_v2(body: &[u8]) -> Result<Self, Failure> {
        let mut refs = BTreeMap::new();
        for line in Packets::new(body).lines() {
            let line = text(line?);
            let mut words = line.split(' ');
            let (Some(id), Some(name)) = (words.next(), words.next()) else { return Err(no_ref()) };
            let mut found = Ref { id: id.parse().map_err(|_no_id| no_ref())?, peeled: None, symbolic: None };
            for word in words {
                match word.split_once(':') {
                    Some(("peeled", id)) => found.peeled = Some(id.parse().map_err(|_no_id| no_ref())?),
                    Some(("symref-target", name)) => found.symbolic = Some(name.to_owned()),
                    Some(_) | None => {}
                }
            }
            refs.insert(name.to_owned(), found);
        }
        Ok(Self(refs))
    }

    /// Those whose names begin with one of the prefixes: v0 sends all, and v2 may.
    pub(super) fn only(mut self, prefixes: &[&str]) -> Self {
        self.0.retain(|name, _| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        self
    }

    fn add_v0(&mut self, line: &str) -> Result<(), Failure> {
        let (id, name) = line.split_once(' ').ok_or_else(no_ref)?;
        let id: Oid = id.parse().map_err(|_no_id| no_ref())?;
        match name.strip_suffix("^{}") {
            Some(tag) => {
                if let Some(found) = self.0.get_mut(tag) {
                    found.peeled = Some(id);
                }
            }
            None => {
                self.0.insert(name.to_owned(), Ref { id, peeled: None, symbolic: None });
            }
        }
        Ok(())
    }
}

/// All lines, wherever flushes are: servers differ in those.
struct Lines<'a>(Packets<'a>);

impl<'a> Iterator for Lines<'a> {
    type Item = Result<&'a [u8], Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.0.next()? {
                Ok(Packet::Data(line)) => return Some(Ok(line.strip_suffix(b"\n").unwrap_or(line))),
                Ok(Packet::Flush | Packet::Delimiter | Packet::ResponseEnd) => {}
                Err(failure) => return Some(Err(failure)),
            }
        }
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

fn no_ref() -> Failure {
    Failure::answer("the list of refs cannot be read")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::git::packet::Outgoing;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn sent(lines: &[&str]) -> Vec<u8> {
        lines.iter().fold(Outgoing::default(), |sent, line| sent.line(line)).flush().into_bytes()
    }

    #[test]
    fn what_servers_put_around_it_makes_no_difference() {
        let [plain, ended] = ["version 2", "version 2\n"];
        let service = b"001e# service=git-upload-pack\n0000".to_vec();
        let v2 = |line| sent(&[line, "agent=a", "ls-refs=unborn", "fetch=shallow filter\n", "object-format=sha1"]);
        for body in [v2(plain), [service.clone(), v2(ended)].concat()] {
            let read = Advertisement::read(&body).expect("v2");
            assert_eq!((read.version, read.filters), (Version::V2, true));
        }
        let without = Advertisement::read(&sent(&[plain, "fetch=shallow nofilter"])).expect("v2");
        assert!(!without.filters);
        assert_eq!(Advertisement::read(&service).map(|read| read.refs), Ok(Refs::default()));
    }

    #[test]
    fn refs_of_v0_are_read_with_tags_and_links() {
        let first = format!("{ONE} HEAD\0side-band-64k symref=HEAD:refs/heads/main symref=none:x filter\n");
        let lines = [
            &first,
            &format!("{ONE} refs/heads/main"),
            &format!("{TWO} refs/tags/v1"),
            &format!("{ONE} refs/tags/v1^{{}}\n"),
        ];
        let read = Advertisement::read(&sent(&lines.map(String::as_str))).expect("v0");
        assert_eq!(
            (read.version, read.filters, read.has("side-band-64k"), read.has("side-band")),
            (Version::V0, true, true, false)
        );
        let refs = read.refs.only(&["HEAD", "refs/tags/"]);
        assert_eq!(refs.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["HEAD", "refs/tags/v1"]);
        assert_eq!(refs.get("HEAD").and_then(|head| head.symbolic.as_deref()), Some("refs/heads/main"));
        assert_eq!(refs.get("refs/tags/v1").and_then(|tag| tag.peeled), ONE.parse().ok());
        let empty = format!("{} capabilities^{{}}\0report-status", Oid::ZERO);
        assert_eq!(Advertisement::read(&sent(&[&empty])).map(|read| read.refs), Ok(Refs::default()));
    }

    /// A proxy, or a web server of something else; a git server names its service, or its version.
    #[test]
    fn an_empty_answer_is_no_empty_repository() {
        for body in [&b""[..], b"0000"] {
            let failure = Advertisement::read(body).expect_err("nothing was said");
            assert!(failure.cause.contains("its answer is empty"), "{failure:?}");
        }
        let empty = Advertisement::read(b"001e# service=git-upload-pack\n00000000").expect("an old server's empty one");
        assert_eq!(empty.refs, Refs::default());
    }

    #[test]
    fn other_ids_are_refused_before_they_are_read() {
        let id = "3".repeat(64);
        for body in [sent(&["version 2", "object-format=sha256"]), sent(&[&format!("{id} HEAD\0object-format=sha256")])]
        {
            let failure = Advertisement::read(&body).expect_err("sha256");
            assert_eq!(failure, Failure::lasting("the repository has sha256 ids; only sha1 can be read yet"));
        }
    }

    proptest! {
        #[test]
        fn reading_any_lines_ends(lines in proptest::collection::vec("([0-9a-f]{40}|version 2|[ -~]{0,9})[ \0][ -~]{0,20}", 0..9)) {
            let body = sent(&lines.iter().map(String::as_str).collect::<Vec<_>>());
            let refs = [Advertisement::read(&body).map(|read| read.refs), Refs::read_v2(&body)];
            for refs in refs.into_iter().flatten() {
                prop_assert!(refs.iter().count() <= lines.len());
            }
        }

        #[test]
        fn reading_anything_ends(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Advertisement::read(&body), Refs::read_v2(&body));
        }
    }
}
