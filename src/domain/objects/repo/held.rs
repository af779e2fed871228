//! The question about a lock that is in the way of a run: what is remembered of it, and its words.
//!
//! Not for when it is asked or answered, which is `unlock`'s.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::form::{At, Count, Form, In, named};
use crate::repo::lock::{Holder, Lock, LockId};
use crate::status::Approval;
use kernel::id::{RunSeq, digest};
use kernel::text;

#[cfg(feature = "schema")]
use schemars::JsonSchema;

/// Hexadecimal digits of a ticket, as of every question.
const TICKET_DIGITS: usize = 12;

/// A lock of the state in the way of a run: may it be taken away?
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HeldLock {
    /// The number of the run.
    #[serde(with = "In::<Count<RunSeq>>")]
    pub seq: RunSeq,
    /// Its id.
    pub id: LockId,
    /// Who holds it, as it says itself: user@host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Since when, by the clock of its holder.
    #[serde(rename = "since", default, skip_serializing_if = "Option::is_none", with = "In::<Option<At>>")]
    pub since_ms: Option<i64>,
    /// Ended: a Job that has ended. Gone: a Job of this Repo that is gone. Other: nothing says that it is one of ours.
    pub holder: HolderKind,
    /// The Job whose pod holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The newest attempt of the run that met it.
    #[serde(with = "In::<Count<u32>>")]
    pub met: u32,
    /// What the annotation allclear.dev/approve has to say.
    pub ticket: String,
    /// Since when a person is asked.
    #[serde(rename = "askedAt", with = "In::<At>")]
    pub asked_ms: i64,
    /// Who said yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The attempt whose Job takes it away.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "In::<Option<Count<u32>>>")]
    pub attempt: Option<u32>,
}

named! {
    /// Who holds a lock about which a person is asked.
    pub enum HolderKind("holder of a lock") {
        Ended = "Ended",
        Gone = "Gone",
        Other = "Other",
    }
}

impl HeldLock {
    /// The question about a lock that an attempt met; `None` where there is none: its holder runs, or it has no id.
    pub(super) fn asked(uid: &str, at: (RunSeq, u32), lock: &Lock, holder: Holder, asked_ms: i64) -> Option<Self> {
        let (holder, job) = match holder {
            Holder::Runs(_) => return None,
            Holder::Ended(job) => (HolderKind::Ended, Some(job)),
            Holder::Gone(job) => (HolderKind::Gone, Some(job)),
            Holder::Other => (HolderKind::Other, None),
        };
        let id = lock.id()?.clone();
        let (seq, met) = at;
        let ticket = digest("unlock", [uid, &seq.to_string(), &met.to_string(), id.as_str()]);
        Some(Self {
            seq,
            who: lock.who().map(str::to_owned),
            since_ms: lock.since_ms(),
            holder,
            job,
            met,
            ticket: ticket.chars().take(TICKET_DIGITS).collect(),
            asked_ms,
            approval: None,
            attempt: None,
            id,
        })
    }

    /// The same question, met once more: who is asked keeps the ticket.
    pub(super) fn met_again(self, before: Self) -> Self {
        let Self { ticket, asked_ms, approval, attempt, .. } = before;
        Self { ticket, asked_ms, approval, attempt, ..self }
    }

    /// Who holds it, since when, and what is not known of its holder.
    pub fn words(&self) -> String {
        let Self { id, who, since_ms, holder, job, .. } = self;
        let who = who.as_deref().unwrap_or("an unnamed program");
        let since = since_ms.map_or_else(|| "an unknown time".to_owned(), |since| At::of(since).to_string());
        let job = job.as_deref().unwrap_or_default();
        let holder = match holder {
            HolderKind::Ended => {
                format!("a pod of Job {job}, which has ended; on a node that was lost it may still run")
            }
            HolderKind::Gone => format!("a pod of Job {job}, which is gone; on a node that was lost it may still run"),
            HolderKind::Other => "nothing here says whether it still runs".to_owned(),
        };
        format!("{who} holds lock {id} of the state since {since}: {holder}")
    }
}

/// For how long something is held since then; a holder whose clock is ahead has held it for no time yet.
pub fn held_for(since_ms: i64, now_ms: i64) -> Option<String> {
    let held = Duration::from_secs(u64::try_from(now_ms.saturating_sub(since_ms)).unwrap_or_default() / 1_000);
    (!held.is_zero()).then(|| format!("held for {}", text::duration(held)))
}
