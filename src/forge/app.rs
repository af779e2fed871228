//! A GitHub App in the place of a token: its private key signs a proof, which one of its installations' tokens is given for
//! (<https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app>).
//!
//! - The private key is never sent. The proof goes where tokens for this repository go: to the API of its host.
//! - A token is for one repository. It is kept in memory until 5 minutes before its end, and asked for once though many want it.
//! - A token with which something fails for good is forgotten: it may have been taken back, and it keeps the rights that it began with.
//!
//! Not for how a Secret names the App (`keys`), nor for what is asked with the token.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{self, SHA256};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Method, StatusCode};
use kernel::machine::Timestamp;
use objects::pipeline::proposal::ForgeKind;
use purge::ports::{Clock, PortError};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex as Turns;

use crate::place::Place;
use crate::rest::{self, Api, Failure};
use crate::{Authorities, Http, pem};

/// How far the proof's beginning lies in the past, for clocks that differ, and how long it holds from now on, in seconds. GitHub takes
/// 10 minutes at most.
const SKEW: i64 = 60;
const PROOF_LASTS: i64 = 540;

/// How long a token is good for, in seconds, and how long before its end it is used no more.
const TOKEN_LASTS: i64 = 3600;
const SPARE: i64 = 300;

/// Why a Secret's key is none.
pub(crate) const NO_RSA_KEY: &str = "its key githubAppPrivateKey is no RSA private key in PEM, as GitHub gives it out: from BEGIN to END, without a passphrase";

/// Tokens that are kept; more than a cluster has Repos and Pipelines.
const TOKENS_MAX: usize = 10_000;

/// An App, and where it is installed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct App {
    pub(crate) id: u64,
    pub(crate) installation: Installation,
    pub(crate) key: Key,
    /// The address of its API, as the Secret has it.
    pub(crate) base: Option<String>,
}

/// Which of its installations is meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Installation {
    Number(u64),
    /// The one of this account.
    Of(String),
}

/// An RSA private key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    der: Vec<u8>,
    is_pkcs8: bool,
}

/// What tokens are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// To read the repository's contents.
    Read,
    /// All that the App has there: which of them a promotion needs depends on the files that it changes and whom it asks.
    All,
}

/// The tokens of all Apps.
pub struct Apps {
    clock: Arc<dyn Clock>,
    rights: Rights,
    tokens: Mutex<HashMap<[u8; 32], Slot>>,
}

/// A token, if there is one; whoever asks for one holds it, and the others wait.
type Slot = Arc<Turns<Option<Token>>>;

struct Token {
    text: String,
    /// It is used before this.
    until: Timestamp,
}

#[derive(Deserialize)]
struct Installed {
    id: u64,
}

#[derive(Deserialize)]
struct Answer {
    token: String,
    expires_at: String,
}

impl Key {
    /// Reads a key as GitHub gives it out, in PKCS#1, or as others convert it, in PKCS#8. What is in it is judged when it signs: that
    /// takes a millisecond, which a look with a token at hand need not spend.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let (label, der) = pem::block(text)?;
        let is_pkcs8 = match label {
            "RSA PRIVATE KEY" => false,
            "PRIVATE KEY" => true,
            _ => return None,
        };
        Some(Self { der, is_pkcs8 })
    }

    fn pair(&self) -> Option<RsaKeyPair> {
        let pair = if self.is_pkcs8 { RsaKeyPair::from_pkcs8(&self.der) } else { RsaKeyPair::from_der(&self.der) };
        pair.ok()
    }
}

impl App {
    /// The proof that it is this App: a JSON Web Token, made at this second since the Unix epoch.
    fn proof(&self, now: i64) -> Option<String> {
        let claims = json!({
            "iat": now.saturating_sub(SKEW),
            "exp": now.saturating_add(PROOF_LASTS),
            "iss": self.id.to_string(),
        });
        let parts = [json!({"alg": "RS256", "typ": "JWT"}), claims];
        let [head, claims] = parts.map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let said = format!("{head}.{claims}");
        let pair = self.key.pair()?;
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), said.as_bytes(), &mut signature).ok()?;
        Some(format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Where a repository is, if this App's API is the one of its host, and its installation that of its owner.
    fn place(&self, url: &str) -> Result<Place, PortError> {
        let place = Place::of(ForgeKind::GitHub, url)?;
        let refused = |why| Err(PortError::lasting(format!("failed to use the Secret for {place}"), why));
        let base = self.base.as_deref().map(|base| base.trim_end_matches('/'));
        if base.is_some_and(|base| !place.has_api_at(base)) {
            let (host, root) = (&place.host, place.api_root());
            return refused(format!(
                "its githubAppBaseURL is not the address of {host}'s API: leave it out, or set it to {root}"
            ));
        }
        match &self.installation {
            Installation::Of(owner) if !owner.eq_ignore_ascii_case(&place.owner) => {
                refused(format!("its githubAppInstallationOwner is not {}, whose repository this is", place.owner))
            }
            Installation::Of(_) | Installation::Number(_) => Ok(place),
        }
    }

    fn digest(&self, place: &Place) -> [u8; 32] {
        let Self { id, installation, key, base: _ } = self;
        let mut context = digest::Context::new(&SHA256);
        context.update(format!("{id} {installation:?} {}\n", place.api(ForgeKind::GitHub)).as_bytes());
        context.update(&key.der);
        context.finish().as_ref().try_into().unwrap_or_default()
    }
}

impl Apps {
    /// No token yet; all will have these rights.
    pub fn new(clock: Arc<dyn Clock>, rights: Rights) -> Self {
        Self { clock, rights, tokens: Mutex::default() }
    }

    /// A token of an App for the repository at this URL: the one that is there, or a new one.
    pub(crate) async fn token(
        &self,
        http: Arc<dyn Http>,
        app: &App,
        url: &str,
        authorities: Option<&Authorities>,
    ) -> Result<String, PortError> {
        let place = app.place(url)?;
        let slot = self.slot(app.digest(&place));
        let mut held = slot.lock().await;
        if let Some(token) = held.as_ref().filter(|token| self.clock.now() < token.until) {
            return Ok(token.text.clone());
        }
        let fresh = self.asked(http, app, &place, authorities).await?;
        let text = fresh.text.clone();
        *held = Some(fresh);
        Ok(text)
    }

    /// The next one who wants that token asks for a new one.
    pub(crate) fn forget(&self, app: &App, url: &str) {
        if let Ok(place) = app.place(url) {
            self.lock().remove(&app.digest(&place));
        }
    }

    async fn asked(
        &self,
        http: Arc<dyn Http>,
        app: &App,
        place: &Place,
        authorities: Option<&Authorities>,
    ) -> Result<Token, PortError> {
        let now = self.clock.wall_ms().div_euclid(1000);
        let attempted = "get a token of the GitHub App";
        let proof = app
            .proof(now)
            .ok_or_else(|| PortError::lasting(format!("failed to use the Secret for {place}"), NO_RSA_KEY))?;
        let mut api = Api {
            http,
            root: place.api(ForgeKind::GitHub),
            name: place.to_string(),
            headers: rest::headers(&format!("Bearer {proof}"), "application/vnd.github+json")?,
            secrets: vec![proof],
            authorities: authorities.cloned(),
        };
        let number = match app.installation {
            Installation::Number(number) => number,
            Installation::Of(_) => {
                let found = api.get::<Installed>("find the installation of the GitHub App", "/installation").await;
                found.map_err(refused)?.id
            }
        };
        api.root = format!("{}/app/installations/{number}", place.api_root());
        let mut document = json!({"repositories": [place.name]});
        if let (Rights::Read, Some(document)) = (self.rights, document.as_object_mut()) {
            document.insert("permissions".to_owned(), json!({"contents": "read"}));
        }
        let begun = self.clock.now();
        let answer = api.send(attempted, Method::POST, "/access_tokens", &document).await;
        let Answer { token, expires_at } = answer.map_err(refused)?;
        let ends: jiff::Timestamp =
            expires_at.parse().map_err(|_no_date| api.passing(attempted, "the answer names no end of the token"))?;
        let lasts = ends.as_second().saturating_sub(now).min(TOKEN_LASTS).saturating_sub(SPARE);
        let lasts = Duration::from_secs(u64::try_from(lasts).unwrap_or(0));
        Ok(Token { text: token, until: begun.after(lasts) })
    }

    fn slot(&self, digest: [u8; 32]) -> Slot {
        let mut tokens = self.lock();
        if tokens.len() >= TOKENS_MAX && !tokens.contains_key(&digest) {
            tokens.clear();
        }
        Arc::clone(tokens.entry(digest).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Slot>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why there is no token, with what a person can do.
fn refused(failure: Failure) -> PortError {
    let advice = match failure.status {
        Some(StatusCode::UNAUTHORIZED) => {
            "githubAppID and githubAppPrivateKey must belong together, and the clock of this machine must be right"
        }
        Some(StatusCode::NOT_FOUND) => {
            "the App must be installed for this repository, and githubAppInstallationID be that installation's"
        }
        Some(StatusCode::UNPROCESSABLE_ENTITY) => {
            "the installation must be given this repository, and the App the right to its contents"
        }
        Some(_) | None => return failure.error,
    };
    let error = failure.for_good();
    PortError { cause: format!("{}; {advice}", error.cause), ..error }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("App")
    }
}
