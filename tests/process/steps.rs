//! The steps of a Repo's Job as its pod runs them: the commit from real git, the Terraform preset's own command lines with a stand-in
//! for `terraform`, and what the controller and people are told.

mod policy;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use allclear::adapters::kubernetes::crd::repo::{Installation, object};
use objects::repo::job::PLAN_DIFFERS;
use objects::repo::plan::{Message, Planned};
use objects::repo::spec::Steps;
use objects::repo::status::Counts;
use sandbox::forge::{ForgeHost, Kind, Site, Table};
use sandbox::git::GitHost;
use sandbox::http::{Reply, Server, StandIn};
use serde_json::json;
use support::process::{comes_true, program};
use tempfile::TempDir;

const REPOSITORY: &str = "platform/infra.git";
const URL: &str = "https://git.example.com/platform/infra.git";

/// What the preset Terraform runs; `/workspace` is where the pod has its volume.
fn preset() -> Steps {
    steps_of(json!({"url": URL, "approval": "Plan"}))
}

fn steps_of(spec: serde_json::Value) -> Steps {
    let metadata = json!({"name": "infra", "namespace": "platform", "uid": "u", "resourceVersion": "1"});
    let json = json!({"apiVersion": "allclear.dev/v1alpha1", "kind": "Repo", "metadata": metadata, "spec": spec});
    let installation = Installation { terraform_image: "terraform:1".to_owned(), ..Installation::default() };
    object(&json.to_string(), &installation).expect("a Repo").spec.expect("a spec").runner.steps
}

/// Keeps to terraform's exit codes (1 for any error), to its plan files that go stale, to its JSON, and to its lock. A resource is a
/// line `NAME VALUE` of infra.tf; the state is such lines in $STATE, with its serial in $STATE.serial.
const TERRAFORM: &str = r#"#!/bin/sh
set -eu
fail() { printf 'Error: %s\n' "$1" >&2; exit 1; }
lock() { mkdir "$STATE.lock" 2>/dev/null || fail 'Error acquiring the state lock'; trap 'rmdir "$STATE.lock"' EXIT; }
value() { awk -v name="$2" '$1 == name { print $2 }' "$1"; }
serial() { cat "$STATE.serial" 2>/dev/null || echo 0; }
change() {
  printf '%s{"address":"null_resource.%s","mode":"managed","change":{"actions":["%s"],"before":%s,"after":%s,"after_unknown":{}}}' \
    "$comma" "$1" "$2" "$3" "$4"
  comma=,
}
quoted() { [ -z "$1" ] && printf null || printf '{"value":"%s"}' "$1"; }
plan() {
  touch "$STATE"
  printf '%s\n' "$(serial)"
  cp infra.tf "$out.wanted"
  comma= applyable=false
  cmp -s infra.tf "$STATE" || applyable=true
  printf '{"format_version":"1.2","terraform_version":"1.11.4","timestamp":"%s","applyable":%s,"errored":false,"resource_changes":[' \
    "$(date -u +%FT%TZ)" "$applyable"
  for name in $(cat infra.tf "$STATE" | awk '{ print $1 }' | sort -u); do
    old=$(value "$STATE" "$name") new=$(value infra.tf "$name")
    if [ "$old" = "$new" ]; then action=no-op
    elif [ -z "$old" ]; then action=create
    elif [ -z "$new" ]; then action=delete
    else action=update; fi
    change "$name" "$action" "$(quoted "$old")" "$(quoted "$new")"
  done
  printf '],"output_changes":{}}\n'
}
case $1 in
  init)
    [ -f infra.tf ] || fail 'the directory has no Terraform configuration files'
    mkdir -p .terraform
    grep -q '^backend' infra.tf && printf '{"version":3,"backend":{"type":"%s"}}' "$(value infra.tf backend)" > .terraform/terraform.tfstate
    true ;;
  plan)
    [ -d .terraform ] || fail 'Backend initialization required, please run "terraform init"'
    for argument; do case $argument in -out=*) out=${argument#-out=} ;; esac; done
    lock
    [ -z "${SLOW-}" ] || { trap 'rmdir "$STATE.lock"; exit 1' TERM; touch "$STATE.slow"; while :; do sleep 0.1; done; }
    plan > "$out" ;;
  show) tail -n 1 "$3" ;;
  apply)
    for argument; do out=$argument; done
    lock
    [ "$(head -n 1 "$out")" = "$(serial)" ] || fail 'Saved plan is stale'
    cp "$out.wanted" "$STATE"
    echo $(($(serial) + 1)) > "$STATE.serial" ;;
  output)
    [ "$2" = -json ] || fail 'only -json'
    awk 'BEGIN { printf "{" } { printf "%s\"%s\":{\"sensitive\":false,\"type\":\"string\",\"value\":\"%s\"}", c, $1, $2; c="," } END { print "}" }' "$STATE" ;;
  *) fail "unknown command $1" ;;
esac
"#;

/// A git host, and a place for workspaces and for the state.
struct Scene {
    folder: TempDir,
    host: Arc<GitHost>,
    forge: Arc<ForgeHost>,
    server: Server,
}

/// The volume of one pod.
struct Pod<'a> {
    scene: &'a Scene,
    root: PathBuf,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let host = Arc::new(GitHost::new().expect("a git host"));
        host.create(REPOSITORY, &[]).expect("a repository");
        let forge = Arc::new(ForgeHost::new(Kind::GitHub, "platform/infra", "token", Arc::new(Table::default())));
        let site = Site { git: Arc::clone(&host), forge: Arc::clone(&forge) };
        let server = Server::start(Arc::new(site) as Arc<dyn StandIn>).await.expect("loopback");
        let terraform = folder.path().join("bin/terraform");
        fs::create_dir(folder.path().join("bin")).expect("a folder");
        fs::write(&terraform, TERRAFORM).expect("written");
        fs::set_permissions(terraform, fs::Permissions::from_mode(0o755)).expect("it can be run");
        Self { folder, host, forge, server }
    }

    fn commit(&self, infra: &str) -> String {
        self.host.commit(REPOSITORY, "main", &[("infra.tf", infra.as_bytes())]).expect("a commit")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn pod(&self, name: &str) -> Pod<'_> {
        let root = self.folder.path().join(name);
        fs::create_dir_all(root.join("out")).expect("a folder");
        Pod { scene: self, root }
    }
}

impl Pod<'_> {
    /// A container of ours: its exit code, its termination message, and its words.
    fn step(&self, arguments: &[&str]) -> (i32, String, String) {
        let log = self.root.join("termination-log");
        fs::write(&log, "").expect("written");
        let mut command = Command::new(program());
        command.env_clear().arg("step").args(arguments).arg("--termination-log").arg(&log);
        let Output { status, stdout, stderr } = command.output().expect("the program runs");
        assert!(stdout.is_empty());
        let message = fs::read_to_string(log).expect("a text");
        assert!(message.len() <= 4096, "Kubernetes keeps no more");
        (status.code().expect("a code"), message, String::from_utf8(stderr).expect("text"))
    }

    fn source(&self, revision: &str, more: &[&str]) -> (i32, String, String) {
        let stand_in = format!("git.example.com={}", self.scene.server.address());
        let into = self.path("source");
        let arguments = ["source", "--url", URL, "--revision", revision, "--ref", "refs/heads/main", "--into", &into];
        self.step(&[&arguments, &["--stand-in", &stand_in][..], more].concat())
    }

    /// A container of the user's: its exit code and its words.
    fn user(&self, command: &[String]) -> (i32, String) {
        let Output { status, stderr, .. } = self.command(command).output().expect("it runs");
        (status.code().expect("a code"), String::from_utf8(stderr).expect("text"))
    }

    fn command(&self, command: &[String]) -> Command {
        let root = self.root.to_str().expect("text");
        let words: Vec<String> = command.iter().map(|word| word.replace("/workspace", root)).collect();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.scene.folder.path().join("bin").display());
        let mut command = Command::new("env");
        command.env_clear().env("PATH", path).env("STATE", self.scene.state()).args(&words);
        command.current_dir(self.root.join("source"));
        command
    }

    /// What `backend` says after `prepare`.
    fn backend(&self) -> (i32, String) {
        let (code, message, _) = self.step(&["backend", "--folder", &self.path("source"), "--data", ".terraform"]);
        (code, message)
    }

    fn planned(&self, revision: &str) {
        let (code, _, words) = self.source(revision, &[]);
        assert_eq!(code, 0, "{words}");
        let Steps { prepare, plan, .. } = preset();
        for command in [prepare, plan] {
            let (code, words) = self.user(&command);
            assert_eq!(code, 0, "{words}");
        }
    }

    fn report(&self) -> Planned {
        let (code, message, words) = self.step(&["report", "--preset", "Terraform", "--out", &self.path("out")]);
        assert_eq!(code, 0, "{words}");
        match Message::parse(&message).expect("a message") {
            Message::Planned(planned) => planned,
            Message::Differs(_) => panic!("{message}"),
        }
    }

    fn verify(&self, fingerprint: &str) -> (i32, Message, String) {
        let out = self.path("out");
        let arguments = ["verify", "--preset", "Terraform", "--out", &out, "--fingerprint", fingerprint];
        let (code, message, words) = self.step(&arguments);
        (code, Message::parse(&message).expect("a message"), words)
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).to_str().expect("text").to_owned()
    }
}

#[tokio::test]
async fn a_commit_is_planned_reported_verified_and_applied_as_its_pods_do_it() {
    let scene = Scene::new().await;
    let revision = scene.commit("bucket one\nqueue two\n");
    let first = scene.pod("plan");
    first.planned(&revision);
    let planned = first.report();
    assert_eq!((planned.counts, planned.empty), (Some(Counts { add: 2, change: 0, destroy: 0 }), false));

    let second = scene.pod("apply");
    second.planned(&revision);
    let (code, message, words) = second.verify(&planned.fingerprint);
    assert_eq!((code, &message), (0, &Message::Planned(planned.clone())), "{words}");
    assert!(words.contains("would add 2, change 0 and destroy 0"), "{words}");
    let apply = preset().apply;
    assert_eq!(second.user(&apply).0, 0);
    assert_eq!(fs::read_to_string(scene.state()).expect("a state"), "bucket one\nqueue two\n");

    let third = scene.pod("again");
    third.planned(&revision);
    assert!(third.report().empty, "nothing is left to change");
    assert_eq!(
        second.user(&apply),
        (1, "Error: Saved plan is stale\n".to_owned()),
        "the stand-in keeps terraform's rule"
    );
}

/// A run whose outputs could not be written is repeated by an apply of nothing, to which nobody said yes.
#[tokio::test]
async fn a_plan_that_changes_nothing_passes_where_outputs_are_wanted_and_no_other_does() {
    let scene = Scene::new().await;
    let pod = scene.pod("pod");
    let revision = scene.commit("bucket one\nqueue two\n");
    pod.planned(&revision);
    let (out, of_another) = (pod.path("out"), "f".repeat(64));
    let verify = ["verify", "--preset", "Terraform", "--out", &out, "--fingerprint", &of_another, "--or-empty"];
    assert_eq!(pod.step(&verify).0, PLAN_DIFFERS, "it changes something");
    let Steps { plan, apply, output, .. } = preset();
    assert_eq!(pod.user(&apply).0, 0);
    assert_eq!((pod.user(&plan).0, pod.step(&verify).0), (0, 0));
    assert_eq!(pod.step(&verify[..verify.len() - 1]).0, PLAN_DIFFERS, "without outputs it does not pass");
    assert_eq!((pod.user(&apply).0, pod.user(&output).0), (0, 0));
    let said: serde_json::Value =
        serde_json::from_slice(&fs::read(pod.root.join("out/outputs.json")).expect("a file")).expect("JSON");
    assert_eq!((&said["bucket"]["value"], &said["queue"]["value"]), (&json!("one"), &json!("two")));
}

// Faults: RF9
#[tokio::test]
async fn a_plan_that_is_another_one_by_the_time_it_is_applied_ends_the_job_before_the_apply() {
    let scene = Scene::new().await;
    let revision = scene.commit("bucket one\nqueue two\n");
    let first = scene.pod("plan");
    first.planned(&revision);
    let planned = first.report();
    // Somebody made the bucket by hand, meanwhile.
    fs::write(scene.state(), "bucket three\n").expect("written");
    let second = scene.pod("apply");
    second.planned(&revision);
    let (code, message, words) = second.verify(&planned.fingerprint);
    assert_eq!(code, PLAN_DIFFERS);
    let Message::Differs(now) = message else { panic!("{message:?}") };
    assert_eq!(now.counts, Some(Counts { add: 1, change: 1, destroy: 0 }));
    assert_eq!(now, second.report(), "what a person is asked next");
    assert!(words.contains("is not the one that was said yes to") && words.contains(&now.fingerprint), "{words}");
    assert_eq!(second.verify(&now.fingerprint).0, 0);
}

#[tokio::test]
async fn a_plan_that_failed_is_reported_as_none() {
    let scene = Scene::new().await;
    let revision = scene.commit("bucket one\n");
    let pod = scene.pod("plan");
    assert_eq!(pod.source(&revision, &[]).0, 0);
    let Steps { prepare, plan, .. } = preset();
    assert_eq!(pod.user(&prepare).0, 0);
    fs::create_dir(scene.folder.path().join("state.lock")).expect("held by another");
    assert_eq!(pod.user(&plan), (1, "Error: Error acquiring the state lock\n".to_owned()));
    let out = pod.path("out");
    let (code, message, words) = pod.step(&["report", "--preset", "Terraform", "--out", &out]);
    assert!(code == 1 && message.contains("the step plan wrote no ") && words.contains(&message), "{words}");
    fs::write(pod.root.join("out/plan.json"), "").expect("written");
    let (code, message, _) = pod.step(&["verify", "--preset", "Terraform", "--out", &out, "--fingerprint", "a"]);
    assert!(code == 1 && message.contains("not what terraform show -json writes"), "{message}");

    fs::write(pod.root.join("out/plan"), "+ a line\n").expect("written");
    let (code, message, _) = pod.step(&["report", "--preset", "Command", "--out", &out]);
    let Ok(Message::Planned(planned)) = Message::parse(&message) else { panic!("{message}") };
    assert_eq!((code, planned.counts, planned.empty), (0, None, false));
    let nowhere = ["report", "--preset", "Command", "--out", &out, "--termination-log", "nowhere/log"];
    let output = Command::new(program()).arg("step").args(nowhere).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(1), "what the controller is not told did not happen");
}

/// The state of a configuration without a backend, as of the sample of the program before ours, is a file of the pod.
#[tokio::test]
async fn a_state_that_would_be_lost_with_the_pod_ends_the_job_before_anything_is_planned() {
    let scene = Scene::new().await;
    for (backend, kept) in [("", false), ("backend local\n", false), ("backend s3\n", true)] {
        let pod = scene.pod(&format!("pod{}", backend.trim().replace(' ', "-")));
        let revision = scene.commit(&format!("bucket one\n{backend}"));
        assert_eq!(pod.source(&revision, &[]).0, 0);
        assert_eq!(pod.user(&preset().prepare).0, 0);
        let (code, message) = pod.backend();
        assert_eq!(code == 0, kept, "{message}");
        assert!(
            kept || (message.contains("name a backend") && message.contains("runner.allowLocalState")),
            "{message}"
        );
    }
}

#[tokio::test]
async fn the_commit_of_a_private_repository_is_fetched_as_a_github_app() {
    let scene = Scene::new().await;
    let revision = scene.commit("bucket one\n");
    scene.host.require_basic("x-access-token", "short-lived");
    let secret = scene.folder.path().join("secret");
    fs::create_dir(&secret).expect("a folder");
    for (key, value) in [("githubAppID", "4711\n"), ("githubAppInstallationID", "815")] {
        fs::write(secret.join(key), value).expect("written");
    }
    // In PKCS#1, as GitHub gives it out.
    let arguments = ["-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "", "-f"];
    let made = Command::new("ssh-keygen").args(arguments).arg(secret.join("githubAppPrivateKey")).status();
    assert!(made.expect("ssh-keygen is missing: install openssh-client").success());
    let secret = secret.to_str().expect("text");

    let (code, message, _) = scene.pod("before").source(&revision, &["--secret", secret]);
    assert!(code == 1 && message.contains("the App must be installed for this repository"), "{message}");
    scene.forge.install_apps(|request| {
        let document: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let asked = json!({"repositories": ["infra"], "permissions": {"contents": "read"}});
        match request.path.as_str() {
            "/api/v3/app/installations/815/access_tokens" if document == asked => {
                let token = json!({"token": "short-lived", "expires_at": "2100-01-01T00:00:00Z"});
                Reply::full(201, "application/json", token.to_string())
            }
            _ => Reply::full(422, "application/json", json!({"message": "Validation Failed"}).to_string()),
        }
    });
    let pod = scene.pod("pod");
    let (code, message, words) = pod.source(&revision, &["--secret", secret]);
    assert_eq!(code, 0, "{words}");
    assert!(!message.contains("short-lived") && !words.contains("short-lived"), "{words}");
    assert_eq!(fs::read_to_string(pod.root.join("source/infra.tf")).expect("a file"), "bucket one\n");
}

#[tokio::test]
async fn a_plan_that_is_told_to_end_gives_the_lock_of_its_state_back() {
    let scene = Scene::new().await;
    let pod = scene.pod("pod");
    assert_eq!(pod.source(&scene.commit("bucket one\n"), &[]).0, 0);
    let Steps { prepare, plan, .. } = preset();
    assert_eq!(pod.user(&prepare).0, 0);
    let mut planning = pod.command(&plan).env("SLOW", "1").spawn().expect("it runs");
    let state = scene.state().display().to_string();
    assert!(comes_true(async || Path::new(&format!("{state}.slow")).exists()).await, "it never planned");
    assert!(Path::new(&format!("{state}.lock")).exists());
    let told = Command::new("kill").args(["-TERM", &planning.id().to_string()]).status().expect("it runs");
    assert!(told.success());
    assert_eq!(planning.wait().expect("it ends").code(), Some(1));
    assert!(!Path::new(&format!("{state}.lock")).exists());
}

#[tokio::test]
async fn files_modes_and_links_are_as_git_has_them() {
    let scene = Scene::new().await;
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n";
    let git = |arguments: &[&str]| scene.host.git(REPOSITORY, arguments).expect("git");
    scene.commit("bucket one\n");
    let files =
        [("modules/net/main.tf", "x\n"), ("run.sh", "#!/bin/sh\n"), ("target", "modules/net"), ("large.bin", pointer)];
    scene.host.commit(REPOSITORY, "main", &files.map(|(path, content)| (path, content.as_bytes()))).expect("a commit");
    git(&["read-tree", "main"]);
    let id = |path: &str| git(&["rev-parse", &format!("main:{path}")]);
    git(&["update-index", "--add", "--cacheinfo", &format!("100755,{},run.sh", id("run.sh"))]);
    git(&["update-index", "--add", "--cacheinfo", &format!("120000,{},net", id("target"))]);
    git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},vendor", "5".repeat(40))]);
    let tree = git(&["write-tree"]);
    let person = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let commit = git(&[&person[..], &["commit-tree", "-p", "main", "-m", "m", &tree]].concat());
    git(&["update-ref", "refs/heads/main", &commit]);
    let pod = scene.pod("pod");
    let (code, message, words) = pod.source(&commit, &[]);
    assert_eq!((code, message.as_str()), (0, ""), "{words}");
    assert!(words.contains("submodules are not fetched; their folders are empty: vendor"), "{words}");
    assert!(words.contains("git LFS") && words.contains("; 1 of them"), "{words}");
    let source = pod.root.join("source");
    let mode = |path: &str| fs::symlink_metadata(source.join(path)).expect(path).permissions().mode() & 0o111;
    assert_eq!((mode("run.sh"), mode("infra.tf")), (0o111, 0));
    assert_eq!(fs::read_link(source.join("net")).expect("a link"), Path::new("modules/net"));
    assert_eq!(fs::read_to_string(source.join("net/main.tf")).expect("through the link"), "x\n");
    assert_eq!(fs::read_dir(source.join("vendor")).expect("a folder").count(), 0);
    let left: Vec<_> =
        fs::read_dir(&pod.root).expect("a folder").map(|entry| entry.expect("a name").file_name()).collect();
    assert_eq!(left.len(), 3, "no scratch file is left beside out, source and the log: {left:?}");
    let (code, message, _) = pod.source(&commit, &[]);
    assert!(code == 1 && message.ends_with("is not empty"), "{message}");
}

#[tokio::test]
async fn what_cannot_be_fetched_fails_in_words_without_a_secret() {
    let scene = Scene::new().await;
    let revision = scene.commit("bucket one\n");
    scene.host.require_basic("robot", "hunter2");
    let secret = scene.folder.path().join("secret");
    fs::create_dir(&secret).expect("a folder");
    let keys = |user: &str, password: &str| {
        fs::write(secret.join("username"), user).expect("written");
        fs::write(secret.join("password"), password).expect("written");
    };
    let mounted = ["--secret", secret.to_str().expect("text")];
    let failed = |name: &str, revision: &str, more: &[&str]| {
        let (code, message, words) = scene.pod(name).source(revision, more);
        assert!(code == 1 && words.contains(&message) && !words.contains("hunter"), "{words}");
        message
    };
    assert!(failed("a", &revision, &[]).contains("it asks for credentials (401)"));
    keys("robot", "hunter3\n");
    assert!(failed("b", &revision, &mounted).contains("the credentials are refused (401)"));
    keys("robot", "hunter2\n");
    let (code, _, words) = scene.pod("c").source(&revision, &mounted);
    assert_eq!(code, 0, "{words}");
    assert!(failed("d", &"9".repeat(40), &mounted).contains("the commit is gone"));
    assert!(failed("e", "main", &mounted).contains("40 hexadecimal digits"));

    let pod = scene.pod("f");
    let into = pod.path("source");
    for (url, words) in [
        (scene.server.url(), "only https is spoken"),
        (scene.server.url().replace("http", "https"), "not sent: 127.0.0.1 is"),
        ("https://169.254.169.254/a".to_owned(), "not sent: 169.254.169.254 is"),
        ("ssh://git@example.com/a".to_owned(), "SSH needs a Secret with the keys identity and known_hosts"),
    ] {
        let arguments = ["source", "--url", &url, "--revision", &revision, "--ref", "HEAD", "--into", &into];
        let (code, message, _) = pod.step(&[&arguments[..], &["--private-host", "169.254.169.254"]].concat());
        assert!(code == 1 && message.contains(words), "{message}");
    }
}

#[test]
fn steps_are_for_pods_and_are_not_in_the_help() {
    let help = Command::new(program()).arg("--help").output().expect("the program runs").stdout;
    assert!(!String::from_utf8(help).expect("text").contains("  step"));
}
