//! What a month costs, through crashes: the sum that is shown is the bill, which the world keeps by a rule of its own.

use allclear::actors::Settings;
use kernel::names::paths::PathSet;
use purge::bounds::policy::Policy;
use purge::ports::Ledger;
use purge::purges::bill::Book;
use support::fakes::{Millis, Odds, World};
use support::stage::{Life, in_system, life_under, roll_out, settings, settled};

/// 2025-07-01T00:00:00Z, after the beginning of the world on 2025-06-15T15:06:40Z.
const JULY: Millis = 1_328_000_000;

/// Between two rollouts: 43 of them take 36 days.
const PAUSE: Millis = 20 * 3_600_000;

fn under() -> Settings {
    let paths: PathSet = ["/a/*", "/b", "/c"].iter().map(|path| path.parse().unwrap()).collect();
    Settings { policy: Policy { paths: paths.into(), ..settings().policy }, ..settings() }
}

/// What CloudFront bills: the paths of every invalidation that it made in that time.
fn billed(world: &World, from: Millis, until: Millis) -> u64 {
    let state = world.state();
    let made = state.created.values().filter(|created| (from..until).contains(&created.at));
    made.map(|created| created.paths.iter().count() as u64).sum()
}

/// The sum that a life shows, once all that was under way has come to its end.
fn shown(world: &World) -> (u64, Vec<String>) {
    let odds = std::mem::take(&mut world.state().odds);
    let words = life_under(world, under(), async |life: &mut Life| {
        life.pass(30 * 60_000).await;
        life.observe().await.bill
    });
    world.state().odds = odds;
    let ledger = world.state().ledger.clone();
    let kept = in_system(async move { ledger.bill().await });
    let book = Book::parse(&kept.unwrap().expect("it was left")).expect("it can be read");
    (book.accounts.values().map(|sum| sum.paths).sum(), words)
}

#[test]
fn the_sum_of_a_month_is_the_bill_through_crashes() {
    let world = settled(11, &["api", "web"]);
    world.state().odds = Odds { delay: 600, fail: 60, lose: 120, panic: 0 };
    for round in 0..43_u64 {
        let (generation, tag) = (2 + i64::try_from(round).unwrap(), (round + 2).to_string());
        life_under(&world, under(), async |life: &mut Life| {
            life.pass(2_000).await;
            for name in ["api", "web"] {
                roll_out(life, name, generation, &tag, 2_000).await;
            }
            // Each other time somewhere on its way, from the first vote to the completed purge.
            life.pass(if round % 2 == 0 { 120_000 } else { round * 701 % 30_000 }).await;
        });
        if round == 15 {
            let (sum, words) = shown(&world);
            assert_eq!(sum, billed(&world, 0, JULY), "June");
            assert!(words[0].starts_with(&format!("2025-06 in AWS account default: {sum} paths")), "{words:?}");
        }
        world.pass(PAUSE);
    }
    assert!(world.now() > JULY + 10 * 86_400_000, "it is the middle of July");
    let (sum, words) = shown(&world);
    let july = billed(&world, JULY, Millis::MAX);
    assert!(july > 30, "a month with many purges: {july}");
    assert!(world.state().created.values().any(|created| created.calls > 1), "some calls were made twice");
    assert_eq!(sum, july, "July");
    assert!(words[0].starts_with(&format!("2025-07 in AWS account default: {sum} paths")), "{words:?}");
}
