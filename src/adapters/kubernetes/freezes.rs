//! The `PromotionFreeze` objects of this cluster as [`FreezeBook`]: one watch for all Pipelines, for as long as the cluster has the kind.
//!
//! Not for what is in one; that is `crd`'s. Not for what becomes of them where they cannot be read; that is the domain's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{iter, pending, unfold};

use super::crd::freeze;
use super::objects::GROUP;
use apiserver::{Api, Clients, Collection, Look, Name, Reach, Reading, Resource, Tempo, Watches, proofs};
use kernel::watches::horizon::Verdict;
use objects::pipeline::freezes::PromotionFreeze;
use objects::ports::pipeline::FreezeBook;
use purge::ports::{Flow, PortError};

/// A kind that is gone is looked for once more after this part of the time between two looks for one: a minute.
const DOUBTS: u32 = 5;

const KIND: Resource = Resource::new(GROUP, "v1alpha1", "promotionfreezes");

/// All of them, `None` before they are listed, or why they cannot be read.
type Said = Result<Option<Arc<[PromotionFreeze]>>, PortError>;

/// Those of this cluster.
pub struct PromotionFreezes {
    watches: Watches,
    api: Api,
}

impl PromotionFreezes {
    /// Nothing is asked for yet.
    pub fn new(clients: &Clients, tempo: Tempo) -> Self {
        Self { watches: Watches::new(clients.watch.clone(), tempo), api: Api::new(clients.request.clone()) }
    }
}

impl FreezeBook for PromotionFreezes {
    fn watch(&self) -> Flow<Said> {
        let seeker = Seeker {
            watches: self.watches.clone(),
            api: self.api.clone(),
            of: Collection::everywhere(KIND),
            watch: None,
            wait: Duration::ZERO,
            absent: None,
            all: BTreeMap::new(),
            listing: None,
        };
        Box::pin(unfold(seeker, |mut seeker| async move {
            let said = seeker.next().await?;
            Some((said, seeker))
        }))
    }
}

/// For an installation for which those of its cluster do not count (`pipeline.freezes`).
pub struct NoFreezes;

impl FreezeBook for NoFreezes {
    fn watch(&self) -> Flow<Said> {
        Box::pin(iter([Ok(Some(Arc::default()))]).chain(pending()))
    }
}

struct Seeker {
    watches: Watches,
    api: Api,
    of: Collection,
    /// While the kind is served: what is seen, and whether the cluster was set back.
    watch: Option<(Flow<Look<PromotionFreeze>>, Flow<Verdict>)>,
    /// Before the kind is looked for.
    wait: Duration,
    /// The cluster was said not to have the kind; `None` before anything was said.
    absent: Option<bool>,
    all: BTreeMap<String, PromotionFreeze>,
    /// What a listing has shown that is not complete.
    listing: Option<BTreeMap<String, PromotionFreeze>>,
}

impl Seeker {
    async fn next(&mut self) -> Option<Said> {
        loop {
            let Some((looks, proofs)) = &mut self.watch else {
                tokio::time::sleep(self.wait).await;
                if is_absent(&self.api).await {
                    self.wait = self.watches.tempo.unserved;
                    if self.absent.replace(true) != Some(true) {
                        // Where there were some, they went with their kind.
                        self.all.clear();
                        return Some(Ok(Some(Arc::default())));
                    }
                    continue;
                }
                self.begin();
                // That there were none is no answer any more.
                if self.absent.replace(false) == Some(true) {
                    return Some(Ok(None));
                }
                continue;
            };
            let look = tokio::select! {
                look = looks.next() => look?,
                Some(verdict) = proofs.next() => {
                    // A watch that goes on from a version of the future, as after a restore, receives nothing at all.
                    if matches!(verdict, Verdict::CaughtUp | Verdict::SetBack(..)) {
                        self.begin();
                    }
                    continue;
                }
            };
            if matches!(look, Look::Trouble(_)) && is_absent(&self.api).await {
                // An API server that is about to start, or something before it, may say so: what is known holds until it is said twice.
                (self.watch, self.wait, self.listing) = (None, self.watches.tempo.unserved / DOUBTS, None);
            }
            if let Some(said) = self.note(look) {
                return Some(said);
            }
        }
    }

    fn begin(&mut self) {
        let reach = Reach::default();
        let looks = self.watches.watch(self.of.clone(), freeze::read, reach.clone());
        let proofs = proofs(self.api.clone(), vec![self.of.clone()], reach, self.watches.tempo.prove);
        self.watch = Some((looks, proofs));
    }

    /// Takes in what was seen; returns what is known then, if it is whole. What is missing from a listing that is not complete is not
    /// gone.
    fn note(&mut self, look: Look<PromotionFreeze>) -> Option<Said> {
        match look {
            Look::Restarted => {
                self.listing = Some(BTreeMap::new());
                return None;
            }
            Look::Seen(Reading::Read(freeze)) => self.put(freeze),
            Look::Seen(Reading::Unreadable(Name { name, .. }, why)) => {
                self.put(freeze::of_everything(&name, &why.to_string()));
            }
            Look::Gone(Name { name, .. }) => {
                self.all.remove(&name);
                self.listing.iter_mut().for_each(|listing| drop(listing.remove(&name)));
            }
            Look::Synced => self.all = self.listing.take().unwrap_or_else(|| std::mem::take(&mut self.all)),
            Look::Trouble(error) => return Some(Err(error)),
        }
        self.listing.is_none().then(|| Ok(Some(self.all.values().cloned().collect())))
    }

    fn put(&mut self, freeze: PromotionFreeze) {
        let into = self.listing.as_mut().unwrap_or(&mut self.all);
        into.insert(freeze.name.clone(), freeze);
    }
}

/// Whether the API server says that it has no such kind, as every account may ask. A list would be refused where a right is missing, also
/// for a kind that is not there.
async fn is_absent(api: &Api) -> bool {
    let kinds = api.kinds(&KIND.group, &KIND.version).await;
    kinds.is_ok_and(|kinds| kinds.is_none_or(|all| all.iter().all(|one| *one.plural != *KIND.plural)))
}
