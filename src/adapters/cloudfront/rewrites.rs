//! Whether a distribution may ask its origin for another path than people ask it for, as far as its listing says.
//!
//! Not told by the listing: a default root object, by which `/` becomes another path; see docs/purging-less.md.
//! <https://docs.aws.amazon.com/cloudfront/latest/APIReference/API_DistributionSummary.html>

use aws_sdk_cloudfront::types::{
    CacheBehavior, DefaultCacheBehavior, DistributionSummary, EventType, FunctionAssociations,
    LambdaFunctionAssociations,
};

/// Whether one of its origins has a path, a function of it runs on requests, or errors are answered by the page of another path.
pub(super) fn rewrites(summary: &DistributionSummary) -> bool {
    let mut origins = summary.origins.iter().flat_map(|origins| &origins.items);
    let in_default = |one: &DefaultCacheBehavior| {
        runs(one.function_associations.as_ref()) || runs_lambda(one.lambda_function_associations.as_ref())
    };
    let in_other = |one: &CacheBehavior| {
        runs(one.function_associations.as_ref()) || runs_lambda(one.lambda_function_associations.as_ref())
    };
    let mut others = summary.cache_behaviors.iter().flat_map(|all| all.items.iter().flatten());
    let mut errors = summary.custom_error_responses.iter().flat_map(|all| all.items.iter().flatten());
    origins.any(|origin| origin.origin_path.as_deref().is_some_and(|path| !path.is_empty()))
        || summary.default_cache_behavior.as_ref().is_some_and(in_default)
        || others.any(in_other)
        || errors.any(|error| error.response_page_path.as_deref().is_some_and(|path| !path.is_empty()))
}

fn runs(functions: Option<&FunctionAssociations>) -> bool {
    functions.iter().flat_map(|all| all.items.iter().flatten()).any(|one| is_on_requests(&one.event_type))
}

fn runs_lambda(functions: Option<&LambdaFunctionAssociations>) -> bool {
    functions.iter().flat_map(|all| all.items.iter().flatten()).any(|one| is_on_requests(&one.event_type))
}

/// A function on responses changes no path.
fn is_on_requests(event: &EventType) -> bool {
    !matches!(event, EventType::ViewerResponse | EventType::OriginResponse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_cloudfront::types::{FunctionAssociation, LambdaFunctionAssociation};

    #[test]
    fn a_function_on_requests_may_change_a_path_and_one_on_responses_does_not() {
        let function = |event: EventType| {
            let one = FunctionAssociation::builder().function_arn("arn").event_type(event).build().unwrap();
            FunctionAssociations::builder().quantity(1).items(one).build().unwrap()
        };
        let lambda = |event: EventType| {
            let one =
                LambdaFunctionAssociation::builder().lambda_function_arn("arn").event_type(event).build().unwrap();
            LambdaFunctionAssociations::builder().quantity(1).items(one).build().unwrap()
        };
        for (event, changes) in [
            (EventType::ViewerRequest, true),
            (EventType::OriginRequest, true),
            (EventType::from("of-tomorrow"), true),
            (EventType::ViewerResponse, false),
            (EventType::OriginResponse, false),
        ] {
            assert_eq!(runs(Some(&function(event.clone()))), changes, "{event}");
            assert_eq!(runs_lambda(Some(&lambda(event.clone()))), changes, "{event}");
        }
        assert!(!runs(None) && !runs_lambda(None));
    }
}
