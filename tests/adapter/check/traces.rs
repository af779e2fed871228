//! A collector of traces that cannot be used, and one that can.

use sandbox::receiver::Answer;

use super::*;

impl World {
    fn collector(&mut self, url: &str) {
        self.sections.insert("traces", format!("endpoint = \"{url}\"\nheaders = [\"authorization=hunter2\"]"));
    }
}

async fn collector(status: u16) -> (Arc<Receiver>, Server) {
    let receiver = Arc::new(Receiver::new());
    receiver.answer_always(Answer::status(status));
    (receiver.clone(), Server::start(receiver).await.unwrap())
}

#[tokio::test]
async fn a_collector_that_answers_is_good_and_gets_no_span() {
    let (receiver, server) = collector(200).await;
    let mut world = World::start().await;
    world.collector(&server.url());
    let report = world.report().await;
    assert_eq!(marked(&report, Mark::Failed), [""; 0], "{report}");
    said(&report, "traces-collector", "takes spans");
    assert!(!report.to_string().contains("hunter2"), "{report}");
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].request.path, "/v1/traces");
    assert_eq!(received[0].request.header("authorization"), Some("hunter2"));
    let body: serde_json::Value = serde_json::from_slice(&received[0].request.body).unwrap();
    assert_eq!(body, json!({"resourceSpans": []}));
}

#[tokio::test]
async fn a_collector_that_is_away_is_named() {
    let mut world = World::start().await;
    world.collector("http://127.0.0.1:9/v1/traces");
    let report = world.report().await;
    assert_eq!(marked(&report, Mark::Failed), ["traces-collector"], "{report}");
    said(&report, "traces-collector", "no connection");
}

#[tokio::test]
async fn a_collector_that_wants_other_headers_is_named() {
    let (_, server) = collector(401).await;
    let mut world = World::start().await;
    world.collector(&server.url());
    let report = world.report().await;
    assert_eq!(marked(&report, Mark::Failed), ["traces-collector"], "{report}");
    said(&report, "traces-collector", "answered 401");
    said(&report, "traces-collector", "traces.headers");
}

#[tokio::test]
async fn where_nothing_is_traced_there_is_no_line_about_it() {
    let world = World::start().await;
    let report = world.report().await;
    assert!(report.findings.iter().all(|found| found.check.id != "traces-collector"), "{report}");
}
