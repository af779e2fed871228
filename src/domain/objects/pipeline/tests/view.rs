//! What people are shown, in each phase and for each question.

use super::*;
use crate::pipeline::view::{EnvironmentView, View, view};
use kernel::names::workload_name::WorkloadName;

impl Story {
    /// The view by what its targets say now. Once the status is written it is the same without them.
    pub(super) fn view(&mut self) -> View {
        self.pass(Duration::from_secs(2));
        let live = view(&self.object, &self.object.status, Some(self.machine.sights()));
        let remembered = view(&self.object, &self.object.status, None);
        assert_eq!(View { live: false, ..live.clone() }, remembered);
        live
    }

    fn prod(&mut self) -> EnvironmentView {
        self.view().environments.remove(1)
    }

    /// What prod waits for, and what comes next.
    fn words(&mut self) -> (Option<String>, String) {
        let EnvironmentView { waits, next, .. } = self.prod();
        (waits, next)
    }

    fn prod_phase(&mut self) -> Option<(u64, String)> {
        self.prod().promotion.map(|promotion| (promotion.seq.0, promotion.phase))
    }
}

fn said(waits: &str, next: &str) -> (Option<String>, String) {
    (Some(waits.to_owned()), next.to_owned())
}

const APPROVE: &str = "`allclear pipeline approve shop/web prod`";

#[test]
fn a_quiet_pipeline_says_when_it_moves() {
    let mut story = Story::new(spec(false));
    let View { latest, environments, conditions, live, .. } = story.view();
    assert_eq!((latest, live), (Some(Revision("1".to_owned())), true));
    assert_eq!(conditions.len(), 1);
    let words: Vec<_> = environments.iter().map(|one| (one.unsettled.as_deref(), one.waits.as_deref())).collect();
    assert_eq!(words, [(None, None), (None, None)]);
    assert_eq!(environments[0].next, "a revision that is ready on every target here moves on to prod");
    assert_eq!(environments[1].next, "it moves when staging settles at another revision");
    assert_eq!(environments[1].gates, ["by notification"]);
    let targets: Vec<_> = environments[1].targets.iter().map(|one| (one.name.as_str(), one.ready)).collect();
    assert_eq!(targets, [("prod-a/web", true), ("prod-b/web", true)]);
}

#[test]
fn a_notification_that_no_webhook_takes_is_a_condition_and_said_to_be_one() {
    for mut story in [Story::new(spec(false)), Story::new(by_request())] {
        let by_request = story.prod().gates[0].starts_with("by pull request");
        story.machine = Pipeline::new(0, story.object.clone()).heard(false);
        story.feed(Event::PeersRestarted);
        story.show_all();
        let said = story.prod().gates.remove(0);
        let unheard = "by notification, but no webhook has this Pipeline in workloads and promotion.started in events";
        assert_eq!(
            (said.starts_with(unheard), story.condition("NoWebhook").is_some()),
            (!by_request, !by_request),
            "{said}"
        );
    }
}

#[test]
fn what_is_not_ready_before_an_environment_is_named() {
    let mut story = Story::new(spec(false));
    story.show("staging", unready("2"));
    let wait = "staging: staging/web is not ready: 1 of 2 pods available";
    assert_eq!(story.words(), said(wait, "a promotion into it begins by itself when that holds"));
    assert_eq!(story.view().environments[0].unsettled.as_deref(), Some(wait));
}

#[test]
fn a_promotion_on_its_way_names_the_target_that_is_not_there_yet() {
    let mut story = Story::new(spec(false));
    story.show("staging", at("2"));
    story.show("prod-a", at("2"));
    let next = "it is completed when every target is ready at 2";
    assert_eq!(story.words(), said("prod: prod-b/web is at 1, another target at 2", next));
    assert_eq!(story.prod_phase(), Some((1, "Landed".to_owned())));
    assert_eq!(story.prod().revisions, [Revision("2".to_owned()), Revision("1".to_owned())]);
    story.show("prod-b", at("2"));
    assert_eq!(story.words(), (None, "it moves when staging settles at another revision".to_owned()));
    let ended = story.view().history.remove(0);
    assert_eq!((ended.environment, ended.outcome.as_str()), (prod(), "Completed"));
}

#[test]
fn a_target_that_is_not_ready_has_no_error_and_people_see_why() {
    let mut story = Story::new(spec(false));
    story.show("staging", unready("2"));
    let shown = story.view().environments[0].targets[0].clone();
    assert_eq!((shown.ready, shown.error.as_deref()), (false, Some("1 of 2 pods available")));
    let kept = story.object.status.environments[&Environment("staging".to_owned())].targets[0].clone();
    assert_eq!((kept.ready, kept.error), (false, None), "pipelines.weave.works has none there");
    assert_eq!(kept.message.as_deref(), Some("1 of 2 pods available"));
}

#[test]
fn a_target_that_cannot_be_read_says_what_to_do() {
    let mut story = Story::new(spec(false));
    story.show("staging", at("2"));
    story.show("prod-b", Sight::Unknown("no answer for 30 s".to_owned()));
    story.change(|object| object.spec = Ok(spec(true)));
    story.show("staging", at("3"));
    story.show("prod-b", Sight::Absent);
    let seen = story.prod();
    assert_eq!(seen.waits.as_deref(), Some("prod: prod-b/web does not exist"));
    assert_eq!(seen.targets[1].error.as_deref(), Some("Deployment \"web\" not found"));
    story.show("prod-b", Sight::Unknown("no answer for 30 s".to_owned()));
    let next =
        "nothing is promoted over a target that cannot be read: mend the way to prod-b/web, or take it out of the spec";
    assert_eq!(story.words(), said("prod: prod-b/web cannot be read: no answer for 30 s", next));
    assert_eq!(story.prod().targets[1].error.as_deref(), Some("no answer for 30 s"));
}

#[test]
fn a_question_names_the_command_that_answers_it() {
    let mut story = Story::new(spec(true));
    story.show("staging", at("2"));
    let next = format!("it starts after a yes, when its other gates are open: {APPROVE}");
    assert_eq!(story.words(), said("it waits for a yes", &next));
    let question = story.prod().question.expect("a question");
    assert_eq!((question.kind.as_str(), question.revision.0.as_str()), ("Approval", "2"));
    assert_eq!(Some(question.ticket.clone()), story.ticket());
    story.change(|object| {
        object.answers = Answers { approve: Some(question.ticket), by: Some("anna".to_owned()), ..Answers::default() };
    });
    let seen = story.prod();
    assert_eq!(seen.question, None);
    let approved = seen.promotion.and_then(|promotion| promotion.approved).map(|(by, _)| by);
    assert_eq!(approved.as_deref(), Some("anna"));
    for namespace in ["prod-a", "prod-b"] {
        story.show(namespace, at("2"));
    }
    for namespace in ["prod-a", "prod-b"] {
        story.show(namespace, at("1"));
    }
    assert_eq!(story.words(), said(Asks::Left.words(), &format!("nothing happens without a yes: {APPROVE}")));
}

#[test]
fn a_pull_request_is_shown_until_it_is_merged_or_closed() {
    let mut story = Story::new(by_request());
    assert_eq!(story.prod().gates, ["by pull request into main of https://git.example.com/shop/web"]);
    story.show("staging", at("2"));
    let next = "its pull request is made, and tried again while that fails";
    assert_eq!(story.words(), said("its pull request is being made", next));
    story.feed(Event::ProposeFailed(story.order(1), "no marker was found".to_owned(), true));
    assert_eq!(story.words(), said("its pull request cannot be made: no marker was found", next));
    story.feed(Event::Proposed(story.order(1), Proposed::Foreign("2 commits".to_owned())));
    let overwrite = format!("remove the branch, or say yes to replacing it: {APPROVE}");
    assert_eq!(story.words(), said(Asks::Overwrite.words(), &overwrite));
    let ticket = story.ticket();
    story.change(|object| object.answers.approve = ticket);
    let request = Request {
        url: "https://git.example.com/pull/7".to_owned(),
        number: 7,
        commit: None,
        lacks: Default::default(),
    };
    story.feed(Event::Proposed(story.order(1), Proposed::Open(request)));
    let next = "merge https://git.example.com/pull/7; a closed one is made again only after a yes";
    assert_eq!(story.words(), said("its pull request is open: https://git.example.com/pull/7", next));
    assert_eq!(story.prod().request.map(|request| request.number), Some(7));
    story.feed(Event::ProposalSeen(story.order(1), RequestState::Closed));
    assert_eq!(story.words(), said(Asks::Again.words(), &format!("nothing happens without a yes: {APPROVE}")));
    assert_eq!(story.prod_phase(), Some((1, "Abandoned".to_owned())));
}

#[test]
fn a_soak_says_when_it_ends_and_a_stopped_line_how_it_goes_on() {
    let mut gated = spec(false);
    gated.environments[1].gates.soak = 30 * MINUTE;
    let mut story = Story::new(gated.clone());
    story.show("staging", at("2"));
    let began = i64::try_from(story.now.as_millis()).expect("a time");
    let soaking = story.prod();
    assert_eq!(soaking.gates, ["by notification", "soak 30m"]);
    assert_eq!(soaking.promotion.and_then(|promotion| promotion.soak_ends_ms), Some(began + 30 * 60 * 1000));
    assert_eq!(soaking.next, "when that holds, hooks are told to promote it");
    story.change(|object| object.spec = Ok(Spec { suspended: Some("audit".to_owned()), ..gated }));
    let seen = story.view();
    assert_eq!(seen.suspended.as_deref(), Some("audit"));
    let waits = "suspended: audit; it has not been good for long enough";
    let next = "it starts after the line is resumed: `allclear pipeline resume shop/web`, or `suspend: false` where its spec says it";
    assert_eq!(story.words(), said(waits, next));
}

#[test]
fn a_stale_edge_is_told_in_the_words_of_the_machine() {
    let mut gated = spec(false);
    gated.environments[0].purged =
        Some(Purged { workloads: vec![WorkloadName::parse("web").unwrap()], by: None, until: Until::Purged });
    let mut story = Story::new(gated.clone());
    let fresh = |revision: &str, fresh| edge(&gated, "staging", revision, fresh);
    story.feed(fresh("1", Ok(())));
    assert_eq!(story.prod().waits, None);
    story.show("staging", at("2"));
    assert_eq!(story.prod().waits.as_deref(), Some("staging: its edge was not asked for yet"));
    story.feed(fresh("2", Err(Stale("2 of 3 distributions".to_owned()))));
    assert_eq!(
        story.prod().waits.as_deref(),
        Some("staging: its edge may serve an older version: 2 of 3 distributions")
    );
    assert_eq!(story.view().environments[0].gates, ["done when the edge of web is purged"]);
}

#[test]
fn what_was_not_judged_and_what_cannot_be_used_is_said() {
    let mut story = Story::new(spec(false));
    story.show("staging", at("2"));
    story.change(|object| object.generation = 2);
    let newer = Object { generation: 3, ..story.object.clone() };
    assert!(view(&newer, &story.object.status, None).unjudged.is_some_and(|why| why.contains("was changed")));
    let new = view(&Object { status: Status::default(), ..newer }, &Status::default(), None);
    assert!(new.unjudged.is_some_and(|why| why.contains("has not judged it yet")));
    assert_eq!(new.environments[1].waits.as_deref(), Some("its targets were not looked at yet"));
    story.change(|object| object.spec = Err("no such zone".to_owned()));
    let faulty = story.view();
    assert_eq!((faulty.faulty.as_deref(), faulty.unjudged), (Some("no such zone"), None));
    let names: Vec<_> = faulty.environments.iter().map(|one| one.name.0.as_str()).collect();
    assert_eq!(names, ["prod", "staging"], "those that are remembered, by name");
}
