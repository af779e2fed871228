//! Logs what the watcher cannot do. `kernel::watches::watch` decides what to log, and when.

use actix::Context;

use super::DeploymentWatcher;
use crate::actors::message::Follows;
use crate::actors::shell::Drives;
use kernel::id::WorkloadId;
use kernel::refusal::Refused;
use kernel::watches::horizon::Mark;
use kernel::watches::listed::Scope;
use kernel::watches::watch::{Event, Loud};
use purge::ports::PortError;

impl DeploymentWatcher {
    pub(super) fn watch_failed(&mut self, scope: Scope, error: &PortError) {
        self.env.metrics.failure("watch_workloads");
        let (now, answered) = (self.shell.now(), self.env.complaints.last_answer());
        match self.troubles.watch_failed(now, scope, error.refused(), answered, error.to_string()) {
            Loud::Error => {
                tracing::error!(%error, "a watch of workloads is refused; no change of them is noticed until a person ends that");
            }
            Loud::Warning => tracing::warn!(%error, "the watch of workloads was interrupted; starting it again"),
            Loud::Quiet => tracing::debug!(%error, "the watch of workloads is still interrupted"),
        }
    }

    /// A kind without a right, that cannot be listed, or that the cluster does not have, is left out, and the others go on.
    pub(super) fn refused(&mut self, scope: Scope, error: &PortError, all: bool, ctx: &mut Context<Self>) {
        let (is_news, kind) = (self.troubles.left_out(&scope, error.to_string(), all), scope.as_str());
        if is_news && error.refused() != Some(Refused::Right) {
            tracing::warn!(scope = kind, %error, "workloads of this kind cannot be listed, and are not followed until they can; their records stay");
        } else if is_news && self.watch().was_listed(&scope) {
            tracing::warn!(
                scope = kind, %error,
                "workloads of this kind are not followed any more, for want of a right; their records stay"
            );
        } else if is_news {
            tracing::info!(scope = kind, %error, "workloads of this kind are not followed, for want of a right");
        }
        self.tell_kinds();
        self.feed(Event::LeftOut(scope, all), ctx);
        self.count();
    }

    /// Sends the group the kinds that are followed. What its full mailbox refuses is sent with the next sweep.
    pub(super) fn tell_kinds(&self) {
        let (kinds, view) = (&self.env.settings.policy.kinds, self.troubles.view());
        let _ = self
            .directory
            .follows
            .try_send(Follows(kinds.iter().copied().filter(|kind| view.follows(*kind)).collect()));
    }

    pub(super) fn watch_works(&mut self, scope: &Scope, all: bool) {
        if let Some(lasted) = self.troubles.watch_works(self.shell.now(), scope, all) {
            tracing::info!(for_s = lasted.as_secs(), "the watch of workloads works again");
        }
    }

    pub(super) fn was_set_back(&self, from: &Mark, to: &Mark) {
        tracing::warn!(
            %from, %to,
            "the cluster was set back, as after a restore from a backup: its resource versions went down; listing all workloads \
             and reading the ledger again"
        );
        self.env.metrics.standing.set_back();
    }

    /// A workload cannot be read.
    pub(super) fn leave_out(&mut self, id: &WorkloadId, why: String) {
        if self.troubles.unreadable(self.shell.now(), id, why.clone()) {
            tracing::warn!(workload = %id.display_name(), why, "a workload cannot be read and is left out");
        }
    }

    /// Without baselines to write, there is no trouble with writing them.
    pub(super) fn look_for_baselines(&mut self) {
        if !self.watch().has_baselines() {
            self.note_baselines(None);
        }
    }

    pub(super) fn note_baselines(&mut self, why: Option<String>) {
        if self.troubles.baselines_written(why.clone()) {
            tracing::warn!(why, "could not write the records of workloads seen for the first time; trying again");
        }
    }

    pub(super) fn note_listing(&mut self, why: Option<String>) {
        if self.troubles.listed_noted(why.clone()) {
            tracing::warn!(why, "could not store which namespaces are listed; trying again");
        }
    }
}
