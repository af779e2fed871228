//! How a text is written as a YAML scalar, so that every reader takes it for that text.

use std::ops::Range;

use granit_parser::ScalarStyle;

use kernel::text;

/// Texts that a reader takes for something else where they stand without quotes, whatever their case: those of YAML 1.2
/// (<https://yaml.org/spec/1.2.2/#103-core-schema>) and of 1.1, which many readers still follow (<https://yaml.org/type/>).
const RESERVED: [&str; 18] = [
    "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", "+.inf", "-.inf", ".nan", "=", "<<",
    "-",
];

/// A scalar of a file.
#[derive(Clone)]
pub(super) struct Scalar {
    /// The number of its event.
    pub(super) event: usize,
    /// Its bytes in the file, with its quotes.
    pub(super) at: Range<usize>,
    /// How it is written.
    pub(super) style: ScalarStyle,
    /// Whether it has a tag, such as `!!str`.
    pub(super) tagged: bool,
    /// The text that it stands for.
    pub(super) value: String,
}

impl Scalar {
    /// The text to write in its place for `value`: in the quotes that it has, or in the first that are needed.
    pub(super) fn written(&self, text: &str, value: &str) -> Result<String, String> {
        let now = text.get(self.at.clone()).unwrap_or_default();
        if now.is_empty() {
            return Err("there is no value yet: write one first".to_owned());
        }
        let keep = self.value == value;
        match self.style {
            ScalarStyle::Plain if is_plain(value) => Ok(value.to_owned()),
            ScalarStyle::Plain if self.tagged && !keep => {
                Err("the value has a tag, and the new one needs quotes: quote it yourself, or remove the tag"
                    .to_owned())
            }
            ScalarStyle::Plain if !self.tagged => Ok(double_quoted(value)),
            ScalarStyle::Literal | ScalarStyle::Folded => {
                Err("the value is a block of text: write it on one line".to_owned())
            }
            _ if keep => Ok(now.to_owned()),
            ScalarStyle::SingleQuoted if !value.contains(text::is_hidden) => {
                Ok(format!("'{}'", value.replace('\'', "''")))
            }
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted | ScalarStyle::Plain => Ok(double_quoted(value)),
        }
    }
}

/// Whether a text without quotes is that text to every reader. `false` for some where it would be: quotes do no harm.
fn is_plain(value: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() && !text::is_hidden(c) || "._-+/@:%=~$^*&!?".contains(c);
    value.starts_with(|c: char| c.is_alphanumeric() || "._/+-".contains(c))
        && value.chars().all(is_inside)
        && !value.ends_with(':')
        && !value.starts_with("---")
        && value != "..."
        && !RESERVED.contains(&value.to_ascii_lowercase().as_str())
        && !is_number(value)
        && !is_date(value)
}

/// Numbers of YAML 1.1 and 1.2: `010`, `0x1f`, `1_000`, `1.10`, `1e3`, `190:20:30`.
fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    let all = |text: &str, radix| text.chars().all(|c| c == '_' || c.is_digit(radix));
    let prefixed = [("0x", 16), ("0o", 8), ("0b", 2)];
    if prefixed.iter().any(|(prefix, radix)| digits.strip_prefix(prefix).is_some_and(|rest| all(rest, *radix))) {
        return true;
    }
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    whole.split(':').chain([fraction, exponent]).all(|part| all(part, 10))
        && digits.contains(|c: char| c.is_ascii_digit())
}

/// A date of YAML 1.1, alone or with a time: `2026-01-01`, `2001-12-14t21:59:43.10-05:00`.
fn is_date(value: &str) -> bool {
    let mut parts = value.splitn(3, '-');
    let mut number = |digits_max: usize| {
        let part = parts.next().unwrap_or_default();
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        (1..=digits_max).contains(&digits).then(|| part.split_at_checked(digits).map_or("", |(_, rest)| rest))
    };
    number(4) == Some("")
        && number(2) == Some("")
        && number(2).is_some_and(|rest| rest.is_empty() || rest.starts_with(['t', 'T']))
}

fn double_quoted(value: &str) -> String {
    let mut quoted = String::from('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if text::is_hidden(c) => quoted.push_str(&format!("\\U{:08X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
