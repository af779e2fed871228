//! What people and probes see over HTTP: health, metrics, the state as JSON and the status page.
//!
//! Only `GET` and `HEAD`, and nothing here changes anything: who reaches a port can look, not touch (but for `hooks`, which has a port of
//! its own, and is off unless configured). Any pod may reach the
//! pod's address, so what names workloads is shown on loopback only, unless configured otherwise (`doors`). Each server
//! has a thread of its own, so it still answers — and `/livez` says so — when the thread of the actors is blocked.
//!
//! Not for requests to the outside; that is `adapters::http`.

mod doors;
mod fresh;
mod guests;
pub mod hooks;
mod names;
mod page;
mod reply;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::Recipient;
use actix_rt::{Arbiter, ArbiterHandle};
use actix_web::http::{Method, StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;

use crate::actors::message::Observe;
use crate::actors::observation::Observation;
use crate::telemetry::{Form, Metrics};
pub use doors::{Addresses, Door, ListenError};
use doors::{Open, bind};
pub use fresh::Fresh;
use guests::Guest;
use hooks::Hooks;
pub use page::About;

/// How long the actors' event loop may take for one turn before the process counts as hung. A turn is microseconds; a
/// kubelet asks three times, ten seconds apart, before it acts.
const TURN_WITHIN: Duration = Duration::from_secs(2);

/// How long an observation may take. Root waits up to 2 s for each actor and then answers without it.
const OBSERVE_WITHIN: Duration = Duration::from_secs(3);

/// What the server shows.
#[derive(Clone)]
pub struct Front {
    /// Who knows everything: the root actor.
    pub root: Recipient<Observe>,
    /// The counts.
    pub metrics: Arc<Metrics>,
    /// Who this is.
    pub about: About,
    /// Who may ask whether an edge is fresh; `None`: nobody.
    pub fresh: Option<Fresh>,
    /// What the endpoints for other programs need; `None`: there are none, whatever their address.
    pub hooks: Option<Hooks>,
    /// Set when the process has begun to end; it is not ready from then on.
    pub draining: Arc<AtomicBool>,
}

/// The servers, running.
pub struct Serving {
    probes: Open,
    page: Open,
    hooks: Option<Open>,
}

/// Starts to listen and to serve. Must be called on the thread of the actors: its event loop is what `/livez` watches.
///
/// # Errors
/// If an address cannot be listened on; then the others accept no connection either.
#[expect(clippy::unused_async, reason = "async, so that it cannot be called where no event loop is")]
pub async fn serve(addresses: Addresses, front: Front) -> Result<Serving, ListenError> {
    listen(addresses, front, TURN_WITHIN)
}

fn listen(addresses: Addresses, front: Front, turn_within: Duration) -> Result<Serving, ListenError> {
    let metrics = front.metrics.clone();
    let porter = front
        .hooks
        .clone()
        .zip(addresses.hooks)
        .map(|(hooks, address)| bind(Door::Hooks, address, metrics.clone(), hooks::endpoints(hooks)));
    let porter = porter.transpose()?;
    let window = web::Data::new(Window { front, actors: Arbiter::current(), turn_within });
    let answering = move |app: &mut web::ServiceConfig| {
        app.app_data(window.clone()).default_service(web::to(answer));
    };
    let probes = bind(Door::Probes, addresses.probes, metrics.clone(), answering.clone())?;
    let page = bind(Door::Page, addresses.page, metrics, answering)?;
    Ok(Serving { probes: probes.open(), page: page.open(), hooks: porter.map(doors::Bound::open) })
}

impl Serving {
    /// Where it listens; the ports are the real ones, also if 0 was asked for.
    pub fn addresses(&self) -> Addresses {
        let hooks = self.hooks.as_ref().map(|hooks| hooks.address);
        Addresses { probes: self.probes.address, page: self.page.address, hooks }
    }

    /// Stops listening, lets the requests under way end, and ends.
    pub async fn stop(self) {
        let Self { probes, page, hooks } = self;
        let hooks = async {
            if let Some(hooks) = hooks {
                hooks.close().await;
            }
        };
        tokio::join!(probes.close(), page.close(), hooks);
    }
}

/// What a request is answered from.
struct Window {
    front: Front,
    actors: ArbiterHandle,
    turn_within: Duration,
}

/// Every path there is. No request here has a body.
async fn answer(
    request: HttpRequest,
    payload: web::Payload,
    window: web::Data<Window>,
    door: web::Data<Door>,
) -> HttpResponse {
    reply::ending(answered(&request, &window, **door).await, payload)
}

async fn answered(request: &HttpRequest, window: &Window, door: Door) -> HttpResponse {
    let _answering = request.conn_data::<Guest>().map(Guest::answering);
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return reply::method_not_allowed(request.method());
    }
    if let (Some(asked), Some(fresh)) = (request.path().strip_prefix(fresh::PATH), &window.front.fresh) {
        return fresh.answer(request, asked).await;
    }
    match (request.path(), door) {
        ("/livez", _) => health(window.alive().await),
        ("/readyz", _) => health(window.ready().await),
        ("/metrics", _) => metrics(request, &window.front.metrics),
        ("/api/v1/state", Door::Page) => state(&window.front.about, window.observe().await),
        ("/", Door::Page) => window.page().await,
        (path, door) => reply::not_found(path, door),
    }
}

fn metrics(request: &HttpRequest, metrics: &Metrics) -> HttpResponse {
    let accept: Vec<&str> = request.headers().get_all(header::ACCEPT).filter_map(|value| value.to_str().ok()).collect();
    let form = Form::wanted(&accept.join(","));
    reply::metrics(form.content_type(), metrics.text(form))
}

fn health(health: Result<&'static str, Vec<String>>) -> HttpResponse {
    match health {
        Ok(word) => reply::text(StatusCode::OK, format!("{word}\n")),
        Err(reasons) => reply::text(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", reasons.join("\n"))),
    }
}

/// The state as JSON.
#[derive(Serialize)]
struct State<'a> {
    version: &'static str,
    #[serde(flatten)]
    about: &'a About,
    #[serde(flatten)]
    seen: &'a Observation,
}

/// The state as `/api/v1/state` has it.
pub fn state_json(about: &About, seen: &Observation) -> serde_json::Value {
    let state = State { version: env!("CARGO_PKG_VERSION"), about, seen };
    // Names and numbers only: nothing in it fails to become JSON.
    serde_json::to_value(state).unwrap_or_default()
}

fn state(about: &About, seen: Result<Observation, String>) -> HttpResponse {
    match seen {
        Ok(seen) => reply::json(&State { version: env!("CARGO_PKG_VERSION"), about, seen: &seen }),
        Err(reason) => reply::text(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

impl Window {
    /// Whether the thread of the actors takes a turn. Asks no actor for anything: an actor may rightly wait for Redis, AWS or
    /// the API server, and none of them is a reason to be killed.
    async fn alive(&self) -> Result<&'static str, Vec<String>> {
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

    async fn ready(&self) -> Result<&'static str, Vec<String>> {
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

    async fn page(&self) -> HttpResponse {
        let seen = self.observe().await;
        let status = if seen.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        reply::page(status, page::render(&self.front.about, self.draining(), seen.as_ref()))
    }

    async fn observe(&self) -> Result<Observation, String> {
        match reply::within(OBSERVE_WITHIN, self.front.root.send(Observe)).await {
            Some(Ok(seen)) => Ok(seen),
            Some(Err(_)) if self.draining() => Err("shutting down".to_owned()),
            Some(Err(error)) => Err(format!("the root actor does not answer: {error}")),
            None => Err(format!("the root actor has not answered for {OBSERVE_WITHIN:?}")),
        }
    }

    fn draining(&self) -> bool {
        self.front.draining.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
