//! The four figures of DORA, of each environment of a Pipeline and of each Repo. What they mean is `objects::history::figures`' to say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use objects::history::figures::{Figure, What};
use objects::ports::Owner;

/// Environments and Repos that have series of their own: a Pipeline may have twenty environments, and most have three or four. At 24 lines
/// each these are 48,000 lines, some 7 MB of text for each scrape. Those after it share one.
const PLACES_MAX: usize = 2_000;

/// Those of one namespace: fifty Pipelines with four environments.
const NAMESPACE_PLACES_MAX: usize = 200;

/// From five minutes to thirty days: DORA asks for less than an hour, a day, a week and a month.
const SECONDS_BUCKETS: [f64; 8] = [300.0, 3_600.0, 14_400.0, 86_400.0, 259_200.0, 604_800.0, 1_209_600.0, 2_592_000.0];

/// An environment of a Pipeline, or a Repo, whose environment is empty. Those that have no series of their own: all empty but the kind.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct ByPlace {
    kind: &'static str,
    namespace: String,
    name: String,
    environment: String,
}

/// What came of deployments.
pub struct Figures {
    /// By namespace.
    places: Mutex<BTreeMap<String, BTreeSet<ByPlace>>>,
    deployments: Family<ByPlace, Counter>,
    failed: Family<ByPlace, Counter>,
    lead: Family<ByPlace, Histogram, fn() -> Histogram>,
    recovery: Family<ByPlace, Histogram, fn() -> Histogram>,
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS_BUCKETS)
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            places: Mutex::default(),
            deployments: Family::default(),
            failed: Family::default(),
            lead: Family::new_with_constructor(seconds as fn() -> Histogram),
            recovery: Family::new_with_constructor(seconds as fn() -> Histogram),
        }
    }
}

impl Figures {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "deployments",
            "Deployments of another revision, also those that failed",
            self.deployments.clone(),
        );
        registry.register("deployments_failed", "Deployments that did not hold", self.failed.clone());
        let words = "From the first environment, or the sight of a commit, to where it is deployed";
        registry.register("change_lead_time_seconds", words, self.lead.clone());
        let words = "From the failure of a deployment to when its environment is well again";
        registry.register("deployment_recovery_seconds", words, self.recovery.clone());
    }

    /// These were added to a history.
    pub fn count(&self, of: &Owner, figures: &[Figure]) {
        for Figure { environment, what } in figures {
            let place = self.place(of, environment.as_deref().unwrap_or_default());
            match what {
                What::Deployed => drop(self.deployments.get_or_create(&place).inc()),
                What::Failed => drop(self.failed.get_or_create(&place).inc()),
                What::LeadTime(ms) => self.lead.get_or_create(&place).observe(in_seconds(*ms)),
                What::Recovered(ms) => self.recovery.get_or_create(&place).observe(in_seconds(*ms)),
            }
        }
    }

    /// The series of an environment. A counter that is new begins at 0 with its place, so that a rate of failures has both its parts.
    fn place(&self, of: &Owner, environment: &str) -> ByPlace {
        let Owner { kind, namespace, name, .. } = of;
        let own =
            ByPlace { kind, namespace: namespace.clone(), name: name.clone(), environment: environment.to_owned() };
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let count: usize = places.values().map(BTreeSet::len).sum();
        let of_namespace = places.entry(namespace.clone()).or_default();
        if of_namespace.contains(&own) {
            return own;
        }
        let has_room = count < PLACES_MAX && of_namespace.len() < NAMESPACE_PLACES_MAX;
        let place = if has_room { own } else { ByPlace { kind, ..ByPlace::default() } };
        if has_room {
            of_namespace.insert(place.clone());
        }
        drop(self.deployments.get_or_create(&place));
        drop(self.failed.get_or_create(&place));
        place
    }
}

fn in_seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode_registry;

    fn owner(name: &str) -> Owner {
        Owner {
            group: "allclear.dev".to_owned(),
            kind: "Pipeline",
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: "1".to_owned(),
        }
    }

    fn in_prod(what: What) -> Figure {
        Figure { environment: Some("prod".to_owned()), what }
    }

    fn text(figures: &Figures) -> String {
        let mut registry = Registry::with_prefix("allclear");
        figures.register(&mut registry);
        let mut text = String::new();
        encode_registry(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn each_environment_has_its_own_series_and_a_failure_begins_at_nothing() {
        let figures = Figures::default();
        figures.count(&owner("web"), &[in_prod(What::Deployed), in_prod(What::LeadTime(7_200_000))]);
        let repo = Owner { kind: "Repo", ..owner("infra") };
        figures.count(&repo, &[Figure { environment: None, what: What::Failed }]);
        let text = text(&figures);
        let web = r#"kind="Pipeline",namespace="shop",name="web",environment="prod""#;
        let infra = r#"kind="Repo",namespace="shop",name="infra",environment="""#;
        for line in [
            format!("allclear_deployments_total{{{web}}} 1"),
            format!("allclear_deployments_failed_total{{{web}}} 0"),
            format!("allclear_deployments_failed_total{{{infra}}} 1"),
            format!("allclear_change_lead_time_seconds_sum{{{web}}} 7200.0"),
            format!("allclear_change_lead_time_seconds_bucket{{le=\"3600.0\",{web}}} 0"),
            format!("allclear_change_lead_time_seconds_bucket{{le=\"14400.0\",{web}}} 1"),
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{line} is not in {text}");
        }
    }

    #[test]
    fn series_are_bounded_for_each_namespace_and_for_all_and_nothing_is_left_out() {
        let figures = Figures::default();
        let in_namespace = |namespace: usize, number: usize| Owner {
            namespace: format!("team-{namespace}"),
            ..owner(&format!("web-{number}"))
        };
        // The first has more than its share; the eleventh full one has none left.
        for number in 0..NAMESPACE_PLACES_MAX + 5 {
            figures.count(&in_namespace(0, number), &[in_prod(What::Deployed)]);
        }
        for namespace in 1..11 {
            for number in 0..NAMESPACE_PLACES_MAX {
                figures.count(&in_namespace(namespace, number), &[in_prod(What::Deployed)]);
            }
        }
        figures.count(&in_namespace(0, 3), &[in_prod(What::Deployed)]);
        let text = text(&figures);
        let counted = text.lines().filter(|line| line.starts_with("allclear_deployments_total{"));
        assert_eq!(counted.count(), PLACES_MAX + 1);
        for line in [
            r#"allclear_deployments_total{kind="Pipeline",namespace="",name="",environment=""} 205"#,
            r#"allclear_deployments_total{kind="Pipeline",namespace="team-0",name="web-3",environment="prod"} 2"#,
            r#"allclear_deployments_total{kind="Pipeline",namespace="team-9",name="web-199",environment="prod"} 1"#,
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{line}");
        }
    }
}
