//! What an operator gives: the file, the environment with its older names, the webhooks file, flags, a kubeconfig.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use allclear::adapters::kubernetes::kubeconfig::{self, Origin};
use allclear::config::{Inputs, Invalid, Loaded, RedisAddress, Secret, WebUrl, WorkloadPattern, load, webhook_key};
use kernel::id::{Subject, WorkloadId};
use kernel::mask::shown;

use serde_json::Value;

use crate::{Target, target, text};

pub const TARGETS: &[Target] = &[
    target("config_file", file),
    target("environment", environment),
    target("webhooks_file", webhooks),
    target("durations", durations),
    target("addresses", addresses),
    target("workload_pattern", workload_pattern),
    target("webhook_key", key),
    target("kubeconfig", kubeconfig),
];

const FILE: &str = "/config.toml";

/// Bytes of one problem in words, beside those of the values that it repeats.
const PROBLEM_BYTES_MAX: usize = 4_096;

/// Loads with these files, twice: both answers must be one.
fn loaded(
    file: Option<&str>,
    environment: &BTreeMap<String, String>,
    flags: &BTreeMap<String, String>,
    webhooks: &[u8],
) -> Result<Loaded, Invalid> {
    let read = |path: &Path| match file {
        Some(text) if path == Path::new(FILE) => Ok(text.to_owned()),
        _ if path == Path::new("/webhooks.json") => {
            String::from_utf8(webhooks.to_vec()).map_err(|_| io::ErrorKind::InvalidData.into())
        }
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let once = || {
        load(&Inputs {
            file: file.map(|_| PathBuf::from(FILE)),
            environment: environment.clone(),
            flags: flags.clone(),
            service_account_namespace: None,
            read: &read,
        })
    };
    let (one, other) = (once(), once());
    match (&one, &other) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one.config, other.config);
            assert!(!one.effective.table().is_empty() && one.effective.json().is_object());
        }
        (Err(one), Err(other)) => {
            assert!(!one.problems.is_empty(), "it is refused, and nothing says why");
            assert_eq!(one.to_string(), other.to_string());
            for problem in &one.problems {
                assert!(!problem.message.is_empty() && !problem.fix.is_empty(), "{problem:?}");
                assert!(problem.message.len() <= PROBLEM_BYTES_MAX, "{} bytes", problem.message.len());
            }
        }
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => panic!("the same configuration is good and is not"),
    }
    one
}

fn file(bytes: &[u8]) -> bool {
    let none = BTreeMap::new();
    let read = match loaded(Some(&text(bytes)), &none, &none, b"") {
        Ok(read) => read,
        Err(invalid) => {
            let words = invalid.to_string().len();
            assert!(words <= 64 * 1024 + 64 * bytes.len(), "{words} bytes of words");
            return false;
        }
    };
    let remarked = loaded(Some(&format!("{}\n# a remark", text(bytes))), &none, &none, b"");
    assert_eq!(remarked.expect("a remark changes nothing").config, read.config);
    true
}

/// Lines of `NAME=value`, under old names and new ones.
fn environment(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let pairs = text.lines().filter_map(|line| line.split_once('=')).filter(|(name, _)| !name.is_empty());
    let environment = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    loaded(None, &environment, &BTreeMap::new(), b"").is_ok()
}

fn webhooks(bytes: &[u8]) -> bool {
    let flags = BTreeMap::from([("webhooks.file".to_owned(), "/webhooks.json".to_owned())]);
    let Ok(read) = loaded(None, &BTreeMap::new(), &flags, bytes) else { return false };
    // None is left out because another one has its name, its address or its events.
    let given: Value = serde_json::from_slice(bytes).expect("a file that is accepted is JSON");
    let count = given.get("webhooks").and_then(Value::as_array).map_or(0, Vec::len);
    assert_eq!(read.config.webhooks.hooks.len(), count);
    count > 0
}

/// A duration, and what else one key holds: what is accepted is accepted again as it is shown.
fn durations(bytes: &[u8]) -> bool {
    let given = text(bytes);
    let mut is_time = false;
    for key in ["rollout.timeout", "rollout.settle"] {
        let flags = BTreeMap::from([(key.to_owned(), given.to_string())]);
        let Ok(read) = loaded(None, &BTreeMap::new(), &flags, b"") else { continue };
        let time = match key {
            "rollout.timeout" => read.config.rollout.timeout,
            _ => read.config.rollout.settle,
        };
        let flags = BTreeMap::from([(key.to_owned(), format!("{}ms", time.as_millis()))]);
        let again = loaded(None, &BTreeMap::new(), &flags, b"").expect("the same time in milliseconds");
        assert_eq!(again.config.rollout, read.config.rollout, "{given:?}");
        is_time = true;
    }
    is_time
}

fn addresses(bytes: &[u8]) -> bool {
    /// A password that no text of these may show.
    const PASSWORD: &str = "Wd7PuQzs1";
    let text = text(bytes);
    let mut is_address = false;
    if let Ok(address) = RedisAddress::parse(&text) {
        assert_eq!(RedisAddress::parse(address.expose()).unwrap().expose(), address.expose());
        assert!(!format!("{address:?} {address}").contains(PASSWORD), "{address:?}");
        let (server, port) = address.server();
        assert!(!server.is_empty() && port > 0);
        is_address = true;
    }
    if let Ok(url) = WebUrl::parse(&text) {
        assert_eq!(WebUrl::parse(url.expose().as_str()).unwrap().expose(), url.expose());
        assert!(!format!("{url:?} {url}").contains(PASSWORD), "{url:?}");
        is_address = true;
    }
    // `\u{7f}` is the longest that one byte becomes.
    assert!(shown(&text).len() <= 6 * text.len() + 64);
    is_address
}

fn workload_pattern(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let Some(pattern) = WorkloadPattern::parse(&text) else { return false };
    for (namespace, name) in [("shop", "web"), ("shop", ""), ("", "web"), ("a", "b")] {
        // Nothing but a star, or a name alone, matches more than one.
        let literal = format!("{namespace}/{name}");
        let of_its_kind = text.ends_with(&format!("/{literal}"));
        let named = text == literal || of_its_kind || text == name || text.contains('*');
        let subject = Subject::from(WorkloadId::deployment(namespace, name));
        assert!(!pattern.matches(&subject) || named, "{text:?} and {literal}");
    }
    true
}

fn key(bytes: &[u8]) -> bool {
    let text = text(bytes);
    match webhook_key(&text) {
        Ok(key) => {
            assert!(!Secret::expose(&key).is_empty() && key.expose().len() <= text.len());
            true
        }
        Err(refused) => {
            // What it may be is a secret, so no error repeats it.
            let words = format!("{} {}", refused.message, refused.fix);
            assert!(text.len() < 16 || !words.contains(text.as_ref()), "{words}");
            false
        }
    }
}

/// What others may write is a part of what we may write ourselves, and leads to https.
fn kubeconfig(bytes: &[u8]) -> bool {
    let others = kubeconfig::read(bytes, Origin::Others);
    let ours = kubeconfig::read(bytes, Origin::StandIn);
    match others {
        Ok(config) => {
            assert_eq!(config.cluster_url.scheme_str(), Some("https"));
            assert!(ours.is_ok());
            let auth = &config.auth_info;
            assert!(auth.exec.is_none() && auth.token_file.is_none() && auth.client_key.is_none());
            assert!(auth.token.is_some() || auth.client_key_data.is_some());
            true
        }
        Err(why) => {
            let why = why.to_string();
            assert!(!why.is_empty() && why.len() <= 1_024, "{} bytes", why.len());
            false
        }
    }
}
