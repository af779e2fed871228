//! Lists inside an object: no more of their elements are decoded than are ever used: an object of a few megabytes may hold a
//! million of them (T2).

use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::domain::site::OBJECT_NAMES_MAX;

/// The first elements of a list, which may be null.
#[derive(Debug)]
pub(super) struct Few<T> {
    /// [`OBJECT_NAMES_MAX`] of them at most.
    pub items: Vec<T>,
    /// How many more there were.
    pub unread: usize,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { items: Vec::new(), unread: 0 }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(First(PhantomData))
    }
}

struct First<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for First<T> {
    type Value = Few<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Few::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut few = Few::default();
        while few.items.len() < OBJECT_NAMES_MAX {
            match list.next_element()? {
                Some(item) => few.items.push(item),
                None => return Ok(few),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            few.unread += 1;
        }
        Ok(few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_decoded_and_the_others_counted() {
        let many = vec!["a"; OBJECT_NAMES_MAX + 3];
        let few: Few<String> = serde_json::from_str(&serde_json::to_string(&many).unwrap()).unwrap();
        assert_eq!((few.items.len(), few.unread), (OBJECT_NAMES_MAX, 3));
        let none: Few<String> = serde_json::from_str("null").unwrap();
        assert_eq!((none.items.len(), none.unread), (0, 0));
    }
}
