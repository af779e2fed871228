//! Every check there is, in the order of the report. Its id is its anchor in docs/check.md, and does not change.
//!
//! Not for how any of them is made.

use serde::Serialize;

/// What checks are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    Configuration,
    /// The API server and what it serves.
    Cluster,
    /// What a person needs to install.
    Install,
    /// What allclear may do in the cluster.
    Rights,
    /// Where allclear keeps its records.
    Ledger,
    Redis,
    /// The clusters behind the same CDN.
    Group,
    Aws,
    /// The hosts of what is watched.
    Sites,
    /// The receivers of notices.
    Webhooks,
    /// The collector of traces.
    Traces,
}

impl Group {
    pub const fn title(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Cluster => "cluster",
            Self::Install => "installing",
            Self::Rights => "rights",
            Self::Ledger => "ledger",
            Self::Redis => "redis",
            Self::Group => "group",
            Self::Aws => "aws",
            Self::Sites => "sites",
            Self::Webhooks => "webhooks",
            Self::Traces => "traces",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name, and its anchor in the documents.
    pub id: &'static str,
    /// What it is about.
    pub group: Group,
}

macro_rules! checks {
    ($($name:ident: $group:ident = $id:literal;)*) => {
        $(#[doc = concat!("`", $id, "`")] pub const $name: Check = Check { id: $id, group: Group::$group };)*
        pub const ALL: &[Check] = &[$($name),*];
    };
}

checks! {
    CONFIGURATION: Configuration = "configuration";
    SETTINGS: Configuration = "settings";
    API_SERVER: Cluster = "api-server";
    API_VERSION: Cluster = "api-version";
    CALLER: Cluster = "caller";
    API_CLOCK: Cluster = "api-clock";
    CRD_PIPELINES: Cluster = "crd-pipelines";
    CRD_REPOS: Cluster = "crd-repos";
    CRD_HISTORIES: Cluster = "crd-histories";
    CRD_VERSION: Cluster = "crd-version";
    CRD_CUSTOM: Cluster = "crd-custom";
    WATCHED_NAMESPACES: Cluster = "watched-namespaces";
    INSTALL_RIGHTS: Install = "install-rights";
    INSTALL_GRANTS: Install = "install-grants";
    RIGHT_DEPLOYMENTS: Rights = "right-deployments";
    RIGHT_STATEFUL_SETS: Rights = "right-statefulsets";
    RIGHT_DAEMON_SETS: Rights = "right-daemonsets";
    RIGHT_ROLLOUTS: Rights = "right-rollouts";
    RIGHT_CUSTOM: Rights = "right-custom";
    RIGHT_PODS: Rights = "right-pods";
    RIGHT_ENDPOINT_SLICES: Rights = "right-endpointslices";
    RIGHT_SERVICES: Rights = "right-services";
    RIGHT_INGRESSES: Rights = "right-ingresses";
    RIGHT_ROUTES: Rights = "right-routes";
    RIGHT_GATEWAYS: Rights = "right-gateways";
    RIGHT_NAMESPACES: Rights = "right-namespaces";
    RIGHT_EVENTS: Rights = "right-events";
    RIGHT_LEDGER: Rights = "right-ledger";
    RIGHT_LEASE: Rights = "right-lease";
    RIGHT_PIPELINES: Rights = "right-pipelines";
    RIGHT_FREEZES: Rights = "right-freezes";
    RIGHT_REPOS: Rights = "right-repos";
    RIGHT_HISTORIES: Rights = "right-histories";
    RIGHT_HOOKS: Rights = "right-hooks";
    SECRET_HOSTS: Rights = "secret-hosts";
    LEDGER_NAMESPACE: Ledger = "ledger-namespace";
    LEDGER_WRITE: Ledger = "ledger-write";
    LEDGER_READ: Ledger = "ledger-read";
    LEDGER_SECOND: Ledger = "ledger-second";
    LEASE: Ledger = "lease";
    CONTROLLER: Ledger = "controller";
    DRY_RUN: Ledger = "dry-run";
    CONTROLLER_VERSION: Ledger = "controller-version";
    REDIS_CONNECT: Redis = "redis-connect";
    REDIS_TLS: Redis = "redis-tls";
    REDIS_AUTH: Redis = "redis-auth";
    REDIS_VERSION: Redis = "redis-version";
    REDIS_MODE: Redis = "redis-mode";
    REDIS_ROLE: Redis = "redis-role";
    REDIS_EVICTION: Redis = "redis-eviction";
    REDIS_COMMANDS: Redis = "redis-commands";
    REDIS_LATENCY: Redis = "redis-latency";
    GROUP_NAME: Group = "group-name";
    GROUP_SERVERS: Group = "group-servers";
    GROUP_MEMBERS: Group = "group-members";
    GROUP_TWINS: Group = "group-twins";
    GROUP_BEATS: Group = "group-beats";
    GROUP_KEY: Group = "group-key";
    GROUP_CONFIGURATION: Group = "group-configuration";
    GROUP_VERSION: Group = "group-version";
    GROUP_CLOCKS: Group = "group-clocks";
    AWS_REGION: Aws = "aws-region";
    AWS_CREDENTIALS: Aws = "aws-credentials";
    AWS_IDENTITY: Aws = "aws-identity";
    AWS_LIST_DISTRIBUTIONS: Aws = "aws-list-distributions";
    AWS_LIST_DISTRIBUTION_TENANTS: Aws = "aws-list-distribution-tenants";
    AWS_GET_DISTRIBUTION_TENANT: Aws = "aws-get-distribution-tenant";
    AWS_GET_DISTRIBUTION_CONFIG: Aws = "aws-get-distribution-config";
    AWS_LIST_INVALIDATIONS: Aws = "aws-list-invalidations";
    AWS_GET_INVALIDATION: Aws = "aws-get-invalidation";
    AWS_CREATE_INVALIDATION: Aws = "aws-create-invalidation";
    HOST_SERVED: Sites = "host-served";
    HOST_FOLLOWED: Sites = "host-followed";
    DISTRIBUTION_USABLE: Sites = "distribution-usable";
    CACHE_TAGS: Sites = "cache-tags";
    ANNOTATIONS: Sites = "annotations";
    PROOF: Sites = "proof";
    CACHES: Sites = "caches";
    CACHEABILITY: Sites = "cacheability";
    WEBHOOK_NAME: Webhooks = "webhook-name";
    WEBHOOK_ALLOWED: Webhooks = "webhook-allowed";
    WEBHOOK_TLS: Webhooks = "webhook-tls";
    WEBHOOK_ANSWER: Webhooks = "webhook-answer";
    WEBHOOK_WORKLOADS: Webhooks = "webhook-workloads";
    TRACES_COLLECTOR: Traces = "traces-collector";
}

impl Check {
    /// Where it stands in the report.
    pub(super) fn place(&self) -> usize {
        ALL.iter().position(|one| one.id == self.id).unwrap_or(ALL.len())
    }
}
