//! Requests to look now, as forges and other programs send them, and how many of them are taken.

use jiff::Timestamp;
use serde_json::json;

use allclear::telemetry::Form;

use super::*;

const PATH: &str = "/hooks/poke/pipeline/default/app";
const PUSH: &[u8] = br#"{"ref": "refs/heads/main"}"#;

// Faults: PF22
#[actix::test]
async fn every_forge_can_make_us_look_and_nobody_else() {
    let bench = Bench::start(closed()).await;
    bench.api.apply(pipeline(&notification())).unwrap();
    let digits = hex(&mac(POKE_KEY, &[PUSH]));
    let hub = format!("sha256={digits}");
    let webhook = standard(POKE_KEY, PUSH);
    let webhook: Vec<(&str, &str)> = webhook.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let senders: [&[(&str, &str)]; 5] = [
        &[("X-GitHub-Event", "push"), ("X-Hub-Signature", "sha1=00"), ("X-Hub-Signature-256", &hub)],
        &[("X-Gitea-Event", "push"), ("X-Gitea-Signature", &digits)],
        &[("X-Gitlab-Event", "Push Hook"), ("X-Gitlab-Token", POKE_KEY)],
        &webhook,
        &[("X-Signature", &hub)],
    ];
    let mut last = None;
    for headers in senders {
        let answer = bench.post(PATH, headers, PUSH).await;
        assert_eq!((answer.code, answer.body.as_str()), (202, ""), "{headers:?}");
        let at = bench.annotation("requested-at");
        assert!(at.is_some() && at != last, "{headers:?}: {at:?}");
        last = at;
    }
    let writes = bench.writes();
    let wrong = hex(&mac("the-key-of-somebody-else", &[PUSH]));
    for headers in [
        &[][..],
        &[("X-Gitea-Signature", wrong.as_str())],
        &[("X-Gitlab-Token", "the-key-of-a-forge-012345678")],
        &[("X-Gitlab-Token", "")],
    ] {
        assert_eq!(bench.post(PATH, headers, PUSH).await.code, 401, "{headers:?}");
    }
    assert_eq!(bench.post(PATH, senders[1], b"{}").await.code, 401, "another body");
    let gitlab = senders[2];
    assert_eq!(bench.post("/hooks/poke/pipeline/default/other", gitlab, PUSH).await.code, 404);
    let no_repo = bench.post("/hooks/poke/repo/default/app", gitlab, PUSH).await;
    assert!(no_repo.code == 404 && no_repo.body.contains("no Repo default/app"), "{}", no_repo.body);
    let long = vec![b' '; 256 * 1024 + 1];
    assert_eq!(bench.post(PATH, gitlab, &long).await.code, 413);
    assert_eq!(bench.post(PATH, gitlab, &long[1..]).await.code, 202);
    assert_eq!(bench.writes() - writes, 1);
    let metrics = bench.metrics.text(Form::OpenMetrics);
    for line in [r#"{door="poke",code="202"} 6"#, r#"{door="poke",code="401"} 5"#, r#"{door="poke",code="413"} 1"#] {
        assert!(metrics.contains(&format!("allclear_hook_requests_total{line}")), "{line}: {metrics}");
    }
    bench.stop().await;
}

#[actix::test]
async fn without_a_key_file_no_poke_is_taken_and_other_namespaces_are_not_ours() {
    let bench = Bench::start(Trust::default()).await;
    bench.api.apply(pipeline(&notification())).unwrap();
    assert_eq!(bench.post(PATH, &[("X-Gitlab-Token", "")], PUSH).await.code, 401);
    bench.stop().await;
    let bench = Bench::start(Trust { namespaces: Some(["shop".to_owned()].into()), ..open() }).await;
    bench.api.apply(pipeline(&notification())).unwrap();
    assert_eq!(bench.post(PATH, &[], PUSH).await.code, 404);
    assert_eq!(bench.server.seen().iter().filter(|seen| seen.path.contains("/pipelines/")).count(), 0);
    bench.stop().await;
    let bench = Bench::start(open()).await;
    bench.api.apply(pipeline(&notification())).unwrap();
    assert_eq!(bench.post(PATH, &[], PUSH).await.code, 202);
    assert!(bench.annotation("requested-at").is_some());
    bench.stop().await;
}

// Faults: T18
#[actix::test]
async fn a_client_is_sent_away_after_twenty_requests_with_the_date_of_its_return() {
    let bench = Bench::start(closed()).await;
    bench.api.apply(pipeline(&notification())).unwrap();
    let began = SystemClock::default().wall_ms();
    for hit in 0..20 {
        assert_eq!(bench.post(PATH, &[], PUSH).await.code, 401, "{hit}");
    }
    let refused = bench.post(PATH, &[("X-Gitlab-Token", POKE_KEY)], PUSH).await;
    assert_eq!(refused.code, 429);
    let after = refused.header("retry-after").unwrap();
    let after = jiff::fmt::rfc2822::parse(after).map(|at| at.timestamp()).unwrap();
    let first = Timestamp::from_millisecond(began).unwrap();
    let wait = after.duration_since(first).as_secs();
    // On a busy machine the first request comes some time after we looked at the clock.
    assert!((28..=60).contains(&wait), "{wait}");
    // Nobody's word but a trusted proxy's says that it is another.
    let forged: &[(&str, &str)] = &[("X-Forwarded-For", "198.51.100.7"), ("X-Gitlab-Token", POKE_KEY)];
    assert_eq!(bench.post(PATH, forged, PUSH).await.code, 429);
    assert_eq!(bench.writes(), 0);
    bench.stop().await;
    let proxies = vec![allclear::http::hooks::Network { address: [127, 0, 0, 1].into(), bits: 32 }];
    let bench = Bench::start(Trust { proxies, ..closed() }).await;
    bench.api.apply(pipeline(&notification())).unwrap();
    for hit in 0..30 {
        let client = format!("198.51.100.{hit}");
        let headers: &[(&str, &str)] = &[("X-Forwarded-For", &client), ("X-Gitlab-Token", POKE_KEY)];
        assert_eq!(bench.post(PATH, headers, PUSH).await.code, 202, "{hit}");
    }
    bench.stop().await;
}

/// What our own webhooks sign by Standard Webhooks is what this door verifies.
#[actix::test]
async fn a_key_of_standard_webhooks_is_known_by_its_prefix() {
    let encoded = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let bench =
        Bench::start(Trust { keys: Key::of(encoded.as_bytes()).into_iter().collect(), ..Trust::default() }).await;
    bench.api.apply(pipeline(&json!({"strategy": {"notification": {}}}))).unwrap();
    let at = (SystemClock::default().wall_ms() / 1_000).to_string();
    let decoded = BASE64.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&decoded).unwrap();
    mac.update(format!("msg_2.{at}.").as_bytes());
    mac.update(PUSH);
    let signature = format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()));
    let headers: &[(&str, &str)] =
        &[("webhook-id", "msg_2"), ("webhook-timestamp", &at), ("webhook-signature", &signature)];
    assert_eq!(bench.post(PATH, headers, PUSH).await.code, 202);
    bench.stop().await;
}

#[actix::test]
async fn a_git_host_can_make_a_repo_look() {
    let bench = Bench::start(closed()).await;
    let repo = json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Repo", "metadata": {"namespace": "default", "name": "infra"},
        "spec": {"url": "https://git.example.com/infra.git"},
    });
    bench.api.apply(repo).unwrap();
    let path = "/hooks/poke/repo/default/infra";
    assert_eq!(bench.post(path, &[], PUSH).await.code, 401);
    let digits = hex(&mac(POKE_KEY, &[PUSH]));
    assert_eq!(bench.post(path, &[("X-Gitea-Signature", &digits)], PUSH).await.code, 202);
    let object = bench.api.get(Kind::Repo, "default", "infra").unwrap();
    let at = object["metadata"]["annotations"]["allclear.dev/requested-at"].as_str().expect("a time");
    assert!(at.parse::<Timestamp>().is_ok(), "{at}");
    bench.stop().await;
}
