//! The process ends before or after each of its exchanges, and the next one proposes the same again (PF1, PF3).

use objects::pipeline::proposal::{ForgeKind, Proposed};
use objects::ports::pipeline::Forge;
use sandbox::forge::PullState;
use sandbox::http::{Action, Fault, When};

use super::desk::{Desk, End, HEAD, KINDS, is_api};

/// Ends the first life of a promotion as `end` says; afterwards there is one request and one commit, and they stay.
async fn ends(kind: ForgeKind, end: End) {
    let mut desk = Desk::new(kind).await;
    let order = desk.order(1, "1.2.3");
    desk.http.end_at(end);
    tokio::select! {
        done = desk.forges.propose(&order) => panic!("{kind:?} {end:?}: {done:?}"),
        () = desk.http.ended() => {}
    }
    desk.restart();
    let request = desk.opened(&order).await;
    assert_eq!(desk.pull().title, "Promote shop/web in prod to 1.2.3", "{kind:?} {end:?}");
    assert_eq!((request.number, request.commit), (1, Some(desk.tip())));
    assert_eq!(desk.git(&["rev-list", "--count", &format!("main..{HEAD}")]), "1");
}

// Faults: PF1
#[tokio::test]
async fn a_promotion_that_ends_anywhere_is_one_request_in_the_end() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        desk.opened(&desk.order(1, "1.2.3")).await;
        let exchanges = desk.http.sent();
        // What is before the first thing that is written is the same for all forges.
        let first = match kind {
            ForgeKind::GitHub => 0,
            ForgeKind::BitbucketCloud => exchanges - 5,
            ForgeKind::GitLab | ForgeKind::BitbucketServer | ForgeKind::Gitea => exchanges - 4,
        };
        for request in first..exchanges {
            for is_sent in [false, true] {
                ends(kind, End { request, is_sent }).await;
            }
        }
    }
}

// Faults: PF1
#[tokio::test]
async fn a_withdrawal_that_ends_anywhere_is_done_in_the_end() {
    for request in 0.. {
        let mut desk = Desk::new(ForgeKind::GitHub).await;
        let order = desk.order(1, "1.2.3");
        desk.opened(&order).await;
        desk.restart();
        desk.http.end_at(End { request, is_sent: true });
        let done = tokio::select! {
            done = desk.forges.withdraw(&order, Some(1), "why") => { done.expect("done"); true }
            () = desk.http.ended() => false,
        };
        desk.restart();
        desk.forges.withdraw(&order, Some(1), "why").await.expect("closed");
        assert_eq!((desk.pull().state, desk.git(&["branch", "--list", HEAD])), (PullState::Closed, String::new()));
        assert!((1..=2).contains(&desk.pull().comments.len()), "a comment may be there twice, never more");
        if done {
            break;
        }
    }
}

// Faults: PF3
#[tokio::test]
async fn a_lost_answer_to_a_creation_is_found_by_its_id() {
    for kind in KINDS {
        let mut desk = Desk::new(kind).await;
        let creation = |request: &sandbox::http::Request| is_api(request) && request.method == http::Method::POST;
        desk.server.inject(Fault::once(When::After, Action::Cut).matching(creation));
        let order = desk.order(1, "1.2.3");
        let failed = desk.forges.propose(&order).await.expect_err("its answer is lost");
        assert_eq!(failed.retry, purge::ports::Retry::Later);
        desk.restart();
        assert_eq!(desk.opened(&order).await.number, 1);
        desk.pull();
    }
}

/// The promotion of a slow life, and what a faster one did while it stood still before this exchange (PF2).
async fn is_overtaken(kind: ForgeKind, is_new: bool, request: usize) -> bool {
    let desk = Desk::new(kind).await;
    let fast = desk.other();
    if !is_new {
        fast.propose(&desk.order(1, "1.2.3")).await.expect("opened");
    }
    let (slow, newer) = (desk.order(2, "1.3.0"), desk.order(3, "1.4.0"));
    desk.http.end_at(End { request, is_sent: false });
    let overtake = async {
        desk.http.ended().await;
        let made = fast.propose(&newer).await;
        assert!(matches!(made, Ok(Proposed::Open(_))), "{kind:?} {request}: {made:?}");
        desk.http.resume();
        std::future::pending::<()>().await;
    };
    let done = tokio::select! {
        done = desk.forges.propose(&slow) => done,
        () = overtake => unreachable!("pending"),
    };
    let title = desk.pull().title;
    let message = desk.git(&["show", "-s", "--format=%s", HEAD]);
    let last = "Promote shop/web in prod to 1.4.0";
    let is_done = desk.http.sent() <= request;
    assert!(is_done || (title == last && message == last), "{kind:?} {request}: {title}, {message}, {done:?}");
    is_done
}

// Faults: PF2
#[tokio::test]
async fn a_slow_life_takes_nothing_back_from_a_faster_one() {
    for request in 0.. {
        if is_overtaken(ForgeKind::BitbucketServer, false, request).await {
            break;
        }
    }
    // Other forges have no versions: between the last look and the change one exchange is left. Bitbucket Cloud takes even a second
    // request for a change of the first one.
    for kind in [ForgeKind::GitHub, ForgeKind::BitbucketCloud] {
        for is_new in [true, false] {
            let desk = Desk::new(kind).await;
            if !is_new {
                desk.other().propose(&desk.order(1, "1.2.3")).await.expect("opened");
            }
            desk.opened(&desk.order(2, "1.3.0")).await;
            let is_refused = is_new && kind == ForgeKind::GitHub;
            let exchanges = desk.http.sent() - usize::from(!is_refused);
            for request in exchanges - 4..exchanges {
                assert!(!is_overtaken(kind, is_new, request).await);
            }
        }
    }
}

// Faults: PF3
/// Somebody, or another life of ours, opens the request between our look and our creation.
#[tokio::test]
async fn a_request_that_appears_meanwhile_is_taken() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        let order = desk.order(1, "1.2.3");
        desk.opened(&order).await;
        let nothing = match kind {
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => "{\"values\": []}",
            ForgeKind::GitHub | ForgeKind::GitLab | ForgeKind::Gitea => "[]",
        };
        let times = if kind == ForgeKind::Gitea { 2 } else { 1 };
        let empty = sandbox::http::Reply::full(200, "application/json", nothing);
        let list = |request: &sandbox::http::Request| is_api(request) && request.method == http::Method::GET;
        desk.server.inject(Fault::once(When::Before, Action::Answer(empty)).matching(list).times(times));
        assert_eq!(desk.opened(&order).await.number, 1, "{kind:?}");
        desk.pull();
    }
}
