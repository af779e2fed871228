//! Looks as a GitHub App.

use std::sync::Arc;

use forge::Http;
use futures_util::future::join_all;
use sandbox::forge::{ForgeHost, Kind, Site, Table};
use sandbox::git::GitHost;
use sandbox::http::{Server, StandIn};
use serde_json::json;

use super::{Desk, lasting};
use crate::apps::Installed;
use crate::scene::{Plain, REPOSITORY};

const TOKEN: &str = "installation-token-hunter2";

#[tokio::test]
async fn looks_share_a_token_that_reads_until_shortly_before_its_end() {
    let git = Arc::new(GitHost::new().expect("a git host"));
    git.create(REPOSITORY, &[]).expect("a repository");
    git.commit(REPOSITORY, "main", &[("a", b"")]).expect("a commit");
    git.require_basic("x-access-token", TOKEN);
    let forge = Arc::new(ForgeHost::new(Kind::GitHub, "shop/web", TOKEN, Arc::new(Table::default())));
    let installed = Installed::new(TOKEN);
    let judge = Arc::clone(&installed);
    forge.install_apps(move |request| judge.answer(request));
    let server =
        Server::start(Arc::new(Site { git: Arc::clone(&git), forge }) as Arc<dyn StandIn>).await.expect("loopback");
    let desk = Desk::new(Arc::new(Plain::new()) as Arc<dyn Http>);
    let secret = installed.secret();
    desk.safe.set(&secret.iter().map(|(key, value)| (*key, value.as_str())).collect::<Vec<_>>());
    let url = format!("{}/{REPOSITORY}", server.url());
    let looks = join_all((0..5).map(|_| desk.look_in(&url))).await;
    assert!(looks.iter().all(Result::is_ok), "{looks:?}");
    let asked = json!({"repositories": ["web"], "permissions": {"contents": "read"}});
    assert_eq!(installed.given(), [asked]);
    let forward = |seconds: u64| {
        desk.clock.forward(seconds);
        installed.forward(i64::try_from(seconds).expect("few"));
    };
    for (seconds, given) in [(3_299, 1), (1, 2)] {
        forward(seconds);
        assert!(desk.look_in(&url).await.is_ok());
        assert_eq!(installed.given().len(), given, "after {seconds} s more");
    }
    // A branch that is not there lasts, too: what the token may see has perhaps changed.
    git.require_basic("x-access-token", "another");
    let refused = lasting(desk.look_in(&url).await);
    assert!(refused.contains("the credentials are refused (401)") && !refused.contains(TOKEN), "{refused}");
    git.require_basic("x-access-token", TOKEN);
    forward(600);
    assert!(desk.look_in(&url).await.is_ok());
    assert_eq!(installed.given().len(), 3, "a token that was refused is asked for anew");
}
