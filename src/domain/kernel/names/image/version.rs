//! Versions: the images of a whole pod template, when two of them are the same, and how they differ in words.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::Image;

/// Differences [`difference`] spells out before it counts the rest. Pods rarely have more containers than this.
const DIFFERENCES_SHOWN_MAX: usize = 5;

/// One container of a pod template. Kubernetes gives init and other containers of a pod names from one set, so the name
/// alone identifies it. Written `web` or `init:migrate`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Container {
    /// A container that runs for the life of the pod.
    Main(String),
    Init(String),
}

/// The mark of an init container's name in text. A colon cannot be in a container's name.
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
/// [`Version::same_across`] between two members. The latter is not transitive: `web:1` is the same as `web:1@sha256:a…` and as
/// `web:1@sha256:b…`, which are not the same as each other. So all members are compared with each other, not with one.
///
/// Kept as a sorted slice: a map would set aside room for eleven containers, 1 KiB for each of ten thousand records.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Container, Image>")]
pub struct Version(#[serde(serialize_with = "as_map")] Box<[(Container, Image)]>);

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
        self.0.iter().map(|(container, image)| (container, image))
    }

    /// The image of one container.
    #[must_use]
    pub fn image(&self, container: &Container) -> Option<&Image> {
        let place = self.0.binary_search_by(|(present, _)| present.cmp(container)).ok()?;
        self.0.get(place).map(|(_, image)| image)
    }

    /// Only the containers of these names, which is what a version is of where the annotation `containers` is set.
    ///
    /// # Errors
    /// A name that no container has, so that a typing error does not make every change invisible.
    pub fn only(&self, names: &BTreeSet<String>) -> Result<Self, UnknownContainers> {
        let present: BTreeSet<&str> = self.iter().map(|(container, _)| container.name()).collect();
        let missing: Vec<String> = names.iter().filter(|name| !present.contains(name.as_str())).cloned().collect();
        if !missing.is_empty() {
            let present = present.into_iter().map(str::to_owned).collect();
            return Err(UnknownContainers { missing, present });
        }
        Ok(Self(self.0.iter().filter(|(container, _)| names.contains(container.name())).cloned().collect()))
    }

    /// Only the containers that `other` has too.
    #[must_use]
    pub fn limited_to(&self, other: &Self) -> Self {
        Self(self.0.iter().filter(|(container, _)| other.image(container).is_some()).cloned().collect())
    }

    /// Whether a change from one to the other would be no change of what runs, inside one cluster (decisions 12 and 30): per
    /// container, the same digest, or the same registry, repository and tag where none has one. A digest that only one of
    /// them has is a change: the content may differ. With `same_digest_is_same` off, a new name or tag for the same digest is
    /// a change as well.
    #[must_use]
    pub fn same_content(&self, other: &Self, same_digest_is_same: bool) -> bool {
        self.same_by(other, |mine, theirs| {
            let same_name = (mine.registry(), mine.repository(), mine.tag())
                == (theirs.registry(), theirs.repository(), theirs.tag());
            match (mine.digest(), theirs.digest()) {
                (Some(mine), Some(theirs)) => mine == theirs && (same_digest_is_same || same_name),
                (None, None) => same_name,
                (Some(_), None) | (None, Some(_)) => false,
            }
        })
    }

    /// Whether both have the same containers, and `same` holds for the two images of each.
    pub(super) fn same_by(&self, other: &Self, same: impl Fn(&Image, &Image) -> bool) -> bool {
        self.0.len() == other.0.len()
            && self.iter().zip(other.iter()).all(|((left, mine), (right, theirs))| left == right && same(mine, theirs))
    }
}

impl FromIterator<(Container, Image)> for Version {
    fn from_iter<I: IntoIterator<Item = (Container, Image)>>(images: I) -> Self {
        Self::from(images.into_iter().collect::<BTreeMap<_, _>>())
    }
}

/// Sorted and without duplicates, as the slice has to be.
impl From<BTreeMap<Container, Image>> for Version {
    fn from(images: BTreeMap<Container, Image>) -> Self {
        Self(images.into_iter().collect())
    }
}

fn as_map<S: Serializer>(images: &[(Container, Image)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(images.iter().map(|(container, image)| (container, image)))
}

/// The images in words, for people: `web nginx:1.27, init:migrate team/migrate:4`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (container, image) in self.iter() {
            write!(f, "{separator}{container} {image}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// A version in the words of [`difference`], where there is nothing to compare it with: `web: 1.2.3`.
#[must_use]
pub fn brief(version: &Version) -> String {
    let hidden = version.0.len().saturating_sub(DIFFERENCES_SHOWN_MAX);
    let shown = version.0.iter().take(DIFFERENCES_SHOWN_MAX).map(|(name, image)| format!("{name}: {}", image.short()));
    let mut words = shown.collect::<Vec<_>>().join(", ");
    if hidden > 0 {
        words.push_str(&format!(" and {hidden} more"));
    }
    words
}

/// The changes in words: `web: 1.2.3 → 1.2.4, sidecar added (envoy:1.30)`. Says `no change` if nothing did.
#[must_use]
pub fn difference(old: &Version, new: &Version) -> String {
    let containers: BTreeSet<&Container> = old.iter().chain(new.iter()).map(|(container, _)| container).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn version(images: &[(&str, &str)]) -> Version {
        images.iter().map(|(name, text)| (Container::from((*name).to_owned()), Image::parse(text).unwrap())).collect()
    }

    fn web(text: &str) -> Version {
        version(&[("web", text)])
    }

    #[test]
    fn inside_a_cluster_the_digest_decides_where_both_have_one() {
        let tagged = web(&format!("app:1@{A}"));
        assert!(tagged.same_content(&web(&format!("app:2@{A}")), true));
        assert!(!tagged.same_content(&web(&format!("app:2@{A}")), false));
        assert!(!tagged.same_content(&web(&format!("app:1@{B}")), true));
        assert!(!tagged.same_content(&web("app:1"), true), "pinned, or no longer pinned: the content may differ");
        assert!(!web("app:1").same_content(&tagged, false));
        assert!(!tagged.same_content(&web("app:2"), true));
        assert!(!web("app:1").same_content(&web("ghcr.io/library/app:1"), true));
    }

    #[test]
    fn a_new_digest_under_latest_is_a_new_version() {
        assert!(!web(&format!("app:latest@{A}")).same_content(&web(&format!("app:latest@{B}")), true));
    }

    #[test]
    fn an_added_or_renamed_or_init_container_is_a_new_version() {
        let one = web("app:1");
        assert!(!one.same_content(&version(&[("web", "app:1"), ("init:migrate", "app:1")]), true));
        assert!(!one.same_content(&version(&[("api", "app:1")]), true));
        assert!(!one.same_content(&version(&[("init:web", "app:1")]), true));
    }

    #[test]
    fn only_some_containers_can_make_the_version() {
        let both = version(&[("web", "app:1"), ("init:migrate", "migrate:1")]);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(both.only(&names(&["web"])).unwrap(), web("app:1"));
        assert_eq!(both.only(&names(&["web", "migrate"])).unwrap(), both);
        let error = both.only(&names(&["wep"])).unwrap_err().to_string();
        assert_eq!(error, "no container is named wep; there are migrate, web");
    }

    #[test]
    fn a_difference_is_told_in_words() {
        let with = |more: &str| version(&[("web", "app:1"), ("sidecar", more)]);
        assert_eq!(difference(&web("app:1.2.3"), &web("app:1.2.4")), "web: 1.2.3 → 1.2.4");
        assert_eq!(difference(&web("app:1"), &web("app:1")), "no change");
        assert_eq!(difference(&web("app:1"), &with("envoy:2")), "sidecar added (envoy:2)");
        assert_eq!(difference(&with("envoy:2"), &web("app:2")), "sidecar removed, web: 1 → 2");
        assert_eq!(difference(&web("app:1"), &web("team/app:1")), "web: app:1 → team/app:1");
        assert_eq!(
            difference(&web(&format!("app:1@{A}")), &web(&format!("app:1@{B}"))),
            "web: 1@aaaaaaaaaaaa → 1@bbbbbbbbbbbb"
        );
        let nearly = format!("{}b", &A[..A.len() - 1]);
        assert!(difference(&web(&format!("app@{A}")), &web(&format!("app@{nearly}"))).contains(&nearly));
    }

    #[test]
    fn a_long_difference_is_counted() {
        let many = |tag: &str| {
            (0..9).map(|i| (Container::Main(format!("c{i}")), Image::parse(&format!("app:{tag}")).unwrap())).collect()
        };
        assert!(difference(&many("1"), &many("2")).ends_with("c4: 1 → 2 and 4 more"));
    }

    #[test]
    fn a_version_is_stored_as_a_map_of_texts() {
        let both = version(&[("web", "docker.io/library/nginx:1"), ("init:migrate", "team/migrate:4")]);
        let stored = serde_json::to_string(&both).unwrap();
        assert_eq!(stored, r#"{"web":"nginx:1","init:migrate":"team/migrate:4"}"#);
        assert_eq!(serde_json::from_str::<Version>(&stored).unwrap(), both);
        assert!(serde_json::from_str::<Version>(r#"{"web":"not an image"}"#).is_err());
    }
}
