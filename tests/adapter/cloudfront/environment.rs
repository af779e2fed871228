//! What the adapter takes from the environment. A process cannot change its own environment safely while it has threads,
//! so each case starts this test binary again, with the environment it is about and one test to run.

use support::moto::Moto;

use super::*;

/// Marks the child; without it the child test does nothing, so that running ignored tests reaches no real AWS.
const CHILD: &str = "ALLCLEAR_TEST_CHILD";

#[tokio::test]
async fn the_service_endpoint_wins_over_the_general_one() {
    let world = World::new(stand_in::Options::default()).await;
    let url = world.server.url();
    let keys = [("AWS_ACCESS_KEY_ID", "AKIDONE"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    let general = [("AWS_ENDPOINT_URL", url.as_str())];
    assert_eq!(child(&[&keys[..], &general].concat()), "listed 1");
    let both = [("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), ("AWS_ENDPOINT_URL_CLOUDFRONT", url.as_str())];
    assert_eq!(child(&[&keys[..], &both].concat()), "listed 1");
    assert_eq!(world.server.seen().len(), 2);
}

// Faults: F6
#[tokio::test]
async fn missing_credentials_are_denied_and_send_nothing() {
    let world = World::new(stand_in::Options::default()).await;
    let said = child(&[("AWS_ENDPOINT_URL", world.server.url().as_str())]);
    assert!(said.starts_with("failed Denied"), "{said}");
    let cause = CdnErrorClass::Denied.cause(Cause::ListDistributions, &said);
    assert_eq!(cause, Some(Cause::Credentials), "{said}");
    assert!(world.server.seen().is_empty());
}

#[tokio::test]
async fn a_web_identity_is_exchanged_for_credentials() {
    let moto = Moto::start();
    moto::make_distribution(&moto, 0).await;
    let directory = tempfile::tempdir().expect("a directory");
    let token = directory.path().join("token");
    std::fs::write(&token, "a.web.token").expect("written");
    let environment = [
        ("AWS_ENDPOINT_URL", moto.url()),
        ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/allclear"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().expect("text")),
    ];
    assert_eq!(child(&environment), "listed 1");

    std::fs::remove_file(&token).expect("removed");
    let said = child(&environment);
    assert!(said.starts_with("failed Denied"), "{said}");
}

// Faults: F6
#[tokio::test]
async fn a_token_service_that_is_down_is_denied() {
    let world = World::new(stand_in::Options::default()).await;
    let directory = tempfile::tempdir().expect("a directory");
    let token = directory.path().join("token");
    std::fs::write(&token, "a.web.token").expect("written");
    let said = child(&[
        ("AWS_ENDPOINT_URL_CLOUDFRONT", world.server.url().as_str()),
        ("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1"),
        ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/allclear"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().expect("text")),
    ]);
    assert!(said.starts_with("failed Denied"), "{said}");
}

/// The child: lists distributions with everything from the environment and says what came of it.
#[tokio::test]
#[ignore = "started by the tests above"]
async fn list_with_the_environment() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    match CloudFront::new(Options::default()).await.distributions().await {
        Ok(listed) => println!("SAID listed {}", listed.len()),
        Err(error) => println!("SAID failed {:?} {}", error.class, error.message),
    }
}

/// Runs the child with nothing in its environment but `environment` and what keeps it away from this machine's own
/// credentials, and returns what it said.
fn child(environment: &[(&str, &str)]) -> String {
    let output = std::process::Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "cloudfront::environment::list_with_the_environment", "--ignored", "--nocapture"])
        .env_clear()
        .envs([(CHILD, "1"), ("AWS_EC2_METADATA_DISABLED", "true"), ("HOME", "/nonexistent")])
        .envs(environment.iter().copied())
        .output()
        .expect("the child runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains(SECRET), "{text}");
    let said = text.split_once("SAID ").map(|(_, rest)| rest.lines().next().unwrap_or_default().to_owned());
    said.unwrap_or_else(|| panic!("the child said nothing: {text} {}", String::from_utf8_lossy(&output.stderr)))
}
