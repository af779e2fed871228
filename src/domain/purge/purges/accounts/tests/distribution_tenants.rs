//! Two accounts, of which `b` has a distribution for distribution tenants only.

use super::*;

const TENANT: &str = "tenant.example.com";

/// What CloudFront says to who is known and may not.
const NOT_ALLOWED: &str = "no tenants of b: AccessDenied (HTTP 403)";

fn tenants(all: &[(&str, &str)]) -> catalog::Event {
    let tenant = |(id, domain): &(&str, &str)| Distribution { domain_name: String::new(), ..distribution(id, domain) };
    catalog::Event::DistributionTenantsListed(Ok(all.iter().map(tenant).collect()))
}

fn refused(class: purge::CdnErrorClass) -> catalog::Event {
    let why = if class == purge::CdnErrorClass::Denied { NOT_ALLOWED } else { "no tenants of b" };
    catalog::Event::DistributionTenantsListed(Err((class, why.to_owned())))
}

fn of(catalogs: &mut Catalogs, seconds: u64, account: &str, event: catalog::Event) -> Vec<Effect> {
    catalogs.step(at(seconds), Event::Of(name(account), event))
}

/// `a` has `EA` for shop and no other distribution, `b` has `EB` for blog and `ES` for distribution tenants. What follows from the answer of
/// each.
fn distributions(catalogs: &mut Catalogs, seconds: u64) -> Vec<Effect> {
    let mut effects = listed(catalogs, seconds, "a", &[("EA", "shop.example.com")]);
    let of_b = vec![distribution("EB", "blog.example.com"), shared("ES")];
    effects.extend(of(catalogs, seconds, "b", catalog::Event::Listed(of_b)));
    effects
}

fn list_tenants() -> Effect {
    Effect::Of(name("b"), catalog::Effect::ListDistributionTenants(["ES".parse().unwrap()].into()))
}

fn find(host: &str) -> Effect {
    Effect::Of(name("b"), catalog::Effect::FindDistributionTenant(Host::parse(host).unwrap()))
}

/// Both were listed, with this answer about the distribution tenants of `b`.
fn begun(answer: catalog::Event) -> Catalogs {
    let mut catalogs = Catalogs::new(two(), &Freshness::default(), false);
    drop(catalogs.step(at(0), Event::Begun));
    assert_eq!(distributions(&mut catalogs, 1), [list_tenants()], "a is not asked for what it does not have");
    drop(of(&mut catalogs, 1, "b", answer));
    catalogs
}

#[test]
fn the_account_that_has_distribution_tenants_lists_its_own_and_is_asked_by_domain_for_what_nobody_knows() {
    let mut catalogs = begun(tenants(&[("dt_b", TENANT)]));
    assert_eq!(answer(&asked(&mut catalogs, 2, &[TENANT, "shop.example.com"])), all(&["EA", "dt_b"]));
    assert_eq!(catalogs.account_of(&"dt_b".parse().unwrap(), at(900)), Some(name("b")));
    assert_eq!(catalogs.known(at(2)).map(|(count, _)| count), Some(3), "distributions");
    drop(asked(&mut catalogs, 3, &["new.example.com"]));
    assert_eq!(catalogs.tick(at(61)), [list("a"), list("b")]);
    assert_eq!(distributions(&mut catalogs, 62), [list_tenants()]);
    assert_eq!(of(&mut catalogs, 63, "b", tenants(&[("dt_b", TENANT)])), [find("new.example.com")]);
    let made = Distribution { domain_name: String::new(), ..distribution("dt_new", "new.example.com") };
    let found = catalog::Event::DistributionTenantFound(Host::parse("new.example.com").unwrap(), Ok(Some(made)));
    assert_eq!(answer(&of(&mut catalogs, 64, "b", found)), all(&["dt_new"]));
}

// Faults: F9, F10
#[test]
fn while_the_distribution_tenants_of_one_account_fail_what_others_serve_is_purged_and_the_rest_waits() {
    let mut catalogs = begun(refused(purge::CdnErrorClass::Throttled));
    assert_eq!(answer(&asked(&mut catalogs, 2, &["shop.example.com"])), all(&["EA"]));
    assert_eq!(catalogs.troubles(at(2)), ["no tenants of b"]);
    let mut effects = asked(&mut catalogs, 3, &[TENANT]);
    effects.extend(catalogs.tick(at(61)));
    effects.extend(distributions(&mut catalogs, 62));
    effects.extend(of(&mut catalogs, 63, "b", refused(purge::CdnErrorClass::Throttled)));
    assert_eq!(answer(&effects), Some(Err("no tenants of b".to_owned())), "nobody says that nothing serves it");
}

// Faults: F9, F10
#[test]
fn a_purge_of_a_distribution_tenant_is_sent_to_no_other_account_while_its_own_may_not_list_it() {
    let [tenant, gone]: [DistributionId; 2] = ["dt_b", "EGONE"].map(|id| id.parse().unwrap());
    for class in [purge::CdnErrorClass::Denied, purge::CdnErrorClass::Throttled] {
        let mut catalogs = begun(refused(class));
        assert_eq!(catalogs.account_of(&tenant, at(0)), None, "a would call it gone");
        assert_eq!(catalogs.account_of(&gone, at(0)), Some(name("a")), "a distribution is in neither");
        drop(catalogs.tick(at(700)));
        drop(distributions(&mut catalogs, 701));
        drop(of(&mut catalogs, 701, "b", tenants(&[("dt_b", TENANT)])));
        assert_eq!(catalogs.account_of(&tenant, at(0)), Some(name("b")));
    }
    let troubles = begun(refused(purge::CdnErrorClass::Denied)).troubles(at(2));
    assert_eq!(troubles, [format!("distribution tenants that are not known are not purged: {NOT_ALLOWED}")]);
}

#[test]
fn of_the_distribution_tenants_of_an_account_only_those_are_purged_that_it_is_narrowed_to() {
    for (own, asks, expected) in [
        (&["dt_b"][..], true, all(&["dt_b"])),
        (&["dt_other"], true, all(&[])),
        (&["EB"], false, all(&[])),
        (&[], true, all(&["dt_b", "dt_c"])),
    ] {
        let distributions = own.iter().map(|id| id.parse().unwrap()).collect();
        let scope = Scope { distributions, ..Scope::default() };
        let accounts = accounts([("a", Scope::default()), ("b", scope)]);
        let mut catalogs = Catalogs::new(accounts, &Freshness::default(), false);
        drop(asked(&mut catalogs, 0, &["*.example.com"]));
        let mut effects = listed(&mut catalogs, 1, "a", &[]);
        effects.extend(of(&mut catalogs, 1, "b", catalog::Event::Listed(vec![shared("ES")])));
        assert_eq!(effects.contains(&list_tenants()), asks, "{own:?}");
        let of_b = tenants(&[("dt_b", TENANT), ("dt_c", "other.example.com")]);
        effects.extend(of(&mut catalogs, 2, "b", of_b));
        assert_eq!(answer(&effects), expected, "{own:?}");
    }
}
