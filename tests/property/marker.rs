//! Markers in YAML files: what a promotion changes, and what it leaves alone.

use kernel::id::{Environment, PipelineId, Revision};
use objects::pipeline::marker::{Edited, Refused, edit};
use proptest::prelude::*;

const MARK: &str = r#"# {"$promotion": "shop:web:prod"}"#;

fn set(text: &str, revision: &str) -> Result<Edited, Refused> {
    edit(text, &PipelineId::new("shop", "web"), &Environment("prod".to_owned()), &Revision(revision.to_owned()))
}

/// A piece of a file: what stands before the value that is to be set, the value, and what stands behind it.
type Piece = (String, String, String);

/// Values as people write them, in every style that can be set, and with what a scalar may have before it.
fn written() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "1.2.2",
        "1.10",
        "on",
        "'1.2.2'",
        "\"1.2.2\"",
        "''",
        "\"\"",
        "'it''s'",
        "\"q\\\"\\u00e9\"",
        "ghcr.io/shop/web:1.2",
        "\"several\n    lines\"",
        "several\n    plain lines",
    ])
    .prop_map(str::to_owned)
}

/// Lines without a marker of ours. Each is complete, and the same at any place of a block mapping's values.
fn filler() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "# a comment\n",
        "\n",
        "name: web  # {\"$promotion\": \"shop:web:staging\"}\n",
        "text: |\n    tag: 1 # {\"$promotion\": \"shop:web:prod\"}\n",
        "quoted: 'tag: 1 # {\"$promotion\": \"shop:web:prod\"}'\n",
        "list: [1, {a: 'b'}]\n",
        "nested:\n  - a: 1.10\n    b: \"ü{{ .x }}\"\n  -\n    c: !!str 1\n",
        "? explicit\n: value\n",
        "empty:\n",
        "\t\n",
        "anchor: &A {x: 1}\nalias: *A\n",
    ])
    .prop_map(str::to_owned)
}

fn piece() -> impl Strategy<Value = Piece> {
    let around = prop::sample::select(vec![
        ("tag: ", " M\n"),
        ("tag:   ", "\tM\n"),
        ("tag: &v ", "   M\n"),
        ("? tag\n: ", " M\n"),
        ("M\ntag: ", "\n"),
        ("M\n# further\ntag: ", " # further\n"),
        ("image:\n  - other\n  - ", " M\n"),
        ("image:\n  M\n  tag: ", "\n"),
        ("image: {tag: ", "} M\n"),
    ]);
    (prop::collection::vec(filler(), 0..4), around, written()).prop_map(|(fillers, (before, after), value)| {
        let marked = |text: &str| text.replace('M', MARK);
        (fillers.concat() + &marked(before), value, marked(after))
    })
}

/// What a revision may be: usual ones, those that YAML takes for something else, and anything.
fn revision() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,2}\\.[0-9]{1,2}(\\.[0-9]{1,2})?(-rc\\.[0-9])?",
        "[0-9a-f]{7,40}",
        "[-+.0-9:eExo_]{1,9}",
        "[a-z]{1,5}",
        "[ -~]{0,12}",
        "\\PC{0,8}",
        any::<String>(),
    ]
}

/// What another reader takes a scalar for.
fn read(scalar: &str) -> serde_json::Value {
    serde_saphyr::from_str::<serde_json::Value>(&format!("k: {scalar}\n")).unwrap()["k"].clone()
}

proptest! {
    #[test]
    fn only_the_bytes_of_the_values_change(
        pieces in prop::collection::vec(piece(), 1..4),
        end in "(\\.\\.\\.\n)?",
        crlf in any::<bool>(),
        revision in revision(),
    ) {
        let breaks = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let pieces: Vec<Piece> = pieces
            .into_iter()
            .map(|(before, value, after)| (breaks(&format!("---\n{before}")), breaks(&value), breaks(&after)))
            .collect();
        let text: String = pieces.iter().map(|(before, value, after)| format!("{before}{value}{after}")).collect();
        let text = text + &breaks(&end);
        let edited = set(&text, &revision).unwrap();
        prop_assert_eq!(edited.markers, pieces.len());
        let mut rest = edited.text.as_str();
        for (before, _, after) in &pieces {
            rest = rest.strip_prefix(before.as_str()).unwrap();
            // No value of ours has a marker in it, so this is the end of the value.
            let value = rest.find(after.as_str()).filter(|_| !revision.contains('\n')).unwrap_or_else(|| rest.find(after).unwrap());
            prop_assert_eq!(read(&rest[..value]), revision.as_str(), "{}", &rest[..value]);
            rest = &rest[value + after.len()..];
        }
        prop_assert_eq!(rest, breaks(&end));
        prop_assert_eq!(set(&edited.text, &revision), Ok(edited));
    }

    #[test]
    fn no_text_is_too_strange(
        parts in prop::collection::vec(
            prop_oneof![
                4 => Just(format!("tag: 1 {MARK}\n")),
                2 => Just(format!("key:\n- a {MARK}\n")),
                1 => Just(format!("{MARK}\n")),
                1 => Just(format!(" {MARK}\r\n")),
                1 => Just(MARK.replace("prod", "prod:tag")),
                4 => filler(),
                2 => "[-?:,\\[\\]{}#&*!|>'\"%@ \\t\\r\\na-c0-9~.]{0,9}",
                1 => any::<String>(),
            ],
            0..8,
        ),
        revision in revision(),
    ) {
        let text = parts.concat();
        if let Ok(edited) = set(&text, &revision) {
            prop_assert_eq!(set(&edited.text, &revision), Ok(edited.clone()));
            prop_assert_eq!(set(&text, &revision), Ok(edited));
        }
    }
}
