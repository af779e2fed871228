//! Our records, published in Redis in every mode: the tag cache of the old program, readable by people and members
//! (decision 3).
//!
//! ```text
//! $ redis-cli hgetall allclear:{default}:rec:eu-1:deployment/shop/web
//! version  web registry.example.com/shop/web:1.2    the images, container by container, for people and scripts
//! phase    complete                                 rolling, complete, failed or withdrawn
//! org seq rev                                       which ledger's record, which rollout, which state of it
//! body     {"r":7,…}                                the record itself, for programs
//! ```
//!
//! `allclear:{default}:stamp:eu-1` counts the changes made here. Redis loses its newest changes first, in a crash as in a
//! failover, so a count below the one it has answered tells that records are lost as well.
//!
//! It is a copy and nothing else: it may be lost, stale or wiped, and no decision about our own workloads reads it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ::redis::{AsyncCommands, Script};
use async_trait::async_trait;

use super::Server;
use crate::domain::id::{Member, Origin, Seq, WorkloadId};
use crate::domain::record::Record;
use crate::domain::record_codec::encode;
use crate::ports::{PortError, TagCache};

/// Whether the record of `seq` and `rev` is newer than the one that is there. For both scripts.
///
/// The seq comes first: a workload that is created again counts its revisions from 1, and its seq goes on (GA-2).
/// Numbers are compared as decimal strings, length first: Lua's own are exact to 2^53 only.
const NEWER: &str = r"
local function above(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end
local function newer(seq, rev, than_seq, than_rev)
  if seq ~= than_seq then return above(seq, than_seq) end
  return above(rev, than_rev)
end
local org, seq, rev = unpack(redis.call('HMGET', KEYS[1], 'org', 'seq', 'rev'))
seq, rev = seq or '0', rev or '0'
";

/// Stores a record if it is newer than what is there, so that late writes of a paused client change nothing. Another origin
/// is replaced only by whoever names the one that is there. Answers with the origin in the way, if any, and the stamp of
/// what was written, or 0.
const MERGE: &str = r"
if org and org ~= ARGV[1] and org ~= ARGV[2] then return {org, 0} end
if org == ARGV[1] and not newer(ARGV[3], ARGV[4], seq, rev) then return {'', 0} end
redis.call('HSET', KEYS[1], 'org', ARGV[1], 'seq', ARGV[3], 'rev', ARGV[4],
  'version', ARGV[5], 'phase', ARGV[6], 'body', ARGV[7])
redis.call('HDEL', KEYS[1], 'mac')
return {'', redis.call('INCR', KEYS[2])}
";

/// Deletes a record of ours unless it is newer than the one that was removed. Answers with the stamp, or 0.
const FORGET: &str = r"
if org ~= ARGV[1] or newer(seq, rev, ARGV[2], ARGV[3]) then return 0 end
redis.call('DEL', KEYS[1])
return redis.call('INCR', KEYS[2])
";

/// The published records of one member of a group.
#[derive(Debug)]
pub struct RedisTagCache {
    server: Server,
    prefix: String,
    stamp: String,
    merge: Script,
    forget: Script,
    /// The newest stamp the server has answered.
    newest: AtomicU64,
    /// It has answered with one that was not newer than the one before.
    fell_back: AtomicBool,
}

impl RedisTagCache {
    /// The copies of `member`'s records in `server`. The braces keep the keys of a group in one slot.
    pub fn new(server: Server, group: &str, member: &Member) -> Self {
        Self {
            server,
            prefix: format!("allclear:{{{group}}}:rec:{member}"),
            stamp: format!("allclear:{{{group}}}:stamp:{member}"),
            merge: Script::new(&format!("{NEWER}{MERGE}")),
            forget: Script::new(&format!("{NEWER}{FORGET}")),
            newest: AtomicU64::new(0),
            fell_back: AtomicBool::new(false),
        }
    }

    fn key(&self, workload: &WorkloadId) -> String {
        format!("{}:{workload}", self.prefix)
    }

    /// Returns the origin that is in the way, or nothing.
    async fn merge(
        &self,
        key: &str,
        org: &Origin,
        record: &Record,
        body: &str,
        over: &str,
    ) -> Result<String, PortError> {
        let mut script = self.merge.prepare_invoke();
        script.key(key).key(&self.stamp).arg(&org.0).arg(over);
        script.arg(record.seq.to_string()).arg(record.revision.to_string());
        script.arg(record.version.to_string()).arg(record.phase.name()).arg(body);
        let (in_the_way, stamp): (String, u64) = self
            .server
            .call(&format!("publish {key}"), |mut redis| async move { script.invoke_async(&mut redis).await })
            .await?;
        self.note(stamp);
        Ok(in_the_way)
    }

    fn note(&self, stamp: u64) {
        if stamp != 0 && stamp <= self.newest.swap(stamp, Ordering::Relaxed) {
            self.fell_back.store(true, Ordering::Relaxed);
        }
    }
}

#[async_trait]
impl TagCache for RedisTagCache {
    /// `origin` is our own ledger's, which is by definition the current one, so a record of an earlier ledger gives way.
    async fn show(&self, workload: &WorkloadId, origin: &Origin, record: &Record) -> Result<(), PortError> {
        let key = self.key(workload);
        let body =
            encode(record).map_err(|error| PortError::lasting(format!("failed to publish {workload}"), error))?;
        let there = self.merge(&key, origin, record, &body, "").await?;
        if !there.is_empty() {
            // Another origin: replaced by compare-and-set, once. If it changes again meanwhile, another process of ours
            // is publishing as well, and the next change settles it.
            self.merge(&key, origin, record, &body, &there).await?;
        }
        Ok(())
    }

    async fn forget(&self, workload: &WorkloadId, origin: &Origin, seq: Seq, revision: u64) -> Result<(), PortError> {
        let key = self.key(workload);
        let mut script = self.forget.prepare_invoke();
        script.key(&key).key(&self.stamp).arg(&origin.0).arg(seq.to_string()).arg(revision.to_string());
        let stamp = self
            .server
            .call(&format!("forget {key}"), |mut redis| async move { script.invoke_async(&mut redis).await })
            .await?;
        self.note(stamp);
        Ok(())
    }

    async fn is_intact(&self) -> Result<bool, PortError> {
        let read = |mut redis: ::redis::aio::ConnectionManager| async move { redis.get(&self.stamp).await };
        let there: Option<u64> = self.server.call(&format!("read {}", self.stamp), read).await?;
        let there = there.unwrap_or_default();
        let lost = there < self.newest.swap(there, Ordering::Relaxed);
        Ok(!(self.fell_back.swap(false, Ordering::Relaxed) || lost))
    }
}
