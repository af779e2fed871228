//! How a parent learns of a child's death, and a child of its parent's.
//!
//! actix does not restart an actor that panicked, and informs no one. So every child owns an [`Obituary`], which sends
//! itself when the child is dropped for any reason. A child also holds the far end of its parent's [`StopSignal`], so that
//! children of a dead parent do not live on with their timers. A notice can be lost on a full mailbox; parents also
//! sweep.

use actix::{Actor, AsyncContext, Context, Message, Recipient, WrapFuture};
use tokio::sync::watch;

use crate::actors::message::{Died, End, Who};

/// Parent → child: end, because another has its place.
#[derive(Message)]
#[rtype(result = "()")]
pub struct GiveWay;

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
    /// Runs while a panic unwinds, so it must not panic itself: one `try_send`, whose result is ignored.
    fn drop(&mut self) {
        let end = std::mem::replace(&mut self.end, End::Crashed);
        let _ = self.to.try_send(Died { who: self.who.clone(), end });
    }
}

/// Held by a parent; its children end when it is dropped.
pub struct StopSignal {
    held: watch::Sender<()>,
    /// The parent's own listener. Children keep a copy, so that a grandparent can wait for them too.
    above: Option<Box<StopListener>>,
}

/// A child's end of its parent's stop signal.
#[derive(Clone)]
pub struct StopListener {
    held: watch::Receiver<()>,
    _above: Option<Box<StopListener>>,
}

impl Default for StopSignal {
    fn default() -> Self {
        Self { held: watch::Sender::new(()), above: None }
    }
}

impl StopSignal {
    /// The signal of a parent that has a parent itself.
    pub fn under(stop_listener: StopListener) -> Self {
        Self { above: Some(Box::new(stop_listener)), ..Self::default() }
    }

    /// An end for one more child.
    pub fn listener(&self) -> StopListener {
        StopListener { held: self.held.subscribe(), _above: self.above.clone() }
    }

    /// Ends the children and theirs, and waits until the last of them is gone.
    pub fn end(self) -> impl Future<Output = ()> {
        self.held.send_replace(());
        async move { self.held.closed().await }
    }
}

impl StopListener {
    /// Ends the actor when its parent is gone.
    pub fn bind<A: Actor<Context = Context<A>>>(&self, actor: &A, ctx: &mut Context<A>) {
        let mut held = self.held.clone();
        // Any change, or a drop, means that the parent has ended.
        let gone = async move { drop(held.changed().await) };
        ctx.spawn(actix::ActorFutureExt::map(gone.into_actor(actor), |(), _, ctx| actix::ActorContext::stop(ctx)));
    }
}
