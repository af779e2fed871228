use super::*;
use crate::apps::app::{AppKind, LeafId, LeafKind};

fn leaf(name: &str) -> ClusterKey {
    ClusterKey::Leaf(LeafId { kind: LeafKind::Secret, namespace: "shop".to_owned(), name: name.to_owned() })
}

fn target(cluster: ClusterKey, name: &str) -> TargetKey {
    let app = AppKind::new("apps/v1", "Deployment");
    TargetKey::new(cluster, app, "prod", name)
}

fn owner(name: &str) -> PipelineId {
    PipelineId::new("shop", name)
}

fn want(name: &str, targets: &[TargetKey]) -> Event {
    Event::Wanted(owner(name), targets.iter().cloned().collect())
}

const fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

/// What was done, shortly.
fn words(effects: &[Effect]) -> Vec<String> {
    let cluster = |cluster: &ClusterKey| match cluster {
        ClusterKey::Here => "here".to_owned(),
        ClusterKey::Leaf(leaf) => leaf.name.clone(),
    };
    let one = |effect: &Effect| match effect {
        Effect::Start(of) => format!("start {}", cluster(of)),
        Effect::Stop(of) => format!("stop {}", cluster(of)),
        Effect::Want(of, owner, targets) => format!("{} wants {} of {}", owner.name, targets.len(), cluster(of)),
        Effect::LookFor(of, owner, ticket, targets) => {
            format!("{} looks {ticket} for {} of {}", owner.name, targets.len(), cluster(of))
        }
        Effect::Report(owner, sights) => format!("{} unknown to {}", sights.len(), owner.name),
        Effect::Looked(owner, ticket, sights) => format!("{} unknown to look {ticket} of {}", sights.len(), owner.name),
        Effect::TellCrashed(of, None) => format!("{} crashed", cluster(of)),
        Effect::TellCrashed(of, Some(_)) => format!("{} rests", cluster(of)),
    };
    effects.iter().map(one).collect()
}

#[test]
fn each_cluster_learns_its_own_targets_and_that_they_are_not_wanted_any_more() {
    let mut clusters = Clusters::default();
    let targets = [target(ClusterKey::Here, "web"), target(leaf("eu"), "web"), target(leaf("eu"), "api")];
    let first = clusters.step(at(0), want("web", &targets));
    assert_eq!(words(&first), ["start here", "web wants 1 of here", "start eu", "web wants 2 of eu"]);
    let second = clusters.step(at(1), want("web", &targets[..1]));
    assert_eq!(words(&second), ["web wants 1 of here", "web wants 0 of eu"]);
    assert_eq!(words(&clusters.step(at(2), want("web", &[]))), ["web wants 0 of here"]);
}

#[test]
fn a_crash_costs_the_targets_of_its_cluster_and_the_sixth_in_a_minute_a_rest() {
    let mut clusters = Clusters::default();
    clusters.step(at(0), want("web", &[target(ClusterKey::Here, "web"), target(leaf("eu"), "web")]));
    for second in 1..=5 {
        let again = clusters.step(at(second), Event::Crashed(leaf("eu")));
        assert_eq!(words(&again), ["eu crashed", "start eu", "web wants 1 of eu"]);
    }
    assert_eq!(words(&clusters.step(at(6), Event::Crashed(leaf("eu")))), ["eu rests", "1 unknown to web"]);
    let asked = [target(ClusterKey::Here, "web"), target(leaf("eu"), "web")].into_iter().collect();
    let looked = clusters.step(at(7), Event::LookedFor(owner("web"), 3, asked));
    assert_eq!(words(&looked), ["web looks 3 for 1 of here", "1 unknown to look 3 of web"]);
    assert_eq!(words(&clusters.step(at(8), want("api", &[target(leaf("eu"), "api")]))), ["1 unknown to api"]);
    let over = clusters.next_deadline().unwrap();
    assert_eq!(over, at(306));
    assert_eq!(words(&clusters.tick(over)), ["start eu", "api wants 1 of eu", "web wants 1 of eu"]);
    assert_eq!(clusters.next_deadline(), None);
}

#[test]
fn a_target_that_is_wanted_while_its_cluster_ends_is_not_lost() {
    let mut clusters = Clusters::default();
    clusters.step(at(0), want("web", &[target(leaf("eu"), "web")]));
    clusters.step(at(1), want("web", &[]));
    assert_eq!(words(&clusters.step(at(121), want("api", &[target(leaf("eu"), "api")]))), ["api wants 1 of eu"]);
    let ended = clusters.step(at(121), Event::Ended(leaf("eu")));
    assert_eq!(words(&ended), ["start eu", "api wants 1 of eu"]);
}

#[test]
fn the_sixty_fifth_cluster_is_refused_in_words_until_another_ends() {
    let mut clusters = Clusters::default();
    for number in 0..LEAVES_MAX {
        clusters.step(at(0), want(&format!("p{number:02}"), &[target(leaf(&format!("c{number:02}")), "web")]));
    }
    assert_eq!(words(&clusters.step(at(1), want("late", &[target(leaf("late"), "web")]))), ["1 unknown to late"]);
    let gone = clusters.step(at(2), want("p07", &[]));
    assert_eq!(words(&gone), ["p07 wants 0 of c07", "stop c07", "start late", "late wants 1 of late"]);
    assert_eq!(clusters.read(), LEAVES_MAX);
}

#[test]
fn a_namespace_that_names_many_clusters_takes_none_from_another() {
    let mut clusters = Clusters::default();
    let targets: Vec<TargetKey> = (0..70).map(|number| target(leaf(&format!("c{number:02}")), "web")).collect();
    clusters.step(at(0), want("greedy", &targets));
    assert_eq!(clusters.read(), LEAVES_MAX);
    clusters.step(at(1), want("here", &[target(ClusterKey::Here, "web")]));
    assert_eq!(clusters.read(), LEAVES_MAX + 1, "our own cluster is none of them");
    let other = PipelineId::new("team", "web");
    let two = [target(leaf("eu"), "web"), target(leaf("us"), "web")];
    let effects = clusters.step(at(2), Event::Wanted(other.clone(), two.into()));
    let done = words(&effects);
    for one in ["stop c62", "start eu", "web wants 1 of eu", "1 unknown to greedy", "start us", "web wants 1 of us"] {
        assert!(done.contains(&one.to_owned()), "{one}: {done:?}");
    }
    assert_eq!(clusters.read(), LEAVES_MAX + 1);
    let said = effects.iter().rev().find_map(|effect| match effect {
        Effect::Report(owner, sights) if owner.name == "greedy" => sights.values().next().cloned(),
        _ => None,
    });
    let words =
        "64 other clusters are read already (namespace shop has most, 62); use a second allclear for some of them";
    assert_eq!(said, Some(Sight::Unknown(words.to_owned())));
    // Only what it may have beside the others comes back to the one with most.
    let back = clusters.step(at(3), Event::Wanted(other, BTreeSet::new()));
    assert_eq!(back.iter().filter(|effect| matches!(effect, Effect::Start(_))).count(), 2);
}

#[test]
fn a_second_notice_of_one_death_is_nothing() {
    let mut clusters = Clusters::default();
    clusters.step(at(0), want("web", &[target(leaf("eu"), "web")]));
    assert_eq!(words(&clusters.step(at(1), Event::Crashed(leaf("us")))), [""; 0]);
    assert_eq!(words(&clusters.step(at(1), Event::Ended(leaf("us")))), [""; 0]);
}
