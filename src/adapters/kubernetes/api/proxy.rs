//! The proxy on a person's way to the API server, as kubectl chooses it: the kubeconfig's own `proxy-url`, else `HTTPS_PROXY`, unless
//! `NO_PROXY` names the server; never to this machine, and never without TLS.
//!
//! kube asks whether `NO_PROXY` names the *proxy* (`ConfigLoader::proxy_url`, kube-client 5.0.0), so its choice is judged anew.
//!
//! Not for a pod, which reaches its API server without one; nor for clusters that others name, whose addresses we judge ourselves.

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::proxy::matcher::Matcher;
use kube::config::Kubeconfig;

/// Whether the cluster of this context, or of the current one, names a proxy of its own.
pub(super) fn is_named(kubeconfig: &Kubeconfig, context: Option<&str>) -> bool {
    let named = || {
        let context = context.or(kubeconfig.current_context.as_deref())?;
        let context = kubeconfig.contexts.iter().find(|one| one.name == context)?.context.as_ref()?;
        let cluster = kubeconfig.clusters.iter().find(|one| one.name == context.cluster)?;
        cluster.cluster.as_ref()?.proxy_url.as_ref()
    };
    named().is_some_and(|url| !url.is_empty())
}

/// The proxy to a server, of what kube found. `named`: it is the kubeconfig's own, which holds for every server.
pub(super) fn judged(found: Option<Uri>, named: bool, server: &Uri, environment: &Matcher) -> Option<Uri> {
    let is_meant = named || (is_elsewhere(server) && environment.intercept(server).is_some());
    found.filter(|_| is_meant).map(with_scheme)
}

/// A server on another machine, by TLS.
fn is_elsewhere(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    server.scheme() == Some(&Scheme::HTTPS) && !is_here
}

/// `proxy:3128` is one of http, as everywhere.
fn with_scheme(proxy: Uri) -> Uri {
    if proxy.scheme().is_some() {
        return proxy;
    }
    format!("http://{proxy}").parse().unwrap_or(proxy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged_for(server: &str, named: bool, exceptions: &str) -> Option<String> {
        let environment = Matcher::builder().https("http://proxy:3128").no(exceptions).build();
        let found = "http://us:word@proxy:3128".parse().ok();
        judged(found, named, &server.parse().expect("a URL"), &environment).map(|proxy| proxy.to_string())
    }

    #[test]
    fn the_proxy_of_the_environment_leads_to_servers_elsewhere_that_are_not_excepted() {
        let through = Some("http://us:word@proxy:3128/".to_owned());
        assert_eq!(judged_for("https://eks.example.com", false, ""), through);
        assert_eq!(judged_for("https://10.1.2.3:6443", false, "10.2.0.0/16,.corp"), through);
        for (server, exceptions) in [
            ("https://10.1.2.3:6443", "10.1.0.0/16"),
            ("https://api.corp", "other,.corp"),
            ("https://api.corp", "*"),
            ("https://127.0.0.1:6443", ""),
            ("https://[::1]:6443", ""),
            ("https://localhost:6443", ""),
            ("http://eks.example.com", ""),
        ] {
            assert_eq!(judged_for(server, false, exceptions), None, "{server} {exceptions}");
        }
    }

    #[test]
    fn the_proxy_of_the_kubeconfig_leads_to_every_server() {
        for server in ["https://127.0.0.1:6443", "http://api.corp", "https://api.corp"] {
            assert_eq!(judged_for(server, true, "*"), Some("http://us:word@proxy:3128/".to_owned()), "{server}");
        }
    }

    #[test]
    fn a_proxy_without_a_scheme_is_one_of_http() {
        assert_eq!(with_scheme(Uri::from_static("proxy:3128")).to_string(), "http://proxy:3128/");
    }

    #[test]
    fn the_cluster_of_the_context_says_whether_it_has_one() {
        let text = "{clusters: [{name: a, cluster: {server: 'https://a', proxy-url: 'http://p'}}, {name: b, cluster: {server: 'https://b'}}], \
                    contexts: [{name: to-a, context: {cluster: a}}, {name: to-b, context: {cluster: b}}], current-context: to-b}";
        let kubeconfig = Kubeconfig::from_yaml(text).expect("a kubeconfig");
        assert!(is_named(&kubeconfig, Some("to-a")));
        assert!(!is_named(&kubeconfig, Some("to-b")));
        assert!(!is_named(&kubeconfig, None));
    }
}
