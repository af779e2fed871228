//! The little XML that CloudFront's API needs: writing elements, and reading one small document.

use std::fmt::Write as _;

/// The namespace of every document of API version 2020-05-31.
pub const NAMESPACE: &str = "http://cloudfront.amazonaws.com/doc/2020-05-31/";

/// Deepest nesting read; an invalidation batch has 4 levels.
const DEPTH_MAX: usize = 16;

/// A document with one root element and its content, which is XML already.
pub fn document(root: &str, content: &str) -> String {
    format!("<?xml version=\"1.0\"?>\n<{root} xmlns=\"{NAMESPACE}\">{content}</{root}>")
}

/// An element around text, which is escaped.
pub fn text(name: &str, value: &str) -> String {
    format!("<{name}>{}</{name}>", escape(value))
}

/// An element around XML.
pub fn element(name: &str, content: &str) -> String {
    format!("<{name}>{content}</{name}>")
}

/// AWS's way of writing a list: `Quantity`, and `Items` only when there are any.
pub fn list<'a>(name: &str, item: &str, values: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<String> = values.map(|value| text(item, value)).collect();
    list_of(name, &items)
}

/// The same for items that are XML already.
pub fn list_of(name: &str, items: &[String]) -> String {
    let quantity = text("Quantity", &items.len().to_string());
    let items = if items.is_empty() { String::new() } else { element("Items", &items.concat()) };
    element(name, &format!("{quantity}{items}"))
}

/// Reads a document into (path, text) pairs in document order, one for each element without child elements: the path is
/// the element names from the root, joined by `/`. `None` when it is not well-formed, or uses what AWS clients never
/// send (document types, CDATA).
pub fn leaves(document: &str) -> Option<Vec<(String, String)>> {
    let mut leaves = Vec::new();
    let mut path: Vec<&str> = Vec::new();
    // Whether the element opened last has had no child: only then its text counts.
    let mut is_leaf = false;
    let mut rest = document.trim();
    loop {
        let open = rest.find('<')?;
        let (content, tag) = rest.split_at_checked(open)?;
        let (tag, after) = tag.strip_prefix('<')?.split_once('>')?;
        rest = after;
        if tag.starts_with('?') || tag.starts_with("!--") {
            continue;
        }
        if tag.starts_with('!') {
            return None;
        }
        if let Some(name) = tag.strip_prefix('/') {
            if path.last().copied() != Some(name.trim()) {
                return None;
            }
            if is_leaf {
                leaves.push((path.join("/"), unescape(content)?));
            }
            is_leaf = false;
            path.pop();
        } else {
            let closed = tag.ends_with('/');
            path.push(tag.trim_end_matches('/').split_whitespace().next()?);
            is_leaf = true;
            if path.len() > DEPTH_MAX {
                return None;
            }
            if closed {
                leaves.push((path.join("/"), String::new()));
                path.pop();
                is_leaf = false;
            }
        }
        if path.is_empty() {
            return rest.trim().is_empty().then_some(leaves);
        }
    }
}

fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            control if control.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(escaped, "&#x{:X};", u32::from(control));
            }
            other => escaped.push(other),
        }
    }
    escaped
}

fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('&');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let (entity, rest) = part.split_once(';')?;
        plain.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            number => {
                let number = number.strip_prefix('#')?;
                let code = match number.strip_prefix('x') {
                    Some(hex) => u32::from_str_radix(hex, 16),
                    None => number.parse(),
                };
                char::from_u32(code.ok()?)?
            }
        });
        plain.push_str(rest);
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(path: &str, text: &str) -> (String, String) {
        (path.to_owned(), text.to_owned())
    }

    #[test]
    fn a_batch_as_the_sdk_writes_it_is_read_leaf_by_leaf() {
        let batch = "<?xml version=\"1.0\"?><B xmlns=\"x\"><P><Q>2</Q><I><Path>/a&amp;b</Path><Path>/&#x2A;</Path></I></P>\
                     <Empty/></B>";
        let expected = [pair("B/P/Q", "2"), pair("B/P/I/Path", "/a&b"), pair("B/P/I/Path", "/*"), pair("B/Empty", "")];
        assert_eq!(leaves(batch).expect("well-formed"), expected);
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        let deep = "<a>".repeat(DEPTH_MAX + 1);
        for broken in
            ["", "text", "<a>", "<a></b>", "<a>&nope;</a>", "<a/><b/>", "<!DOCTYPE a><a/>", "<a>&#xD800;</a>", &deep]
        {
            assert_eq!(leaves(broken), None, "{broken}");
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let nasty = "<&\">'\u{1}é";
        let written = document("Root", &text("Leaf", nasty));
        assert_eq!(leaves(&written).expect("well-formed"), [pair("Root/Leaf", nasty)]);
    }
}
