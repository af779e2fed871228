//! The environment as a layer: `ALLCLEAR__SECTION__KEY` for everything, and the names of the old program.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use config::{Environment, Source, ValueKind};

use super::address::{RedisAddress, Refused, parse_port};
use super::layers::{Layer, did_you_mean};
use super::problem::{Findings, Place};
use super::suggest::{nearest, unknown};
use super::traces;
use kernel::mask::shown;

/// Two underscores, because Kubernetes gives every pod variables such as `ALLCLEAR_PORT` for a Service of our name
/// (<https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables>).
const PREFIX: &str = "ALLCLEAR__";

/// Protocols of a Service, as Kubernetes writes them into variables.
const PROTOCOLS: [&str; 3] = ["tcp", "udp", "sctp"];

/// Where Kubernetes tells a pod its namespace.
pub(super) const SERVICE_ACCOUNT_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The names of the old program, by the key they stand for.
const OLD_NAMES: [(&str, &[&str]); 5] = [
    ("watch.namespaces", &["NAMESPACE"]),
    ("redis.url", &["REDIS_HOST", "REDIS_PORT"]),
    ("group.remotes", &["REMOTE_REDIS_HOSTS"]),
    ("log.level", &["LOGLEVEL"]),
    ("webhooks.file", &["WEBHOOKS_CONFIG"]),
];

/// The variable of a key: `purge.poll_first` → `ALLCLEAR__PURGE__POLL_FIRST`.
pub fn name_of(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase().replace('.', "__"))
}

/// The key of a variable, whether it exists or not; `None` for a variable that is not ours. The inverse of
/// [`name_of`] for every key, as no key has two underscores in a row or a capital.
pub fn key_of(name: &str) -> Option<String> {
    name.strip_prefix(PREFIX).map(|rest| rest.to_ascii_lowercase().replace("__", "."))
}

/// OpenTelemetry's variables, by the key they stand for; `traces` reads them.
const STANDARD_NAMES: [(&str, &[&str]); 4] = [
    ("traces.endpoint", &["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]),
    ("traces.headers", &["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]),
    ("traces.attributes", &["OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME"]),
    ("traces.ca_file", &["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"]),
];

/// The names that a key has in the old program, or in all programs that send traces; empty for most.
pub fn old_names_of(key: &str) -> &'static [&'static str] {
    OLD_NAMES.iter().chain(&STANDARD_NAMES).find(|(of, _)| *of == key).map_or(&[], |(_, names)| names)
}

/// What the pod tells about itself; it ranks above the defaults and below everything that was configured.
pub(super) fn surroundings(environment: &BTreeMap<String, String>, service_account_namespace: Option<&str>) -> Layer {
    let mut layer = Layer::default();
    let mut insert = |key: &str, told: Option<&str>, place: Place| {
        if let Some(told) = told.map(str::trim).filter(|told| !told.is_empty()) {
            layer.insert(key, ValueKind::String(told.to_owned()), place);
        }
    };
    insert("ledger.namespace", service_account_namespace, Place::whole_file(Path::new(SERVICE_ACCOUNT_NAMESPACE)));
    for (key, name) in [("ledger.namespace", "POD_NAMESPACE"), ("leader.replica", "POD_NAME")] {
        insert(key, environment.get(name).map(String::as_str), Place::Environment(name.to_owned()));
    }
    layer
}

/// The layer of the environment. A variable that is empty or blank counts as not given.
pub(super) fn of_environment(environment: &BTreeMap<String, String>, known: &Layer, findings: &mut Findings) -> Layer {
    let mut given = environment.clone();
    given.retain(|_, value| !value.trim().is_empty());
    let mut layer = old_layer(&given, findings);
    traces::standard_layer(&given, &mut layer, findings);
    for (key, new) in new_layer(&given, known, findings).values {
        if let Some(old) = layer.values.get(&key).filter(|old| !is_same(&old.value, &new.value)) {
            let message =
                format!("is given twice and differs: {} wins, {} is ignored", new.place.layer(), old.place.layer());
            findings.warn(&old.place, &key, message);
        }
        layer.values.insert(key, new);
    }
    layer
}

fn new_layer(given: &BTreeMap<String, String>, known: &Layer, findings: &mut Findings) -> Layer {
    let mut layer = Layer::default();
    let (mut ours, mut meant) = (HashMap::new(), Vec::new());
    for (name, value) in given {
        let place = Place::Environment(shown(name));
        match key_of(name) {
            Some(key) if known.values.contains_key(&key) && name_of(&key) == *name => {
                ours.insert(name.clone(), value.clone());
            }
            Some(key) if is_service_link(name, value) => {
                let message = "is ignored: it was set by Kubernetes for a Service of that name (enableServiceLinks: false stops that)";
                findings.warn(&place, &key, message);
            }
            Some(key) => {
                // A misspelt name may be that of a secret, so its value is not shown.
                let near = nearest(&key, known.keys());
                let fix = match near {
                    Some(near) if near == key => format!("write it as {}", name_of(near)),
                    Some(near) => format!("did you mean {}?", name_of(near)),
                    None => did_you_mean(&key, known),
                };
                findings.refuse(&place, &unknown(&key), None, "is not a key", fix);
                meant.extend(near.map(|near| (near.to_owned(), ValueKind::String(value.clone()), place)));
            }
            None if name.to_ascii_uppercase().starts_with(PREFIX) => {
                let fix = format!("write it as {}", shown(&name.to_ascii_uppercase()));
                findings.refuse(&place, "", None, format!("{} is not in capitals", shown(name)), fix);
            }
            None => meant.extend(near_miss(given, (name, value), known, findings)),
        }
    }
    // Names are checked above, so this only takes them apart; values stay text until their key's rule reads them.
    let source = Environment::with_prefix("ALLCLEAR").prefix_separator("__").separator("__").source(Some(ours));
    match source.collect() {
        Ok(values) => {
            for (key, value) in values {
                layer.insert(&key, value.kind, Place::Environment(name_of(&key)));
            }
        }
        Err(_) => {
            let place = Place::Environment(format!("{PREFIX}…"));
            findings.refuse(&place, "", None, "cannot be read", "check that every value is valid UTF-8");
        }
    }
    layer.insert_meant(meant);
    layer
}

/// A variable that is none of ours and nearly has the name of one. With the very letters of a key (`ALLCLEAR_ROLLOUT_TIMEOUT`) it is
/// refused, as no other program has a variable of that name; a mere resemblance is warned about.
fn near_miss(
    given: &BTreeMap<String, String>,
    (name, value): (&str, &str),
    known: &Layer,
    findings: &mut Findings,
) -> Option<(String, ValueKind, Place)> {
    if is_service_link(name, value) {
        return None;
    }
    let place = Place::Environment(shown(name));
    let letters = |text: &str| text.to_ascii_lowercase().replace(['_', '.'], "");
    let ours = letters(name).strip_prefix("allclear").map(str::to_owned).filter(|rest| !rest.is_empty());
    if let Some(rest) = ours {
        if let Some(key) = known.keys().find(|key| letters(key) == rest) {
            findings.refuse(&place, key, None, "is not read", format!("write it as {}", name_of(key)));
            return Some((key.to_owned(), ValueKind::String(value.to_owned()), place));
        }
        let spelt: BTreeMap<String, &str> = known.keys().map(|key| (letters(key), key)).collect();
        let key = nearest(&rest, spelt.keys().map(String::as_str)).and_then(|near| spelt.get(near));
        if let Some(key) = key {
            findings.warn(&place, key, format!("is not read; did you mean {}?", name_of(key)));
        }
        return None;
    }
    let old = OLD_NAMES.iter().flat_map(|(key, names)| names.iter().map(move |old| (*key, *old)));
    let near = |old: &str| old != name && !given.contains_key(old) && strsim::osa_distance(old, name) == 1;
    if let Some((key, old)) = old.into_iter().find(|(_, old)| near(old)).filter(|_| !is_old_name(name)) {
        findings.warn(&place, key, format!("is not read; did you mean {old}?"));
    }
    None
}

fn is_old_name(name: &str) -> bool {
    OLD_NAMES.iter().any(|(_, names)| names.contains(&name))
}

/// Whether Kubernetes has set a variable for a Service of the pod's namespace: by its ending, and by a value as such a
/// variable has it. A Service called `allclear--x` would keep us from starting otherwise. Names and values:
/// <https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables>.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let is_port = |text: &str| text.parse::<u16>().is_ok_and(|port| port != 0);
    let is_link = |text: &str| {
        let socket = text.split_once("://").filter(|(protocol, _)| PROTOCOLS.contains(protocol));
        socket.is_some_and(|(_, address)| address.parse::<SocketAddr>().is_ok())
    };
    let host = name.ends_with("_SERVICE_HOST") && is_address(value);
    let port = (name.ends_with("_SERVICE_PORT") || name.contains("_SERVICE_PORT_")) && is_port(value);
    let link = name.ends_with("_PORT") && is_link(value);
    // X_PORT_80_TCP, and the same with _PROTO, _PORT and _ADDR.
    let of_one = |protocol: &str| {
        let (before, part) = name.rsplit_once(&format!("_{}", protocol.to_ascii_uppercase()))?;
        let (_, port) = before.rsplit_once("_PORT_")?;
        is_port(port).then_some(part)
    };
    let of_one = match PROTOCOLS.into_iter().find_map(of_one) {
        Some("") => is_link(value),
        Some("_PROTO") => PROTOCOLS.contains(&value),
        Some("_PORT") => is_port(value),
        Some("_ADDR") => is_address(value),
        Some(_) | None => false,
    };
    host || port || link || of_one
}

fn old_layer(given: &BTreeMap<String, String>, findings: &mut Findings) -> Layer {
    let mut layer = Layer::default();
    for (key, names) in OLD_NAMES {
        // The one key with two names is put together below.
        if let [name] = names
            && let Some(value) = given.get(*name)
        {
            layer.insert(key, ValueKind::String(value.clone()), Place::Environment((*name).to_owned()));
        }
    }
    let port = redis_port(given, findings);
    match (given.get("REDIS_HOST"), port) {
        (Some(host), port) => {
            let (value, place) = redis_url(host, port, findings);
            layer.insert("redis.url", ValueKind::String(value), place);
        }
        (None, Some(_)) => {
            let place = Place::Environment("REDIS_PORT".to_owned());
            findings.warn(&place, "redis.url", "REDIS_PORT is ignored, because REDIS_HOST is not given");
        }
        (None, None) => {}
    }
    layer
}

/// Host and port of the old program as one address; a host that cannot be read is left for the key's rule to refuse.
fn redis_url(host: &str, port: Option<u16>, findings: &mut Findings) -> (String, Place) {
    let alone = Place::Environment("REDIS_HOST".to_owned());
    let Some(port) = port else { return (host.to_owned(), alone) };
    match RedisAddress::parse_with_port(host, Some(port)) {
        Ok(address) if address.server().1 == port => {
            (address.expose().to_owned(), Place::Environment("REDIS_HOST, REDIS_PORT".to_owned()))
        }
        Ok(_) => {
            let message = "REDIS_HOST has a port of its own, which wins over REDIS_PORT";
            findings.warn(&Place::Environment("REDIS_PORT".to_owned()), "redis.url", message);
            (host.to_owned(), alone)
        }
        Err(_) => (host.to_owned(), alone),
    }
}

fn redis_port(given: &BTreeMap<String, String>, findings: &mut Findings) -> Option<u16> {
    let text = given.get("REDIS_PORT")?.trim();
    let place = Place::Environment("REDIS_PORT".to_owned());
    // Kubernetes gives every pod `REDIS_PORT=tcp://10.96.0.7:6379` for a Service called redis; no person configured
    // that.
    if text.starts_with("tcp://") {
        if !given.contains_key("REDIS_HOST") {
            return None;
        }
        let message = "REDIS_PORT is ignored: it was set by Kubernetes for a Service called redis (enableServiceLinks: false stops that)";
        findings.warn(&place, "redis.url", message);
        return None;
    }
    match parse_port(text) {
        Ok(port) => Some(port),
        Err(Refused { message, fix: _ }) => {
            findings.refuse(&place, "redis.url", Some(shown(text)), message, "write a port, such as 6379");
            None
        }
    }
}

/// Whether two texts of the environment say the same, blanks around commas aside.
fn is_same(one: &ValueKind, other: &ValueKind) -> bool {
    let items = |value: &ValueKind| match value {
        ValueKind::String(text) => text.split(',').map(|item| item.trim().to_owned()).collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    items(one) == items(other)
}
