//! Bodies that owners of hooks wrote: what is refused, and how values are put in.

use super::*;

fn events(names: &[&str]) -> BTreeSet<Kind> {
    names.iter().map(|name| Kind::named(name).expect("a kind")).collect()
}

fn parsed(text: &str) -> Result<BodyTemplate, Refused> {
    BodyTemplate::parse(text, true, &events(&["purge.completed", "rollout.failed"]))
}

fn refused(text: &str) -> String {
    let why = parsed(text).expect_err(text);
    format!("{}; {}", why.message, why.fix)
}

/// Hostile where it is a text, and there for each name.
fn value(name: BodyValue) -> Value {
    match name {
        BodyValue::Message => json!("say \"hi\"\\ {{ id }}\u{202e}\n"),
        BodyValue::Hosts => json!(["a.example.com", "b.example.com"]),
        BodyValue::Event => json!({"type": "purge.completed", "data": {"message": "\""}}),
        BodyValue::Seq => json!(7),
        BodyValue::Ticket => Value::Null,
        other => json!(other.name()),
    }
}

#[test]
fn a_place_inside_of_quotes_takes_text_and_one_outside_a_whole_value() {
    let text = r#"{"a": "m: {{message}}!", "b": {{ message }}, "c": "{{ hosts }} {{ seq }}", "d": [{{ hosts }}, {{seq}}],
        "e": {{ event }}, "f": "{{ event }}", "g\"h": "\\{{ name }}"}"#;
    let filled = parsed(text).expect("a body").fill(value).expect("short");
    let message = "say \"hi\"\\ {{ id }}\u{202e}\n";
    let event = json!({"type": "purge.completed", "data": {"message": "\""}});
    let expected = json!({
        "a": format!("m: {message}!"), "b": message, "c": "a.example.com, b.example.com 7",
        "d": [["a.example.com", "b.example.com"], 7], "e": event, "f": event.to_string(), "g\"h": "\\name",
    });
    assert_eq!(serde_json::from_str::<Value>(&filled).expect(&filled), expected);
}

#[test]
fn what_an_event_does_not_have_is_null_or_nothing() {
    let text = r#"{"a": {{ ticket }}, "b": "<{{ ticket }}>"}"#;
    let body = BodyTemplate::parse(text, true, &events(&["promotion.waiting", "rollout.failed"])).expect("a body");
    assert_eq!(body.fill(value).as_deref(), Some(r#"{"a": null, "b": "<>"}"#));
}

#[test]
fn a_plain_body_has_values_as_lines() {
    let of = &events(&["purge.completed"]);
    let body = BodyTemplate::parse("{{ message }} at {{ hosts }}, \"{{ seq }}", false, of).expect("a body");
    let expected = "say \"hi\"\\ {{ id }}\\u{202e}\\n at a.example.com, b.example.com, \"7";
    assert_eq!(body.fill(value).as_deref(), Some(expected));
}

#[test]
fn every_body_that_could_not_be_sent_is_refused_with_a_fix() {
    for (text, words) in [
        ("", "is a body of 0 bytes; write 1 to 16384"),
        ("{{ massage }}", "names massage, which is no value of an event; did you mean {{ message }}?"),
        ("{{ parameters }}", "names parameters, which is no value of an event; write type, id, "),
        ("{{ message | upper }}", "names •••, which is no value"),
        ("{{ message", "{{ has no }} behind it; close it"),
        ("{% if severity %}1{% endif %}", "has a statement, {%, and a body has values alone"),
        (r#"{"a": "\{{ message }}"}"#, "has a backslash before {{ message }}"),
        (r#"{"a": {{ environment }}}"#, "names environment, which none of its events has; leave it out"),
        (r#"{"a": {{ message }}"#, "is not JSON for rollout.failed: EOF while parsing an object"),
        (r#"{"a": say {{ message }}}"#, "is not JSON for rollout.failed: expected value"),
        ("{{ message }}{{ message }}", "is not JSON for rollout.failed: trailing characters"),
        (r#"{{{ message }}: 1}"#, "names •••, which is no value"),
        // A test has no namespace, and null is no name of a member.
        (r#"{ {{ namespace }}: 1}"#, "is not JSON for webhook.test: key must be a string"),
    ] {
        let said = refused(text);
        assert!(said.contains(words), "{text}: {said}");
    }
    // Whether a ticket is there is known when it is sent: both are tried.
    let waiting = events(&["promotion.waiting"]);
    assert!(BodyTemplate::parse(r#"{ {{ ticket }}: 1}"#, true, &waiting).is_err());
    assert!(parsed(&"x".repeat(16 * 1024 + 1)).is_err());
}

#[test]
fn a_body_shows_nothing_of_itself_and_ends() {
    let text = r#"{"routing_key": "s3cret-t0ken", "n": 12345, "summary": "{{ type }}"}"#;
    let body = parsed(text).expect("a body");
    assert!(!format!("{body:?}").contains("s3cret"));
    assert!(!refused(r#"{"routing_key": "s3cret-t0ken" {{ type }}}"#).contains("s3cret"));
    assert_eq!(body.written(), ["12345", "s3cret-t0ken", ""]);
    let long = parsed("[{{ event }},{{ event }},{{ event }},{{ event }},{{ event }}]").expect("a body");
    assert_eq!(long.fill(|_| json!("x".repeat(64 * 1024))), None);
    assert!(long.fill(|_| json!("x".repeat(40 * 1024))).is_some());
}

#[test]
fn a_body_tells_a_test_by_what_a_test_has_of_its_own() {
    for (text, tells) in
        [(r#""{{ type }}""#, true), ("{{ event }}", true), (r#""{{ severity }} {{ timestamp }} {{ name }}""#, false)]
    {
        assert_eq!(parsed(text).expect("a body").tells_a_test(), tells, "{text}");
    }
}
