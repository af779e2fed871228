//! The site is looked for before a vote.

use super::*;
use crate::site::Age;

/// What was known before the rollout does not close it: routes of a Gateway API that was installed meanwhile, say.
#[test]
fn a_rollout_is_closed_for_want_of_hosts_only_after_a_fresh_look() {
    let asked = |story: &Story| {
        let ages = story.effects.iter().filter_map(|effect| match effect {
            Effect::FindSite(_, age) => Some(*age),
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
    use crate::tenants::{Allowance, Tenancy, Tenants};

    let ages = |tenants: Tenants, name: fn(&mut Workload)| {
        let mut after = complete("b", 2);
        name(&mut after);
        let policy = Policy { tenants, ..without_barrier(OnRollback::Purge) };
        let mut story = Story::under(policy, complete("a", 1));
        story.see(after);
        let ages = story.effects.iter().filter_map(|effect| match effect {
            Effect::FindSite(_, age) => Some(*age),
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
    assert_eq!(crate::unwell::reason(story.record()), None);
    assert_eq!(story.effects.last(), Some(&Effect::End));

    // Its next rollout may have a site.
    let mut sick = half("c", 3);
    sick.replicas.desired = 2;
    story.see(sick);
    story.pass(Duration::from_secs(15 * 60));
    let host = BTreeSet::from(["www.example.com".parse().unwrap()]);
    story.step(Event::SiteFound(FoundSite { hosts: host, ..FoundSite::default() }));
    assert_eq!((searches(&story), story.told(Kind::RolloutFailed)), (3, 2));
    assert_eq!(crate::unwell::reason(story.record()), Some(crate::unwell::Reason::Failed));
}

#[test]
fn a_failure_whose_site_cannot_be_read_or_is_named_or_refused_needs_a_look() {
    use crate::unwell::{Reason, reason};

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
