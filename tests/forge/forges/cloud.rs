//! The two kinds of token that Bitbucket Cloud has.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use objects::pipeline::proposal::{ForgeKind, RequestState};
use objects::ports::pipeline::Forge;
use sandbox::forge::EMAIL;
use sandbox::http::{Action, Fault, Reply, When};

use super::desk::{Desk, TOKEN, is_api};

#[tokio::test]
async fn an_access_token_opens_git_and_the_api() {
    let desk = Desk::new(ForgeKind::BitbucketCloud).await;
    ["username", "password"].iter().for_each(|key| desk.secrets.set(key, None));
    desk.git.require_basic("x-token-auth", TOKEN);
    let order = desk.order(1, "1.2.3");
    let request = desk.opened(&order).await;
    assert_eq!(desk.forges.look(&order, request.number).await, Ok(RequestState::Open));
}

#[tokio::test]
async fn so_does_an_api_token_under_the_address_of_its_account_which_is_not_said() {
    let desk = Desk::new(ForgeKind::BitbucketCloud).await;
    desk.secrets.set("password", None);
    desk.secrets.set("username", Some(EMAIL.as_bytes()));
    desk.git.require_basic("x-bitbucket-api-token-auth", TOKEN);
    let order = desk.order(1, "1.2.3");
    desk.opened(&order).await;

    let proof = STANDARD.encode(format!("{EMAIL}:{TOKEN}"));
    let echo = format!("{{\"error\": {{\"message\": \"no such header: Basic {proof} with {TOKEN}\"}}}}");
    let echo = Reply::full(400, "application/json", echo);
    desk.server.inject(Fault::once(When::Before, Action::Answer(echo)).matching(is_api));
    let refused = desk.forges.propose(&order).await.expect_err("refused").to_string();
    assert!(refused.contains("no such header: Basic … with …"), "{refused}");
}
