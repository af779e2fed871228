//! T8: an honest rollout of a group with a key, while somebody who can write to every Redis of it does his worst.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::group::field::Field;
use crate::group::oracles::{Want, judge};
use crate::scene::{NAME, NAMESPACE};

/// Forged copies of each member's record, of workloads that there are and that there are not, and wake-ups, without a pause.
fn attack(urls: Vec<String>, members: Vec<String>, ends: Arc<AtomicBool>) -> usize {
    const SCRIPT: &str = "local stamp = redis.call('INCR', KEYS[1]) redis.call('ZADD', KEYS[2], stamp, ARGV[1]) \
                          redis.call('HSET', KEYS[3], 'seq', ARGV[3], 'rev', ARGV[3], 'phase', 'complete', 'body', ARGV[2], 'mac', ARGV[4]) \
                          return redis.call('PUBLISH', KEYS[4], ARGV[5])";
    let client = |url: &String| redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
    let mut connections: Vec<redis::Connection> = urls.iter().map(client).collect();
    let script = redis::Script::new(SCRIPT);
    let mut made = 0;
    while !ends.load(Ordering::Relaxed) {
        let member = &members[made % members.len()];
        let workload = match made % 3 {
            0 => format!("deployment/{NAMESPACE}/{NAME}"),
            _ => format!("deployment/{NAMESPACE}/forged-{}", made % 1_000),
        };
        let body = match made % 4 {
            0 => format!(r#"{{"r":{},"phase":"complete"}}"#, 1_000 + made),
            1 => "{\"r\":".to_owned(),
            2 => "\u{1b}[31m".repeat(2_000),
            _ => String::new(),
        };
        let key = |rest: String| format!("allclear:{{default}}:{rest}");
        for connection in &mut connections {
            let mut call = script.prepare_invoke();
            call.key(key(format!("stamp:{member}"))).key(key(format!("index:{member}")));
            call.key(key(format!("rec:{member}:{workload}"))).key(key("wake".to_owned()));
            call.arg(&workload)
                .arg(&body)
                .arg(1_000 + made)
                .arg("00".repeat(32))
                .arg(format!("{member} {workload} 999999"));
            let _: redis::RedisResult<redis::Value> = call.invoke(connection);
        }
        made += 1;
        // What it costs this machine to attack is not what is measured.
        std::thread::sleep(Duration::from_millis(2));
    }
    made
}

// Faults: T8
#[tokio::test]
async fn t8_a_group_with_a_key_purges_once_while_every_redis_of_it_is_attacked() {
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "0123456789abcdef0123456789abcdef").unwrap();
    let field = Field::with(&[("ALLCLEAR__GROUP__KEY_FILE", &key.path().display().to_string())]).await;
    let begin = Instant::now();
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    let alone = begin.elapsed();
    let urls = field.web.servers.iter().map(|server| server.url()).collect();
    let members = (0..3).map(|at| field[at].world.name.clone()).collect();
    let (ends, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let attacker = std::thread::spawn({
        let (ends, made) = (ends.clone(), made.clone());
        move || made.store(attack(urls, members, ends), Ordering::Relaxed)
    });
    let begin = Instant::now();
    field.roll_out("1.2");
    judge(&field, Want::purged(2, 3)).await;
    let attacked = begin.elapsed();
    ends.store(true, Ordering::Relaxed);
    attacker.join().unwrap();
    let made = made.load(Ordering::Relaxed);
    println!(
        "T8: a rollout of three with a key under {made} forged copies on each Redis: {attacked:?} (aim near {alone:?})"
    );
    assert!(made > 100, "there was an attack: {made}");
    assert!(attacked < alone + Duration::from_secs(15), "{attacked:?} beside {alone:?}");
    for at in 0..3 {
        let said = field.process(at).complaints().len();
        assert!(said < 40, "{said} lines of complaint: {}", field.process(at).tail());
    }
}
