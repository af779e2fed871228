//! One Pipeline for people: where each revision is, what it waits for, and what comes next. The page, the API and the commands show
//! the same thing.
//!
//! Nothing is decided here. Reasons are the machine's own, from its status, or those of [`judge`] over the same sights.

mod words;

use serde::{Deserialize, Serialize};

use crate::apps::app::{NoRevision, Present, Sight, TargetKey};
use crate::kept::unjudged;
use crate::pipeline::choice;
use crate::pipeline::judge::{self, Sights};
use crate::pipeline::places;
use crate::pipeline::show;
use crate::pipeline::spec::{EnvironmentSpec, Object, Spec};
use crate::pipeline::status::{ConditionKind, Ended, EnvironmentStatus, Promotion, Status, TargetStatus, Waiting};
use crate::status::ConditionView;
use kernel::id::{Environment, PipelineId, PromotionSeq, Revision};

/// A Pipeline's state for a person. Times are milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    pub id: PipelineId,
    /// A person stopped it, for this reason.
    pub suspended: Option<String>,
    /// The fault of its spec: nothing is judged then.
    pub faulty: Option<String>,
    /// Why this view is older than the spec, if it is.
    pub unjudged: Option<String>,
    /// The revision of the first environment, once it is settled.
    pub latest: Option<Revision>,
    /// As in its status.
    pub conditions: Vec<ConditionView>,
    /// Each after all that it follows. Without a usable spec: those that are remembered, by name.
    pub environments: Vec<EnvironmentView>,
    /// Environments without a target, which are passed over.
    pub passed_over: Vec<Environment>,
    /// Ended promotions, newest first.
    pub history: Vec<EndedView>,
    /// The targets are shown as they are seen now; otherwise as the status has them.
    pub live: bool,
}

impl View {
    /// A person must act.
    pub fn is_stalled(&self) -> bool {
        self.conditions.iter().any(|one| one.kind == ConditionKind::Stalled.name() && one.holds == Some(true))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentView {
    pub name: Environment,
    /// Those just before it, where that is not the one that is shown before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Environment>,
    /// The revisions of its targets, each once; empty if none is known.
    pub revisions: Vec<Revision>,
    /// Why its targets are not all ready at one revision; `None` if they are.
    pub unsettled: Option<String>,
    /// The obstacle to a revision, in one sentence; `None` if there is none.
    pub waits: Option<String>,
    /// The next step, or the remedy, in one sentence.
    pub next: String,
    /// How a revision gets into it, and what must hold before that, in words; the first environment has none.
    pub gates: Vec<String>,
    pub promotion: Option<PromotionView>,
    /// The question to a person.
    pub question: Option<QuestionView>,
    /// The pull request that is open for it.
    pub request: Option<RequestView>,
    /// In the order of the spec.
    pub targets: Vec<TargetView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromotionView {
    /// Its number in the environment.
    pub seq: PromotionSeq,
    pub revision: Revision,
    /// The environment's revision when it began.
    pub from: Option<Revision>,
    /// How far it has got.
    pub phase: String,
    pub open: bool,
    /// Its wait or its end; empty before it was judged.
    pub message: String,
    /// When its soak ends, while it waits for that.
    pub soak_ends_ms: Option<i64>,
    /// When it was started.
    pub started_ms: Option<i64>,
    /// The approver, as stated, and the time. Empty if no name was given.
    pub approved: Option<(String, i64)>,
    /// Who chose it, and how it relates to what was there, if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionView {
    /// `Approval`, `Again`, `Left` or `Overwrite`.
    pub kind: String,
    /// The question in words.
    pub words: String,
    /// The ticket that an answer has to name.
    pub ticket: String,
    pub revision: Revision,
    pub since_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestView {
    pub url: String,
    pub number: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetView {
    /// The way people say it: `prod/web`, or `eu-1/prod/web` in another cluster.
    pub name: String,
    pub revision: Option<Revision>,
    /// Whether it is ready.
    pub ready: bool,
    /// Why it is not ready, or cannot be read.
    pub error: Option<String>,
}

/// A promotion that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedView {
    pub environment: Environment,
    pub seq: PromotionSeq,
    pub revision: Revision,
    pub outcome: String,
    pub by: Option<String>,
    pub at_ms: i64,
    /// Who chose it, and how it related to what was there, if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
}

/// Puts a Pipeline into words: the object, what it is known to remember, and what its targets say now. Without that, what they said
/// when the status was written.
pub fn view(object: &Object, status: &Status, live: Option<&Sights>) -> View {
    let (suspended, passed_over, environments) = match &object.spec {
        Ok(spec) => {
            let sights = live.cloned().unwrap_or_else(|| remembered(spec, status));
            let scene = words::Scene { object, spec, status, sights: &sights };
            let indices = 0..spec.environments.len();
            let environments = indices.filter_map(|index| scene.environment(index)).collect();
            (spec.suspended.clone(), spec.passed_over.clone(), environments)
        }
        Err(_) => {
            (None, Vec::new(), status.environments.iter().map(|(name, known)| unspecified(name, known)).collect())
        }
    };
    View {
        id: object.id.clone(),
        suspended,
        faulty: object.spec.as_ref().err().cloned(),
        unjudged: unjudged(status.serial, status.observed_generation, object.generation),
        latest: status.latest.clone(),
        conditions: status.conditions.iter().map(ConditionView::from).collect(),
        environments,
        passed_over,
        history: status.history.iter().rev().map(ended).collect(),
        live: live.is_some(),
    }
}

/// The states of targets in the status, as sights. A status of another spec has none of them.
pub(super) fn remembered(spec: &Spec, status: &Status) -> Sights {
    let mut sights = Sights::new();
    for environment in &spec.environments {
        let known = status.environment(&environment.name).map(|known| known.targets.as_slice()).unwrap_or_default();
        if known.len() != environment.members().count() {
            continue;
        }
        for (target, said) in environment.members().zip(known) {
            if said.cluster_app_ref.cluster_ref == target.cluster.reference() {
                sights.insert(target.clone(), sight(target, said));
            }
        }
    }
    places::see_places(spec, status, &mut sights);
    sights
}

fn sight(target: &TargetKey, said: &TargetStatus) -> Sight {
    let error = said.message.clone().or_else(|| said.error.clone());
    // A CRD that drops our fields keeps no UID; that an app was read shows in what it says.
    let read = said.uid.clone().or_else(|| (error.is_none() && said.revision.is_some()).then(String::new));
    match read {
        Some(uid) => {
            let why = || error.clone().unwrap_or_else(|| "the status does not say why".to_owned());
            let revision = said.revision.clone().ok_or_else(|| NoRevision::Unusable(why()));
            Sight::Present(Present { uid, unready: (!said.ready).then(why), revision })
        }
        None if error.as_deref() == Some(&show::not_found(target)) => Sight::Absent,
        None => Sight::Unknown(error.unwrap_or_else(|| "it was not looked at yet".to_owned())),
    }
}

fn targets(environment: &EnvironmentSpec, sights: &Sights) -> Vec<TargetView> {
    let shown = |target: &TargetKey| {
        let TargetStatus { ready, revision, error, message, .. } = show::shown(target, sights.get(target));
        TargetView { name: target.display_name(), revision, ready, error: message.or(error) }
    };
    environment.members().map(shown).collect()
}

fn revisions(environment: &EnvironmentSpec, sights: &Sights) -> Vec<Revision> {
    let mut all = Vec::new();
    for revision in environment.targets.iter().filter_map(|target| sights.get(target).and_then(Sight::revision)) {
        if !all.contains(revision) {
            all.push(revision.clone());
        }
    }
    all
}

fn unsettled(environment: &EnvironmentSpec, sights: &Sights) -> Option<String> {
    judge::settled(environment, sights).err().map(|obstacle| obstacle.to_string())
}

/// An environment of an object whose spec cannot be used: only what is remembered of it.
fn unspecified(name: &Environment, known: &EnvironmentStatus) -> EnvironmentView {
    EnvironmentView {
        name: name.clone(),
        after: Vec::new(),
        revisions: known.reached.iter().cloned().collect(),
        unsettled: None,
        waits: Some("the spec cannot be used".to_owned()),
        next: "it goes on when the spec is mended".to_owned(),
        gates: Vec::new(),
        promotion: known.promotion.as_ref().map(|promotion| self::promotion(promotion, None)),
        question: question(known),
        request: request(known),
        targets: Vec::new(),
    }
}

fn promotion(promotion: &Promotion, soak_ends_ms: Option<i64>) -> PromotionView {
    PromotionView {
        seq: promotion.seq,
        revision: promotion.revision.clone(),
        from: promotion.from.clone(),
        phase: promotion.phase.name().to_owned(),
        open: promotion.phase.is_open(),
        message: promotion.message.clone(),
        soak_ends_ms,
        started_ms: promotion.started_ms,
        approved: promotion.approval.as_ref().map(|yes| (yes.by.clone().unwrap_or_default(), yes.at_ms)),
        chosen: promotion.choice(),
    }
}

fn question(known: &EnvironmentStatus) -> Option<QuestionView> {
    let Waiting { revision, ticket, question, since_ms } = known.waiting.as_ref()?;
    Some(QuestionView {
        kind: question.name().to_owned(),
        words: known.asked()?,
        ticket: ticket.clone(),
        revision: revision.clone(),
        since_ms: *since_ms,
    })
}

/// How a revision gets into an environment, and what must hold before that; a person's yes is not among it.
pub(super) fn gates_of(environment: &EnvironmentSpec, status: &Status) -> (String, Vec<String>) {
    let mut all = words::gates(environment, status.holds(ConditionKind::Unheard)).into_iter();
    let how = all.next().unwrap_or_default();
    (how, all.filter(|gate| gate != words::YES).collect())
}

/// The pull request, if it is known to be there.
fn request(known: &EnvironmentStatus) -> Option<RequestView> {
    let request = known.request.as_ref()?;
    Some(RequestView { url: request.url.clone(), number: request.number? })
}

fn ended(ended: &Ended) -> EndedView {
    EndedView {
        environment: ended.environment.clone(),
        seq: ended.seq,
        revision: ended.revision.clone(),
        outcome: ended.outcome.name().to_owned(),
        by: ended.by.clone(),
        at_ms: ended.at_ms,
        chosen: ended.chosen.as_ref().map(|relation| choice::words(ended.by.as_deref(), ended.rollback, relation)),
    }
}
