//! What is said of one purge, once its pages are known: one verdict for all of them.
//!
//! It is stale if any page is, else unknown if any is, else renewed or fresh. "Fresh" is only said of what was compared.

use kernel::names::paths::PathSet;
use kernel::text;

use crate::age::Why;
use crate::marker::Marker;
use crate::tally::{By, Found, Good, Old, Place, Tally};

/// Pages that a sentence names, of 32; of the others it says how many there are.
const NAMED: usize = 3;

/// What follows a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Follows {
    Nothing,
    /// It is purged once more.
    Again,
    /// It is not: as many as may be made by themselves have been.
    Spent,
    /// It is not: it would not help.
    Helpless,
}

/// How many pages are how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    pub stale: usize,
    pub unknown: usize,
    pub renewed: usize,
    pub fresh: usize,
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// After which purge: 0 is the first.
    pub round: u8,
    pub found: Found,
    pub counts: Counts,
    pub follows: Follows,
    /// In words, for a notice.
    pub words: String,
}

/// What is said beside the pages.
pub(crate) struct Told<'a> {
    pub round: u8,
    pub paths: &'a PathSet,
    pub marker: Option<&'a Marker>,
    /// Times are known by less than they are: another life began to count.
    pub resumed: bool,
    /// How late the latest look was, in seconds.
    pub late_s: u32,
    pub follows: Follows,
}

impl Told<'_> {
    /// What fresh means here.
    fn right(&self) -> String {
        match self.marker.filter(|marker| !marker.asks_pods()) {
            Some(marker) => format!("what {marker} asks for"),
            None => "what the new pods answer".to_owned(),
        }
    }
}

/// The worst of all pages; none where one is not known yet.
pub(crate) fn worst(pages: &[Tally]) -> Option<Found> {
    let found: Option<Vec<Found>> = pages.iter().map(|page| page.found).collect();
    found?.into_iter().max()
}

/// Whether a further purge can help a page that is stale.
pub(crate) fn can_be_helped(page: &Tally) -> bool {
    page.found == Some(Found::Stale) && page.front.is_none() && !is_behind(page)
}

/// Whether what is old lies behind CloudFront: it had nothing of its own at both looks. At two places, each could have had it from a
/// tier behind both; so it is one place, and it must be named.
fn is_behind(page: &Tally) -> bool {
    let is_of_another = |(place, old): (&str, &Old)| !place.is_empty() && old.looks >= 2 && old.misses == old.looks;
    page.old().filter(|(_, old)| old.looks > 0).all(is_of_another)
}

/// That a further purge follows, whatever is there.
pub(crate) fn blind(pages: &[Tally], after_s: u32) -> Verdict {
    let after = text::duration(std::time::Duration::from_secs(after_s.into()));
    let pages = joined(&pages.iter().collect::<Vec<_>>(), |page| page.page.to_string());
    let words = format!(
        "{pages} is purged once more, at least {after} after the purge and without a look, as purge.again_after says"
    );
    Verdict { round: 0, found: Found::Unknown, counts: Counts::default(), follows: Follows::Again, words }
}

pub(crate) fn verdict(pages: &[Tally], told: Told<'_>) -> Option<Verdict> {
    let found = worst(pages)?;
    let count = |wanted: Found| pages.iter().filter(|page| page.found == Some(wanted)).count();
    let counts = Counts {
        stale: count(Found::Stale),
        unknown: count(Found::Unknown),
        renewed: count(Found::Renewed),
        fresh: count(Found::Fresh),
    };
    let those: Vec<&Tally> = pages.iter().filter(|page| page.found == Some(found)).collect();
    let mut words = match found {
        Found::Stale => joined(&those, |page| stale(page, &told)),
        Found::Unknown => joined(&those, unknown),
        Found::Renewed => {
            let place = |page: &Tally| places(page, |good| good.renewed);
            let seen = |page: &Tally| format!("{}{}", page.page, since(page, told.resumed));
            // Each page only where it was seen.
            match those.first().map(|first| place(first)).filter(|at| those.iter().all(|page| place(page) == *at)) {
                Some(at) => format!("nothing stored before the purge is left{at}: {}", joined(&those, seen)),
                None => {
                    let seen = |page: &Tally| format!("{}{}{}", page.page, place(page), since(page, told.resumed));
                    format!("nothing stored before the purge is left: {}", joined(&those, seen))
                }
            }
        }
        Found::Fresh => {
            let fresh = |page: &Tally| {
                let place = places(page, |good| good.fresh);
                format!("{}{place} is {}{}", page.page, told.right(), since(page, told.resumed))
            };
            format!("the edge is fresh: {}", joined(&those, fresh))
        }
    };
    if those.len() < pages.len() {
        words.push_str(&counts.words(pages.len()));
    }
    if told.late_s > 0 {
        words.push_str(&format!("; looked up to {} s late", told.late_s));
    }
    words.push_str(&follow(&those, &told));
    Some(Verdict { round: told.round, found, counts, follows: told.follows, words })
}

impl Counts {
    /// Of pages that are not all the same.
    fn words(self, pages: usize) -> String {
        let all = [(self.stale, "stale"), (self.unknown, "unknown"), (self.renewed, "renewed"), (self.fresh, "fresh")];
        let some = all.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
        format!("; of {pages} pages {}", some.collect::<Vec<_>>().join(", "))
    }
}

fn joined(pages: &[&Tally], words: impl Fn(&Tally) -> String) -> String {
    let mut named: Vec<String> = pages.iter().take(NAMED).map(|page| words(page)).collect();
    let more = pages.len().saturating_sub(NAMED);
    named.extend((more > 0).then(|| format!("and {more} more")));
    named.join(", ")
}

/// Where it was seen so: ` at FRA56-P1`.
fn places(page: &Tally, is_so: impl Fn(&Good) -> bool) -> String {
    let seen = |(place, seen): (&String, &Place)| match seen {
        Place::Good(good) if is_so(good) && !place.is_empty() => Some(place.clone()),
        Place::Good(_) | Place::Empty | Place::Passed | Place::Old(_) => None,
    };
    let names: Vec<String> = page.places.iter().filter_map(seen).collect();
    if names.is_empty() { String::new() } else { format!(" at {}", names.join(", ")) }
}

/// When it was seen: `, 3 s after it`.
fn since(page: &Tally, resumed: bool) -> String {
    let least = if resumed { "at least " } else { "" };
    page.good_s.map_or_else(String::new, |seconds| format!(", {least}{seconds} s after it"))
}

fn unknown(page: &Tally) -> String {
    let why = page.why.as_ref().map_or_else(|| Why::Once.words(), Why::words);
    format!("nothing says whether {} is fresh: {why}", page.page)
}

/// By the look that was the last to show it.
fn stale(page: &Tally, told: &Told<'_>) -> String {
    let last = page.old().filter(|(_, old)| old.looks > 0).max_by_key(|(_, old)| old.at_s);
    let Some((place, old)) = last else { return format!("{} is stale", page.page) };
    let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
    let name = match &old.path {
        Some(path) => format!("{}{path}, where {} leads,", page.page.host().as_str(), page.page),
        None => page.page.to_string(),
    };
    let least = if told.resumed { "at least " } else { "" };
    match old.by {
        By::Age { age_s, by_ms } => {
            let by = text::duration(std::time::Duration::from_millis(by_ms));
            format!("{name} is stale{at}: stored {by} before the purge (age {age_s})")
        }
        By::Content(_) => {
            format!("{name} is stale{at}: it is not {}, {least}{} s after the purge", told.right(), old.at_s)
        }
    }
}

/// What follows, and where no purge follows, what is likely to be the cause by what was seen.
fn follow(stale: &[&Tally], told: &Told<'_>) -> String {
    let cause = || match stale.iter().find(|page| !can_be_helped(page)).or(stale.first()) {
        Some(Tally { front: Some(name), .. }) => {
            format!("{name} may be in front of CloudFront, and has to be purged by itself")
        }
        Some(page) if is_behind(page) => {
            "CloudFront had nothing of it each time: it comes from behind, from a cache between \
             CloudFront and the pods, or with an age of the origin's own"
                .to_owned()
        }
        Some(_) if told.paths.has_tags() => {
            "what was purged has a tag: look whether the answers carry the header with their tags".to_owned()
        }
        Some(page) if page.old().any(|(_, old)| matches!(old.by, By::Content(_))) => {
            "likely a slow answer of an old pod that was stored after the purge, or stale-while-revalidate".to_owned()
        }
        Some(_) | None => {
            "CloudFront has kept it, or got it from another cache: look at Cache-Control and at Via".to_owned()
        }
    };
    match told.follows {
        Follows::Nothing => String::new(),
        Follows::Again => "; it is purged once more".to_owned(),
        Follows::Spent => format!("; {}", cause()),
        Follows::Helpless => format!("; a further purge cannot help: {}", cause()),
    }
}
