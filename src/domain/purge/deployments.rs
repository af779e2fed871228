//! Deployments, as a watch knows them.

use crate::bounds::policy::Policy;
use crate::records::record::Record;
use crate::rollouts::rollout::{self, Arrival};
use crate::workloads::workload::Workload;
use kernel::floor::State;
use kernel::id::{self, WorkloadId};
use kernel::watches::watch::{Attention, Kind};

/// The kind. A child of it is a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deployments {
    /// How rollouts are judged.
    pub policy: Policy,
}

impl Kind for Deployments {
    type Id = WorkloadId;
    type Sight = Workload;
    type Record = Record;
    type Arrival = Arrival;

    const AT_REST: Arrival = Arrival::Baseline;
    const NEW: Arrival = Arrival::New;
    const OPEN: Arrival = Arrival::Open;

    fn id(workload: &Workload) -> &WorkloadId {
        &workload.id
    }

    fn listed_as(workload: &Workload) -> Option<id::Kind> {
        Some(workload.object)
    }

    fn attention(&self, record: Option<&Record>, workload: &Workload, is_listed: bool) -> Attention<Self> {
        match rollout::attention(record, workload, is_listed, &self.policy) {
            rollout::Attention::Idle => Attention::Idle,
            rollout::Attention::Baseline(record) => Attention::Baseline(record),
            rollout::Attention::Rollout => Attention::Child(Arrival::of(workload, is_listed)),
        }
    }

    fn unusable(&self, record: Option<&Record>, workload: &Workload) -> Option<String> {
        rollout::unusable(record, workload, &self.policy)
    }

    fn state(record: &Record) -> State {
        (record.seq, record.revision)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::testing::{settled, version};
    use kernel::machine::{Machine, Timestamp};
    use kernel::watches::listed::{Listed, Scope};
    use kernel::watches::lives::Lives;
    use kernel::watches::watch::{Baseline, Effect, Event, Watch, Written};

    /// A first life that lists two kinds, of which the listing of Deployments has ended.
    struct Listing(Watch<Deployments>);

    impl Listing {
        fn begin() -> Self {
            let kind = Deployments { policy: Policy::default() };
            let watch = Watch::new(
                kind,
                BTreeMap::new(),
                BTreeMap::new(),
                Listed::default(),
                Lives::go_on(None, Timestamp::from_millis(0)),
            );
            let mut listing = Self(watch);
            for kind in [id::Kind::Deployment, id::Kind::StatefulSet] {
                assert_eq!(listing.written(Event::Relisting(Scope::of_kind(kind, None))), None);
                let id = WorkloadId::new(kind, "shop", "web");
                let workload = Workload { id, object: kind, ..settled(version("a"), 1, 2) };
                assert_eq!(listing.written(Event::Seen(Box::new(workload))), None);
            }
            assert_eq!(listing.written(Event::Listed(Scope::of(None), false)), None, "the other is about to end");
            listing
        }

        /// How many baselines are written, if any are.
        fn written(&mut self, event: Event<Deployments>) -> Option<usize> {
            let effects = self.0.step(Timestamp::from_millis(0), event);
            effects.into_iter().find_map(|effect| match effect {
                Effect::WriteBaselines(found, _) => Some(found.len()),
                _ => None,
            })
        }
    }

    fn stateful_sets() -> Scope {
        Scope::of_kind(id::Kind::StatefulSet, None)
    }

    #[test]
    fn what_the_listings_of_several_kinds_find_is_written_at_once() {
        assert_eq!(Listing::begin().written(Event::Listed(stateful_sets(), true)), Some(2));
    }

    /// The ledger notes its parts one by one as soon as it has noted a scope, so a scope without an object must not be noted while the
    /// parts are made.
    #[test]
    fn no_scope_is_noted_while_first_records_are_written() {
        let mut listing = Listing::begin();
        let daemon_sets = Scope::of_kind(id::Kind::DaemonSet, None);
        listing.written(Event::Relisting(daemon_sets.clone()));
        listing.written(Event::Listed(daemon_sets.clone(), false));
        let now = Timestamp::from_millis(0);
        let noted = |effects: Vec<Effect<Deployments>>| {
            effects.into_iter().find_map(|effect| match effect {
                Effect::NoteListed(scopes) => Some(scopes),
                _ => None,
            })
        };
        let effects = listing.0.step(now, Event::Listed(stateful_sets(), true));
        let written = effects.iter().find_map(|effect| match effect {
            Effect::WriteBaselines(found, _) => Some(found.clone()),
            _ => None,
        });
        assert_eq!(noted(effects), None);
        assert_eq!(noted(listing.0.step(now, Event::Swept)), None);
        let answer = |(id, record)| Baseline { id, record, written: Written::Done };
        let answers = written.unwrap().into_iter().map(answer).collect();
        let all = BTreeSet::from([Scope::of(None), stateful_sets(), daemon_sets]);
        assert_eq!(noted(listing.0.step(now, Event::BaselinesWritten(answers))), Some(all));
    }

    #[test]
    fn a_listing_that_does_not_end_holds_up_the_others_for_some_seconds_and_one_that_is_refused_for_none() {
        let mut listing = Listing::begin();
        let sweeps = (1..).find(|_| listing.written(Event::Swept).is_some());
        assert_eq!(sweeps, Some(5));
        assert_eq!(Listing::begin().written(Event::LeftOut(stateful_sets(), true)), Some(2));
    }
}
