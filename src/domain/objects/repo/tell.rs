//! The notices of a Repo: they are part of its status until the outbox has them.

use crate::repo::Repo;
use crate::repo::status::{Run, Status};
use kernel::id::{Seq, run_id};
use kernel::machine::Timestamp;
use notices::notice::{About, Kind, Notice, RunFact};

impl Repo {
    /// Writes a notice about the newest run into the draft. It is sent once that is durable; `detail` separates several
    /// of one kind.
    pub(super) fn announce(&mut self, now: Timestamp, kind: Kind, detail: &str, message: &str) {
        let Some(run) = self.own.status.draft.newest().cloned() else { return };
        self.announce_run(now, kind, &run, detail, message);
    }

    /// The same about a look at drift: each is one of its kind.
    pub(super) fn announce_of(&mut self, now: Timestamp, kind: Kind, look: &Run, message: &str) {
        self.announce_run(now, kind, look, &look.attempt.number.to_string(), message);
    }

    fn announce_run(&mut self, now: Timestamp, kind: Kind, run: &Run, detail: &str, message: &str) {
        let rollout = run_id(&self.own.object.uid, run.attempt.seq);
        let fact = RunFact {
            revision: run.revision.clone(),
            action: run.attempt.action.name().to_owned(),
            attempt: run.attempt.number,
            job: run.job.as_ref().map(|job| job.name.clone()),
            ticket: self.ticket(kind).map(str::to_owned),
            plan: run.plan.as_ref().and_then(|plan| plan.counts).map(|counts| counts.to_string()),
            skipped: run.skipped.clone(),
        };
        let id = Notice::id_of(&rollout, kind, detail);
        let about = About::Repo(self.own.object.id.clone(), Some(fact));
        let seq = Seq(run.attempt.seq.0);
        let change = change(run);
        let notice = Notice { seq, change, about, ..self.own.notice(now, kind, id, &rollout, message) };
        self.own.announce(notice);
    }

    /// The ticket of what a person is asked. A lock is asked about beside what else happens, and has a notice of its own.
    fn ticket(&self, kind: Kind) -> Option<&str> {
        let Status { waiting, lock, .. } = &self.own.status.draft;
        let of_lock = lock.as_ref().filter(|_| kind == Kind::RunWaiting).map(|asked| asked.ticket.as_str());
        waiting.as_ref().map(|waiting| waiting.ticket.as_str()).or(of_lock)
    }
}

/// The commits in words, for example `9a1b2c3d4e5f, instead of 2 others`.
fn change(run: &Run) -> String {
    let revision = run.revision.short();
    match run.skipped.len() {
        0 => revision.to_owned(),
        1 => format!("{revision}, instead of another"),
        others => format!("{revision}, instead of {others} others"),
    }
}
