//! The names that a cluster, a configuration and a kubeconfig have for a place of the command line. What cannot be had is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;

use super::Candidate;
use super::place::{Place, Source};
use crate::adapters::kubernetes::names::{Named, ObjectName, contexts, each};
use crate::adapters::kubernetes::objects::{GROUP, PipelineKind};
use crate::adapters::kubernetes::{self, Clients};
use crate::app;
use crate::cli::command_kind::named_in;
use crate::config::{Config, Inputs, load, read_file};
use kernel::id::Kind;
use kernel::refusal::Refused;

/// Names remembered at most: more than are shown, so that it is known that there are more.
const FOUND_MAX: usize = 10_000;

/// One search, which other threads may look into at any time.
pub(super) struct Finding {
    /// What is searched for.
    pub place: Place,
    /// As the command would have it.
    pub environment: BTreeMap<String, String>,
    /// What was found so far.
    pub found: Arc<Mutex<BTreeSet<Candidate>>>,
}

impl Finding {
    /// Finds all of it. False if that is known to be a part.
    pub async fn find(&self) -> bool {
        match self.place.source {
            Some(Source::Namespaces) => self.namespaces("").await,
            Some(Source::Workloads) => self.workloads().await,
            Some(Source::Pipelines) => {
                let groups = self.config().map_or_else(|| vec![GROUP.to_owned()], |config| config.pipeline.groups);
                self.objects(groups.iter().map(|group| Named::Pipelines(group)).collect(), "pipeline/").await
            }
            Some(Source::Repos) => self.objects(vec![Named::Repos(GROUP)], "repo/").await,
            Some(Source::Environments) => self.environments().await.is_some(),
            Some(Source::Members) => self.members().await.is_some(),
            Some(Source::Receivers) => self.receivers().await.is_some(),
            Some(Source::Contexts) => {
                let path = self.given("kubeconfig").map(PathBuf::from);
                contexts(path.as_deref()).into_iter().for_each(|name| self.put(name, ""));
                true
            }
            Some(Source::Files) | None => true,
        }
    }

    fn given(&self, argument: &str) -> Option<&str> {
        self.place.given.get(argument).map(String::as_str)
    }

    fn put(&self, word: String, about: &str) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if word.starts_with(&self.place.word) && found.len() < FOUND_MAX {
            found.insert(Candidate { word, about: about.to_owned() });
        }
    }

    async fn clients(&self) -> Option<Clients> {
        kubernetes::connect(&self.options()).await.ok()
    }

    fn options(&self) -> kubernetes::Options {
        kubernetes::Options {
            kubeconfig: self.given("kubeconfig").map(PathBuf::from),
            context: self.given("context").map(str::to_owned),
            unattended: true,
        }
    }

    fn config(&self) -> Option<Config> {
        let ledger = self.given("ledger_namespace").map(|name| ("ledger.namespace".to_owned(), name.to_owned()));
        let inputs = Inputs {
            file: self.given("config").map(PathBuf::from),
            environment: self.environment.clone(),
            flags: ledger.into_iter().collect(),
            service_account_namespace: None,
            read: &read_file,
        };
        load(&inputs).ok().map(|loaded| loaded.config)
    }

    async fn namespaces(&self, end: &str) -> bool {
        let Some(clients) = self.clients().await else { return true };
        self.named_namespaces(&clients, end).await
    }

    async fn named_namespaces(&self, clients: &Clients, end: &str) -> bool {
        let keep = |ObjectName { name, .. }| self.put(format!("{name}{end}"), "namespace");
        each(clients, Named::Namespaces, keep).await.is_ok()
    }

    /// `shop/web` where a namespace was typed; otherwise the workloads of the namespace that is meant without one, and namespaces.
    async fn workloads(&self) -> bool {
        let Some(clients) = self.clients().await else { return true };
        let of_kind = async |kind: Kind, namespace: &str, prefix: &str| {
            let keep = |ObjectName { name, .. }| self.put(format!("{prefix}{name}"), "");
            match each(&clients, Named::Workloads(kind, namespace), keep).await {
                // A cluster without the kind has no names of it.
                Err(failed) => failed.refused() == Some(Refused::Request),
                Ok(()) => true,
            }
        };
        // A name without a kind may be of any.
        let of = async |namespace: &str, prefix: &str| {
            let all = Kind::ALL.map(|kind| of_kind(kind, namespace, prefix));
            join_all(all).await.into_iter().all(|whole| whole)
        };
        let own = self.given("namespace").unwrap_or(&clients.namespace);
        let parts: Vec<&str> = self.place.word.split('/').collect();
        let kind = parts.first().and_then(|part| Some((Kind::named(part)?, part)));
        match (kind, parts.as_slice()) {
            (Some((kind, word)), [_, _]) => of_kind(kind, own, &format!("{word}/")).await,
            (Some((kind, word)), [_, namespace, _]) => of_kind(kind, namespace, &format!("{word}/{namespace}/")).await,
            (None, [namespace, _]) => of(namespace, &format!("{namespace}/")).await,
            _ if self.given("namespace").is_some() => of(own, "").await,
            _ => {
                let (own, others) = tokio::join!(of(own, ""), self.named_namespaces(&clients, "/"));
                own && others
            }
        }
    }

    /// Objects by namespace and name, behind `kind` where that was typed.
    async fn objects(&self, of: Vec<Named<'_>>, kind: &str) -> bool {
        let Some(clients) = self.clients().await else { return true };
        let prefix = if self.place.word.starts_with(kind) { kind } else { "" };
        for named in of {
            let keep = |ObjectName { namespace, name }| self.put(format!("{prefix}{namespace}/{name}"), "");
            // A group that the cluster does not have has no names.
            let _ = each(&clients, named, keep).await;
        }
        true
    }

    async fn environments(&self) -> Option<()> {
        let id = named_in::<PipelineKind>(self.given("name")?, self.given("namespace")).ok()?;
        let found = app::desk(&self.config()?, &self.clients().await?).one(&id).await.ok()??;
        let environments = found.object.spec.ok()?.environments;
        environments.into_iter().for_each(|environment| self.put(environment.name.0, ""));
        Some(())
    }

    async fn members(&self) -> Option<()> {
        let (sources, _) = app::sources::connected(&self.config()?, &self.options(), None).await.ok()?;
        let pin = sources.ledger.peek().await.ok()??.pin?;
        pin.members.into_iter().for_each(|member| self.put(member.to_string(), "member"));
        Some(())
    }

    /// Those of the configuration that is here, and those that deliveries name.
    async fn receivers(&self) -> Option<()> {
        let config = self.config()?;
        let webhooks = app::receivers(&config).ok()?;
        webhooks.hooks().for_each(|(name, _)| self.put(name.to_owned(), "configured here"));
        if config.webhooks.hooks.is_empty() {
            let (sources, _) = app::sources::connected(&config, &self.options(), None).await.ok()?;
            let deliveries = sources.ledger.deliveries().await.ok()?;
            deliveries.into_iter().for_each(|delivery| self.put(delivery.hook, "has deliveries"));
        }
        Some(())
    }
}
