//! Types that are written as a text and read back by a parser: in the configuration, in records, on boards, as keys of maps.

/// Gives a type with `parse` and `Display` its `FromStr`, and serialises it as that text. What does not parse is refused when it
/// is read, so nothing beyond needs to check it again.
///
/// A macro, because an `impl<T: …> Serialize for T` of ours is not allowed, and `serde(try_from, into)` wants three impls by
/// hand for each type.
macro_rules! parsed {
    ($type:ty, $error:ty) => {
        impl std::str::FromStr for $type {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                Self::parse(text)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::parse(&<String as serde::Deserialize>::deserialize(deserializer)?)
                    .map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use parsed;
