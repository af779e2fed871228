//! Decodes a body that somebody else has coded, into [`BODY_BYTES_MAX`] bytes at most, however small it was.
//!
//! Not for whether a body is right: what is broken is as good as unread.

use brotli_decompressor::{
    Allocator, BrotliDecoderErrorCode, BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc,
};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use proof::asked::{BODY_BYTES_MAX, Body};

/// Bytes of a coded body that are read. What a coding cannot shrink it makes longer by a few bytes for each 64 KiB (RFC 1951, 3.2.4), and
/// gzip has a head with names.
pub const CODED_BYTES_MAX: usize = BODY_BYTES_MAX + 4 * 1024;

/// Bytes of a window of brotli: the power of two above what was written and a part that is as long, and what the decoder adds for its own
/// convenience. HTTP allows 16 MiB.
const WINDOW_BYTES_MAX: usize = 2 * BODY_BYTES_MAX + 4 * 1024;

/// What the decoder says where it got no window.
const NO_MEMORY: [BrotliDecoderErrorCode; 2] = [
    BrotliDecoderErrorCode::BROTLI_DECODER_ERROR_ALLOC_RING_BUFFER_1,
    BrotliDecoderErrorCode::BROTLI_DECODER_ERROR_ALLOC_RING_BUFFER_2,
];

/// Bytes of gzip's head without what is optional, and of its end (RFC 1952, 2.3).
const GZIP_HEAD_BYTES: usize = 10;
const GZIP_END_BYTES: usize = 8;

/// What optional parts a head of gzip has (RFC 1952, 2.3.1).
const HAS_CHECKSUM: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// Decodes a body by its `Content-Encoding`, whose values are joined by commas. Only what was asked for is known, and only one at a time.
pub fn decoded(codings: &str, coded: &[u8]) -> Body {
    let codings = codings.split(',').map(|coding| coding.trim().to_ascii_lowercase());
    let codings: Vec<String> = codings.filter(|coding| !coding.is_empty() && coding != "identity").collect();
    let room = || vec![0; BODY_BYTES_MAX + 1];
    match codings.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => bounded(coded.to_vec()),
        ["gzip" | "x-gzip"] => gunzipped(coded, room()),
        ["br"] => unbrotlied(coded, room()),
        [_, ..] => Body::Unread,
    }
}

fn bounded(body: Vec<u8>) -> Body {
    if body.len() > BODY_BYTES_MAX { Body::TooLong } else { Body::Whole(body) }
}

/// One member that is all of `coded` (RFC 1952). Its checksum is not looked at: TLS carried it.
fn gunzipped(coded: &[u8], mut room: Vec<u8>) -> Body {
    let Some(deflated) = after_head(coded) else { return Body::Unread };
    let mut inflater = Box::<DecompressorOxide>::default();
    let (status, read, written) =
        decompress(&mut inflater, deflated, &mut room, 0, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF);
    let end: Option<&[u8; GZIP_END_BYTES]> = deflated.get(read..).and_then(|end| end.try_into().ok());
    match (status, end) {
        (TINFLStatus::HasMoreOutput, _) => Body::TooLong,
        (TINFLStatus::Done, Some([.., a, b, c, d]))
            if u32::try_from(written) == Ok(u32::from_le_bytes([*a, *b, *c, *d])) =>
        {
            room.truncate(written);
            bounded(room)
        }
        _ => Body::Unread,
    }
}

/// What follows the head of gzip.
fn after_head(coded: &[u8]) -> Option<&[u8]> {
    let (head, mut rest) = coded.split_first_chunk::<GZIP_HEAD_BYTES>()?;
    let [0x1f, 0x8b, 8, flags, ..] = *head else { return None };
    if flags & HAS_EXTRA != 0 {
        let (length, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    for has in [HAS_NAME, HAS_COMMENT] {
        if flags & has != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & HAS_CHECKSUM != 0 { rest.get(2..) } else { Some(rest) }
}

/// A stream that is all of `coded` (RFC 7932). Windows above 16 MiB, which are no part of HTTP's `br`, are refused.
fn unbrotlied(coded: &[u8], mut room: Vec<u8>) -> Body {
    let other = StandardAlloc::default;
    let mut state = BrotliState::new_strict(Bounded::default(), other(), other());
    let (mut unread, mut read) = (coded.len(), 0);
    let (mut free, mut written, mut total) = (room.len(), 0, 0);
    let output = (&mut free, &mut written);
    let result =
        BrotliDecompressStream(&mut unread, &mut read, coded, output.0, output.1, &mut room, &mut total, &mut state);
    match result {
        BrotliResult::NeedsMoreOutput => Body::TooLong,
        BrotliResult::ResultFailure if NO_MEMORY.iter().any(|code| *code as i32 == state.error_code as i32) => {
            Body::TooLong
        }
        BrotliResult::ResultSuccess if read == coded.len() => {
            room.truncate(written);
            bounded(room)
        }
        BrotliResult::ResultSuccess | BrotliResult::NeedsMoreInput | BrotliResult::ResultFailure => Body::Unread,
    }
}

/// Gives [`WINDOW_BYTES_MAX`] at most at one time. The decoder asks for a window that holds what was written and the part of the body that
/// is next, whose length stands before it: who says that it is longer than that has a body that is too long.
#[derive(Default)]
struct Bounded(StandardAlloc);

impl Allocator<u8> for Bounded {
    type AllocatedMemory = <StandardAlloc as Allocator<u8>>::AllocatedMemory;

    fn alloc_cell(&mut self, length: usize) -> Self::AllocatedMemory {
        if length > WINDOW_BYTES_MAX {
            return Self::AllocatedMemory::default();
        }
        Allocator::<u8>::alloc_cell(&mut self.0, length)
    }

    fn free_cell(&mut self, memory: Self::AllocatedMemory) {
        Allocator::<u8>::free_cell(&mut self.0, memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use miniz_oxide::deflate::compress_to_vec;

    const LINE: &[u8] = b"the version is 2\n";

    /// By gzip 1.12, without and with the name of a file.
    const GZIP: &str = "1f8b08000000000002032bc94855284b2d2acecccf53c82c5630e2020036b262c411000000";
    const GZIP_NAMED: &str =
        "1f8b0808ea71096b02036c696e65322e747874002bc94855284b2d2acecccf53c82c5630e2020036b262c411000000";
    /// By brotli 1.0.9, with a small window and with the largest of HTTP.
    const BROTLI: &str = "214000047468652076657273696f6e20697320320a03";
    const BROTLI_WIDE: &str = "0f08807468652076657273696f6e20697320320a03";
    /// The same with a window of 1 GiB, and 10,000,000 zeros.
    const BROTLI_TOO_WIDE: &str = "111e2000027468652076657273696f6e20697320320a03";
    const BROTLI_BOMB: &str = "9f7f9698002400e2b140721c3101";

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
    }

    fn gzip(body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).expect("short");
        let (head, deflated) = (hex("1f8b0800000000000203"), compress_to_vec(body, 9));
        [&head, deflated.as_slice(), &[0; 4], &length.to_le_bytes()].concat()
    }

    #[test]
    fn what_was_asked_for_is_decoded() {
        for (codings, coded) in
            [("gzip", GZIP), ("GZIP, identity", GZIP_NAMED), ("x-gzip", GZIP), ("br", BROTLI), (" br", BROTLI_WIDE)]
        {
            assert_eq!(decoded(codings, &hex(coded)), Body::Whole(LINE.to_vec()), "{codings} {coded}");
        }
        assert_eq!(decoded("", LINE), Body::Whole(LINE.to_vec()));
        for codings in ["zstd", "deflate", "gzip, br", "unreadable"] {
            assert_eq!(decoded(codings, &hex(GZIP)), Body::Unread, "{codings}");
        }
    }

    #[test]
    fn what_is_broken_is_unread() {
        for (codings, coded) in [("gzip", GZIP), ("gzip", GZIP_NAMED), ("br", BROTLI), ("br", BROTLI_WIDE)] {
            let coded = hex(coded);
            for length in 0..coded.len() {
                assert_eq!(decoded(codings, &coded[..length]), Body::Unread, "{codings} {length}");
            }
            assert_eq!(decoded(codings, &[coded, vec![0]].concat()), Body::Unread, "{codings} and more");
        }
        assert_eq!(decoded("br", &hex(BROTLI_TOO_WIDE)), Body::Unread);
        // All options of a head, and no end of the first.
        assert_eq!(decoded("gzip", &hex("1f8b08ff000000000203ffff")), Body::Unread);
    }

    #[test]
    fn a_bomb_is_too_long_and_no_more() {
        assert_eq!(decoded("br", &hex(BROTLI_BOMB)), Body::TooLong);
        assert_eq!(decoded("gzip", &gzip(&vec![0; 10_000_000])), Body::TooLong);
        let longest = vec![b'x'; BODY_BYTES_MAX];
        let longer = [longest.as_slice(), b"x"].concat();
        for (codings, coded) in [("", longer.clone()), ("gzip", gzip(&longer))] {
            assert_eq!(decoded(codings, &coded), Body::TooLong, "{codings}");
        }
        for (codings, coded) in [("", longest.clone()), ("gzip", gzip(&longest))] {
            assert_eq!(decoded(codings, &coded), Body::Whole(longest.clone()), "{codings}");
        }
    }
}
