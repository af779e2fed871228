//! T10: where a receiver's address may lead. The expectations are IANA's registries written down again as text, and every
//! translated form built from its RFC's picture, not by the code's tables.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use allclear::adapters::http::{Client, Egress, Error, Request, Settings};
use bytes::Bytes;
use http::{HeaderMap, Method};
use url::Url;

use crate::webhook::Knows;

/// <https://www.iana.org/assignments/iana-ipv4-special-registry>, and multicast.
const SPECIAL_V4: &str = "0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 \
    192.0.0.0/29 192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.31.196.0/24 \
    192.52.193.0/24 192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 \
    240.0.0.0/4 255.255.255.255/32 224.0.0.0/4";

/// <https://www.iana.org/assignments/iana-ipv6-special-registry> without the two forms that are IPv4 addresses, and what is
/// outside of global unicast.
const SPECIAL_V6: &str = "::1/128 ::/128 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128 2001:1::2/128 \
    2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28 2001:db8::/32 2002::/16 \
    2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8 ::/96 ::ffff:0:0:0/96 200::/7 400::/6 800::/5 \
    1000::/4 4000::/3 6000::/3 8000::/3 a000::/3 c000::/3 e000::/4 f000::/5 f800::/6 fe00::/9";

/// Beside those blocks, and everybody's.
const PUBLIC: &str = "1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 \
    169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0 192.31.195.255 192.31.197.0 \
    192.52.192.255 192.52.194.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 192.175.47.255 192.175.49.0 \
    198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 8.8.8.8 1.1.1.1 \
    168.63.129.15 168.63.129.17 2000:: 2001:200:: 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9:: 2003:: \
    2620:4f:7fff:ffff:ffff:ffff:ffff:ffff 2620:4f:8001:: 3ffe:: 3fff:1000:: 2606:4700::1111 2a00:1450::200e \
    ::ffff:8.8.8.8 64:ff9b::8.8.8.8 64:ff9b::1.1.1.1 2606:4700::5efe:8.8.8.8";

/// Refused whatever is configured: what machines and pods are told their credentials by, of AWS (also ECS and EKS), Google,
/// Azure (also its platform channel), Alibaba, Oracle, Akamai, Scaleway, OpenStack and Tencent.
const METADATA: &str = "169.254.169.254 169.254.170.2 169.254.170.23 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 168.63.129.16 \
    100.100.100.200 192.0.0.192 fd00:c1::a9fe:a9fe fd00:a9fe:a9fe::1 169.254.42.42 fd00:42::42 fe80::a9fe:a9fe 169.254.0.23";

fn first_and_last(block: &str) -> [IpAddr; 3] {
    let (network, bits) = block.split_once('/').expect("a block");
    let bits: u32 = bits.parse().expect("a length");
    match network.parse().expect("an address") {
        IpAddr::V4(network) => {
            let size = u32::MAX.checked_shr(bits).unwrap_or(0);
            let first = u32::from(network);
            [first, first + size / 2, first + size].map(|address| IpAddr::V4(address.into()))
        }
        IpAddr::V6(network) => {
            let size = u128::MAX.checked_shr(bits).unwrap_or(0);
            let first = u128::from(network);
            [first, first + size / 2, first + size].map(|address| IpAddr::V6(address.into()))
        }
    }
}

/// Every way to write an IPv4 address into an IPv6 one, as the RFCs write it.
fn translated(address: Ipv4Addr) -> Vec<Ipv6Addr> {
    let [a, b, c, d] = address.octets();
    let [na, nb, nc, nd] = [!a, !b, !c, !d];
    let hex = |parts: [u8; 4]| format!("{:02x}{:02x}:{:02x}{:02x}", parts[0], parts[1], parts[2], parts[3]);
    let (plain, turned) = (hex([a, b, c, d]), hex([na, nb, nc, nd]));
    let mut forms = vec![
        format!("::ffff:{address}"),
        format!("::ffff:0:{address}"),
        format!("64:ff9b::{address}"),
        // RFC 6052, 2.2, lengths 48, 56, 64 and 96 of the local prefix.
        format!("64:ff9b:1:{a:02x}{b:02x}:00{c:02x}:{d:02x}00::"),
        format!("64:ff9b:1:00{a:02x}:00{b:02x}:{c:02x}{d:02x}::"),
        format!("64:ff9b:1:0:00{a:02x}:{b:02x}{c:02x}:{d:02x}00:0"),
        format!("64:ff9b:1::{address}"),
        format!("2002:{plain}::1"),
        // Teredo, as the server and as the client.
        format!("2001:0:{plain}:8000:63bf:3fff:fdd2"),
        format!("2001:0:4136:e378:8000:63bf:{turned}"),
        // ISATAP behind a public prefix, with both forms of its identifier.
        format!("2606:4700::5efe:{address}"),
        format!("2606:4700::200:5efe:{address}"),
    ];
    // `::` and `::1` are themselves.
    if u32::from(address) > 1 {
        forms.push(format!("::{address}"));
    }
    forms.iter().map(|form| form.parse().unwrap_or_else(|_| panic!("{form}"))).collect()
}

fn words(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split_whitespace()
}

/// Everything that is none of the Internet.
fn special() -> BTreeSet<IpAddr> {
    let mut all: BTreeSet<IpAddr> = words(SPECIAL_V4).chain(words(SPECIAL_V6)).flat_map(first_and_last).collect();
    all.extend(words(METADATA).map(|text| text.parse::<IpAddr>().expect("an address")));
    let hidden: Vec<IpAddr> = all
        .iter()
        .filter_map(|address| if let IpAddr::V4(address) = address { Some(*address) } else { None })
        .flat_map(translated)
        .map(IpAddr::V6)
        .collect();
    all.extend(hidden);
    all
}

fn url(host: &IpAddr) -> Url {
    let text = match host {
        IpAddr::V4(address) => format!("http://{address}:9/"),
        IpAddr::V6(address) => format!("http://[{address}]:9/"),
    };
    Url::parse(&text).expect("a URL")
}

async fn send(client: &Client, url: Url) -> Result<u16, Error> {
    let timeout = Duration::from_millis(500);
    let request = Request { method: Method::POST, url, headers: HeaderMap::new(), body: Bytes::new(), timeout };
    client.send(request).await.map(|answer| answer.status)
}

// Faults: T10
#[tokio::test]
async fn t10_no_special_address_is_called_in_any_form() {
    let egress = Egress { allow_private: false };
    let client = Client::new(Settings::new(egress)).expect("a client");
    let all = special();
    let mut allowed = Vec::new();
    for address in &all {
        if !matches!(send(&client, url(address)).await, Err(Error::Blocked(_))) {
            allowed.push(*address);
        }
    }
    eprintln!("T10: special addresses that are called, of {}: {} (aim 0)", all.len(), allowed.len());
    assert!(all.len() >= 332, "{}", all.len());
    assert_eq!(allowed, Vec::<IpAddr>::new());
}

// Faults: T10
#[tokio::test]
async fn t10_a_name_is_no_way_around() {
    for address in words(METADATA).chain(["127.0.0.1", "10.0.0.1", "64:ff9b:1::7f00:1", "fd12::1", "2001:0:7f00:1::"]) {
        let mut settings = Settings::new(Egress { allow_private: false });
        settings.lookup = Arc::new(Knows(address.parse().expect("an address")));
        let client = Client::new(settings).expect("a client");
        let sent = send(&client, Url::parse("http://receiver.example.com:9/").expect("a URL")).await;
        assert!(matches!(sent, Err(Error::Blocked(_))), "{address}: {sent:?}");
    }
}

// Faults: T10
#[test]
fn t10_metadata_is_never_called_and_the_internet_always() {
    let open = Egress { allow_private: true };
    let closed = Egress { allow_private: false };
    for text in words(METADATA) {
        let address: IpAddr = text.parse().expect("an address");
        assert!(open.refusal(address).is_some(), "{text}");
        if let IpAddr::V4(address) = address {
            for form in translated(address) {
                assert!(open.refusal(form.into()).is_some(), "{form} of {address}");
            }
        }
    }
    for text in words(PUBLIC) {
        let address: IpAddr = text.parse().expect("an address");
        assert_eq!((closed.refusal(address), open.refusal(address)), (None, None), "{text}");
    }
    for text in ["127.0.0.1", "10.1.2.3", "fd12::1", "::1", "64:ff9b:1::10.0.0.1"] {
        assert_eq!(open.refusal(text.parse().expect("an address")), None, "{text}");
    }
}

// Faults: T10
#[tokio::test]
async fn t10_a_proxy_is_sent_a_name_only_if_it_judges() {
    let closed_port = Url::parse("http://127.0.0.1:9").expect("a URL");
    for (judges, blocked) in [(false, true), (true, false)] {
        let mut settings = Settings::new(Egress { allow_private: false });
        settings.proxy = Some(closed_port.clone());
        settings.proxy_judges = judges;
        let client = Client::new(settings).expect("a client");
        let sent = send(&client, Url::parse("http://receiver.example.com/").expect("a URL")).await;
        assert_eq!(matches!(sent, Err(Error::Blocked(_))), blocked, "{sent:?}");
        if let Err(Error::Blocked(reason)) = sent {
            assert!(reason.contains("webhooks.proxy_judges"), "{reason}");
        }
        let literal = send(&client, Url::parse("http://169.254.169.254/").expect("a URL")).await;
        assert!(matches!(literal, Err(Error::Blocked(_))), "{literal:?}");
    }
}
