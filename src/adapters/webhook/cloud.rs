//! A CloudEvent 1.0 in the binary mode of HTTP: its attributes are headers, and its data is the body.
//!
//! <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md>, section 3.1. The data of a notice is
//! the `data` of its document; a CDEvent has all of itself as its data, and the attributes repeat its context
//! (<https://github.com/cdevents/spec/blob/v0.5.1/cloudevents-binding.md>).

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use crate::adapters::http::Error;

/// Who reports. Not the member that sends it: any of them may, and each event has an id of its own.
pub const SOURCE: &str = "/allclear";

/// What types of CloudEvents begin with: a name in reverse, as the specification asks for.
pub const TYPE_PREFIX: &str = "dev.allclear.";

/// The attributes of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    pub id: Cow<'a, str>,
    pub source: Cow<'a, str>,
    pub r#type: Cow<'a, str>,
    pub time: Cow<'a, str>,
    pub subject: Cow<'a, str>,
}

/// The parts of a CDEvent that its attributes repeat.
#[derive(Deserialize)]
struct CdEvent<'a> {
    #[serde(borrow)]
    context: Context<'a>,
    #[serde(borrow)]
    subject: Subject<'a>,
}

#[derive(Deserialize)]
struct Context<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    source: Cow<'a, str>,
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Subject<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

impl<'a> Attributes<'a> {
    /// Those of a CDEvent; `None` of what is none.
    pub fn of_cd_event(body: &'a str) -> Option<Self> {
        let CdEvent { context: Context { id, source, r#type, timestamp: time }, subject } =
            serde_json::from_str(body).ok()?;
        Some(Self { id, source, r#type, time, subject: subject.id })
    }

    /// Sets them as headers.
    ///
    /// # Errors
    /// None are known: what is encoded can be sent.
    pub fn set(&self, headers: &mut HeaderMap) -> Result<(), Error> {
        headers.insert(HeaderName::from_static("ce-specversion"), HeaderValue::from_static("1.0"));
        for (name, value) in [
            ("ce-id", &self.id),
            ("ce-source", &self.source),
            ("ce-type", &self.r#type),
            ("ce-time", &self.time),
            ("ce-subject", &self.subject),
        ] {
            let value = HeaderValue::from_str(&encoded(value))
                .map_err(|_| Error::Unusable(format!("{name} has a value that cannot be sent")))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(())
    }
}

/// As section 3.1.3.2 encodes the value of a header: a blank, a quote, a percent sign, and what is not printable ASCII.
fn encoded(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'"' | b'%' => encoded.push_str(&format!("%{byte:02X}")),
            0x21..=0x7e => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the specification, and what it asks to be encoded beside them.
    #[test]
    fn a_header_is_encoded_as_the_binding_says() {
        assert_eq!(encoded("Euro € \u{1f600}"), "Euro%20%E2%82%AC%20%F0%9F%98%80");
        assert_eq!(encoded("a\"b%c\n\u{7f}~!"), "a%22b%25c%0A%7F~!");
        assert_eq!(encoded("deployment/shop/web"), "deployment/shop/web");
    }
}
