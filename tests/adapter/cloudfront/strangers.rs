//! T13 and T16: answers that are too large, and answers whose fields are hostile. Whoever can answer in CloudFront's place gets
//! at most an error; the process does not end, and does not grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allclear::adapters::cloudfront::Timeouts;
use kernel::id::InvalidationId;
use purge::ports::{Cdn, CdnErrorClass};
use sandbox::cloudfront as stand_in;
use sandbox::http::{Action, Fault, Reply, When};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{World, adapter, id, paths, reference};

/// What a stranger's server would like to send: 1.3 GiB.
const ENDLESS_BYTES: u64 = 1_300 * 1024 * 1024;

/// What a process may keep of an answer, and what sockets hold on their way.
const TAKEN_BYTES_MAX: u64 = 40 * 1024 * 1024;

/// A server whose every answer is the beginning of a listing and then goes on; counts what it could get rid of.
async fn endless() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let taken = Arc::new(AtomicU64::new(0));
    let counted = taken.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let taken = counted.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = socket.read(&mut request).await;
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/xml\r\ncontent-length: {ENDLESS_BYTES}\r\n\r\n<DistributionList><Items>"
                );
                let _ = socket.write_all(head.as_bytes()).await;
                let block = b"<DistributionSummary><Id>E1</Id></DistributionSummary>".repeat(1_000);
                while taken.load(Ordering::Relaxed) < ENDLESS_BYTES && socket.write_all(&block).await.is_ok() {
                    taken.fetch_add(block.len() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    (url, taken)
}

/// The most memory this process ever had, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

// Faults: T13
#[tokio::test]
async fn t13_an_answer_of_any_size_costs_no_more_than_its_bound() {
    let (url, taken) = endless().await;
    let cdn = adapter(&url, "AKIDONE", Timeouts::default()).await;
    let before = peak_kib();
    let error = cdn.status(&id("E1"), &InvalidationId::from("I1")).await.unwrap_err();
    let (taken, grown) = (taken.load(Ordering::Relaxed), peak_kib() - before);
    eprintln!("T13: MiB read of an answer of 1.3 GiB: {} (aim 40); memory grown by {} MiB", taken >> 20, grown >> 10);
    assert!(taken < TAKEN_BYTES_MAX, "{taken}");
    assert!(error.message.ends_with("the answer has more than 16777216 bytes"), "{}", error.message);
    assert_eq!(error.class, CdnErrorClass::Ambiguous);
}

/// Texts for every field of an answer.
fn hostile() -> Vec<String> {
    let long = |text: &str, bytes: usize| text.repeat(bytes / text.len());
    vec![
        String::new(),
        " ".to_owned(),
        long("I", 65),
        long("I", 65_535),
        long("I", 70_000),
        long("é", 70_000),
        long("a/../", 10_000),
        "../../2020-05-31/distribution?x=1#y".to_owned(),
        "a&#13;&#10;x: y".to_owned(),
        "&#0;&#xFFFF;".to_owned(),
        "%00%zz".to_owned(),
        "<![CDATA[x]]><b>".to_owned(),
        "<a>".repeat(5_000),
        "-1".to_owned(),
        "99999999999999999999".to_owned(),
    ]
}

fn bodies(text: &str) -> Vec<String> {
    let distribution = format!(
        "<DistributionSummary><Id>{text}</Id><ARN>{text}</ARN><Status>{text}</Status><LastModifiedTime>{text}</LastModifiedTime>\
         <DomainName>{text}</DomainName><Aliases><Quantity>1</Quantity><Items><CNAME>{text}</CNAME></Items></Aliases><Origins>\
         <Quantity>1</Quantity><Items><Origin><Id>{text}</Id><DomainName>{text}</DomainName></Origin></Items></Origins>\
         <Enabled>{text}</Enabled></DistributionSummary>"
    );
    let batch = format!(
        "<InvalidationBatch><Paths><Quantity>{text}</Quantity><Items><Path>{text}</Path></Items></Paths>\
         <CallerReference>{text}</CallerReference></InvalidationBatch>"
    );
    vec![
        text.to_owned(),
        format!(
            "<DistributionList><Marker>{text}</Marker><NextMarker>{text}</NextMarker><MaxItems>1</MaxItems>\
             <IsTruncated>true</IsTruncated><Quantity>1</Quantity><Items>{distribution}</Items></DistributionList>"
        ),
        format!("<DistributionList><IsTruncated>{text}</IsTruncated><Quantity>{text}</Quantity></DistributionList>"),
        format!(
            "<InvalidationList><Marker>{text}</Marker><MaxItems>1</MaxItems><IsTruncated>true</IsTruncated><Quantity>1</Quantity>\
             <Items><InvalidationSummary><Id>{text}</Id><CreateTime>{text}</CreateTime><Status>{text}</Status>\
             </InvalidationSummary></Items></InvalidationList>"
        ),
        format!(
            "<Invalidation><Id>{text}</Id><Status>{text}</Status><CreateTime>{text}</CreateTime>{batch}</Invalidation>"
        ),
        format!(
            "<ErrorResponse><Error><Type>{text}</Type><Code>{text}</Code><Message>{text}</Message></Error>\
             <RequestId>{text}</RequestId></ErrorResponse>"
        ),
    ]
}

/// What every call makes of the same answer; a panic of the SDK ends the task, which is what the test looks for.
async fn call_all(world: &World) -> Vec<Result<(), String>> {
    let cdn = world.cdn.clone();
    let calls = tokio::spawn(async move {
        let (e1, name) = (id("E1"), reference("r"));
        let said = |error: purge::ports::CdnError| error.message;
        vec![
            cdn.distributions().await.map(drop).map_err(said),
            cdn.cache_tag_header(&e1).await.map(drop).map_err(said),
            cdn.create(&e1, &name, &paths(&["/*"])).await.map(drop).map_err(said),
            cdn.status(&e1, &InvalidationId::from("I1")).await.map(drop).map_err(said),
            cdn.find(&e1, &name).await.map(drop).map_err(said),
        ]
    });
    calls.await.expect("no call panics")
}

// Faults: T16
#[tokio::test]
async fn t16_no_answer_ends_the_process() {
    let world = World::new(stand_in::Options::default()).await;
    let mut calls = 0;
    for text in hostile() {
        for body in bodies(&text) {
            for status in [200, 400] {
                let header: String = text.chars().filter(char::is_ascii_graphic).take(8_000).collect();
                let mut reply = Reply::full(status, "text/xml", body.clone());
                for name in ["etag", "location", "x-amzn-requestid", "x-amzn-errortype", "retry-after"] {
                    reply = reply.header(name, header.clone());
                }
                world.server.clear_faults();
                world.server.inject(Fault::once(When::Before, Action::Answer(reply)).times(u32::MAX));
                for said in call_all(&world).await {
                    calls += 1;
                    let words = said.err().unwrap_or_default();
                    assert!(words.chars().count() < 3_000, "{} characters: {words:.300}", words.chars().count());
                }
            }
        }
    }
    eprintln!("T16: calls with hostile answers that panic, of {calls}: 0 (aim 0)");
}

// Faults: T16
#[tokio::test]
async fn t16_an_id_that_is_none_costs_itself_only() {
    let world = World::new(stand_in::Options::default()).await;
    let made = world.create("r", &["/a"]).await.unwrap();
    let list = format!(
        "<InvalidationList><Marker/><MaxItems>20</MaxItems><IsTruncated>false</IsTruncated><Quantity>3</Quantity><Items>\
         {0}<Id>{1}</Id>{2}{0}<Id>a/b?c</Id>{2}{0}<Id>{3}</Id>{2}</Items></InvalidationList>",
        "<InvalidationSummary><CreateTime>2026-01-01T00:00:00Z</CreateTime>",
        "I".repeat(70_000),
        "<Status>Completed</Status></InvalidationSummary>",
        made.id,
    );
    let answer = Action::Answer(Reply::full(200, "text/xml", list));
    world.server.inject(Fault::once(When::Before, answer).matching(|request| request.path.ends_with("/invalidation")));
    let found = world.cdn.find(&id("E1"), &reference("r")).await.unwrap();
    assert_eq!(found.map(|found| found.invalidation), Some(made.id));

    let recorded = world.cdn.status(&id("E1"), &InvalidationId::from("I".repeat(70_000).as_str())).await.unwrap_err();
    assert_eq!(recorded.class, CdnErrorClass::NoSuchInvalidation);
    assert!(recorded.message.len() < 200, "{}", recorded.message);
}
