//! Two accounts with different fates. With one account, what holds is that of its machines alone.

mod distribution_tenants;

use super::listing::{Effect, Event};
use super::*;
use crate::bounds::plan::Plan;
use crate::purges::catalog::{self, Catalog, Found, Freshness, Listing, NotFound};
use crate::purges::purge::{self, Order, Pace, Purger};
use kernel::id::WorkloadId;
use kernel::machine::{Machine, Timestamp};
use kernel::names::distribution::Distribution;
use kernel::names::paths::PathSet;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn name(text: &str) -> AccountName {
    text.parse().unwrap()
}

fn plan(hosts: &[&str]) -> Plan {
    Plan { hosts: hosts.iter().map(|host| Host::parse(host).unwrap()).collect(), ..Plan::default() }
}

fn distribution(id: &str, alias: &str) -> Distribution {
    Distribution {
        id: id.parse().unwrap(),
        domain_name: format!("{}.cloudfront.net", id.to_lowercase()),
        aliases: vec![alias.to_owned()],
        origins: Vec::new(),
        enabled: true,
        staging: false,
        tenant_only: false,
        rewrites: false,
        cache_tags: false,
    }
}

/// A distribution for distribution tenants only.
fn shared(id: &str) -> Distribution {
    Distribution { tenant_only: true, aliases: Vec::new(), ..distribution(id, "") }
}

fn accounts(scopes: [(&str, Scope); 2]) -> Accounts {
    Accounts::new(scopes.into_iter().map(|(of, scope)| (name(of), scope)).collect())
}

fn two() -> Accounts {
    accounts([("a", Scope::default()), ("b", Scope::default())])
}

fn listed(catalogs: &mut Catalogs, seconds: u64, of: &str, all: &[(&str, &str)]) -> Vec<Effect> {
    let listing = all.iter().map(|(id, alias)| distribution(id, alias)).collect();
    catalogs.step(at(seconds), Event::Of(name(of), catalog::Event::Listed(listing)))
}

fn fails(catalogs: &mut Catalogs, seconds: u64, of: &str) -> Vec<Effect> {
    catalogs.step(at(seconds), Event::Of(name(of), catalog::Event::ListFailed(format!("{of} is down"))))
}

fn asked(catalogs: &mut Catalogs, seconds: u64, hosts: &[&str]) -> Vec<Effect> {
    catalogs.step(at(seconds), Event::Asked(1, "shop".to_owned(), plan(hosts)))
}

fn compared(catalogs: &mut Catalogs, seconds: u64, hosts: &[&str]) -> Vec<Effect> {
    catalogs.step(at(seconds), Event::Compared(1, "shop".to_owned(), plan(hosts)))
}

fn list(of: &str) -> Effect {
    Effect::Of(name(of), catalog::Effect::List)
}

/// The ids in the only answer, with whether more may come.
fn answer(effects: &[Effect]) -> Option<Result<(Vec<String>, bool), String>> {
    let answers = effects.iter().filter_map(|effect| match effect {
        Effect::Answer(1, answer) => Some(match answer {
            Ok(Found { distributions, in_part, .. }) => {
                Ok((distributions.keys().map(ToString::to_string).collect(), in_part.is_some()))
            }
            Err(NotFound(why)) => Err(why.clone()),
        }),
        Effect::Answer(..) | Effect::Of(..) => None,
    });
    let answers: Vec<_> = answers.collect();
    assert!(answers.len() < 2, "{answers:?}");
    answers.into_iter().next()
}

fn all(ids: &[&str]) -> Option<Result<(Vec<String>, bool), String>> {
    Some(Ok((ids.iter().map(|id| (*id).to_owned()).collect(), false)))
}

/// Both were listed: `shop.example.com` is in a, `blog.example.com` in b.
fn both() -> Catalogs {
    let mut catalogs = Catalogs::new(two(), &Freshness::default(), false);
    assert_eq!(catalogs.step(at(0), Event::Begun), [list("a"), list("b")]);
    drop(listed(&mut catalogs, 1, "a", &[("EA", "shop.example.com")]));
    drop(listed(&mut catalogs, 1, "b", &[("EB", "blog.example.com")]));
    catalogs
}

#[test]
fn a_host_that_one_account_knows_waits_for_no_other() {
    let mut catalogs = Catalogs::new(two(), &Freshness::default(), false);
    drop(catalogs.step(at(0), Event::Begun));
    drop(listed(&mut catalogs, 1, "a", &[("EA", "shop.example.com")]));
    assert_eq!(answer(&asked(&mut catalogs, 2, &["shop.example.com"])), all(&["EA"]), "b was never listed");
}

#[test]
fn a_host_in_two_accounts_is_found_in_both() {
    let mut catalogs = both();
    drop(catalogs.tick(at(700)));
    drop(listed(&mut catalogs, 701, "a", &[("EA", "shop.example.com")]));
    drop(listed(&mut catalogs, 701, "b", &[("EB", "*.example.com")]));
    assert_eq!(answer(&asked(&mut catalogs, 702, &["shop.example.com"])), all(&["EA", "EB"]));
}

// Faults: F10
#[test]
fn what_others_know_is_purged_while_an_account_is_down_and_the_rest_waits_for_it() {
    let mut catalogs = Catalogs::new(two(), &Freshness::default(), false);
    drop(catalogs.step(at(0), Event::Begun));
    drop(listed(&mut catalogs, 1, "a", &[("EA", "shop.example.com")]));
    drop(fails(&mut catalogs, 1, "b"));
    let hosts = ["blog.example.com", "shop.example.com"];
    // A host that nobody knows may be in a as well, by a newer listing.
    let mut effects = asked(&mut catalogs, 2, &hosts);
    assert_eq!(answer(&effects), None);
    effects.extend(catalogs.tick(at(61)));
    assert!(effects.contains(&list("a")), "{effects:?}");
    assert_eq!(answer(&listed(&mut catalogs, 62, "a", &[("EA", "shop.example.com")])), None, "b may answer yet");
    assert_eq!(answer(&fails(&mut catalogs, 62, "b")), Some(Ok((vec!["EA".to_owned()], true))));
    // Nothing is known of the other host while b is down, so the comparison does not end.
    drop(catalogs.tick(at(63)));
    drop(fails(&mut catalogs, 64, "b"));
    let mut effects = compared(&mut catalogs, 65, &hosts);
    effects.extend(catalogs.tick(at(70)));
    effects.extend(listed(&mut catalogs, 71, "a", &[("EA", "shop.example.com")]));
    for second in 72..200 {
        effects.extend(catalogs.tick(at(second)));
        effects.extend(fails(&mut catalogs, second, "b"));
    }
    assert_eq!(answer(&effects), Some(Err("b is down".to_owned())));
    drop(compared(&mut catalogs, 210, &hosts));
    drop(catalogs.tick(at(230)));
    drop(listed(&mut catalogs, 231, "a", &[("EA", "shop.example.com")]));
    let found = answer(&listed(&mut catalogs, 232, "b", &[("EB", "blog.example.com")]));
    assert_eq!(found, all(&["EA", "EB"]));
}

// Faults: F10
#[test]
fn a_host_that_nobody_knows_is_not_said_to_have_no_distribution_while_one_is_down() {
    let mut catalogs = both();
    drop(asked(&mut catalogs, 2, &["new.example.com"]));
    drop(catalogs.tick(at(61)));
    assert_eq!(answer(&listed(&mut catalogs, 62, "a", &[("EA", "shop.example.com")])), None, "b has not answered");
    assert_eq!(answer(&fails(&mut catalogs, 63, "b")), Some(Err("b is down".to_owned())));
    // It is, once both are listed.
    drop(asked(&mut catalogs, 200, &["new.example.com"]));
    drop(listed(&mut catalogs, 201, "a", &[]));
    assert_eq!(answer(&listed(&mut catalogs, 202, "b", &[])), all(&[]));
}

// Faults: F10
#[test]
fn a_comparison_does_not_wait_for_an_account_that_is_down_and_need_not_be_asked() {
    let mut catalogs = both();
    drop(catalogs.tick(at(601)));
    drop(listed(&mut catalogs, 602, "a", &[("EA", "shop.example.com")]));
    drop(fails(&mut catalogs, 602, "b"));
    let mut effects = compared(&mut catalogs, 603, &["shop.example.com"]);
    effects.extend(catalogs.tick(at(610)));
    effects.extend(listed(&mut catalogs, 611, "a", &[("EA", "shop.example.com")]));
    let found = effects.iter().find_map(|effect| match effect {
        Effect::Answer(_, Ok(found)) => Some(found.clone()),
        Effect::Answer(..) | Effect::Of(..) => None,
    });
    let found = found.expect("an answer at once");
    assert!(matches!(found.listing, Listing::Before(_)), "it says how old b's listing is: {found:?}");
    assert_eq!((found.distributions.len(), found.in_part), (1, None));
}

#[test]
fn a_distribution_that_is_gone_is_not_known_though_its_account_is_down() {
    let mut catalogs = both();
    let gone = catalog::Event::Refused("EB".parse().unwrap(), purge::CdnErrorClass::Gone);
    drop(catalogs.step(at(2), Event::Of(name("b"), gone)));
    drop(catalogs.tick(at(61)));
    drop(fails(&mut catalogs, 62, "b"));
    drop(asked(&mut catalogs, 62, &["blog.example.com"]));
    let answered = answer(&listed(&mut catalogs, 63, "a", &[("EA", "shop.example.com")]));
    let answered = answered.or_else(|| answer(&catalogs.tick(at(64))));
    assert!(matches!(answered, None | Some(Err(_))), "{answered:?}");
}

#[test]
fn an_account_is_asked_for_its_own_alone() {
    let own = |hosts: &[&str], namespaces: &[&str], distributions: &[&str]| Scope {
        hosts: hosts.iter().map(|host| Host::parse(host).unwrap().at_any_depth()).collect(),
        namespaces: namespaces.iter().map(|one| (*one).to_owned()).collect(),
        distributions: distributions.iter().map(|id| id.parse().unwrap()).collect(),
    };
    let found = |b: Scope| {
        let mut catalogs = Catalogs::new(accounts([("a", Scope::default()), ("b", b)]), &Freshness::default(), false);
        drop(catalogs.step(at(0), Event::Begun));
        drop(listed(&mut catalogs, 1, "a", &[("EA", "shop.example.com")]));
        drop(listed(&mut catalogs, 1, "b", &[("EB", "shop.example.com"), ("EC", "*.example.com")]));
        answer(&asked(&mut catalogs, 2, &["shop.example.com"]))
    };
    assert_eq!(found(own(&[], &[], &[])), all(&["EA", "EB"]));
    assert_eq!(found(own(&["*.example.com"], &["sh*"], &["EB"])), all(&["EA", "EB"]));
    assert_eq!(found(own(&["blog.example.com"], &[], &[])), all(&["EA"]));
    assert_eq!(found(own(&[], &["blog", "team-*"], &[])), all(&["EA"]));
    assert_eq!(found(own(&[], &[], &["EC"])), all(&["EA", "EC"]));
}

#[test]
fn an_only_account_is_asked_for_its_own_alone_too() {
    let own = Scope {
        hosts: [Host::parse("shop.example.com").unwrap()].into(),
        namespaces: ["shop".to_owned()].into(),
        ..Scope::default()
    };
    let one = Accounts::new([(name("a"), own)].into());
    let mut catalogs = Catalogs::new(one, &Freshness::default(), false);
    drop(catalogs.step(at(0), Event::Begun));
    drop(listed(&mut catalogs, 1, "a", &[("EA", "shop.example.com"), ("EB", "blog.example.com")]));
    assert_eq!(answer(&asked(&mut catalogs, 2, &["shop.example.com", "blog.example.com"])), all(&["EA"]));
    assert_eq!(answer(&asked(&mut catalogs, 3, &["blog.example.com"])), all(&[]));
    let other = Event::Asked(1, "blog".to_owned(), plan(&["shop.example.com"]));
    assert_eq!(answer(&catalogs.step(at(4), other)), all(&[]), "another namespace");
}

#[test]
fn a_listing_that_has_a_distribution_is_believed_before_the_configuration() {
    let scope = Scope { distributions: ["EA".parse().unwrap(), "EB".parse().unwrap()].into(), ..Scope::default() };
    let mut catalogs = Catalogs::new(accounts([("a", Scope::default()), ("b", scope)]), &Freshness::default(), false);
    drop(catalogs.step(at(0), Event::Begun));
    assert_eq!(catalogs.account_of(&"EA".parse().unwrap(), at(0)), Some(name("b")), "before any listing");
    drop(listed(&mut catalogs, 1, "a", &[("EA", "shop.example.com")]));
    assert_eq!(catalogs.account_of(&"EA".parse().unwrap(), at(1)), Some(name("a")));
    assert_eq!(catalogs.account_of(&"EB".parse().unwrap(), at(1)), Some(name("b")));
}

/// Whatever happens, one account is as its machines are without the others.
#[test]
fn with_one_account_nothing_is_different() {
    let freshness = Freshness::default();
    let mut plain = Catalog::new(freshness.clone()).sampling_tags(true);
    let mut catalogs = Catalogs::new(Accounts::default(), &freshness, true);
    let same = |event: catalog::Event| (event.clone(), Event::Of(AccountName::default(), event));
    let denied = purge::CdnErrorClass::Denied;
    let both = |second: u64, event: catalog::Event, wrapped: Event, plain: &mut Catalog, catalogs: &mut Catalogs| {
        let expected: Vec<Effect> = plain.step(at(second), event).into_iter().map(lifted).collect();
        assert_eq!(catalogs.step(at(second), wrapped), expected, "second {second}");
        assert_eq!(catalogs.next_deadline(), plain.next_deadline(), "second {second}");
        let expected: Vec<Effect> = plain.tick(at(second)).into_iter().map(lifted).collect();
        assert_eq!(catalogs.tick(at(second)), expected, "second {second}");
    };
    let shop = "shop".to_owned();
    for (second, event) in (0..900_u64)
        .zip([0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 2, 4, 6, 1, 5, 9, 10, 1, 11, 3, 10, 12, 4, 13].into_iter().cycle())
    {
        let (token, host) = (second, if second % 3 == 0 { "shop.example.com" } else { "new.example.com" });
        let (event, wrapped) = match event {
            0 => (catalog::Event::Begun, Event::Begun),
            1 | 2 => (catalog::Event::Asked(token, plan(&[host])), Event::Asked(token, shop.clone(), plan(&[host]))),
            3 | 4 => {
                (catalog::Event::Compared(token, plan(&[host])), Event::Compared(token, shop.clone(), plan(&[host])))
            }
            5 | 6 => same(catalog::Event::Listed(vec![distribution("EA", "shop.example.com")])),
            7 => same(catalog::Event::ListFailed("down".to_owned())),
            10 => same(catalog::Event::Listed(vec![distribution("EA", "shop.example.com"), shared("ES")])),
            11 => same(catalog::Event::DistributionTenantsListed(Ok(vec![distribution("dt_a", host)]))),
            12 => same(catalog::Event::DistributionTenantsListed(Err((denied, "denied".to_owned())))),
            13 => {
                let domain = Host::parse(host).unwrap();
                same(catalog::Event::DistributionTenantFound(domain, Ok(Some(distribution("dt_n", host)))))
            }
            _ => same(catalog::Event::Refused("EA".parse().unwrap(), purge::CdnErrorClass::Gone)),
        };
        both(second, event, wrapped, &mut plain, &mut catalogs);
    }
    assert_eq!(catalogs.account_of(&"E9".parse().unwrap(), at(9_999)), Some(AccountName::default()));
}

fn lifted(effect: catalog::Effect) -> Effect {
    match effect {
        catalog::Effect::Answer(token, answer) => Effect::Answer(token, answer),
        other => Effect::Of(AccountName::default(), other),
    }
}

fn order(reference: &str, distribution: &str) -> Order {
    Order {
        reference: reference.into(),
        distribution: distribution.parse().unwrap(),
        paths: PathSet::default(),
        subject: WorkloadId::deployment("shop", format!("web-{reference}")).into(),
        invalidation: None,
        paths_per_hour: 1_000,
        purges_per_hour: u32::MAX,
        voted_at: None,
        voted_ms: 0,
        ordered_ms: 0,
    }
}

fn created(effects: &[purging::Effect]) -> Vec<(String, String)> {
    let created = effects.iter().filter_map(|(account, effect)| match effect {
        purge::Effect::Create(order) => Some((account.to_string(), order.reference.to_string())),
        purge::Effect::Poll(..) | purge::Effect::Search(..) | purge::Effect::Report(..) => None,
    });
    created.collect()
}

// Faults: F10
#[test]
fn an_account_that_is_throttled_slows_no_other() {
    let mut purgers = Purgers::new(&two(), &Pace::default());
    let mut effects = Vec::new();
    for each in 0..20 {
        for of in ["a", "b"] {
            let order = order(&format!("{of}{each}"), &format!("E{of}{each}"));
            effects.extend(purgers.step(at(0), purging::Event::Ordered(Some(name(of)), order)));
        }
    }
    let mut granted = 0;
    for second in 0..60 {
        for (account, reference) in created(&effects) {
            let event = if account == "a" {
                purge::Event::CreateFailed(reference.as_str().into(), purge::CdnErrorClass::Throttled, "no".to_owned())
            } else {
                granted += 1;
                purge::Event::Created(reference.as_str().into(), format!("I{reference}").as_str().into(), None)
            };
            drop(purgers.step(at(second), purging::Event::Of(name(&account), event)));
        }
        effects = purgers.tick(at(second + 1));
    }
    assert_eq!(granted, 20, "all of b, in a minute");
    let mut alone = Purger::new(Pace::default());
    drop(alone.step(at(0), purge::Event::Ordered(order("a0", "Ea0"))));
    assert!(purgers.rate(at(60)) > alone.rate(at(0)), "the pace of b is what it was granted");
}

#[test]
fn an_order_waits_until_its_account_is_known_and_is_sent_to_no_other() {
    let mut catalogs = Catalogs::new(two(), &Freshness::default(), false);
    let mut purgers = Purgers::new(&two(), &Pace::default());
    let id: DistributionId = "EB".parse().unwrap();
    drop(catalogs.step(at(0), Event::Begun));
    assert_eq!(catalogs.account_of(&id, at(1)), None);
    assert_eq!(purgers.step(at(1), purging::Event::Ordered(None, order("r1", "EB"))), []);
    assert_eq!(purgers.describe(at(1)).len(), 1);
    drop(listed(&mut catalogs, 2, "a", &[("EA", "shop.example.com")]));
    assert_eq!(catalogs.account_of(&id, at(1)), None, "b may have it");
    drop(listed(&mut catalogs, 3, "b", &[("EB", "blog.example.com")]));
    let (reference, of, since) = purgers.unplaced().next().map(|(r, d, s)| (r.clone(), d.clone(), s)).unwrap();
    let account = catalogs.account_of(&of, since).expect("it is known");
    let effects = purgers.step(at(3), purging::Event::Placed(reference, account));
    assert_eq!(created(&effects), [("b".to_owned(), "r1".to_owned())]);
    assert!(purgers.unplaced().next().is_none());
}

#[test]
fn an_order_that_waits_for_its_account_for_too_long_is_told_once() {
    let mut purgers = Purgers::new(&two(), &Pace::default());
    let late = at(1).after(Pace::default().completion_timeout);
    drop(purgers.step(at(1), purging::Event::Ordered(None, order("r1", "EB"))));
    assert_eq!((purgers.tick(at(60)), purgers.next_deadline()), (Vec::new(), Some(late)));
    let told = purgers.tick(late);
    let [(_, purge::Effect::Report(_, reference, purge::Progress::Overdue(why)))] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!((reference.to_string(), why.contains("which AWS account")), ("r1".to_owned(), true));
    assert_eq!((purgers.tick(late), purgers.next_deadline()), (Vec::new(), None));
    drop(purgers.step(late, purging::Event::Ordered(None, order("r1", "EB"))));
    assert_eq!(purgers.tick(late).len(), 1, "who orders it again");
}

#[test]
fn what_no_account_has_is_known_only_by_listings_that_began_after_it_was_sought() {
    let mut catalogs = both();
    let new: DistributionId = "ENEW".parse().unwrap();
    assert_eq!(catalogs.account_of(&new, at(10)), None, "made a moment ago");
    drop(catalogs.step(at(10), Event::Sought(new.clone())));
    assert_eq!(catalogs.tick(at(61)), [list("a"), list("b")]);
    drop(listed(&mut catalogs, 62, "a", &[]));
    drop(fails(&mut catalogs, 62, "b"));
    assert_eq!(catalogs.account_of(&new, at(10)), None, "b may have it");
    drop(catalogs.tick(at(80)));
    drop(listed(&mut catalogs, 81, "b", &[]));
    assert_eq!(catalogs.account_of(&new, at(10)), Some(name("a")), "the first refuses it, in its own words");
}
