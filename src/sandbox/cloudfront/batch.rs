//! An invalidation batch as it arrives, and the rules CloudFront holds it to.

use std::collections::BTreeSet;

use super::xml;

/// Longest path, in characters: developer guide, "What you need to know when invalidating files" (2026-11).
const PATH_CHARS_MAX: usize = 4_000;

/// Longest cache tag, in characters, without its `#`: same page.
const TAG_CHARS_MAX: usize = 256;

/// What a client wants invalidated.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch {
    pub reference: String,
    pub paths: Vec<String>,
}

/// Why a batch is refused; each has its code on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    Missing,
    Malformed,
    InconsistentQuantities,
    NoPaths,
    NoReference,
    BadPath,
}

impl Batch {
    /// Reads and checks a request body. Tags (`#tag`) are allowed only where the distribution has them configured.
    pub fn read(body: &[u8], tags_allowed: bool) -> Result<Batch, Flaw> {
        if body.is_empty() {
            return Err(Flaw::Missing);
        }
        let leaves = std::str::from_utf8(body).ok().and_then(xml::leaves).ok_or(Flaw::Malformed)?;
        let mut batch = Batch { reference: String::new(), paths: Vec::new() };
        let mut quantity = None;
        for (path, text) in leaves {
            match path.as_str() {
                "InvalidationBatch/CallerReference" => batch.reference = text,
                "InvalidationBatch/Paths/Quantity" => quantity = text.parse::<usize>().ok(),
                "InvalidationBatch/Paths/Items/Path" => batch.paths.push(text),
                // Like AWS, ignore what we do not know.
                _ => {}
            }
        }
        batch.check(quantity, tags_allowed)?;
        Ok(batch)
    }

    /// Paths that count against the quota of wildcards; tags and plain paths count against the other one.
    pub fn wildcards(&self) -> usize {
        wildcards(&self.paths)
    }

    /// Whether both ask for the same: the order of paths does not matter.
    pub fn same_paths(&self, others: &[String]) -> bool {
        self.paths.iter().collect::<BTreeSet<_>>() == others.iter().collect::<BTreeSet<_>>()
    }

    fn check(&self, quantity: Option<usize>, tags_allowed: bool) -> Result<(), Flaw> {
        if quantity != Some(self.paths.len()) {
            return Err(Flaw::InconsistentQuantities);
        }
        if self.paths.is_empty() {
            return Err(Flaw::NoPaths);
        }
        if self.reference.is_empty() {
            return Err(Flaw::NoReference);
        }
        // That a repeated path is refused is our own strictness, not known of the real service: our plans have none.
        let unique = self.paths.iter().collect::<BTreeSet<_>>().len() == self.paths.len();
        let valid = self.paths.iter().all(|path| is_path(path) || (tags_allowed && is_tag(path)));
        if unique && valid { Ok(()) } else { Err(Flaw::BadPath) }
    }
}

/// How many of `paths` end in `*`.
pub fn wildcards(paths: &[String]) -> usize {
    paths.iter().filter(|path| path.starts_with('/') && path.ends_with('*')).count()
}

/// `/` first, `*` only last, no `~`, nothing that has to be percent-encoded (RFC 1738's unsafe characters).
fn is_path(path: &str) -> bool {
    let stem = path.strip_suffix('*').unwrap_or(path);
    path.starts_with('/')
        && path.len() <= PATH_CHARS_MAX
        && stem.bytes().all(|byte| byte.is_ascii_graphic() && !b"*~<>\"#{}|\\^[]`".contains(&byte))
}

fn is_tag(item: &str) -> bool {
    item.strip_prefix('#').is_some_and(|tag| {
        !tag.is_empty() && tag.len() <= TAG_CHARS_MAX && tag.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'*')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(quantity: usize, paths: &[&str], reference: &str) -> Result<Batch, Flaw> {
        let items: String = paths.iter().map(|path| xml::text("Path", path)).collect();
        let content = format!(
            "<Paths><Quantity>{quantity}</Quantity><Items>{items}</Items></Paths>{}",
            xml::text("CallerReference", reference)
        );
        Batch::read(xml::document("InvalidationBatch", &content).as_bytes(), true)
    }

    #[test]
    fn a_good_batch_is_read_whole() {
        let batch = read(3, &["/a/b?c=%20&d", "/*", "#product:42"], "r-1").expect("good");
        assert_eq!((batch.reference.as_str(), batch.paths.len(), batch.wildcards()), ("r-1", 3, 1));
    }

    #[test]
    fn a_batch_that_cloudfront_would_refuse_is_refused() {
        let long = format!("/{}", "a".repeat(PATH_CHARS_MAX));
        for bad in ["a", "", "/a*b", "/~a", "/a b", "/é", "#", "#a*", &long] {
            assert_eq!(read(1, &[bad], "r"), Err(Flaw::BadPath), "{bad}");
        }
        assert_eq!(read(2, &["/a", "/a"], "r"), Err(Flaw::BadPath));
        assert_eq!(read(2, &["/a"], "r"), Err(Flaw::InconsistentQuantities));
        assert_eq!(read(0, &[], "r"), Err(Flaw::NoPaths));
        assert_eq!(read(1, &["/a"], ""), Err(Flaw::NoReference));
        assert_eq!(Batch::read(b"", true), Err(Flaw::Missing));
        assert_eq!(Batch::read(b"<InvalidationBatch>", true), Err(Flaw::Malformed));
    }

    #[test]
    fn the_order_of_paths_does_not_make_another_batch() {
        let batch = read(2, &["/a", "/b"], "r").expect("good");
        assert!(batch.same_paths(&["/b".to_owned(), "/a".to_owned()]));
        assert!(!batch.same_paths(&["/b".to_owned()]));
    }
}
