//! Whether two commits are alike in some paths, with real git and with dulwich.

use forge::heads::Patience;
use objects::ports::repo::{Comparison, Heads, Unresolved};
use objects::repo::spec::Source;
use sandbox::http::{Action, Fault, Reply, Request, When};
use std::time::Duration;

use super::{Desk, repo};
use crate::git::dulwich::serve;
use crate::scene::{REPOSITORY, Scene};

impl Desk {
    async fn compare(&self, url: &str, [base, head]: [&str; 2], path: &str, more: &[&str]) -> Result<bool, Unresolved> {
        let watched = Some(more.iter().map(|path| (*path).to_owned()).collect());
        let source = Source { url: url.to_owned(), path: path.to_owned(), watched, ..Source::default() };
        let id = |text: &str| text.parse().expect("a commit's id");
        self.heads.compare(&repo(), &Comparison { source, base: id(base), head: id(head) }).await
    }
}

fn holds(text: &'static [u8]) -> impl Fn(&Request) -> bool {
    move |request| request.body.windows(text.len()).any(|window| window == text)
}

/// Commits of a repository with folders within folders: the first, one that changes `apps/web`, one that changes `modules` alone, and
/// one that has the first one's files again.
async fn story() -> (Scene, [String; 4]) {
    let scene = Scene::with_files().await;
    let commit = |files: &[(&str, &[u8])]| scene.host.commit(REPOSITORY, "main", files).expect("a commit");
    let first = commit(&[("modules/net/a.tf", b"1"), ("apps/web/deep/er/a", b"1")]);
    let web = commit(&[("apps/web/deep/er/a", b"2")]);
    let modules = commit(&[("modules/net/a.tf", b"2")]);
    let back = commit(&[("modules/net/a.tf", b"1"), ("apps/web/deep/er/a", b"1")]);
    (scene, [first, web, modules, back])
}

#[tokio::test]
async fn only_what_is_under_the_paths_counts_and_only_its_content() {
    let (scene, [first, web, modules, back]) = story().await;
    // Dulwich gives out only what a ref points to.
    for (name, commit) in [("one", &first), ("two", &web), ("three", &modules)] {
        scene.git(&["branch", name, commit]);
    }
    let (_dulwich, other, _) = serve(&scene);
    for url in [scene.url(), other] {
        let desk = Desk::new(scene.http.clone());
        let alike = async |pair, path, more| desk.compare(&url, pair, path, more).await.expect("it can be told");
        assert!(!alike([&first, &web], "apps/web", &[]).await, "{url}");
        assert!(!alike([&first, &web], "apps/web/deep/er", &[]).await);
        assert!(alike([&first, &web], "modules/net", &["README.md", "apps-of-others"]).await);
        assert!(alike([&web, &modules], "apps/web", &[]).await);
        assert!(!alike([&web, &modules], "apps/web", &["modules"]).await, "each path counts");
        assert!(!alike([&web, &modules], "", &[]).await, "the whole repository");
        assert!(alike([&first, &back], "", &[]).await, "there and back again");
        assert!(alike([&first, &web], "none/at/all", &[]).await && !alike([&first, &web], "apps", &["none"]).await);
    }
}

#[tokio::test]
async fn what_goes_and_what_a_link_leads_to_counts_as_changed() {
    let (scene, [first, ..]) = story().await;
    let desk = Desk::new(scene.http.clone());
    let tree = |spec: &str| scene.git(&["rev-parse", spec]);
    let commit = |tree: &str| {
        scene.git(&[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
            "commit-tree",
            "-m",
            "m",
            "-p",
            &first,
            tree,
        ])
    };
    let without = commit(&tree(&format!("{first}:apps")));
    scene.git(&["update-ref", "refs/heads/without", &without]);
    let alike = async |pair, path| desk.compare(&scene.url(), pair, path, &[]).await.expect("it can be told");
    assert!(!alike([&first, &without], "modules").await && !alike([&without, &first], "modules").await);
    assert!(!alike([&first, &without], "apps/web/deep").await, "it moved");
    let link = b"commit refs/heads/link\ncommitter a <a@example.com> 1 +0000\ndata 1\nm\nM 120000 inline infra\ndata 8\napps/web\n";
    for (name, file) in [("link", "a"), ("linked", "b")] {
        let stream = String::from_utf8_lossy(link).replace("heads/link", &format!("heads/{name}"));
        scene
            .host
            .import(REPOSITORY, format!("{stream}M 100644 inline {file}\ndata 1\n1\n").as_bytes())
            .expect("imported");
    }
    let (one, other) = (scene.git(&["rev-parse", "link"]), scene.git(&["rev-parse", "linked"]));
    assert!(!alike([&one, &other], "infra").await && !alike([&one, &other], "infra/deep").await);
}

#[tokio::test]
async fn it_takes_a_few_small_requests_and_a_host_that_leaves_nothing_out_sends_all() {
    let (scene, [first, web, ..]) = story().await;
    let pair = [first.as_str(), web.as_str()];
    for (how, requests) in [("all", 5), ("no filter", 2), ("no filter for folders", 3), ("broken", 4)] {
        scene.git(&["config", "uploadpack.allowFilter", if how == "no filter" { "false" } else { "true" }]);
        scene.git(&[
            "config",
            "uploadpackfilter.tree.allow",
            if how == "no filter for folders" { "false" } else { "true" },
        ]);
        if how == "broken" {
            let error = || Action::Answer(Reply::full(500, "text/html", "Error"));
            scene.server.inject(Fault::once(When::Before, error()).matching(holds(b"filter")).times(2));
        }
        let (desk, before) = (Desk::new(scene.http.clone()), scene.requests());
        assert_eq!(desk.compare(&scene.url(), pair, "apps/web/deep", &[]).await, Ok(false), "{how}");
        assert_eq!(scene.requests() - before, requests, "{how}");
    }
    let (desk, before) = (Desk::new(scene.http.clone()), scene.requests());
    assert_eq!(desk.compare(&scene.url(), pair, "modules/net", &[]).await, Ok(true));
    assert_eq!(scene.requests() - before, 4, "what it can do, the commits, their folders, and `modules`");
}

#[tokio::test]
async fn a_commit_that_is_gone_and_a_host_that_fails_cannot_be_told() {
    let (scene, [first, ..]) = story().await;
    let desk = Desk::new(scene.http.clone());
    let gone = "0123456789abcdef0123456789abcdef01234567";
    let untold = desk.compare(&scene.url(), [gone, &first], "apps", &[]).await.expect_err("there is no such commit");
    assert!(untold.why.contains("failed to compare two commits of"), "{}", untold.why);
    assert!(untold.why.contains("not our ref") && !untold.lasting, "{}", untold.why);
    scene.server.inject(Fault::once(When::Before, Action::Answer(Reply::full(503, "text/plain", "later"))));
    let later = desk.compare(&scene.url(), [&first, &first], "apps", &[]).await.expect_err("it asks for patience");
    assert!(!later.lasting && !later.rest.is_zero(), "{later:?}");
}

#[tokio::test]
async fn a_comparison_has_an_end_and_places_of_its_own() {
    let (scene, [first, web, ..]) = story().await;
    let short = Patience { look: Duration::ZERO, ..Patience::default() };
    let desk = Desk::patient(scene.http.clone(), short);
    let untold = desk.compare(&scene.url(), [&first, &web], "apps", &[]).await.expect_err("there is no time for it");
    assert!(untold.why.starts_with("failed to compare two commits of http://"), "{}", untold.why);
}
