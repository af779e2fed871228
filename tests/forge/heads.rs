//! Looks at refs: what a wanted ref comes to with real git, which hosts rest, and that they take no places from others.

mod answers;
mod apps;
mod folders;
mod hosts;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use forge::Http;
use forge::heads::{GitHeads, Patience};
use forge::keeper::Keeper;
use kernel::id::RepoId;
use kernel::machine::Timestamp;
use kernel::names::destination::Purpose;
use objects::ports::Secrets;
use objects::ports::repo::{Found, Heads, Unresolved};
use objects::repo::spec::{Approving, Gates, Keep, Retry, Runner, Source, Spec, Wanted};
use purge::ports::{Clock, PortError};

/// When that clock begins, since the Unix epoch.
pub const EPOCH_MS: i64 = 1_700_000_000_000;

/// A clock that stands still until it is moved.
#[derive(Default)]
pub struct Stopped(AtomicU64);

impl Stopped {
    fn forward(&self, seconds: u64) {
        self.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }
}

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn wall_ms(&self) -> i64 {
        EPOCH_MS + i64::try_from(self.0.load(Ordering::SeqCst)).expect("a time")
    }
}

#[derive(Default)]
struct Safe(Mutex<BTreeMap<String, Vec<u8>>>);

impl Safe {
    fn set(&self, keys: &[(&str, &str)]) {
        let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        *self.0.lock().expect("lock") = keys.collect();
    }
}

#[async_trait]
impl Secrets for Safe {
    async fn read(&self, namespace: &str, name: &str, _: Purpose) -> Result<BTreeMap<String, Vec<u8>>, PortError> {
        match (namespace, name) {
            ("platform", "git") => Ok(self.0.lock().expect("lock").clone()),
            _ => Err(PortError::lasting(format!("failed to get Secret {namespace}/{name}"), "there is none")),
        }
    }
}

/// What looks are made with.
struct Desk {
    heads: Arc<GitHeads>,
    clock: Arc<Stopped>,
    safe: Arc<Safe>,
}

impl Desk {
    fn new(http: Arc<dyn Http>) -> Self {
        Self::patient(http, Patience::default())
    }

    fn patient(http: Arc<dyn Http>, patience: Patience) -> Self {
        let (clock, safe) = (Arc::new(Stopped::default()), Arc::new(Safe::default()));
        let keeper = Keeper::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let heads = GitHeads::new(http, Arc::clone(&safe) as Arc<dyn Secrets>, keeper, patience);
        Self { heads: Arc::new(heads), clock, safe }
    }

    async fn look(&self, url: &str, wanted: Wanted) -> Result<Found, Unresolved> {
        self.heads.resolve(&repo(), &spec(url, wanted, None), &|| ()).await
    }

    /// A look with the Secret.
    async fn look_in(&self, url: &str) -> Result<Found, Unresolved> {
        self.heads.resolve(&repo(), &spec(url, Wanted::Head, Some("git")), &|| ()).await
    }

    /// A look of a Repo in this namespace.
    async fn look_from(&self, namespace: &str, url: &str) -> Result<Found, Unresolved> {
        self.heads.resolve(&RepoId::new(namespace, "infra"), &spec(url, Wanted::Head, None), &|| ()).await
    }

    /// Which hosts rest, in words.
    fn resting(&self) -> Vec<String> {
        self.heads.troubles()
    }
}

fn repo() -> RepoId {
    RepoId::new("platform", "infra")
}

fn branch(name: &str) -> Wanted {
    Wanted::Branch(name.to_owned())
}

fn tag(name: &str) -> Wanted {
    Wanted::Tag(name.to_owned())
}

fn found(revision: &str, name: &str) -> Result<Found, Unresolved> {
    Ok(Found { revision: revision.parse().expect("a commit's id"), name: name.to_owned() })
}

/// Why a look brought nothing that only a person can mend.
#[track_caller]
fn lasting(look: Result<Found, Unresolved>) -> String {
    let Unresolved { why, lasting, busy: _, rest } = look.expect_err("nothing was found");
    assert!(lasting && rest.is_zero(), "{why}");
    why
}

fn spec(url: &str, wanted: Wanted, secret: Option<&str>) -> Spec {
    Spec {
        source: Source { url: url.to_owned(), wanted, secret: secret.map(str::to_owned), ..Source::default() },
        interval: Duration::from_secs(60),
        approval: Approving::Auto,
        runner: Runner::default(),
        workspace: None,
        retry: Retry { limit: 0, backoff: Duration::from_secs(60) },
        gates: Gates::default(),
        suspended: None,
        keep: Keep { succeeded: 3, failed: 3 },
        stalled_after: Duration::from_secs(3600),
        drift: None,
        report: None,
    }
}
