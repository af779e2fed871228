//! A kubeconfig that others wrote: what leads to a cluster and says who we are there, and nothing else.
//!
//! Left to itself the client library runs programs that a kubeconfig names, reads files of ours that it names and sends what is in
//! them to the server that it names, and takes proxies from our environment (measured with kube 5). So a [`Config`] is built anew
//! from the fields that are allowed; a field that would do any of that is refused by its name, and nothing is dialled. Words never
//! repeat a value: a token in the wrong place would be in them.
//!
//! Not for our own kubeconfig; that is `apiserver::connect`'s.

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use kube::Config;
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::adapters::http::refusal_of_cluster;
use apiserver::unusable;

/// Most bytes of a kubeconfig. One context with an authority of several certificates and a client certificate has 10 KiB.
pub const BYTES_MAX: usize = 64 * 1024;

/// Which kubeconfigs are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From others, who may write Secrets.
    Others,
    /// From a demo or a test of ours: clusters without TLS, on this machine.
    StandIn,
}

/// Why a kubeconfig is not used: none of its values is repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("it has more than {BYTES_MAX} bytes")]
    TooLarge,
    #[error("{0}")]
    Wrong(&'static str),
    /// It is no kubeconfig, by kind and place.
    #[error("{0}")]
    Invalid(String),
    #[error("it may not contain {}", .0.join(", nor "))]
    Forbidden(Vec<&'static str>),
    /// A server that may not be dialled.
    #[error("the server of its cluster is {0}")]
    Address(&'static str),
}

/// Builds the way to the cluster of the current context.
///
/// # Errors
/// When it is incomplete, or leads elsewhere than to a cluster of others.
pub fn read(kubeconfig: &[u8], origin: Origin) -> Result<Config, Unusable> {
    if kubeconfig.len() > BYTES_MAX {
        return Err(Unusable::TooLarge);
    }
    let text = std::str::from_utf8(kubeconfig).map_err(|_| Unusable::Wrong("it is not text in UTF-8"))?;
    let parsed = Kubeconfig::from_yaml(text).map_err(|error| Unusable::Invalid(unusable(&error)))?;
    let (cluster, user) = current(parsed)?;
    refuse(&[refused_in_cluster(&cluster), refused_in_user(&user)].concat())?;
    let server = server(cluster.server.as_deref().unwrap_or_default(), origin)?;
    let mut config = Config::new(server);
    config.root_cert = cluster.certificate_authority_data.as_deref().map(certificates).transpose()?;
    config.tls_server_name = cluster.tls_server_name.filter(|name| !name.is_empty());
    let AuthInfo { token, client_certificate_data, client_key_data, .. } = user;
    if client_certificate_data.is_some() != client_key_data.is_some() {
        return Err(Unusable::Wrong("its user has only one of client-certificate-data and client-key-data"));
    }
    if token.is_none() && client_key_data.is_none() && origin == Origin::Others {
        return Err(Unusable::Wrong("its user has neither a token nor client-key-data"));
    }
    config.auth_info = AuthInfo { token, client_certificate_data, client_key_data, ..AuthInfo::default() };
    Ok(config)
}

/// The cluster and the user of the current context.
fn current(parsed: Kubeconfig) -> Result<(Cluster, AuthInfo), Unusable> {
    let name = parsed.current_context.ok_or(Unusable::Wrong("it names no current-context"))?;
    let context = parsed.contexts.into_iter().find(|one| one.name == name).and_then(|one| one.context);
    let context = context.ok_or(Unusable::Wrong("it does not have its current-context"))?;
    let cluster = parsed.clusters.into_iter().find(|one| one.name == context.cluster).and_then(|one| one.cluster);
    let user = context.user.ok_or(Unusable::Wrong("its current-context has no user"))?;
    let user = parsed.auth_infos.into_iter().find(|one| one.name == user).and_then(|one| one.auth_info);
    let cluster = cluster.ok_or(Unusable::Wrong("it does not have the cluster of its current-context"))?;
    let user = user.ok_or(Unusable::Wrong("it does not have the user of its current-context"))?;
    Ok((cluster, user))
}

/// Why a field may not be there. A new field of the library fits into neither list, and stops the build.
type Refused = (bool, &'static str);

fn refused_in_cluster(cluster: &Cluster) -> Vec<Refused> {
    let Cluster {
        server: _,
        insecure_skip_tls_verify,
        certificate_authority,
        certificate_authority_data: _,
        proxy_url,
        disable_compression: _,
        tls_server_name: _,
        extensions: _,
        other,
    } = cluster;
    vec![
        (insecure_skip_tls_verify == &Some(true), "insecure-skip-tls-verify (any server could answer)"),
        (is_set(certificate_authority), "certificate-authority (a file of ours; use certificate-authority-data)"),
        (is_set(proxy_url), "proxy-url (what a proxy resolves only it can judge)"),
        (has_unknown(other), "a field of its cluster that is not known"),
    ]
}

fn refused_in_user(user: &AuthInfo) -> Vec<Refused> {
    let AuthInfo {
        username,
        password,
        token: _,
        token_file,
        client_certificate,
        client_certificate_data: _,
        client_key,
        client_key_data: _,
        impersonate,
        impersonate_uid,
        impersonate_groups,
        impersonate_user_extra,
        extensions: _,
        auth_provider,
        exec,
        other,
    } = user;
    let impersonates = is_set(impersonate)
        || is_set(impersonate_uid)
        || impersonate_groups.is_some()
        || impersonate_user_extra.is_some();
    vec![
        (exec.is_some(), "exec (a program that we would run)"),
        (auth_provider.is_some(), "auth-provider (a program that we would run)"),
        (is_set(token_file), "tokenFile (a file of ours; use token)"),
        (is_set(client_certificate), "client-certificate (a file of ours; use client-certificate-data)"),
        (is_set(client_key), "client-key (a file of ours; use client-key-data)"),
        (is_set(username) || password.is_some(), "username and password (use token)"),
        (impersonates, "as, as-uid, as-groups, as-user-extra (use the credentials of a user of its own)"),
        (has_unknown(other), "a field of its user that is not known"),
    ]
}

/// Some tools write fields that they do not use as empty texts.
fn is_set(text: &Option<String>) -> bool {
    text.as_ref().is_some_and(|text| !text.is_empty())
}

fn has_unknown(fields: &BTreeMap<String, serde_json::Value>) -> bool {
    fields.values().any(|value| !value.is_null())
}

fn refuse(fields: &[Refused]) -> Result<(), Unusable> {
    let named: Vec<&str> = fields.iter().filter(|(is_there, _)| *is_there).map(|(_, name)| *name).collect();
    if named.is_empty() { Ok(()) } else { Err(Unusable::Forbidden(named)) }
}

fn server(text: &str, origin: Origin) -> Result<Uri, Unusable> {
    let uri: Uri = text.parse().map_err(|_| Unusable::Wrong("the server of its cluster is not a URL"))?;
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    let is_plain = uri.scheme_str() == Some("http") && origin == Origin::StandIn;
    if uri.scheme_str() != Some("https") && !is_plain {
        return Err(Unusable::Wrong("the server of its cluster is not an https URL"));
    }
    if has_user || uri.query().is_some() {
        return Err(Unusable::Wrong("the server of its cluster has a user or a query in its URL"));
    }
    let host = uri.host().unwrap_or_default();
    // Names are judged when they are resolved.
    let literal: Option<IpAddr> = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
    match literal.and_then(origin.judge()) {
        Some(refusal) => Err(Unusable::Address(refusal)),
        None => Ok(uri),
    }
}

impl Origin {
    /// Says why a cluster may not be at an address.
    pub fn judge(self) -> fn(IpAddr) -> Option<&'static str> {
        match self {
            Self::Others => refusal_of_cluster,
            Self::StandIn => |_| None,
        }
    }
}

/// The certificates of an authority, in DER.
fn certificates(data: &str) -> Result<Vec<Vec<u8>>, Unusable> {
    let pem = STANDARD
        .decode(data.trim())
        .map_err(|_| Unusable::Wrong("certificate-authority-data of its cluster is not base64"))?;
    let found: Result<Vec<Vec<u8>>, _> =
        CertificateDer::pem_slice_iter(&pem).map(|one| one.map(|certificate| certificate.to_vec())).collect();
    match found {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) | Err(_) => Err(Unusable::Wrong("certificate-authority-data of its cluster has no certificate in PEM")),
    }
}

#[cfg(test)]
mod tests;
