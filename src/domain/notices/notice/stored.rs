//! The form in which ledgers and statuses hold a notice: one row of fields, from when only workloads had notices.

use serde::{Deserialize, Serialize};

use super::{About, Kind, Mentions, PromotionFact, PurgeFact, RunFact};
use kernel::id::{self, NoticeId, Seq, Subject};
use kernel::names::host::Host;

#[derive(Serialize, Deserialize)]
pub(super) struct Notice {
    id: NoticeId,
    kind: Kind,
    at_ms: i64,
    #[serde(rename = "workload")]
    subject: Subject,
    seq: Seq,
    rollout: String,
    change: String,
    message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<Host>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    purges: Vec<PurgeFact>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    late: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stand_in: Option<id::Kind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promotion: Option<PromotionFact>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunFact>,
}

impl From<Notice> for super::Notice {
    fn from(stored: Notice) -> Self {
        let Notice { id, kind, at_ms, subject, seq, rollout, change, message, .. } = stored;
        let Notice { hosts, purges, cut, late, stand_in, promotion, run, .. } = stored;
        let about = match subject {
            Subject::Workload(id) => About::Workload(id, Mentions { hosts, purges, cut, late, stand_in }),
            Subject::Pipeline(id) => About::Pipeline(id, promotion),
            Subject::Repo(id) => About::Repo(id, run),
        };
        Self { id, kind, at_ms, about, seq, rollout, change, message }
    }
}

impl From<super::Notice> for Notice {
    fn from(notice: super::Notice) -> Self {
        let super::Notice { id, kind, at_ms, about, seq, rollout, change, message } = notice;
        let subject = about.subject();
        let (mentions, promotion, run) = match about {
            About::Workload(_, mentions) => (mentions, None, None),
            About::Pipeline(_, promotion) => (Mentions::default(), promotion, None),
            About::Repo(_, run) => (Mentions::default(), None, run),
        };
        let Mentions { hosts, purges, cut, late, stand_in } = mentions;
        Self {
            id,
            kind,
            at_ms,
            subject,
            seq,
            rollout,
            change,
            message,
            hosts,
            purges,
            cut,
            late,
            stand_in,
            promotion,
            run,
        }
    }
}
