//! Seeded runs of a look at two tiers, with purges that arrive late and in any order or never, slow answers of old pods, restarts, clocks
//! that stand still, and hostile headers. What was said is judged by what the tiers had, never by a rule of the look.

mod world;

use super::*;
use crate::look::Phase;
use crate::tally::{Good, PAGE_REQUESTS_MAX, Place};
use std::collections::BTreeMap;
use world::{Copied, Dice, Tier, Tiers};

const RUNS: u64 = 10_000;

/// When the last old pod is gone, in milliseconds of true time; the purge is ordered some seconds after.
const ALL_NEW: u64 = 10_000_000;

/// What happens at a time.
enum Happens {
    Visit(usize),
    Arrives(Option<usize>),
    Purged(usize),
    Completed(u8),
    Kept(Box<Stored>),
    /// A request of this life begins, and is served: with when it began by the looker's clock.
    Begins(u64, Box<Question>),
    Served(u64, Box<Question>, Timestamp),
    Answered(u64, Box<(crate::asked::QuestionId, Answers)>),
    Restart,
    /// The looker's clock stands still for so long.
    Suspended(u64),
    Overtaken,
    /// What the first edge has is noted.
    Sampled,
}

/// What a look met, in truth.
#[derive(Clone, Debug)]
struct Fact {
    round: u8,
    place: String,
    made: u64,
    version: u8,
    shield: Option<u64>,
}

/// What a run is made of.
#[derive(Debug)]
struct Kind {
    marked: bool,
    hostile: u64,
    front: bool,
    /// Answers of old pods that are stored after the purge was ordered.
    late: Option<u64>,
    upset: bool,
    deaf: u64,
}

struct Run {
    dice: Dice,
    kind: Kind,
    tiers: Tiers,
    now: u64,
    queue: BTreeMap<(u64, u64), Happens>,
    queued: u64,
    look: Option<Look>,
    durable: Option<Stored>,
    /// What the looker's clock shows is so much less than true time.
    slow: u64,
    life: u64,
    /// The orders of purges by round, with the life of each, and when they were complete.
    orders: Vec<(u64, u64)>,
    completed: Vec<u64>,
    facts: Vec<Fact>,
    /// When what the first edge had was made, half a minute and a minute after the first purge.
    samples: Vec<Option<u64>>,
    requests: BTreeMap<u8, u8>,
    /// Its clock stood still.
    stood: bool,
    /// Of each round.
    found: BTreeMap<u8, Found>,
    ended: bool,
}

/// Over all runs.
#[derive(Default, Debug)]
struct Sums {
    renewed: u64,
    fresh: u64,
    stale: u64,
    unknown: u64,
    by_age: (u64, u64),
    by_content: (u64, u64),
    upset_by_age: (u64, u64),
    upset_by_content: (u64, u64),
    seconds: u64,
    thirds: u64,
    requests: u8,
    bytes: usize,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let edges = if dice.percent(70) { 1 } else { 2 };
        let ttl = [20_000, 300_000, 86_400_000][usize::try_from(dice.below(3)).unwrap()];
        let grace = if dice.percent(30) { 600_000 } else { 0 };
        let tier = |dice: &mut Dice| {
            let made = ALL_NEW - dice.below(ttl.min(3_600_000));
            Tier { copy: dice.percent(80).then(|| Copied::from_origin(1, made)), ttl, grace }
        };
        let shield = dice.percent(70).then(|| tier(&mut dice));
        let edges = (0..edges).map(|_| tier(&mut dice)).collect();
        let kind = Kind {
            marked: dice.percent(50),
            hostile: if dice.percent(30) { 30 } else { 0 },
            front: dice.percent(5),
            late: dice.percent(30).then(|| dice.below(250_000)),
            upset: dice.percent(30),
            deaf: if dice.percent(40) { 60 } else { 0 },
        };
        let mut run = Self {
            dice,
            kind,
            tiers: Tiers { edges, shield },
            now: ALL_NEW,
            queue: BTreeMap::new(),
            queued: 0,
            look: None,
            durable: None,
            slow: 0,
            life: 0,
            orders: Vec::new(),
            completed: Vec::new(),
            facts: Vec::new(),
            samples: Vec::new(),
            requests: BTreeMap::new(),
            stood: false,
            found: BTreeMap::new(),
            ended: false,
        };
        run.now += run.dice.between(1_000, 20_000);
        run.slow = run.dice.below(run.now);
        run.prepare();
        run.order(0);
        run
    }

    fn at(&mut self, time: u64, what: Happens) {
        self.queued += 1;
        self.queue.insert((time, self.queued), what);
    }

    /// What the world does by itself.
    fn prepare(&mut self) {
        let (start, edges) = (self.now, self.tiers.edges.len());
        for _ in 0..self.dice.below(30) {
            let edge = usize::try_from(self.dice.below(edges as u64)).unwrap();
            let time = start + self.dice.below(120_000);
            self.at(time, Happens::Visit(edge));
        }
        if let Some(after) = self.kind.late {
            let edge = (self.tiers.shield.is_none() || self.dice.percent(70)).then_some(0);
            self.at(start + after, Happens::Arrives(edge));
        }
        if self.kind.upset {
            for _ in 0..self.dice.between(1, 3) {
                let time = start + self.dice.below(400_000);
                let standing = self.dice.between(1_000, 90_000);
                let what = match self.dice.below(10) {
                    0 => Happens::Overtaken,
                    1..=3 => Happens::Suspended(standing),
                    _ => Happens::Restart,
                };
                self.at(time, what);
            }
        }
    }

    fn order(&mut self, round: u8) {
        self.orders.push((self.now, self.life));
        let mut last = self.now;
        for tier in 0..self.tiers.len() {
            let time = self.now + self.dice.between(1, 5_000);
            if !self.dice.percent(self.kind.deaf) {
                self.at(time, Happens::Purged(tier));
                last = last.max(time);
            }
        }
        // Mostly it is said when it is done, and later; sometimes before.
        let said =
            if self.dice.percent(90) { last + self.dice.below(20_000) } else { self.now + self.dice.below(3_000) };
        self.at(said, Happens::Completed(round));
    }

    fn clock(&self, time: u64) -> Timestamp {
        at(time - self.slow)
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Keep(stored) => {
                    let time = self.now + self.dice.below(800);
                    self.judge(&stored);
                    self.at(time, Happens::Kept(stored));
                }
                Effect::Ask(question) => {
                    let wait = if self.dice.percent(5) { self.dice.below(40_000) } else { self.dice.below(600) };
                    let (time, life) = (self.now + wait, self.life);
                    self.at(time, Happens::Begins(life, question));
                }
                Effect::PurgeAgain(round, _) => {
                    if self.orders.len() == usize::from(round) {
                        assert!(self.durable.as_ref().is_some_and(|stored| stored.phase == Phase::Again));
                        assert_eq!(self.completed.len(), usize::from(round), "the former is not complete");
                        self.order(round);
                    }
                }
                Effect::Tell(verdict) => {
                    let durable = self.durable.as_ref().unwrap();
                    assert_eq!(durable.pages[0].found, Some(verdict.found), "told before it is durable");
                    let fresh = verdict.words.contains("edge is fresh");
                    assert_eq!(fresh, verdict.found == Found::Fresh, "{}", verdict.words);
                    self.found.insert(verdict.round, verdict.found);
                }
                Effect::End => self.ended = true,
            }
        }
    }

    fn begin(&mut self, life: u64, question: Box<Question>) {
        if life == self.life {
            *self.requests.entry(question.id.round).or_default() += 1;
            let started = self.clock(self.now);
            let time = self.now + self.takes();
            self.at(time, Happens::Served(life, question, started));
        }
    }

    /// Half of a request.
    fn takes(&mut self) -> u64 {
        let longest = if self.dice.percent(10) { 4_900 } else { 900 };
        self.dice.between(5, longest)
    }

    fn serve(&mut self, life: u64, question: &Question, started: Timestamp) {
        let edge = usize::try_from(self.dice.below(self.tiers.edges.len() as u64)).unwrap();
        let served = self.tiers.get(self.now, edge);
        let Copied { made, version, .. } = served.copy;
        let shield = self.tiers.shield.as_ref().and_then(|shield| shield.copy).map(|copy| copy.made);
        let fact = Fact { round: question.id.round, place: format!("P{edge}"), made, version, shield };
        let (version, age) = (format!("v{version}"), served.age.map(|age| age.to_string()));
        let mut lines = vec![("x-amz-cf-pop", fact.place.as_str()), ("x-version", version.as_str())];
        lines.push(("x-cache", if served.hit { "Hit from cloudfront" } else { "Miss from cloudfront" }));
        if self.kind.front {
            // It tells its own age.
            lines.extend([("via", "1.1 a.cloudfront.net (CloudFront), 1.1 other"), ("age", "0")]);
        } else {
            lines.extend(age.as_deref().map(|age| ("age", age)));
        }
        let time = self.now + self.takes();
        let mut edge = answer("/", started, &lines);
        edge.ended = self.clock(time);
        let mut edge = reply(edge);
        if self.dice.percent(self.kind.hostile) {
            edge = self.spoil(edge);
        }
        let fails = self.dice.percent(self.kind.hostile / 3);
        let pod = if fails { failed("refused") } else { reply(answer("/", at(0), &[("x-version", "v2")])) };
        let pods = if question.asks_pods { vec![pod.clone(), pod] } else { Vec::new() };
        self.facts.push(fact);
        self.at(time, Happens::Answered(life, Box::new((question.id, Answers { edge, pods }))));
    }

    /// What is hostile, broken or in the way says nothing; none of it gives an old copy the age of a new one, which no look could see.
    fn spoil(&mut self, mut edge: Reply) -> Reply {
        let now = edge.hops[0].started;
        let lines: &[(&str, &str)] = match self.dice.below(9) {
            0 => return failed("connection reset"),
            1 => {
                edge.hops[0].status = 503;
                return edge;
            }
            2 => &[("age", "5"), ("age", "5")],
            3 => &[("age", "-1")],
            4 => &[("age", "99999999999"), ("x-cache", "Miss from cloudfront")],
            5 => &[("x-cache", "Hit from cloudfront")],
            6 => &[("x-amz-cf-id", "-"), ("age", "0"), ("x-version", "v2")],
            7 => &[("x-cache", "Miss from cloudfront"), ("cache-status", "shield; hit")],
            _ => &[("x-amz-cf-pop", "\u{202e}"), ("age", "+1"), ("x-version", "v2"), ("x-version", "v1")],
        };
        reply(answer("/", now, lines))
    }

    fn happens(&mut self, time: u64, what: Happens) {
        match what {
            Happens::Visit(edge) => drop(self.tiers.get(time, edge)),
            Happens::Arrives(edge) => self.tiers.arrive(Copied::from_origin(1, time), edge),
            Happens::Purged(tier) => self.tiers.tier(tier).copy = None,
            Happens::Completed(round) => self.complete(round),
            Happens::Kept(stored) => {
                let number = stored.number;
                self.durable = Some(*stored);
                self.step(Event::Kept(number));
            }
            Happens::Begins(life, question) => self.begin(life, question),
            Happens::Served(life, question, started) => self.serve(life, &question, started),
            Happens::Answered(life, answered) => {
                if life == self.life {
                    let (id, answers) = *answered;
                    self.step(Event::Answered(id, Box::new(answers)));
                }
            }
            Happens::Restart => {
                self.life += 1;
                self.slow = self.dice.below(self.now);
                // A write under way has happened, or has not.
                let is_write = |what: &mut Happens| matches!(what, Happens::Kept(_));
                for (_, write) in self.queue.extract_if(.., |_, what| is_write(what)).collect::<Vec<_>>() {
                    if let Happens::Kept(stored) = write
                        && self.dice.percent(50)
                    {
                        self.durable = Some(*stored);
                    }
                }
                self.look = self.durable.clone().map(|stored| Look::resume(self.clock(self.now), stored));
                // The purges have a memory of their own.
                let done = self.completed.len();
                if self
                    .durable
                    .as_ref()
                    .is_some_and(|stored| stored.phase == Phase::Again && done > usize::from(stored.round) + 1)
                {
                    self.step(Event::AgainCompleted(u8::try_from(done - 1).unwrap(), None));
                }
            }
            Happens::Suspended(standing) => {
                self.stood = true;
                self.slow += standing.min(self.now - self.slow);
            }
            Happens::Sampled => self.samples.push(self.tiers.edges[0].copy.map(|copy| copy.made)),
            Happens::Overtaken => self.step(Event::Overtaken),
        }
    }

    fn complete(&mut self, round: u8) {
        self.completed.push(self.now);
        let (ordered, life) = self.orders[usize::from(round)];
        let before = (life == self.life && ordered >= self.slow).then(|| self.clock(ordered));
        if round > 0 {
            return self.step(Event::AgainCompleted(round, before));
        }
        [30_000, 59_900].into_iter().for_each(|after| self.at(self.now + after, Happens::Sampled));
        let marker = self.kind.marked.then(|| Marker::parse("header:x-version").unwrap());
        let look = Look::begin(
            self.clock(self.now),
            before.into(),
            paths(&["/*"]),
            [page("www.example.com/")],
            marker,
            Again::up_to(1),
        );
        self.durable = look.as_ref().map(|look| look.stored().clone());
        self.look = look;
    }

    fn step(&mut self, event: Event) {
        let now = self.clock(self.now);
        let effects = self.look.as_mut().map(|look| look.step(now, event)).unwrap_or_default();
        self.perform(effects);
    }

    /// Whether what is known of the page is so: by what was at the edge when it was last seen there.
    fn judge(&self, stored: &Stored) {
        let tally = &stored.pages[0];
        let ordered = self.orders[usize::from(stored.round)].0;
        let of_round = |place: &str| self.facts.iter().rfind(|fact| fact.round == stored.round && fact.place == place);
        let shows = |is_so: fn(&Good) -> bool| {
            tally.places.values().any(|seen| matches!(seen, Place::Good(good) if is_so(good)))
        };
        let shown = match tally.found {
            Some(Found::Renewed) => shows(|good| good.renewed),
            Some(Found::Fresh) => shows(|good| good.fresh),
            Some(Found::Stale | Found::Unknown) | None => true,
        };
        assert!(shown || self.found.contains_key(&stored.round), "nothing has shown it: {tally:?}");
        for (place, seen) in &tally.places {
            let (Place::Good(good), Some(found)) = (seen, tally.found) else { continue };
            let fact = of_round(place).unwrap_or_else(|| panic!("{place} was never seen"));
            if found == Found::Renewed && good.renewed {
                let newer = fact.made >= ordered && fact.shield.is_none_or(|made| made >= ordered);
                assert!(newer, "renewed, and it was made {} ms before: {fact:?} {:?}", ordered - fact.made, self.kind);
            }
            if found == Found::Fresh && good.fresh {
                assert_eq!(fact.version, 2, "fresh, and it is another version: {fact:?} {:?}", self.kind);
            }
        }
        if tally.found == Some(Found::Stale) && !self.stood {
            let old = |fact: &&Fact| fact.round == stored.round && (fact.made < ordered || fact.version == 1);
            assert!(
                self.facts.iter().filter(old).count() >= 2,
                "stale, and it is not: {:?} {:?}",
                self.facts,
                self.kind
            );
        }
    }

    fn run(&mut self) {
        while !self.ended {
            let deadline = self.look.as_ref().and_then(Machine::next_deadline).map(|at| at.as_millis() + self.slow);
            let queued = self.queue.keys().next().copied();
            match (deadline, queued) {
                (Some(deadline), queued) if queued.is_none_or(|(time, _)| deadline < time) => {
                    self.now = self.now.max(deadline);
                    let now = self.clock(self.now);
                    let effects = self.look.as_mut().map(|look| look.tick(now)).unwrap_or_default();
                    self.perform(effects);
                }
                (_, Some(key)) => {
                    self.now = self.now.max(key.0);
                    let what = self.queue.remove(&key).unwrap();
                    self.happens(self.now, what);
                }
                (Some(_) | None, None) => break,
            }
        }
    }

    /// What there was to be found in the first round, and whether it was.
    fn sum(&self, sums: &mut Sums) {
        let Some(completed) = self.completed.first() else { return };
        let ordered = self.orders[0].0;
        let was_stale = self.completed.len() > 1 || self.orders.len() > 1 || self.found.get(&0) == Some(&Found::Stale);
        let calm = !self.kind.upset && self.kind.hostile == 0 && !self.kind.front;
        // An object that was there half a minute later and a minute later, would have stayed, and is older than the order by more than an
        // age can be off.
        let edge = &self.tiers.edges[0];
        let stays = |made: u64| made + edge.ttl > completed + 150_000;
        let is_old = |sample: &Option<u64>| sample.is_some_and(|made| made + 5_000 < ordered && stays(made));
        let is_old = self.samples.len() == 2 && self.samples.iter().all(is_old) && self.tiers.edges.len() == 1;
        if is_old && !self.kind.marked {
            let sum = if calm { &mut sums.by_age } else { &mut sums.upset_by_age };
            *sum = (sum.0 + u64::from(was_stale), sum.1 + 1);
            assert!(was_stale || !calm, "old, and not found: {:?} {:?}", self.facts, self.kind);
        }
        // An answer of an old pod that arrived before the last look, and would have stayed.
        let stays = self.tiers.edges.len() == 1 && self.tiers.edges[0].ttl > 1_000_000;
        let copy = self.tiers.edges[0].copy.filter(|copy| copy.version == 1 && copy.made > ordered && stays);
        let is_late = copy.is_some_and(|copy| copy.made < completed + 295_000)
            || (was_stale && stays && self.kind.late.is_some());
        if is_late && self.kind.marked {
            let sum = if calm { &mut sums.by_content } else { &mut sums.upset_by_content };
            *sum = (sum.0 + u64::from(was_stale), sum.1 + 1);
            assert!(was_stale || !calm, "late, and not found: {:?} {:?}", self.facts, self.kind);
        }
        for found in self.found.values() {
            *match found {
                Found::Renewed => &mut sums.renewed,
                Found::Fresh => &mut sums.fresh,
                Found::Stale => &mut sums.stale,
                Found::Unknown => &mut sums.unknown,
            } += 1;
        }
        sums.seconds += u64::from(self.orders.len() > 1);
        sums.thirds += u64::from(self.orders.len() > 2);
        sums.requests = sums.requests.max(self.requests.values().copied().max().unwrap_or_default());
        let bytes = self.durable.as_ref().map_or(0, |stored| serde_json::to_string(stored).unwrap().len());
        sums.bytes = sums.bytes.max(bytes);
    }
}

#[test]
fn nothing_false_is_said_of_two_tiers_and_what_is_old_is_found() {
    let mut sums = Sums::default();
    for seed in 0..RUNS {
        let mut run = Run::new(seed);
        run.run();
        run.sum(&mut sums);
        assert!(run.ended || run.look.is_none(), "seed {seed} has not ended: {:?}", run.look);
    }
    println!("{RUNS} runs, (found, there to be found): {sums:?}");
    println!("no renewed and no fresh was false; a thousand looks of one page: {} bytes", sums.bytes * 1_000);
    assert!(sums.thirds == 0 && sums.requests <= PAGE_REQUESTS_MAX);
    // That none of this is vacuous.
    assert!(sums.renewed > 1_000 && sums.fresh > 1_000 && sums.stale > 500 && sums.seconds > 300, "{sums:?}");
    assert!(sums.by_age.1 > 200 && sums.by_content.1 > 100, "{sums:?}");
}
