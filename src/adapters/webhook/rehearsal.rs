//! A test event for one hook: marked as one, and otherwise sent as every notice is, by the same guard, signature and limits.
//!
//! The mark: `type` is [`TEST_TYPE`], which no hook can subscribe to, and there is a member `"test": true`; a Flux event has the reason
//! `WebhookTest` and the label `allclear.dev/test`. Every test has the header [`TEST_HEADER`]. What a hook of the form `form` or a GET
//! gets has no room for a mark in it ([`Unmarked`]), and often starts something by being called at all.

use std::collections::BTreeSet;

use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use serde_json::json;

use super::{Webhooks, flux, reply};
use crate::adapters::http::Error;
use crate::config::{Hook, HookFormat, HookMethod};
use kernel::machine::millis;
use kernel::mask::{MASK, shown};
use notices::delivery::{Content, Reply};

/// What a test calls itself in place of the event.
pub const TEST_TYPE: &str = "webhook.test";

/// The header of every test.
pub const TEST_HEADER: &str = "allclear-test";

/// Characters of the answer that are kept.
const ANSWER_CHARS_MAX: usize = 120;

/// Shortest text of the configuration that is hidden where an answer repeats it; shorter ones are in every answer.
const SECRET_CHARS_MIN: usize = 4;

/// What says to people, and to programs that show messages, that nothing happened.
const MESSAGE: &str = "a test by allclear webhook test: nothing was changed and nothing was purged";

/// The receiver cannot tell a test from what it usually gets, but by a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmarked {
    /// Its format is `form`.
    Form,
    /// It is called by GET, which has no body.
    Get,
}

/// A test that was sent, or tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// Its id, the `webhook-id`.
    pub id: String,
    /// The body without the parameters of the hook; `None` where those are all.
    pub body: Option<String>,
    /// How many signatures it has.
    pub signatures: usize,
    /// How long it took.
    pub took_ms: u64,
    /// What came of it.
    pub heard: Heard,
}

/// What came of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// As an attempt of a notice would have been judged.
    pub reply: Reply,
    /// The start of the answer on one line, with what the configuration keeps secret left out; empty if there is none.
    pub answer: String,
}

impl Webhooks {
    /// Why a test of this hook cannot be distinguished from a notice, if so.
    pub const fn unmarked(hook: &Hook) -> Option<Unmarked> {
        match (hook.format, hook.method) {
            (HookFormat::Form, _) => Some(Unmarked::Form),
            (HookFormat::Json | HookFormat::Flux, HookMethod::Get) => Some(Unmarked::Get),
            (
                HookFormat::Json | HookFormat::Flux,
                HookMethod::Post | HookMethod::Put | HookMethod::Patch | HookMethod::Delete,
            ) => None,
        }
    }

    pub async fn rehearse(&self, hook: &Hook) -> Rehearsal {
        let at_ms = self.clock.wall_ms();
        let id = format!("test_{at_ms}");
        let content = match (Self::unmarked(hook), hook.format) {
            (Some(Unmarked::Form | Unmarked::Get), _) | (None, HookFormat::Form) => Content::Parameters,
            (None, HookFormat::Json) => Content::Json(document(at_ms)),
            (None, HookFormat::Flux) => Content::Json(flux::test(&time(at_ms), MESSAGE)),
        };
        let begun = self.clock.now();
        let sent = match self.request(hook, &id, &content) {
            Ok(mut request) => {
                request.headers.insert(HeaderName::from_static(TEST_HEADER), HeaderValue::from_static("true"));
                self.client.send(request).await
            }
            Err(error) => Err(error),
        };
        let heard = match sent {
            Ok(answer) => Heard {
                reply: reply(&answer, self.clock.wall_ms()),
                answer: self.start(&String::from_utf8_lossy(&answer.body)),
            },
            Err(Error::Failed(reason)) => Heard { reply: Reply::Failed { reason }, answer: String::new() },
            Err(Error::Blocked(reason) | Error::Unusable(reason)) => {
                Heard { reply: Reply::Blocked { reason }, answer: String::new() }
            }
        };
        let body = match content {
            Content::Json(document) => Some(document),
            Content::Parameters => None,
        };
        let took_ms = millis(self.clock.now().since(begun));
        Rehearsal { id, body, signatures: hook.secrets.len(), took_ms, heard }
    }

    /// The start of an answer on one line, without what the configuration of any hook keeps secret: some receivers repeat what they
    /// got, and one program may stand behind several hooks.
    fn start(&self, text: &str) -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let secrets: BTreeSet<(usize, String)> = self.hooks.iter().flat_map(|(_, hook)| secrets(hook)).collect();
        let hidden = secrets.iter().rev().fold(line, |line, (_, secret)| line.replace(secret, MASK));
        shown(&hidden).chars().take(ANSWER_CHARS_MAX).collect()
    }
}

fn time(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::MAX).to_string()
}

/// The document that Standard Webhooks recommends, without anything that a notice is about.
fn document(at_ms: i64) -> String {
    let (timestamp, message) = (json!(time(at_ms)), json!(MESSAGE));
    format!(r#"{{"type":"{TEST_TYPE}","timestamp":{timestamp},"test":true,"data":{{"message":{message}}}}}"#)
}

/// What an answer must not show, the longest last.
fn secrets(hook: &Hook) -> BTreeSet<(usize, String)> {
    let url = hook.url.expose();
    let path = url.path().split('/');
    let user = [url.username(), url.password().unwrap_or_default(), url.query().unwrap_or_default()];
    let query: Vec<String> = url.query_pairs().map(|(_, value)| value.into_owned()).collect();
    let values = hook.headers.values().chain(hook.parameters.values()).map(|value| value.expose().as_str());
    let words = hook.headers.values().flat_map(|value| value.expose().split_whitespace());
    let plain = path.chain(user).chain(values).chain(words).chain(query.iter().map(String::as_str));
    let encoded = |text: &str| -> [String; 2] {
        let form = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let json = json!(text).to_string();
        [form, json.trim_matches('"').to_owned()]
    };
    let each = plain.flat_map(|text| [text.to_owned()].into_iter().chain(encoded(text)));
    each.filter(|text| text.chars().count() >= SECRET_CHARS_MIN).map(|text| (text.len(), text)).collect()
}
