//! Two more members of a group: what they have told of as many workloads as this cluster has, on three Redis servers.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use allclear::adapters::redis::Server;
use allclear::adapters::redis::board::RedisBoard;
use kernel::id::{Member, Origin, Seq, WorkloadId};
use purge::agreement::board::POSTINGS_MAX;
use purge::agreement::roster::Heartbeat;
use purge::ports::{Board, PortError, Posting};
use purge::records::record::Record;
use sandbox::redis_server::RedisServer;
use support::fixture::{CONTAINER, image, name, namespace};

use crate::cluster::DEPLOYMENTS;

/// The cluster under measurement.
const OURS: &str = "eu-1";

const OTHERS: [&str; 2] = ["eu-2", "us-1"];

/// The servers, with what the others have posted on all of them.
pub struct Peers {
    servers: Vec<RedisServer>,
    /// What it took one member to post all of its records to one server.
    pub posted_in: Duration,
}

impl Peers {
    /// Fills three servers; `None` where redis-server is not installed.
    pub async fn fill() -> io::Result<Option<Self>> {
        if !RedisServer::is_installed() {
            return Ok(None);
        }
        let servers = (0..=OTHERS.len()).map(|_| RedisServer::start()).collect::<io::Result<Vec<_>>>()?;
        let mut posted_in = Duration::ZERO;
        for member in OTHERS {
            let records: Vec<(WorkloadId, Posting)> =
                (0..DEPLOYMENTS).map(|number| at_rest(member, number)).collect::<io::Result<_>>()?;
            for server in &servers {
                let from = std::time::Instant::now();
                for some in records.chunks(POSTINGS_MAX) {
                    board(server, member)?.post(&origin(member), some).await.map_err(refused)?;
                }
                posted_in = posted_in.max(from.elapsed());
            }
        }
        Ok(Some(Self { servers, posted_in }))
    }

    /// The others say that they live, which a server remembers for half a minute. Nobody else is waited for after that.
    pub async fn beat(&self) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?.as_millis();
        for member in OTHERS {
            let at_ms = i64::try_from(now).map_err(io::Error::other)?;
            let beat =
                Heartbeat { member: Member::from(member), origin: origin(member), at_ms, ..Heartbeat::default() };
            for server in &self.servers {
                board(server, member)?.beat(&beat).await.map_err(refused)?;
            }
        }
        Ok(())
    }

    /// The part of the controller's environment that makes it a member.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let hosts: Vec<String> = self.servers.iter().map(RedisServer::url).collect();
        let ours = hosts.first().cloned().unwrap_or_default();
        let variables = [
            ("REDIS_HOST", ours),
            ("REMOTE_REDIS_HOSTS", hosts.join(",")),
            ("ALLCLEAR__GROUP__MEMBER", OURS.to_owned()),
        ];
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// A record of a member whose workload is what ours is, and nothing is in flight.
fn at_rest(member: &str, number: usize) -> io::Result<(WorkloadId, Posting)> {
    let image = image(number, "2026.11.20-3f9c2d1").parse().map_err(io::Error::other)?;
    let record = Record {
        revision: 3,
        uid: format!("{member}-0f6b1c9e-52c4-4d8f-9a57-{number:012}"),
        version: [(CONTAINER.to_owned().into(), image)].into_iter().collect(),
        generation: 7,
        ..Record::first(Seq(2))
    };
    Ok((WorkloadId::deployment(namespace(number), name(number)), record.into()))
}

fn origin(member: &str) -> Origin {
    Origin(format!("{member}-c1d7a0f2-3b55-4a0e-8f0e-6f1f2d6b9a10"))
}

fn board(server: &RedisServer, member: &str) -> io::Result<RedisBoard> {
    let server = Server::new(&server.url()).map_err(io::Error::other)?;
    Ok(RedisBoard::new(server, "default", &member.into(), None))
}

fn refused(error: PortError) -> io::Error {
    io::Error::other(error.to_string())
}
