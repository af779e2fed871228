//! `traces.*`: where spans are sent. Off unless an address is given, here or in the variables that OpenTelemetry has for it.
//!
//! Those variables: <https://opentelemetry.io/docs/specs/otel/protocol/exporter/> and
//! <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>. What we cannot do as they ask is a warning.

use std::collections::BTreeMap;

use config::ValueKind;
use http::{HeaderName, HeaderValue};

use super::address::{Refused, WebUrl};
use super::layers::Layer;
use super::mask::Secret;
use super::problem::{Findings, Place};
use super::values::Values;
use kernel::mask::{MASK, shown};

/// The path that collectors take spans at (<https://opentelemetry.io/docs/specs/otlp/#otlphttp-request>).
const PATH: &str = "v1/traces";

/// Headers, and attributes, at most.
const ITEMS_MAX: usize = 32;

/// Characters of a value at most.
const VALUE_CHARS_MAX: usize = 8 * 1024;

/// The port that collectors take OTLP over gRPC at, by custom (<https://opentelemetry.io/docs/specs/otlp/#otlpgrpc-default-port>).
const GRPC_PORT: u16 = 4317;

/// The only key whose values are secrets by nature.
pub(super) const HEADERS: &str = "traces.headers";

const ENDPOINT: &str = "traces.endpoint";

/// Variables that have no effect here, each with what it is about.
const WITHOUT_EFFECT: [(&str, &str); 6] = [
    ("OTEL_TRACES_SAMPLER", "every rollout is traced"),
    ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "no client certificate is sent"),
    ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "no client certificate is sent"),
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "a collector has 5 s to answer"),
    ("OTEL_EXPORTER_OTLP_COMPRESSION", "nothing is compressed"),
    ("OTEL_BSP_MAX_QUEUE_SIZE", "4096 spans wait at most"),
];

/// Where spans are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// The whole address of the collector; `None`: nothing is traced.
    pub endpoint: Option<WebUrl>,
    /// Sent with every request, by lower-case name.
    pub headers: BTreeMap<String, Secret<String>>,
    /// What is said of this installation beside what it knows itself, by name.
    pub attributes: BTreeMap<String, String>,
    /// The authorities, PEM, that the collector's certificate is verified by, read from `traces.ca_file`; `None`: those of the system.
    pub ca: Option<Vec<u8>>,
}

/// `ca`: what `traces.ca_file` holds, if that could be read.
pub(super) fn read(values: &mut Values<'_>, ca: Option<Option<Vec<u8>>>, dry_run: Option<bool>) -> Option<Traces> {
    let endpoint = values.optional(ENDPOINT, "`http` or `https` URL", WebUrl::parse);
    let headers = items(values, HEADERS, "list of `name=value`", header);
    let attributes = items(values, "traces.attributes", "list of `name=value`", attribute);
    let endpoint = endpoint?.map(|endpoint| complete(&endpoint));
    if let Some(endpoint) = &endpoint {
        advise(values, endpoint.expose(), headers.as_ref().is_some_and(|headers| !headers.is_empty()), dry_run);
    }
    let headers = headers?.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
    Some(Traces { endpoint, headers, attributes: attributes?, ca: ca? })
}

/// An address without a path means that of the protocol.
fn complete(endpoint: &WebUrl) -> WebUrl {
    let mut url = endpoint.expose().clone();
    if url.path() == "/" {
        url.set_path(PATH);
    }
    // It was one before, and has another path now.
    WebUrl::parse(url.as_str()).unwrap_or_else(|_| endpoint.clone())
}

fn advise(values: &mut Values<'_>, url: &url::Url, has_headers: bool, dry_run: Option<bool>) {
    let place = values.place(ENDPOINT);
    let mut warn = |message: &str| values.findings.warn(&place, ENDPOINT, message);
    if url.port() == Some(GRPC_PORT) {
        warn("has the port of OTLP over gRPC, which allclear does not speak: over HTTP collectors listen at 4318");
    }
    if url.scheme() == "http" && (has_headers || url.password().is_some()) {
        warn("is sent traces.headers without TLS: every program on the way can read them; use https");
    }
    if dry_run == Some(true) {
        warn("has no effect: a dry run sends nothing");
    }
}

/// A list of `name=value`, the values percent-encoded as the variables have them. No value is ever quoted.
fn items(
    values: &mut Values<'_>,
    key: &'static str,
    accepts: &str,
    judge: impl Fn(&str, String) -> Result<(String, String), Refused>,
) -> Option<BTreeMap<String, String>> {
    Some(values.unquoted(key, accepts, ITEMS_MAX, |text| item(text, &judge))?.into_iter().collect())
}

fn item(
    text: &str,
    judge: impl Fn(&str, String) -> Result<(String, String), Refused>,
) -> Result<(String, String), Refused> {
    let fix = "write name=value, with %20 for a blank and %2C for a comma";
    let (name, value) = text.split_once('=').ok_or_else(|| Refused::new("has no = in it", fix))?;
    let value = decoded(value.trim()).ok_or_else(|| Refused::new("has a % that is not followed by two digits", fix))?;
    if value.chars().count() > VALUE_CHARS_MAX {
        let fix = format!("write {VALUE_CHARS_MAX} characters at most");
        return Err(Refused::new("has a value that is too long", fix));
    }
    judge(name.trim(), value)
}

fn attribute(name: &str, value: String) -> Result<(String, String), Refused> {
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic());
    let fix = "write name=value, such as deployment.environment.name=production";
    if is_name { Ok((name.to_owned(), value)) } else { Err(Refused::new("has no name of an attribute", fix)) }
}

fn header(name: &str, value: String) -> Result<(String, String), Refused> {
    let name = name
        .parse::<HeaderName>()
        .map_err(|_| Refused::new("has no name of a header", "write name=value, such as authorization=Bearer%20…"))?;
    if ["content-type", "content-length", "transfer-encoding", "connection"].contains(&name.as_str()) {
        return Err(Refused::new("is a header that allclear sets itself", "leave it out"));
    }
    match HeaderValue::from_str(&value) {
        Ok(_) => Ok((name.as_str().to_owned(), value)),
        Err(_) => Err(Refused::new("has a value that cannot be sent", "leave out line breaks and control characters")),
    }
}

/// Undoes percent-encoding; `None` where it is none, or no UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// What OpenTelemetry's variables say, by our keys; the variable for traces wins over the one for all signals.
///
/// They may be meant for other programs, and purges do not depend on traces: what cannot be used of them is a warning, and never keeps
/// allclear from starting.
pub(super) fn standard_layer(given: &BTreeMap<String, String>, layer: &mut Layer, findings: &mut Findings) {
    let is_off =
        |name: &str, value: &str| given.get(name).is_some_and(|given| given.trim().eq_ignore_ascii_case(value));
    if is_off("OTEL_SDK_DISABLED", "true") || is_off("OTEL_TRACES_EXPORTER", "none") {
        return;
    }
    let first = |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, given.get(name)?.clone())));
    let Some((from, endpoint)) = first(["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]) else {
        return;
    };
    let endpoint = match from {
        // "constructed relative to the base URL", which the specification says of this one alone.
        "OTEL_EXPORTER_OTLP_ENDPOINT" => format!("{}/{PATH}", endpoint.trim().trim_end_matches('/')),
        _ => endpoint,
    };
    let headers = first(["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]);
    let protocol = first(["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]);
    let mut warn = |name: &str, message: String| {
        findings.warn(&Place::Environment(name.to_owned()), ENDPOINT, message);
    };
    let unusable = if let Some((name, _)) = protocol.filter(|(_, protocol)| protocol.trim() == "grpc") {
        Some((
            name,
            "asks for gRPC, and allclear sends spans over HTTP: set traces.endpoint to the collector's address for that, port 4318",
        ))
    } else if WebUrl::parse(&endpoint).is_err() {
        Some((from, "is no http or https URL: set traces.endpoint to the collector's address"))
    } else {
        let bad = headers.as_ref().filter(|(_, list)| !are_items(list, header));
        bad.map(|(name, _)| (*name, "is no list of name=value with commas between them: set traces.headers"))
    };
    if let Some((name, why)) = unusable {
        return warn(name, format!("nothing is traced, because {name} {why}"));
    }
    let mut insert = |key: &str, name: &str, value: String| {
        layer.insert(key, ValueKind::String(value), Place::Environment(name.to_owned()));
    };
    insert(ENDPOINT, from, endpoint);
    let files = ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"];
    for (key, given) in [(HEADERS, headers), ("traces.ca_file", first(files))] {
        given.into_iter().for_each(|(name, value)| insert(key, name, value));
    }
    let service = given.get("OTEL_SERVICE_NAME").map(|name| format!("service.name={}", encoded(name)));
    let resource = given.get("OTEL_RESOURCE_ATTRIBUTES").filter(|list| are_items(list, attribute)).cloned();
    if resource.is_none() && given.contains_key("OTEL_RESOURCE_ATTRIBUTES") {
        let why = "OTEL_RESOURCE_ATTRIBUTES is not used: it is no list of name=value with commas between them";
        warn("OTEL_RESOURCE_ATTRIBUTES", why.to_owned());
    }
    let attributes: Vec<String> = resource.into_iter().chain(service).collect();
    if !attributes.is_empty() {
        insert("traces.attributes", "OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME", attributes.join(","));
    }
    for (name, instead) in WITHOUT_EFFECT.into_iter().filter(|(name, _)| given.contains_key(*name)) {
        warn(name, format!("{name} has no effect: {instead}"));
    }
}

/// Whether a variable can be read as a list of these.
fn are_items(list: &str, judge: impl Fn(&str, String) -> Result<(String, String), Refused>) -> bool {
    let mut items = list.split(',').map(str::trim).filter(|text| !text.is_empty());
    items.clone().count() <= ITEMS_MAX && items.all(|text| item(text, &judge).is_ok())
}

/// A name as an item of a list has it.
fn encoded(text: &str) -> String {
    text.replace('%', "%25").replace(',', "%2C")
}

/// The names of headers, as they may be shown.
pub(super) fn masked_header(item: &str) -> String {
    item.split_once('=').map_or_else(|| MASK.to_owned(), |(name, _)| format!("{}={MASK}", shown(name.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_undone_and_nothing_else_is() {
        assert_eq!(decoded("Basic%20dTpw%2C=+").as_deref(), Some("Basic dTpw,=+"));
        for broken in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decoded(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_path_is_added_where_there_is_none() {
        let complete = |text: &str| complete(&WebUrl::parse(text).unwrap()).expose().to_string();
        assert_eq!(complete("http://collector:4318"), "http://collector:4318/v1/traces");
        assert_eq!(complete("https://otel.example.com/otlp/v1/traces"), "https://otel.example.com/otlp/v1/traces");
    }
}
