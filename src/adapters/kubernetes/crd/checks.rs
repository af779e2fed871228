//! What specs of all our kinds have in common, checked: names, durations, addresses, windows, freezes, verdicts, and objects that are
//! needed.
//!
//! Not for what belongs to one kind; that is its own `read`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kernel::names::ssh_url::SshUrl;
use kernel::text::clean;
use objects::apps::app::{AppKind, ClusterKey, ClusterRef, LeafId, LeafKind, TargetKey};
use objects::gates::{Freeze, VerdictSource, Window};
use url::Url;

use super::metadata::WORDS_BYTES_MAX;
use super::raw_spec as raw;
use apiserver::is_object_name;

/// Of windows and freezes each, of needs of one environment, and of workloads of an edge.
pub const ITEMS_MAX: usize = 20;
/// Longest duration in a spec.
const DURATION_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long a wait may last before a notice says so, unless a spec says otherwise.
const STALLED_AFTER: Duration = Duration::from_secs(60 * 60);
/// No wait is announced sooner.
const STALLED_AFTER_MIN: Duration = Duration::from_secs(60);
const VERDICT_TIMEOUT: Duration = Duration::from_secs(10);
const VERDICT_TIMEOUT_MAX: Duration = Duration::from_secs(60);
const MINUTES_OF_DAY: u16 = 24 * 60;

/// What is wrong with a spec, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidSpec(pub String);

impl fmt::Display for InvalidSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub fn invalid<T>(what: impl Into<String>) -> Result<T, InvalidSpec> {
    Err(InvalidSpec(what.into()))
}

/// Another system that is asked.
pub fn verdict(raw: &raw::Verdict) -> Result<VerdictSource, InvalidSpec> {
    let timeout = duration(&raw.timeout, "gates.verdict.timeout")?.unwrap_or(VERDICT_TIMEOUT);
    if timeout.is_zero() || timeout > VERDICT_TIMEOUT_MAX {
        return invalid("gates.verdict.timeout is not between 0 and 1m");
    }
    let secret = raw.secret_ref.as_ref().map(|secret| secret.name.clone());
    Ok(VerdictSource { url: https(&raw.url, "gates.verdict.url")?, secret, timeout })
}

/// A part of the week.
pub fn window(raw: &raw::Window) -> Result<Window, InvalidSpec> {
    let zone = given(&raw.time_zone).unwrap_or_else(|| "UTC".to_owned());
    if TimeZone::get(&zone).is_err() {
        return invalid(format!("no time zone is named {zone:?}; see https://www.iana.org/time-zones"));
    }
    let mut days: Vec<u8> = raw.days.iter().map(|day| *day as u8).collect();
    if days.is_empty() {
        days.extend(0..7);
    }
    let from = minutes(&raw.from)?;
    if from == MINUTES_OF_DAY {
        return invalid("a window begins at 24:00; say 00:00 of the next day");
    }
    Ok(Window { days, from, to: minutes(&raw.to)?, zone })
}

/// Minutes after midnight of `09:30`.
fn minutes(text: &str) -> Result<u16, InvalidSpec> {
    let read = || {
        let (hours, minutes) = text.split_once(':')?;
        let digits = |part: &str| (part.len() == 2).then(|| part.parse::<u16>().ok()).flatten();
        let (hours, minutes) = (digits(hours)?, digits(minutes)?);
        let sum = hours * 60 + minutes;
        (minutes < 60 && sum <= MINUTES_OF_DAY).then_some(sum)
    };
    read().ok_or_else(|| InvalidSpec(format!("{text:?} is no time of a day, such as 09:30")))
}

/// A time in which nothing starts.
pub fn freeze(raw: &raw::Freeze) -> Result<Freeze, InvalidSpec> {
    let at = |text: &str| {
        let read: Result<Timestamp, _> = text.parse();
        read.map(Timestamp::as_second)
            .map_err(|_| InvalidSpec(format!("{text:?} is no time, such as 2026-12-20T00:00:00Z")))
    };
    let (from, to) = (at(&raw.from)?, at(&raw.to)?);
    if to <= from {
        return invalid(format!("the freeze from {} ends before it begins", raw.from));
    }
    let reason = raw.reason.as_deref().unwrap_or("a freeze");
    Ok(Freeze { from, to, reason: clean(reason, WORDS_BYTES_MAX) })
}

/// An object that an object of this kind and namespace needs. Without a namespace it is in that one, too.
pub fn need(raw: &raw::Need, namespace: &str, kind: &str) -> Result<TargetKey, InvalidSpec> {
    let app = AppKind::new(raw.api_version.clone(), raw.kind.clone());
    let within = given(&raw.namespace).unwrap_or_else(|| namespace.to_owned());
    is_shown(&raw.api_version, &raw.kind)?;
    object_name(&within, "needs.namespace")?;
    object_name(&raw.name, "needs.name")?;
    Ok(TargetKey::new(cluster(raw.cluster_ref.as_ref(), namespace, kind)?, app, within, raw.name.clone()))
}

/// A cluster that an object of this kind and namespace names; without a reference, this one.
pub fn cluster(raw: Option<&ClusterRef>, namespace: &str, kind: &str) -> Result<ClusterKey, InvalidSpec> {
    let Some(ClusterRef { api_version: _, kind: of, name, namespace: within }) = raw else {
        return Ok(ClusterKey::Here);
    };
    let within = given(within).unwrap_or_else(|| namespace.to_owned());
    object_name(&within, "clusterRef.namespace")?;
    object_name(name, "clusterRef.name")?;
    if *of == LeafKind::Secret && within != namespace {
        return invalid(format!("the Secret of a clusterRef is in the {kind}'s namespace"));
    }
    Ok(ClusterKey::Leaf(LeafId { kind: *of, namespace: within, name: name.clone() }))
}

/// What an object says of itself is shown to all who may read ours. Its author may not read Secrets by that.
pub fn is_shown(api_version: &str, kind: &str) -> Result<(), InvalidSpec> {
    if kind == "Secret" && !api_version.contains('/') { invalid("a Secret is never read as an app") } else { Ok(()) }
}

/// Why this may not be looked at for an object of this namespace where `pipeline.cross_namespace` is off: another namespace has it, or
/// the kubeconfig for it.
pub fn is_elsewhere(target: &TargetKey, namespace: &str) -> Option<String> {
    match &target.cluster {
        ClusterKey::Leaf(leaf) if leaf.namespace != namespace => Some(format!(
            "{leaf} is in another namespace, which pipeline.cross_namespace (false where tenants.default is own) forbids"
        )),
        ClusterKey::Here if target.namespace != namespace => {
            let elsewhere = &target.namespace;
            Some(format!(
                "namespace {elsewhere} is another one, which pipeline.cross_namespace (false where tenants.default is own) forbids"
            ))
        }
        ClusterKey::Leaf(_) | ClusterKey::Here => None,
    }
}

/// What becomes a part of a path of the API server's.
pub fn object_name(name: &str, what: &str) -> Result<(), InvalidSpec> {
    if is_object_name(name) { Ok(()) } else { invalid(format!("{what}: {name:?} is no name that an object can have")) }
}

/// A list that is not too long.
pub fn at_most(max: usize, count: usize, what: &str) -> Result<(), InvalidSpec> {
    if count > max { invalid(format!("{count} {what}, {max} at most")) } else { Ok(()) }
}

/// Reads each entry of a list that is not too long.
pub fn each<R, T>(raw: &[R], what: &str, read: impl Fn(&R) -> Result<T, InvalidSpec>) -> Result<Vec<T>, InvalidSpec> {
    at_most(ITEMS_MAX, raw.len(), what)?;
    raw.iter().map(read).collect()
}

/// An empty text means the same as none, as everywhere in Kubernetes.
pub fn given(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.is_empty())
}

/// A duration, as people write it; `field` is named where it is none.
pub fn duration(text: &Option<String>, field: &str) -> Result<Option<Duration>, InvalidSpec> {
    let Some(text) = given(text) else { return Ok(None) };
    match humantime::parse_duration(&text) {
        Ok(duration) if duration <= DURATION_MAX => Ok(Some(duration)),
        Ok(_) => invalid(format!("{field} is longer than 30d")),
        Err(_) => invalid(format!("{field} is no duration, such as 30m")),
    }
}

/// An https address without a user in it: a password would be in a spec that many may read.
pub fn https(text: &str, field: &str) -> Result<String, InvalidSpec> {
    let url = Url::parse(text).map_err(|_| InvalidSpec(format!("{field} is no URL")))?;
    if url.scheme() != "https" || url.host().is_none() {
        return invalid(format!("{field} is no https address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return invalid(format!("{field} has a user in it; credentials are in a Secret"));
    }
    Ok(text.to_owned())
}

/// A repository's address: as above, or one of SSH.
pub fn repository(text: &str, field: &str) -> Result<String, InvalidSpec> {
    if let Some(url) = SshUrl::in_place_of(text) {
        return invalid(format!("{field} is of the form HOST:PATH: write {url}"));
    }
    if !SshUrl::is_meant(text) {
        return https(text, field);
    }
    match SshUrl::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => invalid(format!("{field} is no address of SSH: {why}")),
    }
}

/// The time after which a wait is announced.
pub fn stalled_after(text: &Option<String>) -> Result<Duration, InvalidSpec> {
    let stalled_after = duration(text, "stalledAfter")?.unwrap_or(STALLED_AFTER);
    if stalled_after < STALLED_AFTER_MIN { invalid("stalledAfter is shorter than 1m") } else { Ok(stalled_after) }
}
