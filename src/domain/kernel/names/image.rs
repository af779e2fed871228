//! Image references and versions: what runs in a workload's containers, and when two of those are the same.
//!
//! A reference is read by the grammar of <https://github.com/distribution/reference>, which the container runtimes
//! use, and then completed the way they complete it: no registry is `docker.io`, one word is in `library/`, and
//! neither tag nor digest is `latest`. `registry:5000/app` therefore has a port and no tag, and `app:5000` a tag and
//! no port.
//!
//! Not for: asking a registry anything. A tag that moved without the reference changing is invisible here.

mod across;
mod beside;
mod version;

use std::fmt;

use crate::parsed::parsed;
use crate::text;
use container_image_dist_ref::ImgRef;
use container_image_dist_ref::err::Kind;

pub use self::across::{Apart, Code};
pub use self::beside::{Beside, Fields, NotAVersionOf, VersionOf};
pub use self::version::{Container, UnknownContainers, Version, brief, difference};

/// Longest reference in characters. The grammar allows a name of 255, a tag of 128 and a digest; the longest registered
/// digest, `sha512:` with 128 digits, makes 520 with the separators.
pub const REFERENCE_CHARS_MAX: usize = 520;

/// The registry of a reference that names none.
const REGISTRY_DEFAULT: &str = "docker.io";

/// Another name of the same registry, from before it was called `docker.io`.
const REGISTRY_LEGACY: &str = "index.docker.io";

/// Where `docker.io` keeps repositories of one word.
const NAMESPACE_DEFAULT: &str = "library";

/// The tag of a reference that has neither tag nor digest.
const TAG_DEFAULT: &str = "latest";

/// Digest algorithms and the number of their hexadecimal digits. The first three are what the reference implementation
/// knows (<https://github.com/opencontainers/go-digest>), the last is registered by the OCI image specification 1.1.
const ALGORITHMS: [(&str, usize); 4] = [("sha256", 64), ("sha384", 96), ("sha512", 128), ("blake3", 64)];

/// Digits of a digest shown to people: as many as `docker images` shows.
const DIGEST_DIGITS_SHOWN: usize = 12;

/// How much of a refused reference an error repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// An image reference, complete and valid. Serialised as its text; see [`fmt::Display`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Image {
    registry: Box<str>,
    repository: Box<str>,
    tag: Option<Box<str>>,
    digest: Option<Box<str>>,
}

/// Why a text is not an image reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{text:?} is not an image reference: {problem}")]
pub struct Error {
    text: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
enum Problem {
    #[error("it is empty")]
    Empty,
    #[error("it has {0} characters, the most is {REFERENCE_CHARS_MAX}")]
    TooLong(usize),
    #[error("{0:?} may not be in one")]
    Character(char),
    #[error("{0}")]
    Grammar(&'static str),
    #[error("64 hexadecimal digits are an image id, which no registry knows")]
    Id,
    #[error("{0:?} is not a digest of a known algorithm, in lower-case hexadecimal digits")]
    Digest(String),
}

impl Image {
    /// Parses and completes a reference.
    ///
    /// # Errors
    /// A text that a container runtime would refuse too, with the reason.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse(text).map_err(|problem| Error { text: text::first(text, SHOWN_CHARS_MAX).to_owned(), problem })
    }

    /// The registry's host, with its port if it has one: `docker.io`, `registry:5000`.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The repository in that registry: `library/nginx`.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag; `None` only if there is a digest.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, with its algorithm: `sha256:` and 64 digits.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Tag and digest, the digest shortened: `1.2.3`, `1.2.3@0a1b2c3d4e5f`.
    fn short(&self) -> String {
        let digest = self.digest().map(|digest| {
            let digits = digest.split_once(':').map_or(digest, |(_, digits)| digits);
            text::first(digits, DIGEST_DIGITS_SHOWN)
        });
        match (self.tag(), digest) {
            (Some(tag), None) => tag.to_owned(),
            (Some(tag), Some(digest)) => format!("{tag}@{digest}"),
            (None, digest) => format!("@{}", digest.unwrap_or_default()),
        }
    }

    /// The name without tag and digest, as short as it can be while it still means the same.
    fn familiar_name(&self) -> String {
        if &*self.registry != REGISTRY_DEFAULT {
            return format!("{}/{}", self.registry, self.repository);
        }
        match self.repository.split_once('/') {
            Some((NAMESPACE_DEFAULT, name)) if !name.contains('/') => name.to_owned(),
            // `docker.io/a.b/c` without its registry would be repository `c` of registry `a.b`.
            Some((first, _)) if is_registry(first) => format!("{}/{}", self.registry, self.repository),
            _ => self.repository.to_string(),
        }
    }
}

/// The text people write: `nginx:1.27`, `team/app:2`, `registry:5000/app@sha256:…`. The default registry and namespace
/// are left out, the tag never is. Parses back to the same value.
impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.familiar_name())?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

fn parse(text: &str) -> Result<Image, Problem> {
    if text.is_empty() {
        return Err(Problem::Empty);
    }
    // The grammar's parser counts in 8 and 16 bits: it must never see a long text, or one that is not ASCII.
    if text.len() > REFERENCE_CHARS_MAX {
        return Err(Problem::TooLong(text.chars().count()));
    }
    if let Some(character) = text.chars().find(|c| !c.is_ascii_graphic()) {
        return Err(Problem::Character(character));
    }
    if text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(Problem::Id);
    }
    let parsed = ImgRef::new(text).map_err(|error| Problem::Grammar(rule_broken(error.kind())))?;
    let name = parsed.name();
    let (registry, repository) = complete_name(name.to_str());
    let digest = parsed.digest().map(|digest| digest.to_str()).map(check_digest).transpose()?;
    let tag = parsed.tag().or(if digest.is_none() { Some(TAG_DEFAULT) } else { None });
    Ok(Image {
        registry: registry.into_boxed_str(),
        repository: repository.into_boxed_str(),
        tag: tag.map(Into::into),
        digest: digest.map(Into::into),
    })
}

/// The rule of the grammar a reference breaks. The parser's own position is left out: it is wrong after a slash.
fn rule_broken(kind: Kind) -> &'static str {
    match kind {
        Kind::TagMissing | Kind::TagInvalidChar | Kind::TagTooLong => {
            "a tag has 1 to 128 letters, digits, dots, hyphens and underscores, and starts with no dot or hyphen"
        }
        Kind::Port | Kind::PortInvalidChar | Kind::PortTooLong | Kind::PortMissing => {
            "the port of a registry is a number"
        }
        Kind::PortOrTagMissing | Kind::PortOrTagInvalidChar => "after the colon comes a tag, or a port and a slash",
        Kind::NameTooLong | Kind::HostOrPathTooLong | Kind::HostTooLong | Kind::PathTooLong => {
            "a name has at most 255 characters"
        }
        Kind::AlgorithmMissing
        | Kind::AlgorithmInvalidChar
        | Kind::AlgorithmTooLong
        | Kind::EncodedMissing
        | Kind::EncodedInvalidChar
        | Kind::EncodedNonLowerHex
        | Kind::EncodingTooShort
        | Kind::EncodingTooLong
        | Kind::OciRegisteredAlgorithmWrongDigestLength
        | Kind::OciRegisteredDigestInvalidChar => "a digest is an algorithm, a colon and lower-case hexadecimal digits",
        _ => {
            "a repository has segments between slashes, each of lower-case letters and digits with dots, underscores \
             and hyphens only between them"
        }
    }
}

/// Splits a name into registry and repository, and adds what is implied. The grammar alone takes the first of several
/// segments for a registry (`team/app`); this is `splitDockerDomain` of the reference implementation.
fn complete_name(name: &str) -> (String, String) {
    let (registry, repository) = match name.split_once('/') {
        Some((first, rest)) if is_registry(first) => (first, rest),
        _ => (REGISTRY_DEFAULT, name),
    };
    // A registry is a host, and hosts have no case. One that is taken for a registry only because of its upper case
    // stays as it is, or its own text would mean something else.
    let folded = registry.to_ascii_lowercase();
    let registry = if is_registry(&folded) { folded } else { registry.to_owned() };
    if registry != REGISTRY_DEFAULT && registry != REGISTRY_LEGACY {
        return (registry, repository.to_owned());
    }
    let repository =
        if repository.contains('/') { repository.to_owned() } else { format!("{NAMESPACE_DEFAULT}/{repository}") };
    (REGISTRY_DEFAULT.to_owned(), repository)
}

/// Whether the first segment of a name is a registry rather than a part of the repository.
fn is_registry(segment: &str) -> bool {
    segment.contains(['.', ':']) || segment == "localhost" || segment.bytes().any(|b| b.is_ascii_uppercase())
}

fn check_digest(digest: &str) -> Result<&str, Problem> {
    let valid = digest.split_once(':').is_some_and(|(algorithm, digits)| {
        ALGORITHMS.contains(&(algorithm, digits.len()))
            && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    });
    if valid { Ok(digest) } else { Err(Problem::Digest(text::first(digest, SHOWN_CHARS_MAX).to_owned())) }
}

parsed!(Image, Error);

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn image(text: &str) -> Image {
        Image::parse(text).unwrap()
    }

    #[test]
    fn a_registry_port_without_a_tag_is_not_a_tag() {
        let app = image("registry:5000/app");
        assert_eq!((app.registry(), app.repository(), app.tag()), ("registry:5000", "app", Some("latest")));
        let app = image("app:5000");
        assert_eq!((app.registry(), app.repository(), app.tag()), ("docker.io", "library/app", Some("5000")));
    }

    #[test]
    fn a_reference_is_completed_as_container_runtimes_do() {
        for (text, registry, repository, tag) in [
            ("nginx", "docker.io", "library/nginx", Some("latest")),
            ("docker.io/nginx:1", "docker.io", "library/nginx", Some("1")),
            ("index.docker.io/library/nginx:1", "docker.io", "library/nginx", Some("1")),
            ("team/app:2", "docker.io", "team/app", Some("2")),
            ("localhost/app", "localhost", "app", Some("latest")),
            ("Registry.Example.com:5000/team/app:1.2", "registry.example.com:5000", "team/app", Some("1.2")),
            ("docker.io/a.b/c:1", "docker.io", "a.b/c", Some("1")),
            ("UPPER/app:1", "UPPER", "app", Some("1")),
            ("LOCALHOST/app:1", "localhost", "app", Some("1")),
        ] {
            let parsed = image(text);
            assert_eq!((parsed.registry(), parsed.repository(), parsed.tag()), (registry, repository, tag), "{text}");
            assert_eq!(image(&parsed.to_string()), parsed, "{text}");
        }
        let pinned = image(&format!("team/app@{A}"));
        assert_eq!((pinned.tag(), pinned.digest()), (None, Some(A)));
    }

    #[test]
    fn the_text_is_as_short_as_people_write_it() {
        for (text, expected) in [
            ("docker.io/library/nginx", "nginx:latest"),
            ("docker.io/team/app:2", "team/app:2"),
            ("docker.io/a.b/c:1", "docker.io/a.b/c:1"),
            ("ghcr.io/team/app:2", "ghcr.io/team/app:2"),
        ] {
            assert_eq!(image(text).to_string(), expected);
        }
    }

    #[test]
    fn a_refusal_says_what_is_wrong() {
        for (text, expected) in [
            ("", "empty"),
            ("app :1", "' ' may not be"),
            ("äpp", "'ä' may not be"),
            ("team/App", "lower-case"),
            ("App", "lower-case"),
            ("a//b", "segments"),
            ("app:", "a tag, or a port"),
            ("app:.1", "a tag"),
            ("ghcr.io/app:", "1 to 128"),
            ("host:port/app", "port"),
            ("app@sha256:abcd", "a digest is"),
            ("app@md5:d41d8cd98f00b204e9800998ecf8427e", "not a digest of a known algorithm"),
            (&"a".repeat(64), "image id"),
            (&"a".repeat(600), "the most is 520"),
            (&format!("app@{}", A.to_uppercase().replace("SHA", "sha")), "lower-case hexadecimal"),
            (&format!("app@{}", &A[..A.len() - 1]), "digest"),
        ] {
            let error = Image::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
            assert!(error.len() < 400, "{text:?}");
        }
    }
}
