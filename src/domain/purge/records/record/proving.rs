//! What is looked for at the edge after a purge, as a record keeps it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Record, VOTE_GROWTH_BYTES};
use kernel::id::{NoticeId, Reference, Seq, again_reference};
use kernel::names::distribution::DistributionId;
use kernel::text;
use proof::look::{Phase, Stored};
use proof::tally::Found;

/// Pages that one record looks at. Each takes 350 bytes, 1.2 KiB with the longest names: what is owed and voted for has to fit in beside.
pub const PAGES_LOOKED_AT_MAX: usize = 8;

/// Bytes by which the record of one page grows: three places with what they showed, and a reason.
const PAGE_GROWTH_BYTES: usize = 1_024;

/// Bytes of what was found that a history keeps: three pages by their names.
const SEEN_BYTES_MAX: usize = 400;

/// The look at what one purge has left. It is kept under the reference of that purge.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Proving {
    #[serde(rename = "d")]
    pub distribution: DistributionId,
    /// The rollout that it was purged for, and its name in the group: the vote may be gone.
    #[serde(rename = "s")]
    pub seq: Seq,
    #[serde(rename = "r")]
    pub rollout: String,
    /// Its versions in words.
    #[serde(rename = "c")]
    pub change: String,
    #[serde(rename = "l")]
    pub look: Stored,
    /// Notices that were written about it.
    #[serde(rename = "n", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub noticed: BTreeSet<NoticeId>,
    /// The last word about it, until its rollout is closed.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// Its further purge sends everything: what its paths are too many for is one path.
    #[serde(rename = "w", default, skip_serializing_if = "super::is_default")]
    pub widened: bool,
    /// This member only looks: another one may purge once more, and this look would not see that.
    #[serde(rename = "o", default, skip_serializing_if = "super::is_default")]
    pub only_looks: bool,
}

/// What was found at the edge after a rollout, by the last word about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seen {
    #[serde(rename = "f")]
    pub found: Found,
    #[serde(rename = "w")]
    pub words: String,
    /// Another member may have purged once more since.
    #[serde(rename = "o", default, skip_serializing_if = "super::is_default")]
    pub may_be_over: bool,
}

impl Seen {
    pub fn new(found: Found, words: &str) -> Self {
        Self { found, words: text::phrase(words, SEEN_BYTES_MAX).to_owned(), may_be_over: false }
    }

    /// Whether the edge had what was there before, as far as is known here. What another member may have purged once
    /// more since, that one knows: here it would stay for ever.
    pub fn is_stale(&self) -> bool {
        self.found == Found::Stale && !self.may_be_over
    }
}

impl Proving {
    /// Bytes of it in a record, once all is known of its pages.
    pub fn bytes_at_most(&self) -> usize {
        let now = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        now.saturating_add(self.look.pages.len().saturating_mul(PAGE_GROWTH_BYTES)).saturating_add(VOTE_GROWTH_BYTES)
    }

    /// The reference and number of the further purge that is on its way, where one is.
    pub fn again(&self, first: &Reference) -> Option<(Reference, u8)> {
        let round = self.look.round.saturating_add(1);
        (self.look.phase == Phase::Again).then(|| (again_reference(first, round), round))
    }
}

/// The looks of one record by the references of their purges. Boxed, for a map takes room for eleven at once, and there is one as a rule.
pub type Looks = BTreeMap<Reference, Box<Proving>>;

/// Whether nothing is looked at.
pub(super) fn is_empty(looks: &Looks) -> bool {
    looks.is_empty()
}

/// The looks in their written form, which says nothing of who shares them.
pub(super) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Looks;

    pub(in super::super) fn serialize<S: Serializer>(looks: &Looks, to: S) -> Result<S::Ok, S::Error> {
        looks.serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Looks>, D::Error> {
        Looks::deserialize(from).map(Arc::new)
    }
}

impl Record {
    /// The look whose further purge has this reference, by the reference of its first purge, and the number of the further one.
    pub fn look_of_again(&self, again: &Reference) -> Option<(&Reference, u8)> {
        self.looks.iter().find_map(|(first, proving)| {
            let (reference, round) = proving.again(first)?;
            (reference == *again).then_some((first, round))
        })
    }

    /// Changes one of its looks, for this copy alone.
    pub fn change_look(&mut self, reference: &Reference, change: impl FnOnce(&mut Proving)) {
        if let Some(proving) = Arc::make_mut(&mut self.looks).get_mut(reference) {
            change(proving);
        }
    }

    /// Remembers what was seen after rollouts that are closed: of each the worst of all its distributions.
    pub fn note_seen(&mut self) {
        // What is not changed stays shared.
        if self.looks.values().all(|proving| proving.seen.is_none() || !self.has_closed(proving.seq)) {
            return;
        }
        for proving in Arc::make_mut(&mut self.looks).values_mut() {
            let Some(closed) = self.history.iter_mut().find(|closed| closed.seq == proving.seq) else { continue };
            let Some(seen) = proving.seen.take() else { continue };
            // Of two that are as bad, what may be over does not hide what is not.
            let weight = |seen: &Seen| (seen.found, !seen.may_be_over);
            if closed.seen.as_ref().is_none_or(|known| weight(known) <= weight(&seen)) {
                closed.seen = Some(seen);
            }
        }
    }

    fn has_closed(&self, seq: Seq) -> bool {
        self.history.iter().any(|closed| closed.seq == seq)
    }

    /// Takes back that the edge was fresh after the rollout `seq`: it is purged once more.
    pub fn forget_fresh(&mut self, seq: Seq) {
        let of = self.history.iter_mut().filter(|closed| closed.seq == seq);
        of.for_each(|closed| closed.seen = closed.seen.take().filter(|seen| seen.found != Found::Fresh));
    }
}
