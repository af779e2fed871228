//! Host names people give external-dns by annotation.

use std::collections::BTreeMap;

use super::Findings;
use kernel::names::host::Host;

/// The annotation external-dns reads host names from: a comma list. The first is its newer form.
/// <https://kubernetes-sigs.github.io/external-dns/latest/docs/annotations/annotations/>
const HOSTNAME: [&str; 2] = ["external-dns.kubernetes.io/hostname", "external-dns.alpha.kubernetes.io/hostname"];

/// The hosts of an object's annotations. They become DNS records, whose wildcards cover any depth (RFC 4592 §2.2.1).
pub(super) fn hosts(annotations: &BTreeMap<String, String>, place: &str, findings: &mut Findings<'_>) -> Vec<Host> {
    let place = format!("external-dns annotation on {place}");
    texts(annotations).filter_map(|text| findings.read(text, &place)).map(Host::at_any_depth).collect()
}

/// How many hosts the annotations name, readable or not.
pub(super) fn count(annotations: &BTreeMap<String, String>) -> usize {
    texts(annotations).count()
}

/// The texts that should be hosts.
pub(super) fn texts(annotations: &BTreeMap<String, String>) -> impl Iterator<Item = &str> {
    let values = HOSTNAME.iter().filter_map(|key| annotations.get(*key));
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|text| !text.is_empty())
}
