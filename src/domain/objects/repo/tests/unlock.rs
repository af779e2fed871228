//! A lock in the way of a run is a question, and a yes takes away that lock, once.

use super::*;
use crate::repo::held::HolderKind;
use crate::repo::lock::Lock;
use crate::repo::spec::{DriftLooks, OnDrift};

const ANN: &str = "ann@laptop-2";

impl Stage {
    fn lock_ticket(&self) -> Option<String> {
        self.stored.status.lock.as_ref().map(|asked| asked.ticket.clone())
    }

    /// A person says yes to what is asked about the lock.
    fn agrees(&mut self) -> String {
        let ticket = self.lock_ticket().expect("a question about a lock");
        self.approve(&ticket);
        self.pass(Duration::from_secs(2));
        ticket
    }

    /// The ids of the locks that Jobs were ordered to take away.
    fn taken(&self) -> Vec<&str> {
        self.unlocks.iter().map(|(_, id)| id.as_str()).collect()
    }

    fn asked_about_locks(&self) -> usize {
        let is_one = |(kind, said): &&(Kind, String)| *kind == Kind::RunWaiting && said.contains("holds lock");
        self.told.iter().filter(is_one).count()
    }
}

/// A run of which an attempt met this lock of Ann's.
fn met(id: &str) -> Stage {
    let mut stage = staged(Approving::Auto);
    stage.meets(StepKind::Plan, id, ANN);
    stage
}

fn ended(code: i32) -> StepState {
    StepState::Ended(code, "Error".to_owned(), String::new())
}

// Faults: RF16
#[test]
fn the_lock_of_a_holder_that_is_not_seen_to_run_is_asked_about_once_while_the_run_is_tried_again() {
    let mut other = met("a-1");
    let asked = other.stored.status.lock.clone().expect("a question");
    assert_eq!((asked.id.as_str(), asked.who.as_deref(), asked.holder), ("a-1", Some(ANN), HolderKind::Other));
    assert_eq!((asked.since_ms, asked.seq, asked.met), (Some(1_795_669_201_000), RunSeq(1), 1));
    assert_eq!((other.run().phase, other.ready()), (Phase::Waiting, (Some(false), "StateLocked")));
    let (_, said) = other.told.iter().find(|(kind, _)| *kind == Kind::RunWaiting).expect("a notice");
    assert!(said.contains(&format!("{ANN} holds lock a-1 of the state since 2026-11-26T05:00:01Z")), "{said}");
    assert!(
        said.ends_with(&format!("allclear repo unlock platform/infra. Answer with ticket {}", asked.ticket)),
        "{said}"
    );
    other.pass(Duration::from_mins(1));
    assert_eq!(other.started.len(), 2, "it is tried again as before");
    other.meets(StepKind::Plan, "a-1", ANN);
    let again = other.stored.status.lock.clone().expect("the same question");
    assert_eq!((&again.ticket, again.asked_ms, again.met), (&asked.ticket, asked.asked_ms, 2));
    assert_eq!(other.asked_about_locks(), 1, "one question is told once");

    // Of two Jobs of its own, one has ended and one is gone.
    for is_gone in [false, true] {
        let mut own = staged(Approving::Auto);
        let first = own.job().name;
        own.fails(StepKind::Source, 1, "no route");
        own.pass(Duration::from_mins(1));
        if is_gone {
            own.jobs.remove(&first);
            own.feed(Event::JobGone(first.clone()));
        }
        own.meets(StepKind::Plan, "a-1", &format!("root@{first}-x7k2p"));
        let asked = own.stored.status.lock.clone().expect("a question");
        let expected = if is_gone { HolderKind::Gone } else { HolderKind::Ended };
        assert_eq!((asked.holder, asked.job.as_deref()), (expected, Some(first.as_str())));
        assert!(asked.words().ends_with("on a node that was lost it may still run"), "{}", asked.words());
    }
}

#[test]
fn a_lock_without_an_id_is_no_question() {
    let stage = met("$(reboot)");
    assert_eq!((stage.stored.status.lock.as_ref(), stage.run().phase), (None, Phase::Waiting));
}

#[test]
fn a_lock_in_the_way_of_prepare_is_no_question_for_it_could_not_be_taken_away_before() {
    let mut stage = staged(Approving::Auto);
    stage.meets(StepKind::Prepare, "a-1", ANN);
    assert_eq!(stage.lock_ticket(), None);
    let message = &stage.run().message;
    assert!(message.contains("terraform force-unlock a-1") && !message.contains("repo unlock"), "{message}");
}

// Faults: RF16
#[test]
fn a_yes_orders_one_job_at_once_that_takes_this_lock_away() {
    let mut stage = met("a-1");
    stage.approve("000000000000");
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.started.len(), stage.taken().len()), (1, 0), "a yes to something else is nothing");
    stage.edit(|object| object.answers.by = Some("ann".to_owned()));
    let first = stage.agrees();
    assert_eq!((stage.started.len(), stage.taken()), (2, vec!["a-1"]), "nobody waits for the pause");
    let asked = stage.stored.status.lock.clone().expect("it is not settled");
    assert_eq!((asked.attempt, asked.approval.and_then(|yes| yes.by)), (Some(2), Some("ann".to_owned())));
    // It was taken away, and another program was faster: that is another lock, and another question.
    let locked = Lock::new(Some("b-2"), Some(ANN), None);
    stage.ends_with(&[(StepKind::Unlock, ended(0)), (StepKind::Plan, StepState::Locked(1, String::new(), locked))]);
    let asked = stage.stored.status.lock.clone().expect("another question");
    assert_eq!((asked.id.as_str(), asked.approval), ("b-2", None));
    assert_ne!(asked.ticket, first);
    stage.pass(Duration::from_mins(2));
    assert_eq!((stage.started.len(), stage.taken()), (3, vec!["a-1"]), "the yes was to the first");
    stage.applies();
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.run().phase, stage.lock_ticket()), (Phase::Succeeded, None));
}

#[test]
fn the_same_lock_after_it_was_taken_away_is_asked_about_anew() {
    let mut stage = met("a-1");
    let first = stage.agrees();
    let locked = Lock::new(Some("a-1"), Some(ANN), None);
    stage.ends_with(&[(StepKind::Unlock, ended(0)), (StepKind::Plan, StepState::Locked(1, String::new(), locked))]);
    assert_ne!(stage.lock_ticket(), Some(first), "one yes is one attempt to take it away");
    stage.pass(Duration::from_hours(1));
    assert_eq!((stage.taken(), stage.asked_about_locks()), (vec!["a-1"], 2));
}

#[test]
fn a_lock_that_could_not_be_taken_away_voids_the_question_and_the_run_goes_on_without() {
    let mut stage = met("a-1");
    stage.agrees();
    stage.ends_with(&[(StepKind::Unlock, ended(1)), (StepKind::Plan, StepState::Waiting)]);
    assert_eq!((stage.run().phase, stage.lock_ticket()), (Phase::Waiting, None));
    assert!(stage.run().message.starts_with("step unlock ended with code 1"), "{}", stage.run().message);
    stage.pass(Duration::from_mins(2));
    assert_eq!((stage.started.len(), stage.taken()), (3, vec!["a-1"]));
    stage.applies();
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.run().phase, Phase::Succeeded);
}

#[test]
fn a_yes_stands_until_a_job_came_to_take_the_lock_away_and_the_pause_between_attempts_with_it() {
    let mut stage = met("a-1");
    stage.agrees();
    let waits = |kind| (kind, StepState::Waiting);
    stage.ends_with(&[(StepKind::Source, ended(1)), waits(StepKind::Unlock), waits(StepKind::Plan)]);
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Waiting, 2), "one yes ends one pause");
    stage.pass(Duration::from_mins(2));
    assert_eq!((stage.started.len(), stage.taken()), (3, vec!["a-1", "a-1"]));
    // Where nothing is known of its steps, it may have.
    let job = stage.job();
    stage.pods.insert(job.uid.clone(), Vec::new());
    let end = Some(End::Failed("BackoffLimitExceeded".to_owned(), String::new()));
    let version = stage.next_version();
    let ended = Job { end, pods: Pods { ended: 1, ..Pods::default() }, version, ..job };
    stage.jobs.insert(ended.name.clone(), ended.clone());
    stage.feed(Event::JobSeen(Box::new(ended)));
    stage.pass(Duration::from_mins(5));
    assert_eq!((stage.lock_ticket(), stage.taken().len()), (None, 2));
}

#[test]
fn a_lock_that_is_given_back_by_itself_voids_the_question_and_a_yes_that_comes_late() {
    let mut stage = met("a-1");
    let ticket = stage.lock_ticket().expect("a question");
    stage.pass(Duration::from_mins(1));
    // It fails elsewhere: that it came to the lock is not known.
    stage.ends_with(&[(StepKind::Source, ended(1)), (StepKind::Plan, StepState::Waiting)]);
    assert_eq!((stage.lock_ticket().as_ref(), stage.ready().1), (Some(&ticket), "RunFailed"));
    stage.pass(Duration::from_mins(2));
    stage.ends_with(&[(StepKind::Plan, ended(1))]);
    assert_eq!(stage.lock_ticket(), None, "it came past the lock");
    stage.approve(&ticket);
    stage.pass(Duration::from_mins(5));
    assert_eq!((stage.started.len(), stage.taken().len()), (4, 0));
}

#[test]
fn another_lock_voids_the_question_and_the_yes_to_it() {
    let mut stage = met("a-1");
    let first = stage.lock_ticket().expect("a question");
    stage.pass(Duration::from_mins(1));
    stage.approve(&first);
    stage.meets(StepKind::Plan, "b-2", ANN);
    stage.pass(Duration::from_mins(2));
    assert_eq!((stage.started.len(), stage.taken().len()), (3, 0), "it was said to the first lock");
    let asked = stage.stored.status.lock.clone().expect("another question");
    assert_eq!((asked.id.as_str(), stage.asked_about_locks()), ("b-2", 2));
}

// Faults: RF16
#[test]
fn a_restart_between_a_yes_and_its_job_takes_the_lock_away_once() {
    for held in ["store", "make_job", "start_job"] {
        let mut stage = met("a-1");
        stage.held.push(held);
        let ticket = stage.lock_ticket().expect("a question");
        stage.approve(&ticket);
        stage.held.clear();
        stage.crash();
        let jobs: BTreeSet<&String> = stage.unlocks.iter().map(|(job, _)| job).collect();
        assert_eq!((stage.started.len(), jobs.len()), (2, 1), "{held}");
        stage.ends_with(&[(StepKind::Unlock, ended(0)), (StepKind::Plan, ended(1))]);
        stage.crash();
        stage.pass(Duration::from_mins(2));
        let jobs: BTreeSet<&String> = stage.unlocks.iter().map(|(job, _)| job).collect();
        assert_eq!((stage.started.len(), jobs.len()), (3, 1), "{held}");
    }
}

#[test]
fn a_newer_commit_and_other_settings_void_the_question() {
    let mut newer = met("a-1");
    let ticket = newer.lock_ticket().expect("a question");
    newer.head = Ok(B);
    newer.edit(|object| object.answers.poked = Some("now".to_owned()));
    newer.pass(Duration::from_secs(5));
    assert_eq!((newer.run().revision.as_str(), newer.lock_ticket()), (B, None));
    newer.approve(&ticket);
    newer.meets(StepKind::Plan, "a-1", ANN);
    assert_ne!(newer.lock_ticket(), Some(ticket), "the same lock is asked about for that run");
    newer.pass(Duration::from_mins(2));
    assert_eq!(newer.taken().len(), 0);

    let mut respecified = met("a-1");
    let ticket = respecified.lock_ticket().expect("a question");
    respecified.edit(|object| {
        object.generation += 1;
        object.spec.as_mut().expect("a spec").runner.image = "tool:2".to_owned();
        object.answers.approve = Some(ticket);
    });
    respecified.pass(Duration::from_secs(5));
    assert_eq!((respecified.started.len(), respecified.taken().len(), respecified.lock_ticket()), (2, 0, None));
}

#[test]
fn an_apply_that_failed_at_a_lock_is_run_once_more_by_a_yes_to_it_or_to_another_run() {
    let failed = || {
        let mut stage = staged(Approving::Auto);
        stage.meets(StepKind::Apply, "a-1", ANN);
        assert_eq!((stage.run().phase, stage.ready()), (Phase::Failed, (Some(false), "RunFailed")));
        stage
    };
    let mut unlocked = failed();
    unlocked.agrees();
    assert_eq!((unlocked.started.len(), unlocked.taken()), (2, vec!["a-1"]));
    assert_eq!(unlocked.stored.status.waiting, None);
    unlocked.applies();
    unlocked.pass(Duration::from_secs(2));
    assert_eq!((unlocked.run().phase, unlocked.lock_ticket()), (Phase::Succeeded, None));
    let mut again = failed();
    let ticket = again.ticket();
    again.approve(&ticket);
    assert_eq!((again.started.len(), again.taken().len()), (2, 0), "that is no yes to the lock");
    // With other settings it may have another state.
    let mut respecified = failed();
    let ticket = respecified.lock_ticket().expect("a question");
    respecified.edit(|object| {
        object.spec.as_mut().expect("a spec").runner.image = "tool:2".to_owned();
        object.answers.approve = Some(ticket);
    });
    respecified.pass(Duration::from_secs(5));
    assert_eq!((respecified.started.len(), respecified.lock_ticket()), (1, None));
}

/// It shares its state with the Repo that applies, and nobody waits for it.
#[test]
fn a_plan_that_is_never_applied_names_the_lock_and_asks_nobody() {
    let mut stage = staged(Approving::Never);
    stage.meets(StepKind::Plan, "a-1", ANN);
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.lock_ticket(), stage.asked_about_locks()), (None, 0));
    assert!(stage.run().message.contains("holds lock a-1"), "{}", stage.run().message);
    assert!(!stage.run().message.contains("repo unlock"), "{}", stage.run().message);
}

#[test]
fn a_look_at_drift_that_meets_a_lock_asks_nobody() {
    let mut spec = spec(Approving::Auto);
    spec.drift = Some(DriftLooks { every: Duration::from_mins(10), then: OnDrift::Tell });
    let mut stage = Stage::new(spec);
    stage.pass(Duration::from_secs(5));
    stage.applies();
    stage.pass(Duration::from_mins(20));
    assert_eq!(stage.job().attempt.action, Action::Drift);
    stage.meets(StepKind::Plan, "a-1", ANN);
    let missed = stage.stored.status.drift.as_ref().and_then(|drift| drift.missed.clone()).expect("a look that failed");
    assert!(missed.message.contains("terraform force-unlock a-1"), "{}", missed.message);
    assert_eq!((stage.lock_ticket(), stage.asked_about_locks()), (None, 0));
}
