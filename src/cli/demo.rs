//! `allclear demo`: the real controller in a small world on this machine's loopback, told as a story with times; with
//! `--clusters 3`, three of them that are one group.
//!
//! Everything it prints was observed: Events in the clusters, invalidations at the CDN, requests at the receiver. It ends
//! with exit code 0 only if every chapter came out as announced.

mod alone;
mod clusters;
mod telling;

use std::process::ExitCode;

use crate::cli::failed;

/// Clusters the demo can play with.
pub const CLUSTERS_MAX: u8 = 5;

/// Runs the demo with this many clusters. `stay` keeps everything running afterwards.
pub fn demo(clusters: u8, stay: bool) -> ExitCode {
    // The story is told on standard output; the program's own log would only interrupt it.
    let told = actix::System::new().block_on(async {
        match clusters {
            0 | 1 => alone::tell(stay).await,
            more => clusters::tell(usize::from(more), stay).await,
        }
    });
    match told {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => failed(&"the demo did not come out as announced; see the table above"),
        Err(error) => failed(&format!("the demo could not be run: {error}")),
    }
}
