//! The singleton actors of an open ledger: their addresses, how they are rebuilt, shown and ended.

use std::time::Duration;

use actix::Addr;
use futures_util::future::OptionFuture;

use super::apart::{Apart, outbox};
use super::parent::Parent;
use super::{OBSERVE_WITHIN, Root};
use crate::actors::Env;
use crate::actors::cluster_group::ClusterGroupActor;
use crate::actors::deployment_watcher::DeploymentWatcher;
use crate::actors::directory::{Directory, Edge, PeersRestarted};
use crate::actors::invalidator::Invalidator;
use crate::actors::message::{Drain, Observe, Wanted};
use crate::actors::observation::Observation;
use crate::actors::webhook::Webhook;
use kernel::id::Origin;
use kernel::machine::Timestamp;
use kernel::replica::duty::Singleton;
use kernel::watches::lives::Lives;
use purge::agreement::roster::Pin;
use purge::ports::LedgerContents;

/// How long writes under way may take at the end (fault K16: ledger flushed within 2 s, exit within 5 s).
pub(super) const DRAIN_WITHIN: Duration = Duration::from_secs(2);

pub(super) struct Tree {
    parent: Parent,
    origin: Origin,
    /// The members of the group, as the ledger had them when it was opened.
    pin: Option<Pin>,
    group: Addr<ClusterGroupActor>,
    invalidator: Addr<Invalidator>,
    webhook: Addr<Webhook>,
    /// `None` between its death and the ledger's next answer.
    pub(super) watcher: Option<Addr<DeploymentWatcher>>,
    /// `None` where Pipelines are switched off.
    apart: Option<Apart>,
    /// The watcher's mailbox was full when a singleton was rebuilt: the new directory must be sent again.
    directory_due: bool,
}

impl Tree {
    /// All singletons, built from an open ledger.
    pub fn new(env: Env, root: Addr<Root>, ledgered: LedgerContents) -> Self {
        let parent = Parent::new(env, root);
        let webhook = parent.webhook();
        let mut tree = Self {
            group: parent.group(&ledgered.origin, ledgered.pin.clone()),
            invalidator: parent.invalidator(),
            apart: Apart::new(&parent, &outbox(&webhook)),
            webhook,
            watcher: None,
            directory_due: false,
            origin: ledgered.origin.clone(),
            pin: None,
            parent,
        };
        let lives = Lives::begin(ledgered.life.clone(), tree.now());
        lives.words().iter().for_each(|words| tracing::warn!("{words}"));
        tree.watch(ledgered, lives);
        tree
    }

    /// Starts a watcher anew, with what the ledger holds now.
    pub fn watch_again(&mut self, ledgered: LedgerContents) {
        let lives = Lives::go_on(ledgered.life.clone(), self.now());
        self.watch(ledgered, lives);
    }

    fn watch(&mut self, ledgered: LedgerContents, lives: Lives) {
        self.pin.clone_from(&ledgered.pin);
        self.directory_due = false;
        self.watcher = Some(self.parent.watcher(self.directory(), ledgered, lives));
    }

    fn now(&self) -> Timestamp {
        self.parent.env.ports.clock.now()
    }

    fn directory(&self) -> Directory {
        Directory {
            publish: self.group.clone().recipient(),
            show: self.group.clone().recipient(),
            absent: self.group.clone().recipient(),
            follows: self.group.clone().recipient(),
            forget: self.group.clone().recipient(),
            match_plan: self.invalidator.clone().recipient(),
            place_order: self.invalidator.clone().recipient(),
            retry: self.invalidator.clone().recipient(),
            edge: Edge { ask: self.invalidator.clone().recipient(), leave: self.invalidator.clone().recipient() },
            outbox: outbox(&self.webhook),
            ledger_lost: self.parent.root.clone().recipient(),
        }
    }

    pub fn is_dead(&self, who: Singleton) -> bool {
        match who {
            Singleton::Watcher => self.watcher.as_ref().is_some_and(|watcher| !watcher.connected()),
            Singleton::Group => !self.group.connected(),
            Singleton::Invalidator => !self.invalidator.connected(),
            Singleton::Webhook => !self.webhook.connected(),
        }
    }

    /// Builds a singleton anew without any memory, and informs the actors that had asked the old one. A watcher is only
    /// removed.
    pub fn rebuild(&mut self, who: Singleton) {
        match who {
            Singleton::Watcher => self.watcher = None,
            Singleton::Group => self.group = self.parent.group(&self.origin, self.pin.clone()),
            Singleton::Invalidator => self.invalidator = self.parent.invalidator(),
            Singleton::Webhook => self.webhook = self.parent.webhook(),
        }
        self.directory_due = true;
        self.send_directory();
        if let Some(apart) = &self.apart {
            apart.direct(&self.directory());
        }
    }

    /// Builds what Pipelines need anew if it is dead.
    pub fn revive_apart(&mut self) {
        if let Some(apart) = &mut self.apart {
            apart.revive(&self.parent, || outbox(&self.webhook));
        }
    }

    /// Sends the watcher the directory, if it may not have the newest. A watcher that does not exist yet is built with
    /// it.
    pub fn send_directory(&mut self) {
        let Some(watcher) = self.watcher.as_ref().filter(|_| self.directory_due) else { return };
        self.directory_due = watcher.try_send(PeersRestarted(self.directory())).is_err();
        if self.directory_due {
            self.parent.env.metrics.overflow(Singleton::Watcher.name());
        }
    }

    /// Passes it to the watcher. Without one, or if its mailbox is full, the broker asks again in a few seconds.
    pub fn pass(&self, wanted: Wanted) {
        if self.watcher.as_ref().is_some_and(|watcher| watcher.try_send(wanted).is_err()) {
            self.parent.env.metrics.overflow(Singleton::Watcher.name());
        }
    }

    /// What all singletons show.
    pub fn observe(&self) -> impl Future<Output = Observation> + use<> {
        let group = self.group.send(Observe).timeout(OBSERVE_WITHIN);
        let invalidator = self.invalidator.send(Observe).timeout(OBSERVE_WITHIN);
        let webhook = self.webhook.send(Observe).timeout(OBSERVE_WITHIN);
        let watcher = self.watcher.as_ref().map(|watcher| watcher.send(Observe).timeout(OBSERVE_WITHIN));
        let watcher = async move {
            match watcher {
                Some(watcher) => watcher.await,
                None => Err(actix::MailboxError::Closed),
            }
        };
        let apart = OptionFuture::from(self.apart.as_ref().map(Apart::observe));
        async move {
            let (watcher, group, invalidator, webhook, apart) =
                tokio::join!(watcher, group, invalidator, webhook, apart);
            let mut all = apart.unwrap_or_default();
            for (who, seen) in [
                (Singleton::Watcher, watcher),
                (Singleton::Group, group),
                (Singleton::Invalidator, invalidator),
                (Singleton::Webhook, webhook),
            ] {
                match seen {
                    Ok(seen) => all.absorb(seen),
                    Err(_) => all.troubles.push(format!("{} does not answer", who.name())),
                }
            }
            all
        }
    }

    /// Ends all in order: no new work, and the rollouts finish their writes, or are cut off after [`DRAIN_WITHIN`]. The other
    /// actors have nothing to finish: the next life resumes their work.
    pub async fn end(self) {
        if let Some(watcher) = &self.watcher {
            let _ = watcher.send(Drain).timeout(DRAIN_WITHIN).await;
        }
        self.abandon().await;
    }

    /// Ends all at once, and waits until the last actor is gone.
    pub fn abandon(self) -> impl Future<Output = ()> {
        let Self { parent, apart, .. } = self;
        async move {
            parent.stop_signal.end().await;
            drop(apart);
        }
    }
}
