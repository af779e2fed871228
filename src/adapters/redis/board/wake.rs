//! The channel on which members wake each other when there is something to read. It may lose wake-ups: listeners also
//! poll.

use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisResult, Value, cmd};
use futures_util::stream;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::super::{CONNECT_TIMEOUT, RESPONSE_TIMEOUT, Server};
use kernel::retry::Backoff;
use purge::ports::Flow;

/// How often a silent connection is asked whether it is alive: a half-open one looks like a quiet one. Also how late it
/// follows the other connection to another server.
const PING_EVERY: Duration = Duration::from_secs(10);

/// Longest time until the channel is subscribed to: connecting with TLS is several answers' worth.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Waits between attempts. Nothing depends on the channel but how fast a group is, so they need not be short.
const RECONNECT: Backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_secs(15) };

/// One item for each moment with messages on `channel`, except messages that begin with `own`, and one after each
/// connect.
pub fn ups(server: Server, channel: String, own: String) -> Flow<()> {
    let listener = Listener { server, channel, own, line: None, failures: 0, warned: false };
    Box::pin(stream::unfold(listener, |mut listener| async {
        listener.next().await;
        Some(((), listener))
    }))
}

struct Listener {
    server: Server,
    channel: String,
    own: String,
    line: Option<Line>,
    /// Attempts and connections that failed since one was alive at a ping.
    failures: u32,
    /// The loss of the channel was logged; once for each outage, because posts and reads log their own failures.
    warned: bool,
}

/// A connection that listens. Dropping it ends it.
struct Line {
    connection: MultiplexedConnection,
    /// How many connections of the server had been left when this one was made.
    left: u64,
    said: mpsc::Receiver<Said>,
}

enum Said {
    Something,
    Goodbye,
}

impl Listener {
    async fn next(&mut self) {
        loop {
            let Some(line) = &mut self.line else {
                if self.connected().await {
                    return;
                }
                continue;
            };
            let alive = tokio::select! {
                said = line.said.recv() => match said {
                    Some(Said::Something) => return,
                    Some(Said::Goodbye) | None => false,
                },
                () = sleep(PING_EVERY) => {
                    // A replica is alive too, and may hear of nothing: what is written there tells whether it still is the one.
                    let alive = line.left == self.server.left() && is_alive(&mut line.connection).await;
                    if alive {
                        self.failures = 0;
                    }
                    alive
                }
            };
            if !alive {
                self.line = None;
                self.failures = self.failures.saturating_add(1);
            }
        }
    }

    /// Connects, after a wait if it failed before.
    async fn connected(&mut self) -> bool {
        if self.failures > 0 {
            sleep(RECONNECT.delay(self.failures, &self.own)).await;
        }
        let attempt = timeout(SUBSCRIBE_TIMEOUT, subscribed(&self.server, &self.channel, &self.own)).await;
        let why = match attempt {
            Ok(Ok(line)) => {
                self.line = Some(line);
                self.warned = false;
                return true;
            }
            Ok(Err(error)) => self.server.failed("listen", &error).to_string(),
            Err(_) => format!("failed to listen in Redis {}: timeout", self.server.shown()),
        };
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(error = %why, "changes of other members are noticed later, by polling");
        }
        self.failures = self.failures.saturating_add(1);
        false
    }
}

async fn subscribed(server: &Server, channel: &str, own: &str) -> RedisResult<Line> {
    // One place: a signal while another one waits to be received is the same news.
    let (says, said) = mpsc::channel(1);
    let own = own.to_owned();
    let push = move |push: PushInfo| {
        let said = match push.kind {
            PushKind::Disconnection => Said::Goodbye,
            PushKind::Message if !is_from(&own, &push) => Said::Something,
            _ => return Ok(()),
        };
        match says.try_send(said) {
            // A goodbye that finds no place is noticed by the next ping.
            Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => Ok(()),
            Err(closed) => Err(closed),
        }
    };
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(RESPONSE_TIMEOUT))
        .set_push_sender(push);
    let left = server.left();
    let mut connection = server.client.get_multiplexed_async_connection_with_config(&config).await?;
    connection.subscribe(channel).await?;
    Ok(Line { connection, left, said })
}

/// Whether a message, `[channel, text]`, begins so.
fn is_from(own: &str, push: &PushInfo) -> bool {
    matches!(push.data.get(1), Some(Value::BulkString(text)) if text.starts_with(own.as_bytes()))
}

async fn is_alive(connection: &mut MultiplexedConnection) -> bool {
    matches!(timeout(SUBSCRIBE_TIMEOUT, cmd("PING").query_async::<Value>(connection)).await, Ok(Ok(_)))
}
