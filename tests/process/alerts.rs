//! What each alert of `deploy/monitoring/rules.yaml` asks for, provoked in the real program. When an alert follows from that is what
//! promtool is asked (`deploy/monitoring/rules_test.yaml`). That a promise is broken cannot be provoked: it would be a defect.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use sandbox::cloudfront::CloudFrontStandIn;
use sandbox::http::{Action, Fault, Reply, Request, When};
use sandbox::kubernetes::PodFate;
use serde_json::json;
use support::process::Process;

use crate::group::field::Field;
use crate::scene::{DISTRIBUTION, NAME, NAMESPACE, Scene, image};

/// Every series of the program, with its value.
async fn series(process: &Process) -> BTreeMap<String, String> {
    let (_, text) = process.get("/metrics").await.unwrap_or_default();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (series, value) = line.rsplit_once(' ')?;
        Some((series.to_owned(), value.to_owned()))
    };
    samples.filter_map(pair).collect()
}

/// Waits until a series has this value.
async fn shows(scene: &Scene, name: &str, value: &str) {
    let is_shown = async |scene: &Scene| series(scene.process()).await.get(name).is_some_and(|shown| shown == value);
    scene.wait_until(&format!("{name} is {value}"), is_shown).await;
}

/// What the page shows of workloads that did not end well, sorted.
async fn unwell(scene: &Scene) -> Vec<String> {
    let state = scene.process().state().await;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let of = |one: &serde_json::Value| {
        let name = text(&one["workload"]).rsplit('/').next().unwrap_or_default().to_owned();
        format!("{name} {}", text(&one["reason"]))
    };
    let mut found: Vec<String> = state["unwell"].as_array().into_iter().flatten().map(of).collect();
    found.sort();
    found
}

/// Lets every request of this kind fail until the faults are cleared.
fn refuse(scene: &Scene, matches: impl Fn(&Request) -> bool + Send + Sync + 'static) {
    let fault = Fault::once(When::Before, Action::Answer(Reply::empty(500)));
    scene.world.api.inject(fault.matching(matches).times(u32::MAX));
}

#[tokio::test]
async fn a_ledger_that_cannot_be_opened_and_workloads_that_cannot_be_listed_are_shown() {
    let mut scene = Scene::new().await;
    let is_list = |request: &Request| request.method == "GET" && request.path.contains("/deployments");
    refuse(&scene, |request| request.path.contains("/namespaces/default/configmaps"));
    refuse(&scene, is_list);
    scene.launch(&["run"]);
    shows(&scene, "allclear_failures_total{operation=\"open_ledger\"}", "1").await;
    shows(&scene, "allclear_leader", "0").await;
    scene.world.api.clear_faults();
    refuse(&scene, is_list);
    shows(&scene, "allclear_leader", "1").await;
    shows(&scene, "allclear_watch_blind", "1").await;
    scene.world.api.clear_faults();
    shows(&scene, "allclear_watch_blind", "0").await;
}

#[tokio::test]
async fn workloads_whose_rollout_did_not_end_well_are_counted_by_reason() {
    let mut scene = Scene::new().await.with("ALLCLEAR__ROLLOUT__TIMEOUT", "1s");
    scene.world.kubernetes.set_fate(&image("bad"), Some(PodFate::CannotPull));
    scene.add_workload("sick");
    scene.world.kubernetes.expose(NAMESPACE, "sick", "sick.example.com").expect("the cluster takes it");
    scene.start().await;
    let gone = CloudFrontStandIn::error(404, "NoSuchDistribution", "The specified distribution does not exist.");
    let is_creation = |request: &Request| request.method == "POST";
    scene.world.cdn.inject(Fault::once(When::Before, Action::Answer(gone)).matching(is_creation));
    scene.roll_out("1.1");
    scene.set_image("sick", &image("bad"));
    shows(&scene, "allclear_workloads_unwell{reason=\"impossible\"}", "1").await;
    shows(&scene, "allclear_workloads_unwell{reason=\"failed\"}", "1").await;
    assert_eq!(unwell(&scene).await, ["sick failed", "web impossible"], "the page says what the metric says");
    let named = |name: &str, reason: &str| {
        format!("allclear_workload_trouble{{workload=\"{NAMESPACE}/{name}\",reason=\"{reason}\"}}")
    };
    shows(&scene, &named("sick", "failed"), "1").await;
    shows(&scene, &named(NAME, "impossible"), "1").await;
    scene.set_image("sick", &image("1.0"));
    shows(&scene, "allclear_workloads_unwell{reason=\"failed\"}", "0").await;
    assert_eq!(series(scene.process()).await.get(&named("sick", "failed")), None, "it ends with its count");
}

/// AllclearRolloutFailed, which is about workloads that serve a host (decision 65).
#[tokio::test]
async fn a_worker_without_a_site_that_fails_is_told_and_not_counted() {
    let mut scene = Scene::new().await.with("ALLCLEAR__ROLLOUT__TIMEOUT", "1s");
    scene.world.kubernetes.set_fate(&image("bad"), Some(PodFate::CannotPull));
    scene.add_workload("worker");
    scene.start().await;
    scene.set_image("worker", &image("bad"));
    scene.wait_until("its end is on record", async |scene| scene.is_over("worker", 2)).await;
    shows(&scene, "allclear_notices_total{kind=\"rollout.failed\"}", "1").await;
    shows(&scene, "allclear_rollouts_in_flight", "0").await;
    assert_eq!(series(scene.process()).await["allclear_workloads_unwell{reason=\"failed\"}"], "0");
    assert!(unwell(&scene).await.is_empty());
    assert!(!scene.note("worker", "RolloutFailed").is_empty());
}

/// AllclearCannotPurge: nothing has been rolled out yet.
#[tokio::test]
async fn distributions_that_cannot_be_listed_are_shown_before_there_is_anything_to_purge() {
    let mut scene = Scene::new().await;
    let denied = CloudFrontStandIn::error(403, "AccessDenied", "User is not authorized to perform this action");
    let denial = Fault::once(When::Before, Action::Answer(denied)).matching(|request| request.method == "GET");
    scene.world.cdn.inject(denial.times(u32::MAX));
    scene.launch(&["run"]);
    shows(&scene, "allclear_distributions_unlisted", "1").await;
    assert_eq!(series(scene.process()).await["allclear_notices_total{kind=\"purge.failed\"}"], "0");
    scene.world.cdn.clear_faults();
    shows(&scene, "allclear_distributions_unlisted", "0").await;
}

/// AllclearPurgeOwed, for what is tried again: a purge that was not made in time, and is when CloudFront takes it.
#[tokio::test]
async fn a_purge_that_is_not_made_in_time_is_owed_until_it_is_made() {
    let mut scene = Scene::new().await.with("ALLCLEAR__PURGE__COMPLETION_TIMEOUT", "2s");
    scene.start().await;
    let away = CloudFrontStandIn::error(503, "ServiceUnavailable", "Service is unavailable, try again");
    let refusal = Fault::once(When::Before, Action::Answer(away)).matching(|request| request.method == "POST");
    scene.world.cdn.inject(refusal.times(u32::MAX));
    scene.roll_out("1.1");
    shows(&scene, "allclear_workloads_unwell{reason=\"owed\"}", "1").await;
    assert_eq!(series(scene.process()).await["allclear_workloads_unwell{reason=\"impossible\"}"], "0");
    assert!(scene.purged().is_empty());
    assert_eq!(unwell(&scene).await, ["web owed"]);
    scene.world.cdn.clear_faults();
    shows(&scene, "allclear_workloads_unwell{reason=\"owed\"}", "0").await;
    assert_eq!(scene.purged(), [DISTRIBUTION]);
    assert!(unwell(&scene).await.is_empty());
}

/// AllclearPurgeOwed, for two distributions of which one is gone: the other is fresh.
#[tokio::test]
async fn a_site_of_which_one_distribution_is_gone_is_partly_fresh() {
    let mut scene = Scene::new().await;
    scene.add_distribution("EGONE", "gone.example.com");
    let rule = json!({"host": "gone.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix",
        "backend": {"service": {"name": NAME, "port": {"number": 80}}}}]}});
    scene.apply(json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "gone"},
        "spec": {"rules": [rule]}}));
    scene.start().await;
    let gone = CloudFrontStandIn::error(404, "NoSuchDistribution", "The specified distribution does not exist.");
    let is_creation = |request: &Request| request.method == "POST" && request.path.contains("/EGONE/");
    scene.world.cdn.inject(Fault::once(When::Before, Action::Answer(gone)).matching(is_creation).times(u32::MAX));
    scene.roll_out("1.1");
    shows(&scene, "allclear_workloads_unwell{reason=\"partly\"}", "1").await;
    assert_eq!(scene.purged(), [DISTRIBUTION]);
}

/// AllclearRolloutStuck, for a purge that is refused: it is told while it is tried again, and before it counts as owed.
#[tokio::test]
async fn a_purge_that_is_refused_is_told_while_it_is_tried_on() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let denied = CloudFrontStandIn::error(403, "AccessDenied", "User is not authorized to perform this action");
    let denial = Fault::once(When::Before, Action::Answer(denied)).matching(|request| request.method == "POST");
    scene.world.cdn.inject(denial.times(u32::MAX));
    scene.roll_out("1.1");
    shows(&scene, "allclear_notices_total{kind=\"purge.failed\"}", "1").await;
    assert_eq!(series(scene.process()).await["allclear_rollouts_in_flight"], "1");
    assert!(scene.purged().is_empty());
}

#[tokio::test]
async fn an_invalidation_that_does_not_complete_in_time_is_late_and_not_before() {
    let mut scene = Scene::completing(None).await.with("ALLCLEAR__PURGE__COMPLETION_TIMEOUT", "3s");
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until("it is purged", async |scene| !scene.purged().is_empty()).await;
    assert_eq!(series(scene.process()).await["allclear_workloads_late{reason=\"purge\"}"], "0", "within the timeout");
    shows(&scene, "allclear_workloads_late{reason=\"purge\"}", "1").await;
    assert_eq!(series(scene.process()).await["allclear_rollouts_in_flight"], "1");
}

/// AllclearRolloutStuck, for the group.
#[tokio::test]
async fn a_member_that_does_not_complete_makes_the_others_late() {
    let mut field = Field::with(&[("ALLCLEAR__GROUP__TIMEOUT", "2s")]).await;
    field[2].freeze();
    field.roll_out("1.1");
    shows(&field[0], "allclear_workloads_late{reason=\"group\"}", "1").await;
    field[2].thaw();
    shows(&field[0], "allclear_workloads_late{reason=\"group\"}", "0").await;
}

/// AllclearGroupHeld, AllclearRedisUnreachable. A hold is told after 20 s.
#[tokio::test]
async fn servers_that_never_answer_hold_up_the_group_and_are_shown_by_their_address() {
    let dead = || {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        taken.local_addr().expect("it has an address").to_string()
    };
    let (own, other) = (dead(), dead());
    let mut scene =
        Scene::new().await.with("ALLCLEAR__GROUP__MEMBER", "eu-1").with("ALLCLEAR__GROUP__UNSIGNED", "true");
    scene.set("REDIS_HOST", &own);
    scene.set("REMOTE_REDIS_HOSTS", &other);
    scene.launch(&["run"]);
    let is_held = async |scene: &Scene| {
        let all = series(scene.process()).await;
        let held = all.iter().filter(|(name, value)| name.starts_with("allclear_group_held{") && *value == "1");
        let never = |name: &str| all.iter().any(|(series, value)| series.contains(name) && *value == "0");
        let answered = |board: &str| never(&format!("allclear_board_answered_timestamp_seconds{{board=\"{board}\"}}"));
        held.count() == 1 && answered(&own) && answered(&other)
    };
    scene.wait_until("the group is held up", is_held).await;
    shows(&scene, "allclear_leader", "1").await;
}

#[tokio::test]
async fn a_webhook_that_was_given_up_is_counted_and_kept() {
    let mut scene = Scene::new().await.with("ALLCLEAR__WEBHOOKS__RETRY", "0s, 100ms");
    scene.start().await;
    scene.world.hook.inject(Fault::once(When::Before, Action::Answer(Reply::empty(500))).times(u32::MAX));
    scene.roll_out("1.1");
    shows(&scene, "allclear_webhook_results_total{result=\"dead\"}", "1").await;
    shows(&scene, "allclear_deliveries_given_up", "1").await;
    assert_eq!(series(scene.process()).await["allclear_webhook_results_total{result=\"delivered\"}"], "0");
}

/// AllclearDefect, and AllclearRolloutStuck for what is told.
#[tokio::test]
async fn a_workload_that_is_left_alone_after_two_abrupt_ends_is_counted() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.freeze();
    scene.roll_out("1.1");
    for _ in 0..2 {
        let in_flight = async |scene: &Scene| scene.record().is_some_and(|record| record.is_in_flight());
        scene.wait_until("the rollout is recorded", in_flight).await;
        shows(&scene, "allclear_rollouts_in_flight", "1").await;
        scene.take_process().kill();
        scene.launch(&["run"]);
    }
    shows(&scene, "allclear_workloads_quarantined", "1").await;
    shows(&scene, "allclear_notices_total{kind=\"rollout.stuck\"}", "1").await;
}

#[tokio::test]
async fn a_pipeline_that_cannot_be_used_is_counted() {
    let mut scene = Scene::new().await;
    scene.world.kubernetes.set_installed("allclear.dev", true);
    scene
        .world
        .kubernetes
        .apply(json!({
            "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"namespace": NAMESPACE, "name": NAME},
            "spec": {
                "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
                "environments": [
                    {"name": "staging", "targets": [{"namespace": "staging"}]},
                    {"name": "staging", "targets": [{"namespace": "prod"}]},
                ],
                "promotion": {"strategy": {"notification": {}}},
            },
        }))
        .expect("the cluster takes it");
    scene.start().await;
    shows(&scene, "allclear_notices_total{kind=\"pipeline.faulty\"}", "1").await;
}

#[tokio::test]
async fn a_rollout_that_ends_well_is_measured_and_disturbs_no_alert() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    shows(&scene, "allclear_webhook_results_total{result=\"delivered\"}", "1").await;
    let all = series(scene.process()).await;
    assert_eq!(all["allclear_rollout_fresh_seconds_count"], "1");
    let number = |name: &str| all[name].parse::<f64>().expect("a number");
    // Some tenths of a second, and never as long as it is waited for.
    assert!((0.01..60.0).contains(&number("allclear_rollout_fresh_seconds_sum")), "{all:?}");
    let purged = number(&format!("allclear_last_purge_timestamp_seconds{{distribution=\"{DISTRIBUTION}\"}}"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs_f64();
    assert!((now - 120.0..=now).contains(&purged), "{purged} {now}");
    let (memory, began) = (number("process_resident_memory_bytes"), number("process_start_time_seconds"));
    assert!(memory > 1e6 && (now - 600.0..now + 2.0).contains(&began), "{memory} {began} {now}");
    let quiet = [
        "allclear_watch_blind",
        "allclear_distributions_unlisted",
        "allclear_workload_trouble",
        "allclear_workloads_unwell",
        "allclear_workloads_late",
        "allclear_group_held",
        "allclear_deliveries_given_up",
        "allclear_workloads_quarantined",
        "allclear_broken_promises_total",
    ];
    let loud = all.iter().filter(|(name, value)| *value != "0" && quiet.iter().any(|start| name.starts_with(start)));
    assert_eq!(loud.collect::<Vec<_>>(), Vec::new());
    assert_eq!(all["allclear_leader"], "1");
}

/// `make alerts`: needs promtool, of the package `prometheus` in Debian.
#[tokio::test]
#[ignore = "needs promtool; make alerts runs it"]
async fn promtool_has_nothing_to_say_of_the_metrics_of_a_program_that_has_purged() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    let (_, text) = scene.process().get("/metrics").await.expect("it answers");
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is installed");
    promtool.stdin.take().expect("it reads").write_all(text.as_bytes()).expect("it reads all");
    let said = promtool.wait_with_output().expect("it ends");
    let words = [said.stdout, said.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(said.status.success() && words.is_empty(), "{words}");
}
