//! What a hook gets, by its format: what is stored of a notice, and what travels of that.
//!
//! What is stored holds nothing of the configuration. A document is stored for the formats `json`, `cloudevents` and `template`, so those
//! are made when it is sent; the others are stored as they travel.

use std::collections::BTreeMap;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::body::{self, Parts};
use super::cloud::{Attributes, SOURCE, TYPE_PREFIX};
use super::marked::{MESSAGE, document};
use super::{cdevents, chat, fill, flux};
use crate::adapters::http::Error;
use crate::config::{Hook, HookFormat, HookMethod, Secret};
use notices::delivery::Content;
use notices::notice::Notice;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Whether a hook gets its parameters and nothing else.
pub fn has_no_document(hook: &Hook) -> bool {
    matches!((&hook.format, hook.method), (HookFormat::Form, _) | (_, HookMethod::Get))
}

/// What is stored of a notice. Making a document of its texts, numbers and lists does not fail.
pub fn of_notice(hook: &Hook, notice: &Notice) -> Option<Content> {
    if has_no_document(hook) {
        return Some(Content::Parameters);
    }
    Some(match &hook.format {
        HookFormat::Form => Content::Parameters,
        HookFormat::Json | HookFormat::CloudEvents | HookFormat::Template(_) => Content::Json(body::json(notice).ok()?),
        HookFormat::Flux => Content::Json(flux::event(notice).ok()?),
        HookFormat::CdEvents => Content::Json(cdevents::event(notice).ok()?),
        HookFormat::Slack => Content::Json(chat::slack(notice)),
        HookFormat::Teams => Content::Json(chat::teams(notice)),
    })
}

/// The same of a test.
pub fn of_test(hook: &Hook, id: &str, at_ms: i64) -> Content {
    if has_no_document(hook) {
        return Content::Parameters;
    }
    match &hook.format {
        HookFormat::Form => Content::Parameters,
        HookFormat::Json | HookFormat::CloudEvents | HookFormat::Template(_) => Content::Json(document(at_ms)),
        HookFormat::Flux => Content::Json(flux::test(&body::time(at_ms), MESSAGE)),
        HookFormat::CdEvents => Content::Json(cdevents::test(id, &body::time(at_ms), MESSAGE)),
        HookFormat::Slack => Content::Json(chat::slack_test(MESSAGE)),
        HookFormat::Teams => Content::Json(chat::teams_test(MESSAGE)),
    }
}

/// The body that travels, and the headers that belong to it. `subject` is whom it is about.
///
/// # Errors
/// What was stored cannot be sent in this format.
pub fn travelling(
    hook: &Hook,
    id: &str,
    subject: &str,
    said: &Content,
    headers: &mut HeaderMap,
) -> Result<String, Error> {
    let Content::Json(stored) = said else {
        if !has_no_document(hook) {
            return Err(other_format());
        }
        headers.insert(CONTENT_TYPE, FORM);
        return Ok(body::form(&hook.parameters));
    };
    headers.insert(CONTENT_TYPE, JSON);
    match &hook.format {
        HookFormat::Form => with(stored, &hook.parameters),
        HookFormat::Json => {
            body::parts(stored).ok_or_else(other_format)?;
            with(stored, &hook.parameters)
        }
        HookFormat::Slack => with(having("blocks", stored)?, &hook.parameters),
        HookFormat::Teams => with(having("attachments", stored)?, &hook.parameters),
        HookFormat::Flux => {
            headers.insert(HeaderName::from_static(flux::COMPONENT), HeaderValue::from_static(flux::REPORTER));
            with(stored, &hook.parameters)
        }
        HookFormat::CloudEvents => {
            let Parts { r#type, timestamp: time, data } = body::parts(stored).ok_or_else(other_format)?;
            let r#type = format!("{TYPE_PREFIX}{type}").into();
            let (id, source, subject) = (id.into(), SOURCE.into(), subject.into());
            Attributes { id, source, r#type, time, subject }.set(headers)?;
            with(data.get(), &hook.parameters)
        }
        HookFormat::CdEvents => {
            Attributes::of_cd_event(stored).ok_or_else(other_format)?.set(headers)?;
            Ok(stored.clone())
        }
        HookFormat::Template(template) => {
            fill::filled(template, id, stored).map_err(|why| Error::Unusable(format!("not sent: {why}")))
        }
    }
}

/// The hook had another format when this was stored. It is sent again when it has that one again, and a person asks.
fn other_format() -> Error {
    Error::Unusable("not sent: the hook had another format when this was stored".to_owned())
}

/// A message for a chat, which is known by this member.
fn having<'a>(member: &str, stored: &'a str) -> Result<&'a str, Error> {
    let is_one = serde_json::from_str::<Value>(stored).is_ok_and(|message| message.get(member).is_some());
    if is_one { Ok(stored) } else { Err(other_format()) }
}

fn with(document: &str, parameters: &BTreeMap<String, Secret<String>>) -> Result<String, Error> {
    body::with_parameters(document, parameters)
        .map_err(|error| Error::Unusable(format!("the body cannot be made: {error}")))
}
