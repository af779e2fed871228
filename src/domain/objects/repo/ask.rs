//! Questions to people. A question has a ticket, and an answer that names another ticket is nothing.

use crate::repo::Repo;
use crate::repo::status::{Attempt, Head, Phase, Plan, Question, Run, Waiting};
use crate::status::Approval;
use kernel::id::digest;
use kernel::machine::Timestamp;
use notices::notice::Kind;

/// Hexadecimal digits of a ticket: as many as one of a Pipeline has.
const TICKET_DIGITS: usize = 12;

/// The ticket that an answer has to name, so that it counts once: for one question about one run after one attempt,
/// under the settings of that moment. A plan that returns to an approved one is asked about anew.
pub fn ticket(uid: &str, run: &Run, question: Question) -> String {
    let Attempt { seq, number, action: _ } = run.attempt;
    let (seq, number) = (seq.to_string(), number.to_string());
    let about = match question {
        Question::Revision => run.revision.as_str(),
        Question::Plan | Question::Destroy => run.plan.as_ref().map_or("", |plan| plan.fingerprint.as_str()),
        Question::Again | Question::DestroyAgain => run.phase.name(),
    };
    let parts = [uid, seq.as_str(), number.as_str(), question.name(), about, run.terms.settings.as_str()];
    digest("ticket", parts).chars().take(TICKET_DIGITS).collect()
}

impl Question {
    /// Whether it is asked about what a plan says.
    pub const fn is_of_plan(self) -> bool {
        matches!(self, Self::Plan | Self::Destroy)
    }

    /// Whether it is asked because something failed, of which there was a notice then.
    const fn is_again(self) -> bool {
        matches!(self, Self::Again | Self::DestroyAgain)
    }

    /// The question, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Revision => "a person must say yes to the commit",
            Self::Plan => "a person must say yes to what the plan would change",
            Self::Again => "it is run again only after a yes, or with another commit",
            Self::Destroy => "a person must say yes to what the plan would DESTROY, or no",
            Self::DestroyAgain => "the destroy is planned and asked about again only after a yes",
        }
    }
}

impl Repo {
    /// Whether a person wants what was applied to be run once more.
    pub(super) fn is_wanted_again(&self, run: &Run) -> bool {
        self.again(run).is_some_and(|ticket| self.own.object.answers.approve(&ticket))
    }

    fn again(&self, run: &Run) -> Option<String> {
        again(&self.own.object.uid, run, self.own.status.draft.head.as_ref())
    }

    /// Their yes to that.
    pub(super) fn volunteered(&self, now: Timestamp, run: &Run) -> Option<Approval> {
        let ticket = self.again(run).filter(|_| self.is_wanted_again(run))?;
        let answers = &self.own.object.answers;
        let (by, overrides) = (answers.by.clone(), answers.overrides(&ticket));
        Some(Approval { by, overrides, ticket, at_ms: self.own.wall_ms(now) })
    }

    /// A person's yes to a question about this run, which is asked unless it is asked already.
    pub(super) fn answered(&mut self, now: Timestamp, run: &Run, question: Question) -> Option<Approval> {
        let at_ms = self.own.wall_ms(now);
        let ticket = ticket(&self.own.object.uid, run, question);
        if self.own.status.draft.waiting.as_ref().is_some_and(|waiting| waiting.ticket == ticket) {
            let answers = &self.own.object.answers;
            if !answers.approve(&ticket) {
                return None;
            }
            self.own.status.draft.waiting = None;
            return Some(Approval { by: answers.by.clone(), overrides: answers.overrides(&ticket), ticket, at_ms });
        }
        self.own.status.draft.waiting = Some(Waiting { question, ticket: ticket.clone(), since_ms: at_ms });
        if !question.is_again() {
            let about = run.plan.as_ref().filter(|_| question.is_of_plan()).map(plan_words).unwrap_or_default();
            let message = format!("{}{about}: {}. Answer with ticket {ticket}", run.revision, question.words());
            self.announce(now, Kind::RunWaiting, &ticket, &message);
        }
        None
    }
}

/// The ticket of a yes by which what was applied is run once more: nobody is asked for it. Where another commit is wanted, which changes
/// nothing here, that one is run: the ticket is of it, and is void as soon as a newer one is wanted.
pub fn again(uid: &str, run: &Run, head: Option<&Head>) -> Option<String> {
    let is_done = run.phase == Phase::Succeeded || run.is_only_planned();
    (is_done && !run.attempt.action.is_of_destroy()).then(|| {
        let of_run = ticket(uid, run, Question::Again);
        match head.filter(|head| head.revision != run.revision) {
            Some(head) => digest("again", [&*of_run, head.revision.as_str()]).chars().take(TICKET_DIGITS).collect(),
            None => of_run,
        }
    })
}

/// The changes of a plan, to follow other words.
pub(super) fn plan_words(plan: &Plan) -> String {
    plan.counts.map_or_else(String::new, |counts| format!(" ({counts})"))
}
