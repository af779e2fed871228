//! Pods of other workloads that the Services of a site send requests to as well, and whether they serve another version of it: a canary
//! beside its stable, two Deployments behind one Service.
//!
//! A purge does not wait for them, because they may stay for days. But while they serve, what was purged may come back to the edge in
//! their version, so nobody says that the edge has the new one. Not for a workload's own pods; see [`crate::workloads::serving`].

use std::collections::BTreeSet;
use std::fmt;

use crate::workloads::readiness::Pod;
use crate::workloads::workload::Workload;
use kernel::names::image::{Container, Version, brief};
use kernel::text;

/// Pods named in one sentence; those of one workload have one version.
const NAMED_MAX: usize = 2;

/// Longest name that is repeated (a DNS subdomain), so that words are bounded.
const NAME_CHARS_MAX: usize = 253;

/// Begins the words. They contain no semicolon.
pub const BESIDE: &str = "another version serves beside it: ";

/// What ends it, for people. What follows then is what follows a change of version, or traffic that moved.
pub const BESIDE_CURE: &str = "the edge may get either of them until those pods run this version too, or are gone";

/// A pod of another workload to which a Service sends requests that leads to this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    pub pod: Pod,
    /// The name of its workload; `None` where it has none.
    pub owner: Option<String>,
    pub service: String,
}

/// Those that run another version, in words. `None` where none does, or where ours is not known.
pub fn another_version(beside: &[Beside], of: &Workload, same_digest_is_same: bool) -> Option<String> {
    let ours = of.version.as_ref().ok()?;
    let differs =
        |one: &&Beside| one.pod.version.as_ref().is_none_or(|theirs| differ(ours, theirs, same_digest_is_same));
    let mut others: Vec<&Beside> = beside.iter().filter(differs).collect();
    others.sort_by_key(|one| (&one.owner, &one.pod.name));
    let names: BTreeSet<&str> = others.iter().map(|one| one.pod.name.as_str()).collect();
    others.dedup_by_key(|one| &one.pod.name);
    let mut words: Vec<String> = others.iter().take(NAMED_MAX).map(|one| one.words(ours)).collect();
    let more = names.len().saturating_sub(words.len());
    if more > 0 {
        words.push(format!("{more} more"));
    }
    (!words.is_empty()).then(|| format!("{BESIDE}{}", words.join(" and ")))
}

/// The words where it cannot be seen.
pub fn unseen(error: &impl fmt::Display) -> String {
    format!("{BESIDE}it cannot be seen whether one does ({})", error.to_string().replace("; ", ", "))
}

impl Beside {
    fn words(&self, ours: &Version) -> String {
        let cut = |name: &str| text::first(name, NAME_CHARS_MAX).to_owned();
        let owner = self.owner.as_deref().map_or_else(|| "no workload".to_owned(), cut);
        let runs = self.pod.version.as_ref().map(|theirs| brief(&theirs.limited_to(ours)));
        let runs = runs.unwrap_or_else(|| "images that cannot be read".to_owned());
        format!("pod {} of {owner} ({runs}) behind Service {}", cut(&self.pod.name), cut(&self.service))
    }
}

/// Whether they are two versions of one program: a container that both have runs another image. Sidecars that were injected into a pod
/// are in no template; without a common container that runs for the life of the pod, they are two programs.
fn differ(ours: &Version, theirs: &Version, same_digest_is_same: bool) -> bool {
    let (ours, theirs) = (ours.limited_to(theirs), theirs.limited_to(ours));
    let is_one_program = ours.iter().any(|(container, _)| matches!(container, Container::Main(_)));
    is_one_program && !ours.same_content(&theirs, same_digest_is_same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{settled, version};
    use crate::workloads::workload::NoVersion;
    use kernel::names::image::Image;

    fn of(images: &[(&str, &str)]) -> Version {
        let container = |name: &str| Container::from(name.to_owned());
        images.iter().map(|(name, image)| (container(name), Image::parse(image).unwrap())).collect()
    }

    fn beside(pod: &str, owner: Option<&str>, version: Option<Version>) -> Beside {
        let pod = Pod {
            name: pod.into(),
            version,
            ready: true,
            terminating: false,
            started: true,
            finished: false,
            trouble: None,
        };
        Beside { pod, owner: owner.map(str::to_owned), service: "web".into() }
    }

    fn words(beside: &[Beside]) -> Option<String> {
        another_version(beside, &settled(of(&[("web", "shop/web:2"), ("init:migrate", "shop/migrate:2")]), 1, 3), true)
    }

    #[test]
    fn a_pod_with_another_image_of_a_common_container_is_named_with_its_workload_and_version() {
        let stable = |pod: &str| beside(pod, Some("stable"), Some(of(&[("web", "shop/web:1")])));
        let one = "another version serves beside it: pod stable-1 of stable (web: 1) behind Service web";
        assert_eq!(words(&[stable("stable-1")]).as_deref(), Some(one));
        assert_eq!(words(&[stable("stable-1"), stable("stable-1")]).as_deref(), Some(one), "behind two Services");
        let many = words(&["s-1", "s-2", "s-3", "s-4"].map(stable)).unwrap();
        assert!(many.ends_with("pod s-2 of stable (web: 1) behind Service web and 2 more"), "{many}");
        let bare = words(&[beside("bare", None, None)]).unwrap();
        assert!(bare.ends_with("pod bare of no workload (images that cannot be read) behind Service web"), "{bare}");
    }

    #[test]
    fn the_same_version_and_another_program_are_no_other_version() {
        let none = |images: &[(&str, &str)]| words(&[beside("p", Some("other"), Some(of(images)))]).is_none();
        assert!(none(&[("web", "shop/web:2")]), "the same");
        assert!(none(&[("web", "shop/web:2"), ("istio-proxy", "istio:1.20")]), "with an injected sidecar");
        assert!(none(&[("api", "shop/api:1")]), "another program");
        assert!(none(&[("api", "shop/api:1"), ("init:migrate", "shop/migrate:1")]), "that begins alike");
        assert!(!none(&[("web", "shop/web:2"), ("init:migrate", "shop/migrate:1")]));
        assert!(words(&[]).is_none());
        let unreadable =
            Workload { version: Err(NoVersion::TooLarge { containers: 9, bytes: 9 }), ..settled(version("1"), 1, 1) };
        assert_eq!(
            another_version(&[beside("p", None, None)], &unreadable, true),
            None,
            "what is not known is not judged"
        );
    }
}
