//! The custom resource `PromotionFreeze`: its JSON, read part by part. What cannot be read freezes nothing less: a part that is wrong
//! counts as if it were not there, and without it more is selected.
//!
//! The API server has checked most of it by the CRD. It is checked again, because another CRD may serve the kind.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kernel::id::Environment;
use kernel::names::selector::{LabelSelector, Operator};
use kernel::text::{clean, clean_ends};
use kernel::unreadable::Unreadable;
use objects::pipeline::freezes::PromotionFreeze;
use serde::Deserialize;
use serde_json::Value;

use super::metadata::WORDS_BYTES_MAX;

/// The CRD, for `kubectl apply -f`.
pub const CRD: &str = include_str!("../../../../deploy/crds/promotionfreezes.yaml");

/// Most names in one list, and most requirements of a selector.
pub const NAMES_MAX: usize = 100;
/// The longest name of an environment, in bytes.
pub const NAME_BYTES_MAX: usize = 63;

#[derive(Deserialize)]
struct Raw {
    metadata: Named,
    #[serde(default)]
    spec: Value,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// The spec of a PromotionFreeze, as people write it.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the form of the CRD; an object is read part by part")]
pub struct FreezeSpec {
    /// Why, for people: it stands wherever something waits for it.
    #[schemars(length(min = 1, max = 160))]
    reason: String,
    /// From, as 2026-12-20T00:00:00Z; without it since ever.
    #[schemars(extend("format" = "date-time"))]
    from: Option<String>,
    /// Until, not included; without it until this object is deleted.
    #[schemars(extend("format" = "date-time"))]
    until: Option<String>,
    /// The labels of the Pipelines that it is for; without it those with any.
    selector: Option<Selector>,
    /// The namespaces of the Pipelines that it is for; without any all.
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(max = 63)))]
    namespaces: Vec<String>,
    /// The environments that it is for; without any all.
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(max = 63)))]
    environments: Vec<String>,
}

/// A label selector, as in a Deployment.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the form of the CRD")]
pub struct Selector {
    /// Labels with exactly these values.
    #[serde(default)]
    match_labels: std::collections::BTreeMap<String, String>,
    /// Requirements on single keys.
    #[serde(default)]
    #[schemars(length(max = 100))]
    match_expressions: Vec<Requirement>,
}

/// A requirement on one key.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "the form of the CRD")]
pub struct Requirement {
    /// The key of the label.
    #[schemars(length(min = 1, max = 317))]
    key: String,
    /// How its value is compared: In, NotIn, Exists or DoesNotExist.
    #[schemars(regex(pattern = r"^(In|NotIn|Exists|DoesNotExist)$"))]
    operator: String,
    /// With these, for In and NotIn.
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(max = 63)))]
    values: Vec<String>,
}

/// Reads one as the API server has it.
///
/// # Errors
/// When not even its name can be read.
pub fn read(json: &str) -> Result<PromotionFreeze, Unreadable> {
    let Raw { metadata, spec } = serde_json::from_str(json)?;
    let mut faults = Vec::new();
    let reason = match spec.get("reason").and_then(Value::as_str).map(|words| clean(words, WORDS_BYTES_MAX)) {
        Some(words) if !words.is_empty() => words,
        _ => {
            faults.push("spec.reason says nothing".to_owned());
            "it says no reason".to_owned()
        }
    };
    let (mut from, mut until) = (time(&spec, "from", &mut faults), time(&spec, "until", &mut faults));
    if from.zip(until).is_some_and(|(from, until)| until <= from) {
        faults.push("spec.until is not after spec.from, so neither counts".to_owned());
        (from, until) = (None, None);
    }
    let selector = selector(spec.get("selector").unwrap_or(&Value::Null)).unwrap_or_else(|why| {
        faults.push(format!("spec.selector: {why}, so it does not count"));
        LabelSelector::default()
    });
    let namespaces = names(&spec, "namespaces", &mut faults);
    let environments = names(&spec, "environments", &mut faults);
    Ok(PromotionFreeze {
        name: metadata.name,
        reason,
        from,
        until,
        selector,
        namespaces,
        environments: environments.into_iter().map(Environment).collect(),
        fault: (!faults.is_empty()).then(|| clean_ends(&faults.join("; "), 2 * WORDS_BYTES_MAX)),
    })
}

/// One of which only the name is known, or not even that.
pub fn of_everything(name: &str, why: &str) -> PromotionFreeze {
    PromotionFreeze {
        name: if name.is_empty() { "(without a name that can be read)".to_owned() } else { name.to_owned() },
        reason: "it says no reason".to_owned(),
        from: None,
        until: None,
        selector: LabelSelector::default(),
        namespaces: BTreeSet::new(),
        environments: BTreeSet::new(),
        fault: Some(clean_ends(&format!("it cannot be read: {why}"), 2 * WORDS_BYTES_MAX)),
    }
}

fn time(spec: &Value, field: &str, faults: &mut Vec<String>) -> Option<i64> {
    let value = spec.get(field).filter(|value| !value.is_null())?;
    let read = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    if read.is_none() {
        faults.push(format!("spec.{field} is no time such as 2026-12-20T00:00:00Z, so it does not count"));
    }
    read.map(Timestamp::as_second)
}

fn names(spec: &Value, field: &str, faults: &mut Vec<String>) -> BTreeSet<String> {
    let Some(value) = spec.get(field).filter(|value| !value.is_null()) else { return BTreeSet::new() };
    let read: Option<BTreeSet<String>> = value.as_array().filter(|all| all.len() <= NAMES_MAX).and_then(|all| {
        let name =
            |one: &Value| one.as_str().filter(|name| (1..=NAME_BYTES_MAX).contains(&name.len())).map(str::to_owned);
        all.iter().map(name).collect()
    });
    read.unwrap_or_else(|| {
        faults.push(format!("spec.{field} is no list of at most {NAMES_MAX} names, so it does not count"));
        BTreeSet::new()
    })
}

/// As Kubernetes reads one. Without any it is the empty one, which selects everything.
fn selector(value: &Value) -> Result<LabelSelector, String> {
    if value.is_null() {
        return Ok(LabelSelector::default());
    }
    let read: LabelSelector = LabelSelector::deserialize(value).map_err(|error| error.to_string())?;
    if read.match_labels.len() + read.match_expressions.len() > NAMES_MAX {
        return Err(format!("it has more than {NAMES_MAX} requirements"));
    }
    for one in &read.match_expressions {
        let compares = matches!(one.operator, Operator::In | Operator::NotIn);
        if compares == one.values.is_empty() {
            let is = if compares { "has no values" } else { "has values, which its operator does not take" };
            return Err(format!("the requirement on {} {is}", one.key));
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn freeze(spec: &Value) -> PromotionFreeze {
        read(&json!({"metadata": {"name": "sale"}, "spec": spec}).to_string()).unwrap()
    }

    #[test]
    fn what_is_written_well_is_read() {
        let read = freeze(&json!({
            "reason": "the sale",
            "from": "2026-11-27T00:00:00+01:00",
            "until": "2026-12-01T08:00:00Z",
            "selector": {"matchLabels": {"tier": "shop"}, "matchExpressions": [{"key": "team", "operator": "In", "values": ["web"]}]},
            "namespaces": ["shop", "pay"],
            "environments": ["prod"],
        }));
        assert_eq!(read.fault, None);
        assert_eq!((read.name.as_str(), read.reason.as_str()), ("sale", "the sale"));
        assert_eq!((read.from, read.until), (Some(1_795_734_000), Some(1_796_112_000)));
        assert_eq!(read.selector.to_string(), "tier=shop,team in (web)");
        assert_eq!((read.namespaces.len(), read.environments), (2, [Environment("prod".to_owned())].into()));
        let whole = freeze(&json!({"reason": "stop"}));
        assert_eq!((whole.fault, whole.from, whole.until), (None, None, None));
        assert!(whole.selector.is_empty());
    }

    #[test]
    fn the_examples_of_the_documents_are_read_whole() {
        let page = include_str!("../../../../docs/pipeline.md");
        let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let examples: Vec<Value> = blocks
            .filter_map(|block| serde_saphyr::from_str::<Value>(block).ok())
            .filter(|object| object["kind"] == "PromotionFreeze")
            .collect();
        assert_eq!(examples.len(), 1);
        let crd: Value = serde_saphyr::from_str(CRD).unwrap();
        let fields = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        for example in examples {
            let read = read(&example.to_string()).unwrap();
            assert_eq!((read.name.as_str(), read.fault), ("black-friday", None));
            assert!(read.from < read.until && !read.environments.is_empty() && !read.selector.is_empty());
            for field in example["spec"].as_object().unwrap().keys() {
                assert!(fields[field].is_object(), "{field}");
            }
        }
        let in_words = [r#"{"reason": "4711"}"#];
        assert!(
            in_words
                .iter()
                .all(|spec| page.contains(spec) && freeze(&serde_json::from_str(spec).unwrap()).fault.is_none())
        );
    }

    #[test]
    fn what_is_written_badly_freezes_what_its_readable_parts_select() {
        let all =
            freeze(&json!({"reason": "stop", "selector": "tier=shop", "namespaces": ["shop"], "until": "tomorrow"}));
        assert!(all.selector.is_empty() && all.until.is_none());
        assert_eq!(all.namespaces, ["shop".to_owned()].into());
        let fault = all.fault.unwrap();
        for part in ["spec.until is no time", "spec.selector: "] {
            assert!(fault.contains(part), "{fault}");
        }
        let turned = freeze(&json!({"reason": "a", "from": "2026-12-01T00:00:00Z", "until": "2026-11-01T00:00:00Z"}));
        assert_eq!((turned.from, turned.until, turned.fault.is_some()), (None, None, true));
        let none =
            freeze(&json!({"reason": "a", "selector": {"matchExpressions": [{"key": "team", "operator": "In"}]}}));
        assert_eq!((none.selector.is_empty(), none.fault.is_some()), (true, true), "it would select nothing");
        for spec in [json!({}), json!({"reason": 7}), json!({"reason": "a", "environments": "prod"}), Value::Null] {
            let read = freeze(&spec);
            assert!(read.fault.is_some() && read.environments.is_empty(), "{spec}");
        }
        let many: Vec<String> = (0..=NAMES_MAX).map(|one| one.to_string()).collect();
        let many = freeze(&json!({"reason": "a", "namespaces": many}));
        assert_eq!((many.namespaces.len(), many.fault.is_some()), (0, true));
        assert!(read("{}").is_err());
    }
}
