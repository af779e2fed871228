//! The board in a real `redis-server`: what people see there, what it forgets and when, its speed, TLS and rights.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use allclear::adapters::redis::board::RedisBoard;
use allclear::adapters::redis::{RIGHTS, Server};
use allclear::config::Secret;
use kernel::id::{Member, Seq};
use purge::agreement::roster::{Heartbeat, Said};
use purge::ports::{Board, Cursor, POSTINGS_MAX, Posted, Posting, Reason, Retry};
use purge::records::record::Published;
use purge::records::record_codec::encode;
use support::redis::Redis;

use super::contract::{all, app, beat, forget, post, read, record, show, web, woken};
use super::{Bench, holds_the_contract};
use crate::certificates;

pub const KEY: &str = "allclear:{default}:rec:eu-1:deployment/shop/web";

pub fn board_at(url: &str, member: &str, key: Option<&str>) -> RedisBoard {
    let key = key.map(|key| Secret::new(key.as_bytes().to_vec()));
    RedisBoard::new(Server::new(url).unwrap(), "default", &Member(member.to_owned()), key)
}

pub fn board(redis: &Redis, member: &str) -> RedisBoard {
    board_at(&redis.url(), member, None)
}

impl Bench for Redis {
    fn handle(&self, member: &str) -> Arc<dyn Board> {
        Arc::new(board(self, member))
    }

    fn wipe(&self) {
        self.command::<()>(&["FLUSHALL"]);
    }
}

holds_the_contract!(Redis::start());

#[tokio::test]
async fn people_can_read_the_tag() {
    let redis = Redis::start();
    let one = board(&redis, "eu-1");
    post(&one, "a", show(1, 7)).await;
    let field = |field: &str| redis.command::<Option<String>>(&["HGET", KEY, field]);
    assert_eq!(field("version"), Some(record(1, 7).version.to_string()));
    assert!(field("version").unwrap().ends_with("shop/web:1.2"));
    assert_eq!(
        [field("phase"), field("org"), field("seq"), field("rev")],
        ["complete", "a", "1", "7"].map(|t| Some(t.into()))
    );
    assert_eq!(field("body"), Some(encode(&record(1, 7)).unwrap()));
    assert_eq!(field("mac"), None);
    assert_eq!(redis.command::<i64>(&["TTL", KEY]), -1, "keys with a time to live are evicted first");
    post(&one, "a", forget(1, 7)).await;
    assert_eq!([field("version"), field("phase")], [None, Some("gone".to_owned())]);
}

#[tokio::test]
async fn what_is_gone_or_absent_is_forgotten_and_what_is_there_is_not() {
    let redis = Redis::start();
    let (one, two) = (board(&redis, "eu-1"), board(&redis, "eu-2"));
    let absent = Posting::Show(Published::Absent(Seq(1)));
    let ttl = || redis.command::<i64>(&["TTL", KEY]);
    for passing in [forget(1, 1), absent] {
        post(&one, "a", passing).await;
        assert!((3_500..=3_600).contains(&ttl()), "{}", ttl());
    }
    post(&one, "a", show(2, 1)).await;
    assert_eq!(ttl(), -1);

    // A thousand workloads come and go, and an hour passes after each: nothing of them stays.
    let size = |key: &str| redis.command::<usize>(&["ZCARD", &format!("allclear:{{default}}:{key}:eu-1")]);
    for number in 0..1_000 {
        one.post(&"a".into(), &[(app(number), show(1, 1)), (app(number), forget(1, 1))]).await.unwrap();
        redis.command::<()>(&["DEL", &format!("allclear:{{default}}:rec:eu-1:{}", app(number))]);
        assert!(size("passing") <= 3 && size("index") <= 4, "{} {}", size("passing"), size("index"));
    }
    let mut news = read(&two, &mut Cursor::default()).await;
    news.heard.retain(|heard| heard.workload == web());
    assert_eq!(news.heard.len(), 1);
    assert!(!read(&one, &mut Cursor::default()).await.lost, "what expires is not lost");
}

#[tokio::test]
async fn an_evicted_copy_is_missed_by_its_owner() {
    let redis = Redis::start();
    let one = board(&redis, "eu-1");
    let some: Vec<_> = (0..450).map(|number| (app(number), show(1, 1))).collect();
    one.post(&"a".into(), &some).await.unwrap();
    redis.command::<()>(&["DEL", &format!("allclear:{{default}}:rec:eu-1:{}", app(333))]);
    let mut lost = 0;
    for _ in 0..5 {
        lost += usize::from(read(&one, &mut Cursor::default()).await.lost);
    }
    assert_eq!(lost, 1);
    one.post(&"a".into(), &some).await.unwrap();
    assert_eq!(all(&board(&redis, "eu-2")).await.len(), 450);
}

#[tokio::test]
async fn a_torn_tail_hides_nothing_that_was_posted_since() {
    let redis = Redis::start();
    let two = board(&redis, "eu-2");
    for same_life in [true, false] {
        redis.wipe();
        let mut one = board(&redis, "eu-1");
        one.post(&"a".into(), &[(app(1), show(1, 1)), (app(2), show(1, 1))]).await.unwrap();
        let backup: u64 = redis.command(&["GET", "allclear:{default}:stamp:eu-1"]);
        one.post(&"a".into(), &[(app(3), show(1, 1)), (app(4), show(1, 1))]).await.unwrap();
        let mut cursor = Cursor::default();
        assert_eq!(read(&two, &mut cursor).await.heard.len(), 4);
        // As if the last two writes had never been.
        redis.command::<()>(&["SET", "allclear:{default}:stamp:eu-1", &backup.to_string()]);
        for number in [3, 4] {
            redis.command::<()>(&["ZREM", "allclear:{default}:index:eu-1", &app(number).to_string()]);
            redis.command::<()>(&["DEL", &format!("allclear:{{default}}:rec:eu-1:{}", app(number))]);
        }
        if !same_life {
            one = board(&redis, "eu-1");
        }
        let some: Vec<_> = (1..=4).map(|number| (app(number), show(1, if number == 3 { 2 } else { 1 }))).collect();
        one.post(&"a".into(), &some).await.unwrap();
        let heard = read(&two, &mut cursor).await.heard;
        assert!(heard.iter().any(|heard| heard.said == show(1, 2)), "{heard:?}");
        assert_eq!(read(&one, &mut Cursor::default()).await.lost, same_life);
    }
}

#[tokio::test]
async fn two_processes_of_two_ledgers_do_not_lose_an_answer() {
    let redis = Redis::start();
    let (old, new) = (board(&redis, "eu-1"), board(&redis, "eu-1"));
    let some = |seq| (0..100).map(|number| (app(number), show(seq, 1))).collect::<Vec<_>>();
    for round in 1..10 {
        let (ours, theirs) = (some(round), some(round));
        let (one, two) = (&"one".into(), &"two".into());
        let (one, two) = tokio::join!(old.post(one, &ours), new.post(two, &theirs));
        for posted in one.unwrap().into_iter().chain(two.unwrap()) {
            assert!(matches!(posted, Posted::Current | Posted::Refused(_)), "{posted:?}");
        }
    }
    assert_eq!(new.post(&"two".into(), &some(10)).await.unwrap(), [const { Posted::Current }; 100]);
    assert!(all(&board(&redis, "eu-2")).await.iter().all(|heard| heard.origin.0 == "two"));
}

#[tokio::test]
async fn two_databases_of_one_server_are_two_boards() {
    let redis = Redis::start();
    let at = |database: u8| board_at(&format!("{}/{database}", redis.url()), "eu-1", None);
    assert_ne!(at(0).identity().await.unwrap(), at(1).identity().await.unwrap());
    assert_eq!(at(0).identity().await.unwrap(), board(&redis, "eu-2").identity().await.unwrap());
}

#[tokio::test]
async fn what_a_forgotten_member_has_left_is_removed_and_nothing_else() {
    let redis = Redis::start();
    let (old, two) = (board(&redis, "old-name"), board(&redis, "eu-2"));
    for one in [&old, &two] {
        post(one, "a", show(1, 1)).await;
    }
    old.beat(&beat("old-name", 1)).await.unwrap();
    // Without a signature, it is a trouble for everybody who has a key.
    let keyed = board_at(&redis.url(), "eu-1", Some("key"));
    let rejected = async || read(&keyed, &mut Cursor::default()).await.rejected;
    assert_eq!(rejected().await.len(), 3, "{:?}", rejected().await);
    assert_eq!(keyed.forget(&"old-name".into()).await.unwrap(), 1);
    assert!(rejected().await.iter().all(|why| why.contains("eu-2")), "{:?}", rejected().await);
    let keys: Vec<String> = redis.command(&["KEYS", "*"]);
    assert!(keys.iter().all(|key| !key.contains("old-name")), "{keys:?}");
    assert_eq!(all(&two).await.len(), 0, "of others");
    assert_eq!(keyed.forget(&"old-name".into()).await.unwrap(), 0, "again");
}

// Faults: R5
#[tokio::test]
async fn a_server_that_takes_no_writes_says_so_to_whoever_only_looks() {
    let (redis, primary) = (Redis::start(), Redis::start());
    let one = board(&redis, "eu-1");
    assert_eq!(one.refuses().await.unwrap(), None);
    redis.command::<()>(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    let words = one.refuses().await.unwrap().unwrap();
    assert!(words.starts_with("READONLY: ") && words.contains(&format!("127.0.0.1:{}", primary.port())), "{words}");
    redis.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    redis.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let words = one.refuses().await.unwrap().unwrap();
    assert!(words.starts_with("OOM: ") && words.contains("give it more"), "{words}");
    assert!(one.beat(&beat("eu-1", 1)).await.is_err(), "and so it is");
}

#[tokio::test]
async fn the_rights_we_ask_for_are_enough() {
    let redis = Redis::start();
    let modest = format!("on >secret-word {RIGHTS}");
    // As well without INFO, where servers are told apart by a nonce.
    for (user, rights) in [("modest", modest.clone()), ("poor", modest.replace("+info ", ""))] {
        let rule: Vec<&str> = ["ACL", "SETUSER", user].into_iter().chain(rights.split_whitespace()).collect();
        redis.command::<()>(&rule);
        redis.wipe();
        let url = format!("redis://{user}:secret-word@127.0.0.1:{}", redis.port());
        let (one, two) = (board_at(&url, "eu-1", Some("key")), board_at(&url, "eu-2", Some("key")));
        assert_eq!(one.identity().await.unwrap(), two.identity().await.unwrap());
        let mut wakes = two.wake_ups();
        woken(&mut wakes).await;
        for posting in [show(1, 1), show(1, 2), forget(1, 2), show(3, 1), show(2, 1)] {
            post(&one, "a", posting).await;
        }
        post(&one, "b", show(1, 1)).await;
        woken(&mut wakes).await;
        one.beat(&beat("eu-1", 1)).await.unwrap();
        let news = read(&two, &mut Cursor::default()).await;
        assert_eq!((news.heard.len(), news.beats.len(), news.rejected.len()), (1, 1, 0));
        assert_eq!(two.refuses().await.unwrap(), None);
        assert_eq!(two.forget(&"eu-1".into()).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn we_ask_for_no_right_that_we_do_not_use() {
    let redis = Redis::start();
    // What its start was waited for with is not ours.
    redis.command::<()>(&["CONFIG", "RESETSTAT"]);
    // A database that has to be selected.
    let url = format!("{}/1", redis.url());
    let (one, two) = (board_at(&url, "eu-1", None), board_at(&url, "eu-2", None));
    one.identity().await.unwrap();
    woken(&mut two.wake_ups()).await;
    for posting in [show(1, 1), show(1, 2), show(1, 2), forget(1, 2)] {
        post(&one, "a", posting).await;
    }
    one.beat(&beat("eu-1", 1)).await.unwrap();
    for board in [&one, &two] {
        read(board, &mut Cursor::default()).await;
    }
    two.forget(&"eu-1".into()).await.unwrap();
    let used: String = redis.command(&["INFO", "commandstats"]);
    let is_used = |right: &&str| used.contains(&format!("cmdstat_{right}:"));
    let asked = RIGHTS.split_whitespace().filter_map(|right| right.strip_prefix('+'));
    let unused: Vec<&str> = asked.filter(|right| !is_used(right)).collect();
    assert_eq!(unused, ["ping"], "and this after a connection was silent for a while");
}

#[tokio::test]
async fn beats_are_part_of_what_one_answer_may_hold() {
    let redis = Redis::start();
    let (one, two) = (board(&redis, "eu-1"), board(&redis, "eu-2"));
    let some: Vec<_> = (0..450).map(|number| (app(number), show(1, 1))).collect();
    one.post(&"a".into(), &some).await.unwrap();
    let said = Said { words: [(web(), "x".repeat(60_000))].into(), ..Said::default() };
    let leave = async |members: Range<u8>| {
        for number in members {
            let member = format!("us-{number}");
            board(&redis, &member).beat(&Heartbeat { said: said.clone(), ..beat(&member, 1) }).await.unwrap();
        }
    };
    for (members, records) in [(0..7, 2..450), (7..9, 1..2)] {
        leave(members).await;
        let news = two.read(&Cursor::default()).await.unwrap();
        assert!(news.more && records.contains(&news.heard.len()), "{} records", news.heard.len());
    }
    // However little room beats leave, the reader comes to the end.
    let mut cursor = Cursor::default();
    for heard in 1..=some.len() {
        // A beat stays for 30 s, and a busy machine takes longer to read so often.
        if heard % 50 == 0 {
            leave(0..9).await;
        }
        let news = two.read(&cursor).await.unwrap();
        assert_eq!((news.heard.len(), news.more), (1, heard < some.len()));
        cursor = news.cursor;
    }
}

#[tokio::test]
async fn an_encrypted_connection_needs_a_certificate_it_can_verify() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    certificates::make(directory.path());
    let redis = Redis::start_with(&["--tls-port", "0"]);
    // Redis cannot be asked to choose one: 0 means none.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (name, value) in [("tls-cert-file", file("server.pem")), ("tls-key-file", file("server.key"))] {
        redis.command::<()>(&["CONFIG", "SET", name, &value]);
    }
    redis.command::<()>(&[
        "CONFIG",
        "SET",
        "tls-ca-cert-file",
        &file("ca.pem"),
        "tls-auth-clients",
        "no",
        "tls-port",
        &port.to_string(),
    ]);

    let url = format!("rediss://localhost:{port}");
    let unknown = board_at(&url, "eu-1", None).identity().await.unwrap_err();
    assert_eq!(unknown.reason.map(Reason::name), Some("certificate"), "a label of allclear_board_failures_total");
    assert!(unknown.cause.starts_with("certificate: ") && unknown.cause.contains("redis.ca_file"), "{unknown}");
    let ca = std::fs::read(file("ca.pem")).unwrap();
    let trusting = |url: &str| RedisBoard::new(Server::trusting(url, &ca).unwrap(), "default", &"eu-1".into(), None);
    let known = trusting(&url);
    assert_eq!(known.identity().await.unwrap(), board(&redis, "eu-1").identity().await.unwrap());
    post(&known, "a", show(1, 1)).await;
    woken(&mut known.wake_ups()).await;
    let wrong = trusting(&format!("rediss://127.0.0.1:{port}")).identity().await.unwrap_err();
    assert!(wrong.cause.contains("not valid for name"), "{wrong}");
}

// A Sentinel answers at the address that people find in their manual, and holds no data.
#[tokio::test]
async fn a_real_sentinel_is_named_as_one() {
    let primary = Redis::start();
    // It writes to its file.
    let file = std::env::temp_dir().join(format!("allclear-sentinel-{}-{}.conf", std::process::id(), primary.port()));
    std::fs::write(&file, format!("sentinel monitor shop 127.0.0.1 {} 1\n", primary.port())).unwrap();
    let sentinel = Redis::start_with(&[&file.to_string_lossy(), "--sentinel"]);
    let board = board(&sentinel, "eu-1");
    let unknown = board.identity().await.unwrap_err();
    let posted = board.post(&"a".into(), &[(web(), show(1, 1))]).await.unwrap_err();
    for error in [unknown, posted] {
        let is_named = error.cause.contains("this is a Sentinel, which holds no data");
        assert!(is_named && error.retry == Retry::Never, "{error}");
    }
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn ten_thousand_records_are_posted_and_read_quickly() {
    let redis = Redis::start();
    let (one, two) = (board_at(&redis.url(), "eu-1", Some("key")), board_at(&redis.url(), "eu-2", Some("key")));
    let mut large = record(1, 1);
    large.conditions.insert("x".repeat(400 - encode(&large).unwrap().len()));
    let some: Vec<_> = (0..10_000).map(|number| (app(number), large.clone().into())).collect();
    let mut lap = Instant::now();
    let mut taken = || std::mem::replace(&mut lap, Instant::now()).elapsed();
    one.identity().await.unwrap();
    two.identity().await.unwrap();
    taken();
    for some in some.chunks(POSTINGS_MAX) {
        one.post(&"a".into(), some).await.unwrap();
    }
    let posted = taken();
    for some in some.chunks(POSTINGS_MAX) {
        one.post(&"a".into(), some).await.unwrap();
    }
    let again = taken();
    let mut cursor = Cursor::default();
    assert_eq!(read(&two, &mut cursor).await.heard.len(), 10_000);
    let heard = taken();
    assert_eq!(read(&two, &mut cursor).await.heard.len(), 0);
    println!(
        "10,000 records: posted in {posted:?}, again in {again:?}, read in {heard:?}, and nothing in {:?}",
        taken()
    );
}
