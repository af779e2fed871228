//! Watches workloads, scope by scope, and begins with a listing again where the cluster was set back.
//!
//! Not for pods: they only explain, and their watches end with the rollouts.

use std::collections::BTreeSet;

use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all, unfold};

use super::{decode, named};
use apiserver::{Api, Collection, Look, Reach, Reading, Watches, proofs};
use kernel::unreadable::Unreadable;
use kernel::watches::horizon::Verdict;
use purge::ports::{Flow, Sight};
use purge::workloads::workload::Workload;

/// The watches of several scopes, each look with its scope.
type Looks = SelectAll<Flow<(Option<String>, Look<Workload>)>>;

/// Watches workloads for ever, and begins with a listing again where the cluster was set back.
pub(super) fn watch(watches: Watches, api: Api, scopes: Vec<Collection>) -> Flow<Sight> {
    let reach = Reach::default();
    let watched = Watched {
        looks: begin(&watches, &scopes, &reach),
        proofs: proofs(api, scopes.clone(), reach.clone(), watches.tempo.prove),
        unsynced: scopes.iter().map(|of| of.namespace.clone()).collect(),
        watches,
        scopes,
        reach,
    };
    Box::pin(unfold(watched, |mut watched| async move {
        let sight = watched.next().await;
        sight.map(|sight| (sight, watched))
    }))
}

struct Watched {
    watches: Watches,
    scopes: Vec<Collection>,
    reach: Reach,
    looks: Looks,
    proofs: Flow<Verdict>,
    /// Scopes that have never been listed to the end.
    unsynced: BTreeSet<Option<String>>,
}

impl Watched {
    async fn next(&mut self) -> Option<Sight> {
        loop {
            tokio::select! {
                look = self.looks.next() => {
                    let (scope, look) = look?;
                    if matches!(look, Look::Synced) {
                        self.unsynced.remove(&scope);
                    }
                    return Some(sight(scope, look, self.unsynced.is_empty()));
                }
                Some(verdict) = self.proofs.next() => match verdict {
                    Verdict::Level | Verdict::InDoubt => {}
                    Verdict::CaughtUp => self.begin(),
                    Verdict::SetBack(from, to) => {
                        self.begin();
                        return Some(Sight::SetBack { from, to });
                    }
                },
            }
        }
    }

    fn begin(&mut self) {
        self.looks = begin(&self.watches, &self.scopes, &self.reach);
    }
}

/// The watches of all scopes, from a listing on.
fn begin(watches: &Watches, scopes: &[Collection], reach: &Reach) -> Looks {
    select_all(scopes.iter().map(|of| -> Flow<_> {
        let scope = of.namespace.clone();
        let looks = watches.watch(of.clone(), decode::deployment, reach.clone());
        Box::pin(looks.map(move |look| (scope.clone(), look)))
    }))
}

fn sight(scope: Option<String>, look: Look<Workload>, all: bool) -> Sight {
    match look {
        Look::Restarted => Sight::Restarted { scope },
        Look::Seen(Reading::Read(workload)) => Sight::Seen(Box::new(workload)),
        // An object without a full name is reported under the part it has; the watch is not to blame.
        Look::Seen(Reading::Unreadable(name, why)) => Sight::Unreadable(named(name), why),
        Look::Gone(name) if name.namespace.is_empty() || name.name.is_empty() => {
            Sight::Unreadable(named(name), Unreadable::because("it was deleted, and its name cannot be read"))
        }
        Look::Gone(name) => Sight::Gone(named(name)),
        Look::Synced => Sight::Synced { scope, all },
        Look::Trouble(error) => Sight::Trouble { scope, error },
    }
}
