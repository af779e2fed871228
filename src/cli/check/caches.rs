//! Caches between: whether their Services lead to endpoints, and whether anything that is watched serves their hosts. They are sent nothing: no
//! request of theirs is without effect.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;

use super::catalog::{API_SERVER, CACHES};
use super::report::Finding;
use crate::adapters::http::refusal_of_cluster;
use crate::adapters::kubernetes::Cluster;
use crate::looking::page::count;
use kernel::names::host::Host;
use kernel::text::duration;
use purge::caches::Cache;

/// One finding for each trouble, or one for each cache without any. `served`: the hosts of all that is watched, if all are known.
pub async fn caches(caches: &[Arc<Cache>], cluster: Option<&Cluster>, served: Option<&BTreeSet<Host>>) -> Vec<Finding> {
    let Some(cluster) = cluster else {
        return if caches.is_empty() { Vec::new() } else { vec![CACHES.after(API_SERVER)] };
    };
    let looks = caches.iter().map(|cache| one(cache, cluster, served));
    join_all(looks).await.into_iter().flatten().collect()
}

async fn one(cache: &Cache, cluster: &Cluster, served: Option<&BTreeSet<Host>>) -> Vec<Finding> {
    let finding = match cluster.endpoints(&cache.service).await {
        Err(why) => CACHES.failed(why).hint(format!(
            "see what service = \"{}\" names; each purge of a host of this cache waits for {} and then goes on without it",
            cache.service,
            duration(cache.timeout)
        )),
        Ok(found) if found.serving.is_empty() && found.unready == 0 => {
            CACHES.warning("its Service has no endpoints: nothing is asked")
        }
        Ok(found) if found.serving.is_empty() => {
            let none = format!("none of its {} is ready", count(found.unready, "endpoint", "endpoints"));
            CACHES.warning(none).hint(format!("each purge of a host of this cache waits {} for one", duration(cache.timeout)))
        }
        Ok(found) => match found.serving.values().find_map(|to| Some((to.ip(), refusal_of_cluster(to.ip())?))) {
            Some((address, why)) => CACHES.failed(format!("an endpoint is not asked: its address {address} is {why}")),
            None => CACHES.good(format!("asked before a purge, at {}", count(found.serving.len(), "endpoint", "endpoints"))),
        },
    };
    let is_unserved = |own: &&Host| served.is_some_and(|served| !served.iter().any(|host| host.overlaps(own)));
    let unserved = cache.hosts.iter().filter(is_unserved).map(|host| {
        CACHES
            .warning(format!("nothing that is watched serves {host}: the cache is never asked for it"))
            .hint("right, if that comes later; else see allclear explain of the workload that should serve it")
    });
    std::iter::once(finding).chain(unserved).map(|finding| finding.of(&cache.name)).collect()
}
