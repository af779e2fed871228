//! How a story is told: which of its chapters, how fast, and whether its world stays.

use std::time::Duration;

use sandbox::kubernetes::Timings;

/// What a person wishes of the demo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The name of the one chapter to tell; `None`: all.
    pub chapter: Option<String>,
    /// Without the pauses that are there for reading.
    pub fast: bool,
    /// Keeps everything running afterwards.
    pub stay: bool,
}

impl Wishes {
    /// How fast the world goes.
    pub(super) fn pace(&self) -> &'static Pace {
        if self.fast { &FAST } else { &CALM }
    }

    /// The chapters to tell, and the number of each in the whole story. A chapter that goes on from the one before it has that one
    /// told first.
    pub(super) fn chosen<T: Copy>(&self, all: &[(Heading, T)]) -> Vec<(usize, Heading, T)> {
        let numbered = all.iter().enumerate().map(|(at, (heading, scene))| (at + 1, *heading, *scene));
        let Some(name) = &self.chapter else { return numbered.collect() };
        let mut chosen = Vec::new();
        for (number, heading, scene) in numbered {
            if !heading.goes_on {
                chosen.clear();
            }
            chosen.push((number, heading, scene));
            if heading.name == name {
                return chosen;
            }
        }
        Vec::new()
    }
}

/// What a chapter is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading {
    /// What `--chapter` calls it.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Whether it begins where the chapter before it ends, which has to be told first.
    pub goes_on: bool,
}

impl Heading {
    pub(super) const fn new(name: &'static str, title: &'static str) -> Self {
        Self { name, title, goes_on: false }
    }
}

/// The distributions of the demo are listed in no time, so a newer listing need not wait for its turn.
const MISS_REFRESH: (&str, &str) = ("ALLCLEAR__DISTRIBUTIONS__MISS_REFRESH", "1s");

/// How long everything takes that is no work of the controller.
#[derive(Debug)]
pub(super) struct Pace {
    pub timings: Timings,
    /// How long CloudFront takes; the real one needs about ten seconds.
    pub completes_after: Duration,
    /// When the controller asks CloudFront first, and how long a rollout may take, so that the failing one does not delay the demo.
    settings: [(&'static str, &'static str); 3],
    /// Time between the rollouts of two clusters: long enough to see the others wait.
    pub stagger: Duration,
    /// How long a killed controller is away.
    pub away: Duration,
}

impl Pace {
    /// The settings of controllers.
    pub(super) fn settings(&self) -> &[(&'static str, &'static str)] {
        &self.settings
    }
}

/// A cluster a person can follow, and still be done in half a minute.
pub(super) static CALM: Pace = Pace {
    timings: Timings {
        pod_ready: Duration::from_millis(450),
        pod_gone: Duration::from_millis(200),
        image_back_off: Duration::from_millis(600),
    },
    completes_after: Duration::from_millis(900),
    settings: [("ALLCLEAR__PURGE__POLL_FIRST", "300ms"), ("ALLCLEAR__ROLLOUT__TIMEOUT", "4s"), MISS_REFRESH],
    stagger: Duration::from_millis(1_200),
    away: Duration::from_millis(700),
};

/// Nothing waits for a reader. A healthy rollout takes half a second here; its limit leaves room for a busy machine.
static FAST: Pace = Pace {
    timings: Timings {
        pod_ready: Duration::from_millis(60),
        pod_gone: Duration::from_millis(30),
        image_back_off: Duration::from_millis(100),
    },
    completes_after: Duration::from_millis(100),
    settings: [("ALLCLEAR__PURGE__POLL_FIRST", "100ms"), ("ALLCLEAR__ROLLOUT__TIMEOUT", "2500ms"), MISS_REFRESH],
    stagger: Duration::from_millis(300),
    away: Duration::from_millis(100),
};

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Heading; 4] = [
        Heading::new("first", ""),
        Heading::new("second", ""),
        Heading { name: "third", title: "", goes_on: true },
        Heading::new("fourth", ""),
    ];

    fn numbers(chapter: Option<&str>) -> Vec<usize> {
        let wishes = Wishes { chapter: chapter.map(str::to_owned), ..Wishes::default() };
        wishes.chosen(&ALL.map(|heading| (heading, ()))).into_iter().map(|(number, ..)| number).collect()
    }

    #[test]
    fn one_chapter_is_told_with_its_number_and_after_the_one_that_it_goes_on_from() {
        assert_eq!(numbers(None), [1, 2, 3, 4]);
        assert_eq!(numbers(Some("first")), [1]);
        assert_eq!(numbers(Some("third")), [2, 3]);
        assert_eq!(numbers(Some("fourth")), [4]);
        assert_eq!(numbers(Some("fifth")), [0; 0]);
    }
}
