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
