//! A site of pods: answers its version to every request, and may keep a visitor waiting for an answer that it has made already.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::until;

/// Time for a client to send its request; it is a cache on the same machine.
const REQUEST_WITHIN: Duration = Duration::from_secs(60);

/// Bytes of a request.
const REQUEST_BYTES_MAX: u64 = 64 * 1024;

/// The site. Ends when dropped; answers that are held then break off.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    version: String,
    /// Further headers of each answer.
    headers: Vec<(String, String)>,
    /// Requests whose answers wait, from the next one on.
    to_hold: u32,
    held: u32,
    /// Held answers that may go.
    released: u32,
    asked: u32,
    is_ending: bool,
}

impl Site {
    /// One of this version, whose answers carry these headers.
    pub fn start(version: &str, headers: &[(&str, &str)]) -> Site {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (version, is_ending) = (version.to_owned(), false);
        let state = State { version, headers, to_hold: 0, held: 0, released: 0, asked: 0, is_ending };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        let thread = std::thread::spawn(move || accept(&listener, &accepting));
        Site { address, shared, thread: Some(thread) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All its pods are of this version from now on, at once. Answers that are held stay as they were made.
    pub fn deploy(&self, version: &str) {
        version.clone_into(&mut self.shared.lock().version);
    }

    /// The answer to the next request is made when it comes, and is sent once [`Site::release`] lets it go.
    pub fn hold_next(&self) {
        self.shared.lock().to_hold += 1;
    }

    /// Waits until this many answers are held at once.
    pub async fn until_held(&self, answers: u32) {
        until("answers are held", async || self.shared.lock().held >= answers).await;
    }

    /// Lets all held answers go.
    pub fn release(&self) {
        let mut state = self.shared.lock();
        state.released = state.held;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Requests so far.
    pub fn asked(&self) -> u32 {
        self.shared.lock().asked
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.shared.lock().is_ending = true;
        self.shared.changed.notify_all();
        // It waits for a connection, and looks then.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the answer to a request that has come, and waits where it is to be held; `None` once the site ends.
    fn answer(&self) -> Option<String> {
        let mut state = self.lock();
        state.asked += 1;
        let body = format!("{{\"version\": \"{}\"}}\n", state.version);
        let named = state.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nX-Version: {version}\r\n\
             ETag: \"{version}\"\r\nConnection: close\r\n{}\r\n{body}",
            body.len(),
            named.collect::<String>(),
            version = state.version,
        );
        if state.to_hold > 0 {
            (state.to_hold, state.held) = (state.to_hold - 1, state.held + 1);
            let mut state = self
                .changed
                .wait_while(state, |state| state.released == 0 && !state.is_ending)
                .unwrap_or_else(PoisonError::into_inner);
            (state.held, state.released) = (state.held - 1, state.released.saturating_sub(1));
            return (!state.is_ending).then_some(answer);
        }
        Some(answer)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept() {
        if shared.lock().is_ending {
            return;
        }
        let shared = Arc::clone(shared);
        // A client that breaks off costs only itself.
        std::thread::spawn(move || serve(stream, &shared));
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_WITHIN))?;
    let mut lines = BufReader::new(stream.try_clone()?).take(REQUEST_BYTES_MAX).lines();
    loop {
        // Nothing more: it went away before it had asked.
        let Some(line) = lines.next().transpose()? else { return Ok(()) };
        if line.is_empty() {
            break;
        }
    }
    match shared.answer() {
        Some(answer) => stream.write_all(answer.as_bytes()),
        None => Ok(()),
    }
}
