//! Carries out the invalidations of CloudFront's stand-in on the tiers, and completes them then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sandbox::cloudfront::{CloudFrontStandIn, Invalidation};

use super::varnish::Varnish;

/// Time between two looks for new invalidations. Beside it, no lag is exact.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// When a tier carries out an invalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lag {
    /// This long after it was made.
    Of(Duration),
    /// Not before it has another lag.
    Held,
    /// Never, and the invalidation is completed without it.
    LeftOut,
}

/// One of two, in the order in which a visitor's request comes to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Edge,
    Shield,
}

/// The thread that does it. Ends when dropped.
#[derive(Debug)]
pub(super) struct Purges {
    shared: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    /// Of the edge and of the shield.
    lags: [Lag; 2],
    /// By the id of the invalidation: which of the two are done with it.
    done: BTreeMap<String, [bool; 2]>,
    is_ending: bool,
}

impl Purges {
    pub(super) fn start(
        cloudfront: Arc<CloudFrontStandIn>,
        distribution: &str,
        tiers: [Arc<Varnish>; 2],
        lags: [Lag; 2],
    ) -> Purges {
        let shared = Arc::new(Mutex::new(State { lags, done: BTreeMap::new(), is_ending: false }));
        let (state, distribution) = (Arc::clone(&shared), distribution.to_owned());
        let thread = std::thread::spawn(move || {
            while !lock(&state).is_ending {
                for made in cloudfront.invalidations().iter().filter(|made| made.distribution == distribution) {
                    if carry_out(made, &tiers, &state) {
                        cloudfront.complete(&made.id);
                    }
                }
                std::thread::sleep(LOOK_EVERY);
            }
        });
        Purges { shared, thread: Some(thread) }
    }

    pub(super) fn set_lag(&self, tier: Tier, lag: Lag) {
        lock(&self.shared).lags[tier as usize] = lag;
    }

    /// Whether a tier is done with an invalidation.
    pub(super) fn is_done(&self, tier: Tier, id: &str) -> bool {
        lock(&self.shared).done.get(id).is_some_and(|done| done[tier as usize])
    }
}

impl Drop for Purges {
    fn drop(&mut self) {
        lock(&self.shared).is_ending = true;
        if let Some(thread) = self.thread.take() {
            // A panic in it was printed by then.
            let _ = thread.join();
        }
    }
}

/// Does what is due of an invalidation. Whether both tiers are done with it.
fn carry_out(made: &Invalidation, tiers: &[Arc<Varnish>; 2], state: &Mutex<State>) -> bool {
    let mut state = lock(state);
    let lags = state.lags;
    let done = state.done.entry(made.id.clone()).or_default();
    for ((tier, lag), done) in tiers.iter().zip(lags).zip(done.iter_mut()) {
        let is_due = match lag {
            Lag::Of(lag) => Instant::now() >= made.at + lag,
            Lag::Held => false,
            Lag::LeftOut => {
                *done = true;
                false
            }
        };
        if is_due && !*done {
            made.paths.iter().for_each(|path| tier.forget(path));
            *done = true;
        }
    }
    done.iter().all(|done| *done)
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
