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
use rustix::fs::{MemfdFlags, memfd_create};
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
            for address in addresses(call.to, guard).await?.into_iter().take(ADDRESSES_MAX) {
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

/// A text as a file in memory that only this user can open.
fn held(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create("allclear-ssh", MemfdFlags::CLOEXEC)?);
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

fn last_line(words: &str) -> &str {
    words.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("ssh said nothing")
}

/// What `ssh` means by its last words (`sshconnect.c` and `sshconnect2.c` of
/// <https://github.com/openssh/openssh-portable/tree/V_9_2_P1>).
fn meant(words: &str, to: &SshUrl) -> SshError {
    let has = |part: &str| words.contains(part);
    let last = last_line(words).to_owned();
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
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use forge::ssh::SshKeys;

    use super::*;

    /// Answers with other addresses each time, as a name that is rebound does.
    struct Rebound(Mutex<Vec<Vec<IpAddr>>>);

    #[async_trait]
    impl Lookup for Rebound {
        async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            self.0.lock().unwrap().pop().ok_or_else(|| io::Error::other("asked once too often"))
        }
    }

    fn keys() -> SshKeys {
        SshKeys { identity: "hunter2\n".to_owned(), known_hosts: "h ssh-ed25519 AAAA\n".to_owned() }
    }

    fn call<'a>(to: &'a SshUrl, keys: &'a SshKeys) -> Call<'a> {
        let variable = Some(("GIT_PROTOCOL", "version=2"));
        Call {
            to,
            keys,
            command: "git-upload-pack '/a'".to_owned(),
            variable,
            input: Bytes::from("0000"),
            answer_max: 100,
        }
    }

    /// A program that shows what it was given, in place of `ssh`.
    fn shown(folder: &Path, script: &str) -> Ssh {
        let file = folder.join("ssh");
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o700)).unwrap();
        Ssh::by(&file)
    }

    async fn called(ssh: &Ssh, url: &str, found: &[&[&str]], private: &[&str]) -> Result<Answer, SshError> {
        let found = found.iter().map(|each| each.iter().map(|one| one.parse().unwrap()).collect()).collect();
        let lookup = Arc::new(Rebound(Mutex::new(found))) as Arc<dyn Lookup>;
        let private_hosts = private.iter().map(ToString::to_string).collect();
        let guard = Guard { private_hosts: &private_hosts, lookup: &lookup, timeout: Duration::from_secs(20) };
        let (to, keys) = (SshUrl::parse(url).unwrap(), keys());
        ssh.call(&Call { answer_max: 10_000, ..call(&to, &keys) }, &guard).await
    }

    #[tokio::test]
    async fn ssh_is_given_the_address_that_was_judged_and_nothing_of_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let ssh = shown(folder.path(), "for word in \"$@\"; do echo \"$word\"; done; /usr/bin/env; cat");
        let found: &[&[&str]] = &[&["1.1.1.1"]];
        let answer = called(&ssh, "ssh://ann@Git.example.com:2222/a", found, &[]).await.unwrap();
        let said = String::from_utf8(answer.output.to_vec()).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        for option in [
            "Hostname=1.1.1.1",
            "HostKeyAlias=[git.example.com]:2222",
            "User=ann",
            "Port=2222",
            "StrictHostKeyChecking=yes",
            "ProxyCommand=none",
            "SendEnv=GIT_PROTOCOL",
        ] {
            let at = lines.iter().position(|line| *line == option).expect(option);
            assert_eq!(lines[at - 1], "-o", "{option}");
        }
        assert!(said.contains("--\ngit.example.com\ngit-upload-pack '/a'\n"), "{said}");
        assert!(said.ends_with("0000") && said.contains("GIT_PROTOCOL=version=2\n"), "{said}");
        assert!(!said.contains("HOME=") && !said.contains("SSH_") && !said.contains("hunter2"), "{said}");
    }

    #[tokio::test]
    async fn an_address_that_may_not_be_called_is_not_called_whatever_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let ssh = shown(folder.path(), "echo called");
        let metadata: &[&[&str]] = &[&["169.254.169.254"]];
        let inside: &[&[&str]] = &[&["10.0.0.7"]];
        let both: &[&[&str]] = &[&["10.0.0.7", "1.1.1.1"]];
        for (url, found, private, refused) in [
            ("ssh://git.example.com/a", metadata, &["git.example.com"][..], Some("git.example.com is 169.254.169.254")),
            ("ssh://git.example.com/a", inside, &[], Some("git.example.com is 10.0.0.7")),
            ("ssh://git.example.com/a", inside, &["other.example.com"], Some("git.example.com is 10.0.0.7")),
            ("ssh://127.0.0.1/a", &[], &["localhost"], Some("127.0.0.1 is 127.0.0.1")),
            ("ssh://[::1]/a", &[], &[], Some("::1 is ::1")),
            ("ssh://[fe80::1]/a", &[], &["[fe80::1]"], Some("fe80::1")),
            ("ssh://GIT.example.com/a", inside, &["git.example.com"], None),
            ("ssh://[fd00::7]/a", &[], &["[fd00::7]"], None),
            ("ssh://git.example.com/a", both, &[], None),
        ] {
            let answer = called(&ssh, url, found, private).await;
            match refused {
                None => assert_eq!(answer.map(|answer| answer.output), Ok(Bytes::from("called\n")), "{url}"),
                Some(words) => {
                    assert!(matches!(&answer, Err(SshError::Refused(why)) if why.contains(words)), "{url}: {answer:?}");
                }
            }
        }
        let unresolved = called(&ssh, "ssh://git.example.com/a", &[], &[]).await;
        assert!(matches!(&unresolved, Err(SshError::Unreachable(why)) if why.contains("resolved")), "{unresolved:?}");
    }

    #[tokio::test]
    async fn each_address_is_tried_until_one_answers() {
        let folder = tempfile::tempdir().unwrap();
        let script = "case \"$*\" in *Hostname=2.2.2.2*) echo here;; *) echo 'ssh: connect to host x port 22: No route to host' >&2; exit 255;; esac";
        let ssh = shown(folder.path(), script);
        let answer = called(&ssh, "ssh://h/a", &[&["1.1.1.1", "2.2.2.2"]], &[]).await;
        assert_eq!(answer.map(|answer| answer.output), Ok(Bytes::from("here\n")));
        let answer = called(&ssh, "ssh://h/a", &[&["1.1.1.1", "3.3.3.3", "4.4.4.4", "2.2.2.2"]], &[]).await;
        assert_eq!(answer, Err(SshError::Unreachable("no connection: No route to host".to_owned())));
    }

    #[tokio::test]
    async fn a_call_has_an_end_and_a_missing_program_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let (to, keys) = (SshUrl::parse("ssh://1.1.1.1/a").unwrap(), keys());
        let (private_hosts, lookup) = (BTreeSet::new(), Arc::new(Rebound(Mutex::default())) as Arc<dyn Lookup>);
        let guard = |timeout| Guard { private_hosts: &private_hosts, lookup: &lookup, timeout };
        let endless = shown(folder.path(), "while :; do echo more; done");
        let answer = endless.call(&call(&to, &keys), &guard(Duration::from_secs(20))).await;
        assert_eq!(answer, Err(SshError::TooLong));
        let silent = shown(folder.path(), "exec /bin/sleep 60");
        let answer = silent.call(&call(&to, &keys), &guard(Duration::from_millis(200))).await;
        assert_eq!(answer, Err(SshError::Failed("no whole answer within 200ms".to_owned())));
        let missing = Ssh::by(&folder.path().join("none"));
        let answer = missing.call(&call(&to, &keys), &guard(Duration::from_secs(20))).await;
        assert!(matches!(&answer, Err(SshError::Refused(why)) if why.contains("-ssh")), "{answer:?}");
        let loud = shown(
            folder.path(),
            "i=0; while [ $i -lt 3000 ]; do echo words >&2; i=$((i+1)); done; echo last >&2; exit 1",
        );
        let answer = loud.call(&call(&to, &keys), &guard(Duration::from_secs(20))).await.unwrap();
        assert_eq!((answer.words.len(), answer.code), (WORDS_BYTES_MAX, Some(1)));
        assert!(answer.words.ends_with("words\nlast\n"));
    }

    #[test]
    fn what_ssh_says_is_told_apart() {
        let to = SshUrl::parse("ssh://git@git.example.com:2222/shop/hunter2").unwrap();
        for (words, expected, part) in [
            (
                "@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@\nHost key verification failed.",
                "Untrusted",
                "another key",
            ),
            (
                "No ED25519 host key is known for [git.example.com]:2222 and you have requested strict checking.\nHost key verification \
                 failed.\r\n",
                "Untrusted",
                "no line for [git.example.com]:2222",
            ),
            ("@ WARNING: REVOKED HOST KEY DETECTED! @", "Untrusted", "pass"),
            ("git@git.example.com: Permission denied (publickey).\r\n", "Denied", "for its user git"),
            (
                "Load key \"/proc/1/fd/9\": error in libcrypto\r\ngit@h: Permission denied (publickey).",
                "Refused",
                "whole",
            ),
            ("No user exists for uid 1000650000", "Refused", "65532"),
            (
                "Unable to negotiate with 1.1.1.1 port 22: no matching host key type found. Their offer: ssh-dss",
                "Refused",
                "ssh-dss",
            ),
            (
                "ssh: connect to host 1.1.1.1 port 22: Connection refused\r\n",
                "Unreachable",
                "no connection: Connection refused",
            ),
            ("ssh: connect to host 1.1.1.1 port 22: Connection timed out", "Unreachable", "timed out"),
            ("kex_exchange_identification: Connection closed by remote host", "Unreachable", "over SSH"),
            (
                "Connection timed out during banner exchange\nConnection to 1.1.1.1 port 22 timed out",
                "Unreachable",
                "over SSH",
            ),
            ("Connection closed by 1.1.1.1 port 22", "Failed", "closed"),
            ("", "Failed", "said nothing"),
        ] {
            let said = format!("{:?}", meant(words, &to));
            assert!(said.starts_with(expected) && said.contains(part), "{words}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
