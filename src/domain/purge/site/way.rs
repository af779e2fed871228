//! How a rule writes the requests that it takes, and the paths that contain them in the form that CloudFront purges.
//!
//! Not for which rules lead to a workload; that is `routed`, which has the reasons.

use serde::{Deserialize, Serialize};

use kernel::names::paths::Path;

/// The requests that a rule takes, as it writes their paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// For this path alone.
    Exact(String),
    /// For it, and all beneath it.
    Prefix(String),
    /// By a regular expression.
    Expression,
    /// By a rule of the controller's own: an Ingress's `pathType` is `ImplementationSpecific`, or none that is known.
    OfController,
}

impl Way {
    /// The paths that contain all requests it takes, or why that is everything.
    pub(super) fn contained(&self) -> Result<Vec<Path>, &'static str> {
        let texts = match self {
            Self::Expression => return Err("has a regular expression"),
            Self::OfController => {
                return Err("has a path whose pathType is ImplementationSpecific; Prefix and Exact are known");
            }
            Self::Exact(path) if path == "/" => vec!["/".to_owned(), "/?*".to_owned()],
            Self::Exact(path) => vec![format!("{}*", unambiguous(path))],
            Self::Prefix(path) => vec![format!("{}*", unambiguous(path.trim_end_matches('/')))],
        };
        texts
            .iter()
            .map(|text| Path::parse(text))
            .collect::<Result<_, _>>()
            .map_err(|_| "has a path that cannot be purged")
    }
}

/// The beginning of a path that every client writes in the same way: up to a character that may be escaped or not. It begins with a slash.
fn unambiguous(path: &str) -> &str {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
    let end = path.find(|c| !is_plain(c)).unwrap_or(path.len());
    path.get(..end).filter(|text| text.starts_with('/')).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::names::paths::PathSet;

    fn words(way: &Way) -> String {
        way.contained().map_or_else(str::to_owned, |paths| PathSet::from_iter(paths).to_string())
    }

    #[test]
    fn a_rule_becomes_what_contains_it_in_cloudfronts_form() {
        for (way, expected) in [
            (Way::Prefix("/shop".into()), "/shop*"),
            (Way::Prefix("/shop/".into()), "/shop*"),
            (Way::Prefix("/".into()), "/*"),
            (Way::Prefix(String::new()), "/*"),
            (Way::Exact("/a.html".into()), "/a.html*"),
            (Way::Exact("/a/".into()), "/a/*"),
            (Way::Exact("/".into()), "/ /?*"),
            (Way::Exact("/caf\u{e9}/x".into()), "/caf*"),
            (Way::Prefix("/a b".into()), "/a*"),
            (Way::Prefix("/a%20b".into()), "/a*"),
            (Way::Prefix("/~user".into()), "/*"),
            (Way::Exact("/a@b".into()), "/a*"),
            (Way::Prefix("no-slash".into()), "/*"),
        ] {
            assert_eq!(words(&way), expected, "{way:?}");
        }
        assert!(words(&Way::Expression).contains("regular expression"));
        assert!(words(&Way::OfController).contains("ImplementationSpecific"));
    }
}
