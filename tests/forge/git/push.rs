//! What becomes of a push: the lease, refusals, lost and false answers.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use forge::git::{Oid, Pushed};
use purge::ports::Retry;
use sandbox::http::{Action, Fault, Reply, Request, When};

use crate::scene::{FILE, REPOSITORY, Scene, build};

fn pushes(request: &Request) -> bool {
    request.path.ends_with("/git-receive-pack")
}

/// A report on `promote`, as git sends it: packets within the packets of a side band.
fn report(how: &str) -> Reply {
    let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let report = format!("{}{}0000", line("unpack ok\n"), line(how));
    result(line(&format!("\u{1}{report}")) + "0000")
}

fn result(body: impl Into<Bytes>) -> Reply {
    Reply::full(200, "application/x-git-receive-pack-result", body)
}

#[tokio::test]
async fn a_branch_that_moved_is_left_as_it_is() {
    let scene = Scene::with_files().await;
    let first = scene.built("2.0").await;
    let ours = scene.built("3.0").await;
    let push = async |old| scene.remote.push("promote", old, Some(&ours)).await;
    assert_eq!(push(Some(first.id)).await, Ok(Pushed::Moved(None)), "it was to be there, and is not");
    assert_eq!(scene.remote.push("promote", None, Some(&first)).await, Ok(Pushed::Done));
    assert_eq!(push(None).await, Ok(Pushed::Moved(Some(first.id))), "it was not to be there, and is");
    assert_eq!(push(Some(Oid::new([7; 20]))).await, Ok(Pushed::Moved(Some(first.id))));
    assert_eq!(scene.git(&["rev-parse", "promote"]), first.id.to_string());
    assert_eq!(push(Some(first.id)).await, Ok(Pushed::Done));
}

// Faults: PF9
#[tokio::test]
async fn a_branch_that_moves_between_our_look_and_our_push_is_left_as_it_is() {
    let scene = Scene::with_files().await;
    let ours = scene.built("2.0").await;
    for (old, name) in [(None, "made"), (Some(scene.main().await), "moved")] {
        if old.is_some() {
            scene.git(&["branch", name, "main"]);
        }
        let host = Arc::clone(&scene.host);
        scene.http.before_push(move || drop(host.commit(REPOSITORY, name, &[("theirs", b"1")]).expect("commit")));
        let pushed = scene.remote.push(name, old, Some(&ours)).await;
        let theirs = scene.git(&["rev-parse", name]).parse().expect("id");
        assert_eq!(pushed, Ok(Pushed::Moved(Some(theirs))), "{name}");
        assert_ne!(theirs, ours.id);
    }
}

#[tokio::test]
async fn what_a_hook_says_is_said() {
    let scene = Scene::with_files().await;
    scene
        .host
        .hook(REPOSITORY, "pre-receive", "#!/bin/sh\necho 'no promotions on Sunday' >&2\nexit 1\n")
        .expect("hook");
    let error = scene.remote.push("promote", None, Some(&scene.built("2.0").await)).await.expect_err("declined");
    assert_eq!(error.cause, "pre-receive hook declined; the server says: no promotions on Sunday");
    assert_eq!(error.retry, Retry::Never);
    assert!(error.attempted.ends_with("/shop/web.git"), "{}", error.attempted);
}

#[tokio::test]
async fn where_branches_only_go_forward_a_commit_on_top_is_taken() {
    let scene = Scene::with_files().await;
    scene.git(&["config", "receive.denyNonFastForwards", "true"]);
    let first = scene.built("2.0").await;
    assert_eq!(scene.remote.push("promote", None, Some(&first)).await, Ok(Pushed::Done));
    let second = scene.built("3.0").await;
    assert_eq!(scene.remote.push("promote", Some(first.id), Some(&second)).await, Ok(Pushed::ForwardOnly));
    let base = scene.main().await;
    let objects = scene.remote.fetch(&BTreeSet::from([base])).await.expect("fetched");
    let on_top = build(&objects, base, first.id, "3.0");
    assert_eq!(scene.remote.push("promote", Some(first.id), Some(&on_top)).await, Ok(Pushed::Done));
    assert_eq!(scene.git(&["show", &format!("promote:{FILE}")]), "tag: 3.0 # marker");
}

#[tokio::test]
async fn a_push_whose_answer_is_lost_is_found_when_it_is_repeated() {
    let scene = Scene::with_files().await;
    let built = scene.built("2.0").await;
    for when in [When::Before, When::After] {
        scene.server.inject(Fault::once(when, Action::Cut).matching(pushes));
        let error = scene.remote.push("promote", None, Some(&built)).await.expect_err("cut");
        assert_eq!(error.retry, Retry::Later);
    }
    let before = scene.requests();
    assert_eq!(scene.remote.push("promote", None, Some(&built)).await, Ok(Pushed::Done));
    assert_eq!(scene.requests() - before, 1, "it looks, and it is there");
    assert_eq!(scene.built("2.0").await, built, "the same input makes the same commit");
}

#[tokio::test]
async fn the_branch_is_believed_and_not_the_report() {
    let scene = Scene::with_files().await;
    let built = scene.built("2.0").await;
    for lie in [report("ok refs/heads/promote\n"), result(""), result("0000")] {
        scene.answer(pushes, lie);
        let error = scene.remote.push("promote", None, Some(&built)).await.expect_err("it is not there");
        assert_eq!(error.cause, "no refusal was reported, but the branch is as it was");
        assert_eq!(error.retry, Retry::Later);
    }
    scene.answer(pushes, report("ng refs/heads/promote failed to update ref\n"));
    let error = scene.remote.push("promote", None, Some(&built)).await.expect_err("it is not there");
    assert_eq!((error.cause.as_str(), error.retry), ("failed to update ref", Retry::Later));
    let lie = Action::Answer(report("ng refs/heads/promote failed to update ref\n"));
    scene.server.inject(Fault::once(When::After, lie).matching(pushes));
    assert_eq!(scene.remote.push("promote", None, Some(&built)).await, Ok(Pushed::Done));
    let removed = scene.remote.push("promote", Some(built.id), None).await;
    assert_eq!((removed, scene.git(&["branch", "--list", "promote"]).as_str()), (Ok(Pushed::Done), ""));
    for (how, answer) in [("without any report", result("")), ("with a broken one", result("00"))] {
        scene.server.inject(Fault::once(When::After, Action::Answer(answer)).matching(pushes));
        assert_eq!(scene.remote.push("promote", None, Some(&built)).await, Ok(Pushed::Done), "{how}");
        scene.git(&["branch", "-D", "promote"]);
    }
}

#[tokio::test]
async fn a_branch_is_removed_only_while_it_is_ours() {
    let scene = Scene::with_files().await;
    let built = scene.built("2.0").await;
    scene.host.commit(REPOSITORY, "promote", &[("theirs", b"1")]).expect("commit");
    let theirs = scene.git(&["rev-parse", "promote"]).parse().expect("id");
    assert_eq!(scene.remote.push("promote", Some(built.id), None).await, Ok(Pushed::Moved(Some(theirs))));
    assert_eq!(scene.remote.push("promote", Some(theirs), None).await, Ok(Pushed::Done));
    assert_eq!(scene.remote.push("promote", Some(theirs), None).await, Ok(Pushed::Done), "it is gone");
}

#[tokio::test]
async fn a_name_that_no_branch_has_is_not_sent() {
    let scene = Scene::with_files().await;
    let built = scene.built("2.0").await;
    let before = scene.requests();
    for name in ["", "a b", "a\nb", "a\0report-status", "a..b", "a:b", "a*"] {
        let error = scene.remote.push(name, None, Some(&built)).await.expect_err(name);
        assert_eq!(error.retry, Retry::Never, "{name:?}");
    }
    assert_eq!(scene.requests(), before);
}
