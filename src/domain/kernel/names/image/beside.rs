//! What makes a version beside its images, where an owner or the configuration asks for it: the whole pod template, or the value of one
//! annotation.
//!
//! Of a template only hashes are kept, by field: its environment may hold secrets, and a person wants to know which field changed. Not
//! for reading objects; the adapter does that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::text::{self, fingerprint};

/// What is a change of a workload. Its images always are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionOf {
    #[default]
    Images,
    /// Whatever makes the controller make new pods.
    Template,
    /// Another value of the annotation with this key, of the pod template or of the object.
    Annotation(Box<str>),
}

/// Why a text is no [`VersionOf`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is none of `images`, `template` and `annotation KEY`, with a key as Kubernetes has them: `example.com/site-version`"
)]
pub struct NotAVersionOf {
    text: String,
}

/// Longest key of an annotation: a prefix of 253 characters, a slash, and a name of 63.
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations/#syntax-and-character-set>
const KEY_CHARS_MAX: usize = 317;

/// How much of a refused text an error repeats.
const SHOWN_CHARS_MAX: usize = 80;

impl VersionOf {
    /// Reads `images`, `template` or `annotation KEY`.
    ///
    /// # Errors
    /// Any other text.
    pub fn parse(text: &str) -> Result<Self, NotAVersionOf> {
        let refused = || NotAVersionOf { text: text::first(text, SHOWN_CHARS_MAX).to_owned() };
        match text.trim().split_once(char::is_whitespace) {
            None if text.trim() == "images" => Ok(Self::Images),
            None if text.trim() == "template" => Ok(Self::Template),
            Some(("annotation", key)) if is_key(key.trim()) => Ok(Self::Annotation(key.trim().into())),
            None | Some(_) => Err(refused()),
        }
    }
}

impl fmt::Display for VersionOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Images => f.write_str("images"),
            Self::Template => f.write_str("template"),
            Self::Annotation(key) => write!(f, "annotation {key}"),
        }
    }
}

fn is_key(text: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    text.len() <= KEY_CHARS_MAX && text.matches('/').count() <= 1 && text.split('/').all(is_part)
}

/// The part of a version that is no image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Beside {
    Template(Fields),
    Annotation {
        key: Box<str>,
        /// `None` where the workload has no such annotation.
        value: Option<Box<str>>,
    },
}

/// Bytes of a value of an annotation that is kept as it is; of a longer one its beginning and a hash.
const VALUE_BYTES_MAX: usize = 128;

/// Characters of a longer value that are kept.
const VALUE_CHARS_SHOWN: usize = 40;

impl Beside {
    /// The value of an annotation.
    pub fn annotation(key: &str, value: Option<&str>) -> Self {
        let kept = |value: &str| match value.len() {
            0..=VALUE_BYTES_MAX => value.into(),
            _ => format!("{}… ({:016x})", text::first(value, VALUE_CHARS_SHOWN), fingerprint(value)).into(),
        };
        Self::Annotation { key: key.into(), value: value.map(kept) }
    }

    /// Whether both say the same thing of a workload, so that they can be compared.
    pub fn is_comparable(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Template(_), Self::Template(_)) => true,
            (Self::Annotation { key: one, .. }, Self::Annotation { key: other, .. }) => one == other,
            (Self::Template(_) | Self::Annotation { .. }, _) => false,
        }
    }

    /// Whether another member's is the same, as far as members compare it: templates differ between clusters by right.
    pub(super) fn same_across(&self, other: &Self) -> bool {
        matches!(self, Self::Template(_)) || !self.is_comparable(other) || self == other
    }

    /// Its value in words, for people; empty where there is nothing to show.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Template(_) => String::new(),
            Self::Annotation { key, value } => format!("{key} {}", shown(value.as_deref())),
        }
    }

    fn of(&self) -> VersionOf {
        match self {
            Self::Template(_) => VersionOf::Template,
            Self::Annotation { key, .. } => VersionOf::Annotation(key.clone()),
        }
    }
}

/// Two that differ, in words.
pub(super) fn change(old: Option<&Beside>, new: Option<&Beside>) -> String {
    match (old, new) {
        (Some(Beside::Annotation { key: one, value: old }), Some(Beside::Annotation { key, value: new }))
            if one == key =>
        {
            format!("{key}: {} → {}", shown(old.as_deref()), shown(new.as_deref()))
        }
        (Some(Beside::Template(old)), Some(Beside::Template(new))) => format!("pod template: {}", old.difference(new)),
        (old, new) => {
            let of = |beside: Option<&Beside>| beside.map_or(VersionOf::Images, Beside::of);
            format!("what counts: {} → {}", of(old), of(new))
        }
    }
}

fn shown(value: Option<&str>) -> String {
    value.map_or_else(|| "(not set)".to_owned(), |value| text::clean(value, VALUE_BYTES_MAX))
}

/// The fields of a pod template, each with a hash of its value, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fields(Box<[(Box<str>, u32)]>);

/// Fields that are compared one by one; the others share one hash. A template rarely has more.
pub const FIELDS_MAX: usize = 40;

/// Characters of the path of a field: more are cut, and then several fields share a hash.
const PATH_CHARS_MAX: usize = 80;

/// The field of all that is compared together.
const OTHERS: &str = "other fields";

/// Fields that are named where several changed.
const FIELDS_SHOWN_MAX: usize = 5;

/// Fields of a container that people change, and want to hear of by name. The rest is the container itself.
const OF_A_CONTAINER: [&str; 10] = [
    "args",
    "command",
    "env",
    "envFrom",
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resources",
    "volumeMounts",
];

impl Fields {
    /// Of a pod template. Images are left out: they make the version by themselves.
    pub fn of(template: &Value) -> Self {
        let mut parts: BTreeMap<String, String> = BTreeMap::new();
        let mut add = |path: String, value: &Value| {
            if !is_empty(value) {
                let part = parts.entry(text::first(&path, PATH_CHARS_MAX).to_owned()).or_default();
                part.push_str(&format!("{path}={value}\n"));
            }
        };
        for (name, value) in entries(template.pointer("/metadata/annotations")) {
            add(format!("annotations[{name}]"), value);
        }
        add("labels".to_owned(), template.pointer("/metadata/labels").unwrap_or(&Value::Null));
        for (name, value) in entries(template.get("spec")) {
            match name.as_str() {
                "containers" | "initContainers" => containers(name, value, &mut add),
                "volumes" => volumes(value, &mut add),
                _ => add(name.clone(), value),
            }
        }
        Self::folded(parts)
    }

    /// More of an object than its template that makes the controller make new pods.
    #[must_use]
    pub fn and(self, path: &str, value: &str) -> Self {
        let more = (path.into(), short(value));
        let mut all: Vec<(Box<str>, u32)> = self.0.into_iter().chain([more]).collect();
        all.sort();
        Self(all.into())
    }

    fn folded(parts: BTreeMap<String, String>) -> Self {
        let (mut others, mut kept) = (String::new(), Vec::new());
        for (path, values) in parts {
            if kept.len() < FIELDS_MAX - 1 {
                kept.push((path.into(), short(&values)));
            } else {
                others.push_str(&values);
            }
        }
        if !others.is_empty() {
            kept.push((OTHERS.into(), short(&others)));
            kept.sort();
        }
        Self(kept.into())
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.0.iter().map(|(path, hash)| (&**path, *hash))
    }

    fn get(&self, path: &str) -> Option<u32> {
        self.iter().find(|(present, _)| *present == path).map(|(_, hash)| hash)
    }

    /// The fields that differ, by path.
    fn difference(&self, next: &Self) -> String {
        let paths: BTreeSet<&str> = self.iter().chain(next.iter()).map(|(path, _)| path).collect();
        let differs = |path: &&str| self.get(path) != next.get(path);
        let differing: Vec<&str> = paths.into_iter().filter(differs).collect();
        let shown = differing.iter().take(FIELDS_SHOWN_MAX).copied().collect::<Vec<_>>().join(", ");
        match differing.len().saturating_sub(FIELDS_SHOWN_MAX) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }
}

impl FromIterator<(Box<str>, u32)> for Fields {
    fn from_iter<I: IntoIterator<Item = (Box<str>, u32)>>(fields: I) -> Self {
        Self(fields.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect())
    }
}

/// The first 32 bits of the hash: enough to tell a change, and too few to try what a value was.
fn short(values: &str) -> u32 {
    u32::try_from(fingerprint(values) >> 32).unwrap_or_default()
}

/// What the API server writes for "nothing": it may be there or not without any change.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn entries(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

fn containers(list: &str, value: &Value, add: &mut impl FnMut(String, &Value)) {
    for container in value.as_array().into_iter().flatten() {
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        for (key, value) in entries(Some(container)).filter(|(key, _)| *key != "image") {
            let is_told = OF_A_CONTAINER.contains(&key.as_str());
            let field = if is_told { format!("{list}[{name}].{key}") } else { format!("{list}[{name}]") };
            // The key is part of what is hashed, so that two fields that share a hash are not taken for each other.
            if is_told { add(field, value) } else { add(field, &Value::from(format!("{key}: {value}"))) }
        }
    }
}

/// Each by its name. The image of a volume makes the version by itself.
fn volumes(value: &Value, add: &mut impl FnMut(String, &Value)) {
    for volume in value.as_array().into_iter().flatten() {
        let name = volume.get("name").and_then(Value::as_str).unwrap_or_default();
        let mut volume = volume.clone();
        if let Some(image) = volume.get_mut("image").and_then(Value::as_object_mut) {
            image.remove("reference");
        }
        add(format!("volumes[{name}]"), &volume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

    use crate::names::image::{Code, Container, Image, Version, difference};

    fn web(text: &str) -> Version {
        Version::from_iter([(Container::Main("web".into()), Image::parse(text).unwrap())])
    }

    fn annotated(value: Option<&str>) -> Version {
        web("app:1").with(Some(Beside::annotation("example.com/site", value)))
    }

    fn templated(template: &Value) -> Version {
        web("app:1").with(Some(Beside::Template(Fields::of(template))))
    }

    #[test]
    fn an_annotation_makes_a_version_also_where_it_was_missing() {
        let (none, one, two) = (annotated(None), annotated(Some("1")), annotated(Some("2")));
        for (left, right) in [(&none, &one), (&one, &two)] {
            assert!(!left.same_content(right, true) && !left.same_across(right));
        }
        assert_eq!(difference(&none, &one), "example.com/site: (not set) → 1");
        assert_eq!(difference(&one, &two), "example.com/site: 1 → 2");
        assert_eq!(two.to_string(), "web app:1, example.com/site 2");
        let code = |version| Code { version, group_version: None };
        let apart = code(&one).apart(&code(&two)).unwrap();
        assert_eq!((apart.one.as_str(), apart.is_plain), ("example.com/site 1", true));
        assert!(!none.same_content(&annotated(Some("")), true), "one that is missing is not an empty one");
        for beside in [None, Some(""), Some("1.2 ü")].map(annotated) {
            let stored = serde_json::to_string(&beside).unwrap();
            assert_eq!(serde_json::from_str::<Version>(&stored).unwrap(), beside, "{stored}");
        }
        let long = "x".repeat(200);
        assert!(!annotated(Some(&long)).same_content(&annotated(Some(&format!("{long}y"))), true));
    }

    #[test]
    fn another_choice_of_what_counts_is_not_compared() {
        let (images, template) = (web("app:1"), templated(&json!({"spec": {"hostNetwork": true}})));
        for (left, right) in [(&images, &template), (&template, &annotated(None)), (&annotated(None), &images)] {
            assert!(!left.same_content(right, true) && left.same_across(right));
            assert!(left.compared_with(right).same_content(&right.compared_with(left), true));
            assert!(difference(left, right).starts_with("what counts: "));
        }
    }

    #[test]
    fn a_template_is_compared_by_its_fields_and_told_by_their_paths_alone() {
        let template = json!({
            "metadata": {"labels": {"app": "web"}, "annotations": {"checksum/config": "aaaa"}},
            "spec": {
                "containers": [{"name": "web", "image": "app:1", "env": [{"name": "KEY", "value": "secret"}], "tty": true}],
                "volumes": [{"name": "content", "image": {"reference": "site:1"}}],
                "nodeSelector": {},
                "terminationGracePeriodSeconds": 30,
            },
        });
        let with = |at: &str, value: Value| {
            let mut other = template.clone();
            *other.pointer_mut(at).unwrap() = value;
            templated(&other)
        };
        let before = templated(&template);
        for (at, value, words) in [
            ("/metadata/annotations/checksum~1config", "bbbb".into(), "annotations[checksum/config]"),
            ("/metadata/labels/app", "shop".into(), "labels"),
            ("/spec/containers/0/env/0/value", "other".into(), "containers[web].env"),
            ("/spec/containers/0/tty", false.into(), "containers[web]"),
            ("/spec/volumes/0/name", "site".into(), "volumes[content], volumes[site]"),
            ("/spec/terminationGracePeriodSeconds", 60.into(), "terminationGracePeriodSeconds"),
        ] {
            let after = with(at, value);
            assert!(!before.same_content(&after, true) && before.same_across(&after), "{at}");
            assert_eq!(difference(&before, &after), format!("pod template: {words}"));
        }
        for (at, value) in [
            ("/spec/containers/0/image", "app:2".into()),
            ("/spec/volumes/0/image/reference", "site:2".into()),
            ("/spec/nodeSelector", Value::Null),
        ] {
            assert_eq!(before, with(at, value), "images are compared as images, and nothing is nothing: {at}");
        }
        let stored = serde_json::to_string(&before).unwrap();
        assert!(!stored.contains("secret") && !stored.contains("aaaa"), "{stored}");
        assert_eq!(serde_json::from_str::<Version>(&stored).unwrap(), before);
    }

    #[test]
    fn a_large_template_takes_bounded_room_and_none_of_its_changes_is_lost() {
        let many = |last: &str| {
            let annotations: BTreeMap<String, String> =
                (0..200).map(|i| (format!("a-{i:03}"), if i == 199 { last.into() } else { "x".into() })).collect();
            templated(&json!({"metadata": {"annotations": annotations}}))
        };
        assert!(serde_json::to_string(&many("1")).unwrap().len() < 2_000);
        assert_eq!(difference(&many("1"), &many("2")), "pod template: other fields");
    }

    #[test]
    fn what_counts_is_read_as_it_is_written() {
        for text in ["images", "template", "annotation checksum/config", "annotation site-version"] {
            assert_eq!(VersionOf::parse(text).unwrap().to_string(), text);
        }
        for bad in [
            "",
            "image",
            "template x",
            "annotation",
            "annotation  ",
            "annotation a/b/c",
            "annotation a b",
            "annotation /a",
        ] {
            assert!(VersionOf::parse(bad).unwrap_err().to_string().contains("`annotation KEY`"), "{bad}");
        }
    }
}
