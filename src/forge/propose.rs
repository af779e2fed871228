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
//! - A request is known by the promotion's id in its body, in all states; an open one of an earlier promotion of this branch is
//!   rewritten, for no forge has two open ones from one branch.
//! - A refusal to create is never believed: the requests are read again.
//!
//! Not for when something is proposed (`domain::pipeline`), nor for how often (`pace`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::pipeline::marker::{self, Refused};
use domain::pipeline::proposal::{ForgeKind, Order, Proposed, RequestState};
use domain::ports::PortError;
use domain::ports::pipeline::{Forge, Secrets};
use domain::text;
use http::StatusCode;

use crate::Http;
use crate::bitbucket_server::BitbucketServer;
use crate::git::{Commit, Draft, File, Objects, Oid, Pushed, Remote};
use crate::gitea::Gitea;
use crate::github::GitHub;
use crate::gitlab::GitLab;
use crate::keys::Keys;
use crate::place::Place;
use crate::requests::{Branches, Found, Requests, Words};
use crate::rest::{self, Api};
use crate::words::{self, Trailers};

/// Longest time of one call. A promotion in a repository of 2,000 files takes less than a second and eight exchanges.
const CALL_MAX: Duration = Duration::from_secs(120);

/// Files with markers in one repository.
const MARKED_FILES_MAX: usize = 1_000;

/// Contents without a marker that are remembered, by id: 20 bytes each, as many as a repository may have files.
const PLAIN_MAX: usize = 200_000;

/// Requests of which the state is remembered with its mark; more than there are environments.
const SEEN_MAX: usize = 10_000;

/// How far the clocks of a forge and of this cluster may be apart, in seconds.
const SKEW: i64 = 86_400;

/// Longest reason that is said in a request, in bytes.
const WHY_BYTES_MAX: usize = 500;

/// All git hosts and forges.
pub struct Forges {
    http: Arc<dyn Http>,
    secrets: Arc<dyn Secrets>,
    /// Contents of files, without any marker. They never change.
    plain: Mutex<BTreeSet<Oid>>,
    /// The states that were looked at, by the request's place in its API, each with its mark.
    seen: Mutex<BTreeMap<String, (String, RequestState)>>,
}

/// One repository, opened.
struct Session {
    remote: Remote,
    requests: Box<dyn Requests>,
    /// Its address in the API.
    api: String,
    branches: Branches,
}

/// What an order changes in its base.
#[derive(Default)]
struct Edits {
    changes: BTreeMap<String, Bytes>,
    /// Files that may have markers and cannot be read, with the reason.
    left: Vec<String>,
    /// Markers that were found.
    markers: usize,
}

impl Forges {
    /// All of them, behind this way out, with these Secrets.
    pub fn new(http: Arc<dyn Http>, secrets: Arc<dyn Secrets>) -> Self {
        Self { http, secrets, plain: Mutex::default(), seen: Mutex::default() }
    }

    async fn session(&self, order: &Order) -> Result<Session, PortError> {
        let kind = order.repository.forge;
        let place = Place::of(kind, &order.repository.url)?;
        let name = order.repository.secret.as_deref().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| {
            let why = "no Secret is named: set secretRef to one with username, password and token";
            PortError::lasting(format!("failed to use {place}"), why)
        })?;
        let keys = Keys::of(&self.secrets.read(&order.pipeline.namespace, name).await?, order)?;
        let url = &order.repository.url;
        let remote = Remote::new(Arc::clone(&self.http), url, Some(&keys.git), keys.authorities.clone())?;
        let api = place.api(kind);
        let requests = self.requests(kind, &place, keys)?;
        let base = order.repository.base.clone();
        let branches = Branches { head: words::branch(order), base, since: order.started_at.saturating_sub(SKEW) };
        if branches.head == branches.base {
            return Err(PortError::lasting(attempted(order), "the base branch is the branch of this promotion"));
        }
        Ok(Session { remote, requests, api, branches })
    }

    fn requests(&self, kind: ForgeKind, place: &Place, keys: Keys) -> Result<Box<dyn Requests>, PortError> {
        let (scheme, accept) = match kind {
            ForgeKind::GitHub => ("Bearer", "application/vnd.github+json"),
            ForgeKind::Gitea => ("token", "application/json"),
            ForgeKind::GitLab | ForgeKind::BitbucketServer => ("Bearer", "application/json"),
        };
        let api = Api {
            http: Arc::clone(&self.http),
            root: place.api(kind),
            name: place.to_string(),
            headers: rest::headers(&format!("{scheme} {}", keys.token), accept)?,
            secret: keys.token,
            authorities: keys.authorities,
        };
        let (owner, name) = (place.owner.clone(), place.name.clone());
        Ok(match kind {
            ForgeKind::GitHub => Box::new(GitHub { api, owner }),
            ForgeKind::GitLab => Box::new(GitLab { api }),
            ForgeKind::BitbucketServer => Box::new(BitbucketServer { api, owner, name }),
            ForgeKind::Gitea => Box::new(Gitea { api }),
        })
    }

    async fn proposed(&self, order: &Order) -> Result<Proposed, PortError> {
        let session = self.session(order).await?;
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
            && let Some(in_the_way) = in_the_way(order, tip, &objects.commit(tip)?, &found)
        {
            return Ok(in_the_way);
        }
        let edits = self.edits(order, &session, &mut objects, base).await?;
        let Some(commit) = session.pushed(order, &objects, base, tip, &edits.changes).await? else {
            return Ok(Proposed::NothingToChange);
        };
        let set: Vec<&str> = edits.changes.keys().map(String::as_str).collect();
        session.opened(order, found, &words::request(order, &set, &edits.left), commit).await
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
        if edits.markers == 0 {
            return Err(PortError::lasting(attempted(order), words::no_marker(order, &edits.left)));
        }
        Ok(edits)
    }
}

impl Edits {
    fn add(&mut self, order: &Order, file: &File, content: Option<&[u8]>) -> Result<(), PortError> {
        let path = &file.path;
        let content =
            content.ok_or_else(|| PortError::passing(attempted(order), format!("the server did not send {path}")))?;
        let edited = match std::str::from_utf8(content) {
            Ok(text) => marker::edit(text, &order.pipeline, &order.environment, &order.revision),
            Err(_not_text) => Err(Refused::Unreadable { line: 1, reason: "it is no UTF-8".to_owned() }),
        };
        match edited {
            Ok(edited) => {
                self.markers += edited.markers;
                if edited.text.as_bytes() != content {
                    self.changes.insert(path.clone(), edited.text.into());
                }
                Ok(())
            }
            Err(refused @ Refused::Unreadable { .. }) => {
                self.left.push(format!("{path}, {refused}"));
                Ok(())
            }
            Err(refused @ Refused::Marker { .. }) => {
                Err(PortError::lasting(attempted(order), format!("the marker in {path}, {refused}")))
            }
        }
    }
}

impl Session {
    /// Makes the commit and sets the branch to it; `None` if there is nothing to change.
    async fn pushed(
        &self,
        order: &Order,
        objects: &Objects,
        base: Oid,
        tip: Option<Oid>,
        changes: &BTreeMap<String, Bytes>,
    ) -> Result<Option<Oid>, PortError> {
        let message = words::message(order);
        let draft = Draft { base, parent: base, author: words::AUTHOR, at: order.started_at, message: &message };
        let Some(built) = objects.build(&draft, changes)? else { return Ok(None) };
        let moved = || PortError::passing(attempted(order), "the branch moved meanwhile");
        let head = &self.branches.head;
        match (self.remote.push(head, tip, Some(&built)).await?, tip) {
            (Pushed::Done, _) => Ok(Some(built.id)),
            (Pushed::ForwardOnly, Some(tip)) => {
                // What is asked for is on the branch already, perhaps on an older base.
                if objects.build(&Draft { base: tip, parent: tip, ..draft.clone() }, changes)?.is_none() {
                    return Ok(Some(tip));
                }
                let Some(on_top) = objects.build(&Draft { parent: tip, ..draft }, changes)? else { return Ok(None) };
                match self.remote.push(head, Some(tip), Some(&on_top)).await? {
                    Pushed::Done => Ok(Some(on_top.id)),
                    Pushed::Moved(_) | Pushed::ForwardOnly => Err(moved()),
                }
            }
            (Pushed::Moved(_) | Pushed::ForwardOnly, _) => Err(moved()),
        }
    }

    /// Makes sure that there is one open request, and that it says what it should.
    async fn opened(
        &self,
        order: &Order,
        found: Vec<Found>,
        words: &Words,
        commit: Oid,
    ) -> Result<Proposed, PortError> {
        let found = match open_one(order, found) {
            Some(open) => self.rewritten(open, words).await?,
            None => match self.requests.create(&self.branches, words).await {
                Ok(made) => made,
                Err(refused) if refused.status.is_some_and(may_be_there_already) => {
                    let found = self.requests.list(&self.branches).await?;
                    if let Some(ended) = ended(order, &found) {
                        return Ok(ended);
                    }
                    let open = open_one(order, found).ok_or(refused.error)?;
                    self.rewritten(open, words).await?
                }
                Err(failed) => return Err(failed.error),
            },
        };
        let found = Found { commit: Some(commit.to_string()), ..found };
        Ok(Proposed::Open(found.into_request()))
    }

    async fn rewritten(&self, open: Found, words: &Words) -> Result<Found, PortError> {
        // Forges may trim texts, and change their line ends.
        let same =
            |one: &str, other: &str| one.trim().lines().map(str::trim_end).eq(other.trim().lines().map(str::trim_end));
        if same(&open.words.title, &words.title) && same(&open.words.body, &words.body) {
            return Ok(open);
        }
        Ok(self.requests.rewrite(open.number, words).await?)
    }

    /// This promotion's request. One of this number that was rewritten for another promotion is not.
    async fn of_promotion(&self, order: &Order, number: Option<u64>) -> Result<Option<Found>, PortError> {
        let listed = self.requests.list(&self.branches).await?;
        if let Some(own) = listed.into_iter().find(|found| found.promotion() == Some(&order.id)) {
            return Ok(Some(own));
        }
        let Some(number) = number else { return Ok(None) };
        match self.requests.look(number, None).await {
            Err(gone) if gone.status == Some(StatusCode::NOT_FOUND) => Ok(None),
            looked => {
                Ok(looked?.map(|now| now.value).filter(|found| found.promotion().is_none_or(|id| id == order.id)))
            }
        }
    }

    /// Removes the promotion's branch, unless somebody else has been there since.
    async fn remove_branch(&self, order: &Order) -> Result<(), PortError> {
        let head = &self.branches.head;
        let Some(tip) = self.remote.refs(&[&format!("refs/heads/{head}")]).await?.branch(head) else { return Ok(()) };
        let objects = self.remote.fetch(&BTreeSet::from([tip])).await?;
        let commit = objects.commit(tip)?;
        if ours(order, &commit).is_some_and(|trailers| trailers.id == order.id) {
            self.remote.push(head, Some(tip), None).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Forge for Forges {
    async fn propose(&self, order: &Order) -> Result<Proposed, PortError> {
        in_time(order, self.proposed(order)).await
    }

    async fn look(&self, order: &Order, number: u64) -> Result<RequestState, PortError> {
        let look = async {
            let session = self.session(order).await?;
            let key = format!("{}#{number}", session.api);
            let known = lock(&self.seen).get(&key).cloned();
            match session.requests.look(number, known.as_ref().map(|(etag, _)| etag.as_str())).await {
                Ok(None) => known.map(|(_, state)| state).ok_or_else(|| {
                    PortError::passing(attempted(order), "the forge says that nothing changed, and was not asked that")
                }),
                Ok(Some(now)) => {
                    let mut seen = lock(&self.seen);
                    if seen.len() >= SEEN_MAX {
                        seen.clear();
                    }
                    seen.remove(&key);
                    seen.extend(now.etag.map(|etag| (key, (etag, now.value.state))));
                    Ok(now.value.state)
                }
                Err(gone) if gone.status == Some(StatusCode::NOT_FOUND) => {
                    // A token that was taken away looks the same: the list tells them apart.
                    session.requests.list(&session.branches).await?;
                    Ok(RequestState::Closed)
                }
                Err(failed) => Err(failed.error),
            }
        };
        in_time(order, look).await
    }

    async fn withdraw(&self, order: &Order, number: Option<u64>, why: &str) -> Result<(), PortError> {
        let withdraw = async {
            let session = self.session(order).await?;
            match session.of_promotion(order, number).await? {
                Some(found) if found.state == RequestState::Merged => return Ok(()),
                Some(found) if found.state == RequestState::Open => {
                    session.requests.comment(found.number, &text::clean(why, WHY_BYTES_MAX)).await?;
                    session.requests.close(found.number).await?;
                }
                Some(_) | None => {}
            }
            session.remove_branch(order).await
        };
        in_time(order, withdraw).await
    }
}

async fn in_time<T>(order: &Order, call: impl Future<Output = Result<T, PortError>>) -> Result<T, PortError> {
    let timed = tokio::time::timeout(CALL_MAX, call).await;
    timed.unwrap_or_else(|_elapsed| {
        Err(PortError::passing(attempted(order), format!("it took longer than {} s", CALL_MAX.as_secs())))
    })
}

fn attempted(order: &Order) -> String {
    format!("failed to propose {} to {}", order.revision, words::place(order))
}

/// What became of this promotion's request, if it has ended.
fn ended(order: &Order, found: &[Found]) -> Option<Proposed> {
    let own = found.iter().find(|found| found.promotion() == Some(&order.id))?.clone();
    match own.state {
        RequestState::Open => None,
        RequestState::Merged => Some(Proposed::Merged(own.into_request())),
        RequestState::Closed => Some(Proposed::Closed(own.into_request())),
    }
}

/// The open request of the branch: this promotion's, or one of an earlier promotion, which becomes this one's.
fn open_one(order: &Order, found: Vec<Found>) -> Option<Found> {
    let open = found.into_iter().filter(|found| found.state == RequestState::Open);
    open.min_by_key(|found| found.promotion() != Some(&order.id))
}

/// Refusals that forges give where there is an open request already: 409 and 422. 400 and 404 are said of a branch that is not
/// there yet.
fn may_be_there_already(status: StatusCode) -> bool {
    [StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY, StatusCode::BAD_REQUEST].contains(&status)
}

/// Why the branch may not be replaced.
fn in_the_way(order: &Order, tip: Oid, commit: &Commit, found: &[Found]) -> Option<Proposed> {
    let id = tip.to_string();
    let is_merged = |found: &Found| found.state == RequestState::Merged && found.commit.as_ref() == Some(&id);
    match ours(order, commit) {
        Some(trailers) if trailers.seq > order.seq => Some(Proposed::Outdated(trailers.seq)),
        Some(_) => None,
        // Nothing is lost: it is in the base.
        None if order.overwrite || found.iter().any(is_merged) => None,
        None => Some(Proposed::Foreign(words::stranger(&id, &commit.author, &commit.message))),
    }
}

/// The trailers of a commit that we made for this environment. One that somebody amended has another committer.
fn ours<'a>(order: &Order, commit: &'a Commit) -> Option<Trailers<'a>> {
    let trailers = Trailers::of(|key| commit.trailer(key))?;
    let is_ours = commit.committer == words::AUTHOR && trailers.place == words::place(order);
    is_ours.then_some(trailers)
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
