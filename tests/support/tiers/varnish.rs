//! A real `varnishd` of one's own, on loopback: a tier of a CDN.
//!
//! It binds a port of the system's choice and is asked which. Its commands travel over its standard input, so no second port,
//! no secret, and it ends by itself when this process is gone, however that ended. The service of the Debian package is
//! not used.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const PROGRAM: &str = "varnishd";

/// A command is answered within 5 ms on a quiet machine, the one that compiles the VCL within 100 ms; two full cores make that
/// ten times as long.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// How long it may take to end by itself; it takes 20 ms. Then it is killed, and its worker ends with it.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Bytes of one answer: a list of bans is the longest that is asked for.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Storage and threads are bounded, nothing is kept beyond what the answer itself says, and what a visitor accepts travels on as it is:
/// a key of CloudFront has it.
const ARGUMENTS: [&str; 20] = [
    "-d", // commands on standard input, and never a daemon
    "-jnone",
    "-a127.0.0.1:0",
    "-f", // none yet; the next argument is empty
    "",
    "-smalloc,16m",
    "-sTransient=malloc,8m",
    "-l2m",
    "-pthread_pools=1",
    "-pthread_pool_min=5",
    "-pthread_pool_max=50",
    "-pthread_pool_reserve=1",
    "-pdefault_ttl=0",
    "-pdefault_grace=0",
    "-pdefault_keep=0",
    "-phttp_gzip_support=off",
    "-pcli_limit=64k",
    "-pcli_timeout=60",
    "-pping_interval=0",
    "-pcc_command=exec gcc -O0 -w -fpic -shared -o %o %s", // four times as fast to start as by default
];

const VCL: &str = include_str!("tier.vcl");

/// What a tier is called and where it asks.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// As CloudFront names its points of presence: `FRA56-P1`.
    pub pop: &'static str,
    /// The next tier, or the site.
    pub next: SocketAddr,
    /// Whether visitors come to it.
    pub is_outermost: bool,
}

/// A running tier. Ended when dropped.
#[derive(Debug)]
pub struct Varnish {
    child: Child,
    commands: Mutex<Commands>,
    address: SocketAddr,
    directory: TempDir,
}

/// Its standard input, and its answers in order. `None` for the input once it shall end.
#[derive(Debug)]
struct Commands {
    input: Option<ChildStdin>,
    answers: Receiver<(u16, String)>,
}

impl Varnish {
    /// Starts one with an empty cache, as a tier of a CDN.
    pub fn start(place: Place) -> Varnish {
        let vcl = VCL.replace("{pop}", place.pop).replace("{next}", &place.next.port().to_string());
        Varnish::running(&vcl.replace("{is_outermost}", &place.is_outermost.to_string()))
    }

    /// Starts one with an empty cache.
    pub(super) fn running(vcl: &str) -> Varnish {
        let directory = tempfile::tempdir().expect("a directory");
        let said = File::create(directory.path().join("said")).expect("a file");
        let mut child = Command::new(PROGRAM)
            .arg("-n")
            .arg(directory.path().join("varnish"))
            .args(ARGUMENTS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said)
            .spawn()
            .unwrap_or_else(|error| panic!("failed to start {PROGRAM}: {error}: run `make test-setup` once"));
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("stdout is piped"));
        let (sender, answers) = channel();
        // Ends with the program: its output ends then.
        std::thread::spawn(move || read_answers(output, &sender));
        let commands = Mutex::new(Commands { input, answers });
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        // From here on it is ended whatever happens.
        let mut varnish = Varnish { child, commands, address, directory };
        varnish.expect_answer("its banner");
        let file = varnish.directory.path().join("tier.vcl");
        std::fs::write(&file, vcl).expect("a file");
        varnish.say(&format!("vcl.load tier {}", file.display()));
        varnish.say("vcl.use tier");
        varnish.say("start");
        let listening = varnish.say("debug.listen_address");
        let port = listening.split_whitespace().last().and_then(|port| port.parse().ok());
        let port: u16 = port.unwrap_or_else(|| panic!("no port in {listening:?}"));
        varnish.address.set_port(port);
        varnish
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id; that of its manager.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Forgets what is stored under `path`, of all hosts; `*` at its end is any end, as in a path of CloudFront.
    pub fn forget(&self, path: &str) {
        self.say(&format!("ban req.url ~ {}", expression(path)));
    }

    /// Gives it a command and returns its answer.
    pub fn say(&self, command: &str) -> String {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        let input = commands.input.as_mut().expect("it runs");
        let sent = input.write_all(format!("{command}\n").as_bytes());
        let answer = sent.map_err(|error| error.to_string()).and_then(|()| commands.answer());
        drop(commands);
        answer.unwrap_or_else(|error| panic!("{command}: {error}; {PROGRAM} said: {}", self.said()))
    }

    fn expect_answer(&self, what: &str) {
        let answer = self.commands.lock().unwrap_or_else(PoisonError::into_inner).answer();
        answer.unwrap_or_else(|error| panic!("{what}: {error}; {PROGRAM} said: {}", self.said()));
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("said")).unwrap_or_default()
    }
}

impl Commands {
    /// The next answer; 200 is the status of those that did what was asked.
    fn answer(&self) -> Result<String, String> {
        match self.answers.recv_timeout(ANSWER_WITHIN) {
            Ok((200, text)) => Ok(text),
            Ok((status, text)) => Err(format!("{status}: {text}")),
            Err(RecvTimeoutError::Timeout) => Err("no answer in time".to_owned()),
            Err(RecvTimeoutError::Disconnected) => Err("it has ended".to_owned()),
        }
    }
}

impl Drop for Varnish {
    fn drop(&mut self) {
        // It ends when its input does.
        self.commands.get_mut().unwrap_or_else(PoisonError::into_inner).input = None;
        let deadline = Instant::now() + END_WITHIN;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(2));
        }
        // By its process id, and reaped: where it has ended already there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads answers until there are no more: a line with the status and the length, the text, and the end of a line.
fn read_answers(output: ChildStdout, answers: &Sender<(u16, String)>) {
    let mut output = BufReader::new(output);
    while let Ok(answer) = read_answer(&mut output) {
        if answers.send(answer).is_err() {
            return;
        }
    }
}

fn read_answer(output: &mut impl Read) -> io::Result<(u16, String)> {
    // "200 14      \n": 13 bytes (vcli.h, CLI_LINE0_LEN).
    let mut head = [0_u8; 13];
    output.read_exact(&mut head)?;
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut numbers = head.split_whitespace().map(str::parse::<usize>);
    let (Some(Ok(status)), Some(Ok(length @ 0..=ANSWER_BYTES_MAX))) = (numbers.next(), numbers.next()) else {
        return Err(io::Error::other("not an answer"));
    };
    let mut text = vec![0_u8; length + 1];
    output.read_exact(&mut text)?;
    let status = u16::try_from(status).map_err(io::Error::other)?;
    Ok((status, String::from_utf8_lossy(&text).trim_end().to_owned()))
}

/// A path of an invalidation as an expression over request targets. Only a `*` at its end is no letter; what could mean anything in
/// an expression or in a command is written as its number, with two backslashes: the first is the command's.
fn expression(path: &str) -> String {
    let (path, end) = path.strip_suffix('*').map_or((path, "$"), |start| (start, ""));
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'_' | b'-' => char::from(byte).to_string(),
        _ => format!("\\\\x{byte:02x}"),
    };
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("^{slash}{}{end}", path.bytes().map(letter).collect::<String>())
}
