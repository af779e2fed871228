//! The demo: the real controller in a small world on this machine's loopback, told as a story with times; with several
//! clusters, one controller in each, and all of them one group.
//!
//! Everything it prints was observed: Events in the clusters, invalidations at the CDN, requests at the receiver.

mod alone;
mod canary;
mod clusters;
mod columns;
mod edge;
pub mod life;
mod member;
mod narration;
mod pipeline;
mod repo;
mod stage;
mod story;
mod telling;

use std::io;

pub use telling::{Heading, Wishes};

/// Clusters the demo can play with.
pub const CLUSTERS_MAX: u8 = 5;

/// What the demo tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Story {
    /// Rollouts in one cluster.
    Alone,
    /// Rollouts in this many clusters behind one CDN.
    Group(u8),
    /// A Pipeline that promotes from staging to prod.
    Pipeline,
    /// A Repo whose commits run Jobs.
    Repo,
    /// An edge that is looked at after each purge.
    Edge,
}

impl Story {
    /// Its chapters, in their order.
    pub fn headings(self) -> Vec<Heading> {
        match self {
            Story::Alone => alone::SCENES.map(|(heading, _)| heading).to_vec(),
            Story::Group(_) => clusters::SCENES.map(|(heading, _)| heading).to_vec(),
            Story::Pipeline => pipeline::SCENES.map(|(heading, _)| heading).to_vec(),
            Story::Repo => repo::SCENES.map(|(heading, _)| heading).to_vec(),
            Story::Edge => edge::SCENES.map(|(heading, _)| heading).to_vec(),
        }
    }
}

/// Tells a story on standard output. Whether every chapter came out as announced.
///
/// # Errors
/// When a port or a file cannot be had, git is not installed and the story needs it, the controller does not start, or Ctrl-C ends it.
pub fn tell(story: Story, wishes: &Wishes) -> io::Result<bool> {
    // The program's own log would only interrupt it.
    actix::System::new().block_on(async {
        let told = async {
            match story {
                Story::Alone => alone::tell(wishes).await,
                Story::Group(clusters) => clusters::tell(usize::from(clusters), wishes).await,
                Story::Pipeline => pipeline::tell(wishes).await,
                Story::Repo => repo::tell(wishes).await,
                Story::Edge => edge::tell(wishes).await,
            }
        };
        if wishes.stay {
            // It waits for Ctrl-C itself, in the end.
            return told.await;
        }
        // What is dropped here ends its servers and removes its files.
        tokio::select! {
            biased;
            ended = tokio::signal::ctrl_c() => Err(ended.err().unwrap_or_else(|| io::Error::other("Ctrl-C ended it"))),
            told = told => told,
        }
    })
}
