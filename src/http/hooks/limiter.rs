//! How many requests are taken: of one client in a window of its own, as the older controller counts, and of all in a second.
//!
//! Not for who a client is; that is `client`'s.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use kernel::machine::Timestamp;

/// Requests of one client in its window (the older controller's `--promotion-hook-rate-limit`).
const OF_A_CLIENT_MAX: u32 = 20;

/// The window (its `--promotion-hook-rate-limit-interval`).
const WINDOW: Duration = Duration::from_secs(30);

/// Requests of all clients in a second. Each costs the API server three requests at most, of some thousand that it answers in one.
const OF_ALL_MAX: u32 = 100;

/// What clients that were served before have beside that, whatever strangers ask.
const OF_KNOWN_MAX: u32 = 25;

/// For how long a client that was served is known.
const KNOWN_FOR: Duration = Duration::from_hours(24);

/// Clients that are known; beyond, the one that was served least lately is forgotten.
const KNOWN_MAX: usize = 1_000;

const SECOND: Duration = Duration::from_secs(1);

/// Clients that are remembered, at about 60 bytes each. Beyond, the one that began first is forgotten, whose window ends first.
const CLIENTS_MAX: usize = 10_000;

#[derive(Default)]
pub(super) struct Limiter {
    clients: BTreeMap<IpAddr, Window>,
    /// In the order in which their windows began.
    order: VecDeque<(Timestamp, IpAddr)>,
    all: Option<Window>,
    /// What known clients had of their share in this second.
    kept: Option<Window>,
    /// When each was served last.
    known: BTreeMap<IpAddr, Timestamp>,
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
        // A refused client takes nothing from the others.
        window.hit(now, WINDOW, OF_A_CLIENT_MAX)?;
        let of_all = of_this_second(&mut self.all, now).hit(now, SECOND, OF_ALL_MAX);
        let is_known = self.known.get(&client).is_some_and(|served| served.after(KNOWN_FOR) > now);
        of_all.or_else(|wait| {
            if is_known { of_this_second(&mut self.kept, now).hit(now, SECOND, OF_KNOWN_MAX) } else { Err(wait) }
        })
    }

    /// A client was served: it had the key that it needs.
    pub(super) fn served(&mut self, now: Timestamp, client: IpAddr) {
        self.known.insert(client, now);
        if self.known.len() > KNOWN_MAX {
            let oldest = self.known.iter().min_by_key(|(_, served)| **served).map(|(client, _)| *client);
            oldest.map(|client| self.known.remove(&client));
        }
    }
}

fn of_this_second(window: &mut Option<Window>, now: Timestamp) -> &mut Window {
    let running = window.filter(|window| window.began.after(SECOND) > now);
    window.insert(running.unwrap_or(Window { began: now, hits: 0 }))
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
    fn whoever_was_served_has_a_share_that_strangers_cannot_use_up() {
        let mut limiter = Limiter::default();
        limiter.served(at(0), client(1));
        for stranger in 100..201 {
            let _ = limiter.hit(at(1_000), client(stranger));
        }
        assert_eq!(limiter.hit(at(1_000), client(201)), Err(SECOND));
        assert_eq!(limiter.hit(at(1_000), client(1)), Ok(()));
        // The share is bounded too, and a day later it is a stranger.
        (2..40).for_each(|number| limiter.served(at(1_000), client(number)));
        let taken = (2..40).filter(|number| limiter.hit(at(1_000), client(*number)).is_ok()).count();
        assert_eq!(taken, 24);
        let day = 24 * 60 * 60 * 1_000 + 2_000;
        for stranger in 100..201 {
            let _ = limiter.hit(at(day), client(stranger));
        }
        assert_eq!(limiter.hit(at(day), client(1)), Err(SECOND));
        let most = u32::try_from(KNOWN_MAX).unwrap();
        (0..2 * most).for_each(|number| limiter.served(at(u64::from(number)), client(number)));
        assert_eq!(limiter.known.len(), KNOWN_MAX);
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
