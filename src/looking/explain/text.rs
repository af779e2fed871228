//! An explanation for people: one screen, the answer first and the reasons below it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::looking::explain::model::{
    DeploymentSeen, DistributionSeen, DistributionsSeen, Explanation, GroupSeen, LookSeen, ProofSeen, RecordSeen,
    SiteSeen, WebhookSeen,
};
use crate::looking::explain::routes::lines;
use crate::looking::layout::Tone;
use crate::looking::page::Page;
use crate::looking::{Section, group_lines};
use kernel::names::distribution::DistributionId;
use kernel::text;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            workload,
            state,
            tone,
            next,
            controller,
            would,
            deployment,
            record,
            group,
            site,
            distributions,
            paths,
            proof,
            webhooks,
            conditions,
            settings,
        } = self;
        Page { f }.title(&workload.display_name())?;
        let mut page = Once { page: Page { f }, told: BTreeMap::new() };
        page.page.toned("State", *tone, [state.clone()])?;
        page.page.part("Next", [next.clone()])?;
        page.page.toned("Controller", Tone::Look, controller.clone())?;
        page.page.part("Would purge", would.clone())?;
        page.page.toned("Conditions", Tone::Look, conditions.iter().cloned())?;
        writeln!(page.page.f)?;
        let kind = deployment.known().and_then(|seen| seen.stand_in).unwrap_or(workload.kind);
        page.section(kind.name(), deployment, deployment_lines)?;
        page.section("Record", record, |record| record.as_ref().map_or_else(|| vec!["none".to_owned()], record_lines))?;
        if let Some(group) = group {
            page.section("Group", group, group_lines)?;
        }
        page.section("Hosts", site, host_lines)?;
        page.page.part("Caches", site.known().into_iter().flat_map(|site| site.caches.clone()))?;
        page.section("Distributions", distributions, distribution_lines)?;
        page.section("Paths", paths, lines)?;
        page.section("Proof", proof, proof_lines)?;
        page.section("Webhooks", webhooks, |webhooks| webhooks.iter().map(webhook_line).collect())?;
        let history = record.known().and_then(Option::as_ref).map(|record| record.history.clone()).unwrap_or_default();
        page.page.part("History", history)?;
        page.page.part("Settings", settings.line())
    }
}

/// A page that shows each refusal once: parts that are missing for the same reason name the first of them.
struct Once<'a, 'b> {
    page: Page<'a, 'b>,
    /// The refusals, by the part that showed them.
    told: BTreeMap<String, &'static str>,
}

impl Once<'_, '_> {
    fn section<T>(
        &mut self,
        name: &'static str,
        section: &Section<T>,
        lines: impl FnOnce(&T) -> Vec<String>,
    ) -> fmt::Result {
        let Section::Missing { missing } = section else { return self.page.section(name, section, lines) };
        // Each call says what it attempted before why that failed.
        let (attempt, why) = missing.split_once(": ").unwrap_or(("", missing));
        match self.told.get(why) {
            Some(first) if self.told.contains_key(missing) => self.page.part(name, [format!("missing, as {first}")]),
            Some(first) => self.page.part(name, [format!("missing: {attempt}, as {first}")]),
            None => {
                self.told.insert(why.to_owned(), name);
                self.told.insert(missing.clone(), name);
                self.page.section(name, section, lines)
            }
        }
    }
}

fn deployment_lines(deployment: &DeploymentSeen) -> Vec<String> {
    let DeploymentSeen {
        stand_in: _,
        images,
        desired,
        total,
        updated,
        available,
        waits_for,
        pods_missing,
        disabled: _,
    } = deployment;
    let mut lines = match images {
        Section::Known(images) => images.iter().map(|(container, image)| format!("{container} {image}")).collect(),
        Section::Missing { missing } => vec![format!("image: {missing}")],
    };
    lines.push(format!("{updated} of {desired} pods of the newest version, {available} available, {total} in all"));
    lines.extend(waits_for.iter().map(|wait| format!("waits for completion: {wait}")));
    lines.extend(pods_missing.iter().map(|why| format!("missing: {why}")));
    lines
}

fn record_lines(record: &RecordSeen) -> Vec<String> {
    let RecordSeen {
        rollout,
        phase,
        stage: _,
        version: _,
        change,
        settled,
        purges,
        asked,
        votes,
        last_purge,
        history: _,
    } = record;
    let mut lines = vec![format!("rollout {rollout}, {phase}: {change}")];
    if let Some(settled) = settled {
        lines.push(format!("the edge has {settled}"));
    }
    lines.extend(asked.iter().cloned());
    if *votes > 0 {
        lines.push(if *votes == 1 { "1 open vote".to_owned() } else { format!("{votes} open votes") });
    }
    lines.extend(purges.iter().map(|purge| purge.state.clone()));
    lines.push(format!("last purge: {}", last_purge.as_deref().unwrap_or("none on record")));
    lines
}

fn group_lines(group: &GroupSeen) -> Vec<String> {
    let GroupSeen { tally, troubles } = group;
    let mut lines: Vec<String> = tally.known_as.iter().map(|name| format!("known in the group as {name}")).collect();
    lines.push(tally.state.clone());
    lines.extend(tally.older.iter().cloned());
    lines.extend(group_lines::members(&tally.members, &[]));
    lines.extend(tally.purges.iter().map(group_lines::purge));
    lines.extend(troubles.iter().cloned());
    lines
}

fn host_lines(site: &SiteSeen) -> Vec<String> {
    let SiteSeen { hosts, load_balancers, rejected, unread, caches: _ } = site;
    let mut lines: Vec<String> =
        hosts.iter().map(|(host, sources)| format!("{host}: {}", sources.join("; "))).collect();
    lines.extend(load_balancers.iter().map(|name| format!("{name}: load balancer of an Ingress without host")));
    lines.extend(rejected.iter().map(|rejected| format!("left out, {}: {}", rejected.place, rejected.why)));
    if lines.is_empty() && unread.is_empty() {
        lines.push("none: no Ingress, route or annotation leads to it".to_owned());
    }
    lines.extend(unread.iter().map(|why| format!("missing: {why}")));
    lines
}

pub(crate) fn distribution_lines(distributions: &DistributionsSeen) -> Vec<String> {
    let DistributionsSeen { named: _, matched, beyond, skipped, unmatched, listed, in_part, unlisted, lacks } =
        distributions;
    let line = |seen: &DistributionSeen| {
        let domain = seen.domain.as_ref().map_or(String::new(), |domain| format!(" ({domain})"));
        let account = seen.account.as_ref().map_or(String::new(), |account| format!(" in AWS account {account}"));
        format!("{}{domain}{account}: {}", named(&seen.id), seen.why.join("; "))
    };
    let mut lines: Vec<String> = matched.iter().map(line).collect();
    let mut bounds: BTreeMap<&[String], Vec<String>> = BTreeMap::new();
    beyond.iter().for_each(|seen| bounds.entry(&seen.why).or_default().push(named(&seen.id)));
    lines.extend(bounds.iter().map(|(why, ids)| format!("not {}: {}", ids.join(", "), why.join("; "))));
    lines.extend(skipped.iter().map(|seen| format!("not {}", line(seen))));
    let of = listed.map_or(String::new(), |listed| format!(" ({listed} looked at)"));
    lines.extend(unmatched.iter().map(|host| format!("none serves {host}{of}")));
    lines.extend(unlisted.iter().cloned());
    if lines.is_empty() {
        lines.push(if *in_part { "none serves the hosts that could be read" } else { "none" }.to_owned());
    }
    lines.extend(lacks.iter().map(|why| format!("missing: {why}")));
    lines
}

/// The id of a distribution tenant with these words before it.
pub(crate) fn named(id: &str) -> String {
    DistributionId::parse(id).map_or_else(|_| id.to_owned(), |id| id.words())
}

fn proof_lines(proof: &ProofSeen) -> Vec<String> {
    let ProofSeen { enabled: _, from, look } = proof;
    let Some(LookSeen { paths, paths_from, marker, again_max, again_after_s }) = look else {
        return vec![format!("nobody looks at the edge after a purge (from the {from})")];
    };
    let by = marker
        .as_ref()
        .map_or_else(|| "age alone".to_owned(), |marker| format!("age, and by {marker} (from the annotation)"));
    let again = if *again_max == 1 { "1 further purge".to_owned() } else { format!("{again_max} further purges") };
    let blind = again_after_s.filter(|_| *again_max > 0).map(|after_s| {
        let after = text::duration(Duration::from_secs(after_s.into()));
        format!("the first of them {after} after the purge, whatever is there")
    });
    let lines = [
        format!("the edge is looked at after each purge (from the {from})"),
        format!("{} of each host (from the {paths_from})", paths.join(", ")),
        format!("judged by {by}"),
        format!("{again} at most where it is stale (from the configuration)"),
    ];
    lines.into_iter().chain(blind).collect()
}

fn webhook_line(webhook: &WebhookSeen) -> String {
    let WebhookSeen { id, hook, kind, attempts, given_up } = webhook;
    let attempts = if *attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
    match given_up {
        Some(reason) => {
            format!("{hook}, {kind}: given up after {attempts}: {reason}; kept as dead letter {id}")
        }
        None => format!("{hook}, {kind}: on its way, {attempts} so far"),
    }
}
