//! The two sentences the group was asked for, as tests anyone can read.

use std::time::Duration;

use crate::group::field::Field;
use crate::group::oracles::deliveries;

/// "We need only one cache invalidation when a deployment is rolled out in all clusters."
#[tokio::test]
async fn one_rollout_in_three_clusters_causes_one_invalidation() {
    let clusters = Field::new().await;
    clusters.roll_out("1.1");
    clusters.wait_until_over(2).await;
    assert_eq!(clusters.purges().len(), 1, "one invalidation");
    // Where a member is slow another takes over, and may send the same again: a receiver knows it by its id.
    let sent = deliveries(&clusters);
    assert!(sent.len() == 1 && sent.values().all(|bodies| bodies.len() == 1), "one webhook: {sent:#?}");
}

/// "Only when the last cluster has completed its rollout the cache is invalidated."
#[tokio::test]
async fn nothing_is_purged_until_the_last_cluster_has_completed() {
    let mut clusters = Field::new().await;
    clusters[2].freeze();
    clusters.roll_out("1.1");
    let two_are_complete = async |clusters: &Field| {
        let complete = |at: usize| clusters[at].record().is_some_and(|record| record.awaits_vote());
        complete(0) && complete(1)
    };
    clusters.wait_until("two clusters have completed it", two_are_complete).await;
    let nothing = async |clusters: &Field| clusters.purges().is_empty();
    clusters.holds_for(Duration::from_secs(2), "nothing is purged", nothing).await;
    clusters[2].thaw();
    clusters.wait_until_over(2).await;
    assert_eq!(clusters.purges().len(), 1, "one invalidation, after the last");
}
