//! The program, running, and its end in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::Addr;
use tokio::sync::oneshot;

use crate::actors::message::Drain;
use crate::actors::root::{ENDS_WITHIN, GivenUp, Root};
use crate::app::exporting::{Exporting, FLUSHED_WITHIN};
use crate::http::{Addresses, Serving};

/// Everything ends within this, whatever hangs (fault K16); Kubernetes would kill us 30 s after its SIGTERM.
const STOP_WITHIN: Duration = Duration::from_millis(4_500);

const _: () = assert!(
    ENDS_WITHIN.as_millis() + FLUSHED_WITHIN.as_millis() < STOP_WITHIN.as_millis(),
    "the actors are left before they have ended"
);

pub struct Running {
    pub(super) root: Addr<Root>,
    pub(super) serving: Serving,
    pub(super) draining: Arc<AtomicBool>,
    pub(super) given_up: oneshot::Receiver<GivenUp>,
    pub(super) exporting: Option<Exporting>,
}

impl Running {
    /// Where probes and metrics, and where the status page are.
    pub fn addresses(&self) -> Addresses {
        self.serving.addresses()
    }

    /// The parent of all actors, to look at.
    pub fn root(&self) -> &Addr<Root> {
        &self.root
    }

    /// Waits until the program gives itself up; never returns while it is well.
    pub async fn given_up(&mut self) -> GivenUp {
        match (&mut self.given_up).await {
            Ok(given_up) => given_up,
            Err(_) => GivenUp("the root actor crashed".to_owned()),
        }
    }

    /// Ends everything in order: not ready any more, no new work, writes under way finished, and out. Never waits for
    /// CloudFront or a receiver: whatever is under way there, the next life resumes from the ledger.
    pub async fn stop(self) {
        let Self { root, serving, draining, given_up: _, exporting } = self;
        draining.store(true, Ordering::Relaxed);
        let ordered = async {
            if root.send(Drain).await.is_err() {
                tracing::warn!("the actors had ended before they were told to");
            }
            // What the actors did last is traced too.
            let exported = async {
                if let Some(exporting) = exporting {
                    exporting.end().await;
                }
            };
            tokio::join!(serving.stop(), exported);
        };
        if tokio::time::timeout(STOP_WITHIN, ordered).await.is_err() {
            tracing::warn!("not everything ended in time; leaving it, the ledger has what matters");
        }
    }
}
