//! What an API server says of itself, which needs no right: its version, and what time it is there.
//!
//! Not for which kinds it serves; that is `discovery`.

use http_body_util::BodyExt;
use kube::client::Body;
use serde::Deserialize;

use super::call::{Api, bound};
use super::failure::{Collection, Failure, Resource};
use kernel::answer::PortError;

/// Most bytes of an answer. The real one has 500.
const BYTES_MAX: usize = 64 * 1024;

/// An API server, by its own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSays {
    /// Such as `v1.33.2-eks-3f2a`.
    pub version: String,
    /// Major and minor number; `None` if the version does not have them.
    pub numbers: Option<(u32, u32)>,
    /// Its `Date` header, as seconds since the Unix epoch; `None` if there is none, as behind some proxies.
    pub date_s: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    git_version: String,
}

impl Api {
    /// What the API server says of itself.
    ///
    /// # Errors
    /// When nothing answers, or something that is no API server.
    pub async fn server(&self) -> Result<ServerSays, PortError> {
        let of = Collection::everywhere(Resource::new("", "", "version"));
        let failed = |failure: Failure| PortError {
            attempted: "failed to ask the API server for its version".to_owned(),
            ..of.attempt("get").failed(failure)
        };
        let ask = async {
            let request = http::Request::get("/version").body(Body::empty()).map_err(Failure::unanswered)?;
            let answer = self.client.send(request).await.map_err(|error| Failure::of_error(&error))?;
            let (head, body) = answer.into_parts();
            let body = http_body_util::Limited::new(body, BYTES_MAX).collect().await.map_err(Failure::unanswered)?;
            Ok((head, body.to_bytes()))
        };
        let (head, body) = bound(self.within, ask).await.map_err(failed)?;
        if !head.status.is_success() {
            return Err(failed(Failure::of_answer(head.status, &head.headers, &body)));
        }
        let version = serde_json::from_slice::<Version>(&body)
            .map_err(|_| failed(Failure::unanswered("what answers is no API server: a proxy, perhaps")))?;
        let date = head.headers.get(http::header::DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
        Ok(ServerSays {
            numbers: numbers(&version.git_version),
            version: version.git_version,
            date_s: date.map(|date| date.as_second()),
        })
    }
}

/// `v1.33.2` → (1, 33).
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix('v')?.split(['.', '+', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn versions_of_vendors_have_numbers_too() {
        for (text, read) in [
            ("v1.33.0+allclear-stand-in", Some((1, 33))),
            ("v1.29.4-eks-036c24b", Some((1, 29))),
            ("v1.31.0-gke.1000", Some((1, 31))),
            ("v1.30+", Some((1, 30))),
            ("1.30.1", None),
            ("", None),
        ] {
            assert_eq!(numbers(text), read, "{text}");
        }
    }
}
