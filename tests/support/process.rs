//! The program as a process of its own: started, watched through its log and its port, and ended by a signal.
//!
//! Which program: see [`program`]. It inherits nothing of our environment. Dropping a [`Process`] kills it, so a failed test leaves none behind.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// No wait in these tests is longer. Idle machines need milliseconds; this is for those with one busy core, and for the
/// program's own longest wait here, the 15 to 30 s after CloudFront has denied a call.
pub const PATIENCE: Duration = Duration::from_secs(45);

/// How often a condition outside is looked at.
pub const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How much of a log a failed wait shows.
const TAIL_LINES: usize = 40;

/// The lines that a process has written to standard error; there also when it has ended.
pub type Written = Arc<Mutex<Vec<String>>>;

pub struct Process {
    child: Child,
    log: Written,
    /// Reads the log; ends with the process, for nobody else holds the other end of the pipe.
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts the program with these arguments, in this environment and no other.
    pub fn start(arguments: &[&str], environment: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::start_program(&program(), arguments, environment)
    }

    /// The same for another release of the program.
    pub fn start_program(
        program: &str,
        arguments: &[&str],
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let log = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&log);
        let lines = BufReader::new(child.stderr.take().expect("its standard error is ours")).lines();
        let read = move || lines.map_while(Result::ok).for_each(|line| written.lock().expect("no panic").push(line));
        let reader = Some(std::thread::spawn(read));
        Self { child, log, reader }
    }

    /// Where its lines go.
    pub fn written(&self) -> Written {
        Arc::clone(&self.log)
    }

    /// Everything it has written to standard error so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().expect("no panic").clone()
    }

    /// The end of that, for a message about something that did not happen.
    pub fn tail(&self) -> String {
        let log = self.log();
        log[log.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// The log lines of at least this level (`"WARN"` includes errors), as one text each.
    pub fn complaints(&self) -> Vec<String> {
        let complains = |line: &String| {
            serde_json::from_str::<Value>(line).is_ok_and(|line| line["level"] == "WARN" || line["level"] == "ERROR")
        };
        self.log().into_iter().filter(complains).collect()
    }

    /// Whether some line of the log contains this.
    pub fn said(&self, text: &str) -> bool {
        self.log().iter().any(|line| line.contains(text))
    }

    /// Where it serves a page; `None` until it says so. The release before served all of them at one address.
    pub fn address(&self, path: &str) -> Option<SocketAddr> {
        let log = self.log();
        let probed = matches!(path, "/livez" | "/readyz" | "/metrics");
        if let Some(line) = log.iter().find(|line| line.contains(r#""message":"started""#)) {
            let line = serde_json::from_str::<Value>(line).ok()?;
            let address = line.get("page").filter(|_| !probed).unwrap_or(&line["address"]);
            return address.as_str()?.parse().ok();
        }
        // The same in text format.
        let line = log.iter().find(|line| line.contains(" started version="))?;
        let name = if probed { "address=" } else { "page=" };
        line.split(' ').find_map(|word| word.strip_prefix(name))?.parse().ok()
    }

    /// The status and body of a page; `None` while nobody answers.
    pub async fn get(&self, path: &str) -> Option<(u16, String)> {
        let url = format!("http://{}{path}", self.address(path)?);
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().ok()?;
        let answer = client.get(url).send().await.ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    }

    /// What it shows of itself under `/api/v1/state`; `Null` while nobody answers.
    pub async fn state(&self) -> Value {
        let body = self.get("/api/v1/state").await.map(|(_, body)| body).unwrap_or_default();
        serde_json::from_str(&body).unwrap_or_default()
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(mut self) {
        self.end();
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, by its short name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "the process can be signalled");
    }

    /// Waits until it has ended by itself; `None` if that takes longer than `within`. Its log is complete then.
    pub async fn ended(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                self.reader.take().map(JoinHandle::join);
                return Some(status);
            }
            if Instant::now() > deadline {
                return None;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn end(&mut self) {
        // One that has ended already cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.reader.take().map(JoinHandle::join);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits for a condition; whether it came to hold within [`PATIENCE`].
pub async fn comes_true(mut condition: impl AsyncFnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        if Instant::now() > deadline {
            return false;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    true
}

/// The program under test: the one `ALLCLEAR_BIN` names (`make test` names the release build), else the one that cargo built
/// with the running test or bench, `target/<profile>/allclear` for `target/<profile>/deps/<test>`. Cargo tells its path only
/// when it compiles the test itself.
pub fn program() -> String {
    std::env::var("ALLCLEAR_BIN").unwrap_or_else(|_| {
        let test = std::env::current_exe().expect("a running test has a path");
        let profile = test.ancestors().nth(2).expect("cargo puts a test two folders deep");
        profile.join("allclear").display().to_string()
    })
}
