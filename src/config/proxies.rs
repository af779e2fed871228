//! What the proxy variables of the environment do not do: requests to AWS, and the way of a person's kubeconfig to its API server, go
//! through them, and nothing else does. Where something else would, that is said.
//!
//! Not for `webhooks.proxy`, which is ours.

use std::collections::BTreeMap;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

use super::hook::Hook;
use super::problem::{Findings, Place};

/// Each in small letters too.
const VARIABLES: [&str; 3] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];

/// Says what goes past the environment's proxy although nothing says that this is meant. `hooks`: those that no proxy of ours leads to;
/// `git`: the keys by which features are switched on that ask git hosts.
pub(super) fn warn(
    environment: &BTreeMap<String, String>,
    hooks: &[Hook],
    git: impl IntoIterator<Item = &'static str>,
    findings: &mut Findings,
) {
    let given = |name: &str| {
        let given = environment.get_key_value(name).or_else(|| environment.get_key_value(&name.to_ascii_lowercase()));
        given.filter(|(_, value)| !value.trim().is_empty())
    };
    let value = |name: &str| given(name).map_or("", |(_, value)| value.as_str());
    let Some((name, _)) = VARIABLES.into_iter().find_map(given) else { return };
    let [https, http, all] = VARIABLES.map(value);
    let matcher = Matcher::builder().https(https).http(http).all(all).no(value("NO_PROXY")).build();
    let place = Place::Environment(name.clone());
    let would = |hook: &&Hook| {
        let uri = hook.url.expose().as_str().parse::<Uri>();
        uri.is_ok_and(|uri| matcher.intercept(&uri).is_some())
    };
    let past = hooks.iter().filter(would).count();
    if past > 0 {
        let called = if past == 1 { "1 is".to_owned() } else { format!("{past} are") };
        let message = format!(
            "is not used for webhooks: {called} called directly; if only a proxy leads there, set webhooks.proxy; if \
             this is meant, name their hosts in NO_PROXY"
        );
        findings.warn(&place, "webhooks.proxy", message);
    }
    for key in git {
        let message =
            "is not used for git hosts and forges; the pod must reach them itself (docs/install.md, Behind a proxy)";
        findings.warn(&place, key, message);
    }
}
