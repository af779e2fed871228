//! What people and probes see over HTTP: health, metrics, the state as JSON and the status page.
//!
//! Only `GET` and `HEAD`, and nothing here changes anything: who reaches a port can look, not touch (but for `hooks`, which has a port of
//! its own, and is off unless configured). Any pod may reach the
//! pod's address, so what names every workload is shown on loopback only, unless configured otherwise (`doors`); metrics name those that
//! need a look, which `allclear_workload_trouble` is for. Each server
//! has a thread of its own, so it still answers — and `/livez` says so — when the thread of the actors is blocked.
//!
//! Not for requests to the outside; that is `adapters::http`.

mod doors;
mod explains;
mod fresh;
mod guests;
pub mod hooks;
mod live;
mod names;
mod page;
mod reply;
mod streams;
mod window;

use std::time::Duration;

use actix_web::http::{Method, StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use tokio::sync::watch;

use crate::actors::browse::Listing;
use crate::actors::observation::Observation;
use crate::looking::About;
use crate::telemetry::chronicle::Moment;
use crate::telemetry::{Form, Metrics};
pub use doors::{Addresses, Door, ListenError};
use doors::{Open, bind};
pub use fresh::{Fresh, Verdict};
use guests::Guest;
use kernel::text;
use page::Asked;
use purge::rollouts::browse::{Only, Search, TEXT_CHARS_MAX};
pub use window::Front;
use window::Window;

/// How long the actors' event loop may take for one turn before the process counts as hung. A turn is microseconds; a
/// kubelet asks three times, ten seconds apart, before it acts.
const TURN_WITHIN: Duration = Duration::from_secs(2);

pub struct Serving {
    probes: Open,
    page: Open,
    hooks: Option<Open>,
    /// Ends the streams of events, which would be waited for.
    end: watch::Sender<bool>,
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
    let (end, ending) = watch::channel(false);
    let window = web::Data::new(Window::new(front, turn_within, ending));
    let answering = move |app: &mut web::ServiceConfig| {
        app.app_data(window.clone()).default_service(web::to(answer));
    };
    let probes = bind(Door::Probes, addresses.probes, metrics.clone(), answering.clone())?;
    let page = bind(Door::Page, addresses.page, metrics, answering)?;
    Ok(Serving { probes: probes.open(), page: page.open(), hooks: porter.map(doors::Bound::open), end })
}

impl Serving {
    /// Where it listens; the ports are the real ones, also if 0 was asked for.
    pub fn addresses(&self) -> Addresses {
        let hooks = self.hooks.as_ref().map(|hooks| hooks.address);
        Addresses { probes: self.probes.address, page: self.page.address, hooks }
    }

    /// Stops listening, lets the requests under way end, and ends.
    pub async fn stop(self) {
        let Self { probes, page, hooks, end } = self;
        end.send_replace(true);
        let hooks = async {
            if let Some(hooks) = hooks {
                hooks.close().await;
            }
        };
        tokio::join!(probes.close(), page.close(), hooks);
    }
}

/// Every path there is. No request here has a body.
async fn answer(
    request: HttpRequest,
    payload: web::Payload,
    window: web::Data<Window>,
    door: web::Data<Door>,
) -> HttpResponse {
    reply::ending(answered(&request, window, **door).await, payload)
}

async fn answered(request: &HttpRequest, window: web::Data<Window>, door: Door) -> HttpResponse {
    let answering = request.conn_data::<Guest>().map(Guest::answering);
    let gate = request.path().strip_prefix(fresh::PATH).zip(window.front.fresh.as_ref());
    let is_asked = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_gate = gate.is_some() && request.method() == Method::POST;
    if !(is_asked || is_gate) {
        return reply::method_not_allowed(request.method());
    }
    if let Some((asked, fresh)) = gate {
        return fresh.answer(request, asked).await;
    }
    match (request.path(), door) {
        ("/livez", _) => health(window.alive().await),
        ("/readyz", _) => health(window.ready().await),
        ("/metrics", _) => metrics(request, &window.front.metrics),
        ("/api/v1/state", Door::Page) => state(&window, window.observe().await),
        (path, Door::Page) => match (path.strip_prefix(live::PATH), path) {
            (Some(rest), _) => events(request, window, asked(rest, request.query_string()), answering),
            (None, path) => shown(&window, asked(path, request.query_string()), path).await,
        },
        (path, door) => reply::not_found(path, door),
    }
}

fn metrics(request: &HttpRequest, metrics: &Metrics) -> HttpResponse {
    let accept: Vec<&str> = request.headers().get_all(header::ACCEPT).filter_map(|value| value.to_str().ok()).collect();
    let form = Form::wanted(&accept.join(","));
    reply::metrics(form.content_type(), metrics.text(form))
}

/// Which page a path is about.
fn asked(path: &str, query: &str) -> Option<Asked> {
    if path == "/workloads" {
        return Some(Asked::Workloads(search(query)));
    }
    if let Some(page) = Asked::named(path) {
        return Some(page);
    }
    names::workload(path.strip_prefix(page::link::WORKLOADS)?).map(Asked::Workload)
}

/// What is searched for, by the part of an address after its question mark. What cannot have been meant is left out: a search changes
/// nothing.
pub fn search(query: &str) -> Search {
    let mut search = Search::default();
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match key.as_ref() {
            "q" => search.text = text::first(&value, TEXT_CHARS_MAX).to_owned(),
            "only" => search.only = Only::named(&value),
            // People count pages from 1.
            "page" => search.page = value.parse::<u32>().map_or(0, |page| page.saturating_sub(1) as usize),
            _ => {}
        }
    }
    search
}

async fn shown(window: &Window, asked: Option<Asked>, path: &str) -> HttpResponse {
    let Some(asked) = asked else { return reply::not_found(path, Door::Page) };
    let explained = async {
        match &asked {
            Asked::Workload(id) => Some(window.explained(id).await),
            _ => None,
        }
    };
    let (seen, listing, explained) = tokio::join!(window.observe(), window.browse(&asked), explained);
    let status = match (&seen, &asked) {
        (Err(_), _) => StatusCode::SERVICE_UNAVAILABLE,
        (Ok(_), Asked::Workload(_)) if listing.rows.is_empty() => StatusCode::NOT_FOUND,
        (Ok(_), _) => StatusCode::OK,
    };
    let page = window.view(&asked, seen.as_ref(), &listing, |view| page::render(view, explained.as_ref()));
    reply::page(status, &page)
}

fn events(
    request: &HttpRequest,
    window: web::Data<Window>,
    asked: Option<Asked>,
    answering: Option<guests::Answering>,
) -> HttpResponse {
    let Some(asked) = asked else { return reply::not_found(request.path(), Door::Page) };
    match window.streams.enter(answering) {
        // The head alone says nothing of what would follow.
        _ if request.method() == Method::HEAD => reply::text(StatusCode::OK, String::new()),
        Some(seat) => reply::events(live::stream(window, asked, seat)),
        None => reply::no_stream(streams::STREAMS_MAX),
    }
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
    /// This process's notices of the workloads above, with times, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    told: Vec<Moment>,
}

/// The state as `/api/v1/state` has it.
pub fn state_json(about: &About, seen: &Observation) -> serde_json::Value {
    let state = State { version: env!("CARGO_PKG_VERSION"), about, seen, told: Vec::new() };
    // Names and numbers only: nothing in it fails to become JSON.
    serde_json::to_value(state).unwrap_or_default()
}

fn state(window: &Window, seen: Result<Observation, String>) -> HttpResponse {
    let about = &window.front.about;
    match seen {
        Ok(seen) => {
            let told = window.moments(Ok(&seen), &Listing::default());
            reply::json(&State { version: env!("CARGO_PKG_VERSION"), about, seen: &seen, told })
        }
        Err(reason) => reply::text(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

#[cfg(test)]
mod tests;
