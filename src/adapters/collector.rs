//! A collector of traces: takes a body of spans by OTLP over HTTP (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>).
//!
//! The operator names it, so it may have any address that is not metadata's. Not for what is sent, nor for when.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use url::Url;

use super::http::{Client, Egress, Error, Request, Settings, header_value, retry_after};
use crate::config::{Traces, WebUrl};

/// Longest wait for an answer, from resolving to the last byte.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The way to one collector.
pub struct Collector {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

/// Why spans were not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It may take them later: no answer, or one that says so.
    Later {
        /// In words without a secret.
        why: String,
        /// How long it asks to be left alone.
        after: Option<Duration>,
    },
    /// It does not want them, whenever they come.
    Never(String),
}

impl Collector {
    /// The collector that is configured; `None` where none is.
    ///
    /// # Errors
    /// Where the client or a header cannot be made.
    pub fn configured(traces: &Traces) -> Result<Option<Self>, Error> {
        let Traces { endpoint, headers: given, attributes: _, ca } = traces;
        let Some(endpoint) = endpoint.as_ref().map(WebUrl::expose) else { return Ok(None) };
        let mut settings = Settings::new(Egress { allow_private: true });
        settings.authorities = ca.clone().map(Bytes::from).unwrap_or_default();
        let client = Client::new(settings)?;
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        for (name, value) in given {
            let nameless = |_| Error::Unusable("a header has a name that is none".to_owned());
            headers.insert(name.parse::<HeaderName>().map_err(nameless)?, header_value(value.expose())?);
        }
        Ok(Some(Self { client, url: endpoint.clone(), headers }))
    }

    /// Sends a body once. Returns how many spans of it the collector has rejected, and why.
    ///
    /// # Errors
    /// When it has taken none.
    pub async fn send(&self, body: String, timeout: Duration) -> Result<Option<(usize, String)>, Refusal> {
        let request = Request {
            method: Method::POST,
            url: self.url.clone(),
            headers: self.headers.clone(),
            body: Bytes::from(body),
            timeout,
        };
        let answer = match self.client.send(request).await {
            Ok(answer) => answer,
            Err(Error::Failed(why)) => return Err(Refusal::Later { why, after: None }),
            Err(Error::Blocked(why) | Error::Unusable(why)) => return Err(Refusal::Never(why)),
        };
        match answer.status {
            200..=299 => Ok(rejected(&answer.body)),
            // "Retryable Response Codes" of the specification.
            status @ (429 | 502 | 503 | 504) => {
                Err(Refusal::Later { why: format!("answered {status}"), after: retry_after(&answer.headers, 0) })
            }
            status => Err(Refusal::Never(format!("answered {status}"))),
        }
    }
}

/// How many spans an answer says were rejected, and why. A 64-bit number is a text in this encoding; some collectors send a number.
/// An answer that cannot be read rejects none: some answer with protobuf, or nothing.
pub fn rejected(body: &[u8]) -> Option<(usize, String)> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let partial = answer.get("partialSuccess")?;
    let count = match partial.get("rejectedSpans")? {
        Value::String(text) => text.parse().ok()?,
        other => other.as_u64().and_then(|count| usize::try_from(count).ok())?,
    };
    let why = partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
    (count > 0).then(|| (count, why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_rejected_is_read_from_an_answer_of_either_kind() {
        let text = br#"{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "too old"}}"#;
        assert_eq!(rejected(text), Some((3, "too old".to_owned())));
        assert_eq!(rejected(br#"{"partialSuccess": {"rejectedSpans": 2}}"#), Some((2, String::new())));
        for all_taken in [
            &b"{}"[..],
            b"",
            b"\x0a\x00",
            br#"{"partialSuccess": {}}"#,
            br#"{"partialSuccess": {"rejectedSpans": "0"}}"#,
        ] {
            assert_eq!(rejected(all_taken), None, "{all_taken:?}");
        }
    }
}
