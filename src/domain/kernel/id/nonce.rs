//! Distinguishes two rollouts with one number: a ledger that was set back gives numbers out again (decision 48).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// 64 random bits, drawn when a number is raised and kept beside it. Written as 16 hexadecimal digits.
///
/// The default is none: records and vectors of rules 1 and 2 have none, and are written, named and hashed as they always were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(pub u64);

impl Nonce {
    /// Whether the number is from before there were nonces.
    pub fn is_none(&self) -> bool {
        self.0 == 0
    }

    /// Tells it apart from the few others that one number of one ledger ever had; empty for none. 16 bits, because it is in every
    /// record of a group.
    pub fn brief(self) -> String {
        if self.is_none() { String::new() } else { format!("{:04x}", self.0 >> 48) }
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Nonce {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Nonce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map(Self).map_err(de::Error::custom)
    }
}

/// Where a machine takes its nonces from. The outside gives it random bits once; what follows from them looks as random, so the
/// machine stays a function of its inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Nonces {
    /// There are none: numbers are distinguished as before rules 3.
    #[default]
    None,
    /// Each is the same. For models, where what the outside gives is counted.
    Same(Nonce),
    /// Each is another one: the state of a generator.
    Drawn(u64),
}

/// Steps of the generator, 2^64 divided by the golden ratio: odd, so that each of 2^64 states comes once.
/// SplitMix64, of Steele, Lea and Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Nonces {
    /// Those that follow from these random bits.
    pub fn seeded(bits: u64) -> Self {
        Self::Drawn(bits)
    }

    pub fn draw(&mut self) -> Nonce {
        match self {
            Self::None => Nonce::default(),
            Self::Same(nonce) => *nonce,
            Self::Drawn(state) => {
                *state = state.wrapping_add(STEP);
                // None is no nonce.
                Nonce(mixed(*state).max(1))
            }
        }
    }
}

/// The output of the generator in this state.
fn mixed(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_is_sixteen_digits_wherever_it_is_written() {
        let written = serde_json::to_string(&Nonce(0xab)).unwrap();
        assert_eq!(written, "\"00000000000000ab\"");
        assert_eq!(serde_json::from_str::<Nonce>(&written).unwrap(), Nonce(0xab));
        assert!(serde_json::from_str::<Nonce>("\"no\"").is_err());
        assert_eq!((Nonce(0).brief(), Nonce(u64::MAX).brief()), (String::new(), "ffff".to_owned()));
    }

    #[test]
    fn none_comes_twice_and_other_bits_give_others() {
        let draw = |bits| {
            let mut nonces = Nonces::seeded(bits);
            (0..1_000).map(|_| nonces.draw()).collect::<BTreeSet<_>>()
        };
        let (some, others) = (draw(0), draw(1));
        assert_eq!((some.len(), others.len()), (1_000, 1_000));
        assert!(some.is_disjoint(&others) && !some.contains(&Nonce::default()));
    }

    // From the reference implementation, https://prng.di.unimi.it/splitmix64.c, begun with 1234567.
    #[test]
    fn they_are_those_of_the_published_generator() {
        let mut nonces = Nonces::seeded(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| nonces.draw().0).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
