//! `allclear webhook test [RECEIVER]`: sends a marked test event, and shows what came of it. No secret is shown: neither a path or query of an
//! address, nor a header, a parameter or a key.

use std::fmt;

use serde::Serialize;

use super::{none_here, unknown};
use crate::adapters::webhook::{Rehearsal, TEST_HEADER, Unmarked, Webhooks};
use crate::cli::answer::{EXIT_FAILED, Outcome, Output, answer, invalid};
use crate::config::Hook;
use crate::looking::page::{Page, count};
use notices::delivery::Reply;

/// What was sent, and what came of it.
#[derive(Clone, Debug, Serialize)]
struct Tests {
    tests: Vec<Test>,
}

#[derive(Clone, Debug, Serialize)]
struct Test {
    receiver: String,
    /// The method, and the address without what may be secret.
    called: String,
    /// What was sent in place of an event; `None` where nothing was.
    sent: Option<Sent>,
    /// Why nothing was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    /// A notice would count as delivered.
    delivered: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Sent {
    id: String,
    /// Without the parameters of the receiver.
    body: Option<String>,
    parameters: usize,
    headers: usize,
    signatures: usize,
    took_ms: u64,
    result: String,
    answer: String,
}

/// Tests one receiver, or all that can tell a test from a notice. Exit codes: 0 all that were called took it; 1 not; 2 there is no such
/// receiver, or it cannot tell a test.
pub async fn test(webhooks: &Webhooks, receiver: Option<&str>, unmarked: bool, output: Output) -> Outcome {
    let all: Vec<(&str, &Hook)> = webhooks.hooks().collect();
    let chosen: Vec<(&str, &Hook)> =
        all.iter().copied().filter(|(name, _)| receiver.is_none_or(|wanted| wanted == *name)).collect();
    match receiver {
        Some(name) if chosen.is_empty() => return unknown(name, all.iter().map(|(name, _)| *name)),
        Some(name) => {
            let why = chosen.iter().find_map(|(_, hook)| Webhooks::unmarked(hook)).filter(|_| !unmarked);
            if let Some(why) = why {
                let words = format!("{name} was not called: {}; --unmarked calls it all the same", words(why));
                return invalid(&words);
            }
        }
        None if all.is_empty() => return none_here(),
        None => {}
    }
    let mut tests = Vec::new();
    // One after the other: a person reads along, and one program may stand behind several of them.
    for (name, hook) in chosen {
        let left_out = Webhooks::unmarked(hook).filter(|_| !unmarked);
        let sent = match left_out {
            Some(_) => None,
            None => Some(webhooks.rehearse(hook).await),
        };
        tests.push(shown(name, hook, sent, left_out));
    }
    let called = tests.iter().any(|test| test.sent.is_some());
    let refusals = tests.iter().any(|test| test.sent.is_some() && !test.delivered);
    answer(&Tests { tests }, output, if called && !refusals { 0 } else { EXIT_FAILED })
}

/// Why a test could do harm.
const fn words(why: Unmarked) -> &'static str {
    match why {
        Unmarked::Form => {
            "its format is form, so it would get its parameters and nothing that says test, and may start what it always starts"
        }
        Unmarked::Get => {
            "it is called by GET, so it would get nothing that says test, and may start what it always starts"
        }
        Unmarked::Template => {
            "its body names none of type, id, reason, message and event, so it would get nothing that says test, and may start what it always \
             starts"
        }
    }
}

fn shown(name: &str, hook: &Hook, sent: Option<Rehearsal>, left_out: Option<Unmarked>) -> Test {
    let delivered = sent.as_ref().is_some_and(|sent| matches!(sent.heard.reply, Reply::Delivered { .. }));
    let sent = sent.map(|Rehearsal { id, body, signatures, took_ms, heard }| Sent {
        id,
        body,
        parameters: hook.parameters.len(),
        headers: hook.headers.len(),
        signatures,
        took_ms,
        result: heard.reply.to_string(),
        answer: heard.answer,
    });
    Test {
        receiver: name.to_owned(),
        called: format!("{} {}", hook.method.name(), hook.url),
        sent,
        left_out: left_out.map(|why| words(why).to_owned()),
        delivered,
    }
}

impl fmt::Display for Tests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Test { receiver, called, sent, left_out, delivered: _ }) in self.tests.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            writeln!(f, "{receiver}: {called}")?;
            let mut page = Page { f };
            page.part("Not called", left_out.iter().map(|why| format!("{why}; name it with --unmarked to call it")))?;
            let Some(Sent { id, body, parameters, headers, signatures, took_ms, result, answer }) = sent else {
                continue;
            };
            let what = body.clone().unwrap_or_else(|| "its parameters, as always".to_owned());
            let rest = format!(
                "{}, {} of its own, {}, and the header {TEST_HEADER}",
                count(*parameters, "parameter", "parameters"),
                count(*headers, "header", "headers"),
                count(*signatures, "signature", "signatures"),
            );
            page.part("Sent", [what, format!("with {rest}; webhook-id {id}")])?;
            page.part("Result", [format!("{result}, after {took_ms} ms")])?;
            page.part("Answer", Some(answer.clone()).filter(|answer| !answer.is_empty()))?;
        }
        if self.tests.iter().any(|test| test.sent.is_some()) {
            writeln!(f, "\nThis was sent from here, by the configuration that is here.")?;
        }
        Ok(())
    }
}
