//! What moved, by one look at a namespace.

use std::collections::{BTreeMap, BTreeSet};

use crate::records::record::{Edge, Lead, Leads, Moved, Phase, Record};
use kernel::id::{Kind, Nonce, Seq, WorkloadId};
use kernel::names::image::{Version, brief};

/// Names in the words about a move; of others there is a count.
const NAMED_MAX: usize = 3;

/// What leads to the workloads of a namespace, read afresh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Look {
    pub namespace: String,
    /// The kinds that were listed: of others it is not known what is there.
    pub kinds: BTreeSet<Kind>,
    /// Workloads that are there and cannot be read: what leads to them is not known.
    pub unread: BTreeSet<WorkloadId>,
    /// The names that lead to each workload there is: hosts, and load balancers.
    pub led: BTreeMap<WorkloadId, BTreeSet<String>>,
}

/// What is remembered of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Was {
    pub(super) leads: Leads,
    runs: Version,
    /// All its pods run that.
    is_complete: bool,
    /// The edge was made to agree with that, and nothing else completed since.
    edge_has_it: bool,
    /// Its owner has taken it out.
    off: bool,
    /// The kind of its object, where that is not the one in its name.
    object: Option<Kind>,
    number: (Seq, Nonce),
    /// The last move that it was purged for.
    pub(super) moved: Option<String>,
}

/// The moves to each workload that their records do not have, with what leads to it; what has left a workload and is served by nobody;
/// and what records are to remember instead of what they do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    pub moves: BTreeMap<WorkloadId, (Moved, Leads)>,
    pub left: BTreeSet<(WorkloadId, Lead)>,
    pub keep: BTreeMap<WorkloadId, Leads>,
}

impl Was {
    /// By its record.
    pub fn of(record: &Record) -> Self {
        Self {
            leads: record.leads.clone(),
            runs: record.version.clone(),
            is_complete: record.phase == Phase::Complete,
            edge_has_it: record.edge == Edge::Settled && record.settled.is_none() && record.closed >= record.seq,
            off: record.off,
            object: record.stand_in,
            number: (record.seq, record.nonce),
            moved: record.moved.as_ref().map(|moved| moved.token.clone()),
        }
    }

    /// By no record: it served something that is not known.
    pub fn unknown() -> Self {
        Self {
            leads: Leads::default(),
            runs: Version::default(),
            is_complete: false,
            edge_has_it: false,
            off: false,
            object: None,
            number: Default::default(),
            moved: None,
        }
    }

    /// The same of one whose rollout in flight has a newer record, with this move if it has taken one: what it serves is not known.
    pub(super) fn overtaken(self, taken: Option<String>) -> Self {
        Self { is_complete: false, edge_has_it: false, moved: taken.or(self.moved), ..self }
    }

    /// The same, and this leads to it.
    pub(super) fn with(self, leads: Leads) -> Self {
        Self { leads, ..self }
    }

    /// Whether the edge may hold of this one what `next` does not serve.
    fn differs(&self, next: &Self, digests: bool) -> bool {
        !self.edge_has_it || !next.is_complete || !self.runs.same_content(&next.runs, digests)
    }
}

impl Look {
    /// Everything that leads somewhere.
    pub(super) fn leads(&self) -> impl Iterator<Item = Lead> {
        self.led.values().flatten().map(|name| Lead::of(name))
    }

    /// Whether all of this still leads to a workload.
    pub fn still_leads(&self, id: &WorkloadId, leads: &Leads) -> bool {
        let now: BTreeSet<Lead> = self.led.get(id).into_iter().flatten().map(|name| Lead::of(name)).collect();
        leads.iter().all(|lead| now.contains(&lead))
    }

    /// Whether it says what leads to this workload, and be it nothing.
    fn tells_of(&self, id: &WorkloadId, was: &Was) -> bool {
        let is_listed = self.kinds.contains(&was.object.unwrap_or(id.kind)) && !self.unread.contains(id);
        id.namespace == self.namespace && is_listed
    }
}

/// Compares a look with what is `known`. Those that have `departed` are not there any more; of those that the look says nothing of, these
/// hosts have `left`. `is_done`: the workload needs not be asked for this move.
pub(super) fn judge(
    look: &Look,
    known: &BTreeMap<WorkloadId, Was>,
    departed: &BTreeSet<WorkloadId>,
    left: &BTreeSet<(WorkloadId, Lead)>,
    digests: bool,
    is_done: impl Fn(&WorkloadId, &Moved, &Was) -> bool,
) -> Judged {
    let names: BTreeMap<Lead, &str> = look.led.values().flatten().map(|name| (Lead::of(name), name.as_str())).collect();
    let now = |id: &WorkloadId, was: &Was| -> BTreeSet<Lead> {
        let elsewhere = || was.leads.iter().filter(|lead| !left.contains(&(id.clone(), *lead))).collect();
        match look.led.get(id) {
            _ if departed.contains(id) => BTreeSet::new(),
            Some(names) if look.tells_of(id, was) => names.iter().map(|name| Lead::of(name)).collect(),
            None if look.tells_of(id, was) => BTreeSet::new(),
            Some(_) | None => elsewhere(),
        }
    };
    let now: BTreeMap<&WorkloadId, BTreeSet<Lead>> = known.iter().map(|(id, was)| (id, now(id, was))).collect();
    let leads_now = |id: &WorkloadId, lead: Lead| now.get(id).is_some_and(|leads| leads.contains(&lead));
    let gone = known.iter().flat_map(|(id, was)| was.leads.iter().map(move |lead| (id, was, lead)));
    let gone: Vec<_> = gone.filter(|(id, _, lead)| !leads_now(id, *lead)).collect();

    let mut found: BTreeMap<&WorkloadId, BTreeSet<(&WorkloadId, Lead)>> = BTreeMap::new();
    for (former, was, lead) in &gone {
        let serving: Vec<_> = known.iter().filter(|(id, _)| leads_now(id, *lead)).collect();
        // Of several that serve a host, those that did before may serve other paths of it.
        let is_meant = |next: &Was| serving.len() == 1 || !next.leads.contains(*lead);
        for (id, next) in serving.iter().filter(|(_, next)| is_meant(next)) {
            if !next.off && was.differs(next, digests) {
                found.entry(id).or_default().insert((former, *lead));
            }
        }
    }
    let mut judged = Judged::default();
    for (id, from) in found {
        let Some(next) = known.get(id) else { continue };
        let moved = moved(id, next, &from, known, &names);
        if !is_done(id, &moved, next) {
            let leads = now.get(id).into_iter().flatten().copied().collect();
            judged.moves.insert(id.clone(), (moved, leads));
        }
    }
    // Remembered until the record of whoever serves it has it.
    let is_open = |lead: Lead| {
        let mut serving = known.keys().filter(|id| leads_now(id, lead)).peekable();
        serving.peek().is_none() || serving.any(|id| judged.moves.contains_key(id))
    };
    let open: BTreeSet<(&WorkloadId, Lead)> =
        gone.iter().filter(|(_, _, lead)| is_open(*lead)).map(|(id, _, lead)| (*id, *lead)).collect();
    let left_here = open.iter().filter(|(id, _)| !departed.contains(*id));
    judged.left = left_here.map(|(id, lead)| ((*id).clone(), *lead)).collect();
    let elsewhere = left.iter().filter(|(id, _)| !known.contains_key(id));
    judged.left.extend(elsewhere.cloned());
    for (id, was) in known {
        let still = open.iter().filter(|(of, _)| *of == id).map(|(_, lead)| *lead);
        let leads: Leads = now.get(id).into_iter().flatten().copied().chain(still).collect();
        // The record of one that is asked gets both at once.
        if leads != was.leads && !judged.moves.contains_key(id) {
            judged.keep.insert(id.clone(), leads);
        }
    }
    judged
}

/// The move of these hosts to a workload.
fn moved(
    to: &WorkloadId,
    next: &Was,
    from: &BTreeSet<(&WorkloadId, Lead)>,
    known: &BTreeMap<WorkloadId, Was>,
    names: &BTreeMap<Lead, &str>,
) -> Moved {
    let identity = |(id, lead): &(&WorkloadId, Lead)| {
        let (seq, nonce) = known.get(*id).map_or_else(Default::default, |was| was.number);
        format!("{id} {}/{nonce} {lead}", seq.0)
    };
    let identity: Vec<String> = from.iter().map(identity).collect();
    let formers: BTreeSet<&WorkloadId> = from.iter().map(|(id, _)| *id).collect();
    let former = |id: &&WorkloadId| {
        let runs = known.get(*id).filter(|was| was.runs.iter().len() > 0);
        let runs = runs.map_or_else(String::new, |was| format!(" ({})", brief(&was.runs)));
        let name = if id.namespace == to.namespace { id.name.clone() } else { id.display_name() };
        format!("{name}{runs}")
    };
    let hosts: BTreeSet<&str> = from.iter().filter_map(|(_, lead)| names.get(lead).copied()).collect();
    let words = format!(
        "traffic moved from {} to {} ({}){}",
        few(formers.iter().map(former)),
        to.name,
        brief(&next.runs),
        if hosts.is_empty() { String::new() } else { format!(": {}", few(hosts.iter().map(ToString::to_string))) },
    );
    Moved::new(&format!("{to} {}", identity.join(", ")), &words)
}

fn few(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(NAMED_MAX);
    let named = all.take(NAMED_MAX).collect::<Vec<_>>().join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}
