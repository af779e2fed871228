//! Whether a cluster was set back: etcd restored from a backup while we watched.
//!
//! Every write of a cluster gets the next resource version, and a list without one is answered from the newest: it is
//! consistent. So such a list can never answer with a lower version than a watch had reached before it was asked for. If it
//! does, the cluster was set back, and a watch that goes on from its last version waits for what will never come.
//!
//! ```text
//!            a list answers with a lower version            another, SET_BACK_AFTER later, does too
//!   level ────────────────────────────────────▶ in doubt ────────────────────────────────────────▶ set back: level again
//!     ▲                                            │
//!     └──────────── one reaches the watch ─────────┘  what lies between may never be shown: list again
//! ```
//!
//! One alone proves nothing: watch caches of several API servers differ every day, and a proxy may keep an answer. Resource
//! versions may be compared as decimal numbers (<https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions>,
//! KEP-5504, promised from Kubernetes 1.35 on and true of every kube-apiserver before). One that is no such number is not
//! compared: on such a server, nothing is ever taken for set back.
//!
//! Not for asking, nor for what follows.

use std::time::Duration;

use crate::machine::Timestamp;

/// How far apart two consistent reads are that prove that a cluster was set back. Reads from a lagging cache or a
/// misbehaving proxy are corrected long before.
pub const SET_BACK_AFTER: Duration = Duration::from_secs(5);

/// A resource version that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u128);

impl Mark {
    /// Reads one; `None` if it is no decimal number. Zero is none: it means "any".
    pub fn parse(version: &str) -> Option<Self> {
        let plain = !version.starts_with('0') && version.bytes().all(|byte| byte.is_ascii_digit());
        version.parse().ok().filter(|_| plain).map(Self)
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The conclusion from an answer about the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    Level,
    /// It may have been set back: ask again after [`SET_BACK_AFTER`].
    InDoubt,
    /// It seemed to be set back and has reached the watch meanwhile. What was written in between may never be shown: list
    /// again.
    CaughtUp,
    /// It was set back, from the first mark to the second.
    SetBack(Mark, Mark),
}

/// How far a cluster was seen to have got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Horizon {
    newest: Option<Mark>,
    /// When an answer was below first, without one that was not since.
    doubt: Option<Timestamp>,
}

impl Horizon {
    /// A watch or a listing has got this far.
    pub fn reached(&mut self, mark: Mark) {
        self.newest = self.newest.max(Some(mark));
    }

    /// How far watches and listings have got: to be taken before a list is asked for, and handed back with its answer.
    pub fn newest(&self) -> Option<Mark> {
        self.newest
    }

    /// A consistent list, asked for when `before` had been reached, has answered.
    pub fn answered(&mut self, now: Timestamp, before: Option<Mark>, answer: Mark) -> Verdict {
        let Some(before) = before.filter(|before| answer < *before) else {
            self.reached(answer);
            return if self.doubt.take().is_some() { Verdict::CaughtUp } else { Verdict::Level };
        };
        let since = *self.doubt.get_or_insert(now);
        if now.since(since) < SET_BACK_AFTER {
            return Verdict::InDoubt;
        }
        *self = Self { newest: Some(answer), doubt: None };
        Verdict::SetBack(before, answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(version: &str) -> Mark {
        Mark::parse(version).unwrap()
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn a_version_is_compared_as_a_decimal_number_of_any_usual_length_or_not_at_all() {
        assert!(mark("9") < mark("10") && mark("18446744073709551616") > mark("18446744073709551615"));
        for opaque in ["", "0", "07", "1a", "-1", "+1", "1.5", "v7", &"9".repeat(60)] {
            assert_eq!(Mark::parse(opaque), None, "{opaque}");
        }
    }

    #[test]
    fn a_cluster_is_set_back_when_two_lists_far_enough_apart_are_behind_the_watch() {
        let mut horizon = Horizon::default();
        horizon.reached(mark("900"));
        let answered = |horizon: &mut Horizon, seconds, answer| {
            let before = horizon.newest();
            horizon.answered(at(seconds), before, mark(answer))
        };
        assert_eq!(answered(&mut horizon, 0, "905"), Verdict::Level);
        assert_eq!(answered(&mut horizon, 60, "40"), Verdict::InDoubt);
        assert_eq!(answered(&mut horizon, 64, "41"), Verdict::InDoubt, "too soon after the first");
        assert_eq!(answered(&mut horizon, 65, "42"), Verdict::SetBack(mark("905"), mark("42")));
        assert_eq!(answered(&mut horizon, 70, "43"), Verdict::Level, "from now on it counts from there");
    }

    #[test]
    fn one_answer_of_a_cache_that_lags_is_no_restore() {
        let mut horizon = Horizon::default();
        horizon.reached(mark("900"));
        let before = horizon.newest();
        assert_eq!(horizon.answered(at(0), before, mark("899")), Verdict::InDoubt);
        assert_eq!(horizon.answered(at(5), before, mark("900")), Verdict::CaughtUp);
        assert_eq!(horizon.answered(at(6), before, mark("899")), Verdict::InDoubt, "counted afresh");
    }

    #[test]
    fn what_the_watch_reached_after_the_list_was_asked_for_proves_nothing() {
        let mut horizon = Horizon::default();
        horizon.reached(mark("900"));
        let before = horizon.newest();
        horizon.reached(mark("950"));
        assert_eq!(horizon.answered(at(0), before, mark("920")), Verdict::Level);
        assert_eq!(horizon.newest(), Some(mark("950")));
    }
}
