//! The lease as the API server has it.

use std::sync::Arc;

use allclear::adapters::clock::SystemClock;
use allclear::adapters::kubernetes::KubernetesLease;
use kernel::replica::lease::Replica;
use purge::ports::{Lease, Retry};
use sandbox::kubernetes::Kind;

use super::Bench;

fn seat(bench: &Bench, pod: &str) -> KubernetesLease {
    let us = Replica { pod: pod.to_owned(), boot: "1".to_owned() };
    KubernetesLease::new(bench.clients.request.clone(), "default", us, Arc::new(SystemClock::default()))
}

#[tokio::test]
async fn it_is_taken_renewed_given_back_and_taken_by_another() {
    let bench = Bench::start().await;
    let (a, b) = (seat(&bench, "a"), seat(&bench, "b"));
    assert_eq!(a.look().await.unwrap(), None);
    let taken = a.take(None).await.unwrap().expect("nobody was faster");
    assert_eq!((taken.holder.as_str(), taken.transitions), ("a_1", 0));
    assert_eq!(b.take(None).await.unwrap(), None, "it is there");
    let renewed = a.take(Some(&taken)).await.unwrap().expect("nobody was faster");
    assert_eq!(renewed.acquired, taken.acquired);
    assert!(renewed.version != taken.version);
    assert_eq!(b.take(Some(&taken)).await.unwrap(), None, "it has changed since");
    assert_eq!(b.look().await.unwrap(), Some(renewed.clone()));
    a.release(Some(&renewed)).await.unwrap();
    let free = b.look().await.unwrap().expect("it is there");
    assert_eq!(free.holder, "");
    let passed = b.take(Some(&free)).await.unwrap().expect("nobody was faster");
    assert_eq!((passed.holder.as_str(), passed.transitions), ("b_1", 1));
    let object = bench.api.get(Kind::Lease, "default", "allclear-leader").expect("it is there");
    assert_eq!(object["spec"]["leaseDurationSeconds"], 15);
    bench.api.delete(Kind::Lease, "default", "allclear-leader").unwrap();
    assert_eq!(b.take(Some(&passed)).await.unwrap(), None, "somebody deleted it: it is looked at again");
}

#[tokio::test]
async fn a_denied_lease_names_the_missing_right() {
    let bench = Bench::start().await;
    bench.refuse(403, 1, |request| request.method == "POST");
    let error = seat(&bench, "a").take(None).await.unwrap_err();
    assert_eq!(error.retry, Retry::Never);
    let words = error.to_string();
    assert!(
        words.ends_with("allow the owner of these credentials to create leases.coordination.k8s.io in default"),
        "{words}"
    );
}
