//! `allclear mcp`: what `status`, `explain` and `history` say, and whether an edge is purged, as tools of the Model Context
//! Protocol over standard input and output, for programs that ask on behalf of a model. Nothing can be changed by it: it has
//! no tool that writes.
//!
//! Standard output has messages of the protocol alone. Reading and writing block, so each has a thread of its own: an end by
//! SIGTERM waits for neither. Not for what is answered; that is `answers`.

mod answers;
mod lines;
mod protocol;
mod serve;
#[cfg(test)]
mod tests;
mod tools;

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::adapters::kubernetes;
use crate::cli::answer::{failed, progress};
use crate::config::Inputs;
use answers::{Caller, answered};
use lines::{LINE_BYTES_MAX, Line};

/// Lines that were read, or answers, that wait to be taken up. Beyond them, reading or answering waits.
const WAITING_MAX: usize = 4;

/// How long the last answers may take to be written, once nothing else is to be done.
const WRITTEN_WITHIN: Duration = Duration::from_secs(1);

/// Serves one client, until its end of the input, SIGTERM or SIGINT. Exit code 0 for all of them.
pub fn mcp(inputs: &Inputs<'_>, kubernetes: kubernetes::Options) -> ExitCode {
    // A plugin for credentials would take the standard input for a person, who could be asked for a password.
    let caller = Caller { inputs, kubernetes: kubernetes::Options { unattended: true, ..kubernetes } };
    actix::System::new().block_on(async {
        let (mut terminate, mut interrupt) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
            (Err(error), _) | (_, Err(error)) => return failed(&format!("failed to listen for signals: {error}")),
        };
        let (lines, (out, written)) = match (reader(), writer()) {
            (Ok(lines), Ok(out)) => (lines, out),
            (Err(error), _) | (_, Err(error)) => return failed(&format!("failed to start a thread: {error}")),
        };
        let served = async {
            serve::serve(lines, out, async |asked| answered(&caller, asked).await).await;
            let _ = timeout(WRITTEN_WITHIN, written).await;
        };
        tokio::select! {
            () = served => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        ExitCode::SUCCESS
    })
}

/// The lines of standard input. The thread ends with it, or with the process.
fn reader() -> io::Result<mpsc::Receiver<Line>> {
    let (heard, lines) = mpsc::channel(WAITING_MAX);
    let read = move || {
        let taken = |line| heard.blocking_send(line).is_ok();
        if let Err(error) = lines::each(io::stdin().lock(), LINE_BYTES_MAX, taken) {
            progress(&format!("error: failed to read the standard input: {error}"));
        }
    };
    thread::Builder::new().name("mcp-in".to_owned()).spawn(read)?;
    Ok(lines)
}

/// The way to standard output, and when all is written. A reader that has gone away is not an error of ours.
fn writer() -> io::Result<(mpsc::Sender<String>, oneshot::Receiver<()>)> {
    let (out, mut lines) = mpsc::channel::<String>(WAITING_MAX);
    let (written, is_written) = oneshot::channel();
    let write = move || {
        let mut stdout = io::stdout().lock();
        while let Some(line) = lines.blocking_recv() {
            if writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_err() {
                break;
            }
        }
        let _ = written.send(());
    };
    thread::Builder::new().name("mcp-out".to_owned()).spawn(write)?;
    Ok((out, is_written))
}
