//! Our records, published in Redis in every mode: the tag cache of the old program, readable by people and members
//! (decision 3). Layout: ARCHITECTURE.md, *Redis layout*.
//!
//! It is a copy and nothing else: it may be lost, stale or wiped, and no decision about our own workloads reads it.

use ::redis::Script;
use async_trait::async_trait;

use super::Server;
use crate::domain::id::{Member, Origin, WorkloadId};
use crate::domain::record::Record;
use crate::domain::record_codec::encode;
use crate::ports::{PortError, TagCache};

/// Stores a record if it is newer than what is there, so that late writes of a paused client change nothing.
///
/// Revisions are compared as decimal strings, length first: Lua's numbers are exact to 2^53 only. Another origin is
/// replaced only by whoever names the one that is there.
const MERGE: &str = r"
local function newer(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end
local org, rev = unpack(redis.call('HMGET', KEYS[1], 'org', 'rev'))
if org and org ~= ARGV[1] and org ~= ARGV[4] then return org end
if org == ARGV[1] and rev and not newer(ARGV[2], rev) then return '' end
redis.call('HSET', KEYS[1], 'org', ARGV[1], 'rev', ARGV[2], 'body', ARGV[3])
redis.call('HDEL', KEYS[1], 'mac')
return ''
";

/// The published records of one member of a group.
#[derive(Debug)]
pub struct RedisTagCache {
    server: Server,
    prefix: String,
    merge: Script,
}

impl RedisTagCache {
    /// The copies of `member`'s records in `server`. The braces keep the keys of a group in one slot.
    pub fn new(server: Server, group: &str, member: &Member) -> Self {
        Self { server, prefix: format!("allclear:{{{group}}}:rec:{member}"), merge: Script::new(MERGE) }
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
        script.key(key).arg(&org.0).arg(record.revision.to_string()).arg(body).arg(over);
        self.server
            .call(&format!("publish {key}"), |mut redis| async move { script.invoke_async(&mut redis).await })
            .await
    }
}

#[async_trait]
impl TagCache for RedisTagCache {
    /// `origin` is our own ledger's, which is by definition the current one, so a record of an earlier ledger gives way.
    async fn show(&self, workload: &WorkloadId, origin: &Origin, record: &Record) -> Result<(), PortError> {
        let key = format!("{}:{workload}", self.prefix);
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
}
