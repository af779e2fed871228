//! Where wanted refs point, as [`Heads`]: one look is one request to a server that is known to speak protocol v2, two to others.
//!
//! - Sixteen looks at the same time, four of one host; those that wait for a slow host take no places from others.
//! - A host that fails rests as a whole ([`hosts`](crate::hosts)); a look at it ends at once, without a request.
//! - Each look has ten seconds and 4 MiB. It is made on a thread of the blocking pool: an encrypted connection and the list of
//!   10,000 refs take milliseconds, which an actor's thread does not have.
//! - Credentials are read for each look and kept by no one. What is remembered is which URLs speak v2.
//!
//! Not for when a Repo looks, nor for what follows from a commit; that is the machine. Nor for whom we may connect to; that is
//! [`Http`].

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::destination::Purpose;
use domain::id::{RepoId, Revision};
use domain::machine::Timestamp;
use domain::ports::pipeline::Secrets;
use domain::ports::repo::{Begins, Found, Heads, Unresolved};
use domain::ports::{Clock, PortError, Retry};
use domain::repo::spec::{Spec, Wanted};
use http::StatusCode;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::git::{Oid, Ref, Refs, Remote};
use crate::hosts::{Hosts, Outcome, Ticket};
use crate::keys::GitKeys;
use crate::{Authorities, Http, HttpError, limits, near};

pub use crate::hosts::Resting;

/// Looks at the same time, which is connections at the same time. 1,000 Repos at a minute are 17 looks a second.
const LOOKS_MAX: usize = 16;

/// URLs of which it is known that their server speaks v2; more than a cluster has Repos.
const KNOWN_MAX: usize = 10_000;

/// Bytes of a name that a server says; a longer one is not repeated.
const NAME_BYTES_MAX: usize = 250;

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// One look, from connecting to the last byte.
    pub look: Duration,
    /// Waiting for a place.
    pub place: Duration,
}

impl Default for Patience {
    /// 10 s, and a minute, which is six looks.
    fn default() -> Self {
        Self { look: Duration::from_secs(10), place: Duration::from_secs(60) }
    }
}

/// All git hosts, of which refs are read.
pub struct GitHeads(Arc<Shared>);

struct Shared {
    http: Arc<dyn Http>,
    secrets: Arc<dyn Secrets>,
    clock: Arc<dyn Clock>,
    patience: Patience,
    places: Arc<Semaphore>,
    hosts: Mutex<Hosts>,
    /// URLs whose server speaks v2.
    known: Mutex<BTreeSet<String>>,
}

impl GitHeads {
    /// Hosts that can be reached by `http`, which judges whom we may talk to.
    pub fn new(http: Arc<dyn Http>, secrets: Arc<dyn Secrets>, clock: Arc<dyn Clock>, patience: Patience) -> Self {
        Self(Arc::new(Shared {
            http,
            secrets,
            clock,
            patience,
            places: Arc::new(Semaphore::new(LOOKS_MAX)),
            hosts: Mutex::default(),
            known: Mutex::default(),
        }))
    }

    /// The hosts that rest, by name.
    pub fn resting(&self) -> Vec<Resting> {
        let Shared { clock, patience, .. } = &*self.0;
        self.0.hosts().all_resting(clock.now(), patience.look)
    }
}

#[async_trait]
impl Heads for GitHeads {
    fn troubles(&self) -> Vec<String> {
        let words = |Resting { host, why, left }: Resting| {
            format!("git host {host} rests for {} s, and is looked at once then: {why}", left.as_secs())
        };
        self.resting().into_iter().map(words).collect()
    }

    async fn resolve(&self, repo: &RepoId, spec: &Spec, begins: &Begins<'_>) -> Result<Found, Unresolved> {
        let source = &spec.source;
        let question = match Question::of(&source.wanted) {
            Ok(Asked::Remote(question)) => question,
            Ok(Asked::Nothing(found)) => return Ok(found),
            Err(why) => return Err(lasting(why)),
        };
        let host = Remote::host(&source.url).map_err(unresolved)?;
        let shared = &self.0;
        let (visit, host_places) = Visit::begin(shared, &host);
        visit.check()?;
        let keys = match &source.secret {
            Some(name) => keys(&*shared.secrets, &repo.namespace, name, &source.url).await?,
            None => GitKeys::default(),
        };
        let waited = timeout(shared.patience.place, async {
            // First that of the host: who waits for a slow one holds no place of the others.
            let own = host_places.acquire_owned().await.ok()?;
            Some([own, Arc::clone(&shared.places).acquire_owned().await.ok()?])
        });
        let Ok(Some(places)) = waited.await else {
            let why =
                format!("{host} is slow: there was no place for a look within {} s", shared.patience.place.as_secs());
            return Err(Unresolved { why, lasting: false, rest: Duration::ZERO });
        };
        let ticket = visit.ticket()?;
        begins();
        let look = Look { visit, places, ticket, url: source.url.clone(), keys, question };
        let runtime = Handle::current();
        let work = tokio::task::spawn_blocking(move || runtime.block_on(look.make()));
        work.await.unwrap_or_else(|_| Err(passing("the look broke off; the log says where".to_owned())))
    }
}

/// Somebody who looks at a host, or waits to.
struct Visit {
    shared: Arc<Shared>,
    host: String,
}

impl Visit {
    fn begin(shared: &Arc<Shared>, host: &str) -> (Self, Arc<Semaphore>) {
        let places = shared.hosts().enter(shared.now(), host);
        (Self { shared: Arc::clone(shared), host: host.to_owned() }, places)
    }

    fn check(&self) -> Result<(), Unresolved> {
        let Shared { patience, .. } = &*self.shared;
        let resting = self.shared.hosts().resting(self.shared.now(), &self.host, patience.look);
        resting.map_or(Ok(()), |resting| Err(rests(resting)))
    }

    fn ticket(&self) -> Result<Ticket, Unresolved> {
        let Shared { patience, .. } = &*self.shared;
        self.shared.hosts().begin(self.shared.now(), &self.host, patience.look).map_err(rests)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.shared.hosts().leave(self.shared.now(), &self.host);
    }
}

/// One look, with all that it needs. It goes on to its end though the one who wanted it may be gone.
struct Look {
    visit: Visit,
    places: [OwnedSemaphorePermit; 2],
    ticket: Ticket,
    url: String,
    keys: GitKeys,
    question: Question,
}

impl Look {
    async fn make(self) -> Result<Found, Unresolved> {
        let Self { visit, places, ticket, url, keys, question } = self;
        let shared = &visit.shared;
        let witness = Arc::new(Witness { http: Arc::clone(&shared.http), seen: Mutex::new(Outcome::Nothing) });
        let http = Arc::clone(&witness) as Arc<dyn Http>;
        let remote = Remote::new(http, &url, keys.credentials.as_ref(), keys.authorities);
        let (answer, outcome) = match remote {
            Err(error) => (Err(unresolved(error)), Outcome::Nothing),
            Ok(remote) => {
                let remote = if shared.known().contains(&url) { remote.speaking_v2() } else { remote };
                match timeout(shared.patience.look, question.answer(&remote)).await {
                    Ok(answer) => {
                        shared.remember(&url, remote.speaks_v2());
                        (answer, witness.outcome())
                    }
                    Err(_) => {
                        let why = format!("no whole answer within {} s", shared.patience.look.as_secs_f32());
                        (Err(passing(format!("failed to read the refs of {url}: {why}"))), Outcome::Fails(why))
                    }
                }
            }
        };
        let now = shared.now();
        // All Repos of a host that rests say the same of it, whichever of them found that out. Words that change from look to look
        // would be written to the API server each time.
        let is_of_host = matches!(outcome, Outcome::Fails(_) | Outcome::AsksForRest(..));
        let mut hosts = shared.hosts();
        hosts.ended(now, &visit.host, &ticket, outcome);
        let resting = hosts.resting(now, &visit.host, Duration::ZERO);
        drop(hosts);
        drop(places);
        answer.map_err(|unresolved| match resting {
            Some(resting) if is_of_host && !unresolved.lasting => rests(resting),
            Some(resting) if !unresolved.lasting => Unresolved { rest: resting.left, ..unresolved },
            Some(_) | None => unresolved,
        })
    }
}

impl Shared {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn hosts(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, url: &str, speaks_v2: bool) {
        let mut known = self.known();
        if !speaks_v2 {
            known.remove(url);
        } else if !known.contains(url) {
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(url.to_owned());
        }
    }
}

/// What a wanted ref comes to.
enum Asked {
    /// This is to be asked.
    Remote(Question),
    /// It is known already.
    Nothing(Found),
}

/// What is asked of a repository: one ref, by its whole name.
struct Question {
    name: String,
    wanted: Wanted,
}

impl Question {
    fn of(wanted: &Wanted) -> Result<Asked, String> {
        let name = match wanted {
            Wanted::Commit(revision) => {
                return Ok(Asked::Nothing(Found { revision: revision.clone(), name: revision.0.clone() }));
            }
            Wanted::Head => "HEAD".to_owned(),
            Wanted::Branch(name) => format!("refs/heads/{name}"),
            Wanted::Tag(name) => format!("refs/tags/{name}"),
        };
        match is_name(&name) {
            true => Ok(Asked::Remote(Self { name, wanted: wanted.clone() })),
            false => Err(format!("{wanted} cannot be the name of a ref")),
        }
    }

    async fn answer(&self, remote: &Remote) -> Result<Found, Unresolved> {
        let refs = remote.refs(&[&self.name]).await.map_err(unresolved)?;
        if let Some(found) = refs.get(&self.name) {
            return self.found(found);
        }
        // A server that speaks v2 no more answers nothing to a question in it, as if it had no refs: it is asked anew.
        remote.forget();
        let all = remote.refs(&["HEAD", "refs/heads/", "refs/tags/"]).await.map_err(unresolved)?;
        all.get(&self.name).map_or_else(|| Err(lasting(self.missing(&all))), |found| self.found(found))
    }

    fn found(&self, found: &Ref) -> Result<Found, Unresolved> {
        let Ref { id, peeled, symbolic } = found;
        let commit = peeled.unwrap_or(*id);
        if commit == Oid::ZERO {
            return Err(lasting(format!("the server names no commit for {}: its id is only zeros", self.wanted)));
        }
        let symbolic = symbolic.as_ref().filter(|name| name.starts_with("refs/heads/") && is_name(name));
        Ok(Found { revision: Revision(commit.to_string()), name: symbolic.unwrap_or(&self.name).clone() })
    }

    /// Why there is no such ref.
    fn missing(&self, all: &Refs) -> String {
        let of = |prefix: &'static str| all.iter().filter_map(move |(name, _)| name.strip_prefix(prefix));
        if all.iter().next().is_none() {
            return "the repository is empty: it has no branch and no tag yet".to_owned();
        }
        let (kind, other, name) = match &self.wanted {
            Wanted::Head | Wanted::Commit(_) => {
                return "the repository's HEAD names a branch that does not exist; name one in spec.ref.branch"
                    .to_owned();
            }
            Wanted::Branch(name) => (("branch", "refs/heads/"), ("tag", "refs/tags/"), name),
            Wanted::Tag(name) => (("tag", "refs/tags/"), ("branch", "refs/heads/"), name),
        };
        let there_is = format!("the repository has no {} {name}", kind.0);
        if of(other.1).any(|known| known == name) {
            return format!("{there_is}, but a {} of that name: set spec.ref.{}", other.0, other.0);
        }
        match near::names(name, of(kind.1)).join(" or ") {
            near if near.is_empty() => there_is,
            near => format!("{there_is}; did you mean {near}?"),
        }
    }
}

/// Whether a text can be the name of a ref, and fits into a line of the protocol ([git-check-ref-format]).
///
/// [git-check-ref-format]: https://git-scm.com/docs/git-check-ref-format
fn is_name(name: &str) -> bool {
    let odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    name.len() <= NAME_BYTES_MAX && !name.contains(odd) && !name.contains("..") && !name.ends_with('/')
}

async fn keys(secrets: &dyn Secrets, namespace: &str, name: &str, url: &str) -> Result<GitKeys, Unresolved> {
    let secret = secrets.read(namespace, name, Purpose::sent_to(url)).await.map_err(unresolved)?;
    GitKeys::of(&secret).map_err(|why| lasting(format!("failed to use Secret {namespace}/{name}: {why}")))
}

fn rests(Resting { host, why, left }: Resting) -> Unresolved {
    Unresolved { why: format!("{host} is left alone for a while: {why}"), lasting: false, rest: left }
}

fn unresolved(error: PortError) -> Unresolved {
    match error.retry {
        Retry::Never => lasting(error.to_string()),
        Retry::Later => passing(error.to_string()),
        Retry::After(rest) => Unresolved { rest, ..passing(error.to_string()) },
    }
}

fn lasting(why: String) -> Unresolved {
    Unresolved { why, lasting: true, rest: Duration::ZERO }
}

fn passing(why: String) -> Unresolved {
    Unresolved { why, lasting: false, rest: Duration::ZERO }
}

/// Sees what the exchanges of one look say about the host.
struct Witness {
    http: Arc<dyn Http>,
    /// Of the last exchange.
    seen: Mutex<Outcome>,
}

impl Witness {
    fn outcome(&self) -> Outcome {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Http for Witness {
    async fn send(
        &self,
        request: http::Request<Bytes>,
        authorities: Option<&Authorities>,
        answer_max: usize,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let answer = self.http.send(request, authorities, answer_max).await;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = outcome(&answer);
        answer
    }
}

/// What an exchange says about the host, in words that hold nothing of the repository: others read them.
fn outcome(answer: &Result<http::Response<Bytes>, HttpError>) -> Outcome {
    match answer {
        Err(HttpError::Failed(why)) => Outcome::Fails(why.clone()),
        // It works, but not for those who trust what this Repo trusts.
        Err(HttpError::Untrusted(_)) => Outcome::Nothing,
        Err(HttpError::Refused(_)) => Outcome::Nothing,
        Err(HttpError::TooLong) => Outcome::Answers,
        Ok(answer) => {
            let status = answer.status();
            let why = format!("it answers {}", status.as_u16());
            let patience = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status);
            match limits::rest(answer.headers()).filter(|_| patience) {
                Some(rest) => Outcome::AsksForRest(why, rest),
                None if patience || status.is_server_error() => Outcome::Fails(why),
                None => Outcome::Answers,
            }
        }
    }
}
