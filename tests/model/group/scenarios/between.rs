//! Caches between: each member asks those of its own cluster before it votes (judged at each write, in `worker`).

use std::sync::Arc;

use purge::caches::Cache;
use purge::testing::cache;

use super::*;
use crate::group::worker::BROKEN;

fn with_cache(name: &str) -> Policy {
    let cache = Cache { timeout: Duration::from_secs(10), ..cache(name) };
    Policy { caches: vec![Arc::new(cache)], ..policy() }
}

#[test]
fn two_members_ask_their_caches_before_they_vote() {
    let world = World { policy: with_cache("inner"), ..clusters(&[a_to_b(), a_to_b()]) };
    search("N=2 A→B, caches", world, &["ends purged once"], 1_777);
}

// Faults: P5
#[test]
fn two_members_whose_caches_never_answer_purge_all_the_same() {
    let world = World { policy: with_cache(BROKEN), ..swift(&[at_once(), at_once()]) };
    search("N=2 A→B, broken caches", world, &["ends purged once"], 568);
}
