//! Inputs made from a corpus by a seed: bytes are changed, parts are cut out, doubled, or taken from another file, words of the
//! input are replaced by others that decoders have trouble with.
//!
//! Not guided by what is covered: that is libFuzzer's, under `fuzz/`.

use std::hash::{BuildHasher, RandomState};

/// Bytes of an input at most.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// Changes of one input at most.
const CHANGES_MAX: u64 = 6;

/// What decoders have trouble with, in whatever they decode.
const WORDS: &[&[u8]] = &[
    b"",
    b"0",
    b"-1",
    b"1e999",
    b"18446744073709551615",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"4294967296",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"\"\"",
    b"\"\\ud800\"",
    b"\\u0000",
    b"{\"",
    b"[[[[[[[[",
    b"}}",
    b"]]",
    b",,",
    b"::",
    b"\0",
    b"\x7f",
    b"\xff\xfe",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    "\u{202e}".as_bytes(),
    "\u{feff}".as_bytes(),
    "é".as_bytes(),
    "\u{1f600}".as_bytes(),
    b"\r\n",
    b"\n\n",
    b"\t",
    b" ",
    b"%00",
    b"%2e%2e%2f",
    b"../",
    b"/",
    b"//",
    b"*",
    b"**",
    b"*.",
    b".",
    b"..",
    b"@",
    b":",
    b"?",
    b"#",
    b"=",
    b"&",
    b"'",
    b"\"",
    b"\\",
    b"|",
    b"---\n",
    b"&a *a",
    b"1970-01-01T00:00:00Z",
    b"9999-12-31T23:59:60Z",
    b"-0001-01-01T00:00:00Z",
    b"<!DOCTYPE a [<!ENTITY b \"c\">]>&b;",
    b"0000",
    b"0001",
    b"0004",
    b"fff0",
    b"zzzz",
    b"PACK",
    b"sha256:",
    b"application/json",
    b"x-y",
];

/// A generator of numbers that a seed repeats ([splitmix64](https://prng.di.unimi.it/splitmix64.c)).
pub struct Dice(u64);

/// A seed that no other run has.
pub fn any_seed() -> u64 {
    RandomState::new().hash_one(0_u8)
}

impl Dice {
    /// One for each target, so that a target more changes nothing of the others.
    pub fn new(seed: u64, target: &str) -> Self {
        Self(target.bytes().fold(seed, |sum, byte| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)))
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one; 0 below 0.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() % u64::try_from(bound).unwrap().max(1)).unwrap()
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Where inputs are made.
pub struct Kitchen {
    corpus: Vec<Vec<u8>>,
}

impl Kitchen {
    /// From this corpus; from nothing where there is none.
    pub fn new(corpus: Vec<Vec<u8>>) -> Self {
        Self { corpus: if corpus.is_empty() { vec![Vec::new()] } else { corpus } }
    }

    pub fn cook(&self, dice: &mut Dice) -> Vec<u8> {
        let mut input = dice.of(&self.corpus).clone();
        for _ in 0..=dice.roll() % CHANGES_MAX {
            self.change(&mut input, dice);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn change(&self, input: &mut Vec<u8>, dice: &mut Dice) {
        let at = dice.below(input.len() + 1);
        let some = (at + 1 + dice.below(32)).min(input.len());
        match dice.below(10) {
            // A bit, a byte, a byte more.
            0 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << dice.below(8)),
            1 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte = u8::try_from(dice.below(256)).unwrap()),
            2 => input.insert(at, u8::try_from(dice.below(256)).unwrap()),
            // A part less, a part twice, or many times.
            3 => drop(input.drain(at.min(some)..some)),
            4 => {
                let part = input[at.min(some)..some].to_vec();
                let times = if dice.below(8) == 0 { 64 } else { 1 };
                input.splice(at..at, part.repeat(times));
            }
            5 => input.truncate(at),
            // A part of another file.
            6 => {
                let other = dice.of(&self.corpus);
                let from = dice.below(other.len() + 1);
                let to = (from + dice.below(64)).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
            7 => drop(input.splice(at..at, dice.of(WORDS).iter().copied())),
            // A word is replaced: a number, a name, a value of JSON.
            _ => {
                let (from, to) = word(input, at);
                input.splice(from..to, dice.of(WORDS).iter().copied());
            }
        }
    }
}

/// The word at a place: letters, digits and what stands within names and numbers.
fn word(input: &[u8], at: usize) -> (usize, usize) {
    let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+".contains(byte);
    let from = input[..at].iter().rposition(|byte| !in_word(byte)).map_or(0, |before| before + 1);
    let to = input[at..].iter().position(|byte| !in_word(byte)).map_or(input.len(), |after| at + after);
    (from, to)
}

#[test]
fn a_seed_repeats_its_inputs_and_another_makes_others() {
    let kitchen = Kitchen::new(vec![br#"{"name": "web", "replicas": 3}"#.to_vec(), b"image: web".to_vec()]);
    let inputs = |seed: u64, target: &str| {
        let mut dice = Dice::new(seed, target);
        (0..200).map(|_| kitchen.cook(&mut dice)).collect::<Vec<_>>()
    };
    assert_eq!(inputs(7, "a"), inputs(7, "a"));
    assert_ne!(inputs(7, "a"), inputs(8, "a"));
    assert_ne!(inputs(7, "a"), inputs(7, "b"));
    let different: std::collections::BTreeSet<_> = inputs(7, "a").into_iter().collect();
    assert!(different.len() > 150, "{} of 200", different.len());
    assert!(Kitchen::new(Vec::new()).cook(&mut Dice::new(1, "")).len() < INPUT_BYTES_MAX);
}
