//! A kind of ours as people see it: what makes one kind's commands others than the next one's.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::Error;
use crate::adapters::kubernetes::Clients;
use crate::adapters::kubernetes::desk::{Desk, Found, Listing};
use crate::cli::command_kind::{CommandKind, IdOf};
use crate::config::Config;
use kernel::id::ObjectId;
use objects::history::Entry;
use objects::kept::Answers;

/// A kind that can be shown, and that asks.
pub trait ShownKind: CommandKind {
    /// An object for people.
    type View: Serialize + DeserializeOwned;
    /// Names the one of an object's questions that is meant.
    type Asker: ?Sized;

    /// Where the state of a running allclear has the kind.
    const STATE: &'static str;
    /// What `--override` opens and what it does not.
    const OVERRIDE: &'static str;
    /// What stays where it is not said.
    const GATES_STAY: &'static str;

    /// Where a person comes to the objects.
    fn desk(config: &Config, clients: &Clients) -> Desk<Self>;

    fn view(object: &Self::Object) -> Self::View;

    fn id_of(view: &Self::View) -> &IdOf<Self>;

    /// What people have answered.
    fn answers(object: &Self::Object) -> &Answers;

    /// What its status says of what has ended.
    fn remembered(object: &Self::Object) -> Vec<Entry>;

    /// Why nothing new starts.
    fn suspended(view: &Self::View) -> Option<&str>;

    /// An object in a row, for a list.
    ///
    /// # Errors
    /// Those of the formatter.
    fn row(view: &Self::View, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// All that is known of an object, with ages where it is looked at now.
    ///
    /// # Errors
    /// Those of the formatter.
    fn page(view: &Self::View, now_ms: Option<i64>, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The question that is open.
    ///
    /// # Errors
    /// None is, and what is waited for instead.
    fn open(object: &Self::Object, asker: &Self::Asker) -> Result<Open, Error>;

    /// What a person reads before the question.
    fn before(desk: &Desk<Self>, view: &Self::View, asker: &Self::Asker) -> impl Future<Output = String>;
}

/// A question that is open, in the words of its kind.
pub struct Open {
    pub ticket: String,
    pub words: String,
    /// Since when it is asked; `None` where a person says yes without being asked.
    pub since_ms: Option<i64>,
    /// What asks about what: `shop/web: 1.2 → 1.3 into prod`.
    pub about: String,
    /// What else there is to know of it, a line each.
    pub known: Vec<String>,
    /// What a yes brings about.
    pub follows: String,
    /// What must hold as well.
    pub gates: Vec<String>,
    /// What a yes is said to: `1.3 in prod of shop/web`.
    pub yes_to: String,
    /// What is said of it where it took the place of the question that was shown.
    pub instead: String,
    /// What is written on the object beside the yes.
    pub mark: Option<(&'static str, String)>,
}

/// All objects of a namespace, or of all.
pub async fn all<K: CommandKind>(desk: &Desk<K>, namespace: Option<&str>) -> Result<Listing<K::Object>, Error> {
    desk.all(namespace).await?.ok_or(Error::NoKind(K::ABSENT))
}

/// The object of this name.
pub async fn one<K: CommandKind>(desk: &Desk<K>, id: &IdOf<K>) -> Result<Found<K::Object>, Error> {
    desk.one(id).await?.ok_or_else(|| missing::<K>(id))
}

/// There is no such object.
pub fn missing<K: CommandKind>(id: &IdOf<K>) -> Error {
    Error::Missing { kind: K::NAME, name: id.display_name(), command: K::COMMAND }
}
