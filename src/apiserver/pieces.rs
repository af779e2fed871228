//! The answer to a list, cut into its items as the bytes come in: each is handed on and forgotten, so that a page of hundreds of
//! big objects costs no more memory than its biggest (T2).
//!
//! Only strings and brackets are looked at. Whether an item is good JSON is found when it is decoded; the rest of the answer,
//! which is small, is kept for `text`.

use super::OBJECT_BYTES_MAX;
use super::failure::Failure;

/// Most bytes of an answer beside its items. Metadata of a list has some hundreds.
const REST_BYTES_MAX: usize = 64 * 1024;

/// The field that has the items.
const ITEMS: &[u8] = b"items";

/// Where in the items we are: inside the answer's own braces, and the brackets of the items.
const ITEMS_DEPTH: usize = 2;

/// An answer so far.
#[derive(Default)]
pub(crate) struct Pieces {
    depth: usize,
    in_string: bool,
    escaped: bool,
    in_items: bool,
    /// The last string of the answer itself, which is the name of the field when a bracket follows.
    field: Vec<u8>,
    item: Vec<u8>,
    rest: Vec<u8>,
}

impl Pieces {
    /// Takes more bytes, and hands on each item that is complete.
    ///
    /// # Errors
    /// When an item, or all that is none, is longer than anything an API server sends.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut found: impl FnMut(&[u8])) -> Result<(), Failure> {
        for byte in bytes {
            self.take(*byte, &mut found);
        }
        let too_long = |what: &str, max: usize| Err(Failure::unanswered(format!("{what} of more than {max} bytes")));
        if self.item.len() > OBJECT_BYTES_MAX {
            return too_long("an object", OBJECT_BYTES_MAX);
        }
        if self.rest.len() > REST_BYTES_MAX { too_long("a list without its items", REST_BYTES_MAX) } else { Ok(()) }
    }

    /// The answer without its items.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.rest
    }

    fn take(&mut self, byte: u8, found: &mut impl FnMut(&[u8])) {
        if self.in_string {
            self.in_string = byte != b'"' || self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            if self.depth == 1 && self.in_string {
                self.field.push(byte);
            }
            return self.keep(byte);
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 {
                    self.field.clear();
                }
            }
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == ITEMS_DEPTH && byte == b'[' && self.field == ITEMS {
                    self.rest.push(byte);
                    self.in_items = true;
                    return;
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.in_items && self.depth < ITEMS_DEPTH {
                    self.end_item(found);
                    self.in_items = false;
                }
            }
            b',' if self.in_items && self.depth == ITEMS_DEPTH => return self.end_item(found),
            _ => {}
        }
        self.keep(byte);
    }

    fn keep(&mut self, byte: u8) {
        if !self.in_items {
            self.rest.push(byte);
        } else if !self.item.is_empty() || !byte.is_ascii_whitespace() {
            self.item.push(byte);
        }
    }

    fn end_item(&mut self, found: &mut impl FnMut(&[u8])) {
        if !self.item.is_empty() {
            found(&self.item);
            self.item.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Cuts `text`, fed `step` bytes at a time.
    fn cut(text: &str, step: usize) -> (Vec<Value>, Value) {
        let mut pieces = Pieces::default();
        let mut items = Vec::new();
        for part in text.as_bytes().chunks(step) {
            pieces.feed(part, |item| items.push(serde_json::from_slice(item).unwrap())).unwrap();
        }
        (items, serde_json::from_slice(pieces.rest()).unwrap())
    }

    // Faults: T2
    #[test]
    fn items_come_out_whole_however_the_bytes_come_in() {
        let items = json!([
            {"metadata": {"name": "a", "items": [1, {"items": []}]}, "text": "\"]},[{\\", "empty": {}},
            null, [1, [2]], "items", {"é": "\u{1f600}"}, {},
        ]);
        let list = json!({"apiVersion": "v1", "kind": "items", "metadata": {"continue": "a\"b", "items": [7]}, "items": items});
        let before = serde_json::to_string(&list).unwrap();
        let pretty = serde_json::to_string_pretty(&list).unwrap();
        let after = format!(
            "{{\"items\": {items},\n\"metadata\": {{\"continue\": \"a\\\"b\", \"items\": [7]}}, \"kind\": \"items\"}}"
        );
        for text in [before, pretty, after] {
            for step in [1, 2, 3, 7, text.len()] {
                let (found, rest) = cut(&text, step);
                assert_eq!(Value::from(found), items);
                assert_eq!((&rest["items"], &rest["metadata"]["continue"]), (&json!([]), &json!("a\"b")));
            }
        }
    }

    #[test]
    fn a_list_of_nothing_has_no_items() {
        for text in [r#"{"items":[]}"#, r#"{"items":null}"#, r#"{"items": [ ] , "metadata":{}}"#, "{}"] {
            assert!(cut(text, 1).0.is_empty());
        }
    }

    #[test]
    fn what_no_server_sends_is_refused_before_it_fills_the_memory() {
        let mut pieces = Pieces::default();
        pieces.feed(b"{\"items\":[\"", |_| {}).unwrap();
        let mut fed = (0..20).map(|_| pieces.feed(&[b'x'; 1024 * 1024], |_| {}));
        assert!(fed.any(|fed| fed.is_err_and(|failure| failure.message.starts_with("an object of more than"))));
        let mut pieces = Pieces::default();
        assert!(pieces.feed(&[b'x'; REST_BYTES_MAX + 1], |_| {}).is_err());
    }
}
