//! The demo: the real controller in a small world on this machine's loopback, told as a story with times; with several
//! clusters, one controller in each, and all of them one group.
//!
//! Everything it prints was observed: Events in the clusters, invalidations at the CDN, requests at the receiver.

mod alone;
mod clusters;
pub mod life;
mod narration;
mod pipeline;
mod repo;

use std::io;

/// Clusters the demo can play with.
pub const CLUSTERS_MAX: u8 = 5;

/// Tells the story of a Pipeline on standard output; `stay` keeps everything running afterwards. Whether every chapter came out as
/// announced.
///
/// # Errors
/// When a port or a file cannot be had, git is not installed, or the controller does not start.
pub fn tell_pipeline(stay: bool) -> io::Result<bool> {
    actix::System::new().block_on(pipeline::tell(stay))
}

/// Tells the story of a Repo on standard output; `stay` keeps everything running afterwards. Whether every chapter came out as
/// announced.
///
/// # Errors
/// When a port or a file cannot be had, git is not installed, or the controller does not start.
pub fn tell_repo(stay: bool) -> io::Result<bool> {
    actix::System::new().block_on(repo::tell(stay))
}

/// Tells the story of this many clusters on standard output; `stay` keeps everything running afterwards. Whether every
/// chapter came out as announced.
///
/// # Errors
/// When a port or a file cannot be had, or the controller does not start.
pub fn tell(clusters: u8, stay: bool) -> io::Result<bool> {
    // The program's own log would only interrupt it.
    actix::System::new().block_on(async {
        match clusters {
            0 | 1 => alone::tell(stay).await,
            more => clusters::tell(usize::from(more), stay).await,
        }
    })
}
