//! The watch of a kind that a cluster may lack, Argo Rollouts' or one that is declared: for as long as it has it, and it is looked for
//! again where it does not.
//!
//! Not for which of a Rollout and a Deployment of one name counts; that is [`purge::workloads::joining`]'.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::unfold;
use kube::api::ListParams;

use super::decode;
use apiserver::{Api, Collection, Look, Reach, Watches};
use kernel::id::{Kind, WorkloadId};
use kernel::names::image::VersionOf;
use purge::ports::Flow;
use purge::workloads::joining::Event;
use purge::workloads::workload::Workload;

/// What a watch of one kind says; `None`: the cluster does not have the kind.
pub(super) type Said = Option<Look<Workload>>;

/// Watches the objects of one scope for ever. `again`: how often the kind is looked for.
pub(super) fn watch(watches: Watches, api: Api, kind: Kind, of: Collection, version: VersionOf) -> Flow<Said> {
    let again = watches.tempo.unserved;
    let seeker = Seeker { watches, api, kind, of, version, looks: None, wait: Duration::ZERO, again };
    Box::pin(unfold(seeker, |mut seeker| async move {
        let said = seeker.next().await?;
        Some((said, seeker))
    }))
}

struct Seeker {
    watches: Watches,
    api: Api,
    kind: Kind,
    of: Collection,
    version: VersionOf,
    /// While the kind is served.
    looks: Option<Flow<Look<Workload>>>,
    /// Before it is looked for.
    wait: Duration,
    again: Duration,
}

impl Seeker {
    async fn next(&mut self) -> Option<Said> {
        loop {
            let Some(looks) = &mut self.looks else {
                tokio::time::sleep(self.wait).await;
                if is_unserved(&self.api, &self.of).await {
                    match std::mem::replace(&mut self.wait, self.again) {
                        Duration::ZERO => return Some(None),
                        // It was said before.
                        _ => continue,
                    }
                }
                let decode = decode::workload(self.kind, &self.version);
                self.looks = Some(self.watches.watch(self.of.clone(), decode, Reach::default()));
                continue;
            };
            let look = looks.next().await?;
            if matches!(look, Look::Trouble(_)) && is_unserved(&self.api, &self.of).await {
                // It was removed with all that it had.
                (self.looks, self.wait) = (None, self.again);
                return Some(None);
            }
            return Some(Some(look));
        }
    }
}

/// Whether the API server knows no such kind. Everything else that fails, the watch says.
pub(super) async fn is_unserved(api: &Api, of: &Collection) -> bool {
    let one = ListParams { limit: Some(1), ..ListParams::default() };
    api.list(of, &one).await.is_err_and(|failed| failed.status() == Some(404))
}

/// In which scopes Rollouts are followed, as far as their watch knows; a scope is a namespace, or all of them. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Presence(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    scopes: BTreeMap<Option<String>, bool>,
    /// The Rollouts that were seen, and are not known to be gone, and the Deployments that they refer to.
    names: BTreeMap<WorkloadId, Option<WorkloadId>>,
}

impl Presence {
    /// Rollouts of this scope were listed.
    pub(super) fn follow(&self, scope: Option<&str>) {
        self.known().scopes.insert(scope.map(str::to_owned), true);
    }

    /// Rollouts of this scope do not exist, or we have no right to them.
    pub(super) fn leave_out(&self, scope: Option<&str>) {
        self.known().scopes.insert(scope.map(str::to_owned), false);
    }

    /// Whether Rollouts of a namespace are followed; `None` before that is known.
    pub(super) fn is_followed(&self, namespace: &str) -> Option<bool> {
        let scopes = &self.known().scopes;
        scopes.get(&None).or_else(|| scopes.get(&Some(namespace.to_owned()))).copied()
    }

    /// What a sight says of one Rollout.
    pub(super) fn note(&self, event: &Event) {
        let names = &mut self.known().names;
        match event {
            Event::Seen(workload) if workload.object == Kind::Rollout => {
                let of = workload.template_of.as_ref().map(|of| of.deployment.clone());
                names.insert(workload.id.clone(), of);
            }
            Event::Gone(Kind::Rollout, id) => drop(names.remove(id)),
            Event::NoRollouts => names.clear(),
            _ => {}
        }
    }

    /// Whether there was a Rollout of this name when it was last looked at.
    pub(super) fn knows(&self, id: &WorkloadId) -> bool {
        self.known().names.contains_key(id)
    }

    /// The Rollouts of another name that referred to a Deployment when they were last looked at.
    pub(super) fn referring(&self, deployment: &WorkloadId) -> Vec<WorkloadId> {
        let known = self.known();
        let referring = known.names.iter().filter(|(id, of)| of.as_ref() == Some(deployment) && *id != deployment);
        referring.map(|(id, _)| id.clone()).collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
