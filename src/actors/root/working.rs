//! What a replica that works does: it opens the ledger, builds the singletons from it, and ends them.

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::Root;
use super::tree::Tree;
use crate::actors::retry_until_ok;
use crate::actors::shell::Drives;
use kernel::refusal::Cause;
use kernel::replica::duty::{Event, Singleton};
use purge::ports::PinError;

/// How long we wait before we open a lost ledger again: repeated losses must not make a hot loop.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

impl Root {
    /// Starts an opening or an end, in place of the one under way.
    fn start<F: Future + 'static>(
        &mut self,
        ctx: &mut Context<Self>,
        work: F,
        done: impl FnOnce(&mut Self, F::Output) -> Event + 'static,
    ) {
        if let Some(earlier) = self.under_way.take() {
            ctx.cancel_future(earlier);
        }
        self.under_way = Some(ctx.spawn(work.into_actor(self).map(|output, root, ctx| {
            root.under_way = None;
            let event = done(root, output);
            root.feed(event, ctx);
        })));
    }

    pub(super) fn open(&mut self, ctx: &mut Context<Self>) {
        let ledger = self.env.ports.ledger.clone();
        let opening = retry_until_ok("open_ledger", Cause::OpenLedger, self.env.clone(), move || {
            let ledger = ledger.clone();
            async move { ledger.open().await }
        });
        self.start(ctx, opening, |root, ledgered| {
            let origin = ledgered.origin.clone();
            if root.env.settings.is_unread && ledgered.pin.is_some() {
                // Alone, or under another name, we would purge what a group has to agree on.
                root.say_given_up("the ledger has members, and could not be read when this process began".to_owned());
            } else {
                root.ledgered = Some(ledgered);
            }
            Event::Opened(origin)
        });
    }

    pub(super) fn build(&mut self, ctx: &mut Context<Self>) {
        let Some(ledgered) = self.ledgered.take() else { return };
        self.leave_settings(ctx);
        tracing::info!(records = ledgered.records.len(), origin = %ledgered.origin, "ledger opened");
        self.env.metrics.leads(true);
        match &mut self.tree {
            Some(tree) => tree.watch_again(ledgered),
            None => self.tree = Some(Tree::new(self.env.clone(), ctx.address(), ledgered)),
        }
    }

    /// Leaves the settings in force beside the ledger, for commands. Tried until it is done; a ledger that is lost is opened again,
    /// and then this is done again as well.
    pub(super) fn leave_settings(&mut self, ctx: &mut Context<Self>) {
        if let Some(earlier) = self.leaving.take() {
            ctx.cancel_future(earlier);
        }
        let Some(text) = self.env.settings.in_force.clone() else { return };
        let ledger = self.env.ports.ledger.clone();
        let leaving = retry_until_ok("store_settings", Cause::WriteLedger, self.env.clone(), move || {
            let (ledger, text) = (ledger.clone(), text.clone());
            async move {
                match ledger.store_in_force(&text).await {
                    Ok(()) | Err(PinError::Lost(_)) => Ok(()),
                    Err(PinError::Unavailable(error)) => Err(error),
                }
            }
        });
        self.leaving = Some(ctx.spawn(leaving.into_actor(self)));
    }

    pub(super) fn rebuild(&mut self, who: Singleton) {
        self.env.metrics.restart(who.name());
        tracing::error!(actor = who.name(), "an actor crashed; it is rebuilt");
        if let Some(tree) = &mut self.tree {
            tree.rebuild(who);
        }
    }

    pub(super) fn end(&mut self, ctx: &mut Context<Self>) {
        if let Some(leaving) = self.leaving.take() {
            ctx.cancel_future(leaving);
        }
        self.env.metrics.leads(false);
        let tree = self.tree.take();
        let ending = async move {
            if let Some(tree) = tree {
                tree.end().await;
            }
        };
        self.start(ctx, ending, Self::ended);
    }

    /// What was built has ended. Until then it may have said how it stands.
    fn ended(&mut self, (): ()) -> Event {
        self.env.metrics.leads(false);
        Event::Ended
    }

    /// The ledger is lost: all actors built from it end, and are built again from the next one. Only the next ledger
    /// counts for what is in flight, so the present versions become baselines and nothing is purged for them (fault
    /// A4).
    pub(super) fn abandon(&mut self, ctx: &mut Context<Self>) {
        tracing::error!(
            "the ledger was deleted while in use; starting a new one, which takes every workload as it is, without a purge"
        );
        self.env.metrics.failure("ledger_lost");
        self.env.metrics.leads(false);
        let ended = self.tree.take().map(Tree::abandon);
        let waited = async move {
            if let Some(ended) = ended {
                ended.await;
            }
            tokio::time::sleep(REOPEN_AFTER).await;
        };
        self.start(ctx, waited, Self::ended);
    }
}
