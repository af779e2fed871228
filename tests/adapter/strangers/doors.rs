//! Our HTTP doors, as any pod of the cluster can knock at them: the real controller in a small world. Loopback has many
//! addresses: 127.0.0.1 is the stranger's, 127.0.0.2 the kubelet's, 127.0.0.3 that of our pod.

use std::net::SocketAddr;
use std::time::Duration;

use allclear::demo::life::Life;
use sandbox::kubernetes::Timings;
use sandbox::world::World;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::connect;

const STRANGER: &str = "127.0.0.1:0";
const KUBELET: &str = "127.0.0.2:0";
const POD: &str = "127.0.0.3:0";

/// Connections of one stranger, as many as were seen to silence us.
const CONNECTIONS: usize = 400;

/// Probes that are sent while they are open.
const PROBES: usize = 9;

/// How soon each must be answered. A kubelet of deploy/base waits 5 s.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// Long enough for a busy machine; nothing here needs more than three seconds.
const PATIENCE: Duration = Duration::from_secs(45);

/// A controller whose probes are on an address of their own, as in a pod; it watches `shop/web`.
async fn life(world: &World) -> Life {
    world.add_site("shop", "web", "registry.example.com/shop/web:1", "www.example.com", "E1").unwrap();
    world.kubernetes.settle();
    let life = Life::start(world, &[("ALLCLEAR__HTTP__LISTEN", POD)]).await.unwrap();
    let began = Instant::now();
    while life.observe().await.workloads == 0 {
        assert!(began.elapsed() < PATIENCE, "it never saw its workload");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    life
}

/// The whole answer to one request.
async fn get(from: &str, to: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = connect(from, to).await?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Opens them all, and sends half a request on every other one.
async fn flood(to: SocketAddr) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for number in 0..CONNECTIONS {
        // Where the backlog is full, the stranger has what it wants.
        let Ok(Ok(mut stream)) = timeout(ANSWERED_WITHIN, connect(STRANGER, to)).await else { break };
        if number % 2 == 0 {
            // One that was closed already cannot be written to, which is as good.
            let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nhost: ").await;
        }
        open.push(stream);
    }
    open
}

/// How many probes of this path are answered with 200 in time.
async fn answered(from: &str, to: SocketAddr, path: &str) -> usize {
    let mut answered = 0;
    for _ in 0..PROBES {
        let answer = timeout(ANSWERED_WITHIN, get(from, to, path)).await;
        answered +=
            usize::from(answer.is_ok_and(|answer| answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))));
    }
    answered
}

/// How many connections of the metrics' door were closed for this one.
async fn closed(life: &Life, door: &str) -> usize {
    let metrics = get(KUBELET, life.probes(), "/metrics").await.unwrap();
    let of = format!("allclear_http_connections_closed_total{{door=\"{door}\"");
    let counts = metrics.lines().filter(|line| line.starts_with(&of));
    counts.filter_map(|line| line.rsplit_once(' ')?.1.parse::<usize>().ok()).sum()
}

// Attack: one pod opens 400 connections to a door and says nothing, or half a request.
// Faults: T7
#[tokio::test]
async fn four_hundred_idle_connections_to_either_door_take_no_probe_its_place() {
    let world = World::new(Timings::IMMEDIATE, None).await.unwrap();
    let life = life(&world).await;
    for (door, to, places) in [("probes", life.probes(), 8), ("page", life.address(), 64)] {
        let open = flood(to).await;
        let by_kubelet = answered(KUBELET, life.probes(), "/livez").await;
        let ready = answered(KUBELET, life.probes(), "/readyz").await;
        let by_neighbour = answered(STRANGER, life.probes(), "/livez").await;
        let shown = answered(STRANGER, life.address(), "/").await;
        println!(
            "T7: probes answered within 1 s, {CONNECTIONS} idle connections to the door {door}: {by_kubelet} (aim {PROBES})"
        );
        assert_eq!((by_kubelet, ready), (PROBES, PROBES), "{door}");
        // Whoever shares the stranger's address, as behind one that is translated, is let in too: idle ones make room.
        assert_eq!((by_neighbour, shown), (PROBES, PROBES), "{door}");
        let closed = closed(&life, door).await;
        assert!(open.len() == CONNECTIONS && closed >= CONNECTIONS - places, "{door}: {} open, {closed}", open.len());
    }
    life.stop().unwrap();
}

// Attack: a pod reads everything that the pod's address shows, to learn what other tenants run.
// Faults: T14
#[tokio::test]
async fn the_address_of_the_pod_tells_nothing_about_tenants_and_the_page_is_not_there() {
    let world = World::new(Timings::IMMEDIATE, None).await.unwrap();
    let life = life(&world).await;
    let page = get(STRANGER, life.address(), "/api/v1/state").await.unwrap();
    assert!(page.contains("\"workloads\": 1"), "{page}");
    let mut named = 0;
    for path in ["/", "/livez", "/readyz", "/api/v1/state", "/api/v1/state?x", "//api/v1/state", "/metrics"] {
        let answer = get(STRANGER, life.probes(), path).await.unwrap();
        let is_open = matches!(path, "/livez" | "/readyz" | "/metrics");
        assert_eq!(answer.starts_with("HTTP/1.1 200 "), is_open, "{path}: {answer}");
        // Metrics are for those that NetworkPolicy lets in: they may name namespaces.
        let secrets: &[&str] =
            if path == "/metrics" { &["www.example.com", "/web"] } else { &["www.example.com", "web", "shop"] };
        named += secrets.iter().filter(|secret| answer.contains(**secret)).count();
    }
    println!("T14: names of tenants told at the pod's address {named} (aim 0)");
    assert_eq!(named, 0);
    let beside = SocketAddr::new(life.probes().ip(), life.address().port());
    assert!(connect(STRANGER, beside).await.is_err(), "the page listens at the pod's address");
    life.stop().unwrap();
}
