//! Pull requests on Bitbucket Cloud (<https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests/>).
//!
//! It refuses no second request between the same branches: the first one gets the words of the second. So what is there is read right
//! before one is opened. Nor has a change a version, and one that leaves the reviewers out removes them.

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

/// One repository's pull requests on Bitbucket Cloud.
pub(crate) struct BitbucketCloud {
    pub(crate) api: Api,
}

#[derive(Deserialize)]
struct Page {
    values: Vec<PullRequest>,
}

#[derive(Deserialize)]
struct PullRequest {
    id: u64,
    state: String,
    title: String,
    #[serde(deserialize_with = "or_empty", default)]
    description: String,
    source: Side,
    destination: Side,
    links: Links,
    #[serde(flatten)]
    kept: Kept,
}

/// What a change sends back as it was read.
#[derive(Deserialize)]
struct Kept {
    /// Lists leave them out.
    #[serde(default)]
    reviewers: Vec<Account>,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    close_source_branch: bool,
}

#[derive(Deserialize)]
struct Account {
    /// In braces.
    uuid: String,
}

#[derive(Deserialize)]
struct Side {
    branch: Branch,
    /// Without one once its repository is gone.
    repository: Option<Repository>,
    commit: Option<Commit>,
}

#[derive(Deserialize)]
struct Branch {
    name: String,
}

#[derive(Deserialize, PartialEq, Eq)]
struct Repository {
    full_name: String,
}

#[derive(Deserialize)]
struct Commit {
    /// Its first 12 hex digits.
    hash: String,
}

#[derive(Deserialize)]
struct Links {
    html: Link,
}

#[derive(Deserialize)]
struct Link {
    href: String,
}

impl From<PullRequest> for Found {
    fn from(request: PullRequest) -> Self {
        let state = match request.state.as_str() {
            "MERGED" => RequestState::Merged,
            "DECLINED" | "SUPERSEDED" => RequestState::Closed,
            // Its documents name OPEN, DRAFT and QUEUED: none of them has ended, nor has one that is not known yet.
            _ => RequestState::Open,
        };
        let words = Words { title: request.title, body: request.description };
        let commit = request.source.commit.map(|commit| commit.hash);
        let (number, url, head) = (request.id, request.links.html.href, request.source.branch.name);
        Self { number, version: 0, state, words, is_marked: false, url, head, commit }
    }
}

/// A text between quotes (<https://developer.atlassian.com/cloud/bitbucket/rest/intro/#filtering>).
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl BitbucketCloud {
    async fn read(&self, attempted: &str, number: u64) -> Result<PullRequest, Failure> {
        self.api.get(attempted, &format!("/pullrequests/{number}")).await
    }

    /// Gives one, as it was read, these words and these reviewers.
    async fn change(
        &self,
        attempted: &str,
        number: u64,
        words: &Words,
        kept: &Kept,
        more: &[String],
    ) -> Result<PullRequest, Failure> {
        let reviewers = kept.reviewers.iter().map(|account| &account.uuid).chain(more);
        let document = json!({
            "title": words.title,
            "description": words.body,
            "reviewers": reviewers.map(|uuid| json!({"uuid": uuid})).collect::<Vec<_>>(),
            "draft": kept.draft,
            "close_source_branch": kept.close_source_branch,
        });
        self.api.send(attempted, Method::PUT, &format!("/pullrequests/{number}"), &document).await
    }

    /// A spec that wants it is refused before it comes here.
    fn cannot(&self, attempted: &str) -> Failure {
        self.api.passing(attempted, "Bitbucket Cloud has no way to do that")
    }
}

#[async_trait]
impl Requests for BitbucketCloud {
    async fn list(&self, branches: &Branches) -> Result<Vec<Found>, Failure> {
        let between = format!(
            "source.branch.name={} AND destination.branch.name={}",
            quoted(&branches.head),
            quoted(&branches.base)
        );
        let states = ["OPEN", "MERGED", "DECLINED", "SUPERSEDED"].map(|state| format!("state={state}")).join("&");
        let path = format!("/pullrequests?{states}&sort=-created_on&pagelen={PAGE}&q={}", encoded(&between));
        let page: Page = self.api.get("list pull requests", &path).await?;
        let is_ours = |request: &PullRequest| {
            let PullRequest { source, destination, .. } = request;
            source.branch.name == branches.head
                && destination.branch.name == branches.base
                && source.repository == destination.repository
        };
        Ok(page.values.into_iter().filter(is_ours).map(Found::from).collect())
    }

    async fn create(&self, branches: &Branches, words: &Words, draft: bool) -> Result<Found, Failure> {
        let attempted = "open a pull request";
        if self.list(branches).await?.iter().any(|found| found.state == RequestState::Open) {
            let there = self.api.passing(attempted, "there is one of these branches by now");
            return Err(Failure { status: Some(StatusCode::CONFLICT), ..there });
        }
        let document = json!({
            "title": words.title,
            "description": words.body,
            "source": {"branch": {"name": branches.head}},
            "destination": {"branch": {"name": branches.base}},
            "draft": draft,
        });
        let request: PullRequest = self.api.send(attempted, Method::POST, "/pullrequests", &document).await?;
        Ok(request.into())
    }

    async fn rewrite(&self, found: &Found, words: &Words) -> Result<Found, Failure> {
        let attempted = "rewrite a pull request";
        let PullRequest { title, description: body, kept, .. } = self.read(attempted, found.number).await?;
        if (Words { title, body }) != found.words {
            return Err(self.api.passing(attempted, "somebody changed it meanwhile"));
        }
        self.change(attempted, found.number, words, &kept, &[]).await.map(Found::from)
    }

    async fn label(&self, _: u64, _: &[String]) -> Result<(), Failure> {
        Err(self.cannot("put labels on a pull request"))
    }

    /// A change names all reviewers. They are accounts, known by their UUID.
    async fn ask(&self, number: u64, reviewers: &[Reviewer]) -> Result<(), Failure> {
        let attempted = "ask for reviews of a pull request";
        let PullRequest { title, description: body, kept, .. } = self.read(attempted, number).await?;
        let is_asked = |uuid: &String| kept.reviewers.iter().any(|asked| asked.uuid.eq_ignore_ascii_case(uuid));
        let users = Reviewer::apart(reviewers).0.into_iter().map(|uuid| format!("{{{uuid}}}"));
        let more: Vec<String> = users.filter(|uuid| !is_asked(uuid)).collect();
        if more.is_empty() {
            return Ok(());
        }
        self.change(attempted, number, &Words { title, body }, &kept, &more).await.map(|_now| ())
    }

    async fn merge_later(&self, _: u64, _: &str, _: MergeMethod) -> Result<(), Failure> {
        Err(self.cannot("have a pull request merged later"))
    }

    async fn comment(&self, number: u64, words: &str) -> Result<(), Failure> {
        let path = format!("/pullrequests/{number}/comments");
        let document = json!({"content": {"raw": words}});
        let _: Value = self.api.send("comment on a pull request", Method::POST, &path, &document).await?;
        Ok(())
    }

    async fn close(&self, number: u64) -> Result<(), Failure> {
        let path = format!("/pullrequests/{number}/decline");
        let _: Value = self.api.send("decline a pull request", Method::POST, &path, &json!({})).await?;
        Ok(())
    }

    async fn look(&self, number: u64, _etag: Option<&str>) -> Result<Option<Versioned<Found>>, Failure> {
        let request = self.read("look at a pull request", number).await?;
        Ok(Some(Versioned { value: request.into(), etag: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(state: &str, commit: &Value) -> Found {
        let side = json!({"branch": {"name": "b"}, "repository": null, "commit": commit});
        let document = json!({
            "id": 7, "state": state, "title": "t", "description": null, "source": side, "destination": side,
            "links": {"html": {"href": "https://bitbucket.org/shop/web/pull-requests/7"}},
        });
        serde_json::from_value::<PullRequest>(document).expect("a pull request").into()
    }

    #[test]
    fn only_an_end_that_is_known_is_one() {
        for (name, state) in [
            ("OPEN", RequestState::Open),
            ("DRAFT", RequestState::Open),
            ("QUEUED", RequestState::Open),
            ("SOMETHING_NEW", RequestState::Open),
            ("MERGED", RequestState::Merged),
            ("DECLINED", RequestState::Closed),
            ("SUPERSEDED", RequestState::Closed),
        ] {
            assert_eq!(found(name, &Value::Null).state, state, "{name}");
        }
    }

    #[test]
    fn the_first_digits_of_a_commit_say_which_it_is_if_they_are_enough() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let is_at = |hash: &str| found("OPEN", &json!({"hash": hash})).is_at(id);
        assert!(is_at(id) && is_at("0123456789ab"));
        assert!(!is_at("0123456789a") && !is_at("0123456789ac") && !is_at(""));
        assert!(!found("OPEN", &Value::Null).is_at(id), "gone");
    }

    #[test]
    fn no_name_of_a_branch_ends_its_quotes() {
        assert_eq!(quoted(r#"a" OR id>0 OR title="\"#), r#""a\" OR id>0 OR title=\"\\""#);
    }
}
