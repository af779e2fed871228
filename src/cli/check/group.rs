//! The group: that all members are known, agree, and run versions that fit together. Judged by the same machine as in
//! the running program (`read::listen`), so its holds and differences have the same words.
//!
//! Not for the servers themselves; those are in `redis`.

use std::collections::BTreeSet;

use super::catalog::{
    Check, GROUP_BEATS, GROUP_CLOCKS, GROUP_CONFIGURATION, GROUP_KEY, GROUP_MEMBERS, GROUP_NAME, GROUP_SERVERS,
    GROUP_TWINS, GROUP_VERSION, LEDGER_READ,
};
use super::report::Finding;
use crate::looking::Neighbours;
use crate::looking::listen::{Group, listen};
use kernel::names::image::VersionOf;
use purge::agreement::roster::Reason;
use purge::bounds::policy::Policy;
use purge::broker::Seen;
use purge::ports::LedgerContents;

/// Clocks may be so far apart before it is said. A beat may be as old itself.
const CLOCKS_APART_MS: i64 = 60_000;

/// Those that need to know who we are and what our ledger has pinned.
const AGREEMENT: [Check; 8] = [
    GROUP_SERVERS,
    GROUP_MEMBERS,
    GROUP_TWINS,
    GROUP_BEATS,
    GROUP_KEY,
    GROUP_CONFIGURATION,
    GROUP_VERSION,
    GROUP_CLOCKS,
];

/// All of it was not tried, because of this.
pub fn untried(after: Check) -> Vec<Finding> {
    std::iter::once(GROUP_NAME).chain(AGREEMENT).map(|check| check.after(after)).collect()
}

/// Everything about the group.
pub async fn group(
    neighbours: &Neighbours,
    ledgered: Option<&LedgerContents>,
    policy: &Policy,
    now_ms: i64,
) -> Vec<Finding> {
    let member = match &neighbours.member {
        Ok(member) => member,
        Err(why) => {
            let failed = std::iter::once(GROUP_NAME.failed(why));
            return failed.chain(AGREEMENT.iter().map(|check| check.after(GROUP_NAME))).collect();
        }
    };
    let mut findings = vec![GROUP_NAME.good(format!("{member} of group {}", neighbours.name))];
    if ledgered.is_none() {
        findings.extend(AGREEMENT.iter().map(|check| check.after(LEDGER_READ)));
        return findings;
    }
    let heard = listen(neighbours, member, ledgered, policy).await;
    let Some(seen) = &heard.seen else { return findings };
    findings.extend(holds(seen));
    findings.extend(members(seen, &heard, policy));
    findings.extend(versions(&heard));
    findings.extend(clocks(&heard, now_ms));
    findings
}

/// What holds the group up, each reason in its own line.
fn holds(seen: &Seen) -> Vec<Finding> {
    let found =
        |reason: Reason| seen.holds.iter().find(move |hold| hold.reason == reason).map(|hold| hold.words.clone());
    let line = |check: Check, reasons: &[Reason], good: &str| match reasons.iter().copied().find_map(found) {
        Some(words) => check.failed(format!("nothing is purged: {words}")),
        None => check.good(good),
    };
    vec![
        line(GROUP_SERVERS, &[Reason::Servers], "every server has answered once"),
        line(GROUP_MEMBERS, &[Reason::Members, Reason::SetBack], "agreed on"),
        line(GROUP_TWINS, &[Reason::Twins], "every name is that of one cluster"),
    ]
}

/// The members: which are silent, not believed, or have other settings.
fn members(seen: &Seen, heard: &Group, policy: &Policy) -> Vec<Finding> {
    let agreed = seen.members.iter().filter(|member| member.agreed);
    let silent: Vec<&str> = agreed
        .filter(|member| member.disbelieved.is_none() && !heard.beats.keys().any(|name| name.0 == member.name))
        .map(|member| member.name.as_str())
        .collect();
    let beats = if silent.is_empty() {
        GROUP_BEATS.good("all members report")
    } else {
        GROUP_BEATS
            .failed(format!("{} does not report", silent.join(", ")))
            .hint("see whether allclear runs there, and whether it reaches these Redis servers")
    };
    let disbelieved: Vec<String> =
        seen.members.iter().filter_map(|one| Some(format!("{}: {}", one.name, one.disbelieved.as_ref()?))).collect();
    let key = if disbelieved.is_empty() {
        GROUP_KEY.good("every member is believed")
    } else {
        GROUP_KEY.failed(disbelieved.join("; ")).hint("give all members the same group.key_file")
    };
    let differing: Vec<String> = seen
        .members
        .iter()
        .filter(|member| !member.differences.is_empty())
        .map(|member| format!("{} has another configuration: {}", member.name, member.differences.join("; ")))
        .collect();
    let cure = seen.members.iter().find_map(|member| member.cure.clone()).unwrap_or_default();
    let same = format!("the same everywhere ({})", seen.config);
    let configuration = if !differing.is_empty() {
        GROUP_CONFIGURATION.failed(differing.join("; ")).hint(cure)
    } else if policy.version.of == VersionOf::Template {
        let each = "for a change of a template alone, each member may purge once";
        let cure = "set version.of = \"annotation KEY\", so that all wait for each other";
        GROUP_CONFIGURATION.warning(format!("{same}; members compare images and no templates: {each}")).hint(cure)
    } else {
        GROUP_CONFIGURATION.good(same)
    };
    vec![beats, key, configuration]
}

fn versions(heard: &Group) -> Option<Finding> {
    let versions: BTreeSet<&str> = heard.beats.values().map(|beat| beat.version.as_str()).collect();
    let of = |(member, beat): (&_, &purge::agreement::roster::Heartbeat)| format!("{member} {}", beat.version);
    match versions.len() {
        0 => None,
        1 => Some(GROUP_VERSION.good(versions.into_iter().collect::<String>())),
        _ => {
            let all: Vec<String> = heard.beats.iter().map(of).collect();
            let reason = format!("members run different versions: {}", all.join(", "));
            Some(
                GROUP_VERSION
                    .warning(reason)
                    .hint("finish the upgrade: members of different versions agree, and are tried less"),
            )
        }
    }
}

/// How far clocks are apart. Nothing depends on it (no clock of two machines is compared), and people read times.
fn clocks(heard: &Group, now_ms: i64) -> Option<Finding> {
    let apart = |at_ms: i64| now_ms.saturating_sub(at_ms);
    let all: Vec<String> = heard
        .beats
        .iter()
        .map(|(member, beat)| format!("{member} {} s", apart(beat.at_ms).div_euclid(1_000)))
        .collect();
    let far = heard.beats.values().any(|beat| apart(beat.at_ms).abs() > CLOCKS_APART_MS);
    let reason = format!("behind ours, the age of the beat included: {}", all.join(", "));
    match (all.is_empty(), far) {
        (true, _) => None,
        (false, false) => Some(GROUP_CLOCKS.good(reason)),
        (false, true) => Some(
            GROUP_CLOCKS.warning(reason).hint("nothing depends on it but the times that people read; set the clocks"),
        ),
    }
}
