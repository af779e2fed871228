//! The closed sets that labels come from. Each series of them is shown from the start, at 0: an alert on the increase of a counter
//! sees the first one too, and a panel shows a line instead of nothing.
//!
//! Not here: namespaces, distributions and the answers of `hooks`, which are known only once they occur.

use prometheus_client::encoding::EncodeLabelSet;

/// One label: its name and its value.
pub type Label = [(&'static str, &'static str); 1];

pub type Labels = [(&'static str, &'static str); 2];

pub type ThreeLabels = [(&'static str, &'static str); 3];

/// The address of a Redis. There are as many as are configured, 33 at most.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ByBoard {
    pub board: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ByCall {
    pub board: String,
    pub call: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ByReason {
    pub board: String,
    pub call: &'static str,
    pub reason: &'static str,
}

/// The namespace of a workload. There are as many as are watched and purge.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ByNamespace {
    pub namespace: String,
}

/// A distribution. There are as many as this process has purged.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ByDistribution {
    pub distribution: String,
}

/// An AWS account, by its name in the configuration. There are as many as are configured, 21 at most.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ByAccount {
    pub account: String,
}

/// A request at one of the endpoints for other programs. A code is one of a dozen.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ByAnswer {
    pub door: &'static str,
    pub code: u16,
}

/// Calls to a Redis of the group.
pub const BOARD_CALLS: [&str; 4] = ["board_identify", "board_read", "board_post", "board_beat"];

/// Calls to the outside whose time is measured, beside [`BOARD_CALLS`].
pub const TIMED: [&str; 5] = ["create_invalidation", "look_at_git", "propose", "store_record", "store_status"];

/// Calls to the outside that are counted where they fail, and other failures that are counted there. `tests/tidy/telemetry.rs` compares
/// this list with the actors.
pub const FAILURES: [&str; 68] = [
    "ask_cache",
    "ask_verdict",
    "create_invalidation",
    "create_invalidation_for_distribution_tenant",
    "decode_object",
    "decode_workload",
    "deliver_webhook",
    "export_spans",
    "find_pipelines",
    "find_repos",
    "get_distribution_config",
    "get_distribution_tenant_by_domain",
    "get_invalidation",
    "get_invalidation_for_distribution_tenant",
    "lease",
    "ledger_lost",
    "list_distribution_tenants",
    "list_distributions",
    "list_invalidations",
    "list_invalidations_for_distribution_tenant",
    "load_record",
    "look_at_job",
    "look_at_proposal",
    "make_job",
    "open_ledger",
    "propose",
    "publish_event",
    "reach_cluster",
    "read_ledger",
    "read_object",
    "read_outbox",
    "read_pods",
    "read_services",
    "read_serving",
    "read_site",
    "read_target",
    "read_traffic",
    "read_workload",
    "remove_delivery",
    "remove_job",
    "report_run",
    "see_edge",
    "see_needs",
    "send_webhook",
    "start_job",
    "store_baseline",
    "store_delivery",
    "store_history",
    "store_life",
    "store_listed",
    "store_record",
    "store_record_conflict",
    "store_record_full",
    "store_settings",
    "store_status",
    "store_status_pruned",
    "store_traffic",
    "tell_notice",
    "watch_freezes",
    "watch_jobs",
    "watch_objects",
    "withdraw_job",
    "watch_pods",
    "watch_routing",
    "watch_targets",
    "watch_workloads",
    "withdraw",
    "write_finalizer",
];

/// Actors that are rebuilt after a crash.
pub const REBUILT: [&str; 14] = [
    "cluster_group",
    "clusters",
    "deployment_watcher",
    "invalidator",
    "leaf",
    "pipeline",
    "pipelines",
    "promoter",
    "repo",
    "repos",
    "rollout",
    "runner",
    "traffic_watcher",
    "webhook",
];

/// Mailboxes that can be full.
pub const MAILBOXES: [&str; 8] =
    ["cluster_group", "deployment_watcher", "invalidator", "outbox", "pipeline", "pod_watcher", "rollout", "root"];

/// The promises that the program judges while it runs, by their ids.
pub const JUDGED: [&str; 12] =
    ["GA-1", "GA-2", "GA-3", "GA-5", "WAIT-3", "TELL-2", "PL-1", "PL-3", "RP-1", "RP-2", "RP-3", "RP-5"];

/// The effects of each machine.
pub const EFFECTS: [(&str, &[&str]); 8] = [
    (
        "rollout",
        &[
            "store",
            "remove",
            "publish",
            "absent",
            "look",
            "find_old_pods",
            "find_site",
            "recheck",
            "ask_cache",
            "match",
            "compare",
            "purge",
            "ask_edge",
            "leave_edge",
            "tell",
            "end",
        ],
    ),
    (
        "broker",
        &[
            "identify",
            "read",
            "post",
            "beat",
            "gather_words",
            "read_ledger",
            "load_record",
            "read_pin",
            "store_pin",
            "tell",
            "want",
            "tell_hold",
            "tell_release",
            "tell_held_up",
            "tell_rejected",
            "tell_doubt",
        ],
    ),
    (
        "catalog",
        &[
            "list_distributions",
            "list_distribution_tenants",
            "find_distribution_tenant",
            "answer",
            "read_tags",
            "sample",
        ],
    ),
    ("purge", &["create", "poll", "search", "report"]),
    ("turns", &["ask"]),
    (
        "outbox",
        &["store_delivery", "send_delivery", "remove_delivery", "accept_notice", "postpone_notice", "report_delivery"],
    ),
    (
        "pipeline",
        &[
            "store",
            "follow",
            "look",
            "recheck",
            "read_calendar",
            "ask_verdict",
            "see_edge",
            "propose",
            "look_at_proposal",
            "withdraw",
            "follow_secrets",
            "tell",
            "end",
        ],
    ),
    (
        "repo",
        &[
            "store",
            "look",
            "resolve",
            "compare",
            "watch_jobs",
            "make_job",
            "start_job",
            "withdraw_job",
            "look_at_job",
            "read_pods",
            "remove_job",
            "hold",
            "let_go",
            "read_calendar",
            "ask_verdict",
            "see_needs",
            "report",
            "tell",
            "end",
        ],
    ),
];
