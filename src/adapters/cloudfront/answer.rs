//! What an answer may say: every field is bounded before anything is done with it.
//!
//! An id becomes part of the next request's address, and the SDK ends the process with a panic where an address cannot be
//! written down (65,534 bytes are the most, `http::Uri`). So an invalid id never gets there. A part out of bounds costs
//! itself only, and is reported.
//!
//! Not for the meaning of answers.

use aws_sdk_cloudfront::types::{self, ConnectionMode, DistributionSummary};

use kernel::id::InvalidationId;
use kernel::names::distribution::Distribution;
use purge::ports::{Invalidation, InvalidationStatus};

/// Longest id of an invalidation in characters. They have 14 to 26; this only keeps nonsense out.
const ID_CHARS_MAX: usize = 64;

/// Longest token for the next page in bytes. It is the id of a distribution today.
const MARKER_BYTES_MAX: usize = 1_024;

/// Longest name of a host in characters (RFC 1035, 2.3.4), with room for the final dot.
const NAME_CHARS_MAX: usize = 254;

/// Most names of one kind of one distribution. By default 100 aliases and 100 origins are allowed
/// (<https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/cloudfront-limits.html>), by request more.
const NAMES_MAX: usize = 5_000;

/// Longest code of an error in characters; the longest known one has 45.
const CODE_CHARS_MAX: usize = 100;

/// Longest text of the service repeated in an error, in characters. Known ones are below 300.
const SERVICE_TEXT_CHARS_MAX: usize = 500;

/// An id as it may be put into an address, or nothing.
pub(super) fn invalidation_id(text: &str) -> Option<InvalidationId> {
    let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let fits = !text.is_empty() && text.len() <= ID_CHARS_MAX && text.chars().all(is_id);
    fits.then(|| InvalidationId(text.to_owned()))
}

/// A token for the next page as it may be put into an address, or nothing.
pub(super) fn marker(text: String) -> Option<String> {
    let fits = !text.is_empty() && text.len() <= MARKER_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then_some(text)
}

/// `None` without an id: it could not be asked about.
pub(super) fn invalidation(answered: &types::Invalidation) -> Option<Invalidation> {
    let (id, created_ms) = (invalidation_id(&answered.id)?, answered.create_time.to_millis().ok());
    Some(Invalidation { id, status: status(&answered.status), created_ms })
}

/// Only a status that says so is completion: CloudFront writes `Completed`, moto `COMPLETED`.
fn status(text: &str) -> InvalidationStatus {
    if text.eq_ignore_ascii_case("Completed") { InvalidationStatus::Completed } else { InvalidationStatus::InProgress }
}

/// The code of an error as it may be compared and shown.
pub(super) fn code(text: Option<&str>) -> &str {
    let is_code = |text: &&str| {
        (1..=CODE_CHARS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
    };
    text.map_or("no error code", |text| Some(text).filter(is_code).unwrap_or("an error code that is none"))
}

/// `None` for one whose id is not an id: it could not be purged anyway, and must not hide the others.
pub(super) fn distribution(summary: DistributionSummary) -> Option<Distribution> {
    let id = summary.id.chars().take(ID_CHARS_MAX + 1).collect::<String>().parse();
    let id = id.inspect_err(|error| tracing::warn!(%error, "distribution was skipped")).ok()?;
    let mut names = Names { left_out: 0 };
    let origins = summary.origins.map(|origins| origins.items).unwrap_or_default();
    let found = Distribution {
        domain_name: names.bounded([summary.domain_name]).pop().unwrap_or_default(),
        aliases: names.bounded(summary.aliases.and_then(|aliases| aliases.items).unwrap_or_default()),
        origins: names.bounded(origins.into_iter().map(|origin| origin.domain_name)),
        enabled: summary.enabled,
        staging: summary.staging,
        tenant_only: summary.connection_mode == Some(ConnectionMode::TenantOnly),
        // The listing does not tell; see `Cdn::cache_tag_header`.
        cache_tags: false,
        id,
    };
    if names.left_out > 0 {
        let left_out = names.left_out;
        tracing::warn!(distribution = %found.id, left_out, "names of a distribution that cannot be host names were left out");
    }
    Some(found)
}

/// Bytes of the names that are kept of a distribution.
pub(super) fn names_bytes(distribution: &Distribution) -> usize {
    distribution.aliases.iter().chain(&distribution.origins).map(String::len).sum()
}

/// Reads the names of one distribution, and counts those that are none.
struct Names {
    left_out: usize,
}

impl Names {
    /// What can be a name, [`NAMES_MAX`] at most in each kind.
    fn bounded(&mut self, names: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut kept = Vec::new();
        for mut name in names {
            if kept.len() < NAMES_MAX && name.chars().nth(NAME_CHARS_MAX).is_none() {
                name.shrink_to_fit();
                kept.push(name);
            } else {
                self.left_out += 1;
            }
        }
        kept
    }
}

/// The service's own text, when it is fit to be shown. A refused signature is explained with what was signed, which
/// includes the session token.
pub(super) fn spoken(code: &str, text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let echoes_request = ["x-amz-", "aws4-hmac", "authorization"].iter().any(|mark| lower.contains(mark));
    if text.is_empty() || echoes_request || code.contains("Signature") {
        return String::new();
    }
    format!(": {}", shown(text))
}

/// On one line, and not for ever.
pub(super) fn shown(text: &str) -> String {
    let printable = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    printable.take(SERVICE_TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_that_echoes_the_request_is_withheld() {
        let echo = "The Canonical String should have been 'GET\\nx-amz-security-token:hunter2'";
        assert_eq!(spoken("SignatureDoesNotMatch", "anything"), "");
        assert_eq!(spoken("SomethingNew", echo), "");
        assert_eq!(spoken("AccessDenied", "User is\nnot authorized"), ": User is not authorized");
        assert_eq!(spoken("X", &"é".repeat(9_999)).chars().count(), SERVICE_TEXT_CHARS_MAX + 2);
    }

    #[test]
    fn only_a_status_that_says_completed_is_completion() {
        for (text, expected) in [
            ("Completed", InvalidationStatus::Completed),
            ("COMPLETED", InvalidationStatus::Completed),
            ("InProgress", InvalidationStatus::InProgress),
            ("", InvalidationStatus::InProgress),
        ] {
            assert_eq!(status(text), expected, "{text}");
        }
    }

    #[test]
    fn an_id_is_letters_digits_and_hyphens_and_not_for_ever() {
        for good in ["I1JLWSDAP8FU89", "IDFDVBD632BHDS5", "i", "0-_"] {
            assert_eq!(invalidation_id(good), Some(InvalidationId(good.to_owned())));
        }
        for bad in ["", "a b", "a/b", "..", "a?b", "é", "a\u{0}", &"I".repeat(65), &"I".repeat(70_000)] {
            assert_eq!(invalidation_id(bad), None);
        }
    }

    #[test]
    fn a_code_is_shown_only_where_it_is_one() {
        assert_eq!(code(None), "no error code");
        assert_eq!(code(Some("Throttling")), "Throttling");
        assert_eq!(code(Some(&"T".repeat(101))), "an error code that is none");
        assert_eq!(code(Some("a\nb")), "an error code that is none");
    }
}
