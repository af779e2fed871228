//! The controller under measurement: a process of its own, looked at from outside only.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// Clock ticks per second in `/proc/<pid>/stat`: `USER_HZ`, which is 100 on every architecture Rust supports on Linux.
const TICKS_PER_SECOND: u64 = 100;

/// How often something that is waited for is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Nothing that is waited for takes longer than this, or it never happens.
const PATIENCE: Duration = Duration::from_secs(120);

/// The process. Dropping it kills it.
pub struct Controller {
    child: Child,
    address: SocketAddr,
    born: Instant,
}

/// Memory of a process, in MiB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// All that is resident, the program's own pages included.
    pub resident: f64,
    /// What of it is anonymous: heap and stacks.
    pub anonymous: f64,
    /// The most that ever was resident.
    pub peak: f64,
}

impl Controller {
    /// Starts `program` in this environment and nothing else; returns when it serves HTTP.
    pub async fn start(program: &str, environment: &BTreeMap<String, String>) -> io::Result<Self> {
        Self::start_with(program, &["run"], environment).await
    }

    /// The same, with these arguments.
    pub async fn start_with(
        program: &str,
        arguments: &[&str],
        environment: &BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let born = Instant::now();
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(environment).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child =
            command.spawn().map_err(|error| io::Error::other(format!("failed to start {program}: {error}")))?;
        let (found, address) = oneshot::channel();
        let log = child.stderr.take();
        std::thread::spawn(move || follow_log(log.map(BufReader::new), found));
        let ended = |_| io::Error::other("the controller ended before it served HTTP; its log is above");
        let address = address.await.map_err(ended)?;
        Ok(Self { child, address, born })
    }

    /// Waits until it is ready; returns the time since its start.
    pub async fn ready(&self) -> io::Result<Duration> {
        self.wait("readiness", async || Ok(self.get("/readyz").await?.starts_with("HTTP/1.1 200"))).await
    }

    /// Waits until a metric has this value; returns the time since its start.
    pub async fn metric_is(&self, name: &str, value: usize) -> io::Result<Duration> {
        let line = format!("\n{name} {value}\n");
        self.wait(&format!("{name} {value}"), async || Ok(self.get("/metrics").await?.contains(&line))).await
    }

    /// Waits until its state has this text, blanks aside; returns the time since its start.
    pub async fn state_has(&self, text: &str) -> io::Result<Duration> {
        let has = |state: String| state.split_whitespace().collect::<String>().contains(text);
        self.wait(text, async || Ok(has(self.get("/api/v1/state").await?))).await
    }

    async fn wait(&self, what: &str, mut happened: impl AsyncFnMut() -> io::Result<bool>) -> io::Result<Duration> {
        let from = Instant::now();
        while !happened().await? {
            if from.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("waited in vain for {what}")));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(self.born.elapsed())
    }

    async fn get(&self, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer.replace("\r\n", "\n"))
    }

    pub fn memory(&self) -> io::Result<Memory> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let mebibytes = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
            let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
            kibibytes
                .map(|kibibytes| kibibytes / 1024.0)
                .ok_or_else(|| io::Error::other(format!("no {field} in status")))
        };
        Ok(Memory { resident: mebibytes("VmRSS")?, anonymous: mebibytes("RssAnon")?, peak: mebibytes("VmHWM")? })
    }

    /// The processor time it has used so far.
    pub fn cpu(&self) -> io::Result<Duration> {
        processor_time(&self.child.id().to_string())
    }

    /// Ends it as Kubernetes would; returns the time that took.
    pub async fn stop(mut self) -> io::Result<Duration> {
        let from = Instant::now();
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        while self.child.try_wait()?.is_none() {
            if from.elapsed() > PATIENCE {
                return Err(io::Error::other("it does not end"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(from.elapsed())
    }
}

/// The processor time a process has used so far: one by its id, or `self`.
pub fn processor_time(process: &str) -> io::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is the name in parentheses, and may hold anything; utime and stime are fields 14 and 15.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ').skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}

impl Drop for Controller {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Finds in the log where HTTP is served, passes warnings and what is no log on, and keeps the pipe from filling up.
fn follow_log(log: Option<impl BufRead>, found: oneshot::Sender<SocketAddr>) {
    let mut found = Some(found);
    for line in log.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
        let entry: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let field = |name: &str| entry.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        if field("message") == "started"
            && let Ok(address) = field("page").parse()
        {
            found.take().map(|found| found.send(address));
        }
        if field("level") != "INFO" {
            eprintln!("{line}");
        }
    }
}
