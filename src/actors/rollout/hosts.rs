//! The search for a workload's hosts. A small one runs at once. If tenants wrote thousands of names, it leaves the actors'
//! thread, waits for its turn, and has a bound: it delays the workloads of that namespace only (T2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use kernel::names::host::Host;
use purge::bounds::tenants::{Tenancy, Tenants};
use purge::ports::{ClusterView, PortError, Present};
use purge::rollouts::rollout::FoundSite;
use purge::site::{Age, Gathered, RouteClaim, Routed, lost as compared, missing};
use purge::traffic::Look;
use purge::workloads::workload::Workload;

/// Most names that are searched on the spot: about a millisecond of work.
const AT_ONCE_MAX: usize = 2_000;

/// Searches of many names at the same time. The largest possible one takes some 30 MB and a fraction of a second.
const PLACES: usize = 1;

/// How long a search may take. The bounds on what we read keep it far below; this one guards against what we have not
/// thought of.
const SEARCH_MAX: Duration = Duration::from_secs(10);

thread_local! {
    /// The actors have one thread, and so one queue.
    static QUEUE: Arc<Semaphore> = Arc::new(Semaphore::new(PLACES));
}

/// What is to be known of a site beside its hosts.
pub(super) struct Wanted {
    pub tenants: Tenants,
    /// Whether the paths of each host that lead to the workload are sought.
    pub routes: bool,
}

impl Wanted {
    fn is_judged(&self) -> bool {
        self.tenants.default == Tenancy::Own
    }
}

/// The claims of all namespaces, or why they are not known.
type Claims = Result<Arc<Vec<RouteClaim>>, PortError>;

/// Reads what leads to a workload's namespace, not older than `age`, and finds the workload's site in it; without an age, in what
/// the workload says itself. What became of the hosts that it `had` is looked for where some are not found.
pub(super) async fn find(
    cluster: &dyn ClusterView,
    workload: Box<Workload>,
    age: Option<Age>,
    had: BTreeSet<Host>,
    wanted: Wanted,
) -> Result<FoundSite, PortError> {
    let (who, judged) = (workload.clone(), wanted.is_judged());
    let found = find_site(cluster, workload, age, wanted).await?;
    let lost: BTreeSet<Host> = missing(&had, &found.hosts).cloned().collect();
    if age.is_none() || lost.is_empty() {
        return Ok(found);
    }
    let claims = match cluster.route_claims().await {
        // One who may read their own namespace alone has no part in what others serve.
        Err(error) if error.denied && !judged => Arc::default(),
        claims => claims?,
    };
    let facts = cluster.site_facts(&who.id.namespace, Age::Recent).await?;
    let names = facts.names();
    let compare = move || compared(lost.iter(), who.pods(), &facts, &claims);
    let lost = match names <= AT_ONCE_MAX {
        true => compare(),
        false => tokio::task::spawn_blocking(compare)
            .await
            .map_err(|error| PortError::passing("failed to find what became of hosts", error))?,
    };
    Ok(FoundSite { lost, ..found })
}

/// Reads afresh what leads to the workloads of a namespace: by what routes, whatever their owners say.
pub(in crate::actors) async fn look(cluster: &dyn ClusterView, namespace: String) -> Result<Look, PortError> {
    let facts = cluster.site_facts(&namespace, Age::Fresh).await?;
    let Present { kinds, workloads, unread } = cluster.workloads(&namespace).await?;
    let search = move || {
        let led = workloads.into_iter().map(|workload| {
            let site = facts.site(workload.pods(), None);
            let hosts = site.hosts.keys().map(ToString::to_string);
            (workload.id, hosts.chain(site.origins).collect())
        });
        // Where something was left out, it is not known what leads to nobody any more.
        let kinds = if facts.left_out().is_empty() { kinds } else { BTreeSet::new() };
        Look { kinds, unread, led: led.collect(), namespace: namespace.clone() }
    };
    // Each workload is searched for in all names, so it is always beside the actors' thread.
    tokio::task::spawn_blocking(search)
        .await
        .map_err(|error| PortError::passing("failed to find what leads to workloads", error))
}

async fn find_site(
    cluster: &dyn ClusterView,
    workload: Box<Workload>,
    age: Option<Age>,
    wanted: Wanted,
) -> Result<FoundSite, PortError> {
    let namespace = &workload.id.namespace;
    let judged = wanted.is_judged();
    let claims: Claims = match judged || (wanted.routes && age.is_some()) {
        true => match cluster.route_claims().await {
            // Without them everything is purged, which waits for nobody.
            Err(error) if !judged => Err(error),
            claims => Ok(claims?),
        },
        false => Ok(Arc::default()),
    };
    let Some(age) = age else { return Ok(search(&workload, &Gathered::default(), &claims, &wanted)) };
    let facts = cluster.site_facts(namespace, age).await?;
    let names = facts.names() + claims.iter().flat_map(|all| all.iter()).map(|claim| claim.hosts.len()).sum::<usize>();
    if names <= AT_ONCE_MAX {
        return Ok(search(&workload, &facts, &claims, &wanted));
    }
    // A search that waits holds nothing, and reads again when it is its turn.
    drop(facts);
    let failed = |why: String| PortError::passing("failed to find the hosts", why);
    let place = QUEUE.with(Arc::clone).acquire_owned().await.map_err(|error| failed(error.to_string()))?;
    let facts = cluster.site_facts(namespace, age).await?;
    let work = tokio::task::spawn_blocking(move || {
        let found = search(&workload, &facts, &claims, &wanted);
        // Held until the work has ended, even if its caller no longer waits.
        drop(place);
        found
    });
    match tokio::time::timeout(SEARCH_MAX, work).await {
        Ok(found) => found.map_err(|error| failed(error.to_string())),
        Err(_) => Err(failed(format!(
            "searching the {names} names of Ingresses and routes beside it took more than {} s; name the hosts in the \
             annotation allclear.dev/hosts, which needs no search",
            SEARCH_MAX.as_secs()
        ))),
    }
}

fn search(workload: &Workload, facts: &Gathered, claims: &Claims, wanted: &Wanted) -> FoundSite {
    let found = facts.site(workload.pods(), workload.tuning.hosts.as_deref());
    for (place, why) in &found.rejected {
        tracing::debug!(workload = %workload.id.display_name(), place, why, "ignored an invalid host");
    }
    let why = claims.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let all = claims.as_ref().map(|claims| claims.as_slice());
    let routed = if wanted.routes {
        facts.routed(workload.pods(), &found, all.map_err(|_| why.as_str()))
    } else {
        BTreeMap::new()
    };
    let mut site = FoundSite::judged(found, workload, all.unwrap_or_default(), &wanted.tenants);
    for (host, part) in routed.into_iter().filter(|(host, _)| site.hosts.contains(host)) {
        match part {
            Routed::Only(paths) => drop(site.routed.insert(host, paths)),
            Routed::All(why) => {
                tracing::debug!(workload = %workload.id.display_name(), %host, why, "found no narrower paths of a host");
            }
        }
    }
    site
}
