//! Caches between, asked at their endpoints: one request after the other to each, endpoints side by side.
//!
//! - An endpoint is asked at its address: the Service would choose one. Private addresses are right here, and the operator names the Service;
//!   but who writes its EndpointSlices chooses the address, so none is loopback or link-local, nor what hands out credentials.
//!   Any other address in the cluster's network is asked, that of our own pod too.
//! - A redirect is an answer like any other, and no body is read. Only the headers that are configured are sent, `Host` and our name.
//! - Nothing but a status of the cache goes into words.
//!
//! Not for what is asked and when; see [`purge::caches`].

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ::http::header::HOST;
use ::http::{HeaderMap, HeaderName, Method};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use url::{Position, Url};

use super::http::{Client, Egress, Error, NoLookup, Request, Settings, header_value, refusal_of_cluster};
use super::kubernetes::{Cluster, NoEndpoints};
use kernel::id::WorkloadId;
use purge::caches::Cache;
use purge::caches::asking::{Answer, Answers, Endpoint, Question};
use purge::caches::demand;
use purge::ports::{Caches, PortError};

/// Time for one request. A cache answers such a one from memory.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Endpoints that are asked at the same time for workloads of one namespace: one that does not answer holds up its own namespace alone.
const OF_ONE_MAX: usize = 16;

/// The way to caches.
pub struct CacheEndpoints {
    client: Client,
    cluster: Arc<Cluster>,
    places: Places,
    /// Why an endpoint may not be at an address.
    refusal: fn(IpAddr) -> Option<&'static str>,
}

/// Places at the endpoints, for each namespace that asks.
#[derive(Default)]
struct Places(Mutex<BTreeMap<String, Weak<Semaphore>>>);

impl Places {
    fn of(&self, namespace: &str) -> Arc<Semaphore> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, places| places.strong_count() > 0);
        if let Some(places) = all.get(namespace).and_then(Weak::upgrade) {
            return places;
        }
        let places = Arc::new(Semaphore::new(OF_ONE_MAX));
        all.insert(namespace.to_owned(), Arc::downgrade(&places));
        places
    }
}

impl CacheEndpoints {
    /// # Errors
    /// [`Error::Unusable`] as of [`Client::new`].
    pub fn new(cluster: Arc<Cluster>) -> Result<Self, Error> {
        let settings = Settings { lookup: Arc::new(NoLookup), ..Settings::new(Egress { allow_private: true }) };
        Ok(Self { client: Client::new(settings)?, cluster, places: Places::default(), refusal: refusal_of_cluster })
    }

    /// The same among stand-ins, whose pods are on this machine.
    #[must_use]
    pub fn among_stand_ins(self) -> Self {
        Self { refusal: |_| None, ..self }
    }

    /// Asks one endpoint for all that is wanted; the first request that is not answered as it should be is the last.
    async fn clear(&self, question: &Question, to: SocketAddr, places: &Semaphore, deadline: Instant) -> Answer {
        if let Some(why) = (self.refusal)(to.ip()) {
            return Answer::Failed(format!("is not asked: its address {} is {why}", to.ip()));
        }
        let all = async {
            // A place that is closed lets everybody in, and none ever is.
            let _place = places.acquire().await.ok();
            for one in question.requests.iter() {
                if let Err(why) = self.send(&question.cache, one, to).await {
                    return Answer::Failed(why);
                }
            }
            Answer::Cleared
        };
        timeout_at(deadline, all).await.unwrap_or_else(|_| Answer::Failed("has not answered in time".to_owned()))
    }

    async fn send(&self, cache: &Cache, one: &demand::Request, to: SocketAddr) -> Result<(), String> {
        let request = request(cache, one, to).map_err(|error| format!("cannot be asked: {error}"))?;
        let head = self.client.head(request).await.map_err(|error| format!("does not answer: {error}"))?;
        match cache.is_done(head.status) {
            true => Ok(()),
            false => Err(format!("answers {} to {}", head.status, cache.method.name())),
        }
    }
}

fn request(cache: &Cache, one: &demand::Request, to: SocketAddr) -> Result<Request, Error> {
    let unusable = || Error::Unusable(format!("{} is no address that can be sent as it is", one.target));
    let url = Url::parse(&format!("http://{to}{}", one.target)).map_err(|_| unusable())?;
    // Dots are steps to an address, and names to a cache: another page would be purged.
    if url[Position::BeforePath..] != one.target {
        return Err(unusable());
    }
    let mut headers = HeaderMap::from_iter([(HOST, header_value(one.host.as_str())?)]);
    for (name, value) in &one.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
        headers.insert(name, header_value(value)?);
    }
    let method = Method::from_bytes(cache.method.name().as_bytes()).map_err(|_| unusable())?;
    Ok(Request { method, url, headers, body: Bytes::new(), timeout: REQUEST_TIMEOUT.min(cache.timeout) })
}

#[async_trait]
impl Caches for CacheEndpoints {
    async fn ask(&self, of: &WorkloadId, question: &Question) -> Result<Answers, PortError> {
        let deadline = Instant::now() + question.wait_max;
        let service = &question.cache.service;
        let found = timeout_at(deadline, self.cluster.endpoints(service)).await;
        let what = "failed to find the endpoints of a cache";
        let found = match found.map_err(|_| PortError::passing(what, "no answer in time"))? {
            Ok(found) => found,
            Err(NoEndpoints::Unread(error)) => return Err(error),
            Err(why) => return Err(PortError::passing(what, why)),
        };
        let places = self.places.of(&of.namespace);
        let asked = found.serving.into_iter().map(|(endpoint, to): (Endpoint, SocketAddr)| {
            let places = &places;
            async move {
                let answer = match question.cleared.contains(&endpoint) {
                    true => Answer::Before,
                    false => self.clear(question, to, places, deadline).await,
                };
                (endpoint, answer)
            }
        });
        let endpoints = join_all(asked).await.into_iter().collect();
        Ok(Answers { endpoints, unready: found.unready })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use purge::caches::form::Form;
    use purge::caches::{Method as How, Port, Service};

    fn cache(path: &str) -> Cache {
        Cache {
            name: "inner".to_owned(),
            service: Service { namespace: "shop".to_owned(), name: "inner".to_owned(), port: Port::Number(80) },
            method: How::Purge,
            path: Form::parse(path).unwrap(),
            headers: vec![("host".to_owned(), Form::parse("inner").unwrap())],
            hosts: Default::default(),
            gone: Default::default(),
            wildcard: false,
            timeout: Duration::from_secs(60),
        }
    }

    fn sent(path: &str) -> Result<String, Error> {
        let (host, path) = ("www.example.com".parse().unwrap(), path.parse().unwrap());
        let cache = cache("/purge{path}");
        let one = demand::Request { target: cache.path.filled(&host, &path), host, headers: Vec::new() };
        let request = request(&cache, &one, "[fd00::1]:8080".parse().unwrap())?;
        Ok(format!("{} {} {:?}", request.method, request.url, request.headers[HOST].to_str().unwrap()))
    }

    #[test]
    fn a_request_goes_to_the_endpoint_and_names_the_host() {
        assert_eq!(sent("/a?b=1").unwrap(), "PURGE http://[fd00::1]:8080/purge/a?b=1 \"www.example.com\"");
    }

    #[test]
    fn what_would_become_another_page_on_its_way_is_not_sent() {
        for path in ["/a/../b", "/./a", "/a/%2e%2e/b"] {
            assert!(sent(path).is_err(), "{path}");
        }
        assert!(sent("/a..b").is_ok());
    }

    #[test]
    fn each_namespace_has_places_of_its_own() {
        let places = Places::default();
        let (shop, blog) = (places.of("shop"), places.of("blog"));
        assert!(Arc::ptr_eq(&shop, &places.of("shop")) && !Arc::ptr_eq(&shop, &blog));
        drop(shop);
        drop(places.of("blog"));
        assert_eq!(places.0.lock().unwrap().len(), 1, "nobody asks for the other one any more");
    }
}
