//! The rules of writing: what a create, update, patch or delete does to an object, and when it is refused.
//!
//! Rules that clients rely on and that a naive map would get wrong: optimistic locking by resourceVersion, fields the
//! server owns, `status` as a place of its own, when `generation` rises, writes that change nothing and so leave no
//! trace, finalizers, graceful deletion of pods, and namespaces that take their content with them.
//!
//! Not for transport: a request is parsed and answered in `api`.

use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::failure::Failure;
use super::object::{Key, Object, is_ending, items, number, text};
use super::resource::{Generation, Kind};
use super::store::{Scope, State};
use super::{defaults, patch};

/// Characters of generated name endings: those of Kubernetes (`apimachinery/pkg/util/rand`), which spell no words.
const NAME_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Metadata that the server owns.
const KEPT: [&str; 8] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Keeps a pod until the Job controller has counted how it ended.
pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status (of kinds that keep it apart).
    Main,
    Status,
}

/// How a patch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchForm {
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    Strategic,
    /// `application/json-patch+json`
    Operations,
    /// `application/apply-patch+yaml`, JSON only
    Apply,
}

/// What must hold for a deletion.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// The object must have this UID.
    pub uid: Option<String>,
    /// The object must be this version.
    pub version: Option<String>,
    /// Zero ends a pod at once.
    pub grace_seconds: Option<i64>,
    /// What it owns stays, without an owner.
    pub orphans: bool,
}

/// One writer: the state under its lock, and what new objects are stamped with.
#[derive(Debug)]
pub struct Writer<'a> {
    /// The content of the store.
    pub state: &'a mut State,
    /// The time of the write, as objects carry it.
    pub now: String,
    /// What UIDs are derived from, so that two clusters never share one.
    pub cluster: &'a str,
}

impl Writer<'_> {
    /// Creates an object. Its parts must be objects themselves ([`well_formed`]).
    ///
    /// # Errors
    /// 404 for a namespace that is not there, 409 for a name that is taken, 422 for an object that is wrong.
    pub fn create(&mut self, kind: Kind, namespace: &str, mut object: Value) -> Result<Arc<Object>, Failure> {
        let row = kind.describe();
        well_formed(&object)?;
        self.name(kind, &mut object)?;
        if row.namespaced {
            object["metadata"]["namespace"] = json!(namespace);
            if self.state.get(Kind::Namespace, &Key::new("", namespace)).is_none() {
                return Err(Failure::not_found(Kind::Namespace, namespace));
            }
        }
        let name = text(&object, "/metadata/name").to_owned();
        let key = Key::new(if row.namespaced { namespace } else { "" }, name.as_str());
        if self.state.get(kind, &key).is_some() {
            return Err(Failure::already_exists(kind, &name));
        }
        if !text(&object, "/metadata/resourceVersion").is_empty() {
            return Err(Failure::unknown("resourceVersion should not be set on objects to be created"));
        }
        defaults::fill(kind, &mut object);
        if kind == Kind::DaemonSet {
            defaults::count_templates(&mut object, None);
        }
        if kind == Kind::Service && text(&object, "/spec/clusterIP").is_empty() {
            object["spec"]["clusterIP"] = json!(self.cluster_ip());
        }
        defaults::check(kind, &object, None)?;
        if row.status {
            match defaults::initial_status(kind) {
                Some(status) => object["status"] = status,
                None => drop(object.as_object_mut().and_then(|fields| fields.remove("status"))),
            }
        }
        if row.generation != Generation::Absent {
            object["metadata"]["generation"] = json!(1);
        }
        object["metadata"]["uid"] = json!(self.uid());
        object["metadata"]["creationTimestamp"] = json!(self.now);
        if kind == Kind::Job {
            defaults::select_pods_of_job(&mut object);
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("deletionTimestamp");
            metadata.remove("managedFields");
        }
        Ok(self.state.put(kind, object))
    }

    /// Replaces a part of an object.
    ///
    /// # Errors
    /// 404, 409 when `object` is based on an older version, 422.
    pub fn update(&mut self, kind: Kind, key: &Key, object: Value, part: Part) -> Result<Arc<Object>, Failure> {
        let previous = self.existing(kind, key)?;
        let version = text(&object, "/metadata/resourceVersion");
        if version.is_empty() && !kind.describe().unconditional_update {
            let why = "Invalid value: 0x0: must be specified for an update";
            return Err(Failure::invalid(kind, &key.name, "metadata.resourceVersion", "FieldValueInvalid", why));
        }
        if !version.is_empty() && version != previous.version.to_string() {
            return Err(Failure::conflict(kind, &key.name));
        }
        self.replace(&previous, object, part)
    }

    /// Patches a part of an object. Server-side apply creates what is not there; true then comes back.
    ///
    /// # Errors
    /// 404, 409 when the patch names an older version, 400, 415 or 422 for a patch that cannot be applied.
    pub fn patch(
        &mut self,
        kind: Kind,
        key: &Key,
        form: PatchForm,
        change: &Value,
        part: Part,
    ) -> Result<(Arc<Object>, bool), Failure> {
        let previous = match self.existing(kind, key) {
            Err(_) if form == PatchForm::Apply && part == Part::Main => {
                well_formed(change)?;
                let mut object = change.clone();
                object["metadata"]["name"] = json!(key.name);
                return Ok((self.create(kind, &key.namespace, object)?, true));
            }
            found => found?,
        };
        let mut object = previous.value();
        match form {
            PatchForm::Merge => patch::merge(&mut object, change),
            PatchForm::Strategic if kind.describe().custom => {
                return Err(Failure::unsupported_media("application/json-patch+json, application/merge-patch+json"));
            }
            PatchForm::Strategic | PatchForm::Apply => patch::merge_strategically(&mut object, change),
            PatchForm::Operations => patch::apply_operations(&mut object, change)?,
        }
        if text(&object, "/metadata/resourceVersion") != previous.version.to_string() {
            return Err(Failure::conflict(kind, &key.name));
        }
        // Of an update it is a precondition, of a patch a field like others, which may not change.
        let uid = text(&object, "/metadata/uid");
        if !uid.is_empty() && uid != previous.uid {
            let why = format!("Invalid value: \"{uid}\": field is immutable");
            return Err(Failure::invalid(kind, &key.name, "metadata.uid", "FieldValueInvalid", &why));
        }
        Ok((self.replace(&previous, object, part)?, false))
    }

    /// Deletes an object, or marks it where something still holds it. True when it is gone.
    ///
    /// # Errors
    /// 404, 409 when a precondition does not hold.
    pub fn delete(&mut self, kind: Kind, key: &Key, options: &DeleteOptions) -> Result<(Arc<Object>, bool), Failure> {
        let previous = self.existing(kind, key)?;
        if options.uid.as_ref().is_some_and(|uid| *uid != previous.uid) {
            let wanted = options.uid.as_deref().unwrap_or_default();
            let why =
                format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {}", previous.uid);
            return Err(Failure::precondition(kind, &key.name, &why));
        }
        if options.version.as_ref().is_some_and(|version| *version != previous.version.to_string()) {
            return Err(Failure::conflict(kind, &key.name));
        }
        let mut object = previous.value();
        let held = is_held(&object);
        let graceful =
            kind == Kind::Pod && !text(&object, "/spec/nodeName").is_empty() && options.grace_seconds != Some(0);
        if !held && !graceful {
            if kind == Kind::Namespace {
                self.empty_namespace(&previous);
            }
            if options.orphans {
                self.release_children(&previous.uid);
            }
            let removed = self.state.remove(kind, key);
            return removed.map(|object| (object, true)).ok_or_else(|| Failure::not_found(kind, &key.name));
        }
        if is_ending(&object) {
            return Ok((previous, false));
        }
        object["metadata"]["deletionTimestamp"] = json!(self.now);
        let period = number(&object, "/spec/terminationGracePeriodSeconds").unwrap_or(0);
        object["metadata"]["deletionGracePeriodSeconds"] = json!(options.grace_seconds.unwrap_or(period));
        if kind.describe().generation != Generation::Absent {
            object["metadata"]["generation"] = json!(number(&object, "/metadata/generation").unwrap_or(0) + 1);
        }
        Ok((self.state.put(kind, object), false))
    }

    /// Stores an object exactly as given, status and generation included; only what is missing is filled in.
    pub fn put_raw(&mut self, kind: Kind, mut object: Value) -> Arc<Object> {
        let row = kind.describe();
        let key = Key::new(text(&object, "/metadata/namespace"), text(&object, "/metadata/name"));
        let previous = self.state.get(kind, &key).map(|previous| previous.value());
        for field in ["uid", "creationTimestamp", "generation"] {
            if !object["metadata"][field].is_null() {
                continue;
            }
            let kept = previous.as_ref().map(|previous| previous["metadata"][field].clone());
            let value = match (kept, field) {
                (Some(kept), _) => kept,
                (None, "uid") => json!(self.uid()),
                (None, "creationTimestamp") => json!(self.now),
                (None, _) if row.generation != Generation::Absent => json!(1),
                (None, _) => Value::Null,
            };
            if !value.is_null() {
                object["metadata"][field] = value;
            }
        }
        self.state.put(kind, object)
    }

    fn existing(&self, kind: Kind, key: &Key) -> Result<Arc<Object>, Failure> {
        self.state.get(kind, key).ok_or_else(|| Failure::not_found(kind, &key.name))
    }

    /// Puts `object` in place of `previous`, keeping what the writer may not change.
    fn replace(&mut self, previous: &Arc<Object>, mut object: Value, part: Part) -> Result<Arc<Object>, Failure> {
        let kind = previous.kind;
        let row = kind.describe();
        well_formed(&object)?;
        let old = previous.value();
        let uid = text(&object, "/metadata/uid");
        if !uid.is_empty() && uid != previous.uid {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", previous.uid);
            return Err(Failure::precondition(kind, &previous.key.name, &why));
        }
        if part == Part::Status {
            // Only the status counts; the rest of the body is ignored, stale or not.
            let status = object["status"].take();
            object = old.clone();
            object["status"] = status;
            defaults::prune(kind, &mut object);
        }
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        for field in KEPT {
            keep(&mut object["metadata"], &old["metadata"], field);
        }
        drop(object["metadata"].as_object_mut().and_then(|metadata| metadata.remove("managedFields")));
        keep(&mut object, &old, "apiVersion");
        keep(&mut object, &old, "kind");
        if part == Part::Main {
            if row.status {
                keep(&mut object, &old, "status");
            }
            if kind == Kind::Service && text(&object, "/spec/clusterIP").is_empty() {
                keep(&mut object["spec"], &old["spec"], "clusterIP");
            }
            defaults::fill(kind, &mut object);
            if kind == Kind::DaemonSet {
                defaults::count_templates(&mut object, Some(&old));
            }
            defaults::check(kind, &object, Some(&old))?;
        }
        if object == old {
            return Ok(previous.clone());
        }
        if part == Part::Main && raises_generation(row.generation, &old, &object) {
            object["metadata"]["generation"] = json!(number(&old, "/metadata/generation").unwrap_or(0) + 1);
        }
        let let_go = is_held(&old) && !is_held(&object);
        let written = self.state.put(kind, object);
        if let_go && is_ending(&old) {
            return Ok(self.state.remove(kind, &written.key).unwrap_or(written));
        }
        Ok(written)
    }

    /// Marks a namespace as terminating, then removes everything in it.
    fn empty_namespace(&mut self, namespace: &Object) {
        let mut object = namespace.value();
        object["metadata"]["deletionTimestamp"] = json!(self.now);
        object["status"] = json!({"phase": "Terminating"});
        self.state.put(Kind::Namespace, object);
        for kind in Kind::all().filter(|kind| kind.describe().namespaced) {
            let scope = Scope { kind, namespace: namespace.key.name.clone(), selector: Default::default() };
            for object in self.state.list(&scope) {
                self.state.remove(kind, &object.key);
            }
        }
    }

    /// Lets go what an object owns. A pod of a Job loses the Job controller's finalizer, too, as that controller sees to in a cluster.
    fn release_children(&mut self, uid: &str) {
        for child in self.state.children(uid) {
            let mut object = child.value();
            for (list, field, value) in [("ownerReferences", "/uid", uid), ("finalizers", "", JOB_TRACKING)] {
                let entries = object.pointer_mut(&format!("/metadata/{list}")).and_then(Value::as_array_mut);
                entries.into_iter().for_each(|entries| entries.retain(|entry| text(entry, field) != value));
            }
            self.state.put(child.kind, object);
        }
    }

    fn name(&mut self, kind: Kind, object: &mut Value) -> Result<(), Failure> {
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        if !text(object, "/metadata/name").is_empty() {
            return Ok(());
        }
        let prefix = text(object, "/metadata/generateName").to_owned();
        if prefix.is_empty() {
            let why = "Required value: name or generateName is required";
            return Err(Failure::invalid(kind, "", "metadata.name", "FieldValueRequired", why));
        }
        object["metadata"]["name"] = json!(format!("{prefix}{}", self.ending()));
        Ok(())
    }

    /// Five letters and digits that no earlier call has returned in a row of 14 million.
    pub fn ending(&mut self) -> String {
        // A multiplication by a number without a common factor with 27^5 visits every ending once, in no visible order.
        let length = NAME_ALPHABET.len() as u64;
        let mut number = self.state.next_serial().wrapping_mul(7_368_787) % length.pow(5);
        let mut ending = String::new();
        for _ in 0..5 {
            let letter = NAME_ALPHABET.get((number % length) as usize).copied().unwrap_or(b'x');
            ending.push(char::from(letter));
            number /= length;
        }
        ending
    }

    /// A UID that no other object of any cluster has: a hash of the cluster's name and a running number.
    fn uid(&mut self) -> String {
        let hash = Sha256::digest(format!("{}/{}", self.cluster, self.state.next_serial()));
        let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
        format!("{}-{}-4{}-8{}-{}", part(0..8), part(8..12), part(13..16), part(17..20), part(20..32))
    }

    fn cluster_ip(&mut self) -> String {
        let number = self.state.next_serial();
        format!("10.96.{}.{}", number / 256 % 256, number % 256)
    }
}

/// Checks that an object and its main parts are objects, which the rules take for granted.
fn well_formed(object: &Value) -> Result<(), Failure> {
    let parts = ["metadata", "spec", "status"].iter().filter_map(|part| object.get(part));
    if object.is_object() && parts.into_iter().all(|part| part.is_object() || part.is_null()) {
        return Ok(());
    }
    Err(Failure::bad_request("the object provided is unrecognized: its parts must be objects"))
}

/// Whether a finalizer keeps it.
fn is_held(object: &Value) -> bool {
    !items(object, "/metadata/finalizers").is_empty()
}

/// Makes a field of `new` what it is in `old`, absent included.
fn keep(new: &mut Value, old: &Value, field: &str) {
    let Some(new) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => drop(new.insert(field.to_owned(), value.clone())),
        None => drop(new.remove(field)),
    }
}

fn raises_generation(rule: Generation, old: &Value, new: &Value) -> bool {
    let differs = |pointer: &str| old.pointer(pointer) != new.pointer(pointer);
    match rule {
        Generation::Absent => false,
        Generation::Spec => differs("/spec"),
        Generation::SpecOrAnnotations => differs("/spec") || differs("/metadata/annotations"),
        Generation::AllButMetadata => {
            let without = |value: &Value| {
                let mut value = value.clone();
                for field in ["metadata", "status"] {
                    drop(value.as_object_mut().and_then(|fields| fields.remove(field)));
                }
                value
            };
            without(old) != without(new)
        }
    }
}
