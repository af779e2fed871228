//! The lock of a Terraform state that is in the way of a step: what the tool said of it, and the words.
//!
//! Not for how it is found in a log, which is the adapter's, nor for who holds it (`holder`).

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::form::{schema_as, text};

/// Longest value that is kept, in bytes: an id has 36, and a holder is `user@host`.
const VALUE_BYTES_MAX: usize = 64;

/// `2026-11-26 05:00:01` of a time as Go prints it, with `0` for each digit.
const TIME: &str = "0000-00-00 00:00:00";

/// The id of a lock: one word of a command there, and no flag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(String);

/// A lock that another program holds. What is not plain is as if it had not been named: a log may hold anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    id: Option<LockId>,
    /// `user@host`; in a pod the host is the pod's name.
    who: Option<String>,
    /// UTC, in the form of [`TIME`].
    since: Option<String>,
}

/// The holder, as far as it is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// A pod of this Job, which is there and has not ended.
    Runs(String),
    /// A pod of this Job, which is there and has ended.
    Ended(String),
    /// A pod of this Job of the Repo, which is not there any more.
    Gone(String),
    /// Nothing says that it is one of ours.
    Other,
}

impl Lock {
    pub fn new(id: Option<&str>, who: Option<&str>, since: Option<&str>) -> Self {
        let since = since.and_then(|since| since.get(..TIME.len())).filter(|since| is_time(since));
        Self {
            id: id.and_then(LockId::new),
            who: who.filter(|who| is_plain(who)).map(str::to_owned),
            since: since.map(str::to_owned),
        }
    }

    pub(super) const fn id(&self) -> Option<&LockId> {
        self.id.as_ref()
    }

    pub(super) fn who(&self) -> Option<&str> {
        self.who.as_deref()
    }

    /// Since when, in milliseconds since the Unix epoch.
    pub(super) fn since_ms(&self) -> Option<i64> {
        let since: Timestamp = format!("{}Z", self.since.as_deref()?).parse().ok()?;
        Some(since.as_millisecond())
    }

    /// The name of the Job whose pod holds it, if the holder is a pod of a Job: its pods are named after it, with five more characters.
    pub(super) fn job(&self) -> Option<&str> {
        let (_, host) = self.who.as_deref()?.rsplit_once('@')?;
        host.rsplit_once('-').map(|(job, _)| job)
    }

    /// Who holds it, since when, and the cure. A holder that runs is waited for, and no command is named that takes its lock away.
    /// `asked`: the command that answers the question about it, where it is one.
    pub(super) fn words(&self, holder: &Holder, asked: Option<&str>) -> String {
        let wait = "runner.lockTimeout waits for it";
        let Some(id) = &self.id else {
            return format!("another program holds the lock of the state, and the log names it; {wait}");
        };
        let who = self.who.as_deref().unwrap_or("an unnamed program");
        let since = self.since.as_deref().unwrap_or("an unknown time");
        let held = format!("{who} holds lock {id} of the state since {since} UTC");
        let cure = asked.map_or_else(|| format!("terraform force-unlock {id}"), str::to_owned);
        let cure = format!("{wait}; if nothing runs there any more: {cure}");
        match holder {
            Holder::Runs(job) => format!("{held}: a pod of Job {job}, which has not ended; {wait}"),
            Holder::Ended(job) => format!("{held}: a pod of Job {job}, which has ended; {cure}"),
            Holder::Gone(job) => format!("{held}: a pod of Job {job} of this Repo, which is gone; {cure}"),
            Holder::Other => format!("{held}; {cure}"),
        }
    }
}

impl LockId {
    pub fn new(id: &str) -> Option<Self> {
        is_id(id).then(|| Self(id.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for LockId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for LockId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, |id| Self::new(id).ok_or_else(|| format!("{id:?} is no id of a lock")))
    }
}

schema_as!(LockId, String);

fn is_plain(value: &str) -> bool {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "-_.:/@\\+ ".contains(one);
    !value.is_empty() && value.len() <= VALUE_BYTES_MAX && value.chars().all(is_plain)
}

/// A person copies it into a command: it is one word there, and no flag.
fn is_id(value: &str) -> bool {
    let is_word = |one: char| one.is_ascii_alphanumeric() || "-_.:/".contains(one);
    is_plain(value) && !value.starts_with('-') && value.chars().all(is_word)
}

fn is_time(value: &str) -> bool {
    let shape = |one: char| if one.is_ascii_digit() { '0' } else { one };
    value.chars().map(shape).eq(TIME.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "5d9a5d1e-0d3f-4a3c-9f56-1a5f0c1e7d33";

    fn lock(id: &str) -> Lock {
        Lock::new(Some(id), Some("root@infra-0123456789ab-x7k2p"), Some("2026-11-26 05:00:01.123456789 +0000 UTC"))
    }

    #[test]
    fn a_lock_is_named_by_its_id_its_holder_and_its_time_with_the_cure() {
        assert_eq!(
            lock(ID).words(&Holder::Other, None),
            "root@infra-0123456789ab-x7k2p holds lock 5d9a5d1e-0d3f-4a3c-9f56-1a5f0c1e7d33 of the state since 2026-11-26 05:00:01 UTC; \
             runner.lockTimeout waits for it; if nothing runs there any more: terraform force-unlock 5d9a5d1e-0d3f-4a3c-9f56-1a5f0c1e7d33"
        );
        assert!(Lock::new(None, Some("me@host"), None).words(&Holder::Other, None).contains("the log names it"));
        let bare = Lock::new(Some("1711111111111111"), None, None).words(&Holder::Other, None);
        assert!(
            bare.starts_with("an unnamed program holds lock 1711111111111111 of the state since an unknown time"),
            "{bare}"
        );
    }

    #[test]
    fn no_command_takes_the_lock_of_a_holder_away_that_has_not_ended() {
        let runs = lock(ID).words(&Holder::Runs("infra-1".to_owned()), None);
        assert!(runs.contains("a pod of Job infra-1, which has not ended; runner.lockTimeout"), "{runs}");
        assert!(!runs.contains("force-unlock"), "{runs}");
        for holder in [Holder::Ended("infra-1".to_owned()), Holder::Gone("infra-1".to_owned())] {
            assert!(lock(ID).words(&holder, None).contains("force-unlock"), "{holder:?}");
        }
    }

    #[test]
    fn an_id_is_one_word_of_a_command_and_no_flag() {
        for id in [ID, "1711111111111111", "bucket/key:1.2_3"] {
            assert_eq!(lock(id).id.as_ref().map(LockId::as_str), Some(id));
        }
        let long = "a".repeat(65);
        for id in ["", "-lock=false", "a b", "$(rm -rf /)", "a;b", "a\\b", "é", long.as_str()] {
            assert_eq!(lock(id).id, None, "{id}");
        }
    }

    #[test]
    fn a_holder_and_a_time_that_are_not_plain_are_not_kept() {
        for who in ["", "me`id`@host", "me\n@host", &"a".repeat(65)] {
            assert_eq!(Lock::new(Some(ID), Some(who), None).who, None, "{who}");
        }
        for since in ["", "yesterday", "2026-11-26", "2026-11-26T05:00:01.1", "token=hunter2 and more"] {
            assert_eq!(Lock::new(Some(ID), None, Some(since)).since, None, "{since}");
        }
    }
}
