//! Which distributions serve a plan: one listing of the account, kept and refreshed with restraint.
//!
//! ```text
//! begun ──▶ listed, so that the first rollout does not wait for it
//! listed at the start, and again at every interval
//! asked ──▶ known and matched ─────────────────────────────────────▶ answered at once
//!      └──▶ no current listing, a host it does not have, or a distribution of it that is gone
//!           ──▶ listed, then answered; at most once per miss interval
//! compared ──▶ listed after that, then answered; at most once in five seconds, or by what is known after a miss interval
//! ```
//!
//! A purge does not wait for a listing where the last one knows all its hosts. But aliases move: what was found by a listing from before
//! the vote is compared with one begun after it (decision 50).
//!
//! Of the distributions of a plan with cache tags it is also found out which can be purged by them, for the listing does not tell: see
//! `tags`. The distribution tenants of those that serve these only are listed by a second call: see
//! `distribution_tenants`.
//!
//! A host that matches nothing is answered so only by a listing newer than the question, and all questions of one miss
//! interval share that listing: no retry storm.
//! Not for how hosts and aliases are compared; that is `distribution`.

mod distribution_tenants;
mod known;
mod tags;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use self::distribution_tenants::DOMAINS_ASKED_MAX;
use self::distribution_tenants::DistributionTenants;
pub use self::tags::TAGS_READ_MAX;
use self::tags::{Read, Tags, few, page_of};
use crate::bounds::plan::Plan;
use crate::bounds::tenants::Reached;
use crate::purges::purge::CdnErrorClass;
use kernel::call::Call;
use kernel::machine::{Machine, Timestamp};
use kernel::names::distribution::{Distribution, DistributionId, Index};
use kernel::names::host::Host;
use kernel::retry;
use proof::asked::{Answers, Question as EdgeQuestion};

/// How often the account is listed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Freshness {
    /// A listing older than this is replaced, and no question is answered from it unless that fails.
    pub refresh: Duration,
    /// A host without a distribution, or a distribution that is gone, causes a new listing, but not within this of the last one.
    pub miss_refresh: Duration,
}

impl Freshness {
    /// Listings begun for comparisons are so far apart. Who has the account listed more often for a host that it lacks may have that too.
    fn compared_every(&self) -> Duration {
        COMPARED_EVERY.min(self.miss_refresh)
    }

    /// How long a comparison waits for a listing: for its turn, and then for an answer.
    fn patience(&self) -> Duration {
        self.compared_every().saturating_add(self.miss_refresh)
    }
}

impl Default for Freshness {
    /// The values of tests: ten minutes and one minute. The configuration sets both in production.
    fn default() -> Self {
        Self { refresh: Duration::from_secs(600), miss_refresh: Duration::from_secs(60) }
    }
}

/// Listings begun for comparisons are so far apart at most: all rollouts that were decided meanwhile share one. A listing is a call for
/// each hundred distributions.
const COMPARED_EVERY: Duration = Duration::from_secs(5);

/// By which listing the distributions of a plan were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Listing {
    /// One that began after the question, or none was needed.
    #[default]
    After,
    /// One that began so long before the answer, and before the question.
    Before(Duration),
    /// None: this process has not had a listing yet.
    Missing,
}

/// Why the distributions of a plan are not known: the failure of a listing, or of a reading.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0}")]
pub struct NotFound(pub String);

/// The distributions of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Found {
    /// All of them, and by what the plan comes to each.
    pub distributions: BTreeMap<DistributionId, Reached>,
    /// Those that are purged by cache tags; known only where the plan has tags.
    pub tagged: BTreeSet<DistributionId>,
    /// Those that have cache tags switched on, and answer without them: which pages a tag would have selected there, nobody knows.
    pub untagged: BTreeSet<DistributionId>,
    /// Those that may ask for another path than people do: which pages are those of a route, only they know.
    pub rewriting: BTreeSet<DistributionId>,
    pub listing: Listing,
    /// Why there may be more: an account that cannot be listed, and that alone may have some of the hosts.
    pub in_part: Option<String>,
}

/// A question that waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    plan: Plan,
    /// When it was asked.
    asked: Timestamp,
    /// Only a listing that began after that answers it.
    compares: bool,
}

/// These by their names.
fn named(distributions: impl IntoIterator<Item = DistributionId>) -> BTreeMap<DistributionId, Reached> {
    let by_name = Reached { otherwise: true, ..Reached::default() };
    distributions.into_iter().map(|id| (id, by_name.clone())).collect()
}

/// All of them by their names.
impl From<BTreeSet<DistributionId>> for Found {
    fn from(distributions: BTreeSet<DistributionId>) -> Self {
        Self { distributions: named(distributions), ..Self::default() }
    }
}

/// Names one question, so that its answer finds back.
pub type Token = u64;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The process began, or the actor that drives this machine was rebuilt.
    Begun,
    /// A rollout asks for the distributions of a plan.
    Asked(Token, Plan),
    /// A rollout whose plan was answered by a listing from before its vote asks what a newer one says.
    Compared(Token, Plan),
    /// The account was listed.
    Listed(Vec<Distribution>),
    /// It could not be.
    ListFailed(String),
    /// See [`Effect::ListDistributionTenants`].
    DistributionTenantsListed(Result<Vec<Distribution>, (CdnErrorClass, String)>),
    /// See [`Effect::FindDistributionTenant`].
    DistributionTenantFound(Host, Result<Option<Distribution>, (CdnErrorClass, String)>),
    /// It was read in which header the answers of a distribution carry cache tags, if they are switched on; or why that could not be.
    TagsRead(DistributionId, Result<Option<String>, (CdnErrorClass, String)>),
    /// See [`Effect::Sample`].
    Sampled(DistributionId, Box<EdgeQuestion>, Box<Answers>),
    /// A call about this distribution failed.
    Refused(DistributionId, CdnErrorClass),
    /// It is asked which account has this distribution, which no listing has.
    Sought(DistributionId),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    List,
    /// List the distribution tenants of these distributions, which serve no others.
    ListDistributionTenants(BTreeSet<DistributionId>),
    /// Ask which distribution tenant has this domain.
    FindDistributionTenant(Host),
    /// Answer a question: the distributions, possibly none, or why they are not known.
    Answer(Token, Result<Found, NotFound>),
    /// Read whether a distribution has cache tags switched on.
    ReadTags(DistributionId),
    /// Ask the edge this: do its answers carry the tags? A failure is an answer too.
    Sample(DistributionId, Box<EdgeQuestion>),
}

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::List => "list_distributions",
            Self::ListDistributionTenants(_) => "list_distribution_tenants",
            Self::FindDistributionTenant(_) => "find_distribution_tenant",
            Self::Answer(..) => "answer",
            Self::ReadTags(_) => "read_tags",
            Self::Sample(..) => "sample",
        }
    }
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Catalog {
    freshness: Freshness,
    index: Index,
    listed_at: Option<Timestamp>,
    /// When the listing began that is known.
    known_from: Timestamp,
    /// When the last one began.
    begun: Timestamp,
    list: Call,
    waiting: BTreeMap<Token, Question>,
    /// Those of the last listing that are gone since, whose hosts another one may serve now; and those it lacks that are sought.
    gone: BTreeSet<DistributionId>,
    distribution_tenants: DistributionTenants,
    tags: Tags,
    /// Questions whose distributions are found, while it is found out whether those have tags.
    untagged: BTreeMap<Token, (Plan, Found)>,
}

impl Catalog {
    /// A catalog that has not listed anything yet, and takes a distribution's word that answers carry its tags.
    pub fn new(freshness: Freshness) -> Self {
        Self {
            freshness,
            index: Index::default(),
            listed_at: None,
            known_from: Timestamp::default(),
            begun: Timestamp::default(),
            list: Call::default(),
            waiting: BTreeMap::new(),
            gone: BTreeSet::new(),
            distribution_tenants: DistributionTenants::default(),
            tags: Tags::default(),
            untagged: BTreeMap::new(),
        }
    }

    /// The same, and an answer is looked at before that is believed.
    #[must_use]
    pub fn sampling_tags(mut self, samples: bool) -> Self {
        self.tags.samples = samples;
        self
    }

    fn asked(&mut self, now: Timestamp, token: Token, plan: Plan) -> Vec<Effect> {
        if names_all(&plan) {
            return self.answer_named(now, token, &plan);
        }
        let (found, complete) = self.find(&plan);
        let current = self.listed_at.is_some_and(|at| now.since(at) < self.freshness.refresh);
        let question = Question { plan, asked: now, compares: false };
        if current && complete && self.are_there(&found) {
            return self.answer(now, token, &question, Ok(found));
        }
        if self.list.deadline().is_some_and(|until| now < until) {
            let old = self.answer_of_old(&question.plan);
            return self.answer(now, token, &question, old);
        }
        // A distribution made a moment ago is not in a listing made before it: only a newer one may say "none", or what is in the place
        // of one that is gone.
        self.waiting.insert(token, question);
        self.list_if_due(now).into_iter().collect()
    }

    fn compared(&mut self, now: Timestamp, token: Token, plan: Plan) -> Vec<Effect> {
        if names_all(&plan) {
            return self.answer_named(now, token, &plan);
        }
        self.waiting.insert(token, Question { plan, asked: now, compares: true });
        self.list_if_due(now).into_iter().collect()
    }

    /// A plan that names all its distributions needs no listing.
    fn answer_named(&mut self, now: Timestamp, token: Token, plan: &Plan) -> Vec<Effect> {
        let distributions = named(plan.distributions.iter().cloned());
        self.answer_in_full(now, token, plan, Found { distributions, ..Found::default() })
    }

    /// Answers what is known, whole or not.
    fn answer_by_listing(&mut self, now: Timestamp, token: Token, question: &Question) -> Vec<Effect> {
        let found = Ok(self.find(&question.plan).0);
        self.answer(now, token, question, found)
    }

    fn answer(
        &mut self,
        now: Timestamp,
        token: Token,
        question: &Question,
        found: Result<BTreeMap<DistributionId, Reached>, NotFound>,
    ) -> Vec<Effect> {
        let listing = match self.listed_at {
            None => Listing::Missing,
            Some(_) if self.known_from >= question.asked && self.distribution_tenants.are_listed() => Listing::After,
            Some(_) => Listing::Before(now.since(self.known_from)),
        };
        match found {
            Ok(distributions) => {
                let rewrites = |id: &&DistributionId| self.index.get(id).is_some_and(|one| one.rewrites);
                let rewriting = distributions.keys().filter(rewrites).cloned().collect();
                let found = Found { distributions, rewriting, listing, ..Found::default() };
                self.answer_in_full(now, token, &question.plan, found)
            }
            Err(why) => vec![Effect::Answer(token, Err(why))],
        }
    }

    /// Answers, as soon as it is known which of the distributions have cache tags, where the plan has some.
    fn answer_in_full(&mut self, now: Timestamp, token: Token, plan: &Plan, found: Found) -> Vec<Effect> {
        if !plan.paths.has_tags() {
            return vec![Effect::Answer(token, Ok(found))];
        }
        self.untagged.insert(token, (plan.clone(), found));
        self.answer_known(now)
    }

    /// Answers the questions of whose distributions all is known, and has the others read.
    fn answer_known(&mut self, now: Timestamp) -> Vec<Effect> {
        self.tags.forget(now, self.freshness.refresh);
        let mut effects = Vec::new();
        for (token, (plan, found)) in std::mem::take(&mut self.untagged) {
            let unknown = self.tags.unknown(&found);
            if unknown.is_empty() {
                effects.push(Effect::Answer(token, Ok(self.tags.tell(found))));
            } else {
                effects.extend(unknown.into_iter().filter_map(|id| self.tags.begin(id)));
                self.untagged.insert(token, (plan, found));
            }
        }
        effects
    }

    fn tags_read(
        &mut self,
        now: Timestamp,
        id: DistributionId,
        header: Result<Option<String>, (CdnErrorClass, String)>,
    ) -> Vec<Effect> {
        let concerned = |found: &Found| few(found).any(|of| *of == id);
        let page = self.untagged.values().filter(|(_, found)| concerned(found));
        let page = page.filter_map(|(plan, found)| page_of(plan, found, &id)).next();
        let mut effects = Vec::new();
        match self.tags.read(now, id.clone(), header, page) {
            Read::Known => {}
            Read::Sample(effect) => effects.push(effect),
            Read::Failed(why) => {
                let failed = self.untagged.extract_if(.., |_, (_, found)| concerned(found));
                effects.extend(failed.map(|(token, _)| Effect::Answer(token, Err(NotFound(why.clone())))));
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

    /// The time of the account's next listing: soon for a question or a deleted distribution; at the interval
    /// otherwise; never while it is paused.
    fn due(&self) -> Timestamp {
        let asks = |compares: bool| self.waiting.values().any(|question| question.compares == compares);
        let is_old = asks(false) || !self.gone.is_empty() || !self.distribution_tenants.are_listed();
        let wait = if is_old { self.freshness.miss_refresh } else { self.freshness.refresh };
        let due = self.listed_at.map_or(Timestamp::default(), |at| at.after(wait));
        let due = if asks(true) { due.min(self.begun.after(self.freshness.compared_every())) } else { due };
        due.max(self.list.deadline().unwrap_or_default())
    }

    fn list_if_due(&mut self, now: Timestamp) -> Option<Effect> {
        (!self.list.is_asked() && now >= self.due()).then(|| {
            self.list.asked();
            self.begun = now;
            Effect::List
        })
    }

    /// Believes a listing. Where only the distributions of it are new, a distribution tenant that was gone stays so.
    fn take(&mut self, now: Timestamp, listing: Vec<Distribution>) {
        self.index = Index::new(listing);
        let whole = self.distribution_tenants.are_listed();
        self.gone.retain(|id| !whole && id.is_of_distribution_tenant());
        self.forget_domains();
        (self.listed_at, self.known_from) = (Some(now), self.begun);
    }

    fn listed(&mut self, now: Timestamp, listing: Vec<Distribution>) -> Vec<Effect> {
        self.take(now, listing);
        self.list.answered();
        let from = self.known_from;
        let answered = self.waiting.extract_if(.., |_, question| !question.compares || question.asked <= from);
        let answered: Vec<(Token, Question)> = answered.collect();
        let found = |(token, question): (Token, Question)| match self.ask_by_domain(token, &question) {
            Some(effects) => effects,
            None => self.answer_by_listing(now, token, &question),
        };
        let mut effects: Vec<Effect> = answered.into_iter().flat_map(found).collect();
        effects.extend(self.list_if_due(now));
        effects
    }

    /// Answers the comparisons that have waited for a listing for long enough, by what is known.
    fn give_up(&mut self, now: Timestamp) -> Vec<Effect> {
        let patience = self.freshness.patience();
        let waited = |question: &Question| question.compares && question.asked.after(patience) <= now;
        let given_up: Vec<(Token, Question)> = self.waiting.extract_if(.., |_, question| waited(question)).collect();
        given_up.into_iter().flat_map(|(token, question)| self.answer_by_listing(now, token, &question)).collect()
    }

    fn lose(&mut self, now: Timestamp, id: DistributionId) -> Vec<Effect> {
        // One that only an annotation names is in no listing, and a new one would not help.
        if self.index.iter().any(|listed| listed.id == id) {
            self.gone.insert(id);
        }
        self.list_if_due(now).into_iter().collect()
    }

    fn list_failed(&mut self, now: Timestamp, why: String) -> Vec<Effect> {
        self.list.failed(retry::MENDED.from(now, "list distributions"), why);
        let waiting: Vec<_> = self.waiting.extract_if(.., |_, question| !question.compares).collect();
        let old = |(token, question): (Token, Question)| {
            let found = self.answer_of_old(&question.plan);
            self.answer(now, token, &question, found)
        };
        let mut effects: Vec<Effect> = waiting.into_iter().flat_map(old).collect();
        effects.extend(self.give_up(now));
        effects
    }

    /// Whether none of them is gone since the last listing.
    fn are_there(&self, found: &BTreeMap<DistributionId, Reached>) -> bool {
        !found.keys().any(|id| self.gone.contains(id))
    }

    /// While the account cannot be listed, what the last listing knows still holds. Only a host that it does not know, or whose
    /// distribution is gone, has to wait.
    fn answer_of_old(&self, plan: &Plan) -> Result<BTreeMap<DistributionId, Reached>, NotFound> {
        match self.find(plan) {
            (found, true) if self.listed_at.is_some() && self.are_there(&found) => Ok(found),
            (_, _) => Err(NotFound(self.list.reason().unwrap_or_default().to_owned())),
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
            Event::Compared(token, plan) => self.compared(now, token, plan),
            Event::Listed(listing) => self.distributions_listed(now, listing),
            Event::ListFailed(why) => self.list_failed(now, why),
            Event::DistributionTenantsListed(answer) => self.distribution_tenants_listed(now, answer),
            Event::DistributionTenantFound(host, answer) => self.distribution_tenant_found(now, host, answer),
            Event::TagsRead(id, read) => self.tags_read(now, id, read),
            Event::Sampled(id, question, answers) => {
                self.tags.sampled(now, id, &question, &answers);
                self.answer_known(now)
            }
            Event::Refused(id, CdnErrorClass::Gone) => self.lose(now, id),
            Event::Refused(..) => Vec::new(),
            Event::Sought(id) => {
                self.gone.insert(id);
                self.tick(now)
            }
        }
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = self.give_up(now);
        effects.extend(self.list_if_due(now));
        effects
    }

    /// Nothing before the first listing: the beginning, or a question, causes that.
    fn next_deadline(&self) -> Option<Timestamp> {
        let begun = self.listed_at.is_some() || self.list.is_failing();
        let list = (begun && !self.list.is_asked()).then(|| self.due());
        let comparisons = self.waiting.values().filter(|question| question.compares);
        comparisons.map(|question| question.asked.after(self.freshness.patience())).chain(list).min()
    }
}

/// Whether nothing has to be found out for it.
fn names_all(plan: &Plan) -> bool {
    plan.hosts.is_empty() && plan.origins.is_empty()
}

#[cfg(test)]
mod tests;
