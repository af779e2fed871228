//! Clients for the API server, with every bound of time set: kube's defaults have none for reading and retry fifteen
//! times by themselves.
//!
//! Not for requests; those are in `call`.

use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;
use kube::client::{ClientBuilder, ConfigExt};
use kube::config::{
    AuthInfo, Cluster, Context, ExecInteractiveMode, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo,
    NamedCluster, NamedContext,
};
use kube::{Client, Config};

use tower::util::MapErr;

use super::failure::{failure_in_words, unusable};
use super::proxy;
use kernel::mask::shown;

/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Longest silence on a connection that carries a watch; a last resort behind the watch's own limit.
const WATCH_READ_MAX: Duration = Duration::from_secs(300);

/// Longest silence on a connection that carries anything else.
const REQUEST_READ_MAX: Duration = Duration::from_secs(15);

/// Longest wait until a request is written.
const WRITE_MAX: Duration = Duration::from_secs(15);

/// Where the API server is, and who we are there.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A kubeconfig instead of the one of `KUBECONFIG` or `~/.kube/config`; then nothing else is tried.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig instead of its current one.
    pub context: Option<String>,
    /// No person is there to answer a credential plugin, even where standard input is a terminal: the words of a command line are
    /// being completed.
    pub unattended: bool,
}

/// Where the credentials of a pod come from.
const POD: &str = "the service account of this pod";

/// Clients of one API server.
#[derive(Clone)]
pub struct Clients {
    /// For watches: it waits long for the next byte.
    pub watch: Client,
    pub request: Client,
    /// Our own namespace: that of the pod, or of the kubeconfig's context.
    pub namespace: String,
    /// The namespace of the pod that this program runs in; `None` outside of pods.
    pub pod_namespace: Option<String>,
    /// The API server, for people.
    pub server: String,
    /// Where the credentials come from, for people.
    pub source: String,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing says where an API server is.
    #[error(
        "failed to find a Kubernetes cluster: {looked}, and this is not a pod ({cause}); name a kubeconfig that exists by \
         --kubeconfig or KUBECONFIG, or run in the cluster with a service account"
    )]
    NoCluster {
        /// Where a kubeconfig was looked for.
        looked: String,
        /// Why this is not a pod.
        cause: String,
    },
    /// There is a kubeconfig, and it cannot be used.
    #[error("failed to use the kubeconfig {place}: {cause}")]
    Kubeconfig {
        /// Its path, or where kube looked for it.
        place: String,
        /// Why, without a word of the file: it holds credentials.
        cause: String,
    },
    /// The configuration was read, but no client can be made from it.
    #[error("failed to make a client for {server}: {cause}")]
    Client {
        server: String,
        /// Why, without the output of credential plugins.
        cause: String,
    },
}

/// Makes clients from a kubeconfig, or from what every pod is given. Sends nothing yet.
///
/// # Errors
/// When neither is there, or what is there cannot be used.
pub async fn connect(options: &Options) -> Result<Clients, Error> {
    let (config, source) = configuration(options).await?;
    let server = shown(&config.cluster_url.to_string());
    let client = |read_timeout| client(bounded(config.clone(), read_timeout), &server);
    Ok(Clients {
        watch: client(WATCH_READ_MAX)?,
        request: client(REQUEST_READ_MAX)?,
        namespace: config.default_namespace.clone(),
        pod_namespace: (source == POD).then(|| config.default_namespace.clone()),
        source,
        server,
    })
}

/// Makes clients of a cluster whose address others have named: each address that its name has is judged when it is resolved. Sends
/// nothing yet.
///
/// # Errors
/// When what it is made of cannot be used.
pub fn connect_judged(config: &Config, source: &str, refusal: Judge) -> Result<Clients, Error> {
    let server = shown(&config.cluster_url.to_string());
    let client = |read_timeout| {
        let config = bounded(config.clone(), read_timeout);
        made(&server, || judged(&config, refusal))
    };
    Ok(Clients {
        watch: client(WATCH_READ_MAX)?,
        request: client(REQUEST_READ_MAX)?,
        namespace: config.default_namespace.clone(),
        pod_namespace: None,
        source: source.to_owned(),
        server: server.clone(),
    })
}

/// Makes clients from a folder with a pod's `token`, which the kubelet renews, and the API server's `ca.crt`. Sends nothing
/// yet.
///
/// # Errors
/// When what is in it cannot be used.
pub async fn connect_in_pod(server: &str, folder: &Path, namespace: &str) -> Result<Clients, Error> {
    let file = |name: &str| Some(folder.join(name).to_string_lossy().into_owned());
    let name = || "pod".to_owned();
    let cluster =
        Cluster { server: Some(server.to_owned()), certificate_authority: file("ca.crt"), ..Cluster::default() };
    let user = AuthInfo { token_file: file("token"), ..AuthInfo::default() };
    let context =
        Context { cluster: name(), user: Some(name()), namespace: Some(namespace.to_owned()), ..Context::default() };
    let kubeconfig = Kubeconfig {
        clusters: vec![NamedCluster { name: name(), cluster: Some(cluster), ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo { name: name(), auth_info: Some(user), ..NamedAuthInfo::default() }],
        contexts: vec![NamedContext { name: name(), context: Some(context), ..NamedContext::default() }],
        current_context: Some(name()),
        ..Kubeconfig::default()
    };
    let place = shown(&folder.to_string_lossy());
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config =
        config.map_err(|error| Error::Kubeconfig { place: format!("made of {place}"), cause: unusable(&error) })?;
    let server = shown(&config.cluster_url.to_string());
    let client = |read_timeout| client(bounded(config.clone(), read_timeout), &server);
    Ok(Clients {
        watch: client(WATCH_READ_MAX)?,
        request: client(REQUEST_READ_MAX)?,
        namespace: namespace.to_owned(),
        pod_namespace: Some(namespace.to_owned()),
        source: POD.to_owned(),
        server,
    })
}

/// Why an address may not be connected to.
pub type Judge = fn(IpAddr) -> Option<&'static str>;

/// A client as kube makes it, but for the addresses that it connects to. What bounds its silence is `call` and `watch`.
fn judged(config: &Config, refusal: Judge) -> kube::Result<Client> {
    let lookup = tower::service_fn(move |name: Name| async move { lookup(name.as_str(), refusal).await });
    let mut connector = HttpConnector::new_with_resolver(lookup);
    connector.enforce_http(false);
    connector.set_connect_timeout(config.connect_timeout);
    let transport = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .build::<_, kube::client::Body>(config.rustls_https_connector_with_connector(connector)?);
    let stack = ClientBuilder::new(MapErr::new(transport, tower::BoxError::from), config.default_namespace.clone())
        .with_layer(&config.extra_headers_layer()?)
        .with_layer(&config.base_uri_layer());
    Ok(match config.auth_layer()? {
        Some(credentials) => stack.with_layer(&credentials).build(),
        None => stack.build(),
    })
}

/// The addresses of a name that may be connected to.
async fn lookup(name: &str, refusal: Judge) -> io::Result<std::vec::IntoIter<SocketAddr>> {
    let found: Vec<SocketAddr> = tokio::net::lookup_host((name, 0)).await?.collect();
    let allowed: Vec<SocketAddr> = found.iter().copied().filter(|one| refusal(one.ip()).is_none()).collect();
    match found.iter().find_map(|one| refusal(one.ip())) {
        Some(refusal) if allowed.is_empty() => Err(io::Error::other(format!("not connected: the server is {refusal}"))),
        Some(_) | None => Ok(allowed.into_iter()),
    }
}

fn made(server: &str, make: impl FnOnce() -> kube::Result<Client>) -> Result<Client, Error> {
    let failed = |cause: String| Error::Client { server: server.to_owned(), cause };
    // A token that cannot be a header, such as one of two lines, is a panic in tower-http (0.7.1, `AddAuthorizationLayer`).
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(made) => made.map_err(|error| failed(failure_in_words(&error))),
        Err(_) => Err(failed("the token has characters that none can have".to_owned())),
    }
}

fn client(config: Config, server: &str) -> Result<Client, Error> {
    made(server, || Client::try_from(config))
}

async fn configuration(options: &Options) -> Result<(Config, String), Error> {
    let choice = KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &options.kubeconfig {
        return from_file(path, &choice, options.unattended).await;
    }
    let read = match Kubeconfig::read() {
        Ok(kubeconfig) => of_kubeconfig(kubeconfig, &choice, options.unattended).await,
        Err(error) => Err(error),
    };
    match read {
        Ok(config) => Ok((config, "the kubeconfig of KUBECONFIG or ~/.kube/config".to_owned())),
        Err(error) if options.context.is_none() && is_absent(&error) => match Config::incluster() {
            Ok(config) => Ok((config, POD.to_owned())),
            Err(not_a_pod) => Err(Error::NoCluster { looked: looked(&error), cause: not_a_pod.to_string() }),
        },
        Err(error) => {
            let place = "of KUBECONFIG or ~/.kube/config".to_owned();
            Err(Error::Kubeconfig { place, cause: unusable(&error) })
        }
    }
}

async fn from_file(path: &Path, choice: &KubeConfigOptions, unattended: bool) -> Result<(Config, String), Error> {
    let place = shown(&path.to_string_lossy());
    let read = match Kubeconfig::read_from(path) {
        Ok(kubeconfig) => of_kubeconfig(kubeconfig, choice, unattended).await,
        Err(error) => Err(error),
    };
    match read {
        Ok(config) => Ok((config, format!("the kubeconfig {place}"))),
        Err(error) => Err(Error::Kubeconfig { place, cause: unusable(&error) }),
    }
}

async fn of_kubeconfig(
    kubeconfig: Kubeconfig,
    choice: &KubeConfigOptions,
    unattended: bool,
) -> Result<Config, KubeconfigError> {
    let named = proxy::named(&kubeconfig, choice.context.as_deref());
    let mut config = Config::from_custom_kubeconfig(quiet(kubeconfig, unattended), choice).await?;
    config.proxy_url = proxy::chosen(named, proxy::given(), &config.cluster_url, &Matcher::from_env());
    Ok(config)
}

/// Where there is no person to ask, a credential plugin gets no terminal: otherwise what it writes to its standard error would
/// be in our log.
fn quiet(mut kubeconfig: Kubeconfig, unattended: bool) -> Kubeconfig {
    if unattended || !io::stdin().is_terminal() {
        let users = kubeconfig.auth_infos.iter_mut().filter_map(|user| user.auth_info.as_mut()?.exec.as_mut());
        users.for_each(|plugin| plugin.interactive_mode = Some(ExecInteractiveMode::Never));
    }
    kubeconfig
}

/// Whether there is no kubeconfig at all, which is how it is in a pod.
fn is_absent(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(cause, _) => cause.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Where a kubeconfig was looked for, by its path where there is one.
fn looked(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(_, path) => {
            format!("the kubeconfig {} does not exist", shown(&path.to_string_lossy()))
        }
        _ => "there is no KUBECONFIG, and no home directory with a kubeconfig".to_owned(),
    }
}

fn bounded(mut config: Config, read_timeout: Duration) -> Config {
    config.connect_timeout = Some(CONNECT_MAX);
    config.read_timeout = Some(read_timeout);
    config.write_timeout = Some(WRITE_MAX);
    // Otherwise the time a pooled connection was idle counts as silence of the next answer.
    config.reset_reader_on_write = true;
    // The caller backs off by the class of the error; kube's own layer would hold a call for minutes.
    config.default_retry = false;
    let agent = HeaderValue::from_static(concat!("allclear/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, agent));
    config
}
