//! The forms of values in the status of an object: a time is a text there, and a count has a bound. What is wrong with one is said
//! without its place, which the reader of the whole status adds.
//!
//! Not for what a status means.

use std::fmt;
use std::marker::PhantomData;

use jiff::Timestamp;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Most that is counted: whole numbers above it are not the same to every reader of JSON
/// (<https://www.rfc-editor.org/rfc/rfc8259#section-6>), and a write a second would take 285 million years.
const COUNT_MAX: u64 = 1 << 53;

/// A value of the type `T`, as it stands in the object.
pub(crate) trait Form<T>: Sized {
    fn of(value: T) -> Self;

    fn value(self) -> T;
}

impl<T, F: Form<T>> Form<Option<T>> for Option<F> {
    fn of(value: Option<T>) -> Self {
        value.map(F::of)
    }

    fn value(self) -> Option<T> {
        self.map(F::value)
    }
}

impl<T, F: Form<T>> Form<Vec<T>> for Vec<F> {
    fn of(values: Vec<T>) -> Self {
        values.into_iter().map(F::of).collect()
    }

    fn value(self) -> Vec<T> {
        self.into_iter().map(F::value).collect()
    }
}

/// For `#[serde(with = "In::<At>")]`: the field stands in the object in this form.
pub(crate) struct In<F>(PhantomData<F>);

impl<F> In<F> {
    pub(crate) fn serialize<T: Clone, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
    where
        F: Form<T> + Serialize,
    {
        F::of(value.clone()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>
    where
        F: Form<T> + Deserialize<'de>,
    {
        F::deserialize(deserializer).map(F::value)
    }
}

/// Milliseconds since the Unix epoch, as a text with date and time.
pub(crate) struct At(i64);

impl At {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let read: Result<Timestamp, _> = text.parse();
        read.map(|at| Self(at.as_millisecond())).map_err(|_| format!("{text:?} is no time"))
    }
}

impl Form<i64> for At {
    fn of(at_ms: i64) -> Self {
        Self(at_ms)
    }

    fn value(self) -> i64 {
        self.0
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Years beyond 9999 have no text.
        Timestamp::from_millisecond(self.0).unwrap_or(Timestamp::MAX).fmt(f)
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, Self::parse)
    }
}

/// A count. One above `COUNT_MAX` was edited by hand and could not be incremented.
#[derive(Serialize)]
pub(crate) struct Count<T>(T);

impl<T> Form<T> for Count<T> {
    fn of(count: T) -> Self {
        Self(count)
    }

    fn value(self) -> T {
        self.0
    }
}

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Count<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(Counted(PhantomData)).map(Self)
    }
}

struct Counted<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Visitor<'_> for Counted<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        let counted = T::try_from(number).ok().filter(|_| number <= COUNT_MAX);
        counted.ok_or_else(|| E::custom(format!("{number}, and nothing was counted so far")))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::custom(format!("{number} is negative"))),
        }
    }
}

/// A text that is there and not empty. Upstream writes empty ones for those that are not there.
#[derive(Serialize)]
pub(crate) struct Filled(Option<String>);

impl<T: From<String> + Into<String>> Form<Option<T>> for Filled {
    fn of(value: Option<T>) -> Self {
        Self(value.map(T::into))
    }

    fn value(self) -> Option<T> {
        self.0.map(T::from)
    }
}

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty())))
    }
}

/// Reads a text in a way that says in words what is wrong with it. The error is placed at that text, as it is made while it is read.
pub(crate) fn text<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    read: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    struct Text<T>(fn(&str) -> Result<T, String>);

    impl<T> Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            (self.0)(text).map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text(read))
}

/// Gives a type the schema of another one, and no description: that of its field is what `kubectl explain` shows.
macro_rules! schema_as {
    ($type:ty, $other:ty $(, $parameter:ident)?) => {
        #[cfg(feature = "schema")]
        impl$(<$parameter: schemars::JsonSchema>)? schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                <$other as schemars::JsonSchema>::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$other as schemars::JsonSchema>::json_schema(generator)
            }
        }
    };
}

/// Declares a type whose values have names, which are their form. What has no such name is refused: it is no such thing.
macro_rules! named {
    (
        $(#[$of_type:meta])*
        pub enum $type:ident($what:literal) {
            $($(#[$of_one:meta])* $one:ident = $name:literal,)*
        }
    ) => {
        $(#[$of_type])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            $($(#[$of_one])* $one,)*
        }

        impl $type {
            pub const ALL: [Self; [$($name,)*].len()] = [$(Self::$one,)*];

            /// Its name in the status, in a spec and for people.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$one => $name,)*
                }
            }

            /// The one of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }

        impl From<$type> for &'static str {
            fn from(one: $type) -> Self {
                one.name()
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let read = |name: &str| Self::named(name).ok_or_else(|| format!(concat!("{:?} is no ", $what), name));
                crate::form::text(deserializer, read)
            }
        }

        crate::form::schema_as!($type, String);
    };
}

pub(crate) use {named, schema_as};

schema_as!(In<F>, F, F);
schema_as!(Filled, Option<String>);

#[cfg(feature = "schema")]
impl JsonSchema for At {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "At".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

#[cfg(feature = "schema")]
impl<T> JsonSchema for Count<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Count".into()
    }

    // A CRD knows no unsigned numbers.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "format": "int64", "minimum": 0})
    }
}
