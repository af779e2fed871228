//! The watch of the objects and what is beside it: how they are started, rebuilt and ended.

use std::collections::BTreeSet;

use actix::{Actor, Addr, AsyncContext, Context, Recipient};
use futures_util::future::join;

use super::Supervisor;
use crate::actors::lifecycle::{Obituary, StopSignal};
use crate::actors::message::{Observe, Who};
use crate::actors::object::{Peers, PeersRebuilt, Tended};
use crate::actors::object_watcher::ObjectWatcher;
use crate::actors::send_even_if_full;
use crate::actors::shell::Drives;
use kernel::replica::kind_lifecycle::{Event, Part};

/// Everything that is built. Each part ends when its signal is dropped.
pub(super) struct Built<T: Tended> {
    places: BTreeSet<usize>,
    pub(super) watch: Addr<ObjectWatcher<T>>,
    of_watch: StopSignal,
    beside: T::Beside,
    /// Where what is beside the watch is observed.
    pub(super) shows: Option<Recipient<Observe>>,
    of_beside: StopSignal,
}

impl<T: Tended> Supervisor<T> {
    fn signal(&self) -> StopSignal {
        StopSignal::under(self.stop_listener.clone())
    }

    fn watch(
        &self,
        ctx: &Context<Self>,
        signal: &StopSignal,
        beside: T::Beside,
        places: &BTreeSet<usize>,
    ) -> Addr<ObjectWatcher<T>> {
        let obituary = Obituary::new(ctx.address().recipient(), Who::Part(T::WATCH));
        let tended = self.tended.clone().within(places);
        ObjectWatcher::new(self.env.clone(), tended, self.peers(beside), signal.listener(), obituary).start()
    }

    fn peers(&self, beside: T::Beside) -> Peers<T::Beside> {
        Peers { outbox: self.outbox.clone(), beside }
    }

    pub(super) fn build(&mut self, places: BTreeSet<usize>, ctx: &Context<Self>) {
        let (of_watch, of_beside) = (self.signal(), self.signal());
        let (beside, shows) = self.tended.beside(&self.env, of_beside.listener(), ctx.address().recipient());
        let watch = self.watch(ctx, &of_watch, beside.clone(), &places);
        self.built = Some(Built { places, watch, of_watch, beside, shows, of_beside });
    }

    /// Builds a part anew. What is beside the watch is rebuilt with it: it would keep the objects of the earlier watch for ever.
    pub(super) fn rebuild(&mut self, part: Part, ctx: &Context<Self>) {
        self.env.metrics.restart(part.name());
        tracing::error!(actor = part.name(), "an actor crashed; it is rebuilt");
        let Some(mut built) = self.built.take() else { return };
        built.of_beside = self.signal();
        (built.beside, built.shows) =
            self.tended.beside(&self.env, built.of_beside.listener(), ctx.address().recipient());
        if part == T::WATCH {
            built.of_watch = self.signal();
            built.watch = self.watch(ctx, &built.of_watch, built.beside.clone(), &built.places);
        }
        self.built = Some(built);
        self.direct();
    }

    /// Tells the objects' actors where their peers are.
    pub(super) fn direct(&self) {
        if let Some(built) = &self.built {
            send_even_if_full(&built.watch.clone().recipient(), PeersRebuilt(self.peers(built.beside.clone())));
        }
    }

    pub(super) fn end(&mut self, ctx: &mut Context<Self>) {
        let ended = self.built.take().map(|built| join(built.of_watch.end(), built.of_beside.end()));
        let ended = async move {
            if let Some(ended) = ended {
                ended.await;
            }
        };
        self.ask(ctx, ended, |()| Event::Ended);
    }

    pub(super) fn check(&mut self, part: Part, ctx: &mut Context<Self>) {
        let is_dead = self.built.as_ref().is_some_and(|built| {
            if part == T::WATCH {
                !built.watch.connected()
            } else {
                built.shows.as_ref().is_some_and(|of| !of.connected())
            }
        });
        if is_dead {
            self.feed(Event::Crashed(part), ctx);
        }
    }
}
