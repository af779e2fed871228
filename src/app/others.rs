//! The way to git hosts, forges and other systems, which Pipelines and Repos share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::adapters::forge_http::ForgeHttp;
use crate::adapters::heads::{ForgeReports, Keeper, heads};
use crate::adapters::kubernetes::Clients;
use crate::adapters::kubernetes::jobs::Ours;
use crate::adapters::kubernetes::kubeconfig::Origin;
use crate::adapters::kubernetes::secrets::KubernetesSecrets;
use crate::adapters::verdict::HttpVerdicts;
use crate::config::Config;
use objects::ports::repo::{Heads, Reports};
use objects::ports::{Secrets, Verdicts};
use purge::ports::Clock;

/// What it takes to ask others.
pub(super) struct Others {
    pub clock: Arc<dyn Clock>,
    /// The guarded way out.
    pub http: Arc<ForgeHttp>,
    /// What they want to know of us.
    pub secrets: Arc<dyn Secrets>,
    /// The order of calls to git hosts and forges.
    pub keeper: Arc<Keeper>,
    /// The origin of the kubeconfigs of other clusters.
    pub origin: Origin,
    stand_ins: Vec<String>,
}

impl Others {
    /// Nothing is sent yet. `stand_ins`: see [`super::Overrides`].
    pub fn new(
        config: &Config,
        clients: &Clients,
        clock: Arc<dyn Clock>,
        stand_ins: Option<BTreeMap<String, SocketAddr>>,
    ) -> Self {
        let http = ForgeHttp::new(config.git.private_hosts.iter().cloned());
        let named = stand_ins.iter().flatten().map(|(host, address)| format!("{host}={address}")).collect();
        let (origin, http) = match stand_ins {
            None => (Origin::Others, http),
            Some(stand_ins) => (Origin::StandIn, http.with_stand_ins(stand_ins)),
        };
        let secrets = Arc::new(KubernetesSecrets::new(clients, config.secrets.hosts.clone()));
        let keeper = Keeper::new(clock.clone());
        Self { clock, http: Arc::new(http), secrets, keeper, origin, stand_ins: named }
    }

    /// What the steps inside Jobs need, which have the same way out.
    pub fn steps(&self, config: &Config) -> Ours {
        let private_hosts = config.git.private_hosts.iter().cloned().collect();
        Ours { image: config.repo.step_image.clone(), private_hosts, stand_ins: self.stand_ins.clone() }
    }

    /// Those that are asked before something starts.
    pub fn verdicts(&self) -> Arc<dyn Verdicts> {
        Arc::new(HttpVerdicts::new(self.http.clone(), self.secrets.clone(), self.clock.clone()))
    }

    /// Forges, for what is said of runs.
    pub fn reports(&self) -> Arc<dyn Reports> {
        Arc::new(ForgeReports::new(self.http.clone(), self.secrets.clone(), self.keeper.clone()))
    }

    /// Git hosts, for what their refs point to.
    pub fn heads(&self) -> Arc<dyn Heads> {
        Arc::new(heads(self.http.clone(), self.secrets.clone(), self.keeper.clone()))
    }
}
