//! What rollouts and the invalidator tell each other of looks at the edge. The rest of the protocol is in `message`.

use actix::{Message, Recipient};

use kernel::id::Reference;
use proof::asked::{Answers, Question, QuestionId};
use proof::turns::Asker;

/// Rollout → invalidator: ask the edge this, when its turn comes.
#[derive(Message)]
#[rtype(result = "()")]
pub struct AskEdge {
    pub asker: Asker,
    pub question: Box<Question>,
    /// Where the answers of this look go.
    pub answer_to: Recipient<EdgeAnswered>,
}

/// Rollout → invalidator: this look has ended, and what it waits for is not asked any more.
#[derive(Message)]
#[rtype(result = "()")]
pub struct LeaveEdge(pub Asker);

/// Invalidator → rollout: a question of the look at this purge was answered. A look does without an answer that is lost, after a time.
#[derive(Message)]
#[rtype(result = "()")]
pub struct EdgeAnswered(pub Reference, pub QuestionId, pub Box<Answers>);
