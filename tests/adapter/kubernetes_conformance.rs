//! One list of checks against "a Kubernetes API": always run against the stand-in, and against a real server wherever
//! `KUBECONFIG` names one (`cargo test --test adapter -- --ignored a_real_api_server`).
//!
//! A check that passes on both says that tests, demo and benches against the stand-in mean something. What only a
//! stand-in can be asked to do (forget its history now, lose the Gateway API) is checked on it alone and marked so.
//! Checks never look at each other's objects: each has a name of its own, which is also the label of what it makes.

mod access;
mod errors;
mod jobs;
mod kinds;
mod known;
mod pipelines;
mod read;
mod repos;
mod support;
mod watch;
mod write;

use sandbox::kubernetes::{KubernetesStandIn, Options};

use self::support::{Api, Check, run};

/// Every check, with its name.
fn checks() -> Vec<(&'static str, Check)> {
    [
        access::CHECKS,
        errors::CHECKS,
        jobs::CHECKS,
        pipelines::CHECKS,
        read::CHECKS,
        repos::CHECKS,
        watch::CHECKS,
        write::CHECKS,
    ]
    .concat()
}

// Faults: PF12
#[tokio::test]
async fn the_stand_in_passes_every_check() {
    let cluster = KubernetesStandIn::new(Options::default());
    let server = cluster.start().await.unwrap();
    let api = Api::of_kubeconfig(&cluster.kubeconfig(&server)).await.with_stand_in(&cluster);
    let report = run(api, checks()).await;
    assert!(report.failed.is_empty(), "{report}");
    assert_eq!(report.passed.len(), checks().len(), "{report}");
    server.stop().await;
}

#[tokio::test]
#[ignore = "needs KUBECONFIG with a real API server"]
async fn a_real_api_server_passes_every_check() {
    let path = std::env::var("KUBECONFIG").expect("KUBECONFIG names a file");
    let text = std::fs::read_to_string(path).unwrap();
    let report = run(Api::of_kubeconfig(&text).await, checks()).await;
    println!("{report}");
    assert!(report.failed.is_empty(), "{report}");
}
