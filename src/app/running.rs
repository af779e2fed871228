//! What Repos need from the outside, built from the configuration.

use std::sync::Arc;

use crate::adapters::calendar::WallCalendar;
use crate::adapters::dry_objects::DryObjects;
use crate::adapters::dry_running::{DryHolds, DryJobs, DryReports};
use crate::adapters::kubernetes::crd::repo::Installation;
use crate::adapters::kubernetes::finalizer::KubernetesHolds;
use crate::adapters::kubernetes::histories::{KubernetesHistories, NoHistories};
use crate::adapters::kubernetes::jobs::KubernetesJobs;
use crate::adapters::kubernetes::leaf::Clusters;
use crate::adapters::kubernetes::objects::Repos;
use crate::adapters::kubernetes::{Clients, Scope, Tempo};
use crate::adapters::needs::Needed;
use crate::app::others::Others;
use crate::config::{Config, Enabled};
use objects::ports::repo::{Holds, Jobs, Running};
use objects::ports::{Histories, KindPorts, Objects};
use objects::repo::spec::Object;

/// Everything outside that Repos need; `None` if they are switched off. Nothing is sent yet.
pub(super) fn running(
    config: &Config,
    clients: &Clients,
    scope: &Scope,
    others: &Others,
    tempo: &Tempo,
) -> Option<Running> {
    let required = match config.repo.enabled {
        Enabled::Off => return None,
        Enabled::Auto => false,
        Enabled::On => true,
    };
    let jobs: Arc<dyn Jobs> = if config.dry_run {
        Arc::new(DryJobs)
    } else {
        Arc::new(KubernetesJobs::new(clients, tempo.clone(), others.steps(config)))
    };
    let holds: Arc<dyn Holds> =
        if config.dry_run { Arc::new(DryHolds) } else { Arc::new(KubernetesHolds::new(clients)) };
    Some(Running {
        kind: KindPorts {
            objects: objects(config, clients, scope, tempo),
            calendar: Arc::new(WallCalendar::new(others.clock.clone())),
            verdicts: others.verdicts(),
            histories: histories(config, clients),
            required,
        },
        heads: others.heads(),
        reports: if config.dry_run { Arc::new(DryReports) } else { others.reports() },
        jobs,
        holds,
        needs: Arc::new(Needed::new(Arc::new(Clusters::new(clients.clone(), tempo.clone(), others.origin)))),
    })
}

/// The Repos of this cluster, of each namespace where namespaces are listed.
fn objects(config: &Config, clients: &Clients, scope: &Scope, tempo: &Tempo) -> Vec<Arc<dyn Objects<Object>>> {
    let namespaces: Vec<Option<&str>> = match scope {
        Scope::Namespaces(names) => names.iter().map(|name| Some(name.as_str())).collect(),
        Scope::All => vec![None],
    };
    let of = |within: Option<&str>| -> Arc<dyn Objects<Object>> {
        let installation = installation(config, clients);
        let repos = Repos::new(clients, within, tempo.clone(), installation);
        if config.dry_run { Arc::new(DryObjects::new(Arc::new(repos))) } else { Arc::new(repos) }
    };
    namespaces.into_iter().map(of).collect()
}

/// Where the histories of Pipelines and Repos are.
pub(super) fn histories(config: &Config, clients: &Clients) -> Arc<dyn Histories> {
    if config.dry_run { Arc::new(NoHistories) } else { Arc::new(KubernetesHistories::new(clients)) }
}

/// What this installation adds to each Repo.
pub(super) fn installation(config: &Config, clients: &Clients) -> Installation {
    // Outside a pod, the ledger is what is known of where allclear is installed. The namespace of a kubeconfig's context is a person's.
    let namespace = clients.pod_namespace.clone().or_else(|| config.ledger.namespace.clone());
    Installation {
        terraform_image: config.repo.terraform_image.clone(),
        namespace,
        confined: !config.pipeline.cross_namespace,
    }
}
