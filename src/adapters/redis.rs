//! One connection to one Redis, bounded in time, and its failures by name.
//!
//! A command that timed out may still be carried out later (docs/internals/measured.md): everything sent through here
//! must be harmless when late and when repeated.

pub mod board;
pub mod probe;

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::{
    Client, ConnectionInfo, ErrorKind, IntoConnectionInfo, ProtocolVersion, RedisError, RedisResult, TlsCertificates,
};
use tokio::time::Instant;

use purge::ports::{PortError, Reason};

/// Longest wait for a connection. Defaults of the client make a call block for 9.4 s while the server is away (measured).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest wait for an answer (fault R11). A Redis within one network answers in less than a millisecond, one on another
/// continent in 0.3 s, and no request or answer of ours is larger than half a second's worth on a line of 10 Mbit/s.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Further attempts to connect, within one call.
const RETRIES: usize = 1;

/// Longest wait between them.
const RETRY_DELAY_MAX: Duration = Duration::from_millis(500);

/// How often a connection is left because its server refused. A server that refuses everything is then connected to no more
/// often than this, however many ask; a name that moves takes longer anyway.
const LEFT_EVERY: Duration = Duration::from_secs(1);

/// Longest a call may take with all of these: 1 s for the answer of the lost connection, two connects, one delay, 1 s for the
/// answer. The client has no bound for the whole.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// As a literal, for two texts.
macro_rules! rights {
    () => {
        "~allclear:* &allclear:* +hello +ping +info +select +evalsha +script|load +subscribe +publish +get +set \
         +exists +expire +persist +del +srem +strlen +hmget +hset +hdel +hstrlen +sadd +srandmember +zadd +zrem +zscore \
         +zrange +zrangebyscore +zrevrangebyscore"
    };
}

/// The rights of our user, in the words of `ACL SETUSER`: what the board sends, and what its scripts do.
pub const RIGHTS: &str = rights!();

/// What a failing Redis says, with what to do about it. The client's own error hides the name behind prose, and inside a
/// script older servers hide it in the middle of a sentence.
const REASONS: &[(&str, bool, &str)] = &[
    (
        "WRONGTYPE",
        false,
        "another program keeps something else under our key; rename one of the two, we delete nothing",
    ),
    ("NOAUTH", false, "the server wants a password: put it into the URL, redis://user:password@host"),
    ("WRONGPASS", false, "user or password are wrong"),
    ("NOPERM", false, concat!("our user needs ", rights!())),
    ("OOM", true, "the server has reached maxmemory; give it more, its policy must be noeviction"),
    ("LOADING", true, "the server is loading its data"),
    ("READONLY", true, "this is a replica; point us at the primary"),
    ("MISCONF", true, "the server cannot save to its disk and therefore refuses writes"),
    ("BUSY", true, "another program's script is running"),
    ("MASTERDOWN", true, "the replica has lost its primary"),
    ("MOVED", false, "this is a Redis Cluster, which is not supported; use a single server or a proxy"),
    ("CLUSTERDOWN", true, "this is a Redis Cluster, which is not supported, and it is down"),
    ("NOREPLICAS", true, "the primary has lost its replicas and therefore refuses writes (min-replicas-to-write)"),
];

/// A connection begins with `HELLO 3`, which came with Redis 6 (<https://redis.io/docs/latest/commands/hello/>).
const RESP3: (&str, bool, &str) = ("RESP3", false, "the server is older than Redis 6, or its HELLO is renamed away");

/// A Sentinel answers `INFO` as any server, and knows no scripts (<https://redis.io/docs/latest/develop/reference/sentinel-clients/>).
const SENTINEL: &str = "this is a Sentinel, which holds no data, or EVALSHA is renamed away; give the address of the primary, by a \
                        name or a Service that leads to it";

/// Parts of what the TLS library says of a certificate, and what to do about it.
const CERTIFICATE: &[(&str, &str)] = &[
    (
        "UnknownIssuer",
        "its certificate is signed by an authority that is not trusted here; put that authority's certificate, PEM, into the \
         file that redis.ca_file names",
    ),
    ("NotValidForName", "its certificate is for another host name than the address in redis.url or group.remotes"),
    ("Expired", "its certificate has expired; renew it"),
];

/// A Redis server. Connects with the first call, again after every loss, and again after a refusal: a primary that was
/// demoted answers for ever, on a connection that is as good as any, while its name leads to another server.
#[derive(Clone)]
pub struct Server {
    client: Client,
    line: Arc<Mutex<Line>>,
    shown: String,
}

/// The one connection that all calls go through.
#[derive(Default)]
struct Line {
    /// Made inside the runtime, which the composition root may not have started when it makes the server. Connects, and
    /// resolves the name, with the first call.
    manager: Option<ConnectionManager>,
    /// How many were left before this one. What failed on one of them says nothing of this one.
    left: u64,
    /// When one was last left because its server refused.
    refused: Option<Instant>,
}

/// Without user and password.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.shown).finish()
    }
}

impl Server {
    /// The server at `url`, for example `redis://user:password@host:6379/0`. Nothing is sent yet. With `rediss://` its
    /// certificate is verified by the authorities of the system, or instead by those in the file that `SSL_CERT_FILE` names.
    ///
    /// # Errors
    /// When it is not a Redis URL; the URL is not quoted, it may hold a password.
    pub fn new(url: &str) -> Result<Self, PortError> {
        Self::open(url, Client::open)
    }

    /// The server at a `rediss://` URL, whose certificate is verified by the authorities in `ca`, PEM, and no others.
    ///
    /// # Errors
    /// When it is not such a URL, or `ca` holds no certificate.
    pub fn trusting(url: &str, ca: &[u8]) -> Result<Self, PortError> {
        let certificates = TlsCertificates { client_tls: None, root_cert: Some(ca.to_vec()) };
        Self::open(url, |info| Client::build_with_tls(info, certificates))
    }

    fn open(url: &str, client: impl FnOnce(ConnectionInfo) -> RedisResult<Client>) -> Result<Self, PortError> {
        let attempted = "failed to read the URL of a Redis";
        let info = url
            .into_connection_info()
            .map_err(|_| PortError::lasting(attempted, "it is not of the form redis://host:port"))?;
        let shown = info.addr().to_string();
        // RESP3: a lost connection is noticed by itself, and the next call succeeds instead of failing once.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = client(info.set_redis_settings(settings)).map_err(|_| {
            PortError::lasting(
                attempted,
                "it is not one to be reached with TLS (rediss://), or its authorities are no PEM",
            )
        })?;
        Ok(Self { client, line: Arc::default(), shown })
    }

    /// Makes one call; `what` completes "failed to … in Redis host:port".
    ///
    /// A refused call is not repeated here: until the name leads elsewhere, a second answer would be the same, and the
    /// caller has its own retries. The next call connects anew.
    ///
    /// # Errors
    /// The cause begins with the name of the reason: `OOM`, `NOAUTH`, `timeout`, …
    pub async fn call<T, F>(&self, what: &str, call: impl FnOnce(ConnectionManager) -> F + Send) -> Result<T, PortError>
    where
        F: Future<Output = RedisResult<T>> + Send,
    {
        let (manager, line) = self.manager().map_err(|error| self.failed(what, &error))?;
        match tokio::time::timeout(CALL_TIMEOUT, call(manager)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                if error.is_timeout() {
                    self.leave(line);
                } else if !error.is_io_error() {
                    self.leave_refusing(line);
                }
                Err(self.failed(what, &error))
            }
            Err(_) => {
                self.leave(line);
                let cause = format!("timeout: no answer within {} s", CALL_TIMEOUT.as_secs());
                Err(PortError::passing(self.attempted(what), cause).because(Reason::of("timeout")))
            }
        }
    }

    pub fn shown(&self) -> &str {
        &self.shown
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many connections were left so far. The keeper of a connection leaves it when this has changed.
    fn left(&self) -> u64 {
        self.line().left
    }

    /// The connection, and which one it is.
    fn manager(&self) -> RedisResult<(ConnectionManager, u64)> {
        let mut line = self.line();
        if let Some(manager) = &line.manager {
            return Ok((manager.clone(), line.left));
        }
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT))
            .set_number_of_retries(RETRIES)
            .set_max_delay(RETRY_DELAY_MAX);
        let manager = ConnectionManager::new_lazy_with_config(self.client.clone(), config)?;
        line.manager = Some(manager.clone());
        Ok((manager, line.left))
    }

    /// Leaves a connection that did not answer in time: to the client it is as good as any, and one whose other end is gone
    /// without a word stays so for the quarter of an hour in which the kernel tries to reach it (tcp(7), `tcp_retries2`).
    fn leave(&self, line: u64) {
        self.line().leave(line);
    }

    /// Leaves a connection over which something was refused. The client keeps it for ever, and for ever keeps the refusal of
    /// a server that did not let it in (redis 1.8: it connects again after I/O errors only). What was refused matters little:
    /// most words for "I am not the primary, or not now" are known, but not all, and connecting costs next to nothing.
    fn leave_refusing(&self, line: u64) {
        let mut held = self.line();
        if held.refused.is_none_or(|refused| refused.elapsed() >= LEFT_EVERY) && held.leave(line) {
            held.refused = Some(Instant::now());
        }
    }

    fn attempted(&self, what: &str) -> String {
        format!("failed to {what} in Redis {}", self.shown)
    }

    fn failed(&self, what: &str, error: &RedisError) -> PortError {
        let (reason, passes, advice) = classify(error);
        let cause = if advice.is_empty() { format!("{reason}: {error}") } else { format!("{reason}: {advice}") };
        let attempted = self.attempted(what);
        let failed = if passes { PortError::passing(attempted, cause) } else { PortError::lasting(attempted, cause) };
        failed.because(Reason::of(reason))
    }
}

impl Line {
    /// Leaves that one, unless it was left already.
    fn leave(&mut self, which: u64) -> bool {
        let is_this = self.left == which;
        if is_this {
            self.manager = None;
            self.left += 1;
        }
        is_this
    }
}

/// What is to be done about a reason of this name.
fn advice(name: &str) -> &'static str {
    REASONS.iter().find(|(reason, ..)| *reason == name).map_or("", |(_, _, advice)| advice)
}

/// The name of the reason, whether it may pass by itself, and what to do about it.
fn classify(error: &RedisError) -> (&str, bool, &str) {
    let said = error.detail().unwrap_or_default();
    let named = |&&(name, _, _): &&(&str, bool, &str)| {
        error.code() == Some(name) || said.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name)
    };
    if let Some(&reason) = REASONS.iter().find(named) {
        return reason;
    }
    // The client knows the words of Redis 5 only (`get_resp3_hello_command_error`, redis 1.8.1); 4 and earlier quote otherwise.
    if said.starts_with("unknown command") && said.contains("HELLO") {
        return RESP3;
    }
    if said.starts_with("unknown command") && said.to_ascii_uppercase().contains("EVALSHA") {
        return ("error", false, SENTINEL);
    }
    if error.is_timeout() {
        return ("timeout", true, "no answer in time; is the server up, and does all that is between let us through?");
    }
    let certificate = CERTIFICATE.iter().find(|(part, _)| error.to_string().contains(part));
    if let Some((_, advice)) = certificate {
        return ("certificate", false, advice);
    }
    if error.is_connection_refusal() {
        return ("refused", true, "");
    }
    match error.kind() {
        ErrorKind::Io => ("connection", true, ""),
        ErrorKind::AuthenticationFailed => ("WRONGPASS", false, "user or password are wrong, or not set at all"),
        ErrorKind::RESP3NotSupported => RESP3,
        _ => (error.code().unwrap_or("error"), true, ""),
    }
}
