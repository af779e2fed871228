//! `workloads.custom`: kinds that are not built in, and when the operator calls one complete.

use std::collections::BTreeSet;

use config::{Map, Value, ValueKind};

use super::address::Refused;
use super::hook::is_object_name as is_dns_name;
use super::suggest::{listed, nearest};
use super::values::{Values, label as dns_label};
use kernel::expression::Expression;
use kernel::id::Kind;
use kernel::id::custom::{CustomKind, Declaration};
use kernel::mask::shown;

const KEY: &str = "workloads.custom";

/// Kinds at most: each has a watch of its own in each namespace that is listed.
const KINDS_MAX: usize = 8;

/// Bytes of a JSON pointer at most.
const POINTER_BYTES_MAX: usize = 128;

/// Bytes of plural and group at most: the ledger's keys have 253, and a namespace and a name are in them, too.
const WORD_BYTES_MAX: usize = 126;

const NAMES: [&str; 8] = ["api", "kind", "plural", "template", "selector", "hash_label", "complete", "failed"];

/// First words of keys of the ledger, and of names of other things.
const RESERVED: [&str; 8] =
    ["deployment", "statefulset", "daemonset", "rollout", "pipeline", "repo", "hashed", "moved"];

type Problems = Vec<(Option<String>, Refused)>;

/// Reads and declares them.
pub(super) fn read(values: &mut Values<'_>) -> Option<BTreeSet<Kind>> {
    let accepts = format!("list of tables with {}", listed(NAMES));
    let tables = values.tables(KEY, &accepts, KINDS_MAX)?;
    let mut declared: Vec<Declaration> = Vec::new();
    let mut sound = true;
    for (index, table) in tables.iter().enumerate() {
        let read = declaration(table).and_then(|read| apart(&declared, &read).map(|()| read));
        match read {
            Ok(read) => declared.push(read),
            Err(problems) => {
                sound = false;
                for (value, Refused { message, fix }) in problems {
                    let message = format!("entry {}: {message}", index + 1);
                    let _: Option<()> = values.refuse(KEY, value, Refused { message, fix });
                }
            }
        }
    }
    if !sound {
        return None;
    }
    match declared.into_iter().map(CustomKind::declare).collect::<Result<Vec<_>, _>>() {
        Ok(kinds) => Some(kinds.into_iter().map(Kind::Custom).collect()),
        Err(error) => values.refuse(KEY, None, Refused::new(error.to_string(), "start the program anew")),
    }
}

/// Whether a kind is another one than those before it, and its name cannot be taken for a part of theirs.
fn apart(declared: &[Declaration], read: &Declaration) -> Result<(), Problems> {
    let begins = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'));
    let clash = declared.iter().find(|other| {
        let (one, other) = (read.word.as_str(), other.word.as_str());
        one == other || begins(one, other) || begins(other, one)
    });
    match clash {
        None => Ok(()),
        Some(other) if other.word == read.word => {
            let message = format!("{} is declared twice", read.word);
            Err(vec![(None, Refused::new(message, "leave one of the entries out"))])
        }
        Some(other) => {
            let message =
                format!("{} and {} begin alike, and their records could not be told apart", read.word, other.word);
            Err(vec![(None, Refused::new(message, "leave one of them out"))])
        }
    }
}

fn declaration(table: &Map<String, Value>) -> Result<Declaration, Problems> {
    let mut problems = Problems::new();
    for name in table.keys().filter(|name| !NAMES.contains(&name.as_str())) {
        let fix = match nearest(name, NAMES) {
            Some(known) => format!("did you mean {known}?"),
            None => format!("remove it, or use {}", listed(NAMES)),
        };
        problems.push((None, Refused::new(format!("{} is not a key", shown(name)), fix)));
    }
    let mut entry = Entry { table, problems };
    let api = entry.needed("api", "apps.kruise.io/v1alpha1", api);
    let kind = entry.needed("kind", "CloneSet", kind);
    let plural = entry.text("plural", "clonesets", plural);
    let template = entry.needed("template", "/spec/template", |text| pointer(text, &["/spec/"]));
    let selector = entry.needed("selector", "/spec/selector", |text| pointer(text, &["/spec/", "/status/"]));
    let hash_label = entry.needed("hash_label", "controller-revision-hash", label);
    let example = "self.status.updatedReadyReplicas == self.spec.replicas";
    let complete = entry.needed("complete", example, |text| expression(text, true));
    let failed = entry.text("failed", "self.status.phase == 'Failed'", |text| expression(text, false));
    let word = match (&api, &kind) {
        (Some((group, _)), Some(kind)) => {
            let plural = plural.flatten().unwrap_or_else(|| plural_of(kind));
            entry.word(group, kind, &plural)
        }
        (_, _) => None,
    };
    let Entry { problems, .. } = entry;
    let read = || {
        let (group, version) = api?;
        let (word, kind, template, selector) = (word?, kind?, template?, selector?);
        let (hash_label, complete, failed) = (hash_label?, complete?, failed?);
        let api_version = format!("{group}/{version}");
        Some(Declaration { api_version, kind, word, template, selector, hash_label, complete, failed })
    };
    match read() {
        Some(read) if problems.is_empty() => Ok(read),
        _ => Err(problems),
    }
}

/// One entry while it is read.
struct Entry<'a> {
    table: &'a Map<String, Value>,
    problems: Problems,
}

impl Entry<'_> {
    /// A text, `None` where it is left out or empty; nothing at all after a problem.
    fn text<T>(
        &mut self,
        name: &'static str,
        example: &str,
        parse: impl FnOnce(&str) -> Result<T, Refused>,
    ) -> Option<Option<T>> {
        let text = match self.table.get(name).map(|value| &value.kind) {
            None | Some(ValueKind::Nil) => return Some(None),
            Some(ValueKind::String(text)) => text.trim(),
            Some(_) => {
                let fix = format!("write {name} = \"{example}\"");
                self.problems.push((None, Refused::new(format!("{name} is not a text in quotes"), fix)));
                return None;
            }
        };
        if text.is_empty() {
            return Some(None);
        }
        match parse(text) {
            Ok(read) => Some(Some(read)),
            Err(Refused { message, fix }) => {
                self.problems.push((Some(shown(text)), Refused::new(format!("{name} {message}"), fix)));
                None
            }
        }
    }

    /// A text that must be there.
    fn needed<T>(
        &mut self,
        name: &'static str,
        example: &str,
        parse: impl FnOnce(&str) -> Result<T, Refused>,
    ) -> Option<T> {
        let read = self.text(name, example, parse)?;
        // A slip is reported once, and not again as a missing key.
        let is_meant = self
            .table
            .keys()
            .any(|key| key != name && nearest(key, NAMES) == Some(name) && !NAMES.contains(&key.as_str()));
        if read.is_none() && !is_meant {
            let fix = format!("add {name} = \"{example}\", or what it is for this kind");
            self.problems.push((None, Refused::new(format!("has no {name}"), fix)));
        }
        read
    }

    /// What the kind is called in records and on the command line.
    fn word(&mut self, group: &str, kind: &str, plural: &str) -> Option<String> {
        let word = format!("{plural}.{group}");
        let built_in = group == "apps" || group == "argoproj.io" && kind == "Rollout";
        let refused = if built_in && Kind::ALL.into_iter().any(|known| known.name() == kind) {
            Refused::new(format!("{kind} is built in"), "leave the entry out; workloads.kinds switches it on and off")
        } else if RESERVED.contains(&plural) {
            Refused::new(format!("plural {plural} means something else to allclear"), "this kind cannot be followed")
        } else if word.len() > WORD_BYTES_MAX {
            let message = format!("{word} has more than {WORD_BYTES_MAX} characters");
            Refused::new(message, "this kind cannot be followed")
        } else {
            return Some(word);
        };
        self.problems.push((None, refused));
        None
    }
}

fn is_dns_label(text: &str) -> bool {
    dns_label(text).is_ok()
}

/// As the API server names most kinds (`UnsafeGuessKindToResource` of apimachinery).
fn plural_of(kind: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    match kind.strip_suffix('y') {
        _ if kind.ends_with('s') => format!("{kind}es"),
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    }
}

fn api(text: &str) -> Result<(String, String), Refused> {
    let refused =
        || Refused::new("is no group with a version", "write it as apiVersion has it, such as apps.kruise.io/v1alpha1");
    let (group, version) = text.split_once('/').ok_or_else(refused)?;
    if is_dns_name(group) && is_dns_label(version) {
        Ok((group.to_owned(), version.to_owned()))
    } else {
        Err(refused())
    }
}

fn kind(text: &str) -> Result<String, Refused> {
    let is_kind = text.starts_with(|c: char| c.is_ascii_uppercase()) && is_dns_label(&text.to_ascii_lowercase());
    let refused = || Refused::new("is no kind", "write it as objects do, such as CloneSet");
    is_kind.then(|| text.to_owned()).ok_or_else(refused)
}

fn plural(text: &str) -> Result<String, Refused> {
    let refused = || Refused::new("is no plural", "write it as RBAC rules do, such as clonesets");
    is_dns_label(text).then(|| text.to_owned()).ok_or_else(refused)
}

/// A JSON pointer (RFC 6901) to one of these parts of an object.
fn pointer(text: &str, parts: &[&str]) -> Result<String, Refused> {
    let is_within = parts.iter().any(|part| text.strip_prefix(part).is_some_and(|rest| !rest.is_empty()));
    let is_escaped = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    let is_plain = !text.ends_with('/') && !text.contains(|c: char| c.is_control() || c == ' ');
    let fix = format!(
        "write the names on the way with a slash before each, beginning with {}",
        listed(parts.iter().copied())
    );
    match () {
        () if text.len() > POINTER_BYTES_MAX => {
            Err(Refused::new(format!("has more than {POINTER_BYTES_MAX} bytes"), fix))
        }
        () if !is_within || !is_escaped || !is_plain => {
            Err(Refused::new("is no JSON pointer into that part of an object", fix))
        }
        () => Ok(text.to_owned()),
    }
}

/// The key of a label. <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set>
fn label(text: &str) -> Result<String, Refused> {
    const NAME_CHARS_MAX: usize = 63;
    let (prefix, name) = text.rsplit_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = name.len() <= NAME_CHARS_MAX
        && name.chars().all(is_inner)
        && is_end(name.chars().next())
        && is_end(name.chars().next_back());
    let refused = || Refused::new("is no key of a label", "write one such as controller-revision-hash");
    if is_name && prefix.is_none_or(is_dns_name) { Ok(text.to_owned()) } else { Err(refused()) }
}

/// `by_status`: it must ask the status, or it would hold before a controller has done anything.
fn expression(text: &str, by_status: bool) -> Result<Expression, Refused> {
    let read = Expression::parse(text).map_err(|error| {
        Refused::new(
            error.to_string(),
            "write CEL over self, such as self.status.updatedReadyReplicas == self.spec.replicas",
        )
    })?;
    if by_status && !text.contains("self.status") {
        let fix = "compare a field of self.status, which its controller writes";
        return Err(Refused::new("does not ask the status", fix));
    }
    Ok(read)
}
