use super::*;
use crate::age::Why;
use crate::marker::Content;

fn with_body(body: Body, lines: &[(&str, &str)]) -> Reply {
    reply(Answer { body, ..answer("/", at(0), lines) })
}

fn text(body: &str) -> Reply {
    with_body(Body::Whole(body.into()), &[])
}

fn compare(marker: &str, edge: &Reply, pods: &[Reply]) -> Content {
    Marker::parse(marker).unwrap().compare(&Answers { edge: edge.clone(), pods: pods.to_vec() })
}

/// Whether the edge is what one pod answers, twice.
fn is_new(marker: &str, edge: &Reply, pod: &Reply) -> bool {
    match compare(marker, edge, &[pod.clone(), pod.clone()]) {
        Content::New => true,
        Content::Other(_) => false,
        Content::Unknown(why) => panic!("{marker}: {why:?}"),
    }
}

#[test]
fn each_marker_tells_one_version_from_another() {
    let header = |value| with_body(Body::Unread, &[("x-version", value)]);
    assert!(is_new("header:X-Version", &header("v2"), &header("v2")));
    assert!(!is_new("header:x-version", &header("v1"), &header("v2")));
    let (one, two) = (r#"{"app":{"a/b":[1,"v1"]}}"#, r#"{"app":{"a/b":[1,"v2"]}}"#);
    assert!(is_new("json:/app/a~1b/0", &text(one), &text(two)), "a number, and the same");
    assert!(!is_new("json:/app/a~1b/1", &text(one), &text(two)));
    assert!(is_new("body-hash", &text("a"), &text("a")) && !is_new("body-hash", &text("a"), &text("b")));
    let tag = |value| with_body(Body::Unread, &[("etag", value)]);
    assert!(is_new("etag", &tag("W/\"7\""), &tag("\"7\"")) && !is_new("etag", &tag("\"7\""), &tag("\"8\"")));
}

#[test]
fn a_value_that_is_given_asks_no_pods() {
    let header = with_body(Body::Unread, &[("x-version", "a=b"), ("etag", "W/\"7\"")]);
    for (marker, new) in
        [("header:x-version=a=b", true), ("header:x-version=a", false), ("etag=\"7\"", true), ("etag=8", false)]
    {
        assert!(!Marker::parse(marker).unwrap().asks_pods());
        assert_eq!(compare(marker, &header, &[]) == Content::New, new, "{marker}");
    }
    let hash = "body-hash=2C26B46B68FFC68FF99B453C1D30413413422D706483BFA0F98A5E886266E7AE";
    assert_eq!(compare(hash, &text("foo"), &[]), Content::New, "as sha256sum says");
}

#[test]
fn where_it_cannot_be_told_it_is_unknown() {
    let new = text("v2");
    let unknown = |marker: &str, edge: &Reply, pods: &[Reply]| match compare(marker, edge, pods) {
        Content::Unknown(why) => why,
        other => panic!("{marker}: {other:?}"),
    };
    assert_eq!(unknown("body-hash", &text("v1"), &[text("n1"), text("n2")]), Why::PodsDiffer);
    assert!(matches!(unknown("body-hash", &text("v1"), std::slice::from_ref(&new)), Why::NoPods(_)));
    assert!(matches!(unknown("body-hash", &text("v1"), &[new.clone(), failed("refused")]), Why::NoPods(_)));
    assert_eq!(unknown("body-hash", &with_body(Body::TooLong, &[]), &[]), Why::TooLong);
    assert_eq!(
        unknown("header:x-version", &text(""), &[new.clone(), new.clone()]),
        Why::NoMarker,
        "the CDN may take it away"
    );
    assert_eq!(unknown("json:/a", &text("{\"a\":null}"), &[]), Why::NoMarker);
    assert_eq!(unknown("json:/a", &text("<html>"), &[]), Why::NoMarker);
    assert_eq!(unknown("json:/a", &with_body(Body::Whole(vec![0xff; 9]), &[]), &[]), Why::NoMarker);
    let twice = with_body(Body::Unread, &[("x-version", "v1"), ("x-version", "v2")]);
    assert_eq!(unknown("header:x-version", &twice, &[]), Why::NoMarker);
    let error = reply(Answer { status: 502, ..answer("/", at(0), &[("x-version", "v2")]) });
    assert_eq!(unknown("header:x-version=v2", &error, &[]), Why::Status(502));
    assert!(matches!(unknown("etag", &failed("no route"), &[]), Why::NoAnswer(_)));
    let mut led = new.clone();
    led.hops[0].path = "/en".to_owned();
    assert!(matches!(unknown("body-hash", &new, &[led.clone(), led]), Why::NoPods(_)), "another page");
}

#[test]
fn what_is_no_marker_is_refused_with_what_to_write() {
    for (text, says) in [
        ("", "write header:NAME"),
        ("headers:x", "write header:NAME"),
        ("header:", "is no name of a header"),
        ("header:x y", "is no name of a header"),
        ("json:version", "begins with /"),
        ("json:/a~2", "~0 for ~"),
        ("etag=", "nothing follows the ="),
        ("body-hash=abc", "64 hexadecimal digits"),
    ] {
        let error = Marker::parse(text).unwrap_err().to_string();
        assert!(error.contains(says) && error.starts_with(&format!("{text:?} is no marker")), "{error}");
    }
    assert!(Marker::parse(&"x".repeat(257)).unwrap_err().to_string().contains("257 bytes"));
    for text in ["header:x-version", "json:/a/b=7", "body-hash", "etag=7"] {
        let marker = Marker::parse(text).unwrap();
        assert_eq!((marker.to_string(), Marker::parse(&marker.to_string())), (text.to_owned(), Ok(marker)));
    }
}
