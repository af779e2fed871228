//! A test event for one hook: marked as one, and otherwise sent as every notice is, by the same guard, signature and limits.
//!
//! What marks it is in `marked`. Every test has the header [`TEST_HEADER`], too. What a hook of the form `form` or a GET gets has no room
//! for a mark in it ([`Unmarked`]), and often starts something by being called at all.

use std::collections::BTreeSet;

use http::{HeaderName, HeaderValue};
use serde_json::json;

use super::{Webhooks, body, format, reply};
use crate::adapters::http::Error;
use crate::config::{Hook, HookFormat, HookMethod};
use kernel::machine::millis;
use kernel::mask::{MASK, shown};
use notices::delivery::{Content, Reply};

/// Whom it is about, where that has to be said.
const TEST_SUBJECT: &str = "test";

/// The header of every test.
pub const TEST_HEADER: &str = "allclear-test";

/// Characters of the answer that are kept.
const ANSWER_CHARS_MAX: usize = 120;

/// Shortest text of the configuration that is hidden where an answer repeats it; shorter ones are in every answer.
const SECRET_CHARS_MIN: usize = 4;

/// The receiver cannot tell a test from what it usually gets, but by a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmarked {
    /// Its format is `form`.
    Form,
    /// It is called by GET, which has no body.
    Get,
    /// Its body names nothing that a test has other than an event.
    Template,
}

/// A test that was sent, or tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// Its id, the `webhook-id`.
    pub id: String,
    /// The body as it was sent, without the parameters of the hook; `None` where those are all. Of a body of its own, only
    /// that it is one.
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
    /// The start of the answer on one line, with what the configuration keeps secret left out; empty if there is none. Of one to
    /// a body of the owner's own, only that there is one.
    pub answer: String,
}

impl Webhooks {
    /// Why a test of this hook cannot be distinguished from a notice, if so.
    pub fn unmarked(hook: &Hook) -> Option<Unmarked> {
        match (&hook.format, hook.method) {
            (HookFormat::Form, _) => Some(Unmarked::Form),
            (_, HookMethod::Get) => Some(Unmarked::Get),
            (HookFormat::Template(template), _) => (!template.tells_a_test()).then_some(Unmarked::Template),
            (
                HookFormat::Json
                | HookFormat::Flux
                | HookFormat::CloudEvents
                | HookFormat::CdEvents
                | HookFormat::Slack
                | HookFormat::Teams,
                HookMethod::Post | HookMethod::Put | HookMethod::Patch | HookMethod::Delete,
            ) => None,
        }
    }

    pub async fn rehearse(&self, hook: &Hook) -> Rehearsal {
        let at_ms = self.clock.wall_ms();
        let id = format!("test_{at_ms}");
        let content = format::of_test(hook, &id, at_ms);
        let begun = self.clock.now();
        let sent = match self.request(hook, &id, TEST_SUBJECT, &content) {
            Ok(mut request) => {
                request.headers.insert(HeaderName::from_static(TEST_HEADER), HeaderValue::from_static("true"));
                self.client.send(request).await
            }
            Err(error) => Err(error),
        };
        let heard = match sent {
            Ok(answer) => Heard {
                reply: reply(&answer, self.clock.wall_ms()),
                answer: self.answer(hook, &String::from_utf8_lossy(&answer.body)),
            },
            Err(Error::Failed(reason)) => Heard { reply: Reply::Failed { reason }, answer: String::new() },
            Err(Error::Blocked(reason) | Error::Unusable(reason)) => {
                Heard { reply: Reply::Blocked { reason }, answer: String::new() }
            }
        };
        let body = match (content, &hook.format) {
            (Content::Parameters, _) => None,
            (Content::Json(_), HookFormat::Template(_)) => Some(format!("{MASK}, its own body")),
            // The other parts of it travel in headers.
            (Content::Json(document), HookFormat::CloudEvents) => {
                body::parts(&document).map(|parts| parts.data.get().to_owned())
            }
            (Content::Json(document), _) => Some(document),
        };
        let took_ms = millis(self.clock.now().since(begun));
        Rehearsal { id, body, signatures: hook.secrets.len(), took_ms, heard }
    }

    /// What is shown of an answer. Of one to a body that its owner wrote, only that there is one: that may repeat any part of a
    /// credential, and nothing says which part of the body is one.
    fn answer(&self, hook: &Hook, text: &str) -> String {
        if matches!(hook.format, HookFormat::Template(_)) && !text.trim().is_empty() {
            return format!("{MASK}, for it may repeat the body");
        }
        self.start(text)
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

/// What an answer must not show, the longest last.
fn secrets(hook: &Hook) -> BTreeSet<(usize, String)> {
    let url = hook.url.expose();
    let path = url.path().split('/');
    let user = [url.username(), url.password().unwrap_or_default(), url.query().unwrap_or_default()];
    let query: Vec<String> = url.query_pairs().map(|(_, value)| value.into_owned()).collect();
    let values = hook.headers.values().chain(hook.parameters.values()).map(|value| value.expose().as_str());
    let words = hook.headers.values().flat_map(|value| value.expose().split_whitespace());
    let own = match &hook.format {
        HookFormat::Template(template) => template.written(),
        _ => Vec::new(),
    };
    let plain = path.chain(user).chain(values).chain(words);
    let plain = plain.chain(query.iter().chain(&own).map(String::as_str));
    let encoded = |text: &str| -> [String; 2] {
        let form = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let json = json!(text).to_string();
        [form, json.trim_matches('"').to_owned()]
    };
    let each = plain.flat_map(|text| [text.to_owned()].into_iter().chain(encoded(text)));
    each.filter(|text| text.chars().count() >= SECRET_CHARS_MIN).map(|text| (text.len(), text)).collect()
}
