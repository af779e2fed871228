//! Looks at git hosts as [`Heads`](domain::ports::repo::Heads), by the guarded way out.
//!
//! Not for what is asked of a host and which ones rest; that is `forge::heads`.

use std::sync::Arc;

use domain::ports::Clock;
use domain::ports::pipeline::Secrets;
use forge::heads::Patience;

use super::forge_http::ForgeHttp;

pub use forge::heads::{GitHeads, Resting};

/// All git hosts, by this way out and with these Secrets.
pub fn heads(http: Arc<ForgeHttp>, secrets: Arc<dyn Secrets>, clock: Arc<dyn Clock>) -> GitHeads {
    GitHeads::new(http, secrets, clock, Patience::default())
}
