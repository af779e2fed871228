//! How many requests are taken: of one client in a window of its own, as the older controller counts, and of all in a second.
//!
//! Not for who a client is; that is `client`'s.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use domain::machine::Timestamp;

/// Requests of one client in its window (the older controller's `--promotion-hook-rate-limit`).
const OF_A_CLIENT_MAX: u32 = 20;

/// The window (its `--promotion-hook-rate-limit-interval`).
const WINDOW: Duration = Duration::from_secs(30);

/// Requests of all clients in a second. Each costs the API server three requests at most, of some thousand that it answers in one.
const OF_ALL_MAX: u32 = 100;

const SECOND: Duration = Duration::from_secs(1);

/// Clients that are remembered, at about 60 bytes each. Beyond, the one that began first is forgotten, whose window ends first.
const CLIENTS_MAX: usize = 10_000;

/// Counts requests.
#[derive(Default)]
pub(super) struct Limiter {
    clients: BTreeMap<IpAddr, Window>,
    /// In the order in which their windows began.
    order: VecDeque<(Timestamp, IpAddr)>,
    all: Option<Window>,
}

#[derive(Clone, Copy)]
struct Window {
    began: Timestamp,
    hits: u32,
}

impl Limiter {
    /// Counts one request.
    ///
    /// # Errors
    /// How long the client is to stay away. Then the request is not to be looked at.
    pub(super) fn hit(&mut self, now: Timestamp, client: IpAddr) -> Result<(), Duration> {
        while let Some((began, oldest)) = self.order.front().copied() {
            let is_over = began.after(WINDOW) <= now;
            if !is_over && (self.clients.len() < CLIENTS_MAX || self.clients.contains_key(&client)) {
                break;
            }
            self.order.pop_front();
            self.clients.remove(&oldest);
        }
        let window = self.clients.entry(client).or_insert_with(|| {
            self.order.push_back((now, client));
            Window { began: now, hits: 0 }
        });
        // Whom this refuses takes nothing from the others.
        window.hit(now, WINDOW, OF_A_CLIENT_MAX)?;
        let all = self.all.filter(|all| all.began.after(SECOND) > now).unwrap_or(Window { began: now, hits: 0 });
        self.all.insert(all).hit(now, SECOND, OF_ALL_MAX)
    }
}

impl Window {
    fn hit(&mut self, now: Timestamp, length: Duration, max: u32) -> Result<(), Duration> {
        self.hits = self.hits.saturating_add(1);
        if self.hits <= max { Ok(()) } else { Err(self.began.after(length).since(now)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn client(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    // The older controller's TestLimiter, with its defaults: a window begins with the first request of a client, ends after its
    // length, and refused requests do not make it longer.
    #[test]
    fn a_client_has_a_window_of_its_own() {
        let mut limiter = Limiter::default();
        for hit in 0..20 {
            assert_eq!(limiter.hit(at(hit * 100), client(1)), Ok(()), "{hit}");
        }
        assert_eq!(limiter.hit(at(2_000), client(1)), Err(Duration::from_secs(28)));
        assert_eq!(limiter.hit(at(29_999), client(1)), Err(Duration::from_millis(1)));
        assert_eq!(limiter.hit(at(29_999), client(2)), Ok(()));
        assert_eq!(limiter.hit(at(30_000), client(1)), Ok(()));
    }

    #[test]
    fn all_together_are_bounded_and_a_flood_of_one_is_not_counted_for_all() {
        let mut limiter = Limiter::default();
        for _ in 0..1_000 {
            let _ = limiter.hit(at(0), client(1));
        }
        for other in 2..=81 {
            assert_eq!(limiter.hit(at(0), client(other)), Ok(()), "{other}");
        }
        assert_eq!(limiter.hit(at(400), client(82)), Err(Duration::from_millis(600)));
        assert_eq!(limiter.hit(at(1_000), client(82)), Ok(()));
    }

    #[test]
    fn as_many_clients_are_remembered_as_there_is_room_for() {
        let mut limiter = Limiter::default();
        let most = u32::try_from(CLIENTS_MAX).unwrap();
        for number in 0..3 * most {
            let _ = limiter.hit(at(u64::from(number) / 1_000), client(number));
        }
        assert_eq!((limiter.clients.len(), limiter.order.len()), (CLIENTS_MAX, CLIENTS_MAX));
        assert!(limiter.clients.contains_key(&client(3 * most - 1)) && !limiter.clients.contains_key(&client(0)));
        let _ = limiter.hit(at(60_000), client(1));
        assert_eq!((limiter.clients.len(), limiter.order.len()), (1, 1));
    }
}
