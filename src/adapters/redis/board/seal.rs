//! The seal of a member of the group: an HMAC over everything a reader acts on, with the group's key (decision 7).
//!
//! It proves that some member wrote this body for this member, workload and ledger. An old body that is written again
//! passes; it is older than what its reader has, and the reader keeps the newer.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::config::Secret;

/// Says what is signed, so that a beat can never be taken for a record. Raised with the form of what is signed.
const RECORD: &str = "allclear record 1";
const BEAT: &str = "allclear beat 1";

/// Bytes of a MAC, and of its text in hexadecimal digits.
const MAC_BYTES: usize = 32;
const MAC_DIGITS: usize = 2 * MAC_BYTES;

/// Signs and verifies for one group, with its keys or, in a group without one, not at all. The first key signs, all of them
/// verify: so the key of a group can be changed in one member after the other.
#[derive(Clone, Debug)]
pub struct Seal {
    group: String,
    keys: Vec<Secret<Vec<u8>>>,
}

#[derive(Clone, Copy, Debug)]
pub enum Signed<'a> {
    /// A record: member, workload, origin, body.
    Record(&'a str, &'a str, &'a str, &'a [u8]),
    /// A beat: member, body.
    Heartbeat(&'a str, &'a [u8]),
}

impl Seal {
    /// The seal of `group`.
    pub fn new(group: &str, keys: impl IntoIterator<Item = Secret<Vec<u8>>>) -> Self {
        Self { group: group.to_owned(), keys: keys.into_iter().collect() }
    }

    /// The MAC in hexadecimal digits; empty without a key.
    pub fn sign(&self, signed: Signed<'_>) -> String {
        let mac = self.keys.first().and_then(|key| self.mac(key, signed));
        mac.map_or_else(String::new, |mac| {
            mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
        })
    }

    /// Verifies in constant time.
    ///
    /// # Errors
    /// Why it is not believed, in words.
    pub fn verify(&self, signed: Signed<'_>, mac: &[u8]) -> Result<(), &'static str> {
        if self.keys.is_empty() {
            return if mac.is_empty() { Ok(()) } else { Err("signed, but this member has no key") };
        }
        if mac.is_empty() {
            return Err("not signed, and this member has a key");
        }
        let verifies = |key: &Secret<Vec<u8>>| {
            let both = self.mac(key, signed).zip(bytes_of(mac));
            both.is_some_and(|(hmac, mac)| hmac.verify_slice(&mac).is_ok())
        };
        if self.keys.iter().any(verifies) { Ok(()) } else { Err("wrongly signed: by another key, or not by a member") }
    }

    fn mac(&self, key: &Secret<Vec<u8>>, signed: Signed<'_>) -> Option<Hmac<Sha256>> {
        // HMAC takes keys of every length, so this is never nothing.
        let mut mac = Hmac::<Sha256>::new_from_slice(key.expose()).ok()?;
        // Each part is preceded by its length: no two lists of parts give one text.
        let mut feed = |part: &[u8]| {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        };
        match signed {
            Signed::Record(member, workload, origin, body) => {
                [RECORD, &self.group, member, workload, origin].into_iter().for_each(|part| feed(part.as_bytes()));
                feed(body);
            }
            Signed::Heartbeat(member, body) => {
                [BEAT, &self.group, member].into_iter().for_each(|part| feed(part.as_bytes()));
                feed(body);
            }
        }
        Some(mac)
    }
}

/// Splits what [`joined`] made.
pub fn split(text: &[u8]) -> (&[u8], &[u8]) {
    match text.split_at_checked(MAC_DIGITS) {
        Some((mac, [b' ', body @ ..])) if !text.starts_with(b"{") => (mac, body),
        _ => (&[], text),
    }
}

/// A MAC, if there is one, and a JSON object, in one string.
pub fn joined(mac: &str, body: &str) -> String {
    if mac.is_empty() { body.to_owned() } else { format!("{mac} {body}") }
}

fn bytes_of(digits: &[u8]) -> Option<Vec<u8>> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == MAC_DIGITS)?;
    let byte = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..MAC_DIGITS).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED: Signed<'static> = Signed::Record("eu-1", "deployment/shop/web", "origin", b"{}");

    fn keyed(key: &str) -> Seal {
        Seal::new("default", [Secret::new(key.as_bytes().to_vec())])
    }

    #[test]
    fn what_was_signed_is_believed_and_nothing_else() {
        let mac = keyed("key").sign(SIGNED);
        assert_eq!(mac.len(), MAC_DIGITS);
        assert_eq!(keyed("key").verify(SIGNED, mac.as_bytes()), Ok(()));
        let others = [
            Signed::Record("eu-2", "deployment/shop/web", "origin", b"{}"),
            Signed::Record("eu-1", "deployment/shop/we", "borigin", b"{}"),
            Signed::Record("eu-1", "deployment/shop/web", "origin", b"{ }"),
            Signed::Heartbeat("eu-1", b"{}"),
        ];
        for other in others {
            assert!(keyed("key").verify(other, mac.as_bytes()).is_err(), "{other:?}");
        }
        let elsewhere = Seal::new("other", Some(Secret::new(b"key".to_vec())));
        assert!(elsewhere.verify(SIGNED, mac.as_bytes()).is_err());
        assert!(keyed("other key").verify(SIGNED, mac.as_bytes()).is_err());
        for garbage in [&mac.as_bytes()[1..], b"\xff\xfe", &[b'+'; MAC_DIGITS], "é".repeat(MAC_BYTES).as_bytes()] {
            assert!(keyed("key").verify(SIGNED, garbage).is_err(), "{garbage:?}");
        }
    }

    #[test]
    fn members_with_and_without_a_key_do_not_believe_each_other() {
        let open = Seal::new("default", None);
        assert_eq!(open.sign(SIGNED), "");
        assert_eq!(open.verify(SIGNED, b""), Ok(()));
        assert_eq!(keyed("key").verify(SIGNED, b""), Err("not signed, and this member has a key"));
        let mac = keyed("key").sign(SIGNED);
        assert_eq!(open.verify(SIGNED, mac.as_bytes()), Err("signed, but this member has no key"));
    }

    #[test]
    fn of_two_keys_the_first_signs_and_both_verify() {
        let both = Seal::new("default", ["new", "old"].map(|key| Secret::new(key.as_bytes().to_vec())));
        assert_eq!(both.sign(SIGNED), keyed("new").sign(SIGNED));
        for key in ["new", "old"] {
            assert_eq!(both.verify(SIGNED, keyed(key).sign(SIGNED).as_bytes()), Ok(()), "{key}");
        }
        assert!(both.verify(SIGNED, keyed("other").sign(SIGNED).as_bytes()).is_err());
    }

    #[test]
    fn a_beat_and_its_mac_share_a_string() {
        let mac = keyed("key").sign(SIGNED);
        assert_eq!(split(joined(&mac, "{}").as_bytes()), (mac.as_bytes(), &b"{}"[..]));
        assert_eq!(split(joined("", "{}").as_bytes()), (&b""[..], &b"{}"[..]));
        let long = format!("{{{}}}", " ".repeat(200));
        assert_eq!(split(long.as_bytes()), (&b""[..], long.as_bytes()));
    }
}
