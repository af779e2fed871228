//! Whether a ledger can be written in a namespace, without writing one: a create of a ConfigMap with `dryRun=All`, which passes
//! authentication, rights, quotas, admission and validation, and is not stored.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run>
//!
//! A dry run rather than an object that is removed again: a command that is interrupted between the two would leave one, and the
//! controller would have to know it. What it does not prove is that the API server's storage takes a write now.

use super::maps::{ANSWER_MAX, CONFIG_MAPS, config_map};
use apiserver::{Api, Collection};
use purge::ports::PortError;

/// The name of what is never stored.
const NAME: &str = "allclear-check";

/// Tries to make a ConfigMap in this namespace, as part of a ledger, without making it.
///
/// # Errors
/// When it would not be made.
pub async fn rehearse(client: &kube::Client, namespace: &str) -> Result<(), PortError> {
    let api = Api::new(client.clone()).within(ANSWER_MAX);
    let map = config_map(NAME, "check", "Never stored: a dry run of allclear check.", Default::default());
    api.rehearse(&Collection::of(CONFIG_MAPS, namespace), NAME, &map).await?;
    Ok(())
}
