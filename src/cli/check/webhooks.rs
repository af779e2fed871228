//! The receivers of notices: whether each can be found, may be called, proves who it is, and answers. By a HEAD request to the root
//! of its host through the same guard as notices; it has no path, no parameter and no credential of the hook.
//!
//! Not for whether a receiver takes a notice; `allclear webhook test` sends one.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, Method};
use url::Url;

use super::catalog::{Check, WEBHOOK_ALLOWED, WEBHOOK_ANSWER, WEBHOOK_NAME, WEBHOOK_TLS, WEBHOOK_WORKLOADS};
use super::report::Finding;
use crate::adapters::http::{Client, Error, Request, TLS_FAILED, UNRESOLVED};
use crate::app::StartError;
use crate::config::Hook;
use crate::looking::page::count;
use crate::looking::workloads::Listed;
use kernel::id::Subject;

/// Longest wait for one receiver.
const WITHIN: Duration = Duration::from_secs(10);

/// Receivers asked at most; hooks of one host are one receiver.
const RECEIVERS_MAX: usize = 50;

const ALL: [Check; 4] = [WEBHOOK_NAME, WEBHOOK_ALLOWED, WEBHOOK_TLS, WEBHOOK_ANSWER];

pub async fn webhooks(hooks: &[Hook], http: &Result<Client, StartError>) -> Vec<Finding> {
    let mut receivers: BTreeMap<String, Url> = BTreeMap::new();
    for hook in hooks {
        let mut root = hook.url.expose().clone();
        root.set_path("/");
        root.set_query(None);
        // Neither fails for what has a host, and every hook has one.
        let _ = root.set_username("");
        let _ = root.set_password(None);
        receivers.insert(root.origin().ascii_serialization(), root);
    }
    let client = match http {
        Ok(client) => client,
        Err(why) if !receivers.is_empty() => return vec![WEBHOOK_ANSWER.failed(why)],
        Err(_) => return Vec::new(),
    };
    let left_out = receivers.len().saturating_sub(RECEIVERS_MAX);
    let asked = receivers.into_iter().take(RECEIVERS_MAX).map(|(name, root)| async move {
        let is_tls = root.scheme() == "https";
        let request =
            Request { method: Method::HEAD, url: root, headers: HeaderMap::new(), body: Bytes::new(), timeout: WITHIN };
        judged(client.send(request).await.map(|answer| answer.status), is_tls)
            .into_iter()
            .map(|finding| finding.of(&name))
            .collect::<Vec<_>>()
    });
    let mut findings: Vec<Finding> = join_all(asked).await.into_iter().flatten().collect();
    if left_out > 0 {
        findings.push(WEBHOOK_ANSWER.untried(format!("not tried: {left_out} further receivers")));
    }
    findings
}

/// Hooks that are about no workload there is: mostly a slip in a name. Nothing is said where not all workloads are known.
pub fn workloads(hooks: &[Hook], listed: &Listed) -> Vec<Finding> {
    if !listed.troubles.is_empty() {
        return Vec::new();
    }
    let meant = |hook: &Hook| {
        let of = |subject: &Subject| hook.workloads.iter().any(|pattern| pattern.matches(subject));
        listed.workloads.keys().filter(|id| of(&Subject::from((*id).clone()))).count()
    };
    let line = |hook: &Hook| match meant(hook) {
        0 => {
            let patterns: Vec<String> = hook.workloads.iter().map(ToString::to_string).collect();
            let reason = format!("it is called for {}, and no such workload is watched", patterns.join(", "));
            let hint = "correct \"workloads\" in the webhook file, or \"name\" where that is left out";
            WEBHOOK_WORKLOADS.warning(reason).hint(hint)
        }
        found => WEBHOOK_WORKLOADS.good(count(found, "workload", "workloads")),
    };
    // Objects of other kinds are hooks' as well, and are not listed here.
    hooks.iter().filter(|hook| is_about_workloads(hook)).map(|hook| line(hook).of(&hook.name)).collect()
}

/// Whether a hook is called for what becomes of workloads. Runs and promotions are about objects of other kinds.
fn is_about_workloads(hook: &Hook) -> bool {
    let of_others = ["promotion.", "pipeline.", "run.", "repo."];
    hook.events.iter().any(|kind| !of_others.iter().any(|begin| kind.name().starts_with(begin)))
}

/// What an answer says of each check: those before the one that failed hold, those behind it were not tried.
fn judged(answer: Result<u16, Error>, is_tls: bool) -> Vec<Finding> {
    let is_made = |check: &Check| is_tls || *check != WEBHOOK_TLS;
    let made = ALL.into_iter().filter(is_made);
    let (failed, words, hint) = match answer {
        Ok(status) => {
            let good = made.filter(|check| *check != WEBHOOK_ANSWER).map(|check| check.good("yes"));
            return good.chain([WEBHOOK_ANSWER.good(format!("answers ({status})"))]).collect();
        }
        Err(Error::Blocked(words)) => {
            (WEBHOOK_ALLOWED, words, "if a private address is meant, set webhooks.allow_private = true")
        }
        Err(Error::Failed(words)) if words.starts_with(TLS_FAILED) => {
            (WEBHOOK_TLS, words, "renew the certificate, or have it signed by an authority that this image trusts")
        }
        Err(Error::Failed(words)) if words.starts_with(UNRESOLVED) => {
            (WEBHOOK_NAME, words, "correct the URL in the webhook file, or the DNS of the cluster")
        }
        Err(Error::Failed(words) | Error::Unusable(words)) => {
            (WEBHOOK_ANSWER, words, "see whether the receiver runs, and whether a NetworkPolicy lets us out")
        }
    };
    let line = |check: Check| {
        if check == failed {
            check.failed(&words).hint(hint)
        } else if check.place() < failed.place() {
            check.good("yes")
        } else {
            check.after(failed)
        }
    };
    made.map(line).collect()
}
