//! `explain` over scripted sources.

use std::collections::BTreeMap;

use expect_test::{expect, expect_file};
use support::snapshot::rows;

use super::*;
use crate::looking::layout::Screen;
use crate::looking::tests::{Account, World, named, rolling, version, web};
use kernel::id::{Component, Seq, Vector, WorkloadId};
use kernel::watches::lives::LifeNote;
use purge::ports::{CdnError, CdnErrorClass, PortError};
use purge::records::record::{Phase, Purge, PurgeState, Vote};
use purge::site::SiteFacts;
use purge::workloads::workload::{Asks, Tuning, Workload};

mod barrier;
mod hosts;
mod routes;
mod sites;

impl World {
    async fn ask(self, name: Option<&str>, output: Output) -> Outcome {
        self.ask_in(None, name, output).await
    }

    async fn ask_in(self, namespace: Option<&str>, name: Option<&str>, output: Output) -> Outcome {
        let question = Question { namespace: namespace.map(str::to_owned), name: name.map(str::to_owned) };
        explain(&self.sources().await, &question, output).await
    }

    /// The answer about `web` as text.
    async fn text(self) -> String {
        let outcome = self.ask(Some("web"), Output::Table).await;
        assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
        outcome.out
    }

    /// These rows of the answer about `web`.
    async fn rows(self, names: &[&str]) -> String {
        rows(&self.text().await, names)
    }
}

fn forbidden(attempted: &str) -> PortError {
    PortError::lasting(attempted, "forbidden")
}

#[tokio::test]
async fn one_screen_says_how_it_is_and_why() {
    expect![[r#"
        shop/web
          State         2 of 5 pods ready; web-7c9-x4: ImagePullBackOff, at most 13m 30s of 15m left
          Next          purges when every pod is of the new version and available
          Would purge   /* of E1

          Deployment    web registry.example.com/shop/web:1.2.4
                        3 of 5 pods of the newest version, 4 available, 5 in all
                        waits for completion: 2 of 5 pods ready; web-7c9-x4: ImagePullBackOff
          Record        rollout 7, rolling: web: 1.2.3 → 1.2.4
                        the edge has web registry.example.com/shop/web:1.2.3
                        last purge: web: 1.2.2 → 1.2.3: purged (E1 by I1)
          Hosts         api.example.com: Ingress shop/public rule
                        www.example.com: Ingress shop/public rule
                        left out, Ingress shop/public rule: "10.0.0.1" is not a host name: it is an IP address
          Distributions E1 (e1.cloudfront.net): alias www.example.com
                        not E2 (e2.cloudfront.net): disabled; otherwise by alias *.example.com covers host api.example.com
                        none serves api.example.com (2 looked at)
          Paths         /* (from the configuration)
          Proof         nobody looks at the edge after a purge (from the configuration)
          History       web: 1.2.2 → 1.2.3: purged (E1 by I1)
    "#]]
    .assert_eq(&World::new(rolling()).text().await);
}

#[tokio::test]
async fn json_is_the_same_answer_for_programs() {
    let outcome = World::new(rolling()).ask(Some("web"), Output::Json).await;
    assert_eq!(outcome.code, 0);
    expect_file!["tests/rolling.json"].assert_eq(&outcome.out);
}

#[tokio::test]
async fn what_cannot_be_read_hides_nothing_else() {
    let mut world = World::new(rolling());
    world.account =
        Account(Err(CdnError { class: CdnErrorClass::Denied, message: "failed to list distributions: denied".into() }));
    world.cluster.pods = Err(forbidden("failed to list pods in shop"));
    expect![[r#"
        State         2 of 5 pods available, at most 13m 30s of 15m left
        Deployment    web registry.example.com/shop/web:1.2.4
                      3 of 5 pods of the newest version, 4 available, 5 in all
                      waits for completion: 2 of 5 pods available
                      missing: failed to list pods in shop: forbidden
        Hosts         api.example.com: Ingress shop/public rule
                      www.example.com: Ingress shop/public rule
                      left out, Ingress shop/public rule: "10.0.0.1" is not a host name: it is an IP address
        Distributions missing: failed to list distributions: denied
    "#]]
    .assert_eq(&world.rows(&["State", "Would purge", "Deployment", "Hosts", "Distributions"]).await);
}

#[tokio::test]
async fn without_rights_to_the_deployment_the_record_still_answers() {
    let mut world = World::new(web());
    world.cluster.workloads = Err(forbidden("failed to get deployments.apps web in shop"));
    world.cluster.facts = Err(forbidden("failed to list services in shop"));
    expect![[r#"
        State         the workload has not been seen yet, at most 13m 30s of 15m left
        Deployment    missing: failed to get deployments.apps web in shop: forbidden
        Record        rollout 7, rolling: web: 1.2.3 → 1.2.4
                      the edge has web registry.example.com/shop/web:1.2.3
                      last purge: web: 1.2.2 → 1.2.3: purged (E1 by I1)
    "#]]
    .assert_eq(&world.rows(&["State", "Deployment", "Record"]).await);

    let mut blind = World::new(web());
    blind.cluster.workloads = Err(forbidden("failed to get deployments.apps web in shop"));
    blind.records.clear();
    let outcome = blind.ask(Some("web"), Output::Table).await;
    assert_eq!(outcome.code, 1);
    expect![[r#"
        shop/web
          State         not known: the workload could not be read
          Next          see below what is missing

          Deployment    missing: failed to get deployments.apps web in shop: forbidden
          Record        none
          Hosts         missing, as Deployment
          Distributions missing, as Deployment
          Paths         missing, as Deployment
          Proof         missing, as Deployment
    "#]]
    .assert_eq(&outcome.out);
}

#[tokio::test]
async fn an_open_vote_shows_its_purges() {
    let mut world = World::new(web());
    let purge = Purge { state: PurgeState::Created, invalidation: Some("I2X".into()), ..Purge::wanted("ref".into()) };
    let record = &mut world.records[0].1;
    record.phase = Phase::Complete;
    let vector = Vector::of_one("self".into(), Component::bare("o".into(), Seq(7)));
    let json = serde_json::json!({ "v": vector, "s": 7, "i": version("1.2.4"), "p": ["/*"], "h": ["www.example.com"] });
    let mut vote: Vote = serde_json::from_value(json).unwrap();
    vote.purges.listed.insert("E1".parse().unwrap(), purge);
    record.votes.push(vote);
    expect![[r#"
        State         invalidation I2X of E1 in progress
        Record        rollout 7, complete: web: 1.2.3 → 1.2.4
                      the edge has web registry.example.com/shop/web:1.2.3
                      1 open vote
                      invalidation I2X of E1 in progress
                      last purge: web: 1.2.2 → 1.2.3: purged (E1 by I1)
    "#]]
    .assert_eq(&world.rows(&["State", "Record"]).await);
}

#[tokio::test]
async fn the_owners_annotations_are_named_as_the_source_and_bad_ones_as_conditions() {
    let tuning = Tuning::read([
        ("allclear.dev/distribution-ids", "E9"),
        ("allclear.dev/paths", "/a/*,/b"),
        ("allclear.dev/rollout-timeout", "soon"),
    ]);
    let names = ["Would purge", "Distributions", "Paths", "Conditions"];
    expect![[r#"
        Would purge   /a/*, /b of E9
        Conditions    annotation allclear.dev/rollout-timeout: "soon" is not a duration like 15m: expected number at 0
        Distributions E9: annotation distribution-ids; this account has no such distribution
        Paths         /a/*, /b (from the annotation)
    "#]]
    .assert_eq(&World::new(Workload { tuning, ..web() }).rows(&names).await);
}

#[tokio::test]
async fn who_looks_at_the_edge_where_and_by_what_is_named_with_who_said_so() {
    let annotated = |pairs: &[(&str, &str)]| {
        let tuning = Tuning::read(pairs.iter().copied());
        World::new(Workload { tuning, ..web() })
    };
    let mut said = World::new(web()).rows(&["Proof"]).await;
    said += &annotated(&[("allclear.dev/proof", "true")]).rows(&["Proof"]).await;
    let all = [
        ("allclear.dev/proof", "true"),
        ("allclear.dev/proof-paths", "/, /shop"),
        ("allclear.dev/proof-marker", "header:X-Version"),
    ];
    said += &annotated(&all).rows(&["Proof"]).await;
    said += &annotated(&[("allclear.dev/proof", "false"), all[1]]).rows(&["Proof"]).await;
    expect![[r#"
        Proof         nobody looks at the edge after a purge (from the configuration)
        Proof         the edge is looked at after each purge (from the annotation)
                      / of each host (from the configuration)
                      judged by age alone
                      1 further purge at most where it is stale (from the configuration)
        Proof         the edge is looked at after each purge (from the annotation)
                      /, /shop of each host (from the annotation)
                      judged by age, and by header:x-version (from the annotation)
                      1 further purge at most where it is stale (from the configuration)
        Proof         nobody looks at the edge after a purge (from the annotation)
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn what_nobody_reaches_would_purge_nothing_and_the_remedy_is_named() {
    let mut world = World::new(web());
    world.cluster.facts = Ok(SiteFacts::default());
    expect![[r#"
        Would purge   nothing: no Ingress, route or annotation gives it a host; annotation allclear.dev/hosts can name some
        Hosts         none: no Ingress, route or annotation leads to it
    "#]].assert_eq(&world.rows(&["Would purge", "Hosts"]).await);
}

#[tokio::test]
async fn a_change_nobody_recorded_and_a_workload_without_a_record_are_told_apart() {
    let asks = Asks { requested_at: Some("1".into()), ..Asks::default() };
    let asking = Workload { tuning: Tuning { asks, ..Tuning::default() }, ..web() };
    let disabled = Workload { tuning: Tuning { disabled: true, ..Tuning::default() }, ..web() };
    let unrecorded = |listed| World { records: vec![], listed, ..World::new(web()) };
    let (state, all) = (&["State"][..], &["State", "Next", "Record"][..]);
    let worlds = [
        (World::new(Workload { version: Ok(version("1.2.5")), ..web() }), state),
        (World::new(asking), state),
        (unrecorded(false), all),
        (unrecorded(true), all),
        (World::new(disabled), state),
    ];
    let mut said = String::new();
    for (world, names) in worlds {
        said += &world.rows(names).await;
    }
    expect![[r#"
        State         web: 1.2.4 → 1.2.5; allclear has not recorded this yet
        State         a purge was requested by annotation; allclear has not recorded this yet
        State         every pod is of the newest version and available; not recorded in the ledger in namespace allclear
        Next          nothing, until allclear runs and watches namespace shop; it is then taken as it is, without a purge. If its ledger is elsewhere, name it by --ledger-namespace
        Record        none
        State         every pod is of the newest version and available; not recorded in the ledger in namespace allclear
        Next          all others are on record, so it is new: purged when it is complete, if allclear runs and watches namespace shop. If its ledger is elsewhere, name it by --ledger-namespace
        Record        none
        State         taken out by its owner: annotation allclear.dev/enabled is "false"
    "#]].assert_eq(&said);
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_answered_with_near_ones() {
    let world = |name| {
        let mut world = World::new(named(name));
        world.records.clear();
        world
    };
    let outcome = world("checkout").ask(Some("chekout"), Output::Table).await;
    assert_eq!((outcome.code, outcome.out.as_str()), (1, ""));
    assert_eq!(outcome.err, "error: there is no Deployment chekout in namespace shop; did you mean shop/checkout?\n");
    let outcome = world("web").ask_in(Some("blog"), Some("web"), Output::Table).await;
    assert_eq!(outcome.err, "error: there is no Deployment web in namespace blog; did you mean shop/web?\n");
    let outcome = world("checkout").ask(Some("zebra"), Output::Table).await;
    assert_eq!(outcome.err, "error: there is no Deployment zebra in namespace shop\n");
}

#[tokio::test]
async fn a_name_may_be_written_in_every_usual_way() {
    for name in ["web", "deployment/web", "deploy/web", "shop/web", "deployment/shop/web"] {
        assert_eq!(World::new(web()).ask(Some(name), Output::Table).await.code, 0, "{name}");
    }
    for name in ["", "a/b/c/d", "Web", "we b", "shop/"] {
        assert_eq!(World::new(web()).ask(Some(name), Output::Table).await.code, 2, "{name}");
    }
    assert_eq!(World::new(web()).ask_in(Some("blog"), Some("shop/web"), Output::Table).await.code, 2);
}

#[tokio::test]
async fn without_a_name_all_workloads_are_listed() {
    let world = || {
        let mut world = World::new(rolling());
        world.cluster.workloads =
            Ok(vec![rolling(), named("worker"), Workload { id: WorkloadId::deployment("blog", "x"), ..web() }]);
        world
    };
    let outcome = world().ask_in(Some("shop"), None, Output::Table).await;
    assert_eq!(outcome.code, 0);
    expect![[r#"
        NAMESPACE  NAME    VERSION  PHASE    STATE                                               LAST PURGE
        shop       web     1.2.4    rolling  2 of 5 pods available, at most 13m 30s of 15m left  web: 1.2.2 → 1.2.3
        shop       worker  1.2.4    –        complete; not recorded                              –
        not recorded: in the ledger in namespace allclear; --ledger-namespace looks into another
    "#]]
    .assert_eq(&outcome.out);
    let outcome = world().ask(None, Output::Json).await;
    let listing: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(listing["workloads"].as_array().unwrap().len(), 3);
    assert_eq!(listing["workloads"][1]["last_purge"], "web: 1.2.2 → 1.2.3");
}

#[tokio::test(start_paused = true)]
async fn a_list_without_rights_shows_the_records_and_says_what_is_missing() {
    let mut world = World::new(web());
    world.cluster.workloads = Err(forbidden("failed to watch deployments"));
    let outcome = world.ask(None, Output::Table).await;
    assert_eq!(outcome.code, 1);
    expect![[r#"
        NAMESPACE  NAME  VERSION  PHASE    STATE                                                            LAST PURGE
        shop       web   1.2.4    rolling  the workload has not been seen yet, at most 13m 30s of 15m left  web: 1.2.2 → 1.2.3
        missing: failed to watch deployments: forbidden
    "#]]
    .assert_eq(&outcome.out);
}

#[tokio::test]
async fn no_line_is_wider_than_the_screen_and_nothing_moves_the_cursor() {
    let world = || {
        let message = format!("failed to list distributions: {} \u{1b}[2J", "very denied ".repeat(30));
        let account = Account(Err(CdnError { class: CdnErrorClass::Denied, message }));
        World { account, ..World::new(web()) }
    };
    for columns in [40, 80, 200] {
        let screen = Screen { columns: Some(columns), ..Screen::default() };
        let text = world().ask(Some("shop/web"), Output::Drawn(screen)).await.out;
        // The name of the newest image is one word, and longer than the narrowest of them has room for.
        let words = text.lines().filter(|line| !line.contains("registry.example.com"));
        let widest = words.map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(columns) && widest > usize::from(columns) - 12, "{columns}: {widest}\n{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    let piped = world().text().await;
    let row = piped.lines().find(|line| line.contains("very denied")).unwrap();
    assert_eq!(row.matches("very denied").count(), 30, "grep finds all of it: {piped}");
}

#[tokio::test(start_paused = true)]
async fn on_a_terminal_a_list_is_as_wide_as_that_and_in_colour() {
    let screen = Screen { columns: Some(80), is_coloured: true, now_ms: None };
    let mut world = World::new(rolling());
    world.cluster.workloads = Ok(vec![rolling(), named("worker")]);
    let list = world.ask(None, Output::Drawn(screen)).await.out;
    expect![[r#"
        ␛[1mNAMESPACE  NAME    VERSION  PHASE    STATE                  LAST PURGE␛[0m
        shop       web     1.2.4    rolling  2 of 5 pods            web: 1.2.2 → 1.2.3
                                             available, at most
                                             13m 30s of 15m left
        shop       worker  1.2.4    –        complete; not          –
                                             recorded
        ␛[33m! not recorded: in the ledger in namespace allclear; --ledger-namespace looks␛[0m
        ␛[33m  into another␛[0m
    "#]]
    .assert_eq(&list.replace('\u{1b}', "␛"));
    let page = World::new(rolling()).ask(Some("web"), Output::Drawn(screen)).await.out;
    let begin: Vec<&str> = page.lines().take(6).collect();
    expect![[r#"
        ␛[1mshop/web␛[0m
        ␛[2m  State         ␛[0m␛[34m2 of 5 pods ready; web-7c9-x4: ImagePullBackOff, at most 13m 30s␛[0m
                        ␛[34m  of 15m left␛[0m
        ␛[2m  Next          ␛[0mpurges when every pod is of the new version and available
        ␛[2m  Would purge   ␛[0m/* of E1
    "#]]
    .assert_eq(&begin.join("\n").replace('\u{1b}', "␛"));
}

#[tokio::test]
async fn one_that_may_have_ended_allclear_is_said_to_rest() {
    let life = LifeNote { open: true, abrupt: 2, suspects: BTreeMap::from([(web().id, 2)]), ..LifeNote::default() };
    let world = |life| World { life: Some(life), ..World::new(rolling()) };
    expect![[r#"
        State         left alone for now
        Next          allclear itself ended abruptly 2 times while it worked on this workload (killed, out of memory, or with its node). It is tried again 40s after the start of allclear, when no other such workload is being tried. Look at the last state of allclear's pod and at its memory limit; to try it at once, restart allclear in order (kubectl rollout restart)
    "#]].assert_eq(&world(life.clone()).rows(&["State", "Next"]).await);
    // A life that ended in order clears it.
    expect![[r#"
        State         2 of 5 pods ready; web-7c9-x4: ImagePullBackOff, at most 13m 30s of 15m left
        Next          purges when every pod is of the new version and available
    "#]]
    .assert_eq(&world(LifeNote { open: false, ..life }).rows(&["State", "Next"]).await);
}
