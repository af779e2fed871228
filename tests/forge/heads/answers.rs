//! What a wanted ref comes to, with real git and with dulwich.

use std::time::Duration;

use expect_test::expect;
use forge::heads::Patience;
use objects::repo::spec::Wanted;
use sandbox::http::{Action, Body, Fault, Reply, When};

use super::{Desk, branch, found, lasting, tag};
use crate::git::dulwich::serve;
use crate::scene::{REPOSITORY, Scene};

#[tokio::test]
async fn a_ref_of_each_kind_is_its_commit_and_a_second_look_is_one_request() {
    for old in [false, true] {
        let scene = Scene::with_files().await;
        if old {
            scene.host.forget_v2();
        }
        let desk = Desk::new(scene.http.clone());
        let main = scene.git(&["rev-parse", "main"]);
        scene.git(&["-c", "user.name=a", "-c", "user.email=a@example.com", "tag", "-a", "-m", "words", "v1", "main"]);
        scene.git(&["tag", "light", "main"]);
        assert_ne!(scene.git(&["rev-parse", "v1"]), main, "an annotated tag is an object of its own");
        let url = scene.url();
        assert_eq!(desk.look(&url, Wanted::Head).await, found(&main, "refs/heads/main"));
        assert_eq!(scene.requests(), if old { 1 } else { 2 });
        assert_eq!(desk.look(&url, branch("main")).await, found(&main, "refs/heads/main"));
        assert_eq!(desk.look(&url, tag("v1")).await, found(&main, "refs/tags/v1"));
        assert_eq!(desk.look(&url, tag("light")).await, found(&main, "refs/tags/light"));
        assert_eq!(
            scene.requests(),
            if old { 4 } else { 5 },
            "one for each look, once it is known what the server speaks"
        );
        let commit = Wanted::Commit(main.clone().parse().expect("a commit's id"));
        assert_eq!(desk.look(&url, commit).await, found(&main, &main));
        assert_eq!(scene.requests(), if old { 4 } else { 5 }, "a commit is not looked for");
    }
}

// Faults: RF6
#[tokio::test]
async fn a_head_that_moves_is_followed_wherever_it_goes() {
    let scene = Scene::with_files().await;
    let desk = Desk::new(scene.http.clone());
    let url = scene.url();
    let first = scene.git(&["rev-parse", "main"]);
    let second = scene.host.commit(REPOSITORY, "main", &[("a", b"1")]).expect("commit");
    assert_eq!(desk.look(&url, Wanted::Head).await, found(&second, "refs/heads/main"));
    scene.git(&["update-ref", "refs/heads/main", &first]);
    assert_eq!(desk.look(&url, Wanted::Head).await, found(&first, "refs/heads/main"), "a force-push back");
    let trunk = scene.host.commit(REPOSITORY, "trunk", &[("a", b"2")]).expect("commit");
    scene.git(&["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    assert_eq!(desk.look(&url, Wanted::Head).await, found(&trunk, "refs/heads/trunk"));
    scene.git(&["update-ref", "--no-deref", "HEAD", &first]);
    assert_eq!(desk.look(&url, Wanted::Head).await, found(&first, "HEAD"), "a detached one");
    scene.host.forget_v2();
    assert_eq!(
        desk.look(&url, branch("trunk")).await,
        found(&trunk, "refs/heads/trunk"),
        "the server has forgotten v2"
    );
}

#[tokio::test]
async fn a_ref_that_is_not_there_is_said_with_those_that_may_be_meant() {
    let scene = Scene::empty().await;
    let desk = Desk::new(scene.http.clone());
    let url = scene.url();
    for wanted in [Wanted::Head, branch("main"), tag("v1")] {
        assert_eq!(lasting(desk.look(&url, wanted).await), "the repository is empty: it has no branch and no tag yet");
    }
    scene.host.commit(REPOSITORY, "main", &[("a", b"1")]).expect("commit");
    scene.host.commit(REPOSITORY, "release/2026", &[("a", b"1")]).expect("commit");
    scene.git(&["tag", "v1.0", "main"]);
    let why = async |wanted| format!("{}\n", lasting(desk.look(&url, wanted).await));
    let mut said = String::new();
    for wanted in [branch("mian"), branch("release"), branch("v1.0"), tag("main"), tag("zzzzzzzz"), branch("a\nb")] {
        said += &why(wanted).await;
    }
    scene.git(&["symbolic-ref", "HEAD", "refs/heads/gone"]);
    said += &why(Wanted::Head).await;
    scene.git(&["branch", "-D", "main"]);
    said += &why(branch("main")).await;
    expect![[r#"
        the repository has no branch mian; did you mean main?
        the repository has no branch release; did you mean release/2026?
        the repository has no branch v1.0, but a tag of that name: set spec.ref.tag
        the repository has no tag main, but a branch of that name: set spec.ref.branch
        the repository has no tag zzzzzzzz
        branch a\nb cannot be the name of a ref
        the repository's HEAD names a branch that does not exist; name one in spec.ref.branch
        the repository has no branch main
    "#]]
    .assert_eq(&said);
    assert_eq!(desk.resting(), [""; 0], "all that is the repository's matter");
}

#[tokio::test]
async fn one_of_ten_thousand_branches_is_found_in_one_small_answer() {
    let scene = Scene::with_files().await;
    let main = scene.git(&["rev-parse", "main"]);
    let packed: String = (0..10_000).map(|number| format!("{main} refs/heads/team/feature-{number:05}\n")).collect();
    std::fs::write(scene.host.directory(REPOSITORY).join("packed-refs"), format!("# pack-refs with: sorted\n{packed}"))
        .expect("written");
    for old in [false, true] {
        if old {
            scene.host.forget_v2();
        }
        let desk = Desk::new(scene.http.clone());
        let name = "team/feature-07777";
        assert_eq!(desk.look(&scene.url(), branch(name)).await, found(&main, &format!("refs/heads/{name}")));
        let why = lasting(desk.look(&scene.url(), branch("team/feature-0777")).await);
        assert!(why.contains("did you mean team/feature-"), "{why}");
    }
}

#[tokio::test]
async fn credentials_are_read_for_each_look() {
    let scene = Scene::with_files().await;
    let desk = Desk::new(scene.http.clone());
    let (url, main) = (scene.url(), scene.git(&["rev-parse", "main"]));
    scene.host.require_basic("robot", "hunter2");
    assert!(lasting(desk.look(&url, Wanted::Head).await).contains("it asks for credentials (401)"));
    desk.safe.set(&[("username", "robot"), ("password", "wrong-hunter")]);
    let why = lasting(desk.look_in(&url).await);
    assert!(why.contains("refused (401)") && !why.contains("hunter"), "{why}");
    desk.safe.set(&[("username", "robot"), ("password", "hunter2\n")]);
    assert_eq!(desk.look_in(&url).await, found(&main, "refs/heads/main"));
    scene.host.require_bearer("token-1");
    desk.safe.set(&[("bearerToken", "token-1")]);
    assert_eq!(desk.look_in(&url).await, found(&main, "refs/heads/main"));
    desk.safe.set(&[("identity", "hunter2")]);
    let why = lasting(desk.look_in(&url).await);
    assert!(why.starts_with("failed to use Secret platform/git: it has a key for SSH"), "{why}");
    assert_eq!(desk.resting(), [""; 0], "none of that is the host's matter");
}

#[tokio::test]
async fn what_is_no_git_host_is_said_and_nothing_is_followed() {
    let scene = Scene::with_files().await;
    let desk = Desk::new(scene.http.clone());
    let url = scene.url();
    let inject = |action| scene.server.inject(Fault::once(When::Before, action));
    inject(Action::Answer(
        Reply::empty(301).header("location", "https://elsewhere.example.com/shop/web.git/info/refs"),
    ));
    let why = lasting(desk.look(&url, Wanted::Head).await);
    assert!(why.contains("redirects to https://elsewhere.example.com/shop/web.git, which is not followed"), "{why}");
    for (status, words) in [(403, "do not allow it (403)"), (404, "no such repository")] {
        inject(Action::Answer(Reply::empty(status)));
        let why = lasting(desk.look(&url, Wanted::Head).await);
        assert!(why.contains(words), "{why}");
    }
    let kind = "application/x-git-upload-pack-advertisement";
    inject(Action::Answer(Reply::full(200, kind, vec![b'0'; 5 * 1024 * 1024])));
    assert!(lasting(desk.look(&url, Wanted::Head).await).contains("more than 4 MiB in one answer"));
    inject(Action::Answer(Reply::full(200, "text/html", "<html>log in</html>")));
    let login = desk.look(&url, Wanted::Head).await.expect_err("a page");
    assert!(!login.lasting && login.rest.is_zero() && login.why.contains("a login page"), "{login:?}");
    assert_eq!(desk.resting(), [""; 0]);

    // An answer that begins and does not end is as bad as none.
    let patience = Patience { look: Duration::from_millis(300), ..Patience::default() };
    let desk = Desk::patient(scene.http.clone(), patience);
    let (sender, chunks) = tokio::sync::mpsc::channel(1);
    inject(Action::Answer(Reply::empty(200).header("content-type", kind).body(Body::Stream(chunks))));
    let silent = desk.look(&url, Wanted::Head).await.expect_err("no answer");
    drop(sender);
    assert!(!silent.lasting && silent.rest.as_secs() == 2, "{silent:?}");
    assert_eq!(desk.resting(), [""; 0], "its repository rests, not the host");
    for url in ["ssh://git@example.com/a", "https://u:p@example.com/a", "nonsense"] {
        lasting(desk.look(url, Wanted::Head).await);
    }
    let why = lasting(desk.look("ssh://git@example.com/a", Wanted::Head).await);
    assert!(why.contains("identity and known_hosts"), "{why}");
    scene.server.stop().await;
}

#[tokio::test]
async fn ids_that_are_none_of_ours_are_lasting() {
    let scene = Scene::empty().await;
    let desk = Desk::new(scene.http.clone());
    scene.host.create("shop/new.git", &["--object-format=sha256"]).expect("a repository");
    scene.host.commit("shop/new.git", "main", &[("a", b"b")]).expect("commit");
    let url = format!("{}/shop/new.git", scene.server.url());
    assert!(lasting(desk.look(&url, Wanted::Head).await).contains("sha256 ids"));

    let zeros = format!("003d{} refs/heads/main\n0000", "0".repeat(40));
    let is_post = |request: &sandbox::http::Request| request.method == http::Method::POST;
    let reply = Reply::full(200, "application/x-git-upload-pack-result", zeros);
    scene.server.inject(Fault::once(When::Before, Action::Answer(reply)).matching(is_post));
    let why = lasting(desk.look(&scene.url(), branch("main")).await);
    assert_eq!(why, "the server names no commit for branch main: its id is only zeros");
}

#[tokio::test]
async fn another_server_than_gits_is_read_too() {
    let scene = Scene::with_files().await;
    let (_server, url, http) = serve(&scene);
    let desk = Desk::new(http);
    let main = scene.git(&["rev-parse", "main"]);
    assert_eq!(desk.look(&url, Wanted::Head).await, found(&main, "refs/heads/main"));
    assert_eq!(desk.look(&url, branch("main")).await, found(&main, "refs/heads/main"));
    assert!(lasting(desk.look(&url, tag("v1")).await).contains("no tag v1"));
}
