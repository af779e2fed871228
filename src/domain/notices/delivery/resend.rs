//! Deliveries that the owner of a workload, a Pipeline or a Repo asks to be sent again, by the annotation `resend` on it, on their way to the
//! outbox.
//!
//! A request names its deliveries, so neither a clock nor an order decides what it is about, and the delivery itself keeps which request
//! it met last: the same annotation, seen again or by another life, sends nothing twice. Not for when something is sent; that is
//! [`super::Outbox`]'s.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Deliveries that one request names at most: with their ids it takes less than a tenth of what is read of an annotation.
pub const RESEND_MAX: usize = 50;

/// Longest id of a delivery: a SHA-256 in hexadecimal.
const ID_BYTES_MAX: usize = 64;

/// Longest time of a request; an RFC 3339 timestamp needs 35.
const AT_BYTES_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resend {
    /// When it was made, as written; only ever compared with another one.
    pub at: String,
    /// Which deliveries, by their ids.
    pub deliveries: BTreeSet<String>,
}

/// Why a value of the annotation is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum InvalidResend {
    #[error("not a time, a blank, and ids of deliveries with commas between them; `allclear webhook resend` writes it")]
    Form,
    #[error("{0} deliveries, {RESEND_MAX} at most")]
    TooMany(usize),
}

impl Resend {
    /// Reads the value of the annotation: the time, a blank, and ids with commas between them.
    ///
    /// # Errors
    /// Everything else, and too many ids.
    pub fn parse(value: &str) -> Result<Self, InvalidResend> {
        let (at, ids) = value.trim().split_once(' ').ok_or(InvalidResend::Form)?;
        if at.len() > AT_BYTES_MAX {
            return Err(InvalidResend::Form);
        }
        let deliveries: BTreeSet<String> =
            ids.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect();
        let is_id = |id: &String| id.len() <= ID_BYTES_MAX && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if deliveries.is_empty() || !deliveries.iter().all(is_id) {
            return Err(InvalidResend::Form);
        }
        if deliveries.len() > RESEND_MAX {
            return Err(InvalidResend::TooMany(deliveries.len()));
        }
        Ok(Self { at: at.to_owned(), deliveries })
    }
}

impl fmt::Display for Resend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.deliveries.iter().map(String::as_str).collect();
        write!(f, "{} {}", self.at, ids.join(","))
    }
}

/// Requests of one object that wait at once; beyond it the oldest is forgotten.
const WAITING_MAX: usize = 8;

/// Requests by annotations of objects, until whoever carries them out has them, and the newest of those that it has. One may be
/// handed over twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requests<K: Ord, R> {
    waiting: BTreeMap<K, Vec<R>>,
    handed: BTreeMap<K, R>,
}

/// Those for the outbox.
pub type Resends<K> = Requests<K, Resend>;

impl<K: Ord, R> Default for Requests<K, R> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), handed: BTreeMap::new() }
    }
}

impl<K: Clone + Ord, R: Clone + PartialEq> Requests<K, R> {
    /// An object was seen with this request, or without one.
    pub fn seen(&mut self, id: &K, request: Option<&R>) {
        let Some(request) = request else { return self.gone(id) };
        let waiting = self.waiting.get(id).and_then(|waiting| waiting.last());
        if waiting.or_else(|| self.handed.get(id)) == Some(request) {
            return;
        }
        let waiting = self.waiting.entry(id.clone()).or_default();
        if waiting.len() >= WAITING_MAX {
            waiting.remove(0);
        }
        waiting.push(request.clone());
    }

    /// The object is gone.
    pub fn gone(&mut self, id: &K) {
        self.waiting.remove(id);
        self.handed.remove(id);
    }

    /// Hands over what waits, as far as `hand` takes it; the rest waits for the next time.
    pub fn hand_over(&mut self, mut hand: impl FnMut(&K, &R) -> bool) {
        while let Some((id, requests)) = self.waiting.pop_first() {
            let mut requests = requests.into_iter();
            while let Some(request) = requests.next() {
                if !hand(&id, &request) {
                    self.waiting.insert(id, std::iter::once(request).chain(requests).collect());
                    return;
                }
                self.handed.insert(id.clone(), request);
            }
        }
    }

    /// Whoever carries them out was rebuilt, and may not have stored what it had been handed.
    pub fn rebuilt(&mut self) {
        let handed = std::mem::take(&mut self.handed);
        for (id, request) in handed {
            self.waiting.entry(id).or_default().insert(0, request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::WorkloadId;

    fn request(at: &str) -> Resend {
        Resend { at: at.to_owned(), deliveries: ["a1".to_owned(), "b2".to_owned()].into() }
    }

    #[test]
    fn a_request_is_read_as_it_is_written_and_is_bounded() {
        assert_eq!(Resend::parse("2026-11-23T10:00:00Z b2,a1"), Ok(request("2026-11-23T10:00:00Z")));
        assert_eq!(Resend::parse(&request("now").to_string()), Ok(request("now")));
        let many = (0..51).map(|number| format!("a{number}")).collect::<Vec<_>>().join(",");
        for bad in ["", "now", "now ", "now a/b", "now ../x", &format!("now {many}"), &format!("{} a", "x".repeat(65))]
        {
            assert!(Resend::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Resend::parse(&format!("now {many}")), Err(InvalidResend::TooMany(51)));
    }

    #[test]
    fn each_request_is_handed_over_once_and_again_only_to_a_rebuilt_outbox() {
        let (web, api) = (WorkloadId::deployment("shop", "web"), WorkloadId::deployment("shop", "api"));
        let mut resends = Resends::default();
        let taken = |resends: &mut Resends<WorkloadId>, room: usize| {
            let mut taken = Vec::new();
            resends.hand_over(|_, request| {
                let fits = taken.len() < room;
                if fits {
                    taken.push(request.at.clone());
                }
                fits
            });
            taken
        };
        resends.seen(&api, Some(&request("1")));
        resends.seen(&web, Some(&request("2")));
        assert_eq!(taken(&mut resends, 1), ["1"]);
        assert_eq!(taken(&mut resends, 9), ["2"], "what found no room waits");
        resends.seen(&web, Some(&request("2")));
        assert!(taken(&mut resends, 9).is_empty(), "the same request, seen again");
        resends.seen(&web, Some(&request("3")));
        resends.seen(&web, Some(&request("4")));
        resends.gone(&api);
        assert_eq!(taken(&mut resends, 1), ["3"]);
        assert_eq!(taken(&mut resends, 9), ["4"], "one that another followed before it was handed over is not lost");
        resends.rebuilt();
        assert_eq!(taken(&mut resends, 9), ["4"], "without the one of a workload that is gone");
        resends.seen(&web, None);
        resends.rebuilt();
        assert!(taken(&mut resends, 9).is_empty());
    }
}
