//! Networks that are cut in part (rows R7–R9).

use std::time::Duration;

use futures_util::FutureExt;
use sandbox::proxy::{Direction, Mode};

use crate::group::field::Field;
use crate::group::oracles::{Want, judge, last_end};
use crate::group::table::{Outcome, Row};

pub fn rows() -> Vec<Row> {
    vec![
        Row::new("R7", "one direction of one line is lost", || r7().boxed_local()),
        Row::new("R8", "one member is cut off, healed before and after the timeout", || r8().boxed_local()),
        Row::new("R9", "two members reach each other through the third only", || r9().boxed_local()),
    ]
}

async fn r7() -> Outcome {
    for direction in [Direction::ToServer, Direction::ToClient] {
        let field = Field::new().await;
        field.web.set_one_way(0, 1, direction, Mode::Drop);
        field.roll_out("1.1");
        judge(&field, Want::purged(1, 2)).await;
    }
    Outcome::passed("either direction; the other paths carried it")
}

/// Healed before the timeout: as if nothing had been. After it, with the policy `skip`: no purge, and everybody says so.
async fn r8() -> Outcome {
    let field = Field::new().await;
    field.web.part(&[0], Mode::Drop);
    field.roll_out("1.1");
    let still = async |field: &Field| field.purges().is_empty();
    field.holds_for(Duration::from_secs(2), "nothing is purged while one cannot be heard", still).await;
    field.web.set_all(Mode::Pass);
    judge(&field, Want::purged(1, 2)).await;
    drop(field);

    let settings =
        [("ALLCLEAR__GROUP__POLICY", "skip"), ("ALLCLEAR__GROUP__TIMEOUT", "3s"), ("ALLCLEAR__ROLLOUT__TIMEOUT", "2s")];
    let field = Field::with(&settings).await;
    field.web.part(&[0], Mode::Drop);
    field.roll_out("1.1");
    let closed = async |field: &Field| (0..3).all(|at| last_end(field, at).is_some());
    field.wait_until("every side has given up", closed).await;
    field.web.set_all(Mode::Pass);
    judge(&field, Want { purges: 0, told: 0, seq: 2 }).await;
    let ends: Vec<String> = (0..3).filter_map(|at| last_end(&field, at)).map(|end| end.outcome.to_string()).collect();
    assert!(ends.iter().all(|end| *end == ends[0]), "all sides say the same: {ends:?}");
    Outcome::passed(format!("before: one purge; after: none, all say {:?}", ends[0]))
}

async fn r9() -> Outcome {
    let field = Field::new().await;
    for (from, to) in [(0, 2), (2, 0)] {
        field.web.set(from, to, Mode::Drop);
    }
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    Outcome::passed("the first and the third met at the Redis of the second")
}
