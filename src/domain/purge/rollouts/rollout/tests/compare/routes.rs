//! Purges by routes: what is sent to each distribution, before the production catalog.

use super::*;
use crate::workloads::extent::Extent;

fn routes(items: &[&str]) -> Option<Extent> {
    let items = ["routes"].iter().chain(items).map(|item| item.parse().unwrap());
    Some(Extent::of(items.collect()).unwrap())
}

fn led(account: &mut Account, by: &[(&str, &str)]) {
    let paths = |text: &str| text.split(' ').map(|path| path.parse().unwrap()).collect();
    account.hosts = by.iter().map(|(host, _)| host.parse().unwrap()).collect();
    let some = by.iter().filter(|(_, text)| !text.is_empty());
    account.routed = some.map(|(host, text)| (host.parse().unwrap(), paths(text))).collect();
}

/// What the next rollout sends.
fn next(account: &mut Account, tag: &str) -> Vec<String> {
    account.sent.clear();
    account.roll_out(tag, account.now.after(Duration::from_secs(60)));
    std::mem::take(&mut account.sent)
}

#[test]
fn the_first_purge_is_of_everything_and_then_each_distribution_gets_the_paths_of_its_own_hosts() {
    let mut account = Account::listed(vec![serving("E1", &["a.io", "b.io"]), serving("E2", &["c.io"])]);
    account.extent = routes(&[]);
    led(&mut account, &[("a.io", "/shop*"), ("b.io", "/blog*"), ("c.io", "/x*")]);
    assert_eq!(next(&mut account, "b"), ["E1: /*", "E2: /*"]);
    assert_eq!(next(&mut account, "c"), ["E1: /blog* /shop*", "E2: /x*"]);
    led(&mut account, &[("a.io", "/shop*"), ("b.io", ""), ("c.io", "/x*")]);
    assert_eq!(next(&mut account, "d"), ["E1: /*", "E2: /x*"], "one host of it may be reached by any path");
    account.extent = None;
    assert_eq!(next(&mut account, "e"), ["E1: /*", "E2: /*"]);
    account.extent = routes(&[]);
    assert_eq!(next(&mut account, "f"), ["E1: /*", "E2: /*"], "what led to it meanwhile is not known");
}

#[test]
fn answers_under_the_paths_of_before_are_purged_with_the_next_version() {
    let mut account = Account::listed(vec![serving("E1", &["a.io"])]);
    account.extent = routes(&["/api/*"]);
    led(&mut account, &[("a.io", "/shop*")]);
    next(&mut account, "b");
    led(&mut account, &[("a.io", "/store*")]);
    assert_eq!(next(&mut account, "c"), ["E1: /api/* /shop* /store*"]);
    assert_eq!(next(&mut account, "d"), ["E1: /api/* /store*"]);
}

#[test]
fn a_distribution_that_changes_paths_is_purged_whole_and_no_other() {
    let rewriting = Distribution { rewrites: true, ..serving("E1", &["a.io"]) };
    let mut account = Account::listed(vec![rewriting, serving("E2", &["b.io"])]);
    account.extent = routes(&[]);
    led(&mut account, &[("a.io", "/shop*"), ("b.io", "/blog*")]);
    next(&mut account, "b");
    assert_eq!(next(&mut account, "c"), ["E1: /*", "E2: /blog*"]);
}

#[test]
fn a_notice_names_the_paths_that_were_sent() {
    let mut account = Account::listed(vec![serving("E1", &["a.io"])]);
    account.extent = routes(&[]);
    led(&mut account, &[("a.io", "/shop*")]);
    next(&mut account, "b");
    account.told.clear();
    next(&mut account, "c");
    let (_, end) = account.end();
    let paths: Vec<String> =
        end.about.mentions().unwrap().purges.iter().flat_map(|fact| &fact.paths).map(ToString::to_string).collect();
    assert_eq!(paths, ["/shop*"]);
}
