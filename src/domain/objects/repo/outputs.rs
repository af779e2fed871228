//! Outputs of a configuration that a Secret gets: which ones, and the values that its keys have by what the tool says.
//!
//! The controller never sees a value: the values go from the step `output` to the step `publish` of the same pod, and from there to
//! the API server. So nothing of a value is in an error.
//!
//! Not for writing the Secret; that is the adapter's.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The annotation of a Secret that says which Repo of its namespace may write outputs to it.
pub const OUTPUTS_OF: &str = "allclear.dev/outputs-of";

/// Outputs that may be named. The CRD says the same.
pub const NAMES_MAX: usize = 50;

/// Bytes of the file with the outputs that are read, with those that are not named.
pub const FILE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of all values together. A Secret has room for 1 MiB
/// (<https://kubernetes.io/docs/concepts/configuration/secret/#restriction-data-size>), and other keys of it need some.
pub const VALUES_BYTES_MAX: usize = 960 * 1024;

/// The longest key of a Secret (<https://kubernetes.io/docs/concepts/configuration/secret/#restriction-names-data>).
pub const KEY_CHARS_MAX: usize = 253;

/// Which outputs go to which Secret of the Repo's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outputs {
    pub secret: String,
    pub names: Vec<String>,
}

impl Outputs {
    /// What a hash of a spec is made of.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        ["outputs", self.secret.as_str()].into_iter().chain(self.names.iter().map(String::as_str))
    }
}

/// Whether a Secret can have this key.
pub fn is_key(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    // The kubelet cannot mount these two, nor what begins with two dots.
    let is_path = name == "." || name.starts_with("..");
    !name.is_empty() && name.len() <= KEY_CHARS_MAX && name.bytes().all(is_known) && !is_path
}

/// Why there is nothing to write. It repeats names, never a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOutputs {
    #[error("the step output wrote more than {} MiB", FILE_BYTES_MAX >> 20)]
    TooLong,
    #[error("what the step output wrote is not what terraform output -json writes")]
    Unreadable,
    #[error(
        "there is no output {}: correct spec.outputs.names or the configuration. Nothing was written, so that no key keeps a value that \
         is out of date",
        .0.join(", ")
    )]
    Missing(Vec<String>),
    #[error("the outputs that are named have {0} bytes, and a Secret is given {VALUES_BYTES_MAX} at most")]
    TooLarge(usize),
}

/// One output, as far as it matters.
#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

/// The values of the outputs that are named: of a text the text, of anything else its JSON as it was written. An output whose value is null is none, as
/// for the tool itself.
///
/// # Errors
/// All of them or none: when one is not there, or they are too much for a Secret.
pub fn chosen(json: &[u8], names: &[String]) -> Result<BTreeMap<String, Vec<u8>>, NoOutputs> {
    if json.len() > FILE_BYTES_MAX {
        return Err(NoOutputs::TooLong);
    }
    let all: BTreeMap<String, Output<'_>> = serde_json::from_slice(json).map_err(|_| NoOutputs::Unreadable)?;
    let mut values = BTreeMap::new();
    let mut missing = Vec::new();
    for name in names {
        match all.get(name).and_then(|output| output.value).filter(|value| value.get() != "null") {
            Some(value) => {
                let text: Option<String> = serde_json::from_str(value.get()).ok();
                values.insert(name.clone(), text.unwrap_or_else(|| value.get().to_owned()).into_bytes());
            }
            None => missing.push(name.clone()),
        }
    }
    if !missing.is_empty() {
        return Err(NoOutputs::Missing(missing));
    }
    let bytes = values.values().map(Vec::len).fold(0, usize::saturating_add);
    if bytes > VALUES_BYTES_MAX { Err(NoOutputs::TooLarge(bytes)) } else { Ok(values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str, names: &[&str]) -> Result<Vec<(String, String)>, NoOutputs> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Ok(chosen(json.as_bytes(), &names)?.into_iter().map(|(name, value)| (name, text(value))).collect())
    }

    /// As Terraform 1.11 writes it.
    const SAID: &str = r#"{
  "endpoint": {"sensitive": false, "type": "string", "value": "https://db.example.com/\"a\"\n"},
  "password": {"sensitive": true, "type": "string", "value": "hunter2"},
  "port": {"sensitive": false, "type": "number", "value": 12345678901234567890123},
  "zones": {"sensitive": false, "type": ["list", "string"], "value": ["a", "b"]},
  "quoted": {"sensitive": false, "type": "string", "value": "null"},
  "none": {"sensitive": false, "type": "dynamic", "value": null}
}"#;

    #[test]
    fn a_text_is_written_as_it_is_and_anything_else_as_its_json() {
        let pairs = |all: &[(&str, &str)]| all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let expected: Vec<(String, String)> = pairs(&[
            ("endpoint", "https://db.example.com/\"a\"\n"),
            ("port", "12345678901234567890123"),
            ("quoted", "null"),
            ("zones", r#"["a", "b"]"#),
        ]);
        assert_eq!(of(SAID, &["zones", "endpoint", "port", "quoted"]), Ok(expected));
    }

    #[test]
    fn what_is_missing_is_named_and_then_nothing_is_written() {
        let missing = of(SAID, &["endpoint", "vpc_id", "none"]).unwrap_err();
        assert!(missing.to_string().starts_with("there is no output vpc_id, none: "), "{missing}");
        assert_eq!(of("{}", &["a"]), Err(NoOutputs::Missing(vec!["a".to_owned()])));
    }

    #[test]
    fn no_value_is_in_an_error() {
        let broken = [
            SAID.replace('}', ""),
            SAID.replace(r#"{"sensitive": true, "type": "string", "value": "hunter2"}"#, r#""hunter2""#),
            r#""hunter2""#.to_owned(),
            "hunter2".to_owned(),
        ];
        for json in broken {
            let why = of(&json, &["password"]).unwrap_err();
            assert_eq!(why, NoOutputs::Unreadable);
            assert!(!format!("{why} {why:?}").contains("hunter2"));
        }
    }

    #[test]
    fn what_a_secret_has_no_room_for_is_refused() {
        let with = |bytes: usize| format!(r#"{{"a": {{"value": "{}"}}, "b": {{"value": "b"}}}}"#, "a".repeat(bytes));
        assert!(of(&with(VALUES_BYTES_MAX - 1), &["a", "b"]).is_ok());
        assert_eq!(of(&with(VALUES_BYTES_MAX), &["a", "b"]), Err(NoOutputs::TooLarge(VALUES_BYTES_MAX + 1)));
        assert!(of(&with(VALUES_BYTES_MAX), &["b"]).is_ok(), "only what is named counts");
        assert_eq!(of(&with(FILE_BYTES_MAX), &["b"]), Err(NoOutputs::TooLong));
    }

    #[test]
    fn a_key_is_one_that_a_secret_can_have_and_a_pod_can_mount() {
        for good in ["vpc_id", "a", "A-1.b", ".dockerconfigjson", &"a".repeat(253)] {
            assert!(is_key(good), "{good}");
        }
        for bad in ["", "a/b", "a b", "é", ".", "..", "..a", &"a".repeat(254)] {
            assert!(!is_key(bad), "{bad}");
        }
    }
}
