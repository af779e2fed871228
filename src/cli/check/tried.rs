//! What came of trying an action of AWS.
//!
//! Not for trying it.

use super::catalog::Check;
use super::report::Finding;
use kernel::refusal::Cause;
use purge::ports::CdnError;

/// `tried`: on what, in words.
pub(super) fn judged(check: Check, cause: Cause, refused: Option<CdnError>, tried: &str) -> Finding {
    match refused {
        Some(error) if error.class.cause(cause, &error.message).is_some() => {
            check.failed(error).hint(format!("{}: {}", cause.remedy(), cause.cost()))
        }
        Some(error) => check.warning(error).hint("not a refusal: try again"),
        None if cause == Cause::CreateInvalidation => check.good(format!(
            "not refused on {tried}, by a request that names no path and so purges nothing; AWS does not say that it looks at rights \
             before anything else, so only the first purge proves it"
        )),
        None => check.good(format!("allowed on {tried}")),
    }
}
