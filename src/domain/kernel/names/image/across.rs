//! Images between the members of a group: when two members run the same code, and how it is said that they do not (decision 51).
//!
//! Members differ by registry, project and pull-through prefix by right, so of a repository only the last segment counts. Where even
//! that says nothing, because one pins by digest alone and the other does not, the owner's word does: `allclear.dev/group-version`.
//!
//! Not for a change inside one cluster; that is [`Version::same_content`].

use std::collections::BTreeSet;

use super::{Container, Image, Version};
use crate::text;

/// Containers that are named where they differ by their tags: a tag has a few characters.
const TAGS_SHOWN_MAX: usize = 5;

/// Containers that are named with whole references: each may have 520 characters.
const REFERENCES_SHOWN_MAX: usize = 2;

/// Bytes of an owner's version of the group that are shown.
const GROUP_VERSION_SHOWN_MAX: usize = 64;

/// The part of a member's version that others compare.
#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    pub version: &'a Version,
    /// Their owner's name for them in the whole group.
    pub group_version: Option<&'a str>,
}

/// Two members that do not run the same, in words: what each is at, as far as they differ. The two texts are never equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The version of the one.
    pub one: String,
    /// The version of the other.
    pub other: String,
    /// Whether the first text is enough for a person: another tag is another version.
    pub is_plain: bool,
    /// No rollout of the same code would make them equal: only their owner can say that they are.
    pub needs_owner: bool,
}

impl Code<'_> {
    /// Whether both run the same: the same version of the group where both have one, else the same images. Not transitive, so
    /// all members are compared with each other.
    #[must_use]
    pub fn is_same(&self, other: &Code<'_>) -> bool {
        match (self.group_version, other.group_version) {
            (Some(one), Some(other)) => one == other,
            (Some(_) | None, _) => self.version.same_across(other.version),
        }
    }

    /// How they differ; `None` where they do not.
    #[must_use]
    pub fn apart(&self, other: &Code<'_>) -> Option<Apart> {
        if self.is_same(other) {
            return None;
        }
        if let (Some(one), Some(other)) = (self.group_version, other.group_version) {
            let shown =
                |version| format!("allclear.dev/group-version {:?}", text::first(version, GROUP_VERSION_SHOWN_MAX));
            let (one, other) = (shown(one), shown(other));
            return Some(Apart { one, other, is_plain: false, needs_owner: false });
        }
        Some(apart(self.version, other.version))
    }
}

impl Version {
    /// Whether two members run the same images: by container the same digest where both have one, else the same tag and the same
    /// last segment of the repository. Of what is beside them, the values of an annotation that makes the version of both.
    #[must_use]
    pub fn same_across(&self, other: &Self) -> bool {
        let beside = self.beside().zip(other.beside());
        self.same_by(other, same_image) && beside.is_none_or(|(mine, theirs)| mine.same_across(theirs))
    }
}

impl Image {
    /// The last segment of the repository: what is built, wherever it is stored.
    fn last_segment(&self) -> &str {
        self.repository().rsplit('/').next().unwrap_or_default()
    }
}

fn same_image(one: &Image, other: &Image) -> bool {
    match (one.digest(), other.digest()) {
        (Some(one), Some(other)) => one == other,
        (Some(_) | None, _) => one.tag() == other.tag() && one.last_segment() == other.last_segment(),
    }
}

/// A container, and its image in both versions.
struct Pair<'a> {
    container: &'a Container,
    one: Option<&'a Image>,
    other: Option<&'a Image>,
}

fn apart(one: &Version, other: &Version) -> Apart {
    let beside = one.beside().zip(other.beside()).filter(|(one, other)| !one.same_across(other));
    if let Some((one, other)) = beside {
        return Apart { one: one.words(), other: other.words(), is_plain: true, needs_owner: false };
    }
    let containers: BTreeSet<&Container> = one.iter().chain(other.iter()).map(|(container, _)| container).collect();
    let pair = |container| Pair { container, one: one.image(container), other: other.image(container) };
    let differs = |pair: &Pair<'_>| !pair.one.zip(pair.other).is_some_and(|(one, other)| same_image(one, other));
    let pairs: Vec<Pair<'_>> = containers.into_iter().map(pair).filter(differs).collect();
    let tags: Vec<(String, String)> = pairs.iter().filter_map(by_tag).collect();
    if !tags.is_empty() {
        let (one, other) = tags.into_iter().unzip();
        return Apart {
            one: in_a_row(one, TAGS_SHOWN_MAX),
            other: in_a_row(other, TAGS_SHOWN_MAX),
            is_plain: true,
            needs_owner: false,
        };
    }
    let named = |of: fn(&Pair<'_>) -> String| in_a_row(pairs.iter().map(of).collect(), REFERENCES_SHOWN_MAX);
    Apart {
        one: named(|pair| whole(pair.container, pair.one)),
        other: named(|pair| whole(pair.container, pair.other)),
        is_plain: false,
        needs_owner: true,
    }
}

/// The two tags of a container, if another tag is what differs: that is what an ordinary rollout brings.
fn by_tag(Pair { container, one, other }: &Pair<'_>) -> Option<(String, String)> {
    let (one, other) = (*one)?.tag().and((*other)?.tag()).and(one.zip(*other))?;
    (one.tag() != other.tag())
        .then(|| (format!("{container}: {}", one.short()), format!("{container}: {}", other.short())))
}

fn whole(container: &Container, image: Option<&Image>) -> String {
    image.map_or_else(|| format!("{container}: none"), |image| format!("{container}: {image}"))
}

/// The first of these, and how many more there are.
fn in_a_row(mut texts: Vec<String>, most: usize) -> String {
    let hidden = texts.len().saturating_sub(most);
    texts.truncate(most);
    let shown = texts.join(", ");
    if hidden > 0 { format!("{shown} and {hidden} more") } else { shown }
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

    fn said(one: &Version, other: &Version) -> (String, String) {
        let code = |version| Code { version, group_version: None };
        let apart = code(one).apart(&code(other)).unwrap();
        (apart.one, apart.other)
    }

    #[test]
    fn registries_projects_and_prefixes_do_not_count() {
        let eu = web("europe-west1-docker.pkg.dev/shop-eu/images/app:1");
        for same in [
            "us-east1-docker.pkg.dev/shop-us/images/app:1",
            "123456789012.dkr.ecr.us-east-1.amazonaws.com/mirror/docker-hub/team/app:1",
            "app:1",
            &format!("ghcr.io/team/app:1@{A}"),
        ] {
            assert!(eu.same_across(&web(same)) && web(same).same_across(&eu), "{same}");
        }
        for other in ["us-east1-docker.pkg.dev/shop-us/images/app:2", "shop-eu/images/web-app:1", &format!("app@{A}")] {
            assert!(!eu.same_across(&web(other)) && !web(other).same_across(&eu), "{other}");
        }
    }

    #[test]
    fn digests_that_are_known_are_equal_whatever_the_names() {
        assert!(web(&format!("eu/app:1@{A}")).same_across(&web(&format!("us/other@{A}"))));
        assert!(!web(&format!("app:1@{A}")).same_across(&web(&format!("app:1@{B}"))));
    }

    #[test]
    fn the_word_of_the_owner_counts_only_where_both_have_it() {
        let (tag, digest, next) = (web("app:4"), web(&format!("app@{A}")), web("app:5"));
        let code = |version, group_version| Code { version, group_version };
        assert!(code(&tag, Some("4")).is_same(&code(&digest, Some("4"))));
        assert!(!code(&tag, Some("4")).is_same(&code(&tag, Some("5"))), "it counts, and the images do not");
        assert!(!code(&tag, Some("4")).is_same(&code(&digest, None)));
        assert!(code(&tag, Some("4")).is_same(&code(&tag, None)) && !code(&tag, Some("4")).is_same(&code(&next, None)));
        let apart = code(&tag, Some("4")).apart(&code(&tag, Some("5"))).unwrap();
        assert_eq!(apart.one, "allclear.dev/group-version \"4\"");
        assert!(apart.one != apart.other && !apart.needs_owner);
    }

    #[test]
    fn what_cannot_be_compared_is_shown_whole() {
        let (tag, digest) = (web("eu.example.com/shop/app:4"), web(&format!("us.example.com/shop/app@{A}")));
        let (one, other) = said(&tag, &digest);
        assert_eq!(one, "web: eu.example.com/shop/app:4");
        assert_eq!(other, format!("web: us.example.com/shop/app@{A}"));
        assert_eq!(said(&web("eu/app:4"), &web("eu/web:4")), ("web: eu/app:4".to_owned(), "web: eu/web:4".to_owned()));
        let nearly = format!("{}b", &A[..A.len() - 1]);
        let (one, other) = said(&web(&format!("app:4@{A}")), &web(&format!("app:4@{nearly}")));
        assert_ne!(one, other, "they differ beyond the digits that are usually shown");
    }

    #[test]
    fn another_tag_is_said_in_short_and_only_of_what_differs() {
        let many = |last: &str| {
            let all = (0..8).map(|i| (format!("c{i}"), if i == 7 { last } else { "app:1" }));
            all.map(|(name, image)| (Container::from(name), Image::parse(image).unwrap())).collect::<Version>()
        };
        assert_eq!(said(&many("app:2"), &many("app:3")), ("c7: 2".to_owned(), "c7: 3".to_owned()));
        let with = version(&[("web", "app:1"), ("sidecar", "envoy:2")]);
        assert_eq!(said(&web("app:1"), &with), ("sidecar: none".to_owned(), "sidecar: envoy:2".to_owned()));
    }
}
