//! One object: its kind, its bytes, and the id that follows from both.

use sha1_smol::Sha1;

use super::Oid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) kind: Kind,
    pub(super) data: Vec<u8>,
}

impl Object {
    pub(super) fn id(&self) -> Oid {
        let mut sum = Sha1::from(format!("{} {}\0", self.kind.name(), self.data.len()));
        sum.update(&self.data);
        Oid::new(sum.digest().bytes())
    }
}

impl Kind {
    /// The kind that a pack's number means.
    pub(super) fn of_code(code: u8) -> Option<Self> {
        [Self::Commit, Self::Tree, Self::Blob, Self::Tag].into_iter().find(|kind| kind.code() == code)
    }

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Commit => 1,
            Self::Tree => 2,
            Self::Blob => 3,
            Self::Tag => 4,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}
