//! `allclear webhook resend NS/NAME`: asks the running allclear to send again what it gave up, or now what waits.
//!
//! The request is an annotation on the workload, written with the caller's own rights. It names deliveries by their ids, so a receiver gets
//! the same `webhook-id` and the same bytes, and the caller needs no secret of any receiver. Nothing is sent from here.

use std::collections::{BTreeMap, BTreeSet};

use super::unknown;
use crate::adapters::kubernetes::desk::{RESEND, requested_at};
use crate::adapters::kubernetes::hand::{Hand, Marked};
use crate::cli::answer::{EXIT_FAILED, Outcome, invalid, refused};
use crate::looking::page::count;
use crate::looking::workloads::not_found;
use crate::looking::{Question, Section, Sources, peek};
use kernel::id::{Subject, WorkloadId};
use notices::delivery::{Delivery, RESEND_MAX, Resend, State};
use notices::notice::Kind;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Only for this receiver.
    pub receiver: Option<String>,
    pub event: Option<Kind>,
    /// Also what still waits for its next attempt.
    pub now: bool,
}

/// Asks, at `at_ms` by the wall's clock; without a name in the question for all workloads of its namespace, or of all. `configured` are
/// the receivers that are known here. Exit codes: 0 asked for; 1 nothing, or not all of it; 2 refused.
pub async fn resend(
    (sources, question, hand): (&Sources, &Question, &Hand),
    configured: &[String],
    request: &Request,
    at_ms: i64,
) -> Outcome {
    let named = match question.name.as_deref() {
        Some(name) => workload(name, question, sources).await.map(Some),
        None => Ok(None),
    };
    let id = match named {
        Ok(id) => id,
        Err(why) => return invalid(&why),
    };
    if let Section::Missing { missing } = peek(sources).await {
        return refused(&missing);
    }
    let all = match sources.ledger.deliveries().await {
        Ok(all) => all,
        Err(error) => return refused(&error.to_string()),
    };
    if let Some(receiver) = &request.receiver {
        let named = all.iter().map(|delivery| delivery.hook.as_str());
        let known: BTreeSet<&str> = configured.iter().map(String::as_str).chain(named).collect();
        if !known.contains(receiver.as_str()) && !known.is_empty() {
            return unknown(receiver, known);
        }
    }
    let is_meant = |delivery: &&Delivery| {
        request.receiver.as_ref().is_none_or(|receiver| *receiver == delivery.hook)
            && request.event.is_none_or(|event| event == delivery.kind)
    };
    let mut chosen = Chosen::default();
    for delivery in all.iter().filter(is_meant) {
        chosen.put(delivery, id.as_ref(), question.namespace.as_deref(), request.now);
    }
    if chosen.asked.is_empty() {
        return match &id {
            Some(id) => nothing(sources, id, &chosen).await,
            None => refused(&chosen.nothing("all workloads")),
        };
    }
    let (mut out, mut err) = (String::new(), String::new());
    for (id, deliveries) in &chosen.asked {
        let before = sources.cluster.workload(id).await.ok().flatten().and_then(|workload| workload.tuning.asks.resend);
        let unmet = before.map(|before| unmet(&before, &all)).unwrap_or_default();
        match ask(hand, id, deliveries, unmet, at_ms).await {
            Ok(words) => out.push_str(&words),
            Err(why) => err.push_str(&refused(&why).err),
        }
    }
    if !out.is_empty() {
        out.push_str(
            "the running allclear sends it within seconds, or later where the receiver asked for a rest (Retry-After); \
             `allclear webhook list` shows what is still on its way\n",
        );
    }
    if chosen.others > 0 {
        err.push_str(&refused(&chosen.of_others()).err);
    }
    let code = if err.is_empty() { 0 } else { EXIT_FAILED };
    Outcome { out, err, code }
}

async fn workload(name: &str, question: &Question, sources: &Sources) -> Result<WorkloadId, String> {
    if ["pipeline/", "pipelines/", "repo/", "repos/"].iter().any(|kind| name.starts_with(kind)) {
        return Err(
            "only what is about a workload can be asked for again, as shop/web; events of Pipelines and Repos cannot"
                .to_owned(),
        );
    }
    question.workload(sources).await
}

/// What is asked for, and what was seen beside it.
#[derive(Default)]
struct Chosen<'a> {
    asked: BTreeMap<WorkloadId, Vec<&'a Delivery>>,
    waiting: Vec<&'a Delivery>,
    /// Given up, and not about a workload.
    others: usize,
}

impl<'a> Chosen<'a> {
    fn put(&mut self, delivery: &'a Delivery, id: Option<&WorkloadId>, namespace: Option<&str>, now: bool) {
        let about = match &delivery.subject {
            Subject::Workload(about) => about,
            Subject::Pipeline(_) | Subject::Repo(_) => {
                let in_scope = id.is_none() && namespace.is_none_or(|wanted| wanted == delivery.subject.namespace());
                self.others += usize::from(in_scope && delivery.is_dead());
                return;
            }
        };
        let is_meant =
            id.map_or_else(|| namespace.is_none_or(|wanted| wanted == about.namespace), |wanted| wanted == about);
        match delivery.state {
            State::Dead { .. } if is_meant => self.asked.entry(about.clone()).or_default().push(delivery),
            State::Pending if is_meant && now => self.asked.entry(about.clone()).or_default().push(delivery),
            State::Pending if is_meant => self.waiting.push(delivery),
            State::Dead { .. } | State::Pending => {}
        }
    }

    /// Why there is nothing to ask for, about `subject`.
    fn nothing(&self, subject: &str) -> String {
        let mut why = match self.waiting.first() {
            Some(first) => format!(
                "{subject}: nothing was given up; {} and tried again without a request: {}; --now has that done now",
                count(self.waiting.len(), "delivery is on its way", "deliveries are on their way"),
                words(first)
            ),
            None => format!(
                "{subject}: nothing to send again: no such delivery waits or was given up, and what a receiver has taken is not kept; \
                 `allclear purge` makes a new purge, which is a new event"
            ),
        };
        if self.others > 0 {
            why.push_str("; ");
            why.push_str(&self.of_others());
        }
        why
    }

    fn of_others(&self) -> String {
        format!("{} of Pipelines and Repos cannot be asked for again", count(self.others, "event", "events"))
    }
}

async fn nothing(sources: &Sources, id: &WorkloadId, chosen: &Chosen<'_>) -> Outcome {
    match sources.cluster.workload(id).await {
        Ok(None) if chosen.waiting.is_empty() => refused(&not_found(sources, id).await),
        Ok(_) | Err(_) => refused(&chosen.nothing(&id.display_name())),
    }
}

/// What an earlier request asked for and has not met yet: ours takes its place in the annotation.
fn unmet(before: &Resend, deliveries: &[Delivery]) -> BTreeSet<String> {
    let is_unmet = |delivery: &&Delivery| {
        before.deliveries.contains(&delivery.id) && delivery.asked.as_deref() != Some(before.at.as_str())
    };
    deliveries.iter().filter(is_unmet).map(|delivery| delivery.id.clone()).collect()
}

/// Writes the request: the oldest first, where there are too many for one.
async fn ask(
    hand: &Hand,
    id: &WorkloadId,
    deliveries: &[&Delivery],
    unmet: BTreeSet<String>,
    at_ms: i64,
) -> Result<String, String> {
    let name = id.display_name();
    let mut oldest = deliveries.to_vec();
    oldest.sort_by_key(|delivery| delivery.created_ms);
    let more = oldest.len().saturating_sub(RESEND_MAX);
    oldest.truncate(RESEND_MAX);
    let mut ids: BTreeSet<String> = oldest.iter().map(|delivery| delivery.id.clone()).collect();
    for id in unmet {
        if ids.len() < RESEND_MAX {
            ids.insert(id);
        }
    }
    let value = Resend { at: requested_at(at_ms), deliveries: ids }.to_string();
    match hand.annotate(id, &[(RESEND, Some(value.as_str()))]).await.map_err(|error| error.to_string())? {
        Marked::Done => {}
        Marked::Gone => {
            return Err(format!("{name} is not there any more to ask it at, so its deliveries stay"));
        }
    }
    let mut out: String =
        oldest.iter().map(|delivery| format!("{name}: asked allclear to send again {}\n", words(delivery))).collect();
    if more > 0 {
        out.push_str(&format!(
            "{name}: {more} more, for one request has {RESEND_MAX} at most; run it again when `allclear webhook list` no longer shows \
             these\n"
        ));
    }
    Ok(out)
}

/// `purge.completed to ci (given up after 10 attempts, the last one: answered 500)`.
fn words(delivery: &Delivery) -> String {
    let Delivery { kind, hook, attempts, trouble, .. } = delivery;
    let state = match &delivery.state {
        State::Dead { reason } => reason.clone(),
        State::Pending if trouble.is_empty() => "not tried yet".to_owned(),
        State::Pending => format!("{}, the last one: {trouble}", count(*attempts as usize, "attempt", "attempts")),
    };
    format!("{} to {hook} ({state})", kind.name())
}
