//! Versions: the images of a whole pod template, when two of them are the same, and how they differ in words.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Image;
use super::beside::{self, Beside, Fields};

/// Differences [`difference`] spells out before it counts the rest. Pods rarely have more containers than this.
const DIFFERENCES_SHOWN_MAX: usize = 5;

/// One container of a pod template, or one volume that is an image. Kubernetes gives init and other containers of a pod names from one
/// set, so the name alone identifies them. Written `web`, `init:migrate` or `volume:content`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Container {
    /// A container that runs for the life of the pod.
    Main(String),
    Init(String),
    /// A volume, with its mark: so it is called everywhere, also where its owner chooses what counts.
    /// <https://kubernetes.io/docs/concepts/storage/volumes/#image>
    Volume(String),
}

/// The mark of an init container's name in text. A colon cannot be in a container's name.
const INIT_MARK: &str = "init:";

/// The mark of a volume's name.
const VOLUME_MARK: &str = "volume:";

impl Container {
    /// The volume of this name.
    #[must_use]
    pub fn volume(name: &str) -> Self {
        Self::Volume(format!("{VOLUME_MARK}{name}"))
    }

    /// Its name as owners write it: the container's in the pod template; a volume's with its mark.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Main(name) | Self::Init(name) | Self::Volume(name) => name,
        }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main(name) | Self::Volume(name) => f.write_str(name),
            Self::Init(name) => write!(f, "{INIT_MARK}{name}"),
        }
    }
}

impl From<String> for Container {
    fn from(text: String) -> Self {
        match text.strip_prefix(INIT_MARK) {
            Some(name) => Self::Init(name.to_owned()),
            None if text.starts_with(VOLUME_MARK) => Self::Volume(text),
            None => Self::Main(text),
        }
    }
}

impl From<Container> for String {
    fn from(container: Container) -> Self {
        container.to_string()
    }
}

/// The images of a pod template, those of init containers and volumes included, and what else makes a version where an owner wants it.
/// Serialised as a map of container to image text; what is beside them has keys that no container can have.
///
/// `==` compares every letter. Whether two versions mean the same is [`Version::same_content`] inside one cluster and
/// [`Version::same_across`] between two members. The latter is not transitive: `web:1` is the same as `web:1@sha256:a…` and as
/// `web:1@sha256:b…`, which are not the same as each other. So all members are compared with each other, not with one.
///
/// Kept as a sorted slice: a map would set aside room for eleven containers, 1 KiB for each of ten thousand records.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    images: Box<[(Container, Image)]>,
    beside: Option<Box<Beside>>,
}

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
        self.images.iter().map(|(container, image)| (container, image))
    }

    /// What makes it beside its images.
    #[must_use]
    pub fn beside(&self) -> Option<&Beside> {
        self.beside.as_deref()
    }

    /// The same images, and this.
    #[must_use]
    pub fn with(self, beside: Option<Beside>) -> Self {
        Self { beside: beside.map(Box::new), ..self }
    }

    /// The image of one container.
    #[must_use]
    pub fn image(&self, container: &Container) -> Option<&Image> {
        let place = self.images.binary_search_by(|(present, _)| present.cmp(container)).ok()?;
        self.images.get(place).map(|(_, image)| image)
    }

    /// Whether a pod with these images may have been made from a template with those of `template`. It may have containers that the
    /// template has not: sidecars are injected on the way.
    #[must_use]
    pub fn has_images_of(&self, template: &Self) -> bool {
        template.iter().all(|(container, image)| self.image(container) == Some(image))
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
        Ok(self.only_those(|container| names.contains(container.name())))
    }

    /// Only the containers that `other` has too.
    #[must_use]
    pub fn limited_to(&self, other: &Self) -> Self {
        self.only_those(|container| other.image(container).is_some())
    }

    /// Without the images of volumes, which releases up to 2026-11-27 did not read.
    #[must_use]
    pub fn without_volumes(&self) -> Self {
        self.only_those(|container| !matches!(container, Container::Volume(_)))
    }

    fn only_those(&self, counts: impl Fn(&Container) -> bool) -> Self {
        let images = self.images.iter().filter(|(container, _)| counts(container)).cloned().collect();
        Self { images, beside: self.beside.clone() }
    }

    /// What is beside the images, only if `other` has the same sort of it. Another choice of what counts changes nothing that runs.
    #[must_use]
    pub fn compared_with(&self, other: &Self) -> Self {
        let is_comparable = self.beside().zip(other.beside()).is_some_and(|(mine, theirs)| mine.is_comparable(theirs));
        Self { beside: self.beside.clone().filter(|_| is_comparable), images: self.images.clone() }
    }

    /// Whether a change from one to the other would be no change of what runs, inside one cluster (decisions 12 and 30): per
    /// container, the same digest, or the same registry, repository and tag where none has one. A digest that only one of
    /// them has is a change: the content may differ. With `same_digest_is_same` off, a new name or tag for the same digest is
    /// a change as well. What is beside the images has to be equal.
    #[must_use]
    pub fn same_content(&self, other: &Self, same_digest_is_same: bool) -> bool {
        self.beside == other.beside && self.same_images(other, same_digest_is_same)
    }

    fn same_images(&self, other: &Self, same_digest_is_same: bool) -> bool {
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
        self.images.len() == other.images.len()
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
        Self { images: images.into_iter().collect(), beside: None }
    }
}

/// The key of the hashes of a pod template. A change of what is hashed needs another one.
const TEMPLATE_KEY: &str = "template:1";

/// What the key of an annotation begins with.
const ANNOTATION_MARK: &str = "annotation:";

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.images.len() + usize::from(self.beside.is_some())))?;
        for (container, image) in self.iter() {
            map.serialize_entry(container, image)?;
        }
        match self.beside() {
            None => {}
            Some(Beside::Template(fields)) => {
                let fields: BTreeMap<&str, String> =
                    fields.iter().map(|(path, hash)| (path, format!("{hash:08x}"))).collect();
                map.serialize_entry(TEMPLATE_KEY, &fields)?;
            }
            Some(Beside::Annotation { key, value }) => {
                map.serialize_entry(&format!("{ANNOTATION_MARK}{key}"), value)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Version;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of containers and their images")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut images, mut beside) = (BTreeMap::new(), None);
                while let Some(key) = map.next_key::<String>()? {
                    if key == TEMPLATE_KEY {
                        let read = |(path, hash): (Box<str>, String)| Ok((path, u32::from_str_radix(&hash, 16)?));
                        let fields = map.next_value::<BTreeMap<Box<str>, String>>()?.into_iter().map(read);
                        let fields: Result<Fields, std::num::ParseIntError> = fields.collect();
                        beside = Some(Beside::Template(fields.map_err(A::Error::custom)?));
                    } else if let Some(key) = key.strip_prefix(ANNOTATION_MARK) {
                        beside = Some(Beside::Annotation { key: key.into(), value: map.next_value()? });
                    } else {
                        images.insert(Container::from(key), map.next_value()?);
                    }
                }
                Ok(Version::from(images).with(beside))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

/// The images in words, for people: `web nginx:1.27, init:migrate team/migrate:4`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (container, image) in self.iter() {
            write!(f, "{separator}{container} {image}")?;
            separator = ", ";
        }
        match self.beside().map(Beside::words).filter(|words| !words.is_empty()) {
            Some(words) => write!(f, "{separator}{words}"),
            None => Ok(()),
        }
    }
}

/// A version in the words of [`difference`], where there is nothing to compare it with: `web: 1.2.3`.
#[must_use]
pub fn brief(version: &Version) -> String {
    let hidden = version.images.len().saturating_sub(DIFFERENCES_SHOWN_MAX);
    let shown = version.iter().take(DIFFERENCES_SHOWN_MAX).map(|(name, image)| format!("{name}: {}", image.short()));
    let beside = version.beside().map(Beside::words).filter(|words| !words.is_empty());
    let mut words = shown.chain(beside).collect::<Vec<_>>().join(", ");
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
        .chain((old.beside() != new.beside()).then(|| beside::change(old.beside(), new.beside())))
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
    fn the_image_of_a_volume_counts_and_is_chosen_by_its_mark() {
        let content = |tag: &str| version(&[("web", "app:1"), ("volume:content", &format!("site:{tag}"))]);
        assert!(!content("1").same_content(&content("2"), true) && !content("1").same_across(&content("2")));
        assert_eq!(difference(&content("1"), &content("2")), "volume:content: 1 → 2");
        assert!(content("1").without_volumes().same_content(&content("2").without_volumes(), true));
        let names = BTreeSet::from(["volume:content".to_owned()]);
        assert_eq!(content("1").only(&names).unwrap(), version(&[("volume:content", "site:1")]));
        let unmarked = BTreeSet::from(["content".to_owned()]);
        assert!(content("1").only(&unmarked).unwrap_err().to_string().ends_with("there are volume:content, web"));
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
