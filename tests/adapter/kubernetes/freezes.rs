//! PromotionFreezes as the API server has them: said whole after each change, none where the kind is not there, and never fewer because
//! something failed.

use allclear::adapters::kubernetes::freezes::PromotionFreezes;
use futures_util::StreamExt;
use objects::ports::pipeline::FreezeBook;
use purge::ports::Flow;
use sandbox::kubernetes::{Forbidden, Kind};
use serde_json::{Value, json};
use std::sync::Arc;

use objects::pipeline::freezes::PromotionFreeze;
use purge::ports::PortError;

use super::{Bench, PATIENCE, brisk};

const GROUP: &str = "allclear.dev";

fn freeze(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "allclear.dev/v1alpha1", "kind": "PromotionFreeze", "metadata": {"name": name}, "spec": spec})
}

type Said = Result<Option<Arc<[PromotionFreeze]>>, PortError>;

/// The next thing that is said for which this holds.
async fn until(flow: &mut Flow<Said>, holds: impl Fn(&Said) -> bool) -> Said {
    let seeking = async {
        loop {
            let said = flow.next().await.expect("it never ends");
            if holds(&said) {
                return said;
            }
        }
    };
    tokio::time::timeout(PATIENCE, seeking).await.expect("it is said")
}

/// The names, each marked if it is wrong.
fn names(said: &Said) -> Vec<String> {
    let all = said.iter().flatten().flat_map(|all| all.iter());
    all.map(|one| format!("{}{}", one.name, if one.fault.is_some() { "!" } else { "" })).collect()
}

#[tokio::test]
async fn all_of_them_are_said_after_each_change_from_the_moment_the_cluster_has_the_kind() {
    let bench = Bench::start().await;
    let mut flow = PromotionFreezes::new(&bench.clients, brisk()).watch();
    let first = until(&mut flow, |_| true).await.unwrap();
    assert!(first.is_some_and(|all| all.is_empty()), "the cluster does not have the kind");
    bench.api.set_installed(GROUP, true);
    let then = until(&mut flow, |_| true).await.unwrap();
    assert!(then.is_none(), "that there were none is no answer once it has the kind");
    bench.api.apply(freeze("sale", &json!({"reason": "the sale"}))).unwrap();
    until(&mut flow, |said| names(said) == ["sale"]).await.unwrap();
    // Another CRD lets that through.
    bench.api.apply(freeze("incident", &json!({"reason": "4711", "until": "tomorrow", "selector": "all"}))).unwrap();
    until(&mut flow, |said| names(said) == ["incident!", "sale"]).await.unwrap();
    bench.api.delete(Kind::PromotionFreeze, "", "sale").unwrap();
    until(&mut flow, |said| names(said) == ["incident!"]).await.unwrap();
    bench.api.close_watches();
    bench.api.apply(freeze("later", &json!({"reason": "b"}))).unwrap();
    until(&mut flow, |said| names(said) == ["incident!", "later"]).await.unwrap();
    bench.api.set_installed(GROUP, false);
    bench.api.close_watches();
    until(&mut flow, |said| said.as_ref().is_ok_and(|all| all.as_ref().is_some_and(|all| all.is_empty())))
        .await
        .unwrap();
}

/// A real API server judges rights before it looks whether there is such a kind.
#[tokio::test]
async fn a_cluster_without_the_kind_has_none_also_where_there_is_no_right_to_it() {
    let bench = Bench::start().await;
    bench.api.forbid(Forbidden::everywhere("list", GROUP, "promotionfreezes"));
    let mut flow = PromotionFreezes::new(&bench.clients, brisk()).watch();
    let first = until(&mut flow, |_| true).await.unwrap();
    assert!(first.is_some_and(|all| all.is_empty()));
}

#[tokio::test]
async fn without_the_right_they_are_unknown_and_not_none() {
    let bench = Bench::start().await;
    bench.api.set_installed(GROUP, true);
    bench.api.apply(freeze("sale", &json!({"reason": "the sale"}))).unwrap();
    bench.api.forbid(Forbidden::everywhere("list", GROUP, "promotionfreezes"));
    bench.api.forbid(Forbidden::everywhere("watch", GROUP, "promotionfreezes"));
    let mut flow = PromotionFreezes::new(&bench.clients, brisk()).watch();
    let error = until(&mut flow, |_| true).await.unwrap_err();
    assert!(error.denied && error.to_string().contains("promotionfreezes"), "{error}");
    bench.api.allow_all();
    until(&mut flow, |said| names(said) == ["sale"]).await.unwrap();
}
