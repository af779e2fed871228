//! Commands on git hosts over SSH: OpenSSH's own `ssh`, as git itself runs it, for crate `forge`.
//!
//! - The host's name is resolved and judged here, and `ssh` is given the address that was judged: no second answer of DNS counts.
//! - The host is known by the Secret's `known_hosts` or not at all. Nothing of this machine is read: no configuration, no agent.
//! - Keys lie in memory without a name, as files that only this user can open, and are gone with the call.
//! - Time and answer are bounded, and `ssh` ends with the call that started it.
//!
//! Not for what is asked and what an answer means; that is the crate `forge`.

use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forge::ssh::{Answer, Call, SshError};
use kernel::names::ssh_url::SshUrl;
use kernel::text;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::http::{Egress, Lookup};

/// Where Debian and our image have it.
const PROGRAM: &str = "/usr/bin/ssh";

/// Time to connect to one address, in seconds: until the host has said that it speaks SSH.
const CONNECT_SECONDS: u8 = 5;

/// Addresses of one name that are tried, one after the other: one of each version, and one more.
const ADDRESSES_MAX: usize = 3;

/// Last bytes that are kept of what `ssh` and the command say to people.
const WORDS_BYTES_MAX: usize = 4096;

/// Longest part of these words in an error, in bytes.
const SHOWN_BYTES_MAX: usize = 300;

/// The exit code of `ssh` itself (ssh(1), EXIT STATUS).
const OWN_CODE: i32 = 255;

/// What does not depend on the call ([ssh_config(5)](https://man.openbsd.org/ssh_config.5)). Where an option comes twice, the
/// first counts, so nothing of a host's can come before these.
const OPTIONS: [&str; 30] = [
    "BatchMode=yes",
    "IdentitiesOnly=yes",
    "IdentityAgent=none",
    "PKCS11Provider=none",
    "PreferredAuthentications=publickey",
    "PasswordAuthentication=no",
    "KbdInteractiveAuthentication=no",
    "HostbasedAuthentication=no",
    "StrictHostKeyChecking=yes",
    "GlobalKnownHostsFile=/dev/null",
    "UpdateHostKeys=no",
    "VerifyHostKeyDNS=no",
    "CheckHostIP=no",
    "NoHostAuthenticationForLocalhost=no",
    "CanonicalizeHostname=no",
    "ProxyCommand=none",
    "ProxyJump=none",
    "PermitLocalCommand=no",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "Tunnel=no",
    "ControlMaster=no",
    "ControlPath=none",
    "EscapeChar=none",
    "AddKeysToAgent=no",
    "ConnectionAttempts=1",
    "ServerAliveInterval=10",
    "ServerAliveCountMax=2",
    "LogLevel=ERROR",
];

/// SSH to git hosts.
pub struct Ssh {
    program: PathBuf,
}

/// Whom a call may reach, and for how long.
pub struct Guard<'a> {
    pub private_hosts: &'a BTreeSet<String>,
    pub lookup: &'a Arc<dyn Lookup>,
    /// From resolving to the last byte.
    pub timeout: Duration,
}

impl Default for Ssh {
    fn default() -> Self {
        Self { program: PROGRAM.into() }
    }
}

impl Ssh {
    /// That by another program.
    pub fn by(program: &Path) -> Self {
        Self { program: program.to_owned() }
    }

    /// Runs a command on a host.
    ///
    /// # Errors
    /// It did not run or did not end, in words without a secret.
    pub async fn call(&self, call: &Call<'_>, guard: &Guard<'_>) -> Result<Answer, SshError> {
        let whole = async {
            let mut unreachable = SshError::Unreachable("the name leads to no address".to_owned());
            for address in in_turns(addresses(call.to, guard).await?).into_iter().take(ADDRESSES_MAX) {
                match self.at(address, call).await {
                    Err(error @ SshError::Unreachable(_)) => unreachable = error,
                    answer => return answer,
                }
            }
            Err(unreachable)
        };
        let too_late =
            || SshError::Failed(format!("no whole answer within {}", humantime::format_duration(guard.timeout)));
        tokio::time::timeout(guard.timeout, whole).await.unwrap_or_else(|_elapsed| Err(too_late()))
    }

    async fn at(&self, address: IpAddr, call: &Call<'_>) -> Result<Answer, SshError> {
        let failed = |error: io::Error| SshError::Failed(format!("failed to run ssh: {error}"));
        // Open until the end of the call.
        let (identity, known) =
            (held(&call.keys.identity).map_err(failed)?, held(&call.keys.known_hosts).map_err(failed)?);
        let mut child = self.command(address, call, &path(&identity), &path(&known)).spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => SshError::Refused(format!(
                "SSH is spoken by the program ssh, and there is no {}: take the image whose tag ends with -ssh, or write an \
                 address of https",
                self.program.display()
            )),
            _ => failed(error),
        })?;
        let (output, words) = conversed(&mut child, &call.input, call.answer_max).await?;
        let code = child.wait().await.map_err(failed)?.code();
        match code {
            Some(OWN_CODE) if output.is_empty() => Err(meant(&words, call.to)),
            Some(OWN_CODE) => {
                Err(SshError::Failed(format!("the connection broke within the answer: {}", last_line(&words))))
            }
            _ => Ok(Answer { output, words, code }),
        }
    }

    fn command(&self, address: IpAddr, call: &Call<'_>, identity: &str, known: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().args(["-F", "/dev/null", "-T", "-i", identity]);
        let own = [
            format!("UserKnownHostsFile={known}"),
            format!("Hostname={address}"),
            format!("HostKeyAlias={}", call.to.known_as()),
            format!("User={}", call.to.user()),
            format!("Port={}", call.to.port()),
            format!("ConnectTimeout={CONNECT_SECONDS}"),
        ];
        for option in OPTIONS.iter().map(|option| (*option).to_owned()).chain(own) {
            command.args(["-o", &option]);
        }
        if let Some((name, value)) = call.variable {
            command.env(name, value).args(["-o", &format!("SendEnv={name}")]);
        }
        command.args(["--", call.to.host(), &call.command]).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }
}

/// The addresses of a host that may be talked to.
async fn addresses(to: &SshUrl, guard: &Guard<'_>) -> Result<Vec<IpAddr>, SshError> {
    let host = to.host();
    let literal: Option<IpAddr> = host.parse().ok();
    let named = if matches!(literal, Some(IpAddr::V6(_))) { format!("[{host}]") } else { host.to_owned() };
    let egress = Egress { allow_private: guard.private_hosts.contains(&named) };
    let found = match literal {
        Some(address) => vec![address],
        None => guard
            .lookup
            .addresses(host)
            .await
            .map_err(|error| SshError::Unreachable(format!("the name could not be resolved: {error}")))?,
    };
    let (allowed, refused): (Vec<IpAddr>, Vec<IpAddr>) =
        found.into_iter().partition(|address| egress.refusal(*address).is_none());
    let refused = refused.first().and_then(|address| Some((address, egress.refusal(*address)?)));
    match refused {
        Some((address, why)) if allowed.is_empty() => {
            Err(SshError::Refused(format!("not called: {host} is {address}, {why}")))
        }
        Some(_) | None => Ok(allowed),
    }
}

/// One address of each version in turns, beginning with what was found first: where only one version leads anywhere, the first
/// few are not all of the other.
fn in_turns(found: Vec<IpAddr>) -> Vec<IpAddr> {
    let is_first = found.first().map(IpAddr::is_ipv4);
    let (first, second): (Vec<IpAddr>, Vec<IpAddr>) =
        found.into_iter().partition(|address| Some(address.is_ipv4()) == is_first);
    let mut second = second.into_iter();
    let mut turns = Vec::new();
    for address in first {
        turns.push(address);
        turns.extend(second.next());
    }
    turns.extend(second);
    turns
}

/// A text as a file in memory that only this user can open, and nobody can run.
fn held(text: &str) -> io::Result<File> {
    const NAME: &str = "allclear-ssh";
    let flags = MemfdFlags::CLOEXEC;
    // A host may refuse files that could be run (`vm.memfd_noexec`), and Linux before 6.3 does not know this flag
    // (<https://docs.kernel.org/userspace-api/mfd_noexec.html>).
    let file = match memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(NAME, flags),
        file => file,
    };
    let mut file = File::from(file?);
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Where another process of this user finds an open file: `ssh` closes all that it was not given by number.
fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Gives a program its input, and reads what it writes.
async fn conversed(child: &mut Child, input: &[u8], answer_max: usize) -> Result<(Bytes, String), SshError> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(SshError::Failed("failed to run ssh: it has no pipes".to_owned()));
    };
    let given = async {
        // A program that has seen enough reads no more; what it says tells.
        let _unread = stdin.write_all(input).await;
        drop(stdin);
        Ok(())
    };
    let ((), output, words) = tokio::try_join!(given, output(stdout, answer_max), last_words(stderr))?;
    Ok((output, words))
}

async fn output(mut from: impl AsyncRead + Unpin, answer_max: usize) -> Result<Bytes, SshError> {
    let mut output = Vec::new();
    loop {
        match from.read_buf(&mut output).await {
            Ok(_) if output.len() > answer_max => return Err(SshError::TooLong),
            Ok(0) => return Ok(output.into()),
            Ok(_) => {}
            Err(error) => return Err(SshError::Failed(format!("the connection broke within the answer: {error}"))),
        }
    }
}

/// The last words of a program. Their sum is bounded by the time of the call.
async fn last_words(mut from: impl AsyncRead + Unpin) -> Result<String, SshError> {
    let mut words = Vec::new();
    // A break of this pipe is none of the answer's.
    while from.read_buf(&mut words).await.is_ok_and(|read| read > 0) {
        let surplus = words.len().saturating_sub(WORDS_BYTES_MAX);
        words.drain(..surplus);
    }
    Ok(String::from_utf8_lossy(&words).into_owned())
}

/// What was said last. A host says part of it, so it may be long, and hold what moves a cursor.
fn last_line(words: &str) -> String {
    let last = words.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("ssh said nothing");
    text::clean(last, SHOWN_BYTES_MAX)
}

/// What `ssh` means by its last words (`sshconnect.c` and `sshconnect2.c` of
/// <https://github.com/openssh/openssh-portable/tree/V_9_2_P1>).
fn meant(words: &str, to: &SshUrl) -> SshError {
    let has = |part: &str| words.contains(part);
    let last = last_line(words);
    let known_as = to.known_as();
    match () {
        () if has("IDENTIFICATION HAS CHANGED") => SshError::Untrusted(format!(
            "the host shows another key than known_hosts has for {known_as}: it is not this host, or its key was changed; \
             ask who runs it, then put the new line there"
        )),
        () if has("host key is known for") => SshError::Untrusted(format!(
            "known_hosts has no line for {known_as}: put that of ssh-keyscan there, once it is proved"
        )),
        () if has("Host key verification failed") || has("REVOKED HOST KEY") => {
            SshError::Untrusted(format!("known_hosts does not let the host's key pass: {last}"))
        }
        () if has("Unable to negotiate") => SshError::Refused(last),
        () if has("No user exists for uid") => SshError::Refused(
            "ssh runs only as a user with a name: let the container run as user 65532, which the image names"
                .to_owned(),
        ),
        () if has("Load key") || has("not accessible") => SshError::Refused(
            "ssh cannot use the private key in identity: is it whole, and of a kind that ssh knows?".to_owned(),
        ),
        () if has("Permission denied (") => {
            SshError::Denied(format!("the host does not take the key in identity for its user {}", to.user()))
        }
        () if has("ssh: connect to host") => {
            let why = last.rsplit(": ").next().unwrap_or(&last);
            SshError::Unreachable(format!("no connection: {why}"))
        }
        () if has("kex_exchange_identification") || has("banner exchange") => {
            SshError::Unreachable(format!("no connection over SSH: {last}"))
        }
        () => SshError::Failed(format!("the connection broke before there was an answer: {last}")),
    }
}

#[cfg(test)]
mod tests;
