//! Kinds that the operator declares: what is read of an object, and what a cluster without the kind says.

use allclear::adapters::kubernetes::{Cluster, Scope};
use kernel::id::{Kind as WorkloadKind, WorkloadId};
use purge::ports::ClusterView;
use sandbox::kubernetes::Kind;
use serde_json::json;

use super::kinds::object;
use super::rollouts::until;
use super::{Bench, brisk};

fn declared() -> WorkloadKind {
    use kernel::expression::Expression;
    use kernel::id::custom::{CustomKind, Declaration};
    let declaration = Declaration {
        api_version: "apps.kruise.io/v1alpha1".into(),
        kind: "CloneSet".into(),
        word: "clonesets.apps.kruise.io".into(),
        template: "/spec/template".into(),
        selector: "/spec/selector".into(),
        hash_label: "controller-revision-hash".into(),
        complete: Expression::parse("self.status.updatedReadyReplicas == self.spec.replicas").unwrap(),
        failed: None,
    };
    WorkloadKind::Custom(CustomKind::declare(declaration).unwrap())
}

fn view(bench: &Bench) -> Cluster {
    Cluster::new(&bench.clients, Scope::All, brisk()).following([WorkloadKind::Deployment, declared()].into())
}

// Faults: W9
#[tokio::test]
async fn a_cluster_without_the_kind_leaves_it_out_and_follows_it_once_it_is_there() {
    let bench = Bench::start().await;
    let kind = declared();
    bench.api.set_installed("apps.kruise.io", true);
    bench.api.apply(object(kind, "web", "shop/web:1", 2)).unwrap();
    let mut nothing = object(kind, "none", "shop/web:1", 2);
    nothing["spec"]["selector"] = json!({"app": "none"});
    bench.api.apply(nothing).unwrap();
    bench.api.set_installed("apps.kruise.io", false);
    let view = view(&bench);
    let mut sights = view.watch();
    let words = until(&mut sights, "refused clonesets.apps.kruise.io/*").await;
    assert!(words.iter().all(|word| !word.starts_with("synced clonesets")), "left out, and not empty: {words:?}");
    let present = view.workloads("shop").await.unwrap();
    assert!(!present.kinds.contains(&kind), "it is not known what is there");

    bench.api.set_installed("apps.kruise.io", true);
    let words = until(&mut sights, "synced clonesets.apps.kruise.io/*, all").await;
    assert!(words.contains(&"clonesets.apps.kruise.io web".to_owned()), "{words:?}");
    let unreadable = "none cannot be read: its selector has neither matchLabels nor matchExpressions";
    assert!(words.contains(&unreadable.to_owned()), "{words:?}");
    let web = WorkloadId::new(kind, "shop", "web");
    let found = view.workload(&web).await.unwrap().unwrap();
    assert_eq!((found.id, found.object), (web.clone(), kind));
    assert_eq!(found.version.unwrap().to_string(), "web shop/web:1");
    assert!(found.selector.matches(&found.template_labels));

    let status = json!({"observedGeneration": 1, "updatedReadyReplicas": 2});
    bench.api.patch(Kind::CloneSet, "shop", "web", &json!({"status": status})).unwrap();
    until(&mut sights, "clonesets.apps.kruise.io web").await;
    let found = view.workload(&web).await.unwrap().unwrap();
    assert_eq!(found.standing(false), kinds::reported::Standing::Complete);
    // The kind is removed: its records stay, and are not looked at.
    bench.api.set_installed("apps.kruise.io", false);
    bench.api.expire_watches();
    let words = until(&mut sights, "refused clonesets.apps.kruise.io/*").await;
    assert!(!words.contains(&"web is gone".to_owned()), "{words:?}");
}
