//! Host names people give external-dns by annotation.

use std::collections::BTreeMap;

use super::Findings;
use crate::domain::host::Host;

/// The annotation external-dns reads host names from: a comma list. The first is its newer form.
/// <https://kubernetes-sigs.github.io/external-dns/latest/docs/annotations/annotations/>
const HOSTNAME: [&str; 2] = ["external-dns.kubernetes.io/hostname", "external-dns.alpha.kubernetes.io/hostname"];

/// The hosts of an object's annotations. They become DNS records, whose wildcards cover any depth (RFC 4592 §2.2.1).
pub(super) fn hosts(annotations: &BTreeMap<String, String>, place: &str, findings: &mut Findings) -> Vec<Host> {
    let values = HOSTNAME.iter().filter_map(|key| annotations.get(*key));
    let texts = values.flat_map(|value| value.split(',')).map(str::trim).filter(|text| !text.is_empty());
    let place = format!("external-dns annotation on {place}");
    texts.filter_map(|text| findings.read(text, &place)).map(Host::at_any_depth).collect()
}
