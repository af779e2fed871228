//! What tests of the adapters and of commands share: the stand-in for the API server as the program reaches it, and what a command
//! answered.

use allclear::adapters::kubernetes::{Clients, Options, connect};
use allclear::cli::answer::Outcome;
use sandbox::http::{Action, Fault, Reply, Request, Server, When};
use sandbox::kubernetes::KubernetesStandIn;
use serde_json::json;
use support::snapshot::flat;

/// Clients of the stand-in, made the way the program makes them.
pub async fn clients(api: &KubernetesStandIn, server: &Server) -> Clients {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), api.kubeconfig(server)).unwrap();
    connect(&Options { kubeconfig: Some(file.path().to_owned()), ..Options::default() }).await.unwrap()
}

/// Answers all requests that match with 403.
pub fn forbid(server: &Server, message: &str, matches: impl Fn(&Request) -> bool + Send + Sync + 'static) {
    let body = json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": message}).to_string();
    let answer = Action::Answer(Reply::full(403, "application/json", body));
    server.inject(Fault::once(When::Before, answer).matching(matches).times(u32::MAX));
}

/// The exit code is this, and what was printed has all the parts, wherever its lines break.
pub fn has(outcome: &Outcome, code: u8, parts: &[&str]) {
    let words = flat(&format!("{}{}", outcome.out, outcome.err));
    assert_eq!(outcome.code, code, "{words}");
    for part in parts {
        assert!(words.contains(part), "{part:?} is not in {words}");
    }
}
