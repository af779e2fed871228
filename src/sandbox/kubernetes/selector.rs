//! Label and field selectors of list and watch requests.
//!
//! Grammar: `k8s.io/apimachinery/pkg/labels` (1.33) without `<` and `>`, which no client of ours uses and which are
//! refused. Not for the selectors inside objects: the controller finds its children by ownership.

use std::collections::{BTreeMap, BTreeSet};

use super::failure::Failure;
use super::resource::Kind;

/// What a list or watch is narrowed to. The default matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<Requirement>,
    /// (field, wanted equal?, value)
    fields: Vec<(Field, bool, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
    Exists(String),
    Absent(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
}

impl Selector {
    /// Parses the two query parameters; empty ones match everything.
    ///
    /// # Errors
    /// 400 for a selector that is malformed or asks for a field the server has no index for.
    pub fn parse(kind: Kind, labels: &str, fields: &str) -> Result<Selector, Failure> {
        let mut selector = Selector::default();
        for term in terms(labels) {
            let requirement = requirement(term).ok_or_else(|| {
                Failure::bad_request(format!(
                    "unable to parse requirement: found '{term}' in label selector '{labels}'"
                ))
            })?;
            selector.labels.push(requirement);
        }
        for term in terms(fields) {
            let (key, equal, value) = comparison(term).ok_or_else(|| {
                Failure::bad_request(format!("invalid selector: '{fields}'; can't understand '{term}'"))
            })?;
            let field = match key {
                "metadata.name" => Field::Name,
                "metadata.namespace" if kind.describe().namespaced => Field::Namespace,
                _ => return Err(unsupported_field(kind, key)),
            };
            selector.fields.push((field, equal, value.to_owned()));
        }
        Ok(selector)
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object with this name, namespace and these labels is selected.
    pub fn matches(&self, namespace: &str, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|requirement| requirement.holds(labels))
            && self.fields.iter().all(|(field, equal, value)| {
                let actual = match field {
                    Field::Name => name,
                    Field::Namespace => namespace,
                };
                (actual == value) == *equal
            })
    }
}

impl Requirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Requirement::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            Requirement::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
            Requirement::Exists(key) => labels.contains_key(key),
            Requirement::Absent(key) => !labels.contains_key(key),
        }
    }
}

/// Some kinds of the core group have a list of their fields of their own (`pkg/apis/core/v1/conversion.go`), the others the common one
/// (`DefaultMetaV1FieldSelectorConversion`); each has its own words. The longer text of `kubectl` is its own.
fn unsupported_field(kind: Kind, key: &str) -> Failure {
    Failure::bad_request(match kind {
        Kind::Pod | Kind::Namespace | Kind::Service | Kind::Event => format!("field label not supported: {key}"),
        _ => format!("\"{key}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""),
    })
}

/// Splits at the commas that are not inside parentheses.
pub fn terms(selector: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, letter) in selector.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                terms.extend(selector.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.extend(selector.get(start..));
    terms.into_iter().map(str::trim).filter(|term| !term.is_empty()).collect()
}

/// `key=value`, `key==value` or `key!=value`; true for the first two.
pub fn comparison(term: &str) -> Option<(&str, bool, &str)> {
    let (key, equal, value) = if let Some((key, value)) = term.split_once("!=") {
        (key, false, value)
    } else if let Some((key, value)) = term.split_once("==") {
        (key, true, value)
    } else {
        let (key, value) = term.split_once('=')?;
        (key, true, value)
    };
    Some((key.trim(), equal, value.trim()))
}

fn requirement(term: &str) -> Option<Requirement> {
    if let Some(key) = term.strip_prefix('!').filter(|_| !term.contains('=')) {
        return Some(Requirement::Absent(label_key(key.trim())?));
    }
    if let Some(list) = term.strip_suffix(')') {
        let (head, values) = list.split_once('(')?;
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace)?;
        let key = label_key(key.trim())?;
        let values = values.split(',').map(|value| label_value(value.trim())).collect::<Option<_>>()?;
        return match operator {
            "in" => Some(Requirement::In(key, values)),
            "notin" => Some(Requirement::NotIn(key, values)),
            _ => None,
        };
    }
    match comparison(term) {
        Some((key, true, value)) => Some(Requirement::In(label_key(key)?, BTreeSet::from([label_value(value)?]))),
        Some((key, false, value)) => Some(Requirement::NotIn(label_key(key)?, BTreeSet::from([label_value(value)?]))),
        None => Some(Requirement::Exists(label_key(term)?)),
    }
}

/// A label key: an optional DNS prefix and `/`, then a name.
fn label_key(key: &str) -> Option<String> {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    (!name.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))).then(|| key.to_owned())
}

/// A label value: at most 63 characters, which is the limit Kubernetes has for labels; may be empty.
fn label_value(value: &str) -> Option<String> {
    let valid = value.len() <= 63 && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    valid.then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(labels: &str, actual: &[(&str, &str)]) -> bool {
        let actual = actual.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Selector::parse(Kind::Pod, labels, "").unwrap().matches("shop", "web", &actual)
    }

    #[test]
    fn every_operator_of_the_label_grammar_selects_what_it_says() {
        let web = [("app", "web"), ("tier", "front")];
        for yes in ["", "app=web", "app==web", "app!=api", "app in (api, web)", "app notin (api)", "tier", "!zone"] {
            assert!(selects(yes, &web), "{yes}");
        }
        for no in ["app=api", "app!=web", "app in (api)", "app notin (web,api)", "zone", "!tier", "app=web,zone"] {
            assert!(!selects(no, &web), "{no}");
        }
        assert!(selects("zone!=a,zone notin (b)", &web), "an absent label is not equal to anything");
        assert!(selects("app=web, tier in (front,back) ,!zone", &web));
    }

    #[test]
    fn fields_without_an_index_and_broken_terms_are_refused() {
        for bad in ["app in web", "app>3", "=x", "a b"] {
            assert_eq!(Selector::parse(Kind::Pod, bad, "").unwrap_err().code, 400, "{bad}");
        }
        let failure = Selector::parse(Kind::Deployment, "", "spec.replicas=1").unwrap_err();
        assert_eq!((failure.code, failure.reason), (400, "BadRequest"));
        let known = r#""spec.replicas" is not a known field selector: only "metadata.name", "metadata.namespace""#;
        assert_eq!(failure.message, known);
        let failure = Selector::parse(Kind::Pod, "", "spec.image=x").unwrap_err();
        assert_eq!(failure.message, "field label not supported: spec.image");
        assert_eq!(Selector::parse(Kind::Namespace, "", "metadata.namespace=x").unwrap_err().code, 400);
    }

    #[test]
    fn fields_compare_name_and_namespace() {
        let selector = Selector::parse(Kind::Pod, "", "metadata.name=web,metadata.namespace!=other").unwrap();
        assert!(selector.matches("shop", "web", &BTreeMap::new()));
        assert!(!selector.matches("shop", "api", &BTreeMap::new()));
        assert!(!selector.matches("other", "web", &BTreeMap::new()));
    }
}
