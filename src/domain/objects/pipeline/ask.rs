//! Questions to people. A question has a ticket, and an answer that names another ticket is nothing (PL-5).

use crate::kept::Answers;
use crate::pipeline::Pipeline;
use crate::pipeline::spec::EnvironmentSpec;
use crate::pipeline::status::{Promotion, Question, Waiting};
use crate::status::Approval;
use kernel::id::{Environment, PromotionSeq, Revision, digest};
use kernel::machine::Timestamp;
use notices::notice::Kind;

/// Hexadecimal digits of a ticket: long enough not to be guessed, short enough for a person to copy.
const TICKET_DIGITS: usize = 12;

/// The ticket that an answer has to name, so that it counts for one question about one promotion and for no other
/// (PL-5). `detail` is the rest of the question, if any.
pub fn ticket(
    uid: &str,
    environment: &Environment,
    seq: PromotionSeq,
    revision: &Revision,
    question: Question,
    detail: &str,
) -> String {
    let seq = seq.to_string();
    let parts = [uid, environment.0.as_str(), seq.as_str(), revision.0.as_str(), question.name(), detail];
    let parts = parts.iter().take(if detail.is_empty() { 5 } else { parts.len() });
    digest("ticket", parts.copied()).chars().take(TICKET_DIGITS).collect()
}

impl Question {
    /// The question, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Approval => "a person must say yes",
            Self::Again => "its pull request was closed by a person: it is promoted again only after a yes",
            Self::Left => "it was at this revision and left it: it is promoted again only after a yes",
            Self::Overwrite => "the branch holds commits that are not ours: they are replaced only after a yes",
        }
    }
}

/// The yes in these answers, to this ticket.
pub(super) fn approval(answers: &Answers, ticket: String, at_ms: i64) -> Approval {
    Approval { by: answers.by.clone(), overrides: answers.overrides(&ticket), ticket, at_ms }
}

impl Pipeline {
    /// A person's yes to a question about an environment, which is asked unless it is asked already.
    pub(super) fn answered(
        &mut self,
        now: Timestamp,
        name: &Environment,
        seq: PromotionSeq,
        revision: &Revision,
        question: Question,
        detail: &str,
    ) -> Option<Approval> {
        let since_ms = self.own.wall_ms(now);
        let ticket = ticket(&self.own.object.uid, name, seq, revision, question, detail);
        let known = self.own.status.draft.environments.entry(name.clone()).or_default();
        if known.waiting.as_ref().is_some_and(|waiting| waiting.ticket == ticket) {
            // Only what was asked can be answered: the question is durable, or will be with the answer.
            let answers = &self.own.object.answers;
            return answers.approve(&ticket).then(|| approval(answers, ticket, since_ms));
        }
        known.waiting = Some(Waiting { revision: revision.clone(), ticket: ticket.clone(), question, since_ms });
        let asked = known.asked().unwrap_or_default();
        let message = format!("{revision} waits for {name}: {asked}. Answer with ticket {ticket}");
        self.announce(now, Kind::PromotionWaiting, name, &message);
        None
    }

    /// Asks for a yes to a promotion that needs one, and takes it. Returns the promotion as it is then.
    pub(super) fn ask_approval(
        &mut self,
        now: Timestamp,
        environment: &EnvironmentSpec,
        seq: PromotionSeq,
    ) -> Option<Promotion> {
        let name = &environment.name;
        let promotion = self.own.status.draft.environment(name)?.open()?.clone();
        // What a person chose needs the yes of one, also where nothing else does.
        let manual = environment.promotion.as_ref().is_some_and(|how| how.manual) || promotion.is_chosen();
        if !manual || promotion.approval.is_some() {
            let known = self.own.status.draft.environments.get_mut(name)?;
            known.waiting.take_if(|waiting| waiting.question == Question::Approval);
            return Some(promotion);
        }
        let approval = self.answered(now, name, seq, &promotion.revision, Question::Approval, "");
        let known = self.own.status.draft.environments.get_mut(name)?;
        if approval.is_some() {
            known.waiting = None;
        }
        let open = known.promotion.as_mut()?;
        open.approval = approval;
        Some(open.clone())
    }
}
