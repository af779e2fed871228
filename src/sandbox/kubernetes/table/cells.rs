//! The cells of each kind's rows.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{number, text};

/// What stands where there is nothing to say.
const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

/// Hosts that are named before the others are counted.
const HOSTS_SHOWN: usize = 3;

pub fn name(object: &Value) -> Value {
    object["metadata"]["name"].clone()
}

pub fn age(object: &Value, now: Timestamp) -> Value {
    json!(since(text(object, "/metadata/creationTimestamp"), now))
}

/// How long ago that was, as `HumanDuration` of apimachinery says it.
pub(super) fn since(time: &str, now: Timestamp) -> String {
    time.parse::<Timestamp>().map_or_else(|_| UNKNOWN.to_owned(), |then| spoken(now.as_second() - then.as_second()))
}

fn spoken(seconds: i64) -> String {
    const DAY: i64 = 24 * 60;
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let two = |whole: i64, unit: char, rest: i64, part: char| match rest {
        0 => format!("{whole}{unit}"),
        _ => format!("{whole}{unit}{rest}{part}"),
    };
    match minutes {
        0..2 => format!("{seconds}s"),
        2..10 => two(minutes, 'm', seconds % 60, 's'),
        10..180 => format!("{minutes}m"),
        180..480 => two(hours, 'h', minutes % 60, 'm'),
        480..2_880 => format!("{hours}h"),
        _ if minutes < 8 * DAY => two(days, 'd', hours % 24, 'h'),
        _ if days < 2 * 365 => format!("{days}d"),
        _ => two(days / 365, 'y', days % 365, 'd'),
    }
}

fn many(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn counted(object: &Value, pointer: &str) -> i64 {
    number(object, pointer).unwrap_or(0)
}

fn pairs(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let pairs: Vec<String> =
        labels.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

/// Names and images of the containers of a template, each with commas between.
fn containers(object: &Value) -> [String; 2] {
    let all = many(object.pointer("/spec/template/spec/containers"));
    ["/name", "/image"].map(|field| all.iter().map(|one| text(one, field)).collect::<Vec<_>>().join(","))
}

pub fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = format!("{}/{}", counted(object, "/status/readyReplicas"), counted(object, "/spec/replicas"));
    let [names, images] = containers(object);
    vec![
        name(object),
        json!(ready),
        json!(counted(object, "/status/updatedReplicas")),
        json!(counted(object, "/status/availableReplicas")),
        age(object, now),
        json!(names),
        json!(images),
        json!(pairs(object.pointer("/spec/selector/matchLabels"))),
    ]
}

pub fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object);
    let counts = ["/spec/replicas", "/status/replicas", "/status/readyReplicas"];
    let mut cells = vec![name(object)];
    cells.extend(counts.map(|pointer| json!(counted(object, pointer))));
    cells.extend([age(object, now), json!(names), json!(images)]);
    cells
}

/// A pod, whose status is the worst of what its containers say (`printPod`).
pub fn pod(object: &Value, now: Timestamp) -> Vec<Value> {
    let statuses = many(object.pointer("/status/containerStatuses"));
    let ready = statuses.iter().filter(|one| one["ready"] == json!(true)).count();
    let restarts: i64 = statuses.iter().map(|one| counted(one, "/restartCount")).sum();
    let total = many(object.pointer("/spec/containers")).len();
    let or_none = |pointer: &str| match text(object, pointer) {
        "" => json!(NONE),
        found => json!(found),
    };
    vec![
        name(object),
        json!(format!("{ready}/{total}")),
        json!(state_of(object, statuses)),
        json!(restarts.to_string()),
        age(object, now),
        or_none("/status/podIP"),
        or_none("/spec/nodeName"),
    ]
}

fn state_of(object: &Value, statuses: &[Value]) -> String {
    let phase = text(object, "/status/phase");
    if !text(object, "/metadata/deletionTimestamp").is_empty() && !["Succeeded", "Failed"].contains(&phase) {
        return "Terminating".to_owned();
    }
    let first = many(object.pointer("/status/initContainerStatuses"));
    let is_through = |one: &Value| number(one, "/state/terminated/exitCode") == Some(0);
    if let Some((at, one)) = first.iter().enumerate().find(|(_, one)| !is_through(one)) {
        return match why(one).filter(|why| why != "PodInitializing") {
            Some(why) => format!("Init:{why}"),
            None => format!("Init:{at}/{}", first.len()),
        };
    }
    let said = text(object, "/status/reason");
    let reason = if said.is_empty() { phase } else { said };
    let worst = statuses.iter().find_map(why).unwrap_or_else(|| reason.to_owned());
    let runs = statuses.iter().any(|one| one["ready"] == json!(true) && !one["state"]["running"].is_null());
    if worst == "Completed" && runs { "Running".to_owned() } else { worst }
}

/// Why a container does not run, in one word.
fn why(status: &Value) -> Option<String> {
    let waiting = text(status, "/state/waiting/reason");
    if !waiting.is_empty() {
        return Some(waiting.to_owned());
    }
    let ended = status.pointer("/state/terminated").filter(|ended| !ended.is_null())?;
    Some(match text(ended, "/reason") {
        "" => format!("ExitCode:{}", number(ended, "/exitCode").unwrap_or_default()),
        reason => reason.to_owned(),
    })
}

pub fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<String> = many(object.pointer("/spec/ports"))
        .iter()
        .map(|port| {
            let protocol = text(port, "/protocol");
            let protocol = if protocol.is_empty() { "TCP" } else { protocol };
            format!("{}/{protocol}", counted(port, "/port"))
        })
        .collect();
    let or = |pointer: &str, otherwise: &str| match text(object, pointer) {
        "" => json!(otherwise),
        found => json!(found),
    };
    let ports = if ports.is_empty() { NONE.to_owned() } else { ports.join(",") };
    vec![
        name(object),
        or("/spec/type", "ClusterIP"),
        or("/spec/clusterIP", NONE),
        json!(address(object).unwrap_or_else(|| NONE.to_owned())),
        json!(ports),
        age(object, now),
        json!(pairs(object.pointer("/spec/selector"))),
    ]
}

/// Where a load balancer answers.
fn address(object: &Value) -> Option<String> {
    let points = many(object.pointer("/status/loadBalancer/ingress")).iter();
    let named = points.map(|point| match text(point, "/hostname") {
        "" => text(point, "/ip"),
        name => name,
    });
    let named: Vec<&str> = named.filter(|name| !name.is_empty()).collect();
    (!named.is_empty()).then(|| named.join(","))
}

pub fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let hosts = many(object.pointer("/spec/rules")).iter().map(|rule| text(rule, "/host"));
    let hosts: Vec<&str> = hosts.filter(|host| !host.is_empty()).collect();
    let shown = match hosts.as_slice() {
        [] => "*".to_owned(),
        all if all.len() > HOSTS_SHOWN => {
            format!(
                "{} + {} more...",
                all.iter().take(HOSTS_SHOWN).copied().collect::<Vec<_>>().join(","),
                all.len() - HOSTS_SHOWN
            )
        }
        all => all.join(","),
    };
    let class = match text(object, "/spec/ingressClassName") {
        "" => NONE,
        class => class,
    };
    let ports = if many(object.pointer("/spec/tls")).is_empty() { "80" } else { "80, 443" };
    vec![
        name(object),
        json!(class),
        json!(shown),
        json!(address(object).unwrap_or_default()),
        json!(ports),
        age(object, now),
    ]
}

/// An Event of either version: the old one has `involvedObject` and `message`, the new one `regarding` and `note`.
pub fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |one: &str, other: &str| match text(object, one) {
        "" => text(object, other).to_owned(),
        found => found.to_owned(),
    };
    let kind = either("/involvedObject/kind", "/regarding/kind").to_lowercase();
    let about = either("/involvedObject/name", "/regarding/name");
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp", "/eventTime"];
    let last = times.into_iter().map(|time| text(object, time)).find(|time| !time.is_empty()).unwrap_or_default();
    let source = either("/source/component", "/reportingController");
    vec![
        json!(since(last, now)),
        json!(text(object, "/type")),
        json!(text(object, "/reason")),
        json!(format!("{kind}/{about}")),
        json!(source),
        json!(either("/message", "/note").trim()),
    ]
}

pub fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "/status/phase")), age(object, now)]
}

fn entries(object: &Value) -> usize {
    ["data", "binaryData"].into_iter().filter_map(|field| object.get(field)?.as_object()).map(Map::len).sum()
}

pub fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(entries(object)), age(object, now)]
}

pub fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "/type")), json!(entries(object)), age(object, now)]
}

pub fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let holds = |kind: &str| {
        let conditions = many(object.pointer("/status/conditions"));
        conditions.iter().any(|one| text(one, "/type") == kind && text(one, "/status") == "True")
    };
    let state = ["Complete", "Failed", "Suspended"].into_iter().find(|kind| holds(kind)).unwrap_or("Running");
    let wanted = number(object, "/spec/completions").unwrap_or(1);
    let done = format!("{}/{wanted}", counted(object, "/status/succeeded"));
    vec![name(object), json!(state), json!(done), age(object, now)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_said_as_kubectl_says_it() {
        for (seconds, words) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (185, "3m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
        ] {
            assert_eq!(spoken(seconds), words, "{seconds}");
        }
    }
}
