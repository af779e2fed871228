//! Packs: how objects travel ([gitformat-pack]).
//!
//! [gitformat-pack]: https://git-scm.com/docs/gitformat-pack

use std::borrow::Cow;
use std::collections::HashMap;

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_COMPUTE_ADLER32, TINFL_FLAG_PARSE_ZLIB_HEADER, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use sha1_smol::Sha1;

use super::failure::{Failure, spoken_bytes, too_much};
use super::object::{Kind, Object};
use super::{Oid, delta};

/// How hard packs are deflated: zlib's usual level.
const LEVEL: u8 = 6;

const OFFSET_DELTA: u8 = 6;
const REFERENCE_DELTA: u8 = 7;

/// Bytes of deltas that come before what they are changes to. Servers send the base first, where they can.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a delta is to be applied to.
#[derive(PartialEq, Eq, Hash)]
enum Base {
    /// The object that begins here in the pack.
    At(usize),
    /// The object with this id.
    Of(Oid),
}

struct Delta {
    at: usize,
    data: Vec<u8>,
}

/// Where objects of a pack are kept.
pub(super) trait Store: Send {
    /// Objects of one pack at most.
    fn objects_max(&self) -> usize;

    /// Whether an object is there.
    fn has(&self, id: Oid) -> bool;

    /// An object that others are changes to; `None` if it is not there.
    fn base(&self, id: Oid) -> Result<Option<Cow<'_, Object>>, Failure>;

    fn insert(&mut self, object: Object) -> Result<Oid, Failure>;

    /// Takes room for an object of so many bytes, before it is made.
    fn reserve(&mut self, bytes: usize) -> Result<(), Failure>;
}

/// Adds all objects of a pack to what is there.
pub(super) fn read(pack: &[u8], objects: &mut dyn Store) -> Result<(), Failure> {
    let (content, sum) = pack.split_last_chunk::<{ Oid::BYTES }>().ok_or_else(broken)?;
    if Sha1::from(content).digest().bytes() != *sum {
        return Err(Failure::answer("the pack's checksum is wrong"));
    }
    let mut rest = content;
    let mut number = || {
        let word = rest.split_off(..4).and_then(|word| word.first_chunk::<4>());
        word.map(|word| u32::from_be_bytes(*word)).ok_or_else(broken)
    };
    let (magic, version, count) = (number()?, number()?, number()?);
    if magic.to_be_bytes() != *b"PACK" || !(2..=3).contains(&version) {
        return Err(broken());
    }
    if usize::try_from(count).map_or(true, |count| count > objects.objects_max()) {
        return Err(Failure::lasting(too_much(&format!("{} objects", objects.objects_max()))));
    }
    let mut reader =
        Reader { objects, found: HashMap::new(), waiting: HashMap::new(), waiting_bytes: 0, inflater: Box::default() };
    for _ in 0..count {
        let at = content.len().saturating_sub(rest.len());
        reader.entry(at, &mut rest)?;
    }
    let complete = rest.is_empty() && reader.waiting.is_empty();
    complete.then_some(()).ok_or_else(broken)
}

struct Reader<'a> {
    objects: &'a mut dyn Store,
    /// Objects by where they begin in the pack.
    found: HashMap<usize, Oid>,
    /// Deltas whose base has not come yet.
    waiting: HashMap<Base, Vec<Delta>>,
    /// Bytes of all deltas that have waited.
    waiting_bytes: usize,
    inflater: Box<DecompressorOxide>,
}

impl Reader<'_> {
    fn entry(&mut self, at: usize, rest: &mut &[u8]) -> Result<(), Failure> {
        let (code, size) = head(rest).ok_or_else(broken)?;
        let base = match code {
            OFFSET_DELTA => Some(Base::At(offset(rest).and_then(|back| at.checked_sub(back)).ok_or_else(broken)?)),
            REFERENCE_DELTA => {
                let id = rest.split_off(..Oid::BYTES).and_then(|id| id.first_chunk()).ok_or_else(broken)?;
                Some(Base::Of(Oid::new(*id)))
            }
            _ => None,
        };
        self.objects.reserve(size)?;
        let data = self.inflated(rest, size)?;
        let Some(base) = base else {
            let kind = Kind::of_code(code).ok_or_else(broken)?;
            return self.arrived(at, Object { kind, data });
        };
        let found = match &base {
            Base::At(at) => self.found.get(at).copied(),
            Base::Of(id) => Some(*id).filter(|id| self.objects.has(*id)),
        };
        let delta = Delta { at, data };
        let Some(found) = found else {
            self.waiting_bytes = self.waiting_bytes.saturating_add(delta.data.len());
            if self.waiting_bytes > WAITING_BYTES_MAX {
                let bound = format!("{} of changes to objects that come later", spoken_bytes(WAITING_BYTES_MAX));
                return Err(Failure::lasting(too_much(&bound)));
            }
            self.waiting.entry(base).or_default().push(delta);
            return Ok(());
        };
        let object = self.resolved(found, &delta)?;
        self.arrived(at, object)
    }

    /// Keeps an object, and every one that was waiting for it.
    fn arrived(&mut self, at: usize, object: Object) -> Result<(), Failure> {
        let mut freed = self.kept(at, object)?;
        // One at a time: many changes to one object are many objects.
        while let Some((base, delta)) = freed.pop() {
            let object = self.resolved(base, &delta)?;
            freed.extend(self.kept(delta.at, object)?);
        }
        Ok(())
    }

    /// Keeps an object; what was waiting for it, with its id.
    fn kept(&mut self, at: usize, object: Object) -> Result<Vec<(Oid, Delta)>, Failure> {
        let id = self.objects.insert(object)?;
        self.found.insert(at, id);
        let waiting = [self.waiting.remove(&Base::At(at)), self.waiting.remove(&Base::Of(id))];
        Ok(waiting.into_iter().flatten().flatten().map(|delta| (id, delta)).collect())
    }

    fn resolved(&mut self, base: Oid, delta: &Delta) -> Result<Object, Failure> {
        let size = delta::declared(&delta.data).ok_or_else(broken)?;
        self.objects.reserve(size)?;
        let base = self.objects.base(base)?.ok_or_else(broken)?;
        let data = delta::applied(&base.data, &delta.data, size).ok_or_else(broken)?;
        Ok(Object { kind: base.kind, data })
    }

    fn inflated(&mut self, rest: &mut &[u8], size: usize) -> Result<Vec<u8>, Failure> {
        const FLAGS: u32 =
            TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_COMPUTE_ADLER32 | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let mut data = vec![0; size];
        self.inflater.init();
        let (status, read, written) = decompress(&mut self.inflater, rest, &mut data, 0, FLAGS);
        let whole = status == TINFLStatus::Done && written == size && rest.split_off(..read).is_some();
        whole.then_some(data).ok_or_else(broken)
    }
}

/// Kind and size: three bits of kind, then the size little-endian, four bits and seven each.
fn head(input: &mut &[u8]) -> Option<(u8, usize)> {
    let mut byte = *input.split_off_first()?;
    let code = byte >> 4 & 7;
    let mut size = usize::from(byte & 0x0f);
    let mut shift = 4_u32;
    while byte & 0x80 != 0 {
        byte = *input.split_off_first()?;
        size |= usize::from(byte & 0x7f).checked_mul(1_usize.checked_shl(shift)?)?;
        shift = shift.checked_add(7)?;
    }
    Some((code, size))
}

/// How far back a base begins: big-endian, seven bits a byte, and one more for each byte but the last.
fn offset(input: &mut &[u8]) -> Option<usize> {
    let mut byte = *input.split_off_first()?;
    let mut back = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = *input.split_off_first()?;
        back = back.checked_add(1)?.checked_mul(0x80)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some(back)
}

fn broken() -> Failure {
    Failure::answer("the pack cannot be read")
}

/// A pack of whole objects.
pub(super) fn written(objects: &[Object]) -> Vec<u8> {
    let mut pack = b"PACK\x00\x00\x00\x02".to_vec();
    pack.extend(u32::try_from(objects.len()).unwrap_or(u32::MAX).to_be_bytes());
    for Object { kind, data } in objects {
        let mut size = data.len();
        let mut byte = kind.code() << 4 | low_bits(size, 0x0f);
        size >>= 4;
        while size > 0 {
            pack.push(byte | 0x80);
            byte = low_bits(size, 0x7f);
            size >>= 7;
        }
        pack.push(byte);
        pack.extend(compress_to_vec_zlib(data, LEVEL));
    }
    let sum = Sha1::from(&pack).digest().bytes();
    pack.extend(sum);
    pack
}

fn low_bits(size: usize, mask: u8) -> u8 {
    u8::try_from(size & usize::from(mask)).unwrap_or(mask)
}

#[cfg(test)]
mod tests;
