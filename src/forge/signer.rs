//! An SSH key that signs commits ([PROTOCOL.key], [PROTOCOL.sshsig] of OpenSSH; git's `gpg.format=ssh`): Ed25519 alone, whose signatures
//! of the same bytes are the same.
//!
//! [PROTOCOL.key]: https://github.com/openssh/openssh-portable/blob/V_9_9_P1/PROTOCOL.key
//! [PROTOCOL.sshsig]: https://github.com/openssh/openssh-portable/blob/V_9_9_P1/PROTOCOL.sshsig

use std::fmt;

use aws_lc_rs::digest::{self, SHA512};
use aws_lc_rs::signature::Ed25519KeyPair;

use crate::pem;

const KIND: &[u8] = b"ssh-ed25519";

/// What a signature of git's is for.
const NAMESPACE: &[u8] = b"git";

/// Begins what is signed, and a signature.
const MAGIC: &[u8] = b"SSHSIG";

/// Longest committer, in bytes.
const COMMITTER_BYTES_MAX: usize = 250;

/// A key, and as whom it commits.
#[derive(Clone, PartialEq, Eq)]
pub struct Signer {
    seed: [u8; 32],
    public: [u8; 32],
    /// `Name <email>`: hosts believe a signature only where its key belongs to the committer's address.
    committer: Option<String>,
}

/// Why a key signs nothing; nothing of it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSigner {
    #[error("its key signingKey is no private key of OpenSSH: make one with ssh-keygen -t ed25519 -N ''")]
    NotOpenSsh,
    #[error(
        "its key signingKey is locked by a passphrase, which nobody types here: take it away with ssh-keygen -p -N ''"
    )]
    Locked,
    #[error("its key signingKey is not of the kind ed25519: make one with ssh-keygen -t ed25519 -N ''")]
    OtherKind,
    #[error("its key committer is not of the form NAME <USER@HOST>")]
    Committer,
    #[error("it has a key committer, which is used with a key signingKey alone")]
    NoKey,
}

impl Signer {
    /// Reads an OpenSSH private key, and the committer beside it.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn of(key: &str, committer: Option<String>) -> Result<Self, NoSigner> {
        let bytes = pem::block(key).filter(|(label, _)| *label == "OPENSSH PRIVATE KEY").ok_or(NoSigner::NotOpenSsh)?.1;
        let (seed, public) = read(&bytes)?;
        if committer.as_deref().is_some_and(|committer| !is_person(committer)) {
            return Err(NoSigner::Committer);
        }
        let signer = Self { seed, public, committer };
        signer.pair().map(|_sound| signer).ok_or(NoSigner::NotOpenSsh)
    }

    /// As whom it commits, where that is given.
    pub fn committer(&self) -> Option<&str> {
        self.committer.as_deref()
    }

    /// The signature of a commit, as a text of several lines.
    pub(crate) fn sign(&self, commit: &[u8]) -> Option<String> {
        let hash = digest::digest(&SHA512, commit);
        let signed = [MAGIC, &strings(&[NAMESPACE, b"", b"sha512", hash.as_ref()])].concat();
        let signature = self.pair()?.try_sign(&signed).ok()?;
        let public = strings(&[KIND, &self.public]);
        let signature = strings(&[KIND, signature.as_ref()]);
        let rest = strings(&[&public, NAMESPACE, b"", b"sha512", &signature]);
        Some(pem::text("SSH SIGNATURE", &[MAGIC, &1_u32.to_be_bytes(), &rest].concat()))
    }

    fn pair(&self) -> Option<Ed25519KeyPair> {
        Ed25519KeyPair::from_seed_and_public_key(&self.seed, &self.public).ok()
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

/// Whether a file of OpenSSH's is locked by a passphrase, if it is one.
pub(crate) fn is_locked(bytes: &[u8]) -> Option<bool> {
    let mut rest = bytes.strip_prefix(b"openssh-key-v1\0")?;
    string(&mut rest).map(|cipher| cipher != b"none")
}

/// The seed and the public key of the only key in a file.
fn read(bytes: &[u8]) -> Result<([u8; 32], [u8; 32]), NoSigner> {
    let mut rest = bytes.strip_prefix(b"openssh-key-v1\0").ok_or(NoSigner::NotOpenSsh)?;
    let (cipher, kdf) = (string(&mut rest), string(&mut rest));
    let (Some(cipher), Some(kdf), Some(_options)) = (cipher, kdf, string(&mut rest)) else {
        return Err(NoSigner::NotOpenSsh);
    };
    if (cipher, kdf) != (b"none", b"none") {
        return Err(NoSigner::Locked);
    }
    let (1, Some(_public), Some(mut secret)) =
        (number(&mut rest).unwrap_or_default(), string(&mut rest), string(&mut rest))
    else {
        return Err(NoSigner::NotOpenSsh);
    };
    let checks = (number(&mut secret), number(&mut secret));
    let kind =
        string(&mut secret).filter(|_| checks.0.is_some() && checks.0 == checks.1).ok_or(NoSigner::NotOpenSsh)?;
    if kind != KIND {
        return Err(NoSigner::OtherKind);
    }
    let public = string(&mut secret).and_then(|public| public.try_into().ok());
    let seed = string(&mut secret).filter(|both| both.len() == 64).and_then(|both| both.first_chunk().copied());
    seed.zip(public).ok_or(NoSigner::NotOpenSsh)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    rest.split_off(..4)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Bytes with their number before them (RFC 4251, 5).
fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(rest)?).ok()?;
    rest.split_off(..length)
}

fn strings(parts: &[&[u8]]) -> Vec<u8> {
    // None comes near 4 GiB: the longest is a hash.
    let length = |part: &[u8]| u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes();
    parts.iter().flat_map(|part| [&length(part)[..], part].concat()).collect()
}

/// Whether a text is `Name <email>`, as git keeps a person.
fn is_person(text: &str) -> bool {
    let parts = text.strip_suffix('>').and_then(|text| text.split_once(" <"));
    let is_plain = |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_control() || "<>".contains(c));
    text.len() <= COMMITTER_BYTES_MAX
        && parts.is_some_and(|(name, email)| {
            is_plain(name) && is_plain(email) && email.contains('@') && !email.contains(' ') && name.trim() == name
        })
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
    use proptest::prelude::*;

    use super::*;

    /// A key as `ssh-keygen` writes it, of this kind, cipher and seed.
    fn file(kind: &[u8], cipher: &[u8], seed: [u8; 32]) -> Vec<u8> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        let public: [u8; 32] = aws_lc_rs::signature::KeyPair::public_key(&pair).as_ref().try_into().unwrap();
        let mut secret = [7_u32.to_be_bytes(), 7_u32.to_be_bytes()].concat();
        secret.extend(strings(&[kind, &public, &[seed, public].concat(), b"a comment"]));
        secret.extend([1, 2, 3]);
        let mut bytes = b"openssh-key-v1\0".to_vec();
        bytes.extend(strings(&[cipher, cipher, b""]));
        bytes.extend(1_u32.to_be_bytes());
        bytes.extend(strings(&[&strings(&[kind, &public]), &secret]));
        bytes
    }

    fn text(bytes: &[u8]) -> String {
        pem::text("OPENSSH PRIVATE KEY", bytes)
    }

    #[test]
    fn what_it_signs_can_be_verified_and_is_always_the_same() {
        let signer = Signer::of(&text(&file(KIND, b"none", [3; 32])), None).unwrap();
        let signature = signer.sign(b"a commit").unwrap();
        assert_eq!(signer.sign(b"a commit").as_ref(), Some(&signature));
        let (label, blob) = pem::block(&signature).unwrap();
        assert_eq!((label, blob.strip_prefix(b"SSHSIG\0\0\0\x01").is_some()), ("SSH SIGNATURE", true));
        // By the letters of PROTOCOL.sshsig.
        let mut signed = b"SSHSIG\0\0\0\x03git\0\0\0\0\0\0\0\x06sha512\0\0\0\x40".to_vec();
        signed.extend(digest::digest(&SHA512, b"a commit").as_ref());
        let verified = UnparsedPublicKey::new(&ED25519, signer.public).verify(&signed, &blob[blob.len() - 64..]);
        assert!(verified.is_ok());
    }

    #[test]
    fn a_key_that_cannot_be_used_is_refused_by_its_fault() {
        let sound = file(KIND, b"none", [3; 32]);
        for (key, why) in [
            (text(&file(KIND, b"aes256-ctr", [3; 32])), NoSigner::Locked),
            (text(&file(b"ssh-rsa", b"none", [3; 32])), NoSigner::OtherKind),
            (text(&sound[..sound.len() - 60]), NoSigner::NotOpenSsh),
            (pem::text("PRIVATE KEY", &sound), NoSigner::NotOpenSsh),
            ("hunter2".to_owned(), NoSigner::NotOpenSsh),
        ] {
            assert_eq!(Signer::of(&key, None), Err(why));
        }
        let mut other = sound.clone();
        let at = other.windows(32).rposition(|window| window == [3; 32]).unwrap();
        other[at] = 4;
        assert_eq!(Signer::of(&text(&other), None), Err(NoSigner::NotOpenSsh), "another seed than the public key's");
        for committer in
            ["", "Bot", "Bot <bot>", "<bot@example.com>", "Bot <bot@example.com> 1", "B\nx <b@c>", " B <b@c>"]
        {
            assert_eq!(Signer::of(&text(&sound), Some(committer.to_owned())), Err(NoSigner::Committer), "{committer}");
        }
        let committer = Signer::of(&text(&sound), Some("A Bot <bot@example.com>".to_owned()));
        assert_eq!(committer.unwrap().committer(), Some("A Bot <bot@example.com>"));
    }

    proptest! {
        #[test]
        fn reading_anything_ends(seed in any::<[u8; 32]>(), cut in 0_usize..300, at in 0_usize..300, byte in any::<u8>()) {
            let mut bytes = file(KIND, b"none", seed);
            prop_assert!(read(&bytes).is_ok());
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(cut);
            let _any = Signer::of(&text(&bytes), None);
        }
    }
}
