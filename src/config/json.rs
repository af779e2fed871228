//! JSON with places: every value knows where it stands, which `serde_json` does not tell.
//!
//! `serde_json` decides first whether the text is JSON at all, including its bound on nesting; what is here only walks
//! over text that passed, and gives up quietly on anything else.

/// A value, and the byte offset it starts at.
#[derive(Debug, PartialEq)]
pub(super) struct Node {
    pub offset: usize,
    pub value: Json,
}

/// What a value is. Numbers, truth values and null keep their text.
#[derive(Debug, PartialEq)]
pub(super) enum Json {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text(String),
    Number(String),
    Truth(bool),
    Null,
}

/// One member of an object, in the order of the file; a name may come twice.
#[derive(Debug, PartialEq)]
pub(super) struct Member {
    pub name: String,
    /// Where the name stands.
    pub offset: usize,
    pub node: Node,
}

impl Json {
    /// With its article, for "is …".
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Object(_) => "an object",
            Self::Array(_) => "a list",
            Self::Text(_) => "a text",
            Self::Number(_) => "a number",
            Self::Truth(_) => "a truth value",
            Self::Null => "null",
        }
    }
}

/// Why a text is not JSON, and where: line and column from 1.
pub(super) struct SyntaxError {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

/// Parses a whole text.
pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    // serde_json's messages name what was expected and never quote the text.
    serde_json::from_str::<serde_json::Value>(text).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        SyntaxError { line: error.line().max(1), column: error.column().max(1), message }
    })?;
    let mut scanner = Scanner { text, at: 0 };
    scanner.node().ok_or(SyntaxError { line: 1, column: 1, message: "it cannot be read".to_owned() })
}

/// The JSON pointer to a member (RFC 6901).
pub(super) fn pointer(parent: &str, name: &str) -> String {
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn node(&mut self) -> Option<Node> {
        let offset = self.skip_blank();
        let value = match self.peek()? {
            b'{' => Json::Object(self.members()?),
            b'[' => Json::Array(self.items()?),
            b'"' => Json::Text(self.string()?),
            _ => self.literal()?,
        };
        Some(Node { offset, value })
    }

    fn members(&mut self) -> Option<Vec<Member>> {
        let mut members = Vec::new();
        self.take(b'{')?;
        while self.next_item(b'}', members.is_empty())? {
            let offset = self.skip_blank();
            let name = self.string()?;
            self.skip_blank();
            self.take(b':')?;
            members.push(Member { name, offset, node: self.node()? });
        }
        Some(members)
    }

    fn items(&mut self) -> Option<Vec<Node>> {
        let mut items = Vec::new();
        self.take(b'[')?;
        while self.next_item(b']', items.is_empty())? {
            items.push(self.node()?);
        }
        Some(items)
    }

    /// Steps over the comma before an item, or over the end.
    fn next_item(&mut self, end: u8, is_first: bool) -> Option<bool> {
        self.skip_blank();
        if self.peek()? == end {
            self.at += 1;
            return Some(false);
        }
        if !is_first {
            self.take(b',')?;
        }
        Some(true)
    }

    fn string(&mut self) -> Option<String> {
        let rest = self.text.get(self.at..)?;
        let mut is_escaped = false;
        let end = rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        })?;
        // Both quotes belong to it.
        let quoted = rest.get(..end + 2)?;
        self.at += quoted.len();
        serde_json::from_str(quoted).ok()
    }

    fn literal(&mut self) -> Option<Json> {
        let rest = self.text.get(self.at..)?;
        let is_end = |c: char| c.is_ascii_whitespace() || matches!(c, ',' | ']' | '}');
        let word = rest.get(..rest.find(is_end).unwrap_or(rest.len()))?;
        self.at += word.len();
        Some(match word {
            "" => return None,
            "true" => Json::Truth(true),
            "false" => Json::Truth(false),
            "null" => Json::Null,
            number => Json::Number(number.to_owned()),
        })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn skip_blank(&mut self) -> usize {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_where_it_stands() {
        let node = parse("{\"a\\\"\": [1.5e3 , true,null],\n \"b\": \"\\\\\"}").ok().unwrap();
        let Json::Object(members) = node.value else { panic!() };
        assert_eq!((members[0].name.as_str(), members[0].offset), ("a\"", 1));
        let Json::Array(items) = &members[0].node.value else { panic!() };
        let found: Vec<_> = items.iter().map(|item| (item.offset, &item.value)).collect();
        assert_eq!(found, [(9, &Json::Number("1.5e3".to_owned())), (17, &Json::Truth(true)), (22, &Json::Null)]);
        assert_eq!((members[1].offset, &members[1].node.value), (30, &Json::Text("\\".to_owned())));
    }

    #[test]
    fn what_is_no_json_is_refused_without_quoting_it() {
        let error = parse("{\"url\": \"secret\" \"x\": 1}").err().unwrap();
        assert_eq!((error.line, error.column, error.message.as_str()), (1, 18, "expected `,` or `}`"));
        assert!(parse("").is_err());
        assert!(parse(&"[".repeat(10_000)).is_err());
    }

    #[test]
    fn pointers_escape_what_they_must() {
        assert_eq!(pointer("/webhooks/0", "a/b~c"), "/webhooks/0/a~1b~0c");
    }
}
