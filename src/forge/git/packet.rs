//! pkt-line: what git's protocol is cut into, and the side bands within ([gitprotocol-common]).
//!
//! [gitprotocol-common]: https://git-scm.com/docs/gitprotocol-common

use super::failure::Failure;

/// Bytes of the length in front, itself included in what it counts.
const HEAD: usize = 4;

/// Bytes of a packet at most, its head included.
const PACKET_BYTES_MAX: usize = 65_520;

/// Bytes that are kept of what the other side says to people.
pub(super) const WORDS_BYTES_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    Data(&'a [u8]),
    Flush,
    Delimiter,
    ResponseEnd,
}

/// Reads packets up to the end of the input or the first broken one.
pub(super) struct Packets<'a>(&'a [u8]);

impl<'a> Packets<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Passes everything up to the next flush.
    pub(super) fn skip_to_flush(&mut self) -> Result<(), Failure> {
        for packet in self.by_ref() {
            if packet? == Packet::Flush {
                return Ok(());
            }
        }
        Err(Failure::answer("the answer is not in git's protocol, or breaks off"))
    }

    /// What is not read yet.
    pub(super) fn left(&self) -> &'a [u8] {
        self.0
    }

    /// Text lines up to the next packet that is no data.
    pub(super) fn lines(&mut self) -> impl Iterator<Item = Result<&'a [u8], Failure>> {
        std::iter::from_fn(|| match self.next()? {
            Ok(Packet::Data(line)) => Some(Ok(line.strip_suffix(b"\n").unwrap_or(line))),
            Ok(Packet::Flush | Packet::Delimiter | Packet::ResponseEnd) => None,
            Err(failure) => Some(Err(failure)),
        })
    }

    /// What comes in the side bands up to the next packet that is no data.
    pub(super) fn bands(&mut self) -> Result<Bands, Failure> {
        let mut bands = Bands::default();
        for packet in self.by_ref() {
            let Packet::Data(data) = packet? else { break };
            match data.split_first() {
                Some((1, data)) => bands.data.extend_from_slice(data),
                Some((2, words)) => {
                    let room = WORDS_BYTES_MAX.saturating_sub(bands.words.len());
                    bands.words.extend(words.iter().take(room));
                }
                Some((3, words)) => return Err(said(words)),
                Some(_) | None => return Err(Failure::answer("the answer has an unknown side band")),
            }
        }
        Ok(bands)
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let packet = split(&mut self.0);
        if packet.is_none() {
            self.0 = &[];
        }
        Some(match packet {
            Some(Packet::Data(data)) => {
                data.strip_prefix(b"ERR ").map_or(Ok(Packet::Data(data)), |words| Err(said(words)))
            }
            Some(other) => Ok(other),
            None => Err(Failure::answer("the answer is not in git's protocol, or breaks off")),
        })
    }
}

fn split<'a>(input: &mut &'a [u8]) -> Option<Packet<'a>> {
    let head = input.split_off(..HEAD)?;
    // `from_str_radix` would take a sign.
    let digits = std::str::from_utf8(head).ok().filter(|head| head.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let length = usize::from_str_radix(digits, 16).ok()?;
    match length {
        0 => Some(Packet::Flush),
        1 => Some(Packet::Delimiter),
        2 => Some(Packet::ResponseEnd),
        HEAD..=PACKET_BYTES_MAX => Some(Packet::Data(input.split_off(..length.checked_sub(HEAD)?)?)),
        _ => None,
    }
}

fn said(words: &[u8]) -> Failure {
    let words: Vec<u8> = words.iter().copied().take(WORDS_BYTES_MAX).collect();
    Failure::answer(format!("the server says: {}", String::from_utf8_lossy(&words)))
}

/// What came in side bands: data, and words for people.
#[derive(Debug, Default)]
pub(super) struct Bands {
    pub(super) data: Vec<u8>,
    words: Vec<u8>,
}

impl Bands {
    /// The words, such as those of a hook.
    pub(super) fn words(&self) -> String {
        String::from_utf8_lossy(&self.words).trim().to_owned()
    }
}

/// Packets to be sent.
#[derive(Default)]
pub(super) struct Outgoing(Vec<u8>);

impl Outgoing {
    /// Adds a line. What is longer than a packet may be is cut; nothing that we send is.
    pub(super) fn line(mut self, text: &str) -> Self {
        let text: &[u8] = text.as_bytes().get(..PACKET_BYTES_MAX - HEAD).unwrap_or(text.as_bytes());
        self.0.extend(format!("{:04x}", text.len().saturating_add(HEAD)).bytes());
        self.0.extend_from_slice(text);
        self
    }

    pub(super) fn lines(self, texts: impl IntoIterator<Item = String>) -> Self {
        texts.into_iter().fold(self, |packets, text| packets.line(&text))
    }

    pub(super) fn flush(mut self) -> Self {
        self.0.extend(b"0000");
        self
    }

    pub(super) fn delimiter(mut self) -> Self {
        self.0.extend(b"0001");
        self
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packets_are_read_as_they_are_written() {
        let text = "x".repeat(PACKET_BYTES_MAX - HEAD);
        let sent = Outgoing::default().line("a\n").delimiter().line(&text).flush().line("").into_bytes();
        let read: Vec<_> = Packets::new(&sent).map(|packet| packet.expect("whole")).collect();
        let expected =
            [Packet::Data(b"a\n"), Packet::Delimiter, Packet::Data(text.as_bytes()), Packet::Flush, Packet::Data(b"")];
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_no_packet_ends_the_reading_with_a_failure() {
        for wrong in ["0", "000", "0003", "0005", "0009abcd", "+004", "zzzz", "fff1", "ffff", "00 4", "é00"] {
            let read: Vec<_> = Packets::new(wrong.as_bytes()).take(3).collect();
            assert!(matches!(read[..], [Err(_)]), "{wrong}: {read:?}");
        }
    }

    #[test]
    fn bands_are_told_apart_and_the_third_ends_all() {
        let sent = b"0008\x01abc0009\x02word0006\x01d0000";
        let bands = Packets::new(sent).bands().expect("bands");
        assert_eq!((bands.data.as_slice(), bands.words().as_str()), (&b"abcd"[..], "word"));
        let failure = Packets::new(b"0006\x01d0009\x03diedX").bands().expect_err("it died");
        assert_eq!(failure.cause, "the server says: died");
        assert!(Packets::new(b"0005\x04").bands().is_err());
        assert!(Packets::new(b"0004").bands().is_err());
    }

    proptest! {
        #[test]
        fn reading_anything_ends(input in proptest::collection::vec(any::<u8>(), 0..200), head in 0_usize..40) {
            let packets = format!("{head:04x}").into_bytes().into_iter().chain(input).collect::<Vec<u8>>();
            prop_assert!(Packets::new(&packets).count() <= packets.len());
            if let Ok(bands) = Packets::new(&packets).bands() {
                prop_assert!(bands.data.len() < packets.len());
            }
        }
    }
}
