//! What a spec says of plans that are never applied, of reports, and of a Repo that is deleted.

use objects::repo::spec::Detail;
use serde_json::json;

use super::*;

#[test]
fn what_is_only_planned_needs_a_plan_and_no_apply() {
    let runner = json!({"preset": "Command", "image": "a", "steps": {"plan": ["make", "plan"]}});
    let read = spec(&json!({"approval": "Never", "runner": runner, "driftEvery": "1h"}));
    assert_eq!((read.approval, read.approval.first()), (Approving::Never, Action::Plan));
    assert_eq!((read.runner.steps.plan.len(), read.runner.steps.apply.len()), (2, 0));
    assert_ne!(read.settings(), Spec { approval: Approving::Plan, ..read.clone() }.settings());
}

#[test]
fn what_is_reported_goes_to_the_forge_of_the_repository_and_has_addresses_unless_numbers_are_asked_for() {
    for (name, provider) in [("github", Provider::GitHub), ("gitlab", Provider::GitLab), ("gitea", Provider::Gitea)] {
        let read = spec(&json!({"report": {"type": name, "secretRef": {"name": "forge"}}}));
        let (secret, detail) = ("forge".to_owned(), Detail::Addresses);
        assert_eq!(read.report, Some(ReportTo { provider, secret: secret.clone(), detail }));
        assert!(read.sent().contains(&(secret, read.source.url.clone())) && read.wants_addresses());
    }
    let report = |detail| json!({"report": {"type": "gitea", "secretRef": {"name": "forge"}, "detail": detail}});
    let [numbers, addresses] = ["Numbers", "Addresses"].map(|detail| spec(&report(detail)));
    assert!(addresses.wants_addresses() && !numbers.wants_addresses());
    assert_eq!(numbers.settings(), addresses.settings(), "a yes is not about what is said");
}

#[test]
fn nothing_is_destroyed_unless_it_is_asked_for_and_it_is_said_how() {
    let destroy = |fields: &Value| spec(fields).runner.destroy;
    assert_eq!(destroy(&json!({})), None);
    assert_eq!(destroy(&json!({"onDelete": "Keep"})), None);
    let steps = destroy(&json!({"onDelete": "Ask", "runner": {"lockTimeout": "30s"}})).unwrap();
    assert_eq!(steps.plan[3..], ["plan", "-destroy", "-lock-timeout=30s"]);
    let last = ["terraform", "apply", "-input=false", "-lock-timeout=30s", "-no-color", "/workspace/out/plan.bin"];
    assert_eq!(steps.destroy, last, "it applies the plan that destroys, and never destroys by itself");
    let asks = |runner: &Value| with(&json!({"onDelete": "Ask", "runner": runner})).spec;
    let own = json!({"destroyPlan": ["make", "plan-destroy"], "destroy": ["make", "destroy"]});
    let command = |steps: &Value| {
        let mut runner = json!({"preset": "Command", "image": "a", "steps": {"apply": ["make"]}});
        runner["steps"].as_object_mut().unwrap().extend(steps.as_object().unwrap().clone());
        runner
    };
    assert!(asks(&command(&json!({}))).unwrap_err().contains("runner.steps.destroyPlan"));
    assert_eq!(asks(&command(&own)).unwrap().runner.destroy.unwrap().destroy, ["make", "destroy"]);
    for step in ["plan", "apply"] {
        // It may be another tool's.
        assert!(asks(&json!({"steps": {step: ["tofu", step]}})).is_err(), "{step}");
        let mut steps = own.clone();
        steps[step] = json!(["tofu", step]);
        assert!(asks(&json!({"steps": steps})).is_ok(), "{step}");
    }
    let asked = spec(&json!({"onDelete": "Ask"}));
    assert_eq!(asked.settings(), spec(&json!({})).settings(), "it changes nothing of what applies, so it voids no yes");
    assert_ne!(asked.destroy_settings(), asks(&json!({"steps": own})).unwrap().destroy_settings());
}

#[test]
fn a_no_and_what_keeps_a_repo_are_read_from_its_metadata() {
    let mut object = example();
    let read = |object: &Value| super::object(&object.to_string(), &installation()).unwrap();
    assert!(!read(&object).is_leaving());
    object["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
    object["metadata"]["finalizers"] = json!(["example.com/theirs", "orphan"]);
    assert!(!read(&object).is_leaving() && read(&object).finalizers.cascading);
    object["metadata"]["finalizers"] = json!(["example.com/theirs", "allclear.dev/destroy"]);
    object["metadata"]["annotations"]["allclear.dev/keep"] = json!("u-1");
    assert!(read(&object).is_leaving() && !read(&object).finalizers.cascading);
    assert_eq!(read(&object).answers.keep.as_deref(), Some("u-1"));
}
