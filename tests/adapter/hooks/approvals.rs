//! A yes by a request: the tests of the older controller's approval endpoint
//! (<https://github.com/weaveworks/pipeline-controller/blob/main/server/approval_handler_test.go>, read 2026-11), and tickets.

use reqwest::Method;
use serde_json::json;

use super::*;

const TICKET: &str = "0123456789ab";
const PATH: &str = "/approval/default/app/prod/5.0.0";
const NOT_WAITING: &str = "failed approving promotion";

fn manual(keyed: bool) -> Value {
    let mut promotion = if keyed { super::keyed() } else { notification() };
    promotion["manual"] = json!(true);
    promotion
}

/// A Pipeline whose machine asks about 5.0.0 in prod.
async fn asking(trust: Trust, keyed: bool) -> Bench {
    let bench = Bench::start(trust).await;
    bench.api.apply(pipeline(&manual(keyed))).unwrap();
    bench.secret("app", &key(KEY));
    bench.say(
        &json!({"seq": 1, "promotion": promotion("Waiting", None), "waitingApproval": waiting(TICKET, "Approval")}),
    );
    bench
}

fn approve_body(ticket: &str) -> String {
    json!({"ticket": ticket, "by": "anna"}).to_string()
}

async fn say_yes(bench: &Bench, path: &str, key: &str, body: &str) -> Answer {
    let headers = standard(key, body.as_bytes());
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    bench.post(path, &headers, body.as_bytes()).await
}

/// Does what the machine does when a yes has come: it takes it, and makes a pull request.
async fn take(bench: &Bench) {
    bench.marked("approve", Some(TICKET)).await;
    let done = promotion("Proposed", Some(TICKET));
    bench.say(&json!({"promotion": done, "waitingApproval": null, "pullRequest": request()}));
}

// Faults: PF22
#[actix::test]
async fn a_yes_names_its_ticket_and_moves_once() {
    let bench = asking(closed(), true).await;
    let yes = approve_body(TICKET);
    let (answer, ()) = futures_util::join!(say_yes(&bench, PATH, KEY, &yes), take(&bench));
    assert_eq!((answer.code, answer.body.as_str()), (201, ""));
    assert_eq!(answer.header("location"), Some("https://git.example.com/shop/config/pulls/7"));
    assert_eq!(bench.annotation("approved-by").as_deref(), Some("anna, with the key of Secret app"));
    // The same again: known, with the same Location, and nothing is written.
    let writes = bench.writes();
    let again = say_yes(&bench, PATH, KEY, &yes).await;
    assert_eq!((again.code, again.header("location")), (200, answer.header("location")));
    assert_eq!(bench.writes(), writes);
    // Another ticket, or the same after the revision has moved on: nothing.
    let moved = json!({"seq": 2, "revision": "5.1.0", "phase": "Waiting"});
    let asks =
        json!({"revision": "5.1.0", "ticket": "ba9876543210", "for": "Approval", "since": "2026-11-22T22:11:00Z"});
    bench.say(&json!({"seq": 2, "promotion": moved, "waitingApproval": asks, "pullRequest": null}));
    for (path, ticket) in [
        (PATH, TICKET),
        ("/approval/default/app/prod/5.1.0", TICKET),
        ("/approval/default/app/dev/5.1.0", "ba9876543210"),
        ("/approval/default/app/prod/5.0.0", "ba9876543210"),
    ] {
        let late = say_yes(&bench, path, KEY, &approve_body(ticket)).await;
        assert_eq!((late.code, late.body.as_str()), (422, NOT_WAITING), "{path} {ticket}");
    }
    assert_eq!(bench.writes(), writes);
    bench.stop().await;
}

// Faults: PF22
#[actix::test]
async fn a_yes_needs_the_key_and_a_ticket() {
    let bench = asking(closed(), true).await;
    let yes = approve_body(TICKET);
    assert_eq!(bench.send(Method::GET, PATH, &[], b"").await.code, 405);
    for path in ["/approval/", "/approval/ns/app/env"] {
        assert_eq!(say_yes(&bench, path, KEY, &yes).await.code, 404, "{path}");
    }
    // Who has no key is not told which Pipelines there are; without a signature nothing is even read.
    let read = || bench.server.seen().iter().filter(|seen| seen.path.contains("/pipelines/")).count();
    let strange = say_yes(&bench, PATH, "another key", &yes).await;
    assert_eq!(strange.code, 401);
    let before = read();
    for path in [PATH, "/approval/default/other/prod/5.0.0", "/promotion/default/other/env"] {
        let unsigned = bench.post(path, &[], yes.as_bytes()).await;
        assert_eq!((unsigned.code, &unsigned.body), (401, &strange.body), "{path}");
    }
    assert_eq!(read(), before);
    let none = say_yes(&bench, "/approval/default/other/prod/5.0.0", KEY, &yes).await;
    assert_eq!((none.code, none.body), (401, strange.body));
    assert_eq!(bench.post(PATH, &[], yes.as_bytes()).await.code, 401, "no signature");
    let older = x_signature(KEY, yes.as_bytes());
    assert_eq!(bench.post(PATH, &[("X-Signature", &older)], yes.as_bytes()).await.code, 401, "another scheme");
    let empty = x_signature(KEY, b"");
    assert_eq!(bench.post(PATH, &[("X-Signature", &empty)], b"").await.code, 401, "no ticket");
    // The signature of one body is none of another.
    let headers = standard(KEY, yes.as_bytes());
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let other = approve_body("ba9876543210");
    assert_eq!(bench.post(PATH, &headers, other.as_bytes()).await.code, 401);
    for body in ["yes", r#"{"by": "anna"}"#] {
        let answer = say_yes(&bench, PATH, KEY, body).await;
        assert_eq!((answer.code, answer.body.as_str()), (422, NOT_WAITING), "{body}");
    }
    assert_eq!(bench.writes(), 0);
    bench.stop().await;
    // Without a Secret, nobody can say yes by a request.
    let bench = asking(closed(), false).await;
    assert_eq!(say_yes(&bench, PATH, KEY, &yes).await.code, 401);
    assert_eq!(bench.writes(), 0);
    bench.stop().await;
}

/// TestApprovalVerifyXSignature, TestApprovalPromotionHappens, TestApprovalValidateRevision, under `hooks.empty_approvals`.
#[actix::test]
async fn a_yes_of_the_older_form_answers_the_open_question_and_no_other() {
    let trust = Trust { empty_approvals: true, ..closed() };
    let bench = asking(trust, true).await;
    let empty = x_signature(KEY, b"");
    let right: &[(&str, &str)] = &[("X-Signature", &empty)];
    assert_eq!(bench.post(PATH, &[("X-Signature", "sha256=invalid")], b"").await.code, 401);
    assert_eq!(bench.post(PATH, &[], b"").await.code, 401);
    let elsewhere = bench.post("/approval/default/app/prod/4.0.0", right, b"").await;
    assert_eq!((elsewhere.code, elsewhere.body.as_str()), (422, NOT_WAITING));
    let (answer, ()) = futures_util::join!(bench.post(PATH, right, b""), take(&bench));
    assert_eq!((answer.code, answer.header("location").is_some()), (201, true));
    assert_eq!(bench.annotation("approved-by").as_deref(), Some("somebody, with the key of Secret app"));
    assert_eq!(bench.post(PATH, right, b"").await.code, 200);
    // It says that a revision may go on, and nothing else: it replaces nobody's commits.
    bench.say(&json!({"waitingApproval": waiting("ba9876543210", "Overwrite")}));
    assert_eq!(bench.post(PATH, right, b"").await.code, 422);
    bench.stop().await;
}

#[actix::test]
async fn without_keys_anybody_may_say_yes_only_where_both_switches_say_so() {
    let bench = asking(open(), false).await;
    let (answer, ()) = futures_util::join!(bench.post(PATH, &[], b""), take(&bench));
    assert_eq!(answer.code, 201);
    assert_eq!(bench.annotation("approved-by").as_deref(), Some("somebody, by a request without a signature"));
    bench.stop().await;
    let bench = asking(Trust { allow_unsigned: true, ..Trust::default() }, false).await;
    assert_eq!(bench.post(PATH, &[], b"").await.code, 401);
    bench.stop().await;
    // Where there is a Secret, its key is asked for in any case.
    let bench = asking(open(), true).await;
    assert_eq!(bench.post(PATH, &[], b"").await.code, 401);
    assert_eq!(bench.post(PATH, &[], approve_body(TICKET).as_bytes()).await.code, 401);
    assert_eq!(bench.writes(), 0);
    bench.stop().await;
}

#[actix::test]
async fn a_revision_may_have_a_slash() {
    let bench = asking(closed(), true).await;
    let mut waits = waiting(TICKET, "Approval");
    waits["revision"] = json!("main/abc");
    bench.say(&json!({"promotion": promotion("Waiting", None), "waitingApproval": waits}));
    let answer = say_yes(&bench, "/approval/default/app/prod/main%2Fabc", KEY, &approve_body(TICKET)).await;
    assert_eq!(answer.code, 202, "{}", answer.body);
    assert_eq!(bench.annotation("approve").as_deref(), Some(TICKET));
    bench.stop().await;
}

// Faults: PF22
/// Two environments ask, nobody leads, and both get a yes: an object has room for one.
#[actix::test]
async fn a_yes_that_another_one_has_replaced_is_given_again() {
    let bench = asking(closed(), true).await;
    let yes = approve_body(TICKET);
    let other = json!({"metadata": {"annotations": {"allclear.dev/approve": "ba9876543210", "allclear.dev/approved-by": "bert"}}});
    let (answer, ()) = futures_util::join!(say_yes(&bench, PATH, KEY, &yes), async {
        bench.marked("approve", Some(TICKET)).await;
        bench.api.patch(Kind::Pipeline, "default", "app", &other).unwrap();
        take(&bench).await;
    });
    assert_eq!(answer.code, 201, "{}", answer.body);
    assert_eq!(bench.annotation("approved-by").as_deref(), Some("anna, with the key of Secret app"));
    bench.stop().await;
}
