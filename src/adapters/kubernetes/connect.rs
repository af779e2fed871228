//! Clients for the API server, with every bound of time set: kube's defaults have none for reading and retry fifteen
//! times by themselves.
//!
//! Not for requests; those are in `call`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

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
}

/// Clients of one API server.
#[derive(Clone)]
pub struct Clients {
    /// For watches: it waits long for the next byte.
    pub watch: Client,
    /// For everything else.
    pub request: Client,
    /// Our own namespace: that of the pod, or of the kubeconfig's context.
    pub namespace: String,
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
        /// Why.
        cause: KubeconfigError,
    },
    /// The configuration was read, but no client can be made from it.
    #[error("failed to make a client for {server}: {cause}")]
    Client {
        /// The API server.
        server: String,
        /// Why.
        cause: kube::Error,
    },
}

/// Makes clients from a kubeconfig, or from what every pod is given. Sends nothing yet.
///
/// # Errors
/// When neither is there, or what is there cannot be used.
pub async fn connect(options: &Options) -> Result<Clients, Error> {
    let (config, source) = configuration(options).await?;
    let server = config.cluster_url.to_string();
    let client = |read_timeout| {
        Client::try_from(bounded(config.clone(), read_timeout))
            .map_err(|cause| Error::Client { server: server.clone(), cause })
    };
    Ok(Clients {
        watch: client(WATCH_READ_MAX)?,
        request: client(REQUEST_READ_MAX)?,
        namespace: config.default_namespace.clone(),
        source,
        server,
    })
}

async fn configuration(options: &Options) -> Result<(Config, String), Error> {
    let choice = KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &options.kubeconfig {
        return from_file(path, &choice).await;
    }
    match Config::from_kubeconfig(&choice).await {
        Ok(config) => Ok((config, "the kubeconfig of KUBECONFIG or ~/.kube/config".to_owned())),
        Err(error) if options.context.is_none() && is_absent(&error) => match Config::incluster() {
            Ok(config) => Ok((config, "the service account of this pod".to_owned())),
            Err(not_a_pod) => Err(Error::NoCluster { looked: looked(&error), cause: not_a_pod.to_string() }),
        },
        Err(cause) => Err(Error::Kubeconfig { place: "of KUBECONFIG or ~/.kube/config".to_owned(), cause }),
    }
}

async fn from_file(path: &Path, choice: &KubeConfigOptions) -> Result<(Config, String), Error> {
    let place = path.display().to_string();
    let read = match Kubeconfig::read_from(path) {
        Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, choice).await,
        Err(error) => Err(error),
    };
    match read {
        Ok(config) => Ok((config, format!("the kubeconfig {place}"))),
        Err(cause) => Err(Error::Kubeconfig { place, cause }),
    }
}

/// Whether there is no kubeconfig at all, which is how it is in a pod.
fn is_absent(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(cause, _) => cause.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Where a kubeconfig was looked for, by its path where there is one.
fn looked(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(_, path) => format!("the kubeconfig {} does not exist", path.display()),
        _ => "there is no KUBECONFIG, and no home directory with a kubeconfig".to_owned(),
    }
}

fn bounded(mut config: Config, read_timeout: Duration) -> Config {
    config.connect_timeout = Some(CONNECT_MAX);
    config.read_timeout = Some(read_timeout);
    config.write_timeout = Some(WRITE_MAX);
    // Otherwise the time a pooled connection was idle counts as silence of the next answer.
    config.reset_reader_on_write = true;
    // Whoever calls backs off by the class of the error; kube's own layer would hold a call for minutes.
    config.default_retry = false;
    let agent = HeaderValue::from_static(concat!("allclear/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, agent));
    config
}
