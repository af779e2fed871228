//! Other witnesses: what the objects of a cluster show of changes, and what CloudFront shows of invalidations. Both as their own
//! clients print them: `kubectl get replicasets,controllerrevisions -A -o json`, `aws cloudfront list-invalidations` and
//! `get-invalidation`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

/// Why a witness was not heard.
#[derive(Debug)]
pub struct Unreadable(pub String);

fn stamp(value: &Value) -> Option<i64> {
    value.as_str()?.parse::<Timestamp>().ok().map(Timestamp::as_microsecond)
}

/// A change of images, as a cluster's objects show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    /// As the log names it.
    pub workload: String,
    pub object: String,
    pub at_us: i64,
}

/// When a revision was made, its name, and its images by container.
type Made = (i64, String, BTreeMap<String, String>);

/// The ReplicaSets and ControllerRevisions of a cluster, by workload.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    revisions: BTreeMap<String, Vec<Made>>,
}

impl Objects {
    /// A change is seen within this time, in microseconds, also over a restart of allclear.
    pub(crate) const SEEN_WITHIN_US: i64 = 600 * 1_000_000;

    /// # Errors
    /// When it is no list of objects.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let list: Value = serde_json::from_str(text).map_err(|error| Unreadable(format!("it is not JSON: {error}")))?;
        let items = list.get("items").and_then(Value::as_array);
        let items = items.ok_or_else(|| Unreadable("it is no list of objects: it has no items".to_owned()))?;
        let mut objects = Self::default();
        items.iter().filter_map(revision).for_each(|(workload, made)| {
            objects.revisions.entry(workload).or_default().push(made);
        });
        objects.revisions.values_mut().for_each(|made| made.sort());
        Ok(objects)
    }

    /// Where the images are those of no revision before. The oldest that is kept is no change: nobody knows what was before it.
    pub(crate) fn changes(&self) -> Vec<Changed> {
        let mut changes = Vec::new();
        for (workload, made) in &self.revisions {
            for (number, (at_us, object, images)) in made.iter().enumerate().skip(1) {
                // A revision that comes back keeps its object, so images that were there before may have been back already.
                if !made.iter().take(number).any(|(_, _, before)| before == images) {
                    changes.push(Changed { workload: workload.clone(), object: object.clone(), at_us: *at_us });
                }
            }
        }
        changes
    }
}

fn revision(object: &Value) -> Option<(String, Made)> {
    let metadata = object.get("metadata")?;
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let owner = metadata.get("ownerReferences")?.as_array()?.iter().find(|owner| owner["controller"] == true)?;
    let (kind, name) = (owner.get("kind")?.as_str()?, owner.get("name")?.as_str()?);
    let namespace = text("/metadata/namespace")?;
    let (pod, workload) = match (text("/kind")?, kind) {
        ("ReplicaSet", "Deployment" | "Rollout") => ("/spec/template/spec", format!("{namespace}/{name}")),

        ("ControllerRevision", "StatefulSet") => {
            ("/data/spec/template/spec", format!("statefulset/{namespace}/{name}"))
        }
        ("ControllerRevision", "DaemonSet") => ("/data/spec/template/spec", format!("daemonset/{namespace}/{name}")),
        _ => return None,
    };
    let mut images = BTreeMap::new();
    for list in ["initContainers", "containers"] {
        for container in object.pointer(pod)?.get(list).and_then(Value::as_array).into_iter().flatten() {
            images.insert(container.get("name")?.as_str()?.to_owned(), container.get("image")?.as_str()?.to_owned());
        }
    }
    let object = format!("{} {namespace}/{}", text("/kind")?, text("/metadata/name")?);
    Some((workload, (stamp(metadata.get("creationTimestamp")?)?, object, images)))
}

/// Invalidations, as CloudFront shows them.
#[derive(Clone, Debug, Default)]
pub struct Invalidations {
    /// Distribution, id, when it was made, and its caller's reference where that is known.
    made: Vec<(String, String, i64, Option<String>)>,
    was_given: bool,
}

impl Invalidations {
    /// How allclear's own references begin.
    const OURS: &str = "allclear-";

    /// Adds what CloudFront says of one distribution, or of one invalidation.
    ///
    /// # Errors
    /// When it is neither.
    pub fn read(&mut self, distribution: &str, text: &str) -> Result<(), Unreadable> {
        let said: Value = serde_json::from_str(text).map_err(|error| Unreadable(format!("it is not JSON: {error}")))?;
        let one = said.get("Invalidation").map(std::slice::from_ref);
        let list = said.pointer("/InvalidationList/Items").and_then(Value::as_array).map(Vec::as_slice);
        let items =
            one.or(list).ok_or_else(|| Unreadable("it has neither Invalidation nor InvalidationList".to_owned()))?;
        self.was_given = true;
        for item in items {
            let reference = item.pointer("/InvalidationBatch/CallerReference").and_then(Value::as_str);
            if let (Some(id), Some(at_us)) = (item["Id"].as_str(), stamp(&item["CreateTime"])) {
                self.made.push((distribution.to_owned(), id.to_owned(), at_us, reference.map(str::to_owned)));
            }
        }
        Ok(())
    }

    /// Those that are allclear's by their reference, and that nobody knows.
    pub(crate) fn beside(&self, is_known: impl Fn(&str) -> bool) -> Vec<(&str, &str, i64)> {
        let ours = self
            .made
            .iter()
            .filter(|(.., reference)| reference.as_deref().is_some_and(|reference| reference.starts_with(Self::OURS)));
        let beside = ours.filter(|(_, id, ..)| !is_known(id));
        beside.map(|(distribution, id, at_us, _)| (distribution.as_str(), id.as_str(), *at_us)).collect()
    }

    pub(crate) fn words(&self) -> String {
        if self.was_given { format!(", and {} that CloudFront shows", self.made.len()) } else { String::new() }
    }
}
