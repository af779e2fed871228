//! Which of several objects counts, by the news of two watches.

use super::*;
use crate::testing::{self, settled, version, web};
use crate::workloads::template_of::TemplateOf;
use kernel::names::image::Version;
use kinds::reported::Standing;

fn deployment(pods: u32) -> Box<Workload> {
    Box::new(Workload { uid: "deployment".into(), ..settled(version("1"), 7, pods) })
}

fn rollout(pods: u32) -> Box<Workload> {
    Box::new(Workload { uid: "rollout".into(), object: Kind::Rollout, ..settled(version("2"), 1, pods) })
}

/// The UIDs of what counts; `?` for what cannot be read, `-` for what is gone.
fn said(news: Vec<News>) -> Vec<String> {
    let word = |one| match one {
        News::Seen(workload) if workload.tuning.faults.is_empty() => workload.uid,
        News::Seen(workload) => format!("{}!", workload.uid),
        News::Unreadable(..) => "?".to_owned(),
        News::Gone(_) => "-".to_owned(),
        News::Wanted(_) => "…".to_owned(),
    };
    news.into_iter().map(word).collect()
}

/// After both were listed, with these objects.
fn listed(rollouts: &[Box<Workload>], deployments: &[Box<Workload>]) -> (Joining, Vec<String>) {
    let mut joining = Joining::default();
    let mut all = Vec::new();
    for (kind, found) in [(Kind::Rollout, rollouts), (Kind::Deployment, deployments)] {
        assert_eq!(said(joining.step(Event::Relisting(kind))), [""; 0]);
        all.extend(found.iter().flat_map(|one| said(joining.step(Event::Seen(one.clone())))));
        all.extend(said(joining.step(Event::Listed(kind))));
    }
    (joining, all)
}

#[test]
fn nothing_of_a_rollout_is_said_before_deployments_are_listed_and_each_name_is_said_once() {
    assert_eq!(listed(&[rollout(2)], &[]).1, ["rollout"]);
    assert_eq!(listed(&[], &[deployment(2)]).1, ["deployment"]);
    assert_eq!(listed(&[rollout(2)], &[deployment(0)]).1, ["rollout"]);
    assert_eq!(listed(&[rollout(2)], &[deployment(2)]).1, ["rollout!"], "with a warning");
    assert_eq!(listed(&[rollout(0)], &[deployment(2)]).1, ["deployment"], "those pods serve");
    assert_eq!(listed(&[rollout(0)], &[deployment(0)]).1, ["rollout"]);
    let mut joining = Joining::default();
    assert_eq!(said(joining.step(Event::Seen(rollout(1)))), [""; 0]);
    assert_eq!(said(joining.step(Event::Gone(Kind::Rollout, web()))), [""; 0], "it was never said");
}

#[test]
fn a_cluster_goes_from_a_deployment_to_a_rollout_and_back() {
    let (mut joining, _) = listed(&[], &[deployment(2)]);
    let mut step = |event| said(joining.step(event)).join(" ");
    assert_eq!(step(Event::Seen(rollout(0))), "", "it has no pods yet");
    assert_eq!(step(Event::Seen(deployment(2))), "deployment");
    assert_eq!(step(Event::Seen(rollout(1))), "rollout!");
    assert_eq!(step(Event::Seen(deployment(2))), "", "the Rollout counts");
    assert_eq!(step(Event::Seen(deployment(0))), "rollout");
    assert_eq!(step(Event::Gone(Kind::Deployment, web())), "rollout");
    assert_eq!(step(Event::Seen(deployment(3))), "rollout!");
    assert_eq!(step(Event::Seen(rollout(0))), "-", "who follows it looks, and finds the Deployment");
    assert_eq!(step(Event::Seen(deployment(0))), "rollout");
    assert_eq!(step(Event::Gone(Kind::Rollout, web())), "-");
    assert_eq!(step(Event::Seen(deployment(3))), "deployment");
    assert_eq!(step(Event::Gone(Kind::Deployment, web())), "-");
}

#[test]
fn a_rollout_that_cannot_be_read_hides_a_deployment() {
    let (mut joining, _) = listed(&[], &[deployment(2)]);
    let why = || Unreadable::because("no");
    let mut step = |event| said(joining.step(event)).join(" ");
    assert_eq!(step(Event::Unreadable(Kind::Rollout, web(), why())), "?");
    assert_eq!(step(Event::Seen(deployment(2))), "");
    assert_eq!(step(Event::Unreadable(Kind::Deployment, web(), why())), "");
    assert_eq!(step(Event::NoRollouts), "-");
    assert_eq!(step(Event::Unreadable(Kind::Deployment, web(), why())), "?");
}

#[test]
fn a_later_listing_says_all_rollouts_that_are_there_and_what_is_gone() {
    let (mut joining, _) = listed(&[rollout(2)], &[deployment(2)]);
    let mut step = |event| said(joining.step(event)).join(" ");
    assert_eq!(step(Event::Relisting(Kind::Deployment)), "");
    assert_eq!(step(Event::Listed(Kind::Deployment)), "rollout", "or a watch would take it for gone");
    assert_eq!(step(Event::Relisting(Kind::Rollout)), "");
    assert_eq!(step(Event::Listed(Kind::Rollout)), "-");
}

#[test]
fn two_that_are_read_at_one_time_are_joined_by_the_same_rule() {
    let of = |deployment: Option<u32>, rollout_pods: Option<u32>| {
        let joined =
            joined(deployment.map(|pods| *self::deployment(pods)), rollout_pods.map(|pods| *rollout(pods)), None);
        said(joined.unwrap().into_iter().map(|one| News::Seen(Box::new(one))).collect()).join(" ")
    };
    assert_eq!(of(None, None), "");
    assert_eq!(of(Some(0), None), "deployment");
    assert_eq!(of(None, Some(0)), "rollout");
    assert_eq!(of(Some(2), Some(2)), "rollout!");
    assert_eq!(of(Some(2), Some(0)), "deployment");
    assert_eq!(of(Some(0), Some(0)), "rollout");
}

/// The Rollout `web` that takes its template from the Deployment of this name, of which this generation is noted.
fn referring(to: &str, noted: i64, pods: u32) -> Box<Workload> {
    let of = TemplateOf { deployment: WorkloadId::deployment("shop", to), noted: Some(noted), selects: false };
    Box::new(Workload { version: Ok(Version::default()), template_of: Some(Box::new(of)), ..*rollout(pods) })
}

/// The Deployment `legacy` at a version, whose number is its generation.
fn legacy(version: i64, pods: u32) -> Box<Workload> {
    let id = WorkloadId::deployment("shop", "legacy");
    Box::new(Workload { id, uid: "legacy".into(), ..settled(testing::version(&version.to_string()), version, pods) })
}

/// The same, with the versions of what is complete; `~` where it is not.
fn told(news: Vec<News>) -> String {
    let word = |one| match one {
        News::Seen(workload) => {
            let complete = if workload.standing(true) == Standing::Complete { "" } else { "~" };
            format!("{complete}{}:{}", workload.uid, workload.version.unwrap().to_string().replace("web web:", ""))
        }
        other => said(vec![other]).join(""),
    };
    news.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

fn gone(kind: Kind, name: &str) -> Event {
    Event::Gone(kind, WorkloadId::deployment("shop", name))
}

#[test]
fn a_rollout_has_the_version_of_the_deployment_that_it_refers_to_and_that_one_is_not_followed() {
    let (mut joining, all) = listed(&[referring("legacy", 1, 2)], &[legacy(1, 0), deployment(0)]);
    assert_eq!(all, ["rollout"], "neither Deployment");
    let mut step = |event| told(joining.step(event));
    assert_eq!(step(Event::Seen(legacy(2, 0))), "~rollout:2", "its controller has not noted it");
    assert_eq!(step(Event::Seen(referring("legacy", 2, 2))), "rollout:2");
    assert_eq!(step(Event::Seen(referring("legacy", 3, 2))), "~rollout:2", "our sight of the Deployment is old");
    assert_eq!(step(Event::Seen(legacy(3, 0))), "rollout:3");
    assert_eq!(step(gone(Kind::Deployment, "legacy")), "?", "there is no template");
    assert_eq!(step(Event::Seen(legacy(3, 0))), "rollout:3");
    assert_eq!(step(Event::Seen(rollout(2))), "rollout:2 legacy:3", "it has a template of its own");
}

#[test]
fn a_deployment_is_followed_until_the_rollout_that_refers_to_it_has_pods_and_again_without_it() {
    let (mut joining, all) = listed(&[referring("legacy", 1, 0)], &[legacy(1, 2)]);
    assert_eq!(all, ["legacy"]);
    let mut step = |event| told(joining.step(event));
    assert_eq!(step(Event::Seen(legacy(2, 2))), "legacy:2");
    assert_eq!(step(Event::Seen(referring("legacy", 2, 1))), "rollout:2 -", "its record goes");
    assert_eq!(step(Event::Seen(legacy(2, 1))), "rollout:2");
    assert_eq!(step(Event::Seen(legacy(2, 0))), "rollout:2");
    assert_eq!(step(gone(Kind::Rollout, "web")), "- legacy:2");
    assert_eq!(step(Event::Seen(legacy(2, 2))), "legacy:2");
}

#[test]
fn a_deployment_that_is_not_at_hand_is_asked_for_and_nothing_is_said_before() {
    let (mut joining, _) = listed(&[], &[legacy(1, 0)]);
    let of = || WorkloadId::deployment("shop", "legacy");
    let mut step = |event| told(joining.step(event));
    assert_eq!(step(Event::Seen(referring("legacy", 1, 2))), "- …");
    assert_eq!(step(Event::Seen(referring("legacy", 1, 2))), "");
    assert_eq!(step(Event::Read(of(), Some(legacy(1, 0)))), "rollout:1");
    assert_eq!(step(Event::Read(of(), Some(legacy(2, 0)))), "", "the watch has shown it since");
    assert_eq!(step(gone(Kind::Rollout, "web")), "- legacy:1");
    assert_eq!(step(Event::Seen(referring("legacy", 1, 2))), "- …");
    assert_eq!(step(Event::Relisting(Kind::Deployment)), "");
    assert_eq!(step(Event::Listed(Kind::Deployment)), "", "it may have been listed before");
    assert_eq!(step(Event::Read(of(), None)), "?");
    // During the first listing, what it has contained so far is not known.
    let mut joining = Joining::default();
    joining.step(Event::Relisting(Kind::Deployment));
    joining.step(Event::Seen(legacy(1, 0)));
    assert_eq!(told(joining.step(Event::Seen(referring("legacy", 1, 2)))), "- …");
}

#[test]
fn a_deployment_that_is_gone_when_all_are_listed_again_is_no_template() {
    let (mut joining, _) = listed(&[referring("legacy", 1, 2)], &[legacy(1, 0)]);
    joining.step(Event::Relisting(Kind::Deployment));
    assert_eq!(told(joining.step(Event::Listed(Kind::Deployment))), "?");
    let (_, all) = listed(&[referring("legacy", 1, 2)], &[]);
    assert_eq!(all, ["?"], "and where it never was there");
}

#[test]
fn a_rollout_may_refer_to_the_deployment_of_its_own_name() {
    let (mut joining, all) = listed(&[referring("web", 7, 0)], &[deployment(2)]);
    assert_eq!(all, ["deployment"], "those pods serve");
    let mut step = |event| told(joining.step(event));
    assert_eq!(step(Event::Seen(referring("web", 7, 2))), "rollout:1");
    let newer = Box::new(Workload { version: Ok(version("3")), generation: 8, ..*deployment(0) });
    assert_eq!(step(Event::Seen(newer)), "~rollout:3");
    assert_eq!(step(Event::Seen(referring("web", 8, 2))), "rollout:3");
    assert_eq!(step(gone(Kind::Deployment, "web")), "?");
}
