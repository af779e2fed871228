//! What a Secret holds for a repository: keys as in Secrets of the Weave GitOps pipeline controller and of Flux.

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::pipeline::proposal::{ForgeKind, Order};
use domain::ports::PortError;

use crate::Authorities;
use crate::git::Credentials;

/// What opens a repository and its forge.
pub(crate) struct Keys {
    /// For git: `username` and `password`, or else the token.
    pub(crate) git: Credentials,
    /// For the forge's API: `token`.
    pub(crate) token: String,
    /// Who may vouch for the server, beside the system's authorities: `caFile`.
    pub(crate) authorities: Option<Authorities>,
}

impl Keys {
    /// Reads the content of a Secret.
    ///
    /// # Errors
    /// Lasting: something is missing or is no text.
    pub(crate) fn of(secret: &BTreeMap<String, Vec<u8>>, order: &Order) -> Result<Self, PortError> {
        let text = |key: &'static str| match secret.get(key).map(|value| std::str::from_utf8(value)) {
            None => Ok(None),
            // A line break at the end is what `echo` and editors add.
            Some(Ok(value)) => {
                Ok(Some(value.trim_end_matches(['\n', '\r']).to_owned()).filter(|value| !value.is_empty()))
            }
            Some(Err(_not_text)) => Err(refused(order, &format!("its key {key} is no text"))),
        };
        let token = text("token")?.ok_or_else(|| refused(order, "it has no key token, which the forge's API needs"))?;
        let git = match (text("username")?, text("password")?) {
            (user, Some(password)) => Credentials::Basic { user: user.unwrap_or_else(|| "git".to_owned()), password },
            (None, None) if order.repository.forge == ForgeKind::BitbucketServer => Credentials::Bearer(token.clone()),
            // Beside a token GitHub, GitLab and Gitea take any name; GitLab's own documents say oauth2.
            (user, None) => {
                Credentials::Basic { user: user.unwrap_or_else(|| "oauth2".to_owned()), password: token.clone() }
            }
        };
        let authorities = secret.get("caFile").filter(|file| !file.is_empty());
        Ok(Self { git, token, authorities: authorities.map(|file| Authorities(Bytes::copy_from_slice(file))) })
    }
}

/// Why the Secret of an order cannot be used.
fn refused(order: &Order, why: &str) -> PortError {
    let name = order.repository.secret.as_deref().unwrap_or_default();
    PortError::lasting(format!("failed to use Secret {}/{name}", order.pipeline.namespace), why)
}
