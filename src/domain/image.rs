//! Image references and versions: what runs in a workload's containers, and when two of those are the same.
//!
//! A reference is read by the grammar of <https://github.com/distribution/reference>, which the container runtimes use,
//! and then completed the way they complete it: no registry is `docker.io`, one word is in `library/`, and neither tag nor
//! digest is `latest`. `registry:5000/app` therefore has a port and no tag, and `app:5000` a tag and no port.
//!
//! Not for: asking a registry anything. A tag that moved without the reference changing is invisible here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use container_image_dist_ref::ImgRef;
use serde::{Deserialize, Serialize};

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

/// Differences [`difference`] spells out before it counts the rest. Pods rarely have more containers than this.
const DIFFERENCES_SHOWN_MAX: usize = 5;

/// How much of a refused reference an error repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// An image reference, complete and valid. Serialised as its text; see [`fmt::Display`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Image {
    registry: Box<str>,
    repository: Box<str>,
    tag: Option<Box<str>>,
    digest: Option<Box<str>>,
}

/// Why a text is not an image reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an image reference: {problem}")]
pub struct Error {
    text: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("it is empty")]
    Empty,
    #[error("it has {0} characters, the most is {REFERENCE_CHARS_MAX}")]
    TooLong(usize),
    #[error("{0:?} may not be in one")]
    Character(char),
    #[error("{kind:?} at character {at}")]
    Grammar { kind: container_image_dist_ref::err::Kind, at: usize },
    #[error("its repository is not all lower case")]
    UpperCase,
    #[error("64 hexadecimal digits are an image id, which no registry knows")]
    Id,
    #[error("{0:?} is not a digest of a known algorithm, in lower-case hexadecimal digits")]
    Digest(String),
}

impl Image {
    /// Parses and completes a reference.
    ///
    /// # Errors
    /// What a container runtime would refuse too, with what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse(text).map_err(|problem| Error { text: text.chars().take(SHOWN_CHARS_MAX).collect(), problem })
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

    /// The repository as its owner knows it wherever it is mirrored: without the registry, and without the longest of
    /// `prefixes` it begins with. A prefix is whole path segments, with or without a registry: `mirror`,
    /// `eu.registry.example.com/proxy`.
    fn portable_repository(&self, prefixes: &[String]) -> &str {
        let without = |prefix: &String| {
            let prefix = prefix.trim_matches('/');
            let in_repository = match prefix.strip_prefix(&*self.registry).and_then(|rest| rest.strip_prefix('/')) {
                Some(with_registry) => with_registry,
                None => prefix,
            };
            if in_repository.is_empty() { None } else { self.repository.strip_prefix(in_repository)?.strip_prefix('/') }
        };
        prefixes.iter().filter_map(without).min_by_key(|rest| rest.len()).unwrap_or(&self.repository)
    }

    /// Tag and digest, the digest shortened: `1.2.3`, `1.2.3@0a1b2c3d4e5f`.
    fn short(&self) -> String {
        let digest = self.digest().map(|digest| {
            let digits = digest.split_once(':').map_or(digest, |(_, digits)| digits);
            digits.chars().take(DIGEST_DIGITS_SHOWN).collect::<String>()
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
    let parsed = ImgRef::new(text)
        .map_err(|error| Problem::Grammar { kind: error.kind(), at: usize::from(error.index()).saturating_add(1) })?;
    let name = parsed.name();
    let (registry, repository) = complete_name(name.to_str());
    if repository.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(Problem::UpperCase);
    }
    let digest = parsed.digest().map(|digest| digest.to_str()).map(check_digest).transpose()?;
    let tag = parsed.tag().or(if digest.is_none() { Some(TAG_DEFAULT) } else { None });
    Ok(Image {
        registry: registry.into_boxed_str(),
        repository: repository.into_boxed_str(),
        tag: tag.map(Into::into),
        digest: digest.map(Into::into),
    })
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
    if valid { Ok(digest) } else { Err(Problem::Digest(digest.chars().take(SHOWN_CHARS_MAX).collect())) }
}

impl FromStr for Image {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Image {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

impl From<Image> for String {
    fn from(image: Image) -> Self {
        image.to_string()
    }
}

/// One container of a pod template. Kubernetes gives init and other containers of a pod names from one set, so the name
/// alone identifies it. Written `web` or `init:migrate`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Container {
    /// A container that runs for the life of the pod.
    Main(String),
    /// An init container.
    Init(String),
}

/// What marks an init container's name in text. A colon cannot be in a container's name.
const INIT_MARK: &str = "init:";

impl Container {
    /// The container's name in the pod template.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Main(name) | Self::Init(name) => name,
        }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main(name) => f.write_str(name),
            Self::Init(name) => write!(f, "{INIT_MARK}{name}"),
        }
    }
}

impl From<String> for Container {
    fn from(text: String) -> Self {
        match text.strip_prefix(INIT_MARK) {
            Some(name) => Self::Init(name.to_owned()),
            None => Self::Main(text),
        }
    }
}

impl From<Container> for String {
    fn from(container: Container) -> Self {
        container.to_string()
    }
}

/// The images of a pod template, init containers included. Serialised as a map of container to image text.
///
/// `==` compares every letter. Whether two versions mean the same is [`Version::same_content`] inside one cluster and
/// [`Version::same_across`] between members. Neither is transitive: `web:1` is the same as `web:1@sha256:a…` and as
/// `web:1@sha256:b…`, which are not the same as each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(BTreeMap<Container, Image>);

/// Containers that were asked for and are not in the pod template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no container is named {}; there are {}", .missing.join(", "), .present.join(", "))]
pub struct UnknownContainers {
    missing: Vec<String>,
    present: Vec<String>,
}

impl Version {
    /// The images, by container.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Container, &Image)> {
        self.0.iter()
    }

    /// The image of one container.
    #[must_use]
    pub fn image(&self, container: &Container) -> Option<&Image> {
        self.0.get(container)
    }

    /// Only the containers of these names, which is what a version is of where the annotation `containers` is set.
    ///
    /// # Errors
    /// A name that no container has, so that a typing error does not make every change invisible.
    pub fn only(&self, names: &BTreeSet<String>) -> Result<Self, UnknownContainers> {
        let present: BTreeSet<&str> = self.0.keys().map(Container::name).collect();
        let missing: Vec<String> = names.iter().filter(|name| !present.contains(name.as_str())).cloned().collect();
        if !missing.is_empty() {
            let present = present.into_iter().map(str::to_owned).collect();
            return Err(UnknownContainers { missing, present });
        }
        let chosen = self.0.iter().filter(|(container, _)| names.contains(container.name()));
        Ok(Self(chosen.map(|(container, image)| (container.clone(), image.clone())).collect()))
    }

    /// Whether a change from one to the other would be no change of what runs, inside one cluster (decision 12): per
    /// container, digests compared where both have one, else registry, repository and tag. With `same_digest_is_same`
    /// off, a new name or tag for the same digest is a change as well.
    #[must_use]
    pub fn same_content(&self, other: &Self, same_digest_is_same: bool) -> bool {
        self.same_by(other, |mine, theirs| {
            let same_name = (mine.registry(), mine.repository(), mine.tag())
                == (theirs.registry(), theirs.repository(), theirs.tag());
            match (mine.digest(), theirs.digest()) {
                (Some(mine), Some(theirs)) => mine == theirs && (same_digest_is_same || same_name),
                _ => same_name,
            }
        })
    }

    /// Whether two members run the same (decision 12): like [`Self::same_content`], but the registry does not count, nor
    /// does the longest of `registry_prefixes` a repository begins with, so that regional registries and mirrors are no
    /// obstacle.
    #[must_use]
    pub fn same_across(&self, other: &Self, registry_prefixes: &[String]) -> bool {
        self.same_by(other, |mine, theirs| match (mine.digest(), theirs.digest()) {
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => {
                mine.tag() == theirs.tag()
                    && mine.portable_repository(registry_prefixes) == theirs.portable_repository(registry_prefixes)
            }
        })
    }

    fn same_by(&self, other: &Self, same: impl Fn(&Image, &Image) -> bool) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|((left, mine), (right, theirs))| left == right && same(mine, theirs))
    }
}

impl FromIterator<(Container, Image)> for Version {
    fn from_iter<I: IntoIterator<Item = (Container, Image)>>(images: I) -> Self {
        Self(images.into_iter().collect())
    }
}

/// The images in words, for people: `web nginx:1.27, init:migrate team/migrate:4`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (container, image) in &self.0 {
            write!(f, "{separator}{container} {image}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// What changed, in words: `web: 1.2.3 → 1.2.4, sidecar added (envoy:1.30)`. Says `no change` if nothing did.
#[must_use]
pub fn difference(old: &Version, new: &Version) -> String {
    let containers: BTreeSet<&Container> = old.0.keys().chain(new.0.keys()).collect();
    let changes: Vec<String> = containers
        .into_iter()
        .filter_map(|container| match (old.image(container), new.image(container)) {
            (Some(before), Some(after)) if before == after => None,
            (Some(before), Some(after)) => Some(format!("{container}: {}", change(before, after))),
            (Some(_), None) => Some(format!("{container} removed")),
            (None, Some(after)) => Some(format!("{container} added ({after})")),
            (None, None) => None,
        })
        .collect();
    let hidden = changes.len().saturating_sub(DIFFERENCES_SHOWN_MAX);
    let mut words = changes.into_iter().take(DIFFERENCES_SHOWN_MAX).collect::<Vec<_>>().join(", ");
    if words.is_empty() {
        words.push_str("no change");
    }
    if hidden > 0 {
        words.push_str(&format!(" and {hidden} more"));
    }
    words
}

/// The shortest pair of texts that shows the difference of two images.
fn change(before: &Image, after: &Image) -> String {
    let same_name = (before.registry(), before.repository()) == (after.registry(), after.repository());
    let (old, new) = (before.short(), after.short());
    // Digests may differ only beyond the digits shown.
    if same_name && old != new { format!("{old} → {new}") } else { format!("{before} → {after}") }
}
