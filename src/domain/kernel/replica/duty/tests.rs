use super::*;
use crate::replica::lease::{Claim, Replica};

const NOW: Timestamp = Timestamp::from_millis(0);

fn origin(name: &str) -> Origin {
    Origin(name.to_owned())
}

fn claim(holder: &str) -> Claim {
    Claim { holder: holder.to_owned(), ..Claim::default() }
}

/// A replica without an election, all built from the ledger `one`.
fn working() -> Duty {
    let mut duty = Duty::new(None);
    assert_eq!(duty.tick(NOW), [Effect::Open]);
    assert_eq!(duty.step(NOW, Event::Opened(origin("one"))), [Effect::Build]);
    duty
}

/// A replica with an election, which has just looked for the first time.
fn looking() -> Duty {
    let us = Replica { pod: "a".to_owned(), boot: "1".to_owned() };
    let mut duty = Duty::new(Some(Election::new(us, NOW)));
    assert_eq!(duty.tick(NOW), [Effect::Lease(lease::Effect::Look)]);
    duty
}

/// One that leads, all built from the ledger `one`.
fn leading() -> Duty {
    let mut duty = looking();
    duty.step(NOW, Event::Lease(lease::Event::Looked(None)));
    let taken = duty.step(NOW, Event::Lease(lease::Event::Taken(Some(claim("a_1")))));
    assert_eq!(taken, [Effect::TellLeading, Effect::Open]);
    assert_eq!(duty.step(NOW, Event::Opened(origin("one"))), [Effect::Build]);
    duty
}

/// Another replica's name turns out to be in the lease.
fn rob(duty: &mut Duty) -> Vec<Effect> {
    let renewal = NOW.after(lease::RENEW_EVERY);
    assert_eq!(duty.tick(renewal), [Effect::Lease(lease::Effect::Take(Some(claim("a_1"))))]);
    let lost = duty.step_and_catch_up(renewal, Event::Lease(lease::Event::Taken(None)));
    assert_eq!(lost, [Effect::Lease(lease::Effect::Look)]);
    duty.step(renewal, Event::Lease(lease::Event::Looked(Some(claim("b_1")))))
}

#[test]
fn a_watcher_that_crashed_comes_back_with_what_the_ledger_holds_then_and_the_rest_stays() {
    let mut duty = working();
    let crashed = duty.step(NOW, Event::Crashed(Singleton::Watcher));
    assert_eq!(crashed, [Effect::Rebuild(Singleton::Watcher), Effect::Open]);
    assert_eq!(duty.step(NOW, Event::Crashed(Singleton::Group)), [Effect::Rebuild(Singleton::Group)]);
    assert_eq!(duty.step(NOW, Event::Opened(origin("one"))), [Effect::Build]);
}

#[test]
fn a_watcher_that_would_come_back_to_another_ledger_takes_the_rest_with_it() {
    let mut duty = working();
    duty.step(NOW, Event::Crashed(Singleton::Watcher));
    assert_eq!(duty.step(NOW, Event::Opened(origin("two"))), [Effect::Abandon]);
    assert_eq!(duty.step(NOW, Event::Ended), [Effect::Open]);
    assert_eq!(duty.step(NOW, Event::Opened(origin("two"))), [Effect::Build]);
}

#[test]
fn each_singleton_has_a_budget_of_its_own_and_the_process_ends_beyond_it() {
    let mut duty = working();
    for _ in 0..5 {
        assert_eq!(duty.step(NOW, Event::Crashed(Singleton::Group)), [Effect::Rebuild(Singleton::Group)]);
    }
    assert_eq!(duty.step(NOW, Event::Crashed(Singleton::Group)), [Effect::GiveUp(Singleton::Group)]);
    assert_eq!(duty.step(NOW, Event::Crashed(Singleton::Webhook)), [Effect::Rebuild(Singleton::Webhook)]);
}

#[test]
fn only_the_loss_of_the_ledger_that_is_worked_from_counts() {
    let mut duty = working();
    assert_eq!(duty.step(NOW, Event::LedgerLost(origin("none"))), []);
    assert_eq!(duty.step(NOW, Event::LedgerLost(origin("one"))), [Effect::Abandon]);
    assert_eq!(duty.step(NOW, Event::LedgerLost(origin("one"))), [], "all say so");
    assert_eq!(duty.step(NOW, Event::Crashed(Singleton::Group)), [], "it ends anyway");
}

#[test]
fn a_leader_that_is_robbed_ends_its_work_before_it_works_again() {
    let mut duty = leading();
    assert_eq!(rob(&mut duty), [Effect::TellTakenOver(Some("b_1".to_owned())), Effect::End]);
    assert_eq!((duty.standing_by(), duty.troubles()), (Some("b_1"), vec![]));
    let free = NOW.after(lease::RENEW_EVERY + lease::LEASE_FOR);
    let told = Effect::TellStandingBy("b_1".to_owned());
    assert_eq!(duty.tick(free), [Effect::Lease(lease::Effect::Look), told]);
    duty.step(free, Event::Lease(lease::Event::Looked(Some(claim("")))));
    let taken = duty.step(free, Event::Lease(lease::Event::Taken(Some(claim("a_1")))));
    assert_eq!(taken, [Effect::TellLeading], "what was built has not ended yet");
    assert_eq!(duty.step(free, Event::Ended), [Effect::Open]);
}

#[test]
fn the_lease_is_given_back_when_all_has_ended_and_then_it_stops() {
    let mut duty = leading();
    assert_eq!(duty.step(NOW, Event::Dismissed), [Effect::End]);
    assert_eq!(duty.step(NOW, Event::Dismissed), []);
    assert_eq!(duty.step(NOW, Event::Ended), [Effect::Lease(lease::Effect::Release(Some(claim("a_1"))))]);
    assert_eq!(duty.step(NOW, Event::Released), [Effect::Stop]);
    let mut alone = working();
    assert_eq!(alone.step(NOW, Event::Dismissed), [Effect::End]);
    assert_eq!(alone.step(NOW, Event::Ended), [Effect::Stop]);
}

#[test]
fn it_does_not_stop_while_a_renewal_may_put_its_name_back() {
    let mut duty = leading();
    let renewal = NOW.after(lease::RENEW_EVERY);
    assert_eq!(duty.tick(renewal), [Effect::Lease(lease::Effect::Take(Some(claim("a_1"))))]);
    duty.step(renewal, Event::Dismissed);
    assert_eq!(duty.step(renewal, Event::Ended), []);
    let taken = duty.step(renewal, Event::Lease(lease::Event::Taken(Some(claim("a_1")))));
    assert_eq!(taken, [Effect::Lease(lease::Effect::Release(Some(claim("a_1"))))]);
    assert_eq!(duty.step(renewal, Event::Released), [Effect::Stop]);
    let mut draining = leading();
    draining.step(NOW, Event::Dismissed);
    assert_eq!((draining.tick(renewal), draining.next_deadline()), (vec![], None), "it is not renewed any more");
}

#[test]
fn why_nothing_is_built_can_be_seen() {
    let looking = looking();
    assert_eq!(looking.troubles(), ["it is not known yet whether another replica leads"]);
    let mut duty = Duty::new(None);
    duty.tick(NOW);
    assert_eq!(duty.troubles(), ["the ledger has not been opened yet"]);
    duty.step(NOW, Event::Opened(origin("one")));
    assert_eq!(duty.troubles(), Vec::<String>::new());
}

#[test]
fn a_trouble_with_the_lease_is_told_once() {
    let mut duty = leading();
    let failed = || lease::Event::Failed { why: "no answer".to_owned(), lasting: false };
    let mut now = NOW.after(lease::RENEW_EVERY);
    let mut told = Vec::new();
    for _ in 0..3 {
        duty.tick(now);
        told.extend(duty.step(now, Event::Lease(failed())));
        now = duty.next_deadline().unwrap();
    }
    assert!(matches!(told.as_slice(), [Effect::TellTrouble(why)] if why.contains("no answer")), "{told:?}");
}
