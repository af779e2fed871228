//! What a person reads in a table of Repos, and behind it.

use super::*;

const LOG: &str = "kubectl logs -n platform job/";

fn message(stage: &Stage) -> &str {
    let ready = stage.stored.status.conditions.iter().find(|one| one.kind == ConditionKind::Ready).expect("Ready");
    &ready.message
}

fn applied(said: &str) -> Stage {
    let mut stage = staged(Approving::Auto);
    stage.job_ends(End::Complete, &[(StepKind::Apply, 0, said)]);
    stage.pass(Duration::from_secs(2));
    stage
}

#[test]
fn a_success_is_short_in_a_table_and_names_its_log_in_the_run() {
    for (said, shown) in [("3 added.", "3 added"), ("", "applied"), ("see kubectl logs x", "see kubectl logs x")] {
        let stage = applied(said);
        assert_eq!(message(&stage), shown);
        assert!(stage.run().message.contains(LOG), "{}", stage.run().message);
    }
}

#[test]
fn a_failure_names_the_log_of_its_step_where_it_can_be_copied() {
    let mut stage = staged(Approving::Auto);
    let job = stage.job().name;
    stage.fails(StepKind::Apply, 1, "boom");
    stage.pass(Duration::from_secs(2));
    let again = "it is run again only after a yes, or with another commit";
    assert_eq!(message(&stage), format!("step apply ended with code 1: boom; {again}; {LOG}{job} -c apply"));
    let mut stage = staged(Approving::Auto);
    let job = stage.job().name;
    stage.fails(StepKind::Source, 1, "no route");
    stage.pass(Duration::from_secs(2));
    assert!(
        message(&stage).ends_with(&format!("it is tried again in 30 s; {LOG}{job} -c source")),
        "{}",
        message(&stage)
    );
}

#[test]
fn a_new_repo_says_at_once_why_git_does_not_answer_and_an_older_one_after_a_while() {
    let mut stage = Stage::new(spec(Approving::Auto));
    stage.head = Err("no such host");
    stage.pass(Duration::from_secs(1));
    assert_eq!(
        (stage.ready(), message(&stage)),
        ((Some(false), "GitFailed"), "the wanted commit is not known: no such host")
    );
    let mut stage = applied("");
    stage.head = Err("no such host");
    stage.pass(Duration::from_secs(70));
    assert_eq!(stage.ready(), (Some(true), "Applied"), "one failure is no news");
    stage.pass(Duration::from_mins(10));
    assert_eq!(stage.ready(), (Some(false), "GitFailed"));
}

#[test]
fn a_question_about_a_plan_says_how_much_it_would_change() {
    let mut stage = staged(Approving::Plan);
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    let counts = "2 to add, 1 to change, 0 to destroy";
    assert_eq!(message(&stage), format!("a person must say yes to what the plan would change ({counts})"));
}
