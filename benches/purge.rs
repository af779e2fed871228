//! What it costs to carry out many purges that are ordered at once: each is ordered, created or covered, polled and completed.
//!
//! CloudFront grants and completes whatever it is asked, in virtual time. The whole lives of a thousand and of ten thousand orders are
//! measured: ten times as many may cost little more than ten times as much.

use std::collections::VecDeque;
use std::fmt;

use divan::Bencher;
use divan::counter::ItemsCount;
use kernel::id::{Reference, WorkloadId};
use kernel::machine::{Machine, Timestamp};
use kernel::names::distribution::DistributionId;
use kernel::names::paths::{Path, PathSet};
use purge::purges::purge::{Effect, Event, Order, Pace, Purger};

const NAMESPACES: usize = 100;

fn main() {
    divan::main();
}

/// So many orders of this kind.
#[derive(Clone, Copy, Debug)]
struct Release {
    orders: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Each is of a distribution of its own.
    Apart,
    /// All are of five distributions, and of everything.
    Together,
    /// All are of a hundred distributions, each of one path of its own.
    ByPath,
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.orders, self.kind)
    }
}

fn releases() -> impl Iterator<Item = Release> {
    let of = |kind| [1_000, 10_000].into_iter().map(move |orders| Release { orders, kind });
    [Kind::Apart, Kind::Together, Kind::ByPath].into_iter().flat_map(of)
}

#[divan::bench(args = releases(), sample_count = 3, sample_size = 1)]
fn carry_out(bencher: Bencher<'_, '_>, release: &Release) {
    let release = *release;
    bencher.counter(ItemsCount::new(release.orders)).with_inputs(|| orders(release)).bench_values(carried_out);
}

/// Carries them all out; returns how many creations that took.
fn carried_out(orders: Vec<Order>) -> usize {
    let mut purger = Purger::new(Pace::default());
    let (mut now, mut creations) = (Timestamp::from_millis(0), 0);
    let mut effects = VecDeque::new();
    for order in orders {
        effects.extend(purger.step_and_catch_up(now, Event::Ordered(order)));
    }
    loop {
        let event = match effects.pop_front() {
            Some(Effect::Create(order)) => {
                creations += 1;
                Event::Created(order.reference, "I1EXAMPLE12345".into(), None)
            }
            Some(Effect::Poll(reference, ..)) => Event::Completed(reference),
            Some(Effect::Search(..) | Effect::Report(..)) => continue,
            None => {
                let Some(next) = purger.next_deadline() else { return creations };
                now = now.max(next);
                effects.extend(purger.tick(now));
                continue;
            }
        };
        effects.extend(purger.step_and_catch_up(now, event));
    }
}

fn orders(Release { orders, kind }: Release) -> Vec<Order> {
    (0..orders).filter_map(|number| order(number, kind)).collect()
}

fn order(number: usize, kind: Kind) -> Option<Order> {
    let distribution = match kind {
        Kind::Apart => number,
        Kind::Together => number % 5,
        Kind::ByPath => number % 100,
    };
    let paths: PathSet = match kind {
        Kind::Apart | Kind::Together => PathSet::default(),
        Kind::ByPath => [format!("/{number}").parse::<Path>().ok()?].into_iter().collect(),
    };
    Some(Order {
        reference: Reference(format!("allclear-{number:032}")),
        distribution: DistributionId::parse(&format!("E{distribution:013}")).ok()?,
        paths,
        subject: WorkloadId::deployment(format!("team-{}", number % NAMESPACES), format!("web-{number}")).into(),
        invalidation: None,
        paths_per_hour: 1_000,
        purges_per_hour: u32::MAX,
        voted_at: Some(Timestamp::from_millis(0)),
        voted_ms: 0,
        ordered_ms: 0,
    })
}
