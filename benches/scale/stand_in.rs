//! The controller in this program, for worlds that the one in earnest refuses: other clusters and a forge on the loopback, without TLS.
//! It is the same code, built by the profile of benches.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;

use allclear::app::Overrides;
use allclear::cli::run::run;
use allclear::config::{Inputs, read_file};

/// Names the host of the forge and its address in the environment of the child: `git.example.com=127.0.0.1:4711`.
pub const FORGE: &str = "SCALE_FORGE";

/// Runs the controller, if this process was started to be one.
pub fn live() -> Option<ExitCode> {
    let forge = std::env::var(FORGE).ok()?;
    let (host, address) = forge.split_once('=')?;
    let address: SocketAddr = address.parse().ok()?;
    let environment: BTreeMap<String, String> = std::env::vars().filter(|(name, _)| name != FORGE).collect();
    let inputs =
        Inputs { file: None, environment, flags: BTreeMap::new(), service_account_namespace: None, read: &read_file };
    let stand_ins = Some(BTreeMap::from([(host.to_owned(), address)]));
    Some(run(&inputs, Overrides { stand_ins, ..Overrides::default() }))
}
