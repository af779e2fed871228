//! What lives apart from the singletons: what Pipelines need, on a thread of its own. It has no budget, because nothing else depends
//! on it, and it is rebuilt as often as we look.

use actix::{Addr, Arbiter, Recipient};

use super::parent::Parent;
use super::tree::OBSERVE_WITHIN;
use crate::actors::directory::{Directory, PeersRestarted};
use crate::actors::message::{Observe, TellNotice};
use crate::actors::observation::Observation;
use crate::actors::promoting::Promoter;
use crate::actors::promoting::message::insist;

/// The promoter, and its thread if it has one. The thread ends when this is dropped.
pub(super) struct Apart {
    promoter: Addr<Promoter>,
    thread: Option<Arbiter>,
}

impl Apart {
    /// `None` where Pipelines are switched off.
    pub fn new(parent: &Parent, tell_notice: Recipient<TellNotice>) -> Option<Self> {
        let promoting = parent.env.ports.promoting.clone()?;
        let thread = parent.env.settings.own_thread.then(Arbiter::new);
        let promoter = Promoter::launch(
            parent.env.clone(),
            promoting,
            tell_notice,
            parent.stop_signal.listener(),
            thread.as_ref(),
        );
        Some(Self { promoter, thread })
    }

    /// Builds it anew if it is dead.
    pub fn revive(&mut self, parent: &Parent, tell_notice: impl FnOnce() -> Recipient<TellNotice>) {
        if self.promoter.connected() {
            return;
        }
        tracing::error!(actor = "promoter", "an actor crashed; it is rebuilt");
        parent.env.metrics.restart("promoter");
        if let Some(again) = Self::new(parent, tell_notice()) {
            *self = again;
        }
    }

    /// Tells it where its peers are.
    pub fn direct(&self, directory: Directory) {
        insist(&self.promoter.clone().recipient(), PeersRestarted(directory));
    }

    /// What it shows; nothing if it does not answer.
    pub fn observe(&self) -> impl Future<Output = Observation> + use<> {
        let seen = self.promoter.send(Observe).timeout(OBSERVE_WITHIN);
        async move { seen.await.unwrap_or_default() }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            thread.stop();
        }
    }
}
