//! The name that the operator gives to an AWS account. Not its number: it is a word in logs, metrics and on pages.

use std::fmt;

use crate::parsed::parsed;
use crate::text;

/// Longest name in characters: a label of DNS, as names of Kubernetes are.
const CHARS_MAX: usize = 63;

/// The name of the account that the pod's own credentials are of.
const DEFAULT: &str = "default";

/// The name of an account. Ordered and serialised as its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountName(Box<str>);

/// A text that cannot be the name of an account.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the name of an account: those are 1 to {CHARS_MAX} small letters, digits and hyphens, such as shop"
)]
pub struct NotAName(String);

impl AccountName {
    /// # Errors
    /// A text that is empty, too long, or has anything but small letters, digits and hyphens in it.
    pub fn parse(text: &str) -> Result<Self, NotAName> {
        let is_of_a_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=CHARS_MAX).contains(&text.len()) && text.bytes().all(is_of_a_name);
        let hangs = text.starts_with('-') || text.ends_with('-');
        if is_name && !hangs { Ok(Self(text.into())) } else { Err(NotAName(text::first(text, CHARS_MAX).to_owned())) }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is that of the pod's own credentials.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The account that the pod's own credentials are of.
impl Default for AccountName {
    fn default() -> Self {
        Self(DEFAULT.into())
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

parsed!(AccountName, NotAName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_label() {
        for good in ["shop", "team-7", "default", &"a".repeat(63)] {
            assert_eq!(AccountName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "Shop", "a b", "-a", "a-", "a/b", &"a".repeat(64)] {
            assert!(AccountName::parse(bad).is_err(), "{bad}");
        }
    }
}
