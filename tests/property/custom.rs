//! Kinds that the operator declares: no expression, however lax, makes one complete whose status is not about the newest spec.

use kernel::expression::Expression;
use kernel::id::Kind;
use kernel::id::custom::{CustomKind, Declaration};
use kinds::object::Object;
use kinds::reported::Standing;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Expressions over what the statuses below have: one that always holds, one that never does, and some that fail.
const EXPRESSIONS: [&str; 6] = [
    "self.status == self.status",
    "self.status.ready == self.spec.replicas",
    "has(self.status.ready) && self.status.ready >= 1",
    "self.status.ready",
    "self.status.conditions.exists(c, c.type == 'Ready')",
    "self.status.missing == 1 || true",
];

fn kind(number: usize) -> Kind {
    let group = format!("e{number}.floor.example.com");
    let declaration = Declaration {
        api_version: format!("{group}/v1"),
        kind: "CloneSet".into(),
        word: format!("clonesets.{group}"),
        template: "/spec/template".into(),
        selector: "/spec/selector".into(),
        hash_label: "hash".into(),
        complete: Expression::parse(EXPRESSIONS[number]).expect("it is one"),
        failed: None,
    };
    Kind::Custom(CustomKind::declare(declaration).expect("there is room"))
}

prop_compose! {
    /// A status, or none.
    fn status()(
        is_there in any::<bool>(),
        observed in option::of(prop_oneof![(0_i64..6).prop_map(|number| json!(number)), Just(json!("x")), Just(json!("3"))]),
        ready in option::of(prop_oneof![(0_u32..4).prop_map(|number| json!(number)), Just(json!("3")), Just(json!([3]))]),
        condition in option::of(prop_oneof![Just("Ready"), Just("Synced")]),
    ) -> Value {
        let conditions = condition.map(|kind| json!([{"type": kind}]));
        if is_there { json!({"observedGeneration": observed, "ready": ready, "conditions": conditions}) } else { Value::Null }
    }
}

proptest! {
    // Faults: W9
    #[test]
    fn nothing_is_complete_whose_controller_has_not_said_so_of_the_newest_spec(
        number in 0..EXPRESSIONS.len(),
        generation in 1_i64..6,
        deleting in any::<bool>(),
        status in status(),
    ) {
        let deletion = deleting.then_some("t");
        let object = json!({
            "metadata": {"name": "web", "generation": generation, "deletionTimestamp": deletion},
            "spec": {"replicas": 3}, "status": status,
        });
        let standing = kinds::read(kind(number), Object(&object)).map(|report| report.reported().standing(false));
        let observed = &object["status"]["observedGeneration"];
        let observed = observed.as_i64().or_else(|| observed.as_str()?.parse().ok());
        let holds = match number {
            0 | 5 => true,
            1 => object["status"]["ready"] == 3,
            2 => object["status"]["ready"].as_u64().is_some_and(|ready| ready >= 1),
            3 => false,
            _ => object["status"]["conditions"][0]["type"] == "Ready",
        };
        let may_be = !deleting && observed.is_some_and(|observed| observed >= generation);
        prop_assert_eq!(standing == Ok(Standing::Complete), may_be && holds, "{}", object);
    }
}
