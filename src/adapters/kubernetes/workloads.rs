//! Watches workloads, scope by scope, and begins with a listing again where the cluster was set back.
//!
//! Not for pods: they only explain, and their watches end with the rollouts.

use std::collections::BTreeSet;

use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all, unfold};

use super::decode;
use apiserver::{Api, Collection, Look, Name, Reach, Reading, Watches, proofs};
use kernel::id::{Kind, WorkloadId};
use kernel::refusal::Refused;
use kernel::unreadable::Unreadable;
use kernel::watches::horizon::Verdict;
use kernel::watches::listed::Scope;
use purge::ports::{Flow, Sight};
use purge::workloads::workload::Workload;

/// What one watch lists.
pub(super) type Listed = (Kind, Collection);

/// The watches of several scopes, each look with its scope.
type Looks = SelectAll<Flow<(Kind, Scope, Look<Workload>)>>;

/// Watches workloads for ever, and begins with a listing again where the cluster was set back.
pub(super) fn watch(watches: Watches, api: Api, listed: Vec<Listed>) -> Flow<Sight> {
    let reach = Reach::default();
    let proved = listed.iter().filter(|(kind, _)| *kind == Kind::Deployment).map(|(_, of)| of.clone()).collect();
    let watched = Watched {
        looks: begin(&watches, &listed, &reach),
        proofs: proofs(api, proved, reach.clone(), watches.tempo.prove),
        unsynced: listed.iter().map(scope).collect(),
        watches,
        listed,
        reach,
    };
    Box::pin(unfold(watched, |mut watched| async move {
        let sight = watched.next().await;
        sight.map(|sight| (sight, watched))
    }))
}

struct Watched {
    watches: Watches,
    listed: Vec<Listed>,
    /// Of Deployments, which every cluster has; other kinds may be stored elsewhere, and count by themselves.
    reach: Reach,
    looks: Looks,
    proofs: Flow<Verdict>,
    /// Scopes that have never been listed to the end.
    unsynced: BTreeSet<Scope>,
}

impl Watched {
    async fn next(&mut self) -> Option<Sight> {
        loop {
            tokio::select! {
                look = self.looks.next() => {
                    let (kind, scope, look) = look?;
                    return Some(self.sight(kind, scope, look));
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
        self.looks = begin(&self.watches, &self.listed, &self.reach);
    }

    fn sight(&mut self, kind: Kind, scope: Scope, look: Look<Workload>) -> Sight {
        let named = |name: Name| WorkloadId::new(kind, name.namespace, name.name);
        match look {
            Look::Restarted => Sight::Restarted { scope },
            Look::Seen(Reading::Read(workload)) => Sight::Seen(Box::new(workload)),
            // An object without a full name is reported under the part it has; the watch is not to blame.
            Look::Seen(Reading::Unreadable(name, why)) => Sight::Unreadable(named(name), why),
            Look::Gone(name) if name.namespace.is_empty() || name.name.is_empty() => {
                Sight::Unreadable(named(name), Unreadable::because("it was deleted, and its name cannot be read"))
            }
            Look::Gone(name) => Sight::Gone(named(name)),
            Look::Synced => {
                self.unsynced.remove(&scope);
                Sight::Synced { scope, all: self.unsynced.is_empty() }
            }
            // Roles from before this kind was followed do not name it.
            Look::Trouble(error) if kind != Kind::Deployment && error.refused() == Some(Refused::Right) => {
                self.unsynced.remove(&scope);
                Sight::Refused { scope, error, all: self.unsynced.is_empty() }
            }
            Look::Trouble(error) => Sight::Trouble { scope, error },
        }
    }
}

fn scope((kind, of): &Listed) -> Scope {
    Scope::of_kind(*kind, of.namespace.as_deref())
}

/// The watches of all scopes, from a listing on.
fn begin(watches: &Watches, listed: &[Listed], reach: &Reach) -> Looks {
    select_all(listed.iter().map(|listed| -> Flow<_> {
        let ((kind, of), scope) = (listed.clone(), scope(listed));
        let reach = if kind == Kind::Deployment { reach.clone() } else { Reach::default() };
        let looks = watches.watch(of, decode::workload(kind), reach);
        Box::pin(looks.map(move |look| (kind, scope.clone(), look)))
    }))
}
