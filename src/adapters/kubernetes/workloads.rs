//! Watches workloads, scope by scope, and begins with a listing again where the cluster was set back.
//!
//! Where Rollouts are followed, they are listed before the Deployments of the same namespaces, and both go through
//! [`Joining`], which says which of two of one name counts.
//!
//! Not for pods: they only explain, and their watches end with the rollouts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, SelectAll, unfold};

use super::decode;
use super::rollouts::{self, Presence, Said};
use apiserver::{Api, Collection, Look, Name, Reach, Reading, Watches, proofs};
use kernel::id::{Kind, WorkloadId};
use kernel::names::image::VersionOf;
use kernel::refusal::Refused;
use kernel::unreadable::Unreadable;
use kernel::watches::horizon::Verdict;
use kernel::watches::listed::Scope;
use purge::ports::{Flow, PortError, Sight};
use purge::workloads::joining::{Event, Joining, News};
use purge::workloads::workload::Workload;
use tokio::time::Instant;

/// What one watch lists.
pub(super) type Listed = (Kind, Collection);

/// A Deployment that was read, for the watch that it was read for.
type Read = (Listed, WorkloadId, Option<Box<Workload>>);

/// How soon a Deployment is read again that could not be, at first and at most.
const READ_AGAIN: Duration = Duration::from_secs(1);
const READ_AGAIN_MAX: Duration = Duration::from_secs(30);

/// The watches of several scopes, each word with its scope.
type Looks = SelectAll<Flow<(Listed, Said)>>;

/// Watches workloads for ever, and begins with a listing again where the cluster was set back.
pub(super) fn watch(watches: Watches, api: Api, listed: Vec<Listed>, presence: Presence, of: VersionOf) -> Flow<Sight> {
    let reach = Reach::default();
    let proved = listed.iter().filter(|(kind, _)| *kind == Kind::Deployment).map(|(_, of)| of.clone()).collect();
    let mut watched = Watched {
        looks: SelectAll::new(),
        proofs: proofs(api.clone(), proved, reach.clone(), watches.tempo.prove),
        progress: Progress {
            unsynced: listed.iter().map(scope).collect(),
            listed: BTreeSet::new(),
            unsaid: BTreeSet::new(),
            waiting: BTreeSet::new(),
            begun: Instant::now(),
        },
        joining: BTreeMap::new(),
        reads: FuturesUnordered::new(),
        sights: VecDeque::new(),
        watches,
        api,
        listed,
        presence,
        of,
        reach,
    };
    watched.begin();
    Box::pin(unfold(watched, |mut watched| async move {
        let sight = watched.next().await;
        sight.map(|sight| (sight, watched))
    }))
}

struct Watched {
    watches: Watches,
    api: Api,
    listed: Vec<Listed>,
    presence: Presence,
    of: VersionOf,
    /// Of Deployments, which every cluster has; other kinds may be stored elsewhere, and count by themselves.
    reach: Reach,
    looks: Looks,
    proofs: Flow<Verdict>,
    progress: Progress,
    /// By namespace: where Rollouts are followed.
    joining: BTreeMap<Option<String>, Joining>,
    /// Deployments that Rollouts refer to and that are not at hand.
    reads: FuturesUnordered<BoxFuture<'static, Read>>,
    /// Said, but not read yet.
    sights: VecDeque<Sight>,
}

/// How far the listings are.
struct Progress {
    /// Not listed to the end yet, in this life, nor left out.
    unsynced: BTreeSet<Scope>,
    /// Listed to the end since it was begun.
    listed: BTreeSet<Scope>,
    /// Namespaces whose Rollouts are said to be listed once their Deployments are.
    unsaid: BTreeSet<Option<String>>,
    /// Namespaces whose Deployments are listed next, when it is known which Rollouts there are.
    waiting: BTreeSet<Option<String>>,
    begun: Instant,
}

impl Progress {
    fn begin(&mut self) {
        self.listed.clear();
        self.unsaid.clear();
        self.begun = Instant::now();
    }

    /// Whether a scope is still not listed, this long after its listing began.
    fn is_overdue(&self, scope: &Scope, bound: Duration) -> bool {
        !self.listed.contains(scope) && self.begun.elapsed() >= bound
    }

    /// A scope is listed to the end. Returns whether all are, or are left out.
    fn done(&mut self, scope: &Scope) -> bool {
        self.listed.insert(scope.clone());
        self.leave_out(scope)
    }

    /// A scope is not waited for. Returns the same.
    fn leave_out(&mut self, scope: &Scope) -> bool {
        self.unsynced.remove(scope);
        self.unsynced.is_empty()
    }
}

impl Watched {
    async fn next(&mut self) -> Option<Sight> {
        loop {
            if let Some(sight) = self.sights.pop_front() {
                return Some(sight);
            }
            tokio::select! {
                said = self.looks.next() => {
                    let (listed, said) = said?;
                    self.hear(&listed, said);
                }
                Some((listed, id, found)) = self.reads.next() => self.join(&listed, Event::Read(id, found)),
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

    /// Lists everything, from the beginning.
    fn begin(&mut self) {
        let followed = self.listed.iter().filter(|(kind, _)| *kind == Kind::Rollout);
        self.joining = followed.map(|(_, of)| (of.namespace.clone(), Joining::default())).collect();
        self.progress.waiting = self.joining.keys().cloned().collect();
        self.reads.clear();
        self.progress.begin();
        self.looks = SelectAll::new();
        for listed in &self.listed {
            let waits = listed.0 == Kind::Deployment && self.progress.waiting.contains(&listed.1.namespace);
            if !waits {
                self.looks.push(self.watch_one(listed));
            }
        }
    }

    fn watch_one(&self, listed: &Listed) -> Flow<(Listed, Said)> {
        let ((kind, of), listed) = (listed.clone(), listed.clone());
        let said: Flow<Said> = match kind {
            Kind::Rollout | Kind::Custom(_) => {
                rollouts::watch(self.watches.clone(), self.api.clone(), kind, of, self.of.clone())
            }
            Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet => {
                let reach = if kind == Kind::Deployment { self.reach.clone() } else { Reach::default() };
                Box::pin(self.watches.watch(of, decode::workload(kind, &self.of), reach).map(Some))
            }
        };
        Box::pin(said.map(move |said| (listed.clone(), said)))
    }

    /// It is known which Rollouts there are in these namespaces.
    fn begin_deployments(&mut self, namespace: &Option<String>) {
        if !self.progress.waiting.remove(namespace) {
            return;
        }
        let is_meant = |(kind, of): &&Listed| *kind == Kind::Deployment && of.namespace == *namespace;
        let begun: Vec<_> = self.listed.iter().filter(is_meant).map(|listed| self.watch_one(listed)).collect();
        self.looks.extend(begun);
    }

    fn hear(&mut self, listed: &Listed, said: Said) {
        let (kind, of) = listed;
        let named = |name: Name| WorkloadId::new(*kind, name.namespace, name.name);
        match said {
            None if kind.custom().is_some() => {
                let attempted = of.attempt("list").to_string();
                self.leave_out(
                    listed,
                    PortError::lasting(attempted, format!("the cluster does not have {}", kind.api_version())),
                );
            }
            None => {
                self.presence.leave_out(of.namespace.as_deref());
                self.join(listed, Event::NoRollouts);
                self.progress.unsaid.remove(&of.namespace);
                self.say_synced(scope(listed));
                self.begin_deployments(&of.namespace);
            }
            Some(Look::Restarted) => {
                self.join(listed, Event::Relisting(*kind));
                self.sights.push_back(Sight::Restarted { scope: scope(listed) });
            }
            Some(Look::Seen(Reading::Read(workload))) => self.join(listed, Event::Seen(Box::new(workload))),
            // An object without a full name is reported under the part it has; the watch is not to blame.
            Some(Look::Seen(Reading::Unreadable(name, why))) => {
                self.join(listed, Event::Unreadable(*kind, named(name), why));
            }
            Some(Look::Gone(name)) if name.namespace.is_empty() || name.name.is_empty() => {
                let why = Unreadable::because("it was deleted, and its name cannot be read");
                self.sights.push_back(Sight::Unreadable(named(name), why));
            }
            Some(Look::Gone(name)) => self.join(listed, Event::Gone(*kind, named(name))),
            Some(Look::Synced) => self.synced(listed),
            Some(Look::Trouble(error)) => self.troubled(listed, error),
        }
    }

    /// What follows from a sight of one object, which may be that of another kind.
    fn join(&mut self, (kind, of): &Listed, event: Event) {
        self.presence.note(&event);
        let joining = self.joining.get_mut(&of.namespace).filter(|_| kind.identity() == Kind::Deployment);
        let news = match (joining, event) {
            (None, Event::Read(..)) => Vec::new(),
            (Some(joining), event) => joining.step(event),
            (None, Event::Seen(workload)) => vec![News::Seen(workload)],
            (None, Event::Unreadable(_, id, why)) => vec![News::Unreadable(id, why)],
            (None, Event::Gone(_, id)) => vec![News::Gone(id)],
            (None, Event::Relisting(_) | Event::Listed(_) | Event::NoRollouts) => Vec::new(),
        };
        for news in news {
            self.sights.push_back(match news {
                News::Seen(workload) => Sight::Seen(workload),
                News::Unreadable(id, why) => Sight::Unreadable(id, why),
                News::Gone(id) => Sight::Gone(id),
                News::Wanted(deployment) => {
                    self.reads.push(Box::pin(read(self.api.clone(), self.of.clone(), (*kind, of.clone()), deployment)));
                    continue;
                }
            });
        }
    }

    /// A listing is complete. The first of Rollouts is said to be with that of Deployments, before which nothing is said of them.
    fn synced(&mut self, listed: &Listed) {
        let (kind, of) = listed;
        self.join(listed, Event::Listed(*kind));
        if *kind == Kind::Rollout {
            self.presence.follow(of.namespace.as_deref());
            if self.progress.waiting.contains(&of.namespace) {
                self.progress.unsaid.insert(of.namespace.clone());
                self.begin_deployments(&of.namespace);
            }
            if self.progress.unsaid.contains(&of.namespace) {
                return;
            }
        }
        self.say_synced(scope(listed));
        if *kind == Kind::Deployment && self.progress.unsaid.remove(&of.namespace) {
            self.say_synced(Scope::of_kind(Kind::Rollout, of.namespace.as_deref()));
        }
    }

    fn say_synced(&mut self, scope: Scope) {
        let all = self.progress.done(&scope);
        self.sights.push_back(Sight::Synced { scope, all });
    }

    /// A scope is not followed, and counts as listed no more.
    fn leave_out(&mut self, listed: &Listed, error: PortError) {
        let scope = scope(listed);
        let all = self.progress.leave_out(&scope);
        self.sights.push_back(Sight::Refused { scope, error, all });
    }

    fn troubled(&mut self, listed: &Listed, error: PortError) {
        let (kind, of) = listed;
        let scope = scope(listed);
        // Roles from before this kind was followed do not name it.
        let has_no_right = error.refused() == Some(Refused::Right);
        let is_overdue = self.progress.is_overdue(&scope, self.watches.tempo.unlisted);
        if *kind == Kind::Deployment || !(has_no_right || is_overdue) {
            return self.sights.push_back(Sight::Trouble { scope, error });
        }
        self.leave_out(listed, error);
        if *kind == Kind::Rollout && self.progress.waiting.contains(&of.namespace) {
            // One that cannot be listed may be there: a look at one workload asks for it.
            if has_no_right {
                self.presence.leave_out(of.namespace.as_deref());
            }
            self.begin_deployments(&of.namespace);
        }
    }
}

/// Reads a Deployment that a Rollout refers to, for as long as that fails.
async fn read(api: Api, of: VersionOf, listed: Listed, id: WorkloadId) -> Read {
    let mut wait = READ_AGAIN;
    loop {
        match super::look(&api, Kind::Deployment, &of, &id).await {
            Ok(found) => return (listed, id, found.map(Box::new)),
            // A watch may show it meanwhile; and what cannot be read is said by that.
            Err(_) => tokio::time::sleep(wait).await,
        }
        wait = wait.saturating_mul(2).min(READ_AGAIN_MAX);
    }
}

fn scope((kind, of): &Listed) -> Scope {
    Scope::of_kind(*kind, of.namespace.as_deref())
}
