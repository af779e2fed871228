//! The AWS SDK's own HTTP client, with a bound on what it reads: the SDK collects every answer whole before it looks at it
//! (`read_body` of aws-smithy-runtime), and has no setting for how much that may be.
//!
//! It carries the requests for credentials as well. Not for bounds of time; those are the SDK's own settings.

use std::mem;

use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::{Builder, ConnectorBuilder};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::{RuntimeComponents, RuntimeComponentsBuilder};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::ConfigBag;
use http_body_util::Limited;

/// Bytes of one answer at most. A page of 100 distributions, each with the 100 aliases of CloudFront's default quota and as
/// much again for origins and behaviours, is below 5 MiB.
pub(super) const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The client for everything the SDK sends, credentials included. TLS and proxies are as in the SDK's default client.
pub(super) fn client() -> SharedHttpClient {
    let inner = Builder::new().build_with_connector_fn(|settings, components| {
        let mut connector = ConnectorBuilder::default().tls_provider(Provider::Rustls(CryptoMode::AwsLc));
        connector.set_connector_settings(settings.cloned());
        if let Some(components) = components {
            connector.set_sleep_impl(components.sleep_impl());
        }
        connector.set_proxy_config(Some(ProxyConfig::from_env()));
        connector.build()
    });
    SharedHttpClient::new(Bounded(inner))
}

/// Makes connectors that are bounded.
#[derive(Debug)]
struct Bounded(SharedHttpClient);

/// Stops reading after [`ANSWER_BYTES_MAX`]: the answer is an error then, and its connection is closed.
#[derive(Debug)]
struct BoundedConnector(SharedHttpConnector);

impl HttpClient for Bounded {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(BoundedConnector(self.0.http_connector(settings, components)))
    }

    fn validate_base_client_config(
        &self,
        components: &RuntimeComponentsBuilder,
        config: &ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.validate_base_client_config(components, config)
    }

    fn validate_final_config(&self, components: &RuntimeComponents, config: &ConfigBag) -> Result<(), BoxError> {
        self.0.validate_final_config(components, config)
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.0.connector_metadata()
    }
}

impl HttpConnector for BoundedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let answer = self.0.call(request);
        HttpConnectorFuture::new(async move {
            let mut answer = answer.await?;
            let body = mem::replace(answer.body_mut(), SdkBody::taken());
            *answer.body_mut() = SdkBody::from_body_1_x(Limited::new(body, ANSWER_BYTES_MAX));
            Ok(answer)
        })
    }
}
