//! Our records, published in Redis in every mode: the tag cache of the old program, readable by people and members
//! (decision 3). Layout: `group-protocol.md`, *Redis layout*.
//!
//! It is a copy and nothing else: it may be lost, stale or wiped, and no decision about our own workloads reads it.

use ::redis::Script;
use async_trait::async_trait;

use super::Server;
use crate::domain::id::{Member, Origin, WorkloadId};
use crate::domain::record::Record;
use crate::domain::record_codec::encode;
use crate::ports::{self, PortError};

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

/// The published records of one member.
#[derive(Debug)]
pub struct TagCache {
    server: Server,
    merge: Script,
}

impl TagCache {
    /// The copies in `server`.
    pub fn new(server: Server) -> Self {
        Self { server, merge: Script::new(MERGE) }
    }

    /// Publishes a record unless a newer one is there. `origin` is our own ledger's, which is by definition the current
    /// one, so a record of an earlier ledger gives way.
    ///
    /// # Errors
    /// When Redis cannot be written; for the caller that is a warning, nothing waits for it.
    pub async fn publish(
        &self,
        group: &str,
        member: &Member,
        workload: &WorkloadId,
        origin: &Origin,
        record: &Record,
    ) -> Result<(), PortError> {
        let key = format!("allclear:{{{group}}}:rec:{member}:{workload}");
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

/// The copies of one member of one group, as the port wants them.
#[derive(Debug)]
pub struct MemberTags {
    /// Where they are.
    pub cache: TagCache,
    /// The group.
    pub group: String,
    /// The member.
    pub member: Member,
}

#[async_trait]
impl ports::TagCache for MemberTags {
    async fn show(&self, workload: &WorkloadId, origin: &Origin, record: &Record) -> Result<(), PortError> {
        self.cache.publish(&self.group, &self.member, workload, origin, record).await
    }
}
