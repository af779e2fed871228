//! What is answered, and what a person reads of a refusal. A stranger can be refused a hundred times a second, so a line is written for
//! the first few of each kind only; the metric counts all.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::{StatusCode, header};

use crate::http::reply;
use kernel::machine::Timestamp;

/// Lines about one kind of refusal in a [`WHILE`].
const LINES_MAX: u32 = 5;

/// After this, lines are counted anew.
const WHILE: Duration = Duration::from_secs(30);

/// An answer, and, for a refusal, what is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub status: StatusCode,
    pub body: String,
    /// The address of a pull request.
    pub location: Option<String>,
    /// Why it was refused, and what to do.
    pub refusal: Option<Refusal>,
}

/// Why a request was refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub why: String,
    pub remedy: String,
}

impl Told {
    /// It is done, or begun.
    pub(super) fn done(status: StatusCode, body: &str) -> Self {
        Self { status, body: body.to_owned(), location: None, refusal: None }
    }

    /// It is done, and this is where.
    pub(super) fn at(status: StatusCode, location: String) -> Self {
        Self { location: Some(location), ..Self::done(status, "") }
    }

    pub(super) fn refused(status: StatusCode, body: &str, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { refusal: Some(Refusal { why: why.into(), remedy: remedy.into() }), ..Self::done(status, body) }
    }

    pub(super) fn reply(self) -> HttpResponse {
        let mut answer = reply::text(self.status, self.body);
        let location = self.location.and_then(|at| header::HeaderValue::from_str(&at).ok());
        if let Some(location) = location {
            answer.headers_mut().insert(header::LOCATION, location);
        }
        answer
    }
}

/// Which lines were written.
#[derive(Default)]
pub(super) struct Refusals(Mutex<BTreeMap<(&'static str, u16), Lines>>);

struct Lines {
    since: Timestamp,
    said: u32,
    unsaid: u64,
}

impl Refusals {
    /// Whether a line is written about a refusal of this kind, and how many were not since the last one.
    fn says(&self, now: Timestamp, door: &'static str, code: u16) -> Option<u64> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = kinds.entry((door, code)).or_insert(Lines { since: now, said: 0, unsaid: 0 });
        if lines.since.after(WHILE) <= now {
            lines.since = now;
            lines.said = 0;
        }
        if lines.said >= LINES_MAX {
            lines.unsaid += 1;
            return None;
        }
        lines.said += 1;
        Some(std::mem::take(&mut lines.unsaid))
    }

    /// Tells a person, unless enough was said. `path` is what was asked for, `client` who asked.
    pub(super) fn tell(&self, now: Timestamp, door: &'static str, told: &Told, path: &str, client: &str) {
        let Some(Refusal { why, remedy }) = &told.refusal else { return };
        let code = told.status.as_u16();
        let Some(unsaid) = self.says(now, door, code) else { return };
        tracing::warn!(door, code, path, client, why, remedy, unsaid, "a request was refused");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_kind_of_refusal_hides_no_other() {
        let refusals = Refusals::default();
        let at = Timestamp::from_millis;
        let said: Vec<_> = (0..100).filter_map(|ms| refusals.says(at(ms), "poke", 401)).collect();
        assert_eq!(said, [0; 5]);
        assert_eq!(refusals.says(at(100), "approval", 401), Some(0));
        assert_eq!(refusals.says(at(30_000), "poke", 401), Some(95));
        assert_eq!(refusals.says(at(30_001), "poke", 401), Some(0));
    }
}
