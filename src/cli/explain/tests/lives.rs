//! What is said of a workload that may have ended the whole program.

use super::*;

#[tokio::test]
async fn one_that_may_have_ended_allclear_is_said_to_rest() {
    let life = LifeNote { open: true, abrupt: 2, suspects: BTreeMap::from([(web().id, 2)]), ..LifeNote::default() };
    let text = World { life: Some(life.clone()), ..World::new(rolling()) }.text().await;
    assert!(
        text.contains("State         left alone for now\n") && text.contains("2 times while it worked on this"),
        "{text}"
    );
    let ended = LifeNote { open: false, ..life };
    let text = World { life: Some(ended), ..World::new(rolling()) }.text().await;
    assert!(text.contains("2 of 5 pods ready"), "a life that ended in order clears it: {text}");
}
