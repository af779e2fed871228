//! A way to loopback that keeps the rules of `forge::Http`, and counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use forge::{Authorities, Http, HttpError};

/// How long one exchange may take; two busy cores are slow.
const TIMEOUT: Duration = Duration::from_secs(60);

/// HTTP without TLS and without a judgement of addresses.
pub struct Plain {
    client: reqwest::Client,
    pub requests: AtomicUsize,
    pub bytes_sent: AtomicUsize,
}

impl Plain {
    pub fn new() -> Self {
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let client = client.timeout(TIMEOUT).build().expect("client");
        Self { client, requests: AtomicUsize::new(0), bytes_sent: AtomicUsize::new(0) }
    }
}

#[async_trait]
impl Http for Plain {
    async fn send(
        &self,
        request: http::Request<Bytes>,
        _: Option<&Authorities>,
        answer_max: usize,
    ) -> Result<http::Response<Bytes>, HttpError> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.bytes_sent.fetch_add(request.body().len(), Ordering::SeqCst);
        let failed = |error: reqwest::Error| HttpError::Failed(error.without_url().to_string());
        let request = reqwest::Request::try_from(request).map_err(failed)?;
        let mut answer = self.client.execute(request).await.map_err(failed)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            body.extend_from_slice(&chunk);
            if body.len() > answer_max {
                return Err(HttpError::TooLong);
            }
        }
        let mut response = http::Response::new(Bytes::from(body));
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        Ok(response)
    }
}
