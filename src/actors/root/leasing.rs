//! The calls about the lease. Each is made once; the machine decides when to make the next one.

use std::time::Duration;

use actix::Context;

use super::Root;
use crate::actors::Env;
use crate::actors::shell::Drives;
use kernel::replica::duty::Event;
use kernel::replica::lease::{self, Claim};
use purge::ports::{PortError, Retry};

/// How long giving the lease back may take at the end. If it fails, the next replica waits 15 s.
pub(super) const RELEASE_WITHIN: Duration = Duration::from_secs(1);

impl Root {
    pub(super) fn call_lease(&mut self, effect: lease::Effect, ctx: &mut Context<Self>) {
        let env = self.env.clone();
        let Some(lease) = env.ports.lease.clone() else { return };
        match effect {
            lease::Effect::Look => {
                self.ask(ctx, async move { lease.look().await }, move |found| {
                    answered(&env, found, lease::Event::Looked)
                });
            }
            lease::Effect::Take(over) => {
                let taking = async move { lease.take(over.as_ref()).await };
                self.ask(ctx, taking, move |taken| answered(&env, taken, lease::Event::Taken));
            }
            lease::Effect::Release(claim) => {
                let releasing =
                    async move { tokio::time::timeout(RELEASE_WITHIN, lease.release(claim.as_ref())).await };
                self.ask(ctx, releasing, |released| {
                    match released {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => {
                            tracing::warn!(%error, "the lease may not be given back; if so, the next replica waits for its end");
                        }
                        Err(_) => {
                            tracing::warn!("nothing says in time that the lease is given back; if it is not, the next replica waits for its end");
                        }
                    }
                    Event::Released
                });
            }
        }
    }
}

/// Takes in an answer about the lease; another request than those that are counted as causes of their own.
fn answered(
    env: &Env,
    answer: Result<Option<Claim>, PortError>,
    event: impl Fn(Option<Claim>) -> lease::Event,
) -> Event {
    Event::Lease(match answer {
        Ok(claim) => {
            env.complaints.answered(env.ports.clock.now());
            event(claim)
        }
        Err(error) => lease::Event::Failed { why: error.to_string(), lasting: error.retry == Retry::Never },
    })
}
