//! The proxy on a person's way to the API server, as kubectl chooses it: the kubeconfig's own `proxy-url`, else `HTTPS_PROXY`, unless
//! `NO_PROXY` names the server; never to this machine, and never without TLS.
//!
//! kube asks whether `NO_PROXY` names the *proxy* (`ConfigLoader::proxy_url`, kube-client 5.0.0), so its choice is not used.
//!
//! Not for a pod, which reaches its API server without one; nor for clusters that others name, whose addresses we judge ourselves.

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::proxy::matcher::Matcher;
use kube::config::Kubeconfig;

/// The proxy that the cluster of this context, or of the current one, names for itself.
pub(crate) fn named(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<Uri> {
    let context = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|one| one.name == context)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|one| one.name == context.cluster)?;
    // kube has refused what is no URL.
    cluster.cluster.as_ref()?.proxy_url.as_ref().and_then(|url| url.parse().ok())
}

/// The proxy to a server. `named`: the kubeconfig's own, which holds for every server; `given`: the environment's, and `environment`
/// knows its exceptions.
pub(crate) fn chosen(named: Option<Uri>, given: Option<Uri>, server: &Uri, environment: &Matcher) -> Option<Uri> {
    let is_meant = || is_elsewhere(server) && environment.intercept(server).is_some();
    named.or_else(|| given.filter(|_| is_meant())).map(with_scheme)
}

/// `HTTPS_PROXY`, in either spelling.
#[expect(
    clippy::disallowed_methods,
    reason = "kube and hyper-util read these variables here too, so that a kubeconfig means the same to kubectl and to us"
)]
pub(crate) fn given() -> Option<Uri> {
    let set = |name: &str| std::env::var(name).ok().filter(|url| !url.is_empty());
    set("HTTPS_PROXY").or_else(|| set("https_proxy"))?.parse().ok()
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

    fn chosen_for(server: &str, is_named: bool, exceptions: &str) -> Option<String> {
        let environment = Matcher::builder().https("http://proxy:3128").no(exceptions).build();
        let url = || "http://us:word@proxy:3128".parse().ok();
        let (named, given) = if is_named { (url(), None) } else { (None, url()) };
        chosen(named, given, &server.parse().expect("a URL"), &environment).map(|proxy| proxy.to_string())
    }

    #[test]
    fn the_proxy_of_the_environment_leads_to_servers_elsewhere_that_are_not_excepted() {
        let through = Some("http://us:word@proxy:3128/".to_owned());
        assert_eq!(chosen_for("https://eks.example.com", false, ""), through);
        assert_eq!(chosen_for("https://10.1.2.3:6443", false, "10.2.0.0/16,.corp"), through);
        assert_eq!(
            chosen_for("https://eks.example.com", false, "proxy"),
            through,
            "the proxy itself is excepted, and not the server"
        );
        for (server, exceptions) in [
            ("https://10.1.2.3:6443", "10.1.0.0/16"),
            ("https://api.corp", "other,.corp"),
            ("https://api.corp", "*"),
            ("https://api.corp", "proxy,api.corp"),
            ("https://127.0.0.1:6443", ""),
            ("https://[::1]:6443", ""),
            ("https://localhost:6443", ""),
            ("http://eks.example.com", ""),
        ] {
            assert_eq!(chosen_for(server, false, exceptions), None, "{server} {exceptions}");
        }
    }

    #[test]
    fn the_proxy_of_the_kubeconfig_leads_to_every_server() {
        for server in ["https://127.0.0.1:6443", "http://api.corp", "https://api.corp"] {
            assert_eq!(chosen_for(server, true, "*"), Some("http://us:word@proxy:3128/".to_owned()), "{server}");
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
        assert_eq!(named(&kubeconfig, Some("to-a")), Some(Uri::from_static("http://p")));
        assert_eq!(named(&kubeconfig, Some("to-b")), None);
        assert_eq!(named(&kubeconfig, None), None);
    }
}
