//! A real `redis-server` of one's own, on loopback; what goes wrong with it fails the test.

use allclear::sandbox::redis_server::RedisServer;

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

    /// Its URL.
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
