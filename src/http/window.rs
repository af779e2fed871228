//! What requests are answered from: the actors, asked with bounds on time, and what a page is made of.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::Recipient;
use actix_rt::{Arbiter, ArbiterHandle};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::explains::{Explaining, explained};
use super::fresh::Fresh;
use super::hooks::Hooks;
use super::page::{Asked, View};
use super::reply;
use super::streams::Streams;
use crate::actors::browse::{Browse, Listing};
use crate::actors::message::Observe;
use crate::actors::observation::Observation;
use crate::looking::{About, Sources};
use crate::telemetry::Metrics;
use crate::telemetry::chronicle::Moment;
use crate::telemetry::passages::passages;
use kernel::id::WorkloadId;
use purge::ports::Clock;
use purge::rollouts::browse::{Only, Search};

/// How long an observation may take. Root waits up to 2 s for each actor and then answers without it.
const OBSERVE_WITHIN: Duration = Duration::from_secs(3);

/// How old a look at the actors may be that several streams share: less than the time between two looks of one.
const SHARED_FOR: Duration = Duration::from_millis(900);

/// What the server shows.
#[derive(Clone)]
pub struct Front {
    /// The root actor, which knows everything.
    pub root: Recipient<Observe>,
    /// The same, for the workloads on record.
    pub browse: Recipient<Browse>,
    /// What the page of a workload explains it from; `None`: it names the command.
    pub explained: Option<Arc<Sources>>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<Metrics>,
    pub about: About,
    /// The token of those who may ask whether an edge is purged; `None`: no one may.
    pub fresh: Option<Fresh>,
    /// What the endpoints for other programs need; `None`: there are none, whatever their address.
    pub hooks: Option<Hooks>,
    /// Set when the process has begun to end; it is not ready from then on.
    pub draining: Arc<AtomicBool>,
}

/// What the actors showed to all streams.
type Glance = Arc<Result<Observation, String>>;

/// What a request is answered from.
pub(super) struct Window {
    pub front: Front,
    actors: ArbiterHandle,
    turn_within: Duration,
    /// Whether the servers are ending.
    pub ending: watch::Receiver<bool>,
    pub streams: Arc<Streams>,
    explaining: Explaining,
    glance: Mutex<Option<(Instant, Glance)>>,
}

impl Window {
    /// Must be called on the thread of the actors.
    pub fn new(front: Front, turn_within: Duration, ending: watch::Receiver<bool>) -> Self {
        let (streams, explaining, glance) = (Arc::default(), Explaining::default(), Mutex::default());
        Self { front, actors: Arbiter::current(), turn_within, ending, streams, explaining, glance }
    }

    /// Whether the thread of the actors takes a turn. Asks no actor for anything: an actor may rightly wait for Redis, AWS or
    /// the API server, and none of them is a reason to be killed.
    pub async fn alive(&self) -> Result<&'static str, Vec<String>> {
        if !self.front.root.connected() {
            return Err(vec!["the root actor has ended".to_owned()]);
        }
        let (turned, turn) = tokio::sync::oneshot::channel();
        let spawned = self.actors.spawn(async move {
            // The one who asked may have stopped waiting.
            let _ = turned.send(());
        });
        match reply::within(self.turn_within, turn).await {
            Some(Ok(())) if spawned => Ok("alive"),
            Some(_) => Err(vec!["the event loop of the actors has ended".to_owned()]),
            None => Err(vec![format!("the event loop of the actors has not turned for {:?}", self.turn_within)]),
        }
    }

    /// Whether this process does its work, or why not.
    pub async fn ready(&self) -> Result<&'static str, Vec<String>> {
        if self.draining() {
            return Err(vec!["shutting down".to_owned()]);
        }
        let Observation { synced, blind, standing_by, mut troubles, .. } =
            self.observe().await.map_err(|reason| vec![reason])?;
        match blind {
            Some(why) if synced => return Err(vec![why]),
            None if synced => return Ok("ready"),
            Some(_) | None => {}
        }
        if standing_by.is_some() {
            return Ok("standing by");
        }
        troubles.insert(0, "the workloads of the cluster have not been listed yet".to_owned());
        Err(troubles)
    }

    /// What the actors show now.
    pub async fn observe(&self) -> Result<Observation, String> {
        match reply::within(OBSERVE_WITHIN, self.front.root.send(Observe)).await {
            Some(Ok(seen)) => Ok(seen),
            Some(Err(_)) if self.draining() => Err("shutting down".to_owned()),
            Some(Err(error)) => Err(format!("the root actor does not answer: {error}")),
            None => Err(format!("the root actor has not answered for {OBSERVE_WITHIN:?}")),
        }
    }

    /// What the actors show, at most a moment ago: the streams share it.
    pub async fn glance(&self) -> Glance {
        let mut last = self.glance.lock().await;
        if let Some((_, seen)) = last.as_ref().filter(|(at, _)| at.elapsed() < SHARED_FOR) {
            return Arc::clone(seen);
        }
        let seen = Arc::new(self.observe().await);
        *last = Some((Instant::now(), Arc::clone(&seen)));
        seen
    }

    /// What `explain` says of a workload, or why there is no answer now.
    pub async fn explained(&self, id: &WorkloadId) -> Result<String, String> {
        let Some(sources) = &self.front.explained else {
            return Err("This process does not answer explain; the command does.".to_owned());
        };
        // It asks ten things at once; on the stack of this thread there is no room for that.
        self.explaining.about(id, Box::pin(explained(sources, id))).await
    }

    /// The workloads that a page shows; none without an answer, which the page says elsewhere.
    pub async fn browse(&self, asked: &Asked) -> Listing {
        let browse = match asked {
            // Of those that need a look and do not move, the actors show no versions otherwise.
            Asked::Board => Browse::Search(Search { only: Only::Amber, ..Search::default() }),
            Asked::Workloads(search) => Browse::Search(search.clone()),
            Asked::Workload(id) => Browse::One(id.clone()),
            Asked::Pipelines | Asked::Repos | Asked::Group | Asked::History => return Listing::default(),
        };
        match reply::within(OBSERVE_WITHIN, self.front.browse.send(browse)).await {
            Some(Ok(listing)) => listing,
            Some(Err(_)) | None => Listing::default(),
        }
    }

    /// Makes something of everything a page is made from.
    pub fn view<T>(
        &self,
        asked: &Asked,
        seen: Result<&Observation, &String>,
        listing: &Listing,
        make: impl FnOnce(&View<'_>) -> T,
    ) -> T {
        let Front { metrics, about, clock, .. } = &self.front;
        let (moments, passages) = (self.moments(seen, listing), metrics.chronicle.read(|kept| passages(kept)));
        make(&View {
            about,
            asked,
            draining: self.draining(),
            seen,
            listing,
            moments: &moments,
            passages: &passages,
            last_purge: metrics.chronicle.last_purge(),
            now_ms: clock.wall_ms(),
        })
    }

    /// The notices of the workloads on a page.
    pub fn moments(&self, seen: Result<&Observation, &String>, listing: &Listing) -> Vec<Moment> {
        let mut shown: BTreeSet<&WorkloadId> = listing.rows.iter().map(|row| &row.summary.workload).collect();
        if let Ok(seen) = seen {
            shown.extend(seen.rollouts.iter().chain(&seen.recent).map(|summary| &summary.workload));
            shown.extend(seen.unwell.iter().map(|unwell| &unwell.workload));
        }
        self.front.metrics.chronicle.of(|id| shown.contains(id))
    }

    fn draining(&self) -> bool {
        self.front.draining.load(Ordering::Relaxed)
    }
}
