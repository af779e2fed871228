//! The way to git hosts and forges: the guarded client of [`super::http`], and [`super::ssh`], for crate `forge`.
//!
//! - https only, unless its peers are configured as stand-ins.
//! - Private addresses only of hosts that the operator named; never link-local or metadata addresses. All judged after resolving.
//! - An answer comes whole and in time, or not at all. Redirects are not followed.
//!
//! Not for what is sent and what the answer means; that is the crate `forge`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::http::{Request, Response, StatusCode, Uri};
use async_trait::async_trait;
use bytes::Bytes;
use forge::ssh::{Answer, Call, SshError};
use forge::{Authorities, Http, HttpError};
use url::Url;

use super::http::{self, Client, Egress, Lookup, Settings, SystemLookup};
use super::ssh::{Guard, Ssh};

/// Clients that are kept: one for each set of authorities, twice. A set comes from a Secret, so there are few; making a client
/// reads the system's own, which takes milliseconds.
const CLIENTS_MAX: usize = 64;

/// Time for one exchange, from resolving to the last byte: 64 MiB at 9 Mbit/s.
pub const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(60);

/// HTTP for git hosts and forges.
pub struct ForgeHttp {
    private_hosts: BTreeSet<String>,
    /// Its peers are stand-ins: http is as good as https.
    plain: bool,
    /// Where hosts of these names are stood in for.
    stand_ins: BTreeMap<String, SocketAddr>,
    timeout: Duration,
    lookup: Arc<dyn Lookup>,
    ssh: Ssh,
    /// By whether private addresses are allowed, and by what is trusted beside the system's authorities.
    clients: Mutex<HashMap<(bool, Bytes), Client>>,
}

impl ForgeHttp {
    /// Only these hosts, in lower case and without port, may have private addresses.
    pub fn new(private_hosts: impl IntoIterator<Item = String>) -> Self {
        Self {
            private_hosts: private_hosts.into_iter().collect(),
            plain: false,
            stand_ins: BTreeMap::new(),
            timeout: EXCHANGE_TIMEOUT,
            lookup: Arc::new(SystemLookup),
            ssh: Ssh::default(),
            clients: Mutex::default(),
        }
    }

    /// The same for stand-ins on loopback, which have no certificates.
    #[must_use]
    pub fn with_plain_http(self) -> Self {
        Self { plain: true, ..self }
    }

    /// The same, with stand-ins on loopback in place of these hosts, by name.
    #[must_use]
    pub fn with_stand_ins(self, stand_ins: BTreeMap<String, SocketAddr>) -> Self {
        Self { plain: true, stand_ins, ..self }
    }

    /// The same, with another bound of time and another resolver.
    #[must_use]
    pub fn with(self, timeout: Duration, lookup: Arc<dyn Lookup>) -> Self {
        Self { timeout, lookup, ..self }
    }

    fn url(&self, uri: &Uri) -> Result<Url, HttpError> {
        let mut url = Url::parse(&uri.to_string()).map_err(|_no_url| refused("the address is no URL"))?;
        if let Some(stand_in) = url.host_str().and_then(|host| self.stand_ins.get(host)) {
            let to = format!("http://{stand_in}{}", &url[url::Position::BeforePath..]);
            url = Url::parse(&to).map_err(|_no_url| refused("the address is no URL"))?;
        }
        match url.scheme() {
            "https" => Ok(url),
            "http" if self.plain => Ok(url),
            _ => Err(refused("not sent: only https is spoken, for what is sent is secret")),
        }
    }

    /// The client for a host and for what is trusted there.
    fn client(&self, url: &Url, authorities: Option<&Authorities>) -> Result<Client, http::Error> {
        let stands_in = |host: &str| self.stand_ins.values().any(|stand_in| stand_in.ip().to_string() == host);
        let allow_private = url.host_str().is_some_and(|host| self.private_hosts.contains(host) || stands_in(host));
        let authorities = authorities.map(|Authorities(pem)| pem.clone()).unwrap_or_default();
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&(allow_private, authorities.clone())) {
            return Ok(client.clone());
        }
        let mut settings = Settings::new(Egress { allow_private });
        settings.authorities = authorities.clone();
        settings.lookup = Arc::clone(&self.lookup);
        let client = Client::new(settings)?;
        if clients.len() >= CLIENTS_MAX {
            clients.clear();
        }
        clients.insert((allow_private, authorities), client.clone());
        Ok(client)
    }
}

#[async_trait]
impl Http for ForgeHttp {
    async fn send(
        &self,
        request: Request<Bytes>,
        authorities: Option<&Authorities>,
        answer_max: usize,
    ) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let url = self.url(&head.uri)?;
        let client = self.client(&url, authorities).map_err(spoken)?;
        let request = http::Request { method: head.method, url, headers: head.headers, body, timeout: self.timeout };
        let answer = client.whole(request, answer_max).await.map_err(spoken)?.ok_or(HttpError::TooLong)?;
        let mut response = Response::new(answer.body);
        *response.status_mut() = StatusCode::from_u16(answer.status)
            .map_err(|_unknown| HttpError::Failed("the answer has no status".to_owned()))?;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }

    async fn call(&self, call: Call<'_>) -> Result<Answer, SshError> {
        let Self { private_hosts, lookup, timeout, ssh, .. } = self;
        ssh.call(&call, &Guard { private_hosts, lookup, timeout: *timeout }).await
    }
}

fn refused(words: &str) -> HttpError {
    HttpError::Refused(words.to_owned())
}

fn spoken(error: http::Error) -> HttpError {
    match error {
        http::Error::Blocked(words) | http::Error::Unusable(words) => HttpError::Refused(words),
        http::Error::Failed(words) if words.ends_with(http::UNTRUSTED) => {
            HttpError::Untrusted(format!("{words}: put that authority's certificate into the Secret, under caFile"))
        }
        http::Error::Failed(words) if words.starts_with(http::TLS_FAILED) => HttpError::Untrusted(words),
        http::Error::Failed(words)
            if [http::NOT_CONNECTED, http::UNRESOLVED].iter().any(|no| words.starts_with(no)) =>
        {
            HttpError::Unreachable(words)
        }
        http::Error::Failed(words) => HttpError::Failed(words),
    }
}
