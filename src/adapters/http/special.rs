//! The address blocks that are not the Internet, as tables, and the IPv4 addresses hidden in IPv6 ones.
//!
//! The blocks are those of IANA's registries of special-purpose addresses
//! (<https://www.iana.org/assignments/iana-ipv4-special-registry>,
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>), as of the latter's update of 2024-10-22 and RFC 9780
//! (2025-05) after it; the standard library's own tests for them are not stable. Every block counts, also those that the
//! registry calls globally reachable: relays and anycast services live there, and no receiver of webhooks.
//!
//! Not for which of these may be talked to all the same; that is `egress`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A block of addresses, and what it is for.
pub(super) struct Block<A> {
    network: A,
    bits: u32,
    /// In the registry's words, with the RFC.
    pub name: &'static str,
}

const fn v4([a, b, c, d]: [u8; 4], bits: u32, name: &'static str) -> Block<Ipv4Addr> {
    Block { network: Ipv4Addr::new(a, b, c, d), bits, name }
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], bits: u32, name: &'static str) -> Block<Ipv6Addr> {
    Block { network: Ipv6Addr::new(a, b, c, d, e, f, g, h), bits, name }
}

/// Blocks within others of the registry (`192.0.0.8/32` in `192.0.0.0/24`) say nothing more, and stand for their names.
const SPECIAL_V4: [Block<Ipv4Addr>; 25] = [
    v4([0, 0, 0, 0], 8, "\"this network\" (RFC 791)"),
    v4([10, 0, 0, 0], 8, "a private address (RFC 1918)"),
    v4([100, 64, 0, 0], 10, "an address that carriers share (RFC 6598)"),
    v4([127, 0, 0, 0], 8, "a loopback address (RFC 1122)"),
    v4([169, 254, 0, 0], 16, "a link-local address (RFC 3927)"),
    v4([172, 16, 0, 0], 12, "a private address (RFC 1918)"),
    v4([192, 0, 0, 0], 29, "for IPv4 service continuity (RFC 7335)"),
    v4([192, 0, 0, 8], 32, "the IPv4 dummy address (RFC 7600)"),
    v4([192, 0, 0, 9], 32, "for Port Control Protocol anycast (RFC 7723)"),
    v4([192, 0, 0, 10], 32, "for TURN anycast (RFC 8155)"),
    v4([192, 0, 0, 170], 31, "for the discovery of NAT64 (RFC 8880)"),
    v4([192, 0, 0, 0], 24, "for assignments of the IETF (RFC 6890)"),
    v4([192, 0, 2, 0], 24, "for documentation (RFC 5737)"),
    v4([192, 31, 196, 0], 24, "for AS112 (RFC 7535)"),
    v4([192, 52, 193, 0], 24, "for automatic multicast tunnels (RFC 7450)"),
    v4([192, 88, 99, 2], 32, "for 6a44 relays (RFC 6751)"),
    v4([192, 88, 99, 0], 24, "for 6to4 relays (RFC 7526)"),
    v4([192, 168, 0, 0], 16, "a private address (RFC 1918)"),
    v4([192, 175, 48, 0], 24, "for AS112 (RFC 7534)"),
    v4([198, 18, 0, 0], 15, "for benchmarks (RFC 2544)"),
    v4([198, 51, 100, 0], 24, "for documentation (RFC 5737)"),
    v4([203, 0, 113, 0], 24, "for documentation (RFC 5737)"),
    v4([224, 0, 0, 0], 4, "a multicast address (RFC 5771)"),
    v4([255, 255, 255, 255], 32, "the broadcast address (RFC 8190)"),
    v4([240, 0, 0, 0], 4, "reserved (RFC 1112)"),
];

/// As above. `::ffff:0:0/96` and `64:ff9b::/96` are left out: those are IPv4 addresses, and judged as such.
const SPECIAL_V6: [Block<Ipv6Addr>; 25] = [
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, "the loopback address (RFC 4291)"),
    v6([0; 8], 128, "the unspecified address (RFC 4291)"),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "for translation within a network (RFC 8215)"),
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "for discarding (RFC 6666)"),
    v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64, "the dummy prefix (RFC 9780)"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "for Teredo (RFC 4380)"),
    v6([0x2001, 1, 0, 0, 0, 0, 0, 1], 128, "for Port Control Protocol anycast (RFC 7723)"),
    v6([0x2001, 1, 0, 0, 0, 0, 0, 2], 128, "for TURN anycast (RFC 8155)"),
    v6([0x2001, 1, 0, 0, 0, 0, 0, 3], 128, "for DNS-SD anycast (RFC 9665)"),
    v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, "for benchmarks (RFC 5180)"),
    v6([0x2001, 3, 0, 0, 0, 0, 0, 0], 32, "for automatic multicast tunnels (RFC 7450)"),
    v6([0x2001, 4, 0x112, 0, 0, 0, 0, 0], 48, "for AS112 (RFC 7535)"),
    v6([0x2001, 0x10, 0, 0, 0, 0, 0, 0], 28, "for ORCHID (RFC 4843)"),
    v6([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28, "for ORCHIDv2 (RFC 7343)"),
    v6([0x2001, 0x30, 0, 0, 0, 0, 0, 0], 28, "for drones (RFC 9374)"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "for assignments of the IETF (RFC 2928)"),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "for documentation (RFC 3849)"),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "for 6to4 (RFC 3056)"),
    v6([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48, "for AS112 (RFC 7534)"),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "for documentation (RFC 9637)"),
    v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "for segment routing (RFC 9602)"),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "a private address (RFC 4193)"),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "a link-local address (RFC 4291)"),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "a site-local address (RFC 3879)"),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "a multicast address (RFC 4291)"),
];

/// What the regional registries give out (<https://www.iana.org/assignments/ipv6-address-space>): nothing else is routed.
const GLOBAL_UNICAST: Block<Ipv6Addr> = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, "global unicast");

/// Endpoints that hand machines their secrets. Link-local ones (AWS, its ECS and EKS, Google, Azure, Oracle, Scaleway,
/// OpenStack and most others) are refused with all link-local addresses and need no row. One of Azure is public by its
/// form: the platform channel hands out goal states and certificates, and no receiver can ever live there.
const METADATA_V4: [Block<Ipv4Addr>; 3] = [
    // <https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata>
    v4([100, 100, 100, 200], 32, "Alibaba Cloud's metadata service"),
    // <https://learn.microsoft.com/en-us/azure/virtual-network/what-is-ip-address-168-63-129-16>
    v4([168, 63, 129, 16], 32, "Azure's platform channel"),
    // <https://docs.oracle.com/en-us/iaas/Content/Compute/Tasks/gettingmetadata.htm>, its older address
    v4([192, 0, 0, 192], 32, "Oracle Cloud's metadata service"),
];

/// As above, of IPv6; all of them are unique-local, so private by their form.
const METADATA_V6: [Block<Ipv6Addr>; 5] = [
    // `::254` is metadata, `::23` the credentials of pods; DNS and time are beside them.
    // <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html>
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32, "a metadata service of AWS"),
    // <https://cloud.google.com/compute/docs/metadata/querying-metadata>
    v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, "Google Cloud's metadata service"),
    // <https://docs.cloud-init.io/en/latest/reference/datasources/akamai.html>
    v6([0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 0], 48, "Akamai's metadata service"),
    // <https://docs.cloud-init.io/en/latest/reference/datasources/scaleway.html>
    v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128, "Scaleway's metadata service"),
    // <https://docs.oracle.com/en-us/iaas/Content/Compute/Tasks/gettingmetadata.htm>
    v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128, "Oracle Cloud's metadata service"),
];

impl Block<Ipv4Addr> {
    fn holds(&self, address: Ipv4Addr) -> bool {
        let host_bits = u32::BITS.saturating_sub(self.bits);
        self.network.to_bits().checked_shr(host_bits) == address.to_bits().checked_shr(host_bits)
    }
}

impl Block<Ipv6Addr> {
    fn holds(&self, address: Ipv6Addr) -> bool {
        let host_bits = u128::BITS.saturating_sub(self.bits);
        self.network.to_bits().checked_shr(host_bits) == address.to_bits().checked_shr(host_bits)
    }
}

/// What an address is, if it is none of the Internet.
pub(super) fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => SPECIAL_V4.iter().find(|block| block.holds(address)).map(|block| block.name),
        IpAddr::V6(address) => {
            let listed = SPECIAL_V6.iter().find(|block| block.holds(address)).map(|block| block.name);
            let unrouted = (!GLOBAL_UNICAST.holds(address)).then_some("outside what is given out (RFC 4291)");
            listed.or(unrouted)
        }
    }
}

/// The name of the metadata service at this address.
pub(super) fn metadata(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => METADATA_V4.iter().find(|block| block.holds(address)).map(|block| block.name),
        IpAddr::V6(address) => METADATA_V6.iter().find(|block| block.holds(address)).map(|block| block.name),
    }
}

/// The IPv4 address that an IPv6 address stands for, so that the latter is as public as the former: IPv4-mapped (RFC 4291,
/// 2.5.5.2) and the well-known prefix of NAT64 (RFC 6052, 2.1).
pub(super) fn stands_for(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(joined(high, low)),
        _ => None,
    }
}

/// All IPv4 addresses that some translator or tunnel may send this address to. A network's own NAT64 prefix cannot be known
/// here.
pub(super) fn hidden(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    // ISATAP: the interface identifier says so, whatever the prefix (RFC 5214, 6.1; two bits of it are free).
    let isatap = (e & 0xfcff == 0 && f == 0x5efe).then(|| joined(g, h));
    let translated = match (a, b, c, d, e, f) {
        // IPv4-compatible (RFC 4291, 2.5.5.1), IPv4-mapped, SIIT's IPv4-translated (RFC 2765, 2.1), NAT64.
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, 0, 0, 0, 0) => vec![joined(g, h)],
        (0x64, 0xff9b, 1, ..) => translated_locally(address),
        // 6to4 (RFC 3056, 2).
        (0x2002, high, low, ..) => vec![joined(high, low)],
        // Teredo: the server, and the client with every bit turned (RFC 4380, 4).
        (0x2001, 0, high, low, ..) => vec![joined(high, low), joined(!g, !h)],
        _ => Vec::new(),
    };
    translated.into_iter().chain(isatap).collect()
}

/// A network chooses how long a prefix it takes of `64:ff9b:1::/48` (RFC 8215, 3.2), which moves the IPv4 address and goes
/// around the octet in the middle (RFC 6052, 2.2).
fn translated_locally(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let [_, _, _, _, _, _, o6, o7, _, o9, o10, o11, o12, o13, o14, o15] = address.octets();
    let (by_48, by_56) = (Ipv4Addr::new(o6, o7, o9, o10), Ipv4Addr::new(o7, o9, o10, o11));
    vec![by_48, by_56, Ipv4Addr::new(o9, o10, o11, o12), Ipv4Addr::new(o12, o13, o14, o15)]
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}
