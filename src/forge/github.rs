//! Pull requests on GitHub and GitHub Enterprise Server (<https://docs.github.com/en/rest/pulls/pulls>).

use async_trait::async_trait;
use objects::pipeline::proposal::RequestState;
use serde::Deserialize;

use crate::place::encoded;
use crate::pulls;
use crate::requests::{Branches, Found, PAGE, Requests, or_empty};
use crate::rest::{Api, Failure, Versioned};
use crate::words::Words;

/// One repository's pull requests on GitHub.
pub(crate) struct GitHub {
    pub(crate) api: Api,
    /// The owner of the repository: without it GitHub ignores the filter by branch.
    pub(crate) owner: String,
}

#[derive(Deserialize)]
struct Pull {
    number: u64,
    html_url: String,
    state: String,
    merged_at: Option<String>,
    title: String,
    #[serde(deserialize_with = "or_empty", default)]
    body: String,
    head: Side,
    base: Side,
}

#[derive(Deserialize)]
struct Side {
    #[serde(rename = "ref")]
    branch: String,
    sha: Option<String>,
    /// `null` where a fork is gone.
    repo: Option<Repo>,
}

#[derive(Deserialize, PartialEq, Eq)]
struct Repo {
    id: u64,
}

impl From<Pull> for Found {
    fn from(pull: Pull) -> Self {
        let state = match (pull.state.as_str(), pull.merged_at) {
            (_, Some(_)) => RequestState::Merged,
            ("open", None) => RequestState::Open,
            (_, None) => RequestState::Closed,
        };
        let words = Words { title: pull.title, body: pull.body };
        let Side { branch: head, sha: commit, .. } = pull.head;
        Self { number: pull.number, version: 0, state, words, url: pull.html_url, head, commit }
    }
}

#[async_trait]
impl Requests for GitHub {
    async fn list(&self, branches: &Branches) -> Result<Vec<Found>, Failure> {
        let head = encoded(&format!("{}:{}", self.owner, branches.head));
        let base = encoded(&branches.base);
        let path = format!("/pulls?state=all&head={head}&base={base}&sort=created&direction=desc&per_page={PAGE}");
        let pulls: Vec<Pull> = self.api.get("list pull requests", &path).await?;
        let is_ours = |pull: &Pull| {
            pull.head.branch == branches.head && pull.base.branch == branches.base && pull.head.repo == pull.base.repo
        };
        Ok(pulls.into_iter().filter(is_ours).map(Found::from).collect())
    }

    async fn create(&self, branches: &Branches, words: &Words) -> Result<Found, Failure> {
        pulls::create::<Pull>(&self.api, branches, words).await
    }

    async fn rewrite(&self, found: &Found, words: &Words) -> Result<Found, Failure> {
        pulls::rewrite::<Pull>(&self.api, found.number, words).await
    }

    async fn comment(&self, number: u64, words: &str) -> Result<(), Failure> {
        pulls::comment(&self.api, number, words).await
    }

    async fn close(&self, number: u64) -> Result<(), Failure> {
        pulls::close(&self.api, number).await
    }

    async fn look(&self, number: u64, etag: Option<&str>) -> Result<Option<Versioned<Found>>, Failure> {
        let path = format!("/pulls/{number}");
        let pull = self.api.get_changed::<Pull>("look at a pull request", &path, etag).await?;
        Ok(pull.map(|pull| Versioned { value: pull.value.into(), etag: pull.etag }))
    }
}
