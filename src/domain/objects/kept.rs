//! An object of a kind of ours, which the API server keeps for us: what it asks for, what people have answered, and the status that is
//! ours alone to write.

use std::fmt::Debug;
use std::hash::Hash;

use kernel::answer::PortError;
use kernel::id::{ObjectId, Subject};
use kernel::unreadable::Unreadable;
use notices::delivery::{InvalidResend, Resend};
use notices::notice::{Kind, Notice};

/// A kind of ours, by the parts of its objects. The machine of an object stands for its kind.
pub trait OwnKind: Clone + Debug + Eq + Hash + 'static {
    type Id: ObjectId;
    type Spec: Clone + Debug + Eq + Hash + Send + Sync + Unpin;
    type Status: Remembered;

    /// The notice of a fault of an object.
    const FAULTY: Kind;

    /// What the notices of an object are about.
    fn subject(id: Self::Id) -> Subject;
}

/// The status of an object, which is all that we remember of it.
pub trait Remembered: Clone + Debug + Eq + Hash + Default + Send + Sync + Unpin + 'static {
    /// How often it was written. It never decreases, but for a restore from a backup.
    fn serial(&self) -> u64;

    /// It is written for this time.
    fn set_serial(&mut self, serial: u64);

    /// The same without what is only for people, so that two can be compared by what later decisions rest on.
    #[must_use]
    fn decisive(&self) -> Self;

    /// Notices that are not in the outbox yet.
    fn untold(&self) -> &[Notice];

    fn untold_mut(&mut self) -> &mut Vec<Notice>;
}

/// One of them, as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object<K: OwnKind> {
    pub id: K::Id,
    /// `metadata.uid`: another one is another object.
    pub uid: String,
    /// `metadata.generation`: it rises with each change of the spec.
    pub generation: i64,
    /// `metadata.resourceVersion`, against which a status is written.
    pub version: String,
    /// The spec, or its fault.
    pub spec: Result<K::Spec, String>,
    pub answers: Answers,
    pub status: K::Status,
    /// It has a deletion timestamp.
    pub deleting: bool,
    pub finalizers: Finalizers,
}

impl<K: OwnKind> Object<K> {
    /// Whether it is being deleted, and stays until we let it go.
    pub const fn is_leaving(&self) -> bool {
        self.deleting && self.finalizers.ours
    }
}

/// What keeps an object that is being deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Finalizers {
    /// Ours: it stays until we let it go.
    pub ours: bool,
    /// Kubernetes' own: its dependents are being deleted, or orphaned. What is made meanwhile would go with them.
    pub cascading: bool,
}

/// The marks of people on the object, beside its spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Answers {
    /// The ticket that is answered with yes.
    pub approve: Option<String>,
    /// The ticket whose time and verdict gates are opened, too.
    pub overrides: Option<String>,
    pub by: Option<String>,
    /// What a person chose for an environment, as `prod/1.4.2`: it counts with a yes to its ticket.
    pub promote: Option<String>,
    /// The UID of the object that is to go with nothing destroyed. An answer to the deletion of another object is none.
    pub keep: Option<String>,
    /// The last request for a look, as any text. A changed text is a new request.
    pub poked: Option<String>,
    /// Notices that are to be sent again, which is nothing to its machine.
    pub resend: Option<Result<Resend, InvalidResend>>,
}

impl Answers {
    /// True if this ticket was approved.
    pub fn approve(&self, ticket: &str) -> bool {
        [&self.approve, &self.overrides].into_iter().flatten().any(|answered| answered == ticket)
    }

    /// True if this ticket's gates were opened.
    pub fn overrides(&self, ticket: &str) -> bool {
        self.overrides.as_deref() == Some(ticket)
    }
}

/// The interface of an object for code that only keeps it.
pub trait Kept: Clone + Debug + Eq + Hash + Send + Sync + Unpin + 'static {
    type Id: ObjectId;

    /// Its status, which is ours alone to write.
    type Status: Clone + Send + Sync + 'static;

    fn id(&self) -> &Self::Id;

    /// Which object it is, and at which version.
    fn identity(&self) -> Identity<'_>;

    fn status(&self) -> &Self::Status;

    /// Puts another status in the place of its own, as of this version.
    fn overlay(&mut self, status: Self::Status, version: String);
}

/// Which object, and at which version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// `metadata.uid`: another one is another object.
    pub uid: &'a str,
    /// `metadata.resourceVersion`, over which a write goes.
    pub version: &'a str,
}

impl<K: OwnKind> Kept for Object<K> {
    type Id = K::Id;
    type Status = K::Status;

    fn id(&self) -> &K::Id {
        &self.id
    }

    fn identity(&self) -> Identity<'_> {
        Identity { uid: &self.uid, version: &self.version }
    }

    fn status(&self) -> &K::Status {
        &self.status
    }

    fn overlay(&mut self, status: K::Status, version: String) {
        (self.status, self.version) = (status, version);
    }
}

/// The news of a watch of such objects.
#[derive(Clone, Debug)]
pub enum ObjectSight<T: Kept> {
    /// A new listing begins: what is not seen before its [`ObjectSight::Synced`] does not exist any more.
    Restarted,
    /// An object as it is now.
    Seen(Box<T>),
    /// An object that cannot be read, and why.
    Unreadable(T::Id, Unreadable),
    /// An object was deleted.
    Gone(T::Id),
    /// All objects have been seen at least once since [`ObjectSight::Restarted`]; also said when a watch that was in trouble
    /// goes on without a new listing.
    Synced,
    /// The watch failed and is being started again.
    Trouble(PortError),
}

/// The outcome of a write of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written<T> {
    /// It is stored; the object as it is now.
    Stored(Box<T>),
    /// It is stored, but the API server dropped these fields of it, since the CRD does not have them: nothing that rests on
    /// them is durable.
    Pruned(Box<T>, Vec<String>),
    /// Another write came first: nothing was written. The object as it is now; `None` if it does not exist any more.
    Conflict(Option<Box<T>>),
}

/// Why what is shown is older than the spec, if it is.
pub fn unjudged(serial: u64, observed: i64, generation: i64) -> Option<String> {
    // Before its first status an object has the CRD's default of -1, or none at all.
    if serial == 0 && observed <= 0 {
        return Some("allclear has not judged it yet: it does within ten seconds where it runs and leads".to_owned());
    }
    (observed < generation).then(|| "its spec was changed, and allclear has not judged that yet".to_owned())
}
