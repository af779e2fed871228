//! `allclear run`: the controller, until it is told to stop.

use std::mem::ManuallyDrop;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use crate::app::{self, Overrides, StartError};
use crate::cli::answer::{EXIT_INVALID, Output, failed, print};
use crate::cli::config::refused;
use crate::cli::explain;
use crate::config::{Config, Inputs, Loaded, load};
use crate::telemetry;

/// Runs until SIGTERM or SIGINT (exit code 0), or until it has to give up (1). A configuration that is refused is told
/// with everything that is wrong with it (2).
pub fn run(inputs: &Inputs<'_>, overrides: Overrides) -> ExitCode {
    let overrides = Overrides { explains: Some(explain::live::explains), ..overrides };
    let Loaded { config, effective: _, warnings } = match load(inputs) {
        Ok(loaded) => loaded,
        Err(invalid) => return print(&refused(&invalid, Output::Table)),
    };
    if let Err(error) = telemetry::start_logging(&config.log.level, config.log.format) {
        return failed(&error);
    }
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    // Never dropped: the runtime would wait there, without bound, for a name that is being looked up.
    let system = ManuallyDrop::new(actix::System::new());
    system.block_on(live(&config, overrides))
}

async fn live(config: &Config, overrides: Overrides) -> ExitCode {
    let (mut terminate, mut interrupt) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        (Err(error), _) | (_, Err(error)) => return failed(&format!("failed to listen for signals: {error}")),
    };
    let starting = app::start(config, overrides);
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
    tracing::info!("stopping; what is under way is resumed by the next life");
    tokio::select! {
        () = running.stop() => {}
        _ = terminate.recv() => tracing::warn!("stopping at once"),
        _ = interrupt.recv() => tracing::warn!("stopping at once"),
    }
    code
}
