//! The endpoints for other programs, as anybody who reaches them can use them: the real controller in a small world. 127.0.0.1 is the
//! stranger, 127.0.0.2 the kubelet, 127.0.0.3 our pod.

use std::net::SocketAddr;
use std::time::Duration;

use allclear::demo::life::Life;
use sandbox::kubernetes::{Kind, Timings};
use sandbox::world::World;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::connect;

const KUBELET: &str = "127.0.0.2:0";
const POD: &str = "127.0.0.3:0";

/// How soon each probe must be answered. A kubelet of deploy/base waits 5 s.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// Probes that are sent during an attack.
const PROBES: usize = 9;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(45);

/// A controller that takes requests, and a Pipeline whose requests need a key.
async fn life(world: &World) -> Life {
    world.kubernetes.set_installed("allclear.dev", true);
    world.add_site("shop", "web", "registry.example.com/shop/web:1", "www.example.com", "E1").unwrap();
    world.kubernetes.settle();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "hooks"},
        "data": {"hmac-key": "aHVudGVyMg=="},
    });
    let pipeline = json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "metadata": {"namespace": "shop", "name": "web"},
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "environments": [{"name": "a", "targets": [{"namespace": "shop"}]}, {"name": "b", "targets": [{"namespace": "b"}]}],
            "promotion": {"manual": true, "strategy": {"notification": {}, "secretRef": {"name": "hooks"}}},
        },
    });
    for object in [secret, pipeline] {
        world.kubernetes.apply(object).unwrap();
    }
    let settings = [("ALLCLEAR__HTTP__LISTEN", POD), ("ALLCLEAR__HOOKS__LISTEN", "127.0.0.3:0")];
    let life = Life::start(world, &settings).await.unwrap();
    let began = Instant::now();
    while life.observe().await.workloads == 0 {
        assert!(began.elapsed() < PATIENCE, "it never saw its workload");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    life
}

/// The code of the answer to these bytes; 0 where there is none.
async fn raw(from: &str, to: SocketAddr, bytes: &[u8]) -> u16 {
    let Ok(mut stream) = connect(from, to).await else { return 0 };
    // A server that has refused already closes while it is written to.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    let answer = String::from_utf8_lossy(&answer);
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default()
}

async fn post(from: &str, to: SocketAddr, path: &str, headers: &str, body: &str) -> u16 {
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n");
    raw(from, to, format!("{head}{body}").as_bytes()).await
}

/// Sends a body without an end, until it is not taken any more.
async fn endless(to: SocketAddr, path: &str) {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 65_536, " ".repeat(65_536));
    while stream.write_all(chunk.as_bytes()).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// How many probes of the core are answered with 200 in time.
async fn probed(life: &Life) -> usize {
    let mut answered = 0;
    for path in ["/livez", "/readyz", "/metrics"].into_iter().cycle().take(PROBES) {
        let asked = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let code = timeout(ANSWERED_WITHIN, raw(KUBELET, life.probes(), asked.as_bytes())).await;
        answered += usize::from(code == Ok(200));
    }
    answered
}

/// Requests about Pipelines that the API server got, other than watches and the machine's own writes.
fn asked(world: &World) -> (usize, usize) {
    let seen = world.api.seen();
    let reads = seen.iter().filter(|one| one.method == "GET" && one.path.ends_with("/pipelines/web")).count();
    (reads, seen.iter().filter(|one| one.method == "PATCH").count())
}

fn marks(world: &World) -> serde_json::Value {
    world.kubernetes.get(Kind::Pipeline, "shop", "web").unwrap()["metadata"]["annotations"].clone()
}

// Attack: one address sends what it likes without a key, as fast as it can; then many addresses do.
// Faults: T18
#[tokio::test]
async fn a_flood_without_a_key_asks_the_api_server_little_and_takes_no_probe_its_answer() {
    let world = World::new(Timings::IMMEDIATE, None).await.unwrap();
    let life = life(&world).await;
    let to = life.hooks().unwrap();
    let (before, _) = asked(&world);
    let began = Instant::now();
    let path = "/promotion/shop/web/a";
    let flood = async {
        let mut codes = Vec::new();
        for _ in 0..600 {
            codes.push(post("127.0.0.1:0", to, path, "X-Signature: sha256=00\r\n", "{}").await);
        }
        codes
    };
    let (codes, answered) = tokio::join!(flood, probed(&life));
    let taken = codes.iter().filter(|code| **code == 401).count();
    // Twenty in each window of 30 s, of which a machine that is slow needs more.
    let windows = usize::try_from(began.elapsed().as_secs() / 30 + 2).unwrap();
    let most = 20 * windows;
    assert!(taken <= most && codes.iter().all(|code| [401, 429].contains(code)), "{taken} {codes:?}");
    let reads = asked(&world).0 - before;
    println!("T18: probes answered within 1 s in a flood of 600 requests {answered} (aim {PROBES})");
    println!("T18: reads of the API server for 600 requests without a key {reads} (aim {most} at most)");
    assert_eq!((answered, reads <= most), (PROBES, true), "{reads}");
    // Another client is served at once.
    assert_eq!(post("127.0.0.9:0", to, path, "", "{}").await, 401);
    let many = (10..250).map(|last| async move { post(&format!("127.0.1.{last}:0"), to, path, "", "{}").await });
    let (codes, answered) = tokio::join!(futures_util::future::join_all(many), probed(&life));
    assert!(codes.iter().all(|code| [401, 429, 0].contains(code)), "{codes:?}");
    assert_eq!(answered, PROBES);
    assert!(marks(&world).is_null() && asked(&world).1 == 0, "{}", marks(&world));
    life.stop().unwrap();
}

// Attack: bodies without an end, heads that never end, signatures of any size, paths that lead elsewhere.
// Faults: T18
#[tokio::test]
async fn what_never_ends_or_leads_elsewhere_is_refused_and_leaves_nothing() {
    let world = World::new(Timings::IMMEDIATE, None).await.unwrap();
    let life = life(&world).await;
    let to = life.hooks().unwrap();
    let mut codes = Vec::new();
    for (at, path) in [
        "/promotion/%2e%2e/web/a",
        "/promotion/../../api/v1/a",
        "/promotion/shop/%2e%2e%2f%2e%2e%2fsecrets/a",
        "/hooks/poke/pipeline/shop/web%3fwatch=1",
        "/hooks/poke/pipeline/shop%2fpipelines%2fweb/status",
        "//promotion/shop/web/a",
        "/hooks/poke/repo/shop/%2e%2e%2fweb",
    ]
    .iter()
    .enumerate()
    {
        codes.push(post(&format!("127.0.2.{}:0", at + 1), to, path, "", "{}").await);
    }
    assert_eq!(codes, [404; 7]);
    let huge = format!("X-Signature: sha256={}\r\n", "0".repeat(60_000));
    assert_eq!(post("127.0.3.1:0", to, "/promotion/shop/web/a", &huge, "{}").await, 401);
    let larger = format!("X-Signature: sha256={}\r\n", "0".repeat(1_000_000));
    assert!([0, 400, 413, 431].contains(&post("127.0.3.2:0", to, "/promotion/shop/web/a", &larger, "{}").await));
    // A body that says it is long, one that is and does not say so, and one that does not come.
    let declared =
        b"POST /promotion/shop/web/a HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 99999999999\r\n\r\n{";
    assert_eq!(raw("127.0.3.3:0", to, declared).await, 413);
    // The other doors take no bodies at all, and read on as little.
    for (door, to) in [("/promotion/shop/web/a", to), ("/livez", life.probes()), ("/", life.address())] {
        let began = Instant::now();
        timeout(PATIENCE, endless(to, door)).await.expect("it ends");
        println!("T18: an endless body to {door} was read for {:?} (aim 5 s)", began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(5), "{door}: {:?}", began.elapsed());
    }
    let mut slow = Vec::new();
    for number in 0..100 {
        let mut stream = connect(&format!("127.0.4.{}:0", number % 4 + 1), to).await.unwrap();
        let _ = stream.write_all(b"POST /promotion/shop/web/a HTTP/1.1\r\nhost: ").await;
        slow.push(stream);
        let mut stream = connect(&format!("127.0.4.{}:0", number % 4 + 1), to).await.unwrap();
        let _ = stream.write_all(b"POST /promotion/shop/web/a HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{").await;
        slow.push(stream);
    }
    let answered = probed(&life).await;
    let began = Instant::now();
    let code = post("127.0.5.1:0", to, "/promotion/shop/web/a", "", "{}").await;
    println!(
        "T18: probes answered within 1 s beside 200 slow requests {answered} (aim {PROBES}); another client's after {:?}",
        began.elapsed()
    );
    assert_eq!((answered, code), (PROBES, 401));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(marks(&world).is_null() && asked(&world).1 == 0, "{}", marks(&world));
    life.stop().unwrap();
}
