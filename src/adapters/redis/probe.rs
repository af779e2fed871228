//! What a Redis can tell of whether it serves us: who it is, and which of our commands its ACL lets through.
//!
//! Commands are tried in forms that change nothing, on a key of their own that is not there; the two that have no such form make
//! it and delete it in the same request. Redis judges rights before anything else of a command, so what it says beside `NOPERM` does not matter.
//! <https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/>
//!
//! Not for what follows from it.

use std::time::Duration;

use ::redis::aio::ConnectionManager;
use ::redis::{ErrorKind, RedisResult, ServerErrorKind, Value, cmd, pipe};
use tokio::time::Instant;

use super::board::role;
use super::{Server, advice};
use purge::ports::PortError;

/// Round trips that are timed; the shortest counts, since the first ones find caches cold.
const ROUNDS: usize = 3;

/// How a server is, as far as it tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Its version; `None` where `INFO` is forbidden, as with all that follows but the commands.
    pub version: Option<String>,
    /// Why it takes no writes, in the words of the refusal that a write would get.
    pub refuses: Option<String>,
    /// What it does when it is full: `noeviction`, `allkeys-lru`.
    pub eviction: Option<String>,
    /// It is a node of a Redis Cluster.
    pub cluster: Option<bool>,
    /// The commands that its ACL does not let through, of those that we send; with what to do about it.
    pub forbidden: Vec<&'static str>,
    /// The shortest of a few round trips.
    pub round_trip: Duration,
}

impl Health {
    /// What to do where commands are forbidden.
    pub fn cure_of_rights() -> &'static str {
        advice("NOPERM")
    }

    /// What to do about a cluster.
    pub fn cure_of_cluster() -> &'static str {
        advice("MOVED")
    }

    /// What to do about eviction.
    pub fn cure_of_eviction() -> &'static str {
        advice("OOM")
    }
}

/// The commands of the board, in forms that change nothing; `KEY` and `CHANNEL` are ours. HSET and SADD have no such
/// form: each is followed by the deletion of what it made, and by an expiry, for a server that forbids to delete.
const COMMANDS: [&[&str]; 28] = [
    &["GET", "KEY"],
    &["EXISTS", "KEY"],
    &["PERSIST", "KEY"],
    &["STRLEN", "KEY"],
    &["HMGET", "KEY", "f"],
    &["HDEL", "KEY", "f"],
    &["HSTRLEN", "KEY", "f"],
    &["SREM", "KEY", "m"],
    &["SRANDMEMBER", "KEY"],
    &["ZADD", "KEY", "XX", "1", "m"],
    &["ZREM", "KEY", "m"],
    &["ZSCORE", "KEY", "m"],
    &["ZRANGE", "KEY", "0", "0"],
    &["ZRANGEBYSCORE", "KEY", "0", "0"],
    &["ZREVRANGEBYSCORE", "KEY", "0", "0"],
    &["SET", "KEY", "v", "XX"],
    &["PUBLISH", "CHANNEL", ""],
    &["SCRIPT", "LOAD", "return 1"],
    &["EVALSHA", "0000000000000000000000000000000000000000", "0"],
    &["INFO", "server"],
    &["PING"],
    &["HSET", "KEY", "f", "v"],
    &["EXPIRE", "KEY", "1"],
    &["DEL", "KEY"],
    &["SADD", "KEY", "m"],
    &["EXPIRE", "KEY", "1"],
    &["DEL", "KEY"],
    &["EXISTS", "KEY"],
];

impl Server {
    /// Whether it answers at all, and lets us in.
    ///
    /// # Errors
    /// As [`Self::call`] does.
    pub async fn reach(&self) -> Result<(), PortError> {
        self.call("reach it", |mut redis| async move { cmd("PING").query_async::<()>(&mut redis).await }).await
    }

    /// How it is. `prefix`: how our keys begin.
    ///
    /// # Errors
    /// When it does not answer; a refusal is an answer.
    pub async fn health(&self, prefix: &str) -> Result<Health, PortError> {
        let nonce = getrandom::u64().unwrap_or_default();
        let (key, channel) = (format!("{prefix}check:{nonce:016x}"), format!("{prefix}check"));
        let info = self.call("learn how it is", info).await?;
        let forbidden = self.call("try our commands", |redis| forbidden(redis, key, channel)).await?;
        let mut round_trip = Duration::MAX;
        for _ in 0..ROUNDS {
            let from = Instant::now();
            self.reach().await?;
            round_trip = round_trip.min(from.elapsed());
        }
        let field = |name: &str| {
            let mut lines = info.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            lines.next().map(|value| value.trim().to_owned())
        };
        Ok(Health {
            version: field("redis_version"),
            refuses: role::refusal(&info),
            eviction: field("maxmemory_policy"),
            cluster: field("cluster_enabled").map(|enabled| enabled == "1"),
            forbidden,
            round_trip,
        })
    }
}

/// All that `INFO` tells; what is forbidden, or renamed away, is left out.
async fn info(mut redis: ConnectionManager) -> RedisResult<String> {
    let mut asked = pipe();
    for section in ["server", "replication", "memory", "cluster"] {
        asked.cmd("INFO").arg(section);
    }
    let told: Vec<RedisResult<String>> = asked.ignore_errors().query_async(&mut redis).await?;
    Ok(told.into_iter().flatten().collect())
}

/// The commands that are not let through. All go in one request, so a server far away costs one round trip.
async fn forbidden(mut redis: ConnectionManager, key: String, channel: String) -> RedisResult<Vec<&'static str>> {
    let mut asked = pipe();
    for words in COMMANDS {
        let [name, arguments @ ..] = words else { continue };
        asked.cmd(name);
        for argument in arguments {
            asked.arg(match *argument {
                "KEY" => key.as_str(),
                "CHANNEL" => channel.as_str(),
                other => other,
            });
        }
    }
    let answers: Vec<RedisResult<Value>> = asked.ignore_errors().query_async(&mut redis).await?;
    let is_forbidden = |answer: &RedisResult<Value>| {
        answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm))
    };
    let names = COMMANDS.iter().zip(&answers).filter(|(_, answer)| is_forbidden(answer));
    let mut names: Vec<&'static str> = names.filter_map(|(words, _)| words.first().copied()).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}
