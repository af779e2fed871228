//! The installations that are tried: how each is asked of kustomize, and how of the chart.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::render::{helm, kustomize};

/// One installation, asked for in both ways.
pub struct Setting {
    pub name: &'static str,
    /// The namespace that an overlay sets, where it is not the base's.
    pub namespace: Option<&'static str>,
    pub resources: &'static [&'static str],
    pub components: &'static [&'static str],
    /// The same, said to the chart.
    pub values: Value,
}

impl Setting {
    fn by_kustomize(&self) -> Vec<Value> {
        kustomize(self.namespace, self.resources, self.components)
    }

    fn by_helm(&self) -> Vec<Value> {
        let namespace = self.namespace.unwrap_or("allclear");
        helm(("allclear", namespace), &self.values).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

/// One installation as both ways render it.
pub struct Rendered {
    pub name: &'static str,
    pub by_kustomize: Vec<Value>,
    pub by_helm: Vec<Value>,
}

/// All of them, rendered once for all tests.
pub static RENDERED: LazyLock<Vec<Rendered>> = LazyLock::new(|| {
    let render = |setting: Setting| Rendered {
        name: setting.name,
        by_kustomize: setting.by_kustomize(),
        by_helm: setting.by_helm(),
    };
    all().into_iter().map(render).collect()
});

/// The base with one component.
fn component(name: &'static str, components: &'static [&'static str], values: Value) -> Setting {
    Setting { name, namespace: None, resources: &["base"], components, values }
}

/// An overlay of deploy/.
fn overlay(name: &'static str, resources: &'static [&'static str], values: Value) -> Setting {
    Setting { name, namespace: None, resources, components: &[], values }
}

/// Every tree and every component of deploy/ at least once, alone and together.
pub fn all() -> Vec<Setting> {
    trees().into_iter().chain(components()).chain([everything()]).collect()
}

fn on() -> Value {
    json!({"enabled": true})
}

fn group() -> Value {
    json!({"enabled": true, "member": "eu-1", "members": ["eu-1", "eu-2", "us-1"]})
}

fn secrets() -> Value {
    json!([{"namespace": "shop", "names": ["eu-1", "forge"]}])
}

fn jobs() -> Value {
    json!([{"namespace": "platform", "secrets": ["git"]}])
}

fn trees() -> [Setting; 6] {
    let weave = json!({
        "pipelines": {"enabled": true, "weave": true, "gitopsClusters": true, "apps": true},
        "crds": {"install": true, "weave": true},
    });
    [
        overlay("base", &["base"], json!({})),
        overlay("ha", &["overlays/ha"], json!({"ha": on()})),
        overlay("group", &["overlays/group"], json!({"ha": on(), "group": group()})),
        overlay("weave", &["overlays/weave"], weave),
        Setting {
            name: "one namespace",
            namespace: Some("shop"),
            resources: &["overlays/namespaced"],
            components: &[],
            values: json!({"rbac": {"scope": "namespaces"}}),
        },
        Setting {
            name: "one namespace, two replicas",
            namespace: Some("payments"),
            resources: &["overlays/namespaced"],
            components: &["components/ha", "components/openshift"],
            values: json!({"rbac": {"scope": "namespaces"}, "ha": on(), "openshift": true}),
        },
    ]
}

fn components() -> [Setting; 15] {
    [
        component("pipelines", &["components/pipelines"], json!({"pipelines": on()})),
        component("repo", &["components/repo"], json!({"repos": on()})),
        component(
            "repo and where its Jobs run",
            &["components/repo", "components/repo-namespace"],
            json!({"repos": {"enabled": true, "namespaces": jobs()}}),
        ),
        component("repo-destroy", &["components/repo-destroy"], json!({"repos": {"destroy": true}})),
        component("repo-approvals", &["components/repo-approvals"], json!({"approvers": {"repos": true}})),
        component("approvals-by-hand", &["components/approvals-by-hand"], json!({"approvers": {"pipelines": true}})),
        component("readers", &["components/reader", "components/ledger-reader"], json!({"readers": on()})),
        component("apps", &["components/apps"], json!({"pipelines": {"apps": true}})),
        component("gitopsclusters", &["components/gitopsclusters"], json!({"pipelines": {"gitopsClusters": true}})),
        component("hooks", &["components/hooks"], json!({"hooks": on()})),
        component("fresh", &["components/fresh"], json!({"fresh": on()})),
        component("secrets", &["components/secrets"], json!({"pipelines": {"secrets": secrets()}})),
        component("egress", &["components/egress"], json!({"networkPolicy": {"egress": on()}})),
        component("openshift", &["components/openshift"], json!({"openshift": true})),
        component("group alone", &["components/group"], json!({"group": group()})),
    ]
}

fn everything() -> Setting {
    Setting {
        name: "everything",
        namespace: None,
        resources: &["base", "crds"],
        components: &[
            "components/pipelines",
            "components/repo",
            "components/repo-namespace",
            "components/repo-destroy",
            "components/repo-approvals",
            "components/approvals-by-hand",
            "components/reader",
            "components/ledger-reader",
            "components/apps",
            "components/gitopsclusters",
            "components/hooks",
            "components/fresh",
            "components/secrets",
            "components/egress",
            "components/ha",
            "components/group",
        ],
        values: json!({
            "pipelines": {"enabled": true, "gitopsClusters": true, "apps": true, "secrets": secrets()},
            "repos": {"enabled": true, "destroy": true, "namespaces": jobs()},
            "approvers": {"pipelines": true, "repos": true},
            "readers": on(),
            "hooks": on(),
            "fresh": on(),
            "ha": on(),
            "group": group(),
            "networkPolicy": {"egress": on()},
            "crds": {"install": true, "weave": true},
        }),
    }
}
