//! Which addresses may be talked to at all.
//!
//! A person who can make this program send a request must not reach what only this machine can reach: above all the
//! metadata services of clouds, which hand out credentials. So the *address* is judged, after resolving, not the name.

use std::net::IpAddr;

use super::special::{hidden, metadata, special, stands_for};

/// What may be talked to. Link-local, metadata and multicast addresses never may (decision 18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Loopback, private and all other addresses that are none of the Internet's may.
    pub allow_private: bool,
}

impl Egress {
    /// Why this address may not be talked to; `None` if it may. An IPv6 address is judged by itself and by every IPv4
    /// address that it may be translated to on its way.
    pub fn refusal(&self, address: IpAddr) -> Option<&'static str> {
        let hidden = match address {
            IpAddr::V4(_) => Vec::new(),
            IpAddr::V6(address) => hidden(address),
        };
        let mut all = std::iter::once(address).chain(hidden.iter().copied().map(IpAddr::V4));
        if let Some(refusal) = all.clone().find_map(never) {
            return Some(refusal);
        }
        if self.allow_private {
            return None;
        }
        match address {
            IpAddr::V6(translated) => match stands_for(translated) {
                Some(meant) => special(IpAddr::V4(meant)),
                None => all.find_map(special),
            },
            IpAddr::V4(_) => special(address),
        }
    }
}

/// Why a cluster may not be at this address where others say where it is: as what is never talked to, and what only this machine
/// can reach. Private addresses may: clusters live there.
pub fn refusal_of_cluster(address: IpAddr) -> Option<&'static str> {
    let hidden = match address {
        IpAddr::V4(_) => Vec::new(),
        IpAddr::V6(address) => hidden(address),
    };
    let mut all = std::iter::once(address).chain(hidden.into_iter().map(IpAddr::V4));
    Egress { allow_private: true }.refusal(address).or_else(|| all.find_map(this_machine))
}

/// An address that leads back to this machine. What begins with zero does on Linux.
fn this_machine(address: IpAddr) -> Option<&'static str> {
    let is_own = match address {
        IpAddr::V4(address) => address.is_loopback() || address.octets().starts_with(&[0]),
        IpAddr::V6(address) => address.is_loopback() || address.is_unspecified(),
    };
    is_own.then_some("an address of this machine itself")
}

/// Why nothing may ever be sent there, whatever is configured.
fn never(address: IpAddr) -> Option<&'static str> {
    let (is_link_local, is_multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), address.is_multicast() || address.is_broadcast()),
        IpAddr::V6(address) => (address.is_unicast_link_local(), address.is_multicast()),
    };
    let link_local = is_link_local.then_some("a link-local address, where metadata services are");
    let multicast = is_multicast.then_some("a multicast or broadcast address");
    metadata(address).or(link_local).or(multicast)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, allow_private: bool) -> bool {
        Egress { allow_private }.refusal(text.parse().expect("an address")).is_some()
    }

    #[test]
    fn metadata_and_link_local_addresses_are_refused_in_every_disguise() {
        for address in [
            "169.254.169.254",
            "169.254.170.2",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fe80::1",
            "febf::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "224.0.0.1",
            "255.255.255.255",
            "ff02::1",
        ] {
            assert!(refused(address, true), "{address}");
        }
    }

    #[test]
    fn private_addresses_are_refused_only_where_they_are_not_allowed() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "0.0.0.0",
            "198.18.0.1",
            "::1",
            "::",
            "fd12::1",
            "fec0::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(refused(address, false), "{address}");
            assert!(!refused(address, true), "{address}");
        }
    }

    #[test]
    fn a_cluster_that_others_name_is_never_this_machine_nor_a_metadata_service() {
        let refused = |text: &str| refusal_of_cluster(text.parse().expect("an address")).is_some();
        for address in [
            "127.0.0.1",
            "127.1.2.3",
            "0.0.0.0",
            "0.1.2.3",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "2002:7f00:1::1",
            "169.254.169.254",
            "fd00:ec2::254",
            "224.0.0.1",
        ] {
            assert!(refused(address), "{address}");
        }
        for address in
            ["10.0.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "::ffff:10.0.0.1", "1.1.1.1", "2606:4700::1"]
        {
            assert!(!refused(address), "{address}");
        }
    }

    #[test]
    fn public_addresses_are_never_refused() {
        for address in ["1.1.1.1", "100.128.0.1", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(!refused(address, false), "{address}");
        }
    }
}
