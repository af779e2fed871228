//! Everything outside as the configuration names it, for `allclear check`: like [`super::sources`], but what cannot be had is
//! said in its place instead of ending all.
//!
//! Not for asking any of it anything; that is `cli::check`.

use std::sync::Arc;

use super::sources::{sources, unasked};
use super::{StartError, cloudfront_options, outbound_client, server};
use crate::adapters::clock::SystemClock;
use crate::adapters::cloudfront::{CloudFront, StaticCredentials};
use crate::adapters::edge_look::EdgeLook;
use crate::adapters::http::{Client, Egress, Settings};
use crate::adapters::kubernetes::{self, Clients, ConnectError};
use crate::adapters::redis::Server;
use crate::config::Config;
use crate::looking::Sources;

/// What is checked, as far as there is any of it.
pub struct Outside {
    /// The cluster, or why there is none.
    pub cluster: Result<InCluster, ConnectError>,
    /// Our own Redis first, then those of the other members; each may be unusable for itself.
    pub servers: Vec<Result<Server, StartError>>,
    pub cdn: CloudFront,
    /// The guarded way to webhooks.
    pub http: Result<Client, StartError>,
    /// The guarded way to pages, as visitors take it.
    pub edge: Result<EdgeLook, StartError>,
}

/// What is asked with the caller's credentials.
pub struct InCluster {
    /// The way to the API server.
    pub clients: Clients,
    /// What is looked at there, or why that is not known.
    pub sources: Result<Sources, StartError>,
}

/// Connects to everything. Nothing is sent yet, but what our name in a group needs. `aws`: instead of what the environment has; only
/// tests have any.
pub async fn outside(config: &Config, kubernetes: &kubernetes::Options, aws: Option<StaticCredentials>) -> Outside {
    let cluster = match kubernetes::connect(kubernetes).await {
        Ok(clients) => Ok(InCluster { sources: sources(config, clients.clone(), None, unasked()).await, clients }),
        Err(error) => Err(error),
    };
    let clock = Arc::new(SystemClock::default());
    let addresses = config.redis.url.iter().chain(&config.group.remotes);
    Outside {
        cluster,
        servers: addresses.map(|address| server(config, address)).collect(),
        cdn: CloudFront::new(cloudfront_options(config, aws)).await,
        http: outbound_client(config),
        edge: EdgeLook::new(&Settings::new(Egress { allow_private: false }), config.proof.private_hosts.clone(), clock)
            .map_err(StartError::Edge),
    }
}
