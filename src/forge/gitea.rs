//! Pull requests on Gitea and Forgejo (<https://docs.gitea.com/api>).
//!
//! Their lists have no filter by branch: they are read page by page.

use async_trait::async_trait;
use http::{Method, StatusCode};
use objects::pipeline::options::{MergeMethod, Reviewer};
use objects::pipeline::proposal::RequestState;
use serde::Deserialize;
use serde_json::json;

use crate::pulls;
use crate::requests::{Branches, Found, PAGE, Requests, or_empty, undrafted};
use crate::rest::{Api, Failure, Versioned};
use crate::words::Words;

/// Pages of open requests, and pages of ended ones, that are read: 1,000 requests each.
const PAGES_MAX: usize = 20;

/// Begins the title of a draft, unless the server is set up otherwise.
const DRAFT: &str = "WIP:";

fn marked(words: &Words, draft: bool) -> Words {
    let title = if draft { format!("{DRAFT} {}", words.title) } else { words.title.clone() };
    Words { title, body: words.body.clone() }
}

/// One repository's pull requests on Gitea.
pub(crate) struct Gitea {
    pub(crate) api: Api,
}

#[derive(Deserialize)]
struct Pull {
    number: u64,
    html_url: String,
    state: String,
    merged: bool,
    title: String,
    #[serde(deserialize_with = "or_empty", default)]
    body: String,
    created_at: Option<String>,
    head: Side,
    base: Side,
}

#[derive(Deserialize)]
struct Side {
    /// The branch's name, also where the branch is gone.
    label: String,
    sha: Option<String>,
    /// Another one's, where it comes from a fork; below zero where that is gone.
    repo_id: i64,
}

impl Pull {
    fn is_between(&self, branches: &Branches) -> bool {
        let is_here = self.head.repo_id == self.base.repo_id;
        self.head.label == branches.head && self.base.label == branches.base && is_here
    }

    /// Whether it is older than what matters.
    fn is_before(&self, since: i64) -> bool {
        let at = self.created_at.as_deref().and_then(|at| at.parse::<jiff::Timestamp>().ok());
        at.is_some_and(|at| at.as_second() < since)
    }
}

impl From<Pull> for Found {
    fn from(pull: Pull) -> Self {
        let state = match (pull.merged, pull.state.as_str()) {
            (true, _) => RequestState::Merged,
            (false, "open") => RequestState::Open,
            (false, _) => RequestState::Closed,
        };
        let (title, is_marked) = undrafted(pull.title, DRAFT);
        let words = Words { title, body: pull.body };
        let Side { label: head, sha: commit, .. } = pull.head;
        Self { number: pull.number, version: 0, state, words, is_marked, url: pull.html_url, head, commit }
    }
}

impl Gitea {
    /// Requests of a state between these branches, as far back as something may matter. Lists begin with the newest.
    async fn listed(&self, state: &str, branches: &Branches, since: i64) -> Result<Vec<Found>, Failure> {
        let mut found = Vec::new();
        for page in 1..=PAGES_MAX {
            let path = format!("/pulls?state={state}&page={page}&limit={PAGE}");
            let pulls: Vec<Pull> = self.api.get("list pull requests", &path).await?;
            // A server may have a lower limit than ours: only an empty page is the end.
            let is_last = pulls.last().is_none_or(|oldest| oldest.is_before(since));
            found.extend(pulls.into_iter().filter(|pull| pull.is_between(branches)).map(Found::from));
            if is_last {
                break;
            }
        }
        Ok(found)
    }
}

#[async_trait]
impl Requests for Gitea {
    async fn list(&self, branches: &Branches) -> Result<Vec<Found>, Failure> {
        let mut found = self.listed("open", branches, i64::MIN).await?;
        found.extend(self.listed("closed", branches, branches.since).await?);
        Ok(found)
    }

    async fn create(&self, branches: &Branches, words: &Words, draft: bool) -> Result<Found, Failure> {
        pulls::create::<Pull>(&self.api, branches, &marked(words, draft), draft).await
    }

    async fn rewrite(&self, found: &Found, words: &Words) -> Result<Found, Failure> {
        pulls::rewrite::<Pull>(&self.api, found.number, &marked(words, found.is_marked)).await
    }

    async fn label(&self, number: u64, labels: &[String]) -> Result<(), Failure> {
        pulls::label(&self.api, number, labels).await
    }

    async fn ask(&self, number: u64, reviewers: &[Reviewer]) -> Result<(), Failure> {
        pulls::ask(&self.api, number, reviewers).await
    }

    /// Where nothing is left to wait for, it merges at once.
    async fn merge_later(&self, number: u64, commit: &str, how: MergeMethod) -> Result<(), Failure> {
        let how = match how {
            MergeMethod::Merge => "merge",
            MergeMethod::Squash => "squash",
            MergeMethod::Rebase => "rebase",
        };
        let document = json!({"Do": how, "merge_when_checks_succeed": true, "head_commit_id": commit});
        let path = format!("/pulls/{number}/merge");
        match self.api.order("have a pull request merged later", Method::POST, &path, &document).await {
            // It is to be merged already.
            Err(failure)
                if failure.status == Some(StatusCode::CONFLICT) && failure.error.cause.contains("scheduled") =>
            {
                Ok(())
            }
            done => done,
        }
    }

    async fn comment(&self, number: u64, words: &str) -> Result<(), Failure> {
        pulls::comment(&self.api, number, words).await
    }

    async fn close(&self, number: u64) -> Result<(), Failure> {
        pulls::close(&self.api, number).await
    }

    async fn look(&self, number: u64, _etag: Option<&str>) -> Result<Option<Versioned<Found>>, Failure> {
        let pull: Pull = self.api.get("look at a pull request", &format!("/pulls/{number}")).await?;
        Ok(Some(Versioned { value: pull.into(), etag: None }))
    }
}
