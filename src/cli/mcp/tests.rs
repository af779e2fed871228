//! One client and its server, without a process and without a cluster.

mod protocol;
mod served;

use serde_json::{Value, json};

use super::serve::{Answered, serve};
use super::tools::Asked;
use crate::cli::mcp::lines::Line;
use tokio::sync::mpsc;

/// A request of the newest revision.
fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    modern(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// A server, and the way to it.
struct Client {
    lines: Option<mpsc::Sender<Line>>,
    answers: mpsc::Receiver<String>,
}

impl Client {
    /// A client, and a server that answers its questions so.
    fn new<F: Future<Output = Answered>>(tool: impl Fn(Asked) -> F) -> (Self, impl Future<Output = ()>) {
        Self::that_takes(256, tool)
    }

    /// The same of a client whose side has room for so many answers that it has not read.
    fn that_takes<F: Future<Output = Answered>>(
        answers: usize,
        tool: impl Fn(Asked) -> F,
    ) -> (Self, impl Future<Output = ()>) {
        let (lines, heard) = mpsc::channel(256);
        let (out, answers) = mpsc::channel(answers);
        (Self { lines: Some(lines), answers }, serve(heard, out, tool))
    }

    async fn says(&self, message: &Value) {
        self.says_bytes(message.to_string().as_bytes()).await;
    }

    async fn says_bytes(&self, bytes: &[u8]) {
        self.lines.as_ref().expect("it goes on").send(Line::Whole(bytes.to_vec())).await.expect("it is served");
    }

    /// The next answer, as it was sent.
    async fn hears(&mut self) -> Option<Value> {
        let line = self.answers.recv().await?;
        assert!(!line.contains('\n'), "{line:?}");
        Some(serde_json::from_str(&line).expect("an answer is JSON"))
    }

    async fn asks(&mut self, message: &Value) -> Value {
        self.says(message).await;
        self.hears().await.expect("it is answered")
    }

    /// The ids of all answers until the end, in their order.
    async fn ids(&mut self) -> Vec<Value> {
        self.lines = None;
        let mut ids = Vec::new();
        while let Some(answer) = self.hears().await {
            ids.push(answer["id"].clone());
        }
        ids
    }
}

/// A tool that has found this at once.
fn found(text: &str, value: Value) -> Answered {
    Answered::Found { text: text.to_owned(), value }
}
