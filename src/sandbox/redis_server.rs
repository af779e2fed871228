//! A real `redis-server` of one's own, on loopback, without persistence: a process that is killed when its owner is dropped.
//!
//! Not for the tests of what Redis keeps: this one forgets everything when it ends.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::world::directory;

/// The program, found through `PATH`.
pub const PROGRAM: &str = "redis-server";

/// Redis answers within 20 ms of its start on a quiet machine; two busy cores make that a hundred times as long.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Attempts to find a port that is still free when Redis binds it: it cannot be asked to choose one.
const PORT_ATTEMPTS: usize = 5;

/// How long a lone `PING` may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Bytes of an answer that are read: enough for a status, a number, or a record.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A running Redis. Killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    port: u16,
    arguments: Vec<String>,
    directory: PathBuf,
}

impl RedisServer {
    /// Starts one.
    ///
    /// # Errors
    /// When there is no such program, or it does not answer on any port.
    pub fn start() -> io::Result<Self> {
        Self::start_with(&[])
    }

    /// Starts one with further options, for example `["--maxmemory", "1mb"]`; the first may be a file of options.
    ///
    /// # Errors
    /// When there is no such program, or it does not answer on any port.
    pub fn start_with(arguments: &[&str]) -> io::Result<Self> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        for _ in 0..PORT_ATTEMPTS {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let port = free.local_addr()?.port();
            drop(free);
            let directory = directory()?;
            let child = match spawn(port, &directory, &arguments) {
                Ok(child) => child,
                Err(error) => {
                    let _ = std::fs::remove_dir_all(&directory);
                    return Err(error);
                }
            };
            let mut server = Self { child, port, arguments: arguments.clone(), directory };
            if server.answers() {
                return Ok(server);
            }
        }
        Err(io::Error::other(format!("{PROGRAM} did not start on any of {PORT_ATTEMPTS} free ports")))
    }

    /// Whether there is such a program here.
    pub fn is_installed() -> bool {
        let quiet =
            |command: &mut Command| command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet(Command::new(PROGRAM).arg("--version")).is_ok_and(|status| status.success())
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Where it keeps its files, if options make it keep any.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Sends a command from outside, on a connection of its own, with the password it was started with, and returns the first
    /// bytes of what it says, as they are on the wire: `+OK`, `-ERR …`, `:3`.
    ///
    /// # Errors
    /// When it does not answer within a second.
    pub fn say(&self, words: &[&str]) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address(), ANSWER_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        let password = self.arguments.iter().skip_while(|argument| *argument != "--requirepass").nth(1);
        if let Some(password) = password {
            ask(&mut stream, &["AUTH", password])?;
        }
        ask(&mut stream, words)
    }

    /// Kills it without warning. Everything it held is lost.
    pub fn kill(&mut self) {
        // By its process id, and reaped: it may have ended by itself, then there is nothing to do. A stopped one dies too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again on the same port, empty.
    ///
    /// # Errors
    /// If it does not start, for example because another process has taken the port.
    pub fn start_again(&mut self) -> io::Result<()> {
        self.kill();
        self.child = spawn(self.port, &self.directory, &self.arguments)?;
        if self.answers() {
            Ok(())
        } else {
            Err(io::Error::other(format!("{PROGRAM} did not start on port {}", self.port)))
        }
    }

    /// Stops it from answering, as a paused machine would; connections are still accepted.
    ///
    /// # Errors
    /// When it cannot be signalled.
    pub fn pause(&self) -> io::Result<()> {
        self.signal("-STOP")
    }

    /// Lets it go on; it then carries out what had arrived meanwhile.
    ///
    /// # Errors
    /// When it cannot be signalled.
    pub fn resume(&self) -> io::Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> io::Result<()> {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status()?;
        if sent.success() { Ok(()) } else { Err(io::Error::other(format!("failed to send {signal} to {PROGRAM}"))) }
    }

    /// Waits until Redis itself answers; false if it ended before. An error is an answer too: it may want a password.
    fn answers(&mut self) -> bool {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return false;
            }
            if self.say(&["PING"]).is_ok_and(|answer| answer.starts_with(['+', '-'])) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        // The system empties its temporary directory too; leaving something there is no failure.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// One command and the first bytes of its answer.
fn ask(stream: &mut TcpStream, words: &[&str]) -> io::Result<String> {
    let parts = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let command = format!("*{}\r\n{}", words.len(), parts.collect::<String>());
    stream.write_all(command.as_bytes())?;
    let mut answer = vec![0_u8; ANSWER_BYTES_MAX];
    let length = stream.read(&mut answer)?;
    answer.truncate(length);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn spawn(port: u16, directory: &Path, arguments: &[String]) -> io::Result<Child> {
    let (file, options) = arguments.split_at(usize::from(arguments.first().is_some_and(|one| !one.starts_with("--"))));
    Command::new(PROGRAM)
        .args(file)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(options)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("failed to start {PROGRAM}: {error}")))
}
