//! What only a person can end is an error once, however often it is tried and whoever meets it; nothing else suffers from it.

use notices::notice::Kind;
use support::fakes::{Fault, World};
use support::log::{Log, listen};
use support::stage::{Life, Stage, deployment, life, roll_out, settled};

/// Two rollouts, while the first `times` calls of `method` are refused. Returns what was logged.
fn play(method: &'static str, times: u32) -> (World, Log) {
    // This thread is the one on which the whole process runs.
    let (log, _listening) = listen();
    let world = settled(1, &["web", "blog"]);
    life(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        for _ in 0..times {
            world.plan(method, "", 0, Fault::Deny);
        }
        tokio::join!(roll_out(life, "web", 2, "2", 10_000), roll_out(life, "blog", 2, "2", 10_000));
        life.pass(15 * 60_000).await;
        // The end of a refusal shows with the next use of the right.
        roll_out(life, "web", 3, "3", 10_000).await;
        life.pass(5 * 60_000).await;
    });
    assert!(world.plan_is_done(), "{method} was not called that often");
    (world, log)
}

/// Says what it is, what to do and what follows, once; tells its end once; and has no warning for any attempt. What the API server
/// refuses counts only once it has lasted, and is a warning before.
fn assert_said_once(log: &Log, cause: &str, remedy: &str, (call, message): (&str, &str)) {
    let errors = log.lines("ERROR", &["cause="]);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    for words in
        [format!("cause=\"{cause}\""), remedy.to_owned(), "cost=".to_owned(), call.to_owned(), message.to_owned()]
    {
        assert!(errors[0].contains(&words), "no {words} in {}", errors[0]);
    }
    assert!(!log.lines("DEBUG", &["it is still refused"]).is_empty());
    assert_eq!(log.lines("INFO", &["what was refused works again", cause]).len(), 1);
    for words in ["no right, as simulated", "AccessDenied"] {
        // That a rollout is stuck is told once as well; that is a notice, and no attempt.
        let warnings = log.lines("WARN", &[words]);
        let warnings: Vec<_> = warnings.into_iter().filter(|line| !line.contains("kind=\"rollout.stuck\"")).collect();
        let expected = usize::from(call == "events.publish" || call == "ledger.store");
        let other: Vec<_> = warnings.iter().filter(|line| !line.contains("it is tried again, and may pass")).collect();
        assert!(other.is_empty(), "{other:#?}");
        assert!(warnings.len() <= expected, "{warnings:#?}");
    }
}

fn assert_all_went_well(world: &World) {
    for (name, distribution, purges) in [("web", "EWEB", 2), ("blog", "EBLOG", 1)] {
        assert_eq!(world.creations(distribution).len(), purges, "{name}");
        assert_eq!(world.told(name, Kind::PurgeCompleted).len(), purges, "{name}");
    }
}

#[test]
fn refused_events_are_one_error_and_cost_no_purge_and_no_webhook() {
    let (world, log) = play("events.publish", 14);
    assert_said_once(
        &log,
        "publish_events",
        "deploy/base/cluster-role.yaml",
        ("events.publish", "Events cannot be made: a right is missing"),
    );
    assert_all_went_well(&world);
}

#[test]
fn a_ledger_that_may_not_be_written_is_one_error_and_all_goes_on_when_it_may() {
    let (world, log) = play("ledger.store", 18);
    assert_said_once(
        &log,
        "write_ledger",
        "deploy/base/ledger-role.yaml",
        ("ledger.store", "records cannot be written to the ledger: a right"),
    );
    assert_all_went_well(&world);
}

#[test]
fn distributions_that_may_not_be_listed_are_one_error() {
    let (world, log) = play("cdn.distributions", 4);
    assert_said_once(
        &log,
        "list_distributions",
        "cloudfront:ListDistributions",
        ("cdn.distributions", "distributions cannot be listed"),
    );
    assert_all_went_well(&world);
}

#[test]
fn purges_that_may_not_be_followed_are_one_error() {
    let (world, log) = play("cdn.status", 3);
    assert_said_once(
        &log,
        "get_invalidation",
        "cloudfront:GetInvalidation",
        ("cdn.status", "invalidations cannot be read"),
    );
    assert_all_went_well(&world);
}

/// An API server that has just started refuses everybody until it has read its RBAC.
#[test]
fn what_is_refused_for_a_moment_is_no_missing_right_and_loses_no_event() {
    let (world, log) = play("events.publish", 2);
    assert!(log.lines("ERROR", &[""]).is_empty());
    assert_eq!(log.lines("WARN", &["it is tried again, and may pass", "publish_events"]).len(), 1);
    assert_all_went_well(&world);
    let published = world.state().published.iter().filter(|(_, _, notice)| notice.kind == Kind::RolloutStarted).count();
    assert_eq!(published, 3, "each of three rollouts");
}

#[test]
fn a_refused_purge_is_tried_at_once_when_its_owner_says_that_the_cause_is_mended() {
    let world = settled(1, &["web"]);
    life(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        for _ in 0..3 {
            world.plan("cdn.create", "", 0, Fault::Deny);
        }
        roll_out(life, "web", 2, "2", 10_000).await;
        life.until("three refusals", 10 * 60_000, |world| world.asked("cdn.create", "").len() == 3).await;
        life.pass(1_000).await;
        assert!(world.creations("EWEB").is_empty());
        let mut workload = deployment("web", 1, 2, "2", Stage::Complete);
        workload.tuning.asks.retry_at = Some("2026-11-24T12:00:00Z".to_owned());
        world.set(workload);
        let from = world.now();
        life.until("its purge", 60_000, |world| !world.creations("EWEB").is_empty()).await;
        let waited = world.now() - from;
        assert!(waited <= 1_100, "{waited} ms after the annotation");
    });
    assert!(world.plan_is_done());
    assert_eq!(world.creations("EWEB").len(), 1, "no other purge was asked for");
}

#[test]
fn an_alias_that_moved_since_the_last_listing_is_purged_where_it_is_now_too() {
    let world = settled(1, &["web"]);
    life(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        // As AssociateAlias does it, in one step.
        world.state().distributions.clear();
        world.distribution("EWEB", &[]);
        world.distribution("EMOVED", &["web.example.com"]);
        roll_out(life, "web", 2, "2", 10_000).await;
        life.until("its end", 5 * 60_000, |world| !world.told("web", Kind::PurgeCompleted).is_empty()).await;
    });
    let purged = ["EWEB", "EMOVED"].map(|id| world.creations(id));
    assert!(purged.iter().all(|created| created.len() == 1), "{purged:?}");
    assert!(world.told("web", Kind::PurgeCompleted)[0] >= purged[1][0], "told after both");
}
