//! Redis is paused, killed, emptied, set back, ill, forged or slow (rows R1–R6, R10, R11). It is never the memory, so each
//! of them costs time and nothing else.

use std::time::Duration;

use futures_util::FutureExt;
use sandbox::http::{Action, Fault, When};
use sandbox::proxy::Mode;

use crate::group::field::Field;
use crate::group::kills::is_store;
use crate::group::oracles::{Want, judge, judge_one_more, words};
use crate::group::table::{Outcome, Row};
use crate::scene::{NAME, NAMESPACE};

pub fn rows() -> Vec<Row> {
    vec![
        Row::new("R1", "Redis stands still: one, then all", || r1().boxed_local()),
        Row::new("R2", "Redis is killed and comes back empty", || r2().boxed_local()),
        Row::new("R3", "FLUSHALL at every step, on one and on all", || r3().boxed_local()),
        Row::new("R4", "Redis has lost its last writes: a torn AOF", || r4().boxed_local()),
        Row::new("R5", "OOM, READONLY, NOPERM, BUSY, NOSCRIPT, WRONGTYPE", || r5().boxed_local()),
        Row::new("R6", "Redis evicts every key", || r6().boxed_local()),
        Row::new("R10", "records that were forged or damaged", || r10().boxed_local()),
        Row::new("R11", "a Redis that takes 2 s for everything", || r11().boxed_local()),
    ]
}

/// How long a group that cannot purge is watched not to.
const PATIENTLY: Duration = Duration::from_secs(2);

/// The key of a member's copy of the workload.
fn copy_of(member: &str) -> String {
    format!("allclear:{{default}}:rec:{member}:deployment/{NAMESPACE}/{NAME}")
}

fn say(field: &Field, server: usize, words: &[&str]) -> String {
    field.web.servers[server].say(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

async fn r1() -> Outcome {
    let field = Field::new().await;
    field.web.servers[1].pause().expect("it can be stopped");
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    field.web.servers[1].resume().expect("it goes on");

    field.web.servers.iter().for_each(|server| server.pause().expect("it can be stopped"));
    field.roll_out("1.2");
    let still = async |field: &Field| field.purges().len() == 1;
    field.holds_for(PATIENTLY, "nobody hears of anybody", still).await;
    let told = words(&field, 0).await;
    field.web.servers.iter().for_each(|server| server.resume().expect("it goes on"));
    judge(&field, Want::purged(2, 3)).await;
    assert!(told.contains("Redis") || told.contains("127.0.0.1"), "it says what it waits for: {told}");
    Outcome::passed("one: others carried it; all: waited, then purged; late writes changed nothing")
}

async fn r2() -> Outcome {
    let mut field = Field::new().await;
    field.web.servers.iter_mut().for_each(|server| server.kill());
    field.roll_out("1.1");
    let still = async |field: &Field| field.purges().is_empty();
    field.holds_for(PATIENTLY / 2, "nobody hears of anybody", still).await;
    field.web.servers.iter_mut().for_each(|server| server.start_again().expect("it starts"));
    judge(&field, Want::purged(1, 2)).await;
    field.web.servers[0].start_again().expect("it starts");
    field.roll_out("1.2");
    judge(&field, Want::purged(2, 3)).await;
    Outcome::passed("all killed during a rollout, one before the next: everything was published again")
}

/// Every store of any member is followed by FLUSHALL: the copies of all steps are lost, each at another moment.
async fn r3() -> Outcome {
    let mut flushed = [0, 0];
    for (round, servers) in [1..2, 0..3].into_iter().enumerate() {
        let field = Field::new().await;
        field.inject_everywhere(
            || Fault::once(When::After, Action::Delay(Duration::from_millis(30))).times(40),
            is_store,
        );
        field.roll_out("1.1");
        let mut stores = 0;
        let deadline = std::time::Instant::now() + support::process::PATIENCE;
        while !crate::group::oracles::all_over(&field, 2) {
            assert!(std::time::Instant::now() < deadline, "it does not end\n{}", field.tell().await);
            let count: u64 = field.members.iter().map(|member| member.world.kubernetes.version()).sum();
            if count != stores && flushed[round] < 60 {
                stores = count;
                flushed[round] += 1;
                servers.clone().for_each(|server| drop(say(&field, server, &["FLUSHALL"])));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        judge(&field, Want::purged(1, 2)).await;
    }
    Outcome::passed(format!("one Redis emptied {} times in a rollout, all three {} times", flushed[0], flushed[1]))
}

async fn r4() -> Outcome {
    let options = ["--appendonly", "yes", "--appendfsync", "everysec"];
    let mut field = Field::of(3, Some(Duration::from_millis(150)), &options).await;
    field.start().await;
    field.roll_out("1.1");
    let still = async |field: &Field| field.all_voted(2);
    field.wait_until("everybody has voted", still).await;
    for server in &mut field.web.servers {
        server.kill();
        let log = server.directory().join("appendonlydir/appendonly.aof.1.incr.aof");
        let bytes = std::fs::read(&log).expect("there is a log");
        std::fs::write(&log, &bytes[..bytes.len() * 2 / 3]).expect("it is torn");
        server.start_again().expect("it starts from what is left");
    }
    judge(&field, Want::purged(1, 2)).await;
    field.roll_out("1.2");
    judge(&field, Want::purged(2, 3)).await;
    Outcome::passed("a third of all three logs lost; set back, and brought up to date")
}

/// What one Redis may suffer from, and how it is brought about and ended.
struct Ill {
    name: &'static str,
    falls: &'static [&'static [&'static str]],
    recovers: &'static [&'static [&'static str]],
}

const ILLS: [Ill; 5] = [
    Ill {
        name: "OOM",
        falls: &[&["CONFIG", "SET", "maxmemory-policy", "noeviction"], &["CONFIG", "SET", "maxmemory", "1"]],
        recovers: &[&["CONFIG", "SET", "maxmemory", "0"]],
    },
    Ill { name: "READONLY", falls: &[&["REPLICAOF", "127.0.0.1", "9"]], recovers: &[&["REPLICAOF", "NO", "ONE"]] },
    Ill {
        name: "NOPERM",
        falls: &[&["ACL", "SETUSER", "default", "-@all", "+acl", "+auth"]],
        recovers: &[&["ACL", "SETUSER", "default", "+@all"]],
    },
    Ill { name: "NOSCRIPT", falls: &[&["SCRIPT", "FLUSH"]], recovers: &[] },
    Ill {
        name: "connections killed",
        falls: &[&["CLIENT", "KILL", "TYPE", "normal"], &["CLIENT", "KILL", "TYPE", "pubsub"]],
        recovers: &[],
    },
];

async fn r5() -> Outcome {
    let field = Field::new().await;
    let mut names = Vec::new();
    for Ill { name, falls, recovers } in &ILLS {
        falls.iter().for_each(|command| drop(say(&field, 1, command)));
        judge_one_more(&field).await;
        recovers.iter().for_each(|command| drop(say(&field, 1, command)));
        names.push(*name);
    }
    // Somebody else's data under our own key, which is not ours to delete.
    let key = copy_of(&field[0].world.name);
    say(&field, 1, &["DEL", &key]);
    say(&field, 1, &["SET", &key, "somebody else's"]);
    judge_one_more(&field).await;
    assert!(say(&field, 1, &["GET", &key]).contains("somebody else's"), "it was left alone");
    names.push("WRONGTYPE");
    say(&field, 1, &["DEL", &key]);

    let busy = std::thread::spawn({
        let address = field.web.servers[1].address();
        move || endless_script(address)
    });
    judge_one_more(&field).await;
    say(&field, 1, &["SCRIPT", "KILL"]);
    drop(busy.join());
    names.push("BUSY");
    Outcome::Partly(format!("{}: the others carried it; MOVED, LOADING, NOAUTH: not run here", names.join(", ")))
}

/// Keeps Redis busy until it is told to stop.
fn endless_script(address: std::net::SocketAddr) {
    use std::io::{Read, Write};
    let Ok(mut stream) = std::net::TcpStream::connect(address) else { return };
    let password = crate::group::field::PASSWORD;
    let _ = write!(stream, "AUTH {password}\r\nCONFIG SET busy-reply-threshold 50\r\nEVAL \"while true do end\" 0\r\n");
    let _ = stream.set_read_timeout(Some(support::process::PATIENCE));
    let mut heard = [0; 1024];
    // The answers to the first two, and then the end of the third.
    while stream
        .read(&mut heard)
        .is_ok_and(|length| length > 0 && !heard[..length].windows(4).any(|word| word == b"-ERR"))
    {}
}

async fn r6() -> Outcome {
    let field = Field::new().await;
    let evict = |field: &Field| {
        for server in 0..field.web.servers.len() {
            // With this policy and no room every key goes, ours too; then there is room again.
            say(field, server, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
            say(field, server, &["CONFIG", "SET", "maxmemory", "1"]);
            say(field, server, &["CONFIG", "SET", "maxmemory", "0"]);
        }
    };
    evict(&field);
    let gone = say(&field, 1, &["EXISTS", &copy_of(&field[1].world.name)]);
    field.roll_out("1.1");
    evict(&field);
    judge(&field, Want::purged(1, 2)).await;
    evict(&field);
    field.roll_out("1.2");
    judge(&field, Want::purged(2, 3)).await;
    Outcome::Partly(format!(
        "evicted three times ({} of ours left); that `check` warns of the policy: not run",
        gone.trim()
    ))
}

/// A record that says what its member did not: with a key it is not believed, and somebody is told.
async fn r10() -> Outcome {
    let mut field = Field::prepare().await;
    let key = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(key.path(), "0123456789abcdef0123456789abcdef").expect("it can be written");
    field.set(&[("ALLCLEAR__GROUP__KEY_FILE", &key.path().display().to_string())]);
    field.start().await;
    field[1].freeze();
    field.roll_out("1.1");
    let stored = async |field: &Field| (0..3).all(|at| field[at].record().is_some_and(|record| record.seq.0 == 2));
    field.wait_until("everybody has seen the change", stored).await;
    let complete = async |field: &Field| field[0].record().is_some_and(|record| record.phase.name() == "complete");
    field.wait_until("two are complete", complete).await;
    // Somebody says that the second is complete as well, in every Redis; and damages the first one's record.
    let mut lie = field[1].record().expect("there is one");
    lie.phase = purge::records::record::Phase::Complete;
    lie.revision += 1_000;
    let body = serde_json::to_string(&lie).expect("it is JSON");
    for server in 0..field.web.servers.len() {
        let (liar, damaged) = (copy_of(&field[1].world.name), copy_of(&field[0].world.name));
        say(&field, server, &["HSET", &liar, "body", &body, "rev", &lie.revision.to_string()]);
        say(&field, server, &["HSET", &damaged, "body", "{\"r\":", "rev", "999999"]);
        for member in [0, 1] {
            announce(&field, server, &field[member].world.name);
        }
    }
    let rejected = async |field: &Field| {
        let boards = field.process(2).state().await["agreement"]["boards"].clone();
        boards.as_array().is_some_and(|boards| boards.iter().any(|board| board["rejected"].as_u64() > Some(0)))
    };
    field.wait_until("the third has read it and counts it as rejected", rejected).await;
    let still = async |field: &Field| field.purges().is_empty();
    field.holds_for(PATIENTLY, "a lie is not believed", still).await;
    field[1].thaw();
    judge(&field, Want::purged(1, 2)).await;
    Outcome::passed("a forged completion and a damaged body: not believed, and replaced by what is true")
}

/// Makes everybody read a member's copy again, as a change of it would.
fn announce(field: &Field, server: usize, member: &str) {
    const SCRIPT: &str = "local stamp = redis.call('INCR', KEYS[1]) redis.call('ZADD', KEYS[2], stamp, ARGV[1]) \
                          return redis.call('PUBLISH', KEYS[3], ARGV[2])";
    let key = |rest: &str| format!("allclear:{{default}}:{rest}");
    let (stamp, index, wake) = (key(&format!("stamp:{member}")), key(&format!("index:{member}")), key("wake"));
    let workload = format!("deployment/{NAMESPACE}/{NAME}");
    let text = format!("{member} {workload} 999999");
    let answer = say(field, server, &["EVAL", SCRIPT, "3", &stamp, &index, &wake, &workload, &text]);
    assert!(answer.contains(':'), "{answer}");
}

async fn r11() -> Outcome {
    let field = Field::new().await;
    (0..3).for_each(|from| field.web.set(from, 1, Mode::Delay(Duration::from_secs(1))));
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    (0..3).for_each(|from| field.web.set(from, 1, Mode::Trickle(64, Duration::from_millis(50))));
    field.roll_out("1.2");
    judge(&field, Want::purged(2, 3)).await;
    Outcome::Partly(
        "2 s for a round trip, then 1.3 kB/s: the others carried it; 10,000 keys of 64 KiB: not run".to_owned(),
    )
}
