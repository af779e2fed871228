//! What a path asks for. Its parts are split before they are decoded, so a revision may contain `%2F`, and nothing that was decoded
//! becomes a part of another path unless it can be an object's name.

use kernel::id::{PipelineId, RepoId};

use crate::http::names::is_name;

/// Bytes of an environment's name or of a revision. A revision has 512 at most; what is longer names nothing.
const PART_BYTES_MAX: usize = 512;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// To promote out of an environment.
    Promotion(PipelineId, String),
    /// To approve a revision in an environment.
    Approval(PipelineId, String, String),
    /// To look at a Pipeline now.
    Poke(PipelineId),
    /// To look at a Repo now.
    PokeRepo(RepoId),
    /// The path begins as that of this door and goes on otherwise.
    Malformed(&'static str),
    /// The health endpoint: for load balancers, as the older controller has it.
    Health,
    /// Nothing that there is.
    Nothing,
}

impl Asked {
    /// Reads the path of a request, as it was sent.
    pub(super) fn of(path: &str) -> Self {
        if path == "/healthz" {
            return Self::Health;
        }
        let (door, asked) = if let Some(rest) = path.strip_prefix("/promotion/") {
            ("promotion", promotion(rest))
        } else if let Some(rest) = path.strip_prefix("/approval/") {
            ("approval", approval(rest))
        } else if let Some(rest) = path.strip_prefix("/hooks/poke/pipeline/") {
            (
                "poke",
                parts(rest).and_then(|[namespace, name]| Some(Self::Poke(named(PipelineId::new, namespace, name)?))),
            )
        } else if let Some(rest) = path.strip_prefix("/hooks/poke/repo/") {
            (
                "poke",
                parts(rest).and_then(|[namespace, name]| Some(Self::PokeRepo(named(RepoId::new, namespace, name)?))),
            )
        } else {
            return Self::Nothing;
        };
        asked.unwrap_or(Self::Malformed(door))
    }

    /// The label of metrics and logs.
    pub(super) const fn door(&self) -> &'static str {
        match self {
            Self::Promotion(..) => "promotion",
            Self::Approval(..) => "approval",
            Self::Poke(_) | Self::PokeRepo(_) => "poke",
            Self::Malformed(door) => door,
            Self::Health => "health",
            Self::Nothing => "none",
        }
    }
}

fn promotion(path: &str) -> Option<Asked> {
    let [namespace, name, environment] = parts(path)?;
    Some(Asked::Promotion(named(PipelineId::new, namespace, name)?, environment))
}

fn approval(path: &str) -> Option<Asked> {
    let [namespace, name, environment, revision] = parts(path)?;
    Some(Asked::Approval(named(PipelineId::new, namespace, name)?, environment, revision))
}

fn named<I>(id: fn(String, String) -> I, namespace: String, name: String) -> Option<I> {
    (is_name(&namespace) && is_name(&name)).then(|| id(namespace, name))
}

/// Exactly so many parts, each decoded.
fn parts<const N: usize>(path: &str) -> Option<[String; N]> {
    let parts: Option<Vec<String>> = path.split('/').map(decoded).collect();
    parts?.try_into().ok()
}

/// A part without its percent signs; `None` where it is empty, long, or no text.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            plain => plain,
        });
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.is_empty() && text.len() <= PART_BYTES_MAX).then_some(text)
}

/// The value of a hexadecimal digit.
pub(super) fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_exactly_its_parts_and_a_name_is_no_path() {
        let web = || PipelineId::new("shop", "web");
        let cases = [
            ("/promotion/shop/web/staging", Asked::Promotion(web(), "staging".to_owned())),
            ("/promotion/shop/web/st%C3%A4ging", Asked::Promotion(web(), "stäging".to_owned())),
            ("/approval/shop/web/prod/1.3", Asked::Approval(web(), "prod".to_owned(), "1.3".to_owned())),
            ("/approval/shop/web/prod/main%2Fabc", Asked::Approval(web(), "prod".to_owned(), "main/abc".to_owned())),
            ("/hooks/poke/pipeline/shop/web", Asked::Poke(web())),
            ("/hooks/poke/repo/shop/web", Asked::PokeRepo(RepoId::new("shop", "web"))),
            ("/hooks/poke/repo/shop/..", Asked::Malformed("poke")),
            ("/healthz", Asked::Health),
            ("/", Asked::Nothing),
            ("/promotion", Asked::Nothing),
            ("/hooks/poke/", Asked::Nothing),
            ("/livez", Asked::Nothing),
        ];
        for (path, asked) in cases {
            assert_eq!(Asked::of(path), asked, "{path}");
        }
    }

    // Faults: T18
    #[test]
    fn tricks_name_nothing() {
        for rest in [
            "",
            "/",
            "shop/web",
            "shop/web/",
            "shop//staging",
            "shop/web/staging/",
            "a/b/c/d/e",
            "..%2F..%2Fapi/web/staging",
            "%2e%2e/web/staging",
            "../web/staging",
            "shop/%2e%2e/staging",
            "shop/web%00/staging",
            "shop/web%2fx/staging",
            "shop/web/%",
            "shop/web/%4",
            "shop/web/%zz",
            "shop/web/%ff",
            "Shop/web/staging",
            "shop/.web/staging",
        ] {
            assert_eq!(Asked::of(&format!("/promotion/{rest}")), Asked::Malformed("promotion"), "{rest}");
        }
        let long = format!("/promotion/shop/web/{}", "x".repeat(PART_BYTES_MAX + 1));
        assert_eq!(Asked::of(&long), Asked::Malformed("promotion"));
    }
}
