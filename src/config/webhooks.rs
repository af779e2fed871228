//! Reads the webhooks file: the old form, and the optional additions to it. See [`Hook`] for what comes out.
//!
//! ```json
//! {"webhooks": [{"name": "web", "url": "https://ci.example.com/purged", "method": "POST",
//!                "headers": {"Authorization": "Bearer …"}, "parameters": {"site": "web"}}]}
//! ```
//!
//! URLs, headers and parameters may all hold credentials, so no problem ever quotes one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use super::address::{Refused, WebUrl};
use super::hook::{Hook, HookFormat, WorkloadPattern, event, format, header, is_object_name, key, method, pattern};
use super::json::{self, Json, Member, Node, pointer};
use super::layers::Lines;
use super::mask::{MASK, Secret, shown};
use super::problem::{Findings, Place};
use super::suggest::nearest;
use super::unread;
use super::values::parse_duration;
use domain::notice::Kind;

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
const MEMBERS: [&str; 12] = [
    "name",
    "url",
    "method",
    "headers",
    "parameters",
    "events",
    "workloads",
    "format",
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
            "" => Err(Refused::new("is empty", "write the name of the Deployment")),
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
        let format = self.optional(members.get("format"), format);
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
            events: events?.map_or_else(|| BTreeSet::from([Kind::PurgeCompleted]), BTreeSet::from_iter),
            is_old_form,
            workloads: workloads?,
            format: format?.unwrap_or(HookFormat::Form),
            secrets: secrets?,
            timeout: timeout?.unwrap_or(self.defaults.timeout),
            schedule: schedule?.unwrap_or_else(|| self.defaults.schedule.clone()),
        })
    }

    /// In the old form the hook's name is the Deployment's.
    fn named_workload(
        &mut self,
        members: &BTreeMap<&'static str, Field<'_>>,
        name: &str,
    ) -> Option<Vec<WorkloadPattern>> {
        if is_object_name(name) {
            return Some(vec![WorkloadPattern::Name(name.to_owned())]);
        }
        let fix = "write the Deployment's name, or name the workloads in \"workloads\"";
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
        let mut found = BTreeMap::new();
        for Member { name, offset, node } in members {
            let meant = nearest(name, known.iter().copied());
            let pointer = pointer(&at.pointer, if meant.is_some() { name } else { MASK });
            let place = self.lines.place(self.path, *offset);
            match known.iter().find(|known| known.eq_ignore_ascii_case(name)) {
                None => {
                    let fix = match meant {
                        Some(meant) => format!("did you mean \"{meant}\"?"),
                        None => format!("remove it; there are {}", known.join(", ")),
                    };
                    self.findings.refuse(&place, &pointer, None, "is not known here", fix);
                }
                Some(known) => {
                    if found.insert(*known, Field { node, pointer: pointer.clone() }).is_some() {
                        self.findings.refuse(&place, &pointer, None, "is given twice", "leave one of them out");
                    }
                }
            }
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
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;

    use super::super::hook::HookMethod;
    use super::*;

    const FILE: &str = "/etc/allclear/hooks.json";

    fn read_hooks(text: &str) -> (Option<Vec<Hook>>, Vec<String>) {
        let defaults = HookDefaults { timeout: Duration::from_secs(15), schedule: vec![Duration::ZERO] };
        let mut findings = Findings::default();
        let read_file = |path: &Path| match path.to_str() {
            Some("/etc/allclear/key") => Ok("raw key\n".to_owned()),
            Some("/etc/allclear/empty") => Ok("\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let hooks = parse(text, Path::new(FILE), &defaults, &read_file, &mut findings);
        findings.problems.sort();
        (hooks, findings.problems.iter().map(|problem| problem.to_string().replace("\n    fix", "; fix")).collect())
    }

    fn hook(text: &str) -> Hook {
        let (hooks, problems) = read_hooks(&format!("{{\"webhooks\": [{text}]}}"));
        assert!(problems.is_empty(), "{problems:?}");
        hooks.unwrap().remove(0)
    }

    const OLD: &str = r#""name": "web", "url": "https://ci.example.com/t0ken", "method": "post""#;

    #[test]
    fn the_old_form_is_understood() {
        let text = r#"{"Name": "web", "url": "http://10.0.0.7/x", "method": "GET", "headers": {"X-Key": "k"},
                       "parameters": {"site": "web", "count": 3, "force": true}}"#;
        let hook = hook(text);
        assert_eq!((hook.name.as_str(), hook.method, hook.format), ("web", HookMethod::Get, HookFormat::Form));
        assert_eq!(hook.url.expose().as_str(), "http://10.0.0.7/x");
        assert_eq!(hook.headers, BTreeMap::from([("x-key".to_owned(), Secret::new("k".to_owned()))]));
        let parameters: Vec<(&str, &str)> =
            hook.parameters.iter().map(|(name, value)| (name.as_str(), value.expose().as_str())).collect();
        assert_eq!(parameters, [("count", "3"), ("force", "true"), ("site", "web")]);
        assert_eq!((hook.events, hook.is_old_form), (BTreeSet::from([Kind::PurgeCompleted]), true));
        assert_eq!(hook.workloads, [WorkloadPattern::Name("web".to_owned())]);
        assert_eq!((hook.timeout, hook.schedule), (Duration::from_secs(15), vec![Duration::ZERO]));
        assert_eq!(hook.secrets, []);
    }

    #[test]
    fn the_additions_are_understood() {
        let key = format!("whsec_{}", BASE64.encode([7; 32]));
        let text = format!(
            r#"{{{OLD}, "events": ["purge.completed", "purge.stalled"], "workloads": ["*", "shop/web", "blog/*"],
                "format": "json", "secret": ["{key}", "old"], "secretFile": "key", "timeout": "5s", "retry": ["0s", "1m"]}}"#
        );
        let hook = hook(&text);
        assert_eq!((hook.events.len(), hook.is_old_form, hook.format), (2, false, HookFormat::Json));
        let patterns: Vec<String> = hook.workloads.iter().map(ToString::to_string).collect();
        assert_eq!(patterns, ["*", "shop/web", "blog/*"]);
        let keys: Vec<&[u8]> = hook.secrets.iter().map(|secret| secret.expose().as_slice()).collect();
        assert_eq!(keys, [&[7_u8; 32][..], b"old", b"raw key"]);
        assert_eq!(hook.timeout, Duration::from_secs(5));
        assert_eq!(hook.schedule, [Duration::ZERO, Duration::from_secs(60)]);
        assert!(hook.workloads[1].matches("shop", "web") && !hook.workloads[1].matches("blog", "web"));
    }

    #[test]
    fn every_mistake_is_told_with_pointer_and_line() {
        let text = r#"{"webhooks": [
{"name": "Web!", "url": "ci.example.com/t0ken", "method": "SEND", "headers": {"a b": "s3cret", "Content-Length": "1"}},
{"url": 5, "method": "GET", "methods": "GET", "events": ["purge.complete"], "timeout": "90s", "retry": [],
 "secret": "whsec_s3cret", "secretFile": ["empty", "gone"], "workloads": "web"},
{"name": "a", "name": "b", "url": "http://x", "method": "GET", "parameters": {"p": null}}, 7]}"#;
        let (hooks, problems) = read_hooks(text);
        assert_eq!(hooks, None);
        let expected = [
            (2, 10, "/webhooks/0/name: cannot be the name of a Deployment"),
            (2, 25, "/webhooks/0/url: is not a URL"),
            (2, 59, "/webhooks/0/method: is not a method"),
            (2, 86, "/webhooks/0/headers/•••: is not a name of a header"),
            (2, 114, "/webhooks/0/headers/•••: is a header that allclear sets itself"),
            (3, 1, "/webhooks/1: has no name"),
            (3, 9, "/webhooks/1/url: is a number; fix: write a text"),
            (3, 29, "/webhooks/1/methods: is not known here; fix: did you mean \"method\"?"),
            (3, 58, "/webhooks/1/events/0: is not an event; fix: did you mean purge.completed?"),
            (3, 88, "/webhooks/1/timeout = \"90s\": is not in range"),
            (3, 104, "/webhooks/1/retry: has 0 items"),
            (4, 12, "/webhooks/1/secret: is a whsec_ key that is not base64"),
            (4, 43, "/webhooks/1/secretFile/0: is an empty key"),
            (
                4,
                52,
                "/webhooks/1/secretFile/1: names a file that cannot be read: there is no such file; fix: mount the key as a file beside",
            ),
            (4, 74, "/webhooks/1/workloads: is a text; fix: write a list"),
            (5, 15, "/webhooks/2/name: is given twice"),
            (5, 84, "/webhooks/2/parameters/•••: is null; fix: write a text"),
            (5, 92, "/webhooks/3: is a number; fix: write an object"),
        ];
        assert_eq!(problems.len(), expected.len(), "{problems:#?}");
        for (problem, (line, column, text)) in problems.iter().zip(expected) {
            let start = format!("{FILE}:{line}:{column}: {text}");
            assert!(problem.starts_with(&start), "expected: {start}\n   found: {problem}");
            assert!(!problem.contains("s3cret") && !problem.contains("t0ken"), "{problem}");
        }
    }

    #[test]
    fn what_is_no_webhooks_file_is_refused() {
        for (text, expected) in [
            ("", "1:1: is not valid JSON: EOF while parsing a value"),
            ("{\"webhooks\": [}", "1:15: is not valid JSON: expected value"),
            ("[]", "1:1: /: is a list; fix: write an object"),
            ("{}", "1:1: /: has no webhooks"),
            ("{\"webhook\": []}", "1:2: /webhook: is not known here; fix: did you mean \"webhooks\"?"),
        ] {
            let (hooks, problems) = read_hooks(text);
            assert_eq!(hooks, None);
            let expected = format!("{FILE}:{expected}");
            assert!(problems.iter().any(|problem| problem.starts_with(&expected)), "{problems:?}");
        }
        assert_eq!(read_hooks("{\"webhooks\": []}"), (Some(Vec::new()), Vec::new()));
    }

    #[test]
    fn a_hook_prints_nothing_secret() {
        let text =
            format!(r#"{{{OLD}, "headers": {{"a": "t0ken"}}, "parameters": {{"b": "t0ken"}}, "secret": "t0ken"}}"#);
        let printed = format!("{:?}", hook(&text));
        assert!(!printed.contains("t0ken") && !printed.contains("116, 48"), "{printed}");
    }
}
