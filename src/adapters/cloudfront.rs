//! CloudFront through the AWS SDK; the only file that knows the SDK.
//!
//! Every call ends within [`Timeouts::operation`]. The SDK itself sends each request once: backing off is the purge
//! machine's business, which counts calls per account, and a retry it does not know of would break its count. Listing
//! distributions is the exception, since one throttled page would lose all pages before it.
//!
//! Errors are sorted by what the caller has to do ([`CdnErrorClass`]). They carry the service's words, but never what
//! could hold a credential: a refused signature is answered by AWS with the signed headers, session token included.
//!
//! Answers are bounded as a whole (`transport`) and field by field (`answer`).

pub mod accounts;
mod answer;
mod distribution_tenants;
pub mod probe;
mod rewrites;
mod role;
mod transport;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::environment::region::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_cloudfront::Client;
use aws_sdk_cloudfront::config::http::HttpResponse;
use aws_sdk_cloudfront::config::{Builder, Credentials};
use aws_sdk_cloudfront::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_cloudfront::types::{InvalidationBatch, Paths};
use aws_smithy_runtime_api::client::http::SharedHttpClient;

use http_body_util::LengthLimitError;

use kernel::id::{InvalidationId, Reference};
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::host::Host;
use kernel::names::paths::{Path, PathSet};
use purge::ports::{Cdn, CdnError, CdnErrorClass, Found, Invalidation, InvalidationStatus};

pub use role::Role;

/// Most distributions read: 100 pages of 100. The service's default quota is 500 distributions per account.
const PAGES_MAX: usize = 100;

/// Most distributions in one page: the service gives 100.
const PAGE_ITEMS_MAX: usize = 1_000;

/// Most bytes of names in all pages: a hundred thousand aliases of 253 characters, and as many origins, are less.
const NAMES_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How often one page of the listing is asked for before the whole listing fails.
const LISTING_ATTEMPTS_MAX: u32 = 3;

/// How many of the newest invalidations [`Cdn::find`] looks into, each with one GetInvalidation. A reference is looked for
/// right after it was refused as used: anything further down is not ours of this minute, and the quota of wildcards in
/// progress is 15.
const FIND_MAX: u16 = 20;

/// Deepest chain of causes looked at.
const CAUSES_MAX: usize = 16;

/// How to reach CloudFront. The default takes everything from the environment, as every AWS tool does.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where to send requests instead of AWS; before `AWS_ENDPOINT_URL_CLOUDFRONT`, `AWS_ENDPOINT_URL` and the profile.
    pub endpoint_url: Option<String>,
    /// The region, before `AWS_REGION` and the profile. CloudFront has one endpoint per partition, so that only a region
    /// in China makes a difference; unset everywhere it is `us-east-1`, for which CloudFront's requests are signed.
    pub region: Option<String>,
    /// Fixed credentials instead of the default chain (environment, profile, web identity, Pod Identity, ECS, IMDS).
    pub credentials: Option<StaticCredentials>,
    /// The role that is assumed with those credentials, in another account; `None`: they are used as they are.
    pub role: Option<Role>,
    pub timeouts: Timeouts,
}

/// Bounds of time for every call. Without them the SDK waits for ever for a peer that never answers (measured).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection is there.
    pub connect: Duration,
    /// For one request and its answer, connecting included.
    pub attempt: Duration,
    /// For a call with all its attempts, getting credentials included.
    pub operation: Duration,
}

/// An access key. Its Debug shows the id, which is not secret, and not the key.
#[derive(Clone)]
pub struct StaticCredentials {
    /// The access key id.
    pub access_key_id: String,
    /// The secret access key.
    pub secret_access_key: String,
}

/// The CDN port on top of CloudFront.
#[derive(Clone)]
pub struct CloudFront {
    client: Client,
    sts: aws_sdk_sts::Client,
    timeouts: Timeouts,
}

impl CloudFront {
    /// Reads the AWS configuration and prepares a client. Sends nothing and cannot fail: missing or bad credentials show
    /// at the first call, as [`CdnErrorClass::Denied`], because they may arrive, expire and be rotated while we run.
    pub async fn new(options: Options) -> CloudFront {
        Self::over(transport::client(), options).await
    }

    /// The same over another transport: tests answer from memory.
    pub async fn over(transport: SharedHttpClient, options: Options) -> CloudFront {
        let Options { endpoint_url, region, credentials, role, timeouts } = options;
        // Not the default region chain: its last resort asks the EC2 metadata service, which in a cluster without it
        // costs seconds at every start and knows nothing we need.
        let region = RegionProviderChain::first_try(region.map(Region::new))
            .or_else(EnvironmentVariableRegionProvider::new())
            .or_else(ProfileFileRegionProvider::new())
            .or_else(Region::from_static("us-east-1"));
        let mut loader = aws_config::defaults(BehaviorVersion::latest()).region(region).http_client(transport);
        if let Some(StaticCredentials { access_key_id, secret_access_key }) = credentials {
            loader = loader.credentials_provider(Credentials::new(
                access_key_id,
                secret_access_key,
                None,
                None,
                "allclear options",
            ));
        }
        // No time-outs for the loader's own clients (STS, Pod Identity): a call's `operation` bound includes them.
        let shared = loader.load().await;
        let shared = match role {
            Some(role) => role::assumed(shared, role, endpoint_url.as_deref()).await,
            None => shared,
        };
        let bounds = TimeoutConfig::builder()
            .connect_timeout(timeouts.connect)
            .operation_attempt_timeout(timeouts.attempt)
            .operation_timeout(timeouts.operation)
            .build();
        let mut sts = aws_sdk_sts::config::Builder::from(&shared)
            .retry_config(RetryConfig::disabled())
            .timeout_config(bounds.clone());
        let mut config = Builder::from(&shared).retry_config(RetryConfig::disabled()).timeout_config(bounds);
        if let Some(endpoint_url) = endpoint_url {
            // What stands in for CloudFront stands in for STS: no other account is meant.
            sts = sts.endpoint_url(&endpoint_url);
            config = config.endpoint_url(endpoint_url);
        }
        let sts = aws_sdk_sts::Client::from_conf(sts.build());
        CloudFront { client: Client::from_conf(config.build()), sts, timeouts }
    }

    async fn newest(&self, distribution: &DistributionId) -> Result<Vec<InvalidationId>, CdnError> {
        let attempted = || format!("failed to list the invalidations of {}", distribution.words());
        let list = if distribution.is_of_distribution_tenant() {
            self.list_for_tenant(distribution, attempted).await?
        } else {
            let call = self.client.list_invalidations().distribution_id(distribution.as_str());
            let answer = call.max_items(FIND_MAX.into()).send().await;
            answer.map_err(|error| failure(attempted(), &error))?.invalidation_list
        };
        let items = list.and_then(|list| list.items).unwrap_or_default();
        // The service may give more than it was asked for; our bound is ours.
        let ids = items.iter().take(FIND_MAX.into()).filter_map(|item| {
            let id = answer::invalidation_id(&item.id);
            if id.is_none() {
                tracing::warn!(%distribution, "an invalidation was skipped whose id is none");
            }
            id
        });
        Ok(ids.collect())
    }

    async fn get(
        &self,
        distribution: &DistributionId,
        id: &InvalidationId,
    ) -> Result<(Invalidation, Option<InvalidationBatch>), CdnError> {
        let mut found = self.get_whole(distribution, id).await?;
        let batch = found.invalidation_batch.take();
        let attempted = || format!("failed to get invalidation {id} of {}", distribution.words());
        Ok((answer::invalidation(&found).ok_or_else(|| truncated(attempted()))?, batch))
    }

    async fn get_whole(
        &self,
        distribution: &DistributionId,
        id: &InvalidationId,
    ) -> Result<aws_sdk_cloudfront::types::Invalidation, CdnError> {
        // What was recorded before answers were bounded may be none; nothing has this id then.
        let Some(id) = answer::invalidation_id(&id.0) else {
            let message = format!("the recorded invalidation of {} has an id that is none", distribution.words());
            return Err(CdnError { class: CdnErrorClass::NoSuchInvalidation, message });
        };
        let attempted = || format!("failed to get invalidation {id} of {}", distribution.words());
        let found = if distribution.is_of_distribution_tenant() {
            self.get_for_tenant(distribution, &id, attempted).await?
        } else {
            let call = self.client.get_invalidation().distribution_id(distribution.as_str()).id(&id.0);
            call.send().await.map_err(|error| failure(attempted(), &error))?.invalidation
        };
        found.ok_or_else(|| truncated(attempted()))
    }

    async fn invalidate(
        &self,
        distribution: &DistributionId,
        batch: InvalidationBatch,
        attempted: impl Fn() -> String,
    ) -> Result<Option<aws_sdk_cloudfront::types::Invalidation>, CdnError> {
        if distribution.is_of_distribution_tenant() {
            return self.create_for_tenant(distribution, batch, attempted).await;
        }
        let call = self.client.create_invalidation().distribution_id(distribution.as_str()).invalidation_batch(batch);
        Ok(call.send().await.map_err(|error| failure(attempted(), &error))?.invalidation)
    }

    async fn search(&self, distribution: &DistributionId, reference: &Reference) -> Result<Option<Found>, CdnError> {
        for id in self.newest(distribution).await? {
            match self.get(distribution, &id).await {
                Ok((found, Some(batch))) if batch.caller_reference == reference.0 => {
                    let items = batch.paths.and_then(|paths| paths.items).unwrap_or_default();
                    // One we could not have sent says nothing of what else was: it is left out.
                    let sent: Vec<Path> = items.iter().filter_map(|item| item.parse().ok()).collect();
                    return Ok(PathSet::of(sent).map(|sent| Found {
                        invalidation: found.id,
                        sent,
                        created_ms: found.created_ms,
                    }));
                }
                Ok(_) => {}
                // Listed and gone a moment later: not the one.
                Err(error) if error.class == CdnErrorClass::NoSuchInvalidation => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

#[async_trait]
impl Cdn for CloudFront {
    async fn distributions(&self) -> Result<Vec<Distribution>, CdnError> {
        let attempted = || "failed to list distributions".to_owned();
        let mut distributions = Vec::new();
        let mut marker = None;
        for _ in 0..PAGES_MAX {
            let retrying = RetryConfig::standard().with_max_attempts(LISTING_ATTEMPTS_MAX);
            let call = self.client.list_distributions().set_marker(marker.take()).customize();
            let call = call.config_override(Builder::default().retry_config(retrying));
            let answer = call.send().await.map_err(|error| failure(attempted(), &error))?;
            let page = answer.distribution_list.ok_or_else(|| truncated(attempted()))?;
            let items = page.items.unwrap_or_default();
            if usize::try_from(page.quantity) != Ok(items.len()) {
                return Err(truncated(attempted()));
            }
            if items.len() > PAGE_ITEMS_MAX {
                return Err(unusable(attempted(), &format!("a page has more than {PAGE_ITEMS_MAX} of them")));
            }
            distributions.extend(items.into_iter().filter_map(answer::distribution));
            if distributions.iter().map(answer::names_bytes).sum::<usize>() > NAMES_BYTES_MAX {
                return Err(unusable(attempted(), &format!("they have more than {NAMES_BYTES_MAX} bytes of names")));
            }
            if !page.is_truncated {
                return Ok(distributions);
            }
            marker = page.next_marker.and_then(answer::marker);
            if marker.is_none() {
                return Err(unusable(attempted(), "the service does not say where the next page begins"));
            }
        }
        Err(unusable(attempted(), &format!("there are more than {PAGES_MAX} pages of them")))
    }

    async fn distribution_tenants(&self, of: &BTreeSet<DistributionId>) -> Result<Vec<Distribution>, CdnError> {
        self.list_tenants(of).await
    }

    async fn distribution_tenant(&self, domain: &Host) -> Result<Option<Distribution>, CdnError> {
        self.find_tenant(domain).await
    }

    async fn cache_tag_header(&self, distribution: &DistributionId) -> Result<Option<String>, CdnError> {
        if distribution.is_of_distribution_tenant() {
            return Ok(None);
        }
        let attempted =
            || format!("failed to read the configuration of {distribution}, to see whether it has cache tags");
        let call = self.client.get_distribution_config().id(distribution.as_str());
        let answer = call.send().await.map_err(|error| failure(attempted(), &error))?;
        let config = answer.distribution_config.ok_or_else(|| truncated(attempted()))?;
        Ok(config.cache_tag_config.map(|tags| tags.header_name))
    }

    async fn create(
        &self,
        distribution: &DistributionId,
        reference: &Reference,
        paths: &PathSet,
    ) -> Result<Invalidation, CdnError> {
        let attempted = || format!("failed to create an invalidation on {}", distribution.words());
        let items = paths.iter().map(|path| path.as_str().to_owned()).collect();
        let made = self.invalidate(distribution, batch(&reference.0, items, attempted)?, attempted).await?;
        made.as_ref().and_then(answer::invalidation).ok_or_else(|| truncated(attempted()))
    }

    async fn status(&self, distribution: &DistributionId, id: &InvalidationId) -> Result<InvalidationStatus, CdnError> {
        Ok(self.get(distribution, id).await?.0.status)
    }

    async fn created_ms(&self, distribution: &DistributionId, id: &InvalidationId) -> Result<Option<i64>, CdnError> {
        Ok(self.get_whole(distribution, id).await?.create_time.to_millis().ok())
    }

    async fn find(&self, distribution: &DistributionId, reference: &Reference) -> Result<Option<Found>, CdnError> {
        // Up to 21 calls, each with its own bound: together they get twice the bound of one.
        let bound = self.timeouts.operation.saturating_mul(2);
        let search = tokio::time::timeout(bound, self.search(distribution, reference));
        search.await.unwrap_or_else(|_| {
            let place = distribution.words();
            let message = format!("failed to find a reference on {place}: no end within {bound:?}");
            Err(CdnError { class: CdnErrorClass::Ambiguous, message })
        })
    }
}

impl Default for Timeouts {
    /// 3 s, 10 s and 30 s: a connection across the world takes below 1 s, the slowest known answers take a few seconds.
    fn default() -> Timeouts {
        Timeouts {
            connect: Duration::from_secs(3),
            attempt: Duration::from_secs(10),
            operation: Duration::from_secs(30),
        }
    }
}

impl fmt::Debug for StaticCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticCredentials").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

impl fmt::Debug for CloudFront {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudFront").field("timeouts", &self.timeouts).finish_non_exhaustive()
    }
}

fn batch(reference: &str, items: Vec<String>, attempted: impl Fn() -> String) -> Result<InvalidationBatch, CdnError> {
    let quantity = i32::try_from(items.len()).unwrap_or(i32::MAX);
    let paths = Paths::builder().quantity(quantity).set_items(Some(items)).build();
    let batch = paths.and_then(|paths| InvalidationBatch::builder().paths(paths).caller_reference(reference).build());
    batch.map_err(|error| unusable(attempted(), &error.to_string()))
}

/// Sorts an error of the SDK and puts it into words.
fn failure<E>(attempted: String, error: &SdkError<E, HttpResponse>) -> CdnError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let refused = error.raw_response().map(|answer| answer.status().as_u16()).filter(|status| *status >= 300);
    let (class, cause) = match (refused, error) {
        (Some(status), _) => {
            let (code, text) = (answer::code(error.code()), error.message().unwrap_or_default());
            (answer::class(status, code, text), format!("{code} (HTTP {status}){}", answer::spoken(code, text)))
        }
        (None, error) if is_about_credentials(error) => {
            role::refused(error).unwrap_or_else(|| (CdnErrorClass::Denied, causes(error)))
        }
        // Not sent at all: something in the request cannot be written down, such as an impossible endpoint. A person can
        // mend that, and the purge is still owed.
        (None, SdkError::ConstructionFailure(_)) => (CdnErrorClass::Unexpected, causes(error)),
        // No answer, or one that says success and cannot be read: it may have happened.
        (None, error) => (CdnErrorClass::Ambiguous, causes(error)),
    };
    CdnError { class, message: format!("{attempted}: {cause}") }
}

/// States that an answer was too large. Otherwise: an error and its causes, outermost first, each in its own words.
/// Not their Debug, which shows whole answers.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    if chain(error).any(|cause| cause.is::<LengthLimitError>()) {
        return format!("the answer has more than {} bytes", transport::ANSWER_BYTES_MAX);
    }
    let mut words: Vec<String> = Vec::new();
    for cause in chain(error) {
        // An answer that cannot be read may be quoted by the reader.
        let said = answer::shown(&cause.to_string());
        // Many wrappers repeat what they wrap.
        if !words.iter().any(|earlier| earlier.contains(&said)) {
            words.push(said);
        }
    }
    words.join(": ")
}

fn is_about_credentials(error: &(dyn std::error::Error + 'static)) -> bool {
    chain(error).any(|cause| cause.is::<CredentialsError>())
}

fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |cause| cause.source()).take(CAUSES_MAX)
}

/// The service said yes, and the rest is missing: whatever was asked for may have happened. The SDK does not notice; it
/// reads XML that ends early and fills what is missing with empty values.
fn truncated(attempted: String) -> CdnError {
    CdnError { class: CdnErrorClass::Ambiguous, message: format!("{attempted}: the answer is incomplete") }
}

/// Nothing documents such an answer, or such a limit, as final.
fn unusable(attempted: String, cause: &str) -> CdnError {
    CdnError { class: CdnErrorClass::Unexpected, message: format!("{attempted}: {cause}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_secret() {
        let credentials =
            StaticCredentials { access_key_id: "AKIDEXAMPLE".into(), secret_access_key: "hunter2".into() };
        let shown = format!("{:?}", Options { credentials: Some(credentials), ..Options::default() });
        assert!(shown.contains("AKIDEXAMPLE") && !shown.contains("hunter2"), "{shown}");
    }
}
