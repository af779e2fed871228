//! The credentials of a role in another account: the SDK's own provider assumes it, and assumes it again before they expire.
//!
//! Not for credentials that AWS takes back before: `accounts` begins anew then.

use std::fmt;

use aws_config::SdkConfig;
use aws_config::sts::AssumeRoleProvider;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_cloudfront::config::http::HttpResponse;
use aws_sdk_cloudfront::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sts::operation::assume_role::AssumeRoleError;

use super::{answer, causes, chain};
use purge::ports::CdnErrorClass;

/// The name of our sessions, which the other account reads in its CloudTrail.
const SESSION: &str = "allclear";

/// A role to assume.
#[derive(Clone, PartialEq, Eq)]
pub struct Role {
    /// Such as `arn:aws:iam::123456789012:role/allclear`.
    pub arn: String,
    /// What the role's trust policy wants to hear of who assumes it. AWS does not take it for a secret; we do not show it all the same.
    pub external_id: Option<String>,
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Role").field("arn", &self.arn).finish_non_exhaustive()
    }
}

/// The configuration with the role's credentials in place of those that assume it.
pub(super) async fn assumed(base: SdkConfig, Role { arn, external_id }: Role, endpoint_url: Option<&str>) -> SdkConfig {
    let mut of_sts = base.to_builder();
    // What stands in for CloudFront stands in for STS.
    of_sts.set_endpoint_url(endpoint_url.map(str::to_owned).or_else(|| base.endpoint_url().map(str::to_owned)));
    let mut provider = AssumeRoleProvider::builder(arn).session_name(SESSION).configure(&of_sts.build());
    if let Some(external_id) = external_id {
        provider = provider.external_id(external_id);
    }
    let provider = SharedCredentialsProvider::new(provider.build().await);
    base.into_builder().credentials_provider(provider).build()
}

/// Why a role could not be assumed, if that is why there are no credentials. STS that does not answer, or has too much to do, is no
/// refusal: it passes, and nothing was sent to CloudFront.
pub(super) fn refused(error: &(dyn std::error::Error + 'static)) -> Option<(CdnErrorClass, String)> {
    let of_sts = |cause: &'_ (dyn std::error::Error + 'static)| -> Option<(CdnErrorClass, String)> {
        let error = cause.downcast_ref::<SdkError<AssumeRoleError, HttpResponse>>()?;
        let status = error.raw_response().map(|answer| answer.status().as_u16());
        let Some(status) = status.filter(|status| *status >= 300) else {
            return Some((CdnErrorClass::Ambiguous, format!("the role cannot be assumed: {}", causes(error))));
        };
        let (code, text) = (answer::code(error.code()), error.message().unwrap_or_default());
        let class = match answer::class(status, code, text) {
            class @ (CdnErrorClass::Throttled | CdnErrorClass::Ambiguous) => class,
            CdnErrorClass::TooManyInProgress
            | CdnErrorClass::Denied
            | CdnErrorClass::Gone
            | CdnErrorClass::NoSuchInvalidation
            | CdnErrorClass::ReferenceReused
            | CdnErrorClass::Refused
            | CdnErrorClass::Unexpected => CdnErrorClass::Denied,
        };
        // Without the status: it is no answer of CloudFront's, whose words say which right is missing (`CdnErrorClass::cause`).
        Some((class, format!("the role cannot be assumed: {code}{}", answer::spoken(code, text))))
    };
    chain(error).find_map(of_sts)
}
