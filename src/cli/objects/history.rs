//! `history` of one object: what it has gone through, as far as that was written down.

use std::fmt;

use serde::Serialize;

use super::kind::{ShownKind, one};
use super::words::{approved_by, at};
use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::histories::{ABSENT, KubernetesHistories, name};
use crate::cli::answer::{EXIT_FAILED, Outcome, Output, answer, refused};
use crate::cli::command_kind::IdOf;
use crate::looking::layout::{Tone, line as title, listed};
use crate::looking::page::stamp;
use kernel::id::ObjectId;
use objects::history::{Entry, joined};
use objects::kept::Kept;

/// The past of one object, newest first, and no more than `limit` entries. What its status has is shown whatever becomes of the rest.
/// Exit codes: 0 found, 1 not, or not all of it could be read.
pub async fn history<K: ShownKind>(
    desk: &Desk<K>,
    histories: &KubernetesHistories,
    id: &IdOf<K>,
    limit: Option<usize>,
    output: Output,
) -> Outcome {
    let object = match one(desk, id).await {
        Ok(found) => found.object,
        Err(error) => return refused(&error),
    };
    let (kept, lacks, code) = match kept::<K>(histories, id, object.identity().uid).await {
        Ok(kept) => (kept, None, 0),
        Err(Lack::Nothing(why)) => (Vec::new(), Some(why), 0),
        Err(Lack::Unread(why)) => (Vec::new(), Some(why), EXIT_FAILED),
    };
    let mut entries = joined(&kept, &K::remembered(&object));
    let earlier = limit.map_or(0, |limit| entries.len().saturating_sub(limit));
    entries.drain(..earlier);
    entries.reverse();
    let lacks = lacks.map(|why| format!("only what the status of the {} has: {why}", K::NAME));
    answer(&Past { name: id.display_name(), entries, earlier, lacks, now_ms: output.now_ms() }, output, code)
}

/// Why a history says nothing.
enum Lack {
    /// There is none.
    Nothing(String),
    Unread(String),
}

async fn kept<K: ShownKind>(histories: &KubernetesHistories, id: &IdOf<K>, uid: &str) -> Result<Vec<Entry>, Lack> {
    let unread = |error: purge::ports::PortError| Lack::Unread(error.to_string());
    match histories.read(id.namespace(), &name(K::NAME, K::name(id))).await {
        Ok(Some(own)) if own.is_of(uid) => Ok(own.entries),
        Ok(_) if histories.are_served().await.map_err(unread)? => {
            Err(Lack::Nothing("no history has been written yet, which is done when something ends".to_owned()))
        }
        Ok(_) => Err(Lack::Nothing(ABSENT.to_owned())),
        Err(error) => Err(unread(error)),
    }
}

/// What an object has gone through.
#[derive(Serialize)]
struct Past {
    name: String,
    /// Newest first.
    entries: Vec<Entry>,
    /// So many older ones are not shown.
    earlier: usize,
    /// Why these are not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    lacks: Option<String>,
    #[serde(skip)]
    now_ms: Option<i64>,
}

impl fmt::Display for Past {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        title(f, Tone::Title, &self.name)?;
        if self.entries.is_empty() {
            listed(f, Tone::Plain, "nothing has ended yet")?;
        }
        for entry in &self.entries {
            listed(f, tone(entry), &line(entry, self.now_ms))?;
        }
        if self.earlier > 0 {
            listed(f, Tone::Plain, &format!("{} earlier", self.earlier))?;
        }
        self.lacks.iter().try_for_each(|lacks| listed(f, Tone::Look, lacks))
    }
}

fn tone(entry: &Entry) -> Tone {
    match (entry.is_well(), entry.is_failure()) {
        (true, _) => Tone::Good,
        (_, true) => Tone::Bad,
        (false, false) => Tone::Plain,
    }
}

/// `2026-11-22 22:10:05Z: prod 3, 1.4.2: Completed, approved by ada, started 2026-11-22 21:58:00Z`.
fn line(entry: &Entry, now_ms: Option<i64>) -> String {
    let Entry { environment, seq, revision, outcome, at_ms, started_ms, by, chosen, cause, skipped, .. } = entry;
    let number = Some(seq).filter(|seq| **seq > 0).map(u64::to_string);
    let place = [environment.clone(), number].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let who = chosen.as_ref().map_or_else(|| approved_by(by.as_ref()), |words| format!(", {words}"));
    let cause = cause.as_ref().filter(|_| chosen.is_none()).map_or_else(String::new, |cause| format!(", {cause}"));
    let skipped = match skipped.len() {
        0 => String::new(),
        1 => ", instead of another".to_owned(),
        others => format!(", instead of {others} others"),
    };
    let (ended, started) = (stamp(*at_ms, now_ms), at("started", *started_ms, now_ms));
    format!("{ended}: {place}, {revision}: {outcome}{cause}{who}{skipped}{started}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(line: &str) -> Entry {
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn what_has_happened_is_one_line_each() {
        let entries = [
            r#"{"environment": "prod", "seq": 3, "revision": "1.4.2", "outcome": "Completed", "at": "2026-11-22T22:10:05Z",
                "startedAt": "2026-11-22T21:58:00Z", "by": "ada"}"#,
            r#"{"environment": "prod", "seq": 3, "revision": "1.4.2", "outcome": "Failed", "at": "2026-11-22T22:20:05Z",
                "cause": "verdict"}"#,
            r#"{"environment": "prod", "seq": 4, "revision": "1.4.1", "outcome": "Completed", "at": "2026-11-22T22:30:05Z",
                "cause": "verdict", "chosen": "goes back from 1.4.2 by itself: no"}"#,
            r#"{"environment": "dev", "revision": "1.4.3", "outcome": "Arrived", "at": "2026-11-22T22:40:05Z"}"#,
            r#"{"seq": 7, "revision": "9a1b", "outcome": "Succeeded", "at": "2026-11-22T22:50:05Z", "skipped": ["8a", "7a"]}"#,
        ]
        .map(entry);
        let past = Past {
            name: "shop/web".to_owned(),
            entries: entries.into_iter().rev().collect(),
            earlier: 2,
            lacks: Some("only what the status has".to_owned()),
            now_ms: None,
        };
        let expected = "shop/web
  2026-11-22 22:50:05Z: 7, 9a1b: Succeeded, instead of 2 others
  2026-11-22 22:40:05Z: dev, 1.4.3: Arrived
  2026-11-22 22:30:05Z: prod 4, 1.4.1: Completed, goes back from 1.4.2 by itself: no
  2026-11-22 22:20:05Z: prod 3, 1.4.2: Failed, verdict
  2026-11-22 22:10:05Z: prod 3, 1.4.2: Completed, approved by ada, started 2026-11-22 21:58:00Z
  2 earlier
  only what the status has
";
        assert_eq!(past.to_string(), expected);
    }
}
