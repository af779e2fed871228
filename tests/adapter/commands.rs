//! `status`, `group` and `ledger`, and what `explain` says of a group, through the real adapters: our stand-in of the API
//! server and real Redis servers, in which another member has left its records and its beat.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use allclear::adapters::cloudfront::Timeouts;
use allclear::adapters::kubernetes::crd::repo::Installation;
use allclear::adapters::kubernetes::desk::Desk;
use allclear::adapters::kubernetes::objects::GROUP;
use allclear::adapters::kubernetes::{Cluster, Options, Scope, Tempo, connect};
use allclear::adapters::ledger::kubernetes::KubernetesLedger;
use allclear::adapters::ledger::unreachable::UnreachableLedger;
use allclear::adapters::redis::Server as RedisServer;
use allclear::adapters::redis::board::RedisBoard;
use allclear::app::sources::connected;
use allclear::cli::answer::{Outcome, Output};
use allclear::cli::consent::Consent;
use allclear::cli::explain::explain;
use allclear::cli::status::{Asked, status};
use allclear::cli::{group, ledger};
use allclear::config::{Inputs, load};
use allclear::demo::life::Life;
use allclear::looking::whose::Whose;
use allclear::looking::{About, Neighbours, Question, Sources};
use expect_test::{ExpectFile, expect, expect_file};
use kernel::id::{Member, Origin, Seq, WorkloadId, config_hash};
use purge::agreement::roster::{Heartbeat, Pin, Said, Saying, Stands, Trust, settings};
use purge::bounds::policy::Policy;
use purge::ports::{Board, Posted};
use purge::purges::accounts::Accounts;
use purge::records::record::Record;
use purge::records::record_codec::decode;
use sandbox::http::{Request, Server};
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options as StandInOptions, Timings};
use sandbox::world::World as Sandbox;
use serde_json::{Value, json};
use support::redis::Redis;
use support::snapshot::{self, redacted};

use crate::cloudfront::adapter;
use crate::served;

/// The cluster of eu-1, seen by a person; eu-2 lives, and the Redis of us-1 does not.
struct World {
    api: KubernetesStandIn,
    server: Server,
    kubeconfig: tempfile::NamedTempFile,
    redis: [Redis; 2],
    sources: Sources,
    origin: Origin,
}

fn members(names: &[&str]) -> BTreeSet<Member> {
    names.iter().map(|name| Member::from(*name)).collect()
}

fn web() -> WorkloadId {
    WorkloadId::deployment("shop", "web")
}

/// The settings of every member.
fn agreed() -> BTreeMap<String, String> {
    let mut settings = settings(&Policy::default(), false);
    settings.insert("group.members".to_owned(), "eu-1, eu-2, us-1".to_owned());
    settings
}

fn config() -> String {
    config_hash(agreed().iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// A record of `shop/web` in this phase, news since the last rollout if it is not closed.
fn record(seq: u64, revision: u64, tag: &str, phase: &Value, closed: u64) -> Record {
    let json = json!({
        "r": revision, "u": "u", "s": seq, "v": {"web": format!("shop/web:{tag}")}, "c": "changed", "k": closed, "p": phase,
        "m": config(),
    });
    decode(json.to_string().as_bytes()).unwrap()
}

impl World {
    async fn start() -> Self {
        let api = KubernetesStandIn::new(StandInOptions::default());
        for namespace in ["shop", "allclear"] {
            api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).unwrap();
        }
        api.seed("shop", "web", "shop/web:2", 2).unwrap();
        let server = api.start().await.unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), api.kubeconfig(&server)).unwrap();
        let clients =
            connect(&Options { kubeconfig: Some(file.path().to_owned()), ..Options::default() }).await.unwrap();
        let redis = [Redis::start(), Redis::start()];
        let dead = {
            let mut gone = Redis::start();
            gone.kill();
            gone.url()
        };
        let reader = Member::from("allclear command");
        let board = |url: String| -> Arc<dyn Board> {
            Arc::new(RedisBoard::new(RedisServer::new(&url).unwrap(), "default", &reader, None))
        };
        let neighbours = Neighbours {
            name: "default".to_owned(),
            member: Ok("eu-1".into()),
            is_group: true,
            members: BTreeSet::new(),
            trust: Trust::UnsignedOnPurpose,
            boards: vec![board(redis[0].url()), board(redis[1].url()), board(dead)],
        };
        let nowhere = adapter("http://127.0.0.1:9", "AKIDONE", Timeouts::default()).await;
        let sources = Sources {
            cluster: Arc::new(Cluster::new(&clients, Scope::All, Tempo::default())),
            ledger: Arc::new(KubernetesLedger::new(clients.request.clone(), "allclear")),
            cdn: Arc::new(nowhere),
            accounts: Accounts::default(),
            group: Some(neighbours),
            installation: None,
            desk: Some(Desk::new(&clients, &[GROUP.to_owned()], false)),
            repos: Some(Desk::of_repos(&clients, Installation::default())),
            own_namespace: "shop".to_owned(),
            ledger_place: "namespace allclear".to_owned(),
            us: About { member: "self".to_owned(), group: "default".to_owned(), dry_run: false },
            policy: Policy::default(),
            whose: Whose::Itself,
        };
        let origin = sources.ledger.open().await.unwrap().origin;
        let pin = Pin { members: members(&["eu-1", "eu-2", "us-1"]), of: 3, ..Pin::default() };
        assert!(sources.ledger.store_pin(&pin, None).await.unwrap());
        Self { api, server, kubeconfig: file, redis, sources, origin }
    }

    fn question(name: Option<&str>) -> Question {
        Question { namespace: None, name: name.map(str::to_owned) }
    }

    fn board(&self, redis: usize, member: &str) -> RedisBoard {
        RedisBoard::new(RedisServer::new(&self.redis[redis].url()).unwrap(), "default", &member.into(), None)
    }

    /// eu-2 leaves its record and its beat, on its own Redis only.
    async fn eu_2_shows(&self, record: Record) {
        let board = self.board(1, "eu-2");
        let origin = Origin("o-2".to_owned());
        let words = "2 of 5 pods ready; web-x4: ImagePullBackOff".to_owned();
        let saying = Saying { seq: record.seq, words, since_ms: Some(1_000) };
        let beat = Heartbeat {
            member: "eu-2".into(),
            origin: origin.clone(),
            version: "0.1.0".to_owned(),
            members: members(&["eu-1", "eu-2", "us-1"]),
            settings: agreed(),
            config: config(),
            stands: all_kinds(),
            said: Said::of([(web(), saying)].into()),
            at_ms: 261_000,
            ..Heartbeat::default()
        };
        board.beat(&beat).await.unwrap();
        let posted = board.post(&origin, &[(web(), record.into())]).await.unwrap();
        assert_eq!(posted, [Posted::Current]);
    }

    /// The ledger holds this record from the beginning.
    async fn ledger_has(&self, mut record: Record) {
        record.revision = 1;
        let deployment = self.api.get(Kind::Deployment, "shop", "web").unwrap();
        deployment["metadata"]["uid"].as_str().unwrap().clone_into(&mut record.uid);
        self.sources.ledger.store(&web(), &record).await.unwrap();
    }

    /// Answers all requests that match with 403.
    fn forbid(&self, matches: fn(&Request) -> bool) {
        served::forbid(&self.server, "not for you", matches);
    }

    /// All that was printed is so.
    fn printed(&self, outcome: &Outcome, expected: ExpectFile) {
        let at_once = (1..9).map(|seconds| format!("answered {seconds}s ago"));
        let text = at_once.fold(outcome.out.clone(), |text, slow| text.replace(&slow, "answered just now"));
        expected.assert_eq(&redacted(&text, &[(&self.origin.0, "ORIGIN")]));
    }

    async fn status(&self, output: Output) -> Outcome {
        status(&Asked::Sources(&self.sources, None), output).await
    }
}

/// Of a member that follows every kind.
fn all_kinds() -> Stands {
    let mut stands = Stands::default();
    stands.follow(&kernel::id::Kind::ALL.into());
    stands
}

#[tokio::test]
async fn status_shows_a_rollout_in_every_member_with_what_is_awaited_and_the_boards() {
    let world = World::start().await;
    world.ledger_has(record(2, 1, "2", &json!("complete"), 1)).await;
    world.eu_2_shows(record(7, 3, "2", &json!("rolling"), 6)).await;
    let writes = world.api.writes();
    let outcome = world.status(Output::Table).await;
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    world.printed(&outcome, expect_file!["commands/status.txt"]);
    let state: Value = serde_json::from_str(&world.status(Output::Json).await.out).unwrap();
    assert_eq!(state["tallies"][0]["members"][1]["phase"], "rolling");
    assert_eq!(state["agreement"]["boards"][0]["trouble"], Value::Null);
    assert_eq!(state["group"], "default");
    assert_eq!(world.api.writes(), writes, "whoever looks writes nothing");
}

fn flat(outcome: &Outcome) -> String {
    snapshot::flat(&outcome.out)
}

#[tokio::test]
async fn without_the_ledger_nothing_is_said_of_the_members_but_that() {
    let mut world = World::start().await;
    world.eu_2_shows(record(7, 3, "2", &json!("complete"), 6)).await;
    world.sources.group.as_mut().unwrap().boards.truncate(2);
    world.sources.ledger = Arc::new(UnreachableLedger);
    let status = world.status(Output::Table).await;
    let shown = group::show(&world.sources, Output::Table).await;
    let explained = explain(&world.sources, &World::question(Some("web")), Output::Table).await;
    for outcome in [&status, &shown, &explained] {
        let text = flat(outcome);
        println!("{}", outcome.out);
        assert!(text.contains("the ledger cannot be read, so it is not known who the members are"), "{text}");
        assert!(text.contains("allclear status --server URL"), "{text}");
        for invented in
            ["being written", "not known yet", "another configuration", ", not agreed on", "not among", "recorded it"]
        {
            assert!(!text.contains(invented), "{invented}: {text}");
        }
    }
    assert_eq!((status.code, shown.code, explained.code), (1, 1, 1));
    assert!(flat(&status).starts_with("member eu-1 of group default: 1 in flight"), "{}", status.out);
    assert!(flat(&status).contains("asks for it; the ledger here could not be read"), "{}", status.out);
    assert!(!shown.out.contains("Configuration"), "its hash is one over the members too: {}", shown.out);
    let refused = ledger::show(&world.sources, &World::question(None), Output::Table).await;
    assert!(refused.code == 1 && refused.err.contains("allclear status --server URL"), "{}", refused.err);
}

#[tokio::test]
async fn a_second_allclear_of_our_name_is_shown_and_holds_us_up_only_where_it_was_first() {
    let mut world = World::start().await;
    world.sources.group.as_mut().unwrap().boards.truncate(2);
    world.ledger_has(record(2, 1, "2", &json!("complete"), 1)).await;
    let ours = Heartbeat { member: "eu-1".into(), origin: world.origin.clone(), at_ms: 1, ..Heartbeat::default() };
    let other = Heartbeat { origin: "o-9".into(), ..ours.clone() };
    world.board(1, "eu-1").beat(&other).await.unwrap();
    let words = "another allclear reports by the name eu-1 (its ledger is o-9) and comes first";
    let shown = group::show(&world.sources, Output::Json).await;
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert!(shown["hold"].as_str().unwrap().starts_with(words), "{shown:#}");
    let status = flat(&world.status(Output::Table).await);
    assert!(status.contains(&format!("nothing is purged: {words}")), "{status}");

    // Ours leaves beats, so it goes on.
    world.board(0, "eu-1").beat(&ours).await.unwrap();
    let status = flat(&world.status(Output::Table).await);
    assert!(!status.contains(words), "{status}");
    assert!(status.contains(&format!("by the name eu-1 (ledger o-9, and ours is {})", world.origin)), "{status}");
}

#[tokio::test]
async fn a_status_of_which_a_part_could_not_be_read_fails() {
    let rolling = async || {
        let world = World::start().await;
        world.ledger_has(record(2, 1, "2", &json!("rolling"), 1)).await;
        world.api.patch(Kind::Deployment, "shop", "web", &json!({"status": {"updatedReplicas": 1}})).unwrap();
        world
    };
    let mut world = rolling().await;
    assert_eq!(world.status(Output::Table).await.code, 0, "a Redis that is away is shown, and is no failure");
    world.sources.group.as_mut().unwrap().member = Err("the cluster does not tell its name".to_owned());
    let nameless = world.status(Output::Json).await;
    assert_eq!(nameless.code, 1, "{}", nameless.out);
    assert_eq!(serde_json::from_str::<Value>(&nameless.out).unwrap()["synced"], false);
    for forbidden in [(|request: &Request| request.path.ends_with("/pods")) as fn(&Request) -> bool, |request| {
        request.raw_query.contains("delivery")
    }] {
        let world = rolling().await;
        world.forbid(forbidden);
        let outcome = world.status(Output::Table).await;
        assert!(outcome.code == 1 && flat(&outcome).contains("not for you"), "{}", outcome.out);
    }
}

#[tokio::test]
async fn while_our_own_name_is_not_known_no_copy_is_taken_for_ours() {
    let mut world = World::start().await;
    world.sources.group.as_mut().unwrap().member = Err("the cluster does not tell its name".to_owned());
    let question = World::question(None);
    let adopted = ledger::adopt(&world.sources, &question, ledger::Which::All, Consent::Given).await;
    assert!(adopted.code == 1 && adopted.err.contains("the cluster does not tell its name"), "{}", adopted.err);
    let shown = ledger::show(&world.sources, &question, Output::Table).await;
    assert!(flat(&shown).contains("Troubles the cluster does not tell its name"), "{}", shown.out);
}

#[tokio::test]
async fn the_records_of_a_dry_run_are_those_of_the_process_that_has_them() {
    let world = World::start().await;
    let inputs = Inputs {
        file: None,
        environment: BTreeMap::new(),
        flags: BTreeMap::from([("dry_run".to_owned(), "true".to_owned())]),
        service_account_namespace: None,
        read: &|_| Err(std::io::ErrorKind::NotFound.into()),
    };
    let config = load(&inputs).unwrap().config;
    let kubernetes = Options { kubeconfig: Some(world.kubeconfig.path().to_owned()), ..Options::default() };
    let (sources, _) = connected(&config, &kubernetes, None).await.unwrap();
    let sources = Sources { desk: None, repos: None, installation: None, ..sources };
    let outcome = status(&Asked::Sources(&sources, None), Output::Table).await;
    assert!(
        outcome.code == 1 && flat(&outcome).contains("ask that one with allclear status --server URL"),
        "{}",
        outcome.out
    );
    assert!(!outcome.out.contains("all clear"), "{}", outcome.out);
}

#[tokio::test]
async fn explain_shows_the_members_parts_and_names_the_board_that_is_not_reached() {
    let world = World::start().await;
    world.ledger_has(record(2, 1, "2", &json!("complete"), 1)).await;
    world.eu_2_shows(record(7, 3, "1", &json!("complete"), 7)).await;
    let outcome = explain(&world.sources, &World::question(Some("web")), Output::Table).await;
    world.printed(&outcome, expect_file!["commands/explain.txt"]);
}

#[tokio::test]
async fn the_group_is_shown_and_a_member_that_is_gone_is_forgotten_after_saying_what_follows() {
    let mut world = World::start().await;
    let mut voted = record(2, 1, "2", &json!("complete"), 1);
    let component = |origin: &str, seq: u64| json!({"o": origin, "s": seq});
    let vote = json!({
        "v": {"eu-1": component(&world.origin.0, 2), "eu-2": component("o-2", 7), "us-1": component("o-3", 4)},
        "s": 2, "i": {"web": "shop/web:2"}, "c": "changed", "p": ["/*"],
    });
    voted.votes = vec![serde_json::from_value(vote).unwrap()];
    world.ledger_has(voted).await;
    world.eu_2_shows(record(7, 3, "2", &json!("complete"), 7)).await;
    let shown = group::show(&world.sources, Output::Table).await;
    assert_eq!(shown.code, 0);
    world.printed(&shown, expect_file!["commands/group.txt"]);

    let mut refused = String::new();
    for (member, consent) in [("us-1", Consent::NoTerminal), ("us-2", Consent::Given), ("eu-1", Consent::Given)] {
        let outcome = group::forget(&world.sources, member, consent).await;
        refused = format!("{refused}{}: {}", outcome.code, outcome.err);
    }
    expect![[r#"
        1: error: nothing was changed: there is no terminal to ask on; say --yes to do it
        1: error: us-2 is not a member; the members are eu-1, eu-2, us-1
        1: error: eu-1 is this cluster itself; run this in the clusters that remain, and take their Redis out of this one's group.remotes
    "#]].assert_eq(&refused);
    assert_eq!(world.sources.ledger.pin().await.unwrap().unwrap().members.len(), 3, "nothing was written so far");

    let done = group::forget(&world.sources, "us-1", Consent::Given).await;
    assert_eq!(done.code, 0);
    // The Redis of us-1 is gone with it, or comes back with what is on it.
    world.printed(&done, expect_file!["commands/forgotten.txt"]);
    // Where the members are given by name, the name has to go as well.
    let before = Pin { members: members(&["eu-1", "eu-2", "us-1"]), of: 3, ..Pin::default() };
    let now = world.sources.ledger.pin().await.unwrap();
    assert!(world.sources.ledger.store_pin(&before, now.as_ref()).await.unwrap());
    world.sources.group.as_mut().unwrap().members = before.members;
    let named = group::forget(&world.sources, "us-1", Consent::Given).await;
    world.printed(&named, expect_file!["commands/named.txt"]);
    let pin = world.sources.ledger.pin().await.unwrap().unwrap();
    assert_eq!(
        pin,
        Pin { members: members(&["eu-1", "eu-2"]), of: 3, forgotten: members(&["us-1"]), ..Pin::default() }
    );
}

// Faults: A5
#[tokio::test]
async fn a_ledger_that_was_set_back_is_shown_and_adopted_above_every_number_that_was_ever_seen() {
    let mut world = World::start().await;
    world.ledger_has(record(3, 1, "1", &json!("complete"), 3)).await;
    // What eu-1 had published before its ledger was set back, and on the other board once more later.
    for (redis, seq, revision) in [(0, 7, 2), (1, 9, 1)] {
        let copy = record(seq, revision, "2", &json!("complete"), seq).into();
        let posted = world.board(redis, "eu-1").post(&world.origin, &[(web(), copy)]).await.unwrap();
        assert_eq!(posted, [Posted::Current]);
    }
    let question = World::question(Some("shop/web"));
    let shown = ledger::show(&world.sources, &question, Output::Table).await;
    world.printed(&shown, expect_file!["commands/set-back.txt"]);
    let overview = ledger::show(&world.sources, &World::question(None), Output::Table).await;
    world.printed(&overview, expect_file!["commands/ledger.txt"]);

    let deaf = ledger::adopt(&world.sources, &question, ledger::Which::Named, Consent::Given).await;
    assert!(deaf.code == 1 && deaf.err.contains("every Redis must answer first"), "{}", deaf.err);
    world.sources.group.as_mut().unwrap().boards.truncate(2);
    let unasked = ledger::adopt(&world.sources, &question, ledger::Which::All, Consent::NoTerminal).await;
    assert_eq!(unasked.code, 1, "{}", unasked.out);
    assert_eq!(world.sources.ledger.load(&web()).await.unwrap().unwrap().seq, Seq(3));

    let done = ledger::adopt(&world.sources, &question, ledger::Which::All, Consent::Given).await;
    assert_eq!((done.code, done.out.as_str()), (0, "shop/web: adopted as rollout 11\n"), "{}", done.err);
    let adopted = world.sources.ledger.load(&web()).await.unwrap().unwrap();
    assert_eq!((adopted.seq, adopted.revision, adopted.closed), (Seq(11), 2, Seq(11)));
    assert_eq!(adopted.version.to_string(), "web shop/web:2", "as it is in the cluster");
    for redis in [0, 1] {
        let copy = adopted.clone().into();
        let posted = world.board(redis, "eu-1").post(&world.origin, &[(web(), copy)]).await.unwrap();
        assert_eq!(posted, [Posted::Current], "every board takes it for newer");
    }
    let again = ledger::adopt(&world.sources, &question, ledger::Which::All, Consent::Given).await;
    assert_eq!(again.out, "nothing to adopt: the ledger has the newest state that any Redis has seen\n");

    // A later rollout went past what the group had seen, and onto every board: only the record says it any more.
    let noted = Record { seq: Seq(12), revision: 3, set_back: Some((Seq(11), 9)), ..adopted };
    world.sources.ledger.store(&web(), &noted).await.unwrap();
    let shown = ledger::show(&world.sources, &question, Output::Table).await;
    assert!(shown.out.contains("Set back"), "{}", shown.out);
    let done = ledger::adopt(&world.sources, &question, ledger::Which::All, Consent::Given).await;
    assert_eq!((done.code, done.out.as_str()), (0, "shop/web: adopted as rollout 14\n"), "{}", done.err);
    let adopted = world.sources.ledger.load(&web()).await.unwrap().unwrap();
    assert_eq!((adopted.seq, adopted.revision, adopted.set_back), (Seq(14), 4, None));
    assert!(world.api.list(Kind::ConfigMap, "shop").is_empty());
}

#[tokio::test]
async fn a_running_allclear_is_asked_over_http_and_what_is_no_allclear_is_named() {
    let world = Sandbox::new(Timings::IMMEDIATE, None).await.unwrap();
    world.add_site("shop", "web", "shop/web:1", "www.example.com", "E1").unwrap();
    world.kubernetes.settle();
    let life = Life::start(&world, &[]).await.unwrap();
    let url: url::Url = format!("http://{}/", life.address()).parse().unwrap();
    for _ in 0..500 {
        if life.observe().await.workloads == 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let outcome = status(&Asked::Server(&url, None), Output::Table).await;
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    assert!(
        outcome.out.starts_with("member self of group default: all clear, 1 workload and none in flight\n"),
        "{}",
        outcome.out
    );
    life.stop().unwrap();
    let gone = status(&Asked::Server(&url, None), Output::Table).await;
    assert!(gone.code == 1 && gone.err.contains("kubectl port-forward"), "{}", gone.err);
    let other: url::Url = world.cdn.url().parse().unwrap();
    let other = status(&Asked::Server(&other, None), Output::Table).await;
    assert_eq!(other.code, 1, "{}", other.out);
}

mod held;
mod host;
mod idle;
mod parts;
mod promoting;
