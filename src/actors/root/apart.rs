//! What lives apart from the singletons: what Pipelines and Repos need, on a thread of its own. It has no budget, because nothing else
//! depends on it, and it is rebuilt as often as we look.

use actix::{Addr, Arbiter};
use futures_util::future::{OptionFuture, join};

use super::OBSERVE_WITHIN;
use super::parent::Parent;
use crate::actors::directory::{Directory, Outbox, PeersRestarted};
use crate::actors::message::Observe;
use crate::actors::observation::Observation;
use crate::actors::ports::Ports;
use crate::actors::send_even_if_full;
use crate::actors::supervisor::Supervisor;
use crate::actors::webhook::Webhook;
use objects::ports::pipeline::Promoting;
use objects::ports::repo::Running;

/// Both parents, and their thread if they have one. The thread ends when this is dropped.
pub(super) struct Apart {
    promoter: Option<Addr<Supervisor<Promoting>>>,
    runner: Option<Addr<Supervisor<Running>>>,
    thread: Option<Arbiter>,
}

impl Apart {
    /// `None` where Pipelines and Repos are switched off.
    pub fn new(parent: &Parent, outbox: &Outbox) -> Option<Self> {
        let Ports { promoting, running, .. } = &parent.env.ports;
        if promoting.is_none() && running.is_none() {
            return None;
        }
        let thread = parent.env.settings.own_thread.then(Arbiter::new);
        let mut apart = Self { promoter: None, runner: None, thread };
        apart.promoter = apart.promoter(parent, outbox.clone());
        apart.runner = apart.runner(parent, outbox.clone());
        Some(apart)
    }

    fn promoter(&self, parent: &Parent, outbox: Outbox) -> Option<Addr<Supervisor<Promoting>>> {
        let (env, listener) = (parent.env.clone(), parent.stop_signal.listener());
        let promoting = env.ports.promoting.clone()?;
        Some(Supervisor::launch(env, promoting, outbox, listener, self.thread.as_ref()))
    }

    fn runner(&self, parent: &Parent, outbox: Outbox) -> Option<Addr<Supervisor<Running>>> {
        let (env, listener) = (parent.env.clone(), parent.stop_signal.listener());
        let running = env.ports.running.clone()?;
        Some(Supervisor::launch(env, running, outbox, listener, self.thread.as_ref()))
    }

    /// Builds what is dead anew.
    pub fn revive(&mut self, parent: &Parent, outbox: impl FnOnce() -> Outbox) {
        let dead = [
            self.promoter.as_ref().filter(|promoter| !promoter.connected()).map(|_| "promoter"),
            self.runner.as_ref().filter(|runner| !runner.connected()).map(|_| "runner"),
        ];
        if dead == [None, None] {
            return;
        }
        for actor in dead.into_iter().flatten() {
            tracing::error!(actor, "an actor crashed; it is rebuilt");
            parent.env.metrics.restart(actor);
        }
        let outbox = outbox();
        if dead[0].is_some() {
            self.promoter = self.promoter(parent, outbox.clone());
        }
        if dead[1].is_some() {
            self.runner = self.runner(parent, outbox);
        }
    }

    /// Tells them where their peers are.
    pub fn direct(&self, directory: &Directory) {
        if let Some(promoter) = &self.promoter {
            send_even_if_full(&promoter.clone().recipient(), PeersRestarted(directory.clone()));
        }
        if let Some(runner) = &self.runner {
            send_even_if_full(&runner.clone().recipient(), PeersRestarted(directory.clone()));
        }
    }

    /// What they show; nothing of one that does not answer.
    pub fn observe(&self) -> impl Future<Output = Observation> + use<> {
        let promoter = self.promoter.as_ref().map(|promoter| promoter.send(Observe).timeout(OBSERVE_WITHIN));
        let runner = self.runner.as_ref().map(|runner| runner.send(Observe).timeout(OBSERVE_WITHIN));
        async move {
            let mut all = Observation::default();
            let (promoter, runner) = join(OptionFuture::from(promoter), OptionFuture::from(runner)).await;
            [promoter, runner].into_iter().flatten().flatten().for_each(|seen| all.absorb(seen));
            all
        }
    }
}

/// Where notices go.
pub(super) fn outbox(webhook: &Addr<Webhook>) -> Outbox {
    Outbox { tell: webhook.clone().recipient(), resend: webhook.clone().recipient() }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            thread.stop();
        }
    }
}
