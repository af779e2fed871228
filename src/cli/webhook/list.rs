//! `allclear webhook list`: the receivers, what each wants, and what is on its way to it.
//!
//! By the configuration that is here and the ledger; or, with `--server`, as the running allclear has it, which knows the last result of each
//! receiver and when the next attempt is.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::ELSEWHERE;
use crate::actors::observation::{LastSeen, ReceiverSeen};
use crate::adapters::webhook::Webhooks;
use crate::cli::answer::{EXIT_FAILED, Outcome, Output, answer, refused};
use crate::cli::status::remote::state;
use crate::config::Hook;
use crate::looking::page::{Page, count, time};
use crate::looking::{Section, Sources, peek};
use notices::delivery::{Delivery, State};

#[derive(Clone, Debug, Default, Serialize)]
struct Listed {
    /// Where the receivers and the deliveries are from, in words.
    from: String,
    receivers: Vec<Receiver>,
    deliveries: Vec<OnTheWay>,
    /// What is missing, in words.
    troubles: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Receiver {
    name: String,
    /// The configuration names it; otherwise only deliveries do.
    configured: bool,
    /// How it is called, where that is known: method, address without what may be secret, format, signed or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    called: Option<Called>,
    events: Vec<String>,
    workloads: Vec<String>,
    /// Deliveries on their way, and dead letters; `None` where they are not known.
    waiting: Option<usize>,
    given_up: Option<usize>,
    /// How the last attempt ended, as the running allclear knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastSeen>,
}

#[derive(Clone, Debug, Serialize)]
struct Called {
    method: &'static str,
    address: String,
    format: &'static str,
    signatures: usize,
}

/// One delivery; as the status page has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OnTheWay {
    id: String,
    hook: String,
    workload: String,
    kind: String,
    attempts: u32,
    given_up: bool,
    state: String,
}

/// As the running allclear has it. Exit codes: 0 shown, 1 not reached.
pub async fn of_server(server: &Url, output: Output) -> Outcome {
    #[derive(Deserialize)]
    struct Seen {
        #[serde(default)]
        receivers: Option<Vec<ReceiverSeen>>,
        #[serde(default)]
        deliveries: Vec<OnTheWay>,
        #[serde(default)]
        standing_by: Option<String>,
    }
    let seen: Value = match state(server, None).await {
        Ok(seen) => seen,
        Err(why) => return refused(&why),
    };
    let Ok(Seen { receivers, deliveries, standing_by }) = serde_json::from_value(seen) else {
        return refused(
            "the running allclear says its webhooks in another form than this release knows; use one version of both",
        );
    };
    let mut listed = Listed { from: "the running allclear".to_owned(), ..Listed::default() };
    if let Some(working) = standing_by {
        listed.troubles.push(format!("this replica stands by while {working} works: ask that one for its webhooks"));
    } else if receivers.is_none() {
        listed.troubles.push("it is of a release that does not say its receivers".to_owned());
    }
    let known = |ReceiverSeen { name, events, workloads, last }| Receiver {
        name,
        configured: true,
        events,
        workloads,
        last,
        ..Receiver::default()
    };
    listed.receivers = receivers.unwrap_or_default().into_iter().map(known).collect();
    listed.count(deliveries);
    answer(&listed, output, 0)
}

/// By the configuration that is here and the ledger. Exit codes: 0 shown, 1 what is on its way is not known.
pub async fn of_configuration(
    webhooks: &Webhooks,
    file: Option<&Path>,
    looked: Result<Sources, String>,
    output: Output,
) -> Outcome {
    let receivers = webhooks.hooks().map(|(name, hook)| configured(name, hook)).collect();
    let mut listed = Listed { receivers, ..Listed::default() };
    let from = file.map_or_else(String::new, |file| format!("receivers by {}, ", file.display()));
    if listed.receivers.is_empty() {
        listed.troubles.push(format!("no webhook is configured here (webhooks.file, WEBHOOKS_CONFIG); {ELSEWHERE}"));
    }
    let (place, deliveries) = match looked {
        Ok(sources) => {
            let deliveries = deliveries(&sources).await;
            (sources.ledger_place, deliveries)
        }
        Err(why) => ("the ledger".to_owned(), Err(why)),
    };
    listed.from = format!("{from}deliveries in {place}");
    let known = deliveries.is_ok();
    match deliveries {
        Ok(deliveries) => listed.count(deliveries.iter().map(on_the_way).collect()),
        Err(why) => listed.troubles.push(format!("what is on its way is not known: {why}")),
    }
    answer(&listed, output, if known { 0 } else { EXIT_FAILED })
}

/// Those of the ledger. Without any, it is asked whether there is a ledger at all.
async fn deliveries(sources: &Sources) -> Result<Vec<Delivery>, String> {
    let deliveries = sources.ledger.deliveries().await.map_err(|error| error.to_string())?;
    match deliveries.is_empty().then_some(peek(sources)) {
        Some(peeking) => match peeking.await {
            Section::Known(_) => Ok(deliveries),
            Section::Missing { missing } => Err(missing),
        },
        None => Ok(deliveries),
    }
}

fn configured(name: &str, hook: &Hook) -> Receiver {
    Receiver {
        name: name.to_owned(),
        configured: true,
        called: Some(Called {
            method: hook.method.name(),
            address: hook.url.to_string(),
            format: hook.format.name(),
            signatures: hook.secrets.len(),
        }),
        events: hook.events.iter().map(|kind| kind.name().to_owned()).collect(),
        workloads: hook.workloads.iter().map(ToString::to_string).collect(),
        ..Receiver::default()
    }
}

fn on_the_way(delivery: &Delivery) -> OnTheWay {
    let since = time(delivery.created_ms);
    let state = match (&delivery.state, delivery.trouble.as_str()) {
        (State::Dead { reason }, _) => format!("given up: {reason}; of {since}"),
        (State::Pending, "") => format!("on its way since {since}"),
        (State::Pending, trouble) => format!("on its way since {since}; the last attempt: {trouble}"),
    };
    OnTheWay {
        id: delivery.id.clone(),
        hook: delivery.hook.clone(),
        workload: delivery.subject.to_string(),
        kind: delivery.kind.name().to_owned(),
        attempts: delivery.attempts,
        given_up: delivery.is_dead(),
        state,
    }
}

impl Listed {
    /// Counts the deliveries of each receiver. One that only deliveries name is a receiver too.
    fn count(&mut self, mut deliveries: Vec<OnTheWay>) {
        let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for OnTheWay { hook, given_up, .. } in &deliveries {
            let (waiting, dead) = counts.entry(hook).or_default();
            *(if *given_up { dead } else { waiting }) += 1;
        }
        for receiver in &mut self.receivers {
            (receiver.waiting, receiver.given_up) = (Some(0), Some(0));
        }
        for (name, (waiting, given_up)) in counts {
            let (waiting, given_up) = (Some(waiting), Some(given_up));
            match self.receivers.iter_mut().find(|receiver| receiver.name == name) {
                Some(receiver) => (receiver.waiting, receiver.given_up) = (waiting, given_up),
                None => {
                    self.receivers.push(Receiver { name: name.to_owned(), waiting, given_up, ..Receiver::default() });
                }
            }
        }
        deliveries.sort_by_key(|delivery| !delivery.given_up);
        self.deliveries = deliveries;
    }
}

impl Receiver {
    fn lines(&self) -> Vec<String> {
        let Self { name: _, configured, called, events, workloads, waiting, given_up, last } = self;
        let mut lines = Vec::new();
        if let Some(Called { method, address, format, signatures }) = called {
            let signed =
                if *signatures == 0 { "unsigned".to_owned() } else { count(*signatures, "signature", "signatures") };
            lines.push(format!("{method} {address}, {format}, {signed}"));
        }
        if *configured {
            lines.push(format!("gets {} of {}", events.join(", "), workloads.join(", ")));
        } else {
            lines.push("not configured here; deliveries name it".to_owned());
        }
        lines.extend(waiting.zip(*given_up).map(|counts| match counts {
            (0, 0) => "nothing is on its way, and nothing was given up".to_owned(),
            (waiting, given_up) => format!("{waiting} on their way, {given_up} given up"),
        }));
        lines.extend(last.iter().map(|LastSeen { at_ms, words }| format!("last attempt {}: {words}", time(*at_ms))));
        lines
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, receivers, deliveries, troubles } = self;
        let mut page = Page { f };
        page.title(&format!("webhooks: {from}"))?;
        for receiver in receivers {
            page.part(&receiver.name, receiver.lines())?;
        }
        let line = |OnTheWay { hook, workload, kind, attempts, state, .. }: &OnTheWay| {
            let workload = workload.strip_prefix("deployment/").unwrap_or(workload);
            format!("{hook}: {kind} of {workload}, {}; {state}", count(*attempts as usize, "attempt", "attempts"))
        };
        let (dead, waiting): (Vec<&OnTheWay>, Vec<&OnTheWay>) = deliveries.iter().partition(|each| each.given_up);
        page.part("On their way", waiting.into_iter().map(line))?;
        page.part("Given up", dead.iter().copied().map(line))?;
        if !dead.is_empty() {
            let cure = "mend the receiver, then `allclear webhook resend shop/web` or --all has them sent again";
            page.part("What to do", [cure.to_owned()])?;
        }
        page.part("Troubles", troubles.iter().cloned())
    }
}
