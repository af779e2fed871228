//! Reads what may route to the workloads of a namespace: when a rollout needs it, kept for seconds, not watched for ever.
//!
//! Routes of other namespaces that lead here (by a ReferenceGrant) are not looked for: that would take the right to list
//! routes everywhere. The annotation `allclear.dev/hosts` is the answer where it matters.
//!
//! Not for what the objects mean (`routing`), nor for finding the site ([`crate::domain::site`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use kube::api::GetParams;
use tokio::time::Instant;

use super::call::{Collection, Failure, Resource, read};
use super::list::{self, ANSWER_MAX, BYTES_MAX};
use super::routing::{self, GATEWAYS, GRPC_ROUTES, HTTP_ROUTES, INGRESSES, SERVICES};
use super::text::{self, Decoder};
use crate::domain::site::{GatewayFact, SiteFacts};
use crate::ports::PortError;

/// How long facts are used again. A hundred rollouts of one release in one namespace then cost one reading; nobody
/// notices an Ingress that is found five seconds later.
const FACTS_AGE_MAX: Duration = Duration::from_secs(5);

/// How long a kind the API server does not know is not asked for again.
const UNKNOWN_FOR: Duration = Duration::from_secs(5 * 60);

/// Reads facts, at most one reading of a namespace at a time.
pub(super) struct SiteReader {
    client: Client,
    /// What was read, by namespace; the inner lock is held while reading.
    kept: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Option<Kept>>>>>,
    /// Kinds the API server did not know, by plural, and until when that is believed.
    unknown: Mutex<BTreeMap<&'static str, Instant>>,
}

struct Kept {
    facts: SiteFacts,
    at: Instant,
}

impl SiteReader {
    pub fn new(client: Client) -> Self {
        Self { client, kept: Mutex::default(), unknown: Mutex::default() }
    }

    /// The facts of a namespace, at most a few seconds old.
    pub async fn facts(&self, namespace: &str) -> Result<SiteFacts, PortError> {
        let slot = self.slot(namespace);
        let mut kept = slot.lock().await;
        if let Some(kept) = kept.as_ref().filter(|kept| kept.is_fresh()) {
            return Ok(kept.facts.clone());
        }
        let facts = self.read(namespace).await?;
        *kept = Some(Kept { facts: facts.clone(), at: Instant::now() });
        Ok(facts)
    }

    /// Where the facts of a namespace are kept. Others that have become stale are thrown away, unless somebody uses them.
    fn slot(&self, namespace: &str) -> Arc<tokio::sync::Mutex<Option<Kept>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, slot| slot.try_lock().map_or(true, |kept| kept.as_ref().is_some_and(Kept::is_fresh)));
        Arc::clone(kept.entry(namespace.to_owned()).or_default())
    }

    async fn read(&self, namespace: &str) -> Result<SiteFacts, PortError> {
        let (services, ingresses, http, grpc) = futures_util::try_join!(
            self.list(SERVICES, namespace, routing::service),
            self.list(INGRESSES, namespace, routing::ingress),
            self.list_if_known(HTTP_ROUTES, namespace, routing::http_route),
            self.list_if_known(GRPC_ROUTES, namespace, routing::grpc_route),
        )?;
        let routes: Vec<_> = http.into_iter().chain(grpc).collect();
        let wanted: BTreeSet<(&str, &str)> = routes
            .iter()
            .flat_map(|route| &route.parents)
            .map(|to| (to.namespace.as_str(), to.name.as_str()))
            .collect();
        let mut gateways = Vec::new();
        for (namespace, name) in wanted {
            gateways.extend(self.gateway(namespace, name).await?);
        }
        Ok(SiteFacts { services, ingresses, routes, gateways })
    }

    async fn list<T>(&self, resource: Resource, namespace: &str, decode: Decoder<T>) -> Result<Vec<T>, PortError> {
        let collection = Collection::of(resource, namespace);
        let listed = list::all(&self.client, &collection, None, decode).await;
        listed.map_err(|failure| collection.attempt("list").failed(failure))
    }

    /// Like [`Self::list`], but a kind the API server does not know has no objects.
    async fn list_if_known<T>(
        &self,
        resource: Resource,
        namespace: &str,
        decode: Decoder<T>,
    ) -> Result<Vec<T>, PortError> {
        if self.is_unknown(resource) {
            return Ok(Vec::new());
        }
        let collection = Collection::of(resource, namespace);
        match list::all(&self.client, &collection, None, decode).await {
            Err(Failure { status: Some(404), .. }) => {
                self.unknown().insert(resource.plural, Instant::now() + UNKNOWN_FOR);
                Ok(Vec::new())
            }
            listed => listed.map_err(|failure| collection.attempt("list").failed(failure)),
        }
    }

    /// A Gateway, often of another namespace. One that does not exist, or that we may not read, is left out; the site then
    /// names it as one whose listeners are not known.
    async fn gateway(&self, namespace: &str, name: &str) -> Result<Option<GatewayFact>, PortError> {
        let collection = Collection::of(GATEWAYS, namespace);
        let attempt = collection.attempt_one("get", name);
        let request = kube::core::Request::new(collection.path()).get(name, &GetParams::default());
        let request = request.map_err(|error| attempt.failed(Failure::unanswered(error)))?;
        match read(&self.client, request, ANSWER_MAX, BYTES_MAX).await {
            Ok(body) => Ok(text::object(&body, routing::gateway).ok()),
            Err(Failure { status: Some(404), .. }) => Ok(None),
            Err(failure @ Failure { status: Some(403), .. }) => {
                let error = attempt.failed(failure);
                tracing::warn!(%error, "gateway left out");
                Ok(None)
            }
            Err(failure) => Err(attempt.failed(failure)),
        }
    }

    fn is_unknown(&self, resource: Resource) -> bool {
        self.unknown().get(resource.plural).is_some_and(|until| Instant::now() < *until)
    }

    fn unknown(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, Instant>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < FACTS_AGE_MAX
    }
}
