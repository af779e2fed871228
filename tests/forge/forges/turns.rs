//! Promotions that hang hold up no others, and no thread of those who call.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use forge::keeper::Keeper;
use forge::propose::Forges;
use forge::{Authorities, Http, HttpError};
use kernel::id::{Environment, PipelineId, PromotionSeq, Revision};
use kernel::names::destination::Purpose;
use objects::pipeline::options::{Lacks, RequestOptions};
use objects::pipeline::proposal::{ForgeKind, Order, Repository};
use objects::ports::Secrets;
use objects::ports::pipeline::Forge;
use purge::ports::PortError;
use tokio::sync::Semaphore;

use crate::heads::Stopped;

/// Repositories that hang until they are let go; all others refuse.
struct Hanging {
    arrived: Semaphore,
    gate: Semaphore,
    threads: Mutex<BTreeSet<String>>,
}

#[async_trait]
impl Http for Hanging {
    async fn send(
        &self,
        request: http::Request<Bytes>,
        _: Option<&Authorities>,
        _: usize,
    ) -> Result<http::Response<Bytes>, HttpError> {
        self.threads.lock().expect("lock").insert(format!("{:?}", std::thread::current().id()));
        assert!(!request.uri().path().contains("panic"), "a panic of the test's");
        if request.uri().path().contains("hangs") {
            self.arrived.add_permits(1);
            self.gate.acquire().await.expect("open").forget();
        }
        Err(HttpError::Refused("not today".to_owned()))
    }
}

struct Safe;

#[async_trait]
impl Secrets for Safe {
    async fn read(
        &self,
        _: &str,
        _: &str,
        _: Purpose,
    ) -> Result<std::collections::BTreeMap<String, Vec<u8>>, PortError> {
        Ok([("token".to_owned(), b"hunter2".to_vec())].into())
    }
}

fn order(namespace: &str, repository: &str) -> Order {
    Order {
        id: format!("{namespace}/{repository}"),
        pipeline: PipelineId::new(namespace, "web"),
        environment: Environment("prod".to_owned()),
        seq: PromotionSeq(1),
        from: None,
        revision: Revision("1".to_owned()),
        repository: Repository {
            forge: ForgeKind::GitHub,
            url: format!("https://git.example.com/{namespace}/{repository}"),
            base: "main".to_owned(),
            path: None,
            secret: Some("forge".to_owned()),
        },
        started_at: 0,
        approved_by: None,
        chosen: None,
        apps: Vec::new(),
        options: RequestOptions::default(),
        lacks: Lacks::new(),
        overwrite: false,
    }
}

// Faults: RF7
#[tokio::test]
async fn promotions_that_hang_hold_up_neither_others_nor_the_thread_of_those_who_call() {
    let http = Arc::new(Hanging { arrived: Semaphore::new(0), gate: Semaphore::new(0), threads: Mutex::default() });
    let keeper = Keeper::new(Arc::new(Stopped::default()));
    let forges = Forges::new(Arc::clone(&http) as Arc<dyn Http>, Arc::new(Safe), keeper);
    let hang = ["hangs-1", "hangs-1", "hangs-2", "hangs-3"].map(|name| order("shop", name));
    let hanging = futures_util::future::join_all(hang.iter().map(|order| forges.propose(order)));
    let others = async {
        http.arrived.acquire_many(2).await.expect("open").forget();
        for name in ["web", "api", "panics", "panics", "web"] {
            let failed = forges.propose(&order("blog", name)).await.expect_err("refused").to_string();
            let expected = if name == "panics" { "the work broke off" } else { "not today" };
            assert!(failed.contains(expected), "{failed}");
        }
        http.gate.add_permits(100);
    };
    let all = async { tokio::join!(hanging, others) };
    let (hung, ()) = tokio::time::timeout(Duration::from_secs(60), all).await.expect("nothing waits for ever");
    assert!(hung.iter().all(|hung| hung.as_ref().is_err_and(|error| error.to_string().contains("not today"))));
    let here = format!("{:?}", std::thread::current().id());
    assert!(!http.threads.lock().expect("lock").contains(&here));
}
