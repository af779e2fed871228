//! When the stations of a rollout began, for traces. Kept where traces are exported, and nowhere else: nothing is decided by them.

use serde::{Deserialize, Serialize};

/// Times of one rollout in one cluster, in milliseconds since the Unix epoch by its member's clock; 0 where unknown. A program
/// that drops them loses a part of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Times {
    /// The change was seen.
    #[serde(rename = "b", default, skip_serializing_if = "is_unknown")]
    pub began_ms: i64,
    /// It was complete here.
    #[serde(rename = "c", default, skip_serializing_if = "is_unknown")]
    pub completed_ms: i64,
    /// CloudFront had accepted the first of its purges, which this member made.
    #[serde(rename = "p", default, skip_serializing_if = "is_unknown")]
    pub purge_ms: i64,
}

impl Times {
    /// Of a rollout that begins; 0 if times are not kept.
    pub const fn begun(began_ms: i64) -> Self {
        Self { began_ms, completed_ms: 0, purge_ms: 0 }
    }

    /// Whether nothing is known.
    pub fn is_blank(&self) -> bool {
        *self == Self::default()
    }
}

const fn is_unknown(time_ms: &i64) -> bool {
    *time_ms == 0
}
