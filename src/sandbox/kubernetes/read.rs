//! Reading: what the parameters of a list or watch mean, and where each starts.
//!
//! The rules are those of <https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions> (1.33):
//! which combination of resourceVersion, resourceVersionMatch, limit and continue shows which state. Not for streaming:
//! a watch that has started is run by `watch`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::failure::Failure;
use super::object::{Key, Object};
use super::resource::Kind;
use super::selector::Selector;
use super::store::{Page, Scope, State};

/// How long a watch lasts that does not say: the lower end of what kube-apiserver picks (`--min-request-timeout`).
const WATCH_TIMEOUT: Duration = Duration::from_secs(1_800);

/// The parameters of a list or watch.
#[derive(Debug)]
pub struct ReadOptions {
    pub scope: Scope,
    /// Whether it is a watch.
    pub watch: bool,
    version: Option<u64>,
    exact: bool,
    not_older: bool,
    limit: usize,
    token: Option<Token>,
    send_initial: Option<bool>,
    /// Whether the client wants bookmarks.
    pub bookmarks: bool,
    /// How long a watch lasts.
    pub timeout: Duration,
}

/// Where a watch starts.
#[derive(Debug)]
pub struct Start {
    pub initial: Vec<Arc<Object>>,
    /// Changes after this version follow.
    pub cursor: u64,
    /// Whether the end of `initial` is to be marked.
    pub mark_initial_end: bool,
}

/// What `continue` holds: opaque to clients.
#[derive(Debug, PartialEq, Eq)]
struct Token {
    /// The version of the first page; none where the client chose to go on inconsistently.
    version: Option<u64>,
    /// The last object of the page before.
    after: Key,
}

impl ReadOptions {
    /// Reads the query of a request for the objects of `kind` in `namespace` (empty: all).
    ///
    /// # Errors
    /// 400 or 422 for parameters that are malformed or contradict each other.
    pub fn parse(kind: Kind, namespace: &str, query: &BTreeMap<String, String>) -> Result<ReadOptions, Failure> {
        let get = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
        let flag = |name: &str| matches!(get(name), "true" | "1");
        let selector = Selector::parse(get("labelSelector"), get("fieldSelector"))?;
        let version = match get("resourceVersion") {
            "" => None,
            text => Some(text.parse().map_err(|_| {
                let why = format!("Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax");
                Failure::invalid_options("ListOptions", "resourceVersion", &why)
            })?),
        };
        let number = |name: &str| match get(name) {
            "" => Ok(None),
            text => text.parse::<u64>().map(Some).map_err(|_| Failure::bad_request(format!("{name} must be a number"))),
        };
        let limit = number("limit")?.filter(|limit| *limit > 0).map_or(usize::MAX, |limit| limit as usize);
        let options = ReadOptions {
            scope: Scope { kind, namespace: namespace.to_owned(), selector },
            watch: flag("watch"),
            version,
            exact: get("resourceVersionMatch") == "Exact",
            not_older: get("resourceVersionMatch") == "NotOlderThan",
            limit,
            token: Some(get("continue")).filter(|text| !text.is_empty()).map(Token::decode).transpose()?,
            send_initial: Some(get("sendInitialEvents")).filter(|text| !text.is_empty()).map(|text| text == "true"),
            bookmarks: flag("allowWatchBookmarks"),
            timeout: number("timeoutSeconds")?.map_or(WATCH_TIMEOUT, Duration::from_secs),
        };
        options.check(get("resourceVersionMatch"))?;
        Ok(options)
    }

    fn check(&self, version_match: &str) -> Result<(), Failure> {
        let forbidden = |field: &str, why: &str| Err(Failure::invalid_options("ListOptions", field, why));
        if !version_match.is_empty() && !self.exact && !self.not_older {
            let why = format!("Unsupported value: \"{version_match}\": supported values: \"Exact\", \"NotOlderThan\"");
            return forbidden("resourceVersionMatch", &why);
        }
        match self.send_initial {
            Some(_) if !self.watch => {
                return forbidden("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list");
            }
            Some(_) if !self.not_older => {
                let why = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                return forbidden("resourceVersionMatch", why);
            }
            None if self.watch && !version_match.is_empty() => {
                let why = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                return forbidden("resourceVersionMatch", why);
            }
            _ => {}
        }
        if !self.watch && !version_match.is_empty() && self.version.is_none() {
            let why = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
            return forbidden("resourceVersionMatch", why);
        }
        if self.exact && self.version == Some(0) {
            let why = "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            return forbidden("resourceVersionMatch", why);
        }
        if self.token.is_some() && self.version.is_some_and(|version| version != 0) {
            return Err(Failure::bad_request("specifying resource version is not allowed when using continue"));
        }
        Ok(())
    }

    /// The page of the list that is asked for.
    ///
    /// # Errors
    /// 410 for a state that is forgotten, 504 for one that has not happened yet.
    pub fn page(&self, state: &State) -> Result<Page, Failure> {
        let current = state.version();
        if let Some(token) = &self.token {
            let version = token.version.unwrap_or(current);
            return state.page(&self.scope, version, Some(&token.after), self.limit).map_err(|failure| {
                let resume = Token { version: None, after: token.after.clone() };
                if failure.code == 410 { Failure::page_expired(resume.encode()) } else { failure }
            });
        }
        let wanted = self.version.unwrap_or(0);
        if wanted > current {
            return Err(Failure::from_the_future(wanted, current));
        }
        // With a limit and without a match rule, a version other than 0 means exactly that version.
        let exact = self.exact || (wanted != 0 && self.limit != usize::MAX && !self.not_older);
        if exact && wanted < state.floor(self.scope.kind) {
            return Err(Failure::expired(wanted, state.floor(self.scope.kind)));
        }
        state.page(&self.scope, if exact { wanted } else { current }, None, self.limit)
    }

    /// Where the watch that is asked for starts.
    ///
    /// # Errors
    /// 410 for a version whose successors are forgotten.
    pub fn start(&self, state: &State) -> Result<Start, Failure> {
        let current = state.version();
        let wanted = self.version.unwrap_or(0);
        let initial = self.send_initial.unwrap_or(wanted == 0);
        if initial {
            let mark_initial_end = self.bookmarks && self.send_initial == Some(true);
            return Ok(Start { initial: state.list(&self.scope), cursor: current, mark_initial_end });
        }
        let floor = state.floor(self.scope.kind);
        match wanted {
            0 => Ok(Start { initial: Vec::new(), cursor: current, mark_initial_end: false }),
            _ if wanted < floor => Err(Failure::expired(wanted, floor)),
            _ => Ok(Start { initial: Vec::new(), cursor: wanted, mark_initial_end: false }),
        }
    }
}

/// The JSON text of a list.
pub fn list_body(kind: Kind, page: &Page) -> Bytes {
    let row = kind.describe();
    let mut metadata = json!({"resourceVersion": page.version.to_string()});
    if let Some(last) = page.items.last().filter(|_| page.more) {
        metadata["continue"] = json!(Token { version: Some(page.version), after: last.key.clone() }.encode());
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    let head = format!(
        "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
        row.kind,
        row.api_version()
    );
    let mut body = head.into_bytes();
    for (index, item) in page.items.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        item.write_item(&mut body);
    }
    body.extend_from_slice(b"]}");
    Bytes::from(body)
}

impl Token {
    fn encode(&self) -> String {
        let Key { namespace, name } = &self.after;
        URL_SAFE_NO_PAD.encode(json!({"v": "stand-in", "rv": self.version, "ns": namespace, "start": name}).to_string())
    }

    fn decode(text: &str) -> Result<Token, Failure> {
        let invalid = || Failure::bad_request("continue key is not valid: illegal base64 data or unknown content");
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid())?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
        let field = |name: &str| value.get(name).and_then(Value::as_str).ok_or_else(invalid);
        let version = value.get("rv").and_then(Value::as_u64);
        Ok(Token { version, after: Key::new(field("ns")?, field("start")?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(query: &[(&str, &str)]) -> u16 {
        let query = query.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        ReadOptions::parse(Kind::Pod, "", &query).map_or_else(|failure| failure.code, |_| 200)
    }

    #[test]
    fn a_token_comes_back_as_it_was() {
        let token = Token { version: Some(7), after: Key::new("ns", "web") };
        assert_eq!(Token::decode(&token.encode()).unwrap(), token);
        assert_eq!(Token::decode("not a token").unwrap_err().code, 400);
    }

    #[test]
    fn contradicting_parameters_are_refused() {
        assert_eq!(code(&[("sendInitialEvents", "true")]), 422);
        assert_eq!(code(&[("watch", "true"), ("sendInitialEvents", "true")]), 422);
        assert_eq!(code(&[("resourceVersionMatch", "Exact")]), 422);
        assert_eq!(code(&[("resourceVersionMatch", "Exact"), ("resourceVersion", "0")]), 422);
        assert_eq!(code(&[("watch", "true"), ("resourceVersionMatch", "NotOlderThan")]), 422);
        assert_eq!(code(&[("resourceVersion", "abc")]), 422);
        assert_eq!(
            code(&[("watch", "1"), ("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]),
            200
        );
    }
}
