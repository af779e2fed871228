//! What is good enough to start with, and should still be known: hooks that give away their credentials, or are not called,
//! and lines of the log that are left out.
//!
//! Not for what is refused; that is `validate`.

use super::filter;
use super::hook::Hook;
use super::values::Values;

/// Bytes of a webhook's key from which on it is not warned about: the least of Standard Webhooks
/// (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>, "Signature scheme").
const KEY_BYTES_ADVISED: usize = 24;

/// Headers that hold credentials.
const CREDENTIALS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-api-key"];

/// About hooks, in the order of the file. `unjudged`: their names would be resolved by a proxy that may lead them anywhere.
pub(super) fn hooks(values: &mut Values<'_>, hooks: &[Hook], unjudged: bool) {
    let place = values.place("webhooks.file");
    for (index, hook) in hooks.iter().enumerate() {
        let url = hook.url.expose();
        let has_credentials = hook.headers.keys().any(|name| CREDENTIALS.contains(&name.as_str()))
            || !url.username().is_empty()
            || url.password().is_some();
        if url.scheme() == "http" && has_credentials {
            let message = "sends credentials without TLS: every program on the way can read them; use https";
            values.findings.warn(&place, &format!("/webhooks/{index}/url"), message);
        }
        if let Some(short) = hook.secrets.iter().map(|key| key.expose().len()).filter(|b| *b < KEY_BYTES_ADVISED).min()
        {
            let message = format!(
                "has a key of {short} bytes, which can be guessed from one signature; use whsec_ and base64 of 24 to 64 random bytes"
            );
            values.findings.warn(&place, &format!("/webhooks/{index}/secret"), message);
        }
    }
    let names = hooks.iter().filter(|hook| hook.url.expose().domain().is_some()).count();
    if unjudged && names > 0 {
        let message = format!(
            "would resolve the names of {names} webhooks, and may lead them anywhere, so these are not called; if it refuses \
             metadata and other special addresses itself, set webhooks.proxy_judges = true"
        );
        let place = values.place("webhooks.proxy");
        values.findings.warn(&place, "webhooks.proxy", message);
    }
}

/// About the level of the log.
pub(super) fn level(values: &mut Values<'_>, level: &str) {
    let capped = filter::capped(level);
    if capped.is_empty() {
        return;
    }
    let message = format!(
        "asks for lines of libraries that may hold credentials, headers or bodies; they are left out: {}",
        capped.join(", ")
    );
    let place = values.place("log.level");
    values.findings.warn(&place, "log.level", message);
}
