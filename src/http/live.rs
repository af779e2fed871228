//! The page, kept fresh by server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
//!
//! A stream looks once a second, and sends the sections that have changed since it last looked, in one event; nothing while nothing
//! changes but a line now and then, so that a dead peer is noticed. All streams share one look at the actors. Their number is bounded; one
//! whose peer does not read makes room for the next. What is in a section is `page`'s.

use std::convert::Infallible;
use std::time::Duration;

use actix_web::web::{Bytes, Data};
use futures_util::Stream;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::page::{self, Asked, Live};
use super::streams::Seat;
use super::window::Window;
use crate::actors::browse::Listing;

/// Where streams are: `/live`, and `/live/workloads/NAMESPACE/NAME`.
pub const PATH: &str = "/live";

/// How often a stream looks, and so the most events that it sends.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// How often the list of workloads is looked at: a search goes through all records, which is 5 ms of 10,000.
const LISTS_EVERY: Duration = Duration::from_secs(5);

/// How often something is sent at least.
const BEATS_EVERY: Duration = Duration::from_secs(15);

/// Tells a browser when to come again after a broken connection, in milliseconds.
const GREETING: &str = "retry: 3000\n\n";

/// A comment, by the specification.
const BEAT: &str = ":\n\n";

struct Streaming {
    window: Data<Window>,
    asked: Asked,
    seat: Seat,
    ending: watch::Receiver<bool>,
    ticks: Interval,
    greeted: bool,
    listing: Option<(Instant, Listing)>,
    shown: Option<Live>,
    sent: Instant,
}

/// The events of a page, until the peer goes or the process ends.
pub(super) fn stream(window: Data<Window>, asked: Asked, seat: Seat) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let mut ticks = interval(LOOKS_EVERY);
    // One that was held up does not catch up: an event is about now.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ending = window.ending.clone();
    let streaming = Streaming {
        window,
        asked,
        seat,
        ending,
        ticks,
        greeted: false,
        listing: None,
        shown: None,
        sent: Instant::now(),
    };
    futures_util::stream::unfold(streaming, async |mut streaming| {
        let bytes = streaming.next().await?;
        Some((Ok(bytes), streaming))
    })
}

impl Streaming {
    async fn next(&mut self) -> Option<Bytes> {
        if !self.greeted {
            self.greeted = true;
            return Some(Bytes::from_static(GREETING.as_bytes()));
        }
        loop {
            tokio::select! {
                // Also if the sender is gone.
                _ = self.ending.wait_for(|ends| *ends) => return None,
                _ = self.ticks.tick() => {}
            }
            self.seat.polled();
            let event = self.look().await;
            if event.is_some() || self.sent.elapsed() >= BEATS_EVERY {
                self.sent = Instant::now();
                return Some(event.unwrap_or_else(|| Bytes::from_static(BEAT.as_bytes())));
            }
        }
    }

    /// What has changed, as an event.
    async fn look(&mut self) -> Option<Bytes> {
        let listing = match self.listing.take().filter(|(at, _)| at.elapsed() < LISTS_EVERY) {
            Some(kept) => kept,
            None => (Instant::now(), self.window.browse(&self.asked).await),
        };
        let seen = self.window.glance().await;
        let live = self.window.view(&self.asked, seen.as_ref().as_ref(), &listing.1, page::live);
        self.listing = Some(listing);
        let news = match &self.shown {
            Some(shown) if *shown == live => return None,
            Some(shown) => {
                let changed = |(id, html): &(&&'static str, &String)| shown.sections.get(**id) != Some(*html);
                let sections = live.sections.iter().filter(changed).map(|(id, html)| (*id, html.clone())).collect();
                // A section that went away is emptied.
                let gone = shown.sections.keys().filter(|id| !live.sections.contains_key(*id));
                let gone: Vec<_> = gone.map(|id| (*id, String::new())).collect();
                let mut news = Live { sections, ..live.clone() };
                news.sections.extend(gone);
                news
            }
            None => live.clone(),
        };
        self.shown = Some(live);
        // Names and texts only: nothing in it fails to become JSON, and JSON has no line break of its own.
        let json = serde_json::to_string(&news).unwrap_or_default();
        Some(Bytes::from(format!("data: {json}\n\n")))
    }
}
