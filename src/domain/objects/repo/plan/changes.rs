//! What a plan would change, by address: for those who read it elsewhere than in the log. Values never leave the plan; the address of a
//! resource may hold a key of its `for_each`.
//!
//! It travels in the message of the container, behind what was always there. That is short: the kubelet gives the containers of a pod
//! 12 KiB together ([source]), which are 1,024 bytes for each of twelve: up to nine of ours, and what a mesh or a vault puts beside them.
//! A message that is cut cannot be read at all.
//!
//! Not for how much would change; that is what a yes is to, and is counted in full.
//!
//! [source]: https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/kubelet/status/status_manager.go

use serde::{Deserialize, Serialize};

use crate::repo::plan::{MESSAGE_BYTES_MAX, NoPlan, terraform};
use crate::repo::reported::{Change, LISTED_MAX, Listed};
use crate::repo::spec::Preset;
use kernel::text;

/// Bytes of all that is listed, as JSON: with the fingerprint and the counts before them less than 1,024.
const LISTED_BYTES_MAX: usize = 700;

/// Bytes of one address, unless that is cut.
const ADDRESS_BYTES_MAX: usize = 160;

/// The part of a message that lists changes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Written {
    /// `create aws_vpc.main`: the action has no blank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<String>,
    #[serde(default)]
    more: u32,
}

/// The changes of a plan, as many as fit; none of a plan that is any text.
///
/// # Errors
/// It is none of the form that is understood.
pub fn changes(preset: Preset, plan: &[u8]) -> Result<Listed, NoPlan> {
    match preset {
        Preset::Terraform => Ok(bounded(terraform::changes(plan)?)),
        Preset::Command => Ok(Listed::default()),
    }
}

/// As many changes as a message has place for.
fn bounded(all: Vec<Change>) -> Listed {
    let (mut listed, mut bytes) = (Vec::new(), 0_usize);
    let count = all.len();
    for Change { action, address } in all {
        let address = text::clean(&address, ADDRESS_BYTES_MAX);
        // With its quotes and its comma, and what JSON escapes.
        let escaped = serde_json::to_string(&address).map_or(usize::MAX, |text| text.len());
        bytes = bytes.saturating_add(escaped).saturating_add(action.len()).saturating_add(2);
        if listed.len() == LISTED_MAX || bytes > LISTED_BYTES_MAX {
            break;
        }
        listed.push(Change { action, address });
    }
    let more = u32::try_from(count.saturating_sub(listed.len())).unwrap_or(u32::MAX);
    Listed { job: String::new(), listed, more }
}

/// A message with what would change behind it.
pub fn with_changes(message: &str, Listed { listed, more, job: _ }: &Listed) -> String {
    let changes = listed.iter().map(|Change { action, address }| format!("{action} {address}")).collect();
    let written = serde_json::to_string(&Written { changes, more: *more });
    match (message.strip_suffix('}'), written.as_ref().ok().and_then(|written| written.strip_prefix('{'))) {
        (Some(message), Some(written)) if !listed.is_empty() || *more != 0 => format!("{message},{written}"),
        _ => message.to_owned(),
    }
}

/// What a message lists. The user's own containers may write anything, so nothing is believed that is longer than ours.
pub fn listed(message: &str, job: &str) -> Listed {
    if message.len() > MESSAGE_BYTES_MAX {
        return Listed::default();
    }
    let Written { changes, more } = serde_json::from_str(message).unwrap_or_default();
    let change = |change: String| {
        let (action, address) = change.split_once(' ')?;
        let is_action = terraform::ACTIONS.contains(&action);
        is_action.then(|| Change { action: action.to_owned(), address: address.to_owned() })
    };
    let known = bounded(changes.into_iter().filter_map(change).collect());
    Listed { job: job.to_owned(), more: known.more.saturating_add(more), ..known }
}
