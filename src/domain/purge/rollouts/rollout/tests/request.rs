//! What a purge by request is about.

use super::*;
use crate::agreement::group::{self, Known, Told, View};
use crate::records::record::{Edge, Lead, Moved, Record};
use crate::rollouts::rollout::request::voted;
use kernel::id::{Component, Origin, Vector};
use kernel::names::paths::{Path, PathSet};

fn paths(items: &[&str]) -> PathSet {
    PathSet::of(items.iter().map(|item| Path::parse(item).unwrap()).collect()).unwrap()
}

/// A request of this value, about these paths.
fn asking(workload: Workload, at: &str, about: Option<&[&str]>) -> Workload {
    let mut workload = workload;
    workload.tuning.asks.requested_at = Some(at.into());
    workload.tuning.asks.requested_paths = about.map(paths);
    workload
}

/// The paths that were ordered, by order.
fn ordered(story: &Story) -> Vec<PathSet> {
    let order = |effect: &Effect| if let Effect::Purge(order) = effect { Some(order.paths.clone()) } else { None };
    let mut all: Vec<PathSet> = story.effects.iter().filter_map(order).collect();
    all.dedup();
    all
}

#[test]
fn a_request_purges_the_paths_it_names_once_and_the_next_change_the_usual_ones() {
    let mut story = Story::begin(complete("a", 1));
    story.see(asking(complete("a", 1), "1", Some(&["/a", "/b/*"])));
    assert_eq!((story.last(), story.purges().len()), (Some(&Outcome::Purged), 1));
    assert_eq!(ordered(&story), [paths(&["/a", "/b/*"])]);
    assert_eq!((story.record().request, story.record().asked.clone()), (None, None), "it is done");
    story.see(asking(complete("b", 2), "1", Some(&["/a"])));
    assert_eq!(ordered(&story).last(), Some(&PathSet::default()), "the annotation of the last request is still there");
    story.see(asking(complete("b", 2), "2", None));
    assert_eq!(ordered(&story).last(), Some(&PathSet::default()));
}

#[test]
fn a_request_beside_a_change_purges_what_either_asks_for() {
    let usual = paths(&["/app/*"]);
    let tuned = |workload: Workload| Workload {
        tuning: crate::workloads::workload::Tuning { paths: Some(usual.clone().into()), ..workload.tuning.clone() },
        ..workload
    };
    let both = paths(&["/app/*", "/old"]);
    // Joined to a rollout in flight, and begun together with one.
    for before in [Some(half("b", 2)), None] {
        let mut story = Story::begin(tuned(complete("a", 1)));
        before.into_iter().for_each(|workload| story.see(tuned(workload)));
        story.see(tuned(asking(complete("b", 2), "1", Some(&["/old"]))));
        assert_eq!(ordered(&story), std::slice::from_ref(&both));
    }
    // The edge may have another version.
    let mut story = Story::begin(tuned(complete("a", 1)));
    story.held.insert("purge");
    story.see(tuned(complete("b", 2)));
    story.see(tuned(asking(complete("b", 2), "1", Some(&["/old"]))));
    assert_eq!(ordered(&story).last(), Some(&both), "the purge of b is not made yet");
}

#[test]
fn two_requests_before_one_purge_are_purged_together() {
    let usual = paths(&["/app/*"]);
    for (first, second, expected) in [
        (Some(&["/1"][..]), Some(&["/2"][..]), paths(&["/1", "/2"])),
        (Some(&["/1"]), None, paths(&["/1", "/app/*"])),
        (None, Some(&["/2"]), paths(&["/2", "/app/*"])),
    ] {
        let tuned = |mut workload: Workload| {
            workload.tuning.paths = Some(usual.clone().into());
            workload
        };
        let mut story = Story::begin(tuned(complete("a", 1)));
        story.see(tuned(asking(half("a", 1), "1", first)));
        story.see(tuned(asking(half("a", 1), "2", second)));
        story.see(tuned(asking(complete("a", 1), "2", second)));
        assert_eq!(ordered(&story), [expected]);
    }
}

#[test]
fn a_member_without_news_votes_for_what_another_asks_for_and_for_the_usual_where_anything_else_is_new() {
    let policy = Policy { paths: paths(&["/app/*"]).into(), ..Policy::default() };
    let rest = Record { uid: "uid-1".into(), version: version("a"), ..Record::first(Seq(4)) };
    let asker = |asked: Option<PathSet>| Record {
        change: Change::Requested,
        closed: Seq(6),
        request: Some(Seq(7)),
        asked,
        ..Record { seq: Seq(7), ..rest.clone() }
    };
    let wanted = Some(paths(&["/a"]));
    let origin = |member: &str| Origin::from(format!("o-{member}").as_str());
    let ask = |own: &Record, others: &[&Record]| {
        let names = ["eu-1", "eu-2", "us-1"];
        let records = std::iter::once(own).chain(others.iter().copied());
        let known = |member: &str, record: &Record| Known {
            origin: origin(member),
            current: true,
            alive: true,
            published: record.clone().into(),
            told: Told::default(),
        };
        let members: Vec<_> = names.into_iter().zip(records).collect();
        let vector = Vector(members.iter().map(|(m, r)| ((*m).into(), Component::bare(origin(m), r.seq))).collect());
        let view = View {
            members: members.iter().map(|(m, r)| ((*m).into(), Some(known(m, r)))).collect(),
            ..View::default()
        };
        assert!(matches!(group::fate(&view, &vector), group::Fate::Open(_)), "no vote is cast yet");
        voted(own, &complete("a", 1), &view, &vector, &policy).at_most()
    };
    // One that has voted for what it asks for.
    let of_vote = |record: &Record, routed: serde_json::Value| {
        let names = ["eu-1", "eu-2", "us-1"].map(|member| (member, if member == "eu-2" { Seq(7) } else { Seq(4) }));
        let vector = Vector(names.into_iter().map(|(m, seq)| (m.into(), Component::bare(origin(m), seq))).collect());
        let vote =
            serde_json::json!({"v": vector, "s": 7, "i": {}, "c": "requested", "j": 3, "p": ["/a"], "routed": routed});
        Record { votes: vec![serde_json::from_value(vote).unwrap()], ..record.clone() }
    };
    let all = paths(&["/app/*"]);
    let changed = Record { change: Change::Changed, ..asker(None) };
    assert_eq!(ask(&rest, &[&asker(wanted.clone()), &rest]), paths(&["/a"]));
    assert_eq!(ask(&asker(wanted.clone()), &[&rest, &rest]), paths(&["/a"]));
    assert_eq!(ask(&rest, &[&asker(wanted.clone()), &asker(Some(paths(&["/b"])))]), paths(&["/a", "/b"]));
    assert_eq!(ask(&rest, &[&asker(wanted.clone()), &changed]), all);
    assert_eq!(ask(&rest, &[&asker(None), &rest]), all, "also of a release that does not know such paths");
    let asked = of_vote(&asker(None), serde_json::json!({}));
    assert_eq!(ask(&rest, &[&asked, &rest]), paths(&["/a"]));
    let by_routes = of_vote(&asker(None), serde_json::json!({"www.example.com": ["/a"]}));
    assert_eq!(ask(&rest, &[&by_routes, &rest]), all, "which paths routes send there, that member knows alone");
    let moved = Record { edge: Edge::Moved, ..rest.clone() };
    assert_eq!(ask(&moved, &[&asker(wanted), &rest]), all, "our own edge may have anything");
}

fn moved(identity: &str) -> Event {
    let leads = [Lead::of("www.example.com")].into_iter().collect();
    Event::Moved(Moved::new(identity, "traffic moved from blue (1) to web (2): www.example.com"), leads)
}

#[test]
fn traffic_that_moved_here_is_purged_for_once_and_says_so() {
    let mut story = Story::begin(complete("a", 1));
    story.step(moved("1"));
    story.see(complete("a", 1));
    assert_eq!((story.last(), story.purges().len()), (Some(&Outcome::Purged), 1));
    assert_eq!(ordered(&story), [PathSet::default()]);
    let started = |effect: &Effect| matches!(effect, Effect::Tell(notice) if notice.message.starts_with("traffic moved from blue"));
    assert_eq!(story.effects.iter().filter(|effect| started(effect)).count(), 1);
    assert!(story.record().moved.is_some() && !story.record().leads.is_empty());
    story.step(moved("1"));
    assert_eq!(story.purges().len(), 1, "the same move again");
    story.step(moved("2"));
    assert_eq!(story.purges().len(), 2);
}

#[test]
fn traffic_that_moves_to_a_rollout_in_flight_is_purged_with_it_even_if_it_goes_back() {
    let mut story = Story::begin(complete("a", 1));
    story.see(half("b", 2));
    story.step(moved("1"));
    assert_eq!(story.purges().len(), 0, "it is not complete");
    story.see(complete("b", 2));
    assert_eq!(story.purges().len(), 1);
    story.see(half("c", 3));
    story.step(moved("2"));
    story.see(complete("b", 4));
    assert_eq!(
        (story.last(), story.purges().len()),
        (Some(&Outcome::Purged), 2),
        "the edge has another workload's version"
    );
}

#[test]
fn traffic_that_moved_here_and_a_request_for_some_paths_are_purged_together() {
    let mut story = Story::begin(complete("a", 1));
    story.held.insert("store");
    story.step(moved("1"));
    story.see(asking(complete("a", 1), "1", Some(&["/old"])));
    story.held.clear();
    story.step(Event::StoreFailed("a lost answer".to_owned()));
    story.pass(Duration::from_secs(120));
    assert_eq!(ordered(&story), [PathSet::default()], "everything, and /old is in that");
}

#[test]
fn one_that_is_switched_off_takes_no_move() {
    let mut story = Story::begin(complete("a", 1));
    let mut off = complete("a", 1);
    off.tuning.disabled = true;
    story.see(off);
    story.step(moved("1"));
    assert_eq!((story.purges().len(), story.record().moved.clone()), (0, None));
}
