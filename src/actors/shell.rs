//! The driver of a machine: feeds it events, hands out its effects, and keeps exactly one timer.
//!
//! Not for performing effects; each actor does that in [`Drives::perform`].

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, SpawnHandle, WrapFuture};

use crate::actors::Env;
use crate::telemetry::Metrics;
use kernel::machine::{Machine, Timestamp};
use kernel::promise::Promise;
use purge::ports::Clock;

/// The shortest a timer is set for. A machine leaves no deadline in the past, but time has passed since.
const TIMER_MIN: Duration = Duration::from_millis(1);

/// A machine, its clock and its timer.
pub struct Shell<M> {
    machine: M,
    clock: Arc<dyn Clock>,
    timer: Option<(Timestamp, SpawnHandle)>,
    /// Where a broken promise is counted.
    metrics: Arc<Metrics>,
}

impl<M: Machine> Shell<M> {
    /// Takes a machine into the shell. Nothing happens before its first event.
    pub fn new(machine: M, env: &Env) -> Self {
        let (clock, metrics) = (env.ports.clock.clone(), env.metrics.clone());
        Self { machine, clock, timer: None, metrics }
    }

    /// The machine, to look at.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The present, by the machine's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Judges a step by what the machine promises. A broken promise is a defect of ours: it fails a test, and elsewhere it is
    /// counted and logged. The effect is performed all the same, because the ledger and CloudFront refuse what would do harm.
    fn judge(&self, now: Timestamp, effects: &[M::Effect]) {
        let broken = effects.iter().flat_map(|effect| self.machine.breaks(effect));
        for promise in broken.chain(self.machine.is_due(now).then_some(Promise::DeadlinesAhead)) {
            debug_assert!(false, "{promise}, at {now:?}: {:?}", self.machine);
            self.metrics.broken_promise(promise);
        }
    }
}

/// An actor that drives a machine.
pub trait Drives<M: Machine + 'static>: Actor<Context = Context<Self>> {
    /// Its shell; `None` until the machine exists. Events before that are lost.
    fn shell(&mut self) -> Option<&mut Shell<M>>;

    /// Does what the machine wants, or starts doing it; the result comes back by [`Drives::feed`].
    fn perform(&mut self, effect: M::Effect, ctx: &mut Context<Self>);

    /// Feeds one event to the machine and performs what follows.
    fn feed(&mut self, event: M::Event, ctx: &mut Context<Self>) {
        let Some(shell) = self.shell() else { return };
        let now = shell.now();
        let effects = shell.machine.step_and_catch_up(now, event);
        shell.judge(now, &effects);
        self.perform_all(effects, ctx);
    }

    /// Lets the machine notice that time has passed.
    fn tick(&mut self, ctx: &mut Context<Self>) {
        let Some(shell) = self.shell() else { return };
        let now = shell.now();
        let effects = shell.machine.tick(now);
        shell.judge(now, &effects);
        self.perform_all(effects, ctx);
    }

    /// Performs effects in their order and sets the timer for what comes next.
    fn perform_all(&mut self, effects: Vec<M::Effect>, ctx: &mut Context<Self>) {
        for effect in effects {
            self.perform(effect, ctx);
        }
        self.arm(ctx);
    }

    /// Sets the timer for the machine's next deadline, if it is not set for it already.
    fn arm(&mut self, ctx: &mut Context<Self>) {
        let Some(shell) = self.shell() else { return };
        let deadline = shell.machine.next_deadline();
        if shell.timer.map(|(at, _)| at) == deadline {
            return;
        }
        let now = shell.now();
        if let Some((_, timer)) = shell.timer.take() {
            ctx.cancel_future(timer);
        }
        let Some(at) = deadline else { return };
        let timer = ctx.run_later(at.since(now).max(TIMER_MIN), |actor: &mut Self, ctx| {
            if let Some(shell) = actor.shell() {
                shell.timer = None;
            }
            actor.tick(ctx);
        });
        if let Some(shell) = self.shell() {
            shell.timer = Some((at, timer));
        }
    }

    /// Starts a call to the outside and feeds its outcome to the machine.
    fn ask<F>(&mut self, ctx: &mut Context<Self>, call: F, event: impl FnOnce(F::Output) -> M::Event + 'static)
    where
        F: Future + 'static,
    {
        let call = call.into_actor(self);
        ctx.spawn(call.map(move |output, actor: &mut Self, ctx| actor.feed(event(output), ctx)));
    }
}
