//! What tests of several tiers start from: one workload, and a world that does whatever a rollout asks for.
//!
//! Only in tests: of this crate, and of those that switch the feature `testing` on.
#![allow(clippy::expect_used, reason = "what is written here is right, and a test that learns otherwise shall fail")]

use std::collections::BTreeSet;
use std::time::Duration;

use crate::agreement::group::{NumberedView, alone};
use crate::caches::asking::{self as cached, Answer, Endpoint};
use crate::caches::form::Form;
use crate::caches::{Cache, Method, Port, Service};
use crate::purges::purge::Progress;
use crate::rollouts::rollout::{Effect, Event, FoundSite, Identity};
use crate::workloads::serving::OldPods;
use crate::workloads::workload::{NoVersion, Workload};
use kernel::expression::Expression;
use kernel::id::custom::{CustomKind, Declaration};
use kernel::id::{Kind, WorkloadId};
use kernel::names::distribution::DistributionId;
use kernel::names::image::{Container, Image, Version};
use kinds::reported::Replicas;
use proof::asked::{Answers, Reply};

/// `shop/web`, the workload of most tests.
pub fn web() -> WorkloadId {
    WorkloadId::deployment("shop", "web")
}

/// The image `web:<tag>` in the container `web`.
///
/// # Panics
/// If the image is invalid.
pub fn version(tag: &str) -> Version {
    let image = format!("web:{tag}").parse().expect("an image");
    [(Container::Main("web".to_owned()), image)].into_iter().collect()
}

/// Why a workload with the image `WEB` has no version.
///
/// # Panics
/// If that became an image.
pub fn unreadable_image() -> NoVersion {
    let error = Image::parse("WEB").expect_err("no image is written so");
    NoVersion::Image(Container::Main("web".to_owned()), Box::new(error))
}

/// A kind `CloneSet` of this group, which is complete where `status.ready` says so.
///
/// # Panics
/// If too many are declared.
pub fn declared(group: &str) -> Kind {
    let declaration = Declaration {
        api_version: format!("{group}/v1"),
        kind: "CloneSet".to_owned(),
        word: format!("clonesets.{group}"),
        template: "/spec/template".to_owned(),
        selector: "/spec/selector".to_owned(),
        hash_label: "hash".to_owned(),
        complete: Expression::parse("self.status.ready").expect("an expression"),
        failed: None,
    };
    Kind::Custom(CustomKind::declare(declaration).expect("there is room"))
}

/// [`web`] after its rollout to a version: so many pods, all of this generation and available.
pub fn settled(version: Version, generation: i64, pods: u32) -> Workload {
    Workload {
        id: web(),
        object: Kind::Deployment,
        uid: "uid-1".to_owned(),
        created: "2026-01-01T00:00:00Z".to_owned(),
        generation,
        observed_generation: generation,
        version: Ok(version),
        replicas: Replicas { desired: pods, total: pods, updated: pods, ready: pods, available: pods },
        deleting: false,
        says: Default::default(),
        refused: None,
        starting: false,
        newest: Default::default(),
        template_of: None,
        stable: None,
        withdrawn: None,
        selector: Default::default(),
        template_labels: Default::default(),
        tuning: Default::default(),
    }
}

/// A cache that takes bans of every host, at a Service of its name.
///
/// # Panics
/// Never.
pub fn cache(name: &str) -> Cache {
    Cache {
        name: name.to_owned(),
        service: Service { namespace: "shop".to_owned(), name: name.to_owned(), port: Port::Number(80) },
        method: Method::Ban,
        path: Form::parse("{path}").expect("a form"),
        headers: Vec::new(),
        hosts: BTreeSet::new(),
        gone: BTreeSet::from([404, 412]),
        wildcard: false,
        timeout: Duration::from_secs(60),
    }
}

/// A single cluster that works on [`web`].
pub fn identity() -> Identity {
    Identity {
        workload: web(),
        member: "eu-1".into(),
        group: "default".to_owned(),
        grouped: false,
        origin: "ledger".into(),
        epoch_ms: 0,
        keeps_times: false,
    }
}

/// The one distribution of [`web`]'s host.
///
/// # Panics
/// Never.
pub fn distributions() -> BTreeSet<DistributionId> {
    BTreeSet::from(["E1EXAMPLE".parse().expect("an id")])
}

/// The answers to an effect where every call succeeds: a fresh look shows `fresh`, its host is `www.example.com`, and
/// [`distributions`] serve that. A test that needs another answer gives it itself and leaves the other effects to this
/// function.
///
/// # Panics
/// Never.
pub fn answers(effect: &Effect, fresh: Option<&Workload>) -> Vec<Event> {
    let fresh = || fresh.cloned().map(Box::new);
    match effect {
        Effect::Store(_) | Effect::Remove(_) => vec![Event::Stored],
        Effect::Publish(record) => {
            let Identity { member, origin, .. } = identity();
            vec![Event::ViewChanged(NumberedView { number: 0, view: alone(&member, &origin, Some(record)) })]
        }
        Effect::Look => vec![Event::Looked(fresh())],
        Effect::FindOldPods(_) => vec![Event::OldPodsFound(OldPods::default())],
        Effect::FindSite(..) => {
            let hosts = BTreeSet::from(["www.example.com".parse().expect("a host")]);
            vec![Event::SiteFound(FoundSite { hosts, ..FoundSite::default() })]
        }
        Effect::Recheck(vector) => vec![Event::Rechecked(vector.clone(), fresh())],
        Effect::AskCache(of, question) => {
            let pod =
                |name: &str| Endpoint { name: name.to_owned(), address: format!("{name}:80"), uid: name.to_owned() };
            let answer = |pod: Endpoint| {
                let answer = if question.cleared.contains(&pod) { Answer::Before } else { Answer::Cleared };
                (pod, answer)
            };
            let endpoints = ["inner-1", "inner-2"].map(pod).map(answer).into();
            vec![Event::CacheAnswered(of.clone(), question.back(), Ok(cached::Answers { endpoints, unready: 0 }))]
        }
        Effect::Match(vector, plan) | Effect::Compare(vector, plan) => {
            vec![Event::Matched(vector.clone(), plan.clone(), distributions().into())]
        }
        Effect::Purge(order) => vec![
            Event::Purged(order.reference.clone(), Progress::Created("I1EXAMPLE".into())),
            Event::Purged(order.reference.clone(), Progress::Completed(None)),
        ],
        Effect::Tell(notice) => vec![Event::Told(notice.id.clone())],
        Effect::AskEdge(of, question) => {
            let edge = Reply { failure: Some("no connection".to_owned()), ..Reply::default() };
            vec![Event::EdgeAnswered(of.clone(), question.id, Box::new(Answers { edge, pods: Vec::new() }))]
        }
        Effect::Absent(_) | Effect::LeaveEdge(_) | Effect::End => Vec::new(),
    }
}
