//! The open request of an environment, and those that are to be closed, as its status knows them.
//!
//! Not for what is asked of a forge; that is `propose`.

use crate::pipeline::options::Lacks;
use crate::pipeline::proposal::{Order, Repository};
use crate::pipeline::status::{EnvironmentStatus, OpenRequest, Phase, Promotion};
use kernel::id::PromotionSeq;

/// Why a promotion ends, and its request is closed, whose repository the spec no longer names.
pub(super) const ELSEWHERE: &str = "its spec proposes elsewhere now";

impl EnvironmentStatus {
    /// Whether its open promotion is the one of this order, where the order is.
    pub(super) fn is_carried_out_by(&self, order: &Order) -> bool {
        self.open().is_some_and(|open| open.seq == order.seq) && self.expects(order.seq, &order.repository)
    }

    /// Whether a request of this promotion may be in this repository.
    pub(super) fn expects(&self, seq: PromotionSeq, repository: &Repository) -> bool {
        self.request.as_ref().is_some_and(|request| request.seq == seq && request.is_in(repository))
    }

    /// From now on a request of this promotion may exist: one that is made, or the open one of an earlier promotion, rewritten. One
    /// elsewhere is set apart: its promotion may have ended in this very moment.
    pub(super) fn expect_request(&mut self, seq: PromotionSeq, repository: &Repository) {
        let none = || OpenRequest {
            seq,
            number: None,
            url: String::new(),
            commit: None,
            lacks: Lacks::new(),
            repository: None,
        };
        let elsewhere = self.request.take_if(|request| !request.is_in(repository));
        self.closing.extend(elsewhere.map(|request| (request, ELSEWHERE.to_owned())));
        let known = self.request.take();
        let repository = Some(repository.clone());
        self.request = Some(OpenRequest { seq, repository, ..known.unwrap_or_else(none) });
    }

    /// Stores a request that was made for us meanwhile.
    pub(super) fn remember(&mut self, made: OpenRequest) {
        let is_same = |known: &OpenRequest| made.repository.as_ref().is_none_or(|place| known.is_in(place));
        match &mut self.request {
            Some(known) if is_same(known) => {
                // An order of later may have rewritten it.
                let seq = known.seq.max(made.seq);
                *known = OpenRequest { seq, ..made };
            }
            Some(_) | None => {
                self.closing.retain(|(known, _)| !(known.seq == made.seq && is_same(known)));
                self.closing.push((made, "nobody waits for it any more".to_owned()));
            }
        }
    }

    /// Sets the request apart if no promotion follows, or one elsewhere. One that the forge may merge by itself does not wait for the next
    /// promotion to take it over.
    pub(super) fn part(&mut self, repository: Option<&Repository>, merges: bool) {
        let earlier = self.request.as_ref().map(|request| request.seq);
        let is_left = |promotion: &Promotion| promotion.phase == Phase::Waiting && Some(promotion.seq) != earlier;
        let next = self.promotion.as_ref().filter(|promotion| promotion.phase < Phase::Landed);
        let follows = next.is_some_and(|promotion| !(merges && is_left(promotion)));
        let is_here = |request: &OpenRequest| repository.is_some_and(|repository| request.is_in(repository));
        let Some(request) = self.request.take_if(|request| !(follows && is_here(request))) else { return };
        let ended = self.promotion.as_ref().filter(|promotion| !promotion.phase.is_open());
        let why = match (ended, next) {
            (Some(ended), _) => ended.message.clone(),
            (None, Some(next)) => format!("{} is to come in its place", next.revision),
            (None, None) => "the environment gets there without it".to_owned(),
        };
        self.closing.push((request, why));
    }
}
