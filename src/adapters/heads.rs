//! Looks at git hosts as [`Heads`](objects::ports::repo::Heads), promotions and reports of runs there, by the guarded way out.
//!
//! Not for what is asked of a host, whose turn it is and what rests; that is the crate `forge`.

use std::sync::Arc;

use forge::heads::Patience;
use objects::ports::Secrets;

use super::forge_http::ForgeHttp;

pub use forge::heads::GitHeads;
pub use forge::keeper::Keeper;
pub use forge::propose::Forges;
pub use forge::report::ForgeReports;

/// All git hosts, by this way out and with these Secrets.
pub fn heads(http: Arc<ForgeHttp>, secrets: Arc<dyn Secrets>, keeper: Arc<Keeper>) -> GitHeads {
    GitHeads::new(http, secrets, keeper, Patience::default())
}
