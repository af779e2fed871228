//! What the looks at one page have shown, and when it is looked at again.
//!
//! A look is good where it renews (by age) or is fresh (by content), and old where it shows what was there before. Two good ones in a row
//! end it; two old ones do, both half a minute or more after the purge. What was old at one point of presence is only taken back by a
//! look at that one: visitors there still get it.
//!
//! Not for what an answer shows; that is [`crate::age`] and [`crate::marker`].

use std::collections::BTreeMap;

use kernel::names::paths::{Path, PathSet};
use kernel::text;
use serde::{Deserialize, Serialize};

use crate::age::{self, Relation, Span, Why};
use crate::asked::{Answer, Answers, Page, REQUESTS_MAX};
use crate::marker::{Content, Marker};

/// When it is looked at, in seconds after the purge was complete. Then every half minute, while something is open.
pub const SCHEDULE_S: [u32; 6] = [0, 2, 5, 10, 30, 60];

/// From when on an old answer counts, in seconds: CloudFront may go on for a while after it says `Completed`.
const OLD_COUNTS_S: u32 = 30;

/// When what was fresh is looked at once more, in seconds: until then a slow answer of an old pod may have been stored.
const ONCE_MORE_S: u32 = 5 * 60;

/// Looks that end it, in a row.
const ENOUGH: u8 = 2;

/// Requests for one page after one purge, redirects included.
pub const PAGE_REQUESTS_MAX: u8 = 12;

/// Points of presence that are counted one by one. Names lead to one or two at a time.
const PLACES_MAX: usize = 3;

/// Bytes of a reason, or of a path that is not ours, in a sentence.
const WORDS_BYTES_MAX: usize = 80;

/// How a page stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Found {
    /// It is what the new pods answer.
    #[serde(rename = "f")]
    Fresh,
    /// Nothing stored before the purge is left.
    #[serde(rename = "r")]
    Renewed,
    #[serde(rename = "u")]
    Unknown,
    #[serde(rename = "s")]
    Stale,
}

/// What was last seen at one point of presence.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Place {
    /// CloudFront had nothing.
    #[serde(rename = "e")]
    Empty,
    #[serde(rename = "g")]
    Good(Good),
    /// Something of which nothing can be said, in the place of what was there.
    #[serde(rename = "p")]
    Passed,
    #[serde(rename = "o")]
    Old(Old),
}

/// What the looks in a row have shown of one point of presence. A sentence names only those that showed what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Good {
    #[serde(rename = "r", default)]
    pub renewed: bool,
    #[serde(rename = "f", default)]
    pub fresh: bool,
}

/// Old answers of one point of presence.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Old {
    /// Looks in a row that count.
    #[serde(rename = "n")]
    pub looks: u8,
    /// Those of them at which CloudFront had nothing of its own.
    #[serde(rename = "m")]
    pub misses: u8,
    #[serde(rename = "b")]
    pub by: By,
    /// When it was last seen, in seconds after the purge.
    #[serde(rename = "s")]
    pub at_s: u32,
    /// The path, where a redirect led to it.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// By what it is known to be old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum By {
    /// Stored so many milliseconds before the purge, at least.
    #[serde(rename = "a")]
    Age { age_s: u32, by_ms: u64 },
    /// Not what new pods answer; that as a fingerprint.
    #[serde(rename = "c")]
    Content(u64),
}

/// Good looks in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Row {
    #[serde(rename = "r", default)]
    renewed: u8,
    #[serde(rename = "f", default)]
    fresh: u8,
    /// Empty places, which count once something was stored after them.
    #[serde(rename = "e", default)]
    empty: u8,
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tally {
    #[serde(rename = "p")]
    pub page: Page,
    /// When it is looked at next, in seconds after the purge; `None`: no more.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub due_s: Option<u32>,
    #[serde(rename = "n", default)]
    pub looks: u8,
    /// Made, or about to be.
    #[serde(rename = "q", default)]
    pub requests: u8,
    /// Requests of its longest look.
    #[serde(rename = "c", default)]
    cost: u8,
    #[serde(rename = "w", default)]
    row: Row,
    #[serde(rename = "l", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, Place>,
    /// When it was last seen good, in seconds after the purge; `None` where this is not known.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub good_s: Option<u32>,
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// Another CDN that was seen in front.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub front: Option<String>,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
}

/// What a look is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'a> {
    pub paths: &'a PathSet,
    pub marker: Option<&'a Marker>,
    pub span: Span,
}

/// What one look showed.
#[derive(Debug)]
struct Glance {
    place: String,
    is_miss: bool,
    front: Option<String>,
    relation: Relation,
    content: Content,
    path: Option<String>,
}

impl Tally {
    pub fn new(page: Page, first_s: u32) -> Self {
        Self {
            page,
            due_s: Some(first_s),
            looks: 0,
            requests: 0,
            cost: 0,
            row: Row::default(),
            places: BTreeMap::new(),
            good_s: None,
            why: None,
            front: None,
            found: None,
        }
    }

    /// Books the next look, with all the requests that it may make. Returns how many.
    pub fn book(&mut self) -> u8 {
        let allowed = PAGE_REQUESTS_MAX.saturating_sub(self.requests).min(REQUESTS_MAX);
        self.looks = self.looks.saturating_add(1);
        self.requests = self.requests.saturating_add(allowed);
        allowed
    }

    /// A life that has not seen the last look, or its answer, begins its row anew.
    pub fn resume(&mut self) {
        self.row = Row::default();
        self.forget_places();
        match (self.due_s, self.found) {
            (Some(_), None) if !self.can_ask(1) => self.close(),
            (Some(_), Some(_)) if !self.can_ask(1) => self.due_s = None,
            (Some(_) | None, _) => {}
        }
    }

    /// What was fresh is looked at once more. Returns whether it will be.
    pub fn once_more(&mut self) -> bool {
        let can = self.found == Some(Found::Fresh) && self.can_ask(1);
        if can {
            self.due_s = Some(ONCE_MORE_S);
            self.row = Row::default();
        }
        can
    }

    /// Takes in the answers to a look that was booked with so many requests, and was begun so many seconds after the purge.
    pub fn absorb(&mut self, judge: Judge<'_>, answers: &Answers, at_s: u32, booked: u8) {
        let made = u8::try_from(answers.edge.hops.len()).unwrap_or(u8::MAX).clamp(1, booked.max(1));
        self.requests = self.requests.saturating_sub(booked.saturating_sub(made));
        self.cost = self.cost.max(made);
        let glance = self.glance(judge, answers);
        self.front = glance.front.clone().or_else(|| self.front.take());
        let (was_fresh, is_fresh) = (self.found == Some(Found::Fresh), glance.content == Content::New);
        let old = match (&glance.content, &glance.relation) {
            (Content::Other(right), _) => Some(By::Content(*right)),
            (Content::Unknown(_), Relation::Before { age_s, by_ms }) => Some(By::Age { age_s: *age_s, by_ms: *by_ms }),
            (Content::New, _) | (Content::Unknown(_), Relation::After | Relation::Empty | Relation::Nothing(_)) => None,
        };
        self.count(&glance, old.is_some(), is_fresh, at_s);
        self.why = why(&glance, judge.marker.is_some()).or_else(|| self.why.take());
        self.note_place(&glance, old, is_fresh, at_s);
        match (was_fresh, old.is_some()) {
            (true, false) if is_fresh => self.due_s = None,
            // That look showed nothing, and another may.
            (true, false) => self.due_s = Some(at_s.saturating_add(OLD_COUNTS_S)).filter(|_| self.can_ask(1)),
            (true, true) | (false, _) => {
                self.found = self.conclude(judge.marker.is_some(), &glance);
                self.plan(at_s, judge.marker.is_some(), &glance);
            }
        }
    }

    fn glance(&self, judge: Judge<'_>, answers: &Answers) -> Glance {
        let hops = &answers.edge.hops;
        let is_purged = |answer: &&Answer| {
            judge.paths.has_tags()
                || Path::parse(&answer.path).is_ok_and(|path| judge.paths.iter().any(|one| one.covers(&path)))
        };
        let relate = |answer: &Answer| {
            let relation = judge.span.relate(&age::shown(answer));
            match (age::in_front(answer), relation) {
                // Its age may be that of the other CDN alone.
                (Some(name), Relation::After | Relation::Empty) => Relation::Nothing(Why::InFront(name)),
                (_, relation) => relation,
            }
        };
        let worst = hops.iter().filter(is_purged).map(|answer| (relate(answer), answer));
        let worst = worst.reduce(|one, other| if rank(&other.0) > rank(&one.0) { other } else { one });
        let failed = answers
            .edge
            .failure
            .as_ref()
            .map(|why| Relation::Nothing(Why::NoAnswer(text::clean(why, WORDS_BYTES_MAX))));
        let (relation, answer) = match (worst, failed) {
            (Some((relation, answer)), Some(failed)) if rank(&failed) > rank(&relation) => (failed, Some(answer)),
            (Some((relation, answer)), _) => (relation, Some(answer)),
            (None, failed) => (failed.unwrap_or(Relation::Nothing(Why::Outside)), None),
        };
        let content = match (judge.marker, hops.last()) {
            (None, _) => Content::Unknown(Why::NoMarker),
            (Some(marker), Some(last)) if is_purged(&last) => match age::counts(last) {
                Ok(()) => marker.compare(answers),
                Err(why) => Content::Unknown(why),
            },
            (Some(_), Some(_)) => Content::Unknown(Why::Outside),
            (Some(marker), None) => marker.compare(answers),
        };
        let answer = if matches!(content, Content::Other(_)) { hops.last() } else { answer };
        let elsewhere = answer.filter(|answer| answer.path != self.page.path().as_str());
        Glance {
            place: answer.map(age::place).unwrap_or_default().to_owned(),
            is_miss: answer.is_some_and(age::is_miss),
            front: hops.iter().find_map(age::in_front),
            relation,
            content,
            path: elsewhere.map(|answer| text::clean(without_query(&answer.path), WORDS_BYTES_MAX)),
        }
    }

    fn count(&mut self, glance: &Glance, is_old: bool, is_fresh: bool, at_s: u32) {
        let row = &mut self.row;
        row.fresh = if is_fresh { row.fresh.saturating_add(1) } else { 0 };
        match &glance.relation {
            Relation::After if !is_old => {
                row.renewed = row.renewed.saturating_add(row.empty).saturating_add(1);
                row.empty = 0;
            }
            Relation::Empty if !is_old => row.empty = 1,
            Relation::After | Relation::Empty | Relation::Before { .. } | Relation::Nothing(_) => {
                (row.renewed, row.empty) = (0, 0);
            }
        }
        if row.fresh > 0 || row.renewed > 0 {
            self.good_s = Some(at_s);
        }
        self.forget_places();
    }

    /// What was shown before a row broke is not part of it.
    fn forget_places(&mut self) {
        let Row { renewed, fresh, empty } = self.row;
        for seen in self.places.values_mut() {
            let Place::Good(good) = seen else { continue };
            good.renewed &= renewed > 0 || empty > 0;
            good.fresh &= fresh > 0;
            if !good.renewed && !good.fresh {
                *seen = Place::Passed;
            }
        }
    }

    fn note_place(&mut self, glance: &Glance, old: Option<By>, is_fresh: bool, at_s: u32) {
        let known = self.places.get(&glance.place);
        let is_known = known.is_some();
        let good = match known {
            Some(Place::Good(good)) => *good,
            Some(Place::Empty | Place::Passed | Place::Old(_)) | None => Good { renewed: false, fresh: false },
        };
        let seen = match (old, &glance.relation) {
            (Some(by), _) => {
                // What is right has changed since: it would differ from anything that was stored.
                let changed = |other: By| matches!((by, other), (By::Content(a), By::Content(b)) if a != b);
                let mut before = (0, 0);
                for (place, seen) in &mut self.places {
                    let Place::Old(old) = seen else { continue };
                    if changed(old.by) {
                        (old.looks, old.misses) = (0, 0);
                        self.why = Some(Why::Varies);
                    } else if *place == glance.place {
                        before = (old.looks, old.misses);
                    }
                }
                let counts = u8::from(at_s >= OLD_COUNTS_S);
                Place::Old(Old {
                    looks: before.0.saturating_add(counts),
                    misses: before.1.saturating_add(counts.min(u8::from(glance.is_miss))),
                    by,
                    at_s,
                    path: glance.path.clone(),
                })
            }
            (None, relation) if is_fresh => {
                Place::Good(Good { renewed: good.renewed || *relation == Relation::After, fresh: true })
            }
            (None, Relation::After) => Place::Good(Good { renewed: true, ..good }),
            (None, Relation::Empty) if glance.path.is_none() => Place::Empty,
            (None, Relation::Nothing(Why::During)) => Place::Passed,
            (None, Relation::Before { .. } | Relation::Empty | Relation::Nothing(_)) => return,
        };
        if !is_known && self.places.len() >= PLACES_MAX {
            let spare = self.places.iter().find(|(_, seen)| !matches!(seen, Place::Old(_)));
            let Some(spare) = spare.map(|(place, _)| place.clone()) else { return };
            self.places.remove(&spare);
        }
        self.places.insert(glance.place.clone(), seen);
    }

    /// The old answers that were last seen, with their places.
    pub fn old(&self) -> impl Iterator<Item = (&str, &Old)> {
        self.places.iter().filter_map(|(place, seen)| match seen {
            Place::Old(old) => Some((place.as_str(), old)),
            Place::Empty | Place::Good(_) | Place::Passed => None,
        })
    }

    fn conclude(&self, marked: bool, glance: &Glance) -> Option<Found> {
        if self.old().map(|(_, old)| old.looks).fold(0, u8::saturating_add) >= ENOUGH {
            return Some(Found::Stale);
        }
        if self.old().next().is_some() {
            return None;
        }
        // Where a marker says something, it is waited for.
        let silent = !marked || matches!(glance.content, Content::Unknown(_));
        match () {
            () if self.row.fresh >= ENOUGH => Some(Found::Fresh),
            () if self.row.renewed >= ENOUGH && silent => Some(Found::Renewed),
            () => None,
        }
    }

    /// Says when it is looked at next, or ends it.
    fn plan(&mut self, at_s: u32, marked: bool, glance: &Glance) {
        if self.found.is_some() {
            self.due_s = None;
            return;
        }
        let from = at_s.max(self.due_s.unwrap_or_default());
        // Of the requests there are, the looks at which an old answer counts have theirs; those after five minutes, too.
        let kept = if marked { 2 * ENOUGH } else { ENOUGH };
        let late = SCHEDULE_S.into_iter().find(|due| *due > from && (*due >= OLD_COUNTS_S || self.can_ask(1 + kept)));
        let failed = matches!(&glance.relation, Relation::Nothing(Why::NoAnswer(_)));
        let open =
            self.looks < ENOUGH || failed || self.old().next().is_some() || self.row.fresh > 0 || self.row.renewed > 0;
        let next = late.or(open.then(|| from.saturating_add(OLD_COUNTS_S)));
        match next.filter(|_| self.can_ask(1)) {
            Some(due) => self.due_s = Some(due),
            None => self.close(),
        }
    }

    /// No look is left, and nothing is known.
    fn close(&mut self) {
        (self.due_s, self.found) = (None, Some(Found::Unknown));
        let is_old = self.old().next().is_some() && self.why != Some(Why::Varies);
        if is_old {
            self.why = Some(Why::OldOnce);
        }
        let _ = self.why.get_or_insert(Why::Once);
    }

    /// Whether there are requests left for so many looks like the longest.
    fn can_ask(&self, looks: u8) -> bool {
        let needed = self.cost.max(1).saturating_mul(looks);
        self.requests.saturating_add(needed) <= PAGE_REQUESTS_MAX
    }
}

/// The worse, the higher.
const fn rank(relation: &Relation) -> u8 {
    match relation {
        Relation::After => 0,
        Relation::Empty => 1,
        Relation::Nothing(Why::During) => 2,
        Relation::Nothing(_) => 3,
        Relation::Before { .. } => 4,
    }
}

/// Why a look did not help.
fn why(glance: &Glance, marked: bool) -> Option<Why> {
    match (&glance.relation, &glance.content) {
        (Relation::Nothing(why @ Why::NoAnswer(_)), _) => Some(why.clone()),
        (_, Content::Unknown(why)) if marked => Some(why.clone()),
        (Relation::Nothing(why), _) => Some(why.clone()),
        (Relation::Empty, _) => Some(Why::NotCached),
        (Relation::After | Relation::Before { .. }, _) => None,
    }
}

/// A path for a sentence: where a redirect leads, a query may hold a secret.
fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or(path)
}
