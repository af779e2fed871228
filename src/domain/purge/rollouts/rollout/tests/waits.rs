//! A walk through everything a rollout can wait for: unanswered for ever, and failing for ever.

use std::collections::VecDeque;

use super::*;
use crate::rollouts::rollout::waits::{AGAIN_AFTER, Attended, Wait};

/// How an effect that is waited for is treated.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Treatment {
    Unanswered,
    Failing,
    /// Answered, and never as hoped.
    Refuted,
}

/// A world in which one kind of effect never comes to a good end.
struct Walk {
    machine: Attended,
    now: Timestamp,
    workload: Workload,
    wait: Wait,
    treatment: Treatment,
    told: Vec<(Duration, Notice)>,
}

impl Walk {
    /// Rolls a version out against it, for so long.
    fn take(wait: Wait, treatment: Treatment, time: Duration) -> Vec<(Duration, Notice)> {
        Self::take_as(identity(), wait, treatment, time)
    }

    fn take_as(identity: Identity, wait: Wait, treatment: Treatment, time: Duration) -> Vec<(Duration, Notice)> {
        let workload = complete("a", 1);
        let record = baseline(&workload, workload.version.as_ref().unwrap(), Seq(0));
        let mut policy = Policy::default();
        policy.barrier.settle = Duration::ZERO;
        let machine = Attended::new(Rollout::resume(identity, policy, Seq(0), Some(record)));
        let now = Timestamp::from_millis(0);
        let mut walk = Self { machine, now, workload: complete("b", 2), wait, treatment, told: Vec::new() };
        let seen = if wait == Wait::Look { Event::Missed } else { Event::Seen(Box::new(walk.workload.clone())) };
        walk.feed(seen);
        let end = now.after(time);
        while let Some(next) = walk.machine.next_deadline().filter(|next| *next <= end) {
            assert!(next >= walk.now, "{wait:?}: no deadline lies in the past");
            walk.now = next;
            let effects = walk.machine.tick(next);
            walk.answer_all(effects);
            assert!(
                walk.machine.next_deadline().is_none_or(|again| again > walk.now),
                "{wait:?}: a tick moves its deadline"
            );
        }
        walk.told
    }

    fn feed(&mut self, event: Event) {
        let effects = self.machine.step(self.now, event);
        self.answer_all(effects);
    }

    fn answer_all(&mut self, effects: Vec<Effect>) {
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            if let Some(event) = self.answer(effect) {
                queue.extend(self.machine.step(self.now, event));
            }
        }
    }

    fn answer(&mut self, effect: Effect) -> Option<Event> {
        let stuck = matches!(&effect, Effect::Tell(notice) if notice.kind == Kind::RolloutStuck);
        if Wait::of(&effect) == Some(self.wait) && !stuck {
            return match self.treatment {
                Treatment::Unanswered => None,
                Treatment::Failing => failed(effect),
                Treatment::Refuted => self.refuted(effect),
            };
        }
        if let Effect::Tell(notice) = &effect {
            self.told.push((self.now.since(Timestamp::from_millis(0)), (**notice).clone()));
        }
        // A purge stays as it was created: how long one may take is CloudFront's business.
        answers(&effect, Some(&self.workload)).into_iter().next()
    }

    fn refuted(&self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Recheck(vector) => {
                let replicas = Replicas { ready: 1, available: 1, ..complete("b", 2).replicas };
                Some(Event::Rechecked(vector, Some(Box::new(Workload { replicas, ..complete("b", 2) }))))
            }
            Effect::Store(_) => {
                let theirs = self.machine.durable().cloned().map(Box::new);
                Some(Event::Conflicted(theirs, Seq(0).into()))
            }
            other => panic!("{} is not refuted", other.name()),
        }
    }
}

fn failed(effect: Effect) -> Option<Event> {
    let why = || "forbidden".to_owned();
    Some(match effect {
        Effect::Store(_) | Effect::Remove(_) => Event::StoreFailed(why()),
        Effect::Look => Event::LookFailed(why()),
        Effect::FindOldPods(_) => Event::OldPodsUnseen(why()),
        Effect::FindSite(..) => Event::SiteFailed(why()),
        Effect::Recheck(_) => Event::RecheckFailed(why()),
        Effect::Match(vector, _) | Effect::Compare(vector, _) => Event::MatchFailed(vector, why()),
        Effect::Tell(notice) => Event::TellFailed(notice.id, why()),
        // These cannot fail: the one is answered from memory, and of the other the machine of purges tells.
        Effect::Publish(_) | Effect::Purge(_) => return None,
        // Each cache has a bound of its own.
        Effect::AskCache(..) => return None,
        Effect::Absent(_) | Effect::AskEdge(..) | Effect::LeaveEdge(_) | Effect::End => return None,
    })
}

/// All that can be waited for, with what is said of it. An effect that is new has to name its wait (`Wait::of`), and a wait that
/// is new stops the build here.
fn said(wait: Wait) -> &'static str {
    match wait {
        Wait::Load => "its record cannot be read",
        Wait::Store => "its record cannot be written",
        Wait::Publish => "the group's records do not arrive",
        Wait::Look => "the workload cannot be read",
        Wait::Site => "its hosts cannot be found",
        Wait::Recheck => "the last look before the purge does not confirm it",
        Wait::Match => "its distributions cannot be found",
        Wait::Purge => "its purge is not created",
        Wait::Tell => "what happened cannot be told",
    }
}

const WALKED: [Wait; 8] =
    [Wait::Store, Wait::Publish, Wait::Look, Wait::Site, Wait::Recheck, Wait::Match, Wait::Purge, Wait::Tell];

fn stuck(told: &[(Duration, Notice)]) -> Vec<(Duration, &str)> {
    let stuck = told.iter().filter(|(_, notice)| notice.kind == Kind::RolloutStuck);
    stuck.map(|(at, notice)| (*at, notice.message.as_str())).collect()
}

#[test]
fn whatever_is_never_answered_is_told_as_stalled_within_its_bound_and_then_daily() {
    for wait in WALKED {
        let told = Walk::take(wait, Treatment::Unanswered, AGAIN_AFTER * 2 + wait.bound());
        let stuck = stuck(&told);
        assert_eq!(stuck.len(), 3, "{wait:?}: {stuck:?}");
        for ((at, said_then), day) in stuck.iter().zip(0..) {
            assert_eq!(*at, wait.bound() + AGAIN_AFTER * day, "{wait:?}");
            assert!(said_then.contains(said(wait)) && said_then.contains("; see "), "{said_then}");
        }
    }
}

#[test]
fn whatever_fails_for_ever_is_told_at_the_third_failure_and_as_stalled() {
    for wait in WALKED.into_iter().filter(|wait| !matches!(wait, Wait::Publish | Wait::Purge)) {
        let told = Walk::take(wait, Treatment::Failing, wait.bound() + Duration::from_secs(60));
        let stuck = stuck(&told);
        let [(first, failing), (second, stalled)] = stuck[..] else { panic!("{wait:?}: {stuck:?}") };
        // What fails for some seconds passes by itself.
        assert!((30..90).contains(&first.as_secs()), "{wait:?}: {first:?}");
        assert!(failing.contains(said(wait)) && failing.contains("forbidden; see "), "{failing}");
        assert!(second >= wait.bound() && second <= wait.bound() + Duration::from_secs(60), "{wait:?}: {second:?}");
        assert!(stalled.contains(said(wait)) && stalled.contains("for 15m"), "{stalled}");
    }
}

#[test]
fn the_right_that_a_look_lacks_is_named_for_the_kind_of_the_workload() {
    let workload = WorkloadId::new(id::Kind::StatefulSet, "shop", "db");
    for wait in [Wait::Look, Wait::Recheck] {
        let identity = Identity { workload: workload.clone(), ..identity() };
        let told = Walk::take_as(identity, wait, Treatment::Failing, wait.bound());
        let is_named =
            |(_, notice): &(Duration, Notice)| notice.message.contains("whether allclear may get StatefulSets there");
        assert!(told.iter().any(is_named), "{told:?}");
    }
}

#[test]
fn a_look_that_never_confirms_and_a_record_that_others_keep_writing_are_told_too() {
    for wait in [Wait::Recheck, Wait::Store] {
        let told = Walk::take(wait, Treatment::Refuted, wait.bound() + Duration::from_secs(120));
        let stuck = stuck(&told);
        let [(first, failing), (_, stalled)] = stuck[..] else { panic!("{wait:?}: {stuck:?}") };
        assert!((30..90).contains(&first.as_secs()) && failing.contains(said(wait)), "{wait:?}: {first:?} {failing}");
        assert!(stalled.contains(said(wait)), "{stalled}");
    }
}

#[test]
fn what_is_answered_in_time_is_told_to_nobody() {
    for wait in WALKED {
        let told = Walk::take(wait, Treatment::Unanswered, wait.bound() - Duration::from_secs(1));
        assert_eq!(stuck(&told), [], "{wait:?}");
    }
    // All goes well: nothing is left to wait for.
    let told = Walk::take(Wait::Load, Treatment::Unanswered, AGAIN_AFTER * 3);
    assert_eq!(stuck(&told), []);
    assert!(told.iter().any(|(_, notice)| notice.kind == Kind::PurgeStarted));
}
