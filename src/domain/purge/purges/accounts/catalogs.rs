//! One catalog for each account, and one answer for each question.
//!
//! ```text
//! asked ──▶ each account for the hosts that it knows, and for those that no other account knows
//! compared ──▶ each account for all the hosts that it is asked for, but for one that cannot be listed and need not be waited for
//!                     └──▶ all have answered ──▶ their distributions together
//! ```
//!
//! A host that one account knows waits for no other (decision 50). A host that no account knows may be of any that is asked for it: while
//! one of those cannot be listed, what the others know is purged, and the comparison goes on until that one is listed too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Accounts, Scope};
use crate::bounds::plan::Plan;
use crate::purges::catalog::{self, Catalog, Found, Freshness, Listing, NotFound, Token};
use kernel::machine::{Machine, Timestamp};
use kernel::names::account::AccountName;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The process began, or the actor that drives this machine was rebuilt.
    Begun,
    /// A rollout of this namespace asks for the distributions of a plan.
    Asked(Token, String, Plan),
    /// The same, by a listing that begins from now on.
    Compared(Token, String, Plan),
    /// An order is about a distribution that no account is known to have.
    Sought(DistributionId),
    /// Something happened in an account.
    Of(AccountName, catalog::Event),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Answer a question: the distributions, possibly none, or why they are not known.
    Answer(Token, Result<Found, NotFound>),
    /// Do this in an account. It is never an answer.
    Of(AccountName, catalog::Effect),
}

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Answer(..) => "answer",
            Self::Of(_, effect) => effect.name(),
        }
    }
}

/// A question that several accounts are asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    namespace: String,
    plan: Plan,
    compares: bool,
    /// The accounts that have not answered.
    open: BTreeSet<AccountName>,
    /// The answers of the others together.
    found: Found,
    /// The accounts whose listing is not newer than the question, each with why.
    old: BTreeMap<AccountName, String>,
    /// Why an account could not say what it has.
    failed: Option<String>,
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Catalogs {
    accounts: Accounts,
    each: BTreeMap<AccountName, Catalog>,
    questions: BTreeMap<Token, Question>,
}

impl Catalogs {
    /// One for each account, none of which was listed yet.
    pub fn new(accounts: Accounts, freshness: &Freshness, samples_tags: bool) -> Self {
        let catalog = || Catalog::new(freshness.clone()).sampling_tags(samples_tags);
        let each = accounts.names().map(|name| (name.clone(), catalog())).collect();
        Self { accounts, each, questions: BTreeMap::new() }
    }

    /// How many distributions are known, and how old the oldest listing is; `None` before the first.
    pub fn known(&self, now: Timestamp) -> Option<(usize, Duration)> {
        let known = self.each.values().filter_map(|catalog| catalog.known(now));
        known.reduce(|(count, age), (more, theirs)| (count + more, age.max(theirs)))
    }

    /// What is wrong with the listings and the cache tags, in words.
    pub fn troubles(&self, now: Timestamp) -> Vec<String> {
        self.each.values().flat_map(|catalog| catalog.troubles(now)).collect()
    }

    /// Whether an account could not be listed, when that was tried last.
    pub fn is_failing(&self) -> bool {
        self.each.values().any(|catalog| catalog.failure().is_some())
    }

    /// The account that has a distribution, wanted since then; `None` while that is not known. What no account has by a listing begun
    /// since then is the fallback's, whose refusal is told.
    pub fn account_of(&self, distribution: &DistributionId, since: Timestamp) -> Option<AccountName> {
        let lacks = |catalog: &Catalog| catalog.would_have(distribution, since);
        let nowhere = || self.each.values().all(lacks).then(|| self.accounts.fallback());
        self.home(distribution).cloned().or_else(nowhere)
    }

    /// The account that is known to have it.
    fn home(&self, distribution: &DistributionId) -> Option<&AccountName> {
        let is_one = self.accounts.is_one();
        let listed = || self.each.iter().find(|(_, catalog)| is_one || catalog.has(distribution));
        // What is listed is seen; what the operator wrote may be old.
        listed().map(|(name, _)| name).or_else(|| self.accounts.named_for(distribution))
    }

    fn ask(&mut self, now: Timestamp, token: Token, namespace: String, plan: Plan, compares: bool) -> Vec<Effect> {
        let asked =
            |plan| if compares { catalog::Event::Compared(token, plan) } else { catalog::Event::Asked(token, plan) };
        if self.accounts.is_one_for_all() {
            return self.of_account(now, &self.accounts.fallback(), asked(plan));
        }
        let parts: Vec<(AccountName, Plan)> = self
            .accounts
            .all()
            .filter_map(|(name, scope)| Some((name.clone(), self.part((name, scope), &namespace, &plan, compares)?)))
            .collect();
        let mut question = Question {
            namespace,
            plan,
            compares,
            open: parts.iter().map(|(name, _)| name.clone()).collect(),
            found: Found::default(),
            old: BTreeMap::new(),
            failed: None,
        };
        // The only account is waited for: no other knows anything.
        if compares && !self.accounts.is_one() {
            self.leave_out(now, &mut question);
        }
        let asks = question.open.clone();
        self.questions.insert(token, question);
        let parts = parts.into_iter().filter(|(name, _)| asks.contains(name));
        let mut effects: Vec<Effect> =
            parts.flat_map(|(name, part)| self.of_account(now, &name, asked(part))).collect();
        effects.extend(self.conclude(token));
        effects
    }

    /// What of a plan an account is asked for; `None` where that is nothing.
    fn part(
        &self,
        (name, scope): (&AccountName, &Scope),
        namespace: &str,
        plan: &Plan,
        compares: bool,
    ) -> Option<Plan> {
        let is_asked = |is_known: &dyn Fn(&AccountName) -> bool| {
            let mut others = self.accounts.of(namespace).filter(|(other, _)| *other != name);
            scope.is_for(namespace) && (compares || is_known(name) || !others.any(|(other, _)| is_known(other)))
        };
        let mut part = plan.clone();
        part.hosts.retain(|host| scope.takes(host) && is_asked(&|of| self.knows(of, host, plan)));
        part.origins.retain(|origin| is_asked(&|of| self.knows_origin(of, origin)));
        // Who names distributions gets them, whatever account they are of: hosts alone are looked for.
        let fallback = self.accounts.fallback();
        part.distributions.retain(|id| name == self.home(id).unwrap_or(&fallback));
        (!part.is_empty()).then_some(part)
    }

    /// Whether the listing of an account has a distribution for this host.
    fn knows(&self, name: &AccountName, host: &Host, plan: &Plan) -> bool {
        let takes = self.accounts.scope(name).is_some_and(|scope| scope.takes(host));
        takes && self.each.get(name).is_some_and(|catalog| catalog.knows([host], [], &plan.except))
    }

    fn knows_origin(&self, name: &AccountName, origin: &str) -> bool {
        self.each.get(name).is_some_and(|catalog| catalog.knows([], [origin], &BTreeSet::new()))
    }

    /// Whether some account knows each host and origin of the question that an account of this scope is asked for.
    fn is_known(&self, question: &Question, scope: &Scope) -> bool {
        let any = |is_known: &dyn Fn(&AccountName) -> bool| {
            self.accounts.of(&question.namespace).any(|(name, _)| is_known(name))
        };
        let plan = &question.plan;
        let mut hosts = plan.hosts.iter().filter(|host| scope.takes(host));
        hosts.all(|host| any(&|name| self.knows(name, host, plan)))
            && plan.origins.iter().all(|origin| any(&|name| self.knows_origin(name, origin)))
    }

    /// An account that cannot be listed now is not waited for where the hosts are known without it: it is told how old its listing is.
    fn leave_out(&self, now: Timestamp, question: &mut Question) {
        for name in question.open.clone() {
            let Some((catalog, scope)) = self.each.get(&name).zip(self.accounts.scope(&name)) else { continue };
            if catalog.failure().is_some() && self.is_known(question, scope) {
                let listing = catalog.known(now).map_or(Listing::Missing, |(_, age)| Listing::Before(age));
                question.open.remove(&name);
                question.add(Found { listing, ..Found::default() });
            }
        }
    }

    /// Feeds a machine of an account, and takes in its answers.
    fn of_account(&mut self, now: Timestamp, name: &AccountName, event: catalog::Event) -> Vec<Effect> {
        let Some(catalog) = self.each.get_mut(name) else { return Vec::new() };
        let effects = catalog.step(now, event);
        self.take_all(name, effects)
    }

    /// Feeds all of them.
    fn of_all(&mut self, now: Timestamp, event: &catalog::Event) -> Vec<Effect> {
        let names: Vec<AccountName> = self.accounts.names().cloned().collect();
        names.iter().flat_map(|name| self.of_account(now, name, event.clone())).collect()
    }

    fn take_all(&mut self, name: &AccountName, effects: Vec<catalog::Effect>) -> Vec<Effect> {
        let mut lifted = Vec::new();
        for effect in effects {
            match effect {
                catalog::Effect::Answer(token, answer) => lifted.extend(self.answered(name, token, answer)),
                other @ (catalog::Effect::List
                | catalog::Effect::ListDistributionTenants(_)
                | catalog::Effect::FindDistributionTenant(_)
                | catalog::Effect::ReadTags(_)
                | catalog::Effect::Sample(..)) => lifted.push(Effect::Of(name.clone(), other)),
            }
        }
        lifted
    }

    fn answered(&mut self, name: &AccountName, token: Token, answer: Result<Found, NotFound>) -> Option<Effect> {
        if self.accounts.is_one_for_all() {
            return Some(Effect::Answer(token, answer));
        }
        let failure = self.each.get(name).and_then(Catalog::failure);
        let why = failure.map_or_else(|| format!("account {name} was not listed in time"), str::to_owned);
        let question = self.questions.get_mut(&token)?;
        question.open.remove(name);
        match answer {
            Ok(found) => {
                if found.listing != Listing::After {
                    question.old.insert(name.clone(), why);
                }
                question.add(found);
            }
            Err(NotFound(why)) => {
                question.add(Found { listing: Listing::Missing, ..Found::default() });
                question.failed.get_or_insert(why);
            }
        }
        self.conclude(token)
    }

    /// Answers a question that all accounts have answered.
    fn conclude(&mut self, token: Token) -> Option<Effect> {
        let question = self.questions.get(&token).filter(|question| question.open.is_empty())?;
        let is_known = |name| self.accounts.scope(name).is_none_or(|scope| self.is_known(question, scope));
        let unknown = || question.old.iter().find(|(name, _)| !is_known(name)).map(|(_, why)| why.clone());
        let in_part = question.failed.clone().or_else(unknown);
        let Question { compares, found, .. } = self.questions.remove(&token)?;
        Some(Effect::Answer(
            token,
            match in_part {
                // What was ordered stays, and what is not known yet is asked for again.
                Some(why) if compares || found.distributions.is_empty() => Err(NotFound(why)),
                in_part => Ok(Found { in_part, ..found }),
            },
        ))
    }
}

impl Question {
    /// Takes in the answer of another account. The words about a listing are those about the oldest.
    fn add(&mut self, found: Found) {
        let Found { distributions, tagged, untagged, rewriting, listing, in_part: _ } = found;
        self.found.distributions.extend(distributions);
        self.found.tagged.extend(tagged);
        self.found.untagged.extend(untagged);
        self.found.rewriting.extend(rewriting);
        self.found.listing = match (self.found.listing, listing) {
            (Listing::Missing, _) | (_, Listing::Missing) => Listing::Missing,
            (Listing::Before(one), Listing::Before(other)) => Listing::Before(one.max(other)),
            (Listing::Before(age), Listing::After) | (Listing::After, Listing::Before(age)) => Listing::Before(age),
            (Listing::After, Listing::After) => Listing::After,
        };
    }
}

/// What was heard of an account, without what is not purged there.
fn narrowed(scope: &Scope, event: catalog::Event) -> catalog::Event {
    match event {
        catalog::Event::Listed(mut listing) => {
            listing.retain(|one| scope.has(&one.id) || scope.has_tenant_of(one));
            catalog::Event::Listed(listing)
        }
        catalog::Event::DistributionTenantsListed(Ok(mut listing)) => {
            listing.retain(|one| scope.has(&one.id));
            catalog::Event::DistributionTenantsListed(Ok(listing))
        }
        catalog::Event::DistributionTenantFound(host, Ok(found)) => {
            catalog::Event::DistributionTenantFound(host, Ok(found.filter(|one| scope.has(&one.id))))
        }
        other => other,
    }
}

impl Machine for Catalogs {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Begun => self.of_all(now, &catalog::Event::Begun),
            Event::Sought(id) => self.of_all(now, &catalog::Event::Sought(id)),
            Event::Asked(token, namespace, plan) => self.ask(now, token, namespace, plan, false),
            Event::Compared(token, namespace, plan) => self.ask(now, token, namespace, plan, true),
            Event::Of(name, event) => {
                let event = match self.accounts.scope(&name) {
                    Some(scope) => narrowed(scope, event),
                    None => event,
                };
                self.of_account(now, &name, event)
            }
        }
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let names: Vec<AccountName> = self.each.keys().cloned().collect();
        let tick = |name: &AccountName| {
            let effects = self.each.get_mut(name).map(|catalog| catalog.tick(now)).unwrap_or_default();
            self.take_all(name, effects)
        };
        names.iter().flat_map(tick).collect()
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.each.values().filter_map(Catalog::next_deadline).min()
    }
}
