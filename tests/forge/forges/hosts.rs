//! Git hosts that refuse, lack something, or change between two of our looks (PF9). What the git client itself makes of a
//! host's misbehaviour is tried in `git`.

use objects::pipeline::proposal::{ForgeKind, Proposed};
use objects::ports::pipeline::Forge;
use purge::ports::Retry;
use sandbox::forge::PullState;

use super::desk::{Desk, FILE, HEAD, PASSWORD, REPOSITORY, TOKEN};

// Faults: PF9
#[tokio::test]
async fn a_branch_that_moves_between_our_look_and_our_push_is_left_as_it_is() {
    let mut desk = Desk::new(ForgeKind::GitHub).await;
    let order = desk.order(1, "1.2.3");
    let git = std::sync::Arc::clone(&desk.git);
    desk.http.before_push(move || {
        git.git(REPOSITORY, &["branch", HEAD, "main"]).expect("a branch");
        git.commit(REPOSITORY, HEAD, &[("more", b"")]).expect("a commit");
    });
    let lost = desk.forges.propose(&order).await.expect_err("the lease is lost");
    assert_eq!((lost.retry, lost.cause.as_str()), (Retry::Later, "the branch moved meanwhile"));
    let theirs = desk.tip();
    desk.restart();
    assert!(matches!(desk.forges.propose(&order).await, Ok(Proposed::Foreign(_))));
    assert_eq!((desk.tip(), desk.forge.pulls()), (theirs, Vec::new()));
}

// Faults: PF9
#[tokio::test]
async fn a_hook_that_refuses_is_heard_and_lasts() {
    let desk = Desk::new(ForgeKind::GitHub).await;
    let hook = "#!/bin/sh\necho 'commits must be signed' >&2\nexit 1\n";
    desk.git.hook(REPOSITORY, "pre-receive", hook).expect("a hook");
    let refused = desk.forges.propose(&desk.order(1, "1.2.3")).await.expect_err("refused");
    assert_eq!(refused.retry, Retry::Never, "{refused}");
    assert!(refused.cause.contains("commits must be signed"), "{refused}");
    assert_eq!(desk.forge.pulls(), [], "no branch, no request");
}

// Faults: PF9
#[tokio::test]
async fn hosts_without_filters_or_the_newer_protocol_serve_as_well() {
    let old: [fn(&Desk); 2] =
        [|desk| _ = desk.git(&["config", "uploadpack.allowFilter", "false"]), |desk| desk.git.forget_v2()];
    for make_old in old {
        let desk = Desk::new(ForgeKind::Gitea).await;
        make_old(&desk);
        assert_eq!(desk.opened(&desk.order(1, "1.2.3")).await.commit, Some(desk.tip()));
    }
}

// Faults: PF9
#[tokio::test]
async fn an_empty_repository_has_no_base() {
    let desk = Desk::new(ForgeKind::GitHub).await;
    desk.git.create("shop/empty.git", &[]).expect("a repository");
    let mut order = desk.order(1, "1.2.3");
    order.repository.url = order.repository.url.replace("web.git", "empty.git");
    let refused = desk.forges.propose(&order).await.expect_err("nothing there");
    assert_eq!(refused.retry, Retry::Never);
    assert!(refused.cause.contains("no branch main"), "{refused}");
}

/// Also the way back: a base that moves on makes a new commit on it, under the same request.
#[tokio::test]
async fn a_base_that_moves_on_is_built_upon_anew() {
    let desk = Desk::new(ForgeKind::GitLab).await;
    let order = desk.order(1, "1.2.3");
    let first = desk.opened(&order).await;
    desk.git.commit(REPOSITORY, "main", &[("other", b"")]).expect("a commit");
    let second = desk.opened(&order).await;
    assert_ne!(first.commit, second.commit);
    assert_eq!(desk.git(&["rev-parse", &format!("{HEAD}^")]), desk.git(&["rev-parse", "main"]));
    assert_eq!(desk.git(&["diff", "--name-only", "main", HEAD]), FILE);
    assert_eq!((desk.pull().state, desk.forge.pulls().len()), (PullState::Open, 1));
    desk.git.require_basic("git", "changed");
    let refused = desk.forges.propose(&order).await.expect_err("another password");
    assert!(refused.denied && !refused.to_string().contains(PASSWORD), "{refused}");
}

/// Git over SSH, and the API of the same forge over HTTPS.
#[tokio::test]
async fn a_promotion_goes_over_ssh_with_a_key_for_git_and_a_token_for_the_request() {
    let desk = Desk::new(ForgeKind::BitbucketCloud).await;
    let mut order = desk.order(1, "1.2.3");
    order.repository.url = "ssh://git@bitbucket.org/shop/web.git".to_owned();
    let refused = async |words: &str| {
        let error = desk.forges.propose(&order).await.expect_err(words);
        assert!(error.cause.contains(words) && error.retry == Retry::Never, "{error}");
    };
    refused("it has no key identity").await;
    desk.secrets.set("identity", Some(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"));
    refused("it has no key known_hosts").await;
    desk.secrets.set("known_hosts", Some(b"bitbucket.org ssh-ed25519 AAAA"));
    desk.secrets.set("token", None);
    refused("no key token").await;
    desk.secrets.set("token", Some(TOKEN.as_bytes()));
    let request = desk.opened(&order).await;
    assert_eq!(request.commit.as_deref(), Some(desk.tip().as_str()));
    assert!(desk.server.seen().iter().all(|seen| !seen.path.contains("-pack")), "git is spoken over SSH alone");
}
