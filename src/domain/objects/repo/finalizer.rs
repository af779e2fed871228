//! Our finalizer: what keeps a Repo that is deleted, so that people can be asked whether what it applied is destroyed.
//!
//! It is on the object exactly while the spec says `onDelete: Ask`, as far as we may write that; what cannot be read says neither.
//!
//! Not for when a Repo that is being deleted is let go; that is `destroy`.

use std::time::Duration;

use crate::repo::show::condition;
use crate::repo::status::{Condition, ConditionKind};
use crate::repo::{Effect, Repo};
use kernel::call::Call;
use kernel::machine::Timestamp;

/// How soon the finalizer is written again where the object does not show what was written: a watch shows it within a second.
const SHOWN_WITHIN: Duration = Duration::from_secs(10);

/// The writes of the finalizer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Finalizing {
    pub(super) call: Call,
}

impl Finalizing {
    pub(super) fn answered(&mut self, now: Timestamp) {
        self.call.answered_until(now.after(SHOWN_WITHIN));
    }
}

impl Repo {
    /// Puts the finalizer on an object that is to have it, and takes it from one that is not. Of one that is being deleted, it is taken
    /// only by [`Repo::let_go`].
    pub(super) fn attend_finalizer(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.finalizing.call.wake(now);
        if self.own.object.deleting {
            return;
        }
        match self.own.spec().map(|spec| spec.runner.destroy.is_some()) {
            Some(wanted) if wanted != self.own.object.finalizers.ours => self.hold(now, wanted, effects),
            Some(_) if !self.finalizing.call.is_asked() => self.finalizing.call = Call::default(),
            Some(_) | None => {}
        }
    }

    /// Writes the finalizer, or takes it away.
    pub(super) fn hold(&mut self, now: Timestamp, held: bool, effects: &mut Vec<Effect>) {
        if self.finalizing.call.is_due(now) {
            self.finalizing.call.asked();
            effects.push(Effect::Hold(held));
        }
    }

    /// That the object is not kept as its spec asks, and why.
    pub(super) fn unheld(&self) -> Option<Condition> {
        let why = self.finalizing.call.last_reason().filter(|_| !self.own.object.deleting)?;
        let words = if self.own.object.finalizers.ours {
            format!("its finalizer cannot be taken away, though its spec does not say onDelete: Ask: {why}")
        } else {
            format!("onDelete is Ask, and nobody would be asked: its finalizer cannot be set: {why}")
        };
        Some(condition(ConditionKind::Stalled, Some(true), "NotHeld", &words))
    }
}
