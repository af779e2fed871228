use super::*;

const SHOP: &str = "shop.example.com";
const BLOG: &str = "blog.example.com";

/// A distribution for distribution tenants only.
fn shared(id: &str) -> Distribution {
    Distribution { tenant_only: true, aliases: Vec::new(), ..distribution(id, "") }
}

fn tenant(id: &str, domain: &str) -> Distribution {
    Distribution { domain_name: String::new(), ..distribution(id, domain) }
}

fn ids(ids: &[&str]) -> BTreeSet<DistributionId> {
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

fn tenants(tenants: &[(&str, &str)]) -> Event {
    Event::DistributionTenantsListed(Ok(tenants.iter().map(|(id, domain)| tenant(id, domain)).collect()))
}

/// What CloudFront says to who is known and may not.
const NOT_ALLOWED: &str = "AccessDenied (HTTP 403)";

fn failed(class: CdnErrorClass) -> Event {
    let why = if class == CdnErrorClass::Denied { NOT_ALLOWED } else { "no" };
    Event::DistributionTenantsListed(Err((class, why.to_owned())))
}

fn by_domain_failed(host: &str, class: CdnErrorClass, why: &str) -> Event {
    Event::DistributionTenantFound(Host::parse(host).unwrap(), Err((class, why.to_owned())))
}

fn asked_for(host: &str) -> Effect {
    Effect::FindDistributionTenant(Host::parse(host).unwrap())
}

fn by_domain(host: &str, found: Option<Distribution>) -> Event {
    Event::DistributionTenantFound(Host::parse(host).unwrap(), Ok(found))
}

/// A catalog of an account with a distribution `E1` for blog and `E2` for distribution tenants, of which `dt_a` has shop; listed from
/// second 0 to second 1.
fn account() -> Catalog {
    let mut catalog = Catalog::new(Freshness::default());
    catalog.step(at(0), Event::Begun);
    catalog.step(at(0), listing());
    catalog.step(at(1), tenants(&[("dt_a", SHOP)]));
    catalog
}

fn listing() -> Event {
    Event::Listed(vec![distribution("E1", BLOG), shared("E2")])
}

#[test]
fn distribution_tenants_are_listed_only_where_a_distribution_serves_some() {
    let disabled = Distribution { enabled: false, ..shared("E3") };
    let mut catalog = Catalog::new(Freshness::default());
    catalog.step(at(0), Event::Asked(1, plan(SHOP)));
    let none = catalog.step(at(1), Event::Listed(vec![distribution("E1", BLOG), disabled.clone()]));
    assert_eq!(found(&none), [of(1, &[], Listing::After)], "nor is a host asked for by its domain");
    assert_eq!(none.len(), 1);
    catalog.step(at(100), Event::Asked(2, plan(SHOP)));
    let some = catalog.step(at(101), Event::Listed(vec![distribution("E1", BLOG), shared("E2"), disabled]));
    assert_eq!(some, [Effect::ListDistributionTenants(ids(&["E2"]))]);
    let listed = catalog.step(at(102), tenants(&[("dt_a", SHOP), ("dt_b", "other.example.com")]));
    assert_eq!(found(&listed), [of(2, &["dt_a"], Listing::After)]);
    assert_eq!(catalog.step(at(103), tenants(&[])), [], "an answer that nothing waits for");
    assert_eq!(
        found(&catalog.step(at(104), Event::Asked(3, plan(SHOP)))),
        [of(3, &["dt_a"], Listing::Before(Duration::from_secs(4)))]
    );
}

#[test]
fn a_question_waits_for_both_listings() {
    let mut catalog = Catalog::new(Freshness::default());
    assert_eq!(catalog.step(at(0), Event::Asked(1, plan(BLOG))), [Effect::List]);
    catalog.step(at(1), listing());
    assert_eq!(catalog.step(at(1), Event::Asked(2, plan(BLOG))), [], "the listing is under way");
    assert_eq!(catalog.known(at(1)), None);
    let both = catalog.step(at(2), tenants(&[("dt_a", BLOG)]));
    assert_eq!(
        found(&both),
        [of(1, &["E1", "dt_a"], Listing::After), of(2, &["E1", "dt_a"], Listing::Before(Duration::from_secs(2)))]
    );
    assert_eq!(catalog.known(at(2)), Some((2, Duration::ZERO)));
}

// Faults: F9
#[test]
fn where_they_may_not_be_listed_nobody_waits_and_it_can_be_seen() {
    let mut catalog = Catalog::new(Freshness::default());
    catalog.step(at(0), Event::Asked(1, plan(BLOG)));
    catalog.step(at(0), Event::Asked(2, plan(SHOP)));
    catalog.step(at(0), listing());
    let denied = catalog.step(at(1), failed(CdnErrorClass::Denied));
    assert_eq!(found(&denied), [of(1, &["E1"], Listing::After)]);
    assert_eq!(denied[1..], [asked_for(SHOP)], "that is another right");
    let denied = by_domain_failed(SHOP, CdnErrorClass::Denied, NOT_ALLOWED);
    assert_eq!(found(&catalog.step(at(1), denied)), [of(2, &[], Listing::After)]);
    assert_eq!(catalog.distribution_tenants_denied(), Some(NOT_ALLOWED));
    catalog.tick(at(601));
    catalog.step(at(601), listing());
    catalog.step(at(602), tenants(&[("dt_a", SHOP)]));
    assert_eq!(catalog.distribution_tenants_denied(), None);
    catalog.tick(at(1202));
    catalog.step(at(1202), listing());
    catalog.step(at(1203), failed(CdnErrorClass::Denied));
    let known = catalog.step(at(1204), Event::Asked(3, plan(SHOP)));
    assert_eq!(found(&known), [of(3, &["dt_a"], Listing::Before(Duration::from_secs(2)))], "those known before are");
    catalog.tick(at(1803));
    catalog.step(at(1803), Event::Listed(vec![distribution("E1", BLOG)]));
    assert_eq!(catalog.distribution_tenants_denied(), None, "no right is missing where there are none");
}

// Faults: F9
#[test]
fn where_listing_them_fails_only_those_wait_that_the_distributions_do_not_serve() {
    for class in [CdnErrorClass::Throttled, CdnErrorClass::Ambiguous, CdnErrorClass::Unexpected] {
        let mut catalog = Catalog::new(Freshness::default());
        catalog.step(at(9), Event::Asked(1, plan(BLOG)));
        catalog.step(at(9), Event::Asked(2, plan(SHOP)));
        catalog.step(at(9), listing());
        let failure = catalog.step(at(10), failed(class));
        let seconds = |seconds| Listing::Before(Duration::from_secs(seconds));
        assert_eq!(found(&failure), [of(1, &["E1"], seconds(1))], "a distribution tenant may be the more specific one");
        assert_eq!(failure[1..], [Effect::Answer(2, Err(NotFound("no".to_owned())))]);
        assert_eq!(catalog.failure(), Some("no"));
        assert_eq!(catalog.next_deadline(), Some(at(70)), "a minute later, not at the interval");
        assert_eq!(catalog.step(at(11), Event::Compared(3, plan(BLOG))), []);
        catalog.tick(at(70));
        catalog.step(at(70), listing());
        let listed = catalog.step(at(71), tenants(&[("dt_a", BLOG)]));
        assert_eq!(found(&listed), [of(3, &["E1", "dt_a"], Listing::After)]);
        assert_eq!((catalog.failure(), catalog.next_deadline()), (None, Some(at(671))));
    }
}

#[test]
fn a_failed_listing_of_them_keeps_those_of_the_last_one_but_for_one_that_is_gone() {
    let mut catalog = Catalog::new(Freshness::default());
    catalog.step(at(0), Event::Begun);
    catalog.step(at(0), listing());
    catalog.step(at(1), tenants(&[("dt_a", SHOP), ("dt_b", "b.example.com")]));
    catalog.step(at(2), Event::Refused("dt_b".parse().unwrap(), CdnErrorClass::Gone));
    catalog.tick(at(61));
    catalog.step(at(61), listing());
    catalog.step(at(62), failed(CdnErrorClass::Throttled));
    let known = catalog.step(at(62), Event::Asked(1, plan(SHOP)));
    assert_eq!(found(&known), [of(1, &["dt_a"], Listing::Before(Duration::from_secs(1)))]);
    let gone = catalog.step(at(62), Event::Asked(2, plan("b.example.com")));
    assert_eq!(gone, [Effect::Answer(2, Err(NotFound("no".to_owned())))]);
}

#[test]
fn a_host_that_the_listing_lacks_is_asked_for_by_its_domain_once_for_each_listing() {
    let mut catalog = account();
    let names = [SHOP, "new.example.com", "none.example.com", "*.example.net"].map(|host| Host::parse(host).unwrap());
    let many = Plan { hosts: names.into(), ..Plan::default() };
    catalog.step(at(100), Event::Asked(1, many.clone()));
    catalog.step(at(100), Event::Asked(2, plan("none.example.com")));
    catalog.step(at(100), listing());
    let asked = catalog.step(at(101), tenants(&[("dt_a", SHOP)]));
    assert_eq!(asked, [asked_for("new.example.com"), asked_for("none.example.com")], "both wait for one answer");
    assert_eq!(catalog.step(at(102), by_domain("new.example.com", Some(tenant("dt_b", "new.example.com")))), []);
    let answered = catalog.step(at(103), by_domain("none.example.com", None));
    assert_eq!(found(&answered), [of(1, &["dt_a", "dt_b"], Listing::After), of(2, &[], Listing::After)]);
    let known = catalog.step(at(104), Event::Asked(3, plan("new.example.com")));
    assert_eq!(
        found(&known),
        [of(3, &["dt_b"], Listing::Before(Duration::from_secs(4)))],
        "it is known like a listed one"
    );
    assert_eq!(catalog.step(at(200), Event::Compared(4, plan("none.example.com"))), [Effect::List]);
    catalog.step(at(200), listing());
    assert_eq!(
        catalog.step(at(201), tenants(&[])),
        [asked_for("none.example.com")],
        "once more, after another listing"
    );
}

// Faults: F9
#[test]
fn expired_credentials_are_no_missing_right() {
    let mut catalog = Catalog::new(Freshness::default());
    catalog.step(at(0), Event::Asked(1, plan(SHOP)));
    catalog.step(at(0), listing());
    let expired = "ExpiredToken (HTTP 403)";
    let answer = Event::DistributionTenantsListed(Err((CdnErrorClass::Denied, expired.to_owned())));
    assert_eq!(catalog.step(at(1), answer), [Effect::Answer(1, Err(NotFound(expired.to_owned())))]);
    assert_eq!((catalog.failure(), catalog.distribution_tenants_denied()), (Some(expired), None));
}

// Faults: F9
#[test]
fn a_host_whose_answer_by_domain_fails_waits_and_is_asked_for_again() {
    let mut catalog = account();
    catalog.step(at(100), Event::Asked(1, plan("none.example.com")));
    catalog.step(at(100), listing());
    assert_eq!(catalog.step(at(101), tenants(&[])), [asked_for("none.example.com")]);
    let failed = by_domain_failed("none.example.com", CdnErrorClass::Throttled, "slower");
    assert_eq!(catalog.step(at(102), failed), [Effect::Answer(1, Err(NotFound("slower".to_owned())))]);
    // What it names must have the domain.
    catalog.step(at(200), Event::Compared(2, plan("none.example.com")));
    catalog.step(at(200), listing());
    catalog.step(at(201), tenants(&[]));
    let other = by_domain("none.example.com", Some(tenant("dt_x", "other.example.com")));
    assert_eq!(found(&catalog.step(at(202), other)), [of(2, &[], Listing::After)]);
    catalog.step(at(300), Event::Compared(3, plan("none.example.com")));
    catalog.step(at(300), listing());
    catalog.step(at(301), tenants(&[]));
    let expired = by_domain_failed("none.example.com", CdnErrorClass::Denied, "ExpiredToken (HTTP 403)");
    assert_eq!(
        catalog.step(at(302), expired),
        [Effect::Answer(3, Err(NotFound("ExpiredToken (HTTP 403)".to_owned())))]
    );
    assert_eq!(catalog.distribution_tenants_denied(), None);
}

#[test]
fn an_answer_by_domain_that_never_comes_is_waited_for_until_the_next_listing() {
    let mut catalog = account();
    catalog.step(at(100), Event::Asked(1, plan("new.example.com")));
    catalog.step(at(100), listing());
    assert_eq!(catalog.step(at(101), tenants(&[])), [asked_for("new.example.com")]);
    assert_eq!(catalog.next_deadline(), Some(at(701)));
    assert_eq!(catalog.tick(at(701)), [Effect::List]);
    catalog.step(at(701), listing());
    let listed = catalog.step(at(702), tenants(&[("dt_n", "new.example.com")]));
    assert_eq!(found(&listed), [of(1, &["dt_n"], Listing::After)]);
    assert_eq!(catalog.step(at(703), by_domain("new.example.com", None)), [], "it is too late");
}

#[test]
fn of_very_many_hosts_only_the_first_are_asked_for() {
    let mut catalog = account();
    let hosts = (0..100).map(|number| Host::parse(&format!("h{number:03}.example.com")).unwrap()).collect();
    catalog.step(at(100), Event::Asked(1, Plan { hosts, ..Plan::default() }));
    catalog.step(at(100), listing());
    assert_eq!(catalog.step(at(101), tenants(&[])).len(), DOMAINS_ASKED_MAX);
}

#[test]
fn a_distribution_tenant_is_purged_by_paths_and_its_configuration_is_not_read() {
    let mut catalog = account();
    let reads = catalog.step(at(2), tagged(1, &["E1", "dt_a"]));
    assert_eq!(reads, [Effect::ReadTags("E1".parse().unwrap())]);
    assert_eq!(catalog.step(at(3), read("E1", Ok(true))), [answered(1, &["E1", "dt_a"], &["E1"])]);
    assert_eq!(catalog.step(at(4), tagged(2, &["dt_a"])), [answered(2, &["dt_a"], &[])]);
}
