//! The composition root: the only file that sees both sides. It turns a configuration into adapters, gives them to the
//! actors, serves HTTP beside them, and ends everything in order.

pub mod by_hand;
pub mod checking;
mod exporting;
mod naming;
mod others;
mod process;
mod promoting;
mod running;
pub mod sources;
mod start_error;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use actix::Actor;
use tokio::sync::oneshot;

use crate::actors::ports::Ports;
use crate::actors::root::Root;
use crate::actors::{Env, Grouping, Settings};
use crate::adapters::caches::CacheEndpoints;
use crate::adapters::clock::SystemClock;
use crate::adapters::cloudfront;
use crate::adapters::dry_run::{DryCaches, DryCdn, DryEvents, DryNotifier};
use crate::adapters::edge::FreshEdges;
use crate::adapters::edge_look::EdgeLook;
use crate::adapters::edge_sight::EdgeAndPods;
use crate::adapters::http::{self as outbound, Egress, NoLookup};
use crate::adapters::kubernetes::{self, Clients, Cluster, Events, KubernetesLease, Scope, Tempo};
use crate::adapters::ledger::fresh_origin;
use crate::adapters::ledger::kubernetes::KubernetesLedger;
use crate::adapters::ledger::memory::MemoryLedger;
use crate::adapters::random::SystemRandom;
use crate::adapters::redis::Server;
use crate::adapters::redis::board::RedisBoard;
use crate::adapters::webhook::Webhooks;
use crate::app::by_hand::ByHand;
use crate::app::exporting::Exporting;
use crate::app::others::Others;
use crate::app::promoting::{Beside, hooks, promoting};
use crate::app::running::running;
use crate::config::{Config, InForce, LedgerBackend, Namespaces, RedisAddress};
use crate::http::hooks::Hooks;
use crate::http::{Addresses, Fresh, Front};
use crate::looking::listen::READER;
use crate::looking::{About, Neighbours, Sources};
use crate::telemetry::Metrics;
use kernel::id::Member;
use kernel::replica::lease::Replica;
use notices::delivery;
use purge::ports::{Board, Caches, Clock, ClusterView, EdgeSight, EventSink, Lease, Ledger, Notifier};
use purge::purges::catalog::Freshness;

pub use process::Running;
pub use promoting::desk;
pub use start_error::StartError;
use start_error::ask;

/// Digits that distinguish two lives of the process.
const BOOT_CHARS: usize = 8;

/// What a dry run does not do, for who reads its first lines.
const DRY_RUN_LEAVES_OUT: &str = "purges, requests to caches, webhooks, Events, Jobs, proposals to forges, and every write to the cluster and to Redis";

/// What is not configuration but still has to be known to start.
#[derive(Default)]
pub struct Overrides {
    /// Where the API server is.
    pub kubernetes: kubernetes::Options,
    /// Credentials for AWS instead of the default chain: only the demo and tests have any.
    pub aws: Option<cloudfront::StaticCredentials>,
    /// How watches spend their time.
    pub tempo: Tempo,
    /// Boards instead of those that are configured, our own first: more than one make a group. Only the demo and tests
    /// have any.
    pub boards: Vec<Arc<dyn Board>>,
    /// It is started by a person, outside a pod: what has to be so first.
    pub by_hand: Option<ByHand>,
    /// Where hosts that Pipelines name are stood in for; kubeconfigs may lead to loopback then, too, and nothing needs TLS. Only the
    /// demo and tests have any.
    pub stand_ins: Option<BTreeMap<String, SocketAddr>>,
    /// What is left beside the ledger for commands elsewhere; `None`: nothing is.
    pub in_force: Option<InForce>,
}

/// Builds everything and starts it. Must be called within an actix system.
///
/// # Errors
/// When it cannot start; nothing is left running then.
pub async fn start(config: &Config, overrides: Overrides) -> Result<Running, StartError> {
    let by_hand = overrides.by_hand.filter(|_| config.ledger_backend() == LedgerBackend::Kubernetes);
    let beside = by_hand.map(|by_hand| by_hand.named(config)).transpose()?;
    let clients = kubernetes::connect(&overrides.kubernetes).await?;
    tracing::info!(server = %clients.server, credentials = %clients.source, "using this cluster");
    if let Some(beside) = beside {
        beside.look_around(config, &clients).await?;
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let (notifier, outbox) = webhooks(config, clock.clone())?;
    let scope = scope(config, &clients).await?;
    let cdn = sources::cdn(config, overrides.aws).await;
    let ledger_namespace = config.ledger.namespace.as_deref().unwrap_or(&clients.namespace);
    let ledger = ledger(config, &clients, ledger_namespace)?;
    let named = naming::of(config, &clients, &ledger, overrides.boards.len()).await?;
    let (config, member, grouped, is_derived) = (&named.config, named.member, named.grouped, named.is_derived);
    let boards = if overrides.boards.is_empty() { boards(config, &member, is_derived)? } else { overrides.boards };
    let lease = lease(config, &clients, ledger_namespace, &clock)?;
    let events = Events::new(clients.request.clone(), &instance());
    let cluster = Cluster::new(&clients, scope.clone(), overrides.tempo.clone())
        .following(config.kinds.clone())
        .versions(config.version.of.clone());
    let cluster = Arc::new(cluster);
    let caches = caches(config, &cluster, overrides.stand_ins.is_some())?;
    let edge = edge(cluster.clone(), config.proof.private_hosts.clone(), clock.clone(), overrides.stand_ins.as_ref())?;
    let cluster: Arc<dyn ClusterView> = cluster;
    let beside = Beside { ledger: ledger.clone(), cluster: cluster.clone() };
    let others = Others::new(config, &clients, clock.clone(), overrides.stand_ins);
    let tempo = overrides.tempo;
    let ports = Ports {
        clock,
        random: Arc::new(SystemRandom::new()?),
        cluster,
        events: if config.dry_run { Arc::new(DryEvents) } else { Arc::new(events) as Arc<dyn EventSink> },
        ledger,
        cdn: if config.dry_run { Arc::new(DryCdn(cdn)) } else { cdn },
        edge,
        caches,
        notifier: if config.dry_run { Arc::new(DryNotifier(notifier)) } else { notifier },
        lease,
        boards,
        promoting: promoting(config, &clients, &scope, beside, &others, tempo.clone()),
        running: running(config, &clients, &scope, &others, &tempo),
    };
    let metrics = Arc::new(Metrics::default());
    let hooks = hooks(config, &clients, &scope, &ports.clock, &metrics);
    // Those of the demo are in memory, and no others can be had.
    let read = match &config.redis.url {
        Some(_) => addressed(config, &Member(READER.to_owned()), false)?,
        None => ports.boards.clone(),
    };
    let group = grouped.then(|| Neighbours::new(config, Ok(member.clone()), true, read));
    let explained = sources::own(config, &clients, &ports, group);
    let exporting = Exporting::start(config, &member, grouped, &metrics)?;
    let grouping = if grouped { Some(grouping(config, &scope, is_derived)?) } else { None };
    let in_force = overrides.in_force.map(|in_force| in_force.text(ports.clock.wall_ms()));
    let settings = Settings { in_force, is_unread: named.is_unread, ..settings(config, member, grouping, outbox) };
    let env = Env { ports, metrics, settings: Arc::new(settings), complaints: Arc::default() };
    begin(config, env, (hooks, explained), exporting).await
}

async fn begin(
    config: &Config,
    env: Env,
    (hooks, explained): (Option<Hooks>, Sources),
    exporting: Option<Exporting>,
) -> Result<Running, StartError> {
    let (give_up, given_up) = oneshot::channel();
    let draining = Arc::new(AtomicBool::new(false));
    let about =
        About { member: env.settings.member.to_string(), group: env.settings.group.clone(), dry_run: config.dry_run };
    let metrics = env.metrics.clone();
    // In a dry run no edge is ever purged.
    let fresh = config.http.fresh.as_ref().filter(|_| !config.dry_run).map(|token| {
        let edges = FreshEdges::ours(env.ports.ledger.clone(), env.ports.cluster.clone(), config.policy());
        Fresh::new(token.expose(), Arc::new(edges))
    });
    let clock = env.ports.clock.clone();
    let root = Root::new(env, give_up).start();
    let front = Front {
        root: root.clone().recipient(),
        browse: root.clone().recipient(),
        explained: Some(Arc::new(explained)),
        clock,
        metrics,
        about,
        fresh,
        hooks,
        draining: draining.clone(),
    };
    let addresses = Addresses { probes: config.http.listen, page: config.http.page, hooks: config.hooks.listen };
    let serving = crate::http::serve(addresses, front).await?;
    let Addresses { probes, page, hooks } = serving.addresses();
    let hooks = hooks.map(tracing::field::display);
    let dry_run = config.dry_run;
    // Tests and the demo read the addresses from this line.
    tracing::info!(version = env!("CARGO_PKG_VERSION"), address = %probes, %page, hooks, dry_run, "started");
    if dry_run {
        tracing::info!(left_out = DRY_RUN_LEAVES_OUT, "began a dry run; records are in memory and end with it");
    }
    Ok(Running { root, serving, draining, given_up, exporting })
}

fn settings(config: &Config, member: Member, grouping: Option<Grouping>, outbox: delivery::Settings) -> Settings {
    Settings {
        member,
        group: config.group.name.clone(),
        policy: config.policy(),
        accounts: config.aws.scopes(),
        pace: config.pace(),
        budget: config.purge.budget,
        freshness: Freshness { refresh: config.distributions.refresh, miss_refresh: config.distributions.miss_refresh },
        samples_tags: config.purge.sample_tags,
        outbox,
        grouping,
        in_force: None,
        is_unread: false,
        follows_traffic: config.site.follow_traffic,
        own_thread: true,
    }
}

fn webhooks(config: &Config, clock: Arc<dyn Clock>) -> Result<(Arc<dyn Notifier>, delivery::Settings), StartError> {
    let webhooks = receivers_by(config, clock)?;
    let outbox = delivery::Settings { schedules: webhooks.schedules(), ..delivery::Settings::default() };
    Ok((Arc::new(webhooks), outbox))
}

/// The receivers of notices, as a running allclear has them: for commands.
///
/// # Errors
/// When the client cannot be made.
pub fn receivers(config: &Config) -> Result<Webhooks, StartError> {
    receivers_by(config, Arc::new(SystemClock::default()))
}

fn receivers_by(config: &Config, clock: Arc<dyn Clock>) -> Result<Webhooks, StartError> {
    Ok(Webhooks::new(config.webhooks.hooks.clone(), outbound_client(config)?, clock))
}

/// The guarded way to webhooks.
fn outbound_client(config: &Config) -> Result<outbound::Client, StartError> {
    let mut client = outbound::Settings::new(Egress { allow_private: config.webhooks.allow_private });
    client.proxy = config.webhooks.proxy.as_ref().map(|proxy| proxy.expose().clone());
    client.proxy_judges = config.webhooks.proxy_judges;
    outbound::Client::new(client).map_err(StartError::Webhooks)
}

/// The way to the edge, without a proxy. Only these hosts may have private addresses. With stand-ins, no other host is reached.
fn edge(
    cluster: Arc<Cluster>,
    private_hosts: BTreeSet<String>,
    clock: Arc<dyn Clock>,
    stand_ins: Option<&BTreeMap<String, SocketAddr>>,
) -> Result<Arc<dyn EdgeSight>, StartError> {
    let mut settings = outbound::Settings::new(Egress { allow_private: false });
    if stand_ins.is_some() {
        settings.lookup = Arc::new(NoLookup);
    }
    let look = EdgeLook::new(&settings, private_hosts, clock).map_err(StartError::Edge)?;
    let look = look.with_stand_ins(stand_ins.cloned().unwrap_or_default());
    let sight = EdgeAndPods::new(look, cluster);
    Ok(Arc::new(if stand_ins.is_some() { sight.among_stand_ins() } else { sight }))
}

/// The way to caches. A dry run asks none.
fn caches(config: &Config, cluster: &Arc<Cluster>, among_stand_ins: bool) -> Result<Arc<dyn Caches>, StartError> {
    if config.dry_run {
        return Ok(Arc::new(DryCaches));
    }
    let caches = CacheEndpoints::new(cluster.clone()).map_err(StartError::Edge)?;
    Ok(Arc::new(if among_stand_ins { caches.among_stand_ins() } else { caches }))
}

async fn scope(config: &Config, clients: &Clients) -> Result<Scope, StartError> {
    match &config.watch.namespaces {
        Namespaces::All => Ok(Scope::All),
        Namespaces::Listed(names) => Ok(Scope::Namespaces(names.clone())),
        Namespaces::AllOrOwn => {
            let (scope, why) = ask("which namespaces to watch", || Scope::all_or_own(clients)).await?;
            tracing::info!(?scope, why, "decided which namespaces to watch");
            Ok(scope)
        }
    }
}

fn ledger(config: &Config, clients: &Clients, namespace: &str) -> Result<Arc<dyn Ledger>, StartError> {
    match config.ledger_backend() {
        LedgerBackend::Memory => Ok(Arc::new(MemoryLedger::new(fresh_origin()?))),
        LedgerBackend::Kubernetes => Ok(Arc::new(KubernetesLedger::new(clients.request.clone(), namespace))),
    }
}

/// Our own Redis first, then those of the other members. Nothing is shown anywhere in a dry run, so alone there is nothing to do
/// with them then; in a group the others are listened to.
fn boards(config: &Config, member: &Member, is_derived: bool) -> Result<Vec<Arc<dyn Board>>, StartError> {
    if config.dry_run && !config.is_grouped() {
        return Ok(Vec::new());
    }
    addressed(config, member, is_derived)
}

/// `is_derived`: the group's name was derived, so the one called `default` is looked for beside it.
fn addressed(config: &Config, member: &Member, is_derived: bool) -> Result<Vec<Arc<dyn Board>>, StartError> {
    let addresses = config.redis.url.iter().chain(&config.group.remotes);
    let board = |address: &RedisAddress| -> Result<Arc<dyn Board>, StartError> {
        let server = server(config, address)?;
        let board = RedisBoard::new(server, &config.group.name, member, config.group.keys.clone());
        Ok(Arc::new(if is_derived { board.beside_default(config.group.keys.clone()) } else { board }))
    };
    addresses.map(board).collect()
}

/// The lease that keeps several replicas from doing the same work. A ledger in memory is no other replica's work, so it
/// needs no lease.
fn lease(
    config: &Config,
    clients: &Clients,
    namespace: &str,
    clock: &Arc<dyn Clock>,
) -> Result<Option<Arc<dyn Lease>>, StartError> {
    if !config.leader.lease || config.ledger_backend() == LedgerBackend::Memory {
        return Ok(None);
    }
    let us = Replica { pod: config.leader.replica.clone().unwrap_or_else(instance), boot: boot()? };
    Ok(Some(Arc::new(KubernetesLease::new(clients.request.clone(), namespace, us, clock.clone()))))
}

/// A random name for this life of the process.
fn boot() -> Result<String, StartError> {
    let mut boot = fresh_origin()?.0;
    boot.truncate(BOOT_CHARS);
    Ok(boot)
}

/// A configured Redis. Its certificate is verified by the authorities of `redis.ca_file`, where one is given.
fn server(config: &Config, address: &RedisAddress) -> Result<Server, StartError> {
    Ok(match &config.redis.ca {
        Some(ca) if address.is_tls() => Server::trusting(address.expose(), ca)?,
        Some(_) | None => Server::new(address.expose())?,
    })
}

fn grouping(config: &Config, scope: &Scope, is_derived: bool) -> Result<Grouping, StartError> {
    let boot = boot()?;
    Ok(Grouping {
        members: config.group.members.iter().cloned().map(Member).collect(),
        trust: config.group.trust(),
        boot,
        listen_only: config.dry_run,
        only_own: config.group.only_own,
        is_derived,
        watch: match scope {
            Scope::All => BTreeSet::new(),
            Scope::Namespaces(names) => names.iter().cloned().collect(),
        },
    })
}

/// Our name in Events: the pod's name, which is its host name.
fn instance() -> String {
    let name = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "allclear".to_owned() } else { name.to_owned() }
}
