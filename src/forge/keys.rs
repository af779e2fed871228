//! What a Secret holds for a repository: keys as in Secrets of the Weave GitOps pipeline controller and of Flux.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::names::ssh_url::SshUrl;
use objects::pipeline::proposal::{ForgeKind, Order};
use purge::ports::PortError;

use crate::app::{self, App, Apps, Installation};
use crate::git::{Credentials, Remote, Signer};
use crate::signer::NoSigner;
use crate::ssh::{self, NoSshKeys, SshKeys};
use crate::{Authorities, Http};

/// The keys of a GitHub App, as Flux has them
/// (<https://fluxcd.io/flux/components/source/gitrepositories/#github>).
const APP_ID: &str = "githubAppID";
const APP_INSTALLATION: &str = "githubAppInstallationID";
const APP_OWNER: &str = "githubAppInstallationOwner";
const APP_KEY: &str = "githubAppPrivateKey";
const APP_BASE: &str = "githubAppBaseURL";

/// The user of git whose password is the token of an installation.
const APP_USER: &str = "x-access-token";

/// The users of git whose passwords are, on Bitbucket Cloud, an access token, and an API token
/// (<https://support.atlassian.com/bitbucket-cloud/docs/using-api-tokens/>).
const CLOUD_USER: &str = "x-token-auth";
const CLOUD_API_USER: &str = "x-bitbucket-api-token-auth";

/// What opens a repository and its forge.
pub(crate) struct Keys {
    /// For git: `username` and `password`, or else the token.
    pub(crate) git: Credentials,
    /// For git where the repository's address is one of SSH, in place of those.
    pub(crate) ssh: Option<SshKeys>,
    /// For the forge's API: `token`, on Bitbucket Cloud with the account that it may be of.
    pub(crate) api: Credentials,
    /// The certificate authorities trusted for the server, beside the system's.
    pub(crate) authorities: Option<Authorities>,
    /// What signs its commits.
    pub(crate) signer: Option<Signer>,
}

/// What a Secret holds for promotions.
pub(crate) struct Content {
    pub(crate) proof: Proof,
    pub(crate) ssh: Option<SshKeys>,
    authorities: Option<Authorities>,
    signer: Option<Signer>,
}

/// What proves to a forge who we are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Proof {
    /// It is known: for git, and for the API.
    Known { git: Credentials, api: Credentials },
    /// It is asked for.
    App(App),
}

impl Content {
    /// Reads the content of a Secret.
    ///
    /// # Errors
    /// Lasting: something is missing or is no text.
    pub(crate) fn of(secret: &BTreeMap<String, Vec<u8>>, order: &Order) -> Result<Self, PortError> {
        let whole = || -> Result<Self, NoKeys> {
            let content = Self::read(secret, order.repository.forge)?;
            let ssh = SshUrl::is_meant(&order.repository.url).then(|| SshKeys::of(secret)).transpose()?;
            Ok(Self { ssh, ..content })
        };
        whole().map_err(|why| refused(order, &why.to_string()))
    }

    /// The same for a forge of this kind, and nothing for SSH.
    ///
    /// # Errors
    /// Something is missing or is no text.
    pub(crate) fn read(secret: &BTreeMap<String, Vec<u8>>, forge: ForgeKind) -> Result<Self, NoKeys> {
        let [token, user, password] = ["token", "username", "password"].map(|key| text(secret, key));
        let (token, user, password) = (token?, user?, password?);
        let known = [("token", &token), ("username", &user), ("password", &password)];
        let app = app(secret, &known)?;
        let proof = match (app, token, user, password) {
            (Some(_), ..) if forge != ForgeKind::GitHub => return Err(NoKeys::NotGitHub),
            (Some(app), ..) => Proof::App(app),
            (None, None, ..) => return Err(NoKeys::NoToken),
            (None, Some(token), user, Some(password)) => {
                let user = user.unwrap_or_else(|| "git".to_owned());
                Proof::Known { git: Credentials::Basic { user, password }, api: Credentials::Bearer(token) }
            }
            (None, Some(token), user, None) => with_token_alone(forge, user, token),
        };
        let signer = match (text(secret, "signingKey")?, text(secret, "committer")?) {
            (Some(key), committer) => Some(Signer::of(&key, committer)?),
            (None, Some(_)) => return Err(NoSigner::NoKey.into()),
            (None, None) => None,
        };
        Ok(Self { proof, ssh: None, authorities: Authorities::of(secret), signer })
    }

    /// What opens the repository at this URL, with a token of the App where there is one.
    ///
    /// # Errors
    /// There is no such token; lasting where a person must change something.
    pub(crate) async fn keys(&self, apps: &Apps, http: Arc<dyn Http>, url: &str) -> Result<Keys, PortError> {
        let Self { proof, ssh, authorities, signer } = self;
        let (git, api) = match proof {
            Proof::Known { git, api } => (git.clone(), api.clone()),
            Proof::App(app) => {
                let token = apps.token(http, app, url, authorities.as_ref()).await?;
                (with_token(token.clone()), Credentials::Bearer(token))
            }
        };
        let (ssh, authorities, signer) = (ssh.clone(), authorities.clone(), signer.clone());
        Ok(Keys { git, ssh, api, authorities, signer })
    }

    /// Forgets the token of its App with which something failed for good.
    pub(crate) fn forget(&self, apps: &Apps, url: &str) {
        if let Proof::App(app) = &self.proof {
            apps.forget(app, url);
        }
    }
}

/// What opens both git and the API where a Secret has a token and no password.
fn with_token_alone(forge: ForgeKind, user: Option<String>, token: String) -> Proof {
    let basic = |user: &str| Credentials::Basic { user: user.to_owned(), password: token.clone() };
    let bearer = || Credentials::Bearer(token.clone());
    let (git, api) = match (forge, user.as_deref()) {
        (ForgeKind::BitbucketServer, None) => (bearer(), bearer()),
        (ForgeKind::BitbucketCloud, None) => (basic(CLOUD_USER), bearer()),
        // The API knows an account by its e-mail address, and git does not.
        (ForgeKind::BitbucketCloud, Some(email)) => (basic(CLOUD_API_USER), basic(email)),
        // Beside a token GitHub, GitLab and Gitea take any name; GitLab's own documents say oauth2.
        (_, user) => (basic(user.unwrap_or("oauth2")), bearer()),
    };
    Proof::Known { git, api }
}

/// Why the Secret of an order cannot be used.
fn refused(order: &Order, why: &str) -> PortError {
    let name = order.repository.secret.as_deref().unwrap_or_default();
    PortError::lasting(format!("failed to use Secret {}/{name}", order.pipeline.namespace), why)
}

/// The value of a key, if it has one.
fn text(secret: &BTreeMap<String, Vec<u8>>, key: &str) -> Result<Option<String>, NoKeys> {
    match secret.get(key).map(|value| std::str::from_utf8(value)) {
        None => Ok(None),
        // A line break at the end is what `echo` and editors add.
        Some(Ok(value)) => Ok(Some(value.trim_end_matches(['\n', '\r']).to_owned()).filter(|value| !value.is_empty())),
        Some(Err(_not_text)) => Err(NoKeys::NotText(key.to_owned())),
    }
}

/// The App that a Secret names, if it names one, and nothing else beside it.
fn app(secret: &BTreeMap<String, Vec<u8>>, others: &[(&'static str, &Option<String>)]) -> Result<Option<App>, NoKeys> {
    let [id, installation, owner, key, base] =
        [APP_ID, APP_INSTALLATION, APP_OWNER, APP_KEY, APP_BASE].map(|key| text(secret, key));
    let (id, installation, owner, key, base) = (id?, installation?, owner?, key?, base?);
    if [&id, &installation, &owner, &key, &base].iter().all(|value| value.is_none()) {
        return Ok(None);
    }
    // A token was used before Apps were known, and is as good.
    if others.iter().any(|(key, value)| *key != "username" && value.is_some()) {
        return Ok(None);
    }
    let number = |name, value: Option<String>| {
        let value = value.ok_or(NoKeys::Missing(name))?;
        value.trim().parse().map_err(|_no_number| NoKeys::NoNumber(name))
    };
    let id = number(APP_ID, id)?;
    let installation = match (installation, owner) {
        (Some(_), Some(_)) => return Err(NoKeys::Installations),
        (None, Some(owner)) => Installation::Of(owner),
        (found, None) => Installation::Number(number(APP_INSTALLATION, found)?),
    };
    let key = app::Key::of(&key.ok_or(NoKeys::Missing(APP_KEY))?).ok_or(NoKeys::NoRsaKey)?;
    Ok(Some(App { id, installation, key, base }))
}

fn with_token(token: String) -> Credentials {
    Credentials::Basic { user: APP_USER.to_owned(), password: token }
}

/// What opens a repository to git alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitKeys {
    /// `username` and `password`, or `bearerToken`, or a `token` as promotions have it.
    pub credentials: Option<Credentials>,
    /// What gives a token in their place.
    pub app: Option<App>,
    /// The certificate authorities trusted for the server, beside the system's.
    pub authorities: Option<Authorities>,
    /// `identity` and `known_hosts`, where the repository's address is one of SSH; then nothing else is read.
    pub ssh: Option<SshKeys>,
}

/// Why a Secret does not open a repository; nothing of its content is repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKeys {
    #[error("its key {0} is no text")]
    NotText(String),
    #[error("it has a username, but neither password nor token")]
    NoPassword,
    #[error("it has no key token, which the forge's API needs, and no keys of a GitHub App")]
    NoToken,
    #[error(
        "it has a key for SSH, and the repository's address is one of HTTPS: write it as ssh://USER@HOST/PATH, or put username \
             and password, or bearerToken, there"
    )]
    Ssh,
    #[error(transparent)]
    OverSsh(#[from] NoSshKeys),
    #[error(
        "it has none of the keys username and password, bearerToken, token, caFile, ca.crt, nor those of a GitHub App: {APP_ID}, \
         {APP_INSTALLATION}, {APP_KEY}"
    )]
    None,
    #[error("it has keys of a GitHub App, but no key {0}")]
    Missing(&'static str),
    #[error("its key {0} is no number")]
    NoNumber(&'static str),
    #[error("{}", app::NO_RSA_KEY)]
    NoRsaKey,
    #[error("it has the keys {APP_INSTALLATION} and {APP_OWNER}: remove one of them")]
    Installations,
    #[error("it has the keys of a GitHub App, which opens GitHub alone: put a token there")]
    NotGitHub,
    #[error(transparent)]
    Signer(#[from] NoSigner),
}

impl GitKeys {
    /// The keys of a Secret that are read.
    pub const KEYS: [&str; 13] = [
        "username",
        "password",
        "bearerToken",
        "token",
        "caFile",
        "ca.crt",
        ssh::IDENTITY,
        ssh::KNOWN_HOSTS,
        APP_ID,
        APP_INSTALLATION,
        APP_OWNER,
        APP_KEY,
        APP_BASE,
    ];

    /// Reads the content of a Secret for the repository at this URL.
    ///
    /// # Errors
    /// Something is missing, is no text, or cannot be used.
    pub fn of(secret: &BTreeMap<String, Vec<u8>>, url: &str) -> Result<Self, NoKeys> {
        if SshUrl::is_meant(url) {
            return Ok(Self { ssh: Some(SshKeys::of(secret)?), ..Self::default() });
        }
        let [user, password, bearer, token] =
            ["username", "password", "bearerToken", "token"].map(|key| text(secret, key));
        let (user, password, bearer, token) = (user?, password?, bearer?, token?);
        let known = [("username", &user), ("password", &password), ("bearerToken", &bearer), ("token", &token)];
        let app = app(secret, &known)?;
        let credentials = match (user, password, bearer, token) {
            (user, Some(password), ..) => {
                Some(Credentials::Basic { user: user.unwrap_or_else(|| "git".to_owned()), password })
            }
            (_, None, Some(token), _) => Some(Credentials::Bearer(token)),
            (user, None, None, Some(password)) => {
                Some(Credentials::Basic { user: user.unwrap_or_else(|| "oauth2".to_owned()), password })
            }
            (Some(_), None, None, None) => return Err(NoKeys::NoPassword),
            (None, None, None, None) if app.is_none() && secret.contains_key(ssh::IDENTITY) => return Err(NoKeys::Ssh),
            (None, None, None, None) => None,
        };
        let authorities = Authorities::of(secret);
        if credentials.is_none() && app.is_none() && authorities.is_none() {
            return Err(NoKeys::None);
        }
        Ok(Self { credentials, app, authorities, ssh: None })
    }

    /// The repository at this URL, opened by these.
    ///
    /// # Errors
    /// Lasting: the URL is none; it is one of SSH, and there is no key; the credentials fit into no header.
    pub fn remote(self, http: Arc<dyn Http>, url: &str) -> Result<Remote, PortError> {
        let why = "SSH needs a Secret with the keys identity and known_hosts: name it in secretRef";
        match self.ssh {
            Some(keys) => Remote::over_ssh(http, url, keys),
            None if SshUrl::is_meant(url) => Err(PortError::lasting("failed to use the URL of the repository", why)),
            None => Remote::new(http, url, self.credentials.as_ref(), self.authorities),
        }
    }

    /// The same, with a token of the App for the repository at this URL, where there is an App.
    ///
    /// # Errors
    /// There is no such token; lasting where a person must change something.
    pub async fn opened(self, apps: &Apps, http: Arc<dyn Http>, url: &str) -> Result<Self, PortError> {
        let Some(app) = &self.app else { return Ok(self) };
        let token = apps.token(http, app, url, self.authorities.as_ref()).await?;
        Ok(Self { credentials: Some(with_token(token)), ..self })
    }

    /// Forgets the token of its App with which something failed for good.
    pub(crate) fn forget(&self, apps: &Apps, url: &str) {
        if let Some(app) = &self.app {
            apps.forget(app, url);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const URL: &str = "https://git.example.com/shop/web.git";

    #[test]
    fn the_keys_for_git_are_read_and_what_cannot_be_used_is_said_without_its_content() {
        let read = |keys: &[(&str, &str)]| {
            let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
            GitKeys::of(&keys.collect(), URL)
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
        assert!(GitKeys::of(&[("password".to_owned(), vec![0xff])].into(), URL).is_err());
    }

    /// Other keys may be in the Secret: those of the forge's API are.
    #[test]
    fn the_address_says_which_keys_are_read() {
        let keys = secret(&[("identity", "no key"), ("known_hosts", "h"), ("token", "t"), ("password", "p")]);
        let read = GitKeys::of(&keys, URL).unwrap();
        assert_eq!((read.ssh.is_none(), read.credentials.is_some()), (true, true));
        assert_eq!(GitKeys::of(&keys, "ssh://git@git.example.com/a"), Err(NoKeys::OverSsh(NoSshKeys::NoKey)));
    }

    fn secret(keys: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        keys.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect()
    }

    /// One key in PKCS#8 and, as GitHub gives it out, in PKCS#1, which is the last part of the former.
    fn pems() -> [String; 2] {
        let pair = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
        let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = aws_lc_rs::encoding::AsDer::as_der(&pair).unwrap();
        let der = der.as_ref();
        [crate::pem::text("PRIVATE KEY", der), crate::pem::text("RSA PRIVATE KEY", &der[26..])]
    }

    #[test]
    fn an_app_is_read_whole_or_refused_by_what_is_wrong_with_it() {
        let [pkcs8, pkcs1] = pems();
        let sound = [(APP_ID, "12\n"), (APP_INSTALLATION, "34"), (APP_KEY, pkcs1.as_str())];
        for key in [&pkcs8, &pkcs1] {
            let mut keys = sound.to_vec();
            keys[2].1 = key;
            let read = GitKeys::of(&secret(&keys), URL).unwrap();
            let app = read.app.unwrap();
            assert_eq!((app.id, app.installation, read.credentials), (12, Installation::Number(34), None));
            assert!(matches!(Content::read(&secret(&keys), ForgeKind::GitHub).unwrap().proof, Proof::App(_)));
        }
        let (public, cut) = ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", &pkcs1[..400]);
        for (key, value, why) in [
            (APP_ID, "", NoKeys::Missing(APP_ID)),
            (APP_INSTALLATION, "", NoKeys::Missing(APP_INSTALLATION)),
            (APP_KEY, "", NoKeys::Missing(APP_KEY)),
            (APP_ID, "Iv23hunter2", NoKeys::NoNumber(APP_ID)),
            (APP_INSTALLATION, "-1", NoKeys::NoNumber(APP_INSTALLATION)),
            (APP_KEY, "hunter2", NoKeys::NoRsaKey),
            (APP_KEY, public, NoKeys::NoRsaKey),
            (APP_KEY, cut, NoKeys::NoRsaKey),
            (APP_OWNER, "hunter2", NoKeys::Installations),
        ] {
            let mut keys = secret(&sound);
            keys.insert(key.to_owned(), value.as_bytes().to_vec());
            assert_eq!(GitKeys::of(&keys, URL), Err(why.clone()), "{key}");
            assert_eq!(Content::read(&keys, ForgeKind::GitHub).err(), Some(why.clone()), "{key}");
            assert!(!why.to_string().contains("hunter2"), "{why}");
        }
        let mut keys = secret(&sound);
        assert_eq!(Content::read(&keys, ForgeKind::Gitea).err(), Some(NoKeys::NotGitHub));
        keys.insert("bearerToken".to_owned(), b"hunter2".to_vec());
        let read = GitKeys::of(&keys, URL).unwrap();
        assert_eq!(
            (read.app, read.credentials),
            (None, Some(Credentials::Bearer("hunter2".to_owned()))),
            "as before Apps"
        );
        let mut keys = secret(&sound);
        keys.insert("token".to_owned(), b"hunter2".to_vec());
        assert!(matches!(Content::read(&keys, ForgeKind::GitHub).unwrap().proof, Proof::Known { .. }));
    }

    #[test]
    fn the_keys_for_promotions_are_read_and_the_committer_needs_a_key() {
        let proof = |keys: &[(&str, &str)], forge| Content::read(&secret(keys), forge).map(|content| content.proof);
        let basic = |user: &str, password: &str| {
            let credentials = Credentials::Basic { user: user.to_owned(), password: password.to_owned() };
            Ok(Proof::Known { git: credentials, api: Credentials::Bearer("t".to_owned()) })
        };
        let (github, bitbucket, cloud) = (ForgeKind::GitHub, ForgeKind::BitbucketServer, ForgeKind::BitbucketCloud);
        assert!(proof(&[("token", "t\n")], github) == basic("oauth2", "t"));
        assert!(proof(&[("token", "t"), ("username", "ann")], bitbucket) == basic("ann", "t"));
        assert!(proof(&[("token", "t"), ("password", "p")], bitbucket) == basic("git", "p"));
        let bearer = || Credentials::Bearer("t".to_owned());
        assert!(proof(&[("token", "t")], bitbucket) == Ok(Proof::Known { git: bearer(), api: bearer() }));
        assert!(proof(&[("token", "t")], cloud) == basic("x-token-auth", "t"), "an access token");
        assert!(proof(&[("token", "t"), ("username", "ann"), ("password", "p")], cloud) == basic("ann", "p"));
        let with_email = Credentials::Basic { user: "ann@example.com".to_owned(), password: "t".to_owned() };
        let Ok(Proof::Known { git, api }) = proof(&[("token", "t"), ("username", "ann@example.com")], cloud) else {
            panic!("an API token")
        };
        let for_git = Credentials::Basic { user: "x-bitbucket-api-token-auth".to_owned(), password: "t".to_owned() };
        assert!((git, api) == (for_git, with_email));
        assert!(proof(&[("username", "ann"), ("password", "p")], github) == Err(NoKeys::NoToken));
        assert!(proof(&[("token", "t"), ("committer", "A <a@b>")], github) == Err(NoSigner::NoKey.into()));
    }
}
