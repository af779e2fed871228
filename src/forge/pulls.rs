//! The part of GitHub's API for pull requests that Gitea has as well: to open, to rewrite, to label, to have reviewed, to comment and to
//! close one.

use http::Method;
use objects::pipeline::options::Reviewer;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::requests::{Branches, Found};
use crate::rest::{Api, Failure};
use crate::words::Words;

/// A pull request as a forge describes it.
pub(crate) trait Described: DeserializeOwned + Into<Found> {}

impl<P: DeserializeOwned + Into<Found>> Described for P {}

pub(crate) async fn create<P: Described>(
    api: &Api,
    branches: &Branches,
    words: &Words,
    draft: bool,
) -> Result<Found, Failure> {
    let document = json!({
        "title": words.title,
        "body": words.body,
        "head": branches.head,
        "base": branches.base,
        "draft": draft,
    });
    let pull: P = api.send("open a pull request", Method::POST, "/pulls", &document).await?;
    Ok(pull.into())
}

pub(crate) async fn rewrite<P: Described>(api: &Api, number: u64, words: &Words) -> Result<Found, Failure> {
    let document = json!({"title": words.title, "body": words.body});
    let pull: P = api.send("rewrite a pull request", Method::PATCH, &format!("/pulls/{number}"), &document).await?;
    Ok(pull.into())
}

pub(crate) async fn label(api: &Api, number: u64, labels: &[String]) -> Result<(), Failure> {
    let path = format!("/issues/{number}/labels");
    let _: Value = api.send("put labels on a pull request", Method::POST, &path, &json!({"labels": labels})).await?;
    Ok(())
}

pub(crate) async fn ask(api: &Api, number: u64, reviewers: &[Reviewer]) -> Result<(), Failure> {
    let (users, teams) = Reviewer::apart(reviewers);
    let path = format!("/pulls/{number}/requested_reviewers");
    let document = json!({"reviewers": users, "team_reviewers": teams});
    let _: Value = api.send("ask for reviews of a pull request", Method::POST, &path, &document).await?;
    Ok(())
}

pub(crate) async fn comment(api: &Api, number: u64, words: &str) -> Result<(), Failure> {
    let path = format!("/issues/{number}/comments");
    let _: Value = api.send("comment on a pull request", Method::POST, &path, &json!({"body": words})).await?;
    Ok(())
}

pub(crate) async fn close(api: &Api, number: u64) -> Result<(), Failure> {
    let path = format!("/pulls/{number}");
    let _: Value = api.send("close a pull request", Method::PATCH, &path, &json!({"state": "closed"})).await?;
    Ok(())
}
