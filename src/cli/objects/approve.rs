//! A person's yes: what is asked, what follows, and the answer, which names the ticket that was shown.

use super::error::Error;
use super::kind::{Open, ShownKind, missing, one};
use super::words::ended;
use crate::adapters::kubernetes::desk::{APPROVE, APPROVED_BY, Desk, Found, Marked, OVERRIDE};
use crate::cli::answer::{Outcome, done, refused};
use crate::cli::command_kind::IdOf;
use crate::cli::consent::Consent;
use crate::looking::page::time;
use kernel::id::ObjectId;
use objects::kept::Kept;

/// How often an answer is written again because the object changed and the question did not: the machine writes its status once a
/// second at most.
const WRITES_MAX: usize = 5;

/// What a person says with a yes.
pub struct Yes<'a, K: ShownKind> {
    pub asker: &'a K::Asker,
    /// Only to the question with this ticket.
    pub ticket: Option<&'a str>,
    /// The gates of time and of other systems are opened as well.
    pub overrides: bool,
}

/// A question that is open, and all that is needed to answer it.
pub struct Question<'a, K: ShownKind> {
    found: Found<K::Object>,
    yes: Yes<'a, K>,
    asked: Open,
    by: String,
    /// What is read before it.
    before: String,
}

/// Answers an open question with yes, if the person who asks agrees. Exit codes: 0 answered, or left; 1 not done.
pub async fn approve<K: ShownKind>(desk: &Desk<K>, id: &IdOf<K>, yes: Yes<'_, K>, consent: Consent) -> Outcome {
    let question = match question(desk, id, yes).await {
        Ok(question) => question,
        Err(error) => return refused(&error),
    };
    if question.is_answered() {
        return done(format!("the question was answered already: ticket {}\n", question.asked.ticket));
    }
    match consent.ask(&question.plan()) {
        Ok(()) => question.answer(desk).await,
        Err(left) => left,
    }
}

/// The question that is open.
///
/// # Errors
/// Why there is none, or none with this ticket.
pub async fn question<'a, K: ShownKind>(
    desk: &Desk<K>,
    id: &IdOf<K>,
    yes: Yes<'a, K>,
) -> Result<Question<'a, K>, Error> {
    let found = one(desk, id).await?;
    let view = K::view(&found.object);
    let asked = K::open(&found.object, yes.asker)?;
    if yes.ticket.is_some_and(|ticket| ticket != asked.ticket) {
        return Err(Error::OtherTicket { ticket: asked.ticket, words: asked.words });
    }
    let by = desk.who().await.map_err(Error::NoUser)?;
    let before = K::before(desk, &view, yes.asker).await;
    Ok(Question { found, yes, asked, by, before })
}

impl<K: ShownKind> Question<'_, K> {
    /// The yes is on the object, and was not taken yet.
    fn is_answered(&self) -> bool {
        let (answers, ticket) = (K::answers(&self.found.object), &self.asked.ticket);
        let names_it = self.asked.mark.as_ref().is_none_or(|(_, mark)| answers.promote.as_ref() == Some(mark));
        names_it && answers.approve(ticket) && (!self.yes.overrides || answers.overrides(ticket))
    }

    /// The pending question, and what approving does.
    pub fn plan(&self) -> String {
        let Open { ticket, words, since_ms, about, known, follows, gates, .. } = &self.asked;
        let mut lines = vec![
            about.clone(),
            since_ms.map_or_else(|| format!("  {words}"), |since| format!("  asked since {}: {words}", time(since))),
            format!("  ticket {ticket}, answered as {}", self.by),
        ];
        lines.extend(known.iter().map(|known| format!("  {known}")));
        lines.push(follows.clone());
        let gates: Vec<&str> =
            gates.iter().map(String::as_str).filter(|gate| !gate.starts_with("after a person")).collect();
        if self.yes.overrides {
            lines.push(K::OVERRIDE.to_owned());
        } else if !gates.is_empty() {
            lines.push(format!("{}: {}.", K::GATES_STAY, gates.join("; ")));
        }
        ended(self.before.clone()) + &lines.join("\n") + "\n"
    }

    /// Writes the yes. Where the question is another one by now nothing is written, and that one is shown.
    pub async fn answer(self, desk: &Desk<K>) -> Outcome {
        match self.written(desk).await {
            Ok(words) => done(words),
            Err(error) => refused(&error),
        }
    }

    async fn written(self, desk: &Desk<K>) -> Result<String, Error> {
        let Self { mut found, yes, asked, by, .. } = self;
        let id = found.object.id().clone();
        let (name, ticket) = (id.display_name(), asked.ticket.as_str());
        let mut marks = vec![(APPROVE, Some(ticket)), (APPROVED_BY, Some(by.as_str()))];
        marks.extend(yes.overrides.then_some((OVERRIDE, Some(ticket))));
        marks.extend(asked.mark.as_ref().map(|(name, value)| (*name, Some(value.as_str()))));
        for _ in 0..WRITES_MAX {
            match desk.mark(&found, &marks, true).await? {
                Marked::Done(_) => {
                    return Ok(format!(
                        "{by} said yes to {}, ticket {ticket}\n`allclear explain {}/{name}` shows what follows\n",
                        asked.yes_to,
                        K::COMMAND
                    ));
                }
                Marked::Gone => return Err(missing::<K>(&id)),
                Marked::Changed => {}
            }
            found = one(desk, &id).await?;
            let now = K::open(&found.object, yes.asker)?;
            if now.ticket != asked.ticket {
                return Err(Error::MovedOn(now.instead));
            }
        }
        Err(Error::Changing { name, times: WRITES_MAX })
    }
}
