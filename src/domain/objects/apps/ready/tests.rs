use serde_json::{Value, json};

use super::*;

fn kind(api_version: &str, kind: &str) -> AppKind {
    AppKind::new(api_version, kind)
}

/// An object with fields replaced by JSON pointer; the parent of each is there.
fn with(mut object: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[field] = value.clone();
    }
    object
}

/// What one look says: ready or why not, then the revision or why there is none.
fn words(app: &AppKind, object: &Value) -> (String, String) {
    match look(app, "web", object) {
        Ok(Look { present, twice: _ }) => (
            present.unready.unwrap_or_else(|| "ready".to_owned()),
            present.revision.map_or_else(|why| why.to_string(), |revision| revision.0),
        ),
        Err(why) => (why.to_string(), String::new()),
    }
}

/// Each change of the healthy object, and the words of its readiness.
fn table(app: &AppKind, healthy: &Value, rows: &[(&str, Value, &str)]) {
    assert_eq!(words(app, healthy).0, "ready");
    for (pointer, value, expected) in rows {
        assert_eq!(words(app, &with(healthy.clone(), &[(pointer, value.clone())])).0, *expected, "{pointer} {value}");
    }
}

const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn metadata() -> Value {
    json!({"namespace": "prod", "name": "web", "uid": "u-1", "generation": 7, "resourceVersion": "99"})
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": image}]}})
}

fn a_deployment() -> Value {
    json!({
        "metadata": metadata(),
        "spec": {"replicas": 3, "template": template("registry.example.com/shop/web:1.2.3")},
        "status": {
            "observedGeneration": 7, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            ],
        },
    })
}

#[test]
fn a_deployment_is_ready_as_the_core_says_it() {
    let app = kind("apps/v1", "Deployment");
    assert_eq!(words(&app, &a_deployment()), ("ready".to_owned(), "1.2.3".to_owned()));
    let late = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
    let refused =
        json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}]);
    table(
        &app,
        &a_deployment(),
        &[
            ("/status/observedGeneration", json!(6), "its controller has not acted on generation 7 yet"),
            ("/status", json!(null), "its controller has not acted on generation 7 yet"),
            ("/status/availableReplicas", json!(2), "2 of 3 pods available"),
            ("/status/updatedReplicas", json!(2), "2 of 3 pods available"),
            ("/status/replicas", json!(4), "2 of 3 pods available"),
            ("/status/conditions", late, "no progress before its deadline: 3 of 3 pods available"),
            ("/spec/paused", json!(true), "the rollout is paused"),
            ("/spec/replicas", json!(0), "the workload is scaled to zero"),
            ("/metadata/deletionTimestamp", json!("2026-01-02T03:04:05Z"), "it is being deleted"),
            ("/status/replicas", json!("three"), ".status.replicas is not a whole number"),
            ("/status/conditions", json!({}), ".status.conditions is not a list"),
            ("/metadata/uid", json!(null), "it has no .metadata.uid"),
        ],
    );
    let refused = with(a_deployment(), &[("/status/conditions", refused), ("/status/availableReplicas", json!(1))]);
    assert_eq!(words(&app, &refused).0, "1 of 3 pods available; FailedCreate: exceeded quota");
    let unset = with(a_deployment(), &[("/spec/replicas", json!(null))]);
    assert_eq!(words(&app, &unset).0, "3 of 1 pods available", "one pod is wanted, three are there");
}

#[test]
fn a_revision_is_tag_and_digest_of_the_apps_container() {
    let app = kind("apps/v1", "Deployment");
    let revision = |app: &AppKind, containers: Value| {
        words(app, &with(a_deployment(), &[("/spec/template/spec/containers", containers)])).1
    };
    let one = |image: String| json!([{"name": "app", "image": image}]);
    assert_eq!(revision(&app, one(format!("web:1.2@{DIGEST}"))), format!("1.2@{DIGEST}"));
    assert_eq!(revision(&app, one(format!("web@{DIGEST}"))), DIGEST);
    assert_eq!(revision(&app, one("web".to_owned())), "latest");
    assert!(revision(&app, one("web:1:2".to_owned())).contains("is not an image reference"));
    assert_eq!(revision(&app, json!([])), "unable to find .spec.template.spec.containers in ready target object");
    let two = |other: &str| json!([{"name": "proxy", "image": "envoy:9"}, {"name": other, "image": "web:1.2"}]);
    assert_eq!(revision(&app, two("web")), "1.2", "named like the app");
    assert_eq!(revision(&app, two("main")), "it has several containers (proxy, main); name one in appRef.container");
    let named = AppKind { container: Some("proxy".to_owned()), ..app.clone() };
    assert_eq!(revision(&named, two("main")), "9");
    let wrong = AppKind { container: Some("prxy".to_owned()), ..app };
    assert_eq!(revision(&wrong, two("main")), "no container is named prxy");
}

#[test]
fn workloads_of_other_kinds_are_ready_as_the_core_says_it() {
    let db = json!({
        "metadata": metadata(),
        "spec": {"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}, "template": template("db:16.1")},
        "status": {
            "observedGeneration": 7, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updatedReplicas": 3,
            "currentRevision": "db-7c9", "updateRevision": "db-7c9",
        },
    });
    let app = kind("apps/v1", "StatefulSet");
    assert_eq!(words(&app, &db).1, "16.1");
    let partition = with(db.clone(), &[("/status/updatedReplicas", json!(1))]);
    let at = "/spec/updateStrategy/rollingUpdate/partition";
    let partition = with(partition, &[(at, json!(2))]);
    assert_eq!(words(&app, &partition).0, "its partition of 2 keeps web-0 to web-1 as they were");
    table(&app, &db, &[("/status/availableReplicas", json!(2), "2 of 3 pods available")]);
    let agent = json!({
        "metadata": metadata(),
        "spec": {"updateStrategy": {"type": "OnDelete"}, "template": template("agent:2.0")},
        "status": {
            "observedGeneration": 7, "desiredNumberScheduled": 5, "currentNumberScheduled": 5, "updatedNumberScheduled": 5,
            "numberReady": 5, "numberAvailable": 5, "numberMisscheduled": 0,
        },
    });
    let app = kind("apps/v1", "DaemonSet");
    assert_eq!(words(&app, &agent).1, "2.0");
    table(&app, &agent, &[("/status/numberAvailable", json!(null), "0 of 5 pods available")]);
}

fn a_helm_release() -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": metadata(),
        "spec": {"suspend": false, "chart": {"spec": {"chart": "podinfo", "version": "6.x"}}},
        "status": {
            "observedGeneration": 7,
            "conditions": [
                {"type": "Ready", "status": "True", "observedGeneration": 7, "reason": "UpgradeSucceeded", "message": "ok"},
                {"type": "Released", "status": "True"},
            ],
            // The order of releases is not promised.
            "history": [
                {"version": 9, "chartVersion": "6.4.0", "status": "superseded"},
                {"version": 10, "chartVersion": "6.5.0", "status": "deployed"},
                {"version": 8, "chartVersion": "6.3.9", "status": "superseded"},
            ],
            "lastAttemptedRevision": "6.6.0",
        },
    })
}

#[test]
fn a_helm_release_is_ready_when_its_newest_release_is_deployed() {
    let app = kind("helm.toolkit.fluxcd.io/v2", "HelmRelease");
    assert_eq!(words(&app, &a_helm_release()).1, "6.5.0");
    let failed = json!([{"type": "Ready", "status": "False", "reason": "UpgradeFailed", "message": "timed out\n"}]);
    let busy = json!([{"type": "Ready", "status": "Unknown", "reason": "Progressing", "message": ""}]);
    table(
        &app,
        &a_helm_release(),
        &[
            ("/status/observedGeneration", json!(6), "its controller has not acted on generation 7 yet"),
            ("/spec/suspend", json!(true), "it is suspended"),
            ("/status/conditions", failed, "Ready is False: UpgradeFailed: timed out"),
            ("/status/conditions", busy, "Ready is Unknown: Progressing"),
            ("/status/conditions", json!([]), "it has no condition Ready"),
            ("/status/history", json!([]), "it has no release yet"),
            ("/status/history/1/status", json!("failed"), "its newest release is failed"),
            ("/status/history/1/version", json!("ten"), ".version is not a whole number"),
        ],
    );
    let none = with(a_helm_release(), &[("/status/history/1/chartVersion", json!(null))]);
    assert_eq!(words(&app, &none).1, "unable to find .status.history[].chartVersion in ready target object");
}

#[test]
fn before_v2_a_helm_release_says_its_revision_itself() {
    // The server serves an older version than the Pipeline names: what the object says of itself counts.
    let old = with(
        a_helm_release(),
        &[
            ("/apiVersion", json!("helm.toolkit.fluxcd.io/v2beta1")),
            ("/status/history", json!(null)),
            ("/status/lastAppliedRevision", json!("6.4.1")),
        ],
    );
    for version in ["v2", "v2beta1"] {
        let app = kind(&format!("helm.toolkit.fluxcd.io/{version}"), "HelmRelease");
        assert_eq!(words(&app, &old), ("ready".to_owned(), "6.4.1".to_owned()));
        let none = with(old.clone(), &[("/status/lastAppliedRevision", json!(""))]);
        assert_eq!(words(&app, &none).1, "unable to find .status.lastAppliedRevision in ready target object");
    }
}

#[test]
fn what_is_applied_says_its_revision_and_an_oci_artifact_its_origin() {
    let healthy = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "metadata": metadata(), "spec": {"suspend": false},
        "status": {
            "observedGeneration": 7, "lastAppliedRevision": "main@sha1:aaaa",
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded"}],
        },
    });
    for app in
        [kind("kustomize.toolkit.fluxcd.io/v1", "Kustomization"), kind("infra.contrib.fluxcd.io/v1alpha2", "Terraform")]
    {
        assert_eq!(words(&app, &healthy).1, "main@sha1:aaaa");
        let oci = with(healthy.clone(), &[("/status/lastAppliedOriginRevision", json!("v1@sha1:bbbb"))]);
        assert_eq!(words(&app, &oci).1, "v1@sha1:bbbb");
        table(
            &app,
            &healthy,
            &[
                ("/status/observedGeneration", json!(6), "its controller has not acted on generation 7 yet"),
                ("/spec/suspend", json!(true), "it is suspended"),
                ("/spec/suspend", json!("yes"), ".spec.suspend is not true or false"),
                ("/status/conditions", json!([]), "it has no condition Ready"),
            ],
        );
    }
}

fn an_application() -> Value {
    let source = json!({"repoURL": "https://git.example.com/shop.git", "path": "prod", "targetRevision": "main"});
    let mut wanted = source.clone();
    wanted["directory"] = json!({"recurse": false, "jsonnet": {}});
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "metadata": metadata(),
        "spec": {"project": "default", "source": wanted},
        "status": {
            "sync": {"status": "Synced", "revision": "0123abc", "comparedTo": {"source": source, "destination": {}}},
            "health": {"status": "Healthy"},
            "operationState": {"phase": "Succeeded", "message": "successfully synced"},
        },
    })
}

#[test]
fn an_application_is_ready_when_all_it_says_is_about_its_present_source() {
    let app = kind("argoproj.io/v1alpha1", "Application");
    assert_eq!(words(&app, &an_application()).1, "0123abc");
    assert!(look(&app, "web", &an_application()).unwrap().twice, "its health lags behind its sync");
    table(
        &app,
        &an_application(),
        &[
            ("/status/sync/status", json!("OutOfSync"), "its sync is OutOfSync, not Synced"),
            ("/status/health/status", json!("Progressing"), "its health is Progressing, not Healthy"),
            ("/status/operationState/phase", json!("Running"), "its last operation is Running, not Succeeded"),
            ("/status/operationState", json!(null), "its last operation is unknown, not Succeeded"),
            ("/operation", json!({"sync": {}}), "an operation is about to run"),
            ("/spec/source/targetRevision", json!("v2"), "it has not been compared with the source of its spec yet"),
            ("/spec/source", json!(null), "its spec names no source"),
            ("/status", json!({}), "its last operation is unknown, not Succeeded"),
            ("/metadata/deletionTimestamp", json!("2026-01-02T03:04:05Z"), "it is being deleted"),
        ],
    );
}

#[test]
fn an_application_of_several_sources_has_all_their_revisions() {
    let sources = json!([{"repoURL": "https://git.example.com/a.git"}, {"repoURL": "https://git.example.com/b.git"}]);
    let app = kind("argoproj.io/v1alpha1", "Application");
    let several = with(
        an_application(),
        &[
            ("/spec/source", json!(null)),
            ("/spec/sources", sources.clone()),
            // Argo CD cannot leave out a source that it does not use.
            ("/status/sync/comparedTo", json!({"source": {"repoURL": ""}, "sources": sources})),
            ("/status/sync/revisions", json!(["aaa", "bbb"])),
        ],
    );
    assert_eq!(words(&app, &several), ("ready".to_owned(), "aaa,bbb".to_owned()));
    let one_is_new = with(several, &[("/spec/sources/1/targetRevision", json!("v2"))]);
    assert_eq!(words(&app, &one_is_new).0, "it has not been compared with the source of its spec yet");
}

#[test]
fn an_argo_rollout_writes_its_observed_generation_as_a_text() {
    let app = kind("argoproj.io/v1alpha1", "Rollout");
    let healthy = json!({
        "apiVersion": "argoproj.io/v1alpha1", "metadata": metadata(),
        "spec": {"replicas": 5, "template": template("web:1.3")},
        "status": {
            "observedGeneration": "7", "phase": "Healthy", "currentPodHash": "6f5", "stableRS": "6f5",
            "replicas": 5, "updatedReplicas": 5, "availableReplicas": 5,
        },
    });
    assert_eq!(words(&app, &healthy).1, "1.3");
    assert!(!look(&app, "web", &healthy).unwrap().twice);
    table(
        &app,
        &healthy,
        &[
            ("/status/observedGeneration", json!("6"), "its controller has not acted on generation 7 yet"),
            ("/status/observedGeneration", json!("5f7c9"), ".status.observedGeneration is not a whole number"),
            ("/status/phase", json!("Paused"), "it is Paused"),
            ("/status/availableReplicas", json!(4), "4 of 5 pods available"),
            ("/status/stableRS", json!("7c9"), "its newest pods are not the stable ones yet"),
            ("/status/currentPodHash", json!(null), "its newest pods are not the stable ones yet"),
        ],
    );
    let paused = with(healthy, &[("/status/phase", json!("Paused")), ("/status/message", json!("CanaryPauseStep"))]);
    assert_eq!(words(&app, &paused).0, "it is Paused: CanaryPauseStep");
}

#[test]
fn any_other_kind_is_read_at_the_places_that_the_pipeline_names() {
    let app = AppKind { revision_at: Some("/spec/version".to_owned()), ..kind("db.example.com/v1", "Cluster") };
    let healthy = json!({
        "metadata": metadata(), "spec": {"version": 16.1},
        "status": {"observedGeneration": 7, "phase": "Running", "on": true, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    assert_eq!(words(&app, &healthy).1, "16.1");
    assert!(!look(&app, "web", &healthy).unwrap().twice);
    table(
        &app,
        &healthy,
        &[
            ("/status/observedGeneration", json!(6), "its controller has not acted on generation 7 yet"),
            ("/status/conditions", json!([]), "it has no condition Ready"),
        ],
    );
    let at = |place: &str, value: Option<&str>| AppKind {
        ready_at: Some(place.to_owned()),
        ready_value: value.map(str::to_owned),
        ..app.clone()
    };
    let rows = [
        ("/status/phase", Some("Running"), "ready"),
        ("/status/phase", None, ".status.phase is Running, not True"),
        ("/status/on", None, "ready"),
        ("/status/conditions/0/status", None, "ready"),
        ("/status/nothing", None, "it has no .status.nothing"),
        ("/status/conditions", None, ".status.conditions is not one text or number"),
    ];
    for (place, value, expected) in rows {
        assert_eq!(words(&at(place, value), &healthy).0, expected, "{place}");
    }
    let nowhere = AppKind { revision_at: None, ..app.clone() };
    assert_eq!(words(&nowhere, &healthy).1, "a Cluster has no revision that is known; name it in appRef.revisionAt");
    let absent = AppKind { revision_at: Some("/spec/v".to_owned()), ..app };
    assert_eq!(words(&absent, &healthy).1, "unable to find .spec.v in ready target object");
}

#[test]
fn what_never_says_on_which_spec_it_has_acted_is_looked_at_twice() {
    let app = kind("example.com/v1", "Thing");
    let ready = |condition: Value, status: Value| {
        let mut object = json!({"metadata": metadata(), "status": status});
        object["status"]["conditions"] = json!([condition]);
        look(&app, "web", &object).map(|look| (look.present.unready.is_none(), look.twice)).unwrap()
    };
    assert_eq!(ready(json!({"type": "Ready", "status": "True"}), json!({})), (true, true));
    assert_eq!(ready(json!({"type": "Ready", "status": "True", "observedGeneration": 7}), json!({})), (true, false));
    assert_eq!(ready(json!({"type": "Ready", "status": "True", "observedGeneration": 6}), json!({})), (false, false));
    assert_eq!(ready(json!({"type": "Ready", "status": "True"}), json!({"observedGeneration": 7})), (true, false));
}

#[test]
fn places_that_a_pipeline_names_overrule_the_kind() {
    let app = AppKind {
        revision_at: Some("/metadata/uid".to_owned()),
        ready_at: Some("/status/availableReplicas".to_owned()),
        ready_value: Some("2".to_owned()),
        ..kind("apps/v1", "Deployment")
    };
    let rolling = with(a_deployment(), &[("/status/availableReplicas", json!(2))]);
    assert_eq!(words(&app, &rolling), ("ready".to_owned(), "u-1".to_owned()));
    assert_eq!(words(&app, &a_deployment()).0, ".status.availableReplicas is 3, not 2");
    let lagging = with(rolling, &[("/status/observedGeneration", json!(6))]);
    assert_eq!(words(&app, &lagging).0, "its controller has not acted on generation 7 yet");
}

#[test]
fn a_revision_that_cannot_be_shown_or_kept_is_none() {
    let app = AppKind { revision_at: Some("/spec/version".to_owned()), ..kind("example.com/v1", "Thing") };
    let revision = |text: &str| {
        let object = json!({"metadata": metadata(), "spec": {"version": text}, "status": {}});
        look(&app, "web", &object).unwrap().present.revision
    };
    assert_eq!(revision(&"x".repeat(POINTED_BYTES_MAX)).map(|kept| kept.0.len()), Ok(POINTED_BYTES_MAX));
    let why = revision(&"x".repeat(POINTED_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(why.to_string(), ".spec.version has more than 256 bytes");
    assert!(revision("1.2\n").is_err() && revision("1.2\u{202e}").is_err() && revision("").is_err());
    assert_eq!(revision("1.2 ä").map(|kept| kept.0), Ok("1.2 ä".to_owned()));
}

#[test]
fn what_is_repeated_of_others_is_one_short_line() {
    let app = kind("example.com/v1", "Thing");
    let message = format!("{}\n\u{1b}[31m{}", "long ".repeat(3), "x".repeat(5_000));
    let conditions = json!([{"type": "Ready", "status": "False", "reason": "Broken", "message": message}]);
    let (unready, _) = words(&app, &json!({"metadata": metadata(), "status": {"conditions": conditions}}));
    assert!(unready.len() <= 200 && !unready.contains(is_hidden), "{unready}");
}

#[test]
fn a_spec_points_only_at_what_its_object_was_made_to_show() {
    for open in [
        "/status/version",
        "/status/conditions/0/reason",
        "/metadata/labels/app.kubernetes.io~1version",
        "/metadata/annotations/version",
        "/spec/template/spec/containers/0/image",
        "/spec/image",
    ] {
        assert_eq!(may_point_at(open), Ok(()), "{open}");
    }
    for closed in [
        "/spec/template/spec/containers/0/env/0/value",
        "/spec/version",
        "/statusx/a",
        "/metadata/annotationsx/a",
        "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
        "/data/token",
        "/status",
        "status/version",
        "",
    ] {
        assert!(may_point_at(closed).is_err(), "{closed}");
    }
}

#[test]
fn what_is_too_long_to_be_a_revision_is_not_repeated() {
    let app = AppKind { revision_at: Some("/status/version".to_owned()), ..kind("db.example.com/v1", "Cluster") };
    let of = |version: &str| {
        let conditions = json!([{"type": "Ready", "status": "True"}]);
        let status = json!({"version": version, "conditions": conditions, "observedGeneration": 1});
        let object = json!({"metadata": {"uid": "u", "generation": 1}, "status": status});
        look(&app, "web", &object).unwrap().present.revision
    };
    assert_eq!(of("1.2"), Ok(Revision("1.2".to_owned())));
    let refused = of(&"secret".repeat(43)).unwrap_err().to_string();
    assert!(refused.contains(".status.version has more than 256 bytes") && !refused.contains("secret"), "{refused}");
}

#[test]
fn a_repo_that_only_plans_is_ready_for_nobody_who_waits_for_what_it_applies() {
    let of = |reason: &str| {
        json!({"metadata": metadata(), "spec": {}, "status": {"observedGeneration": 7, "conditions": [
            {"type": "Ready", "status": "True", "reason": reason, "message": "m"},
        ]}})
    };
    let app = kind("allclear.dev/v1alpha1", "Repo");
    let said = ["Applied", "Unchanged", "Planned"].map(|reason| words(&app, &of(reason)).0);
    assert_eq!(said, ["ready", "ready", "its commit is only planned, and nothing of it is applied"]);
    assert_eq!(words(&kind("example.com/v1", "Repo"), &of("Planned")).0, "ready", "another's kind");
    table(
        &app,
        &of("Applied"),
        &[("/metadata/generation", json!(8), "its controller has not acted on generation 8 yet")],
    );
}
