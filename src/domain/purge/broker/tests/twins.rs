//! Another allclear under our own name.

use super::*;

#[test]
fn whoever_finds_another_allclear_under_its_name_leaves_no_beat_until_that_one_is_silent() {
    let mut broker = grouped();
    let gathered = |broker: &mut Broker, seconds| {
        let effects = broker.step(at(seconds), Event::WordsGathered(BTreeMap::new(), 77));
        effects.iter().any(|effect| matches!(effect, Effect::Heartbeat(..)))
    };
    assert!(gathered(&mut broker, 5));
    let other = Heartbeat { member: "eu-1".into(), origin: "o9".into(), ..Heartbeat::default() };
    broker.step(at(5), Event::Beaten(0, Ok(Some(Box::new(other)))));
    assert!(broker.view(at(5), &id("web")).hold.unwrap().contains("comes first, so this one waits"));
    assert!(!gathered(&mut broker, 10), "it would be taken for the one that members count");
    assert!(gathered(&mut broker, 70));
    assert_eq!(broker.view(at(70), &id("web")).hold, None);
}
