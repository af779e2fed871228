//! What it costs to know ten thousand Deployments: time to decode them, and bytes kept for each.
//!
//! The object is a realistic one of about 6 KiB, most of it `managedFields` and `last-applied-configuration`, as `kubectl
//! get -o json --show-managed-fields` prints it. The bytes kept are printed first: the aim is hundreds, not thousands
//! (60 MiB for everything at 10,000 idle workloads, decision 24).
#![allow(unsafe_code, reason = "counting bytes takes an allocator, and an allocator is unsafe")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench is no service"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use allclear::adapters::kubernetes::decode_deployment;
use allclear::domain::workload::Workload;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use serde_json::json;

/// Deployments in a large cluster (fault row L1).
const DEPLOYMENTS: usize = 10_000;

/// Counts the bytes that are allocated and not freed.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is handed on to the system's allocator unchanged; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's own promise about `layout`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's own promise that `pointer` came from here with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn main() {
    let objects: Vec<String> = (0..DEPLOYMENTS).map(deployment).collect();
    let before = HELD.load(Relaxed);
    let workloads: Vec<Box<Workload>> =
        objects.iter().filter_map(|json| decode_deployment(json).ok()).map(Box::new).collect();
    let held = HELD.load(Relaxed) - before;
    assert_eq!(workloads.len(), DEPLOYMENTS);
    println!(
        "{} bytes of JSON become {} bytes kept, {} of them in the struct itself",
        objects[0].len(),
        held / DEPLOYMENTS,
        size_of::<Workload>()
    );
    drop(workloads);
    divan::main();
}

/// One Deployment, again and again.
#[divan::bench]
fn one(bencher: Bencher<'_, '_>) {
    let json = deployment(0);
    bencher.counter(BytesCount::of_str(&json)).bench(|| decode_deployment(black_box(&json)));
}

/// All of a large cluster.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn ten_thousand(bencher: Bencher<'_, '_>) {
    let objects: Vec<String> = (0..DEPLOYMENTS).map(deployment).collect();
    bencher
        .counter(ItemsCount::new(DEPLOYMENTS))
        .bench(|| objects.iter().filter_map(|json| decode_deployment(json).ok()).collect::<Vec<_>>());
}

fn deployment(number: usize) -> String {
    let name = format!("checkout-service-{number:05}");
    let labels = json!({
        "app.kubernetes.io/name": name, "app.kubernetes.io/instance": name, "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/managed-by": "Helm",
    });
    let environment: Vec<_> =
        (0..12).map(|n| json!({"name": format!("SETTING_{n:02}"), "value": format!("value of setting {n}")})).collect();
    let spec = json!({
        "replicas": 3, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
        "selector": {"matchLabels": {"app.kubernetes.io/name": name, "app.kubernetes.io/instance": name}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "template": {
            "metadata": {"creationTimestamp": null, "labels": labels},
            "spec": {
                "containers": [{
                    "name": "checkout", "image": "registry.example.com:5000/shop/checkout-service:2026.11.20-1a2b3c4",
                    "imagePullPolicy": "IfNotPresent", "env": environment,
                    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
                    "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 10},
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                }],
                "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "serviceAccountName": name,
                "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler", "securityContext": {},
            },
        },
    });
    let applied = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec});
    json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("5c1d2f9e-7a5b-4a83-9f0e-{number:012}"),
            "resourceVersion": "184467", "generation": 17, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels,
            "annotations": {
                "deployment.kubernetes.io/revision": "17",
                "kubectl.kubernetes.io/last-applied-configuration": applied.to_string(),
            },
            "managedFields": [
                managed("kubectl-client-side-apply", "f:spec"), managed("kube-controller-manager", "f:status"),
            ],
        },
        "spec": spec,
        "status": {
            "observedGeneration": 17, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                 "message": "Deployment has minimum availability.",
                 "lastUpdateTime": "2026-11-20T10:00:00Z", "lastTransitionTime": "2026-11-20T10:00:00Z"},
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable",
                 "message": "ReplicaSet \"checkout-7c9\" has successfully progressed.",
                 "lastUpdateTime": "2026-11-20T10:00:00Z", "lastTransitionTime": "2026-11-20T10:00:00Z"},
            ],
        },
    })
    .to_string()
}

fn managed(manager: &str, of: &str) -> serde_json::Value {
    let fields: serde_json::Map<_, _> =
        (0..16).map(|n| (format!("f:someFieldOfTheObject{n:02}"), json!({".": {}, "f:inner": {}}))).collect();
    json!({
        "manager": manager, "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-20T10:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {of: fields},
    })
}
