//! Pull requests on Bitbucket Server and Data Center
//! (<https://developer.atlassian.com/server/bitbucket/rest/v910/api-group-pull-requests/>).
//!
//! Every change names the version that it changes; an older one is refused with 409. To close one it is then read again, once.

use async_trait::async_trait;
use http::{Method, StatusCode};
use objects::pipeline::options::{MergeMethod, Reviewer};
use objects::pipeline::proposal::RequestState;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::place::encoded;
use crate::requests::{Branches, Found, PAGE, Requests, or_empty};
use crate::rest::{Api, Failure, Versioned};
use crate::words::Words;

/// One repository's pull requests on Bitbucket Server.
pub(crate) struct BitbucketServer {
    pub(crate) api: Api,
    /// The key of its project.
    pub(crate) owner: String,
    pub(crate) name: String,
}

#[derive(Deserialize)]
struct Page {
    values: Vec<PullRequest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PullRequest {
    id: u64,
    version: u64,
    state: String,
    title: String,
    #[serde(deserialize_with = "or_empty", default)]
    description: String,
    from_ref: Side,
    to_ref: Side,
    #[serde(default)]
    links: Links,
    /// Kept as they are: a change without them would remove them.
    #[serde(default)]
    reviewers: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    /// `refs/heads/main`.
    id: String,
    latest_commit: Option<String>,
    repository: Repository,
}

#[derive(Deserialize, PartialEq, Eq)]
struct Repository {
    id: u64,
}

#[derive(Deserialize, Default)]
struct Links {
    #[serde(rename = "self", default)]
    own: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    href: String,
}

impl From<PullRequest> for Found {
    fn from(request: PullRequest) -> Self {
        let state = match request.state.as_str() {
            "OPEN" => RequestState::Open,
            "MERGED" => RequestState::Merged,
            _ => RequestState::Closed,
        };
        let url = request.links.own.into_iter().next().map(|link| link.href).unwrap_or_default();
        let words = Words { title: request.title, body: request.description };
        let Side { id, latest_commit: commit, .. } = request.from_ref;
        let head = id.strip_prefix(HEADS).unwrap_or(&id).to_owned();
        let (number, version) = (request.id, request.version);
        Self { number, version, state, words, is_marked: false, url, head, commit }
    }
}

/// Begins the name of a branch, in full.
const HEADS: &str = "refs/heads/";

fn of_branch(branch: &str) -> String {
    format!("{HEADS}{branch}")
}

impl BitbucketServer {
    async fn read(&self, attempted: &str, number: u64) -> Result<PullRequest, Failure> {
        self.api.get(attempted, &format!("/pull-requests/{number}")).await
    }

    /// Gives one, as it was read, these words and its reviewers.
    async fn change(&self, attempted: &str, now: PullRequest, words: &Words) -> Result<PullRequest, Failure> {
        let document = json!({
            "version": now.version,
            "title": words.title,
            "description": words.body,
            "reviewers": now.reviewers,
        });
        self.api.send(attempted, Method::PUT, &format!("/pull-requests/{}", now.id), &document).await
    }

    /// A spec that wants it is refused before it comes here.
    fn cannot(&self, attempted: &str) -> Failure {
        self.api.passing(attempted, "not all versions of Bitbucket Server can do that")
    }
}

#[async_trait]
impl Requests for BitbucketServer {
    async fn list(&self, branches: &Branches) -> Result<Vec<Found>, Failure> {
        let [head, base] = [&branches.head, &branches.base].map(|branch| of_branch(branch));
        let at = encoded(&head);
        let path = format!("/pull-requests?state=ALL&direction=OUTGOING&at={at}&order=NEWEST&limit={PAGE}");
        let page: Page = self.api.get("list pull requests", &path).await?;
        let is_ours = |request: &PullRequest| {
            request.from_ref.id == head
                && request.to_ref.id == base
                && request.from_ref.repository == request.to_ref.repository
        };
        Ok(page.values.into_iter().filter(is_ours).map(Found::from).collect())
    }

    async fn create(&self, branches: &Branches, words: &Words, _draft: bool) -> Result<Found, Failure> {
        let repository = json!({"slug": self.name, "project": {"key": self.owner}});
        let document = json!({
            "title": words.title,
            "description": words.body,
            "fromRef": {"id": of_branch(&branches.head), "repository": repository},
            "toRef": {"id": of_branch(&branches.base), "repository": repository},
        });
        let request: PullRequest =
            self.api.send("open a pull request", Method::POST, "/pull-requests", &document).await?;
        Ok(request.into())
    }

    async fn rewrite(&self, found: &Found, words: &Words) -> Result<Found, Failure> {
        let attempted = "rewrite a pull request";
        let now = self.read(attempted, found.number).await?;
        if now.version != found.version {
            return Err(self.api.passing(attempted, "somebody changed it meanwhile"));
        }
        self.change(attempted, now, words).await.map(Found::from)
    }

    async fn label(&self, _: u64, _: &[String]) -> Result<(), Failure> {
        Err(self.cannot("put labels on a pull request"))
    }

    /// A change names all reviewers, and everything else that is to stay.
    async fn ask(&self, number: u64, reviewers: &[Reviewer]) -> Result<(), Failure> {
        let attempted = "ask for reviews of a pull request";
        let mut now = self.read(attempted, number).await?;
        let asked = now.reviewers.as_array().cloned().unwrap_or_default();
        let is_asked =
            |name: &&str| asked.iter().any(|one| one.pointer("/user/name").and_then(Value::as_str) == Some(name));
        let users = Reviewer::apart(reviewers).0;
        let more: Vec<Value> =
            users.into_iter().filter(|name| !is_asked(name)).map(|name| json!({"user": {"name": name}})).collect();
        if more.is_empty() {
            return Ok(());
        }
        now.reviewers = [asked, more].concat().into();
        let words = Words { title: now.title.clone(), body: now.description.clone() };
        self.change(attempted, now, &words).await.map(|_now| ())
    }

    async fn merge_later(&self, _: u64, _: &str, _: MergeMethod) -> Result<(), Failure> {
        Err(self.cannot("have a pull request merged later"))
    }

    async fn comment(&self, number: u64, words: &str) -> Result<(), Failure> {
        let path = format!("/pull-requests/{number}/comments");
        let _: Value = self.api.send("comment on a pull request", Method::POST, &path, &json!({"text": words})).await?;
        Ok(())
    }

    async fn close(&self, number: u64) -> Result<(), Failure> {
        let attempted = "decline a pull request";
        let mut is_again = false;
        loop {
            let version = self.read(attempted, number).await?.version;
            let path = format!("/pull-requests/{number}/decline?version={version}");
            match self.api.send::<Value>(attempted, Method::POST, &path, &json!({})).await {
                Err(failure) if failure.status == Some(StatusCode::CONFLICT) && !is_again => is_again = true,
                declined => return declined.map(|_now| ()),
            }
        }
    }

    async fn look(&self, number: u64, _etag: Option<&str>) -> Result<Option<Versioned<Found>>, Failure> {
        let request = self.read("look at a pull request", number).await?;
        Ok(Some(Versioned { value: request.into(), etag: None }))
    }
}
