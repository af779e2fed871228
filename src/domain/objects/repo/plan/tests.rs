use serde_json::{Value, json};

use super::*;
use crate::repo::reported::LISTED_MAX;

/// A plan as terraform 1.11 writes it, shortened: one update, one replacement, one resource that stays, two outputs.
fn plan() -> Value {
    json!({
        "format_version": "1.2", "terraform_version": "1.11.4", "timestamp": "2026-11-23T04:17:44Z",
        "applyable": true, "complete": true, "errored": false,
        "variables": {"s": {"value": "hunter3"}},
        "resource_changes": [
            {"address": "terraform_data.a", "mode": "managed", "type": "terraform_data", "name": "a", "change": {
                "actions": ["update"],
                "before": {"id": "e508", "input": "one", "output": "one"}, "after": {"id": "e508", "input": "two"},
                "after_unknown": {"output": true}, "before_sensitive": {}, "after_sensitive": {}}},
            {"address": "terraform_data.b", "mode": "managed", "change": {
                "actions": ["delete", "create"],
                "before": {"id": "1ae4", "input": {"open": "one", "pw": "hunter2"}},
                "after": {"input": {"open": "two", "pw": "hunter3"}}, "after_unknown": {"id": true, "input": {}},
                "before_sensitive": {"input": {"pw": true}}, "after_sensitive": {"input": {"pw": true}},
                "replace_paths": [["triggers_replace"]]}},
            {"address": "terraform_data.c", "mode": "managed", "change": {
                "actions": ["no-op"], "before": {"id": "7"}, "after": {"id": "7"}, "after_unknown": {}}}
        ],
        "output_changes": {
            "x": {"actions": ["update"], "before": "one", "after_unknown": true},
            "y": {"actions": ["update"], "before": "hunter2", "after": "hunter3", "after_unknown": false,
                "before_sensitive": true, "after_sensitive": true}
        }
    })
}

fn read(plan: &Value) -> Planned {
    fingerprint(Preset::Terraform, plan.to_string().as_bytes()).expect("a plan")
}

#[test]
fn a_plan_is_counted_as_terraform_counts_it() {
    let planned = read(&plan());
    assert_eq!(planned.counts, Some(Counts { add: 1, change: 1, destroy: 1 }));
    assert!(!planned.empty);
    assert_eq!(planned.fingerprint.len(), FINGERPRINT_DIGITS);
}

#[test]
fn what_is_not_decisive_makes_no_other_plan() {
    let before = read(&plan());
    let mut other = plan();
    other["terraform_version"] = json!("1.14.0");
    other["timestamp"] = json!("2027-01-01T00:00:00Z");
    other["format_version"] = json!("1.9");
    other["resource_changes"].as_array_mut().expect("a list").reverse();
    other["resource_changes"][0]["change"]["after"]["id"] = json!("what stays is not changed by an apply");
    other["variables"] = json!({});
    other["prior_state"] = json!({"values": 1});
    assert_eq!(read(&other), before);
    let pretty = serde_json::to_string_pretty(&plan()).expect("written");
    assert_eq!(fingerprint(Preset::Terraform, pretty.as_bytes()).as_ref(), Ok(&before));
}

#[test]
fn each_decisive_part_makes_another_plan() {
    let before = read(&plan()).fingerprint;
    let at = |pointer: &str, value: Value| {
        let mut other = plan();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        match other.pointer_mut(parent).expect("there") {
            Value::Object(members) => drop(members.insert(key.to_owned(), value)),
            Value::Array(items) => items[key.parse::<usize>().expect("a number")] = value,
            plain => panic!("{plain} has no members"),
        }
        read(&other).fingerprint
    };
    for (pointer, value) in [
        ("/resource_changes/0/address", json!("terraform_data.z")),
        ("/resource_changes/0/mode", json!("data")),
        ("/resource_changes/0/deposed", json!("00000001")),
        ("/resource_changes/0/change/actions", json!(["create"])),
        ("/resource_changes/1/change/actions", json!(["create", "delete"])),
        ("/resource_changes/0/change/after/input", json!("three")),
        ("/resource_changes/0/change/after/more", json!(null)),
        ("/resource_changes/0/change/after_unknown", json!({})),
        ("/resource_changes/1/change/replace_paths", json!([["input"]])),
        ("/resource_changes/1/change/after/input/open", json!("three")),
        ("/resource_changes/2/change/importing", json!({"id": "i-1"})),
        ("/resource_changes/2/previous_address", json!("terraform_data.old")),
        ("/output_changes/x/after_unknown", json!(false)),
        ("/output_changes/z", json!({"actions": ["create"], "after": 1})),
        ("/action_invocations", json!([{"address": "action.a.b", "config_values": {"x": 1}}])),
    ] {
        assert_ne!(at(pointer, value.clone()), before, "{pointer} = {value}");
    }
}

#[test]
fn of_a_sensitive_value_only_counts_whether_it_changes() {
    let before = read(&plan()).fingerprint;
    let with = |resource: &str, output: &str| {
        let mut other = plan();
        other["resource_changes"][1]["change"]["after"]["input"]["pw"] = json!(resource);
        other["output_changes"]["y"]["after"] = json!(output);
        read(&other).fingerprint
    };
    assert_eq!(with("hunter3", "hunter3"), before);
    assert_eq!(with("another", "more"), before);
    assert_ne!(with("hunter2", "hunter3"), before, "it stays as it was");
    assert_ne!(with("hunter3", "hunter2"), before, "it stays as it was");
    // What was sensitive before is not shown after.
    let mut open = plan();
    open["resource_changes"][1]["change"]["after_sensitive"] = json!({});
    let once = read(&open).fingerprint;
    open["resource_changes"][1]["change"]["after"]["input"]["pw"] = json!("other");
    assert_eq!(read(&open).fingerprint, once);
}

#[test]
fn numbers_count_in_all_their_digits() {
    let of = |number: &str| {
        let plan = plan().to_string().replace(r#""input":"two""#, &format!(r#""input":{number}"#));
        fingerprint(Preset::Terraform, plan.as_bytes()).expect("a plan").fingerprint
    };
    assert_ne!(of("9007199254740993000000000000001"), of("9007199254740993000000000000002"));
    assert_ne!(of("1e400"), of("1e401"));
    assert_ne!(of("1"), of("\"1\""));
}

#[test]
fn a_plan_that_changes_nothing_is_empty() {
    let mut plan = plan();
    let stays = plan["resource_changes"][2].clone();
    plan["resource_changes"] = json!([stays]);
    plan["output_changes"] = json!({});
    plan["applyable"] = json!(false);
    let planned = read(&plan);
    assert_eq!((planned.empty, planned.counts), (true, Some(Counts { add: 0, change: 0, destroy: 0 })));
    plan.as_object_mut().expect("an object").remove("applyable");
    assert!(read(&plan).empty, "older versions do not say it");
    plan["output_changes"] = json!({"x": {"actions": ["create"], "after": 1}});
    assert!(!read(&plan).empty);
    plan["output_changes"] = json!({});
    plan["resource_changes"][0]["change"]["importing"] = json!({"id": "i-1"});
    assert!(!read(&plan).empty, "what is taken over is a change");

    // terraform plan -refresh-only.
    plan["resource_changes"] = json!([]);
    plan["applyable"] = json!(true);
    plan["resource_drift"] = json!([{"address": "a.b", "change": {"actions": ["update"], "after": 1}}]);
    let first = read(&plan);
    assert!(!first.empty);
    plan["resource_drift"][0]["change"]["after"] = json!(2);
    assert_ne!(read(&plan).fingerprint, first.fingerprint);
}

#[test]
fn what_is_no_plan_is_refused_in_words() {
    let refused = |plan: &str| fingerprint(Preset::Terraform, plan.as_bytes()).expect_err("no plan").to_string();
    for (plan, words) in [
        ("", "terraform show -json"),
        ("{}", "format_version"),
        (r#"{"format_version": "2.0"}"#, "not 1.x"),
        (r#"{"format_version": "10.0"}"#, "not 1.x"),
        (r#"{"format_version": "1.2", "errored": true}"#, "planning failed"),
        (r#"{"format_version": "1.2", "resource_changes": [{"address": 7}]}"#, "terraform show -json"),
    ] {
        assert!(refused(plan).contains(words), "{plan}: {}", refused(plan));
    }
    let deep = |open: &str, close: &str| {
        let value = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        refused(&format!(
            r#"{{"format_version": "1.2", "output_changes": {{"x": {{"actions": ["create"], "after": {value}}}}}}}"#
        ))
    };
    assert!(deep("[", "]").contains("without end"));
    assert!(deep(r#"{"a":"#, "}").contains("without end"));
    let long = vec![b' '; PLAN_BYTES_MAX + 1];
    assert_eq!(fingerprint(Preset::Command, &long), Err(NoPlan("the plan has more than 64 MiB")));
}

#[test]
fn the_plan_of_a_command_is_its_bytes() {
    let read = |plan: &[u8]| fingerprint(Preset::Command, plan).expect("any text");
    // printf '+ one line\n' | sha256sum
    let one = read(b"+ one line\n");
    assert_eq!(one.fingerprint, "7aa9eee4d80a964cbdc7c05659bc2da473f242a3ef572343d9392fc30dbcd496");
    assert_eq!((one.counts, one.empty), (None, false));
    assert_ne!(read(b"+ one line").fingerprint, one.fingerprint);
    assert!(read(b"").empty && read(b" \n\t").empty && !read(b"\xff").empty);
}

#[test]
fn a_message_is_read_as_it_is_written_and_nothing_else_is_one() {
    let counted = read(&plan());
    let plain = fingerprint(Preset::Command, b"x").expect("any text");
    for planned in [counted, plain] {
        for message in [Message::Planned(planned.clone()), Message::Differs(planned)] {
            let text = message.to_json().expect("written");
            assert!(text.len() < 300 && !text.contains('\n'), "{text}");
            assert_eq!(Message::parse(&text), Ok(message.clone()));
            assert_eq!(Message::parse(&format!(" {text}\n")), Ok(message));
        }
    }
    let digits = "a".repeat(FINGERPRINT_DIGITS);
    let is_read = |text: &str| Message::parse(text).is_ok();
    assert!(is_read(&format!(r#"{{"result":"planned","fingerprint":"{digits}","empty":false,"new":1}}"#)));
    for wrong in [
        "",
        "no changes",
        "{}",
        &format!(r#"{{"result":"applied","fingerprint":"{digits}","empty":false}}"#),
        &format!(r#"{{"result":"planned","fingerprint":"{digits}"}}"#),
        &format!(r#"{{"result":"planned","fingerprint":"{}","empty":false}}"#, digits.to_uppercase()),
        r#"{"result":"planned","fingerprint":"abc","empty":false}"#,
        &format!(
            r#"{{"result":"planned","fingerprint":"{digits}","empty":false,"counts":{{"add":-1,"change":0,"destroy":0}}}}"#
        ),
        &" ".repeat(MESSAGE_BYTES_MAX + 1),
    ] {
        assert!(!is_read(wrong), "{wrong}");
    }
}

/// A plan of these addresses, each with its actions.
fn changing(resources: &[(&str, &[&str])]) -> Vec<u8> {
    let resource = |(address, actions): &(&str, &[&str])| json!({"address": address, "mode": "managed", "change": {"actions": actions, "after": {"password": "hunter2"}}});
    let resources: Vec<Value> = resources.iter().map(resource).collect();
    json!({"format_version": "1.2", "resource_changes": resources}).to_string().into_bytes()
}

fn listed_words(listed: &crate::repo::reported::Listed) -> Vec<String> {
    listed.listed.iter().map(|change| format!("{} {}", change.action, change.address)).collect()
}

#[test]
fn addresses_are_listed_with_what_is_done_to_them_and_no_value() {
    let plan = changing(&[
        ("a.stays", &["no-op"]),
        ("data.read", &["read"]),
        ("a.made", &["create"]),
        ("a.other", &["delete", "create"]),
        ("a.first", &["create", "delete"]),
        ("a.gone", &["delete"]),
        ("a.set[\"x y\"]", &["update"]),
        ("a.left", &["forget"]),
    ]);
    let changes = changes(Preset::Terraform, &plan).expect("a plan");
    let expected = [
        "create a.made",
        "replace a.other",
        "replace a.first",
        "delete a.gone",
        "update a.set[\"x y\"]",
        "forget a.left",
    ];
    assert_eq!((listed_words(&changes), changes.more), (expected.map(str::to_owned).to_vec(), 0));
    let planned = Message::Planned(fingerprint(Preset::Terraform, &plan).expect("a plan"));
    let message = with_changes(&planned.to_json().expect("a message"), &changes);
    assert!(!message.contains("hunter2"), "{message}");
    assert_eq!(Message::parse(&message), Ok(planned), "a release before this one passes over them");
    let read = listed(&message, "job");
    assert_eq!((listed_words(&read), read.more, read.job.as_str()), (listed_words(&changes), 0, "job"));
    assert_eq!(
        super::changes(Preset::Command, b"any text").expect("no plan"),
        crate::repo::reported::Listed::default()
    );
}

#[test]
fn whatever_is_listed_fits_where_twelve_containers_share_what_the_kubelet_keeps() {
    const OF_TWELVE: usize = 12 * 1024 / 12;
    for address in ["aws_instance.web", &"\u{1}\"\\".repeat(400), &"long".repeat(100), "é"] {
        let resources = vec![(address, &["create"][..]); 5_000];
        let plan = changing(&resources);
        let changes = changes(Preset::Terraform, &plan).expect("a plan");
        let counts = Some(Counts { add: u32::MAX, change: u32::MAX, destroy: u32::MAX });
        let planned = Message::Differs(Planned { fingerprint: "f".repeat(64), counts, empty: false });
        let message = with_changes(&planned.to_json().expect("a message"), &changes);
        assert!(message.len() <= OF_TWELVE, "{}", message.len());
        assert!(!changes.listed.is_empty() && changes.listed.len() <= LISTED_MAX);
        assert_eq!(changes.listed.len() + usize::try_from(changes.more).expect("a number"), 5_000);
        let read = listed(&message, "job");
        assert_eq!((read.listed, read.more), (changes.listed, changes.more), "{message}");
    }
}
