//! The notices of a Repo: they are part of its status until the outbox has them.

use crate::kernel::id::{NoticeId, Seq, Subject, run_id};
use crate::kernel::machine::Timestamp;
use crate::notices::notice::{Kind, Notice, RunFact};
use crate::objects::status::UNTOLD_MAX;
use crate::repo::status::Run;
use crate::repo::{Effect, Repo};

impl Repo {
    /// Sends the durable notices that were not sent yet, and the loose ones.
    pub(super) fn tell(&mut self, now: Timestamp) -> Vec<Effect> {
        let draft = &self.status.draft.untold;
        let durable = self.status.durable.untold.iter().filter(|notice| draft.contains(notice));
        self.telling.tell(now, durable).into_iter().map(|notice| Effect::Tell(Box::new(notice))).collect()
    }

    /// Writes a notice about the newest run into the draft. It is sent once that is durable; `detail` separates several
    /// of one kind.
    pub(super) fn announce(&mut self, now: Timestamp, kind: Kind, detail: &str, message: &str) {
        let Some(run) = &self.status.draft.run else { return };
        let rollout = run_id(&self.object.uid, run.attempt.seq);
        let fact = RunFact {
            revision: run.revision.clone(),
            action: run.attempt.action.name().to_owned(),
            attempt: run.attempt.number,
            job: run.job.as_ref().map(|job| job.name.clone()),
            ticket: self.status.draft.waiting.as_ref().map(|waiting| waiting.ticket.clone()),
            plan: run.plan.as_ref().and_then(|plan| plan.counts).map(|counts| counts.to_string()),
            skipped: run.skipped.clone(),
        };
        let id = Notice::id_of(&rollout, kind, detail);
        let seq = Seq(run.attempt.seq.0);
        let change = change(run);
        let notice = Notice { seq, change, run: Some(fact), ..self.notice(now, kind, id, &rollout, message) };
        let untold = &mut self.status.draft.untold;
        if untold.iter().any(|known| known.id == notice.id) {
            return;
        }
        untold.push(notice);
        // Beyond the bound the oldest are sent without being durable: nothing waits for them.
        while untold.len() > UNTOLD_MAX {
            self.telling.add(untold.remove(0));
        }
    }

    /// Announces a fault of the object. Each cause is announced once in a life.
    pub(super) fn tell_faulty(&mut self, now: Timestamp, why: &str) {
        if self.faulty.as_deref() == Some(why) {
            return;
        }
        self.faulty = Some(why.to_owned());
        let id = Notice::id_of(&self.object.uid, Kind::RepoFaulty, &format!("{}/{why}", self.object.generation));
        let notice = self.notice(now, Kind::RepoFaulty, id, &self.object.uid, why);
        self.telling.add(notice);
    }

    fn notice(&self, now: Timestamp, kind: Kind, id: NoticeId, rollout: &str, message: &str) -> Notice {
        Notice {
            id,
            kind,
            at_ms: self.wall_ms(now),
            subject: Subject::Repo(self.object.id.clone()),
            seq: Seq::default(),
            rollout: rollout.to_owned(),
            change: String::new(),
            message: message.to_owned(),
            hosts: Vec::new(),
            purges: Vec::new(),
            cut: false,
            late: false,
            promotion: None,
            run: None,
        }
    }
}

/// The commits in words, for example `9a1b2c3d4e5f, instead of 2 others`.
fn change(run: &Run) -> String {
    let revision: String = run.revision.0.chars().take(12).collect();
    match run.skipped.len() {
        0 => revision,
        1 => format!("{revision}, instead of another"),
        others => format!("{revision}, instead of {others} others"),
    }
}
