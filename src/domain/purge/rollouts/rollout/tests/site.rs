//! The site is looked for before a vote.

use super::*;
use crate::bounds::policy::{Missing, OnMissing};
use crate::records::record::LastSite;
use crate::site::{Age, Lost};
use kernel::names::host::Host;

/// What was known before the rollout does not close it: routes of a Gateway API that was installed meanwhile, say.
#[test]
fn a_rollout_is_closed_for_want_of_hosts_only_after_a_fresh_look() {
    let asked = |story: &Story| {
        let ages = story.effects.iter().filter_map(|effect| match effect {
            Effect::FindSite(_, age, _) => Some(*age),
            _ => None,
        });
        ages.collect::<Vec<_>>()
    };
    let begin = || {
        let mut story = Story::begin(complete("a", 1));
        story.held = ["find_site"].into();
        story.see(complete("b", 2));
        story.step(Event::SiteFound(FoundSite::default()));
        assert_eq!(asked(&story), [Some(Age::Recent), Some(Age::Fresh)]);
        assert_eq!(story.last(), None);
        story
    };
    let mut nothing = begin();
    nothing.step(Event::SiteFound(FoundSite::default()));
    assert_eq!((asked(&nothing).len(), nothing.last()), (2, Some(&Outcome::NoSite)));

    let mut found = begin();
    let origins = BTreeSet::from(["lb.example.net".to_owned()]);
    found.step(Event::SiteFound(FoundSite { origins, ..FoundSite::default() }));
    assert_eq!((asked(&found).len(), found.last()), (2, Some(&Outcome::Purged)));
}

/// What it is reached by cannot be read while it is being installed, say; nothing that is named waits for that.
#[test]
fn hosts_and_distributions_that_the_owner_may_name_are_not_looked_for() {
    use crate::bounds::tenants::{Allowance, Tenancy, Tenants};

    let ages = |tenants: Tenants, name: fn(&mut Workload)| {
        let mut after = complete("b", 2);
        name(&mut after);
        let policy = Policy { tenants, ..without_barrier(OnRollback::Purge) };
        let mut story = Story::under(policy, complete("a", 1));
        story.see(after);
        let ages = story.effects.iter().filter_map(|effect| match effect {
            Effect::FindSite(_, age, _) => Some(*age),
            _ => None,
        });
        ages.collect::<Vec<_>>()
    };
    let hosts = |workload: &mut Workload| {
        workload.tuning.hosts = Some(vec!["www.example.com".parse().unwrap()]);
    };
    let distribution = |workload: &mut Workload| {
        workload.tuning.distributions = Some(["E1EXAMPLE".parse().unwrap()].into());
    };
    let trusted = Tenants::default;
    let own = || Tenants { default: Tenancy::Own, ..trusted() };
    let allowed = || {
        let allowance = Allowance {
            namespaces: ["shop".to_owned()].into(),
            distributions: ["E1EXAMPLE".parse().unwrap()].into(),
            ..Allowance::default()
        };
        Tenants { allowed: vec![allowance], ..own() }
    };
    assert_eq!(ages(trusted(), |_| {}), [Some(Age::Recent)]);
    for tenants in [trusted(), own()] {
        assert_eq!(ages(tenants, hosts), [None]);
    }
    assert_eq!(ages(trusted(), distribution), [None]);
    assert_eq!(ages(own(), distribution), [Some(Age::Recent)], "it may not name one");
    assert_eq!(ages(allowed(), distribution), [None]);
}

/// A rollout to `b` that fails while the search for its site is answered by the test.
fn failing(tune: fn(&mut Workload)) -> Story {
    let mut story = Story::begin(complete("a", 1));
    story.held = ["find_site"].into();
    let mut sick = half("b", 2);
    tune(&mut sick);
    story.see(sick);
    story.pass(Duration::from_secs(15 * 60));
    assert_eq!(story.told(Kind::RolloutFailed), 0, "what it comes to is one write");
    story
}

fn searches(story: &Story) -> usize {
    story.effects.iter().filter(|effect| matches!(effect, Effect::FindSite(..))).count()
}

/// Decision 65.
#[test]
fn a_failure_without_a_site_is_told_and_needs_no_look() {
    let mut story = failing(|_| {});
    story.step(Event::SiteFound(FoundSite::default()));
    story.step(Event::SiteFound(FoundSite::default()));
    assert_eq!((searches(&story), story.told(Kind::RolloutFailed)), (2, 1), "not for want of a fresh look");
    assert_eq!(story.last(), Some(&Outcome::Failed(Failure::TimedOut)));
    assert_eq!(crate::rollouts::unwell::reason(story.record()), None);
    assert_eq!(story.effects.last(), Some(&Effect::End));

    // Its next rollout may have a site.
    let mut sick = half("c", 3);
    sick.replicas.desired = 2;
    story.see(sick);
    story.pass(Duration::from_secs(15 * 60));
    let host = BTreeSet::from(["www.example.com".parse().unwrap()]);
    story.step(Event::SiteFound(FoundSite { hosts: host, ..FoundSite::default() }));
    assert_eq!((searches(&story), story.told(Kind::RolloutFailed)), (3, 2));
    assert_eq!(crate::rollouts::unwell::reason(story.record()), Some(crate::rollouts::unwell::Reason::Failed));
}

#[test]
fn a_failure_whose_site_cannot_be_read_or_is_named_or_refused_needs_a_look() {
    use crate::rollouts::unwell::{Reason, reason};

    let mut unread = failing(|_| {});
    for _ in 0..3 {
        unread.step(Event::SiteFailed("forbidden".to_owned()));
        unread.pass(Duration::from_secs(60));
    }
    assert_eq!((searches(&unread), unread.told(Kind::RolloutFailed)), (3, 1));
    assert_eq!(reason(unread.record()), Some(Reason::Failed), "unread is not none");
    assert_eq!(unread.effects.last(), Some(&Effect::End), "nothing waits for it");

    let mut named = failing(|sick| sick.tuning.distributions = Some(["E1EXAMPLE".parse().unwrap()].into()));
    named.step(Event::SiteFound(FoundSite::default()));
    assert_eq!(reason(named.record()), Some(Reason::Failed), "a distribution is a site");

    let mut refused = failing(|_| {});
    let others = FoundSite { refused: vec!["www.example.com: of another".to_owned()], ..FoundSite::default() };
    refused.step(Event::SiteFound(others.clone()));
    refused.step(Event::SiteFound(others));
    assert_eq!(reason(refused.record()), Some(Reason::Failed), "what it may not purge serves it");
}

/// A rollout to `b` has been purged by `www.example.com`; a rollout to `c` is complete, and the search for its site is answered by the
/// test.
fn losing(policy: Policy) -> Story {
    let mut story = Story::under(policy, complete("a", 1));
    story.see(complete("b", 2));
    assert_eq!(story.record().site, Some(LastSite::Hosts(BTreeSet::from([www()]))));
    story.held = ["find_site"].into();
    story.see(complete("c", 3));
    story
}

fn www() -> Host {
    "www.example.com".parse().unwrap()
}

/// Nothing leads to the workload, and nothing else has its host.
fn nothing_leads_there() -> FoundSite {
    let lost = Lost { hosts: BTreeSet::from([www()]), ..Lost::default() };
    FoundSite { lost, ..FoundSite::default() }
}

/// Answers each search of so much time, and counts them.
fn answer_for(story: &mut Story, time: Duration, site: &FoundSite) -> usize {
    let (end, before) = (story.now.after(time), searches(story));
    let mut answered = before - 1;
    loop {
        while answered < searches(story) {
            answered += 1;
            story.step(Event::SiteFound(site.clone()));
        }
        let Some(next) = story.machine.next_deadline().filter(|next| *next <= end) else { break };
        story.pass(Duration::from_millis(next.as_millis() - story.now.as_millis()));
    }
    story.pass(Duration::from_millis(end.as_millis() - story.now.as_millis()));
    answered - before
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

#[test]
fn an_ingress_that_is_gone_for_a_moment_when_the_rollout_completes_is_waited_for() {
    let mut story = losing(without_barrier(OnRollback::Purge));
    answer_for(&mut story, Duration::from_secs(12), &nothing_leads_there());
    assert_eq!((story.purges().len(), story.told(Kind::SiteLost)), (1, 0));
    assert!(story.state().contains("nothing leads to it for 12s now, and it had www.example.com"), "{}", story.state());
    let back = FoundSite { hosts: BTreeSet::from([www()]), ..FoundSite::default() };
    answer_for(&mut story, Duration::from_secs(5), &back);
    assert_eq!((story.purges().len(), story.last()), (2, Some(&Outcome::Purged)));
    assert_eq!(story.told(Kind::SiteLost), 0);
}

#[test]
fn hosts_that_stay_lost_are_told_once_and_purged_by_what_is_last_known() {
    let mut story = losing(without_barrier(OnRollback::Purge));
    answer_for(&mut story, minutes(5) - Duration::from_secs(1), &nothing_leads_there());
    assert_eq!((story.purges().len(), story.told(Kind::SiteLost)), (1, 0), "not before");
    let searched = searches(&story);
    assert!((55..=65).contains(&searched), "{searched}");
    answer_for(&mut story, Duration::from_secs(1), &nothing_leads_there());
    assert_eq!((story.purges().len(), story.told(Kind::SiteLost)), (2, 1));
    assert_eq!(story.last(), Some(&Outcome::Purged));
    let told = story.effects.iter().find_map(|effect| match effect {
        Effect::Tell(notice) if notice.kind == Kind::SiteLost => Some(notice.message.clone()),
        _ => None,
    });
    assert!(told.unwrap().contains("it had www.example.com; purged by what is last known: www.example.com"));
    let seq = story.record().seq;
    assert_eq!(story.record().site, Some(LastSite::Nothing(seq)));

    // It is no site now, and that is no news.
    story.see(complete("d", 4));
    answer_for(&mut story, minutes(1), &FoundSite::default());
    assert_eq!((story.purges().len(), story.told(Kind::SiteLost), story.last()), (2, 1, Some(&Outcome::NoSite)));
}

#[test]
fn where_that_is_wanted_lost_hosts_are_told_and_not_purged() {
    let policy = Policy {
        missing: Missing { then: OnMissing::Skip, ..Policy::default().missing },
        ..without_barrier(OnRollback::Purge)
    };
    let mut story = losing(policy);
    answer_for(&mut story, minutes(6), &nothing_leads_there());
    assert_eq!((story.purges().len(), story.told(Kind::SiteLost), story.last()), (1, 1, Some(&Outcome::NoSite)));
}

#[test]
fn a_host_that_leads_elsewhere_now_is_not_lost() {
    let mut story = losing(without_barrier(OnRollback::Purge));
    let lost = Lost { elsewhere: [(www(), "Ingress blog/web".to_owned())].into(), ..Lost::default() };
    answer_for(&mut story, minutes(1), &FoundSite { lost, ..FoundSite::default() });
    assert_eq!((story.purges().len(), story.told(Kind::SiteLost), story.last()), (1, 0, Some(&Outcome::NoSite)));
}

#[test]
fn a_host_that_is_lost_beside_others_is_purged_with_them_at_once() {
    let mut story = losing(without_barrier(OnRollback::Purge));
    let api: Host = "api.example.com".parse().unwrap();
    let site = FoundSite { hosts: BTreeSet::from([api.clone()]), ..nothing_leads_there() };
    answer_for(&mut story, Duration::ZERO, &site);
    let matched = story.effects.iter().rev().find_map(|effect| match effect {
        Effect::Match(_, plan) => Some(plan.hosts.clone()),
        _ => None,
    });
    assert_eq!(matched, Some(BTreeSet::from([api.clone(), www()])));
    assert_eq!(story.record().site, Some(LastSite::Hosts(BTreeSet::from([api]))), "once");
}

/// Of a large site, and of one that an older program recorded, the distributions are known.
#[test]
fn a_large_site_that_is_lost_is_purged_by_the_distributions_of_its_last_purge() {
    let mut story = losing(without_barrier(OnRollback::Purge));
    let many = (0..5).map(|number| format!("h{number}.example.com").parse().unwrap()).collect();
    answer_for(&mut story, Duration::ZERO, &FoundSite { hosts: many, ..FoundSite::default() });
    assert_eq!(story.record().site, Some(LastSite::Distributions(crate::testing::distributions())));
    story.see(complete("d", 4));
    answer_for(&mut story, minutes(5), &FoundSite::default());
    assert_eq!((story.told(Kind::SiteLost), story.last()), (1, Some(&Outcome::Purged)));

    let old = Record { site: None, ..story.record().clone() };
    assert_eq!(old.last_site(), Some(LastSite::Distributions(crate::testing::distributions())));
    let none = Record { history: Vec::new(), ..old };
    assert_eq!(none.last_site(), None);
}
