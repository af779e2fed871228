//! What an answer may say: every field is bounded before anything is done with it.
//!
//! An id becomes part of the next request's address, and the SDK ends the process with a panic where an address cannot be
//! written down (65,534 bytes are the most, `http::Uri`). So an invalid id never gets there. A part out of bounds costs
//! itself only, and is reported.
//!
//! Not for the meaning of answers, but for what one that says no means for its caller ([`class`]).

use aws_sdk_cloudfront::types::{self, ConnectionMode, DistributionSummary, DomainResult, DomainStatus};

use super::rewrites::rewrites;

use kernel::id::InvalidationId;
use kernel::names::distribution::{Distribution, DistributionId};
use purge::ports::{CdnErrorClass, Invalidation, InvalidationStatus};

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
    let rewrites = rewrites(&summary);
    let origins = summary.origins.map(|origins| origins.items).unwrap_or_default();
    let found = Distribution {
        domain_name: names.bounded([summary.domain_name]).pop().unwrap_or_default(),
        aliases: names.bounded(summary.aliases.and_then(|aliases| aliases.items).unwrap_or_default()),
        origins: names.bounded(origins.into_iter().map(|origin| origin.domain_name)),
        enabled: summary.enabled,
        staging: summary.staging,
        tenant_only: summary.connection_mode == Some(ConnectionMode::TenantOnly),
        rewrites,
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

/// A distribution tenant, found by its active domains; `None` as for [`distribution`].
pub(super) fn distribution_tenant(id: &str, domains: Vec<DomainResult>, enabled: Option<bool>) -> Option<Distribution> {
    let id = id.chars().take(2 * ID_CHARS_MAX).collect::<String>().parse::<DistributionId>();
    let id = id.inspect_err(|error| tracing::warn!(%error, "distribution tenant was skipped")).ok()?;
    if !id.is_of_distribution_tenant() {
        tracing::warn!(%id, "distribution tenant was skipped: its id is not one of a distribution tenant");
        return None;
    }
    let mut names = Names { left_out: 0 };
    let active = domains.into_iter().filter(|domain| domain.status == Some(DomainStatus::Active));
    let found = Distribution {
        domain_name: String::new(),
        aliases: names.bounded(active.map(|domain| domain.domain)),
        origins: Vec::new(),
        // The service says so of each; one that says nothing is not said to be disabled.
        enabled: enabled != Some(false),
        staging: false,
        tenant_only: false,
        // The paths of its distribution may hold parameters of each distribution tenant, which the listing does not tell.
        rewrites: true,
        cache_tags: false,
        id,
    };
    if names.left_out > 0 {
        let left_out = names.left_out;
        tracing::warn!(distribution = %found.id, left_out, "domains of a distribution tenant that cannot be host names were left out");
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

/// Sorts an answer that says no. Codes are those of CloudFront's API reference and of AWS's *Common errors*, both read
/// 2026-11; the codes of throttling, and of what passes, are those the SDK itself knows (`aws_runtime::retries::classifiers`).
/// Final are only those that the reference lists for CreateInvalidation and that say something of what we ask for:
/// `BatchTooLarge`, `InvalidArgument`, `NoSuchDistribution`. `MissingBody` and `InconsistentQuantities` say that a request of
/// ours arrived damaged, and everything else may be the words of a proxy, or of another day.
pub(super) fn class(status: u16, code: &str, text: &str) -> CdnErrorClass {
    match (code, status) {
        ("TooManyInvalidationsInProgress", _) => CdnErrorClass::TooManyInProgress,
        // The second is what the operations of distribution tenants say.
        ("NoSuchDistribution" | "EntityNotFound", _) => CdnErrorClass::Gone,
        ("NoSuchInvalidation", _) => CdnErrorClass::NoSuchInvalidation,
        // The API reference names this code, the real service has been seen to answer the second form.
        ("InvalidationBatchAlreadyExists", _) => CdnErrorClass::ReferenceReused,
        ("InvalidArgument", _) if text.contains("caller reference that was used") => CdnErrorClass::ReferenceReused,
        (
            "Throttling"
            | "ThrottlingException"
            | "ThrottledException"
            | "RequestThrottled"
            | "RequestThrottledException"
            | "RequestLimitExceeded"
            | "TooManyRequestsException"
            | "BandwidthLimitExceeded"
            | "PriorRequestNotComplete"
            | "SlowDown",
            _,
        )
        | (_, 429) => CdnErrorClass::Throttled,
        (
            "ExpiredToken"
            | "ExpiredTokenException"
            | "InvalidClientTokenId"
            | "AccessDenied"
            | "AccessDeniedException"
            | "IncompleteSignature"
            | "InvalidSignatureException"
            | "MissingAuthenticationToken"
            | "MissingAuthenticationTokenException"
            | "NotAuthorized"
            | "OptInRequired"
            | "RequestExpired"
            | "UnrecognizedClientException",
            _,
        )
        | (_, 401 | 403) => CdnErrorClass::Denied,
        // 408 is a server that gave up waiting for us: like any time-out. AWS says the same with 400.
        ("RequestTimeout" | "RequestTimeoutException", _) | (_, 408 | 500..) => CdnErrorClass::Ambiguous,
        ("BatchTooLarge" | "InvalidArgument", 400..500) => CdnErrorClass::Refused,
        _ => CdnErrorClass::Unexpected,
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
    fn an_answer_is_sorted_by_its_code_first_and_its_status_second() {
        use CdnErrorClass::*;
        let reused = "Your request contains a caller reference that was used for a previous invalidation batch for the \
                      same distribution.";
        for (status, code, text, expected) in [
            (400, "Throttling", "Rate exceeded", Throttled),
            (503, "SlowDown", "", Throttled),
            (429, "no error code", "", Throttled),
            (400, "TooManyInvalidationsInProgress", "", TooManyInProgress),
            (400, "InvalidArgument", reused, ReferenceReused),
            (409, "InvalidationBatchAlreadyExists", "", ReferenceReused),
            (400, "InvalidArgument", "Your request contains one or more invalid invalidation paths.", Refused),
            (413, "BatchTooLarge", "", Refused),
            (404, "NoSuchDistribution", "", Gone),
            (404, "EntityNotFound", "", Gone),
            (404, "NoSuchInvalidation", "", NoSuchInvalidation),
            (400, "InconsistentQuantities", "", Unexpected),
            (400, "MissingBody", "", Unexpected),
            (400, "SomethingNew", "", Unexpected),
            (404, "no error code", "", Unexpected),
            (405, "no error code", "", Unexpected),
            (407, "no error code", "", Unexpected),
            (302, "no error code", "", Unexpected),
            (400, "RequestTimeout", "", Ambiguous),
            (400, "AccessDeniedException", "", Denied),
            (403, "AccessDenied", "", Denied),
            (403, "SignatureDoesNotMatch", "", Denied),
            (400, "ExpiredToken", "", Denied),
            (500, "InternalError", "", Ambiguous),
            (502, "no error code", "", Ambiguous),
            (503, "ServiceUnavailable", "", Ambiguous),
        ] {
            assert_eq!(class(status, code, text), expected, "{status} {code} {text}");
        }
    }

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
