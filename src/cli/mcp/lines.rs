//! Lines of standard input, each of a bounded length. One that is longer is passed over without being held.
//!
//! Not for what a line says; that is `protocol`.

use std::io::{self, BufRead};

/// Bytes of a line at most. A request is some hundred; a client may send its icons with each, as `data:` addresses.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its end.
    Whole(Vec<u8>),
    /// It had more than [`LINE_BYTES_MAX`] bytes, or whatever the bound was. They are gone.
    TooLong,
}

/// Hands on each line until the input ends or nobody takes them any more. What follows the last line break is a line, too.
///
/// # Errors
/// The input cannot be read.
pub fn each(mut input: impl BufRead, bytes_max: usize, mut taken: impl FnMut(Line) -> bool) -> io::Result<()> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let (bytes, used, ends) = match input.fill_buf() {
            Ok([]) => {
                let is_rest = is_too_long || !line.is_empty();
                if is_rest {
                    taken(whole(&mut line, &mut is_too_long));
                }
                return Ok(());
            }
            Ok(buffer) => match buffer.iter().position(|byte| *byte == b'\n') {
                Some(end) => (buffer.get(..end).unwrap_or_default(), end + 1, true),
                None => (buffer, buffer.len(), false),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if line.len() + bytes.len() > bytes_max {
            is_too_long = true;
            line = Vec::new();
        }
        if !is_too_long {
            line.extend_from_slice(bytes);
        }
        input.consume(used);
        if ends && !taken(whole(&mut line, &mut is_too_long)) {
            return Ok(());
        }
    }
}

fn whole(line: &mut Vec<u8>, is_too_long: &mut bool) -> Line {
    let bytes = std::mem::take(line);
    if std::mem::take(is_too_long) { Line::TooLong } else { Line::Whole(bytes) }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read(input: &[u8], buffer: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let taken = |line| {
            lines.push(line);
            true
        };
        each(BufReader::with_capacity(buffer, input), 5, taken).unwrap();
        lines
    }

    #[test]
    fn a_line_of_the_bound_is_whole_and_a_longer_one_costs_itself_alone() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        for buffer in [1, 2, 3, 7, 64] {
            let lines = read(b"12345\n123456\n\n1\r\n1234567890123\nend", buffer);
            let expected = [whole("12345"), Line::TooLong, whole(""), whole("1\r"), Line::TooLong, whole("end")];
            assert_eq!(lines, expected, "{buffer}");
            assert_eq!(read(b"1234567", buffer), [Line::TooLong], "{buffer}");
            assert_eq!(read(b"", buffer), []);
        }
    }

    #[test]
    fn nothing_is_read_for_nobody() {
        let mut lines = 0;
        let taken = |_| {
            lines += 1;
            lines < 2
        };
        each(&b"1\n2\n3\n"[..], 5, taken).unwrap();
        assert_eq!(lines, 2);
    }
}
