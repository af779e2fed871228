use kernel::id::{Environment, PromotionSeq, Revision};
use objects::apps::app::{AppKind, ClusterKey, LeafId, LeafKind, TargetKey};
use objects::pipeline::proposal::{ForgeKind, Repository};
use objects::pipeline::status::{
    Cause, Choice, ClusterAppRef, Condition, ConditionKind, Ended, EnvironmentStatus, OpenRequest, Phase, Promotion,
    Question, TargetStatus, Waiting, Watch,
};
use objects::pipeline::trail::Trail;
use objects::status::{Approval, Late};
use serde_json::json;

use super::super::lost;
use super::super::tests::stored::PIPELINES;

use super::*;

fn trail() -> Trail {
    Trail {
        of: serde_json::from_value(json!("182e2c74c37b7090")).unwrap(),
        revisions: ["1.2", "1.3"].map(|text| Revision(text.to_owned())).into(),
        since_ms: Some(1_700_000_000_123),
        unready_since_ms: Some(1_700_000_000_124),
        agreed: true,
        passed: Some(Revision("1.2".to_owned())),
        passed_before: Vec::new(),
    }
}

fn promotion() -> Promotion {
    Promotion {
        seq: PromotionSeq(4),
        revision: Revision("1.3".to_owned()),
        from: Some(Revision("1.2".to_owned())),
        phase: Phase::Proposed,
        started_ms: Some(1_700_000_001_000),
        approval: Some(Approval { by: Some("jane".to_owned()), ticket: "t".to_owned(), at_ms: 1, overrides: true }),
        rollback: None,
        returns: false,
        chosen: None,
        message: "waits".to_owned(),
    }
}

/// An app in a cluster whose kubeconfig is in this namespace.
fn app_in(namespace: &str) -> ClusterAppRef {
    let leaf = LeafId { kind: LeafKind::GitopsCluster, namespace: namespace.to_owned(), name: "eu".to_owned() };
    let app = AppKind::new("apps/v1", "Deployment");
    ClusterAppRef::of(&TargetKey::new(ClusterKey::Leaf(leaf), app, "prod", "web"))
}

fn waiting() -> Waiting {
    Waiting {
        revision: Revision("1.3".to_owned()),
        ticket: "0123456789ab".to_owned(),
        question: Question::Overwrite,
        since_ms: -5,
    }
}

/// A status with something in every field.
fn full() -> Status {
    let targets = ["shop", "flux"].map(|namespace| TargetStatus {
        cluster_app_ref: app_in(namespace),
        uid: Some("u-2".to_owned()),
        ready: true,
        revision: Some(Revision("1.2".to_owned())),
        error: Some("unable to find it".to_owned()),
        message: Some("1 of 2 pods available".to_owned()),
    });
    let repository = Repository {
        forge: ForgeKind::BitbucketServer,
        url: "https://git.example.com/shop/config".to_owned(),
        base: "main".to_owned(),
        path: Some("prod".to_owned()),
        secret: Some("forge".to_owned()),
    };
    let request = OpenRequest {
        seq: PromotionSeq(4),
        number: Some(17),
        url: "https://git.example.com/17".to_owned(),
        commit: Some("abc".to_owned()),
        lacks: Default::default(),
        repository: Some(repository),
    };
    let environment = EnvironmentStatus {
        targets: targets.into(),
        waiting: Some(waiting()),
        promotion: Some(promotion()),
        seq: PromotionSeq(4),
        reached: Some(Revision("1.2".to_owned())),
        request: Some(request.clone()),
        closing: vec![(OpenRequest { number: None, repository: None, ..request }, "it went back".to_owned())],
        behind: Some(Late { since_ms: 7, told: true }),
        // What a release before this one does not write: the stored form stays the one that it reads.
        chosen: None,
        trail: Some(trail()),
        further_trails: Vec::new(),
        watch: None,
    };
    let notice = json!({
        "id": "n-1", "kind": "promotion.started", "at_ms": 5, "workload": "pipeline/shop/web", "seq": 4, "rollout": "p-1",
        "change": "prod: 1.2 → 1.3", "message": "it begins", "promotion": {"environment": "prod", "revision": "1.3"},
    });
    Status {
        serial: 12,
        observed_generation: 3,
        latest: Some(Revision("1.3".to_owned())),
        environments: [(Environment("prod".to_owned()), environment)].into(),
        untold: vec![serde_json::from_value(notice).unwrap()],
        history: vec![Ended {
            environment: Environment("prod".to_owned()),
            seq: PromotionSeq(3),
            revision: Revision("1.2".to_owned()),
            outcome: Phase::Completed,
            by: None,
            chosen: None,
            rollback: None,
            at_ms: 1_699_999_999_999,
        }],
        conditions: vec![Condition {
            kind: ConditionKind::PromotionPending,
            holds: Some(true),
            reason: "PullRequestOpen".to_owned(),
            message: "prod waits".to_owned(),
            since_ms: 1_700_000_000_001,
        }],
    }
}

/// As it stands in a Pipeline of the namespace shop.
fn json_of(status: &Status) -> Value {
    let object = json!({
        "metadata": {"namespace": "shop", "name": "web", "uid": "u-1", "resourceVersion": "1"},
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "environments": [{"name": "prod", "targets": [{"namespace": "prod"}]}],
        },
    });
    let object = super::super::object(&object.to_string()).unwrap();
    written(&Object { status: status.clone(), ..object }).unwrap()
}

#[test]
fn what_was_written_is_read_again_as_it_was() {
    for status in [full(), Status { observed_generation: -1, ..Status::default() }] {
        assert_eq!(read(Some(&json_of(&status).to_string()), "shop"), Ok(status));
    }
    for none in [None, Some("null"), Some("{}")] {
        assert_eq!(read(none, "shop"), Ok(Status { observed_generation: -1, ..Status::default() }));
    }
}

#[test]
fn a_choice_is_beside_what_an_earlier_release_reads() {
    let mut status = full();
    let known = status.environments.values_mut().next().unwrap();
    known.chosen = Some(Choice {
        seq: PromotionSeq(4),
        revision: Revision("1.2".to_owned()),
        by: Some("jane".to_owned()),
        over: ["1.3", "1.4"].map(|text| Revision(text.to_owned())).into(),
    });
    known.promotion.as_mut().unwrap().chosen = Some("goes back from 1.3".to_owned());
    status.history[0].chosen = Some("staging was not seen at it".to_owned());
    let mut json = json_of(&status);
    assert_eq!(read(Some(&json.to_string()), "shop"), Ok(status));
    let prod = &mut json["environments"]["prod"];
    let choice = prod.as_object_mut().unwrap().remove("chosen");
    assert_eq!(choice, Some(json!({"seq": 4, "revision": "1.2", "by": "jane", "over": ["1.3", "1.4"]})));
    prod["promotion"].as_object_mut().unwrap().remove("chosen").unwrap();
    json["history"][0].as_object_mut().unwrap().remove("chosen").unwrap();
    assert_eq!(json, json_of(&full()), "and changes nothing of that");
}

#[test]
fn branches_and_what_was_taken_back_are_beside_what_an_earlier_release_reads() {
    let mut status = full();
    let known = status.environments.values_mut().next().unwrap();
    let passed_before = vec![Revision("1.1".to_owned())];
    known.further_trails = vec![Trail { passed_before, ..trail() }];
    known.promotion.as_mut().unwrap().rollback = Some(Cause::Stalled);
    known.watch = Some(Watch {
        seq: PromotionSeq(4),
        revision: Revision("1.3".to_owned()),
        had: Revision("1.2".to_owned()),
        arrived_ms: Some(1_700_000_000_000),
        on: vec![Cause::Verdict, Cause::Stalled],
    });
    status.history[0].rollback = Some(Cause::Verdict);
    let mut json = json_of(&status);
    assert_eq!(read(Some(&json.to_string()), "shop"), Ok(status));
    assert_eq!(json["history"][0].as_object_mut().unwrap().remove("rollback"), Some(json!("verdict")));
    let prod = &mut json["environments"]["prod"];
    let further = prod.as_object_mut().unwrap().remove("furtherTrails").unwrap();
    assert_eq!(further[0]["passedBefore"], json!(["1.1"]));
    let watch = prod.as_object_mut().unwrap().remove("watch").unwrap();
    let on = json!(["verdict", "stalled"]);
    let arrived = "2023-11-14T22:13:20Z";
    assert_eq!(watch, json!({"seq": 4, "revision": "1.3", "had": "1.2", "arrivedAt": arrived, "on": on}));
    assert_eq!(prod["promotion"].as_object_mut().unwrap().remove("rollback"), Some(json!("stalled")));
    assert_eq!(json, json_of(&full()), "and changes nothing of that");
}

#[test]
fn it_has_the_shape_that_upstreams_tools_read() {
    let json = json_of(&full());
    assert_eq!(json.to_string(), PIPELINES.lines().next().unwrap(), "and the one that it had");
    assert_eq!(json["observedGeneration"], 3);
    assert_eq!(json["conditions"][0]["status"], "True");
    assert_eq!(json["environments"]["prod"]["waitingApproval"]["revision"], "1.3");
    let target = &json["environments"]["prod"]["targets"][1];
    assert_eq!(
        target["clusterAppRef"]["clusterRef"],
        json!({"kind": "GitopsCluster", "name": "eu", "namespace": "flux"})
    );
    assert_eq!((&target["ready"], &target["revision"]), (&json!(true), &json!("1.2")));
    // Theirs has an empty one where nothing waits.
    let upstreams = json!({"environments": {"prod": {"waitingApproval": {"revision": ""}, "targets": [{"ready": false, "revision": ""}]}}});
    let status = read(Some(&upstreams.to_string()), "shop").unwrap();
    let prod = status.environment(&Environment("prod".to_owned())).unwrap();
    assert_eq!((&prod.waiting, &prod.targets[0].revision), (&None, &None));
}

#[test]
fn a_status_that_is_not_ours_is_refused_in_words() {
    let broken = |pointer: &str, value: Value| {
        let mut json = json_of(&full());
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        json.pointer_mut(parent).unwrap()[field] = value;
        read(Some(&json.to_string()), "shop").expect_err(pointer).to_string()
    };
    for (pointer, value, expected) in [
        ("/serial", json!(-1), "serial: -1 is negative"),
        ("/serial", json!(i64::MAX), "serial: 9223372036854775807, and nothing was counted so far"),
        (
            "/environments/prod/promotion/phase",
            json!("Dancing"),
            "environments.prod.promotion.phase: \"Dancing\" is no phase",
        ),
        ("/environments/prod/promotion/seq", json!(-1), "promotion.seq: -1 is negative"),
        ("/environments/prod/promotion/startedAt", json!("yesterday"), "promotion.startedAt: \"yesterday\" is no time"),
        ("/environments/prod/waitingApproval/for", json!("Fun"), "is no question"),
        ("/untold", json!([{}]), "untold: missing field"),
        ("/conditions", json!("none"), "invalid type"),
    ] {
        let why = broken(pointer, value);
        assert!(why.contains(expected), "{expected}: {why}");
    }
}

#[test]
fn what_the_server_dropped_is_named_and_what_it_added_is_not() {
    let sent = json_of(&full());
    assert_eq!(lost(&sent, &sent), Vec::<String>::new());
    let mut kept = sent.clone();
    kept["new"] = json!(1);
    kept["environments"]["prod"].as_object_mut().unwrap().remove("promotion");
    kept.as_object_mut().unwrap().remove("serial");
    assert_eq!(lost(&sent, &kept), ["status.environments.prod.promotion", "status.serial"]);
    assert_eq!(lost(&sent, &Value::Null), ["status"]);
    kept["conditions"] = json!([]);
    assert!(lost(&sent, &kept).contains(&"status.conditions".to_owned()));
}
