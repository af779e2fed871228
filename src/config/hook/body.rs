//! The body of a hook as its owner wrote it: a text with places for values of the event, `{{ message }}`.
//!
//! In JSON a place inside quotes takes the text of a value, escaped, and a place outside of quotes a whole value: a text with its quotes, a
//! number, a list, or `null` for what the event does not have. So what is JSON for one event is JSON for each, and
//! [`BodyTemplate::parse`] tries each that the hook subscribes to, and the test. In a plain text a value is put in as a line.
//!
//! Values come from the event alone. Parameters and headers have no name here, and the text itself may hold a credential, as many
//! receivers want one in the body: it is never shown, and no ledger has it. Not for where values come from; that is `adapters::webhook`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::config::address::Refused;
use crate::config::mask::Secret;
use crate::config::suggest::{listed, nearest, unknown};
use kernel::template::{Malformed, Piece, Template};
use kernel::text::visible;
use notices::notice::Kind;

/// Longest template, in bytes: some pages of a chat's cards.
const TEMPLATE_BYTES_MAX: usize = 16 * 1024;

/// Longest body that is made from one, in bytes. An event has 64 KiB at most, and a template may name it twice.
const FILLED_BYTES_MAX: usize = 256 * 1024;

/// Whom an event is about, which says what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    Workload,
    Pipeline,
    Repo,
    /// Nothing: it is a test.
    Test,
}

/// Whether events about one have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    Always,
    Perhaps,
    Never,
}

/// Names, and for workloads, Pipelines and Repos whether their events have such a value.
macro_rules! values {
    ($($(#[$doc:meta])* $value:ident = $name:literal, $workload:ident, $pipeline:ident, $repo:ident;)*) => {
        /// What a body may name, between `{{` and `}}`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum BodyValue {
            $($(#[$doc])* $value,)*
        }

        impl BodyValue {
            pub const ALL: [Self; [$($name,)*].len()] = [$(Self::$value,)*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$value => $name,)* }
            }

            const fn of(self, whom: Whom) -> Has {
                match (self, whom) {
                    (Self::Type | Self::Id | Self::Severity | Self::Reason, Whom::Test) => Has::Always,
                    (Self::Timestamp | Self::Message | Self::Event, Whom::Test) => Has::Always,
                    (_, Whom::Test) => Has::Never,
                    $((Self::$value, Whom::Workload) => Has::$workload,
                    (Self::$value, Whom::Pipeline) => Has::$pipeline,
                    (Self::$value, Whom::Repo) => Has::$repo,)*
                }
            }
        }
    };
}

values! {
    /// The name of the event, as hooks subscribe to it.
    Type = "type", Always, Always, Always;
    /// What `webhook-id` says.
    Id = "id", Always, Always, Always;
    /// `info`, `warning` or `error`.
    Severity = "severity", Always, Always, Always;
    /// The reason of the Kubernetes Event.
    Reason = "reason", Always, Always, Always;
    Timestamp = "timestamp", Always, Always, Always;
    Message = "message", Always, Always, Always;
    /// The whole event, as the format `json` has it.
    Event = "event", Always, Always, Always;
    /// `deployment`, `pipeline`, `repo` and so on.
    Kind = "kind", Always, Always, Always;
    Namespace = "namespace", Always, Always, Always;
    Name = "name", Always, Always, Always;
    Seq = "seq", Always, Always, Always;
    Change = "change", Always, Always, Never;
    Rollout = "rollout", Always, Never, Never;
    Hosts = "hosts", Always, Never, Never;
    Distributions = "distributions", Always, Never, Never;
    Paths = "paths", Always, Never, Never;
    Environment = "environment", Never, Perhaps, Never;
    Revision = "revision", Never, Perhaps, Perhaps;
    From = "from", Never, Perhaps, Never;
    Ticket = "ticket", Never, Perhaps, Perhaps;
    PullRequest = "pullRequest", Never, Perhaps, Never;
    Action = "action", Never, Never, Perhaps;
    Attempt = "attempt", Never, Never, Perhaps;
    Job = "job", Never, Never, Perhaps;
    Plan = "plan", Never, Never, Perhaps;
}

impl BodyValue {
    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.name() == name)
    }

    /// One such value, with what JSON has to escape.
    fn sample(self) -> Value {
        match self {
            Self::Seq | Self::Attempt => json!(7),
            Self::Hosts | Self::Distributions | Self::Paths => json!(["a\"b", "c"]),
            Self::Event => json!({"type": "a\"b"}),
            _ => json!("a\"b\\\n"),
        }
    }
}

/// By the first word of its name: `promotion.started` is about a Pipeline.
fn whom(kind: Kind) -> Whom {
    match kind.name().split_once('.').map_or("", |(first, _)| first) {
        "promotion" | "pipeline" => Whom::Pipeline,
        "run" | "repo" => Whom::Repo,
        _ => Whom::Workload,
    }
}

/// A checked body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyTemplate {
    text: Secret<Template<BodyValue>>,
    is_json: bool,
}

/// Where in a body a value goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In JSON, outside of quotes.
    Whole,
    /// In JSON, inside of quotes.
    Quoted,
    Plain,
}

impl BodyTemplate {
    /// Reads a body for these events, with what they lack and what they have.
    ///
    /// # Errors
    /// Says what is wrong with it, and shows nothing of it but a name that is none.
    pub fn parse(text: &str, is_json: bool, events: &BTreeSet<Kind>) -> Result<Self, Refused> {
        if text.trim().is_empty() || text.len() > TEMPLATE_BYTES_MAX {
            let (is, fix) = (format!("is a body of {} bytes", text.len()), format!("write 1 to {TEMPLATE_BYTES_MAX}"));
            return Err(Refused::new(is, fix));
        }
        if text.contains("{%") {
            let fix = "write {{ name }} alone; for another body for some events, write a hook for those";
            return Err(Refused::new("has a statement, {%, and a body has values alone", fix));
        }
        let template = Template::parse(text, BodyValue::named).map_err(|why| malformed(&why))?;
        let body = Self { text: Secret::new(template), is_json };
        body.check(events)?;
        Ok(body)
    }

    fn check(&self, events: &BTreeSet<Kind>) -> Result<(), Refused> {
        for (piece, place) in self.places() {
            let Piece::Of(value) = piece else { continue };
            if place.is_none() {
                let fix = "write \\\\ for a backslash, or leave it out";
                return Err(Refused::new(format!("has a backslash before {{{{ {} }}}}", value.name()), fix));
            }
            if events.iter().all(|kind| value.of(whom(*kind)) == Has::Never) {
                let fix = "leave it out, or subscribe to events that have it: docs/webhooks.md lists them";
                return Err(Refused::new(format!("names {}, which none of its events has", value.name()), fix));
            }
        }
        let tested = [("webhook.test", Whom::Test)];
        for (name, whom) in events.iter().map(|kind| (kind.name(), whom(*kind))).chain(tested) {
            for least in [Has::Always, Has::Perhaps] {
                let of = |value: BodyValue| {
                    let has = value.of(whom);
                    if has == Has::Always || has == least { value.sample() } else { Value::Null }
                };
                let filled = self.fill(of).unwrap_or_default();
                if let Some(error) = serde_json::from_str::<Value>(&filled).err().filter(|_| self.is_json) {
                    let fix = "write JSON, in which {{ name }} stands for a whole value, or inside of quotes for its text; or set the \
                               header content-type to text/plain";
                    return Err(Refused::new(format!("is not JSON for {name}: {error}"), fix));
                }
            }
        }
        Ok(())
    }

    /// Its parts, and where each begins; `None` behind a backslash, where what follows would be a part of an escape.
    fn places(&self) -> impl Iterator<Item = (&Piece<BodyValue>, Option<Place>)> {
        let (mut is_quoted, mut is_escaped) = (false, false);
        self.text.expose().pieces().iter().map(move |piece| {
            let place = match (self.is_json, is_quoted) {
                (false, _) => Some(Place::Plain),
                (true, true) => (!is_escaped).then_some(Place::Quoted),
                (true, false) => Some(Place::Whole),
            };
            if let Piece::Text(text) = piece {
                for character in text.chars() {
                    match character {
                        _ if is_escaped => is_escaped = false,
                        '\\' if is_quoted => is_escaped = true,
                        '"' => is_quoted = !is_quoted,
                        _ => {}
                    }
                }
            }
            (piece, place)
        })
    }

    /// The body with these values, `null` for what there is not; `None` if it is longer than a body may be.
    pub fn fill(&self, of: impl Fn(BodyValue) -> Value) -> Option<String> {
        let mut filled = String::new();
        for (piece, place) in self.places() {
            match (piece, place) {
                (Piece::Text(text), _) => filled.push_str(text),
                (Piece::Of(value), Some(Place::Whole)) => filled.push_str(&of(*value).to_string()),
                (Piece::Of(value), Some(Place::Quoted)) => {
                    let quoted = Value::String(words(&of(*value))).to_string();
                    filled.push_str(quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))?);
                }
                (Piece::Of(value), Some(Place::Plain) | None) => filled.push_str(&visible(&words(&of(*value)))),
            }
            if filled.len() > FILLED_BYTES_MAX {
                return None;
            }
        }
        Some(filled)
    }

    /// Whether a receiver can tell a test by what is in it.
    pub fn tells_a_test(&self) -> bool {
        let telling =
            [BodyValue::Type, BodyValue::Id, BodyValue::Reason, BodyValue::Message, BodyValue::Event].map(Piece::Of);
        self.text.expose().pieces().iter().any(|piece| telling.contains(piece))
    }

    /// What its owner wrote into it, text by text; an answer that repeats one may repeat a credential.
    pub fn written(&self) -> Vec<String> {
        let bare = self.fill(|_| Value::Null).unwrap_or_default();
        match serde_json::from_str(&bare) {
            Ok(value) => leaves(&value),
            Err(_) => bare.split_whitespace().map(str::to_owned).collect(),
        }
    }
}

fn malformed(why: &Malformed) -> Refused {
    match why {
        Malformed::Open => Refused::new(why.to_string(), "close it, or leave out the {{"),
        Malformed::Unknown(name) => {
            let names = || BodyValue::ALL.into_iter().map(BodyValue::name);
            let fix = match nearest(name, names()) {
                Some(meant) => format!("did you mean {{{{ {meant} }}}}?"),
                None => format!("write {}", listed(names())),
            };
            Refused::new(format!("names {}, which is no value of an event", unknown(name)), fix)
        }
    }
}

/// A value as a part of a text: the items of a list with commas between, and nothing for what there is not.
fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(members) => members.values().flat_map(leaves).collect(),
        Value::Null | Value::Bool(_) => Vec::new(),
        Value::String(_) | Value::Number(_) => vec![words(value)],
    }
}

#[cfg(test)]
mod tests;
