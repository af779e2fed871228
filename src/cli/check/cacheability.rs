//! `--cacheability`: what answers through the CDN say of how they are cached, as far as that matters for a purge.
//!
//! The first hosts are asked for the pages that a look would ask for ([`Question`]), through the same guard, each twice: the second answer
//! shows whether the edge keeps the first. Then for some of what the pages load. No more than a request a second to a host.
//! A redirect is an answer as any other, and is not followed: each page is one request.
//!
//! Not for what headers mean; that is [`proof::cacheability`]. Nor for whether a page is fresh.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use super::catalog::CACHEABILITY;
use super::report::Finding;
use crate::adapters::edge_look::EdgeLook;
use crate::app::StartError;
use crate::app::checking::Cloud;
use crate::looking::page::count;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::names::paths::Path;
use proof::asked::{Answer, Body, PATHS_MAX, Page, Question, QuestionId, WAIT_MAX};
use proof::cacheability::{Found, found, linked};
use purge::ports::Cdn;

/// Hosts that are asked.
pub const HOSTS_MAX: usize = 4;

/// Between two requests to a host: as between the looks after a purge.
pub const PACE: Duration = Duration::from_secs(1);

/// For one host: four pages twice and four assets, at a second each, and some that are slow.
const HOST_WITHIN: Duration = Duration::from_secs(45);

/// What is to be looked at.
pub(super) struct Asked<'a> {
    pub look: &'a Result<EdgeLook, StartError>,
    /// The hosts that distributions serve by name; for each, the distribution that is purged by cache tags, if one is.
    pub served: &'a BTreeMap<Host, Option<DistributionId>>,
    /// Of each host.
    pub paths: &'a [Path],
    /// Between two requests to a host.
    pub pace: Duration,
}

/// What one page came to.
struct Seen {
    page: String,
    found: Result<Vec<Found>, Unanswered>,
}

/// Why there is nothing to judge.
#[derive(Debug, thiserror::Error)]
#[error("no answer to judge: {0}")]
struct Unanswered(String);

/// The header in which a distribution looks for cache tags, in lower case; an account that does not have it says nothing.
async fn tag_header(clouds: &[Cloud], id: &DistributionId) -> Option<String> {
    for cloud in clouds {
        if let Ok(Some(name)) = cloud.cdn.cache_tag_header(id).await {
            return Some(name.to_ascii_lowercase());
        }
    }
    None
}

/// Looks at the first hosts side by side.
pub(super) async fn cacheability(asked: &Asked<'_>, clouds: &[Cloud]) -> Vec<Finding> {
    let look = match asked.look {
        Ok(look) => look,
        Err(why) => return vec![CACHEABILITY.untried(why)],
    };
    let few: Vec<_> = asked.served.iter().take(HOSTS_MAX).collect();
    if few.is_empty() {
        return vec![CACHEABILITY.untried("no watched host is served by a distribution")];
    }
    let of_host = async |(host, tagged): &(&Host, &Option<DistributionId>)| {
        let mut seen = Vec::new();
        let asking = async {
            // Where it cannot be read which header that is, no answer can lack it.
            let tags = match tagged {
                Some(id) => tag_header(clouds, id).await,
                None => None,
            };
            pages(look, host, asked, tags.as_deref(), &mut seen).await;
        };
        let late = timeout(HOST_WITHIN, asking).await.is_err();
        (seen, late.then(|| host.to_string()))
    };
    let all = join_all(few.iter().map(of_host)).await;
    let late = all.iter().filter_map(|(_, late)| late.as_ref());
    let late = late
        .map(|host| CACHEABILITY.warning(format!("not all was answered within {} s", HOST_WITHIN.as_secs())).of(host));
    let mut findings: Vec<Finding> = late.collect();
    let seen: Vec<&Seen> = all.iter().flat_map(|(seen, _)| seen).collect();
    for Seen { page, found } in &seen {
        match found {
            Ok(found) => findings.extend(
                found.iter().map(|one| CACHEABILITY.warning(format!("{one}: {}", one.why())).hint(one.cure()).of(page)),
            ),
            Err(why) => findings.push(CACHEABILITY.warning(why).of(page)),
        }
    }
    let left = asked.served.len().saturating_sub(few.len());
    let more = if left > 0 { format!("; {left} more hosts were not asked") } else { String::new() };
    let words =
        format!("looked at: {} of {}{more}", count(seen.len(), "page", "pages"), count(few.len(), "host", "hosts"));
    if findings.is_empty() { vec![CACHEABILITY.good(words)] } else { findings }
}

/// Asks one host for its pages, and for what they load.
async fn pages(look: &EdgeLook, host: &Host, asked: &Asked<'_>, tags: Option<&str>, seen: &mut Vec<Seen>) {
    let mut assets: BTreeSet<Path> = BTreeSet::new();
    for path in asked.paths.iter().take(PATHS_MAX) {
        let Ok(page) = Page::new(host.clone(), path.clone()) else { continue };
        let first = ask(look, &page, true, tags).await;
        if let Ok(Answer { body: Body::Whole(body), .. }) = &first {
            assets.extend(linked(&String::from_utf8_lossy(body)));
        }
        sleep(asked.pace).await;
        let answer = ask(look, &page, false, tags).await;
        seen.push(Seen { page: page.to_string(), found: answer.map(|answer| found(&answer, tags)) });
        sleep(asked.pace).await;
    }
    for path in assets.into_iter().take(proof::cacheability::LINKED_MAX) {
        let Ok(page) = Page::new(host.clone(), path) else { continue };
        let answer = ask(look, &page, false, tags).await;
        // Tags are for what a release changes.
        seen.push(Seen { page: page.to_string(), found: answer.map(|answer| found(&answer, None)) });
        sleep(asked.pace).await;
    }
}

/// The one answer to a question, also where it leads elsewhere, or why there is none.
async fn ask(look: &EdgeLook, page: &Page, wants_body: bool, tags: Option<&str>) -> Result<Answer, Unanswered> {
    let id = QuestionId { round: 0, page: 0, look: 1 };
    let marker_header = tags.map(str::to_owned);
    let question = Question { id, page: page.clone(), requests_max: 1, wants_body, marker_header, asks_pods: false };
    let mut reply = look.edge(&question, Instant::now() + WAIT_MAX).await;
    // After an answer, what fails is that a redirect is not followed.
    let why = || Unanswered(reply.failure.take().unwrap_or_else(|| "nothing came back".to_owned()));
    reply.hops.pop().ok_or_else(why)
}
