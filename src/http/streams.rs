//! How many pages are kept fresh at once: places, and who makes room. Not for what is sent; that is `live`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::guests::Answering;

/// Streams at once: a team that leaves the page open. Each holds the last rendering, about 200 KB at worst, twice: 13 MB in all.
pub(super) const STREAMS_MAX: usize = 32;

/// A stream that was not asked for more for so long has a peer that does not read.
const STUCK_AFTER: Duration = Duration::from_secs(20);

/// The streams that are open.
#[derive(Default)]
pub(super) struct Streams(Mutex<Places>);

#[derive(Default)]
struct Places {
    count: u64,
    by_number: BTreeMap<u64, Place>,
}

struct Place {
    /// When the stream was last asked for more.
    polled: Instant,
    /// Its connection, held as one that is being answered; `None` in tests.
    connection: Option<Answering>,
}

/// A place among the streams, for as long as it lives.
pub(super) struct Seat {
    streams: Arc<Streams>,
    number: u64,
}

impl Streams {
    /// A place, if there is one, or one that is stuck makes room.
    pub fn enter(self: &Arc<Self>, connection: Option<Answering>) -> Option<Seat> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.by_number.len() >= STREAMS_MAX {
            let stuck = places.by_number.iter().min_by_key(|(_, place)| place.polled);
            let number = stuck.filter(|(_, place)| place.polled.elapsed() >= STUCK_AFTER).map(|(number, _)| *number)?;
            let place = places.by_number.remove(&number);
            // It may be answering still as far as its task knows; that ends with the connection.
            place.and_then(|place| place.connection).iter().for_each(Answering::close);
        }
        places.count += 1;
        let number = places.count;
        places.by_number.insert(number, Place { polled: Instant::now(), connection });
        Some(Seat { streams: Arc::clone(self), number })
    }
}

impl Seat {
    /// The stream was asked for more.
    pub fn polled(&self) {
        let mut places = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.by_number.get_mut(&self.number) {
            place.polled = Instant::now();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let place = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner).by_number.remove(&self.number);
        // Outside of the lock: it takes that of the guests.
        drop(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn when_all_places_are_taken_only_one_that_is_stuck_makes_room() {
        let streams = Arc::new(Streams::default());
        let seats: Vec<Seat> = (0..STREAMS_MAX).map(|_| streams.enter(None).unwrap()).collect();
        tokio::time::advance(STUCK_AFTER - Duration::from_secs(1)).await;
        assert!(streams.enter(None).is_none(), "all of them read");
        seats.iter().skip(1).for_each(Seat::polled);
        tokio::time::advance(Duration::from_secs(1)).await;
        let newcomer = streams.enter(None).expect("the first is stuck");
        assert!(streams.enter(None).is_none());
        drop(seats);
        let places = streams.0.lock().unwrap().by_number.keys().copied().collect::<Vec<_>>();
        assert_eq!(places, [newcomer.number], "one that was thrown out takes no place of another with it");
    }
}
