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
        if first.is_some_and(|line| line.starts_with(b"# service=")) {
            first = lines.next().transpose()?;
        }
        match first {
            Some(b"version 2") => Self::able(Version::V2, lines.map(|line| line.map(text)).collect::<Result<_, _>>()?),
            Some(first) => Self::read_v0(first, lines),
            None => Self::able(Version::V0, Vec::new()),
        }
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
