//! Kinds that are not built in: what the operator declares of each, once, before anything is read.
//!
//! A name of a workload has its kind in it, and is copied, compared and hashed everywhere. So a kind is a reference to its declaration,
//! which is kept for ever; there are [`DECLARED_MAX`] at most. A name whose kind is not declared is not read: what another member, or an
//! earlier configuration, wrote under it is passed over and kept, as a later release's kind is.
//!
//! Not for judging an object by it; that is `kinds`.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::{PoisonError, RwLock};

use crate::expression::Expression;

/// Declarations that a process keeps at most: those of its own configuration, and of the running controller's, which a command takes over.
pub const DECLARED_MAX: usize = 64;

static DECLARED: RwLock<Vec<CustomKind>> = RwLock::new(Vec::new());

/// What the operator says of one kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Declaration {
    /// `apps.kruise.io/v1alpha1`; never without a group.
    pub api_version: String,
    /// `CloneSet`.
    pub kind: String,
    /// `clonesets.apps.kruise.io`: its plural, as RBAC rules name it, and its group.
    pub word: String,
    /// Where its pod template is, as a JSON pointer.
    pub template: String,
    /// Where the selector of its pods is.
    pub selector: String,
    /// The label by which its controller tells the pods of one template from those of another.
    pub hash_label: String,
    /// Whether it is complete.
    pub complete: Expression,
    /// Whether it has failed; `None`: only time says so.
    pub failed: Option<Expression>,
}

/// There is no room for one more declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {DECLARED_MAX} kinds were declared in one process")]
pub struct TooMany;

/// A kind that is declared. The same as another one of its plural and group.
#[derive(Clone, Copy, Debug)]
pub struct CustomKind(&'static Declaration);

impl CustomKind {
    /// Declares a kind. From now on names are read that begin with it; of two declarations of one kind, the last counts.
    ///
    /// # Errors
    /// When there are too many.
    pub fn declare(declaration: Declaration) -> Result<Self, TooMany> {
        let mut declared = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
        let known = declared.iter().position(|known| *known.0 == declaration);
        let kind = match known {
            Some(at) => declared.remove(at),
            None if declared.len() >= DECLARED_MAX => return Err(TooMany),
            None => Self(Box::leak(Box::new(declaration))),
        };
        declared.push(kind);
        Ok(kind)
    }

    /// The one that is written so.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::last(|says| says.word == word)
    }

    /// The one that kubectl means by this: `clonesets.apps.kruise.io`, `cloneset.apps.kruise.io`, `clonesets` or `cloneset`; of two groups,
    /// the one that was declared last.
    pub fn named(text: &str) -> Option<Self> {
        let (name, of) = text.split_once('.').map_or((text, None), |(name, group)| (name, Some(group)));
        let is_name = |says: &Declaration| says.kind.eq_ignore_ascii_case(name) || plural(says) == name;
        Self::last(|says| is_name(says) && of.is_none_or(|of| group(&says.api_version) == of))
    }

    fn last(is_meant: impl Fn(&Declaration) -> bool) -> Option<Self> {
        let declared = DECLARED.read().unwrap_or_else(PoisonError::into_inner);
        declared.iter().rev().find(|known| is_meant(known.0)).copied()
    }

    pub const fn word(self) -> &'static str {
        self.0.word.as_str()
    }

    pub const fn says(self) -> &'static Declaration {
        self.0
    }

    /// Its place in the URL space: group, version and plural.
    pub fn place(self) -> (&'static str, &'static str, &'static str) {
        let (group, version) = self.0.api_version.split_once('/').unwrap_or_default();
        (group, version, plural(self.0))
    }

    /// Of the keys that begin with a kind's name and a dot, which kind's one is, and what follows.
    pub fn of_key(key: &str) -> Option<(Self, &str)> {
        let after = |says: &Declaration| key.strip_prefix(says.word.as_str()).is_some_and(|rest| rest.starts_with('.'));
        let kind = Self::last(after)?;
        Some((kind, key.strip_prefix(kind.word())?.strip_prefix('.')?))
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn plural(says: &Declaration) -> &str {
    says.word.split_once('.').map_or(says.word.as_str(), |(plural, _)| plural)
}

impl PartialEq for CustomKind {
    fn eq(&self, other: &Self) -> bool {
        self.word() == other.word()
    }
}

impl Eq for CustomKind {}

impl PartialOrd for CustomKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CustomKind {
    fn cmp(&self, other: &Self) -> Ordering {
        self.word().cmp(other.word())
    }
}

impl Hash for CustomKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.word().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Kind, WorkloadId};

    fn declare(group: &str, version: &str) -> CustomKind {
        CustomKind::declare(Declaration {
            api_version: format!("{group}/{version}"),
            kind: "CloneSet".into(),
            word: format!("clonesets.{group}"),
            template: "/spec/template".into(),
            selector: "/spec/selector".into(),
            hash_label: "hash".into(),
            complete: Expression::parse("self.status.ready").unwrap(),
            failed: None,
        })
        .unwrap()
    }

    #[test]
    fn a_name_of_a_kind_is_read_once_it_is_declared_and_not_before() {
        let text = "clonesets.names.example.com/shop/web";
        assert!(text.parse::<WorkloadId>().is_err(), "as another member's");
        let kind = Kind::Custom(declare("names.example.com", "v1"));
        let web: WorkloadId = text.parse().unwrap();
        assert_eq!((web.kind, web.to_string().as_str(), web.display_name().as_str()), (kind, text, text));
        assert_eq!(serde_json::to_string(&kind).unwrap(), r#""clonesets.names.example.com""#);
        for name in ["clonesets.names.example.com", "cloneset.names.example.com"] {
            assert_eq!(Kind::named(name), Some(kind), "{name}");
        }
        assert_eq!(Kind::named("clonesets.other.example.com"), None);
        assert_eq!((kind.name(), kind.identity(), kind.api_version()), ("CloneSet", kind, "names.example.com/v1"));
        let key = CustomKind::of_key("clonesets.names.example.com.shop.web.v2")
            .map(|(kind, rest)| (Kind::Custom(kind), rest));
        assert_eq!(key, Some((kind, "shop.web.v2")));
        assert_eq!(CustomKind::of_key("clonesets.names.example.community.shop.web"), None);
    }

    #[test]
    fn what_is_declared_anew_is_the_same_kind_with_other_rules_and_takes_room_once() {
        let (one, two) = (declare("anew.example.com", "v1"), declare("anew.example.com", "v2"));
        let count = || DECLARED.read().unwrap().iter().filter(|kind| kind.word() == one.word()).count();
        assert_eq!((one, one.says() == two.says(), count()), (two, false, 2));
        let read = || CustomKind::of_word("clonesets.anew.example.com").unwrap().says().api_version.as_str();
        assert_eq!(read(), "anew.example.com/v2");
        declare("anew.example.com", "v1");
        assert_eq!((read(), count()), ("anew.example.com/v1", 2), "the last counts");
    }
}
