//! The commands about Pipelines, through the real adapter and our stand-in of the API server. What the machine would write into a
//! status is put there by hand.

use allclear::adapters::kubernetes::desk::{Desk, Marked, SUSPEND};
use allclear::adapters::kubernetes::histories::KubernetesHistories;
use allclear::adapters::kubernetes::objects::{GROUP, PipelineKind};
use allclear::cli::answer::{Outcome, Output};
use allclear::cli::command_kind::named;
use allclear::cli::consent::Consent;
use allclear::cli::objects::{About, Asked, Change, Which, Yes, approve, change, explain, history, list, question};
use kernel::id::{Environment, PipelineId, Revision};
use sandbox::http::{Action, Fault, Reply, Request, Server, When};
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options as StandInOptions};
use serde_json::{Value, json};

use crate::served::{self, has};

const THEIRS: &str = "pipelines.weave.works";
const TICKET: &str = "0123456789ab";

struct World {
    api: KubernetesStandIn,
    server: Server,
    desk: Desk,
    histories: KubernetesHistories,
}

fn web() -> PipelineId {
    PipelineId::new("shop", "web")
}

fn pipeline(group: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{group}/v1alpha1"), "kind": "Pipeline",
        "metadata": {"namespace": "shop", "name": name},
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "environments": [
                {"name": "staging", "targets": [{"namespace": "staging"}]},
                {"name": "prod", "gates": {"soak": "30m"}, "targets": [{"namespace": "prod"}]},
            ],
            "promotion": {"manual": true, "strategy": {"notification": {}}},
        },
    })
}

/// What the machine writes while it asks about 1.3 in prod.
fn asking(ticket: &str, revision: &str) -> Value {
    let target = |revision: &str| json!([{"uid": "u", "ready": true, "revision": revision}]);
    json!({"status": {
        "serial": 2, "observedGeneration": 1, "latestRevision": revision,
        "environments": {
            "staging": {"targets": target(revision)},
            "prod": {
                "targets": target("1.2"), "seq": 1,
                "trail": {"of": "1", "revisions": [revision], "since": "2026-11-22T22:10:00Z"},
                "waitingApproval": {"revision": revision, "ticket": ticket, "for": "Approval", "since": "2026-11-22T22:10:00Z"},
                "promotion": {
                    "seq": 1, "revision": revision, "from": "1.2", "phase": "Waiting",
                    "message": "it has not been good for long enough; it waits for a yes",
                },
            },
        },
    }})
}

impl World {
    async fn start() -> Self {
        let api = KubernetesStandIn::new(StandInOptions::default());
        let server = api.start().await.unwrap();
        let clients = served::clients(&api, &server).await;
        let desk = Desk::new(&clients, &[GROUP.to_owned(), THEIRS.to_owned()], false);
        Self { api, server, desk, histories: KubernetesHistories::new(&clients) }
    }

    /// With one Pipeline that asks.
    async fn asking() -> Self {
        let world = Self::start().await;
        world.api.set_installed(GROUP, true);
        world.api.apply(pipeline(GROUP, "web")).unwrap();
        world.ask(TICKET, "1.3");
        world
    }

    fn ask(&self, ticket: &str, revision: &str) {
        self.api.patch(Kind::Pipeline, "shop", "web", &asking(ticket, revision)).unwrap();
    }

    fn annotation(&self, name: &str) -> Option<String> {
        let object = self.api.get(Kind::Pipeline, "shop", "web").unwrap();
        let value = object["metadata"]["annotations"].get(format!("allclear.dev/{name}"))?;
        value.as_str().map(str::to_owned)
    }

    async fn approve(&self, environment: &str, overrides: bool) -> Outcome {
        approve(&self.desk, &web(), yes(&open(environment), overrides), Consent::Given).await
    }

    async fn promote(&self, environment: &str, revision: &str, overrides: bool) -> Outcome {
        approve(&self.desk, &web(), yes(&chosen(environment, revision), overrides), Consent::Given).await
    }

    fn forbid(&self, matches: fn(&Request) -> bool) {
        served::forbid(&self.server, "pipelines is forbidden: User \"anna\" cannot do that", matches);
    }
}

fn yes(asker: &About, overrides: bool) -> Yes<'_, PipelineKind> {
    Yes { asker, ticket: None, overrides }
}

fn open(environment: &str) -> About {
    About::Open(Environment(environment.to_owned()))
}

fn chosen(environment: &str, revision: &str) -> About {
    About::Chosen(Environment(environment.to_owned()), Revision(revision.to_owned()))
}

#[tokio::test]
async fn every_pipeline_is_listed_with_what_it_waits_for() {
    let world = World::asking().await;
    world.api.apply(pipeline(GROUP, "new")).unwrap();
    let mut broken = pipeline(GROUP, "broken");
    broken["status"] = json!({"serial": "many"});
    world.api.put(broken).unwrap();
    let listed = list(&world.desk, None, Output::Table).await;
    let waits = "prod it has not been good for long enough; it waits for a yes; it starts after a yes";
    has(
        &listed,
        1,
        &["shop/web staging 1.3 │ prod 1.2 → 1.3 (Waiting)", waits, "allclear pipeline approve shop/web prod"],
    );
    has(
        &listed,
        1,
        &["shop/new staging ?", "allclear has not judged it yet", "shop/broken cannot be read: its status"],
    );
    has(&list(&world.desk, Some("elsewhere"), Output::Table).await, 0, &["no Pipelines"]);
    let json: Value = serde_json::from_str(&list(&world.desk, None, Output::Json).await.out).unwrap();
    assert_eq!(json["pipelines"][1]["environments"][1]["question"]["ticket"], TICKET);
}

#[tokio::test]
async fn an_explanation_names_each_target_gate_and_question() {
    let world = World::asking().await;
    let told = explain(Asked::Desk(&world.desk), &web(), Output::Table).await;
    has(&told, 0, &["shop/web latest 1.3", "staging/web 1.3: ready", "prod/web 1.2: ready", "by notification"]);
    has(
        &told,
        0,
        &["soak 30m", "its soak ends 2026-11-22 22:40:00Z", "Approval of 1.3, since 2026-11-22 22:10:00Z", TICKET],
    );
    has(&told, 0, &["--server URL asks a running one"]);
    let missing = explain(Asked::Desk(&world.desk), &PipelineId::new("shop", "wbe"), Output::Table).await;
    has(&missing, 1, &["there is no Pipeline shop/wbe; `allclear pipeline list`"]);
}

#[tokio::test]
async fn a_history_is_shown_with_what_the_status_has_and_says_what_it_lacks() {
    let world = World::asking().await;
    let ended = |seq: u64, hour: u64| {
        json!({"environment": "prod", "seq": seq, "revision": format!("1.{seq}"), "outcome": "Completed",
            "at": format!("2026-11-22T{hour}:00:00Z")})
    };
    let status = json!({"status": {"history": [ended(2, 12), ended(3, 13)]}});
    world.api.patch(Kind::Pipeline, "shop", "web", &status).unwrap();
    let shown = async |limit| history(&world.desk, &world.histories, &web(), limit, Output::Table).await;
    let ten = "2026-11-22 13:00:00Z: prod 3, 1.3: Completed 2026-11-22 12:00:00Z: prod 2, 1.2: Completed";
    has(&shown(None).await, 0, &[ten, "only what the status of the Pipeline has: no history has been written yet"]);
    let uid = world.api.get(Kind::Pipeline, "shop", "web").unwrap()["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "name": "web", "uid": uid});
    let of = |owner: &Value| {
        json!({"apiVersion": "allclear.dev/v1alpha1", "kind": "History",
            "metadata": {"namespace": "shop", "name": "pipeline.web", "ownerReferences": [owner]},
            "entries": [ended(1, 11), ended(2, 12)]})
    };
    world.api.apply(of(&owner)).unwrap();
    let all = shown(None).await;
    has(&all, 0, &[&format!("{ten} 2026-11-22 11:00:00Z: prod 1, 1.1: Completed")]);
    assert!(!all.out.contains("only what"), "{}", all.out);
    has(&shown(Some(1)).await, 0, &["prod 3, 1.3: Completed 2 earlier"]);
    let json = history(&world.desk, &world.histories, &web(), Some(2), Output::Json).await;
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&json["entries"][1]["seq"], &json["earlier"]), (&json!(2), &json!(1)));
    // That of an earlier Pipeline of the name says nothing of this one.
    world.api.delete(Kind::History, "shop", "pipeline.web").unwrap();
    world
        .api
        .apply(of(&json!({"apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "name": "web", "uid": "gone"})))
        .unwrap();
    assert!(!shown(None).await.out.contains("1.1: "));
    served::forbid(&world.server, "histories is forbidden", |request| request.path.contains("/histories"));
    has(&shown(None).await, 1, &[ten, "only what the status of the Pipeline has: failed to get"]);
}

#[tokio::test]
async fn a_yes_names_the_ticket_that_was_shown_and_who_says_it() {
    let world = World::asking().await;
    let plan = question(&world.desk, &web(), yes(&open("prod"), false)).await.map_err(drop).expect("a question").plan();
    for part in ["shop/web: 1.2 → 1.3 into prod", TICKET, "answered as stand-in", "Its other gates stay: soak 30m."] {
        assert!(plan.contains(part), "{part:?} is not in {plan}");
    }
    let unasked = approve(&world.desk, &web(), yes(&open("prod"), false), Consent::NoTerminal).await;
    has(&unasked, 1, &["nothing was changed: there is no terminal"]);
    assert_eq!(world.annotation("approve"), None);
    has(&world.approve("prod", false).await, 0, &["stand-in said yes to 1.3 in prod of shop/web"]);
    let said = ["approve", "approved-by", "override"].map(|name| world.annotation(name));
    assert_eq!(said, [Some(TICKET.to_owned()), Some("stand-in".to_owned()), None]);
    has(&world.approve("prod", false).await, 0, &["answered already"]);
    has(&world.approve("prod", true).await, 0, &["said yes"]);
    assert_eq!(world.annotation("override").as_deref(), Some(TICKET));
}

#[tokio::test]
async fn a_question_that_moved_on_is_not_answered_and_the_new_one_is_shown() {
    let world = World::asking().await;
    let prod = open("prod");
    let shown = question(&world.desk, &web(), yes(&prod, false)).await.map_err(drop).expect("a question");
    world.ask("ba9876543210", "1.4");
    has(&shown.answer(&world.desk).await, 1, &["moved on while you were asked", "about 1.4 now, ticket ba9876543210"]);
    assert_eq!(world.annotation("approve"), None);
    // The same question on an object that changed otherwise is answered.
    let shown = question(&world.desk, &web(), yes(&prod, false)).await.map_err(drop).expect("a question");
    let touch = json!({"metadata": {"labels": {"touched": "yes"}}});
    world.api.patch(Kind::Pipeline, "shop", "web", &touch).unwrap();
    has(&shown.answer(&world.desk).await, 0, &["said yes to 1.4"]);
    assert_eq!(world.annotation("approve").as_deref(), Some("ba9876543210"));
}

#[tokio::test]
async fn what_cannot_be_answered_says_why() {
    let world = World::asking().await;
    has(&world.approve("live", false).await, 1, &["shop/web has no environment \"live\"; it has staging, prod"]);
    has(&world.approve("staging", false).await, 1, &["no question is open about staging", "it waits for nothing"]);
    world.forbid(|request| request.path.ends_with("selfsubjectreviews"));
    has(&world.approve("prod", false).await, 1, &["nothing was changed: a yes names who says it"]);
    world.server.clear_faults();
    world.forbid(|request| request.method == "PATCH");
    has(&world.approve("prod", false).await, 1, &["failed to patch pipelines.allclear.dev web", "allow", "to patch"]);
    assert_eq!(world.annotation("approve"), None);
    assert!(named::<PipelineKind>("web").is_err() && named::<PipelineKind>("a/b/c").is_err());
    assert_eq!(named::<PipelineKind>("pipeline/shop/web"), Ok(web()));
}

#[tokio::test]
async fn a_chosen_revision_is_written_with_a_yes_to_its_own_ticket_by_who_may_say_it() {
    let world = World::asking().await;
    let choice = chosen("prod", "1.1.9");
    let shown = question(&world.desk, &web(), yes(&choice, false)).await.map_err(drop).expect("it may be chosen");
    let plan = shown.plan();
    for part in [
        "shop/web: 1.2 → 1.1.9 into prod",
        "a person chooses it: staging was not seen at it",
        "answered as stand-in",
        "promotion 1 of 1.3, which is Waiting, ends",
        "it is promoted by notification, whatever the environments before prod are at",
        "promoted into prod only after a yes; what is newer goes on as usual",
    ] {
        assert!(plan.contains(part), "{part:?} is not in {plan}");
    }
    assert!(!plan.contains("soak"), "what is not in staging does not soak there: {plan}");
    let skipped = question(&world.desk, &web(), yes(&choice, true)).await.map_err(drop).expect("it may be chosen");
    assert!(skipped.plan().contains("--override: soak, windows, freezes of the spec and the verdict are opened"));
    let unasked = approve(&world.desk, &web(), yes(&choice, false), Consent::NoTerminal).await;
    has(&unasked, 1, &["nothing was changed: there is no terminal"]);
    assert_eq!(world.annotation("promote"), None);
    has(&world.promote("prod", "1.1.9", false).await, 0, &["stand-in said yes to 1.1.9 in prod of shop/web"]);
    let said = ["promote", "approved-by", "override"].map(|name| world.annotation(name));
    assert_eq!(said, [Some("prod/1.1.9".to_owned()), Some("stand-in".to_owned()), None]);
    let ticket = world.annotation("approve").expect("a yes");
    assert_ne!(ticket, TICKET, "a yes to the open question is none to this");
    has(&world.promote("prod", "1.1.9", false).await, 0, &["answered already"]);
    // Until it is taken in, no other answer wipes it out.
    has(&world.approve("prod", false).await, 1, &["has not taken in yet that 1.1.9 was chosen for prod of shop/web"]);
    has(&world.promote("prod", "1.1.9", true).await, 0, &["said yes"]);
    assert_eq!(world.annotation("override"), Some(ticket.clone()));
    let taken = json!({"status": {"environments": {"prod": {
        "seq": 2, "waitingApproval": null, "chosen": {"seq": 2, "revision": "1.1.9", "by": "ann", "over": ["1.2", "1.3"]},
        "promotion": {
            "seq": 2, "revision": "1.1.9", "from": "1.2", "phase": "Waiting", "message": "closed for the sale",
            "chosen": "staging was not seen at it",
            "approval": {"by": "ann", "ticket": ticket, "at": "2026-11-22T22:10:00Z"},
        },
    }}, "history": [{
        "environment": "prod", "seq": 1, "revision": "1.3", "outcome": "Superseded", "at": "2026-11-22T22:10:00Z",
        "by": "bob", "chosen": "goes back from 1.4",
    }]}});
    world.api.patch(Kind::Pipeline, "shop", "web", &taken).unwrap();
    let words = "1.1.9 is on its way to prod of shop/web already, chosen by ann: staging was not seen at it";
    has(&world.promote("prod", "1.1.9", false).await, 1, &["nothing was changed: ", words]);
    has(
        &list(&world.desk, None, Output::Table).await,
        0,
        &["prod 1.2 → 1.1.9 (Waiting, chosen by ann: staging was not"],
    );
    let told = explain(Asked::Desk(&world.desk), &web(), Output::Table).await;
    has(&told, 0, &["chosen by ann: staging was not seen at it", "1.3: Superseded, chosen by bob: goes back from 1.4"]);
    has(&world.promote("prod", "1.1.8", false).await, 0, &["stand-in said yes to 1.1.8"]);
    assert_ne!(world.annotation("approve"), Some(ticket), "another choice, another ticket");
}

#[tokio::test]
async fn what_cannot_be_chosen_writes_nothing_and_says_why() {
    let world = World::asking().await;
    has(&world.promote("live", "1", false).await, 1, &["shop/web has no environment \"live\"; it has staging, prod"]);
    has(&world.promote("staging", "1", false).await, 1, &["staging is the first environment of shop/web", "deploy"]);
    has(&world.promote("prod", "1:2", false).await, 1, &["\"1:2\" cannot be a revision of prod/web: no image has"]);
    let (other, choice) = (PipelineId::new("shop", "wbe"), chosen("prod", "1"));
    let missing = approve(&world.desk, &other, yes(&choice, false), Consent::Given);
    has(&missing.await, 1, &["there is no Pipeline shop/wbe; `allclear pipeline list`"]);
    has(&change(&world.desk, Which::One(web()), Change::Suspend(Some("audit".to_owned()))).await, 0, &[]);
    has(&world.promote("prod", "1", false).await, 1, &["stopped: audit", "`allclear pipeline resume shop/web`"]);
    has(&change(&world.desk, Which::One(web()), Change::Resume).await, 0, &[]);
    world.forbid(|request| request.method == "PATCH");
    has(&world.promote("prod", "1", false).await, 1, &["failed to patch pipelines.allclear.dev web", "allow"]);
    assert_eq!(["promote", "approve"].map(|name| world.annotation(name)), [None, None]);
}

#[tokio::test]
async fn a_cluster_without_the_kind_says_how_to_add_it() {
    let world = World::start().await;
    let add = "allclear crds | kubectl apply -f -";
    has(&list(&world.desk, None, Output::Table).await, 1, &[add]);
    has(&world.approve("prod", false).await, 1, &[add]);
    has(&change(&world.desk, Which::All(None), Change::Resume).await, 1, &[add]);
    // Without the right to list them, too: the API server judges that first.
    world.forbid(|request| request.path.ends_with("/pipelines"));
    has(&list(&world.desk, None, Output::Table).await, 1, &[add]);
    world.api.set_installed(GROUP, true);
    has(&list(&world.desk, None, Output::Table).await, 1, &["forbidden", "to list pipelines"]);
}

#[tokio::test]
async fn the_line_is_stopped_and_goes_on_for_one_and_for_all() {
    let world = World::asking().await;
    world.api.set_installed(THEIRS, true);
    world.api.apply(pipeline(THEIRS, "theirs")).unwrap();
    world.api.apply(pipeline(THEIRS, "web")).unwrap();
    let audit = Change::Suspend(Some("audit".to_owned()));
    has(
        &change(&world.desk, Which::One(web()), audit).await,
        0,
        &["shop/web: stopped, so no new promotion starts: audit"],
    );
    assert_eq!(world.annotation("suspend").as_deref(), Some("audit"));
    has(&explain(Asked::Desk(&world.desk), &web(), Output::Table).await, 0, &["Stopped audit"]);
    has(
        &change(&world.desk, Which::All(None), Change::Suspend(None)).await,
        0,
        &["stopped by stand-in", "2 Pipelines stopped"],
    );
    let theirs = world.api.get(Kind::WeavePipeline, "shop", "theirs").unwrap();
    assert_eq!(theirs["metadata"]["annotations"]["allclear.dev/suspend"], "stopped by stand-in");
    // Of two objects of one name the one of the earlier group counts.
    let shadowed = world.api.get(Kind::WeavePipeline, "shop", "web").unwrap();
    assert_eq!(shadowed["metadata"].get("annotations"), None);
    has(&change(&world.desk, Which::One(web()), Change::Resume).await, 0, &["shop/web: going on"]);
    assert_eq!(world.annotation("suspend"), None);
    world.api.patch(Kind::Pipeline, "shop", "web", &json!({"spec": {"suspend": true}})).unwrap();
    has(&change(&world.desk, Which::One(web()), Change::Resume).await, 0, &["still stopped: spec.suspend is true"]);
}

#[tokio::test]
async fn a_poke_is_a_mark_that_is_never_the_same_twice() {
    let world = World::asking().await;
    has(&change(&world.desk, Which::One(web()), Change::Poke(1_700_000_000_123)).await, 0, &["asked to look now"]);
    assert_eq!(world.annotation("requested-at").as_deref(), Some("2023-11-14T22:13:20.123Z"));
    has(&change(&world.desk, Which::All(Some("shop".to_owned())), Change::Poke(1_700_000_000_124)).await, 0, &[]);
    assert_eq!(world.annotation("requested-at").as_deref(), Some("2023-11-14T22:13:20.124Z"));
}

// Faults: PF12
/// A real server calls a patch with the UID of another object invalid, and no conflict (checked against one).
#[tokio::test]
async fn a_mark_is_never_put_on_another_object_of_the_name() {
    let world = World::asking().await;
    let Ok(Some(found)) = world.desk.one(&web()).await else { panic!("it is there") };
    world.api.delete(Kind::Pipeline, "shop", "web").unwrap();
    let mark = async |found| world.desk.mark(found, &[(SUSPEND, Some("audit"))], false).await;
    assert!(matches!(mark(&found).await, Ok(Marked::Gone)));
    world.api.apply(pipeline(GROUP, "web")).unwrap();
    assert!(matches!(mark(&found).await, Ok(Marked::Changed)));
    assert_eq!(world.annotation("suspend"), None);
    // What is invalid otherwise is an error, and is told.
    let Ok(Some(found)) = world.desk.one(&web()).await else { panic!("it is there") };
    let body = r#"{"kind":"Status","code":422,"message":"spec.suspend: must be a boolean"}"#;
    let answer = Action::Answer(Reply::full(422, "application/json", body));
    world.server.inject(Fault::once(When::Before, answer).matching(|request| request.method == "PATCH"));
    assert!(mark(&found).await.unwrap_err().to_string().contains("must be a boolean"));
}

#[tokio::test]
async fn a_running_allclear_is_asked_what_it_sees_now() {
    let world = World::asking().await;
    let url: url::Url = world.server.url().parse().unwrap();
    let state = |promoting: Value| {
        let body = json!({"version": "9", "promoting": promoting}).to_string();
        let answer = Action::Answer(Reply::full(200, "application/json", body));
        world.server.clear_faults();
        let matches = |request: &Request| request.path == "/api/v1/state";
        world.server.inject(Fault::once(When::Before, answer).matching(matches).times(u32::MAX));
    };
    let mut view: Value =
        serde_json::from_str(&explain(Asked::Desk(&world.desk), &web(), Output::Json).await.out).unwrap();
    view["live"] = json!(true);
    state(json!({"pipelines": [view], "leaves": [], "troubles": []}));
    let told = explain(Asked::<PipelineKind>::Server(&url), &web(), Output::Table).await;
    has(&told, 0, &["shop/web latest 1.3", "as allclear sees them now", TICKET]);
    let other = PipelineId::new("shop", "other");
    has(
        &explain(Asked::<PipelineKind>::Server(&url), &other, Output::Table).await,
        1,
        &["knows no Pipeline shop/other"],
    );
    state(Value::Null);
    has(
        &explain(Asked::<PipelineKind>::Server(&url), &web(), Output::Table).await,
        1,
        &["looks at no Pipelines: it stands by"],
    );
    state(json!({"pipelines": [{"id": "another form"}]}));
    has(
        &explain(Asked::<PipelineKind>::Server(&url), &web(), Output::Table).await,
        1,
        &["of another form than this version knows"],
    );
}
