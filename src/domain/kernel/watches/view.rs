//! What a watch looks at. Records may be left of what it does not look at, and say nothing of now.
//!
//! Not for a watch that is interrupted; that is a trouble.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{Kind, ObjectId};
use crate::watches::listed::Scope;

/// The scopes of one watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct View {
    listed: BTreeSet<Scope>,
    /// Those that are not followed, for want of a right, and why.
    left_out: BTreeMap<Scope, String>,
    /// There are no others.
    whole: bool,
}

impl View {
    /// A scope is listed to the end. `all`: each one is, or is left out.
    pub fn listed(&mut self, scope: &Scope, all: bool) {
        self.left_out.remove(scope);
        self.listed.insert(scope.clone());
        self.whole |= all;
    }

    /// A scope is not followed, for want of a right. Returns whether that is news.
    pub fn leave_out(&mut self, scope: &Scope, why: String, all: bool) -> bool {
        self.listed.remove(scope);
        self.whole |= all;
        self.left_out.insert(scope.clone(), why).is_none()
    }

    /// Whether workloads of this kind are followed, in one namespace at least, as far as is known: not if each scope of it is left out.
    pub fn follows(&self, kind: Kind) -> bool {
        let mut listed = self.listed.iter();
        listed.any(|scope| scope.lists(Some(kind))) || !self.left_out.keys().any(|scope| scope.lists(Some(kind)))
    }

    /// Why an object is not looked at. `None` where it is, and as long as that is not known.
    pub fn why_not(&self, id: &impl ObjectId) -> Option<String> {
        let is_known = self.whole && !self.listed.iter().any(|scope| scope.contains(id));
        is_known.then(|| match self.left_out.iter().find(|(scope, _)| scope.contains(id)) {
            Some((_, why)) => format!("not looked at: {why}"),
            None if self.listed.iter().chain(self.left_out.keys()).any(|scope| scope.lists_kind_of(id)) => {
                "not followed (watch.namespaces)".to_owned()
            }
            None => "not followed (workloads.kinds)".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WorkloadId;

    #[test]
    fn what_is_not_looked_at_says_which_right_or_setting_it_wants() {
        let scope = |kind, namespace| Scope::of_kind(kind, Some(namespace));
        let mut view = View::default();
        let web = WorkloadId::deployment("shop", "web");
        let why = |view: &View, kind, namespace: &str| view.why_not(&WorkloadId::new(kind, namespace, "web"));
        view.listed(&scope(Kind::Deployment, "shop"), false);
        assert_eq!(
            (view.why_not(&web), why(&view, Kind::DaemonSet, "shop")),
            (None, None),
            "another may be listed yet"
        );
        assert!(view.follows(Kind::StatefulSet), "as far as is known");
        assert!(view.leave_out(&scope(Kind::StatefulSet, "shop"), "forbidden".to_owned(), true));
        assert_eq!(Kind::ALL.map(|kind| view.follows(kind)), [true, false, true, true]);
        assert!(!view.leave_out(&scope(Kind::StatefulSet, "shop"), "forbidden".to_owned(), true), "no news");
        assert_eq!(view.why_not(&web), None);
        assert_eq!(why(&view, Kind::StatefulSet, "shop").unwrap(), "not looked at: forbidden");
        for kind in [Kind::Deployment, Kind::StatefulSet] {
            assert_eq!(why(&view, kind, "blog").unwrap(), "not followed (watch.namespaces)");
        }
        assert_eq!(why(&view, Kind::DaemonSet, "shop").unwrap(), "not followed (workloads.kinds)");
        view.listed(&scope(Kind::StatefulSet, "shop"), true);
        assert!(view.follows(Kind::StatefulSet));
        view.leave_out(&scope(Kind::StatefulSet, "blog"), "forbidden".to_owned(), true);
        assert!(view.follows(Kind::StatefulSet), "in another namespace");
        assert_eq!(why(&view, Kind::StatefulSet, "shop"), None, "the right is back");
    }
}
