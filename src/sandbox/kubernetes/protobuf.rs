//! The bodies that `kubectl create deployment` and its like send: objects in protobuf, of which the fields that people set this way
//! are understood (<https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding>).
//!
//! The numbers of fields are those of `generated.proto` in k8s.io/api and k8s.io/apimachinery, v0.33. A field that is not listed and
//! says something is refused by its number: nothing is dropped in silence. Not for answers, which are always JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::failure::Failure;

pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// What every body begins with; a `runtime.Unknown` follows.
const MAGIC: &[u8] = b"k8s\0";

const DEPTH_MAX: usize = 16;

/// How the value of a field is read.
#[derive(Clone, Copy)]
enum Form {
    Text,
    /// Bytes, which JSON has in base64.
    Bytes,
    Number,
    Truth,
    Message(&'static [Field]),
    /// A map from texts to values of this form.
    Map(&'static Form),
    /// A number or a text (`intstr.IntOrString`).
    Either,
    /// A time that a server sets, and a status: whatever it says counts for nothing in what is created.
    Ours,
}

/// A field: its number, its name in JSON, its form, and whether it is a list.
struct Field(u64, &'static str, Form, bool);

const TEXTS: Form = Form::Map(&Form::Text);

const METADATA: &[Field] = &[
    Field(1, "name", Form::Text, false),
    Field(2, "generateName", Form::Text, false),
    Field(3, "namespace", Form::Text, false),
    Field(8, "creationTimestamp", Form::Ours, false),
    Field(11, "labels", TEXTS, false),
    Field(12, "annotations", TEXTS, false),
];

const CONTAINER: &[Field] = &[
    Field(1, "name", Form::Text, false),
    Field(2, "image", Form::Text, false),
    Field(3, "command", Form::Text, true),
    Field(4, "args", Form::Text, true),
    Field(
        6,
        "ports",
        Form::Message(&[
            Field(1, "name", Form::Text, false),
            Field(3, "containerPort", Form::Number, false),
            Field(4, "protocol", Form::Text, false),
        ]),
        true,
    ),
];

const DEPLOYMENT: &[Field] = &[
    Field(1, "replicas", Form::Number, false),
    Field(2, "selector", Form::Message(&[Field(1, "matchLabels", TEXTS, false)]), false),
    Field(
        3,
        "template",
        Form::Message(&[
            Field(1, "metadata", Form::Message(METADATA), false),
            Field(2, "spec", Form::Message(&[Field(2, "containers", Form::Message(CONTAINER), true)]), false),
        ]),
        false,
    ),
    Field(4, "strategy", Form::Message(&[Field(1, "type", Form::Text, false)]), false),
    Field(5, "minReadySeconds", Form::Number, false),
    Field(7, "paused", Form::Truth, false),
    Field(9, "progressDeadlineSeconds", Form::Number, false),
];

const SERVICE: &[Field] = &[
    Field(
        1,
        "ports",
        Form::Message(&[
            Field(1, "name", Form::Text, false),
            Field(2, "protocol", Form::Text, false),
            Field(3, "port", Form::Number, false),
            Field(4, "targetPort", Form::Either, false),
            Field(5, "nodePort", Form::Number, false),
        ]),
        true,
    ),
    Field(2, "selector", TEXTS, false),
    Field(3, "clusterIP", Form::Text, false),
    Field(4, "type", Form::Text, false),
    Field(7, "sessionAffinity", Form::Text, false),
];

const EITHER: &[Field] = &[
    Field(1, "type", Form::Number, false),
    Field(2, "intVal", Form::Number, false),
    Field(3, "strVal", Form::Text, false),
];

/// The fields of a kind beside its metadata.
fn fields(kind: &str) -> Option<&'static [Field]> {
    const HEAD: Field = Field(1, "metadata", Form::Message(METADATA), false);
    const STATUS: Field = Field(3, "status", Form::Ours, false);
    const NAMESPACE: &[Field] = &[HEAD, Field(2, "spec", Form::Ours, false), STATUS];
    const DEPLOYMENTS: &[Field] = &[HEAD, Field(2, "spec", Form::Message(DEPLOYMENT), false), STATUS];
    const SERVICES: &[Field] = &[HEAD, Field(2, "spec", Form::Message(SERVICE), false), STATUS];
    const CONFIG_MAP: &[Field] =
        &[HEAD, Field(2, "data", TEXTS, false), Field(3, "binaryData", Form::Map(&Form::Bytes), false)];
    const SECRET: &[Field] = &[
        HEAD,
        Field(2, "data", Form::Map(&Form::Bytes), false),
        Field(3, "type", Form::Text, false),
        Field(4, "stringData", TEXTS, false),
    ];
    const SERVICE_ACCOUNT: &[Field] = &[HEAD];
    Some(match kind {
        "Namespace" => NAMESPACE,
        "Deployment" => DEPLOYMENTS,
        "Service" => SERVICES,
        "ConfigMap" => CONFIG_MAP,
        "Secret" => SECRET,
        "ServiceAccount" => SERVICE_ACCOUNT,
        _ => return None,
    })
}

/// The object in a body.
///
/// # Errors
/// 400 where it cannot be read, 415 where it says more than is understood here; JSON says it then (`kubectl create -f`).
pub fn object(body: &[u8]) -> Result<Value, Failure> {
    const UNKNOWN: &[Field] = &[
        Field(
            1,
            "typeMeta",
            Form::Message(&[Field(1, "apiVersion", Form::Text, false), Field(2, "kind", Form::Text, false)]),
            false,
        ),
        Field(2, "raw", Form::Bytes, false),
        Field(3, "contentEncoding", Form::Text, false),
        Field(4, "contentType", Form::Text, false),
    ];
    let broken = || Failure::bad_request("the body is no protobuf of Kubernetes");
    let mut rest = body.strip_prefix(MAGIC).ok_or_else(broken)?;
    let head = message(&mut rest, UNKNOWN, "", 0)?;
    let said = |pointer: &str| head.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (said("/typeMeta/apiVersion"), said("/typeMeta/kind"));
    let fields = fields(kind).ok_or_else(|| unsupported(&format!("a {kind}")))?;
    let raw = STANDARD.decode(said("/raw")).map_err(|_| broken())?;
    let mut object = message(&mut raw.as_slice(), fields, kind, 0)?;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    Ok(object)
}

fn unsupported(what: &str) -> Failure {
    Failure::unsupported_media(&format!("application/json: the stand-in does not understand {what} in protobuf"))
}

fn message(input: &mut &[u8], fields: &[Field], at: &str, depth: usize) -> Result<Value, Failure> {
    let broken = || Failure::bad_request("the body is no protobuf of Kubernetes");
    if depth > DEPTH_MAX {
        return Err(broken());
    }
    let mut object = Map::new();
    while !input.is_empty() {
        let tag = varint(input).ok_or_else(broken)?;
        let (number, value) = (tag >> 3, wire(input, tag & 7).ok_or_else(broken)?);
        let Some(Field(_, name, form, many)) = fields.iter().find(|field| field.0 == number) else {
            if value.says_nothing() {
                continue;
            }
            return Err(unsupported(&format!("field {number} of {at}")));
        };
        let path = format!("{at}.{name}");
        let Some(value) = read(value, *form, &path, depth)? else { continue };
        match object.get_mut(*name) {
            Some(Value::Array(list)) => list.push(value),
            Some(Value::Object(map)) if matches!(form, Form::Map(_)) => {
                map.extend(value.as_object().cloned().unwrap_or_default());
            }
            _ if *many => _ = object.insert((*name).to_owned(), json!([value])),
            _ => _ = object.insert((*name).to_owned(), value),
        }
    }
    Ok(Value::Object(object))
}

/// A value on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl Wire<'_> {
    /// Zero, an empty text and a message without fields are what Go sends for what was not set.
    fn says_nothing(&self) -> bool {
        match self {
            Self::Number(number) => *number == 0,
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }
}

fn read(value: Wire<'_>, form: Form, at: &str, depth: usize) -> Result<Option<Value>, Failure> {
    let broken = || Failure::bad_request(format!("{at} cannot be read"));
    Ok(match (form, value) {
        (Form::Ours, _) => None,
        (Form::Text, Wire::Bytes(bytes)) => {
            let text = std::str::from_utf8(bytes).map_err(|_| broken())?;
            (!text.is_empty()).then(|| json!(text))
        }
        (Form::Bytes, Wire::Bytes(bytes)) => Some(json!(STANDARD.encode(bytes))),
        (Form::Number, Wire::Number(number)) => Some(json!(number.cast_signed())),
        (Form::Truth, Wire::Number(number)) => (number != 0).then_some(Value::Bool(true)),
        (Form::Message(fields), Wire::Bytes(mut bytes)) => Some(message(&mut bytes, fields, at, depth + 1)?),
        (Form::Map(of), Wire::Bytes(mut bytes)) => Some(entry(&mut bytes, *of, at, depth)?),
        (Form::Either, Wire::Bytes(mut bytes)) => {
            let either = message(&mut bytes, EITHER, at, depth + 1)?;
            let is_text = either.get("type").and_then(Value::as_i64) == Some(1);
            either.get(if is_text { "strVal" } else { "intVal" }).filter(|value| **value != json!(0)).cloned()
        }
        (Form::Text | Form::Bytes | Form::Message(_) | Form::Map(_) | Form::Either, Wire::Number(_))
        | (Form::Number | Form::Truth, Wire::Bytes(_)) => return Err(broken()),
    })
}

/// An entry of a map, as a map of one.
fn entry(input: &mut &[u8], of: Form, at: &str, depth: usize) -> Result<Value, Failure> {
    let fields = [Field(1, "key", Form::Text, false), Field(2, "value", of, false)];
    let pair = message(input, &fields, at, depth + 1)?;
    let key = pair.get("key").and_then(Value::as_str).unwrap_or_default();
    Ok(json!({key: pair.get("value").cloned().unwrap_or_else(|| json!(""))}))
}

fn varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *input.split_off_first()?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn wire<'a>(input: &mut &'a [u8], kind: u64) -> Option<Wire<'a>> {
    match kind {
        0 => Some(Wire::Number(varint(input)?)),
        1 => input.split_off(..8).map(Wire::Bytes),
        2 => {
            let length = usize::try_from(varint(input)?).ok()?;
            input.split_off(..length).map(Wire::Bytes)
        }
        5 => input.split_off(..4).map(Wire::Bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &meta), field(2, raw), field(3, b""), field(4, b"")].concat()
    }

    fn named(name: &str) -> Vec<u8> {
        field(1, &[field(1, name.as_bytes()), field(8, b"")].concat())
    }

    #[test]
    fn a_config_map_and_a_deployment_are_read_as_kubectl_writes_them() {
        let pair = |key: &[u8], value: &[u8]| [field(1, key), field(2, value)].concat();
        let raw = [named("c"), field(2, &pair(b"a", b"b")), field(2, &pair(b"c", b""))].concat();
        let expected =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b", "c": ""}});
        assert_eq!(object(&body("v1", "ConfigMap", &raw)).unwrap(), expected);
        let container = [field(1, b"web"), field(2, b"web:1"), field(8, b"")].concat();
        let template = field(3, &field(2, &field(2, &container)));
        let selector = field(2, &field(1, &pair(b"app", b"web")));
        let spec = [vec![1 << 3, 3], selector, template, field(4, &field(1, b""))].concat();
        let deployment =
            object(&body("apps/v1", "Deployment", &[named("web"), field(2, &spec), field(3, b"")].concat()));
        let spec = json!({
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "strategy": {},
            "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        });
        assert_eq!(deployment.unwrap()["spec"], spec);
    }

    #[test]
    fn what_is_not_understood_is_refused_and_not_dropped() {
        let immutable = [named("c"), vec![4 << 3, 1]].concat();
        let refused = object(&body("v1", "ConfigMap", &immutable)).unwrap_err();
        assert_eq!(refused.code, 415);
        assert_eq!(object(&body("batch/v1", "CronJob", &named("c"))).unwrap_err().code, 415);
        for broken in [&b"{}"[..], b"k8s\0\xff", &body("v1", "ConfigMap", b"\x0a\x7f")] {
            assert_eq!(object(broken).unwrap_err().code, 400, "{broken:?}");
        }
        let deep = (0..60).fold(Vec::new(), |inner, _| field(1, &inner[..inner.len().min(100)]));
        assert!(object(&body("v1", "ConfigMap", &deep)).is_err());
    }
}
