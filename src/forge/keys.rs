//! What a Secret holds for a repository: keys as in Secrets of the Weave GitOps pipeline controller and of Flux.

use std::collections::BTreeMap;

use objects::pipeline::proposal::{ForgeKind, Order};
use purge::ports::PortError;

use crate::Authorities;
use crate::git::Credentials;

/// What opens a repository and its forge.
pub(crate) struct Keys {
    /// For git: `username` and `password`, or else the token.
    pub(crate) git: Credentials,
    /// For the forge's API: `token`.
    pub(crate) token: String,
    /// The certificate authorities trusted for the server, beside the system's.
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
        Ok(Self { git, token, authorities: Authorities::of(secret) })
    }
}

/// Why the Secret of an order cannot be used.
fn refused(order: &Order, why: &str) -> PortError {
    let name = order.repository.secret.as_deref().unwrap_or_default();
    PortError::lasting(format!("failed to use Secret {}/{name}", order.pipeline.namespace), why)
}

/// What opens a repository to git alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitKeys {
    /// `username` and `password`, or `bearerToken`, or a `token` as promotions have it.
    pub credentials: Option<Credentials>,
    /// The certificate authorities trusted for the server, beside the system's.
    pub authorities: Option<Authorities>,
}

/// Why a Secret does not open a repository; nothing of its content is repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKeys {
    #[error("its key {0} is no text")]
    NotText(String),
    #[error("it has a username, but neither password nor token")]
    NoPassword,
    #[error("it has a key for SSH, which is not spoken; username and password, or bearerToken, are understood")]
    Ssh,
    #[error("it has none of the keys username and password, bearerToken, token, caFile, ca.crt")]
    None,
}

impl GitKeys {
    /// The keys of a Secret that are read.
    pub const KEYS: [&str; 7] = ["username", "password", "bearerToken", "token", "caFile", "ca.crt", "identity"];

    /// Reads the content of a Secret.
    ///
    /// # Errors
    /// Something is missing, is no text, or cannot be used.
    pub fn of(secret: &BTreeMap<String, Vec<u8>>) -> Result<Self, NoKeys> {
        let text = |key: &str| match secret.get(key).map(|value| std::str::from_utf8(value)) {
            None => Ok(None),
            Some(Ok(value)) => {
                Ok(Some(value.trim_end_matches(['\n', '\r']).to_owned()).filter(|value| !value.is_empty()))
            }
            Some(Err(_not_text)) => Err(NoKeys::NotText(key.to_owned())),
        };
        let credentials = match (text("username")?, text("password")?, text("bearerToken")?, text("token")?) {
            (user, Some(password), ..) => {
                Some(Credentials::Basic { user: user.unwrap_or_else(|| "git".to_owned()), password })
            }
            (_, None, Some(token), _) => Some(Credentials::Bearer(token)),
            (user, None, None, Some(password)) => {
                Some(Credentials::Basic { user: user.unwrap_or_else(|| "oauth2".to_owned()), password })
            }
            (Some(_), None, None, None) => return Err(NoKeys::NoPassword),
            (None, None, None, None) if secret.contains_key("identity") => return Err(NoKeys::Ssh),
            (None, None, None, None) => None,
        };
        let authorities = Authorities::of(secret);
        if credentials.is_none() && authorities.is_none() {
            return Err(NoKeys::None);
        }
        Ok(Self { credentials, authorities })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn the_keys_for_git_are_read_and_what_cannot_be_used_is_said_without_its_content() {
        let read = |keys: &[(&str, &str)]| {
            let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
            GitKeys::of(&keys.collect())
        };
        let basic = |user: &str| Some(Credentials::Basic { user: user.to_owned(), password: "p".to_owned() });
        for (keys, expected) in [
            (&[("username", "ann\n"), ("password", "p\r\n"), ("token", "t")][..], basic("ann")),
            (&[("password", "p")], basic("git")),
            (&[("token", "p")], basic("oauth2")),
            (&[("username", "ann"), ("token", "p")], basic("ann")),
            (&[("bearerToken", "b"), ("token", "t")], Some(Credentials::Bearer("b".to_owned()))),
            (&[("ca.crt", "PEM")], None),
        ] {
            assert_eq!(read(keys).map(|keys| keys.credentials), Ok(expected));
        }
        let authorities = |keys: &[(&str, &str)]| read(keys).map(|keys| keys.authorities.map(|found| found.0));
        assert_eq!(authorities(&[("caFile", "A"), ("ca.crt", "B")]), Ok(Some(Bytes::from("A"))));
        for (keys, words) in [
            (&[("username", "hunter2")][..], "neither password nor token"),
            (&[("identity", "hunter2")], "SSH"),
            (&[("other", "hunter2")], "none of the keys"),
            (&[("password", "")], "none of the keys"),
        ] {
            let refused = read(keys).expect_err(words).to_string();
            assert!(refused.contains(words) && !refused.contains("hunter2"), "{refused}");
        }
        assert!(GitKeys::of(&[("password".to_owned(), vec![0xff])].into()).is_err());
    }
}
