//! Our own kinds of objects as commands speak of them.

use crate::adapters::kubernetes::desk::{Desk, Found};
use crate::adapters::kubernetes::objects::{Kind, PipelineKind, RepoKind};
use domain::kernel::id::{ObjectId, PipelineId, RepoId};
use domain::kernel::text::visible;
use domain::objects::kept::Kept;

/// Names an object of a kind.
pub type IdOf<K> = <<K as Kind>::Object as Kept>::Id;

/// A kind that commands are about.
pub trait CommandKind: Kind {
    const COMMAND: &'static str;
    /// What begins by itself, unless it is suspended.
    const WORK: &'static str;

    /// Why nothing new starts.
    fn suspended(object: &Self::Object) -> Option<&str>;

    /// Reads what the name of such an object displays as.
    fn parse(text: &str) -> Option<IdOf<Self>>;
}

impl CommandKind for PipelineKind {
    const COMMAND: &'static str = "pipeline";
    const WORK: &'static str = "promotion";

    fn suspended(object: &Self::Object) -> Option<&str> {
        object.spec.as_ref().ok()?.suspended.as_deref()
    }

    fn parse(text: &str) -> Option<PipelineId> {
        PipelineId::parse(text)
    }
}

impl CommandKind for RepoKind {
    const COMMAND: &'static str = "repo";
    const WORK: &'static str = "run";

    fn suspended(object: &Self::Object) -> Option<&str> {
        object.spec.as_ref().ok()?.suspended.as_deref()
    }

    fn parse(text: &str) -> Option<RepoId> {
        RepoId::parse(text)
    }
}

/// Reads `shop/web`, also with the kind before it.
///
/// # Errors
/// Why it is not the name of such an object.
pub fn named<K: CommandKind>(text: &str) -> Result<IdOf<K>, String> {
    let plain = kind_first::<K>(text).unwrap_or(text);
    K::parse(&format!("{}/{plain}", K::COMMAND))
        .ok_or_else(|| format!("{text:?} is no {}; write its namespace and name, as shop/web", K::NAME))
}

/// Whether a name is meant as one of this kind, not of a workload.
pub fn is_meant<K: CommandKind>(text: &str) -> bool {
    kind_first::<K>(text).is_some()
}

/// What follows the kind.
fn kind_first<K: CommandKind>(text: &str) -> Option<&str> {
    let (kind, rest) = text.split_once('/')?;
    (kind == K::PLURAL || kind == K::COMMAND).then_some(rest)
}

/// The object of this name.
///
/// # Errors
/// Why it cannot be read, or where to look for it.
pub async fn one<K: CommandKind>(desk: &Desk<K>, id: &IdOf<K>) -> Result<Found<K::Object>, String> {
    match desk.one(id).await {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(missing::<K>(id)),
        Err(error) => Err(error.to_string()),
    }
}

/// There is no such object.
pub fn missing<K: CommandKind>(id: &IdOf<K>) -> String {
    let name = id.display_name();
    format!("there is no {} {}; `allclear {} list` shows those there are", K::NAME, visible(&name), K::COMMAND)
}
