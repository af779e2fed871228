//! A text with places for the host and the path that a cache is asked about: `/purge{path}`.
//!
//! Tenants choose hosts and paths, so neither may end what it is put into: a host is letters, digits, hyphens, underscores and dots, and a
//! path is encoded, without blanks and control characters (`kernel::names`).

use kernel::names::host::Host;
use kernel::names::paths::Path;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Form(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Text(String),
    Host,
    Path,
    /// A regular expression for what the path stands for.
    Regex,
}

/// Why a text is no form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("has a brace that names no place; there are {{host}}, {{path}} and {{regex}}")]
    Unknown,
    #[error("has a brace without its other one")]
    Open,
}

impl Form {
    /// # Errors
    /// Where a brace is no place.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or(Error::Open)?;
            parts.extend(written(before)?);
            parts.push(match name {
                "host" => Part::Host,
                "path" => Part::Path,
                "regex" => Part::Regex,
                _ => return Err(Error::Unknown),
            });
            rest = after;
        }
        parts.extend(written(rest)?);
        Ok(Self(parts))
    }

    /// Whether it has a place for a regular expression.
    pub fn has_regex(&self) -> bool {
        self.0.contains(&Part::Regex)
    }

    /// Whether what it makes begins with a slash, whatever is put in.
    pub fn is_target(&self) -> bool {
        match self.0.first() {
            Some(Part::Text(text)) => text.starts_with('/'),
            Some(Part::Path) => true,
            Some(Part::Host | Part::Regex) | None => false,
        }
    }

    /// The text about this host and path.
    pub fn filled(&self, host: &Host, path: &Path) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Host => host.as_str().to_owned(),
            Part::Path => path.as_str().to_owned(),
            Part::Regex => regex(path),
        };
        self.0.iter().map(part).collect()
    }
}

fn written(text: &str) -> Result<Option<Part>, Error> {
    if text.contains('}') {
        return Err(Error::Open);
    }
    Ok((!text.is_empty()).then(|| Part::Text(text.to_owned())))
}

/// A regular expression, as PCRE and RE2 read it, for the targets that a path stands for. A path without a query stands for those with any:
/// wider than CloudFront takes it, because a cache that keys by queries that CloudFront does not forward has nothing to lose.
pub fn regex(path: &Path) -> String {
    let text = path.as_str();
    let (stem, end) = match text.strip_suffix('*') {
        Some(stem) => (stem, ""),
        None if text.contains('?') => (text, "$"),
        None => (text, r"(\?|$)"),
    };
    let mut regex = String::from("^");
    for character in stem.chars() {
        if is_special(character) {
            regex.push('\\');
        }
        regex.push(character);
    }
    regex.push_str(end);
    regex
}

const fn is_special(character: char) -> bool {
    matches!(character, '\\' | '^' | '$' | '.' | '|' | '?' | '*' | '+' | '(' | ')' | '[' | ']' | '{' | '}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(form: &str, path: &str) -> String {
        let host: Host = "www.example.com".parse().unwrap();
        Form::parse(form).unwrap().filled(&host, &path.parse().unwrap())
    }

    #[test]
    fn each_place_is_filled_and_the_rest_stays() {
        assert_eq!(filled("/purge{path}", "/blog/*"), "/purge/blog/*");
        assert_eq!(filled("{host}{path} {regex}", "/a"), r"www.example.com/a ^/a(\?|$)");
        assert_eq!(filled("/", "/a"), "/");
    }

    #[test]
    fn a_brace_that_is_no_place_is_refused() {
        for (text, error) in [
            ("{tag}", Error::Unknown),
            ("{}", Error::Unknown),
            ("{path", Error::Open),
            ("path}", Error::Open),
            ("{path}}", Error::Open),
            ("}{path}", Error::Open),
        ] {
            assert_eq!(Form::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn what_begins_with_a_slash_is_known_before_it_is_filled() {
        for (text, is_target) in
            [("{path}", true), ("/purge{path}", true), ("/", true), ("", false), ("x{path}", false), ("{host}", false)]
        {
            assert_eq!(Form::parse(text).unwrap().is_target(), is_target, "{text}");
        }
    }

    #[test]
    fn a_regular_expression_stands_for_what_the_path_does() {
        for (path, expression) in [
            ("/*", "^/"),
            ("/shop/*", "^/shop/"),
            ("/a.html", r"^/a\.html(\?|$)"),
            ("/a?b=1", r"^/a\?b=1$"),
            ("/a+(b)|$", r"^/a\+\(b\)%7C\$(\?|$)"),
        ] {
            assert_eq!(regex(&path.parse().unwrap()), expression, "{path}");
        }
    }
}
