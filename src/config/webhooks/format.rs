//! The format of a hook, and what goes with it: a body of its own, and what a format has no place for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Field, HookReader};
use crate::config::address::Refused;
use crate::config::hook::{BodyTemplate, HookFormat, HookMethod, format};
use crate::config::json::{Json, Member, Node};
use crate::config::mask::Secret;
use kernel::text::unread;
use notices::notice::Kind;

/// What else a hook says that its format has to fit; `None` for what was refused.
pub(super) struct Beside<'a> {
    pub method: Option<HookMethod>,
    pub headers: Option<&'a BTreeMap<String, Secret<String>>>,
    pub parameters: Option<&'a BTreeMap<String, Secret<String>>>,
    pub events: Option<BTreeSet<Kind>>,
}

/// Begins the headers that a CloudEvent is made of.
const CLOUD_EVENT: &str = "ce-";

impl HookReader<'_> {
    pub(super) fn format(
        &mut self,
        members: &BTreeMap<&'static str, Field<'_>>,
        beside: &Beside<'_>,
    ) -> Option<HookFormat> {
        let named = self.optional(members.get("format"), format)?;
        let body = members.get("body").or(members.get("bodyFile"));
        let format = match (named, body) {
            (None, None) => HookFormat::Form,
            (Some(Some(named)), None) => named,
            (None | Some(None), Some(body)) => HookFormat::Template(self.body(members, body, beside)?),
            (Some(Some(named)), Some(body)) => {
                let is = format!("is a body, and the format {} makes its own", named.name());
                return self.refuse(body, None, Refused::new(is, "leave out one of the two"));
            }
            (Some(None), None) => {
                let fix = "add \"body\" or \"bodyFile\"";
                let refused = Refused::new("has no body", fix);
                return members.get("format").and_then(|field| self.refuse(field, None, refused));
            }
        };
        self.fits(members, beside, &format).then_some(format)
    }

    /// Whether the rest of the hook can go with this format.
    fn fits(&mut self, members: &BTreeMap<&'static str, Field<'_>>, beside: &Beside<'_>, format: &HookFormat) -> bool {
        let name = format.name();
        let (needs_body, takes_parameters, is_cloud_event) = match format {
            HookFormat::Form | HookFormat::Json | HookFormat::Flux => (false, true, false),
            HookFormat::CloudEvents => (true, true, true),
            HookFormat::CdEvents => (true, false, true),
            HookFormat::Slack | HookFormat::Teams | HookFormat::Template(_) => (true, false, false),
        };
        let mut faults = Vec::new();
        if needs_body && beside.method == Some(HookMethod::Get) {
            faults.push(("method", format!("has no body, and the format {name} is one"), "write POST"));
        }
        if !takes_parameters && beside.parameters.is_some_and(|parameters| !parameters.is_empty()) {
            faults.push(("parameters", format!("have no place in the format {name}"), "leave them out"));
        }
        let is_reserved = |header: &String| header.starts_with(CLOUD_EVENT);
        if is_cloud_event && beside.headers.is_some_and(|headers| headers.keys().any(is_reserved)) {
            faults.push(("headers", format!("have one of those that the format {name} sets itself"), "leave out ce-…"));
        }
        let fits = faults.is_empty();
        for (member, message, fix) in faults {
            members.get(member).and_then(|field| self.refuse::<()>(field, None, Refused::new(message, fix)));
        }
        fits
    }

    fn body(
        &mut self,
        members: &BTreeMap<&'static str, Field<'_>>,
        field: &Field<'_>,
        beside: &Beside<'_>,
    ) -> Option<BodyTemplate> {
        if members.contains_key("body") && members.contains_key("bodyFile") {
            return self.refuse(field, None, Refused::new("is given beside a bodyFile", "leave out one of the two"));
        }
        let text = match (&field.node.value, members.contains_key("body")) {
            (Json::Text(text), true) => text.clone(),
            (Json::Text(name), false) => match self.body_file(name) {
                Ok(text) => text,
                Err(refused) => return self.refuse(field, None, refused),
            },
            (Json::Object(_) | Json::Array(_), true) => written(field.node),
            _ => return self.wrong_type(field, "a text"),
        };
        let media = beside.headers?.get("content-type").map(|value| media_type(value.expose()));
        let is_json = match media.as_deref() {
            None | Some("application/json") => true,
            Some("text/plain") => false,
            Some(media) if media.ends_with("+json") => true,
            Some(_) => {
                let fix = "write application/json, another type that ends in +json, or text/plain";
                return self.refuse(
                    field,
                    None,
                    Refused::new("is a body of a type that values are not escaped for", fix),
                );
            }
        };
        // The refusal quotes nothing of the body, which may hold a credential.
        match BodyTemplate::parse(&text, is_json, beside.events.as_ref()?) {
            Ok(body) => Some(body),
            Err(refused) => self.refuse(field, None, refused),
        }
    }

    /// Relative to the webhooks file, as a key's file is.
    fn body_file(&self, name: &str) -> Result<String, Refused> {
        let path = self.path.parent().unwrap_or(Path::new("")).join(name);
        (self.read_file)(&path).map_err(|error| {
            let message = format!("names a file that cannot be read: {}", unread(&error));
            Refused::new(message, "mount the body as a file beside the webhooks file, and write that file's name")
        })
    }
}

/// `application/json` of `Application/JSON; charset=utf-8`.
fn media_type(value: &str) -> String {
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The text of a body that was written as JSON, and not as a text with JSON in it.
fn written(node: &Node) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match &node.value {
        Json::Object(members) => {
            let member = |Member { name, node, .. }: &Member| format!("{}:{}", quoted(name), written(node));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        }
        Json::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(",")),
        Json::Text(text) => quoted(text),
        Json::Number(text) => text.clone(),
        Json::Truth(value) => value.to_string(),
        Json::Null => "null".to_owned(),
    }
}
