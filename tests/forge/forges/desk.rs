//! A site with git and a forge, and what proposes promotions there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use forge::keeper::Keeper;
use forge::propose::Forges;
use forge::ssh::{Answer, Call, SshError};
use forge::{Authorities, Http, HttpError};
use kernel::id::{Environment, PipelineId, PromotionSeq, Revision};
use kernel::names::destination::Purpose;
use objects::pipeline::options::{Lacks, RequestOptions};
use objects::pipeline::proposal::{ForgeKind, Order, Proposed, Repository, Request};
use objects::ports::Secrets;
use objects::ports::pipeline::Forge;
use purge::ports::PortError;
use sandbox::forge::{ForgeHost, Hosted, Kind, Pull, Site};
use sandbox::git::GitHost;
use sandbox::http::{Request as Seen, Server, StandIn};
use tokio::sync::Notify;

use crate::heads::Stopped;
use crate::scene::Plain;
use crate::ssh::host_runs;

pub const KINDS: [ForgeKind; 5] =
    [ForgeKind::GitHub, ForgeKind::GitLab, ForgeKind::BitbucketServer, ForgeKind::BitbucketCloud, ForgeKind::Gitea];

pub const REPOSITORY: &str = "shop/web.git";
pub const FILE: &str = "apps/web/values.yaml";
pub const HEAD: &str = "promotion-shop-web-prod";
pub const VALUES: &str = "image:\r\n  tag: 1.2.2 # {\"$promotion\": \"shop:web:prod\"}\r\n";

/// What no error, title, body or comment may contain.
pub const TOKEN: &str = "forge-token-hunter2";
pub const PASSWORD: &str = "git-password-hunter2";

pub struct Desk {
    pub git: Arc<GitHost>,
    pub forge: Arc<ForgeHost>,
    pub server: Server,
    pub http: Arc<Gate>,
    pub secrets: Arc<Safe>,
    pub forges: Forges,
    kind: ForgeKind,
}

impl Desk {
    pub async fn new(kind: ForgeKind) -> Self {
        let git = Arc::new(GitHost::new().expect("a git host"));
        git.create(REPOSITORY, &[]).expect("a repository");
        let files: [(&str, &[u8]); 3] = [
            (FILE, VALUES.as_bytes()),
            ("apps/web/staging.yml", b"tag: 1.2.2 # {\"$promotion\": \"shop:web:staging\"}\n"),
            ("README.md", b"# {\"$promotion\": \"shop:web:prod\"}\n"),
        ];
        git.commit(REPOSITORY, "main", &files).expect("a commit");
        git.require_basic("git", PASSWORD);
        let stands_for = match kind {
            ForgeKind::GitHub => Kind::GitHub,
            ForgeKind::GitLab => Kind::GitLab,
            ForgeKind::BitbucketServer => Kind::BitbucketServer,
            ForgeKind::BitbucketCloud => Kind::BitbucketCloud,
            ForgeKind::Gitea => Kind::Gitea,
        };
        let branches = Arc::new(Hosted(Arc::clone(&git), REPOSITORY.to_owned()));
        let forge = Arc::new(ForgeHost::new(stands_for, "shop/web", TOKEN, branches));
        let site = Site { git: Arc::clone(&git), forge: Arc::clone(&forge) };
        let server = Server::start(Arc::new(site) as Arc<dyn StandIn>).await.expect("loopback");
        let (http, secrets) = (Arc::new(Gate::new(&server, &git)), Arc::new(Safe::new()));
        let forges = next_life(&http, &secrets);
        Self { git, forge, server, http, secrets, forges, kind }
    }

    /// The promotion of this number, to this revision.
    pub fn order(&self, seq: u64, revision: &str) -> Order {
        let site = match self.kind {
            ForgeKind::BitbucketCloud => "https://bitbucket.org".to_owned(),
            ForgeKind::BitbucketServer => format!("{}/scm", self.server.url()),
            ForgeKind::GitHub | ForgeKind::GitLab | ForgeKind::Gitea => self.server.url(),
        };
        Order {
            id: format!("id-of-{seq}"),
            pipeline: PipelineId::new("shop", "web"),
            environment: Environment("prod".to_owned()),
            seq: PromotionSeq(seq),
            from: Some(Revision("1.2.2".to_owned())),
            revision: Revision(revision.to_owned()),
            repository: Repository {
                forge: self.kind,
                url: format!("{site}/{REPOSITORY}"),
                base: "main".to_owned(),
                path: None,
                secret: Some("forge".to_owned()),
            },
            started_at: 1_700_000_000,
            approved_by: Some("ann@example.com".to_owned()),
            chosen: None,
            apps: Vec::new(),
            options: RequestOptions::default(),
            lacks: Lacks::new(),
            overwrite: false,
        }
    }

    pub async fn opened(&self, order: &Order) -> Request {
        match self.forges.propose(order).await {
            Ok(Proposed::Open(request)) => request,
            other => panic!("{:?}: {other:?}", self.kind),
        }
    }

    /// The only request there is.
    pub fn pull(&self) -> Pull {
        let [pull]: [Pull; 1] = self.forge.pulls().try_into().expect("one request");
        pull
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        self.git.git(REPOSITORY, arguments).expect("git")
    }

    pub fn tip(&self) -> String {
        self.git(&["rev-parse", HEAD])
    }

    /// Another process that does the same.
    pub fn other(&self) -> Forges {
        next_life(&Arc::new(Gate::new(&self.server, &self.git)), &self.secrets)
    }

    /// What a process does that knows nothing of the one before it.
    pub fn restart(&mut self) {
        self.http = Arc::new(Gate::new(&self.server, &self.git));
        self.forges = next_life(&self.http, &self.secrets);
    }

    /// Requests of this life to the API, by method.
    pub fn asked(&self) -> Vec<String> {
        let seen = self.server.seen();
        let api = seen.iter().filter(|seen| is_path_of_api(&seen.path));
        api.map(|seen| format!("{} {}", seen.method, seen.status.unwrap_or_default())).collect()
    }
}

fn next_life(http: &Arc<Gate>, secrets: &Arc<Safe>) -> Forges {
    let keeper = Keeper::new(Arc::new(Stopped::default()));
    Forges::new(Arc::clone(http) as Arc<dyn Http>, Arc::clone(secrets) as Arc<dyn Secrets>, keeper)
}

pub fn is_api(request: &Seen) -> bool {
    is_path_of_api(&request.path)
}

fn is_path_of_api(path: &str) -> bool {
    ["/api/", "/rest/", "/2.0/"].iter().any(|api| path.starts_with(api))
}

/// Where a life ends: at this request of it, before it is sent or when its answer is on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub request: usize,
    pub is_sent: bool,
}

/// The way out, which may end. What goes to Bitbucket Cloud goes to the site of the test, and SSH to its repositories.
pub struct Gate {
    repositories: PathBuf,
    plain: Plain,
    site: String,
    sent: AtomicUsize,
    end: Mutex<Option<End>>,
    ended: Notify,
    resumed: Notify,
}

impl Gate {
    fn new(site: &Server, git: &GitHost) -> Self {
        Self {
            repositories: git.directory(""),
            plain: Plain::new(),
            site: site.url(),
            sent: AtomicUsize::new(0),
            end: Mutex::default(),
            ended: Notify::new(),
            resumed: Notify::new(),
        }
    }

    pub fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    pub fn before_push(&self, act: impl FnOnce() + Send + 'static) {
        self.plain.before_push(act);
    }

    pub fn end_at(&self, end: End) {
        *self.end.lock().expect("lock") = Some(end);
    }

    /// Goes on where the end is before a request that is not sent.
    pub fn resume(&self) {
        self.resumed.notify_one();
    }

    pub async fn ended(&self) {
        self.ended.notified().await;
    }
}

#[async_trait]
impl Http for Gate {
    async fn send(
        &self,
        mut request: http::Request<Bytes>,
        authorities: Option<&Authorities>,
        answer_max: usize,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let url = request.uri().to_string();
        let path =
            ["https://bitbucket.org/", "https://api.bitbucket.org/"].iter().find_map(|host| url.strip_prefix(host));
        if let Some(path) = path {
            *request.uri_mut() = format!("{}/{path}", self.site).parse().expect("a URL");
        }
        let number = self.sent.fetch_add(1, Ordering::SeqCst);
        let end = self.end.lock().expect("lock").filter(|end| end.request == number);
        let send = self.plain.send(request, authorities, answer_max);
        if let Some(end) = end {
            if end.is_sent {
                send.await?;
                self.ended.notify_one();
                return std::future::pending().await;
            }
            self.ended.notify_one();
            self.resumed.notified().await;
        }
        send.await
    }

    async fn call(&self, call: Call<'_>) -> Result<Answer, SshError> {
        host_runs(&self.repositories, call).await
    }
}

/// Secrets that can be changed.
pub struct Safe(Mutex<BTreeMap<String, Vec<u8>>>);

impl Safe {
    fn new() -> Self {
        let keys = [("username", "git"), ("password", PASSWORD), ("token", TOKEN)];
        Self(Mutex::new(keys.map(|(key, value)| (key.to_owned(), format!("{value}\n").into_bytes())).into()))
    }

    pub fn set(&self, key: &str, value: Option<&[u8]>) {
        let mut keys = self.0.lock().expect("lock");
        keys.remove(key);
        keys.extend(value.map(|value| (key.to_owned(), value.to_vec())));
    }
}

#[async_trait]
impl Secrets for Safe {
    async fn read(&self, namespace: &str, name: &str, _: Purpose) -> Result<BTreeMap<String, Vec<u8>>, PortError> {
        assert!(["shop", "shop-web"].contains(&namespace) && name == "forge", "{namespace}/{name}");
        Ok(self.0.lock().expect("lock").clone())
    }
}
