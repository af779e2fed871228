//! Our identity: whether there is a group, and our name in it.

use std::sync::Arc;

use super::start_error::{StartError, ask};
use crate::adapters::kubernetes::{self, Clients};
use crate::config::Config;
use kernel::id::Member;
use purge::agreement::roster::Pin;
use purge::ports::{Ledger, PinError, PortError};

/// The name of the only member of a group of one. It is part of every purge reference, so it never changes.
const ALONE: &str = "self";

/// Digits of a cluster's UID in its name. Two of 32 members share them once in eight million groups, and that is noticed.
const NAME_DIGITS: usize = 8;

pub(super) struct Named {
    /// The configuration, with the name that the group has.
    pub(super) config: Config,
    pub(super) member: Member,
    /// There is a group.
    pub(super) grouped: bool,
    /// Its name was derived from the namespaces.
    pub(super) is_derived: bool,
    /// The members in the ledger could not be read.
    pub(super) is_unread: bool,
}

/// Our name, and whether there is a group: one is configured, `boards` of several members were given, or the ledger has members
/// although the configuration has lost them.
pub(super) async fn of(
    config: &Config,
    clients: &Clients,
    ledger: &Arc<dyn Ledger>,
    boards: usize,
) -> Result<Named, StartError> {
    let pin = pinned(ledger.as_ref()).await;
    // Probes and metrics do not wait for it. The root finds the members when it opens the ledger, and has us begin anew.
    let is_unread = pin.is_err();
    if let Err(error) = &pin {
        tracing::warn!(%error, "the members in the ledger cannot be read yet; going on as configured");
    }
    let pin = pin.ok().flatten();
    let (config, is_derived) = named(config, pin.as_ref());
    let has_lost_others = pin.is_some_and(|pin| pin.members.len() > 1);
    let is_named = config.means_others() || boards > 1 || has_lost_others;
    let member = match is_named {
        true => member(&config, clients).await?,
        // Whoever else uses our Redis has another name, if that can be had.
        false if config.group.only_own && config.group.member.is_none() => {
            Member(cluster_name(clients).await.unwrap_or_else(|_| ALONE.to_owned()))
        }
        false => Member(alone(&config)),
    };
    Ok(Named { grouped: is_named || config.is_grouped(), config, member, is_derived, is_unread })
}

/// The configuration with the name that the group has, and whether that was derived: the pin keeps the name that was, and one
/// without a name is that of a release, or a configuration, that did not derive any.
pub(super) fn named(config: &Config, pin: Option<&Pin>) -> (Config, bool) {
    let mut config = config.clone();
    let derived = config.group.derived.clone().and_then(|derived| match pin {
        None => Some(derived),
        Some(pin) => Some(pin.group.clone()).filter(|name| !name.is_empty()),
    });
    let is_derived = derived.is_some();
    config.group.name = derived.unwrap_or(config.group.name);
    (config, is_derived)
}

/// The members in the ledger, before it is opened.
pub(super) async fn pinned(ledger: &dyn Ledger) -> Result<Option<Pin>, PortError> {
    ledger.pin().await.map_err(|(PinError::Unavailable(error) | PinError::Lost(error))| error)
}

/// Our name where there is no group.
pub(super) fn alone(config: &Config) -> String {
    config.group.member.clone().unwrap_or_else(|| ALONE.to_owned())
}

/// Our name in a group: as configured, or a short form of what identifies the cluster (decision 5).
pub(super) async fn member(config: &Config, clients: &Clients) -> Result<Member, StartError> {
    let name = match &config.group.member {
        Some(name) => name.clone(),
        None => cluster_name(clients).await.map_err(|error| {
            StartError::Unusable(format!(
                "group.member is not set, and the UID of the namespace kube-system, which would name this cluster in the group, \
                 cannot be read: {error}; set group.member (ALLCLEAR__GROUP__MEMBER) to a name that no other member has, such \
                 as eu-1"
            ))
        })?,
    };
    let members = &config.group.members;
    if !members.is_empty() && !members.contains(&name) {
        return Err(StartError::Unusable(format!(
            "group.members ({}) does not name this cluster, which is called {name}; add it, or set group.member",
            members.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(Member(name))
}

/// A short form of what identifies the cluster.
async fn cluster_name(clients: &Clients) -> Result<String, PortError> {
    let uid = ask("the name of this cluster", || kubernetes::cluster_uid(clients)).await?;
    let digits: String = uid.chars().filter(char::is_ascii_hexdigit).take(NAME_DIGITS).collect();
    Ok(format!("c-{digits}"))
}
