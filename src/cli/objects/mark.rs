//! Looking now, stopping the line and letting it go on, for one Pipeline or Repo, or for all.

use super::error::Error;
use super::kind::{ShownKind, all, missing, one};
use crate::adapters::kubernetes::desk::{Desk, Found, Listing, Mark, Marked, REQUESTED_AT, SUSPEND, requested_at};
use crate::cli::answer::{EXIT_FAILED, Outcome, refused};
use crate::cli::command_kind::{CommandKind, IdOf};
use crate::looking::page::count;
use kernel::id::ObjectId;
use objects::kept::Kept;

pub enum Which<I> {
    One(I),
    /// All of this namespace; `None`: of all namespaces.
    All(Option<String>),
}

/// What is done with them.
#[derive(Clone, Debug)]
pub enum Change {
    /// They are looked at now: the time of the wish in milliseconds since the Unix epoch, so that no two are the same.
    Poke(i64),
    /// Nothing new starts, for this reason.
    Suspend(Option<String>),
    /// New work starts again.
    Resume,
}

/// Changes objects. Exit codes: 0 all of them changed, 1 not all.
pub async fn change<K: ShownKind>(desk: &Desk<K>, which: Which<IdOf<K>>, change: Change) -> Outcome {
    let listing = match which {
        Which::One(id) => one(desk, &id).await.map(|found| Listing { found: vec![found], ..Listing::default() }),
        Which::All(namespace) => all(desk, namespace.as_deref()).await,
    };
    let Listing { found, unreadable } = match listing {
        Ok(listing) => listing,
        Err(error) => return refused(&error),
    };
    let change = match change {
        Change::Suspend(None) => Change::Suspend(Some(reason(desk).await)),
        named => named,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    for found in &found {
        match apply(desk, found, &change).await {
            Ok(words) => out.push(format!("{}: {words}\n", found.object.id().display_name())),
            Err(error) => err.push(refused(&error).err),
        }
    }
    for (id, why) in &unreadable {
        err.push(refused(&format!("{} was left as it is, for it cannot be read: {why}", id.display_name())).err);
    }
    if found.is_empty() && unreadable.is_empty() {
        out.push(format!("there is no {}\n", K::NAME));
    } else if found.len() > 1 {
        out.push(format!("{} {}\n", count(out.len(), K::NAME, &format!("{}s", K::NAME)), change.words::<K>()));
    }
    Outcome { out: out.concat(), err: err.concat(), code: if err.is_empty() { 0 } else { EXIT_FAILED } }
}

/// Why the line is stopped, if that was not said: at least by whom.
async fn reason<K: ShownKind>(desk: &Desk<K>) -> String {
    desk.who().await.map_or_else(|_| "stopped by hand".to_owned(), |who| format!("stopped by {who}"))
}

async fn apply<K: ShownKind>(desk: &Desk<K>, found: &Found<K::Object>, change: &Change) -> Result<String, Error> {
    let at;
    let mark: Mark<'_> = match change {
        Change::Poke(at_ms) => {
            at = requested_at(*at_ms);
            (REQUESTED_AT, Some(at.as_str()))
        }
        Change::Suspend(reason) => (SUSPEND, Some(reason.as_deref().unwrap_or_default())),
        Change::Resume => (SUSPEND, None),
    };
    let now = match desk.mark(found, &[mark], false).await? {
        Marked::Done(now) => K::view(&now.object),
        Marked::Gone => return Err(missing::<K>(found.object.id())),
        Marked::Changed => return Err(Error::MadeAnew(found.object.id().display_name())),
    };
    let words = change.words::<K>();
    Ok(match (change, K::suspended(&now)) {
        (Change::Resume, Some(why)) => format!("it is still stopped: {why}; set `suspend: false` there"),
        (Change::Suspend(Some(reason)), _) => format!("{words}: {reason}. What was started goes on"),
        _ => words,
    })
}

impl Change {
    fn words<K: CommandKind>(&self) -> String {
        match self {
            Self::Poke(_) => "asked to look now, or when the rest of its host is over".to_owned(),
            Self::Suspend(_) => format!("stopped, so no new {} starts", K::WORK),
            Self::Resume => "going on".to_owned(),
        }
    }
}
