//! Distribution tenants: found by a listing of all of them, or by a domain, and invalidated each by itself.
//!
//! Requests and answers are as the service's model has them (`aws-sdk-cloudfront` and botocore read the same one). Not known of the real
//! service, and so a choice here: how many of them are on a page, whether a wildcard domain is found by a name beneath it (here it is not),
//! and whether the quota of paths in progress is that of the distribution tenant (here it is) or of its distribution.

use std::collections::BTreeMap;

use super::{Call, CloudFrontStandIn, DENIED, PAGE_ITEMS_MAX, State, wire, xml};
use crate::http::{Reply, Request};

/// One distribution tenant of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistributionTenant {
    /// For example `dt_2wjDZi3hD1ivOXf6rpZJOSNE1AB`.
    pub id: String,
    /// The distribution that it is a tenant of.
    pub distribution: String,
    /// Its domains, and whether each is active.
    pub domains: Vec<(String, bool)>,
    pub enabled: bool,
}

impl DistributionTenant {
    /// An enabled one without domains.
    pub fn new(id: &str, distribution: &str) -> DistributionTenant {
        let (id, distribution) = (id.to_owned(), distribution.to_owned());
        DistributionTenant { id, distribution, domains: Vec::new(), enabled: true }
    }

    /// Adds an active domain.
    pub fn domain(self, name: &str) -> DistributionTenant {
        self.domain_that_is(name, true)
    }

    /// Adds a domain that is not served yet.
    pub fn inactive_domain(self, name: &str) -> DistributionTenant {
        self.domain_that_is(name, false)
    }

    fn domain_that_is(mut self, name: &str, active: bool) -> DistributionTenant {
        self.domains.push((name.to_owned(), active));
        self
    }
}

/// Those of the account, and what a client may not do to them.
#[derive(Debug, Default)]
pub(super) struct All {
    known: BTreeMap<String, DistributionTenant>,
    /// Not in the listing, as one that was made a moment ago.
    unlisted: Vec<String>,
    denied: bool,
}

impl CloudFrontStandIn {
    /// Adds a distribution tenant, or replaces the one with the same id.
    pub fn add_distribution_tenant(&self, tenant: DistributionTenant) {
        self.lock().distribution_tenants.known.insert(tenant.id.clone(), tenant);
    }

    /// Removes a distribution tenant; its invalidations stay in the ledger.
    pub fn remove_distribution_tenant(&self, id: &str) {
        self.lock().distribution_tenants.known.remove(id);
    }

    /// Leaves a distribution tenant out of the listing: it is found by its domains only.
    pub fn leave_out_of_listing(&self, id: &str) {
        self.lock().distribution_tenants.unlisted.push(id.to_owned());
    }

    /// Denies every operation of distribution tenants, as a policy from before them does, or stops doing so.
    pub fn deny_distribution_tenants(&self, denied: bool) {
        self.lock().distribution_tenants.denied = denied;
    }
}

impl All {
    /// What is answered before a call about them is even looked at.
    pub(super) fn refusal(&self, request: &Request) -> Option<Reply> {
        let concerns = request.segments().get(1).is_some_and(|kind| kind.starts_with("distribution-tenant"));
        (self.denied && concerns).then(|| wire::error(403, "AccessDenied", DENIED))
    }
}

impl State {
    /// Whether there is one of this kind, as an address names it, with this id.
    pub(super) fn has(&self, kind: &str, id: &str) -> bool {
        match kind {
            "distribution" => self.distributions.contains_key(id),
            "distribution-tenant" => self.distribution_tenants.known.contains_key(id),
            _ => false,
        }
    }
}

impl Call<'_> {
    pub(super) fn list_distribution_tenants(&self, state: &State) -> Reply {
        let Some(leaves) = std::str::from_utf8(&self.request.body).ok().and_then(xml::leaves) else {
            return wire::error(400, "MalformedXML", "The XML document is malformed.");
        };
        let asked = |name: &str| {
            let path = format!("ListDistributionTenantsRequest/{name}");
            leaves.iter().find(|(at, _)| *at == path).map(|(_, text)| text.as_str()).filter(|text| !text.is_empty())
        };
        let of = asked("AssociationFilter/DistributionId");
        let All { known, unlisted, .. } = &state.distribution_tenants;
        let listed = known.values().filter(|one| !unlisted.contains(&one.id));
        let listed: Vec<_> = listed.filter(|one| of.is_none_or(|of| one.distribution == of)).collect();
        let most = self.options.page_items.clamp(1, PAGE_ITEMS_MAX);
        let most = match asked("MaxItems").map(str::parse::<usize>) {
            None => most,
            Some(Ok(asked)) if asked > 0 => asked.min(most),
            Some(_) => return wire::error(400, "InvalidArgument", "The parameter MaxItems is not valid."),
        };
        let start = match asked("Marker") {
            None => 0,
            Some(marker) => match listed.iter().position(|one| one.id == marker) {
                Some(position) => position + 1,
                None => return wire::error(400, "InvalidArgument", "The parameter Marker is not valid."),
            },
        };
        let page: Vec<_> = listed.iter().skip(start).take(most).collect();
        let truncated = start + page.len() < listed.len();
        let next = page.last().filter(|_| truncated).map(|last| xml::text("NextMarker", &last.id)).unwrap_or_default();
        let items: String = page
            .into_iter()
            .map(|one| xml::element("DistributionTenantSummary", &(fields(one) + &xml::text("ETag", "E1ETAG"))))
            .collect();
        let content = next + &xml::element("DistributionTenantList", &items);
        Reply::full(200, wire::CONTENT_TYPE, xml::document("ListDistributionTenantsResult", &content))
    }

    pub(super) fn get_distribution_tenant_by_domain(&self, state: &State) -> Reply {
        let domain = self.request.query.get("domain").map(String::as_str).unwrap_or_default();
        let has = |one: &&DistributionTenant| one.domains.iter().any(|(name, _)| name == domain);
        match state.distribution_tenants.known.values().find(has) {
            Some(one) => {
                let content = xml::document("DistributionTenant", &fields(one));
                Reply::full(200, wire::CONTENT_TYPE, content).header("ETag", "E1ETAG")
            }
            None => wire::no_such_entity(),
        }
    }
}

/// What a summary and the whole have in common.
fn fields(tenant: &DistributionTenant) -> String {
    let domain = |(name, active): &(String, bool)| {
        let status = if *active { "active" } else { "inactive" };
        xml::element("member", &format!("{}{}", xml::text("Domain", name), xml::text("Status", status)))
    };
    let domains: String = tenant.domains.iter().map(domain).collect();
    [
        xml::text("Id", &tenant.id),
        xml::text("DistributionId", &tenant.distribution),
        xml::text("Name", &tenant.id),
        xml::text("Arn", &format!("arn:aws:cloudfront::123456789012:distribution-tenant/{}", tenant.id)),
        xml::element("Domains", &domains),
        xml::text("ConnectionGroupId", "cg_1"),
        xml::text("CreatedTime", "2026-01-01T00:00:00.000Z"),
        xml::text("LastModifiedTime", "2026-01-01T00:00:00.000Z"),
        xml::text("Enabled", if tenant.enabled { "true" } else { "false" }),
        xml::text("Status", "Deployed"),
    ]
    .concat()
}
