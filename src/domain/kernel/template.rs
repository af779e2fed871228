//! A text with places for values: `{{ name }}`. The titles of pull requests and the bodies of webhooks are such texts.
//!
//! It computes nothing, so whoever writes one can name what there is and reach nothing else, and what comes out is as long as the text and
//! the values: a language with loops and joined strings has no such bound, and tenants write these. What is put in is never read again as
//! a template. Not for how a value is written where it goes; who fills it says that.

use std::fmt;

/// A text with places for values of `V`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template<V>(Vec<Piece<V>>);

/// A part of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Piece<V> {
    Text(String),
    Of(V),
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    Open,
    /// There is no value of this name.
    Unknown(String),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("{{ has no }} behind it"),
            Self::Unknown(name) => write!(f, "there is no value {name:?}"),
        }
    }
}

impl<V: Copy> Template<V> {
    /// Reads a text whose names are those that `named` knows.
    ///
    /// # Errors
    /// A place is not closed, or has another name.
    pub fn parse(text: &str, named: impl Fn(&str) -> Option<V>) -> Result<Self, Malformed> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, behind)) = after.split_once("}}") else { return Err(Malformed::Open) };
            let name = name.trim();
            let value = named(name).ok_or_else(|| Malformed::Unknown(name.to_owned()))?;
            pieces.extend((!before.is_empty()).then(|| Piece::Text(before.to_owned())));
            pieces.push(Piece::Of(value));
            rest = behind;
        }
        pieces.extend((!rest.is_empty()).then(|| Piece::Text(rest.to_owned())));
        Ok(Self(pieces))
    }

    /// Its parts, in order.
    pub fn pieces(&self) -> &[Piece<V>] {
        &self.0
    }

    /// The text with these values.
    pub fn filled(&self, of: impl Fn(V) -> String) -> String {
        let filled = |piece: &Piece<V>| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Of(value) => of(*value),
        };
        self.0.iter().map(filled).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Template<usize>, Malformed> {
        Template::parse(text, |name| ["one", "two"].iter().position(|known| *known == name))
    }

    #[test]
    fn a_value_stands_where_its_name_was_and_is_not_read_again() {
        let filled = |text: &str| read(text).map(|template| template.filled(|value| format!("{{{{ {value} }}}}")));
        assert_eq!(filled("a {{ one }}{{two}} } b"), Ok("a {{ 0 }}{{ 1 }} } b".to_owned()));
        assert_eq!(filled("{ }} {x}"), Ok("{ }} {x}".to_owned()), "braces alone are text");
    }

    #[test]
    fn a_name_that_is_none_and_a_place_without_an_end_are_refused() {
        assert_eq!(read("{{ one }} {{ three }}"), Err(Malformed::Unknown("three".to_owned())));
        assert_eq!(read("{{ one | upper }}"), Err(Malformed::Unknown("one | upper".to_owned())));
        assert_eq!(read("{{ one }} {{ two"), Err(Malformed::Open));
    }
}
