//! Secrets, read by name: what is in them, and what is said where one is missing, forbidden or broken.

use std::collections::BTreeMap;

use allclear::adapters::kubernetes::Tempo;
use allclear::adapters::kubernetes::secrets::{KubernetesSecrets, SecretChanges};
use futures_util::StreamExt;
use kernel::names::destination::Purpose;
use objects::ports::Secrets;
use objects::ports::pipeline::Renewals;
use purge::ports::Retry;
use sandbox::kubernetes::Kind;
use serde_json::{Value, json};

use super::Bench;

fn secret(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "forge"}, "data": data})
}

#[tokio::test]
async fn a_secret_is_read_by_its_name_and_anew_each_time() {
    let bench = Bench::start().await;
    let secrets = KubernetesSecrets::new(&bench.clients, BTreeMap::new());
    for (encoded, token) in [("aHVudGVyMg==", "hunter2"), ("aHVudGVyMw==", "hunter3")] {
        bench.api.apply(secret(&json!({"token": encoded, "empty": ""}))).unwrap();
        let read = secrets.read("shop", "forge", Purpose::Compared).await.unwrap();
        assert_eq!(read["token"], token.as_bytes());
        assert!(read["empty"].is_empty());
    }
    let paths: Vec<String> = bench.seen(|_| true).into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/api/v1/namespaces/shop/secrets/forge"; 2]);
}

#[tokio::test]
async fn a_secret_that_is_followed_says_so_when_it_holds_something_else() {
    let bench = Bench::start().await;
    let mut changes = SecretChanges::new(&bench.clients, Tempo::default()).changes("shop", "forge");
    changes.next().await.expect("it is not there");
    bench.api.apply(secret(&json!({"token": "aHVudGVyMg=="}))).unwrap();
    changes.next().await.expect("it is there");
    let mut labelled = secret(&json!({"token": "aHVudGVyMg=="}));
    labelled["metadata"]["labels"] = json!({"of": "nobody"});
    bench.api.apply(labelled).unwrap();
    bench.api.apply(secret(&json!({"token": "aHVudGVyMw=="}))).unwrap();
    changes.next().await.expect("it holds another token");
    bench.api.delete(Kind::Secret, "shop", "forge").unwrap();
    changes.next().await.expect("it is gone");
    let names = bench.seen(|seen| seen.query.get("fieldSelector").is_none_or(|of| of != "metadata.name=forge"));
    assert!(names.is_empty(), "a right to this one is enough: {names:?}");
}

#[tokio::test]
async fn what_keeps_a_secret_from_being_read_is_said_and_nothing_that_is_in_it() {
    let bench = Bench::start().await;
    let secrets = KubernetesSecrets::new(&bench.clients, BTreeMap::new());
    let missing = secrets.read("shop", "forge", Purpose::Compared).await.unwrap_err();
    assert_eq!((missing.retry, missing.denied), (Retry::Never, false));
    assert!(missing.to_string().contains("create Secret forge in namespace shop"), "{missing}");
    for bad in ["../forge", "", "a b", "forge?watch=1"] {
        assert!(
            secrets
                .read("shop", bad, Purpose::Compared)
                .await
                .unwrap_err()
                .to_string()
                .contains("no Secret can have that name"),
            "{bad}"
        );
    }
    bench.api.apply(secret(&json!({"token": "hunter2!"}))).unwrap();
    let broken = secrets.read("shop", "forge", Purpose::Compared).await.unwrap_err();
    assert!(broken.to_string().contains("its key token is not base64"), "{broken}");
    assert!(!broken.to_string().contains("hunter2"));
    bench.refuse(403, 1, |request| request.path.contains("/secrets"));
    let denied = secrets.read("shop", "forge", Purpose::Compared).await.unwrap_err();
    assert!(denied.denied && denied.to_string().contains("deploy/components/secrets"), "{denied}");
    bench.refuse(500, 1, |request| request.path.contains("/secrets"));
    assert_eq!(secrets.read("shop", "forge", Purpose::Compared).await.unwrap_err().retry, Retry::Later);
}

#[tokio::test]
async fn a_secret_goes_only_where_it_says_or_the_operator_says() {
    let bench = Bench::start().await;
    let allowed = ("shop/forge".to_owned(), ["forge.example.com:8443".parse().unwrap()].into());
    let secrets = KubernetesSecrets::new(&bench.clients, [allowed].into());
    let mut sent = secret(&json!({"token": "aHVudGVyMg=="}));
    let ask = async |url: &str| secrets.read("shop", "forge", Purpose::sent_to(url)).await.map(|read| read.len());
    bench.api.apply(sent.clone()).unwrap();
    let refused = ask("https://evil.example.net/x").await.unwrap_err();
    assert_eq!((refused.retry, refused.denied), (Retry::Never, false));
    let command = "kubectl annotate secret forge -n shop allclear.dev/send-to=evil.example.net";
    assert!(refused.to_string().contains(command), "{refused}");
    assert_eq!(ask("https://forge.example.com:8443/shop/web").await, Ok(1), "the operator's");

    sent["metadata"]["annotations"] = json!({"allclear.dev/send-to": "git.example.com, other.example.com"});
    bench.api.apply(sent).unwrap();
    assert_eq!(ask("https://git.example.com/shop/web").await, Ok(1));
    for elsewhere in
        ["https://git.example.com@evil.example.net/", "https://git.example.com:8443/", "https://forge.example.com/"]
    {
        let refused = ask(elsewhere).await.unwrap_err().to_string();
        assert!(refused.contains("it is not sent to") && !refused.contains("other.example.com"), "{refused}");
    }
    // What a request is verified with goes nowhere.
    assert!(secrets.read("shop", "forge", Purpose::Compared).await.is_ok());
}
