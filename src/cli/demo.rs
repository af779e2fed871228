//! `allclear demo`: ends with exit code 0 only if every chapter came out as announced.

use std::process::ExitCode;

use crate::cli::answer::failed;
use crate::demo;

/// Runs the demo with this many clusters. `stay` keeps everything running afterwards.
pub fn demo(clusters: u8, stay: bool) -> ExitCode {
    match demo::tell(clusters, stay) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => failed(&"the demo did not come out as announced; see the table above"),
        Err(error) => failed(&format!("the demo could not be run: {error}")),
    }
}
