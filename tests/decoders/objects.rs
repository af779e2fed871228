//! Objects of our own kinds, whose specs people write and whose statuses are our memory, and the Jobs that we made.

use allclear::adapters::kubernetes::crd::{self, repo::Installation};
use allclear::adapters::kubernetes::jobs::{KubernetesJobs, Ours};
use allclear::adapters::kubernetes::objects::{Kind, PipelineKind, RepoKind};
use bytes::Bytes;
use kernel::id::RepoId;
use objects::ports::repo::Jobs;
use serde_json::Value;

use crate::api::{self, Answer};
use crate::{Target, target, text};

pub const TARGETS: &[Target] = &[
    target("pipeline", pipeline),
    target("repo", |bytes| object(&RepoKind { installation: Installation::default() }, bytes)),
    target("job", job),
    target("job_pods", job_pods),
];

/// What stands in the status is read, written, and read again: it is all that a next life knows.
fn object<K: Kind>(kind: &K, bytes: &[u8]) -> bool
where
    K::Object: PartialEq + std::fmt::Debug,
{
    // As a Go program writes it, with each name once: what has one twice is refused whole, and would be read in another way below.
    let Ok(mut value) = serde_json::from_str::<Value>(&text(bytes)) else { return false };
    let text = value.to_string();
    let object = match kind.read(&text) {
        Ok(object) => object,
        Err(why) => {
            let why = why.to_string();
            assert!(!why.is_empty() && why.len() <= 4_096 + bytes.len(), "{} bytes", why.len());
            return false;
        }
    };
    let status = K::written(&object).expect("a status has a form in JSON");
    let Some(fields) = value.as_object_mut() else { return false };
    fields.insert("status".to_owned(), status.clone());
    let Ok(again) = kind.read(&value.to_string()) else { panic!("what we wrote cannot be read: {value}") };
    let rewritten = K::written(&again).unwrap();
    assert!(
        crd::lost(&status, &rewritten).is_empty(),
        "{:?}: {status} became {rewritten}",
        crd::lost(&status, &rewritten)
    );
    assert_eq!(rewritten, status);
    true
}

/// The machine and those who ask by a request see one object.
fn pipeline(bytes: &[u8]) -> bool {
    let text = text(bytes);
    if let Ok(called) = crd::called(&text) {
        assert_eq!(Ok(called.object), crd::object(&text));
    }
    object(&PipelineKind::new(true), bytes)
}

fn jobs(bytes: Bytes) -> KubernetesJobs {
    KubernetesJobs::new(&api::clients(move |_| Answer::whole(bytes.clone())), api::tempo(), Ours::default())
}

fn job(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    api::run(async move {
        let repo = RepoId::new("shop", "web");
        let jobs = jobs(bytes);
        let (one, other) = (jobs.look(&repo, "web-1").await, jobs.look(&repo, "web-1").await);
        let words = |error: purge::ports::PortError| error.to_string();
        let (one, other) = (one.map_err(words), other.map_err(words));
        assert_eq!(one, other);
        match one {
            Ok(Some(job)) => {
                assert!(!job.uid.is_empty() && job.attempt.number > 0, "what is ours can be told apart: {job:?}");
                true
            }
            Ok(None) => false,
            Err(words) => {
                assert!(words.len() <= 4_096, "{} bytes", words.len());
                false
            }
        }
    })
}

fn job_pods(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    api::run(async move {
        let (repo, length) = (RepoId::new("shop", "web"), bytes.len());
        match jobs(bytes).pods(&repo, "web-1", "u").await {
            Ok(pods) => {
                assert!(pods.len() <= length && format!("{pods:?}").len() <= 4_096 + 64 * length);
                !pods.is_empty()
            }
            Err(error) => {
                assert!(error.to_string().len() <= 8 * 1024);
                false
            }
        }
    })
}
