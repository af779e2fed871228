//! The schemas of names that stand in a status: that of a text, and no description, for that of the field is what `kubectl explain` shows.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{CommitId, Environment, Revision};

macro_rules! as_text {
    ($($name:ty),*) => {
        $(impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                String::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                String::json_schema(generator)
            }
        })*
    };
}

as_text!(CommitId, Environment, Revision);
