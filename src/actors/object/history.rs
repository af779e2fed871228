//! The history of an object, written beside its status: nothing waits for it.

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::kind::StatusOf;
use super::{ObjectActor, ObjectOf, Tended};
use kernel::id::ObjectId;
use objects::history::Entry;
use objects::history::figures::Figure;
use objects::owned::OwnMachine;
use objects::ports::Owner;
use purge::ports::{PortError, Retry};

/// A timer is not early: what it waits for is due when it fires.
const MARGIN: Duration = Duration::from_millis(1);

impl<T: Tended> ObjectActor<T> {
    /// A write was carried out over a status that was `before`.
    pub(super) fn remember(&mut self, written: &ObjectOf<T>, before: &StatusOf<T>, ctx: &mut Context<Self>) {
        let news = T::news(written, before, self.env.ports.clock.wall_ms());
        if !news.is_empty() {
            self.keeping.owe(&written.uid, &news);
            self.keep_history(ctx);
        }
    }

    /// Writes what is owed to its history, if that is due.
    fn keep_history(&mut self, ctx: &mut Context<Self>) {
        let (uid, now) = (self.object().uid.clone(), self.env.ports.clock.now());
        let Some(owed) = self.keeping.begin(&uid, now) else { return };
        let object = self.object();
        let owner = Owner {
            group: self.objects.group().to_owned(),
            kind: T::NAME,
            namespace: object.id.namespace().to_owned(),
            name: T::name(&object.id).to_owned(),
            uid,
        };
        let (histories, remembered) =
            (self.tended.ports().histories.clone(), T::remembered(self.shell.machine().durable()));
        let keeping = async move {
            let kept = histories.keep(&owner, &remembered, &owed).await;
            (kept, owner, owed)
        };
        ctx.spawn(keeping.into_actor(self).map(|(kept, owner, owed), actor, ctx| {
            actor.history_kept(kept, &owner, &owed, ctx);
        }));
    }

    fn history_kept(
        &mut self,
        kept: Result<Vec<Figure>, PortError>,
        owner: &Owner,
        owed: &[Entry],
        ctx: &mut Context<Self>,
    ) {
        match kept {
            Ok(figures) => {
                self.env.metrics.figures.count(owner, &figures);
                self.keeping.kept(&owner.uid, owed);
                self.keep_history(ctx);
            }
            Err(error) => {
                self.env.metrics.failure("store_history");
                let lasting = error.denied || error.retry == Retry::Never;
                let now = self.env.ports.clock.now();
                if self.keeping.failed(&owner.uid, now, lasting, &error.to_string()) {
                    let object = self.id();
                    tracing::warn!(%object, %error, "could not write the history of a {}; its status keeps ten entries", T::NAME);
                }
                if let Some(at) = self.keeping.deadline() {
                    ctx.run_later(at.since(now) + MARGIN, |actor: &mut Self, ctx| actor.keep_history(ctx));
                }
            }
        }
    }
}
