//! Webhooks: which hooks a notice is for, and one attempt at sending.
//!
//! URL, headers, parameters and keys stay in here. When and how often something is sent is decided in
//! `notices::delivery`; what may be connected to is `adapters::http`'s part.

mod body;
mod cdevents;
mod chat;
mod cloud;
mod fill;
mod flux;
mod format;
mod marked;
mod rehearsal;
pub(super) mod sign;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method};

use crate::adapters::http::{Answer, Client, Error, Request, header_value, retry_after};
use crate::config::{Hook, HookMethod};
use kernel::id::Subject;
use notices::delivery::{Content, Delivery, Reply};
use notices::notice::{Kind, Notice};
use purge::ports::{Clock, Notifier, Receiver};

pub use rehearsal::{Heard, Rehearsal, TEST_HEADER, Unmarked};

/// Every configured hook, and the client to call them with.
pub struct Webhooks {
    /// In the order of the file, each with the name deliveries know it by.
    hooks: Vec<(String, Hook)>,
    client: Client,
    clock: Arc<dyn Clock>,
}

impl Webhooks {
    /// Hooks whose name is not unique are distinguished by number: the second `web` is `web#2`. So a delivery that
    /// waits stays with its hook when the hook's address changes, but not when hooks of one name change places.
    pub fn new(hooks: Vec<Hook>, client: Client, clock: Arc<dyn Clock>) -> Self {
        let mut named: Vec<(String, Hook)> = Vec::with_capacity(hooks.len());
        let mut taken = BTreeSet::new();
        for hook in hooks {
            let mut name = hook.name.clone();
            let mut number = 1_usize;
            // Ends: there are fewer names taken than numbers.
            while !taken.insert(name.clone()) {
                number += 1;
                name = format!("{}#{number}", hook.name);
            }
            named.push((name, hook));
        }
        Self { hooks: named, client, clock }
    }

    /// Every hook, by the name that deliveries know it by, in the order of the file.
    pub fn hooks(&self) -> impl Iterator<Item = (&str, &Hook)> {
        self.hooks.iter().map(|(name, hook)| (name.as_str(), hook))
    }

    /// The schedule of each hook, for the outbox.
    pub fn schedules(&self) -> BTreeMap<String, Vec<Duration>> {
        self.hooks.iter().map(|(name, hook)| (name.clone(), hook.schedule.clone())).collect()
    }

    /// One request to a hook: by what `id` a receiver knows it, whom it is about, and what it says.
    fn request(&self, hook: &Hook, id: &str, subject: &str, said: &Content) -> Result<Request, Error> {
        let mut url = hook.url.expose().clone();
        let mut headers = HeaderMap::new();
        let body = match hook.method {
            HookMethod::Get => {
                if !hook.parameters.is_empty() {
                    let pairs = hook.parameters.iter().map(|(name, value)| (name, value.expose()));
                    url.query_pairs_mut().extend_pairs(pairs);
                }
                String::new()
            }
            HookMethod::Post | HookMethod::Put | HookMethod::Patch | HookMethod::Delete => {
                format::travelling(hook, id, subject, said, &mut headers)?
            }
        };
        for (name, value) in &hook.headers {
            headers.insert(header_name(name)?, header_value(value.expose())?);
        }
        let timestamp_s = self.clock.wall_ms().div_euclid(1_000);
        sign::sign(&mut headers, &hook.secrets, id, timestamp_s, body.as_bytes())?;
        Ok(Request { method: method(hook.method), url, headers, body: Bytes::from(body), timeout: hook.timeout })
    }
}

#[async_trait]
impl Notifier for Webhooks {
    fn hears(&self, subject: &Subject, kind: Kind) -> bool {
        self.hooks.iter().any(|(_, hook)| is_about(hook, subject, kind))
    }

    fn deliveries(&self, notice: &Notice) -> Vec<Delivery> {
        let subscribed = self.hooks.iter().filter(|(_, hook)| subscribes(hook, notice));
        subscribed
            .filter_map(|(name, hook)| Some(Delivery::new(notice, name, format::of_notice(hook, notice)?)))
            .collect()
    }

    async fn send(&self, delivery: &Delivery) -> Reply {
        let Some((_, hook)) = self.hooks.iter().find(|(name, _)| *name == delivery.hook) else {
            return Reply::UnknownHook;
        };
        let sent =
            match self.request(hook, delivery.notice.0.as_str(), &delivery.subject.to_string(), &delivery.content) {
                Ok(request) => self.client.send(request).await,
                Err(error) => Err(error),
            };
        match sent {
            Ok(answer) => reply(&answer, self.clock.wall_ms()),
            Err(Error::Failed(reason)) => Reply::Failed { reason },
            // Neither passes before the configuration changes.
            Err(Error::Blocked(reason) | Error::Unusable(reason)) => Reply::Blocked { reason },
        }
    }

    fn receivers(&self) -> Vec<Receiver> {
        let receiver = |(name, hook): &(String, Hook)| Receiver {
            name: name.clone(),
            events: hook.events.iter().copied().collect(),
            workloads: hook.workloads.iter().map(ToString::to_string).collect(),
        };
        self.hooks.iter().map(receiver).collect()
    }
}

fn subscribes(hook: &Hook, notice: &Notice) -> bool {
    // The old program had given up on a late one by then (decision 17).
    let late = notice.about.mentions().is_some_and(|mentions| mentions.late);
    is_about(hook, &notice.about.subject(), notice.kind) && !(hook.is_old_form && late)
}

fn is_about(hook: &Hook, subject: &Subject, kind: Kind) -> bool {
    hook.events.contains(&kind) && hook.workloads.iter().any(|pattern| pattern.matches(subject))
}

fn reply(answer: &Answer, wall_ms: i64) -> Reply {
    match answer.status {
        status @ 200..=299 => Reply::Delivered { status },
        410 => Reply::Gone,
        status @ (429 | 503) => Reply::Refused { status, retry_after: retry_after(&answer.headers, wall_ms) },
        status => Reply::Refused { status, retry_after: None },
    }
}

fn method(method: HookMethod) -> Method {
    match method {
        HookMethod::Get => Method::GET,
        HookMethod::Post => Method::POST,
        HookMethod::Put => Method::PUT,
        HookMethod::Patch => Method::PATCH,
        HookMethod::Delete => Method::DELETE,
    }
}

fn header_name(name: &str) -> Result<HeaderName, Error> {
    name.parse().map_err(|_| Error::Unusable("a header has a name that is none".to_owned()))
}
