//! Reads the webhooks file: the old form, and the optional additions to it. See [`Hook`] for what comes out.
//!
//! ```json
//! {"webhooks": [{"name": "web", "url": "https://ci.example.com/purged", "method": "POST",
//!                "headers": {"Authorization": "Bearer …"}, "parameters": {"site": "web"}}]}
//! ```
//!
//! URLs, headers and parameters may all hold credentials, so no problem ever quotes one of them.

mod format;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use self::format::Beside;
use super::address::{Refused, WebUrl};
use super::hook::{Hook, WorkloadPattern, event, header, is_object_name, key, method, pattern};
use super::json::{self, Json, Member, Node, pointer};
use super::layers::Lines;
use super::mask::Secret;
use super::problem::{Findings, Place};
use super::suggest::{nearest, unknown};
use super::values::parse_duration;
use kernel::mask::{MASK, shown};
use kernel::text::unread;
use notices::notice::Kind;

/// Bounds of the time one attempt may take in all. Above a minute a slow receiver holds up too many others.
pub(super) const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);

/// Bounds of the wait before one attempt.
pub(super) const WAIT: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(7 * 24 * 60 * 60);

/// Attempts of one delivery at most.
pub(super) const ATTEMPTS_MAX: usize = 50;

/// Hooks in one file at most: more do not fit into a ConfigMap, at about 250 bytes each.
const HOOKS_MAX: usize = 4_000;

/// Keys of one hook at most: rotation needs two, a slow one with several senders a few more.
const KEYS_MAX: usize = 8;

/// The members of a hook.
const MEMBERS: [&str; 14] = [
    "name",
    "url",
    "method",
    "headers",
    "parameters",
    "events",
    "workloads",
    "format",
    "body",
    "bodyFile",
    "secret",
    "secretFile",
    "timeout",
    "retry",
];

/// What hooks get that do not say otherwise.
pub(super) struct HookDefaults {
    pub timeout: Duration,
    pub schedule: Vec<Duration>,
}

/// How files are read.
pub(super) type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// Reads the file that `place` named; `None` if anything in it was refused.
pub(super) fn read(
    path: &Path,
    place: &Place,
    defaults: &HookDefaults,
    read_file: ReadFile<'_>,
    findings: &mut Findings,
) -> Option<Vec<Hook>> {
    match read_file(path) {
        Ok(text) => parse(&text, path, defaults, read_file, findings),
        Err(error) => {
            let message = format!("names a file that cannot be read: {}", unread(&error));
            let fix = "mount the file there, or leave webhooks.file (WEBHOOKS_CONFIG) empty";
            findings.refuse(place, "webhooks.file", Some(shown(&path.to_string_lossy())), message, fix);
            None
        }
    }
}

fn parse(
    text: &str,
    path: &Path,
    defaults: &HookDefaults,
    read_file: ReadFile<'_>,
    findings: &mut Findings,
) -> Option<Vec<Hook>> {
    let root = match json::parse(text) {
        Ok(root) => root,
        Err(error) => {
            let place = Place::File { path: path.to_owned(), line: error.line, column: error.column };
            let message = format!("is not valid JSON: {}", error.message);
            findings.refuse(&place, "", None, message, "see configs/webhooks.json for an example");
            return None;
        }
    };
    let before = findings.problems.len();
    let mut reader = HookReader { path, lines: Lines::new(text), defaults, read_file, findings };
    let hooks = reader.hooks(&root);
    if reader.findings.problems.len() == before { Some(hooks) } else { None }
}

struct HookReader<'a> {
    path: &'a Path,
    lines: Lines,
    defaults: &'a HookDefaults,
    read_file: ReadFile<'a>,
    findings: &'a mut Findings,
}

/// A member of a hook with its pointer.
struct Field<'a> {
    node: &'a Node,
    pointer: String,
}

impl HookReader<'_> {
    fn hooks(&mut self, root: &Node) -> Vec<Hook> {
        let root = Field { node: root, pointer: String::new() };
        let Some(mut members) = self.members(&root, &["webhooks"]) else { return Vec::new() };
        let Some(list) = members.remove("webhooks") else {
            self.refuse::<()>(&root, None, Refused::new("has no webhooks", "write {\"webhooks\": [ … ]}"));
            return Vec::new();
        };
        let Some(items) = self.items(&list) else { return Vec::new() };
        if items.len() > HOOKS_MAX {
            let fix = format!("give at most {HOOKS_MAX}");
            self.refuse::<()>(&list, None, Refused::new(format!("has {} hooks", items.len()), fix));
            return Vec::new();
        }
        items.iter().filter_map(|item| self.hook(item)).collect()
    }

    fn hook(&mut self, at: &Field<'_>) -> Option<Hook> {
        let members = self.members(at, &MEMBERS)?;
        // Every member is read before the first `?`, so that no problem hides another.
        let name = self.required(at, &members, "name", |text| match text.trim() {
            "" => {
                Err(Refused::new("is empty", "write the name of the Deployment, or with \"workloads\" one of your own"))
            }
            name => Ok(name.to_owned()),
        });
        let url = self.required(at, &members, "url", WebUrl::parse);
        let method = self.required(at, &members, "method", method);
        let headers = self.texts(members.get("headers"), header);
        let parameters = self.texts(members.get("parameters"), |name, value| Ok((name.to_owned(), value.to_owned())));
        let events = self.list(members.get("events"), event);
        let workloads = self.list(members.get("workloads"), pattern);
        let workloads = match (workloads, &name) {
            (Some(Some(patterns)), _) => Some(patterns),
            (Some(None), Some(name)) => self.named_workload(&members, name),
            (_, _) => None,
        };
        let events =
            events.map(|events| events.map_or_else(|| BTreeSet::from([Kind::PurgeCompleted]), BTreeSet::from_iter));
        let beside =
            Beside { method, headers: headers.as_ref(), parameters: parameters.as_ref(), events: events.clone() };
        let format = self.format(&members, &beside);
        let secrets = self.secrets(&members);
        let timeout = self.optional(members.get("timeout"), |text| parse_duration(text, &TIMEOUT));
        let schedule = self.list(members.get("retry"), |text| parse_duration(text, &WAIT));
        let is_old_form = !members.contains_key("events");
        Some(Hook {
            name: name?,
            url: url?,
            method: method?,
            headers: headers?,
            parameters: parameters?,
            events: events?,
            is_old_form,
            workloads: workloads?,
            format: format?,
            secrets: secrets?,
            timeout: timeout?.unwrap_or(self.defaults.timeout),
            schedule: schedule?.unwrap_or_else(|| self.defaults.schedule.clone()),
        })
    }

    /// In the old form the hook's name is the Deployment's, as in the program before this one.
    fn named_workload(
        &mut self,
        members: &BTreeMap<&'static str, Field<'_>>,
        name: &str,
    ) -> Option<Vec<WorkloadPattern>> {
        if is_object_name(name) {
            return Some(vec![WorkloadPattern::Own(name.to_owned())]);
        }
        let fix = "write the Deployment's name, or name workloads of any kind in \"workloads\"";
        let refused = Refused::new("cannot be the name of a Deployment", fix);
        members.get("name").and_then(|field| self.refuse(field, Some(shown(name)), refused))
    }

    fn secrets(&mut self, members: &BTreeMap<&'static str, Field<'_>>) -> Option<Vec<Secret<Vec<u8>>>> {
        let inline = self.one_or_more(members.get("secret"), |_, text| key(text));
        let from_files = self.one_or_more(members.get("secretFile"), |reader, text| {
            // Relative to the webhooks file, so that the two can be mounted together.
            let path = reader.path.parent().unwrap_or(Path::new("")).join(text);
            let content = (reader.read_file)(&path).map_err(|error| {
                let message = format!("names a file that cannot be read: {}", unread(&error));
                Refused::new(message, "mount the key as a file beside the webhooks file, and write that file's name")
            })?;
            key(content.trim())
        });
        let (mut secrets, from_files) = (inline?, from_files?);
        secrets.extend(from_files);
        if secrets.len() <= KEYS_MAX {
            return Some(secrets);
        }
        let refused = Refused::new(format!("has {} keys", secrets.len()), format!("give at most {KEYS_MAX}"));
        members.get("secret").or(members.get("secretFile")).and_then(|field| self.refuse(field, None, refused))
    }

    /// A text that must be there.
    fn required<T>(
        &mut self,
        hook: &Field<'_>,
        members: &BTreeMap<&'static str, Field<'_>>,
        name: &str,
        parse: impl Fn(&str) -> Result<T, Refused>,
    ) -> Option<T> {
        match members.get(name) {
            Some(field) => self.optional(Some(field), parse)?,
            None => self.refuse(hook, None, Refused::new(format!("has no {name}"), format!("add \"{name}\": \"…\""))),
        }
    }

    /// A text; `Some(None)` where it is not given.
    fn optional<T>(
        &mut self,
        field: Option<&Field<'_>>,
        parse: impl Fn(&str) -> Result<T, Refused>,
    ) -> Option<Option<T>> {
        let Some(field) = field else { return Some(None) };
        let Json::Text(text) = &field.node.value else { return self.wrong_type(field, "a text") };
        match parse(text) {
            Ok(value) => Some(Some(value)),
            Err(refused) => self.refuse(field, visible(field, text), refused),
        }
    }

    /// A list of texts, not empty; `Some(None)` where it is not given.
    fn list<T>(
        &mut self,
        field: Option<&Field<'_>>,
        parse: impl Fn(&str) -> Result<T, Refused>,
    ) -> Option<Option<Vec<T>>> {
        let Some(field) = field else { return Some(None) };
        let items = self.items(field)?;
        if items.is_empty() || items.len() > ATTEMPTS_MAX {
            let fix = format!("give 1 to {ATTEMPTS_MAX}, or leave it out");
            return self.refuse(field, None, Refused::new(format!("has {} items", items.len()), fix));
        }
        let parsed: Vec<Option<T>> = items.iter().map(|item| self.optional(Some(item), &parse).flatten()).collect();
        parsed.into_iter().collect::<Option<Vec<T>>>().map(Some)
    }

    /// A text or a list of texts; empty where it is not given. Never shown.
    fn one_or_more<T>(
        &mut self,
        field: Option<&Field<'_>>,
        parse: impl Fn(&Self, &str) -> Result<T, Refused>,
    ) -> Option<Vec<T>> {
        let Some(field) = field else { return Some(Vec::new()) };
        let items = match &field.node.value {
            Json::Array(_) => self.items(field)?,
            _ => vec![Field { node: field.node, pointer: field.pointer.clone() }],
        };
        let mut parsed = Vec::with_capacity(items.len());
        for item in &items {
            parsed.push(match &item.node.value {
                Json::Text(text) => match parse(self, text) {
                    Ok(value) => Some(value),
                    Err(refused) => self.refuse(item, None, refused),
                },
                _ => self.wrong_type(item, "a text"),
            });
        }
        parsed.into_iter().collect()
    }

    /// An object of texts; numbers and truth values count as their text. Empty where it is not given. Never shown.
    fn texts(
        &mut self,
        field: Option<&Field<'_>>,
        parse: impl Fn(&str, &str) -> Result<(String, String), Refused>,
    ) -> Option<BTreeMap<String, Secret<String>>> {
        let Some(field) = field else { return Some(BTreeMap::new()) };
        let Json::Object(members) = &field.node.value else {
            return self.wrong_type(field, "an object of texts");
        };
        let mut texts = BTreeMap::new();
        let mut is_good = true;
        for Member { name, offset: _, node } in members {
            // People confuse name and value, so the name is not shown either; the place says which one it is.
            let at = Field { node, pointer: pointer(&field.pointer, MASK) };
            let text = match &node.value {
                Json::Text(text) | Json::Number(text) => text.clone(),
                Json::Truth(value) => value.to_string(),
                Json::Object(_) | Json::Array(_) | Json::Null => {
                    self.wrong_type::<()>(&at, "a text");
                    is_good = false;
                    continue;
                }
            };
            let refused = match parse(name, &text) {
                Ok((name, value)) => match texts.insert(name, Secret::new(value)) {
                    None => continue,
                    Some(_) => Refused::new("is given twice", "leave one of them out"),
                },
                Err(refused) => refused,
            };
            self.refuse::<()>(&at, None, refused);
            is_good = false;
        }
        is_good.then_some(texts)
    }

    /// The members of an object by their known names. Case does not count, as it did not for the old program, which
    /// was written in Go (<https://pkg.go.dev/encoding/json#Unmarshal>).
    fn members<'n>(&mut self, at: &Field<'n>, known: &[&'static str]) -> Option<BTreeMap<&'static str, Field<'n>>> {
        let Json::Object(members) = &at.node.value else { return self.wrong_type(at, "an object") };
        let (mut found, mut meant) = (BTreeMap::new(), Vec::new());
        for Member { name, offset, node } in members {
            let near = nearest(name, known.iter().copied());
            let pointer = pointer(&at.pointer, &unknown(name));
            let place = self.lines.place(self.path, *offset);
            match known.iter().find(|known| known.eq_ignore_ascii_case(name)) {
                None => {
                    let fix = match near {
                        Some(near) => format!("did you mean \"{near}\"?"),
                        None => format!("remove it; there are {}", known.join(", ")),
                    };
                    self.findings.refuse(&place, &pointer, None, "is not known here", fix);
                    meant.extend(
                        known.iter().find(|known| near == Some(**known)).map(|known| (*known, Field { node, pointer })),
                    );
                }
                Some(known) => {
                    if found.insert(*known, Field { node, pointer: pointer.clone() }).is_some() {
                        self.findings.refuse(&place, &pointer, None, "is given twice", "leave one of them out");
                    }
                }
            }
        }
        // A slip is reported once, and not again as a missing key.
        for (known, field) in meant {
            found.entry(known).or_insert(field);
        }
        Some(found)
    }

    fn items<'n>(&mut self, at: &Field<'n>) -> Option<Vec<Field<'n>>> {
        let Json::Array(items) = &at.node.value else { return self.wrong_type(at, "a list") };
        let field = |(index, node)| Field { node, pointer: format!("{}/{index}", at.pointer) };
        Some(items.iter().enumerate().map(field).collect())
    }

    fn wrong_type<T>(&mut self, at: &Field<'_>, wanted: &str) -> Option<T> {
        let is = at.node.value.kind();
        self.refuse(at, None, Refused::new(format!("is {is}"), format!("write {wanted}")))
    }

    fn refuse<T>(&mut self, at: &Field<'_>, value: Option<String>, refused: Refused) -> Option<T> {
        let place = self.lines.place(self.path, at.node.offset);
        let key = if at.pointer.is_empty() { "/" } else { &at.pointer };
        self.findings.refuse(&place, key, value, refused.message, refused.fix);
        None
    }
}

/// A receiver's URL is often its password, so it is not shown even if it is refused.
fn visible(field: &Field<'_>, text: &str) -> Option<String> {
    if field.pointer.to_ascii_lowercase().ends_with("/url") { None } else { Some(shown(text)) }
}

#[cfg(test)]
mod tests;
