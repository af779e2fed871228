//! Whole commits from real git: what is fetched, what is refused before anything is written, and where a commit is looked for that
//! the server gives out to nobody.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use forge::Http;
use forge::git::{Bounds, Node, Oid, Remote, Snapshot};
use purge::ports::{PortError, Retry};
use sandbox::http::{Action, Fault, Reply, When};

use crate::git::dulwich::serve;
use crate::scene::{Plain, REPOSITORY, Scene};

/// A file without a name.
fn scratch() -> File {
    let path =
        std::env::temp_dir().join(format!("allclear-scratch-{}-{:?}", std::process::id(), std::thread::current().id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
    std::fs::remove_file(path).expect("removed");
    file
}

async fn fetch(remote: &Remote, commit: &str, reference: &str) -> Result<Snapshot, PortError> {
    remote.snapshot(commit.parse().expect("an id"), reference, scratch()).await
}

fn remote(scene: &Scene) -> Remote {
    Remote::new(Arc::clone(&scene.http) as Arc<dyn Http>, &scene.url(), None, None).expect("a URL")
}

/// What is at each path, as `git ls-tree` says it.
fn listed(snapshot: &Snapshot) -> Vec<String> {
    let nodes = snapshot.nodes().filter_map(|(path, node)| {
        let path = String::from_utf8_lossy(path);
        Some(match node {
            Node::Folder => return None,
            Node::File(id, executable) => format!("{} {id} {path}", if *executable { "100755" } else { "100644" }),
            Node::Link(target) => format!("120000 -> {} {path}", String::from_utf8_lossy(target)),
            Node::Submodule => format!("160000 {path}"),
        })
    });
    nodes.collect()
}

/// Mode, name and id.
type Named<'a> = (&'a str, &'a [u8], &'a str);

/// Writes objects into the scene's repository past git's own checks.
struct Forger<'a>(&'a Scene);

impl Forger<'_> {
    fn object(&self, kind: &str, content: &[u8]) -> String {
        let mut git = Command::new("git");
        git.current_dir(self.0.host.directory(REPOSITORY)).args([
            "hash-object",
            "--literally",
            "-w",
            "--stdin",
            "-t",
            kind,
        ]);
        let mut git = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git");
        git.stdin.take().expect("piped").write_all(content).expect("written");
        let output = git.wait_with_output().expect("it ends");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }

    fn blob(&self, content: &str) -> String {
        self.object("blob", content.as_bytes())
    }

    fn tree(&self, entries: &[Named<'_>]) -> String {
        let entry = |(mode, name, id): &(&str, &[u8], &str)| {
            let id: Oid = id.parse().expect("an id");
            [mode.as_bytes(), b" ", name, b"\0", id.as_bytes()].concat()
        };
        self.object("tree", &entries.iter().map(entry).collect::<Vec<_>>().concat())
    }

    /// A commit of this tree, at the branch `forged`.
    fn commit(&self, tree: &str) -> String {
        let person = "A <a@example.com> 1700000000 +0000";
        let commit =
            self.object("commit", format!("tree {tree}\nauthor {person}\ncommitter {person}\n\nm\n").as_bytes());
        self.0.git(&["update-ref", "refs/heads/forged", &commit]);
        commit
    }
}

#[tokio::test]
async fn a_commit_comes_whole_with_modes_links_and_files_of_any_size() {
    for old in [false, true] {
        let scene = Scene::empty().await;
        // Files that are alike travel as changes to each other.
        let large: Vec<u8> =
            (0..300_000_u32).flat_map(|number| (number.wrapping_mul(2_654_435_761) >> 7).to_be_bytes()).collect();
        let alike = [large.as_slice(), b"more"].concat();
        let files: [(&str, &[u8]); 5] =
            [("main.tf", b"a\n"), ("modules/net/x.tf", b"b\n"), ("empty", b""), ("large", &large), ("alike", &alike)];
        scene.host.commit(REPOSITORY, "main", &files).expect("commit");
        let forger = Forger(&scene);
        let (script, link) = (forger.blob("#!/bin/sh\n"), forger.blob("modules/net/x.tf"));
        let tree = scene.git(&["rev-parse", "main^{tree}"]);
        let mut entries: Vec<String> = scene.git(&["ls-tree", &tree]).lines().map(str::to_owned).collect();
        entries.push(format!("100755 blob {script}\trun.sh"));
        entries.push(format!("120000 blob {link}\tx.tf"));
        entries.push(format!("160000 commit {}\tvendor", "5".repeat(40)));
        let mut git = Command::new("git");
        git.current_dir(scene.host.directory(REPOSITORY)).args(["mktree", "--missing"]).stdin(Stdio::piped());
        let mut git = git.stdout(Stdio::piped()).spawn().expect("git");
        git.stdin.take().expect("piped").write_all((entries.join("\n") + "\n").as_bytes()).expect("written");
        let output = git.wait_with_output().expect("it ends");
        let commit = forger.commit(String::from_utf8(output.stdout).expect("text").trim());
        scene.git(&["gc", "--quiet"]);
        if old {
            scene.host.forget_v2();
        }
        let snapshot = fetch(&remote(&scene), &commit, "refs/heads/forged").await.expect("fetched");
        let expected = scene.git(&["ls-tree", "-r", &commit]);
        let expected = expected.lines().map(|line| {
            let (what, path) = line.split_once('\t').expect("a path");
            match what.split(' ').collect::<Vec<_>>()[..] {
                ["120000", ..] => format!("120000 -> modules/net/x.tf {path}"),
                ["160000", ..] => format!("160000 {path}"),
                [mode, _, id] => format!("{mode} {id} {path}"),
                _ => panic!("{line}"),
            }
        });
        let mut expected: Vec<String> = expected.collect();
        expected.sort_by_key(|line| line.rsplit(' ').next().map(str::to_owned));
        assert_eq!(listed(&snapshot), expected);
        for (path, content) in files {
            let Some((_, Node::File(id, false))) = snapshot.nodes().find(|(at, _)| *at == path.as_bytes()) else {
                panic!("{path}")
            };
            assert_eq!(snapshot.content(*id).as_deref(), Ok(content), "{path}");
        }
        assert_eq!(snapshot.bytes(), 4 + large.len() * 2 + 4 + "#!/bin/sh\n".len() + "modules/net/x.tf".len());
    }
}

#[tokio::test]
async fn a_commit_that_the_server_gives_out_to_nobody_is_looked_for_in_the_history_of_its_ref() {
    let scene = Scene::with_files().await;
    let first = scene.git(&["rev-parse", "main"]);
    for number in 0..10 {
        scene.host.commit(REPOSITORY, "main", &[("a", format!("{number}").as_bytes())]).expect("commit");
    }
    for old in [false, true] {
        if old {
            scene.host.forget_v2();
        }
        for reference in ["refs/heads/main", "HEAD"] {
            refuse_once(&scene);
            let snapshot = fetch(&remote(&scene), &first, reference).await.expect("it is in the history");
            assert_eq!(
                snapshot.nodes().filter(|(path, _)| *path == b"a").count(),
                0,
                "of that commit, not of the head"
            );
        }
        refuse_once(&scene);
        let error = fetch(&remote(&scene), &first, &first).await.err().expect("there is no ref to look in");
        assert!(error.cause.contains("is the commit gone?") && error.retry == Retry::Never, "{error}");
        refuse_once(&scene);
        let tip = scene.git(&["rev-parse", "main"]);
        let error = fetch(&remote(&scene), &tip, "HEAD").await.err().expect("it was refused, and is not gone");
        assert!(!error.cause.contains("gone") && error.retry == Retry::Later, "{error}");
    }
}

/// Has the server refuse the next commit that is asked for by its id.
fn refuse_once(scene: &Scene) {
    let words = "ERR upload-pack: not our ref";
    let reply = Reply::full(200, "application/x-git-upload-pack-result", format!("{:04x}{words}", words.len() + 4));
    scene.answer(|request| request.body.windows(5).any(|window| window == b"want "), reply);
}

// Faults: RF8
#[tokio::test]
async fn a_commit_that_was_pushed_away_is_still_fetched_by_its_id_or_is_gone_in_words() {
    let scene = Scene::with_files().await;
    let first = scene.git(&["rev-parse", "main"]);
    let forger = Forger(&scene);
    let other = forger.commit(&forger.tree(&[("100644", b"a", &forger.blob("x"))]));
    scene.git(&["update-ref", "refs/heads/main", &other]);
    assert!(fetch(&remote(&scene), &first, "refs/heads/main").await.is_ok(), "the server still has it");
    // Servers of v0 give out by its id only what a ref leads to.
    scene.host.forget_v2();
    scene.git(&["config", "uploadpack.allowAnySHA1InWant", "false"]);
    let gone = async |commit: &str, reference: &str| {
        let error = fetch(&remote(&scene), commit, reference).await.err().expect("it is gone");
        assert_eq!(error.retry, Retry::Never, "{error}");
        error.cause
    };
    let why = gone(&first, "refs/heads/main").await;
    assert!(why.starts_with(&format!("the commit is gone: refs/heads/main is at {other}, and")), "{why}");
    assert!(why.contains("last 50 commits") && why.contains("not our ref"), "{why}");
    assert!(
        gone(&first, "refs/heads/none").await.starts_with("the commit is gone: there is no refs/heads/none any more")
    );
    assert!(gone(&"9".repeat(40), "refs/heads/main").await.starts_with("the commit is gone: "));
}

#[tokio::test]
async fn a_tree_that_may_not_be_written_is_refused_by_name() {
    let scene = Scene::with_files().await;
    let forger = Forger(&scene);
    let blob = forger.blob("x");
    let out = forger.blob("../../etc/passwd");
    let inner = forger.tree(&[("100644", b"config", &blob)]);
    let trees: [(&[Named<'_>], &str); 9] = [
        (&[("100644", b"..", &blob)], "\"..\" leads out of its folder"),
        (&[("40000", b"..", &inner)], "\"..\" leads out of its folder"),
        (&[("40000", b".git", &inner)], "\".git\" could be taken for git's own folder"),
        (&[("40000", b".GiT ", &inner)], "\".GiT \" could be taken for git's own folder"),
        (&[("100644", b"a/b", &blob)], "\"a/b\" holds a separator"),
        (&[("100644", b"a", &blob), ("120000", b"a", &out)], "\"a\" is there twice"),
        (&[("120000", b"link", &out)], "the link \"link\" leads out of the repository: \"../../etc/passwd\""),
        (&[("10644", b"a", &blob)], "\"a\" has a mode that git does not write"),
        (&[("100644", b"a", &inner)], "the server did not send file"),
    ];
    for (entries, words) in trees {
        let commit = forger.commit(&forger.tree(entries));
        let error = fetch(&remote(&scene), &commit, "refs/heads/forged").await.err().expect(words);
        assert!(error.cause.contains(words), "{words}: {error}");
    }
    let blob_as_commit = fetch(&remote(&scene), &blob, "refs/heads/main").await.err().expect("no commit");
    assert!(blob_as_commit.cause.contains("is no commit") || blob_as_commit.cause.contains("gone"), "{blob_as_commit}");
}

#[tokio::test]
async fn a_few_objects_that_name_each_other_to_terabytes_are_counted_before_they_are_written() {
    let scene = Scene::with_files().await;
    let forger = Forger(&scene);
    let bounds = Bounds { unpacked_bytes: 1024 * 1024, object_bytes: 100_000, entries: 2_000, ..Bounds::default() };
    let refused = async |commit: &str| {
        let error = remote(&scene).bounded(bounds).snapshot(commit.parse().expect("an id"), "HEAD", scratch()).await;
        error.err().expect("too large").cause
    };
    // Ten folders of ten folders …: 10^6 files.
    let mut tree = forger.tree(&[("100644", b"f", &forger.blob("x"))]);
    for _ in 0..6 {
        let names: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        let entries: Vec<(&str, &[u8], &str)> =
            names.iter().map(|name| ("40000", name.as_bytes(), tree.as_str())).collect();
        tree = forger.tree(&entries);
    }
    assert!(refused(&forger.commit(&tree)).await.starts_with("more than 2000 files and folders"));
    // One file under a hundred names.
    let file = forger.blob(&"x".repeat(90_000));
    let names: Vec<String> = (0..100).map(|number| format!("{number:03}")).collect();
    let entries: Vec<(&str, &[u8], &str)> =
        names.iter().map(|name| ("100644", name.as_bytes(), file.as_str())).collect();
    assert!(refused(&forger.commit(&forger.tree(&entries))).await.contains("more than 1 MiB unpacked"));
    let large = forger.blob(&"x".repeat(100_001));
    let why = refused(&forger.commit(&forger.tree(&[("100644", b"large", &large)]))).await;
    assert!(why.contains("more than 100000 bytes in one file"), "{why}");
}

#[tokio::test]
async fn what_a_hostile_server_sends_is_refused_and_nothing_panics() {
    let scene = Scene::with_files().await;
    let main = scene.git(&["rev-parse", "main"]);
    let kind = "application/x-git-upload-pack-result";
    for body in [
        &b""[..],
        b"0000",
        b"000dpackfile\n",
        b"000dpackfile\n0009\x01PACK0000",
        b"000dpackfile\n0025\x01PACK\x00\x00\x00\x02\xff\xff\xff\xff12345678901234567890",
        b"0008NAK\n",
        b"0012ERR not our ref",
    ] {
        let is_post = |request: &sandbox::http::Request| request.method == http::Method::POST;
        let fault = Fault::once(When::Before, Action::Answer(Reply::full(200, kind, body.to_vec()))).matching(is_post);
        scene.server.inject(fault.times(3));
        let error = fetch(&remote(&scene), &main, "refs/heads/main").await.err().expect("no commit");
        assert!(error.to_string().len() < 800, "{error}");
        scene.server.clear_faults();
    }
}

#[tokio::test]
async fn another_server_than_gits_gives_its_commit_too() {
    let scene = Scene::with_files().await;
    let (_server, url, http) = serve(&scene);
    let main = scene.git(&["rev-parse", "main"]);
    let dulwich = |http: &Arc<Plain>| Remote::new(Arc::clone(http) as Arc<dyn Http>, &url, None, None).expect("a URL");
    let snapshot = fetch(&dulwich(&http), &main, "refs/heads/main").await.expect("fetched");
    assert_eq!(listed(&snapshot).len(), 4);
    scene.host.commit(REPOSITORY, "main", &[("a", b"2")]).expect("commit");
    let older = fetch(&dulwich(&http), &main, "refs/heads/main").await.expect("it is in the history");
    assert_eq!(listed(&older).len(), 4);
}
