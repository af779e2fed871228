mod late;

use super::*;
use crate::apps::app::{AppKind, ClusterKey, Present};
use kernel::id::Revision;
use kernel::unreadable::Unreadable;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn kind(kind: &str) -> AppKind {
    AppKind::new("apps/v1", kind)
}

/// The same with another name.
fn called(name: &str, target: &TargetKey) -> TargetKey {
    TargetKey::new(target.cluster.clone(), target.app.clone(), target.namespace.as_str(), name)
}

fn target(of: &str, namespace: &str) -> TargetKey {
    TargetKey::new(ClusterKey::Here, kind(of), namespace, "web")
}

fn web(namespace: &str) -> TargetKey {
    target("Deployment", namespace)
}

fn look(revision: &str, twice: bool) -> Look {
    let revision = Ok(Revision(revision.to_owned()));
    Look { present: Present { uid: "u-1".to_owned(), unready: None, revision }, twice }
}

fn shop() -> PipelineId {
    PipelineId::new("shop", "web")
}

fn refused() -> PortError {
    PortError::denied("failed to watch deployments.apps in all namespaces", "forbidden")
}

/// A leaf with its clock and the outside that a test plays.
struct Bench {
    leaf: Leaf,
    now: u64,
    watches: BTreeMap<Collection, Number>,
    /// Reads that wait for their answer.
    reads: BTreeMap<TargetKey, Number>,
    reports: Vec<(PipelineId, Sights)>,
    looked: Vec<(PipelineId, u64, Sights)>,
    others: Vec<Effect>,
}

impl Bench {
    fn new() -> Self {
        Self {
            leaf: Leaf::new(),
            now: 0,
            watches: BTreeMap::new(),
            reads: BTreeMap::new(),
            reports: Vec::new(),
            looked: Vec::new(),
            others: Vec::new(),
        }
    }

    /// One with a way to its cluster, and one Pipeline that wants these.
    fn of(targets: &[TargetKey]) -> Self {
        let mut bench = Self::new();
        bench.step(Event::Wanted(shop(), targets.iter().cloned().collect()));
        bench.step(Event::Linked);
        bench
    }

    /// After a new way to the cluster, what is wanted of it is waited for.
    fn step(&mut self, event: Event) {
        let is_linked = event == Event::Linked;
        let effects = self.leaf.step_and_catch_up(at(self.now), event);
        self.perform(effects);
        self.wait(u64::from(is_linked));
    }

    fn wait(&mut self, seconds: u64) {
        let end = self.now + seconds;
        while let Some(deadline) = self.leaf.next_deadline().filter(|deadline| *deadline <= at(end)) {
            self.now = self.now.max(deadline.as_millis().div_ceil(1000));
            let effects = self.leaf.tick(at(self.now));
            self.perform(effects);
        }
        self.now = end;
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            assert_eq!(self.leaf.breaks(&effect), [], "{effect:?}");
            match effect {
                Effect::Watch(number, of) => assert_eq!(self.watches.insert(of, number), None),
                Effect::Unwatch(number) => self.watches.retain(|_, running| *running != number),
                Effect::Read(number, target) => {
                    assert_eq!(self.reads.insert(target, number), None, "read twice at once");
                }
                Effect::Report(owner, sights) => self.reports.push((owner, sights)),
                Effect::Looked(owner, ticket, sights) => self.looked.push((owner, ticket, sights)),
                Effect::Connect | Effect::Want(_) | Effect::End => self.others.push(effect),
            }
        }
        assert!(self.leaf.next_deadline().is_none_or(|deadline| deadline > at(self.now)), "a deadline is in the past");
    }

    /// The only watch of this kind says something.
    fn tell(&mut self, of: &str, news: News) {
        let number = self.watches.iter().find(|(watched, _)| watched.kind == of).map(|(_, number)| *number).unwrap();
        self.step(Event::Told(number, news));
    }

    fn show(&mut self, target: &TargetKey, look: Look) {
        self.tell(&target.app.kind.clone(), News::Seen(vec![(target.clone(), Ok(look))]));
    }

    fn answer(&mut self, target: &TargetKey, answer: Result<Option<Look>, PortError>) {
        let number = self.reads.remove(target).unwrap();
        self.step(Event::Read(number, answer));
    }

    /// The last report of this target to a Pipeline, in brief.
    fn said(&self, target: &TargetKey) -> String {
        brief(self.reports.iter().rev().find_map(|(_, sights)| sights.get(target)).unwrap())
    }
}

fn brief(sight: &Sight) -> String {
    match sight {
        Sight::Unknown(why) => format!("unknown: {why}"),
        Sight::Absent => "absent".to_owned(),
        Sight::Present(Present { unready: Some(why), .. }) => format!("not ready: {why}"),
        Sight::Present(Present { revision: Ok(revision), .. }) => revision.to_string(),
        Sight::Present(Present { revision: Err(why), .. }) => why.to_string(),
    }
}

#[test]
fn a_target_is_there_once_its_collection_is_synced() {
    let mut bench = Bench::of(&[web("prod")]);
    assert_eq!(bench.others, [Effect::Connect, Effect::Want([web("prod")].into())]);
    bench.tell("Deployment", News::Restarted);
    bench.show(&web("prod"), look("1.2", false));
    assert_eq!(bench.said(&web("prod")), "unknown: Target cluster client is not synced");
    bench.tell("Deployment", News::Synced);
    assert_eq!(bench.said(&web("prod")), "1.2");
    bench.show(&web("prod"), look("1.3", false));
    assert_eq!(bench.said(&web("prod")), "1.3");
    bench.tell("Deployment", News::Gone { namespace: "prod".to_owned(), name: "web".to_owned() });
    assert_eq!(bench.said(&web("prod")), "absent");
    assert!(bench.reads.is_empty(), "its own watch has said all of it");
}

#[test]
fn nothing_is_said_again_that_has_not_changed() {
    let mut bench = Bench::of(&[web("prod")]);
    bench.tell("Deployment", News::Restarted);
    bench.tell("Deployment", News::Synced);
    bench.answer(&web("prod"), Ok(Some(look("1.2", false))));
    let before = bench.reports.len();
    for _ in 0..3 {
        bench.show(&web("prod"), look("1.2", false));
        bench.tell("Deployment", News::Synced);
    }
    assert_eq!(bench.reports.len(), before);
}

#[test]
fn only_a_read_by_name_makes_a_target_absent_that_a_listing_did_not_show() {
    let mut bench = Bench::of(&[web("prod")]);
    bench.tell("Deployment", News::Restarted);
    bench.tell("Deployment", News::Synced);
    assert_eq!(bench.said(&web("prod")), "unknown: Target cluster client is not synced");
    bench.answer(&web("prod"), Err(PortError::passing("failed to get deployments.apps web in prod", "no answer")));
    assert!(bench.said(&web("prod")).ends_with("no answer"), "{}", bench.said(&web("prod")));
    bench.wait(60);
    bench.answer(&web("prod"), Ok(None));
    assert_eq!(bench.said(&web("prod")), "absent");

    // A target that is wanted later was dropped when its object was decoded.
    bench.step(Event::Wanted(PipelineId::new("shop", "api"), [called("api", &web("prod"))].into()));
    assert_eq!(bench.watches.len(), 1, "the same watch");
    assert_eq!(bench.reads.len(), 1);
}

#[test]
fn an_answer_never_replaces_what_the_watch_has_shown_meanwhile() {
    let mut bench = Bench::of(&[web("prod")]);
    bench.tell("Deployment", News::Restarted);
    bench.tell("Deployment", News::Synced);
    bench.show(&web("prod"), look("1.3", false));
    bench.answer(&web("prod"), Ok(Some(look("1.2", false))));
    assert_eq!(bench.said(&web("prod")), "1.3");
}

#[test]
fn what_a_new_listing_does_not_show_is_kept_until_it_is_read() {
    let mut bench = Bench::of(&[web("prod")]);
    bench.tell("Deployment", News::Restarted);
    bench.show(&web("prod"), look("1.2", false));
    bench.tell("Deployment", News::Synced);
    bench.tell("Deployment", News::Restarted);
    bench.tell("Deployment", News::Synced);
    assert_eq!(bench.said(&web("prod")), "1.2");
    bench.answer(&web("prod"), Ok(None));
    assert_eq!(bench.said(&web("prod")), "absent");
}

#[test]
fn an_object_that_cannot_be_read_is_unknown_and_costs_itself_only() {
    let mut bench = Bench::of(&[web("prod"), called("api", &web("prod"))]);
    let api = called("api", &web("prod"));
    bench.tell("Deployment", News::Restarted);
    bench.show(&api, look("2.0", false));
    let mistyped = Unreadable::Mistyped { at: ".status.replicas".to_owned(), wanted: "a whole number" };
    bench.tell("Deployment", News::Seen(vec![(web("prod"), Err(mistyped))]));
    bench.tell("Deployment", News::Synced);
    assert_eq!(bench.said(&web("prod")), "unknown: it cannot be read: .status.replicas is not a whole number");
    assert_eq!(bench.said(&api), "2.0");
}

#[test]
fn short_trouble_changes_nothing_and_long_trouble_makes_unknown_until_synced() {
    let mut bench = Bench::of(&[web("prod"), target("StatefulSet", "prod")]);
    for of in ["Deployment", "StatefulSet"] {
        bench.tell(of, News::Restarted);
        bench.show(&target(of, "prod"), look("1.2", false));
        bench.tell(of, News::Synced);
    }
    let trouble = || News::Trouble(PortError::passing("failed to watch deployments.apps in prod", "no route"));
    bench.tell("Deployment", trouble());
    bench.wait(29);
    bench.tell("Deployment", trouble());
    assert_eq!(bench.said(&web("prod")), "1.2");
    bench.wait(1);
    assert_eq!(bench.said(&web("prod")), "unknown: failed to watch deployments.apps in prod: no route");
    assert_eq!(bench.said(&target("StatefulSet", "prod")), "1.2", "trouble stays at home");
    assert_eq!(bench.leaf.troubles(), ["failed to watch deployments.apps in prod: no route"]);
    bench.tell("Deployment", News::Synced);
    assert_eq!(bench.said(&web("prod")), "1.2");
}

#[test]
fn trouble_before_the_first_listing_is_said_at_once() {
    let mut bench = Bench::of(&[web("prod")]);
    bench.tell(
        "Deployment",
        News::Trouble(PortError::passing("failed to list deployments.apps in prod", "no such kind")),
    );
    assert_eq!(bench.said(&web("prod")), "unknown: failed to list deployments.apps in prod: no such kind");
}

#[test]
fn what_must_be_seen_twice_is_ready_after_ten_seconds_and_a_fresh_read() {
    let mut bench = Bench::of(&[web("prod")]);
    bench.tell("Deployment", News::Restarted);
    bench.show(&web("prod"), look("1.2", true));
    bench.tell("Deployment", News::Synced);
    assert!(bench.said(&web("prod")).starts_with("not ready: it was seen ready once"));
    bench.wait(9);
    assert!(bench.reads.is_empty());
    bench.wait(1);
    // Its health has caught up with its sync.
    let mut lagging = look("1.2", true);
    lagging.present.unready = Some("its health is Progressing, not Healthy".to_owned());
    bench.answer(&web("prod"), Ok(Some(lagging.clone())));
    bench.show(&web("prod"), lagging);
    assert_eq!(bench.said(&web("prod")), "not ready: its health is Progressing, not Healthy");
    bench.show(&web("prod"), look("1.2", true));
    bench.wait(10);
    assert!(bench.said(&web("prod")).starts_with("not ready: it was seen ready once"));
    bench.answer(&web("prod"), Ok(Some(look("1.2", true))));
    assert_eq!(bench.said(&web("prod")), "1.2");
    bench.wait(100);
    assert!(bench.reads.is_empty(), "once is enough");
    bench.show(&web("prod"), look("1.3", true));
    assert!(bench.said(&web("prod")).starts_with("not ready"), "another revision is seen for the first time");
}

#[test]
fn a_second_look_that_disagrees_begins_the_ten_seconds_again() {
    let mut bench = Bench::of(&[web("prod")]);
    bench.tell("Deployment", News::Restarted);
    bench.show(&web("prod"), look("1.2", true));
    bench.tell("Deployment", News::Synced);
    bench.wait(10);
    bench.answer(&web("prod"), Ok(None));
    assert!(bench.said(&web("prod")).starts_with("not ready"), "the watch says the last word");
    bench.wait(9);
    assert!(bench.reads.is_empty());
    bench.wait(1);
    bench.answer(&web("prod"), Ok(Some(look("1.2", true))));
    assert_eq!(bench.said(&web("prod")), "1.2");
}

#[test]
fn a_fresh_read_answers_with_what_is_there_now() {
    let mut bench = Bench::of(&[web("prod"), web("eu")]);
    let both: BTreeSet<TargetKey> = [web("prod"), web("eu")].into();
    bench.step(Event::LookedFor(shop(), 7, both.clone()));
    bench.answer(&web("prod"), Ok(Some(look("1.2", false))));
    assert!(bench.looked.is_empty());
    bench.answer(&web("eu"), Err(PortError::passing("failed to get deployments.apps web in eu", "no answer")));
    let (owner, ticket, sights) = bench.looked.pop().unwrap();
    assert_eq!((owner, ticket), (shop(), 7));
    assert_eq!(brief(&sights[&web("prod")]), "1.2");
    assert_eq!(brief(&sights[&web("eu")]), "unknown: failed to get deployments.apps web in eu: no answer");
    // An earlier wish is forgotten, and its answers with it.
    bench.step(Event::LookedFor(shop(), 8, both));
    let old = std::mem::take(&mut bench.reads);
    bench.step(Event::LookedFor(shop(), 9, [web("prod")].into()));
    for number in old.into_values() {
        bench.step(Event::Read(number, Ok(Some(look("1.2", false)))));
    }
    assert!(bench.looked.is_empty());
    bench.answer(&web("prod"), Ok(None));
    assert_eq!(bench.looked.last().map(|(_, _, sights)| sights.len()), Some(1));
    assert_eq!(
        bench.looked.pop().map(|(_, ticket, sights)| (ticket, brief(&sights[&web("prod")]))),
        Some((9, "absent".to_owned()))
    );
}

#[test]
fn a_fresh_read_of_what_must_be_seen_twice_is_ready_only_if_it_was() {
    let mut bench = Bench::of(&[web("prod")]);
    let read = |bench: &mut Bench, revision: &str| {
        bench.step(Event::LookedFor(shop(), 1, [web("prod")].into()));
        bench.answer(&web("prod"), Ok(Some(look(revision, true))));
        brief(&bench.looked.pop().unwrap().2[&web("prod")])
    };
    bench.tell("Deployment", News::Restarted);
    bench.show(&web("prod"), look("1.2", true));
    bench.tell("Deployment", News::Synced);
    assert!(read(&mut bench, "1.2").starts_with("not ready"));
    bench.wait(10);
    bench.answer(&web("prod"), Ok(Some(look("1.2", true))));
    assert_eq!(read(&mut bench, "1.2"), "1.2");
    assert!(read(&mut bench, "1.3").starts_with("not ready"));
}

#[test]
fn a_new_way_to_the_cluster_knows_nothing_of_the_old_one() {
    let mut bench = Bench::of(&[web("prod")]);
    bench.tell("Deployment", News::Restarted);
    bench.show(&web("prod"), look("1.2", false));
    bench.tell("Deployment", News::Synced);
    let old = bench.watches.values().copied().next().unwrap();
    bench.step(Event::LookedFor(shop(), 3, [web("prod")].into()));
    let read = bench.reads.remove(&web("prod")).unwrap();
    bench.step(Event::Linked);
    assert_eq!(bench.said(&web("prod")), "unknown: Target cluster client is not synced");
    assert_eq!(bench.looked.len(), 1, "who waits is told");
    bench.step(Event::Told(old, News::Synced));
    bench.step(Event::Read(read, Ok(Some(look("1.2", false)))));
    assert_eq!(bench.said(&web("prod")), "unknown: Target cluster client is not synced");
    assert_eq!(bench.watches.len(), 1);
    bench.step(Event::Unlinked("Secret shop/eu-1 not found".to_owned()));
    assert_eq!(bench.said(&web("prod")), "unknown: Secret shop/eu-1 not found");
    assert!(bench.watches.is_empty());
    bench.step(Event::LookedFor(shop(), 4, [web("prod")].into()));
    assert_eq!(brief(&bench.looked.pop().unwrap().2[&web("prod")]), "unknown: Secret shop/eu-1 not found");
}

#[test]
fn targets_in_many_namespaces_are_watched_by_one_watch_where_that_is_allowed() {
    let few: Vec<TargetKey> = (0..NAMESPACES_MAX).map(|number| web(&format!("n-{number}"))).collect();
    let many: Vec<TargetKey> = (0..=NAMESPACES_MAX).map(|number| web(&format!("n-{number}"))).collect();
    let namespaces = |bench: &Bench| bench.watches.keys().filter(|of| of.namespace.is_some()).count();
    let mut bench = Bench::of(&few);
    assert_eq!((bench.watches.len(), namespaces(&bench)), (8, 8));
    for (of, number) in bench.watches.clone() {
        let seen = web(of.namespace.as_deref().unwrap());
        for news in [News::Restarted, News::Seen(vec![(seen, Ok(look("1.2", false)))]), News::Synced] {
            bench.step(Event::Told(number, news));
        }
    }
    bench.step(Event::Wanted(shop(), many.iter().cloned().collect()));
    assert_eq!((bench.watches.len(), namespaces(&bench)), (9, 8));
    assert_eq!(bench.said(&few[0]), "1.2", "known without a gap");
    let all = *bench.watches.iter().find(|(of, _)| of.namespace.is_none()).unwrap().1;
    bench.step(Event::Told(all, News::Restarted));
    for target in &many {
        bench.step(Event::Told(all, News::Seen(vec![(target.clone(), Ok(look("1.2", false)))])));
    }
    bench.step(Event::Told(all, News::Synced));
    bench.wait(60);
    bench.step(Event::Wanted(shop(), many.iter().cloned().collect()));
    bench.wait(59);
    assert_eq!(namespaces(&bench), 8);
    bench.wait(1);
    assert_eq!((bench.watches.len(), bench.leaf.watches()), (1, 1));
    assert!(many.iter().all(|target| bench.said(target) == "1.2"));

    let mut bench = Bench::of(&many);
    assert_eq!((bench.watches.len(), namespaces(&bench)), (1, 0));
    bench.tell("Deployment", News::Trouble(refused()));
    assert_eq!((bench.watches.len(), namespaces(&bench)), (9, 9));
    bench.step(Event::Linked);
    assert_eq!((bench.watches.len(), namespaces(&bench)), (1, 0), "a new way may be allowed more");
}

#[test]
fn a_watch_ends_two_minutes_after_its_last_use_and_the_leaf_with_it() {
    let mut bench = Bench::of(&[web("prod")]);
    bench.step(Event::Wanted(PipelineId::new("shop", "api"), [web("prod")].into()));
    bench.step(Event::Wanted(shop(), BTreeSet::new()));
    bench.wait(600);
    assert_eq!(bench.watches.len(), 1, "another wants it");
    bench.step(Event::Wanted(PipelineId::new("shop", "api"), BTreeSet::new()));
    bench.wait(119);
    bench.step(Event::Wanted(shop(), [web("prod")].into()));
    bench.wait(600);
    assert_eq!(bench.watches.len(), 1, "its use began again");
    bench.step(Event::Wanted(shop(), BTreeSet::new()));
    bench.wait(60);
    bench.step(Event::Wanted(PipelineId::new("shop", "api"), BTreeSet::new()));
    bench.wait(60);
    assert!(bench.watches.is_empty());
    assert_eq!(bench.others.last(), Some(&Effect::End));
    assert_eq!(bench.leaf.next_deadline(), None);
    bench.step(Event::Linked);
    bench.step(Event::Wanted(shop(), [web("prod")].into()));
    assert_eq!(bench.others.last(), Some(&Effect::Connect));
}

#[test]
fn more_collections_than_may_be_watched_are_unknown_in_words() {
    let kinds: Vec<TargetKey> = (0..=WATCHES_MAX).map(|number| target(&format!("K{number:03}"), "prod")).collect();
    let mut bench = Bench::of(&kinds);
    assert_eq!(bench.watches.len(), WATCHES_MAX);
    assert_eq!(
        bench.said(&kinds[WATCHES_MAX]),
        "unknown: 200 other collections of its cluster are watched already (namespace shop has most, 200)"
    );
    // A spare one makes room.
    bench.step(Event::Wanted(shop(), [kinds[WATCHES_MAX].clone()].into()));
    assert_eq!(bench.watches.len(), WATCHES_MAX);
    assert!(bench.watches.keys().any(|of| of.kind == "K200"));
}

#[test]
fn a_namespace_with_many_collections_leaves_another_its_share() {
    let kinds: Vec<TargetKey> = (0..=WATCHES_MAX).map(|number| target(&format!("K{number:03}"), "prod")).collect();
    let mut bench = Bench::of(&kinds);
    let other = [target("Z1", "prod"), target("Z2", "prod")];
    bench.step(Event::Wanted(PipelineId::new("team", "web"), other.into()));
    assert_eq!(bench.watches.len(), WATCHES_MAX);
    let zs: Vec<&str> = bench.watches.keys().map(|of| &*of.kind).filter(|kind| kind.starts_with('Z')).collect();
    assert_eq!(zs, ["Z1", "Z2"]);
    assert!(bench.said(&kinds[199]).contains("namespace shop has most, 198"), "{}", bench.said(&kinds[199]));
    // The way to the cluster is lost and found again.
    bench.step(Event::Unlinked("no route".to_owned()));
    bench.step(Event::Linked);
    assert!(["Z1", "Z2"].iter().all(|kind| bench.watches.keys().any(|of| of.kind == *kind)));
}

#[test]
fn a_report_that_nothing_has_shown_breaks_a_promise() {
    let bench = Bench::of(&[web("prod")]);
    let there = Sight::Present(look("1.2", false).present);
    let report = Effect::Report(shop(), [(web("prod"), there)].into());
    assert_eq!(bench.leaf.breaks(&report), [Promise::SeenThisWay]);
}
