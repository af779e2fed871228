//! Merge requests on GitLab (<https://docs.gitlab.com/api/merge_requests/>).

use async_trait::async_trait;
use http::Method;
use objects::pipeline::proposal::RequestState;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::place::encoded;
use crate::requests::{Branches, Found, PAGE, Requests, or_empty};
use crate::rest::{Api, Failure, Versioned};
use crate::words::Words;

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
        let words = Words { title: request.title, body: request.description };
        let (url, head, commit) = (request.web_url, request.source_branch, request.sha);
        Self { number: request.iid, version: 0, state, words, url, head, commit }
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

    async fn create(&self, branches: &Branches, words: &Words) -> Result<Found, Failure> {
        let document = json!({
            "title": words.title,
            "description": words.body,
            "source_branch": branches.head,
            "target_branch": branches.base,
        });
        let request: MergeRequest =
            self.api.send("open a merge request", Method::POST, "/merge_requests", &document).await?;
        Ok(request.into())
    }

    async fn rewrite(&self, found: &Found, words: &Words) -> Result<Found, Failure> {
        let document = json!({"title": words.title, "description": words.body});
        let path = format!("/merge_requests/{}", found.number);
        let request: MergeRequest = self.api.send("rewrite a merge request", Method::PUT, &path, &document).await?;
        Ok(request.into())
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
