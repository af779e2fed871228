//! The rules of matching, by example; `tests/property/distribution.rs` has them written out naively.

use super::*;

fn distribution(id: &str, aliases: &[&str], origins: &[&str]) -> Distribution {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Distribution {
        id: DistributionId::parse(id).unwrap(),
        domain_name: format!("{}.cloudfront.net", id.to_ascii_lowercase()),
        aliases: owned(aliases),
        origins: owned(origins),
        enabled: true,
        staging: false,
        tenant_only: false,
        rewrites: false,
        cache_tags: false,
    }
}

/// The matches of one host, as `id: reason` lines.
fn of(index: &Index, host: &str) -> Vec<String> {
    let matches = index.matches([&Host::parse(host).unwrap()], [""; 0]);
    let lines = matches.by_distribution.iter().flat_map(|(id, why)| why.iter().map(move |one| format!("{id}: {one}")));
    lines.collect()
}

#[test]
fn an_exact_alias_wins_over_a_wildcard_and_the_longest_wildcard_over_others() {
    let index = Index::new(vec![
        distribution("E1", &["WWW.Example.com"], &[]),
        distribution("E2", &["*.example.com"], &[]),
        distribution("E3", &["*.a.example.com"], &[]),
    ]);
    assert_eq!(of(&index, "www.example.com"), ["E1: alias www.example.com"]);
    assert_eq!(of(&index, "x.y.example.com"), ["E2: alias *.example.com covers host x.y.example.com"]);
    assert_eq!(of(&index, "x.a.example.com"), ["E3: alias *.a.example.com covers host x.a.example.com"]);
}

#[test]
fn a_wildcard_alias_does_not_cover_the_apex() {
    let index = Index::new(vec![distribution("E1", &["*.example.com"], &[])]);
    assert_eq!(of(&index, "example.com"), [""; 0]);
    assert_eq!(of(&index, "badexample.com"), [""; 0]);
}

#[test]
fn own_names_and_origins_match_whatever_the_aliases_do() {
    let index = Index::new(vec![
        distribution("E1", &["www.example.com"], &["origin.example.com"]),
        distribution("E2", &[], &["www.example.com", "e1.cloudfront.net"]),
        distribution("E3", &["*.example.com"], &[]),
    ]);
    let own = ["E1: own domain name e1.cloudfront.net", "E2: origin e1.cloudfront.net"];
    assert_eq!(of(&index, "e1.cloudfront.net"), own);
    // The wildcard alias of E3 is hidden by the alias of E1, and hides no origin.
    assert_eq!(of(&index, "www.example.com"), ["E1: alias www.example.com", "E2: origin www.example.com"]);
    let covered = "E3: alias *.example.com covers host origin.example.com";
    assert_eq!(of(&index, "origin.example.com"), ["E1: origin origin.example.com", covered]);
}

#[test]
fn names_that_lead_elsewhere_are_reached_by_no_wildcard_and_by_no_load_balancer() {
    let index = Index::new(vec![
        distribution("E1", &["a.example.com"], &["lb.io"]),
        distribution("E2", &["b.example.com", "c.example.com"], &["lb.io"]),
        distribution("E3", &["*.c.example.com"], &["b.example.com"]),
        distribution("E4", &[], &["lb.io"]),
    ]);
    let parse = |texts: &[&str]| texts.iter().map(|text| Host::parse(text).unwrap()).collect::<BTreeSet<_>>();
    let found = |hosts: &[&str], except: &[&str]| {
        let found = index.matches_except(&parse(hosts), [""; 0], &parse(except));
        found.by_distribution.keys().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(found(&["*.example.com"], &[]), ["E1", "E2", "E3"]);
    assert_eq!(found(&["*.example.com"], &["a.example.com", "b.example.com"]), ["E2"]);
    assert_eq!(found(&["**.example.com"], &["b.example.com", "c.example.com"]), ["E1", "E3"]);
    assert_eq!(found(&["**.example.com"], &["b.example.com", "**.c.example.com"]), ["E1", "E2"]);
    assert_eq!(found(&["*.example.com", "b.example.com"], &["b.example.com"]), ["E1", "E2", "E3"]);

    let matches = index.matches_except([], ["lb.io"], &parse(&["b.example.com", "a.example.com"]));
    let ids: Vec<&str> = matches.by_distribution.keys().map(DistributionId::as_str).collect();
    assert_eq!(ids, ["E2", "E4"], "an alias of E2 may be ours");
    assert_eq!(matches.skipped[0].0.as_str(), "E1");
    assert!(
        matches.skipped[0].1.starts_with("for aliases that all lead to other workloads; otherwise by origin lb.io")
    );
}

#[test]
fn an_ingress_wildcard_reaches_aliases_one_label_beneath_it_and_a_deep_one_all() {
    let index = Index::new(vec![
        distribution("E1", &["a.example.com"], &[]),
        distribution("E2", &["b.a.example.com", "*.c.example.com"], &[]),
        distribution("E3", &["example.com"], &[]),
    ]);
    assert_eq!(of(&index, "*.example.com"), ["E1: host *.example.com covers alias a.example.com"]);
    assert_eq!(
        of(&index, "**.example.com"),
        [
            "E1: host **.example.com covers alias a.example.com",
            "E2: host **.example.com covers alias *.c.example.com",
            "E2: host **.example.com covers alias b.a.example.com",
        ]
    );
}

#[test]
fn several_distributions_of_a_site_are_all_found() {
    let index = Index::new(vec![distribution("E1", &["a.io"], &["lb.io"]), distribution("E2", &["b.io"], &["lb.io"])]);
    let hosts = ["a.io", "b.io", "c.io"].map(|text| Host::parse(text).unwrap());
    let matches = index.matches(&hosts, ["LB.io", "other.io"]);
    assert_eq!(matches.by_distribution.len(), 2);
    assert_eq!(matches.unmatched, [Host::parse("c.io").unwrap()]);
    assert_eq!(matches.unmatched_origins, ["other.io"]);
}

#[test]
fn a_load_balancer_is_found_with_and_without_dualstack() {
    let index = Index::new(vec![distribution("E1", &[], &["k8s-1.eu-west-1.elb.amazonaws.com"])]);
    let matches = index.matches([], ["dualstack.k8s-1.eu-west-1.elb.amazonaws.com"]);
    assert_eq!(matches.by_distribution.len(), 1);
    let index = Index::new(vec![distribution("E1", &[], &["dualstack.k8s-1.eu-west-1.elb.amazonaws.com"])]);
    assert_eq!(index.matches([], ["k8s-1.eu-west-1.elb.amazonaws.com"]).by_distribution.len(), 1);
    let index = Index::new(vec![distribution("E1", &[], &["lb.cn-north-1.elb.amazonaws.com.cn"])]);
    assert_eq!(index.matches([], ["dualstack.lb.cn-north-1.elb.amazonaws.com.cn"]).by_distribution.len(), 1);
    let index = Index::new(vec![distribution("E1", &[], &["lb.example.com"])]);
    assert!(index.matches([], ["dualstack.lb.example.com"]).by_distribution.is_empty());
}

#[test]
fn disabled_staging_and_tenant_only_distributions_are_reported_and_hide_nothing() {
    let index = Index::new(vec![
        Distribution { enabled: false, ..distribution("E1", &["www.example.com"], &[]) },
        Distribution { staging: true, ..distribution("E2", &["*.example.com"], &[]) },
        Distribution { tenant_only: true, ..distribution("E3", &[], &["lb.example.com"]) },
        distribution("E4", &["*.example.com"], &[]),
    ]);
    let matches = index.matches([&Host::parse("www.example.com").unwrap()], ["lb.example.com"]);
    assert_eq!(matches.by_distribution.keys().map(DistributionId::as_str).collect::<Vec<_>>(), ["E4"]);
    let skipped: Vec<String> = matches.skipped.iter().map(|(id, why)| format!("{id} is {why}")).collect();
    assert_eq!(
        skipped,
        [
            "E1 is disabled; otherwise by alias www.example.com",
            "E3 is for distribution tenants only; otherwise by origin lb.example.com is the load balancer",
        ]
    );
}

/// A distribution tenant, as the listing has it.
fn tenant(id: &str, domains: &[&str]) -> Distribution {
    Distribution { domain_name: String::new(), ..distribution(id, domains, &[]) }
}

#[test]
fn a_distribution_tenant_is_found_by_its_domains_and_the_more_specific_name_counts() {
    let index = Index::new(vec![
        Distribution { tenant_only: true, ..distribution("E1", &[], &["lb.example.com"]) },
        distribution("E2", &["*.example.com"], &[]),
        tenant("dt_a", &["a.example.com", "*.a.example.com"]),
        tenant("dt_b", &["*.b.example.com"]),
        Distribution { enabled: false, ..tenant("dt_c", &["c.example.com"]) },
    ]);
    assert!(index.unreadable().is_empty(), "that it has no name of its own is no fault");
    assert_eq!(of(&index, "a.example.com"), ["dt_a: alias a.example.com"]);
    assert_eq!(of(&index, "x.y.a.example.com"), ["dt_a: alias *.a.example.com covers host x.y.a.example.com"]);
    assert_eq!(of(&index, "x.b.example.com"), ["dt_b: alias *.b.example.com covers host x.b.example.com"]);
    assert_eq!(of(&index, "b.example.com"), ["E2: alias *.example.com covers host b.example.com"]);
    assert_eq!(of(&index, "c.example.com"), ["E2: alias *.example.com covers host c.example.com"]);
    let skipped = |host: &str| index.matches([&Host::parse(host).unwrap()], ["lb.example.com"]).skipped;
    let words: Vec<String> = skipped("c.example.com").iter().map(|(id, why)| format!("{id} is {why}")).collect();
    let for_tenants = "E1 is for distribution tenants only; otherwise by origin lb.example.com is the load balancer";
    assert_eq!(words, [for_tenants, "dt_c is disabled; otherwise by alias c.example.com"]);
}

#[test]
fn what_is_added_is_matched_and_what_is_listed_stays_as_it_is_listed() {
    let mut index = Index::new(vec![tenant("dt_a", &["a.io"])]);
    index.add(tenant("dt_b", &["b.io"]));
    index.add(tenant("dt_a", &["other.io"]));
    assert_eq!((of(&index, "a.io").len(), of(&index, "b.io").len(), of(&index, "other.io").len()), (1, 1, 0));
    assert_eq!(index.iter().len(), 2);
}

#[test]
fn a_name_that_cannot_be_read_costs_only_itself() {
    let index = Index::new(vec![distribution("E1", &["not a host", "a.io"], &["10.0.0.1"])]);
    assert_eq!(of(&index, "a.io"), ["E1: alias a.io"]);
    assert_eq!(index.unreadable().len(), 2);
}
