//! Calls to the boards. Each is counted, and the machine gets its result.

use std::sync::Arc;

use actix::{ActorFutureExt, AsyncContext, Context, StreamHandler, WrapFuture};
use futures_util::StreamExt;

use super::ClusterGroupActor;
use crate::actors::shell::Drives;
use kernel::id::WorkloadId;
use purge::agreement::board::{Cursor, Interest, News, Posting};
use purge::agreement::roster::Heartbeat;
use purge::broker::{Event, NoAnswer};
use purge::ports::{Board, PortError};

/// A board announced news.
struct Woken(usize);

impl ClusterGroupActor {
    /// Listens to the boards' wake-ups. A single cluster has none.
    pub(super) fn listen(&self, ctx: &mut Context<Self>) {
        if self.env.settings.grouping.is_some() {
            self.env.metrics.boards.begin(self.boards.iter().map(|board| board.name()));
            for (index, board) in self.boards.iter().enumerate() {
                ctx.add_stream(board.wake_ups().map(move |()| Woken(index)));
            }
        }
    }

    pub(super) fn identify(&mut self, index: usize, ctx: &mut Context<Self>) {
        let call = |board: Arc<dyn Board>| async move { board.identity().await };
        self.call((index, "board_identify"), call, Event::Identified, ctx);
    }

    /// Reads a board, and counts rejected copies.
    pub(super) fn read(&mut self, index: usize, cursor: Cursor, interest: Interest, ctx: &mut Context<Self>) {
        let call = |board: Arc<dyn Board>| async move { board.read_of(&cursor, &interest).await.map(Box::new) };
        let metrics = self.env.metrics.clone();
        let name = self.boards.get(index).map(|board| board.name().to_owned()).unwrap_or_default();
        let event = move |index, news: Result<Box<News>, NoAnswer>| {
            metrics.boards.rejected(&name, news.as_ref().map_or(0, |news| news.rejected.len()));
            Event::Read(index, news)
        };
        self.call((index, "board_read"), call, event, ctx);
    }

    pub(super) fn post(&mut self, index: usize, postings: Vec<(WorkloadId, Posting)>, ctx: &mut Context<Self>) {
        let origin = self.origin.clone();
        let call = |board: Arc<dyn Board>| async move { board.post(&origin, &postings).await };
        self.call((index, "board_post"), call, Event::Posted, ctx);
    }

    pub(super) fn beat(&mut self, index: usize, beat: Box<Heartbeat>, ctx: &mut Context<Self>) {
        let call = |board: Arc<dyn Board>| async move { board.beat(&beat).await.map(|beat| beat.map(Box::new)) };
        self.call((index, "board_beat"), call, Event::Beaten, ctx);
    }

    /// Makes one call to a board, and counts its result.
    fn call<F, T>(
        &mut self,
        (index, what): (usize, &'static str),
        call: impl FnOnce(Arc<dyn Board>) -> F + 'static,
        event: impl FnOnce(usize, Result<T, NoAnswer>) -> Event + 'static,
        ctx: &mut Context<Self>,
    ) where
        F: Future<Output = Result<T, PortError>> + 'static,
        T: 'static,
    {
        let Some(board) = self.boards.get(index).cloned() else { return };
        let metrics = self.env.metrics.clone();
        let clock = self.env.ports.clock.clone();
        let made = async move {
            let (name, from) = (board.name().to_owned(), clock.now());
            let answer = call(board).await;
            metrics.took(what, clock.now().since(from));
            let failed = answer.as_ref().err().map(|error| error.reason.map_or("other", |reason| reason.name()));
            metrics.boards.called(&name, what, failed, clock.wall_ms());
            answer
        };
        ctx.spawn(made.into_actor(self).map(move |answer, actor, ctx| {
            if let Err(error) = &answer
                && !actor.shell.machine().is_troubled(index)
            {
                tracing::warn!(%error, "a Redis of the group does not work; trying again, and the others are used");
            }
            actor.feed(event(index, answer.map_err(NoAnswer::from)), ctx);
        }));
    }
}

impl StreamHandler<Woken> for ClusterGroupActor {
    fn handle(&mut self, Woken(index): Woken, ctx: &mut Self::Context) {
        self.feed(Event::Woken(index), ctx);
    }

    /// Without wake-ups, the polls go on.
    fn finished(&mut self, _: &mut Self::Context) {}
}
