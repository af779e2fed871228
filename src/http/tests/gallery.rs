//! Fourteen situations, to be looked at by a browser: `make page` runs this and drives headless Chromium. It ends with its standard input.

use std::io::Read;

use super::promoting::promoting;
use super::*;
use crate::actors::observation::{ReceiverSeen, RunningSeen};
use crate::looking::tests::{World, web};
use kernel::id::Seq;
use notices::notice::{About, Kind, Mentions, Notice};
use objects::repo::view as repo;
use objects::status::ConditionView;
use purge::rollouts::part::{PartSeen, PartsSeen};
use purge::rollouts::versions::{Has, Versions};

/// Shows one situation, and answers any search with the same workloads.
struct Situation(Observation, Listing);

impl Actor for Situation {
    type Context = Context<Self>;
}

impl Handler<Observe> for Situation {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.0.clone())
    }
}

impl Handler<Browse> for Situation {
    type Result = MessageResult<Browse>;

    fn handle(&mut self, browse: Browse, _: &mut Self::Context) -> Self::Result {
        MessageResult(match browse {
            Browse::Search(_) => self.1.clone(),
            Browse::One(id) => {
                let rows: Vec<Row> = self.1.rows.iter().filter(|row| row.summary.workload == id).cloned().collect();
                Listing { matched: rows.len(), rows }
            }
        })
    }
}

fn summary(name: &str, stage: Stage, phase: &'static str, state: &str) -> Summary {
    Summary {
        change: format!("{name}: 4.1.9 → 4.2.0"),
        versions: Versions {
            runs: "app: 4.2.0".to_owned(),
            edge_has: Some(if stage == Stage::Idle { "app: 4.2.0" } else { "app: 4.1.9" }.to_owned()),
            at_edge: if stage == Stage::Idle { Has::Same } else { Has::Another },
            purged: stage == Stage::Idle,
            ..Versions::default()
        },
        state: state.to_owned(),
        next: "tells the webhooks when all are completed".to_owned(),
        stage,
        phase,
        seq: 12,
        conditions: Vec::new(),
        purges: Vec::new(),
        members: Vec::new(),
        past: Past {
            history: vec![
                format!("{name}: 4.1.8 → 4.1.9: purged (E1A2B3C4D5E6F7 by I1111111111111)"),
                format!("{name}: 4.1.7 → 4.1.8: overtaken by a newer version"),
            ],
            ..Past::default()
        },
        ..busy(name).rollouts.remove(0)
    }
}

fn record(name: &str, at_rest: bool) -> Row {
    let state = format!("{name}: 4.1.9 → 4.2.0: purged (E1A2B3C4D5E6F7 by I2J3K4L5M6N7O8)");
    let row = row(&summary(name, Stage::Idle, "complete", &state));
    let summary = Summary { next: "waits for the next version".to_owned(), ..row.summary };
    Row { version: "4.2.0".to_owned(), in_flight: !at_rest, summary, ..row }
}

fn listing(names: &[&str], all: usize) -> Listing {
    Listing { rows: names.iter().map(|name| record(name, true)).collect(), matched: all }
}

/// A rollout's notices, with the seconds before now at which they were sent.
fn tell(front: &Front, name: &str, told: &[(Kind, i64, &str)]) {
    for (kind, seconds, message) in told {
        let hosts = ["www.example.com", "shop.example.com"].map(|host| host.parse().unwrap()).into();
        let mentions = Mentions { hosts, ..Mentions::default() };
        let notice = Notice {
            id: Notice::id_of(name, *kind, ""),
            kind: *kind,
            at_ms: 0,
            about: About::Workload(WorkloadId::deployment("shop", name), mentions),
            seq: Seq(12),
            rollout: String::new(),
            change: String::new(),
            message: (*message).to_owned(),
        };
        front.metrics.chronicle.note(&notice, NOW_MS - seconds * 1000);
    }
}

const PURGED: [(Kind, i64, &str); 4] = [
    (Kind::RolloutStarted, 268, "web: 4.1.9 → 4.2.0 is rolling out"),
    (Kind::RolloutCompleted, 231, "web: 4.1.9 → 4.2.0 is complete in eu-1"),
    (Kind::PurgeStarted, 229, "CloudFront accepted invalidation I2J3K4L5M6N7O8 of E1A2B3C4D5E6F7"),
    (
        Kind::PurgeCompleted,
        222,
        "CloudFront reports the purge completed: E1A2B3C4D5E6F7 by invalidation I2J3K4L5M6N7O8 (web: 4.2.0)",
    ),
];

const LOOKED: [(Kind, i64, &str); 5] = [
    (Kind::RolloutStarted, 3_900, "docs: 4.1.9 → 4.2.0 is rolling out"),
    (Kind::RolloutCompleted, 3_760, "docs: 4.1.9 → 4.2.0 is complete in eu-1"),
    (Kind::PurgeStarted, 3_740, "CloudFront accepted it"),
    (Kind::PurgeCompleted, 3_731, "CloudFront reports the purge completed"),
    (Kind::EdgeFresh, 3_712, "the edge answers what the new pods answer"),
];

const GIVEN_UP: [(Kind, i64, &str); 2] = [
    (Kind::RolloutStarted, 900, "search: 4.1.9 → 4.2.0 is rolling out"),
    (Kind::RolloutFailed, 300, "search: 4.1.9 → 4.2.0: the rollout timeout passed"),
];

fn three(trouble: Option<&str>) -> Seen {
    let member = |name: &str, is_self, heard_s| MemberSeen {
        name: name.to_owned(),
        is_self,
        agreed: true,
        heard_s,
        heard: heard_s.map(|age: u64| match age {
            0..20 => "heard from in the last 20 s".to_owned(),
            _ => format!("not heard from for {} s at least", age / 10 * 10),
        }),
        version: Some("0.1.0".to_owned()),
        ..MemberSeen::default()
    };
    let board = |name: &str, trouble: Option<&str>| BoardSeen {
        name: name.to_owned(),
        answered_s: Some(if trouble.is_some() { 190 } else { 1 }),
        trouble: trouble.map(str::to_owned),
        ..BoardSeen::default()
    };
    Seen {
        members: vec![member("ap-1", false, Some(2)), member("eu-1", true, None), member("us-1", false, Some(95))],
        boards: vec![board("redis-eu:6379", None), board("redis-us:6379", trouble)],
        ..Seen::default()
    }
}

fn votes(name: &str, phases: [(&str, Option<&str>); 3], blocks: Option<&str>) -> Tally {
    let ballot = |(member, (phase, awaited)): (&str, (&str, Option<&str>))| Ballot {
        member: member.to_owned(),
        is_self: member == "eu-1",
        phase: phase.to_owned(),
        version: "4.2.0".to_owned(),
        voted: phase == "complete" && awaited.is_none(),
        awaited: awaited.map(str::to_owned),
        ..Ballot::default()
    };
    Tally {
        workload: WorkloadId::deployment("shop", name),
        known_as: None,
        state: String::new(),
        older: Vec::new(),
        next: None,
        blocks: blocks.map(str::to_owned),
        members: ["ap-1", "eu-1", "us-1"].into_iter().zip(phases).map(ballot).collect(),
        purges: Vec::new(),
    }
}

fn calm() -> Observation {
    let receiver = ReceiverSeen { name: "chat".to_owned(), events: Vec::new(), workloads: Vec::new(), last: None };
    Observation { workloads: 4, distributions: Some((7, 34)), receivers: vec![receiver], ..synced() }
}

fn all_clear() -> (Observation, Listing) {
    let recent = ["web", "docs", "api"].map(|name| record(name, true).summary).into();
    (Observation { recent, ..calm() }, listing(&["api", "docs", "search", "web"], 4))
}

fn in_flight() -> (Observation, Listing) {
    let purge = PurgeSummary {
        reference: "ref".to_owned(),
        distribution: "E1A2B3C4D5E6F7".to_owned(),
        invalidation: Some("I2J3K4L5M6N7O8".to_owned()),
        state: "invalidation I2J3K4L5M6N7O8 of E1A2B3C4D5E6F7 in progress".to_owned(),
    };
    let mut purging = summary("web", Stage::Purge, "complete", &purge.state);
    purging.purges = vec![purge];
    let rolling = "2 of 3 pods ready; api-7c9-x4: ImagePullBackOff, 8m 51s of 10m left";
    let next = "purges when every pod is of the new version and available".to_owned();
    let mut pulling = Summary { next, ..summary("api", Stage::Rollout, "rolling", rolling) };
    pulling.versions.pod = Some(("api-7c9-x4".to_owned(), "ImagePullBackOff".to_owned()));
    let rollouts = vec![purging, pulling];
    let tallies = vec![
        votes("web", [("complete", None); 3], None),
        votes(
            "api",
            [("complete", None), ("rolling", None), ("rolling", None)],
            Some("ap-1 waits for this cluster, since it is at api: 4.2.0, rolling"),
        ),
    ];
    let (mut seen, mut found) = (calm(), listing(&["api", "docs", "search", "web"], 4));
    for row in found.rows.iter_mut().filter(|row| rollouts.iter().any(|one| one.workload == row.summary.workload)) {
        row.in_flight = true;
    }
    (seen.rollouts, seen.tallies, seen.group) = (rollouts, tallies, Some(three(None)));
    (seen, found)
}

/// One release in three clusters: complete here, one cannot pull it, and one has been silent for a while.
pub(super) fn clusters() -> (Observation, Listing) {
    let part = |member: &str, phase: &str| PartSeen {
        member: member.to_owned(),
        is_self: member == "eu-1",
        seq: Some(12),
        phase: phase.to_owned(),
        version: "app: 4.2.0".to_owned(),
        edge: Some("app: 4.1.9".to_owned()),
        ..PartSeen::default()
    };
    let says = "1 of 3 pods ready; web-6d4-9z: ImagePullBackOff: Back-off pulling image app:4.2.0, 5m 40s of 10m left";
    let pulls = PartSeen { says: Some(says.to_owned()), for_s: Some(260), ..part("ap-1", "rolling") };
    let silent = Some("has not been heard from for more than a minute".to_owned());
    let waits = format!("waiting for ap-1, which is rolling (last heard: {says})");
    let (mut seen, mut found) = (calm(), listing(&["api", "docs", "search", "web"], 4));
    let rolls = Summary {
        next: "votes when all have completed one version".to_owned(),
        ..summary("web", Stage::Agreement, "complete", &waits)
    };
    seen.tallies = vec![votes("web", [("rolling", Some(says)), ("complete", None), ("complete", None)], None)];
    seen.recent = vec![record("docs", true).summary];
    let ended = |part: PartSeen, ended: &str| PartSeen {
        edge: Some("app: 4.2.0".to_owned()),
        ended: Some(ended.to_owned()),
        ..part
    };
    let fresh = "purged (E1A2B3C4D5E6F7 by I2J3K4L5M6N7O8)";
    let stale =
        PartSeen { stale: Some("/ is of before the purge".to_owned()), ..ended(part("ap-1", "complete"), fresh) };
    seen.parts = vec![
        PartsSeen {
            workload: rolls.workload.clone(),
            members: vec![
                pulls,
                part("eu-1", "complete"),
                PartSeen { silent: silent.clone(), ..part("us-1", "complete") },
            ],
        },
        PartsSeen {
            workload: WorkloadId::deployment("shop", "docs"),
            members: vec![
                stale,
                ended(part("eu-1", "complete"), fresh),
                PartSeen { silent, ..ended(part("us-1", "complete"), fresh) },
            ],
        },
    ];
    (seen.rollouts, seen.group) = (vec![rolls], Some(three(None)));
    found.rows.iter_mut().filter(|row| row.summary.workload.name == "web").for_each(|row| row.in_flight = true);
    (seen, found)
}

fn needs_a_look() -> (Observation, Listing) {
    let blocks = "ap-1 and us-1 wait for this cluster, since it is at search: 4.1.9, complete";
    let unwell = |name: &str, reason, state: &str| Unwell {
        workload: WorkloadId::deployment("shop", name),
        reason,
        state: state.to_owned(),
    };
    let denied = "a purge is owed, and tried again: E1A2B3C4D5E6F7: AccessDenied: not authorized to perform cloudfront:CreateInvalidation";
    let mut seen = calm();
    seen.troubles = vec!["redis-us:6379 does not answer: timed out; agreement goes on over the others".to_owned()];
    seen.unwell = vec![
        unwell("api", Reason::Failed, "api: 4.1.9 → 4.2.0: not purged: the Deployment missed its progress deadline"),
        unwell("web", Reason::Owed, denied),
    ];
    seen.rollouts = vec![Summary {
        next: "goes on when they are complete here".to_owned(),
        ..summary("search", Stage::Agreement, "complete", blocks)
    }];
    seen.tallies = vec![votes(
        "search",
        [("complete", None), ("complete", Some("is at search: 4.1.9, complete")), ("complete", None)],
        Some(blocks),
    )];
    seen.deliveries = busy("web").deliveries;
    seen.deliveries[0].hook = "chat".to_owned();
    seen.deliveries[0].state = "answered 410 Gone".to_owned();
    seen.quarantined = vec![WorkloadId::deployment("shop", "docs")];
    seen.group = Some(three(Some("timed out")));
    let mut found = listing(&["api", "docs", "search", "web"], 4);
    for (at, unwell) in [(0, &seen.unwell[0]), (3, &seen.unwell[1])] {
        found.rows[at].summary.state.clone_from(&unwell.state);
        found.rows[at].summary.versions = Versions {
            edge_has: Some("app: 4.1.9".to_owned()),
            at_edge: Has::Mixed,
            purged: false,
            stale: (unwell.reason == Reason::Owed)
                .then(|| "AccessDenied: not authorized to perform cloudfront:CreateInvalidation".to_owned()),
            ..found.rows[at].summary.versions.clone()
        };
        found.rows[at].unwell = Some(unwell.clone());
    }
    found.rows[1].left_alone = Some("crashed".to_owned());
    (seen, found)
}

/// One release among those that are fine: what a stranger is shown for five seconds.
fn stuck() -> (Observation, Listing) {
    let denied = "AccessDenied: not authorized to perform cloudfront:CreateInvalidation";
    let mut refused = summary("web", Stage::Purge, "complete", &format!("E1A2B3C4D5E6F7 is not made yet: {denied}"));
    refused.next = "it is tried again about every 5m, and at once by allclear purge --retry".to_owned();
    refused.versions.stale = Some(denied.to_owned());
    let mut moves = summary("api", Stage::Rollout, "rolling", "2 of 3 pods ready, 8m 51s of 10m left");
    moves.next = "purges when every pod is of the new version and available".to_owned();
    let (mut seen, found) = all_clear();
    seen.recent.retain(|summary| summary.workload.name == "docs");
    (seen.rollouts, seen.group) = (vec![refused, moves], Some(three(None)));
    seen.tallies = vec![
        votes("web", [("complete", None); 3], None),
        votes("api", [("complete", None), ("rolling", None), ("complete", None)], None),
    ];
    (seen, found)
}

fn held() -> (Observation, Listing) {
    let (mut seen, found) = in_flight();
    let words = "two clusters have the name eu-1; give each cluster a name of its own (group.member)";
    let mut group = three(None);
    group.hold = Some(words.to_owned());
    group.holds = vec![purge::agreement::roster::Hold::new(purge::agreement::roster::Reason::Twins, words.to_owned())];
    seen.group = Some(group);
    (seen, found)
}

fn standing_by() -> (Observation, Listing) {
    (Observation { standing_by: Some("allclear-5d9-x2/7".to_owned()), ..calm() }, Listing::default())
}

fn pipelines() -> (Observation, Listing) {
    let mut promoting = promoting("1.4");
    let pipeline = &mut promoting.pipelines[0];
    (pipeline.suspended, pipeline.id) = (None, kernel::id::PipelineId::new("shop", "web"));
    pipeline.environments[1].name = kernel::id::Environment("prod".to_owned());
    pipeline.environments[1].waits = Some("1.4 waits for a person".to_owned());
    pipeline.environments[1].next = "approve it: `allclear pipeline approve shop/web prod`".to_owned();
    pipeline.environments[1].question.as_mut().unwrap().words = "Is 1.4 approved for prod?".to_owned();
    let seen = Observation { promoting: Some(promoting), running: Some(running()), ..all_clear().0 };
    (seen, all_clear().1)
}

fn running() -> RunningSeen {
    let revision: kernel::id::CommitId = "3f2a".repeat(10).parse().unwrap();
    let condition = ConditionView {
        kind: "Ready".to_owned(),
        holds: Some(false),
        reason: "WaitsForApproval".to_owned(),
        message: "a person must approve the plan".to_owned(),
        since_ms: NOW_MS - 600_000,
    };
    let plan = repo::PlanView {
        counts: Some("2 to add, 1 to change, 0 to destroy".to_owned()),
        fingerprint: "f1".to_owned(),
        job: "infra-7-plan".to_owned(),
        logs: "kubectl -n platform logs job/infra-7-plan".to_owned(),
    };
    let run = repo::RunView {
        seq: kernel::id::RunSeq(7),
        revision: revision.clone(),
        phase: "Waiting".to_owned(),
        open: true,
        message: "its plan waits for a person".to_owned(),
        job: None,
        plan: Some(plan),
        approved: None,
        started_ms: Some(NOW_MS - 700_000),
        ended_ms: None,
        skipped: Vec::new(),
        again: None,
    };
    let question = repo::QuestionView {
        kind: "Plan".to_owned(),
        words: "Is this plan approved?".to_owned(),
        ticket: "0123456789ab".to_owned(),
        since_ms: NOW_MS - 600_000,
    };
    let view = repo::View {
        id: kernel::id::RepoId::new("platform", "infra"),
        source: "https://git.example.com/infra".to_owned(),
        held: repo::Held::default(),
        head: Some(repo::HeadView { revision, name: "main".to_owned(), seen_ms: NOW_MS - 900_000, unchanged: None }),
        run: Some(run),
        queued: None,
        waits: Some("its plan waits for a person".to_owned()),
        next: "approve it: `allclear repo approve platform/infra`".to_owned(),
        question: Some(question),
        gates: Vec::new(),
        conditions: vec![condition],
        history: Vec::new(),
    };
    RunningSeen { repos: vec![view], troubles: Vec::new() }
}

fn ten_thousand_and_hostile() -> (Observation, Listing) {
    let names: Vec<String> = (0..50).map(|number| format!("service-with-a-long-name-{number:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hostile = "<img src=x onerror=alert(1)>\u{202e}gnp";
    let mut seen = Observation { workloads: 10_000, ..busy(hostile) };
    seen.troubles.push("</script><script>alert(2)</script>".to_owned());
    (seen, listing(&names, 10_000))
}

#[actix::test]
#[ignore = "serves until its standard input ends; make page runs it"]
async fn gallery() {
    let situations = [
        ("all-clear", "", all_clear()),
        ("in-flight", "", in_flight()),
        ("stuck", "", stuck()),
        ("clusters", "", clusters()),
        ("needs-a-look", "", needs_a_look()),
        ("held", "", held()),
        ("standing-by", "", standing_by()),
        ("hostile", "", ten_thousand_and_hostile()),
        ("ten-thousand", "workloads?q=service&page=3", ten_thousand_and_hostile()),
        ("workload", "workloads/shop/web", all_clear()),
        ("pipelines", "pipelines", pipelines()),
        ("repos", "repos", pipelines()),
        ("group", "group", needs_a_look()),
        ("history", "history", all_clear()),
    ];
    let mut all = Vec::new();
    for (name, path, (seen, listing)) in situations {
        let explained = Arc::new(World::new(web()).sources().await);
        let moves = !seen.rollouts.is_empty();
        let front = Front { explained: Some(explained), ..front(Situation(seen, listing).start()) };
        if !moves {
            tell(&front, "docs", &LOOKED);
            tell(&front, "search", &GIVEN_UP);
        }
        tell(&front, "web", if moves { &PURGED[..3] } else { &PURGED[..] });
        tell(&front, "api", &[(Kind::RolloutStarted, 69, "api: 4.1.9 → 4.2.0 is rolling out")]);
        let serving = start(front).await;
        println!("page {name} http://{}/{path}", serving.addresses().page);
        all.push(serving);
    }
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    ended.await.unwrap().unwrap();
    for serving in all {
        serving.stop().await;
    }
}
