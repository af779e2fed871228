use std::time::Duration;

use objects::apps::app::{ClusterKey, LeafId, LeafKind};
use objects::pipeline::options::MergeMethod;
use objects::pipeline::set;
use objects::pipeline::spec::Advance;
use serde_json::{Value, json};

use super::*;

/// The Pipeline of the document's first page.
fn example() -> Value {
    json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u-1", "generation": 3, "resourceVersion": "99",
            "annotations": {
                "allclear.dev/approve": "0123456789ab", "allclear.dev/approved-by": "jane",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
        },
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "environments": [
                {"name": "staging", "targets": [{"namespace": "staging"}]},
                {"name": "prod", "gates": {"soak": "30m"}, "targets": [
                    {"namespace": "prod"},
                    {"namespace": "prod", "clusterRef": {"kind": "Secret", "name": "eu-1"}},
                ]},
            ],
            "promotion": {"manual": true, "strategy": {"notification": {}}},
        },
        "status": {"observedGeneration": -1},
    })
}

/// The example with a part of its spec replaced; the parent of it is there.
fn with(pointer: &str, value: Value) -> Object {
    let mut object = example();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    match object["spec"].pointer_mut(parent).unwrap() {
        Value::Array(items) => items[field.parse::<usize>().unwrap()] = value,
        fields => fields[field] = value,
    }
    object_of(&object)
}

fn object_of(object: &Value) -> Object {
    super::object(&object.to_string()).unwrap()
}

fn why(pointer: &str, value: Value) -> String {
    with(pointer, value).spec.expect_err(pointer)
}

#[test]
fn ten_lines_are_read_as_they_are_meant() {
    let object = object_of(&example());
    assert_eq!(object.id, PipelineId::new("shop", "web"));
    assert_eq!(
        (object.uid.as_str(), object.generation, object.version.as_str(), object.deleting),
        ("u-1", 3, "99", false)
    );
    assert_eq!(object.answers.approve.as_deref(), Some("0123456789ab"));
    assert_eq!((object.answers.by.as_deref(), object.answers.overrides), (Some("jane"), None));
    assert_eq!(object.status.observed_generation, -1);
    let spec = object.spec.unwrap();
    assert_eq!((spec.advance, &spec.suspended, spec.passed_over.len()), (Advance::Latest, &None, 0));
    let [staging, prod] = &spec.environments[..] else { panic!("{spec:?}") };
    assert_eq!((staging.name.0.as_str(), staging.targets.len(), &staging.gates), ("staging", 1, &Gates::default()));
    assert_eq!(prod.gates.soak, Duration::from_secs(1800));
    assert_eq!(prod.stalled_after, Duration::from_secs(3600));
    assert_eq!(prod.promotion, Some(PromotionSpec { manual: true, strategy: Strategy::Notification }));
    let said: Vec<String> = prod.targets.iter().map(TargetKey::display_name).collect();
    assert_eq!(said, ["prod/web", "eu-1/prod/web"]);
    let leaf = LeafId { kind: LeafKind::Secret, namespace: "shop".to_owned(), name: "eu-1".to_owned() };
    assert_eq!(prod.targets[1].cluster, ClusterKey::Leaf(leaf));
}

#[test]
fn an_environments_own_promotion_comes_before_that_of_the_spec() {
    let request = json!({"strategy": {"pull-request": {
        "type": "gitlab", "url": "https://git.example.com/shop/web", "secretRef": {"name": "git"}, "path": "prod",
    }}});
    let spec = with("/environments/1/promotion", request).spec.unwrap();
    let Some(PromotionSpec { manual: false, strategy: Strategy::PullRequest(repository, _) }) =
        &spec.environments[1].promotion
    else {
        panic!("{spec:?}")
    };
    assert_eq!((repository.forge, repository.base.as_str()), (ForgeKind::GitLab, "main"));
    assert_eq!((repository.path.as_deref(), repository.secret.as_deref()), (Some("prod"), Some("git")));
    assert_eq!(spec.environments[0].promotion.as_ref().map(|promotion| promotion.manual), Some(true));
    assert_eq!(with("/promotion", Value::Null).spec.unwrap().environments[1].promotion, None);
}

#[test]
fn what_a_team_wants_of_its_requests_is_read_or_refused_by_its_field() {
    let strategy = |more: Value| {
        let mut request =
            json!({"type": "github", "url": "https://git.example.com/shop/web", "secretRef": {"name": "git"}});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        with("/environments/1/promotion", json!({"strategy": {"pull-request": request}})).spec
    };
    let spec = strategy(json!({
        "labels": ["promotion"], "reviewers": ["ann", "team:sre"], "title": "{{ pipeline }} to {{ revision }}", "autoMerge": "Squash",
    }));
    let promotion = spec.unwrap().environments[1].promotion.clone();
    let Some(PromotionSpec { strategy: Strategy::PullRequest(_, options), .. }) = promotion else {
        panic!("{promotion:?}")
    };
    assert_eq!(options.labels, ["promotion"]);
    assert_eq!(options.reviewers, [Reviewer::User("ann".to_owned()), Reviewer::Team("sre".to_owned())]);
    assert_eq!((options.draft, options.auto_merge, options.body), (false, Some(MergeMethod::Squash), None));
    assert!(options.title.is_some());
    for (more, words) in [
        (json!({"title": "{{ tag }}"}), "pull-request.title: there is no value \"tag\"; there are namespace"),
        (json!({"body": "{{ revision"}), "pull-request.body: {{ has no }}"),
        (json!({"reviewers": ["@ann"]}), "pull-request.reviewers: \"@ann\" is no name"),
        (json!({"type": "gitlab", "reviewers": ["team:sre"]}), "pull-request.reviewers: gitlab asks users only"),
        (json!({"type": "bitbucket-server", "labels": ["a"]}), "pull-request.labels: not for bitbucket-server"),
        (json!({"type": "bitbucket-cloud", "autoMerge": "Merge"}), "pull-request.autoMerge: not for bitbucket-cloud"),
        (json!({"type": "bitbucket-cloud", "reviewers": ["ann"]}), "pull-request.reviewers: bitbucket-cloud knows"),
        (json!({"draft": true, "autoMerge": "Merge"}), "pull-request.draft and autoMerge"),
    ] {
        let refused = strategy(more).expect_err(words);
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn several_apps_are_one_set_in_each_place() {
    let app = |name: &str| json!({"name": name, "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": format!("shop-{name}")}});
    let set = |apps: Value| {
        let mut document = example();
        document["spec"].as_object_mut().unwrap().remove("appRef");
        document["spec"]["apps"] = apps;
        object(&document.to_string()).unwrap().spec
    };
    let spec = set(json!([app("api"), app("web")])).unwrap();
    assert_eq!(spec.apps, ["api", "web"]);
    let prod = &spec.environments[1];
    let said: Vec<String> = prod.targets.iter().map(TargetKey::display_name).collect();
    assert_eq!(said, ["prod/api+web", "eu-1/prod/api+web"]);
    let members: Vec<String> = prod.members().map(TargetKey::display_name).collect();
    assert_eq!(members, ["prod/shop-api", "prod/shop-web", "eu-1/prod/shop-api", "eu-1/prod/shop-web"]);
    assert!(spec.targets().all(|target| !set::is_place(target)), "what is watched are objects");
    for (apps, words) in [
        (json!([app("api")]), "apps has 1: 2 to 10, or one appRef"),
        (json!([app("api"), app("api")]), "two apps are named api"),
        (json!([app("api"), app("a=b")]), "is no name"),
        (
            json!([app("api"), {"name": "web", "appRef": {"apiVersion": "v1", "kind": "Secret", "name": "x"}}]),
            "apps.web: a Secret",
        ),
        (Value::Null, "exactly one of appRef and apps"),
    ] {
        let refused = set(apps).expect_err(words);
        assert!(refused.contains(words), "{refused}");
    }
    let both = with("/apps", json!([app("api"), app("web")])).spec.expect_err("both");
    assert!(both.contains("exactly one of appRef and apps"), "{both}");
}

#[test]
fn gates_and_edges_are_read() {
    let gates = json!({
        "windows": [{"days": ["Mon", "Fri"], "from": "22:00", "to": "06:30", "timeZone": "Europe/Berlin"}, {"from": "00:00", "to": "24:00"}],
        "freezes": [{"from": "2026-12-20T00:00:00Z", "to": "2027-01-03T00:00:00+01:00", "reason": "holidays"}],
        "verdict": {"url": "https://gate.example.com/x", "timeout": "3s", "secretRef": {"name": "gate"}},
        "needs": [{"apiVersion": "flagger.app/v1beta1", "kind": "Canary", "name": "web", "namespace": "prod"}],
    });
    let gates = with("/environments/1/gates", gates).spec.unwrap().environments[1].gates.clone();
    let [night, always] = &gates.windows[..] else { panic!("{gates:?}") };
    assert_eq!((&night.days[..], night.from, night.to, night.zone.as_str()), (&[0, 4][..], 1320, 390, "Europe/Berlin"));
    assert_eq!((always.days.len(), always.from, always.to, always.zone.as_str()), (7, 0, 1440, "UTC"));
    assert_eq!((gates.freezes[0].from, gates.freezes[0].to), (1_797_724_800, 1_798_930_800));
    assert_eq!(gates.verdict.unwrap().timeout, Duration::from_secs(3));
    assert_eq!((gates.needs[0].display_name().as_str(), gates.needs[0].app.kind.as_str()), ("prod/web", "Canary"));
    let purged = json!({"workloads": ["web", "statefulset/db"], "server": "https://eu.example.com", "secretRef": {"name": "eu"}, "until": "fresh"});
    let purged = with("/environments/1/purged", purged).spec.unwrap().environments[1].purged.clone().unwrap();
    let by = PurgedBy {
        server: "https://eu.example.com".to_owned(),
        secret: Some("eu".to_owned()),
        namespace: "shop".to_owned(),
    };
    assert_eq!(
        purged,
        Purged {
            workloads: ["web", "statefulset/db"].map(|name| WorkloadName::parse(name).unwrap()).into(),
            by: Some(by),
            until: Until::Fresh,
        }
    );
}

/// What would lead elsewhere in the API server, or show what the Pipeline's author may not read.
fn wrong_reaches() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "/environments/1/purged",
            json!({"workloads": ["../web"]}),
            "\"../web\" names no workload; write NAME for a Deployment",
        ),
        ("/environments/1/purged", json!({"workloads": ["job/web"]}), "as statefulset/NAME or daemonset/NAME"),
        ("/environments/1/purged", json!({"workloads": ["statefulset/-db"]}), "no name that an object can have"),
        (
            "/appRef",
            json!({"apiVersion": "v1", "kind": "Secret", "name": "eu-1", "revisionAt": "/data/value"}),
            "never read",
        ),
        (
            "/environments/1/gates",
            json!({"needs": [{"apiVersion": "v1", "kind": "Secret", "name": "eu-1"}]}),
            "a Secret is never read as an app",
        ),
        ("/appRef/name", json!("web/../../../secrets/eu-1"), "no name that an object can have"),
        ("/environments/0/targets/0/namespace", json!("a/b"), "no name that an object can have"),
        (
            "/environments/1/targets/1/clusterRef/name",
            json!("eu-1,metadata.namespace!=x"),
            "no name that an object can have",
        ),
    ]
}

/// A part of the spec, what it is replaced by, and the words that follow.
/// Of the order of environments, and of ways back.
fn wrong_ways() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "/environments/1/after",
            json!(["qa"]),
            "environment prod: `after` names qa, which is no environment of this Pipeline; it has staging, prod",
        ),
        ("/environments/1/after", json!(["prod"]), "environments come after each other in a circle: prod after prod"),
        ("/environments/0/after", json!(["prod"]), "environment staging: it is the first"),
        ("/environments/1/after", json!([]), "environment prod: `after` names none"),
        ("/environments/0/rollback", json!({"on": ["stalled"], "within": "2h"}), "the first environment has rollback"),
        ("/environments/1/rollback", json!({"on": [], "within": "2h"}), "environment prod: rollback.on names no cause"),
        ("/environments/1/rollback", json!({"on": ["verdict"], "within": "2h"}), "there is no gates.verdict to ask"),
        (
            "/environments/1/rollback",
            json!({"on": ["stalled"], "within": "30m"}),
            "rollback.within (30m) is not longer than stalledAfter (1h)",
        ),
        ("/environments/1/rollback", json!({"on": ["late"], "within": "2h"}), "\"late\" is no cause to go back"),
    ]
}

fn invalid_specs() -> Vec<(&'static str, Value, &'static str)> {
    let environment = |name: &str| json!({"name": name, "targets": [{"namespace": "x"}]});
    let targets = |count: usize| Value::from_iter((0..count).map(|_| json!({"namespace": "x"})));
    let request = |field: &str, value: &str| {
        let mut request = json!({"type": "github", "url": "https://git.example.com/a/b"});
        request[field] = json!(value);
        json!({"strategy": {"pull-request": request}})
    };
    vec![
        ("/appRef/name", json!(""), "appRef.name is empty"),
        ("/appRef/name", json!(7), "invalid type"),
        ("/appRef/revisionAt", json!("status"), "appRef.revisionAt is no JSON pointer"),
        ("/environments", json!([]), "there are no environments"),
        (
            "/environments",
            Value::from_iter((0..21).map(|number| environment(&number.to_string()))),
            "21 environments, 20 at most",
        ),
        ("/environments/1/name", json!("staging"), "two environments are named staging"),
        ("/environments/1/name", json!("a b"), "is no name of an environment"),
        ("/environments/1/name", json!("a/b"), "is no name of an environment"),
        ("/environments/0/gates", json!({}), "the first environment has gates"),
        ("/environments/1/targets", targets(51), "environment prod: 51 targets, 50 at most"),
        ("/environments/1/stalledAfter", json!("10s"), "stalledAfter is shorter than 1m"),
        ("/environments/1/stalledAfter", json!("31d"), "stalledAfter is longer than 30d"),
        ("/environments/1/gates/soak", json!("soon"), "gates.soak is no duration"),
        ("/environments/1/gates/windows", json!([{"from": "9:00", "to": "17:00"}]), "\"9:00\" is no time of a day"),
        ("/environments/1/gates/windows", json!([{"from": "24:00", "to": "17:00"}]), "begins at 24:00"),
        ("/environments/1/gates/windows", json!([{"from": "09:00", "to": "17:60"}]), "\"17:60\" is no time of a day"),
        (
            "/environments/1/gates/windows",
            json!([{"from": "09:00", "to": "17:00", "timeZone": "Mars"}]),
            "no time zone is named",
        ),
        ("/environments/1/gates/freezes", json!([{"from": "2026-12-20", "to": "2026"}]), "is no time, such as"),
        (
            "/environments/1/gates/freezes",
            json!([{"from": "2026-12-20T00:00:00Z", "to": "2026-12-20T00:00:00Z"}]),
            "ends before it begins",
        ),
        (
            "/environments/1/gates/verdict",
            json!({"url": "https://x.example.com", "timeout": "2m"}),
            "not between 0 and 1m",
        ),
        (
            "/environments/1/gates/verdict",
            json!({"url": "http://x.example.com"}),
            "gates.verdict.url is no https address",
        ),
        ("/environments/1/purged", json!({"workloads": []}), "purged.workloads is empty"),
        ("/environments/1/purged", json!({"workloads": ["web"], "until": "Fresh"}), "purged.until is purged or fresh"),
        (
            "/environments/1/targets/1/clusterRef/namespace",
            json!("other"),
            "a clusterRef is in the Pipeline's namespace",
        ),
        ("/environments/1/targets/1/clusterRef/kind", json!("ConfigMap"), "unknown variant"),
        ("/promotion/strategy", json!({}), "exactly one of"),
        ("/promotion/strategy/pull-request", json!({"type": "github", "url": "https://a.b/c"}), "exactly one of"),
        ("/promotion", request("url", "git@github.com:a/b"), "pull-request.url is of the form HOST:PATH"),
        ("/promotion", request("url", "https://me:s3cr3t@git.example.com/a"), "has a user in it"),
        ("/promotion", request("type", "azure-devops"), "azure-devops is not supported"),
        ("/advance", json!("Backwards"), "unknown variant"),
    ]
}

#[test]
fn a_way_back_is_read_as_it_is_meant() {
    let rollback = json!({"on": ["stalled", "stalled"], "within": "90m"});
    let read = with("/environments/1/rollback", rollback).spec.unwrap().environments[1].rollback.clone().unwrap();
    assert_eq!((read.on, read.within), (vec![Cause::Stalled], Duration::from_mins(90)));
    assert_eq!(object_of(&example()).spec.unwrap().environments[1].rollback, None, "only where it is asked for");
}

/// The graph of the documents.
#[test]
fn environments_come_after_those_they_name() {
    let graph = json!([
        {"name": "dev", "targets": [{"namespace": "dev"}]},
        {"name": "prod", "after": ["eu", "us"], "targets": [{"namespace": "prod"}], "gates": {"soak": "30m"}},
        {"name": "eu", "after": ["dev"], "targets": [{"namespace": "eu"}]},
        {"name": "us", "after": ["dev"], "targets": [{"namespace": "us"}]},
    ]);
    let object = with("/environments", graph.clone());
    let spec = object.spec.unwrap();
    let placed: Vec<_> = spec.environments.iter().map(|one| (one.name.0.as_str(), one.after.clone())).collect();
    let names = |names: &[&str]| names.iter().map(|name| Environment((*name).to_owned())).collect::<Vec<_>>();
    assert_eq!(
        placed,
        [("dev", names(&[])), ("eu", names(&["dev"])), ("us", names(&["dev"])), ("prod", names(&["eu", "us"]))]
    );
    let mut called = example();
    called["spec"]["environments"] = graph;
    let called = super::called(&called.to_string()).unwrap();
    assert_eq!(called.environments[1].after, Some(names(&["eu", "us"])));
}

// Faults: PF18
#[test]
fn a_spec_that_cannot_be_used_says_what_is_wrong_and_where() {
    for (pointer, value, expected) in invalid_specs().into_iter().chain(wrong_reaches()).chain(wrong_ways()) {
        let why = why(pointer, value);
        assert!(
            why.contains(expected) && why.len() <= MESSAGE_BYTES_MAX && !why.contains("s3cr3t"),
            "{expected}: {why}"
        );
    }
    let mut without = example();
    without.as_object_mut().unwrap().remove("spec");
    assert_eq!(object_of(&without).spec, Err("spec is missing".to_owned()), "as upstream's CRD admits it");
}

#[test]
fn an_environment_without_targets_is_passed_over() {
    let spec = with("/environments/1/targets", json!([])).spec.unwrap();
    assert_eq!((spec.environments.len(), spec.passed_over), (1, vec![Environment("prod".to_owned())]));
}

#[test]
fn a_pipeline_is_suspended_by_its_spec_or_in_a_persons_words() {
    assert_eq!(with("/suspend", json!(true)).spec.unwrap().suspended.as_deref(), Some("spec.suspend is true"));
    let mut object = example();
    object["metadata"]["annotations"]["allclear.dev/suspend"] = json!("broken\nbuild");
    assert_eq!(object_of(&object).spec.unwrap().suspended.as_deref(), Some("broken\\nbuild"));
}

#[test]
fn gitops_clusters_may_be_elsewhere() {
    let cluster = json!({"kind": "GitopsCluster", "name": "eu", "namespace": "flux", "apiVersion": "gitops.weave.works/v1alpha1"});
    let spec = with("/environments/1/targets/1/clusterRef", cluster).spec.unwrap();
    let ClusterKey::Leaf(leaf) = &spec.environments[1].targets[1].cluster else { panic!("{spec:?}") };
    assert_eq!(leaf.to_string(), "GitopsCluster/flux/eu");
}

#[test]
fn what_cannot_be_named_or_remembered_is_no_object() {
    for (pointer, value) in [
        ("/metadata/uid", json!(7)),
        ("/metadata/resourceVersion", json!(null)),
        ("/status/serial", json!(-1)),
        ("/status/environments", json!([])),
    ] {
        let mut object = example();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[field] = value;
        assert!(super::object(&object.to_string()).is_err(), "{pointer}");
    }
}
