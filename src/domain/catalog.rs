//! Which distributions serve a plan: one listing of the account, kept and refreshed with restraint.
//!
//! ```text
//! begun ──▶ listed, so that the first rollout does not wait for it
//! listed at the start, and again at every interval
//! asked ──▶ known and matched ─────────────────────────────────────▶ answered at once
//!      └──▶ no current listing, a host it does not have, or a distribution of it that is gone
//!           ──▶ listed, then answered; at most once per miss interval
//! ```
//!
//! Of the distributions of a plan with cache tags it is also read which have them switched on, for the listing does not tell.
//!
//! A host that matches nothing is answered so only by a listing newer than the question, and all questions of one miss
//! interval share that listing: no retry storm.
//! Not for how hosts and aliases are compared; that is `distribution`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::call::Call;
use crate::distribution::{Distribution, DistributionId, Index};
use crate::machine::{Machine, Timestamp};
use crate::plan::Plan;
use crate::purge::CdnErrorClass;
use crate::retry;
use crate::tenants::Reached;

/// How often the account is listed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Freshness {
    /// A listing older than this is replaced, and no question is answered from it unless that fails.
    pub refresh: Duration,
    /// A host without a distribution, or a distribution that is gone, causes a new listing, but not within this of the last one.
    pub miss_refresh: Duration,
}

impl Default for Freshness {
    /// What tests use: ten minutes and one minute. The configuration says both in production.
    fn default() -> Self {
        Self { refresh: Duration::from_secs(600), miss_refresh: Duration::from_secs(60) }
    }
}

/// Distributions of one plan with cache tags whose configuration is read, one call each. A workload has one or two; those beyond
/// are purged by paths, which is correct and only costs cache misses.
pub const TAGS_READ_MAX: usize = 20;

/// The distributions of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Found {
    /// All of them, and by what the plan comes to each.
    pub distributions: BTreeMap<DistributionId, Reached>,
    /// Those that have cache tags switched on; known only where the plan has tags.
    pub tagged: BTreeSet<DistributionId>,
}

/// These by their names.
fn named(distributions: impl IntoIterator<Item = DistributionId>) -> BTreeMap<DistributionId, Reached> {
    let by_name = Reached { otherwise: true, ..Reached::default() };
    distributions.into_iter().map(|id| (id, by_name.clone())).collect()
}

/// All of them by their names.
impl From<BTreeSet<DistributionId>> for Found {
    fn from(distributions: BTreeSet<DistributionId>) -> Self {
        Self { distributions: named(distributions), tagged: BTreeSet::new() }
    }
}

/// Names one question, so that its answer finds back.
pub type Token = u64;

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The process began, or the actor that drives this machine was rebuilt.
    Begun,
    /// A rollout asks for the distributions of a plan.
    Asked(Token, Plan),
    /// The account was listed.
    Listed(Vec<Distribution>),
    /// It could not be.
    ListFailed(String),
    /// It was read whether a distribution has cache tags switched on, or why that could not be.
    TagsRead(DistributionId, Result<bool, (CdnErrorClass, String)>),
    /// A call about this distribution failed.
    Refused(DistributionId, CdnErrorClass),
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// List all distributions.
    List,
    /// Answer a question: the distributions, possibly none, or why they are not known.
    Answer(Token, Result<Found, String>),
    /// Read whether a distribution has cache tags switched on.
    ReadTags(DistributionId),
}

impl Effect {
    /// The metric label.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::List => "list_distributions",
            Self::Answer(..) => "answer",
            Self::ReadTags(_) => "read_tags",
        }
    }
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Catalog {
    freshness: Freshness,
    index: Index,
    listed_at: Option<Timestamp>,
    list: Call,
    waiting: BTreeMap<Token, Plan>,
    /// Distributions of the last listing that are gone since. One that replaces them may serve their hosts now.
    gone: BTreeSet<DistributionId>,
    /// Which distributions have cache tags switched on, and when that was read.
    tags: BTreeMap<DistributionId, (Timestamp, bool)>,
    reading: BTreeSet<DistributionId>,
    /// Questions whose distributions are found, while we read whether those have tags.
    untagged: BTreeMap<Token, BTreeMap<DistributionId, Reached>>,
    /// Why we may not read it, while that is so.
    denied: Option<String>,
}

impl Catalog {
    /// A catalog that has not listed anything yet.
    pub fn new(freshness: Freshness) -> Self {
        Self {
            freshness,
            index: Index::default(),
            listed_at: None,
            list: Call::default(),
            waiting: BTreeMap::new(),
            gone: BTreeSet::new(),
            tags: BTreeMap::new(),
            reading: BTreeSet::new(),
            untagged: BTreeMap::new(),
            denied: None,
        }
    }

    /// How many distributions are known, and for how long; `None` before the first listing.
    pub fn known(&self, now: Timestamp) -> Option<(usize, Duration)> {
        self.listed_at.map(|at| (self.index.iter().len(), now.since(at)))
    }

    /// Why the last listing failed, if it did.
    pub fn failure(&self) -> Option<&str> {
        self.list.reason()
    }

    /// Why we may not read which distributions have cache tags, if that is so.
    pub fn tags_denied(&self) -> Option<&str> {
        self.denied.as_deref()
    }

    fn asked(&mut self, now: Timestamp, token: Token, plan: Plan) -> Vec<Effect> {
        if plan.hosts.is_empty() && plan.origins.is_empty() {
            let named = named(plan.distributions.iter().cloned());
            return self.answer(now, token, &plan, Ok(named));
        }
        let (found, complete) = self.find(&plan);
        let current = self.listed_at.is_some_and(|at| now.since(at) < self.freshness.refresh);
        if current && complete && self.are_there(&found) {
            return self.answer(now, token, &plan, Ok(found));
        }
        if self.list.deadline().is_some_and(|until| now < until) {
            let old = self.answer_of_old(&plan);
            return self.answer(now, token, &plan, old);
        }
        // A distribution made a moment ago is not in a listing made before it: only a newer one may say "none", or what is in the place
        // of one that is gone.
        self.waiting.insert(token, plan);
        self.list_if_due(now).into_iter().collect()
    }

    /// Answers, as soon as it is known which of the distributions have cache tags, where the plan has some.
    fn answer(
        &mut self,
        now: Timestamp,
        token: Token,
        plan: &Plan,
        found: Result<BTreeMap<DistributionId, Reached>, String>,
    ) -> Vec<Effect> {
        match found {
            Ok(found) if plan.paths.has_tags() => {
                drop(self.untagged.insert(token, found));
                self.answer_known(now)
            }
            found => {
                let answer = found.map(|distributions| Found { distributions, tagged: BTreeSet::new() });
                vec![Effect::Answer(token, answer)]
            }
        }
    }

    /// Answers the questions of whose distributions all is known, and has the others read.
    fn answer_known(&mut self, now: Timestamp) -> Vec<Effect> {
        let refresh = self.freshness.refresh;
        self.tags.retain(|_, (at, _)| now.since(*at) < refresh);
        let mut effects = Vec::new();
        for (token, found) in std::mem::take(&mut self.untagged) {
            let few = || found.keys().take(TAGS_READ_MAX);
            let unknown: Vec<DistributionId> = few().filter(|id| !self.tags.contains_key(*id)).cloned().collect();
            if unknown.is_empty() {
                let on = |id: &&DistributionId| self.tags.get(*id).is_some_and(|(_, on)| *on);
                let tagged = few().filter(on).cloned().collect();
                effects.push(Effect::Answer(token, Ok(Found { distributions: found, tagged })));
            } else {
                let unasked = unknown.into_iter().filter(|id| self.reading.insert(id.clone()));
                effects.extend(unasked.map(Effect::ReadTags));
                self.untagged.insert(token, found);
            }
        }
        effects
    }

    /// If we may not know, tags count as switched off: paths are always right. After a passing failure, the rollout that
    /// wants the answer asks again.
    fn tags_read(
        &mut self,
        now: Timestamp,
        id: DistributionId,
        read: Result<bool, (CdnErrorClass, String)>,
    ) -> Vec<Effect> {
        self.reading.remove(&id);
        let mut effects = Vec::new();
        match read {
            Ok(on) => {
                self.denied = None;
                self.tags.insert(id, (now, on));
            }
            Err((CdnErrorClass::Denied, why)) => {
                self.denied = Some(why);
                self.tags.insert(id, (now, false));
            }
            // What is wrong with the distribution or with the request shows when it is purged.
            Err((CdnErrorClass::Gone | CdnErrorClass::Refused | CdnErrorClass::NoSuchInvalidation, _)) => {
                self.tags.insert(id, (now, false));
            }
            Err((
                CdnErrorClass::Throttled
                | CdnErrorClass::TooManyInProgress
                | CdnErrorClass::Ambiguous
                | CdnErrorClass::ReferenceReused
                | CdnErrorClass::Unexpected,
                why,
            )) => {
                let concerned =
                    |found: &BTreeMap<DistributionId, Reached>| found.keys().take(TAGS_READ_MAX).any(|of| *of == id);
                let failed = self.untagged.iter().filter(|(_, found)| concerned(found));
                effects.extend(failed.map(|(token, _)| Effect::Answer(*token, Err(why.clone()))));
                self.untagged.retain(|_, found| !concerned(found));
            }
        }
        effects.extend(self.answer_known(now));
        effects
    }

    /// The distributions of a plan by the present listing, beside those it names, and whether every host and origin has one.
    fn find(&self, plan: &Plan) -> (BTreeMap<DistributionId, Reached>, bool) {
        let matches = self.index.matches_except(&plan.hosts, &plan.origins, &plan.except);
        let complete = matches.unmatched.is_empty() && matches.unmatched_origins.is_empty();
        let mut found = named(plan.distributions.iter().cloned());
        for (id, reasons) in matches.by_distribution {
            let reached = found.entry(id).or_default();
            reasons.iter().for_each(|reason| reached.note(reason.host()));
        }
        (found, complete)
    }

    /// When the account is to be listed next: soon for a question, or because the listing names what is gone; at the interval
    /// otherwise; never while it rests.
    fn due(&self) -> Timestamp {
        let is_old = !self.waiting.is_empty() || !self.gone.is_empty();
        let wait = if is_old { self.freshness.miss_refresh } else { self.freshness.refresh };
        self.listed_at.map_or(Timestamp::default(), |at| at.after(wait)).max(self.list.deadline().unwrap_or_default())
    }

    fn list_if_due(&mut self, now: Timestamp) -> Option<Effect> {
        (!self.list.is_asked() && now >= self.due()).then(|| {
            self.list.asked();
            Effect::List
        })
    }

    fn listed(&mut self, now: Timestamp, listing: Vec<Distribution>) -> Vec<Effect> {
        self.index = Index::new(listing);
        self.gone.clear();
        self.listed_at = Some(now);
        self.list.answered();
        let waiting = std::mem::take(&mut self.waiting);
        let found = |(token, plan): (Token, Plan)| {
            let found = Ok(self.find(&plan).0);
            self.answer(now, token, &plan, found)
        };
        waiting.into_iter().flat_map(found).collect()
    }

    fn lose(&mut self, now: Timestamp, id: DistributionId) -> Vec<Effect> {
        // One that only an annotation names is in no listing, and a new one would not help.
        if self.index.iter().any(|listed| listed.id == id) {
            self.gone.insert(id);
        }
        self.list_if_due(now).into_iter().collect()
    }

    fn list_failed(&mut self, now: Timestamp, why: String) -> Vec<Effect> {
        self.list.failed(retry::SERVICE.from(now, "list distributions"), why);
        let waiting = std::mem::take(&mut self.waiting);
        let old = |(token, plan): (Token, Plan)| {
            let found = self.answer_of_old(&plan);
            self.answer(now, token, &plan, found)
        };
        waiting.into_iter().flat_map(old).collect()
    }

    /// Whether none of them is gone since the last listing.
    fn are_there(&self, found: &BTreeMap<DistributionId, Reached>) -> bool {
        !found.keys().any(|id| self.gone.contains(id))
    }

    /// While the account cannot be listed, what the last listing knows still holds. Only a host that it does not know, or whose
    /// distribution is gone, has to wait.
    fn answer_of_old(&self, plan: &Plan) -> Result<BTreeMap<DistributionId, Reached>, String> {
        match self.find(plan) {
            (found, true) if self.listed_at.is_some() && self.are_there(&found) => Ok(found),
            (_, _) => Err(self.list.reason().unwrap_or_default().to_owned()),
        }
    }
}

impl Machine for Catalog {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Begun => self.list_if_due(now).into_iter().collect(),
            Event::Asked(token, plan) => self.asked(now, token, plan),
            Event::Listed(listing) => self.listed(now, listing),
            Event::ListFailed(why) => self.list_failed(now, why),
            Event::TagsRead(id, read) => self.tags_read(now, id, read),
            Event::Refused(id, CdnErrorClass::Gone) => self.lose(now, id),
            Event::Refused(..) => Vec::new(),
        }
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.list_if_due(now).into_iter().collect()
    }

    /// Nothing before the first listing: the beginning, or a question, causes that.
    fn next_deadline(&self) -> Option<Timestamp> {
        let begun = self.listed_at.is_some() || self.list.is_failing();
        (begun && !self.list.is_asked()).then(|| self.due())
    }
}

#[cfg(test)]
mod tests;
