//! What marks a test, in each format: a type that no hook can subscribe to, and a member `"test": true`; a Flux event has the reason
//! `WebhookTest` and the label `allclear.dev/test`; people read it in a chat.

use serde_json::json;

use super::body;

/// What a test calls itself in place of the event.
const TEST_TYPE: &str = "webhook.test";

/// What it has for the reason of an Event.
pub const REASON: &str = "WebhookTest";

/// What says to people, and to programs that show messages, that nothing happened.
pub const MESSAGE: &str = "a test by allclear webhook test: nothing was changed and nothing was purged";

/// The document that Standard Webhooks recommends, without anything that a notice is about.
pub fn document(at_ms: i64) -> String {
    let (timestamp, message) = (json!(body::time(at_ms)), json!(MESSAGE));
    format!(r#"{{"type":"{TEST_TYPE}","timestamp":{timestamp},"test":true,"data":{{"message":{message}}}}}"#)
}
