//! Every field that is rendered is one that the API has, by the OpenAPI schemas of its releases; and the pod passes Pod Security.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::sync::LazyLock;

use allclear::cli::check::TRIED_FROM;
use serde_json::{Value, json};

use crate::none;
use crate::render::{documents, helm, helm_with, text, top};
use crate::settings::{RENDERED, Rendered};

/// The oldest that Chart.yaml allows, two between, and the newest with schemas.
const RELEASES: [&str; 4] = ["1.33", "1.34", "1.35", "1.37"];

/// What the schemas of a release say against these objects, one line for each. A field they do not know is an error.
const VALIDATE: &str = r#"
import json, sys
import kubernetes_validate as judge

for line in open(sys.argv[1]):
    release, name, thing = json.loads(line)
    try:
        judge.validate(thing, release, strict=True)
    except judge.ValidationError as error:
        print(f"{name}, Kubernetes {release}: {thing['kind']} {thing['metadata']['name']}: {error.message} at {list(error.path)}")
    except (judge.SchemaNotFoundError, judge.InvalidSchemaError) as error:
        print(f"{name}, Kubernetes {release}: {thing['kind']} {thing['metadata']['name']}: {error}")
"#;

/// Judges what has a name by all releases that are to know it.
fn judged(objects: &[(String, Value)]) -> Vec<String> {
    let mut lines = String::new();
    for (name, object) in objects {
        for release in RELEASES {
            writeln!(lines, "{}", json!([release, name, object])).unwrap();
        }
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines).unwrap();
    let output = Command::new(top().join(".venv/bin/python"))
        .args(["-c", VALIDATE])
        .arg(file.path())
        .output()
        .unwrap_or_else(|error| panic!("no .venv ({error}), so nothing was checked: run scripts/test-setup.sh"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "nothing was checked: run scripts/test-setup.sh\n{complaint}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Everything a chart's user can add beside the parts, each where a pod has it.
fn with_habits() -> Value {
    json!({
        "commonLabels": {"team": "edge"}, "imagePullSecrets": ["registry"], "openshift": true,
        "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/allclear"}},
        "watch": {"namespaces": ["shop", "blog"]}, "rbac": {"scope": "namespaces"},
        "webhooks": {"enabled": true}, "proxy": {"aws": "http://proxy:3128", "noProxy": ".internal", "webhooks": "http://proxy:3128"},
        "caBundle": {"configMap": "corporate-authorities"}, "ha": {"enabled": true, "replicas": 3},
        "resources": {"limits": {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "10Mi"}},
        "podAnnotations": {"a": "b"}, "podLabels": {"c": "d"}, "nodeSelector": {"kubernetes.io/arch": "arm64"},
        "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}]}}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}],
        "priorityClassName": "system-cluster-critical",
        "extraEnv": [{"name": "AWS_REGION", "value": "us-east-1"}],
        "extraEnvFrom": [{"configMapRef": {"name": "more"}}],
        "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "networkPolicy": {"metricsFrom": [], "egress": {"enabled": true, "redisPorts": [], "extra": [{"ports": [{"port": 22, "protocol": "TCP"}]}]}},
        "policies": {"approvals": true, "manual": true}, "crds": {"install": true},
    })
}

/// Everything that any setting renders.
static EVERYTHING: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let mut objects = Vec::new();
    for Rendered { name, by_kustomize, by_helm } in RENDERED.iter() {
        let both = by_kustomize.iter().chain(by_helm).cloned();
        objects.extend(both.map(|object| ((*name).to_owned(), object)));
    }
    let habits = helm(("allclear", "allclear"), &with_habits()).unwrap();
    objects.extend(habits.into_iter().map(|object| ("habits".to_owned(), object)));
    for file in [
        "leaf/namespace.yaml",
        "leaf/role.yaml",
        "leaf/service-account.yaml",
        "policies/approvals.yaml",
        "policies/manual.yaml",
        "recipes/argocd-hooks.yaml",
    ] {
        objects.extend(documents(&text(&format!("deploy/{file}"))).into_iter().map(|object| (file.to_owned(), object)));
    }
    objects
});

#[test]
fn every_object_has_only_fields_that_the_api_knows() {
    assert!(EVERYTHING.len() > 300, "{}", EVERYTHING.len());
    // The same object of many settings is judged once. Kinds of the Prometheus Operator are in no schema of Kubernetes.
    let different: BTreeMap<String, &String> = EVERYTHING.iter().map(|(name, it)| (it.to_string(), name)).collect();
    let read = |(object, name): (&String, &&String)| ((*name).clone(), serde_json::from_str(object).unwrap());
    let objects: Vec<(String, Value)> = different.iter().map(read).collect();
    assert!(objects.len() > 100, "{}", objects.len());
    none("the API would refuse or forget this", &judged(&objects));
}

/// The check itself: a field in the wrong place, a wrong type and an unknown kind are seen.
#[test]
fn a_wrong_field_is_seen() {
    let deployment = |change: fn(&mut Value)| {
        let mut objects = helm(("allclear", "allclear"), &json!({})).unwrap();
        let deployment = objects.iter_mut().find(|object| object["kind"] == json!("Deployment")).unwrap();
        change(deployment);
        judged(&[("changed".to_owned(), deployment.clone())])
    };
    assert_eq!(deployment(|_| {}), Vec::<String>::new());
    let wrong: [fn(&mut Value); 4] = [
        |it| it["spec"]["template"]["spec"]["containers"][0]["enf"] = json!([]),
        |it| it["spec"]["template"]["spec"]["readOnlyRootFilesystem"] = json!(true),
        |it| it["spec"]["replicas"] = json!("2"),
        |it| it["kind"] = json!("Deploymint"),
    ];
    for change in wrong {
        assert_eq!(deployment(change).len(), RELEASES.len());
    }
}

/// <https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted>, and a read-only root on top.
#[test]
fn the_pod_passes_the_restricted_profile_in_every_setting() {
    let deployments = EVERYTHING.iter().filter(|(_, object)| object["kind"] == json!("Deployment"));
    let mut count = 0;
    for (name, deployment) in deployments {
        count += 1;
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], json!(true), "{name}");
        assert_eq!(pod["securityContext"]["seccompProfile"], json!({"type": "RuntimeDefault"}), "{name}");
        assert_ne!(pod["securityContext"]["runAsUser"], json!(0), "{name}");
        for forbidden in ["hostNetwork", "hostPID", "hostIPC", "initContainers"] {
            assert_eq!(pod[forbidden], Value::Null, "{name}: {forbidden}");
        }
        let context = json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}});
        assert_eq!(pod["containers"][0]["securityContext"], context, "{name}");
    }
    assert_eq!(count, 2 * RENDERED.len() + 1);
}

/// Versions as clouds name them.
#[test]
fn the_chart_takes_each_release_it_is_for_and_no_older_one() {
    let version = |version: &str| helm_with(("a", "b"), &json!({}), &["--kube-version", version]);
    for taken in ["v1.33.4-eks-a737599", "v1.34.1-gke.1348000", "v1.33.1+k3s1", "1.37.0"] {
        assert!(version(taken).is_ok(), "{taken}: {:?}", version(taken).unwrap_err());
    }
    let refused = version("v1.32.9-eks-a737599").unwrap_err();
    assert!(refused.contains("requires kubeVersion"), "{refused}");
}

/// One number, where a person reads it, where `allclear check` judges by it, and where helm does.
#[test]
fn the_oldest_kubernetes_is_the_same_everywhere() {
    let release = format!("1.{TRIED_FROM}");
    assert_eq!(RELEASES[0], release);
    for (path, words) in [
        ("deploy/chart/allclear/Chart.yaml", format!("kubeVersion: \">={release}.0-0\"")),
        ("docs/install.md", format!("You need Kubernetes {release} or later")),
        ("docs/check.md", format!("Holds when: Kubernetes is {release} or later")),
        ("deploy/README.md", format!("schemas of Kubernetes {}", RELEASES[..3].join(",\n"))),
    ] {
        let text = text(path).split_whitespace().collect::<Vec<_>>().join(" ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&words), "{path} does not say: {words}");
    }
}
