//! `http.*`: where probes and where the status page are served.

use std::net::SocketAddr;

use super::Http;
use super::address::Refused;
use super::values::Values;

/// The page. Only loopback is safe for it.
const PAGE: &str = "http.page";

pub(super) fn http(values: &mut Values<'_>) -> Option<Http> {
    let listen = values.parsed("http.listen", "`address:port`", address);
    let page = values.parsed(PAGE, "`address:port`", address);
    let http = Http { listen: listen?, page: page? };
    if overlap(http.listen, http.page) {
        let message = "takes the port of http.listen: probes and the page have places of their own, so that neither takes the other's";
        let place = values.place(PAGE);
        values.findings.refuse(&place, PAGE, None, message, "give it another port, such as 127.0.0.1:8081");
        return None;
    }
    if !http.page.ip().to_canonical().is_loopback() {
        let message = "is no loopback address: every pod that reaches it can read the names, versions and troubles of all workloads, \
                       for nothing there asks who it is; 127.0.0.1:8081 with kubectl port-forward shows them to people who may \
                       reach the pod, and a NetworkPolicy can keep others out";
        let place = values.place(PAGE);
        values.findings.warn(&place, PAGE, message);
    }
    Some(http)
}

/// Whether the system would not let both be listened on, as far as that can be known before.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (first, second) = (one.ip().to_canonical(), other.ip().to_canonical());
    let same = first == second || first.is_unspecified() || second.is_unspecified();
    // The system chooses another port for each 0.
    one.port() == other.port() && one.port() != 0 && same
}

fn address(text: &str) -> Result<SocketAddr, Refused> {
    let fix = "write an IP address and a port, such as 0.0.0.0:8080 or [::]:8080";
    text.parse().map_err(|_| Refused::new("is not an address with a port", fix))
}
