use std::iter::{once, repeat_n};

use proptest::prelude::*;
use purge::ports::Retry;

use super::*;
use crate::git::Bounds;
use crate::git::Objects;

fn blob(text: impl Into<Vec<u8>>) -> Object {
    Object { kind: Kind::Blob, data: text.into() }
}

/// An entry of a pack: kind, what stands between head and data, and data, of at most 15 bytes.
fn entry(code: u8, base: &[u8], data: &[u8]) -> Vec<u8> {
    let head = code << 4 | u8::try_from(data.len()).ok().filter(|size| *size < 16).expect("short");
    [&[head], base, &compress_to_vec_zlib(data, LEVEL)].concat()
}

fn pack(entries: &[Vec<u8>]) -> Vec<u8> {
    let count = u32::try_from(entries.len()).expect("few").to_be_bytes();
    signed([&b"PACK\x00\x00\x00\x02"[..], &count, &entries.concat()].concat())
}

fn signed(content: Vec<u8>) -> Vec<u8> {
    let sum = Sha1::from(&content).digest().bytes();
    content.into_iter().chain(sum).collect()
}

fn read_all(pack: &[u8], bounds: Bounds) -> Result<Objects, Failure> {
    let mut objects = Objects::new(bounds);
    read(pack, &mut objects).map(|()| objects)
}

/// `abcde` becomes `bcdxy`.
const DELTA: [u8; 8] = [5, 5, 0x91, 1, 3, 2, b'x', b'y'];
/// `bcdxy` becomes `xyxy`.
const NEXT: [u8; 8] = [5, 4, 0x91, 3, 2, 2, b'x', b'y'];

#[test]
fn deltas_find_their_base_by_place_and_by_id_and_in_any_order() {
    let [base, middle, last] = ["abcde", "bcdxy", "xyxy"].map(blob);
    let id = Object::id;
    let whole = entry(3, b"", b"abcde");
    let by_place = |back: usize, delta: &[u8]| entry(OFFSET_DELTA, &[u8::try_from(back).expect("near")], delta);
    let by_id = |base: &Object, delta: &[u8]| entry(REFERENCE_DELTA, id(base).as_bytes(), delta);
    let first = by_place(whole.len(), &DELTA);
    for entries in [
        vec![whole.clone(), first.clone(), by_place(first.len(), &NEXT)],
        vec![whole.clone(), by_id(&base, &DELTA), by_id(&middle, &NEXT)],
        vec![by_id(&middle, &NEXT), by_id(&base, &DELTA), whole.clone()],
        vec![by_id(&base, &DELTA), by_place(by_id(&base, &DELTA).len(), &NEXT), whole],
    ] {
        let objects = read_all(&pack(&entries), Bounds::default()).expect("a pack");
        for object in [&base, &middle, &last] {
            assert_eq!(objects.get(id(object)), Some(object));
        }
    }
}

#[test]
fn what_is_written_is_read_whatever_its_size() {
    let sizes = [0, 1, 15, 16, 2047, 2048, 70_000];
    let objects: Vec<Object> = sizes
        .map(|size| blob(vec![7; size]))
        .into_iter()
        .chain(once(Object { kind: Kind::Tree, data: vec![] }))
        .collect();
    let read = read_all(&written(&objects), Bounds::default()).expect("a pack");
    for object in objects {
        let id = object.id();
        assert_eq!(read.get(id), Some(&object));
    }
}

#[test]
fn a_pack_that_is_none_is_refused() {
    let whole = entry(3, b"", b"abcde");
    let good = pack(std::slice::from_ref(&whole));
    let content = good.split_last_chunk::<20>().expect("long").0.to_vec();
    let with = |at: usize, byte: u8| {
        let mut content = content.clone();
        content[at] = byte;
        signed(content)
    };
    for (broken, what) in [
        (Vec::new(), "nothing"),
        (good[..good.len() - 1].to_vec(), "a byte less"),
        (signed(b"PACK".to_vec()), "only its name"),
        (with(3, b'X'), "another name"),
        (with(7, 4), "another version"),
        (with(11, 2), "an object too few"),
        (with(11, 0), "an object too many"),
        (with(12, 3 << 4 | 4), "a larger object than declared"),
        (with(12, 3 << 4 | 6), "a smaller object than declared"),
        (with(12, 5 << 4 | 5), "an unknown kind"),
        (with(content.len() - 1, 0xff), "a wrong sum within"),
        (pack(&[entry(OFFSET_DELTA, &[0], &DELTA)]), "a delta to itself"),
        (pack(&[entry(OFFSET_DELTA, &[100], &DELTA)]), "a delta to before the pack"),
        (pack(&[entry(REFERENCE_DELTA, &[7; 20], &DELTA)]), "a delta to nothing"),
        (pack(&[whole, entry(OFFSET_DELTA, &[1], &DELTA)]), "a delta to the middle of something"),
    ] {
        assert!(read_all(&broken, Bounds::default()).expect_err(what).answered, "{what}");
    }
    let mut wrong_sum = good.clone();
    wrong_sum[content.len()] ^= 1;
    assert_eq!(read_all(&wrong_sum, Bounds::default()).expect_err("its sum").cause, "the pack's checksum is wrong");
    assert!(read_all(&good, Bounds::default()).is_ok());
}

#[test]
fn a_bomb_stops_at_what_is_allowed() {
    let bounds = Bounds { unpacked_bytes: 1_000_000, ..Bounds::default() };
    let bomb = written(&[blob(vec![0; 10_000_000])]);
    assert!(bomb.len() < 20_000);
    assert_eq!(read_all(&bomb, bounds).expect_err("too large").retry, Retry::Never);
    // 64 KiB, and deltas that copy them twice: 10 bytes for 128 KiB each.
    let base = blob(vec![0; 0x1_0000]);
    let copies = [0x80, 0x80, 4, 0x80, 0x80, 8, 0x80, 0x80];
    let delta = entry(REFERENCE_DELTA, base.id().as_bytes(), &copies);
    let whole = written(&[base]);
    let whole = whole[12..whole.len() - 20].to_vec();
    let copied = |times| pack(&once(whole.clone()).chain(repeat_n(delta.clone(), times)).collect::<Vec<_>>());
    assert!(read_all(&copied(7), bounds).is_ok());
    assert_eq!(read_all(&copied(8), bounds).expect_err("too large").retry, Retry::Never);
    let many = (0..40).map(|_| entry(OFFSET_DELTA, &[0], &DELTA)).collect::<Vec<_>>();
    let bounds = Bounds { objects: 30, ..Bounds::default() };
    assert_eq!(read_all(&pack(&many), bounds).expect_err("too many").retry, Retry::Never);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn no_change_of_a_pack_breaks_the_bounds(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<proptest::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let whole = entry(3, b"", b"abcde");
        let delta = entry(OFFSET_DELTA, &[u8::try_from(whole.len()).expect("near")], &DELTA);
        let base = blob("bcdxy").id();
        let pack = pack(&[whole, delta, entry(REFERENCE_DELTA, base.as_bytes(), &NEXT), entry(3, b"", b"")]);
        let mut content = pack.split_last_chunk::<20>().expect("long").0.to_vec();
        for (at, byte) in changes {
            let at = at.index(content.len());
            content[at] = byte;
        }
        if is_cut {
            content.truncate(cut.index(content.len()));
        }
        let bounds = Bounds { unpacked_bytes: 100, objects: 5, ..Bounds::default() };
        if let Ok(objects) = read_all(&signed(content), bounds) {
            let bytes: usize = objects.objects.values().map(|object| object.data.len()).sum();
            prop_assert!(objects.objects.len() <= 5 && bytes <= 100);
        }
    }
}
