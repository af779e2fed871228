//! An API server without a network: each request is answered by a function, in the pieces that it says.

use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use allclear::adapters::kubernetes::{Clients, Tempo};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{Request, Response, StatusCode, Uri};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::Client;

pub struct Answer {
    pub status: StatusCode,
    pub pieces: Vec<Bytes>,
    /// Whether the body ends after its pieces; a watch does not.
    pub ends: bool,
}

/// The lengths of pieces: an answer means the same however its bytes come in.
pub const CUTS: [usize; 3] = [usize::MAX, 7, 1];

impl Answer {
    pub fn whole(body: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, pieces: vec![body.into()], ends: true }
    }

    pub fn cut(body: &[u8], length: usize) -> Self {
        Self { status: StatusCode::OK, pieces: pieces(body, length), ends: true }
    }

    pub fn lines(body: &[u8], length: usize) -> Self {
        Self { status: StatusCode::OK, pieces: pieces(body, length), ends: false }
    }

    pub fn missing() -> Self {
        Self { status: StatusCode::NOT_FOUND, ..Self::whole(Bytes::new()) }
    }

    /// A list of nothing.
    pub fn empty() -> Self {
        Self::whole(r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#)
    }
}

fn pieces(body: &[u8], length: usize) -> Vec<Bytes> {
    // One byte at a time is only tried of what is short: it is the same code for every further one.
    let length = if length == 1 && body.len() > 4_096 { 13 } else { length };
    body.chunks(length.min(body.len()).max(1)).map(Bytes::copy_from_slice).collect()
}

/// Clients of a server that answers so.
pub fn clients(answer: impl Fn(&Uri) -> Answer + Send + Sync + 'static) -> Clients {
    let answer = Arc::new(answer);
    let server = tower::service_fn(move |request: Request<kube::client::Body>| {
        let Answer { status, pieces, ends } = answer(request.uri());
        let pieces = stream::iter(pieces).map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
        let body = StreamBody::new(if ends { pieces.boxed() } else { pieces.chain(stream::pending()).boxed() });
        let mut response = Response::new(body);
        *response.status_mut() = status;
        async move { Ok::<_, Infallible>(response) }
    });
    let client = Client::new(server, "shop");
    Clients {
        watch: client.clone(),
        request: client,
        namespace: "shop".to_owned(),
        pod_namespace: None,
        server: "https://kubernetes.default.svc".to_owned(),
        source: "a test".to_owned(),
    }
}

/// A watch's pace, without what would ask for more than one list and one watch.
pub fn tempo() -> Tempo {
    Tempo { streaming: false, prove: None, ..Tempo::default() }
}

/// Runs something in virtual time: what waits is through with it at once.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

/// The first things that a flow for ever says.
pub async fn first<T: Debug>(flow: impl Stream<Item = T>) -> Vec<String> {
    /// More than any corpus has lines.
    const MOST: usize = 64;
    let mut said = Vec::new();
    let mut flow = std::pin::pin!(flow.take(MOST));
    while let Ok(Some(one)) = tokio::time::timeout(Duration::from_secs(1), flow.next()).await {
        said.push(format!("{one:?}"));
    }
    said
}

/// Runs the same once for each way to cut an answer: all say the same.
pub fn however_cut<T: Debug + PartialEq>(mut read: impl FnMut(usize) -> T) -> T {
    let whole = read(CUTS[0]);
    for cut in &CUTS[1..] {
        assert_eq!(read(*cut), whole, "in pieces of {cut} bytes");
    }
    whole
}
