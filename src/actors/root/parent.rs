//! How each singleton is started: who its parent is, and where the notice of its death goes.

use actix::{Actor, Addr};

use super::Root;
use crate::actors::Env;
use crate::actors::cluster_group::ClusterGroupActor;
use crate::actors::deployment_watcher::DeploymentWatcher;
use crate::actors::directory::Directory;
use crate::actors::invalidator::Invalidator;
use crate::actors::lifecycle::{Obituary, StopSignal};
use crate::actors::message::Who;
use crate::actors::webhook::Webhook;
use kernel::id::Origin;
use kernel::replica::duty::Singleton;
use kernel::watches::lives::Lives;
use purge::agreement::roster::Pin;
use purge::ports::LedgerContents;

/// What every singleton is started with.
pub(super) struct Parent {
    pub(super) env: Env,
    pub(super) root: Addr<Root>,
    pub(super) stop_signal: StopSignal,
}

impl Parent {
    pub(super) fn new(env: Env, root: Addr<Root>) -> Self {
        Self { env, root, stop_signal: StopSignal::default() }
    }

    fn obituary(&self, who: Singleton) -> Obituary {
        Obituary::new(self.root.clone().recipient(), Who::Singleton(who))
    }

    pub(super) fn group(&self, origin: &Origin, pin: Option<Pin>) -> Addr<ClusterGroupActor> {
        let (watcher, root) = (self.root.clone().recipient(), self.root.clone().recipient());
        let (env, obituary) = (self.env.clone(), self.obituary(Singleton::Group));
        ClusterGroupActor::new(env, origin.clone(), pin, watcher, root, self.stop_signal.listener(), obituary).start()
    }

    pub(super) fn invalidator(&self) -> Addr<Invalidator> {
        let obituary = self.obituary(Singleton::Invalidator);
        Invalidator::new(self.env.clone(), self.stop_signal.listener(), obituary).start()
    }

    pub(super) fn webhook(&self) -> Addr<Webhook> {
        let obituary = self.obituary(Singleton::Webhook);
        Webhook::new(self.env.clone(), self.stop_signal.listener(), obituary).start()
    }

    pub(super) fn watcher(
        &self,
        directory: Directory,
        ledgered: LedgerContents,
        lives: Lives,
    ) -> Addr<DeploymentWatcher> {
        let (env, obituary) = (self.env.clone(), self.obituary(Singleton::Watcher));
        DeploymentWatcher::new(env, directory, ledgered, lives, self.stop_signal.listener(), obituary).start()
    }
}
