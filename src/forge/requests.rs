//! Pull requests of one repository: what every forge can do, in words that fit all of them.

use async_trait::async_trait;
use kernel::text;
use objects::pipeline::options::{Lacks, MergeMethod, Reviewer};
use objects::pipeline::proposal::{Order, Request, RequestState};

use crate::rest::{Failure, Versioned};
use crate::words::{self, Words};

/// Requests that a forge is asked for at once; each lists the newest ones first.
pub(crate) const PAGE: usize = 50;

/// Hex digits of a commit's id where a forge shortens it: Bitbucket Cloud.
const SHORT_ID: usize = 12;

/// Longest address of a request that is kept, in bytes.
const URL_BYTES_MAX: usize = 500;

/// The pull requests of one repository.
///
/// Every method is one request to the forge, or a few, each harmless when it is repeated but [`Requests::create`] and
/// [`Requests::comment`]: no forge has a second open request from the same branch, and a comment may be read twice.
#[async_trait]
pub(crate) trait Requests: Send + Sync {
    /// Open and ended requests from `branches.head` of this repository into `branches.base`; all that are open, and of the
    /// ended ones the newest, at least those since `branches.since`.
    async fn list(&self, branches: &Branches) -> Result<Vec<Found>, Failure>;

    /// Opens one, or a draft. Any refusal may mean that there is one already.
    async fn create(&self, branches: &Branches, words: &Words, draft: bool) -> Result<Found, Failure>;

    /// Gives one, as it was found, another title and body. A draft stays one.
    async fn rewrite(&self, found: &Found, words: &Words) -> Result<Found, Failure>;

    /// Puts labels on one, beside those that it has.
    async fn label(&self, number: u64, labels: &[String]) -> Result<(), Failure>;

    /// Asks for reviews of one, beside those that are asked for.
    async fn ask(&self, number: u64, reviewers: &[Reviewer]) -> Result<(), Failure>;

    /// Has the forge merge one by itself, when its own rules allow that, while this commit is at its head.
    async fn merge_later(&self, number: u64, commit: &str, how: MergeMethod) -> Result<(), Failure>;

    /// Whether one is to be merged by its forge, which forgets that when its branch gets another commit.
    async fn forgets_to_merge(&self, _number: u64) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Says something in one.
    async fn comment(&self, number: u64, words: &str) -> Result<(), Failure>;

    /// Closes an open one without merging it.
    async fn close(&self, number: u64) -> Result<(), Failure>;

    /// How one is now; `None` if it is what had this mark.
    async fn look(&self, number: u64, etag: Option<&str>) -> Result<Option<Versioned<Found>>, Failure>;
}

/// Between which branches a promotion's request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Branches {
    /// What is to be merged.
    pub(crate) head: String,
    pub(crate) base: String,
    /// Requests that ended before this do not matter, in seconds since the Unix epoch.
    pub(crate) since: i64,
}

/// A request as its forge has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) number: u64,
    /// Counts its changes, where the forge takes a change of one version only; else 0.
    pub(crate) version: u64,
    pub(crate) state: RequestState,
    pub(crate) words: Words,
    /// Its title has the mark of a draft, which is not in the words.
    pub(crate) is_marked: bool,
    /// For people, to open in a browser.
    pub(crate) url: String,
    /// The branch that it is from.
    pub(crate) head: String,
    /// The commit at its head, or the first digits of its id.
    pub(crate) commit: Option<String>,
}

impl Found {
    /// The id of the promotion that it is for.
    pub(crate) fn promotion(&self) -> Option<&str> {
        words::promotion(&self.words.body)
    }

    /// Whether it is this promotion's, or an earlier one's of the same environment, which becomes this one's.
    pub(crate) fn precedes(&self, order: &Order) -> bool {
        let body = &self.words.body;
        self.promotion() == Some(&order.id)
            || words::is_for(body, order) && words::seq(body).is_some_and(|seq| seq <= order.seq)
    }

    /// Whether the one of this number is the promotion's. A number alone says nothing: the repository may be another one by now. A
    /// person may have taken the mark out.
    pub(crate) fn is_of(&self, order: &Order, branches: &Branches) -> bool {
        self.head == branches.head && self.promotion().is_none_or(|id| id == order.id)
    }

    /// Whether this commit is at its head. Bitbucket Cloud says the first digits of it alone.
    pub(crate) fn is_at(&self, commit: &str) -> bool {
        self.commit.as_ref().is_some_and(|head| head.len() >= SHORT_ID && commit.starts_with(head))
    }

    /// The part of it that leaves this crate.
    pub(crate) fn into_request(self) -> Request {
        let is_id = |commit: &String| commit.len() == 40 && commit.bytes().all(|digit| digit.is_ascii_hexdigit());
        let is_web = self.url.starts_with("https://") || self.url.starts_with("http://");
        let url = if is_web { text::clean(&self.url, URL_BYTES_MAX) } else { String::new() };
        Request { url, number: self.number, commit: self.commit.filter(is_id), lacks: Lacks::new() }
    }
}

/// A title without the mark by which a forge knows a draft, and whether it had that.
pub(crate) fn undrafted(title: String, mark: &str) -> (String, bool) {
    let bare = title.strip_prefix(mark).map(|bare| bare.trim_start().to_owned());
    bare.map_or((title, false), |bare| (bare, true))
}

/// A text that a forge may leave out or answer `null` for.
pub(crate) fn or_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(Option::<String>::unwrap_or_default)
}
