use super::*;
use crate::age::{Relation, Shown, Span, Why, in_front, is_miss, place, shown};

const SPAN: Span = Span { before: Some(100_000), ordered: Some(100_000), after: 110_000 };

fn with(lines: &[(&str, &str)]) -> Answer {
    answer("/", at(120_000), lines)
}

fn relation(lines: &[(&str, &str)]) -> Relation {
    SPAN.relate(&shown(&with(lines)))
}

#[test]
fn an_age_lies_before_the_order_or_after_it_with_two_seconds_on_each_side() {
    let after = |age: &str| relation(&[("age", age)]) == Relation::After;
    assert!(after("0") && after("17") && !after("18"), "at 120 s, 102 s is the edge of what may be off");
    let between = |age: &str| relation(&[("age", age)]) == Relation::Nothing(Why::During);
    assert!(between("18") && between("22"));
    assert_eq!(relation(&[("age", "23")]), Relation::Before { age_s: 23, by_ms: 3_000 });
    assert_eq!(
        relation(&[("age", "2147483648")]),
        Relation::Before { age_s: 1 << 31, by_ms: (1 << 31) * 1000 - 20_000 }
    );
}

#[test]
fn the_instant_that_is_safe_counts() {
    let mut slow = with(&[("age", "15")]);
    slow.started = at(116_000);
    assert_eq!(SPAN.relate(&shown(&slow)), Relation::Nothing(Why::During), "it may have been made at 101 s");
    let mut slow = with(&[("age", "20")]);
    (slow.started, slow.ended) = (at(111_000), at(119_000));
    assert_eq!(SPAN.relate(&shown(&slow)), Relation::Nothing(Why::During), "it may have been made at 99 s");
}

#[test]
fn an_age_decides_whatever_the_last_tier_says() {
    for said in ["Miss from cloudfront", "Hit from cloudfront", "RefreshHit from cloudfront"] {
        assert!(matches!(relation(&[("x-cache", said), ("age", "68309")]), Relation::Before { .. }), "{said}");
        assert_eq!(relation(&[("x-cache", said), ("age", "1")]), Relation::After, "{said}");
    }
}

#[test]
fn without_an_age_only_a_miss_of_all_shows_anything() {
    let without = |lines: &[(&str, &str)]| shown(&with(lines));
    assert_eq!(without(&[("x-cache", "Miss from cloudfront")]), Shown::Empty);
    for said in ["Hit from cloudfront", "RefreshHit from cloudfront", "Error from cloudfront", "Miss, Hit", "-"] {
        assert_eq!(without(&[("x-cache", said)]), Shown::Nothing(Why::NoAge), "{said}");
    }
    let miss = ("x-cache", "Miss from cloudfront");
    for said in ["shield; hit", "a; fwd=miss, b; HIT; ttl=3", "a;fwd=miss;collapsed", "a; fwd=stale", "a; collapsed=?1"]
    {
        assert_eq!(without(&[miss, ("cache-status", said)]), Shown::Nothing(Why::NoAge), "{said}");
    }
    assert_eq!(without(&[miss, ("cache-status", "shield; fwd=uri-miss; stored, edge; fwd=miss")]), Shown::Empty);
    assert!(!is_miss(&with(&[miss, ("x-cache", "Hit from elsewhere")])));
}

#[test]
fn an_age_that_is_none_is_no_evidence_even_at_a_miss() {
    for age in ["", "-1", "+5", "5.0", "5, 5", "five", "0x5", "2147483649", "99999999999999999999", "٣"] {
        let lines = [("x-cache", "Miss from cloudfront"), ("age", age)];
        assert_eq!(shown(&with(&lines)), Shown::Nothing(Why::BadAge), "{age:?}");
    }
    assert_eq!(shown(&with(&[("age", "5"), ("age", "5")])), Shown::Nothing(Why::BadAge));
}

#[test]
fn errors_and_what_cloudfront_has_not_touched_show_nothing() {
    for (status, counts) in
        [(199, false), (200, true), (302, true), (399, true), (404, false), (500, false), (504, false)]
    {
        let seen = shown(&Answer { status, ..with(&[("age", "1")]) });
        assert_eq!(seen == Shown::Nothing(Why::Status(status)), !counts, "{status}");
    }
    let own = |lines: &[(&str, &str)]| shown(&with(&[&[("x-amz-cf-id", "-"), ("age", "1")], lines].concat()));
    assert_eq!(own(&[]), Shown::Nothing(Why::NotCloudFront));
    assert_eq!(own(&[("via", "1.1 varnish")]), Shown::Nothing(Why::NotCloudFront));
    assert!(matches!(own(&[("via", "1.1 varnish, 1.1 ab12.cloudfront.net (CloudFront)")]), Shown::Made { .. }));
}

#[test]
fn what_answers_before_cloudfront_is_named() {
    let front = |lines: &[(&str, &str)]| in_front(&with(lines));
    assert_eq!(front(&[("via", "1.1 varnish, 1.1 a.cloudfront.net (CloudFront)")]), None, "it is behind");
    assert_eq!(front(&[("via", "1.1 a.cloudfront.net"), ("via", "1.1 b.cloudfront.net (CloudFront)")]), None);
    assert_eq!(front(&[("via", "1.1 a.cloudfront.net, 1.1 Varnish (x)")]).unwrap(), "varnish");
    assert_eq!(front(&[("cf-ray", "8a-FRA")]).unwrap(), "Cloudflare");
}

#[test]
fn a_place_is_a_short_name() {
    assert_eq!(place(&with(&[])), "FRA56-P1");
    for hostile in ["-", "a b", "FRA\u{202e}", "0123456789abcdefg"] {
        assert_eq!(place(&with(&[("x-amz-cf-pop", hostile)])), "", "{hostile}");
    }
    assert_eq!(place(&with(&[("x-amz-cf-pop", "A1"), ("x-amz-cf-pop", "B1")])), "");
}

#[test]
fn a_life_that_did_not_see_the_order_never_says_before() {
    let span = Span { before: None, ordered: None, after: -50_000 };
    let relate = |age: &str| span.relate(&shown(&with(&[("age", age)])));
    assert_eq!((relate("167"), relate("168")), (Relation::After, Relation::Nothing(Why::NoBefore)));
    assert_eq!(relate("2147483648"), Relation::Nothing(Why::NoBefore));
}
