//! Which distributions can be purged by cache tags: those that have them switched on and whose answers carry them. A purge by tag of
//! objects that were stored without tags does nothing, and CloudFront calls it completed.
//!
//! What cannot be looked at, or does not come from CloudFront, says nothing: then the configuration of the distribution is believed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Effect, Found};
use crate::bounds::plan::Plan;
use crate::purges::purge::CdnErrorClass;
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::paths::Path;
use proof::age;
use proof::asked::{Answers, Page, Question, QuestionId, REQUESTS_MAX};

/// Distributions of one plan with cache tags whose configuration is read, one call each. A workload has one or two; those beyond
/// are purged by paths, which is correct and only costs cache misses.
pub const TAGS_READ_MAX: usize = 20;

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Tags {
    /// Whether answers are looked at.
    pub(super) samples: bool,
    /// With when that was read.
    known: BTreeMap<DistributionId, (Timestamp, Standing)>,
    reading: BTreeSet<DistributionId>,
    /// Why a configuration may not be read, while that is so.
    pub(super) denied: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Standing {
    On,
    Off,
    /// They are switched on, and this answer came without them; in words.
    Missing(String),
}

/// What became of a reading.
pub(super) enum Read {
    /// It is known.
    Known,
    /// An answer is to be looked at.
    Sample(Effect),
    /// It is not known; who waits for it asks again.
    Failed(String),
}

impl Tags {
    /// Drops what was read longer ago than that.
    pub(super) fn forget(&mut self, now: Timestamp, refresh: Duration) {
        self.known.retain(|_, (at, _)| now.since(*at) < refresh);
    }

    /// Those of which nothing is known.
    pub(super) fn unknown(&self, found: &Found) -> Vec<DistributionId> {
        few(found).filter(|id| !self.known.contains_key(*id)).cloned().collect()
    }

    /// What is known of them, in full.
    pub(super) fn tell(&self, found: Found) -> Found {
        let those = |is_so: fn(&Standing) -> bool| {
            let is_so = |id: &&DistributionId| self.known.get(*id).is_some_and(|(_, standing)| is_so(standing));
            few(&found).filter(is_so).cloned().collect()
        };
        let tagged = those(|standing| *standing == Standing::On);
        let untagged = those(|standing| matches!(standing, Standing::Missing(_)));
        Found { tagged, untagged, ..found }
    }

    /// Has one read, unless that is under way.
    pub(super) fn begin(&mut self, id: DistributionId) -> Option<Effect> {
        self.reading.insert(id.clone()).then_some(Effect::ReadTags(id))
    }

    /// The distributions whose answers carry no tags, as was seen no longer ago than that; in words.
    pub(super) fn missing(&self, now: Timestamp, refresh: Duration) -> impl Iterator<Item = String> {
        let is_current = move |at: Timestamp| now.since(at) < refresh;
        self.known.iter().filter(move |(_, (at, _))| is_current(*at)).filter_map(|(id, (_, standing))| match standing {
            Standing::Missing(why) => Some(format!("all of {id} is purged, and not by cache tags: {why}")),
            Standing::On | Standing::Off => None,
        })
    }

    /// If we may not know, tags count as switched off: paths are always right. After a passing failure, the rollout that
    /// wants the answer asks again.
    pub(super) fn read(
        &mut self,
        now: Timestamp,
        id: DistributionId,
        header: Result<Option<String>, (CdnErrorClass, String)>,
        page: Option<Page>,
    ) -> Read {
        self.reading.remove(&id);
        match header {
            Ok(header) => {
                self.denied = None;
                match header.clone().zip(page.filter(|_| self.samples)) {
                    Some((header, page)) => {
                        self.reading.insert(id.clone());
                        return Read::Sample(Effect::Sample(id, Box::new(question(&header, page))));
                    }
                    None => self.note(now, id, if header.is_some() { Standing::On } else { Standing::Off }),
                }
            }
            Err((CdnErrorClass::Denied, why)) => {
                self.denied = Some(why);
                self.note(now, id, Standing::Off);
            }
            // What is wrong with the distribution or with the request shows when it is purged.
            Err((CdnErrorClass::Gone | CdnErrorClass::Refused | CdnErrorClass::NoSuchInvalidation, _)) => {
                self.note(now, id, Standing::Off);
            }
            Err((
                CdnErrorClass::Throttled
                | CdnErrorClass::TooManyInProgress
                | CdnErrorClass::Ambiguous
                | CdnErrorClass::ReferenceReused
                | CdnErrorClass::Unexpected,
                why,
            )) => return Read::Failed(why),
        }
        Read::Known
    }

    /// An answer was looked at.
    pub(super) fn sampled(&mut self, now: Timestamp, id: DistributionId, question: &Question, answers: &Answers) {
        self.reading.remove(&id);
        let missing = missing_in(question, answers).map(Standing::Missing);
        self.note(now, id, missing.unwrap_or(Standing::On));
    }

    fn note(&mut self, now: Timestamp, id: DistributionId, standing: Standing) {
        self.known.insert(id, (now, standing));
    }
}

/// Those whose configuration is read. A distribution tenant has none of its own, and whether it can be purged by tags is not documented:
/// it is purged by paths.
pub(super) fn few(found: &Found) -> impl Iterator<Item = &DistributionId> {
    found.distributions.keys().filter(|id| !id.is_of_distribution_tenant()).take(TAGS_READ_MAX)
}

/// A page of the plan that comes from this distribution: of a host that the account's own listing has for it, or what any namespace names
/// would speak for all.
pub(super) fn page_of(plan: &Plan, found: &Found, id: &DistributionId) -> Option<Page> {
    let hosts = found.distributions.get(id)?.hosts.iter();
    let one = |path: &&Path| !path.is_tag() && !path.is_wildcard();
    let path = plan.paths.iter().find(one).cloned().or_else(|| Path::parse("/").ok())?;
    hosts.filter_map(|host| Page::new(host.clone(), path.clone()).ok()).next()
}

fn question(header: &str, page: Page) -> Question {
    Question {
        id: QuestionId { round: 0, page: 0, look: 1 },
        page,
        requests_max: REQUESTS_MAX,
        wants_body: false,
        marker_header: Some(header.to_ascii_lowercase()),
        asks_pods: false,
    }
}

/// That a page came through CloudFront, and without its tags; in words.
fn missing_in(question: &Question, answers: &Answers) -> Option<String> {
    let header = question.marker_header.as_ref()?;
    let last = answers.edge.hops.last().filter(|_| answers.edge.failure.is_none())?;
    let is_page = (200..300).contains(&last.status) && age::counts(last).is_ok();
    let words = || format!("{} comes without the header {header} that is to carry them", question.page);
    (is_page && last.headers.all(header).is_empty()).then(words)
}
