//! Which selectors of Services may match pods of a workload: by the labels of its template, and by those that its kind's controller adds.
//!
//! Not for the pods that there are: the labels of those are read, and compared as they are.

use crate::{GENERATION_LABEL, template_label};
use kernel::id::{Kind, WorkloadId};
use kernel::names::selector::Labels;

/// <https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#pod-name-label>
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";

/// <https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#pod-index-label>
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The labels that pods of a workload have or may have.
#[derive(Clone, Copy, Debug)]
pub struct PodLabels<'a> {
    pub of: &'a WorkloadId,
    pub template: &'a Labels,
}

impl PodLabels<'_> {
    /// Whether a Service with this selector may lead to a pod of the workload. One without a selector leads to none by itself. How many
    /// pods there are is not asked: the numbers of a StatefulSet's pods may begin anywhere.
    #[must_use]
    pub fn may_match(self, selector: &Labels) -> bool {
        let is_met =
            |(key, value): (&String, &String)| self.template.get(key) == Some(value) || self.may_be_added(key, value);
        !selector.is_empty() && selector.iter().all(is_met)
    }

    /// Whether the controller may give a pod this label.
    fn may_be_added(self, key: &str, value: &str) -> bool {
        let kind = self.of.kind;
        match key {
            POD_NAME if kind == Kind::StatefulSet => {
                let number = value.strip_prefix(self.of.name.as_str()).and_then(|rest| rest.strip_prefix('-'));
                number.is_some_and(is_number)
            }
            POD_INDEX => kind == Kind::StatefulSet && is_number(value),
            GENERATION_LABEL => kind == Kind::DaemonSet && is_number(value),
            _ => key == template_label(kind),
        }
    }
}

/// Whether it is a number as Kubernetes writes one.
fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|number| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(kind: Kind, selector: &[(&str, &str)]) -> bool {
        let labels = |pairs: &[(&str, &str)]| -> Labels {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let of = WorkloadId::new(kind, "shop", "db");
        PodLabels { of: &of, template: &labels(&[("app", "db")]) }.may_match(&labels(selector))
    }

    #[test]
    fn a_service_may_select_one_pod_of_a_stateful_set() {
        for (label, value, expected) in [
            (POD_NAME, "db-0", true),
            (POD_NAME, "db-12", true),
            (POD_NAME, "db", false),
            (POD_NAME, "db-", false),
            (POD_NAME, "db-01", false),
            (POD_NAME, "db-x", false),
            (POD_NAME, "other-0", false),
            (POD_NAME, "db-blue-0", false),
            (POD_INDEX, "3", true),
            (POD_INDEX, "-1", false),
            (POD_INDEX, "+1", false),
            (POD_INDEX, "", false),
        ] {
            let selectors: [&[(&str, &str)]; 3] =
                [&[(label, value)], &[("app", "db"), (label, value)], &[("app", "web"), (label, value)]];
            let met = selectors.map(|selector| may(Kind::StatefulSet, selector));
            assert_eq!(met, [expected, expected, false], "{label}={value}");
            for other in Kind::ALL.into_iter().filter(|kind| *kind != Kind::StatefulSet) {
                assert!(!may(other, &[(label, value)]), "{other} {label}={value}");
            }
        }
    }

    #[test]
    fn any_value_of_the_label_of_the_templates_is_possible_and_of_no_other_label() {
        for kind in Kind::ALL.map(Kind::identity) {
            assert!(may(kind, &[("app", "db"), (template_label(kind), "any")]), "{kind}");
            assert!(may(kind, &[("app", "db")]), "{kind}");
            for selector in [&[][..], &[("app", "web")], &[("app", "db"), ("tier", "any")]] {
                assert!(!may(kind, selector), "{kind} {selector:?}");
            }
        }
        assert!(!may(Kind::Deployment, &[("controller-revision-hash", "any")]));
        assert!(may(Kind::DaemonSet, &[(GENERATION_LABEL, "3")]));
        assert!(!may(Kind::DaemonSet, &[(GENERATION_LABEL, "new")]));
    }
}
