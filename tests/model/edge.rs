//! CloudFront around a rollout machine: one distribution, or two of which the second is not purged before a place of the
//! script. What each of them has is judged by what was created for it, and by nothing that a record says.

use std::collections::BTreeSet;

use kernel::id::{Component, InvalidationId, Reference, Seq, Vector, group_rollout_id, purge_reference};
use kernel::names::distribution::DistributionId;
use purge::purges::purge::{Order, Progress};
use purge::records::record::Record;
use purge::rollouts::rollout::{Effect, Event, Identity};
use purge::testing::identity;

use crate::hashed::Hashed;
use crate::mutants::Mutant;
use crate::past;
use crate::world::{Call, Creation, State, World};

/// A second distribution that serves the workload's host.
#[derive(Clone, Copy)]
pub struct Second {
    pub refusal: Refusal,
    /// From this place of the script on it is as good as the first one.
    pub until: usize,
}

/// Why it is not purged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// CloudFront refuses the invalidation itself.
    Impossible,
    /// It may not be made yet, and is tried again.
    Denied,
}

fn first() -> DistributionId {
    "E1EXAMPLE".parse().expect("an id")
}

fn second() -> DistributionId {
    "E2EXAMPLE".parse().expect("an id")
}

impl World {
    pub fn distributions(&self) -> BTreeSet<DistributionId> {
        [first()].into_iter().chain(self.second.map(|_| second())).collect()
    }

    /// Distributions whose purges are made sooner or later, whatever happens.
    pub fn served_in_the_end(&self) -> BTreeSet<DistributionId> {
        let impossible = self.second.is_some_and(|second| second.refusal == Refusal::Impossible);
        self.distributions().into_iter().filter(|id| !impossible || *id == first()).collect()
    }

    fn refusal(&self, at: usize, distribution: &DistributionId) -> Option<Progress> {
        let refusal = self.second.filter(|known| *distribution == second() && at < known.until)?.refusal;
        Some(match refusal {
            Refusal::Impossible if self.mutant == Some(Mutant::ImpossibleForDone) => Progress::Completed(None),
            Refusal::Impossible => Progress::Impossible("InvalidArgument".to_owned()),
            Refusal::Denied => Progress::Failing("AccessDenied".to_owned()),
        })
    }

    /// The reference under which a rollout is purged by the policy's own paths.
    fn reference(&self, seq: Seq, distribution: &DistributionId) -> Reference {
        let Identity { workload, member, group, origin, .. } = identity();
        let rollout = group_rollout_id(&group, &workload, &Vector::of_one(member, Component::bare(origin, seq)));
        purge_reference(&rollout, distribution.as_str(), self.policy.paths.written().map(|path| path.as_str()))
    }

    /// The same reference returns the earlier invalidation. Its completion follows at once.
    pub fn purge(&self, next: &mut State, order: &Order) -> Event {
        let mut order = order.clone();
        if let Some(refusal) = self.refusal(next.at, &order.distribution) {
            return Event::Purged(order.reference, refusal);
        }
        let seq = next.past.voted.last().copied().unwrap_or_default();
        // The vector is in the order's reference only as a hash; the vote that has it names the rollout.
        let owner = |record: &Record| {
            let mut votes = record.all_kept();
            votes.find(|v| v.purges.listed.values().any(|p| p.reference == order.reference)).map(|v| v.seq)
        };
        let machine =
            next.workers.iter().filter_map(|w| w.machine.as_deref()).find_map(|m| m.durable().and_then(owner));
        // Ordered before a restore and carried out after it: no record has that vote any more.
        let mut voted = next.past.voted.iter().copied();
        let lost = voted.find(|seq| self.reference(*seq, &order.distribution) == order.reference);
        let seq = next.ledger.as_deref().and_then(owner).or(machine).or(lost).unwrap_or(seq);
        if let Some(mutant) = self.mutant {
            let version = next.past.meaning.get(&seq).map_or(String::new(), |(_, version)| version.to_string());
            mutant.references(&mut order, next.cdn.len(), &version);
        }
        if !next.cdn.contains_key(&order.reference) {
            past::note_creation(next, seq, &order);
            next.cdn.insert(order.reference.clone(), Creation { seq, distribution: order.distribution.clone() });
        }
        let id = InvalidationId(format!("I{}", next.cdn.keys().position(|r| *r == order.reference).unwrap_or(0)));
        Event::Purged(order.reference, Progress::Created(id))
    }

    /// What an order has come to reaches the rollout. To that, the reference is the one it ordered.
    pub fn report(&self, next: &mut State, w: usize, (effect, order): (&Hashed<Effect>, &Order), progress: Progress) {
        let created = matches!(progress, Progress::Created(_));
        // It is tried again for it, whatever becomes of the machine.
        if matches!(progress, Progress::Failing(_)) && !next.workers[w].refused.contains(effect) {
            next.workers[w].refused.push(effect.clone());
            self.try_again(next);
        }
        self.step(next, w, Event::Purged(order.reference.clone(), progress));
        if created {
            self.step(next, w, Event::Purged(order.reference.clone(), Progress::Completed(None)));
        }
    }

    /// What was refused is tried again once that can help.
    pub fn try_again(&self, next: &mut State) {
        let at = next.at;
        if self.second.is_some_and(|second| at >= second.until) {
            for worker in &mut next.workers {
                worker.calls.extend(worker.refused.drain(..).map(|effect| Call { effect, answer: None }));
                worker.calls.sort_by_key(|call| call.effect.name());
            }
        }
    }
}

mod searches {
    use std::time::Duration;

    use purge::bounds::policy::Policy;
    use purge::workloads::workload::Workload;

    use super::*;
    use crate::rollout::{quick, search, sight, world};
    use crate::world::Faults;

    fn with_a_second(refusal: Refusal, until: usize, script: Vec<Option<Workload>>) -> World {
        let world = world(script);
        // So that time may pass before the right is given, and nothing fails of it.
        let policy = Policy { rollout_timeout: Duration::from_secs(3600), ..world.policy.clone() };
        World { policy, second: Some(Second { refusal, until }), ..world }
    }

    #[test]
    fn one_of_two_distributions_that_is_impossible_leaves_the_edge_unsettled() {
        let world = with_a_second(Refusal::Impossible, usize::MAX, quick(&[("b", 2)]));
        let world = World { faults: Faults { crashes: 2, ..Faults::default() }, ..world };
        search("partly", world, &["ends partly purged"], 1558);
    }

    #[test]
    fn going_back_after_a_part_was_purged_is_purged() {
        let script = vec![sight("a", 1, true, 2), sight("b", 2, true, 2), sight("a", 3, true, 2)];
        let world = with_a_second(Refusal::Impossible, usize::MAX, script);
        search("partly, then back", world, &["ends partly purged", "is purged twice"], 8993);
    }

    /// `b` is purged in part; then the second distribution is mended, `c` never completes, and `b` comes back.
    pub fn mended() -> World {
        let others = [sight("b", 2, true, 2), sight("c", 3, true, 1), sight("b", 4, true, 2)];
        let script = [sight("a", 1, true, 2)].into_iter().chain(others).collect();
        with_a_second(Refusal::Impossible, 2, script)
    }

    #[test]
    fn one_of_two_distributions_that_is_denied_is_owed_and_completed_when_it_may_be() {
        let script = vec![sight("a", 1, true, 2), sight("b", 2, true, 2), sight("b", 2, true, 2)];
        let world = with_a_second(Refusal::Denied, 2, script);
        let world = World { faults: Faults { crashes: 1, early: 1, ..Faults::default() }, ..world };
        search(
            "partly owed",
            world,
            &["is owed in part", "ends purged after it was owed", "ends fresh everywhere"],
            39_356,
        );
    }

    mod deep {
        use super::*;

        #[test]
        #[ignore = "a minute: make model-deep"]
        fn a_version_that_was_purged_in_part_is_purged_when_it_comes_back() {
            search("partly, mended", mended(), &["ends partly purged", "ends fresh everywhere"], 239_857);
        }
    }
}

pub use searches::mended;
