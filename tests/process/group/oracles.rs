//! What must be true of every run, whatever was done to it: the oracles O1 to O8 of the table of faults, as functions over
//! what CloudFront and the receiver have on record, the members' ledgers, and their logs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use purge::records::record::{Closed, Outcome};
use serde_json::Value;
use support::process::Process;

use crate::group::field::{Field, PASSWORD, is_over};
use crate::scene::{NAME, Scene, broken};

/// How long nothing may happen at the end before it counts as silence (O3). Longer than the members' first retries.
const SILENCE: Duration = Duration::from_millis(400);

/// Descriptors more than at the start (O6): a connection to each Redis made anew while the old one still waits to be
/// closed, and two kept alive by each HTTP client.
const DESCRIPTORS_MORE_MAX: usize = 24;

/// Resident memory more than at the start (O6), in MiB: what a debug build touches for the first time in a rollout.
const MEMORY_MORE_MAX: u64 = 40;

/// What a process held at some moment.
#[derive(Clone, Copy, Debug)]
pub struct Baseline {
    descriptors: usize,
    threads: u64,
    memory: u64,
}

impl Baseline {
    /// What it holds now.
    pub fn of(process: &Process) -> Self {
        let of = format!("/proc/{}", process.id());
        let status = std::fs::read_to_string(format!("{of}/status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default()
        };
        let descriptors = std::fs::read_dir(format!("{of}/fd")).map(Iterator::count).unwrap_or_default();
        Self { descriptors, threads: field("Threads:"), memory: field("VmRSS:") / 1024 }
    }
}

/// What a run must have come to.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// Invalidations CloudFront has made, in all.
    pub purges: usize,
    /// Different things the receiver was told, in all.
    pub told: usize,
    /// The rollout that must be over everywhere, by its number in each ledger.
    pub seq: u64,
}

impl Want {
    /// One purge and one notice for each of `purges` rollouts, the last of which is `seq`.
    pub const fn purged(purges: usize, seq: u64) -> Self {
        Self { purges, told: purges, seq }
    }
}

/// Waits until the run is over, and holds all oracles against it. What is wrong is what it fails with.
pub async fn judge(field: &Field, want: Want) {
    field.wait_until_over(want.seq).await;
    let told = async |field: &Field| deliveries(field).len() >= want.told;
    field.wait_until(&format!("the receiver was told {} things", want.told), told).await;
    let mut wrong = Vec::new();
    wrong.extend(one_creation_each(field, want));
    wrong.extend(complete_everywhere_at_once(field));
    wrong.extend(silence(field).await);
    wrong.extend(one_outcome(field));
    wrong.extend(delivered_alike(field, want));
    wrong.extend(nothing_kept(field));
    wrong.extend(no_secret(field).await);
    wrong.extend(by_the_logs(field));
    if !wrong.is_empty() {
        panic!("{wrong:#?}\n{}", field.tell().await);
    }
}

/// Rolls the next version out everywhere and holds the run to the oracles: one purge more than before.
pub async fn judge_one_more(field: &Field) {
    let purges = field.purges().len() + 1;
    field.roll_out(&format!("1.{purges}"));
    let seq = u64::try_from(purges).expect("a few") + 1;
    judge(field, Want::purged(purges, seq)).await;
}

/// O1: at most one creation for each vector and distribution. A vector has one reference, so references differ; and there
/// are no more purges than agreements of the clusters.
fn one_creation_each(field: &Field, want: Want) -> Vec<String> {
    let purges = field.purges();
    let references: BTreeSet<_> = purges.iter().map(|purge| (&purge.distribution, &purge.reference)).collect();
    let mut wrong = Vec::new();
    if purges.len() != want.purges {
        wrong.push(format!("O1: {} invalidations instead of {}", purges.len(), want.purges));
    }
    if references.len() != purges.len() {
        wrong.push(format!("O1: {} references for {} invalidations", references.len(), purges.len()));
    }
    wrong
}

/// O2: every vector that was purged was complete everywhere at one instant: before the n-th invalidation was made, the
/// clusters had agreed on n versions, not counting the one they began with.
fn complete_everywhere_at_once(field: &Field) -> Vec<String> {
    let agreements = field.timeline.agreements();
    let purges = field.purges().into_iter().enumerate();
    let early = purges.filter_map(|(number, purge)| {
        let before = agreements.iter().skip(1).filter(|agreement| agreement.since <= purge.at).count();
        (before <= number).then(|| format!("O2: invalidation {} was made after {before} agreements", number + 1))
    });
    early.collect()
}

/// O3, its second half: when everything is over nothing more is asked of CloudFront or sent to the receiver, and no member
/// has anything in flight.
async fn silence(field: &Field) -> Vec<String> {
    let heard = |field: &Field| (field[0].world.cdn.seen().len(), field[0].world.hook.seen().len());
    let idle = async |field: &Field| {
        for member in field.members.iter().filter(|member| member.is_started()) {
            let state = member.process().state().await;
            let none = |name: &str| state[name].as_array().is_some_and(Vec::is_empty);
            // A member that asked what a newer listing says is answered later, also when another member has closed the vector.
            // An earlier release does not say how often it asks (`make skew`).
            let asks = state["asking"].as_u64().is_some_and(|asked| asked > 0);
            if asks || !(none("rollouts") && none("purges") && none("deliveries")) {
                return false;
            }
        }
        true
    };
    field.wait_until("nothing is in flight in any member", idle).await;
    let before = heard(field);
    tokio::time::sleep(SILENCE).await;
    let after = heard(field);
    if before == after { Vec::new() } else { vec![format!("O3: no silence: requests {before:?}, then {after:?}")] }
}

/// O4: no outcome is reported twice with different values: what the members have on record of one invalidation agrees, and
/// nothing is closed twice. A vector that died closes nothing: its rollout may still be voted for in another one, or be overtaken.
fn one_outcome(field: &Field) -> Vec<String> {
    let mut wrong = Vec::new();
    let known: BTreeSet<String> = field.purges().into_iter().map(|purge| purge.id).collect();
    let mut ends: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for member in &field.members {
        let history = member.record().map(|record| record.history).unwrap_or_default();
        let ended = || history.iter().filter(|closed| closed.outcome != Outcome::Dead);
        let numbers: BTreeSet<u64> = ended().map(|closed| closed.seq.0).collect();
        if numbers.len() != ended().count() {
            wrong.push(format!("O4: {} closed a rollout twice: {history:?}", member.world.name));
        }
        for Closed { outcome, purges, .. } in &history {
            for (_, invalidation) in purges {
                let Some(id) = invalidation.as_ref().map(ToString::to_string) else { continue };
                if !known.contains(&id) {
                    wrong.push(format!("O4: {} knows of an invalidation {id} that was never made", member.world.name));
                }
                ends.entry(id).or_default().insert(format!("{outcome:?}"));
            }
        }
        // Notices of invalidations name them; others may well be alike where one version was rolled out twice.
        let told = member.events_of(NAME).into_iter().filter(|event| event.starts_with("Purge")).collect::<Vec<_>>();
        let unique: BTreeSet<&String> = told.iter().collect();
        if unique.len() != told.len() {
            wrong.push(format!("O4: {} told something twice: {told:?}", member.world.name));
        }
    }
    wrong
        .extend(ends.iter().filter(|(_, ends)| ends.len() > 1).map(|(id, ends)| format!("O4: {id} ended as {ends:?}")));
    wrong
}

/// What the receiver was sent: for each id the different bodies.
pub fn deliveries(field: &Field) -> BTreeMap<String, BTreeSet<Vec<u8>>> {
    let mut sent: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for call in field[0].world.receiver.received() {
        let id = call.request.header("webhook-id").unwrap_or_default().to_owned();
        sent.entry(id).or_default().insert(call.request.body.to_vec());
    }
    sent
}

/// O5: every notice is delivered at least once, each time with the same bytes.
fn delivered_alike(field: &Field, want: Want) -> Vec<String> {
    let sent = deliveries(field);
    let mut wrong = Vec::new();
    if sent.len() != want.told {
        wrong.push(format!("O5: {} different notices instead of {}: {:?}", sent.len(), want.told, sent.keys()));
    }
    let differ = sent.iter().filter(|(_, bodies)| bodies.len() > 1);
    wrong.extend(differ.map(|(id, bodies)| format!("O5: {id} was sent with {} different bodies", bodies.len())));
    wrong
}

/// O6: descriptors, threads and memory are back where they were, for those who lived through it all.
fn nothing_kept(field: &Field) -> Vec<String> {
    let mut wrong = Vec::new();
    for (member, before) in field.members.iter().zip(&field.baselines) {
        let Some(before) = before.filter(|_| member.is_started()) else { continue };
        let now = Baseline::of(member.process());
        let more = now.descriptors > before.descriptors + DESCRIPTORS_MORE_MAX
            || now.threads > before.threads + 8
            || now.memory > before.memory + MEMORY_MORE_MAX;
        if more {
            wrong.push(format!("O6: {} has {now:?}, and began with {before:?}", member.world.name));
        }
    }
    wrong
}

/// O7: no secret in any output: logs, what is served, Events, ledgers.
async fn no_secret(field: &Field) -> Vec<String> {
    let mut wrong = Vec::new();
    for member in &field.members {
        let mut shown = member.events_of(NAME);
        shown.push(format!("{:?}", member.record()));
        if member.is_started() {
            shown.extend(member.process().log());
            for page in ["/api/v1/state", "/", "/metrics"] {
                shown.push(member.process().get(page).await.map(|(_, body)| body).unwrap_or_default());
            }
        }
        for secret in [PASSWORD.to_owned(), member.world.secret_access_key()] {
            if let Some(text) = shown.iter().find(|text| text.contains(&secret)) {
                wrong.push(format!("O7: {} shows a secret: {text}", member.world.name));
            }
        }
    }
    wrong
}

/// O8: the logs of all members, of all lives, show no broken promise.
fn by_the_logs(field: &Field) -> Vec<String> {
    let members: Vec<&Scene> = field.members.iter().collect();
    broken(&members).into_iter().map(|words| format!("O8: {words}")).collect()
}

/// Whether the group is where it was: nothing in flight anywhere, as far as the ledgers say.
pub fn all_over(field: &Field, seq: u64) -> bool {
    field.members.iter().all(|member| is_over(member, seq))
}

/// How the last rollout of a member ended, as its ledger says.
pub fn last_end(field: &Field, at: usize) -> Option<Closed> {
    field[at].record().and_then(|record| record.history.last().cloned())
}

/// What a member shows of its rollouts in flight, all words of it.
pub async fn words(field: &Field, at: usize) -> String {
    let state: Value = field[at].process().state().await;
    format!("{} {}", state["rollouts"], state["troubles"])
}
