//! A promotion as a pull request: git, markers and a forge together.
//!
//! ```text
//! Secret ─▶ refs ─▶ requests ─▶ base and tip ─▶ files ─▶ markers ─▶ push (old → new) ─▶ open, or rewrite, the request
//!                      │             │                      └─ same as base: NothingToChange
//!                      │             └─ tip of a higher seq: Outdated; of a stranger: Foreign
//!                      └─ ended, with this promotion's id: Closed or Merged
//! ```
//!
//! Each step may be the last one of this life and the first one of the next:
//!
//! - Nothing is written before the push, and the push is its own lease.
//! - The same order makes the same commit on the same base, so a second push finds its branch as it should be.
//! - A request is known by its branch and by the promotion's id in its body, in all states, never by its number alone; an open one of an earlier promotion of this branch is
//!   rewritten, for no forge has two open ones from one branch.
//! - A refusal to create is never believed: the requests are read again.
//!
//! A call is made on a thread of the blocking pool: packs, trees and YAML take milliseconds to seconds, and an actor's thread has none
//! of them to spare.
//!
//! Not for when something is proposed (`objects::pipeline`), nor for whose turn it is (`keeper`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use kernel::names::destination;
use kernel::names::ssh_url::web_of;
use kernel::text;
use objects::pipeline::marker;
use objects::pipeline::options::{self, Lacks};
use objects::pipeline::proposal::{ForgeKind, Order, Proposed, Request, RequestState};
use objects::ports::Secrets;
use objects::ports::pipeline::Forge;
use purge::ports::{PortError, Retry};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::app::{Apps, Rights};
use crate::bitbucket_cloud::BitbucketCloud;
use crate::bitbucket_server::BitbucketServer;
use crate::edits::Edits;
use crate::git::{Commit, Draft, File, Objects, Oid, Remote, last_word};
use crate::gitea::Gitea;
use crate::github::GitHub;
use crate::gitlab::GitLab;
use crate::keeper::{Errand, Keeper, NoTurn, Purpose};
use crate::keys::{Content, Keys};
use crate::place::Place;
use crate::requests::{Branches, Found, Requests};
use crate::rest::{self, Api};
use crate::rests::{Outcome, Whom};
use crate::session::{Session, attempted, ended};
use crate::witness::Witness;
use crate::{Http, words};

/// Longest time of one call. A promotion in a repository of 2,000 files takes less than a second and eight exchanges.
const CALL_MAX: Duration = Duration::from_secs(120);

/// Longest wait for other promotions.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// Files with markers in one repository.
const MARKED_FILES_MAX: usize = 1_000;

/// Contents without a marker that are remembered, by id: 20 bytes each, as many as a repository may have files.
const PLAIN_MAX: usize = 200_000;

/// Pull requests whose state is cached with its ETag; more than there are environments.
const SEEN_MAX: usize = 10_000;

/// How far the clocks of a forge and of this cluster may be apart, in seconds.
const SKEW: i64 = 86_400;

/// Longest reason that is said in a request, in bytes.
const WHY_BYTES_MAX: usize = 500;

/// All git hosts and forges.
pub struct Forges(Arc<Shared>);

struct Shared {
    http: Arc<dyn Http>,
    secrets: Arc<dyn Secrets>,
    keeper: Arc<Keeper>,
    apps: Apps,
    /// Contents of files, without any marker. They never change.
    plain: Mutex<BTreeSet<Oid>>,
    /// The states that were looked at, by the request's place in its API, each with its mark.
    seen: Mutex<BTreeMap<String, (String, RequestState)>>,
    /// The base and the branch that were last found to fit each other, by the branch's place.
    kept: Mutex<BTreeMap<String, (Oid, Oid)>>,
}

/// The branch of an open request, after a look at it and its base.
enum Kept {
    /// Its head, if it is there.
    AsItWas(Option<Oid>),
    /// It was made anew, and this is its head. Whether its forge was to merge it before, and forgets that.
    Anew(Oid, bool),
    /// Why it could not be.
    Held(String),
}

impl Forges {
    /// All of them, behind this way out, with these Secrets.
    pub fn new(http: Arc<dyn Http>, secrets: Arc<dyn Secrets>, keeper: Arc<Keeper>) -> Self {
        let (plain, seen, kept) = (Mutex::default(), Mutex::default(), Mutex::default());
        let apps = Apps::new(keeper.clock(), Rights::All);
        Self(Arc::new(Shared { http, secrets, keeper, apps, plain, seen, kept }))
    }

    /// Does a call when it is its turn, within its time, and elsewhere.
    async fn paced<T, F>(
        &self,
        order: &Order,
        call: impl FnOnce(Arc<Shared>, Session, Order) -> F + Send + 'static,
    ) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, PortError>> + Send + 'static,
    {
        let Self(shared) = self;
        let (place, content) = shared.opened(order).await?;
        let key = shared.keeper.key(&order.pipeline.namespace, Some((&content.proof, &content.ssh)));
        let errand = Errand {
            purpose: Purpose::Promotion,
            namespace: order.pipeline.namespace.clone(),
            subject: order.id.clone(),
            whom: Whom { host: place.host.clone(), repository: place.to_string(), key },
        };
        let attempted = attempted(order);
        let turn = shared.keeper.turn(errand, WAIT_MAX).await.map_err(|none| no_turn(&attempted, none))?;
        // The turn is one at the forge's API, which over SSH is another place than the repository.
        let witness = Witness::of_api(&shared.http);
        let (shared, order, runtime) = (Arc::clone(shared), order.clone(), Handle::current());
        let broke_off = PortError::passing(attempted.clone(), "the work broke off; the log says where");
        // It holds its place until it ends, even if no caller waits for it any more.
        let work = tokio::task::spawn_blocking(move || {
            let url = order.repository.url.clone();
            let whole = async {
                let http = Arc::clone(&witness) as Arc<dyn Http>;
                let keys = content.keys(&shared.apps, Arc::clone(&http), &url).await?;
                let session = session(http, &order, &place, keys)?;
                call(Arc::clone(&shared), session, order).await
            };
            let (result, outcome) = match runtime.block_on(timeout(CALL_MAX, whole)) {
                Ok(result) => {
                    let outcome = outcome(&result, witness.outcome());
                    (result, outcome)
                }
                Err(_elapsed) => {
                    let why = format!("git host and forge together took longer than {} s", CALL_MAX.as_secs());
                    (Err(PortError::passing(attempted, why.clone())), Outcome::Fails(why, None))
                }
            };
            // A look goes on though git refuses the token.
            let is_refused = matches!(witness.outcome(), Outcome::Unauthorized(_));
            if is_refused || result.as_ref().is_err_and(|error| error.retry == Retry::Never) {
                content.forget(&shared.apps, &url);
            }
            turn.ended(result.is_ok(), outcome);
            witness.spare().into_iter().for_each(|rest| turn.spare(rest));
            result
        });
        work.await.unwrap_or(Err(broke_off))
    }
}

/// What a call says of its host: what its last exchange does; or that the repository fails, where it was answered and there is still
/// nothing that a person could mend.
pub(crate) fn outcome<T>(result: &Result<T, PortError>, seen: Outcome) -> Outcome {
    match (result, seen) {
        (Ok(_), _) => Outcome::Answers,
        (Err(error), Outcome::Answers) if error.retry == Retry::Later => Outcome::Fails(error.cause.clone(), None),
        (Err(_), seen) => seen,
    }
}

fn no_turn(attempted: &str, none: NoTurn) -> PortError {
    match none {
        NoTurn::Rests(resting) => {
            let left = resting.left.as_millis().div_ceil(1000);
            let why = format!("{} is left alone for {left} s more: {}", resting.what, resting.why);
            PortError { retry: Retry::After(resting.left), ..PortError::passing(attempted, why) }
        }
        NoTurn::Busy(why) => {
            PortError::passing(attempted, format!("there was no place for it within {} s: {why}", WAIT_MAX.as_secs()))
        }
    }
}

fn session(http: Arc<dyn Http>, order: &Order, place: &Place, keys: Keys) -> Result<Session, PortError> {
    let (kind, url) = (order.repository.forge, &order.repository.url);
    let remote = match &keys.ssh {
        Some(ssh) => Remote::over_ssh(Arc::clone(&http), url, ssh.clone())?,
        None => Remote::new(Arc::clone(&http), url, Some(&keys.git), keys.authorities.clone())?,
    };
    let signer = keys.signer.clone();
    let requests = requests(http, kind, place, keys)?;
    let base = order.repository.base.clone();
    let branches = Branches { head: order.branch(), base, since: order.started_at.saturating_sub(SKEW) };
    if branches.head == branches.base {
        return Err(PortError::lasting(attempted(order), "the base branch is the branch of this promotion"));
    }
    Ok(Session { remote, requests, api: place.api(kind), branches, signer })
}

fn requests(http: Arc<dyn Http>, kind: ForgeKind, place: &Place, keys: Keys) -> Result<Box<dyn Requests>, PortError> {
    let api = api(http, kind, place, &keys)?;
    let graph = || Api { root: place.graph(), ..api.clone() };
    let (owner, name) = (place.owner.clone(), place.name.clone());
    Ok(match kind {
        ForgeKind::GitHub => Box::new(GitHub { graph: graph(), api, owner }),
        ForgeKind::GitLab => Box::new(GitLab { api }),
        ForgeKind::BitbucketServer => Box::new(BitbucketServer { api, owner, name }),
        ForgeKind::BitbucketCloud => Box::new(BitbucketCloud { api }),
        ForgeKind::Gitea => Box::new(Gitea { api }),
    })
}

/// A repository in the API of its forge, with the token of these keys.
pub(crate) fn api(http: Arc<dyn Http>, kind: ForgeKind, place: &Place, keys: &Keys) -> Result<Api, PortError> {
    let (scheme, accept) = match kind {
        ForgeKind::GitHub => ("Bearer", "application/vnd.github+json"),
        ForgeKind::Gitea => ("token", "application/json"),
        ForgeKind::GitLab | ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => ("Bearer", "application/json"),
    };
    let (authorization, secret) = keys.api.authorization(scheme);
    Ok(Api {
        http,
        root: place.api(kind),
        name: place.to_string(),
        headers: rest::headers(&authorization, accept)?,
        secrets: [secret, last_word(&authorization)].map(str::to_owned).into(),
        authorities: keys.authorities.clone(),
    })
}

impl Shared {
    /// Where an order's repository is, and what opens it.
    async fn opened(&self, order: &Order) -> Result<(Place, Content), PortError> {
        let url = &order.repository.url;
        let place = Place::of(order.repository.forge, url)?;
        let name = order.repository.secret.as_deref().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| {
            let why = "no Secret is named: set secretRef to one with username, password and token";
            PortError::lasting(format!("failed to use {place}"), why)
        })?;
        // The forge's API is on the same host, but for those of GitHub and Bitbucket Cloud, which are their own. SSH is a place of its own.
        let namespace = &order.pipeline.namespace;
        let secret = self.secrets.read(namespace, name, destination::Purpose::sent_to(url)).await?;
        let api = web_of(url);
        if api != *url {
            self.secrets.read(namespace, name, destination::Purpose::sent_to(&api)).await?;
        }
        Ok((place, Content::of(&secret, order)?))
    }

    async fn proposed(&self, session: &Session, order: &Order) -> Result<Proposed, PortError> {
        let Branches { head, base, .. } = &session.branches;
        let names = [base, head].map(|branch| format!("refs/heads/{branch}"));
        let refs = session.remote.refs(&names.each_ref().map(String::as_str)).await?;
        let base = refs.branch(base).ok_or_else(|| {
            PortError::lasting(attempted(order), format!("the repository has no branch {base}; set baseBranch to one"))
        })?;
        let tip = refs.branch(head);
        let found = session.requests.list(&session.branches).await?;
        if let Some(ended) = ended(order, &found) {
            return Ok(ended);
        }
        let mut objects = session.remote.fetch(&[Some(base), tip].into_iter().flatten().collect()).await?;
        if let Some(tip) = tip.filter(|tip| *tip != base)
            && let Some(in_the_way) = in_the_way(session, order, tip, &objects.commit(tip)?, &found)
        {
            return Ok(in_the_way);
        }
        let edits = self.edits(order, session, &mut objects, base).await?;
        let Some(commit) = session.pushed(order, &objects, base, tip, &edits.changes).await? else {
            return Ok(Proposed::NothingToChange);
        };
        let set: Vec<&str> = edits.changes.keys().map(String::as_str).collect();
        let words = words::request(order, &set, &edits.left);
        Ok(match session.opened(order, found, &words, commit).await? {
            // It is open, whatever becomes of that; it is tried again at the next look.
            Proposed::Open(request) => {
                let lacks = session.finish(&order.options, request.number, &commit.to_string()).await;
                Proposed::Open(Request { lacks, ..request })
            }
            ended => ended,
        })
    }

    async fn looked(&self, session: &Session, order: &Order, number: u64) -> Result<RequestState, PortError> {
        let state = self.state(session, order, number).await?;
        if state != RequestState::Open {
            return Ok(state);
        }
        // It is open, whatever becomes of that; what passes by itself is tried again at the next look.
        Ok(match self.kept(session, order, number).await {
            Ok(Kept::Held(why)) => RequestState::Held(why),
            Ok(Kept::Anew(tip, was_to_merge)) => {
                // GitLab forgets with a new commit that it was to merge. Where a person took that back, it stays so.
                let mut lacks = order.lacks.clone();
                lacks.extend(was_to_merge.then(|| (options::AUTO_MERGE.to_owned(), String::new())));
                finished(session, order, number, &lacks, tip).await
            }
            Ok(Kept::AsItWas(Some(tip))) => finished(session, order, number, &order.lacks, tip).await,
            Ok(Kept::AsItWas(None)) => RequestState::Open,
            Err(error) if error.retry == Retry::Never => RequestState::Held(error.cause),
            Err(_) => RequestState::Open,
        })
    }

    /// How the request of this number stands, if it is this promotion's; else this promotion's own.
    async fn state(&self, session: &Session, order: &Order, number: u64) -> Result<RequestState, PortError> {
        let key = format!("{}#{number}", session.api);
        let known = lock(&self.seen).get(&key).cloned();
        match session.requests.look(number, known.as_ref().map(|(etag, _)| etag.as_str())).await {
            Ok(None) => known.map(|(_, state)| state).ok_or_else(|| {
                PortError::passing(attempted(order), "the forge says that nothing changed, and was not asked that")
            }),
            Ok(Some(now)) if now.value.is_of(order, &session.branches) => {
                let mut seen = lock(&self.seen);
                if seen.len() >= SEEN_MAX {
                    seen.clear();
                }
                seen.remove(&key);
                seen.extend(now.etag.map(|etag| (key, (etag, now.value.state.clone()))));
                Ok(now.value.state)
            }
            // A token that was taken away looks as if it were gone: the list tells them apart. The number may be another one's.
            looked => {
                looked.map(|_strangers| ()).or_else(|failed| match failed.status {
                    Some(StatusCode::NOT_FOUND) => Ok(()),
                    Some(_) | None => Err(failed.error),
                })?;
                let listed = session.requests.list(&session.branches).await?;
                let own = listed.into_iter().find(|found| found.promotion() == Some(&order.id));
                Ok(own.map_or(RequestState::Closed, |own| own.state))
            }
        }
    }

    /// Makes an open request anew where what it sets has changed on its base, so that it can be merged. Only while the branch holds our
    /// own commits alone: else it says why it is as it is.
    async fn kept(&self, session: &Session, order: &Order, number: u64) -> Result<Kept, PortError> {
        let Branches { head, base, .. } = &session.branches;
        let names = [base, head].map(|branch| format!("refs/heads/{branch}"));
        let refs = session.remote.refs(&names.each_ref().map(String::as_str)).await?;
        let (Some(base), Some(was)) = (refs.branch(base), refs.branch(head)) else { return Ok(Kept::AsItWas(None)) };
        let place = format!("{} {head}", session.api);
        if lock(&self.kept).get(&place) == Some(&(base, was)) {
            return Ok(Kept::AsItWas(Some(was)));
        }
        let mut tip = was;
        let mut objects = session.remote.fetch(&[base, tip].into()).await?;
        let commit = objects.commit(tip)?;
        let edits = self.edits(order, session, &mut objects, base).await?;
        let (author, at) = (words::AUTHOR, order.started_at);
        let draft = Draft { base: tip, parent: tip, author, at, message: "", signer: None };
        let (mut stale, mut was_to_merge) = (Vec::new(), false);
        for (path, content) in &edits.changes {
            if objects.build(&draft, &[(path.clone(), content.clone())].into())?.is_some() {
                stale.push(path.as_str());
            }
        }
        match session.ours(order, &commit) {
            _ if stale.is_empty() => {}
            Some(trailers) if trailers.id == order.id => {
                was_to_merge = order.options.auto_merge.is_some() && session.requests.forgets_to_merge(number).await?;
                let pushed = session.pushed(order, &objects, base, Some(tip), &edits.changes).await?;
                tip = pushed.unwrap_or(tip);
            }
            Some(_) => {}
            None => return Ok(Kept::Held(words::held(order, &tip.to_string(), &commit, &stale))),
        }
        let mut kept = lock(&self.kept);
        if kept.len() >= SEEN_MAX {
            kept.clear();
        }
        kept.insert(place, (base, tip));
        Ok(if tip == was { Kept::AsItWas(Some(tip)) } else { Kept::Anew(tip, was_to_merge) })
    }

    /// Sets the markers of all files below the order's folder.
    async fn edits(
        &self,
        order: &Order,
        session: &Session,
        objects: &mut Objects,
        base: Oid,
    ) -> Result<Edits, PortError> {
        let mut files = objects.files(base, order.repository.path.as_deref())?;
        files.retain(|file| file.path.ends_with(".yaml") || file.path.ends_with(".yml"));
        {
            let plain = lock(&self.plain);
            files.retain(|file| !plain.contains(&file.id));
        }
        let wanted = files.iter().map(|file| file.id).collect();
        session.remote.load(objects, base, &wanted).await?;
        let (marked, plain): (Vec<&File>, Vec<&File>) =
            files.iter().partition(|file| objects.content(file.id).is_none_or(marker::may_have_markers));
        remember(&mut lock(&self.plain), plain.into_iter().map(|file| file.id));
        if marked.len() > MARKED_FILES_MAX {
            let why =
                format!("{} files have markers, more than {MARKED_FILES_MAX}; set path to a folder", marked.len());
            return Err(PortError::lasting(attempted(order), why));
        }
        let mut edits = Edits::default();
        for file in marked {
            edits.add(order, file, objects.content(file.id))?;
        }
        let marked = order.marked();
        if marked.is_empty() {
            let why = format!("{} is no set of {}", order.revision, order.apps.join(" and "));
            return Err(PortError::lasting(attempted(order), why));
        }
        if let Some((name, _)) = marked.iter().find(|(name, _)| !edits.marked.contains(name)) {
            return Err(PortError::lasting(attempted(order), words::no_marker(order, name, &edits.left)));
        }
        Ok(edits)
    }
}

#[async_trait]
impl Forge for Forges {
    async fn propose(&self, order: &Order) -> Result<Proposed, PortError> {
        self.paced(order, |shared, session, order| async move { shared.proposed(&session, &order).await }).await
    }

    async fn look(&self, order: &Order, number: u64) -> Result<RequestState, PortError> {
        self.paced(order, move |shared, session, order| async move { shared.looked(&session, &order, number).await })
            .await
    }

    async fn withdraw(&self, order: &Order, number: Option<u64>, why: &str) -> Result<(), PortError> {
        let why = text::clean(why, WHY_BYTES_MAX);
        let withdraw = move |_shared, session: Session, order: Order| async move {
            for open in session.open_ones(&order, number).await? {
                session.requests.comment(open.number, &why).await?;
                session.requests.close(open.number).await?;
            }
            session.remove_branch(&order).await
        };
        self.paced(order, withdraw).await
    }
}

/// Tries again what an open request lacks. Where that is nothing, nothing is done.
async fn finished(session: &Session, order: &Order, number: u64, lacks: &Lacks, tip: Oid) -> RequestState {
    if lacks.is_empty() {
        return RequestState::Open;
    }
    RequestState::Lacks(session.finish(&order.options.lacking(lacks), number, &tip.to_string()).await)
}

/// Why the branch may not be replaced.
fn in_the_way(session: &Session, order: &Order, tip: Oid, commit: &Commit, found: &[Found]) -> Option<Proposed> {
    let id = tip.to_string();
    let is_merged = |found: &Found| found.state == RequestState::Merged && found.is_at(&id);
    match session.ours(order, commit) {
        Some(trailers) if trailers.seq > order.seq => Some(Proposed::Outdated(trailers.seq)),
        Some(_) => None,
        // Nothing is lost: it is in the base.
        None if order.overwrite || found.iter().any(is_merged) => None,
        None => Some(Proposed::Foreign(words::stranger(&id, &commit.author, &commit.message))),
    }
}

fn remember(plain: &mut BTreeSet<Oid>, more: impl Iterator<Item = Oid>) {
    if plain.len() >= PLAIN_MAX {
        plain.clear();
    }
    plain.extend(more.take(PLAIN_MAX));
}

/// A panic while it was held cannot leave either memory half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
