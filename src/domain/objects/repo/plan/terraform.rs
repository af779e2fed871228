//! A plan in Terraform's JSON: which of its parts are decisive, and how much they would change.
//!
//! Not for how a value is hashed, nor for what is sensitive in it; that is `json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{Feed, Masked};
use super::{NoPlan, Planned, digits};
use crate::repo::reported;
use crate::repo::status::Counts;

/// The document, as far as it is decisive. What is not known is left to later minor versions, as the format asks for.
#[derive(Deserialize)]
struct Document<'a> {
    format_version: Option<String>,
    errored: Option<bool>,
    applyable: Option<bool>,
    #[serde(borrow)]
    resource_changes: Option<Vec<Resource<'a>>>,
    /// Changes that were made outside. Decisive where they are all that an apply would take over.
    #[serde(borrow)]
    resource_drift: Option<Vec<Resource<'a>>>,
    #[serde(borrow)]
    output_changes: Option<BTreeMap<String, Change<'a>>>,
    #[serde(borrow)]
    action_invocations: Option<Vec<Invocation<'a>>>,
}

#[derive(Deserialize)]
struct Resource<'a> {
    address: String,
    previous_address: Option<String>,
    mode: Option<String>,
    /// Names an object that waits for its removal; the address is that of its successor.
    deposed: Option<String>,
    #[serde(borrow)]
    change: Change<'a>,
}

#[derive(Deserialize)]
struct Change<'a> {
    actions: Vec<String>,
    #[serde(borrow)]
    before: Option<&'a RawValue>,
    #[serde(borrow)]
    after: Option<&'a RawValue>,
    #[serde(borrow)]
    after_unknown: Option<&'a RawValue>,
    #[serde(borrow)]
    before_sensitive: Option<&'a RawValue>,
    #[serde(borrow)]
    after_sensitive: Option<&'a RawValue>,
    #[serde(borrow)]
    replace_paths: Option<&'a RawValue>,
    #[serde(borrow)]
    importing: Option<&'a RawValue>,
}

/// An action that an apply would have a provider do, beside what it does to resources.
#[derive(Deserialize)]
struct Invocation<'a> {
    address: String,
    #[serde(borrow)]
    config_values: Option<&'a RawValue>,
    #[serde(borrow)]
    config_sensitive: Option<&'a RawValue>,
    #[serde(borrow)]
    config_unknown: Option<&'a RawValue>,
    #[serde(borrow)]
    lifecycle_action_trigger: Option<&'a RawValue>,
}

pub(super) fn planned(plan: &[u8]) -> Result<Planned, NoPlan> {
    let Document {
        format_version,
        errored,
        applyable,
        resource_changes,
        resource_drift,
        output_changes,
        action_invocations,
    } = read(plan)?;
    match format_version.as_deref().map(|version| version.split('.').next()) {
        Some(Some("1")) => {}
        Some(_) => return Err(NoPlan("the plan's format_version is not 1.x, and only that is understood")),
        None => return Err(NoPlan("the plan has no format_version; was it made by terraform show -json?")),
    }
    if errored == Some(true) {
        return Err(NoPlan("the plan says that planning failed"));
    }
    let resources = resource_changes.unwrap_or_default();
    let outputs = output_changes.unwrap_or_default();
    let counts = counted(&resources);
    let changing: Vec<_> = resources.iter().filter(|resource| resource.changes()).collect();
    let changing_outputs: Vec<_> = outputs.iter().filter(|(_, change)| !change.is_only("no-op")).collect();
    let invoked = action_invocations.unwrap_or_default();
    // Before 1.7 there is no `applyable`. An apply of what would change nothing, not even an output, does nothing.
    let empty = match applyable {
        Some(applyable) => !applyable,
        None => changing.iter().all(|resource| resource.change.is_only("read")) && changing_outputs.is_empty(),
    };
    let mut parts = Vec::new();
    for resource in changing {
        parts.push(resource.digest(b'r')?);
    }
    if parts.is_empty() && !empty {
        // A plan that only refreshes.
        for drift in resource_drift.unwrap_or_default() {
            parts.push(drift.digest(b'd')?);
        }
    }
    for (name, change) in changing_outputs {
        let mut feed = Feed::default();
        feed.part(b'o', name.as_bytes());
        change.feed(&mut feed)?;
        parts.push(feed.end());
    }
    for invocation in invoked {
        parts.push(invocation.digest()?);
    }
    parts.sort_unstable();
    let mut whole = Feed::default();
    whole.part(b'v', b"terraform 1");
    parts.iter().for_each(|part| whole.part(b'c', part));
    Ok(Planned { fingerprint: digits(whole.end()), counts: Some(counts), empty })
}

fn read(plan: &[u8]) -> Result<Document<'_>, NoPlan> {
    let unread = "the plan is not what terraform show -json writes; is it empty, or did the plan fail?";
    serde_json::from_slice(plan).map_err(|_| NoPlan(unread))
}

/// What may be done to a resource, in words of Terraform's own.
pub(super) const ACTIONS: [&str; 7] = ["create", "update", "delete", "replace", "forget", "import", "move"];

/// What an apply would do to which resource, in the order of the plan. What is only read is no change.
pub(super) fn changes(plan: &[u8]) -> Result<Vec<reported::Change>, NoPlan> {
    let resources = read(plan)?.resource_changes.unwrap_or_default();
    let change = |resource: Resource<'_>| {
        let action = resource.action()?.to_owned();
        Some(reported::Change { action, address: resource.address })
    };
    Ok(resources.into_iter().filter_map(change).collect())
}

/// As Terraform's own summary counts: a replacement is one to add and one to destroy.
fn counted(resources: &[Resource<'_>]) -> Counts {
    let having = |action: &str| {
        let count = resources.iter().filter(|resource| resource.change.actions.iter().any(|one| one == action)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    Counts { add: having("create"), change: having("update"), destroy: having("delete") }
}

impl Resource<'_> {
    /// What would be done to it, in one word.
    fn action(&self) -> Option<&'static str> {
        let has = |action: &str| self.change.actions.iter().any(|one| one == action);
        match (has("create"), has("delete")) {
            (true, true) => Some("replace"),
            (true, false) => Some("create"),
            (false, true) => Some("delete"),
            (false, false) if has("update") => Some("update"),
            (false, false) if has("forget") => Some("forget"),
            (false, false) if self.change.importing.is_some() => Some("import"),
            (false, false) => self.previous_address.as_ref().map(|_| "move"),
        }
    }

    /// Whether an apply would do something about it: also take it over, or give it another address.
    fn changes(&self) -> bool {
        !self.change.is_only("no-op") || self.previous_address.is_some() || self.change.importing.is_some()
    }

    fn digest(&self, kind: u8) -> Result<Vec<u8>, NoPlan> {
        let mut feed = Feed::default();
        feed.part(kind, self.address.as_bytes());
        for text in [&self.previous_address, &self.mode, &self.deposed] {
            feed.part(b'n', text.as_deref().unwrap_or_default().as_bytes());
        }
        self.change.feed(&mut feed)?;
        Ok(feed.end())
    }
}

impl Change<'_> {
    fn is_only(&self, action: &str) -> bool {
        self.actions.iter().all(|one| one == action)
    }

    fn feed(&self, feed: &mut Feed) -> Result<(), NoPlan> {
        let Self { actions, before, after, after_unknown, before_sensitive, after_sensitive, replace_paths, importing } =
            self;
        feed.count(b'a', actions.len());
        actions.iter().for_each(|action| feed.part(b'a', action.as_bytes()));
        feed.masked(&Masked { before: *before, after: *after, marks: [*before_sensitive, *after_sensitive] })?;
        feed.value(*after_unknown)?;
        feed.value(*replace_paths)?;
        feed.value(*importing)
    }
}

impl Invocation<'_> {
    fn digest(&self) -> Result<Vec<u8>, NoPlan> {
        let Self { address, config_values, config_sensitive, config_unknown, lifecycle_action_trigger } = self;
        let mut feed = Feed::default();
        feed.part(b'i', address.as_bytes());
        feed.masked(&Masked { before: None, after: *config_values, marks: [*config_sensitive, None] })?;
        feed.value(*config_unknown)?;
        feed.value(*lifecycle_action_trigger)?;
        Ok(feed.end())
    }
}
