//! Parts of an object by where they stand (JSON pointers, RFC 6901), each checked for its type. Absent and `null` mean the same,
//! as everywhere in Kubernetes.
//!
//! Not for what they mean.

use serde_json::Value;

use kernel::text::{clean, explained};
use kernel::unreadable::Unreadable;

/// Most bytes of others' words that are repeated: a status has room for 200 characters a message.
const WORDS_BYTES_MAX: usize = 160;

/// Most of the message of a refusal that is repeated. A quota's begins with the pod's name and ends with what is requested, used and
/// limited: about 150 characters for one resource.
const REFUSAL_CHARS_MAX: usize = 200;

/// An object as the API server wrote it.
#[derive(Clone, Copy)]
pub struct Object<'a>(pub &'a Value);

/// A condition of a status.
pub struct Condition<'a> {
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// The generation that it is about, where it says so.
    pub generation: Option<i64>,
    /// Why, in one word.
    pub reason: &'a str,
    message: &'a str,
    /// `lastUpdateTime`, as written; empty where it is not said.
    pub updated: &'a str,
}

/// A place as people write it: `.status.replicas`.
pub fn dotted(pointer: &str) -> String {
    clean(&pointer.replace('/', "."), WORDS_BYTES_MAX)
}

/// Words of others, as far as they are repeated.
pub fn repeated(words: &str) -> String {
    clean(words.trim(), WORDS_BYTES_MAX)
}

/// Each reads what is at a JSON pointer, and fails where that has another type.
#[expect(clippy::missing_errors_doc, reason = "said once for all of them")]
impl<'a> Object<'a> {
    pub fn at(self, pointer: &str) -> Option<&'a Value> {
        self.0.pointer(pointer).filter(|value| !value.is_null())
    }

    pub fn text(self, pointer: &str) -> Result<Option<&'a str>, Unreadable> {
        self.typed(pointer, "a text", Value::as_str)
    }

    pub fn number(self, pointer: &str) -> Result<Option<i64>, Unreadable> {
        self.typed(pointer, "a whole number", Value::as_i64)
    }

    /// The count there; a negative one never comes from Kubernetes.
    pub fn count(self, pointer: &str) -> Result<u32, Unreadable> {
        Ok(self.number(pointer)?.map_or(0, |number| u32::try_from(number.max(0)).unwrap_or(u32::MAX)))
    }

    /// Whether it says `true` there.
    pub fn flag(self, pointer: &str) -> Result<bool, Unreadable> {
        Ok(self.typed(pointer, "true or false", Value::as_bool)?.unwrap_or_default())
    }

    pub fn list(self, pointer: &str) -> Result<&'a [Value], Unreadable> {
        Ok(self.typed(pointer, "a list", Value::as_array)?.map_or(&[], Vec::as_slice))
    }

    /// The value there as one text: a text, a number, or `true` or `false`.
    pub fn scalar(self, pointer: &str) -> Result<Option<String>, Unreadable> {
        self.typed(pointer, "one text or number", |value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        })
    }

    /// The generation of a spec that its controller says it has acted on. Argo Rollouts writes it as a text.
    pub fn observed_generation(self) -> Result<Option<i64>, Unreadable> {
        let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.parse().ok());
        self.typed("/status/observedGeneration", "a whole number", number)
    }

    fn typed<T>(
        self,
        at: &str,
        wanted: &'static str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Unreadable> {
        let mistyped = || Unreadable::Mistyped { at: dotted(at), wanted };
        self.at(at).map(|value| read(value).ok_or_else(mistyped)).transpose()
    }

    /// The condition of this type.
    pub fn condition(self, kind: &str) -> Result<Option<Condition<'a>>, Unreadable> {
        let conditions = self.list("/status/conditions")?.iter().map(Object);
        let mut of_kind = conditions.filter(|one| matches!(one.text("/type"), Ok(Some(found)) if found == kind));
        let Some(found) = of_kind.next() else { return Ok(None) };
        Ok(Some(Condition {
            status: found.text("/status")?.unwrap_or("Unknown"),
            generation: found.number("/observedGeneration")?,
            reason: found.text("/reason")?.unwrap_or_default(),
            message: found.text("/message")?.unwrap_or_default(),
            updated: found.text("/lastUpdateTime")?.unwrap_or_default(),
        }))
    }
}

impl Condition<'_> {
    /// Whether it is so, for certain.
    pub fn holds(&self) -> bool {
        self.status == "True"
    }

    /// Why something was refused: `FailedCreate: pods "web-7c9-" is forbidden: exceeded quota: …`.
    pub fn refusal(&self) -> String {
        let reason = if self.reason.is_empty() { "refused" } else { self.reason };
        explained(reason, Some(self.message), REFUSAL_CHARS_MAX)
    }

    /// Its reason and its message.
    pub fn words(&self) -> String {
        let parts: Vec<&str> = [self.reason, self.message].into_iter().filter(|part| !part.is_empty()).collect();
        repeated(&parts.join(": "))
    }
}
