//! A CloudFront that holds an account to what is told of its quotas: three rules, each a knob. It knows nothing of the machine
//! that calls it, and counts in another way: it remembers what it granted, and when.

use std::collections::{BTreeMap, VecDeque};

use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;

/// No more than so many within so many milliseconds, however they are spread.
#[derive(Clone)]
pub struct Within {
    most: u64,
    ms: u64,
    /// When each of what was granted counts.
    granted: VecDeque<u64>,
}

/// Of one distribution, at a time.
#[derive(Clone, Copy)]
pub struct InProgress {
    pub wildcards: usize,
    pub paths: usize,
}

/// What holds; nothing by itself.
#[derive(Clone, Default)]
pub struct Rules {
    /// Calls of the account, refused as `Throttling`.
    pub calls: Option<Within>,
    /// Paths with a star, of the account. Refused as `TooManyInvalidationsInProgress`, as all that follows.
    pub wildcards: Option<Within>,
    /// Paths and tags of the account.
    pub items: Option<Within>,
    pub in_progress: Option<InProgress>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Throttling,
    TooManyInvalidationsInProgress,
}

/// An invalidation.
pub struct Made {
    pub at: u64,
    pub of: DistributionId,
    pub paths: PathSet,
    completed: u64,
}

#[derive(Default)]
pub struct CloudFront {
    pub rules: Rules,
    pub made: Vec<Made>,
    pub refused: Vec<(u64, DistributionId, Refusal)>,
    /// Wildcards that someone else has in progress, until then.
    pub foreign: BTreeMap<DistributionId, (usize, u64)>,
}

/// How long an invalidation takes. AWS names no time; it is "some ten seconds", and sometimes minutes.
const COMPLETES_AFTER_MS: u64 = 12_000;

impl Within {
    pub fn new(most: u64, ms: u64) -> Self {
        Self { most, ms, granted: VecDeque::new() }
    }

    /// Whether so many fit now. More than ever fit at once are let in when nothing else counts, and count one after the other.
    fn fits(&mut self, now: u64, cost: u64) -> bool {
        while self.granted.front().is_some_and(|at| at + self.ms <= now) {
            self.granted.pop_front();
        }
        let counted = self.granted.len() as u64;
        counted == 0 || counted + cost <= self.most
    }

    fn count(&mut self, now: u64, cost: u64) {
        self.granted.extend((0..cost).map(|one| now + one / self.most * self.ms));
    }
}

impl Rules {
    /// 0.5 creations a second, as AWS staff say: read as strictly as it can be.
    pub fn staff() -> Self {
        Self { calls: Some(Within::new(1, 2_000)), ..Self::default() }
    }

    /// What is quoted in 2026.
    pub fn quoted() -> Self {
        let (wildcards, items) = (Some(Within::new(1, 1_000)), Some(Within::new(150, 1_000)));
        Self { wildcards, items, ..Self::default() }
    }

    /// What older pages say.
    pub fn older() -> Self {
        Self { in_progress: Some(InProgress { wildcards: 15, paths: 3_000 }), ..Self::default() }
    }

    pub fn together() -> Self {
        Self { calls: Self::staff().calls, in_progress: Self::older().in_progress, ..Self::quoted() }
    }
}

impl CloudFront {
    pub fn of(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// A call of CreateInvalidation: the number of the invalidation, or the code it is refused with.
    pub fn create(&mut self, now: u64, of: &DistributionId, paths: &PathSet) -> Result<usize, Refusal> {
        let judged = self.judge(now, of, paths);
        match judged {
            Ok(()) => self.made.push(Made {
                at: now,
                of: of.clone(),
                paths: paths.clone(),
                completed: now + COMPLETES_AFTER_MS,
            }),
            Err(refusal) => self.refused.push((now, of.clone(), refusal)),
        }
        judged.map(|()| self.made.len() - 1)
    }

    pub fn is_completed(&self, now: u64, number: usize) -> bool {
        self.made[number].completed <= now
    }

    /// A call counts as one whatever becomes of its contents, which count only where they are granted.
    fn judge(&mut self, now: u64, of: &DistributionId, paths: &PathSet) -> Result<(), Refusal> {
        let stars = paths.iter().filter(|path| path.as_str().ends_with('*')).count();
        let plain = paths.iter().len() - stars;
        let rules = &mut self.rules;
        if rules.calls.as_mut().is_some_and(|calls| !calls.fits(now, 1)) {
            return Err(Refusal::Throttling);
        }
        rules.calls.as_mut().into_iter().for_each(|calls| calls.count(now, 1));
        let counted = [(&mut rules.wildcards, stars as u64), (&mut rules.items, (stars + plain) as u64)];
        let mut counted: Vec<_> = counted
            .into_iter()
            .filter(|(_, cost)| *cost > 0)
            .filter_map(|(rule, cost)| Some((rule.as_mut()?, cost)))
            .collect();
        let fits = counted.iter_mut().all(|(rule, cost)| rule.fits(now, *cost));
        if !fits || self.rules.in_progress.is_some_and(|most| self.is_full(now, of, most, (stars, plain))) {
            return Err(Refusal::TooManyInvalidationsInProgress);
        }
        let rules = &mut self.rules;
        rules.wildcards.as_mut().into_iter().for_each(|rule| rule.count(now, stars as u64));
        rules.items.as_mut().into_iter().for_each(|rule| rule.count(now, (stars + plain) as u64));
        Ok(())
    }

    fn is_full(&self, now: u64, of: &DistributionId, most: InProgress, (mut stars, mut plain): (usize, usize)) -> bool {
        let foreign = self.foreign.get(of).filter(|(_, until)| now < *until);
        let foreign = foreign.map_or(0, |(wildcards, _)| *wildcards);
        for made in self.made.iter().filter(|made| made.of == *of && made.completed > now) {
            let of_it = made.paths.iter().filter(|path| path.as_str().ends_with('*')).count();
            stars += of_it;
            plain += made.paths.iter().len() - of_it;
        }
        stars + foreign > most.wildcards || plain > most.paths
    }
}
