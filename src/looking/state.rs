//! Every rollout in flight, what it waits for in every member of the group, and how the boards are: recomputed from the cluster, the
//! ledger and the boards, in the form in which a running allclear shows it.

pub(crate) mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::actors::observation::{DeliverySeen, Observation, PromotingSeen, RunningSeen};
use crate::adapters::kubernetes::desk::{Desk, Listing};
use crate::adapters::kubernetes::objects::Kind;
use crate::looking::listen::{Group, heard};
use crate::looking::state::pods::PodsOf;
use crate::looking::workloads::{Listed, list};
use crate::looking::{
    About, LabelledPods, Section, Sources, as_they_run, awaited, is_at_the_barrier, no_replica,
    old_pods_at_the_barrier, peek, summarised,
};
use kernel::id::{ObjectId, WorkloadId};
use kinds::reported::Standing;
use notices::delivery::{self, Delivery};
use objects::pipeline::view as pipeline;
use objects::repo::view as repo;
use purge::agreement::tally::Tally;
use purge::bounds::policy::Policy;
use purge::broker::BoardSeen;
use purge::ports::{LedgerContents, PortError};
use purge::purges::bill::Book;
use purge::records::record::Record;
use purge::rollouts::rollout::{Preview, Summary, news, preview, timeout};
use purge::rollouts::unwell::{Unwell, unwell};
use purge::workloads::readiness::Pods;
use purge::workloads::serving::OldPods;
use purge::workloads::workload::Workload;

/// Rollouts whose old pods are looked at: each costs a request.
const OLD_PODS_SHOWN_MAX: usize = 32;

pub struct State {
    pub about: About,
    /// It is synced if all of it could be read.
    pub seen: Observation,
    /// The boards, where there is no group.
    pub boards: Option<Vec<BoardSeen>>,
    /// The pods of what rolls out.
    pub pods: Vec<PodsOf>,
    /// Whether the number of workloads is known.
    pub ledger_read: bool,
}

/// The state of a namespace, or of all.
pub async fn state(sources: &Sources, namespace: Option<&str>) -> State {
    let (mut listed, ledgered, deliveries, bill, promoting, running, idle) = tokio::join!(
        list(sources.cluster.as_ref()),
        peek(sources),
        sources.ledger.deliveries(),
        bill(sources, namespace),
        objects(sources.desk.as_ref(), namespace, |object| pipeline::view(object, &object.status, None)),
        objects(sources.repos.as_ref(), namespace, |object| repo::view(object, &object.status)),
        no_replica(sources)
    );
    let promoting =
        promoting.map(|(pipelines, troubles)| PromotingSeen { pipelines, troubles, ..PromotingSeen::default() });
    let running = running.map(|(repos, troubles)| RunningSeen { repos, troubles });
    let idle = idle.and_then(|replicas| replicas.trouble());
    let mut troubles: Vec<String> = idle.into_iter().chain(listed.troubles.iter().cloned()).collect();
    let ledgered = match ledgered {
        Section::Known(ledgered) => Some(ledgered),
        Section::Missing { missing } => {
            troubles.push(missing);
            None
        }
    };
    let mut complete = listed.troubles.is_empty() && ledgered.is_some();
    let unreadable = ledgered.iter().flat_map(|ledgered| &ledgered.unreadable);
    troubles.extend(unreadable.map(|(id, why)| format!("the record of {} cannot be read: {why}", id.display_name())));
    let heard = heard(sources, ledgered.as_ref()).await;
    complete &= heard.is_ok();
    troubles.extend(heard.as_ref().err().cloned());
    let mut group = heard.ok().flatten();
    troubles.extend(group.iter().flat_map(|group| group.troubles.iter().map(ToString::to_string)));
    let (ledger_read, ledgered) = (ledgered.is_some(), ledgered.unwrap_or_default());
    as_they_run(&mut listed.workloads, &ledgered.records, &sources.policy);
    let seeing = Seeing { sources, namespace, listed: &listed, ledgered: &ledgered, ledger_read };
    let in_flight = seeing.in_flight(group.as_ref());
    let ((pods, unlisted), old) = tokio::join!(pods(&seeing, &in_flight), at_the_barrier(&seeing, &in_flight));
    complete &= unlisted.is_empty();
    troubles.extend(unlisted);
    let unwell = seeing.unwell();
    let pods_of = in_flight.iter().filter_map(|id| pods_of(listed.workloads.get(id)?, &pods, &sources.policy));
    let mut observation =
        Observation { workloads: seeing.count(), unwell, promoting, running, bill, ..Observation::default() };
    for id in &in_flight {
        let record = ledgered.records.get(id).map(Arc::as_ref);
        let mut summary = seeing.summary(id, &pods).beside(old.get(id), &sources.policy);
        let tally = group.as_mut().and_then(|group| group.tally(id, record));
        if let Some((state, next)) = tally.as_ref().filter(|_| summary.phase == "complete").and_then(Tally::awaits) {
            (summary.state, summary.next) = (state, next);
        }
        observation.rollouts.push(summary);
        let parts = tally.as_ref().and_then(|_| Some(group.as_ref()?.parts(id)));
        observation.parts.extend(parts);
        observation.tallies.extend(tally);
    }
    match deliveries {
        Ok(deliveries) => {
            let wanted = deliveries.iter().filter(|delivery| seeing.is_wanted(delivery.subject.namespace()));
            observation.deliveries = wanted.map(delivery_seen).collect();
        }
        Err(error) => {
            // Often for the reason for which there are no records either.
            troubles.extend(Some(error.to_string()).filter(|error| !troubles.contains(error)));
            complete = false;
        }
    }
    (observation.troubles, observation.synced) = (troubles, complete);
    let boards = group.as_ref().filter(|group| group.seen.is_none()).map(|group| group.boards.clone());
    let about = about(sources, group.as_ref());
    observation.group = group.and_then(|group| group.seen);
    State { about, seen: observation, boards, pods: pods_of.collect(), ledger_read }
}

/// What was purged this month, as a running allclear left it; of all namespaces only, for the bill is of none.
async fn bill(sources: &Sources, namespace: Option<&str>) -> Vec<String> {
    if namespace.is_some() {
        return Vec::new();
    }
    // Where the ledger cannot be read, its records say so.
    let kept = sources.ledger.bill().await.ok().flatten();
    kept.and_then(|text| Book::parse(&text)).map(|book| book.words()).unwrap_or_default()
}

/// The objects of one kind, by their status, and what cannot be read of them: nothing else of the state depends on it. `None` where the
/// cluster does not have the kind.
async fn objects<K: Kind, V>(
    desk: Option<&Desk<K>>,
    namespace: Option<&str>,
    view: impl Fn(&K::Object) -> V,
) -> Option<(Vec<V>, Vec<String>)> {
    match desk?.all(namespace).await {
        Ok(listing) => {
            let Listing { found, unreadable } = listing?;
            let troubles = unreadable.iter().map(|(id, why)| format!("{} cannot be read: {why}", id.display_name()));
            Some((found.iter().map(|found| view(&found.object)).collect(), troubles.collect()))
        }
        Err(error) => Some((Vec::new(), vec![error.to_string()])),
    }
}

/// The member that answers. Without a Redis there is no need to ask for the cluster's name.
fn about(sources: &Sources, heard: Option<&Group>) -> About {
    let Some(neighbours) = &sources.group else { return sources.us.clone() };
    let member = heard.map_or_else(|| "unknown".to_owned(), |group| group.member.to_string());
    About { member, group: neighbours.name.clone(), dry_run: false }
}

/// What is known of this cluster.
struct Seeing<'a> {
    sources: &'a Sources,
    /// The only one that is shown, if one is given.
    namespace: Option<&'a str>,
    listed: &'a Listed,
    /// Empty where it could not be read.
    ledgered: &'a LedgerContents,
    ledger_read: bool,
}

impl Seeing<'_> {
    fn is_wanted(&self, namespace: &str) -> bool {
        self.namespace.is_none_or(|wanted| wanted == namespace)
    }

    fn follows(&self, id: &WorkloadId) -> bool {
        self.listed.view.why_not(id).is_none()
    }

    fn count(&self) -> usize {
        self.ledgered.records.keys().filter(|id| self.is_wanted(&id.namespace)).count()
    }

    fn unwell(&self) -> Vec<Unwell> {
        let wanted = self.ledgered.records.iter().filter(|(id, _)| self.is_wanted(&id.namespace) && self.follows(id));
        wanted.filter_map(|(id, record)| unwell(id, record)).collect()
    }

    /// The workloads in which something is going on, here or in another member.
    fn in_flight(&self, group: Option<&Group>) -> BTreeSet<WorkloadId> {
        let policy = &self.sources.policy;
        let open = |(id, record): (&WorkloadId, &Arc<Record>)| {
            let workload = self.listed.workloads.get(id);
            record.is_open() || workload.is_some_and(|workload| news(record, workload, policy).is_some())
        };
        let own = self.ledgered.records.iter().filter(|entry| open(*entry) && self.follows(entry.0));
        let own = own.map(|(id, _)| id.clone());
        let sought = group.into_iter().flat_map(|group| group.sought.iter().cloned());
        own.chain(sought).filter(|id| self.is_wanted(&id.namespace)).collect()
    }

    fn summary(&self, id: &WorkloadId, pods: &BTreeMap<String, LabelledPods>) -> Summary {
        let policy = &self.sources.policy;
        let workload = self.listed.workloads.get(id);
        let Some(record) = self.ledgered.records.get(id) else {
            if let Some(why) = self.listed.view.why_not(id) {
                return Summary::unknown(id, "another member asks for it".to_owned()).not_followed(why);
            }
            let state = match workload {
                _ if !self.ledger_read => "another member asks for it; the ledger here could not be read",
                Some(_) => "another member asks for it, and allclear has not recorded it here",
                None => "another member asks for it, and this cluster does not have it",
            };
            return Summary {
                next: "allclear takes part as soon as it runs".to_owned(),
                ..Summary::unknown(id, state.to_owned())
            };
        };
        let own = workload.and_then(|workload| own_pods(workload, pods, policy));
        let clock = (record.elapsed(), timeout(workload, policy));
        let mut summary = Summary::new(id, record, workload, own.as_ref(), clock, policy);
        if let Some(Preview { state, next, .. }) = workload.and_then(|workload| preview(record, workload, policy)) {
            (summary.state, summary.next) = (state, next);
        }
        summary
    }
}

fn pods_of(workload: &Workload, pods: &BTreeMap<String, LabelledPods>, policy: &Policy) -> Option<PodsOf> {
    Some(PodsOf::new(workload, awaited(workload, policy)?, pods.get(&workload.id.namespace)?))
}

fn own_pods(workload: &Workload, pods: &BTreeMap<String, LabelledPods>, policy: &Policy) -> Option<Pods> {
    Some(summarised(workload, awaited(workload, policy)?, pods.get(&workload.id.namespace)?))
}

/// The pods of the namespaces in which something rolls out, and why those of some could not be listed.
async fn pods(seeing: &Seeing<'_>, in_flight: &BTreeSet<WorkloadId>) -> (BTreeMap<String, LabelledPods>, Vec<String>) {
    let zero = seeing.sources.policy.zero_is_complete;
    let rolling = in_flight.iter().filter_map(|id| seeing.listed.workloads.get(id));
    let rolling = rolling.filter(|workload| workload.standing(zero) != Standing::Complete);
    let namespaces: BTreeSet<&String> = rolling.map(|workload| &workload.id.namespace).collect();
    let listing = namespaces
        .into_iter()
        .map(|namespace| async { (namespace.clone(), seeing.sources.cluster.pods(namespace).await) });
    let (mut found, mut troubles) = (BTreeMap::new(), Vec::new());
    for (namespace, pods) in futures_util::future::join_all(listing).await {
        match pods {
            Ok(pods) => drop(found.insert(namespace, pods)),
            Err(error) => troubles.push(error.to_string()),
        }
    }
    (found, troubles)
}

/// The old pods of the rollouts that wait for them. Beyond [`OLD_PODS_SHOWN_MAX`], only the wait is shown.
async fn at_the_barrier(
    seeing: &Seeing<'_>,
    in_flight: &BTreeSet<WorkloadId>,
) -> BTreeMap<WorkloadId, Result<OldPods, PortError>> {
    let policy = &seeing.sources.policy;
    let known = |id| Some((seeing.listed.workloads.get(id)?, seeing.ledgered.records.get(id)?));
    let waiting =
        in_flight.iter().filter_map(known).filter(|(workload, record)| is_at_the_barrier(workload, record, policy));
    let looks = waiting.take(OLD_PODS_SHOWN_MAX).map(|(workload, record)| async {
        Some((workload.id.clone(), old_pods_at_the_barrier(seeing.sources, workload, record).await?))
    });
    futures_util::future::join_all(looks).await.into_iter().flatten().collect()
}

fn delivery_seen(delivery: &Delivery) -> DeliverySeen {
    let state = match &delivery.state {
        delivery::State::Pending => "kept until it is delivered".to_owned(),
        delivery::State::Dead { reason } => reason.clone(),
    };
    DeliverySeen::new(delivery, state)
}
