//! What can be learnt of our rights in AWS without purging anything.
//!
//! CloudFront has no dry run of CreateInvalidation. What is sent instead is a batch without any path, which names nothing that could
//! be purged, whatever comes of it. `AccessDenied` proves that the right is missing. Every other answer says that the request got past
//! the question of rights *as far as is known*: AWS documents the errors of the call, and not their order
//! (<https://docs.aws.amazon.com/cloudfront/latest/APIReference/API_CreateInvalidation.html>). Simulating a policy
//! (`iam:SimulatePrincipalPolicy`) would prove more and needs a right that the controller does not have.
//!
//! Not for what follows from it.

use super::{CloudFront, batch, failure, unusable};
use kernel::names::distribution::DistributionId;
use purge::ports::{CdnError, CdnErrorClass};

/// The reference of a batch that is never accepted.
const REFERENCE: &str = "allclear-check";

/// An id that no invalidation has: ours begin with `I`, and have no word in them.
const NO_INVALIDATION: &str = "IALLCLEARCHECK";

/// Our identity at AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Such as `arn:aws:sts::123456789012:assumed-role/allclear/1700000000`.
    pub arn: String,
    pub account: String,
}

impl CloudFront {
    /// Asks AWS STS for our identity. Needs no permission.
    ///
    /// # Errors
    /// When STS does not answer, or does not know us.
    pub async fn identity(&self) -> Result<Identity, CdnError> {
        let attempted = || "failed to ask AWS STS for our identity".to_owned();
        let answer = self.sts.get_caller_identity().send().await.map_err(|error| failure(attempted(), &error))?;
        match (answer.arn, answer.account) {
            (Some(arn), Some(account)) => Ok(Identity { arn, account }),
            _ => Err(unusable(attempted(), "the answer does not say")),
        }
    }

    /// The region, whose partition CloudFront is in.
    pub fn region(&self) -> String {
        self.client.config().region().map(ToString::to_string).unwrap_or_default()
    }

    /// Whether CreateInvalidation is refused to us, by a batch without a path. Nothing can be purged by it.
    ///
    /// # Errors
    /// When it is, or when nothing came of it.
    pub async fn try_create(&self, distribution: &DistributionId) -> Result<(), CdnError> {
        let attempted = || format!("failed to create an invalidation on {}", distribution.words());
        let nothing = batch(REFERENCE, Vec::new(), attempted)?;
        judged(self.invalidate(distribution, nothing, attempted).await.map(drop))
    }

    /// Whether GetInvalidation is refused to us, by an id that nothing has.
    ///
    /// # Errors
    /// As [`Self::try_create`].
    pub async fn try_get(&self, distribution: &DistributionId) -> Result<(), CdnError> {
        judged(self.get_whole(distribution, &NO_INVALIDATION.into()).await.map(drop))
    }

    /// Whether ListInvalidations is refused to us.
    ///
    /// # Errors
    /// As [`Self::try_create`].
    pub async fn try_list(&self, distribution: &DistributionId) -> Result<(), CdnError> {
        judged(self.newest(distribution).await.map(drop))
    }
}

/// What the service says of a request that it took is good enough, whatever it says.
fn judged(answer: Result<(), CdnError>) -> Result<(), CdnError> {
    match answer {
        Err(error) => match error.class {
            CdnErrorClass::Denied | CdnErrorClass::Ambiguous | CdnErrorClass::Throttled => Err(error),
            CdnErrorClass::Gone
            | CdnErrorClass::NoSuchInvalidation
            | CdnErrorClass::ReferenceReused
            | CdnErrorClass::TooManyInProgress
            | CdnErrorClass::Refused
            | CdnErrorClass::Unexpected => Ok(()),
        },
        Ok(()) => Ok(()),
    }
}
