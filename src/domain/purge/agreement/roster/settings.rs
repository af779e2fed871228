//! The settings that must be the same in all members (decision 11), in words, so that a difference can be named.
//!
//! Timeouts, addresses and proof are not among them: no decision of one member rests on those of another.

use std::collections::BTreeMap;

use super::kinds::{BETWEEN, CUSTOM, KINDS};
use crate::bounds::policy::{Agreement, AtTimeout, Choice, OnRollback, Policy, Versions};
use kernel::id::custom::Declaration;
use kernel::id::{CustomKind, Kind, config_hash};
use kernel::names::image::VersionOf;
use kernel::text;

/// Characters of a value that a beat carries; of a longer one its beginning and its hash.
const VALUE_CHARS_MAX: usize = 200;

/// The inputs of the configuration hash besides the members; `keyed`: records are signed.
pub fn settings(policy: &Policy, keyed: bool) -> BTreeMap<String, String> {
    // Taken apart, so that a new setting is either covered or left out on purpose.
    let Policy {
        kinds,
        rollout_timeout: _,
        barrier: _,
        zero_is_complete,
        version: Versions { of, same_digest_is_same },
        paths,
        tenants,
        on_recovered,
        on_rollback,
        missing: _,
        group,
        // Only the member that made a purge looks at what it left, by its own settings.
        proof: _,
        // Those of its own cluster.
        caches: _,
    } = policy;
    let Agreement { timeout: _, at_timeout, absent_left_out, takeover: _, rules } = group;
    let words = [
        ("group.absent", if *absent_left_out { "ignore" } else { "wait" }.to_owned()),
        ("group.key_file", if keyed { "set" } else { "not set" }.to_owned()),
        ("group.policy", at_timeout_in_words(*at_timeout).to_owned()),
        ("purge.on_recovered", recovered(*on_recovered).to_owned()),
        ("purge.on_rollback", rollback(*on_rollback).to_owned()),
        ("purge.paths", paths.words().join(", ")),
        // The program's own, and not to be set: members of two releases with different rules wait for each other (decision 41).
        ("rules", rules.to_string()),
        ("rollout.zero_replicas", if *zero_is_complete { "complete" } else { "wait" }.to_owned()),
        ("tenants.allow", tenants.shared()),
        ("version.same_digest_is_same", same_digest_is_same.to_string()),
    ];
    // Members of releases before there were other kinds than Deployments do not know it.
    let custom: Vec<String> = kinds.iter().filter_map(|kind| kind.custom()).map(declared).collect();
    let all = kinds.len().saturating_sub(custom.len()) == Kind::ALL.len();
    let built_in = || kinds.iter().filter(|kind| kind.custom().is_none()).map(|kind| kind.word());
    let kinds = (!all).then(|| (KINDS, built_in().collect::<Vec<_>>().join(BETWEEN)));
    let custom = (!custom.is_empty()).then(|| (CUSTOM, custom.join(BETWEEN)));
    // Nor something else that counts than images.
    let of = (*of != VersionOf::Images).then(|| ("version.of", of.to_string()));
    words
        .into_iter()
        .chain(kinds)
        .chain(custom)
        .chain(of)
        .map(|(name, value)| (name.to_owned(), shortened(value)))
        .collect()
}

/// A kind that is declared, by its name and a hash of the rest: members that judge it by different rules must not agree.
fn declared(kind: CustomKind) -> String {
    const HASH_CHARS: usize = 8;
    // Taken apart, so that a new part is covered.
    let Declaration { api_version, kind: name, word, template, selector, hash_label, complete, failed } = kind.says();
    let failed = failed.as_ref().map_or("", |failed| failed.as_str());
    let hash = config_hash([
        ("api", api_version.as_str()),
        ("kind", name),
        ("template", template),
        ("selector", selector),
        ("hash_label", hash_label),
        ("complete", complete.as_str()),
        ("failed", failed),
    ]);
    format!("{word}#{}", text::first(&hash, HASH_CHARS))
}

/// A setting that members of rules 1 and 2 compare, and that has no effect any more (decision 51).
const RETIRED: &str = "group.repository_prefixes";

/// In which settings `theirs` differs from `ours`, a sentence each.
pub fn difference(theirs: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) -> Vec<String> {
    let value = |settings: &BTreeMap<String, String>, name: &str| {
        settings.get(name).map_or_else(|| "unknown".to_owned(), |value| format!("{value:?}"))
    };
    let mut names: Vec<&String> = theirs.keys().chain(ours.keys()).collect();
    names.sort();
    names.dedup();
    let counts = |name: &&String| *name != RETIRED;
    let differing = names.into_iter().filter(counts).filter(|name| theirs.get(*name) != ours.get(*name));
    differing.map(|name| format!("{name} is {} there and {} here", value(theirs, name), value(ours, name))).collect()
}

fn at_timeout_in_words(chosen: AtTimeout) -> &'static str {
    match chosen {
        AtTimeout::Wait => "wait",
        AtTimeout::Skip => "skip",
    }
}

fn recovered(chosen: Choice) -> &'static str {
    match chosen {
        Choice::Purge => "purge",
        Choice::Skip => "skip",
    }
}

fn rollback(chosen: OnRollback) -> &'static str {
    match chosen {
        OnRollback::IfServed => "if-served",
        OnRollback::Purge => "purge",
        OnRollback::Close => "close",
    }
}

fn shortened(value: String) -> String {
    let kept = text::first(&value, VALUE_CHARS_MAX);
    if kept == value {
        return value;
    }
    let hash = config_hash([("", value.as_str())]);
    format!("{kept}… (all of it: {hash})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::policy::Proof;
    use crate::testing::declared;
    use std::time::Duration;

    #[test]
    fn a_difference_is_named_with_both_values() {
        let ours = settings(&Policy::default(), false);
        let group = Agreement { at_timeout: AtTimeout::Skip, timeout: Duration::from_secs(1), ..Agreement::default() };
        let theirs = settings(&Policy { group, rollout_timeout: Duration::from_secs(1), ..Policy::default() }, false);
        assert_eq!(difference(&theirs, &ours), ["group.policy is \"skip\" there and \"wait\" here"]);
        assert_eq!(difference(&ours, &ours), Vec::<String>::new());
        let fewer = settings(&Policy { kinds: [Kind::Deployment].into(), ..Policy::default() }, false);
        assert_eq!(difference(&fewer, &ours), ["workloads.kinds is \"deployment\" there and unknown here"]);
        assert!(!ours.contains_key("workloads.kinds"), "a release that does not know it agrees");
        let proof = Proof { enabled: true, ..Proof::default() };
        assert_eq!(settings(&Policy { proof, ..Policy::default() }, false), ours, "only the member that purged looks");
    }

    #[test]
    fn kinds_that_are_declared_are_said_where_there_are_some_and_their_rules_are_compared() {
        let of = |kind| {
            let kinds = Kind::ALL.into_iter().chain([kind]).collect();
            settings(&Policy { kinds, ..Policy::default() }, false)
        };
        let ours = of(declared("settings.example.com"));
        let Kind::Custom(kind) = declared("settings.example.com") else { panic!("it is declared") };
        let Declaration { api_version, kind, word, template, selector, .. } = kind.says();
        let (api_version, kind, word) = (api_version.clone(), kind.clone(), word.clone());
        let (template, selector, hash_label) = (template.clone(), selector.clone(), "other".to_owned());
        let complete = kernel::expression::Expression::parse("self.status.ready").unwrap();
        let other = Declaration { api_version, kind, word, template, selector, hash_label, complete, failed: None };
        let theirs = of(Kind::Custom(CustomKind::declare(other).unwrap()));
        let [said] = <[String; 1]>::try_from(difference(&theirs, &ours)).unwrap();
        assert!(said.starts_with("workloads.custom is \"clonesets.settings.example.com#"), "{said}");
        assert_eq!(ours.keys().filter(|name| name.starts_with("workloads.")).count(), 1, "{ours:?}");
        let without = settings(&Policy::default(), false);
        assert!(!without.keys().any(|name| name.starts_with("workloads.")), "older releases agree");
    }

    #[test]
    fn long_values_that_differ_at_their_end_differ() {
        let of = |end: char| shortened(format!("{}{end}", "x".repeat(300)));
        assert_ne!(of('a'), of('b'));
        assert!(of('a').chars().count() < 300);
    }
}
