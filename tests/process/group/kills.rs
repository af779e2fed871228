//! `kill -9`, a pause and SIGTERM at each step of a group's rollout (rows K1–K17).
//!
//! A step is a request: to the member's API server, to CloudFront, to the receiver, or to Redis. It is held at the door,
//! *before* it had any effect or *after*, and whoever made it is killed while it waits for the answer. Steps that only one
//! member does catch whoever comes first, for nobody is in charge.

use std::time::Duration;

use futures_util::FutureExt;
use sandbox::http::{Action, Fault, Request, When};
use sandbox::proxy::{Direction, Mode};
use support::process::{PATIENCE, comes_true};

use crate::group::field::{Field, TAKEOVER};
use crate::group::oracles::{Want, judge};
use crate::group::table::{Outcome, Row};

pub fn rows() -> Vec<Row> {
    vec![
        Row::new("K1", "killed around the store of what it saw", || k1().boxed_local()),
        Row::new("K2", "killed before its record reaches any Redis", || k2().boxed_local()),
        Row::new("K3", "killed while it looks again before its vote", || k3().boxed_local()),
        Row::new("K4", "killed around the store of its vote", || k4().boxed_local()),
        Row::new("K5", "killed around the store of the plan", || k5().boxed_local()),
        Row::new("K6", "killed before CreateInvalidation arrives", || k6().boxed_local()),
        Row::new("K7", "killed before the answer to CreateInvalidation", || k7().boxed_local()),
        Row::new("K8", "killed around the store of the invalidation's id", || k8().boxed_local()),
        Row::new("K9", "killed while it polls the invalidation", || k9().boxed_local()),
        Row::new("K10", "killed around the store of the completion", || k10().boxed_local()),
        Row::new("K11", "killed around the write of the outbox", || k11().boxed_local()),
        Row::new("K12", "killed before the webhook arrives", || k12().boxed_local()),
        Row::new("K13", "killed before the answer to the webhook", || k13().boxed_local()),
        Row::new("K14", "killed around the removal from the outbox", || k14().boxed_local()),
        Row::new("K15", "a machine stands still while it purges", || k15().boxed_local()),
        Row::new("K16", "SIGTERM while it waits for the invalidation", || k16().boxed_local()),
        Row::new("K17", "SIGTERM, then SIGKILL", || k17().boxed_local()),
        Row::new("K×K", "two members killed at different steps", || pairs().boxed_local()),
    ]
}

/// A step that shows at a member's API server.
#[derive(Clone, Copy)]
struct Step {
    name: &'static str,
    matches: fn(&Request) -> bool,
}

const OBSERVED: Step = Step { name: "observation", matches: |request| is_store(request) };
const LOOKED: Step = Step {
    name: "second look",
    matches: |request| request.method == "GET" && request.path.ends_with("/deployments/web"),
};
const VOTED: Step = Step { name: "vote", matches: |request| is_store(request) && says(request, r#"\"b\":["#) };
const PLANNED: Step = Step { name: "plan", matches: |request| is_store(request) && says(request, r#"\"g\":{\"E"#) };
const CREATED: Step =
    Step { name: "id", matches: |request| is_store(request) && says(request, r#"\"s\":\"created\""#) };
const COMPLETED: Step =
    Step { name: "completion", matches: |request| is_store(request) && says(request, r#"\"s\":\"completed\""#) };
const OUTBOX: Step = Step {
    name: "outbox",
    matches: |request| {
        request.method == "POST" && request.path.ends_with("/configmaps") && says(request, "allclear-outbox-")
    },
};
const DELIVERED: Step = Step {
    name: "delivery",
    matches: |request| request.method == "DELETE" && request.path.contains("/configmaps/allclear-outbox-"),
};

/// What a pair of kills is drawn from.
const STEPS: [Step; 8] = [OBSERVED, LOOKED, VOTED, PLANNED, CREATED, COMPLETED, OUTBOX, DELIVERED];

/// A write of a shard of the ledger.
pub fn is_store(request: &Request) -> bool {
    let shard = request.path.contains("/configmaps/allclear-ledger-") || says(request, "allclear-ledger-");
    shard && (request.method == "PUT" || request.method == "POST") && says(request, "deployment.shop.web")
}

fn says(request: &Request, text: &str) -> bool {
    request.body.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Whether a killed member comes back at once, or only when the others have made the purge without it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Back {
    AtOnce,
    Late,
}

/// Rolls out 1.1, kills a member at a step that every member takes, and sees it through; once with the request not arrived,
/// once with the answer lost.
async fn killed_around(step: Step) -> Outcome {
    for when in [When::Before, When::After] {
        let mut field = Field::new().await;
        field[1].world.api.inject(Fault::once(when, Action::Hold).matching(step.matches));
        field.roll_out("1.1");
        let held = tokio::time::timeout(PATIENCE, field[1].world.api.held()).await;
        if held.is_err() {
            panic!("it did not come to its {}\n{}", step.name, field.tell().await);
        }
        finish(&mut field, 1, Back::AtOnce).await;
    }
    Outcome::passed("before and after; one purge each time")
}

/// The same for a step that only one member takes, whoever that is; it comes back when the others have made the purge.
async fn killed_whoever(step: Step) -> Outcome {
    let mut who = Vec::new();
    for when in [When::Before, When::After] {
        let mut field = Field::new().await;
        field.inject_everywhere(|| Fault::once(when, Action::Hold), step.matches);
        field.roll_out("1.1");
        let at = caught(&field, step.name).await;
        finish(&mut field, at, Back::Late).await;
        who.push(field[at].world.name.clone());
    }
    Outcome::passed(format!("{} and {} were killed; one purge each time", who[0], who[1]))
}

/// Waits until some member's API server has caught a request; returns which.
async fn caught(field: &Field, what: &str) -> usize {
    let held = field.members.iter().map(|member| member.world.api.held().boxed_local());
    let first = tokio::time::timeout(PATIENCE, futures_util::future::select_all(held)).await;
    let Ok(((), at, _)) = first else { panic!("nobody came to its {what}\n{}", field.tell().await) };
    at
}

/// Kills a member, lets it come back, and holds the run to the oracles.
async fn finish(field: &mut Field, at: usize, back: Back) {
    field.kill(at);
    field.clear_faults();
    if back == Back::Late {
        field.wait_until("the others purge without it", async |field| !field.purges().is_empty()).await;
    }
    field.revive(at).await;
    judge(field, Want::purged(1, 2)).await;
}

async fn k1() -> Outcome {
    killed_around(OBSERVED).await
}

async fn k2() -> Outcome {
    let mut field = Field::new().await;
    (0..3).for_each(|to| field.web.set_one_way(1, to, Direction::ToServer, Mode::Drop));
    field.roll_out("1.1");
    let stored = async |field: &Field| field[1].record().is_some_and(|record| record.seq.0 == 2);
    field.wait_until("its ledger says what no Redis knows", stored).await;
    field.kill(1);
    (0..3).for_each(|to| field.web.set(1, to, Mode::Pass));
    field.revive(1).await;
    judge(&field, Want::purged(1, 2)).await;
    Outcome::passed("what was stored was published by the next life")
}

async fn k3() -> Outcome {
    killed_around(LOOKED).await
}

async fn k4() -> Outcome {
    killed_around(VOTED).await
}

async fn k5() -> Outcome {
    killed_whoever(PLANNED).await
}

async fn k6() -> Outcome {
    let mut field = Field::new().await;
    let dead = killed_at_cloudfront(&mut field, When::Before, "POST", "/invalidation").await;
    let maker = field.maker(&field.purges()[0]);
    assert_ne!(maker, dead, "another one made it");
    Outcome::passed(format!("{} took over from {}", field[maker].world.name, field[dead].world.name))
}

async fn k7() -> Outcome {
    let mut field = Field::new().await;
    killed_at_cloudfront(&mut field, When::After, "POST", "/invalidation").await;
    let purge = field.purges().remove(0);
    assert!(purge.repeats > 0, "it was asked for again, by the same reference: {purge:?}");
    Outcome::passed(format!("asked for {} more times, by the same reference; one creation", purge.repeats))
}

/// Rolls out 1.1 and kills whoever asks CloudFront for this; it comes back when the others have made the purge.
async fn killed_at_cloudfront(field: &mut Field, when: When, method: &'static str, path: &'static str) -> usize {
    field.roll_out("1.1");
    let at = field.caught_at_cloudfront(when, method, path).await;
    finish(field, at, Back::Late).await;
    at
}

async fn k8() -> Outcome {
    killed_whoever(CREATED).await
}

async fn k9() -> Outcome {
    let mut field = Field::new().await;
    let dead = killed_at_cloudfront(&mut field, When::Before, "GET", "/invalidation/").await;
    Outcome::passed(format!("{} was killed at its first poll; the others went on", field[dead].world.name))
}

async fn k10() -> Outcome {
    killed_whoever(COMPLETED).await
}

async fn k11() -> Outcome {
    killed_whoever(OUTBOX).await
}

async fn k12() -> Outcome {
    let calls = killed_at_the_receiver(When::Before).await;
    assert_eq!(calls, 1, "the one that was held never arrived");
    Outcome::passed("delivered once")
}

async fn k13() -> Outcome {
    let calls = killed_at_the_receiver(When::After).await;
    assert!(calls <= 2, "{calls} calls");
    Outcome::passed(format!("{calls} calls, one id, the same bytes"))
}

async fn killed_at_the_receiver(when: When) -> usize {
    let mut field = Field::new().await;
    field[0].world.hook.inject(Fault::once(when, Action::Hold));
    field.roll_out("1.1");
    tokio::time::timeout(PATIENCE, field[0].world.hook.held()).await.expect("somebody calls the receiver");
    let at = field.maker(&field.purges()[0]);
    finish(&mut field, at, Back::Late).await;
    field.calls()
}

async fn k14() -> Outcome {
    killed_whoever(DELIVERED).await
}

/// Stopped for longer than the others wait, not for five minutes: nothing in between depends on how long.
async fn k15() -> Outcome {
    let field = Field::new().await;
    field.roll_out("1.1");
    let at = field.caught_at_cloudfront(When::Before, "POST", "/invalidation").await;
    field.process(at).signal("STOP");
    field.clear_faults();
    field.wait_until("another one purges", async |field| !field.purges().is_empty()).await;
    let maker = field.maker(&field.purges()[0]);
    tokio::time::sleep(TAKEOVER).await;
    field.process(at).signal("CONT");
    judge(&field, Want::purged(1, 2)).await;
    let repeats = field.purges()[0].repeats;
    assert_ne!(maker, at);
    Outcome::passed(format!("another one purged; the woken one asked {repeats} times more; one creation"))
}

async fn k16() -> Outcome {
    let mut field = Field::of(3, None, &[]).await;
    field.start().await;
    let at = polled(&field).await;
    field.process(at).signal("TERM");
    let mut process = field[at].take_process();
    let status = process.ended(Duration::from_secs(5)).await.expect("it ends within 5 s");
    assert!(status.success(), "{status}\n{}", process.tail());
    field[0].world.cloudfront.complete_all();
    field.revive(at).await;
    judge(&field, Want::purged(1, 2)).await;
    Outcome::passed("ended with 0 within 5 s; the purge was seen through")
}

async fn k17() -> Outcome {
    let mut field = Field::of(3, None, &[]).await;
    field.start().await;
    let at = polled(&field).await;
    field.process(at).signal("TERM");
    field.kill(at);
    field[0].world.cloudfront.complete_all();
    field.revive(at).await;
    judge(&field, Want::purged(1, 2)).await;
    Outcome::passed("as K9")
}

/// Rolls out 1.1 and waits until its invalidation, which does not complete by itself, is polled; returns who made it.
async fn polled(field: &Field) -> usize {
    field.roll_out("1.1");
    let polled = async |field: &Field| {
        field[0].world.cdn.seen().iter().any(|seen| seen.method == "GET" && seen.path.contains("/invalidation/"))
    };
    field.wait_until("the invalidation is polled", polled).await;
    field.maker(&field.purges()[0])
}

/// Kills of [`pairs`] that cannot be missed: at a step that every member takes, and that the other's does not keep it from:
/// the observation in both places, the vote in both, and the second look of the second member.
const SURE_KILLS: usize = 5;

/// One partner for each step, all different, out of the 64 pairs.
async fn pairs() -> Outcome {
    let mut reached = 0;
    for first in 0..STEPS.len() {
        let steps = [STEPS[first], STEPS[(first * 3 + 5) % STEPS.len()]];
        let mut field = Field::new().await;
        for (at, step) in steps.iter().enumerate() {
            field[at].world.api.inject(Fault::once(When::After, Action::Hold).matching(step.matches));
        }
        field.roll_out("1.1");
        for at in 0..steps.len() {
            // Only one member plans and purges: the other may never come to its step.
            let over = comes_true(async || {
                field.records().iter().all(|record| record.as_ref().is_some_and(|r| r.closed.0 >= 2))
            });
            let came = tokio::select! {
                () = field[at].world.api.held() => true,
                _ = over => false,
                () = tokio::time::sleep(4 * TAKEOVER) => false,
            };
            field[at].world.api.clear_faults();
            if came {
                reached += 1;
                field.kill(at);
                field.revive(at).await;
            }
        }
        judge(&field, Want::purged(1, 2)).await;
    }
    assert!(reached >= SURE_KILLS, "{reached} kills reached, and {SURE_KILLS} cannot be missed");
    Outcome::passed(format!("{} pairs of 64, {reached} of {} kills reached", STEPS.len(), 2 * STEPS.len()))
}
