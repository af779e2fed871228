//! Git over SSH with a real `sshd` and a real `ssh`: which keys open it, whom it is believed to be, and what each failure says.
//!
//! Each connection has an `sshd` of its own (`-i`), behind a listener of the test: it ends with its connection, and no port is chosen.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use allclear::adapters::forge_http::ForgeHttp;
use forge::Http;
use forge::git::{Bounds, Pushed, Remote};
use forge::ssh::SshKeys;
use purge::ports::{PortError, Retry};
use sandbox::git::GitHost;
use tempfile::TempDir;

use crate::webhook::Knows;

const TIMEOUT: Duration = Duration::from_secs(60);
const REPOSITORY: &str = "shop/it's web.git";

/// A host with one repository and one server's key; the keys of its user are of each kind.
struct Scene {
    folder: TempDir,
    git: GitHost,
    port: u16,
    user: String,
    commit: String,
}

/// Makes a pair of keys, and returns the private one and the public one.
fn pair(folder: &Path, kind: &str, name: &str) -> [String; 2] {
    let file = folder.join(name);
    let made = Command::new("ssh-keygen").args(["-q", "-t", kind, "-N", "", "-f"]).arg(&file).status();
    assert!(made.expect("ssh-keygen is missing: run scripts/test-setup.sh").success());
    [file.clone(), file.with_extension("pub")].map(|file| fs::read_to_string(file).expect("a key"))
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        pair(folder.path(), "ed25519", "host");
        let public: Vec<String> =
            ["ed25519", "rsa", "ecdsa"].iter().map(|kind| pair(folder.path(), kind, kind)[1].clone()).collect();
        fs::write(at("authorized"), public.concat()).expect("a file");
        let config = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication \
             no\nKbdInteractiveAuthentication no\nAcceptEnv GIT_PROTOCOL\nLogLevel QUIET\n",
            at("host").display(),
            at("authorized").display()
        );
        fs::write(at("config"), config).expect("a file");
        let git = GitHost::new().expect("a git host");
        git.create(REPOSITORY, &[]).expect("a repository");
        let commit = git.commit(REPOSITORY, "main", &[("a.yaml", b"tag: 1.0\n")]).expect("a commit");
        let port = served(&at("config"));
        let user = Command::new("id").arg("-un").output().expect("a name").stdout;
        let user = String::from_utf8(user).expect("text").trim().to_owned();
        Self { folder, git, port, user, commit }
    }

    fn key(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).expect("a key")
    }

    /// The lines by which the host is known, by another key than its own if one is named.
    fn known(&self, name: &str) -> String {
        format!("[localhost]:{} {}", self.port, self.key(&format!("{name}.pub")))
    }

    fn keys(&self, kind: &str) -> SshKeys {
        SshKeys { identity: self.key(kind), known_hosts: self.known("host") }
    }

    fn url(&self, repository: &str) -> String {
        let path = self.git.directory(repository);
        let path = path.to_str().expect("text").replace(' ', "%20");
        format!("ssh://{}@localhost:{}{path}", self.user, self.port)
    }

    fn remote(&self, keys: SshKeys) -> Remote {
        remote(&self.url(REPOSITORY), keys, TIMEOUT)
    }

    async fn refused(&self, keys: SshKeys) -> PortError {
        self.remote(keys).refs(&["HEAD"]).await.expect_err("refused")
    }
}

fn remote(url: &str, keys: SshKeys, timeout: Duration) -> Remote {
    let http = ForgeHttp::new(["localhost".to_owned()]).with(timeout, Arc::new(Knows([127, 0, 0, 1].into())));
    Remote::over_ssh(Arc::new(http) as Arc<dyn Http>, url, keys).expect("a URL")
}

/// A port behind which each connection has a server of its own. Ends with the test's process.
fn served(config: &Path) -> u16 {
    // As root, sshd wants a folder that the system makes when its service starts.
    let separation = Path::new("/run/sshd");
    if !separation.exists() && fs::create_dir(separation).is_ok() {
        fs::set_permissions(separation, Permissions::from_mode(0o755)).expect("a mode");
    }
    let config = config.to_owned();
    listening(move |client| {
        let answers = client.try_clone().expect("a descriptor");
        let mut server = Command::new("/usr/sbin/sshd");
        server.arg("-i").arg("-f").arg(&config).stdin(Stdio::from(client)).stdout(Stdio::from(answers));
        let server = server.spawn();
        drop(server.expect("sshd is missing: run scripts/test-setup.sh").wait());
    })
}

fn listening(each: impl Fn(std::os::fd::OwnedFd) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let each = Arc::new(each);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let each = Arc::clone(&each);
            std::thread::spawn(move || each(client.into()));
        }
    });
    port
}

#[tokio::test]
async fn keys_of_each_kind_read_and_push() {
    let scene = Scene::new();
    for kind in ["ed25519", "rsa", "ecdsa"] {
        let remote = scene.remote(scene.keys(kind));
        let refs = remote.refs(&["refs/heads/main"]).await.expect(kind);
        assert_eq!(refs.branch("main").map(|id| id.to_string()), Some(scene.commit.clone()), "{kind}");
        assert!(remote.speaks_v2(), "the host lets GIT_PROTOCOL in");
    }
    let remote = scene.remote(scene.keys("ed25519"));
    let main = remote.refs(&["refs/heads/main"]).await.expect("refs").branch("main").expect("main");
    scene.git.git(REPOSITORY, &["branch", "old", "main"]).expect("a branch");
    let other = "1".repeat(40).parse().expect("an id");
    assert_eq!(remote.push("old", Some(other), None).await, Ok(Pushed::Moved(Some(main))), "the lease is lost");
    assert_eq!(remote.push("old", Some(main), None).await, Ok(Pushed::Done));
    assert_eq!(scene.git.git(REPOSITORY, &["branch", "--list", "old"]).expect("git"), "");
}

#[tokio::test]
async fn a_host_is_who_it_should_be_or_hears_nothing() {
    let scene = Scene::new();
    pair(scene.folder.path(), "ed25519", "other");
    let known = |known_hosts: String| SshKeys { known_hosts, ..scene.keys("ed25519") };
    let plain = format!("localhost {}", scene.key("host.pub"));
    for (keys, words) in [
        (known(scene.known("other")), "shows another key than known_hosts has"),
        (known(plain), "known_hosts has no line for [localhost]:"),
        (known("elsewhere ssh-ed25519 AAAA\n".to_owned()), "known_hosts has no line for [localhost]:"),
    ] {
        let error = scene.refused(keys).await;
        assert!(error.cause.contains(words) && error.retry == Retry::Later, "{error}");
    }
    pair(scene.folder.path(), "ed25519", "strange");
    let error = scene.refused(scene.keys("strange")).await;
    assert!(error.denied && error.cause.contains("does not take the key"), "{error}");
    let broken = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n".to_owned();
    let error = scene.refused(SshKeys { identity: broken, ..scene.keys("ed25519") }).await;
    assert!(error.cause.contains("cannot use the private key") && error.retry == Retry::Never, "{error}");
}

#[tokio::test]
async fn a_missing_repository_a_long_answer_and_a_silent_host_are_told_apart() {
    let scene = Scene::new();
    let gone = remote(&scene.url("shop/none.git"), scene.keys("ed25519"), TIMEOUT).refs(&["HEAD"]).await;
    let gone = gone.expect_err("there is none");
    assert!(gone.cause.starts_with("no such repository") && gone.retry == Retry::Never, "{gone}");

    let small = Bounds { refs_bytes: 100, ..Bounds::default() };
    let long = scene.remote(scene.keys("ed25519")).bounded(small).refs(&["HEAD"]).await.expect_err("too long");
    assert!(long.cause.contains("more than 100 bytes in one answer"), "{long}");

    let silent = listening(|client| {
        let held = client;
        std::thread::sleep(TIMEOUT);
        drop(held);
    });
    let url = |port: u16| format!("ssh://git@localhost:{port}/a");
    let late = remote(&url(silent), scene.keys("ed25519"), Duration::from_millis(300)).refs(&["HEAD"]).await;
    let late = late.expect_err("no answer");
    assert!(late.cause.contains("no whole answer within 300ms") && late.retry == Retry::Later, "{late}");

    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let none = remote(&url(closed), scene.keys("ed25519"), TIMEOUT).refs(&["HEAD"]).await.expect_err("no server");
    assert!(none.cause.contains("no connection: Connection refused"), "{none}");
}
