//! A revision that a person chooses for an environment, whatever those before it are at: an older one, or one that was in none of them.
//!
//! ```text
//! a person writes ENV/REVISION with a yes to its ticket    what is open ends, and a promotion of REVISION begins: the yes is used
//! while that is open                                       it rests on the environment alone, and what comes next waits for it
//! what it was chosen over                                  promoted only after a yes, until the environment is done at something newer
//! ```
//!
//! Revisions are never ordered. Newer is what the environment never had, and was not to have, when the choice was taken. The number in a
//! ticket is that of the last choice, so that other promotions into the environment do not void an answer.
//!
//! Not for what a person reads before saying yes; that is `choosing`.

use crate::kept::Answers;
use crate::pipeline::ask::{approval, ticket};
use crate::pipeline::judge::{self, Sights};
use crate::pipeline::promote::{BY, Beginning, Pending};
use crate::pipeline::spec::{Advance, EnvironmentSpec, Object, PromotionSpec, Spec, names};
use crate::pipeline::status::{Cause, Choice, EnvironmentStatus, OVER_MAX, Phase, Promotion, Question, Status};
use crate::pipeline::{Effect, Pipeline};
use kernel::id::{Environment, Revision};
use kernel::machine::{Timestamp, millis};

/// The rest of the question of a ticket.
const CHOSEN: &str = "chosen";

/// Everything that a choice is judged by.
pub(super) struct Place<'a> {
    pub(super) spec: &'a Spec,
    pub(super) index: usize,
    pub(super) status: &'a Status,
    pub(super) sights: &'a Sights,
}

/// What a person has to answer, so that this revision is promoted into the environment. `status` is what the object holds, and `draft`
/// what it should.
pub(super) fn ticket_of(
    uid: &str,
    name: &Environment,
    (status, draft): (&Status, &Status),
    revision: &Revision,
) -> String {
    // Before the first choice it is that of the last promotion, which a release that knows no choices keeps: what it dropped is not
    // chosen again.
    let chosen = draft.environment(name).and_then(|known| known.chosen.as_ref()).map(|chosen| chosen.seq);
    let promoted = || status.environment(name).map(|known| known.seq).unwrap_or_default();
    let seq = chosen.unwrap_or_else(promoted);
    ticket(uid, name, seq, revision, Question::Approval, CHOSEN)
}

/// The environment and the revision that the answers name.
fn named(answers: &Answers) -> Option<(Environment, Revision)> {
    let (environment, revision) = answers.promote.as_deref()?.split_once('/')?;
    Some((Environment(environment.to_owned()), Revision(revision.to_owned())))
}

/// As a person writes it on the object.
pub(super) fn written(environment: &Environment, revision: &Revision) -> String {
    format!("{environment}/{revision}")
}

/// The choice on an object that this status knows nothing of.
pub(super) fn untaken(object: &Object, of: (&Status, &Status)) -> Option<(Environment, Revision)> {
    let (name, revision) = named(&object.answers)?;
    let ticket = ticket_of(&object.uid, &name, of, &revision);
    object.answers.approve(&ticket).then_some((name, revision))
}

/// Who chose it, and how it relates to what was there; for people.
pub fn words(by: Option<&str>, rollback: Option<Cause>, relation: &str) -> String {
    match rollback {
        Some(_) => relation.to_owned(),
        None => format!("chosen by {}: {relation}", by.unwrap_or("a person who gave no name")),
    }
}

impl Place<'_> {
    fn own(&self) -> Option<&EnvironmentSpec> {
        self.spec.environments.get(self.index)
    }

    fn known(&self) -> Option<&EnvironmentStatus> {
        self.status.environment(&self.own()?.name)
    }

    /// How a revision relates to what the environment has. Only what was seen is said.
    pub(super) fn relation(&self, revision: &Revision) -> String {
        let has = self.own().and_then(|own| judge::said(own, self.sights));
        match (has, self.own()) {
            (Some(has), Some(own)) if has == revision => return format!("{} is at it", own.name),
            (Some(has), _) if self.is_older(revision, has) => return format!("goes back from {has}"),
            _ => {}
        }
        let before = self.spec.before(self.index);
        if before.is_empty() {
            return "nothing is known of where it was".to_owned();
        }
        if let Some(is) = before.iter().find(|before| judge::settled(before, self.sights) == Ok(revision)) {
            return format!("{} is at it", is.name);
        }
        if let Some(was) = before.iter().find(|before| self.was_before(before, revision)) {
            return format!("{} was at it", was.name);
        }
        let were = if before.len() > 1 { "were" } else { "was" };
        format!("{} {were} not seen at it", names(before))
    }

    /// Whether the environment, or those before it, had this one before the other.
    fn is_older(&self, revision: &Revision, has: &Revision) -> bool {
        let (Some(own), Some(known)) = (self.own(), self.known()) else { return false };
        if known.is_before(revision, has) {
            return true;
        }
        if known.is_before(has, revision) {
            return false;
        }
        let flowed = |of: &Revision| {
            let ended =
                self.status.history.iter().filter(|ended| ended.environment == own.name && ended.chosen.is_none());
            ended
                .filter(|ended| ended.outcome == Phase::Completed && ended.revision == *of)
                .map(|ended| ended.seq)
                .max()
        };
        let replaced = |promotion: &Promotion| promotion.from.as_ref() == Some(revision) && promotion.revision == *has;
        flowed(revision).zip(flowed(has)).is_some_and(|(one, other)| one < other)
            || known.promotion.as_ref().is_some_and(|promotion| promotion.chosen.is_none() && replaced(promotion))
    }

    /// Whether an environment before, or those before that one, are known to have been at it.
    fn was_before(&self, before: &EnvironmentSpec, revision: &Revision) -> bool {
        let own = self.own().map(|own| &own.name);
        let known = self.known();
        let together = known.and_then(|known| known.trail.as_ref()).filter(|_| self.spec.advance == Advance::Latest);
        let trail = together.or_else(|| known?.trail_of(before));
        let before = &before.name;
        let flowed =
            self.status.history.iter().filter(|ended| ended.revision == *revision && ended.outcome == Phase::Completed);
        trail.is_some_and(|trail| trail.revisions.contains(revision))
            || self.status.environment(before).is_some_and(|before| before.reached.as_ref() == Some(revision))
            || flowed
                .into_iter()
                .any(|ended| ended.environment == *before || Some(&ended.environment) == own && ended.chosen.is_none())
    }

    /// What the environment has, had or was to have, as far as that is known: oldest first, without the one that is chosen.
    fn over(&self, candidate: Option<&Revision>, revision: &Revision) -> Vec<Revision> {
        let known = self.known();
        let earlier = known.and_then(|known| known.chosen.as_ref()).into_iter().flat_map(|chosen| &chosen.over);
        let trail = known.into_iter().flat_map(EnvironmentStatus::trails).flat_map(|trail| &trail.revisions);
        let reached = known.and_then(|known| known.reached.as_ref());
        let ended =
            self.status.history.iter().filter(|ended| self.own().is_some_and(|own| own.name == ended.environment));
        let ended = ended.map(|ended| &ended.revision);
        let promoted = known.and_then(|known| known.promotion.as_ref()).into_iter();
        let promoted = promoted.flat_map(|promotion| promotion.from.iter().chain([&promotion.revision]));
        let has = self.own().into_iter().flat_map(|own| judge::revisions(own, self.sights));
        // Those before it may be on their way to another one, or not be seen just now.
        let before = self.spec.ancestors(self.index);
        let on_the_way = before.iter().flat_map(|before| judge::revisions(before, self.sights));
        let remembered = before.iter().filter_map(|before| self.status.environment(&before.name));
        let remembered = remembered.flat_map(|before| &before.targets).filter_map(|target| target.revision.as_ref());
        let before = remembered.chain(on_the_way);
        let mut over: Vec<Revision> = Vec::new();
        for one in
            earlier.chain(ended).chain(trail).chain(reached).chain(before).chain(has).chain(promoted).chain(candidate)
        {
            if one != revision {
                over.retain(|known| known != one);
                over.push(one.clone());
            }
        }
        over.drain(..over.len().saturating_sub(OVER_MAX));
        over
    }
}

impl Pipeline {
    /// Takes what a person has chosen for an environment, if that is new. It begins at once, whatever keeps it from starting: then the
    /// yes is used, and all that follows is remembered. Returns true while it cannot be taken yet: nothing else is to begin meanwhile.
    pub(super) fn take_choice(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        name: &Environment,
        candidate: Option<&Revision>,
    ) -> bool {
        let of = (&self.own.status.durable, &self.own.status.draft);
        let untaken = untaken(&self.own.object, of).filter(|(of, _)| of == name);
        let place = spec.environments.iter().position(|one| one.name == *name);
        let own = place.and_then(|index| spec.environments.get(index));
        // Nobody can have said yes to what no app can be at: commands refuse it.
        let has_form = |revision: &Revision| own.is_none_or(|own| spec.may_have(own, revision).is_ok());
        let Some((_, revision)) = untaken.filter(|(_, revision)| has_form(revision)) else { return false };
        if self.is_starting(now) {
            // What it goes back from, and what it is chosen over, is not known before targets were looked at.
            return true;
        }
        let object = &self.own.object;
        let status = &self.own.status.draft;
        let ticket = ticket_of(&object.uid, name, (&self.own.status.durable, status), &revision);
        let approval = approval(&object.answers, ticket, self.own.wall_ms(now));
        let place = Place { spec, index: place.unwrap_or(usize::MAX), status, sights: &self.sights };
        let (relation, over) = (place.relation(&revision), place.over(candidate, &revision));
        let from = place.own().and_then(|own| judge::said(own, &self.sights)).cloned();
        let by = approval.by.clone();
        self.end(
            now,
            name,
            Phase::Superseded,
            &format!("{revision} took its place, {}", words(by.as_deref(), None, &relation)),
        );
        let beginning = Beginning {
            revision: revision.clone(),
            from,
            approval: Some(approval),
            chosen: Some(relation),
            rollback: None,
        };
        let seq = self.begin(name, beginning);
        if let Some(known) = self.own.status.draft.environments.get_mut(name) {
            known.chosen = Some(Choice { seq, revision: revision.clone(), by, over });
            // Its wait begins now.
            known.behind = None;
        }
        false
    }

    /// Whether a revision is older than what the environment has.
    pub(super) fn goes_back(&self, spec: &Spec, index: usize, revision: &Revision) -> bool {
        let place = Place { spec, index, status: &self.own.status.draft, sights: &self.sights };
        let has = place.own().and_then(|own| judge::said(own, &self.sights));
        has.is_some_and(|has| place.is_older(revision, has))
    }

    /// The chosen revision that is on its way into an environment. What is newer waits for it, for `stalledAfter` after its start at most:
    /// one that never gets ready does not hold up the one that mends it.
    pub(super) fn stands(
        &mut self,
        now: Timestamp,
        environment: &EnvironmentSpec,
        candidate: Option<&Revision>,
    ) -> Option<Promotion> {
        let known = self.own.status.draft.environment(&environment.name)?;
        let open = known.open().filter(|open| open.chosen.is_some())?.clone();
        let is_back_from = |one: &Revision| open.rollback.is_some() && open.from.as_ref() == Some(one);
        let newer = candidate.filter(|one| **one != open.revision && !known.holds(one) && !is_back_from(one));
        let manual = environment.promotion.as_ref().is_some_and(|how| how.manual);
        if newer.is_some() && open.rollback.is_some() && manual && open.approval.is_none() {
            // What is newer may mend what is there, and a person has not said yes to going back.
            return None;
        }
        if let Some((_, started_ms)) = newer.zip(open.started_ms) {
            let limit = i64::try_from(millis(environment.stalled_after)).unwrap_or(i64::MAX);
            let left = started_ms.saturating_add(limit).saturating_sub(self.own.wall_ms(now)).min(limit);
            match u64::try_from(left) {
                Ok(left) if left > 0 => self.own.wake_at(now.after(std::time::Duration::from_millis(left))),
                _ => return None,
            }
        }
        Some(open)
    }

    /// Gets an environment to what a person chose. That some target says it already is no sign that it was carried out: it may be what
    /// the environment had before.
    pub(super) fn pursue_choice(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        index: usize,
        how: &PromotionSpec,
        chosen: &Promotion,
        effects: &mut Vec<Effect>,
    ) -> Option<Pending> {
        let environment = spec.environments.get(index)?;
        self.drop_question(&environment.name, &chosen.revision);
        let has_landed = chosen.phase == Phase::Landed;
        if has_landed && judge::settled(environment, &self.sights) == Ok(&chosen.revision) {
            return self.arrived(now, environment, &chosen.revision);
        }
        if let Some(obstacle) = judge::unseen(environment, &self.sights) {
            return Some(Pending::Unseen(obstacle));
        }
        self.go_on(now, spec, index, how, effects)
    }
}

impl EnvironmentStatus {
    /// Whether those before it are done at a revision, so that its soak is on.
    pub(super) fn soaks(&self, revision: &Revision) -> bool {
        self.trail.is_some() && self.trails().all(|trail| trail.newest() == Some(revision) && trail.since_ms.is_some())
    }

    /// Whether a person chose something else over this revision.
    pub(super) fn holds(&self, revision: &Revision) -> bool {
        self.chosen.as_ref().is_some_and(|chosen| chosen.over.contains(revision))
    }

    /// It is done at this revision: if that is newer than what a person chose, the choice has had its time.
    pub(super) fn done_at(&mut self, revision: &Revision) {
        let is_newer = |chosen: &&mut Choice| chosen.revision != *revision && !chosen.over.contains(revision);
        self.chosen.as_mut().filter(is_newer).into_iter().for_each(|chosen| chosen.over.clear());
    }

    /// Why a revision is not promoted by itself, since a person chose another one.
    pub(super) fn held(&self, revision: &Revision) -> Option<String> {
        let chosen = self.chosen.as_ref().filter(|_| self.holds(revision))?;
        let by = chosen.by.as_deref().unwrap_or("a person");
        if by == BY {
            let back = &chosen.revision;
            return Some(format!("it was to go back to {back} by itself: {revision} is promoted only after a yes"));
        }
        Some(format!("{by} chose {} over {revision}: it is promoted only after a yes", chosen.revision))
    }

    /// What a person is asked.
    pub(super) fn asked(&self) -> Option<String> {
        let waiting = self.waiting.as_ref()?;
        let held = self.held(&waiting.revision).filter(|_| waiting.question == Question::Left);
        Some(held.unwrap_or_else(|| waiting.question.words().to_owned()))
    }
}

impl Promotion {
    /// Who chose it, and how it relates to what was there, if it was chosen.
    pub fn choice(&self) -> Option<String> {
        let by = self.approval.as_ref().and_then(|approval| approval.by.as_deref());
        self.chosen.as_ref().map(|relation| words(by, self.rollback, relation))
    }

    /// Whether a person chose it, who has to say yes to it.
    pub(super) const fn is_chosen(&self) -> bool {
        self.chosen.is_some() && self.rollback.is_none()
    }
}
