//! Several worlds that are one group: clusters with names of their own, one CDN and one receiver for all, and a Redis per
//! member, which every member reaches by a line of its own that can be made to fail.
//!
//! The servers are real, without persistence, and may be killed, paused and emptied. Where `redis-server` is not installed
//! boards in this process can take their place, for members that live in this process too ([`Web::in_process`]).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::board::SharedBoard;
use crate::kubernetes::Timings;
use crate::proxy::{Direction, Mode, Proxy};
use crate::redis_server::RedisServer;
use crate::world::{Outside, World};
use purge::ports::{Board, Clock};

/// Names of members, in the order they are given out. More make no sense on one machine.
pub const MEMBERS: [&str; 5] = ["eu-1", "us-1", "ap-1", "eu-2", "us-2"];

/// The group. It comes apart, for those who look after each world by itself.
pub struct GroupWorld {
    /// One world for each member, named like it.
    pub worlds: Vec<World>,
    pub web: Web,
}

/// The members' Redis servers and the lines to them. Dropping it kills the servers and breaks the lines.
pub struct Web {
    /// One server for each member, in the same order; none where boards of this process are used instead.
    pub servers: Vec<RedisServer>,
    boards: Vec<SharedBoard>,
    /// For each member its lines to all servers, its own included.
    lines: Vec<Vec<Proxy>>,
    /// For each member the line to its API server.
    apis: Vec<Proxy>,
    password: Option<String>,
}

impl GroupWorld {
    /// Makes a group of this many members (1 to 5), whose clusters have these timings, with invalidations that complete after
    /// this time.
    ///
    /// # Errors
    /// When a port or a file cannot be had, or `redis-server` is not there.
    pub async fn new(members: usize, timings: Timings, completes_after: Option<Duration>) -> io::Result<Self> {
        Self::joined(members, timings, completes_after, Web::new(members, None, &[])?).await
    }

    /// Makes a group around servers and lines that are there.
    ///
    /// # Errors
    /// When a port or a file cannot be had.
    pub async fn joined(
        members: usize,
        timings: Timings,
        completes_after: Option<Duration>,
        mut web: Web,
    ) -> io::Result<Self> {
        let outside = Outside::new(completes_after).await?;
        let mut worlds = Vec::new();
        for (at, name) in MEMBERS.iter().take(members).enumerate() {
            let mut world = World::beside(name, timings, outside.clone()).await?;
            world.set("ALLCLEAR__GROUP__MEMBER", *name);
            // Meant: all members are on one machine. A test of forgeries sets a key.
            world.set("ALLCLEAR__GROUP__UNSIGNED", "true");
            let others = (0..members).filter(|other| *other != at);
            if web.boards.is_empty() {
                world.set("REDIS_HOST", web.url(at, at));
                world.set("REMOTE_REDIS_HOSTS", others.map(|other| web.url(at, other)).collect::<Vec<_>>().join(","));
            } else {
                let own_first =
                    std::iter::once(at).chain(others).map(|other| web.boards[other].handle(&(*name).into()));
                world.boards = own_first.map(|board| Arc::new(board) as Arc<dyn Board>).collect();
            }
            let line = Proxy::start(world.api.address())?;
            world.reach_at(line.address())?;
            web.apis.push(line);
            worlds.push(world);
        }
        Ok(Self { worlds, web })
    }
}

impl Web {
    /// Starts a server for each of `members`, with these options, which want this password if there is one, and the lines
    /// between.
    ///
    /// # Errors
    /// When `redis-server` is not there, or a port cannot be had.
    pub fn new(members: usize, password: Option<&str>, options: &[&str]) -> io::Result<Self> {
        let password_option = password.iter().flat_map(|password| ["--requirepass", password]);
        let arguments: Vec<&str> = password_option.chain(options.iter().copied()).collect();
        let servers = (0..members).map(|_| RedisServer::start_with(&arguments)).collect::<io::Result<Vec<_>>>()?;
        let addresses: Vec<SocketAddr> = servers.iter().map(RedisServer::address).collect();
        let from_one = || addresses.iter().map(|address| Proxy::start(*address)).collect::<io::Result<Vec<_>>>();
        let lines = (0..members).map(|_| from_one()).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { servers, boards: Vec::new(), lines, apis: Vec::new(), password: password.map(str::to_owned) })
    }

    /// Boards in this process in place of servers, which tell the time by this clock, with nothing between that could be made
    /// to fail.
    pub fn in_process(members: usize, clock: &Arc<dyn Clock>) -> Self {
        let board = |at: usize| SharedBoard::new(&format!("board-{}", at + 1), Arc::clone(clock));
        let boards = (0..members).map(board).collect();
        Self { servers: Vec::new(), boards, lines: Vec::new(), apis: Vec::new(), password: None }
    }

    /// The line from a member to the Redis of a member.
    pub fn line(&self, from: usize, to: usize) -> &Proxy {
        &self.lines[from][to]
    }

    /// The line from a member to its API server.
    pub fn api(&self, of: usize) -> &Proxy {
        &self.apis[of]
    }

    /// Changes both directions of the line from a member to the Redis of a member.
    pub fn set(&self, from: usize, to: usize, mode: Mode) {
        self.line(from, to).set_both(mode);
    }

    /// Changes one direction of that line.
    pub fn set_one_way(&self, from: usize, to: usize, direction: Direction, mode: Mode) {
        self.line(from, to).set(direction, mode);
    }

    /// Changes every line between a member of `these` and the Redis of another member, and the other way round: a partition,
    /// if nothing passes.
    pub fn part(&self, these: &[usize], mode: Mode) {
        for (from, to) in self.edges() {
            if these.contains(&from) != these.contains(&to) {
                self.set(from, to, mode);
            }
        }
    }

    pub fn set_all(&self, mode: Mode) {
        self.edges().for_each(|(from, to)| self.set(from, to, mode));
    }

    /// The URL by which one member reaches another's Redis.
    pub fn url(&self, from: usize, to: usize) -> String {
        let login = self.password.as_ref().map(|password| format!(":{password}@")).unwrap_or_default();
        format!("redis://{login}{}", self.line(from, to).address())
    }

    fn edges(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let members = self.servers.len();
        (0..members).flat_map(move |from| (0..members).map(move |to| (from, to)))
    }
}
