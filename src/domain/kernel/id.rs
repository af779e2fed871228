//! Names of things: workloads, rollouts, vectors, purge references. A rollout is never named by its tag.
//!
//! Not for parsing what users write; that is `workload`, `image`, `host` and `paths`.

pub mod custom;
mod kind;
mod nonce;
mod objects;
#[cfg(feature = "schema")]
mod schema;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hash;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::parsed::parsed;

pub use custom::CustomKind;
pub use kind::{Kind, NotAKind};
pub use nonce::{Nonce, Nonces};
pub use objects::{
    CommitId, Environment, NotACommitId, PipelineId, PromotionSeq, RepoId, Revision, RunSeq, promotion_id, run_id,
};

/// Names an object of a namespace.
pub trait ObjectId: Clone + fmt::Debug + fmt::Display + Ord + Hash + Send + Sync + Unpin + 'static {
    /// The namespace that the object is in.
    fn namespace(&self) -> &str;

    /// `namespace/name`, the way people say it.
    fn display_name(&self) -> String;

    /// The kind of a watch that lists more than one.
    fn kind(&self) -> Option<Kind> {
        None
    }
}

/// One workload of this cluster. Written `deployment/shop/web`; serialised the same way, so it can be a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadId {
    /// Never one that another stands for; see [`Kind::identity`].
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
}

impl ObjectId for WorkloadId {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A Deployment without its kind, as it has always been written; others with it.
    fn display_name(&self) -> String {
        match self.kind {
            Kind::Deployment | Kind::Rollout => format!("{}/{}", self.namespace, self.name),
            Kind::StatefulSet | Kind::DaemonSet | Kind::Custom(_) => self.to_string(),
        }
    }

    fn kind(&self) -> Option<Kind> {
        Some(self.kind)
    }
}

impl WorkloadId {
    pub fn new(kind: Kind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind: kind.identity(), namespace: namespace.into(), name: name.into() }
    }

    pub fn deployment(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self::new(Kind::Deployment, namespace, name)
    }

    /// The way people say it: `shop/web` for a Deployment, `statefulset/shop/db` for others.
    pub fn display_name(&self) -> String {
        ObjectId::display_name(self)
    }

    /// Reads what [`fmt::Display`] writes.
    ///
    /// # Errors
    /// Everything else.
    pub fn parse(text: &str) -> Result<Self, NotAWorkload> {
        let mut parts = text.split('/');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(kind), Some(namespace), Some(name), None) if !namespace.is_empty() && !name.is_empty() => {
                let kind = Kind::parse(kind).map_err(|_| NotAWorkload(text.to_owned()))?;
                Ok(Self::new(kind, namespace, name))
            }
            _ => Err(NotAWorkload(text.to_owned())),
        }
    }
}

impl fmt::Display for WorkloadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

/// A text that is not `kind/namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to read {0:?} as kind/namespace/name, for example deployment/shop/web")]
pub struct NotAWorkload(String);

parsed!(WorkloadId, NotAWorkload);

/// The subject of a notice, a delivery or a purge. Written with its kind first, `deployment/shop/web`, and serialised
/// the same way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A workload of this cluster.
    Workload(WorkloadId),
    /// A Pipeline of this cluster.
    Pipeline(PipelineId),
    /// A Repo of this cluster.
    Repo(RepoId),
}

impl Subject {
    pub fn namespace(&self) -> &str {
        match self {
            Self::Workload(id) => &id.namespace,
            Self::Pipeline(id) => &id.namespace,
            Self::Repo(id) => &id.namespace,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Workload(id) => &id.name,
            Self::Pipeline(id) => &id.name,
            Self::Repo(id) => &id.name,
        }
    }

    /// `namespace/name`, the way people say it.
    pub fn display_name(&self) -> String {
        match self {
            Self::Workload(id) => id.display_name(),
            Self::Pipeline(id) => id.display_name(),
            Self::Repo(id) => id.display_name(),
        }
    }

    /// Reads what [`fmt::Display`] writes.
    ///
    /// # Errors
    /// Everything else.
    pub fn parse(text: &str) -> Result<Self, NotAWorkload> {
        if let Some(id) = PipelineId::parse(text) {
            return Ok(Self::Pipeline(id));
        }
        match RepoId::parse(text) {
            Some(id) => Ok(Self::Repo(id)),
            None => WorkloadId::parse(text).map(Self::Workload),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workload(id) => id.fmt(f),
            Self::Pipeline(id) => id.fmt(f),
            Self::Repo(id) => id.fmt(f),
        }
    }
}

impl From<WorkloadId> for Subject {
    fn from(id: WorkloadId) -> Self {
        Self::Workload(id)
    }
}

impl From<PipelineId> for Subject {
    fn from(id: PipelineId) -> Self {
        Self::Pipeline(id)
    }
}

impl From<RepoId> for Subject {
    fn from(id: RepoId) -> Self {
        Self::Repo(id)
    }
}

impl PartialEq<WorkloadId> for Subject {
    fn eq(&self, other: &WorkloadId) -> bool {
        match self {
            Self::Workload(id) => id == other,
            Self::Pipeline(_) | Self::Repo(_) => false,
        }
    }
}

parsed!(Subject, NotAWorkload);

/// Characters of the name of a member or a group at most: as many as a DNS label has, for names of clusters are often those.
pub const NAME_CHARS_MAX: usize = 63;

/// Whether a text can name a member or a group: a part of a key in Redis, whose parts are separated by colons.
pub fn is_key_part(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=NAME_CHARS_MAX).contains(&text.len()) && text.chars().all(is_inner)
}

/// Declares a newtype over a string that means one thing only.
macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(pub String);

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $type {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

name! {
    /// The UID of the ledger's own object. A deleted and re-created ledger is a new origin, so a number counted by the
    /// old one never repeats under the new (GA-2).
    Origin
}
name! {
    /// One cluster of a group, by its configured or derived name.
    Member
}
name! {
    /// The id CloudFront gave an invalidation.
    InvalidationId
}
name! {
    /// A purge's `CallerReference`: derived from what is purged and why, never random and never reused.
    Reference
}
name! {
    /// The identity of a notice; the same for every delivery and every member that might send it.
    NoticeId
}

impl InvalidationId {
    /// That of an invalidation that a dry run would have made. CloudFront's have no hyphen.
    pub fn of_dry_run() -> Self {
        Self::from("dry-run")
    }

    /// Whether nothing was made, so that nothing may be said to be.
    pub fn is_of_dry_run(&self) -> bool {
        *self == Self::of_dry_run()
    }
}

impl Origin {
    /// Tells it apart from the few other ledgers one member ever has. 16 bits, because it is in every record of a group.
    pub fn brief(&self) -> String {
        digest("origin", [self.0.as_str()]).chars().take(4).collect()
    }
}

/// Counts the versions of one workload under one origin, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The number of the next rollout.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One member's place in a vector: which rollout of the workload it means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Component {
    /// The ledger that counted.
    #[serde(rename = "o")]
    pub origin: Origin,
    #[serde(rename = "s")]
    pub seq: Seq,
    /// Distinguishes it from another rollout with the same number, after the ledger was set back in between.
    #[serde(rename = "n", default, skip_serializing_if = "Nonce::is_none")]
    pub nonce: Nonce,
}

impl Component {
    /// Without a nonce: an absent workload has none, and what was counted before rules 3.
    pub fn bare(origin: Origin, seq: Seq) -> Self {
        Self { origin, seq, nonce: Nonce::default() }
    }
}

/// One rollout of every member at once: `{member → (origin, seq, nonce)}` over *all* members of the group. `A→B→A→B` gives four
/// vectors although two tags repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Vector(pub BTreeMap<Member, Component>);

impl Vector {
    /// The vector of a group with one member.
    pub fn of_one(member: Member, component: Component) -> Self {
        Self(BTreeMap::from([(member, component)]))
    }

    /// One member's component of this vector.
    pub fn component(&self, member: &Member) -> Option<&Component> {
        self.0.get(member)
    }
}

/// Hashes parts so that no two different lists of parts give one text: each part is preceded by its length.
pub fn digest<'a>(domain: &str, parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    let mut feed = |part: &str| {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    };
    feed(domain);
    parts.into_iter().for_each(&mut feed);
    hasher.finalize().iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// 128 bits: a collision among 2^40 rollouts has a probability below 2^-48, and 32 digits still fit on a line.
const DIGEST_BYTES: usize = 16;

/// The id of a rollout across the group: `H(group, workload, vector)`. Every member computes the same one.
pub fn group_rollout_id(group: &str, workload: &WorkloadId, vector: &Vector) -> String {
    let workload = workload.to_string();
    // One part for both, or the parts of rules 1 and 2 would not be what they were. A number alone has no dash.
    let number = |component: &Component| match component.nonce {
        nonce if nonce.is_none() => component.seq.to_string(),
        nonce => format!("{}-{nonce}", component.seq),
    };
    let numbers: Vec<String> = vector.0.values().map(number).collect();
    let parts =
        vector.0.iter().zip(&numbers).flat_map(|((member, component), number)| {
            [member.0.as_str(), component.origin.0.as_str(), number.as_str()]
        });
    digest("rollout", [group, workload.as_str()].into_iter().chain(parts))
}

/// The `CallerReference` of one purge: `H(group rollout, distribution, paths)` (decision 11). The same reference with the
/// same paths makes CloudFront return the earlier invalidation, which is what makes a repeated call harmless.
pub fn purge_reference<'a>(
    rollout: &'a str,
    distribution: &'a str,
    paths: impl IntoIterator<Item = &'a str>,
) -> Reference {
    Reference(format!("allclear-{}", digest("purge", [rollout, distribution].into_iter().chain(paths))))
}

/// The second `CallerReference` of a purge, where the first belongs to an invalidation from before its vote: a ledger that was restored
/// from a backup gives a number out again. All members derive the same one.
pub fn renewed_reference(spent: &Reference, found: &InvalidationId) -> Reference {
    Reference(format!("allclear-{}", digest("purge again", [spent.0.as_str(), found.0.as_str()])))
}

/// The `CallerReference` of a further purge of the same paths, on evidence that `first` did not do: 1 is the second purge. All members
/// derive the same one.
pub fn again_reference(first: &Reference, round: u8) -> Reference {
    Reference(format!("allclear-{}", digest("purge once more", [first.0.as_str(), round.to_string().as_str()])))
}

/// The rank of `member` among `members` for something named `key`, from 0: rendezvous hashing, so each key has its own order,
/// all compute the same one, and a member that leaves changes nothing between the others.
pub fn rank<'a>(key: &str, member: &Member, members: impl IntoIterator<Item = &'a Member>) -> u32 {
    let weight = |member: &Member| (digest("rank", [key, member.0.as_str()]), member.clone());
    let own = weight(member);
    let ahead = members.into_iter().filter(|other| weight(other) < own).count();
    u32::try_from(ahead).unwrap_or(u32::MAX)
}

/// The id of a notice: `H(rollout, kind)`, so a notice repeated after a restart is recognised as the same one.
pub fn notice_id(rollout: &str, kind: &str) -> NoticeId {
    NoticeId(format!("msg_{}", digest("notice", [rollout, kind])))
}

/// The id of a delivery of a notice to one hook.
pub fn delivery_id(notice: &NoticeId, hook: &str) -> String {
    digest("delivery", [notice.0.as_str(), hook])
}

/// The hash of a configuration: of its settings, by name.
pub fn config_hash<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    digest("config", settings.into_iter().flat_map(|(name, value)| [name, value]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn vector(seq: u64) -> Vector {
        Vector::of_one("eu-1".into(), Component::bare("origin".into(), Seq(seq)))
    }

    // Computed by the program before there were nonces.
    #[test]
    fn a_number_without_a_nonce_is_hashed_as_it_always_was_and_each_nonce_otherwise() {
        let web = WorkloadId::deployment("shop", "web");
        let id = |nonce| {
            let component = Component { nonce: Nonce(nonce), ..Component::bare("origin".into(), Seq(3)) };
            group_rollout_id("default", &web, &Vector::of_one("eu-1".into(), component))
        };
        assert_eq!(id(0), "e5027c4ec4438a779353a853d37890c3");
        assert_eq!(BTreeSet::from([id(0), id(1), id(2)]).len(), 3);
    }

    #[test]
    fn a_name_is_a_part_of_a_key() {
        assert!(["eu-1", "a", "EU_1.b", "x".repeat(63).as_str()].into_iter().all(is_key_part));
        assert!(!["", "eu:1", "eu 1", "eu/1", "{eu}", "é", "x".repeat(64).as_str()].into_iter().any(is_key_part));
    }

    #[test]
    fn returning_to_an_old_tag_is_a_new_rollout_with_a_new_reference() {
        let web = WorkloadId::deployment("shop", "web");
        let first = group_rollout_id("default", &web, &vector(1));
        let again = group_rollout_id("default", &web, &vector(3));
        assert_ne!(purge_reference(&first, "E1", ["/*"]), purge_reference(&again, "E1", ["/*"]));
        assert_eq!(purge_reference(&first, "E1", ["/*"]), purge_reference(&first, "E1", ["/*"]));
    }

    #[test]
    fn parts_never_run_together() {
        assert_ne!(digest("x", ["ab", "c"]), digest("x", ["a", "bc"]));
    }

    #[test]
    fn a_workload_id_survives_its_own_text() {
        for kind in Kind::ALL {
            let web = WorkloadId::new(kind, "shop", "web");
            assert_eq!(web.to_string().parse(), Ok(web));
            assert_eq!((Kind::named(kind.word()), Kind::named(&kind.name().to_lowercase())), (Some(kind), Some(kind)));
        }
        assert_eq!("rollout/shop/web".parse(), Ok(WorkloadId::deployment("shop", "web")));
        assert_eq!(WorkloadId::new(Kind::Rollout, "shop", "web").display_name(), "shop/web");
        assert!("deployment/shop".parse::<WorkloadId>().is_err());
        assert!("job/shop/web".parse::<WorkloadId>().is_err());
    }

    #[test]
    fn the_text_of_a_subject_names_its_kind() {
        let web = Subject::from(WorkloadId::deployment("shop", "web"));
        assert_eq!(web.to_string(), "deployment/shop/web");
        assert_eq!("deployment/shop/web".parse(), Ok(web));
        for subject in
            [Subject::Pipeline(PipelineId::new("shop", "web")), Subject::Repo(RepoId::new("platform", "infra"))]
        {
            assert_eq!(subject.to_string().parse(), Ok(subject));
        }
        assert_eq!(Subject::Repo(RepoId::new("platform", "infra")).to_string(), "repo/platform/infra");
        assert!(["shop/web", "repo/platform", "repo//infra"].iter().all(|text| text.parse::<Subject>().is_err()));
    }
}
