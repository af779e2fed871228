//! `pipeline.*`, `repo.*` and `git.*`: whether revisions are promoted and commits are run, and where git hosts, forges and other systems
//! may be.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::address::Refused;
use super::problem::Place;
use super::values::Values;
use kernel::names::destination::Destination;
use purge::bounds::tenants::{Tenancy, Tenants};

/// API groups at most: ours, and the one we took over from.
const GROUPS_MAX: usize = 8;

/// Hosts at most: one for each git host, forge, verdict and other allclear of a company.
const HOSTS_MAX: usize = 100;

/// Pairs of a Secret and a host at most: a cluster has some hundred namespaces with Pipelines.
const SECRET_HOSTS_MAX: usize = 1_000;

/// Characters of an image: a name of 255, a tag of 128 and a digest.
const IMAGE_CHARS_MAX: usize = 512;

/// Characters of a DNS name (RFC 1123, 2.1).
const NAME_CHARS_MAX: usize = 253;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// Whether Pipelines are followed.
    pub enabled: Enabled,
    /// The API groups they are in, ours first; never empty. Of two objects of one name the one of the earlier group counts.
    pub groups: Vec<String>,
    /// A Pipeline, and what a Repo needs, may name targets and GitopsClusters of other namespaces.
    pub cross_namespace: bool,
    /// The PromotionFreezes of this cluster count.
    pub freezes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repo {
    /// Whether Repos are followed.
    pub enabled: Enabled,
    /// The image of the preset Terraform.
    pub terraform_image: String,
    /// allclear's own image, which fetches commits inside Jobs; empty if it is not known: then no Job is made.
    pub step_image: String,
}

/// Whether Pipelines, or Repos, are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enabled {
    /// If the cluster has the kind.
    Auto,
    /// Yes: that the cluster does not have the kind is a trouble.
    On,
    Off,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Git {
    /// Hosts, in lower case and without port, that may have private addresses: git hosts, forges, and those that Pipelines ask.
    pub private_hosts: BTreeSet<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Where Secrets may be sent beside the hosts that they list themselves, by `namespace/name`.
    pub hosts: BTreeMap<String, BTreeSet<Destination>>,
}

const CHOICES: [(&str, Enabled); 3] = [("auto", Enabled::Auto), ("on", Enabled::On), ("off", Enabled::Off)];

pub(super) fn repo(values: &mut Values<'_>) -> Option<Repo> {
    let enabled = values.choice("repo.enabled", &CHOICES);
    let terraform_image = values.parsed("repo.terraform_image", "image", image);
    let step_image = values.optional("repo.step_image", "image", image);
    Some(Repo { enabled: enabled?, terraform_image: terraform_image?, step_image: step_image?.unwrap_or_default() })
}

/// The API server judges the rest.
fn image(text: &str) -> Result<String, Refused> {
    if text.is_empty() || text.len() > IMAGE_CHARS_MAX || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Refused::new("is not an image", "write a reference such as registry.example.com/terraform:1.9"));
    }
    Ok(text.to_owned())
}

/// Where each namespace purges only its own (`tenants.default`), it also looks only at its own, unless the operator says otherwise.
pub(super) fn pipeline(values: &mut Values<'_>, tenants: Option<&Tenants>) -> Option<Pipeline> {
    let enabled = values.choice("pipeline.enabled", &CHOICES);
    let groups = groups(values);
    let key = "pipeline.cross_namespace";
    let apart = tenants.is_some_and(|tenants| tenants.default == Tenancy::Own) && values.place(key) == Place::Default;
    let cross_namespace = values.truth(key).map(|allowed| allowed && !apart);
    let freezes = values.truth("pipeline.freezes");
    Some(Pipeline { enabled: enabled?, groups: groups?, cross_namespace: cross_namespace?, freezes: freezes? })
}

fn groups(values: &mut Values<'_>) -> Option<Vec<String>> {
    let key = "pipeline.groups";
    let group = |text: &str| match is_dns_name(text) && text.contains('.') {
        true => Ok(text.to_owned()),
        false => Err(Refused::new("is not an API group", "write a group such as allclear.dev")),
    };
    let groups = values.list(key, "list of API groups", GROUPS_MAX, group)?;
    let distinct: BTreeSet<&String> = groups.iter().collect();
    if groups.is_empty() {
        let fix = "write \"allclear.dev\", or set pipeline.enabled = \"off\"";
        return values.refuse(key, None, Refused::new("is empty", fix));
    }
    if distinct.len() < groups.len() {
        return values.refuse(key, None, Refused::new("names a group twice", "write each group once"));
    }
    Some(groups)
}

pub(super) fn git(values: &mut Values<'_>) -> Option<Git> {
    let host = |text: &str| {
        let host = text.to_ascii_lowercase();
        match host.trim_matches(['[', ']']).parse() {
            // As in a URL.
            Ok(IpAddr::V6(address)) => Ok(format!("[{address}]")),
            Ok(IpAddr::V4(_)) => Ok(host),
            Err(_) if is_dns_name(&host) => Ok(host),
            Err(_) => {
                Err(Refused::new("is not a host", "write a name such as git.example.com, without scheme and port"))
            }
        }
    };
    let hosts = values.list("git.private_hosts", "list of hosts", HOSTS_MAX, host)?;
    Some(Git { private_hosts: hosts.into_iter().collect() })
}

pub(super) fn secrets(values: &mut Values<'_>) -> Option<Secrets> {
    let entry = |text: &str| {
        let refused =
            || Refused::new("is not a Secret and a host", "write shop/forge=git.example.com, or …:8443 for a port");
        let (secret, host) = text.split_once('=').ok_or_else(refused)?;
        let (namespace, name) = secret.trim().split_once('/').ok_or_else(refused)?;
        if !is_dns_name(namespace) || !is_dns_name(name) {
            return Err(refused());
        }
        Ok((format!("{namespace}/{name}"), host.parse::<Destination>().map_err(|()| refused())?))
    };
    let mut hosts: BTreeMap<String, BTreeSet<Destination>> = BTreeMap::new();
    for (secret, host) in values.list("secrets.hosts", "list of namespace/name=host", SECRET_HOSTS_MAX, entry)? {
        hosts.entry(secret).or_default().insert(host);
    }
    Some(Secrets { hosts })
}

fn is_dns_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty() && label.chars().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= NAME_CHARS_MAX && text.split('.').all(is_label)
}
