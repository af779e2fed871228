//! Rollouts that a member of a group has completed and gone past before the others came to them (decision 52): a canary cluster is a
//! version ahead, and the others purge theirs meanwhile. The member still votes for such a number, until it is closed, it votes for a
//! later one, or it goes back to what ran before.
//!
//! A dropped version never comes back: then no vector with it can be decided any more, and that is stable (GA-6).

use serde::{Deserialize, Serialize};

use super::{Change, Edge, Phase, Record, Times};
use kernel::id::{Component, Nonce, Origin, Seq};
use kernel::names::image::{Code, Version, brief};

/// Numbers that a record keeps: as many as it has votes that wait (`VOTES_MAX`). A cluster that is further ahead has dropped the oldest.
pub const PASSED_MAX: usize = 8;

/// A number that was complete, and neither purged nor closed when another version took its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Passed {
    #[serde(rename = "s")]
    pub seq: Seq,
    /// The nonce of that number.
    #[serde(rename = "i", default, skip_serializing_if = "Nonce::is_none")]
    pub nonce: Nonce,
    #[serde(rename = "v")]
    pub version: Version,
    /// Their owner's name for them in the whole group.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub group_version: Option<String>,
    /// Why it began. A version at rest at first sight is not kept: it is no news, and no one here waits for it.
    #[serde(rename = "c", default = "changed", skip_serializing_if = "is_changed")]
    pub change: Change,
}

const fn changed() -> Change {
    Change::Changed
}

fn is_changed(change: &Change) -> bool {
    *change == Change::Changed
}

impl Passed {
    /// Its place in a vector.
    pub fn component(&self, origin: &Origin) -> Component {
        Component { origin: origin.clone(), seq: self.seq, nonce: self.nonce }
    }

    /// The version that ran, in the form that other members compare.
    pub fn code(&self) -> Code<'_> {
        Code { version: &self.version, group_version: self.group_version.as_deref() }
    }
}

impl Record {
    /// The rollout that a component of its ledger means, if it was gone past and is kept.
    pub fn passed_at(&self, component: &Component) -> Option<&Passed> {
        self.passed.iter().find(|passed| (passed.seq, passed.nonce) == (component.seq, component.nonce))
    }

    /// The newest rollout of this code that was gone past and is kept.
    pub fn passed_as(&self, code: &Code<'_>) -> Option<&Passed> {
        self.passed.iter().rev().find(|passed| passed.code().is_same(code))
    }

    /// The record as it was when that rollout was its newest: what a vote for it and a notice about it say.
    pub(crate) fn as_of(&self, passed: &Passed) -> Self {
        Self {
            seq: passed.seq,
            nonce: passed.nonce,
            version: passed.version.clone(),
            group_version: passed.group_version.clone(),
            change: passed.change,
            phase: Phase::Complete,
            // Whatever was closed since, this was not.
            closed: Seq::default(),
            settled: self.settled().cloned(),
            edge: self.edge.max(Edge::Moved),
            request: self.request.filter(|asked| *asked <= passed.seq),
            from: None,
            times: Times::default(),
            ..self.clone()
        }
    }

    /// The versions kept once this one takes the place of the present one. A return to the edge's version drops all,
    /// and a return to a passed version drops those after it.
    pub(crate) fn kept_beside(&self, next: &Version, same_digest_is_same: bool) -> Vec<Passed> {
        let is_next = |version: &Version| version.same_content(next, same_digest_is_same);
        if self.settled().is_some_and(is_next) {
            return Vec::new();
        }
        let all = self.passed.iter().cloned().chain(self.completed());
        let mut kept: Vec<Passed> = all.take_while(|passed| !is_next(&passed.version)).collect();
        let excess = kept.len().saturating_sub(PASSED_MAX);
        kept.drain(..excess);
        kept
    }

    /// Its newest rollout, if that is complete, news, and not closed.
    fn completed(&self) -> Option<Passed> {
        let is_open = self.phase == Phase::Complete && self.change != Change::Baseline && self.seq > self.closed;
        is_open.then(|| Passed {
            seq: self.seq,
            nonce: self.nonce,
            version: self.version.clone(),
            group_version: self.group_version.clone(),
            change: self.change,
        })
    }
}

/// A line for each that waits for the other members, and how it `stands`.
pub fn passed(record: &Record, stands: impl Fn(&Passed) -> String) -> impl Iterator<Item = String> {
    let waiting = record.passed.iter().filter(|passed| record.vote_for(passed.seq).is_none());
    waiting.map(move |passed| {
        let Passed { seq, version, .. } = passed;
        format!(
            "rollout {seq} ({}): complete here before another version took its place; {}",
            brief(version),
            stands(passed)
        )
    })
}
