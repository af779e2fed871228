//! Objects of one fetch whose files are on disk: a repository of a gigabyte is unpacked in little memory.
//!
//! Folders and commits stay in memory; files are appended to one scratch file and read back from there, as bases of others and
//! when they are written to their place.
//!
//! Not for where the scratch file is, nor for its end; its owner removes it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use super::failure::{Failure, spoken_bytes, too_much};
use super::object::{Kind, Object};
use super::pack::Store;
use super::{Bounds, Oid};

/// Bytes of commits, folders and tags, which are held in memory. 400,000 files take 30 MB of folders.
const HELD_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Objects of which the files are on disk.
pub(super) struct Spill {
    scratch: File,
    /// Bytes that are in it.
    end: u64,
    /// Files: where they are, and how long.
    files: HashMap<Oid, (u64, usize)>,
    held: HashMap<Oid, Object>,
    held_bytes: usize,
    /// Bytes that all reading took so far.
    bytes: usize,
    bounds: Bounds,
}

impl Spill {
    /// None yet. What is in the file is lost.
    pub(super) fn new(scratch: File, bounds: Bounds) -> Result<Self, Failure> {
        let mut spill =
            Self { scratch, end: 0, files: HashMap::new(), held: HashMap::new(), held_bytes: 0, bytes: 0, bounds };
        spill.clear()?;
        Ok(spill)
    }

    pub(super) fn clear(&mut self) -> Result<(), Failure> {
        self.scratch
            .set_len(0)
            .and_then(|()| self.scratch.seek(SeekFrom::Start(0)))
            .map_err(|error| no_disk(&error))?;
        (self.end, self.held_bytes, self.bytes) = (0, 0, 0);
        self.files.clear();
        self.held.clear();
        Ok(())
    }

    /// A commit or a folder.
    pub(super) fn held(&self, id: Oid, kind: Kind) -> Option<&[u8]> {
        self.held.get(&id).filter(|object| object.kind == kind).map(|object| object.data.as_slice())
    }

    /// The length of a file.
    pub(super) fn length(&self, id: Oid) -> Option<usize> {
        self.files.get(&id).map(|(_, length)| *length)
    }

    /// The content of a file.
    pub(super) fn content(&self, id: Oid) -> Result<Option<Vec<u8>>, Failure> {
        let Some((at, length)) = self.files.get(&id) else { return Ok(None) };
        let mut content = vec![0; *length];
        self.scratch.read_exact_at(&mut content, *at).map_err(|error| no_disk(&error))?;
        Ok(Some(content))
    }
}

impl Store for Spill {
    fn objects_max(&self) -> usize {
        self.bounds.objects
    }

    fn has(&self, id: Oid) -> bool {
        self.held.contains_key(&id) || self.files.contains_key(&id)
    }

    fn base(&self, id: Oid) -> Result<Option<Cow<'_, Object>>, Failure> {
        match self.held.get(&id) {
            Some(object) => Ok(Some(Cow::Borrowed(object))),
            None => Ok(self.content(id)?.map(|data| Cow::Owned(Object { kind: Kind::Blob, data }))),
        }
    }

    fn insert(&mut self, object: Object) -> Result<Oid, Failure> {
        let id = object.id();
        if self.has(id) {
            return Ok(id);
        }
        let length = object.data.len();
        if object.kind == Kind::Blob {
            self.scratch.write_all(&object.data).map_err(|error| no_disk(&error))?;
            self.files.insert(id, (self.end, length));
            self.end = self.end.saturating_add(length as u64);
        } else {
            self.held_bytes = self.held_bytes.saturating_add(length);
            if self.held_bytes > HELD_BYTES_MAX {
                return Err(Failure::lasting(too_much(&format!("{} of folders", spoken_bytes(HELD_BYTES_MAX)))));
            }
            self.held.insert(id, object);
        }
        Ok(id)
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bounds.admit(&mut self.bytes, bytes)
    }
}

fn no_disk(error: &std::io::Error) -> Failure {
    Failure::passing(format!("the scratch file cannot be used: {error}"), None)
}
