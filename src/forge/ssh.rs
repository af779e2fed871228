//! A call of a git host's program over SSH: whom, with which keys, and what comes back. How `ssh` is run, and whom we may
//! connect to, is [`Http`](crate::Http)'s.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use kernel::names::ssh_url::SshUrl;

use crate::pem;
use crate::signer;

/// The keys of a Secret, as Flux has them
/// (<https://fluxcd.io/flux/components/source/gitrepositories/#ssh-authentication>).
pub(crate) const IDENTITY: &str = "identity";
pub(crate) const KNOWN_HOSTS: &str = "known_hosts";

/// What proves us to a host, and the host to us.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SshKeys {
    /// A private key without a passphrase, as a file of `ssh` holds it.
    pub identity: String,
    /// The lines by which the host is known.
    pub known_hosts: String,
}

/// Why a Secret opens nothing over SSH; nothing of it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSshKeys {
    #[error("it has no key {0}, which an address of SSH needs")]
    Missing(&'static str),
    #[error("its key {IDENTITY} is no private key: make one with ssh-keygen -t ed25519 -N ''")]
    NoKey,
    #[error(
        "its key {IDENTITY} is locked by a passphrase, which nobody types here: take it away with ssh-keygen -p -N ''"
    )]
    Locked,
    #[error(
        "its key {KNOWN_HOSTS} names no host: put the lines there that ssh-keyscan HOST prints, once they are proved"
    )]
    NoHosts,
    #[error("its key {0} is no text")]
    NotText(&'static str),
}

impl SshKeys {
    /// Those of a Secret.
    ///
    /// # Errors
    /// One is missing or cannot be used.
    pub fn of(secret: &BTreeMap<String, Vec<u8>>) -> Result<Self, NoSshKeys> {
        let identity = file(secret, IDENTITY)?;
        let label = identity.split_once("-----BEGIN ").and_then(|(_, rest)| rest.split_once("-----"));
        let (label, body) = label.filter(|(label, _)| label.ends_with("PRIVATE KEY")).ok_or(NoSshKeys::NoKey)?;
        let is_locked = match label {
            "OPENSSH PRIVATE KEY" => {
                let bytes = pem::block(&identity).ok_or(NoSshKeys::NoKey)?.1;
                signer::is_locked(&bytes).ok_or(NoSshKeys::NoKey)?
            }
            // RFC 1421, 4.6.1.1 for the second; RFC 5958 for the first.
            label => label.starts_with("ENCRYPTED") || body.contains("ENCRYPTED"),
        };
        if is_locked {
            return Err(NoSshKeys::Locked);
        }
        let known_hosts = file(secret, KNOWN_HOSTS)?;
        let is_entry = |line: &str| !line.is_empty() && !line.starts_with('#');
        match known_hosts.lines().map(str::trim).any(is_entry) {
            true => Ok(Self { identity, known_hosts }),
            false => Err(NoSshKeys::NoHosts),
        }
    }
}

/// The value of a key as `ssh` reads a file: it wants a line break at the end, and an editor may have left it out.
fn file(secret: &BTreeMap<String, Vec<u8>>, key: &'static str) -> Result<String, NoSshKeys> {
    let value = secret.get(key).filter(|value| !value.is_empty()).ok_or(NoSshKeys::Missing(key))?;
    let text = std::str::from_utf8(value).map_err(|_not_text| NoSshKeys::NotText(key))?;
    Ok(text.replace("\r\n", "\n").trim_end_matches('\n').to_owned() + "\n")
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub to: &'a SshUrl,
    pub keys: &'a SshKeys,
    /// The host's shell reads it.
    pub command: String,
    /// Variables for the command; hosts take few.
    pub variable: Option<(&'static str, &'static str)>,
    pub input: Bytes,
    /// Most bytes of the answer.
    pub answer_max: usize,
}

/// What the command wrote. It came as far as to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub output: Bytes,
    /// Its words for people, at most a few thousand bytes of them.
    pub words: String,
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
}

/// Why a command did not run, or did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SshError {
    /// We may not talk to this address, or `ssh` cannot be run: a person must change something.
    Refused(String),
    /// There is no connection to it.
    Unreachable(String),
    /// There is a connection, and no whole answer.
    Failed(String),
    /// The host is not the one that is known.
    Untrusted(String),
    /// The host does not take the key.
    Denied(String),
    /// The answer is longer than was allowed.
    TooLong,
}

/// A text as one word of the host's shell, as git quotes it
/// ([sq_quote_buf](https://github.com/git/git/blob/v2.47.0/quote.c)).
pub(crate) fn quoted(text: &str) -> String {
    let mut word = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '!' => word.extend(["'\\", c.encode_utf8(&mut [0; 4]), "'"]),
            c => word.push(c),
        }
    }
    word + "'"
}

impl fmt::Debug for SshKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SshKeys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &str = "openssh-key-v1\0\0\0\0\x04none\0\0\0\x04none\0\0\0\0\0\0\0\x01";
    const SHUT: &str = "openssh-key-v1\0\0\0\0\x0aaes256-ctr\0\0\0\x06bcrypt\0\0\0\0\0\0\0\x01";
    const HOSTS: &str = "# ours\n\ngit.example.com ssh-ed25519 AAAA";

    fn read(identity: Option<&str>, hosts: Option<&str>) -> Result<SshKeys, NoSshKeys> {
        let keys = [(IDENTITY, identity), (KNOWN_HOSTS, hosts)];
        let keys = keys.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.as_bytes().to_vec())));
        SshKeys::of(&keys.collect())
    }

    #[test]
    fn keys_are_read_as_files_and_what_cannot_be_used_is_said_without_its_content() {
        let [open, shut] = [OPEN, SHUT].map(|bytes| pem::text("OPENSSH PRIVATE KEY", bytes.as_bytes()));
        for identity in [&open, "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----"] {
            for end in ["", "\n", "\r\n"] {
                let keys = read(Some(&format!("{identity}{end}")), Some(HOSTS)).expect("keys");
                assert_eq!(keys, SshKeys { identity: format!("{identity}\n"), known_hosts: format!("{HOSTS}\n") });
                assert_eq!(format!("{keys:?}"), "SshKeys");
            }
        }
        let old = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----";
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----";
        for (identity, hosts, why) in [
            (None, Some(HOSTS), NoSshKeys::Missing(IDENTITY)),
            (Some(""), Some(HOSTS), NoSshKeys::Missing(IDENTITY)),
            (Some("hunter2"), Some(HOSTS), NoSshKeys::NoKey),
            (Some("-----BEGIN PUBLIC KEY-----\nhunter2\n-----END PUBLIC KEY-----"), Some(HOSTS), NoSshKeys::NoKey),
            (Some("-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2="), Some(HOSTS), NoSshKeys::NoKey),
            (Some(shut.as_str()), Some(HOSTS), NoSshKeys::Locked),
            (Some(old), Some(HOSTS), NoSshKeys::Locked),
            (Some(encrypted), Some(HOSTS), NoSshKeys::Locked),
            (Some(open.as_str()), None, NoSshKeys::Missing(KNOWN_HOSTS)),
            (Some(open.as_str()), Some("# hunter2\n \n"), NoSshKeys::NoHosts),
        ] {
            assert_eq!(read(identity, hosts), Err(why));
            assert!(!why.to_string().contains("hunter2"), "{why}");
        }
        assert_eq!(
            SshKeys::of(&BTreeMap::from([(IDENTITY.to_owned(), vec![0xff])])),
            Err(NoSshKeys::NotText(IDENTITY))
        );
    }

    #[test]
    fn a_word_of_the_shell_is_quoted_as_git_quotes_it() {
        for (text, word) in
            [("/a b", "'/a b'"), ("/it's", r"'/it'\''s'"), ("/wow!", r"'/wow'\!''"), ("$(x);`y`\"", "'$(x);`y`\"'")]
        {
            assert_eq!(quoted(text), word);
        }
    }
}
