//! Which addresses may be talked to at all.
//!
//! Whoever can make this program send a request somewhere must not reach what only this machine can reach: above all the
//! metadata services of clouds, which hand out credentials. So the *address* is judged, after resolving, not the name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Metadata services that are not link-local: Alibaba Cloud, Azure's platform channel, and Oracle Cloud.
/// <https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata>
/// <https://learn.microsoft.com/en-us/azure/virtual-network/what-is-ip-address-168-63-129-16>
/// <https://docs.oracle.com/en-us/iaas/Content/Compute/Tasks/gettingmetadata.htm>
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];

/// `fd20:ce::254`, Google Cloud's (<https://cloud.google.com/compute/docs/metadata/querying-metadata>).
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254);

/// What may be talked to. Link-local, metadata and multicast addresses never may (decision 18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Loopback and private addresses may.
    pub allow_private: bool,
}

impl Egress {
    /// Why this address may not be talked to; `None` if it may.
    pub fn refusal(&self, address: IpAddr) -> Option<&'static str> {
        let address = match address {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => embedded(address).map_or(IpAddr::V6(address), IpAddr::V4),
        };
        let (refusal, is_private) = match address {
            IpAddr::V4(address) => (never_v4(address), is_private_v4(address)),
            IpAddr::V6(address) => (never_v6(address), is_private_v6(address)),
        };
        let private = (is_private && !self.allow_private).then_some("a private address");
        refusal.or(private)
    }
}

/// The IPv4 address that an IPv6 address only wraps: IPv4-mapped and -compatible (RFC 4291, 2.5.5), NAT64 (RFC 6052)
/// and 6to4 (RFC 3056). `::` and `::1` are themselves.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(from(high, low)),
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

fn never_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address {
        _ if address.is_link_local() => Some("a link-local address, where metadata services are"),
        _ if METADATA_V4.contains(&address) => Some("the address of a metadata service"),
        _ if address.is_multicast() || address.is_broadcast() => Some("a multicast or broadcast address"),
        _ => None,
    }
}

fn never_v6(address: Ipv6Addr) -> Option<&'static str> {
    match address.segments() {
        // `fd00:ec2::/32` is where AWS has its metadata service (`::254`), credentials of pods (`::23`), DNS and time.
        [0xfd00, 0xec2, ..] => Some("the address of a metadata service"),
        _ if address == METADATA_V6 => Some("the address of a metadata service"),
        _ if address.is_unicast_link_local() => Some("a link-local address, where metadata services are"),
        _ if address.is_multicast() => Some("a multicast address"),
        _ => None,
    }
}

/// What the Internet does not route, by the IANA registry of special-purpose addresses
/// (<https://www.iana.org/assignments/iana-ipv4-special-registry>).
fn is_private_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        // "This network" (connecting to it reaches ourselves), reserved, and what carriers share (RFC 6598).
        [0 | 240..=255, ..] | [100, 64..=127, ..] => true,
        // IETF assignments and benchmarks (RFC 2544).
        [192, 0, 0, _] | [198, 18 | 19, ..] => true,
        _ => address.is_private() || address.is_loopback() || address.is_documentation(),
    }
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    // `fec0::/10` was the site-local range before unique-local addresses (RFC 3879).
    let is_site_local = address.segments().first().is_some_and(|first| first & 0xffc0 == 0xfec0);
    address.is_loopback() || address.is_unspecified() || address.is_unique_local() || is_site_local
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
    fn public_addresses_are_never_refused() {
        for address in ["1.1.1.1", "100.128.0.1", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(!refused(address, false), "{address}");
        }
    }
}
