//! The commands about Repos, through the real adapter and our stand-in of the API server. What the machine would write into a status,
//! and what the kubelet would serve as a log, is put there by hand.

use allclear::adapters::kubernetes::crd::repo::Installation;
use allclear::adapters::kubernetes::desk::Desk;
use allclear::adapters::kubernetes::objects::{GROUP, RepoKind};
use allclear::cli::answer::{Outcome, Output};
use allclear::cli::command_kind::named;
use allclear::cli::consent::Consent;
use allclear::cli::objects::{Asked, Asker, Change, Which, Yes, approve, change, explain, list, logs, question};
use kernel::id::RepoId;
use objects::repo::job::StepKind;
use objects::repo::spec::Source;
use sandbox::http::{Action, Fault, Reply, Request, Server, When};
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options as StandInOptions};
use serde_json::{Value, json};

use crate::served::{self, has};

const TICKET: &str = "0123456789ab";
const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

struct World {
    api: KubernetesStandIn,
    server: Server,
    desk: Desk<RepoKind>,
}

fn infra() -> RepoId {
    RepoId::new("platform", "infra")
}

fn repo(name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Repo",
        "metadata": {"namespace": "platform", "name": name},
        "spec": {"url": "https://git.example.com/platform/infra.git", "approval": "Plan"},
    })
}

/// What the machine writes while it asks about a plan.
fn asking(ticket: &str) -> Value {
    json!({"status": {
        "serial": 2, "observedGeneration": 1, "seq": 4,
        "head": {"revision": A, "ref": "refs/heads/main", "seenAt": "2026-11-22T22:10:00Z"},
        "run": {
            "seq": 4, "revision": A, "action": "plan", "attempt": 1, "phase": "Planned",
            "job": {"name": "infra-000000000001", "uid": "j"}, "startedAt": "2026-11-22T22:10:05Z", "skipped": [B],
            "plan": {"fingerprint": "f", "add": 1, "change": 0, "destroy": 2, "job": "infra-000000000001"},
            "message": "a person must say yes to what the plan would change",
        },
        "waitingApproval": {"ticket": ticket, "for": "Plan", "since": "2026-11-22T22:11:00Z"},
        "conditions": [{
            "type": "Ready", "status": "False", "reason": "WaitingForApproval", "message": "a person must say yes",
            "lastTransitionTime": "2026-11-22T22:11:00Z",
        }],
        "history": [{"seq": 3, "revision": B, "outcome": "Succeeded", "by": "jane", "at": "2026-11-21T22:11:00Z"}],
    }})
}

impl World {
    async fn start() -> Self {
        let api = KubernetesStandIn::new(StandInOptions::default());
        let server = api.start().await.unwrap();
        let clients = served::clients(&api, &server).await;
        let desk = Desk::of_repos(&clients, Installation::default());
        Self { api, server, desk }
    }

    /// With one Repo that asks about a plan whose pod is there.
    async fn asking() -> Self {
        let world = Self::start().await;
        world.api.set_installed(GROUP, true);
        world.api.apply(repo("infra")).unwrap();
        world.ask(TICKET);
        world.api.apply(pod("infra-000000000001-x", "infra-000000000001")).unwrap();
        world.api.apply(pod("other-y", "other")).unwrap();
        world
    }

    fn ask(&self, ticket: &str) {
        self.api.patch(Kind::Repo, "platform", "infra", &asking(ticket)).unwrap();
    }

    fn annotation(&self, name: &str) -> Option<String> {
        let object = self.api.get(Kind::Repo, "platform", "infra").unwrap();
        let value = object["metadata"]["annotations"].get(format!("allclear.dev/{name}"))?;
        value.as_str().map(str::to_owned)
    }

    /// What the kubelet has of the `plan` container of the pod of our Job, and of no other.
    fn serve_log(&self, text: &'static str) {
        let own = |request: &Request| {
            request.path == "/api/v1/namespaces/platform/pods/infra-000000000001-x/log"
                && request.query.get("container").is_some_and(|container| container == "plan")
        };
        let answer = Action::Answer(Reply::full(200, "text/plain", text));
        self.server.inject(Fault::once(When::Before, answer).matching(own).times(u32::MAX));
    }

    async fn approve(&self, ticket: Option<&str>) -> Outcome {
        approve(&self.desk, &infra(), yes(ticket, false), Consent::Given).await
    }
}

fn pod(name: &str, job: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "platform", "name": name, "labels": {"job-name": job}},
        "spec": {"containers": [{"name": "report", "image": "a"}]},
    })
}

fn yes(ticket: Option<&str>, overrides: bool) -> Yes<'_, RepoKind> {
    Yes { asker: &Asker::Open, ticket, overrides }
}

#[tokio::test]
async fn every_repo_is_listed_with_what_it_waits_for() {
    let world = World::asking().await;
    world.api.apply(repo("new")).unwrap();
    let mut broken = repo("broken");
    broken["status"] = json!({"serial": "many"});
    world.api.put(broken).unwrap();
    let listed = list(&world.desk, None, Output::Table).await;
    let waits = "Waits a person must say yes to what the plan would change; it is applied after a yes";
    has(&listed, 1, &["platform/infra aaaaaaaaaaaa │ run 4 of aaaaaaaaaaaa: Planned plan", waits]);
    has(
        &listed,
        1,
        &["platform/new ?", "allclear has not judged it yet", "platform/broken cannot be read: its status"],
    );
    has(&list(&world.desk, Some("elsewhere"), Output::Table).await, 0, &["no Repos"]);
    let json: Value = serde_json::from_str(&list(&world.desk, None, Output::Json).await.out).unwrap();
    assert_eq!(json["repos"][0]["question"]["ticket"], TICKET);
}

#[tokio::test]
async fn an_explanation_has_all_that_a_person_asks() {
    let world = World::asking().await;
    let told = explain(Asked::Desk(&world.desk), &infra(), Output::Table).await;
    for part in [
        "HEAD of https://git.example.com/platform/infra.git",
        "refs/heads/main, since 2026-11-22 22:10:00Z",
        "`allclear repo approve platform/infra`",
        "Plan, since 2026-11-22 22:11:00Z",
        TICKET,
        "its plan: 1 to add, 0 to change, 2 to destroy",
        "skipped: bbbbbbbbbbbb",
        "Logs kubectl logs -n platform job/infra-000000000001 -c plan",
        "not Ready, WaitingForApproval since",
        "3 of bbbbbbbbbbbb, Succeeded, approved by jane",
    ] {
        has(&told, 0, &[part]);
    }
    let missing = explain(Asked::Desk(&world.desk), &RepoId::new("platform", "infar"), Output::Table).await;
    has(&missing, 1, &["there is no Repo platform/infar; `allclear repo list` shows those there are"]);
    let named = named::<RepoKind>;
    assert!(named("infra").is_err() && named("a/b/c").is_err());
    assert_eq!((named("repo/platform/infra"), named("platform/infra")), (Ok(infra()), Ok(infra())));
}

#[tokio::test]
async fn a_yes_follows_the_plan_that_was_shown_and_names_its_ticket() {
    let world = World::asking().await;
    world.serve_log("Plan: 1 to add\nsecond line");
    let plan = question(&world.desk, &infra(), yes(None, false)).await.map_err(drop).expect("a question").plan();
    assert!(plan.starts_with("Plan: 1 to add\nsecond line\nplatform/infra: aaaa"), "{plan}");
    for part in [TICKET, "answered as stand-in", "1 to add, 0 to change, 2 to destroy", "if that plan is the same"] {
        assert!(plan.contains(part), "{part:?} is not in {plan}");
    }
    has(
        &approve(&world.desk, &infra(), yes(None, false), Consent::NoTerminal).await,
        1,
        &["nothing was changed: there is no terminal"],
    );
    has(&world.approve(Some("ba9876543210")).await, 1, &["nothing was changed: the open question has another ticket"]);
    assert_eq!(world.annotation("approve"), None);
    has(&world.approve(Some(TICKET)).await, 0, &["stand-in said yes to platform/infra, ticket 0123456789ab"]);
    let said = ["approve", "approved-by", "override"].map(|name| world.annotation(name));
    assert_eq!(said, [Some(TICKET.to_owned()), Some("stand-in".to_owned()), None]);
    has(&world.approve(None).await, 0, &["answered already"]);
}

#[tokio::test]
async fn a_yes_that_overrides_says_what_it_opens_and_names_the_ticket_twice() {
    let world = World::asking().await;
    let gated = json!({"spec": {"gates": {
        "windows": [{"from": "09:00", "to": "10:00"}],
        "needs": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "db"}],
    }}});
    world.api.patch(Kind::Repo, "platform", "infra", &gated).unwrap();
    let shown = async |overrides| {
        let asked = question(&world.desk, &infra(), yes(None, overrides)).await;
        asked.map_err(drop).expect("a question").plan()
    };
    let (plain, opened) = (shown(false).await, shown(true).await);
    assert!(plain.contains("What else must hold stays:") && plain.contains("needs Deployment platform/db"), "{plain}");
    assert!(
        opened.contains("--override: windows, freezes and the verdict are opened") && !plain.contains("--override")
    );
    has(&world.approve(None).await, 0, &["said yes"]);
    has(&approve(&world.desk, &infra(), yes(None, true), Consent::Given).await, 0, &["said yes"]);
    assert_eq!(world.annotation("override").as_deref(), Some(TICKET), "a yes without it is not the same");
    has(&approve(&world.desk, &infra(), yes(None, true), Consent::Given).await, 0, &["answered already"]);
}

#[tokio::test]
async fn a_running_allclear_is_asked_what_it_sees_of_a_repo() {
    let world = World::asking().await;
    let url: url::Url = world.server.url().parse().unwrap();
    let state = async |body: Value| {
        world.server.clear_faults();
        let answer = Action::Answer(Reply::full(200, "application/json", body.to_string()));
        let is_state = |request: &Request| request.path == "/api/v1/state";
        world.server.inject(Fault::once(When::Before, answer).matching(is_state).times(u32::MAX));
        explain(Asked::<RepoKind>::Server(&url), &infra(), Output::Table).await
    };
    let listed: Value = serde_json::from_str(&list(&world.desk, None, Output::Json).await.out).unwrap();
    let mut view = listed["repos"][0].clone();
    view["waits"] = json!("Job infra-7 of an earlier run has not ended");
    let seen = state(json!({"running": {"repos": [view], "troubles": []}})).await;
    has(&seen, 0, &["platform/infra", "Waits Job infra-7 of an earlier run has not ended"]);
    has(
        &state(json!({"running": {"repos": [], "troubles": []}})).await,
        1,
        &["this allclear knows no Repo platform/infra"],
    );
    has(&state(json!({})).await, 1, &["this allclear looks at no Repos: it stands by, repo.enabled is off"]);
    has(&state(json!({"running": {"repos": 3}})).await, 1, &["of another form than this version knows"]);
}

#[tokio::test]
async fn a_question_that_moved_on_is_not_answered_and_the_new_one_is_shown() {
    let world = World::asking().await;
    let shown = question(&world.desk, &infra(), yes(None, false)).await.map_err(drop).expect("a question");
    world.ask("ba9876543210");
    has(&shown.answer(&world.desk).await, 1, &["moved on while you were asked", "Its ticket is ba9876543210 now"]);
    assert_eq!(world.annotation("approve"), None);
    // The same question on an object that changed otherwise is answered.
    let shown = question(&world.desk, &infra(), yes(None, false)).await.map_err(drop).expect("a question");
    world.api.patch(Kind::Repo, "platform", "infra", &json!({"metadata": {"labels": {"touched": "yes"}}})).unwrap();
    has(&shown.answer(&world.desk).await, 0, &["said yes"]);
    assert_eq!(world.annotation("approve").as_deref(), Some("ba9876543210"));
    world.api.patch(Kind::Repo, "platform", "infra", &json!({"status": {"waitingApproval": null}})).unwrap();
    has(&world.approve(None).await, 1, &["nothing was changed: platform/infra asks nothing; it waits for"]);
}

#[tokio::test]
async fn what_is_applied_is_run_once_more_by_a_yes_that_names_the_run_and_is_not_asked_for() {
    let world = World::asking().await;
    let again = || Yes { asker: &Asker::Again, ticket: None, overrides: false };
    let run = async || approve(&world.desk, &infra(), again(), Consent::Given).await;
    has(&run().await, 1, &["nothing was changed: platform/infra has not applied its commit; `allclear repo approve"]);
    let ended = |seq: u64| {
        json!({"status": {"waitingApproval": null, "seq": seq, "run": {
            "seq": seq, "phase": "Succeeded", "message": "applied", "endedAt": "2026-11-22T22:12:00Z",
        }}})
    };
    world.api.patch(Kind::Repo, "platform", "infra", &ended(4)).unwrap();
    let shown = question(&world.desk, &infra(), again()).await.map_err(drop).expect("it may be said");
    let plan = shown.plan();
    assert!(plan.contains("what was applied is run once more") && !plan.contains("asked since"), "{plan}");
    has(&run().await, 0, &["stand-in said yes to another run of platform/infra"]);
    let ticket = world.annotation("approve");
    has(&run().await, 0, &["answered already"]);
    world.api.patch(Kind::Repo, "platform", "infra", &ended(5)).unwrap();
    has(&run().await, 0, &["said yes to another run"]);
    assert_ne!(world.annotation("approve"), ticket, "another run, another ticket");
}

#[tokio::test]
async fn a_commit_that_changes_nothing_here_is_said_to_be_and_can_be_run_all_the_same() {
    let world = World::asking().await;
    let spec = json!({"spec": {"path": "infra", "watchPaths": ["modules"]}});
    world.api.patch(Kind::Repo, "platform", "infra", &spec).unwrap();
    let source = Source { path: "infra".to_owned(), watched: Some(vec!["modules".to_owned()]), ..Source::default() };
    let status = json!({"status": {
        "observedGeneration": 2, "waitingApproval": null, "head": {"revision": B},
        "run": {"phase": "Succeeded", "message": "applied", "endedAt": "2026-11-22T22:12:00Z"},
        "unchanged": {"revision": B, "since": A, "seq": 4, "paths": source.paths_hash(), "at": "2026-11-22T22:13:00Z"},
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Unchanged", "message": "as it says",
            "lastTransitionTime": "2026-11-22T22:13:00Z",
        }],
    }});
    world.api.patch(Kind::Repo, "platform", "infra", &status).unwrap();
    let words = "bbbbbbbbbbbb changes nothing under infra, modules since aaaaaaaaaaaa, which was applied";
    let explained = async || explain(Asked::Desk(&world.desk), &infra(), Output::Table).await;
    has(&explained().await, 0, &[words, "4 of aaaaaaaaaaaa"]);
    has(
        &list(&world.desk, None, Output::Table).await,
        0,
        &["bbbbbbbbbbbb, unchanged here", "run 4 of aaaaaaaaaaaa: Succeeded"],
    );
    let again = Yes { asker: &Asker::Again, ticket: None, overrides: false };
    let shown = question(&world.desk, &infra(), again).await.map_err(drop).expect("it may be said");
    assert!(shown.plan().contains(words) && shown.plan().contains(B), "{}", shown.plan());
    let other = json!({"spec": {"watchPaths": ["more"]}});
    world.api.patch(Kind::Repo, "platform", "infra", &other).unwrap();
    let shown = explained().await;
    assert!(!shown.out.contains("bbbbbbbbbbbb changes nothing"), "{}", shown.out);
}

#[tokio::test]
async fn a_log_is_that_of_the_step_and_the_job_or_says_how_else_to_get_it() {
    let world = World::asking().await;
    world.serve_log("the plan");
    assert_eq!(logs(&world.desk, &infra(), None).await.out, "the plan\n");
    assert_eq!(logs(&world.desk, &infra(), Some(StepKind::Plan)).await.out, "the plan\n");
    let other = logs(&world.desk, &infra(), Some(StepKind::Source)).await;
    has(&other, 1, &["`kubectl logs -n platform job/infra-000000000001 -c source` reads the same"]);
    world.api.delete(Kind::Pod, "platform", "infra-000000000001-x").unwrap();
    has(&logs(&world.desk, &infra(), None).await, 1, &["no pod of Job infra-000000000001 is there any more"]);
    let shown = question(&world.desk, &infra(), yes(None, false)).await.map_err(drop).expect("a question").plan();
    assert!(shown.starts_with("the plan cannot be shown: no pod of Job"), "{shown}");
    world.api.apply(repo("new")).unwrap();
    has(&logs(&world.desk, &RepoId::new("platform", "new"), None).await, 1, &["has not run a Job yet"]);
}

#[tokio::test]
async fn a_repo_or_all_of_them_are_looked_at_stopped_and_let_go_on() {
    let world = World::asking().await;
    world.api.apply(repo("other")).unwrap();
    has(&change(&world.desk, Which::One(infra()), Change::Poke(5)).await, 0, &["platform/infra: asked to look now"]);
    assert_eq!(world.annotation("requested-at").as_deref(), Some("1970-01-01T00:00:00.005Z"));
    let stopped = change(&world.desk, Which::All(None), Change::Suspend(None)).await;
    has(&stopped, 0, &["stopped, so no new run starts: stopped by stand-in", "2 Repos stopped"]);
    assert_eq!(world.annotation("suspend").as_deref(), Some("stopped by stand-in"));
    has(&explain(Asked::Desk(&world.desk), &infra(), Output::Table).await, 0, &["Stopped stopped by stand-in"]);
    let resumed = change(&world.desk, Which::All(Some("platform".to_owned())), Change::Resume).await;
    has(&resumed, 0, &["platform/infra: going on", "2 Repos going on"]);
    assert_eq!(world.annotation("suspend"), None);
}

#[tokio::test]
async fn a_cluster_without_the_kind_says_how_to_add_it() {
    let world = World::start().await;
    let add = "this cluster does not have the kind Repo; `allclear crds | kubectl apply -f -` adds it";
    has(&list(&world.desk, None, Output::Table).await, 1, &[add]);
    has(&world.approve(None).await, 1, &[add]);
    has(&change(&world.desk, Which::All(None), Change::Resume).await, 1, &[add]);
}

#[tokio::test]
async fn a_lock_in_the_way_is_shown_with_its_holder_and_its_age_and_taken_away_by_a_yes_to_it() {
    let world = World::asking().await;
    let asker = Asker::Unlock(1_795_669_201_000);
    let ask = || Yes { asker: &asker, ticket: None, overrides: false };
    let unlock = async || approve(&world.desk, &infra(), ask(), Consent::Given).await;
    has(&unlock().await, 1, &["nothing was changed: platform/infra asks about no lock"]);
    let locked = |id: &str, ticket: &str| {
        json!({"status": {"waitingApproval": null, "run": {"phase": "Waiting", "message": "step plan met it"}, "lock": {
            "seq": 4, "id": id, "who": "ann@laptop-2", "since": "2026-11-26T02:00:01Z", "holder": "Other", "met": 1,
            "ticket": ticket, "askedAt": "2026-11-26T04:00:00Z",
        }}})
    };
    world.api.patch(Kind::Repo, "platform", "infra", &locked("a-1", "ba9876543210")).unwrap();
    has(&world.approve(None).await, 1, &["asks about a lock, and `allclear repo unlock platform/infra` answers that"]);
    let explained = explain(Asked::Desk(&world.desk), &infra(), Output::Table).await;
    has(&explained, 0, &["Unlock, since 2026-11-26 04:00:00Z: may a lock be taken away? ann@laptop-2 holds lock a-1"]);
    let shown = question(&world.desk, &infra(), ask()).await.map_err(drop).expect("a question");
    let plan = shown.plan();
    for part in ["ann@laptop-2 holds lock a-1 of the state", "held for 3h", "takes lock a-1 away, and no other"] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    world.api.patch(Kind::Repo, "platform", "infra", &locked("b-2", "bb9876543210")).unwrap();
    has(&shown.answer(&world.desk).await, 1, &["moved on while you were asked", "Its ticket is bb9876543210 now"]);
    assert_eq!(world.annotation("approve"), None);
    has(&unlock().await, 0, &["said yes to taking lock b-2 away for platform/infra"]);
    assert_eq!(world.annotation("approve").as_deref(), Some("bb9876543210"));
    has(&unlock().await, 0, &["answered already"]);
}
