//! A commit on its way from a git host to a folder: what the source step of a Job does.
//!
//! - Everything is fetched and judged before the first file is written ([`forge::git::Snapshot`]).
//! - Nothing is written over: each file, folder and link is made new, links last, so no write goes through a link.
//! - What fails leaves a folder that no later container starts with: the step has failed.
//!
//! Not for which commit, nor for what is run on it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forge::Http;
use forge::app::{Apps, Rights};
use forge::git::{Bounds, Node, NotAnId, Oid, Snapshot};
use forge::keys::{GitKeys, NoKeys};

use purge::ports::PortError;

use super::clock::SystemClock;

const MIB: usize = 1024 * 1024;

/// What is taken from a server. Held in memory are twice the packed bytes at most, the folders, and one file with its base; the rest
/// is in a scratch file beside the folder.
const BOUNDS: Bounds = Bounds {
    refs_bytes: 4 * MIB,
    pack_bytes: 256 * MIB,
    unpacked_bytes: 1024 * MIB,
    object_bytes: 100 * MIB,
    objects: 800_000,
    entries: 400_000,
};

/// Bytes of one key of the Secret; Kubernetes keeps 1 MiB of a whole one.
const KEY_BYTES_MAX: u64 = 1024 * 1024;

/// What is to be fetched.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Where the repository is, as git clones it.
    pub url: &'a str,
    /// The commit, in 40 hexadecimal digits.
    pub revision: &'a str,
    /// The ref in whose history it is looked for, where the server gives out no commits by id.
    pub reference: &'a str,
    /// A folder with the keys of the Secret as files.
    pub secret: Option<&'a Path>,
    /// Where the files go: a folder that is empty, or is not there yet.
    pub into: &'a Path,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    pub files: usize,
    /// Bytes of all files.
    pub bytes: usize,
    /// Folders of other repositories, which are empty.
    pub submodules: Vec<String>,
    /// Files that only name a file which is kept elsewhere.
    pub pointers: usize,
}

/// Why a commit is not in its folder.
#[derive(Debug, thiserror::Error)]
pub enum Unfetched {
    #[error("the revision is not the id of a commit: 40 hexadecimal digits")]
    NoCommit(#[from] NotAnId),
    #[error("failed to {0} {path}: {1}", path = .2.display())]
    File(&'static str, io::Error, PathBuf),
    #[error("the folder {} is not empty", .0.display())]
    NotEmpty(PathBuf),
    #[error("failed to read key {0} of the Secret: {1}")]
    Key(&'static str, io::Error),
    #[error("failed to use the Secret: {0}")]
    Secret(#[from] NoKeys),
    /// The server did not give it out, or not as it should be.
    #[error(transparent)]
    Git(#[from] PortError),
}

/// Fetches a commit and writes its files.
///
/// # Errors
/// When it cannot be had, or not be written.
pub async fn fetch(http: Arc<dyn Http>, wanted: &Wanted<'_>) -> Result<Fetched, Unfetched> {
    let Wanted { url, revision, reference, secret, into } = *wanted;
    let commit: Oid = revision.parse()?;
    let keys = secret.map(|folder| keys(folder, url)).transpose()?.unwrap_or_default();
    let apps = Apps::new(Arc::new(SystemClock::default()), Rights::Read);
    let failed = |what: &'static str| move |error| Unfetched::File(what, error, into.to_owned());
    fs::create_dir_all(into).map_err(failed("make folder"))?;
    if fs::read_dir(into).map_err(failed("read folder"))?.next().is_some() {
        return Err(Unfetched::NotEmpty(into.to_owned()));
    }
    let keys = keys.opened(&apps, Arc::clone(&http), url).await?;
    let remote = keys.remote(http, url)?;
    let scratch = scratch(into).map_err(failed("make a scratch file beside"))?;
    write(&remote.bounded(BOUNDS).snapshot(commit, reference, scratch).await?, into)
}

/// The keys of a mounted Secret for this repository.
fn keys(folder: &Path, url: &str) -> Result<GitKeys, Unfetched> {
    let mut found = std::collections::BTreeMap::new();
    for key in GitKeys::KEYS {
        let read = File::open(folder.join(key)).and_then(|file| {
            let mut content = Vec::new();
            io::Read::read_to_end(&mut io::Read::take(file, KEY_BYTES_MAX), &mut content)?;
            Ok(content)
        });
        match read {
            Ok(content) => drop(found.insert(key.to_owned(), content)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Unfetched::Key(key, error)),
        }
    }
    Ok(GitKeys::of(&found, url)?)
}

/// A file without a name, which is gone when it is closed.
fn scratch(into: &Path) -> io::Result<File> {
    let mut name = into.as_os_str().to_owned();
    name.push(".scratch");
    let path = PathBuf::from(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}

fn write(snapshot: &Snapshot, into: &Path) -> Result<Fetched, Unfetched> {
    let mut fetched = Fetched { bytes: snapshot.bytes(), ..Fetched::default() };
    for (path, node) in snapshot.nodes() {
        let place = place(into, path);
        let failed = |error| Unfetched::File("write", error, place.clone());
        match node {
            Node::Folder => fs::create_dir(&place).map_err(failed)?,
            Node::Submodule => {
                fs::create_dir(&place).map_err(failed)?;
                fetched.submodules.push(String::from_utf8_lossy(path).into_owned());
            }
            Node::File(id, executable) => {
                let content = snapshot.content(*id)?;
                let mode = if *executable { 0o755 } else { 0o644 };
                let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&place);
                file.and_then(|mut file| file.write_all(&content)).map_err(failed)?;
                fetched.files = fetched.files.saturating_add(1);
                fetched.pointers = fetched.pointers.saturating_add(usize::from(Snapshot::is_pointer(&content)));
            }
            Node::Link(_) => {}
        }
    }
    for (path, node) in snapshot.nodes() {
        let Node::Link(target) = node else { continue };
        let place = place(into, path);
        symlink(std::ffi::OsStr::from_bytes(target), &place)
            .map_err(|error| Unfetched::File("write link", error, place))?;
        fetched.files = fetched.files.saturating_add(1);
    }
    Ok(fetched)
}

fn place(into: &Path, path: &[u8]) -> PathBuf {
    into.join(std::ffi::OsStr::from_bytes(path))
}
