//! `allclear webhook`: what is shown, tested and asked for again, by the program itself beside a running controller.

use std::collections::BTreeMap;

use sandbox::receiver::{Answer, AnswerBody};
use serde_json::{Value, json};

use crate::commands::{allclear, said};
use crate::scene::{NAME, Scene};

/// What no output may have: of a header, of the path and of a parameter.
const SECRETS: [&str; 3] = ["hunter2hunter2", "T0-B0-secretpath", "parameter-secret"];

/// Hooks that a test may call, and one that it may not.
fn hooks(scene: &Scene) -> Value {
    let url = format!("{}/{}", scene.world.hook.url(), SECRETS[1]);
    let headers = json!({"Authorization": format!("Bearer {}", SECRETS[0])});
    let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    json!([
        {"name": "ci", "url": url, "method": "POST", "headers": headers, "parameters": {"token": SECRETS[2]},
         "format": "json", "events": ["purge.completed"], "workloads": ["shop/*"], "secret": key},
        {"name": "chat", "url": url, "method": "POST", "headers": {}, "parameters": {}, "format": "flux", "workloads": ["*"]},
        {"name": "web", "url": url, "method": "POST", "headers": {}, "parameters": {"site": "web"}},
    ])
}

fn request(scene: &Scene, at: usize) -> (BTreeMap<String, String>, Value) {
    let received = scene.world.receiver.received();
    let request = &received[at].request;
    let names = ["webhook-id", "webhook-signature", "allclear-test", "authorization"];
    let headers =
        names.iter().filter_map(|name| Some(((*name).to_owned(), request.header(name)?.to_owned()))).collect();
    (headers, serde_json::from_slice(&request.body).expect("JSON"))
}

#[tokio::test]
async fn a_test_event_says_that_it_is_one_and_shows_no_secret_even_if_the_answer_repeats_it() {
    let scene = Scene::new().await;
    scene.world.subscribe(&hooks(&scene)).expect("the file can be written");
    let body = format!("{{\"got\": \"Bearer {}\", \"at\": \"/{}?{}\"}}\n", SECRETS[0], SECRETS[1], SECRETS[2]);
    scene.world.receiver.answer_always(Answer::status(202).body(AnswerBody::Full(body.into())));

    let (code, out, err) = said(&allclear(&scene, &["webhook", "test"]).await);
    assert_eq!((code, scene.calls()), (0, 2), "the one of the old form is left out: {out} {err}");
    assert!(out.contains("delivered, answered 202") && out.contains("Not called"), "{out}");
    assert!(!SECRETS.iter().any(|secret| out.contains(secret)), "{out}");
    let (headers, document) = request(&scene, 0);
    assert_eq!((&document["type"], &document["test"]), (&json!("webhook.test"), &json!(true)), "{document}");
    assert_eq!(document["parameters"], json!({"token": SECRETS[2]}), "as in a real one");
    assert!(document["data"].get("workload").is_none() && document["data"].get("purges").is_none(), "{document}");
    assert_eq!(headers["allclear-test"], "true");
    assert!(headers["webhook-signature"].starts_with("v1,") && headers["webhook-id"].starts_with("test_"));
    assert_eq!(headers["authorization"], format!("Bearer {}", SECRETS[0]));
    let (_, event) = request(&scene, 1);
    assert_eq!((&event["reason"], &event["metadata"]["allclear.dev/test"]), (&json!("WebhookTest"), &json!("true")));

    let (code, _, err) = said(&allclear(&scene, &["webhook", "test", "web"]).await);
    assert!(code == 2 && err.contains("--unmarked") && scene.calls() == 2, "{code} {err}");
    let (code, out, err) = said(&allclear(&scene, &["webhook", "test", "web", "--unmarked", "-o", "json"]).await);
    assert_eq!((code, scene.calls()), (0, 3), "{out} {err}");
    assert_eq!(scene.world.receiver.received()[2].request.body.as_ref(), b"site=web");
    let (code, _, err) = said(&allclear(&scene, &["webhook", "test", "cl"]).await);
    assert!(code == 2 && err.contains("there are ci, chat, web"), "{code} {err}");
    scene.world.receiver.answer_always(Answer::status(500));
    let (code, out, _) = said(&allclear(&scene, &["webhook", "test", "ci"]).await);
    assert!(code == 1 && out.contains("answered 500"), "{code} {out}");
}

#[tokio::test]
async fn a_test_goes_nowhere_that_an_event_may_not() {
    let mut scene = Scene::new().await;
    let hook = json!({"name": "ci", "url": "http://169.254.169.254/latest", "method": "POST", "headers": {}, "parameters": {}, "format": "json"});
    scene.world.subscribe(&json!([hook])).expect("the file can be written");
    let (code, out, _) = said(&allclear(&scene, &["webhook", "test"]).await);
    assert!(code == 1 && out.contains("not sent: 169.254.169.254 is"), "{code} {out}");
    scene.set("WEBHOOKS_CONFIG", "");
    let (code, _, err) = said(&allclear(&scene, &["webhook", "test"]).await);
    assert!(code == 1 && err.contains("exec deploy/allclear -- allclear webhook list"), "{code} {err}");
}

#[tokio::test]
async fn what_was_given_up_is_shown_and_sent_again_once_with_its_id_and_bytes() {
    let mut scene = Scene::new().await;
    scene.world.receiver.answer_always(Answer::status(410));
    scene.start().await;
    let (code, _, err) = said(&allclear(&scene, &["webhook", "resend", "shop/web"]).await);
    assert!(code == 1 && err.contains("nothing to send again"), "{code} {err}");
    let elsewhere = ["webhook", "list", "--ledger-namespace", "elsewhere"];
    let (code, out, _) = said(&allclear(&scene, &elsewhere).await);
    assert!(code == 1 && out.contains("there is no ledger in namespace elsewhere"), "{code} {out}");
    assert!(!out.contains("nothing is on its way"), "that is not known: {out}");
    scene.roll_out("1.1");
    let listed = async |scene: &Scene| {
        let (code, out, err) = said(&allclear(scene, &["webhook", "list", "-o", "json"]).await);
        assert_eq!(code, 0, "{err}");
        serde_json::from_str::<Value>(&out).expect("JSON")
    };
    scene.wait_until("it is given up", async |scene| listed(scene).await["receivers"][0]["given_up"] == 1).await;
    assert_eq!(scene.calls(), 1);
    let (_, out, _) = said(&allclear(&scene, &["webhook", "list"]).await);
    assert!(out.contains("gets purge.completed of web") && out.contains("given up: answered 410"), "{out}");
    let page = format!("http://{}", scene.process().address("page").expect("it says where its page is"));
    let (code, out, err) = said(&allclear(&scene, &["webhook", "list", "--server", &page]).await);
    assert!(code == 0 && out.contains("last attempt 20") && out.contains("given up"), "{out} {err}");

    let (code, _, err) = said(&allclear(&scene, &["webhook", "resend", "shop/web", "--receiver", "wed"]).await);
    assert!(code == 2 && err.contains("there are web"), "{code} {err}");
    let (code, _, err) = said(&allclear(&scene, &["webhook", "resend", "shop/web", "--event", "purge.failed"]).await);
    assert!(code == 1 && err.contains("nothing to send again"), "{code} {err}");
    let (code, out, err) = said(&allclear(&scene, &["webhook", "resend", "shop/web"]).await);
    assert!(code == 0 && out.contains("asked allclear to send again purge.completed to web"), "{out} {err}");
    let given_up = async |scene: &Scene| listed(scene).await["receivers"][0]["given_up"] == 1;
    scene.wait_until("it is given up again", async |scene| scene.calls() == 2 && given_up(scene).await).await;
    assert_eq!(request(&scene, 0), request(&scene, 1), "the same event");

    // The annotation stays, and the next life sees it again, beside what it asked for.
    scene.take_process().kill();
    scene.start().await;
    scene.add_workload("later");
    scene.wait_until("the next life works", async |scene| scene.record_of("later").is_some()).await;
    assert_eq!(scene.calls(), 2, "the same request sends nothing twice");
    scene.world.receiver.answer_always(Answer::status(204));
    let (code, _, err) = said(&allclear(&scene, &["webhook", "resend", "shop/web"]).await);
    assert_eq!(code, 0, "{err}");
    scene.wait_until("it was taken", async |scene| scene.outbox() == 0).await;
    assert_eq!(scene.calls(), 3);
    assert_eq!(scene.reasons_of(NAME).iter().filter(|reason| *reason == "WorkloadFaulty").count(), 0);
    assert_eq!(scene.purged().len(), 1, "nothing was purged again");
}

#[tokio::test]
async fn what_still_waits_is_sent_at_once_only_if_that_is_meant() {
    let mut scene = Scene::new().await.with("ALLCLEAR__WEBHOOKS__RETRY", "0s, 1h");
    scene.world.receiver.answer_always(Answer::status(500));
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until("it was tried once", async |scene| scene.calls() == 1 && scene.outbox() == 1).await;
    let asked = async |arguments: &[&str]| said(&allclear(&scene, arguments).await);
    let (code, _, err) = asked(&["webhook", "resend", "shop/web"]).await;
    assert!(code == 1 && err.contains("--now") && err.contains("nothing was given up"), "{code} {err}");
    scene.world.receiver.answer_always(Answer::status(204));
    let (code, out, err) = asked(&["webhook", "resend", "--all", "--now"]).await;
    assert!(code == 0 && out.contains("shop/web: asked"), "{out} {err}");
    scene.wait_until("it was taken", async |scene| scene.calls() == 2 && scene.outbox() == 0).await;
}
