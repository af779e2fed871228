//! What a member says of its rollouts in its beat: how each stands, and since when. Only what it knows of itself, and about one rollout
//! each (decision 36).
//!
//! For people: nothing is decided by it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Heartbeat;
use kernel::id::{Seq, WorkloadId};

/// Characters of the words about one rollout: two lines of a terminal. A beat is read by every member every 5 s.
pub const WORDS_CHARS_MAX: usize = 200;

/// How one rollout stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Saying {
    pub seq: Seq,
    pub words: String,
    /// When the stage began in which it is, in milliseconds since the Unix epoch by the member's own clock; `None` where its process has
    /// not seen that.
    pub since_ms: Option<i64>,
}

/// What a beat says of all of them. Each part is by the workload's name in the group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Said {
    /// How its rollouts in flight stand, in words.
    pub words: BTreeMap<WorkloadId, String>,
    /// Which rollout each of these words is about, by its number there. Older programs do not say so, and their words are not
    /// shown (decision 36).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seqs: BTreeMap<WorkloadId, Seq>,
    /// Since when each is in its stage. Older programs do not say so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub since: BTreeMap<WorkloadId, i64>,
}

impl Said {
    pub fn of(sayings: BTreeMap<WorkloadId, Saying>) -> Self {
        let mut said = Self::default();
        for (workload, Saying { seq, words, since_ms }) in sayings {
            said.since.extend(since_ms.map(|since_ms| (workload.clone(), since_ms)));
            said.seqs.insert(workload.clone(), seq);
            said.words.insert(workload, words);
        }
        said
    }

    /// The words about a workload, and which of its rollouts they are about.
    pub fn about(&self, workload: &WorkloadId) -> (Option<&String>, Option<&Seq>) {
        (self.words.get(workload), self.seqs.get(workload))
    }
}

impl Heartbeat {
    /// How its rollout of this number stands, in its own words.
    pub fn words_of(&self, workload: &WorkloadId, seq: Seq) -> Option<&String> {
        self.said.words.get(workload).filter(|_| self.said.seqs.get(workload) == Some(&seq))
    }

    /// For how long that rollout had been in its stage when the beat was left. Both times are of its own clock; `None` where it was set
    /// back in between.
    pub fn stood_for(&self, workload: &WorkloadId, seq: Seq) -> Option<Duration> {
        self.words_of(workload, seq)?;
        let since_ms = self.said.since.get(workload)?;
        self.at_ms.checked_sub(*since_ms).and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web() -> WorkloadId {
        WorkloadId::deployment("shop", "web")
    }

    fn beat(since_ms: Option<i64>, at_ms: i64) -> Heartbeat {
        let saying = Saying { seq: Seq(4), words: "2 of 3 pods ready".to_owned(), since_ms };
        Heartbeat { said: Said::of([(web(), saying)].into()), at_ms, ..Heartbeat::default() }
    }

    #[test]
    fn what_is_said_is_about_one_rollout_and_lasts_by_the_clock_of_who_says_it() {
        let said = beat(Some(10_000), 72_000);
        assert_eq!(said.words_of(&web(), Seq(4)).map(String::as_str), Some("2 of 3 pods ready"));
        assert_eq!(said.stood_for(&web(), Seq(4)), Some(Duration::from_secs(62)));
        for other in [Seq(3), Seq(5)] {
            assert_eq!((said.words_of(&web(), other), said.stood_for(&web(), other)), (None, None));
        }
        assert_eq!(beat(None, 72_000).stood_for(&web(), Seq(4)), None);
        assert_eq!(beat(Some(72_001), 72_000).stood_for(&web(), Seq(4)), None, "its clock was set back");
        assert_eq!(beat(Some(i64::MIN), i64::MAX).stood_for(&web(), Seq(4)), None, "no time at all");
    }

    #[test]
    fn a_beat_of_the_release_before_is_read_and_reads_ours() {
        let before = r#"{"member":"eu-2","origin":"o2","boot":"b","version":"0.1.0","config":"","members":[],"settings":{},
            "words":{"deployment/shop/web":"waits"},"seqs":{"deployment/shop/web":4},"at_ms":7}"#;
        let read: Heartbeat = serde_json::from_str(before).expect("a beat");
        assert_eq!(read.words_of(&web(), Seq(4)).map(String::as_str), Some("waits"));
        assert_eq!(read.stood_for(&web(), Seq(4)), None);
        // It knows `words` and `seqs` beside the other fields, and passes over what it does not know.
        let ours = serde_json::to_value(beat(Some(5), 7)).expect("JSON");
        assert_eq!(ours.get("words"), Some(&serde_json::json!({"deployment/shop/web": "2 of 3 pods ready"})));
        assert_eq!(ours.get("seqs"), Some(&serde_json::json!({"deployment/shop/web": 4})));
        assert_eq!(ours.get("since"), Some(&serde_json::json!({"deployment/shop/web": 5})));
        let silent = serde_json::to_value(Heartbeat::default()).expect("JSON");
        assert_eq!((silent.get("seqs"), silent.get("since")), (None, None), "at rest there is nothing more to say");
    }
}
