//! `tenants.*`: who may purge what, and what more than the bounds some namespaces may.

use std::collections::BTreeSet;
use std::fmt::Display;

use config::{Map, Value, ValueKind};

use super::address::Refused;
use super::suggest::{listed, nearest};
use super::values::{Values, label};
use kernel::mask::shown;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use purge::bounds::tenants::{Allowance, Tenancy, Tenants};

const KEY: &str = "tenants.allow";

/// Entries at most, and items of a list in one: a cluster has some hundred namespaces, and a pattern can name many.
const ENTRIES_MAX: usize = 1_000;

const NAMES: [&str; 7] =
    ["namespaces", "hosts", "distributions", "distributions_max", "paths_per_hour", "purges_per_hour", "group_names"];

/// Distributions of an account, by its highest quota (<https://docs.aws.amazon.com/general/latest/gr/cf_region.html>).
const DISTRIBUTIONS: i64 = 10_000;

/// Paths in an hour at most: 5,000 USD of them.
const PATHS: i64 = 1_000_000;

/// Purges of one distribution in an hour at most: one a second, or twice what AWS staff name for an account.
const PURGES: i64 = 3_600;

pub(super) fn read(values: &mut Values<'_>) -> Option<Tenants> {
    let default = values.choice("tenants.default", &[("trusted", Tenancy::Trusted), ("own", Tenancy::Own)]);
    let accepts = format!("list of tables with {}", listed(NAMES));
    let tables = values.tables(KEY, &accepts, ENTRIES_MAX)?;
    let mut allowed = Vec::new();
    let mut sound = true;
    for (index, table) in tables.iter().enumerate() {
        match allowance(table) {
            Ok(allowance) => allowed.push(allowance),
            Err(problems) => {
                sound = false;
                for (value, refused) in problems {
                    let message = format!("entry {}: {}", index + 1, refused.message);
                    let _: Option<()> = values.refuse(KEY, value, Refused { message, fix: refused.fix });
                }
            }
        }
    }
    Some(Tenants { default: default?, allowed: sound.then_some(allowed)? })
}

type Problems = Vec<(Option<String>, Refused)>;

fn allowance(table: &Map<String, Value>) -> Result<Allowance, Problems> {
    let mut problems = Vec::new();
    let mut allowance = Allowance::default();
    let mut note = |read: Result<(), (Option<String>, Refused)>| problems.extend(read.err());
    for (name, value) in table {
        note(match name.as_str() {
            "namespaces" => texts(name, value, namespaces).map(|read| allowance.namespaces = read),
            "hosts" => texts(name, value, host).map(|read| allowance.hosts = read.into_iter().flatten().collect()),
            "distributions" => texts(name, value, distribution).map(|read| allowance.distributions = read),
            "distributions_max" => {
                number(name, value, DISTRIBUTIONS).map(|read| allowance.distributions_max = Some(read))
            }
            "paths_per_hour" => number(name, value, PATHS).map(|read| allowance.paths_per_hour = Some(read)),
            "purges_per_hour" => number(name, value, PURGES).map(|read| allowance.purges_per_hour = Some(read)),
            "group_names" => texts(name, value, namespaces).map(|read| allowance.group_names = read),
            _ => Err((None, unknown(name))),
        });
    }
    // A slip is reported once, and not again as a missing key.
    let is_meant = table.keys().any(|name| nearest(name, NAMES) == Some("namespaces"));
    if !is_meant {
        let fix = "add namespaces = [\"shop\"]; a name may end in a star, as in team-a-*";
        problems.push((None, Refused::new("names no namespaces", fix)));
    }
    if problems.is_empty() { Ok(allowance) } else { Err(problems) }
}

fn unknown(name: &str) -> Refused {
    let fix = match nearest(name, NAMES) {
        Some(known) => format!("did you mean {known}?"),
        None => format!("remove it, or use {}", listed(NAMES)),
    };
    Refused::new(format!("{} is not a key", shown(name)), fix)
}

pub(super) fn texts<T: Ord>(
    name: &str,
    value: &Value,
    parse: impl Fn(&str) -> Result<T, Refused>,
) -> Result<BTreeSet<T>, (Option<String>, Refused)> {
    let wrong = || {
        let fix = format!("write {name} = [\"…\"], with at least one and at most {ENTRIES_MAX} texts in quotes");
        (None, Refused::new(format!("{name} is not a list of texts"), fix))
    };
    let ValueKind::Array(items) = &value.kind else { return Err(wrong()) };
    if items.is_empty() || items.len() > ENTRIES_MAX {
        return Err(wrong());
    }
    let text = |item: &Value| match &item.kind {
        ValueKind::String(text) => parse(text.trim()).map_err(|Refused { message, fix }| {
            (Some(shown(text)), Refused::new(format!("an item of {name} {message}"), fix))
        }),
        _ => Err(wrong()),
    };
    items.iter().map(text).collect()
}

fn number(name: &str, value: &Value, most: i64) -> Result<u32, (Option<String>, Refused)> {
    let wrong = |shown: Option<String>| {
        (shown, Refused::new(format!("{name} is not in range"), format!("write a whole number from 1 to {most}")))
    };
    match &value.kind {
        ValueKind::I64(number) if (1..=most).contains(number) => u32::try_from(*number).map_err(|_| wrong(None)),
        ValueKind::I64(number) => Err(wrong(Some(number.to_string()))),
        _ => Err(wrong(None)),
    }
}

pub(super) fn namespaces(text: &str) -> Result<String, Refused> {
    let name = text.strip_suffix('*').unwrap_or(text);
    // A beginning may end in a hyphen, and a lone star is every namespace.
    let sound = if name.len() < text.len() { name.is_empty() || label(&format!("{name}x")).is_ok() } else { false };
    if sound { Ok(text.to_owned()) } else { label(text) }
}

/// A host; a wildcard as people write it here stands for its domain too.
pub(super) fn host(text: &str) -> Result<Vec<Host>, Refused> {
    let refused =
        |why: &dyn Display| Refused::new(format!("is not a host: {why}"), "write www.example.com or *.example.com");
    let host = Host::parse(text).map_err(|error| refused(&error))?.at_any_depth();
    let domain =
        if host.is_wildcard() { Some(Host::parse(host.domain()).map_err(|error| refused(&error))?) } else { None };
    Ok([host].into_iter().chain(domain).collect())
}

pub(super) fn distribution(text: &str) -> Result<DistributionId, Refused> {
    let fix = "write an id such as E2QWRUHAPOMQZL, or dt_2wjDZi3hD1ivOXf6rpZJOSNE1AB";
    DistributionId::parse(text).map_err(|_| Refused::new("is not a distribution id", fix))
}
