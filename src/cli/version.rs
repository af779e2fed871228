//! `allclear version [--client] [--server URL]`: this program's version, and that of the allclear that runs.
//!
//! The running one says it itself, at its status page (`--server`) or on its Redis; without either, the image of its Deployment
//! says it. Not for the other members: `allclear group show` has those.

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;
use url::Url;

use crate::cli::answer::{EXIT_FAILED, Outcome, Output, answer};
use crate::cli::status::remote;
use crate::looking::listen::heard;
use crate::looking::{Section, Sources, peek};
use kernel::id::WorkloadId;
use kernel::names::image::Version;
use purge::workloads::workload::NoVersion;

const OURS: &str = env!("CARGO_PKG_VERSION");

/// The Deployment of `deploy/base`.
const DEPLOYMENT: &str = "allclear";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Versions {
    pub client: &'static str,
    /// The running one's; `None` where it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Section<Server>>,
    /// What follows where they differ, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skew: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Server {
    pub version: String,
    pub by: String,
}

pub fn client(output: Output) -> Outcome {
    answer(&Versions { client: OURS, server: None, skew: None }, output, 0)
}

/// Both, the running one's by its status page. Exit codes: 0 known, 1 not.
pub async fn of_server(url: &Url, output: Output) -> Outcome {
    let found = remote::state(url, None).await.and_then(|state| {
        let version = state.get("version").and_then(serde_json::Value::as_str);
        version.map(str::to_owned).ok_or_else(|| "it does not say its version".to_owned())
    });
    let server = match found {
        Ok(version) => Section::Known(Server { version, by: "its status page".to_owned() }),
        Err(why) => Section::missing(why),
    };
    both(server, output)
}

/// Both, the running one's by its Redis or its Deployment in this namespace. Exit codes: 0 known, 1 not.
pub async fn of_cluster(sources: &Sources, namespace: &str, output: Output) -> Outcome {
    if let Some(version) = beaten(sources).await {
        return both(Section::Known(Server { version, by: "its Redis".to_owned() }), output);
    }
    let id = WorkloadId::deployment(namespace, DEPLOYMENT);
    let server = match sources.cluster.workload(&id).await {
        Err(error) => Section::missing(error),
        Ok(None) => Section::missing(format!(
            "there is no Deployment {}; name its status page by --server, or its namespace by --ledger-namespace",
            id.display_name()
        )),
        Ok(Some(workload)) => match tag(&workload.version) {
            Some(version) => {
                Section::Known(Server { version, by: format!("the image of Deployment {}", id.display_name()) })
            }
            None => Section::missing(format!(
                "the image of Deployment {} names no version; name its status page by --server",
                id.display_name()
            )),
        },
    };
    both(server, output)
}

/// What our own member said last on a board.
async fn beaten(sources: &Sources) -> Option<String> {
    sources.group.as_ref()?;
    let heard = heard(sources, peek(sources).await.known()).await.ok()??;
    heard.beats.get(&heard.member).map(|beat| beat.version.clone())
}

/// The tag of the only image, or of the one that is called like the program.
fn tag(version: &Result<Version, NoVersion>) -> Option<String> {
    let version = version.as_ref().ok()?;
    let all: Vec<_> = version.iter().collect();
    let named = all.iter().find(|(container, _)| container.to_string() == DEPLOYMENT);
    let (_, image) = named.or_else(|| all.first())?;
    image.tag().map(|tag| tag.trim_start_matches('v').to_owned())
}

fn both(server: Section<Server>, output: Output) -> Outcome {
    let known = server.known().is_some();
    let skew = server.known().map(|server| skew(OURS, &server.version)).filter(|_| known).flatten();
    let versions = Versions { client: OURS, server: Some(server), skew };
    answer(&versions, output, if known { 0 } else { EXIT_FAILED })
}

/// What follows from two versions, in a sentence; `None` where they are the same.
fn skew(client: &str, server: &str) -> Option<String> {
    if client == server {
        return None;
    }
    Some(match order(client, server) {
        Some(Ordering::Less) => format!(
            "this program is older than the allclear that runs: what {server} has that {client} does not know is not shown; install {server}"
        ),
        Some(Ordering::Greater) => format!(
            "this program is newer than the allclear that runs: {server} may pass over what {client} asks for; upgrade the cluster or use {server}"
        ),
        Some(Ordering::Equal) | None => {
            format!("this program is another build than the allclear that runs ({client} and {server}); use the same")
        }
    })
}

/// By the three numbers of both, if both have them (<https://semver.org/#spec-item-11>).
fn order(one: &str, other: &str) -> Option<Ordering> {
    let numbers = |text: &str| -> Option<[u64; 3]> {
        let core = text.split(['-', '+']).next()?;
        let all: Vec<u64> = core.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
        all.try_into().ok()
    };
    Some(numbers(one)?.cmp(&numbers(other)?))
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "client: {}", self.client)?;
        match &self.server {
            None => {}
            Some(Section::Known(server)) => writeln!(f, "server: {} (by {})", server.version, server.by)?,
            Some(Section::Missing { missing }) => writeln!(f, "server: not known: {missing}")?,
        }
        match &self.skew {
            Some(skew) => writeln!(f, "{skew}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_is_said_in_words_and_by_number() {
        assert_eq!(skew("0.9.0", "0.9.0"), None);
        for (client, server, words) in [
            ("0.9.0", "0.10.0", "this program is older"),
            ("1.0.0", "0.10.0", "this program is newer"),
            ("1.0.0", "1.0.0-rc.1", "another build"),
            ("1.0.0", "main", "another build"),
        ] {
            let said = skew(client, server).unwrap();
            assert!(said.starts_with(words) || said.contains(words), "{said}");
        }
    }

    #[test]
    fn the_tag_of_its_own_container_is_its_version() {
        let version = |images: &[(&str, &str)]| -> Result<Version, NoVersion> {
            let parse = |(name, image): &(&str, &str)| {
                (kernel::names::image::Container::Main((*name).to_owned()), image.parse().unwrap())
            };
            Ok(images.iter().map(parse).collect())
        };
        let beside = version(&[("aa-proxy", "proxy:3"), ("allclear", "r.example.com/allclear:v0.2.0")]);
        assert_eq!(tag(&beside).as_deref(), Some("0.2.0"));
        assert_eq!(tag(&version(&[("main", "allclear:0.3.0")])).as_deref(), Some("0.3.0"));
        assert_eq!(tag(&Err(NoVersion::TooLarge { containers: 1, bytes: 9_999 })), None);
    }
}
