//! Everything outside as the configuration names it, for `allclear check`: like [`super::sources`], but what cannot be had is
//! said in its place instead of ending all.
//!
//! Not for asking any of it anything; that is `cli::check`.

use std::sync::Arc;

use super::sources::{of_accounts, of_own, sources, unasked};
use super::{StartError, outbound_client, server};
use crate::adapters::clock::SystemClock;
use crate::adapters::cloudfront::{CloudFront, Options, StaticCredentials};
use crate::adapters::edge_look::EdgeLook;
use crate::adapters::http::{Client, Egress, Settings};
use crate::adapters::kubernetes::{self, Clients, ConnectError};
use crate::adapters::redis::Server;
use crate::config::Config;
use crate::looking::Sources;
use kernel::names::account::AccountName;

/// What is checked, as far as there is any of it.
pub struct Outside {
    /// The cluster, or why there is none.
    pub cluster: Result<InCluster, ConnectError>,
    /// Our own Redis first, then those of the other members; each may be unusable for itself.
    pub servers: Vec<Result<Server, StartError>>,
    /// CloudFront in each account.
    pub clouds: Vec<Cloud>,
    /// The guarded way to webhooks.
    pub http: Result<Client, StartError>,
    /// The guarded way to pages, as visitors take it.
    pub edge: Result<EdgeLook, StartError>,
}

/// CloudFront in one account.
pub struct Cloud {
    /// Its name, where accounts are configured.
    pub name: Option<AccountName>,
    pub cdn: CloudFront,
    pub options: Options,
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
    let mut clouds = Vec::new();
    let of_accounts = of_accounts(config, aws.as_ref());
    let of_accounts = of_accounts.into_iter().map(|(name, options)| (Some(name), options));
    let of_own = of_own(config, aws);
    let alone = config.aws.accounts.is_empty().then_some((None, of_own));
    for (name, options) in of_accounts.chain(alone) {
        clouds.push(Cloud { name, cdn: CloudFront::new(options.clone()).await, options });
    }
    let addresses = config.redis.url.iter().chain(&config.group.remotes);
    Outside {
        cluster,
        servers: addresses.map(|address| server(config, address)).collect(),
        clouds,
        http: outbound_client(config),
        edge: EdgeLook::new(&Settings::new(Egress { allow_private: false }), config.proof.private_hosts.clone(), clock)
            .map_err(StartError::Edge),
    }
}
