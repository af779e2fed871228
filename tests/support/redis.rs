//! A real `redis-server` of one's own, on loopback; what goes wrong with it fails the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sandbox::redis_server::RedisServer;
use tokio::net::{TcpListener, TcpStream};

/// A running Redis without persistence. Killed when dropped.
pub struct Redis {
    server: RedisServer,
}

impl Redis {
    /// Starts one that forgets everything when it ends.
    pub fn start() -> Redis {
        Self::start_with(&[])
    }

    /// Starts one with further options, for example `["--maxmemory", "1mb"]`.
    pub fn start_with(arguments: &[&str]) -> Redis {
        let server = RedisServer::start_with(arguments);
        Redis { server: server.unwrap_or_else(|error| panic!("{error}: run `make test-setup` once")) }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// Runs a command from outside, on a connection of its own.
    pub fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let (name, arguments) = words.split_first().expect("a command");
        let mut connection =
            redis::Client::open(self.url()).and_then(|client| client.get_connection()).expect("a connection to Redis");
        redis::cmd(name).arg(arguments).query(&mut connection).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// What it answers to a command, as it is on the wire.
    pub fn say(&self, words: &[&str]) -> String {
        self.server.say(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Waits until its answer to a command has these words in it.
    pub async fn until(&self, words: &[&str], said: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.say(words).contains(said) {
            assert!(Instant::now() < deadline, "{words:?}: {}", self.say(words));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Kills it without warning.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts it again on the same port, empty.
    pub fn start_again(&mut self) {
        self.server.start_again().expect("it starts again");
    }

    /// Stops it from answering, as a paused machine would; connections are still accepted.
    pub fn pause(&self) {
        self.server.pause().expect("it can be stopped");
    }

    /// Lets it go on; it then carries out what had arrived meanwhile.
    pub fn resume(&self) {
        self.server.resume().expect("it can go on");
    }
}

/// One address before several servers, as a Service or a name in DNS is: new connections go to the server it leads to, open
/// ones stay where they are.
pub struct Address {
    url: String,
    port: Arc<AtomicU16>,
    connections: Arc<AtomicUsize>,
}

impl Address {
    /// One that leads to `redis` for now.
    pub async fn of(redis: &Redis) -> Address {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("redis://{}", listener.local_addr().expect("an address"));
        let (port, connections) = (Arc::new(AtomicU16::new(redis.port())), Arc::new(AtomicUsize::new(0)));
        let (leads_to, counted) = (Arc::clone(&port), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let port = leads_to.load(Ordering::SeqCst);
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(("127.0.0.1", port)).await else { return };
                    // It ends when either end does; how is no matter here.
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Address { url, port, connections }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// From now on it leads to `redis`.
    pub fn lead_to(&self, redis: &Redis) {
        self.port.store(redis.port(), Ordering::SeqCst);
    }

    /// Fails over: `new` takes over all that `old` has and becomes the primary, `old` its replica, and the address leads to
    /// `new`. Connections to `old` stay open.
    pub async fn fail_over(&self, old: &Redis, new: &Redis) {
        // At once, and not after the five seconds in which another replica might come.
        old.command::<()>(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
        new.command::<()>(&["REPLICAOF", "127.0.0.1", &old.port().to_string()]);
        new.until(&["INFO", "replication"], "master_link_status:up").await;
        new.command::<()>(&["REPLICAOF", "NO", "ONE"]);
        old.command::<()>(&["REPLICAOF", "127.0.0.1", &new.port().to_string()]);
        self.lead_to(new);
    }
}
