//! The git client against dulwich: a git server from other hands than git's. Its departures from git, in 1.2.21: protocol v0
//! only; it offers filters and answers 500; it refuses clients that do not name `thin-pack`; it reports success for a push
//! whose branch had moved, and leaves the branch.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forge::git::{Pushed, Remote};

use crate::scene::{FILE, Plain, REPOSITORY, Scene, at, build};

/// Serves one repository on a port of the operating system's choice, and says which.
const SERVER: &str = "
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server
from dulwich.repo import Repo
from dulwich.server import DictBackend
from dulwich.web import make_wsgi_chain

class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass

server = make_server('127.0.0.1', 0, make_wsgi_chain(DictBackend({'/': Repo(sys.argv[1])})), handler_class=Quiet)
print(server.server_port, flush=True)
server.serve_forever()
";

pub struct Dulwich(Child);

impl Drop for Dulwich {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves the scene's repository at this URL, and gives a way there.
pub fn serve(scene: &Scene) -> (Dulwich, String, Arc<Plain>) {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    assert!(python.exists(), "{} is missing: run `make test-setup` once", python.display());
    let mut command = Command::new(python);
    command.args(["-c", SERVER]).arg(scene.host.directory(REPOSITORY)).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().expect("python starts");
    let said = child.stdout.take().expect("piped");
    let server = Dulwich(child);
    let mut port = String::new();
    BufReader::new(said).read_line(&mut port).expect("it says its port");
    (server, format!("http://127.0.0.1:{}", port.trim()), Arc::new(Plain::new()))
}

/// The same, with a client.
fn served(scene: &Scene) -> (Dulwich, Remote, Arc<Plain>) {
    let (server, url, _) = serve(scene);
    let (remote, http) = at(&url);
    (server, remote, http)
}

#[tokio::test]
async fn a_promotion_works_with_a_server_that_is_not_gits() {
    let scene = Scene::with_files().await;
    let (_server, remote, http) = served(&scene);
    let refs = remote.refs(&["refs/heads/"]).await.expect("refs");
    let base = refs.branch("main").expect("main");
    assert_eq!(base.to_string(), scene.git(&["rev-parse", "main"]));
    let mut objects = remote.fetch(&[base].into()).await.expect("fetched");
    let file = objects.files(base, Some("apps/web")).expect("files").pop().expect("a file");
    remote.load(&mut objects, base, &[file.id].into()).await.expect("loaded");
    assert_eq!(objects.content(file.id), Some(&b"tag: 1.0 # marker\n"[..]));
    let built = build(&objects, base, base, "2.0");
    assert_eq!(remote.push("promote", None, Some(&built)).await, Ok(Pushed::Done));
    assert_eq!(scene.git(&["show", &format!("promote:{FILE}")]), "tag: 2.0 # marker");
    scene.git(&["fsck", "--strict"]);
    assert_eq!(http.requests.load(Ordering::SeqCst), 6, "one of them in vain: dulwich has no filters");
    assert_eq!(remote.push("promote", Some(built.id), None).await, Ok(Pushed::Done));
    assert_eq!(scene.git(&["branch", "--list", "promote"]), "");
}

#[tokio::test]
async fn a_success_that_was_none_is_found_out() {
    let scene = Scene::with_files().await;
    let (_server, remote, http) = served(&scene);
    let built = scene.built("2.0").await;
    let host = Arc::clone(&scene.host);
    http.before_push(move || drop(host.commit(REPOSITORY, "promote", &[("theirs", b"1")]).expect("commit")));
    let pushed = remote.push("promote", None, Some(&built)).await;
    let theirs = scene.git(&["rev-parse", "promote"]).parse().expect("id");
    assert_eq!(pushed, Ok(Pushed::Moved(Some(theirs))));
    assert_ne!(theirs, built.id);
}
