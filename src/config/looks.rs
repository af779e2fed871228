//! `proof.*`: whether the edge is looked at after a purge, and where.

use std::collections::BTreeSet;

use super::address::Refused;
use super::values::Values;
use kernel::names::host::Host;
use kernel::names::paths::Path;
use proof::asked::{PATHS_MAX, distinct, one_path};
use proof::look::Again;
use purge::bounds::policy::{self, LooksFrom};

/// Hosts with private addresses at most: what is looked at from inside a company's network is not behind CloudFront as a rule.
const PRIVATE_HOSTS_MAX: usize = 32;

/// `proof.*`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Whether workloads are looked at that do not say so themselves.
    pub enabled: bool,
    /// Of each host, where the workload names none: 1 to [`PATHS_MAX`].
    pub paths: Vec<Path>,
    /// Hosts, in lower case and without port, that may have private addresses.
    pub private_hosts: BTreeSet<String>,
    /// Which members of a group look.
    pub from: LooksFrom,
}

impl Proof {
    /// What decisions depend on, with the further purges of `purge.*`.
    pub(super) fn policy(&self, again: Again) -> policy::Proof {
        policy::Proof { enabled: self.enabled, paths: self.paths.clone(), again, from: self.from }
    }
}

pub(super) fn read(values: &mut Values<'_>) -> Option<Proof> {
    let enabled = values.truth("proof.enabled");
    let paths = paths(values);
    let private_hosts = values.list("proof.private_hosts", "list of hosts", PRIVATE_HOSTS_MAX, host);
    let from = [("executor", LooksFrom::Executor), ("every-member", LooksFrom::EveryMember)];
    let from = values.choice("proof.from", &from);
    let private_hosts = private_hosts?.into_iter().collect();
    Some(Proof { enabled: enabled?, paths: paths?, private_hosts, from: from? })
}

fn paths(values: &mut Values<'_>) -> Option<Vec<Path>> {
    let key = "proof.paths";
    let path = |text: &str| {
        let fix = "write single paths such as / or /shop/";
        one_path(text).map_err(|error| Refused::new(format!("cannot be looked at: {}", error.reason()), fix))
    };
    let paths = values.list(key, &format!("list of 1 to {PATHS_MAX} single paths"), PATHS_MAX, path)?;
    if paths.is_empty() {
        let fix = "write \"/\", or set proof.enabled = false";
        return values.refuse(key, None, Refused::new("is empty", fix));
    }
    Some(distinct(paths))
}

/// As pages have it, so that the two can be compared.
fn host(text: &str) -> Result<String, Refused> {
    match Host::parse(text) {
        Ok(host) if !host.is_wildcard() => Ok(host.as_str().to_owned()),
        Ok(_) | Err(_) => {
            let fix = "write a name such as www.example.com, without scheme, port and star";
            Err(Refused::new("is not a host", fix))
        }
    }
}
