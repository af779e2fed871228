//! Commits, folders and files in memory, and a commit that is made of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use purge::ports::PortError;

use super::failure::{Failure, spoken_bytes, too_much};
use super::object::{Kind, Object};
use super::pack::Store;
use super::tree::{Entry, Mode, entries};
use super::{Bounds, Oid, Signer, pack};

/// Folders within folders. Linux allows paths of 4,096 bytes; no repository of people comes near this.
pub(super) const DEPTH_MAX: usize = 128;

/// Objects that were fetched.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub(super) objects: HashMap<Oid, Object>,
    /// Bytes that all reading took so far.
    bytes: usize,
    pub(super) bounds: Bounds,
}

/// A commit, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub tree: Oid,
    /// What it was made from, in order.
    pub parents: Vec<Oid>,
    /// Its author as `Name <email>`.
    pub author: String,
    /// The committer, who differs from the author after an amend; empty if missing.
    pub committer: String,
    /// Its message; what is not UTF-8 in it is replaced.
    pub message: String,
}

/// A file of a commit: neither a link nor a submodule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// From the root, without a slash in front. Files with a name that is not UTF-8 are left out.
    pub path: String,
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
    /// What signs it, perhaps as another committer.
    pub signer: Option<&'a Signer>,
}

/// A commit that can be pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    pub id: Oid,
    /// Everything in it that its base has not.
    pub(super) pack: Bytes,
}

impl Objects {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// A fetched commit.
    ///
    /// # Errors
    /// It was not fetched, or is no commit.
    pub fn commit(&self, id: Oid) -> Result<Commit, PortError> {
        let commit = self.of_kind(id, Kind::Commit).and_then(Commit::read);
        commit.ok_or_else(|| Failure::answer("the server did not send it whole").while_trying(reading(id), &[]))
    }

    /// All files of a commit, of a folder of it if one is named, by path.
    ///
    /// # Errors
    /// Lasting: there is no such folder; there are too many files. Passing: the server did not send all.
    pub fn files(&self, commit: Oid, folder: Option<&str>) -> Result<Vec<File>, PortError> {
        let mut folders = folder.unwrap_or_default().split('/').filter(|name| !name.is_empty() && *name != ".");
        let root = self.commit(commit)?.tree;
        let found = folders.try_fold((root, String::new()), |(tree, path), name| {
            let below = self.names(tree)?.into_iter().find(|entry| entry.text() == Some(name));
            let below = below.filter(|entry| entry.mode() == Mode::Folder);
            let below = below.ok_or_else(|| Failure::lasting(format!("there is no folder {path}{name}")))?;
            Ok((below.id, format!("{path}{name}/")))
        });
        found
            .and_then(|(tree, path)| self.walk(tree, path))
            .map_err(|failure| failure.while_trying(reading(commit), &[]))
    }

    /// The content of a file that is here.
    pub fn content(&self, id: Oid) -> Option<&[u8]> {
        self.of_kind(id, Kind::Blob)
    }

    /// The commit in which some files of the base, by path, have another content. `None` if they have that content already.
    ///
    /// # Errors
    /// Lasting: a path is no file of the base.
    pub fn build(&self, draft: &Draft<'_>, changes: &BTreeMap<String, Bytes>) -> Result<Option<Built>, PortError> {
        let base = self.commit(draft.base)?.tree;
        let changes = changes.iter().map(|(path, content)| (path.as_str(), content)).collect();
        let mut made = Vec::new();
        let tree = self.changed(base, changes, 0, &mut made);
        let tree =
            tree.map_err(|failure| failure.while_trying(format!("failed to change files of {}", draft.base), &[]))?;
        if tree == base {
            return Ok(None);
        }
        let commit = draft.object(tree).ok_or_else(|| {
            Failure::lasting("the key signs nothing").while_trying("failed to sign a commit".to_owned(), &[])
        })?;
        let id = commit.id();
        made.push(commit);
        Ok(Some(Built { id, pack: pack::written(&made).into() }))
    }

    pub(super) fn get(&self, id: Oid) -> Option<&Object> {
        self.objects.get(&id)
    }

    pub(super) fn of_kind(&self, id: Oid, kind: Kind) -> Option<&[u8]> {
        self.objects.get(&id).filter(|object| object.kind == kind).map(|object| object.data.as_slice())
    }

    pub(super) fn names(&self, tree: Oid) -> Result<Vec<Entry<'_>>, Failure> {
        let names = self.of_kind(tree, Kind::Tree).and_then(|tree| entries(tree).collect());
        names.ok_or_else(|| Failure::answer(format!("the server did not send folder {tree} whole")))
    }

    /// All files below a folder, with `path` in front.
    fn walk(&self, tree: Oid, path: String) -> Result<Vec<File>, Failure> {
        let mut files = Vec::new();
        let (mut passed, mut path_bytes) = (0_usize, 0_usize);
        let mut open = vec![(tree, path, 0_usize)];
        while let Some((tree, path, depth)) = open.pop() {
            if depth > DEPTH_MAX {
                return Err(Failure::lasting(too_much(&format!("{DEPTH_MAX} folders within folders"))));
            }
            for entry in self.names(tree)? {
                let Some(name) = entry.text() else { continue };
                passed = passed.saturating_add(1);
                path_bytes = path_bytes.saturating_add(path.len()).saturating_add(name.len());
                if passed > self.bounds.entries {
                    return Err(Failure::lasting(too_much(&format!("{} files and folders", self.bounds.entries))));
                }
                if path_bytes > self.bounds.unpacked_bytes {
                    return Err(Failure::lasting(too_much(&format!(
                        "{} of paths",
                        spoken_bytes(self.bounds.unpacked_bytes)
                    ))));
                }
                match entry.mode() {
                    Mode::File { executable } => {
                        files.push(File { path: format!("{path}{name}"), id: entry.id, executable });
                    }
                    Mode::Folder => open.push((entry.id, format!("{path}{name}/"), depth.saturating_add(1))),
                    Mode::Other => {}
                }
            }
        }
        files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(files)
    }

    /// A folder with other content in some of its files; what is new is added to `made`.
    fn changed(
        &self,
        tree: Oid,
        changes: Vec<(&str, &Bytes)>,
        depth: usize,
        made: &mut Vec<Object>,
    ) -> Result<Oid, Failure> {
        if depth > DEPTH_MAX {
            return Err(Failure::lasting(too_much(&format!("{DEPTH_MAX} folders within folders"))));
        }
        let mut files = BTreeMap::new();
        let mut folders = BTreeMap::<&str, Vec<(&str, &Bytes)>>::new();
        for (path, content) in changes {
            match path.split_once('/') {
                Some((folder, path)) => folders.entry(folder).or_default().push((path, content)),
                None => _ = files.insert(path, content),
            }
        }
        let mut written = Vec::new();
        for mut entry in self.names(tree)? {
            match (entry.text(), entry.mode()) {
                (Some(name), Mode::File { .. }) => {
                    if let Some(content) = files.remove(name) {
                        entry.id = make(Object { kind: Kind::Blob, data: content.to_vec() }, entry.id, made);
                    }
                }
                (Some(name), Mode::Folder) => {
                    if let Some(changes) = folders.remove(name) {
                        entry.id = self.changed(entry.id, changes, depth.saturating_add(1), made)?;
                    }
                }
                (Some(_), Mode::Other) | (None, _) => {}
            }
            entry.write(&mut written);
        }
        match files.keys().chain(folders.keys()).next() {
            Some(name) => Err(Failure::lasting(format!("{name} is no file or folder there"))),
            None => Ok(make(Object { kind: Kind::Tree, data: written }, tree, made)),
        }
    }
}

impl Store for Objects {
    fn objects_max(&self) -> usize {
        self.bounds.objects
    }

    fn has(&self, id: Oid) -> bool {
        self.objects.contains_key(&id)
    }

    fn base(&self, id: Oid) -> Result<Option<Cow<'_, Object>>, Failure> {
        Ok(self.objects.get(&id).map(Cow::Borrowed))
    }

    fn insert(&mut self, object: Object) -> Result<Oid, Failure> {
        let id = object.id();
        self.objects.insert(id, object);
        Ok(id)
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bounds.admit(&mut self.bytes, bytes)
    }
}

/// Keeps an object that is made, unless it is what was there.
fn make(object: Object, before: Oid, made: &mut Vec<Object>) -> Oid {
    let id = object.id();
    if id != before {
        made.push(object);
    }
    id
}

fn reading(commit: Oid) -> String {
    format!("failed to read commit {commit}")
}

impl Commit {
    /// The value of a trailer, a line `key: value` of the message's last paragraph; the last of several.
    pub fn trailer(&self, key: &str) -> Option<&str> {
        let (_, last) = self.message.trim_end().rsplit_once("\n\n")?;
        let values = last.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        values.map(str::trim).next_back()
    }

    pub(super) fn read(data: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(data);
        let (head, message) = text.split_once("\n\n").unwrap_or((text.trim_end_matches('\n'), ""));
        let values = |key: &'static str| head.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(' '));
        let person =
            |line: &str| line.rsplit_once('>').map_or_else(|| line.to_owned(), |(name, _when)| format!("{name}>"));
        Some(Self {
            tree: values("tree").next()?.parse().ok()?,
            parents: values("parent").map(str::parse).collect::<Result<_, _>>().ok()?,
            author: values("author").next().map(person)?,
            committer: values("committer").next().map(person).unwrap_or_default(),
            message: message.to_owned(),
        })
    }
}

impl Draft<'_> {
    /// The commit; `None` if it cannot be signed. What is signed is the commit without the signature, which then is a header of
    /// several lines, each but the first behind a space ([gitformat-signature](https://git-scm.com/docs/gitformat-signature)).
    fn object(&self, tree: Oid) -> Option<Object> {
        let Self { base: _, parent, author, at, message, signer } = self;
        let committer = signer.and_then(Signer::committer).unwrap_or(author);
        let head =
            format!("tree {tree}\nparent {parent}\nauthor {author} {at} +0000\ncommitter {committer} {at} +0000\n");
        let said = format!("\n{message}\n");
        let signature = match signer {
            Some(signer) => {
                let signature = signer.sign(format!("{head}{said}").as_bytes())?;
                format!("gpgsig {}\n", signature.replace('\n', "\n "))
            }
            None => String::new(),
        };
        Some(Object { kind: Kind::Commit, data: format!("{head}{signature}{said}").into_bytes() })
    }
}

#[cfg(test)]
mod tests;
