//! Git over HTTP and SSH, and what is made of it: looks at refs, whole commits, and promotions as pull requests on forges.
//!
//! Not for when a promotion is proposed or a ref looked at; that is `domain`. Nor for whom we may connect to: [`Http`] judges that.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::string_slice,
        reason = "clippy.toml cannot let tests off these two; the build without tests is held to them"
    )
)]

pub mod app;
mod bitbucket_cloud;
mod bitbucket_server;
mod edits;
pub mod git;
mod gitea;
mod github;
mod gitlab;
pub mod heads;
pub mod keeper;
pub mod keys;
mod limits;
mod near;
mod notes;
mod pem;
mod place;
pub mod propose;
mod pulls;
pub mod report;
mod requests;
mod rest;
mod rests;
mod session;
mod signer;
pub mod ssh;
mod witness;
mod words;

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use ssh::SshError;

/// One exchange with a git host or a forge, over HTTP or, where that is spoken, SSH. Redirects are not followed.
#[async_trait]
pub trait Http: Send + Sync {
    /// Sends a request and reads the answer, at most `answer_max` bytes of its body.
    ///
    /// # Errors
    /// [`HttpError`], in words without a secret, path or query.
    async fn send(
        &self,
        request: http::Request<Bytes>,
        authorities: Option<&Authorities>,
        answer_max: usize,
    ) -> Result<http::Response<Bytes>, HttpError>;

    /// Runs a command on a git host, and reads what it writes.
    ///
    /// # Errors
    /// [`SshError`], in words without a secret or path.
    async fn call(&self, _: ssh::Call<'_>) -> Result<ssh::Answer, SshError> {
        Err(SshError::Refused("SSH is not spoken here".to_owned()))
    }
}

/// Certificates (PEM) that are trusted for this exchange, beside the system's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorities(pub Bytes);

impl Authorities {
    /// Those that a Secret names for the server that it is sent to: under `caFile`, as Flux has it, or `ca.crt`.
    pub fn of(secret: &BTreeMap<String, Vec<u8>>) -> Option<Self> {
        let file = ["caFile", "ca.crt"].into_iter().find_map(|key| secret.get(key).filter(|file| !file.is_empty()));
        file.map(|file| Self(Bytes::copy_from_slice(file)))
    }
}

/// Why there is no whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// We may not talk to this address, or the request or the authorities cannot be used: a person must change something.
    Refused(String),
    /// There is no connection to it.
    Unreachable(String),
    /// There is a connection, and no whole answer.
    Failed(String),
    /// The server is not believed to be who it should: its certificate, or who is trusted here, must change.
    Untrusted(String),
    /// The answer is longer than was allowed.
    TooLong,
}
