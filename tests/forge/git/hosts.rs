//! What hosts say that is not git's: who we are, where the repository is, when to come again.

use std::sync::Arc;
use std::time::Duration;

use forge::git::{Credentials, Pushed, Remote};
use purge::ports::Retry;
use sandbox::http::{Action, Fault, Reply, Request, When};

use crate::scene::{REPOSITORY, Scene};

const SECRET: &str = "hunter2-token";

fn basic(password: &str) -> Credentials {
    Credentials::Basic { user: "robot".to_owned(), password: password.to_owned() }
}

#[tokio::test]
async fn a_host_that_asks_who_we_are_is_told() {
    let scene = Scene::with_files().await;
    let look = async |credentials: Option<Credentials>| scene.stranger(credentials.as_ref()).refs(&["HEAD"]).await;
    scene.host.require_basic("robot", SECRET);
    assert!(look(Some(basic(SECRET))).await.is_ok());
    for (credentials, cause) in [
        (None, "it asks for credentials (401)"),
        (Some(basic("wrong")), "the credentials are refused (401): who are you?"),
        (Some(Credentials::Bearer(SECRET.to_owned())), "the credentials are refused (401): who are you?"),
    ] {
        let error = look(credentials).await.expect_err(cause);
        assert_eq!((error.cause.as_str(), error.denied, error.retry), (cause, true, Retry::Never));
    }
    scene.host.require_bearer(SECRET);
    assert!(look(Some(Credentials::Bearer(SECRET.to_owned()))).await.is_ok());
}

#[tokio::test]
async fn a_host_that_answers_only_git_takes_us_for_it() {
    let scene = Scene::with_files().await;
    let is_other = |request: &Request| !request.header("user-agent").is_some_and(|name| name.starts_with("git/2."));
    scene.server.inject(Fault::once(When::Before, Action::Answer(Reply::empty(404))).matching(is_other).times(9));
    let built = scene.built("2.0").await;
    assert_eq!(scene.remote.push("promote", None, Some(&built)).await, Ok(Pushed::Done));
}

#[tokio::test]
async fn what_proves_us_is_in_no_words_even_if_the_host_repeats_it() {
    let scene = Scene::with_files().await;
    let encoded = "cm9ib3Q6aHVudGVyMi10b2tlbg==";
    for credentials in [basic(SECRET), Credentials::Bearer(SECRET.to_owned())] {
        let echo = format!("you sent {encoded},\r\nthat is {SECRET}\u{1b}[31m {}", "x".repeat(9_000));
        scene.server.inject(Fault::once(When::Before, Action::Answer(Reply::full(403, "text/plain", echo))));
        let error = scene.stranger(Some(&credentials)).refs(&["HEAD"]).await.expect_err("forbidden");
        let said = format!("{error} {error:?} {credentials:?}");
        assert!(!said.contains(SECRET), "{said}");
        assert!(matches!(credentials, Credentials::Bearer(_)) || !said.contains(encoded), "{said}");
        assert!(!error.cause.contains(char::is_control) && error.cause.len() < 500, "{error}");
        assert!(error.denied);
    }
}

#[tokio::test]
async fn each_answer_that_is_not_gits_is_a_reason_of_its_own() {
    let scene = Scene::with_files().await;
    let moved =
        |to: &str| Reply::empty(301).header("location", format!("{to}/info/refs?service=git-upload-pack&token=t"));
    let page = Reply::full(200, "text/html; charset=utf-8", "<html>log in</html>");
    for (reply, cause, retry) in [
        (
            moved("https://git.example.com/new"),
            "it redirects to https://git.example.com/new, which is not followed; if the repository is there, change the URL",
            Retry::Never,
        ),
        (
            moved("https://u:p@git.example.com/new"),
            "it redirects to another place, which is not followed",
            Retry::Never,
        ),
        (page, "the answer is not git's: a login page, or a proxy, or no git host", Retry::Later),
        (
            Reply::full(429, "text/plain", "slow down").header("retry-after", "7"),
            "the server asks for patience (429): slow down",
            Retry::After(Duration::from_secs(7)),
        ),
        (
            Reply::empty(503).header("retry-after", "99999999999"),
            "the server asks for patience (503)",
            Retry::After(Duration::from_secs(600)),
        ),
        (Reply::empty(503).header("retry-after", "tomorrow"), "the server asks for patience (503)", Retry::Later),
        (Reply::full(502, "text/html", "<html>"), "the server answers 502", Retry::Later),
        (Reply::full(403, "text/plain", "not you"), "the credentials do not allow it (403): not you", Retry::Never),
        (
            Reply::full(200, "application/x-git-upload-pack-advertisement", "nonsense"),
            "the answer is not in git's protocol, or breaks off",
            Retry::Later,
        ),
        (
            Reply::full(200, "application/x-git-upload-pack-advertisement", "0015ERR out of memory"),
            "the server says: out of memory",
            Retry::Later,
        ),
    ] {
        scene.server.inject(Fault::once(When::Before, Action::Answer(reply)));
        let error = scene.remote.refs(&["HEAD"]).await.expect_err(cause);
        assert_eq!((error.cause.as_str(), error.retry), (cause, retry));
    }
    scene.server.inject(Fault::once(When::Before, Action::Cut));
    assert_eq!(scene.remote.refs(&["HEAD"]).await.expect_err("cut").retry, Retry::Later);
    assert!(scene.remote.refs(&["HEAD"]).await.is_ok());
}

#[tokio::test]
async fn a_repository_that_is_not_there_or_not_readable_is_lasting() {
    let scene = Scene::with_files().await;
    let at = |path: &str| {
        let http = Arc::clone(&scene.http) as Arc<dyn forge::Http>;
        Remote::new(http, &format!("{}/{path}", scene.server.url()), None, None).expect("a URL")
    };
    let error = at("shop/none.git").refs(&["HEAD"]).await.expect_err("404");
    assert!(error.cause.starts_with("no such repository, or the credentials do not show it (404)"), "{error}");
    assert_eq!((error.retry, error.denied), (Retry::Never, false));
    assert!(at(&format!("{REPOSITORY}/")).refs(&["HEAD"]).await.is_ok(), "a slash at the end is none");

    scene.host.create("shop/new.git", &["--object-format=sha256"]).expect("a repository");
    scene.host.commit("shop/new.git", "main", &[("a", b"b")]).expect("commit");
    for old in [false, true] {
        if old {
            scene.host.forget_v2();
        }
        let error = at("shop/new.git").refs(&["HEAD"]).await.expect_err("sha256");
        assert_eq!(error.cause, "the repository has sha256 ids; only sha1 can be read yet", "old: {old}");
        assert_eq!(error.retry, Retry::Never);
    }
}

#[tokio::test]
async fn a_url_that_is_none_or_holds_a_secret_is_refused_without_repeating_it() {
    let scene = Scene::empty().await;
    for url in [
        "git@github.com:shop/web.git",
        "ssh://git@example.com/shop/web",
        "file:///etc",
        "ext::sh -c id",
        "https://",
        "",
        "https://robot:hunter2-token@example.com/shop",
        "https://example.com/shop?token=hunter2-token",
        "https://example.com/shop#x",
        "https://exa mple.com/",
        "/shop/web",
    ] {
        let refused = Remote::new(Arc::clone(&scene.http) as Arc<dyn forge::Http>, url, None, None);
        let error = refused.err().expect(url);
        assert_eq!(error.retry, Retry::Never);
        assert!(!error.to_string().contains(SECRET), "{error}");
    }
    let token = Credentials::Bearer("two\nlines".to_owned());
    let refused =
        Remote::new(Arc::clone(&scene.http) as Arc<dyn forge::Http>, "https://example.com/a", Some(&token), None);
    assert!(refused.err().expect("no header").to_string().contains("line break"));
}
