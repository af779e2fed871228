//! T11: whoever reads the log, the status page or the metrics, at whatever level, sees no credential.

use serde_json::json;

use crate::scene::{HOST, NAME, Scene};

/// Credentials of every kind the program is given, none of them by its shape. `TOKEN` is the bearer token of the kubeconfig.
const AWS_KEY: &str = "canaryawssecretkey";
const AWS_SESSION: &str = "canaryawssessiontoken";
const AUTHORIZATION: &str = "canaryauthorization";
const PARAMETER: &str = "canaryparameter";
const SIGNING: &str = "canarysigningkeythatislongenough";
const URL_PASSWORD: &str = "canaryurlpassword";
const URL_PATH: &str = "canaryurlpath";
const URL_QUERY: &str = "canaryurlquery";
const TOKEN: &str = "canarybearertoken";

const ALL: [&str; 9] =
    [AWS_KEY, AWS_SESSION, AUTHORIZATION, PARAMETER, SIGNING, URL_PASSWORD, URL_PATH, URL_QUERY, TOKEN];

/// Every library that has ever said something, as verbose as it can be.
const LOUD: &str = "trace,trace,hyper=trace,hyper_util=trace,h2=trace,rustls=trace,reqwest=trace,tower=trace,tower_http=trace,kube=trace,\
    kube_client=trace,kube_runtime=trace,redis=trace,actix_web=trace,actix_http=trace,aws_config=trace,aws_runtime=trace,\
    aws_sigv4=trace,aws_sdk_cloudfront=trace,aws_smithy_runtime=trace,aws_smithy_runtime_api=trace,aws_smithy_http_client=trace,\
    aws_smithy_http=trace,aws_smithy_types=trace,aws_credential_types=trace";

// Faults: T11
#[tokio::test]
async fn t11_a_running_program_shows_no_secret_at_any_level() {
    let mut scene = Scene::new().await;
    let hook = scene.world.hook.url().replace("http://", &format!("http://user:{URL_PASSWORD}@"));
    let hooks = json!([{
        "name": NAME, "url": format!("{hook}/{URL_PATH}?token={URL_QUERY}"), "method": "POST",
        "headers": {"authorization": format!("Bearer {AUTHORIZATION}"), "x-api-key": AUTHORIZATION},
        "parameters": {"site": HOST, "password": PARAMETER}, "secret": SIGNING, "format": "json", "events": ["purge.completed"],
    }]);
    scene.world.subscribe(&hooks).unwrap();
    scene.set("AWS_SECRET_ACCESS_KEY", AWS_KEY);
    scene.set("AWS_SESSION_TOKEN", AWS_SESSION);
    scene.set("ALLCLEAR__LOG__LEVEL", LOUD);
    let path = scene.environment["KUBECONFIG"].clone();
    let kubeconfig = std::fs::read_to_string(&path).unwrap();
    let given = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(given.path(), with_token(&kubeconfig)).unwrap();
    scene.set("KUBECONFIG", &given.path().to_string_lossy());

    scene.start().await;
    scene.roll_out("2.0");
    scene.wait_until_over(2).await;
    let mut shown = String::new();
    for page in ["/", "/metrics", "/api/v1/state", "/readyz", "/livez"] {
        shown += &scene.process().get(page).await.map(|(_, body)| body).unwrap_or_default();
    }
    let log = scene.process().log();
    assert!(scene.process().said("are left out"), "the cap is told");
    assert_eq!(scene.calls(), 1, "the receiver was called with all of them");
    let sent = scene.world.receiver.received().remove(0).request;
    assert!(sent.header("authorization").is_some() && sent.raw_query.contains(URL_QUERY), "{sent:?}");
    shown += &log.join("\n");
    let seen: Vec<&str> = ALL.into_iter().filter(|secret| shown.contains(secret)).collect();
    eprintln!(
        "T11: secrets of {} seen in {} lines of log, metrics and page: {} (aim 0)",
        ALL.len(),
        log.len(),
        seen.len()
    );
    assert_eq!(seen, Vec::<&str>::new());
}

/// The user of the kubeconfig, with a token.
fn with_token(kubeconfig: &str) -> String {
    let mut document: serde_json::Value = serde_json::from_str(kubeconfig).unwrap();
    document["users"][0]["user"]["token"] = json!(TOKEN);
    document.to_string()
}
