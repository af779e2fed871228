//! `list`, and `explain` of one object.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use url::Url;

use super::error::Error;
use super::kind::{ShownKind, all, one};
use crate::adapters::kubernetes::desk::{Desk, Listing};
use crate::cli::answer::{EXIT_FAILED, Outcome, Output, answer, refused};
use crate::cli::command_kind::IdOf;
use crate::cli::status::remote;
use kernel::id::ObjectId;
use kernel::text::visible;

/// Every object, in a row each. Exit codes: 0 all of them, 1 not all could be read.
pub async fn list<K: ShownKind>(desk: &Desk<K>, namespace: Option<&str>, output: Output) -> Outcome {
    let Listing { found, unreadable } = match all(desk, namespace).await {
        Ok(listing) => listing,
        Err(error) => return refused(&error),
    };
    let code = if unreadable.is_empty() { 0 } else { EXIT_FAILED };
    let unreadable = unreadable.into_iter().map(|(id, why)| format!("{} cannot be read: {why}", id.display_name()));
    let views = found.iter().map(|found| K::view(&found.object)).collect();
    answer(&Listed::<K> { views, unreadable: unreadable.collect() }, output, code)
}

/// One object with all that is known of it: by its status, or as a running allclear sees it. Exit codes: 0 found, 1 not.
pub async fn explain<K: ShownKind>(asked: Asked<'_, K>, id: &IdOf<K>, output: Output) -> Outcome {
    let found = match asked {
        Asked::Desk(desk) => one(desk, id).await.map(|found| K::view(&found.object)),
        Asked::Server(url) => live::<K>(url, id).await,
    };
    match found {
        Ok(view) => answer(&Explained::<K>(view, output.now_ms()), output, 0),
        Err(error) => refused(&error),
    }
}

/// The source that is asked about an object.
pub enum Asked<'a, K> {
    Desk(&'a Desk<K>),
    /// A running allclear, by the address of its status page.
    Server(&'a Url),
}

async fn live<K: ShownKind>(url: &Url, id: &IdOf<K>) -> Result<K::View, Error> {
    let state = remote::state(url, None).await.map_err(Error::Server)?;
    let Some(seen) = state.get(K::STATE).filter(|seen| !seen.is_null()) else {
        return Err(Error::NotLooking { kind: K::NAME, command: K::COMMAND });
    };
    let views = seen.get(K::PLURAL).cloned().unwrap_or(Value::Null);
    let views: Vec<K::View> = serde_json::from_value(views).map_err(Error::Form)?;
    let unknown = || Error::Unknown { kind: K::NAME, name: id.display_name() };
    views.into_iter().find(|view| K::id_of(view) == id).ok_or_else(unknown)
}

/// Every object, and those that cannot be read.
struct Listed<K: ShownKind> {
    views: Vec<K::View>,
    unreadable: Vec<String>,
}

impl<K: ShownKind> Serialize for Listed<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(Some(2))?;
        fields.serialize_entry(K::PLURAL, &self.views)?;
        fields.serialize_entry("unreadable", &self.unreadable)?;
        fields.end()
    }
}

impl<K: ShownKind> fmt::Display for Listed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.views.is_empty() && self.unreadable.is_empty() {
            return writeln!(f, "no {}s", K::NAME);
        }
        for view in &self.views {
            K::row(view, f)?;
        }
        for unreadable in &self.unreadable {
            writeln!(f, "{}", visible(unreadable))?;
        }
        Ok(())
    }
}

/// One object with all that is known of it.
struct Explained<K: ShownKind>(K::View, Option<i64>);

impl<K: ShownKind> Serialize for Explained<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<K: ShownKind> fmt::Display for Explained<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        K::page(&self.0, self.1, f)
    }
}
