//! Requests to one API server, each bounded in time and in bytes.
//!
//! They go through [`kube::Client::send`] rather than `kube::Api`: its errors drop the `Retry-After` header, and its decoding gives
//! up a whole list for one bad object.
//!
//! Not for trying again: a caller does that, by the class of the error.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use kube::Client;
use kube::api::{DeleteParams, GetParams, ListParams, LogParams, Patch, PatchParams, PostParams, Preconditions};
use kube::client::Body;
use kube::core::Request;
use kube::core::request::Error as RequestError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::failure::{Attempt, Collection, Failure};
use super::text;
use super::{ANSWER_MAX, OBJECT_BYTES_MAX};
use kernel::answer::PortError;
use kernel::unreadable::Unreadable;

/// Most of an error's body that is read. A `Status` has a few hundred bytes; a proxy's page is not worth more.
const ERROR_BYTES_MAX: usize = 16 * 1024;

/// Most of a log that is read: what a person may read at once, and below the largest answer.
const LOG_BYTES_MAX: i64 = 1024 * 1024;

/// The API server of one cluster, as one of those who ask it does: with the longest wait for an answer, and its largest size.
#[derive(Clone)]
pub struct Api {
    pub(crate) client: Client,
    metadata: bool,
    pub(crate) within: Duration,
    bytes_max: usize,
    /// Places for calls under way; `None`: as many as are made.
    places: Option<Arc<Semaphore>>,
}

/// A call that did not succeed.
#[derive(Debug)]
pub struct CallError {
    pub failure: Failure,
    /// What a port reports of it.
    pub error: PortError,
}

pub struct Answer {
    pub attempted: String,
    pub(crate) body: Bytes,
}

impl Api {
    /// Nothing is asked yet.
    pub fn new(client: Client) -> Self {
        Self { client, metadata: false, within: ANSWER_MAX, bytes_max: OBJECT_BYTES_MAX, places: None }
    }

    /// As [`Self::new`], but of objects no more is read than their metadata.
    pub fn of_metadata(client: Client) -> Self {
        Self { metadata: true, ..Self::new(client) }
    }

    /// The same, with another longest wait for an answer.
    pub fn within(&self, within: Duration) -> Self {
        Self { within, ..self.clone() }
    }

    /// The same, with another largest answer in bytes.
    pub fn up_to(&self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self.clone() }
    }

    /// The same, with so many calls under way at most, over all copies of what is returned. The others wait for their turn, and no
    /// time-out counts that. A listing page by page is not counted.
    pub fn at_once(&self, calls: usize) -> Self {
        Self { places: Some(Arc::new(Semaphore::new(calls))), ..self.clone() }
    }

    /// The object of this name, not from any cache: without a `resourceVersion` the API server answers from a quorum of etcd. `None`
    /// if there is none.
    ///
    /// # Errors
    /// When it is refused, or not answered in time.
    pub async fn get(&self, of: &Collection, name: &str) -> Result<Option<Answer>, CallError> {
        let (at, params) = (Request::new(of.path()), GetParams::default());
        let request = if self.metadata { at.get_metadata(name, &params) } else { at.get(name, &params) };
        match self.send(of.attempt_one("get", name), request).await {
            Err(failed) if failed.status() == Some(404) => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// One page of a list, or all of it if no page is asked for.
    ///
    /// # Errors
    /// When it is refused, not answered in time, or too large.
    pub async fn list(&self, of: &Collection, params: &ListParams) -> Result<Answer, CallError> {
        let at = Request::new(of.path());
        self.send(of.attempt("list"), if self.metadata { at.list_metadata(params) } else { at.list(params) }).await
    }

    /// Creates an object. Errors name it by `name`, if that says something to people.
    ///
    /// # Errors
    /// When it is refused, or not answered in time.
    pub async fn create(
        &self,
        of: &Collection,
        name: Option<&str>,
        object: &impl Serialize,
    ) -> Result<Answer, CallError> {
        let request = |body| Request::new(of.path()).create(&PostParams::default(), body);
        self.send(Attempt { name, ..of.attempt("create") }, json(object).and_then(request)).await
    }

    /// Tries to create an object without storing it (`dryRun=All`).
    ///
    /// # Errors
    /// When it would be refused, or is not answered in time.
    pub async fn rehearse(&self, of: &Collection, name: &str, object: &impl Serialize) -> Result<(), CallError> {
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let request = |body| Request::new(of.path()).create(&params, body);
        self.send(of.attempt_one("create", name), json(object).and_then(request)).await.map(drop)
    }

    /// Replaces the object of this name: if it still has the `resourceVersion` that `object` has, where that has one.
    ///
    /// # Errors
    /// When it is refused, 409 if another writer was first, or not answered in time.
    pub async fn replace(&self, of: &Collection, name: &str, object: &impl Serialize) -> Result<Answer, CallError> {
        let request = |body| Request::new(of.path()).replace(name, &PostParams::default(), body);
        self.send(of.attempt_one("update", name), json(object).and_then(request)).await
    }

    /// Replaces the status of the object of this name, if it still has the `resourceVersion` that `object` has. All else of it
    /// is left alone.
    ///
    /// # Errors
    /// As [`Self::replace`].
    pub async fn replace_status(
        &self,
        of: &Collection,
        name: &str,
        object: &impl Serialize,
    ) -> Result<Answer, CallError> {
        let request = |body| Request::new(of.path()).replace_subresource("status", name, &PostParams::default(), body);
        self.send(of.attempt_one("update the status of", name), json(object).and_then(request)).await
    }

    /// Changes parts of the object of this name by a JSON merge patch (RFC 7396): if it still has the `resourceVersion` that the
    /// change has, where that has one.
    ///
    /// # Errors
    /// As [`Self::replace`].
    pub async fn merge(&self, of: &Collection, name: &str, change: &serde_json::Value) -> Result<Answer, CallError> {
        let request = Request::new(of.path()).patch(name, &PatchParams::default(), &Patch::Merge(change));
        self.send(of.attempt_one("patch", name), request).await
    }

    /// Changes parts of the object of this name by a JSON patch (RFC 6902), if each of its tests holds.
    ///
    /// # Errors
    /// 422 where a test does not hold; else as [`Self::replace`].
    pub async fn operate(
        &self,
        of: &Collection,
        name: &str,
        operations: &serde_json::Value,
    ) -> Result<Answer, CallError> {
        // The client would take the operations as a type of its own. All patches go the same way but for this header.
        let request = Request::new(of.path()).patch(name, &PatchParams::default(), &Patch::Merge(operations));
        let request = request.map(|mut request| {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json-patch+json"));
            request
        });
        self.send(of.attempt_one("patch", name), request).await
    }

    /// The log of a container of this pod, at most [`LOG_BYTES_MAX`] from its beginning.
    ///
    /// # Errors
    /// When it is refused, or not answered in time.
    pub async fn log(&self, of: &Collection, pod: &str, container: &str) -> Result<Answer, CallError> {
        let params = LogParams {
            container: Some(container.to_owned()),
            limit_bytes: Some(LOG_BYTES_MAX),
            ..LogParams::default()
        };
        let request = Request::new(of.path()).logs(pod, &params);
        self.send(of.attempt_one("get the log of", pod), request).await
    }

    /// Deletes the object of this name, if there is one.
    ///
    /// # Errors
    /// When it is refused, or not answered in time.
    pub async fn delete(&self, of: &Collection, name: &str) -> Result<(), CallError> {
        let request = Request::new(of.path()).delete(name, &DeleteParams::default());
        match self.send(of.attempt_one("delete", name), request).await {
            Err(failed) if failed.status() != Some(404) => Err(failed),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Deletes the object of this name with all that it owns, if it has this UID. One that is gone, or is another one, is no error.
    ///
    /// # Errors
    /// When it is refused, or not answered in time.
    pub async fn delete_exactly(&self, of: &Collection, name: &str, uid: &str) -> Result<(), CallError> {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        match self.send(of.attempt_one("delete", name), Request::new(of.path()).delete(name, &params)).await {
            Err(failed) if !matches!(failed.status(), Some(404 | 409)) => Err(failed),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    pub(crate) async fn send(
        &self,
        attempt: Attempt<'_>,
        request: Result<http::Request<Vec<u8>>, RequestError>,
    ) -> Result<Answer, CallError> {
        let request = request.map_err(|error| CallError {
            failure: Failure::unanswered(&error),
            error: PortError::lasting(attempt.to_string(), error),
        })?;
        let _place = match &self.places {
            // A closed semaphore (it never is) would only mean that nothing bounds the calls.
            Some(places) => places.acquire().await.ok(),
            None => None,
        };
        let failure = match read_some(&self.client, request, self.within, self.bytes_max).await {
            Ok(Extent::Whole(body)) => return Ok(Answer { attempted: attempt.to_string(), body }),
            Ok(Extent::Head(_)) => Failure::unanswered(format!("an answer of more than {} bytes", self.bytes_max)),
            Err(failure) => failure,
        };
        Err(CallError::of(&attempt, failure))
    }
}

fn json(object: &impl Serialize) -> Result<Vec<u8>, RequestError> {
    serde_json::to_vec(object).map_err(RequestError::SerializeBody)
}

impl CallError {
    /// What an attempt came to.
    pub(crate) fn of(attempt: &Attempt<'_>, failure: Failure) -> Self {
        Self { error: attempt.failed(failure.clone()), failure }
    }

    /// The HTTP status it was answered with, if it was answered.
    pub fn status(&self) -> Option<u16> {
        self.failure.status
    }
}

impl From<CallError> for PortError {
    fn from(failed: CallError) -> Self {
        failed.error
    }
}

impl Answer {
    /// The object it is, by the names of its fields.
    ///
    /// # Errors
    /// When it has other fields; this may pass, as an answer that was cut off.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let failure = Failure::unanswered(format!("it cannot be read: {error}"));
            CallError { error: PortError::passing(self.attempted.as_str(), &failure.message), failure }
        })
    }

    /// What it says; bytes that are no text are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// What is kept of the object it is, or why that cannot be read.
    ///
    /// # Errors
    /// When it is no text, or `decode` cannot read it.
    pub fn object<T>(&self, decode: impl Fn(&str) -> Result<T, Unreadable>) -> Result<T, Unreadable> {
        text::object(&self.body, decode)
    }

    /// The same for who cannot go on without it.
    ///
    /// # Errors
    /// When it cannot be read, which no second attempt mends.
    pub fn read<T>(&self, decode: impl Fn(&str) -> Result<T, Unreadable>) -> Result<T, PortError> {
        let unreadable = |why| PortError::lasting(self.attempted.as_str(), format!("it cannot be read: {why}"));
        self.object(decode).map_err(unreadable)
    }
}

/// Sends a request and waits for the head of a successful answer; its body is still to be read.
pub(crate) async fn open(client: &Client, request: http::Request<Vec<u8>>, within: Duration) -> Result<Body, Failure> {
    bound(within, async {
        let response = client.send(request.map(Body::from)).await.map_err(|error| Failure::of_error(&error))?;
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        // A body that fails on its way says nothing that the status does not.
        let body = match collect(body, ERROR_BYTES_MAX).await {
            Ok(Extent::Whole(body) | Extent::Head(body)) => body,
            Err(_) => Bytes::new(),
        };
        Err(Failure::of_answer(head.status, &head.headers, &body))
    })
    .await
}

/// An answer, as far as it was read.
pub(crate) enum Extent {
    Whole(Bytes),
    /// The beginning of one that is larger than it may be.
    Head(Bytes),
}

/// Sends a request and reads the answer, at most `bytes_max` of it.
pub(crate) async fn read_some(
    client: &Client,
    request: http::Request<Vec<u8>>,
    within: Duration,
    bytes_max: usize,
) -> Result<Extent, Failure> {
    bound(within, async { collect(open(client, request, within).await?, bytes_max).await }).await
}

/// The next piece of a body; `None` at its end.
pub(crate) async fn frame(body: &mut Body) -> Result<Option<Bytes>, Failure> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(Failure::of_error(&error)),
            // Trailers carry nothing here.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Waits for work no longer than this.
pub(crate) async fn bound<T>(within: Duration, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::time::timeout(within, work).await.unwrap_or_else(|_| Err(Failure::silent(within)))
}

async fn collect(mut body: Body, bytes_max: usize) -> Result<Extent, Failure> {
    let mut whole = BytesMut::new();
    while let Some(data) = frame(&mut body).await? {
        let room = bytes_max.saturating_sub(whole.len());
        whole.extend_from_slice(data.get(..room).unwrap_or(&data));
        if data.len() > room {
            return Ok(Extent::Head(whole.freeze()));
        }
    }
    Ok(Extent::Whole(whole.freeze()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;
    use crate::NAMESPACES;

    // Faults: L2
    #[tokio::test(start_paused = true)]
    async fn no_more_calls_are_under_way_than_there_are_places_and_waiting_is_no_failure() {
        const CALL: Duration = Duration::from_secs(4);
        let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&most);
        let server = tower::service_fn(move |_: http::Request<Body>| {
            let (under_way, seen) = (Arc::clone(&under_way), Arc::clone(&seen));
            async move {
                seen.fetch_max(under_way.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::time::sleep(CALL).await;
                under_way.fetch_sub(1, Ordering::Relaxed);
                Ok::<_, Infallible>(http::Response::new(Body::empty()))
            }
        });
        let api = Api::new(Client::new(server, "default")).within(CALL * 2).at_once(3);
        let of = Collection::everywhere(NAMESPACES);
        let from = tokio::time::Instant::now();
        let answers = join_all((0..20).map(|number| {
            let (api, of) = (api.clone(), &of);
            async move { api.get(of, &format!("shop-{number}")).await }
        }));
        assert!(answers.await.iter().all(Result::is_ok), "the last one waited for six others");
        assert_eq!((most.load(Ordering::Relaxed), from.elapsed()), (3, CALL * 7));
    }
}
