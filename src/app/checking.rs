//! Everything outside as the configuration names it, for `allclear check`: like [`super::looking`], but what cannot be had is
//! said in its place instead of ending all.
//!
//! Not for asking any of it anything; that is `cli::check`.

use super::looking::views_of;
use super::{LEDGER_NAMESPACE, StartError, Views, cloudfront_options, outbound_client, server};
use crate::adapters::cloudfront::{CloudFront, StaticCredentials};
use crate::adapters::http::Client;
use crate::adapters::kubernetes::{self, Clients};
use crate::adapters::redis::Server;
use crate::config::Config;

/// What is checked, as far as there is any of it.
pub struct Outside {
    /// The cluster, or why there is none.
    pub cluster: Result<InCluster, String>,
    /// Our own Redis first, then those of the other members; each may be unusable for itself.
    pub servers: Vec<Result<Server, String>>,
    pub cdn: CloudFront,
    /// The guarded way to webhooks.
    pub http: Result<Client, String>,
}

/// What is asked with the caller's credentials.
pub struct InCluster {
    /// The way to the API server.
    pub clients: Clients,
    /// Views of it, or why one cannot be made.
    pub views: Result<Views, String>,
}

/// The namespace of the ledger, for a person as for a pod.
pub fn ledger_namespace(config: &Config) -> &str {
    config.ledger.namespace.as_deref().unwrap_or(LEDGER_NAMESPACE)
}

/// Connects to everything. Nothing is sent yet, but what our name in a group needs. `aws`: instead of what the environment has; only
/// tests have any.
pub async fn outside(config: &Config, kubernetes: &kubernetes::Options, aws: Option<StaticCredentials>) -> Outside {
    let cluster = match kubernetes::connect(kubernetes).await {
        Ok(clients) => {
            let views = views_of(config, clients.clone(), None).await.map_err(|error: StartError| error.to_string());
            Ok(InCluster { clients, views })
        }
        Err(error) => Err(error.to_string()),
    };
    let addresses = config.redis.url.iter().chain(&config.group.remotes);
    Outside {
        cluster,
        servers: addresses.map(|address| server(config, address).map_err(|error| error.to_string())).collect(),
        cdn: CloudFront::new(cloudfront_options(config, aws)).await,
        http: outbound_client(config).map_err(|error| error.to_string()),
    }
}
