//! Chance that can be repeated.

/// How often calls go wrong by chance, each in a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Odds {
    /// It takes up to 8 s.
    pub delay: u64,
    /// It fails and is not carried out.
    pub fail: u64,
    /// It is carried out and reports a failure.
    pub lose: u64,
    /// The actor that made it panics.
    pub panic: u64,
}

/// Numbers that look random and follow from a seed (splitmix64, <https://prng.di.unimi.it/splitmix64.c>).
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    /// True in so many of a thousand cases.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}
