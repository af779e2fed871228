//! The git client against real git.

mod broken;
pub mod dulwich;
mod fetch;
mod hosts;
mod push;
mod whole;

use std::collections::BTreeSet;

use forge::git::Pushed;

use crate::scene::{FILE, Scene, build};

#[tokio::test]
async fn a_promotion_goes_from_refs_to_a_branch_that_git_finds_sound() {
    let scene = Scene::with_files().await;
    let base = scene.main().await;
    let mut objects = scene.remote.fetch(&BTreeSet::from([base])).await.expect("fetched");
    let files = objects.files(base, None).expect("files");
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["README.md", "apps-of-others/a.yaml", "apps/web/more.yaml", FILE]);
    assert_eq!(objects.files(base, Some("/apps/")).expect("files").len(), 2);
    let wanted = files.iter().filter(|file| file.path.ends_with(".yaml")).map(|file| file.id).collect();
    assert_eq!(objects.content(files[3].id), None, "the server could leave it out");
    scene.remote.load(&mut objects, base, &wanted).await.expect("loaded");
    assert_eq!(objects.content(files[3].id), Some(&b"tag: 1.0 # marker\n"[..]));

    let built = build(&objects, base, base, "2.0");
    assert_eq!(scene.remote.push("promote", None, Some(&built)).await, Ok(Pushed::Done));
    assert_eq!(scene.git(&["rev-parse", "promote"]), built.id.to_string());
    assert_eq!(scene.git(&["show", &format!("promote:{FILE}")]), "tag: 2.0 # marker");
    assert_eq!(scene.git(&["diff", "--name-only", "main", "promote"]), FILE);
    assert_eq!(
        scene.git(&["show", "-s", "--format=%P %an <%ae> %at %cn %ct %s", "promote"]),
        format!("{base} allclear <allclear@example.com> 1700000100 allclear 1700000100 Promote")
    );
    scene.git(&["fsck", "--strict"]);
    assert_eq!(scene.requests(), 7);
}
