//! Parts that objects of several kinds have: annotations, conditions, and lists. A list is decoded only as far as it is used,
//! because an object of a few megabytes may hold a million elements (T2).
//!
//! Not for what they mean.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use purge::site::OBJECT_NAMES_MAX;

/// A condition of an object's status.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    status: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
}

impl Condition {
    /// Whether it is so, for certain.
    pub fn holds(&self) -> bool {
        self.status.as_deref() == Some("True")
    }
}

pub(super) type Annotations = BTreeMap<String, String>;

/// Keeps the annotations whose key is `wanted`, and does not even look at the values of the others: one of them is often
/// as large as all the rest of the object.
pub(super) fn annotations<'de, D: Deserializer<'de>>(
    deserializer: D,
    wanted: fn(&str) -> bool,
) -> Result<Annotations, D::Error> {
    struct Wanted(fn(&str) -> bool);

    impl<'de> Visitor<'de> for Wanted {
        type Value = Annotations;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("annotations")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut kept = BTreeMap::new();
            while let Some(key) = map.next_key::<String>()? {
                if (self.0)(&key) {
                    kept.insert(key, map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(kept)
        }
    }

    deserializer.deserialize_any(Wanted(wanted))
}

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
