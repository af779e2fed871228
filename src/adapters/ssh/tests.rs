//! What `ssh` is given, and what it says.

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
    Call { to, keys, command: "git-upload-pack '/a'".to_owned(), variable, input: Bytes::from("0000"), answer_max: 100 }
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
    let sixth = ["2606:4700:4700::1111", "2606:4700:4700::1001", "2620:fe::fe", "2.2.2.2"];
    let answer = called(&ssh, "ssh://h/a", &[&sixth], &[]).await;
    assert_eq!(answer.map(|answer| answer.output), Ok(Bytes::from("here\n")), "of each version one comes first");
}

#[test]
fn what_a_host_says_is_shown_without_its_control_characters_and_cut() {
    let to = SshUrl::parse("ssh://h/a").unwrap();
    let SshError::Failed(said) = meant(&format!("\u{1b}[2J{}", "x".repeat(4000)), &to) else { panic!("another error") };
    assert!(said.len() < 400 && said.contains("\\u{1b}[2J") && !said.contains('\u{1b}'), "{said}");
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
    let loud =
        shown(folder.path(), "i=0; while [ $i -lt 3000 ]; do echo words >&2; i=$((i+1)); done; echo last >&2; exit 1");
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
        ("Load key \"/proc/1/fd/9\": error in libcrypto\r\ngit@h: Permission denied (publickey).", "Refused", "whole"),
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
