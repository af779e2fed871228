//! Statuses as the commit 06d3182 wrote them, which clusters hold: each is read, and written again as it was.
//!
//! Each line is one object's `status`; the first ones are compared with the full ones in the tests of `remembered`, so that each name
//! still means what it meant. The README beside them says how they were made.

use std::fmt::Debug;

use objects::pipeline::status::Phase as PromotionPhase;
use objects::repo::status::Phase as RunPhase;
use serde_json::{Value, json};

use super::super::repo::{self, Installation};
use super::super::{object, written};

pub const PIPELINES: &str = include_str!("../../../../../tests/fixtures/06d3182/pipeline-statuses.jsonl");
pub const REPOS: &str = include_str!("../../../../../tests/fixtures/06d3182/repo-statuses.jsonl");

/// Reads each line as the status of an object with this spec, and writes it again; the objects.
fn written_again<T, E: Debug>(
    lines: &str,
    spec: &Value,
    read: impl Fn(&str) -> Result<T, String>,
    write: fn(&T) -> Result<Value, E>,
) -> Vec<T> {
    let metadata = json!({"namespace": "shop", "name": "web", "uid": "u-1", "resourceVersion": "1"});
    let again = |line: &str| {
        let status: Value = serde_json::from_str(line).unwrap();
        let object = read(&json!({"metadata": metadata, "spec": spec, "status": status}).to_string()).unwrap();
        assert_eq!(write(&object).unwrap(), status);
        object
    };
    lines.lines().map(again).collect()
}

#[test]
fn a_stored_status_of_a_pipeline_is_read_and_written_again_as_it_was() {
    let app = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spec = json!({"appRef": app, "environments": [{"name": "prod", "targets": [{"namespace": "prod"}]}]});
    let read = written_again(PIPELINES, &spec, object, written);
    for phase in PromotionPhase::ALL {
        let environments = read.iter().flat_map(|one| one.status.environments.values());
        let mut promotions = environments.filter_map(|one| one.promotion.as_ref());
        assert!(promotions.any(|promotion| promotion.phase == phase), "{phase:?}");
    }
}

#[test]
fn a_stored_status_of_a_repo_is_read_and_written_again_as_it_was() {
    let spec = json!({"url": "https://git.example.com/platform/infra"});
    let read = |json: &str| repo::object(json, &Installation::default());
    let read = written_again(REPOS, &spec, read, repo::written);
    for phase in RunPhase::ALL {
        assert!(read.iter().filter_map(|one| one.status.run.as_ref()).any(|run| run.phase == phase), "{phase:?}");
    }
}
