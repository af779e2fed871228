//! The newest versions that watches reached, and the lists that prove that the cluster did not fall back behind them.
//!
//! A watch that goes on from a version of before a restore receives nothing until the cluster gets there again,
//! and nothing about it looks wrong. So one object is listed without a version every [`Tempo::prove`], and soon after a
//! watch was opened again, for that is when a restored server shows itself: one request a minute for all scopes together, and
//! 12 a minute at most while connections break. What the answers mean is decided by `kernel::watches::horizon`.
//!
//! Not for the watches themselves, nor for what a cluster that was set back means to those who watch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::unfold;
use kube::api::ListParams;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::LINES;
use super::call::Api;
use super::failure::Collection;
use super::text;
use kernel::answer::{Flow, PortError};
use kernel::machine::{Timestamp, millis};
use kernel::watches::horizon::{Horizon, Mark, SET_BACK_AFTER, Verdict};

/// How far watches have got. Clones share it.
#[derive(Clone, Default)]
pub struct Reach(Arc<Shared>);

#[derive(Default)]
struct Shared {
    horizon: Mutex<Horizon>,
    resumed: Notify,
}

impl Reach {
    /// A watch or a listing has got to this version.
    pub(crate) fn reached(&self, version: &str) {
        if let Some(mark) = Mark::parse(version) {
            self.horizon().reached(mark);
        }
    }

    /// A watch was opened again, from where it had got to.
    pub(crate) fn resumed(&self) {
        self.0.resumed.notify_one();
    }

    fn horizon(&self) -> MutexGuard<'_, Horizon> {
        self.0.horizon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What small lists prove, for ever; nothing where they are not to be asked for.
pub fn proofs(api: Api, scopes: Vec<Collection>, reach: Reach, every: Option<Duration>) -> Flow<Verdict> {
    let Some(every) = every.filter(|_| !scopes.is_empty()) else { return Box::pin(futures_util::stream::pending()) };
    let began = Instant::now();
    let prover = Prover { api, scopes, reach, every, began, asked: 0, last: began, in_doubt: false };
    Box::pin(unfold(prover, |mut prover| async move {
        loop {
            prover.pause().await;
            // The watches report failures: they meet the same ones.
            if let Some(verdict) = prover.prove().await {
                return Some((verdict, prover));
            }
        }
    }))
}

struct Prover {
    api: Api,
    scopes: Vec<Collection>,
    reach: Reach,
    every: Duration,
    began: Instant,
    /// Lists asked for; each of the scopes has its turn.
    asked: usize,
    last: Instant,
    in_doubt: bool,
}

impl Prover {
    /// Waits until the next list is due.
    async fn pause(&mut self) {
        let least = self.every.min(SET_BACK_AFTER);
        if !self.in_doubt {
            // Whichever comes first: whether a watch was opened again only decides how soon it is asked.
            let _ = tokio::time::timeout(self.every, self.reach.0.resumed.notified()).await;
        }
        tokio::time::sleep_until(self.last + least).await;
        self.last = Instant::now();
    }

    async fn prove(&mut self) -> Option<Verdict> {
        let of = self.scopes.get(self.asked.checked_rem(self.scopes.len())?)?;
        self.asked = self.asked.wrapping_add(1);
        let before = self.reach.horizon().newest();
        let version = newest(&self.api, of).await.inspect_err(|error| {
            tracing::debug!(target: LINES, %error, "cannot prove that the cluster was not set back");
        });
        let mark = Mark::parse(&version.ok()?)?;
        let now = Timestamp::from_millis(millis(self.began.elapsed()));
        let verdict = self.reach.horizon().answered(now, before, mark);
        self.in_doubt = verdict == Verdict::InDoubt;
        Some(verdict)
    }
}

/// The version of a list of one object, read from what is newest.
async fn newest(api: &Api, of: &Collection) -> Result<String, PortError> {
    let one = ListParams { limit: Some(1), ..ListParams::default() };
    let page = text::page(&api.list(of, &one).await?.body, |_| Ok(()));
    page.map(|page| page.version).map_err(|failure| of.attempt("list").failed(failure))
}
