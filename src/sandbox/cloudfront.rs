//! A stand-in for CloudFront's REST/XML API 2020-05-31, as far as allclear uses it.
//!
//! It keeps the rules the promises of this product rest on: one invalidation per caller reference, `InProgress` until it
//! is completed, quotas of paths in progress, newest first. Error texts are the real service's where they are known from
//! public reports. Lost answers, cuts, delays and 5xx come from [`super::http::Fault`].
//!
//! What it cannot prove: that the real service behaves like this, above all how it treats a repeated reference when two
//! calls race. [`Options`] has switches for what is documented in one way and reported in another.

pub mod accounts;
mod batch;
mod bucket;
mod distribution_tenants;
mod quota;
mod wire;
mod xml;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use batch::Batch;
pub use bucket::Bucket;
pub use distribution_tenants::DistributionTenant;
pub use quota::Quota;

use super::http::{Reply, Request, StandIn};

/// Items on a page when the client names no MaxItems, and the most it may ask for: SDK documentation of ListDistributions.
pub const PAGE_ITEMS_MAX: usize = 100;

/// Invalidations kept; the oldest is forgotten first. A demo at one purge per second runs for a day before that.
pub const INVALIDATIONS_MAX: usize = 100_000;

/// How the stand-in behaves where the real service is configurable, or not known well enough.
#[derive(Clone, Debug)]
pub struct Options {
    /// An invalidation completes by itself after this time; `None`: only through [`CloudFrontStandIn::complete`].
    pub completes_after: Option<Duration>,
    /// The error for a reference that was used with other paths.
    pub reuse_error: ReuseError,
    /// Refuse a repeated reference even with the same paths. The documentation says the earlier invalidation is returned;
    /// public reports (aws/aws-cdk#3878) read as if it were not always so.
    pub refuses_same_batch: bool,
    /// A reference repeated within this time makes a second invalidation, the way a race inside the real service could.
    pub blind_for: Duration,
    /// Plain paths in progress at one time, per distribution. The service's quota is 3,000.
    pub paths_in_progress_max: usize,
    /// Wildcard paths in progress at one time, per distribution. The service's quota is 15, independent of the other.
    pub wildcards_in_progress_max: usize,
    /// Largest page, at most [`PAGE_ITEMS_MAX`]; smaller ones let a test page through few items.
    pub page_items: usize,
}

/// On the wire one error is documented, another one is reported: clients must know both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReuseError {
    /// `InvalidArgument` with the text seen in public reports (aws/aws-cdk#3878, jonls/s3-deploy-website#26).
    InvalidArgument,
    /// `InvalidationBatchAlreadyExists`, as the API reference says under *InvalidationBatch*.
    InvalidationBatchAlreadyExists,
}

/// One distribution of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// For example `E2QWRUHEXAMPLE`.
    pub id: String,
    /// Its own name, for example `d111111abcdef8.cloudfront.net`.
    pub domain_name: String,
    /// Alternate domain names; wildcards as CloudFront writes them (`*.example.com`).
    pub aliases: Vec<String>,
    /// Domain names of its origins, with their paths if they have any.
    pub origins: Vec<String>,
    /// Whether it serves at all.
    pub enabled: bool,
    /// Whether it is the staging half of a continuous deployment.
    pub staging: bool,
    /// Whether it is reached through distribution tenants only.
    pub tenant_only: bool,
    /// Whether it has a CacheTagConfig, so that `#tag` items are accepted.
    pub cache_tags: bool,
}

/// One accepted invalidation, for assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalidation {
    /// Unique within the stand-in.
    pub id: String,
    /// The distribution, or the distribution tenant, that it was created for.
    pub distribution: String,
    pub reference: String,
    /// Its paths in the order received.
    pub paths: Vec<String>,
    pub status: Status,
    /// The access key id of its creator.
    pub caller: String,
    /// When it was made.
    pub at: Instant,
    /// How often the same batch was sent again and answered with this invalidation.
    pub repeats: u32,
    /// Whether [`CloudFrontStandIn::forget`] made the service forget it.
    pub forgotten: bool,
}

/// Where an invalidation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Edges are still being notified.
    InProgress,
    /// Every edge has confirmed.
    Completed,
}

/// The stand-in. Give it to [`super::http::Server::start`] and keep an `Arc` of it for steering and assertions.
#[derive(Debug)]
pub struct CloudFrontStandIn {
    options: Options,
    state: Mutex<State>,
}

impl CloudFrontStandIn {
    /// An account without distributions.
    pub fn new(options: Options) -> CloudFrontStandIn {
        CloudFrontStandIn { options, state: Mutex::new(State::default()) }
    }

    /// Adds a distribution, or replaces the one with the same id.
    pub fn add_distribution(&self, distribution: Distribution) {
        self.lock().distributions.insert(distribution.id.clone(), distribution);
    }

    /// Removes a distribution; its invalidations stay in the ledger.
    pub fn remove_distribution(&self, id: &str) {
        self.lock().distributions.remove(id);
    }

    /// Everything ever accepted, oldest first, of all distributions.
    pub fn invalidations(&self) -> Vec<Invalidation> {
        let now = Instant::now();
        self.lock().entries.iter().map(|entry| entry.shown(now, &self.options)).collect()
    }

    /// Completes an invalidation. Returns whether there is one with this id.
    pub fn complete(&self, id: &str) -> bool {
        let mut state = self.lock();
        let entry = state.entries.iter_mut().find(|entry| entry.record.id == id);
        entry.map(|entry| entry.record.status = Status::Completed).is_some()
    }

    /// Completes everything in progress.
    pub fn complete_all(&self) {
        for entry in &mut self.lock().entries {
            entry.record.status = Status::Completed;
        }
    }

    /// Completes each invalidation at this GetInvalidation of it: how often a client asks does not depend on time then.
    pub fn complete_at_look(&self, looks: u32) {
        self.lock().completes_at_look = Some(looks);
    }

    /// Lets the service forget an invalidation and its reference; the ledger keeps it. Returns whether there was one.
    pub fn forget(&self, id: &str) -> bool {
        let mut state = self.lock();
        let entry = state.entries.iter_mut().find(|entry| entry.record.id == id);
        entry.map(|entry| entry.record.forgotten = true).is_some()
    }

    /// Answers the next `requests` requests with `Throttling`, which CloudFront sends as HTTP 400.
    pub fn throttle(&self, requests: u32) {
        self.lock().throttled = requests;
    }

    /// Holds the account to this quota from now on.
    pub fn hold_to(&self, quota: Quota) {
        self.lock().quota = quota;
    }

    /// Creations that the account's quota has not granted.
    pub fn beyond_quota(&self) -> u64 {
        self.lock().beyond_quota
    }

    /// Denies every call, or stops doing so.
    pub fn deny(&self, denied: bool) {
        self.lock().denied = denied;
    }

    /// Denies reading the configuration of distributions, as the policy before cache tags did, or stops doing so.
    pub fn deny_configurations(&self, denied: bool) {
        self.lock().configurations_denied = denied;
    }

    /// Denies everything to one access key id, or stops doing so.
    pub fn deny_key(&self, access_key_id: &str, denied: bool) {
        let mut state = self.lock();
        if denied {
            state.denied_keys.insert(access_key_id.to_owned());
        } else {
            state.denied_keys.remove(access_key_id);
        }
    }

    /// An error as CloudFront writes it, for faults that this stand-in does not decide itself.
    pub fn error(status: u16, code: &str, message: &str) -> Reply {
        wire::error(status, code, message)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StandIn for CloudFrontStandIn {
    fn answer(&self, request: &Request) -> Reply {
        let mut state = self.lock();
        if let Some(refusal) = state.refusal(request) {
            return refusal;
        }
        let call = Call { options: &self.options, request, now: Instant::now() };
        match (request.method.as_str(), request.segments().as_slice()) {
            // STS, which who stands in for CloudFront stands in for as well.
            ("POST", []) => wire::caller_identity(),
            ("GET", [API_VERSION, "distribution"]) => call.list_distributions(&state),
            ("POST", [API_VERSION, "distribution-tenants"]) => call.list_distribution_tenants(&state),
            ("GET", [API_VERSION, "distribution-tenant"]) => call.get_distribution_tenant_by_domain(&state),
            ("GET", [API_VERSION, "distribution", id, "config"]) => call.get_configuration(&state, id),
            ("POST", [API_VERSION, kind, id, "invalidation"]) if state.has(kind, id) => {
                call.create_invalidation(&mut state, id)
            }
            ("GET", [API_VERSION, kind, id, "invalidation"]) if state.has(kind, id) => {
                call.list_invalidations(&state, id)
            }
            ("GET", [API_VERSION, kind, place, "invalidation", id]) if state.has(kind, place) => {
                call.get_invalidation(&mut state, place, id)
            }
            (_, [API_VERSION, "distribution", _, "invalidation", ..]) => wire::no_such_distribution(),
            (_, [API_VERSION, "distribution-tenant", _, "invalidation", ..]) => wire::no_such_entity(),
            _ => wire::error(404, "NoSuchResource", "The stand-in does not know this call."),
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            completes_after: None,
            reuse_error: ReuseError::InvalidArgument,
            refuses_same_batch: false,
            blind_for: Duration::ZERO,
            paths_in_progress_max: 3_000,
            wildcards_in_progress_max: 15,
            page_items: PAGE_ITEMS_MAX,
        }
    }
}

impl Distribution {
    /// An enabled distribution without aliases and origins, with a domain name made from its id.
    pub fn new(id: &str) -> Distribution {
        Distribution {
            id: id.to_owned(),
            domain_name: format!("{}.cloudfront.net", id.to_ascii_lowercase()),
            aliases: Vec::new(),
            origins: Vec::new(),
            enabled: true,
            staging: false,
            tenant_only: false,
            cache_tags: false,
        }
    }

    /// Adds an alternate domain name.
    pub fn alias(mut self, name: &str) -> Distribution {
        self.aliases.push(name.to_owned());
        self
    }

    pub fn origin(mut self, name: &str) -> Distribution {
        self.origins.push(name.to_owned());
        self
    }
}

const API_VERSION: &str = "2020-05-31";

const DENIED: &str = "User: arn:aws:iam::123456789012:user/allclear is not authorized to perform this action";

#[derive(Debug, Default)]
struct State {
    distributions: BTreeMap<String, Distribution>,
    distribution_tenants: distribution_tenants::All,
    entries: VecDeque<Entry>,
    /// Invalidations ever created, for their ids.
    created: u64,
    throttled: u32,
    completes_at_look: Option<u32>,
    quota: Quota,
    beyond_quota: u64,
    denied: bool,
    denied_keys: BTreeSet<String>,
    configurations_denied: bool,
}

#[derive(Debug)]
struct Entry {
    record: Invalidation,
    /// The same as text, as the wire has it.
    create_time: String,
    /// How often a client asked for it.
    looks: u32,
}

impl Entry {
    /// Whether the service knows it as one of this distribution.
    fn is_known(&self, distribution: &str) -> bool {
        self.record.distribution == distribution && !self.record.forgotten
    }

    fn status(&self, now: Instant, options: &Options) -> Status {
        let by_itself =
            options.completes_after.is_some_and(|after| now.saturating_duration_since(self.record.at) >= after);
        if by_itself { Status::Completed } else { self.record.status }
    }

    fn shown(&self, now: Instant, options: &Options) -> Invalidation {
        Invalidation { status: self.status(now, options), ..self.record.clone() }
    }
}

impl State {
    /// What is answered before the call is even looked at.
    fn refusal(&mut self, request: &Request) -> Option<Reply> {
        if request.header("authorization").is_none() {
            let message = "Request is missing Authentication Token";
            return Some(wire::error(403, "MissingAuthenticationToken", message));
        }
        if self.denied || self.denied_keys.contains(access_key_id(request)) {
            return Some(wire::error(403, "AccessDenied", DENIED));
        }
        if let Some(refusal) = self.distribution_tenants.refusal(request) {
            return Some(refusal);
        }
        if self.throttled > 0 {
            self.throttled -= 1;
            return Some(wire::throttled());
        }
        let creates = request.method == "POST" && request.path.ends_with("/invalidation");
        if !creates || self.quota.grants_call(Instant::now()) {
            return None;
        }
        self.beyond_quota += 1;
        Some(wire::throttled())
    }

    /// The invalidations the service knows of one distribution, newest first.
    fn known<'a>(&'a self, distribution: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().rev().filter(move |entry| entry.is_known(distribution))
    }
}

/// The access key that signed a request; empty if it is not signed.
///
/// `AWS4-HMAC-SHA256 Credential=<key id>/<date>/<region>/cloudfront/aws4_request, SignedHeaders=…, Signature=…`
pub fn access_key_id(request: &Request) -> &str {
    let authorization = request.header("authorization").unwrap_or_default();
    let credential = authorization.split_once("Credential=").map(|(_, rest)| rest).unwrap_or_default();
    credential.split('/').next().unwrap_or_default()
}

/// One request on its way through the stand-in.
struct Call<'a> {
    options: &'a Options,
    request: &'a Request,
    now: Instant,
}

impl Call<'_> {
    fn list_distributions(&self, state: &State) -> Reply {
        let all: Vec<(&str, String)> =
            state.distributions.values().map(|each| (each.id.as_str(), wire::distribution_summary(each))).collect();
        wire::page(self.request, self.options.page_items, "DistributionList", &all)
    }

    fn get_configuration(&self, state: &State, distribution: &str) -> Reply {
        match state.distributions.get(distribution) {
            _ if state.configurations_denied => wire::error(403, "AccessDenied", DENIED),
            Some(distribution) => wire::distribution_config(distribution),
            None => wire::no_such_distribution(),
        }
    }

    fn list_invalidations(&self, state: &State, distribution: &str) -> Reply {
        let all: Vec<(&str, String)> = state
            .known(distribution)
            .map(|entry| {
                let summary = format!(
                    "{}{}{}",
                    xml::text("Id", &entry.record.id),
                    xml::text("CreateTime", &entry.create_time),
                    xml::text("Status", wire::status_name(entry.status(self.now, self.options)))
                );
                (entry.record.id.as_str(), xml::element("InvalidationSummary", &summary))
            })
            .collect();
        wire::page(self.request, self.options.page_items, "InvalidationList", &all)
    }

    fn get_invalidation(&self, state: &mut State, distribution: &str, id: &str) -> Reply {
        let looks_needed = state.completes_at_look;
        let is_it = |entry: &&mut Entry| entry.is_known(distribution) && entry.record.id == id;
        let Some(entry) = state.entries.iter_mut().find(is_it) else {
            return wire::error(404, "NoSuchInvalidation", "The specified invalidation does not exist.");
        };
        entry.looks = entry.looks.saturating_add(1);
        if looks_needed.is_some_and(|needed| entry.looks >= needed) {
            entry.record.status = Status::Completed;
        }
        wire::invalidation(200, &entry.shown(self.now, self.options), &entry.create_time)
    }

    fn create_invalidation(&self, state: &mut State, distribution: &str) -> Reply {
        let tags_allowed = state.distributions.get(distribution).is_some_and(|found| found.cache_tags);
        let batch = match Batch::read(&self.request.body, tags_allowed) {
            Ok(batch) => batch,
            Err(flaw) => return wire::batch_flaw(flaw),
        };
        if let Some(reply) = self.repeated(state, distribution, &batch) {
            return reply;
        }
        if let Some(refusal) = self.over_quota(state, distribution, &batch) {
            return refusal;
        }
        state.created += 1;
        let entry = Entry {
            record: Invalidation {
                id: format!("I{:013}", state.created),
                distribution: distribution.to_owned(),
                reference: batch.reference,
                paths: batch.paths,
                status: Status::InProgress,
                caller: access_key_id(self.request).to_owned(),
                at: self.now,
                repeats: 0,
                forgotten: false,
            },
            create_time: format!("{:.3}", jiff::Timestamp::now()),
            looks: 0,
        };
        let reply = wire::created(&entry.shown(self.now, self.options), &entry.create_time);
        if state.entries.len() >= INVALIDATIONS_MAX {
            state.entries.pop_front();
        }
        state.entries.push_back(entry);
        reply
    }

    /// The answer to a reference that was used before, if it was.
    fn repeated(&self, state: &mut State, distribution: &str, batch: &Batch) -> Option<Reply> {
        let is_same = |entry: &&mut Entry| entry.is_known(distribution) && entry.record.reference == batch.reference;
        let entry = state.entries.iter_mut().rev().find(is_same)?;
        if self.now.saturating_duration_since(entry.record.at) < self.options.blind_for {
            return None;
        }
        if batch.same_paths(&entry.record.paths) && !self.options.refuses_same_batch {
            entry.record.repeats = entry.record.repeats.saturating_add(1);
            return Some(wire::created(&entry.shown(self.now, self.options), &entry.create_time));
        }
        Some(match self.options.reuse_error {
            ReuseError::InvalidArgument => wire::error(
                400,
                "InvalidArgument",
                "Your request contains a caller reference that was used for a previous invalidation batch for the same \
                 distribution.",
            ),
            ReuseError::InvalidationBatchAlreadyExists => wire::error(
                409,
                "InvalidationBatchAlreadyExists",
                "The caller reference was used for an invalidation batch with other paths.",
            ),
        })
    }
}
