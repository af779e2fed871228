//! What every key means: its type, its bounds, and the rules between keys.

use std::collections::BTreeSet;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use super::address::{RedisAddress, Refused, WebUrl};
use super::advice;
use super::aws;
use super::caches;
use super::custom;
use super::group;
use super::looks;
use super::pipeline;
use super::problem::Place;
use super::serving;
use super::suggest::{listed, nearest};
use super::tenants;
use super::traces;
use super::values::{DAY, MINUTE, SECOND, Values, label};
use super::webhooks::{self, HookDefaults, ReadFile};
use super::{
    Config, Distributions, Group, Leader, Ledger, LedgerBackend, Log, LogFormat, Namespaces, Purge, Redis, Rollout,
    Site, Watch, Webhooks, ZeroReplicas,
};
use kernel::id::Kind;
use kernel::mask::shown;
use kernel::names::image::VersionOf;
use kernel::text::unread;
use proof::look::{AGAIN_MAX, Again};
use purge::bounds::policy::{Choice, OnMissing, OnRollback, Versions};
use purge::bounds::tenants::PATHS_SENT_MAX;
use purge::records::record::VOTE_PATH_BYTES_MAX;
use purge::workloads::extent::{Extent, Item};

/// Namespaces in a list at most; each has a watch of its own. With more, watch all namespaces.
const NAMESPACES_MAX: usize = 100;

/// Paths in the configuration at most: ten times what CloudFront has in progress at once, so that a list that will
/// merely be slow is a warning and one that was pasted by mistake is not read.
const PATHS_MAX: usize = 30_000;

/// Paths of a month at most: 5 million USD of them.
const BUDGET_MAX: u32 = 1_000_000_000;

/// Characters of a DNS name, which the names of pods are (RFC 1123, 2.1).
const NAME_CHARS_MAX: usize = 253;

/// Reads every key, then checks keys against each other; `None` if anything was refused.
pub(super) fn config(values: &mut Values<'_>, read: ReadFile<'_>) -> Option<Config> {
    // Every section is read before the first `?`, so that no problem hides another.
    let dry_run = values.truth("dry_run");
    let watch = watch(values);
    let rollout = rollout(values);
    let version = versions(values);
    let purge = purge(values);
    let proof = looks::read(values);
    let site = site(values);
    let kinds = kinds(values);
    let custom = custom::read(values);
    let tenants = tenants::read(values);
    let distributions = distributions(values);
    let cloudfront = aws::cloudfront(values);
    let aws = aws::accounts(values);
    let redis =
        values.optional("redis.url", "`host`, `host:port` or a `redis://` or `rediss://` URL", RedisAddress::parse);
    let ca = authorities(values, "redis.ca_file", read);
    let redis = redis.zip(ca).map(|(url, ca)| Redis { url, ca });
    let mut group = group::read(values, redis.as_ref(), read);
    group::derive(values, watch.as_ref(), group.as_mut());
    let ledger = ledger(values);
    let leader = leader(values);
    let webhooks = webhooks(values, read);
    let pipeline = pipeline::pipeline(values, tenants.as_ref());
    let repo = pipeline::repo(values);
    let git = pipeline::git(values);
    let secrets = pipeline::secrets(values);
    let http = serving::http(values, read);
    let hooks = serving::hooks(values, http.as_ref(), pipeline.as_ref(), read);
    let log = log(values);
    let ca = authorities(values, "traces.ca_file", read);
    let traces = traces::read(values, ca, dry_run);
    check_timeouts(values, rollout.as_ref(), group.as_ref());
    group::check(values, group.as_ref());
    Some(Config {
        watch: watch?,
        rollout: rollout?,
        version: version?,
        purge: purge?,
        proof: proof?,
        site: site?,
        kinds: kinds?.into_iter().chain(custom?).collect(),
        tenants: tenants?,
        distributions: distributions?,
        cloudfront: cloudfront?,
        aws: aws?,
        redis: redis?,
        group: group?,
        ledger: ledger?,
        leader: leader?,
        webhooks: webhooks?,
        pipeline: pipeline?,
        repo: repo?,
        git: git?,
        secrets: secrets?,
        http: http?,
        hooks: hooks?,
        log: log?,
        traces: traces?,
        dry_run: dry_run?,
    })
}

fn watch(values: &mut Values<'_>) -> Option<Watch> {
    let key = "watch.namespaces";
    let item = |text: &str| if text == "*" { Ok(text.to_owned()) } else { label(text) };
    let names: BTreeSet<String> =
        values.list(key, "list of namespaces, or `*`", NAMESPACES_MAX, item)?.into_iter().collect();
    let namespaces = match (names.contains("*"), names.len()) {
        (_, 0) => Namespaces::AllOrOwn,
        (true, 1) => Namespaces::All,
        (false, _) => Namespaces::Listed(names),
        (true, _) => {
            let refused = Refused::new("has * beside names", "write * alone for all namespaces, or leave it out");
            return values.refuse(key, None, refused);
        }
    };
    Some(Watch { namespaces })
}

fn rollout(values: &mut Values<'_>) -> Option<Rollout> {
    let timeout = values.duration("rollout.timeout", SECOND..=DAY);
    let settle = values.duration("rollout.settle", Duration::ZERO..=5 * MINUTE);
    let drain_timeout = values.duration("rollout.drain_timeout", Duration::ZERO..=DAY);
    let choices = [("wait", ZeroReplicas::Wait), ("complete", ZeroReplicas::Complete)];
    let zero_replicas = values.choice("rollout.zero_replicas", &choices);
    Some(Rollout { timeout: timeout?, settle: settle?, drain_timeout: drain_timeout?, zero_replicas: zero_replicas? })
}

fn versions(values: &mut Values<'_>) -> Option<Versions> {
    let of = values.parsed("version.of", "`images`, `template` or `annotation KEY`", |text| {
        let fix = "write images, template, or annotation and its key: annotation example.com/site-version";
        VersionOf::parse(text).map_err(|_| Refused::new("is nothing that may count as a version", fix))
    });
    let same_digest_is_same = values.truth("version.same_digest_is_same");
    Some(Versions { of: of?, same_digest_is_same: same_digest_is_same? })
}

fn kinds(values: &mut Values<'_>) -> Option<BTreeSet<Kind>> {
    const KEY: &str = "workloads.kinds";
    let kind = |text: &str| {
        Kind::named(text).filter(|kind| kind.custom().is_none()).ok_or_else(|| {
            let fix = "write deployment, statefulset, daemonset or rollout; declare others in workloads.custom";
            Refused::new("is no kind that is followed", fix)
        })
    };
    let kinds: BTreeSet<Kind> = values.list(KEY, "list of kinds", Kind::ALL.len(), kind)?.into_iter().collect();
    if !kinds.contains(&Kind::Deployment) {
        return values.refuse(
            KEY,
            None,
            Refused::new("leaves out Deployments", "add deployment: it is always followed"),
        );
    }
    Some(kinds)
}

fn site(values: &mut Values<'_>) -> Option<Site> {
    let missing_timeout = values.duration("site.missing_timeout", Duration::ZERO..=DAY);
    let choices = [("last-known", OnMissing::LastKnown), ("skip", OnMissing::Skip)];
    let missing = values.choice("site.missing", &choices);
    let follow_traffic = values.truth("site.follow_traffic");
    Some(Site { missing_timeout: missing_timeout?, missing: missing?, follow_traffic: follow_traffic? })
}

fn purge(values: &mut Values<'_>) -> Option<Purge> {
    let paths = paths(values);
    let debounce = values.duration("purge.debounce", Duration::ZERO..=5 * MINUTE);
    let completion_timeout = values.duration("purge.completion_timeout", SECOND..=DAY);
    let poll_first = values.duration("purge.poll_first", Duration::from_millis(100)..=5 * MINUTE);
    let creations_per_second = values.number("purge.creations_per_second", 0.01..=100.0);
    let creations_per_second_max = values.number("purge.creations_per_second_max", 0.01..=100.0);
    let on_recovered = values.choice("purge.on_recovered", &[("purge", Choice::Purge), ("skip", Choice::Skip)]);
    let rollback = [("if-served", OnRollback::IfServed), ("purge", OnRollback::Purge), ("close", OnRollback::Close)];
    let on_rollback = values.choice("purge.on_rollback", &rollback);
    let again = again(values);
    let sample_tags = values.truth("purge.sample_tags");
    let budget = values.whole("purge.budget", 0..=BUDGET_MAX);
    let caches = caches::read(values, paths.as_ref());
    Some(Purge {
        paths: paths?,
        debounce: debounce?,
        completion_timeout: completion_timeout?,
        poll_first: poll_first?,
        creations_per_second: creations_per_second?,
        creations_per_second_max: creations_per_second_max?,
        on_recovered: on_recovered?,
        on_rollback: on_rollback?,
        again: again?,
        sample_tags: sample_tags?,
        budget: u64::from(budget?),
        caches: caches?,
    })
}

/// The further purges of what is looked at.
fn again(values: &mut Values<'_>) -> Option<Again> {
    let max = values.whole("purge.again_max", 0..=AGAIN_MAX);
    let after = values.duration("purge.again_after", Duration::ZERO..=60 * MINUTE)?;
    let after_s = u32::try_from(after.as_millis().div_ceil(1_000)).ok().filter(|seconds| *seconds > 0);
    Some(Again { max: max?, after_s })
}

fn paths(values: &mut Values<'_>) -> Option<Extent> {
    let key = "purge.paths";
    let path = |text: &str| {
        let fix = "write paths such as /*, /images/* or /index.html, cache tags such as #product-7, or routes";
        text.parse::<Item>().map_err(|error| Refused::new(format!("cannot be purged: {}", error.reason()), fix))
    };
    let items = values.list(key, "list of paths and cache tags", PATHS_MAX, path)?;
    let place = values.place(key);
    let paths = match Extent::of(items) {
        Ok(paths) => paths,
        Err(why) => {
            values.findings.refuse(
                &place,
                key,
                None,
                why.to_string(),
                "write routes, and paths beside it, or tags alone",
            );
            return None;
        }
    };
    let (bytes, written) = (paths.bytes(), paths.written().count());
    if bytes > VOTE_PATH_BYTES_MAX {
        let message =
            format!("has {bytes} bytes of paths; every rollout records them, and {VOTE_PATH_BYTES_MAX} is the most");
        values.findings.refuse(&place, key, None, message, "use fewer and wider paths, such as /images/*");
        return None;
    }
    if written > PATHS_SENT_MAX {
        let message = format!(
            "has {written} paths; an invalidation gets {PATHS_SENT_MAX} at most, so those with the longest beginnings in common are \
             purged by these beginnings"
        );
        values.findings.warn(&place, key, message);
    }
    Some(paths)
}

fn distributions(values: &mut Values<'_>) -> Option<Distributions> {
    let refresh = values.duration("distributions.refresh", 10 * SECOND..=DAY);
    let miss_refresh = values.duration("distributions.miss_refresh", SECOND..=DAY);
    Some(Distributions { refresh: refresh?, miss_refresh: miss_refresh? })
}

/// The authorities that a file holds, as PEM; what they are worth is known when a connection is made.
fn authorities(values: &mut Values<'_>, key: &'static str, read: ReadFile<'_>) -> Option<Option<Vec<u8>>> {
    let Some(path) = values.file(key)? else { return Some(None) };
    let value = Some(shown(&path.to_string_lossy()));
    let refused = match read(&path) {
        Ok(text) if text.contains("-----BEGIN CERTIFICATE-----") => return Some(Some(text.into_bytes())),
        Ok(_) => Refused::new(
            "names a file without a certificate",
            "write certificates in PEM into it, -----BEGIN CERTIFICATE-----",
        ),
        Err(error) => {
            let message = format!("names a file that cannot be read: {}", unread(&error));
            Refused::new(message, format!("mount the certificates there, or leave {key} empty"))
        }
    };
    let place = values.place(key);
    if matches!(&place, Place::Environment(name) if name.starts_with("OTEL_")) {
        // It may be meant for other programs, and purges do not depend on it.
        let message = format!("{}; the authorities of the system are used instead", refused.message);
        values.findings.warn(&place, key, message);
        return Some(None);
    }
    values.refuse(key, value, refused)
}

fn ledger(values: &mut Values<'_>) -> Option<Ledger> {
    let backend =
        values.parsed("ledger.backend", "`kubernetes` or `memory`", |text| match &*text.to_ascii_lowercase() {
            "kubernetes" => Ok(LedgerBackend::Kubernetes),
            "memory" => Ok(LedgerBackend::Memory),
            "redis" => Err(Refused::new(
                "is no ledger any more: a Redis that lost its data forgot what was purged and what was under way",
                "write kubernetes, or leave it out; redis.url (REDIS_HOST) still gets the current tags",
            )),
            _ => Err(Refused::new("is not a choice", "write kubernetes or memory")),
        });
    let namespace = values.optional("ledger.namespace", "namespace", label);
    Some(Ledger { backend: backend?, namespace: namespace? })
}

fn leader(values: &mut Values<'_>) -> Option<Leader> {
    let lease = values.truth("leader.lease");
    let replica = values.optional("leader.replica", "name", pod_name);
    Some(Leader { lease: lease?, replica: replica? })
}

fn webhooks(values: &mut Values<'_>, read: ReadFile<'_>) -> Option<Webhooks> {
    let file = values.file("webhooks.file");
    let timeout = values.duration("webhooks.timeout", webhooks::TIMEOUT);
    let schedule = values.durations("webhooks.retry", webhooks::WAIT, webhooks::ATTEMPTS_MAX).and_then(|schedule| {
        if schedule.is_empty() {
            values.refuse("webhooks.retry", None, Refused::new("is empty", "give at least one wait, such as 0s"))
        } else {
            Some(schedule)
        }
    });
    let proxy = values.optional("webhooks.proxy", "`http` or `https` URL", WebUrl::parse);
    let proxy_judges = values.truth("webhooks.proxy_judges");
    let allow_private = values.truth("webhooks.allow_private");
    // Hooks are checked even where a default of theirs was refused, so that all problems are reported at once.
    let defaults = HookDefaults {
        timeout: timeout.unwrap_or(*webhooks::TIMEOUT.end()),
        schedule: schedule.clone().unwrap_or_default(),
    };
    let place = values.place("webhooks.file");
    let hooks = match &file {
        Some(Some(path)) => webhooks::read(path, &place, &defaults, read, values.findings),
        Some(None) | None => Some(Vec::new()),
    };
    let unjudged = matches!((&proxy, proxy_judges), (Some(Some(_)), Some(false)));
    advice::hooks(values, hooks.as_deref().unwrap_or_default(), unjudged);
    timeout.and(schedule)?;
    Some(Webhooks {
        file: file?,
        hooks: hooks?,
        proxy: proxy?,
        proxy_judges: proxy_judges?,
        allow_private: allow_private?,
    })
}

fn log(values: &mut Values<'_>) -> Option<Log> {
    let level = values.parsed("log.level", "level or filter", level);
    advice::level(values, level.as_deref().unwrap_or_default());
    let format = values.choice("log.format", &[("json", LogFormat::Json), ("text", LogFormat::Text)]);
    Some(Log { level: level?, format: format? })
}

/// A level of ours or of the old program's, in any case, or a filter. A bare word that is no level is refused, although
/// a filter could be made of it: it would show one unknown module and nothing else.
fn level(text: &str) -> Result<String, Refused> {
    let levels = ["trace", "debug", "info", "warn", "error", "off"];
    let word = text.to_ascii_lowercase();
    if levels.contains(&word.as_str()) {
        return Ok(word);
    }
    match word.as_str() {
        "warning" => return Ok("warn".to_owned()),
        "fatal" | "panic" | "critical" => return Ok("error".to_owned()),
        _ => {}
    }
    let fix = match nearest(&word, levels) {
        Some(level) => format!("did you mean {level}?"),
        None => format!("write {}, or a filter such as info,allclear=debug", listed(levels)),
    };
    let is_filter = text.contains(['=', ',', '[']);
    if is_filter && EnvFilter::try_new(text).is_ok() {
        Ok(text.to_owned())
    } else {
        Err(Refused::new("is not a level", fix))
    }
}

/// The name of a pod, or of a host: a DNS name.
fn pod_name(text: &str) -> Result<String, Refused> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if !text.is_empty() && text.len() <= NAME_CHARS_MAX && text.chars().all(is_inner) {
        Ok(text.to_owned())
    } else {
        Err(Refused::new("is not a name", "write letters, digits, hyphens and dots, 253 at most"))
    }
}

fn check_timeouts(values: &mut Values<'_>, rollout: Option<&Rollout>, group: Option<&Group>) {
    if let (Some(rollout), Some(group)) = (rollout, group)
        && !group.remotes.is_empty()
        && group.timeout < rollout.timeout
    {
        let place: Place = values.place("group.timeout");
        let message = "is shorter than rollout.timeout: the group gives up on rollouts that may still complete";
        values.findings.warn(&place, "group.timeout", message);
    }
}
