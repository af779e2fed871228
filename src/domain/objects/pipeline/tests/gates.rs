//! Stories of what keeps a promotion from starting, and of what opens it.

use super::*;
use kernel::names::workload_name::WorkloadName;

#[test]
fn gates_say_what_opens_them() {
    let mut gated = spec(false);
    gated.environments[1].gates.freezes = vec![Freeze { from: 0, to: 3600, reason: "sale".to_owned() }];
    gated.environments[1].gates.needs = vec![target("database")];
    let mut story = Story::new(gated);
    story.show("database", unready("7"));
    story.show("staging", at("2"));
    assert!(
        matches!(&story.asked[..], [.., Effect::Ask(of, Ask::Calendar(_, _, freezes))] if *of == prod() && freezes.len() == 1)
    );
    let closed = Opening { open: false, changes_after: Some(2 * MINUTE), words: "frozen until 12:00: sale".to_owned() };
    story.feed(Event::Answered(prod(), Answer::CalendarRead(story.topic(), closed)));
    story.pass(MINUTE);
    assert_eq!(
        story.condition("GateClosed"),
        Some("frozen until 12:00: sale; needs Deployment database/web: 1 of 2 pods available")
    );
    story.show("database", at("7"));
    story.asked.clear();
    story.pass(MINUTE);
    assert!(matches!(&story.asked[..], [Effect::Ask(_, Ask::Calendar(..))]), "read again at its boundary");
    assert_eq!(story.phase(), Some(Phase::Waiting), "what it said counts no longer");
    story.feed(Event::Answered(
        prod(),
        Answer::CalendarRead(story.topic(), Opening { open: true, changes_after: None, words: String::new() }),
    ));
    assert_eq!(story.phase(), Some(Phase::Landed));
}

#[test]
fn another_system_is_asked_at_most_every_ten_seconds_and_only_its_yes_opens() {
    let mut gated = spec(false);
    let source = VerdictSource { url: "https://verdict.example.com".to_owned(), secret: None, timeout: MINUTE };
    gated.environments[1].gates.verdict = Some(source);
    let mut story = Story::new(gated);
    story.show("staging", at("2"));
    let topic = story.topic();
    let asked =
        |story: &Story| story.asked.iter().filter(|asked| matches!(asked, Effect::Ask(_, Ask::Verdict(..)))).count();
    assert_eq!(asked(&story), 1);
    story.feed(Event::Answered(prod(), Answer::VerdictFailed(topic, "it answered 500".to_owned(), Duration::ZERO)));
    story.pass(Duration::from_secs(9));
    assert_eq!(asked(&story), 1);
    story.pass(Duration::from_secs(1));
    assert_eq!(asked(&story), 2);
    let opening = |open| Opening { open, changes_after: None, words: "errors rise".to_owned() };
    story.feed(Event::Answered(prod(), Answer::VerdictGiven(topic, opening(false))));
    assert_eq!(story.phase(), Some(Phase::Waiting));
    story.pass(Duration::from_secs(10));
    story.feed(Event::Answered(prod(), Answer::VerdictGiven(Topic::default(), opening(true))));
    assert_eq!(story.phase(), Some(Phase::Waiting), "about another promotion");
    story.feed(Event::Answered(prod(), Answer::VerdictGiven(topic, opening(true))));
    assert_eq!(story.phase(), Some(Phase::Landed));
}

#[test]
fn a_soak_is_not_broken_by_what_cannot_be_read_and_is_by_what_is_not_ready() {
    let mut soaking = spec(false);
    soaking.environments[1].gates.soak = Duration::from_mins(30);
    soaking.environments[1].gates.soak_tolerates = 2 * MINUTE;
    let mut story = Story::new(soaking);
    story.show("staging", at("2"));
    story.pass(Duration::from_mins(20));
    story.show("staging", Sight::Unknown("no answer".to_owned()));
    story.pass(Duration::from_mins(5));
    story.show("staging", at("2"));
    story.pass(Duration::from_mins(4));
    assert_eq!(story.phase(), Some(Phase::Waiting));
    story.show("staging", unready("2"));
    story.pass(3 * MINUTE);
    story.show("staging", at("2"));
    story.pass(Duration::from_mins(29));
    assert_eq!(story.phase(), Some(Phase::Waiting), "it began anew");
    story.pass(Duration::from_mins(1));
    assert_eq!(story.phase(), Some(Phase::Landed));

    story.show("staging", at("3"));
    story.pass(Duration::from_mins(29));
    story.show("staging", unready("4"));
    story.show("staging", at("3"));
    story.pass(Duration::from_mins(5));
    assert_eq!(story.phase(), Some(Phase::Waiting), "another revision was there");
}

#[test]
fn an_override_opens_time_and_never_readiness() {
    let mut soaking = spec(true);
    soaking.environments[1].gates.soak = Duration::from_hours(24);
    let mut story = Story::new(soaking);
    story.show("staging", at("2"));
    let ticket = story.ticket();
    assert!(ticket.is_some());
    story.show("staging", unready("2"));
    story.change(|object| object.answers.overrides = ticket);
    story.pass(MINUTE);
    assert_eq!(story.phase(), Some(Phase::Waiting), "staging is not ready");
    story.show("staging", at("2"));
    assert_eq!(story.phase(), Some(Phase::Landed));
}

#[test]
fn a_fresh_edge_is_part_of_done() {
    let mut purged = spec(false);
    for environment in &mut purged.environments {
        environment.purged =
            Some(Purged { workloads: vec![WorkloadName::parse("web").unwrap()], by: None, until: Until::Purged });
    }
    let all = purged.clone();
    let edge = |name: &str, revision: &str, fresh| edge(&all, name, revision, fresh);
    let mut story = Story::new(purged);
    story.feed(edge("staging", "1", Ok(())));
    story.feed(edge("prod", "1", Ok(())));
    story.show("staging", at("2"));
    story.feed(edge("staging", "2", Err(Stale("its purge is not complete".to_owned()))));
    story.pass(MINUTE);
    assert_eq!(story.phase(), None);
    story.feed(edge("staging", "2", Ok(())));
    assert_eq!(story.phase(), Some(Phase::Waiting), "the edge is asked for once more with the fresh look");
    story.feed(edge("staging", "2", Ok(())));
    assert_eq!(story.phase(), Some(Phase::Landed));
    story.show("prod-a", at("2"));
    story.show("prod-b", at("2"));
    story.feed(edge("prod", "2", Err(Stale("its purge is not complete".to_owned()))));
    assert_eq!((story.phase(), story.count(Kind::PromotionCompleted)), (Some(Phase::Landed), 0));
    story.feed(edge("prod", "2", Ok(())));
    assert_eq!((story.phase(), story.count(Kind::PromotionCompleted)), (Some(Phase::Completed), 1));
}

#[test]
fn a_suspended_pipeline_starts_nothing_and_says_why() {
    let mut story = Story::new(spec(false));
    story.change(|object| {
        object.generation = 2;
        object.spec = Ok(Spec { suspended: Some("release week".to_owned()), ..spec(false) });
    });
    story.show("staging", at("2"));
    story.pass(Duration::from_hours(3));
    assert_eq!((story.phase(), story.condition("Suspended")), (Some(Phase::Waiting), Some("suspended: release week")));
    story.change(|object| {
        object.generation = 3;
        object.spec = Ok(spec(false));
    });
    assert_eq!(story.phase(), Some(Phase::Landed));
}
