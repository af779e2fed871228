//! An answer again and again, printed when it has changed, until Ctrl-C.
//!
//! Not for a screen that is drawn over; that is `status --watch`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::cli::answer::Outcome;
use kernel::text::visible_lines;

/// Time between two questions, so also between two answers: each reads the API server, the ledger and CloudFront.
const ASKED_EVERY: Duration = Duration::from_secs(5);

/// Asks until Ctrl-C, or until the reader of the answers has gone away.
pub(super) async fn again(ask: impl AsyncFn() -> Outcome) -> ExitCode {
    let mut last = None;
    let asking = async {
        loop {
            let outcome = ask().await;
            if last.as_ref() != Some(&outcome) && !written(&outcome, last.is_some()) {
                return;
            }
            last = Some(outcome);
            tokio::time::sleep(ASKED_EVERY).await;
        }
    };
    tokio::select! {
        () = asking => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    ExitCode::SUCCESS
}

/// False once the reader of standard output is gone.
fn written(outcome: &Outcome, follows: bool) -> bool {
    let blank = if follows { "\n" } else { "" };
    let mut stdout = io::stdout().lock();
    let out = format!("{blank}{}", visible_lines(&outcome.out));
    let _ = io::stderr().write_all(visible_lines(&outcome.err).as_bytes());
    stdout.write_all(out.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}
