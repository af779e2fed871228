//! A person's yes: what is asked, what follows, and the answer, which names the ticket that was shown.

use crate::adapters::kubernetes::desk::{APPROVE, APPROVED_BY, Desk, Found, Marked, OVERRIDE};
use crate::adapters::kubernetes::objects::PipelineKind;
use crate::cli::answer::{Outcome, refused};
use crate::cli::command_kind::{missing, one};
use crate::cli::consent::{Answer, Consent};
use crate::cli::page::time;
use crate::cli::pipeline::shown;
use crate::cli::pipeline::text::change;
use domain::kernel::id::{Environment, ObjectId, PipelineId};
use domain::pipeline::view::{EnvironmentView, QuestionView, View};

/// How often an answer is written again because the object changed and the question did not: the machine writes its status once a
/// second at most.
const WRITES_MAX: usize = 5;

/// A question that is open, and all that is needed to answer it.
pub struct Question {
    found: Found,
    environment: EnvironmentView,
    asked: QuestionView,
    by: String,
    overrides: bool,
}

/// Answers the open question about an environment with yes, if the person who asks agrees. Exit codes: 0 answered, or left; 1 not
/// done.
pub async fn approve(desk: &Desk, id: &PipelineId, environment: &str, overrides: bool, consent: Consent) -> Outcome {
    let question = match question(desk, id, environment, overrides).await {
        Ok(question) => question,
        Err(why) => return refused(&why),
    };
    if question.is_answered() {
        return done(format!("the question was answered already: ticket {}\n", question.asked.ticket));
    }
    match consent.ask(&question.plan()) {
        Answer::Yes => question.answer(desk).await,
        Answer::No => done("nothing was changed\n".to_owned()),
        Answer::Unasked => refused("nothing was changed: there is no terminal to ask on; say --yes to do it"),
    }
}

fn done(out: String) -> Outcome {
    Outcome { out, err: String::new(), code: 0 }
}

/// The question that is open about an environment.
///
/// # Errors
/// Why there is none, and what the environment waits for instead.
pub async fn question(desk: &Desk, id: &PipelineId, environment: &str, overrides: bool) -> Result<Question, String> {
    let found = one(desk, id).await?;
    let (environment, asked) = open(&shown(&found), environment)?;
    let by = desk.who().await.map_err(|error| {
        format!("nothing was changed: a yes names who says it, and that cannot be found out: {error}")
    })?;
    Ok(Question { found, environment, asked, by, overrides })
}

fn open(view: &View, name: &str) -> Result<(EnvironmentView, QuestionView), String> {
    let pipeline = view.id.display_name();
    let Some(environment) = view.environments.iter().find(|one| one.name.0 == name) else {
        let names: Vec<&str> = view.environments.iter().map(|one| one.name.0.as_str()).collect();
        return Err(format!("{pipeline} has no environment {name:?}; it has {}", names.join(", ")));
    };
    let Some(asked) = environment.question.clone() else {
        let waits = environment
            .waits
            .as_ref()
            .map_or_else(|| "it waits for nothing".to_owned(), |waits| format!("it waits for something else: {waits}"));
        return Err(format!("nothing was changed: no question is open about {name} of {pipeline}; {waits}"));
    };
    Ok((environment.clone(), asked))
}

impl Question {
    /// The yes is on the object, and was not taken yet.
    fn is_answered(&self) -> bool {
        let answers = &self.found.object.answers;
        let ticket = &self.asked.ticket;
        answers.approve(ticket) && (!self.overrides || answers.overrides(ticket))
    }

    /// The pending question, and what approving does.
    pub fn plan(&self) -> String {
        let Self { found, environment, asked, by, overrides } = self;
        let name = found.object.id.display_name();
        let Environment(into) = &environment.name;
        let from = environment.promotion.as_ref().filter(|promotion| promotion.open);
        let revisions = change(from.and_then(|promotion| promotion.from.as_ref()), &asked.revision);
        let mut lines = vec![
            format!("{name}: {revisions} into {into}"),
            format!("  asked since {}: {}", time(asked.since_ms), asked.words),
            format!("  ticket {}, answered as {by}", asked.ticket),
        ];
        if let Some(open) = from.filter(|open| !open.message.is_empty()) {
            lines.push(format!("  it waits now: {}", open.message));
        }
        let (how, gates) = environment.gates.split_first().map_or(("", &[][..]), |(how, gates)| (how.as_str(), gates));
        lines.push(format!(
            "After a yes it is promoted {how}, once every target before it is still ready at that revision."
        ));
        let gates: Vec<&str> =
            gates.iter().map(String::as_str).filter(|gate| !gate.starts_with("after a person")).collect();
        match (overrides, gates.is_empty()) {
            (true, _) => lines.push(
                "--override: soak, windows, freezes and the verdict are opened as well; readiness and `suspend` never are."
                    .to_owned(),
            ),
            (false, false) => lines.push(format!("Its other gates stay: {}.", gates.join("; "))),
            (false, true) => {}
        }
        lines.join("\n") + "\n"
    }

    /// Writes the yes. Where the question is another one by now nothing is written, and that one is shown.
    pub async fn answer(self, desk: &Desk) -> Outcome {
        let Self { mut found, environment, asked, by, overrides } = self;
        let id = found.object.id.clone();
        let ticket = asked.ticket.as_str();
        let mut marks = vec![(APPROVE, Some(ticket)), (APPROVED_BY, Some(by.as_str()))];
        marks.extend(overrides.then_some((OVERRIDE, Some(ticket))));
        for _ in 0..WRITES_MAX {
            match desk.mark(&found, &marks, true).await {
                Ok(Marked::Done(_)) => {
                    let name = id.display_name();
                    let into = &environment.name;
                    return done(format!(
                        "{by} said yes to {} in {into} of {name}, ticket {ticket}\n`allclear explain pipeline/{name}` shows what follows\n",
                        asked.revision
                    ));
                }
                Ok(Marked::Gone) => return refused(&missing::<PipelineKind>(&id)),
                Ok(Marked::Changed) => {}
                Err(error) => return refused(&error.to_string()),
            }
            found = match one(desk, &id).await {
                Ok(found) => found,
                Err(why) => return refused(&why),
            };
            match open(&shown(&found), &environment.name.0) {
                Ok((_, now)) if now.ticket == asked.ticket => {}
                Ok((_, now)) => {
                    return refused(&format!(
                        "nothing was changed: the question moved on while you were asked. It is about {} now, ticket {}: {}",
                        now.revision, now.ticket, now.words
                    ));
                }
                Err(why) => return refused(&why),
            }
        }
        refused(&format!("nothing was changed: {} changed {WRITES_MAX} times meanwhile; try again", id.display_name()))
    }
}
