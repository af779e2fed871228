//! Finds workloads among those on record, a page of them at a time: the status page at 10,000 workloads.
//!
//! Not for deciding anything, and not for words: a row is `rollout::Summary`, and what needs a look is `unwell`.

use std::collections::BTreeSet;

use crate::records::record::{Record, Records};
use crate::rollouts::unwell;
use kernel::id::WorkloadId;
use kernel::text;

/// Characters of a search that count. The longest name of an object has 253, and a namespace 63.
pub const TEXT_CHARS_MAX: usize = 320;

/// Rows of one page at most: a screen or two, about 50 KB.
pub const ROWS_MAX: usize = 50;

/// Which workloads are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Only {
    #[default]
    All,
    /// Those with a rollout in flight.
    InFlight,
    /// Those that need a look: the newest rollout did not end well, or they are left alone.
    Amber,
}

impl Only {
    /// The word for it in an address.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::InFlight => "in-flight",
            Self::Amber => "needs-a-look",
        }
    }

    /// The one of this name; another name is no filter.
    pub fn named(name: &str) -> Self {
        [Self::InFlight, Self::Amber].into_iter().find(|only| only.name() == name).unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Words, each of which is a part of `namespace/name` or of an image; capitals do not matter.
    pub text: String,
    pub only: Only,
    /// How many pages of [`ROWS_MAX`] rows are before the wanted one.
    pub page: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// How many there are in all.
    pub matched: usize,
    /// The wanted page of them, by namespace and name.
    pub rows: Vec<(&'a WorkloadId, &'a Record)>,
}

/// Looks through all records once. What is not followed is neither in flight nor needs a look, whatever its record says.
pub fn find<'a>(
    records: &'a Records,
    left_alone: &BTreeSet<&WorkloadId>,
    is_followed: impl Fn(&WorkloadId) -> bool,
    search: &Search,
) -> Found<'a> {
    let wanted = text::first(&search.text, TEXT_CHARS_MAX).to_lowercase();
    let words: Vec<&str> = wanted.split_whitespace().collect();
    let passes = |(id, record): &(&WorkloadId, &Record)| {
        let counts = match search.only {
            Only::All => true,
            Only::InFlight => record.is_open() && is_followed(id),
            Only::Amber => left_alone.contains(id) || (unwell::reason(record).is_some() && is_followed(id)),
        };
        counts && has_all(&words, id, record)
    };
    let skipped = search.page.saturating_mul(ROWS_MAX);
    let mut found = Found { matched: 0, rows: Vec::new() };
    for entry in records.iter().map(|(id, record)| (id, record.as_ref())).filter(passes) {
        if found.matched >= skipped && found.rows.len() < ROWS_MAX {
            found.rows.push(entry);
        }
        found.matched += 1;
    }
    found
}

fn has_all(words: &[&str], id: &WorkloadId, record: &Record) -> bool {
    if words.is_empty() {
        return true;
    }
    let name = id.display_name();
    let missing: Vec<&&str> = words.iter().filter(|word| !name.contains(**word)).collect();
    // Most words are parts of names; images are only written out for those that are not.
    missing.is_empty() || {
        let images = record.version.to_string().to_lowercase();
        missing.iter().all(|word| images.contains(**word))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::records::record::{Failure, Phase};
    use kernel::id::Seq;

    fn records() -> Records {
        let entry = |number: usize| {
            let namespace = if number.is_multiple_of(2) { "shop" } else { "blog" };
            let phase = match number {
                7 | 9 => Phase::Failed(Failure::TimedOut),
                8 | 10 => Phase::Rolling,
                _ => Phase::Complete,
            };
            let mut record = Record { phase, ..Record::first(Seq(0)) };
            record.version = serde_json::from_value(serde_json::json!({"web": format!("registry.test/app:{number}")}))
                .expect("a version");
            (WorkloadId::deployment(namespace, format!("web-{number}")), Arc::new(record))
        };
        (0..130).map(entry).collect()
    }

    fn names(search: &Search) -> (usize, Vec<String>) {
        let records = records();
        let aside = WorkloadId::deployment("shop", "web-4");
        let is_followed = |id: &WorkloadId| !["web-9", "web-10"].contains(&id.name.as_str());
        let found = find(&records, &BTreeSet::from([&aside]), is_followed, search);
        (found.matched, found.rows.iter().map(|(id, _)| id.display_name()).collect())
    }

    #[test]
    fn a_page_has_fifty_rows_at_most_and_the_count_is_of_all() {
        let (matched, rows) = names(&Search::default());
        assert_eq!((matched, rows.len(), rows[0].as_str()), (130, 50, "blog/web-1"));
        let (matched, rows) = names(&Search { page: 2, ..Search::default() });
        assert_eq!((matched, rows.len()), (130, 30));
        let (matched, rows) = names(&Search { page: usize::MAX, ..Search::default() });
        assert_eq!((matched, rows.len()), (130, 0), "a page that is not there is empty");
    }

    #[test]
    fn each_word_is_looked_for_in_names_and_images_whatever_its_case() {
        let text = |text: &str| names(&Search { text: text.to_owned(), ..Search::default() });
        assert_eq!(
            text("shop web-12"),
            (6, ["12", "120", "122", "124", "126", "128"].map(|n| format!("shop/web-{n}")).into())
        );
        assert_eq!(text("BLOG app:13"), (1, vec!["blog/web-13".to_owned()]));
        assert_eq!(text("blog shop").0, 0);
        assert_eq!(text(&"x".repeat(100_000)).0, 0);
    }

    #[test]
    fn the_filters_are_what_is_in_flight_and_what_needs_a_look() {
        let only = |only| names(&Search { only, ..Search::default() }).1;
        assert_eq!(only(Only::InFlight), ["shop/web-8"]);
        assert_eq!(only(Only::Amber), ["blog/web-7", "shop/web-4"]);
        for one in [Only::All, Only::InFlight, Only::Amber] {
            assert_eq!(Only::named(one.name()), one);
        }
        assert_eq!(Only::named("<script>"), Only::All);
    }
}
