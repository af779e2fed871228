//! Aliases that move (decision 50): a rollout before the production catalog, and an account whose listing changes.

mod routes;

use std::collections::VecDeque;

use super::*;
use crate::purges::catalog::{self, Catalog, Freshness};
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::host::Host;

/// The account, and one rollout of `www.example.com`.
struct Account {
    machine: Rollout,
    catalog: Catalog,
    now: Timestamp,
    workload: Workload,
    hosts: BTreeSet<Host>,
    /// Which paths of them lead to it.
    routed: crate::records::record::ByHost,
    /// What its owner wants purged.
    extent: Option<crate::workloads::extent::Extent>,
    /// The paths of each purge, in their order.
    sent: Vec<String>,
    /// What a listing that begins now would say.
    listing: Vec<Distribution>,
    is_down: bool,
    listed: Vec<Timestamp>,
    asked: BTreeMap<catalog::Token, (Vector, Box<Plan>)>,
    /// When each distribution was purged first.
    purged: BTreeMap<String, Timestamp>,
    told: Vec<(Timestamp, Notice)>,
}

fn serving(id: &str, aliases: &[&str]) -> Distribution {
    Distribution {
        id: id.parse().unwrap(),
        domain_name: format!("{}.cloudfront.net", id.to_lowercase()),
        aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
        origins: Vec::new(),
        enabled: true,
        staging: false,
        tenant_only: false,
        rewrites: false,
        cache_tags: false,
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

impl Account {
    /// One that was listed a moment before second 0.
    fn listed(listing: Vec<Distribution>) -> Self {
        let workload = complete("a", 1);
        let record = baseline(&workload, workload.version.as_ref().unwrap(), Seq(0));
        let mut catalog = Catalog::new(Freshness::default());
        drop(catalog.step(at(0), catalog::Event::Begun));
        drop(catalog.step(at(0), catalog::Event::Listed(listing.clone())));
        Self {
            machine: Rollout::resume(identity(), Policy::default(), Seq(0), Some(record)),
            catalog,
            now: at(0),
            workload,
            hosts: BTreeSet::from(["www.example.com".parse().unwrap()]),
            routed: BTreeMap::new(),
            extent: None,
            sent: Vec::new(),
            listing,
            is_down: false,
            listed: Vec::new(),
            asked: BTreeMap::new(),
            purged: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    /// Rolls a version out at this time, and goes on for three minutes.
    fn roll_out(&mut self, tag: &str, from: Timestamp) {
        self.run(from, VecDeque::new());
        self.workload = complete(tag, self.workload.generation + 1);
        self.workload.tuning.paths.clone_from(&self.extent);
        let seen = Event::Seen(Box::new(self.workload.clone()));
        self.run(from.after(Duration::from_secs(180)), [seen].into());
    }

    fn run(&mut self, until: Timestamp, mut events: VecDeque<Event>) {
        loop {
            let effects = if let Some(event) = events.pop_front() {
                self.machine.step(self.now, event)
            } else {
                let due = [self.machine.next_deadline(), self.catalog.next_deadline()].into_iter().flatten().min();
                let Some(next) = due.filter(|next| *next <= until) else { break };
                self.now = self.now.max(next);
                let found = self.catalog.tick(self.now);
                events.extend(self.answers_of(found));
                self.machine.tick(self.now)
            };
            for effect in effects {
                assert_eq!(self.machine.breaks(&effect), [], "{effect:?}");
                events.extend(self.answer(effect));
            }
        }
        self.now = until;
    }

    fn answer(&mut self, effect: Effect) -> Vec<Event> {
        match effect {
            Effect::FindSite(..) => {
                let (hosts, routed) = (self.hosts.clone(), self.routed.clone());
                vec![Event::SiteFound(FoundSite { hosts, routed, ..FoundSite::default() })]
            }
            Effect::Match(vector, plan) => self.ask(vector, plan, catalog::Event::Asked),
            Effect::Compare(vector, plan) => self.ask(vector, plan, catalog::Event::Compared),
            Effect::Purge(order) => {
                self.purged.entry(order.distribution.to_string()).or_insert(self.now);
                self.sent.push(format!("{}: {}", order.distribution, order.paths));
                answers(&Effect::Purge(order), None)
            }
            Effect::Tell(notice) => {
                self.told.push((self.now, (*notice).clone()));
                answers(&Effect::Tell(notice), None)
            }
            effect => answers(&effect, Some(&self.workload)),
        }
    }

    fn ask(
        &mut self,
        vector: Vector,
        plan: Box<Plan>,
        event: fn(catalog::Token, Plan) -> catalog::Event,
    ) -> Vec<Event> {
        let token = self.asked.len() as u64;
        self.asked.insert(token, (vector, plan.clone()));
        let effects = self.catalog.step(self.now, event(token, *plan));
        self.answers_of(effects)
    }

    fn answers_of(&mut self, effects: Vec<catalog::Effect>) -> Vec<Event> {
        let mut events = Vec::new();
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                catalog::Effect::List => {
                    self.listed.push(self.now);
                    let answer = if self.is_down {
                        catalog::Event::ListFailed("no answer".to_owned())
                    } else {
                        catalog::Event::Listed(self.listing.clone())
                    };
                    effects.extend(self.catalog.step(self.now, answer));
                }
                catalog::Effect::Answer(token, answer) => {
                    let (vector, plan) = self.asked[&token].clone();
                    events.push(match answer {
                        Ok(found) => Event::Matched(vector, plan, found),
                        Err(why) => Event::MatchFailed(vector, why.to_string()),
                    });
                }
                catalog::Effect::ReadTags(_) | catalog::Effect::Sample(..) => unreachable!("no plan has tags"),
                catalog::Effect::ListDistributionTenants(_) | catalog::Effect::FindDistributionTenant(_) => {
                    unreachable!("no distribution is for distribution tenants")
                }
            }
        }
        events
    }

    /// The one announcement of its end.
    fn end(&self) -> &(Timestamp, Notice) {
        let mut ends = self.told.iter().filter(|(_, notice)| notice.kind == Kind::PurgeCompleted);
        let end = ends.next().expect("it has ended");
        assert_eq!(ends.next(), None);
        end
    }

    fn purged(&self) -> Vec<&str> {
        self.purged.keys().map(String::as_str).collect()
    }
}

const WWW: &str = "www.example.com";

#[test]
fn an_alias_that_moved_twenty_seconds_ago_is_purged_on_both_and_neither_waits() {
    let mut account = Account::listed(vec![serving("E1", &[WWW])]);
    account.run(at(80), VecDeque::new());
    account.listing = vec![serving("E1", &[]), serving("E2", &[WWW])];
    account.roll_out("b", at(100));
    assert_eq!(account.purged(), ["E1", "E2"]);
    assert!(account.purged["E1"] < at(105), "{:?}", account.purged);
    let (told, end) = account.end();
    assert!(*told >= account.purged["E2"], "nothing is told as done before the other is purged");
    assert!(
        end.message.starts_with("CloudFront reports the purge completed: ") && end.message.contains("E2 by"),
        "{}",
        end.message
    );
    assert_eq!(account.listed.len(), 1, "one listing for it");
}

#[test]
fn an_alias_of_a_distribution_that_was_replaced_before_it_was_destroyed_is_purged_on_the_new_one() {
    let mut account = Account::listed(vec![serving("E1", &[WWW]), serving("E3", &["blog.example.com"])]);
    // Made with another name, given the alias, and the old one is disabled and gone.
    account.listing = vec![serving("E2", &[WWW]), serving("E3", &["blog.example.com"])];
    account.roll_out("b", at(100));
    assert_eq!(account.purged(), ["E1", "E2"]);
}

#[test]
fn a_new_distribution_with_the_very_name_beside_a_wildcard_is_purged_too() {
    let mut account = Account::listed(vec![serving("E1", &["*.example.com"])]);
    account.listing = vec![serving("E1", &["*.example.com"]), serving("E2", &[WWW])];
    account.roll_out("b", at(100));
    assert_eq!(account.purged(), ["E1", "E2"]);
    assert!(account.purged["E1"] <= account.purged["E2"]);
}

#[test]
fn where_nothing_moved_one_listing_says_so_and_the_next_rollout_has_another() {
    let mut account = Account::listed(vec![serving("E1", &[WWW])]);
    account.roll_out("b", at(100));
    assert_eq!((account.purged(), account.listed.len()), (vec!["E1"], 1));
    account.told.clear();
    account.roll_out("c", at(400));
    assert_eq!((account.purged(), account.listed.len()), (vec!["E1"], 2));
}

#[test]
fn without_a_newer_listing_its_end_is_told_after_a_minute_and_says_how_old_the_listing_is() {
    let mut account = Account::listed(vec![serving("E1", &[WWW])]);
    account.is_down = true;
    account.roll_out("b", at(100));
    let (told, end) = account.end();
    let purged = account.purged["E1"];
    assert!(purged < at(105), "the purge does not wait: {purged:?}");
    let waited = told.since(purged);
    assert!(waited >= Duration::from_secs(64) && waited <= Duration::from_secs(66), "{waited:?}");
    let age = kernel::text::duration(told.since(at(0)));
    let wanted = format!("purged; distributions as listed {age} ago: E1 by invalidation I1EXAMPLE");
    assert_eq!(end.message, wanted);
}

#[test]
fn a_life_that_begins_after_the_purge_compares_before_it_tells() {
    let mut account = Account::listed(vec![serving("E1", &[WWW])]);
    account.is_down = true;
    account.run(at(100), VecDeque::new());
    account.workload = complete("b", 2);
    account.run(at(120), [Event::Seen(Box::new(account.workload.clone()))].into());
    assert_eq!(
        (account.purged(), account.told.iter().any(|(_, told)| told.kind == Kind::PurgeCompleted)),
        (vec!["E1"], false)
    );
    let record = account.machine.durable().cloned();
    account.machine = Rollout::resume(identity(), Policy::default(), Seq(0), record);
    (account.is_down, account.listing) = (false, vec![serving("E2", &[WWW])]);
    let seen = Event::Seen(Box::new(account.workload.clone()));
    account.run(at(300), [Event::Looked(Some(Box::new(account.workload.clone()))), seen].into());
    assert_eq!(account.purged(), ["E1", "E2"]);
    assert!(account.end().0 >= account.purged["E2"]);
}

#[test]
fn the_bounds_count_what_is_ordered_together_with_what_a_newer_listing_adds() {
    let wildcard = |number: usize| serving(&format!("E{number:02}"), &[&format!("w{number:02}.example.com")]);
    let before: Vec<Distribution> = (10..14).map(wildcard).collect();
    let mut account = Account::listed(before);
    account.hosts = BTreeSet::from(["*.example.com".parse().unwrap()]);
    account.listing = (10..17).map(wildcard).collect();
    account.roll_out("b", at(100));
    assert_eq!(account.purged(), ["E10", "E11", "E12", "E13", "E14"], "five by a wildcard, not five more");
    let ended = account.machine.durable().unwrap().history.last().unwrap();
    assert_eq!(ended.outcome, Outcome::Partly, "{ended:?}");
    let beyond: DistributionId = "E15".parse().unwrap();
    assert!(ended.why.contains(beyond.as_str()), "{}", ended.why);
}
