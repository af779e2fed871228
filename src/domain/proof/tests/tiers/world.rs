//! Two tiers of a CDN in virtual time: edges, each with copies of its own, and a shield behind them. They keep what they get, for as long as
//! they may and longer (stale-while-revalidate), and drop it when a purge reaches them, if it does. Knows nothing of a look.

/// Chances from a seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    pub fn between(&mut self, from: u64, until: u64) -> u64 {
        from + self.below(until - from + 1)
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// A copy: of which version, when the origin made it, and what age it had when it was stored.
#[derive(Clone, Copy, Debug)]
pub struct Copied {
    pub version: u8,
    pub made: u64,
    stored: u64,
    age_s: u64,
}

impl Copied {
    pub fn from_origin(version: u8, made: u64) -> Self {
        Self { version, made, stored: made, age_s: 0 }
    }

    /// As a cache reckons it, in whole seconds.
    fn age_s(&self, now: u64) -> u64 {
        self.age_s + (now - self.stored) / 1000
    }
}

#[derive(Clone, Debug)]
pub struct Tier {
    pub copy: Option<Copied>,
    /// How long a copy is good, and how long it is given out after that.
    pub ttl: u64,
    pub grace: u64,
}

/// What a visitor gets.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    pub copy: Copied,
    pub age: Option<u64>,
    pub hit: bool,
}

#[derive(Clone, Debug)]
pub struct Tiers {
    pub edges: Vec<Tier>,
    pub shield: Option<Tier>,
}

impl Tiers {
    /// Of so many tiers, the shield last.
    pub fn len(&self) -> usize {
        self.edges.len() + usize::from(self.shield.is_some())
    }

    pub fn tier(&mut self, at: usize) -> &mut Tier {
        let edges = self.edges.len();
        if at < edges { &mut self.edges[at] } else { self.shield.as_mut().unwrap() }
    }

    pub fn get(&mut self, now: u64, edge: usize) -> Served {
        let shield = &mut self.shield;
        serve(&mut self.edges[edge], now, |now| match shield {
            Some(shield) => serve(shield, now, from_pods),
            None => from_pods(now),
        })
    }

    /// An answer that has been on its way through them for long arrives.
    pub fn arrive(&mut self, copy: Copied, edge: Option<usize>) {
        self.shield.iter_mut().for_each(|shield| shield.copy = Some(copy));
        if let Some(edge) = edge {
            self.edges[edge].copy = Some(copy);
        }
    }
}

/// All pods are new by the time that anything is asked here.
fn from_pods(now: u64) -> Served {
    Served { copy: Copied::from_origin(2, now), age: None, hit: false }
}

fn serve(tier: &mut Tier, now: u64, behind: impl FnOnce(u64) -> Served) -> Served {
    let had = tier.copy.filter(|copy| now < copy.made + tier.ttl + tier.grace);
    let served = had.map(|copy| Served { copy, age: Some(copy.age_s(now)), hit: true });
    if let Some(served) = served.filter(|served| now < served.copy.made + tier.ttl) {
        return served;
    }
    let new = behind(now);
    tier.copy = Some(Copied { stored: now, age_s: new.age.unwrap_or_default(), ..new.copy });
    served.unwrap_or(Served { hit: false, ..new })
}
