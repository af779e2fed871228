use actix_web::http::header::{HeaderName, HeaderValue};

use super::*;

fn keys(texts: &[&str]) -> Vec<Key> {
    texts.iter().filter_map(|text| Key::of(text.as_bytes())).collect()
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let line = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(name.to_ascii_lowercase()).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    lines.iter().map(line).collect()
}

/// RFC 4231, test case 2.
const RFC_KEY: &str = "Jefe";
const RFC_DATA: &[u8] = b"what do ya want for nothing?";
const RFC: [(&str, &str); 4] = [
    ("sha224", "a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44"),
    ("sha256", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    ("sha384", "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649"),
    (
        "sha512",
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
    ),
];

#[test]
fn the_older_signature_is_verified_by_each_of_its_algorithms() {
    let judge = |value: &str, body: &[u8], key: &str| older(&headers(&[("X-Signature", value)]), body, &keys(&[key]));
    for (algorithm, digits) in RFC {
        let value = format!("{algorithm}={digits}");
        assert_eq!(judge(&value, RFC_DATA, RFC_KEY), Ok(()), "{algorithm}");
        assert_eq!(judge(&value, b"another body", RFC_KEY), Err(Wrong::Mismatch(X_SIGNATURE)));
        assert_eq!(judge(&value, RFC_DATA, "another key"), Err(Wrong::Mismatch(X_SIGNATURE)));
        // The digits of one algorithm are no signature by another, nor is their beginning.
        for (other, _) in RFC.iter().filter(|(other, _)| *other != algorithm) {
            assert_eq!(judge(&format!("{other}={digits}"), RFC_DATA, RFC_KEY), Err(Wrong::Mismatch(X_SIGNATURE)));
        }
        let cut = format!("{algorithm}={}", &digits[..16]);
        assert_eq!(judge(&cut, RFC_DATA, RFC_KEY), Err(Wrong::Mismatch(X_SIGNATURE)));
    }
    for malformed in ["", "sha256", "sha256=invalid", "md5=00", "sha256=0", "sha256=00=00", "SHA256=00"] {
        assert_eq!(judge(malformed, RFC_DATA, RFC_KEY), Err(Wrong::Malformed(X_SIGNATURE)), "{malformed}");
    }
    assert_eq!(judge("sha256=", RFC_DATA, RFC_KEY), Err(Wrong::Mismatch(X_SIGNATURE)));
    let huge = format!("sha256={}", "0".repeat(4_096));
    assert_eq!(judge(&huge, RFC_DATA, RFC_KEY), Err(Wrong::Malformed(X_SIGNATURE)));
    assert_eq!(older(&headers(&[]), RFC_DATA, &keys(&[RFC_KEY])), Err(Wrong::Missing(X_SIGNATURE)));
    let value = format!("sha256={}", RFC[1].1);
    assert_eq!(older(&headers(&[("X-Signature", &value)]), RFC_DATA, &[]), Err(Wrong::Mismatch(X_SIGNATURE)));
}

/// The vector of <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries>, "Testing the webhook payload
/// validation".
const GITHUB_KEY: &str = "It's a Secret to Everybody";
const GITHUB_DIGITS: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

#[test]
fn what_forges_send_is_known() {
    let hub = format!("sha256={GITHUB_DIGITS}");
    let sent: [&[(&str, &str)]; 6] = [
        &[("X-Hub-Signature-256", &hub)],
        &[("X-Hub-Signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"), ("X-Hub-Signature-256", &hub)],
        &[("X-Hub-Signature", &hub)],
        &[("X-Gitea-Signature", GITHUB_DIGITS), ("X-Hub-Signature-256", &hub)],
        &[("X-Gitea-Signature", GITHUB_DIGITS)],
        &[("X-Gitlab-Token", GITHUB_KEY)],
    ];
    for lines in sent {
        let both = keys(&["the key that comes next", GITHUB_KEY]);
        assert_eq!(any(&headers(lines), b"Hello, World!", &both, 0), Ok(()), "{lines:?}");
        assert!(any(&headers(lines), b"Hello, World!", &keys(&["It's a Secret to Everybod"]), 0).is_err(), "{lines:?}");
        assert!(any(&headers(lines), b"Hello, World!", &[], 0).is_err(), "{lines:?}");
        if lines[0].0 != "X-Gitlab-Token" {
            assert!(any(&headers(lines), b"Hello, World", &both, 0).is_err(), "{lines:?}");
        }
    }
    let missing = any(&headers(&[("Authorization", "Bearer x")]), b"", &keys(&[GITHUB_KEY]), 0);
    assert!(matches!(missing, Err(Wrong::Missing(_))));
}

/// The vector in the tests of the reference libraries
/// (<https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/rust/src/lib.rs>).
#[test]
fn standard_webhooks_are_verified_within_five_minutes() {
    const AT: i64 = 1_614_265_330;
    let lines = |signature: &str, at: i64| {
        let at = at.to_string();
        headers(&[
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", &at),
            ("webhook-signature", signature),
        ])
    };
    let right = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    let body = br#"{"test": 2432232314}"#;
    let key = keys(&["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]);
    for at in [AT, AT + 300, AT - 300] {
        assert_eq!(standard(&lines(right, AT), body, &key, at), Ok(()), "{at}");
    }
    assert_eq!(standard(&lines(right, AT), body, &key, AT + 301), Err(Wrong::Untimely(301)));
    assert_eq!(standard(&lines(right, AT), body, &key, AT - 301), Err(Wrong::Untimely(-301)));
    let several = format!("v1a,abc= v1,AAAA {right}");
    assert_eq!(standard(&lines(&several, AT), body, &key, AT), Ok(()));
    assert_eq!(standard(&lines(right, AT + 1), body, &key, AT), Err(Wrong::Mismatch(STANDARD)));
    assert_eq!(standard(&lines(right, AT), b"{}", &key, AT), Err(Wrong::Mismatch(STANDARD)));
    assert_eq!(standard(&lines("v2,AAAA", AT), body, &key, AT), Err(Wrong::Malformed(STANDARD)));
    assert_eq!(standard(&headers(&[("webhook-signature", right)]), body, &key, AT), Err(Wrong::Missing(STANDARD_ID)));
    let mut spoilt = lines(right, AT);
    spoilt.insert(HeaderName::from_static(STANDARD_TIME), HeaderValue::from_static("soon"));
    assert_eq!(standard(&spoilt, body, &key, AT), Err(Wrong::Malformed(STANDARD_TIME)));
}

#[test]
fn a_key_of_a_secret_counts_with_and_without_the_end_of_its_line() {
    let (algorithm, digits) = RFC[1];
    let value = format!("{algorithm}={digits}");
    for text in ["Jefe", "Jefe\n", "Jefe\r\n"] {
        let keys = Key::of_secret(text.as_bytes());
        assert_eq!(older(&headers(&[("X-Signature", &value)]), RFC_DATA, &keys), Ok(()), "{text:?}");
    }
    for text in ["Jef", "Jefe ", "\nJefe", "Jefe\n\n"] {
        let keys = Key::of_secret(text.as_bytes());
        assert!(older(&headers(&[("X-Signature", &value)]), RFC_DATA, &keys).is_err(), "{text:?}");
    }
    for nothing in ["", "\n", "\r\n"] {
        assert!(Key::of_secret(nothing.as_bytes()).is_empty(), "{nothing:?}");
    }
    assert_eq!(format!("{:?}", Key::of(b"hunter2")), "Some(Key)");
}
