//! The endpoints by which other programs ask: to promote and to approve, as the older controller has them, and to look now.
//!
//! None of them decides anything. A request is authenticated, leads to a mark on the object (`objects::pipeline::callers`), and, for the
//! older controller's two, is answered by what the object's status shows then. So every replica takes them, leader or not, and a
//! request that is lost, repeated, captured or made up can make us look, and no more; a yes counts for the ticket that it names.
//!
//! ```text
//! connection (guests) ─▶ limiter ─▶ path ─▶ body ─▶ signature, read ─▶ object ─▶ signature, verified ─▶ mark ─▶ status, until it shows
//! ```
//!
//! Off unless `hooks.listen` is set. TLS is for what is before it, an Ingress or a mesh.
//!
//! Not for what people and probes see; that is the other doors'.

mod approval;
mod body;
mod client;
mod limiter;
mod path;
mod poke;
mod promotion;
mod refusals;
mod signature;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::http::header::{self, HeaderMap};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use jiff::Timestamp;
use tokio::sync::Semaphore;

use super::guests::Guest;
use super::reply;
use crate::telemetry::Metrics;
use body::Unread;
pub use client::Network;
use kernel::id::{ObjectId, PipelineId};
use kernel::names::destination::Purpose;
use limiter::Limiter;
use objects::pipeline::callers::{Called, Mark};
use objects::ports::Secrets;
use objects::ports::pipeline::Marks;
use objects::ports::repo::Pokes;
use path::Asked;
use purge::ports::{Clock, PortError, Retry};
use refusals::{Refusal, Refusals, Told};
pub use signature::Key;
use signature::Wrong;

/// Requests whose outcome is waited for at once. The others are answered 202.
const WAITING_MAX: usize = 8;

/// Requests that look at the API server at once; the others wait for them.
const LOOKING_MAX: usize = 8;

/// How long an outcome is waited for.
pub const SHOWN_WITHIN: Duration = Duration::from_secs(30);

/// How often the status is read while it is waited for: with all places taken, 16 times a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long the API server may take, with the wait for a place: somewhat longer than one of its requests (15 s).
const OUTSIDE_WITHIN: Duration = Duration::from_secs(20);

/// The key of a Secret under which the key of requests is, as the older controller has it.
const SECRET_KEY: &str = "hmac-key";

/// The key that was there before, while it is changed.
const SECRET_KEY_BEFORE: &str = "hmac-key-before";

/// What the endpoints need.
#[derive(Clone)]
pub struct Hooks {
    pub marks: Arc<dyn Marks>,
    /// Where Repos are asked to look.
    pub repos: Arc<dyn Pokes>,
    pub secrets: Arc<dyn Secrets>,
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<Metrics>,
    pub trust: Trust,
    /// How long an outcome is waited for; [`SHOWN_WITHIN`].
    pub shown_within: Duration,
}

#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// The keys of those that ask us to look.
    pub keys: Vec<Key>,
    /// Where there is no key, requests need none.
    pub allow_unsigned: bool,
    /// An approval may leave out its ticket: then it answers the question that is open.
    pub empty_approvals: bool,
    /// Proxies that say who is behind them.
    pub proxies: Vec<Network>,
    /// The namespaces of Pipelines; `None`: all.
    pub namespaces: Option<BTreeSet<String>>,
}

/// The endpoints, to be put behind a door: each path that there is, and an answer to every other.
pub fn endpoints(hooks: Hooks) -> impl Fn(&mut web::ServiceConfig) + Clone + Send {
    let porter = web::Data::new(Porter::new(hooks));
    move |app| {
        app.app_data(porter.clone()).default_service(web::to(answer));
    }
}

/// The handler of these requests.
struct Porter {
    hooks: Hooks,
    limiter: Mutex<Limiter>,
    refusals: Refusals,
    waiting: Semaphore,
    looking: Semaphore,
}

/// A request that was read whole.
struct Sent<'a> {
    headers: &'a HeaderMap,
    body: web::Bytes,
}

/// How a request showed who makes it.
#[derive(Debug, PartialEq, Eq)]
enum Proof {
    /// With the key of this Secret.
    Key(String),
    /// It did not, and need not.
    None,
}

/// Every path there is.
async fn answer(request: HttpRequest, mut payload: web::Payload, porter: web::Data<Porter>) -> HttpResponse {
    let asked = Asked::of(request.uri().path());
    let door = asked.door();
    if asked == Asked::Health {
        return reply::text(StatusCode::OK, "ok".to_owned());
    }
    let peer = request.peer_addr().map(|peer| peer.ip());
    let client = peer.map(|peer| client::client(peer, request.headers(), &porter.hooks.trust.proxies));
    let now = porter.hooks.clock.now();
    let limited = client.and_then(|client| porter.limiter().hit(now, client).err());
    let (told, again) = match limited {
        Some(again) => (too_many(), Some(again)),
        None => (porter.judge(&request, &mut payload, asked).await.unwrap_or_else(|refused| refused), None),
    };
    let words = client.map_or_else(String::new, |client| client.to_string());
    if let Some(client) = client.filter(|_| told.status.is_success()) {
        porter.limiter().served(now, client);
    }
    porter.refusals.tell(now, door, &told, request.uri().path(), &words);
    porter.hooks.metrics.doors.hook_request(door, told.status.as_u16());
    let mut answer = told.reply();
    if let Some(again) = again.and_then(|again| header::HeaderValue::from_str(&porter.date_after(again)).ok()) {
        answer.headers_mut().insert(header::RETRY_AFTER, again);
    }
    if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
        answer.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("POST"));
    }
    reply::ending(answer, payload)
}

fn too_many() -> Told {
    let remedy = "ask less often; behind a proxy, name it in hooks.trusted_proxies, so that those behind it are counted one by one";
    Told::refused(StatusCode::TOO_MANY_REQUESTS, "too many requests\n", "there were too many requests", remedy)
}

impl Porter {
    fn new(hooks: Hooks) -> Self {
        Self {
            hooks,
            limiter: Mutex::default(),
            refusals: Refusals::default(),
            waiting: Semaphore::new(WAITING_MAX),
            looking: Semaphore::new(LOOKING_MAX),
        }
    }

    fn limiter(&self) -> MutexGuard<'_, Limiter> {
        // Nothing in here panics while it is held.
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The date after this time, as HTTP has dates (RFC 9110, 5.6.7).
    fn date_after(&self, time: Duration) -> String {
        let wait_ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let at = Timestamp::from_millisecond(self.hooks.clock.wall_ms().saturating_add(wait_ms));
        at.unwrap_or(Timestamp::UNIX_EPOCH).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    fn wall_s(&self) -> i64 {
        self.hooks.clock.wall_ms() / 1_000
    }

    /// Checks and performs a request. The order of the checks is the older controller's.
    async fn judge(&self, request: &HttpRequest, payload: &mut web::Payload, asked: Asked) -> Result<Told, Told> {
        if asked == Asked::Nothing {
            return Err(no_path());
        }
        if *request.method() != Method::POST {
            let words = "only POST\n";
            let remedy = "send it by POST";
            return Err(Told::refused(StatusCode::METHOD_NOT_ALLOWED, words, "it is no POST", remedy));
        }
        if matches!(asked, Asked::Malformed(_) | Asked::Health) {
            return Err(no_path());
        }
        let headers = request.headers();
        let declared = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let body = body::read(payload, declared).await.map_err(unread)?;
        // Only one that has sent everything is waited for by its connection's bound.
        let _answering = request.conn_data::<Guest>().map(Guest::answering);
        let sent = Sent { headers, body };
        match asked {
            Asked::Promotion(id, source) => self.promote(&sent, &id, &source).await,
            Asked::Approval(id, environment, revision) => self.approve(&sent, &id, &environment, &revision).await,
            Asked::Poke(id) => self.poke(&sent, &id).await,
            Asked::PokeRepo(id) => self.poke_repo(&sent, &id).await,
            Asked::Malformed(_) | Asked::Health | Asked::Nothing => Err(no_path()),
        }
    }

    /// The Pipeline, read afresh.
    async fn called(&self, id: &PipelineId) -> Result<Called, Told> {
        let name = id.display_name();
        self.attends(&id.namespace, &name)?;
        let read = self.outside(self.hooks.marks.read(id)).await;
        read.map_err(|error| broken(&error))?.ok_or_else(|| no_object(&format!("there is no Pipeline {name}")))
    }

    /// Whether objects of this namespace are ours to attend to.
    fn attends(&self, namespace: &str, name: &str) -> Result<(), Told> {
        if self.hooks.trust.namespaces.as_ref().is_some_and(|all| !all.contains(namespace)) {
            return Err(no_object(&format!("{name} is in no namespace that allclear attends to")));
        }
        Ok(())
    }

    /// Puts a mark on a Pipeline.
    async fn mark(&self, called: &Called, mark: &Mark) -> Result<(), Told> {
        let marked = self.outside(self.hooks.marks.mark(called, mark)).await.map_err(|error| broken(&error))?;
        let name = called.object.id.display_name();
        if marked { Ok(()) } else { Err(no_object(&format!("{name} was deleted meanwhile"))) }
    }

    /// What is asked of the API server, within a bound, and of few at a time: a flood of requests is no flood of ours.
    async fn outside<T>(&self, asked: impl Future<Output = Result<T, PortError>>) -> Result<T, PortError> {
        let within = async {
            let _place = self.looking.acquire().await;
            asked.await
        };
        let late = || PortError::passing("failed to ask the API server", "it takes too long; many ask, or it is slow");
        reply::within(OUTSIDE_WITHIN, within).await.unwrap_or_else(|| Err(late()))
    }

    /// The Pipeline, and how a request showed that it may ask for this: `judge` finds out, with the keys of the Secret.
    /// Which Pipelines exist is shown to no one else, unless keys are not needed.
    async fn proven(
        &self,
        id: &PipelineId,
        secret: impl Fn(&Called) -> Option<String>,
        judge: impl Fn(&[Key]) -> Result<(), Wrong>,
    ) -> Result<(Called, Proof), Told> {
        let needs_none = self.hooks.trust.allow_unsigned;
        if !needs_none {
            presented(&judge)?;
        }
        let called = self.called(id).await.map_err(|told| match told {
            Told { status: StatusCode::NOT_FOUND, refusal: Some(Refusal { why, remedy }), .. } if !needs_none => {
                unknown(&why, &remedy)
            }
            told => told,
        })?;
        let proof = self.prove(&called, secret(&called).as_deref(), judge).await?;
        Ok((called, proof))
    }

    /// Whether a request was made with the key of this Secret. `judge` finds out, with the keys that the Secret has.
    async fn prove(
        &self,
        called: &Called,
        secret: Option<&str>,
        judge: impl Fn(&[Key]) -> Result<(), Wrong>,
    ) -> Result<Proof, Told> {
        let namespace = &called.object.id.namespace;
        let Some(secret) = secret else {
            if self.hooks.trust.allow_unsigned {
                return Ok(Proof::None);
            }
            let remedy = "name a Secret with the key hmac-key in promotion.strategy.secretRef of its spec, or set \
                          hooks.allow_unsigned";
            return Err(unknown(&format!("Pipeline {} names no key", called.object.id.display_name()), remedy));
        };
        presented(&judge)?;
        let read =
            self.outside(self.hooks.secrets.read(namespace, secret, Purpose::Compared)).await.map_err(|error| {
                let refused =
                    unknown(&error.to_string(), "make the Secret readable to allclear: deploy/components/secrets");
                // What passes by itself is no reason to stop asking.
                if error.retry == Retry::Never { refused } else { broken(&error) }
            })?;
        let values = [SECRET_KEY, SECRET_KEY_BEFORE].into_iter().filter_map(|key| read.get(key));
        let keys: Vec<Key> = values.flat_map(|value| Key::of_secret(value)).collect();
        if keys.is_empty() {
            let why = format!("Secret {namespace}/{secret} has no {SECRET_KEY}");
            return Err(unknown(&why, "write the key under that name into the Secret"));
        }
        match judge(&keys) {
            Ok(()) => Ok(Proof::Key(secret.to_owned())),
            Err(wrong) => {
                let why = format!("{wrong}; our key is {SECRET_KEY} of Secret {namespace}/{secret}");
                Err(unknown(&why, wrong.remedy()))
            }
        }
    }

    /// Reads the status until `next` finds in it what has come of a request.
    async fn wait(&self, id: &PipelineId, next: impl Fn(&Called) -> Next) -> Told {
        let later = || Told::done(StatusCode::ACCEPTED, "");
        let Ok(_place) = self.waiting.try_acquire() else { return later() };
        let looks = async {
            loop {
                if let Ok(called) = self.called(id).await {
                    match next(&called) {
                        Next::Told(told) => return told,
                        // Where that fails, the next look comes to the same.
                        Next::Mark(mark) => drop(self.mark(&called, &mark).await),
                        Next::Wait => {}
                    }
                }
                actix_rt::time::sleep(LOOK_EVERY).await;
            }
        };
        reply::within(self.hooks.shown_within, looks).await.unwrap_or_else(later)
    }
}

/// What follows from a look at the status.
enum Next {
    /// That is what came of it.
    Told(Told),
    /// The mark is gone, and it was not acted on.
    Mark(Mark),
    /// Nothing came of it yet.
    Wait,
}

/// Whether there is something to verify at all, before anything is read.
fn presented(judge: &impl Fn(&[Key]) -> Result<(), Wrong>) -> Result<(), Told> {
    match judge(&[]) {
        Err(wrong @ (Wrong::Missing(_) | Wrong::Malformed(_))) => Err(unknown(&wrong.to_string(), wrong.remedy())),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn no_path() -> Told {
    let here = "POST /promotion/NAMESPACE/NAME/ENVIRONMENT, /approval/NAMESPACE/NAME/ENVIRONMENT/REVISION, \
                /hooks/poke/pipeline/NAMESPACE/NAME and /hooks/poke/repo/NAMESPACE/NAME are here";
    Told::refused(StatusCode::NOT_FOUND, &format!("{here}\n"), "there is nothing at this path", here)
}

fn no_object(why: &str) -> Told {
    Told::refused(StatusCode::NOT_FOUND, &format!("{why}\n"), why, "correct the address at the sender")
}

/// The answer shows nothing of an internal fault.
fn broken(error: &PortError) -> Told {
    let remedy = if error.denied { "give allclear the right" } else { "the sender may ask again" };
    let words = "allclear could not ask the API server; its log says why\n";
    Told::refused(StatusCode::INTERNAL_SERVER_ERROR, words, error.to_string(), remedy)
}

fn unknown(why: &str, remedy: &str) -> Told {
    let words = "this needs a signature that allclear can verify; its log says what is wrong with this one\n";
    Told::refused(StatusCode::UNAUTHORIZED, words, why, remedy)
}

fn unread(unread: Unread) -> Told {
    let (status, why) = match unread {
        Unread::Long => {
            (StatusCode::PAYLOAD_TOO_LARGE, format!("its body is longer than {} bytes", body::BODY_BYTES_MAX))
        }
        Unread::Slow => (StatusCode::REQUEST_TIMEOUT, "its body did not come in time".to_owned()),
        Unread::Broken => (StatusCode::BAD_REQUEST, "its body broke off".to_owned()),
    };
    Told::refused(
        status,
        &format!("{why}\n"),
        why.clone(),
        "send less, or look at what is between the sender and allclear",
    )
}
