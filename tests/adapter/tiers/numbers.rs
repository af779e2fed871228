//! `make edge`: the machine of the look against real tiers, with visitors all the while. How soon after `Completed` it knows, and how
//! much it asks for that.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use allclear::adapters::clock::SystemClock;
use allclear::adapters::edge_look::EdgeLook;
use allclear::adapters::http::{Egress, Settings};
use futures_util::future::{Either, join_all, select};
use kernel::machine::Machine;
use kernel::names::paths::{Path, PathSet};
use proof::asked::Page;
use proof::look::{Again, Effect, Event, Look};
use proof::tally::Found;
use purge::ports::Clock;
use support::tiers::{Lag, Options};

use super::Cdn;

/// Pages, each purged by itself; a quarter of a second passes from one to the next.
const PAGES: u32 = 40;
const EVERY: Duration = Duration::from_millis(250);

/// One visitor comes so often, to each page in turn.
const VISIT_EVERY: Duration = Duration::from_millis(10);

/// What came of one purge.
struct Outcome {
    /// From the first `Completed` to what was told.
    known_after: Duration,
    /// Requests of the looks.
    requests: usize,
    found: Found,
    /// What was told.
    words: String,
    /// Further purges.
    again: u8,
}

#[tokio::test]
#[ignore = "takes minutes: run make edge"]
async fn edge_in_numbers() {
    for lag in [Duration::ZERO, Duration::from_secs(5)] {
        let cdn = Cdn::start(&Options { edge_lag: Lag::Of(lag), shield_lag: Lag::Of(lag), ..Options::default() });
        let paths: Vec<String> = (0..PAGES).map(|page| format!("/{page}")).collect();
        for path in &paths {
            cdn.tiers.visit(path).await;
        }
        cdn.until_aged(paths.last().expect("a page"), 3).await;
        cdn.tiers.site.deploy("2");
        let purges = join_all(paths.iter().zip(0..).map(|(path, number)| purge(&cdn, path, EVERY * number)));
        let visitors = async {
            for path in paths.iter().cycle() {
                cdn.tiers.visit(path).await;
                tokio::time::sleep(VISIT_EVERY).await;
            }
        };
        let outcomes = select(Box::pin(purges), Box::pin(visitors)).await;
        let Either::Left((outcomes, _)) = outcomes else { panic!("visitors come for ever") };
        report(lag, outcomes);
    }
}

fn report(lag: Duration, mut outcomes: Vec<Outcome>) {
    outcomes.sort_by_key(|outcome| outcome.known_after);
    // An answer of unknown is said only after the last look, a minute after `Completed`.
    let at = |percent: usize| outcomes[(outcomes.len() * percent / 100).min(outcomes.len() - 1)].known_after;
    let count = |is_so: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| is_so(outcome)).count();
    eprintln!(
        "edge: purges lag {lag:?}: known {:.1} s after Completed in the median, {:.1} s at the 99th percentile of {}; {} renewed, {} \
         unknown, {} stale; {} purged again; {} requests for one page at most",
        at(50).as_secs_f64(),
        at(99).as_secs_f64(),
        outcomes.len(),
        count(&|outcome| outcome.found == Found::Renewed),
        count(&|outcome| outcome.found == Found::Unknown),
        count(&|outcome| outcome.found == Found::Stale),
        count(&|outcome| outcome.again > 0),
        outcomes.iter().map(|outcome| outcome.requests).max().unwrap_or_default(),
    );
    let unknown = outcomes.iter().find(|outcome| outcome.found == Found::Unknown);
    if let Some(outcome) = unknown {
        eprintln!("edge: one that is unknown: {}", outcome.words);
    }
}

/// Purges one page and looks at it until it is known how it is.
async fn purge(cdn: &Cdn, path: &str, after: Duration) -> Outcome {
    let clock = Arc::new(SystemClock::default());
    let adapter =
        EdgeLook::new(&Settings::new(Egress { allow_private: false }), [], Arc::clone(&clock) as Arc<dyn Clock>);
    let stand_ins = BTreeMap::from([("www.example.com".to_owned(), cdn.tiers.address())]);
    let adapter = adapter.expect("clients").with_stand_ins(stand_ins);
    tokio::time::sleep(after).await;
    let before = clock.now();
    cdn.until_completed(&cdn.purge(path)).await;
    let completed = clock.now();
    let page = Page::try_from(format!("www.example.com{path}")).expect("a page");
    let paths = PathSet::of(vec![Path::parse(path).expect("a path")]).expect("one");
    let mut look = Look::begin(completed, Some(before).into(), paths, [page], None, Again::up_to(1)).expect("a look");
    let mut outcome =
        Outcome { known_after: Duration::ZERO, requests: 0, found: Found::Unknown, words: String::new(), again: 0 };
    let mut effects: VecDeque<Effect> = look.tick(clock.now()).into();
    loop {
        let Some(effect) = effects.pop_front() else {
            let due = look.next_deadline().expect("it ends by itself");
            tokio::time::sleep(due.since(clock.now())).await;
            effects.extend(look.tick(clock.now()));
            continue;
        };
        let event = match effect {
            Effect::Keep(stored) => Event::Kept(stored.number),
            Effect::Ask(question) => {
                let answers = adapter.ask(&question, ready(Ok::<_, Infallible>(Vec::new()))).await;
                outcome.requests += answers.edge.hops.len();
                Event::Answered(question.id, Box::new(answers))
            }
            Effect::PurgeAgain(round, _) => {
                outcome.again = round;
                let before = clock.now();
                cdn.until_completed(&cdn.purge(path)).await;
                Event::AgainCompleted(round, Some(before))
            }
            Effect::Tell(verdict) => {
                (outcome.found, outcome.known_after) = (verdict.found, clock.now().since(completed));
                outcome.words = verdict.words;
                continue;
            }
            Effect::End => return outcome,
        };
        effects.extend(look.step(clock.now(), event));
    }
}
