//! The tests of the older controller's promotion endpoint, by their names, in its own words: what its callers rely on
//! (<https://github.com/weaveworks/pipeline-controller/blob/main/server/promotion_handler_test.go>, read 2026-11).

use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};

use super::*;

const CONSULT: &str = "error promoting application, please consult the promotion server's logs";

async fn promote(bench: &Bench, source: &str, event: &Value) -> Answer {
    bench.post(&format!("/promotion/default/app/{source}"), &[], event.to_string().as_bytes()).await
}

fn has(answer: &Answer, code: u16, body: &str, what: &str) {
    assert_eq!((answer.code, answer.body.as_str()), (code, body), "{what}");
}

#[actix::test]
async fn requests_that_lead_nowhere() {
    let bench = Bench::start(open()).await;
    let event = event().to_string();
    // TestPromotionGet, and its mux; TestPromotionPostWithWrongPath; TestPromotionPostWithUnknownPipeline.
    let get = bench.send(Method::GET, "/promotion/default/app/env", &[], b"").await;
    assert_eq!((get.code, get.header("allow")), (405, Some("POST")));
    for path in ["/promotion/", "/promotion/default/app", "/promotion/ns/app/env", "/elsewhere"] {
        assert_eq!(bench.post(path, &[], event.as_bytes()).await.code, 404, "{path}");
    }
    // TestPromotionPostWithNoBody; TestPromotionPostWithIncompatibleBody: said only of a Pipeline that is there.
    bench.api.apply(pipeline(&Value::Null)).unwrap();
    for body in ["", "incompatible"] {
        assert_eq!(bench.post("/promotion/default/app/env", &[], body.as_bytes()).await.code, 400, "{body}");
        assert_eq!(bench.post("/promotion/default/other/env", &[], body.as_bytes()).await.code, 404, "{body}");
    }
    assert_eq!(bench.send(Method::GET, "/healthz", &[], b"").await.body, "ok");
    assert_eq!(bench.writes(), 0, "nothing was marked");
    bench.stop().await;
}

// Faults: PF22
#[actix::test]
async fn events_that_do_not_fit() {
    let bench = Bench::start(open()).await;
    bench.api.apply(pipeline(&Value::Null)).unwrap();
    // TestPromotionInvolvedObjectDoesntMatch.
    for field in ["name", "namespace", "apiVersion", "kind"] {
        let mut event = event();
        event["involvedObject"][field] = json!("foo");
        let answer = promote(&bench, "dev", &event).await;
        has(&answer, 422, "involved object does not match Pipeline definition", field);
    }
    // TestPromotionBeyondLastEnv, …ToEnvWithoutTarget, …FromUnknownEnv, …WithNoMetadataInEvent, …WithoutPromotionSpec.
    let beyond = promote(&bench, "no-targets", &event()).await;
    has(&beyond, 422, "cannot promote beyond last environment no-targets", "the last");
    has(&promote(&bench, "prod", &event()).await, 422, "environment no-targets has no targets", "no targets");
    has(&promote(&bench, "foo", &event()).await, 422, "app default/app has no environment foo defined", "unknown");
    let mut bare = event();
    bare.as_object_mut().unwrap().remove("metadata");
    has(&promote(&bench, "foo", &bare).await, 422, "event has no 'revision' in the metadata field.", "no revision");
    has(&promote(&bench, "dev", &event()).await, 500, CONSULT, "no promotion");
    // Marks of HTML are made harmless, as by template.HTMLEscape.
    let tag = promote(&bench, "%3Cb%3E'", &event()).await;
    has(&tag, 422, "app default/app has no environment &lt;b&gt;&#39; defined", "HTML");
    assert_eq!(bench.writes(), 0, "nothing was marked");
    bench.stop().await;
}

#[actix::test]
async fn what_comes_of_a_promotion_is_answered_when_the_status_shows_it() {
    let bench = Bench::start(open()).await;
    bench.api.apply(pipeline(&notification())).unwrap();
    // TestPromotionStarted: 201 and Location. The machine makes the request while we wait.
    let (answer, ()) = futures_util::join!(promote_now(&bench), async {
        bench.marked("requested-at", None).await;
        bench.say(&json!({"seq": 1, "promotion": promotion("Started", None)}));
        tokio::time::sleep(Duration::from_millis(700)).await;
        bench.say(&json!({"promotion": promotion("Proposed", None), "pullRequest": request()}));
    });
    has(&answer, 201, "", "a request");
    assert_eq!(answer.header("location"), Some("https://git.example.com/shop/config/pulls/7"));
    let first = bench.annotation("requested-at");
    // Once more: the same, and we look again.
    has(&promote_now(&bench).await, 201, "", "a repeated event");
    assert_ne!(bench.annotation("requested-at"), first);
    // TestPromotionWithoutLocation: 204.
    bench.say(&json!({"promotion": promotion("Landed", None), "pullRequest": null}));
    let told = promote_now(&bench).await;
    has(&told, 204, "", "told");
    assert_eq!(told.header("location"), None);
    // TestPromotionWithManualGate: 204 once the wait is written, and it names the revision.
    bench.say(&json!({"promotion": promotion("Waiting", None), "waitingApproval": waiting("t1", "Approval")}));
    has(&promote_now(&bench).await, 204, "", "manual");
    let object = bench.api.get(Kind::Pipeline, "default", "app").unwrap();
    assert_eq!(object["status"]["environments"]["prod"]["waitingApproval"]["revision"], "5.0.0");
    // Its gates are closed: 202, when we have waited long enough.
    bench.say(&json!({"waitingApproval": null}));
    let began = Instant::now();
    has(&promote_now(&bench).await, 202, "", "gates");
    assert!(began.elapsed() >= SHOWN_WITHIN);
    bench.stop().await;
}

async fn promote_now(bench: &Bench) -> Answer {
    promote(bench, "dev", &event()).await
}

#[actix::test]
async fn eight_outcomes_are_waited_for_at_once_and_the_others_are_told_later() {
    let bench = Bench::start(open()).await;
    bench.api.apply(pipeline(&notification())).unwrap();
    let all = (0..10).map(|_| async {
        let began = Instant::now();
        (promote_now(&bench).await.code, began.elapsed() >= SHOWN_WITHIN)
    });
    let answers = futures_util::future::join_all(all).await;
    assert!(answers.iter().all(|(code, _)| *code == 202), "{answers:?}");
    assert_eq!(answers.iter().filter(|(_, waited)| *waited).count(), 8, "{answers:?}");
    bench.stop().await;
}

/// TestPromotionVerifyXSignature, and what else can be wrong with a key.
#[actix::test]
async fn a_key_is_asked_for_unless_that_is_switched_off() {
    let bench = Bench::start(closed()).await;
    let event = event().to_string();
    let path = "/promotion/default/app/dev";
    let signed = async |key: &str| {
        bench.post(path, &[("X-Signature", &x_signature(key, event.as_bytes()))], event.as_bytes()).await.code
    };
    bench.api.apply(pipeline(&notification())).unwrap();
    assert_eq!(signed(KEY).await, 401, "the Pipeline names no Secret");
    bench.api.apply(pipeline(&keyed())).unwrap();
    bench.say(&json!({"seq": 1, "promotion": promotion("Landed", None)}));
    assert_eq!(signed(KEY).await, 401, "there is no such Secret");
    for (data, code) in [
        (json!({"other": BASE64.encode(KEY)}), 401),
        (json!({"hmac-key": ""}), 401),
        (json!({"hmac-key": BASE64.encode("\n")}), 401),
        (key("another"), 401),
        (key("hmac-secret\n"), 204),
        (json!({"hmac-key": BASE64.encode("the next one"), "hmac-key-before": BASE64.encode(KEY)}), 204),
        (key(KEY), 204),
    ] {
        bench.api.delete(Kind::Secret, "default", "app").ok();
        bench.secret("app", &data);
        let before = bench.writes();
        assert_eq!(signed(KEY).await, code, "{data}");
        assert_eq!(bench.writes() - before, usize::from(code == 204), "{data}");
    }
    for headers in [&[][..], &[("X-Signature", "sha256=invalid")], &[("X-Signature", "sha256=")]] {
        assert_eq!(bench.post(path, headers, event.as_bytes()).await.code, 401, "{headers:?}");
    }
    assert_eq!(signed("hmac-secreu").await, 401);
    // Only who has the key is told what does not fit.
    assert_eq!(bench.post("/promotion/default/app/foo", &[], event.as_bytes()).await.code, 401);
    bench.stop().await;
}

/// What is wrong with us, or with the API server, is no fault of the caller's, and it is told nothing of it.
#[actix::test]
async fn trouble_on_our_side_is_a_500() {
    let bench = Bench::start(open()).await;
    bench.api.apply(pipeline(&notification())).unwrap();
    bench.refuse(403, |request| request.method == "PATCH");
    let answer = promote_now(&bench).await;
    assert_eq!(answer.code, 500);
    assert!(!answer.body.contains("patch") && answer.body.contains("log"), "{}", answer.body);
    bench.server.clear_faults();
    bench.refuse(500, |request| request.method == "GET");
    assert_eq!(promote_now(&bench).await.code, 500);
    bench.server.clear_faults();
    // A spec that cannot be used.
    let azure = json!({"strategy": {"pull-request": {"type": "azure-devops", "url": "https://dev.azure.com/x"}}});
    bench.api.apply(pipeline(&azure)).unwrap();
    has(&promote_now(&bench).await, 500, CONSULT, "azure");
    bench.stop().await;
}
