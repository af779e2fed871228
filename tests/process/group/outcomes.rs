//! Rollouts that do not come to a purge, and those that come back (rows G1–G3).

use std::time::Duration;

use futures_util::FutureExt;
use purge::records::record::Phase;
use sandbox::kubernetes::{Kind, PodFate};
use serde_json::json;

use crate::group::field::Field;
use crate::group::oracles::{Want, judge, last_end, words};
use crate::group::table::{Outcome, Row};
use crate::scene::{NAME, NAMESPACE, image};

pub fn rows() -> Vec<Row> {
    vec![
        Row::new("G1", "one cluster fails, goes back, moves on, or is paused", || g1().boxed_local()),
        Row::new("G2", "a cluster dies for ever: before its vote, and after", || g2().boxed_local()),
        Row::new("G3", "A→B→A→B at different speeds", || g3().boxed_local()),
    ]
}

/// How long a group that may not purge is watched not to.
const PATIENTLY: Duration = Duration::from_secs(1);

async fn g1() -> Outcome {
    let mut ends = Vec::new();
    ends.push(("fails", fails().await));
    ends.push(("goes back", goes_back().await));
    ends.push(("moves on", moves_on().await));
    paused().await;
    let told: Vec<String> = ends.iter().map(|(what, end)| format!("{what}: {end}")).collect();
    Outcome::passed(format!("{}; paused: waited, then purged", told.join("; ")))
}

/// How the last rollout ended in every member, which must be the same everywhere.
fn one_end(field: &Field) -> String {
    let ends: Vec<String> = (0..3).filter_map(|at| last_end(field, at)).map(|end| end.outcome.to_string()).collect();
    assert_eq!(ends.len(), 3, "{ends:?}");
    format!("{} purged, {}", field.purges().len(), ends.join(" | "))
}

/// What makes a group give up, rather than wait.
const GIVES_UP: [(&str, &str); 3] =
    [("ALLCLEAR__GROUP__POLICY", "skip"), ("ALLCLEAR__GROUP__TIMEOUT", "3s"), ("ALLCLEAR__ROLLOUT__TIMEOUT", "2s")];

/// Under both policies: one gives up, with the same reason everywhere; the other waits, says why, and goes on with the next.
async fn fails() -> String {
    const REASON: &str = "the rollout timeout passed";
    let field = Field::with(&GIVES_UP).await;
    field[2].world.kubernetes.set_fate(&image("1.1"), Some(PodFate::CannotPull));
    field.roll_out("1.1");
    let closed = async |field: &Field| (0..3).all(|at| last_end(field, at).is_some());
    field.wait_until("every member has closed it", closed).await;
    judge(&field, Want { purges: 0, told: 0, seq: 2 }).await;
    for member in &field.members {
        let told = member.events_of(NAME).join("\n");
        assert!(told.contains(REASON), "{} does not say why: {told}", member.world.name);
    }
    let end = one_end(&field);
    drop(field);

    let field = Field::with(&[("ALLCLEAR__ROLLOUT__TIMEOUT", "2s")]).await;
    field[2].world.kubernetes.set_fate(&image("1.1"), Some(PodFate::CannotPull));
    field.roll_out("1.1");
    let say = async |field: &Field| words(field, 0).await.contains(REASON) && words(field, 1).await.contains(REASON);
    field.wait_until("the others wait, and say why", say).await;
    assert!(field.purges().is_empty(), "nothing was purged");
    field.roll_out("1.2");
    judge(&field, Want::purged(1, 3)).await;
    end
}

/// 1.1 completes in two of three and is taken back everywhere. Users of those two may have put 1.1 at the edge, so going back
/// is an ordinary rollout (decision 4): exactly one purge.
async fn goes_back() -> String {
    let mut field = Field::new().await;
    field[2].freeze();
    field.roll_out("1.1");
    let seen = async |field: &Field| {
        let at_second = |at: usize| field[at].record().filter(|record| record.seq.0 == 2);
        let complete = |at| at_second(at).is_some_and(|record| record.phase == Phase::Complete);
        complete(0) && complete(1) && at_second(2).is_some()
    };
    field.wait_until("two have completed it, and the third has seen it", seen).await;
    field[2].roll_out("1.0");
    field[2].thaw();
    let still = async |field: &Field| field.purges().is_empty();
    field.holds_for(PATIENTLY, "two of three are not enough", still).await;
    field.roll_out("1.0");
    judge(&field, Want::purged(1, 3)).await;
    one_end(&field)
}

/// One is at the next version before the others are at this one: this one is purged nowhere, the next one once.
async fn moves_on() -> String {
    let mut field = Field::new().await;
    field[2].freeze();
    field.roll_out("1.1");
    let seen = async |field: &Field| field[2].record().is_some_and(|record| record.seq.0 == 2);
    field.wait_until("it has seen it", seen).await;
    field[2].roll_out("1.2");
    field[2].thaw();
    let still = async |field: &Field| field.purges().is_empty();
    field.holds_for(PATIENTLY, "two versions at once are not purged", still).await;
    field[0].roll_out("1.2");
    field[1].roll_out("1.2");
    judge(&field, Want::purged(1, 3)).await;
    one_end(&field)
}

async fn paused() {
    let field = Field::new().await;
    let pause = |paused: bool| {
        let change = json!({"spec": {"paused": paused}});
        field[2].world.kubernetes.patch(Kind::Deployment, NAMESPACE, NAME, &change).expect("it takes it");
    };
    pause(true);
    field.roll_out("1.1");
    let still = async |field: &Field| field.purges().is_empty();
    field.holds_for(PATIENTLY, "nothing is purged while one is paused", still).await;
    pause(false);
    judge(&field, Want::purged(1, 2)).await;
}

async fn g2() -> Outcome {
    // Before its vote: the others give up, and say so.
    let mut field = Field::with(&GIVES_UP).await;
    field.kill(2);
    field[0].roll_out("1.1");
    field[1].roll_out("1.1");
    let closed = async |field: &Field| [0, 1].iter().all(|at| last_end(field, *at).is_some());
    field.wait_until("the others give up", closed).await;
    let end = last_end(&field, 0).map(|end| end.outcome.to_string()).unwrap_or_default();
    assert!(field.purges().is_empty(), "nothing was purged");
    drop(field);

    // After the votes of the other two: nobody can tell what the third will have said, so they wait, and say so.
    let mut field = Field::with(&GIVES_UP).await;
    let hold = sandbox::http::Fault::once(sandbox::http::When::Before, sandbox::http::Action::Hold);
    field[2].world.api.inject(
        hold.times(u32::MAX).matching(|request| request.method == "GET" && request.path.ends_with("/deployments/web")),
    );
    field.roll_out("1.1");
    let voted = async |field: &Field| {
        [0, 1].iter().all(|at| field[*at].record().is_some_and(|record| !record.votes.is_empty()))
    };
    field.wait_until("two have voted", voted).await;
    field.kill(2);
    // One tells it for all, by rank.
    let doubts = async |field: &Field| {
        [0, 1].iter().any(|at| field[*at].reasons_of(NAME).iter().any(|reason| reason == "GroupInDoubt"))
    };
    field.wait_until("the others are in doubt, and say so", doubts).await;
    assert!(field.purges().is_empty(), "nothing was purged");
    field.clear_faults();
    drop(field);

    // After all votes: it is decided, with it or without it.
    let mut field = Field::new().await;
    field.roll_out("1.1");
    let at = field.caught_at_cloudfront(sandbox::http::When::Before, "POST", "/invalidation").await;
    field.kill(at);
    field.clear_faults();
    field.wait_until("the others purge without it", async |field| field.purges().len() == 1).await;
    Outcome::passed(format!("before: {end}; after two votes: in doubt; after all: purged without it"))
}

/// Each cluster is asked for the next version at a pace of its own.
async fn g3() -> Outcome {
    let mut told = Vec::new();
    for (pace, patience) in
        [(Duration::ZERO, "at once"), (Duration::from_millis(400), "0.4 s"), (Duration::from_millis(1_500), "1.5 s")]
    {
        let field = Field::new().await;
        for tag in ["1.1", "1.0", "1.1"] {
            for (at, member) in field.members.iter().enumerate() {
                member.roll_out(tag);
                tokio::time::sleep(pace / 8 * u32::try_from(at).unwrap_or_default()).await;
            }
            tokio::time::sleep(pace).await;
        }
        let purged = async |field: &Field| {
            let records = field.records();
            let settled = records.iter().flatten().all(|record| !record.is_open() && record.closed == record.seq);
            settled && !field.purges().is_empty()
        };
        field.wait_until("1.1 is at the edge", purged).await;
        let purges = field.purges().len();
        let agreements = field.timeline.agreements().len() - 1;
        assert!(
            (1..=agreements).contains(&purges),
            "{purges} purges for {agreements} agreements\n{}",
            field.tell().await
        );
        let seq = field.records().iter().flatten().map(|record| record.seq.0).min().unwrap_or_default();
        judge(&field, Want::purged(purges, seq)).await;
        told.push(format!("{patience}: {purges} of {agreements}"));
    }
    Outcome::passed(format!("purges per agreement, {}", told.join(", ")))
}
