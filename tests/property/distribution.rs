//! The index of distributions, compared with the rule written out naively.

use std::collections::BTreeSet;

use kernel::names::distribution::{Distribution, DistributionId, Index, Matches};
use kernel::names::host::{Depth, Host};
use proptest::prelude::*;

/// Names over few labels, so that they meet.
fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c-d"]), 0..3)
        .prop_map(|labels| labels.into_iter().chain(["x", "io"]).collect::<Vec<_>>().join("."))
}

fn alias() -> impl Strategy<Value = String> {
    prop_oneof![2 => name(), 1 => name().prop_map(|name| format!("*.{name}"))]
}

fn host() -> impl Strategy<Value = Host> {
    let text = prop_oneof![
        4 => name(),
        1 => name().prop_map(|name| format!("*.{name}")),
        1 => name().prop_map(|name| format!("**.{name}")),
        1 => (0_usize..6).prop_map(|number| format!("d{number}.cloudfront.net")),
    ];
    text.prop_map(|text| text.parse().unwrap())
}

fn distributions() -> impl Strategy<Value = Vec<Distribution>> {
    let names = (prop::collection::vec(alias(), 0..4), prop::collection::vec(name(), 0..3));
    let flags = (prop::bool::weighted(0.8), prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    prop::collection::vec((names, flags), 0..6).prop_map(|all| {
        let one = |(number, ((aliases, origins), (enabled, staging, tenant_only)))| Distribution {
            id: DistributionId::parse(&format!("E{number}")).unwrap(),
            domain_name: format!("d{number}.cloudfront.net"),
            aliases,
            origins,
            enabled,
            staging,
            tenant_only,
            rewrites: false,
            cache_tags: false,
        };
        all.into_iter().enumerate().map(one).collect()
    })
}

fn hosts() -> impl Strategy<Value = Vec<Host>> {
    prop::collection::vec(host(), 0..5)
}

/// Whether CloudFront's wildcard alias `*.domain` covers the name: any depth, not the domain itself.
fn wildcard_covers(alias: &str, name: &str) -> bool {
    alias.strip_prefix('*').is_some_and(|dot_domain| name.ends_with(dot_domain) && name.len() > dot_domain.len())
}

/// Distributions that one name reaches: those CloudFront would serve it from (exact alias, else longest wildcard alias), and
/// those that have it as own name or origin.
fn serving<'a>(all: &[&'a Distribution], name: &str, own_names: bool) -> BTreeSet<&'a DistributionId> {
    let by = |test: &dyn Fn(&Distribution) -> bool| -> BTreeSet<&'a DistributionId> {
        all.iter().filter(|one| test(one)).map(|one| &one.id).collect()
    };
    let covering = all.iter().flat_map(|one| &one.aliases).filter(|alias| wildcard_covers(alias, name));
    let longest = covering.max_by_key(|alias| alias.len());
    let mut found = by(&|one| one.aliases.iter().any(|alias| alias == name));
    if found.is_empty() {
        found.extend(by(&|one| longest.is_some_and(|longest| one.aliases.contains(longest))));
    }
    found.extend(by(&|one| own_names && one.domain_name == name));
    found.extend(by(&|one| one.origins.iter().any(|origin| origin == name)));
    found
}

/// Names a host stands for, enough of them to reach every distribution the host reaches: each known name beneath it,
/// and a fresh one beneath it and beneath each wildcard alias.
fn witnesses(all: &[&Distribution], host: &Host) -> Vec<String> {
    let domain = host.domain();
    let Some(depth) = host.depth() else { return vec![domain.to_owned()] };
    let known =
        all.iter().flat_map(|one| one.aliases.iter().chain(&one.origins)).map(|text| text.replace('*', "fresh"));
    known
        .chain([format!("fresh.{domain}")])
        .filter(|name| match name.strip_suffix(domain).and_then(|front| front.strip_suffix('.')) {
            None => false,
            Some(labels) => depth == Depth::Any || !labels.contains('.'),
        })
        .collect()
}

fn naive(all: &[Distribution], host: &Host, elsewhere: &[String]) -> BTreeSet<DistributionId> {
    let matchable: Vec<&Distribution> =
        all.iter().filter(|one| one.enabled && !one.staging && !one.tenant_only).collect();
    let mut names = witnesses(&matchable, host);
    names.retain(|name| !host.is_wildcard() || !elsewhere.contains(name));
    names.iter().flat_map(|name| serving(&matchable, name, !host.is_wildcard())).cloned().collect()
}

fn matched(index: &Index, hosts: &[Host]) -> Matches {
    index.matches(hosts, [""; 0])
}

fn ids(matches: &Matches) -> BTreeSet<DistributionId> {
    matches.by_distribution.keys().cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_index_finds_what_the_rule_says(all in distributions(), host in host()) {
        let found = ids(&matched(&Index::new(all.clone()), std::slice::from_ref(&host)));
        prop_assert_eq!(found, naive(&all, &host, &[]), "{} among {:#?}", host, all);
    }

    // Names that lead elsewhere are taken out of what a wildcard stands for, and of nothing else.
    #[test]
    fn the_index_leaves_out_what_leads_elsewhere(
        all in distributions(),
        host in host(),
        elsewhere in prop::collection::vec(name(), 0..4),
    ) {
        let except = elsewhere.iter().map(|name| Host::parse(name).unwrap()).collect();
        let found = ids(&Index::new(all.clone()).matches_except([&host], [""; 0], &except));
        prop_assert_eq!(found, naive(&all, &host, &elsewhere), "{} but {:?} among {:#?}", host, elsewhere, all);
    }

    #[test]
    fn a_site_matches_what_its_hosts_match(all in distributions(), hosts in hosts()) {
        let index = Index::new(all);
        let together = matched(&index, &hosts);
        let mut apart = BTreeSet::new();
        for host in &hosts {
            let alone = matched(&index, std::slice::from_ref(host));
            prop_assert_eq!(together.unmatched.contains(host), alone.by_distribution.is_empty());
            apart.extend(ids(&alone));
        }
        prop_assert_eq!(ids(&together), apart);
    }

    // match(match(x)) = match(x): an index of only what was found finds the same, for the same reasons.
    #[test]
    fn matching_again_among_what_was_found_changes_nothing(all in distributions(), hosts in hosts()) {
        let first = matched(&Index::new(all.clone()), &hosts);
        let found = all.into_iter().filter(|one| first.by_distribution.contains_key(&one.id)).collect();
        let again = matched(&Index::new(found), &hosts);
        for (id, reasons) in &first.by_distribution {
            let again = again.by_distribution.get(id).map(Vec::as_slice).unwrap_or_default();
            let kept = reasons.iter().all(|reason| again.contains(reason));
            prop_assert!(kept, "{}: {:?} became {:?}", id, reasons, again);
        }
    }

    #[test]
    fn the_order_of_the_listing_does_not_matter(all in distributions(), hosts in hosts()) {
        let mut reversed = all.clone();
        reversed.reverse();
        let mut turned = hosts.clone();
        turned.reverse();
        prop_assert_eq!(matched(&Index::new(all), &hosts), matched(&Index::new(reversed), &turned));
    }

    #[test]
    fn only_what_cannot_match_is_skipped_and_it_never_matches(all in distributions(), hosts in hosts()) {
        let index = Index::new(all);
        let matches = matched(&index, &hosts);
        prop_assert!(matches.skipped.iter().all(|(id, _)| index.get(id).unwrap().unmatchable().is_some()));
        prop_assert!(ids(&matches).iter().all(|id| index.get(id).unwrap().unmatchable().is_none()));
    }

    #[test]
    fn a_wildcard_alias_never_covers_the_apex(domain in name(), deeper in "[a-z]{1,5}(\\.[a-z]{1,3}){0,3}") {
        let only = Distribution {
            id: DistributionId::parse("E1").unwrap(),
            domain_name: "d1.cloudfront.net".into(),
            aliases: vec![format!("*.{domain}")],
            origins: Vec::new(),
            enabled: true,
            staging: false,
            tenant_only: false,
            rewrites: false,
            cache_tags: false,
        };
        let index = Index::new(vec![only]);
        prop_assert!(matched(&index, &[domain.parse().unwrap()]).by_distribution.is_empty());
        let beneath: Host = format!("{deeper}.{domain}").parse().unwrap();
        prop_assert_eq!(matched(&index, &[beneath]).by_distribution.len(), 1);
    }

    #[test]
    fn a_host_survives_its_own_text_and_loses_case(host in host()) {
        prop_assert_eq!(Host::parse(host.as_str()), Ok(host.clone()));
        prop_assert_eq!(Host::parse(&host.as_str().to_ascii_uppercase()), Ok(host));
    }

    #[test]
    fn no_text_makes_the_host_parser_panic(text in any::<String>(), odd in "[a-zA-Z0-9*._-]{0,300}") {
        for text in [text, odd] {
            match Host::parse(&text) {
                Ok(host) => {
                    prop_assert!(host.as_str().len() <= 254);
                    prop_assert_eq!(host.as_str(), host.as_str().to_ascii_lowercase());
                }
                Err(error) => prop_assert!(error.to_string().len() < 1_024),
            }
        }
    }

    // Goal: `covers` is set inclusion. Method: any name beneath the inner host is beneath the outer one.
    #[test]
    fn covering_hosts_cover_the_same_names(
        outer in host(),
        inner in host(),
        labels in "[a-z]{1,3}(\\.[a-z]{1,3}){0,2}",
    ) {
        let name = match inner.depth() {
            None => inner.clone(),
            Some(_) => format!("{labels}.{}", inner.domain()).parse().unwrap(),
        };
        prop_assert!(!(outer.covers(&inner) && inner.covers(&name)) || outer.covers(&name));
        prop_assert!(outer.covers(&outer));
    }
}
