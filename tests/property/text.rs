//! What others chose comes to people visible and short, and honest words as they are (T12).

use kernel::text::{clean, cut, head, is_hidden, visible, visible_json, visible_lines};
use proptest::prelude::*;

/// Controls, line breaks, directions, and what has no width, by their numbers in the Unicode standard.
const HIDDEN: [u32; 34] = [
    0x00, 0x07, 0x08, 0x09, 0x0a, 0x0d, 0x1b, 0x7f, 0x80, 0x85, 0x9b, 0x9f, 0xad, 0x61c, 0x200b, 0x200c, 0x200d,
    0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2060, 0x2066, 0x2067, 0x2068, 0x2069,
    0xfeff, 0xe0001, 0xe007f,
];

fn hidden() -> impl Strategy<Value = char> {
    prop_oneof![prop::sample::select(HIDDEN.to_vec()), 0_u32..32, 0x7f_u32..0xa0]
        .prop_map(|code| char::from_u32(code).unwrap())
}

/// Words as people write them, in several scripts, and as the program does.
fn honest() -> impl Strategy<Value = String> {
    "[ -~äöüßéñ中文字עבריתрусский→…•“”–]{0,60}"
}

fn hostile() -> impl Strategy<Value = String> {
    let part =
        prop_oneof![honest(), any::<String>(), prop::collection::vec(hidden(), 0..8).prop_map(String::from_iter)];
    prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

fn shows_all(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || HIDDEN.contains(&u32::from(c)))
}

proptest! {
    // Faults: T12
    #[test]
    fn t12_nothing_hides_in_a_clean_text_and_it_is_as_short_as_asked(text in hostile(), bytes_max in 0_usize..400) {
        let cleaned = clean(&text, bytes_max);
        prop_assert!(shows_all(&cleaned), "{cleaned:?}");
        prop_assert!(cleaned.len() <= bytes_max, "{} bytes", cleaned.len());
        prop_assert_eq!(&clean(&cleaned, bytes_max), &cleaned, "cleaned twice");
        let whole = visible(&text);
        prop_assert!(shows_all(&whole), "{whole:?}");
        prop_assert_eq!(&visible(&whole), &whole);
        // What was not cut is whole, what was cut is its beginning.
        let is_beginning = cleaned.strip_suffix('…').is_some_and(|kept| whole.starts_with(kept));
        prop_assert!(cleaned == whole || is_beginning || bytes_max < 3, "{cleaned:?} of {whole:?}");
    }

    // Faults: T12
    #[test]
    fn t12_honest_words_stay_as_they_are(text in honest()) {
        prop_assert_eq!(&visible(&text), &text);
        prop_assert_eq!(&clean(&text, text.len()), &text);
        let lines = format!("{text}\n{text}\n");
        prop_assert_eq!(&visible_lines(&lines), &lines);
    }

    #[test]
    fn t12_only_line_breaks_of_ours_stay_in_lines(text in hostile()) {
        let lines = visible_lines(&text);
        prop_assert!(lines.split('\n').all(shows_all), "{lines:?}");
        prop_assert_eq!(lines.matches('\n').count(), text.matches('\n').count());
    }

    // Faults: T12
    #[test]
    fn t12_a_document_shows_all_and_is_the_same_to_a_program(texts in prop::collection::vec(hostile(), 0..4)) {
        let value = serde_json::json!({ "texts": texts });
        for document in [value.to_string(), format!("{value:#}")] {
            let shown = visible_json(&document);
            prop_assert!(shown.split('\n').all(shows_all), "{shown:?}");
            prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&shown).unwrap(), &value);
        }
    }

    #[test]
    fn a_text_is_cut_at_a_character(text in any::<String>(), bytes_max in 3_usize..80) {
        let short = cut(&text, bytes_max);
        prop_assert!(short.len() <= bytes_max && (short == text || short.ends_with('…')));
        prop_assert!(text.starts_with(head(&text, bytes_max)) && head(&text, bytes_max).len() <= bytes_max);
    }
}

#[test]
fn t12_each_mark_is_shown_by_its_number() {
    assert_eq!(visible("a\nb\u{1b}[31m\u{202e}\u{200b}"), "a\\nb\\u{1b}[31m\\u{202e}\\u{200b}");
    assert_eq!(clean(&"\u{202e}".repeat(3), 20), "\\u{202e}\\u{202e}…", "no form is cut in two");
    let seen = HIDDEN.iter().filter(|code| !is_hidden(char::from_u32(**code).unwrap())).count();
    println!("T12: marks of {} that nobody would see {seen} (aim 0)", HIDDEN.len());
    assert_eq!(seen, 0);
}
