//! Records of rollouts, markers in files of repositories, and plans of what a Repo would change.

use kernel::id::{Environment, PipelineId, Revision};
use objects::pipeline::marker::{edit, may_have_markers};
use objects::repo::plan::{FINGERPRINT_DIGITS, Message, fingerprint};
use objects::repo::spec::Preset;
use purge::records::record_codec;

use crate::{Target, target, text};

pub const TARGETS: &[Target] = &[
    target("record", record),
    target("published", published),
    target("marker", marker),
    target("terraform_plan", terraform_plan),
    target("plan_message", plan_message),
];

fn record(bytes: &[u8]) -> bool {
    let Ok(record) = record_codec::decode(bytes) else { return false };
    // One that was read may be too large for what is written today; then it says so.
    let Ok(written) = record_codec::encode(&record) else { return false };
    assert_eq!(record_codec::decode(written.as_bytes()).unwrap(), record);
    true
}

fn published(bytes: &[u8]) -> bool {
    let Ok(published) = record_codec::decode_published(bytes) else { return false };
    let Ok(written) = record_codec::encode_published(&published) else { return false };
    assert_eq!(record_codec::decode_published(written.as_bytes()).unwrap(), published);
    true
}

/// A file of a repository: setting what is set changes nothing, and nothing but values changes.
fn marker(bytes: &[u8]) -> bool {
    const REVISION: &str = "1.2.3";
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let set = |text: &str, revision: &str| {
        let (pipeline, environment) = (PipelineId::new("shop", "web"), Environment("prod".to_owned()));
        edit(text, &pipeline, &environment, &Revision(revision.to_owned()))
    };
    let Ok(edited) = set(text, REVISION) else { return false };
    assert!(edited.markers == 0 || may_have_markers(bytes));
    assert!(edited.markers > 0 || edited.text == text);
    assert!(edited.text.len() <= text.len() + edited.markers * (REVISION.len() + 2), "{} markers", edited.markers);
    let again = set(&edited.text, REVISION).expect("what was edited can be edited");
    assert_eq!((again.text.as_str(), again.markers), (edited.text.as_str(), edited.markers));
    edited.markers > 0
}

fn terraform_plan(bytes: &[u8]) -> bool {
    let Ok(planned) = fingerprint(Preset::Terraform, bytes) else { return false };
    assert_eq!(planned.fingerprint.len(), FINGERPRINT_DIGITS);
    // Blanks between the parts are no part of what would be changed.
    assert_eq!(fingerprint(Preset::Terraform, &spaced(bytes)).as_ref(), Ok(&planned));
    let message = Message::Planned(planned).to_json().unwrap();
    assert!(Message::parse(&message).is_ok());
    true
}

/// The same JSON with a blank on both sides of each comma and colon that is not in a string.
fn spaced(json: &[u8]) -> Vec<u8> {
    let (mut in_string, mut escaped) = (false, false);
    let mut out = Vec::with_capacity(json.len() * 2);
    for byte in json {
        if !in_string && matches!(byte, b',' | b':') {
            out.extend([b' ', *byte, b'\n']);
        } else {
            out.push(*byte);
        }
        in_string = match byte {
            b'"' if !escaped => !in_string,
            _ => in_string,
        };
        escaped = in_string && *byte == b'\\' && !escaped;
    }
    out
}

/// What a container that is not ours may have written as its last words.
fn plan_message(bytes: &[u8]) -> bool {
    let Ok(message) = Message::parse(&text(bytes)) else { return false };
    let written = message.to_json().unwrap();
    assert_eq!(Message::parse(&written), Ok(message));
    true
}
