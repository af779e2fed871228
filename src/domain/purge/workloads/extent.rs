//! How much of its hosts a workload's purge is about: items that somebody wrote down, or the paths that routes send to it.
//!
//! Not for which paths those are ([`crate::site::Routed`]), nor for what is sent to a distribution in the end.

use std::fmt;
use std::str::FromStr;

use kernel::names::paths::{self, Path, PathSet};

/// The word for the paths that routes send to a workload.
pub const ROUTES: &str = "routes";

/// What is purged of a workload where nobody asks for something else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// These paths and cache tags.
    Items(PathSet),
    /// The paths that routes send to it, and these beside them. Where those are not known, everything.
    Routes(Option<PathSet>),
}

/// One item of an extent, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Routes,
    Path(Path),
}

/// Cache tags beside the routes: which paths a tag selects is not known, so the two cannot be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{ROUTES}\" and cache tags exclude each other: name one of the two")]
pub struct TagsBeside;

impl Extent {
    /// Of these items; everything where there are none.
    ///
    /// # Errors
    /// [`TagsBeside`].
    pub fn of(items: Vec<Item>) -> Result<Self, TagsBeside> {
        let routes = items.contains(&Item::Routes);
        let paths = items.into_iter().filter_map(|item| match item {
            Item::Routes => None,
            Item::Path(path) => Some(path),
        });
        let paths = PathSet::of(paths.collect());
        match paths {
            Some(paths) if routes && paths.has_tags() => Err(TagsBeside),
            paths if routes => Ok(Self::Routes(paths)),
            paths => Ok(Self::Items(paths.unwrap_or_default())),
        }
    }

    /// What it is at most, for those who know no routes.
    #[must_use]
    pub fn at_most(&self) -> PathSet {
        match self {
            Self::Items(items) => items.clone(),
            Self::Routes(_) => PathSet::default(),
        }
    }

    /// The same with these items beside it.
    #[must_use]
    pub fn with(&self, items: &PathSet) -> Self {
        match self {
            Self::Items(own) => Self::Items(own.union(items)),
            Self::Routes(_) if items.has_tags() => Self::default(),
            Self::Routes(beside) => {
                Self::Routes(Some(beside.as_ref().map_or_else(|| items.clone(), |own| own.union(items))))
            }
        }
    }

    /// Bytes of what is written down.
    pub fn bytes(&self) -> usize {
        self.written().map(|path| path.as_str().len()).sum()
    }

    /// Whether the paths that routes take are wanted.
    pub const fn wants_routes(&self) -> bool {
        matches!(self, Self::Routes(_))
    }

    /// The items in words, in an order that does not depend on how they were written.
    pub fn words(&self) -> Vec<String> {
        let routes = self.wants_routes().then(|| ROUTES.to_owned());
        routes.into_iter().chain(self.written().map(ToString::to_string)).collect()
    }

    /// The items that are written down.
    pub fn written(&self) -> impl Iterator<Item = &Path> {
        match self {
            Self::Items(items) => Some(items),
            Self::Routes(beside) => beside.as_ref(),
        }
        .into_iter()
        .flat_map(PathSet::iter)
    }
}

impl Default for Extent {
    fn default() -> Self {
        Self::Items(PathSet::default())
    }
}

impl From<PathSet> for Extent {
    fn from(items: PathSet) -> Self {
        Self::Items(items)
    }
}

impl FromStr for Item {
    type Err = paths::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim() == ROUTES { Ok(Self::Routes) } else { Path::parse(text).map(Self::Path) }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(items: &[&str]) -> Result<Extent, TagsBeside> {
        Extent::of(items.iter().map(|item| item.parse().unwrap()).collect())
    }

    #[test]
    fn routes_are_read_beside_paths_and_not_beside_tags() {
        for (items, words, at_most) in [
            (&[] as &[&str], "/*", "/*"),
            (&["/a/*", "/b"], "/a/* /b", "/a/* /b"),
            (&["routes"], "routes", "/*"),
            (&["/api/*", " routes "], "routes /api/*", "/*"),
            (&["#tag"], "#tag", "#tag"),
        ] {
            let extent = read(items).unwrap();
            assert_eq!((extent.to_string().as_str(), extent.at_most().to_string().as_str()), (words, at_most));
        }
        assert_eq!(read(&["routes", "#tag"]), Err(TagsBeside));
        assert!("Routes".parse::<Item>().is_err(), "one word is known");
    }

    #[test]
    fn what_is_asked_for_beside_it_is_never_lost() {
        let asked: PathSet = ["/x".parse().unwrap()].into_iter().collect();
        assert_eq!(read(&["/a"]).unwrap().with(&asked).to_string(), "/a /x");
        assert_eq!(read(&["routes"]).unwrap().with(&asked).to_string(), "routes /x");
        assert_eq!(read(&["routes", "/a"]).unwrap().with(&asked).to_string(), "routes /a /x");
        let tags: PathSet = ["#t".parse().unwrap()].into_iter().collect();
        assert_eq!(read(&["routes"]).unwrap().with(&tags), Extent::default(), "which paths a tag selects is not known");
    }
}
