//! Why something that others wrote cannot be read: an object of a cluster, a copy on a board, a stored text.
//!
//! Not for which thing it is, nor for what follows: its reader says both.

use std::fmt;

use crate::text::cut;

/// Most bytes of a parser's words: it repeats what it has found.
pub const WORDS_BYTES_MAX: usize = 256;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unreadable {
    /// Its fields may be anything.
    #[error("it is not valid UTF-8")]
    NotUtf8,
    /// It does not fit into the room that there is for one.
    #[error("it is too large to be read")]
    TooLarge,
    /// A field has another type than its kind gives it.
    #[error("{at} is not {wanted}")]
    Mistyped { at: String, wanted: &'static str },
    /// In words; made by [`Unreadable::because`].
    #[error("{0}")]
    Invalid(String),
}

impl Unreadable {
    /// For this reason, cut.
    pub fn because(why: impl fmt::Display) -> Self {
        Self::Invalid(cut(&why.to_string(), WORDS_BYTES_MAX))
    }
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        Self::because(error)
    }
}
