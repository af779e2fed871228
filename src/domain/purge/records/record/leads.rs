//! What led to a workload when it was last looked at, so that traffic that moves is seen after a restart too; and the last move that
//! it was purged for.
//!
//! Not for the hosts of a vote, nor for the last site in words (`last_site`): these are hashes, and only ever compared.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use kernel::text::{cut, fingerprint};

/// Hosts that are remembered of one workload: those with the smallest hashes, so that always the same ones of many are. A site that moves
/// as a whole is seen by any of them.
pub const LEADS_MAX: usize = 32;

/// Bytes of the words about a move; a record has them until the next one.
const MOVED_BYTES_MAX: usize = 256;

/// A host, or a load balancer, that leads to a workload: 32 bits of a hash of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lead(u32);

impl Lead {
    /// Of this name. As many bits as fit are the hash's first.
    pub fn of(name: &str) -> Self {
        Self(u32::try_from(fingerprint(name) >> 32).unwrap_or_default())
    }
}

impl fmt::Display for Lead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// What leads to a workload, in order. Written as hexadecimal digits, eight for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Leads(Box<[Lead]>);

impl FromIterator<Lead> for Leads {
    fn from_iter<I: IntoIterator<Item = Lead>>(leads: I) -> Self {
        let mut leads: Vec<Lead> = leads.into_iter().collect();
        leads.sort_unstable();
        leads.dedup();
        leads.truncate(LEADS_MAX);
        Self(leads.into())
    }
}

impl Leads {
    pub fn iter(&self) -> impl Iterator<Item = Lead> {
        self.0.iter().copied()
    }

    pub fn contains(&self, lead: Lead) -> bool {
        self.0.binary_search(&lead).is_ok()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Leads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|lead| write!(f, "{lead}"))
    }
}

impl Serialize for Leads {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Leads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let lead = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits).map_err(de::Error::custom)?;
            u32::from_str_radix(digits, 16).map(Lead).map_err(de::Error::custom)
        };
        text.as_bytes().chunks(8).map(lead).collect()
    }
}

/// A move of traffic to this workload that it was, or is to be, purged for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Moved {
    /// Which move: the same one has the same in every life of the program.
    #[serde(rename = "k")]
    pub token: String,
    /// From where to where, and by which hosts, for people.
    #[serde(rename = "w")]
    pub words: String,
}

impl Moved {
    /// Whether it is this move; where it was seen from, it may have other words.
    pub fn is(&self, other: &Self) -> bool {
        self.token == other.token
    }

    /// The move with this identity; `identity` names all of it that counts.
    pub fn new(identity: &str, words: &str) -> Self {
        Self { token: format!("{:016x}", fingerprint(identity)), words: cut(words, MOVED_BYTES_MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(names: &[&str]) -> Leads {
        names.iter().map(|name| Lead::of(name)).collect()
    }

    #[test]
    fn they_are_read_as_they_were_written_and_the_order_of_names_does_not_matter() {
        let all = leads(&["www.example.com", "example.com"]);
        assert_eq!(all, leads(&["example.com", "www.example.com", "example.com"]));
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(text.len(), 18, "{text}");
        assert_eq!(serde_json::from_str::<Leads>(&text).unwrap(), all);
        assert!(serde_json::from_str::<Leads>("\"xyz\"").is_err());
        assert!(all.contains(Lead::of("example.com")) && !all.contains(Lead::of("a.example.com")));
    }

    #[test]
    fn of_many_the_same_ones_are_kept_whatever_else_comes() {
        let name = |number: usize| format!("{number}.example.com");
        let many: Vec<String> = (0..1000).map(name).collect();
        let of = |names: &[String]| names.iter().map(|name| Lead::of(name)).collect::<Leads>();
        let (all, most) = (of(&many), of(many.get(1..).unwrap_or_default()));
        assert_eq!(all.iter().count(), LEADS_MAX);
        assert!(all.iter().filter(|lead| !most.contains(*lead)).count() <= 1);
    }
}
