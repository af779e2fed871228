//! Keys as files of text: base64 between two lines with a label.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The first block of a text: its label and its bytes ([RFC 7468](https://www.rfc-editor.org/rfc/rfc7468)).
pub(crate) fn block(text: &str) -> Option<(&str, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_ascii_whitespace().collect();
    Some((label, STANDARD.decode(body).ok()?))
}

/// A text of one block, with lines of 70 characters, as OpenSSH writes them.
pub(crate) fn text(label: &str, bytes: &[u8]) -> String {
    let body = STANDARD.encode(bytes);
    let mut lines = vec![format!("-----BEGIN {label}-----")];
    let mut rest = body.as_str();
    while let Some((line, more)) = rest.split_at_checked(70) {
        lines.push(line.to_owned());
        rest = more;
    }
    lines.extend(Some(rest).filter(|rest| !rest.is_empty()).map(str::to_owned));
    lines.push(format!("-----END {label}-----"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_as_it_is_written() {
        for length in [0, 1, 52, 53, 105, 300] {
            let bytes = vec![7; length];
            let text = text("A KEY", &bytes);
            assert!(text.lines().all(|line| line.len() <= 70), "{text}");
            assert_eq!(block(&format!("words\r\n{}", text.replace('\n', "\r\n"))), Some(("A KEY", bytes)));
        }
        for none in
            ["", "-----BEGIN A-----\nAAAA\n-----END B-----", "-----BEGIN A-----\n?\n-----END A-----", "-----BEGIN A"]
        {
            assert_eq!(block(none), None, "{none}");
        }
    }
}
