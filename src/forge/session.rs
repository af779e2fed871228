//! One repository, opened for one promotion: its branch and its request.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::StatusCode;
use kernel::text;
use objects::pipeline::options::{self, Lacks, RequestOptions};
use objects::pipeline::proposal::{Order, Proposed, RequestState};
use purge::ports::PortError;

use crate::git::{Commit, Draft, Objects, Oid, Pushed, Remote, Signer};
use crate::requests::{Branches, Found, Requests};
use crate::words::{self, Trailers, Words};

/// Longest words about one thing that a request lacks, in bytes: they are part of a status.
const LACKS_BYTES_MAX: usize = 200;

pub(crate) struct Session {
    pub(crate) remote: Remote,
    pub(crate) requests: Box<dyn Requests>,
    /// Its address in the API.
    pub(crate) api: String,
    pub(crate) branches: Branches,
    /// What signs its commits.
    pub(crate) signer: Option<Signer>,
}

impl Session {
    /// Makes the commit and sets the branch to it; `None` if there is nothing to change.
    pub(crate) async fn pushed(
        &self,
        order: &Order,
        objects: &Objects,
        base: Oid,
        tip: Option<Oid>,
        changes: &BTreeMap<String, Bytes>,
    ) -> Result<Option<Oid>, PortError> {
        let message = words::message(order);
        let (author, at, signer) = (words::AUTHOR, order.started_at, self.signer.as_ref());
        let draft = Draft { base, parent: base, author, at, message: &message, signer };
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
    pub(crate) async fn opened(
        &self,
        order: &Order,
        found: Vec<Found>,
        words: &Words,
        commit: Oid,
    ) -> Result<Proposed, PortError> {
        let open = match open_one(order, found) {
            Some(open) => open,
            None => match self.requests.create(&self.branches, words, order.options.draft).await {
                Ok(made) => return Ok(open_at(made, commit)),
                Err(refused) if refused.status.is_some_and(may_be_there_already) => {
                    let found = self.requests.list(&self.branches).await?;
                    if let Some(ended) = ended(order, &found) {
                        return Ok(ended);
                    }
                    // What is refused though nothing is in its way is refused for good: a merge queue, a rule about branches.
                    open_one(order, found).ok_or_else(|| refused.for_good())?
                }
                Err(failed) => return Err(failed.error),
            },
        };
        if open.words.say(words) {
            return Ok(open_at(open, commit));
        }
        // This life may be slow, and another one may have gone further since the list was read.
        let now = self.requests.look(open.number, None).await?.map_or(open, |now| now.value);
        match words::seq(&now.words.body).filter(|seq| *seq > order.seq) {
            Some(newer) => Ok(Proposed::Outdated(newer)),
            None => Ok(open_at(self.requests.rewrite(&now, words).await?, commit)),
        }
    }

    /// Does with an open request what is wanted of it beside its words. Returns what the forge would not do.
    pub(crate) async fn finish(&self, options: &RequestOptions, number: u64, commit: &str) -> Lacks {
        let RequestOptions { labels, reviewers, auto_merge, .. } = options;
        let mut failed = Vec::new();
        if !labels.is_empty() {
            failed.extend(self.requests.label(number, labels).await.err().map(|why| (options::LABELS.to_owned(), why)));
        }
        if !reviewers.is_empty()
            && let Err(all) = self.requests.ask(number, reviewers).await
        {
            // One who cannot be asked keeps nobody else from being asked.
            match &reviewers[..] {
                [only] => failed.push((only.to_string(), all)),
                several => {
                    for one in several {
                        let asked = self.requests.ask(number, std::slice::from_ref(one)).await;
                        failed.extend(asked.err().map(|why| (one.to_string(), why)));
                    }
                }
            }
        }
        if let Some(how) = auto_merge {
            let later = self.requests.merge_later(number, commit, *how).await;
            failed.extend(later.err().map(|why| (options::AUTO_MERGE.to_owned(), why)));
        }
        failed.into_iter().map(|(what, why)| (what, text::clean(&why.error.cause, LACKS_BYTES_MAX))).collect()
    }

    /// The open requests of a promotion that is withdrawn: those of its branch with its mark, or with that of an earlier one, which it
    /// may not have rewritten yet; and the one of this number, wherever a person has directed it by now.
    pub(crate) async fn open_ones(&self, order: &Order, number: Option<u64>) -> Result<Vec<Found>, PortError> {
        let mut found = self.requests.list(&self.branches).await?;
        if let Some(number) = number.filter(|number| !found.iter().any(|found| found.number == *number)) {
            match self.requests.look(number, None).await {
                Err(gone) if gone.status == Some(StatusCode::NOT_FOUND) => {}
                looked => found.extend(looked?.map(|now| now.value).filter(|now| now.is_of(order, &self.branches))),
            }
        }
        let is_ours =
            |found: &Found| found.precedes(order) || Some(found.number) == number && found.is_of(order, &self.branches);
        found.retain(|found| found.state == RequestState::Open && is_ours(found));
        Ok(found)
    }

    /// The trailers of a commit that we made for this environment. One that was amended by others has another committer.
    pub(crate) fn ours<'a>(&self, order: &Order, commit: &'a Commit) -> Option<Trailers<'a>> {
        let trailers = Trailers::of(|key| commit.trailer(key))?;
        let signs_as = self.signer.as_ref().and_then(Signer::committer);
        let is_by_us = commit.committer == words::AUTHOR
            || commit.author == words::AUTHOR && Some(commit.committer.as_str()) == signs_as;
        (is_by_us && trailers.place == words::place(order)).then_some(trailers)
    }

    /// Removes the promotion's branch, unless others have changed it since.
    pub(crate) async fn remove_branch(&self, order: &Order) -> Result<(), PortError> {
        let head = &self.branches.head;
        let Some(tip) = self.remote.refs(&[&format!("refs/heads/{head}")]).await?.branch(head) else { return Ok(()) };
        let objects = self.remote.fetch(&BTreeSet::from([tip])).await?;
        let commit = objects.commit(tip)?;
        if self.ours(order, &commit).is_some_and(|trailers| trailers.seq <= order.seq) {
            self.remote.push(head, Some(tip), None).await?;
        }
        Ok(())
    }
}

/// What a promotion tried that failed.
pub(crate) fn attempted(order: &Order) -> String {
    format!("failed to promote {} to {}", words::place(order), order.revision)
}

/// What became of this promotion's request, if it has ended.
pub(crate) fn ended(order: &Order, found: &[Found]) -> Option<Proposed> {
    let own = found.iter().find(|found| found.promotion() == Some(&order.id))?.clone();
    match own.state {
        RequestState::Open | RequestState::Lacks(_) | RequestState::Held(_) => None,
        RequestState::Merged => Some(Proposed::Merged(own.into_request())),
        RequestState::Closed => Some(Proposed::Closed(own.into_request())),
    }
}

/// The open request of the branch: this promotion's, or one of an earlier promotion, which becomes this one's.
fn open_one(order: &Order, found: Vec<Found>) -> Option<Found> {
    let open = found.into_iter().filter(|found| found.state == RequestState::Open);
    open.min_by_key(|found| found.promotion() != Some(&order.id))
}

fn open_at(found: Found, commit: Oid) -> Proposed {
    Proposed::Open(Found { commit: Some(commit.to_string()), ..found }.into_request())
}

/// Refusals that forges give where there is an open request already: 409 and 422. 400 and 404 are said of a branch that is not
/// there yet.
fn may_be_there_already(status: StatusCode) -> bool {
    [StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY, StatusCode::BAD_REQUEST].contains(&status)
}
