//! A run of a Repo, reported to the forge of its repository: the state of the commit, and one comment on each open request that has it at
//! its head.
//!
//! - A comment is known by its mark, and rewritten in place; the oldest that begins with the mark is ours ([`Saying::mark`]). Where it says the
//!   same, nothing is written.
//! - Both are tried, whichever fails, unless the forge asks for a rest, and the first failure is the answer: all of it is said again then,
//!   which changes nothing there.
//! - Whose turn it is, and what rests, is the [`keeper`](crate::keeper)'s, as for promotions.
//!
//! Not for when something is said, nor for its words; that is the machine.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use kernel::names::destination;
use kernel::names::ssh_url::web_of;
use objects::pipeline::proposal::ForgeKind;
use objects::ports::Secrets;
use objects::ports::repo::{Reports, Saying, Unresolved};
use objects::repo::spec::Provider;
use purge::ports::{PortError, Retry};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::app::{Apps, Rights};
use crate::keeper::{Errand, Keeper, NoTurn, Purpose, Turn};
use crate::keys::Content;
use crate::notes::Notes;
use crate::place::Place;
use crate::propose;
use crate::rest::Failure;
use crate::rests::{Outcome, Whom};
use crate::witness::Witness;
use crate::{Authorities, Http, HttpError};

/// Longest time of one report: a dozen exchanges at most places.
const CALL_MAX: Duration = Duration::from_secs(60);

/// Longest wait for a place.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Longest answer that is read, in bytes: 50 comments of 64 KiB, with what GitHub says of their authors. Any host may be one that a
/// namespace names.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// All forges, to which runs are reported.
pub struct ForgeReports(Arc<Shared>);

struct Shared {
    http: Arc<dyn Http>,
    secrets: Arc<dyn Secrets>,
    keeper: Arc<Keeper>,
    apps: Apps,
}

impl ForgeReports {
    /// All of them, behind this way out, with these Secrets.
    pub fn new(http: Arc<dyn Http>, secrets: Arc<dyn Secrets>, keeper: Arc<Keeper>) -> Self {
        let apps = Apps::new(keeper.clock(), Rights::All);
        Self(Arc::new(Shared { http, secrets, keeper, apps }))
    }
}

#[async_trait]
impl Reports for ForgeReports {
    async fn say(&self, saying: &Saying) -> Result<u32, Unresolved> {
        let Self(shared) = self;
        let (place, content) = shared.opened(saying).await.map_err(unresolved)?;
        let key = shared.keeper.key(&saying.repo.namespace, Some(&content.proof));
        let errand = Errand {
            purpose: Purpose::Report,
            namespace: saying.repo.namespace.clone(),
            subject: saying.repo.to_string(),
            whom: Whom { host: place.host.clone(), repository: place.to_string(), key },
        };
        let turn = shared.keeper.turn(errand, WAIT_MAX).await.map_err(|none| no_turn(&place, none))?;
        let work = Work { shared: Arc::clone(shared), turn, place, content, saying: saying.clone() };
        let runtime = Handle::current();
        // It holds its place until it ends, even if no caller waits for it any more.
        let work = tokio::task::spawn_blocking(move || runtime.block_on(work.done()));
        work.await.unwrap_or_else(|_| {
            let why = "the report broke off; the log says where".to_owned();
            Err(Unresolved { why, lasting: false, busy: false, rest: Duration::ZERO })
        })
    }
}

/// One report, with all that it needs.
struct Work {
    shared: Arc<Shared>,
    turn: Turn,
    place: Place,
    content: Content,
    saying: Saying,
}

impl Work {
    async fn done(self) -> Result<u32, Unresolved> {
        let Self { shared, turn, place, content, saying } = self;
        let witness = Witness::of(&shared.http);
        let whole = async {
            let http = Arc::clone(&witness) as Arc<dyn Http>;
            let keys = content.keys(&shared.apps, Arc::clone(&http), &saying.url).await?;
            let forge = kind(saying.to.provider);
            let http = Arc::new(Narrow(http)) as Arc<dyn Http>;
            said(&Notes { forge, api: propose::api(http, forge, &place, &keys)? }, &saying).await
        };
        let (result, outcome) = match timeout(CALL_MAX, whole).await {
            Ok(result) => {
                let outcome = propose::outcome(&result, witness.outcome());
                (result, outcome)
            }
            Err(_elapsed) => {
                let why = format!("the forge took longer than {} s", CALL_MAX.as_secs());
                let error = PortError::passing(format!("failed to report to {place}"), why.clone());
                (Err(error), Outcome::Fails(why, None))
            }
        };
        let is_refused = matches!(witness.outcome(), Outcome::Unauthorized(_));
        if is_refused || result.as_ref().is_err_and(|error| error.retry == Retry::Never) {
            content.forget(&shared.apps, &saying.url);
        }
        turn.ended(result.is_ok(), outcome);
        witness.spare().into_iter().for_each(|rest| turn.spare(rest));
        result.map_err(unresolved)
    }
}

impl Shared {
    /// Where the repository is, and what opens its forge.
    async fn opened(&self, saying: &Saying) -> Result<(Place, Content), PortError> {
        let (forge, namespace, name) = (kind(saying.to.provider), &saying.repo.namespace, &saying.to.secret);
        let place = Place::of(forge, &saying.url)?;
        // The forge's API is on the same host, but for that of GitHub, which is GitHub's own.
        let purpose = destination::Purpose::sent_to(&web_of(&saying.url));
        let secret = self.secrets.read(namespace, name, purpose).await?;
        let content = Content::read(&secret, forge)
            .map_err(|why| PortError::lasting(format!("failed to use Secret {namespace}/{name}"), why.to_string()))?;
        Ok((place, content))
    }
}

/// An [`Http`] that reads no long answers.
struct Narrow(Arc<dyn Http>);

#[async_trait]
impl Http for Narrow {
    async fn send(
        &self,
        request: Request<Bytes>,
        authorities: Option<&Authorities>,
        answer_max: usize,
    ) -> Result<Response<Bytes>, HttpError> {
        let answer_max = answer_max.min(ANSWER_BYTES_MAX);
        self.0.send(request, authorities, answer_max).await.map_err(|error| match error {
            HttpError::TooLong => HttpError::Failed(format!("the answer is longer than {answer_max} bytes")),
            error => error,
        })
    }
}

/// Says it: on so many requests.
async fn said(notes: &Notes, saying: &Saying) -> Result<u32, PortError> {
    let commit = saying.revision.as_str();
    let stated = match saying.again {
        true => Ok(()),
        false => notes.set_state(commit, saying.standing, &saying.context(), &saying.summary).await,
    };
    let mut failed = Failed::default();
    failed.note(stated)?;
    let mut requests = 0_u32;
    if let Some(comment) = &saying.comment {
        for number in failed.note(notes.at(commit).await)?.unwrap_or_default() {
            if failed.note(commented(notes, saying, number, comment).await)?.is_some() {
                requests = requests.saturating_add(1);
            }
        }
    }
    failed.0.map_or(Ok(requests), Err)
}

/// The first failure.
#[derive(Default)]
struct Failed(Option<PortError>);

impl Failed {
    /// What came of a step.
    ///
    /// # Errors
    /// Nothing more is to be tried: the forge asks for a rest.
    fn note<T>(&mut self, result: Result<T, Failure>) -> Result<Option<T>, PortError> {
        match result.map_err(PortError::from) {
            Ok(done) => Ok(Some(done)),
            Err(error) if matches!(error.retry, Retry::After(_)) => Err(error),
            Err(error) => {
                self.0.get_or_insert(error);
                Ok(None)
            }
        }
    }
}

/// Has the comment on a request say this, and writes nothing where it does.
async fn commented(notes: &Notes, saying: &Saying, number: u64, comment: &str) -> Result<(), Failure> {
    let mark = saying.mark(number);
    let body = format!("{mark}\n{comment}");
    // Forges may change line ends, and drop the last one.
    let bare = |body: &str| body.replace('\r', "").trim().to_owned();
    match notes.marked(number, &mark).await? {
        Some(known) if bare(&known.body) == bare(&body) => Ok(()),
        Some(known) => notes.rewrite(number, known.id, &body).await,
        None => notes.comment(number, &body).await,
    }
}

const fn kind(provider: Provider) -> ForgeKind {
    match provider {
        Provider::GitHub => ForgeKind::GitHub,
        Provider::GitLab => ForgeKind::GitLab,
        Provider::Gitea => ForgeKind::Gitea,
    }
}

/// Why there is no turn, in words that do not change from try to try: they stand in a status.
fn no_turn(place: &Place, none: NoTurn) -> Unresolved {
    let (why, rest, busy) = match none {
        NoTurn::Rests(resting) => {
            (format!("{} is left alone for a while: {}", resting.what, resting.why), resting.left, false)
        }
        NoTurn::Busy(why) => (format!("there was no place for it at {}: {why}", place.host), Duration::ZERO, true),
    };
    Unresolved { why, lasting: false, busy, rest }
}

fn unresolved(error: PortError) -> Unresolved {
    let (lasting, rest) = match error.retry {
        Retry::Never => (true, Duration::ZERO),
        Retry::Later => (false, Duration::ZERO),
        Retry::After(rest) => (false, rest),
    };
    Unresolved { why: error.to_string(), lasting, busy: false, rest }
}
