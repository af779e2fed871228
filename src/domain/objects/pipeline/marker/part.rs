//! Parts of an image reference that a marker may set.
//!
//! The value at the marker is a reference (`ghcr.io/shop/web:1.2.2`), or that part alone, as Helm values have it
//! (`tag: 1.2.2`). A revision is a tag, a digest, a tag with a digest (`1.2.3@sha256:…`), or a whole reference.

use kernel::id::Revision;
use kernel::names::image::Image;

/// The part that a marker sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The whole value, to the revision as it is.
    Whole,
    /// The tag, of a reference or alone.
    Tag,
    /// The digest, of a reference or alone.
    Digest,
    /// The part before tag and digest.
    Name,
    /// All of a reference; its name stays if the revision has none.
    Image,
}

/// A reference in its parts, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reference<'a> {
    name: Option<&'a str>,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

impl Part {
    /// The part that the end of a marker names; `None` if it is the name of another environment.
    pub(super) fn of_suffix(suffix: &str) -> Option<Result<Self, String>> {
        if suffix.is_empty() {
            return Some(Ok(Self::Whole));
        }
        Some(match suffix.strip_prefix(':')? {
            "tag" => Ok(Self::Tag),
            "digest" => Ok(Self::Digest),
            "name" => Ok(Self::Name),
            "image" => Ok(Self::Image),
            other => Err(format!("{other:?} is no part of an image reference: write tag, digest, name or image")),
        })
    }

    /// The value with this part set to the revision's.
    pub(super) fn set(self, value: &str, revision: &Revision) -> Result<String, String> {
        if self == Self::Whole {
            return Ok(revision.0.clone());
        }
        let new = Reference::of_revision(&revision.0);
        let missing = |part: &str| format!("the revision {revision} has no {part}");
        let old = Reference::of_image(value);
        let set = match self {
            Self::Whole => new,
            Self::Tag => {
                let tag = Some(new.tag.ok_or_else(|| missing("tag"))?);
                if value.contains(['/', ':', '@']) {
                    Reference { tag, ..old }
                } else {
                    Reference { name: None, tag, digest: None }
                }
            }
            Self::Digest => {
                let digest = Some(new.digest.ok_or_else(|| missing("digest"))?);
                if is_digest(value) { Reference { name: None, tag: None, digest } } else { Reference { digest, ..old } }
            }
            Self::Name => Reference { name: Some(new.name.ok_or_else(|| missing("name of an image"))?), ..old },
            Self::Image => Reference { name: new.name.or(old.name), ..new },
        };
        let is_stale = |set: Option<&str>, new: Option<&str>| set.is_some() && set != new;
        if self != Self::Name && (is_stale(set.tag, new.tag) || is_stale(set.digest, new.digest)) {
            return Err(format!(
                "{value} has a tag and a digest, and only one of them would change: use the suffix image"
            ));
        }
        let complete = Reference { name: set.name.or(Some("name")), ..set }.to_string();
        Image::parse(&complete).map_err(|error| error.to_string())?;
        Ok(set.to_string())
    }
}

impl<'a> Reference<'a> {
    fn of_image(text: &'a str) -> Self {
        let (rest, digest) = split(text, text.find('@'));
        let last = rest.rfind('/').unwrap_or_default();
        let (name, tag) = split(rest, rest.rfind(':').filter(|colon| *colon >= last));
        Self { name: Some(name), tag, digest }
    }

    fn of_revision(text: &'a str) -> Self {
        if is_digest(text) {
            return Self { name: None, tag: None, digest: Some(text) };
        }
        let (rest, digest) = split(text, text.find('@'));
        if rest.contains(['/', ':']) {
            return Self::of_image(text);
        }
        Self { name: None, tag: Some(rest), digest }
    }
}

/// The texts before and after a separator of one byte.
fn split(text: &str, at: Option<usize>) -> (&str, Option<&str>) {
    let parts = at.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?)));
    parts.map_or((text, None), |(before, after)| (before, Some(after)))
}

fn is_digest(text: &str) -> bool {
    Image::parse(&format!("name@{text}")).is_ok()
}

impl std::fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let before = [("", self.name), (":", self.tag), ("@", self.digest)];
        let mut separated = false;
        for (separator, part) in before {
            let Some(part) = part else { continue };
            write!(f, "{}{part}", if separated { separator } else { "" })?;
            separated = true;
        }
        Ok(())
    }
}
