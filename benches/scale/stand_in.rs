//! The controller in this program, for worlds that the one in earnest refuses: other clusters and a forge on the loopback, without TLS.
//! It is the same code, built by the profile of benches.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;

use allclear::app::Overrides;
use allclear::cli::run::run;
use allclear::config::{Inputs, read_file};

/// Names hosts and their addresses in the environment of the child: `git.example.com=127.0.0.1:4711,…`.
pub const HOSTS: &str = "SCALE_HOSTS";

/// Runs the controller, if this process was started to be one.
pub fn live() -> Option<ExitCode> {
    let hosts = std::env::var(HOSTS).ok()?;
    let host = |pair: &str| {
        let (host, address) = pair.split_once('=')?;
        Some((host.to_owned(), address.parse::<SocketAddr>().ok()?))
    };
    let stand_ins = hosts.split(',').map(host).collect::<Option<BTreeMap<_, _>>>();
    let environment: BTreeMap<String, String> = std::env::vars().filter(|(name, _)| name != HOSTS).collect();
    let inputs =
        Inputs { file: None, environment, flags: BTreeMap::new(), service_account_namespace: None, read: &read_file };
    Some(run(&inputs, Overrides { stand_ins, ..Overrides::default() }))
}
