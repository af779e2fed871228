//! The state as it is printed: what this command reads of `/api/v1/state`, whichever version wrote it, and its text.

mod facts;

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::actors::observation::{LeafSeen, PromotingSeen, RunningSeen};
use crate::cli::read::{pipeline_lines, repo_lines};
use crate::looking::group_lines;
use crate::looking::layout::{Tone, line};
use crate::looking::page::{Page, count};
use crate::looking::state::pods::PodsOf;
use kernel::text::visible;
use objects::pipeline::view::View;
use objects::repo::view as repo;
use purge::agreement::tally::{Ballot, Executed, ago};
use purge::broker::{BoardSeen, MemberSeen, Trouble};
use purge::rollouts::part::PartSeen;

pub use facts::Fact;

/// The part of the state that is shown. What an older program does not send is left empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Shown {
    member: String,
    group: String,
    dry_run: bool,
    standing_by: Option<String>,
    troubles: Vec<String>,
    /// Not in what a running allclear was asked of one namespace.
    workloads: Option<usize>,
    rollouts: Vec<Rollout>,
    /// Not in the state of a running allclear.
    pods: Vec<PodsOf>,
    tallies: Vec<Tally>,
    parts: Vec<Parts>,
    agreement: Option<Agreement>,
    boards: Vec<BoardSeen>,
    purges: Vec<Purge>,
    /// What was purged this month.
    bill: Vec<String>,
    deliveries: Vec<Delivery>,
    quarantined: Vec<String>,
    unwell: Vec<Unwell>,
    /// The source of its settings, where a command found out.
    settings: Option<String>,
    /// Read by itself, so that another form of it hides nothing else.
    promoting: Value,
    /// The same of Repos.
    running: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Unwell {
    workload: String,
    state: String,
    reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rollout {
    workload: String,
    seq: u64,
    phase: String,
    change: String,
    state: String,
    next: String,
    older: Vec<String>,
    purges: Vec<RolloutPurge>,
    conditions: Vec<String>,
    versions: Versions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Versions {
    /// Why the edge is stale until something outside changes.
    stale: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RolloutPurge {
    reference: String,
    distribution: String,
    state: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tally {
    workload: String,
    state: String,
    older: Vec<String>,
    blocks: Option<String>,
    members: Vec<Ballot>,
    purges: Vec<Executed>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parts {
    workload: String,
    members: Vec<PartSeen>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Agreement {
    holds: Vec<Hold>,
    members: Vec<MemberSeen>,
    boards: Vec<BoardSeen>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Hold {
    words: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Purge {
    reference: String,
    state: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delivery {
    hook: String,
    workload: String,
    kind: String,
    attempts: u32,
    given_up: bool,
    state: String,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { member, group, dry_run, standing_by, troubles, rollouts, tallies, .. } = self;
        let dry = if *dry_run { ", dry run: nothing is purged or sent" } else { "" };
        line(f, self.tone(), &format!("member {member} of group {group}{dry}: {}", self.headline()))?;
        if let Some(leader) = standing_by {
            return writeln!(f, "  ask {} for what goes on: its name begins with that of its pod", visible(leader));
        }
        let holds = || self.agreement.iter().flat_map(|agreement| &agreement.holds);
        let held = holds().map(|hold| format!("nothing is purged: {}", hold.words));
        Page { f }.toned("Held up", Tone::Bad, held)?;
        for rollout in rollouts {
            writeln!(f)?;
            let tally = tallies.iter().find(|tally| tally.workload == rollout.workload);
            self.rollout(&mut Page { f }, rollout, tally)?;
        }
        self.promoting(&mut Page { f })?;
        self.running(&mut Page { f })?;
        let mut page = Page { f };
        let plain = troubles.is_empty() && self.agreement.is_none() && self.boards.is_empty() && self.bill.is_empty();
        if !(plain && self.deliveries.is_empty() && self.unwell.is_empty() && self.quarantined.is_empty()) {
            writeln!(page.f)?;
        }
        page.entries("Needs a look", self.unwell.iter().map(unwell_line))?;
        if let Some(agreement) = &self.agreement {
            let pinned = agreement.members.iter().any(|member| member.agreed);
            page.part("Members", agreement.members.iter().map(|member| member_line(member, pinned)))?;
        }
        page.part("Redis", self.boards().map(board_line))?;
        page.part("Webhooks", self.deliveries.iter().map(delivery_line))?;
        page.part("Quarantined", self.quarantined.iter().map(|workload| display_name(workload).to_owned()))?;
        page.part("Purged", self.bill.clone())?;
        let shown = self.beside();
        page.toned("Troubles", Tone::Look, troubles.iter().filter(|trouble| !shown.contains(*trouble)).cloned())?;
        page.part("Settings", self.settings.clone())
    }
}

impl Shown {
    /// What is said of Pipelines, if it has a form that we know.
    fn promoted(&self) -> Option<PromotingSeen> {
        serde_json::from_value(self.promoting.clone()).ok()
    }

    fn promoting(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        if self.promoting.is_null() {
            return Ok(());
        }
        let Some(PromotingSeen { pipelines, leaves, troubles }) = self.promoted() else {
            writeln!(page.f)?;
            return page.part("Pipelines", ["of another form than this version knows; -o json shows them".to_owned()]);
        };
        for view in &pipelines {
            writeln!(page.f)?;
            pipeline_lines::row(view, page.f)?;
        }
        let leaf = |LeafSeen { name, troubles, .. }: &LeafSeen| {
            troubles.iter().map(|trouble| format!("{name}: {trouble}")).collect::<Vec<_>>()
        };
        let leaves: Vec<String> = leaves.iter().flat_map(leaf).collect();
        if !leaves.is_empty() || !troubles.is_empty() {
            writeln!(page.f)?;
        }
        page.part("Clusters", leaves)?;
        page.part("Pipelines", troubles)
    }

    /// What is said of Repos, if it has a form that we know.
    fn run(&self) -> Option<RunningSeen> {
        serde_json::from_value(self.running.clone()).ok()
    }

    fn running(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        if self.running.is_null() {
            return Ok(());
        }
        let Some(RunningSeen { repos, troubles }) = self.run() else {
            writeln!(page.f)?;
            return page.part("Repos", ["of another form than this version knows; -o json shows them".to_owned()]);
        };
        for view in &repos {
            writeln!(page.f)?;
            repo_lines::row(view, page.f)?;
        }
        if !troubles.is_empty() {
            writeln!(page.f)?;
        }
        page.part("Repos", troubles)
    }

    fn boards(&self) -> impl Iterator<Item = &BoardSeen> {
        self.agreement.as_ref().map_or(&self.boards, |agreement| &agreement.boards).iter()
    }

    /// The troubles that are shown beside what they are about, in the words of the list.
    fn beside(&self) -> BTreeSet<String> {
        let holds = self.agreement.iter().flat_map(|agreement| &agreement.holds);
        let members = self.agreement.iter().flat_map(|agreement| &agreement.members);
        let difference = |MemberSeen { name, differences, cure, .. }: &MemberSeen| Trouble::Difference {
            member: name.clone(),
            differences: differences.clone(),
            cure: cure.clone(),
        };
        let boards = self.boards().filter_map(|board| board.trouble.clone());
        let troubles = holds.map(|hold| Trouble::Hold(hold.words.clone())).chain(members.map(difference));
        troubles.chain(boards.map(Trouble::Board)).map(|trouble| trouble.to_string()).collect()
    }

    /// As the page has it: nothing is wrong, and nothing ended badly.
    fn is_well(&self) -> bool {
        let delivered = !self.deliveries.iter().any(|delivery| delivery.given_up);
        // What has a form that we do not know was not looked at.
        let promotes = self.promoting.is_null()
            || self.promoted().is_some_and(|seen| {
                let sick = seen.leaves.iter().any(|leaf| !leaf.troubles.is_empty());
                seen.troubles.is_empty() && !sick && !seen.pipelines.iter().any(View::is_stalled)
            });
        let runs = self.running.is_null()
            || self
                .run()
                .is_some_and(|seen| seen.troubles.is_empty() && !seen.repos.iter().any(repo::View::is_stalled));
        self.troubles.is_empty()
            && self.unwell.is_empty()
            && self.rollouts.iter().all(|rollout| rollout.versions.stale.is_none())
            && self.quarantined.is_empty()
            && delivered
            && promotes
            && runs
    }

    /// As the headline says it.
    fn tone(&self) -> Tone {
        match (&self.standing_by, self.is_well(), self.rollouts.is_empty()) {
            (Some(_), ..) => Tone::Plain,
            (None, false, _) => Tone::Look,
            (None, true, true) => Tone::Good,
            (None, true, false) => Tone::Moving,
        }
    }

    fn headline(&self) -> String {
        // A workload that is followed and not listed, as while the first listing is under way, is none of these.
        let known = self.workloads.filter(|number| *number >= self.rollouts.len());
        let known = known.map(|number| count(number, "workload", "workloads"));
        let none =
            known.as_ref().map_or_else(|| "none in flight".to_owned(), |known| format!("{known} and none in flight"));
        match (&self.standing_by, self.rollouts.len(), known) {
            (Some(leader), ..) => format!("standing by, {} leads", visible(leader)),
            (None, 0, _) if self.is_well() => format!("all clear, {none}"),
            (None, 0, _) if self.troubles.is_empty() => format!("{none}, but something needs a look"),
            (None, 0, _) => format!("{none}, but see the troubles below"),
            (None, in_flight, Some(known)) => format!("{in_flight} of {known} in flight"),
            (None, in_flight, None) => format!("{in_flight} in flight"),
        }
    }

    fn rollout(&self, page: &mut Page<'_, '_>, rollout: &Rollout, tally: Option<&Tally>) -> fmt::Result {
        let Rollout { workload, seq, phase, change, state, next, older, purges, conditions, versions } = rollout;
        let number = if *seq == 0 { String::new() } else { format!("  rollout {seq}, {}", visible(phase)) };
        page.title(&format!("{}{number}  {change}", display_name(workload)))?;
        let tone = match (&versions.stale, phase.as_str()) {
            (Some(_), _) => Tone::Bad,
            (None, "failed") => Tone::Look,
            (None, _) => Tone::Moving,
        };
        page.toned("State", tone, [state.clone()])?;
        page.part("Next", [next.clone()])?;
        let pods = self.pods.iter().filter(|of| of.workload == *workload).flat_map(|of| &of.pods);
        page.entries("Pods", pods.map(|pod| (pod.tone(), pod.line())))?;
        // What holds the whole group up is said above, once.
        let is_held = self.agreement.as_ref().is_some_and(|agreement| !agreement.holds.is_empty());
        let agreed = tally.filter(|_| !is_held && phase != "rolling" && phase != "failed");
        page.part("Group", agreed.map(|tally| tally.state.clone()).filter(|agreed| !state.contains(agreed.as_str())))?;
        let told = tally.map(|tally| &tally.older).filter(|older| !older.is_empty()).unwrap_or(older);
        page.part("Older", told.iter().cloned())?;
        if let Some(tally) = tally {
            page.part("Blocks", tally.blocks.iter().filter(|blocks| !state.starts_with(blocks.as_str())).cloned())?;
            let parts = self.parts.iter().find(|parts| parts.workload == *workload);
            let parts = parts.map_or(&[][..], |parts| &parts.members);
            page.part("Members", group_lines::members(&tally.members, parts))?;
        }
        match tally.filter(|tally| !tally.purges.is_empty()) {
            Some(tally) => page.part("Purges", tally.purges.iter().map(group_lines::purge))?,
            None => page.part("Purges", purges.iter().map(|purge| self.live(purge)))?,
        }
        page.part("Conditions", conditions.iter().cloned())
    }

    /// What the invalidator says of a purge is newer than what the record says.
    fn live(&self, purge: &RolloutPurge) -> String {
        let working = self.purges.iter().find(|seen| seen.reference == purge.reference);
        working.map_or_else(|| purge.state.clone(), |seen| format!("{}: {}", purge.distribution, seen.state))
    }
}

/// What was to be purged and is not leaves the edge stale, as the page has it; what did not complete was no version for the edge.
fn unwell_line(Unwell { workload, state, reason }: &Unwell) -> (Tone, String) {
    let is_stale = matches!(reason.as_str(), "withdrawn" | "owed" | "impossible" | "partly" | "stale");
    (if is_stale { Tone::Bad } else { Tone::Look }, format!("{}: {state}", display_name(workload)))
}

/// `pinned`: the members are known. Otherwise the hold among the troubles is about all of them.
fn member_line(member: &MemberSeen, pinned: bool) -> String {
    let MemberSeen { name, is_self, agreed, heard_s, heard, version, differences, unfollowed, .. } = member;
    let heard = match (is_self, heard_s) {
        (true, _) => "this member".to_owned(),
        (false, Some(_)) if heard.is_some() => heard.clone().unwrap_or_default(),
        // As an older program says it.
        (false, Some(age)) => format!("a report of it was read {}", ago(*age)),
        (false, None) => "not heard from".to_owned(),
    };
    let version =
        version.as_ref().filter(|_| !is_self).map_or_else(String::new, |version| format!(", allclear {version}"));
    let agreed = if *agreed || !pinned { "" } else { ", not agreed on" };
    let differs = if differences.is_empty() {
        String::new()
    } else {
        format!(", another configuration: {}", differences.join("; "))
    };
    let unfollowed: String = unfollowed.iter().map(|why| format!(", {why}")).collect();
    format!("{name}: {heard}{version}{agreed}{differs}{unfollowed}")
}

fn board_line(board: &BoardSeen) -> String {
    let BoardSeen { name, trouble, answered_s, waiting, same_as, .. } = board;
    let state = match (same_as, trouble, answered_s) {
        (Some(other), ..) => format!("the same server as {other}"),
        (None, Some(why), _) => group_lines::board_trouble(name, why).to_owned(),
        (None, None, Some(age)) => format!("answered {}", ago(*age)),
        (None, None, None) => "has not answered yet".to_owned(),
    };
    let waiting =
        if *waiting > 0 { format!(", {} to be posted", count(*waiting, "record", "records")) } else { String::new() };
    format!("{name}: {state}{waiting}")
}

fn delivery_line(delivery: &Delivery) -> String {
    let Delivery { hook, workload, kind, attempts, given_up, state } = delivery;
    let attempts = count(*attempts as usize, "attempt", "attempts");
    let gone = if *given_up { "dead letter after" } else { "on its way," };
    format!("{hook}, {kind} of {}: {gone} {attempts}; {state}", display_name(workload))
}

/// `deployment/shop/web`, the way people say it.
fn display_name(workload: &str) -> &str {
    workload.strip_prefix("deployment/").unwrap_or(workload)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::looking::layout::Screen;

    #[test]
    fn all_is_clear_only_while_no_repo_needs_a_person() {
        let shown = |running: Value| -> String {
            let state = json!({"member": "eu-1", "group": "default", "workloads": 1, "running": running});
            serde_json::from_value::<Shown>(state).unwrap().to_string()
        };
        let calm = json!({"repos": [], "troubles": []});
        let away = json!({"repos": [], "troubles": ["git host git.example.com is paused for 30 s"]});
        let condition =
            json!({"kind": "Stalled", "holds": true, "reason": "RunFailed", "message": "boom", "since_ms": 0});
        let repo = json!({
            "id": {"namespace": "shop", "name": "infra"}, "source": "", "held": {}, "head": null, "run": null, "queued": null,
            "waits": "boom", "next": "say yes", "question": null, "gates": [], "conditions": [condition], "history": [],
        });
        let stalled = json!({"repos": [repo], "troubles": []});
        let all = [Value::Null, calm, away, stalled, json!({"repos": 7})];
        expect![[r#"
            member eu-1 of group default: all clear, 1 workload and none in flight

            member eu-1 of group default: all clear, 1 workload and none in flight

            member eu-1 of group default: 1 workload and none in flight, but something needs a look

              Repos         git host git.example.com is paused for 30 s

            member eu-1 of group default: 1 workload and none in flight, but something needs a look

            shop/infra  ?
              Waits         boom; say yes

            member eu-1 of group default: 1 workload and none in flight, but something needs a look

              Repos         of another form than this version knows; -o json shows them
        "#]]
        .assert_eq(&all.map(shown).join("\n"));
    }

    #[test]
    fn a_refused_purge_in_flight_is_red_as_on_the_page() {
        let of = |stale: Value| {
            let web = json!({
                "workload": "deployment/shop/web", "phase": "complete", "state": "not made yet", "versions": {"stale": stale},
            });
            let shown: Shown = serde_json::from_value(json!({"workloads": 1, "rollouts": [web]})).unwrap();
            let screen = Screen { columns: None, is_coloured: true, now_ms: None };
            (shown.tone(), screen.draw(&shown).contains("\u{1b}[31mnot made yet"))
        };
        assert_eq!(of(Value::Null), (Tone::Moving, false));
        assert_eq!(of("AccessDenied".into()), (Tone::Look, true));
    }

    #[test]
    fn a_stale_edge_is_red_what_needs_a_look_is_yellow_and_pods_are_by_their_own_state() {
        let pod = |name: &str, is_new: bool, state: &str| json!({"name": name, "version": "web: 2", "is_new": is_new, "state": state});
        let state = json!({
            "member": "eu-1", "group": "default", "workloads": 3,
            "rollouts": [{
                "workload": "deployment/shop/web", "seq": 7, "phase": "rolling", "change": "web: 1 → 2", "state": "1 of 2 pods ready",
                "next": "purges when it is complete",
            }],
            "pods": [{"workload": "deployment/shop/web", "pods": [pod("a", true, "ready"), pod("b", true, "ImagePullBackOff"), pod("c", false, "terminating")]}],
            "unwell": [
                {"workload": "deployment/shop/db", "state": "its purge is refused", "reason": "owed"},
                {"workload": "deployment/shop/ui", "state": "did not complete", "reason": "failed"},
            ],
        });
        let shown: Shown = serde_json::from_value(state).unwrap();
        let coloured = Screen { columns: Some(60), is_coloured: true, now_ms: None }.draw(&shown);
        expect![[r#"
            ␛[33m! member eu-1 of group default: 1 of 3 workloads in flight␛[0m

            ␛[1mshop/web  rollout 7, rolling  web: 1 → 2␛[0m
            ␛[2m  State         ␛[0m␛[34m1 of 2 pods ready␛[0m
            ␛[2m  Next          ␛[0mpurges when it is complete
            ␛[2m  Pods          ␛[0m␛[32ma new (web: 2): ready␛[0m
                            ␛[33mb new (web: 2): ImagePullBackOff␛[0m
                            ␛[34mc old (web: 2): terminating␛[0m

            ␛[2m  Needs a look  ␛[0m␛[31mshop/db: its purge is refused␛[0m
                            ␛[33mshop/ui: did not complete␛[0m
        "#]]
        .assert_eq(&coloured.replace('\u{1b}', "␛"));
        assert_eq!(unwell_line(&Unwell { reason: "withdrawn".to_owned(), ..Unwell::default() }).0, Tone::Bad);
        assert_eq!(unwell_line(&Unwell { reason: "stale".to_owned(), ..Unwell::default() }).0, Tone::Bad);
        let facts: Vec<String> =
            shown.facts().into_iter().map(|(about, fact)| format!("{about}: {}", fact.words)).collect();
        expect![[r#"
            shop/db needs a look: its purge is refused
            shop/ui needs a look: did not complete
            shop/web: rollout 7, rolling: web: 1 → 2: 1 of 2 pods ready
            shop/web pod a: new (web: 2): ready
            shop/web pod b: new (web: 2): ImagePullBackOff
            shop/web pod c: old (web: 2): terminating"#]]
        .assert_eq(&facts.join("\n"));
    }
}
