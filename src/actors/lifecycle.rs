//! How a parent learns of a child's death, and a child of its parent's.
//!
//! actix does not restart an actor that panicked, and nobody is told. So every child owns an [`Obituary`], which is sent
//! when the child is dropped for whatever reason, and holds the far end of its parent's [`Leash`], so that children of a
//! dead parent do not live on with their timers. A notice can be lost on a full mailbox; parents also sweep.

use actix::{Actor, AsyncContext, Context, Recipient, WrapFuture};
use tokio::sync::watch;

use crate::actors::message::{Died, End, Who};

/// Sent when dropped. Part of every supervised actor.
pub struct Obituary {
    to: Recipient<Died>,
    who: Who,
    /// How the child ended; `Crashed` until it says otherwise.
    pub end: End,
}

impl Obituary {
    /// The notice of `who`'s death, addressed to its parent.
    pub fn new(to: Recipient<Died>, who: Who) -> Self {
        Self { to, who, end: End::Crashed }
    }
}

impl Drop for Obituary {
    /// Runs while a panic unwinds, so it must not panic itself: one `try_send`, whatever becomes of it.
    fn drop(&mut self) {
        let end = std::mem::replace(&mut self.end, End::Crashed);
        let _ = self.to.try_send(Died { who: self.who.clone(), end });
    }
}

/// Held by a parent; its children end when it is dropped.
pub struct Leash(watch::Sender<()>);

/// A child's end of its parent's leash.
#[derive(Clone)]
pub struct Collar(watch::Receiver<()>);

impl Default for Leash {
    fn default() -> Self {
        Self(watch::Sender::new(()))
    }
}

impl Leash {
    /// An end for one more child.
    pub fn collar(&self) -> Collar {
        Collar(self.0.subscribe())
    }
}

impl Collar {
    /// Ends the actor when its parent is gone.
    pub fn bind<A: Actor<Context = Context<A>>>(&self, actor: &A, ctx: &mut Context<A>) {
        let mut receiver = self.0.clone();
        let gone = async move { while receiver.changed().await.is_ok() {} };
        ctx.spawn(actix::ActorFutureExt::map(gone.into_actor(actor), |(), _, ctx| actix::ActorContext::stop(ctx)));
    }
}
