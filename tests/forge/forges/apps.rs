//! Promotions as a GitHub App.

use std::sync::Arc;

use objects::pipeline::proposal::{ForgeKind, RequestState};
use objects::ports::pipeline::Forge;
use purge::ports::{PortError, Retry};

use super::desk::{Desk, PASSWORD, TOKEN};
use crate::apps::Installed;

/// Its form is right, and it is no key.
const NO_KEY: &str = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----";

async fn desk() -> (Desk, Arc<Installed>) {
    let (desk, installed) = (Desk::new(ForgeKind::GitHub).await, Installed::new(TOKEN));
    desk.git.require_basic("x-access-token", TOKEN);
    let judge = Arc::clone(&installed);
    desk.forge.install_apps(move |request| judge.answer(request));
    ["username", "password", "token"].iter().for_each(|key| desk.secrets.set(key, None));
    set(&desk, &installed);
    (desk, installed)
}

fn set(desk: &Desk, installed: &Installed) {
    installed.secret().iter().for_each(|(key, value)| desk.secrets.set(key, Some(value.as_bytes())));
}

#[tokio::test]
async fn an_app_promotes_with_one_token_for_its_one_repository() {
    let (desk, installed) = desk().await;
    let order = desk.order(1, "1.2.3");
    let request = desk.opened(&order).await;
    assert_eq!(desk.forges.look(&order, request.number).await, Ok(RequestState::Open));
    assert_eq!(desk.opened(&order).await, request);
    assert_eq!(installed.given(), [serde_json::json!({"repositories": ["web"]})]);
    assert_eq!(desk.other().propose(&order).await.map(|_| installed.given().len()), Ok(2), "another process");
}

#[tokio::test]
async fn a_token_that_git_refuses_is_not_said_and_rests() {
    let (desk, installed) = desk().await;
    let order = desk.order(1, "1.2.3");
    desk.opened(&order).await;
    desk.git.require_basic("x-access-token", "another");
    let refused = desk.forges.propose(&order).await.expect_err("the token is refused");
    assert!(refused.denied && !refused.to_string().contains(TOKEN), "{refused}");
    let rests = desk.forges.propose(&order).await.expect_err("the credentials rest");
    assert!(rests.cause.contains("for these credentials"), "{rests}");
    assert_eq!(installed.given().len(), 1);
}

/// What a promotion is refused with, after which its credentials have changed or not.
async fn refused(change: impl FnOnce(&Desk, &Installed)) -> (Desk, PortError) {
    let (desk, installed) = desk().await;
    change(&desk, &installed);
    let refused = desk.forges.propose(&desk.order(1, "1.2.3")).await.expect_err("refused");
    let words = refused.to_string();
    let key = installed.pem();
    let key = key.lines().nth(1).expect("a key");
    assert!(!words.contains(TOKEN) && !words.contains(key) && !words.contains("eyJ"), "{words}");
    assert_eq!((refused.retry, installed.given()), (Retry::Never, Vec::new()), "{words}");
    (desk, refused)
}

// Faults: PF8
#[tokio::test]
async fn who_gets_no_token_learns_what_to_change() {
    let later = |_: &Desk, installed: &Installed| installed.forward(3600);
    let earlier = |_: &Desk, installed: &Installed| installed.forward(-3600);
    let another = |desk: &Desk, _: &Installed| {
        let another = Installed::new(TOKEN);
        set(desk, &another);
    };
    for (desk, refused) in [refused(later).await, refused(earlier).await, refused(another).await] {
        assert!(refused.denied && refused.cause.contains("the clock of this machine must be right"), "{refused}");
        let asked = desk.asked().len();
        let rests = desk.forges.propose(&desk.order(1, "1.2.3")).await.expect_err("the credentials rest");
        assert!(rests.cause.contains("for these credentials"), "{rests}");
        assert_eq!(desk.asked().len(), asked);
    }
    let set = |key: &'static str, value: &'static str| {
        move |desk: &Desk, _: &Installed| desk.secrets.set(key, Some(value.as_bytes()))
    };
    for (refused, words) in [
        (refused(set("githubAppInstallationID", "816")).await, "the App must be installed for this repository"),
        (refused(set("githubAppBaseURL", "https://ghe.example.com/api/v3")).await, "its githubAppBaseURL is not"),
        (refused(set("githubAppPrivateKey", PASSWORD)).await, "is no RSA private key in PEM"),
        (refused(set("githubAppPrivateKey", NO_KEY)).await, "is no RSA private key in PEM"),
        // A token is used in place of the App, as it was before Apps were known.
        (refused(set("token", PASSWORD)).await, "the credentials are refused (401)"),
    ] {
        let (_, refused) = refused;
        assert!(refused.cause.contains(words) && !refused.cause.contains(PASSWORD), "{refused}");
    }
    let owner = |owner: &'static str| {
        move |desk: &Desk, _: &Installed| {
            desk.secrets.set("githubAppInstallationID", None);
            desk.secrets.set("githubAppInstallationOwner", Some(owner.as_bytes()));
        }
    };
    let (_, stranger) = refused(owner("ann")).await;
    assert!(stranger.cause.contains("its githubAppInstallationOwner is not shop"), "{stranger}");
    let (desk, installed) = desk().await;
    owner("Shop")(&desk, &installed);
    desk.opened(&desk.order(1, "1.2.3")).await;
    assert_eq!(installed.given().len(), 1, "of the installation that the repository has");
    desk.secrets.set("githubAppInstallationOwner", None);
    desk.secrets.set("githubAppInstallationID", Some(b"815"));
    let mut order = desk.order(1, "1.2.3");
    order.repository.url = order.repository.url.replace("web.git", "other.git");
    let refused = desk.forges.propose(&order).await.expect_err("another repository");
    assert!(refused.retry == Retry::Never && refused.cause.contains("must be given this repository"), "{refused}");
}
