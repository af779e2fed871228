//! `allclear webhook resend NS/NAME`: asks the running allclear to send again what it gave up, or now what waits.
//!
//! The request is an annotation on what they are about, written with the caller's own rights. It names deliveries by their ids, so a receiver gets
//! the same `webhook-id` and the same bytes, and the caller needs no secret of any receiver. Nothing is sent from here.

use std::collections::{BTreeMap, BTreeSet};

use super::unknown;
use crate::adapters::kubernetes::desk::{self, Desk, RESEND, requested_at};
use crate::adapters::kubernetes::hand::{Hand, Marked};
use crate::adapters::kubernetes::objects::{PipelineKind, RepoKind};
use crate::cli::answer::{EXIT_FAILED, Outcome, invalid, refused};
use crate::cli::command_kind::{CommandKind, IdOf, is_meant, named};
use crate::looking::page::count;
use crate::looking::workloads::not_found;
use crate::looking::{Question, Section, Sources, peek};
use kernel::id::Subject;
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

/// Asks, at `at_ms` by the wall's clock; without a name in the question for all of its namespace, or of all. `configured` are the receivers that are known here. Exit codes: 0 asked for; 1 nothing, or not all of it; 2 refused.
pub async fn resend(
    (sources, question, hand): (&Sources, &Question, &Hand),
    configured: &[String],
    request: &Request,
    at_ms: i64,
) -> Outcome {
    let named = match question.name.as_deref() {
        Some(name) => subject(name, question, sources).await.map(Some),
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
        chosen.put(delivery, id.as_ref(), question.namespace.as_deref(), request);
    }
    if chosen.asked.is_empty() {
        return match &id {
            Some(id) => nothing(sources, id, &chosen).await,
            None => refused(&chosen.nothing("all")),
        };
    }
    let (mut out, mut err) = (String::new(), String::new());
    for (id, deliveries) in &chosen.asked {
        let unmet = before(sources, id).await.map(|before| unmet(&before, &all)).unwrap_or_default();
        match ask((sources, hand), id, deliveries, unmet, at_ms).await {
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
    if let Some(orders) = chosen.of_orders() {
        err.push_str(&refused(&orders).err);
    }
    let code = if err.is_empty() { 0 } else { EXIT_FAILED };
    Outcome { out, err, code }
}

async fn subject(name: &str, question: &Question, sources: &Sources) -> Result<Subject, String> {
    if is_meant::<PipelineKind>(name) {
        return named::<PipelineKind>(name).map(Subject::Pipeline).map_err(|error| error.to_string());
    }
    if is_meant::<RepoKind>(name) {
        return named::<RepoKind>(name).map(Subject::Repo).map_err(|error| error.to_string());
    }
    question.workload(sources).await.map(Subject::Workload)
}

/// A subject as people write it.
fn written(id: &Subject) -> String {
    match id {
        Subject::Workload(id) => id.display_name(),
        Subject::Pipeline(_) | Subject::Repo(_) => id.to_string(),
    }
}

/// What its annotation asks for already.
async fn before(sources: &Sources, id: &Subject) -> Option<Resend> {
    match id {
        Subject::Workload(id) => sources.cluster.workload(id).await.ok()??.tuning.asks.resend,
        Subject::Pipeline(id) => sources.desk.as_ref()?.one(id).await.ok()??.object.answers.resend?.ok(),
        Subject::Repo(id) => sources.repos.as_ref()?.one(id).await.ok()??.object.answers.resend?.ok(),
    }
}

/// Writes the annotation.
async fn mark((sources, hand): (&Sources, &Hand), id: &Subject, value: &str) -> Result<Marked, String> {
    match id {
        Subject::Workload(id) => hand.annotate(id, &[(RESEND, Some(value))]).await.map_err(|error| error.to_string()),
        Subject::Pipeline(id) => mark_ours(sources.desk.as_ref(), id, value).await,
        Subject::Repo(id) => mark_ours(sources.repos.as_ref(), id, value).await,
    }
}

async fn mark_ours<K: CommandKind>(desk: Option<&Desk<K>>, id: &IdOf<K>, value: &str) -> Result<Marked, String> {
    let off = || format!("{}s are switched off here: see {}.enabled", K::NAME, K::COMMAND);
    let desk = desk.ok_or_else(off)?;
    let Some(found) = desk.one(id).await.map_err(|error| error.to_string())? else { return Ok(Marked::Gone) };
    match desk.mark(&found, &[(RESEND, Some(value))], false).await.map_err(|error| error.to_string())? {
        desk::Marked::Done(_) => Ok(Marked::Done),
        // Another object took its place since.
        desk::Marked::Changed | desk::Marked::Gone => Ok(Marked::Gone),
    }
}

/// What is asked for, and what was seen beside it.
#[derive(Default)]
struct Chosen<'a> {
    asked: BTreeMap<Subject, Vec<&'a Delivery>>,
    waiting: Vec<&'a Delivery>,
    /// Given up orders to deploy, which are left out.
    orders: usize,
}

impl<'a> Chosen<'a> {
    fn put(&mut self, delivery: &'a Delivery, id: Option<&Subject>, namespace: Option<&str>, request: &Request) {
        let about = &delivery.subject;
        let is_meant =
            id.map_or_else(|| namespace.is_none_or(|wanted| wanted == about.namespace()), |wanted| wanted == about);
        // Whoever gets one deploys what it names, which may be long out of date.
        let is_order = delivery.kind == Kind::PromotionStarted && request.event != Some(Kind::PromotionStarted);
        match delivery.state {
            State::Dead { .. } if is_meant && is_order => self.orders += 1,
            State::Dead { .. } if is_meant => self.asked.entry(about.clone()).or_default().push(delivery),
            State::Pending if is_meant && request.now && !is_order => {
                self.asked.entry(about.clone()).or_default().push(delivery);
            }
            State::Pending if is_meant => self.waiting.push(delivery),
            State::Dead { .. } | State::Pending => {}
        }
    }

    /// Why there is nothing to ask for, about `subject`.
    fn nothing(&self, subject: &str) -> String {
        let why = match self.waiting.first() {
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
        match self.of_orders() {
            Some(orders) => format!("{why}; {orders}"),
            None => why,
        }
    }

    /// What is left out, and how to have it sent all the same.
    fn of_orders(&self) -> Option<String> {
        let orders = || count(self.orders, "promotion.started is left out", "promotion.started are left out");
        let why = "who gets one deploys what it names, and another promotion may have followed";
        (self.orders > 0).then(|| format!("{}: {why}; --event promotion.started sends it", orders()))
    }
}

async fn nothing(sources: &Sources, id: &Subject, chosen: &Chosen<'_>) -> Outcome {
    if let Subject::Workload(id) = id
        && chosen.waiting.is_empty()
        && matches!(sources.cluster.workload(id).await, Ok(None))
    {
        return refused(&not_found(sources, id).await);
    }
    refused(&chosen.nothing(&written(id)))
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
    marks: (&Sources, &Hand),
    id: &Subject,
    deliveries: &[&Delivery],
    unmet: BTreeSet<String>,
    at_ms: i64,
) -> Result<String, String> {
    let name = written(id);
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
    match mark(marks, id, &value).await? {
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

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::{NoticeId, PipelineId, WorkloadId};
    use notices::delivery::Content;

    fn given_up(subject: Subject, kind: Kind) -> Delivery {
        Delivery {
            id: "a1".to_owned(),
            notice: NoticeId("n1".to_owned()),
            kind,
            subject,
            hook: "ci".to_owned(),
            content: Content::Parameters,
            attempts: 10,
            created_ms: 0,
            state: State::Dead { reason: "given up".to_owned() },
            trouble: String::new(),
            asked: None,
            trace: String::new(),
        }
    }

    #[test]
    fn an_order_to_deploy_is_left_out_unless_it_is_named_and_is_no_word_about_another_object() {
        let (web, pipeline) = (WorkloadId::deployment("shop", "web").into(), PipelineId::new("shop", "web").into());
        let all = [
            given_up(Subject::clone(&web), Kind::PurgeCompleted),
            given_up(Subject::clone(&pipeline), Kind::PromotionStarted),
            given_up(Subject::clone(&pipeline), Kind::PromotionCompleted),
        ];
        let chosen = |id: Option<&Subject>, namespace: Option<&str>, event| {
            let mut chosen = Chosen::default();
            let request = Request { event, ..Request::default() };
            all.iter().for_each(|delivery| chosen.put(delivery, id, namespace, &request));
            (chosen.asked.values().map(Vec::len).sum::<usize>(), chosen.of_orders().is_some())
        };
        assert_eq!(chosen(Some(&web), None, None), (1, false), "of another object");
        assert_eq!(chosen(Some(&pipeline), None, None), (1, true));
        assert_eq!(chosen(Some(&pipeline), None, Some(Kind::PromotionStarted)), (2, false), "it is named");
        assert_eq!(chosen(None, None, None), (2, true));
        assert_eq!(chosen(None, Some("blog"), None), (0, false), "of another namespace");
    }
}
