//! What becomes of every failure of a Redis (faults R1 to R6 and R11).

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use purge::ports::{Board, Cursor, PortError, Posted, Reason, Retry};
use support::log::listen;
use support::redis::{Address, Redis};
use tokio::net::{TcpListener, TcpStream};

use super::Bench as _;
use super::contract::{all, beat, heard, post, read, show, web, woken};
use super::redis::{KEY, board, board_at};

async fn failure(board: &dyn Board, revision: u64) -> PortError {
    board.post(&"a".into(), &[(web(), show(1, revision))]).await.expect_err("a failure was expected")
}

#[track_caller]
fn assert_refused(error: &PortError, reason: &str, retry: Retry) {
    assert!(error.cause.starts_with(&format!("{reason}: ")), "{error}");
    assert_eq!(error.retry, retry, "{error}");
    assert_eq!(error.reason.map(Reason::name), Some(reason), "what is counted: {error}");
}

/// Calls until it works again: the first call may be what notices that the connection is lost.
async fn again<T>(call: impl AsyncFn() -> Result<T, PortError>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    }
}

// Faults: R2, R3
#[tokio::test]
async fn a_server_that_restarts_empty_is_another_one_and_is_filled_again() {
    let mut redis = Redis::start();
    let (one, two) = (board(&redis, "eu-1"), board(&redis, "eu-2"));
    let mut wakes = two.wake_ups();
    woken(&mut wakes).await;
    post(&one, "a", show(1, 1)).await;
    woken(&mut wakes).await;
    let mut cursor = Cursor::default();
    assert_eq!(read(&two, &mut cursor).await.heard.len(), 1);
    let before = one.identity().await.unwrap();
    redis.kill();
    let error = one.read(&Cursor::default()).await.unwrap_err();
    assert_eq!(error.retry, Retry::Later, "{error}");
    redis.start_again();
    assert_ne!(again(|| one.identity()).await, before);
    assert!(again(|| one.read(&cursor)).await.lost);
    assert_eq!(post(&one, "a", show(1, 1)).await, Posted::Current);
    again(|| two.identity()).await;
    assert_eq!(read(&two, &mut cursor).await.heard, [heard("a", show(1, 1))]);
    // Connected again by itself: nothing was posted that it could have been woken by before.
    woken(&mut wakes).await;
}

// Faults: R1
#[tokio::test]
async fn a_paused_server_costs_little_time_and_its_late_writes_change_nothing() {
    let redis = Redis::start();
    let (one, two) = (board(&redis, "eu-1"), board(&redis, "eu-2"));
    post(&one, "a", show(1, 1)).await;
    again(|| two.identity()).await;
    redis.pause();
    let start = Instant::now();
    assert_refused(&failure(&one, 2).await, "timeout", Retry::Later);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    redis.resume();
    let three = [(web(), show(1, 3))];
    let a = "a".into();
    // Written by a newer connection, before or after what was sent on the old one.
    again(|| one.post(&a, &three)).await;
    assert_eq!(all(&two).await, [heard("a", show(1, 3))]);
    assert!(!read(&one, &mut Cursor::default()).await.lost);
}

/// A way to `port` on which connections can go dead: both ends stay open, and nothing comes through any more. Those made
/// later work.
async fn way_to(port: u16) -> (String, Arc<tokio::sync::Notify>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let cut = Arc::new(tokio::sync::Notify::new());
    let notify = Arc::clone(&cut);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let notify = Arc::clone(&notify);
            tokio::spawn(async move {
                let mut far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    () = notify.notified() => std::future::pending().await,
                }
            });
        }
    });
    (url, cut)
}

#[tokio::test]
async fn a_connection_that_went_dead_silently_is_left_after_one_call() {
    let redis = Redis::start();
    let (url, cut) = way_to(redis.port()).await;
    let one = board_at(&url, "eu-1", None);
    post(&one, "a", show(1, 1)).await;
    cut.notify_waiters();
    assert_refused(&failure(&one, 2).await, "timeout", Retry::Later);
    assert_eq!(post(&one, "a", show(1, 3)).await, Posted::Current);
}

#[tokio::test]
async fn a_half_open_connection_is_noticed_by_whoever_listens() {
    let redis = Redis::start();
    let mut wakes = board(&redis, "eu-1").wake_ups();
    woken(&mut wakes).await;
    redis.pause();
    // The flow works only while somebody waits for it. Nothing is said in this time: a paused server says nothing.
    assert!(tokio::time::timeout(Duration::from_secs(12), wakes.next()).await.is_err());
    redis.resume();
    woken(&mut wakes).await;
}

#[tokio::test]
async fn a_channel_that_is_taken_away_is_told_once_for_each_outage() {
    let (log, _listening) = listen();
    let redis = Redis::start();
    let allow = |channels: &[&str]| {
        redis.command::<()>(&[&["ACL", "SETUSER", "poor", "on", ">word", "~*", "+@all"], channels].concat());
    };
    allow(&["&*"]);
    let url = format!("redis://poor:word@127.0.0.1:{}", redis.port());
    let mut wakes = board_at(&url, "eu-1", None).wake_ups();
    woken(&mut wakes).await;
    for outages in 1..=2 {
        // Redis ends the connections of whoever listens without the right to.
        allow(&["resetchannels"]);
        let deadline = Instant::now() + Duration::from_secs(20);
        while log.times("noticed later") < outages {
            assert!(Instant::now() < deadline, "it is not told");
            assert!(tokio::time::timeout(Duration::from_millis(500), wakes.next()).await.is_err());
        }
        assert!(tokio::time::timeout(Duration::from_millis(1_500), wakes.next()).await.is_err());
        assert_eq!(log.times("noticed later"), outages, "once, however often it is tried");
        allow(&["&*"]);
        woken(&mut wakes).await;
    }
}

// Faults: R5
#[tokio::test]
async fn refusals_of_the_server_are_reported_by_name() {
    let redis = Redis::start();
    let one = board(&redis, "eu-1");
    post(&one, "a", show(1, 1)).await;

    redis.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_refused(&failure(&one, 2).await, "OOM", Retry::Later);
    assert_refused(&one.beat(&beat("eu-1", 1)).await.unwrap_err(), "OOM", Retry::Later);
    assert!(!one.read(&Cursor::default()).await.unwrap().lost);
    redis.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);

    redis.command::<()>(&["SCRIPT", "FLUSH"]);
    assert_eq!(post(&one, "a", show(1, 2)).await, Posted::Current);
    redis.command::<()>(&["SCRIPT", "FLUSH"]);
    assert_eq!(all(&board(&redis, "eu-2")).await, [heard("a", show(1, 2))]);

    redis.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_refused(&failure(&one, 3).await, "READONLY", Retry::Later);
    redis.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(post(&one, "a", show(1, 3)).await, Posted::Current);

    redis.command::<()>(&["SET", "allclear:{default}:stamp:eu-1", "x"]);
    assert_eq!(post(&one, "a", show(1, 3)).await, Posted::Current, "a stamp that is none is a lost one");
    assert!(read(&one, &mut Cursor::default()).await.lost);
    redis.command::<()>(&["DEL", "allclear:{default}:members"]);
    redis.command::<()>(&["SET", "allclear:{default}:members", "x"]);
    assert_refused(&failure(&one, 4).await, "WRONGTYPE", Retry::Never);
    assert_refused(&one.read(&Cursor::default()).await.unwrap_err(), "WRONGTYPE", Retry::Never);
    redis.wipe();
}

#[tokio::test]
async fn missing_rights_and_wrong_passwords_are_reported_by_name_and_never_shown() {
    let redis = Redis::start();
    let rule = ["ACL", "SETUSER", "poor", "on", ">secret-word", "~other:*", "+@all"];
    redis.command::<()>(&rule);
    let poor = board_at(&format!("redis://poor:secret-word@127.0.0.1:{}", redis.port()), "eu-1", None);
    for error in [
        failure(&poor, 1).await,
        poor.read(&Cursor::default()).await.unwrap_err(),
        poor.beat(&beat("eu-1", 1)).await.unwrap_err(),
    ] {
        assert_refused(&error, "NOPERM", Retry::Never);
        assert!(error.cause.contains("&allclear:* ") && error.cause.contains("+publish"), "{error}");
    }
    let wrong = board_at(&format!("redis://poor:other-word@127.0.0.1:{}", redis.port()), "eu-1", None);
    let error = wrong.identity().await.unwrap_err();
    assert_refused(&error, "WRONGPASS", Retry::Never);
    for shown in [format!("{wrong:?}"), format!("{error:?}"), error.to_string()] {
        assert!(!shown.contains("word@") && !shown.contains("other-word"), "{shown}");
    }
    redis.command::<()>(&["CONFIG", "SET", "requirepass", "secret-word"]);
    assert_refused(&failure(&board(&redis, "eu-1"), 1).await, "NOAUTH", Retry::Never);
}

// Faults: R4
#[tokio::test]
async fn after_a_failover_one_call_is_refused_and_the_next_is_on_the_new_primary() {
    let (old, new) = (Redis::start(), Redis::start());
    let address = Address::of(&old).await;
    // Each has a connection of its own to the old one.
    let [poster, beater, cleaner] = ["eu-1", "eu-2", "eu-3"].map(|member| board_at(address.url(), member, None));
    for board in [&poster, &beater, &cleaner] {
        post(board, "a", show(1, 1)).await;
    }
    address.fail_over(&old, &new).await;

    let shown = |redis: &Redis| redis.command::<String>(&["HGET", KEY, "rev"]);
    assert_refused(&failure(&poster, 2).await, "READONLY", Retry::Later);
    assert_eq!([shown(&old), shown(&new)], ["1", "1"], "what was refused is nowhere");
    assert_eq!(post(&poster, "a", show(1, 2)).await, Posted::Current);
    assert_eq!(shown(&new), "2");

    let exists = |key: &str| new.command::<bool>(&["EXISTS", &format!("allclear:{{default}}:{key}")]);
    assert_refused(&beater.beat(&beat("eu-2", 1)).await.unwrap_err(), "READONLY", Retry::Later);
    assert!(!exists("hb:eu-2"));
    beater.beat(&beat("eu-2", 1)).await.unwrap();
    assert!(exists("hb:eu-2"));

    assert_refused(&cleaner.forget(&"eu-3".into()).await.unwrap_err(), "READONLY", Retry::Later);
    assert!(exists("index:eu-3"));
    assert_eq!(cleaner.forget(&"eu-3".into()).await.unwrap(), 1);
    assert!(!exists("index:eu-3"));
}

// Faults: R4
#[tokio::test]
async fn whoever_only_looks_follows_to_the_new_primary() {
    let (old, new) = (Redis::start(), Redis::start());
    let address = Address::of(&old).await;
    let one = board_at(address.url(), "eu-1", None);
    assert_eq!(one.refuses().await.unwrap(), None);
    address.fail_over(&old, &new).await;
    assert!(one.refuses().await.unwrap().unwrap().starts_with("READONLY: "), "so it is, over there");
    assert_eq!(one.refuses().await.unwrap(), None);
}

// Faults: R4
#[tokio::test]
async fn whoever_listens_follows_to_the_new_primary() {
    let (old, new) = (Redis::start(), Redis::start());
    let address = Address::of(&old).await;
    let two = board_at(address.url(), "eu-2", None);
    let mut wakes = two.wake_ups();
    woken(&mut wakes).await;
    two.beat(&beat("eu-2", 1)).await.unwrap();
    address.fail_over(&old, &new).await;
    // Cut off from the new one as well, the old one hears of nothing that is said there.
    old.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_refused(&two.beat(&beat("eu-2", 2)).await.unwrap_err(), "READONLY", Retry::Later);
    woken(&mut wakes).await;
    post(&board(&new, "eu-1"), "a", show(1, 1)).await;
    woken(&mut wakes).await;
}

/// A server that loads its data for some seconds: it becomes the replica of one that has some, slowly.
async fn loading(full: &Redis) -> Redis {
    full.command::<()>(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
    full.command::<()>(&["EVAL", "for i = 1, 3000 do redis.call('SET', i, redis.sha1hex(i)) end", "0"]);
    let primary = full.port().to_string();
    // In microseconds for each key, and in bytes between two looks at what clients ask.
    let slowly = ["--key-load-delay", "6000", "--loading-process-events-interval-bytes", "1024"];
    let redis = Redis::start_with(&[&slowly[..], &["--replicaof", "127.0.0.1", &primary]].concat());
    redis.until(&["GET", "1"], "LOADING").await;
    redis
}

// Faults: R4
#[tokio::test]
async fn whatever_a_server_refuses_the_next_call_goes_where_its_address_leads_then() {
    let (well, full) = (Redis::start(), Redis::start());
    let dead_primary = ["--replicaof", "127.0.0.1", "1"];
    let ill = [
        ("READONLY", false, Redis::start_with(&dead_primary)),
        ("MASTERDOWN", true, Redis::start_with(&[&dead_primary[..], &["--replica-serve-stale-data", "no"]].concat())),
        ("CLUSTERDOWN", true, Redis::start_with(&["--cluster-enabled", "yes"])),
        ("CLUSTERDOWN", false, Redis::start_with(&["--cluster-enabled", "yes"])),
        ("NOREPLICAS", false, Redis::start_with(&["--min-replicas-to-write", "1"])),
        ("OOM", false, Redis::start_with(&["--maxmemory", "1"])),
        ("LOADING", true, loading(&full).await),
    ];
    for (name, reads, ill) in ill {
        let address = Address::of(&ill).await;
        let one = board_at(address.url(), "eu-1", None);
        let call = async || {
            if reads {
                one.read(&Cursor::default()).await.map(drop)
            } else {
                one.beat(&beat("eu-1", 1)).await.map(drop)
            }
        };
        assert_refused(&call().await.unwrap_err(), name, Retry::Later);
        address.lead_to(&well);
        assert_eq!(call().await, Ok(()), "{name}");
    }
}

// Faults: R4
#[tokio::test]
async fn a_server_that_did_not_let_us_in_is_asked_again() {
    let redis = Redis::start();
    let password =
        |word: &str| redis.command::<()>(&["ACL", "SETUSER", "poor", "on", "resetpass", word, "~*", "&*", "+@all"]);
    password(">other-word");
    let one = board_at(&format!("redis://poor:word@127.0.0.1:{}", redis.port()), "eu-1", None);
    assert_refused(&failure(&one, 1).await, "WRONGPASS", Retry::Never);
    password(">word");
    assert_eq!(post(&one, "a", show(1, 1)).await, Posted::Current);
}

#[tokio::test]
async fn a_server_that_keeps_refusing_is_not_connected_to_with_every_call() {
    let redis = Redis::start_with(&["--replicaof", "127.0.0.1", "1"]);
    let address = Address::of(&redis).await;
    let one = board_at(address.url(), "eu-1", None);
    let start = Instant::now();
    for _ in 0..200 {
        assert_refused(&one.beat(&beat("eu-1", 1)).await.unwrap_err(), "READONLY", Retry::Later);
    }
    // One for the first call, one for the second, and then one a second.
    let (connections, took) = (u64::try_from(address.connections()).unwrap(), start.elapsed());
    assert!((2..=2 + took.as_secs()).contains(&connections), "{connections} in {took:?}");
}
