//! A client of git's smart protocol, over HTTP and over SSH: reads refs and files of a repository, and pushes one commit.
//!
//! There is no work tree and no history, and no store on disk but a [`Snapshot`]'s. What was fetched is a bag of [`Objects`] in memory; what is pushed
//! is one [`Built`] commit. The promotion's path is
//!
//! ```text
//! refs(base, head) ─▶ fetch(base, head) ─▶ files(base) ─▶ load(some of them) ─▶ build(changes) ─▶ push(head: old → new)
//! ```
//!
//! - Protocol v2 where the server has it, v0 otherwise ([gitprotocol-v2], [gitprotocol-pack]).
//! - The lease is the push's own old → new id: a branch that moved meanwhile is left as it is.
//! - Everything a server says is bounded by [`Bounds`], and no input makes this panic.
//! - The same changes by the same author at the same time are the same commit.
//! - A commit may be signed by an SSH key ([`Signer`]).
//!
//! Not for LFS, submodules or repositories with SHA-256 ids. SHA-1 collisions are not looked for: the
//! content comes from the server that is trusted for it.
//!
//! [gitprotocol-v2]: https://git-scm.com/docs/gitprotocol-v2
//! [gitprotocol-pack]: https://git-scm.com/docs/gitprotocol-pack

mod advertisement;
mod compare;
mod delta;
mod door;
mod exchange;
mod failure;
mod fetch;
mod id;
mod object;
mod objects;
mod pack;
mod packet;
mod push;
mod snapshot;
mod spill;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use purge::ports::PortError;

pub use exchange::Credentials;
pub(crate) use exchange::last_word;
pub use id::{NotAnId, Oid};
pub use objects::{Built, Commit, Draft, File, Objects};
pub use push::Pushed;
pub use snapshot::{Node, Snapshot};

pub use crate::signer::{NoSigner, Signer};

use crate::ssh::SshKeys;
use crate::{Authorities, Http};
use advertisement::{Advertisement, Version};
use door::Door;
use failure::{Failure, spoken_bytes, too_much};

/// How much is taken from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one answer with refs.
    pub refs_bytes: usize,
    /// Bytes of one answer with objects, as they are sent.
    pub pack_bytes: usize,
    /// Bytes of all objects of one answer, unpacked.
    pub unpacked_bytes: usize,
    /// Bytes of one object, unpacked.
    pub object_bytes: usize,
    /// Objects of one answer.
    pub objects: usize,
    /// Entries of all trees that one walk passes.
    pub entries: usize,
}

impl Default for Bounds {
    /// Of a promotion: 4 MiB of refs, 64 MiB packed, 256 MiB unpacked, 400,000 objects, 400,000 entries (200,000 files).
    fn default() -> Self {
        Self::PROMOTION
    }
}

impl Bounds {
    /// See [`Bounds::default`].
    pub(crate) const PROMOTION: Self = Self {
        refs_bytes: 4 << 20,
        pack_bytes: 64 << 20,
        unpacked_bytes: 256 << 20,
        object_bytes: 256 << 20,
        objects: 400_000,
        entries: 400_000,
    };

    /// Takes room for an object of so many bytes more, before it is made.
    fn admit(&self, taken: &mut usize, bytes: usize) -> Result<(), Failure> {
        if bytes > self.object_bytes {
            return Err(Failure::lasting(too_much(&format!("{} in one file", spoken_bytes(self.object_bytes)))));
        }
        *taken = taken.saturating_add(bytes);
        match *taken <= self.unpacked_bytes {
            true => Ok(()),
            false => Err(Failure::lasting(too_much(&format!("{} unpacked", spoken_bytes(self.unpacked_bytes))))),
        }
    }
}

/// One repository on a git host. It remembers what the server can do, so a second look costs one request.
pub struct Remote {
    door: Door,
    bounds: Bounds,
    /// What the server said last about itself.
    memory: Mutex<Option<Advertisement>>,
}

impl Remote {
    /// The repository at a URL as git clones it.
    ///
    /// # Errors
    /// Lasting: the URL is none, has no host, or holds a user, a query or a fragment; the credentials fit into no header.
    pub fn new(
        http: Arc<dyn Http>,
        url: &str,
        credentials: Option<&Credentials>,
        authorities: Option<Authorities>,
    ) -> Result<Self, PortError> {
        Door::web(http, url, credentials, authorities).map(Self::behind)
    }

    /// The repository at an address of SSH.
    ///
    /// # Errors
    /// Lasting: it is no such address.
    pub fn over_ssh(http: Arc<dyn Http>, url: &str, keys: SshKeys) -> Result<Self, PortError> {
        Door::ssh(http, url, keys).map(Self::behind)
    }

    fn behind(door: Door) -> Self {
        Self { door, bounds: Bounds::default(), memory: Mutex::default() }
    }

    /// The same, with other bounds.
    #[must_use]
    pub fn bounded(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// The host of a URL as git clones it, with its port if one is named; with SSH always, for that is another server.
    ///
    /// # Errors
    /// Lasting: the URL is none, or has no host.
    pub fn host(url: &str) -> Result<String, PortError> {
        door::host(url)
    }

    /// The same, whose server is known to speak protocol v2 from an earlier look.
    #[must_use]
    pub fn speaking_v2(self) -> Self {
        self.learn(Some(Advertisement::of_v2()));
        self
    }

    /// Forgets what is known of the server: the next look asks it anew.
    pub fn forget(&self) {
        self.learn(None);
    }

    /// Whether the server is known to speak protocol v2.
    pub fn speaks_v2(&self) -> bool {
        self.known().is_some_and(|known| known.version == Version::V2)
    }

    /// The refs whose names begin with one of these: `HEAD`, `refs/heads/main`. Of an empty repository: none.
    ///
    /// # Errors
    /// In words; lasting where a person must change something.
    pub async fn refs(&self, prefixes: &[&str]) -> Result<Refs, PortError> {
        self.listed(prefixes).await.map_err(|failure| self.door.error("failed to read the refs of", failure))
    }

    /// These commits without their history, and all their trees. Of files only what the server could not leave out.
    ///
    /// # Errors
    /// In words; lasting where a person must change something.
    pub async fn fetch(&self, commits: &BTreeSet<Oid>) -> Result<Objects, PortError> {
        self.trees(commits).await.map_err(|failure| self.door.error("failed to fetch from", failure))
    }

    /// Whether these paths have the same content in two commits, by their folders alone; the empty path is the whole commit. What a
    /// path leads to through a link is not seen, so such a path is never the same.
    ///
    /// # Errors
    /// In words; lasting where a person must change something.
    pub async fn alike(&self, one: Oid, other: Oid, paths: &[String]) -> Result<bool, PortError> {
        let alike = self.compared([one, other], paths).await;
        alike.map_err(|failure| self.door.error("failed to compare two commits of", failure))
    }

    /// Adds these files of a fetched commit to what is there, many by one request. What is there already is not asked for.
    ///
    /// # Errors
    /// In words; lasting where a person must change something.
    pub async fn load(&self, objects: &mut Objects, commit: Oid, files: &BTreeSet<Oid>) -> Result<(), PortError> {
        let loaded = self.files(objects, commit, files).await;
        loaded.map_err(|failure| self.door.error("failed to fetch files from", failure))
    }

    /// Sets a branch, if it still is at `old` (`None`: if it does not exist), and reads it again: what the server says about
    /// its own success is not believed. `new: None` removes the branch. A branch that is at `new` already is left as it is.
    ///
    /// # Errors
    /// In words, those of the server's hooks among them; lasting where a person must change something.
    pub async fn push(&self, branch: &str, old: Option<Oid>, new: Option<&Built>) -> Result<Pushed, PortError> {
        let pushed = self.pushed(branch, old, new).await;
        pushed.map_err(|failure| self.door.error("failed to push to", failure))
    }

    fn known(&self) -> Option<Advertisement> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn learn(&self, known: Option<Advertisement>) {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

/// Some refs of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs(BTreeMap<String, Ref>);

/// Where a ref points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    pub id: Oid,
    /// The object behind an annotated tag.
    pub peeled: Option<Oid>,
    /// The name of the ref that this one stands for; of `HEAD`, if the server says so.
    pub symbolic: Option<String>,
}

impl Refs {
    /// A ref by its whole name.
    pub fn get(&self, name: &str) -> Option<&Ref> {
        self.0.get(name)
    }

    /// The commit at the head of a branch: `branch("main")`.
    pub fn branch(&self, name: &str) -> Option<Oid> {
        self.get(&format!("refs/heads/{name}")).map(|found| found.id)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Ref)> {
        self.0.iter().map(|(name, found)| (name.as_str(), found))
    }
}
