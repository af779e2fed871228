//! States of commits, and comments on requests, in the API of each forge:
//! [GitHub](https://docs.github.com/en/rest/commits/statuses), [GitLab](https://docs.gitlab.com/api/commits/#set-commit-pipeline-status),
//! [Gitea](https://docs.gitea.com/api), also Forgejo.
//!
//! Not for what is said, nor for which comment is ours; that is `report`.

use std::fmt;
use std::marker::PhantomData;

use http::{Method, StatusCode};
use objects::pipeline::proposal::ForgeKind;
use objects::repo::report::Standing;
use serde::de::{DeserializeOwned, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::requests::or_empty;
use crate::rest::{Api, Failure};

/// Requests or comments that a forge is asked for at once; Gitea gives 50 at most.
const PAGE: usize = 50;

/// Pages of one list: 1,000 open requests, or 1,000 comments.
const PAGES_MAX: usize = 20;

/// Things of one answer that are looked at, whatever was asked for: as many as on all pages.
const OF_ANSWER_MAX: usize = PAGE.saturating_mul(PAGES_MAX);

/// Requests with one commit at their heads that are commented on. Each has another base branch.
const REQUESTS_MAX: usize = 10;

/// How GitLab refuses to set the state that a commit has.
const SAME_STATE: &str = "Cannot transition status";

/// What GitLab shows beside pending: it refuses pending after pending and keeps the first words, so these stay true until the end.
const NOT_OVER: &str = "the run is not over yet";

/// What is written of commits and requests of one repository.
pub(crate) struct Notes {
    pub(crate) forge: ForgeKind,
    pub(crate) api: Api,
}

/// A comment as its forge has it.
#[derive(Deserialize)]
pub(crate) struct Comment {
    pub(crate) id: u64,
    #[serde(deserialize_with = "or_empty", default)]
    pub(crate) body: String,
}

/// A request, as far as it says what its head is.
#[derive(Deserialize)]
struct Listed {
    /// On GitLab, that of the project.
    #[serde(alias = "iid")]
    number: u64,
    state: String,
    head: Option<Side>,
    /// GitLab's place for it.
    sha: Option<String>,
}

#[derive(Deserialize)]
struct Side {
    sha: Option<String>,
}

/// A list in an answer, as far as it is looked at. A forge may answer with more than it was asked for.
struct Few<T> {
    all: Vec<T>,
    is_whole: bool,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Counting(PhantomData))
    }
}

struct Counting<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Counting<T> {
    type Value = Few<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Few<T>, A::Error> {
        let mut all = Vec::new();
        while all.len() < OF_ANSWER_MAX {
            match seq.next_element()? {
                Some(one) => all.push(one),
                None => return Ok(Few { all, is_whole: true }),
            }
        }
        let mut is_whole = true;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            is_whole = false;
        }
        Ok(Few { all, is_whole })
    }
}

impl Listed {
    fn is_open_at(&self, commit: &str) -> bool {
        let head = self.head.as_ref().and_then(|head| head.sha.as_ref()).or(self.sha.as_ref());
        ["open", "opened"].contains(&self.state.as_str()) && head.is_some_and(|head| head == commit)
    }
}

impl Notes {
    /// Sets the state of a commit by this name.
    pub(crate) async fn set_state(
        &self,
        commit: &str,
        standing: Standing,
        name: &str,
        words: &str,
    ) -> Result<(), Failure> {
        let state = match (standing, self.forge) {
            (Standing::Pending, _) => "pending",
            (Standing::Success, _) => "success",
            (Standing::Failure, ForgeKind::GitLab) => "failed",
            (Standing::Failure, _) => "failure",
        };
        let (key, words) = match (self.forge, standing) {
            (ForgeKind::GitLab, Standing::Pending) => ("name", NOT_OVER),
            (ForgeKind::GitLab, _) => ("name", words),
            _ => ("context", words),
        };
        let document = json!({"state": state, key: name, "description": words});
        let path = format!("/statuses/{commit}");
        match self.api.order("set the state of a commit", Method::POST, &path, &document).await {
            Err(failure)
                if failure.status == Some(StatusCode::BAD_REQUEST) && failure.error.cause.contains(SAME_STATE) =>
            {
                Ok(())
            }
            done => done,
        }
    }

    /// The numbers of the open requests that have this commit at their head.
    pub(crate) async fn at(&self, commit: &str) -> Result<Vec<u64>, Failure> {
        let path = match self.forge {
            ForgeKind::GitLab => format!("/repository/commits/{commit}/merge_requests?"),
            // Gitea knows only the merged request of a commit.
            ForgeKind::Gitea => "/pulls?state=open&".to_owned(),
            ForgeKind::GitHub | ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                format!("/commits/{commit}/pulls?")
            }
        };
        let attempted = "list the requests of a commit";
        let mut found = Vec::new();
        let keep = |one: Listed| {
            if found.len() < REQUESTS_MAX && one.is_open_at(commit) {
                found.push(one.number);
            }
        };
        let is_whole = self.pages(attempted, &path, keep).await?;
        if found.is_empty() && !is_whole {
            return Err(self.too_many(attempted, "open requests, and none of the first has the commit at its head"));
        }
        Ok(found)
    }

    /// The oldest comment on a request that begins with this mark. One that holds it elsewhere repeats it.
    pub(crate) async fn marked(&self, number: u64, mark: &str) -> Result<Option<Comment>, Failure> {
        let attempted = "read the comments on a request";
        let path = self.comments(number);
        let mut oldest: Option<Comment> = None;
        let mut keep = |comment: Comment| {
            let is_older = oldest.as_ref().is_none_or(|oldest| comment.id < oldest.id);
            if is_older && comment.body.trim_start().starts_with(mark) {
                oldest = Some(comment);
            }
        };
        let is_whole = match self.forge {
            ForgeKind::GitLab => self.pages(attempted, &format!("{path}?sort=asc&order_by=created_at&"), keep).await?,
            // It has no pages.
            ForgeKind::Gitea => {
                let Few { all, is_whole } = self.api.get(attempted, &path).await?;
                all.into_iter().for_each(&mut keep);
                is_whole
            }
            ForgeKind::GitHub | ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                self.pages(attempted, &format!("{path}?"), keep).await?
            }
        };
        match oldest {
            None if !is_whole => Err(self.too_many(attempted, "comments before ours")),
            found => Ok(found),
        }
    }

    pub(crate) async fn comment(&self, number: u64, body: &str) -> Result<(), Failure> {
        let path = self.comments(number);
        let _: Value = self.api.send("comment on a request", Method::POST, &path, &json!({"body": body})).await?;
        Ok(())
    }

    pub(crate) async fn rewrite(&self, number: u64, comment: u64, body: &str) -> Result<(), Failure> {
        let (method, path) = match self.forge {
            ForgeKind::GitLab => (Method::PUT, format!("{}/{comment}", self.comments(number))),
            _ => (Method::PATCH, format!("/issues/comments/{comment}")),
        };
        let _: Value = self.api.send("rewrite a comment", method, &path, &json!({"body": body})).await?;
        Ok(())
    }

    fn comments(&self, number: u64) -> String {
        match self.forge {
            ForgeKind::GitLab => format!("/merge_requests/{number}/notes"),
            _ => format!("/issues/{number}/comments"),
        }
    }

    /// Looks at all that is on the pages of a list, one page at a time, and says whether that is all of it. A server of Gitea may have a
    /// lower limit than ours: there only an empty page is the end.
    async fn pages<T: DeserializeOwned>(
        &self,
        attempted: &str,
        path: &str,
        mut look: impl FnMut(T),
    ) -> Result<bool, Failure> {
        for page in 1..=PAGES_MAX {
            let path = format!("{path}page={page}&{}={PAGE}", self.limit());
            let Few { all, is_whole } = self.api.get(attempted, &path).await?;
            let is_last = all.is_empty() || (self.forge != ForgeKind::Gitea && all.len() < PAGE);
            all.into_iter().for_each(&mut look);
            if is_last || !is_whole {
                return Ok(is_whole);
            }
        }
        Ok(false)
    }

    /// A list is too long for us, and stays so until a person does something about it.
    fn too_many(&self, attempted: &str, of_what: &str) -> Failure {
        let failure = self.api.passing(attempted, &format!("there are more than {OF_ANSWER_MAX} {of_what}"));
        Failure { status: None, error: failure.for_good() }
    }

    /// How the forge calls the length of a page.
    const fn limit(&self) -> &'static str {
        match self.forge {
            ForgeKind::Gitea => "limit",
            ForgeKind::GitHub | ForgeKind::GitLab | ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                "per_page"
            }
        }
    }
}
