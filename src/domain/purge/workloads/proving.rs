//! What the owner of a workload says of looks at the edge after its purges.
//!
//! Not for what a look is; that is crate `proof`. Nor for whether there is one: that is [`crate::bounds::policy::Policy::proof_of`].

use kernel::names::paths::Path;
use proof::asked::{PATHS_MAX, distinct, one_path};
use proof::marker::Marker;

use crate::workloads::annotated::{Unusable, list, truth};

/// Anything unset falls back to configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Proving {
    /// `proof`: whether the edge is looked at.
    pub enabled: Option<bool>,
    /// `proof-paths`: these paths of each host; at most [`PATHS_MAX`], and never none.
    pub paths: Option<Vec<Path>>,
    /// `proof-marker`: what tells one version's answers from another's. Without effect where nobody looks.
    pub marker: Option<Marker>,
}

impl Proving {
    /// Reads one of its annotations, by its name without the prefix.
    ///
    /// # Errors
    /// When the value cannot be used; then nothing has changed.
    pub fn read(&mut self, name: &str, value: &str) -> Result<(), Unusable> {
        match name {
            "proof" => self.enabled = Some(truth(value)?),
            "proof-paths" => self.paths = Some(paths(value)?),
            "proof-marker" => self.marker = Some(Marker::parse(value)?),
            // The caller has looked it up among those that are known.
            _ => {}
        }
        Ok(())
    }
}

fn paths(value: &str) -> Result<Vec<Path>, Unusable> {
    let paths = distinct(list(value, one_path)?);
    match paths.len() {
        many if many > PATHS_MAX => {
            Err(Unusable::Value(format!("{many} paths to look at, {PATHS_MAX} at most; name those that matter most")))
        }
        _ => Ok(paths),
    }
}

#[cfg(test)]
mod tests {
    use crate::workloads::workload::Tuning;

    fn read(pairs: &[(&str, &str)]) -> Tuning {
        Tuning::read(pairs.iter().copied())
    }

    #[test]
    fn an_owner_says_whether_where_and_by_what_the_edge_is_looked_at() {
        let tuning = read(&[
            ("allclear.dev/proof", "true"),
            ("allclear.dev/proof-paths", " /, /shop,, /"),
            ("allclear.dev/proof-marker", "header:X-Version"),
        ]);
        assert_eq!(tuning.faults, [""; 0]);
        let paths: Vec<String> = tuning.proof.paths.iter().flatten().map(ToString::to_string).collect();
        assert_eq!((tuning.proof.enabled, paths), (Some(true), vec!["/".to_owned(), "/shop".to_owned()]));
        assert_eq!(tuning.proof.marker.map(|marker| marker.to_string()).as_deref(), Some("header:x-version"));
        assert_eq!(read(&[("allclear.dev/proof", "false")]).proof.enabled, Some(false));
        let alone = read(&[("allclear.dev/proof-marker", "etag")]);
        assert!(alone.faults.is_empty() && alone.proof.marker.is_some(), "the configuration may switch it on");
    }

    // Each value that cannot be used, in a whole sentence with what to write instead; and what was said before it still holds.
    #[test]
    fn a_value_that_cannot_be_used_is_told_and_counts_as_not_there() {
        for (name, value, words) in [
            ("proof", "yes", r#""yes" is neither "true" nor "false""#),
            ("proof", "", r#""" is neither "true" nor "false""#),
            ("proof-paths", " , ", "an empty list; remove the annotation instead"),
            ("proof-paths", "/, shop", r#""shop" cannot be purged: a path starts with / and a cache tag with #"#),
            ("proof-paths", "/shop/*", "/shop/* is no single path: name one page, as in /shop/"),
            ("proof-paths", "#tag", "#tag is no single path: name one page, as in /shop/"),
            ("proof-paths", "/1,/2,/3,/4,/5", "5 paths to look at, 4 at most; name those that matter most"),
            (
                "proof-marker",
                "version",
                r#""version" is no marker: write header:NAME, json:/pointer, body-hash or etag, each with =VALUE after it if you know what is right"#,
            ),
            (
                "proof-marker",
                "header:",
                r#""header:" is no marker: "" is no name of a header; write one, as in header:x-version"#,
            ),
        ] {
            let tuning = read(&[(&format!("allclear.dev/{name}"), value)]);
            assert_eq!(tuning.faults, [format!("annotation allclear.dev/{name}: {words}")]);
            assert_eq!(tuning.proof, super::Proving::default(), "{name}: {value}");
        }
        let long = format!("/{}", "a".repeat(256));
        let tuning = read(&[("allclear.dev/proof-paths", &long), ("allclear.dev/proof", "true")]);
        let words = "annotation allclear.dev/proof-paths: a path to look at has 257 bytes, the most is 256";
        assert_eq!((tuning.faults, tuning.proof.enabled), (vec![words.to_owned()], Some(true)));
    }
}
