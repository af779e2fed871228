//! A real `redis-server` of one's own, on loopback.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Redis answers within 20 ms of its start on a quiet machine; two busy cores make that a hundred times as long.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Attempts to find a port that is still free when Redis binds it: it cannot be asked to choose one.
const PORT_ATTEMPTS: usize = 5;

/// A running Redis without persistence. Killed when dropped.
pub struct Redis {
    child: Child,
    port: u16,
    arguments: Vec<String>,
    directory: tempfile::TempDir,
}

impl Redis {
    /// Starts one that forgets everything when it ends.
    pub fn start() -> Redis {
        Self::start_with(&[])
    }

    /// Starts one with further options, for example `["--maxmemory", "1mb"]`.
    pub fn start_with(arguments: &[&str]) -> Redis {
        let directory = tempfile::tempdir().expect("a directory for redis-server");
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        for _ in 0..PORT_ATTEMPTS {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
            let port = free.local_addr().expect("its address").port();
            drop(free);
            let mut child = spawn(port, directory.path(), &arguments);
            if answers(&mut child, port) {
                return Redis { child, port, arguments, directory };
            }
            stop(&mut child);
        }
        panic!("redis-server did not start on any of {PORT_ATTEMPTS} free ports");
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
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
        stop(&mut self.child);
    }

    /// Starts it again on the same port, empty.
    pub fn start_again(&mut self) {
        stop(&mut self.child);
        self.child = spawn(self.port, self.directory.path(), &self.arguments);
        assert!(answers(&mut self.child, self.port), "redis-server did not start again on port {}", self.port);
    }

    /// Stops it from answering, as a paused machine would; connections are still accepted.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on; it then carries out what had arrived meanwhile.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill");
        assert!(sent.success(), "failed to send {signal}");
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

fn spawn(port: u16, directory: &std::path::Path, arguments: &[String]) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("failed to start redis-server ({error}): run `make test-setup` once"))
}

fn stop(child: &mut Child) {
    // By its process id, and reaped: it may have ended by itself, then there is nothing to do.
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits until Redis itself answers; false if it ended before. An error is an answer too: it may want a password.
fn answers(child: &mut Child, port: u16) -> bool {
    let deadline = Instant::now() + START_TIMEOUT;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return false;
        }
        if answered(port).unwrap_or(false) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

fn answered(port: u16) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(b"PING\r\n")?;
    let mut first = [0_u8; 1];
    stream.read_exact(&mut first)?;
    Ok(matches!(first, [b'+' | b'-']))
}
