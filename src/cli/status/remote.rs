//! The state of a running allclear, asked over HTTP.

use std::time::Duration;

use serde_json::Value;
use url::Url;

use kernel::text::in_words;

/// Time for everything: an allclear answers within 3 s even when an actor does not.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// Bytes of a state at most. A thousand rollouts in flight are about a megabyte.
const STATE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Asks `server`, whose path is that of the status page, for its state; of one namespace, if one is given.
///
/// # Errors
/// Why there is none, in words.
pub async fn state(server: &Url, namespace: Option<&str>) -> Result<Value, String> {
    let mut url = server.clone();
    url.set_path(&format!("{}/api/v1/state", server.path().trim_end_matches('/')));
    url.set_query(None);
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    let place = format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path());
    let text = fetch(url).await.map_err(|why| {
        format!("failed to ask {place}: {why}; is it the address of the status page, http.page? kubectl port-forward makes it reachable")
    })?;
    read(&text, namespace).ok_or_else(|| format!("{place} answers, and not with the state of an allclear"))
}

/// An answer, as far as it is of this namespace; `None` where it is no JSON.
pub(super) fn read(answer: &[u8], namespace: Option<&str>) -> Option<Value> {
    let mut state = serde_json::from_slice(answer).ok()?;
    if let Some(namespace) = namespace {
        keep(&mut state, namespace);
    }
    Some(state)
}

/// Leaves what is of one namespace, and what is of none. How many workloads it has is not in the state, so that number goes.
fn keep(state: &mut Value, namespace: &str) {
    let Some(fields) = state.as_object_mut() else { return };
    for name in ["rollouts", "recent", "tallies", "parts", "deliveries", "quarantined", "unwell"] {
        if let Some(list) = fields.get_mut(name).and_then(Value::as_array_mut) {
            list.retain(|item| namespace_of(item) == Some(namespace));
        }
    }
    for (part, list) in [("promoting", "pipelines"), ("running", "repos")] {
        if let Some(objects) = fields.get_mut(part).and_then(|part| part.get_mut(list)) {
            let is_in = |view: &Value| view.pointer("/id/namespace").and_then(Value::as_str) == Some(namespace);
            objects.as_array_mut().into_iter().for_each(|all| all.retain(is_in));
        }
    }
    fields.remove("workloads");
}

/// The namespace of an item: a workload's name, or something about one.
fn namespace_of(item: &Value) -> Option<&str> {
    item.get("workload").unwrap_or(item).as_str()?.split('/').nth(1)
}

async fn fetch(url: Url) -> Result<Vec<u8>, String> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_WITHIN)
        .timeout(ANSWER_WITHIN)
        .build()
        .map_err(words)?;
    let mut answer = client.get(url).send().await.map_err(words)?;
    let status = answer.status();
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(words)? {
        body.extend_from_slice(&chunk);
        if body.len() > STATE_BYTES_MAX {
            return Err(format!("its answer is longer than {STATE_BYTES_MAX} bytes"));
        }
    }
    if status.is_success() {
        return Ok(body);
    }
    let said: String = String::from_utf8_lossy(&body).trim().chars().take(200).collect();
    Err(format!("it answers {} {said}", status.as_u16()))
}

/// Without the address, which may hold a password.
fn words(error: reqwest::Error) -> String {
    in_words(&error.without_url())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_of_another_namespace_is_left_out_and_nothing_wrong_is_said() {
        let about = |workload: &str| json!({"workload": workload});
        let both = json!([about("deployment/shop/web"), about("deployment/blog/web")]);
        let mut state = json!({
            "workloads": 12, "troubles": ["a trouble"], "quarantined": ["deployment/blog/a", "deployment/shop/b"],
            "rollouts": both, "recent": both, "tallies": both, "parts": both, "deliveries": both,
            "promoting": {"pipelines": [{"id": {"namespace": "shop", "name": "a"}}, {"id": {"namespace": "blog", "name": "b"}}]},
            "running": {"repos": [{"id": {"namespace": "blog", "name": "b"}}, {"id": {"namespace": "shop", "name": "c"}}]},
        });
        keep(&mut state, "shop");
        let one = json!([about("deployment/shop/web")]);
        let expected = json!({
            "troubles": ["a trouble"], "quarantined": ["deployment/shop/b"],
            "rollouts": one, "recent": one, "tallies": one, "parts": one, "deliveries": one,
            "promoting": {"pipelines": [{"id": {"namespace": "shop", "name": "a"}}]},
            "running": {"repos": [{"id": {"namespace": "shop", "name": "c"}}]},
        });
        assert_eq!(state, expected);
    }
}
