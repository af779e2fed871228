//! What the page and the API show of Pipelines.

use super::*;
use crate::actors::observation::{LeafSeen, PromotingSeen};
use kernel::id::{Environment, PipelineId, PromotionSeq, Revision};
use objects::pipeline::view::{EnvironmentView, PromotionView, QuestionView, RequestView, TargetView, View};
use objects::status::ConditionView;

/// A Pipeline of which `name` stands wherever a text can.
pub(super) fn promoting(name: &str) -> PromotingSeen {
    let revision = Some(Revision(name.to_owned()));
    let target = |ready, error: Option<&str>| TargetView {
        name: name.to_owned(),
        revision: revision.clone(),
        ready,
        error: error.map(str::to_owned),
    };
    let promotion = PromotionView {
        seq: PromotionSeq(3),
        revision: Revision("1.3".to_owned()),
        from: revision.clone(),
        phase: "Waiting".to_owned(),
        open: true,
        message: name.to_owned(),
        soak_ends_ms: Some(1_700_000_000_000),
        started_ms: None,
        approved: Some((name.to_owned(), 0)),
        chosen: None,
    };
    let question = QuestionView {
        kind: "Approval".to_owned(),
        words: name.to_owned(),
        ticket: "0123456789ab".to_owned(),
        revision: Revision("1.3".to_owned()),
        since_ms: 1_700_000_000_000,
    };
    let staging = EnvironmentView {
        name: Environment("staging".to_owned()),
        revisions: revision.iter().cloned().collect(),
        next: format!("moves on to {name}"),
        targets: vec![target(true, None)],
        ..EnvironmentView::default()
    };
    let prod = EnvironmentView {
        name: Environment(name.to_owned()),
        waits: Some(format!("waits for {name}")),
        next: "goes on".to_owned(),
        promotion: Some(promotion),
        question: Some(question),
        request: Some(RequestView { url: "https://git.example.com/pull/7".to_owned(), number: 7 }),
        targets: vec![target(false, Some(name))],
        ..EnvironmentView::default()
    };
    let view = View {
        id: PipelineId::new("shop", name),
        suspended: Some(name.to_owned()),
        faulty: None,
        unjudged: None,
        latest: revision,
        conditions: Vec::new(),
        environments: vec![staging, prod],
        passed_over: vec![Environment("later".to_owned())],
        history: Vec::new(),
        live: true,
    };
    let leaf = LeafSeen { name: "Secret/shop/eu-1".to_owned(), watches: 2, troubles: Vec::new() };
    PromotingSeen { pipelines: vec![view], leaves: vec![leaf], troubles: Vec::new() }
}

#[actix::test]
async fn the_page_shows_pipelines_from_left_to_right_with_every_wait_in_words() {
    let name = "<b>x</b>";
    let seen = Observation { promoting: Some(promoting(name)), ..synced() };
    let serving = start(showing(seen)).await;
    // A wait for a person is no trouble, and a text of others no markup.
    page_is(&serving, "/pipelines", &[], expect_file!["pipelines.html"]).await;
    let board = body(&ask(serving.addresses().page, "GET", "/").await).to_owned();
    assert!(board.contains("All clear") && board.contains("Pipelines<span class=\"mark\""), "{board}");
    assert!(!board.contains("/repos") && !board.contains("/group") && !board.contains("/history"), "{board}");
    let state = ask(serving.addresses().page, "GET", "/api/v1/state").await;
    let json: serde_json::Value = serde_json::from_str(body(&state)).unwrap();
    assert_eq!(json["promoting"]["pipelines"][0]["environments"][1]["question"]["ticket"], "0123456789ab");
    serving.stop().await;
}

#[actix::test]
async fn a_pipeline_that_needs_a_person_is_in_the_headline_and_no_link_leads_to_a_script() {
    let mut seen = promoting("web");
    seen.troubles.push("failed to list pipelines".to_owned());
    seen.leaves[0].troubles.push("its token has expired".to_owned());
    seen.pipelines[0].environments[1].next = "run `allclear`".to_owned();
    let promotion = seen.pipelines[0].environments[1].promotion.as_mut().unwrap();
    promotion.chosen = Some("chosen by ann: goes back from 1.4".to_owned());
    seen.pipelines[0].conditions.push(ConditionView {
        kind: "Stalled".to_owned(),
        holds: Some(true),
        reason: "Abandoned".to_owned(),
        message: "its pull request was closed".to_owned(),
        since_ms: 0,
    });
    let url = "javascript:alert(1)".to_owned();
    seen.pipelines[0].environments[1].request = Some(RequestView { url, number: 7 });
    let serving = start(showing(Observation { promoting: Some(seen), ..synced() })).await;
    page_is(&serving, "/", &["health"], expect_file!["stalled.html"]).await;
    let page = body(&ask(serving.addresses().page, "GET", "/pipelines").await).to_owned();
    assert!(!page.contains("href=\"javascript") && page.contains("goes back from 1.4"), "{page}");
    // Purging does not depend on it.
    let ready = ask(serving.addresses().probes, "GET", "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    serving.stop().await;
}
