//! `workloads.custom`: what is wrong is said with its entry and its cure, and what is right is declared.

use expect_test::expect;

use super::*;
use kernel::id::custom::Declaration;
use kernel::id::{CustomKind, Kind};

const CLONE_SET: &str = r#"
[[workloads.custom]]
api = "config.kruise.io/v1alpha1"
kind = "CloneSet"
template = "/spec/template"
selector = "/spec/selector"
hash_label = "controller-revision-hash"
complete = "self.status.updatedReadyReplicas == self.spec.replicas && self.status.replicas == self.spec.replicas"
"#;

fn file(text: &str) -> Vec<String> {
    problems(&[("c.toml", text)], &[])
}

#[test]
fn a_kind_is_declared_and_followed_beside_those_that_are_built_in() {
    let config = load_with(&[("c.toml", CLONE_SET)], &[], &[]).unwrap().config;
    let kind = CustomKind::of_word("clonesets.config.kruise.io").unwrap();
    assert!(config.kinds.contains(&Kind::Custom(kind)) && config.kinds.len() == Kind::ALL.len() + 1);
    let Declaration { api_version, kind: name, failed, hash_label, .. } = kind.says();
    assert_eq!((api_version.as_str(), name.as_str(), failed), ("config.kruise.io/v1alpha1", "CloneSet", &None));
    assert_eq!((hash_label.as_str(), kind.place().2), ("controller-revision-hash", "clonesets"));
    assert_eq!(config.policy().kinds, config.kinds);
    let without = load_with(&[], &[], &[]).unwrap().config;
    assert!(without.kinds.iter().all(|kind| kind.custom().is_none()));
    let more = format!("{CLONE_SET}failed = \"self.status.phase == 'Failed'\"\nplural = \"clones\"\n");
    load_with(&[("c.toml", &more)], &[], &[]).unwrap();
    assert!(CustomKind::of_word("clones.config.kruise.io").unwrap().says().failed.is_some());
}

#[test]
fn each_mistake_is_named_with_its_cure() {
    let wrong = r#"
[[workloads.custom]]
api = "apps.kruise.io"
kind = "cloneSet"
template = "spec/template"
selector = "/spec/~selector"
hash_label = "-hash"
complete = "self.spec.replicas == 3"
failed = "self.status.a.map(x, x) == []"
[[workloads.custom]]
api = "apps/v1"
kind = "Deployment"
template = "/status/template"
selector = 3
hash_label = "hash"
complete = "self.status.ready =="
colour = "red"
[[workloads.custom]]
apl = "apps.kruise.io/v1alpha1"
kind = "CloneSet"
"#;
    expect![[r#"
        c.toml:2:1: workloads.custom: entry 1: api is no group with a version; fix: write it as apiVersion has it, such as apps.kruise.io/v1alpha1
        c.toml:2:1: workloads.custom: entry 1: complete does not ask the status; fix: compare a field of self.status, which its controller writes
        c.toml:2:1: workloads.custom: entry 1: failed makes a list or a map, by map() or filter(); fix: write CEL over self, such as self.status.updatedReadyReplicas == self.spec.replicas
        c.toml:2:1: workloads.custom: entry 1: hash_label is no key of a label; fix: write one such as controller-revision-hash
        c.toml:2:1: workloads.custom: entry 1: kind is no kind; fix: write it as objects do, such as CloneSet
        c.toml:2:1: workloads.custom: entry 1: selector is no JSON pointer into that part of an object; fix: write the names on the way with a slash before each, beginning with /spec/ or /status/
        c.toml:2:1: workloads.custom: entry 1: template is no JSON pointer into that part of an object; fix: write the names on the way with a slash before each, beginning with /spec/
        c.toml:2:1: workloads.custom: entry 2: Deployment is built in; fix: leave the entry out; workloads.kinds switches it on and off
        c.toml:2:1: workloads.custom: entry 2: colour is not a key; fix: remove it, or use api, kind, plural, template, selector, hash_label, complete or failed
        c.toml:2:1: workloads.custom: entry 2: complete is no CEL expression: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}; fix: write CEL over self, such as self.status.updatedReadyReplicas == self.spec.replicas
        c.toml:2:1: workloads.custom: entry 2: selector is not a text in quotes; fix: write selector = "/spec/selector"
        c.toml:2:1: workloads.custom: entry 2: template is no JSON pointer into that part of an object; fix: write the names on the way with a slash before each, beginning with /spec/
        c.toml:2:1: workloads.custom: entry 3: apl is not a key; fix: did you mean api?
        c.toml:2:1: workloads.custom: entry 3: has no complete; fix: add complete = "self.status.updatedReadyReplicas == self.spec.replicas", or what it is for this kind
        c.toml:2:1: workloads.custom: entry 3: has no hash_label; fix: add hash_label = "controller-revision-hash", or what it is for this kind
        c.toml:2:1: workloads.custom: entry 3: has no selector; fix: add selector = "/spec/selector", or what it is for this kind
        c.toml:2:1: workloads.custom: entry 3: has no template; fix: add template = "/spec/template", or what it is for this kind
    "#]].assert_eq(&lines(file(wrong)));
}

#[test]
fn no_kind_is_declared_twice_and_no_name_is_the_beginning_of_another() {
    let twice = file(&format!("{CLONE_SET}{CLONE_SET}"));
    assert!(
        twice.len() == 1 && twice[0].contains("entry 2: clonesets.config.kruise.io is declared twice"),
        "{twice:?}"
    );
    let longer = CLONE_SET.replace("config.kruise.io/", "config.kruise.io.more/");
    let alike = file(&format!("{CLONE_SET}{longer}"));
    assert!(alike.len() == 1 && alike[0].contains("begin alike"), "{alike:?}");
    for plural in ["moved", "deployment"] {
        let found = file(&format!("{CLONE_SET}plural = \"{plural}\"\n"));
        assert!(found.len() == 1 && found[0].contains("means something else"), "{found:?}");
    }
    let many = file(&CLONE_SET.repeat(9));
    assert!(many.len() == 1 && many[0].contains("has 9 entries; fix: give at most 8"), "{many:?}");
    let named = file("[workloads]\nkinds = [\"deployment\", \"clonesets.config.kruise.io\"]\n");
    assert!(named.len() == 1 && named[0].contains("declare others in workloads.custom"), "{named:?}");
}
