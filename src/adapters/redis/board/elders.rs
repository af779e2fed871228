//! The group called `default`, which is looked for where our group's name was derived from its namespaces (decision 56).

use ::redis::aio::ConnectionManager;
use ::redis::{cmd, pipe};

use super::RedisBoard;
use super::copy::CopyCodec;
use crate::config::Secret;
use kernel::id::{Member, is_key_part};
use purge::agreement::roster::Heartbeat;
use purge::ports::PortError;

/// The group of those that give it no name.
const DEFAULT: &str = "default";

/// Members of that group that are looked at: as many as a group can have.
const ELDERS_MAX: usize = 32;

/// What all keys of a group begin with. The braces keep them in one slot.
pub(super) fn prefix(group: &str) -> String {
    format!("allclear:{{{group}}}:")
}

impl RedisBoard {
    /// The same, which looks at the beats of the group called `default` with every read.
    #[must_use]
    pub fn beside_default(mut self, keys: impl IntoIterator<Item = Secret<Vec<u8>>>) -> Self {
        self.elders = Some((prefix(DEFAULT), CopyCodec::new(DEFAULT, keys)));
        self
    }

    /// The beats of the group called `default`; `None` where that group is not looked for.
    pub(super) async fn elders(&self) -> Result<Option<Vec<Heartbeat>>, PortError> {
        let Some((prefix, codec)) = &self.elders else { return Ok(None) };
        let members = format!("{prefix}members");
        let look = |mut redis: ConnectionManager| async move {
            let names: Vec<String> = cmd("SRANDMEMBER").arg(members).arg(ELDERS_MAX).query_async(&mut redis).await?;
            let names: Vec<String> = names.into_iter().filter(|name| is_key_part(name)).collect();
            let mut beats = pipe();
            for name in &names {
                beats.cmd("GET").arg(format!("{prefix}hb:{name}"));
            }
            let beats: Vec<Option<Vec<u8>>> =
                if names.is_empty() { Vec::new() } else { beats.query_async(&mut redis).await? };
            Ok(names.into_iter().zip(beats).collect::<Vec<_>>())
        };
        let found = self.server.call("look for a group called default", look).await?;
        let beat = |(name, text): (String, Option<Vec<u8>>)| {
            // One that is not believed is there all the same: its key may be another one, and what it watches is not known.
            let (text, member) = (text?, Member(name));
            let unknown = Heartbeat { member: member.clone(), ..Heartbeat::default() };
            Some(codec.beat(&member, &text).unwrap_or(unknown))
        };
        Ok(Some(found.into_iter().filter_map(beat).collect()))
    }
}
