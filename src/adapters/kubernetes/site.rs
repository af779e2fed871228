//! Reads what may route to the workloads of a namespace: when a rollout needs it, kept for seconds, not watched for ever.
//!
//! Other namespaces are read as far as they matter. Routes that lead here from elsewhere are looked for where a
//! ReferenceGrant of this namespace allows some. What others take of a wildcard or of a load balancer is read if the
//! namespace has such; where we may not read it, everything counts as ours, which purges too much rather than too little.
//!
//! All of it is written by tenants, so all of it is bounded: names as they are read ([`Room`]), Gateways by number, names before
//! they come into a request's path, and look-ups at the same time. Omissions are listed in the site (T2, T15).
//!
//! Not for what the objects mean (`routing`), nor for finding the site ([`purge::site`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::gateway::{self, GATEWAYS, GRANTS, GRANTS_V1, GRPC_ROUTES, HTTP_ROUTES};
use super::gateways;
use super::routing::{self, Counted, INGRESSES, SERVICES};
use apiserver::{Api, CallError, Collection, Decoder, Resource, is_object_name};
use kernel::unreadable::Unreadable;
use purge::ports::{PortError, Retry};
use purge::site::{
    Age, Bulky, GatewayFact, Gathered, GrantFact, IngressFact, Room, RouteFact, RouteKind, SiteFacts, beside,
};

/// The kinds of routes.
const ROUTES: [(Resource, Decoder<Counted<RouteFact>>); 2] =
    [(HTTP_ROUTES, gateway::http_route), (GRPC_ROUTES, gateway::grpc_route)];

/// How long facts are used again. A hundred rollouts of one release in one namespace then cost a reading a second. Longer, and a host
/// that was added while a rollout settled (three seconds, by default) would not be purged with it.
const FACTS_AGE_MAX: Duration = Duration::from_secs(1);

/// How long a kind the API server does not know is not asked for again.
const UNKNOWN_FOR: Duration = Duration::from_secs(5 * 60);

/// How long what other namespaces take is used again. It is one reading of all of them, so it is kept a little longer.
const OTHERS_AGE_MAX: Duration = Duration::from_secs(15);

/// Most namespaces whose routes are looked for because a grant names them; each is one list for each kind.
const GRANTED_MAX: usize = 32;

/// Gateways read at the same time for one look-up, and how long one is waited for.
const GATEWAYS_AT_ONCE: usize = 8;
const GATEWAY_ANSWER_MAX: Duration = Duration::from_secs(5);

/// How long all other namespaces are listed. They only narrow a purge, and one who fills them must not hold up the others.
const OTHERS_LIST_MAX: Duration = Duration::from_secs(10);

/// Look-ups at the same time, of different namespaces. Each holds one object's bytes and the names of its namespace.
const LOOKUPS_MAX: usize = 4;

/// Names of all facts that are kept, about 15 MB. The oldest facts are forgotten for newer ones.
const KEPT_NAMES_MAX: usize = 100_000;

/// Reads facts, at most one reading of a namespace at a time.
pub(super) struct SiteReader {
    api: Api,
    /// What was read, by namespace; the inner lock is held while reading.
    kept: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Option<Kept>>>>>,
    /// Ingresses and routes of all namespaces; the lock is held while reading.
    others: tokio::sync::Mutex<Option<(Instant, Arc<Takers>)>>,
    lookups: Semaphore,
    /// Kinds the API server did not know, by version and plural, and when it said so.
    unknown: Mutex<BTreeMap<Resource, Instant>>,
}

/// What may take requests from others, and what of it is left out.
#[derive(Default)]
struct Takers {
    ingresses: Vec<IngressFact>,
    routes: Vec<RouteFact>,
    left_out: Vec<(String, String)>,
    /// Why some of them could not be read.
    unread: Vec<PortError>,
}

struct Kept {
    facts: Arc<Gathered>,
    names: usize,
    at: Instant,
}

impl SiteReader {
    pub fn new(api: Api) -> Self {
        Self {
            api,
            kept: Mutex::default(),
            others: tokio::sync::Mutex::default(),
            lookups: Semaphore::new(LOOKUPS_MAX),
            unknown: Mutex::default(),
        }
    }

    /// The facts of a namespace. All who ask for fresh ones while these are being read share the next reading.
    pub async fn facts(&self, namespace: &str, age: Age) -> Result<Arc<Gathered>, PortError> {
        let asked = Instant::now();
        let slot = self.slot(namespace);
        let mut kept = slot.lock().await;
        let serves = |kept: &&Kept| kept.is_fresh() && (age == Age::Recent || kept.at >= asked);
        if let Some(kept) = kept.as_ref().filter(serves) {
            return Ok(Arc::clone(&kept.facts));
        }
        // Nothing is kept of before while it is read again.
        *kept = None;
        let _place = self.lookups.acquire().await;
        let at = Instant::now();
        let known_since = match age {
            Age::Recent => at.checked_sub(UNKNOWN_FOR).unwrap_or(at),
            Age::Fresh => asked,
        };
        let facts = Arc::new(self.read(namespace, known_since, Refusals::default()).await?);
        if let [(place, why), ..] = facts.left_out() {
            let objects = facts.left_out().len();
            tracing::warn!(namespace, place, why, objects, "left out some of what routes to workloads");
        }
        *kept = Some(Kept { facts: Arc::clone(&facts), names: facts.names(), at });
        Ok(facts)
    }

    /// The same without the kinds that may not be listed, which are named in it. Those facts are kept for nobody.
    pub async fn facts_in_part(&self, namespace: &str, age: Age) -> Result<Arc<Gathered>, PortError> {
        match self.facts(namespace, age).await {
            Err(error) if error.denied => {
                let _place = self.lookups.acquire().await;
                let refusals = Refusals { in_part: true, ..Refusals::default() };
                Ok(Arc::new(self.read(namespace, Instant::now(), refusals).await?))
            }
            known => known,
        }
    }

    /// Where the facts of a namespace are kept. Drops stale facts of other namespaces unless they are in use, and, if there are
    /// still too many, the oldest.
    fn slot(&self, namespace: &str) -> Arc<tokio::sync::Mutex<Option<Kept>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, slot| slot.try_lock().map_or(true, |kept| kept.as_ref().is_some_and(Kept::is_fresh)));
        let names =
            |slot: &tokio::sync::Mutex<Option<Kept>>| slot.try_lock().ok()?.as_ref().map(|kept| (kept.at, kept.names));
        let known = kept.iter().filter_map(|(name, slot)| names(slot).map(|(at, names)| (at, name.clone(), names)));
        let mut known: Vec<(Instant, String, usize)> = known.collect();
        known.sort_unstable_by(|one, other| other.cmp(one));
        let mut total = 0;
        for (_, name, names) in known {
            total += names;
            if total > KEPT_NAMES_MAX && name != namespace {
                kept.remove(&name);
            }
        }
        Arc::clone(kept.entry(namespace.to_owned()).or_default())
    }

    /// Reads all; a kind that was unknown after `known_since` is not asked for. One list after the other: each is short, and
    /// the names that are kept of them share one room.
    async fn read(&self, namespace: &str, known_since: Instant, mut refusals: Refusals) -> Result<Gathered, PortError> {
        let mut room = Room::of_one();
        // Without Services nothing leads from a workload to any host.
        let services = self.list(SERVICES, namespace, routing::service, &mut room).await?;
        let ingresses = refusals.pass(self.list(INGRESSES, namespace, routing::ingress, &mut room).await)?;
        let mut routes = Vec::new();
        for kind in ROUTES {
            routes.extend(refusals.pass(self.routes(kind, Some(namespace), known_since, &mut room).await)?);
        }
        let grants = refusals.leave_out(self.grants(namespace, known_since, &mut room).await)?;
        let mut aside = Room::of_others();
        for space in granted(namespace, &grants, &mut room) {
            routes.extend(refusals.leave_out(self.all_routes(Some(&space), known_since, &mut aside).await)?);
        }
        routes.iter_mut().for_each(|route| gateways::reject_parents(route, &mut room));
        let wanted = gateways::wanted(namespace, &routes, &mut room);
        let gateways = self.gateways(&wanted, &mut aside, &mut refusals).await?;
        let mut notes = room.notes();
        notes.extend(aside.notes());
        let mut facts = SiteFacts { services, ingresses, routes, gateways, grants };
        if facts.depends_on_others() {
            let takers = self.takers(known_since).await?;
            let foreign = takers.ingresses.iter().filter(|one| one.namespace != namespace);
            let foreign = beside(&facts, foreign);
            facts.ingresses.extend(foreign);
            let wanted: BTreeSet<&(String, String)> = wanted.iter().collect();
            let meets = |route: &&RouteFact| {
                route.parents.iter().any(|to| wanted.contains(&(to.namespace.clone(), to.name.clone())))
            };
            let known: BTreeSet<_> = facts.routes.iter().map(route_id).collect();
            let others: Vec<RouteFact> =
                takers.routes.iter().filter(|one| !known.contains(&route_id(one))).filter(meets).cloned().collect();
            facts.routes.extend(others);
            notes.extend(takers.left_out.iter().cloned());
            refusals.noted.extend(takers.unread.iter().cloned());
        }
        Ok(Gathered::new(namespace, facts, notes).without(refusals.noted))
    }

    /// The Gateways with these namespaces and names, a few at a time.
    async fn gateways(
        &self,
        wanted: &[(String, String)],
        room: &mut Room,
        refusals: &mut Refusals,
    ) -> Result<Vec<GatewayFact>, PortError> {
        let mut reads = Vec::new();
        for (namespace, name) in wanted {
            reads.push(self.gateway(namespace, name));
        }
        let read: Vec<_> = stream::iter(reads).buffered(GATEWAYS_AT_ONCE).try_collect().await?;
        let mut gateways = Vec::new();
        for (found, (namespace, name)) in read.into_iter().zip(wanted) {
            match found {
                Ok(Some(mut gateway)) => {
                    if room.admit(&mut gateway, 0) {
                        gateways.push(gateway);
                    }
                }
                Ok(None) => {}
                Err(Lost::Refused(error)) => refusals.note(error),
                Err(Lost::Unreadable(why)) => {
                    room.note(format!("Gateway {namespace}/{name}"), format!("it cannot be read: {why}"));
                }
            }
        }
        Ok(gateways)
    }

    /// The routes of a namespace, or of all.
    async fn all_routes(
        &self,
        namespace: Option<&str>,
        known_since: Instant,
        room: &mut Room,
    ) -> Result<Vec<RouteFact>, PortError> {
        let mut routes = Vec::new();
        for kind in ROUTES {
            routes.extend(self.routes(kind, namespace, known_since, room).await?);
        }
        Ok(routes)
    }

    /// Those of one kind.
    async fn routes(
        &self,
        (resource, decode): (Resource, Decoder<Counted<RouteFact>>),
        namespace: Option<&str>,
        known_since: Instant,
        room: &mut Room,
    ) -> Result<Vec<RouteFact>, PortError> {
        Ok(self.list_if_known(resource, namespace, decode, known_since, room).await?.unwrap_or_default())
    }

    /// The grants of a namespace; its own routes need none.
    async fn grants(
        &self,
        namespace: &str,
        known_since: Instant,
        room: &mut Room,
    ) -> Result<Vec<GrantFact>, PortError> {
        for resource in [GRANTS, GRANTS_V1] {
            let grants = self.list_if_known(resource, Some(namespace), gateway::grant, known_since, room).await?;
            if let Some(grants) = grants {
                return Ok(grants);
            }
        }
        Ok(Vec::new())
    }

    /// Ingresses and routes of all namespaces, as far as we may read them, and as far as they can be read soon.
    async fn takers(&self, known_since: Instant) -> Result<Arc<Takers>, PortError> {
        let mut kept = self.others.lock().await;
        if let Some((_, takers)) = kept.as_ref().filter(|(at, _)| at.elapsed() < OTHERS_AGE_MAX) {
            return Ok(Arc::clone(takers));
        }
        *kept = None;
        let at = Instant::now();
        let mut room = Room::of_others();
        let mut refusals = Refusals::default();
        let mut takers = Takers::default();
        let everywhere = Collection::everywhere(INGRESSES);
        let listing = self.api.each(&everywhere, routing::ingress, |(ingress, _)| {
            let mut ingress = ingress.as_taker();
            if room.admit(&mut ingress, 0) {
                takers.ingresses.push(ingress);
            }
        });
        let late =
            format!("they took more than {} s to list; what others take counts as ours", OTHERS_LIST_MAX.as_secs());
        let cut = match tokio::time::timeout(OTHERS_LIST_MAX, listing).await {
            Ok(listed) => refusals.leave_out(listed.map_err(PortError::from))?,
            Err(_) => Some(late.clone()),
        };
        cut.into_iter().for_each(|why| room.note("Ingresses of all namespaces".to_owned(), why));
        match tokio::time::timeout(OTHERS_LIST_MAX, self.all_routes(None, known_since, &mut room)).await {
            Ok(routes) => takers.routes = refusals.leave_out(routes)?,
            Err(_) => room.note("routes of all namespaces".to_owned(), late),
        }
        takers.left_out = room.notes();
        takers.unread = refusals.noted;
        let takers = Arc::new(takers);
        *kept = Some((at, Arc::clone(&takers)));
        Ok(takers)
    }

    /// The objects of a kind in a namespace, as far as there is room for them.
    async fn list<T: Bulky>(
        &self,
        resource: Resource,
        namespace: &str,
        decode: Decoder<Counted<T>>,
        room: &mut Room,
    ) -> Result<Vec<T>, PortError> {
        Ok(self.admitted(&Collection::of(resource, namespace), decode, room).await?)
    }

    async fn admitted<T: Bulky>(
        &self,
        collection: &Collection,
        decode: Decoder<Counted<T>>,
        room: &mut Room,
    ) -> Result<Vec<T>, CallError> {
        let mut kept = Vec::new();
        let cut = self.api.each(collection, decode, |(mut object, unread)| {
            if room.admit(&mut object, unread) {
                kept.push(object);
            }
        });
        if let Some(why) = cut.await? {
            let space = collection.namespace.as_deref().unwrap_or("all namespaces");
            let why = format!("the rest of them is not read: {why}");
            room.note(format!("{} of {space}", collection.resource.plural), why);
        }
        Ok(kept)
    }

    /// Like [`Self::list`], but a kind the API server does not know has no objects: `None`.
    async fn list_if_known<T: Bulky>(
        &self,
        resource: Resource,
        namespace: Option<&str>,
        decode: Decoder<Counted<T>>,
        known_since: Instant,
        room: &mut Room,
    ) -> Result<Option<Vec<T>>, PortError> {
        let key = resource.clone();
        if self.unknown().get(&key).is_some_and(|at| *at > known_since) {
            return Ok(None);
        }
        let collection = Collection { resource, namespace: namespace.map(str::to_owned), only: None };
        match self.admitted(&collection, decode, room).await {
            Err(failed) if failed.status() == Some(404) => {
                self.unknown().insert(key, Instant::now());
                Ok(None)
            }
            listed => Ok(Some(listed?)),
        }
    }

    /// A Gateway, often of another namespace; `None` where it does not exist. `Err` inside: it cannot be read, which stops nothing
    /// else. The site then names it as one whose listeners are not known.
    async fn gateway(&self, namespace: &str, name: &str) -> Result<Result<Option<GatewayFact>, Lost>, PortError> {
        match self.api.within(GATEWAY_ANSWER_MAX).get(&Collection::of(GATEWAYS, namespace), name).await {
            Ok(found) => {
                let found = found.map(|answer| answer.object(gateway::gateway)).transpose();
                Ok(found.map_err(Lost::Unreadable))
            }
            Err(failed) if failed.status() == Some(403) => Ok(Err(Lost::Refused(failed.error))),
            // Credentials that are refused are for all, and the next look-up has other ones.
            Err(CallError { error, .. }) if error.denied || error.retry != Retry::Never => Err(error),
            Err(CallError { error, .. }) => Ok(Err(Lost::Unreadable(Unreadable::Invalid(error.cause)))),
        }
    }

    fn unknown(&self) -> std::sync::MutexGuard<'_, BTreeMap<Resource, Instant>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why there is nothing of a Gateway that there may be.
enum Lost {
    /// We may not read it.
    Refused(PortError),
    /// It never can be read.
    Unreadable(Unreadable),
}

/// What could not be read, and whether the reading goes on without it.
#[derive(Default)]
struct Refusals {
    /// It goes on without the kinds of the namespace itself, too, which a purge needs.
    in_part: bool,
    /// What is missing from what was read.
    noted: Vec<PortError>,
}

impl Refusals {
    /// What a purge needs, with nothing in its place where it may be missing.
    fn pass<T: Default>(&mut self, read: Result<T, PortError>) -> Result<T, PortError> {
        match read {
            Err(error) if self.in_part && error.denied && !error.unknown_caller => {
                self.noted.push(error);
                Ok(T::default())
            }
            read => read,
        }
    }

    /// What a purge does without. Nothing but what trying again does not mend, as a missing right, may be passed over.
    fn leave_out<T: Default>(&mut self, read: Result<T, PortError>) -> Result<T, PortError> {
        match read {
            Err(error) if error.retry == Retry::Never => {
                self.note(error);
                Ok(T::default())
            }
            read => read,
        }
    }

    fn note(&mut self, error: PortError) {
        tracing::warn!(%error, "left out of what routes to workloads");
        self.noted.push(error);
    }
}

/// The other namespaces from which routes may lead here. A name that none has is passed over: it is part of a request's path.
fn granted(namespace: &str, grants: &[GrantFact], room: &mut Room) -> Vec<String> {
    let from: BTreeSet<&str> = grants.iter().flat_map(|grant| &grant.from).map(|(_, from)| from.as_str()).collect();
    let from = from.into_iter().filter(|from| *from != namespace);
    let (good, bad): (Vec<&str>, Vec<&str>) = from.partition(|from| is_object_name(from));
    let place = || format!("ReferenceGrants of {namespace}");
    if let Some(first) = bad.first() {
        room.note(place(), format!("{first:.80?} is no name of a namespace, nor are {} more", bad.len() - 1));
    }
    if good.len() > GRANTED_MAX {
        let why = format!("of the {} namespaces they allow, routes of {GRANTED_MAX} are looked at", good.len());
        room.note(place(), why);
    }
    good.into_iter().take(GRANTED_MAX).map(str::to_owned).collect()
}

fn route_id(route: &RouteFact) -> (RouteKind, String, String) {
    (route.kind, route.namespace.clone(), route.name.clone())
}

impl Kept {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < FACTS_AGE_MAX
    }
}
