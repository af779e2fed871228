//! What Pipelines need from the outside, built from the configuration.

use std::sync::Arc;

use crate::adapters::calendar::WallCalendar;
use crate::adapters::clock::SystemClock;
use crate::adapters::dry_promoting::{DryForge, DryObjects};
use crate::adapters::edge::FreshEdges;
use crate::adapters::forge_http::ForgeHttp;
use crate::adapters::forge_pool::Pooled;
use crate::adapters::kubernetes::kubeconfig::Origin;
use crate::adapters::kubernetes::leaf::Clusters;
use crate::adapters::kubernetes::objects::Pipelines;
use crate::adapters::kubernetes::secrets::KubernetesSecrets;
use crate::adapters::kubernetes::{Clients, Tempo};
use crate::adapters::verdict::HttpVerdicts;
use crate::config::{Config, Enabled, Namespaces};
use domain::pipeline::spec::Object;
use domain::ports::pipeline::{Forge, Objects, Promoting, Secrets};
use domain::ports::{Clock, ClusterView, Ledger};
use forge::Http;
use forge::propose::Forges;

/// Everything outside that Pipelines need; `None` if they are switched off. Nothing is sent yet. `origin`: where kubeconfigs come
/// from, and so whether the other systems may be stand-ins without TLS.
pub fn promoting(
    config: &Config,
    clients: &Clients,
    ledger: Arc<dyn Ledger>,
    cluster: Arc<dyn ClusterView>,
    tempo: Tempo,
    origin: Origin,
) -> Option<Promoting> {
    let required = match config.pipeline.enabled {
        Enabled::Off => return None,
        Enabled::Auto => false,
        Enabled::On => true,
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let secrets: Arc<dyn Secrets> = Arc::new(KubernetesSecrets::new(clients));
    let http = ForgeHttp::new(config.git.private_hosts.iter().cloned());
    let http: Arc<dyn Http> = Arc::new(match origin {
        Origin::Others => http,
        Origin::StandIn => http.with_plain_http(),
    });
    let forge: Arc<dyn Forge> = if config.dry_run {
        Arc::new(DryForge)
    } else {
        Arc::new(Pooled::new(Arc::new(Forges::new(Arc::clone(&http), Arc::clone(&secrets)))))
    };
    let verdicts = HttpVerdicts::new(Arc::clone(&http), Arc::clone(&secrets), Arc::clone(&clock));
    Some(Promoting {
        objects: objects(config, clients, &tempo),
        leaves: Arc::new(Clusters::new(clients.clone(), tempo, origin)),
        forge,
        calendar: Arc::new(WallCalendar::new(clock)),
        verdicts: Arc::new(verdicts),
        edges: Arc::new(FreshEdges::new(ledger, cluster, config.policy(), http, secrets)),
        required,
    })
}

/// The Pipelines of each group, in the order of the groups, and of each namespace where namespaces are listed.
fn objects(config: &Config, clients: &Clients, tempo: &Tempo) -> Vec<Arc<dyn Objects<Object>>> {
    let namespaces: Vec<Option<&str>> = match &config.watch.namespaces {
        Namespaces::Listed(names) => names.iter().map(|name| Some(name.as_str())).collect(),
        Namespaces::All | Namespaces::AllOrOwn => vec![None],
    };
    let places = config.pipeline.groups.iter().flat_map(|group| namespaces.iter().map(move |within| (group, *within)));
    let of = |(group, within): (&String, Option<&str>)| -> Arc<dyn Objects<Object>> {
        let pipelines = Pipelines::new(clients, group, within, tempo.clone());
        let pipelines = if config.pipeline.cross_namespace { pipelines } else { pipelines.confined() };
        if config.dry_run { Arc::new(DryObjects::new(Arc::new(pipelines))) } else { Arc::new(pipelines) }
    };
    places.map(of).collect()
}
