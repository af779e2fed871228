//! Pull requests on GitHub and GitHub Enterprise Server (<https://docs.github.com/en/rest/pulls/pulls>).

use async_trait::async_trait;
use http::Method;
use objects::pipeline::options::{MergeMethod, Reviewer};
use objects::pipeline::proposal::RequestState;
use serde::Deserialize;
use serde_json::{Value, json};

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
    /// What only the other API of GitHub can do.
    pub(crate) graph: Api,
}

/// (<https://docs.github.com/en/graphql/reference/mutations#enablepullrequestautomerge>)
const MERGE_LATER: &str = "mutation($pull: ID!, $how: PullRequestMergeMethod!, $head: GitObjectID!) { \
                           enablePullRequestAutoMerge(input: {pullRequestId: $pull, mergeMethod: $how, expectedHeadOid: $head}) \
                           { clientMutationId } }";

/// How GitHub refuses to wait where nothing is left to wait for.
const NOTHING_TO_WAIT_FOR: &str = "clean status";

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
        Self { number: pull.number, version: 0, state, words, is_marked: false, url: pull.html_url, head, commit }
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

    async fn create(&self, branches: &Branches, words: &Words, draft: bool) -> Result<Found, Failure> {
        pulls::create::<Pull>(&self.api, branches, words, draft).await
    }

    async fn rewrite(&self, found: &Found, words: &Words) -> Result<Found, Failure> {
        pulls::rewrite::<Pull>(&self.api, found.number, words).await
    }

    async fn label(&self, number: u64, labels: &[String]) -> Result<(), Failure> {
        pulls::label(&self.api, number, labels).await
    }

    async fn ask(&self, number: u64, reviewers: &[Reviewer]) -> Result<(), Failure> {
        pulls::ask(&self.api, number, reviewers).await
    }

    async fn merge_later(&self, number: u64, commit: &str, how: MergeMethod) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Named {
            node_id: String,
        }
        let attempted = "have a pull request merged later";
        let pull: Named = self.api.get(attempted, &format!("/pulls/{number}")).await?;
        let how = match how {
            MergeMethod::Merge => "MERGE",
            MergeMethod::Squash => "SQUASH",
            MergeMethod::Rebase => "REBASE",
        };
        let variables = json!({"pull": pull.node_id, "how": how, "head": commit});
        let document = json!({"query": MERGE_LATER, "variables": variables});
        let answer: Value = self.graph.send(attempted, Method::POST, "", &document).await?;
        match self.graph.said(&answer) {
            said if said.is_empty() => Ok(()),
            said if said.contains(NOTHING_TO_WAIT_FOR) => {
                let why = "nothing that the base branch requires is left to wait for: merge it, or require a check or a review there";
                Err(self.graph.passing(attempted, why))
            }
            said => Err(self.graph.passing(attempted, &said)),
        }
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
