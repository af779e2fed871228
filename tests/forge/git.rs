//! The git client against real git.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use forge::git::{Built, Credentials, Draft, Objects, Oid, Pushed, Remote};
use sandbox::git::GitHost;
use sandbox::http::{Server, StandIn};

use crate::scene::Plain;

const REPOSITORY: &str = "shop/web.git";
const FILE: &str = "apps/web/values.yaml";

/// A git host with one repository, and a client of it.
struct Scene {
    host: Arc<GitHost>,
    server: Server,
    http: Arc<Plain>,
    remote: Remote,
}

impl Scene {
    /// A repository whose branch `main` holds a few files.
    async fn with_files() -> Self {
        let scene = Self::empty().await;
        let files: [(&str, &[u8]); 4] = [
            (FILE, b"tag: 1.0 # marker\n"),
            ("apps/web/more.yaml", b"other: 1\n"),
            ("apps-of-others/a.yaml", b"other: 2\n"),
            ("README.md", b"words\n"),
        ];
        scene.host.commit(REPOSITORY, "main", &files).expect("commit");
        scene
    }

    async fn empty() -> Self {
        let host = Arc::new(GitHost::new().expect("a git host"));
        host.create(REPOSITORY, &[]).expect("a repository");
        let server = Server::start(Arc::clone(&host) as Arc<dyn StandIn>).await.expect("loopback");
        let http = Arc::new(Plain::new());
        let remote = remote(&server, &http, None);
        Self { host, server, http, remote }
    }

    async fn main(&self) -> Oid {
        self.remote.refs(&["refs/heads/main"]).await.expect("refs").branch("main").expect("main")
    }

    /// The commit that sets the tag, on today's base.
    async fn built(&self, tag: &str) -> Built {
        let base = self.main().await;
        let objects = self.remote.fetch(&BTreeSet::from([base])).await.expect("fetched");
        build(&objects, base, base, tag)
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.host.git(REPOSITORY, arguments).expect("git")
    }
}

fn remote(server: &Server, http: &Arc<Plain>, credentials: Option<&Credentials>) -> Remote {
    let url = format!("{}/{REPOSITORY}", server.url());
    Remote::new(Arc::clone(http) as Arc<dyn forge::Http>, &url, credentials, None).expect("a URL")
}

fn build(objects: &Objects, base: Oid, parent: Oid, tag: &str) -> Built {
    let draft =
        Draft { base, parent, author: "allclear <allclear@example.com>", at: 1_700_000_100, message: "Promote" };
    let changes = BTreeMap::from([(FILE.to_owned(), Bytes::from(format!("tag: {tag} # marker\n")))]);
    objects.build(&draft, &changes).expect("a file of the base").expect("another content")
}

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
    assert_eq!(scene.http.requests.load(Ordering::SeqCst), 7);
}
