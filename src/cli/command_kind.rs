//! Our own kinds of objects as the command line names them.

use crate::adapters::kubernetes::objects::{Kind, PipelineKind, RepoKind};
use objects::kept::Kept;

/// Names an object of a kind.
pub type IdOf<K> = <<K as Kind>::Object as Kept>::Id;

/// A kind that commands are about.
pub trait CommandKind: Kind {
    /// The command. It may stand before a name, and names the kind's part of the configuration.
    const COMMAND: &'static str;
    /// A name, as help shows one.
    const EXAMPLE: &'static str;
    /// What begins by itself, unless it is suspended.
    const WORK: &'static str;
    /// What the help says of these actions.
    const POKE: &'static str;
    const SUSPEND: &'static str;
    const RESUME: &'static str;
}

impl CommandKind for PipelineKind {
    const COMMAND: &'static str = "pipeline";
    const EXAMPLE: &'static str = "shop/web";
    const WORK: &'static str = "promotion";
    const POKE: &'static str = "Have allclear look at a Pipeline now";
    const SUSPEND: &'static str = "Stop the line: no new promotion starts; what was started goes on";
    const RESUME: &'static str = "Let a stopped line go on";
}

impl CommandKind for RepoKind {
    const COMMAND: &'static str = "repo";
    const EXAMPLE: &'static str = "platform/infra";
    const WORK: &'static str = "run";
    const POKE: &'static str = "Have allclear look for a new commit now";
    const SUSPEND: &'static str = "Stop it: no new run starts; what runs goes on";
    const RESUME: &'static str = "Let a stopped Repo go on";
}

/// A text that names no object of a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoName {
    #[error("{text:?} is no {kind}; write its namespace and name, as shop/web or -n shop web")]
    Form { text: String, kind: &'static str },
    #[error("-n says namespace {namespace} and the name says {named}; leave one of them out")]
    Namespaces { namespace: String, named: String },
}

/// Reads `shop/web`, also with the kind before it.
///
/// # Errors
/// It is not the name of such an object.
pub fn named<K: CommandKind>(text: &str) -> Result<IdOf<K>, NoName> {
    named_in::<K>(text, None)
}

/// The same where `-n` may say the namespace.
///
/// # Errors
/// It is not the name of such an object, or both say a namespace, and not the same.
pub fn named_in<K: CommandKind>(text: &str, namespace: Option<&str>) -> Result<IdOf<K>, NoName> {
    let plain = kind_first::<K>(text).unwrap_or(text);
    let (of, name) = match (plain.split_once('/'), namespace) {
        (Some((named, _)), Some(namespace)) if named != namespace => {
            return Err(NoName::Namespaces { namespace: namespace.to_owned(), named: named.to_owned() });
        }
        (Some(both), _) => both,
        (None, Some(namespace)) => (namespace, plain),
        (None, None) => ("", plain),
    };
    if of.is_empty() || name.is_empty() || name.contains('/') {
        return Err(NoName::Form { text: text.to_owned(), kind: K::NAME });
    }
    Ok(K::id(of.to_owned(), name.to_owned()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::ObjectId;

    #[test]
    fn a_namespace_is_in_the_name_or_beside_it() {
        let named = |text, namespace| named_in::<PipelineKind>(text, namespace).map(|id| id.display_name());
        for (text, namespace) in [
            ("shop/web", None),
            ("pipeline/shop/web", None),
            ("web", Some("shop")),
            ("pipeline/web", Some("shop")),
            ("pipelines/shop/web", Some("shop")),
        ] {
            assert_eq!(named(text, namespace).as_deref(), Ok("shop/web"), "{text} -n {namespace:?}");
        }
        let differ = named("blog/web", Some("shop")).unwrap_err().to_string();
        assert_eq!(differ, "-n says namespace shop and the name says blog; leave one of them out");
        for (text, namespace) in [("web", None), ("shop/", None), ("/web", None), ("a/b/c", Some("a")), ("", Some("a"))]
        {
            assert!(matches!(named(text, namespace), Err(NoName::Form { .. })), "{text} -n {namespace:?}");
        }
    }
}
