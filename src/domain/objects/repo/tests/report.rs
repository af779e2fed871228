//! What is reported to a forge of runs, and when.

use super::*;
use crate::repo::plan::with_changes;
use crate::repo::report::Standing;
use crate::repo::reported::{Change, LISTED_MAX, Listed};
use crate::repo::spec::{Detail, Provider, ReportTo};

fn told(approval: Approving) -> Spec {
    let report = ReportTo { provider: Provider::GitHub, secret: "forge".to_owned(), detail: Detail::Numbers };
    Spec { report: Some(report), ..spec(approval) }
}

fn telling(approval: Approving) -> Stage {
    let mut stage = Stage::new(told(approval));
    stage.pass(Duration::from_secs(5));
    stage
}

impl Stage {
    /// The forge receives a report.
    pub(super) fn hear(&mut self, saying: Box<Saying>) -> Event {
        self.said.push((*saying).clone());
        Event::Reported(saying, self.forge.clone())
    }

    /// The commit, the standing and the words of each report, and whether there was a comment.
    fn reports(&self) -> Vec<(&str, Standing, &str, bool)> {
        let words = |one: &'_ Saying| (one.standing, one.comment.is_some());
        let all = self.said.iter().map(|one| (one.revision.as_str(), one.summary.as_str(), words(one)));
        all.map(|(revision, summary, (standing, commented))| (revision, standing, summary, commented)).collect()
    }

    fn told_forge(&self) -> (Option<bool>, &str) {
        let conditions = &self.stored.status.conditions;
        let reported = conditions.iter().find(|one| one.kind == ConditionKind::Reported).expect("Reported");
        (reported.holds, reported.reason.as_str())
    }
}

#[test]
fn each_step_of_a_run_is_said_once_and_a_restart_repeats_nothing() {
    let mut stage = telling(Approving::Plan);
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    stage.crash();
    stage.pass(Duration::from_hours(30));
    let ticket = stage.ticket();
    stage.approve(&ticket);
    stage.applies();
    stage.pass(Duration::from_secs(2));
    stage.crash();
    stage.pass(Duration::from_hours(30));
    let numbers = "2 to add, 1 to change, 0 to destroy";
    let waits = format!("an apply would change {numbers}; it waits for a yes");
    let goes = format!("an apply would change {numbers}; it is to be applied");
    let applied = format!("applied: {numbers}");
    assert_eq!(
        stage.reports(),
        [
            (A, Standing::Pending, "it is to be planned", false),
            (A, Standing::Pending, &*waits, true),
            (A, Standing::Pending, &*goes, true),
            (A, Standing::Success, &*applied, true),
        ]
    );
    assert_eq!(stage.told_forge(), (Some(true), "Reported"));
    let writes = stage.writes;
    stage.pass(Duration::from_hours(48));
    assert_eq!(stage.writes, writes, "it is at rest");
}

#[test]
fn what_was_said_and_is_not_remembered_is_said_again_and_nothing_is_lost() {
    for is_answered in [false, true] {
        let mut stage = telling(Approving::Never);
        (stage.held, stage.kept) = (vec!["report"], Vec::new());
        stage.plans("1");
        stage.pass(Duration::from_secs(2));
        let Some(Effect::Report(saying)) = stage.kept.pop() else { panic!("it was to be said") };
        stage.said.clear();
        if is_answered {
            stage.held = vec!["store"];
            stage.feed(Event::Reported(saying.clone(), Ok(1)));
        }
        stage.held.clear();
        stage.crash();
        stage.pass(Duration::from_hours(1));
        let said: Vec<_> = stage.said.iter().map(Saying::hash).collect();
        assert_eq!((said, stage.told_forge()), (vec![saying.hash()], (Some(true), "Reported")), "{is_answered}");
    }
}

#[test]
fn a_forge_that_refuses_stops_no_run_and_hears_only_the_newest_when_it_answers() {
    let mut stage = telling(Approving::Never);
    stage.forge = Err(unresolved("the forge answers 502"));
    stage.plans("1");
    stage.pass(Duration::from_hours(4));
    let tries = stage.said.len();
    assert!((15..60).contains(&tries), "{tries}");
    assert_eq!((stage.ready(), stage.told_forge()), ((Some(true), "Planned"), (Some(false), "ReportFailed")));
    let writes = stage.writes;
    stage.pass(Duration::from_hours(4));
    assert_eq!(stage.writes, writes, "the same refusal is not written again");
    stage.push(B);
    stage.plans("2");
    stage.pass(Duration::from_mins(1));
    assert_eq!((stage.run().revision.as_str(), stage.ready()), (B, (Some(true), "Planned")));
    stage.said.clear();
    stage.forge = Ok(2);
    stage.edit(|object| object.answers.poked = Some("now".to_owned()));
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.told_forge(), (Some(true), "Reported"));
    assert!(stage.said.iter().all(|one| one.revision.as_str() == B), "what is not the newest is said no more");
    let said = stage.stored.status.report.as_ref().and_then(|report| report.said.as_ref()).expect("it was said");
    assert_eq!((said.revision.as_str(), said.requests), (B, 2));
}

#[test]
fn what_a_person_must_mend_is_tried_rarely_and_what_is_new_at_once() {
    let mut stage = telling(Approving::Never);
    stage.plans("1");
    stage.forge = Err(Unresolved { lasting: true, ..unresolved("the token has no right to this (403)") });
    stage.push(B);
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    let known = stage.said.len();
    assert_eq!(stage.reports().last().map(|last| (last.0, last.3)), Some((B, true)), "each of its words was tried");
    stage.edit(|object| object.answers.poked = Some("a webhook".to_owned()));
    stage.pass(Duration::from_hours(5));
    assert_eq!((stage.said.len(), stage.told_forge()), (known, (Some(false), "ReportFailed")));
    stage.pass(Duration::from_hours(20));
    assert_eq!(stage.said.len(), known + 4);
    stage.forge = Ok(1);
    stage.push(A);
    assert_eq!((stage.reports().last().map(|last| last.0), stage.told_forge()), (Some(A), (Some(true), "Reported")));
}

#[test]
fn a_report_without_a_place_has_not_failed_and_is_soon_made() {
    let mut stage = telling(Approving::Never);
    stage.forge = Err(Unresolved { busy: true, ..unresolved("there was no place for it") });
    stage.plans("1");
    stage.pass(Duration::from_mins(60));
    assert!((60..180).contains(&stage.said.len()), "the pauses do not grow: {}", stage.said.len());
    assert_eq!(stage.told_forge(), (None, "Reporting"));
    stage.forge = Ok(1);
    stage.pass(Duration::from_mins(1));
    assert_eq!(stage.told_forge(), (Some(true), "Reported"));
    // So is a look at the requests.
    stage.forge = Err(Unresolved { busy: true, ..unresolved("there was no place for it") });
    stage.edit(|object| object.answers.poked = Some("a webhook".to_owned()));
    stage.pass(Duration::from_secs(2));
    let known = stage.said.len();
    stage.forge = Ok(2);
    stage.pass(Duration::from_mins(1));
    let requests = stage.stored.status.report.as_ref().and_then(|report| report.said.as_ref()).map(|one| one.requests);
    assert_eq!((stage.said.len(), requests), (known + 1, Some(2)));
}

#[test]
fn a_host_that_asks_for_patience_has_it() {
    let mut stage = telling(Approving::Never);
    stage.forge = Err(Unresolved { rest: Duration::from_mins(50), ..unresolved("patience") });
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    let tries = stage.said.len();
    stage.pass(Duration::from_mins(49));
    assert_eq!(stage.said.len(), tries);
    stage.pass(Duration::from_mins(2));
    assert_eq!(stage.said.len(), tries + 1);
}

#[test]
fn a_request_that_is_opened_later_is_found_and_those_that_never_come_are_looked_for_less_and_less() {
    let mut stage = telling(Approving::Never);
    stage.forge = Ok(0);
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    let (first, writes) = (stage.said.len(), stage.writes);
    stage.pass(Duration::from_hours(72));
    assert_eq!((stage.said.len(), stage.writes), (first + 11, writes), "for a day, and nothing is written");
    assert!(stage.said.iter().skip(first).all(|one| one.again), "the commit has its state already");
    stage.forge = Ok(1);
    stage.edit(|object| object.answers.poked = Some("a webhook".to_owned()));
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.said.len(), stage.told_forge()), (first + 12, (Some(true), "Reported")));
    stage.push(B);
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    let known = stage.said.len();
    stage.pass(Duration::from_hours(72));
    assert_eq!(stage.said.len(), known, "one that was found is not looked for");
}

#[test]
fn a_plan_that_fails_says_so_and_nothing_that_a_container_wrote() {
    let mut stage = telling(Approving::Never);
    stage.fails(StepKind::Plan, 1, "hunter2");
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.reports().last(), Some(&(A, Standing::Failure, "the plan failed, and is tried again", true)));
    stage.pass(Duration::from_secs(60));
    stage.plans("0");
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.reports().last(), Some(&(A, Standing::Success, "an apply would change nothing", true)));
    let mut stage = telling(Approving::Auto);
    stage.fails(StepKind::Apply, 1, "hunter2");
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.reports().last(), Some(&(A, Standing::Failure, "the run failed", true)));
    assert!(stage.said.iter().all(|one| !format!("{one:?}").contains("hunter2")));
}

#[test]
fn an_approved_plan_that_has_nothing_left_to_change_was_not_applied() {
    let mut spec = told(Approving::Plan);
    spec.report.as_mut().expect("a report").detail = Detail::Addresses;
    let mut stage = Stage::new(spec);
    stage.pass(Duration::from_secs(5));
    stage.job_ends(End::Complete, &[(StepKind::Report, 0, &listing(&[("create", "aws_vpc.main")], 0))]);
    let ticket = stage.ticket();
    stage.approve(&ticket);
    stage.fails(StepKind::Verify, PLAN_DIFFERS, &said(&Message::Differs(planned("0"))));
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.reports().last(), Some(&(A, Standing::Success, "nothing to change", true)));
    let comment = stage.said.last().and_then(|one| one.comment.clone()).expect("a comment");
    assert!(!comment.contains("aws_vpc"), "{comment}");
}

/// The message of a plan with these changes.
fn listing(changes: &[(&str, &str)], more: u32) -> String {
    let change =
        |(action, address): &(&str, &str)| Change { action: (*action).to_owned(), address: (*address).to_owned() };
    let listed = changes.iter().map(change).collect();
    with_changes(&said(&Message::Planned(planned("1"))), &Listed { listed, more, ..Listed::default() })
}

#[test]
fn addresses_are_said_where_they_are_asked_for_and_are_no_markup() {
    let odd = "a_b.c[\"@everyone `x`\n</details>![](https://example.com/x)\"]";
    let message = listing(&[("create", "aws_vpc.main"), ("delete", odd)], 7);
    for detail in [Detail::Numbers, Detail::Addresses] {
        let mut spec = told(Approving::Never);
        spec.report.as_mut().expect("a report").detail = detail;
        let mut stage = Stage::new(spec);
        stage.pass(Duration::from_secs(5));
        stage.job_ends(End::Complete, &[(StepKind::Report, 0, &message)]);
        stage.pass(Duration::from_secs(2));
        let comment = stage.said.last().and_then(|one| one.comment.clone()).expect("a comment");
        let lines: Vec<&str> = comment.lines().filter(|line| line.starts_with("- ")).collect();
        let listed = [
            "- create `aws_vpc.main`",
            "- delete `a_b.c[\"@everyone 'x'\\n</details>![](https://example.com/x)\"]`",
            "- and 7 more",
        ];
        assert_eq!(lines, if detail == Detail::Addresses { &listed[..] } else { &[] }, "{comment}");
        assert_eq!(
            stage.stored.status.report.as_ref().is_some_and(|report| report.changes.is_some()),
            !lines.is_empty()
        );
        stage.push(B);
        stage.plans("1");
        stage.pass(Duration::from_secs(2));
        let comment = stage.said.last().and_then(|one| one.comment.clone()).expect("a comment");
        assert!(!comment.contains("aws_vpc"), "those of another plan: {comment}");
    }
}

#[test]
fn addresses_of_an_earlier_plan_are_not_said_of_a_later_one_that_has_none() {
    let mut spec = told(Approving::Never);
    spec.report.as_mut().expect("a report").detail = Detail::Addresses;
    let mut stage = Stage::new(spec);
    stage.pass(Duration::from_secs(5));
    stage.job_ends(End::Complete, &[(StepKind::Report, 0, &listing(&[("create", "aws_vpc.main")], 0))]);
    let turn = |stage: &mut Stage, detail| {
        stage.edit(|object| {
            object.spec.as_mut().expect("a spec").report.as_mut().expect("a report").detail = detail;
        });
        stage.pass(Duration::from_secs(2));
    };
    turn(&mut stage, Detail::Numbers);
    stage.push(B);
    stage.plans("1");
    turn(&mut stage, Detail::Addresses);
    let last = stage.said.last().expect("a report");
    assert_eq!((last.revision.as_str(), last.to.detail), (B, Detail::Numbers), "there is nothing else to say");
    assert!(last.comment.as_ref().is_some_and(|comment| !comment.contains("aws_vpc")));
}

#[test]
fn a_message_that_is_not_ours_lists_nothing_that_is_long() {
    let many = vec![("create", "x"); 4_000];
    let message = listing(&many[..300], 0);
    let listed = plan::listed(&message, "job");
    assert_eq!((listed.listed.len(), listed.more), (LISTED_MAX, 260));
    assert_eq!(plan::listed(&listing(&many, 0), "job").listed, [], "more than a message can hold");
    let odd = plan::listed(&listing(&[("<script>", "x"), ("update", "y")], 0), "job");
    assert_eq!(odd.listed.len(), 1);
    assert_eq!(plan::listed("no JSON", "job").listed, []);
}

#[test]
fn what_is_reported_no_more_is_forgotten_and_an_answer_under_another_secret_is_none() {
    let mut stage = telling(Approving::Never);
    stage.held = vec!["report"];
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    stage.held.clear();
    let Some(Effect::Report(saying)) = stage.kept.pop() else { panic!("it was to be said") };
    stage.said.clear();
    stage.edit(|object| {
        let report = object.spec.as_mut().expect("a spec").report.as_mut().expect("a report");
        report.secret = "other".to_owned();
    });
    stage.pass(Duration::from_mins(5));
    assert_eq!(stage.said.len(), 0, "one at a time");
    stage.feed(Event::Reported(saying, Ok(1)));
    stage.pass(Duration::from_secs(2));
    let secrets: Vec<_> = stage.said.iter().map(|one| one.to.secret.as_str()).collect();
    assert_eq!(secrets, ["other"]);
    stage.edit(|object| object.spec.as_mut().expect("a spec").report = None);
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.stored.status.report, None);
    assert!(stage.stored.status.conditions.iter().all(|one| one.kind != ConditionKind::Reported));
}
