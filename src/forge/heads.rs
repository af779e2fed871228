//! Where wanted refs point, as [`Heads`]: one look is one request to a server that is known to speak protocol v2, two to others. And
//! whether two commits are alike in some paths: a few requests for folders.
//!
//! - Whose turn it is, and what rests, is the [`keeper`](crate::keeper)'s; a look at what rests ends at once, without a request.
//! - Each look has 25 seconds and 4 MiB. It is made on a thread of the blocking pool: an encrypted connection and the list of
//!   10,000 refs take milliseconds, which an actor's thread does not have.
//! - Credentials are read for each look and kept by no one, but the tokens of GitHub Apps ([`app`](crate::app)). What else is remembered
//!   is which URLs speak v2.
//!
//! Not for when a Repo looks, nor for what follows from a commit; that is the machine. Nor for whom we may connect to; that is
//! [`Http`].

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kernel::id::{CommitId, RepoId};
use kernel::names::destination;
use kernel::text::visible;
use objects::ports::Secrets;
use objects::ports::repo::{Begins, Comparison, Found, Heads, Unresolved};
use objects::repo::spec::{Source, Spec, Wanted};
use purge::ports::{PortError, Retry};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::app::{Apps, Rights};
use crate::git::{Bounds, Oid, Ref, Refs, Remote};
use crate::keeper::{Errand, Keeper, NoTurn, Purpose, Turn};
use crate::keys::GitKeys;
use crate::rests::{Outcome, Resting, Whom};
use crate::witness::Witness;
use crate::{Http, near};

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
    /// 25 s, for a server that needs ten for each of two requests, and a minute.
    fn default() -> Self {
        Self { look: Duration::from_secs(25), place: Duration::from_secs(60) }
    }
}

/// All git hosts, of which refs are read.
pub struct GitHeads(Arc<Shared>);

struct Shared {
    http: Arc<dyn Http>,
    secrets: Arc<dyn Secrets>,
    keeper: Arc<Keeper>,
    apps: Apps,
    patience: Patience,
    /// URLs whose server speaks v2.
    known: Mutex<BTreeSet<String>>,
}

impl GitHeads {
    /// Hosts that can be reached by `http`, which judges whom we may talk to.
    pub fn new(http: Arc<dyn Http>, secrets: Arc<dyn Secrets>, keeper: Arc<Keeper>, patience: Patience) -> Self {
        let apps = Apps::new(keeper.clock(), Rights::Read);
        Self(Arc::new(Shared { http, secrets, keeper, apps, patience, known: Mutex::default() }))
    }
}

#[async_trait]
impl Heads for GitHeads {
    fn troubles(&self) -> Vec<String> {
        self.0.keeper.troubles()
    }

    async fn resolve(&self, repo: &RepoId, spec: &Spec, begins: &Begins<'_>) -> Result<Found, Unresolved> {
        match Question::of(&spec.source.wanted)? {
            Asked::Remote(question) => self.look(repo, &spec.source, question, begins).await,
            Asked::Nothing(found) => Ok(found),
        }
    }

    async fn compare(&self, repo: &RepoId, question: &Comparison) -> Result<bool, Unresolved> {
        let id = |commit: &CommitId| {
            commit.as_str().parse().map_err(|_not_an_id| lasting(format!("{commit} is no commit's id")))
        };
        let asked = Folders { base: id(&question.base)?, head: id(&question.head)?, paths: question.paths() };
        self.look(repo, &question.source, asked, &|| ()).await
    }
}

/// What is asked of a repository by one look.
#[async_trait]
trait Asking: Send + Sync + 'static {
    type Answer: Send + 'static;

    const PURPOSE: Purpose;
    const BOUNDS: Bounds;
    /// The words of a failure, before the URL.
    const ATTEMPT: &'static str;

    async fn answer(&self, remote: &Remote) -> Result<Self::Answer, Unresolved>;
}

impl GitHeads {
    /// Asks when it is its turn.
    async fn look<A: Asking>(
        &self,
        repo: &RepoId,
        source: &Source,
        question: A,
        begins: &Begins<'_>,
    ) -> Result<A::Answer, Unresolved> {
        let host = Remote::host(&source.url).map_err(unresolved)?;
        let shared = &self.0;
        let keys = match &source.secret {
            Some(name) => keys(&*shared.secrets, &repo.namespace, name, &source.url).await?,
            None => GitKeys::default(),
        };
        let proof = Some((&keys.credentials, &keys.app, &keys.ssh));
        let proof = proof.filter(|(known, app, ssh)| known.is_some() || app.is_some() || ssh.is_some());
        let key = shared.keeper.key(&repo.namespace, proof);
        let errand = Errand {
            purpose: A::PURPOSE,
            namespace: repo.namespace.clone(),
            subject: repo.to_string(),
            whom: Whom { host: host.clone(), repository: source.url.clone(), key },
        };
        let turn = shared.keeper.turn(errand, shared.patience.place).await.map_err(|none| match none {
            NoTurn::Rests(resting) => rests(resting),
            NoTurn::Busy(why) => {
                let most = shared.patience.place.as_secs();
                let why = format!("there was no place for a look at {host} within {most} s: {why}");
                Unresolved { busy: true, ..passing(why) }
            }
        })?;
        begins();
        let look = Look { shared: Arc::clone(shared), turn, url: source.url.clone(), keys, question };
        let runtime = Handle::current();
        let work = tokio::task::spawn_blocking(move || runtime.block_on(look.make()));
        work.await.unwrap_or_else(|_| Err(passing("the look broke off; the log says where".to_owned())))
    }
}

/// One look, with all that it needs. It goes on to its end though the one who wanted it may be gone.
struct Look<A> {
    shared: Arc<Shared>,
    turn: Turn,
    url: String,
    keys: GitKeys,
    question: A,
}

impl<A: Asking> Look<A> {
    async fn make(self) -> Result<A::Answer, Unresolved> {
        let Self { shared, turn, url, keys, question } = self;
        let witness = Witness::of(&shared.http);
        let http = Arc::clone(&witness) as Arc<dyn Http>;
        let look = async {
            let keys = keys.clone().opened(&shared.apps, Arc::clone(&http), &url).await.map_err(unresolved)?;
            let remote = keys.remote(http, &url).map_err(unresolved)?.bounded(A::BOUNDS);
            // Of a server that is known to speak v2 it is not known what else it can do.
            let is_known = A::PURPOSE == Purpose::Look && shared.known().contains(&url);
            let remote = if is_known { remote.speaking_v2() } else { remote };
            let answer = question.answer(&remote).await;
            shared.remember(&url, remote.speaks_v2());
            answer
        };
        let (answer, outcome) = match timeout(shared.patience.look, look).await {
            Ok(answer) => (answer, witness.outcome()),
            Err(_elapsed) => {
                let why = format!("no whole answer within {} s", shared.patience.look.as_secs_f32());
                let said = format!("{} {url}: {why}", A::ATTEMPT);
                (Err(passing(said)), Outcome::Fails(why, None))
            }
        };
        // Those who share what rests say the same of it, whichever of them found that out. Words that change from look to look would
        // be written to the API server each time.
        if answer.as_ref().is_err_and(|unresolved| unresolved.lasting) {
            keys.forget(&shared.apps, &url);
        }
        let is_shared = matches!(outcome, Outcome::Unreachable(_) | Outcome::AsksForRest(..));
        let resting = turn.ended(answer.is_ok(), outcome);
        witness.spare().into_iter().for_each(|rest| turn.spare(rest));
        answer.map_err(|unresolved| match resting {
            Some(resting) if is_shared && !unresolved.lasting => rests(resting),
            Some(resting) if !unresolved.lasting => Unresolved { rest: resting.left, ..unresolved },
            Some(_) | None => unresolved,
        })
    }
}

impl Shared {
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

/// Bounds of a comparison, far below those of a promotion: where a server sends all folders or files of both commits, they are held in
/// memory. Of most repositories that is enough.
const COMPARED: Bounds = Bounds {
    refs_bytes: 4 << 20,
    pack_bytes: 8 << 20,
    unpacked_bytes: 32 << 20,
    object_bytes: 32 << 20,
    objects: 100_000,
    entries: 400_000,
};

/// Two commits, and the paths in which they may differ.
struct Folders {
    base: Oid,
    head: Oid,
    paths: Vec<String>,
}

#[async_trait]
impl Asking for Folders {
    type Answer = bool;

    const PURPOSE: Purpose = Purpose::Comparison;
    const BOUNDS: Bounds = COMPARED;
    const ATTEMPT: &'static str = "failed to compare two commits of";

    async fn answer(&self, remote: &Remote) -> Result<bool, Unresolved> {
        let Self { base, head, paths } = self;
        remote.alike(*base, *head, paths).await.map_err(unresolved)
    }
}

#[async_trait]
impl Asking for Question {
    type Answer = Found;

    const PURPOSE: Purpose = Purpose::Look;
    const BOUNDS: Bounds = Bounds::PROMOTION;
    const ATTEMPT: &'static str = "failed to read the refs of";

    async fn answer(&self, remote: &Remote) -> Result<Found, Unresolved> {
        self.asked(remote).await
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
    fn of(wanted: &Wanted) -> Result<Asked, Unresolved> {
        let name = match wanted {
            Wanted::Commit(revision) => {
                return Ok(Asked::Nothing(Found { revision: revision.clone(), name: revision.to_string() }));
            }
            Wanted::Head => "HEAD".to_owned(),
            Wanted::Branch(name) => format!("refs/heads/{name}"),
            Wanted::Tag(name) => format!("refs/tags/{name}"),
        };
        match is_name(&name) {
            true => Ok(Asked::Remote(Self { name, wanted: wanted.clone() })),
            false => Err(lasting(format!("{} cannot be the name of a ref", visible(&wanted.to_string())))),
        }
    }

    async fn asked(&self, remote: &Remote) -> Result<Found, Unresolved> {
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
        Ok(Found { revision: CommitId::from(*commit.as_bytes()), name: symbolic.unwrap_or(&self.name).clone() })
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
    let secret = secrets.read(namespace, name, destination::Purpose::sent_to(url)).await.map_err(unresolved)?;
    GitKeys::of(&secret, url).map_err(|why| lasting(format!("failed to use Secret {namespace}/{name}: {why}")))
}

fn rests(Resting { what, why, left }: Resting) -> Unresolved {
    Unresolved { rest: left, ..passing(format!("{what} is left alone for a while: {why}")) }
}

fn unresolved(error: PortError) -> Unresolved {
    match error.retry {
        Retry::Never => lasting(error.to_string()),
        Retry::Later => passing(error.to_string()),
        Retry::After(rest) => Unresolved { rest, ..passing(error.to_string()) },
    }
}

fn lasting(why: String) -> Unresolved {
    Unresolved { lasting: true, ..passing(why) }
}

fn passing(why: String) -> Unresolved {
    Unresolved { why, lasting: false, busy: false, rest: Duration::ZERO }
}
