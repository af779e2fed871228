//! What is written on the board for a posting, and what is believed of what others wrote there.

use std::time::Duration;

use super::seal::{Seal, Signed, joined, split};
use crate::config::Secret;
use kernel::id::{Member, Origin, Seq, WorkloadId, is_key_part};
use purge::agreement::roster::{Heartbeat, Said, Stands};
use purge::ports::{PASSING_TTL, Posting};
use purge::records::record::RECORD_BYTES_MAX;
use purge::records::record_codec::{CodecError, decode_published, encode_published};

/// The phase of what was removed, for people; its body is `gone <seq> <revision>`, for readers.
const GONE: &str = "gone";

/// Bytes of what a member calls itself, its ledger, its version or its address: a host's name has 253, and a port comes to it.
/// Of each many are remembered.
const PLAIN_BYTES_MAX: usize = 300;

/// A posting as it is written.
#[derive(Debug)]
pub struct BoardCopy {
    pub workload: WorkloadId,
    pub origin: Origin,
    pub seq: Seq,
    pub revision: u64,
    pub version: String,
    pub phase: &'static str,
    pub body: String,
    pub mac: String,
    pub ttl: Duration,
    /// The token of the copy that may be replaced whatever it says.
    pub over: Vec<u8>,
}

/// Why a copy or a beat is not believed; nothing of it is quoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disbelieved {
    #[error("{0}")]
    Wrong(&'static str),
    /// A newer program wrote it.
    #[error(transparent)]
    Newer(CodecError),
}

/// Why a beat is not left.
#[derive(Debug, thiserror::Error)]
pub enum UnwritableBeat {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("a beat of {0} bytes: it may have at most {RECORD_BYTES_MAX}")]
    TooLong(usize),
}

/// Makes and reads copies and beats of one group.
#[derive(Debug)]
pub struct CopyCodec {
    seal: Seal,
}

impl CopyCodec {
    /// Of this group. The first key signs, every one is believed; without a key nothing is signed, and nothing signed is believed.
    pub fn new(group: &str, keys: impl IntoIterator<Item = Secret<Vec<u8>>>) -> Self {
        Self { seal: Seal::new(group, keys) }
    }

    /// What is written for `posting`.
    ///
    /// # Errors
    /// When the record is too long.
    pub fn make(
        &self,
        member: &Member,
        workload: &WorkloadId,
        origin: &Origin,
        posting: &Posting,
    ) -> Result<BoardCopy, CodecError> {
        let (version, phase, body) = match posting {
            Posting::Show(published) => {
                let body = encode_published(published)?;
                let version = published.version().map_or(String::new(), ToString::to_string);
                (version, published.phase(), body)
            }
            Posting::Forget(seq, revision) => (String::new(), GONE, format!("{GONE} {seq} {revision}")),
        };
        let ttl = if posting.passes() { PASSING_TTL } else { Duration::ZERO };
        let (seq, revision) = posting.state();
        let mac = self.seal.sign(Signed::Record(&member.0, &workload.to_string(), &origin.0, body.as_bytes()));
        let (workload, origin) = (workload.clone(), origin.clone());
        Ok(BoardCopy { workload, origin, seq, revision, version, phase, body, mac, ttl, over: Vec::new() })
    }

    /// What a copy says, if it can be believed. Only its signed parts are looked at, not the fields for people.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn believe(
        &self,
        member: &Member,
        workload: &WorkloadId,
        origin: &Origin,
        body: &[u8],
        mac: &[u8],
    ) -> Result<Posting, Disbelieved> {
        self.seal
            .verify(Signed::Record(&member.0, &workload.to_string(), &origin.0, body), mac)
            .map_err(Disbelieved::Wrong)?;
        if !is_plain(&origin.0) {
            return Err(Disbelieved::Wrong("its ledger has a name that is none"));
        }
        if body.len() > RECORD_BYTES_MAX {
            return Err(Disbelieved::Wrong("longer than any record"));
        }
        if let Some(rest) = std::str::from_utf8(body).ok().and_then(|text| text.strip_prefix(GONE)) {
            let mut numbers = rest.split_ascii_whitespace().map(str::parse::<u64>);
            return match (numbers.next(), numbers.next(), numbers.next()) {
                (Some(Ok(seq)), Some(Ok(revision)), None) => Ok(Posting::Forget(Seq(seq), revision)),
                _ => Err(Disbelieved::Wrong("neither a record nor the end of one")),
            };
        }
        match decode_published(body) {
            Ok(published) => Ok(Posting::Show(published)),
            Err(error @ CodecError::Newer { .. }) => Err(Disbelieved::Newer(error)),
            // The parser's own words quote what it read.
            Err(_) => Err(Disbelieved::Wrong("neither a record nor the end of one")),
        }
    }

    /// The text of a beat. One that is too long goes without the words about its rollouts.
    ///
    /// # Errors
    /// When it is too long even then.
    pub fn beat_text(&self, beat: &Heartbeat) -> Result<String, UnwritableBeat> {
        let mut body = serde_json::to_string(beat)?;
        if body.len() > RECORD_BYTES_MAX {
            let silent = Heartbeat { said: Said::default(), ..beat.clone() };
            body = serde_json::to_string(&silent)?;
        }
        if body.len() > RECORD_BYTES_MAX {
            return Err(UnwritableBeat::TooLong(body.len()));
        }
        let mac = self.seal.sign(Signed::Heartbeat(&beat.member.0, body.as_bytes()));
        Ok(joined(&mac, &body))
    }

    /// The beat of `member` in a text.
    ///
    /// # Errors
    /// Why it is not believed.
    pub fn beat(&self, member: &Member, text: &[u8]) -> Result<Heartbeat, Disbelieved> {
        let (mac, body) = split(text);
        self.seal.verify(Signed::Heartbeat(&member.0, body), mac).map_err(Disbelieved::Wrong)?;
        if body.len() > RECORD_BYTES_MAX {
            return Err(Disbelieved::Wrong("longer than any beat"));
        }
        let mut beat: Heartbeat = serde_json::from_slice(body).map_err(|_| Disbelieved::Wrong("not a beat"))?;
        if beat.member != *member {
            return Err(Disbelieved::Wrong("the beat of another member"));
        }
        let Heartbeat { origin, boot, version, config, stands: Stands { place, .. }, members, .. } = &beat;
        let are_plain = [&origin.0, boot, version, config, place].into_iter().all(|text| is_plain(text));
        if !are_plain || !members.iter().all(|name| is_key_part(&name.0)) {
            return Err(Disbelieved::Wrong("not a beat of ours: a part of it is too long, or no plain text"));
        }
        // They come to logs and terminals.
        let texts = beat.said.words.values_mut().chain(beat.settings.values_mut());
        texts.for_each(|text| text.retain(|c| !c.is_control()));
        beat.settings.retain(|name, _| is_plain(name));
        beat.stands.watch.retain(|name| is_plain(name));
        beat.stands.kinds.retain(|word| is_plain(word));
        Ok(beat)
    }
}

/// Whether a text is as short and as plain as those are that members give themselves: UIDs, versions, hashes, addresses.
fn is_plain(text: &str) -> bool {
    text.len() <= PLAIN_BYTES_MAX && !text.chars().any(char::is_control)
}

/// What the script could not read, in words.
pub fn problem(parts: &[Vec<u8>]) -> String {
    let [member, what, why] = [0, 1, 2].map(|at| parts.get(at).map(|part| String::from_utf8_lossy(part)));
    let (member, what) = (Member(member.unwrap_or_default().into_owned()), what.unwrap_or_default());
    let of = if is_key_part(&member.0) { member.0.as_str() } else { "a member whose name is none" };
    let what = match what.as_ref() {
        "members" | "index" | "beat" | "stamp" => what.as_ref(),
        workload if workload.parse::<WorkloadId>().is_ok() => workload,
        _ => "a copy",
    };
    match why.as_deref() {
        Some("long") => format!("{what} of {of}: longer than any of ours"),
        Some("name") => format!("{what} of {of}: a name that is none of ours"),
        _ => format!("{what} of {of}: WRONGTYPE, another program keeps something else under that key"),
    }
}
