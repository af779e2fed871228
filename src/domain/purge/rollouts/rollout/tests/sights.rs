//! The meaning of a sight: digests, chosen containers, requests, deadlines, and the notices of an overtaken rollout.

use serde_json::json;

use super::*;
use crate::records::record::Edge;
use kernel::names::image::{Beside, Fields};

const A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn images(images: &[(&str, &str)]) -> Version {
    let map: BTreeMap<String, String> = images.iter().map(|(name, image)| ((*name).into(), (*image).into())).collect();
    serde_json::from_value(serde_json::to_value(map).unwrap()).unwrap()
}

/// Complete with these images; `chosen` is what its owner chose of them.
fn of(all: &[(&str, &str)], chosen: Option<&str>, generation: i64) -> Workload {
    let mut workload = complete("a", generation);
    workload.version = Ok(images(all));
    if let Some(chosen) = chosen {
        let names = BTreeSet::from([chosen.to_owned()]);
        workload.version = Ok(images(all).only(&names).unwrap());
        workload.tuning.counts.containers = Some(names);
    }
    workload
}

fn asking(at: &str, mut workload: Workload) -> Workload {
    workload.tuning.asks.requested_at = Some(at.into());
    workload
}

fn changes(story: &Story, kind: Kind) -> Vec<String> {
    let told =
        story.effects.iter().filter_map(|effect| if let Effect::Tell(notice) = effect { Some(notice) } else { None });
    told.filter(|notice| notice.kind == kind).map(|notice| notice.change.clone()).collect()
}

#[test]
fn a_tag_that_is_pinned_moved_and_unpinned_is_purged_each_time() {
    let tags = [format!("latest@{A}"), format!("latest@{B}"), "latest".to_owned()];
    let mut story = Story::begin(complete("latest", 1));
    for (count, (tag, generation)) in tags.iter().zip(2..).enumerate() {
        story.see(complete(tag, generation));
        assert_eq!(story.purges().len(), count + 1, "{tag}");
        assert_eq!(story.record().version, version(tag), "the record says what runs");
    }
}

#[test]
fn a_new_tag_of_the_same_digest_is_recorded_and_not_purged() {
    let mut story = Story::begin(complete(&format!("1@{A}"), 1));
    story.see(complete(&format!("2@{A}"), 2));
    assert_eq!((story.purges().len(), story.record().seq), (0, Seq(1)));
    assert_eq!(story.record().version, version(&format!("2@{A}")));
    // Without its digest it may be anything.
    story.see(complete("2", 3));
    assert_eq!(story.purges().len(), 1);
}

#[test]
fn going_back_to_the_same_digest_under_another_tag_is_going_back() {
    let mut story = Story::under(without_barrier(OnRollback::Close), complete(&format!("1@{A}"), 1));
    story.see(half(&format!("2@{B}"), 2));
    story.see(complete(&format!("1-again@{A}"), 3));
    assert_eq!((story.purges().len(), story.last()), (0, Some(&Outcome::Returned)));
}

#[test]
fn choosing_containers_is_no_change_and_what_both_selections_have_is_compared() {
    let both: &[(&str, &str)] = &[("web", "web:1"), ("proxy", "envoy:1")];
    let mut story = Story::begin(of(both, None, 1));
    story.see(of(both, Some("web"), 1));
    assert_eq!((story.purges().len(), story.record().version.iter().len()), (0, 1), "chosen");
    story.see(of(&[("web", "web:1"), ("proxy", "envoy:2")], Some("web"), 2));
    assert_eq!(story.purges().len(), 0, "a sidecar that was not chosen");
    story.see(of(&[("web", "web:1"), ("proxy", "envoy:2")], None, 2));
    assert_eq!((story.purges().len(), story.record().version.iter().len()), (0, 2), "no longer chosen");
    story.see(of(&[("web", "web:2"), ("proxy", "envoy:2")], Some("web"), 3));
    assert_eq!(story.purges().len(), 1, "chosen and changed at once");
    story.see(of(&[("web", "web:2"), ("proxy", "envoy:2"), ("new", "new:1")], None, 4));
    assert_eq!(story.purges().len(), 1, "the old selection knew nothing of the others");
    story.see(of(&[("web", "web:2"), ("proxy", "envoy:2")], None, 5));
    assert_eq!(story.purges().len(), 2, "a container that is really gone");
}

/// Complete, with this environment in its template, or this value of an annotation.
fn beside(of: Beside, generation: i64) -> Workload {
    let workload = complete("a", generation);
    Workload { version: workload.version.map(|images| images.with(Some(of))), ..workload }
}

fn env(value: &str, generation: i64) -> Workload {
    let template = json!({"spec": {"containers": [{"name": "web", "env": [{"name": "KEY", "value": value}]}]}});
    beside(Beside::Template(Fields::of(&template)), generation)
}

fn site(value: Option<&str>, generation: i64) -> Workload {
    beside(Beside::annotation("example.com/site", value), generation)
}

#[test]
fn a_change_of_the_template_is_purged_where_it_counts_and_told_by_path() {
    let mut story = Story::begin(env("1", 1));
    story.see(env("2", 2));
    assert_eq!(story.purges().len(), 1);
    assert_eq!(changes(&story, Kind::RolloutStarted), ["pod template: containers[web].env"]);
    story.see(env("3", 2));
    assert_eq!(
        story.purges().len(),
        1,
        "under one generation nobody has changed it: the API server writes it otherwise"
    );
    assert_eq!(story.record().version, env("3", 2).version.unwrap(), "and that is on record");
    story.see(env("4", 3));
    assert_eq!(story.purges().len(), 2);
}

#[test]
fn an_annotation_that_comes_changes_or_goes_is_a_change_also_without_new_pods() {
    let mut story = Story::begin(site(None, 1));
    for (purges, value) in (1..).zip([Some("1"), Some("2"), None]) {
        story.see(site(value, 1));
        assert_eq!(story.purges().len(), purges, "{value:?}");
    }
    assert_eq!(
        changes(&story, Kind::RolloutStarted)[..2],
        ["example.com/site: (not set) → 1", "example.com/site: 1 → 2"]
    );
}

#[test]
fn another_choice_of_what_counts_is_no_change_even_with_a_purge_under_way() {
    let mut story = Story::begin(complete("a", 1));
    for other in [env("1", 1), site(Some("1"), 1), complete("a", 1)] {
        story.see(other.clone());
        assert_eq!((story.purges().len(), &story.record().version), (0, other.version.as_ref().unwrap()));
    }
    story.held = ["purge"].into();
    story.see(complete("b", 2));
    let with = |workload: Workload| beside_of(&complete("b", 2), &workload);
    story.see(with(env("1", 2)));
    let purge = (*story.purges().first().unwrap()).clone();
    story.held.clear();
    story.step(Event::Purged(purge.clone(), Progress::Created("I1".into())));
    story.step(Event::Purged(purge, Progress::Completed(None)));
    story.see(with(env("1", 2)));
    assert_eq!((story.purges().len(), story.last()), (1, Some(&Outcome::Purged)));
    assert_eq!((story.record().edge, &story.record().settled), (Edge::Settled, &None));
}

/// The images of the one, and what is beside those of the other.
fn beside_of(images: &Workload, other: &Workload) -> Workload {
    let of = other.version.as_ref().unwrap().beside().cloned();
    Workload { version: images.version.clone().map(|images| images.with(of)), ..images.clone() }
}

#[test]
fn a_record_from_before_volumes_is_compared_without_them_until_its_next_change() {
    let content = |tag: &str, generation: i64| {
        of(&[("web", "web:1"), ("volume:content", &format!("site:{tag}"))], None, generation)
    };
    let before =
        Record { volumes: false, ..baseline(&of(&[("web", "web:1")], None, 1), &images(&[("web", "web:1")]), Seq(0)) };
    let mut story = Story::resumed(without_barrier(OnRollback::default()), before);
    story.see(content("1", 1));
    assert_eq!((story.purges().len(), story.record().version.iter().len()), (0, 2), "it was there before");
    story.see(content("2", 2));
    assert_eq!(story.purges().len(), 1);
    story.see(of(&[("web", "web:1")], None, 3));
    assert_eq!(story.purges().len(), 2, "a volume that is gone");
    story.see(content("3", 4));
    assert_eq!(story.purges().len(), 3, "and one that came");
}

#[test]
fn a_request_is_kept_until_something_purged_it() {
    // It comes with a rollback; it had joined what is rolled back, what fails, and what is overtaken.
    let (a, b, c) = (|n| complete("a", n), |n| half("b", n), |n| complete("c", n));
    let stories: [(&str, Vec<Workload>); 4] = [
        ("with the rollback", vec![b(2), asking("1", a(3))]),
        ("before the rollback", vec![b(2), asking("1", b(2)), asking("1", a(3))]),
        ("overtaken", vec![b(2), asking("1", b(2)), asking("1", half("c", 3)), asking("1", a(4))]),
        ("with what completes", vec![b(2), asking("1", b(2)), asking("1", c(3))]),
    ];
    for (name, sights) in stories {
        // Without it, going back is closed without a purge.
        let mut story = Story::under(without_barrier(OnRollback::Close), complete("a", 1));
        sights.into_iter().for_each(|sight| story.see(sight));
        assert_eq!((story.purges().len(), story.last()), (1, Some(&Outcome::Purged)), "{name}");
        assert_eq!(story.record().request, None, "{name}: answered");
    }
    let mut story = Story::under(without_barrier(OnRollback::Close), complete("a", 1));
    story.see(asking("1", half("b", 2)));
    story.pass(Duration::from_secs(15 * 60));
    assert_eq!((story.purges().len(), story.record().request), (0, Some(Seq(2))), "it failed");
    story.see(asking("1", complete("a", 3)));
    assert_eq!((story.purges().len(), story.record().request), (1, None));
}

#[test]
fn a_request_that_comes_after_the_vote_is_a_purge_of_its_own() {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["purge"].into();
    story.see(complete("b", 2));
    story.see(asking("1", complete("b", 2)));
    let first = (*story.purges().first().unwrap()).clone();
    story.held.clear();
    story.step(Event::Purged(first.clone(), Progress::Created("I1".into())));
    assert_eq!(story.record().request, Some(Seq(3)));
    story.step(Event::Purged(first, Progress::Completed(None)));
    story.pass(Duration::from_secs(60));
    assert_eq!(story.purges().len(), 2);
}

#[test]
fn a_rollout_may_take_as_long_as_the_deployment_itself_gives_it() {
    let failed_after = |own: Option<u64>, annotation: Option<u64>| {
        let mut workload = half("b", 2);
        workload.tuning.deadlines.own = own.map(Duration::from_secs);
        workload.tuning.deadlines.rollout_timeout = annotation.map(Duration::from_secs);
        let mut story = Story::begin(complete("a", 1));
        story.see(workload);
        (1..200).find(|_| {
            story.pass(Duration::from_secs(60));
            story.record().phase == Phase::Failed(Failure::TimedOut)
        })
    };
    assert_eq!(failed_after(Some(600), None), Some(15), "rollout.timeout is the longer one");
    assert_eq!(failed_after(Some(3600 + 120), None), Some(63), "its own, and a minute for the controller to say so");
    assert_eq!(failed_after(Some(3600), Some(1200)), Some(20), "an annotation holds as it is");
    assert_eq!(failed_after(None, None), Some(15), "no deadline of its own does not count");
}

#[test]
fn a_rollout_that_is_overtaken_is_superseded_and_has_not_failed() {
    let mut story = Story::begin(complete("1.1", 1));
    story.see(complete("1.2", 2));
    // Complete here, and overtaken before it was voted for.
    story.held = ["find_site"].into();
    story.see(complete("1.3", 3));
    story.held.clear();
    story.step(Event::SiteFailed("timed out".into()));
    story.see(half("1.2", 4));
    story.see(complete("1.2", 4));
    story.pass(Duration::from_secs(60));
    assert_eq!((story.told(Kind::RolloutSuperseded), story.told(Kind::RolloutFailed)), (1, 0));
    assert_eq!(changes(&story, Kind::RolloutSuperseded), ["web: 1.2 → 1.3"]);
    let last = |kind| changes(&story, kind).last().cloned();
    for kind in [Kind::RolloutStarted, Kind::RolloutCompleted, Kind::PurgeCompleted] {
        assert_eq!(last(kind).as_deref(), Some("web: 1.3 → 1.2"), "{kind:?}");
    }
    assert_eq!(story.record().history.last().map(|closed| closed.change.as_str()), Some("web: 1.3 → 1.2"));
    assert_eq!(story.record().from, None, "a record at rest is small");
}

#[test]
fn members_whose_known_digests_differ_wait_though_each_agrees_with_us() {
    let known = |tag: &str| {
        let workload = complete(tag, 1);
        let record = Record { change: Change::Changed, ..baseline(&workload, &version(tag), Seq(1)) };
        let origin = "ledger".into();
        Some(agreement::Known {
            origin,
            current: true,
            alive: true,
            published: record.into(),
            told: agreement::Told::default(),
        })
    };
    let waits_for = |tags: [&str; 3]| {
        let names = ["eu-1", "us-1", "us-2"].map(Member::from);
        let members = names.into_iter().zip(tags.map(known)).collect();
        let view = agreement::View { members, ..agreement::View::default() };
        match agreement::judge(&view, &"eu-1".into(), &Policy::default().group) {
            agreement::Verdict::Candidate(_) => Vec::new(),
            agreement::Verdict::Waiting(who) => who.into_keys().map(|member| member.to_string()).collect(),
        }
    };
    let (a, b, other) = (format!("1@{A}"), format!("1@{B}"), format!("2@{A}"));
    assert_eq!(waits_for(["1", &a, &a]), [""; 0]);
    assert_eq!(waits_for([&a, &other, &other]), [""; 0], "one digest under two tags");
    assert_eq!(waits_for(["1", &a, &b]), ["us-1", "us-2"], "both agree with us, and not with each other");
    assert_eq!(waits_for(["1", &a, &other]), ["us-2"], "ours is not known, and the tag is another one");
}
