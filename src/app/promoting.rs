//! What Pipelines need from the outside, built from the configuration.

use std::sync::Arc;

use crate::adapters::calendar::WallCalendar;
use crate::adapters::dry_objects::{DryForge, DryObjects};
use crate::adapters::edge::FreshEdges;
use crate::adapters::heads::Forges;
use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::freezes::{NoFreezes, PromotionFreezes};
use crate::adapters::kubernetes::leaf::Clusters;
use crate::adapters::kubernetes::objects::Pipelines;
use crate::adapters::kubernetes::secrets::{KubernetesSecrets, SecretChanges};
use crate::adapters::kubernetes::{Clients, Scope, Tempo};
use crate::app::others::Others;
use crate::app::running::{histories, installation};
use crate::config::{self, Config, Enabled};
use crate::http::hooks::{Hooks, Key, Network, SHOWN_WITHIN, Trust};
use crate::telemetry::Metrics;
use objects::pipeline::spec::Object;
use objects::ports::pipeline::{Forge, Promoting};
use objects::ports::{KindPorts, Objects};
use purge::ports::{Clock, ClusterView, Ledger};

/// What they share with the rest of the program.
pub(super) struct Beside {
    /// Where it is written which edges are purged.
    pub ledger: Arc<dyn Ledger>,
    pub cluster: Arc<dyn ClusterView>,
}

/// Everything outside that Pipelines need; `None` if they are switched off. Nothing is sent yet.
pub(super) fn promoting(
    config: &Config,
    clients: &Clients,
    scope: &Scope,
    beside: Beside,
    others: &Others,
    tempo: Tempo,
) -> Option<Promoting> {
    let Beside { ledger, cluster } = beside;
    let required = match config.pipeline.enabled {
        Enabled::Off => return None,
        Enabled::Auto => false,
        Enabled::On => true,
    };
    let Others { clock, http, secrets, keeper, origin, .. } = others;
    let forge: Arc<dyn Forge> = if config.dry_run {
        Arc::new(DryForge)
    } else {
        Arc::new(Forges::new(http.clone(), secrets.clone(), keeper.clone()))
    };
    Some(Promoting {
        kind: KindPorts {
            objects: objects(config, clients, scope, &tempo),
            calendar: Arc::new(WallCalendar::new(clock.clone())),
            verdicts: others.verdicts(),
            histories: histories(config, clients),
            required,
        },
        freezes: if config.pipeline.freezes {
            Arc::new(PromotionFreezes::new(clients, tempo.clone()))
        } else {
            Arc::new(NoFreezes)
        },
        renewals: Arc::new(SecretChanges::new(clients, tempo.clone())),
        leaves: Arc::new(Clusters::new(clients.clone(), tempo, *origin)),
        forge,
        edges: Arc::new(FreshEdges::new(ledger, cluster, config.policy(), http.clone(), secrets.clone())),
    })
}

/// Pipelines, as a person comes to them.
pub fn desk(config: &Config, clients: &Clients) -> Desk {
    Desk::new(clients, &config.pipeline.groups, !config.pipeline.cross_namespace)
}

/// What the endpoints for other programs need; `None` if there are none, or nothing may be written.
pub(super) fn hooks(
    config: &Config,
    clients: &Clients,
    scope: &Scope,
    clock: &Arc<dyn Clock>,
    metrics: &Arc<Metrics>,
) -> Option<Hooks> {
    let config::Hooks { listen, keys, allow_unsigned, empty_approvals, trusted_proxies } = &config.hooks;
    listen.as_ref()?;
    if config.dry_run || (config.pipeline.enabled == Enabled::Off && config.repo.enabled == Enabled::Off) {
        tracing::info!("hooks.listen has no effect in a dry run, nor where pipeline.enabled and repo.enabled are off");
        return None;
    }
    let trust = Trust {
        keys: keys.iter().filter_map(|key| Key::of(key.expose().as_bytes())).collect(),
        allow_unsigned: *allow_unsigned,
        empty_approvals: *empty_approvals,
        proxies: trusted_proxies.iter().map(|(address, bits)| Network { address: *address, bits: *bits }).collect(),
        namespaces: match scope {
            Scope::All => None,
            Scope::Namespaces(names) => Some(names.clone()),
        },
    };
    Some(Hooks {
        marks: Arc::new(Desk::new(clients, &config.pipeline.groups, !config.pipeline.cross_namespace)),
        repos: Arc::new(Desk::of_repos(clients, installation(config, clients))),
        secrets: Arc::new(KubernetesSecrets::new(clients, config.secrets.hosts.clone())),
        clock: clock.clone(),
        metrics: metrics.clone(),
        trust,
        shown_within: SHOWN_WITHIN,
    })
}

/// The Pipelines of each group, in the order of the groups, and of each namespace where namespaces are listed.
fn objects(config: &Config, clients: &Clients, scope: &Scope, tempo: &Tempo) -> Vec<Arc<dyn Objects<Object>>> {
    let namespaces: Vec<Option<&str>> = match scope {
        Scope::Namespaces(names) => names.iter().map(|name| Some(name.as_str())).collect(),
        Scope::All => vec![None],
    };
    let places = config.pipeline.groups.iter().flat_map(|group| namespaces.iter().map(move |within| (group, *within)));
    let of = |(group, within): (&String, Option<&str>)| -> Arc<dyn Objects<Object>> {
        let pipelines = Pipelines::new(clients, group, within, tempo.clone());
        let pipelines = if config.pipeline.cross_namespace { pipelines } else { pipelines.confined() };
        if config.dry_run { Arc::new(DryObjects::new(Arc::new(pipelines))) } else { Arc::new(pipelines) }
    };
    places.map(of).collect()
}
