//! A kind that the operator declares: complete and failed by what its expressions say, behind a floor that none of them lowers.
//!
//! Not for the pods of earlier templates: the barrier finds them by the declared label.

use crate::object::{Object, repeated};
use crate::reported::{GivenUp, Replicas, Says};
use crate::{Newest, Own};
use kernel::expression::Expression;
use kernel::id::CustomKind;
use kernel::unreadable::Unreadable;

/// Why nothing can be said.
const NO_OBSERVED_GENERATION: &str =
    "its status has no observedGeneration, so nobody can tell whether it is about the newest spec";

pub(super) fn read(kind: CustomKind, object: Object<'_>) -> Own {
    Own {
        replicas: counted(object),
        says: says(kind, object).unwrap_or_else(|why| Says::Held(format!("workloads.custom cannot judge it: {why}"))),
        refused: None,
        starting: false,
        deadline: None,
        newest: Newest::OfItsVersion,
        stable: None,
    }
}

/// What its controller says that it has acted on. One that never says so is held, and not waited for as one that lags.
pub(super) fn observed_generation(object: Object<'_>, generation: i64) -> Result<Option<i64>, Unreadable> {
    let observed = object.observed_generation()?;
    Ok(observed.or_else(|| object.at("/status").map(|_| generation)))
}

fn says(kind: CustomKind, object: Object<'_>) -> Result<Says, Unreadable> {
    if object.at("/status").is_none() {
        return Ok(Says::Unmet("its controller has said nothing of it yet".to_owned()));
    }
    if object.observed_generation()?.is_none() {
        return Ok(Says::Held(NO_OBSERVED_GENERATION.to_owned()));
    }
    let declared = kind.says();
    let judged = |expression: &Expression| {
        let why = |why| Unreadable::because(format!("{}: {why}", repeated(expression.as_str())));
        expression.holds(object.0).map_err(why)
    };
    if let Some(failed) = &declared.failed
        && judged(failed)?
    {
        return Ok(Says::GivenUp(GivenUp::Declared(repeated(failed.as_str()))));
    }
    let complete = &declared.complete;
    Ok(if judged(complete)? { Says::Met } else { Says::Unmet(format!("not yet: {}", repeated(complete.as_str()))) })
}

/// The counts that most kinds have, for people: nothing is judged by them but whether pods are wanted at all.
fn counted(object: Object<'_>) -> Replicas {
    let count = |at: &str| object.count(at).unwrap_or_default();
    let desired = "/spec/replicas";
    Replicas {
        // One that says nothing of it may have pods.
        desired: if object.at(desired).is_some() { object.count(desired).unwrap_or(1) } else { 1 },
        total: count("/status/replicas"),
        updated: count("/status/updatedReplicas"),
        ready: count("/status/readyReplicas"),
        available: count("/status/availableReplicas"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reported::{Standing, Wait};
    use kernel::id::Kind;
    use kernel::id::custom::Declaration;
    use serde_json::{Value, json};

    fn declared(group: &str, complete: &str, failed: Option<&str>) -> Kind {
        let expression = |text| Expression::parse(text).unwrap();
        let declaration = Declaration {
            api_version: format!("{group}/v1"),
            kind: "CloneSet".into(),
            word: format!("clonesets.{group}"),
            template: "/spec/template".into(),
            selector: "/spec/selector".into(),
            hash_label: "hash".into(),
            complete: expression(complete),
            failed: failed.map(expression),
        };
        Kind::Custom(CustomKind::declare(declaration).unwrap())
    }

    fn object(status: Value) -> Value {
        json!({"metadata": {"name": "web", "generation": 4}, "spec": {"replicas": 3}, "status": status})
    }

    /// How it stands, in words; `!` after what stops the clock.
    fn words(kind: Kind, object: &Value) -> String {
        let read = match crate::read(kind, Object(object)) {
            Ok(read) => read,
            Err(why) => return format!("unreadable: {why}"),
        };
        match read.reported().standing(false) {
            Standing::Complete => "complete".to_owned(),
            Standing::Waiting(wait) if wait.counts() => wait.to_string(),
            Standing::Waiting(wait) => format!("{wait}!"),
            Standing::GivenUp(why) => why.to_string(),
        }
    }

    #[test]
    fn it_is_complete_where_its_expression_holds_and_the_status_is_about_the_newest_spec() {
        const COMPLETE: &str = "self.status.updatedReadyReplicas == self.spec.replicas && self.status.replicas == 3";
        let kind = declared("complete.example.com", COMPLETE, Some("self.status.phase == 'Failed'"));
        let says = |status: Value| words(kind, &object(status));
        let good = json!({"observedGeneration": 4, "updatedReadyReplicas": 3, "replicas": 3, "phase": "Up", "availableReplicas": 0});
        assert_eq!(says(good.clone()), "complete", "other counts are not judged");
        let with = |name: &str, value: Value| {
            let mut status = good.clone();
            status[name] = value;
            says(status)
        };
        assert_eq!(with("updatedReadyReplicas", json!(2)), format!("not yet: {COMPLETE}"));
        assert_eq!(with("observedGeneration", json!(3)), "its controller has not acted on generation 4 yet");
        assert_eq!(with("observedGeneration", json!("4")), "complete", "some write it as a text");
        assert_eq!(with("phase", json!("Failed")), "workloads.custom calls it failed: self.status.phase == 'Failed'");
        let no = "workloads.custom cannot judge it: ";
        assert_eq!(with("replicas", json!(null)), format!("{no}{COMPLETE}: there is no replicas!"));
        assert_eq!(with("phase", json!(null)), format!("{no}self.status.phase == 'Failed': there is no phase!"));
        assert_eq!(with("observedGeneration", json!(null)), format!("{NO_OBSERVED_GENERATION}!"));
        assert_eq!(with("observedGeneration", json!("four")).split(": ").next(), Some("unreadable"));
        assert_eq!(says(json!(null)), "its controller has not acted on generation 4 yet");
        let mut zero = object(good);
        zero["spec"]["replicas"] = json!(0);
        assert_eq!(words(kind, &zero), "the workload is scaled to zero!");
        zero["metadata"]["deletionTimestamp"] = json!("t");
        assert_eq!(words(kind, &zero), Wait::Deleting.to_string());
    }

    #[test]
    fn at_first_sight_a_rollout_is_under_way_unless_its_expression_holds() {
        let kind = declared("sight.example.com", "self.status.ready == true", None);
        let under_way = |status: Value| crate::read(kind, Object(&object(status))).unwrap().reported().is_under_way();
        assert!(!under_way(json!({"observedGeneration": 4, "ready": true})), "whatever its counts are");
        assert!(under_way(json!({"observedGeneration": 4, "ready": false})));
        assert!(under_way(json!({"observedGeneration": 3, "ready": true})));
        assert!(under_way(json!(null)));
    }
}
