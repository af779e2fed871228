//! Secrets, read by name: what is in them, and what is said where one is missing, forbidden or broken.

use allclear::adapters::kubernetes::secrets::KubernetesSecrets;
use domain::ports::Retry;
use domain::ports::pipeline::Secrets;
use serde_json::{Value, json};

use super::Bench;

fn secret(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "forge"}, "data": data})
}

#[tokio::test]
async fn a_secret_is_read_by_its_name_and_anew_each_time() {
    let bench = Bench::start().await;
    let secrets = KubernetesSecrets::new(&bench.clients);
    for (encoded, token) in [("aHVudGVyMg==", "hunter2"), ("aHVudGVyMw==", "hunter3")] {
        bench.api.apply(secret(&json!({"token": encoded, "empty": ""}))).unwrap();
        let read = secrets.read("shop", "forge").await.unwrap();
        assert_eq!(read["token"], token.as_bytes());
        assert!(read["empty"].is_empty());
    }
    let paths: Vec<String> = bench.seen(|_| true).into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/api/v1/namespaces/shop/secrets/forge"; 2]);
}

#[tokio::test]
async fn what_keeps_a_secret_from_being_read_is_said_and_nothing_that_is_in_it() {
    let bench = Bench::start().await;
    let secrets = KubernetesSecrets::new(&bench.clients);
    let missing = secrets.read("shop", "forge").await.unwrap_err();
    assert_eq!((missing.retry, missing.denied), (Retry::Never, false));
    assert!(missing.to_string().contains("create Secret forge in namespace shop"), "{missing}");
    for bad in ["../forge", "", "a b", "forge?watch=1"] {
        assert!(
            secrets.read("shop", bad).await.unwrap_err().to_string().contains("no Secret can have that name"),
            "{bad}"
        );
    }
    bench.api.apply(secret(&json!({"token": "hunter2!"}))).unwrap();
    let broken = secrets.read("shop", "forge").await.unwrap_err();
    assert!(broken.to_string().contains("its key token is not base64"), "{broken}");
    assert!(!broken.to_string().contains("hunter2"));
    bench.refuse(403, 1, |request| request.path.contains("/secrets"));
    let denied = secrets.read("shop", "forge").await.unwrap_err();
    assert!(denied.denied && denied.to_string().contains("deploy/components/secrets"), "{denied}");
    bench.refuse(500, 1, |request| request.path.contains("/secrets"));
    assert_eq!(secrets.read("shop", "forge").await.unwrap_err().retry, Retry::Later);
}
