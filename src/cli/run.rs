//! `allclear run`: the controller, until a signal stops it.

use std::io::{self, IsTerminal};
use std::mem::ManuallyDrop;
use std::process::ExitCode;
use std::time::Duration;

use actix::{System, SystemRunner};
use tokio::signal::unix::{SignalKind, signal};

use crate::adapters::kubernetes;
use crate::app::{self, Overrides, StartError};
use crate::cli::answer::{EXIT_INVALID, Output, failed, print};
use crate::cli::check::catalog::HOST_SERVED;
use crate::cli::check::{self, Finding, Mark};
use crate::cli::config::refused;
use crate::config::{Config, Inputs, Loaded, LogFormat, load};
use crate::telemetry;

/// Runs until SIGTERM or SIGINT (exit code 0), or until it has to give up (1). A refused configuration is reported
/// with everything that is wrong with it (2).
pub fn run(inputs: &Inputs<'_>, overrides: Overrides) -> ExitCode {
    let Loaded { config, effective, in_force, warnings } = match load(inputs) {
        Ok(loaded) => loaded,
        Err(invalid) => return print(&refused(&invalid, Output::Table)),
    };
    // A person who runs it by hand reads it: JSON is for what collects the logs of pods.
    let is_read = overrides.by_hand.is_some() && io::stderr().is_terminal() && effective.is_default("log.format");
    let format = if is_read { LogFormat::Text } else { config.log.format };
    let overrides = Overrides { in_force: Some(in_force), ..overrides };
    if let Err(error) = telemetry::start_logging(&config.log.level, format) {
        return failed(&error);
    }
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let is_tried = config.dry_run && overrides.by_hand.is_some();
    everlasting().block_on(live(&config, overrides, is_tried))
}

/// How long the look before a dry run may take: who tries it waits for an answer.
const FORETOLD_WITHIN: Duration = Duration::from_secs(15);

/// Says to who tries it by hand what a dry run follows, and what of it cannot be seen: at rest, nothing else would be said.
async fn foretell(config: &Config, kubernetes: &kubernetes::Options) {
    let look = async { check::foretold(config, &app::checking::outside(config, kubernetes, None).await).await };
    let Ok(findings) = tokio::time::timeout(FORETOLD_WITHIN, look).await else {
        tracing::warn!(within_s = FORETOLD_WITHIN.as_secs(), "could not look at everything in time");
        return;
    };
    for Finding { check, about, mark, reason, hint } in findings {
        match mark {
            // What it waits for is in the way, and named.
            Mark::NotTried => {}
            _ if check == HOST_SERVED => tracing::info!(sites = %reason, "looked at what it follows"),
            Mark::Failed => tracing::warn!(check = check.id, about, reason, cure = hint, "found what is in the way"),
            Mark::Good | Mark::Warning => {}
        }
    }
}

/// A system that ends with the process, and not before.
///
/// Its runtime is never dropped: it would wait, without bound, for a name that is being looked up. So the system's tasks
/// outlive `main`. They are woken when the last handle of the system goes. If that happens on a thread that is ending,
/// such as the one of Pipelines and Repos, tokio panics and the process aborts. So one handle is never dropped either.
fn everlasting() -> ManuallyDrop<SystemRunner> {
    let runner = ManuallyDrop::new(System::new());
    let _handle = ManuallyDrop::new(System::current());
    runner
}

async fn live(config: &Config, overrides: Overrides, is_tried: bool) -> ExitCode {
    let (mut terminate, mut interrupt) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        (Err(error), _) | (_, Err(error)) => return failed(&format!("failed to listen for signals: {error}")),
    };
    let starting = async {
        if is_tried {
            foretell(config, &overrides.kubernetes).await;
        }
        app::start(config, overrides).await
    };
    let started = tokio::select! {
        started = starting => started,
        _ = terminate.recv() => return ExitCode::SUCCESS,
        _ = interrupt.recv() => return ExitCode::SUCCESS,
    };
    let mut running = match started {
        Ok(running) => running,
        Err(error @ StartError::Unusable(_)) => {
            failed(&error);
            return ExitCode::from(EXIT_INVALID);
        }
        Err(error) => return failed(&error),
    };
    let code = tokio::select! {
        given_up = running.given_up() => failed(&given_up.0),
        _ = terminate.recv() => ExitCode::SUCCESS,
        _ = interrupt.recv() => ExitCode::SUCCESS,
    };
    if config.dry_run {
        tracing::info!("stopping; a dry run leaves nothing");
    } else {
        tracing::info!("stopping; what is under way is resumed by the next life");
    }
    tokio::select! {
        () = running.stop() => {}
        _ = terminate.recv() => tracing::warn!("stopping at once"),
        _ = interrupt.recv() => tracing::warn!("stopping at once"),
    }
    code
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::mpsc;

    use actix::Arbiter;
    use tokio::sync::oneshot;
    use tokio::task::yield_now;

    use super::*;

    /// Something that a thread drops last. It says so, and waits until it may go.
    struct Slow {
        going: Option<oneshot::Sender<()>>,
        may_go: mpsc::Receiver<()>,
    }

    impl Drop for Slow {
        fn drop(&mut self) {
            let told = self.going.take().map(|going| going.send(()));
            assert_eq!(told, Some(Ok(())));
            self.may_go.recv().expect_err("nothing is ever sent");
        }
    }

    /// `main` is gone before the other thread, as can happen at the end of a process. A failure aborts the test program.
    #[test]
    fn a_thread_of_actors_may_end_after_the_one_that_began_the_system() {
        let (going, is_going) = oneshot::channel();
        let (main_is_here, may_go) = mpsc::channel();
        let main = std::thread::spawn(move || {
            everlasting().block_on(async move {
                let thread = Arbiter::new();
                let slow = Slow { going: Some(going), may_go };
                thread.spawn(async move {
                    let _slow = slow;
                    pending::<()>().await;
                });
                thread.stop();
                is_going.await.expect("the thread drops what it holds");
                yield_now().await; // the system learns that the thread ends, and waits for more
                thread
            })
        });
        let thread = main.join().expect("it ends well");
        drop(main_is_here);
        thread.join().expect("it ends well");
    }
}
