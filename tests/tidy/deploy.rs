//! What deploy/ asks of a cluster and of an AWS account: the least that works, each with a reason.

mod rights;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use self::rights::MORE_RIGHTS;
use crate::none;
use crate::source::{file, files, rust};

/// All rights there are, as "group/resource: verbs", or "group/resource/name: verbs" where they are limited to one object. A new
/// one is added here in the commit that needs it, with the reason in the manifest. Nothing here names Secrets, and nothing
/// changes a workload.
const CLUSTER_RIGHTS: [(&str, &str); 14] = [
    ("/events", "create"),
    ("/namespaces/kube-system", "get"),
    ("/pods", "list watch"),
    ("/services", "list watch"),
    ("apps/deployments", "get list watch"),
    ("apps/statefulsets", "get list watch"),
    ("apps/daemonsets", "get list watch"),
    ("argoproj.io/rollouts", "get list watch"),
    ("discovery.k8s.io/endpointslices", "list"),
    ("gateway.networking.k8s.io/gateways", "get"),
    ("gateway.networking.k8s.io/grpcroutes", "list watch"),
    ("gateway.networking.k8s.io/httproutes", "list watch"),
    ("gateway.networking.k8s.io/referencegrants", "list"),
    ("networking.k8s.io/ingresses", "list watch"),
];

/// The rights in our own namespace.
const OWN_RIGHTS: [(&str, &str); 3] = [
    ("/configmaps", "create delete get list update"),
    ("coordination.k8s.io/leases", "create"),
    ("coordination.k8s.io/leases/allclear-leader", "get update"),
];

fn documents(path: &str) -> Vec<Value> {
    let text = file(path).text;
    let parts = text.split("\n---\n").map(serde_saphyr::from_str);
    parts.map(|part| part.unwrap_or_else(|error| panic!("{path}: {error}"))).collect()
}

fn of_kind(path: &str, kind: &str) -> Value {
    documents(path).into_iter().find(|found| found["kind"] == kind).unwrap_or_else(|| panic!("{path} has no {kind}"))
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// The rules of a role as "group/resource", or "group/resource/name" for each name, → "verbs, sorted".
fn rights(role: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for rule in role["rules"].as_array().unwrap() {
        let mut verbs = strings(&rule["verbs"]);
        verbs.sort();
        let names = strings(&rule["resourceNames"]);
        for group in strings(&rule["apiGroups"]) {
            for resource in strings(&rule["resources"]) {
                let all = names.is_empty().then(|| format!("{group}/{resource}"));
                for right in names.iter().map(|name| format!("{group}/{resource}/{name}")).chain(all) {
                    let earlier = found.insert(right.clone(), verbs.join(" "));
                    assert_eq!(earlier, None, "{right} has two rules");
                }
            }
        }
    }
    found
}

fn expected(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(right, verbs)| ((*right).to_owned(), (*verbs).to_owned())).collect()
}

#[test]
fn the_account_has_the_rights_it_needs_and_no_other() {
    let cluster = of_kind("deploy/base/cluster-role.yaml", "ClusterRole");
    assert_eq!(rights(&cluster), expected(&CLUSTER_RIGHTS));
    assert_eq!(rights(&of_kind("deploy/base/ledger-role.yaml", "Role")), expected(&OWN_RIGHTS));
    let namespaced = of_kind("deploy/overlays/namespaced/role.yaml", "Role");
    // A Role cannot grant what is in no namespace; group.member has to be set there.
    let rules = cluster["rules"].as_array().unwrap().iter();
    let rules: Vec<&Value> = rules.filter(|rule| rule["resources"] != json!(["namespaces"])).collect();
    assert_eq!(namespaced["rules"], json!(rules), "the overlay's Role is the ClusterRole for one namespace");
}

/// What we say to apply alone, in the log and in runbooks, is complete without kustomize.
#[test]
fn roles_of_the_base_can_be_applied_each_by_itself() {
    for path in ["deploy/base/cluster-role.yaml", "deploy/base/ledger-role.yaml"] {
        for document in documents(path) {
            let kind = document["kind"].as_str().unwrap();
            let own = document["metadata"]["namespace"].as_str();
            assert_eq!(own, (!kind.starts_with("Cluster")).then_some("allclear"), "{path}: {kind}");
            for subject in document["subjects"].as_array().into_iter().flatten() {
                assert_eq!(subject["namespace"], "allclear", "{path}: {kind}");
            }
        }
    }
}

#[test]
fn a_component_gives_what_it_is_for_and_a_leaf_is_only_read() {
    for (folder, kind, list) in MORE_RIGHTS {
        let role = of_kind(&format!("deploy/{folder}/role.yaml"), kind);
        assert_eq!(rights(&role), expected(list), "{folder}");
    }
    let roles = files("deploy").into_iter().filter(|file| file.path.ends_with("role.yaml"));
    let listed: BTreeSet<String> =
        MORE_RIGHTS.iter().map(|(folder, ..)| format!("deploy/{folder}/role.yaml")).collect();
    let others = roles.map(|file| file.path).filter(|path| !listed.contains(path));
    let others: Vec<String> = others.filter(|path| !path.starts_with("deploy/base/")).collect();
    assert_eq!(others, ["deploy/overlays/namespaced/role.yaml"], "a role that no list holds");
    for policy in ["approvals", "manual"] {
        let path = format!("deploy/policies/{policy}.yaml");
        let (policy, binding) =
            (of_kind(&path, "ValidatingAdmissionPolicy"), of_kind(&path, "ValidatingAdmissionPolicyBinding"));
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        assert_eq!(
            (&policy["spec"]["failurePolicy"], &binding["spec"]["validationActions"]),
            (&json!("Fail"), &json!(["Deny"]))
        );
    }
}

/// Every component names the account of the base, since no transformer of the base reaches it.
#[test]
fn a_component_binds_the_account_of_the_base() {
    let overlays = [
        "components/apps",
        "components/gitopsclusters",
        "components/hooks",
        "components/pipelines",
        "components/repo",
        "components/repo-namespace",
        "components/secrets",
        "overlays/weave",
    ];
    for folder in overlays {
        let bindings =
            documents(&format!("deploy/{folder}/role.yaml")).into_iter().filter(|one| one["subjects"].is_array());
        let account = json!([{"kind": "ServiceAccount", "name": "allclear", "namespace": "allclear"}]);
        assert!(bindings.map(|binding| binding["subjects"].clone()).eq([account]), "{folder}");
    }
}

/// What Pipelines read, and what Repos make: components allow it, Secrets by their names alone, Jobs in the namespaces with Repos.
const BY_COMPONENTS: [&str; 5] = ["gitopsclusters", "histories", "jobs", "promotionfreezes", "secrets"];

/// What commands ask with their caller's rights: those of `system:basic-user` and `system:public-info-viewer`, or a person's own.
const BY_CALLERS: [&str; 4] = ["selfsubjectaccessreviews", "selfsubjectreviews", "subjectaccessreviews", "version"];

/// What the adapters read or write, by the plural in their requests, is what the account may: no more, no less.
#[test]
fn every_kind_the_adapters_ask_for_is_in_a_role() {
    let mut asked = BTreeSet::new();
    for source in rust(&["src/adapters", "src/apiserver"]) {
        for (_, rest) in source.text.match_indices("Resource::new(").map(|(at, _)| source.text.split_at(at)) {
            // Where the last argument is no literal, the kind comes from data.
            let named = rest.split(')').next().and_then(|call| call.strip_suffix('"')?.rsplit('"').next());
            asked.extend(named.map(str::to_owned));
        }
    }
    let granted =
        CLUSTER_RIGHTS.iter().chain(&OWN_RIGHTS).filter_map(|(right, _)| right.split('/').nth(1).map(str::to_owned));
    let beside = BY_COMPONENTS.iter().chain(&BY_CALLERS).map(|plural| (*plural).to_owned());
    let granted: BTreeSet<String> = granted.chain(beside).collect();
    assert_eq!(asked, granted);
}

#[test]
fn each_right_has_its_reason_right_above_it() {
    let mut silent = Vec::new();
    for manifest in files("deploy").iter().filter(|file| file.path.ends_with("role.yaml")) {
        let lines: Vec<&str> = manifest.text.lines().map(str::trim).collect();
        for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("- apiGroups:")) {
            let above = lines[..at].iter().rev().take_while(|line| line.starts_with('#'));
            if !above.last().is_some_and(|line| line.starts_with("# Reason: ")) {
                silent.push(format!("{}:{}", manifest.path, at + 1));
            }
        }
    }
    none("a right without a reason", &silent);
}

/// <https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted>, and a read-only root on top.
#[test]
fn the_pod_passes_the_restricted_profile() {
    let deployment = of_kind("deploy/base/deployment.yaml", "Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], json!(true));
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], json!("RuntimeDefault"));
    assert_ne!(pod["securityContext"]["runAsUser"], json!(0));
    for forbidden in ["hostNetwork", "hostPID", "hostIPC", "initContainers", "ephemeralContainers"] {
        assert_eq!(pod[forbidden], Value::Null, "{forbidden}");
    }
    let volumes = pod["volumes"].as_array().unwrap();
    assert!(volumes.iter().all(|volume| volume.get("hostPath").is_none()), "{volumes:?}");
    let containers = pod["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1);
    let container = &containers[0];
    let context = &container["securityContext"];
    assert_eq!(context["allowPrivilegeEscalation"], json!(false));
    assert_eq!(context["readOnlyRootFilesystem"], json!(true));
    assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
    assert_eq!(context["privileged"], Value::Null);
    assert!(container["ports"].as_array().unwrap().iter().all(|port| port.get("hostPort").is_none()));
    let namespace = of_kind("deploy/base/namespace.yaml", "Namespace");
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], json!("restricted"));
}

#[test]
fn the_pod_is_bounded_probed_and_knows_its_namespace() {
    let deployment = of_kind("deploy/base/deployment.yaml", "Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(pod["terminationGracePeriodSeconds"], json!(10));
    assert_eq!(pod["serviceAccountName"], json!("allclear"));
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], json!("/livez"));
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], json!("/readyz"));
    assert!(container["resources"]["limits"]["memory"].is_string());
    assert!(container["resources"]["requests"]["cpu"].is_string());
    let field = |name: &str| {
        let env = container["env"].as_array().unwrap();
        let found = env.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("{name} is not given"));
        found["valueFrom"]["fieldRef"]["fieldPath"].clone()
    };
    assert_eq!(field("POD_NAMESPACE"), json!("metadata.namespace"));
    assert_eq!(field("POD_NAME"), json!("metadata.name"));
}

/// Without a command the program shows its commands and ends.
#[test]
fn whatever_starts_the_controller_says_run() {
    let deployment = of_kind("deploy/base/deployment.yaml", "Deployment");
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["args"], json!(["run"]));
    assert!(file("deploy/Dockerfile").text.lines().any(|line| line == "CMD [\"run\"]"));
}

// Faults: T17
/// Variables of service links could look like ours; metrics name namespaces, and nothing asks a scraper who it is.
#[test]
fn the_pod_gets_no_variables_for_services_and_lets_only_scrapers_in() {
    let deployment = of_kind("deploy/base/deployment.yaml", "Deployment");
    let template = &deployment["spec"]["template"];
    assert_eq!(template["spec"]["enableServiceLinks"], json!(false));
    let ports = template["spec"]["containers"][0]["ports"].as_array().unwrap();
    assert!(ports.len() == 1 && ports[0]["name"] == json!("http"), "{ports:?}");
    let policy = of_kind("deploy/base/network-policy.yaml", "NetworkPolicy");
    let selected = policy["spec"]["podSelector"]["matchLabels"].as_object().unwrap();
    assert!(
        selected.iter().all(|(label, value)| template["metadata"]["labels"][label] == *value) && !selected.is_empty()
    );
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress"]));
    let rules = policy["spec"]["ingress"].as_array().unwrap();
    assert_eq!(rules.len(), 1, "{rules:?}");
    // An empty list of peers, or one without a selector, would let everybody in.
    let from = rules[0]["from"].as_array().unwrap();
    let named = |peer: &Value| !peer["namespaceSelector"]["matchLabels"].as_object().unwrap().is_empty();
    assert!(!from.is_empty() && from.iter().all(named), "{from:?}");
    assert_eq!(rules[0]["ports"], json!([{"port": "http", "protocol": "TCP"}]));
    let service = of_kind("deploy/base/service.yaml", "Service");
    assert_eq!(service["spec"]["ports"], json!([{"name": "http", "port": 8080, "targetPort": "http"}]));
}

/// The port that is opened is the one that the Service and the policy name, and nobody but those named may come to it.
#[test]
fn the_endpoints_for_other_programs_are_opened_for_those_that_are_named() {
    let component = file("deploy/components/hooks/kustomization.yaml").text;
    for line in ["value: 0.0.0.0:8082", "name: hooks", "containerPort: 8082"] {
        assert!(component.contains(line), "{line}");
    }
    let service = of_kind("deploy/components/hooks/service.yaml", "Service");
    assert_eq!(service["spec"]["ports"], json!([{"name": "hooks", "port": 8082, "targetPort": "hooks"}]));
    let policy = of_kind("deploy/components/hooks/network-policy.yaml", "NetworkPolicy");
    let rules = policy["spec"]["ingress"].as_array().unwrap();
    assert_eq!((rules.len(), &rules[0]["ports"]), (1, &json!([{"port": "hooks", "protocol": "TCP"}])));
    let from = rules[0]["from"].as_array().unwrap();
    let named = |peer: &Value| !peer["namespaceSelector"]["matchLabels"].as_object().unwrap().is_empty();
    assert!(!from.is_empty() && from.iter().all(named), "{from:?}");
    let selected = |object: &Value| object["app.kubernetes.io/name"] == json!("allclear");
    assert!(selected(&service["spec"]["selector"]) && selected(&policy["spec"]["podSelector"]["matchLabels"]));
}

/// Jobs fetch with the very image that made them: an overlay takes it from the Deployment, and no file names it twice.
#[test]
fn the_steps_of_a_job_run_the_image_of_the_deployment() {
    let component = &documents("deploy/components/repo/kustomization.yaml")[0];
    let variable = "ALLCLEAR__REPO__STEP_IMAGE";
    assert!(component["patches"][0]["patch"].as_str().unwrap().contains(&format!("name: {variable}")));
    let replacement = &component["replacements"][0];
    let container = "spec.template.spec.containers.[name=allclear]";
    assert_eq!(replacement["source"]["fieldPath"], json!(format!("{container}.image")));
    assert_eq!(replacement["targets"][0]["fieldPaths"], json!([format!("{container}.env.[name={variable}].value")]));
    let deployment = of_kind("deploy/base/deployment.yaml", "Deployment");
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["name"], json!("allclear"));
}

/// A release gives them by digest.
#[test]
fn the_bases_of_the_image_are_arguments() {
    let dockerfile = file("deploy/Dockerfile").text;
    let bases = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("FROM ")?.split(' ').find(|word| !word.starts_with("--")));
    assert_eq!(bases.collect::<Vec<_>>(), ["${BUILD_BASE}", "scratch", "${RUN_BASE}", "${SSH_BASE}", "plain", "plain"]);
}

/// A Secret is never needed to start, and what README, docs/ and the installed configuration say is below /etc/allclear can be there.
#[test]
fn the_files_that_are_named_below_the_mount_come_from_somewhere() {
    let deployment = of_kind("deploy/base/deployment.yaml", "Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], json!("/etc/allclear"));
    // The whole of allclear-webhooks is mounted: files of keys may lie beside this one.
    let mut mounted = BTreeSet::from(["config.toml".to_owned(), "webhooks.json".to_owned()]);
    for source in pod["volumes"][0]["projected"]["sources"].as_array().unwrap() {
        assert!(source["secret"].is_null() || source["secret"]["optional"] == json!(true), "{source}");
        let items = source["secret"]["items"].as_array().into_iter().flatten();
        mounted.extend(items.map(|item| item["path"].as_str().unwrap().to_owned()));
    }
    let mut missing = Vec::new();
    let pages = files("docs").into_iter().chain(["README.md", "deploy/base/config.toml"].map(file));
    for document in pages {
        for rest in document.text.split("/etc/allclear/").skip(1) {
            let name =
                rest.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c)).next().unwrap_or_default();
            if !mounted.contains(name.trim_end_matches('.')) {
                missing.push(format!("{}: {name}", document.path));
            }
        }
    }
    none("a file that nothing mounts", &missing);
}

/// kubectl renders it where there is one (`make manifests`); here, that every file it names is there and none is left over.
#[test]
fn the_kustomization_names_every_file_beside_it() {
    let all =
        files("deploy").into_iter().filter_map(|file| Some(file.path.strip_suffix("/kustomization.yaml")?.to_owned()));
    let all: Vec<String> = all.collect();
    assert!(all.len() >= 10, "{all:?}");
    for folder in &all {
        let kustomization = &documents(&format!("{folder}/kustomization.yaml"))[0];
        let (resources, components) = (strings(&kustomization["resources"]), strings(&kustomization["components"]));
        let (elsewhere, here): (Vec<String>, Vec<String>) =
            resources.into_iter().chain(components).partition(|name| name.starts_with("../../"));
        let known = elsewhere.iter().map(|name| name.replace("../..", "deploy"));
        assert!(known.into_iter().all(|name| all.contains(&name)), "{folder}: {elsewhere:?}");
        let mut named: BTreeSet<String> = here.into_iter().collect();
        for generator in kustomization["configMapGenerator"].as_array().into_iter().flatten() {
            named.extend(strings(&generator["files"]));
        }
        let beside =
            files(folder).into_iter().filter_map(|file| Some(file.path.strip_prefix(folder.as_str())?[1..].to_owned()));
        let beside: BTreeSet<String> = beside.filter(|name| name != "kustomization.yaml").collect();
        assert_eq!(named, beside, "{folder}");
    }
}

/// What a policy of AWS allows: each action with its resource and its condition.
fn allowed(path: &str) -> BTreeMap<String, (String, Value)> {
    let policy: Value = serde_json::from_str(&file(path).text).unwrap();
    let mut allowed = BTreeMap::new();
    for statement in policy["Statement"].as_array().unwrap() {
        assert_eq!(statement["Effect"], json!("Allow"));
        let action = &statement["Action"];
        let actions = action.as_str().map_or_else(|| strings(action), |one| vec![one.to_owned()]);
        let limits = (statement["Resource"].as_str().unwrap().to_owned(), statement["Condition"].clone());
        allowed.extend(actions.into_iter().map(|action| (action, limits.clone())));
    }
    allowed
}

/// <https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoncloudfront.html>: all actions but the
/// two listings can be limited to distributions or distribution tenants, and those to a tag (`aws:ResourceTag/${TagKey}` is a condition
/// key of the resource types `distribution` and `distribution-tenant`). Which resource a domain without a distribution tenant would be is
/// not documented, so looking for one by domain is allowed on all, as their listing is.
#[test]
fn the_aws_policies_are_the_least_that_works() {
    let by_tag = json!({"StringEquals": {"aws:ResourceTag/allclear": "true"}});
    for (path, condition) in [("deploy/iam-policy.json", Value::Null), ("deploy/iam-policy-by-tag.json", by_tag)] {
        let distributions = ("arn:aws:cloudfront::*:distribution/*".to_owned(), condition.clone());
        let tenants = ("arn:aws:cloudfront::*:distribution-tenant/*".to_owned(), condition);
        let expected = [
            ("cloudfront:CreateInvalidation".to_owned(), distributions.clone()),
            ("cloudfront:GetDistributionConfig".to_owned(), distributions.clone()),
            ("cloudfront:GetInvalidation".to_owned(), distributions.clone()),
            ("cloudfront:ListDistributions".to_owned(), ("*".to_owned(), Value::Null)),
            ("cloudfront:ListInvalidations".to_owned(), distributions),
            ("cloudfront:ListDistributionTenants".to_owned(), ("*".to_owned(), Value::Null)),
            ("cloudfront:GetDistributionTenantByDomain".to_owned(), ("*".to_owned(), Value::Null)),
            ("cloudfront:CreateInvalidationForDistributionTenant".to_owned(), tenants.clone()),
            ("cloudfront:GetInvalidationForDistributionTenant".to_owned(), tenants.clone()),
            ("cloudfront:ListInvalidationsForDistributionTenant".to_owned(), tenants),
        ];
        assert_eq!(allowed(path), BTreeMap::from(expected), "{path}");
    }
}

/// What a log line asks a person to apply or to allow is there.
#[test]
fn what_ends_a_refusal_can_be_found() {
    let source = file("src/domain/kernel/refusal.rs").text;
    let policy = file("deploy/iam-policy.json").text;
    let words: BTreeSet<&str> = source.split(|c: char| !c.is_ascii_alphanumeric() && !"-_./:".contains(c)).collect();
    let named: BTreeSet<&str> = words.iter().copied().filter(|word| word.starts_with("deploy/")).collect();
    assert_eq!(named.len(), 4, "{named:?}");
    for path in named {
        // What is applied with `-k` is a folder.
        let kustomized = format!("{path}/kustomization.yaml");
        let is_folder = source.contains(&format!("kubectl apply -k {path}"));
        assert!(!file(if is_folder { &kustomized } else { path }).text.is_empty());
    }
    let actions: BTreeSet<&str> = words.into_iter().filter(|word| word.starts_with("cloudfront:")).collect();
    assert_eq!(actions.len(), policy.matches("\"cloudfront:").count(), "{actions:?}");
    assert!(actions.iter().all(|action| policy.contains(&format!("\"{action}\""))), "{actions:?}");
}

/// The adapter calls these operations of CloudFront, and the policy allows these.
#[test]
fn every_operation_the_adapter_calls_is_in_the_policy() {
    let source =
        file("src/adapters/cloudfront.rs").text + &file("src/adapters/cloudfront/distribution_tenants.rs").text;
    let policy = file("deploy/iam-policy.json").text;
    for (call, action) in [
        (".list_distributions()", "cloudfront:ListDistributions"),
        (".create_invalidation()", "cloudfront:CreateInvalidation"),
        (".get_distribution_config()", "cloudfront:GetDistributionConfig"),
        (".get_invalidation()", "cloudfront:GetInvalidation"),
        (".list_invalidations()", "cloudfront:ListInvalidations"),
        (".list_distribution_tenants()", "cloudfront:ListDistributionTenants"),
        (".get_distribution_tenant_by_domain()", "cloudfront:GetDistributionTenantByDomain"),
        (".create_invalidation_for_distribution_tenant()", "cloudfront:CreateInvalidationForDistributionTenant"),
        (".get_invalidation_for_distribution_tenant()", "cloudfront:GetInvalidationForDistributionTenant"),
        (".list_invalidations_for_distribution_tenant()", "cloudfront:ListInvalidationsForDistributionTenant"),
    ] {
        assert!(source.contains(call) && policy.contains(action), "{call} needs {action}");
    }
    assert_eq!(source.matches("self.client.").count(), 10, "the adapter calls something the policy may not allow");
}
