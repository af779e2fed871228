//! `[[cache]]`: caches between the pods and the CDN, and how each is asked to let go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use config::{Map, Value, ValueKind};
use http::{HeaderName, HeaderValue};

use super::address::Refused;
use super::suggest::{listed, nearest};
use super::values::{MINUTE, SECOND, Values, label, parse_duration};
use kernel::mask::shown;
use kernel::names::host::Host;
use purge::caches::form::Form;
use purge::caches::{Cache, Method, Port, Service};
use purge::workloads::extent::{Extent, ROUTES};

const KEY: &str = "cache";

/// Caches at most: each is asked at every purge of a host that it has, and has series of its own.
const CACHES_MAX: usize = 16;

/// Items of one list, and headers of one cache, at most.
const ITEMS_MAX: usize = 100;

/// Characters of a form at most.
const FORM_CHARS_MAX: usize = 1_024;

/// Characters of the name of a port at most (RFC 6335, 5.1).
const PORT_CHARS_MAX: usize = 15;

const NAMES: [&str; 9] = ["name", "service", "method", "path", "headers", "hosts", "gone", "wildcard", "timeout"];

/// The answers of Varnish and nginx where nothing was cached.
const GONE: [u16; 2] = [404, 412];

/// A pod that restarts is back within a minute.
const TIMEOUT: Duration = MINUTE;

/// Headers that are the connection's, not the cache's.
const OF_THE_CONNECTION: [&str; 7] =
    ["connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect"];

type Problems = Vec<(Option<String>, Refused)>;

/// Reads them. `paths`: what is purged where a workload does not say.
pub(super) fn read(values: &mut Values<'_>, paths: Option<&Extent>) -> Option<Vec<Arc<Cache>>> {
    let accepts = format!("list of tables with {}", listed(NAMES));
    let tables = values.tables(KEY, &accepts, CACHES_MAX)?;
    let mut caches: Vec<Arc<Cache>> = Vec::new();
    let mut sound = true;
    for (index, table) in tables.iter().enumerate() {
        let read = cache(table).and_then(|cache| judged(cache, &caches, paths));
        match read {
            Ok(cache) => caches.push(Arc::new(cache)),
            Err(problems) => {
                sound = false;
                for (value, Refused { message, fix }) in problems {
                    let message = format!("entry {}: {message}", index + 1);
                    let _: Option<()> = values.refuse(KEY, value, Refused { message, fix });
                }
            }
        }
    }
    sound.then_some(caches)
}

/// What can be seen to work never is refused here, and not at the first purge.
fn judged(cache: Cache, before: &[Arc<Cache>], paths: Option<&Extent>) -> Result<Cache, Problems> {
    let mut problems = Problems::new();
    let mut refuse = |message: String, fix: String| problems.push((None, Refused::new(message, fix)));
    let (name, method) = (&cache.name, cache.method.name());
    if before.iter().any(|other| other.name == *name) {
        refuse(format!("{name} is there twice"), "give each cache a name of its own".to_owned());
    }
    // Paths of routes end in a star.
    let by_routes = paths.filter(|paths| paths.wants_routes()).map(|_| ROUTES.to_owned());
    let written = || paths?.written().find(|path| path.is_wildcard() || path.is_tag()).map(ToString::to_string);
    let star = by_routes.or_else(written);
    if let Some(star) = star.filter(|_| !cache.takes_stars()) {
        refuse(
            format!("{name} can never be asked for {star}, which purge.paths has: one {method} names one page"),
            "ask by method = \"BAN\"; or set wildcard = true, where the cache takes a path that ends in a star for all pages that begin so; \
             or name single pages in purge.paths"
                .to_owned(),
        );
    }
    if cache.method == Method::Get
        && cache.headers.is_empty()
        && Form::parse("{path}").is_ok_and(|page| page == cache.path)
    {
        let fix = "write the address that means a purge, as path = \"/purge{path}\"".to_owned();
        refuse(format!("{name} is asked for the page itself by GET, which purges nothing"), fix);
    }
    if problems.is_empty() { Ok(cache) } else { Err(problems) }
}

fn cache(table: &Map<String, Value>) -> Result<Cache, Problems> {
    let mut problems = Problems::new();
    for name in table.keys().filter(|name| !NAMES.contains(&name.as_str())) {
        let fix = match nearest(name, NAMES) {
            Some(known) => format!("did you mean {known}?"),
            None => format!("remove it, or use {}", listed(NAMES)),
        };
        problems.push((None, Refused::new(format!("{} is not a key", shown(name)), fix)));
    }
    let mut entry = Entry { table, problems };
    let name = entry.needed("name", "varnish", |text| {
        label(text)
            .map_err(|_| Refused::new("is not a name", "write lower-case letters, digits and hyphens, 63 at most"))
    });
    let service = entry.needed("service", "shop/varnish:80", service);
    let method = entry.needed("method", "BAN", method);
    let path = entry.text("path", path).map(|path| path.or_else(|| Form::parse("{path}").ok()));
    let headers = entry.headers();
    let hosts = entry.list("hosts", "\"www.example.com\"", |value| host(text_of(value)?));
    let gone = entry.list("gone", "404", status);
    let wildcard = entry.truth("wildcard");
    let timeout = entry.text("timeout", |text| parse_duration(text, &(SECOND..=10 * MINUTE)));
    let Entry { problems, .. } = entry;
    let read = || {
        Some(Cache {
            name: name?,
            service: service?,
            method: method?,
            path: path??,
            headers: headers?,
            hosts: hosts?.unwrap_or_default(),
            gone: gone?.unwrap_or_else(|| GONE.into()),
            wildcard: wildcard?,
            timeout: timeout?.unwrap_or(TIMEOUT),
        })
    };
    match read() {
        Some(cache) if problems.is_empty() => Ok(cache),
        _ => Err(problems),
    }
}

/// One entry while it is read.
struct Entry<'a> {
    table: &'a Map<String, Value>,
    problems: Problems,
}

impl Entry<'_> {
    fn given(&self, name: &str) -> Option<ValueKind> {
        self.table.get(name).map(|value| value.kind.clone()).filter(|kind| *kind != ValueKind::Nil)
    }

    fn refuse<T>(&mut self, value: Option<String>, message: String, fix: impl Into<String>) -> Option<T> {
        self.problems.push((value, Refused::new(message, fix)));
        None
    }

    /// A text; `Some(None)` where it is left out, and nothing at all after a problem.
    fn text<T>(&mut self, name: &'static str, parse: impl FnOnce(&str) -> Result<T, Refused>) -> Option<Option<T>> {
        match self.given(name) {
            None => Some(None),
            Some(ValueKind::String(text)) => match parse(text.trim()) {
                Ok(value) => Some(Some(value)),
                Err(Refused { message, fix }) => self.refuse(Some(shown(&text)), format!("{name} {message}"), fix),
            },
            Some(_) => self.refuse(None, format!("{name} is not a text"), "put it in quotes"),
        }
    }

    /// A text that must be there.
    fn needed<T>(
        &mut self,
        name: &'static str,
        example: &str,
        parse: impl FnOnce(&str) -> Result<T, Refused>,
    ) -> Option<T> {
        let is_meant = self.table.keys().any(|key| key != name && nearest(key, NAMES) == Some(name));
        match self.text(name, parse)? {
            Some(value) => Some(value),
            // A slip is reported once, and not again as a missing key.
            None if is_meant => None,
            None => self.refuse(None, format!("has no {name}"), format!("add {name} = \"{example}\"")),
        }
    }

    fn truth(&mut self, name: &'static str) -> Option<bool> {
        match self.given(name) {
            None => Some(false),
            Some(ValueKind::Boolean(truth)) => Some(truth),
            Some(_) => self.refuse(None, format!("{name} is neither true nor false"), "write true or false"),
        }
    }

    /// `Some(None)` where it is left out.
    fn list<T: Ord>(
        &mut self,
        name: &'static str,
        example: &str,
        parse: impl Fn(&Value) -> Result<T, Refused>,
    ) -> Option<Option<BTreeSet<T>>> {
        let items = match self.given(name) {
            None => return Some(None),
            Some(ValueKind::Array(items)) if items.len() <= ITEMS_MAX => items,
            Some(_) => {
                let fix = format!("write {name} = [{example}], with {ITEMS_MAX} items at most");
                return self.refuse(None, format!("{name} is not a list"), fix);
            }
        };
        let read: Result<BTreeSet<T>, Refused> = items.iter().map(parse).collect();
        match read {
            Ok(read) => Some(Some(read)),
            Err(Refused { message, fix }) => self.refuse(None, format!("an item of {name} {message}"), fix),
        }
    }

    /// The headers of each request. Values are not quoted where they are refused: somebody may take one for a secret.
    fn headers(&mut self) -> Option<Vec<(String, Form)>> {
        let given = match self.given("headers") {
            None => return Some(Vec::new()),
            Some(ValueKind::Table(given)) if given.len() <= ITEMS_MAX => given,
            Some(_) => {
                let fix = "write headers = { x-ban = \"{regex}\" }";
                return self.refuse(None, "headers is not a table of texts".to_owned(), fix);
            }
        };
        let mut headers = Vec::new();
        for (name, value) in &given {
            match header(name, value) {
                Ok(header) => headers.push(header),
                Err(Refused { message, fix }) => {
                    let message = format!("header {} {message}", shown(name));
                    let _: Option<()> = self.refuse(None, message, fix);
                }
            }
        }
        headers.sort_by(|one, other| one.0.cmp(&other.0));
        (headers.len() == given.len()).then_some(headers)
    }
}

fn text_of(value: &Value) -> Result<&str, Refused> {
    match &value.kind {
        ValueKind::String(text) => Ok(text.trim()),
        _ => Err(Refused::new("is not a text", "put it in quotes")),
    }
}

fn header(name: &str, value: &Value) -> Result<(String, Form), Refused> {
    let read = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| Refused::new("is no name of a header", "write a name such as x-ban"))?;
    if OF_THE_CONNECTION.contains(&read.as_str()) {
        return Err(Refused::new("is the connection's own", "leave it out"));
    }
    let text = text_of(value)?;
    if HeaderValue::from_str(text).is_err() || text.len() > FORM_CHARS_MAX {
        let fix = format!("write one line, {FORM_CHARS_MAX} characters at most");
        return Err(Refused::new("has a value that cannot be sent", fix));
    }
    Ok((read.as_str().to_owned(), form(text)?))
}

fn form(text: &str) -> Result<Form, Refused> {
    Form::parse(text)
        .map_err(|error| Refused::new(error.to_string(), "write {host}, {path} or {regex}, without other braces"))
}

fn path(text: &str) -> Result<Form, Refused> {
    let form = form(text)?;
    let fix = "write \"{path}\", or \"/purge{path}\"; a regular expression goes into a header";
    // The rest of a target is a path, which is encoded already; what is written here has to be as well.
    let is_plain = text.len() <= FORM_CHARS_MAX && text.chars().all(|c| c.is_ascii_graphic() && c != '#');
    match form.is_target() && !form.has_regex() && is_plain {
        true => Ok(form),
        false => Err(Refused::new("is no target of a request", fix)),
    }
}

fn service(text: &str) -> Result<Service, Refused> {
    let wrong = || Refused::new("is no Service and port", "write namespace/name:port, as in shop/varnish:80");
    let (namespace, rest) = text.split_once('/').ok_or_else(wrong)?;
    let (name, port) = rest.split_once(':').ok_or_else(wrong)?;
    let port = match port.parse::<u16>() {
        Ok(number) if number > 0 => Port::Number(number),
        Ok(_) => return Err(wrong()),
        Err(_) if port.len() <= PORT_CHARS_MAX && port.bytes().any(|b| b.is_ascii_lowercase()) => {
            Port::Name(label(port).map_err(|_| wrong())?)
        }
        Err(_) => return Err(wrong()),
    };
    let [namespace, name] = [label(namespace).map_err(|_| wrong())?, label(name).map_err(|_| wrong())?];
    Ok(Service { namespace, name, port })
}

fn method(text: &str) -> Result<Method, Refused> {
    [Method::Ban, Method::Purge, Method::Get]
        .into_iter()
        .find(|method| method.name().eq_ignore_ascii_case(text))
        .ok_or_else(|| Refused::new("is no method that is known here", "write BAN, PURGE or GET"))
}

/// A single star stands for any depth, as people mean it here.
fn host(text: &str) -> Result<Host, Refused> {
    let refused = |_| Refused::new("is not a host", "write www.example.com or *.example.com");
    Ok(Host::parse(text).map_err(refused)?.at_any_depth())
}

fn status(value: &Value) -> Result<u16, Refused> {
    let wrong =
        || Refused::new("is no status that may mean done", "write statuses from 400 to 499, as in gone = [404, 412]");
    match value.kind {
        ValueKind::I64(status) if (400..=499).contains(&status) => u16::try_from(status).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}
