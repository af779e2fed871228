//! One commit with all of its files, judged before any of it is written to a disk.
//!
//! - Each object is named by its hash, from the commit down: what was not asked for cannot come in between.
//! - No name leads out of the folder or into `.git`, in any spelling that some file system takes for it
//!   ([verify_path]); no name comes twice in a folder.
//! - No link leads out, not even through other links.
//! - Everything is counted before it is written: a few small objects can name each other to terabytes.
//!
//! Not for writing it down, nor for submodules and large files that are kept elsewhere (LFS): those are named, not fetched.
//!
//! [verify_path]: https://github.com/git/git/blob/master/read-cache.c

mod links;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use purge::ports::PortError;

use super::failure::{Failure, spoken_bytes, too_much};
use super::object::Kind;
use super::objects::{Commit, DEPTH_MAX};
use super::spill::Spill;
use super::tree::{Entry, entries};
use super::{Bounds, Oid, Remote};

/// Commits of the ref's history in which the commit is looked for, where the server gives out none by its id.
const HISTORY: usize = 50;

/// Bytes of a path, and of what a link names: Linux' own bound.
const PATH_BYTES_MAX: usize = 4096;

/// Bytes of a pointer of git LFS ([spec]).
///
/// [spec]: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
const POINTER_BYTES_MAX: usize = 1024;
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// One commit with all of its files, and what they are called.
pub struct Snapshot {
    spill: Spill,
    /// By path, so a folder comes before what is in it.
    nodes: BTreeMap<Vec<u8>, Node>,
    /// Bytes of all files.
    bytes: usize,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Folder,
    /// A file; whether it may be run.
    File(Oid, bool),
    /// A link, and what it names.
    Link(Vec<u8>),
    /// A commit of another repository, which is not fetched.
    Submodule,
}

impl Snapshot {
    /// Everything in the commit, by path: a folder comes before what is in it.
    pub fn nodes(&self) -> impl Iterator<Item = (&[u8], &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_slice(), node))
    }

    /// The content of a file.
    ///
    /// # Errors
    /// It cannot be read back.
    pub fn content(&self, id: Oid) -> Result<Vec<u8>, PortError> {
        let content = self.spill.content(id).and_then(|content| content.ok_or_else(|| not_whole("file", id)));
        content.map_err(|failure| failure.while_trying(format!("failed to read file {id}"), &[]))
    }

    /// Bytes of all files.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a file's content only names a file that is kept elsewhere.
    pub fn is_pointer(content: &[u8]) -> bool {
        content.len() <= POINTER_BYTES_MAX && content.starts_with(POINTER)
    }

    fn of(spill: Spill, commit: Oid, bounds: Bounds) -> Result<Self, Failure> {
        let root = spill.held(commit, Kind::Commit).and_then(Commit::read);
        let root = root.ok_or_else(|| Failure::lasting(format!("{commit} is no commit")))?.tree;
        let mut walk = Walk { spill: &spill, bounds, nodes: BTreeMap::new(), bytes: 0, path_bytes: 0 };
        walk.folders(root)?;
        let Walk { nodes, bytes, .. } = walk;
        links::check(&nodes)?;
        Ok(Self { spill, nodes, bytes })
    }
}

impl Remote {
    /// One commit with all of its files, by its id; where the server gives out no commits by id, from the newest history of a ref.
    /// Files are held in the scratch file, which should have no other use.
    ///
    /// # Errors
    /// In words; lasting where a person must change something: the commit is gone, it is too large, or it holds what may not be
    /// written.
    pub async fn snapshot(&self, commit: Oid, reference: &str, scratch: File) -> Result<Snapshot, PortError> {
        let whole = async {
            let mut spill = Spill::new(scratch, self.bounds)?;
            self.fetched(commit, reference, &mut spill).await?;
            Snapshot::of(spill, commit, self.bounds)
        };
        whole.await.map_err(|failure| self.door.error(&format!("failed to fetch {commit} from"), failure))
    }

    async fn fetched(&self, commit: Oid, reference: &str, spill: &mut Spill) -> Result<(), Failure> {
        let refused = match self.whole(commit, 1, spill).await {
            Ok(()) => return Ok(()),
            Err(refused) if refused.answered => refused,
            Err(failed) => return Err(failed),
        };
        // A ref that is a commit's id itself leads nowhere.
        if reference.parse::<Oid>().is_ok() {
            let why = format!(
                "{}; is the commit gone? Name a branch, if the server gives out no commits by id",
                refused.cause
            );
            return Err(Failure::lasting(why));
        }
        let refs = self.listed(&[reference]).await?;
        let gone = |why: &str| Failure::lasting(format!("the commit is gone: {why}; {}", refused.cause));
        let tip = refs.get(reference).map(|found| found.peeled.unwrap_or(found.id));
        let tip = tip.ok_or_else(|| gone(&format!("there is no {reference} any more")))?;
        if tip == commit {
            return Err(refused);
        }
        spill.clear()?;
        self.whole(tip, HISTORY, spill).await?;
        match spill.held(commit, Kind::Commit) {
            Some(_) => Ok(()),
            None => {
                Err(gone(&format!("{reference} is at {tip}, and it is not among the last {HISTORY} commits there")))
            }
        }
    }
}

struct Walk<'a> {
    spill: &'a Spill,
    bounds: Bounds,
    nodes: BTreeMap<Vec<u8>, Node>,
    bytes: usize,
    path_bytes: usize,
}

impl Walk<'_> {
    fn folders(&mut self, root: Oid) -> Result<(), Failure> {
        let mut open = vec![(root, Vec::new(), 0_usize)];
        while let Some((tree, above, depth)) = open.pop() {
            if depth > DEPTH_MAX {
                return Err(Failure::lasting(too_much(&format!("{DEPTH_MAX} folders within folders"))));
            }
            let names = self.spill.held(tree, Kind::Tree).ok_or_else(|| not_whole("folder", tree))?;
            let mut known = BTreeSet::new();
            for entry in entries(names) {
                let entry = entry.ok_or_else(|| not_whole("folder", tree))?;
                let path = [above.as_slice(), entry.name].concat();
                let shown = || String::from_utf8_lossy(&path).into_owned();
                names::check(entry.name).map_err(|why| Failure::lasting(format!("{:?} {why}", shown())))?;
                if !known.insert(entry.name) {
                    return Err(Failure::lasting(format!("{:?} is there twice", shown())));
                }
                self.count(&path)?;
                let node = self
                    .node(&entry)
                    .map_err(|why| Failure { cause: format!("{:?} {}", shown(), why.cause), ..why })?;
                if node == Node::Folder {
                    open.push((entry.id, [path.as_slice(), b"/"].concat(), depth.saturating_add(1)));
                }
                self.nodes.insert(path, node);
            }
        }
        Ok(())
    }

    fn count(&mut self, path: &[u8]) -> Result<(), Failure> {
        if path.len() > PATH_BYTES_MAX {
            return Err(Failure::lasting(too_much(&format!("{PATH_BYTES_MAX} bytes in a path"))));
        }
        if self.nodes.len() >= self.bounds.entries {
            return Err(Failure::lasting(too_much(&format!("{} files and folders", self.bounds.entries))));
        }
        self.path_bytes = self.path_bytes.saturating_add(path.len());
        match self.path_bytes > PATHS_BYTES_MAX {
            true => Err(Failure::lasting(too_much(&format!("{} of paths", spoken_bytes(PATHS_BYTES_MAX))))),
            false => Ok(()),
        }
    }

    fn node(&mut self, entry: &Entry<'_>) -> Result<Node, Failure> {
        // The modes that git knows, and one that it wrote long ago.
        match entry.mode_text {
            b"40000" => Ok(Node::Folder),
            b"100644" | b"100664" => self.file(entry.id).map(|()| Node::File(entry.id, false)),
            b"100755" => self.file(entry.id).map(|()| Node::File(entry.id, true)),
            b"120000" => {
                self.file(entry.id)?;
                let long = || Failure::lasting(format!("is a link to more than {PATH_BYTES_MAX} bytes"));
                self.spill.length(entry.id).filter(|length| *length <= PATH_BYTES_MAX).ok_or_else(long)?;
                self.spill.content(entry.id)?.map(Node::Link).ok_or_else(|| not_whole("file", entry.id))
            }
            b"160000" => Ok(Node::Submodule),
            _ => Err(Failure::lasting("has a mode that git does not write")),
        }
    }

    fn file(&mut self, id: Oid) -> Result<(), Failure> {
        let length = self.spill.length(id).ok_or_else(|| not_whole("file", id))?;
        self.bounds.admit(&mut self.bytes, length)
    }
}

/// Bytes of all paths together, which are held in memory.
const PATHS_BYTES_MAX: usize = 64 * 1024 * 1024;

fn not_whole(what: &str, id: Oid) -> Failure {
    Failure::answer(format!("the server did not send {what} {id} whole"))
}

#[cfg(test)]
mod tests;
