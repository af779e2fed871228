//! The Model Context Protocol, as far as a server needs it that has tools and nothing else: what a line asks for, and what is
//! answered without looking anywhere.
//!
//! Two forms of it are spoken beside each other, as the newest revision allows
//! (<https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>). In *modern* requests each says its
//! revision and its client in `_meta`. *Legacy* ones follow an `initialize`. There are no batches in either: 2025-06-18 took
//! them out.
//!
//! Pure: bytes in, values out. Not for what tools there are, which is `tools`; nor for calls under way, which is `serve`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use kernel::text::visible_json;

/// The revision of modern requests.
const MODERN: &str = "2026-07-28";

/// The revisions with an `initialize`, newest first.
const LEGACY: [&str; 2] = ["2025-11-25", "2025-06-18"];

/// Keys of `_meta`, by
/// <https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta>.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// How long a client may keep the list of tools: it is the same for the whole life of a process.
const KEPT_MS: u64 = 3_600_000;

/// Codes of <https://www.jsonrpc.org/specification#error_object>.
const NO_JSON: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const NO_METHOD: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;

/// `UnsupportedProtocolVersion`, by <https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes>.
const NO_VERSION: i32 = -32_022;

/// The name of a request. Other than in JSON-RPC, null and fractions are none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    Number(i64),
    Text(String),
}

/// What a line is.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Request {
        id: Id,
        method: String,
        params: Map<String, Value>,
    },
    Cancelled(Id),
    /// It needs nothing: a notification, a response to nothing, a blank line.
    Other,
}

/// Why something cannot be answered as it was asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fault {
    code: i32,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl Fault {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// A line that was too long to be read.
    pub fn too_long(bytes_max: usize) -> Self {
        Self::new(INVALID_REQUEST, format!("a message of more than {bytes_max} bytes was passed over"))
    }

    /// There is no tool of this name.
    pub fn no_tool(name: &str) -> Self {
        Self::new(INVALID_PARAMS, format!("there is no tool {name:?}"))
    }
}

/// Which form a request has, and so its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

/// What follows from a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// This is its answer.
    Answer(String),
    /// A tool has to be called. The arguments are as they were sent.
    Call { name: String, arguments: Value, era: Era },
}

/// What is offered, and what was agreed.
pub struct Session {
    /// Each as `tools/list` has it.
    tools: Value,
    instructions: &'static str,
    is_initialized: bool,
}

/// Reads a line.
///
/// # Errors
/// It is no message, or none that can be answered; with the request that it was, if that can be read.
pub fn read(line: &[u8]) -> Result<Message, (Option<Id>, Fault)> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(Message::Other);
    }
    let value: Value =
        serde_json::from_slice(line).map_err(|_| (None, Fault::new(NO_JSON, "a line is one message in JSON")))?;
    let Value::Object(mut fields) = value else {
        let why = if value.is_array() { "there are no batches in this protocol" } else { "a message is an object" };
        return Err((None, Fault::new(INVALID_REQUEST, why)));
    };
    let id = match fields.remove("id") {
        None => None,
        Some(id) => match serde_json::from_value::<Id>(id) {
            Ok(id) => Some(id),
            Err(_) => return Err((None, Fault::new(INVALID_REQUEST, "an id is a text or an integer of 64 bits"))),
        },
    };
    let invalid = |why: &str| Err((id.clone(), Fault::new(INVALID_REQUEST, why)));
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid("jsonrpc is not 2.0");
    }
    let method = match fields.remove("method") {
        Some(Value::String(method)) => method,
        // A response: nothing was asked of the client. It is not to be answered.
        None if fields.contains_key("result") || fields.contains_key("error") => return Ok(Message::Other),
        _ => return invalid("method is not a text"),
    };
    let params = match fields.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        // A notification is never answered.
        Some(_) if id.is_none() => return Ok(Message::Other),
        Some(_) => return Err((id, Fault::new(INVALID_PARAMS, "params is not an object"))),
    };
    Ok(match (id, method.as_str()) {
        (Some(id), _) => Message::Request { id, method, params },
        (None, "notifications/cancelled") => {
            let asked = params.get("requestId").and_then(|id| Id::deserialize(id).ok());
            asked.map_or(Message::Other, Message::Cancelled)
        }
        (None, _) => Message::Other,
    })
}

/// The line that refuses a request, or one that cannot be read.
pub fn refusal(id: Option<&Id>, fault: &Fault) -> String {
    match id {
        Some(id) => line(&json!({ "jsonrpc": "2.0", "id": id, "error": fault })),
        // The newest revisions leave it out where JSON-RPC itself has null.
        None => line(&json!({ "jsonrpc": "2.0", "error": fault })),
    }
}

/// The line that answers a request.
pub fn answer(id: &Id, era: Era, mut result: Map<String, Value>) -> String {
    if era == Era::Modern {
        result.insert("resultType".to_owned(), json!("complete"));
        result.insert("_meta".to_owned(), json!({ SERVER_KEY: server() }));
    }
    line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// On one line: JSON has no line break but between its parts, and here there is none. What hides is escaped.
fn line(message: &Value) -> String {
    visible_json(&message.to_string()).into_owned()
}

fn server() -> Value {
    json!({ "name": "allclear", "title": "allclear", "version": env!("CARGO_PKG_VERSION") })
}

impl Session {
    /// One that has these tools, and says this of them.
    pub fn new(tools: Value, instructions: &'static str) -> Self {
        Self { tools, instructions, is_initialized: false }
    }

    /// What follows from a request.
    pub fn step(&mut self, id: &Id, method: &str, params: &Map<String, Value>) -> Step {
        match self.result(method, params) {
            Ok(Reply::Result(era, result)) => Step::Answer(answer(id, era, result)),
            Ok(Reply::Call(step)) => step,
            Err(fault) => Step::Answer(refusal(Some(id), &fault)),
        }
    }

    fn result(&mut self, method: &str, params: &Map<String, Value>) -> Result<Reply, Fault> {
        if method == "initialize" {
            return self.initialized(params).map(|result| Reply::Result(Era::Legacy, result));
        }
        let era = self.era(method, params)?;
        let result = match (method, era) {
            // The newest revision has none.
            ("ping", Era::Legacy) => Map::new(),
            ("server/discover", Era::Modern) => self.discovered(),
            ("tools/list", _) => self.listed(era, params)?,
            ("tools/call", _) => return called(era, params).map(Reply::Call),
            _ => return Err(Fault::new(NO_METHOD, format!("there is no method {method:?} here"))),
        };
        Ok(Reply::Result(era, result))
    }

    fn era(&self, method: &str, params: &Map<String, Value>) -> Result<Era, Fault> {
        let meta = params.get("_meta").and_then(Value::as_object);
        let Some(version) = meta.and_then(|meta| meta.get(VERSION_KEY)) else {
            // A client may ask at any time whether we are there.
            if self.is_initialized || method == "ping" {
                return Ok(Era::Legacy);
            }
            let why =
                format!("a request has {VERSION_KEY} and {CAPABILITIES_KEY} in its _meta, or follows an initialize");
            return Err(Fault::new(INVALID_PARAMS, why));
        };
        let Some(version) = version.as_str() else {
            return Err(Fault::new(INVALID_PARAMS, format!("{VERSION_KEY} is not a text")));
        };
        if version != MODERN {
            let data = json!({ "supported": [MODERN], "requested": version });
            return Err(Fault { data: Some(data), ..Fault::new(NO_VERSION, "Unsupported protocol version") });
        }
        if !meta.and_then(|meta| meta.get(CAPABILITIES_KEY)).is_some_and(Value::is_object) {
            return Err(Fault::new(INVALID_PARAMS, format!("{CAPABILITIES_KEY} is not an object in _meta")));
        }
        Ok(Era::Modern)
    }

    /// The client's revision, if it is one of ours; otherwise the newest of ours, which it may not like.
    fn initialized(&mut self, params: &Map<String, Value>) -> Result<Map<String, Value>, Fault> {
        let Some(wanted) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(Fault::new(INVALID_PARAMS, "protocolVersion is not a text"));
        };
        self.is_initialized = true;
        let [newest, ..] = LEGACY;
        let version = LEGACY.into_iter().find(|known| *known == wanted).unwrap_or(newest);
        Ok(fields([
            ("protocolVersion", json!(version)),
            ("capabilities", json!({ "tools": {} })),
            ("serverInfo", server()),
            ("instructions", json!(self.instructions)),
        ]))
    }

    fn discovered(&self) -> Map<String, Value> {
        let mut result = fields([
            ("supportedVersions", json!([MODERN])),
            ("capabilities", json!({ "tools": {} })),
            ("instructions", json!(self.instructions)),
        ]);
        result.extend(kept());
        result
    }

    fn listed(&self, era: Era, params: &Map<String, Value>) -> Result<Map<String, Value>, Fault> {
        // All are on the first page, so no page has been promised.
        if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
            return Err(Fault::new(INVALID_PARAMS, "there is no page at this cursor"));
        }
        let mut result = fields([("tools", self.tools.clone())]);
        if era == Era::Modern {
            result.extend(kept());
        }
        Ok(result)
    }
}

enum Reply {
    Result(Era, Map<String, Value>),
    Call(Step),
}

fn called(era: Era, params: &Map<String, Value>) -> Result<Step, Fault> {
    let Some(name) = params.get("name").and_then(Value::as_str) else {
        return Err(Fault::new(INVALID_PARAMS, "name is not a text"));
    };
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => json!({}),
        Some(arguments @ Value::Object(_)) => arguments.clone(),
        Some(_) => return Err(Fault::new(INVALID_PARAMS, "arguments is not an object")),
    };
    Ok(Step::Call { name: name.to_owned(), arguments, era })
}

/// What is the same for every client, and for how long.
fn kept() -> Map<String, Value> {
    fields([("ttlMs", json!(KEPT_MS)), ("cacheScope", json!("public"))])
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
