//! The client's address: the peer's, or, behind a proxy that the operator trusts, the one in the proxy's headers.
//!
//! Not for whether a client is believed; that is for keys.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use actix_web::http::header::HeaderMap;

/// Addresses that are looked at in one header; a chain of proxies has a few.
const HOPS_MAX: usize = 16;

/// The bits of an IPv6 address that may be one customer's (RFC 6177, up to 65,536 networks of /64): it has as many of the others as it likes.
const CUSTOMER_BITS: u8 = 48;

/// The same of unique local addresses (RFC 4193), as pods and nodes have them: a whole cluster may be in one /48.
const LOCAL_BITS: u8 = 64;

/// Addresses with a beginning in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    pub address: IpAddr,
    /// How many bits they have in common.
    pub bits: u8,
}

impl Network {
    fn contains(&self, other: IpAddr) -> bool {
        masked(self.address, self.bits) == masked(other, self.bits) && self.address.is_ipv4() == other.is_ipv4()
    }
}

/// The address without what follows the first bits.
fn masked(address: IpAddr, bits: u8) -> u128 {
    let (value, length) = match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    };
    let cut = length - u32::from(bits).min(length);
    value.checked_shr(cut).and_then(|kept| kept.checked_shl(cut)).unwrap_or_default()
}

/// The address that a request is counted for. `trusted` are the proxies whose headers are believed: the last address in
/// `X-Forwarded-For` that is not such a proxy's own, or `X-Real-IP`. Headers from any other address are ignored.
pub(super) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut client = peer.to_canonical();
    if !is_trusted(client) {
        return counted(client);
    }
    // A proxy adds the one that it was called by at the end.
    let values: Vec<&str> = headers.get_all("X-Forwarded-For").filter_map(|value| value.to_str().ok()).collect();
    let mut hops = values.iter().rev().flat_map(|value| value.rsplit(',')).take(HOPS_MAX).peekable();
    if hops.peek().is_none() {
        let real = headers.get("X-Real-IP").and_then(|value| address(value.to_str().ok()?));
        return counted(real.unwrap_or(client));
    }
    for hop in hops {
        let Some(address) = address(hop) else { break };
        client = address;
        if !is_trusted(client) {
            break;
        }
    }
    counted(client)
}

/// An address, as it stands in a header: also with a port, or in brackets.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let parsed: Option<IpAddr> = bare.parse().ok();
    parsed.or_else(|| text.parse().ok().map(|with_port: SocketAddr| with_port.ip())).map(|one| one.to_canonical())
}

fn counted(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(v6) => {
            let bits = if v6.is_unique_local() { LOCAL_BITS } else { CUSTOMER_BITS };
            IpAddr::V6(Ipv6Addr::from_bits(masked(client, bits)))
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_static(value));
        }
        headers
    }

    fn of(peer: &str, lines: &[(&'static str, &'static str)]) -> String {
        let trusted = [("10.0.0.0", 8), ("fd00::", 64), ("192.0.2.7", 32)]
            .map(|(address, bits)| Network { address: address.parse().unwrap(), bits });
        client(peer.parse().unwrap(), &headers(lines), &trusted).to_string()
    }

    // Faults: T18
    #[test]
    fn only_a_trusted_proxy_says_who_is_behind_it() {
        let forged = [("x-forwarded-for", "198.51.100.1"), ("x-real-ip", "198.51.100.2")];
        assert_eq!(of("203.0.113.5", &forged), "203.0.113.5");
        assert_eq!(of("10.1.2.3", &forged), "198.51.100.1");
        assert_eq!(of("::ffff:10.1.2.3", &forged), "198.51.100.1");
        assert_eq!(of("11.0.0.1", &forged), "11.0.0.1");
        assert_eq!(of("192.0.2.8", &forged), "192.0.2.8");
        assert_eq!(of("10.1.2.3", &[]), "10.1.2.3");
        assert_eq!(of("10.1.2.3", &forged[1..]), "198.51.100.2");
    }

    #[test]
    fn what_a_client_wrote_before_the_proxies_counts_nothing() {
        let chain = |value| of("10.1.2.3", &[("x-forwarded-for", value)]);
        assert_eq!(chain("1.1.1.1, 203.0.113.5"), "203.0.113.5");
        assert_eq!(chain("1.1.1.1, 203.0.113.5, 192.0.2.7,10.9.9.9"), "203.0.113.5");
        assert_eq!(chain("10.0.0.1, 10.0.0.2"), "10.0.0.1");
        assert_eq!(chain("nonsense, 10.0.0.2"), "10.0.0.2");
        assert_eq!(chain("203.0.113.5:4711"), "203.0.113.5");
        let two = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.5")];
        assert_eq!(of("10.1.2.3", &two), "203.0.113.5");
    }

    #[test]
    fn one_customer_is_one_client() {
        assert_eq!(of("2001:db8:1:2:3:4:5:6", &[]), "2001:db8:1::");
        assert_eq!(of("fd00::1", &[("x-forwarded-for", "[2001:db8:1:9:9::]:443")]), "2001:db8:1::");
        assert_eq!(of("fd12:3456:789a:1:2::3", &[]), "fd12:3456:789a:1::", "pods of a node, not of the cluster");
    }
}
