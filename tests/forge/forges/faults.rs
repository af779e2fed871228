//! Forges and Secrets that refuse, misbehave or ask for patience (PF8).

use std::time::Duration;

use bytes::Bytes;
use objects::pipeline::proposal::ForgeKind;
use objects::ports::pipeline::Forge;
use purge::ports::{PortError, Retry};
use sandbox::http::{Action, Fault, Reply, Request, When};

use super::desk::{Desk, FILE, KINDS, PASSWORD, REPOSITORY, TOKEN, is_api};

fn said(status: u16, message: &str) -> Reply {
    Reply::full(status, "application/json", format!("{{\"message\": \"{message} {TOKEN}\"}}"))
}

/// What one fault of the API makes of a promotion: class, whether we are denied, and some of the words.
type Expected = (Retry, bool, &'static str);

fn table() -> Vec<(Reply, Expected)> {
    let date = |reply: Reply| reply.header("date", "Sun, 22 Nov 2026 18:00:00 GMT");
    let after = |seconds| Retry::After(Duration::from_secs(seconds));
    vec![
        (said(401, "Bad credentials"), (Retry::Never, true, "the token is refused (401): Bad credentials …")),
        (said(403, "Resource not accessible"), (Retry::Never, true, "no right to this (403)")),
        (said(404, "Not Found"), (Retry::Never, false, "the token does not show it (404)")),
        (said(409, "conflict"), (Retry::Later, false, "409: conflict")),
        (said(422, "Validation Failed"), (Retry::Later, false, "422")),
        (said(429, "slow down").header("retry-after", "30"), (after(31), false, "patience (429)")),
        (said(429, "slow down"), (after(60), false, "patience (429)")),
        (
            date(said(429, "slow down").header("retry-after", "Sun, 22 Nov 2026 18:02:00 GMT")),
            (after(121), false, "patience"),
        ),
        (
            date(said(403, "API limit").header("x-ratelimit-remaining", "0").header("x-ratelimit-reset", "1795370460")),
            (after(61), false, "patience (403)"),
        ),
        (said(403, "You have exceeded a secondary rate limit"), (after(60), false, "patience (403)")),
        (said(429, "come back in a year").header("retry-after", "31536000"), (after(600), false, "patience")),
        (said(500, "oops"), (Retry::Later, false, "answers 500: oops")),
        (said(503, "maintenance").header("retry-after", "10"), (after(11), false, "503")),
        (
            Reply::empty(301).header("location", "https://github.example.com/new/place?token=hunter2"),
            (Retry::Never, false, "https://github.example.com/new/place"),
        ),
        (Reply::full(200, "text/html", "<html>log in</html>"), (Retry::Later, false, "a login page")),
        (Reply::full(200, "application/json", "{}"), (Retry::Later, false, "another product")),
    ]
}

#[track_caller]
fn check(error: &PortError, (retry, denied, words): Expected, what: &str) {
    let said = error.to_string();
    assert_eq!((error.retry, error.denied), (retry, denied), "{what}: {said}");
    assert!(said.contains(words), "{what}: {said}");
    assert!(!said.contains("hunter2"), "{what}: {said}");
}

// Faults: PF8
#[tokio::test]
async fn each_refusal_has_its_class_its_pace_and_words_without_secrets() {
    for kind in KINDS {
        let mut desk = Desk::new(kind).await;
        let order = desk.order(1, "1.2.3");
        for method in [http::Method::GET, http::Method::POST] {
            for (number, (reply, expected)) in table().into_iter().enumerate() {
                let what = format!("{kind:?} {method} row {number}");
                // What is refused though no request is in the way is refused for good.
                let for_good = method == http::Method::POST && [409, 422].contains(&reply.status);
                let expected = if for_good { (Retry::Never, expected.1, expected.2) } else { expected };
                let of_method = method.clone();
                let matches = move |request: &Request| is_api(request) && request.method == of_method;
                desk.server.inject(Fault::once(When::Before, Action::Answer(reply)).matching(matches));
                check(&desk.forges.propose(&order).await.expect_err(&what), expected, &what);
                desk.restart();
            }
        }
        assert_eq!(desk.opened(&order).await.number, 1, "in the end it is made, once");
        desk.pull();
    }
}

// Faults: PF8
#[tokio::test]
async fn a_forge_that_asks_for_patience_or_fails_is_left_alone_with_its_cause_in_words() {
    let with_little_left = Reply::full(200, "application/json", "[]")
        .header("date", "Sun, 22 Nov 2026 18:00:00 GMT")
        .header("ratelimit-limit", "2000")
        .header("ratelimit-remaining", "199")
        .header("ratelimit-reset", "1795371000");
    for (reply, words) in [
        (
            said(429, "slow down").header("retry-after", "60"),
            ", for these credentials, is left alone for 61 s more: it answers 429",
        ),
        (said(500, "oops"), "the repository is left alone for 2 s more: it answers 500"),
        (with_little_left, "is left alone for 600 s more: less than a tenth is left of what it allows us"),
    ] {
        let desk = Desk::new(ForgeKind::GitLab).await;
        let (order, mut other) = (desk.order(1, "1.2.3"), desk.order(2, "1.2.3"));
        other.environment.0 = "staging".to_owned();
        desk.server.inject(Fault::once(When::Before, Action::Answer(reply)).matching(is_api));
        let first = desk.forges.propose(&order).await;
        assert_eq!(first.is_ok(), words.contains("600"), "what is under way goes on: {first:?}");
        let sent = desk.http.sent();
        let resting = desk.forges.propose(&other).await.expect_err("rest");
        assert!(resting.to_string().contains(words), "{resting}");
        assert!(matches!(resting.retry, Retry::After(_)), "{resting:?}");
        assert_eq!(desk.http.sent(), sent, "without a request");
    }
}

// Faults: PF8
#[tokio::test]
async fn an_endless_answer_ends() {
    let desk = Desk::new(ForgeKind::GitHub).await;
    let (sender, chunks) = tokio::sync::mpsc::channel(4);
    let endless = async {
        while sender.send(Bytes::from(vec![b' '; 1 << 20])).await.is_ok() {}
        std::future::pending::<()>().await;
    };
    let stream = Reply::stream(200, "application/json", chunks);
    desk.server.inject(Fault::once(When::Before, Action::Answer(stream)).matching(is_api));
    let order = desk.order(1, "1.2.3");
    let failed = tokio::select! {
        failed = desk.forges.propose(&order) => failed.expect_err("too long"),
        () = endless => unreachable!("pending"),
    };
    check(&failed, (Retry::Later, false, "longer than 16777216 bytes"), "endless");
}

#[tokio::test]
async fn a_secret_that_lacks_something_says_what() {
    let desk = Desk::new(ForgeKind::GitHub).await;
    let mut order = desk.order(1, "1.2.3");
    let failed = async |order: &_, expected: Expected| {
        check(&desk.forges.propose(order).await.expect_err("refused"), expected, "a Secret");
    };
    desk.secrets.set("token", None);
    failed(&order, (Retry::Never, false, "failed to use Secret shop/forge: it has no key token")).await;
    desk.secrets.set("token", Some(b"\xff"));
    failed(&order, (Retry::Never, false, "its key token is no text")).await;
    desk.secrets.set("token", Some(b"two\nlines hunter2"));
    failed(&order, (Retry::Never, false, "a line break")).await;
    desk.secrets.set("token", Some(TOKEN.as_bytes()));
    desk.secrets.set("password", Some(b"wrong-hunter2"));
    failed(&order, (Retry::Never, true, "401")).await;
    desk.secrets.set("password", None);
    desk.git.require_basic("git", TOKEN);
    desk.opened(&order).await;
    desk.secrets.set("password", Some(PASSWORD.as_bytes()));
    order.repository.secret = None;
    failed(&order, (Retry::Never, false, "no Secret is named")).await;
}

// Faults: PF9
#[tokio::test]
async fn a_repository_without_a_branch_a_marker_or_sense_says_so() {
    let desk = Desk::new(ForgeKind::GitHub).await;
    let order = desk.order(1, "1.2.3");
    let failed = async |order: &_, words| {
        check(&desk.forges.propose(order).await.expect_err("refused"), (Retry::Never, false, words), words);
    };
    let mut elsewhere = order.clone();
    elsewhere.repository.base = "develop".to_owned();
    failed(&elsewhere, "the repository has no branch develop").await;
    let mut below = order.clone();
    below.repository.path = Some("other".to_owned());
    failed(&below, "there is no folder other").await;
    let mut unmarked = order.clone();
    unmarked.environment.0 = "qa".to_owned();
    failed(&unmarked, "no YAML file has the marker # {\"$promotion\": \"shop:web:qa\"}").await;

    let commit =
        |file: &str, text: &str| desk.git.commit(REPOSITORY, "main", &[(file, text.as_bytes())]).expect("a commit");
    let marker = "# {\"$promotion\": \"shop:web:prod\"}";
    commit("chart/template.yaml", &format!("{{{{- if .x }}}}\na: 1 {marker}\n{{{{- end }}}}\n"));
    desk.opened(&order).await;
    let body = desk.pull().body;
    assert!(body.contains("- not readable, so not looked into: `chart/template.yaml, line 1:"), "{body}");
    commit(FILE, &format!("image: {marker}\n  tag: 1.2.2\n"));
    failed(&order, "the marker in apps/web/values.yaml, line 1: it stands at a mapping").await;
}

// Faults: PF8
#[tokio::test]
async fn no_secret_reaches_what_others_read() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        let order = desk.order(1, "1.2.3");
        desk.opened(&order).await;
        desk.forges.withdraw(&order, Some(1), "why").await.expect("closed");
        let shown = format!("{:?} {:?} {}", desk.forge.pulls(), desk.server.seen(), desk.git(&["log", "--all", "-p"]));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
