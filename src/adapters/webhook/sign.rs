//! Signatures by Standard Webhooks 1.0, so that a receiver can verify them with a ready-made library.
//!
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>, "Signature scheme", read
//! 2026-11. Symmetric keys only (`v1`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

use crate::adapters::http::{Error, header_value};
use crate::config::Secret;

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Adds the headers by which a receiver knows a request: its id, the second of the attempt, and, with keys, signatures.
///
/// # Errors
/// When the id cannot be a header.
pub fn sign(
    headers: &mut HeaderMap,
    keys: &[Secret<Vec<u8>>],
    id: &str,
    timestamp_s: i64,
    body: &[u8],
) -> Result<(), Error> {
    headers.insert(WEBHOOK_ID, header_value(id)?);
    headers.insert(WEBHOOK_TIMESTAMP, HeaderValue::from(timestamp_s));
    if let Some(signature) = signature(keys, id, timestamp_s, body) {
        headers.insert(WEBHOOK_SIGNATURE, header_value(&signature)?);
    }
    Ok(())
}

/// The value of `webhook-signature`: one signature for each key, so that a receiver may know any of them while keys are
/// rotated. `None` without keys.
///
/// Signed are the id, the second of the attempt and the body: a recorded request cannot be replayed later, nor its body
/// be replaced. The query of a GET is not covered; the scheme has no place for it.
fn signature(keys: &[Secret<Vec<u8>>], id: &str, timestamp_s: i64, body: &[u8]) -> Option<String> {
    // HMAC takes keys of every length, so none is left out.
    let macs = keys.iter().filter_map(|key| Hmac::<Sha256>::new_from_slice(key.expose()).ok());
    let signatures: Vec<String> = macs
        .map(|mut mac| {
            mac.update(format!("{id}.{timestamp_s}.").as_bytes());
            mac.update(body);
            format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
        })
        .collect();
    if signatures.is_empty() { None } else { Some(signatures.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;

    fn key(text: &str) -> Secret<Vec<u8>> {
        Secret::new(BASE64.decode(text).expect("base64"))
    }

    /// The vector in the tests of the reference libraries
    /// (<https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/rust/src/lib.rs>).
    #[test]
    fn the_published_vector_is_met() {
        let signed = signature(&[key("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")], ID, 1_614_265_330, BODY);
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn every_key_gives_a_signature_of_its_own() {
        let keys = [key("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), Secret::new(b"older".to_vec())];
        let both = signature(&keys, ID, 1_614_265_330, BODY).expect("signed");
        let each: Vec<String> =
            keys.iter().filter_map(|k| signature(std::slice::from_ref(k), ID, 1_614_265_330, BODY)).collect();
        assert_eq!(both, each.join(" "));
        assert_ne!(each.first(), each.last());
        assert_eq!(signature(&[], ID, 1, BODY), None);
    }
}
