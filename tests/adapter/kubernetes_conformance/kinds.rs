//! Pipelines and Repos, added for the checks and taken away again.

use serde_json::{Value, json};

use super::support::{Api, version};

/// A group that nobody serves.
pub const OTHER: &str = "nothing.allclear.dev";

/// What the CRD of `pipelines.weave.works` has of a status.
pub const PRUNING_FIELDS: [&str; 3] = ["observedGeneration", "conditions", "environments"];

/// The groups of Pipelines under our CRD, and under one without our fields: in the stand-in, and in a real cluster. There they are
/// of the checks alone, so that no stored object is ever touched, and no allclear that runs there joins in.
const WHOLE: (&str, &str) = ("allclear.dev", "check.allclear.dev");
const PRUNING: (&str, &str) = ("pipelines.weave.works", "pruning.check.allclear.dev");

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const STATUS: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/status";

/// How often a new kind is looked for, 100 ms apart: the server takes a second or two to serve it.
const LOOKS_MAX: u32 = 200;

/// What the checks have added.
pub struct Kinds(Vec<String>);

impl Kinds {
    /// Adds what is missing.
    pub async fn add(api: &Api) -> Self {
        if let Some(stand_in) = &api.stand_in {
            stand_in.set_installed(WHOLE.0, true);
            stand_in.set_installed(PRUNING.0, true);
            return Self(Vec::new());
        }
        let mut added = Vec::new();
        let own: Value = serde_saphyr::from_str(include_str!("../../../deploy/crds/pipelines.yaml")).unwrap();
        let repos: Value = serde_saphyr::from_str(include_str!("../../../deploy/crds/repos.yaml")).unwrap();
        let all =
            [("pipelines", WHOLE.1, own.clone()), ("pipelines", PRUNING.1, pruning(own)), ("repos", WHOLE.1, repos)];
        for (plural, group, mut crd) in all {
            let name = format!("{plural}.{group}");
            crd["metadata"]["name"] = json!(name);
            crd["spec"]["group"] = json!(group);
            match api.post(CRDS, &crd).await {
                Ok(_) => added.push(name),
                // Left over by checks that were ended half-way.
                Err(there) => assert_eq!(there.reason, "AlreadyExists", "{name}: {there:?}"),
            }
            served(api, group, plural).await;
        }
        Self(added)
    }

    /// Takes away what was added.
    pub async fn remove(self, api: &Api) {
        for name in self.0 {
            api.delete(&format!("{CRDS}/{name}")).await.unwrap();
        }
    }
}

/// Waits until the objects of a group can be listed, and written to: a new kind is established a little before.
async fn served(api: &Api, group: &str, plural: &str) {
    let list = format!("/apis/{group}/v1alpha1/namespaces/{}/{plural}", api.namespace);
    for _ in 0..LOOKS_MAX {
        if api.get(&list).await.is_ok_and(|list| !version(&list).is_empty()) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{group} is not served");
}

/// The same CRD with no more of a status than the older controller's has.
fn pruning(mut crd: Value) -> Value {
    let keep = |schema: &mut Value, kept: &[&str]| {
        schema["properties"].as_object_mut().unwrap().retain(|name, _| kept.contains(&name.as_str()));
        schema.as_object_mut().unwrap().remove("required");
    };
    let status = crd.pointer_mut(STATUS).unwrap();
    keep(status, &PRUNING_FIELDS);
    let environment = &mut status["properties"]["environments"]["additionalProperties"];
    keep(environment, &["targets", "waitingApproval"]);
    keep(&mut environment["properties"]["waitingApproval"], &["revision"]);
    crd
}

impl Api {
    /// The group of Pipelines whose CRD is ours.
    pub fn whole(&self) -> &'static str {
        if self.stand_in.is_some() { WHOLE.0 } else { WHOLE.1 }
    }

    /// The group of Pipelines whose CRD drops what is ours.
    pub fn pruning(&self) -> &'static str {
        if self.stand_in.is_some() { PRUNING.0 } else { PRUNING.1 }
    }
}
