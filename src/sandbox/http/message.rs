//! What a stand-in is asked and what it answers, free of any web framework.

use std::collections::BTreeMap;
use std::fmt;

use actix_web::web;
use bytes::Bytes;
use tokio::sync::mpsc;

#[derive(Clone)]
pub struct Request {
    pub method: http::Method,
    /// The path as it was sent, still percent-encoded, without the query.
    pub path: String,
    /// The query, decoded. Of a repeated key the last value is kept; `raw_query` has them all.
    pub query: BTreeMap<String, String>,
    /// The query as it was sent, without the `?`; empty when there is none.
    pub raw_query: String,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

/// What a stand-in answers.
#[derive(Debug)]
pub struct Reply {
    /// The status code; one that HTTP does not know becomes 500.
    pub status: u16,
    /// Headers in the order given; one that HTTP does not allow is left out.
    pub headers: Vec<(String, String)>,
    pub body: Body,
}

/// The body of a [`Reply`].
#[derive(Debug)]
pub enum Body {
    /// Sent at once, with a Content-Length.
    Full(Bytes),
    /// Sent chunk by chunk as it arrives; ends when the sender is dropped. When the client goes away the receiver is
    /// dropped, which the sender notices through `Sender::closed`.
    Stream(mpsc::Receiver<Bytes>),
}

impl Request {
    /// Builds a request from its parts, for stand-ins that are called without a socket.
    pub fn new(method: http::Method, uri: &http::Uri, headers: http::HeaderMap, body: Bytes) -> Request {
        Request::from_parts(method, uri.path(), uri.query().unwrap_or_default(), headers, body)
    }

    /// The value of a header, when it is there once or more and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The path cut at its slashes, without empty parts: `/a//b/` is `["a", "b"]`.
    pub fn segments(&self) -> Vec<&str> {
        self.path.split('/').filter(|segment| !segment.is_empty()).collect()
    }

    pub(super) fn from_parts(
        method: http::Method,
        path: &str,
        raw_query: &str,
        headers: http::HeaderMap,
        body: Bytes,
    ) -> Request {
        let query = web::Query::<Vec<(String, String)>>::from_query(raw_query)
            .map(|pairs| pairs.into_inner().into_iter().collect())
            .unwrap_or_default();
        Request { method, path: path.to_owned(), query, raw_query: raw_query.to_owned(), headers, body }
    }
}

/// Names the headers without their values, and counts the body: both may carry secrets.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("query", &self.query)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

impl Reply {
    /// An answer without body.
    pub fn empty(status: u16) -> Reply {
        Reply { status, headers: Vec::new(), body: Body::Full(Bytes::new()) }
    }

    /// An answer with a body of the given Content-Type.
    pub fn full(status: u16, content_type: &str, body: impl Into<Bytes>) -> Reply {
        Reply::empty(status).header("content-type", content_type).body(Body::Full(body.into()))
    }

    /// An answer whose body arrives over time; the sender of `chunks` is the caller's.
    pub fn stream(status: u16, content_type: &str, chunks: mpsc::Receiver<Bytes>) -> Reply {
        Reply::empty(status).header("content-type", content_type).body(Body::Stream(chunks))
    }

    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn body(mut self, body: Body) -> Reply {
        self.body = body;
        self
    }

    /// The same answer once more; a stream goes to the copy and leaves an empty body behind.
    pub(super) fn take_copy(&mut self) -> Reply {
        let body = match &mut self.body {
            Body::Full(bytes) => Body::Full(bytes.clone()),
            stream @ Body::Stream(_) => std::mem::replace(stream, Body::Full(Bytes::new())),
        };
        Reply { status: self.status, headers: self.headers.clone(), body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_header_value_and_no_body() {
        let headers = [(http::header::AUTHORIZATION, http::HeaderValue::from_static("hunter2"))].into_iter().collect();
        let uri = http::Uri::from_static("/path?a=b");
        let request = Request::new(http::Method::POST, &uri, headers, Bytes::from_static(b"hunter2"));
        let shown = format!("{request:?}");
        assert!(shown.contains("authorization") && !shown.contains("hunter2"), "{shown}");
    }
}
