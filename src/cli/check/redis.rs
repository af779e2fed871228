//! One Redis server: whether it can be reached, lets us in, and can keep what the group and the ledger leave there.
//!
//! Not for what the members say on it.

use std::time::Duration;

use super::catalog::{
    Check, REDIS_AUTH, REDIS_COMMANDS, REDIS_CONNECT, REDIS_EVICTION, REDIS_LATENCY, REDIS_MODE, REDIS_ROLE, REDIS_TLS,
    REDIS_VERSION,
};
use super::report::Finding;
use crate::adapters::redis::Server;
use crate::adapters::redis::probe::Health;
use purge::ports::PortError;

/// A round trip that takes longer is said. A Redis on another continent answers in 0.3 s.
const ROUND_TRIP_SAID: Duration = Duration::from_millis(500);

/// What comes before the rest, in the order in which a connection meets it.
const FIRST: [Check; 3] = [REDIS_CONNECT, REDIS_TLS, REDIS_AUTH];

const REST: [Check; 6] = [REDIS_VERSION, REDIS_MODE, REDIS_ROLE, REDIS_EVICTION, REDIS_COMMANDS, REDIS_LATENCY];

/// Everything about one server.
pub async fn server(server: &Server, is_tls: bool, group: &str) -> Vec<Finding> {
    let name = server.shown().to_owned();
    let findings = match server.reach().await {
        Ok(()) => match server.health(&format!("allclear:{{{group}}}:")).await {
            Ok(health) => let_in(is_tls).into_iter().chain(judged(&health)).collect(),
            Err(error) => refused(&error, is_tls),
        },
        Err(error) => refused(&error, is_tls),
    };
    findings.into_iter().map(|finding| finding.of(&name)).collect()
}

fn let_in(is_tls: bool) -> Vec<Finding> {
    let mut findings = vec![REDIS_CONNECT.good("answers"), REDIS_AUTH.good("lets us in")];
    if is_tls {
        findings.push(REDIS_TLS.good("its certificate is trusted"));
    }
    findings
}

/// What a failure says of each check: those before it hold, those behind it were not tried.
fn refused(error: &PortError, is_tls: bool) -> Vec<Finding> {
    let failed = match error.reason.map(|reason| reason.name()) {
        Some("NOAUTH" | "WRONGPASS") => REDIS_AUTH,
        Some("certificate") => REDIS_TLS,
        Some("RESP3") => REDIS_VERSION,
        Some("NOPERM") => REDIS_COMMANDS,
        Some("MOVED" | "CLUSTERDOWN") => REDIS_MODE,
        Some("READONLY" | "MASTERDOWN" | "OOM") => REDIS_ROLE,
        Some(_) | None => REDIS_CONNECT,
    };
    let mut findings = vec![failed.failed(error)];
    let is_before = |check: &Check| check.place() < failed.place() && (is_tls || *check != REDIS_TLS);
    findings.extend(FIRST.iter().filter(|check| is_before(check)).map(|check| check.good("not refused")));
    let is_behind = |check: &&Check| **check != failed && !is_before(check) && (is_tls || **check != REDIS_TLS);
    findings.extend(FIRST.iter().chain(&REST).filter(is_behind).map(|check| check.after(failed)));
    findings
}

fn judged(health: &Health) -> Vec<Finding> {
    let Health { version, refuses, eviction, cluster, forbidden, round_trip } = health;
    let unknown = "it does not tell: INFO is forbidden";
    let version = match version {
        Some(version) => REDIS_VERSION.good(version),
        None => REDIS_VERSION.warning(unknown),
    };
    let mode = match cluster {
        Some(true) => REDIS_MODE.failed("cluster mode is on").hint(Health::cure_of_cluster()),
        Some(false) => REDIS_MODE.good("a single server"),
        None => REDIS_MODE.warning(unknown),
    };
    let role = match refuses {
        Some(why) => REDIS_ROLE.failed(why),
        None => REDIS_ROLE.good("takes writes, as far as it tells"),
    };
    let eviction = match eviction.as_deref() {
        None => REDIS_EVICTION.warning(unknown),
        Some("noeviction") => REDIS_EVICTION.good("noeviction"),
        Some(policy) if policy.starts_with("volatile") => REDIS_EVICTION
            .warning(format!("maxmemory-policy is {policy}: beats of members go first when it is full"))
            .hint(Health::cure_of_eviction()),
        Some(policy) => REDIS_EVICTION
            .failed(format!("maxmemory-policy is {policy}: records go when it is full"))
            .hint(Health::cure_of_eviction()),
    };
    let commands = if forbidden.is_empty() {
        REDIS_COMMANDS.good("the ACL lets all our commands through")
    } else {
        let names = forbidden.join(", ");
        REDIS_COMMANDS.failed(format!("the ACL forbids {names}")).hint(Health::cure_of_rights())
    };
    let latency = format!("a round trip takes {:.1} ms", round_trip.as_secs_f64() * 1_000.0);
    let latency = if *round_trip > ROUND_TRIP_SAID {
        REDIS_LATENCY.warning(latency).hint("members hear of each other late; look for what is between")
    } else {
        REDIS_LATENCY.good(latency)
    };
    vec![version, mode, role, eviction, commands, latency]
}
