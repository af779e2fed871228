//! Git over SSH, up to the host's shell: that is what `sshd` hands a command to, and git's own programs answer it. The way there, with a
//! real `sshd`, is among the tests of adapters.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use forge::git::{Bounds, Node, Oid, Pushed, Remote};
use forge::ssh::{Answer, Call, SshError, SshKeys};
use forge::{Authorities, Http, HttpError};
use purge::ports::Retry;
use sandbox::git::GitHost;

use crate::scene::{FILE, REPOSITORY, build};

const HOST: &str = "ssh://git@git.example.com:2222";

pub fn keys() -> SshKeys {
    SshKeys { identity: "key".to_owned(), known_hosts: "hosts".to_owned() }
}

/// Does what `sshd` does with a command: the user's shell gets it, with the variables that are let in. Paths are those within a folder.
pub async fn host_runs(folder: &Path, call: Call<'_>) -> Result<Answer, SshError> {
    let command = call.command.replacen("'/", &format!("'{}/", folder.display()), 1);
    let (variable, input, answer_max) = (call.variable, call.input, call.answer_max);
    let run = move || {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &command]).envs(variable).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().expect("a shell");
        let mut stdin = child.stdin.take().expect("a pipe");
        let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let done = child.wait_with_output().expect("an end");
        writing.join().expect("written");
        match done.stdout.len() > answer_max {
            true => Err(SshError::TooLong),
            false => Ok(Answer {
                output: done.stdout.into(),
                words: String::from_utf8_lossy(&done.stderr).into_owned(),
                code: done.status.code(),
            }),
        }
    };
    tokio::task::spawn_blocking(run).await.expect("no panic")
}

type Act = Box<dyn FnOnce() + Send>;

/// A way to one host.
struct Way {
    folder: PathBuf,
    /// The host lets no variables in.
    is_strict: bool,
    commands: Mutex<Vec<String>>,
    before_push: Mutex<Option<Act>>,
    /// What the next calls come to in place of an answer.
    instead: Mutex<Vec<Result<Answer, SshError>>>,
}

#[async_trait]
impl Http for Way {
    async fn send(
        &self,
        _: http::Request<Bytes>,
        _: Option<&Authorities>,
        _: usize,
    ) -> Result<http::Response<Bytes>, HttpError> {
        panic!("HTTP is not spoken")
    }

    async fn call(&self, call: Call<'_>) -> Result<Answer, SshError> {
        self.commands.lock().unwrap().push(call.command.clone());
        if let Some(instead) = self.instead.lock().unwrap().pop() {
            return instead;
        }
        if call.command.starts_with("git-receive-pack") && call.input.len() > 4 {
            let act = self.before_push.lock().unwrap().take();
            act.into_iter().for_each(|act| act());
        }
        let variable = call.variable.filter(|_| !self.is_strict);
        host_runs(&self.folder, Call { variable, ..call }).await
    }
}

struct Scene {
    host: Arc<GitHost>,
    way: Arc<Way>,
    remote: Remote,
}

impl Scene {
    fn new(repository: &str, is_strict: bool) -> Self {
        let host = Arc::new(GitHost::new().expect("a git host"));
        host.create(repository, &[]).expect("a repository");
        let files: [(&str, &[u8]); 2] = [(FILE, b"tag: 1.0 # marker\n"), ("README.md", b"words\n")];
        host.commit(repository, "main", &files).expect("a commit");
        let (commands, before_push, instead) = (Mutex::default(), Mutex::default(), Mutex::default());
        let way = Arc::new(Way { folder: host.directory(""), is_strict, commands, before_push, instead });
        let path = repository.replace(' ', "%20");
        let remote = Remote::over_ssh(Arc::clone(&way) as Arc<dyn Http>, &format!("{HOST}/{path}"), keys());
        Self { host, way, remote: remote.expect("a URL") }
    }

    async fn main(&self) -> Oid {
        self.remote.refs(&["refs/heads/main"]).await.expect("refs").branch("main").expect("main")
    }

    fn calls(&self) -> usize {
        self.way.commands.lock().unwrap().len()
    }
}

/// With protocol v2, and with v0, which a host has that lets `GIT_PROTOCOL` not in.
#[tokio::test]
async fn a_promotion_is_made_over_ssh_with_each_version_of_the_protocol() {
    for is_strict in [false, true] {
        let scene = Scene::new(REPOSITORY, is_strict);
        let base = scene.main().await;
        assert_eq!((scene.remote.speaks_v2(), scene.calls()), (!is_strict, if is_strict { 1 } else { 2 }));
        let objects = scene.remote.fetch(&BTreeSet::from([base])).await.expect("fetched");
        let files = objects.files(base, None).expect("files");
        let mut objects = objects;
        let wanted = files.iter().map(|file| file.id).collect();
        scene.remote.load(&mut objects, base, &wanted).await.expect("loaded");
        let ours = build(&objects, base, base, "2.0");
        assert_eq!(scene.remote.push("promote", None, Some(&ours)).await, Ok(Pushed::Done));
        let git = |arguments: &[&str]| scene.host.git(REPOSITORY, arguments).expect("git");
        assert_eq!(git(&["rev-parse", "promote"]), ours.id.to_string());
        git(&["fsck", "--strict"]);
        assert_eq!(scene.remote.push("promote", None, Some(&ours)).await, Ok(Pushed::Done), "again");
        assert_eq!(scene.remote.push("promote", Some(base), None).await, Ok(Pushed::Moved(Some(ours.id))));
        assert_eq!(scene.remote.push("promote", Some(ours.id), None).await, Ok(Pushed::Done), "removed");
        let scratch = tempfile();
        let snapshot = scene.remote.snapshot(base, "refs/heads/main", scratch).await.expect("a snapshot");
        let files = snapshot.nodes().filter(|(_, node)| matches!(node, Node::File(..))).count();
        assert_eq!(files, 2);
    }
}

fn tempfile() -> std::fs::File {
    let path =
        std::env::temp_dir().join(format!("allclear-scratch-{}-{:?}", std::process::id(), std::thread::current().id()));
    let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("a file");
    std::fs::remove_file(path).expect("no name");
    file
}

#[tokio::test]
async fn a_branch_that_moves_between_our_look_and_our_push_is_left_as_it_is() {
    let scene = Scene::new(REPOSITORY, false);
    let base = scene.main().await;
    let objects = scene.remote.fetch(&BTreeSet::from([base])).await.expect("fetched");
    let ours = build(&objects, base, base, "2.0");
    let host = Arc::clone(&scene.host);
    let moves = move || drop(host.commit(REPOSITORY, "main", &[("theirs", b"1")]).expect("a commit"));
    *scene.way.before_push.lock().unwrap() = Some(Box::new(moves));
    let pushed = scene.remote.push("main", Some(base), Some(&ours)).await;
    let theirs = scene.main().await;
    assert!(theirs != base && theirs != ours.id);
    assert_eq!(pushed, Ok(Pushed::Moved(Some(theirs))));
}

#[tokio::test]
async fn what_a_hook_says_is_said() {
    let scene = Scene::new(REPOSITORY, false);
    scene.host.hook(REPOSITORY, "pre-receive", "#!/bin/sh\necho 'not on Sunday' >&2\nexit 1\n").expect("a hook");
    let base = scene.main().await;
    let ours = build(&scene.remote.fetch(&BTreeSet::from([base])).await.expect("fetched"), base, base, "2.0");
    let error = scene.remote.push("promote", None, Some(&ours)).await.expect_err("declined");
    assert_eq!(error.cause, "pre-receive hook declined; the server says: not on Sunday");
    assert_eq!(error.attempted, "failed to push to git.example.com:2222/shop/web.git");
}

/// The host's shell reads the path: nothing in it may mean something there.
#[tokio::test]
async fn a_path_means_itself_to_the_shell_of_the_host() {
    for path in ["it's a $(touch own); `id`!.git", "a\\b \"c\"&.git"] {
        let scene = Scene::new(path, false);
        scene.main().await;
        let commands = scene.way.commands.lock().unwrap().clone();
        assert!(commands.iter().all(|command| command.starts_with("git-upload-pack '/")), "{commands:?}");
    }
}

#[tokio::test]
async fn what_a_host_says_in_place_of_an_answer_is_told_apart() {
    let scene = Scene::new(REPOSITORY, false);
    let gone = Remote::over_ssh(Arc::clone(&scene.way) as Arc<dyn Http>, &format!("{HOST}/shop/none.git"), keys());
    let gone = gone.expect("a URL").refs(&["HEAD"]).await.expect_err("there is none");
    assert!(gone.cause.starts_with("no such repository, or the key does not show it: fatal: "), "{gone}");
    assert_eq!((gone.retry, gone.denied), (Retry::Never, false));
    let ended = |words: &str, code| Ok(Answer { output: Bytes::new(), words: words.to_owned(), code });
    for (instead, words, retry, denied) in [
        (
            ended("ERROR: Permission to shop/web.git denied to key", Some(1)),
            "does not allow it: ERROR",
            Retry::Never,
            true,
        ),
        (ended("ERROR: Repository not found.", Some(1)), "no such repository", Retry::Never, false),
        (
            ended("remote: The project you were looking for could not be found or you don't have permission", Some(1)),
            "no such repository",
            Retry::Never,
            false,
        ),
        (ended("getpwnam: no such user, its directory was not found", Some(1)), "exit code 1", Retry::Later, false),
        (ended("sh: git-upload-pack: not found", Some(127)), "the host has no git-upload-pack", Retry::Never, false),
        (ended("busy", Some(1)), "ended with exit code 1 and without a whole answer: busy", Retry::Later, false),
        (ended("", None), "ended by a signal and without a whole answer", Retry::Later, false),
        (ended("", Some(0)), "or breaks off", Retry::Later, false),
        (Err(SshError::Denied("no key".to_owned())), "no key", Retry::Never, true),
        (Err(SshError::Untrusted("another key".to_owned())), "another key", Retry::Later, false),
        (Err(SshError::Unreachable("no connection".to_owned())), "no connection", Retry::Later, false),
        (Err(SshError::Refused("not called".to_owned())), "not called", Retry::Never, false),
        (Err(SshError::TooLong), "more than 4 MiB in one answer", Retry::Never, false),
    ] {
        scene.way.instead.lock().unwrap().push(instead);
        let error = scene.remote.refs(&["HEAD"]).await.expect_err(words);
        assert!(error.cause.contains(words), "{error}");
        assert_eq!((error.retry, error.denied), (retry, denied), "{words}");
        scene.remote.forget();
    }
}

/// The bound is that of the answer: what a server says ahead of it is not counted, and does not hide it.
#[tokio::test]
async fn an_answer_is_bounded_without_what_comes_ahead_of_it() {
    let scene = Scene::new(REPOSITORY, false);
    let base = scene.main().await;
    let small = |pack_bytes| Bounds { pack_bytes, ..Bounds::default() };
    let Scene { way, remote, host: _host } = scene;
    drop(remote);
    let fetch = async |pack_bytes| {
        let remote = Remote::over_ssh(Arc::clone(&way) as Arc<dyn Http>, &format!("{HOST}/{REPOSITORY}"), keys());
        remote.expect("a URL").bounded(small(pack_bytes)).fetch(&BTreeSet::from([base])).await.map(drop)
    };
    let error = fetch(100).await.expect_err("too long");
    assert!(error.cause.contains("more than 100 bytes in one answer") && error.retry == Retry::Never, "{error}");
    fetch(10_000).await.expect("short enough");
}

/// Cut between two packets, a list of refs would be one of fewer refs, and a branch that is there would be gone.
#[tokio::test]
async fn a_list_that_breaks_off_is_no_shorter_list() {
    let scene = Scene::new(REPOSITORY, false);
    let answer = |output: &str, code| Ok(Answer { output: Bytes::from(output.to_owned()), words: String::new(), code });
    let id = "1".repeat(40);
    let (ahead, head) = ("000eversion 2\n0000", format!("0032{id} HEAD\n"));
    let v0 = format!("0033{id} HEAD\0\n");
    for instead in [
        vec![answer("000eversion 2\n", Some(0))],
        vec![answer(&v0, Some(0))],
        vec![answer(ahead, Some(0)), answer(&format!("{ahead}{head}"), Some(128))],
        vec![answer(ahead, Some(0)), answer(&format!("{ahead}{head}"), None)],
        vec![answer(ahead, Some(0)), answer("000eversion 2\n", Some(0))],
    ] {
        scene.way.instead.lock().unwrap().extend(instead.into_iter().rev());
        let error = scene.remote.refs(&["HEAD", "refs/heads/main"]).await.expect_err("it broke off");
        assert_eq!(error.retry, Retry::Later, "{error}");
        scene.remote.forget();
    }
    let said = format!("{ahead}{}", "0013ERR not our ref");
    scene.way.instead.lock().unwrap().extend([answer(&said, Some(128)), answer(ahead, Some(0))]);
    let error = scene.remote.refs(&["HEAD"]).await.expect_err("refused");
    assert_eq!(error.cause, "the server says: not our ref");
}
