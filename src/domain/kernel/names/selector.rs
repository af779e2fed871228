//! Label selectors: which objects a Service, a workload or a query means, decided the way Kubernetes decides it.
//!
//! Not for: field selectors, or the selectors of NetworkPolicy and affinity, whose absent form means something else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// Labels of an object: key to value.
pub type Labels = BTreeMap<String, String>;

/// A label selector (`matchLabels` and `matchExpressions`): every part must hold. The empty selector matches
/// everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must be there with exactly this value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: Labels,
    /// Requirements on single keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Requirement>,
}

/// One requirement on one key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Requirement {
    pub key: String,
    /// How the label's value is compared.
    pub operator: Operator,
    /// The values to compare with; unused by [`Operator::Exists`] and [`Operator::DoesNotExist`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub values: BTreeSet<String>,
}

/// How a requirement compares (the four of `metav1.LabelSelectorOperator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// The label is there and its value is one of the values.
    In,
    /// The label is absent, or its value is none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl LabelSelector {
    /// Whether an object with these labels is selected.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        is_subset(&self.match_labels, labels)
            && self.match_expressions.iter().all(|requirement| requirement.holds(labels))
    }

    /// Whether the selector has no requirement at all, and so matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }
}

/// Whether every pair of `wanted` is in `labels`.
#[must_use]
pub fn is_subset(wanted: &Labels, labels: &Labels) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

impl Requirement {
    fn holds(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// The form of the `labelSelector` query parameter: `app=web,tier in (a,b),!canary`. Keys and values of objects the API
/// server accepted need no escaping in it.
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#list-and-watch-filtering>
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (key, value) in &self.match_labels {
            write!(f, "{separator}{key}={value}")?;
            separator = ",";
        }
        for requirement in &self.match_expressions {
            write!(f, "{separator}{requirement}")?;
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = || self.values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        match self.operator {
            Operator::In => write!(f, "{} in ({})", self.key, values()),
            Operator::NotIn => write!(f, "{} notin ({})", self.key, values()),
            Operator::Exists => f.write_str(&self.key),
            Operator::DoesNotExist => write!(f, "!{}", self.key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn selector(json: serde_json::Value) -> LabelSelector {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_empty_selector_matches_everything() {
        assert!(LabelSelector::default().matches(&labels(&[])));
        assert!(LabelSelector::default().matches(&labels(&[("app", "web")])));
    }

    #[test]
    fn every_label_of_the_selector_must_be_there() {
        let match_labels = labels(&[("app", "web"), ("tier", "front")]);
        let selector = LabelSelector { match_labels, ..LabelSelector::default() };
        assert!(selector.matches(&labels(&[("app", "web"), ("tier", "front"), ("more", "x")])));
        assert!(!selector.matches(&labels(&[("app", "web")])));
        assert!(!selector.matches(&labels(&[("app", "web"), ("tier", "back")])));
    }

    #[test]
    fn each_operator_decides_as_kubernetes_does_when_the_label_is_absent() {
        for (operator, values, absent, equal, different) in [
            ("In", serde_json::json!(["x"]), false, true, false),
            ("NotIn", serde_json::json!(["x"]), true, false, true),
            ("Exists", serde_json::json!([]), false, true, true),
            ("DoesNotExist", serde_json::json!([]), true, false, false),
        ] {
            let selector = selector(serde_json::json!({
                "matchExpressions": [{"key": "k", "operator": operator, "values": values}]
            }));
            assert_eq!(selector.matches(&labels(&[])), absent, "{operator} absent");
            assert_eq!(selector.matches(&labels(&[("k", "x")])), equal, "{operator} equal");
            assert_eq!(selector.matches(&labels(&[("k", "y")])), different, "{operator} different");
        }
    }

    #[test]
    fn the_query_form_is_the_one_the_api_server_reads() {
        let selector = selector(serde_json::json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "track", "operator": "NotIn", "values": ["canary"]},
                {"key": "team", "operator": "Exists"},
                {"key": "old", "operator": "DoesNotExist"},
            ]
        }));
        assert_eq!(selector.to_string(), "app=web,tier in (a,b),track notin (canary),team,!old");
    }
}
