//! What the account and each distribution are granted: three rules, as sources of different age tell them, each a knob.

use std::time::Instant;

use super::batch::Batch;
use super::{Bucket, Call, State, Status, batch, wire};
use crate::http::Reply;

/// Of the account, in any distribution. Everything is granted by itself.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    /// Calls of CreateInvalidation. One beyond it is answered as [`super::CloudFrontStandIn::throttle`] does, before anything else of it is
    /// looked at. AWS staff have named 0.5 a second (aws/aws-sdk-js#3983).
    pub creations: Option<Bucket>,
    /// Paths with a star: one a second, by what is quoted in 2026. Beyond it `TooManyInvalidationsInProgress`, as all that follows.
    pub wildcards: Option<Bucket>,
    /// Paths and tags: 150 a second.
    pub items: Option<Bucket>,
}

impl Quota {
    pub(super) fn grants_call(&mut self, now: Instant) -> bool {
        self.creations.as_mut().is_none_or(|calls| calls.take(now, 1))
    }

    /// What is not granted costs nothing.
    fn grants(&mut self, now: Instant, wildcards: usize, items: usize) -> bool {
        let (mut stars, mut all) = (self.wildcards.clone(), self.items.clone());
        let fits = |bucket: &mut Option<Bucket>, cost: usize| {
            let cost = u32::try_from(cost).unwrap_or(u32::MAX);
            bucket.as_mut().is_none_or(|bucket| bucket.take(now, cost))
        };
        let granted = fits(&mut stars, wildcards) && fits(&mut all, items);
        if granted {
            (self.wildcards, self.items) = (stars, all);
        }
        granted
    }
}

impl Call<'_> {
    pub(super) fn over_quota(&self, state: &mut State, distribution: &str, batch: &Batch) -> Option<Reply> {
        let (mut plain, mut wildcards) = (batch.paths.len() - batch.wildcards(), batch.wildcards());
        if plain > self.options.paths_in_progress_max {
            let message = "Your request contains too many invalidation paths.";
            return Some(wire::error(413, "BatchTooLarge", message));
        }
        let in_progress = |entry: &&super::Entry| entry.status(self.now, self.options) == Status::InProgress;
        for entry in state.known(distribution).filter(in_progress) {
            let entry_wildcards = batch::wildcards(&entry.record.paths);
            plain += entry.record.paths.len() - entry_wildcards;
            wildcards += entry_wildcards;
        }
        let over = plain > self.options.paths_in_progress_max || wildcards > self.options.wildcards_in_progress_max;
        let granted = over || state.quota.grants(self.now, batch.wildcards(), batch.paths.len());
        state.beyond_quota += u64::from(!granted);
        let over = over || !granted;
        let message =
            "Processing your request will cause you to exceed the maximum number of in-progress invalidations.";
        over.then(|| wire::error(400, "TooManyInvalidationsInProgress", message))
    }
}
