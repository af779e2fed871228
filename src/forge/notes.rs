//! States of commits, and comments on requests, in the API of each forge:
//! [GitHub](https://docs.github.com/en/rest/commits/statuses), [GitLab](https://docs.gitlab.com/api/commits/#set-commit-pipeline-status),
//! [Gitea](https://docs.gitea.com/api), also Forgejo.
//!
//! Not for what is said, nor for which comment is ours; that is `report`.

use http::{Method, StatusCode};
use objects::pipeline::proposal::ForgeKind;
use objects::repo::report::Standing;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::requests::or_empty;
use crate::rest::{Api, Failure};

/// Requests or comments that a forge is asked for at once; Gitea gives 50 at most.
const PAGE: usize = 50;

/// Pages of one list: 1,000 open requests, or 1,000 comments.
const PAGES_MAX: usize = 20;

/// Requests with one commit at their heads that are commented on. Each has another base branch.
const REQUESTS_MAX: usize = 10;

/// How GitLab refuses to set the state that a commit has.
const SAME_STATE: &str = "Cannot transition status";

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
        let key = if self.forge == ForgeKind::GitLab { "name" } else { "context" };
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
        let all: Vec<Listed> = self.pages("list the requests of a commit", &path).await?.0;
        let found = all.into_iter().filter(|one| one.is_open_at(commit)).map(|one| one.number);
        Ok(found.take(REQUESTS_MAX).collect())
    }

    /// The oldest comment on a request that holds this mark.
    pub(crate) async fn marked(&self, number: u64, mark: &str) -> Result<Option<Comment>, Failure> {
        let attempted = "read the comments on a request";
        let path = self.comments(number);
        let (all, is_whole): (Vec<Comment>, bool) = match self.forge {
            ForgeKind::GitLab => self.pages(attempted, &format!("{path}?sort=asc&order_by=created_at&")).await?,
            // It has no pages.
            ForgeKind::Gitea => (self.api.get(attempted, &path).await?, true),
            ForgeKind::GitHub | ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                self.pages(attempted, &format!("{path}?")).await?
            }
        };
        let found = all.into_iter().filter(|comment| comment.body.contains(mark)).min_by_key(|comment| comment.id);
        match found {
            None if !is_whole => {
                let why = format!("there are more than {} comments before ours", PAGE.saturating_mul(PAGES_MAX));
                Err(self.api.passing(attempted, &why))
            }
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

    /// All pages of a list, and whether that is all of it. A server of Gitea may have a lower limit than ours: there only an empty page is
    /// the end.
    async fn pages<T: serde::de::DeserializeOwned>(
        &self,
        attempted: &str,
        path: &str,
    ) -> Result<(Vec<T>, bool), Failure> {
        let mut all = Vec::new();
        for page in 1..=PAGES_MAX {
            let found: Vec<T> = self.api.get(attempted, &format!("{path}page={page}&{}={PAGE}", self.limit())).await?;
            let is_last = found.is_empty() || (self.forge != ForgeKind::Gitea && found.len() < PAGE);
            all.extend(found);
            if is_last {
                return Ok((all, true));
            }
        }
        Ok((all, false))
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
