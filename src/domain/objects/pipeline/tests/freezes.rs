//! Stories of freezes of the cluster: what they hold, for whom, and what is done where they cannot be read.

use std::sync::Arc;

use super::*;
use crate::pipeline::freezes::{FREEZES_MAX, Fleet, Freezes, PromotionFreeze};
use kernel::names::selector::{LabelSelector, Labels};

/// For all Pipelines, without an end.
fn freeze(name: &str) -> PromotionFreeze {
    PromotionFreeze {
        name: name.to_owned(),
        reason: "incident 4711".to_owned(),
        from: None,
        until: None,
        selector: LabelSelector::default(),
        namespaces: [].into(),
        environments: [].into(),
        fault: None,
    }
}

fn known(all: Vec<PromotionFreeze>) -> Event {
    Event::Frozen(Freezes::Known(all.into()))
}

fn opening(open: bool, words: &str) -> Opening {
    Opening { open, changes_after: None, words: words.to_owned() }
}

/// The freezes that the calendar was asked about last.
fn asked(story: &Story) -> Vec<Freeze> {
    let asked = story.asked.iter().rev().find_map(|asked| match asked {
        Effect::Ask(_, Ask::Calendar(_, _, freezes)) => Some(freezes.clone()),
        _ => None,
    });
    asked.unwrap_or_default()
}

#[test]
fn a_freeze_holds_what_is_new_no_override_opens_it_and_its_end_does_at_once() {
    let mut story = Story::new(spec(true));
    story.feed(known(vec![freeze("incident")]));
    story.show("staging", at("2"));
    let ticket = story.ticket();
    story.change(|object| object.answers.overrides = ticket);
    let [dated] = &asked(&story)[..] else { panic!("{:?}", story.asked) };
    assert_eq!((dated.from, dated.to), (i64::MIN, i64::MAX));
    assert_eq!(dated.reason, "PromotionFreeze incident, until it is deleted: incident 4711");
    story.feed(Event::Answered(prod(), Answer::CalendarRead(story.topic(), opening(false, "closed: incident"))));
    story.pass(MINUTE);
    assert_eq!((story.phase(), story.condition("GateClosed")), (Some(Phase::Waiting), Some("closed: incident")));
    story.feed(known(Vec::new()));
    assert_eq!(story.phase(), Some(Phase::Landed));
}

#[test]
fn what_has_begun_goes_on_and_the_next_waits() {
    let mut story = Story::new(spec(false));
    story.show("staging", at("2"));
    assert_eq!(story.phase(), Some(Phase::Landed));
    story.feed(known(vec![freeze("incident")]));
    story.show("prod-a", at("2"));
    story.show("prod-b", at("2"));
    assert_eq!(story.phase(), Some(Phase::Completed));
    story.show("staging", at("3"));
    story.pass(MINUTE);
    assert_eq!(story.phase(), Some(Phase::Waiting));
}

#[test]
fn a_freeze_that_is_seen_before_the_start_counts_though_a_fresh_look_was_on_its_way() {
    let mut story = Story::new(spec(false));
    story.holds_rechecks = true;
    story.show("staging", at("2"));
    let Some(Effect::Recheck(environment, seq, targets)) = story.asked.pop() else { panic!("{:?}", story.asked) };
    story.feed(known(vec![freeze("incident")]));
    let fresh = targets.into_iter().map(|target| (target.clone(), story.truth[&target].clone())).collect();
    story.feed(Event::Rechecked(environment, seq, fresh));
    assert_eq!(story.phase(), Some(Phase::Waiting));
    story.feed(known(Vec::new()));
    let again = |asked: &Effect| matches!(asked, Effect::Recheck(..));
    assert!(story.asked.iter().any(again), "a look of before the freeze is none: {:?}", story.asked);
}

#[test]
fn a_freeze_is_for_what_it_selects() {
    let of = |team: &str| {
        let mut own = spec(false);
        own.labels = Labels::from([("team".to_owned(), team.to_owned())]);
        let mut story = Story::new(own);
        let shop =
            LabelSelector { match_labels: [("team".to_owned(), "shop".to_owned())].into(), ..LabelSelector::default() };
        let elsewhere = PromotionFreeze { namespaces: ["bank".to_owned()].into(), ..freeze("elsewhere") };
        let staging = PromotionFreeze { environments: [Environment("staging".to_owned())].into(), ..freeze("staging") };
        let sale = PromotionFreeze { selector: shop, until: Some(3600), ..freeze("sale") };
        story.feed(known(vec![elsewhere, staging, sale]));
        story.show("staging", at("2"));
        story
    };
    assert_eq!(of("search").phase(), Some(Phase::Landed), "none of them is for it");
    let story = of("shop");
    assert_eq!(story.phase(), Some(Phase::Waiting));
    let reasons: Vec<_> = asked(&story).into_iter().map(|freeze| (freeze.to, freeze.reason)).collect();
    assert_eq!(reasons, [(3600, "PromotionFreeze sale: incident 4711".to_owned())]);
}

/// A freeze of the cluster, and the Pipeline's own calendar, which cannot be read: each has its own answer.
#[test]
fn a_calendar_that_fails_hides_no_freeze() {
    let mut gated = spec(false);
    gated.environments[1].gates.freezes = vec![Freeze { from: 0, to: 1, reason: "own".to_owned() }];
    let mut story = Story::new(gated);
    story.feed(known(vec![freeze("incident")]));
    story.show("staging", at("2"));
    let topics: Vec<(Topic, usize)> = story
        .asked
        .iter()
        .filter_map(|asked| match asked {
            Effect::Ask(_, Ask::Calendar(topic, _, freezes)) => {
                Some((*topic, freezes.iter().filter(|freeze| freeze.to == i64::MAX).count()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(topics.len(), 2, "{:?}", story.asked);
    for (topic, fleet) in topics {
        let answer = match fleet {
            0 => Answer::CalendarFailed(topic, "no such zone".to_owned()),
            _ => Answer::CalendarRead(topic, opening(false, "closed: incident")),
        };
        story.feed(Event::Answered(prod(), answer));
    }
    story.pass(MINUTE);
    assert_eq!(story.condition("GateClosed"), Some("closed: incident; the calendar: no such zone"));
}

#[test]
fn nothing_starts_while_it_is_not_known_which_there_are() {
    let mut story = Story::new(spec(false));
    story.freezes = Freezes::Unknown("may not be listed".to_owned());
    story.feed(Event::PeersRestarted);
    story.show_all();
    story.show("staging", at("2"));
    story.pass(MINUTE);
    assert_eq!((story.phase(), story.condition("GateClosed")), (Some(Phase::Waiting), Some("may not be listed")));
    story.pass(Duration::from_hours(1));
    assert_eq!(story.count(Kind::PromotionStalled), 1, "somebody has to hear of it");
    story.freezes = Freezes::none();
    story.feed(Event::Frozen(Freezes::none()));
    assert_eq!(story.phase(), Some(Phase::Landed));
}

#[test]
fn what_was_known_before_its_targets_were_no_longer_followed_is_known_no_more() {
    let mut story = Story::new(spec(false));
    let good = story.object.spec.clone();
    story.change(|object| object.spec = Err("broken".to_owned()));
    story.freezes = Freezes::Known(vec![freeze("incident")].into());
    story.change(|object| object.spec = good);
    story.show_all();
    story.show("staging", at("2"));
    story.pass(MINUTE);
    assert_eq!(story.phase(), Some(Phase::Waiting));
}

#[test]
fn a_watch_that_fails_takes_nothing_away_and_its_age_is_said_after_a_while() {
    let at = |minutes: u64| Timestamp::from_millis(minutes * 60_000);
    let mut fleet = Fleet::default();
    assert_eq!(fleet.troubles(at(0)), Vec::<String>::new(), "a start");
    assert!(fleet.hear(at(0), Err("forbidden".to_owned())));
    let unlisted = "the PromotionFreezes of this cluster are not listed yet: forbidden";
    assert_eq!(fleet.known(), &Freezes::Unknown(unlisted.to_owned()));
    assert!(!fleet.hear(at(0), Err("forbidden".to_owned())), "nothing new");
    assert_eq!(fleet.troubles(at(1)), [format!("nothing is promoted: {unlisted}")]);

    let all: Arc<[PromotionFreeze]> =
        vec![freeze("good"), PromotionFreeze { fault: Some("no reason".to_owned()), ..freeze("bad") }].into();
    assert!(fleet.hear(at(2), Ok(all.clone())));
    let bad = "PromotionFreeze bad is wrong, and freezes what it selects: no reason";
    assert_eq!(fleet.troubles(at(60)), [bad]);
    assert!(!fleet.hear(at(60), Err("cut off".to_owned())));
    assert!(!fleet.hear(at(62), Err("refused".to_owned())));
    assert_eq!(fleet.known(), &Freezes::Known(all.clone()));
    assert_eq!(fleet.troubles(at(64)), [bad]);
    assert_eq!(
        fleet.troubles(at(65)),
        ["the PromotionFreezes of this cluster are those of 5m ago: refused".to_owned(), bad.to_owned()]
    );
    assert!(!fleet.hear(at(66), Ok(all)));
    assert_eq!(fleet.troubles(at(99)), [bad]);
}

#[test]
fn more_than_are_considered_close_everything() {
    let some = |count: usize| -> Arc<[PromotionFreeze]> { (0..count).map(|one| freeze(&one.to_string())).collect() };
    let mut fleet = Fleet::default();
    fleet.hear(Timestamp::default(), Ok(some(FREEZES_MAX)));
    assert!(matches!(fleet.known(), Freezes::Known(all) if all.len() == 200));
    fleet.hear(Timestamp::default(), Ok(some(FREEZES_MAX + 1)));
    let words = "there are 201 PromotionFreezes, and allclear considers 200 at most: delete those that are over";
    assert_eq!(fleet.known(), &Freezes::Unknown(words.to_owned()));
    fleet.hear(Timestamp::default(), Err("cut off".to_owned()));
    assert_eq!(fleet.known(), &Freezes::Unknown(words.to_owned()), "the cure holds while a watch fails");
}

/// The kind was installed: a listing that fails from then on must not leave the answer of before.
#[test]
fn that_there_were_none_is_no_answer_once_the_cluster_has_the_kind() {
    let mut fleet = Fleet::default();
    assert!(fleet.hear(Timestamp::default(), Ok(Arc::default())));
    assert!(fleet.forget() && !fleet.forget());
    assert!(fleet.hear(Timestamp::default(), Err("forbidden".to_owned())));
    assert!(matches!(fleet.known(), Freezes::Unknown(why) if why.contains("forbidden")), "{:?}", fleet.known());
}
