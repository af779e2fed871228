//! A git host with one repository, a client of it, and the way between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use forge::git::{Built, Credentials, Draft, Objects, Oid, Remote};
use forge::{Authorities, Http, HttpError};
use sandbox::git::GitHost;
use sandbox::http::{Action, Fault, Reply, Request, Server, StandIn, When};

/// How long one exchange may take; two busy cores are slow.
const TIMEOUT: Duration = Duration::from_secs(60);

pub const REPOSITORY: &str = "shop/web.git";
pub const FILE: &str = "apps/web/values.yaml";
pub const AUTHOR: &str = "allclear <allclear@example.com>";

/// A git host with one repository, and a client of it.
pub struct Scene {
    pub host: Arc<GitHost>,
    pub server: Server,
    pub http: Arc<Plain>,
    pub remote: Remote,
}

impl Scene {
    /// A repository whose branch `main` holds a few files.
    pub async fn with_files() -> Self {
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

    pub async fn empty() -> Self {
        let host = Arc::new(GitHost::new().expect("a git host"));
        host.create(REPOSITORY, &[]).expect("a repository");
        let server = Server::start(Arc::clone(&host) as Arc<dyn StandIn>).await.expect("loopback");
        let (remote, http) = at(&format!("{}/{REPOSITORY}", server.url()));
        Self { host, server, http, remote }
    }

    pub async fn main(&self) -> Oid {
        self.remote.refs(&["refs/heads/main"]).await.expect("refs").branch("main").expect("main")
    }

    /// The commit that sets the tag, on today's base.
    pub async fn built(&self, tag: &str) -> Built {
        let base = self.main().await;
        let objects = self.remote.fetch(&BTreeSet::from([base])).await.expect("fetched");
        build(&objects, base, base, tag)
    }

    pub fn url(&self) -> String {
        format!("{}/{REPOSITORY}", self.server.url())
    }

    /// A client with these credentials that knows nothing yet.
    pub fn stranger(&self, credentials: Option<&Credentials>) -> Remote {
        remote(&self.url(), &self.http, credentials)
    }

    /// Answers requests of one kind with something else: once, instead of git.
    pub fn answer(&self, matches: impl Fn(&Request) -> bool + Send + Sync + 'static, reply: Reply) {
        self.server.inject(Fault::once(When::Before, Action::Answer(reply)).matching(matches));
    }

    pub fn requests(&self) -> usize {
        self.http.requests.load(Ordering::SeqCst)
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        self.host.git(REPOSITORY, arguments).expect("git")
    }
}

fn remote(url: &str, http: &Arc<Plain>, credentials: Option<&Credentials>) -> Remote {
    Remote::new(Arc::clone(http) as Arc<dyn Http>, url, credentials, None).expect("a URL")
}

/// A client of some repository, and its way there.
pub fn at(url: &str) -> (Remote, Arc<Plain>) {
    let http = Arc::new(Plain::new());
    (remote(url, &http, None), http)
}

pub fn build(objects: &Objects, base: Oid, parent: Oid, tag: &str) -> Built {
    let draft = Draft { base, parent, author: AUTHOR, at: 1_700_000_100, message: "Promote", signer: None };
    let changes = BTreeMap::from([(FILE.to_owned(), Bytes::from(format!("tag: {tag} # marker\n")))]);
    objects.build(&draft, &changes).expect("a file of the base").expect("another content")
}

/// HTTP without TLS and without a judgement of addresses.
pub struct Plain {
    client: reqwest::Client,
    pub requests: AtomicUsize,
    pub bytes_sent: AtomicUsize,
    /// What happens before the next request to receive a pack.
    before_push: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// What becomes of one answer on its way, by the number of its request from now on.
    mangling: Mutex<Option<(usize, Mangle)>>,
}

pub type Mangle = Box<dyn FnOnce(http::Response<Bytes>) -> Result<http::Response<Bytes>, HttpError> + Send>;

impl Plain {
    pub fn new() -> Self {
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let client = client.timeout(TIMEOUT).build().expect("client");
        Self {
            client,
            requests: AtomicUsize::new(0),
            bytes_sent: AtomicUsize::new(0),
            before_push: Mutex::default(),
            mangling: Mutex::default(),
        }
    }

    /// Spoils the answer to the next request, or to one of those behind it.
    pub fn mangle(&self, behind: usize, mangle: Mangle) {
        *self.mangling.lock().expect("lock") = Some((behind, mangle));
    }

    fn due(&self) -> Option<Mangle> {
        let mut mangling = self.mangling.lock().expect("lock");
        match mangling.take()? {
            (0, mangle) => Some(mangle),
            (behind, mangle) => {
                *mangling = Some((behind - 1, mangle));
                None
            }
        }
    }

    pub fn before_push(&self, act: impl FnOnce() + Send + 'static) {
        *self.before_push.lock().expect("lock") = Some(Box::new(act));
    }
}

#[async_trait]
impl Http for Plain {
    async fn send(
        &self,
        request: http::Request<Bytes>,
        _: Option<&Authorities>,
        answer_max: usize,
    ) -> Result<http::Response<Bytes>, HttpError> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.bytes_sent.fetch_add(request.body().len(), Ordering::SeqCst);
        if request.method() == http::Method::POST && request.uri().path().ends_with("/git-receive-pack") {
            let before = self.before_push.lock().expect("lock").take();
            before.into_iter().for_each(|before| before());
        }
        let failed = |error: reqwest::Error| HttpError::Failed(error.without_url().to_string());
        let request = reqwest::Request::try_from(request).map_err(failed)?;
        let mut answer = self.client.execute(request).await.map_err(failed)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            body.extend_from_slice(&chunk);
            if body.len() > answer_max {
                return Err(HttpError::TooLong);
            }
        }
        let mut response = http::Response::new(Bytes::from(body));
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        match self.due() {
            Some(mangle) => mangle(response),
            None => Ok(response),
        }
    }
}
