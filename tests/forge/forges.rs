//! Promotions as pull requests on each kind of forge, with real git beneath them.

mod apps;
mod cloud;
mod crashes;
mod desk;
mod faults;
mod hosts;
mod options;
mod signed;
mod turns;

use expect_test::expect_file;
use kernel::id::PromotionSeq;
use objects::pipeline::proposal::{ForgeKind, Proposed, Request, RequestState};
use objects::ports::pipeline::Forge;
use sandbox::forge::{Pull, PullState};

use self::desk::{Desk, FILE, HEAD, KINDS, REPOSITORY, VALUES};

/// Each kind's address of its first request.
fn url(kind: ForgeKind) -> &'static str {
    match kind {
        ForgeKind::GitHub => "https://github.example.com/shop/web/pull/1",
        ForgeKind::GitLab => "https://gitlab.example.com/shop/web/-/merge_requests/1",
        ForgeKind::BitbucketServer => "https://bitbucket.example.com/projects/shop/repos/web/pull-requests/1",
        ForgeKind::BitbucketCloud => "https://bitbucket.org/shop/web/pull-requests/1",
        ForgeKind::Gitea => "https://gitea.example.com/shop/web/pulls/1",
    }
}

#[tokio::test]
async fn a_promotion_becomes_one_request_with_the_words_that_others_look_for() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        let request = desk.opened(&desk.order(1, "1.2.3")).await;
        println!("{kind:?}: {} exchanges", desk.http.sent());
        assert_eq!((request.number, request.url.as_str()), (1, url(kind)));
        assert_eq!(request.commit.as_deref(), Some(desk.tip().as_str()));
        let pull = desk.pull();
        assert_eq!((pull.head.as_str(), pull.base.as_str(), pull.state), (HEAD, "main", PullState::Open));
        let commit = desk.git(&["show", "-s", "--format=%an %cn %at%n%B", HEAD]);
        let words = format!("{}\n\n{}\n---\n{commit}\n", pull.title, pull.body);
        expect_file!["forges/promotion.md"].assert_eq(&words);
        assert_eq!(desk.git(&["diff", "--name-only", "main", HEAD]), FILE);
        assert_eq!(desk.git(&["show", &format!("{HEAD}:{FILE}")]), VALUES.replace("1.2.2", "1.2.3").trim());
        assert_eq!(desk.opened(&desk.order(1, "1.2.3")).await, request, "once more");
        assert_eq!(desk.pull(), Pull { version: desk.pull().version, ..pull }, "nothing was written");
    }
}

// Faults: PF2
#[tokio::test]
async fn a_later_promotion_takes_the_request_over_and_an_earlier_one_changes_nothing() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        desk.opened(&desk.order(1, "1.2.3")).await;
        desk.forge.edit(1, |pull| pull.reviewers.push("bob".to_owned()));
        assert_eq!(desk.opened(&desk.order(2, "1.3.0")).await.number, 1);
        let (pull, tip) = (desk.pull(), desk.tip());
        assert_eq!(pull.title, "Promote shop/web in prod to 1.3.0");
        assert!(pull.body.contains("\npromotion: id-of-2\n"), "{}", pull.body);
        assert_eq!(pull.reviewers, ["bob"], "{kind:?}");
        assert_eq!(desk.git(&["rev-list", "--count", &format!("main..{HEAD}")]), "1", "one commit on today's base");
        let late = desk.forges.propose(&desk.order(1, "1.2.3")).await;
        assert_eq!(late, Ok(Proposed::Outdated(PromotionSeq(2))));
        desk.forges.withdraw(&desk.order(1, "1.2.3"), Some(1), "late").await.expect("nothing to do");
        assert_eq!((desk.pull(), desk.tip()), (pull, tip));
    }
}

#[tokio::test]
async fn what_a_person_did_to_the_request_is_what_became_of_the_promotion() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        let order = desk.order(1, "1.2.3");
        let request = desk.opened(&order).await;
        assert_eq!(desk.forges.look(&order, 1).await, Ok(RequestState::Open));
        desk.forge.close(1);
        desk.git(&["update-ref", "-d", &format!("refs/heads/{HEAD}")]);
        assert_eq!(desk.forges.look(&order, 1).await, Ok(RequestState::Closed));
        // Of an ended one Bitbucket Cloud says the first digits of its commit alone, which are none.
        let commit = request.commit.clone().filter(|_| kind != ForgeKind::BitbucketCloud);
        assert_eq!(desk.forges.propose(&order).await, Ok(Proposed::Closed(Request { commit, ..request })));
        assert_eq!(desk.git(&["branch", "--list", HEAD]), "", "the branch that a person removed stays away");

        let again = desk.order(2, "1.2.3");
        assert_eq!(desk.opened(&again).await.number, 2, "a new promotion has a new request");
        desk.forge.merge(2);
        assert_eq!(desk.forges.look(&again, 2).await, Ok(RequestState::Merged));
        assert!(matches!(desk.forges.propose(&again).await, Ok(Proposed::Merged(request)) if request.number == 2));
        let next = desk.order(3, "1.2.3");
        assert_eq!(desk.forges.propose(&next).await, Ok(Proposed::NothingToChange));
        assert_eq!(desk.forges.look(&next, 77).await, Ok(RequestState::Closed), "a request that is gone");
        assert_eq!(desk.forge.pulls().len(), 2);
    }
}

/// Two apps in one file of values: the request of one is merged, and that of the other no longer fits.
#[tokio::test]
async fn an_open_request_is_made_anew_where_its_file_has_changed_on_the_base() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        let order = desk.order(1, "1.2.3");
        let request = desk.opened(&order).await;
        let first = desk.tip();
        desk.git.commit(REPOSITORY, "main", &[("other", b"")]).expect("a commit");
        assert_eq!(desk.forges.look(&order, request.number).await, Ok(RequestState::Open));
        assert_eq!(desk.tip(), first, "{kind:?}: it can be merged as it is");

        let both = format!("{VALUES}other: 2\n");
        desk.git.commit(REPOSITORY, "main", &[(FILE, both.as_bytes())]).expect("a commit");
        assert_eq!(desk.forges.look(&order, request.number).await, Ok(RequestState::Open));
        assert_eq!(desk.git(&["show", &format!("{HEAD}:{FILE}")]), both.replace("1.2.2", "1.2.3").trim(), "{kind:?}");
        assert_eq!(desk.git(&["rev-parse", &format!("{HEAD}^")]), desk.git(&["rev-parse", "main"]));
        assert_eq!((desk.pull().state, desk.forge.pulls().len()), (PullState::Open, 1));

        desk.git.commit(REPOSITORY, HEAD, &[("more", b"")]).expect("a commit");
        let by_hand = desk.tip();
        desk.git
            .commit(REPOSITORY, "main", &[(FILE, both.replace("other: 2", "other: 3").as_bytes())])
            .expect("a commit");
        let Ok(RequestState::Held(why)) = desk.forges.look(&order, request.number).await else { panic!("{kind:?}") };
        assert!(why.starts_with(FILE) && why.contains("by Ann <ann@example.com>: change"), "{why}");
        assert_eq!(desk.tip(), by_hand, "{kind:?}: commits of others stay");
    }
}

#[tokio::test]
async fn nothing_is_pushed_where_nothing_changes() {
    let desk = Desk::new(ForgeKind::GitHub).await;
    assert_eq!(desk.forges.propose(&desk.order(1, "1.2.2")).await, Ok(Proposed::NothingToChange));
    assert!(
        !desk.server.seen().iter().any(|seen| seen.path.contains("receive-pack") || seen.method == http::Method::PATCH)
    );
    assert_eq!((desk.forge.pulls(), desk.git(&["branch", "--list", HEAD])), (Vec::new(), String::new()));
}

// Faults: PF9
#[tokio::test]
async fn commits_of_others_are_replaced_only_if_a_person_says_so_or_they_are_merged() {
    // Bitbucket Cloud says the first digits of a commit alone.
    for kind in [ForgeKind::GitHub, ForgeKind::BitbucketCloud] {
        let desk = Desk::new(kind).await;
        let order = desk.order(1, "1.2.3");
        desk.opened(&order).await;
        desk.git
            .commit(REPOSITORY, HEAD, &[(FILE, b"tag: by hand # {\"$promotion\": \"shop:web:prod\"}\n")])
            .expect("a commit");
        let by_hand = desk.tip();
        let foreign = Proposed::Foreign(format!("{} by Ann <ann@example.com>: change", &by_hand[..12]));
        assert_eq!(desk.forges.propose(&order).await, Ok(foreign.clone()));
        assert_eq!(desk.forges.propose(&desk.order(2, "1.3.0")).await, Ok(foreign));
        assert_eq!(desk.tip(), by_hand);
        desk.forge.merge(1);
        assert_eq!(desk.opened(&desk.order(2, "1.3.0")).await.number, 2, "nothing is lost: it was merged");

        desk.git.commit(REPOSITORY, HEAD, &[("more", b"")]).expect("a commit");
        let mut allowed = desk.order(3, "1.4.0");
        allowed.overwrite = true;
        desk.opened(&allowed).await;
        assert_eq!(desk.git(&["rev-list", "--count", &format!("main..{HEAD}")]), "1");
    }
}

// Faults: PF9
#[tokio::test]
async fn a_commit_of_ours_that_somebody_amended_is_theirs() {
    let desk = Desk::new(ForgeKind::GitHub).await;
    desk.opened(&desk.order(1, "1.2.3")).await;
    let person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
    let message = desk.git(&["show", "-s", "--format=%B", HEAD]);
    let tree = format!("{HEAD}^{{tree}}");
    let amended = desk.git(&[&person[..], &["commit-tree", &tree, "-p", "main", "-m", &message]].concat());
    desk.git(&["update-ref", &format!("refs/heads/{HEAD}"), &amended]);
    assert!(matches!(desk.forges.propose(&desk.order(2, "1.3.0")).await, Ok(Proposed::Foreign(_))));
}

/// `shop-web/prod` and `shop/web-prod` have a branch each, and neither takes one that the other has made.
#[tokio::test]
async fn the_branch_of_another_pipeline_is_not_ours() {
    let desk = Desk::new(ForgeKind::Gitea).await;
    let mut other = desk.order(1, "1.2.3");
    other.pipeline = kernel::id::PipelineId::new("shop-web", "prod");
    other.environment = kernel::id::Environment("x".to_owned());
    let values = b"tag: 1 # {\"$promotion\": \"shop:web-prod:x\"}\nb: 1 # {\"$promotion\": \"shop-web:prod:x\"}\n";
    desk.git.commit(REPOSITORY, "main", &[("x.yaml", values)]).expect("a commit");
    desk.opened(&other).await;
    let made = desk.git(&["rev-parse", &other.branch()]);
    other.pipeline = kernel::id::PipelineId::new("shop", "web-prod");
    desk.git(&["update-ref", &format!("refs/heads/{}", other.branch()), &made]);
    assert!(matches!(desk.forges.propose(&other).await, Ok(Proposed::Foreign(_))));
    desk.git(&["update-ref", "-d", &format!("refs/heads/{}", other.branch())]);
    assert_eq!(desk.opened(&other).await.number, 2);
}

#[tokio::test]
async fn a_request_from_a_fork_or_without_our_id_is_not_taken_for_ours() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        let order = desk.order(1, "1.2.3");
        let body = "promotion: id-of-1";
        desk.forge.add(Pull { from_fork: true, state: PullState::Closed, ..Pull::new(HEAD, "main", "theirs", body) });
        desk.forge.add(Pull { state: PullState::Merged, ..Pull::new(HEAD, "main", "an earlier one", "") });
        desk.forge.add(Pull { state: PullState::Closed, ..Pull::new(HEAD, "release", "elsewhere", body) });
        assert_eq!(desk.opened(&order).await.number, 4, "{kind:?}");
    }
}

#[tokio::test]
async fn a_number_alone_is_no_request_of_ours() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        let order = desk.order(1, "1.2.3");
        desk.forge.add(Pull { state: PullState::Merged, ..Pull::new("feature", "main", "theirs", "") });
        desk.forge
            .add(Pull { state: PullState::Merged, ..Pull::new(HEAD, "main", "another life", "promotion: id-of-9") });
        desk.forge.add(Pull::new("feature", "main", "theirs", ""));
        for number in 1..=3 {
            assert_eq!(desk.forges.look(&order, number).await, Ok(RequestState::Closed), "{kind:?}, {number}");
        }
        desk.forges.withdraw(&order, Some(3), "why").await.expect("nothing to do");
        assert_eq!(desk.forge.pulls()[2].comments, Vec::<String>::new(), "{kind:?}");
    }
}

#[tokio::test]
async fn a_withdrawal_takes_along_what_an_earlier_promotion_left_open() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        desk.opened(&desk.order(1, "1.2.3")).await;
        desk.forges.withdraw(&desk.order(2, "1.3.0"), None, "why").await.expect("closed");
        assert_eq!(
            (desk.pull().state, desk.git(&["branch", "--list", HEAD])),
            (PullState::Closed, String::new()),
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn a_withdrawn_promotion_says_why_and_takes_its_branch_along() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        let order = desk.order(1, "1.2.3");
        desk.opened(&order).await;
        for number in [None, Some(1)] {
            desk.forges.withdraw(&order, number, "staging went back to 1.2.2").await.expect("closed");
            assert_eq!(desk.pull().state, PullState::Closed);
            assert_eq!(desk.pull().comments, ["staging went back to 1.2.2"], "{kind:?}");
            assert_eq!(desk.git(&["branch", "--list", HEAD]), "");
        }
        desk.forges.withdraw(&desk.order(2, "1.3.0"), None, "there is none").await.expect("nothing to do");

        desk.opened(&desk.order(3, "1.3.0")).await;
        desk.git.commit(REPOSITORY, HEAD, &[("more", b"")]).expect("a commit");
        desk.forges.withdraw(&desk.order(3, "1.3.0"), Some(2), "why").await.expect("closed");
        assert_eq!(desk.forge.pulls()[1].state, PullState::Closed);
        assert_ne!(desk.git(&["branch", "--list", HEAD]), "", "somebody else's commits stay");
    }
}

#[tokio::test]
async fn an_open_request_is_looked_at_for_nothing_where_the_forge_can_say_so() {
    for (kind, statuses) in [
        (ForgeKind::GitHub, ["GET 200", "GET 304", "GET 200"]),
        (ForgeKind::GitLab, ["GET 200", "GET 304", "GET 200"]),
        (ForgeKind::BitbucketServer, ["GET 200"; 3]),
        (ForgeKind::BitbucketCloud, ["GET 200"; 3]),
        (ForgeKind::Gitea, ["GET 200"; 3]),
    ] {
        let desk = Desk::new(kind).await;
        let order = desk.order(1, "1.2.3");
        desk.opened(&order).await;
        let before = desk.asked().len();
        for state in [RequestState::Open, RequestState::Open, RequestState::Merged] {
            if state == RequestState::Merged {
                desk.forge.merge(1);
            }
            assert_eq!(desk.forges.look(&order, 1).await, Ok(state), "{kind:?}");
        }
        assert_eq!(desk.asked()[before..], statuses, "{kind:?}");
    }
}

#[tokio::test]
async fn a_branch_that_only_goes_forward_gets_a_commit_on_top() {
    let desk = Desk::new(ForgeKind::GitHub).await;
    desk.git(&["config", "receive.denyNonFastForwards", "true"]);
    desk.opened(&desk.order(1, "1.2.3")).await;
    let first = desk.tip();
    let request = desk.opened(&desk.order(2, "1.3.0")).await;
    assert_eq!(desk.git(&["rev-parse", &format!("{HEAD}^")]), first);
    assert_eq!(request.commit, Some(desk.tip()));
    let second = desk.tip();
    desk.git.commit(REPOSITORY, "main", &[("other", b"")]).expect("a commit");
    assert_eq!(desk.opened(&desk.order(2, "1.3.0")).await, request, "what is there is enough");
    assert_eq!(desk.tip(), second);
}
