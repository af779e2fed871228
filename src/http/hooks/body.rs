//! The body of a request: read within bounds, and what it says.

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::web::{Bytes, BytesMut, Payload};
use futures_util::StreamExt;
use serde::Deserialize;

use crate::http::reply;
use objects::pipeline::callers::{App, Claim};

/// Bytes of a body. An event of Flux has one or two thousand, and GitHub's largest pushes are cut to 25 MiB: those are refused, and a
/// forge's webhook can be limited to what is smaller. With the places of this door, 16 MiB in all.
pub(super) const BODY_BYTES_MAX: usize = 256 * 1024;

/// How long a body may take.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is longer than [`BODY_BYTES_MAX`].
    Long,
    /// It did not come in time.
    Slow,
    /// It broke off, or is not what HTTP allows.
    Broken,
}

/// Reads a body. `declared` is what its head says of its length.
pub(super) async fn read(payload: &mut Payload, declared: Option<&str>) -> Result<Bytes, Unread> {
    if declared.is_some_and(|length| length.parse::<usize>().is_ok_and(|length| length > BODY_BYTES_MAX)) {
        return Err(Unread::Long);
    }
    reply::within(BODY_WITHIN, collect(payload)).await.unwrap_or(Err(Unread::Slow))
}

async fn collect(payload: &mut Payload) -> Result<Bytes, Unread> {
    let mut body = BytesMut::new();
    while let Some(piece) = payload.next().await {
        let piece = piece.map_err(|_| Unread::Broken)?;
        if body.len() + piece.len() > BODY_BYTES_MAX {
            return Err(Unread::Long);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

/// An event of Flux, as far as the older controller looks at it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// What it is about.
    pub claim: Claim,
    /// The revision in its metadata; `None` where it names none.
    pub revision: Option<String>,
}

/// Reads an event; `None` if it is none.
pub(super) fn event(body: &[u8]) -> Option<Event> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Raw {
        involved_object: Option<Involved>,
        metadata: Option<BTreeMap<String, Option<String>>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Involved {
        api_version: Option<String>,
        kind: Option<String>,
        name: Option<String>,
        namespace: Option<String>,
    }
    let raw: Raw = serde_json::from_slice::<Option<Raw>>(body).ok()?.unwrap_or_default();
    let Involved { api_version, kind, name, namespace } = raw.involved_object.unwrap_or_default();
    let app = App {
        api_version: api_version.unwrap_or_default(),
        kind: kind.unwrap_or_default(),
        name: name.unwrap_or_default(),
    };
    let revision = raw.metadata.and_then(|mut metadata| metadata.remove("revision")?);
    Some(Event {
        claim: Claim { app, namespace: namespace.unwrap_or_default() },
        revision: revision.filter(|revision| !revision.is_empty()),
    })
}

/// A yes, as its body has it.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Answer {
    /// The ticket that is answered.
    pub ticket: String,
    pub by: Option<String>,
}

/// Reads a yes; `None` if it is none.
pub(super) fn answer(body: &[u8]) -> Option<Answer> {
    serde_json::from_slice(body).ok()
}

#[cfg(test)]
mod tests {
    use actix_web::FromRequest;
    use actix_web::dev;
    use actix_web::error::PayloadError;
    use actix_web::test::TestRequest;
    use futures_util::stream;

    use super::*;

    /// A body that comes in these pieces, and then stays away, or ends.
    async fn payload(pieces: Vec<Result<&'static [u8], PayloadError>>, ends: bool) -> Payload {
        let pieces = stream::iter(pieces.into_iter().map(|piece| piece.map(Bytes::from_static)));
        let stream = if ends { pieces.boxed_local() } else { pieces.chain(stream::pending()).boxed_local() };
        let request = TestRequest::default().to_http_request();
        Payload::from_request(&request, &mut dev::Payload::from(stream)).await.unwrap()
    }

    // Time is paused: what waits for ten seconds is through with it at once.
    #[tokio::test(start_paused = true)]
    async fn a_body_is_read_within_its_bounds() {
        const LARGE: &[u8] = &[b' '; BODY_BYTES_MAX];
        let whole = read(&mut payload(vec![Ok(b"a"), Ok(b"b")], true).await, Some("2")).await;
        assert_eq!(whole, Ok(Bytes::from_static(b"ab")));
        assert_eq!(
            read(&mut payload(vec![Ok(LARGE)], true).await, None).await.map(|body| body.len()),
            Ok(BODY_BYTES_MAX)
        );
        assert_eq!(read(&mut payload(vec![Ok(LARGE), Ok(b"b")], false).await, None).await, Err(Unread::Long));
        assert_eq!(read(&mut payload(Vec::new(), false).await, Some("262145")).await, Err(Unread::Long));
        let began = tokio::time::Instant::now();
        assert_eq!(read(&mut payload(vec![Ok(b"a")], false).await, Some("2")).await, Err(Unread::Slow));
        assert_eq!(began.elapsed(), BODY_WITHIN);
        let broken = vec![Ok(&b"a"[..]), Err(PayloadError::Incomplete(None))];
        assert_eq!(read(&mut payload(broken, true).await, None).await, Err(Unread::Broken));
    }

    #[test]
    fn an_event_is_what_flux_sends_and_what_go_reads() {
        let flux = br#"{"involvedObject": {"kind": "HelmRelease", "namespace": "default", "name": "app",
            "apiVersion": "helm.toolkit.fluxcd.io/v2beta1", "uid": "u"}, "severity": "info", "timestamp": "2026-11-22T22:10:00Z",
            "message": "m", "reason": "r", "metadata": {"revision": "5.0.0", "other": "x"}, "reportingController": "c"}"#;
        let event_of = event(flux).unwrap();
        assert_eq!(event_of.revision.as_deref(), Some("5.0.0"));
        let app = App {
            api_version: "helm.toolkit.fluxcd.io/v2beta1".into(),
            kind: "HelmRelease".into(),
            name: "app".into(),
        };
        assert_eq!(event_of.claim, Claim { app, namespace: "default".into() });
        for empty in [
            "null",
            "{}",
            r#"{"metadata": null}"#,
            r#"{"metadata": {"revision": ""}}"#,
            r#"{"metadata": {"revision": null}}"#,
        ] {
            assert_eq!(event(empty.as_bytes()).unwrap().revision, None, "{empty}");
        }
        for none in ["", "incompatible", "[]", "1", r#"{"metadata": {"revision": 5}}"#, r#"{"metadata": "x"}"#] {
            assert_eq!(event(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn a_yes_names_a_ticket() {
        let said = answer(br#"{"ticket": "0123456789ab", "by": "anna"}"#);
        assert_eq!(said, Some(Answer { ticket: "0123456789ab".into(), by: Some("anna".into()) }));
        assert_eq!(answer(br#"{"by": "anna"}"#), None);
        assert_eq!(answer(b""), None);
    }
}
