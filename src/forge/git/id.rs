//! What git names its objects by.

use std::fmt;
use std::str::FromStr;

/// The SHA-1 of an object. Written as 40 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid([u8; Self::BYTES]);

/// What is no object id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not 40 hex digits")]
pub struct NotAnId;

impl Oid {
    /// Bytes of an id, as trees and packs hold it.
    pub const BYTES: usize = 20;
    /// In git's protocol: no object.
    pub const ZERO: Self = Self([0; Self::BYTES]);

    /// The id that these bytes are.
    pub const fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl FromStr for Oid {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let digits = text.as_bytes().as_chunks::<2>();
        let mut bytes = [0; Self::BYTES];
        if digits.0.len() != bytes.len() || !digits.1.is_empty() {
            return Err(NotAnId);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.0) {
            let [high, low] =
                pair.map(|digit| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok()));
            *byte = high.zip(low).map(|(high, low)| high << 4 | low).ok_or(NotAnId)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_nothing_else_is_one() {
        let text = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(text.parse::<Oid>().map(|id| id.to_string()), Ok(text.to_owned()));
        for wrong in ["", "0123", &text[1..], &format!("{text}0"), &text.replace('f', "g"), &text.replace("01", "é")] {
            assert_eq!(wrong.parse::<Oid>(), Err(NotAnId), "{wrong}");
        }
    }
}
