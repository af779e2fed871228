//! The state of a workload at one sight, and its owner's annotations.
//!
//! Small and owned: an idle workload costs hundreds of bytes, not the tens of kilobytes of the object it was read from.
//! Not for judging it; that is `readiness` and `rollout`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::records::record::{VERSION_BYTES_MAX, VOTE_PATH_BYTES_MAX};
use crate::workloads::annotated::{Unusable, group_version, list, timeout, truth};
use crate::workloads::extent::{Extent, Item};
use crate::workloads::proving::Proving;
use crate::workloads::template_of::TemplateOf;
use kernel::id::{Kind, WorkloadId};
use kernel::names::distribution::DistributionId;
use kernel::names::group_name::GroupName;
use kernel::names::host::Host;
use kernel::names::image::{self, Container, Version, VersionOf};
use kernel::names::paths::{Path, PathSet};
use kernel::names::selector::LabelSelector;
use kernel::text::cut;
use kinds::pods::PodLabels;
use kinds::reported::{Replicas, Reported, Says, Standing};
use kinds::{Newest, Stable};
use notices::delivery::Resend;

/// The prefix of every annotation a workload's owner may write.
pub const ANNOTATION_PREFIX: &str = "allclear.dev/";

/// One sight of a workload: what decisions use of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workload {
    pub id: WorkloadId,
    /// The kind of the object it was read from.
    pub object: Kind,
    /// Kubernetes' own identity: another UID under the same name is another object.
    pub uid: String,
    /// `metadata.creationTimestamp` as written, which sorts as text: of two workloads under one name in the group the older one stays.
    pub created: String,
    /// `metadata.generation`: raised by the API server on every change of the spec.
    pub generation: i64,
    /// `status.observedGeneration`: what the controller has acted on. The rest of the status means nothing before it
    /// reaches `generation`.
    pub observed_generation: i64,
    /// The images of the pod template, or why they make no version.
    pub version: Result<Version, NoVersion>,
    /// Counts of pods, as the controller reported them.
    pub replicas: Replicas,
    /// A deletion timestamp is set.
    pub deleting: bool,
    /// What its kind says beside the counts.
    pub says: Says,
    /// Why pods are missing, where its kind says so: a quota, a LimitRange, an admission webhook.
    pub refused: Option<String>,
    /// The pods of the newest template were never available.
    pub starting: bool,
    /// How the pods of the newest template are known.
    pub newest: Newest,
    /// The Deployment that its template is from, until that was seen as well: [`resolved`](crate::workloads::referring::resolved).
    pub template_of: Option<Box<TemplateOf>>,
    /// The pods before, while its update is aborted.
    pub stable: Option<Box<Stable>>,
    /// The version of its template, where its update was aborted and all else is about the pods before: [`Workload::returned`].
    pub withdrawn: Option<Version>,
    /// Which pods are its own.
    pub selector: LabelSelector,
    /// The labels of its pod template; [`Workload::pods`] compares them with the selectors of Services.
    pub template_labels: BTreeMap<String, String>,
    pub tuning: Tuning,
}

/// Why the images of a workload make no version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoVersion {
    #[error("{what}{0}: {1}", what = if matches!(.0, Container::Volume(_)) { "" } else { "container " })]
    Image(Container, Box<image::Error>),
    /// A record has no room for it.
    #[error(
        "the images of its {containers} containers and volumes take {bytes} bytes, {VERSION_BYTES_MAX} at most; choose those that count \
         by the annotation {ANNOTATION_PREFIX}containers"
    )]
    TooLarge { containers: usize, bytes: usize },
}

impl Workload {
    /// How its rollout stands at this sight; see [`Reported::standing`].
    pub fn standing(&self, zero_is_complete: bool) -> Standing {
        self.reported().standing(zero_is_complete)
    }

    /// Its pods, as Services select them.
    pub const fn pods(&self) -> PodLabels<'_> {
        PodLabels { of: &self.id, template: &self.template_labels }
    }

    /// The kind of its object, where that is not the one in its name.
    pub fn stand_in(&self) -> Option<Kind> {
        Some(self.object).filter(|kind| *kind != self.id.kind)
    }

    /// The same while its update is aborted, as far as the pods before are concerned, which are of this version. Its spec still has the
    /// template that was withdrawn.
    pub fn returned(&self, version: Version) -> Option<Self> {
        let Stable { hash, replicas, says } = self.stable.as_deref()?.clone();
        Some(Self {
            withdrawn: self.version.clone().ok(),
            version: Ok(version),
            newest: Newest::Labelled(hash),
            stable: None,
            starting: false,
            replicas,
            says,
            ..self.clone()
        })
    }

    /// Whether its pods are kept as they are.
    pub fn is_held(&self) -> bool {
        matches!(self.says, Says::Held(_))
    }

    /// The fields by which its controller reports its rollout.
    pub fn reported(&self) -> Reported<'_> {
        Reported {
            generation: self.generation,
            observed_generation: self.observed_generation,
            replicas: self.replicas,
            deleting: self.deleting,
            says: &self.says,
            refused: self.refused.as_deref(),
            starting: self.starting,
        }
    }
}

/// The settings of a workload's owner, by `allclear.dev/…` annotations and the deadline in its spec. Anything unset
/// falls back to configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tuning {
    /// `enabled: "false"` takes the workload out.
    pub disabled: bool,
    /// `hosts`: these, instead of what Ingresses and routes say.
    pub hosts: Option<Vec<Host>>,
    /// `distribution-ids`: these, instead of what the hosts match.
    pub distributions: Option<BTreeSet<DistributionId>>,
    /// `paths` and `cache-tags`: what to purge.
    pub paths: Option<Extent>,
    pub counts: Counts,
    pub deadlines: Deadlines,
    /// `group-version`: what the owner calls the images in the whole group; compared where both members have it.
    pub group_version: Option<String>,
    /// `group-name`: what the workload is called in the whole group.
    pub group_name: Option<GroupName>,
    pub proof: Proving,
    /// The actions to take once.
    pub asks: Asks,
    /// Annotations that could not be used, and why; each becomes a condition, never a crash. The first [`FAULTS_MAX`], each cut to
    /// [`FAULT_BYTES_MAX`]; add one by [`Tuning::fault`].
    pub faults: Vec<String>,
    /// How many more there are.
    pub more_faults: usize,
}

/// What makes the version of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// `containers`: only their images, and those of volumes that it names.
    pub containers: Option<BTreeSet<String>>,
    /// `change`: what counts beside the images, instead of what the configuration says.
    pub of: Option<VersionOf>,
}

/// How long a rollout of it may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Deadlines {
    /// `rollout-timeout`.
    pub rollout_timeout: Option<Duration>,
    /// How long its own spec lets a rollout go without progress. `None` where there is no deadline.
    pub own: Option<Duration>,
}

/// An owner's requests for single actions: each changed value is a new request. Anything unset requests nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Asks {
    /// `requested-at`: a changed value asks for a purge now.
    pub requested_at: Option<String>,
    /// `requested-paths`: what that purge is about, instead of what is usually purged. None where they name another request.
    pub requested_paths: Option<PathSet>,
    /// `retry-at`: a changed value has purges tried now that CloudFront refused.
    pub retry_at: Option<String>,
    /// `resend`: webhook deliveries that are to be sent again.
    pub resend: Option<Resend>,
}

/// Faults of one workload that are named; of the others only how many there are. An owner mends what is named and sees the next
/// ones then. Kubernetes takes 256 KiB of annotations of one object, so there may be thousands.
pub const FAULTS_MAX: usize = 10;

/// Bytes of one fault in words: the name of an annotation, at most 76, and a sentence; the longest has 230 bytes and names all
/// [`ANNOTATIONS`]. A value may be repeated in it.
pub const FAULT_BYTES_MAX: usize = 320;

/// Longest value of one of our annotations that is looked at, in bytes: 100 hosts (`annotated::LIST_LEN_MAX`) of at most 253 bytes, with commas and
/// blanks, are 25 KiB.
pub const ANNOTATION_BYTES_MAX: usize = 32 * 1024;

/// The annotations that are understood, without their prefix.
const ANNOTATIONS: [&str; 17] = [
    "enabled",
    "hosts",
    "distribution-ids",
    "paths",
    "cache-tags",
    "containers",
    "change",
    "rollout-timeout",
    "proof",
    "proof-paths",
    "proof-marker",
    "requested-at",
    "requested-paths",
    "group-version",
    "group-name",
    "retry-at",
    "resend",
];

/// Most paths and cache tags of one request: as many as one invalidation has (decision 39).
pub const REQUESTED_PATHS_MAX: usize = 10;

/// Bytes of the paths of one request. A record has them beside its votes until it is purged, and still has room for its first vote.
pub const REQUESTED_PATH_BYTES_MAX: usize = 1024;

/// Longest value of `requested-at` that is kept; a timestamp needs 35.
const REQUESTED_AT_BYTES_MAX: usize = 64;

impl Tuning {
    /// Whether the owner has named what is purged, so that nothing has to lead to the workload.
    pub fn names_its_site(&self) -> bool {
        self.hosts.is_some() || self.distributions.is_some()
    }

    /// Reads the annotations of a workload. A bad one is left out and named in [`Tuning::faults`].
    pub fn read<'a>(annotations: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut tuning = Self::default();
        let (mut items, mut unknown, mut of) = (Vec::new(), Vec::new(), None);
        for (key, value) in annotations {
            let Some(name) = key.strip_prefix(ANNOTATION_PREFIX) else { continue };
            if name == "requested-paths" {
                of = of_request(value).0;
            }
            if !ANNOTATIONS.contains(&name) {
                unknown.push(key);
            } else if value.len() > ANNOTATION_BYTES_MAX {
                let bytes = value.len();
                tuning.fault(|| format!("annotation {key}: {bytes} bytes, {ANNOTATION_BYTES_MAX} at most"));
            } else if let Err(why) = tuning.read_one(name, value, &mut items) {
                tuning.fault(|| format!("annotation {key}: {why}"));
            }
        }
        if of.is_some_and(|of| tuning.asks.requested_at.as_deref() != Some(of)) {
            tuning.asks.requested_paths = None;
        }
        // After the known ones, because what an owner wanted and does not get comes first.
        for key in unknown {
            tuning.fault(|| format!("annotation {key}: unknown; known are {}", ANNOTATIONS.join(", ")));
        }
        if !items.is_empty() {
            tuning.read_extent(items);
        }
        tuning
    }

    fn read_extent(&mut self, items: Vec<Item>) {
        match Extent::of(items) {
            Ok(extent) if extent.bytes() > VOTE_PATH_BYTES_MAX => {
                let bytes = extent.bytes();
                let why =
                    format!("{bytes} bytes of paths and tags, {VOTE_PATH_BYTES_MAX} at most; use fewer and wider ones");
                self.fault(|| format!("annotation {ANNOTATION_PREFIX}paths: {why}"));
            }
            Ok(extent) => self.paths = Some(extent),
            // Neither the one nor the other may be left out.
            Err(why) => {
                self.fault(|| format!("annotation {ANNOTATION_PREFIX}paths: {why}; until then everything is purged"));
                self.paths = Some(Extent::default());
            }
        }
    }

    /// Adds a fault. Words that would not be kept are not made.
    pub fn fault(&mut self, words: impl FnOnce() -> String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(cut(&words(), FAULT_BYTES_MAX));
        } else {
            self.more_faults += 1;
        }
    }

    fn read_one(&mut self, name: &str, value: &str, items: &mut Vec<Item>) -> Result<(), Unusable> {
        match name {
            "enabled" => self.disabled = !truth(value)?,
            "hosts" => self.hosts = Some(list(value, str::parse)?),
            "distribution-ids" => {
                self.distributions = Some(list(value, str::parse::<DistributionId>)?.into_iter().collect());
            }
            "paths" => items.extend(list(value, str::parse::<Item>)?),
            "cache-tags" => items.extend(list(value, |item| {
                let tag = if item.starts_with('#') { item.to_owned() } else { format!("#{item}") };
                tag.parse::<Path>().map(Item::Path)
            })?),
            "containers" => {
                let names = list(value, |item| Ok::<_, Unusable>(item.to_owned()))?;
                self.counts.containers = Some(names.into_iter().collect());
            }
            "change" => self.counts.of = Some(VersionOf::parse(value)?),
            "rollout-timeout" => self.deadlines.rollout_timeout = Some(timeout(value)?),
            "proof" | "proof-paths" | "proof-marker" => self.proof.read(name, value)?,
            "requested-at" | "retry-at" if value.len() > REQUESTED_AT_BYTES_MAX => {
                return Err(Unusable::Value(format!("longer than {REQUESTED_AT_BYTES_MAX} bytes")));
            }
            "requested-at" => self.asks.requested_at = Some(value.to_owned()),
            "retry-at" => self.asks.retry_at = Some(value.to_owned()),
            "requested-paths" => self.asks.requested_paths = Some(requested_paths(of_request(value).1)?),
            "group-version" => self.group_version = Some(group_version(value)?),
            "group-name" => self.group_name = Some(GroupName::parse(value.trim())?),
            "resend" => self.asks.resend = Some(Resend::parse(value)?),
            // The caller has looked it up among those that are known.
            _ => {}
        }
        Ok(())
    }
}

/// Takes a list of paths apart from the `requested-at` of the request that it is of, if it begins with one: `TIME /a,/b`. Without
/// one, it is of each request for as long as it stands there.
fn of_request(value: &str) -> (Option<&str>, &str) {
    let value = value.trim_start();
    match value.split_once(char::is_whitespace) {
        Some((at, paths)) if !at.starts_with(['/', '#']) => (Some(at), paths),
        Some(_) | None => (None, value),
    }
}

/// Reads what a purge by request is about: paths, and cache tags with their `#`.
///
/// # Errors
/// When one is no path, or there are too many.
pub fn requested_paths(value: &str) -> Result<PathSet, Unusable> {
    let paths = list(value, str::parse::<Path>)?;
    let (items, bytes) = (paths.len(), paths.iter().map(|path| path.as_str().len()).sum::<usize>());
    if items > REQUESTED_PATHS_MAX || bytes > REQUESTED_PATH_BYTES_MAX {
        return Err(Unusable::Value(format!(
            "{items} paths of {bytes} bytes, {REQUESTED_PATHS_MAX} of {REQUESTED_PATH_BYTES_MAX} bytes at most; use fewer and wider ones"
        )));
    }
    Ok(paths.into_iter().collect())
}

/// The version, or what is to be done about one that a record has no room for.
///
/// # Errors
/// Above [`VERSION_BYTES_MAX`].
pub fn recordable(version: Version) -> Result<Version, NoVersion> {
    let bytes = serde_json::to_string(&version).map_or(usize::MAX, |text| text.len());
    if bytes > VERSION_BYTES_MAX {
        return Err(NoVersion::TooLarge { containers: version.iter().len(), bytes });
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::names::image::Container;

    fn read(pairs: &[(&str, &str)]) -> Tuning {
        Tuning::read(pairs.iter().copied())
    }

    #[test]
    fn a_bad_annotation_is_named_and_the_others_hold() {
        let tuning = read(&[
            ("allclear.dev/rollout-timeout", "soon"),
            ("allclear.dev/hosts", "www.example.com, shop.example.com"),
            ("allclear.dev/host", "typo.example.com"),
            ("other.dev/hosts", "ignored.example.com"),
        ]);
        assert_eq!(tuning.hosts.as_ref().map(Vec::len), Some(2));
        assert_eq!(tuning.deadlines.rollout_timeout, None);
        assert_eq!(tuning.faults.len(), 2);
        assert!(tuning.faults[0].contains("rollout-timeout"));
        assert!(tuning.faults[1].contains("known are") && tuning.faults[1].ends_with("resend"), "{:?}", tuning.faults);
    }

    #[test]
    fn faults_are_named_up_to_a_number_and_counted_beyond_with_what_is_known_first() {
        let many: Vec<String> = (0..1_900).map(|number| format!("allclear.dev/a-{number:04}")).collect();
        let value = "x".repeat(240_000);
        let known = ("allclear.dev/rollout-timeout", value.as_str());
        let tuning = Tuning::read(many.iter().map(|key| (key.as_str(), "true")).chain([known]));
        assert_eq!((tuning.faults.len(), tuning.more_faults), (10, 1_891));
        assert_eq!(tuning.faults[0], "annotation allclear.dev/rollout-timeout: 240000 bytes, 32768 at most");
        let long = format!("allclear.dev/{}", "ü".repeat(500));
        let tuning = read(&[(&long, ""), ("allclear.dev/enabled", &value[..30_000])]);
        assert!(
            tuning.faults.iter().all(|fault| fault.len() <= FAULT_BYTES_MAX && fault.ends_with('…')),
            "{:?}",
            tuning.faults
        );
    }

    #[test]
    fn a_version_too_large_for_a_record_says_what_to_choose() {
        let version = |containers: usize| -> Version {
            let image = |number: usize| (Container::Main(format!("c-{number}")), "shop/web:1".parse().unwrap());
            (0..containers).map(image).collect()
        };
        assert_eq!(recordable(version(100)), Ok(version(100)));
        let why = recordable(version(1_000)).unwrap_err().to_string();
        assert!(why.contains("1000 containers") && why.contains("allclear.dev/containers"), "{why}");
        assert!(why.len() < FAULT_BYTES_MAX, "{why}");
    }

    #[test]
    fn paths_that_name_another_request_are_not_those_of_this_one() {
        let asked = |at: &str, paths: &str| {
            let tuning = read(&[("allclear.dev/requested-paths", paths), ("allclear.dev/requested-at", at)]);
            assert_eq!(tuning.faults, [""; 0]);
            tuning.asks.requested_paths.map(|paths| paths.to_string())
        };
        assert_eq!(asked("10:00", "10:00 /a, /b").as_deref(), Some("/a /b"));
        assert_eq!(asked("11:00", "10:00 /a, /b"), None, "somebody asked again and left them");
        assert_eq!(asked("11:00", " /a, /b c").as_deref(), Some("/a /b%20c"), "they name none");
    }

    #[test]
    fn what_a_request_is_about_is_bounded_and_read_as_paths_are() {
        let tuning = read(&[("allclear.dev/requested-paths", "/a b, #Tag")]);
        assert_eq!(tuning.asks.requested_paths.map(|paths| paths.to_string()).as_deref(), Some("#tag /a%20b"));
        let many = (0..11).map(|number| format!("/{number}")).collect::<Vec<_>>().join(",");
        for bad in ["a", "/*/b", "", &many, &format!("/{}", "x".repeat(1_024))] {
            let tuning = read(&[("allclear.dev/requested-paths", bad)]);
            assert_eq!((tuning.asks.requested_paths, tuning.faults.len()), (None, 1), "{bad}");
        }
    }

    #[test]
    fn paths_and_cache_tags_share_one_purge() {
        let tuning = read(&[("allclear.dev/paths", "/a/*,/b"), ("allclear.dev/cache-tags", "shop")]);
        assert_eq!(tuning.faults, Vec::<String>::new());
        assert_eq!(tuning.paths.map(|paths| paths.written().count()), Some(3));
    }

    #[test]
    fn routes_are_a_word_among_paths_and_with_tags_everything_is_purged() {
        let of = |annotations: &[(&str, &str)]| {
            let tuning = read(annotations);
            (tuning.paths.map(|paths| paths.to_string()).unwrap_or_default(), tuning.faults.len())
        };
        assert_eq!(of(&[("allclear.dev/paths", "routes")]), ("routes".to_owned(), 0));
        assert_eq!(of(&[("allclear.dev/paths", "/api/*, routes")]), ("routes /api/*".to_owned(), 0));
        let both = [("allclear.dev/paths", "routes"), ("allclear.dev/cache-tags", "shop")];
        assert_eq!(of(&both), ("/*".to_owned(), 1), "never less than either");
    }
}
