//! Why a workload was purged, or was not, and what happens next: asks every source about it, each on its own, and puts the answers
//! together. [`Explanation`] is the answer; programs get it as JSON, and people as the text that it displays.

mod beside;
mod caches;
pub(crate) mod distributions;
pub mod model;
mod routes;
pub(crate) mod text;
mod tone;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::looking::account::{self, Listing};
use crate::looking::explain::beside::beside;
use crate::looking::explain::distributions::distributions;
use crate::looking::explain::model::{
    DeploymentSeen, DistributionsSeen, Explanation, GroupSeen, LookSeen, PathsSeen, ProofSeen, RecordSeen, Rejected,
    SiteSeen, WebhookSeen,
};
use crate::looking::layout::Tone;
use crate::looking::listen::{UNREAD, listen};
use crate::looking::{Section, Sources, awaited, no_replica, old_pods_at_the_barrier, peeked, summarised};
use kernel::id::WorkloadId;
use kernel::names::host::Host;
use kernel::names::paths::PathSet;
use kinds::reported::Standing;
use notices::delivery::{Delivery, State};
use purge::agreement::tally::Tally;
use purge::bounds::policy::{Policy, Proven};
use purge::bounds::tenants::Tenancy;
use purge::ports::{LedgerContents, PortError};
use purge::records::record::{Outcome, Phase, Record};
use purge::rollouts::rollout::{Arrival, Preview, Summary, as_it_runs, closed, faults, preview, timeout};
use purge::site::{Age, Gathered, REJECTED_MAX, RouteClaim, Site, own};
use purge::workloads::readiness::{self, Pods};
use purge::workloads::serving::OldPods;
use purge::workloads::workload::Workload;

/// Whether there is such a workload.
pub enum Found {
    /// There is, in the cluster or in the ledger.
    Yes(Box<Explanation>),
    /// What is known of it could not be read: not the object and not its record, or not the ledger; the answer says why.
    Unknown(Box<Explanation>),
    No,
}

/// What the sources said.
struct Answers {
    workload: Result<Option<Workload>, PortError>,
    record: Section<Option<Record>>,
    /// Whether all others of its namespace are on record.
    listed: bool,
    facts: Result<Arc<Gathered>, PortError>,
    routes: Result<Arc<Vec<RouteClaim>>, PortError>,
    /// The routes that claim hosts, where claims decide about owners.
    claims: Option<Result<Arc<Vec<RouteClaim>>, PortError>>,
    distributions: Listing,
    deliveries: Result<Vec<Delivery>, PortError>,
}

/// Everything there is to say about `id`.
pub async fn explanation(sources: &Sources, id: &WorkloadId) -> Found {
    let (workload, ledgered, facts, routes, distributions, deliveries, idle) = tokio::join!(
        sources.cluster.workload(id),
        sources.ledger.peek(),
        sources.cluster.site_facts_in_part(&id.namespace, Age::Fresh),
        sources.cluster.route_claims(),
        account::listing(sources.cdn.as_ref(), &sources.accounts, Some(&id.namespace)),
        sources.ledger.deliveries(),
        no_replica(sources),
    );
    // One that is not there says all it can: nothing is recorded.
    let unread = ledgered.is_err();
    let ledger = peeked(ledgered, &sources.ledger_place);
    let record = each(&ledger, |ledger| match ledger.unreadable.get(id) {
        Some(why) => Section::missing(format!("the record of {} cannot be read: {why}", id.display_name())),
        None => Section::Known(ledger.records.get(id).map(|record| Record::clone(record))),
    });
    let workload = workload.map(|workload| match (workload, record.known().and_then(Option::as_ref)) {
        (Some(workload), Some(record)) => Some(as_it_runs(record, &workload, &sources.policy).into_owned()),
        (workload, _) => workload,
    });
    let ledger = ledger.known();
    let listed = ledger.is_some_and(|ledger| ledger.listed.covers(id));
    let judged = sources.policy.tenants.default == Tenancy::Own;
    let claims = judged.then(|| routes.clone());
    let answers = Answers { workload, record, listed, facts, routes, claims, distributions, deliveries };
    let known_by_record = answers.record.known().is_some_and(Option::is_some);
    let found = match &answers.workload {
        Ok(None) if !known_by_record => return Found::No,
        Ok(_) => true,
        Err(_) => known_by_record,
    };
    let seen = answers.workload.as_ref().ok().and_then(Option::as_ref);
    let pods = match seen {
        Some(workload) => pods(sources, workload).await,
        None => Ok(None),
    };
    let old = match seen.zip(answers.record.known().and_then(Option::as_ref)) {
        Some((workload, record)) => old_pods_at_the_barrier(sources, workload, record).await,
        None => None,
    };
    let beside = match seen {
        Some(workload) => beside(sources, workload).await,
        None => None,
    };
    let own = ledger.and_then(|ledger| ledger.records.get(id));
    let is_news = seen.zip(own).is_some_and(|(seen, record)| preview(record, seen, &sources.policy).is_some());
    let group = group(sources, id, ledger).await;
    let mut explanation = Box::new(Explanation { group, ..answers.explain(sources, id, (pods, old)) });
    explanation.conditions.extend(beside);
    let seeks = own.is_some_and(|record| record.phase == Phase::Complete && record.seeks());
    let tally = explanation.group.as_ref().and_then(Section::known).map(|group| &group.tally);
    if let Some((state, next)) = tally.filter(|_| seeks).and_then(Tally::awaits) {
        (explanation.state, explanation.next) = (state, next);
    }
    if let Some(why) = ledger.and_then(|ledger| ledger.life.as_ref()?.why_rests(id)) {
        (explanation.state, explanation.next) = ("left alone for now".to_owned(), why);
    }
    if let Some(replicas) = idle {
        if replicas.is_idle() {
            explanation.next = format!("nothing, until a replica works. Then: {}", explanation.next);
        }
        explanation.controller = replicas.trouble();
    }
    explanation.tone = tone::tone(own.map(Arc::as_ref), is_news, &explanation);
    if found && !unread { Found::Yes(explanation) } else { Found::Unknown(explanation) }
}

/// What the boards say of the other members' records.
async fn group(sources: &Sources, id: &WorkloadId, ledger: Option<&LedgerContents>) -> Option<Section<GroupSeen>> {
    let neighbours = sources.group.as_ref().filter(|neighbours| neighbours.is_group)?;
    let member = match &neighbours.member {
        Ok(member) => member,
        Err(why) => return Some(Section::missing(why)),
    };
    let Some(ledger) = ledger else { return Some(Section::missing(UNREAD)) };
    let mut heard = listen(neighbours, member, Some(ledger), &sources.policy).await;
    let tally = heard.tally(id, ledger.records.get(id).map(Arc::as_ref))?;
    let troubles = heard.boards.iter().filter_map(|board| board.trouble.clone()).collect();
    Some(Section::Known(GroupSeen { tally, troubles }))
}

/// The pods of a workload that is not complete; those of a complete one have nothing to explain.
async fn pods(sources: &Sources, workload: &Workload) -> Result<Option<Pods>, PortError> {
    let Some(version) = awaited(workload, &sources.policy) else { return Ok(None) };
    Ok(Some(summarised(workload, version, &sources.cluster.pods(&workload.id.namespace).await?)))
}

/// The pods of a workload, and those of an earlier version that may still answer where that is waited for.
type PodsSeen = (Result<Option<Pods>, PortError>, Option<Result<OldPods, PortError>>);

impl Answers {
    fn explain(self, sources: &Sources, id: &WorkloadId, (pods, old): PodsSeen) -> Explanation {
        let policy = &sources.policy;
        let workload = match &self.workload {
            Ok(Some(workload)) => Section::Known(workload),
            Ok(None) => {
                Section::missing(format!("the {} {}/{} does not exist any more", id.kind.name(), id.namespace, id.name))
            }
            Err(error) => Section::missing(error),
        };
        let (pods, pods_missing) = match pods {
            Ok(pods) => (pods, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let summary = self.record.known().and_then(Option::as_ref).map(|record| {
            let clock = (record.elapsed(), timeout(workload.known().copied(), policy));
            Summary::new(id, record, workload.known().copied(), pods.as_ref(), clock, policy)
                .beside(old.as_ref(), policy)
        });
        let found = each(&workload, |workload| match &self.facts {
            _ if workload.tuning.hosts.is_some() => Section::Known(find_site(workload, &Gathered::default())),
            Ok(facts) => Section::Known(find_site(workload, facts)),
            Err(error) => Section::missing(error),
        });
        let (found, narrow) = self.owned(found, id, policy);
        let unread = self.unread();
        let distributions =
            each(&workload, |workload| distributions(workload, &found, &self.distributions, &policy.tenants));
        let distributions = distributions::in_part(distributions, !unread.is_empty());
        let paths =
            each(&workload, |one| Section::Known(routes::paths(one, policy, (&found, &self.facts, &self.routes))));
        let (state, next) = self.at_odds(policy, &found, &distributions).unwrap_or_else(|| {
            words(sources, (&self.workload, &self.record, self.listed), summary.as_ref(), pods.as_ref())
        });
        Explanation {
            workload: id.clone(),
            group: None,
            state,
            tone: Tone::default(),
            next,
            controller: None,
            settings: sources.whose.clone(),
            would: would((&found, unread.is_empty()), &distributions, &paths),
            deployment: each(&workload, |workload| {
                Section::Known(deployment(workload, pods.as_ref(), pods_missing.clone(), policy))
            }),
            conditions: conditions(workload.known().copied(), summary.as_ref(), policy),
            record: match (&self.record, summary) {
                (Section::Known(Some(record)), Some(summary)) => Section::Known(Some(recorded(record, summary))),
                (Section::Missing { missing }, _) => Section::missing(missing),
                (Section::Known(_), _) => Section::Known(None),
            },
            site: each(&found, |at| caches::beside(shown(at, &narrow, &unread), (at, &narrow), &workload, policy)),
            distributions,
            paths,
            proof: each(&workload, |workload| Section::Known(proof(workload, policy))),
            webhooks: match self.deliveries {
                Ok(deliveries) => Section::Known(webhooks(id, &deliveries)),
                Err(error) => Section::missing(error),
            },
        }
    }

    /// Why some of what may name its hosts could not be read; nothing else matters where its owner names them.
    fn unread(&self) -> Vec<String> {
        let named = self.workload.iter().flatten().any(|workload| workload.tuning.hosts.is_some());
        let facts = self.facts.iter().filter(|_| !named);
        facts.flat_map(|facts| facts.unread()).map(ToString::to_string).collect()
    }

    /// What of a site is the namespace's own, where `tenants.default` says that this counts, with the paths that are.
    fn owned(
        &self,
        found: Section<Site>,
        id: &WorkloadId,
        policy: &Policy,
    ) -> (Section<Site>, BTreeMap<Host, PathSet>) {
        let site = match (&self.claims, found) {
            (Some(Err(error)), Section::Known(_)) => return (Section::missing(error), BTreeMap::new()),
            (None | Some(Err(_)), found) | (_, found @ Section::Missing { .. }) => return (found, BTreeMap::new()),
            (Some(Ok(_)), Section::Known(site)) => site,
        };
        let claims = self.claims.iter().flatten().flat_map(|claims| claims.iter().cloned()).collect::<Vec<_>>();
        let owned = own(&site, &id.namespace, &claims, &policy.tenants);
        let mut hosts = site.hosts;
        hosts.retain(|host, _| owned.hosts.contains(host));
        let rejected = owned.refused.into_iter().chain(site.rejected).take(REJECTED_MAX).collect();
        (Section::Known(Site { hosts, origins: BTreeSet::new(), except: owned.except, rejected }), owned.narrow)
    }

    /// State and next step where what is on record is not all of it: what leads to the workload is different now, or cannot be read.
    fn at_odds(
        &self,
        policy: &Policy,
        found: &Section<Site>,
        distributions: &Section<DistributionsSeen>,
    ) -> Option<(String, String)> {
        let record = self.record.known().and_then(Option::as_ref)?;
        let workload = self.workload.as_ref().ok().and_then(Option::as_ref).filter(|one| !one.tuning.disabled)?;
        if preview(record, workload, policy).is_some() || !record.votes.is_empty() {
            return None;
        }
        if record.awaits_vote() {
            let unread = match found {
                Section::Missing { missing } => Some(missing.clone()),
                Section::Known(site) => self.unread().into_iter().next().filter(|_| site.is_empty()),
            };
            return match (found, unread) {
                (_, Some(missing)) if !workload.tuning.names_its_site() => Some((
                    format!("complete, and not voted for yet; its hosts cannot be read from here: {missing}"),
                    "votes for the purge once allclear can read its hosts; an Event says so if it cannot either"
                        .to_owned(),
                )),
                (Section::Known(site), None) if site.is_empty() && !workload.tuning.names_its_site() => Some((
                    format!("complete; nothing leads to it any more, and it had {}", record.last_site()?.words()?),
                    "looks for its hosts again for site.missing_timeout, and then goes by site.missing".to_owned(),
                )),
                (Section::Known(_) | Section::Missing { .. }, _) => None,
            };
        }
        let ended = record.history.last().filter(|closed| closed.seq == record.seq)?;
        let then = match ended.outcome {
            Outcome::NoSite => "nothing led to it",
            Outcome::NoDistribution => "no distribution served its hosts",
            _ => return None,
        };
        let serve = distributions.known().filter(|seen| !seen.matched.is_empty())?;
        let now = if serve.named { "its owner names distributions now" } else { "distributions serve its hosts now" };
        Some((
            format!("{}: not purged, because {then} when it was complete; {now}", ended.change),
            "purges with the next version; for this one, set the annotation allclear.dev/requested-at to the time"
                .to_owned(),
        ))
    }
}

/// What follows from a part; missing for the same reason if the part is.
fn each<T, U>(part: &Section<T>, then: impl FnOnce(&T) -> Section<U>) -> Section<U> {
    match part {
        Section::Known(part) => then(part),
        Section::Missing { missing } => Section::missing(missing),
    }
}

pub(crate) fn find_site(workload: &Workload, facts: &Gathered) -> Site {
    facts.site(workload.pods(), workload.tuning.hosts.as_deref())
}

fn shown(site: &Site, narrow: &BTreeMap<Host, PathSet>, unread: &[String]) -> SiteSeen {
    let words = |host: &Host, sources: &BTreeSet<_>| {
        let only = narrow.get(host).map(|paths| format!("only its own paths {paths}"));
        sources.iter().map(ToString::to_string).chain(only).collect()
    };
    let reject = |(place, why): &(String, String)| Rejected { place: place.clone(), why: why.clone() };
    SiteSeen {
        hosts: site.hosts.iter().map(|(host, sources)| (host.to_string(), words(host, sources))).collect(),
        load_balancers: site.origins.iter().cloned().collect(),
        rejected: site.rejected.iter().map(reject).collect(),
        unread: unread.to_vec(),
        caches: Vec::new(),
    }
}

fn proof(workload: &Workload, policy: &Policy) -> ProofSeen {
    let said = &workload.tuning.proof;
    let look = policy.proof_of(workload).map(|Proven { paths, marker, again }| LookSeen {
        paths: paths.iter().map(ToString::to_string).collect(),
        paths_from: source(said.paths.is_some()),
        marker: marker.map(|marker| marker.to_string()),
        again_max: again.max,
        again_after_s: again.after_s,
    });
    ProofSeen { enabled: look.is_some(), from: source(said.enabled.is_some()), look }
}

const fn source(is_own: bool) -> &'static str {
    if is_own { "annotation" } else { "configuration" }
}

fn deployment(
    workload: &Workload,
    pods: Option<&Pods>,
    pods_missing: Option<String>,
    policy: &Policy,
) -> DeploymentSeen {
    let images = |version: &kernel::names::image::Version| {
        version.iter().map(|(container, image)| (container.to_string(), image.to_string())).collect()
    };
    DeploymentSeen {
        stand_in: workload.stand_in(),
        images: match &workload.version {
            Ok(version) => Section::Known(images(version)),
            Err(why) => Section::missing(why),
        },
        desired: workload.replicas.desired,
        total: workload.replicas.total,
        updated: workload.replicas.updated,
        available: workload.replicas.available,
        waits_for: waits_for(workload, pods, policy),
        pods_missing,
        disabled: workload.tuning.disabled,
    }
}

fn waits_for(workload: &Workload, pods: Option<&Pods>, policy: &Policy) -> Option<String> {
    match workload.standing(policy.zero_is_complete) {
        Standing::Complete => None,
        Standing::Waiting(wait) => Some(readiness::words(&wait, pods)),
        Standing::GivenUp(why) => Some(why.to_string()),
    }
}

fn recorded(record: &Record, summary: Summary) -> RecordSeen {
    let ended = record.history.last().filter(|closed| closed.seq == record.seq);
    let purged = record.history.iter().rev().find(|closed| closed.outcome == Outcome::Purged);
    RecordSeen {
        rollout: summary.seq,
        phase: summary.phase,
        stage: summary.stage,
        version: record.version.to_string(),
        change: ended.map_or(summary.change, |closed| closed.change.clone()),
        settled: record.settled().map(ToString::to_string),
        purges: summary.purges,
        asked: record.request.map(|_| joined(record)),
        votes: record.votes.len(),
        last_purge: purged.map(closed),
        history: summary.past.history,
    }
}

/// A purge that was asked for and is not made yet: it goes with the rollout that is under way.
fn joined(record: &Record) -> String {
    let about = record.asked.as_ref().map_or_else(String::new, |paths| format!(" of {paths}"));
    format!("a purge{about} was asked for by allclear.dev/requested-at; it is made with rollout {}", record.seq.0)
}

fn conditions(workload: Option<&Workload>, summary: Option<&Summary>, policy: &Policy) -> Vec<String> {
    let recorded = summary.into_iter().flat_map(|summary| summary.conditions.iter().cloned());
    match workload {
        // The record follows the object; what was mended a moment ago must not be shown any more.
        Some(workload) => faults(workload, policy).collect(),
        None => recorded.collect(),
    }
}

fn webhooks(id: &WorkloadId, deliveries: &[Delivery]) -> Vec<WebhookSeen> {
    let own = deliveries.iter().filter(|delivery| delivery.subject == *id);
    let seen = |delivery: &Delivery| WebhookSeen {
        id: delivery.id.clone(),
        hook: delivery.hook.clone(),
        kind: delivery.kind.name(),
        attempts: delivery.attempts,
        given_up: match &delivery.state {
            State::Pending => None,
            State::Dead { reason } => Some(reason.clone()),
        },
    };
    own.map(seen).collect()
}

/// State and next step.
fn words(
    sources: &Sources,
    (workload, record, listed): (&Result<Option<Workload>, PortError>, &Section<Option<Record>>, bool),
    summary: Option<&Summary>,
    pods: Option<&Pods>,
) -> (String, String) {
    let policy = &sources.policy;
    let itself = |workload: &Workload| {
        waits_for(workload, pods, policy)
            .unwrap_or_else(|| "every pod is of the newest version and available".to_owned())
    };
    if let (Ok(Some(workload)), Section::Known(Some(record))) = (workload, record)
        && let Some(Preview { state, next, .. }) = preview(record, workload, policy)
    {
        return (state, next);
    }
    match (workload, record, summary) {
        (Ok(Some(workload)), _, _) if workload.tuning.disabled => (
            "taken out by its owner: annotation allclear.dev/enabled is \"false\"".to_owned(),
            "nothing, until the annotation is removed; other clusters of its group do not wait for it".to_owned(),
        ),
        (Ok(None), Section::Known(Some(_)), _) => {
            ("the workload does not exist any more".to_owned(), "allclear closes its record".to_owned())
        }
        (_, _, Some(summary)) => (summary.state.clone(), summary.next.clone()),
        (Ok(Some(workload)), Section::Known(_), None) => (
            format!("{}; not recorded in the ledger in {}", itself(workload), sources.ledger_place),
            format!("{}. If its ledger is elsewhere, name it by --ledger-namespace", unrecorded(workload, listed)),
        ),
        (Ok(Some(workload)), Section::Missing { .. }, None) => {
            (itself(workload), "not known: the ledger could not be read".to_owned())
        }
        (Ok(None) | Err(_), _, None) => {
            ("not known: the workload could not be read".to_owned(), "see below what is missing".to_owned())
        }
    }
}

/// What becomes of a workload without a record.
fn unrecorded(workload: &Workload, listed: bool) -> String {
    let namespace = &workload.id.namespace;
    match Arrival::of(workload, listed) {
        Arrival::New => format!(
            "all others are on record, so it is new: purged when it is complete, if allclear runs and watches namespace {namespace}"
        ),
        Arrival::UnderWay => format!(
            "nothing, until allclear runs and watches namespace {namespace}; purged when its rollout is complete"
        ),
        Arrival::Open | Arrival::Baseline => {
            format!(
                "nothing, until allclear runs and watches namespace {namespace}; it is then taken as it is, without a purge"
            )
        }
    }
}

/// What a purge would hit as things are; `None` where that is not known, as where not all that may name a host could be read.
fn would(
    (site, all_read): (&Section<Site>, bool),
    distributions: &Section<DistributionsSeen>,
    paths: &Section<PathsSeen>,
) -> Option<String> {
    let (distributions, paths) = (distributions.known()?, paths.known()?);
    let ids: Vec<String> = distributions.matched.iter().map(|distribution| text::named(&distribution.id)).collect();
    if !ids.is_empty() {
        let beyond = distributions.beyond.first().and_then(|first| first.why.first());
        let beyond = beyond.map_or(String::new(), |why| format!("; {} more are {why}", distributions.beyond.len()));
        let far = if all_read || distributions.named { "" } else { ", as far as its hosts could be read" };
        return Some(format!("{} of {}{beyond}{far}", paths.items.join(", "), ids.join(", ")));
    }
    if !all_read || distributions.lacks.is_some() || !distributions.unlisted.is_empty() {
        return None;
    }
    if site.known().is_some_and(Site::is_empty) {
        return Some(
            "nothing: no Ingress, route or annotation gives it a host; annotation allclear.dev/hosts can name some"
                .to_owned(),
        );
    }
    Some("nothing: no distribution serves its hosts; annotation allclear.dev/distribution-ids can name some".to_owned())
}
