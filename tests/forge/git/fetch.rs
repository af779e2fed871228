//! Looking and fetching: protocols, servers that cannot leave out files, and what is in a repository.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use forge::git::{Bounds, Commit, Draft, Pushed};
use purge::ports::Retry;
use sandbox::http::{Reply, Request};

use crate::scene::{AUTHOR, FILE, Scene, build};

fn filters(request: &Request) -> bool {
    request.body.windows(6).any(|window| window == b"filter")
}

/// A request for files by their ids: the only one that fetches and names no depth.
fn asks_for_files(request: &Request) -> bool {
    let holds = |text: &[u8]| request.body.windows(text.len()).any(|window| window == text);
    holds(b"want ") && !holds(b"deepen")
}

fn pack(body: impl Into<Bytes>) -> Reply {
    Reply::full(200, "application/x-git-upload-pack-result", body)
}

#[tokio::test]
async fn a_server_without_protocol_v2_does_as_well() {
    let scene = Scene::with_files().await;
    scene.host.forget_v2();
    let base = scene.main().await;
    assert_eq!(scene.requests(), 1, "all refs are in the advertisement");
    let mut objects = scene.remote.fetch(&BTreeSet::from([base])).await.expect("fetched");
    let file = objects.files(base, Some("apps/web")).expect("files").pop().expect("a file");
    assert_eq!((file.path.as_str(), objects.content(file.id)), (FILE, None));
    scene.remote.load(&mut objects, base, &BTreeSet::from([file.id])).await.expect("loaded");
    assert_eq!(objects.content(file.id), Some(&b"tag: 1.0 # marker\n"[..]));
    let built = build(&objects, base, base, "2.0");
    assert_eq!(scene.remote.push("promote", None, Some(&built)).await, Ok(Pushed::Done));
    scene.git(&["fsck", "--strict"]);
}

#[tokio::test]
async fn a_server_that_cannot_leave_out_files_sends_them() {
    for how in ["not offered", "broken", "empty"] {
        let scene = Scene::with_files().await;
        match how {
            "not offered" => drop(scene.git(&["config", "uploadpack.allowFilter", "false"])),
            "broken" => scene.answer(filters, Reply::full(500, "text/html", "Error")),
            _ => scene.answer(filters, pack("")),
        }
        let base = scene.main().await;
        let before = scene.requests();
        let mut objects = scene.remote.fetch(&BTreeSet::from([base])).await.expect(how);
        let tries = if how == "not offered" { 1 } else { 2 };
        assert_eq!(scene.requests() - before, tries, "{how}");
        let files: BTreeSet<_> = objects.files(base, None).expect("files").into_iter().map(|file| file.id).collect();
        scene.remote.load(&mut objects, base, &files).await.expect("they are there");
        assert!(files.iter().all(|file| objects.content(*file).is_some()));
        scene.remote.fetch(&BTreeSet::from([base])).await.expect("again");
        assert_eq!(scene.requests() - before, tries + 1, "{how}: it is remembered");
    }
}

#[tokio::test]
async fn a_server_that_gives_out_no_file_by_its_id_sends_all() {
    let scene = Scene::with_files().await;
    let base = scene.main().await;
    let mut objects = scene.remote.fetch(&BTreeSet::from([base])).await.expect("fetched");
    let file = objects.files(base, Some("apps/web")).expect("files").pop().expect("a file");
    scene.answer(asks_for_files, pack("0031ERR upload-pack: not our ref 0123456789abcdef"));
    scene.remote.load(&mut objects, base, &BTreeSet::from([file.id])).await.expect("loaded");
    assert_eq!(objects.content(file.id), Some(&b"tag: 1.0 # marker\n"[..]));
}

#[tokio::test]
async fn an_empty_repository_has_no_refs() {
    let scene = Scene::empty().await;
    assert_eq!(scene.remote.refs(&["HEAD", "refs/"]).await.expect("refs").iter().count(), 0);
    scene.host.forget_v2();
    assert_eq!(scene.stranger(None).refs(&["HEAD", "refs/"]).await.expect("refs").iter().count(), 0);
}

#[tokio::test]
async fn a_ref_is_found_by_its_whole_name_and_a_tag_leads_to_its_commit() {
    let scene = Scene::with_files().await;
    let main = scene.main().await;
    scene.git(&["branch", "mainland", "main"]);
    scene.git(&["-c", "user.name=Ann", "-c", "user.email=ann@example.com", "tag", "-a", "-m", "one", "v1", "main"]);
    for old in [false, true] {
        if old {
            scene.host.forget_v2();
        }
        let remote = scene.stranger(None);
        let refs = remote.refs(&["HEAD", "refs/heads/main", "refs/tags/"]).await.expect("refs");
        let names: Vec<&str> = refs.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["HEAD", "refs/heads/main", "refs/heads/mainland", "refs/tags/v1"], "old: {old}");
        assert_eq!(refs.get("HEAD").and_then(|head| head.symbolic.as_deref()), Some("refs/heads/main"));
        let tag = refs.get("refs/tags/v1").expect("the tag");
        assert_eq!((tag.peeled, tag.id == main), (Some(main), false));
        assert_eq!(refs.branch("mai"), None);
    }
}

#[tokio::test]
async fn a_second_look_costs_one_request() {
    let scene = Scene::with_files().await;
    scene.main().await;
    scene.main().await;
    assert_eq!(scene.requests(), 3);
}

#[tokio::test]
async fn links_submodules_and_odd_names_are_no_files_and_stay_as_they_are() {
    let scene = Scene::with_files().await;
    let (main, blob) = (scene.git(&["rev-parse", "main"]), scene.git(&["rev-parse", "main:README.md"]));
    scene.git(&["read-tree", "main"]);
    for (mode, id, path) in [
        ("120000", &blob, "link.yaml"),
        ("160000", &main, "module"),
        ("100755", &blob, "run.sh"),
        ("100644", &blob, "tab\there é.yaml"),
        ("100644", &blob, "a.b"),
        ("100644", &blob, "a/b"),
    ] {
        scene.git(&["update-index", "--add", "--cacheinfo", mode, id, path]);
    }
    let tree = scene.git(&["write-tree"]);
    let person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
    let commit = scene.git(&[&person[..], &["commit-tree", "-p", "main", "-m", "odd", &tree]].concat());
    scene.git(&["update-ref", "refs/heads/main", &commit]);

    let base = scene.main().await;
    let objects = scene.remote.fetch(&BTreeSet::from([base])).await.expect("fetched");
    let files = objects.files(base, None).expect("files");
    let runs = |path: &str| files.iter().find(|file| file.path == path).map(|file| file.executable);
    assert_eq!(
        (runs("run.sh"), runs("tab\there é.yaml"), runs("a/b"), runs("a.b")),
        (Some(true), Some(false), Some(false), Some(false))
    );
    assert_eq!((runs("link.yaml"), runs("module")), (None, None));

    let draft = Draft { base, parent: base, author: AUTHOR, at: 1, message: "all", signer: None };
    let changed = ["run.sh", FILE, "a/b", "tab\there é.yaml"].map(|path| (path.to_owned(), Bytes::from("new\n")));
    let built = objects.build(&draft, &BTreeMap::from(changed)).expect("files").expect("changes");
    assert_eq!(scene.remote.push("promote", None, Some(&built)).await, Ok(Pushed::Done));
    scene.git(&["fsck", "--strict"]);
    let raw = scene.git(&["-c", "core.quotePath=false", "diff", "--raw", "--no-abbrev", "main", "promote"]);

    let modes: Vec<&str> = raw.lines().map(|line| &line[..15]).collect();
    assert_eq!(modes, [":100644 100644 ", ":100644 100644 ", ":100755 100755 ", ":100644 100644 "], "{raw}");
    for wrong in ["link.yaml", "module", "none", "apps", "apps/none", "README.md/more", "", "/README.md"] {
        let changes = BTreeMap::from([(wrong.to_owned(), Bytes::from("x"))]);
        let error = objects.build(&draft, &changes).expect_err(wrong);
        assert_eq!(error.retry, Retry::Never, "{wrong}");
    }
}

#[tokio::test]
async fn a_commit_is_read_with_its_trailers_and_one_that_changes_nothing_is_not_made() {
    let scene = Scene::with_files().await;
    let base = scene.main().await;
    let objects = scene.remote.fetch(&BTreeSet::from([base])).await.expect("fetched");
    let message = "Promote web\n\nfrom: 1.0\n\nAllclear-Promotion: abc\nAllclear-Seq: 7";
    let draft = Draft { base, parent: base, author: AUTHOR, at: 1_700_000_200, message, signer: None };
    let change = |content: &'static str| BTreeMap::from([(FILE.to_owned(), Bytes::from(content))]);
    assert_eq!(objects.build(&draft, &change("tag: 1.0 # marker\n")), Ok(None));
    let built = objects.build(&draft, &change("tag: 2.0\n")).expect("a file").expect("a change");
    assert_eq!(scene.remote.push("promote", None, Some(&built)).await, Ok(Pushed::Done));

    let both = scene.remote.fetch(&BTreeSet::from([base, built.id])).await.expect("fetched");
    let commit = both.commit(built.id).expect("commit");
    assert_eq!((commit.trailer("Allclear-Seq"), commit.trailer("from")), (Some("7"), None));
    let Commit { parents, author, tree, .. } = commit;
    assert_eq!((parents, author.as_str()), (vec![base], AUTHOR));
    assert_eq!(tree.to_string(), scene.git(&["rev-parse", "promote^{tree}"]));
    assert_eq!(both.commit(base).expect("base").trailer("Allclear-Seq"), None);
}

#[tokio::test]
async fn every_bound_says_what_is_too_large() {
    let scene = Scene::with_files().await;
    let base = scene.main().await;
    let wanted = BTreeSet::from([base]);
    let usual = Bounds::default();
    for (bounds, words) in [
        (Bounds { refs_bytes: 100, ..usual }, "more than 100 bytes in one answer"),
        (Bounds { pack_bytes: 100, ..usual }, "more than 100 bytes in one answer"),
        (Bounds { unpacked_bytes: 100, ..usual }, "more than 100 bytes unpacked"),
        (Bounds { objects: 2, ..usual }, "more than 2 objects"),
        (Bounds { entries: 3, ..usual }, "more than 3 files and folders"),
    ] {
        let remote = scene.stranger(None).bounded(bounds);
        let listed = remote.fetch(&wanted).await.and_then(|objects| objects.files(base, None));
        let error = listed.expect_err(words);
        assert!(error.cause.starts_with(words), "{error}");
        assert_eq!(error.retry, Retry::Never, "{words}");
    }
    scene.git(&["config", "uploadpack.allowFilter", "false"]);
    let error =
        scene.stranger(None).bounded(Bounds { pack_bytes: 100, ..usual }).fetch(&wanted).await.expect_err("all files");
    assert!(
        error.cause.ends_with("cannot leave them out: it offers no filters (git's uploadpack.allowFilter)"),
        "{error}"
    );
}
