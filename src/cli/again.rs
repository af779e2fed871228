//! An answer again and again, printed when it has changed, until Ctrl-C.
//!
//! Not for a screen that is drawn over; that is `status --watch`.

use std::process::ExitCode;
use std::time::Duration;

use crate::cli::answer::Outcome;
use crate::cli::screen;

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
    screen::write_err(&outcome.err);
    screen::write_out(&format!("{blank}{}", outcome.out)).is_ok()
}
