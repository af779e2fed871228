//! Distributions and distribution tenants: what CloudFront's listings tell of them, and why one serves a site.
//!
//! A distribution tenant is a domain's own part of a distribution that serves tenants only (CloudFront calls it *multi-tenant*). It is
//! purged by itself, under an id of its own, so here it stands beside the distributions as one more of them, and its id says what it is.
//! We always say *distribution tenant*: a tenant alone is whoever owns a namespace.
//!
//! Finding those that do is [`Index`]. Not for: purging them.

mod index;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::index::{Index, Matches};
use crate::names::host::Host;
use crate::parsed::parsed;
use crate::text;

/// Longest distribution id in characters. They have 13 or 14 today; this only keeps nonsense out.
const ID_CHARS_MAX: usize = 64;

/// How the id of a distribution tenant begins. No id of a distribution does: those are letters and digits.
const TENANT: &str = "dt_";

/// The id of what one purge is made on: a distribution, such as `E2QWRUHAPOMQZL`, or a distribution tenant, such as
/// `dt_2wjDZi3hD1ivOXf6rpZJOSNE1AB`. Ordered and serialised as its text, which says which it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DistributionId(Box<str>);

/// A text that cannot be the id of a distribution, or of a distribution tenant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a distribution id: those are 1 to {ID_CHARS_MAX} letters and digits, such as E2QWRUHAPOMQZL; those of distribution \
     tenants have {TENANT} before them"
)]
pub struct NotAnId(String);

/// The relevant fields of a distribution or a distribution tenant, from CloudFront's listings. Names are kept as received;
/// [`Index::new`] reads them, and one that cannot be read costs only itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Distribution {
    pub id: DistributionId,
    /// Its own domain name, `d111111abcdef8.cloudfront.net`; empty for a distribution tenant, which has none.
    pub domain_name: String,
    /// Its alternate domain names; of a distribution tenant, its active domains.
    pub aliases: Vec<String>,
    /// The domain names of its origins; none for a distribution tenant, which is found by its domains.
    pub origins: Vec<String>,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Whether it is the staging half of a continuous deployment.
    pub staging: bool,
    /// Whether it serves distribution tenants only (`ConnectionMode` is `tenant-only`).
    pub tenant_only: bool,
    /// Whether it may ask its origin for another path than it was asked for: it has an origin path, a function or a page for errors.
    #[serde(default)]
    pub rewrites: bool,
    /// Whether it is known to understand cache tags (it has a `CacheTagConfig`); a listing does not tell.
    pub cache_tags: bool,
}

impl Distribution {
    /// Whether requests reach its distribution tenants through it. A disabled one serves none of them.
    #[must_use]
    pub const fn serves_distribution_tenants(&self) -> bool {
        self.tenant_only && self.enabled
    }

    /// Why hosts are not matched with it, if they are not.
    #[must_use]
    pub fn unmatchable(&self) -> Option<&'static str> {
        if self.staging {
            Some("staging")
        } else if !self.enabled {
            Some("disabled")
        } else if self.tenant_only {
            Some("for distribution tenants only")
        } else {
            None
        }
    }
}

/// Why a distribution serves a site; [`fmt::Display`] says it in words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The host is one of its aliases.
    Alias(Host),
    /// The host is covered by one of its wildcard aliases.
    WildcardAlias {
        /// The host; a wildcard itself, perhaps.
        host: Host,
        /// The alias, as CloudFront writes it.
        alias: String,
    },
    /// The host is a wildcard and covers one of its aliases, or part of what a wildcard alias covers.
    AliasBeneath {
        host: Host,
        /// The alias, as CloudFront writes it.
        alias: String,
    },
    /// The host is its own domain name.
    OwnName(Host),
    /// The host is one of its origins.
    Origin(Host),
    /// The host is a wildcard and covers one of its origins.
    OriginBeneath {
        host: Host,
        /// The origin's domain name.
        origin: String,
    },
    /// The load balancer is one of its origins.
    LoadBalancer(String),
}

impl Reason {
    /// The host it is about; none for a load balancer.
    #[must_use]
    pub const fn host(&self) -> Option<&Host> {
        match self {
            Self::Alias(host)
            | Self::WildcardAlias { host, .. }
            | Self::AliasBeneath { host, .. }
            | Self::OwnName(host)
            | Self::Origin(host)
            | Self::OriginBeneath { host, .. } => Some(host),
            Self::LoadBalancer(_) => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alias(host) => write!(f, "alias {host}"),
            Self::WildcardAlias { host, alias } => write!(f, "alias {alias} covers host {host}"),
            Self::AliasBeneath { host, alias } => write!(f, "host {host} covers alias {alias}"),
            Self::OwnName(host) => write!(f, "own domain name {host}"),
            Self::Origin(host) => write!(f, "origin {host}"),
            Self::OriginBeneath { host, origin } => write!(f, "host {host} covers origin {origin}"),
            Self::LoadBalancer(origin) => write!(f, "origin {origin} is the load balancer"),
        }
    }
}

impl fmt::Display for DistributionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl DistributionId {
    /// Parses an id. Case matters and is kept.
    ///
    /// # Errors
    /// A text that is empty, too long, or has anything but ASCII letters and digits in it, after the beginning that makes it the id of a
    /// distribution tenant.
    pub fn parse(text: &str) -> Result<Self, NotAnId> {
        let text = text.trim();
        let bare = text.strip_prefix(TENANT).unwrap_or(text);
        if (1..=ID_CHARS_MAX).contains(&bare.len()) && bare.bytes().all(|b| b.is_ascii_alphanumeric()) {
            Ok(Self(text.into()))
        } else {
            Err(NotAnId(text::first(text, ID_CHARS_MAX).to_owned()))
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is that of a distribution tenant. CloudFront has operations of their own for those.
    #[must_use]
    pub fn is_of_distribution_tenant(&self) -> bool {
        self.0.starts_with(TENANT)
    }

    /// The id, for people: that of a distribution tenant with these words before it.
    #[must_use]
    pub fn words(&self) -> String {
        if self.is_of_distribution_tenant() { format!("distribution tenant {self}") } else { self.to_string() }
    }
}

parsed!(DistributionId, NotAnId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_letters_and_digits_only() {
        assert_eq!(DistributionId::parse(" E2QWRUHAPOMQZL ").unwrap().as_str(), "E2QWRUHAPOMQZL");
        for text in ["", "E1/invalidation", "E1,E2", &"E".repeat(65)] {
            assert!(DistributionId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_id_of_a_distribution_tenant_says_so() {
        let [distribution, tenant] = ["E2QWRUHAPOMQZL", "dt_2wjDZi3hD1ivOXf6rpZJOSNE1AB"].map(|id| id.parse().unwrap());
        let kinds = |id: &DistributionId| (id.is_of_distribution_tenant(), id.words());
        assert_eq!(kinds(&distribution), (false, "E2QWRUHAPOMQZL".to_owned()));
        assert_eq!(kinds(&tenant), (true, "distribution tenant dt_2wjDZi3hD1ivOXf6rpZJOSNE1AB".to_owned()));
        assert!(!DistributionId::parse("dt2wj").unwrap().is_of_distribution_tenant(), "letters and digits alone");
        for text in ["dt_", "dt_a_b", "dt_dt_a", "DT_a", "xt_a", "dt_a/b", &format!("dt_{}", "a".repeat(65))] {
            assert!(DistributionId::parse(text).is_err(), "{text}");
        }
    }
}
