//! A client of git's smart HTTP protocol: reads refs and files of a repository, and pushes one commit.
//!
//! There is no work tree, no history and no store on disk. What was fetched is a bag of [`Objects`] in memory; what is pushed
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
//!
//! Not for SSH, signed commits, LFS, submodules or repositories with SHA-256 ids. SHA-1 collisions are not looked for: the
//! content comes from the server that is trusted for it.
//!
//! [gitprotocol-v2]: https://git-scm.com/docs/gitprotocol-v2
//! [gitprotocol-pack]: https://git-scm.com/docs/gitprotocol-pack

mod id;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use domain::ports::PortError;

pub use id::{NotAnId, Oid};

use crate::{Authorities, Http};

/// What proves to the server who we are. Sent with every request to the repository's own URL, and never said.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// User and password, or user and token.
    Basic {
        /// The user; where a token is the password, most hosts take any name.
        user: String,
        /// The password or token.
        password: String,
    },
    /// A token alone.
    Bearer(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// How much is taken from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one answer with refs.
    pub refs_bytes: usize,
    /// Bytes of one answer with objects, as they are sent.
    pub pack_bytes: usize,
    /// Bytes of all objects of one answer, unpacked.
    pub unpacked_bytes: usize,
    /// Objects of one answer.
    pub objects: usize,
    /// Entries of all trees that one walk passes.
    pub entries: usize,
}

impl Default for Bounds {
    /// Of a promotion: 4 MiB of refs, 64 MiB packed, 256 MiB unpacked, 400,000 objects, 400,000 entries (200,000 files).
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            refs_bytes: 4 * MIB,
            pack_bytes: 64 * MIB,
            unpacked_bytes: 256 * MIB,
            objects: 400_000,
            entries: 400_000,
        }
    }
}

/// One repository on a git host. It remembers what the server can do, so a second look costs one request.
pub struct Remote {
    http: Arc<dyn Http>,
    url: String,
    credentials: Option<Credentials>,
    authorities: Option<Authorities>,
    bounds: Bounds,
}

impl Remote {
    /// The repository at a URL as git clones it.
    ///
    /// # Errors
    /// Lasting: the URL is none, has no host, or holds a user, a query or a fragment.
    pub fn new(
        http: Arc<dyn Http>,
        url: &str,
        credentials: Option<Credentials>,
        authorities: Option<Authorities>,
    ) -> Result<Self, PortError> {
        Ok(Self { http, url: url.to_owned(), credentials, authorities, bounds: Bounds::default() })
    }

    /// The same, with other bounds.
    #[must_use]
    pub fn bounded(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// The refs whose names begin with one of these: `HEAD`, `refs/heads/main`. Of an empty repository: none.
    ///
    /// # Errors
    /// In words; lasting where a person must change something.
    pub async fn refs(&self, prefixes: &[&str]) -> Result<Refs, PortError> {
        let _ = prefixes;
        Err(self.unfinished())
    }

    /// These commits without their history, and all their trees. Of files only what the server could not leave out.
    ///
    /// # Errors
    /// In words; lasting where a person must change something.
    pub async fn fetch(&self, commits: &BTreeSet<Oid>) -> Result<Objects, PortError> {
        let _ = commits;
        Err(self.unfinished())
    }

    /// Adds these files of a fetched commit to what is there, many by one request. What is there already is not asked for.
    ///
    /// # Errors
    /// In words; lasting where a person must change something.
    pub async fn load(&self, objects: &mut Objects, commit: Oid, files: &BTreeSet<Oid>) -> Result<(), PortError> {
        let _ = (objects, commit, files);
        Err(self.unfinished())
    }

    /// Sets a branch, if it still is at `old` (`None`: if it does not exist), and reads it again: what the server says about
    /// its own success is not believed. `new: None` removes the branch. Where `new` is there already nothing is sent.
    ///
    /// # Errors
    /// In words, those of the server's hooks among them; lasting where a person must change something.
    pub async fn push(&self, branch: &str, old: Option<Oid>, new: Option<&Built>) -> Result<Pushed, PortError> {
        let _ = (branch, old, new);
        Err(self.unfinished())
    }

    fn unfinished(&self) -> PortError {
        let _ = (&self.http, &self.credentials, &self.authorities, self.bounds);
        PortError::lasting(format!("failed to talk to {}", self.url), "the client is not written yet")
    }
}

/// What became of a push that the server did not refuse for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The branch was read again and is as it was asked to be.
    Done,
    /// The branch is not at `old`: nothing was written. Where it is now.
    Moved(Option<Oid>),
    /// The server lets this branch only go forward: what is pushed must have `old` as its parent.
    ForwardOnly,
}

/// Some refs of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs(BTreeMap<String, Ref>);

/// Where a ref points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    /// The object.
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

/// Objects that were fetched.
#[derive(Clone, Debug, Default)]
pub struct Objects {}

/// A commit, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its root folder.
    pub tree: Oid,
    /// What it was made from, in order.
    pub parents: Vec<Oid>,
    /// Its author as `Name <email>`.
    pub author: String,
    /// Its message; what is not UTF-8 in it is replaced.
    pub message: String,
}

impl Commit {
    /// The value of a trailer, a line `key: value` of the message's last paragraph; the last of several.
    pub fn trailer(&self, key: &str) -> Option<&str> {
        let last = self.message.trim_end().rsplit("\n\n").next()?;
        let values = last.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        values.map(str::trim).next_back()
    }
}

/// A file of a commit: neither a link nor a submodule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// From the root, without a slash in front. Files with a name that is not UTF-8 are left out.
    pub path: String,
    /// Its content.
    pub id: Oid,
    /// It may be run as a program.
    pub executable: bool,
}

/// A commit to be made: what it says and who made it, both as author and as committer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft<'a> {
    /// The commit whose files it changes.
    pub base: Oid,
    /// What it is made from: `base`, or where a branch only goes forward the head of that branch.
    pub parent: Oid,
    /// `Name <email>`.
    pub author: &'a str,
    /// Seconds since the Unix epoch, at UTC.
    pub at: i64,
    /// The message, trailers included.
    pub message: &'a str,
}

/// A commit that can be pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// Its id.
    pub id: Oid,
    /// Everything in it that its base has not.
    pack: Bytes,
}

impl Objects {
    /// A fetched commit.
    ///
    /// # Errors
    /// It was not fetched, or is no commit.
    pub fn commit(&self, id: Oid) -> Result<Commit, PortError> {
        Err(PortError::passing(format!("failed to read commit {id}"), "the client is not written yet"))
    }

    /// All files of a commit, of a folder of it if one is named, in git's order.
    ///
    /// # Errors
    /// Lasting: there is no such folder; there are too many files.
    pub fn files(&self, commit: Oid, folder: Option<&str>) -> Result<Vec<File>, PortError> {
        let _ = folder;
        Err(PortError::passing(format!("failed to list the files of {commit}"), "the client is not written yet"))
    }

    /// The content of a file that is here.
    pub fn content(&self, id: Oid) -> Option<&[u8]> {
        let _ = id;
        None
    }

    /// The commit in which some files of the base, by path, have another content. `None` if they have that content already.
    ///
    /// # Errors
    /// Lasting: a path is no file of the base.
    pub fn build(&self, draft: &Draft<'_>, changes: &BTreeMap<String, Bytes>) -> Result<Option<Built>, PortError> {
        let _ = (draft, changes);
        Ok(None)
    }
}
