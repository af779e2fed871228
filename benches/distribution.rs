//! What it costs to find the distributions of sites: 200 hosts against an account of 500 distributions.
//!
//! The index is built from one listing and asked once per decided plan, so both halves are measured.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use kernel::names::distribution::{Distribution, DistributionId, Index};
use kernel::names::host::Host;

/// Distributions of the account: 200 is AWS's default quota, larger accounts have it raised.
const DISTRIBUTIONS: usize = 500;

/// Aliases of each; the default quota is 100, most have a handful.
const ALIASES: usize = 10;

/// Hosts of all sites that are asked for together.
const HOSTS: usize = 200;

fn main() {
    divan::main();
}

#[divan::bench]
fn build_the_index(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(DISTRIBUTIONS)).with_inputs(listing).bench_values(Index::new);
}

#[divan::bench]
fn match_two_hundred_hosts(bencher: Bencher<'_, '_>) {
    let (index, hosts) = (Index::new(listing()), hosts());
    assert!(index.matches(&hosts, [""; 0]).unmatched.is_empty());
    bencher.counter(ItemsCount::new(HOSTS)).bench(|| index.matches(black_box(&hosts), [""; 0]));
}

/// What one rollout pays when nothing is kept: the listing copied, indexed and asked for one host.
#[divan::bench]
fn index_and_match_one_host(bencher: Bencher<'_, '_>) {
    let (listing, hosts) = (listing(), hosts());
    bencher.bench(|| Index::new(black_box(&listing).clone()).matches(hosts.first(), [""; 0]));
}

fn listing() -> Vec<Distribution> {
    (0..DISTRIBUTIONS).filter_map(distribution).collect()
}

/// Every fifth one has a wildcard alias as well, and all fetch from the load balancer of one of fifty clusters.
fn distribution(number: usize) -> Option<Distribution> {
    let mut aliases: Vec<String> = (0..ALIASES).map(|alias| format!("www{alias}.shop-{number}.example.com")).collect();
    if number.is_multiple_of(5) {
        aliases.push(format!("*.shop-{number}.example.com"));
    }
    Some(Distribution {
        id: DistributionId::parse(&format!("E{number:013}")).ok()?,
        domain_name: format!("d{number:013}.cloudfront.net"),
        aliases,
        origins: vec![format!("k8s-{}-0123456789.eu-west-1.elb.amazonaws.com", number % 50)],
        enabled: true,
        staging: false,
        tenant_only: false,
        rewrites: false,
        cache_tags: false,
    })
}

/// Hosts all over the account: three out of four by their exact alias, the others by a wildcard.
fn hosts() -> Vec<Host> {
    let host = |number: usize| {
        let label = if number.is_multiple_of(4) { "preview".to_owned() } else { format!("www{}", number % ALIASES) };
        let shop = number * 5 % DISTRIBUTIONS;
        Host::parse(&format!("{label}.shop-{shop}.example.com")).ok()
    };
    (0..HOSTS).filter_map(host).collect()
}
