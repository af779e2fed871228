//! Where a repository is, and the two ways there: HTTP, and SSH.
//!
//! Over SSH a server speaks first, at each call ([gitprotocol-pack]); that is dropped where an answer is asked for, so that behind
//! this both ways are alike.
//!
//! [gitprotocol-pack]: https://git-scm.com/docs/gitprotocol-pack#_ssh_transport

use std::sync::Arc;

use bytes::Bytes;
use kernel::names::ssh_url::SshUrl;
use purge::ports::PortError;

use super::exchange::{self, Service, Web, refuse};
use super::failure::{Failure, spoken_bytes, too_much};
use super::packet::Packets;
use crate::ssh::{Answer, Call, SshKeys, quoted};
use crate::{Authorities, Http};

/// Bytes that a server may say before it answers: with protocol v0 its refs.
const AHEAD_BYTES_MAX: usize = 4 << 20;

/// Ends a conversation of git's protocol.
const FLUSH: &[u8] = b"0000";

/// The exit code of a shell that does not find a command (POSIX, Shell Command Language, 2.8.2).
const NOT_FOUND: i32 = 127;

/// What hosts say of a repository that is not there, or not for these keys. Whole phrases: a host that does not find something
/// of its own for a while says "no such" and "not found", too.
const MISSING: [&str; 8] = [
    "does not appear to be a git repository",       // git
    "repository not found",                         // GitHub, Bitbucket
    "you were looking for could not be found",      // GitLab
    "repository does not exist",                    // Bitbucket Data Center
    "repository either does not exist",             // Bitbucket Cloud
    "cannot find repository",                       // Gitea, Forgejo
    "project not found",                            // Gerrit
    "does not exist or you do not have permission", // Azure DevOps
];

/// What they say where a key may not do this.
const DENIED: [&str; 6] = ["denied", "not allowed", "read only", "read-only", "unauthorized", "forbidden"];

pub(super) enum Door {
    Web(Web),
    Ssh(Shell),
}

/// A repository behind SSH.
pub(super) struct Shell {
    http: Arc<dyn Http>,
    url: SshUrl,
    keys: SshKeys,
}

impl Door {
    pub(super) fn web(
        http: Arc<dyn Http>,
        url: &str,
        credentials: Option<&super::Credentials>,
        authorities: Option<Authorities>,
    ) -> Result<Self, PortError> {
        Web::new(http, url, credentials, authorities).map(Self::Web)
    }

    pub(super) fn ssh(http: Arc<dyn Http>, url: &str, keys: SshKeys) -> Result<Self, PortError> {
        Ok(Self::Ssh(Shell { http, url: ssh_url(url)?, keys }))
    }

    /// What the server says before it is asked, at most `answer_max` bytes of it.
    pub(super) async fn advertisement(&self, service: Service, answer_max: usize) -> Result<Bytes, Failure> {
        match self {
            Self::Web(web) => web.advertisement(service, answer_max).await,
            Self::Ssh(shell) => shell.advertisement(service, answer_max).await,
        }
    }

    /// What the server answers to a request, at most `answer_max` bytes of it.
    pub(super) async fn ask(&self, service: Service, body: Vec<u8>, answer_max: usize) -> Result<Bytes, Failure> {
        match self {
            Self::Web(web) => web.ask(service, body, answer_max).await,
            Self::Ssh(shell) => shell.ask(service, body, answer_max).await,
        }
    }

    /// A failure with what was attempted here, and without what is secret.
    pub(super) fn error(&self, attempted: &str, failure: Failure) -> PortError {
        match self {
            Self::Web(web) => web.error(attempted, failure),
            // A private key is in no words: ssh keeps it.
            Self::Ssh(shell) => failure.while_trying(format!("{attempted} {}", shell.url.shown()), &[]),
        }
    }
}

impl Shell {
    async fn advertisement(&self, service: Service, answer_max: usize) -> Result<Bytes, Failure> {
        let answer = self.called(service, FLUSH.into(), answer_max).await?;
        // A list of refs that breaks off would read as one of fewer refs.
        Packets::new(&answer.output).skip_to_flush()?;
        Ok(answer.output)
    }

    async fn ask(&self, service: Service, body: Vec<u8>, answer_max: usize) -> Result<Bytes, Failure> {
        let answer = self.called(service, body.into(), answer_max.saturating_add(AHEAD_BYTES_MAX)).await?;
        let mut packets = Packets::new(&answer.output);
        packets.skip_to_flush()?;
        let ahead = answer.output.len().saturating_sub(packets.left().len());
        let said = answer.output.slice(ahead..);
        if said.len() > answer_max {
            return Err(Failure::lasting(too_much(&format!("{} in one answer", spoken_bytes(answer_max)))));
        }
        // What broke off could read as a shorter answer. After a push the branch is read again, and some servers refuse one so.
        let is_whole = answer.code == Some(0) || service == Service::ReceivePack && !said.is_empty();
        if is_whole {
            return Ok(said);
        }
        match Packets::new(&said).find_map(Result::err) {
            Some(failure) => Err(failure),
            None => Err(refusal(service, &answer)),
        }
    }

    /// Runs the program.
    async fn called(&self, service: Service, input: Bytes, answer_max: usize) -> Result<Answer, Failure> {
        // Only this service has a second version.
        let variable = (service == Service::UploadPack).then_some(("GIT_PROTOCOL", "version=2"));
        let command = format!("{service} {}", quoted(self.url.path()));
        let call = Call { to: &self.url, keys: &self.keys, command, variable, input, answer_max };
        let answer = self.http.call(call).await.map_err(|error| Failure::of_ssh(error, answer_max))?;
        match answer.output.is_empty() && answer.code != Some(0) {
            true => Err(refusal(service, &answer)),
            false => Ok(answer),
        }
    }
}

/// What a program means that ended without a whole answer.
fn refusal(service: Service, answer: &Answer) -> Failure {
    let said = answer.words.trim();
    let words = said.to_ascii_lowercase();
    let has = |any: &[&str]| any.iter().any(|known| words.contains(known));
    let shown = if said.is_empty() { String::new() } else { format!(": {said}") };
    match () {
        () if answer.code == Some(NOT_FOUND) => Failure::lasting(format!("the host has no {service}{shown}")),
        () if has(&MISSING) => Failure::lasting(format!("no such repository, or the key does not show it{shown}")),
        () if has(&DENIED) => Failure::denied(format!("the key does not allow it{shown}")),
        () => {
            let how = answer.code.map_or("by a signal".to_owned(), |code| format!("with exit code {code}"));
            Failure::answer(format!("{service} ended {how} and without a whole answer{shown}"))
        }
    }
}

/// The host of a repository, as calls are counted by host.
pub(super) fn host(url: &str) -> Result<String, PortError> {
    match SshUrl::is_meant(url) {
        true => Ok(ssh_url(url)?.place()),
        false => exchange::host(url),
    }
}

fn ssh_url(url: &str) -> Result<SshUrl, PortError> {
    SshUrl::parse(url).map_err(|why| refuse(&why.to_string()))
}
