//! Every row of the table of YAML forms that were tried when the parser was chosen, and what people write beside them.

use super::*;

/// Behind a value, for `shop:web:prod`.
const MARK: &str = r#"# {"$promotion": "shop:web:prod"}"#;

fn set(text: &str, revision: &str) -> Result<Edited, Refused> {
    edit(text, &PipelineId::new("shop", "web"), &Environment("prod".to_owned()), &Revision(revision.to_owned()))
}

/// Edits `template`, in which `§` stands for the marker and `V` for the value, which was `old` and must become `new`.
#[track_caller]
fn sets(template: &str, old: &str, revision: &str, new: &str) {
    let filled = |value: &str| template.replace('§', MARK).replace('V', value);
    assert_eq!(set(&filled(old), revision), Ok(Edited { text: filled(new), markers: 1 }), "{template}");
    assert_eq!(set(&filled(new), revision).map(|edited| edited.text), Ok(filled(new)), "{template}, a second time");
}

/// Why `template` is refused, and at which line.
#[track_caller]
fn refuses(template: &str, revision: &str, line: usize, why: &str) {
    match set(&template.replace('§', MARK), revision) {
        Err(Refused::Marker { line: at, reason }) => {
            assert_eq!(at, line, "{template}");
            assert!(reason.contains(why), "{template}: {reason}");
        }
        other => panic!("{template}: {other:?}"),
    }
}

#[test]
fn a_value_is_set_wherever_yaml_can_have_one() {
    for template in [
        "tag: V §\n",
        "tag: V §",
        "tag: V\t§\n",
        "\u{feff}tag: V §\n",
        "a: ü\r\ntag: V §\r\nb: 1\r\n",
        "a: 1\rtag: V §\rb: 1\r",
        "a: 1\n---\ntag: V §\n---\nc: 2\n...\n",
        "%YAML 1.2\n---\ntag: V §\n",
        "? tag\n: V §\n",
        "--- V §\n",
        "- V §\n- other\n",
        "- - V §\n",
        "- name: web\n  tag: V §\n",
        "tag: a\ntag: V §\n",
        "base: &base {a: 1}\nb:\n  <<: *base\n  tag: V §\n",
        "tag: &v V §\nother: *v\n",
        "tag: !!str V §\n",
        "image: {tag: V} §\n",
        "args: [V] §\n",
        "args: [\n  one,\n  V, §\n]\n",
        "tag: §\n  V\n",
        "§\ntag: V\n",
        "a: 1\n§\ntag: V\n",
        "a:\n  §\n  # another comment\n  tag: V # and one\n",
        "a:\n  §\n  - V\n",
        "§\n- name: V\n  other: x\n",
        "tag: V ##§\n",
        "§\ntag: V §\n",
    ] {
        let markers = template.matches('§').count();
        let filled = |value: &str| template.replace('§', MARK).replace('V', value);
        for (old, new) in [("1.2.2", "1.2.3"), ("'1.2.2'", "'1.2.3'"), ("\"1.2.2\"", "\"1.2.3\"")] {
            assert_eq!(set(&filled(old), "1.2.3"), Ok(Edited { text: filled(new), markers }), "{template}");
        }
    }
}

#[test]
fn a_text_that_is_read_as_no_string_gets_quotes() {
    for value in [
        "1.10",
        "1e3",
        "12e45678",
        "010",
        "on",
        "No",
        "~",
        "null",
        "2026-01-01",
        "1:30",
        "0x1f",
        "1_000",
        "+1",
        ".5",
        "-.Inf",
        "a: b",
        "x # y",
        "a:",
        "- a",
        "",
        " a",
        "a ",
        "[a",
        "{{a}}",
        "a,b",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a",
        "|",
        ">",
        "#",
        "---",
        "...",
        "=",
        "<<",
        "y",
        "2001-12-14t21:59:43.10-05:00",
    ] {
        sets("tag: V §\n", "1.2.2", value, &format!("\"{value}\""));
    }
    for value in
        ["1.2.3", "v1", "1.2.3-rc.1+build", "main@sha1:0a1b", "sha256:0a1b2c", "web:1.2", "2026-01", "é", "a/b", "1.x"]
    {
        sets("tag: V §\n", "1.2.2", value, value);
    }
    sets("tag: V §\n", "1.2.2", "it's", r#""it's""#);
    sets("tag: V §\n", "1.2.2", "q\"\\", r#""q\"\\""#);
    sets("tag: V §\n", "1.2.2", "a\nb\t\u{202e}\u{85}", r#""a\nb\t\U0000202E\U00000085""#);
    sets("tag: V §\n", "'1.2.2'", "it's", "'it''s'");
    sets("tag: V §\n", "'1.2.2'", "a\nb", r#""a\nb""#);
    sets("tag: V §\n", "\"1.2.2\"", "q\"\\", r#""q\"\\""#);
}

#[test]
fn a_value_that_is_right_keeps_its_bytes_and_a_number_gets_its_quotes() {
    for text in ["tag: '1.10' §\n", "tag: \"1.\\x310\" §\n", "tag: !!str 1.10 §\n"] {
        let text = text.replace('§', MARK);
        assert_eq!(set(&text, "1.10"), Ok(Edited { text: text.clone(), markers: 1 }));
    }
    sets("version: V §\n", "1.10", "1.10", "\"1.10\"");
}

#[test]
fn what_cannot_be_set_is_refused_with_its_line() {
    refuses("a: &v 1\ntag: *v §\n", "2", 2, "alias");
    refuses("a: 1\ntag: | §\n  1.2.2\n", "2", 2, "block");
    refuses("a: 1\ntag: >- §\n  1.2.2\n", "2", 2, "block");
    refuses("tag: §\n", "2", 1, "no value");
    refuses("tag: §\nb: 1\n", "2", 1, "no value");
    refuses("tag: &v §\nb: 1\n", "2", 1, "no value");
    refuses("- §\n- a\n", "2", 1, "no value");
    refuses("image: §\n  tag: 1\n", "2", 1, "mapping");
    refuses("images: §\n  - tag\n", "2", 1, "list");
    refuses("§\nimage:\n  tag: 1\n", "2", 1, "mapping");
    refuses("tag: !!str 1.2.2 §\n", "a: b", 1, "tag");
    refuses("tag: !!str 1.2.2 §\n", "1.10", 1, "tag");
    refuses("a: {b: 1, c: 2} §\n", "2", 1, "2 values");
    refuses("a: [1, 2] §\n", "2", 1, "2 values");
    refuses("§\n- {name: x, tag: y}\n", "2", 1, "2 values");
    refuses("a: [\n  1\n] §\n", "2", 3, "no value");
    refuses("§\n\ntag: 1\n", "2", 1, "no value");
    refuses("§\n---\ntag: 1\n", "2", 1, "no value");
    refuses("tag: 1\n§\n", "2", 2, "no value");
    refuses("§", "2", 1, "no value");
    refuses("tag: {{ .Values.tag }} §\n", "2", 1, "no value");
    let twice = format!("# {{\"$promotion\": \"shop:web:prod:image\"}}\nimage: web:1 {MARK}\n");
    refuses(&twice, "2", 2, "another marker");
    refuses("image: web:1 # {\"$promotion\": \"shop:web:prod:tga\"}\n", "2", 1, "\"tga\" is no part");
}

#[test]
fn what_is_no_marker_of_ours_changes_nothing() {
    for text in [
        "a: |\n  tag: 1 §\n",
        "a: \"tag: 1 §\"\n".replace('§', &MARK.replace('"', "\\\"")).as_str(),
        "a: 'x §'\n",
        "tag: 1 # {\"$promotion\": \"shop:web:production\"}\n",
        "tag: 1 # {\"$promotion\": \"shop:web:pro\"}\n",
        "tag: 1 # {\"$promotion\": \"shop:web\"}\n",
        "tag: 1 # {\"$promotion\": \"other:web:prod\"}\n",
        "tag: 1 # {\"$promotion\": \"shop:web:prod\", \"n\": 1}\n",
        "tag: 1 # {\"$promotion\": [\"shop:web:prod\"]}\n",
        "tag: 1 # {\"$imagepolicy\": \"shop:web:prod\"}\n",
        "tag: 1 # see {\"$promotion\": \"shop:web:prod\"}\n",
        "tag: 1 § please\n",
        "tag: 1 # {\"$promotion\": \"shop:web:prod\"\n",
        "",
    ] {
        let text = text.replace('§', MARK);
        assert_eq!(set(&text, "2"), Ok(Edited { text: text.clone(), markers: 0 }), "{text}");
    }
    let further = "tag: 1 #{ \"note\": \"by hand\", \"$promotion\":\"shop:web:prod\" }\n";
    assert_eq!(set(further, "2").unwrap().text, further.replacen('1', "2", 1).replace("2 #", "\"2\" #"));
}

#[test]
fn what_is_no_yaml_is_left_to_others_quickly() {
    let deep = |open: &str, count: usize| format!("{}\ntag: 1 §\n", open.repeat(count));
    for text in [
        "a:\n\tb: 1\ntag: 1 §\n".to_owned(),
        "tag: 1 §\nb: *missing\n".to_owned(),
        "{{- if .Values.tag }}\ntag: 1 §\n{{- end }}\n".to_owned(),
        deep("[", 100_000),
        deep("{", 300),
        format!("{}: 1\ntag: 1 §\n", "k".repeat(1_025)),
    ] {
        let refused = set(&text.replace('§', MARK), "2");
        assert!(matches!(refused, Err(Refused::Unreadable { line: 1.., .. })), "{text:.60}: {refused:?}");
    }
    let long = "#".repeat(FILE_BYTES_MAX + 1);
    assert!(matches!(set(&long, "2"), Err(Refused::Unreadable { .. })));
}

#[test]
fn many_comments_or_markers_are_no_trouble() {
    let comments = "  # another\n".repeat(20_000);
    let text = format!("tag:\n{comments}  §\n  1.2.2\n").replace('§', MARK);
    assert_eq!(set(&text, "1.2.3"), Ok(Edited { text: text.replace("1.2.2", "1.2.3"), markers: 1 }));
    let text = format!("{}tag: 1.2.2\n", format!("{MARK}\n").repeat(10_000));
    assert_eq!(set(&text, "1.2.3"), Ok(Edited { text: text.replace("1.2.2", "1.2.3"), markers: 10_000 }));
    let text = format!("{}- [{}1]\n", format!("{MARK}\n").repeat(10_000), "1,".repeat(100_000));
    assert!(matches!(set(&text, "2"), Err(Refused::Marker { line: 1, .. })));
}

#[test]
fn a_suffix_sets_its_part_of_an_image_reference() {
    let old = format!("sha256:{}", "0".repeat(64));
    let new = format!("sha256:{}", "a".repeat(64));
    let template = |part: &str| format!("image: V # {{\"$promotion\": \"shop:web:prod:{part}\"}}\n");
    for (part, value, revision, expected) in [
        ("tag", "ghcr.io/shop/web:1.2", "1.3", Some("ghcr.io/shop/web:1.3")),
        ("tag", "localhost:5000/web", "1.3", Some("localhost:5000/web:1.3")),
        ("tag", "localhost:5000/web:1", "1.3", Some("localhost:5000/web:1.3")),
        ("tag", "v1.2", "v1.3", Some("v1.3")),
        ("tag", "v1.2", &format!("v1.3@{new}"), Some("v1.3")),
        ("tag", "v1.2", "ghcr.io/shop/web:v1.3", Some("v1.3")),
        ("tag", &format!("web:1.2@{old}"), "1.3", None),
        ("tag", "web:1.2", &new, None),
        ("tag", "web:1.2", "not/../a tag", None),
        ("digest", &format!("web@{old}"), &new, Some(&format!("web@{new}"))),
        ("digest", &old, &format!("1.3@{new}"), Some(&new)),
        ("digest", &format!("web:1.2@{old}"), &format!("1.3@{new}"), None),
        ("digest", &format!("web:1.2@{old}"), &new, None),
        ("digest", "web:1.2", "1.3", None),
        ("image", "ghcr.io/shop/web:1.2", "1.3", Some("ghcr.io/shop/web:1.3")),
        ("image", &format!("web:1.2@{old}"), &format!("1.3@{new}"), Some(&format!("web:1.3@{new}"))),
        ("image", &format!("web:1.2@{old}"), "1.3", Some("web:1.3")),
        ("image", "web:1.2", &new, Some(&format!("web@{new}"))),
        ("image", "web", "ghcr.io/shop/app:1.3", Some("ghcr.io/shop/app:1.3")),
        ("image", "web:1.2", "No Tag", None),
        ("name", "ghcr.io/shop/web", "ghcr.io/shop/app:1.3", Some("ghcr.io/shop/app")),
        ("name", "ghcr.io/shop/web:1.2", "ghcr.io/shop/app:1.3", Some("ghcr.io/shop/app:1.2")),
        ("name", "ghcr.io/shop/web", "1.3", None),
    ] {
        let text = template(part).replace('V', value);
        let edited = set(&text, revision).map(|edited| edited.text);
        match expected {
            Some(expected) => {
                assert_eq!(edited, Ok(template(part).replace('V', expected)), "{part} {value} {revision}");
            }
            None => {
                assert!(
                    matches!(edited, Err(Refused::Marker { line: 1, .. })),
                    "{part} {value} {revision}: {edited:?}"
                );
            }
        }
    }
}

#[test]
fn all_markers_of_a_file_are_set_and_those_of_others_are_not() {
    let text = r#"
spec:
  values:
    tag: 1.2.2 # {"$promotion": "shop:web:prod"}
    old: 1.2.2 # {"$promotion": "shop:web:staging"}
---
# {"$promotion": "shop:web:prod:image"}
image: "ghcr.io/shop/web:1.2.2"
"#;
    let edited = set(text, "1.2.3").unwrap();
    assert_eq!(edited.markers, 2);
    assert_eq!(edited.text, text.replace("    tag: 1.2.2", "    tag: 1.2.3").replace("web:1.2.2\"", "web:1.2.3\""));
}
