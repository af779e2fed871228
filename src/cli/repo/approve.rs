//! A person's yes: what is asked, what follows, and the answer, which names the ticket that was shown.

use crate::adapters::kubernetes::desk::{APPROVE, APPROVED_BY, Desk, Found, Marked, OVERRIDE};
use crate::adapters::kubernetes::objects::RepoKind;
use crate::cli::answer::{Outcome, refused};
use crate::cli::command_kind::{missing, one};
use crate::cli::consent::{Answer, Consent};
use crate::cli::page::time;
use crate::cli::repo::{ended, shown};
use domain::kernel::id::{ObjectId, RepoId};
use domain::repo::job::StepKind;
use domain::repo::spec::Object;
use domain::repo::view::{QuestionView, View};

/// What --override does and does not do.
const OPENED: &str = "--override: windows, freezes and the verdict are opened as well for this run; what it needs must be ready in any \
                      case, and `suspend` stays.";

/// How often an answer is written again because the object changed and the question did not: the machine writes its status once a
/// second at most.
const WRITES_MAX: usize = 5;

/// A question that is open, and all that is needed to answer it.
pub struct Question {
    found: Found<Object>,
    view: View,
    asked: QuestionView,
    by: String,
    overrides: bool,
    /// The log of the plan, or why it cannot be shown.
    log: Option<String>,
}

/// What a person says with a yes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Yes<'a> {
    /// Only to the question with this ticket.
    pub ticket: Option<&'a str>,
    /// The gates of time and of other systems are opened as well.
    pub overrides: bool,
}

/// Answers the open question of a Repo with yes, if the person who asks agrees. Exit codes: 0 answered, or left; 1 not done.
pub async fn approve(desk: &Desk<RepoKind>, id: &RepoId, yes: Yes<'_>, consent: Consent) -> Outcome {
    let question = match question(desk, id, yes).await {
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

/// The question that a Repo asks.
///
/// # Errors
/// Why there is none, or none with this ticket.
pub async fn question(desk: &Desk<RepoKind>, id: &RepoId, yes: Yes<'_>) -> Result<Question, String> {
    let found = one(desk, id).await?;
    let view = shown(&found);
    let asked = open(&view)?;
    if yes.ticket.is_some_and(|ticket| ticket != asked.ticket) {
        return Err(format!(
            "nothing was changed: the open question has another ticket, {}: {}",
            asked.ticket, asked.words
        ));
    }
    let by = desk.who().await.map_err(|error| {
        format!("nothing was changed: a yes names who says it, and that cannot be found out: {error}")
    })?;
    let log = log(desk, &view).await;
    Ok(Question { found, view, asked, by, overrides: yes.overrides, log })
}

/// The log of the plan that is asked about.
async fn log(desk: &Desk<RepoKind>, view: &View) -> Option<String> {
    let plan = view.run.as_ref()?.plan.as_ref()?;
    Some(match desk.log(&view.id.namespace, &plan.job, StepKind::Plan.name()).await {
        Ok(Some(log)) => log,
        Ok(None) => format!("the plan cannot be shown: no pod of Job {} is there any more", plan.job),
        Err(error) => format!("the plan cannot be shown: {error}; `{}` reads the same", plan.logs),
    })
}

fn open(view: &View) -> Result<QuestionView, String> {
    view.question.clone().ok_or_else(|| {
        let waits = view.waits.as_ref();
        let waits = waits
            .map_or_else(|| "it waits for nothing".to_owned(), |waits| format!("it waits for something else: {waits}"));
        format!("nothing was changed: {} asks nothing; {waits}", view.id.display_name())
    })
}

impl Question {
    /// The yes is on the object, and was not taken yet.
    fn is_answered(&self) -> bool {
        let (answers, ticket) = (&self.found.object.answers, &self.asked.ticket);
        answers.approve(ticket) && (!self.overrides || answers.overrides(ticket))
    }

    /// The pending question, and what approving does.
    pub fn plan(&self) -> String {
        let Self { view, asked, by, overrides, log, .. } = self;
        let mut text = log.clone().map(ended).unwrap_or_default();
        let run = view.run.as_ref();
        let revision = run.map_or_else(String::new, |run| format!(": {}", run.revision));
        let mut lines = vec![
            format!("{}{revision}, {}", view.id.display_name(), view.source),
            format!("  asked since {}: {}", time(asked.since_ms), asked.words),
            format!("  ticket {}, answered as {by}", asked.ticket),
        ];
        if let Some(run) = run {
            let counts = run.plan.as_ref().and_then(|plan| plan.counts.clone());
            lines.extend(counts.map(|counts| format!("  the plan: {counts}")));
            if !run.message.is_empty() && run.message != asked.words {
                lines.push(format!("  it says: {}", run.message));
            }
        }
        lines.push(match asked.kind.as_str() {
            "Plan" => "After a yes it is planned again and applied if that plan is the same.".to_owned(),
            "Again" => "After a yes it is run once more.".to_owned(),
            _ => "After a yes it is applied.".to_owned(),
        });
        let gates: Vec<&str> =
            view.gates.iter().map(String::as_str).filter(|gate| !gate.starts_with("after a person")).collect();
        if *overrides {
            lines.push(OPENED.to_owned());
        } else if !gates.is_empty() {
            lines.push(format!("What else must hold stays: {}.", gates.join("; ")));
        }
        text.push_str(&lines.join("\n"));
        text + "\n"
    }

    /// Writes the yes. Where the question is another one by now nothing is written, and that one is shown.
    pub async fn answer(self, desk: &Desk<RepoKind>) -> Outcome {
        let Self { mut found, asked, by, overrides, .. } = self;
        let id = found.object.id.clone();
        let (name, ticket) = (id.display_name(), asked.ticket.as_str());
        let mut marks = vec![(APPROVE, Some(ticket)), (APPROVED_BY, Some(by.as_str()))];
        marks.extend(overrides.then_some((OVERRIDE, Some(ticket))));
        for _ in 0..WRITES_MAX {
            match desk.mark(&found, &marks, true).await {
                Ok(Marked::Done(_)) => {
                    return done(format!(
                        "{by} said yes to {name}, ticket {ticket}\n`allclear explain repo/{name}` shows what follows\n"
                    ));
                }
                Ok(Marked::Gone) => return refused(&missing::<RepoKind>(&id)),
                Ok(Marked::Changed) => {}
                Err(error) => return refused(&error.to_string()),
            }
            found = match one(desk, &id).await {
                Ok(found) => found,
                Err(why) => return refused(&why),
            };
            match open(&shown(&found)) {
                Ok(now) if now.ticket == asked.ticket => {}
                Ok(now) => {
                    return refused(&format!(
                        "nothing was changed: the question moved on while you were asked. Its ticket is {} now: {}",
                        now.ticket, now.words
                    ));
                }
                Err(why) => return refused(&why),
            }
        }
        refused(&format!("nothing was changed: {name} changed {WRITES_MAX} times meanwhile; try again"))
    }
}
