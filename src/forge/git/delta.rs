//! An object as changes to another one ([gitformat-pack], *Deltified representation*).
//!
//! [gitformat-pack]: https://git-scm.com/docs/gitformat-pack

/// Bytes of an empty size in a copy.
const COPY_BYTES: usize = 0x1_0000;

/// What a delta makes of its base; `None` where it is broken, or where the result has more than `bytes_max` bytes.
pub(super) fn applied(base: &[u8], mut delta: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let (base_size, size) = (size(&mut delta)?, size(&mut delta)?);
    if base_size != base.len() || size > bytes_max {
        return None;
    }
    let mut result = Vec::with_capacity(size);
    while let Some(&command) = delta.split_off_first() {
        let piece = match command {
            0 => return None,
            1..=0x7f => delta.split_off(..usize::from(command))?,
            0x80.. => {
                let at = number(&mut delta, command, 4)?;
                let length = match number(&mut delta, command >> 4, 3)? {
                    0 => COPY_BYTES,
                    length => length,
                };
                base.get(at..)?.get(..length)?
            }
        };
        if piece.len() > size.saturating_sub(result.len()) {
            return None;
        }
        result.extend_from_slice(piece);
    }
    (result.len() == size).then_some(result)
}

/// The size of the result that a delta declares.
pub(super) fn declared(mut delta: &[u8]) -> Option<usize> {
    size(&mut delta)?;
    size(&mut delta)
}

/// Little-endian, seven bits a byte.
fn size(input: &mut &[u8]) -> Option<usize> {
    let mut size = 0_usize;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = *input.split_off_first()?;
        let bits = usize::from(byte & 0x7f);
        size |= bits.checked_mul(1_usize.checked_shl(shift)?)?;
        if byte & 0x80 == 0 {
            return Some(size);
        }
    }
    None
}

/// Little-endian, those of `bytes` bytes that the low bits of `present` name.
fn number(input: &mut &[u8], present: u8, bytes: u32) -> Option<usize> {
    let mut number = 0;
    for byte in (0..bytes).filter(|byte| present >> byte & 1 == 1) {
        number |= usize::from(*input.split_off_first()?) << (8 * byte);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn copies_and_additions_are_applied() {
        // From gitformat-pack: copy 3 bytes from 1, add two, copy 2 from 0.
        let delta = [5, 7, 0x91, 1, 3, 2, b'x', b'y', 0x90, 2];
        assert_eq!(applied(b"abcde", &delta, 7).as_deref(), Some(&b"bcdxyab"[..]));
        assert_eq!(declared(&delta), Some(7));
        let long = vec![7; COPY_BYTES + 1];
        let delta = [0x81, 0x80, 4, 0x80, 0x80, 4, 0x81, 1];
        assert_eq!(applied(&long, &delta, COPY_BYTES), Some(vec![7; COPY_BYTES]), "an empty size is 64 KiB");
    }

    #[test]
    fn what_leaves_the_base_or_the_declared_size_is_broken() {
        let broken: [&[u8]; 9] = [
            &[],
            &[4, 1, 0x90, 1],
            &[5, 6, 0x90, 5],
            &[5, 4, 0x90, 5],
            &[5, 5, 0x91, 1, 5],
            &[5, 1, 0],
            &[5, 2, 2, b'x'],
            &[5, 0x80, 0x80],
            &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
        ];
        for delta in broken {
            assert_eq!(applied(b"abcde", delta, 100), None, "{delta:?}");
        }
        assert_eq!(applied(b"abcde", &[5, 5, 0x90, 5], 4), None, "more than is allowed");
    }

    proptest! {
        #[test]
        fn nothing_makes_more_than_is_allowed(
            base in proptest::collection::vec(any::<u8>(), 0..100),
            size in 0_u8..60,
            commands in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let delta: Vec<u8> = [u8::try_from(base.len()).expect("small"), size].into_iter().chain(commands).collect();
            if let Some(result) = applied(&base, &delta, 50) {
                prop_assert_eq!(result.len(), usize::from(size));
                prop_assert!(size <= 50);
            }
        }
    }
}
