//! A line between a client and a server that can be made to fail: a TCP proxy on loopback, for each direction by itself, and
//! for connections that are open already.
//!
//! It knows nothing of what it carries. Bytes are never lost, repeated or reordered, for TCP does not do that either: what a
//! network loses, the sender's kernel sends again. So [`Mode::Drop`] keeps what is sent until the line is whole again, and
//! then delivers it, late; only [`Mode::Reset`] takes bytes away, together with the connection.
//!
//! It has a thread and a runtime of its own, so it goes on while the runtime under test is paused or busy.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Bytes carried at once. A record on its way to Redis has 4 KiB, a page of an API server more; larger only saves calls.
const CHUNK_BYTES: usize = 16 * 1024;

/// What a line does with what one side sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Pass,
    /// Carries nothing, and does not say so: a network that loses every packet. What is sent meanwhile arrives when the mode
    /// changes. New connections are still accepted, as by a machine that hangs.
    Drop,
    /// Carries each chunk this much later.
    Delay(Duration),
    /// Breaks the connection at once, both directions, as a crashed machine or a firewall does (RST). New ones too.
    Reset,
    /// Carries this many bytes, then waits this long.
    Trickle(usize, Duration),
}

/// One direction of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What the client sends.
    ToServer,
    /// What the server sends.
    ToClient,
}

/// The line. Dropping it breaks every connection and ends its thread.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    target: SocketAddr,
    modes: Mutex<Modes>,
    /// Modes of stranded connections, which no longer change.
    stranded: Mutex<Vec<Modes>>,
    live: AtomicUsize,
    accepted: AtomicUsize,
}

/// The modes of the connections that began since the last were stranded.
#[derive(Default)]
struct Modes {
    to_server: watch::Sender<Mode>,
    to_client: watch::Sender<Mode>,
}

impl Proxy {
    /// A line that passes everything on to `target`, at a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When there is no port or no thread.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::new(Shared {
            target,
            modes: Mutex::default(),
            stranded: Mutex::default(),
            live: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
        });
        let (end, ended) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, &served) => {}
                    _ = ended => {}
                }
            });
        })?;
        Ok(Self { address, shared, end: Some(end), thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes one direction, of live connections too.
    pub fn set(&self, direction: Direction, mode: Mode) {
        let modes = self.shared.modes();
        let sender = match direction {
            Direction::ToServer => &modes.to_server,
            Direction::ToClient => &modes.to_client,
        };
        sender.send_replace(mode);
    }

    /// Changes both directions, of live connections too.
    pub fn set_both(&self, mode: Mode) {
        self.set(Direction::ToServer, mode);
        self.set(Direction::ToClient, mode);
    }

    /// Breaks what is connected, once, and goes on as before.
    pub async fn reset_once(&self) {
        /// A connection notices its end within a turn of the proxy's runtime; this bounds a busy machine.
        const LOOKS_MAX: usize = 500;
        let before = {
            let modes = self.shared.modes();
            (*modes.to_server.borrow(), *modes.to_client.borrow())
        };
        self.set_both(Mode::Reset);
        for _ in 0..LOOKS_MAX {
            if self.live() == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.set(Direction::ToServer, before.0);
        self.set(Direction::ToClient, before.1);
    }

    /// Silences what is connected, for good: neither end ever hears of it again, while new connections are carried. What a
    /// firewall leaves behind that has forgotten a connection.
    pub fn strand(&self) {
        let mut modes = self.shared.modes();
        modes.to_server.send_replace(Mode::Drop);
        modes.to_client.send_replace(Mode::Drop);
        let stranded = std::mem::take(&mut *modes);
        self.shared.stranded.lock().unwrap_or_else(PoisonError::into_inner).push(stranded);
    }

    pub fn live(&self) -> usize {
        self.shared.live.load(Ordering::Relaxed)
    }

    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn modes(&self) -> MutexGuard<'_, Modes> {
        self.modes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subscribe(&self) -> (watch::Receiver<Mode>, watch::Receiver<Mode>) {
        let modes = self.modes();
        (modes.to_server.subscribe(), modes.to_client.subscribe())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.end.take());
        // Its runtime ends with every connection; a panic in it was printed by then.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &self.address)
            .field("target", &self.shared.target)
            .finish_non_exhaustive()
    }
}

/// Accepts until it is dropped, and every connection with it.
async fn serve(listener: std::net::TcpListener, shared: &Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    let shared = Arc::clone(shared);
                    shared.accepted.fetch_add(1, Ordering::Relaxed);
                    connections.spawn(async move {
                        let _live = Live::new(&shared);
                        carry(client, &shared).await;
                    });
                }
                // Out of descriptors, for example: give others a moment to return some.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Counts one connection for as long as it lives.
struct Live<'a>(&'a AtomicUsize);

impl<'a> Live<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.live.fetch_add(1, Ordering::Relaxed);
        Self(&shared.live)
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connection was broken rather than closed.
struct Broken;

/// Carries one connection, both directions, until both are closed or either is broken.
async fn carry(client: TcpStream, shared: &Shared) {
    let _ = client.set_nodelay(true);
    let (mut to_server, mut to_client) = shared.subscribe();
    let Ok(server) = TcpStream::connect(shared.target).await else {
        let _ = client.set_zero_linger();
        return;
    };
    let _ = server.set_nodelay(true);
    let (mut from_client, mut into_client) = client.into_split();
    let (mut from_server, mut into_server) = server.into_split();
    let there = pump(&mut from_client, &mut into_server, &mut to_server);
    let back = pump(&mut from_server, &mut into_client, &mut to_client);
    if let Err(Broken) = tokio::try_join!(there, back) {
        // With this a socket is closed by a RST; without forgetting them, the halves would send a FIN first.
        let _ = from_client.as_ref().set_zero_linger();
        let _ = from_server.as_ref().set_zero_linger();
        into_client.forget();
        into_server.forget();
    }
}

/// Carries one direction as its mode says, until the sender closes it.
async fn pump(
    from: &mut OwnedReadHalf,
    into: &mut OwnedWriteHalf,
    mode: &mut watch::Receiver<Mode>,
) -> Result<(), Broken> {
    let mut pending: Vec<u8> = Vec::with_capacity(CHUNK_BYTES);
    let mut arrived = Instant::now();
    loop {
        let now = *mode.borrow_and_update();
        let wait = match now {
            Mode::Reset => return Err(Broken),
            Mode::Drop => {
                changed(mode).await;
                continue;
            }
            _ if pending.is_empty() => {
                tokio::select! {
                    read = from.read_buf(&mut pending) => match read {
                        Ok(0) => return into.shutdown().await.map_err(|_| Broken),
                        Ok(_) => arrived = Instant::now(),
                        Err(_) => return Err(Broken),
                    },
                    () = changed(mode) => {}
                }
                continue;
            }
            Mode::Pass | Mode::Trickle(..) => arrived,
            Mode::Delay(delay) => arrived + delay,
        };
        let most = if let Mode::Trickle(bytes, _) = now { bytes.clamp(1, pending.len()) } else { pending.len() };
        let carried = async {
            tokio::time::sleep_until(wait).await;
            into.write(&pending[..most]).await
        };
        tokio::select! {
            written = carried => match written {
                Ok(0) | Err(_) => return Err(Broken),
                Ok(written) => drop(pending.drain(..written)),
            },
            () = changed(mode) => continue,
        }
        if let Mode::Trickle(_, pause) = now {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = changed(mode) => {}
            }
        }
    }
}

/// Waits for another mode; for ever once there will be none, because then the proxy ends.
async fn changed(mode: &mut watch::Receiver<Mode>) {
    if mode.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What must happen happens within this; what must not is looked for this long at least, divided by a hundred.
    const WITHIN: Duration = Duration::from_secs(10);

    /// How long silence is listened to before it counts.
    const SILENCE: Duration = Duration::from_millis(60);

    /// Sends back whatever it gets, and closes when its client does.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback is there");
        let address = listener.local_addr().expect("it has an address");
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                    let _ = write.shutdown().await;
                });
            }
        });
        address
    }

    async fn line() -> (Proxy, TcpStream) {
        let proxy = Proxy::start(echo().await).expect("a proxy");
        let client = TcpStream::connect(proxy.address()).await.expect("it accepts");
        (proxy, client)
    }

    async fn hear(client: &mut TcpStream, bytes: usize) -> io::Result<Vec<u8>> {
        let mut heard = vec![0; bytes];
        tokio::time::timeout(WITHIN, client.read_exact(&mut heard)).await.expect("in time")?;
        Ok(heard)
    }

    async fn is_silent(client: &mut TcpStream) -> bool {
        let mut byte = [0];
        tokio::time::timeout(SILENCE, client.read(&mut byte)).await.is_err()
    }

    async fn say_and_hear(client: &mut TcpStream, text: &[u8]) {
        client.write_all(text).await.expect("it takes it");
        assert_eq!(hear(client, text.len()).await.expect("an echo"), text);
    }

    #[tokio::test]
    async fn a_whole_line_carries_everything_and_both_ends_see_the_close() {
        let (proxy, mut client) = line().await;
        let long = vec![7; 3 * CHUNK_BYTES + 1];
        say_and_hear(&mut client, b"hello").await;
        let (mut read, mut write) = client.split();
        let mut heard = vec![0; long.len()];
        let (sent, read) = tokio::join!(write.write_all(&long), read.read_exact(&mut heard));
        assert!(sent.is_ok() && read.is_ok() && heard == long);
        client.shutdown().await.expect("it closes");
        assert_eq!(client.read(&mut [0]).await.expect("a close, no break"), 0);
        let deadline = Instant::now() + WITHIN;
        while proxy.live() > 0 {
            assert!(Instant::now() < deadline, "it does not forget the connection");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(proxy.accepted(), 1);
    }

    #[tokio::test]
    async fn what_is_sent_while_packets_are_lost_arrives_when_they_are_not() {
        for direction in [Direction::ToServer, Direction::ToClient] {
            let (proxy, mut client) = line().await;
            say_and_hear(&mut client, b"before").await;
            proxy.set(direction, Mode::Drop);
            client.write_all(b"lost").await.expect("the kernel takes it");
            assert!(is_silent(&mut client).await, "{direction:?}");
            proxy.set(direction, Mode::Pass);
            assert_eq!(hear(&mut client, 4).await.expect("it arrives"), b"lost");
        }
    }

    #[tokio::test]
    async fn a_delay_makes_everything_late_and_loses_nothing() {
        let (proxy, mut client) = line().await;
        proxy.set(Direction::ToClient, Mode::Delay(2 * SILENCE));
        client.write_all(b"late").await.expect("it takes it");
        assert!(is_silent(&mut client).await);
        assert_eq!(hear(&mut client, 4).await.expect("it arrives"), b"late");
    }

    #[tokio::test]
    async fn a_reset_breaks_live_connections_and_new_ones_until_it_ends() {
        let (proxy, mut client) = line().await;
        say_and_hear(&mut client, b"before").await;
        proxy.set_both(Mode::Reset);
        let broken = tokio::time::timeout(WITHIN, client.read(&mut [0])).await.expect("in time");
        assert_eq!(broken.expect_err("a reset").kind(), io::ErrorKind::ConnectionReset);
        // The reset may come before the connection is even known to be there.
        if let Ok(mut next) = TcpStream::connect(proxy.address()).await {
            assert!(hear(&mut next, 1).await.is_err());
        }
        proxy.set_both(Mode::Pass);
        let mut last = TcpStream::connect(proxy.address()).await.expect("it accepts");
        say_and_hear(&mut last, b"after").await;
        proxy.reset_once().await;
        assert!(hear(&mut last, 1).await.is_err());
        let mut again = TcpStream::connect(proxy.address()).await.expect("it accepts");
        say_and_hear(&mut again, b"again").await;
    }

    #[tokio::test]
    async fn a_stranded_connection_is_silent_for_good_and_a_new_one_is_not() {
        let (proxy, mut client) = line().await;
        say_and_hear(&mut client, b"before").await;
        proxy.strand();
        client.write_all(b"lost").await.expect("the kernel takes it");
        let mut next = TcpStream::connect(proxy.address()).await.expect("it accepts");
        say_and_hear(&mut next, b"after").await;
        proxy.set_both(Mode::Pass);
        assert!(is_silent(&mut client).await);
    }

    #[tokio::test]
    async fn a_trickle_carries_a_few_bytes_at_a_time() {
        let (proxy, mut client) = line().await;
        proxy.set(Direction::ToClient, Mode::Trickle(2, 3 * SILENCE));
        client.write_all(b"drop by drop").await.expect("it takes it");
        assert_eq!(hear(&mut client, 2).await.expect("the first"), b"dr");
        assert!(is_silent(&mut client).await);
        proxy.set(Direction::ToClient, Mode::Pass);
        assert_eq!(hear(&mut client, 10).await.expect("the rest"), b"op by drop");
    }

    #[tokio::test]
    async fn without_a_server_the_client_is_told_at_once() {
        // The discard port: no server uses it, and no other test gets it.
        let proxy = Proxy::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 9))).expect("a proxy");
        if let Ok(mut client) = TcpStream::connect(proxy.address()).await {
            assert!(hear(&mut client, 1).await.is_err());
        }
    }
}
