//! What a test logs, for tests of how often something is said.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Dispatch, Level};

/// Lives as long as the process. While a process has one subscriber, a line of code that first logs in a thread without it is off in
/// all threads (`Rebuilder::JustOne` in tracing-core), and a test that listens beside others would hear nothing of it.
static SECOND: LazyLock<Dispatch> =
    LazyLock::new(|| Dispatch::new(tracing_subscriber::fmt().with_writer(io::sink).finish()));

/// What this thread logs until the guard is dropped.
pub fn listen() -> (Log, DefaultGuard) {
    LazyLock::force(&SECOND);
    let log = Log::default();
    let writer = log.clone();
    let format = tracing_subscriber::fmt().without_time().with_ansi(false).with_max_level(Level::DEBUG);
    (log, set_default(format.with_writer(move || writer.clone()).finish()))
}

#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    pub fn times(&self, words: &str) -> usize {
        self.text().matches(words).count()
    }

    /// Lines of this level that have all the words.
    pub fn lines(&self, level: &str, words: &[&str]) -> Vec<String> {
        let wanted = |line: &&str| line.trim_start().starts_with(level) && words.iter().all(|word| line.contains(word));
        self.text().lines().filter(wanted).map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
