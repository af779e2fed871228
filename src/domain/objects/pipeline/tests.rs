//! Stories of one Pipeline: staging, prod in two targets, and a world that does what it is asked.

mod answers;
mod choice;
mod freezes;
mod gates;
mod graph;
mod kept;
mod moves;
mod past;
mod remark;
mod rollback;
mod sets;
mod view;

use std::time::Duration;

use super::spec::{Advance, EnvironmentSpec, Gates, PromotionSpec, Purged, Strategy, Until};
use super::status::{EnvironmentStatus, Phase, Question as Asks, TargetStatus};
use super::*;
use crate::apps::app::{AppKind, ClusterKey, Present};
use crate::asked::Opening;
use crate::gates::{Freeze, VerdictSource};
use crate::history::Entry;
use crate::kept::{Answers, Finalizers};
use crate::owned::{Effect as Own, Event as Life};
use crate::pipeline::options::{Lacks, RequestOptions};
use crate::pipeline::proposal::{ForgeKind, Repository, Request};
use kernel::id::{PipelineId, Revision};
use kernel::names::selector::Labels;
use notices::notice::Kind;

const MINUTE: Duration = Duration::from_mins(1);

fn target(namespace: &str) -> TargetKey {
    let app = AppKind::new("apps/v1", "Deployment");
    TargetKey::new(ClusterKey::Here, app, namespace, "web")
}

fn at(revision: &str) -> Sight {
    Sight::Present(Present { uid: "1".to_owned(), unready: None, revision: Ok(Revision(revision.to_owned())) })
}

fn unready(revision: &str) -> Sight {
    let why = Some("1 of 2 pods available".to_owned());
    Sight::Present(Present { uid: "1".to_owned(), unready: why, revision: Ok(Revision(revision.to_owned())) })
}

fn environment(name: &str, targets: &[&str], manual: bool) -> EnvironmentSpec {
    EnvironmentSpec {
        name: Environment(name.to_owned()),
        after: Vec::new(),
        targets: targets.iter().map(|namespace| target(namespace)).collect(),
        promotion: Some(PromotionSpec { manual, strategy: Strategy::Notification }),
        gates: Gates::default(),
        suspended: false,
        purged: None,
        stalled_after: Duration::from_hours(1),
        parts: Vec::new(),
        rollback: None,
    }
}

/// Each after the one before it.
fn in_line(mut environments: Vec<EnvironmentSpec>) -> Vec<EnvironmentSpec> {
    for place in 1..environments.len() {
        environments[place].after = vec![environments[place - 1].name.clone()];
    }
    environments
}

fn spec(manual: bool) -> Spec {
    Spec {
        environments: in_line(vec![
            environment("staging", &["staging"], false),
            environment("prod", &["prod-a", "prod-b"], manual),
        ]),
        advance: Advance::Latest,
        suspended: None,
        labels: Labels::new(),
        passed_over: Vec::new(),
        apps: Vec::new(),
    }
}

fn by_request() -> Spec {
    let mut spec = spec(false);
    let repository = Repository {
        forge: ForgeKind::GitHub,
        url: "https://git.example.com/shop/web".to_owned(),
        base: "main".to_owned(),
        path: None,
        secret: None,
    };
    spec.environments[1].promotion =
        Some(PromotionSpec { manual: false, strategy: Strategy::PullRequest(repository, Box::default()) });
    spec
}

/// Whether the edge of an environment is purged for a revision.
fn edge(spec: &Spec, name: &str, revision: &str, fresh: Result<(), Stale>) -> Event {
    let own = spec.environments.iter().find(|own| own.name.0 == name).expect("an environment");
    Event::EdgeSeen(own.name.clone(), judge::edge_topic(own, &Revision(revision.to_owned())), fresh)
}

fn prod() -> Environment {
    Environment("prod".to_owned())
}

/// The object, its machine, and a world that stores, reads and tells. What it cannot do by itself is in `asked`.
struct Story {
    machine: Pipeline,
    now: Timestamp,
    object: Object,
    truth: Sights,
    /// Those of the cluster, which its watch knows.
    freezes: Freezes,
    asked: Vec<Effect>,
    told: Vec<(Kind, String)>,
    remarks: Vec<remark::Said>,
    past: Vec<Entry>,
    writes: usize,
    /// The CRD keeps what is written.
    whole: bool,
    /// A watch shows what was written before the answer comes.
    is_seen_first: bool,
    /// No write is answered well.
    failing: bool,
    /// No fresh look is answered by itself.
    holds_rechecks: bool,
}

/// What the older controller's CRD keeps of a status.
fn pruned(mut status: Status) -> Status {
    for environment in status.environments.values_mut() {
        let targets = std::mem::take(&mut environment.targets).into_iter();
        let targets = targets.map(|target| TargetStatus { uid: None, ..target }).collect();
        *environment = EnvironmentStatus { targets, ..EnvironmentStatus::default() };
    }
    let Status { observed_generation, conditions, environments, .. } = status;
    Status { observed_generation, conditions, environments, ..Status::default() }
}

impl Story {
    /// Everything is at revision 1, and written down.
    fn new(spec: Spec) -> Self {
        let object = Object {
            id: PipelineId::new("shop", "web"),
            uid: "uid".to_owned(),
            generation: 1,
            version: "1".to_owned(),
            spec: Ok(spec),
            answers: Answers::default(),
            status: Status::default(),
            deleting: false,
            finalizers: Finalizers::default(),
        };
        let truth = ["staging", "prod-a", "prod-b"].map(|namespace| (target(namespace), at("1"))).into();
        let now = Timestamp::from_millis(0);
        let machine = Pipeline::new(0, object.clone());
        let mut story = Self {
            machine,
            now,
            object,
            truth,
            freezes: Freezes::none(),
            asked: Vec::new(),
            told: Vec::new(),
            remarks: Vec::new(),
            past: Vec::new(),
            writes: 0,
            whole: true,
            is_seen_first: false,
            failing: false,
            holds_rechecks: false,
        };
        story.feed(Event::PeersRestarted);
        story.show_all();
        story.pass(MINUTE);
        story
    }

    fn feed(&mut self, event: Event) {
        let effects = self.machine.step_and_catch_up(self.now, event);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            assert_eq!(self.machine.breaks(&effect), [], "{effect:?}");
            match effect {
                Effect::Object(Own::Store(status, over)) => {
                    assert_eq!(over, self.object.version, "written over what it has not seen");
                    self.writes += 1;
                    if self.failing {
                        self.feed(Event::Object(Life::StoreFailed("forbidden".to_owned())));
                        continue;
                    }
                    let status = if self.whole { *status } else { pruned(*status) };
                    let before = std::mem::replace(&mut self.object.status, status);
                    self.remark(&before);
                    self.object.version = format!("w{}", self.writes);
                    if self.is_seen_first {
                        self.see();
                    }
                    self.feed(Event::Object(Life::Stored { version: self.object.version.clone(), whole: self.whole }));
                }
                Effect::Recheck(environment, seq, targets) if !self.holds_rechecks => {
                    let fresh = targets.into_iter().map(|target| (target.clone(), self.truth[&target].clone()));
                    let fresh = fresh.collect();
                    self.feed(Event::Rechecked(environment, seq, fresh));
                }
                Effect::Object(Own::Tell(notice)) => {
                    self.told.push((notice.kind, notice.message.clone()));
                    self.feed(Event::Object(Life::Told(notice.id)));
                }
                Effect::Follow(targets) => {
                    if !targets.is_empty() {
                        self.feed(Event::Frozen(self.freezes.clone()));
                    }
                    self.asked.push(Effect::Follow(targets));
                }
                other => self.asked.push(other),
            }
        }
    }

    fn show(&mut self, namespace: &str, sight: Sight) {
        if !matches!(sight, Sight::Unknown(_)) {
            self.truth.insert(target(namespace), sight.clone());
        }
        self.feed(Event::Reported(vec![(target(namespace), sight)]));
    }

    fn show_all(&mut self) {
        let all = self.truth.clone().into_iter().collect();
        self.feed(Event::Reported(all));
    }

    fn see(&mut self) {
        self.feed(Event::Object(Life::Seen(Box::new(self.object.clone()))));
    }

    fn change(&mut self, change: impl FnOnce(&mut Object)) {
        change(&mut self.object);
        self.object.version.push('x');
        self.see();
    }

    /// Time passes; what becomes due meanwhile is done when it is due.
    fn pass(&mut self, time: Duration) {
        let end = self.now.after(time);
        while let Some(due) = self.machine.next_deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            let effects = self.machine.tick(self.now);
            self.perform(effects);
            assert!(self.machine.next_deadline().is_none_or(|next| next > self.now), "a deadline that no tick moves");
        }
        self.now = end;
    }

    /// Promotion `seq` into prod, as it is ordered where the spec says now.
    fn order(&self, seq: u64) -> Box<Order> {
        let spec = self.object.spec.as_ref().expect("a spec");
        let how = spec.environments.iter().find(|own| own.name == prod()).and_then(|own| own.promotion.as_ref());
        Box::new(Order {
            id: String::new(),
            pipeline: self.object.id.clone(),
            environment: prod(),
            seq: PromotionSeq(seq),
            from: None,
            revision: Revision(String::new()),
            repository: how.and_then(PromotionSpec::repository).expect("a repository").clone(),
            started_at: 0,
            approved_by: None,
            chosen: None,
            apps: Vec::new(),
            options: RequestOptions::default(),
            lacks: Lacks::new(),
            overwrite: false,
        })
    }

    /// The question about prod's calendar, or about its verdict.
    fn topic(&self) -> Topic {
        let asked = self.asked.iter().rev().find_map(|asked| match asked {
            Effect::Ask(_, Ask::Calendar(topic, ..) | Ask::Verdict(topic, _)) | Effect::SeeEdge(_, topic) => {
                Some(*topic)
            }
            _ => None,
        });
        asked.expect("a question")
    }

    fn phase(&self) -> Option<Phase> {
        Some(self.object.status.environment(&prod())?.promotion.as_ref()?.phase)
    }

    fn ticket(&self) -> Option<String> {
        Some(self.object.status.environment(&prod())?.waiting.as_ref()?.ticket.clone())
    }

    fn count(&self, kind: Kind) -> usize {
        self.told.iter().filter(|(told, _)| *told == kind).count()
    }

    fn condition(&self, reason: &str) -> Option<&str> {
        let found = self.object.status.conditions.iter().find(|condition| condition.reason == reason);
        found.map(|condition| condition.message.as_str())
    }
}

#[test]
fn a_revision_moves_on_when_every_target_is_there() {
    let mut story = Story::new(spec(false));
    assert_eq!(story.condition("ReconciliationSucceeded"), Some("All clusters checked"));
    story.show("staging", unready("2"));
    story.pass(MINUTE);
    assert_eq!(
        story.condition("EnvironmentNotReady"),
        Some("Waiting for all targets to be ready: staging: staging/web is not ready: 1 of 2 pods available")
    );
    story.show("staging", at("2"));
    assert_eq!(story.phase(), Some(Phase::Landed));
    story.show("prod-a", at("2"));
    story.pass(MINUTE);
    assert_eq!(story.condition("RollingOut"), Some("prod: prod-b/web is at 1, another target at 2"));
    story.show("prod-b", at("2"));
    assert_eq!(story.phase(), Some(Phase::Completed));
    story.pass(Duration::from_hours(48));
    assert_eq!((story.count(Kind::PromotionStarted), story.count(Kind::PromotionCompleted)), (1, 1));
    assert_eq!(story.told.len(), 2, "{:?}", story.told);
    assert_eq!(story.condition("RollingOut"), None);
}

#[test]
fn a_life_that_finds_nothing_new_writes_nothing() {
    let mut story = Story::new(spec(false));
    story.machine = Pipeline::new(0, story.object.clone());
    story.writes = 0;
    story.feed(Event::PeersRestarted);
    story.show("staging", at("1"));
    story.show_all();
    story.pass(Duration::from_hours(2));
    assert_eq!((story.writes, story.told.len()), (0, 0));
}

// Faults: PF14
#[test]
fn an_old_yes_is_nothing_for_a_new_revision() {
    let mut story = Story::new(spec(true));
    story.show("staging", at("2"));
    let old = story.ticket();
    story.show("staging", at("3"));
    assert!(old.is_some() && story.ticket().is_some() && story.ticket() != old);
    story.change(|object| object.answers.approve = old);
    story.pass(MINUTE);
    assert_eq!(story.phase(), Some(Phase::Waiting));
    let new = story.ticket();
    story.change(|object| {
        object.answers = Answers { approve: new, by: Some("anna".to_owned()), ..Answers::default() };
    });
    let known =
        story.object.status.environment(&prod()).and_then(|known| known.promotion.clone()).expect("a promotion");
    assert_eq!((known.revision.0.as_str(), known.phase), ("3", Phase::Landed));
    assert_eq!(known.approval.and_then(|approval| approval.by).as_deref(), Some("anna"));
}

#[test]
fn a_long_wait_is_told_once_and_names_the_target() {
    let mut story = Story::new(spec(false));
    story.show("staging", at("2"));
    story.show("prod-a", at("2"));
    story.show("prod-b", Sight::Unknown("no answer for 30 s".to_owned()));
    story.pass(Duration::from_mins(59));
    assert_eq!(story.count(Kind::PromotionStalled), 0);
    story.pass(Duration::from_hours(30));
    let stalled: Vec<_> = story.told.iter().filter(|(kind, _)| *kind == Kind::PromotionStalled).collect();
    assert_eq!(stalled.len(), 1);
    assert_eq!(stalled[0].1, "prod waits: prod: prod-b/web cannot be read: no answer for 30 s");
    assert!(story.condition("WaitingTooLong").is_some());
    story.show("prod-b", at("2"));
    story.pass(MINUTE);
    assert_eq!((story.phase(), story.condition("WaitingTooLong")), (Some(Phase::Completed), None));
}

#[test]
fn an_environment_that_was_set_back_by_hand_is_left_alone_until_a_yes() {
    let mut story = Story::new(spec(false));
    story.show("staging", at("2"));
    for namespace in ["prod-a", "prod-b"] {
        story.show(namespace, at("2"));
    }
    for namespace in ["prod-a", "prod-b"] {
        story.show(namespace, at("1"));
    }
    story.pass(Duration::from_hours(2));
    assert_eq!((story.phase(), story.count(Kind::PromotionStarted)), (Some(Phase::Completed), 1));
    assert_eq!(story.condition("Left"), Some(Asks::Left.words()));
    let ticket = story.ticket();
    story.change(|object| object.answers.approve = ticket);
    assert_eq!((story.phase(), story.count(Kind::PromotionStarted)), (Some(Phase::Landed), 2));
}

#[test]
fn a_closed_request_is_not_made_again_without_a_yes() {
    let mut story = Story::new(by_request());
    story.show("staging", at("2"));
    assert!(matches!(&story.asked[..], [.., Effect::Propose(order)] if order.seq == PromotionSeq(1)));
    let request = Request {
        url: "https://git.example.com/pull/7".to_owned(),
        number: 7,
        commit: None,
        lacks: Default::default(),
    };
    story.feed(Event::Proposed(story.order(1), Proposed::Open(request)));
    assert_eq!(story.phase(), Some(Phase::Proposed));
    story.asked.clear();
    story.pass(2 * MINUTE);
    assert!(matches!(&story.asked[..], [Effect::LookAtProposal(_, 7)]), "{:?}", story.asked);
    story.feed(Event::ProposalSeen(story.order(1), RequestState::Closed));
    story.asked.clear();
    story.pass(Duration::from_hours(2));
    assert_eq!((story.phase(), story.asked.len()), (Some(Phase::Abandoned), 0));
    let ticket = story.ticket();
    story.change(|object| object.answers.approve = ticket);
    assert!(matches!(&story.asked[..], [Effect::Propose(order)] if order.seq == PromotionSeq(2)));
}

// Faults: PF7
#[test]
fn a_request_that_nothing_follows_is_closed_also_if_nobody_said_that_it_was_made() {
    let mut story = Story::new(by_request());
    story.show("staging", at("2"));
    story.asked.clear();
    // No answer has arrived when staging returns to prod's revision.
    story.show("staging", at("1"));
    assert!(matches!(&story.asked[..], [Effect::Withdraw(order, None, _)] if order.seq == PromotionSeq(1)));
    assert_eq!(story.phase(), Some(Phase::Withdrawn));
    story.feed(Event::WithdrawFailed(story.order(1), "no answer".to_owned(), false));
    story.asked.clear();
    story.pass(MINUTE);
    assert!(matches!(&story.asked[..], [Effect::Withdraw(..)]), "tried again");
    story.feed(Event::Withdrawn(story.order(1)));
    story.pass(MINUTE);
    let known = story.object.status.environment(&prod()).expect("prod");
    assert_eq!((known.request.as_ref(), &known.closing[..]), (None, &[][..]));
}

#[test]
fn a_spec_that_cannot_be_used_is_told_once_and_moves_nothing() {
    let mut story = Story::new(spec(false));
    story.change(|object| object.spec = Err("spec.environments[1].gates.windows[0].timeZone: no such zone".to_owned()));
    story.show("staging", at("2"));
    story.pass(Duration::from_hours(3));
    assert_eq!((story.phase(), story.count(Kind::PipelineFaulty)), (None, 1));
    assert!(story.condition("InvalidSpec").is_some_and(|words| words.contains("no such zone")));
}

#[test]
fn after_a_restore_that_refused_writes_show_numbers_go_on() {
    let mut story = Story::new(spec(true));
    story.show("staging", at("2"));
    let backup = story.object.clone();
    story.show("staging", at("3"));
    story.pass(MINUTE);
    let given = story.object.status.environment(&prod()).expect("prod").seq;
    story.object = Object { version: "restored".to_owned(), ..backup };
    for _ in 0..2 {
        story.feed(Event::Object(Life::Conflicted(Box::new(story.object.clone()))));
    }
    story.pass(MINUTE);
    let known = story.object.status.environment(&prod()).expect("prod");
    assert!(known.seq > given, "{:?} was given out before", known.seq);
}

// Faults: PF12
#[test]
fn after_a_restore_numbers_go_on_and_an_old_yes_is_void() {
    let mut story = Story::new(spec(true));
    story.show("staging", at("2"));
    let backup = story.object.clone();
    let old = story.ticket();
    story.show("staging", at("3"));
    story.pass(MINUTE);
    story.object = Object { version: "restored".to_owned(), ..backup };
    story.see();
    story.pass(Duration::from_secs(2));
    assert!(matches!(&story.asked[..], [.., Effect::Object(Own::Look)]));
    story.feed(Event::Object(Life::Looked(Some(Box::new(story.object.clone())))));
    story.pass(Duration::from_secs(2));
    story.feed(Event::Object(Life::Looked(Some(Box::new(story.object.clone())))));
    assert_eq!(story.count(Kind::PipelineFaulty), 1);
    story.pass(MINUTE);
    let known = story.object.status.environment(&prod()).expect("prod");
    assert!(known.seq > PromotionSeq(2), "{:?} was given out before", known.seq);
    story.change(|object| object.answers.approve = old);
    story.pass(MINUTE);
    assert_eq!(story.phase(), Some(Phase::Waiting));
}
