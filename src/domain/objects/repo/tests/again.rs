//! A commit that was applied is run once more after a yes that nobody asked for.

use super::*;

fn applied(approval: Approving) -> Stage {
    let mut stage = staged(approval);
    match approval {
        Approving::Auto | Approving::Never => {}
        Approving::Revision => {
            stage.pass(Duration::from_secs(2));
            stage.approve(&stage.ticket());
        }
        Approving::Plan => {
            stage.plans("1");
            stage.pass(Duration::from_secs(2));
            stage.approve(&stage.ticket());
        }
    }
    stage.applies();
    stage.pass(Duration::from_mins(2));
    assert_eq!(stage.run().phase, Phase::Succeeded);
    stage
}

impl Stage {
    pub(super) fn again(&self) -> Option<String> {
        again("uid-1", self.run(), self.stored.status.head.as_ref())
    }

    /// A person says yes to another run.
    fn rerun(&mut self) -> String {
        let ticket = self.again().expect("its commit is applied");
        let said = ticket.clone();
        self.edit(|object| (object.answers.approve, object.answers.by) = (Some(said), Some("ann".to_owned())));
        self.pass(Duration::from_secs(2));
        ticket
    }
}

#[test]
fn what_was_applied_is_run_once_for_each_yes() {
    for approval in [Approving::Auto, Approving::Revision] {
        let mut stage = applied(approval);
        let (seq, started) = (stage.run().attempt.seq, stage.started.len());
        let ticket = stage.rerun();
        assert_eq!((stage.run().attempt.seq, stage.started.len()), (seq.next(), started + 1), "{approval:?}");
        assert_eq!((stage.run().revision.as_str(), stage.again()), (A, None), "not while it runs");
        stage.crash();
        stage.applies();
        stage.pass(Duration::from_hours(2));
        assert_eq!(stage.started.len(), started + 1, "the yes that stays there counts once");
        let last = stage.stored.status.history.last().expect("its end");
        assert_eq!((last.outcome, last.by.as_deref()), (Phase::Succeeded, Some("ann")));
        stage.approve(&ticket);
        stage.pass(Duration::from_mins(2));
        assert_eq!(stage.started.len(), started + 1, "nor once more when it is said again");
        assert_ne!(stage.rerun(), ticket);
        assert_eq!(stage.started.len(), started + 2);
    }
}

#[test]
fn a_plan_is_asked_about_as_always() {
    let mut stage = applied(Approving::Plan);
    let started = stage.started.len();
    stage.rerun();
    assert_eq!((stage.job().attempt.action, stage.started.len()), (Action::Plan, started + 1));
    stage.plans("2");
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.run().phase, Phase::Planned, "another yes than that to the plan");
    stage.approve(&stage.ticket());
    assert_eq!((stage.job().attempt.action, stage.started.len()), (Action::Apply, started + 2));
}

#[test]
fn nothing_is_run_again_while_it_is_suspended_or_for_a_yes_to_an_earlier_run() {
    let mut stage = applied(Approving::Auto);
    let old = stage.again().expect("a ticket");
    let suspend = |why: Option<&str>| {
        let why = why.map(str::to_owned);
        move |object: &mut Object| object.spec.as_mut().expect("a spec").suspended = why
    };
    stage.edit(suspend(Some("audit")));
    stage.rerun();
    assert_eq!((stage.started.len(), stage.ready().1), (1, "Suspended"), "and it says why");
    stage.edit(suspend(None));
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.started.len(), 2, "it is run when it may be");
    stage.applies();
    stage.push(B);
    stage.applies();
    stage.approve(&old);
    stage.pass(Duration::from_mins(2));
    assert_eq!((stage.started.len(), stage.run().revision.as_str()), (3, B));
}

#[test]
fn ended_jobs_are_kept_by_number_and_the_newest_failed_stays() {
    let mut stage = staged(Approving::Auto);
    for head in [B, C, A, B, C] {
        if head == A {
            stage.fails(StepKind::Apply, 1, "");
        } else {
            stage.applies();
        }
        stage.push(head);
    }
    stage.applies();
    stage.pass(Duration::from_mins(2));
    let ends: Vec<bool> = stage.jobs.values().map(|job| job.end == Some(End::Complete)).collect();
    assert_eq!((ends.len(), ends.iter().filter(|complete| **complete).count()), (2, 1));
}
