mod later;

use objects::repo::spec::{OnDrift, Wanted};
use serde_json::{Value, json};

use super::*;

/// The Repo of the document's first page.
fn example() -> Value {
    json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Repo",
        "metadata": {
            "name": "infra", "namespace": "platform", "uid": "u-1", "generation": 3, "resourceVersion": "99",
            "annotations": {
                "allclear.dev/approve": "0123456789ab", "allclear.dev/approved-by": "jane",
                "allclear.dev/requested-at": "now",
            },
        },
        "spec": {"url": "https://git.example.com/platform/infra.git"},
        "status": {"observedGeneration": -1},
    })
}

fn installation() -> Installation {
    Installation {
        terraform_image: "registry.example.com/terraform:1".to_owned(),
        namespace: Some("allclear-system".to_owned()),
        confined: false,
    }
}

/// The example with these fields in its spec.
fn with(fields: &Value) -> Object {
    let mut object = example();
    for (name, value) in fields.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    super::object(&object.to_string(), &installation()).unwrap()
}

fn spec(fields: &Value) -> Spec {
    with(fields).spec.unwrap()
}

#[test]
fn a_manifest_of_the_program_before_ours_means_the_same() {
    let object = with(&json!({}));
    assert_eq!(object.id, RepoId::new("platform", "infra"));
    assert_eq!(
        (object.uid.as_str(), object.generation, object.version.as_str(), object.deleting),
        ("u-1", 3, "99", false)
    );
    assert_eq!(
        (object.answers.approve.as_deref(), object.answers.poked.as_deref()),
        (Some("0123456789ab"), Some("now"))
    );
    assert_eq!((object.status.observed_generation, &object.status.run), (-1, &None));
    let spec = object.spec.unwrap();
    assert_eq!(
        (spec.source.url.as_str(), &spec.source.wanted),
        ("https://git.example.com/platform/infra.git", &Wanted::Head)
    );
    assert_eq!((spec.approval, spec.interval, spec.stalled_after), (Approving::Auto, MINUTE, HOUR));
    assert_eq!((spec.runner.image.as_str(), spec.runner.extras.as_str()), ("registry.example.com/terraform:1", ""));
    assert_eq!((spec.runner.deadline, spec.runner.grace), (HOUR, 5 * MINUTE));
    assert_eq!((spec.retry, spec.keep), (Retry { limit: 0, backoff: MINUTE }, Keep { succeeded: 3, failed: 3 }));
    assert_eq!(spec.runner.steps.prepare.join(" "), "terraform init -input=false -no-color");
    assert_eq!(spec.runner.steps.apply.join(" "), "terraform apply -input=false -auto-approve -no-color");
}

#[test]
fn a_plan_that_is_asked_for_is_what_is_applied() {
    let steps = spec(&json!({"approval": "Plan"})).runner.steps;
    assert_eq!(steps.apply.join(" "), "terraform apply -input=false -no-color /workspace/out/plan.bin");
    let [shell, flag, script, _] = &steps.plan[..] else { panic!("{steps:?}") };
    assert_eq!((shell.as_str(), flag.as_str()), ("sh", "-c"));
    assert!(
        script.contains("\nterraform plan -input=false -no-color -out=/workspace/out/plan.bin \"$@\" &"),
        "{script}"
    );
    assert!(
        script.ends_with("\nexec terraform show -json /workspace/out/plan.bin > /workspace/out/plan.json"),
        "{script}"
    );
    assert!(spec(&json!({"approval": "Revision"})).runner.steps.apply.contains(&"-auto-approve".to_owned()));
}

#[test]
fn a_lock_is_waited_for_as_long_as_the_spec_says_by_what_takes_it() {
    let steps = spec(&json!({"approval": "Plan", "runner": {"lockTimeout": "5m"}})).runner.steps;
    assert_eq!(steps.plan.last().unwrap(), "-lock-timeout=300s");
    assert_eq!(
        steps.apply.join(" "),
        "terraform apply -input=false -lock-timeout=300s -no-color /workspace/out/plan.bin"
    );
    assert!(
        !spec(&json!({})).runner.local_state && spec(&json!({"runner": {"allowLocalState": true}})).runner.local_state
    );
}

#[test]
fn a_step_that_is_given_replaces_that_of_the_preset_and_an_empty_one_leaves_it_out() {
    let steps = spec(&json!({"runner": {"steps": {"prepare": [], "apply": ["make", "apply"]}}})).runner.steps;
    assert_eq!((steps.prepare.len(), steps.apply.join(" ").as_str(), steps.plan.len()), (0, "make apply", 4));
    let command = json!({"preset": "Command", "image": "node:24", "steps": {"apply": ["npm", "run", "publish"]}});
    let runner = spec(&json!({"runner": command})).runner;
    assert_eq!((runner.preset, runner.image.as_str()), (Preset::Command, "node:24"));
    assert_eq!((runner.steps.prepare.len(), runner.steps.plan.len(), runner.steps.apply.len()), (0, 0, 3));
}

#[test]
fn outputs_are_read_with_the_command_that_says_them() {
    let outputs = json!({"secretRef": {"name": "infra-outputs"}, "names": ["vpc_id", "endpoint"]});
    let terraform = spec(&json!({"outputs": outputs})).runner;
    let named = terraform.outputs.unwrap();
    assert_eq!((named.secret.as_str(), named.names.join(" ").as_str()), ("infra-outputs", "vpc_id endpoint"));
    let script = "exec terraform output -json > /workspace/out/outputs.json";
    assert_eq!(terraform.steps.output, ["sh", "-c", script]);
    let command = |output: Value| {
        let steps = json!({"apply": ["tool"], "output": output});
        with(&json!({"outputs": outputs, "runner": {"preset": "Command", "image": "tool:1", "steps": steps}})).spec
    };
    assert_eq!(command(json!(["tool", "say"])).unwrap().runner.steps.output, ["tool", "say"]);
    assert!(command(Value::Null).unwrap_err().contains("runner.steps.output is missing"));
}

#[test]
fn everything_that_can_be_said_is_read() {
    let spec = spec(&json!({
        "ref": {"tag": "v1.2"}, "path": "./envs//prod/", "interval": "30s", "secretRef": {"name": "git"},
        "approval": "Revision", "workspace": "prod", "retry": {"limit": 2, "backoff": "30s"}, "suspend": true,
        "keep": {"succeeded": 0, "failed": 50}, "stalledAfter": "2h", "driftEvery": "6h", "onDrift": "Apply",
        "gates": {
            "windows": [{"days": ["Mon"], "from": "09:00", "to": "17:00"}],
            "freezes": [{"from": "2026-12-20T00:00:00Z", "to": "2027-01-03T00:00:00Z", "reason": "holidays"}],
            "verdict": {"url": "https://gate.example.com/x", "secretRef": {"name": "gate"}},
            "needs": [
                {"apiVersion": "allclear.dev/v1alpha1", "kind": "Repo", "name": "network"},
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "db", "namespace": "shop",
                 "clusterRef": {"kind": "Secret", "name": "eu-1"}},
            ],
        },
        "runner": {"serviceAccountName": "deployer", "kubernetesToken": true, "deadline": "2h", "grace": "0s"},
    }));
    assert_eq!((&spec.source.wanted, spec.source.path.as_str()), (&Wanted::Tag("v1.2".to_owned()), "envs/prod"));
    assert_eq!((spec.source.secret.as_deref(), spec.workspace.as_deref()), (Some("git"), Some("prod")));
    assert_eq!((spec.interval, spec.stalled_after), (Duration::from_secs(30), 2 * HOUR));
    assert_eq!(spec.drift, Some(DriftLooks { every: 6 * HOUR, then: OnDrift::Apply }));
    assert_eq!(spec.retry, Retry { limit: 2, backoff: Duration::from_secs(30) });
    assert_eq!(
        (spec.keep, spec.suspended.as_deref()),
        (Keep { succeeded: 0, failed: 50 }, Some("spec.suspend is true"))
    );
    assert_eq!((spec.gates.windows.len(), spec.gates.freezes.len(), spec.gates.verdict.is_some()), (1, 1, true));
    let needs = spec.gates.needs.iter().map(TargetKey::display_name).collect::<Vec<_>>();
    assert_eq!(needs, ["platform/network", "eu-1/shop/db"]);
    assert_eq!((spec.runner.service_account.as_deref(), spec.runner.kubernetes_token), (Some("deployer"), true));
    assert_eq!((spec.runner.deadline, spec.runner.grace), (2 * HOUR, Duration::ZERO));
}

#[test]
fn nothing_looks_for_drift_unless_it_is_asked_for_and_then_it_only_tells() {
    assert_eq!(spec(&json!({})).drift, None);
    let told = spec(&json!({"driftEvery": "10m"}));
    assert_eq!(told.drift, Some(DriftLooks { every: 10 * MINUTE, then: OnDrift::Tell }));
    assert_eq!(
        told.settings(),
        spec(&json!({})).settings(),
        "it changes nothing of what would run, so it voids no yes"
    );
    let command = json!({"preset": "Command", "image": "a", "steps": {"plan": ["make", "plan"], "apply": ["make"]}});
    assert!(spec(&json!({"driftEvery": "30d", "runner": command})).drift.is_some());
}

#[test]
fn watched_paths_are_read_as_people_write_them_and_none_is_another_thing_than_an_empty_list() {
    let source = |fields: &Value| spec(fields).source;
    assert_eq!(source(&json!({"path": "infra"})).concerning(), None, "each commit concerns it");
    let alone = source(&json!({"path": "./infra/", "watchPaths": []}));
    assert_eq!(alone.concerning().unwrap(), ["infra"]);
    let more = source(&json!({"path": "infra", "watchPaths": ["modules//net/", "./a.tf", "infra", "modules/net"]}));
    assert_eq!(more.concerning().unwrap(), ["infra", "a.tf", "modules/net"]);
    let other = source(&json!({"path": "infra", "watchPaths": ["a.tf", "modules/net"]}));
    assert_eq!(other.paths_hash(), more.paths_hash(), "the same paths in another order");
    assert_ne!(other.paths_hash(), alone.paths_hash());
    assert_eq!(source(&json!({"watchPaths": []})).concerning().unwrap(), [""], "the whole repository");
}

#[test]
fn what_kubernetes_has_of_its_own_comes_in_one_form() {
    let runner = json!({
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "env": [{"value": "eu", "name": "TF_VAR_region"}], "nodeSelector": {"b": "2", "a": "1"}, "envFrom": [],
        "mounts": [{"secret": {"secretName": "vars"}, "mountPath": "/etc/vars", "readOnly": true}],
        "imagePullSecrets": [{"name": "pull"}], "resources": {},
    });
    assert_eq!(
        spec(&json!({"runner": runner})).runner.extras,
        r#"{"env":[{"name":"TF_VAR_region","value":"eu"}],"imagePullSecrets":[{"name":"pull"}],"#.to_owned()
            + r#""mounts":[{"mountPath":"/etc/vars","readOnly":true,"secret":{"secretName":"vars"}}],"#
            + r#""nodeSelector":{"a":"1","b":"2"},"tolerations":[{"key":"a","operator":"Exists"}]}"#
    );
}

#[test]
fn names_that_git_accepts_are_taken_as_they_are() {
    for name in ["main", "feature/a-b", "release-1.2", "ünï", "a@b", "v1.0.0+build"] {
        assert_eq!(spec(&json!({"ref": {"branch": name}})).source.wanted, Wanted::Branch(name.to_owned()));
    }
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let wanted = spec(&json!({"ref": {"commit": commit, "branch": ""}})).source.wanted;
    assert_eq!(wanted, Wanted::Commit(commit.parse().expect("a commit's id")));
}

#[test]
fn an_address_of_ssh_is_taken_with_a_secret() {
    let url = "ssh://git@git.example.com:2222/a/b.git";
    let source = spec(&json!({"url": url, "secretRef": {"name": "git"}})).source;
    assert_eq!((source.url.as_str(), source.secret.as_deref()), (url, Some("git")));
}

/// What git takes for no name of a branch.
const NO_BRANCHES: [&str; 23] = [
    "-x",
    "--upload-pack=sh",
    "a..b",
    "a b",
    "a~1",
    "a^",
    "a:b",
    "a?",
    "a*",
    "a[",
    "a\\b",
    "a.lock",
    "a.lock/b",
    "a/",
    "/a",
    "a//b",
    ".a",
    "a/.b",
    "a.",
    "@",
    "a@{1}",
    "a\u{7f}",
    "a\nb",
];

/// Fields of a spec, and words of what is said about them.
fn invalid_sources() -> Vec<(Value, &'static str)> {
    let url = |url: &str| json!({"url": url});
    let path = |path: &str| json!({"path": path});
    let watch = |paths: &[&str]| json!({"path": "infra", "watchPaths": paths});
    let mut all = vec![
        (url(""), "url is empty"),
        (url("ssh://git@git.example.com/a/b"), "name it in secretRef"),
        (url("ssh://git:s3cr3t@git.example.com/a/b"), "it holds a password"),
        (url("ssh://-oProxyCommand=x/a/b"), "its host is no name"),
        (url("git@git.example.com:a/b.git"), "write ssh://git@git.example.com/a/b.git"),
        (url("git+ssh://git@git.example.com/a/b"), "no https address"),
        (url("http://git.example.com/a/b"), "no https address"),
        (url("file:///etc"), "no https address"),
        (url("/srv/git/a.git"), "url is no URL"),
        (url("https://me@git.example.com/a/b"), "has a user in it"),
        (url("https://me:s3cr3t@git.example.com/a/b"), "has a user in it"),
        (url("https://git.example.com/a/b?token=s3cr3t"), "a query or a fragment"),
        (url("https://git.example.com/a/b#x"), "a query or a fragment"),
        (url("https://git.example.com/"), "names a host and no repository"),
        (url("https://git.example.com/a\n/b"), "blanks or hidden characters"),
        (url("https://git.example.com/a b"), "blanks or hidden characters"),
        (url(&format!("https://git.example.com/{}", "a".repeat(1100))), "url is longer than"),
        (path("/etc"), "path is relative to the repository's root"),
        (path("a/../../b"), "lead out of the repository"),
        (path("a\u{0}b"), "hidden characters"),
        (path(&"a/".repeat(600)), "path is longer than"),
        (watch(&["a", "/etc"]), "watchPaths[1] is relative to the repository's root"),
        (watch(&["a/../.."]), "watchPaths[0] has .. in it"),
        (watch(&["a\\b"]), "watchPaths[0] has hidden characters"),
        (watch(&["a", "modules/**"]), "watchPaths[1] has *, ? or [ in it: give folders and files, no patterns"),
        (watch(&["a.?f"]), "watchPaths[0] has *, ? or [ in it"),
        (watch(&["[ab]"]), "watchPaths[0] has *, ? or [ in it"),
        (watch(&["."]), "watchPaths[0] is the whole repository: leave watchPaths out"),
        (watch(&[""]), "watchPaths[0] is the whole repository"),
        (watch(&["a"; 51]), "51 watchPaths, 50 at most"),
        (json!({"watchPaths": ["modules"]}), "path is not given: then the whole repository counts"),
        (json!({"watchPaths": "modules"}), "invalid type"),
        (json!({"secretRef": {"name": "../other/git"}}), "secretRef.name"),
        (json!({"ref": {"branch": "main", "tag": "v1"}}), "at most one of"),
        (json!({"ref": {"commit": "abc"}}), "no commit's id"),
        (json!({"ref": {"commit": "0123456789ABCDEF0123456789abcdef01234567"}}), "no commit's id"),
    ];
    all.extend(NO_BRANCHES.map(|name| (json!({"ref": {"branch": name}}), "no name that git accepts for a branch")));
    all.push((json!({"ref": {"tag": "a".repeat(256)}}), "no name that git accepts for a tag"));
    all
}

fn invalid_runners() -> Vec<(Value, &'static str)> {
    let runner = |fields: Value| json!({"runner": fields});
    let mounts = |fields: Value| json!({"runner": {"mounts": [fields]}});
    let at = |path: &str| json!({"runner": {"mounts": [{"mountPath": path, "emptyDir": {}}]}});
    let many = |count: usize| Value::from_iter((0..count).map(|_| json!({"name": "A", "value": "b"})));
    vec![
        (runner(json!({"preset": "Command", "steps": {"apply": ["make"]}})), "runner.image is missing"),
        (runner(json!({"preset": "Command", "image": "a"})), "runner.steps.apply is missing"),
        (runner(json!({"preset": "Shell"})), "unknown variant"),
        (runner(json!({"steps": {"apply": []}})), "runner.steps.apply is missing"),
        (runner(json!({"steps": {"apply": ["", "-c"]}})), "begins with an empty word"),
        (runner(json!({"steps": {"apply": vec!["a"; 101]}})), "101 words of runner.steps.apply, 100 at most"),
        (runner(json!({"steps": {"apply": ["a".repeat(5000)]}})), "is longer than 4096"),
        (runner(json!({"image": "a b"})), "no name of an image"),
        (runner(json!({"serviceAccountName": "a/b"})), "runner.serviceAccountName"),
        (runner(json!({"deadline": "59s"})), "runner.deadline is not between 1m and 1day"),
        (runner(json!({"grace": "61m"})), "runner.grace is not between 0s and 1h"),
        (runner(json!({"env": many(51)})), "51 runner.env, 50 at most"),
        (runner(json!({"env": [{"value": "b"}]})), "has no name"),
        (runner(json!({"env": ["A=b"]})), "an entry of runner.env is no object"),
        (runner(json!({"envFrom": [7]})), "an entry of runner.envFrom is no object"),
        (runner(json!({"resources": [1]})), "runner.resources is no object"),
        (runner(json!({"imagePullSecrets": [{"name": ""}]})), "runner.imagePullSecrets"),
        (runner(json!({"env": [{"name": "A", "value": "x".repeat(17_000)}]})), "16384 at most"),
        (mounts(json!({"mountPath": "/a"})), "not exactly one of"),
        (mounts(json!({"mountPath": "/a", "emptyDir": {}, "secret": {"secretName": "b"}})), "not exactly one of"),
        (mounts(json!({"mountPath": "/a", "hostPath": {"path": "/"}})), "not exactly one of"),
        (mounts(json!({"mountPath": "/a", "secret": "b"})), "not exactly one of"),
        (mounts(json!({"mountPath": "/a", "emptyDir": {}, "subPath": "../b"})), "leads out of the volume"),
        (at("a"), "does not begin with /"),
        (at("/"), "an empty part"),
        (at("/a/../workspace"), "an empty part"),
        (at("//workspace"), "an empty part"),
        (at("/a:b"), "an empty part"),
        (at("/workspace"), "where allclear mounts something itself"),
        (at("/workspace/out"), "where allclear mounts something itself"),
        (at("/tmp"), "where allclear mounts something itself"),
        (
            runner(json!({"mounts": [{"mountPath": "/a", "emptyDir": {}}, {"mountPath": "/a", "emptyDir": {}}]})),
            "two of runner.mounts are at /a",
        ),
    ]
}

fn invalid_others() -> Vec<(Value, &'static str)> {
    let never = |fields: Value| {
        let mut spec = json!({"approval": "Never"});
        spec.as_object_mut().expect("an object").extend(fields.as_object().cloned().expect("an object"));
        spec
    };
    vec![
        (never(json!({"runner": {"preset": "Command", "image": "a"}})), "missing, which approval: Never needs"),
        (json!({"report": {"type": "bitbucket-server", "secretRef": {"name": "a"}}}), "github, gitlab or gitea"),
        (json!({"report": {"type": "github"}}), "report.secretRef is missing"),
        (json!({"report": {"type": "github", "secretRef": {"name": "../a"}}}), "report.secretRef.name"),
        (json!({"report": {"secretRef": {"name": "a"}}}), "missing field `type`"),
        (json!({"report": {"type": "github", "secretRef": {"name": "a"}, "detail": "Values"}}), "unknown variant"),
        (never(json!({"driftEvery": "1h", "onDrift": "Apply"})), "which approval: Never forbids"),
        (json!({"interval": "29s"}), "interval is not between 30s and 1day"),
        (json!({"interval": "25h"}), "interval is not between"),
        (json!({"interval": "often"}), "interval is no duration"),
        (json!({"stalledAfter": "10s"}), "stalledAfter is shorter than 1m"),
        (json!({"approval": "Maybe"}), "unknown variant"),
        (json!({"driftEvery": "9m"}), "driftEvery is shorter than 10m"),
        (json!({"driftEvery": "0s"}), "driftEvery is shorter than 10m"),
        (json!({"driftEvery": "31d"}), "driftEvery is longer than 30d"),
        (json!({"driftEvery": "daily"}), "driftEvery is no duration"),
        (json!({"driftEvery": "6h", "onDrift": "Undo"}), "unknown variant"),
        (json!({"onDrift": "Tell"}), "without driftEvery nothing looks for it"),
        (
            json!({"driftEvery": "6h", "runner": {"preset": "Command", "image": "a", "steps": {"apply": ["make"]}}}),
            "runner.steps.plan is missing, which driftEvery needs",
        ),
        (
            json!({"driftEvery": "6h", "runner": {"steps": {"plan": []}}}),
            "runner.steps.plan is missing, which driftEvery",
        ),
        (
            json!({"approval": "Plan", "runner": {"preset": "Command", "image": "a", "steps": {"apply": ["make"]}}}),
            "runner.steps.plan is missing",
        ),
        (json!({"approval": "Plan", "runner": {"steps": {"plan": []}}}), "runner.steps.plan is missing"),
        (json!({"workspace": "a/b"}), "no name of a workspace"),
        (json!({"retry": {"limit": 11}}), "retry.limit is not between 0 and 10"),
        (json!({"retry": {"limit": -1}}), "retry.limit is not between 0 and 10"),
        (json!({"retry": {"backoff": "2h"}}), "retry.backoff is not between"),
        (json!({"keep": {"failed": 51}}), "keep.failed is not between 0 and 50"),
        (json!({"keep": {"succeeded": -1}}), "keep.succeeded is not between 0 and 50"),
        (json!({"gates": {"windows": vec![json!({"from": "09:00", "to": "10:00"}); 21]}}), "21 windows, 20 at most"),
        (json!({"gates": {"verdict": {"url": "http://gate.example.com"}}}), "gates.verdict.url is no https address"),
        (json!({"gates": {"needs": [need("Repo", "infra", None)]}}), "gates.needs names this Repo itself"),
        (json!({"gates": {"needs": [need("Repo", "../x", None)]}}), "needs.name: \"../x\" is no name"),
        (json!({"gates": {"needs": vec![need("Repo", "a", None); 21]}}), "21 needs, 20 at most"),
        (
            json!({"gates": {"needs": [need("Repo", "a", Some(("Secret", "other")))]}}),
            "the Secret of a clusterRef is in the Repo's namespace",
        ),
        (
            json!({"gates": {"needs": [{"apiVersion": "v1", "kind": "Secret", "name": "a"}]}}),
            "a Secret is never read as an app",
        ),
    ]
}

#[test]
fn a_spec_that_cannot_be_used_says_what_is_wrong_and_where() {
    for (fields, expected) in invalid_sources().into_iter().chain(invalid_runners()).chain(invalid_others()) {
        let why = with(&fields).spec.expect_err(expected);
        assert!(
            why.contains(expected) && why.len() <= MESSAGE_BYTES_MAX && !why.contains("s3cr3t") && !why.contains('\n'),
            "{expected}: {why}"
        );
    }
}

#[test]
fn what_is_at_a_limit_is_within_it() {
    for fields in [
        json!({"interval": "24h", "keep": {"succeeded": 50}, "retry": {"limit": 10, "backoff": "1h"}}),
        json!({"runner": {"deadline": "24h", "grace": "1h", "steps": {"apply": vec!["a"; 100]}}}),
        json!({"runner": {"env": vec![json!({"name": "A"}); 50]}, "ref": {"tag": "a".repeat(255)}}),
        json!({"runner": {"mounts": [{"mountPath": "/workspaces/a", "emptyDir": {}}, {"mountPath": "/tmp/b", "emptyDir": {}}]}}),
    ] {
        assert!(with(&fields).spec.is_ok(), "{fields}: {:?}", with(&fields).spec);
    }
}

#[test]
fn a_repo_in_allclears_own_namespace_is_refused() {
    let mut object = example();
    object["metadata"]["namespace"] = json!("allclear-system");
    let refused = super::object(&object.to_string(), &installation()).unwrap();
    assert!(refused.spec.unwrap_err().starts_with("Repos are refused in the namespace of allclear itself: "));
    let elsewhere = Installation { namespace: None, ..installation() };
    assert!(super::object(&object.to_string(), &elsewhere).unwrap().spec.is_ok());
}

#[test]
fn what_cannot_be_named_or_remembered_is_no_object() {
    for (pointer, value) in [
        ("/metadata/uid", json!(7)),
        ("/metadata/resourceVersion", json!(null)),
        ("/status/serial", json!(-1)),
        ("/status/run", json!([])),
    ] {
        let mut object = example();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[field] = value;
        assert!(super::object(&object.to_string(), &installation()).is_err(), "{pointer}");
    }
    let mut without = example();
    without.as_object_mut().unwrap().remove("spec");
    assert_eq!(object(&without.to_string(), &installation()).unwrap().spec, Err("spec is missing".to_owned()));
}

fn need(kind: &str, name: &str, cluster: Option<(&str, &str)>) -> Value {
    let mut need = json!({"apiVersion": "allclear.dev/v1alpha1", "kind": kind, "name": name});
    if let Some((kind, namespace)) = cluster {
        need["clusterRef"] = json!({"kind": kind, "name": "eu-1", "namespace": namespace});
    }
    need
}

#[test]
fn a_cluster_of_another_namespace_can_be_forbidden_and_the_same_name_there_is_another_repo() {
    let mut object = example();
    object["spec"]["gates"] = json!({"needs": [need("Repo", "infra", Some(("GitopsCluster", "clusters")))]});
    let read = |confined| super::object(&object.to_string(), &Installation { confined, ..installation() }).unwrap();
    assert!(read(false).spec.is_ok());
    let why = read(true).spec.unwrap_err();
    assert!(why.contains("GitopsCluster/clusters/eu-1 is in another namespace"), "{why}");
}
