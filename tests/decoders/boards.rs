//! What other members, or strangers, left on a Redis: copies of records, beats, a ledger, and what the server says of itself.

use allclear::adapters::redis::board::{CopyCodec, write_refusal};
use allclear::config::Secret;
use kernel::id::{Member, Origin, WorkloadId};

use crate::{Target, target, text};

pub const TARGETS: &[Target] =
    &[target("board_copy", copy), target("board_beat", beat), target("redis_info", redis_info)];

/// What a writer without the group's key cannot guess.
const KEY: &[u8] = b"a key of the group";

fn codecs() -> (CopyCodec, CopyCodec) {
    (CopyCodec::new("default", None), CopyCodec::new("default", [Secret::new(KEY.to_vec())]))
}

fn copy(bytes: &[u8]) -> bool {
    let (open, keyed) = codecs();
    let (member, workload) = (Member("eu-1".to_owned()), WorkloadId::deployment("shop", "web"));
    let origin = Origin("5b599823-1f32-4336-8d2f-33191b2f1d5d".to_owned());
    // With a key nothing is believed that is not signed by it, and a signature is not believed without.
    let (mac, body) = bytes.split_at(bytes.len().min(64));
    for (mac, body) in [(&b""[..], bytes), (mac, body)] {
        assert!(keyed.believe(&member, &workload, &origin, body, mac).is_err());
    }
    assert!(mac.is_empty() || open.believe(&member, &workload, &origin, body, mac).is_err());
    let Ok(posting) = open.believe(&member, &workload, &origin, bytes, b"") else { return false };
    for codec in [&open, &keyed] {
        let Ok(made) = codec.make(&member, &workload, &origin, &posting) else { continue };
        let again = codec.believe(&member, &workload, &origin, made.body.as_bytes(), made.mac.as_bytes());
        assert_eq!(again.as_ref(), Ok(&posting));
        let other = WorkloadId::deployment("shop", "other");
        let elsewhere = codec.believe(&member, &other, &origin, made.body.as_bytes(), made.mac.as_bytes());
        assert_eq!(elsewhere.is_ok(), made.mac.is_empty(), "a signature is for one workload");
    }
    true
}

fn beat(bytes: &[u8]) -> bool {
    let (open, keyed) = codecs();
    let member = Member("eu-1".to_owned());
    assert!(keyed.beat(&member, bytes).is_err());
    let Ok(beat) = open.beat(&member, bytes) else { return false };
    assert_eq!(beat.member, member);
    let texts = beat.said.words.values().chain(beat.settings.values());
    assert!(texts.flat_map(|text| text.chars()).all(|c| !c.is_control()));
    for codec in [&open, &keyed] {
        let Ok(written) = codec.beat_text(&beat) else { continue };
        assert_eq!(codec.beat(&member, written.as_bytes()).as_ref(), Ok(&beat));
        assert!(codec.beat(&Member("eu-2".to_owned()), written.as_bytes()).is_err());
    }
    true
}

/// The answer to `INFO`, which a proxy may have made.
fn redis_info(bytes: &[u8]) -> bool {
    let info = text(bytes);
    let refusal = write_refusal(&info);
    assert_eq!(refusal, write_refusal(&info.replace("\r\n", "\n").replace('\n', "\r\n")), "line ends do not matter");
    assert!(refusal.as_ref().is_none_or(|words| words.starts_with("READONLY: ") || words.starts_with("OOM: ")));
    refusal.is_some()
}
