//! `allclear ledger show [NAME]` and `allclear ledger adopt [NAME | --all]`.
//!
//! Adopting is for a ledger that was set back, for example from a backup of the cluster: the group has seen states of this
//! cluster's records that the ledger no longer has (`StateRegressed`), and agrees on nothing for these workloads until an
//! operator accepts the loss. It takes each workload as it is, as a new baseline that is counted above everything the ledger
//! and the boards know of, by compare-and-set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::adapters::random::SystemRandom;
use crate::cli::answer::{EXIT_FAILED, Outcome, Output, answer, done, invalid, refused};
use crate::cli::consent::Consent;
use crate::looking::listen::{self, Group, OwnCopy};
use crate::looking::page::{Page, count};
use crate::looking::{Question, Section, Sources, peek};
use kernel::floor::Floor;
use kernel::floor::State;
use kernel::id::{Nonce, Origin, Seq, WorkloadId};
use kernel::names::image::brief;
use kinds::reported::Standing;
use notices::delivery;
use purge::bounds::policy::Policy;
use purge::ports::{LedgerContents, PortError, Random, StoreError};
use purge::records::record::Record;
use purge::rollouts::rollout::adoption::{adopt as adopted, has_regressed, state};
use purge::rollouts::rollout::closed;
use purge::workloads::readiness;
use purge::workloads::workload::Workload;

/// The ledger as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Overview {
    place: String,
    origin: Origin,
    /// The form that it is stored in; empty where there is only one.
    layout: String,
    records: usize,
    in_flight: Vec<String>,
    members: Option<Vec<String>>,
    unreadable: BTreeMap<String, String>,
    deliveries: Section<Deliveries>,
    /// Workloads whose state on a board is newer than in the ledger.
    regressed: Vec<String>,
    /// Boards that could not be asked.
    troubles: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Deliveries {
    pending: usize,
    dead: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct One {
    workload: WorkloadId,
    /// As it is stored.
    record: Option<Record>,
    copies: Vec<CopySeen>,
    regressed: bool,
    troubles: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct CopySeen {
    board: String,
    seq: Seq,
    revision: u64,
    /// It is from this ledger, and not from one before it.
    current: bool,
}

/// Shows the ledger, or one record of it. Exit codes: 0 shown, 1 not there or unreadable, 2 not a name.
pub async fn show(sources: &Sources, question: &Question, output: Output) -> Outcome {
    let ledgered = match peek(sources).await {
        Section::Known(ledgered) => ledgered,
        Section::Missing { missing } => return refused(&missing),
    };
    let (heard, deaf) = match heard(sources, &ledgered).await {
        Ok(heard) => (heard, None),
        Err(why) => (None, Some(why)),
    };
    if question.name.is_none() {
        let mut overview = overview(sources, &ledgered, heard.as_ref()).await;
        overview.troubles.extend(deaf);
        return answer(&overview, output, 0);
    }
    let id = match question.workload(sources).await {
        Ok(id) => id,
        Err(why) => return invalid(&why),
    };
    let copies = copies(heard.as_ref(), &id);
    if let Some(why) = ledgered.unreadable.get(&id) {
        return refused(&format!("the record of {} cannot be read: {why}", id.display_name()));
    }
    let record = ledgered.records.get(&id).map(|record| Record::clone(record));
    if record.is_none() && copies.is_empty() {
        return refused(&format!(
            "there is no record of {} in the ledger in {}",
            id.display_name(),
            sources.ledger_place
        ));
    }
    let regressed = matches!(lost(sources, &ledgered, &id, copies).await, Ok(Some(_)));
    let seen = |copy: &OwnCopy| {
        let (seq, revision) = state(&copy.said);
        CopySeen { board: copy.board.clone(), seq, revision, current: copy.origin == ledgered.origin }
    };
    let troubles = heard.iter().flat_map(|heard| heard.troubles.iter().map(ToString::to_string)).chain(deaf).collect();
    let one = One { workload: id.clone(), record, copies: copies.iter().map(seen).collect(), regressed, troubles };
    answer(&one, output, 0)
}

/// What is to be adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The workload of the question.
    Named,
    /// Everything the ledger has lost a state of.
    All,
}

/// One workload to be adopted.
struct Adoption {
    id: WorkloadId,
    record: Record,
    words: String,
}

/// Adopts, if the person who asks agrees. Exit codes: 0 adopted, or nothing to do; 1 not all of it was done; 2 not a name.
pub async fn adopt(sources: &Sources, question: &Question, which: Which, consent: Consent) -> Outcome {
    let ledgered = match peek(sources).await {
        Section::Known(ledgered) => ledgered,
        Section::Missing { missing } => return refused(&missing),
    };
    let heard = match heard(sources, &ledgered).await {
        Ok(Some(heard)) => heard,
        Ok(None) => {
            return refused(
                "no Redis is configured (redis.url, REDIS_HOST), so there is no copy to compare the ledger with",
            );
        }
        Err(why) => return refused(&format!("nothing was changed: it is not known which copies are ours: {why}")),
    };
    let deaf: Vec<&str> = heard.boards.iter().filter_map(|board| board.trouble.as_deref()).collect();
    if !deaf.is_empty() {
        // A copy on a board we could not read may have a higher number than the one we would give.
        return refused(&format!(
            "nothing was changed: every Redis must answer first, or a number that one of them has seen might be given again: {}",
            deaf.join("; ")
        ));
    }
    let ids: Vec<WorkloadId> = match (which, &question.name) {
        (Which::All, _) => suspects(&ledgered, Some(&heard)).into_iter().cloned().collect(),
        (Which::Named, Some(_)) => match question.workload(sources).await {
            Ok(id) => vec![id],
            Err(why) => return invalid(&why),
        },
        (Which::Named, None) => return invalid("name a workload, such as shop/web, or say --all"),
    };
    let mut adoptions = Vec::new();
    for id in ids {
        match adoption(sources, &ledgered, &heard, id).await {
            Ok(found) => adoptions.extend(found),
            Err(error) => return refused(&error.to_string()),
        }
    }
    if adoptions.is_empty() {
        return done("nothing to adopt: the ledger has the newest state that any Redis has seen\n".to_owned());
    }
    match consent.ask(&plan(sources, &adoptions)) {
        Ok(()) => store(sources, adoptions).await,
        Err(left) => left,
    }
}

/// Reads the boards, if there are any. Our copies are recognised by our name; `Err` says why it is not known.
async fn heard(sources: &Sources, ledgered: &LedgerContents) -> Result<Option<Group>, String> {
    match &sources.group {
        Some(neighbours) if !neighbours.boards.is_empty() => listen::heard(sources, Some(ledgered)).await,
        Some(_) | None => Ok(None),
    }
}

fn copies<'a>(heard: Option<&'a Group>, id: &WorkloadId) -> &'a [OwnCopy] {
    heard.and_then(|heard| heard.own.get(id)).map_or(&[], Vec::as_slice)
}

/// The newest state of a workload's record that the ledger has lost, and who has seen it. The ledger is read again, after the
/// boards: what a running allclear writes meanwhile must not look like a loss.
async fn lost(
    sources: &Sources,
    ledgered: &LedgerContents,
    id: &WorkloadId,
    copies: &[OwnCopy],
) -> Result<Option<(State, String)>, PortError> {
    let of_ours: Vec<&OwnCopy> = copies.iter().filter(|copy| copy.origin == ledgered.origin).collect();
    let seen = ledgered.records.get(id).map(Arc::as_ref);
    let is_noted = seen.is_some_and(|record| record.set_back.is_some());
    // Most are not: only what looks like it is asked for again.
    if !is_noted && !of_ours.iter().any(|copy| has_regressed(seen, Floor::default(), &copy.said)) {
        return Ok(None);
    }
    let (record, floor) = (sources.ledger.load(id).await?, sources.ledger.floor(id).await?);
    let newer = of_ours.into_iter().filter(|copy| has_regressed(record.as_ref(), floor, &copy.said));
    let noted = record.as_ref().and_then(|record| record.set_back).map(|state| (state, "the group".to_owned()));
    Ok(newer.map(|copy| (state(&copy.said), copy.board.clone())).chain(noted).max())
}

/// The workloads whose state the ledger lost, or may have lost.
fn suspects<'a>(ledgered: &'a LedgerContents, heard: Option<&'a Group>) -> BTreeSet<&'a WorkloadId> {
    let noted = ledgered.records.iter().filter(|(_, record)| record.set_back.is_some()).map(|(id, _)| id);
    noted.chain(heard.into_iter().flat_map(|heard| heard.own.keys())).collect()
}

async fn adoption(
    sources: &Sources,
    ledgered: &LedgerContents,
    heard: &Group,
    id: WorkloadId,
) -> Result<Option<Adoption>, PortError> {
    let copies = copies(Some(heard), &id);
    let Some(lost) = lost(sources, ledgered, &id, copies).await? else { return Ok(None) };
    let workload = sources.cluster.workload(&id).await?;
    let version = match &workload {
        Some(Workload { version: Ok(version), .. }) => Some(version),
        Some(Workload { version: Err(why), .. }) => {
            return Err(PortError::lasting(
                format!("failed to adopt {}", id.display_name()),
                format!("its image cannot be read: {why}"),
            ));
        }
        None => None,
    };
    let current = sources.ledger.load(&id).await?;
    let floor = sources.ledger.floor(&id).await?;
    let postings: Vec<_> =
        copies.iter().filter(|copy| copy.origin == ledgered.origin).map(|copy| copy.said.clone()).collect();
    let nonce = Nonce(SystemRandom::new()?.bits());
    let record = adopted(workload.as_ref().zip(version), current.as_ref(), floor, &postings, nonce);
    let words = words(&record, current.as_ref(), lost, workload.as_ref(), &sources.policy);
    Ok(Some(Adoption { id, record, words }))
}

fn words(
    record: &Record,
    current: Option<&Record>,
    ((seq, revision), board): (State, String),
    workload: Option<&Workload>,
    policy: &Policy,
) -> String {
    let here = current.map_or_else(
        || "there is none in the ledger".to_owned(),
        |current| format!("the ledger has rollout {} (revision {})", current.seq, current.revision),
    );
    let as_it_is = match workload {
        None => "the workload does not exist, so the controller removes it afterwards".to_owned(),
        Some(workload) => match workload.standing(policy.zero_is_complete) {
            Standing::Complete => format!("at {}", brief(&record.version)),
            Standing::Waiting(wait) => format!(
                "at {}, which is rolling out just now ({}): that rollout is not purged",
                brief(&record.version),
                readiness::words(&wait, None)
            ),
            Standing::GivenUp(why) => format!("at {}; now {why}", brief(&record.version)),
        },
    };
    let votes = record.votes.iter().filter(|vote| vote.closed.is_none()).count();
    let votes =
        if votes == 0 { String::new() } else { format!("; {} kept", count(votes, "open vote is", "open votes are")) };
    let seen = match revision {
        0 => "what it had before was lost with a part of the ledger".to_owned(),
        _ => format!("{board} has seen rollout {seq} (revision {revision})"),
    };
    format!("rollout {} (revision {}), {as_it_is}{votes}; {here}, and {seen}", record.seq, record.revision)
}

fn plan(sources: &Sources, adoptions: &[Adoption]) -> String {
    let mut lines = vec![format!(
        "In the ledger in {}, {} a new baseline:",
        sources.ledger_place,
        count(adoptions.len(), "workload gets", "workloads get")
    )];
    lines.extend(adoptions.iter().map(|adoption| format!("  {}: {}", adoption.id.display_name(), adoption.words)));
    lines.push(
        "Nothing is purged for them. If the edge may hold an older version, ask for a purge by the annotation \
         allclear.dev/requested-at afterwards."
            .to_owned(),
    );
    lines.join("\n") + "\n"
}

async fn store(sources: &Sources, adoptions: Vec<Adoption>) -> Outcome {
    let (mut out, mut err) = (String::new(), String::new());
    for Adoption { id, record, .. } in adoptions {
        match sources.ledger.store(&id, &record).await {
            Ok(()) => out.push_str(&format!("{}: adopted as rollout {}\n", id.display_name(), record.seq)),
            Err(StoreError::Conflict(_)) => err.push_str(&format!(
                "error: {}: not adopted: its record was changed at the same moment; run it again\n",
                id.display_name()
            )),
            Err(error @ (StoreError::NoRoom(_) | StoreError::Unavailable(_) | StoreError::Lost(_))) => {
                err.push_str(&format!("error: {}: {error}\n", id.display_name()));
            }
        }
    }
    let code = if err.is_empty() { 0 } else { EXIT_FAILED };
    Outcome { out, err, code }
}

async fn overview(sources: &Sources, ledgered: &LedgerContents, heard: Option<&Group>) -> Overview {
    let mut troubles: Vec<String> = heard.iter().flat_map(|heard| &heard.troubles).map(ToString::to_string).collect();
    let mut set_back = Vec::new();
    for id in suspects(ledgered, heard) {
        match lost(sources, ledgered, id, copies(heard, id)).await {
            Ok(None) => {}
            Ok(Some(_)) => set_back.push(id.display_name()),
            Err(error) => troubles.push(error.to_string()),
        }
    }
    let deliveries = match sources.ledger.deliveries().await {
        Ok(all) => {
            let dead = all.iter().filter(|each| matches!(each.state, delivery::State::Dead { .. })).count();
            Section::Known(Deliveries { pending: all.len() - dead, dead })
        }
        Err(error) => Section::missing(error),
    };
    let open = ledgered.records.iter().filter(|(_, record)| record.is_open());
    Overview {
        place: sources.ledger_place.clone(),
        origin: ledgered.origin.clone(),
        layout: ledgered.layout.clone(),
        records: ledgered.records.len(),
        in_flight: open.map(|(id, _)| id.display_name()).collect(),
        members: ledgered.pin.as_ref().map(|pin| pin.members.iter().map(ToString::to_string).collect()),
        unreadable: ledgered.unreadable.iter().map(|(id, why)| (id.display_name(), why.clone())).collect(),
        deliveries,
        regressed: set_back,
        troubles,
    }
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, origin, layout, records, in_flight, members, unreadable, deliveries, regressed, troubles } =
            self;
        let mut page = Page { f };
        page.title(&format!("ledger in {place}"))?;
        page.part("Origin", [origin.to_string()])?;
        page.part("Layout", layout_words(layout))?;
        page.part("Records", [format!("{records}, {} in flight", in_flight.len())])?;
        page.part("In flight", in_flight.iter().cloned())?;
        page.part("Members", members.iter().map(|members| members.join(", ")))?;
        page.section("Webhooks", deliveries, |Deliveries { pending, dead }| {
            vec![format!("{pending} on their way, {}", count(*dead, "dead letter", "dead letters"))]
        })?;
        page.part("Unreadable", unreadable.iter().map(|(id, why)| format!("{id}: {why}")))?;
        page.part(
            "Set back",
            regressed.iter().map(|id| format!("{id}: a Redis has seen a newer state; allclear ledger adopt {id}")),
        )?;
        page.part("Troubles", troubles.iter().cloned())
    }
}

/// The form of the ledger, and what follows from it for a release that is rolled back to.
fn layout_words(layout: &str) -> Option<String> {
    match layout {
        "" => None,
        "1" => Some("1, which every release reads".to_owned()),
        newer => {
            Some(format!("{newer}; a release that does not know it refuses this ledger (docs/upgrade.md, Roll back)"))
        }
    }
}

impl fmt::Display for One {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, record, copies, regressed, troubles } = self;
        let mut page = Page { f };
        page.title(&workload.display_name())?;
        match record {
            None => page.part("Record", ["none".to_owned()])?,
            Some(record) => {
                page.part(
                    "Record",
                    [format!("rollout {} (revision {}), {}", record.seq, record.revision, record.phase.name())],
                )?;
                page.part("Version", [record.version.to_string()])?;
                page.part("Closed", [format!("up to rollout {}", record.closed)])?;
                let vote = |vote: &purge::records::record::Vote| {
                    let ended =
                        vote.closed.as_ref().map_or_else(|| "open".to_owned(), |outcome| format!("closed, {outcome}"));
                    format!("rollout {}: {ended}", vote.seq)
                };
                page.part("Votes", record.votes.iter().map(vote))?;
                page.part("History", record.history.iter().rev().map(closed))?;
                page.part("Conditions", record.conditions.iter().cloned())?;
            }
        }
        let copy = |copy: &CopySeen| {
            let CopySeen { board, seq, revision, current } = copy;
            let from = if *current { "" } else { ", from a ledger before this one" };
            format!("{board}: rollout {seq} (revision {revision}){from}")
        };
        page.part("Copies", copies.iter().map(copy))?;
        if *regressed {
            let words = "a Redis has seen a newer state than the ledger has; if it was set back rightly, run allclear ledger adopt";
            page.part("Set back", [words.to_owned()])?;
        }
        page.part("Troubles", troubles.iter().cloned())
    }
}
