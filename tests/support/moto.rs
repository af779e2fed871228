//! moto's server: AWS's wire formats from other hands than ours, on loopback.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// moto answers within 1 to 3 s of its start on a quiet machine; two full cores make that ten times as long.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running moto server with an empty account. Killed when dropped.
pub struct Moto {
    child: Child,
    url: String,
}

impl Moto {
    /// Starts one on a port of the operating system's choice and waits until it listens.
    pub fn start() -> Moto {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/moto_server");
        assert!(program.exists(), "{} is missing: run `make test-setup` once", program.display());
        let mut child = Command::new(&program)
            .args(["--host", "127.0.0.1", "--port", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("failed to start {}: {error}", program.display()));
        let said = child.stderr.take().expect("stderr is piped");
        // From here on the server is killed whatever happens.
        let mut moto = Moto { child, url: String::new() };
        let (sender, receiver) = mpsc::channel();
        // Reads on after the start, so that the server never blocks on a full pipe; ends with the server.
        std::thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if let Some((_, url)) = line.split_once("Running on ") {
                    let _ = sender.send(url.trim().to_owned());
                }
            }
        });
        moto.url = receiver.recv_timeout(START_TIMEOUT).expect("moto did not start listening in time");
        moto
    }

    /// Its base URL, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        // By its process id, and reaped: it may have ended by itself, then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
