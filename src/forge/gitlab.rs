//! Merge requests on GitLab (<https://docs.gitlab.com/api/merge_requests/>).

use std::collections::BTreeSet;

use async_trait::async_trait;
use http::Method;
use objects::pipeline::options::{MergeMethod, Reviewer};
use objects::pipeline::proposal::RequestState;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::place::encoded;
use crate::requests::{Branches, Found, PAGE, Requests, or_empty, undrafted};
use crate::rest::{Api, Failure, Versioned};
use crate::words::Words;

/// Begins the title of a draft.
const DRAFT: &str = "Draft:";

fn title(words: &Words, draft: bool) -> String {
    if draft { format!("{DRAFT} {}", words.title) } else { words.title.clone() }
}

/// One project's merge requests on GitLab.
pub(crate) struct GitLab {
    pub(crate) api: Api,
}

#[derive(Deserialize)]
struct MergeRequest {
    iid: u64,
    web_url: String,
    state: String,
    title: String,
    #[serde(deserialize_with = "or_empty", default)]
    description: String,
    source_branch: String,
    sha: Option<String>,
    /// Another project's, where it comes from a fork; `null` where that is gone.
    source_project_id: Option<u64>,
    target_project_id: u64,
}

impl From<MergeRequest> for Found {
    fn from(request: MergeRequest) -> Self {
        let state = match request.state.as_str() {
            // Locked: it is being merged.
            "opened" | "locked" => RequestState::Open,
            "merged" => RequestState::Merged,
            _ => RequestState::Closed,
        };
        let (title, is_marked) = undrafted(request.title, DRAFT);
        let words = Words { title, body: request.description };
        let (url, head, commit) = (request.web_url, request.source_branch, request.sha);
        Self { number: request.iid, version: 0, state, words, is_marked, url, head, commit }
    }
}

#[async_trait]
impl Requests for GitLab {
    async fn list(&self, branches: &Branches) -> Result<Vec<Found>, Failure> {
        let [head, base] = [&branches.head, &branches.base].map(|branch| encoded(branch));
        let path = format!(
            "/merge_requests?state=all&scope=all&source_branch={head}&target_branch={base}&order_by=created_at&sort=desc\
             &per_page={PAGE}"
        );
        let requests: Vec<MergeRequest> = self.api.get("list merge requests", &path).await?;
        let is_ours = |request: &MergeRequest| request.source_project_id == Some(request.target_project_id);
        Ok(requests.into_iter().filter(is_ours).map(Found::from).collect())
    }

    async fn create(&self, branches: &Branches, words: &Words, draft: bool) -> Result<Found, Failure> {
        let document = json!({
            "title": title(words, draft),
            "description": words.body,
            "source_branch": branches.head,
            "target_branch": branches.base,
        });
        let request: MergeRequest =
            self.api.send("open a merge request", Method::POST, "/merge_requests", &document).await?;
        Ok(request.into())
    }

    async fn rewrite(&self, found: &Found, words: &Words) -> Result<Found, Failure> {
        let document = json!({"title": title(words, found.is_marked), "description": words.body});
        let path = format!("/merge_requests/{}", found.number);
        let request: MergeRequest = self.api.send("rewrite a merge request", Method::PUT, &path, &document).await?;
        Ok(request.into())
    }

    async fn label(&self, number: u64, labels: &[String]) -> Result<(), Failure> {
        let path = format!("/merge_requests/{number}");
        let document = json!({"add_labels": labels.join(",")});
        self.api.order("put labels on a merge request", Method::PUT, &path, &document).await
    }

    /// A change names all reviewers, so those who are asked already are read first.
    async fn ask(&self, number: u64, reviewers: &[Reviewer]) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Asked {
            #[serde(default)]
            reviewers: Vec<User>,
        }
        #[derive(Deserialize)]
        struct User {
            id: u64,
            username: String,
        }
        let attempted = "ask for reviews of a merge request";
        let path = format!("/merge_requests/{number}");
        let now: Asked = self.api.get(attempted, &path).await?;
        let mut ids: BTreeSet<u64> = now.reviewers.iter().map(|user| user.id).collect();
        let asked = ids.len();
        for name in Reviewer::apart(reviewers).0 {
            if now.reviewers.iter().any(|user| user.username == name) {
                continue;
            }
            let found: Vec<User> = self.api.get(attempted, &format!("/users?search={}", encoded(name))).await?;
            let user = found.iter().find(|user| user.username == name);
            let id =
                user.ok_or_else(|| self.api.passing(attempted, &format!("{name} is no member of the project")))?.id;
            ids.insert(id);
        }
        if ids.len() == asked {
            return Ok(());
        }
        self.api.order(attempted, Method::PUT, &path, &json!({"reviewer_ids": ids})).await
    }

    /// Only once there is a pipeline: before that, GitLab refuses, or merges without waiting for any.
    async fn merge_later(&self, number: u64, commit: &str, how: MergeMethod) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Judged {
            head_pipeline: Option<Pipeline>,
        }
        #[derive(Deserialize)]
        struct Pipeline {
            status: String,
        }
        let attempted = "have a merge request merged later";
        let path = format!("/merge_requests/{number}");
        let now: Judged = self.api.get(attempted, &path).await?;
        // Its commit may be another one than the head: that of the merge that it tries.
        let Some(pipeline) = now.head_pipeline else {
            return Err(self.api.passing(attempted, "it has no pipeline yet, whose success could be waited for"));
        };
        if ["failed", "canceled"].contains(&pipeline.status.as_str()) {
            return Err(self.api.passing(attempted, &format!("its pipeline is {}", pipeline.status)));
        }
        let squash = how == MergeMethod::Squash;
        // The older name is for GitLab before 17.11.
        let document =
            json!({"auto_merge": true, "merge_when_pipeline_succeeds": true, "squash": squash, "sha": commit});
        self.api.order(attempted, Method::PUT, &format!("{path}/merge"), &document).await
    }

    async fn forgets_to_merge(&self, number: u64) -> Result<bool, Failure> {
        #[derive(Deserialize)]
        struct Waiting {
            #[serde(default)]
            merge_when_pipeline_succeeds: bool,
        }
        let now: Waiting = self.api.get("look at a merge request", &format!("/merge_requests/{number}")).await?;
        Ok(now.merge_when_pipeline_succeeds)
    }

    async fn comment(&self, number: u64, words: &str) -> Result<(), Failure> {
        let path = format!("/merge_requests/{number}/notes");
        let _: Value =
            self.api.send("comment on a merge request", Method::POST, &path, &json!({"body": words})).await?;
        Ok(())
    }

    async fn close(&self, number: u64) -> Result<(), Failure> {
        let path = format!("/merge_requests/{number}");
        let document = json!({"state_event": "close"});
        let _: Value = self.api.send("close a merge request", Method::PUT, &path, &document).await?;
        Ok(())
    }

    async fn look(&self, number: u64, etag: Option<&str>) -> Result<Option<Versioned<Found>>, Failure> {
        let path = format!("/merge_requests/{number}");
        let request = self.api.get_changed::<MergeRequest>("look at a merge request", &path, etag).await?;
        Ok(request.map(|request| Versioned { value: request.value.into(), etag: request.etag }))
    }
}
