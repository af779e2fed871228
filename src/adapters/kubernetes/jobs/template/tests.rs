use std::collections::BTreeSet;
use std::time::Duration;

use expect_test::{expect, expect_file};
use proptest::prelude::*;

use super::*;
use kernel::id::{RepoId, RunSeq};
use objects::repo::lock::LockId;
use objects::repo::outputs::Outputs;
use objects::repo::spec::{DestroySteps, Preset, Runner, Source, Steps};
use objects::repo::status::Attempt;

fn ours() -> Ours {
    Ours { image: "allclear:1".to_owned(), ..Ours::default() }
}

fn order(action: Action) -> Order {
    let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    Order {
        name: "infra-0123456789ab".to_owned(),
        repo: RepoId::new("platform", "infra"),
        uid: "5d5a5c1e-0000-4000-8000-000000000001".to_owned(),
        attempt: Attempt { seq: RunSeq(7), action, number: 2 },
        revision: "0123456789abcdef0123456789abcdef01234567".parse().expect("a commit's id"),
        source: Source { url: "https://git.example.com/platform/infra.git".to_owned(), ..Source::default() },
        runner: Runner {
            image: "terraform:1".to_owned(),
            steps: Steps {
                prepare: argv(&["terraform", "init"]),
                plan: argv(&["sh", "-c", "x=$(date); echo $$"]),
                apply: argv(&["terraform", "apply"]),
                output: argv(&["terraform", "output", "-json"]),
            },
            deadline: Duration::from_secs(3_600),
            grace: Duration::from_secs(300),
            ..Runner::default()
        },
        workspace: None,
        planned: false,
        fingerprint: None,
        unlock: None,
        addresses: false,
    }
}

fn made(order: &Order) -> Value {
    job(order, &ours()).unwrap()
}

fn containers(job: &Value) -> Vec<Value> {
    let of = |list: &str| job["spec"]["template"]["spec"][list].as_array().unwrap().clone();
    [of("initContainers"), of("containers")].concat()
}

fn container(job: &Value, name: &str) -> Value {
    containers(job).into_iter().find(|container| container["name"] == name).unwrap()
}

fn names(job: &Value) -> Vec<String> {
    containers(job).iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_action_has_the_steps_that_it_needs_and_no_others() {
    let mut plan = order(Action::Plan);
    assert_eq!(names(&made(&plan)), ["source", "prepare", "backend", "plan", "report"]);
    plan.runner.steps.prepare.clear();
    plan.runner.local_state = true;
    assert_eq!(names(&made(&plan)), ["source", "plan", "report"]);
    plan.runner = Runner { preset: Preset::Command, local_state: false, ..plan.runner };
    assert_eq!(names(&made(&plan)), ["source", "plan", "report"]);
    let look = made(&order(Action::Drift));
    assert_eq!(names(&look), ["source", "prepare", "backend", "plan", "report"], "it applies nothing");
    assert_eq!(look["metadata"]["labels"]["allclear.dev/action"], "drift");
    let mut apply = order(Action::Apply);
    assert_eq!(names(&made(&apply)), ["source", "prepare", "backend", "apply"]);
    apply.planned = true;
    assert_eq!(names(&made(&apply)), ["source", "prepare", "backend", "plan", "apply"]);
    apply.fingerprint = Some("f1".to_owned());
    assert_eq!(names(&made(&apply)), ["source", "prepare", "backend", "plan", "verify", "apply"]);
    let last = &made(&apply)["spec"]["template"]["spec"]["containers"];
    assert_eq!((last.as_array().unwrap().len(), &last[0]["name"]), (1, &json!("apply")));
}

fn named() -> Outputs {
    Outputs { secret: "infra-outputs".to_owned(), names: vec!["vpc_id".to_owned(), "-x$(y)".to_owned()] }
}

/// What a plan says is not there yet, so only an apply writes it, and after its end.
#[test]
fn outputs_are_written_at_the_end_of_an_apply_by_a_container_of_ours() {
    let mut apply = order(Action::Apply);
    apply.runner.outputs = Some(named());
    assert_eq!(names(&made(&apply)), ["source", "prepare", "backend", "apply", "output", "publish"]);
    apply.fingerprint = Some("f1".to_owned());
    let job = made(&apply);
    assert_eq!(names(&job), ["source", "prepare", "backend", "plan", "verify", "apply", "output", "publish"]);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(
        (&pod["containers"][0]["name"], &pod["automountServiceAccountToken"]),
        (&json!("publish"), &json!(false))
    );
    expect![[r#"
        ["step","verify","--preset","Terraform","--out","/workspace/out","--fingerprint","f1","--or-empty"]
        ["step","publish","--outputs=/workspace/out/outputs.json","--api=/run/api","--namespace=platform","--repo=infra","--secret=infra-outputs","--name=vpc_id","--name=-x$$(y)"]
        [{"mountPath":"/workspace/out","name":"out","readOnly":true},{"mountPath":"/tmp","name":"tmp","readOnly":false},{"mountPath":"/run/api","name":"api","readOnly":true}]
        {"name":"api","projected":{"defaultMode":288,"sources":[{"serviceAccountToken":{"expirationSeconds":600,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}}]}}
    "#]]
    .assert_eq(&format!(
        "{}\n{}\n{}\n{}\n",
        container(&job, "verify")["args"],
        container(&job, "publish")["args"],
        container(&job, "publish")["volumeMounts"],
        pod["volumes"][3],
    ));
    for action in [Action::Plan, Action::Drift] {
        let mut other = order(action);
        other.runner.outputs = Some(named());
        assert_eq!(names(&made(&other)), names(&made(&order(action))), "{action:?}");
    }
    apply.runner.steps.output.clear();
    assert!(super::job(&apply, &ours()).unwrap_err().to_string().contains("spec.runner.steps.output"));
}

#[test]
fn a_lock_is_taken_away_by_its_id_after_init_and_before_anything_meets_it() {
    let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut order = Order { unlock: LockId::new("a-1"), planned: true, ..order(Action::Apply) };
    let job = made(&order);
    assert_eq!(names(&job), ["source", "prepare", "backend", "unlock", "plan", "apply"]);
    let unlock = container(&job, "unlock");
    assert_eq!(unlock["command"], json!(["terraform", "force-unlock", "-force", "a-1"]));
    let plan = container(&job, "plan");
    for field in ["image", "env", "workingDir", "volumeMounts"] {
        assert_eq!(unlock[field], plan[field], "{field}");
    }
    for (prepare, tool) in [
        (argv(&["tofu", "init", "-input=false"]), "tofu"),
        (argv(&["sh", "-c", "terraform init"]), "terraform"),
        (Vec::new(), "terraform"),
    ] {
        order.runner.steps.prepare = prepare;
        assert_eq!(container(&made(&order), "unlock")["command"][0], tool);
    }
}

#[test]
fn a_destroy_runs_its_own_commands_and_none_without_a_plan_that_was_said_yes_to() {
    let argv = |word: &str| vec![word.to_owned()];
    let mut plan = order(Action::DestroyPlan);
    assert!(job(&plan, &ours()).is_err(), "nothing says how it destroys");
    plan.runner.destroy = Some(DestroySteps { plan: argv("plan-destroy"), destroy: argv("destroy") });
    let planned = made(&plan);
    assert_eq!(names(&planned), ["source", "prepare", "backend", "plan", "report"], "it destroys nothing");
    assert_eq!(container(&planned, "plan")["command"], json!(["plan-destroy"]));
    let mut destroy = Order { attempt: Attempt { action: Action::Destroy, ..plan.attempt }, ..plan };
    assert!(job(&destroy, &ours()).is_err(), "no plan was said yes to");
    destroy.fingerprint = Some("f1".to_owned());
    let destroyed = made(&destroy);
    assert_eq!(names(&destroyed), ["source", "prepare", "backend", "plan", "verify", "apply"]);
    assert_eq!(container(&destroyed, "plan")["command"], json!(["plan-destroy"]));
    assert_eq!(container(&destroyed, "apply")["command"], json!(["destroy"]));
    assert!(container(&destroyed, "verify")["args"].as_array().unwrap().contains(&json!("f1")));
    assert_eq!(destroyed["metadata"]["labels"]["allclear.dev/action"], "destroy");
}

#[test]
fn where_the_state_is_said_to_be_is_looked_at_where_the_commands_run() {
    let mut order = order(Action::Apply);
    let of = |order: &Order| container(&made(order), "backend")["args"].clone();
    assert_eq!(of(&order), json!(["step", "backend", "--folder", "/workspace/source", "--data", ".terraform"]));
    order.source.path = "envs/prod".to_owned();
    order.runner.extras = r#"{"env": [{"name": "TF_DATA_DIR", "value": "/tmp/data"}]}"#.to_owned();
    assert_eq!(
        of(&order),
        json!(["step", "backend", "--folder", "/workspace/source/envs/prod", "--data", "/tmp/data"])
    );
}

/// A quota on limits refuses every pod with a container that has none.
#[test]
fn each_container_has_requests_and_limits_and_both_can_be_set() {
    let limits = |order: &Order| {
        let of = |one: &Value| {
            let needs = &one["resources"];
            assert!(["requests", "limits"].iter().all(|part| needs[part]["cpu"].is_string()), "{one}");
            needs["limits"]["memory"].as_str().unwrap().to_owned()
        };
        containers(&made(order)).iter().map(of).collect::<Vec<_>>().join(" ")
    };
    let mut order = order(Action::Plan);
    assert_eq!(limits(&order), "256Mi 1Gi 256Mi 1Gi 256Mi");
    let set = |memory: &str| json!({"requests": {"cpu": "1m"}, "limits": {"cpu": "2", "memory": memory}});
    order.runner.extras = json!({"resources": set("3Gi"), "stepResources": set("64Mi")}).to_string();
    assert_eq!(limits(&order), "64Mi 3Gi 64Mi 3Gi 64Mi");
}

#[test]
fn an_action_without_a_command_is_refused_in_words() {
    let mut none = order(Action::Plan);
    none.runner.steps.plan.clear();
    assert!(job(&none, &ours()).unwrap_err().to_string().contains("spec.runner.steps.plan"));
    let mut none = order(Action::Apply);
    none.runner.steps.apply.clear();
    assert!(job(&none, &ours()).unwrap_err().to_string().contains("spec.runner.steps.apply"));
    let mut unknown = order(Action::Apply);
    unknown.runner.extras = r#"{"hostNetwork": true}"#.to_owned();
    assert!(job(&unknown, &ours()).unwrap_err().to_string().contains("unknown field `hostNetwork`"));
}

#[test]
fn our_steps_are_told_what_to_do_by_their_arguments_alone() {
    let mut order = order(Action::Apply);
    order.source.secret = Some("git".to_owned());
    order.source.wanted = Wanted::Branch("a$(b)".to_owned());
    order.fingerprint = Some("f1".to_owned());
    let made = made(&order);
    let told = |name: &str| format!("{}\n", container(&made, name)["args"]);
    expect![[r#"
        ["step","source","--url","https://git.example.com/platform/infra.git","--revision","0123456789abcdef0123456789abcdef01234567","--ref","refs/heads/a$$(b)","--into","/workspace/source","--secret","/run/git"]
        ["step","verify","--preset","Terraform","--out","/workspace/out","--fingerprint","f1"]
    "#]].assert_eq(&(told("source") + &told("verify")));
    assert!(["source", "verify"].iter().all(|name| container(&made, name).get("env").is_none()));
    let of = |wanted| {
        let source = Source { wanted, ..order.source.clone() };
        container(&job(&Order { source, ..order.clone() }, &ours()).unwrap(), "source")["args"][7].clone()
    };
    assert_eq!((of(Wanted::Head), of(Wanted::Tag("v1".to_owned()))), (json!("HEAD"), json!("refs/tags/v1")));
    assert_eq!(of(Wanted::Commit(order.revision.clone())), json!(order.revision.as_str()));
}

#[test]
fn a_command_of_the_users_runs_as_it_is_written_where_it_says() {
    let mut order = order(Action::Apply);
    order.planned = true;
    order.source.path = "live/eu".to_owned();
    let plan = container(&made(&order), "plan");
    assert_eq!(plan["command"], json!(["sh", "-c", "x=$$(date); echo $$$$"]));
    assert_eq!((&plan["workingDir"], &plan["image"]), (&json!("/workspace/source/live/eu"), &json!("terraform:1")));
    order.source.path.clear();
    assert_eq!(container(&made(&order), "plan")["workingDir"], "/workspace/source");
}

#[test]
fn the_environment_says_which_run_it_is_whatever_the_user_says() {
    let mut order = order(Action::Apply);
    order.workspace = Some("prod".to_owned());
    order.runner.extras = json!({"env": [
        {"name": "GIT_SHA", "value": "forged"},
        {"name": "HOME", "value": "/workspace"},
        {"name": "TF_VAR_x", "valueFrom": {"secretKeyRef": {"name": "vars", "key": "x"}}},
    ]})
    .to_string();
    let env = container(&made(&order), "apply")["env"].as_array().unwrap().clone();
    let said =
        env.iter().map(|entry| format!("{} {}\n", entry["name"], entry.get("value").unwrap_or(&entry["valueFrom"])));
    expect![[r#"
        "TF_IN_AUTOMATION" "true"
        "TF_INPUT" "0"
        "HOME" "/workspace"
        "TF_VAR_x" {"secretKeyRef":{"key":"x","name":"vars"}}
        "REPO_NAME" "infra"
        "REPO_URL" "https://git.example.com/platform/infra.git"
        "GIT_SHA" "0123456789abcdef0123456789abcdef01234567"
        "ALLCLEAR_RUN" "7"
        "TF_WORKSPACE" "prod"
    "#]]
    .assert_eq(&said.collect::<String>());
}

/// All of it: what keeps a Job from having a second pod; what is mounted, where the user and our steps look for it, and who may write
/// there; and what keeps a pod alone: a Service that selects `app: infra` must not send requests to it, and a mesh must not add a
/// container that never ends.
#[test]
fn the_whole_job_of_an_apply() {
    let mut order = order(Action::Apply);
    order.fingerprint = Some("f1".to_owned());
    order.source.secret = Some("git".to_owned());
    order.runner.kubernetes_token = true;
    order.runner.service_account = Some("deployer".to_owned());
    let ca = json!({"mountPath": "/ca", "subPath": "ca.crt", "configMap": {"name": "ca"}});
    let cache = json!({"mountPath": "/cache", "readOnly": true, "persistentVolumeClaim": {"claimName": "cache"}});
    order.runner.extras = json!({"mounts": [ca, cache]}).to_string();
    expect_file!["apply.json"].assert_eq(&format!("{:#}\n", made(&order)));
}

#[test]
fn a_name_that_is_too_long_for_a_label_is_left_out() {
    let mut order = order(Action::Apply);
    assert_eq!(made(&order)["metadata"]["labels"]["app"], "infra");
    order.repo = RepoId::new("platform", "a".repeat(64));
    let expected = json!({
        "controller": "repos.terraform.gitops.k8s.io", "allclear.dev/repo-uid": order.uid, "allclear.dev/seq": "7",
        "allclear.dev/action": "apply", "allclear.dev/attempt": "2",
        // A part of the name and a hash of the whole, by which its pods are watched.
        "allclear.dev/repo": format!("{}-fb209e068b70", "a".repeat(50)),
    });
    assert_eq!(made(&order)["metadata"]["labels"], expected);
}

/// The restricted profile, as its page has it
/// (<https://kubernetes.io/docs/concepts/security/pod-security-standards/>), and a root that is read only.
fn violations(job: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let pod = &job["spec"]["template"]["spec"];
    let mut must = |holds: bool, what: String| {
        if !holds {
            found.push(what);
        }
    };
    for host in ["hostNetwork", "hostPID", "hostIPC", "hostUsers", "ephemeralContainers"] {
        must(pod.get(host).is_none(), host.to_owned());
    }
    must(pod["securityContext"].get("sysctls").is_none(), "sysctls".to_owned());
    must(pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", "seccompProfile".to_owned());
    must(pod["securityContext"]["runAsUser"].as_i64().is_some_and(|user| user > 0), "runAsUser".to_owned());
    let kinds =
        ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"];
    for volume in pod["volumes"].as_array().unwrap() {
        let fields: Vec<&String> = volume.as_object().unwrap().keys().filter(|field| *field != "name").collect();
        must(fields.len() == 1 && kinds.contains(&fields[0].as_str()), format!("volume {volume}"));
    }
    for container in containers(job) {
        let security = &container["securityContext"];
        let name = &container["name"];
        must(security["allowPrivilegeEscalation"] == false, format!("{name}: escalation"));
        must(security["runAsNonRoot"] == true, format!("{name}: root"));
        must(security.get("runAsUser").is_none_or(|user| *user != 0), format!("{name}: user 0"));
        must(security["privileged"] == false, format!("{name}: privileged"));
        must(security["capabilities"] == json!({"drop": ["ALL"]}), format!("{name}: capabilities"));
        must(security["readOnlyRootFilesystem"] == true, format!("{name}: root filesystem"));
        let hostless = |port: &Value| port.get("hostPort").is_none();
        must(container["ports"].as_array().is_none_or(|ports| ports.iter().all(hostless)), format!("{name}: hostPort"));
        must(container.get("lifecycle").is_none(), format!("{name}: lifecycle"));
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            must(mount.get("mountPropagation").is_none(), format!("{name}: mount propagation"));
        }
    }
    found
}

#[test]
fn the_check_of_the_profile_finds_what_is_wrong() {
    let good = made(&order(Action::Apply));
    assert_eq!(violations(&good), Vec::<String>::new());
    let broken = [
        ("/spec/template/spec/hostNetwork", json!(true)),
        ("/spec/template/spec/volumes/0", json!({"name": "x", "hostPath": {"path": "/"}})),
        ("/spec/template/spec/containers/0/securityContext/privileged", json!(true)),
        ("/spec/template/spec/initContainers/0/securityContext/capabilities", json!({"drop": []})),
    ];
    for (at, value) in broken {
        let mut job = good.clone();
        let (parent, field) = at.rsplit_once('/').unwrap();
        match job.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[field.parse::<usize>().unwrap()] = value,
            object => object[field] = value,
        }
        assert_eq!(violations(&job).len(), 1, "{at}");
    }
}

fn any_extras() -> impl Strategy<Value = String> {
    let mount = (0..4_usize, "/[a-z]{1,8}", any::<bool>()).prop_map(|(kind, path, read_only)| {
        let volumes = [
            json!({"secret": {"secretName": "vars"}}),
            json!({"configMap": {"name": "vars"}}),
            json!({"persistentVolumeClaim": {"claimName": "cache"}}),
            json!({"emptyDir": {}}),
        ];
        let mut mount = volumes[kind].clone();
        mount["mountPath"] = json!(path);
        mount["readOnly"] = json!(read_only);
        mount
    });
    let env = "[A-Z_]{1,8}".prop_map(|name| json!({"name": name, "value": "$(HOME)"}));
    let parts = (proptest::collection::vec(mount, 0..4), proptest::collection::vec(env, 0..4), any::<bool>());
    parts.prop_map(|(mounts, env, more)| {
        let mut extras = json!({"mounts": mounts, "env": env});
        if more {
            extras["envFrom"] = json!([{"secretRef": {"name": "vars"}}]);
            extras["resources"] = json!({"limits": {"memory": "1Gi"}});
            extras["nodeSelector"] = json!({"disk": "fast"});
            extras["tolerations"] = json!([{"key": "spot", "operator": "Exists"}]);
            extras["imagePullSecrets"] = json!([{"name": "registry"}]);
        }
        extras.to_string()
    })
}

fn any_order() -> impl Strategy<Value = Order> {
    let argv = || proptest::collection::vec("[ -~]{0,12}", 1..4);
    let what = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let text = ("[a-z0-9]([-a-z0-9.]{0,80}[a-z0-9])?", "[a-zA-Z0-9/$()._-]{1,30}", "[a-z/]{0,20}");
    let steps = (argv(), argv(), proptest::option::of(argv()));
    (what, text, steps, any_extras(), 1..u64::MAX).prop_map(|(what, text, steps, extras, seq)| {
        let (plan, command, secret, planned, approved, publishes) = what;
        let (name, branch, path) = text;
        let mut order = order(if plan { Action::Plan } else { Action::Apply });
        order.attempt.seq = RunSeq(seq);
        order.repo.name = name;
        order.source.wanted = Wanted::Branch(branch);
        order.source.path = path;
        order.source.secret = secret.then(|| "git-credentials".to_owned());
        order.runner.preset = if command { Preset::Command } else { Preset::Terraform };
        order.runner.steps =
            Steps { plan: steps.0, apply: steps.1, prepare: steps.2.unwrap_or_default(), ..order.runner.steps };
        order.runner.extras = extras;
        order.runner.outputs = publishes.then(named);
        order.planned = planned;
        order.fingerprint = approved.then(|| "f1".to_owned());
        order.unlock = LockId::new("a-1").filter(|_| approved);
        order
    })
}

proptest! {
    #[test]
    fn every_pod_passes_the_restricted_profile_and_the_git_secret_is_in_source_alone(order in any_order()) {
        let job = made(&order);
        prop_assert_eq!(violations(&job), Vec::<String>::new());
        let git: BTreeSet<String> = job["spec"]["template"]["spec"]["volumes"].as_array().unwrap().iter()
            .filter(|volume| volume.to_string().contains("git-credentials"))
            .map(|volume| volume["name"].as_str().unwrap().to_owned()).collect();
        prop_assert_eq!(git.len(), usize::from(order.source.secret.is_some()));
        let publishes = order.runner.outputs.is_some() && order.attempt.action == Action::Apply;
        prop_assert_eq!(job.to_string().contains("serviceAccountToken"), publishes);
        for container in containers(&job) {
            let mounts = container["volumeMounts"].as_array().unwrap();
            let has_git = mounts.iter().any(|mount| git.contains(mount["name"].as_str().unwrap()));
            prop_assert_eq!(has_git, container["name"] == "source" && order.source.secret.is_some());
            prop_assert!(!container["env"].to_string().contains("git-credentials"));
            let has_token = mounts.iter().any(|mount| mount["name"] == "api");
            prop_assert_eq!(has_token, container["name"] == "publish");
            let ours = ["source", "backend", "report", "verify", "publish"].contains(&container["name"].as_str().unwrap());
            prop_assert_eq!(&container["image"], if ours { "allclear:1" } else { "terraform:1" });
            prop_assert!(!ours || (container.get("env").is_none() && container.get("envFrom").is_none()));
        }
    }

    #[test]
    fn an_order_has_one_template_and_no_field_that_the_api_does_not_have(order in any_order()) {
        let job = made(&order);
        prop_assert_eq!(&job, &made(&order.clone()));
        let typed: k8s_openapi::api::batch::v1::Job = serde_json::from_value(job.clone()).unwrap();
        prop_assert_eq!(serde_json::to_value(typed).unwrap(), job);
    }
}
