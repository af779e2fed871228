//! The bounds on the connections to one of our listeners: one on all, and one for each peer's address.
//!
//! A connection costs a stranger nothing, and without bounds those that say nothing would take every place. So beyond a
//! bound the connection that has been idle for longest makes room, first of the peer that has the most: a flood closes
//! its own, and a probe that has just begun stays. Half a request is idle too: only one that is being answered is not.
//!
//! Not for reading requests, nor for how long a quiet connection may last: actix does that (`doors`).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Shutdown};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_rt::net::TcpStream;
use tokio::time::Instant;

use crate::telemetry::Metrics;

/// How often it is said at most, for one door, that connections are closed; the metric counts each.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// How many may be connected at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub all: usize,
    pub peer: usize,
}

/// Those that are connected to one door.
pub(super) struct Guests {
    /// The door, as metrics and logs name it.
    door: &'static str,
    bounds: Bounds,
    metrics: Arc<Metrics>,
    places: Mutex<Places>,
}

/// One that is connected, for as long as its connection lives: actix drops it with the connection.
pub(super) struct Guest {
    guests: Arc<Guests>,
    number: u64,
}

/// While this lives, a request of the guest is being answered.
pub(super) struct Answering {
    guests: Arc<Guests>,
    number: u64,
}

#[derive(Default)]
struct Places {
    /// Counts arrivals and ends of answers, so that a smaller number was quiet for longer.
    count: u64,
    by_number: BTreeMap<u64, Place>,
    said: Option<Instant>,
}

struct Place {
    peer: IpAddr,
    /// Another handle of the connection, by which it can be ended from here; `None` if the system had none to give.
    socket: Option<std::net::TcpStream>,
    /// Requests that are being answered.
    answering: usize,
    /// When it was last not idle, in [`Places::count`].
    since: u64,
}

/// Whether one more has a place.
#[derive(Debug, PartialEq, Eq)]
enum Room {
    Free,
    /// If this one goes; the bound that was reached.
    Instead(u64, &'static str),
    /// No: all guests are being answered; the bound that was reached.
    None(&'static str),
}

impl Places {
    fn room(&self, peer: IpAddr, bounds: Bounds) -> Room {
        let mut held: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for place in self.by_number.values() {
            *held.entry(place.peer).or_default() += 1;
        }
        let of = |peer: IpAddr| held.get(&peer).copied().unwrap_or_default();
        let (bound, only) = match (of(peer) >= bounds.peer, self.by_number.len() >= bounds.all) {
            (true, _) => ("peer", Some(peer)),
            (false, true) => ("all", None),
            (false, false) => return Room::Free,
        };
        let idle = self.by_number.iter().filter(|(_, place)| place.answering == 0);
        let idle = idle.filter(|(_, place)| only.is_none_or(|only| only == place.peer));
        let first = idle.max_by_key(|(_, place)| (of(place.peer), Reverse(place.since)));
        first.map_or(Room::None(bound), |(number, _)| Room::Instead(*number, bound))
    }

    fn enter(&mut self, peer: IpAddr, socket: Option<std::net::TcpStream>) -> u64 {
        self.count += 1;
        self.by_number.insert(self.count, Place { peer, socket, answering: 0, since: self.count });
        self.count
    }
}

impl Guests {
    pub fn new(door: &'static str, bounds: Bounds, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { door, bounds, metrics, places: Mutex::default() })
    }

    /// One has connected. `None` if it has no place, and is being closed, or is gone already.
    pub fn enter(self: &Arc<Self>, stream: &TcpStream) -> Option<Guest> {
        let peer = stream.peer_addr().ok()?.ip().to_canonical();
        let socket = stream.as_fd().try_clone_to_owned().ok().map(std::net::TcpStream::from);
        let mut places = self.places();
        let number = match places.room(peer, self.bounds) {
            Room::Free => places.enter(peer, socket),
            Room::Instead(number, bound) => {
                let gone = places.by_number.remove(&number);
                close(gone.and_then(|place| place.socket));
                self.tell(&mut places, peer, bound, "idle");
                places.enter(peer, socket)
            }
            Room::None(bound) => {
                close(socket);
                self.tell(&mut places, peer, bound, "new");
                return None;
            }
        };
        Some(Guest { guests: Arc::clone(self), number })
    }

    fn tell(&self, places: &mut Places, peer: IpAddr, bound: &'static str, closed: &'static str) {
        let Bounds { all, peer: of_a_peer } = self.bounds;
        self.metrics.doors.connection_closed(self.door, bound, closed);
        let now = Instant::now();
        if places.said.is_some_and(|said| now.duration_since(said) < SAID_EVERY) {
            return;
        }
        places.said = Some(now);
        tracing::warn!(
            door = self.door,
            newest = %peer,
            all,
            of_a_peer,
            remedy = "see who connects, and let only those in who should be: deploy/base/network-policy.yaml",
            cost = "the longest idle connections are closed first; probes are answered",
            "connections were closed, because more were opened than the door has places"
        );
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        // Nothing in here panics while it is held, and numbers stay right if something did.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a connection: its task reads the end of the stream, and finishes.
fn close(socket: Option<std::net::TcpStream>) {
    if let Some(socket) = socket {
        // One that has ended already cannot be ended, which is as good.
        let _ = socket.shutdown(Shutdown::Both);
    }
}

impl Guest {
    /// A request of this guest has arrived whole.
    pub fn answering(&self) -> Answering {
        if let Some(place) = self.guests.places().by_number.get_mut(&self.number) {
            place.answering += 1;
        }
        Answering { guests: Arc::clone(&self.guests), number: self.number }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.guests.places().by_number.remove(&self.number);
    }
}

impl Answering {
    /// Ends the connection, whatever is being answered.
    pub fn close(&self) {
        close(self.guests.places().by_number.get_mut(&self.number).and_then(|place| place.socket.take()));
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut places = self.guests.places();
        places.count += 1;
        let now = places.count;
        if let Some(place) = places.by_number.get_mut(&self.number) {
            place.answering = place.answering.saturating_sub(1);
            place.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { all: 6, peer: 3 };

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn of(peers: &[u8]) -> Places {
        let mut places = Places::default();
        for last in peers {
            places.enter(peer(*last), None);
        }
        places
    }

    fn answer(places: &mut Places, number: u64) {
        places.by_number.get_mut(&number).unwrap().answering += 1;
    }

    #[test]
    fn a_peer_over_its_bound_closes_its_own_oldest_idle_connection() {
        let mut places = of(&[1, 2, 1, 1]);
        assert_eq!(places.room(peer(1), BOUNDS), Room::Instead(1, "peer"));
        assert_eq!(places.room(peer(2), BOUNDS), Room::Free);
        answer(&mut places, 1);
        assert_eq!(places.room(peer(1), BOUNDS), Room::Instead(3, "peer"), "one that is answered is not idle");
        answer(&mut places, 3);
        answer(&mut places, 4);
        assert_eq!(places.room(peer(1), BOUNDS), Room::None("peer"));
        assert_eq!(places.room(peer(2), BOUNDS), Room::Free, "others are not concerned");
    }

    // Faults: T7
    #[test]
    fn when_all_places_are_taken_the_peer_with_the_most_makes_room() {
        // The kubelet, 9, came first and is the oldest; those of 1 and 2 are a flood.
        let mut places = of(&[9, 1, 1, 2, 2, 2]);
        assert_eq!(places.room(peer(3), BOUNDS), Room::Instead(4, "all"));
        for number in 4..=6 {
            answer(&mut places, number);
        }
        assert_eq!(places.room(peer(3), BOUNDS), Room::Instead(2, "all"));
        answer(&mut places, 2);
        answer(&mut places, 3);
        assert_eq!(places.room(peer(3), BOUNDS), Room::Instead(1, "all"));
        answer(&mut places, 1);
        assert_eq!(places.room(peer(3), BOUNDS), Room::None("all"));
    }
}
