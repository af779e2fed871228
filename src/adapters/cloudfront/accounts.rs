//! Several AWS accounts, each with a client, credentials and words of its own.
//!
//! A refusal names the account, the action, the resource and the IAM statement that would allow it. Credentials that AWS calls expired
//! before their time are asked for anew, once for each call: the call is the same, with the same reference, so nothing happens twice.
//!
//! Not for which account has what; `purge::purges::accounts` finds that out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use aws_smithy_runtime_api::client::http::SharedHttpClient;

use super::{CloudFront, Options, transport};
use kernel::id::{InvalidationId, Reference};
use kernel::names::account::AccountName;
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::host::Host;
use kernel::names::paths::PathSet;
use kernel::refusal::Cause;
use purge::ports::{Cdn, CdnError, CdnErrorClass, Found, Invalidation, InvalidationStatus};

/// What AWS says of credentials that were good before: their time is over, by its clock.
const EXPIRED: [&str; 2] = ["ExpiredToken (HTTP ", "ExpiredTokenException (HTTP "];

/// All of them, by name. As one CDN it is the union; who knows the account asks that one.
pub struct Accounts(BTreeMap<AccountName, Arc<InAccount>>);

/// One account.
pub struct InAccount {
    name: AccountName,
    options: Options,
    transport: SharedHttpClient,
    /// The client with the credentials of now.
    present: Mutex<Arc<CloudFront>>,
}

impl Accounts {
    /// Prepares a client for each. Sends nothing and cannot fail; see [`CloudFront::new`].
    pub async fn new(accounts: impl IntoIterator<Item = (AccountName, Options)>) -> Self {
        let mut each = BTreeMap::new();
        for (name, options) in accounts {
            let account = InAccount::over(transport::client(), name.clone(), options).await;
            each.insert(name, Arc::new(account));
        }
        Self(each)
    }

    /// The account that lists a distribution. Who looks for one often keeps what it finds.
    async fn home(&self, distribution: &DistributionId) -> Result<&Arc<InAccount>, CdnError> {
        let mut unlisted = None;
        for account in self.0.values() {
            match account.has(distribution).await {
                Ok(true) => return Ok(account),
                Ok(false) => {}
                Err(error) => unlisted = unlisted.or(Some(error)),
            }
        }
        let nowhere = || format!("none of the AWS accounts has {}", distribution.words());
        Err(unlisted.unwrap_or_else(|| CdnError { class: CdnErrorClass::Gone, message: nowhere() }))
    }
}

impl InAccount {
    async fn over(transport: SharedHttpClient, name: AccountName, options: Options) -> Self {
        let present = Arc::new(CloudFront::over(transport.clone(), options.clone()).await);
        Self { name, options, transport, present: Mutex::new(present) }
    }

    fn present(&self) -> Arc<CloudFront> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins anew with other credentials, unless another call has done so.
    async fn renew(&self, expired: &Arc<CloudFront>) {
        let renewed = Arc::new(CloudFront::over(self.transport.clone(), self.options.clone()).await);
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&present, expired) {
            tracing::info!(account = %self.name, "AWS called the credentials expired; they were asked for anew");
            *present = renewed;
        }
    }

    /// The distributions of it that serve distribution tenants only. Where there are none, it needs no right to those.
    async fn shared(&self) -> Result<BTreeSet<DistributionId>, CdnError> {
        let all = self.distributions().await?.into_iter();
        Ok(all.filter(Distribution::serves_distribution_tenants).map(|one| one.id).collect())
    }

    /// Whether it lists a distribution, or a distribution tenant.
    async fn has(&self, distribution: &DistributionId) -> Result<bool, CdnError> {
        let is_it = |one: &Distribution| one.id == *distribution;
        if !distribution.is_of_distribution_tenant() {
            return Ok(self.distributions().await?.iter().any(is_it));
        }
        let shared = self.shared().await?;
        Ok(!shared.is_empty() && self.distribution_tenants(&shared).await?.iter().any(is_it))
    }

    /// Makes a call that needs this right on `distribution`; `None`: on all.
    async fn call<T, F>(
        &self,
        (right, distribution): (Cause, Option<&DistributionId>),
        call: impl Fn(Arc<CloudFront>) -> F,
    ) -> Result<T, CdnError>
    where
        F: Future<Output = Result<T, CdnError>>,
    {
        let used = self.present();
        let mut answer = call(used.clone()).await;
        if answer.as_ref().is_err_and(is_expired) {
            self.renew(&used).await;
            answer = call(self.present()).await;
        }
        answer.map_err(|error| self.told(error, right, distribution))
    }

    /// The error with the account in it, and with what would allow the call.
    fn told(
        &self,
        CdnError { class, message }: CdnError,
        right: Cause,
        distribution: Option<&DistributionId>,
    ) -> CdnError {
        let cure =
            if class == CdnErrorClass::Denied { cure(&self.options, &message, right, distribution) } else { None };
        let cure = cure.map(|cure| format!("; {cure}")).unwrap_or_default();
        CdnError { class, message: format!("AWS account {}: {message}{cure}", self.name) }
    }
}

fn is_expired(error: &CdnError) -> bool {
    error.class == CdnErrorClass::Denied && EXPIRED.iter().any(|code| error.message.contains(code))
}

/// What would allow a call that was refused; nothing where a right would not help.
pub fn cure(
    Options { role, .. }: &Options,
    message: &str,
    right: Cause,
    distribution: Option<&DistributionId>,
) -> Option<String> {
    // No statement that allows prevails over one that denies.
    if message.contains("explicit deny") {
        return None;
    }
    if CdnErrorClass::Denied.cause(right, message) == Some(right) {
        let action = refused_action(message, "cloudfront:")
            .unwrap_or_else(|| action(distribution.map_or(right, |of| right.on(of))));
        let (partition, number) = role.as_ref().map_or(("aws", "*"), |role| parts(&role.arn));
        let resource = distribution.map_or("*".to_owned(), |of| {
            let kind = if of.is_of_distribution_tenant() { "distribution-tenant" } else { "distribution" };
            format!("arn:{partition}:cloudfront::{number}:{kind}/{of}")
        });
        let whose = role.as_ref().map_or("our identity".to_owned(), |role| role.arn.clone());
        return Some(format!(
            "a policy of {whose} allows it with {{\"Effect\": \"Allow\", \"Action\": \"cloudfront:{action}\", \"Resource\": \"{resource}\"}}"
        ));
    }
    let role = role.as_ref().filter(|_| message.contains("the role cannot be assumed"))?;
    let condition = if role.external_id.is_some() {
        ", under the condition that sts:ExternalId is the external_id here"
    } else {
        ""
    };
    let action = refused_action(message, "sts:").unwrap_or_else(|| "AssumeRole".to_owned());
    Some(format!(
        "a policy of our own identity allows it with {{\"Effect\": \"Allow\", \"Action\": \"sts:{action}\", \"Resource\": \"{}\"}}, and \
         the role's trust policy has to allow sts:{action} to that identity{condition}",
        role.arn
    ))
}

/// The action of a service that AWS itself names as refused: it may be another one than that of the call.
fn refused_action(message: &str, service: &str) -> Option<String> {
    let (_, named) = message.split_once("not authorized to perform: ")?;
    let action: String = named.strip_prefix(service)?.chars().take_while(char::is_ascii_alphanumeric).collect();
    (!action.is_empty()).then_some(action)
}

/// The IAM action of a right: its operation, which IAM writes without underscores.
fn action(right: Cause) -> String {
    let words = right.name().split('_');
    let word = |word: &str| {
        word.get(..1).map(|first| format!("{}{}", first.to_uppercase(), word.get(1..).unwrap_or_default()))
    };
    words.filter_map(word).collect()
}

/// The partition and the account number of a role.
fn parts(arn: &str) -> (&str, &str) {
    let mut parts = arn.split(':').skip(1);
    (parts.next().unwrap_or("aws"), parts.nth(2).unwrap_or("*"))
}

#[async_trait]
impl Cdn for InAccount {
    async fn distributions(&self) -> Result<Vec<Distribution>, CdnError> {
        self.call((Cause::ListDistributions, None), |cdn| async move { cdn.distributions().await }).await
    }

    async fn distribution_tenants(&self, of: &BTreeSet<DistributionId>) -> Result<Vec<Distribution>, CdnError> {
        let call = |cdn: Arc<CloudFront>| async move { cdn.distribution_tenants(of).await };
        self.call((Cause::ListDistributionTenants, None), call).await
    }

    async fn distribution_tenant(&self, domain: &Host) -> Result<Option<Distribution>, CdnError> {
        let call = |cdn: Arc<CloudFront>| async move { cdn.distribution_tenant(domain).await };
        self.call((Cause::FindDistributionTenant, None), call).await
    }

    async fn cache_tag_header(&self, distribution: &DistributionId) -> Result<Option<String>, CdnError> {
        let call = |cdn: Arc<CloudFront>| async move { cdn.cache_tag_header(distribution).await };
        self.call((Cause::ReadTags, Some(distribution)), call).await
    }

    async fn create(
        &self,
        distribution: &DistributionId,
        reference: &Reference,
        paths: &PathSet,
    ) -> Result<Invalidation, CdnError> {
        let call = |cdn: Arc<CloudFront>| async move { cdn.create(distribution, reference, paths).await };
        self.call((Cause::CreateInvalidation, Some(distribution)), call).await
    }

    async fn status(&self, distribution: &DistributionId, id: &InvalidationId) -> Result<InvalidationStatus, CdnError> {
        let call = |cdn: Arc<CloudFront>| async move { cdn.status(distribution, id).await };
        self.call((Cause::GetInvalidation, Some(distribution)), call).await
    }

    async fn created_ms(&self, distribution: &DistributionId, id: &InvalidationId) -> Result<Option<i64>, CdnError> {
        let call = |cdn: Arc<CloudFront>| async move { cdn.created_ms(distribution, id).await };
        self.call((Cause::GetInvalidation, Some(distribution)), call).await
    }

    async fn find(&self, distribution: &DistributionId, reference: &Reference) -> Result<Option<Found>, CdnError> {
        let call = |cdn: Arc<CloudFront>| async move { cdn.find(distribution, reference).await };
        self.call((Cause::ListInvalidations, Some(distribution)), call).await
    }
}

#[async_trait]
impl Cdn for Accounts {
    fn account(&self, name: &AccountName) -> Option<Arc<dyn Cdn>> {
        let account = self.0.get(name)?.clone();
        Some(account)
    }

    fn accounts(&self) -> Vec<AccountName> {
        self.0.keys().cloned().collect()
    }

    async fn distributions(&self) -> Result<Vec<Distribution>, CdnError> {
        let listings = futures_util::future::join_all(self.0.values().map(|account| account.distributions())).await;
        listings.into_iter().collect::<Result<Vec<_>, _>>().map(|listings| listings.into_iter().flatten().collect())
    }

    async fn distribution_tenants(&self, of: &BTreeSet<DistributionId>) -> Result<Vec<Distribution>, CdnError> {
        let mut found = Vec::new();
        for account in self.0.values() {
            let its: BTreeSet<DistributionId> = account.shared().await?.intersection(of).cloned().collect();
            if !its.is_empty() {
                found.extend(account.distribution_tenants(&its).await?);
            }
        }
        Ok(found)
    }

    async fn distribution_tenant(&self, domain: &Host) -> Result<Option<Distribution>, CdnError> {
        for account in self.0.values() {
            if !account.shared().await?.is_empty()
                && let Some(found) = account.distribution_tenant(domain).await?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    async fn cache_tag_header(&self, distribution: &DistributionId) -> Result<Option<String>, CdnError> {
        self.home(distribution).await?.cache_tag_header(distribution).await
    }

    async fn create(
        &self,
        distribution: &DistributionId,
        reference: &Reference,
        paths: &PathSet,
    ) -> Result<Invalidation, CdnError> {
        self.home(distribution).await?.create(distribution, reference, paths).await
    }

    async fn status(&self, distribution: &DistributionId, id: &InvalidationId) -> Result<InvalidationStatus, CdnError> {
        self.home(distribution).await?.status(distribution, id).await
    }

    async fn created_ms(&self, distribution: &DistributionId, id: &InvalidationId) -> Result<Option<i64>, CdnError> {
        self.home(distribution).await?.created_ms(distribution, id).await
    }

    async fn find(&self, distribution: &DistributionId, reference: &Reference) -> Result<Option<Found>, CdnError> {
        self.home(distribution).await?.find(distribution, reference).await
    }
}
