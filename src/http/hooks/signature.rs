//! Verifies that a request was made with a key. Comparisons take as long for every wrong signature.
//!
//! | header | whose | over |
//! |---|---|---|
//! | `X-Signature: sha224\|sha256\|sha384\|sha512=HEX` | the older controller, and Flux (`generic-hmac`) | the body |
//! | `X-Hub-Signature-256: sha256=HEX` | GitHub, and Gitea and Forgejo beside their own | the body |
//! | `X-Hub-Signature: sha256=HEX` | Bitbucket | the body |
//! | `X-Gitea-Signature: HEX` | Gitea, Forgejo | the body |
//! | `X-Gitlab-Token: KEY` | GitLab | nothing: it is the key itself |
//! | `webhook-signature: v1,BASE64 …` | Standard Webhooks 1.0 | id, time and body |
//!
//! <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries>,
//! <https://docs.gitlab.com/user/project/integrations/webhooks/>, <https://docs.gitea.com/usage/webhooks>,
//! <https://fluxcd.io/flux/components/notification/providers/#generic-webhook-with-hmac>,
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>, read 2026-11.
//!
//! Not for what a key allows.

use std::fmt;

use actix_web::http::header::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::path::hex;

const X_SIGNATURE: &str = "X-Signature";
const GITHUB: &str = "X-Hub-Signature-256";
const BITBUCKET: &str = "X-Hub-Signature";
const GITEA: &str = "X-Gitea-Signature";
const GITLAB: &str = "X-Gitlab-Token";
const STANDARD: &str = "webhook-signature";
const STANDARD_ID: &str = "webhook-id";
const STANDARD_TIME: &str = "webhook-timestamp";

/// What a key of Standard Webhooks begins with; base64 follows.
const KEY_PREFIX: &[u8] = b"whsec_";

/// Characters of a header that is looked at. The longest signature in hexadecimal has 128; while keys are changed there are several.
const HEADER_CHARS_MAX: usize = 1_024;

/// How far the time of a signed request may be from ours, in seconds: what the libraries of Standard Webhooks allow.
const TOLERANCE_S: i64 = 5 * 60;

/// A key. It is never shown.
#[derive(Clone)]
pub struct Key {
    text: Vec<u8>,
    /// What Standard Webhooks makes of it.
    standard: Vec<u8>,
}

impl Key {
    /// The key that is written so; `None` where nothing is.
    pub fn of(text: &[u8]) -> Option<Self> {
        let decoded = text.strip_prefix(KEY_PREFIX).and_then(|encoded| BASE64.decode(encoded).ok());
        let standard = decoded.filter(|key| !key.is_empty()).unwrap_or_else(|| text.to_vec());
        (!text.is_empty()).then(|| Self { text: text.to_vec(), standard })
    }

    /// The keys that a value of a Secret may mean: its bytes, and those without the line's end that `--from-file` keeps.
    pub(super) fn of_secret(value: &[u8]) -> Vec<Self> {
        let trimmed = value.strip_suffix(b"\n").map(|value| value.strip_suffix(b"\r").unwrap_or(value));
        match trimmed {
            Some([]) => Vec::new(),
            _ => [Some(value), trimmed].into_iter().flatten().filter_map(Self::of).collect(),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Why a request is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It has none of the headers that this door knows.
    Missing(&'static str),
    /// The header is not what it should be.
    Malformed(&'static str),
    /// It was made with another key, or over another body.
    Mismatch(&'static str),
    /// It was signed so many seconds before or after our time.
    Untimely(i64),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(headers) => write!(f, "it has no header {headers}"),
            Self::Malformed(header) => write!(f, "its header {header} cannot be read"),
            Self::Mismatch(header) => write!(f, "its header {header} was not made with our key over this body"),
            Self::Untimely(skew) => write!(f, "it was signed {skew} s from our time"),
        }
    }
}

impl Wrong {
    /// What to do about it.
    pub(super) const fn remedy(self) -> &'static str {
        match self {
            Self::Missing(_) => "give the sender the key: in the settings of its webhook, or of its Provider",
            Self::Malformed(_) => "send the header as docs/pipeline.md has it",
            Self::Mismatch(_) => {
                "compare the sender's key with ours, also for blanks and line ends; and see whether something on the way \
                 changes the body"
            }
            Self::Untimely(_) => "set the clocks of both: a request is good for five minutes",
        }
    }
}

/// The older controller's signature, over the body.
pub(super) fn older(headers: &HeaderMap, body: &[u8], keys: &[Key]) -> Result<(), Wrong> {
    let value = header(headers, X_SIGNATURE)?.ok_or(Wrong::Missing(X_SIGNATURE))?;
    let (algorithm, digits) = value.split_once('=').ok_or(Wrong::Malformed(X_SIGNATURE))?;
    let tag = from_hex(digits).ok_or(Wrong::Malformed(X_SIGNATURE))?;
    let is_of = match algorithm {
        "sha224" => is_of::<Hmac<Sha224>>,
        "sha256" => is_of::<Hmac<Sha256>>,
        "sha384" => is_of::<Hmac<Sha384>>,
        "sha512" => is_of::<Hmac<Sha512>>,
        _ => return Err(Wrong::Malformed(X_SIGNATURE)),
    };
    let known = keys.iter().any(|key| is_of(&key.text, &[body], &tag));
    if known { Ok(()) } else { Err(Wrong::Mismatch(X_SIGNATURE)) }
}

/// Whether there is a header of the older controller's.
pub(super) fn is_older(headers: &HeaderMap) -> bool {
    headers.contains_key(X_SIGNATURE)
}

/// The signature of Standard Webhooks, over id, time and body.
pub(super) fn standard(headers: &HeaderMap, body: &[u8], keys: &[Key], wall_s: i64) -> Result<(), Wrong> {
    let signatures = header(headers, STANDARD)?.ok_or(Wrong::Missing(STANDARD))?;
    let id = header(headers, STANDARD_ID)?.ok_or(Wrong::Missing(STANDARD_ID))?;
    let time = header(headers, STANDARD_TIME)?.ok_or(Wrong::Missing(STANDARD_TIME))?;
    let at: i64 = time.parse().map_err(|_| Wrong::Malformed(STANDARD_TIME))?;
    let tags: Vec<Vec<u8>> =
        signatures.split(' ').filter_map(|signature| BASE64.decode(signature.strip_prefix("v1,")?).ok()).collect();
    if tags.is_empty() {
        return Err(Wrong::Malformed(STANDARD));
    }
    let signed: [&[u8]; 5] = [id.as_bytes(), b".", time.as_bytes(), b".", body];
    let is_known = |tag: &Vec<u8>| keys.iter().any(|key| is_of::<Hmac<Sha256>>(&key.standard, &signed, tag));
    if !tags.iter().any(is_known) {
        return Err(Wrong::Mismatch(STANDARD));
    }
    let skew = wall_s.saturating_sub(at);
    if skew.saturating_abs() > TOLERANCE_S { Err(Wrong::Untimely(skew)) } else { Ok(()) }
}

/// Any of the signatures that forges and other programs send. One that is right is enough: a forge may send several.
pub(super) fn any(headers: &HeaderMap, body: &[u8], keys: &[Key], wall_s: i64) -> Result<(), Wrong> {
    let mut first = None;
    for judged in [
        hub(headers, GITHUB, body, keys),
        hub(headers, BITBUCKET, body, keys),
        gitea(headers, body, keys),
        gitlab(headers, keys),
        standard(headers, body, keys, wall_s),
        older(headers, body, keys),
    ] {
        match judged {
            Ok(()) => return Ok(()),
            Err(Wrong::Missing(_)) => {}
            Err(wrong) => first = first.or(Some(wrong)),
        }
    }
    Err(first.unwrap_or(Wrong::Missing("X-Hub-Signature-256, X-Gitlab-Token, X-Gitea-Signature or webhook-signature")))
}

fn hub(headers: &HeaderMap, name: &'static str, body: &[u8], keys: &[Key]) -> Result<(), Wrong> {
    let value = header(headers, name)?.ok_or(Wrong::Missing(name))?;
    // GitHub sends a SHA-1 as well, under Bitbucket's name.
    let Some(digits) = value.strip_prefix("sha256=") else { return Err(Wrong::Malformed(name)) };
    plain(name, digits, body, keys)
}

fn gitea(headers: &HeaderMap, body: &[u8], keys: &[Key]) -> Result<(), Wrong> {
    plain(GITEA, header(headers, GITEA)?.ok_or(Wrong::Missing(GITEA))?, body, keys)
}

fn plain(name: &'static str, digits: &str, body: &[u8], keys: &[Key]) -> Result<(), Wrong> {
    let tag = from_hex(digits).ok_or(Wrong::Malformed(name))?;
    let known = keys.iter().any(|key| is_of::<Hmac<Sha256>>(&key.text, &[body], &tag));
    if known { Ok(()) } else { Err(Wrong::Mismatch(name)) }
}

fn gitlab(headers: &HeaderMap, keys: &[Key]) -> Result<(), Wrong> {
    let token = header(headers, GITLAB)?.ok_or(Wrong::Missing(GITLAB))?;
    // Codes of both are compared, not the texts: that takes as long wherever they differ.
    let is_token = |key: &Key| {
        Hmac::<Sha256>::new_from_slice(&key.text).is_ok_and(|mut mac| {
            mac.update(&key.text);
            is_of::<Hmac<Sha256>>(&key.text, &[token.as_bytes()], &mac.finalize().into_bytes())
        })
    };
    if keys.iter().any(is_token) { Ok(()) } else { Err(Wrong::Mismatch(GITLAB)) }
}

fn is_of<M: Mac + KeyInit>(key: &[u8], signed: &[&[u8]], tag: &[u8]) -> bool {
    <M as KeyInit>::new_from_slice(key).is_ok_and(|mut mac| {
        for part in signed {
            mac.update(part);
        }
        mac.verify_slice(tag).is_ok()
    })
}

/// A header's text; `None` where there is none.
fn header<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, Wrong> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| text.len() <= HEADER_CHARS_MAX);
    text.map(Some).ok_or(Wrong::Malformed(name))
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(hex(*high)? << 4 | hex(*low)?)).collect()
}

#[cfg(test)]
mod tests;
