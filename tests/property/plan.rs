//! Fingerprints of plans: what decides counts, nothing else does, and what is secret is nowhere.

use objects::repo::plan::{FINGERPRINT_DIGITS, Message, Planned, fingerprint};
use objects::repo::spec::Preset;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// No value that is made here holds it by chance.
const SECRET: &str = "hunter2-correct-horse";

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\"\\\\é ]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]{1,2}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn actions() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::select(vec![
        vec!["create"],
        vec!["read"],
        vec!["update"],
        vec!["delete", "create"],
        vec!["create", "delete"],
        vec!["delete"],
        vec!["forget"],
        vec!["create", "forget"],
    ])
}

/// A change; where it is named, one value of it is secret.
fn change() -> impl Strategy<Value = Value> {
    (actions(), value(), value(), value(), prop::option::of(value()), any::<bool>()).prop_map(
        |(actions, before, open, unknown, paths, secret)| {
            let mut change = json!({
                "actions": actions, "before": {"open": before, "pw": "old"}, "after": {"open": open},
                "after_unknown": unknown, "before_sensitive": {}, "after_sensitive": {},
            });
            if secret {
                change["after"]["pw"] = json!(SECRET);
                change["after_sensitive"] = json!({"pw": true});
            }
            if let Some(paths) = paths {
                change["replace_paths"] = json!([paths]);
            }
            change
        },
    )
}

fn plan() -> impl Strategy<Value = Value> {
    let resources = prop::collection::btree_map("[a-z]\\.[a-z]{1,3}", change(), 1..5);
    (resources, prop::collection::btree_map("[a-z]{1,3}", change(), 0..3)).prop_map(|(resources, outputs)| {
        let resources = resources
            .into_iter()
            .map(|(address, change)| json!({"address": address, "mode": "managed", "change": change}));
        json!({
            "format_version": "1.2", "applyable": true,
            "resource_changes": resources.collect::<Vec<_>>(),
            "output_changes": outputs.into_iter().collect::<Map<_, _>>(),
        })
    })
}

/// The document with the members of each object the other way round, and space between its parts.
fn turned(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().rev().map(|(key, member)| format!("{} :\n{}", json!(key), turned(member))).collect();
            format!("{{ {} }}", members.join(" ,\t"))
        }
        Value::Array(items) => format!("[ {} ]", items.iter().map(turned).collect::<Vec<_>>().join(" , ")),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain.to_string(),
    }
}

fn read(plan: &str) -> Planned {
    fingerprint(Preset::Terraform, plan.as_bytes()).expect("a plan")
}

proptest! {
    #[test]
    fn order_time_and_version_do_not_count(plan in plan(), turns in 0_usize..5, version in "1\\.[0-9]{1,2}", time in "[0-9]{4}") {
        let mut other = plan.clone();
        let resources = other["resource_changes"].as_array_mut().expect("a list");
        let turns = turns % resources.len();
        resources.rotate_left(turns);
        resources.push(json!({"address": "z.stays", "change": {"actions": ["no-op"], "after": {"time": time.clone()}}}));
        other["format_version"] = json!(version);
        other["terraform_version"] = json!(version);
        other["timestamp"] = json!(time);
        other["planned_values"] = json!({"anything": time});
        prop_assert_eq!(read(&turned(&other)), read(&plan.to_string()));
    }

    #[test]
    fn every_change_of_a_decisive_part_counts(
        plan in plan(), which in any::<prop::sample::Index>(), part in 0_usize..6, other in value(), others in actions(),
    ) {
        let mut changed = plan.clone();
        let resources = changed["resource_changes"].as_array_mut().expect("a list");
        let resource = which.get(&*resources).clone();
        let slot = resources.iter_mut().find(|slot| **slot == resource).expect("it is one of them");
        match part {
            0 => slot["address"] = json!("zz.other"),
            1 => slot["mode"] = json!("data"),
            2 => slot["change"]["actions"] = json!(others),
            3 => slot["change"]["after"]["open"] = other,
            4 => slot["change"]["after_unknown"] = other,
            _ => slot["change"]["replace_paths"] = json!([[other]]),
        }
        let is_same = *slot == resource;
        let [before, after] = [&plan, &changed].map(|plan| read(&plan.to_string()).fingerprint);
        prop_assert_eq!(before == after, is_same);
    }

    #[test]
    fn a_secret_is_in_no_message_and_its_letters_are_not_in_the_hash(plan in plan(), differs in any::<bool>()) {
        let planned = read(&plan.to_string());
        let message = if differs { Message::Differs(planned.clone()) } else { Message::Planned(planned.clone()) };
        let text = message.to_json().expect("written");
        prop_assert!(!text.contains(SECRET) && !text.contains("hunter2"));
        let another = read(&plan.to_string().replace(SECRET, "another-secret"));
        prop_assert_eq!(&another, &planned);
    }

    #[test]
    fn anything_is_read_or_refused_in_words_that_repeat_none_of_it(
        plan in plan(), at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 0..20), cut in any::<bool>(),
    ) {
        let mut hostile = plan.to_string().into_bytes();
        let at = at.index(hostile.len());
        hostile.splice(at..(if cut { hostile.len() } else { at }), bytes);
        for preset in [Preset::Terraform, Preset::Command] {
            match fingerprint(preset, &hostile) {
                Ok(planned) => prop_assert_eq!(planned.fingerprint.len(), FINGERPRINT_DIGITS),
                Err(why) => prop_assert!(!why.to_string().contains("hunter2"), "{}", why),
            }
        }
        let _ = Message::parse(&String::from_utf8_lossy(&hostile));
    }

    #[test]
    fn what_a_container_writes_is_a_message_or_refused(text in "\\PC{0,80}|\\{\"result\":\"(planned|differs|x)\",\"fingerprint\":\"[0-9a-fA-F]{62,66}\",\"empty\":(true|1)\\}") {
        if let Ok(message) = Message::parse(&text) {
            let written = message.to_json().expect("written");
            prop_assert_eq!(Message::parse(&written), Ok(message));
        }
    }
}
