//! What came of trying an action of AWS.
//!
//! Not for trying it.

use super::catalog::Check;
use super::report::Finding;
use crate::adapters::cloudfront::accounts::cure;
use crate::app::checking::Cloud;
use kernel::names::distribution::DistributionId;
use kernel::refusal::Cause;
use purge::ports::CdnError;

/// What is needed, and on what; `None`: on all.
type Right<'a> = (Cause, Option<&'a DistributionId>);

/// What would help against a refusal: the statement that allows it where accounts are told apart, else the words of the cause.
pub(super) fn hint(cloud: &Cloud, error: &CdnError, (cause, of): Right<'_>) -> String {
    let cure = cloud.name.as_ref().and_then(|_| cure(&cloud.options, &error.message, cause, of));
    cure.unwrap_or_else(|| cause.remedy().to_owned())
}

/// `tried`: on what, in words.
pub(super) fn judged(
    cloud: &Cloud,
    check: Check,
    (cause, of): Right<'_>,
    refused: Option<CdnError>,
    tried: &str,
) -> Finding {
    match refused {
        Some(error) if error.class.cause(cause, &error.message).is_some() => {
            let hint = format!("{}: {}", hint(cloud, &error, (cause, of)), cause.cost());
            check.failed(error).hint(hint)
        }
        Some(error) => check.warning(error).hint("not a refusal: try again"),
        None if cause == Cause::CreateInvalidation => check.good(format!(
            "not refused on {tried}, by a request that names no path and so purges nothing; AWS does not say that it looks at rights \
             before anything else, so only the first purge proves it"
        )),
        None => check.good(format!("allowed on {tried}")),
    }
}
