//! `allclear check`: everything that has to hold before a rollout can be purged, each in a line with what to do about it.
//!
//! Nothing is changed: rights are asked for by reviews, the ledger is written by a dry run, CloudFront gets a request that names no
//! path, receivers a HEAD of their root. All checks run in parallel, each bounded in time, and are printed in one
//! order. A check that could not run because something else failed says so, and counts as nothing.
//!
//! Not for the reason of one workload (`allclear explain`), nor for what is going on now (`allclear status`).

mod aws;
pub mod cacheability;
mod caches;
pub mod catalog;
mod cluster;
mod controller;
mod distribution_tenants;
mod followed;
mod group;
pub mod install;
mod ledger;
mod redis;
pub mod report;
pub mod rights;
mod secrets;
mod sites;
mod traces;
mod tried;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::Duration;

use futures_util::future::join_all;

pub use cluster::{NEEDED_FROM, TRIED_FROM};
pub use report::{Asked, Finding, Mark, Report};

use self::cacheability::Asked as Pages;
use self::catalog::{API_SERVER, CONFIGURATION, GROUP_NAME, HOST_SERVED, LEDGER_READ, REDIS_CONNECT};
use self::cluster::Who;
use self::rights::{needs, review};
use crate::adapters::clock::SystemClock;
use crate::adapters::kubernetes::installation::Installation;
use crate::adapters::kubernetes::reviews::Reviews;
use crate::adapters::kubernetes::secrets::KubernetesSecrets;
use crate::adapters::kubernetes::{Clients, Cluster, Scope, Tempo};
use crate::app::StartError;
use crate::app::checking::{InCluster, Outside};
use crate::cli::answer::{EXIT_FAILED, Outcome, Output, answer};
use crate::config::{Config, Enabled, LedgerBackend, Loaded};
use crate::looking::replicas;
use crate::looking::whose::Whose;
use crate::looking::workloads::list;
use crate::looking::{Sources, ledger_namespace, no_ledger};
use apiserver::Api;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::text::visible;
use purge::ports::{Clock, LedgerContents};

/// How long it takes at most until a check is given up; each probe has its own, shorter bound. Pages are asked for after that,
/// within a bound of their own.
const WITHIN: Duration = Duration::from_secs(90);

/// The pause between two looks of `--wait`.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only what has to hold before the installation.
    pub pre: bool,
    /// The ServiceAccount of the controller, by namespace and name; `None`: that of the Deployment in the namespace of the ledger, or
    /// `allclear` where there is none.
    pub account: Option<(String, String)>,
    /// It is the caller who runs the controller, so the caller's rights are the ones that count.
    pub as_caller: bool,
    /// Pages are asked for through the CDN, for what they say of how they are cached, with this pause between two of a host.
    pub cacheability: Option<Duration>,
    /// Look again until all is good, for so long.
    pub wait: Option<Duration>,
}

/// Checks everything, once or until all is good. Progress goes to standard error. `look` connects anew each time: what was
/// refused may be kept by a connection; and says by whose settings it is looked then.
pub async fn check(look: impl AsyncFn() -> (Loaded, Whose, Outside), options: &Options, output: Output) -> Outcome {
    let deadline = options.wait.map(|wait| tokio::time::Instant::now() + wait);
    loop {
        let (loaded, whose, outside) = look().await;
        let seen = all(&loaded, &whose, &outside, options).await;
        let report = seen.report(options, Vec::new());
        let code = if report.failed > 0 { EXIT_FAILED } else { 0 };
        match deadline {
            Some(deadline) if code != 0 && tokio::time::Instant::now() + AGAIN_AFTER < deadline => {
                let (failed, open) = (report.failed, report.open());
                // A reader that has gone away is no reason to end.
                let _ = writeln!(io::stderr(), "allclear: {failed} checks fail yet: {}; looking again", visible(&open));
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            Some(_) | None => {
                // A site is asked once, however often all else was looked at. What it answers fails nothing.
                let pages = pages(&seen, &loaded, &outside, options).await;
                return answer(&seen.report(options, pages), output, code);
            }
        }
    }
}

pub async fn once(loaded: &Loaded, whose: &Whose, outside: Outside, options: &Options) -> Report {
    let seen = all(loaded, whose, &outside, options).await;
    let pages = pages(&seen, loaded, &outside, options).await;
    seen.report(options, pages)
}

/// What all but the pages came to.
struct All {
    asked: Asked,
    findings: Vec<Finding>,
    /// The hosts whose pages may be asked for, as [`Pages`] has them; `None` where it was given up.
    served: Option<BTreeMap<Host, Option<DistributionId>>>,
}

impl All {
    fn report(&self, options: &Options, pages: Vec<Finding>) -> Report {
        let findings = self.findings.iter().cloned().chain(pages).collect();
        Report::new(options.pre, self.asked.clone(), findings)
    }
}

async fn all(loaded: &Loaded, whose: &Whose, outside: &Outside, options: &Options) -> All {
    let asked = asked(outside);
    match tokio::time::timeout(WITHIN, look(loaded, whose, outside, options)).await {
        Ok((rights_of, served, findings)) => {
            All { asked: Asked { rights_of, ..asked }, findings, served: Some(served) }
        }
        Err(_) => {
            let late = API_SERVER.failed(format!("not all was answered within {} s", WITHIN.as_secs()));
            All { asked, findings: vec![late], served: None }
        }
    }
}

/// What the pages say, if they are to be asked for.
async fn pages(seen: &All, loaded: &Loaded, outside: &Outside, options: &Options) -> Vec<Finding> {
    let (Some(pace), Some(served)) = (options.cacheability, &seen.served) else { return Vec::new() };
    let policy = loaded.config.policy();
    let asked = Pages { look: &outside.edge, served, paths: &policy.proof.paths, pace };
    cacheability::cacheability(&asked, &outside.clouds).await
}

fn asked(outside: &Outside) -> Asked {
    let (cluster, in_pod) = match &outside.cluster {
        Ok(InCluster { clients, .. }) => {
            (format!("{} with {}", clients.server, clients.source), clients.pod_namespace.is_some())
        }
        Err(_) => ("no cluster".to_owned(), false),
    };
    let aws = if in_pod {
        "with the credentials of this pod"
    } else {
        "with the credentials found here, which may not be those of the pod"
    };
    Asked { cluster, rights_of: String::new(), aws: aws.to_owned() }
}

async fn look(
    loaded: &Loaded,
    whose: &Whose,
    outside: &Outside,
    options: &Options,
) -> (String, BTreeMap<Host, Option<DistributionId>>, Vec<Finding>) {
    let config = &loaded.config;
    let mut findings = configuration(loaded);
    findings.extend((!options.pre).then(|| controller::settings(whose)));
    let (seen, servers, accounts, receivers, collector) = tokio::join!(
        in_cluster(config, outside, options),
        servers(config, outside),
        aws::accounts(&outside.clouds),
        webhooks::webhooks(&config.webhooks.hooks, &outside.http),
        traces::collector(&config.traces),
    );
    let Seen { rights_of, findings: of_cluster, ledgered, cluster, watched } = seen;
    findings.extend(of_cluster);
    findings.extend(servers);
    findings.extend(accounts.findings());
    findings.extend(receivers);
    findings.extend(collector);
    let policy = config.policy();
    let mut of_hooks = Vec::new();
    let (found, agreed) = tokio::join!(
        async {
            match &cluster {
                Some(cluster) => {
                    let workloads = list(cluster).await;
                    of_hooks = webhooks::workloads(&config.webhooks.hooks, &workloads);
                    sites::sites((cluster, &watched), workloads, &policy, &accounts).await
                }
                None => sites::untried(API_SERVER),
            }
        },
        members(config, options, outside, ledgered.as_ref()),
    );
    findings.extend(of_hooks);
    findings.extend(found.findings);
    findings.extend(caches::caches(&policy.caches, cluster.as_ref(), found.watched.as_ref()).await);
    findings.extend(agreed);
    findings.extend(accounts.actions(&found.matched, HOST_SERVED).await);
    (rights_of, found.served, findings)
}

/// What a dry run follows, and what of it cannot be seen, for who tries one by hand. Only what leaves no trace is asked: no Redis, no
/// receiver, and of CloudFront its lists alone.
pub async fn foretold(config: &Config, outside: &Outside) -> Vec<Finding> {
    let options = Options { as_caller: true, ..Options::default() };
    let (seen, accounts) = tokio::join!(in_cluster(config, outside, &options), aws::accounts(&outside.clouds));
    let Seen { mut findings, cluster, watched, .. } = seen;
    findings.extend(accounts.findings());
    if let Some(cluster) = &cluster {
        let (policy, workloads) = (config.policy(), list(cluster).await);
        let sites = sites::sites((cluster, &watched), workloads, &policy, &accounts).await;
        findings.extend(sites.findings);
    }
    findings
}

fn configuration(loaded: &Loaded) -> Vec<Finding> {
    if loaded.warnings.is_empty() {
        return vec![CONFIGURATION.good("valid")];
    }
    loaded.warnings.iter().map(|warning| CONFIGURATION.warning(warning)).collect()
}

/// What was seen in the cluster, and what others need of it.
struct Seen {
    rights_of: String,
    findings: Vec<Finding>,
    ledgered: Option<LedgerContents>,
    cluster: Option<Cluster>,
    watched: Scope,
}

impl Seen {
    fn nothing(config: &Config, why: &str) -> Self {
        let mut findings = cluster::unreachable(why);
        findings.extend(ledger::unreachable(config));
        Self { rights_of: String::new(), findings, ledgered: None, cluster: None, watched: Scope::All }
    }
}

async fn in_cluster(config: &Config, outside: &Outside, options: &Options) -> Seen {
    let InCluster { clients, sources } = match &outside.cluster {
        Ok(cluster) => cluster,
        Err(why) => return Seen::nothing(config, &why.to_string()),
    };
    let api = Api::new(clients.request.clone());
    let said = match api.server().await {
        Ok(said) => said,
        Err(error) => return Seen::nothing(config, &error.to_string()),
    };
    let now_s = SystemClock::default().wall_ms().div_euclid(1_000);
    let mut findings = cluster::server(&said, now_s, &clients.server);
    let reviews = Reviews::new(clients.request.clone());
    let namespace = ledger_namespace(config);
    let installation = Installation::new(&clients.request, namespace);
    let (account, installed) = account(options, &installation).await;
    let (who, caller) = cluster::who(&reviews, clients, options, &account).await;
    let (served, kinds) = cluster::kinds(&api, config).await;
    findings.push(caller);
    findings.extend(kinds.into_iter().filter(|_| !options.pre));
    findings.extend(cluster::declared(&api, config).await);
    findings.extend(cluster::namespaces(&api, &config.watch.namespaces).await);
    let watched = cluster::watched(config, &reviews, &who.whom, namespace).await;
    let needed = rights::rights(&needs(config, served), &watched, namespace);
    let optional = rights::optional(config);
    let kubernetes_ledger = config.ledger_backend() == LedgerBackend::Kubernetes;
    let (rights, installs, ledger, read, works, sent) = tokio::join!(
        review(&reviews, &who.whom, needed.clone(), &who.missing, &optional),
        async {
            let crds = config.pipeline.enabled == Enabled::On || config.repo.enabled == Enabled::On;
            if options.pre { install::install(&reviews, namespace, needed.clone(), crds).await } else { Vec::new() }
        },
        async {
            if kubernetes_ledger {
                ledger::in_cluster(config, options, clients, &who, namespace).await
            } else {
                Vec::new()
            }
        },
        read(config, sources, &who, options.pre),
        works(config, &installation, installed, &who, options.pre),
        sent(config, clients, sources, &watched),
    );
    findings.extend(rights);
    findings.extend(sent);
    findings.extend(installs);
    findings.extend(ledger);
    findings.extend(works);
    let (reading, ledgered) = read;
    findings.extend(reading);
    let scope =
        if watched.contains(&None) { Scope::All } else { Scope::Namespaces(watched.into_iter().flatten().collect()) };
    let view = || {
        Cluster::new(clients, scope.clone(), Tempo::default())
            .following(config.kinds.clone())
            .versions(config.version.of.clone())
    };
    let cluster = sources.is_ok().then(view);
    Seen { rights_of: who.words, findings, ledgered, cluster, watched: scope }
}

/// The service account whose rights are looked at: the one that is named, or that of the Deployment, or the one that the manifests
/// make; and whether there is a Deployment.
async fn account(options: &Options, installation: &Installation) -> ((String, String), bool) {
    let found = installation.controllers().await.unwrap_or_default();
    let of_found = found.first().map(|one| (installation.namespace.clone(), one.account.clone()));
    let installed = of_found.is_some();
    let made = || (installation.namespace.clone(), "allclear".to_owned());
    (options.account.clone().or(of_found).unwrap_or_else(made), installed)
}

/// Whether a replica works, and how its pods are.
async fn works(config: &Config, installation: &Installation, installed: bool, who: &Who, pre: bool) -> Vec<Finding> {
    // A dry run from a laptop, and records in memory, are no installation.
    if pre || (config.ledger_backend() == LedgerBackend::Memory && !installed) {
        return Vec::new();
    }
    let leased = config.leader.lease && config.ledger_backend() != LedgerBackend::Memory;
    let ((seen, replicas), there) =
        tokio::join!(replicas::look(installation), installation.has_namespace(&installation.namespace));
    let there = there != Some(false);
    let mut findings: Vec<Finding> = leased.then(|| ledger::lease(&seen, &replicas, who, there)).into_iter().collect();
    findings.extend(controller::controller(config, installation, &seen, &replicas, leased).await);
    findings
}

/// The Secrets of Pipelines and Repos.
async fn sent(
    config: &Config,
    clients: &Clients,
    sources: &Result<Sources, StartError>,
    watched: &BTreeSet<Option<String>>,
) -> Vec<Finding> {
    let Ok(sources) = sources else { return Vec::new() };
    secrets::secrets(sources, &KubernetesSecrets::new(clients, config.secrets.hosts.clone()), watched).await
}

/// The ledger, read without making one.
async fn read(
    config: &Config,
    sources: &Result<Sources, StartError>,
    who: &Who,
    pre: bool,
) -> (Option<Finding>, Option<LedgerContents>) {
    let sources = match sources {
        Ok(sources) => sources,
        Err(why) => return (Some(LEDGER_READ.failed(why)), None),
    };
    if config.ledger_backend() == LedgerBackend::Memory {
        return (None, None);
    }
    let contents = ledger::peek(&sources.ledger).await;
    let finding = ledger::read(&contents, &no_ledger(&sources.ledger_place), Some(who), pre);
    (Some(finding), contents.ok().flatten())
}

/// Every Redis, beside each other.
async fn servers(config: &Config, outside: &Outside) -> Vec<Finding> {
    let addresses = config.redis.url.iter().chain(&config.group.remotes);
    let looks = addresses.zip(&outside.servers).map(|(address, server)| async move {
        match server {
            Ok(server) => redis::server(server, address.is_tls(), &config.group.name).await,
            Err(why) => vec![REDIS_CONNECT.failed(why).of(address)],
        }
    });
    let mut findings: Vec<Finding> = join_all(looks).await.into_iter().flatten().collect();
    let mut seen = BTreeSet::new();
    // One server that is configured under two names with one address is one.
    findings.retain(|finding| seen.insert((finding.check.id, finding.about.clone())));
    findings
}

/// The group, where there is one.
async fn members(
    config: &Config,
    options: &Options,
    outside: &Outside,
    ledgered: Option<&LedgerContents>,
) -> Vec<Finding> {
    if options.pre {
        return Vec::new();
    }
    let now_ms = SystemClock::default().wall_ms();
    match &outside.cluster {
        Ok(InCluster { sources: Ok(sources), .. }) => match &sources.group {
            Some(neighbours) if neighbours.is_group => {
                group::group(neighbours, ledgered, &config.policy(), now_ms).await
            }
            Some(_) | None => Vec::new(),
        },
        Ok(InCluster { sources: Err(why), .. }) if config.is_grouped() => vec![GROUP_NAME.failed(why)],
        Err(_) if config.is_grouped() => group::untried(API_SERVER),
        Ok(InCluster { sources: Err(_), .. }) | Err(_) => Vec::new(),
    }
}
