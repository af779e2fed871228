//! Requests of others to a Pipeline, and their answers: the endpoints of `pipelines.weave.works`, whose order of
//! checks and whose words these are (<https://github.com/weaveworks/pipeline-controller>, `server/`, read 2026-11).
//!
//! Nothing here promotes. A request leads to a mark on the object, and the machine judges what is there, as always (PL-8). What a
//! request says of itself decides only how it is refused.
//!
//! Not for who may ask: keys and signatures are `http::hooks`'.

use crate::pipeline::spec::Object;
use crate::pipeline::status::{EnvironmentStatus, Phase, Question};
use kernel::id::{Environment, PipelineId, Revision};

/// A Pipeline, as those see it who ask by a request: names as they were written, also where its spec cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The API group that it is in.
    pub group: String,
    pub object: Object,
    /// The app, as the spec names it.
    pub app: App,
    /// In the order of the spec, also those without targets.
    pub environments: Vec<CalledEnvironment>,
    /// How a revision gets into an environment that does not say so itself.
    pub promotion: Option<How>,
}

/// The app, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct App {
    /// Its group and version.
    pub api_version: String,
    pub kind: String,
    pub name: String,
}

/// One environment, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalledEnvironment {
    pub name: Environment,
    /// Those that it names as just before it. `None`: the one before it in the list.
    pub after: Option<Vec<Environment>>,
    /// The namespace of each target.
    pub namespaces: Vec<String>,
    /// How a revision gets into it, if it says so itself.
    pub promotion: Option<How>,
}

/// How a revision gets into an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct How {
    /// The Secret with the key by which requests are signed, in the Pipeline's namespace.
    pub secret: Option<String>,
    /// It says what is done.
    pub is_complete: bool,
}

/// The app that a request to promote names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    pub app: App,
    pub namespace: String,
}

/// The outcome of a request, as the status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    Nothing,
    /// A pull request, at this address.
    Requested(String),
    /// The notice was sent, or nothing was to be done, or a person is asked.
    Done,
}

/// Whether a yes can be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Yes {
    /// To the question that has this ticket.
    To(String),
    /// It was said before.
    Said,
}

/// A mark to put on a Pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Look now: the time of the wish in milliseconds since the Unix epoch, so that no two are the same.
    Look(i64),
    /// Yes to a ticket, and who says so.
    Yes { ticket: String, by: String },
}

/// The answer to an approval that nothing waits for.
pub const NOT_WAITING: &str = "failed approving promotion";

/// The answer where nothing can be promoted.
pub const NO_STRATEGY: &str = "error promoting application, please consult the promotion server's logs";

/// The answer to an event without a revision.
pub const NO_REVISION: &str = "event has no 'revision' in the metadata field.";

/// Why a request leads to nothing, in the words that callers of the older endpoint know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoUse {
    #[error("app {namespace}/{name} has no environment {1} defined", namespace = .0.namespace, name = .0.name)]
    Unknown(PipelineId, String),
    #[error("cannot promote beyond last environment {0}")]
    Last(String),
    #[error("environment {0} has no targets")]
    NoTargets(Environment),
    #[error("involved object does not match Pipeline definition")]
    OfAnotherApp,
    #[error("{NOT_WAITING}")]
    NotWaiting,
}

impl Called {
    fn environment(&self, name: &str) -> Option<&CalledEnvironment> {
        self.environments.iter().find(|environment| environment.name.0 == name)
    }

    /// The environment after this one, as far as it is there: of several the first that has targets.
    fn after(&self, source: &str) -> Option<&CalledEnvironment> {
        let at = self.environments.iter().position(|environment| environment.name.0 == source)?;
        let follows = |(place, one): &(usize, &CalledEnvironment)| match &one.after {
            Some(after) => after.iter().any(|before| before.0 == source),
            None => *place == at + 1,
        };
        let mut after = self.environments.iter().enumerate().filter(follows).map(|(_, next)| next);
        let first = after.next()?;
        if first.namespaces.is_empty() {
            after.find(|next| !next.namespaces.is_empty()).or(Some(first))
        } else {
            Some(first)
        }
    }

    fn unknown(&self, name: &str) -> NoUse {
        NoUse::Unknown(self.object.id.clone(), name.to_owned())
    }

    /// How a revision gets into an environment.
    pub fn how(&self, into: &str) -> Option<&How> {
        let own = self.environment(into).and_then(|environment| environment.promotion.as_ref());
        own.or(self.promotion.as_ref()).filter(|how| how.is_complete)
    }

    /// The Secret with the key of requests about promotions out of this environment.
    pub fn promotion_secret(&self, source: &str) -> Option<&str> {
        self.secret(self.after(source))
    }

    /// The Secret with the key of requests about approvals in this environment.
    pub fn approval_secret(&self, environment: &str) -> Option<&str> {
        self.secret(self.environment(environment))
    }

    /// An environment with a way of its own may have a key of its own. One without is not open to all for that: the default's counts.
    fn secret<'a>(&'a self, into: Option<&'a CalledEnvironment>) -> Option<&'a str> {
        let own = into.and_then(|environment| environment.promotion.as_ref()).and_then(|how| how.secret.as_deref());
        own.or_else(|| self.promotion.as_ref()?.secret.as_deref())
    }

    /// The environment that a promotion out of `source` leads into, if the event is about this Pipeline's app there.
    ///
    /// # Errors
    /// Where there is none, or it is not.
    pub fn next(&self, source: &str, claim: &Claim) -> Result<&CalledEnvironment, NoUse> {
        let from = self.environment(source).ok_or_else(|| self.unknown(source))?;
        let next = self.after(source).ok_or_else(|| NoUse::Last(source.to_owned()))?;
        if next.namespaces.is_empty() {
            return Err(NoUse::NoTargets(next.name.clone()));
        }
        if claim.app != self.app || !from.namespaces.contains(&claim.namespace) {
            return Err(NoUse::OfAnotherApp);
        }
        Ok(next)
    }

    fn known(&self, environment: &str) -> Option<&EnvironmentStatus> {
        self.object.status.environments.iter().find(|(name, _)| name.0 == environment).map(|(_, known)| known)
    }

    /// Whether a yes to a revision in an environment can be said: to the open question, if that is about the revision. `ticket` is the
    /// one that the caller names. Who names none can answer nothing but whether it may be promoted.
    ///
    /// # Errors
    /// Where nothing waits for it.
    pub fn approve(&self, environment: &str, revision: &str, ticket: Option<&str>) -> Result<Yes, NoUse> {
        let known = self.known(environment);
        let names = |one: &str| ticket.is_none_or(|ticket| ticket == one);
        let waiting = known.and_then(|known| known.waiting.as_ref()).filter(|waiting| waiting.revision.0 == revision);
        let open = waiting
            .filter(|waiting| names(&waiting.ticket) && (ticket.is_some() || waiting.question == Question::Approval));
        if let Some(open) = open {
            self.environment(environment).ok_or_else(|| self.unknown(environment))?;
            return Ok(Yes::To(open.ticket.clone()));
        }
        let promotion = known.and_then(|known| known.promotion.as_ref());
        let said = promotion.filter(|promotion| promotion.revision.0 == revision).and_then(|one| one.approval.as_ref());
        if said.is_some_and(|said| names(&said.ticket)) && waiting.is_none() {
            return Ok(Yes::Said);
        }
        Err(NoUse::NotWaiting)
    }

    /// Whether the question with this ticket is open.
    pub fn is_open(&self, environment: &str, ticket: &str) -> bool {
        let waiting = self.known(environment).and_then(|known| known.waiting.as_ref());
        waiting.is_some_and(|waiting| waiting.ticket == ticket)
    }

    /// The question about this revision, if a person is asked one.
    pub fn is_asked(&self, environment: &str, revision: &str) -> bool {
        let waiting = self.known(environment).and_then(|known| known.waiting.as_ref());
        waiting.is_some_and(|waiting| waiting.revision.0 == revision)
    }

    /// The outcome of the promotion of a revision into an environment.
    pub fn shown(&self, environment: &str, revision: &str) -> Shown {
        let Some(known) = self.known(environment) else { return Shown::Nothing };
        let is_it = |said: Option<&Revision>| said.is_some_and(|said| said.0 == revision);
        let Some(promotion) = known.promotion.as_ref().filter(|promotion| promotion.revision.0 == revision) else {
            let there = !known.targets.is_empty() && known.targets.iter().all(|target| is_it(target.revision.as_ref()));
            return if there { Shown::Done } else { Shown::Nothing };
        };
        let request = known.request.as_ref().filter(|request| request.seq == promotion.seq && request.number.is_some());
        match (request, promotion.phase) {
            (Some(request), Phase::Proposed | Phase::Landed) => Shown::Requested(request.url.clone()),
            (_, Phase::Landed | Phase::Completed) => Shown::Done,
            (
                _,
                Phase::Waiting
                | Phase::Started
                | Phase::Proposed
                | Phase::Superseded
                | Phase::Withdrawn
                | Phase::Abandoned,
            ) => Shown::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
