//! Reads what may route to the workloads of a namespace: when a rollout needs it, kept for seconds, not watched for ever.
//!
//! Other namespaces are read as far as they matter. Routes that lead here from elsewhere are looked for where a
//! ReferenceGrant of this namespace allows some. What others take of a wildcard or of a load balancer is read if the
//! namespace has such; where we may not read it, everything counts as ours, which purges too much rather than too little.
//!
//! Not for what the objects mean (`routing`), nor for finding the site ([`crate::domain::site`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use kube::api::GetParams;
use tokio::time::Instant;

use super::call::{Collection, Failure, Resource, read};
use super::gateway::{self, GATEWAYS, GRANTS, GRANTS_V1, GRPC_ROUTES, HTTP_ROUTES};
use super::list::{self, ANSWER_MAX, BYTES_MAX};
use super::routing::{self, INGRESSES, SERVICES};
use super::text::{self, Decoder};
use crate::domain::site::{Age, GatewayFact, GrantFact, IngressFact, ParentKind, RouteFact, RouteKind, SiteFacts};
use crate::ports::{PortError, Retry};

/// How long facts are used again. A hundred rollouts of one release in one namespace then cost one reading; nobody
/// notices an Ingress that is found five seconds later.
const FACTS_AGE_MAX: Duration = Duration::from_secs(5);

/// How long a kind the API server does not know is not asked for again.
const UNKNOWN_FOR: Duration = Duration::from_secs(5 * 60);

/// How long what other namespaces take is used again. It is one reading of all of them, so it is kept a little longer.
const OTHERS_AGE_MAX: Duration = Duration::from_secs(15);

/// Most namespaces whose routes are looked for because a grant names them; each is one list for each kind.
const GRANTED_MAX: usize = 32;

/// Reads facts, at most one reading of a namespace at a time.
pub(super) struct SiteReader {
    client: Client,
    /// What was read, by namespace; the inner lock is held while reading.
    kept: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Option<Kept>>>>>,
    /// Ingresses and routes of all namespaces; the lock is held while reading.
    others: tokio::sync::Mutex<Option<(Instant, Arc<Takers>)>>,
    /// Kinds the API server did not know, by version and plural, and when it said so.
    unknown: Mutex<BTreeMap<(&'static str, &'static str), Instant>>,
}

/// What may take requests from others.
type Takers = (Vec<IngressFact>, Vec<RouteFact>);

struct Kept {
    facts: SiteFacts,
    at: Instant,
}

impl SiteReader {
    pub fn new(client: Client) -> Self {
        Self { client, kept: Mutex::default(), others: tokio::sync::Mutex::default(), unknown: Mutex::default() }
    }

    /// The facts of a namespace. All who ask for fresh ones while these are being read share the next reading.
    pub async fn facts(&self, namespace: &str, age: Age) -> Result<SiteFacts, PortError> {
        let asked = Instant::now();
        let slot = self.slot(namespace);
        let mut kept = slot.lock().await;
        let serves = |kept: &&Kept| kept.is_fresh() && (age == Age::Recent || kept.at >= asked);
        if let Some(kept) = kept.as_ref().filter(serves) {
            return Ok(kept.facts.clone());
        }
        let at = Instant::now();
        let known_since = match age {
            Age::Recent => at.checked_sub(UNKNOWN_FOR).unwrap_or(at),
            Age::Fresh => asked,
        };
        let facts = self.read(namespace, known_since).await?;
        *kept = Some(Kept { facts: facts.clone(), at });
        Ok(facts)
    }

    /// Where the facts of a namespace are kept. Others that have become stale are thrown away, unless somebody uses them.
    fn slot(&self, namespace: &str) -> Arc<tokio::sync::Mutex<Option<Kept>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, slot| slot.try_lock().map_or(true, |kept| kept.as_ref().is_some_and(Kept::is_fresh)));
        Arc::clone(kept.entry(namespace.to_owned()).or_default())
    }

    /// Reads all; a kind that was unknown after `known_since` is not asked for.
    async fn read(&self, namespace: &str, known_since: Instant) -> Result<SiteFacts, PortError> {
        let (services, ingresses, mut routes, grants) = futures_util::try_join!(
            self.list(SERVICES, namespace, routing::service),
            self.list(INGRESSES, namespace, routing::ingress),
            self.routes(Some(namespace), known_since),
            self.grants(namespace, known_since),
        )?;
        for space in self.granted(namespace, &grants) {
            let found = self.routes(Some(&space), known_since).await;
            routes.extend(found.or_else(|error| left_out(&error, Vec::new()))?);
        }
        let wanted: BTreeSet<(String, String)> = routes
            .iter()
            .flat_map(|route| &route.parents)
            .filter(|parent| parent.kind == ParentKind::Gateway)
            .map(|to| (to.namespace.clone(), to.name.clone()))
            .collect();
        let mut gateways = Vec::new();
        for (namespace, name) in &wanted {
            gateways.extend(self.gateway(namespace, name).await?);
        }
        let mut facts = SiteFacts { services, ingresses, routes, gateways, grants };
        if facts.depends_on_others() {
            let takers = self.takers(known_since).await?;
            facts.ingresses.extend(takers.0.iter().filter(|one| one.namespace != namespace).cloned());
            let meets = |route: &&RouteFact| {
                route.parents.iter().any(|to| wanted.contains(&(to.namespace.clone(), to.name.clone())))
            };
            let known: BTreeSet<_> = facts.routes.iter().map(route_id).collect();
            let others: Vec<RouteFact> =
                takers.1.iter().filter(|one| !known.contains(&route_id(one))).filter(meets).cloned().collect();
            facts.routes.extend(others);
        }
        Ok(facts)
    }

    /// The routes of a namespace, or of all.
    async fn routes(&self, namespace: Option<&str>, known_since: Instant) -> Result<Vec<RouteFact>, PortError> {
        let (http, grpc) = futures_util::try_join!(
            self.list_if_known(HTTP_ROUTES, namespace, gateway::http_route, known_since),
            self.list_if_known(GRPC_ROUTES, namespace, gateway::grpc_route, known_since),
        )?;
        Ok(http.into_iter().chain(grpc).flatten().collect())
    }

    /// The grants of a namespace. Without the right to read them there are none: routes of the namespace need none.
    async fn grants(&self, namespace: &str, known_since: Instant) -> Result<Vec<GrantFact>, PortError> {
        for resource in [GRANTS, GRANTS_V1] {
            match self.list_if_known(resource, Some(namespace), gateway::grant, known_since).await {
                Ok(None) => {}
                Ok(Some(grants)) => return Ok(grants),
                Err(error) => return left_out(&error, Vec::new()),
            }
        }
        Ok(Vec::new())
    }

    /// The other namespaces from which routes may lead here.
    fn granted(&self, namespace: &str, grants: &[GrantFact]) -> Vec<String> {
        let from: BTreeSet<&str> = grants.iter().flat_map(|grant| &grant.from).map(|(_, from)| from.as_str()).collect();
        let from: Vec<&str> = from.into_iter().filter(|from| *from != namespace).collect();
        if from.len() > GRANTED_MAX {
            tracing::warn!(
                namespace,
                granted = from.len(),
                looked_at = GRANTED_MAX,
                "more namespaces are granted routes than are read"
            );
        }
        from.into_iter().take(GRANTED_MAX).map(str::to_owned).collect()
    }

    /// Ingresses and routes of all namespaces, as far as we may read them.
    async fn takers(&self, known_since: Instant) -> Result<Arc<Takers>, PortError> {
        let mut kept = self.others.lock().await;
        if let Some((_, takers)) = kept.as_ref().filter(|(at, _)| at.elapsed() < OTHERS_AGE_MAX) {
            return Ok(Arc::clone(takers));
        }
        let at = Instant::now();
        let everywhere = Collection { resource: INGRESSES, namespace: None };
        let ingresses = list::all(&self.client, &everywhere, None, routing::ingress).await;
        let ingresses = ingresses.map_err(|failure| everywhere.attempt("list").failed(failure));
        let ingresses = ingresses.or_else(|error| left_out(&error, Vec::new()))?;
        let routes = self.routes(None, known_since).await.or_else(|error| left_out(&error, Vec::new()))?;
        let takers = Arc::new((ingresses, routes));
        *kept = Some((at, Arc::clone(&takers)));
        Ok(takers)
    }

    async fn list<T>(&self, resource: Resource, namespace: &str, decode: Decoder<T>) -> Result<Vec<T>, PortError> {
        let collection = Collection::of(resource, namespace);
        let listed = list::all(&self.client, &collection, None, decode).await;
        listed.map_err(|failure| collection.attempt("list").failed(failure))
    }

    /// Like [`Self::list`], but a kind the API server does not know has no objects: `None`.
    async fn list_if_known<T>(
        &self,
        resource: Resource,
        namespace: Option<&str>,
        decode: Decoder<T>,
        known_since: Instant,
    ) -> Result<Option<Vec<T>>, PortError> {
        let key = (resource.version, resource.plural);
        if self.unknown().get(&key).is_some_and(|at| *at > known_since) {
            return Ok(None);
        }
        let collection = Collection { resource, namespace: namespace.map(str::to_owned) };
        match list::all(&self.client, &collection, None, decode).await {
            Err(Failure { status: Some(404), .. }) => {
                self.unknown().insert(key, Instant::now());
                Ok(None)
            }
            listed => listed.map(Some).map_err(|failure| collection.attempt("list").failed(failure)),
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
            Ok(body) => Ok(text::object(&body, gateway::gateway).ok()),
            Err(Failure { status: Some(404), .. }) => Ok(None),
            Err(failure @ Failure { status: Some(403), .. }) => {
                let error = attempt.failed(failure);
                tracing::warn!(%error, "gateway left out");
                Ok(None)
            }
            Err(failure) => Err(attempt.failed(failure)),
        }
    }

    fn unknown(&self) -> std::sync::MutexGuard<'_, BTreeMap<(&'static str, &'static str), Instant>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Goes on without what may not be read; nothing but a missing right may be passed over.
fn left_out<T>(error: &PortError, without: T) -> Result<T, PortError> {
    if error.retry == Retry::Never {
        tracing::warn!(%error, "left out of what routes to workloads");
        Ok(without)
    } else {
        Err(error.clone())
    }
}

fn route_id(route: &RouteFact) -> (RouteKind, String, String) {
    (route.kind, route.namespace.clone(), route.name.clone())
}

impl Kept {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < FACTS_AGE_MAX
    }
}
